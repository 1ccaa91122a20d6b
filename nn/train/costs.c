/* costs.c - see costs.h. */
#include "nn/train/costs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"

/* The part of a step's computation that is over before its first gradient is there: backward takes twice as
 * long as forward. */
static const double LEAD = 1.0 / 3;
/* A device is a member if a step becomes shorter by so much of an equal share. */
static const double KEEP = 0.05;
/* Sizes that differ by less do not tell what of a time is the step's; and beyond that part, sizes hardly
 * show in times. */
static const double APART = 0.1, FIXED_MOST = 0.8;
/* Where devices differ more than this, what a first step takes besides does not matter, and many such steps would. */
static const double HOPELESS = 5;
/* Shares are moved by this part to see what of a step's time does not depend on them. */
static const double TILT = 0.3;
/* Adding reads two values and writes one. */
enum { ADD_TOUCHES = 3 };
/* Quanta of an equal share. */
enum { QUANTA = 32 };
/* A device that would have to be so many times faster is one whose speed does not matter. */
static const double FASTEST = 1e6;
/* Halvings of an interval: as many as a double has bits, and some for its width. */
enum { HALVINGS = 60 };

cek_status cek__costs_create(const cek__costs_options *options, cek__costs *out)
{
    cek_status st;
    size_t count = options->count;

    *out = (cek__costs){ .of = *options };
    CEK_TRY(cek__alloc_array(count, sizeof *out->devices, &out->devices));
    CEK_TRY(cek__alloc_array(count, sizeof *out->speeds, &out->speeds));
    CEK_TRY(cek__calloc(3 * count, sizeof *out->scratch, &out->scratch));
    memcpy(out->devices, options->devices, count * sizeof *out->devices);
    out->of.devices = out->devices;
    for (size_t i = 0; i < count; i++)
        out->speeds[i] = (cek__speed){ .row = INFINITY, .crowd = 1 };
    return CEK_OK;
out:
    cek__costs_close(out);
    return st;
}

void cek__costs_close(cek__costs *costs)
{
    free(costs->devices);
    free(costs->speeds);
    free(costs->scratch);
    memset(costs, 0, sizeof *costs);
}

int64_t cek__costs_quantum(const cek__costs *c)
{
    int64_t quantum = c->of.batch / (QUANTA * (int64_t)c->of.count);

    return quantum > 0 ? quantum : 1;
}

static double equal_share(const cek__costs *c)
{
    return (double)c->of.batch / (double)c->of.count;
}

bool cek__costs_exclude(const cek__costs *c, size_t a, size_t b)
{
    const cek__costs_device *x = &c->devices[a], *y = &c->devices[b];

    return x->processor != 0 && x->processor == y->processor && x->view != y->view;
}

bool cek__costs_crowded(const cek__costs *c, const bool *members, size_t index)
{
    size_t processor = c->devices[index].processor;

    for (size_t i = 0; processor != 0 && i < c->of.count; i++)
        if (i != index && members[i] && c->devices[i].processor == processor)
            return true;
    return false;
}

double cek__costs_compute(const cek__costs *c, size_t index, double rows, bool crowded)
{
    const cek__speed *s = &c->speeds[index];

    if (rows <= 0)
        return 0;
    return s->row * (crowded ? s->crowd : 1) * ((1 - s->fixed) * rows + s->fixed * equal_share(c));
}

double cek__costs_row(const cek__costs *c, size_t index, double rows, double seconds, bool crowded)
{
    const cek__speed *s = &c->speeds[index];

    return seconds / ((1 - s->fixed) * rows + s->fixed * equal_share(c)) / (crowded ? s->crowd : 1);
}

void cek__costs_learn_fixed(cek__costs *c, size_t index, const double *rows, const double *seconds)
{
    double slope = (seconds[1] - seconds[0]) / (rows[1] - rows[0]), fixed = seconds[0] - slope * rows[0];
    cek__speed *s = &c->speeds[index];

    if (!(fabs(rows[1] - rows[0]) >= APART * rows[0]))
        return;
    s->fixed = slope > 0 ? fixed / (fixed + slope * equal_share(c)) : FIXED_MOST;
    s->fixed = fmin(fmax(s->fixed, 0), FIXED_MOST);
}

/* What a member does in a step besides computing: seconds on its own, and on its links. */
static void exchange_of(const cek__costs *c, size_t index, size_t members, double *sums, double *link)
{
    const cek__costs_device *d = &c->devices[index];
    double n = (double)members, bytes = (double)c->of.parameter_bytes, others = (n - 1) / n;

    *sums = (ADD_TOUCHES * others * bytes + (double)c->of.update_bytes / n) / d->own_bytes;
    *link = 2 * others * (bytes / d->link_bytes + (double)c->of.transfers * d->latency);
}

static double member_seconds(const cek__costs *c, size_t index, size_t members, double compute)
{
    double sums, link;

    exchange_of(c, index, members, &sums, &link);
    if (c->devices[index].in_turn)
        return compute + sums + link;
    return fmax(compute + sums, LEAD * compute + link);
}

