/* nets.c - built-in networks: torchvision's parameters by number, name and distribution, and one step of training. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cekernels/nn.h"
#include "scratch.h"
#include "tests/suite.h"

static cek_parameter tensor_of(const cek_model *m, const char *name)
{
    cek_parameter p = { 0 };

    for (size_t i = 0; i < cek_model_parameter_count(m) + cek_model_buffer_count(m); i++) {
        size_t parameters = cek_model_parameter_count(m);

        assert_ok(i < parameters ? cek_model_parameter(m, i, &p) : cek_model_buffer(m, i - parameters, &p));
        if (strcmp(p.name, name) == 0)
            return p;
    }
    ck_abort_msg("no tensor is called %s", name);
}

/* ---- what they are made of ---- */

/* From torchvision 0.29: sum(p.numel() for p in models.resnet18().parameters()), len(list(..)), of buffers
 * without the counters. */
static const struct {
    const char *name;
    int64_t elements;
    size_t parameters, buffers;
    const char *first, *last;
    struct {
        const char *name;
        int64_t shape[4];
    } some[5];
} nets[] = {
    { "resnet18",
      11689512,
      62,
      40,
      "conv1.weight",
      "fc.bias",
      { { "conv1.weight", { 64, 3, 7, 7 } },
        { "layer1.0.bn1.weight", { 64 } },
        { "layer2.0.downsample.0.weight", { 128, 64, 1, 1 } },
        { "layer4.1.bn2.running_var", { 512 } },
        { "fc.weight", { 1000, 512 } } } },
    { "resnet50",
      25557032,
      161,
      106,
      "conv1.weight",
      "fc.bias",
      { { "bn1.running_mean", { 64 } },
        { "layer1.0.downsample.0.weight", { 256, 64, 1, 1 } },
        { "layer3.5.conv3.weight", { 1024, 256, 1, 1 } },
        { "layer4.2.bn3.bias", { 2048 } },
        { "fc.weight", { 1000, 2048 } } } },
    { "mobilenetv2",
      3504872,
      158,
      104,
      "features.0.0.weight",
      "classifier.1.bias",
      { { "features.1.conv.0.0.weight", { 32, 1, 3, 3 } },
        { "features.1.conv.1.weight", { 16, 32, 1, 1 } },
        { "features.2.conv.3.running_mean", { 24 } },
        { "features.17.conv.1.0.weight", { 960, 1, 3, 3 } },
        { "features.18.1.weight", { 1280 } } } },
};
enum { NETS = sizeof nets / sizeof *nets };

START_TEST(names_shapes_and_numbers_are_torchvisions)
{
    cek_model *m;
    cek_parameter p, last = { 0 };
    int64_t elements = 0, shape[CEK_RANK_MAX];

    assert_ok(cek_model_parse(nets[_i].name, 0, NULL, &m));
    ck_assert_int_eq(cek_model_input_shape(m, shape), 3);
    ck_assert(shape[0] == 3 && shape[1] == 224 && shape[2] == 224);
    ck_assert_int_eq(cek_model_output_shape(m, shape), 1);
    ck_assert_int_eq(shape[0], 1000);
    ck_assert_uint_eq(cek_model_parameter_count(m), nets[_i].parameters);
    ck_assert_uint_eq(cek_model_buffer_count(m), nets[_i].buffers);
    for (size_t i = 0; i < nets[_i].parameters; i++, last = p) {
        assert_ok(cek_model_parameter(m, i, &p));
        ck_assert(i > 0 || strcmp(p.name, nets[_i].first) == 0);
        elements += p.count;
    }
    ck_assert_str_eq(last.name, nets[_i].last);
    ck_assert_int_eq(elements, nets[_i].elements);
    for (int s = 0; s < 5; s++) {
        p = tensor_of(m, nets[_i].some[s].name);
        for (int k = 0; k < 4; k++)
            ck_assert_int_eq(k < p.rank ? p.shape[k] : 0, nets[_i].some[s].shape[k]);
    }
    cek_model_free(m);
}
END_TEST

START_TEST(a_number_behind_the_name_is_that_of_the_classes)
{
    cek_preset preset = { .size = sizeof preset };
    const int64_t small[] = { 3, 32, 32 };
    int64_t shape[CEK_RANK_MAX];
    cek_model *m;

    assert_ok(cek_model_parse("resnet18:10", 3, small, &m));
    ck_assert_int_eq(cek_model_output_shape(m, shape), 1);
    ck_assert_int_eq(shape[0], 10);
    cek_model_free(m);
    assert_ok(cek_preset_find("mobilenetv2:7", &preset));
    ck_assert_str_eq(preset.name, "mobilenetv2");
    ck_assert_int_eq(preset.classes, 7);
    assert_ok(cek_preset_find("resnet50", &preset));
    ck_assert_int_eq(preset.classes, 1000);
    ck_assert(preset.rank == 3 && preset.shape[0] == 3 && preset.shape[2] == 224 && preset.shape[3] == 0);
    assert_ok(cek_preset_find("lenet5", &preset));
    ck_assert_int_eq(preset.classes, 0);
    assert_fails(cek_model_parse("resnet18:0", 3, small, &m), CEK_BAD_INPUT, "classes", "0");
    assert_fails(cek_model_parse("resnet18:ten", 3, small, &m), CEK_BAD_INPUT, "classes", "ten");
    assert_fails(cek_model_parse("lenet5:7", 3, small, &m), CEK_BAD_INPUT, "lenet5:7", "no model is called");
    assert_fails(cek_preset_find("resnet", &preset), CEK_NOT_FOUND, "resnet", "resnet50");
}
END_TEST

