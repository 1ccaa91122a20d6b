/* plan.c - options, creation, binding and running of a plan; the lowering is in lower*.c. */
#include "nn/model/plan.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "nn/model/lower.h"

typedef struct span {
    int end;        /* instruction behind its last */
    size_t buckets; /* complete when it has run */
} span;

struct cek__plan {
    cek__program program;
    cek__plan_needs needs;
    cek__plan_options options;
    size_t bucket_count;
    int forward_end; /* instructions of the forward pass and the loss */
    size_t segment_count;
    span *segments;
};

/* ---- options ---- */

static cek_status options_check(const cek_model *model, const cek__layout *layout, const cek__plan_options *o,
                                cek__plan_options *out)
{
    int64_t outputs = cek__model_outputs(model);

    *out = *o;
    if (o->rows < 1 || o->rows > UINT32_MAX)
        return cek__fail(CEK_INVALID, "a plan for %lld samples", (long long)o->rows);
    if (o->input_type != CEK_U8 && o->input_type != CEK_F32 && o->input_type != CEK_F64)
        return cek__fail(CEK_INVALID, "inputs of type %s: u8, f32 and f64 are taken", cek_dtype_name(o->input_type));
    if (o->loss && o->loss != CEK_LOSS_CROSS_ENTROPY && o->loss != CEK_LOSS_MSE)
        return cek__fail(CEK_INVALID, "loss %u is neither cross-entropy nor squared error", o->loss);
    if (o->training && !o->loss)
        return cek__fail(CEK_INVALID, "training without a loss");
    if (o->training && layout->bucket_count == 0)
        return cek__fail(CEK_INVALID, "the model has no parameters to train");
    if (o->loss == CEK_LOSS_MSE && o->target_columns && o->target_columns != outputs)
        return cek__fail(CEK_INVALID, "squared error of outputs (%lld,%lld) against targets (%lld,%u): shapes must be equal",
                         (long long)o->rows, (long long)outputs, (long long)o->rows, o->target_columns);
    return CEK_OK;
}

/* ---- segments ---- */

/* How many of the first buckets have all their parameters among those done. */
static size_t complete(const cek__layout *layout, const bool *done)
{
    size_t least = layout->bucket_count;

    for (size_t i = 0; i < layout->parameter_count; i++)
        if (!done[i] && layout->placement[i].bucket < least)
            least = layout->placement[i].bucket;
    return least;
}

static cek_status backward(cek__plan *plan, cek__lowering *l)
{
    cek_status st;
    bool *done = NULL;

    CEK_TRY(cek__calloc(l->layout->parameter_count, sizeof *done, &done));
    CEK_TRY(cek__calloc(l->layout->bucket_count, sizeof *plan->segments, &plan->segments));
    for (int i = l->stages->count; i-- > 0;) {
        const cek__node *node = &l->model->nodes[l->stages->stage[i].node];
        size_t before = plan->segment_count ? plan->segments[plan->segment_count - 1].buckets : 0, now;

        CEK_TRY(cek__lower_backward(l, i));
        if (l->stages->stage[i].kind != CEK__STAGE_CONV && l->stages->stage[i].kind != CEK__STAGE_LINEAR)
            continue;
        done[node->weight] = true;
        if (node->bias >= 0)
            done[node->bias] = true;
        now = complete(l->layout, done);
        if (now > before)
            plan->segments[plan->segment_count++] = (span){ l->program->count, now };
    }
    plan->segments[plan->segment_count - 1].end = l->program->count;
    st = CEK_OK;
out:
    free(done);
    return st;
}

/* ---- creation ---- */

