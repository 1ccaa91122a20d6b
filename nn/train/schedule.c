/* schedule.c - see schedule.h: looking, smoothing, deciding. What steps cost is costs.c.
 *
 * States: EQUAL -> TILTED -> SOLO (once for each member that shares a processor) -> SETTLED; with one member left, SETTLED at
 * once. look_end makes the transitions, when a look has seen enough steps with its own shares. */
#include "nn/train/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "nn/train/costs.h"
#include "nn/train/shares.h"
#include "nn/train/smooth.h"

/* Of each look, and after each change: the first step with new shares makes plans and records them, which is not repeated. */
enum { SKIPPED = 1, SEEN = 2 };
/* More devices on one processor are parts of it rather than two ways to all of it. */
enum { SOLO_MOST = 4 };
/* Shares change when a step becomes faster by GAIN, and by more than WAVERS times what measurements waver by; in so many steps
 * one after the other, or fewer where the gain is LARGE. Members, which costs a copy of the optimizer's state, by JOIN_GAIN,
 * looked at every EVERY steps. */
static const double GAIN = 0.03, JOIN_GAIN = 0.05, LARGE = 0.15, WAVERS = 1.5;
enum { STEADY = 4, STEADY_LARGE = 2, EVERY = 8 };
/* Asking a device outside takes this part of the time at most, and so many steps lie between two questions. */
static const double PROBE_PART = 0.01;
enum { PROBE_STEPS = 20 };
/* What steps of several members took besides was perhaps a disturbance: after so many steps without such a step it is forgotten,
 * and after so many times more each further time. */
enum { FORGET_STEPS = 600, FORGET_GROWTH = 4 };

typedef enum look { EQUAL, TILTED, SOLO, SETTLED } look;

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
    double *first_seconds;
    int64_t *first_rows; /* what EQUAL saw */
    cek__smooth period;
    double least_period;
    int steady, joins;
    int64_t notes;
    int64_t team_note, forget; /* the last note of several members; steps after which that is forgotten */
    bool frozen;               /* members stay as they are */
    double since;              /* seconds since the last probe, */
    int64_t probe_note;        /* which came after so many notes */
    size_t probe_next;
};

/* ---- life ---- */

static cek_status fields_make(cek__schedule *s)
{
    cek_status st;

    CEK_TRY(cek__calloc(s->count, sizeof *s->members, &s->members));
    CEK_TRY(cek__calloc(s->count, sizeof *s->chosen, &s->chosen));
    CEK_TRY(cek__calloc(s->count, sizeof *s->rows, &s->rows));
    CEK_TRY(cek__calloc(s->count, sizeof *s->better, &s->better));
    CEK_TRY(cek__calloc(s->count, sizeof *s->speeds, &s->speeds));
    CEK_TRY(cek__calloc(s->count, sizeof *s->least, &s->least));
    CEK_TRY(cek__calloc(s->count, sizeof *s->first_seconds, &s->first_seconds));
    CEK_TRY(cek__calloc(s->count, sizeof *s->first_rows, &s->first_rows));
out:
    return st;
}

static void look_begin(cek__schedule *s, look what)
{
    s->look = what;
    s->skip = SKIPPED;
    s->seen = 0;
    s->least_period = INFINITY;
    for (size_t i = 0; i < s->count; i++)
        s->least[i] = INFINITY;
}

cek_status cek__schedule_create(const cek__costs_options *options, cek__schedule **out)
{
    cek_status st;
    cek__schedule *s = NULL;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *s, &s));
    s->count = options->count;
    CEK_TRY(cek__costs_create(options, &s->costs));
    CEK_TRY(fields_make(s));
    for (size_t i = 0; i < s->count; i++)
        s->members[i] = true;
    cek__shares_split(options->batch, s->count, NULL, s->rows);
    s->forget = FORGET_STEPS;
    look_begin(s, EQUAL);
    *out = s;
    return CEK_OK;
out:
    cek__schedule_free(s);
    return st;
}

void cek__schedule_free(cek__schedule *s)
{
    if (s == NULL)
        return;
    cek__costs_close(&s->costs);
    free(s->members);
    free(s->chosen);
    free(s->rows);
    free(s->better);
    free(s->speeds);
    free(s->least);
    free(s->first_seconds);
    free(s->first_rows);
    free(s);
}

