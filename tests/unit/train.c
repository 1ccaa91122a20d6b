/* train.c - what holds for training over several devices: shares, exact gradients, one writer per shard, clean failures.
 *
 * Runs on CPU devices that share the machine's processors; a simulated device fails on demand. */
#include <check.h>
#include <math.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cekernels/nn.h"
#include "core/base/random.h"
#include "core/base/status.h"
#include "nn/train/crew.h"
#include "nn/train/shares.h"

#define ok(call) ck_assert_msg((call) == CEK_OK, "%s: %s", #call, cek_error_text())

/* ---- Shares and shards -------------------------------------------------------------------------------------------- */

static void shares_are(int64_t total, size_t count, const double *weights, const int64_t *want)
{
    int64_t got[8];
    cek__shares_split(total, count, weights, got);
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(got[i] == want[i], "%lld over %zu: share %zu is %lld, not %lld", (long long)total, count, i,
                      (long long)got[i], (long long)want[i]);
}

START_TEST(equal_shares_differ_by_at_most_one_and_the_earlier_are_larger)
{
    shares_are(128, 2, NULL, (int64_t[]){64, 64});
    shares_are(20, 2, NULL, (int64_t[]){10, 10});
    shares_are(404, 3, NULL, (int64_t[]){135, 135, 134});
    shares_are(2, 3, NULL, (int64_t[]){1, 1, 0});
}
END_TEST

START_TEST(given_shares_are_in_proportion_and_add_up)
{
    shares_are(100, 3, (double[]){1, 2, 1}, (int64_t[]){25, 50, 25});
    shares_are(10, 3, (double[]){1, 1, 1}, (int64_t[]){4, 3, 3});
    shares_are(7, 3, (double[]){0, 1, 0}, (int64_t[]){0, 7, 0});
    for (int64_t total = 1; total < 200; total++) {
        double weights[4] = {0.3, 0, 5.5, 1.7};
        int64_t got[4];
        cek__shares_split(total, 4, weights, got);
        ck_assert_int_eq(got[0] + got[1] + got[2] + got[3], total);
        ck_assert_int_eq(got[1], 0);
        for (int i = 0; i < 4; i++)
            ck_assert(fabs((double)got[i] - (double)total * weights[i] / 7.5) < 1);
    }
}
END_TEST

START_TEST(shards_tile_every_bucket)
{
    static const uint64_t sizes[] = {64, 640, 65536, 65537, 1000000, 25690112};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t bucket = 0; bucket < 3; bucket++)
            for (size_t count = 1; count <= 7; count++) {
                uint64_t covered = 0;
                for (size_t owner = 0; owner < count; owner++) {
                    cek__shard shard = cek__shard_of(bucket, sizes[s], owner, count);
                    if (shard.first == shard.end)
                        continue;
                    ck_assert_uint_eq(shard.first, covered);
                    ck_assert_uint_eq(shard.first % CEK__SHARD_UNIT, 0);
                    covered = shard.end;
                }
                ck_assert_uint_eq(covered, sizes[s]);
            }
}
END_TEST

/* ---- Crew ----------------------------------------------------------------------------------------------------------- */

static cek_status count_up(void *user, size_t member)
{
    atomic_int *seen = user;
    atomic_fetch_add(&seen[member], 1);
    return CEK_OK;
}

static cek_status second_is_lost(void *user, size_t member)
{
    (void)user;
    return member == 1 ? cek__fail(CEK_DEVICE_LOST, "member %zu fell", member) : cek__fail(CEK_CANCELLED, "gave up");
}

START_TEST(crew_runs_every_member_once_per_job)
{
    cek__crew *crew;
    atomic_int seen[3] = {0};
    ok(cek__crew_create(3, &crew));
    for (int job = 1; job <= 100; job++) {
        ok(cek__crew_run(crew, count_up, seen));
        for (int i = 0; i < 3; i++)
            ck_assert_int_eq(atomic_load(&seen[i]), job);
    }
    cek__crew_free(crew);
}
END_TEST

START_TEST(crew_reports_the_failure_that_came_first_in_cause)
{
    cek__crew *crew;
    ok(cek__crew_create(3, &crew));
    ck_assert_uint_eq(cek__crew_run(crew, second_is_lost, NULL), CEK_DEVICE_LOST);
    ck_assert_str_eq(cek_error_text(), "member 1 fell");
    cek__crew_free(crew);
}
END_TEST

