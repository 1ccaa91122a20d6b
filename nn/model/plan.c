/* plan.c - makes plans and runs them: checks, order of the passes, segments, binding (see plan.h). */
#include "nn/model/plan.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "nn/model/lower.h"

/* A piece of backward at whose end `buckets` buckets are ready. */
typedef struct segment {
    int begin, end; /* instructions */
    size_t buckets;
} segment;

struct cek__plan {
    cek__plan_needs needs;
    cek__program program;
    int forward_end;
    size_t bucket_count;
    size_t segment_count;
    segment *segments;
};

/* ---- checks ---- */

static cek_status options_check(const cek_model *model, const cek__plan_options *o)
{
    const cek__shape *shape = &model->nodes[model->node_count - 1].shape;
    int64_t outputs = cek__model_outputs(model);
    char text[CEK__SHAPE_TEXT];

    cek__shape_text(shape, text);
    if (o->rows < 1 || o->rows > UINT32_MAX)
        return cek__fail(CEK_INVALID, "plan: %lld samples", (long long)o->rows);
    if (o->input_type != CEK_U8 && o->input_type != CEK_F32 && o->input_type != CEK_F64)
        return cek__fail(CEK_INVALID, "plan: inputs of type %u, they are u8, f32 or f64", o->input_type);
    if (o->loss > CEK_LOSS_MSE)
        return cek__fail(CEK_INVALID, "plan: unknown loss %u", o->loss);
    if (o->loss == 0 && o->training)
        return cek__fail(CEK_INVALID, "plan: training needs a loss");
    if (o->training && model->parameter_count == 0)
        return cek__fail(CEK_INVALID, "the model has no parameters to train");
    if (o->loss != 0 && o->softmax)
        return cek__fail(CEK_INVALID, "plan: softmax belongs to a prediction, not to a loss");
    if ((o->loss == CEK_LOSS_CROSS_ENTROPY || o->softmax) && shape->rank != 1)
        return cek__fail(CEK_INVALID, "the model's output is an image %s where one value per "
                                      "class is wanted: end it with "
                                      "flatten and linear", text);
    if (o->loss == CEK_LOSS_MSE && o->target_columns != 0 && o->target_columns != outputs)
        return cek__fail(CEK_INVALID, "squared error of outputs (%lld,%lld) against targets "
                                      "(%lld,%u): shapes must be equal",
                         (long long)o->rows, (long long)outputs, (long long)o->rows, o->target_columns);
    return CEK_OK;
}

/* ---- building ---- */

static cek_status bucket_values(cek__lowering *l, cek__place place, int **out)
{
    cek_status st;
    uint64_t bytes = cek__type_bytes(l->layout->type);

    CEK_TRY(cek__calloc(l->layout->parameter_count, sizeof **out, out));
    for (size_t i = 0; i < l->layout->parameter_count; i++) {
        const cek__placement *p = &l->layout->placement[i];

        CEK_TRY(cek__program_value(l->program,
                                   (cek__value){ .place = place, .bucket = p->bucket,
                                                 .offset = p->first * bytes,
                                                             .bytes = p->count * bytes }, &(*out)[i]));
    }
    return CEK_OK;
out:
    return st;
}

/* Appends the segment that ends before instruction `end`. */
static void segment_add(cek__plan *plan, int end, size_t buckets)
{
    int begin = plan->segment_count ? plan->segments[plan->segment_count - 1].end : plan->forward_end;

    plan->segments[plan->segment_count++] = (segment){ begin, end, buckets };
}

/* A bucket is ready behind the last instruction of backward that writes its gradients or reads its
 * parameters; buckets count as ready in their order. */
static cek_status segments_make(cek__plan *plan)
{
    cek_status st;
    int *ready = NULL;

    CEK_TRY(cek__calloc(plan->bucket_count, sizeof *ready, &ready));
    CEK_TRY(cek__calloc(plan->bucket_count, sizeof *plan->segments, &plan->segments));
    for (int i = plan->forward_end; i < plan->program.count; i++) {
        const cek__instruction *in = &plan->program.instructions[i];

        for (uint32_t slot = 0; slot < in->slots; slot++) {
            const cek__value *v = &plan->program.values[in->operand[slot]];

            if (v->place == CEK__PLACE_PARAMETER || v->place == CEK__PLACE_GRADIENT)
                ready[v->bucket] = i + 1;
        }
    }
    for (size_t b = 0; b < plan->bucket_count; b++) {
        if (b > 0 && ready[b] < ready[b - 1])
            ready[b] = ready[b - 1];
        if (b > 0 && ready[b] > ready[b - 1])
            segment_add(plan, ready[b - 1], b);
    }
    if (plan->bucket_count > 0)
        segment_add(plan, plan->program.count, plan->bucket_count);
    st = CEK_OK;
out:
    free(ready);
    return st;
}

static cek_status passes_lower(cek__plan *plan, cek__lowering *l)
{
    cek_status st;
    const cek__plan_options *o = l->options;

    CEK_TRY(bucket_values(l, CEK__PLACE_PARAMETER, &l->parameter));
    CEK_TRY(cek__program_value(l->program, (cek__value){ .place = CEK__PLACE_STEP, .bytes = sizeof(cek_step_block) },
                               &l->step));
    CEK_TRY(cek__program_value(l->program, (cek__value){ .place = CEK__PLACE_BATCH, .bytes = sizeof(cek_batch_block) },
                               &l->batch));
    CEK_TRY(cek__lower_forward(l));
    if (o->loss != 0)
        CEK_TRY(cek__lower_loss(l));
    plan->forward_end = plan->program.count;
    if (o->training) {
        CEK_TRY(bucket_values(l, CEK__PLACE_GRADIENT, &l->gradient));
        CEK_TRY(cek__lower_backward(l));
        CEK_TRY(segments_make(plan));
    }
    return cek__program_finish(l->program);
out:
    return st;
}

