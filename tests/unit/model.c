/* model.c - models as such: shapes, parameter counts, texts, refusals, initial values. */
#include <math.h>

#include "cekernels/nn.h"
#include "core/base/fault.h"
#include "core/base/random.h"
#include "nn/model/model.h"
#include "scratch.h"

static cek_model *parsed(const char *text, int rank, const int64_t *shape)
{
    cek_model *model;

    assert_ok(cek_model_parse(text, rank, shape, &model));
    return model;
}

static int64_t parameters(const cek_model *m)
{
    int64_t n = 0;

    for (size_t i = 0; i < cek_model_parameter_count(m); i++) {
        cek_parameter p;

        assert_ok(cek_model_parameter(m, i, &p));
        n += p.count;
    }
    return n;
}

static void parameter_is(const cek_model *m, size_t index, const char *name, int rank, const int64_t *shape)
{
    cek_parameter p;

    assert_ok(cek_model_parameter(m, index, &p));
    ck_assert_str_eq(p.name, name);
    ck_assert_int_eq(p.rank, rank);
    for (int i = 0; i < rank; i++)
        ck_assert_int_eq(p.shape[i], shape[i]);
}

/* ---- graph and text ---- */

START_TEST(built_in_models_have_pytorchs_shapes_and_counts)
{
    int64_t shape[CEK_RANK_MAX];
    cek_model *m = parsed("mnist-cnn", 0, NULL);

    ck_assert_int_eq(parameters(m), 25775882); /* sum(p.numel()) of the torch.nn.Sequential; so below */
    ck_assert_uint_eq(cek_model_parameter_count(m), 8);
    parameter_is(m, 0, "0.weight", 4, (int64_t[]){ 64, 1, 3, 3 });
    parameter_is(m, 1, "0.bias", 1, (int64_t[]){ 64 });
    parameter_is(m, 2, "2.weight", 4, (int64_t[]){ 128, 64, 3, 3 });
    parameter_is(m, 4, "6.weight", 2, (int64_t[]){ 1024, 25088 });
    parameter_is(m, 7, "9.bias", 1, (int64_t[]){ 10 });
    ck_assert_int_eq(cek_model_input_shape(m, shape), 3);
    ck_assert(shape[0] == 1 && shape[1] == 28 && shape[2] == 28);
    ck_assert_int_eq(cek_model_output_shape(m, shape), 1);
    ck_assert_int_eq(shape[0], 10);
    cek_model_free(m);

    m = parsed("lenet5", 0, NULL);
    ck_assert_int_eq(parameters(m), 61706);
    parameter_is(m, 4, "7.weight", 2, (int64_t[]){ 120, 400 });
    cek_model_free(m);

    m = parsed("boston-mlp", 0, NULL);
    ck_assert_int_eq(parameters(m), 13 * 16 + 16 + 16 * 32 + 32 + 33);
    cek_model_free(m);
}
END_TEST

START_TEST(windows_are_counted_as_pytorch_counts_them)
{
    static const struct {
        const char *text;
        int64_t shape[3];
    } cases[] = {
        /* on 6x23x17; torch.nn with the same arguments */
        { "conv:8,3", { 8, 21, 15 } }, { "conv:8,3,s2,p1", { 8, 12, 9 } },    { "conv:9,5,s3,p2,d2,g3", { 9, 7, 5 } },
        { "maxpool:2", { 6, 11, 8 } }, { "maxpool:3,s2,p1", { 6, 12, 9 } },   { "avgpool:5,s3", { 6, 7, 5 } },
        { "gap", { 6, 1, 1 } },        { "dropout:0.5 gelu", { 6, 23, 17 } },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t shape[CEK_RANK_MAX];
        cek_model *m = parsed(cases[i].text, 3, (int64_t[]){ 6, 23, 17 });

        ck_assert_int_eq(cek_model_output_shape(m, shape), 3);
        for (int k = 0; k < 3; k++)
            ck_assert_msg(shape[k] == cases[i].shape[k], "%s: dimension %d is %lld", cases[i].text, k,
                          (long long)shape[k]);
        cek_model_free(m);
    }
}
END_TEST

