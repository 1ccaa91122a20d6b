/* SPDX-License-Identifier: MIT
 *
 * pointwise.cl - a chain of instructions, which the host wrote out as the macro CHAIN: statements that end with `value`.
 *
 * IN(n): input n of the element at hand. FLAT: all operands are dense and alike, so the element's number is its place.
 */
#ifndef __CUDACC__
#pragma OPENCL FP_CONTRACT OFF  /* each instruction rounds, as plugin.h says */
#endif

DEVICE_FN cek_f32 pw_min(cek_f32 p, cek_f32 q) { return p != p ? p : q != q ? q : p < q ? p : q; }
DEVICE_FN cek_f32 pw_max(cek_f32 p, cek_f32 q) { return p != p ? p : q != q ? q : p > q ? p : q; }

DEVICE_FN cek_u64 place_of(cek_u64 i, cek_u64 rank, const cek_u64 *shape, const cek_u64 *stride)
{
    cek_u64 place = 0;
    for (cek_u64 d = rank; d > 1; d--) {
        place += i % shape[d - 1] * stride[d - 1];
        i /= shape[d - 1];
    }
    return place + i * stride[0];
}

#ifdef FLAT
#define PLACE(n) i
#else
#define PLACE(n) place_of(i, a.rank, a.shape, a.stride[n])
#endif
#define IN(n) LOAD(CEK_PASTE(TYPE_, n), AT(CEK_PASTE(in, n), n), PLACE(n))

KERNEL void pointwise(GLOBAL char *in0, GLOBAL char *in1, GLOBAL char *in2, GLOBAL char *in3, GLOBAL char *in4, GLOBAL char *in5,
                      GLOBAL char *in6, GLOBAL char *in7, GLOBAL char *out, const cek_k_strided a)
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
