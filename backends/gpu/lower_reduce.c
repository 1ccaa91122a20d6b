/* SPDX-License-Identifier: MIT
 * lower_reduce.c - reduce, for other operations too, and arg. */
#include <string.h>

#include "backends/gpu/lower.h"

#define TERMS_LEAST 16     /* for a work-item of a piece: two of its IN_FLIGHT loads, one after the other */
#define TERMS_CPU 4096     /* there, what is worth a result of its own, */
#define ROWS_CPU 256       /* or a row of such, */
#define PIECES_CPU 64      /* of which so many at most: each takes whole rows */
#define GROUPS_ENOUGH 1024 /* of 256 work-items: 128 units of 2,048. Never by the device: sums have one order on all */
#define RESULTS_WAVE 32    /* neighbouring results of a group that read whole lines of memory, */
#define RESULTS_LEAST 8    /* or whole sectors, where all of it is in a cache */

static uint64_t shape_count(uint32_t rank, const uint64_t *shape)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < rank; i++)
        count *= shape[i];
    return count;
}

/* One kernel: a result, or a piece of each, per `lanes` work-items. */
typedef struct stage {
    cek_k_reduce a;
    uint64_t pieces, groups;
    bool columns;
} stage;

/* On a CPU: neighbouring results are neighbours in memory, and one dimension is summed. */
static bool is_columns(const cek_dev *dev, const cek_k_reduce *a)
{
    return dev->traits.vector_width && a->kept_rank == 1 && a->kept_stride[0] == 1 && a->reduced_rank == 1 &&
           a->outputs >= 8 && (!(a->terms & CEK_K_TERMS_SECOND) || a->second_kept[0] == 1) &&
           !(a->terms & CEK_K_TERMS_OUTPUTS);
}

/* Whether the dimensions that are kept, or reduced, can be told apart by numbers below 2^31. Their order stays: what
 * lies in the first so many rows has the first numbers. */
static bool dims_collect(const cek__gpu_reduction *r, bool reduced, uint64_t *count, cek_u32 *rank, cek_k_shape *shape,
                         cek_u64 *stride, cek_u64 *second)
{
    uint64_t sizes[CEK_RANK_MAX] = { 0 }, strides[2][CEK_RANK_MAX] = { { 0 } };
    uint32_t dims = 0;
    for (uint32_t d = 0; d < r->rank; d++)
        if ((r->axes >> d & 1) == reduced) {
            strides[0][dims] = (uint64_t)r->strides[d];
            strides[1][dims] = (uint64_t)(r->terms ? r->terms->second_strides : r->strides)[d];
            sizes[dims++] = r->shape[d];
        }
    *count = shape_count(dims, sizes);
    *rank = cek__gpu_collapse(dims, sizes, strides, 2);
    memcpy(stride, strides[0], sizeof strides[0]);
    memcpy(second, strides[1], sizeof strides[1]);
    return *rank <= 1 || cek__gpu_shape(*rank, sizes, shape);
}

static bool dims_all(cek_op *op, const cek__gpu_reduction *r, cek_k_reduce *a)
{
    if (dims_collect(r, false, &a->outputs, &a->kept_rank, &a->kept, a->kept_stride, a->second_kept) &&
        dims_collect(r, true, &a->length, &a->reduced_rank, &a->reduced, a->reduced_stride, a->second_reduced))
        return true;
    op->failure = cek__host_fail(&op->dev->instance->host, CEK_UNSUPPORTED,
                                 "%s: dimensions with gaps between them have more than 2^31 elements",
                                 cek__kind_name(op->request.desc.op.kind));
    return false;
}

/* How the work-items of a group are shared out: along what is contiguous. */
static void group_share(cek_k_reduce *a, uint32_t group, uint32_t most)
{
    const bool rows = a->reduced_stride[a->reduced_rank - 1] < a->kept_stride[a->kept_rank - 1] || a->outputs == 1;
    if (rows) {
        a->lanes = cek__gpu_row_items(a->length, group);
    } else {
        const uint32_t least = cek__gpu_power(a->outputs, group < most ? group : most);
        a->lanes = cek__gpu_power((a->length + TERMS_LEAST / 2 - 1) / (TERMS_LEAST / 2), group / least);
    }
    a->results = group / a->lanes;
    a->lane_shift = rows ? 0 : (cek_u32)__builtin_ctz(a->results);
    a->result_shift = rows ? (cek_u32)__builtin_ctz(a->lanes) : 0;
}

