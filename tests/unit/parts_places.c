/* parts_places.c - parts from the public headers alone: where several inputs lie, parameters that are read in two ways,
 * types that were asked for, and names of what takes several parts. */
#include <cekernels/parts.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scratch.h"
#include "tests/suite.h"

static cek_engine *engine;
static cek_device **devices;
static size_t device_count;
static cek_model *model;

static void open_model(const char *list, int rank, const int64_t *shape)
{
    assert_ok(cek_engine_create(NULL, &engine));
    assert_ok(cek_engine_select(engine, list, CEK_PROFILE_TRAINING, &devices, &device_count));
    assert_ok(cek_model_create(rank, shape, &model));
}

static void close_model(void)
{
    cek_model_free(model);
    free(devices);
    cek_engine_free(engine);
}

/* What the model makes of its inputs. */
static void predict(const cek_predictor_options *options, const void *const *inputs, int64_t samples, float *outputs)
{
    cek_predictor *p;

    assert_ok(cek_predictor_create(model, devices, 1, options, &p));
    assert_ok(cek_predictor_run_arrays(p, inputs, samples, (float *const[]){ outputs }));
    cek_predictor_free(p);
}

static const char *const lists[] = { "reference:0", "cpu:0" };

/* A product alone reads the first, so it is rounded in front; parameters stay 0. */
START_TEST(a_second_input_is_read_where_it_lies_in_every_type)
{
    static const cek_dtype types[] = { CEK_F32, CEK_BF16, CEK_F16 };
    const float first[] = { 9, 9, 9, 9, 9, 9, 9, 9 }, second[] = { 1, 2, 3, 4 };
    int x, i;

    open_model(lists[_i], 1, (int64_t[]){ 4 });
    i = cek_part_input(model, "i", CEK_F32, 1, (int64_t[]){ 2 });
    assert_ok(cek_model_linear(model, 0, 2, true, &x));
    ck_assert_int_gt(cek_part_apply(model, CEK_PW_ADD, x, i), 0);
    for (int t = 0; t < 3; t++) {
        const cek_predictor_options o = { .size = sizeof o, .type = types[t] };
        float outputs[4] = { 0 };

        predict(&o, (const void *const[]){ first, second }, 2, outputs);
        ck_assert_msg(memcmp(outputs, second, sizeof second) == 0, "%s: %g %g %g %g", cek_dtype_name(types[t]),
                      outputs[0], outputs[1], outputs[2], outputs[3]);
    }
    close_model();
}
END_TEST

/* Sums of parameters and samples (1, 2, 3), (4, 5, 6). */
static double loss_of_sums(cek_dtype type, uint32_t function, bool cast)
{
    const cek_parameter_options ones = { .size = sizeof ones, .rank = 1, .shape = (int64_t[]){ 3 }, .value = 1 };
    const float inputs[] = { 1, 2, 3, 4, 5, 6 };
    const cek_trainer_options o = { .size = sizeof o, .type = type, .batch = 2 };
    const cek_batch batch = {
        .size = sizeof batch, .input_type = CEK_F32, .count = 2, .inputs = inputs, .targets = (int32_t[2]){ 0 }
    };
    cek_step_result r = { .size = sizeof r };
    cek_trainer *t;
    int y;

    open_model("reference:0", 1, (int64_t[]){ 3 });
    y = cek_part_apply(model, CEK_PW_MUL, 0, cek_part_parameter(model, "w", &ones));
    if (cast)
        y = cek_part_cast(model, y, CEK_F32);
    cek_part_loss(model, cek_part_reduce(model, y, function, 1 << 1, false), -1);
    cek_model_init(model, 1);
    assert_ok(cek_trainer_create(model, devices, 1, &o, &t));
    assert_ok(cek_trainer_step(t, &batch, &r));
    cek_trainer_free(t);
    close_model();
    return r.loss;
}

