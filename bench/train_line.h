/* train_line.h - what the progress line says of a training: losses of the epoch so far, speed, devices.
 *
 * Must not know: how a line is drawn. */
#ifndef BENCH_TRAIN_LINE_H
#define BENCH_TRAIN_LINE_H

#include <cekernels/nn.h>

#include "bench/bench.h"

typedef struct train_line {
    const cek_trainer *trainer;
    cek_device *const *devices;
    size_t device_count;
    int64_t epochs, epoch; /* epochs 0: as many as the steps take */
    int64_t samples;       /* in all; and of this epoch so far: */
    int64_t epoch_samples, labels, correct;
    double loss; /* by samples */
} train_line;

/* `samples` are in the training set, `batch` in a step. All pointers are the caller's. */
void train_line_begin(train_line *line, const bench_options *o, const cek_trainer *trainer, cek_device *const *devices,
                      size_t device_count, int64_t samples, int64_t batch);
void train_line_step(train_line *line, const cek_step_result *r);
void train_line_epoch(train_line *line); /* one has ended */

#endif