static size_t count_of(const cek__costs *c, const bool *members)
{
    size_t count = 0;

    for (size_t i = 0; i < c->of.count; i++)
        count += members[i];
    return count;
}

static double excess(const cek__costs *c, size_t members)
{
    return members > 1 ? c->excess : 0;
}

double cek__costs_step(const cek__costs *c, const bool *members, const int64_t *rows)
{
    size_t n = count_of(c, members);
    double longest = 0;

    for (size_t i = 0; i < c->of.count; i++) {
        double compute;
        if (!members[i])
            continue;
        compute = cek__costs_compute(c, i, (double)rows[i], cek__costs_crowded(c, members, i));
        longest = fmax(longest, member_seconds(c, i, n, compute));
    }
    return longest + excess(c, n);
}

/* Samples, not whole ones, that a member computes in a step of `seconds`. */
static double room(const cek__costs *c, const bool *members, size_t n, size_t index, double seconds)
{
    const cek__speed *s = &c->speeds[index];
    double sums, link, compute, row = s->row * (cek__costs_crowded(c, members, index) ? s->crowd : 1), rows;

    exchange_of(c, index, n, &sums, &link);
    compute = c->devices[index].in_turn ? seconds - sums - link : fmin(seconds - sums, (seconds - link) / LEAD);
    rows = (compute / row - s->fixed * equal_share(c)) / (1 - s->fixed);
    return rows > 0 ? fmin(rows, (double)c->of.batch) : 0;
}

static double room_of_all(const cek__costs *c, const bool *members, size_t n, double seconds)
{
    double rows = 0;

    for (size_t i = 0; i < c->of.count; i++)
        if (members[i])
            rows += room(c, members, n, i, seconds);
    return rows;
}

