/* part_random.c - random numbers that follow from the step, the sample and the place in it. */
#include "nn/graph/parts.h"

static cek_status random_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    if (part->dims.samples != 1 || part->dims.size[0] != 1)
        return cek__fail(CEK_INVALID, "gives samples along its first axis");
    return cek__infer_given(graph, part, out);
}

static cek_status random_lower(cek__lowering *l, int part)
{
    cek_status st;
    const cek__part *p = &l->graph->parts[part];
    cek__destination to = { 0 };
    cek_random_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_RANDOM },
        .rows = (uint64_t)l->rows,
        .columns = cek__lower_elements(l, p->output[0]) / (uint64_t)l->rows,
        .rows_per_sample = 1,
        .a = p->random.a,
        .b = p->random.b,
        .distribution = p->random.distribution,
        .stream = p->random.stream,
        .type = l->type,
    };

    CEK_TRY(cek__lower_write(l, p->output[0], CEK_RANDOM_Y, &to));
    return cek__lower_emit(
        l, part, &desc.op,
        (int[CEK__SLOTS]){ [CEK_RANDOM_Y] = to.value, [CEK_RANDOM_STEP] = l->step, [CEK_RANDOM_BATCH] = l->batch },
        &to);
out:
    return st;
}

const cek__part_class cek__part_random = { .name = "random",
                                           .outputs = 1,
                                           .infer = random_infer,
                                           .place = cek__place_as_is,
                                           .types = CEK__TYPES_SOURCE,
                                           .lower = random_lower };