/* ---- what is known ---- */

static bool known(double value)
{
    return value > 0 && isfinite(value);
}

static size_t members_count(const cek__schedule *s)
{
    size_t count = 0;

    for (size_t i = 0; i < s->count; i++)
        count += s->members[i];
    return count;
}

/* Another computed on the processor of `index` in a step with these shares. */
static bool was_crowded(cek__schedule *s, const int64_t *rows, size_t index)
{
    for (size_t i = 0; i < s->count; i++)
        s->chosen[i] = rows[i] > 0;
    return cek__costs_crowded(&s->costs, s->chosen, index);
}

static void speed_set(cek__schedule *s, size_t index, int64_t rows, double seconds, bool crowded)
{
    cek__smooth_set(&s->speeds[index], cek__costs_row(&s->costs, index, (double)rows, seconds, crowded));
    s->costs.speeds[index].row = s->speeds[index].value;
}

static void speed_add(cek__schedule *s, size_t index, int64_t rows, double seconds, bool crowded)
{
    cek__smooth_add(&s->speeds[index], cek__costs_row(&s->costs, index, (double)rows, seconds, crowded));
    s->costs.speeds[index].row = s->speeds[index].value;
}

/* What a step of several members takes beyond the model. */
static void excess_set(cek__schedule *s, const int64_t *rows, double period)
{
    if (!known(period) || members_count(s) < 2)
        return;
    s->costs.excess = 0;
    s->costs.excess = fmax(0, period - cek__costs_step(&s->costs, s->members, rows));
    s->team_note = s->notes;
}

static void excess_forget(cek__schedule *s)
{
    if (s->costs.excess == 0 || members_count(s) > 1 || s->notes - s->team_note < s->forget)
        return;
    s->costs.excess = 0;
    s->forget *= FORGET_GROWTH;
}

/* ---- decisions ---- */

static void adopt(cek__schedule *s)
{
    s->skip = SKIPPED;
    s->steady = s->joins = s->period.count = 0; /* what a step takes is another number now */
}

/* The best members, and shares among them. A member that gets nothing is none. */
static void decide(cek__schedule *s)
{
    bool *members = s->frozen ? s->members : s->chosen;

    if (!s->frozen)
        (void)cek__costs_choose(&s->costs, members);
    (void)cek__costs_share(&s->costs, members, s->rows);
    for (size_t i = 0; i < s->count; i++)
        s->members[i] = members[i] && (s->frozen || s->rows[i] > 0);
    adopt(s);
}

/* The next member, from `from` on, that is to be looked at without the others on its processor. */
static size_t solo_next(const cek__schedule *s, size_t from)
{
    for (size_t i = from; i < s->count; i++) {
        size_t on_it = 0;
        for (size_t k = 0; s->costs.devices[i].processor != 0 && k < s->count; k++)
            on_it += s->members[k] && s->costs.devices[k].processor == s->costs.devices[i].processor;
        if (s->members[i] && on_it > 1 && on_it <= SOLO_MOST)
            return i;
    }
    return s->count;
}

/* Shares with `solo` alone on its processor; false where there is no such device any more. */
static bool solo_begin(cek__schedule *s, size_t from)
{
    s->solo = solo_next(s, from);
    if (s->solo == s->count)
        return false;
    memcpy(s->chosen, s->members, s->count * sizeof *s->chosen);
    for (size_t i = 0; i < s->count; i++)
        if (i != s->solo && s->costs.devices[i].processor == s->costs.devices[s->solo].processor)
            s->chosen[i] = false;
    (void)cek__costs_share(&s->costs, s->chosen, s->rows);
    look_begin(s, SOLO);
    return true;
}

static void settle(cek__schedule *s)
{
    look_begin(s, SETTLED);
    decide(s);
}