/* The shortest step into which a batch fits; INFINITY where there is none. */
static double shortest(const cek__costs *c, const bool *members, size_t n)
{
    double low = 0, high = 1e-9;

    while (room_of_all(c, members, n, high) < (double)c->of.batch) {
        low = high;
        high *= 2;
        if (!(high < 1e12))
            return INFINITY;
    }
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        if (room_of_all(c, members, n, middle) < (double)c->of.batch)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* Whole quanta that fit, then quantum by quantum to whoever ends first with it. */
static void deal(const cek__costs *c, const bool *members, size_t n, double seconds, int64_t *rows)
{
    int64_t quantum = cek__costs_quantum(c), left = c->of.batch;

    for (size_t i = 0; i < c->of.count; i++) {
        /* what lies a rounding error below a whole number is that number */
        double quanta = members[i] ? floor(room(c, members, n, i, seconds) / (double)quantum + 1e-6) : 0;
        rows[i] = (int64_t)quanta * quantum;
        if (rows[i] > left)
            rows[i] = left;
        left -= rows[i];
    }
    while (left > 0) {
        int64_t piece = left < quantum ? left : quantum;
        size_t first = c->of.count;
        double soonest = INFINITY;
        for (size_t i = 0; i < c->of.count; i++) {
            double compute, end;
            if (!members[i] || !(c->speeds[i].row < INFINITY))
                continue;
            compute = cek__costs_compute(c, i, (double)(rows[i] + piece), cek__costs_crowded(c, members, i));
            end = member_seconds(c, i, n, compute);
            if (end < soonest) {
                soonest = end;
                first = i;
            }
        }
        if (first == c->of.count)
            return;
        rows[first] += piece;
        left -= piece;
    }
}

double cek__costs_share(const cek__costs *c, const bool *members, int64_t *rows)
{
    size_t n = count_of(c, members);
    double seconds = n > 0 ? shortest(c, members, n) : INFINITY;

    if (rows != NULL && seconds < INFINITY)
        deal(c, members, n, seconds, rows);
    return seconds + excess(c, n);
}

/* ---- looking ---- */

void cek__costs_tilt(const cek__costs *c, const bool *members, int64_t *rows)
{
    double weights[2] = { 1 + TILT, 1 - TILT };
    int64_t left = c->of.batch;
    size_t last = 0, turn = 0;

    for (size_t i = 0; i < c->of.count; i++) {
        rows[i] = members[i] ? (int64_t)((double)rows[i] * weights[turn++ % 2]) : 0;
        if (rows[i] > left)
            rows[i] = left;
        left -= rows[i];
        if (members[i])
            last = i;
    }
    rows[last] += left;
}

bool cek__costs_hopeless(const cek__costs *c, const int64_t *rows, const double *seconds)
{
    double low = INFINITY, high = 0;

    for (size_t i = 0; i < c->of.count; i++) {
        double each = rows[i] > 0 && seconds[i] > 0 ? seconds[i] / (double)rows[i] : 0;
        low = each > 0 ? fmin(low, each) : low;
        high = fmax(high, each);
    }
    return high > HOPELESS * low;
}

/* ---- who takes part ---- */

size_t cek__costs_best(const cek__costs *c, double *seconds)
{
    size_t best = c->of.count;

    *seconds = INFINITY;
    for (size_t i = 0; i < c->of.count; i++) {
        double alone = member_seconds(c, i, 1, cek__costs_compute(c, i, (double)c->of.batch, false));
        if (!c->speeds[i].excluded && alone < *seconds) {
            *seconds = alone;
            best = i;
        }
    }
    return best;
}

bool cek__costs_helps(const cek__costs *c, bool *members, size_t index)
{
    bool was = members[index], *joined = c->scratch + 2 * c->of.count;
    double with, without;

    members[index] = false;
    without = cek__costs_share(c, members, NULL);
    for (size_t i = 0; i < c->of.count; i++)
        joined[i] = i == index || (members[i] && !cek__costs_exclude(c, i, index));
    with = cek__costs_share(c, joined, NULL);
    members[index] = was;
    return with < without * (1 - KEEP / (double)count_of(c, joined));
}

static bool is_usable(const cek__costs *c, size_t index)
{
    return !c->speeds[index].excluded && c->speeds[index].row < INFINITY;
}

/* The known device that is fastest (slowest) by itself among those that were not looked at. */
static size_t next(const cek__costs *c, bool *seen, bool slowest)
{
    size_t best = c->of.count;

    for (size_t i = 0; i < c->of.count; i++) {
        if (seen[i] || !is_usable(c, i))
            continue;
        if (best == c->of.count ||
            (slowest ? c->speeds[i].row >= c->speeds[best].row : c->speeds[i].row < c->speeds[best].row))
            best = i;
    }
    if (best < c->of.count)
        seen[best] = true;
    return best;
}

/* Samples a second of all devices of a view. */
static double view_speed(const cek__costs *c, size_t index)
{
    double speed = 0;

    for (size_t i = 0; i < c->of.count; i++)
        if (is_usable(c, i) && c->devices[i].processor == c->devices[index].processor &&
            c->devices[i].view == c->devices[index].view)
            speed += 1 / c->speeds[i].row;
    return speed;
}

/* No other view of its processor is faster, nor as fast and of a smaller number. */
static bool is_best_view(const cek__costs *c, size_t index)
{
    for (size_t i = 0; i < c->of.count; i++) {
        double more = cek__costs_exclude(c, i, index) ? view_speed(c, i) - view_speed(c, index) : -1;
        if (more > 0 || (more >= 0 && c->devices[i].view < c->devices[index].view))
            return false;
    }
    return true;
}

static bool excludes_any(const cek__costs *c, const bool *members, size_t index)
{
    for (size_t i = 0; i < c->of.count; i++)
        if (members[i] && cek__costs_exclude(c, i, index))
            return true;
    return false;
}

/* From the best alone upwards. */
static double join(const cek__costs *c, bool *members, bool *seen)
{
    double seconds;
    size_t i = cek__costs_best(c, &seconds);

    memset(members, 0, c->of.count * sizeof *members);
    memset(seen, 0, c->of.count * sizeof *seen);
    if (i == c->of.count)
        return INFINITY;
    members[i] = seen[i] = true;
    while ((i = next(c, seen, false)) < c->of.count)
        members[i] = !excludes_any(c, members, i) && cek__costs_helps(c, members, i);
    return cek__costs_share(c, members, NULL);
}

/* From all downwards: two may not help where all do, since an exchange costs the same for many. */
static double leave(const cek__costs *c, bool *members, bool *seen)
{
    size_t i;

    for (i = 0; i < c->of.count; i++) {
        members[i] = is_usable(c, i) && is_best_view(c, i);
        seen[i] = !members[i];
    }
    while ((i = next(c, seen, true)) < c->of.count)
        members[i] = count_of(c, members) == 1 || cek__costs_helps(c, members, i);
    return cek__costs_share(c, members, NULL);
}

double cek__costs_choose(cek__costs *c, bool *members)
{
    size_t count = c->of.count;
    bool *upwards = c->scratch, *seen = c->scratch + count;
    double up = join(c, upwards, seen), down = leave(c, members, seen);

    if (up <= down) {
        memcpy(members, upwards, count * sizeof *members);
        return up;
    }
    return down;
}

static bool would_help(const cek__costs *c, bool *members, size_t index, double row)
{
    double was = c->speeds[index].row;
    bool helps;

    c->speeds[index].row = row;
    helps = cek__costs_helps(c, members, index);
    c->speeds[index].row = was;
    return helps;
}

double cek__costs_break_even(const cek__costs *c, bool *members, size_t index)
{
    double row = c->speeds[index].row, low = 1, high = 2;

    if (!(row < INFINITY))
        return INFINITY;
    while (!would_help(c, members, index, row / high)) {
        low = high;
        high *= 2;
        if (high > FASTEST)
            return INFINITY;
    }
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        if (would_help(c, members, index, row / middle))
            high = middle;
        else
            low = middle;
    }
    return high;
}