/* `group`: work-items of a group. */
static void stage_plan(const cek_dev *dev, const cek__gpu_reduction *r, uint32_t group, stage *s)
{
    cek_k_reduce *a = &s->a;
    group_share(a, group, r->last ? RESULTS_LEAST : RESULTS_WAVE);
    if (s->columns)
        a->results = cek__gpu_lanes(dev);
    s->groups = (a->outputs + a->results - 1) / a->results;
    const bool cpu = dev->traits.vector_width;
    const uint64_t least = s->columns ? ROWS_CPU : cpu ? TERMS_CPU : (uint64_t)a->lanes * TERMS_LEAST;
    const uint64_t most = r->last ? 1 : a->length / least;
    const uint64_t enough = s->columns ? PIECES_CPU : (GROUPS_ENOUGH + s->groups - 1) / s->groups;
    s->pieces = most < 1 ? 1 : most < enough ? most : enough;
    a->piece = (a->length + s->pieces - 1) / s->pieces;
    if (a->length > 0) /* of nothing there is one piece, too: a sum is 0 then */
        s->pieces = (a->length + a->piece - 1) / a->piece;
}

_Static_assert(sizeof(cek_k_reduce) + 5 * sizeof(void *) <= sizeof(cek_k_strided) + CEK_K_STRIDED * sizeof(void *),
               "a list of arguments is longer than cek__gpu_arguments_most");

/* What of the terms the arguments say. The last stage adds pieces: of the mask it knows what a mean
 * divides by alone. */
static void terms_fill(const cek__gpu_reduction *r, cek_k_reduce *a)
{
    const cek__gpu_terms *t = r->terms;
    if (!t)
        return;
    a->terms = t->rows_are | (t->second.slot != CEK__GPU_NOTHING ? CEK_K_TERMS_SECOND : 0) |
               (t->centre.slot != CEK__GPU_NOTHING ? CEK_K_TERMS_CENTRE : 0) |
               (t->batch.slot != CEK__GPU_NOTHING ? CEK_K_TERMS_BATCH : 0);
    a->rows = t->rows;
    a->rows_per_sample = t->rows_per_sample;
    a->samples = t->rows_are ? (t->rows + t->rows_per_sample - 1) / t->rows_per_sample : 0;
    a->row_count = t->row_count;
}

/* The reduction of the pieces of r's results, which begin at the workspace's `from`. */
static void pieces_describe(const cek__gpu_reduction *r, const stage *s, cek__gpu_terms *terms, cek__gpu_reduction *out)
{
    const bool extreme = r->function == CEK_REDUCE_MAX || r->function == CEK_REDUCE_MIN;
    *out = (cek__gpu_reduction){ .to = r->to,
                                 .type = CEK_F32,
                                 .function = extreme ? r->function : CEK_REDUCE_SUM,
                                 .accumulate = r->accumulate,
                                 .last = true,
                                 .rank = 2,
                                 .axes = 1,
                                 .shape = { s->pieces, s->a.outputs },
                                 .strides = { (int64_t)s->a.outputs, 1 },
                                 .number = r->number };
    if (!r->terms || !(r->terms->rows_are & CEK_K_TERMS_MEAN))
        return;
    *terms = *r->terms;
    terms->second.slot = terms->centre.slot = CEK__GPU_NOTHING;
    memcpy(terms->second_strides, out->strides, sizeof terms->second_strides);
    terms->rows_are = CEK_K_TERMS_MEAN;
    out->terms = terms;
}

void cek__gpu_reduce_add(cek_op *op, const cek__gpu_reduction *r)
{
    const cek__gpu_place nothing = { CEK__GPU_NOTHING, 0 };
    stage s = { .a = { .accumulate = r->accumulate, .number = r->number == 0 ? 1 : r->number } };
    char defines[CEK__GPU_DEFINES];
    uint32_t group;
    terms_fill(r, &s.a);
    if (!dims_all(op, r, &s.a))
        return;
    s.columns = is_columns(op->dev, &s.a);
    cek__gpu_defines(op->dev, defines, "#define TYPE %s\n#define FUNCTION %u\n%s", cek__gpu_type(r->type),
                     r->function == CEK_REDUCE_MEAN ? CEK_REDUCE_SUM : r->function,
                     r->terms ? "#define TERMS 1\n" : "");
    cek__gpu_step *step = cek__gpu_step_load(op, "reduce.cl", defines, s.columns ? "reduce_columns" : "reduce", &group);
    stage_plan(op->dev, r, group, &s);
    const bool whole = s.pieces == 1;
    cek__gpu_reduction rest;
    cek__gpu_terms terms;
    pieces_describe(r, &s, &terms, &rest);
    if (!whole) {
        rest.from = cek__gpu_workspace(op, s.pieces * s.a.outputs * sizeof(float));
        s.a.accumulate = 0;
        s.a.number = 1;
        s.a.terms &= ~CEK_K_TERMS_MEAN;
    }
    const cek__gpu_place buffers[] = { r->from, whole ? r->to : rest.from, r->terms ? r->terms->second : nothing,
                                       r->terms ? r->terms->centre : nothing, r->terms ? r->terms->batch : nothing };
    cek__gpu_step_groups(op, step, s.groups, s.columns ? 1 : s.a.lanes * s.a.results, s.pieces);
    cek__gpu_step_fill(step, buffers, r->terms ? 5 : 2, &s.a, sizeof s.a);
    if (!whole)
        cek__gpu_reduce_add(op, &rest);
}

