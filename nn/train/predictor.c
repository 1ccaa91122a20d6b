/* predictor.c - inference over several devices: outputs in the order of the inputs. */
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/options.h"
#include "core/base/status.h"
#include "nn/model/model.h"
#include "nn/train/samples.h"
#include "nn/train/team.h"

struct cek_predictor {
    cek__layout *layout;
    cek__team team;
    int64_t batch;
    cek_dtype input_type;
    cek__row row;
    uint64_t row_values; /* of all outputs */
    int rank;            /* of a sample */
    int64_t shape[CEK_RANK_MAX];
    size_t output_count;
    int outputs[CEK_OUTPUTS_MOST]; /* nodes, */
    cek__dims dims[CEK_OUTPUTS_MOST];
    uint64_t values[CEK_OUTPUTS_MOST]; /* of a sample */
    bool named;
};

static cek_status outputs_find(cek_predictor *p, const cek_model *model, const cek_predictor_options *o)
{
    if (o->output_count > CEK_OUTPUTS_MOST || (o->output_count > 0) != (o->outputs != NULL))
        return cek__fail(CEK_INVALID, "%u names of outputs: 1 to %d, or NULL", o->output_count, CEK_OUTPUTS_MOST);
    p->named = o->output_count > 0;
    p->output_count = p->named ? o->output_count : 1;
    p->outputs[0] = cek__model_output(model);
    for (size_t i = 0; i < o->output_count; i++) {
        if (!o->outputs[i])
            return cek__fail(CEK_INVALID, "outputs[%zu] is NULL", i);
        p->outputs[i] = cek__model_find(model, o->outputs[i]);
        if (p->outputs[i] < 0)
            return cek__fail(CEK_NOT_FOUND, "no node of the model is called \"%s\"", o->outputs[i]);
    }
    for (size_t i = 0; i < p->output_count; i++) {
        p->dims[i] = *cek__node_dims(model, p->outputs[i]);
        p->values[i] = (uint64_t)cek__node_elements(model, p->outputs[i]);
        p->row_values += p->values[i];
    }
    return CEK_OK;
}

cek_status cek_predictor_create(const cek_model *model, cek_device *const *devices, size_t count,
                                const cek_predictor_options *options, cek_predictor **out)
{
    cek_status st;
    cek_predictor *p = NULL;
    cek_predictor_options o;
    cek__team_options team = { 0 };
    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(model);
    CEK_TRY(cek__options_take("cek_predictor_create", &o, sizeof o, options));
    CEK_TRY(cek__calloc(1, sizeof *p, &p));
    p->batch = o.batch ? o.batch : 256;
    if (model->whole)
        p->batch = 1;
    if (p->batch < 1 || p->batch > INT32_MAX)
        CEK_FAIL(CEK_INVALID, "batch of %lld samples", (long long)p->batch);
    CEK_TRY(cek__model_take_input_type(model, o.input_type, &p->input_type));
    if (o.type != CEK_DTYPE_NONE && o.type != CEK_F32 && o.type != CEK_BF16 && o.type != CEK_F16)
        CEK_FAIL(CEK_UNSUPPORTED, "predicting in %s: f32, bf16 and f16 are offered", cek_dtype_name(o.type));
    p->rank = cek_model_input_shape(model, p->shape);
    cek__samples_row(model, p->input_type, NULL, &p->row);
    CEK_TRY(outputs_find(p, model, &o));
    team.batch = p->batch;
    team.replica = (cek__replica_options){ .softmax = o.softmax,
                                           .outputs = p->named ? p->outputs : NULL,
                                           .output_count = p->named ? p->output_count : 0,
                                           .input_type = p->input_type,
                                           .memory_limit = o.memory_limit,
                                           .math = o.math,
                                           .fallback = o.fallback };
    CEK_TRY(cek__layout_create(model, o.type ? o.type : CEK_F32, &p->layout));
    team.layout = p->layout;
    CEK_TRY(cek__team_create(model, devices, count, &team, &p->team));
    *out = p;
    return CEK_OK;
out:
    cek_predictor_free(p);
    return st;
}

void cek_predictor_free(cek_predictor *p)
{
    if (!p)
        return;
    cek__team_close(&p->team);
    cek__layout_free(p->layout);
    free(p);
}

typedef struct job {
    cek_predictor *predictor;
    cek__share whole;
    float *rows; /* of all outputs */
} job;

static cek_status predict_member(void *user, size_t index)
{
    const job *j = user;
    cek_predictor *p = j->predictor;
    cek__share share = cek__team_share(&p->team, index, &j->whole, &p->row);
    return cek__replica_predict(p->team.replicas[index], &share, j->rows + share.sample_base * p->row_values);
}

