/* SPDX-License-Identifier: MIT
 *
 * element.h - how the reference reads and writes tensors: every element type becomes double on the
 * way in, and is rounded once on the way out.
 */
#ifndef CEK_BACKENDS_REFERENCE_ELEMENT_H
#define CEK_BACKENDS_REFERENCE_ELEMENT_H

#include <math.h>
#include <stdbool.h>

#include <cekernels/plugin.h>

#include "backends/common/half.h"

/* Element `i` of an array of any type; exact. */
static inline double load(const void *base, cek_dtype type, uint64_t i)
{
    switch (type) {
    case CEK_F32: return ((const float *)base)[i];
    case CEK_F16: return cek__f16_to_f32(((const uint16_t *)base)[i]);
    case CEK_BF16: return cek__bf16_to_f32(((const uint16_t *)base)[i]);
    case CEK_F64: return ((const double *)base)[i];
    case CEK_U8: return ((const uint8_t *)base)[i];
    default: return ((const int32_t *)base)[i];
    }
}

/* To an integer: nearest, ties to even; what lies outside becomes the nearest end; NaN becomes 0. */
static inline double to_integer(double x, double low, double high)
{
    if (isnan(x))
        return 0;
    return x <= low ? low : x >= high ? high : rint(x);
}

/* Rounds x once, to nearest even, and writes it to element `i`. */
static inline void store(void *base, cek_dtype type, uint64_t i, double x)
{
    switch (type) {
    case CEK_F32: ((float *)base)[i] = (float)x; break;
    case CEK_F16: ((uint16_t *)base)[i] = cek__f64_to_f16(x); break;
    case CEK_BF16: ((uint16_t *)base)[i] = cek__f64_to_bf16(x); break;
    case CEK_F64: ((double *)base)[i] = x; break;
    case CEK_U8: ((uint8_t *)base)[i] = (uint8_t)to_integer(x, 0, UINT8_MAX); break;
    default: ((int32_t *)base)[i] = (int32_t)to_integer(x, INT32_MIN, INT32_MAX); break;
    }
}

/* Overwrites element `i`, or adds to it. An element that is overwritten is not read: it may be NaN. */
static inline void store_or_add(void *base, cek_dtype type, uint64_t i, double x, bool add)
{
    store(base, type, i, add ? load(base, type, i) + x : x);
}

/* Does DO(element type, conversion) for one of the floating-point types: keeps the choice out of inner loops. */
#define FOR_TYPE(type, DO)                                        \
    switch (type) {                                               \
    case CEK_F32: DO(float, (double)); break;                     \
    case CEK_F16: DO(uint16_t, (double)cek__f16_to_f32); break;   \
    case CEK_BF16: DO(uint16_t, (double)cek__bf16_to_f32); break; \
    default: DO(double, ); break;                                 \
    }

/* The sum of x[first_x + i] * y[first_y + i * stride_y] for i < count. */
static inline double dot(cek_dtype type, const void *x, uint64_t first_x, const void *y, uint64_t first_y,
                         uint64_t stride_y, uint64_t count)
{
    double sum = 0;
#define DOT(T, TO_DOUBLE)                \
    for (uint64_t i = 0; i < count; i++) \
    sum += TO_DOUBLE(((const T *)x)[first_x + i]) * TO_DOUBLE(((const T *)y)[first_y + i * stride_y])
    FOR_TYPE(type, DOT)
#undef DOT
    return sum;
}

/* sums[i] += a * x[first + i * stride] for i < count. */
static inline void add_scaled(double *sums, double a, cek_dtype type, const void *x, uint64_t first, uint64_t stride,
                              uint64_t count)
{
#define ADD(T, TO_DOUBLE)                \
    for (uint64_t i = 0; i < count; i++) \
    sums[i] += a * TO_DOUBLE(((const T *)x)[first + i * stride])
    FOR_TYPE(type, ADD)
#undef ADD
}

static inline void zero(double *sums, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        sums[i] = 0;
}

/* A number of a block: f64 operations add both parts, all others read the upper one. */
static inline double block_number(cek_f32x2 number, cek_dtype type)
{
    return type == CEK_F64 ? (double)number.hi + (double)number.lo : (double)number.hi;
}

/* The next index of a tensor in row-major order. False behind the last. */
static inline bool index_next(uint64_t *index, const uint64_t *shape, uint32_t rank)
{
    while (rank-- > 0) {
        if (++index[rank] < shape[rank])
            return true;
        index[rank] = 0;
    }
    return false;
}

/* Where the element at `index` lies, in elements. */
static inline uint64_t index_place(const uint64_t *index, const int64_t *strides, uint32_t rank)
{
    uint64_t place = 0;
    for (uint32_t i = 0; i < rank; i++)
        place += index[i] * (uint64_t)strides[i];
    return place;
}

#endif
