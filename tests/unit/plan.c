/* plan.c - plans compute what their models mean: forward, loss and all gradients against plain double-precision loops; the
 * memory they ask for is what was estimated; what a device refuses is done another way. */
#include <math.h>

#include "model_oracle.h"
#include "plan_run.h"

enum { ROWS_MAX = 8 };

/* ---- a case: a model with data, computed by a plan and by the oracle ---- */

typedef struct test_case {
    cek_model *model;
    cek__plan_options options;
    int64_t valid;
    uint64_t seed;
    double *inputs;      /* PyTorch's order */
    float *device_inputs; /* H,W,C */
    int32_t labels[ROWS_MAX];
    double *targets;
    float weights[ROWS_MAX];
    double inv_n;
} test_case;

static double uniform(uint64_t seed, uint64_t stream, int64_t i)
{
    return cek__random_uniform(seed, cek__stream(CEK__STREAM_USER, stream), (uint64_t)i);
}

static void case_make(test_case *c, cek_model *model, const cek__plan_options *options, int64_t valid, uint64_t seed)
{
    int64_t in = cek__model_inputs(model), out = cek__model_outputs(model), rows = options->rows;
    const cek__shape *shape = &model->nodes[0].shape;
    int64_t hw = shape->rank == 3 ? shape->dim[1] * shape->dim[2] : 1, channels = in / hw;
    double weight_sum = 0;

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
    for (int64_t i = 0; i < rows; i++) {
        c->labels[i] = (int32_t)(uniform(seed, 3, i) * (double)out);
        c->weights[i] = options->weighted ? (float)(i % 3) / 2 : 1;
        weight_sum += i < valid ? c->weights[i] : 0;
    }
    c->inv_n = 1 / weight_sum;
}

static void case_clear(test_case *c)
{
    free(c->inputs);
    free(c->device_inputs);
    free(c->targets);
}

static void case_upload(const test_case *c, plan_run *r, int64_t first, int64_t valid)
{
    int64_t in = cek__model_inputs(c->model), out = cek__model_outputs(c->model), rows = r->options.rows;

    plan_run_put(r, r->binding.input, c->device_inputs + first * in, (uint64_t)(rows * in) * sizeof(float));
    plan_run_blocks(r, c->seed, c->inv_n, 100 + (uint64_t)first, valid);
    if (r->options.loss == CEK_LOSS_CROSS_ENTROPY)
        plan_run_put(r, r->binding.target, c->labels + first, (uint64_t)rows * sizeof *c->labels);
    else if (r->options.loss == CEK_LOSS_MSE && r->layout->type == CEK_F64)
        plan_run_put(r, r->binding.target, c->targets + first * out, (uint64_t)(rows * out) * sizeof *c->targets);
    if (r->options.weighted)
        plan_run_put(r, r->binding.weights, c->weights + first, (uint64_t)rows * sizeof *c->weights);
}

static void case_oracle(const test_case *c, oracle *o)
{
    *o = (oracle){ .model = c->model, .rows = c->options.rows, .valid = c->valid, .training = c->options.training,
                   .key = c->seed, .base = 100, .loss_kind = c->options.loss, .inputs = c->inputs, .labels = c->labels,
                   .targets = c->targets, .weights = c->weights, .inv_n = c->inv_n };
    oracle_run(o);
}

