/* sharing.h - whether work of some microseconds is shared with helpers, found by trial.
 *
 * Owns: how long such work took, shared and done alone, and which way is taken next.
 * Must not know: threads, clocks, what the work is.
 *
 * A part of so little work is worth handing over where the cores' caches are near each other, and not where they are
 * far apart or another process has the other core. Neither can be asked for, and both change while a program runs: the
 * system moves other programs, and the host of a virtual machine its cores. So once in some ten thousand runs of like
 * size both ways are tried, a few runs each. Results do not depend on it.
 *
 *     const cpu_sharing_way way = cek__sharing_next(&sharing, work);
 *     ... the run, shared or not as way.shared says, and then
 *     cek__sharing_took(&sharing, &way, ns);      // where way.timed
 *     cek__sharing_stalled(&sharing, &way);       // where a helper did not run
 *
 * Threads: one at a time. All zeros is a beginning. */
#ifndef CEK_BACKENDS_CPU_SHARING_H
#define CEK_BACKENDS_CPU_SHARING_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SHARING_SIZES = 20,     /* of work, each up to twice the one before it */
    SHARING_PERIOD = 16384, /* runs; they begin with */
    SHARING_TRIAL = 96,     /* that are shared, and as many that are the caller's alone; */
    SHARING_TIMED = 16      /* the last of these are timed: a helper may have slept until then */
};

typedef struct cpu_sharing {
    struct cpu_sharing_size {
        bool alone; /* the better way, as far as is known */
        uint32_t runs;
        int timed[2];                  /* how many were, alone and shared: */
        double took[2][SHARING_TIMED]; /* a unit of work */
    } sizes[SHARING_SIZES];
} cpu_sharing;

typedef struct cpu_sharing_way {
    bool shared, timed;
    int size;
    double work;
} cpu_sharing_way;

/* cek__sharing_next - how a run of so much work, in any unit, more than none, is to be done. */
cpu_sharing_way cek__sharing_next(cpu_sharing *sharing, double work);

/* cek__sharing_took - what a run took that was to be timed, if it was done this way. */
void cek__sharing_took(cpu_sharing *sharing, const cpu_sharing_way *way, int64_t ns);

/* cek__sharing_stalled - a helper was waited for that did not run. */
void cek__sharing_stalled(cpu_sharing *sharing, const cpu_sharing_way *way);

#endif
