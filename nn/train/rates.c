/* rates.c - see rates.h. */
#include "nn/train/rates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/options.h"
#include "core/base/status.h"

static const double PI = 3.14159265358979323846;
static const double LEAST_REDUCTION = 1e-8; /* a plateau's: less is none, as in PyTorch */

/* ---- what was asked for ---- */

/* The flags that a kind knows. */
static uint32_t flags_of(uint32_t kind)
{
    switch (kind) {
    case CEK_SCHEDULE_ONE_CYCLE: return CEK_SCHEDULE_LINEAR | CEK_SCHEDULE_THREE_PHASES;
    case CEK_SCHEDULE_PLATEAU: return CEK_SCHEDULE_LARGER_IS_BETTER | CEK_SCHEDULE_ABSOLUTE;
    case CEK_SCHEDULE_NONE: return 0;
    default: return CEK_SCHEDULE_BY_EPOCH;
    }
}

static cek_status number_check(const char *name, double *value, double otherwise, double low, double below)
{
    if (*value == 0)
        *value = otherwise;
    return *value >= low && *value < below
               ? CEK_OK
               : cek__fail(CEK_INVALID, "schedule: %s = %g, allowed are %g to below %g", name, *value, low, below);
}

static cek_status milestones_take(cek__rates *r)
{
    cek_status st;
    cek_schedule *s = &r->schedule;
    const int64_t *given = s->milestones;

    s->milestones = NULL;
    if (s->kind != CEK_SCHEDULE_MULTI_STEP)
        return s->milestone_count == 0 && given == NULL
                   ? CEK_OK
                   : cek__fail(CEK_INVALID, "schedule: milestones belong to CEK_SCHEDULE_MULTI_STEP");
    if (s->milestone_count == 0 || given == NULL)
        CEK_FAIL(CEK_INVALID, "schedule: CEK_SCHEDULE_MULTI_STEP without milestones");
    for (uint32_t i = 0; i < s->milestone_count; i++)
        if (given[i] < 1 || (i > 0 && given[i] <= given[i - 1]))
            CEK_FAIL(CEK_INVALID, "schedule: milestone %u is %lld, they ascend from 1 on", i, (long long)given[i]);
    CEK_TRY(cek__alloc_array(s->milestone_count, sizeof *r->milestones, &r->milestones));
    memcpy(r->milestones, given, s->milestone_count * sizeof *given);
    s->milestones = r->milestones;
out:
    return st;
}

static cek_status cycle_check(cek_schedule *s)
{
    cek_status st;

    CEK_TRY(number_check("rising_part", &s->rising_part, 0.3, 0, 1));
    CEK_TRY(number_check("start_divisor", &s->start_divisor, 25, 0, INFINITY));
    CEK_TRY(number_check("end_divisor", &s->end_divisor, 1e4, 0, INFINITY));
    if (s->rising_part * (double)s->period <= 1)
        CEK_FAIL(CEK_INVALID, "schedule: one cycle of %lld steps, of which %g rise: that is not two",
                 (long long)s->period, s->rising_part);
    if ((s->flags & CEK_SCHEDULE_THREE_PHASES) && s->rising_part >= 0.5)
        CEK_FAIL(CEK_INVALID, "schedule: a rising part of %g leaves no time for three phases", s->rising_part);
out:
    return st;
}

static cek_status schedule_check(cek_schedule *s)
{
    cek_status st;

    if (s->kind > CEK_SCHEDULE_PLATEAU)
        CEK_FAIL(CEK_INVALID, "schedule: kind %u is unknown", s->kind);
    if (s->flags & ~flags_of(s->kind))
        CEK_FAIL(CEK_INVALID, "schedule: flags 0x%x do not belong to the kind", s->flags & ~flags_of(s->kind));
    if (s->warmup < 0)
        CEK_FAIL(CEK_INVALID, "schedule: a warm-up of %lld steps", (long long)s->warmup);
    CEK_TRY(number_check("warmup_start", &s->warmup_start, 1.0 / 3, 0, nextafter(1, 2)));
    CEK_TRY(number_check("gamma", &s->gamma, 0.1, 0, INFINITY));
    CEK_TRY(number_check("floor", &s->floor, 0, 0, INFINITY));
    if ((s->kind == CEK_SCHEDULE_STEP || s->kind == CEK_SCHEDULE_COSINE || s->kind == CEK_SCHEDULE_ONE_CYCLE) &&
        s->period < 1)
        CEK_FAIL(CEK_INVALID, "schedule: a period of %lld", (long long)s->period);
    if (s->kind == CEK_SCHEDULE_ONE_CYCLE)
        CEK_TRY(cycle_check(s));
    if (s->kind == CEK_SCHEDULE_PLATEAU) {
        CEK_TRY(number_check("gamma", &s->gamma, 0.1, 0, 1));
        CEK_TRY(number_check("threshold", &s->threshold, 1e-4, 0, INFINITY));
        if (s->patience < 0 || s->cooldown < 0)
            CEK_FAIL(CEK_INVALID, "schedule: a patience of %lld and a cooldown of %lld", (long long)s->patience,
                     (long long)s->cooldown);
    }
    return CEK_OK;
out:
    return st;
}

