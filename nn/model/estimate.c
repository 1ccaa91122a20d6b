/* estimate.c - what a plan will need, before any device is asked: the same planning on paper. */
#include "core/base/status.h"
#include "nn/model/plan.h"

static cek_status paper_needs(const cek_model *model, const cek__layout *layout, const cek__plan_options *options,
                              uint64_t *bytes)
{
    cek__plan *plan = NULL;
    cek_status st = cek__plan_create(model, layout, NULL, options, &plan);

    *bytes = 0;
    if (st == CEK_OK) {
        const cek__plan_needs *n = cek__plan_get_needs(plan);

        *bytes = n->arena_bytes + n->input_bytes + n->target_bytes + n->output_bytes;
    }
    cek__plan_free(plan);
    return st;
}

cek_status cek__plan_estimate(const cek_model *model, cek_dtype type, const cek__plan_options *options, uint64_t *fixed,
                              uint64_t *per_row)
{
    cek_status st;
    cek__layout *layout = NULL;
    cek__plan_options some = *options, twice = *options;
    uint64_t some_bytes, twice_bytes;

    *fixed = *per_row = 0;
    /* Far enough from 0 that rounding to CEK_ALIGNMENT does not count. */
    some.rows = 64;
    twice.rows = 128;
    CEK_TRY(cek__layout_create(model, type, &layout));
    CEK_TRY(paper_needs(model, layout, &some, &some_bytes));
    CEK_TRY(paper_needs(model, layout, &twice, &twice_bytes));
    *per_row = (twice_bytes - some_bytes + 63) / 64;
    *fixed = some_bytes > 64 * *per_row ? some_bytes - 64 * *per_row : 0;
    st = CEK_OK;
out:
    cek__layout_free(layout);
    return st;
}
