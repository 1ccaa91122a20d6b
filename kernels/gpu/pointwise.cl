/* SPDX-License-Identifier: MIT
 *
 * pointwise.cl - a chain of instructions, which the host wrote out as the macro CHAIN: statements that end with
 * `value`.
 *
 * IN(n): input n of the element at hand; COUNTS: whether its row does, where VALID is defined. INPUTS(X): X(n) for each
 * input. FLAT: all operands are dense and alike, so the element's number is its place. WIDE: elements of a block.
 * INTERPRET: no CHAIN; the kernel reads the instructions from its arguments. Slower, for where nothing can be compiled.
 */
#ifndef __CUDACC__
#pragma OPENCL FP_CONTRACT OFF  /* each instruction rounds, as plugin.h says */
#else
#define pow powf
#define erf erff
#define log1p log1pf
#define floor floorf
#endif

DEVICE_FN cek_f32 pw_min(cek_f32 p, cek_f32 q) { return p != p ? p : q != q ? q : p < q ? p : q; }
DEVICE_FN cek_f32 pw_max(cek_f32 p, cek_f32 q) { return p != p ? p : q != q ? q : p > q ? p : q; }

DEVICE_FN cek_f32 pw_sign(cek_f32 p) { return p > 0.0f ? 1.0f : p < 0.0f ? -1.0f : p; }

#ifdef FLAT
#define BLOCKS ((a.count + WIDE - 1) / WIDE)
#define FIND                                                                                       \
    const cek_u64 start = block * WIDE;                                                            \
    const cek_u32 here = a.count - start < WIDE ? (cek_u32)(a.count - start) : WIDE;
#define PLACE(n) (cek_i64)start
#define STEP(n) 1
#else
#define BLOCKS a.blocks
#ifdef VALID
#define OPERANDS_ALL(X) INPUTS(X) X(8) X(9)
#else
#define OPERANDS_ALL(X) INPUTS(X) X(8)
#endif
#define FIND FIND_BLOCK(OPERANDS_ALL)
#define PLACE(n) p##n
#define STEP(n) a.stride[n][a.rank - 1]
#endif

#define OPERANDS                                                                                   \
    GLOBAL char *in0, GLOBAL char *in1, GLOBAL char *in2, GLOBAL char *in3, GLOBAL char *in4,      \
    GLOBAL char *in5, GLOBAL char *in6, GLOBAL char *in7, GLOBAL char *out, GLOBAL char *batch

/* The number of elements whose rows count. */
DEVICE_FN cek_u64 counted(const cek_k_strided *a, GLOBAL const char *batch)
{
    const cek_u64 valid = a->batch ? ((GLOBAL const cek_u32 *)batch)[2] : a->samples; /* cek_batch_block.rows_valid */
    return valid < a->samples ? valid * a->sample : ~(cek_u64)0;
}
#ifdef VALID
#define FIND_COUNTED const cek_u64 counting = counted(&a, AT(batch, 9));
#else
#define FIND_COUNTED
#endif

