/* plots.h - which charts results are worth: losses and accuracy of trainings, throughput by shape, the roof of a
 * device with what was measured under it, and where the time of steps went, of a trace. How charts look is
 * chart.h's. */
#ifndef BENCH_PLOTS_H
#define BENCH_PLOTS_H

#include "bench/chart/chart.h"
#include "bench/results.h"

/* Adds the charts of all of them to *f. A roof is drawn where a peak and operations of one device are among them. */
void plots_add(figure *f, const results *list, size_t count);
/* The roofs alone. */
void plots_roofs(figure *f, const results *list, size_t count);

#endif
