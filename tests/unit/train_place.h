/* train_place.h - what the tests of devices that fail share: a small network, its samples, and devices to train it on.
 * How these fail is said in the environment before. */
#ifndef CEK_TESTS_UNIT_TRAIN_PLACE_H
#define CEK_TESTS_UNIT_TRAIN_PLACE_H

#include <stdlib.h>
#include <string.h>

#include "cekernels/nn.h"
#include "tests/suite.h"

#define ok(call) ck_assert_msg((call) == CEK_OK, "%s: %s", #call, cek_error_text())

enum { SIDE = 14, CLASSES = 3, SAMPLES = 20 }; /* samples take more than what kernels work in */
#define NET "conv:3,3,p1 relu maxpool:2 dropout:0.25 flatten linear:6 tanh linear:3"

typedef struct place {
    cek_engine *engine;
    cek_device **devices;
    size_t count;
    cek_model *model;
    cek_dataset *set; /* of the samples */
} place;

static float images[SAMPLES][SIDE * SIDE];
static int32_t labels[SAMPLES];

static inline void place_open(place *p, const char *list)
{
    const cek_array_options a = { .size = sizeof a,
                                  .input_type = CEK_F32,
                                  .count = SAMPLES,
                                  .rank = 3,
                                  .shape = { 1, SIDE, SIDE },
                                  .inputs = images,
                                  .labels = labels,
                                  .classes = CLASSES };

    memset(p, 0, sizeof *p);
    for (int s = 0; s < SAMPLES; s++) {
        labels[s] = s % CLASSES;
        for (int i = 0; i < SIDE * SIDE; i++)
            images[s][i] = (float)((s * 31 + i * 7) % 11) / 11;
    }
    ok(cek_engine_create(NULL, &p->engine));
    ok(cek_engine_select(p->engine, list, CEK_PROFILE_TRAINING, &p->devices, &p->count));
    ok(cek_model_parse(NET, 3, (int64_t[]){ 1, SIDE, SIDE }, &p->model));
    cek_model_init(p->model, 3);
    ok(cek_dataset_arrays(&a, &p->set));
}

static inline void place_close(place *p)
{
    cek_dataset_free(p->set);
    cek_model_free(p->model);
    free(p->devices);
    cek_engine_free(p->engine);
}

/* Creates a trainer, makes steps with all samples, and pulls, up to the first failure. *trainer is the
 * caller's to free. */
static inline cek_status place_train(place *p, const cek_trainer_options *o, int steps, cek_trainer **trainer)
{
    const cek_batch batch = {
        .size = sizeof batch, .count = SAMPLES, .inputs = images, .targets = labels, .input_type = CEK_F32
    };
    cek_status st = cek_trainer_create(p->model, p->devices, p->count, o, trainer);

    for (int i = 0; i < steps && st == CEK_OK; i++)
        st = cek_trainer_step(*trainer, &batch, NULL);
    return st != CEK_OK ? st : cek_trainer_pull(*trainer);
}

#endif
