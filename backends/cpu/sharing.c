/* sharing.c - see sharing.h.
 *
 * Owns: when a trial is due, and what decides it. */
#include "backends/cpu/sharing.h"

#include <math.h>
#include <stdlib.h>

_Static_assert(SHARING_TRIAL < SHARING_FIRST, "a trial is part of its period");

/* So much of the time alone leaves the other core to others. */
static const double worth = .97;

static int size_of(double work)
{
    int power;
    frexp(work, &power);
    return power < 0 ? 0 : power < SHARING_SIZES ? power : SHARING_SIZES - 1;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Not the mean: an interrupt, or another process that has the core for milliseconds, says nothing about the way. */
static double median(double *took, int n)
{
    qsort(took, (size_t)n, sizeof *took, compare);
    return took[n / 2];
}

static void trial_begin(struct cpu_sharing_trial *t, struct cpu_sharing_size *s)
{
    *t = (struct cpu_sharing_trial){ .size = s };
    s->runs = 0;
    s->period = s->period == 0 ? SHARING_FIRST : s->period < SHARING_PERIOD ? SHARING_MORE * s->period : SHARING_PERIOD;
}

/* Where too few spans of one way could be timed, all stays as it is. */
static void trial_end(struct cpu_sharing_trial *t)
{
    if (t->spans[0] > SHARING_SPANS / 2 && t->spans[1] > SHARING_SPANS / 2)
        t->size->shared = median(t->took[1], t->spans[1]) < worth * median(t->took[0], t->spans[0]);
    t->size = NULL;
}

/* The span before `run` ends, and another one begins with it, unless it is the half's or the trial's last. */
static void span_end(struct cpu_sharing_trial *t, int run, int64_t now)
{
    if (run % SHARING_HALF != SHARING_WARM && !t->missed) {
        const int shared = run <= SHARING_HALF;
        t->took[shared][t->spans[shared]++] = (double)(now - t->since) / t->work;
    }
    t->since = now;
    t->work = 0;
    t->missed = false;
    if (run == SHARING_TRIAL)
        trial_end(t);
}

static bool ends_span(int run)
{
    const int timed = run % SHARING_HALF - SHARING_WARM;
    return timed >= 0 ? timed % SHARING_SPAN == 0 : run > 0 && run % SHARING_HALF == 0;
}

cpu_sharing_way cek__sharing_next(cpu_sharing *sharing, double work, cpu_sharing_clock *now)
{
    const int size = size_of(work);
    struct cpu_sharing_size *s = &sharing->sizes[size];
    struct cpu_sharing_trial *t = &sharing->trial;

    if (t->size && t->size != s && ++t->others > SHARING_OTHERS)
        t->size = NULL;
    if (t->size == NULL && s->runs == s->period)
        trial_begin(t, s);
    const int run = s->runs;
    if (run < s->period)
        s->runs++;
    if (t->size == s) {
        t->others = 0;
        if (ends_span(run))
            span_end(t, run, now());
        t->work += work;
    }
    return (cpu_sharing_way){ .size = size, .shared = t->size == s ? run < SHARING_HALF : s->shared };
}

void cek__sharing_missed(cpu_sharing *sharing, const cpu_sharing_way *way)
{
    if (sharing->trial.size == &sharing->sizes[way->size])
        sharing->trial.missed = true;
}

void cek__sharing_stalled(cpu_sharing *sharing, const cpu_sharing_way *way)
{
    struct cpu_sharing_size *s = &sharing->sizes[way->size];
    s->shared = false;
    if (sharing->trial.size == s) {
        sharing->trial.size = NULL;
    } else { /* it was good until then */
        s->runs = 0;
        s->period = SHARING_FIRST;
    }
}
