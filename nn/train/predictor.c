/* predictor.c - inference over several devices: outputs in the order of the inputs. */
#include <stdlib.h>

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
    uint64_t input_row_bytes, outputs;
    int rank; /* of a sample */
    int64_t shape[CEK_RANK_MAX];
};

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
    if (p->batch < 1 || p->batch > INT32_MAX)
        CEK_FAIL(CEK_INVALID, "batch of %lld samples", (long long)p->batch);
    CEK_TRY(cek__model_take_input_type(model, o.input_type, &p->input_type));
    p->input_row_bytes = (uint64_t)cek__model_inputs(model) * cek_dtype_bytes(p->input_type);
    p->rank = cek_model_input_shape(model, p->shape);
    p->outputs = (uint64_t)cek__model_outputs(model);
    team.batch = p->batch;
    team.replica =
        (cek__replica_options){ .softmax = o.softmax, .input_type = p->input_type, .memory_limit = o.memory_limit };
    CEK_TRY(cek__layout_create(model, CEK_F32, &p->layout));
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
    const void *inputs;
    float *outputs;
} job;

static cek_status predict_member(void *user, size_t index)
{
    const job *j = user;
    cek_predictor *p = j->predictor;
    cek__share share = cek__team_share(&p->team, index, j->inputs, p->input_row_bytes, NULL, 0);
    return cek__replica_predict(p->team.replicas[index], &share, j->outputs + share.sample_base * p->outputs);
}

cek_status cek_predictor_run(cek_predictor *p, const void *inputs, int64_t count, float *outputs)
{
    cek_status st;
    CEK__NOT_NULL_AS(p, predictor);
    if (count > 0) {
        CEK__NOT_NULL(inputs);
        CEK__NOT_NULL(outputs);
    }
    if (count < 0)
        CEK_FAIL(CEK_INVALID, "%lld samples to predict", (long long)count);
    for (int64_t first = 0; first < count; first += p->batch) {
        int64_t left = count - first;
        job j = { p, (const unsigned char *)inputs + (uint64_t)first * p->input_row_bytes,
                  outputs + (uint64_t)first * p->outputs };
        cek__team_deal(&p->team, left < p->batch ? left : p->batch);
        CEK_TRY(cek__team_run(&p->team, predict_member, &j));
    }
    return CEK_OK;
out:
    return st;
}

cek_status cek_predictor_run_dataset(cek_predictor *p, const cek_dataset *dataset, float *outputs)
{
    cek_status st;
    cek_loader *loader = NULL;
    const cek_batch *batch = NULL;
    cek_loader_options o = { .size = sizeof o, .workers = 1 };
    uint64_t done = 0;
    CEK__NOT_NULL_AS(p, predictor);
    CEK__NOT_NULL(dataset);
    CEK__NOT_NULL(outputs);
    o.batch = cek__samples_batch(dataset, p->batch);
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
        CEK_TRY(cek_predictor_run(p, batch->inputs, batch->count, outputs + done * p->outputs));
        done += (uint64_t)batch->count;
    }
    st = CEK_OK;
out:
    cek_loader_free(loader);
    return st;
}
