/* arrays.h - `predict` of arrays: what a network gives for the samples of .npy files, as lines and as
 * another such file. */
#ifndef BENCH_ARRAYS_H
#define BENCH_ARRAYS_H

#include "bench/data.h"

/* The arrays of `data`, one for each input of the model in its order, [samples, the axes of one]. 0 or an exit code. */
int predict_arrays(const bench_options *o, bench_data *data, cek_model *model, cek_device *const *devices, size_t count,
                   size_t left, cek_device *fallback);

#endif