static void gradients_near(plan_run *r, const oracle *o, double factor, double tolerance)
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
static void case_trains(bench *b, const test_case *c, cek_dtype type, double tolerance)
{
    plan_run r;
    oracle o;

    case_oracle(c, &o);
    plan_run_open(&r, b, c->model, type, &c->options);
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

static const cek__plan_options train_ce = { .rows = 5, .input_type = CEK_F32, .loss = CEK_LOSS_CROSS_ENTROPY,
                                            .training = true };
static const cek__plan_options train_mse = { .rows = 5, .input_type = CEK_F32, .loss = CEK_LOSS_MSE, .training = true };

static cek_model *parsed(const char *text, int rank, const int64_t *shape)
{
    cek_model *model;

    assert_ok(cek_model_parse(text, rank, shape, &model));
    cek_model_init(model, 7);
    return model;
}

static void text_trains(bench *b, const char *text, int rank, const int64_t *shape, const cek__plan_options *options,
                        int64_t valid)
{
    test_case c;
    cek_model *model = parsed(text, rank, shape);

    cek_model_set_input_scale(model, 1.5, -0.25);
    case_make(&c, model, options, valid, 11);
    case_trains(b, &c, CEK_F64, 1e-10);
    case_clear(&c);
    cek_model_free(model);
}

#define IMAGE (int64_t[]){ 3, 9, 8 }

/* ---- tests ---- */

START_TEST(gradients_of_a_classifier_are_the_double_ones)
{
    bench b;

    bench_open(&b, "reference:0");
    text_trains(&b, "conv:4,3,p1 relu conv:6,3,p1 relu maxpool:2 flatten linear:12 relu dropout:0.5 linear:5", 3, IMAGE, &train_ce,
                5);
    text_trains(&b, "conv:6,3,s2,p1,g3,d2 tanh maxpool:2,s1,p1 flatten linear:7 sigmoid linear:4", 3, IMAGE, &train_ce, 3);
    text_trains(&b, "conv:4,2 gelu avgpool:3,s2,p1 dropout:0.25 conv:4,2 gap flatten linear:3", 3, IMAGE, &train_ce, 5);
    text_trains(&b, "relu maxpool:2 conv:5,2 relu dropout:0.3 maxpool:2 flatten linear:6 gelu linear:3", 3, IMAGE, &train_ce, 4);
    bench_close(&b);
}
END_TEST

START_TEST(gradients_of_a_regression_are_the_double_ones)
{
    bench b;
    cek__plan_options weighted = train_mse;

    weighted.weighted = true;
    bench_open(&b, "reference:0");
    text_trains(&b, "linear:16 relu linear:32 relu linear:1", 1, (int64_t[]){ 13 }, &train_mse, 5);
    text_trains(&b, "linear:9 tanh dropout:0.1 linear:4 sigmoid", 1, (int64_t[]){ 6 }, &weighted, 4);
    text_trains(&b, "conv:3,3 relu flatten", 3, IMAGE, &train_mse, 5); /* the output changes to PyTorch's order */
    text_trains(&b, "conv:3,3 sigmoid", 3, IMAGE, &weighted, 5);
    bench_close(&b);
}
END_TEST

/* A graph that has several readers everywhere: random layers on random earlier nodes, added together at the end. */
static cek_model *random_graph(uint64_t seed)
{
    cek_model *m;
    int heads[3], n = 0, sum;
    int64_t shape[3] = { 2, 6, 5 };

    assert_ok(cek_model_create(3, shape, &m));
    assert_ok(cek_model_conv2d(m, 0, &(cek_conv2d_layer){ .size = sizeof(cek_conv2d_layer), .out_channels = 4, .kernel_h = 3,
                                                          .kernel_w = 3, .pad_h = 1, .pad_w = 1 }, &n));
    for (int i = 0; i < 8; i++) {
        int from = 1 + (int)(uniform(seed, 10, i) * n), other = 1 + (int)(uniform(seed, 11, i) * n);

        switch ((int)(uniform(seed, 12, i) * 6)) {
        case 0:
            assert_ok(cek_model_conv2d(m, from, &(cek_conv2d_layer){ .size = sizeof(cek_conv2d_layer), .out_channels = 4,
                                                                     .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1,
                                                                     .groups = 2, .no_bias = i % 2 }, &n));
            break;
        case 1: assert_ok(cek_model_activation(m, from, 1 + (cek_activation)(uniform(seed, 13, i) * 4), &n)); break;
        case 2: assert_ok(cek_model_dropout(m, from, i % 2 ? 0.25 : 0, &n)); break;
        case 3:
            assert_ok(cek_model_pool2d(m, from, &(cek_pool2d_layer){ .size = sizeof(cek_pool2d_layer),
                                                                     .mode = i % 2 ? CEK_POOL_MAX : CEK_POOL_AVERAGE,
                                                                     .kernel_h = 3, .kernel_w = 3, .stride_h = 1, .stride_w = 1,
                                                                     .pad_h = 1, .pad_w = 1 }, &n));
            break;
        default: assert_ok(cek_model_add(m, from, other, &n));
        }
    }
    /* Every node that nobody reads joins a sum, so that all lead to the output. */
    sum = n;
    for (int k = 1; k < n; k++) {
        bool read = false;

        for (int j = k + 1; j < m->node_count; j++)
            for (int q = 0; q < m->nodes[j].inputs; q++)
                read |= m->nodes[j].input[q] == k;
        if (!read)
            assert_ok(cek_model_add(m, sum, k, &sum));
    }
    /* Three heads over one flattened image, one of them the image itself in another order. */
    assert_ok(cek_model_flatten(m, sum, &n));
    assert_ok(cek_model_linear(m, n, 120, true, &heads[0]));
    assert_ok(cek_model_activation(m, heads[0], CEK_ACT_RELU, &heads[0]));
    assert_ok(cek_model_add(m, heads[0], n, &heads[1]));
    assert_ok(cek_model_add(m, heads[1], heads[1], &heads[2]));
    assert_ok(cek_model_linear(m, heads[2], 4, false, NULL));
    cek_model_init(m, seed);
    return m;
}

static void random_graphs_train(bench *b, uint64_t count)
{
    for (uint64_t seed = 1; seed <= count; seed++) {
        test_case c;
        cek_model *m = random_graph(seed);

        case_make(&c, m, seed % 2 ? &train_ce : &train_mse, 4, seed);
        case_trains(b, &c, CEK_F64, 1e-10);
        case_clear(&c);
        cek_model_free(m);
    }
}

START_TEST(gradients_of_branches_add_up)
{
    bench b;

    bench_open(&b, "reference:0");
    bench_wrap(&b);
    random_graphs_train(&b, 40);
    /* Products must have added onto gradients that were there, or this test shows nothing about it. */
    ck_assert_int_gt(wrapped.accumulating, 20);
    ck_assert_int_gt(wrapped.fused, 20);
    bench_close(&b);
}
END_TEST

START_TEST(a_device_without_fused_epilogues_computes_the_same)
{
    bench b;

    bench_open(&b, "reference:0");
    bench_wrap(&b);
    wrapped.refuse_epilogues = true;
    random_graphs_train(&b, 10);
    text_trains(&b, "conv:4,3,p1 relu conv:6,3,p1 relu maxpool:2 flatten linear:12 relu dropout:0.5 linear:5", 3, IMAGE, &train_ce,
                5);
    text_trains(&b, "linear:9 tanh linear:8 sigmoid linear:7 gelu linear:2", 1, (int64_t[]){ 6 }, &train_mse, 5);
    ck_assert_int_gt(wrapped.refused, 10);
    ck_assert_int_eq(wrapped.fused, 0);
    bench_close(&b);
}
END_TEST

START_TEST(micro_batches_accumulate_to_the_whole)
{
    bench b;
    test_case c;
    plan_run r;
    oracle o;
    cek_model *m = parsed("conv:4,3,p1 relu maxpool:2 flatten linear:12 relu dropout:0.5 linear:5", 3, IMAGE);
    cek__plan_options whole = train_ce, part = train_ce;

    whole.rows = 6;
    part.rows = 2;
    bench_open(&b, "reference:0");
    case_make(&c, m, &whole, 6, 5);
    case_oracle(&c, &o);
    plan_run_open(&r, &b, m, CEK_F64, &part);
    for (int64_t first = 0; first < 6; first += 2) {
        case_upload(&c, &r, first, 2);
        plan_run_step(&r, first > 0);
    }
    gradients_near(&r, &o, 1, 1e-10);
    all_near("loss", (double[]){ plan_run_loss(&r) }, &o.loss, 1, 1e-10);
    ck_assert_int_eq(plan_run_correct(&r), o.correct);
    plan_run_close(&r);
    oracle_clear(&o);
    case_clear(&c);
    bench_close(&b);
    cek_model_free(m);
}
END_TEST

/* The values of the last node, from a plan of the given options. */
static void predicts(bench *b, const char *text, bool softmax)
{
    cek__plan_options options = { .rows = 5, .input_type = CEK_F32, .softmax = softmax };
    cek_model *m = parsed(text, 3, IMAGE);
    int64_t n = cek__model_outputs(m);
    double *got = malloc((size_t)(5 * n) * sizeof *got), *want;
    test_case c;
    plan_run r;
    oracle o;

    case_make(&c, m, &options, 5, 21);
    case_oracle(&c, &o);
    plan_run_open(&r, b, m, CEK_F64, &options);
    ck_assert_uint_eq(cek__plan_segment_count(r.plan), 0);
    case_upload(&c, &r, 0, 5);
    plan_run_step(&r, false);
    bench_download(b, got, r.binding.output, (uint64_t)(5 * n) * sizeof *got);
    want = o.value[m->node_count - 1];
    for (int64_t row = 0; softmax && row < 5; row++) {
        double sum = 0;

        for (int64_t i = 0; i < n; i++)
            sum += exp(want[row * n + i]);
        for (int64_t i = 0; i < n; i++)
            want[row * n + i] = exp(want[row * n + i]) / sum;
    }
    all_near(text, got, want, 5 * n, 1e-12);
    plan_run_close(&r);
    oracle_clear(&o);
    case_clear(&c);
    cek_model_free(m);
    free(got);
}

START_TEST(predictions_have_no_dropout_and_pytorchs_order)
{
    bench b;

    bench_open(&b, "reference:0");
    predicts(&b, "conv:4,3 relu maxpool:2 dropout:0.5 flatten linear:6 gelu linear:4", false);
    predicts(&b, "conv:4,3 relu maxpool:2 dropout:0.5 flatten linear:6 gelu linear:4", true);
    predicts(&b, "conv:4,3 tanh", false);
    predicts(&b, "conv:4,3 flatten", false);
    predicts(&b, "flatten", false);
    predicts(&b, "relu dropout:0.5", false);
    predicts(&b, "flatten linear:3 dropout:0.5 flatten", true);
    bench_close(&b);
}
END_TEST

START_TEST(a_model_that_does_nothing_gives_its_input)
{
    bench b;
    plan_run r;
    cek_model *m = parsed("flatten dropout:0.5", 1, (int64_t[]){ 3 });
    cek__plan_options options = { .rows = 2, .input_type = CEK_F32 };
    float in[6] = { 1, -2, 3, -4, 5, -6 }, out[6];

    bench_open(&b, "reference:0");
    plan_run_open(&r, &b, m, CEK_F32, &options);
    plan_run_put(&r, r.binding.input, in, sizeof in);
    plan_run_step(&r, false);
    bench_download(&b, out, r.binding.output, sizeof out);
    ck_assert_mem_eq(in, out, sizeof in);
    plan_run_close(&r);
    bench_close(&b);
    cek_model_free(m);
}
END_TEST

START_TEST(evaluation_has_a_loss_and_no_gradients)
{
    bench b;
    test_case c;
    plan_run r;
    oracle o;
    cek_model *m = parsed("conv:4,3,p1 relu maxpool:2 dropout:0.5 flatten linear:5", 3, IMAGE);
    cek__plan_options options = train_ce;

    options.training = false;
    bench_open(&b, "reference:0");
    bench_wrap(&b);
    case_make(&c, m, &options, 3, 5);
    case_oracle(&c, &o);
    plan_run_open(&r, &b, m, CEK_F64, &options);
    case_upload(&c, &r, 0, 3);
    plan_run_step(&r, false);
    all_near("loss", (double[]){ plan_run_loss(&r) }, &o.loss, 1, 1e-12);
    ck_assert_int_eq(plan_run_correct(&r), o.correct);
    ck_assert_int_eq(wrapped.created[CEK_OP_DROPOUT], 0);
    ck_assert_int_eq(wrapped.created[CEK_OP_POINTWISE], 1); /* the input's conversion; relu rides with the convolution */
    ck_assert_int_eq(wrapped.created[CEK_OP_CONV_BACKWARD_WEIGHTS], 0);
    ck_assert_uint_eq(cek__plan_get_needs(r.plan)->output_bytes, 0);
    plan_run_close(&r);
    oracle_clear(&o);
    case_clear(&c);
    bench_close(&b);
    cek_model_free(m);
}
END_TEST

START_TEST(training_makes_no_op_that_nobody_needs)
{
    bench b;
    cek_model *m;
    cek__layout *layout;
    cek__plan *plan;
    cek__plan_options options = train_ce;

    bench_open(&b, "reference:0");
    bench_wrap(&b);
    assert_ok(cek_model_parse("mnist-cnn", 3, (int64_t[]){ 1, 8, 8 }, &m));
    assert_ok(cek__layout_create(m, CEK_F32, &layout));
    options.input_type = CEK_U8;
    assert_ok(cek__plan_create_raw(m, layout, b.plugin, b.dev, "the device", &options, &plan));
    ck_assert_int_eq(wrapped.created[CEK_OP_CONV_FORWARD], 2);
    ck_assert_int_eq(wrapped.created[CEK_OP_CONV_BACKWARD_DATA], 1);    /* never the input's gradient */
    ck_assert_int_eq(wrapped.created[CEK_OP_CONV_BACKWARD_WEIGHTS], 4); /* two forms each */
    ck_assert_int_eq(wrapped.created[CEK_OP_GEMM], 2 + 2 + 4);
    ck_assert_int_eq(wrapped.created[CEK_OP_DROPOUT], 2);
    /* The input's conversion; relu behind the pool; relu's derivative before the dropout. */
    ck_assert_int_eq(wrapped.created[CEK_OP_POINTWISE], 3);
    ck_assert_int_eq(wrapped.created[CEK_OP_COPY], 0);
    /* Forward: conv, linear. Derivatives: after the pool (the linear's), of the first convolution. */
    ck_assert_int_eq(wrapped.fused, 4);
    cek__plan_free(plan);
    cek__layout_free(layout);
    cek_model_free(m);
    bench_close(&b);
}
END_TEST

START_TEST(buckets_below_a_segment_are_final_when_it_has_run)
{
    bench b;
    test_case c;
    plan_run r;
    oracle o;
    /* 730 x 730 in f64 are more than 4 MiB: a bucket for each of the large layers. */
    cek_model *m = parsed("linear:730 relu linear:730 relu linear:730 relu linear:6", 1, (int64_t[]){ 730 });
    cek__plan_options options = train_ce;
    size_t done = 0;

    options.rows = 2;
    bench_open(&b, "reference:0");
    case_make(&c, m, &options, 2, 3);
    case_oracle(&c, &o);
    plan_run_open(&r, &b, m, CEK_F64, &options);
    ck_assert_uint_ge(r.layout->bucket_count, 3);
    ck_assert_uint_eq(cek__plan_segment_count(r.plan), r.layout->bucket_count);
    case_upload(&c, &r, 0, 2);
    assert_ok(cek__plan_forward(r.plan, b.queue));
    for (size_t s = 0; s < cek__plan_segment_count(r.plan); s++) {
        assert_ok(cek__plan_backward(r.plan, b.queue, s, false));
        ck_assert_uint_gt(cek__plan_segment_buckets(r.plan, s), done);
        done = cek__plan_segment_buckets(r.plan, s);
        for (size_t p = 0; p < m->parameter_count; p++) {
            const cek__placement *place = &r.layout->placement[p];
            double *got = plan_run_gradient(&r, p);

            if (place->bucket < done) { /* its parameters are not read again: spoil them */
                all_near(m->parameters[p].public.name, got, o.parameter_grad[p], (int64_t)place->count, 1e-10);
                assert_ok(b.plugin->fill(b.queue, r.parameters[place->bucket], 0xff, 1,
                                         cek__layout_bucket_bytes(r.layout, place->bucket)));
            }
            free(got);
        }
    }
    ck_assert_uint_eq(done, r.layout->bucket_count);
    gradients_near(&r, &o, 1, 1e-10);
    plan_run_close(&r);
    oracle_clear(&o);
    case_clear(&c);
    cek_model_free(m);
    bench_close(&b);
}
END_TEST

START_TEST(f32_on_the_cpu_is_near_the_double_one)
{
    bench b;
    test_case c;
    cek_model *m = parsed("conv:16,3,p1 tanh conv:24,3,p1 sigmoid avgpool:2 flatten linear:40 tanh dropout:0.5 linear:10", 3,
                          (int64_t[]){ 1, 12, 12 });
    cek__plan_options options = train_ce;

    options.rows = 8;
    bench_open(&b, "cpu:0");
    case_make(&c, m, &options, 7, 5);
    /* Smooth layers, sums of up to 1,152 products, five layers deep: some hundreds of units of 6e-8. */
    case_trains(&b, &c, CEK_F32, 5e-5);
    case_clear(&c);
    bench_close(&b);
    cek_model_free(m);
}
END_TEST

/* ---- memory ---- */

static void estimate_is_near(bench *b, const char *name, cek__plan_options options)
{
    cek_model *m;
    cek__layout *layout;
    uint64_t fixed, per_row;

    assert_ok(cek_model_parse(name, 0, NULL, &m));
    assert_ok(cek__layout_create(m, CEK_F32, &layout));
    assert_ok(cek__plan_estimate(m, CEK_F32, &options, &fixed, &per_row));
    for (int64_t rows = 1; rows <= 300; rows = rows * 3 + 4) {
        cek__plan *plan;
        const cek__plan_needs *n;
        double real, guess = (double)fixed + (double)rows * (double)per_row;

        options.rows = rows;
        assert_ok(cek__plan_create_raw(m, layout, b->plugin, b->dev, "the device", &options, &plan));
        n = cek__plan_get_needs(plan);
        real = (double)(n->arena_bytes + n->input_bytes + n->target_bytes + n->weight_bytes + n->output_bytes);
        /* Backends may keep less of a pool than the estimate allows them: too small would be worse than too large. 8 KiB are
         * what values of a few rows lose by their alignment. */
        ck_assert_msg(guess >= real - 8192 && guess <= 1.1 * real + 8192, "%s, %lld rows: %.0f bytes, estimated %.0f", name,
                      (long long)rows, real, guess);
        cek__plan_free(plan);
    }
    cek__layout_free(layout);
    cek_model_free(m);
}

START_TEST(the_estimate_is_enough_and_at_most_a_tenth_too_much)
{
    bench b;
    static const char *const names[] = { "mnist-cnn", "lenet5", "boston-mlp" };

    bench_open(&b, "cpu:0");
    for (size_t i = 0; i < 3; i++) {
        cek__plan_options o = i == 2 ? train_mse : train_ce;

        estimate_is_near(&b, names[i], o);
        o.training = false;
        o.input_type = CEK_U8;
        estimate_is_near(&b, names[i], o);
        o.loss = 0;
        estimate_is_near(&b, names[i], o);
    }
    bench_close(&b);
}
END_TEST

START_TEST(the_arena_of_mnist_cnn_is_no_larger_than_its_lifetimes_ask)
{
    bench b;
    cek_model *m;
    cek__layout *layout;
    cek__plan *plan;
    cek__plan_options options = train_ce;
    /* f32 values of one sample: what lives when the pool's gradient is written. Activations kept: the input, the first
     * convolution's output; behind the pool: its output, two of 1,024, the indices (at most as large as the output). The
     * gradient behind the pool, and the one before it, 128x28x28; the second convolution's output itself is gone. */
    double floats = 784 + 64 * 784 + 128 * 196 * 2 + 2 * 1024 + 128 * 196 + 128 * 784, most = floats * 4 * 64 * 1.02;

    bench_open(&b, "cpu:0");
    options.rows = 64;
    options.input_type = CEK_U8;
    assert_ok(cek_model_parse("mnist-cnn", 0, NULL, &m));
    assert_ok(cek__layout_create(m, CEK_F32, &layout));
    assert_ok(cek__plan_create_raw(m, layout, b.plugin, b.dev, "the device", &options, &plan));
    ck_assert_msg((double)cek__plan_get_needs(plan)->arena_bytes <= most, "%.1f MiB, at most %.1f",
                  (double)cek__plan_get_needs(plan)->arena_bytes / (1 << 20), most / (1 << 20));
    cek__plan_free(plan);
    cek__layout_free(layout);
    cek_model_free(m);
    bench_close(&b);
}
END_TEST

/* ---- refusals ---- */

static void plan_fails(bench *b, cek_model *m, const cek__plan_options *options, cek_status status, const char *object,
                       const char *cause)
{
    cek__layout *layout;
    cek__plan *plan;

    assert_ok(cek__layout_create(m, CEK_F64, &layout));
    assert_fails(cek__plan_create_raw(m, layout, b->plugin, b->dev, "the device", options, &plan), status, object, cause);
    ck_assert_ptr_null(plan);
    cek__layout_free(layout);
}

START_TEST(impossible_plans_say_why)
{
    bench b;
    cek_model *m = parsed("conv:4,3,p1 relu", 3, IMAGE), *line = parsed("linear:1", 1, (int64_t[]){ 3 });
    cek__plan_options options = train_mse;

    bench_open(&b, "reference:0");
    bench_wrap(&b);
    plan_fails(&b, m, &train_ce, CEK_INVALID, "image 4x9x8", "flatten");
    options.target_columns = 128;
    plan_fails(&b, line, &options, CEK_INVALID, "(5,1)", "(5,128)");
    options = train_mse;
    options.loss = 0;
    plan_fails(&b, line, &options, CEK_INVALID, "training", "loss");
    options.loss = 77;
    plan_fails(&b, line, &options, CEK_INVALID, "loss", "77");
    options = train_mse;
    options.rows = 0;
    plan_fails(&b, line, &options, CEK_INVALID, "plan", "0 samples");
    wrapped.refuse_kind = CEK_OP_CONV_BACKWARD_WEIGHTS;
    plan_fails(&b, m, &train_mse, CEK_UNSUPPORTED, "the device", "node 1 (conv)");
    wrapped.refuse_kind = CEK_OP_SQUARED_ERROR;
    plan_fails(&b, line, &train_mse, CEK_UNSUPPORTED, "the device", "the loss");
    wrapped.refuse_kind = 0;
    assert_ok(cek_model_linear(line, 0, 1, true, NULL)); /* node 1 is dead now */
    plan_fails(&b, line, &train_mse, CEK_INVALID, "node 1 (linear)", "node 2");
    bench_close(&b);
    cek_model_free(m);
    cek_model_free(line);
}
END_TEST

START_TEST(binding_names_what_is_missing)
{
    bench b;
    plan_run r;
    cek_model *m = parsed("linear:4 relu linear:2", 1, (int64_t[]){ 3 });
    cek_ref none[16] = { { NULL, 0 } };
    cek__plan_binding broken;

    bench_open(&b, "reference:0");
    plan_run_open(&r, &b, m, CEK_F64, &train_ce);
#define MISSING(field, value, name)                                                      \
    do {                                                                                 \
        broken = r.binding;                                                              \
        broken.field = value;                                                            \
        assert_fails(cek__plan_bind(r.plan, &broken), CEK_INVALID, "the device", name);  \
    } while (0)
    MISSING(arena, none[0], "arena");
    MISSING(input, none[0], "input");
    MISSING(target, none[0], "target");
    MISSING(step_block, none[0], "step block");
    MISSING(batch_block, none[0], "batch block");
    MISSING(loss, none[0], "loss");
    MISSING(correct, none[0], "right answers");
    MISSING(parameters, none, "parameters");
    MISSING(gradients, NULL, "gradients");
    plan_run_close(&r);
    bench_close(&b);
    cek_model_free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan");
    TCase *tcase = tcase_create("plan");
    SRunner *runner;
    int failed;

    tcase_add_test(tcase, gradients_of_a_classifier_are_the_double_ones);
    tcase_add_test(tcase, gradients_of_a_regression_are_the_double_ones);
    tcase_add_test(tcase, gradients_of_branches_add_up);
    tcase_add_test(tcase, a_device_without_fused_epilogues_computes_the_same);
    tcase_add_test(tcase, micro_batches_accumulate_to_the_whole);
    tcase_add_test(tcase, predictions_have_no_dropout_and_pytorchs_order);
    tcase_add_test(tcase, a_model_that_does_nothing_gives_its_input);
    tcase_add_test(tcase, evaluation_has_a_loss_and_no_gradients);
    tcase_add_test(tcase, training_makes_no_op_that_nobody_needs);
    tcase_add_test(tcase, buckets_below_a_segment_are_final_when_it_has_run);
    tcase_add_test(tcase, f32_on_the_cpu_is_near_the_double_one);
    tcase_add_test(tcase, the_estimate_is_enough_and_at_most_a_tenth_too_much);
    tcase_add_test(tcase, the_arena_of_mnist_cnn_is_no_larger_than_its_lifetimes_ask);
    tcase_add_test(tcase, impossible_plans_say_why);
    tcase_add_test(tcase, binding_names_what_is_missing);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
