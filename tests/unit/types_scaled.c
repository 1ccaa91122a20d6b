/* types_scaled.c - the loss scale of f16 in training: what a step that overflows leaves, which gradients are shown,
 * steps in two parts and in several batches. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan_run.h"
#include "tests/suite.h"
#include "types_bench.h"

/* Nothing in it depends on which step it is. */
#define STILL "conv:4,3,p1 relu maxpool:2 flatten linear:8 tanh linear:3"

static cek_step_result step_of(cek_trainer *trainer, int64_t count)
{
    const cek_batch batch = {
        .size = sizeof batch, .count = count, .inputs = inputs, .targets = labels, .input_type = CEK_F32
    };
    cek_step_result r = { .size = sizeof r };

    assert_ok(cek_trainer_step(trainer, &batch, &r));
    return r;
}

static cek_step_result backward_of(cek_trainer *trainer, int64_t count)
{
    const cek_batch batch = {
        .size = sizeof batch, .count = count, .inputs = inputs, .targets = labels, .input_type = CEK_F32
    };
    cek_step_result r = { .size = sizeof r };

    assert_ok(cek_trainer_backward(trainer, &batch, &r));
    return r;
}

static uint64_t skipped_of(cek_trainer *trainer)
{
    uint64_t skipped;

    assert_ok(cek_trainer_skipped(trainer, &skipped));
    return skipped;
}

static void parameters_equal(cek_trainer *one, cek_trainer *other, const cek_model *m, size_t devices, const char *when)
{
    uint64_t bytes;

    for (size_t d = 0; d < devices; d++) {
        float *a = parameters_of(one, m, d, &bytes), *b = parameters_of(other, m, d, &bytes);

        ck_assert_msg(memcmp(a, b, bytes) == 0, "%s: device %zu has other parameters", when, d);
        free(a);
        free(b);
    }
    float *a = masters_of(one, m, &bytes), *b = masters_of(other, m, &bytes);
    ck_assert_msg(memcmp(a, b, bytes) == 0, "%s: owners have other parameters", when);
    free(a);
    free(b);
}

/* ---- steps that are skipped ---- */

static const char *const scaled_on[] = { "cpu:0", "cpu:0,cpu:1", "reference:0,cpu:0,cpu:1" };

/* 2^40 is too large for any gradient here: the first steps change nothing on any device, then the factor fits. */
START_TEST(a_step_that_overflows_changes_nothing_anywhere)
{
    const cek_optimizer adam = { .size = sizeof adam, .algorithm = CEK_OPTIMIZER_ADAM, .lr = 0.01 };
    const cek_trainer_options o = { .size = sizeof o,
                                    .batch = ROWS,
                                    .shares = CEK_SHARES_EQUAL,
                                    .norm_group = 4,
                                    .optimizer = &adam,
                                    .average = 0.5,
                                    .max_norm = 100,
                                    .loss_scale = 0x1p40,
                                    .type = CEK_F16 };
    team t;
    cek_model *m = network(NET);
    cek_trainer *trainer;
    uint64_t bytes, skipped, before = 0;
    float *first, *now;
    double losses[90];

    team_open(&t, scaled_on[_i]);
    assert_ok(cek_trainer_create(m, t.devices, t.count, &o, &trainer));
    first = parameters_of(trainer, m, 0, &bytes);
    for (int i = 0; i < 90; i++) {
        losses[i] = step_loss(trainer);
        assert_ok(cek_trainer_skipped(trainer, &skipped));
        if (i == 0)
            ck_assert_uint_eq(skipped, 1);
        for (size_t d = 0; d < t.count; d++) {
            now = parameters_of(trainer, m, d, &bytes);
            ck_assert_int_eq(memcmp(now, first, bytes) == 0, skipped == (uint64_t)i + 1);
            free(now);
        }
        if (skipped < (uint64_t)i + 1 && before == 0)
            before = skipped;
        if (skipped == (uint64_t)i + 1 && i == 3) { /* what averages has not moved either */
            assert_ok(cek_trainer_use_average(trainer, true));
            now = parameters_of(trainer, m, 0, &bytes);
            ck_assert_int_eq(memcmp(now, first, bytes), 0);
            free(now);
            assert_ok(cek_trainer_use_average(trainer, false));
        }
    }
    ck_assert_uint_ge(before, 10); /* halvings, three steps each */
    ck_assert_uint_le(skipped, 89);
    ck_assert_double_lt(losses[89], 0.9 * losses[0]);
    free(first);
    cek_trainer_free(trainer);
    team_close(&t);
    cek_model_free(m);
}
END_TEST

