/* sharing.h - whether work of some microseconds is shared with helpers, found by trial.
 *
 * Owns: what a program took that shared such work and did it alone, and which way is taken next.
 * Must not know: threads, what the work is.
 *
 * A part of so little work is worth handing over where the cores' caches are near each other, and not where they are
 * far apart or another process has the other core. Neither can be asked for, and both change while a program runs: the
 * system moves other programs, and the host of a virtual machine its cores. So once in some ten thousand runs of like
 * size both ways are tried, a few hundred runs each, at first sooner, since a core that slept may be late. What counts
 * is the time from the beginning of a run to that of a later one: who goes on with the result may wait for lines that
 * another core wrote. Results do not depend on it.
 *
 *     const cpu_sharing_way way = cek__sharing_next(&sharing, work, clock);
 *     ... the run, shared or not as way.shared says, and then
 *     cek__sharing_missed(&sharing, &way);        // where it was to be shared and was not
 *     cek__sharing_stalled(&sharing, &way);       // where a helper did not run
 *
 * Threads: one at a time. All zeros is a beginning. */
#ifndef CEK_BACKENDS_CPU_SHARING_H
#define CEK_BACKENDS_CPU_SHARING_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SHARING_SIZES = 20,     /* of work, each up to twice the one before it */
    SHARING_FIRST = 1024,   /* runs of the first period; the next one has */
    SHARING_MORE = 4,       /* times as many, and so on up to */
    SHARING_PERIOD = 65536, /* runs. A period begins with a trial: */
    SHARING_WARM = 96,      /* runs that are shared, while a helper may still sleep, */
    SHARING_SPANS = 5,      /* and so many spans */
    SHARING_SPAN = 64,      /* of so many runs that are timed, more than a program does over and over again; */
    SHARING_HALF = SHARING_WARM + SHARING_SPANS * SHARING_SPAN,
    SHARING_TRIAL = 2 * SHARING_HALF, /* then as many that are the caller's alone */
    SHARING_OTHERS = 4096             /* runs of other sizes, after which a trial is given up */
};

typedef struct cpu_sharing {
    struct cpu_sharing_size {
        bool shared;      /* the better way, as far as is known */
        int runs, period; /* of the period, so far and in all */
    } sizes[SHARING_SIZES];
    struct cpu_sharing_trial {         /* of one size at a time: the others go on as they are */
        struct cpu_sharing_size *size; /* NULL: none is tried */
        int others;                    /* runs of other sizes since the last one of this */
        bool missed;                   /* a run of the span was not done as it was to be */
        int64_t since;                 /* when the span began, */
        double work;                   /* and what there was to do in it */
        int spans[2];                  /* alone and shared: how many were timed, */
        double took[2][SHARING_SPANS]; /* and how long a unit of work took */
    } trial;
} cpu_sharing;

typedef struct cpu_sharing_way {
    bool shared;
    int size;
} cpu_sharing_way;

/* Nanoseconds since whenever. */
typedef int64_t cpu_sharing_clock(void);

/* cek__sharing_next - how a run of so much work, in any unit, more than none, is to be done that begins now. */
cpu_sharing_way cek__sharing_next(cpu_sharing *sharing, double work, cpu_sharing_clock *now);

/* cek__sharing_missed - the run was the caller's alone, whatever `way` said. */
void cek__sharing_missed(cpu_sharing *sharing, const cpu_sharing_way *way);

/* cek__sharing_stalled - a helper was waited for that did not run. */
void cek__sharing_stalled(cpu_sharing *sharing, const cpu_sharing_way *way);

#endif