/* Each word beside those: the sample's shape, what it becomes, and the parameters. */
START_TEST(every_word_is_a_layer)
{
    static const struct {
        const char *text;
        int rank;
        int64_t shape[4];
        int to;
        int64_t becomes[4];
        int64_t parameters;
    } cases[] = {
        { "conv:8,3,s2,p1", 2, { 6, 23 }, 2, { 8, 12 }, 8 * 6 * 3 + 8 },
        { "conv:4,2", 4, { 2, 3, 4, 5 }, 4, { 4, 2, 3, 4 }, 4 * 2 * 8 + 4 },
        { "convt:4,3,s2,p1,m1,g2", 3, { 6, 5, 4 }, 3, { 4, 10, 8 }, 6 * 2 * 9 + 4 },
        { "silu gelutanh relu6 hardswish hardsigmoid", 1, { 7 }, 1, { 7 }, 0 },
        { "leakyrelu leakyrelu:-0.2 elu elu:2 softplus softplus:3 clip:-1,0.5", 1, { 7 }, 1, { 7 }, 0 },
        { "prelu prelu:5", 3, { 5, 4, 3 }, 3, { 5, 4, 3 }, 1 + 5 },
        { "maxpool:2", 2, { 3, 8 }, 2, { 3, 4 }, 0 },
        { "avgpool:2,s1", 4, { 3, 2, 3, 4 }, 4, { 3, 1, 2, 3 }, 0 },
        { "maxpoolto:3", 3, { 2, 7, 2 }, 3, { 2, 3, 3 }, 0 },
        { "avgpoolto:1 flatten", 2, { 5, 9 }, 1, { 5 }, 0 },
        { "layernorm", 2, { 5, 9 }, 2, { 5, 9 }, 18 },
        { "layernorm:2", 2, { 5, 9 }, 2, { 5, 9 }, 90 },
        { "rmsnorm:2", 3, { 2, 5, 9 }, 3, { 2, 5, 9 }, 45 },
        { "groupnorm:3 instancenorm", 3, { 6, 2, 2 }, 3, { 6, 2, 2 }, 12 + 12 },
        { "embedding:10,4", 1, { 7 }, 2, { 7, 4 }, 40 },
        { "lstm:5", 2, { 7, 3 }, 2, { 7, 5 }, 20 * 3 + 20 * 5 + 40 },
        { "gru:5,l2,d2", 2, { 7, 3 }, 2, { 7, 10 }, 2 * (15 * 3 + 15 * 5 + 30) + 2 * (15 * 10 + 15 * 5 + 30) },
        { "embedding:10,4 lstm:6 flatten linear:2", 1, { 7 }, 1, { 2 }, 40 + 24 * 4 + 24 * 6 + 48 + 84 + 2 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t shape[CEK_RANK_MAX] = { 0 };
        cek_model *m = parsed(cases[i].text, cases[i].rank, cases[i].shape);

        ck_assert_msg(cek_model_output_shape(m, shape) == cases[i].to, "%s", cases[i].text);
        for (int k = 0; k < cases[i].to; k++)
            ck_assert_msg(shape[k] == cases[i].becomes[k], "%s: dimension %d is %lld", cases[i].text, k,
                          (long long)shape[k]);
        ck_assert_msg(parameters(m) == cases[i].parameters, "%s: %lld parameters", cases[i].text,
                      (long long)parameters(m));
        cek_model_free(m);
    }
}
END_TEST

START_TEST(texts_that_mean_nothing_name_the_word_and_the_shapes)
{
    static const struct {
        const char *text, *object, *cause;
    } cases[] = {
        { "conv:4,3 rellu", "word 2, \"rellu\" at column 10", "unknown" },
        { "", "model", "no words" },
        { "conv:4", "word 1", "conv:OUT,K" },
        { "conv:4,3,x1", "word 1", "x1" },
        { "conv:4,3,s1,s2", "word 1", "twice" },
        { "conv:4,3,s0", "word 1", "setting s" },
        { "conv:4,", "word 1", "kernel" },
        { "conv:-4,3", "word 1", "output channels" },
        { "conv:4,3,g2", "conv", "3x9x8" },
        { "conv:4,30", "kernel 30x30", "3x9x8" },
        { "conv:4,3 conv:4,8", "word 2", "4x7x6" },
        { "maxpool:20", "kernel 20x20", "3x9x8" },
        { "maxpool:3,p2", "padding 2x2", "half" },
        { "linear:4", "image 3x9x8", "flatten" },
        { "flatten conv:4,3", "channels and 1 to 3 axes", "216" },
        { "dropout:1", "dropout", "probability 1" },
        { "dropout:nan", "word 1", "probability" },
        { "relu:3", "word 1", "relu" },
        { "flatten linear:1e3", "word 2", "outputs" },
        { "conv:2000000000,3 conv:2000000000,3", "word 1", "elements" },
        { "conv:1,2,3,4,5,6,7,8,9,10", "word 1", "settings" },
        { "conv:4,3,d2000000000,p1000", "word 1", "larger" },
        { "conv:4,3,m1", "word 1", "none of the letters spgd" },
        { "convt:4,3,m1", "convt", "fewer than the stride 1" },
        { "relu rellu", "the words are conv convt linear", " lstm gru" },
        { "silu:1", "1 settings", "the form is silu" },
        { "leakyrelu:0", "word 1", "0 makes no leakyrelu" },
        { "elu:x", "word 1", "not a finite number" },
        { "softplus:-1", "softplus", "above 0" },
        { "clip", "0 settings", "clip:LOW,HIGH" },
        { "clip:2,1", "word 1", "from 2 to 1" },
        { "avgpoolto:0", "word 1", "size" },
        { "flatten maxpoolto:2", "channels and 1 to 3 axes", "216" },
        { "layernorm:5", "layer_norm", "over the last 5 axes" },
        { "groupnorm", "0 settings", "groupnorm:GROUPS" },
        { "groupnorm:2", "group_norm", "2 groups" },
        { "embedding:4", "1 settings", "embedding:ROWS,WIDTH" },
        { "embedding:4,0", "word 1", "width" },
        { "lstm:4", "lstm", "[N,T,D]" },
        { "gru:4,d3", "word 1", "3 directions" },
        { "lstm:4,l2,l2", "word 1", "twice" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cek_model *m = (cek_model *)&m;

        assert_fails(cek_model_parse(cases[i].text, 3, (int64_t[]){ 3, 9, 8 }, &m), CEK_BAD_INPUT, cases[i].object,
                     cases[i].cause);
        ck_assert_ptr_null(m);
    }
}
END_TEST

START_TEST(impossible_nodes_leave_the_model_as_it_was)
{
    cek_model *m, *bad;
    int n, a, b;
    cek_conv2d_layer conv = { .size = sizeof conv, .out_channels = 4, .kernel_h = 3, .kernel_w = 3, .groups = 2 };

    assert_fails(cek_model_create(6, (int64_t[]){ 3, 4 }, &bad), CEK_INVALID, "model", "rank 6");
    assert_fails(cek_model_create(1, (int64_t[]){ 0 }, &bad), CEK_INVALID, "model", "dimension 0");
    assert_fails(cek_model_create(3, (int64_t[]){ 1 << 20, 1 << 20, 1 << 20 }, &bad), CEK_INVALID, "model", "elements");
    ck_assert_ptr_null(bad);
    assert_ok(cek_model_create(3, (int64_t[]){ 3, 9, 8 }, &m));
    assert_fails(cek_model_conv2d(m, 0, &conv, &n), CEK_INVALID, "node 1 (conv)", "3x9x8");
    ck_assert_int_eq(n, -1);
    conv.size = 0;
    assert_fails(cek_model_conv2d(m, 0, &conv, &n), CEK_INVALID, "conv", "size");
    assert_fails(cek_model_conv2d(m, 0, NULL, &n), CEK_INVALID, "conv", "NULL");
    assert_fails(cek_model_pool2d(m, 0, NULL, &n), CEK_INVALID, "pool", "NULL");
    assert_fails(cek_model_activation(m, 0, 99, &n), CEK_INVALID, "node 1", "kind 99");
    assert_fails(cek_model_activation(m, 1, CEK_ACT_RELU, &n), CEK_INVALID, "node 1", "input 1");
    assert_fails(cek_model_linear(m, 0, 4, true, &n), CEK_INVALID, "node 1 (linear)", "flatten");
    assert_fails(cek_model_pool2d(m, 0, &(cek_pool2d_layer){ .size = sizeof(cek_pool2d_layer), .mode = 7 }, &n),
                 CEK_INVALID, "pool", "mode 7");
    conv = (cek_conv2d_layer){ .size = sizeof conv, .out_channels = 4, .kernel_h = 3, .kernel_w = 3 };
    assert_ok(cek_model_conv2d(m, 0, &conv, &a));
    conv.pad_h = 1;
    assert_ok(cek_model_conv2d(m, 0, &conv, &b));
    assert_fails(cek_model_add(m, a, b, &n), CEK_INVALID, "4x7x6 of node 1", "4x9x6 of node 2");
    ck_assert_int_eq(b, 2);
    ck_assert_uint_eq(cek_model_parameter_count(m), 4);
    cek_model_free(m);
}
END_TEST

START_TEST(names_are_positions_or_the_users)
{
    static const char *const names[] = { "0.weight",           "0.bias",          "stem.weight",
                                         "layer1.0.bn.weight", "layer1.1.weight", "4.weight" };
    cek_model *m;
    cek_parameter p;
    int n;

    assert_ok(cek_model_create(1, (int64_t[]){ 4 }, &m));
    assert_ok(cek_model_linear(m, 0, 4, true, &n));
    assert_ok(cek_model_name(m, "stem"));
    assert_fails(cek_model_linear(m, 9, 4, false, NULL), CEK_INVALID, "linear stem", "input 9");
    assert_ok(cek_model_linear(m, n, 4, false, &n));
    assert_ok(cek_model_enter(m, "layer1"));
    assert_ok(cek_model_enter(m, "0"));
    assert_ok(cek_model_name(m, "bn"));
    assert_ok(cek_model_linear(m, n, 4, false, &n));
    assert_ok(cek_model_leave(m));
    assert_ok(cek_model_linear(m, n, 4, false, &n));
    assert_ok(cek_model_leave(m));
    assert_fails(cek_model_leave(m), CEK_INVALID, "leave", "no name");
    assert_ok(cek_model_activation(m, n, CEK_ACT_RELU, &n));
    assert_ok(cek_model_linear(m, n, 4, false, &n));
    ck_assert_uint_eq(cek_model_parameter_count(m), 6);
    for (size_t i = 0; i < 6; i++) {
        assert_ok(cek_model_parameter(m, i, &p));
        ck_assert_str_eq(p.name, names[i]);
    }
    assert_ok(cek_model_name(m, "stem"));
    assert_fails(cek_model_linear(m, n, 4, false, NULL), CEK_INVALID, "linear stem", "already");
    assert_fails(cek_model_name(m, "a b"), CEK_INVALID, "\"a...\"", "character 2");
    assert_fails(cek_model_name(m, ""), CEK_INVALID, "name", "0 characters");
    ck_assert_uint_eq(cek_model_parameter_count(m), 6);
    cek_model_free(m);
}
END_TEST

START_TEST(options_of_a_newer_caller_are_refused_where_they_say_something)
{
    struct {
        cek_conv2d_layer known;
        uint32_t newer[4];
    } options = { .known = { .size = sizeof options, .out_channels = 1, .kernel_h = 1, .kernel_w = 1 } };
    cek_model *m;

    assert_ok(cek_model_create(3, (int64_t[]){ 1, 2, 2 }, &m));
    assert_ok(cek_model_conv2d(m, 0, &options.known, NULL));
    options.newer[3] = 1;
    assert_fails(cek_model_conv2d(m, 0, &options.known, NULL), CEK_UNSUPPORTED, "conv", "later version");
    cek_model_free(m);
}
END_TEST

START_TEST(presets_say_how_a_built_in_is_trained)
{
    cek_preset p = { .size = sizeof p };

    assert_ok(cek_preset_find("boston-mlp", &p));
    ck_assert_uint_eq(p.loss, CEK_LOSS_MSE);
    ck_assert_int_eq(p.batch, 128);
    ck_assert(p.optimizer->algorithm == CEK_OPTIMIZER_ADAM && p.optimizer->lr == 0.01);
    ck_assert_str_eq(p.text, "linear:16 relu linear:32 relu linear:1");
    assert_fails(cek_preset_find("alexnet", &p), CEK_NOT_FOUND, "alexnet", "mnist-cnn, lenet5, boston-mlp");
    p.size = 4;
    assert_fails(cek_preset_find("lenet5", &p), CEK_INVALID, "preset", "size");
}
END_TEST

START_TEST(running_out_of_memory_anywhere_is_a_status)
{
    for (long nth = 1;; nth++) {
        cek_model *m;
        cek_status st;
        bool pending;

        cek__fault_set(CEK__FAULT_ALLOC, nth);
        st = cek_model_parse("lenet5", 0, NULL, &m);
        pending = cek__fault_pending(CEK__FAULT_ALLOC);
        cek__fault_set(CEK__FAULT_ALLOC, 0);
        if (pending) {
            ck_assert_uint_eq(st, CEK_OK);
            ck_assert_int_gt(nth, 10);
            cek_model_free(m);
            return;
        }
        ck_assert_uint_eq(st, CEK_OUT_OF_MEMORY);
        ck_assert_ptr_null(m);
    }
}
END_TEST

/* ---- initial values ---- */

START_TEST(initial_values_are_uniform_in_pytorchs_bounds)
{
    cek_model *m = parsed("conv:32,3,g2 flatten linear:300 linear:7", 3, (int64_t[]){ 8, 12, 12 });
    const double fan_in[] = { 4 * 9, 4 * 9, 3200, 3200, 300, 300 };

    cek_model_init(m, 42);
    for (size_t i = 0; i < 6; i++) {
        const cek_parameter *p = &m->parameters[i].public;
        double bound = 1 / sqrt(fan_in[i]), sum = 0, squares = 0, least = bound, most = -bound;

        for (int64_t k = 0; k < p->count; k++) {
            sum += p->data[k];
            squares += (double)p->data[k] * p->data[k];
            least = fmin(least, p->data[k]);
            most = fmax(most, p->data[k]);
        }
        ck_assert(least >= -bound * 1.0000001 && most <= bound * 1.0000001);
        if (p->count < 1000)
            continue;
        /* Mean 0 with deviation bound/sqrt(3 n), second moment bound^2/3; five deviations. */
        ck_assert_double_lt(fabs(sum / (double)p->count), 5 * bound / sqrt(3.0 * (double)p->count));
        ck_assert_double_lt(fabs(squares / (double)p->count / (bound * bound / 3) - 1), 5 / sqrt((double)p->count));
        ck_assert(least < -0.98 * bound && most > 0.98 * bound);
    }
    cek_model_free(m);
}
END_TEST

START_TEST(initial_values_depend_on_the_seed_and_the_parameter_alone)
{
    cek_model *a = parsed("linear:16 relu linear:16", 1, (int64_t[]){ 16 });
    cek_model *b = parsed("linear:16 tanh linear:16 linear:16", 1, (int64_t[]){ 16 });
    char one[65], two[65], other[65];

    for (size_t i = 0; i < 4; i++)
        for (int64_t k = 0; k < a->parameters[i].public.count; k++)
            ck_assert(a->parameters[i].public.data[k] == 0);
    cek_model_init(a, 3);
    cek_model_init(b, 3);
    for (size_t i = 0; i < 4; i++)
        ck_assert_mem_eq(a->parameters[i].public.data, b->parameters[i].public.data,
                         (size_t)a->parameters[i].public.count * sizeof(float));
    ck_assert_mem_ne(a->parameters[0].public.data, a->parameters[2].public.data, 64);
    cek_model_sha256(a, one);
    cek_model_init(a, 4);
    cek_model_sha256(a, other);
    cek_model_init(a, 3);
    cek_model_sha256(a, two);
    ck_assert_str_eq(one, two);
    ck_assert_str_ne(one, other);
    cek_model_free(a);
    cek_model_free(b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("model");
    TCase *tcase = tcase_create("model");

    tcase_add_test(tcase, built_in_models_have_pytorchs_shapes_and_counts);
    tcase_add_test(tcase, windows_are_counted_as_pytorch_counts_them);
    tcase_add_test(tcase, every_word_is_a_layer);
    tcase_add_test(tcase, texts_that_mean_nothing_name_the_word_and_the_shapes);
    tcase_add_test(tcase, impossible_nodes_leave_the_model_as_it_was);
    tcase_add_test(tcase, names_are_positions_or_the_users);
    tcase_add_test(tcase, options_of_a_newer_caller_are_refused_where_they_say_something);
    tcase_add_test(tcase, presets_say_how_a_built_in_is_trained);
    tcase_add_test(tcase, running_out_of_memory_anywhere_is_a_status);
    tcase_add_test(tcase, initial_values_are_uniform_in_pytorchs_bounds);
    tcase_add_test(tcase, initial_values_depend_on_the_seed_and_the_parameter_alone);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
