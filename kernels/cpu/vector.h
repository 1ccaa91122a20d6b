/* vector.h - operations on vectors of floats.
 *
 * Owns: partial vectors, integer vectors, and the few instructions for which the compilers'
 * vector extensions have no operator. The types and the width are isa.h's; sums, products and
 * comparisons are written as C's operators.
 * Must not know: what is computed.
 *
 * A comparison of vectors gives a mask, all bits of a lane set where it holds, for v_select. */
#ifndef CEK_KERNELS_CPU_VECTOR_H
#define CEK_KERNELS_CPU_VECTOR_H

#include "kernels/cpu/isa.h"

typedef uint32_t vu __attribute__((vector_size(VL * 4)));
typedef uint64_t vl __attribute__((vector_size(VL * 4)));
typedef uint8_t vb __attribute__((vector_size(VL)));

typedef int32_t vi_mem __attribute__((vector_size(VL * 4), aligned(4), may_alias));
typedef uint8_t vb_mem __attribute__((vector_size(VL), aligned(1), may_alias));

/* clang-format off */
V_INLINE vi v_load_i32(const int32_t *p) { return *(const vi_mem *)p; }
V_INLINE void v_store_i32(int32_t *p, vi v) { *(vi_mem *)p = v; }
V_INLINE vi v_all_i32(int32_t x) { return x + (vi){ 0 }; }
V_INLINE vi v_to_i32(vf x) { return __builtin_convertvector(x, vi); }  /* towards zero */
V_INLINE vf v_to_f32(vi x) { return __builtin_convertvector(x, vf); }
/* clang-format on */

V_INLINE vi v_select_i32(vi mask, vi a, vi b)
{
    return (mask & a) | (~mask & b);
}

V_INLINE vf v_abs(vf x)
{
    return (vf)((vi)x & 0x7fffffff);
}
V_INLINE vf v_copysign(vf x, vf sign)
{
    return (vf)(((vi)x & 0x7fffffff) | ((vi)sign & (int32_t)0x80000000));
}

/* Bytes to integers and back (the low bytes). GCC 12 takes __builtin_convertvector apart into
 * single bytes here. */
V_INLINE vi v_from_u8(vb x)
{
#if defined CEK_ISA_AVX512
    return (vi)_mm512_cvtepu8_epi32((__m128i)x);
#elif defined CEK_ISA_AVX2
    return (vi)_mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)x));
#else
    return __builtin_convertvector(x, vi);
#endif
}

V_INLINE vb v_to_u8(vi x)
{
#if defined CEK_ISA_AVX512
    return (vb)_mm512_cvtepi32_epi8((__m512i)x);
#elif defined CEK_ISA_AVX2
    __m256i words = _mm256_packus_epi32((__m256i)(x & 255), _mm256_setzero_si256());
    __m256i bytes = _mm256_packus_epi16(words, words); /* lanes 0-3 in the low dword of either half */
    return (vb)_mm_cvtsi128_si64(_mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1)));
#else
    return __builtin_convertvector(x, vb);
#endif
}

/* The same for 16 bits. */
V_INLINE vu v_from_u16(vh_mem x)
{
#if defined CEK_ISA_AVX512
    return (vu)_mm512_cvtepu16_epi32((__m256i)x);
#elif defined CEK_ISA_AVX2
    return (vu)_mm256_cvtepu16_epi32((__m128i)x);
#elif defined CEK_ISA_NEON
    return (vu)vmovl_u16((uint16x4_t)x);
#else
    return __builtin_convertvector(x, vu);
#endif
}

