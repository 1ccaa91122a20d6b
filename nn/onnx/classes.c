/* classes.c - operators that compare scores of classes, axis 1 of [N,C,...], with labels or with each
 * other (see operators.h). */
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "nn/onnx/operators.h"

typedef cek_pointwise_instruction instruction;

/* 0, 1, 2, ... along an axis of x, one element along those behind it. */
static cek_status numbers_along(cek__onnx_call *c, const cek__dims *x, int axis, int *out)
{
    cek_status st;
    const int64_t count = x->size[axis];
    int64_t shape[CEK_RANK_MAX] = { count };
    float *values = NULL;

    if (count > CEK__CALL_EXACT)
        CEK_FAIL(CEK_UNSUPPORTED, "%lld classes", (long long)count);
    CEK_TRY(cek__alloc_array((size_t)count, sizeof *values, &values));
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)i;
    for (int i = 1; i < x->rank - axis; i++)
        shape[i] = 1;
    st = cek__layer_constant(&c->layer, x->rank - axis, shape, values, out);
out:
    free(values);
    return st;
}

/* Of v [N,C,...] (or [C,1,...]) what stands where the labels say: [N,...]. */
static cek_status labelled(cek__onnx_call *c, int v, int numbers, int labels, int *out)
{
    const cek__part part = { .kind = CEK__PART_CHAIN,
                             .inputs = 3,
                             .input = { v, numbers, labels },
                             .chain = { 3,
                                        { { .code = CEK_PW_EQUAL, .a = 1, .b = 2 },
                                          { .code = CEK_PW_CONST },
                                          { .code = CEK_PW_SELECT, .a = 3, .b = 0, .c = 4 } } } };
    cek_status st;
    int chosen;

    CEK_TRY(cek__graph_add(c->graph, &part, &chosen));
    st = cek__reduce(c->graph, chosen, CEK_REDUCE_SUM, 1u << 1, out);
out:
    return st;
}

/* What each row weighs, by its class and whether it is ignored; CEK__NOTHING: all of them 1. */
static cek_status rows_weigh(cek__onnx_call *c, const cek__dims *x, int numbers, int labels, int rows, int *out)
{
    const cek__onnx_attribute *ignored = cek__onnx_attribute_find(c->import->onnx, c->node, "ignore_index");
    const double number = ignored != NULL ? (double)ignored->integer : 0;
    const instruction counts[] = { { .code = CEK_PW_CONST, .imm = number },
                                   { .code = CEK_PW_EQUAL, .a = 0, .b = 1 },
                                   { .code = CEK_PW_NEG, .a = 2 },
                                   { .code = CEK_PW_ADD_IMM, .a = 3, .imm = 1 } };
    cek__dims dims = { .rank = x->rank - 1, .size = { x->size[1], 1, 1, 1, 1, 1, 1, 1 } };
    cek_status st = CEK_OK;
    int weights;

    *out = CEK__NOTHING;
    if (cek__call_has(c, 2)) {
        CEK_TRY(cek__call_flow(c, 2, &weights));
        CEK_TRY(cek__view(c->graph, weights, &dims, &weights));
        CEK_TRY(labelled(c, weights, numbers, labels, out));
    }
    if (ignored == NULL)
        return CEK_OK;
    CEK_TRY(cek__call_chain(c, 1, &rows, 4, counts));
    weights = c->out[0];
    if (*out)
        CEK_TRY(cek__chain(c->graph, CEK_PW_MUL, *out, weights, &weights));
    *out = weights;
out:
    return st;
}

enum { MEAN, SUM, NONE };

static cek_status rows_reduce(cek__onnx_call *c, int loss, int weights)
{
    static const char *const reductions[] = { "mean", "sum", "none", NULL };
    const uint32_t all = (1u << cek__call_dims(c, loss)->rank) - 1;
    cek_status st;
    int how;

    CEK_TRY(cek__call_word(c, "reduction", reductions, &how));
    c->out[0] = loss;
    c->scalar = how != NONE;
    if (how == NONE)
        return CEK_OK;
    if (how == MEAN && !weights)
        return cek__reduce(c->graph, loss, CEK_REDUCE_MEAN, all, &c->out[0]);
    CEK_TRY(cek__sum(c->graph, loss, all, &c->out[0]));
    if (how == MEAN) {
        CEK_TRY(cek__sum(c->graph, weights, all, &weights));
        st = cek__chain(c->graph, CEK_PW_DIV, c->out[0], weights, &c->out[0]);
    }
out:
    return st;
}

cek_status cek__onnx_class_loss(cek__onnx_call *c)
{
    cek_status st;
    cek__dims dims, one;
    int x, labels, rows, numbers, weights;

    CEK_TRY(cek__call_flow(c, 0, &x));
    CEK_TRY(cek__call_flow(c, 1, &rows));
    dims = *cek__call_dims(c, x);
    one = *cek__call_dims(c, rows);
    if (dims.rank < 2 || one.rank != dims.rank - 1)
        CEK_FAIL(CEK_BAD_INPUT, "takes scores [N,C,...] and labels [N,...]");
    if (c->argument)
        CEK_TRY(cek__log_softmax(c->graph, x, 1, &x));
    CEK_TRY(cek__cast(c->graph, rows, CEK_DTYPE_NONE, &rows));
    memmove(one.size + 2, one.size + 1, (size_t)(one.rank - 1) * sizeof *one.size);
    one.size[1] = 1;
    one.rank++;
    CEK_TRY(cek__view(c->graph, rows, &one, &labels));
    CEK_TRY(numbers_along(c, &dims, 1, &numbers));
    CEK_TRY(rows_weigh(c, &dims, numbers, labels, rows, &weights));
    CEK_TRY(labelled(c, x, numbers, labels, &rows));
    CEK_TRY(cek__chain(c->graph, CEK_PW_NEG, rows, CEK__NOTHING, &rows));
    if (weights)
        CEK_TRY(cek__chain(c->graph, CEK_PW_MUL, rows, weights, &rows));
    CEK_TRY(rows_reduce(c, rows, weights));
    c->out[1] = c->argument ? x : CEK__NOTHING;
out:
    return st;
}

/* 1 where the first of the largest elements lies, else 0. */
cek_status cek__onnx_hardmax(cek__onnx_call *c)
{
    cek_status st;
    int x, axis, numbers, first;

    CEK_TRY(cek__call_flow(c, 0, &x));
    CEK_TRY(cek__call_axis(cek__call_int(c, "axis", -1), cek__call_dims(c, x)->rank, &axis));
    CEK_TRY(cek__arg(c->graph, x, CEK_ARG_MAX, axis, &first));
    CEK_TRY(cek__cast(c->graph, first, CEK_DTYPE_NONE, &first));
    CEK_TRY(cek__keep(c->graph, first, x, 1u << axis, &first));
    CEK_TRY(numbers_along(c, cek__call_dims(c, x), axis, &numbers));
    st = cek__chain(c->graph, CEK_PW_EQUAL, first, numbers, &c->out[0]);
out:
    return st;
}