static cek_trainer *adam_from(double loss_scale, cek_model *m, const team *t)
{
    const cek_optimizer adam = { .size = sizeof adam, .algorithm = CEK_OPTIMIZER_ADAM, .lr = 0.01 };
    const cek_trainer_options o = { .size = sizeof o,
                                    .batch = ROWS,
                                    .shares = CEK_SHARES_EQUAL,
                                    .optimizer = &adam,
                                    .average = 0.5,
                                    .max_norm = 1,
                                    .loss_scale = loss_scale,
                                    .type = CEK_F16 };
    cek_trainer *trainer;

    assert_ok(cek_trainer_create(m, t->devices, t->count, &o, &trainer));
    return trainer;
}

/* Neither in moments nor in their count nor in the average: what comes behind them is what a trainer does that begins
 * with the factor that fits, bit for bit. */
START_TEST(skipped_steps_leave_no_trace)
{
    team t;
    cek_model *m = network(STILL);
    cek_trainer *late, *ready;
    cek_step_result r, other;

    team_open(&t, scaled_on[_i]);
    late = adam_from(0x1p40, m, &t);
    r = step_of(late, ROWS);
    while (skipped_of(late) == (uint64_t)r.step)
        r = step_of(late, ROWS);
    ck_assert_int_gt(r.step, 10);
    ready = adam_from(r.loss_scale, m, &t);
    other = step_of(ready, ROWS);
    ck_assert_uint_eq(skipped_of(ready), 0);
    for (int i = 0; i < 10; i++) {
        ck_assert_double_eq(r.loss, other.loss);
        ck_assert_double_eq(r.loss_scale, other.loss_scale);
        parameters_equal(late, ready, m, t.count, "after a step");
        r = step_of(late, ROWS);
        other = step_of(ready, ROWS);
    }
    assert_ok(cek_trainer_use_average(late, true));
    assert_ok(cek_trainer_use_average(ready, true));
    parameters_equal(late, ready, m, t.count, "the average");
    cek_trainer_free(late);
    cek_trainer_free(ready);
    team_close(&t);
    cek_model_free(m);
}
END_TEST

/* ---- what is shown ---- */

START_TEST(before_the_first_step_gradients_are_zero)
{
    team t;
    cek_model *m = network(STILL);
    cek_trainer *trainer;
    double gradient[24];

    team_open(&t, scaled_on[_i]);
    trainer = adam_from(0, m, &t);
    memset(gradient, 0xff, sizeof gradient);
    assert_ok(cek_trainer_read_gradient(trainer, cek_model_parameter_count(m) - 2, gradient, 24));
    for (int i = 0; i < 24; i++)
        ck_assert_double_eq(gradient[i], 0);
    cek_trainer_free(trainer);
    team_close(&t);
    cek_model_free(m);
}
END_TEST

/* The factor is taken off, from updates and from what is shown of gradients: another power of two changes
 * next to nothing. */
START_TEST(gradients_are_those_of_the_loss_without_its_scale)
{
    double gradients[2][24], losses[2];

    for (int k = 0; k < 2; k++) {
        const cek_optimizer sgd = { .size = sizeof sgd, .algorithm = CEK_OPTIMIZER_SGD, .lr = 0.05 };
        const cek_trainer_options o = { .size = sizeof o,
                                        .batch = ROWS,
                                        .optimizer = &sgd,
                                        .max_norm = 0.5,
                                        .loss_scale = k ? 4096 : 16,
                                        .type = CEK_F16 };
        const cek_batch batch = {
            .size = sizeof batch, .count = ROWS, .inputs = inputs, .targets = labels, .input_type = CEK_F32
        };
        cek_step_result r = { .size = sizeof r };
        team t;
        cek_model *m = network(NET);
        cek_trainer *trainer;
        size_t last = cek_model_parameter_count(m) - 2;

        team_open(&t, "cpu:0");
        assert_ok(cek_trainer_create(m, t.devices, t.count, &o, &trainer));
        for (int i = 0; i < 3; i++)
            assert_ok(cek_trainer_step(trainer, &batch, &r));
        losses[k] = r.loss;
        ck_assert_double_eq(r.loss_scale, k ? 4096 : 16);
        assert_ok(cek_trainer_read_gradient(trainer, last, gradients[k], 24));
        cek_trainer_free(trainer);
        team_close(&t);
        cek_model_free(m);
    }
    ck_assert_double_eq_tol(losses[0], losses[1], UNIT[1] * losses[0]);
    all_near("gradient", gradients[1], gradients[0], 24, 12 * UNIT[1]);
}
END_TEST

