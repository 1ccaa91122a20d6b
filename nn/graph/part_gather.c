/* part_gather.c - rows of a table that an index of whole numbers names, and what is summed into such rows: each is the
 * other's gradient.
 *
 * The first `batch` axes count tables. table [batch..., rows, columns...], index [batch..., which...],
 * y [batch..., which..., columns...]. An index that names no row gives NaN, and adds nothing. */
#include "nn/graph/parts.h"
#include "nn/graph/physical.h"

static cek_status shapes_fit(const cek__graph *graph, const cek__part *part, const cek__dims *table, int index)
{
    const cek__dims *which = &graph->flows[index].dims;
    int batch = part->gather.batch;
    const uint32_t tables = (1u << batch) - 1;

    if (graph->flows[index].type != CEK_I32)
        return cek__fail(CEK_INVALID, "its index is not of i32");
    if (batch < 0 || batch >= table->rank || batch > which->rank)
        return cek__fail(CEK_INVALID, "%d axes that count tables are not there", batch);
    for (int i = 0; i < batch; i++)
        if (table->size[i] != which->size[i])
            return cek__fail(CEK_INVALID, "axis %d is %lld in the table and %lld in the index", i,
                             (long long)table->size[i], (long long)which->size[i]);
    if ((table->samples ^ which->samples) & tables || table->samples >> batch & 1)
        return cek__fail(CEK_INVALID, "would mix samples");
    return CEK_OK;
}

static void axes_append(cek__dims *to, const cek__dims *from, int first)
{
    for (int i = first; i < from->rank; i++) {
        to->samples |= (from->samples >> i & 1) << to->rank;
        to->outside = from->samples >> i & 1 ? from->outside : to->outside;
        to->size[to->rank++] = from->size[i];
    }
}

/* [batch..., which..., columns...] */
static cek_status rows_of(const cek__dims *table, const cek__dims *which, int batch, cek__dims *out)
{
    *out = (cek__dims){ 0 };
    if (which->rank + table->rank - batch - 1 > CEK_RANK_MAX)
        return cek__fail(CEK_INVALID, "its result has more than %d axes", CEK_RANK_MAX);
    axes_append(out, which, 0);
    axes_append(out, table, batch + 1);
    if (out->samples & (out->samples - 1))
        return cek__fail(CEK_INVALID, "would give each sample those of all");
    return CEK_OK;
}

static cek_status gather_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    cek_status st;
    const cek__dims *table = &graph->flows[part->input[0]].dims;

    CEK_TRY(shapes_fit(graph, part, table, part->input[1]));
    CEK_TRY(rows_of(table, &graph->flows[part->input[1]].dims, part->gather.batch, &out[0].dims));
    out[0].type = graph->flows[part->input[0]].type;
out:
    return st;
}

static cek_status scatter_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    cek_status st;
    const cek__dims *index = &graph->flows[part->input[1]].dims;
    cek__dims rows;

    CEK_TRY(shapes_fit(graph, part, &part->dims, part->input[1]));
    CEK_TRY(rows_of(&part->dims, index, part->gather.batch, &rows));
    if (!cek__dims_equal(&rows, &graph->flows[part->input[0]].dims))
        CEK_FAIL(CEK_INVALID, "what is added is not rows of the table for each index");
    if (!graph->backward && rows.samples && !part->dims.samples)
        CEK_FAIL(CEK_INVALID, "would sum over samples");
    out[0].dims = part->dims;
out:
    return st;
}

cek_status cek__gather(cek__graph *graph, int table, int index, int batch, int *out)
{
    cek__part part = { .kind = CEK__PART_GATHER, .inputs = 2, .input = { table, index }, .gather = { batch } };

    return cek__graph_add(graph, &part, out);
}

cek_status cek__scatter_add(cek__graph *graph, int rows, int index, int batch, const cek__dims *table, int *out)
{
    cek__part part = {
        .kind = CEK__PART_SCATTER_ADD, .inputs = 2, .input = { rows, index }, .dims = *table, .gather = { batch }
    };

    return cek__graph_add(graph, &part, out);
}