/* ---- Training --------------------------------------------------------------------------------------------------------- */

enum { SIDE = 12, CLASSES = 5, SAMPLES = 96 };
#define NET "conv:8,3,p1 relu maxpool:2 dropout:0.25 conv:12,3 relu flatten linear:40 tanh linear:5"

typedef struct bench {
    cek_engine *engine;
    cek_device **devices;
    size_t count;
    cek_model *model;
    cek_trainer *trainer;
} bench;

static float images[SAMPLES][SIDE * SIDE];
static int32_t labels[SAMPLES];

/* Blobs whose place depends on the class, with noise. */
static void data_make(void)
{
    for (int s = 0; s < SAMPLES; s++) {
        labels[s] = s % CLASSES;
        for (int i = 0; i < SIDE * SIDE; i++) {
            float noise = cek__random_uniform(7, cek__stream(CEK__STREAM_USER, (uint64_t)s), (uint64_t)i) - 0.5f;
            images[s][i] = noise + ((i / SIDE) / 3 == labels[s] % 4 ? 0.5f : 0.0f) + (labels[s] == 4 ? 0.3f : 0.0f);
        }
    }
}

static cek_batch batch_of(int64_t first, int64_t count)
{
    return (cek_batch){.count = count, .inputs = images[first], .targets = labels + first, .input_type = CEK_F32};
}

static void bench_engine(bench *b, const char *cpu_devices, const char *list)
{
    memset(b, 0, sizeof *b);
    setenv("CEKERNELS_CPU_DEVICES", cpu_devices, 1);
    ok(cek_engine_create(NULL, &b->engine));
    ok(cek_engine_select(b->engine, list, &b->devices, &b->count));
    data_make();
    ok(cek_model_parse(NET, 3, (int64_t[]){1, SIDE, SIDE}, &b->model));
    cek_model_init(b->model, 3);
}

static cek_trainer_options options_small(void)
{
    return (cek_trainer_options){.size = sizeof(cek_trainer_options), .batch = SAMPLES, .seed = 5};
}

static void bench_open(bench *b, const char *cpu_devices, const char *list, const cek_trainer_options *options)
{
    bench_engine(b, cpu_devices, list);
    ok(cek_trainer_create(b->model, b->devices, b->count, options, &b->trainer));
}

static void bench_close(bench *b)
{
    cek_trainer_free(b->trainer);
    cek_model_free(b->model);
    free(b->devices);
    cek_engine_free(b->engine);
}

static double step(bench *b, int64_t first, int64_t count)
{
    cek_step_result r = {.size = sizeof r};
    cek_batch batch = batch_of(first, count);
    ok(cek_trainer_step(b->trainer, &batch, &r));
    ck_assert_int_eq(r.samples, count);
    return r.loss;
}

static void replicas_are_equal(bench *b)
{
    for (size_t p = 0; p < cek_model_parameter_count(b->model); p++) {
        cek_parameter info;
        uint64_t bytes;
        unsigned char *one, *other;
        ok(cek_model_parameter(b->model, p, &info));
        bytes = (uint64_t)info.count * sizeof(float);
        one = malloc(bytes);
        other = malloc(bytes);
        ok(cek_trainer_read_replica(b->trainer, 0, p, one, bytes));
        for (size_t d = 1; d < b->count; d++) {
            ok(cek_trainer_read_replica(b->trainer, d, p, other, bytes));
            ck_assert_msg(memcmp(one, other, bytes) == 0, "%s differs between devices 0 and %zu", info.name, d);
        }
        free(one);
        free(other);
    }
}

START_TEST(replica_weights_stay_bit_identical_when_shares_are_unequal)
{
    bench b;
    double first, last = 0;
    cek_trainer_options o = options_small();
    o.shares = CEK_SHARES_GIVEN;
    o.share_weights = (double[]){3, 1, 2.5};
    bench_open(&b, "3", "cpu", &o);
    ck_assert_uint_eq(b.count, 3);
    first = step(&b, 0, SAMPLES);
    for (int i = 1; i < 60; i++)
        last = step(&b, 0, i % 7 == 0 ? 50 : SAMPLES); /* an uneven last batch now and then */
    ck_assert_msg(last < 0.5 * first, "the loss went from %g to %g", first, last);
    replicas_are_equal(&b);
    bench_close(&b);
}
END_TEST