START_TEST(what_does_not_go_with_a_scale_is_refused)
{
    static const struct {
        cek_dtype type;
        uint32_t algorithm;
        double max_value, loss_scale;
        cek_status status;
        const char *text;
    } wrong[] = {
        { CEK_F16, CEK_OPTIMIZER_LAMB, 0, 0, CEK_UNSUPPORTED, "LAMB looks at gradients" },
        { CEK_F16, CEK_OPTIMIZER_ADAM, 1, 0, CEK_UNSUPPORTED, "clipping by value looks at gradients" },
        { CEK_BF16, CEK_OPTIMIZER_ADAM, 0, 8, CEK_INVALID, "in f16 alone" },
        { CEK_F16, CEK_OPTIMIZER_ADAM, 0, -8, CEK_INVALID, "a loss scale of -8" },
    };
    const cek_optimizer optimizer = { .size = sizeof optimizer, .algorithm = wrong[_i].algorithm };
    const cek_trainer_options o = { .size = sizeof o,
                                    .optimizer = &optimizer,
                                    .type = wrong[_i].type,
                                    .max_value = wrong[_i].max_value,
                                    .loss_scale = wrong[_i].loss_scale };
    team t;
    cek_model *m = network(NET);
    cek_trainer *trainer;

    team_open(&t, "cpu:0");
    ck_assert_uint_eq(cek_trainer_create(m, t.devices, 1, &o, &trainer), wrong[_i].status);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), wrong[_i].text));
    team_close(&t);
    cek_model_free(m);
}
END_TEST

/* ---- a step in two parts ---- */

START_TEST(backward_and_update_are_a_step_that_may_be_skipped)
{
    team t;
    cek_model *m = network(STILL);
    cek_trainer *whole, *parts;

    team_open(&t, scaled_on[_i]);
    whole = adam_from(0x1p34, m, &t);
    parts = adam_from(0x1p34, m, &t);
    for (int i = 0; i < 60; i++) {
        cek_step_result one = step_of(whole, ROWS - i % 5), other = backward_of(parts, ROWS - i % 5);

        assert_ok(cek_trainer_update(parts));
        ck_assert_double_eq(one.loss_scale, other.loss_scale);
        ck_assert_uint_eq(skipped_of(whole), skipped_of(parts));
    }
    ck_assert_uint_gt(skipped_of(parts), 10);
    ck_assert_uint_lt(skipped_of(parts), 50);
    parameters_equal(whole, parts, m, t.count, "after 60 steps");
    cek_trainer_free(whole);
    cek_trainer_free(parts);
    team_close(&t);
    cek_model_free(m);
}
END_TEST

static cek_trainer *plain_from(double loss_scale, cek_model *m, const team *t)
{
    const cek_optimizer sgd = { .size = sizeof sgd, .algorithm = CEK_OPTIMIZER_SGD, .lr = 0x1p-4 };
    const cek_trainer_options o = { .size = sizeof o,
                                    .batch = ROWS,
                                    .shares = CEK_SHARES_EQUAL,
                                    .optimizer = &sgd,
                                    .loss_scale = loss_scale,
                                    .type = CEK_F16 };
    cek_trainer *trainer;

    assert_ok(cek_trainer_create(m, t->devices, t->count, &o, &trainer));
    return trainer;
}