#ifndef INTERPRET
#if defined(CEK_CPU) && defined(FLAT)
#define IN(n) LOAD(CEK_PASTE(TYPE_, n), AT(CEK_PASTE(in, n), n), i)
#define COUNTS (a.first + i < counting)
KERNEL void pointwise(OPERANDS, const cek_k_strided a)
{
    FIND_COUNTED
    FOR_EACH(i, a.count) {
        cek_f32 value;
        CHAIN
#ifdef ACCUMULATE
        value = LOAD(OUT_TYPE, AT(out, 8), i) + value;
#endif
        STORE(OUT_TYPE, AT(out, 8), i, value);
    }
}
#else
#define IN(n) x##n[e]
#define COUNTS (a.first + (cek_u64)(PLACE(9) + (cek_i64)e * STEP(9)) < counting)
#define READ(n) \
    cek_f32 x##n[WIDE]; \
    BLOCK_READ(CEK_PASTE(TYPE_, n), CEK_PASTE(in, n), n, PLACE(n), STEP(n), x##n)
KERNEL void pointwise(OPERANDS, const cek_k_strided a)
{
    FIND_COUNTED
    FOR_PIECE(block, BLOCKS, CHUNK / WIDE) {
        FIND
        INPUTS(READ)
        cek_f32 results[WIDE];
#ifdef ACCUMULATE
        BLOCK_READ(OUT_TYPE, out, 8, PLACE(8), STEP(8), results)
#endif
        for (cek_u32 e = 0; e < WIDE; e++) {
            cek_f32 value;
            CHAIN
#ifdef ACCUMULATE
            value = results[e] + value;
#endif
            results[e] = value;
        }
        BLOCK_WRITE(OUT_TYPE, out, 8, PLACE(8), STEP(8), results)
    }
}
#endif
#else

/* By its number in plugin.h. */
DEVICE_FN cek_f32 instruction_of(cek_u32 code, cek_f32 p, cek_f32 q, cek_f32 r, cek_f32 imm, cek_u32 counts)
{
    switch (code) {
    case 1: return imm;
    case 2: return p;
    case 3: return p + q;
    case 4: return p - q;
    case 5: return p * q;
    case 6: return p / q;
    case 7: return pw_min(p, q);
    case 8: return pw_max(p, q);
    case 9: return -p;
    case 10: return fabs(p);
    case 11: return sqrt(p);
    case 12: return exp(p);
    case 13: return log(p);
    case 14: return p + imm;
    case 15: return p * imm;
    case 16: return act_relu(p);
    case 17: return act_tanh(p);
    case 18: return act_sigmoid(p);
    case 19: return act_gelu(p);
    case 20: return grad_relu(p, q);
    case 21: return grad_tanh(p, q);
    case 22: return grad_sigmoid(p, q);
    case 23: return grad_gelu(p, q);
    case 24: return p < q ? 1.0f : 0.0f;
    case 25: return p == q ? 1.0f : 0.0f;
    case 26: return p != 0.0f ? q : r;
    case 27: return pow(p, q);
    case 28: return erf(p);
    case 29: return log1p(p);
    case 30: return expm1(p);
    case 31: return floor(p);
    case 32: return pw_sign(p);
    case 33: return sin(p);
    case 34: return cos(p);
    default: return counts ? 1.0f : 0.0f;
    }
}

/* Where element `i` of an operand lies: blocks of one element. */
DEVICE_FN cek_i64 place_of(const cek_k_strided *a, cek_u32 n, cek_u32 i)
{
    cek_i32 place = 0;
    for (cek_u32 d = a->rank; d-- > 0;) {
        const cek_u32 next = d ? QUOTIENT(i, a->shape, d) : 0;
        place += (cek_i32)(i - next * a->shape.size[d]) * a->stride[n][d];
        i = next;
    }
    return place;
}

#define VALUES (CEK_K_INPUTS + CEK_K_INSTRUCTIONS)

KERNEL void pointwise(OPERANDS, const cek_k_chain c)
{
    const cek_k_strided a = c.strided;
    GLOBAL char *const buffers[] = { AT(in0, 0), AT(in1, 1), AT(in2, 2), AT(in3, 3),
                                     AT(in4, 4), AT(in5, 5), AT(in6, 6), AT(in7, 7) };
    const cek_u64 counting = counted(&a, AT(batch, 9));
    FOR_EACH(i, a.blocks) {
        const cek_u32 counts = a.first + (cek_u64)place_of(&a, CEK_K_INPUTS + 1, (cek_u32)i) < counting;
        cek_f32 values[VALUES];
        cek_u32 count = c.inputs;
        for (cek_u32 n = 0; n < c.inputs; n++)
            values[n] = load_any(c.types[n], buffers[n], (cek_u64)place_of(&a, n, (cek_u32)i));
        for (cek_u32 n = 0; n < c.instructions; n++, count++) {
            cek_u32 word = c.instruction[n];
            values[count] = instruction_of(word & 0xff, values[word >> 8 & 0xff], values[word >> 16 & 0xff],
                                           values[word >> 24], c.imm[n], counts);
        }
        cek_f32 value = values[count - 1];
        cek_u64 place = (cek_u64)place_of(&a, CEK_K_INPUTS, (cek_u32)i);
        if (c.accumulate)
            value = load_any(c.types[CEK_K_INPUTS], AT(out, 8), place) + value;
        store_any(c.types[CEK_K_INPUTS], AT(out, 8), place, value);
    }
}
#endif
