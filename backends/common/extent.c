/* SPDX-License-Identifier: MIT
 * extent.c - see extent.h. */
#include "backends/common/extent.h"

uint32_t cek__type_bytes(cek_dtype type)
{
    switch (type) {
    case CEK_F64: return 8;
    case CEK_F32:
    case CEK_I32: return 4;
    case CEK_F16:
    case CEK_BF16: return 2;
    case CEK_U8: return 1;
    default: return 0;
    }
}

cek_dtype cek__type_sum(cek_dtype type)
{
    return type == CEK_F64 ? CEK_F64 : CEK_F32;
}

const char *cek__type_name(cek_dtype type)
{
    static const char *const names[] = { "none", "f32", "f16", "bf16", "f64", "u8", "i32" };
    return type < sizeof names / sizeof *names ? names[type] : "unknown type";
}

bool cek__mul(uint64_t a, uint64_t b, uint64_t *to)
{
    return !__builtin_mul_overflow(a, b, to) && *to <= INT64_MAX;
}

bool cek__add(uint64_t a, uint64_t b, uint64_t *to)
{
    return !__builtin_add_overflow(a, b, to) && *to <= INT64_MAX;
}

bool cek__product(const uint64_t *factors, uint32_t count, uint64_t *to)
{
    *to = 1;
    for (uint32_t i = 0; i < count; i++)
        if (!cek__mul(*to, factors[i], to))
            return false;
    return true;
}

bool cek__strided_extent(uint32_t rank, const uint64_t *shape, const int64_t *strides, uint64_t *to)
{
    *to = 1;
    for (uint32_t i = 0; i < rank; i++) {
        uint64_t span;
        if (!shape[i]) {
            *to = 0;
            return true;
        }
        if (!cek__mul(shape[i] - 1, (uint64_t)strides[i], &span) || !cek__add(*to, span, to))
            return false;
    }
    return true;
}

/* Whether the `count` dimensions in `order` (nested, smallest stride first) reach the place `at`. */
static bool place_reached(uint64_t at, const uint32_t *order, uint32_t count, const uint64_t *shape,
                          const int64_t *strides)
{
    while (count-- > 0 && at) {
        uint64_t stride = (uint64_t)strides[order[count]], most = shape[order[count]] - 1;
        at -= (at / stride < most ? at / stride : most) * stride;
    }
    return !at;
}

uint32_t cek__strided_places(uint32_t rank, const uint64_t *shape, const int64_t *strides)
{
    /* Take the dimensions from the smallest stride up: each must step over all that the ones before it reach. */
    uint32_t order[CEK_RANK_MAX], count = 0, taken = 0;
    uint64_t reach = 1;
    for (;;) {
        uint32_t next = rank;
        for (uint32_t i = 0; i < rank; i++)
            if (!(taken >> i & 1) && shape[i] > 1 && (next == rank || strides[i] < strides[next]))
                next = i;
        if (next == rank)
            return CEK__PLACES_OWN;
        uint64_t stride = (uint64_t)strides[next], span;
        if (!stride)
            return CEK__PLACES_SHARED;
        if (stride < reach)
            return place_reached(stride, order, count, shape, strides) ? CEK__PLACES_SHARED : CEK__PLACES_UNKNOWN;
        if (!cek__mul(shape[next] - 1, stride, &span) || !cek__add(reach, span, &reach))
            return CEK__PLACES_UNKNOWN;
        taken |= 1u << next;
        order[count++] = next;
    }
}

bool cek__window_out(uint64_t in, uint64_t kernel, uint64_t stride, uint64_t dilation, uint64_t pad_lo, uint64_t pad_hi,
                     uint64_t *to)
{
    uint64_t padded, reach;
    if (!cek__add(in, pad_lo, &padded) || !cek__add(padded, pad_hi, &padded) ||
        !cek__mul(dilation, kernel - 1, &reach) || !cek__add(reach, 1, &reach) || padded < reach)
        return false;
    *to = (padded - reach) / stride + 1;
    return true;
}