START_TEST(a_device_without_samples_still_gets_the_weights)
{
    bench b;
    cek_trainer_options o = options_small();
    o.shares = CEK_SHARES_GIVEN;
    o.share_weights = (double[]){0, 1, 1};
    bench_open(&b, "3", "cpu", &o);
    for (int i = 0; i < 5; i++)
        step(&b, 0, i == 3 ? 1 : SAMPLES);
    ck_assert_int_eq(cek_trainer_share(b.trainer, 0), 0);
    replicas_are_equal(&b);
    bench_close(&b);
}
END_TEST

START_TEST(the_loss_does_not_depend_on_the_number_of_devices)
{
    double alone[10];
    static const char *const counts[] = {"1", "2", "3"};
    for (size_t c = 0; c < 3; c++) {
        bench b;
        cek_trainer_options o = options_small();
        bench_open(&b, counts[c], "cpu", &o);
        ck_assert_uint_eq(b.count, c + 1);
        for (int i = 0; i < 10; i++) {
            double loss = step(&b, i % 3, i == 4 ? 31 : 64);
            if (c == 0)
                alone[i] = loss;
            ck_assert_msg(fabs(loss - alone[i]) <= 1e-5 * fabs(alone[i]), "%zu devices, step %d: %.9g, alone %.9g", c + 1, i + 1,
                          loss, alone[i]);
        }
        bench_close(&b);
    }
}
END_TEST

/* All gradients of one step, one after another. */
static double *gradients(bench *b, int64_t *count)
{
    double *all = NULL;
    *count = 0;
    for (size_t p = 0; p < cek_model_parameter_count(b->model); p++) {
        cek_parameter info;
        ok(cek_model_parameter(b->model, p, &info));
        all = realloc(all, (size_t)(*count + info.count) * sizeof *all);
        ok(cek_trainer_read_gradient(b->trainer, p, all + *count, info.count));
        *count += info.count;
    }
    return all;
}

/* In f64 there are no rounding differences to hide behind. */
START_TEST(the_gradient_is_that_of_the_whole_batch_however_it_is_split)
{
    bench b;
    int64_t n, m;
    double *want, *got, norm = 0, difference = 0;
    cek_trainer_options o = options_small();
    o.type = CEK_F64;
    bench_open(&b, "1", "reference:0", &o);
    step(&b, 0, 50);
    want = gradients(&b, &n);
    bench_close(&b);

    bench_engine(&b, "1", "reference:0");
    o.memory_limit = 0;
    for (uint64_t limit = 1u << 20;; limit += limit / 4) { /* the smallest of these limits that works: micro-batches */
        o.memory_limit = limit;
        if (cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer) == CEK_OK)
            break;
        ck_assert(limit < 1u << 30);
    }
    ck_assert_int_lt(cek_trainer_micro_batch(b.trainer, 0), 50);
    ck_assert_uint_le(cek_trainer_planned_bytes(b.trainer, 0), o.memory_limit);
    step(&b, 0, 50);
    got = gradients(&b, &m);
    ck_assert_int_eq(n, m);
    for (int64_t i = 0; i < n; i++) {
        norm += want[i] * want[i];
        difference += (want[i] - got[i]) * (want[i] - got[i]);
    }
    ck_assert_msg(norm > 0 && sqrt(difference / norm) < 1e-12, "relative difference %g", sqrt(difference / norm));
    free(want);
    free(got);
    bench_close(&b);
}
END_TEST

START_TEST(a_memory_limit_that_is_too_small_is_out_of_memory_with_the_numbers)
{
    bench b;
    cek_trainer_options o = options_small();
    o.memory_limit = 1 << 16; /* parameters and their optimizer state take more */
    bench_engine(&b, "1", "cpu:0");
    ck_assert_uint_eq(cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer), CEK_OUT_OF_MEMORY);
    ck_assert_ptr_null(b.trainer);
    ck_assert_msg(strstr(cek_error_text(), "cpu:0") && strstr(cek_error_text(), "65536"), "%s", cek_error_text());
    bench_close(&b);
}
END_TEST

