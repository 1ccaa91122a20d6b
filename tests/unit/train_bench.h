/* train_bench.h - what the tests of training share: a small network, its data, and devices to train it on. */
#ifndef CEK_TESTS_UNIT_TRAIN_BENCH_H
#define CEK_TESTS_UNIT_TRAIN_BENCH_H

#include <stdlib.h>
#include <string.h>

#include "cekernels/nn.h"
#include "core/base/random.h"
#include "tests/suite.h"

#define ok(call) ck_assert_msg((call) == CEK_OK, "%s: %s", #call, cek_error_text())

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
static inline void data_make(void)
{
    for (int s = 0; s < SAMPLES; s++) {
        labels[s] = s % CLASSES;
        for (int i = 0; i < SIDE * SIDE; i++) {
            float noise = cek__random_uniform(7, cek__stream(CEK__STREAM_USER, (uint64_t)s), (uint64_t)i) - 0.5f;
            images[s][i] = noise + ((i / SIDE) / 3 == labels[s] % 4 ? 0.5f : 0.0f) + (labels[s] == 4 ? 0.3f : 0.0f);
        }
    }
}

static inline cek_batch batch_of(int64_t first, int64_t count)
{
    return (cek_batch){ .size = sizeof(cek_batch),
                        .count = count,
                        .inputs = images[first],
                        .targets = labels + first,
                        .input_type = CEK_F32 };
}

static inline void bench_engine(bench *b, const char *cpu_devices, const char *list)
{
    memset(b, 0, sizeof *b);
    setenv("CEKERNELS_CPU_DEVICES", cpu_devices, 1);
    ok(cek_engine_create(NULL, &b->engine));
    ok(cek_engine_select(b->engine, list, CEK_PROFILE_TRAINING, &b->devices, &b->count));
    data_make();
    ok(cek_model_parse(NET, 3, (int64_t[]){ 1, SIDE, SIDE }, &b->model));
    cek_model_init(b->model, 3);
}

static inline cek_trainer_options options_small(void)
{
    return (cek_trainer_options){
        .size = sizeof(cek_trainer_options), .batch = SAMPLES, .seed = 5, .shares = CEK_SHARES_EQUAL
    };
}

static inline void bench_open(bench *b, const char *cpu_devices, const char *list, const cek_trainer_options *options)
{
    bench_engine(b, cpu_devices, list);
    ok(cek_trainer_create(b->model, b->devices, b->count, options, &b->trainer));
}

static inline void bench_close(bench *b)
{
    cek_trainer_free(b->trainer);
    cek_model_free(b->model);
    free(b->devices);
    cek_engine_free(b->engine);
}

static inline double step(bench *b, int64_t first, int64_t count)
{
    cek_step_result r = { .size = sizeof r };
    cek_batch batch = batch_of(first, count);
    ok(cek_trainer_step(b->trainer, &batch, &r));
    ck_assert_int_eq(r.samples, count);
    return r.loss;
}

static inline void replicas_are_equal(bench *b)
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

#endif
