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

/* Bytes of one sample in callers' memory: of each input, of its targets. */
typedef struct cek__row {
    size_t inputs;
    uint64_t input[CEK_INPUTS_MOST], target;
} cek__row;
/* `targets` NULL: none. */
void cek__samples_row(const cek_model *model, cek_dtype input_type, const cek__targets *targets, cek__row *out);
/* Where a batch has the rows of each input; CEK_INVALID: it has another number of them, or none. */
CEK__CHECKED cek_status cek__samples_inputs(const cek_batch *batch, const cek__row *row,
                                            const void *out[CEK_INPUTS_MOST]);
/* Data sets have samples of one input. */
CEK__CHECKED cek_status cek__samples_single(const cek__row *row);

/* What a batch says of its targets, and a data set; "values", "labels" in texts. */
CEK__CHECKED cek_status cek__samples_targets(const cek_batch *batch, cek__targets *out);
cek__targets cek__dataset_targets(const cek_dataset *dataset);
const char *cek__targets_name(const cek__targets *targets);

/* A loader's batches hold no more samples than there are. */
int64_t cek__samples_batch(const cek_dataset *dataset, int64_t batch);

#endif
