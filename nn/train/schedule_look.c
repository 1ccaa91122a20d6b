/* schedule_look.c - looking, before anything is settled (see schedule_inside.h).
 *
 * Of devices on one processor none is as fast as it looks beside the others, so the fastest is looked at without them
 * first, which costs nothing: if it is as fast alone, the others are left out at once, and asked from outside how fast
 * they are, without any step that waits for them. */
#include <string.h>

#include "nn/train/schedule_inside.h"

/* Steps of each look that count. */
enum { SEEN = 2 };
/* More devices on one processor are parts of it rather than two ways to all of it. */
enum { SOLO_MOST = 4 };

void cek__schedule_look_begin(cek__schedule *s, look what)
{
    s->look = what;
    s->skip = CEK__SCHEDULE_SKIPPED;
    s->seen = 0;
    s->least_period = INFINITY;
    for (size_t i = 0; i < s->count; i++)
        s->least[i] = INFINITY;
}

/* ---- what comes next ---- */

static bool shares_processor(const cek__schedule *s, size_t a, size_t b)
{
    return s->costs.devices[a].processor != 0 && s->costs.devices[a].processor == s->costs.devices[b].processor;
}

/* It is a member that shares a processor, and was not looked at without the others there. */
static bool wants_solo(const cek__schedule *s, size_t index)
{
    size_t on_it = 0;

    for (size_t k = 0; k < s->count; k++)
        on_it += s->members[k] && shares_processor(s, k, index);
    return s->members[index] && s->alone[index].rows == 0 && on_it > 1 && on_it <= SOLO_MOST;
}

/* The fastest of those; count where there is none. */
static size_t solo_next(const cek__schedule *s)
{
    size_t best = s->count;

    for (size_t i = 0; i < s->count; i++)
        if (wants_solo(s, i) && (best == s->count || s->costs.speeds[i].row < s->costs.speeds[best].row))
            best = i;
    return best;
}

static void solo_begin(cek__schedule *s, size_t index)
{
    s->solo = index;
    for (size_t i = 0; i < s->count; i++)
        s->chosen[i] = s->members[i] && (i == index || !shares_processor(s, i, index));
    (void)cek__costs_share(&s->costs, s->chosen, s->rows);
    cek__schedule_look_begin(s, SOLO);
}

/* With what is known now. What steps took beyond the model is left out: one look is not enough for that. */
static void go_on(cek__schedule *s)
{
    double excess = s->costs.excess;
    size_t solo;

    s->costs.excess = 0;
    cek__schedule_decide(s);
    s->costs.excess = excess;
    solo = solo_next(s);
    if (cek__schedule_member_count(s) == 1) {
        cek__schedule_look_begin(s, SETTLED);
    } else if (solo < s->count) {
        solo_begin(s, solo);
    } else {
        cek__costs_tilt(&s->costs, s->members, s->rows);
        cek__schedule_look_begin(s, TILTED);
    }
}

/* ---- what a look has seen ---- */

static void equal_end(cek__schedule *s)
{
    for (size_t i = 0; i < s->count; i++) {
        s->first[i] = (cek__sight){ s->rows[i], s->least[i] };
        if (cek__known(s->least[i]))
            cek__schedule_speed_set(s, i, s->rows[i], s->least[i], cek__schedule_was_crowded(s, s->rows, i));
    }
    cek__schedule_excess_set(s, s->rows, s->least_period);
    go_on(s);
}

/* How much longer it takes beside others than alone, where both are known. */
static void crowd_learn(cek__schedule *s, size_t index, cek__sight beside)
{
    cek__sight alone = s->alone[index];

    if (cek__known(alone.seconds) && cek__known(beside.seconds))
        s->costs.speeds[index].crowd =
            fmax(1, cek__costs_row(&s->costs, index, (double)beside.rows, beside.seconds, false) /
                        cek__costs_row(&s->costs, index, (double)alone.rows, alone.seconds, false));
}

/* The others there are taken to suffer as much as `solo`, until they are looked at. */
static void crowd_assume(cek__schedule *s)
{
    for (size_t i = 0; i < s->count; i++) {
        if (!wants_solo(s, i) || !shares_processor(s, i, s->solo) || !cek__known(s->first[i].seconds))
            continue;
        s->costs.speeds[i].crowd = s->costs.speeds[s->solo].crowd;
        cek__schedule_speed_set(s, i, s->first[i].rows, s->first[i].seconds, true);
    }
}

static void solo_end(cek__schedule *s)
{
    size_t i = s->solo;

    s->alone[i] = (cek__sight){ s->rows[i] > 0 ? s->rows[i] : 1, s->least[i] };
    if (cek__known(s->least[i])) {
        crowd_learn(s, i, s->first[i]);
        cek__schedule_speed_set(s, i, s->rows[i], s->least[i], false);
        crowd_assume(s);
    }
    go_on(s);
}

static void tilted_end(cek__schedule *s)
{
    double before = s->costs.excess;

    for (size_t i = 0; i < s->count; i++) {
        bool crowded = cek__schedule_was_crowded(s, s->rows, i);
        if (!s->members[i] || !cek__known(s->least[i]))
            continue;
        if (cek__known(s->first[i].seconds))
            cek__costs_learn_fixed(&s->costs, i, (double[]){ (double)s->first[i].rows, (double)s->rows[i] },
                                   (double[]){ s->first[i].seconds, s->least[i] });
        if (crowded)
            crowd_learn(s, i, (cek__sight){ s->rows[i], s->least[i] });
        cek__schedule_speed_set(s, i, s->rows[i], s->least[i], crowded);
    }
    cek__schedule_excess_set(s, s->rows, s->least_period);
    s->costs.excess = fmin(s->costs.excess, before); /* a disturbance of one look need not be one of the other */
    cek__schedule_decide(s);
    cek__schedule_look_begin(s, SETTLED);
}

/* ---- steps ---- */

static void least_note(cek__schedule *s, const int64_t *rows, const double *seconds, double period)
{
    for (size_t i = 0; i < s->count; i++)
        if (rows[i] > 0 && cek__known(seconds[i]))
            s->least[i] = fmin(s->least[i], seconds[i]);
    if (cek__known(period))
        s->least_period = fmin(s->least_period, period);
}

/* Every device that had samples was timed. */
static bool all_seen(const cek__schedule *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->rows[i] > 0 && !cek__known(s->least[i]))
            return false;
    return true;
}

bool cek__schedule_look(cek__schedule *s, const int64_t *rows, const double *seconds, double period)
{
    bool hopeless = s->look == EQUAL && cek__costs_hopeless(&s->costs, rows, seconds);

    if (!cek__schedule_is_ours(s, rows))
        return false;
    if (s->skip > 0 && !hopeless) {
        s->skip--;
        return false;
    }
    least_note(s, rows, seconds, period);
    s->seen++;
    if (!all_seen(s) || (s->seen < SEEN && !hopeless))
        return false;
    switch (s->look) {
    case EQUAL: equal_end(s); break;
    case SOLO: solo_end(s); break;
    default: tilted_end(s); break;
    }
    return true;
}