/* ---- how they begin ---- */

/* Within five standard errors: of n normal numbers the deviation is off by 1/sqrt(2n) of itself. */
static void deviates(const cek_model *m, const char *name, double deviation)
{
    cek_parameter p = tensor_of(m, name);
    double squares = 0;

    for (int64_t i = 0; i < p.count; i++)
        squares += (double)p.data[i] * p.data[i];
    ck_assert_msg(fabs(sqrt(squares / (double)p.count) / deviation - 1) <= 5 / sqrt(2.0 * (double)p.count),
                  "%s: deviation %g, not %g", name, sqrt(squares / (double)p.count), deviation);
}

static void is_constant(const cek_model *m, const char *name, float value)
{
    cek_parameter p = tensor_of(m, name);

    for (int64_t i = 0; i < p.count; i++)
        ck_assert_float_eq(p.data[i], value);
}

START_TEST(weights_begin_as_torchvision_has_it)
{
    cek_model *m;

    assert_ok(cek_model_parse("resnet18", 0, NULL, &m));
    cek_model_init(m, 1);
    deviates(m, "conv1.weight", sqrt(2.0 / (64 * 7 * 7)));
    deviates(m, "layer2.0.conv1.weight", sqrt(2.0 / (128 * 3 * 3))); /* by outputs: there are 64 x 9 inputs */
    deviates(m, "layer2.0.downsample.0.weight", sqrt(2.0 / 128));
    deviates(m, "fc.weight", 1 / sqrt(3.0 * 512)); /* uniform in +-1/sqrt(512) */
    is_constant(m, "layer1.1.bn2.weight", 1);
    is_constant(m, "layer1.1.bn2.bias", 0);
    is_constant(m, "bn1.running_var", 1);
    cek_model_free(m);
    assert_ok(cek_model_parse("mobilenetv2", 0, NULL, &m));
    cek_model_init(m, 1);
    deviates(m, "features.2.conv.0.0.weight", sqrt(2.0 / 96));
    deviates(m, "features.2.conv.1.0.weight", sqrt(2.0 / (96 * 9)));
    deviates(m, "features.2.conv.2.weight", sqrt(2.0 / 24));
    deviates(m, "features.18.0.weight", sqrt(2.0 / 1280));
    deviates(m, "classifier.1.weight", 0.01);
    is_constant(m, "classifier.1.bias", 0);
    cek_model_free(m);
}
END_TEST

START_TEST(gpt_has_a_table_that_its_head_shares_and_begins_as_gpt_2)
{
    cek_model *m;
    cek_parameter p;
    int64_t elements = 0, shape[CEK_RANK_MAX];

    assert_ok(cek_model_parse("gpt:3", 1, (int64_t[]){ 20 }, &m));
    ck_assert_int_eq(cek_model_output_shape(m, shape), 2);
    ck_assert(shape[0] == 20 && shape[1] == 256);
    ck_assert_uint_eq(cek_model_parameter_count(m), 2 + 3 * 12 + 2);
    for (size_t i = 0; i < cek_model_parameter_count(m); i++) {
        assert_ok(cek_model_parameter(m, i, &p));
        elements += p.count;
    }
    /* Tables; of a block two norms, attention, the wide layer; the last norm. No head. */
    ck_assert_int_eq(elements, (256 + 20) * 128 + 3 * (4 * 128 + 4 * 128 * 129 + 128 * 512 * 2 + 512 + 128) + 2 * 128);
    cek_model_init(m, 3);
    deviates(m, "wte.weight", 0.02);
    deviates(m, "wpe.weight", 0.02);
    deviates(m, "h.1.attn.in_proj_weight", 0.02);
    deviates(m, "h.2.mlp.2.weight", 0.02 / sqrt(6));
    deviates(m, "h.0.attn.out_proj.weight", 0.02 / sqrt(6));
    is_constant(m, "h.0.attn.out_proj.bias", 0);
    is_constant(m, "h.2.mlp.0.bias", 0);
    is_constant(m, "ln_f.weight", 1);
    cek_model_free(m);
    assert_fails(cek_model_parse("gpt", 3, (int64_t[]){ 3, 4, 4 }, &m), CEK_INVALID, "gpt", "one axis");
    assert_fails(cek_model_parse("gpt:0", 1, (int64_t[]){ 20 }, &m), CEK_BAD_INPUT, "layers", "0");
}
END_TEST

/* ---- one step ---- */