START_TEST(what_was_cast_to_f32_is_reduced_in_f32)
{
    static const uint32_t functions[] = { CEK_REDUCE_SUM, CEK_REDUCE_MAX, CEK_REDUCE_SUM_SQUARES };
    static const double losses[] = { 10.5, 4.5, 45.5 };

    ck_assert(fabs(loss_of_sums(CEK_F64, functions[_i], false) - losses[_i]) < 1e-12);
    ck_assert(fabs(loss_of_sums(CEK_F32, functions[_i], true) - losses[_i]) < 1e-5);
    ck_assert(fabs(loss_of_sums(CEK_F64, functions[_i], true) - losses[_i]) < 1e-5);
}
END_TEST

START_TEST(what_was_cast_to_f32_is_an_output)
{
    const float inputs[] = { 1, 2, 3 };
    float outputs[3];

    open_model("cpu:0", 1, (int64_t[]){ 3 });
    ck_assert_int_gt(cek_part_cast(model, cek_part_scale(model, 0, 2, 0), CEK_F32), 0);
    predict(NULL, (const void *const[]){ inputs }, 1, outputs);
    ck_assert(outputs[0] == 2 && outputs[1] == 4 && outputs[2] == 6);
    close_model();
}
END_TEST

/* The loss of a penalty on the weights of a convolution, which is added before the convolution or behind it. */
static double loss_with_penalty(bool before)
{
    const cek_parameter_options weights = {
        .size = sizeof weights, .rank = 4, .shape = (int64_t[]){ 3, 2, 3, 3 }, .fan_in = 18
    };
    const cek_trainer_options o = { .size = sizeof o, .batch = 2 };
    static float inputs[2 * 2 * 5 * 5];
    const cek_batch batch = {
        .size = sizeof batch, .input_type = CEK_F32, .count = 2, .inputs = inputs, .targets = (int32_t[2]){ 0 }
    };
    cek_step_result r = { .size = sizeof r };
    cek_trainer *t;
    int w, y, penalty = -1;

    for (int i = 0; i < 2 * 2 * 5 * 5; i++)
        inputs[i] = (float)(i * 7 % 11) / 11;
    open_model("cpu:0", 3, (int64_t[]){ 2, 5, 5 });
    w = cek_part_parameter(model, "w", &weights);
    if (before)
        penalty = cek_part_reduce(model, w, CEK_REDUCE_SUM_SQUARES, 15, true);
    y = cek_part_conv(model, 0, w, NULL);
    if (!before)
        penalty = cek_part_reduce(model, w, CEK_REDUCE_SUM_SQUARES, 15, true);
    assert_ok(cek_model_set_output(model, y));
    penalty = cek_part_reshape(model, penalty, 1, (int64_t[]){ 1 });
    y = cek_part_reduce(model, y, CEK_REDUCE_SUM_SQUARES, 1 << 1 | 1 << 2 | 1 << 3, false);
    cek_part_loss(model, cek_part_apply(model, CEK_PW_ADD, y, penalty), -1);
    cek_model_init(model, 1);
    assert_ok(cek_trainer_create(model, devices, 1, &o, &t));
    for (int i = 0; i < 3; i++)
        assert_ok(cek_trainer_step(t, &batch, &r));
    cek_trainer_free(t);
    close_model();
    return r.loss;
}

START_TEST(a_parameter_may_be_read_by_its_axes_before_a_convolution_reads_it)
{
    const double before = loss_with_penalty(true), behind = loss_with_penalty(false);

    ck_assert_msg(fabs(before - behind) <= 1e-5 * behind, "%.9g, %.9g", before, behind);
}
END_TEST

