/* train_split.c - however a batch is split among 1 to 7 devices that work beside the host with memory of their own, in
 * whatever order they stand: the gradients are one device's within the error of summing in f32, and replicas stay equal
 * byte for byte.
 *
 * 404 samples in batches of 128, so of 20 at last, and batches of fewer samples than devices. CEKERNELS_TEST_SEED
 * starts elsewhere. */
#include <math.h>
#include <stdio.h>

#include "train_bench.h"

enum { MANY = 404, BATCH = 128, DEVICES = 7, STEPS = 100 };

static float many[MANY][SIDE * SIDE];
static int32_t classes[MANY];

/* What is trained on in turn; shares of a batch of 3 are 0 and 1. */
static const struct {
    int64_t first, count;
} batches[] = { { 0, 128 }, { 128, 128 }, { 256, 128 }, { 384, 20 }, { 7, 1 }, { 100, 3 }, { 200, 2 }, { 300, 5 } };
enum { BATCHES = sizeof batches / sizeof *batches };

static uint64_t draw(uint64_t *random, uint64_t below)
{
    uint64_t z = *random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % below;
}

static void many_make(void)
{
    for (int s = 0; s < MANY; s++) {
        classes[s] = s % CLASSES;
        for (int i = 0; i < SIDE * SIDE; i++)
            many[s][i] = cek__random_uniform(9, cek__stream(CEK__STREAM_USER, (uint64_t)s), (uint64_t)i) - 0.5f +
                         (i / SIDE / 3 == classes[s] % 4 ? 0.5f : 0.0f);
    }
}

static cek_batch batch_number(int i)
{
    int64_t first = batches[i % BATCHES].first;
    return (cek_batch){ .size = sizeof(cek_batch),
                        .count = batches[i % BATCHES].count,
                        .inputs = many[first],
                        .targets = classes + first,
                        .input_type = CEK_F32 };
}

/* Shares: of some devices nothing, of one at least something. */
static void fleet_open(bench *b, size_t devices, uint64_t *random, cek_trainer_options *o)
{
    char list[64] = "", count[8];
    size_t order[DEVICES];
    double shares[DEVICES];
    snprintf(count, sizeof count, "%zu", devices);
    setenv("CEKERNELS_SIM_DEVICES", count, 1);
    setenv("CEKERNELS_SIM_SHARED", "0", 1);
    for (size_t i = 0; i < devices; i++) { /* in any order */
        size_t at = draw(random, i + 1);
        order[i] = order[at];
        order[at] = i;
        shares[i] = draw(random, 4) ? (double)(1 + draw(random, 1000)) : 0;
    }
    shares[draw(random, devices)] = 300;
    for (size_t i = 0; i < devices; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%ssim:%zu", i ? "," : "", order[i]);
    o->batch = BATCH;
    o->depth = 1 + (uint32_t)draw(random, 3);
    o->shares = draw(random, 3) ? CEK_SHARES_GIVEN : CEK_SHARES_EQUAL;
    o->share_weights = o->shares == CEK_SHARES_GIVEN ? shares : NULL;
    bench_open(b, "1", list, o);
    ck_assert_uint_eq(b->count, devices);
}

/* ---- gradients ---- */

/* SGD that moves no weight: the gradients of all steps are taken at the same place. */
static cek_trainer_options standing(void)
{
    cek_trainer_options o = options_small();
    static const cek_optimizer sgd = { .size = sizeof sgd, .algorithm = CEK_OPTIMIZER_SGD, .lr = 1e-30 };
    o.optimizer = &sgd;
    return o;
}

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

/* Of every batch; steps run ahead wherever `looks` does not want to see one. */
static void gradients_of_all(bench *b, uint32_t depth, const bool *looks, double *out[BATCHES], int64_t *count)
{
    for (int i = 0; i < BATCHES; i++) {
        cek_batch batch = batch_number(i);
        while (cek_trainer_uncollected(b->trainer) == depth)
            ok(cek_trainer_collect(b->trainer, NULL));
        ok(cek_trainer_submit(b->trainer, &batch));
        out[i] = looks[i] ? gradients(b, count) : NULL;
    }
    while (cek_trainer_uncollected(b->trainer) > 0)
        ok(cek_trainer_collect(b->trainer, NULL));
}

static double distance(const double *a, const double *b, int64_t count)
{
    double squares = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        squares += (a[i] - b[i]) * (a[i] - b[i]);
        norm += b[i] * b[i];
    }
    return sqrt(squares / norm);
}