/* From the rows of all outputs to those of each. */
static void outputs_part(const cek_predictor *p, const float *rows, int64_t first, int64_t count, float *const *outputs)
{
    for (size_t i = 0, at = 0; i < p->output_count; at += p->values[i++])
        for (int64_t n = 0; n < count; n++)
            memcpy(outputs[i] + (size_t)(first + n) * p->values[i], rows + (size_t)n * p->row_values + at,
                   p->values[i] * sizeof *rows);
}

/* What may be done where nothing is to be read. */
static cek_status arrays_check(const cek_predictor *p, const void *const *inputs, int64_t count, float *const *outputs)
{
    if (count < 0)
        return cek__fail(CEK_INVALID, "%lld samples to predict", (long long)count);
    for (size_t i = 0; count > 0 && i < p->row.inputs; i++)
        if (!inputs[i])
            return cek__fail(CEK_INVALID, "inputs[%zu] is NULL", i);
    for (size_t i = 0; count > 0 && i < p->output_count; i++)
        if (!outputs[i])
            return cek__fail(CEK_INVALID, "outputs[%zu] is NULL", i);
    return CEK_OK;
}

cek_status cek_predictor_run_arrays(cek_predictor *p, const void *const *inputs, int64_t count, float *const *outputs)
{
    cek_status st;
    float *rows = NULL;
    CEK__NOT_NULL_AS(p, predictor);
    CEK__NOT_NULL(inputs);
    CEK__NOT_NULL(outputs);
    CEK_TRY(arrays_check(p, inputs, count, outputs));
    if (p->output_count > 1)
        CEK_TRY(cek__alloc_array((size_t)(count < p->batch ? count : p->batch) * p->row_values, sizeof *rows, &rows));
    for (int64_t first = 0; first < count; first += p->batch) {
        int64_t left = count - first, now = left < p->batch ? left : p->batch;
        job j = { .predictor = p, .rows = rows ? rows : outputs[0] + (uint64_t)first * p->row_values };
        for (size_t i = 0; i < p->row.inputs; i++)
            j.whole.inputs[i] = (const unsigned char *)inputs[i] + (uint64_t)first * p->row.input[i];
        cek__team_deal(&p->team, now);
        CEK_TRY(cek__team_run(&p->team, predict_member, &j));
        if (rows)
            outputs_part(p, rows, first, now, outputs);
    }
out:
    free(rows);
    return st;
}

cek_status cek_predictor_run(cek_predictor *p, const void *inputs, int64_t count, float *outputs)
{
    cek_status st;
    CEK__NOT_NULL_AS(p, predictor);
    if (count > 0) {
        CEK__NOT_NULL(inputs);
        CEK__NOT_NULL(outputs);
    }
    CEK_TRY(cek__samples_single(&p->row));
    if (p->output_count > 1)
        CEK_FAIL(CEK_INVALID, "the predictor has %zu outputs: cek_predictor_run_arrays gives them", p->output_count);
    return cek_predictor_run_arrays(p, &inputs, count, &outputs);
out:
    return st;
}

size_t cek_predictor_output_count(const cek_predictor *p)
{
    return p ? p->output_count : 0;
}

int cek_predictor_output_shape(const cek_predictor *p, size_t index, int64_t shape[CEK_RANK_MAX])
{
    return cek__dims_sample(p && index < p->output_count ? &p->dims[index] : NULL, shape);
}

cek_status cek_predictor_run_dataset(cek_predictor *p, const cek_dataset *dataset, float *outputs)
{
    cek_status st;
    cek_loader *loader = NULL;
    const cek_batch *batch = NULL;
    cek_loader_options o = { .size = sizeof o, .workers = CEK_WORKERS_AUTO };
    uint64_t done = 0;
    CEK__NOT_NULL_AS(p, predictor);
    CEK__NOT_NULL(dataset);
    CEK__NOT_NULL(outputs);
    o.batch = cek__samples_batch(dataset, p->batch);
    CEK_TRY(cek__samples_single(&p->row));
    CEK_TRY(cek__samples_fit(p->rank, p->shape, dataset, "the dataset"));
    CEK_TRY(cek_loader_create(dataset, &o, &loader));
    CEK_TRY(cek_loader_start(loader, 0));
    for (;;) {
        CEK_TRY(cek_loader_next(loader, &batch));
        if (!batch)
            break;
        if (batch->input_type != p->input_type)
            CEK_FAIL(CEK_INVALID, "samples of type %s, this predictor takes %s", cek_dtype_name(batch->input_type),
                     cek_dtype_name(p->input_type));
        CEK_TRY(cek_predictor_run(p, batch->inputs, batch->count, outputs + done * p->row_values));
        done += (uint64_t)batch->count;
    }
    st = CEK_OK;
out:
    cek_loader_free(loader);
    return st;
}