/* A layout of weights follows from what reads them on the way to the model's output. */
START_TEST(a_convolution_beside_the_output_is_predicted)
{
    const cek_conv_layer layer = { .size = sizeof layer, .out_channels = 3, .kernel = { 3, 3 } };
    const cek_predictor_options o = { .size = sizeof o, .output_count = 1, .outputs = (const char *const[]){ "side" } };
    float inputs[2 * 5 * 5], alone[3 * 3 * 3], beside[3 * 3 * 3];

    for (int i = 0; i < 2 * 5 * 5; i++)
        inputs[i] = (float)(i * 7 % 11) / 11;
    for (int i = 0; i < 2; i++) {
        int side;

        open_model("cpu:0", 3, (int64_t[]){ 2, 5, 5 });
        assert_ok(cek_model_name(model, "side"));
        assert_ok(cek_model_conv(model, 0, &layer, &side));
        assert_ok(cek_model_set_output(model, i ? cek_part_scale(model, 0, 2, 1) : side));
        cek_model_init(model, 1);
        predict(&o, (const void *const[]){ inputs }, 1, i ? beside : alone);
        close_model();
    }
    for (int i = 0; i < 3 * 3 * 3; i++)
        ck_assert_msg(fabsf(alone[i] - beside[i]) <= 1e-5f, "%d: %g, %g", i, alone[i], beside[i]);
}
END_TEST

/* More than one part takes, so there are several. */
START_TEST(a_name_goes_to_what_all_were_put_together_in)
{
    const cek_predictor_options o = { .size = sizeof o,
                                      .output_count = 1,
                                      .outputs = (const char *const[]){ "joined" } };
    const float inputs[] = { 1, 2 };
    float outputs[18];
    int nodes[9], x;

    open_model("cpu:0", 1, (int64_t[]){ 2 });
    x = cek_part_scale(model, 0, 2, 1);
    for (int i = 0; i < 9; i++)
        nodes[i] = i % 2 ? x : 0;
    assert_ok(cek_model_name(model, "joined"));
    ck_assert_int_gt(cek_part_concat(model, 9, nodes, 1), 0);
    predict(&o, (const void *const[]){ inputs }, 1, outputs);
    for (int i = 0; i < 9; i++)
        ck_assert(outputs[2 * i] == (i % 2 ? 3 : 1) && outputs[2 * i + 1] == (i % 2 ? 5 : 2));
    close_model();
}
END_TEST

START_TEST(windows_of_a_pool_may_have_gaps)
{
    const cek_windows gaps = { .size = sizeof gaps, .kernel = { 2 }, .stride = { 1 }, .dilation = { 2 } };
    const float inputs[] = { 1, 9, 3, 2, 5 };
    float outputs[3];

    open_model("cpu:0", 2, (int64_t[]){ 1, 5 });
    ck_assert_int_gt(cek_part_pool(model, 0, CEK_POOL_MAX, false, &gaps), 0);
    assert_ok(cek_model_status(model));
    predict(NULL, (const void *const[]){ inputs }, 1, outputs);
    ck_assert(outputs[0] == 3 && outputs[1] == 9 && outputs[2] == 5);
    close_model();
}
END_TEST

START_TEST(a_parameter_beside_the_loss_is_said_to_be_so)
{
    cek_trainer *t;
    int y, z;

    open_model("cpu:0", 1, (int64_t[]){ 3 });
    assert_ok(cek_model_linear(model, 0, 2, true, &z));
    assert_ok(cek_model_linear(model, z, 2, true, &y));
    assert_ok(cek_model_set_output(model, y));
    cek_part_loss(model, cek_part_reduce(model, z, CEK_REDUCE_SUM, 1 << 1, false), -1);
    assert_fails(cek_trainer_create(model, devices, 1, NULL, &t), CEK_INVALID, "node 2 (linear)",
                 "does not lead to the loss");
    close_model();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("parts, places");
    TCase *cases = tcase_create("parts, places");
    tcase_add_loop_test(cases, a_second_input_is_read_where_it_lies_in_every_type, 0, 2);
    tcase_add_loop_test(cases, what_was_cast_to_f32_is_reduced_in_f32, 0, 3);
    tcase_add_test(cases, what_was_cast_to_f32_is_an_output);
    tcase_add_test(cases, a_parameter_may_be_read_by_its_axes_before_a_convolution_reads_it);
    tcase_add_test(cases, a_convolution_beside_the_output_is_predicted);
    tcase_add_test(cases, a_name_goes_to_what_all_were_put_together_in);
    tcase_add_test(cases, windows_of_a_pool_may_have_gaps);
    tcase_add_test(cases, a_parameter_beside_the_loss_is_said_to_be_so);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