/* The second operand, the centre and the rows that count: the last is a matter of how many outputs, or terms of an
 * output, lie in a row of axis 0. */
static void terms_describe(const cek_op *op, const cek_reduce_desc *desc, uint64_t length, cek__gpu_terms *t)
{
    const uint64_t outputs = shape_count(desc->rank, desc->shape) / length, rows = desc->shape[0];
    const bool reduced = desc->axes & 1;
    *t = (cek__gpu_terms){ .second = cek__gpu_slot(op, CEK_REDUCE_X2),
                           .centre = cek__gpu_slot(op, CEK_REDUCE_CENTRE),
                           .batch = cek__gpu_slot(op, CEK_REDUCE_BATCH) };
    memcpy(t->second_strides, t->second.slot == CEK__GPU_NOTHING ? desc->x_strides : desc->x2_strides,
           sizeof t->second_strides);
    if (t->batch.slot == CEK__GPU_NOTHING)
        return;
    t->rows = rows;
    t->rows_per_sample = desc->rows_per_sample < rows ? desc->rows_per_sample : rows;
    t->row_count = (reduced ? length : outputs) / rows;
    t->rows_are = reduced ? CEK_K_TERMS_ROWS : CEK_K_TERMS_OUTPUTS;
    if (reduced && desc->function == CEK_REDUCE_MEAN)
        t->rows_are |= CEK_K_TERMS_MEAN;
}

cek_status cek__gpu_lower_reduce(cek_op *op)
{
    const cek_reduce_desc *desc = &op->request.desc.reduce;
    const uint64_t more = CEK_BIT(CEK_REDUCE_X2) | CEK_BIT(CEK_REDUCE_CENTRE) | CEK_BIT(CEK_REDUCE_BATCH);
    cek__gpu_terms terms;
    cek__gpu_reduction r = { .from = { CEK_REDUCE_X, 0 },
                             .to = { CEK_REDUCE_Y, 0 },
                             .type = desc->x_type,
                             .function = desc->function,
                             .accumulate = cek__request_accumulates(&op->request, CEK_REDUCE_Y),
                             .rank = desc->rank,
                             .axes = desc->axes };
    uint64_t length = 1;
    for (uint32_t d = 0; d < desc->rank; d++)
        length *= desc->axes >> d & 1 ? desc->shape[d] : 1;
    if (desc->function == CEK_REDUCE_MEAN)
        r.number = (float)length;
    memcpy(r.shape, desc->shape, sizeof r.shape);
    memcpy(r.strides, desc->x_strides, sizeof r.strides);
    if (desc->op.operands & more) {
        terms_describe(op, desc, length, &terms);
        r.terms = &terms;
    }
    cek__gpu_reduce_add(op, &r);
    return op->failure;
}

cek_status cek__gpu_lower_arg(cek_op *op)
{
    const cek_arg_desc *desc = &op->request.desc.arg;
    const cek__gpu_place buffers[] = { { CEK_ARG_X, 0 }, { CEK_ARG_Y, 0 } };
    cek__gpu_reduction r = { .rank = desc->rank, .axes = 1u << desc->axis };
    cek_k_reduce a = { 0 };
    char defines[CEK__GPU_DEFINES];
    uint32_t group;
    memcpy(r.shape, desc->shape, sizeof r.shape);
    memcpy(r.strides, desc->x_strides, sizeof r.strides);
    if (!dims_all(op, &r, &a))
        return op->failure;
    cek__gpu_defines(op->dev, defines, "#define TYPE %s\n#define ARG %u\n", cek__gpu_type(desc->type), desc->function);
    cek__gpu_step *step = cek__gpu_step_load(op, "reduce.cl", defines, "arg", &group);
    group_share(&a, group, RESULTS_WAVE);
    cek__gpu_step_groups(op, step, (a.outputs + a.results - 1) / a.results, group, 1);
    cek__gpu_step_fill(step, buffers, 2, &a, sizeof a);
    return op->failure;
}
