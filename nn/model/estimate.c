/* estimate.c - what a plan will need, before any device is asked: the same planning against a
 * device that accepts every op and computes nothing.
 *
 * Only what a backend decides is guessed: it wants no workspace, and 4 bytes for each result of a max-pool
 * (an index). */
#include "core/base/status.h"
#include "nn/model/plan.h"

/* Ops have no contents; any address will do. */
static char dry_op;

static uint64_t pool_results(const cek_pool_desc *desc)
{
    uint64_t n = desc->batch * desc->channels;

    for (uint32_t i = 0; i < desc->spatial; i++)
        n *= (desc->in[i] + desc->pad_lo[i] + desc->pad_hi[i] - desc->kernel[i]) / desc->stride[i] + 1;
    return n;
}

static cek_status dry_create(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out)
{
    (void)dev;
    *out = (cek_op *)&dry_op;
    if (desc->kind == CEK_OP_POOL_FORWARD && desc->operands & CEK_BIT(CEK_POOL_FORWARD_RESERVE))
        info->reserve_bytes = 4 * pool_results((const cek_pool_desc *)desc);
    return CEK_OK;
}

static void dry_destroy(cek_op *op)
{
    (void)op;
}

static cek_status dry_needs(const cek_model *model, const cek__layout *layout, const cek__plan_options *options,
                            uint64_t *bytes)
{
    static const cek_plugin dry = {
        .size = sizeof dry, .abi = CEK_ABI, .op_create = dry_create, .op_destroy = dry_destroy
    };
    cek__plan *plan = NULL;
    cek_status st = cek__plan_create_raw(model, layout, &dry, NULL, "plan", options, &plan);

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
    CEK_TRY(dry_needs(model, layout, &some, &some_bytes));
    CEK_TRY(dry_needs(model, layout, &twice, &twice_bytes));
    *per_row = (twice_bytes - some_bytes + 63) / 64;
    *fixed = some_bytes > 64 * *per_row ? some_bytes - 64 * *per_row : 0;
    st = CEK_OK;
out:
    cek__layout_free(layout);
    return st;
}