cek_status cek__rates_create(const cek_schedule *given, cek__rates *out)
{
    cek_status st;

    *out = (cek__rates){ 0 };
    CEK_TRY(cek__options_take("schedule", &out->schedule, sizeof out->schedule, given));
    CEK_TRY(schedule_check(&out->schedule));
    CEK_TRY(milestones_take(out));
    out->best = out->schedule.flags & CEK_SCHEDULE_LARGER_IS_BETTER ? -INFINITY : INFINITY;
    return CEK_OK;
out:
    cek__rates_close(out);
    return st;
}

void cek__rates_close(cek__rates *r)
{
    free(r->milestones);
    memset(r, 0, sizeof *r);
}

/* ---- rates ---- */

static double multi_step(const cek_schedule *s, double base, int64_t at)
{
    uint32_t passed = 0;

    while (passed < s->milestone_count && s->milestones[passed] <= at)
        passed++;
    return base * pow(s->gamma, passed);
}

static double anneal(const cek_schedule *s, double from, double to, double part)
{
    return s->flags & CEK_SCHEDULE_LINEAR ? (to - from) * part + from : to + (from - to) / 2 * (cos(PI * part) + 1);
}

/* Up from base / start_divisor to base, and down to far less; with three phases down to where it began in between. What
 * is behind the cycle stays as low as it ended. */
static double one_cycle(const cek_schedule *s, double base, int64_t at)
{
    const double total = (double)s->period, low = base / s->start_divisor, end = low / s->end_divisor;
    const bool three = s->flags & CEK_SCHEDULE_THREE_PHASES;
    const double turns[] = { 0, s->rising_part * total - 1, three ? 2 * s->rising_part * total - 2 : total - 1,
                             total - 1 };
    const double rates[] = { low, base, three ? low : end, end };
    const double now = (double)at;

    for (int i = 0; i < 3; i++)
        if (now <= turns[i + 1] && turns[i + 1] > turns[i])
            return anneal(s, rates[i], rates[i + 1], (now - turns[i]) / (turns[i + 1] - turns[i]));
    return end;
}

static double plateau(const cek__rates *r, double base)
{
    double rate = base;

    for (int64_t i = 0; i < r->reductions; i++) {
        double next = fmax(rate * r->schedule.gamma, r->schedule.floor);
        if (rate - next <= LEAST_REDUCTION)
            break;
        rate = next;
    }
    return rate;
}

double cek__rates_at(const cek__rates *r, double base, int64_t steps, int64_t epochs)
{
    const cek_schedule *s = &r->schedule;
    const double warm = steps < s->warmup ? s->warmup_start + (1 - s->warmup_start) * (double)steps / (double)s->warmup
                                          : 1;
    const int64_t behind = steps < s->warmup ? 0 : steps - s->warmup;
    const int64_t at = s->flags & CEK_SCHEDULE_BY_EPOCH ? epochs : behind;

    switch (s->kind) {
    case CEK_SCHEDULE_STEP: return warm * base * pow(s->gamma, (double)(at / s->period));
    case CEK_SCHEDULE_MULTI_STEP: return warm * multi_step(s, base, at);
    case CEK_SCHEDULE_COSINE:
        return warm * (s->floor + (base - s->floor) * (1 + cos(PI * (double)at / (double)s->period)) / 2);
    case CEK_SCHEDULE_ONE_CYCLE: return warm * one_cycle(s, base, at);
    case CEK_SCHEDULE_PLATEAU: return warm * plateau(r, base);
    default: return warm * base;
    }
}

static bool is_better(const cek__rates *r, double metric)
{
    const cek_schedule *s = &r->schedule;
    const double step = s->flags & CEK_SCHEDULE_ABSOLUTE ? s->threshold : s->threshold * r->best;

    if (isinf(r->best))
        return s->flags & CEK_SCHEDULE_LARGER_IS_BETTER ? metric > r->best : metric < r->best;
    return s->flags & CEK_SCHEDULE_LARGER_IS_BETTER ? metric > r->best + step : metric < r->best - step;
}

void cek__rates_note(cek__rates *r, double metric)
{
    if (r->schedule.kind != CEK_SCHEDULE_PLATEAU)
        return;
    if (is_better(r, metric)) {
        r->best = metric;
        r->bad = 0;
    } else {
        r->bad++;
    }
    if (r->cooling > 0) {
        r->cooling--;
        r->bad = 0;
    }
    if (r->bad > r->schedule.patience) {
        r->reductions++;
        r->cooling = r->schedule.cooldown;
        r->bad = 0;
    }
}
