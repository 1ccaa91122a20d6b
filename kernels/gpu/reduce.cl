/* SPDX-License-Identifier: MIT
 *
 * reduce.cl - reductions of strided tensors; TYPE is the element type. Results and partial ones are f32.
 */
enum { SUM = 1, MEAN = 2, MAXIMUM = 3, MINIMUM = 4, SQUARES = 5, NONFINITE = 6 };

DEVICE_FN cek_f32 reduce_start(cek_u32 function)
{
    return function == MAXIMUM ? -INFINITY : function == MINIMUM ? INFINITY : 0.0f;
}

/* A result with one more value; `raw`: an element, not a partial result. */
DEVICE_FN cek_f32 reduce_add(cek_u32 function, cek_f32 result, cek_f32 x, cek_u32 raw)
{
    if (function == MAXIMUM)
        return x > result || x != x ? x : result;
    if (function == MINIMUM)
        return x < result || x != x ? x : result;
    if (raw && function == SQUARES)
        return result + x * x;
    if (raw && function == NONFINITE)
        return result + ((AS_U32(x) & 0x7f800000u) == 0x7f800000u ? 1.0f : 0.0f);
    return result + x;
}

/* Chunk c of a result takes the elements c, c + chunks, c + 2 chunks, ... */
KERNEL void reduce_chunks(GLOBAL char *x, GLOBAL char *partial, GLOBAL char *y, const cek_k_reduce a)
{
    cek_u64 item = GLOBAL_ID();
    if (item >= a.outputs * a.chunks)
        return;
    cek_u64 output = a.chunk_first ? item / a.chunks : item % a.outputs;
    cek_u64 chunk = a.chunk_first ? item % a.chunks : item / a.outputs;
    cek_u64 first = place_of(output, a.kept_rank, a.kept_shape, a.kept_stride);
    cek_f32 result = reduce_start(a.function);
    if (a.reduced_rank <= 1)
        for (cek_u64 i = chunk; i < a.length; i += a.chunks)
            result = reduce_add(a.function, result, LOAD(TYPE, AT(x, 0), first + i * a.reduced_stride[0]), 1);
    else
        for (cek_u64 i = chunk; i < a.length; i += a.chunks)
            result = reduce_add(a.function, result, LOAD(TYPE, AT(x, 0), first + place_of(i, a.reduced_rank,
                                a.reduced_shape, a.reduced_stride)), 1);
    ((GLOBAL cek_f32 *)AT(partial, 1))[chunk * a.outputs + output] = result;
}

/* Where neighbouring results are neighbours in memory and one dimension is summed: LANES results per work-item, row by
 * row. */
KERNEL void reduce_columns(GLOBAL char *x, GLOBAL char *partial, GLOBAL char *y, const cek_k_reduce a)
{
    if (GLOBAL_ID() >= (a.outputs + LANES - 1) / LANES * a.chunks)
        return;
    cek_u64 blocks = (a.outputs + LANES - 1) / LANES;
    cek_u64 first = GLOBAL_ID() % blocks * LANES, chunk = GLOBAL_ID() / blocks;
    cek_u64 lanes = a.outputs - first < LANES ? a.outputs - first : LANES;
    cek_u64 rows = (a.length + a.chunks - 1) / a.chunks, row = chunk * rows;
    cek_u64 end = row + rows < a.length ? row + rows : a.length;
    cek_f32 result[LANES];
    for (int l = 0; l < LANES; l++)
        result[l] = reduce_start(a.function);
    if (lanes == LANES)
        for (; row < end; row++)
            for (int l = 0; l < LANES; l++)
                result[l] = reduce_add(a.function, result[l],
                                       LOAD(TYPE, AT(x, 0), row * a.reduced_stride[0] + first + l), 1);
    for (; row < end; row++)
        for (cek_u64 l = 0; l < lanes; l++)
            result[l] = reduce_add(a.function, result[l],
                                   LOAD(TYPE, AT(x, 0), row * a.reduced_stride[0] + first + l), 1);
    for (cek_u64 l = 0; l < lanes; l++)
        ((GLOBAL cek_f32 *)AT(partial, 1))[chunk * a.outputs + first + l] = result[l];
}

KERNEL void reduce_finish(GLOBAL char *x, GLOBAL char *partial, GLOBAL char *y, const cek_k_reduce a)
{
    cek_u64 output = GLOBAL_ID();
    GLOBAL cek_f32 *to = (GLOBAL cek_f32 *)AT(y, 2);
    if (output >= a.outputs)
        return;
    cek_f32 result = reduce_start(a.function);
    for (cek_u64 chunk = 0; chunk < a.chunks; chunk++)
        result = reduce_add(a.function, result,
                            ((GLOBAL const cek_f32 *)AT(partial, 1))[chunk * a.outputs + output], 0);
    if (a.function == MEAN)
        result *= a.scale;
    to[output] = a.accumulate ? to[output] + result : result;
}
