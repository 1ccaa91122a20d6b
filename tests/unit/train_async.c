/* train_async.c - steps that are submitted and collected: batches are copied, losses come in order and are those of one
 * step after the other, replicas stay equal, on devices that work beside the host and whatever way bytes go between
 * them; clipping, which is the phase between gather and update. */
#include <math.h>
#include <sys/resource.h>
#include <time.h>

#include "train_bench.h"

enum { STEPS = 100 };

/* Devices, and how they reach each other. */
static const struct {
    const char *cpus, *sims, *shared, *list;
} fleets[] = {
    { "1", "1", "1", "cpu" },             /* alone, inline */
    { "3", "1", "1", "cpu" },             /* inline, each pulls from the others */
    { "1", "1", "1", "sim" },             /* alone, beside the host */
    { "1", "3", "1", "sim" },             /* beside the host, each pulls */
    { "1", "3", "0", "sim" },             /* through places in host memory */
    { "2", "2", "1", "cpu,sim" },         /* two plugins: through memory that the host reaches */
    { "2", "2", "0", "cpu,sim:0,sim:1" }, /* through places one way, from the host's memory the other */
};
enum { FLEETS = sizeof fleets / sizeof *fleets };

static void fleet_open(bench *b, int f, const cek_trainer_options *o)
{
    setenv("CEKERNELS_SIM_DEVICES", fleets[f].sims, 1);
    setenv("CEKERNELS_SIM_SHARED", fleets[f].shared, 1);
    bench_open(b, fleets[f].cpus, fleets[f].list, o);
}

/* Batches of all sizes: whole ones, uneven ones, fewer samples than devices. */
static int64_t samples_of(int step)
{
    static const int64_t sizes[] = { SAMPLES, 61, SAMPLES, 1, 2, SAMPLES, 33 };
    return sizes[(size_t)step % (sizeof sizes / sizeof *sizes)];
}

START_TEST(steps_that_run_ahead_give_the_losses_and_the_weights_of_one_after_the_other)
{
    static double losses[STEPS];
    char alone[65], ahead[65];
    static float inputs[SAMPLES][SIDE * SIDE];
    static int32_t targets[SAMPLES];
    cek_trainer_options o = options_small();
    bench b;
    fleet_open(&b, _i, &o);
    for (int i = 0; i < STEPS; i++)
        losses[i] = step(&b, 0, samples_of(i));
    ok(cek_trainer_pull(b.trainer));
    cek_model_sha256(b.model, alone);
    bench_close(&b);
    for (uint32_t depth = 1; depth <= 4; depth++) {
        o.depth = depth;
        fleet_open(&b, _i, &o);
        for (int submitted = 0, collected = 0; collected < STEPS;) {
            cek_step_result r = { .size = sizeof r };
            cek_batch batch = { .size = sizeof batch,
                                .count = samples_of(submitted),
                                .inputs = inputs,
                                .targets = targets,
                                .input_type = CEK_F32 };
            memcpy(inputs, images, sizeof inputs);
            memcpy(targets, labels, sizeof targets);
            while (submitted < STEPS && cek_trainer_uncollected(b.trainer) < depth) {
                batch.count = samples_of(submitted++);
                ok(cek_trainer_submit(b.trainer, &batch));
            }
            memset(inputs, 0xff, sizeof inputs); /* it was copied */
            memset(targets, 0xff, sizeof targets);
            ok(cek_trainer_collect(b.trainer, &r));
            ck_assert_int_eq(r.step, ++collected);
            ck_assert_int_eq(r.samples, samples_of(collected - 1));
            ck_assert_msg(r.loss == losses[collected - 1], "depth %u, step %d: %.17g, one by one %.17g", depth,
                          collected, r.loss, losses[collected - 1]);
        }
        replicas_are_equal(&b);
        ok(cek_trainer_pull(b.trainer));
        cek_model_sha256(b.model, ahead);
        ck_assert_str_eq(alone, ahead);
        bench_close(&b);
    }
}
END_TEST