static void needs_sum(cek__plan *plan, const cek_model *model, const cek__layout *layout)
{
    const cek__plan_options *o = &plan->options;
    uint64_t rows = (uint64_t)o->rows, unit = cek_dtype_bytes(layout->type), outputs = (uint64_t)cek__model_outputs(model);

    plan->needs = (cek__plan_needs){
        .arena_bytes = plan->program.arena_bytes,
        .workspace_bytes = plan->program.workspace_bytes,
        .input_bytes = rows * (uint64_t)cek__model_inputs(model) * cek_dtype_bytes(o->input_type),
        .weight_bytes = o->loss && o->weighted ? rows * sizeof(float) : 0,
        .output_bytes = o->loss ? 0 : rows * outputs * unit,
    };
    if (o->loss)
        plan->needs.target_bytes = o->loss == CEK_LOSS_MSE ? rows * outputs * unit : rows * sizeof(int32_t);
}

cek_status cek__plan_create_raw(const cek_model *model, const cek__layout *layout, const cek_plugin *plugin, cek_dev *dev,
                                const char *device_name, const cek__plan_options *options, cek__plan **out)
{
    cek_status st;
    cek__plan *plan = NULL;
    cek__stages stages = { 0 };
    cek__lowering l = { 0 };

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *plan, &plan));
    CEK_TRY(options_check(model, layout, options, &plan->options));
    CEK_TRY(cek__program_init(&plan->program, plugin, dev, device_name, options->extra_op_flags));
    CEK_TRY(cek__stages_build(model, options->training, &stages));
    l = (cek__lowering){ .model = model, .layout = layout, .options = &plan->options, .stages = &stages,
                         .program = &plan->program, .rows = (uint64_t)options->rows };
    CEK_TRY(cek__lower_open(&l));
    CEK_TRY(cek__lower_forward(&l));
    if (options->loss)
        CEK_TRY(cek__lower_loss(&l));
    plan->forward_end = plan->program.count;
    if (options->training)
        CEK_TRY(backward(plan, &l));
    CEK_TRY(cek__program_finish(&plan->program));
    plan->bucket_count = layout->bucket_count;
    needs_sum(plan, model, layout);
    *out = plan;
    plan = NULL;
    st = CEK_OK;
out:
    cek__lower_close(&l);
    cek__stages_clear(&stages);
    cek__plan_free(plan);
    return st;
}

cek_status cek__plan_create(const cek_model *model, const cek__layout *layout, cek_device *device,
                            const cek__plan_options *options, cek__plan **out)
{
    cek_status st;
    const cek_plugin *plugin;
    cek_dev *dev;

    *out = NULL;
    CEK_TRY(cek_device_raw(device, &plugin, &dev));
    return cek__plan_create_raw(model, layout, plugin, dev, cek_device_name(device), options, out);
out:
    return st;
}

void cek__plan_free(cek__plan *plan)
{
    if (!plan)
        return;
    if (plan->program.plugin)
        cek__program_clear(&plan->program);
    free(plan->segments);
    free(plan);
}

const cek__plan_needs *cek__plan_get_needs(const cek__plan *plan)
{
    return &plan->needs;
}

/* ---- binding and running ---- */

cek_status cek__plan_bind(cek__plan *plan, const cek__plan_binding *b)
{
    const cek__plan_needs *n = &plan->needs;
    const cek__plan_options *o = &plan->options;
    const struct {
        const char *name;
        bool needed;
        cek_ref ref;
    } all[] = {
        { "arena", n->arena_bytes > 0, b->arena },
        { "workspace", n->workspace_bytes > 0, b->workspace },
        { "input", true, b->input },
        { "target", n->target_bytes > 0, b->target },
        { "weights", n->weight_bytes > 0, b->weights },
        { "output", n->output_bytes > 0, b->output },
        { "step block", o->training, b->step_block },
        { "batch block", o->loss != 0, b->batch_block },
        { "loss", o->loss != 0, b->loss },
        { "correct", o->loss == CEK_LOSS_CROSS_ENTROPY, b->correct },
    };
    const cek_ref places[CEK__PLACE_SINGLE] = {
        [CEK__PLACE_ARENA] = b->arena,       [CEK__PLACE_INPUT] = b->input,      [CEK__PLACE_TARGET] = b->target,
        [CEK__PLACE_WEIGHTS] = b->weights,   [CEK__PLACE_OUTPUT] = b->output,    [CEK__PLACE_STEP] = b->step_block,
        [CEK__PLACE_BATCH] = b->batch_block, [CEK__PLACE_LOSS] = b->loss,        [CEK__PLACE_CORRECT] = b->correct,
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].needed && !all[i].ref.mem)
            return cek__fail(CEK_INVALID, "%s: the plan needs memory for its %s", plan->program.device_name, all[i].name);
    if (plan->bucket_count && (!b->parameters || (o->training && !b->gradients)))
        return cek__fail(CEK_INVALID, "%s: the plan needs parameters%s", plan->program.device_name,
                         o->training ? " and gradients" : "");
    cek__program_bind(&plan->program, places, b->parameters, b->gradients, b->workspace);
    return CEK_OK;
}