/* EQUAL has seen enough. */
static void equal_end(cek__schedule *s)
{
    double excess;

    for (size_t i = 0; i < s->count; i++) {
        s->first_rows[i] = s->rows[i];
        s->first_seconds[i] = s->least[i];
        if (known(s->least[i]))
            speed_set(s, i, s->rows[i], s->least[i], was_crowded(s, s->rows, i));
    }
    excess_set(s, s->rows, s->least_period);
    excess = s->costs.excess;
    s->costs.excess = 0; /* one look is not enough for that */
    decide(s);
    s->costs.excess = excess;
    if (members_count(s) == 1) {
        look_begin(s, SETTLED);
        return;
    }
    cek__costs_tilt(&s->costs, s->members, s->rows);
    look_begin(s, TILTED);
}

static void tilted_end(cek__schedule *s)
{
    double before = s->costs.excess;

    for (size_t i = 0; i < s->count; i++) {
        if (!s->members[i] || !known(s->least[i]))
            continue;
        cek__costs_learn_fixed(&s->costs, i, (double[]){ (double)s->first_rows[i], (double)s->rows[i] },
                               (double[]){ s->first_seconds[i], s->least[i] });
        speed_set(s, i, s->rows[i], s->least[i], was_crowded(s, s->rows, i));
    }
    excess_set(s, s->rows, s->least_period);
    s->costs.excess = fmin(s->costs.excess, before); /* a disturbance of one look need not be one of the other */
    if (!solo_begin(s, 0))
        settle(s);
}

/* What was known of `solo` is how fast it is beside the others. */
static void solo_end(cek__schedule *s)
{
    cek__speed *v = &s->costs.speeds[s->solo];

    if (known(s->least[s->solo])) {
        double alone = cek__costs_row(&s->costs, s->solo, (double)s->rows[s->solo], s->least[s->solo], false);
        v->crowd = fmax(1, v->row / alone);
        speed_set(s, s->solo, s->rows[s->solo], s->least[s->solo], false);
    }
    if (!solo_begin(s, s->solo + 1))
        settle(s);
}

/* ---- steps ---- */

static bool is_ours(const cek__schedule *s, const int64_t *rows)
{
    return memcmp(rows, s->rows, s->count * sizeof *rows) == 0;
}

static void least_note(cek__schedule *s, const int64_t *rows, const double *seconds, double period)
{
    for (size_t i = 0; i < s->count; i++)
        if (rows[i] > 0 && known(seconds[i]))
            s->least[i] = fmin(s->least[i], seconds[i]);
    if (known(period))
        s->least_period = fmin(s->least_period, period);
}

/* Every device that had samples was timed. */
static bool all_seen(const cek__schedule *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->rows[i] > 0 && !known(s->least[i]))
            return false;
    return true;
}

static bool look_note(cek__schedule *s, const int64_t *rows, const double *seconds, double period)
{
    if (!is_ours(s, rows))
        return false;
    if (s->skip > 0 && !(s->look == EQUAL && cek__costs_hopeless(&s->costs, rows, seconds))) {
        s->skip--;
        return false;
    }
    least_note(s, rows, seconds, period);
    s->seen++;
    if (!all_seen(s) || (s->seen < SEEN && !(s->look == EQUAL && cek__costs_hopeless(&s->costs, rows, seconds))))
        return false;
    if (s->look == EQUAL)
        equal_end(s);
    else if (s->look == TILTED)
        tilted_end(s);
    else
        solo_end(s);
    return true;
}

/* What a gain must be above, given how measurements waver. */
static double gain_least(const cek__schedule *s, double least)
{
    double waver = s->period.waver;

    for (size_t i = 0; i < s->count; i++)
        if (s->members[i])
            waver = fmax(waver, s->speeds[i].waver);
    return fmax(least, WAVERS * waver);
}

static bool is_steady(int *steady, double gain, double least)
{
    *steady = gain > least ? *steady + 1 : 0;
    return *steady >= (gain > fmax(LARGE, least) ? STEADY_LARGE : STEADY);
}

static bool nobody_idle(const cek__schedule *s, const int64_t *rows)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->members[i] && rows[i] == 0)
            return false;
    return true;
}

