/* part_product.c - c = op(a) op(b) over the axes of each that its cek__matrix names, with a bias to each row and,
 * beside, the sums of op(a)'s rows. Its gradients are products. */
#include "nn/graph/parts.h"
#include "nn/graph/physical.h"
#include "nn/graph/strides.h"

/* The axes of an operand that the product keeps, and those that it sums over. */
typedef struct side {
    int kept_from, kept_to, summed_from, summed_to;
} side;

static side side_of(const cek__matrix *matrix, int rank, bool left)
{
    /* op(a) is kept x summed, op(b) summed x kept */
    bool rows_kept = left != matrix->transposed;
    side s = { matrix->batch, matrix->split, matrix->split, rank };

    if (!rows_kept)
        s = (side){ matrix->split, rank, matrix->batch, matrix->split };
    return s;
}

static bool axes_equal(const cek__dims *a, int from_a, int to_a, const cek__dims *b, int from_b, int to_b)
{
    bool equal = to_a - from_a == to_b - from_b;

    for (int i = 0; equal && i < to_a - from_a; i++)
        equal = a->size[from_a + i] == b->size[from_b + i] &&
                (a->samples >> (from_a + i) & 1) == (b->samples >> (from_b + i) & 1);
    return equal;
}

static void axes_append(cek__dims *to, const cek__dims *from, int first, int end)
{
    for (int i = first; i < end; i++) {
        to->samples |= (from->samples >> i & 1) << to->rank;
        to->outside = from->samples >> i & 1 ? from->outside : to->outside;
        to->size[to->rank++] = from->size[i];
    }
}

static cek_status product_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    const cek__dims *a = &graph->flows[part->input[0]].dims, *b = &graph->flows[part->input[1]].dims;
    const cek__matrix *ma = &part->product.a, *mb = &part->product.b;
    side sa = side_of(ma, a->rank, true), sb = side_of(mb, b->rank, false);

    if (ma->batch > ma->split || ma->split > a->rank || mb->batch > mb->split || mb->split > b->rank)
        return cek__fail(CEK_INVALID, "a matrix of axes that are not there");
    if (ma->batch + sa.kept_to - sa.kept_from + sb.kept_to - sb.kept_from > CEK_RANK_MAX)
        return cek__fail(CEK_INVALID, "its result has more than %d axes", CEK_RANK_MAX);
    for (int i = sa.summed_from; i < sa.summed_to && !graph->backward; i++)
        if (a->samples >> i & 1)
            return cek__fail(CEK_INVALID, "would sum over samples");
    if (!axes_equal(a, sa.summed_from, sa.summed_to, b, sb.summed_from, sb.summed_to))
        return cek__fail(CEK_INVALID, "the axes that are summed over differ");
    if (!axes_equal(a, 0, ma->batch, b, 0, mb->batch))
        return cek__fail(CEK_INVALID, "the axes that count matrices differ");
    axes_append(&out[0].dims, a, 0, ma->batch);
    axes_append(&out[0].dims, a, sa.kept_from, sa.kept_to);
    axes_append(&out[0].dims, b, sb.kept_from, sb.kept_to);
    if (!graph->backward && out[0].dims.samples & (out[0].dims.samples - 1))
        return cek__fail(CEK_INVALID, "would give each sample something of all others");
    return CEK_OK;
}

/* x with these axes in front of its matrix; both are matrices or stacks of them. */
static cek_status stack(cek__graph *graph, int x, const cek__dims *front, int *out)
{
    const cek__dims *from = &graph->flows[x].dims;
    cek__dims dims = *front;

    for (int i = from->rank - 2; i < from->rank; i++)
        dims.size[dims.rank++] = from->size[i];
    return cek__expand(graph, x, &dims, out);
}

/* What the axes of both before their matrices are broadcast to. */
static cek_status fronts_join(const cek__dims *a, const cek__dims *b, cek__dims *out)
{
    const cek__dims *more = a->rank >= b->rank ? a : b, *less = more == a ? b : a;

    *out = *more;
    out->rank = more->rank - 2;
    out->samples &= (1u << out->rank) - 1;
    for (int k = 0; k < less->rank - 2; k++) {
        int i = out->rank - (less->rank - 2) + k;

        if (less->size[k] == 1 && !(less->samples >> k & 1))
            continue;
        if (out->size[i] != 1 && out->size[i] != less->size[k])
            return cek__fail(CEK_INVALID, "product: stacks of %lld and of %lld matrices", (long long)out->size[i],
                             (long long)less->size[k]);
        out->size[i] = less->size[k];
        out->samples |= (less->samples >> k & 1) << i;
    }
    return CEK_OK;
}

