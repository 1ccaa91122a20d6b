/* trainer.h - what fit.c sees of a trainer (trainer.c). */
#ifndef CEK_NN_TRAIN_TRAINER_H
#define CEK_NN_TRAIN_TRAINER_H

#include <stdatomic.h>

#include "cekernels/nn.h"
#include "core/base/export.h"
#include "nn/train/reducer.h"
#include "nn/train/team.h"

struct cek_trainer {
    cek_model *model;
    cek__team team;
    cek__reducer *reducer;
    cek_optimizer optimizer;
    cek_loss loss;
    int64_t batch;
    uint64_t seed;
    cek_dtype input_type;
    uint32_t target_columns; /* 0: labels */
    int64_t outputs;
    uint64_t input_row_bytes, target_row_bytes;
    int64_t steps;
    int64_t *shares;   /* [devices] of the last step */
    cek_status broken; /* a step failed half-way: what every later call answers */
    char broken_text[1024];
    atomic_bool stop;
};

/* The failure that a step left behind, or CEK_OK. */
CEK__CHECKED cek_status cek__trainer_usable(const cek_trainer *trainer);

/* Refuses a dataset whose samples are not the model's. */
CEK__CHECKED cek_status cek__trainer_fits(const cek_trainer *trainer, const cek_dataset *dataset, const char *what);

#endif
