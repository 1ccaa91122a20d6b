/* sharing.c - see sharing.h.
 *
 * Owns: when a trial is due, and what decides it. */
#include "backends/cpu/sharing.h"

#include <math.h>

static const double lately = 1. / 16; /* the weight of a new time in a mean */
static const double better = .95;     /* a trial's times by the others that change the way */
static const double worse = 1.25;     /* times of late by the other way's last ones that change it without a trial */

static int size_of(double work)
{
    int power;
    frexp(work, &power);
    return power < 0 ? 0 : power < SHARING_SIZES ? power : SHARING_SIZES - 1;
}

cpu_sharing_way cek__sharing_next(cpu_sharing *sharing, double work)
{
    const int size = size_of(work);
    struct cpu_sharing_size *s = &sharing->sizes[size];
    const uint32_t run = s->runs++ % SHARING_PERIOD;
    const bool trial = run < SHARING_TRIAL;
    if (run == 0)
        s->trial = s->trials = 0;

    return (cpu_sharing_way){ .shared = s->alone == trial,
                              .timed = trial ? run >= SHARING_TRIAL - SHARING_TIMED : run % SHARING_EVERY == 0,
                              .trial = trial,
                              .last = run == SHARING_TRIAL - 1,
                              .size = size,
                              .work = work };
}

static void trial_end(struct cpu_sharing_size *s)
{
    const bool other = !s->alone;
    if (s->trials == 0)
        return;
    s->took[other] = s->trial / s->trials;
    if (s->took[s->alone] > 0 && s->took[other] < better * s->took[s->alone])
        s->alone = other;
}

void cek__sharing_took(cpu_sharing *sharing, const cpu_sharing_way *way, int64_t ns)
{
    struct cpu_sharing_size *s = &sharing->sizes[way->size];
    const double took = (double)ns / way->work;

    if (way->trial) {
        if (ns >= 0) {
            s->trial += took;
            s->trials++;
        }
        if (way->last)
            trial_end(s);
    } else if (ns >= 0 && way->shared != s->alone) {
        double *mean = &s->took[s->alone];
        *mean = *mean == 0 ? took : *mean + (took - *mean) * lately;
        if (s->took[!s->alone] > 0 && *mean > worse * s->took[!s->alone])
            s->alone = !s->alone;
    }
}