/* Three buckets: with dropout and uneven batches, whatever belongs to one step only would show in another. */
#define LARGE_NET "flatten linear:1024 relu dropout:0.3 linear:1024 relu dropout:0.3 linear:1100 relu linear:5"
enum { LARGE_STEPS = 6 };

static void large_train(int fleet, uint32_t depth, double max_norm, double *losses, char sha256[65])
{
    bench b;
    cek_trainer_options o = options_small();
    o.depth = depth;
    o.max_norm = max_norm;
    setenv("CEKERNELS_SIM_DEVICES", fleets[fleet].sims, 1);
    setenv("CEKERNELS_SIM_SHARED", fleets[fleet].shared, 1);
    bench_engine(&b, fleets[fleet].cpus, fleets[fleet].list);
    cek_model_free(b.model);
    ok(cek_model_parse(LARGE_NET, 3, (int64_t[]){ 1, SIDE, SIDE }, &b.model));
    cek_model_init(b.model, 3);
    ok(cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer));
    for (int submitted = 0, collected = 0; collected < LARGE_STEPS; collected++) {
        cek_step_result r = { .size = sizeof r };
        while (submitted < LARGE_STEPS && cek_trainer_uncollected(b.trainer) < depth) {
            cek_batch batch = batch_of(0, samples_of(submitted++));
            if (depth == 1)
                ok(cek_trainer_pull(b.trainer)); /* waits until all parameters are everywhere */
            ok(cek_trainer_submit(b.trainer, &batch));
        }
        ok(cek_trainer_collect(b.trainer, &r));
        losses[collected] = r.loss;
    }
    replicas_are_equal(&b);
    ok(cek_trainer_pull(b.trainer));
    cek_model_sha256(b.model, sha256);
    bench_close(&b);
}

START_TEST(a_forward_pass_that_begins_with_some_of_the_parameters_gives_what_it_gives_with_all)
{
    double waited[LARGE_STEPS], ahead[LARGE_STEPS];
    char waited_sha256[65], ahead_sha256[65];
    for (int clips = 0; clips < 2; clips++) { /* what forward reads first is updated last, or first */
        large_train(_i, 1, clips * 0.1, waited, waited_sha256);
        large_train(_i, 3, clips * 0.1, ahead, ahead_sha256);
        for (int i = 0; i < LARGE_STEPS; i++)
            ck_assert_msg(waited[i] == ahead[i], "step %d: %.17g, with all %.17g", i + 1, ahead[i], waited[i]);
        ck_assert_str_eq(waited_sha256, ahead_sha256);
    }
}
END_TEST

START_TEST(no_more_steps_are_taken_than_were_asked_for_and_none_is_collected_twice)
{
    bench b;
    cek_batch batch;
    cek_trainer_options o = options_small();
    o.depth = 3;
    fleet_open(&b, _i, &o);
    batch = batch_of(0, 40);
    ck_assert_uint_eq(cek_trainer_collect(b.trainer, NULL), CEK_INVALID);
    for (int i = 0; i < 3; i++)
        ok(cek_trainer_submit(b.trainer, &batch));
    ck_assert_uint_eq(cek_trainer_submit(b.trainer, &batch), CEK_NOT_READY);
    ck_assert_uint_eq(cek_trainer_step(b.trainer, &batch, NULL), CEK_INVALID);
    ck_assert_uint_eq(cek_trainer_uncollected(b.trainer), 3);
    ok(cek_trainer_pull(b.trainer)); /* waits; the results stay */
    for (int i = 0; i < 3; i++)
        ok(cek_trainer_collect(b.trainer, NULL));
    ck_assert_uint_eq(cek_trainer_collect(b.trainer, NULL), CEK_INVALID);
    ok(cek_trainer_step(b.trainer, &batch, NULL));
    bench_close(&b);
    fleet_open(&b, _i, &o); /* and a trainer may go while steps are under way */
    for (int i = 0; i < 3; i++)
        ok(cek_trainer_submit(b.trainer, &batch));
    bench_close(&b);
}
END_TEST

