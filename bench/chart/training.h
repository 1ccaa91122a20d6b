/* training.h - a training as it goes: a point for each step, or for the mean of several, never more than some
 * thousand however long it is; and one for each test.
 *
 * Becomes charts of a figure at any time, and keeps what it has. */
#ifndef BENCH_CHART_TRAINING_H
#define BENCH_CHART_TRAINING_H

#include "bench/chart/chart.h"

enum { CHART_TRAINING_POINTS = 2000 };
typedef struct chart_training {
    double loss[CHART_TRAINING_POINTS], accuracy[CHART_TRAINING_POINTS]; /* means over `every` steps */
    size_t count, every, within;
    double loss_sum, accuracy_sum;
    bool labels;
    figure tests; /* of a chart each for loss and accuracy */
} chart_training;

/* A step, with NaN where it has no labels; the same of the test set after `step`. */
void chart_training_step(chart_training *t, double loss, double accuracy);
void chart_training_test(chart_training *t, double step, double loss, double accuracy);
/* Into *f; `title` says what was trained. */
void chart_training_add(const chart_training *t, const char *title, figure *f);
void chart_training_free(chart_training *t);

#endif
