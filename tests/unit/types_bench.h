/* types_bench.h - what the tests of bf16 and f16 share: a small network, its samples, and devices to train it on. */
#ifndef CEK_TESTS_UNIT_TYPES_BENCH_H
#define CEK_TESTS_UNIT_TYPES_BENCH_H

#include <stdlib.h>
#include <string.h>

#include "cekernels/nn.h"
#include "scratch.h"

enum { ROWS = 12, SIDE = 6, CHANNELS = 2, PIXELS = SIDE * SIDE * CHANNELS, CLASSES = 3, STEPS = 12 };
#define NET "conv:4,3,p1 batchnorm relu maxpool:2 dropout:0.25 flatten linear:8 tanh linear:3"

static const cek_dtype LOW[2] = { CEK_BF16, CEK_F16 };
static const double UNIT[2] = { 1.0 / 256, 1.0 / 2048 }; /* what rounding changes a number by, relative to it */

static float inputs[ROWS][PIXELS];
static int32_t labels[ROWS];

static inline cek_model *network(const char *text)
{
    cek_model *m;
    uint32_t state = 7;

    for (int i = 0; i < ROWS * PIXELS; i++) {
        state = state * 1664525u + 1013904223u;
        ((float *)inputs)[i] = (float)(state >> 8) / (1 << 23) - 1;
    }
    for (int i = 0; i < ROWS; i++)
        labels[i] = i % CLASSES;
    assert_ok(cek_model_parse(text, 3, (int64_t[]){ CHANNELS, SIDE, SIDE }, &m));
    cek_model_init(m, 5);
    return m;
}

typedef struct team {
    cek_engine *engine;
    cek_device **devices;
    size_t count;
} team;

static inline void team_open(team *t, const char *list)
{
    setenv("CEKERNELS_CPU_DEVICES", "2", 1);
    assert_ok(cek_engine_create(NULL, &t->engine));
    assert_ok(cek_engine_select(t->engine, list, CEK_PROFILE_TRAINING, &t->devices, &t->count));
}

static inline void team_close(team *t)
{
    free(t->devices);
    cek_engine_free(t->engine);
}

static inline double step_loss(cek_trainer *trainer)
{
    const cek_batch batch = {
        .size = sizeof batch, .count = ROWS, .inputs = inputs, .targets = labels, .input_type = CEK_F32
    };
    cek_step_result r = { .size = sizeof r };

    assert_ok(cek_trainer_step(trainer, &batch, &r));
    return r.loss;
}

/* All parameters with all their digits, as their owners have them, in the model too; the caller's (free). */
static inline float *masters_of(cek_trainer *trainer, const cek_model *m, uint64_t *bytes)
{
    float *all = malloc((1 << 10) * sizeof *all);
    uint64_t at = 0;

    assert_ok(cek_trainer_pull(trainer));
    for (size_t p = 0; p < cek_model_parameter_count(m); p++) {
        cek_parameter parameter;

        assert_ok(cek_model_parameter(m, p, &parameter));
        ck_assert_int_le((int64_t)at + parameter.count, 1 << 10);
        memcpy(all + at, parameter.data, (uint64_t)parameter.count * sizeof *all);
        at += (uint64_t)parameter.count;
    }
    *bytes = at * sizeof *all;
    return all;
}

/* All parameters as device `index` has them; the caller's (free). */
static inline float *parameters_of(cek_trainer *trainer, const cek_model *m, size_t index, uint64_t *bytes)
{
    float *all = malloc((1 << 10) * sizeof *all);
    uint64_t at = 0;

    for (size_t p = 0; p < cek_model_parameter_count(m); p++) {
        cek_parameter parameter;

        assert_ok(cek_model_parameter(m, p, &parameter));
        ck_assert_int_le((int64_t)at + parameter.count, 1 << 10);
        assert_ok(cek_trainer_read_replica(trainer, index, p, all + at, (uint64_t)parameter.count * sizeof *all));
        at += (uint64_t)parameter.count;
    }
    *bytes = at * sizeof *all;
    return all;
}

#endif