START_TEST(what_does_not_fit_is_refused_and_the_trainer_goes_on)
{
    bench b;
    cek_batch batch;
    cek_trainer_options o = options_small();
    bench_open(&b, "2", "cpu", &o);
    batch = batch_of(0, 8);
    batch.input_type = CEK_U8;
    ck_assert_uint_eq(cek_trainer_step(b.trainer, &batch, NULL), CEK_INVALID);
    batch = batch_of(0, 8);
    batch.target_columns = 1;
    ck_assert_uint_eq(cek_trainer_step(b.trainer, &batch, NULL), CEK_INVALID);
    batch = batch_of(0, 8);
    labels[3] = CLASSES;
    ck_assert_uint_eq(cek_trainer_step(b.trainer, &batch, NULL), CEK_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "label 5 of sample 3"));
    labels[3] = 3;
    step(&b, 0, 8);
    bench_close(&b);
}
END_TEST

START_TEST(squared_error_of_different_shapes_is_refused_not_broadcast)
{
    bench b;
    cek_trainer_options o = options_small();
    bench_engine(&b, "1", "cpu:0");
    o.loss = CEK_LOSS_MSE;
    o.batch = 128;
    o.target_columns = 1;
    ck_assert_uint_eq(cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer), CEK_INVALID);
    ck_assert_msg(strstr(cek_error_text(), "(128,5)") && strstr(cek_error_text(), "(128,1)"), "%s", cek_error_text());
    bench_close(&b);
}
END_TEST

START_TEST(a_loss_that_is_not_finite_is_reported)
{
    bench b;
    cek_batch batch;
    cek_step_result r = {.size = sizeof r};
    cek_trainer_options o = options_small();
    bench_open(&b, "1", "cpu:0", &o);
    batch = batch_of(0, 8);
    images[2][5] = NAN;
    ck_assert_uint_eq(cek_trainer_step(b.trainer, &batch, &r), CEK_NOT_FINITE);
    ck_assert(isnan(r.loss));
    bench_close(&b);
}
END_TEST

START_TEST(a_lost_device_ends_the_step_and_names_itself)
{
    bench b;
    cek_batch batch;
    cek_status st = CEK_OK;
    cek_trainer_options o = options_small();
    setenv("CEKERNELS_SIM_DEVICES", "2", 1);
    setenv("CEKERNELS_SIM_FAULTS", "device_lost@op_run#200/1", 1);
    bench_open(&b, "1", "sim", &o);
    ck_assert_uint_eq(b.count, 2);
    for (int i = 0; i < 60 && st == CEK_OK; i++) {
        batch = batch_of(0, 40);
        st = cek_trainer_step(b.trainer, &batch, NULL);
    }
    ck_assert_msg(st == CEK_DEVICE_LOST, "%s: %s", cek_status_name(st), cek_error_text());
    ck_assert_msg(strstr(cek_error_text(), "sim:1") != NULL, "%s", cek_error_text());
    ck_assert_uint_eq(cek_trainer_pull(b.trainer), CEK_DEVICE_LOST);
    bench_close(&b);
}
END_TEST

START_TEST(structs_whose_size_was_not_set_are_refused)
{
    bench b;
    cek_trainer_options o = options_small();
    cek_predictor_options po = {.batch = 4};
    cek_step_result r = {0};
    cek_metrics m = {0};
    cek_predictor *p;
    cek_batch batch;
    bench_engine(&b, "1", "cpu:0");
    o.size = 0;
    ck_assert_uint_eq(cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer), CEK_INVALID);
    ck_assert_uint_eq(cek_predictor_create(b.model, b.devices, b.count, &po, &p), CEK_INVALID);
    o.size = sizeof o;
    ok(cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer));
    batch = batch_of(0, 8);
    ck_assert_uint_eq(cek_trainer_step(b.trainer, &batch, &r), CEK_INVALID);
    ck_assert_uint_eq(cek_trainer_evaluate(b.trainer, NULL, &m), CEK_INVALID);
    batch.targets = NULL;
    ck_assert_uint_eq(cek_trainer_step(b.trainer, &batch, NULL), CEK_INVALID);
    batch = batch_of(0, 8);
    r.size = offsetof(cek_step_result, samples); /* an older program's: nothing behind it is written */
    ok(cek_trainer_step(b.trainer, &batch, &r));
    ck_assert(r.step == 1 && r.samples == 0 && r.loss == 0);
    bench_close(&b);
}
END_TEST

