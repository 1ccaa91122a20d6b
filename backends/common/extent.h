/* SPDX-License-Identifier: MIT
 *
 * extent.h - sizes of strided and windowed things, in 64 bits, with overflow seen.
 *
 * All functions are pure. A result that would exceed INT64_MAX is an overflow, so that indices fit int64_t.
 */
#ifndef CEK_BACKENDS_COMMON_EXTENT_H
#define CEK_BACKENDS_COMMON_EXTENT_H

#include <stdbool.h>

#include <cekernels/plugin.h>

/* Bytes of one element, 0 for CEK_DTYPE_NONE and unknown types; the type of sums; whether it is f32, f64,
 * f16 or bf16. */
uint32_t cek__type_bytes(cek_dtype type);
cek_dtype cek__type_sum(cek_dtype type);
const char *cek__type_name(cek_dtype type);
#define CEK__TYPES_REAL (1u << CEK_F32 | 1u << CEK_F64 | 1u << CEK_F16 | 1u << CEK_BF16)
#define CEK__TYPES_ALL (CEK__TYPES_REAL | 1u << CEK_U8 | 1u << CEK_I32)

/* *to = a * b, or a + b. False on overflow. */
bool cek__mul(uint64_t a, uint64_t b, uint64_t *to);
bool cek__add(uint64_t a, uint64_t b, uint64_t *to);

/* cek__product - of `count` factors. */
bool cek__product(const uint64_t *factors, uint32_t count, uint64_t *to);

/* cek__strided_extent - elements from the first to behind the last of a strided tensor; all strides are >= 0. */
bool cek__strided_extent(uint32_t rank, const uint64_t *shape, const int64_t *strides, uint64_t *to);

/* How the elements of a strided tensor lie to each other. */
enum {
    CEK__PLACES_OWN,    /* each element has its own place */
    CEK__PLACES_SHARED, /* two elements have the same place */
    CEK__PLACES_UNKNOWN /* the dimensions interlock, and it cannot be told cheaply */
};
uint32_t cek__strided_places(uint32_t rank, const uint64_t *shape, const int64_t *strides);

/* cek__window_out - output positions of a window that slides over one dimension:
 * (in + pad_lo + pad_hi - dilation * (kernel - 1) - 1) / stride + 1. False on overflow or where no position fits.
 * in, kernel, stride and dilation are > 0. */
bool cek__window_out(uint64_t in, uint64_t kernel, uint64_t stride, uint64_t dilation, uint64_t pad_lo, uint64_t pad_hi,
                     uint64_t *to);

#endif
