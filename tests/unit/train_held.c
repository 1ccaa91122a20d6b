/* train_held.c - a step in two parts: what was read, changed or thrown away between them, and that it is the same step,
 * bit for bit, on one device or several, at once or with work that is late. */
#include "train_bench.h"

enum { STEPS = 6 };

static const char *const lists[] = { "reference:0", "cpu:0", "sim:0", "cpu:0,cpu:1,cpu:2", "sim:0,cpu:0,sim:1" };
enum { LISTS = sizeof lists / sizeof *lists };
static const double unequal[] = { 1, 3, 2 };

/* What an update needs to see first: nothing, the norm of all gradients, the lengths of parameters and their steps. */
static const cek_optimizer momentum = {
    .size = sizeof momentum, .algorithm = CEK_OPTIMIZER_SGD, .lr = 0.0625, .momentum = 0.5
};
static const cek_optimizer lamb = { .size = sizeof lamb, .algorithm = CEK_OPTIMIZER_LAMB, .lr = 0.01 };
static const cek_optimizer plain = { .size = sizeof plain, .algorithm = CEK_OPTIMIZER_SGD, .lr = 0.0625 };
static const struct {
    const cek_optimizer *optimizer;
    double max_norm;
} updates[] = { { &momentum, 0 }, { NULL, 0.05 }, { &lamb, 0 } };
enum { UPDATES = sizeof updates / sizeof *updates };

static void open_bench(bench *b, const char *list, const cek_optimizer *optimizer, double max_norm)
{
    cek_trainer_options o = options_small();

    setenv("CEKERNELS_SIM_DEVICES", "2", 1);
    setenv("CEKERNELS_SIM_WORK", "late", 1);
    setenv("CEKERNELS_SIM_LINK", "100M", 1);
    bench_engine(b, "3", list);
    o.optimizer = optimizer;
    o.max_norm = max_norm;
    o.average = optimizer ? 0 : 0.5;
    if (b->count > 1)
        o.shares = CEK_SHARES_GIVEN, o.share_weights = unequal;
    ok(cek_trainer_create(b->model, b->devices, b->count, &o, &b->trainer));
}

/* Of no two steps the same, and of more sizes than there are plans. */
static cek_batch batch_number(int i)
{
    return batch_of(i * 7 % 20, SAMPLES - 20 - i * 9);
}

static double *gradient_of(bench *b, size_t parameter, int64_t *count)
{
    cek_parameter p;
    double *values;

    ok(cek_model_parameter(b->model, parameter, &p));
    values = malloc((size_t)p.count * sizeof *values);
    ok(cek_trainer_read_gradient(b->trainer, parameter, values, p.count));
    *count = p.count;
    return values;
}

static void gradients_are_equal(bench *a, bench *b)
{
    for (size_t p = 0; p < cek_model_parameter_count(a->model); p++) {
        int64_t count;
        double *one = gradient_of(a, p, &count), *other = gradient_of(b, p, &count);

        ck_assert_msg(memcmp(one, other, (size_t)count * sizeof *one) == 0, "gradient %zu", p);
        free(one);
        free(other);
    }
}

static void weights_of(bench *b, char hex[65])
{
    ok(cek_trainer_pull(b->trainer));
    cek_model_sha256(b->model, hex);
}

static void weights_are_equal(bench *a, bench *b, const char *list)
{
    char one[65], other[65];

    weights_of(a, one);
    weights_of(b, other);
    ck_assert_msg(strcmp(one, other) == 0, "%s: other weights", list);
}

/* Every gradient times `factor`. */
static void gradients_scale(bench *b, double factor)
{
    for (size_t p = 0; p < cek_model_parameter_count(b->model); p++) {
        int64_t count;
        double *values = gradient_of(b, p, &count);

        for (int64_t i = 0; i < count; i++)
            values[i] *= factor;
        ok(cek_trainer_write_gradient(b->trainer, p, values, count));
        free(values);
    }
}

