/* fit.h - which of the devices that joined by themselves can hold the model. The others are left out, and the output
 * says so. Devices that were named stay, and so do all where none can: the job then ends with the reason. */
#ifndef BENCH_FIT_H
#define BENCH_FIT_H

#include <cekernels/nn.h>

#include "bench/output.h"

/* Puts those that can to the front, in their order: *count is theirs then, and *left that of the others. 0 or
 * an exit code. */
int fit_choose(const bench_options *o, const cek_model *model, cek_dtype type, cek_device **devices, size_t *count,
               size_t *left);
/* Of an output that was opened: those behind the first `count`, with the reasons. */
void fit_tell(output *out, const cek_model *model, cek_dtype type, cek_device *const *devices, size_t count,
              size_t left);

#endif
