/* train.c - a step over CPU and OpenCL devices together is the step of one device, and leaves the same bits everywhere.
 *
 * Skipped where there is no OpenCL device that is a CPU; sub-devices stand for several devices. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cekernels/nn.h"
#include "tests/suite.h"

#define ok(call) ck_assert_msg((call) == CEK_OK, "%s: %s", #call, cek_error_text())

enum { SAMPLES = 64, SIDE = 12, CLASSES = 5 };
#define NET "conv:8,3,p1 relu conv:16,3,p1 relu maxpool:2 flatten linear:32 relu dropout:0.5 linear:5"

static float images[SAMPLES][SIDE * SIDE];
static int32_t labels[SAMPLES];

typedef struct run {
    cek_engine *engine;
    cek_device **devices;
    size_t count;
    cek_model *model;
    cek_trainer *trainer;
} run;

static void data_make(void)
{
    uint32_t noise = 1;
    for (int s = 0; s < SAMPLES; s++) {
        labels[s] = s % CLASSES;
        for (int i = 0; i < SIDE * SIDE; i++) {
            noise = noise * 1664525u + 1013904223u;
            images[s][i] = (float)(noise >> 8) * 0x1p-24f - 0.5f + ((i / SIDE) / 3 == labels[s] % 4 ? 0.5f : 0.0f);
        }
    }
}

/* `shares` NULL: `how`. */
static void run_open_shared(run *r, const char *list, const char *split, const double *shares, int how)
{
    cek_trainer_options o = { .size = sizeof o, .batch = SAMPLES, .seed = 5, .shares = how };
    memset(r, 0, sizeof *r);
    setenv("CEKERNELS_PLUGINS", "=cpu,opencl", 1);
    setenv("CEKERNELS_OPENCL_SPLIT", split, 1);
    setenv("POCL_MAX_PTHREAD_COUNT", "3", 1);
    ok(cek_engine_create(NULL, &r->engine));
    ok(cek_engine_select(r->engine, list, CEK_PROFILE_TRAINING, &r->devices, &r->count));
    data_make();
    ok(cek_model_parse(NET, 3, (int64_t[]){ 1, SIDE, SIDE }, &r->model));
    cek_model_init(r->model, 3);
    if (shares) {
        o.shares = CEK_SHARES_GIVEN;
        o.share_weights = shares;
    }
    ok(cek_trainer_create(r->model, r->devices, r->count, &o, &r->trainer));
}

static void run_open(run *r, const char *list, const char *split, const double *shares)
{
    run_open_shared(r, list, split, shares, CEK_SHARES_EQUAL);
}

static void run_close(run *r)
{
    cek_trainer_free(r->trainer);
    cek_model_free(r->model);
    free(r->devices);
    cek_engine_free(r->engine);
}

static double step(run *r, int64_t first, int64_t count)
{
    cek_step_result result = { .size = sizeof result };
    cek_batch batch = {
        .size = sizeof batch, .count = count, .inputs = images[first], .targets = labels + first, .input_type = CEK_F32
    };
    ok(cek_trainer_step(r->trainer, &batch, &result));
    return result.loss;
}

static void replicas_are_equal(run *r)
{
    for (size_t p = 0; p < cek_model_parameter_count(r->model); p++) {
        cek_parameter info;
        ok(cek_model_parameter(r->model, p, &info));
        uint64_t bytes = (uint64_t)info.count * sizeof(float);
        unsigned char *one = malloc(bytes), *other = malloc(bytes);
        ok(cek_trainer_read_replica(r->trainer, 0, p, one, bytes));
        for (size_t d = 1; d < r->count; d++) {
            ok(cek_trainer_read_replica(r->trainer, d, p, other, bytes));
            ck_assert_msg(memcmp(one, other, bytes) == 0, "%s differs between devices 0 and %zu", info.name, d);
        }
        free(one);
        free(other);
    }
}

START_TEST(replicas_on_cpu_and_opencl_are_bit_identical_when_shares_are_unequal)
{
    run r;
    double first, last = 0;
    run_open(&r, "cpu,opencl:0,opencl:1", "2", (double[]){ 3, 1, 2.5 });
    ck_assert_uint_eq(r.count, 3);
    first = step(&r, 0, SAMPLES);
    for (int i = 1; i < 60; i++)
        last = step(&r, 0, i % 7 == 0 ? 50 : SAMPLES);
    ck_assert_msg(last < 0.5 * first, "the loss went from %g to %g", first, last);
    replicas_are_equal(&r);
    run_close(&r);
}
END_TEST

START_TEST(ten_losses_are_those_of_one_device)
{
    static const struct {
        const char *list, *split;
        size_t count;
    } setups[] = {
        { "cpu", "1", 1 },    { "opencl:0", "1", 1 }, { "cpu,opencl:0", "1", 2 },
        { "opencl", "2", 2 }, { "opencl", "3", 3 },
    };
    double alone[10];
    for (size_t s = 0; s < sizeof setups / sizeof *setups; s++) {
        run r;
        run_open(&r, setups[s].list, setups[s].split, NULL);
        ck_assert_uint_eq(r.count, setups[s].count);
        for (int i = 0; i < 10; i++) {
            double loss = step(&r, i % 3, i == 4 ? 31 : 60);
            if (s == 0)
                alone[i] = loss;
            ck_assert_msg(fabs(loss - alone[i]) <= 1e-5 * fabs(alone[i]), "%s in %s, step %d: %.9g, alone %.9g",
                          setups[s].list, setups[s].split, i + 1, loss, alone[i]);
        }
        run_close(&r);
    }
}
END_TEST

