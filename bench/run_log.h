/* run_log.h - what `train --log-dir` tells TensorBoard of a run: curves, histograms, samples with predictions, the
 * network, and what was asked for.
 *
 * Only looks: the run computes what it would without it. What cannot be told is said once, on standard error; the run
 * goes on without a log (without samples, where only these cannot) and ends with that exit code. */
#ifndef BENCH_RUN_LOG_H
#define BENCH_RUN_LOG_H

#include "bench/data.h"
#include "bench/recipe.h"

/* Of the run; all of it stays until the log is closed. */
typedef struct run_log_of {
    const bench_options *options;
    const bench_data *data;
    const bench_recipe *recipe;
    cek_model *model;
    cek_trainer *trainer;
    cek_device *fallback;
    int64_t batch;
    bool labels; /* there is an accuracy */
} run_log_of;
typedef struct run_log run_log;

/* *out is NULL where no log was asked for, which all below accept. 0 or an exit code. */
int run_log_open(const run_log_of *of, run_log **out);
void run_log_step(run_log *log, const cek_step_result *result);
void run_log_epoch(run_log *log, const cek_epoch_result *result);
/* `code`, or the exit code of what could not be told. */
int run_log_close(run_log *log, int code);

#endif
