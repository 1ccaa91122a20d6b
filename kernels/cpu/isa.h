/* isa.h - what a kernel file needs to know of the instruction set it is being compiled for.
 *
 * Owns: vector types, fused multiply-add, the tile's size, the suffix of names. Every kernel file
 * is compiled once per instruction set with CEK_ISA set to its name and CEK_ISA_<NAME> to 1, and the same of a set that
 * it is more of (AVX512BF16 is AVX512).
 * Must not know: any operation. */
#ifndef CEK_KERNELS_CPU_ISA_H
#define CEK_KERNELS_CPU_ISA_H

#include <stdint.h>
#include <string.h>

#define ISA_PASTE(name, isa) name##__##isa
#define ISA_EXPAND(name, isa) ISA_PASTE(name, isa)
#define ISA_NAME(name) ISA_EXPAND(name, CEK_ISA)

#if defined CEK_ISA_AVX512
#include <immintrin.h>
enum { REGISTERS = 32, VL = 16, TILE_ROWS = 14, TILE_VECTORS = 2 }; /* 28 sums + 2 of B + 1 of A of 32 registers */
#elif defined CEK_ISA_AVX2
#include <immintrin.h>
enum { REGISTERS = 16, VL = 8, TILE_ROWS = 6, TILE_VECTORS = 2 }; /* 12 sums + 2 of B + 1 of A of 16 registers */
#elif defined CEK_ISA_NEON
#include <arm_neon.h>
/* 24 sums + 2 of B + a few of A of 32 registers: with 14 rows gcc 12 spills */
enum { REGISTERS = 32, VL = 4, TILE_ROWS = 12, TILE_VECTORS = 2 };
#else
#if defined __SSE2__
#include <emmintrin.h>
#endif
enum { REGISTERS = 16, VL = 4, TILE_ROWS = 6, TILE_VECTORS = 2 }; /* the same, in registers of 16 bytes */
#endif

/* Sums are registers only where the loops over them are gone. clang 14 takes no number of times for that. */
#if defined __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

enum { TILE_COLUMNS = TILE_VECTORS * VL };
/* Whole lines: by halves, 6 rows at a time, Zen 3 takes a third longer than by way of its caches. */
enum { TILE_STREAMS = VL * 4 == 64 };
/* In runs, any step from a row of B, or a column of A, to the next: 6 x 16 have registers for them. */
#if defined CEK_ISA_AVX2
enum { TILE_ANY_STEP = 1 };
#else
enum { TILE_ANY_STEP = 0 };
#endif

/* Vectors handed over in memory cost more than most functions of them. */
#define V_INLINE static inline __attribute__((always_inline))

/* Vectors in registers, and the same in memory of any alignment and declared type. */
typedef float vf __attribute__((vector_size(VL * 4)));
typedef int32_t vi __attribute__((vector_size(VL * 4)));
typedef float vf_mem __attribute__((vector_size(VL * 4), aligned(4), may_alias));
typedef uint16_t vh_mem __attribute__((vector_size(VL * 2), aligned(2), may_alias));

V_INLINE vf v_load(const float *p)
{
    return *(const vf_mem *)p;
}
V_INLINE void v_store(float *p, vf x)
{
    *(vf_mem *)p = x;
}

/* Stores past the caches (p is a multiple of the vector's size), and waits until such stores are
 * where others see them. */
V_INLINE void v_stream(float *p, vf x)
{
#if defined CEK_ISA_AVX512
    _mm512_stream_ps(p, (__m512)x);
#elif defined CEK_ISA_AVX2
    _mm256_stream_ps(p, (__m256)x);
#elif defined __SSE2__
    _mm_stream_ps(p, (__m128)x);
#else
    v_store(p, x);
#endif
}

V_INLINE void v_drain(void)
{
#if defined __SSE2__
    _mm_sfence();
#endif
}

V_INLINE vf v_all(float x)
{
    return x - (vf){ 0 };
} /* x - 0 keeps -0 and NaN */

/* a * b + c, rounded once where the processor can: spelled out, so that no compiler flag decides. */
V_INLINE vf v_fma(vf a, vf b, vf c)
{
#if defined CEK_ISA_AVX512
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined CEK_ISA_AVX2
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined CEK_ISA_NEON
    return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}

#if defined CEK_ISA_AVX512
/* The same by one instruction, whose first factor is a float in memory. */
V_INLINE vf v_fma_spread(const float *a, vf b, vf c)
{
    __asm__("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(c) : "v"(b), "m"(*a));
    return c;
}
#endif

/* x in a register, for several that use it: without the empty asm gcc 12 has up to three of them read memory each. */
V_INLINE vf v_once(vf x)
{
#if defined CEK_ISA_AVX512
    __asm__("" : "+v"(x));
#elif defined __SSE2__
    __asm__("" : "+x"(x));
#elif defined CEK_ISA_NEON
    __asm__("" : "+w"(x));
#endif
    return x;
}

/* where mask (all bits or none, per lane) ? a : b */
V_INLINE vf v_select(vi mask, vf a, vf b)
{
    return (vf)((mask & (vi)a) | (~mask & (vi)b));
}

#endif
