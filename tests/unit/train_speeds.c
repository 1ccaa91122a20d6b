/* train_speeds.c - shares by measurement on a virtual clock: a whole network on devices of given speeds, links,
 * additions and updates included, which compute nothing but take the time that it takes. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cekernels/nn.h"
#include "nn/train/schedule_inside.h"
#include "nn/train/trainer.h"
#include "tests/suite.h"

#define ok(call) ck_assert_msg((call) == CEK_OK, "%s: %s", #call, cek_error_text())

enum { BATCH = 256, PIXELS = 28 * 28, WARM = 16, SEEN = 6 };
enum { MANY = 64, MANY_EACH = 64, MANY_SEEN = 2, BATCH_MOST = MANY * MANY_EACH };

static unsigned char images[BATCH_MOST][PIXELS];
static int32_t labels[BATCH_MOST];

typedef struct world {
    cek_engine *engine;
    cek_device **devices;
    cek_stream *stream; /* of the first device, where nothing runs: it shows what time it is */
    cek_marker *start, *end;
    cek_model *model;
    cek_trainer *trainer;
    size_t count;
    int64_t batch;
} world;

static void world_open_for(world *w, const char *model, int64_t batch, uint32_t shares, const char *count,
                           const char *flops, const char *link, const char *faults)
{
    cek_preset preset = { .size = sizeof preset };
    cek_trainer_options o = { .size = sizeof o, .batch = w->batch = batch, .input_type = CEK_U8, .shares = shares };

    setenv("CEKERNELS_SIM_WORK", "none", 1);
    setenv("CEKERNELS_SIM_DEVICES", count, 1);
    setenv("CEKERNELS_SIM_FLOPS", flops, 1);
    setenv("CEKERNELS_SIM_LINK", link, 1);
    setenv("CEKERNELS_SIM_FAULTS", faults, 1);
    ok(cek_engine_create(NULL, &w->engine));
    ok(cek_engine_select(w->engine, "sim", CEK_PROFILE_TRAINING, &w->devices, &w->count));
    ok(cek_preset_find(model, &preset));
    ok(cek_model_parse(preset.text, 3, (int64_t[]){ 1, 28, 28 }, &w->model));
    ok(cek_trainer_create(w->model, w->devices, w->count, &o, &w->trainer));
    ok(cek_stream_create(w->devices[0], &w->stream));
    ok(cek_marker_create(w->devices[0], true, &w->start));
    ok(cek_marker_create(w->devices[0], true, &w->end));
    ok(cek_marker_record(w->start, w->stream));
}

static void world_open(world *w, const char *count, const char *flops, const char *link, const char *faults)
{
    world_open_for(w, "mnist-cnn", BATCH, CEK_SHARES_AUTO, count, flops, link, faults);
}

static void world_close(world *w)
{
    cek_marker_free(w->start);
    cek_marker_free(w->end);
    cek_stream_free(w->stream);
    cek_trainer_free(w->trainer);
    cek_model_free(w->model);
    free(w->devices);
    cek_engine_free(w->engine);
}

static void train(world *w, int steps)
{
    const cek_batch batch = {
        .size = sizeof batch, .count = w->batch, .inputs = images, .targets = labels, .input_type = CEK_U8
    };

    for (int submitted = 0, collected = 0; collected < steps; collected++) {
        for (; submitted < steps && cek_trainer_uncollected(w->trainer) < CEK_DEPTH_DEFAULT; submitted++)
            ok(cek_trainer_submit(w->trainer, &batch));
        ok(cek_trainer_collect(w->trainer, NULL));
    }
}

/* Virtual milliseconds since the trainer was made. */
static double now_ms(world *w)
{
    uint64_t ns;

    ok(cek_marker_record(w->end, w->stream));
    ok(cek_stream_sync(w->stream, CEK_FOREVER));
    ok(cek_marker_elapsed(w->start, w->end, &ns));
    return 1e-6 * (double)ns;
}

static double step_ms_seen(world *w, int steps)
{
    double before = now_ms(w);

    train(w, steps);
    return (now_ms(w) - before) / steps;
}

/* Of a step. */
static double step_ms(world *w)
{
    return step_ms_seen(w, SEEN);
}

/* Of the device alone. */
static double alone_ms(const char *flops)
{
    world w;
    double ms;

    world_open(&w, "1", flops, "12G", "");
    train(&w, 2);
    ms = step_ms(&w);
    world_close(&w);
    return ms;
}

static int64_t share(const world *w, size_t i)
{
    return cek_trainer_share(w->trainer, i);
}

START_TEST(devices_of_unequal_speed_give_the_sum_of_their_speeds)
{
    world w;
    double alone = alone_ms("1T"), ms, of_sum;

    world_open(&w, "3", "1T,500G,250G", "12G", "");
    train(&w, WARM);
    ms = step_ms(&w);
    of_sum = alone / 1.75 / ms;
    fprintf(stderr, "1 : 0.5 : 0.25: shares %lld %lld %lld, %.2f ms a step, the first alone %.2f: %.3f of the sum\n",
            (long long)share(&w, 0), (long long)share(&w, 1), (long long)share(&w, 2), ms, alone, of_sum);
    ck_assert_msg(of_sum >= 0.95, "%.3f of the sum of speeds", of_sum);
    world_close(&w);
}
END_TEST