cek_status cek__matmul(cek__graph *graph, int a, int b, int *out)
{
    cek_status st;
    const cek__dims da = graph->flows[a].dims, db = graph->flows[b].dims;
    cek__part part = { .kind = CEK__PART_PRODUCT, .inputs = 2, .input = { a, b } };
    cek__dims front;

    *out = CEK__NOTHING;
    if (da.rank < 2 || db.rank < 2 || (da.samples >> (da.rank - 2) && db.rank > 2) || db.samples >> (db.rank - 2))
        CEK_FAIL(CEK_INVALID, "product: takes stacks of matrices, in which no axis counts samples");
    if (db.rank == 2) { /* one for all rows */
        part.product.a.split = da.rank - 1;
        part.product.b.split = 1;
    } else {
        CEK_TRY(fronts_join(&da, &db, &front));
        CEK_TRY(stack(graph, a, &front, &part.input[0]));
        CEK_TRY(stack(graph, b, &front, &part.input[1]));
        part.product.a = part.product.b = (cek__matrix){ .batch = front.rank, .split = front.rank + 1 };
    }
    CEK_TRY(cek__graph_add(graph, &part, out));
out:
    return st;
}

static cek_status product_add(cek__graph *graph, int a, cek__matrix ma, int b, cek__matrix mb, int *out)
{
    cek__part part = { .kind = CEK__PART_PRODUCT, .inputs = 2, .input = { a, b }, .product = { ma, mb } };

    return cek__graph_add(graph, &part, out);
}

/* C = A B:  dB = A^T dC, dA = dC B^T; of a transposed operand, the transposed. */
static cek_status product_gradient(cek__backward *to, int part, int dy)
{
    cek_status st;
    const cek__part p = to->graph->parts[part];
    const cek__flow *a = cek__graph_flow(to->graph, p.input[0]), *b = cek__graph_flow(to->graph, p.input[1]);
    bool for_a = a->needs_gradient, for_b = b->needs_gradient;
    side sa = side_of(&p.product.a, a->dims.rank, true);
    cek__matrix ma = p.product.a, mb = p.product.b;
    cek__matrix c = { ma.batch, ma.batch + sa.kept_to - sa.kept_from, false }, ct = c;
    int da, db;

    ct.transposed = true;
    if (for_b) {
        if (mb.transposed) { /* dB = dC^T op(A) */
            CEK_TRY(product_add(to->graph, dy, ct, p.input[0], ma, &db));
        } else {
            ma.transposed = !ma.transposed;
            CEK_TRY(product_add(to->graph, p.input[0], ma, dy, c, &db));
        }
        CEK_TRY(cek__contribute(to, p.input[1], db));
    }
    ma = p.product.a;
    if (for_a) {
        if (ma.transposed) { /* dA = op(B) dC^T */
            CEK_TRY(product_add(to->graph, p.input[1], mb, dy, ct, &da));
        } else {
            mb.transposed = !mb.transposed;
            CEK_TRY(product_add(to->graph, dy, c, p.input[1], mb, &da));
        }
        CEK_TRY(cek__contribute(to, p.input[0], da));
    }
    return CEK_OK;
out:
    return st;
}

/* How the matrices of an operand lie: elements from row to row, and from matrix to matrix along the axes
 * that count them. */
typedef struct lies {
    bool columns_first; /* of columns to columns instead: as if it were transposed */
    int64_t ld, step[2];
} lies;

/* Axes that are one: the last is `least` elements from place to place, or any number for 0. *step: so
 * many; *count: places. */
static bool axes_join(const cek__dims *dims, const int64_t *strides, int from, int to, int64_t samples, int64_t least,
                      int64_t *step, int64_t *count)
{
    int64_t expected = least;

    *step = least;
    *count = 1;
    for (int i = to; i-- > from;) {
        int64_t size = cek__dims_elements(dims, i, i + 1, samples);

        if (size == 1)
            continue;
        if (expected == 0)
            *step = expected = strides[i];
        if (strides[i] != expected)
            return false;
        expected *= size;
        *count *= size;
    }
    return true;
}

