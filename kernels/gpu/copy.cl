/* SPDX-License-Identifier: MIT
 *
 * copy.cl - strided tensors, copied or converted.
 *
 * X_TYPE, Y_TYPE: element types. COPY_AS: instead, the type that is moved where both are alike (bytes, not numbers).
 * FLAT: both sides are dense and alike.
 */
#ifdef FLAT
#define PLACE(n) i
#else
#define PLACE(n) place_of(i, a.rank, a.shape, a.stride[n])
#endif

#ifdef COPY_AS
KERNEL void copy_same(GLOBAL char *RESTRICT x, GLOBAL char *RESTRICT y, const cek_k_strided a)
{
    GLOBAL const COPY_AS *from = (GLOBAL const COPY_AS *)AT(x, 0);
    GLOBAL COPY_AS *to = (GLOBAL COPY_AS *)AT(y, 1);
    FOR_EACH(i, a.count)
        to[PLACE(1)] = from[PLACE(0)];
}
#else
KERNEL void copy_convert(GLOBAL char *RESTRICT x, GLOBAL char *RESTRICT y, const cek_k_strided a)
{
    FOR_EACH(i, a.count)
        STORE(Y_TYPE, AT(y, 1), PLACE(1), LOAD(X_TYPE, AT(x, 0), PLACE(0)));
}
#endif