static void needs_collect(cek__plan *plan)
{
    cek__plan_needs *needs = &plan->needs;
    uint64_t *const bytes[CEK__PLACE_SINGLE] = {
        [CEK__PLACE_INPUT] = &needs->input_bytes,
        [CEK__PLACE_TARGET] = &needs->target_bytes,
        [CEK__PLACE_OUTPUT] = &needs->output_bytes,
    };

    needs->arena_bytes = plan->program.arena_bytes;
    needs->workspace_bytes = plan->program.workspace_bytes;
    for (int v = 1; v < plan->program.value_count; v++) {
        const cek__value *value = &plan->program.values[v];

        if (value->place < CEK__PLACE_SINGLE && bytes[value->place] && value->first >= 0)
            *bytes[value->place] = value->bytes;
    }
}

cek_status cek__plan_create_raw(const cek_model *model, const cek__layout *layout,
                                const cek_plugin *plugin, cek_dev *dev,
                                const char *device_name, const cek__plan_options *options, cek__plan **out)
{
    cek_status st;
    cek__plan *plan = NULL;
    cek__stages stages = { 0 };
    cek__lowering l = { .model = model, .layout = layout, .options = options, .stages = &stages };

    *out = NULL;
    CEK_TRY(options_check(model, options));
    CEK_TRY(cek__stages_build(model, options->training, &stages));
    CEK_TRY(cek__calloc(1, sizeof *plan, &plan));
    plan->bucket_count = layout->bucket_count;
    CEK_TRY(cek__program_init(&plan->program, plugin, dev, device_name, options->extra_op_flags));
    l.program = &plan->program;
    CEK_TRY(cek__calloc((size_t)stages.tensor_count, sizeof *l.tensor, &l.tensor));
    CEK_TRY(passes_lower(plan, &l));
    needs_collect(plan);
    *out = plan;
    plan = NULL;
    st = CEK_OK;
out:
    free(l.tensor);
    free(l.parameter);
    free(l.gradient);
    cek__stages_clear(&stages);
    cek__plan_free(plan);
    return st;
}

cek_status cek__plan_create(const cek_model *model, const cek__layout *layout, cek_device *device,
                            const cek__plan_options *options, cek__plan **out)
{
    const cek_plugin *plugin;
    cek_dev *dev;
    cek_status st = cek_device_raw(device, &plugin, &dev);

    *out = NULL;
    return st != CEK_OK ? st : cek__plan_create_raw(model, layout, plugin, dev, cek_device_name(device), options, out);
}

void cek__plan_free(cek__plan *plan)
{
    if (!plan)
        return;
    cek__program_clear(&plan->program);
    free(plan->segments);
    free(plan);
}

const cek__plan_needs *cek__plan_get_needs(const cek__plan *plan)
{
    return &plan->needs;
}

/* ---- binding and running ---- */

static const char *place_name(cek__place place)
{
    static const char *const names[] = {
        [CEK__PLACE_ARENA] = "the arena",            [CEK__PLACE_INPUT] = "the input",
        [CEK__PLACE_TARGET] = "the target",          [CEK__PLACE_OUTPUT] = "the output",
        [CEK__PLACE_STEP] = "the step block",        [CEK__PLACE_BATCH] = "the batch block",
        [CEK__PLACE_LOSS] = "the loss",              [CEK__PLACE_CORRECT] = "the right answers",
        [CEK__PLACE_PARAMETER] = "the parameters",   [CEK__PLACE_GRADIENT] = "the gradients",
    };

    return names[place];
}

cek_status cek__plan_bind(cek__plan *plan, const cek__plan_binding *binding)
{
    const cek_ref places[CEK__PLACE_SINGLE] = {
        [CEK__PLACE_ARENA] = binding->arena,     [CEK__PLACE_INPUT] = binding->input,
        [CEK__PLACE_TARGET] = binding->target,   [CEK__PLACE_OUTPUT] = binding->output,
        [CEK__PLACE_STEP] = binding->step_block, [CEK__PLACE_BATCH] = binding->batch_block,
        [CEK__PLACE_LOSS] = binding->loss,       [CEK__PLACE_CORRECT] = binding->correct,
    };

    for (int i = 1; i < plan->program.value_count; i++) {
        const cek__value *v = &plan->program.values[i];
        cek_ref ref = { NULL, 0 };

        if (v->first < 0)
            continue;
        if (v->place < CEK__PLACE_SINGLE)
            ref = places[v->place];
        else if (v->place == CEK__PLACE_PARAMETER && binding->parameters)
            ref = binding->parameters[v->bucket];
        else if (v->place == CEK__PLACE_GRADIENT && binding->gradients)
            ref = binding->gradients[v->bucket];
        if (!ref.mem)
            return cek__fail(CEK_INVALID, "plan on %s: no memory is bound for %s", plan->program.device_name,
                             place_name(v->place));
    }
    if (plan->needs.workspace_bytes && !binding->workspace.mem)
        return cek__fail(CEK_INVALID, "plan on %s: no memory is bound for the workspace", plan->program.device_name);
    cek__program_bind(&plan->program, places, binding->parameters, binding->gradients, binding->workspace);
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

size_t cek__plan_segment_buckets(const cek__plan *plan, size_t segment_index)
{
    return plan->segments[segment_index].buckets;
}

cek_status cek__plan_backward(cek__plan *plan, cek_queue *queue, size_t segment_index, bool accumulate)
{
    const segment *s = &plan->segments[segment_index];

    return cek__program_run(&plan->program, queue, s->begin, s->end, accumulate);
}