START_TEST(backward_and_update_are_a_step_bit_for_bit)
{
    const char *list = lists[_i % LISTS];
    bench whole, parts;

    open_bench(&whole, list, updates[_i / LISTS].optimizer, updates[_i / LISTS].max_norm);
    open_bench(&parts, list, updates[_i / LISTS].optimizer, updates[_i / LISTS].max_norm);
    for (int i = 0; i < STEPS; i++) {
        cek_step_result one = { .size = sizeof one }, other = { .size = sizeof other };
        cek_batch batch = batch_number(i);

        if (i == 3) { /* among whole steps too */
            ok(cek_trainer_step(parts.trainer, &batch, &other));
        } else {
            ok(cek_trainer_backward(parts.trainer, &batch, &other));
            if (i % 2)
                gradients_scale(&parts, 1); /* what was read is written back */
            ok(cek_trainer_update(parts.trainer));
        }
        ok(cek_trainer_step(whole.trainer, &batch, &one));
        ck_assert(one.loss == other.loss && one.correct == other.correct && one.step == other.step);
        for (size_t d = 0; d < parts.count; d++)
            ck_assert_int_eq(cek_trainer_share(parts.trainer, d), cek_trainer_share(whole.trainer, d));
        if (i % 3 == 1)
            weights_are_equal(&whole, &parts, list);
    }
    weights_are_equal(&whole, &parts, list);
    replicas_are_equal(&parts);
    if (!updates[_i / LISTS].optimizer) { /* the average went with it */
        ok(cek_trainer_use_average(whole.trainer, true));
        ok(cek_trainer_use_average(parts.trainer, true));
        weights_are_equal(&whole, &parts, list);
    }
    bench_close(&whole);
    bench_close(&parts);
}
END_TEST

START_TEST(gradients_that_wait_are_those_of_the_step)
{
    bench whole, parts;
    cek_batch batch = batch_number(1);

    open_bench(&whole, lists[_i], &plain, 0);
    open_bench(&parts, lists[_i], &plain, 0);
    ok(cek_trainer_step(whole.trainer, &batch, NULL));
    ok(cek_trainer_backward(parts.trainer, &batch, NULL));
    gradients_are_equal(&whole, &parts);
    gradients_scale(&parts, 2);
    gradients_scale(&parts, 0.5);
    gradients_are_equal(&whole, &parts);
    ok(cek_trainer_update(parts.trainer));
    gradients_are_equal(&whole, &parts);
    weights_are_equal(&whole, &parts, lists[_i]);
    bench_close(&whole);
    bench_close(&parts);
}
END_TEST

/* Twice the gradient is twice the rate: by powers of two nothing is rounded. */
START_TEST(what_is_written_is_what_updates_see)
{
    cek_optimizer twice = plain;
    const cek_batch last = batch_of(0, 50);
    bench fast, changed;
    char before[65], after[65];

    twice.lr *= 2;
    open_bench(&fast, lists[_i], &twice, 0);
    open_bench(&changed, lists[_i], &plain, 0);
    for (int i = 0; i < STEPS; i++) {
        cek_batch batch = batch_number(i);

        ok(cek_trainer_step(fast.trainer, &batch, NULL));
        ok(cek_trainer_backward(changed.trainer, &batch, NULL));
        gradients_scale(&changed, 2);
        ok(cek_trainer_update(changed.trainer));
        weights_are_equal(&fast, &changed, lists[_i]);
    }
    weights_of(&changed, before);
    ok(cek_trainer_backward(changed.trainer, &last, NULL));
    gradients_scale(&changed, 0);
    ok(cek_trainer_update(changed.trainer));
    weights_of(&changed, after);
    ck_assert_str_eq(before, after);
    replicas_are_equal(&changed);
    bench_close(&fast);
    bench_close(&changed);
}
END_TEST

/* Whatever its batch was: both have discarded as many, as random numbers are those of a step. */
START_TEST(a_step_that_is_discarded_leaves_nothing)
{
    const char *list = lists[_i % LISTS];
    bench with, without;
    char before[65], after[65];

    open_bench(&with, list, updates[_i / LISTS].optimizer, updates[_i / LISTS].max_norm);
    open_bench(&without, list, updates[_i / LISTS].optimizer, updates[_i / LISTS].max_norm);
    for (int i = 0; i < STEPS; i++) {
        cek_batch batch = batch_number(i), other = batch_of((i * 7 + 5) % 20, SAMPLES - 20 - i * 9);

        ok(cek_trainer_backward(with.trainer, &batch, NULL));
        weights_of(&with, before);
        ok(cek_trainer_discard(with.trainer));
        weights_of(&with, after);
        ck_assert_str_eq(before, after);
        ok(cek_trainer_backward(without.trainer, &other, NULL));
        ok(cek_trainer_discard(without.trainer));
        ok(cek_trainer_step(with.trainer, &batch, NULL));
        ok(cek_trainer_step(without.trainer, &batch, NULL));
        weights_are_equal(&with, &without, list);
    }
    replicas_are_equal(&with);
    bench_close(&with);
    bench_close(&without);
}
END_TEST