/* Whether a step is skipped is decided over what updates would see. */
START_TEST(gradients_that_are_written_over_those_that_overflowed_update)
{
    team t;
    cek_model *m = network(STILL);
    cek_trainer *trainer;
    float *before, *now;
    uint64_t bytes;

    team_open(&t, scaled_on[_i]);
    trainer = plain_from(0x1p40, m, &t);
    before = masters_of(trainer, m, &bytes);
    (void)backward_of(trainer, ROWS);
    assert_ok(cek_trainer_discard(trainer));
    now = masters_of(trainer, m, &bytes);
    ck_assert_int_eq(memcmp(now, before, bytes), 0);
    free(now);
    (void)backward_of(trainer, ROWS);
    for (size_t p = 0; p < cek_model_parameter_count(m); p++) {
        cek_parameter parameter;
        double values[1 << 10];

        assert_ok(cek_model_parameter(m, p, &parameter));
        for (int64_t i = 0; i < parameter.count; i++)
            values[i] = 0x1p-4;
        assert_ok(cek_trainer_write_gradient(trainer, p, values, parameter.count));
    }
    assert_ok(cek_trainer_update(trainer));
    ck_assert_uint_le(skipped_of(trainer), 1); /* the discarded one at most */
    now = masters_of(trainer, m, &bytes);
    for (uint64_t i = 0; i < bytes / sizeof *now; i++)
        ck_assert_float_eq(now[i], before[i] - 0x1p-8f);
    free(now);
    free(before);
    cek_trainer_free(trainer);
    team_close(&t);
    cek_model_free(m);
}
END_TEST

/* ---- a step of several batches ---- */

/* Each sample's activations and gradients are the same numbers in a smaller batch; what parameters get is added up in
 * f32, in another order: at most ROWS and as many windows of the convolution are terms of a sum. */
START_TEST(a_step_of_several_batches_is_that_of_one_and_is_skipped_as_it_is)
{
    const cek_optimizer sgd = { .size = sizeof sgd, .algorithm = CEK_OPTIMIZER_SGD, .lr = 0.05 };
    cek_trainer_options o = { .size = sizeof o,
                              .batch = ROWS,
                              .shares = CEK_SHARES_EQUAL,
                              .optimizer = &sgd,
                              .loss_scale = 0x1p34,
                              .type = CEK_F16 };
    team t;
    cek_model *m = network(STILL);
    cek_trainer *one, *several;

    team_open(&t, scaled_on[_i]);
    assert_ok(cek_trainer_create(m, t.devices, t.count, &o, &one));
    o.batch = ROWS / 3;
    o.accumulate = 3;
    assert_ok(cek_trainer_create(m, t.devices, t.count, &o, &several));
    for (int i = 0; i < 60; i++) {
        const int64_t count = i % 2 ? ROWS - i % 7 : ROWS; /* the last of the batches has fewer, or none */
        cek_step_result a = step_of(one, count), b = step_of(several, count);

        ck_assert_double_eq(a.loss_scale, b.loss_scale);
        ck_assert_double_eq_tol(a.loss, b.loss, 12 * UNIT[1] * a.loss);
        ck_assert_uint_eq(skipped_of(one), skipped_of(several));
    }
    ck_assert_uint_gt(skipped_of(several), 10);
    ck_assert_uint_lt(skipped_of(several), 50);
    cek_trainer_free(one);
    cek_trainer_free(several);
    team_close(&t);
    cek_model_free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("types_scaled");
    TCase *tcase = tcase_create("types_scaled");

    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, a_step_that_overflows_changes_nothing_anywhere, 0, 3);
    tcase_add_loop_test(tcase, skipped_steps_leave_no_trace, 0, 3);
    tcase_add_loop_test(tcase, before_the_first_step_gradients_are_zero, 0, 3);
    tcase_add_test(tcase, gradients_are_those_of_the_loss_without_its_scale);
    tcase_add_loop_test(tcase, what_does_not_go_with_a_scale_is_refused, 0, 4);
    tcase_add_loop_test(tcase, backward_and_update_are_a_step_that_may_be_skipped, 0, 3);
    tcase_add_loop_test(tcase, gradients_that_are_written_over_those_that_overflowed_update, 0, 3);
    tcase_add_loop_test(tcase, a_step_of_several_batches_is_that_of_one_and_is_skipped_as_it_is, 0, 3);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
