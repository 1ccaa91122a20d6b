/* plan.c - plans compute what their models mean: forward, loss and all gradients against plain
 * double-precision loops, also where branches meet, on a device that refuses every fused epilogue,
 * and in micro-batches. */
#include "plan_case.h"

START_TEST(gradients_of_a_classifier_are_the_double_ones)
{
    bench b;

    bench_open(&b, "reference:0");
    text_trains(&b,
                "conv:4,3,p1 relu conv:6,3,p1 relu maxpool:2 flatten linear:12 relu "
                "dropout:0.5 linear:5",
                3, IMAGE, &train_ce, 5);
    text_trains(&b, "conv:6,3,s2,p1,g3,d2 tanh maxpool:2,s1,p1 flatten linear:7 sigmoid linear:4", 3, IMAGE, &train_ce,
                3);
    text_trains(&b, "conv:4,2 gelu avgpool:3,s2,p1 dropout:0.25 conv:4,2 gap flatten linear:3", 3, IMAGE, &train_ce, 5);
    text_trains(&b,
                "relu maxpool:2 conv:5,2 relu dropout:0.3 maxpool:2 flatten linear:6 gelu "
                "linear:3",
                3, IMAGE, &train_ce, 4);
    bench_close(&b);
}
END_TEST

START_TEST(gradients_of_a_regression_are_the_double_ones)
{
    bench b;

    bench_open(&b, "reference:0");
    text_trains(&b, "linear:16 relu linear:32 relu linear:1", 1, (int64_t[]){ 13 }, &train_mse, 5);
    text_trains(&b, "linear:9 tanh dropout:0.1 linear:4 sigmoid", 1, (int64_t[]){ 6 }, &train_mse, 4);
    text_trains(&b, "conv:3,3 relu flatten", 3, IMAGE, &train_mse, 5); /* the output changes to PyTorch's order */
    text_trains(&b, "conv:3,3 sigmoid", 3, IMAGE, &train_mse, 5);
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
    assert_ok(cek_model_conv2d(
        m, 0,
        &(cek_conv2d_layer){
            .size = sizeof(cek_conv2d_layer), .out_channels = 4, .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1 },
        &n));
    for (int i = 0; i < 8; i++) {
        int from = 1 + (int)(uniform(seed, 10, i) * n), other = 1 + (int)(uniform(seed, 11, i) * n);

        switch ((int)(uniform(seed, 12, i) * 6)) {
        case 0:
            assert_ok(cek_model_conv2d(m, from,
                                       &(cek_conv2d_layer){ .size = sizeof(cek_conv2d_layer),
                                                            .out_channels = 4,
                                                            .kernel_h = 3,
                                                            .kernel_w = 3,
                                                            .pad_h = 1,
                                                            .pad_w = 1,
                                                            .groups = 2,
                                                            .no_bias = i % 2 },
                                       &n));
            break;
        case 1: assert_ok(cek_model_activation(m, from, 1 + (cek_activation)(uniform(seed, 13, i) * 4), &n)); break;
        case 2: assert_ok(cek_model_dropout(m, from, i % 2 ? 0.25 : 0, &n)); break;
        case 3:
            assert_ok(cek_model_pool2d(m, from,
                                       &(cek_pool2d_layer){ .size = sizeof(cek_pool2d_layer),
                                                            .mode = i % 2 ? CEK_POOL_MAX : CEK_POOL_AVERAGE,
                                                            .kernel_h = 3,
                                                            .kernel_w = 3,
                                                            .stride_h = 1,
                                                            .stride_w = 1,
                                                            .pad_h = 1,
                                                            .pad_w = 1 },
                                       &n));
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

/* ReLU may move behind a pool that is its only reader; here a convolution reads it as well, before
 * the pool or after it. */
START_TEST(relu_stays_where_a_pool_is_not_its_only_reader)
{
    bench b;
    cek_conv2d_layer conv = {
        .size = sizeof conv, .out_channels = 4, .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1
    };
    cek_conv2d_layer half = {
        .size = sizeof half, .out_channels = 4, .kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2
    };
    cek_pool2d_layer pool = { .size = sizeof pool, .mode = CEK_POOL_MAX, .kernel_h = 2, .kernel_w = 2 };

    bench_open(&b, "reference:0");
    for (int pool_first = 0; pool_first < 2; pool_first++) {
        cek_model *m;
        test_case c;
        int relu, pooled = -1, other, n;

        assert_ok(cek_model_create(3, (int64_t[]){ 2, 6, 8 }, &m));
        assert_ok(cek_model_conv2d(m, 0, &conv, &n));
        assert_ok(cek_model_activation(m, n, CEK_ACT_RELU, &relu));
        if (pool_first)
            assert_ok(cek_model_pool2d(m, relu, &pool, &pooled));
        assert_ok(cek_model_conv2d(m, relu, &half, &other));
        if (!pool_first)
            assert_ok(cek_model_pool2d(m, relu, &pool, &pooled));
        assert_ok(cek_model_add(m, pooled, other, &n));
        assert_ok(cek_model_flatten(m, n, &n));
        assert_ok(cek_model_linear(m, n, 3, true, NULL));
        cek_model_init(m, 2);
        case_make(&c, m, &train_ce, 5, 8);
        case_trains(&b, &c, CEK_F64, 1e-10);
        case_clear(&c);
        cek_model_free(m);
    }
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
    text_trains(&b,
                "conv:4,3,p1 relu conv:6,3,p1 relu maxpool:2 flatten linear:12 relu "
                "dropout:0.5 linear:5",
                3, IMAGE, &train_ce, 5);
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
    /* the input's conversion; relu rides with the convolution */
    ck_assert_int_eq(wrapped.created[CEK_OP_POINTWISE], 1);
    ck_assert_int_eq(wrapped.created[CEK_OP_CONV_BACKWARD_WEIGHTS], 0);
    ck_assert_uint_eq(cek__plan_get_needs(r.plan)->output_bytes, 0);
    plan_run_close(&r);
    oracle_clear(&o);
    case_clear(&c);
    bench_close(&b);
    cek_model_free(m);
}
END_TEST

START_TEST(f32_on_the_cpu_is_near_the_double_one_strictly_and_within_the_bound_of_transforms)
{
    static const struct {
        uint32_t math;
        double factor; /* plugin.h, section 10 */
    } rows[] = { { CEK_MATH_STRICT, 1 }, { CEK_MATH_F32, 64 } };
    bench b;
    test_case c;
    cek_model *m = parsed("conv:16,3,p1 tanh conv:24,3,p1 sigmoid avgpool:2 flatten linear:40 "
                          "tanh dropout:0.5 linear:10",
                          3, (int64_t[]){ 1, 12, 12 });
    cek__plan_options options = train_ce;

    options.rows = 8;
    options.math = rows[_i].math;
    bench_open(&b, "cpu:0");
    case_make(&c, m, &options, 7, 5);
    /* Smooth layers, sums of up to 1,152 products, five layers deep: some hundreds of units of 6e-8. */
    case_trains(&b, &c, CEK_F32, rows[_i].factor * 5e-5);
    case_clear(&c);
    bench_close(&b);
    cek_model_free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan");
    TCase *tcase = tcase_create("plan");

    tcase_add_test(tcase, gradients_of_a_classifier_are_the_double_ones);
    tcase_add_test(tcase, gradients_of_a_regression_are_the_double_ones);
    tcase_add_test(tcase, gradients_of_branches_add_up);
    tcase_add_test(tcase, relu_stays_where_a_pool_is_not_its_only_reader);
    tcase_add_test(tcase, a_device_without_fused_epilogues_computes_the_same);
    tcase_add_test(tcase, micro_batches_accumulate_to_the_whole);
    tcase_add_test(tcase, predictions_have_no_dropout_and_pytorchs_order);
    tcase_add_test(tcase, a_model_that_does_nothing_gives_its_input);
    tcase_add_test(tcase, evaluation_has_a_loss_and_no_gradients);
    tcase_add_loop_test(tcase, f32_on_the_cpu_is_near_the_double_one_strictly_and_within_the_bound_of_transforms, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
