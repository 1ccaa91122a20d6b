/* schedule_inside.h - what the files of the schedule share: its state, and who calls whom.
 *
 *     schedule.c        life, following what was settled, questions to devices outside, explanations
 *     schedule_look.c   looking, before anything is settled
 *
 * States: EQUAL -> SOLO (for members that share a processor, the fastest first) -> TILTED -> SETTLED; with one member
 * left, SETTLED at once. cek__schedule_look makes the transitions, when a look has seen enough steps with its own
 * shares. */
#ifndef CEK_NN_TRAIN_SCHEDULE_INSIDE_H
#define CEK_NN_TRAIN_SCHEDULE_INSIDE_H

#include <math.h>

#include "nn/train/schedule.h"
#include "nn/train/smooth.h"

/* Of each look, and after each change: the first step with new shares makes plans and records them, which
 * is not repeated. */
enum { CEK__SCHEDULE_SKIPPED = 1 };

typedef enum look { EQUAL, SOLO, TILTED, SETTLED } look;

/* What one look saw of a device. */
typedef struct cek__sight {
    int64_t rows;
    double seconds; /* the least; INFINITY: it was not timed */
} cek__sight;

/* What is kept of a device for the time in which it is no member. */
typedef struct cek__outside {
    double since;     /* seconds that it has been outside, or since it was asked; */
    int64_t note;     /* the note at which that began; */
    int64_t patience; /* and as many at least lie before the next question */
    double asking;    /* seconds that the last one took of all devices' time; 0: there was none */
} cek__outside;

struct cek__schedule {
    cek__costs costs;
    size_t count;
    look look;
    size_t solo; /* the device that is alone on its processor */
    int skip, seen;
    bool *members, *chosen;
    int64_t *rows, *better;
    cek__smooth *speeds; /* [count] `row`, as if alone on its processor */
    double *least;       /* [count] seconds, of this look */
    cek__sight *first;   /* [count] what EQUAL saw */
    cek__sight *alone;   /* [count] what SOLO saw of the device that it was for; no rows: it was not for that one yet */
    cek__smooth period;
    double least_period;
    int steady, joins;
    int64_t notes;
    int64_t team_note, forget; /* the last note of several members; steps after which that is forgotten */
    bool frozen;               /* members stay as they are */
    cek__outside *outside;     /* [count] */
    size_t probe_next;
};

static inline bool cek__known(double value)
{
    return value > 0 && isfinite(value);
}

static inline size_t cek__schedule_member_count(const cek__schedule *s)
{
    size_t count = 0;

    for (size_t i = 0; i < s->count; i++)
        count += s->members[i];
    return count;
}

/* ---- schedule.c ---- */

/* A step had the shares that are wanted now. */
bool cek__schedule_is_ours(const cek__schedule *schedule, const int64_t *rows);
/* Another computed on the processor of `index` in a step with these shares. */
bool cek__schedule_was_crowded(cek__schedule *schedule, const int64_t *rows, size_t index);
/* One measurement takes the place of all. */
void cek__schedule_speed_set(cek__schedule *schedule, size_t index, int64_t rows, double seconds, bool crowded);
/* What a step of several members takes beyond the model. */
void cek__schedule_excess_set(cek__schedule *schedule, const int64_t *rows, double period);
/* The best members, and shares among them. */
void cek__schedule_decide(cek__schedule *schedule);

/* ---- schedule_look.c ---- */

void cek__schedule_look_begin(cek__schedule *schedule, look what);
/* A step before all is settled; true if shares or members are others from now on. */
bool cek__schedule_look(cek__schedule *schedule, const int64_t *rows, const double *seconds, double period);

#endif
