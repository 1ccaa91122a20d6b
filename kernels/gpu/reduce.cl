/* SPDX-License-Identifier: MIT
 *
 * reduce.cl - reductions of strided tensors, to f32. Where a result is summed in pieces, those are reduced once more.
 *
 * TYPE: element type. FUNCTION: by its number in plugin.h. TERMS: with a second operand, a centre or a batch block, as the
 * arguments say.
 * ARG: instead, where the largest (1) or smallest (2) element is.
 */
#ifndef ARG
enum { SUM = 1, MAXIMUM = 3, MINIMUM = 4, SQUARES = 5, NONFINITE = 6 };

DEVICE_FN cek_f32 reduce_start(void)
{
    return FUNCTION == MAXIMUM ? -INFINITY : FUNCTION == MINIMUM ? INFINITY : 0.0f;
}

/* What an element counts for, and a result with one more of that. */
DEVICE_FN cek_f32 reduce_term(cek_f32 x)
{
    if (FUNCTION == SQUARES)
        return x * x;
    if (FUNCTION == NONFINITE)
        return (AS_U32(x) & 0x7f800000u) == 0x7f800000u ? 1.0f : 0.0f;
    return x;
}
DEVICE_FN cek_f32 reduce_add(cek_f32 result, cek_f32 x)
{
    if (FUNCTION == MAXIMUM)
        return x > result || x != x ? x : result;
    if (FUNCTION == MINIMUM)
        return x < result || x != x ? x : result;
    return result + x;
}

#endif

/* Where element `i` of more than one dimension lies. */
DEVICE_FN cek_u64 place_in(cek_u32 i, cek_u32 rank, const cek_k_shape *shape, const cek_u64 *stride)
{
    cek_u64 place = 0;
    for (cek_u32 d = rank - 1; d > 0; d--) {
        const cek_u32 next = QUOTIENT(i, *shape, d);
        place += (i - next * shape->size[d]) * stride[d];
        i = next;
    }
    return place + i * stride[0];
}

#ifndef ARG
#ifdef TERMS
#define OPERANDS                                                                                   \
    GLOBAL char *RESTRICT x, GLOBAL char *RESTRICT y, GLOBAL char *RESTRICT x2, GLOBAL char *RESTRICT centre, \
        GLOBAL char *RESTRICT batch
/* Rows of axis 0 that count: word 2 of a cek_batch_block says of how many samples. */
DEVICE_FN cek_u64 rows_counted(const cek_k_reduce *a, GLOBAL const char *batch)
{
    const cek_u64 valid = a->terms & CEK_K_TERMS_BATCH ? ((GLOBAL const cek_u32 *)batch)[2] : a->samples;
    return valid < a->samples ? valid * a->rows_per_sample : a->rows;
}
/* What counts lies in front, since axis 0 comes first: so many terms of each output, or so many outputs. A mean is
 * divided, not multiplied: that of equal elements is exact where their sum is. */
#define FIND_COUNTED                                                                               \
    const cek_u64 rows = rows_counted(&a, AT(batch, 4));                                           \
    const cek_u64 terms = a.terms & CEK_K_TERMS_ROWS ? rows * a.row_count : a.length;               \
    const cek_u64 outputs = a.terms & CEK_K_TERMS_OUTPUTS ? rows * a.row_count : a.outputs;         \
    const cek_f32 number = a.terms & CEK_K_TERMS_MEAN && rows ? (cek_f32)(rows * a.row_count) : a.number;
/* An element, and the term that it and its partner make. */
#define ELEMENT(p, q) element(&a, AT(x, 0), AT(x2, 2), middle, p, q)
DEVICE_FN cek_f32 element(const cek_k_reduce *a, GLOBAL const char *x, GLOBAL const char *x2, cek_f32 middle, cek_u64 p,
                          cek_u64 q)
{
    const cek_f32 v = LOAD(TYPE, x, p) - middle;
    return a->terms & CEK_K_TERMS_SECOND ? v * LOAD(TYPE, x2, q) : v;
}
#define MIDDLE(output) (a.terms & CEK_K_TERMS_CENTRE ? ((GLOBAL const cek_f32 *)AT(centre, 3))[output] : 0.0f)
#else
#define OPERANDS GLOBAL char *RESTRICT x, GLOBAL char *RESTRICT y
#define FIND_COUNTED                                                                               \
    const cek_u64 terms = a.length, outputs = a.outputs;                                           \
    const cek_f32 number = a.number;
