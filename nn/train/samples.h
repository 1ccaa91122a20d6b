/* samples.h - does a data set hold what a model takes.
 *
 * Must not know: losses and targets (fit.c), devices. */
#ifndef CEK_NN_TRAIN_SAMPLES_H
#define CEK_NN_TRAIN_SAMPLES_H

#include "cekernels/nn.h"
#include "core/base/export.h"

/* `shape` is the model's input. CEK_INVALID names both shapes; `what` is the data set in the text. */
CEK__CHECKED cek_status cek__samples_fit(int rank, const int64_t *shape, const cek_dataset *dataset, const char *what);

/* A loader's batches hold no more samples than there are. */
int64_t cek__samples_batch(const cek_dataset *dataset, int64_t batch);

#endif
