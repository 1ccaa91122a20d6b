/* plots_time.h - charts of trainings and of traces, from their files. */
#ifndef BENCH_PLOTS_TIME_H
#define BENCH_PLOTS_TIME_H

#include "bench/chart/chart.h"
#include "bench/results.h"

/* Loss and accuracy of every training among them. */
void plots_trainings(figure *f, const results *list, size_t count);
/* Milliseconds of a step, by device, layer and phase. */
void plots_trace(figure *f, const results *r);

#endif