cek_status cek__plan_forward(cek__plan *plan, cek_queue *queue)
{
    return cek__program_run(&plan->program, queue, 0, plan->forward_end, false);
}

size_t cek__plan_segment_count(const cek__plan *plan)
{
    return plan->segment_count;
}

size_t cek__plan_segment_buckets(const cek__plan *plan, size_t segment)
{
    return plan->segments[segment].buckets;
}

cek_status cek__plan_backward(cek__plan *plan, cek_queue *queue, size_t segment, bool accumulate)
{
    int begin = segment ? plan->segments[segment - 1].end : plan->forward_end;

    return cek__program_run(&plan->program, queue, begin, plan->segments[segment].end, accumulate);
}

/* ---- the estimate: the real lowering on a device that promises everything and does nothing ---- */

static cek_status paper_op_create(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out)
{
    static char op; /* an address; never looked at */
    const cek_pool_desc *pool = (const cek_pool_desc *)desc;
    uint64_t windows;

    (void)dev;
    *out = (cek_op *)(void *)&op;
    if (desc->kind == CEK_OP_POOL_FORWARD && desc->operands & CEK_BIT(CEK_POOL_FORWARD_RESERVE)) {
        windows = pool->batch * pool->channels;
        for (uint32_t i = 0; i < pool->spatial; i++)
            windows *= (pool->in[i] + pool->pad_lo[i] + pool->pad_hi[i] - pool->kernel[i]) / pool->stride[i] + 1;
        info->reserve_bytes = windows * sizeof(int32_t); /* an index for each: no backend keeps more */
    }
    return CEK_OK;
}

static void paper_op_destroy(cek_op *op)
{
    (void)op;
}

cek_status cek__plan_estimate(const cek_model *model, cek_dtype type, const cek__plan_options *options, uint64_t *fixed,
                              uint64_t *per_row)
{
    enum { ROWS = 256 }; /* enough for the 256-byte roundings of an arena to vanish */
    static const cek_plugin paper = { .size = sizeof paper, .op_create = paper_op_create, .op_destroy = paper_op_destroy };
    cek_status st;
    cek__layout *layout = NULL;
    cek__plan *plan = NULL;
    cek__plan_options o = *options;
    const cek__plan_needs *n;

    *fixed = *per_row = 0;
    o.rows = ROWS;
    CEK_TRY(cek__layout_create(model, type, &layout));
    CEK_TRY(cek__plan_create_raw(model, layout, &paper, NULL, "estimate", &o, &plan));
    n = cek__plan_get_needs(plan);
    *per_row = (n->arena_bytes + n->input_bytes + n->target_bytes + n->weight_bytes + n->output_bytes + ROWS - 1) / ROWS;
    *fixed = 256u * (uint64_t)plan->program.value_count; /* roundings */
    st = CEK_OK;
out:
    cek__plan_free(plan);
    cek__layout_free(layout);
    return st;
}
