/* SPDX-License-Identifier: MIT
 *
 * pointwise.cl - a chain of instructions, which the host wrote out as the macro CHAIN: statements that end with
 * `value`.
 *
 * IN(n): input n of the element at hand. FLAT: all operands are dense and alike, so the element's number is its place.
 * INTERPRET: no CHAIN; the kernel reads the instructions from its arguments. Slower, for where nothing can be compiled.
 */
#ifndef __CUDACC__
#pragma OPENCL FP_CONTRACT OFF  /* each instruction rounds, as plugin.h says */
#endif

DEVICE_FN cek_f32 pw_min(cek_f32 p, cek_f32 q) { return p != p ? p : q != q ? q : p < q ? p : q; }
DEVICE_FN cek_f32 pw_max(cek_f32 p, cek_f32 q) { return p != p ? p : q != q ? q : p > q ? p : q; }

#ifdef FLAT
#define PLACE(n) i
#else
#define PLACE(n) place_of(i, a.rank, a.shape, a.stride[n])
#endif
#define IN(n) LOAD(CEK_PASTE(TYPE_, n), AT(CEK_PASTE(in, n), n), PLACE(n))

#define OPERANDS                                                                                   \
    GLOBAL char *in0, GLOBAL char *in1, GLOBAL char *in2, GLOBAL char *in3, GLOBAL char *in4,      \
    GLOBAL char *in5, GLOBAL char *in6, GLOBAL char *in7, GLOBAL char *out

#ifndef INTERPRET
KERNEL void pointwise(OPERANDS, const cek_k_strided a)
{
    FOR_EACH(i, a.count) {
        cek_f32 value;
        CHAIN
#ifdef ACCUMULATE
        value = LOAD(OUT_TYPE, AT(out, 8), PLACE(8)) + value;
#endif
        STORE(OUT_TYPE, AT(out, 8), PLACE(8), value);
    }
}
#else

/* By its number in plugin.h. */
DEVICE_FN cek_f32 instruction_of(cek_u32 code, cek_f32 p, cek_f32 q, cek_f32 imm)
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
    default: return p == q ? 1.0f : 0.0f;
    }
}

#define VALUES (CEK_K_INPUTS + CEK_K_INSTRUCTIONS)

KERNEL void pointwise(OPERANDS, const cek_k_chain c)
{
    const cek_k_strided a = c.strided;
    GLOBAL char *const buffers[] = { AT(in0, 0), AT(in1, 1), AT(in2, 2), AT(in3, 3),
                                     AT(in4, 4), AT(in5, 5), AT(in6, 6), AT(in7, 7) };
    FOR_EACH(i, a.count) {
        cek_f32 values[VALUES];
        cek_u32 count = c.inputs;
        for (cek_u32 n = 0; n < c.inputs; n++)
            values[n] = load_any(c.types[n], buffers[n], PLACE(n));
        for (cek_u32 n = 0; n < c.instructions; n++, count++) {
            cek_u32 word = c.instruction[n];
            values[count] = instruction_of(word & 0xff, values[word >> 8 & 0xff], values[word >> 16 & 0xff], c.imm[n]);
        }
        cek_f32 value = values[count - 1];
        cek_u64 place = PLACE(CEK_K_INPUTS);
        if (c.accumulate)
            value = load_any(c.types[CEK_K_INPUTS], AT(out, 8), place) + value;
        store_any(c.types[CEK_K_INPUTS], AT(out, 8), place, value);
    }
}
#endif
