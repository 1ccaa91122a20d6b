/* part_view.c - the same elements by other axes, which moves nothing, and lying in another order, which does. */
#include <string.h>

#include "nn/graph/parts.h"
#include "nn/graph/physical.h"
#include "nn/graph/strides.h"

/* The samples stay where they are among the elements. *y's outside is what they have there. */
static bool samples_stay(const cek__dims *x, cek__dims *y)
{
    int64_t before = x->outside ? x->outside : 1;

    y->outside = 0;
    for (int i = 0; x->samples && !(x->samples >> i & 1); i++)
        before *= x->size[i];
    for (int i = 0; x->samples && i < y->rank; i++) {
        if (y->samples >> i & 1) {
            y->outside = before > 1 ? before : 0;
            return y->size[i] % before == 0;
        }
        if (before % y->size[i])
            return false;
        before /= y->size[i];
    }
    return x->samples == 0;
}

/* Two numbers of samples that share no factor tell a wrong product of axes. */
static bool as_many(const cek__dims *a, const cek__dims *b)
{
    return cek__dims_elements(a, 0, a->rank, 1) == cek__dims_elements(b, 0, b->rank, 1) &&
           cek__dims_elements(a, 0, a->rank, 7) == cek__dims_elements(b, 0, b->rank, 7);
}

static cek_status view_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    const cek__flow *x = &graph->flows[part->input[0]];

    if (!as_many(&x->dims, &part->dims))
        return cek__fail(CEK_INVALID, "the elements are not as many");
    out[0].dims = part->dims;
    out[0].type = x->type;
    if (!samples_stay(&x->dims, &out[0].dims))
        return cek__fail(CEK_INVALID, "would mix samples");
    return CEK_OK;
}

cek_status cek__view(cek__graph *graph, int x, const cek__dims *dims, int *out)
{
    cek__part part = { .kind = CEK__PART_VIEW, .inputs = 1, .dims = *dims };

    /* Of what that is a view of; what fits neither is told with the shape that the caller knows. */
    if (cek__graph_giver(graph, x)->kind == CEK__PART_VIEW && as_many(&graph->flows[x].dims, dims))
        x = cek__graph_giver(graph, x)->input[0];
    part.input[0] = x;
    if (cek__dims_equal(&graph->flows[x].dims, dims)) {
        *out = x;
        return CEK_OK;
    }
    for (int i = graph->flows[x].part + 1; i < graph->part_count; i++) { /* is there one already? */
        const cek__part *other = &graph->parts[i];

        if (other->kind == CEK__PART_VIEW && !other->gone && other->input[0] == x &&
            cek__dims_equal(&other->dims, dims)) {
            *out = other->output[0];
            return CEK_OK;
        }
    }
    return cek__graph_add(graph, &part, out);
}

static cek_status view_gradient(cek__backward *to, int part, int dy)
{
    cek_status st;
    int x = to->graph->parts[part].input[0], dx;
    cek__dims dims = to->graph->flows[x].dims;

    CEK_TRY(cek__view(to->graph, dy, &dims, &dx));
    return cek__contribute(to, x, dx);
out:
    return st;
}

/* Some of the last axes are the image, or its channels and pixels. */
static bool has_image(const cek__dims *dims, cek__image image)
{
    int64_t elements = 1;
    bool pixels = false;

    for (int i = dims->rank; i-- > 0 && !(dims->samples >> i & 1);) {
        elements *= dims->size[i];
        if (elements == image.pixels)
            pixels = true;
        else if (elements == image.channels * image.pixels)
            return pixels || i == dims->rank - 1;
    }
    return false;
}

static cek_status view_place(cek__graph *graph, int part)
{
    cek_status st;
    const cek__part p = graph->parts[part];

    if (!has_image(&graph->flows[p.output[0]].dims, graph->flows[p.input[0]].image))
        CEK_TRY(cek__want(graph, part, 0, (cek__image){ 0, 0 }));
    return cek__place_same(graph, part);
out:
    return st;
}

static cek_status view_lower(cek__lowering *l, int part)
{
    const cek__part *p = &l->graph->parts[part];

    cek__lower_alias(l, p->output[0], cek__lower_read(l, p->input[0]));
    return CEK_OK;
}

/* ---- reorder, whose output physical.c places when it adds one ---- */

static cek_status reorder_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    out[0].dims = graph->flows[part->input[0]].dims;
    out[0].type = graph->flows[part->input[0]].type;
    return CEK_OK;
}

/* What is strided goes to where it is wanted axis by axis. */
static cek_status strided_lower(cek__lowering *l, int part)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part];
    cek__box box = { .dims = l->graph->flows[p->output[0]].dims };
    cek__destination to = { 0 };

    cek__strides(l->graph, p->input[0], l->rows, box.from);
    cek__strides(l->graph, p->output[0], l->rows, box.to);
    CEK_TRY(cek__lower_write(l, p->output[0], CEK_COPY_Y, &to));
    return cek__lower_box(l, part, &box, cek__lower_read(l, p->input[0]), &to);
out:
    return st;
}

static cek_status reorder_lower(cek__lowering *l, int part)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part];
    const cek__flow *x = &l->graph->flows[p->input[0]], *y = &l->graph->flows[p->output[0]];
    cek__image image = x->image.channels ? x->image : y->image;
    int64_t all = image.channels * image.pixels;
    const int64_t plain[3] = { all, image.pixels, 1 }, last[3] = { all, 1, image.channels };
    cek__destination to = { 0 };
    cek_copy_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_COPY },
        .rank = 3,
        .x_type = cek__lower_type(l, p->input[0]),
        .y_type = cek__lower_type(l, p->output[0]),
    };

    if (x->strided)
        return strided_lower(l, part);
    desc.shape[0] = cek__lower_elements(l, p->input[0]) / (uint64_t)all;
    desc.shape[1] = (uint64_t)image.channels;
    desc.shape[2] = (uint64_t)image.pixels;
    memcpy(desc.x_strides, x->image.channels ? last : plain, sizeof plain);
    memcpy(desc.y_strides, y->image.channels ? last : plain, sizeof plain);
    CEK_TRY(cek__lower_write(l, p->output[0], CEK_COPY_Y, &to));
    return cek__lower_emit(l, part, &desc.op,
                           (int[CEK__SLOTS]){ [CEK_COPY_X] = cek__lower_read(l, p->input[0]), [CEK_COPY_Y] = to.value },
                           &to);
out:
    return st;
}

const cek__part_class cek__part_view = { .name = "view",
                                         .outputs = 1,
                                         .infer = view_infer,
                                         .gradient = view_gradient,
                                         .place = view_place,
                                         .types = CEK__TYPES_FOLLOW,
                                         .lower = view_lower };
const cek__part_class cek__part_reorder = { .name = "reorder",
                                            .outputs = 1,
                                            .infer = reorder_infer,
                                            .place = cek__place_as_is,
                                            .types = CEK__TYPES_FOLLOW,
                                            .lower = reorder_lower };
