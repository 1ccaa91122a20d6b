/* ahead.h - training with two steps under way, over a driver whose calls are recorded: samples are on their way before
 * the loss of the step before is known, and nobody waits inside the driver.
 *
 * Header only; `driver` is the including program's. */
#ifndef CEK_TESTS_AHEAD_H
#define CEK_TESTS_AHEAD_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cekernels/nn.h"
#include "tests/suite.h"

#define ok(call) ck_assert_msg((call) == CEK_OK, "%s: %s", #call, cek_error_text())

/* What was recorded below the plugin. */
typedef struct ahead_driver {
    void (*watch)(size_t bytes); /* from now on uploads of so many bytes are counted */
    unsigned (*uploads)(void);
    void (*blind)(bool blind);     /* whoever asks whether something has ended hears that it has not */
    unsigned (*waits)(void);       /* calls that return when the device has done something */
    unsigned (*polls)(void);       /* calls that ask whether it has */
    size_t (*own)(cek_device *of); /* 1 for a device of this driver */
} ahead_driver;
static const ahead_driver driver;

/* Rows of a size that no other upload has, by 1, 2 and 3 devices. */
enum { AHEAD_SIDE = 13, AHEAD_BATCH = 12, AHEAD_CLASSES = 5, AHEAD_WARM = 6, AHEAD_STEPS = 8 };
#define AHEAD_NET "conv:4,3 relu maxpool:2 flatten linear:16 relu linear:5"

static float ahead_images[AHEAD_BATCH][AHEAD_SIDE * AHEAD_SIDE];
static int32_t ahead_labels[AHEAD_BATCH];

typedef struct ahead {
    cek_engine *engine;
    cek_device **devices;
    size_t count, own; /* of the driver that is recorded */
    cek_model *model;
    cek_trainer *trainer;
} ahead;

static void ahead_submit(ahead *a)
{
    const cek_batch batch = { .size = sizeof batch,
                              .count = AHEAD_BATCH,
                              .inputs = ahead_images,
                              .targets = ahead_labels,
                              .input_type = CEK_F32 };
    ok(cek_trainer_submit(a->trainer, &batch));
}

static void ahead_collect(ahead *a)
{
    cek_step_result r = { .size = sizeof r };
    ok(cek_trainer_collect(a->trainer, &r));
    ck_assert(isfinite(r.loss));
}

/* Two steps are under way, one at the end. */
static void ahead_steps(ahead *a, int steps)
{
    ahead_submit(a);
    for (int i = 1; i < steps; i++) {
        ahead_submit(a);
        ahead_collect(a);
    }
    ahead_collect(a);
}

static void ahead_open(ahead *a, const char *list)
{
    const cek_trainer_options o = { .size = sizeof o, .batch = AHEAD_BATCH, .depth = 2, .shares = CEK_SHARES_EQUAL };
    *a = (ahead){ 0 };
    for (int s = 0; s < AHEAD_BATCH; s++) {
        ahead_labels[s] = s % AHEAD_CLASSES;
        for (int i = 0; i < AHEAD_SIDE * AHEAD_SIDE; i++)
            ahead_images[s][i] = (float)((s * 31 + i * 7) % 64) / 64;
    }
    ok(cek_engine_create(NULL, &a->engine));
    ok(cek_engine_select(a->engine, list, CEK_PROFILE_TRAINING, &a->devices, &a->count));
    for (size_t i = 0; i < a->count; i++)
        a->own += driver.own(a->devices[i]);
    ok(cek_model_parse(AHEAD_NET, 3, (int64_t[]){ 1, AHEAD_SIDE, AHEAD_SIDE }, &a->model));
    cek_model_init(a->model, 3);
    ok(cek_trainer_create(a->model, a->devices, a->count, &o, &a->trainer));
    ahead_steps(a, AHEAD_WARM); /* compiled, recorded, in their places */
    ok(cek_trainer_pull(a->trainer));
}

static void ahead_close(ahead *a)
{
    cek_trainer_free(a->trainer);
    cek_model_free(a->model);
    free(a->devices);
    cek_engine_free(a->engine);
}

/* The host cannot know that the first of two steps has ended, and yet the samples of the second are queued; else this
 * does not end. */
static void ahead_of_the_loss(const char *list)
{
    ahead a;
    ahead_open(&a, list);
    const size_t rows = AHEAD_BATCH / a.count, images = rows * sizeof *ahead_images;
    /* labels go up with the images, as they lie on the device */
    driver.watch((images + CEK_ALIGNMENT - 1) / CEK_ALIGNMENT * CEK_ALIGNMENT + rows * sizeof *ahead_labels);
    driver.blind(true);
    ahead_submit(&a);
    ahead_submit(&a);
    while (driver.uploads() < 2 * a.own)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    driver.blind(false);
    ahead_collect(&a);
    ahead_collect(&a);
    ck_assert_uint_eq(driver.uploads(), 2 * a.own);
    ahead_close(&a);
}

static void without_waits(const char *list)
{
    ahead a;
    unsigned waits, polls;
    ahead_open(&a, list);
    waits = driver.waits();
    polls = driver.polls();
    ahead_steps(&a, AHEAD_STEPS);
    waits = driver.waits() - waits;
    polls = driver.polls() - polls;
    printf("%s: %g synchronising calls of the driver and %g polls a step\n", list, (double)waits / AHEAD_STEPS,
           (double)polls / AHEAD_STEPS);
    ck_assert_uint_eq(waits, 0);
    ahead_close(&a);
}

#endif