/* The padding's index names no row, which adds nothing. */
static cek_status padding_leave(cek__graph *graph, int index, int32_t padding, int *out)
{
    const cek__part part = { .kind = CEK__PART_CHAIN,
                             .inputs = 1,
                             .input = { index },
                             .type = CEK_I32,
                             .chain = { 4,
                                        { { .code = CEK_PW_CONST, .imm = padding },
                                          { .code = CEK_PW_EQUAL, .a = 0, .b = 1 },
                                          { .code = CEK_PW_CONST, .imm = -1 },
                                          { .code = CEK_PW_SELECT, .a = 2, .b = 3, .c = 0 } } } };

    return cek__graph_add(graph, &part, out);
}

static cek_status gather_gradient(cek__backward *to, int part, int dy)
{
    cek_status st;
    const cek__part p = to->graph->parts[part];
    const cek__dims table = to->graph->flows[p.input[0]].dims;
    int gradient, index = p.input[1];

    if (p.gather.pads)
        CEK_TRY(padding_leave(to->graph, index, p.gather.padding, &index));
    CEK_TRY(cek__scatter_add(to->graph, dy, index, p.gather.batch, &table, &gradient));
    return cek__contribute(to, p.input[0], gradient);
out:
    return st;
}

static cek_status scatter_gradient(cek__backward *to, int part, int dy)
{
    cek_status st;
    const cek__part p = to->graph->parts[part];
    int gradient;

    CEK_TRY(cek__gather(to->graph, dy, p.input[1], p.gather.batch, &gradient));
    return cek__contribute(to, p.input[0], gradient);
out:
    return st;
}

/* Of its type are the rows that move: of a scatter-add what is added, whose sums are wider. */
static void describe(const cek__lowering *l, const cek__part *p, uint32_t kind, int table, cek_gather_desc *out)
{
    const cek__dims *rows = &l->graph->flows[table].dims, *index = &l->graph->flows[p->input[1]].dims;
    int batch = p->gather.batch;

    *out = (cek_gather_desc){
        .op = { .size = sizeof *out, .kind = kind },
        .batch = (uint64_t)cek__dims_elements(rows, 0, batch, l->rows),
        .rows = (uint64_t)cek__dims_elements(rows, batch, batch + 1, l->rows),
        .count = (uint64_t)cek__dims_elements(index, batch, index->rank, l->rows),
        .columns = (uint64_t)cek__dims_elements(rows, batch + 1, rows->rank, l->rows),
        .type = cek__lower_type(l, p->input[0]),
    };
}

static cek_status gather_lower(cek__lowering *l, int part)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part];
    cek__destination to = { 0 };
    cek_gather_desc desc;

    describe(l, p, CEK_OP_GATHER, p->input[0], &desc);
    CEK_TRY(cek__lower_write(l, p->output[0], CEK_GATHER_Y, &to));
    return cek__lower_emit(l, part, &desc.op,
                           (int[CEK__SLOTS]){ [CEK_GATHER_TABLE] = cek__lower_read(l, p->input[0]),
                                              [CEK_GATHER_INDEX] = cek__lower_read(l, p->input[1]),
                                              [CEK_GATHER_Y] = to.value },
                           &to);
out:
    return st;
}

static cek_status scatter_lower(cek__lowering *l, int part)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part];
    cek__destination to = { 0 };
    cek_gather_desc desc;

    describe(l, p, CEK_OP_SCATTER_ADD, p->output[0], &desc);
    CEK_TRY(cek__lower_write(l, p->output[0], CEK_SCATTER_ADD_DTABLE, &to));
    return cek__lower_emit(l, part, &desc.op,
                           (int[CEK__SLOTS]){ [CEK_SCATTER_ADD_DY] = cek__lower_read(l, p->input[0]),
                                              [CEK_SCATTER_ADD_INDEX] = cek__lower_read(l, p->input[1]),
                                              [CEK_SCATTER_ADD_DTABLE] = to.value },
                           &to);
out:
    return st;
}

const cek__part_class cek__part_gather = { .name = "gather",
                                           .outputs = 1,
                                           .infer = gather_infer,
                                           .gradient = gather_gradient,
                                           .place = cek__place_plain,
                                           .types = CEK__TYPES_FOLLOW,
                                           .lower = gather_lower };
const cek__part_class cek__part_scatter_add = { .name = "scatter_add",
                                                .outputs = 1,
                                                .infer = scatter_infer,
                                                .gradient = scatter_gradient,
                                                .place = cek__place_plain,
                                                .types = CEK__TYPES_ANY,
                                                .lower = scatter_lower,
                                                .adds = true };
