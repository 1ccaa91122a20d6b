/* plan.c - makes plans: checks, order of the passes, segments (see plan.h). They run in binding.c. */
#include "nn/model/plan.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "nn/graph/lower.h"
#include "nn/model/compose.h"
#include "nn/program/binding.h"

struct cek__plan {
    cek__plan_needs needs;
    cek__program program;
    size_t bucket_count;
    size_t forward_count; /* segments of forward, and of backward */
    size_t segment_count;
    size_t *segment_buckets; /* how many buckets are ready at a segment's end */
    /* Forward's; two for each segment of backward: overwriting, accumulating; all; what is computed ahead. */
    cek__stretch *stretches;
    cek__binding *bindings[CEK__PLAN_BINDINGS];
};

static size_t stretch_of(const cek__plan *plan, size_t segment, bool accumulate)
{
    return plan->forward_count + 2 * segment + accumulate;
}

static size_t whole_stretch(const cek__plan *plan)
{
    return stretch_of(plan, plan->segment_count, false);
}

static size_t ahead_stretch(const cek__plan *plan)
{
    return whole_stretch(plan) + 1;
}

/* ---- checks ---- */

static cek_status options_check(const cek_model *model, const cek__plan_options *o)
{
    const cek__dims *dims;
    cek_dtype type;
    int64_t outputs;
    char text[CEK__SHAPE_TEXT];

    if (model->node_count == 0)
        return cek__fail(CEK_INVALID, "the model has no nodes");
    dims = cek__node_dims(model, cek__model_output(model));
    type = model->graph.flows[model->nodes[cek__model_output(model)].flow].type;
    outputs = cek__model_outputs(model);
    cek__dims_text(dims, text);
    if (o->rows < 1 || o->rows > UINT32_MAX)
        return cek__fail(CEK_INVALID, "plan: %lld samples", (long long)o->rows);
    if (o->input_type != CEK_U8 && o->input_type != CEK_F32 && o->input_type != CEK_F64 && o->input_type != CEK_I32)
        return cek__fail(CEK_INVALID, "plan: inputs of type %u, they are u8, f32, f64 or i32", o->input_type);
    if (o->loss > CEK_LOSS_OWN)
        return cek__fail(CEK_INVALID, "plan: unknown loss %u", o->loss);
    if (o->loss == 0 && o->training)
        return cek__fail(CEK_INVALID, "plan: training needs a loss");
    if (o->training && model->parameter_count == 0)
        return cek__fail(CEK_INVALID, "the model has no parameters to train");
    if (o->loss == CEK_LOSS_OWN && !model->loss)
        return cek__fail(CEK_INVALID, "plan: the model has no loss of its own");
    if (o->loss != 0 && o->softmax)
        return cek__fail(CEK_INVALID, "plan: softmax belongs to a prediction, not to a loss");
    if (o->loss != 0 && o->output_count > 0)
        return cek__fail(CEK_INVALID, "plan: outputs belong to a prediction, not to a loss");
    if (o->loss != CEK_LOSS_OWN && o->output_count == 0 &&
        (dims->samples != 1 || dims->size[0] != 1 || dims->outside || (type != CEK_DTYPE_NONE && type != CEK_F32)))
        return cek__fail(CEK_INVALID, "the output, node %d (%s), is not a row of numbers for each sample",
                         cek__model_output(model), model->nodes[cek__model_output(model)].label);
    if (o->loss != 0 && o->ahead)
        return cek__fail(CEK_INVALID, "plan: what is computed ahead belongs to a prediction, not to a loss");
    if (o->softmax && o->output_count > 0)
        return cek__fail(CEK_INVALID, "softmax is of the model's output, not of others");
    if ((o->loss == CEK_LOSS_CROSS_ENTROPY || o->softmax) && dims->rank != 2)
        return cek__fail(CEK_INVALID,
                         "the model's output is an image %s where one value per "
                         "class is wanted: end it with "
                         "flatten and linear",
                         text);
    if (o->loss == CEK_LOSS_MSE && o->target_columns != 0 && o->target_columns != outputs)
        return cek__fail(CEK_INVALID,
                         "squared error of outputs (%lld,%lld) against targets "
                         "(%lld,%u): shapes must be equal",
                         (long long)o->rows, (long long)outputs, (long long)o->rows, o->target_columns);
    return CEK_OK;
}

/* Of parameters with rounded copies these are read, but for what is computed ahead: who predicts has all as they are,
 * who trains perhaps not. */