/* Of lanes below 65536. */
V_INLINE vh_mem v_to_u16(vu x)
{
#if defined CEK_ISA_AVX512
    return (vh_mem)_mm512_cvtepi32_epi16((__m512i)x);
#elif defined CEK_ISA_AVX2
    __m256i words = _mm256_packus_epi32((__m256i)x, _mm256_setzero_si256()); /* lanes 0-3 in either half */
    return (vh_mem)_mm_unpacklo_epi64(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
#elif defined CEK_ISA_NEON
    return (vh_mem)vmovn_u32((uint32x4_t)x);
#else
    return __builtin_convertvector(x, vh_mem);
#endif
}

/* Two vectors of such lanes, behind each other at p. */
V_INLINE void v_store_u16_twice(vh_mem *p, vu x, vu y)
{
#if defined CEK_ISA_AVX2
    const __m256i words = _mm256_packus_epi32((__m256i)x, (__m256i)y); /* lanes 0-3 of x and of y, then 4-7 */
    _mm256_storeu_si256((__m256i *)p, _mm256_permute4x64_epi64(words, 0xd8));
#else
    p[0] = v_to_u16(x);
    p[1] = v_to_u16(y);
#endif
}

/* All bits set in the first n lanes. */
V_INLINE vi v_below(int64_t n)
{
    vi lane;

    for (int i = 0; i < VL; i++)
        lane[i] = i;
    return lane < v_all_i32((int32_t)n);
}

/* Whether a part of a vector takes one instruction, and whether it is had as fast as all of it: loops then need no
 * second form for their ends. */
#if defined CEK_ISA_AVX512
enum { HAS_PARTS = 1, HAS_MASKS = 1 };
#elif defined CEK_ISA_AVX2
enum { HAS_PARTS = 1, HAS_MASKS = 0 };
#else
enum { HAS_PARTS = 0, HAS_MASKS = 0 };
#endif

/* v_load_part lane by lane, where nothing shall be called. */
V_INLINE vf v_load_lanes(const float *p, int64_t n)
{
    float lanes[VL] = { 0 };

    for (int64_t i = 0; i < n; i++)
        lanes[i] = p[i];
    return v_load(lanes);
}

#if !defined CEK_ISA_AVX512 && !defined CEK_ISA_AVX2
/* Once for all loops of a file. */
static __attribute__((noinline, unused)) vf lanes_load(const float *p, int64_t n)
{
    return v_load_lanes(p, n);
}

static __attribute__((noinline, unused)) void lanes_store(float *p, int64_t n, vf v)
{
    float lanes[VL];

    v_store(lanes, v);
    for (int64_t i = 0; i < n; i++)
        p[i] = lanes[i];
}
#endif

/* The first n lanes (0 <= n <= VL); the others read as 0 and are not written. */
V_INLINE vf v_load_part(const float *p, int64_t n)
{
#if defined CEK_ISA_AVX512
    return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
#elif defined CEK_ISA_AVX2
    return n == VL ? v_load(p) : (vf)_mm256_maskload_ps(p, (__m256i)v_below(n));
#else
    return n == VL ? v_load(p) : lanes_load(p, n);
#endif
}

V_INLINE void v_store_part(float *p, int64_t n, vf v)
{
#if defined CEK_ISA_AVX512
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
#elif defined CEK_ISA_AVX2
    if (n == VL) /* a masked store takes some processors tens of cycles */
        v_store(p, v);
    else
        _mm256_maskstore_ps(p, (__m256i)v_below(n), (__m256)v);
#else
    if (n == VL)
        v_store(p, v);
    else
        lanes_store(p, n, v);
#endif
}

V_INLINE vf v_sqrt(vf x)
{
#if defined CEK_ISA_AVX512
    return (vf)_mm512_sqrt_ps((__m512)x);
#elif defined CEK_ISA_AVX2
    return (vf)_mm256_sqrt_ps((__m256)x);
#elif defined CEK_ISA_NEON
    return (vf)vsqrtq_f32((float32x4_t)x);
#elif defined __SSE2__
    return (vf)_mm_sqrt_ps((__m128)x);
#else
    for (int i = 0; i < VL; i++)
        x[i] = __builtin_sqrtf(x[i]);
    return x;
#endif
}

/* The product of the low halves of 64-bit lanes; the high halves may hold anything. */
V_INLINE vl v_mul_low(vl a, uint32_t b)
{
#if defined CEK_ISA_AVX512
    return (vl)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64(b));
#elif defined CEK_ISA_AVX2
    return (vl)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(b));
#elif defined CEK_ISA_NEON
    return (vl)vmull_u32(vmovn_u64((uint64x2_t)a), vdup_n_u32(b));
#elif defined __SSE2__
    return (vl)_mm_mul_epu32((__m128i)a, _mm_set1_epi64x(b));
#else
    return (a & 0xffffffffu) * b;
#endif
}

/* Sums and extremes over the lanes, as a tree, so that the order is fixed. v_max_lanes: NaN if
 * any lane is. */
typedef float v4 __attribute__((vector_size(16)));
typedef float v4_mem __attribute__((vector_size(16), aligned(4), may_alias));

/* The tree down to four lanes. Compilers take a loop over lanes through memory. */
V_INLINE v4 v_fold(vf v)
{
#if defined CEK_ISA_AVX512
    typedef float v8 __attribute__((vector_size(32)));
    const v8 half = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                    __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
#elif defined CEK_ISA_AVX2
    const vf half = v;
#else
    return v;
#endif
#if defined CEK_ISA_AVX512 || defined CEK_ISA_AVX2
    return __builtin_shufflevector(half, half, 0, 1, 2, 3) + __builtin_shufflevector(half, half, 4, 5, 6, 7);
#endif
}

V_INLINE float v_sum_lanes(vf v)
{
    const v4 s = v_fold(v);
    return (s[0] + s[2]) + (s[1] + s[3]);
}

/* Of four vectors. */
V_INLINE v4 v_sums_lanes(vf a, vf b, vf c, vf d)
{
    const v4 e = v_fold(a), f = v_fold(b), g = v_fold(c), h = v_fold(d);
    const v4 ef = __builtin_shufflevector(e, f, 0, 1, 4, 5) + __builtin_shufflevector(e, f, 2, 3, 6, 7);
    const v4 gh = __builtin_shufflevector(g, h, 0, 1, 4, 5) + __builtin_shufflevector(g, h, 2, 3, 6, 7);
    return __builtin_shufflevector(ef, gh, 0, 2, 4, 6) + __builtin_shufflevector(ef, gh, 1, 3, 5, 7);
}

/* max that hands NaN on: a where it is larger or NaN, unless b is NaN already. */
V_INLINE vf v_max(vf a, vf b)
{
    return v_select(~(a <= b) & (b == b), a, b);
}
V_INLINE vf v_min(vf a, vf b)
{
    return v_select(~(a >= b) & (b == b), a, b);
}

V_INLINE float v_max_lanes(vf v)
{
    float best = v[0];

    for (int i = 1; i < VL; i++)
        best = !(v[i] <= best) && best == best ? v[i] : best;
    return best;
}

V_INLINE float v_min_lanes(vf v)
{
    return -v_max_lanes(-v);
}

#endif
