/* parts_rows.c - what whole numbers name, and arrays and random numbers, which come of nothing: as nodes (see parts.h
 * of the public headers). */
#include <math.h>
#include <string.h>

#include "nn/layers/parts_inside.h"

/* ---- what comes of nothing ---- */

int cek_part_array(cek_model *model, int rank, const int64_t *shape, const float *values)
{
    cek_status st;
    cek__layer l;
    cek__dims dims;
    int y = CEK__NOTHING;

    CEK_TRY(begin(&l, model, "array", 0, NULL));
    if (!values)
        CEK_FAIL(CEK_INVALID, "values is NULL");
    CEK_TRY(dims_take(rank, shape, &dims));
    if (rank < 1 || dims.samples)
        CEK_FAIL(CEK_INVALID, "a shape of rank %d, it is 1 to %d, without CEK_SAMPLES", rank, CEK_RANK_MAX);
    CEK_TRY(cek__layer_constant(&l, rank, dims.size, values, &y));
out:
    return end(model, &l, st, y);
}

/* Where nothing is trained there is no step whose numbers they could be: what they are in the mean. */
static cek_status unless_trained(cek__graph *graph, int random, double mean, int *out)
{
    cek_status st;
    cek__part phase = { .kind = CEK__PART_PHASE, .inputs = 2, .input = { random } };
    const cek__dims dims = graph->flows[random].dims;

    CEK_TRY(cek__constant(graph, mean, &dims, &phase.input[1]));
    st = cek__graph_add(graph, &phase, out);
out:
    return st;
}

int cek_part_random(cek_model *model, int rank, const int64_t *shape, uint32_t distribution, double a, double b)
{
    cek_status st;
    cek__layer l;
    cek__part part = { .kind = CEK__PART_RANDOM, .random = { .a = a, .b = b, .distribution = distribution } };
    cek__dims dims;
    int y = CEK__NOTHING;

    CEK_TRY(begin(&l, model, "random", 0, NULL));
    if (distribution != CEK_RANDOM_UNIFORM && distribution != CEK_RANDOM_NORMAL)
        CEK_FAIL(CEK_INVALID, "unknown distribution %u", distribution);
    if (!(b - a < INFINITY) || (distribution == CEK_RANDOM_UNIFORM ? !(a <= b) : !(b >= 0)))
        CEK_FAIL(CEK_INVALID, "%s %g and %g",
                 distribution == CEK_RANDOM_UNIFORM ? "low and high" : "mean and deviation", a, b);
    CEK_TRY(dims_take(rank, shape, &dims));
    if (dims.samples || rank + 1 > CEK_RANK_MAX)
        CEK_FAIL(CEK_INVALID, "the shape is of one sample, without CEK_SAMPLES");
    part.dims = (cek__dims){ .rank = rank + 1, .samples = 1, .size = { 1 } };
    memcpy(part.dims.size + 1, dims.size, (size_t)rank * sizeof *dims.size);
    part.random.stream = (uint32_t)l.graph->node;
    CEK_TRY(cek__graph_add(l.graph, &part, &y));
    CEK_TRY(unless_trained(l.graph, y, distribution == CEK_RANDOM_UNIFORM ? (a + b) / 2 : a, &y));
out:
    return end(model, &l, st, y);
}

/* ---- what whole numbers name ---- */

int cek_part_gather(cek_model *model, int table, int index, int batch)
{
    cek_status st;
    cek__layer l;
    int y = CEK__NOTHING;

    CEK_TRY(begin(&l, model, "gather", 2, (int[]){ table, index }));
    CEK_TRY(cek__gather(l.graph, l.x[0], l.x[1], batch, &y));
out:
    return end(model, &l, st, y);
}

int cek_part_arg(cek_model *model, int x, uint32_t function, int axis)
{
    cek_status st;
    cek__layer l;
    int y = CEK__NOTHING;

    CEK_TRY(begin(&l, model, "arg", 1, &x));
    if (function != CEK_ARG_MAX && function != CEK_ARG_MIN)
        CEK_FAIL(CEK_INVALID, "unknown function %u", function);
    CEK_TRY(cek__arg(l.graph, l.x[0], function, axis, &y));
out:
    return end(model, &l, st, y);
}
