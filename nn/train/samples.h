/* samples.h - does a data set or a batch hold what a model takes.
 *
 * Must not know: losses (fit.c), devices. */
#ifndef CEK_NN_TRAIN_SAMPLES_H
#define CEK_NN_TRAIN_SAMPLES_H

#include "cekernels/nn.h"
#include "core/base/export.h"
#include "nn/model/model.h"

/* `shape` is the model's input. CEK_INVALID names both shapes; `what` is the data set in the text. */
CEK__CHECKED cek_status cek__samples_fit(int rank, const int64_t *shape, const cek_dataset *dataset, const char *what);

/* What a batch says of its targets, and a data set; "values", "labels" in texts. */
CEK__CHECKED cek_status cek__samples_targets(const cek_batch *batch, cek__targets *out);
cek__targets cek__dataset_targets(const cek_dataset *dataset);
const char *cek__targets_name(const cek__targets *targets);

/* A loader's batches hold no more samples than there are. */
int64_t cek__samples_batch(const cek_dataset *dataset, int64_t batch);

#endif
