/* SPDX-License-Identifier: MIT
 *
 * copy.cl - strided tensors, copied or converted.
 *
 * X_TYPE, Y_TYPE: element types. COPY_AS: instead, the type that is moved where both are alike (bytes, not numbers).
 * FLAT: both sides are dense and alike. WIDE: elements of a block.
 */
#define BOTH(X) X(0) X(1)
#ifdef FLAT
#define BLOCKS ((a.count + WIDE - 1) / WIDE)
#define FIND                                                                                       \
    const cek_u64 start = block * WIDE;                                                            \
    const cek_u32 here = a.count - start < WIDE ? (cek_u32)(a.count - start) : WIDE;
#define PLACE(n) (cek_i64)start
#define STEP(n) 1
#else
#define BLOCKS a.blocks
#define FIND FIND_BLOCK(BOTH)
#define PLACE(n) p##n
#define STEP(n) a.stride[n][a.rank - 1]
#endif

#ifdef COPY_AS
#define BYTES_moved sizeof(COPY_AS)
KERNEL void copy_same(GLOBAL char *RESTRICT x, GLOBAL char *RESTRICT y, const cek_k_strided a)
{
    GLOBAL const COPY_AS *from = (GLOBAL const COPY_AS *)AT(x, 0);
    GLOBAL COPY_AS *to = (GLOBAL COPY_AS *)AT(y, 1);
#if defined(CEK_CPU) && defined(FLAT)
    FOR_EACH(i, a.count)
        to[i] = from[i];
#else
    FOR_PIECE(block, BLOCKS, CHUNK / WIDE) {
        FIND
#ifndef CEK_CPU
        if (IS_WHOLE(moved, 0, PLACE(0), STEP(0)) && IS_WHOLE(moved, 1, PLACE(1), STEP(1))) {
            *(GLOBAL uint4 *)(to + PLACE(1)) = *(GLOBAL const uint4 *)(from + PLACE(0));
            continue;
        }
#endif
        for (cek_u32 e = 0; e < WIDE; e++)
            if (e < here)
                to[PLACE(1) + (cek_i32)e * STEP(1)] = from[PLACE(0) + (cek_i32)e * STEP(0)];
    }
#endif
}
#else
KERNEL void copy_convert(GLOBAL char *RESTRICT x, GLOBAL char *RESTRICT y, const cek_k_strided a)
{
#if defined(CEK_CPU) && defined(FLAT)
    FOR_EACH(i, a.count)
        STORE(Y_TYPE, AT(y, 1), i, LOAD(X_TYPE, AT(x, 0), i));
#else
    FOR_PIECE(block, BLOCKS, CHUNK / WIDE) {
        cek_f32 v[WIDE];
        FIND
        BLOCK_READ(X_TYPE, x, 0, PLACE(0), STEP(0), v)
        BLOCK_WRITE(Y_TYPE, y, 1, PLACE(1), STEP(1), v)
    }
#endif
}
#endif