START_TEST(while_gradients_wait_parameters_are_those_before)
{
    const cek_array_options a = { .size = sizeof a,
                                  .input_type = CEK_F32,
                                  .count = SAMPLES,
                                  .rank = 3,
                                  .shape = { 1, SIDE, SIDE },
                                  .inputs = images,
                                  .labels = labels,
                                  .classes = CLASSES };
    cek_metrics before = { .size = sizeof before }, after = { .size = sizeof after };
    cek_batch batch = batch_number(0);
    cek_dataset *set;
    char one[65], other[65];
    bench b;

    open_bench(&b, lists[_i], NULL, 0);
    ok(cek_dataset_arrays(&a, &set));
    ok(cek_trainer_step(b.trainer, &batch, NULL));
    ok(cek_trainer_evaluate(b.trainer, set, &before));
    weights_of(&b, one);
    ok(cek_trainer_backward(b.trainer, &batch, NULL));
    ok(cek_trainer_evaluate(b.trainer, set, &after));
    weights_of(&b, other);
    ck_assert(before.loss == after.loss && before.accuracy == after.accuracy);
    ck_assert_str_eq(one, other);
    replicas_are_equal(&b);
    ok(cek_trainer_update(b.trainer));
    weights_of(&b, other);
    ck_assert_str_ne(one, other);
    ck_assert_uint_eq(cek_trainer_device_count(b.trainer), b.count);
    for (size_t d = 0; d < b.count; d++)
        ck_assert_ptr_eq(cek_trainer_device(b.trainer, d), b.devices[d]);
    ck_assert_ptr_null(cek_trainer_device(b.trainer, b.count));
    cek_dataset_free(set);
    bench_close(&b);
}
END_TEST

#define refused(call, why)                                                                       \
    do {                                                                                         \
        ck_assert_int_eq((call), CEK_INVALID);                                                   \
        ck_assert_msg(strstr(cek_error_text(), why) != NULL, "%s: %s", #call, cek_error_text()); \
    } while (0)

START_TEST(what_must_wait_is_refused)
{
    cek_batch batch = batch_number(0), empty = batch_of(0, 0);
    double value = 0;
    size_t found;
    cek_dataset *set;
    bench b;

    open_bench(&b, lists[_i], NULL, 0);
    ok(cek_dataset_digits(1, false, &set));
    refused(cek_trainer_update(b.trainer), "no gradients wait");
    refused(cek_trainer_discard(b.trainer), "no gradients wait");
    refused(cek_trainer_write_gradient(b.trainer, 0, &value, 1), "no gradients wait");
    refused(cek_trainer_backward(b.trainer, &empty, NULL), "0 samples");
    ok(cek_trainer_step(b.trainer, &batch, NULL)); /* which is not held for that */
    ok(cek_trainer_submit(b.trainer, &batch));
    refused(cek_trainer_backward(b.trainer, &batch, NULL), "not collected");
    ok(cek_trainer_collect(b.trainer, NULL));
    ok(cek_trainer_backward(b.trainer, &batch, NULL));
    refused(cek_trainer_backward(b.trainer, &batch, NULL), "gradients wait");
    refused(cek_trainer_step(b.trainer, &batch, NULL), "gradients wait");
    refused(cek_trainer_submit(b.trainer, &batch), "gradients wait");
    refused(cek_trainer_use_average(b.trainer, true), "gradients wait");
    refused(cek_trainer_fit(b.trainer, set, NULL, NULL), "gradients wait");
    refused(cek_trainer_write_gradient(b.trainer, 0, &value, 1), "elements");
    refused(cek_trainer_write_gradient(b.trainer, 99, &value, 1), "parameter 99");
    ok(cek_model_find_parameter(b.model, "7.bias", &found));
    ck_assert_uint_eq(found, 5);
    ck_assert_int_eq(cek_model_find_parameter(b.model, "7", &found), CEK_NOT_FOUND);
    ok(cek_trainer_update(b.trainer));
    ok(cek_trainer_backward(b.trainer, &batch, NULL));
    cek_dataset_free(set);
    bench_close(&b); /* while they wait */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train_held");
    TCase *tcase = tcase_create("train_held");

    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, backward_and_update_are_a_step_bit_for_bit, 0, UPDATES * LISTS);
    tcase_add_loop_test(tcase, gradients_that_wait_are_those_of_the_step, 0, LISTS);
    tcase_add_loop_test(tcase, what_is_written_is_what_updates_see, 0, LISTS);
    tcase_add_loop_test(tcase, a_step_that_is_discarded_leaves_nothing, 0, UPDATES * LISTS);
    tcase_add_loop_test(tcase, while_gradients_wait_parameters_are_those_before, 0, LISTS);
    tcase_add_loop_test(tcase, what_must_wait_is_refused, 0, LISTS);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