/* ---- Fit, evaluate, predict ---------------------------------------------------------------------------------------------- */

static cek_dataset *dataset_make(void)
{
    cek_dataset *set;
    cek_array_options a = {.size = sizeof a, .input_type = CEK_F32, .count = SAMPLES, .rank = 3, .shape = {1, SIDE, SIDE},
                           .inputs = images, .labels = labels, .classes = CLASSES};
    ok(cek_dataset_arrays(&a, &set));
    return set;
}

static void stop_after_three(void *user, const cek_step_result *result)
{
    if (result->step == 3)
        cek_trainer_request_stop(user);
}

START_TEST(a_request_to_stop_ends_the_fit_between_two_steps)
{
    bench b;
    cek_dataset *set;
    cek_trainer_options o = options_small();
    cek_fit_options f = {.size = sizeof f, .epochs = 10, .on_step = stop_after_three};
    o.batch = 16;
    bench_open(&b, "2", "cpu", &o);
    f.user = b.trainer;
    set = dataset_make();
    ck_assert_uint_eq(cek_trainer_fit(b.trainer, set, &f, NULL), CEK_CANCELLED);
    ok(cek_trainer_pull(b.trainer));
    cek_dataset_free(set);
    bench_close(&b);
}
END_TEST

/* A device that is not inline: uploads alternate between places, and who waits for whom is told by events. */
START_TEST(devices_that_work_beside_the_host_train_and_predict_the_same)
{
    double loss[2];
    float outputs[2][SAMPLES * CLASSES];
    static const char *const list[] = {"cpu", "sim"};
    cek_dataset *set;
    setenv("CEKERNELS_SIM_DEVICES", "2", 1);
    for (int i = 0; i < 2; i++) {
        bench b;
        cek_predictor *p;
        cek_predictor_options po = {.size = sizeof po, .batch = 10};
        cek_trainer_options o = options_small();
        bench_engine(&b, "2", list[i]);
        ck_assert_uint_eq(b.count, 2);
        set = dataset_make();
        o.memory_limit = 1u << 18;
        while (cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer) == CEK_OUT_OF_MEMORY)
            o.memory_limit += o.memory_limit / 4;
        ck_assert_ptr_nonnull(b.trainer);
        ck_assert_int_lt(cek_trainer_micro_batch(b.trainer, 0), SAMPLES / 2); /* several, each upload beside another's work */
        for (int s = 0; s < 6; s++)
            loss[i] = step(&b, 0, s % 2 ? SAMPLES : 61);
        ok(cek_trainer_pull(b.trainer));
        ok(cek_predictor_create(b.model, b.devices, b.count, &po, &p));
        for (int again = 0; again < 2; again++)
            ok(cek_predictor_run_dataset(p, set, outputs[i]));
        cek_predictor_free(p);
        cek_dataset_free(set);
        bench_close(&b);
    }
    /* Micro-batches of other sizes, so sums in another order. */
    ck_assert_msg(fabs(loss[0] - loss[1]) <= 1e-5 * fabs(loss[0]), "%.9g and %.9g", loss[0], loss[1]);
    for (int i = 0; i < SAMPLES * CLASSES; i++)
        ck_assert_float_eq_tol(outputs[0][i], outputs[1][i], 1e-4f * (1 + fabsf(outputs[0][i])));
}
END_TEST

START_TEST(a_data_set_of_other_samples_is_refused_by_a_predictor)
{
    bench b;
    cek_predictor *p;
    cek_dataset *set;
    float outputs[SAMPLES * CLASSES];
    cek_array_options a = {.size = sizeof a, .input_type = CEK_F32, .count = SAMPLES, .rank = 3, .shape = {1, 4, 4},
                           .inputs = images, .labels = labels, .classes = CLASSES};
    bench_engine(&b, "1", "cpu:0");
    ok(cek_dataset_arrays(&a, &set));
    ok(cek_predictor_create(b.model, b.devices, b.count, NULL, &p));
    ck_assert_uint_eq(cek_predictor_run_dataset(p, set, outputs), CEK_INVALID);
    ck_assert_msg(strstr(cek_error_text(), "(1,4,4)") && strstr(cek_error_text(), "(1,12,12)"), "%s", cek_error_text());
    cek_predictor_free(p);
    cek_dataset_free(set);
    bench_close(&b);
}
END_TEST

