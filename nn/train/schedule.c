/* schedule.c - see schedule.h: smoothing, deciding, asking. What steps cost is costs.c, looking is schedule_look.c. */
#include "nn/train/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "nn/train/schedule_inside.h"
#include "nn/train/shares.h"

/* Shares change when a step becomes faster by GAIN, and by more than WAVERS times what measurements waver by; in so
 * many steps one after the other, or fewer where the gain is LARGE. Members, which costs a copy of the optimizer's
 * state, by JOIN_GAIN, looked at every EVERY steps. */
static const double GAIN = 0.03, JOIN_GAIN = 0.05, LARGE = 0.15, WAVERS = 1.5;
enum { STEADY = 4, STEADY_LARGE = 2, EVERY = 8 };
/* Asking devices outside takes this part of the time at most, of which each has its own share, so that none waits for
 * another; and so many steps lie between two questions to one, twice as many after each answer of no greater speed
 * than was known. */
static const double PROBE_PART = 0.01, FASTER = 1.25;
enum { PROBE_STEPS = 20, PROBE_STEPS_MOST = 160 };
/* A question takes a step's time by this, or has a batch's samples by this where it is the first: then it is taken to
 * cost so many steps and seconds, for plans, programs and memory that is touched. */
enum { PROBE_DIVISOR = 4 };
static const double FIRST_STEPS = 2, FIRST_SECONDS = 0.1;
/* What steps of several members took besides was perhaps a disturbance: after so many steps without such a step it is
 * forgotten, and after so many times more each further time. */
enum { FORGET_STEPS = 600, FORGET_GROWTH = 4 };

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
    CEK_TRY(cek__calloc(s->count, sizeof *s->first, &s->first));
    CEK_TRY(cek__calloc(s->count, sizeof *s->alone, &s->alone));
    CEK_TRY(cek__calloc(s->count, sizeof *s->outside, &s->outside));
out:
    return st;
}

void cek__schedule_first(const cek__costs_device *devices, size_t count, bool *members)
{
    for (size_t i = 0; i < count; i++)
        members[i] = devices[i].view == 0;
}

cek_status cek__schedule_create(const cek__costs_options *options, cek__schedule **out)
{
    cek_status st;
    cek__schedule *s = NULL;
    double *weights = NULL;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *s, &s));
    s->count = options->count;
    CEK_TRY(cek__costs_create(options, &s->costs));
    CEK_TRY(fields_make(s));
    CEK_TRY(cek__alloc_array(s->count, sizeof *weights, &weights));
    cek__schedule_first(options->devices, s->count, s->members);
    for (size_t i = 0; i < s->count; i++) {
        weights[i] = s->members[i];
        s->outside[i].patience = PROBE_STEPS;
    }
    cek__shares_split(options->batch, s->count, weights, s->rows);
    s->forget = FORGET_STEPS;
    cek__schedule_look_begin(s, EQUAL);
    free(weights);
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
    free(s->first);
    free(s->alone);
    free(s->outside);
    free(s);
}

/* ---- what is known ---- */

bool cek__schedule_is_ours(const cek__schedule *s, const int64_t *rows)
{
    return memcmp(rows, s->rows, s->count * sizeof *rows) == 0;
}

bool cek__schedule_was_crowded(cek__schedule *s, const int64_t *rows, size_t index)
{
    for (size_t i = 0; i < s->count; i++)
        s->chosen[i] = rows[i] > 0;
    return cek__costs_crowded(&s->costs, s->chosen, index);
}

void cek__schedule_speed_set(cek__schedule *s, size_t index, int64_t rows, double seconds, bool crowded)
{
    cek__smooth_set(&s->speeds[index], cek__costs_row(&s->costs, index, (double)rows, seconds, crowded));
    s->costs.speeds[index].row = s->speeds[index].value;
}

static void speed_add(cek__schedule *s, size_t index, int64_t rows, double seconds, bool crowded)
{
    cek__smooth_add(&s->speeds[index], cek__costs_row(&s->costs, index, (double)rows, seconds, crowded));
    s->costs.speeds[index].row = s->speeds[index].value;
}

void cek__schedule_excess_set(cek__schedule *s, const int64_t *rows, double period)
{
    if (!cek__known(period) || cek__schedule_member_count(s) < 2)
        return;
    s->costs.excess = 0;
    s->costs.excess = fmax(0, period - cek__costs_step(&s->costs, s->members, rows));
    s->team_note = s->notes;
}

static void excess_forget(cek__schedule *s)
{
    if (s->costs.excess == 0 || cek__schedule_member_count(s) > 1 || s->notes - s->team_note < s->forget)
        return;
    s->costs.excess = 0;
    s->forget *= FORGET_GROWTH;
}