/* Rows or columns are next to each other, and there are two axes of matrices at most. */
static bool matrices_lie(const cek__graph *graph, int flow, const cek__matrix *m, int64_t samples, lies *out)
{
    const cek__dims *dims = &graph->flows[flow].dims;
    int64_t strides[CEK_RANK_MAX], step, rows, columns;

    *out = (lies){ .columns_first = false };
    cek__strides(graph, flow, samples, strides);
    for (int i = 0; i < m->batch && i < 2; i++)
        out->step[i] = strides[i];
    if (m->batch > 2)
        return false;
    if (axes_join(dims, strides, m->split, dims->rank, samples, 1, &step, &columns) &&
        axes_join(dims, strides, m->batch, m->split, samples, 0, &out->ld, &rows)) {
        out->ld = out->ld ? out->ld : columns; /* one row */
        return out->ld >= columns;
    }
    out->columns_first = true;
    if (!axes_join(dims, strides, m->batch, m->split, samples, 1, &step, &rows) ||
        !axes_join(dims, strides, m->split, dims->rank, samples, 0, &out->ld, &columns))
        return false;
    out->ld = out->ld ? out->ld : rows;
    return out->ld >= rows;
}

/* Axes in another order, of what begins where devices want it, can be read where they lie, with any
 * number of samples. */
static bool read_in_place(const cek__graph *graph, int flow, const cek__matrix *m)
{
    lies few, many;
    int at = flow;

    while (graph->flows[at].strided && graph->parts[graph->flows[at].part].kind == CEK__PART_PERMUTE)
        at = graph->parts[graph->flows[at].part].input[0];
    return graph->flows[flow].strided && !graph->flows[at].strided && matrices_lie(graph, flow, m, 7, &few) &&
           matrices_lie(graph, flow, m, 11, &many) && few.columns_first == many.columns_first;
}

bool cek__product_writes(const cek__graph *graph, int flow)
{
    const cek__matrix rows = { .split = graph->flows[flow].dims.rank - 1 };
    lies few, many;

    return graph->flows[flow].image.channels == 0 && matrices_lie(graph, flow, &rows, 7, &few) &&
           matrices_lie(graph, flow, &rows, 11, &many) && !few.columns_first && !many.columns_first;
}

static cek_status operand_want(cek__graph *graph, int part, int k, cek__image image)
{
    const cek__part *p = &graph->parts[part];

    if (image.channels == 0 && read_in_place(graph, p->input[k], k ? &p->product.b : &p->product.a))
        return CEK_OK;
    return cek__want(graph, part, k, image);
}

/* The columns of an operand lie as an image, or none of it does. */
static cek__image columns_image(const cek__flow *flow, const cek__matrix *matrix)
{
    int64_t columns = cek__dims_elements(&flow->dims, matrix->split, flow->dims.rank, 1);

    return flow->image.channels * flow->image.pixels == columns ? flow->image : (cek__image){ 0, 0 };
}

/* What is summed over lies alike in both; columns of b that are kept are c's. */
static cek_status product_place(cek__graph *graph, int part)
{
    cek_status st;
    const cek__part p = graph->parts[part];
    const cek__image none = { 0, 0 };
    bool sums_columns_of_a = !p.product.a.transposed, sums_columns_of_b = p.product.b.transposed;
    cek__image columns = columns_image(cek__graph_flow(graph, p.input[0]), &p.product.a);

    if (!sums_columns_of_a || !sums_columns_of_b)
        columns = none;
    CEK_TRY(operand_want(graph, part, 0, columns));
    if (sums_columns_of_b)
        CEK_TRY(operand_want(graph, part, 1, columns));
    else
        CEK_TRY(operand_want(graph, part, 1, columns_image(cek__graph_flow(graph, p.input[1]), &p.product.b)));
    columns = sums_columns_of_b ? none : graph->flows[graph->parts[part].input[1]].image;
    graph->flows[p.output[0]].image = columns;
    return CEK_OK;
out:
    return st;
}

/* Where one of the operands is strided, each axis of matrices is a level of the batch. */
static void describe_strided(const cek__lowering *l, const cek__part *p, cek_gemm_desc *desc)
{
    const cek__graph *graph = l->graph;
    const cek__dims *a = &graph->flows[p->input[0]].dims;
    int batch = p->product.a.batch;
    lies in_a, in_b;

    if (!graph->flows[p->input[0]].strided && !graph->flows[p->input[1]].strided)
        return;
    matrices_lie(graph, p->input[0], &p->product.a, l->rows, &in_a);
    matrices_lie(graph, p->input[1], &p->product.b, l->rows, &in_b);
    desc->lda = in_a.ld;
    desc->ldb = in_b.ld;
    desc->trans ^= (in_a.columns_first ? CEK_GEMM_TRANS_A : 0) | (in_b.columns_first ? CEK_GEMM_TRANS_B : 0);
    if (batch == 0)
        return;
    desc->batch = (uint64_t)cek__dims_elements(a, batch - 1, batch, l->rows);
    desc->stride_a = in_a.step[batch - 1];
    desc->stride_b = in_b.step[batch - 1];
    if (batch < 2)
        return;
    desc->outer = (uint64_t)cek__dims_elements(a, 0, 1, l->rows);
    desc->outer_a = in_a.step[0];
    desc->outer_b = in_b.step[0];
    desc->outer_c = (int64_t)(desc->batch * desc->m * desc->n);
}