/* A hundredth of the speed; as fast, but behind a slow link. */
static const struct {
    const char *flops, *link;
} useless[] = { { "1T,10G", "12G" }, { "1T,1T", "12G,100M" } };

START_TEST(a_device_that_does_not_help_is_left_out_and_costs_nothing)
{
    world w;
    double alone = alone_ms("1T"), ms;

    world_open(&w, "2", useless[_i].flops, useless[_i].link, "");
    train(&w, WARM);
    ck_assert_int_eq(share(&w, 0), BATCH);
    ms = step_ms(&w);
    fprintf(stderr, "%s behind %s: %.2f ms a step, the first alone %.2f: %.3f\n", useless[_i].flops, useless[_i].link,
            ms, alone, alone / ms);
    ck_assert_msg(alone / ms >= 0.97, "%.3f of the best device alone", alone / ms);
    world_close(&w);
}
END_TEST

/* The step behind a question has nothing to be uploaded beside, which takes 20 ms here. */
START_TEST(what_a_question_to_a_device_outside_holds_up_is_counted)
{
    static const cek_batch batch = {
        .size = sizeof batch, .count = BATCH, .inputs = images, .targets = labels, .input_type = CEK_U8
    };
    const double upload = BATCH * PIXELS / 10e6;
    double answer = 0, counted = 0;
    world w;

    world_open(&w, "2", "1T,10G", "10M", "");
    const cek__balance *b = &w.trainer->balance;
    const double *asking = &b->schedule->outside[1].asking;
    for (int step = 0; step < 2000 && counted == 0; step++) {
        while (cek_trainer_uncollected(w.trainer) < CEK_DEPTH_DEFAULT)
            ok(cek_trainer_submit(w.trainer, &batch));
        if (b->resumed[1] > b->steps)
            answer = *asking;
        ok(cek_trainer_collect(w.trainer, NULL));
        if (b->resumed[1] == b->steps)
            counted = *asking;
    }
    while (cek_trainer_uncollected(w.trainer) > 0)
        ok(cek_trainer_collect(w.trainer, NULL));
    ck_assert_int_eq(share(&w, 0), BATCH);
    ck_assert_msg(answer > 0 && counted >= answer + upload, "%g s, with what it held up %g s", answer, counted);
    world_close(&w);
}
END_TEST

static void on_log(void *user, int level, const char *text)
{
    (void)level;
    if (strstr(text, "sim:0: update: struck by halve") != NULL)
        atomic_store((atomic_bool *)user, true);
}

/* A step has three updates: its block for computing, that for updating, and that of its samples. */
START_TEST(a_speed_that_halves_is_followed_within_20_steps)
{
    world w;
    atomic_bool halved = false;
    double alone = alone_ms("1T"), before, ms, of_sum;
    int steps = WARM + SEEN;

    world_open(&w, "3", "1T,500G,250G", "12G", "halve@update#150/0");
    cek_log_set(on_log, &halved, CEK_LOG_INFO);
    train(&w, WARM);
    before = step_ms(&w);
    ck_assert(!halved);
    for (; !halved; steps++)
        train(&w, 1);
    train(&w, 20);
    ms = step_ms(&w);
    of_sum = alone / 1.25 / ms;
    fprintf(stderr,
            "1 : 0.5 : 0.25, from step %d on 0.5 : 0.5 : 0.25: %.2f ms a step before, %.2f after: %.3f of the sum\n",
            steps, before, ms, of_sum);
    ck_assert_msg(of_sum >= 0.95, "%.3f of the sum of speeds", of_sum);
    world_close(&w);
    cek_log_set(NULL, NULL, 0);
}
END_TEST

/* A network of a quarter of a megabyte, whose exchange takes no longer for its bytes than for what each
 * transfer costs besides. */
START_TEST(sixty_four_devices_give_nearly_the_sum_of_their_speeds)
{
    world w;
    double alone, ms;

    world_open_for(&w, "lenet5", MANY_EACH, CEK_SHARES_EQUAL, "1", "10G", "10G", "");
    train(&w, MANY_SEEN);
    alone = step_ms_seen(&w, MANY_SEEN);
    world_close(&w);
    world_open_for(&w, "lenet5", BATCH_MOST, CEK_SHARES_EQUAL, "64", "10G", "10G", "");
    train(&w, MANY_SEEN);
    ms = step_ms_seen(&w, MANY_SEEN);
    fprintf(stderr, "64 devices: %.3f ms a step, one alone with its part %.3f: %.3f of the sum\n", ms, alone,
            alone / ms);
    ck_assert_msg(alone / ms >= 0.9, "%.3f of the sum of speeds", alone / ms);
    world_close(&w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train speeds");
    TCase *tc = tcase_create("train speeds");

    for (int s = 0; s < BATCH_MOST; s++)
        labels[s] = s % 10;
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, devices_of_unequal_speed_give_the_sum_of_their_speeds);
    tcase_add_loop_test(tc, a_device_that_does_not_help_is_left_out_and_costs_nothing, 0, 2);
    tcase_add_test(tc, what_a_question_to_a_device_outside_holds_up_is_counted);
    tcase_add_test(tc, sixty_four_devices_give_nearly_the_sum_of_their_speeds);
    tcase_add_test(tc, a_speed_that_halves_is_followed_within_20_steps);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