#define ELEMENT(p, q) LOAD(TYPE, AT(x, 0), p)
#endif

/* Elements i, i + lanes, ... before `end`, of which PLACE(i) is the place: IN_FLIGHT sums side by side. */
#define REDUCE(PLACE)                                                                              \
    for (; i + (IN_FLIGHT - 1) * step < end; i += IN_FLIGHT * step) {                              \
        cek_f32 v[IN_FLIGHT];                                                                      \
        for (cek_u32 u = 0; u < IN_FLIGHT; u++)                                                    \
            v[u] = ELEMENT(first + PLACE(i + u * step, reduced_stride), second + PLACE(i + u * step, second_reduced)); \
        for (cek_u32 u = 0; u < IN_FLIGHT; u++)                                                    \
            sums[u] = reduce_add(sums[u], reduce_term(v[u]));                                      \
    }                                                                                              \
    for (cek_u32 u = 0; u < IN_FLIGHT; u++)                                                        \
        if (i + u * step < end)                                                                    \
            sums[u] = reduce_add(sums[u], reduce_term(ELEMENT(first + PLACE(i + u * step, reduced_stride),          \
                                                              second + PLACE(i + u * step, second_reduced))));
#define PLACE_ALONG(i, stride) (i) * a.stride[0]
#define PLACE_AMONG(i, stride) place_in((cek_u32)(i), a.reduced_rank, &a.reduced, a.stride)

/* A group: `results` neighbouring results, of each a piece, by `lanes` work-items. */
KERNEL void reduce(OPERANDS, const cek_k_reduce a)
{
    HELD(cek_f32, held)
    const cek_u32 lane = ITEM_ID(0) >> a.lane_shift & (a.lanes - 1);
    const cek_u64 output = GROUP_NUMBER() * a.results + (ITEM_ID(0) >> a.result_shift & (a.results - 1));
    FIND_COUNTED
    const cek_u64 begin = GROUP_ID(2) * a.piece, step = a.lanes;
    cek_u64 end = begin + a.piece < terms ? begin + a.piece : terms, i = begin + lane;
    cek_u64 first = output * a.kept_stride[0];
#ifdef TERMS
    cek_u64 second = output * a.second_kept[0];
    const cek_f32 middle = output < a.outputs ? MIDDLE(output) : 0.0f;
#endif
    cek_f32 sums[IN_FLIGHT], result;
    for (cek_u32 u = 0; u < IN_FLIGHT; u++)
        sums[u] = reduce_start();
    if (output >= outputs)
        end = 0;
    if (a.kept_rank > 1) {
        first = place_in((cek_u32)output, a.kept_rank, &a.kept, a.kept_stride);
#ifdef TERMS
        second = place_in((cek_u32)output, a.kept_rank, &a.kept, a.second_kept);
#endif
    }
    if (a.reduced_rank <= 1) {
        REDUCE(PLACE_ALONG)
    } else {
        REDUCE(PLACE_AMONG)
    }
    for (cek_u32 apart = IN_FLIGHT / 2; apart; apart /= 2)
        for (cek_u32 u = 0; u < apart; u++)
            sums[u] = reduce_add(sums[u], sums[u + apart]);
    result = sums[0];
    FOLD(cek_f32, held, result, lane, a.lanes, 1u << a.lane_shift, reduce_add(result, other))
    if (!lane && output < a.outputs) {
        GLOBAL cek_f32 *to = (GLOBAL cek_f32 *)AT(y, 1) + GROUP_ID(2) * a.outputs + output;
        result /= number;
        *to = a.accumulate ? *to + result : result;
    }
}

#ifdef CEK_CPU
/* Where neighbouring results are neighbours in memory and one dimension is summed: LANES results per work-item, row by
 * row. */