START_TEST(a_loss_that_is_not_finite_names_its_step_and_leaves_a_consistent_state)
{
    bench b;
    cek_batch batch;
    cek_step_result r = { .size = sizeof r };
    cek_trainer_options o = options_small();
    o.optimizer = &(cek_optimizer){ .size = sizeof(cek_optimizer), .algorithm = CEK_OPTIMIZER_SGD };
    o.depth = 2;
    fleet_open(&b, _i, &o);
    images[7][3] = INFINITY;
    batch = batch_of(8, 40);
    ok(cek_trainer_submit(b.trainer, &batch));
    batch = batch_of(0, 40);
    ok(cek_trainer_submit(b.trainer, &batch));
    ok(cek_trainer_collect(b.trainer, &r));
    ck_assert_uint_eq(cek_trainer_collect(b.trainer, &r), CEK_NOT_FINITE);
    ck_assert_int_eq(r.step, 2);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "step 2"));
    replicas_are_equal(&b);
    bench_close(&b);
}
END_TEST

START_TEST(the_seconds_of_a_step_are_those_that_it_took)
{
    bench b;
    bool most = false;
    cek_batch batch;
    cek_step_result r = { .size = sizeof r };
    cek_trainer_options o = options_small();
    fleet_open(&b, _i, &o);
    batch = batch_of(0, SAMPLES);
    for (int i = 0; i < 50 && !most; i++) { /* whoever is interrupted outside tries again */
        struct timespec before, after;
        clock_gettime(CLOCK_MONOTONIC, &before);
        ok(cek_trainer_step(b.trainer, &batch, &r));
        clock_gettime(CLOCK_MONOTONIC, &after);
        most = r.seconds >
               0.5 * ((double)(after.tv_sec - before.tv_sec) + 1e-9 * (double)(after.tv_nsec - before.tv_nsec));
    }
    ck_assert(most);
    bench_close(&b);
}
END_TEST

/* ---- Clipping -------------------------------------------------------------------------------- */

static cek_parameter parameter_of(const bench *b, size_t p)
{
    cek_parameter info;
    ok(cek_model_parameter(b->model, p, &info));
    return info;
}

static int64_t parameters_read(const bench *b, double *out)
{
    int64_t all = 0;
    for (size_t p = 0; p < cek_model_parameter_count(b->model); p++) {
        cek_parameter info = parameter_of(b, p);
        for (int64_t i = 0; i < info.count; i++)
            out[all++] = (double)info.data[i];
    }
    return all;
}

/* One step of plain SGD: the parameters move by lr times the gradient, scaled down to the norm that was allowed. */
static void clipped_step_is_exact(int fleet, double max_norm)
{
    enum { MOST = 20000 };
    static double gradients[MOST], before[MOST], after[MOST];
    bench b;
    double squares = 0, scale;
    int64_t all = 0;
    cek_trainer_options o = options_small();
    o.optimizer = &(cek_optimizer){ .size = sizeof(cek_optimizer), .algorithm = CEK_OPTIMIZER_SGD, .lr = 0.5 };
    o.max_norm = max_norm;
    fleet_open(&b, fleet, &o);
    all = parameters_read(&b, before);
    ck_assert_int_le(all, MOST);
    step(&b, 0, SAMPLES);
    ok(cek_trainer_pull(b.trainer));
    parameters_read(&b, after);
    all = 0;
    for (size_t p = 0; p < cek_model_parameter_count(b.model); p++) {
        int64_t count = parameter_of(&b, p).count;
        ok(cek_trainer_read_gradient(b.trainer, p, gradients + all, count));
        all += count;
    }
    for (int64_t i = 0; i < all; i++)
        squares += gradients[i] * gradients[i];
    scale = max_norm > 0 && sqrt(squares) > max_norm ? max_norm / sqrt(squares) : 1;
    ck_assert((max_norm == 0.01) == (scale < 1)); /* the first is below the gradient's norm, the second above */
    for (int64_t i = 0; i < all; i++) {
        double want = before[i] - 0.5 * scale * gradients[i];
        /* the sum of squares in f32 (rounding of its terms and of the pairwise sum), 1e-6 on the norm, two roundings */
        double bound = 0.5 * scale * fabs(gradients[i]) * 2e-4 + 4e-7 * (fabs(before[i]) + fabs(gradients[i]));
        ck_assert_msg(fabs(after[i] - want) <= bound, "element %lld: %.9g, not %.9g", (long long)i, after[i], want);
    }
    replicas_are_equal(&b);
    bench_close(&b);
}

