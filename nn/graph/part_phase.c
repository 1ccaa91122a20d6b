/* part_phase.c - one flow where the network is trained and another where it is not, as normalisation over a batch has
 * it. The first pass (simplify.c) chooses, so no other sees it. */
#include "nn/graph/parts.h"

static cek_status phase_infer(const cek__graph *graph, const cek__part *part, cek__flow out[CEK__PART_OUTPUTS])
{
    const cek__flow *training = &graph->flows[part->input[0]], *evaluation = &graph->flows[part->input[1]];

    if (!cek__dims_equal(&training->dims, &evaluation->dims) || training->type != evaluation->type)
        return cek__fail(CEK_INVALID, "what it gives when training and when not has different shapes or types");
    out[0].dims = training->dims;
    out[0].type = training->type;
    return CEK_OK;
}

static cek_status phase_remains(void)
{
    return cek__fail(CEK_INTERNAL, "phase: nobody has chosen");
}

static cek_status phase_place(cek__graph *graph, int part)
{
    (void)graph;
    (void)part;
    return phase_remains();
}

static cek_status phase_lower(cek__lowering *l, int part)
{
    (void)l;
    (void)part;
    return phase_remains();
}

const cek__part_class cek__part_phase = { .name = "phase",
                                          .outputs = 1,
                                          .infer = phase_infer,
                                          .place = phase_place,
                                          .types = CEK__TYPES_FOLLOW,
                                          .lower = phase_lower };
