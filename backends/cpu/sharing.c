/* sharing.c - see sharing.h.
 *
 * Owns: when a trial is due, and what decides it. */
#include "backends/cpu/sharing.h"

#include <math.h>
#include <stdlib.h>

/* Sharing costs more than can be timed: what comes next reads what another core wrote. */
static const double worth = .9; /* of the time alone */

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

/* Where too few runs of one way could be timed, all stays as it is. */
static void decide(struct cpu_sharing_size *s)
{
    if (s->timed[0] >= SHARING_TIMED / 2 && s->timed[1] >= SHARING_TIMED / 2)
        s->alone = median(s->took[1], s->timed[1]) > worth * median(s->took[0], s->timed[0]);
    s->timed[0] = s->timed[1] = 0;
}

cpu_sharing_way cek__sharing_next(cpu_sharing *sharing, double work)
{
    cpu_sharing_way way = { .size = size_of(work), .work = work };
    struct cpu_sharing_size *s = &sharing->sizes[way.size];
    const uint32_t run = s->runs++ % SHARING_PERIOD;

    if (run == 2 * SHARING_TRIAL)
        decide(s);
    way.shared = run < 2 * SHARING_TRIAL ? run < SHARING_TRIAL : !s->alone;
    way.timed = run < 2 * SHARING_TRIAL && run % SHARING_TRIAL >= SHARING_TRIAL - SHARING_TIMED;
    return way;
}

void cek__sharing_took(cpu_sharing *sharing, const cpu_sharing_way *way, int64_t ns)
{
    struct cpu_sharing_size *s = &sharing->sizes[way->size];
    int *timed = &s->timed[way->shared];
    if (*timed < SHARING_TIMED)
        s->took[way->shared][(*timed)++] = (double)ns / way->work;
}

void cek__sharing_stalled(cpu_sharing *sharing, const cpu_sharing_way *way)
{
    sharing->sizes[way->size].alone = true;
}