START_TEST(evaluation_and_prediction_agree_over_any_devices)
{
    bench b;
    cek_dataset *set;
    cek_trainer_options o = options_small();
    cek_fit_options f = {.size = sizeof f, .epochs = 30, .seed = 2};
    cek_epoch_result last = {.size = sizeof last};
    cek_metrics m = {.size = sizeof m};
    float outputs[3][SAMPLES * CLASSES];
    int64_t right = 0;
    o.batch = 32;
    bench_open(&b, "3", "cpu", &o);
    set = dataset_make();
    f.test = set;
    ok(cek_trainer_fit(b.trainer, set, &f, &last));
    ok(cek_trainer_evaluate(b.trainer, set, &m));
    ck_assert_int_eq(m.samples, SAMPLES);
    ck_assert(fabs(m.loss - last.test.loss) < 1e-12 && m.accuracy > 0.9);
    ok(cek_trainer_pull(b.trainer));
    for (size_t n = 1; n <= 3; n++) { /* 7: not a divisor of anything here */
        cek_predictor *p;
        cek_predictor_options po = {.size = sizeof po, .batch = 7};
        ok(cek_predictor_create(b.model, b.devices, n, &po, &p));
        ok(cek_predictor_run_dataset(p, set, outputs[n - 1]));
        cek_predictor_free(p);
        for (int i = 0; i < SAMPLES * CLASSES; i++)
            ck_assert_float_eq_tol(outputs[n - 1][i], outputs[0][i], 1e-5f * (1 + fabsf(outputs[0][i])));
    }
    for (int s = 0; s < SAMPLES; s++) {
        int best = 0;
        for (int c = 1; c < CLASSES; c++)
            if (outputs[0][s * CLASSES + c] > outputs[0][s * CLASSES + best])
                best = c;
        right += best == labels[s];
    }
    ck_assert_double_eq_tol((double)right / SAMPLES, m.accuracy, 1e-9);
    cek_dataset_free(set);
    bench_close(&b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train");
    TCase *c = tcase_create("train");
    SRunner *runner;
    int failed;
    tcase_add_test(c, equal_shares_differ_by_at_most_one_and_the_earlier_are_larger);
    tcase_add_test(c, given_shares_are_in_proportion_and_add_up);
    tcase_add_test(c, shards_tile_every_bucket);
    tcase_add_test(c, crew_runs_every_member_once_per_job);
    tcase_add_test(c, crew_reports_the_failure_that_came_first_in_cause);
    tcase_add_test(c, replica_weights_stay_bit_identical_when_shares_are_unequal);
    tcase_add_test(c, a_device_without_samples_still_gets_the_weights);
    tcase_add_test(c, the_loss_does_not_depend_on_the_number_of_devices);
    tcase_add_test(c, the_gradient_is_that_of_the_whole_batch_however_it_is_split);
    tcase_add_test(c, a_memory_limit_that_is_too_small_is_out_of_memory_with_the_numbers);
    tcase_add_test(c, what_does_not_fit_is_refused_and_the_trainer_goes_on);
    tcase_add_test(c, squared_error_of_different_shapes_is_refused_not_broadcast);
    tcase_add_test(c, a_loss_that_is_not_finite_is_reported);
    tcase_add_test(c, a_lost_device_ends_the_step_and_names_itself);
    tcase_add_test(c, structs_whose_size_was_not_set_are_refused);
    tcase_add_test(c, devices_that_work_beside_the_host_train_and_predict_the_same);
    tcase_add_test(c, a_data_set_of_other_samples_is_refused_by_a_predictor);
    tcase_add_test(c, a_request_to_stop_ends_the_fit_between_two_steps);
    tcase_add_test(c, evaluation_and_prediction_agree_over_any_devices);
    suite_add_tcase(suite, c);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