enum { SAMPLES = 4, PIXELS = 32 * 32 * 3, CONTEXT = 20 };
static uint8_t images[SAMPLES][PIXELS];
static int32_t words[SAMPLES * CONTEXT + 1];
static const int32_t labels[SAMPLES] = { 3, 1, 4, 1 };

/* What is trained, and a batch for it. */
static const struct {
    const char *name;
    int rank;
    int64_t shape[3];
    cek_batch batch;
} steps[] = {
    { "resnet18:10", 3, { 3, 32, 32 }, { .input_type = CEK_U8, .inputs = images, .targets = labels } },
    { "mobilenetv2:10", 3, { 3, 32, 32 }, { .input_type = CEK_U8, .inputs = images, .targets = labels } },
    { "gpt:2",
      1,
      { CONTEXT },
      { .input_type = CEK_I32,
        .inputs = words,
        .targets = words + 1,
        .target_columns = CONTEXT,
        .target_type = CEK_I32 } },
};

/* Gradients of all parameters, one after the other; the loss. In groups of two samples. */
static double *step(int which, cek_model *m, cek_device *const *devices, size_t count, double *loss)
{
    const cek_optimizer sgd = { .size = sizeof sgd, .algorithm = CEK_OPTIMIZER_SGD, .lr = 1e-30 };
    const cek_trainer_options o = { .size = sizeof o,
                                    .optimizer = &sgd,
                                    .batch = SAMPLES,
                                    .norm_group = 2,
                                    .shares = CEK_SHARES_EQUAL,
                                    .seed = 3,               /* of dropout */
                                    .math = CEK_MATH_STRICT, /* what is transformed hangs on the samples of a share */
                                    .input_type = steps[which].batch.input_type };
    cek_batch batch = steps[which].batch;
    cek_step_result r = { .size = sizeof r };
    cek_trainer *t;
    cek_parameter p;
    double *gradients = NULL;
    int64_t total = 0;

    batch.size = sizeof batch;
    batch.count = SAMPLES;
    assert_ok(cek_trainer_create(m, devices, count, &o, &t));
    assert_ok(cek_trainer_step(t, &batch, &r));
    for (size_t i = 0; i < cek_model_parameter_count(m); i++) {
        assert_ok(cek_model_parameter(m, i, &p));
        gradients = realloc(gradients, (size_t)(total + p.count) * sizeof *gradients);
        assert_ok(cek_trainer_read_gradient(t, i, gradients + total, p.count));
        total += p.count;
    }
    *loss = r.loss;
    cek_trainer_free(t);
    return gradients;
}

/* The groups are the same, so each sample's values are; only where the two groups' gradients are added up differs. */
START_TEST(gradients_of_two_devices_are_those_of_one)
{
    cek_engine *engine;
    cek_device **devices;
    cek_model *m;
    cek_parameter p;
    size_t count, at = 0;
    double *one, *two, loss[2];

    for (int i = 0; i < SAMPLES * PIXELS; i++)
        ((uint8_t *)images)[i] = (uint8_t)(((uint32_t)i * 2654435761u) >> 24);
    for (int i = 0; i <= SAMPLES * CONTEXT; i++)
        words[i] = images[0][i];
    setenv("CEKERNELS_CPU_DEVICES", "2", 1);
    assert_ok(cek_engine_create(NULL, &engine));
    assert_ok(cek_engine_select(engine, "cpu", CEK_PROFILE_TRAINING, &devices, &count));
    ck_assert_uint_eq(count, 2);
    assert_ok(cek_model_parse(steps[_i].name, steps[_i].rank, steps[_i].shape, &m));
    cek_model_init(m, 5);
    one = step(_i, m, devices, 1, &loss[0]);
    two = step(_i, m, devices, 2, &loss[1]);
    ck_assert_double_eq_tol(loss[0], loss[1], 1e-6 * loss[0]);
    for (size_t i = 0; i < cek_model_parameter_count(m); i++) {
        double squares = 0, difference = 0;

        assert_ok(cek_model_parameter(m, i, &p));
        for (int64_t k = 0; k < p.count; k++, at++) {
            squares += one[at] * one[at];
            difference += (one[at] - two[at]) * (one[at] - two[at]);
        }
        ck_assert_msg(squares > 0, "%s: no gradient", p.name);
        ck_assert_msg(difference <= 1e-10 * squares, "%s: %g of %g", p.name, sqrt(difference), sqrt(squares));
    }
    free(one);
    free(two);
    cek_model_free(m);
    free(devices);
    cek_engine_free(engine);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nets");
    TCase *tcase = tcase_create("nets");

    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, names_shapes_and_numbers_are_torchvisions, 0, NETS);
    tcase_add_test(tcase, a_number_behind_the_name_is_that_of_the_classes);
    tcase_add_test(tcase, weights_begin_as_torchvision_has_it);
    tcase_add_test(tcase, gpt_has_a_table_that_its_head_shares_and_begins_as_gpt_2);
    tcase_add_loop_test(tcase, gradients_of_two_devices_are_those_of_one, 0, (int)(sizeof steps / sizeof *steps));
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