START_TEST(gradients_are_clipped_by_the_norm_of_all_of_them_on_any_devices)
{
    clipped_step_is_exact(_i, 0.01);
    clipped_step_is_exact(_i, 1e3);
}
END_TEST

/* Times that this thread slept. */
static long sleeps(void)
{
    struct rusage usage;
    ck_assert_int_eq(getrusage(RUSAGE_THREAD, &usage), 0);
    return usage.ru_nvcsw;
}

/* A step of many shards, each of which is added, updated and sent: who waits for the result sleeps until it is there,
 * and now and then for a lock. */
START_TEST(who_waits_for_a_step_is_woken_for_its_result_alone)
{
    enum { WARM = 2, WATCHED = 10, MOST = 6 };
    bench b;
    cek_model *model;
    cek_trainer_options o = options_small();
    long before;
    bench_open(&b, "2", "cpu:0,cpu:1", &o);
    cek_trainer_free(b.trainer);
    ok(cek_model_parse("flatten linear:2048 relu linear:2048 relu linear:2048 relu linear:5", 3,
                       (int64_t[]){ 1, SIDE, SIDE }, &model));
    cek_model_free(b.model);
    b.model = model;
    cek_model_init(b.model, 3);
    ok(cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer));
    for (int i = 0; i < WARM; i++)
        step(&b, 0, 2);
    before = sleeps();
    for (int i = 0; i < WATCHED; i++)
        step(&b, 0, 2);
    ck_assert_int_le(sleeps() - before, MOST * WATCHED);
    bench_close(&b);
}
END_TEST

START_TEST(a_norm_that_is_none_is_refused)
{
    bench b;
    cek_trainer_options o = options_small();
    bench_engine(&b, "1", "cpu");
    o.max_norm = -1;
    ck_assert_uint_eq(cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer), CEK_INVALID);
    o.max_norm = NAN;
    ck_assert_uint_eq(cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer), CEK_INVALID);
    o.max_norm = 0;
    o.depth = CEK_DEPTH_MOST + 1;
    ck_assert_uint_eq(cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer), CEK_INVALID);
    bench_close(&b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train_async");
    TCase *tc = tcase_create("train_async");

    tcase_add_loop_test(tc, steps_that_run_ahead_give_the_losses_and_the_weights_of_one_after_the_other, 0, FLEETS);
    tcase_add_loop_test(tc, a_forward_pass_that_begins_with_some_of_the_parameters_gives_what_it_gives_with_all, 0,
                        FLEETS);
    tcase_add_loop_test(tc, no_more_steps_are_taken_than_were_asked_for_and_none_is_collected_twice, 0, FLEETS);
    tcase_add_loop_test(tc, a_loss_that_is_not_finite_names_its_step_and_leaves_a_consistent_state, 0, FLEETS);
    tcase_add_loop_test(tc, gradients_are_clipped_by_the_norm_of_all_of_them_on_any_devices, 0, FLEETS);
    tcase_add_loop_test(tc, the_seconds_of_a_step_are_those_that_it_took, 0, FLEETS);
    tcase_add_test(tc, who_waits_for_a_step_is_woken_for_its_result_alone);
    tcase_add_test(tc, a_norm_that_is_none_is_refused);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
