/* plots_time.c - see plots_time.h. */
#include "bench/plots_time.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- trainings in files ---- */

static double number_or_nan(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void curve_add(figure *f, chart *c, const results *r, const char *key, const char *name)
{
    chart_series *s = NULL;
    const json_t *row;
    size_t i;
    json_array_foreach(r->rows, i, row)
    {
        const double value = number_or_nan(row, key);
        if (isfinite(value) && (s || (s = chart_series_of(f, c, name))))
            chart_point(f, s, row_number(row, "step"), value, NULL);
    }
}

static bool any_has(const results *list, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if ((list[i].kind == RESULTS_EPOCHS || list[i].kind == RESULTS_STEPS) &&
            json_object_get(json_array_get(list[i].rows, 0), key))
            return true;
    return false;
}

void plots_trainings(figure *f, const results *list, size_t count)
{
    static const struct {
        const char *title, *label, *keys[3], *names[3];
    } charts[] = {
        { "Loss", "loss", { "train_loss", "loss", "test_loss" }, { "training", "training", "test" } },
        { "Accuracy", "accuracy", { "train_accuracy", "test_accuracy", NULL }, { "training", "test", NULL } },
    };
    size_t trainings = 0;
    for (size_t i = 0; i < count; i++)
        trainings += list[i].kind == RESULTS_EPOCHS || list[i].kind == RESULTS_STEPS;
    for (size_t k = 0; trainings && k < sizeof charts / sizeof *charts; k++) {
        if (!any_has(list, count, charts[k].keys[0]) && !any_has(list, count, charts[k].keys[1]))
            continue;
        chart *c = figure_add(f, CHART_LINES, charts[k].title, "step", charts[k].label);
        for (size_t i = 0; c && i < count; i++) {
            for (size_t n = 0; n < 3 && charts[k].keys[n]; n++) {
                char name[2 * CHART_TEXT];
                snprintf(name, sizeof name, "%.80s%s%s", trainings > 1 ? results_name(&list[i]) : "",
                         trainings > 1 ? ": " : "", charts[k].names[n]);
                if (list[i].kind == RESULTS_EPOCHS || list[i].kind == RESULTS_STEPS)
                    curve_add(f, c, &list[i], charts[k].keys[n], name);
            }
        }
    }
}

/* ---- traces ---- */

/* "(conv)" of "node 3 (conv)" is the layer, "add" of "add shard 2" the phase; else the call. */
static void phase_of(const json_t *event, char out[CHART_TEXT])
{
    const char *name = row_text(event, "name"), *open = strrchr(name, '(');
    if (!strncmp(name, "node ", 5) && open)
        snprintf(out, CHART_TEXT, "%.*s", (int)strcspn(open + 1, ")"), open + 1);
    else if (strstr(name, " shard "))
        snprintf(out, CHART_TEXT, "%.*s", (int)strcspn(name, " "), name);
    else
        snprintf(out, CHART_TEXT, "%s", name);
}

/* How many steps it is of; at least 1. Their numbers begin anew whenever the trainer is made anew, as for each split of
 * the batch that is tried; but each updates the first shard once, on the line of whoever owns that, and the events of a
 * line stand together, in order. */
static double steps_of(const results *r)
{
    double first = INFINITY, last = 0, most = 1, updates = 0, updated = 0, process = 0, line = 0;
    const json_t *event;
    size_t i;
    json_array_foreach(r->rows, i, event)
    {
        const double step = row_number(json_object_get(event, "args"), "step");
        if (row_number(event, "pid") != process || row_number(event, "tid") != line)
            updates = updated = 0;
        process = row_number(event, "pid");
        line = row_number(event, "tid");
        if (!(step > 0))
            continue;
        first = fmin(first, step), last = fmax(last, step);
        if (step != updated && !strcmp(row_text(event, "name"), "update shard 0"))
            updates++, updated = step;
        most = fmax(most, fmax(last - first + 1, updates));
    }
    return most;
}

/* A device, by the number that its events have. */
typedef struct process {
    double pid;
    const char *name;
    double ms[CHART_SERIES_MOST]; /* of a step: each phase that has a colour, then all others */
} process;

typedef struct processes {
    process *at; /* by pid */
    size_t count;
} processes;

static int by_pid(const void *a, const void *b)
{
    const double x = ((const process *)a)->pid, y = ((const process *)b)->pid;
    return (x > y) - (x < y);
}

/* All that the trace names, which it does once for each of their lines, but the host. False: no memory. */
static bool processes_find(const results *r, processes *p)
{
    const json_t *event;
    size_t i, named = 0;
    *p = (processes){ .at = calloc(json_array_size(r->rows), sizeof *p->at) };
    if (!p->at)
        return false;
    json_array_foreach(r->rows, i, event)
    {
        const char *name = row_text(json_object_get(event, "args"), "name");
        if (!strcmp(row_text(event, "name"), "process_name") && strcmp(name, "host") != 0)
            p->at[named++] = (process){ .pid = row_number(event, "pid"), .name = name };
    }
    qsort(p->at, named, sizeof *p->at, by_pid);
    for (i = 0; i < named; i++)
        if (!p->count || p->at[p->count - 1].pid != p->at[i].pid)
            p->at[p->count++] = p->at[i];
    return true;
}

/* Whose time an event is; NULL: no device's, or no time at all. */
static process *process_of(const processes *p, const json_t *event)
{
    const process wanted = { .pid = row_number(event, "pid") };
    return strcmp(row_text(event, "ph"), "X") ? NULL : bsearch(&wanted, p->at, p->count, sizeof wanted, by_pid);
}

/* What took the longest has a colour of its own, what there is none for is put together. */
typedef struct phase {
    char name[CHART_TEXT];
    double time;
} phase;

static int longest_first(const void *a, const void *b)
{
    const double x = ((const phase *)a)->time, y = ((const phase *)b)->time;
    return (x < y) - (x > y);
}

/* Its number; `count`: none of them. */
static size_t phase_among(const phase *phases, size_t count, const json_t *event)
{
    char name[CHART_TEXT];
    size_t k = 0;
    phase_of(event, name);
    while (k < count && strcmp(phases[k].name, name) != 0)
        k++;
    return k;
}

enum { PHASES = 128 };
static size_t phases_find(const results *r, const processes *p, phase phases[PHASES])
{
    size_t count = 0, i;
    const json_t *event;
    json_array_foreach(r->rows, i, event)
    {
        const size_t k = process_of(p, event) ? phase_among(phases, count, event) : PHASES;
        if (k == PHASES)
            continue;
        if (k == count) {
            phase_of(event, phases[count++].name);
            phases[k].time = 0;
        }
        phases[k].time += row_number(event, "dur");
    }
    qsort(phases, count, sizeof *phases, longest_first);
    return count;
}

/* How many of them are to be seen: one in a hundred parts is. */
static size_t phases_shown(const phase *phases, size_t count)
{
    double all = 0;
    size_t shown = 0;
    for (size_t k = 0; k < count; k++)
        all += phases[k].time;
    while (shown < count && shown < CHART_SERIES_MOST - 1 && phases[shown].time >= all / 100)
        shown++;
    return shown;
}

static void trace_chart(figure *f, const results *r, processes *p, const phase *phases, size_t shown)
{
    const double steps = steps_of(r);
    char title[2 * CHART_TEXT];
    const json_t *event;
    size_t i;
    snprintf(title, sizeof title, "Time of a step by device, layer and phase (mean of %.0f)", steps);
    chart *c = figure_add(f, CHART_STACKED, title, "ms", "");
    json_array_foreach(r->rows, i, event)
    {
        process *of = process_of(p, event);
        if (of)
            of->ms[phase_among(phases, shown, event)] += row_number(event, "dur") / 1000 / steps;
    }
    for (i = 0; c && i < p->count; i++) {
        const size_t category = chart_category(f, c, p->at[i].name);
        for (size_t k = 0; k <= shown; k++)
            if (k < shown || p->at[i].ms[k] > 0)
                chart_bar(f, chart_series_of(f, c, k < shown ? phases[k].name : "all others"), category,
                          p->at[i].ms[k]);
    }
}

/* Each event is looked at three times, however many there are: a trace may have millions. */
void plots_trace(figure *f, const results *r)
{
    static phase phases[PHASES]; /* large */
    processes p;
    if (!processes_find(r, &p)) {
        f->no_memory = true;
        return;
    }
    const size_t found = phases_find(r, &p, phases);
    if (found)
        trace_chart(f, r, &p, phases, phases_shown(phases, found));
    free(p.at);
}
