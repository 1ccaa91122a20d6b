/* train_spread.c - on a virtual clock: forward runs beside the spread of the parameters that it reads later.
 *
 * Two devices that the exchange holds up, with clipping: no parameter is updated before the last gradient was added, so
 * all of the spread lies behind backward, and beside forward or nowhere. */
#include <stdio.h>
#include <stdlib.h>

#include "cekernels/nn.h"
#include "tests/suite.h"

#define ok(call) ck_assert_msg((call) == CEK_OK, "%s: %s", #call, cek_error_text())

enum { INPUTS = 784, WIDTH = 2048, CLASSES = 10, ROWS = 256, DEVICES = 2, WARM = 6, STEPS = 10 };
#define NET "linear:2048 relu linear:2048 relu linear:2048 relu linear:2048 relu linear:10"
#define FLOPS 10e12

static float inputs[DEVICES * ROWS][INPUTS];
static int32_t labels[DEVICES * ROWS];

/* Forward of one device's samples: two operations for each weight and sample. */
static double forward_ns(void)
{
    return 2.0 * ROWS * WIDTH * (INPUTS + 3 * WIDTH + CLASSES) / FLOPS * 1e9;
}

typedef struct pair {
    cek_engine *engine;
    cek_device **devices;
    size_t count;
    cek_model *model;
    cek_trainer *trainer;
} pair;

static void pair_open(pair *p)
{
    const cek_trainer_options o = {
        .size = sizeof o, .batch = DEVICES * ROWS, .depth = 2, .max_norm = 1, .shares = CEK_SHARES_EQUAL
    };
    setenv("CEKERNELS_SIM_DEVICES", "2", 1);
    setenv("CEKERNELS_SIM_SHARED", "0", 1);
    setenv("CEKERNELS_SIM_WORK", "none", 1);
    setenv("CEKERNELS_SIM_FLOPS", "10T", 1);
    setenv("CEKERNELS_SIM_BANDWIDTH", "1T", 1);
    setenv("CEKERNELS_SIM_LINK", "12G", 1);
    ok(cek_engine_create(NULL, &p->engine));
    ok(cek_engine_select(p->engine, "sim", CEK_PROFILE_TRAINING, &p->devices, &p->count));
    ck_assert_uint_eq(p->count, DEVICES);
    ok(cek_model_parse(NET, 1, (int64_t[]){ INPUTS }, &p->model));
    cek_model_init(p->model, 1);
    ok(cek_trainer_create(p->model, p->devices, p->count, &o, &p->trainer));
}

static void pair_close(pair *p)
{
    cek_trainer_free(p->trainer);
    cek_model_free(p->model);
    free(p->devices);
    cek_engine_free(p->engine);
}

/* Waits until all parameters are everywhere: they can be read. */
static void settle(pair *p)
{
    float bias[CLASSES];
    ok(cek_trainer_read_replica(p->trainer, 0, cek_model_parameter_count(p->model) - 1, bias, sizeof bias));
}

/* `under_way`: steps, of which the next begins before the one before is spread; 1: every step begins when all is. */
static void steps(pair *p, int count, int under_way)
{
    const cek_batch batch = {
        .size = sizeof batch, .count = DEVICES * ROWS, .inputs = inputs, .targets = labels, .input_type = CEK_F32
    };
    for (int submitted = 0, collected = 0; collected < count; collected++) {
        while (submitted < count && submitted - collected < under_way) {
            ok(cek_trainer_submit(p->trainer, &batch));
            submitted++;
        }
        ok(cek_trainer_collect(p->trainer, NULL));
        if (under_way == 1)
            settle(p);
    }
    settle(p);
}

/* Device time of a step. */
static double step_ns(pair *p, int under_way)
{
    cek_stream *stream;
    cek_marker *start, *end;
    uint64_t ns;
    ok(cek_stream_create(p->devices[0], &stream));
    ok(cek_marker_create(p->devices[0], true, &start));
    ok(cek_marker_create(p->devices[0], true, &end));
    ok(cek_marker_record(start, stream));
    steps(p, STEPS, under_way);
    ok(cek_marker_record(end, stream));
    ok(cek_marker_sync(end, CEK_FOREVER));
    ok(cek_marker_elapsed(start, end, &ns));
    cek_marker_free(start);
    cek_marker_free(end);
    cek_stream_free(stream);
    return (double)ns / STEPS;
}

START_TEST(forward_runs_beside_the_spread_of_what_it_reads_later)
{
    pair p;
    double settled, ahead;
    pair_open(&p);
    steps(&p, WARM, 1);
    settled = step_ns(&p, 1);
    ahead = step_ns(&p, 2);
    printf("a step with all parameters there %.2f ms, with those that forward reads first %.2f ms; forward alone %.2f "
           "ms\n",
           settled / 1e6, ahead / 1e6, forward_ns() / 1e6);
    ck_assert_double_gt(settled - ahead, 0.5 * forward_ns());
    pair_close(&p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train_spread");
    TCase *tc = tcase_create("train_spread");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, forward_runs_beside_the_spread_of_what_it_reads_later);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
