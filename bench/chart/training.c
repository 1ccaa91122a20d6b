/* training.c - see training.h. */
#include "bench/chart/training.h"

#include <math.h>
#include <stdio.h>

/* Where there are enough points, each two become one. */
static void halve(chart_training *t)
{
    for (size_t i = 0; i < CHART_TRAINING_POINTS / 2; i++) {
        t->loss[i] = (t->loss[2 * i] + t->loss[2 * i + 1]) / 2;
        t->accuracy[i] = (t->accuracy[2 * i] + t->accuracy[2 * i + 1]) / 2;
    }
    t->count = CHART_TRAINING_POINTS / 2;
    t->every *= 2;
}

void chart_training_step(chart_training *t, double loss, double accuracy)
{
    t->every = t->every ? t->every : 1;
    t->loss_sum += loss;
    t->accuracy_sum += isfinite(accuracy) ? accuracy : 0;
    t->labels |= isfinite(accuracy);
    if (++t->within < t->every)
        return;
    t->loss[t->count] = t->loss_sum / (double)t->every;
    t->accuracy[t->count++] = t->accuracy_sum / (double)t->every;
    t->loss_sum = t->accuracy_sum = 0;
    t->within = 0;
    if (t->count == CHART_TRAINING_POINTS)
        halve(t);
}

void chart_training_test(chart_training *t, double step, double loss, double accuracy)
{
    const double values[] = { loss, accuracy };
    for (size_t i = 0; i < 2; i++) {
        if (t->tests.count <= i && !figure_add(&t->tests, CHART_LINES, "", "", ""))
            return;
        chart_point(&t->tests, chart_series_of(&t->tests, &t->tests.charts[i], "test"), step, values[i], NULL);
    }
}

static void copy_points(figure *f, chart *c, const chart_training *t, size_t which)
{
    if (which >= t->tests.count || !t->tests.charts[which].series[0].count)
        return;
    const chart_series *from = &t->tests.charts[which].series[0];
    for (size_t i = 0; i < from->count; i++)
        chart_point(f, chart_series_of(f, c, "test"), from->x[i], from->y[i], NULL);
}

void chart_training_add(const chart_training *t, const char *title, figure *f)
{
    char text[2 * CHART_TEXT];
    f->no_memory |= t->tests.no_memory;
    for (size_t which = 0; which < 1 + (size_t)t->labels; which++) {
        snprintf(text, sizeof text, "%s of %.100s", which ? "Accuracy" : "Loss", title);
        chart *c = figure_add(f, CHART_LINES, text, "step", which ? "accuracy" : "loss");
        if (!c)
            return;
        for (size_t i = 0; i < t->count; i++)
            chart_point(f, chart_series_of(f, c, "training"), (double)((i + 1) * t->every),
                        which ? t->accuracy[i] : t->loss[i], NULL);
        copy_points(f, c, t, which);
    }
}

void chart_training_free(chart_training *t)
{
    figure_free(&t->tests);
}
