/* SPDX-License-Identifier: MIT
 *
 * reduce.cl - reductions of strided tensors, to f32. Where a result is summed in pieces, those are reduced once more.
 *
 * TYPE: element type. FUNCTION: by its number in plugin.h.
 */
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

/* Elements i, i + lanes, ... before `end`, of which PLACE(i) is the place: IN_FLIGHT sums side by side. */
#define REDUCE(PLACE)                                                                              \
    for (; i + (IN_FLIGHT - 1) * step < end; i += IN_FLIGHT * step) {                              \
        cek_f32 v[IN_FLIGHT];                                                                      \
        for (cek_u32 u = 0; u < IN_FLIGHT; u++)                                                    \
            v[u] = LOAD(TYPE, AT(x, 0), first + PLACE(i + u * step));                              \
        for (cek_u32 u = 0; u < IN_FLIGHT; u++)                                                    \
            sums[u] = reduce_add(sums[u], reduce_term(v[u]));                                      \
    }                                                                                              \
    for (cek_u32 u = 0; u < IN_FLIGHT; u++)                                                        \
        if (i + u * step < end)                                                                    \
            sums[u] = reduce_add(sums[u], reduce_term(LOAD(TYPE, AT(x, 0), first + PLACE(i + u * step))));
#define PLACE_ALONG(i) (i) * a.reduced_stride[0]
#define PLACE_AMONG(i) place_in((cek_u32)(i), a.reduced_rank, &a.reduced, a.reduced_stride)

/* A group: `results` neighbouring results, of each a piece, by `lanes` work-items. */
KERNEL void reduce(GLOBAL char *RESTRICT x, GLOBAL char *RESTRICT y, const cek_k_reduce a)
{
    HELD(cek_f32, held)
    const cek_u32 lane = ITEM_ID(0) >> a.lane_shift & (a.lanes - 1);
    const cek_u64 output = GROUP_NUMBER() * a.results + (ITEM_ID(0) >> a.result_shift & (a.results - 1));
    const cek_u64 begin = GROUP_ID(2) * a.piece, step = a.lanes;
    cek_u64 end = begin + a.piece < a.length ? begin + a.piece : a.length, i = begin + lane;
    cek_u64 first = output * a.kept_stride[0];
    cek_f32 sums[IN_FLIGHT], result;
    for (cek_u32 u = 0; u < IN_FLIGHT; u++)
        sums[u] = reduce_start();
    if (output >= a.outputs)
        end = 0;
    if (a.kept_rank > 1)
        first = place_in((cek_u32)output, a.kept_rank, &a.kept, a.kept_stride);
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
        result *= a.scale;
        *to = a.accumulate ? *to + result : result;
    }
}

#ifdef CEK_CPU
/* Where neighbouring results are neighbours in memory and one dimension is summed: LANES results per work-item, row by
 * row. */
KERNEL void reduce_columns(GLOBAL char *RESTRICT x, GLOBAL char *RESTRICT y, const cek_k_reduce a)
{
    cek_u64 first = GROUP_NUMBER() * LANES, row = GROUP_ID(2) * a.piece;
    cek_u64 end = row + a.piece < a.length ? row + a.piece : a.length;
    cek_f32 result[LANES];
    if (first >= a.outputs)
        return;
    cek_u64 lanes = a.outputs - first < LANES ? a.outputs - first : LANES;
    for (int l = 0; l < LANES; l++)
        result[l] = reduce_start();
    if (lanes == LANES)
        for (; row < end; row++)
            for (int l = 0; l < LANES; l++)
                result[l] = reduce_add(result[l],
                                       reduce_term(LOAD(TYPE, AT(x, 0), row * a.reduced_stride[0] + first + l)));
    for (; row < end; row++)
        for (cek_u64 l = 0; l < lanes; l++)
            result[l] = reduce_add(result[l],
                                   reduce_term(LOAD(TYPE, AT(x, 0), row * a.reduced_stride[0] + first + l)));
    for (cek_u64 l = 0; l < lanes; l++)
        ((GLOBAL cek_f32 *)AT(y, 1))[GROUP_ID(2) * a.outputs + first + l] = result[l];
}
#endif