/* Two plugins drive the processor: the one that was made for it begins, wherever it stands, and bits are its own. */
START_TEST(of_two_views_of_the_processor_the_cpu_plugin_begins_alone)
{
    static const char *const lists[] = { "cpu", "cpu,opencl:0", "opencl:0,cpu" };
    double alone[3];
    for (size_t l = 0; l < 3; l++) {
        run r;
        run_open_shared(&r, lists[l], "1", NULL, CEK_SHARES_AUTO);
        const size_t cpu = l == 2 ? 1 : 0;
        for (int i = 0; i < 3; i++) { /* before the other has been asked */
            double loss = step(&r, 0, SAMPLES);
            alone[i] = l == 0 ? loss : alone[i];
            ck_assert_msg(loss == alone[i], "%s, step %d: %.9g, alone %.9g", lists[l], i + 1, loss, alone[i]);
            ck_assert_int_eq(cek_trainer_share(r.trainer, cpu), SAMPLES);
        }
        run_close(&r);
    }
}
END_TEST

/* What the log tells of a device that was decided about: 0, or how fast it is. */
static void on_log(void *user, int level, const char *text)
{
    const char *found = strstr(text, "opencl:0 takes no part: of ");
    (void)level;
    if (!found)
        found = strstr(text, "opencl:0: ");
    if (strncmp(text, "shares: ", 8) == 0 && found)
        *(double *)user = strtod(found + strcspn(found + 10, "0123456789") + 10, NULL);
}

/* Nothing is known of it before, since it has had no sample; here it is asked after ten seconds and more. */
START_TEST(the_other_view_is_asked_when_that_costs_little_and_has_no_sample_before)
{
    double speed = -1;
    run r;
    cek_log_set(on_log, &speed, CEK_LOG_INFO);
    run_open_shared(&r, "cpu,opencl:0", "1", NULL, CEK_SHARES_AUTO);
    while (speed < 0) { /* or the test's time is over */
        ck_assert_int_eq(cek_trainer_share(r.trainer, 1), 0);
        step(&r, 0, SAMPLES);
    }
    ck_assert_msg(speed > 0, "%g samples/s", speed);
    run_close(&r);
    cek_log_set(NULL, NULL, 0);
}
END_TEST

/* One of three has whole batches: there is room for them while steps are under way. */
START_TEST(steps_of_a_lone_view_that_are_under_way_have_their_own_samples)
{
    static const char *const lists[] = { "cpu", "cpu,opencl:0,opencl:1" };
    static float others[SAMPLES][SIDE * SIDE];
    double alone[2];
    for (size_t l = 0; l < 2; l++) {
        run r;
        run_open_shared(&r, lists[l], "2", NULL, CEK_SHARES_AUTO);
        for (int s = 0; s < SAMPLES; s++)
            memcpy(others[s], images[SAMPLES - 1 - s], sizeof *others);
        for (int i = 0; i < 2; i++) {
            cek_batch batch = { .size = sizeof batch,
                                .count = SAMPLES,
                                .inputs = i ? others[0] : images[0],
                                .targets = labels,
                                .input_type = CEK_F32 };
            ok(cek_trainer_submit(r.trainer, &batch));
        }
        for (int i = 0; i < 2; i++) {
            cek_step_result result = { .size = sizeof result };
            ok(cek_trainer_collect(r.trainer, &result));
            alone[i] = l == 0 ? result.loss : alone[i];
            ck_assert_msg(result.loss == alone[i], "step %d: %.9g, alone %.9g", i + 1, result.loss, alone[i]);
        }
        run_close(&r);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("opencl train");
    TCase *c = tcase_create("cpu and opencl");
    tcase_set_timeout(c, 300);
    tcase_add_test(c, of_two_views_of_the_processor_the_cpu_plugin_begins_alone);
    tcase_add_test(c, the_other_view_is_asked_when_that_costs_little_and_has_no_sample_before);
    tcase_add_test(c, steps_of_a_lone_view_that_are_under_way_have_their_own_samples);
    tcase_add_test(c, replicas_on_cpu_and_opencl_are_bit_identical_when_shares_are_unequal);
    tcase_add_test(c, ten_losses_are_those_of_one_device);
    suite_add_tcase(s, c);
    /* Another process looks: a child that is forked from one that has a driver loaded would hang. */
    if (system("CEKERNELS_PLUGINS==opencl \"$CEKERNELS_BENCH\" devices --json 2>/dev/null | grep -q '\"opencl:0\"'")) {
        puts("skipped: no OpenCL device");
        return 77;
    }
    return suite_run(s);
}