/* Others among the present members, or other members. */
static bool improve(cek__schedule *s)
{
    double now = cek__costs_step(&s->costs, s->members, s->rows);
    double shared = cek__costs_share(&s->costs, s->members, s->better), chosen;

    if (is_steady(&s->steady, 1 - shared / now, gain_least(s, GAIN))) {
        if (!s->frozen && !nobody_idle(s, s->better)) {
            decide(s);
            return true;
        }
        memcpy(s->rows, s->better, s->count * sizeof *s->rows);
        adopt(s);
        return true;
    }
    if (s->frozen || s->notes % EVERY != 0)
        return false;
    chosen = cek__costs_choose(&s->costs, s->chosen);
    s->joins = 1 - chosen / fmin(now, shared) > gain_least(s, JOIN_GAIN) ? s->joins + 1 : 0;
    if (s->joins < STEADY_LARGE)
        return false;
    decide(s);
    return true;
}

bool cek__schedule_note(cek__schedule *s, const int64_t *rows, const double *seconds, double period)
{
    int64_t all = 0;

    if (s->look != SETTLED)
        return look_note(s, rows, seconds, period);
    s->notes++;
    excess_forget(s);
    s->since += known(period) ? period : 0;
    if (is_ours(s, rows) && s->skip > 0) {
        s->skip--;
        return false;
    }
    for (size_t i = 0; i < s->count; i++) {
        all += rows[i];
        if (rows[i] > 0 && known(seconds[i]))
            speed_add(s, i, rows[i], seconds[i], was_crowded(s, rows, i));
    }
    if (all != s->costs.of.batch || !is_ours(s, rows))
        return false; /* a last, smaller batch, or one that was under way when shares changed */
    if (known(period)) {
        cek__smooth_add(&s->period, period);
        excess_set(s, s->rows, s->period.value);
    }
    return improve(s);
}

const int64_t *cek__schedule_rows(const cek__schedule *s)
{
    return s->rows;
}

const bool *cek__schedule_members(const cek__schedule *s)
{
    return s->members;
}

void cek__schedule_refuse(cek__schedule *s, const bool *before)
{
    s->frozen = true;
    memcpy(s->members, before, s->count * sizeof *s->members);
    decide(s);
}

/* ---- devices outside ---- */

bool cek__schedule_probe(cek__schedule *s, size_t *index, int64_t *rows)
{
    double step = cek__costs_step(&s->costs, s->members, s->rows), expected, wanted;

    if (s->look != SETTLED || s->frozen || s->notes - s->probe_note < PROBE_STEPS)
        return false;
    for (size_t k = 0; k < s->count; k++) {
        size_t i = (s->probe_next + k) % s->count;
        if (s->members[i] || s->costs.speeds[i].excluded)
            continue;
        wanted = s->costs.speeds[i].row < INFINITY ? step / 4 / s->costs.speeds[i].row : 1;
        *rows = (int64_t)fmin(fmax(wanted, 1), fmax(1, (double)s->costs.of.batch / (double)s->count));
        expected = s->costs.speeds[i].row < INFINITY ? cek__costs_compute(&s->costs, i, (double)*rows, false) : step;
        if (expected > PROBE_PART * s->since)
            return false;
        *index = i;
        s->probe_next = i + 1;
        s->probe_note = s->notes;
        s->since = 0;
        return true;
    }
    return false;
}

void cek__schedule_probed(cek__schedule *s, size_t index, int64_t rows, double seconds)
{
    if (!known(seconds))
        return;
    if (s->speeds[index].count == 0)
        speed_set(s, index, rows, seconds, false);
    else
        speed_add(s, index, rows, seconds, false);
}

/* ---- explanations ---- */

bool cek__schedule_settled(const cek__schedule *s)
{
    return s->look == SETTLED;
}

void cek__schedule_times(const cek__schedule *s, double *predicted, double *seen, double *alone)
{
    *predicted = cek__costs_step(&s->costs, s->members, s->rows);
    *seen = s->period.count > 0 ? s->period.value : 0;
    (void)cek__costs_best(&s->costs, alone);
}

double cek__schedule_speed(const cek__schedule *s, size_t index)
{
    double rows = s->rows[index] > 0 ? (double)s->rows[index] : (double)s->costs.of.batch / (double)s->count;

    return rows / cek__costs_compute(&s->costs, index, rows, cek__costs_crowded(&s->costs, s->members, index));
}

double cek__schedule_break_even(const cek__schedule *s, size_t index)
{
    return cek__costs_break_even(&s->costs, s->members, index);
}
