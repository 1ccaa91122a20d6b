/* plots_time.h - charts of trainings, from files and as they go, and of traces. */
#ifndef BENCH_PLOTS_TIME_H
#define BENCH_PLOTS_TIME_H

#include "bench/chart.h"
#include "bench/results.h"

/* Loss and accuracy of every training among them. */
void plots_trainings(figure *f, const results *list, size_t count);
/* Milliseconds of a step, by device, layer and phase. */
void plots_trace(figure *f, const results *r);

/* A training as it goes: a point for each step, or for the mean of several, never more than some thousand; and one
 * for each test. */
enum { PLOTS_STEPS = 2000 };
typedef struct plots_training {
    double loss[PLOTS_STEPS], accuracy[PLOTS_STEPS]; /* means over `every` steps */
    size_t count, every, within;
    double loss_sum, accuracy_sum;
    bool labels;
    figure tests; /* of a chart each for loss and accuracy */
} plots_training;

/* A step, with NaN where it has no labels; the same of the test set after `step`. */
void plots_training_step(plots_training *t, double loss, double accuracy);
void plots_training_test(plots_training *t, double step, double loss, double accuracy);
/* Into *f; `title` says what was trained. */
void plots_training_add(const plots_training *t, const char *title, figure *f);
void plots_training_free(plots_training *t);

#endif
