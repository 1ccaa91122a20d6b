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

/* Of a process or thread, in the events that name them. */
static const char *name_of(const results *r, const char *what, double pid, double tid)
{
    const json_t *event;
    size_t i;
    json_array_foreach(r->rows, i, event)
    {
        if (strcmp(row_text(event, "ph"), "M") != 0)
            continue;
        if (!strcmp(row_text(event, "name"), what) && row_number(event, "pid") == pid &&
            (tid < 0 || row_number(event, "tid") == tid))
            return row_text(json_object_get(event, "args"), "name");
    }
    return "";
}

/* How many steps it is of; at least 1. */
static double steps_of(const results *r)
{
    double first = INFINITY, last = -INFINITY;
    const json_t *event;
    size_t i;
    json_array_foreach(r->rows, i, event)
    {
        const double step = row_number(json_object_get(event, "args"), "step");
        if (step > 0)
            first = fmin(first, step), last = fmax(last, step);
    }
    return last >= first ? last - first + 1 : 1;
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

enum { PHASES = 128 };
static size_t phases_find(const results *r, const char *host, phase phases[PHASES])
{
    size_t count = 0, i;
    const json_t *event;
    json_array_foreach(r->rows, i, event)
    {
        char name[CHART_TEXT];
        size_t k = 0;
        if (strcmp(row_text(event, "ph"), "X") != 0 ||
            !strcmp(name_of(r, "process_name", row_number(event, "pid"), -1), host))
            continue;
        phase_of(event, name);
        while (k < count && strcmp(phases[k].name, name) != 0)
            k++;
        if (k == PHASES)
            continue;
        if (k == count)
            memcpy(phases[count++].name, name, CHART_TEXT), phases[k].time = 0;
        phases[k].time += row_number(event, "dur");
    }
    qsort(phases, count, sizeof *phases, longest_first);
    return count;
}

void plots_trace(figure *f, const results *r)
{
    static phase phases[PHASES]; /* large */
    double times[CHART_SERIES_MOST];
    const double steps = steps_of(r);
    const size_t found = phases_find(r, "host", phases);
    double all = 0;
    size_t own = 0;
    for (size_t p = 0; p < found; p++)
        all += phases[p].time;
    while (own < found && own < CHART_SERIES_MOST - 1 && phases[own].time >= all / 100) /* less is not to be seen */
        own++;
    char title[2 * CHART_TEXT];
    const json_t *named, *event;
    size_t i, k;
    snprintf(title, sizeof title, "Time of a step by device, layer and phase (mean of %.0f)", steps);
    chart *c = found ? figure_add(f, CHART_STACKED, title, "ms", "") : NULL;
    json_array_foreach(r->rows, i, named)
    {
        const char *device = row_text(json_object_get(named, "args"), "name");
        if (!c || strcmp(row_text(named, "name"), "process_name") != 0 || !strcmp(device, "host"))
            continue;
        const size_t before = c->category_count, category = chart_category(f, c, device);
        if (category < before) /* a process is named once for each of its lines */
            continue;
        memset(times, 0, sizeof times);
        json_array_foreach(r->rows, k, event)
        {
            char name[CHART_TEXT];
            size_t at = 0;
            if (strcmp(row_text(event, "ph"), "X") != 0 || row_number(event, "pid") != row_number(named, "pid"))
                continue;
            phase_of(event, name);
            while (at < own && strcmp(phases[at].name, name) != 0)
                at++;
            times[at] += row_number(event, "dur") / 1000 / steps;
        }
        for (size_t at = 0; at <= own && at < CHART_SERIES_MOST; at++)
            if (at < own || times[at] > 0)
                chart_bar(f, chart_series_of(f, c, at < own ? phases[at].name : "all others"), category, times[at]);
    }
}