/* ---- decisions ---- */

static void adopt(cek__schedule *s)
{
    s->skip = CEK__SCHEDULE_SKIPPED;
    s->steady = s->joins = s->period.count = 0; /* what a step takes is another number now */
}

/* A member that gets nothing is none. */
void cek__schedule_decide(cek__schedule *s)
{
    bool *members = s->frozen ? s->members : s->chosen;

    if (!s->frozen)
        (void)cek__costs_choose(&s->costs, members);
    (void)cek__costs_share(&s->costs, members, s->rows);
    for (size_t i = 0; i < s->count; i++)
        s->members[i] = members[i] && (s->frozen || s->rows[i] > 0);
    adopt(s);
}

/* ---- steps ---- */

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
            cek__schedule_decide(s);
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
    cek__schedule_decide(s);
    return true;
}

static void outside_note(cek__schedule *s, double period)
{
    for (size_t i = 0; i < s->count; i++) {
        if (s->members[i]) {
            s->outside[i].note = s->notes;
            s->outside[i].since = 0;
        } else if (cek__known(period)) {
            s->outside[i].since += period;
        }
    }
}

bool cek__schedule_note(cek__schedule *s, const int64_t *rows, const double *seconds, double period)
{
    int64_t all = 0;

    if (s->look != SETTLED)
        return cek__schedule_look(s, rows, seconds, period);
    s->notes++;
    excess_forget(s);
    outside_note(s, period);
    if (cek__schedule_is_ours(s, rows) && s->skip > 0) {
        s->skip--;
        return false;
    }
    for (size_t i = 0; i < s->count; i++) {
        all += rows[i];
        if (rows[i] > 0 && cek__known(seconds[i]))
            speed_add(s, i, rows[i], seconds[i], cek__schedule_was_crowded(s, rows, i));
    }
    if (all != s->costs.of.batch || !cek__schedule_is_ours(s, rows))
        return false; /* a last, smaller batch, or one that was under way when shares changed */
    if (cek__known(period)) {
        cek__smooth_add(&s->period, period);
        cek__schedule_excess_set(s, s->rows, s->period.value);
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
    cek__schedule_decide(s);
}

/* ---- devices outside ---- */

/* Of a device outside: how many samples it is asked with, 0 if it is not its time. */
static int64_t due(const cek__schedule *s, size_t index)
{
    const cek__outside *o = &s->outside[index];
    double step = cek__costs_step(&s->costs, s->members, s->rows), row = s->costs.speeds[index].row, expected;
    double part = PROBE_PART / (double)(s->count - cek__schedule_member_count(s));
    double rows = (double)s->costs.of.batch;

    if (s->members[index] || s->costs.speeds[index].excluded || s->notes - o->note < o->patience)
        return 0;
    if (row < INFINITY) {
        rows = fmax(1, fmin(step / PROBE_DIVISOR / row, rows / (double)s->count));
        expected = cek__costs_compute(&s->costs, index, floor(rows), false);
    } else {
        rows = fmax(1, rows / PROBE_DIVISOR);
        expected = FIRST_STEPS * step + FIRST_SECONDS;
    }
    return fmax(expected, o->asking) <= part * o->since ? (int64_t)rows : 0;
}

bool cek__schedule_probe(cek__schedule *s, size_t *index, int64_t *rows)
{
    if (s->look != SETTLED || s->frozen)
        return false;
    for (size_t k = 0; k < s->count; k++) {
        size_t i = (s->probe_next + k) % s->count;
        *rows = due(s, i);
        if (*rows == 0)
            continue;
        *index = i;
        s->probe_next = i + 1;
        s->outside[i].note = s->notes;
        s->outside[i].since = 0;
        return true;
    }
    return false;
}

void cek__schedule_probed(cek__schedule *s, size_t index, int64_t rows, double seconds, double all)
{
    cek__outside *o = &s->outside[index];
    double before = s->costs.speeds[index].row;

    o->asking = cek__known(all) ? all : 0;
    if (!cek__known(seconds))
        return;
    if (cek__costs_row(&s->costs, index, (double)rows, seconds, false) * FASTER > before)
        o->patience = 2 * o->patience < PROBE_STEPS_MOST ? 2 * o->patience : PROBE_STEPS_MOST;
    else
        o->patience = PROBE_STEPS;
    if (s->speeds[index].count == 0)
        cek__schedule_speed_set(s, index, rows, seconds, false);
    else
        speed_add(s, index, rows, seconds, false);
}

void cek__schedule_resumed(cek__schedule *s, size_t index, double period)
{
    if (s->period.count > 0 && cek__known(period))
        s->outside[index].asking = fmax(s->outside[index].asking, period - s->period.value);
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