KERNEL void reduce_columns(OPERANDS, const cek_k_reduce a)
{
    FIND_COUNTED
    cek_u64 first = GROUP_NUMBER() * LANES, row = GROUP_ID(2) * a.piece;
    cek_u64 end = row + a.piece < terms ? row + a.piece : terms;
    cek_f32 result[LANES];
    if (first >= outputs)
        return;
    cek_u64 lanes = outputs - first < LANES ? outputs - first : LANES;
    for (int l = 0; l < LANES; l++)
        result[l] = reduce_start();
#ifdef TERMS
    cek_f32 middles[LANES];
    for (cek_u64 l = 0; l < LANES; l++)
        middles[l] = l < lanes ? MIDDLE(first + l) : 0.0f;
#define middle middles[l]
#endif
#define COLUMN_TERM(l) \
    reduce_term(ELEMENT(row * a.reduced_stride[0] + first + l, row * a.second_reduced[0] + first + l))
    if (lanes == LANES)
        for (; row < end; row++)
            for (int l = 0; l < LANES; l++)
                result[l] = reduce_add(result[l], COLUMN_TERM(l));
    for (; row < end; row++)
        for (cek_u64 l = 0; l < lanes; l++)
            result[l] = reduce_add(result[l], COLUMN_TERM(l));
#ifdef TERMS
#undef middle
#endif
    for (cek_u64 l = 0; l < lanes; l++) {
        GLOBAL cek_f32 *to = (GLOBAL cek_f32 *)AT(y, 1) + GROUP_ID(2) * a.outputs + first + l;
        *to = a.accumulate ? *to + result[l] / number : result[l] / number;
    }
}
#endif
#else /* ARG */

/* A number whose order is that of the elements, the one wanted last; NaN is behind all others. Zeros are equal. */
DEVICE_FN cek_u32 key_of(cek_u32 order)
{
    return ARG == 1 ? order : ~order;
}
DEVICE_FN cek_u32 key_real(cek_u32 bits)
{
    const cek_u32 size = bits & 0x7fffffffu;
    if (size > 0x7f800000u)
        return 0xffffffffu;
    return key_of(!size || size == bits ? size | 0x80000000u : ~bits);
}
/* An element in 32 bits, of which the key is made when it is there: loads wait for nothing. */
#define BITS_f32(p, i) AS_U32(LOAD(f32, p, i))
#define BITS_f16(p, i) AS_U32(LOAD(f16, p, i))
#define BITS_bf16(p, i) AS_U32(LOAD(bf16, p, i))
#define BITS_u8(p, i) ((GLOBAL const cek_u8 *)(p))[i]
#define BITS_i32(p, i) (cek_u32)((GLOBAL const cek_i32 *)(p))[i]
#define KEY_f32(bits) key_real(bits)
#define KEY_f16(bits) key_real(bits)
#define KEY_bf16(bits) key_real(bits)
#define KEY_u8(bits) key_of(bits)
#define KEY_i32(bits) key_of((bits) ^ 0x80000000u)

/* A key with its element's place turned round, so that of equal keys the first one's is the largest. */
DEVICE_FN cek_u64 ranked(cek_u32 key, cek_u64 i)
{
    return (cek_u64)key << 32 | (~(cek_u32)i & 0xffffffffu);
}

/* A group: `results` neighbouring results, each by `lanes` work-items. */
KERNEL void arg(GLOBAL char *RESTRICT x, GLOBAL char *RESTRICT y, const cek_k_reduce a)
{
    HELD(cek_u64, held)
    const cek_u32 lane = ITEM_ID(0) >> a.lane_shift & (a.lanes - 1);
    const cek_u64 output = GROUP_NUMBER() * a.results + (ITEM_ID(0) >> a.result_shift & (a.results - 1));
    const cek_u64 end = output < a.outputs ? a.length : 0, step = a.lanes;
    cek_u64 first = output * a.kept_stride[0], best = 0;
    if (a.kept_rank > 1)
        first = place_in((cek_u32)output, a.kept_rank, &a.kept, a.kept_stride);
    for (cek_u64 i = lane; i < end; i += IN_FLIGHT * step) {
        cek_u32 bits[IN_FLIGHT];
        for (cek_u32 u = 0; u < IN_FLIGHT; u++)
            bits[u] = i + u * step < end
                          ? CEK_PASTE(BITS_, TYPE)(AT(x, 0), first + (i + u * step) * a.reduced_stride[0]) : 0;
        for (cek_u32 u = 0; u < IN_FLIGHT; u++) {
            const cek_u64 next = i + u * step < end ? ranked(CEK_PASTE(KEY_, TYPE)(bits[u]), i + u * step) : 0;
            best = next > best ? next : best;
        }
    }
    FOLD(cek_u64, held, best, lane, a.lanes, 1u << a.lane_shift, other > best ? other : best)
    if (!lane && output < a.outputs)
        ((GLOBAL cek_i32 *)AT(y, 1))[output] = (cek_i32)~(cek_u32)best;
}
#endif
