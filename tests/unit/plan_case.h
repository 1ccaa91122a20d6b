/* plan_case.h - a case for plans: a model with data, computed by a plan on a device and by the oracle.
 *
 * Header only; for plan*.c. */
#ifndef CEK_TESTS_UNIT_PLAN_CASE_H
#define CEK_TESTS_UNIT_PLAN_CASE_H

#include "model_oracle.h"
#include "plan_run.h"
#include "tests/suite.h"

enum { ROWS_MAX = 8 };

typedef struct test_case {
    cek_model *model;
    cek__plan_options options;
    int64_t valid;
    uint64_t seed;
    double *inputs;       /* PyTorch's order */
    float *device_inputs; /* H,W,C */
    int32_t labels[ROWS_MAX];
    double *targets;
    double inv_n;
    uint64_t piece_bytes; /* as in plan_run_open_cut */
} test_case;

static inline double uniform(uint64_t seed, uint64_t stream, int64_t i)
{
    return cek__random_uniform(seed, cek__stream(CEK__STREAM_USER, stream), (uint64_t)i);
}

static inline void case_make(test_case *c, cek_model *model, const cek__plan_options *options, int64_t valid,
                             uint64_t seed)
{
    int64_t in = cek__model_inputs(model, 0), out = cek__model_outputs(model), rows = options->rows;
    const cek__dims *dims = cek__node_dims(model, 0);
    int64_t hw = dims->rank == 4 ? dims->size[2] * dims->size[3] : 1, channels = in / hw;

    ck_assert_int_le(rows, ROWS_MAX);
    *c = (test_case){ .model = model, .options = *options, .valid = valid, .seed = seed };
    c->inputs = malloc((size_t)(rows * in) * sizeof *c->inputs);
    c->device_inputs = malloc((size_t)(rows * in) * sizeof *c->device_inputs);
    c->targets = malloc((size_t)(rows * out) * sizeof *c->targets);
    for (int64_t i = 0; i < rows * in; i++) {
        int64_t row = i / in, e = i % in;
        float x = (float)(2 * uniform(seed, 1, i) - 1);

        c->inputs[i] = x;
        c->device_inputs[row * in + e % hw * channels + e / hw] = x;
    }
    for (int64_t i = 0; i < rows * out; i++)
        c->targets[i] = uniform(seed, 2, i);
    for (int64_t i = 0; i < rows; i++)
        c->labels[i] = (int32_t)(uniform(seed, 3, i) * (double)out);
    c->inv_n = 1 / (double)valid;
}

static inline void case_clear(test_case *c)
{
    free(c->inputs);
    free(c->device_inputs);
    free(c->targets);
}

static inline void case_upload(const test_case *c, plan_run *r, int64_t first, int64_t valid)
{
    int64_t in = cek__model_inputs(c->model, 0), out = cek__model_outputs(c->model), rows = r->options.rows;

    plan_run_put(r, r->binding.input, c->device_inputs + first * in, (uint64_t)(rows * in) * sizeof(float));
    plan_run_blocks(r, c->seed, c->inv_n, 100 + (uint64_t)first, valid);
    if (r->options.loss == CEK_LOSS_CROSS_ENTROPY)
        plan_run_put(r, r->binding.target, c->labels + first, (uint64_t)rows * sizeof *c->labels);
    else if (r->options.loss == CEK_LOSS_MSE && r->layout->type == CEK_F64)
        plan_run_put(r, r->binding.target, c->targets + first * out, (uint64_t)(rows * out) * sizeof *c->targets);
}

static inline void case_oracle(const test_case *c, oracle *o)
{
    *o = (oracle){ .model = c->model,
                   .rows = c->options.rows,
                   .valid = c->valid,
                   .training = c->options.training,
                   .key = c->seed,
                   .base = 100,
                   .loss_kind = c->options.loss,
                   .inputs = c->inputs,
                   .labels = c->labels,
                   .targets = c->targets,
                   .inv_n = c->inv_n };
    oracle_run(o);
}

static inline void gradients_near(plan_run *r, const oracle *o, double factor, double tolerance)
{
    for (size_t p = 0; p < r->model->parameter_count; p++) {
        const cek_parameter *info = &r->model->parameters[p].public;
        double *got = plan_run_gradient(r, p);

        for (int64_t i = 0; i < info->count; i++)
            got[i] /= factor;
        all_near(info->name, got, o->parameter_grad[p], info->count, tolerance);
        free(got);
    }
}

/* Trains one step of the case on the bench and looks at everything that comes out. Twice: a plan can be run again. */
static inline void case_trains(bench *b, const test_case *c, cek_dtype type, double tolerance)
{
    plan_run r;
    oracle o;

    case_oracle(c, &o);
    plan_run_open_cut(&r, b, c->model, type, c->piece_bytes, &c->options);
    case_upload(c, &r, 0, c->valid);
    for (int again = 0; again < 2; again++) {
        plan_run_step(&r, false);
        gradients_near(&r, &o, 1, tolerance);
    }
    all_near("loss", (double[]){ plan_run_loss(&r) / 2 }, &o.loss, 1, tolerance);
    if (c->options.loss == CEK_LOSS_CROSS_ENTROPY)
        ck_assert_int_eq(plan_run_correct(&r), 2 * o.correct);
    plan_run_close(&r);
    oracle_clear(&o);
}

static const cek__plan_options train_ce = {
    .rows = 5, .input_type = CEK_F32, .loss = CEK_LOSS_CROSS_ENTROPY, .training = true
};
static const cek__plan_options train_mse = { .rows = 5, .input_type = CEK_F32, .loss = CEK_LOSS_MSE, .training = true };

static inline cek_model *parsed(const char *text, int rank, const int64_t *shape)
{
    cek_model *model;

    assert_ok(cek_model_parse(text, rank, shape, &model));
    cek_model_init(model, 7);
    return model;
}

static inline void text_trains(bench *b, const char *text, int rank, const int64_t *shape,
                               const cek__plan_options *options, int64_t valid)
{
    test_case c;
    cek_model *model = parsed(text, rank, shape);

    cek_model_set_input_scale(model, 1.5, -0.25);
    case_make(&c, model, options, valid, 11);
    case_trains(b, &c, CEK_F64, 1e-10);
    case_clear(&c);
    cek_model_free(model);
}

#define IMAGE   \
    (int64_t[]) \
    {           \
        3, 9, 8 \
    }

#endif