static cek_status copies_check(const cek__layout *layout, const cek__graph *graph, bool ahead)
{
    for (int i = 0; i < graph->length; i++) {
        const cek__part *part = cek__graph_at(graph, i);

        if (!ahead && part->kind == CEK__PART_PARAMETER && layout->rounded[part->parameter] &&
            graph->flows[part->output[0]].type == CEK_DTYPE_NONE)
            return cek__fail(CEK_UNSUPPORTED,
                             "node %d (%s): its parameter is read in %s for one purpose and not for another",
                             part->node, part->name, cek_dtype_name(layout->low));
    }
    return CEK_OK;
}

/* ---- building ---- */

static cek_status piece_value(cek__program *program, const cek__layout *layout, cek__place place,
                              const cek__placement *p, int *out)
{
    const bool rounded = place == CEK__PLACE_ROUNDED;
    const uint64_t bytes = cek_dtype_bytes(rounded ? layout->low : layout->type),
                   first = p->first - (rounded ? layout->bucket_exact[p->bucket] : 0);

    return cek__program_value(
        program,
        (cek__value){ .place = place, .bucket = p->bucket, .offset = first * bytes, .bytes = p->count * bytes }, out);
}

/* A value for each parameter that has one there; of what lies in pieces one that stands before those of its pieces. */
static cek_status bucket_values(cek__program *program, const cek__layout *layout, cek__place place, int **out)
{
    cek_status st;
    int value;

    CEK_TRY(cek__calloc(layout->parameter_count, sizeof **out, out));
    for (size_t i = 0; i < layout->parameter_count; i++) {
        size_t first = layout->piece_of[i], pieces = layout->piece_of[i + 1] - first;

        if (place == CEK__PLACE_ROUNDED && !layout->rounded[i])
            continue;
        CEK_TRY(piece_value(program, layout, place, &layout->placement[first], &(*out)[i]));
        if (pieces == 1)
            continue;
        program->values[(*out)[i]].pieces = (int)pieces;
        for (size_t k = first; k < first + pieces; k++)
            CEK_TRY(piece_value(program, layout, place, &layout->placement[k], &value));
    }
    return CEK_OK;
out:
    return st;
}

static bool reads_below(const cek__program *program, const cek__instruction *in, size_t bucket)
{
    for (uint32_t slot = 0; slot < in->slots; slot++) {
        const cek__value *v = &program->values[in->operand[slot]];

        if ((v->place == CEK__PLACE_PARAMETER || v->place == CEK__PLACE_ROUNDED) && v->bucket < bucket)
            return true;
    }
    return false;
}

/* Everything so far is forward. */
static void forward_cut(cek__plan *plan, const size_t *reads)
{
    size_t segment = 0;

    for (int i = 0; i < plan->program.count; i++)
        while (segment + 1 < plan->forward_count &&
               reads_below(&plan->program, &plan->program.instructions[i], reads[segment])) {
            plan->stretches[segment++].end = i;
            plan->stretches[segment].begin = i;
        }
    plan->stretches[segment].end = plan->program.count;
}

/* Appends the segment that ends before instruction `end`. */
static void segment_add(cek__plan *plan, int end, size_t buckets)
{
    size_t at = stretch_of(plan, plan->segment_count, false);
    int begin = plan->stretches[at - 1].end;

    plan->stretches[at] = (cek__stretch){ begin, end, false };
    plan->stretches[at + 1] = (cek__stretch){ begin, end, true };
    plan->segment_buckets[plan->segment_count++] = buckets;
}

/* A bucket is ready behind the last instruction of backward that writes its gradients or reads its
 * parameters; buckets count as ready in their order. */