/* The longest sum is that of the first convolution's weights, over every sample and position. A sample that is lost or
 * counted twice is more than that: a 128th of the gradient, as a control shows. */
static double summation_error(int64_t samples)
{
    double terms = (double)(samples * SIDE * SIDE) * 0x1p-24;
    return terms / (1 - terms);
}

static void release(double *lists[BATCHES])
{
    for (int i = 0; i < BATCHES; i++)
        free(lists[i]);
}

START_TEST(gradients_are_those_of_one_device_however_a_batch_is_split)
{
    static const bool all[BATCHES] = { true, true, true, true, true, true, true, true };
    const char *given = getenv("CEKERNELS_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : 1;
    double *want[BATCHES], *got[BATCHES], most = 0;
    cek_trainer_options o = standing();
    int64_t count, n;
    bench b;
    many_make();
    o.batch = BATCH;
    bench_open(&b, "1", "cpu", &o);
    gradients_of_all(&b, 1, all, want, &count);
    bench_close(&b);
    for (uint64_t run = 0; run < 3; run++) {
        uint64_t random = seed + run * 1000 + (uint64_t)_i;
        bool looks[BATCHES];
        o = standing();
        fleet_open(&b, (size_t)_i, &random, &o);
        for (int i = 0; i < BATCHES; i++)
            looks[i] = draw(&random, 2) || i == 3;
        gradients_of_all(&b, o.depth, looks, got, &n);
        ck_assert_int_eq(n, count);
        for (int i = 0; i < BATCHES; i++) {
            double error = looks[i] ? distance(got[i], want[i], n) : 0;
            ck_assert_msg(error <= summation_error(batches[i].count), "seed %llu, %d devices, batch %d: %g, at most %g",
                          (unsigned long long)(seed + run * 1000), _i, i, error, summation_error(batches[i].count));
            most = error > most ? error : most;
        }
        replicas_are_equal(&b);
        release(got);
        bench_close(&b);
    }
    printf("%d devices: gradients differ by %.2g at most\n", _i, most);
    release(want);
}
END_TEST

/* One sample of 128 less, at the weight that it would have had. */
START_TEST(a_sample_that_is_missing_is_more_than_the_error_of_summing)
{
    static const bool first[BATCHES] = { true };
    double *want[BATCHES], *less;
    cek_trainer_options o = standing();
    cek_batch batch;
    int64_t count;
    bench b;
    many_make();
    o.batch = BATCH;
    bench_open(&b, "1", "cpu", &o);
    gradients_of_all(&b, 1, first, want, &count);
    bench_close(&b);
    bench_open(&b, "1", "cpu", &o);
    batch = batch_number(0);
    batch.count--;
    ok(cek_trainer_step(b.trainer, &batch, NULL));
    less = gradients(&b, &count);
    for (int64_t i = 0; i < count; i++)
        less[i] *= (double)(BATCH - 1) / BATCH;
    ck_assert_double_gt(distance(less, want[0], count), summation_error(BATCH));
    free(less);
    release(want);
    bench_close(&b);
}
END_TEST

/* ---- replicas ---- */

START_TEST(replicas_are_equal_after_a_hundred_steps)
{
    uint64_t random = 77 + (uint64_t)_i;
    cek_trainer_options o = options_small();
    bench b;
    many_make();
    fleet_open(&b, (size_t)_i, &random, &o);
    for (int submitted = 0, collected = 0; collected < STEPS; collected++) {
        while (submitted < STEPS && cek_trainer_uncollected(b.trainer) < o.depth) {
            cek_batch batch = batch_number(submitted++);
            ok(cek_trainer_submit(b.trainer, &batch));
        }
        ok(cek_trainer_collect(b.trainer, NULL));
    }
    replicas_are_equal(&b);
    bench_close(&b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train_split");
    TCase *tc = tcase_create("train_split");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, gradients_are_those_of_one_device_however_a_batch_is_split, 1, DEVICES + 1);
    tcase_add_test(tc, a_sample_that_is_missing_is_more_than_the_error_of_summing);
    tcase_add_loop_test(tc, replicas_are_equal_after_a_hundred_steps, 1, DEVICES + 1);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
