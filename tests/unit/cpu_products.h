/* cpu_products.h - what the tests of the CPU backend's products and convolutions share.
 *
 * Owns: memory with guards, fills, types, tolerances computed from the arithmetic.
 * The oracle is always a plain loop in double precision, written in the tests. */
#ifndef CEK_TESTS_UNIT_CPU_PRODUCTS_H
#define CEK_TESTS_UNIT_CPU_PRODUCTS_H

#include <float.h>
#include <malloc.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/cpu/config.h"
#include "backends/cpu/threads.h"
#include "tests/suite.h"

/* A workspace or result with a guard behind it; the guard must be intact when it is freed. */
enum { GUARD = 256 };

/* For conditions that are asked of every element: libcheck's own assertions write a message to a
 * file each time. */
#define EXPECT(condition, ...)         \
    do {                               \
        if (!(condition))              \
            ck_abort_msg(__VA_ARGS__); \
    } while (0)

/* Called first: memory that tests give back is kept, not returned to the kernel page by page. */
static inline void memory_keep(void)
{
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

static inline void *guarded(size_t bytes, int fill)
{
    unsigned char *p = aligned_alloc(256, (bytes + 255) / 256 * 256 + GUARD);
    ck_assert_ptr_nonnull(p);
    memset(p, fill, bytes);
    memset(p + bytes, 0xa5, GUARD);
    return p;
}

static inline void guard_free(void *p, size_t bytes)
{
    for (int i = 0; i < GUARD; i++)
        EXPECT(((unsigned char *)p)[bytes + (size_t)i] == 0xa5, "wrote %d bytes beyond the end", i + 1);
    free(p);
}

static inline uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Integers in -3 .. 3: every sum of fewer than 2^24 / 9 products is exact in any order. Or numbers
 * in (-1, 1). */
static inline float next_value(uint32_t *state, int integers)
{
    const uint32_t r = next_random(state);
    return integers ? (float)(int)(r % 7) - 3 : (float)r / (1 << 23) - 1;
}

static inline float bf16_to_f32(uint16_t h)
{
    const uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline float f16_to_f32(uint16_t h)
{
    const int exponent = h >> 10 & 31, mantissa = h & 1023;
    const float sign = h & 0x8000 ? -1.0f : 1.0f;
    if (exponent == 31)
        return mantissa ? NAN : sign * INFINITY;
    return sign *
           (exponent ? (float)(mantissa + 1024) * (float)(1 << exponent) * 0x1p-25f : (float)mantissa * 0x1p-24f);
}

/* The storable value nearest to x, ties to even: by search among neighbours, not by the bit tricks
 * under test. */
static inline uint16_t half_nearest(double x, float (*to_f32)(uint16_t))
{
    const uint16_t sign = signbit(x) ? 0x8000 : 0, infinity = to_f32 == f16_to_f32 ? 0x7c00 : 0x7f80;
    uint16_t low = 0, high = infinity;
    const double a = fabs(x);
    if (isnan(x))
        return 0x7fff;
    while (high - low > 1) {
        const uint16_t mid = (uint16_t)((low + high) / 2);
        if (to_f32(mid) <= a)
            low = mid;
        else
            high = mid;
    }
    const double below = to_f32(low), step = below - (low ? to_f32((uint16_t)(low - 1)) : 0);
    const double above = high == infinity ? below + step : to_f32(high);
    if (a >= (double)INFINITY)
        return (uint16_t)(sign | infinity);
    const int up = a - below > above - a || (a - below == above - a && (low & 1));
    return (uint16_t)(sign | (up ? high : low));
}

static inline double type_load(cpu_type type, const void *p, int64_t i)
{
    if (type == CPU_F32)
        return ((const float *)p)[i];
    return type == CPU_BF16 ? bf16_to_f32(((const uint16_t *)p)[i]) : f16_to_f32(((const uint16_t *)p)[i]);
}

/* All of them, malloc'ed. */
static inline double *widened(cpu_type type, int64_t n, const void *p)
{
    double *values = malloc((size_t)n * sizeof *values + 1);
    ck_assert_ptr_nonnull(values);
    for (int64_t i = 0; i < n; i++)
        values[i] = type_load(type, p, i);
    return values;
}

static inline void type_store(cpu_type type, void *p, int64_t i, double x)
{
    if (type == CPU_F32)
        ((float *)p)[i] = (float)x;
    else
        ((uint16_t *)p)[i] = half_nearest(x, type == CPU_BF16 ? bf16_to_f32 : f16_to_f32);
}

/* Unit roundoff of a type. */
static inline double type_unit(cpu_type type)
{
    return type == CPU_F32 ? FLT_EPSILON / 2 : type == CPU_BF16 ? 0x1p-8 : 0x1p-11;
}

/* n u / (1 - n u): the error of a sum of n terms, relative to the sum of their sizes, in whatever
 * order. */
static inline double gamma_of(double n)
{
    const double u = FLT_EPSILON / 2;
    return n * u / (1 - n * u);
}

static inline double act_of(cpu_act act, double x)
{
    switch (act) {
    case CPU_ACT_NONE: break;
    case CPU_ACT_RELU: return x < 0 ? 0 : x;
    case CPU_ACT_TANH: return tanh(x);
    case CPU_ACT_SIGMOID: return 1 / (1 + exp(-x));
    case CPU_ACT_GELU: return x * 0.5 * (1 + erf(x * 0.70710678118654752));
    }
    return x;
}

static inline double slope_of(cpu_act act, double ref)
{
    switch (act) {
    case CPU_ACT_NONE: break;
    case CPU_ACT_RELU: return ref <= 0 ? 0 : 1;
    case CPU_ACT_TANH: return 1 - ref * ref;
    case CPU_ACT_SIGMOID: return ref * (1 - ref);
    case CPU_ACT_GELU:
        return 0.5 * (1 + erf(ref * 0.70710678118654752)) + ref * 0.39894228040143268 * exp(-ref * ref / 2);
    }
    return 1;
}

/* All slopes above are at most this, and so are the errors of an activation relative to those of
 * its input. */
static const double slope_max = 1.13;

/* Errors of the activations themselves, in units of the result (vmath.h), and of the epilogue's few
 * operations. */
static inline double act_error(cpu_act act, double result)
{
    return act == CPU_ACT_NONE ? 0 : 16 * (FLT_EPSILON / 2) * (fabs(result) + 1);
}

static inline void *filled(cpu_type type, int64_t n, int integers, uint32_t *state)
{
    void *p = guarded((size_t)(n * cpu_type_bytes(type)), 0);
    for (int64_t i = 0; i < n; i++)
        type_store(type, p, i, next_value(state, integers));
    return p;
}

static inline void *copied(cpu_type type, int64_t n, const void *from)
{
    void *p = guarded((size_t)(n * cpu_type_bytes(type)), 0);
    memcpy(p, from, (size_t)(n * cpu_type_bytes(type)));
    return p;
}

static inline void filled_free(cpu_type type, int64_t n, void *p)
{
    guard_free(p, (size_t)(n * cpu_type_bytes(type)));
}

/* A copy between pages that nobody may read or write, which it touches with its first element or with its last. */
static inline void *fenced(cpu_type type, int64_t n, const void *from, int first)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (size_t)(n * cpu_type_bytes(type));
    const size_t whole = (bytes + page - 1) / page * page;
    char *base = mmap(NULL, whole + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(base != MAP_FAILED);
    ck_assert(whole == 0 || mprotect(base + page, whole, PROT_READ | PROT_WRITE) == 0);
    return memcpy(base + page + (first ? 0 : whole - bytes), from, bytes);
}

static inline void fenced_free(cpu_type type, int64_t n, void *p)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (size_t)(n * cpu_type_bytes(type));
    ck_assert_int_eq(munmap((char *)p - (uintptr_t)p % page - page, (bytes + page - 1) / page * page + 2 * page), 0);
}

#endif