static cek_status segments_make(cek__plan *plan)
{
    cek_status st;
    int *ready = NULL;

    CEK_TRY(cek__calloc(plan->bucket_count, sizeof *ready, &ready));
    CEK_TRY(cek__calloc(plan->bucket_count, sizeof *plan->segment_buckets, &plan->segment_buckets));
    for (int i = plan->stretches[plan->forward_count - 1].end; i < plan->program.count; i++) {
        const cek__instruction *in = &plan->program.instructions[i];

        for (uint32_t slot = 0; slot < in->slots; slot++) {
            const cek__value *v = &plan->program.values[in->operand[slot]];

            if (v->place >= CEK__PLACE_PARAMETER)
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

static cek_status passes_lower(cek__plan *plan, const cek__layout *layout, bool training, cek__lowering *l)
{
    cek_status st;
    int *parameters = NULL, *rounded = NULL, *gradients = NULL;

    CEK_TRY(bucket_values(l->program, layout, CEK__PLACE_PARAMETER, &parameters));
    CEK_TRY(bucket_values(l->program, layout, CEK__PLACE_ROUNDED, &rounded));
    CEK_TRY(bucket_values(l->program, layout, CEK__PLACE_GRADIENT, &gradients));
    CEK_TRY(cek__program_value(l->program, (cek__value){ .place = CEK__PLACE_STEP, .bytes = sizeof(cek_step_block) },
                               &l->step));
    CEK_TRY(cek__program_value(l->program, (cek__value){ .place = CEK__PLACE_BATCH, .bytes = sizeof(cek_batch_block) },
                               &l->batch));
    l->parameter = parameters;
    l->rounded = rounded;
    l->gradient = gradients;
    CEK_TRY(cek__lower_begin(l));
    CEK_TRY(cek__lower_forward(l));
    CEK_TRY(cek__calloc(plan->forward_count + 2 * plan->bucket_count + 2, sizeof *plan->stretches, &plan->stretches));
    plan->stretches[0].begin = l->program->ahead;
    forward_cut(plan, layout->forward_reads);
    if (training) {
        CEK_TRY(cek__lower_backward(l));
        CEK_TRY(segments_make(plan));
    }
    plan->stretches[whole_stretch(plan)] = (cek__stretch){ 0, plan->program.count, false };
    plan->stretches[ahead_stretch(plan)] = (cek__stretch){ 0, plan->program.ahead, false };
    st = cek__program_finish(l->program);
out:
    cek__lower_end(l);
    free(parameters);
    free(rounded);
    free(gradients);
    return st;
}

/* Which parameters lie in pieces. */
static cek_status divided_find(const cek__layout *layout, bool **out)
{
    cek_status st;

    CEK_TRY(cek__calloc(layout->parameter_count, sizeof **out, out));
    for (size_t i = 0; i < layout->parameter_count; i++)
        (*out)[i] = layout->piece_of[i + 1] - layout->piece_of[i] > 1;
out:
    return st;
}

static void needs_collect(cek__plan *plan)
{
    cek__plan_needs *needs = &plan->needs;
    uint64_t *const bytes[CEK__PLACE_SINGLE] = {
        [CEK__PLACE_TARGET] = &needs->target_bytes,
        [CEK__PLACE_OUTPUT] = &needs->output_bytes,
    };

    needs->arena_bytes = plan->program.arena_bytes;
    needs->arena_piece = plan->program.arena_piece;
    needs->workspace_bytes = plan->program.workspace_bytes;
    needs->left_bytes = plan->program.left_bytes;
    needs->left_workspace_bytes = plan->program.left_workspace_bytes;
    needs->operations = plan->program.count;
    for (int v = 1; v < plan->program.value_count; v++) {
        const cek__value *value = &plan->program.values[v];

        if (value->place < CEK__PLACE_SINGLE && bytes[value->place] && value->first >= 0)
            *bytes[value->place] = value->bytes;
    }
}

cek_status cek__plan_create(const cek_model *model, const cek__layout *layout, cek_device *device,
                            const cek__plan_options *options, cek__plan **out)
{
    cek_status st;
    cek__plan *plan = NULL;
    cek__graph graph = { 0 };
    bool *divided = NULL;
    bool classes = options->loss == CEK_LOSS_CROSS_ENTROPY;
    cek__folding folding = { .scales = options->math != CEK_MATH_STRICT };
    const cek__purpose purpose = { .training = options->training,
                                   .images = layout->image,
                                   .softmax = options->softmax,
                                   .loss = options->loss,
                                   .outputs = options->outputs,
                                   .output_count = options->output_count,
                                   .target_type = classes ? CEK_I32 : CEK_DTYPE_NONE,
                                   .low = layout->low,
                                   .rounded = layout->rounded,
                                   .folding = options->ahead ? &folding : NULL };
    cek__lowering l = { .graph = &graph,
                        .rows = options->rows,
                        .type = layout->type,
                        .input_type = options->input_type,
                        .scale = model->scale,
                        .offset = model->offset };

    *out = NULL;
    CEK_TRY(options_check(model, options));
    CEK_TRY(divided_find(layout, &divided));
    folding.divided = divided;
    CEK_TRY(cek__model_compose(model, &purpose, &graph));
    CEK_TRY(copies_check(layout, &graph, options->ahead));
    CEK_TRY(cek__calloc(1, sizeof *plan, &plan));
    plan->bucket_count = layout->bucket_count;
    plan->forward_count = options->training && options->cut_forward ? layout->forward_count : 1;
    CEK_TRY(cek__program_init(&plan->program, device, options->math));
    plan->program.fallback = options->fallback;
    plan->program.packs = options->ahead && !options->unpacked;
    if (device && options->arena_piece) /* what a plan on paper needs is asked before it is known how much fits */
        plan->program.arena_piece = options->arena_piece;
    l.program = &plan->program;
    CEK_TRY(passes_lower(plan, layout, options->training, &l));
    needs_collect(plan);
    plan->needs.input_bytes = cek__graph_input_at(&model->graph, model->input_count, options->rows,
                                                  options->input_type);
    *out = plan;
    plan = NULL;
    st = CEK_OK;
out:
    cek__graph_clear(&graph);
    free(divided);
    cek__plan_free(plan);
    if (st == CEK_UNSUPPORTED && layout->low) /* which an operation may be lacking in alone */
        return cek__fail_prefix(st, "computing in %s", cek_dtype_name(layout->low));
    return st;
}

void cek__plan_free(cek__plan *plan)
{
    if (!plan)
        return;
    for (size_t i = 0; i < CEK__PLAN_BINDINGS; i++)
        cek__binding_free(plan->bindings[i]);
    cek__program_clear(&plan->program);
    free(plan->stretches);
    free(plan->segment_buckets);
    free(plan);
}

const cek__plan_needs *cek__plan_get_needs(const cek__plan *plan)
{
    return &plan->needs;
}

bool cek__plan_next_left(const cek__plan *plan, int *at, cek__left *out)
{
    for (int i = *at; i < plan->program.count; i++) {
        const cek__instruction *in = &plan->program.instructions[i];

        if (!cek__program_left(&plan->program, in))
            continue;
        *at = i + 1;
        *out = (cek__left){ in->what, cek__operation_name(in->kind) };
        return true;
    }
    return false;
}

/* ---- binding and running ---- */

cek_status cek__plan_bind(cek__plan *plan, size_t index, const cek__plan_binding *binding)
{
    const cek__places places = {
        .single = {
            [CEK__PLACE_INPUT] = binding->input,
            [CEK__PLACE_TARGET] = binding->target,   [CEK__PLACE_OUTPUT] = binding->output,
            [CEK__PLACE_STEP] = binding->step_block, [CEK__PLACE_BATCH] = binding->batch_block,
            [CEK__PLACE_LOSS] = binding->loss,       [CEK__PLACE_CORRECT] = binding->correct,
            [CEK__PLACE_BUFFERS] = binding->buffers, [CEK__PLACE_STATISTICS] = binding->statistics,
            [CEK__PLACE_CONSTANTS] = binding->constants,
        },
        .arena = binding->arena,
        .parameters = binding->parameters,
        .rounded = binding->rounded,
        .gradients = binding->gradients,
        .workspace = binding->workspace,
        .fallback = binding->fallback,
    };

    cek__binding_free(plan->bindings[index]);
    return cek__binding_create(&plan->program, plan->stretches, ahead_stretch(plan) + 1, &places,
                               &plan->bindings[index]);
}

size_t cek__plan_forward_count(const cek__plan *plan)
{
    return plan->forward_count;
}

cek_status cek__plan_forward_segment(cek__plan *plan, size_t index, cek_stream *stream, size_t segment)
{
    return cek__binding_run(plan->bindings[index], stream, segment);
}

cek_status cek__plan_prepare(cek__plan *plan, size_t index, cek_stream *stream)
{
    cek_status st = cek__binding_run(plan->bindings[index], stream, ahead_stretch(plan));

    return st == CEK_OK ? cek__binding_pack(plan->bindings[index], stream) : st;
}

cek_status cek__plan_forward(cek__plan *plan, size_t index, cek_stream *stream)
{
    cek_status st = CEK_OK;

    for (size_t i = 0; i < plan->forward_count; i++)
        CEK_TRY(cek__plan_forward_segment(plan, index, stream, i));
out:
    return st;
}

size_t cek__plan_segment_count(const cek__plan *plan)
{
    return plan->segment_count;
}

size_t cek__plan_segment_buckets(const cek__plan *plan, size_t segment)
{
    return plan->segment_buckets[segment];
}

cek_status cek__plan_backward(cek__plan *plan, size_t index, cek_stream *stream, size_t segment, bool accumulate)
{
    return cek__binding_run(plan->bindings[index], stream, stretch_of(plan, segment, accumulate));
}

cek_status cek__plan_step(cek__plan *plan, size_t index, cek_stream *stream, const cek__tail *tail)
{
    return cek__binding_run_with(plan->bindings[index], stream, whole_stretch(plan), tail);
}

bool cek__plan_step_is_refused(const cek__plan *plan, size_t index)
{
    return cek__binding_is_refused(plan->bindings[index], whole_stretch(plan));
}