/* Elements from one matrix to the next: none where there is but one for all. */
static int64_t matrix_stride(const cek__lowering *l, const cek__dims *dims, int batch)
{
    return batch ? cek__dims_elements(dims, batch, dims->rank, l->rows) : 0;
}

static cek_status product_emit(cek__lowering *l, int part, int flow, const cek_epilogue *epilogue, int ref)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part];
    const cek__dims *a = &l->graph->flows[p->input[0]].dims, *b = &l->graph->flows[p->input[1]].dims;
    const cek__matrix *ma = &p->product.a, *mb = &p->product.b;
    side sa = side_of(ma, a->rank, true), sb = side_of(mb, b->rank, false);
    cek__destination to = { 0 }, sums = { 0 };
    cek_gemm_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_GEMM, .epilogue = epilogue },
        .m = (uint64_t)cek__dims_elements(a, sa.kept_from, sa.kept_to, l->rows),
        .n = (uint64_t)cek__dims_elements(b, sb.kept_from, sb.kept_to, l->rows),
        .k = (uint64_t)cek__dims_elements(a, sa.summed_from, sa.summed_to, l->rows),
        .batch = (uint64_t)cek__dims_elements(a, 0, ma->batch, l->rows),
        .lda = cek__dims_elements(a, ma->split, a->rank, l->rows),
        .ldb = cek__dims_elements(b, mb->split, b->rank, l->rows),
        .stride_a = matrix_stride(l, a, ma->batch),
        .stride_b = matrix_stride(l, b, mb->batch),
        .a_type = cek__lower_type(l, p->input[0]),
        .b_type = cek__lower_type(l, p->input[1]),
        .c_type = cek__lower_type(l, flow),
        .trans = (ma->transposed ? CEK_GEMM_TRANS_A : 0) | (mb->transposed ? CEK_GEMM_TRANS_B : 0),
    };
    int operands[CEK__SLOTS] = {
        [CEK_GEMM_A] = cek__lower_read(l, p->input[0]),
        [CEK_GEMM_B] = cek__lower_read(l, p->input[1]),
        [CEK_GEMM_BIAS] = p->inputs > 2 ? cek__lower_read(l, p->input[2]) : CEK__NO_VALUE,
        [CEK_GEMM_ACT_REF] = ref,
    };

    desc.ldc = (int64_t)desc.n;
    desc.stride_c = ma->batch ? (int64_t)(desc.m * desc.n) : 0;
    describe_strided(l, p, &desc);
    if (l->graph->flows[flow].strided) { /* cek__product_writes */
        const cek__matrix rows = { .split = l->graph->flows[flow].dims.rank - 1 };
        lies in_c;

        if (matrices_lie(l->graph, flow, &rows, l->rows, &in_c))
            desc.ldc = in_c.ld;
    }
    CEK_TRY(cek__lower_write(l, flow, CEK_GEMM_C, &to));
    operands[CEK_GEMM_C] = to.value;
    if (p->output[1]) {
        CEK_TRY(cek__lower_write(l, p->output[1], CEK_GEMM_A_SUM, &sums));
        operands[CEK_GEMM_A_SUM] = sums.value;
    }
    to.accumulate |= sums.accumulate | (p->base ? CEK_BIT(CEK_GEMM_C) : 0);
    to.twice |= sums.twice;
    return cek__lower_emit(l, part, &desc.op, operands, &to);
out:
    return st;
}

static cek_status product_lower(cek__lowering *l, int part)
{
    return cek__lower_with_follower(l, part, product_emit);
}

const cek__part_class cek__part_product = { .name = "product",
                                            .outputs = 1,
                                            .infer = product_infer,
                                            .gradient = product_gradient,
                                            .place = product_place,
                                            .types = CEK__TYPES_LOW,
                                            .lower = product_lower,
                                            .adds = true,
                                            .floats = true };
