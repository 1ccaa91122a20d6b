/* balance.c - see balance.h. */
#include "nn/train/balance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "nn/train/links.h"
#include "nn/train/processors.h"

/* Room for shares to grow into before the rings of samples are made anew. */
enum { ROOM = 2 };

/* ---- life ---- */

typedef struct link_job {
    const cek__team *team;
    size_t index;
    const uint64_t *bytes; /* of buckets */
    cek__costs_device *out;
} link_job;

static cek_status link_look(void *user)
{
    const link_job *j = user;

    return cek__links_measure(j->team->replicas[j->index], j->team->layout->bucket_count, j->bytes, j->out);
}

static cek_status devices_measure(const cek__team *team, cek__costs_device *out)
{
    cek_status st = CEK_OK;
    const cek__layout *layout = team->layout;
    uint64_t *bytes = NULL;

    CEK_TRY(cek__alloc_array(layout->bucket_count, sizeof *bytes, &bytes));
    for (size_t b = 0; b < layout->bucket_count; b++)
        bytes[b] = cek__layout_bucket_bytes(layout, b);
    for (size_t i = 0; i < team->count; i++) {
        CEK_TRY(cek__crew_call(team->crew, cek__replica_device(team->replicas[i]), link_look,
                               &(link_job){ team, i, bytes, &out[i] }));
        cek__log(CEK_LOG_INFO, "%s: links of %.3g GB/s with %.3g us a transfer, own memory %.3g GB/s",
                 cek_device_name(cek__replica_device(team->replicas[i])), out[i].link_bytes / 1e9, out[i].latency * 1e6,
                 out[i].own_bytes / 1e9);
    }
out:
    free(bytes);
    return st;
}

static cek_status views_look(cek_device *const *devices, size_t count, cek__costs_device *out)
{
    cek_status st;
    cek_device_info *info = NULL;
    cek__view *views = NULL;

    CEK_TRY(cek__calloc(count, sizeof *info, &info));
    CEK_TRY(cek__calloc(count, sizeof *views, &views));
    for (size_t i = 0; i < count; i++) {
        info[i].size = sizeof *info;
        CEK_TRY(cek_device_describe(devices[i], &info[i]));
        views[i] = (cek__view){ cek_device_name(devices[i]), info[i].processor };
    }
    cek__processors_number(views, count, out);
out:
    free(views);
    free(info);
    return st;
}

cek_status cek__balance_first(cek_device *const *devices, size_t count, bool *members)
{
    cek_status st;
    cek__costs_device *facts = NULL;

    CEK_TRY(cek__calloc(count, sizeof *facts, &facts));
    CEK_TRY(views_look(devices, count, facts));
    cek__schedule_first(facts, count, members);
out:
    free(facts);
    return st;
}

static uint64_t parameter_bytes(const cek__layout *layout)
{
    uint64_t bytes = 0;

    for (size_t b = 0; b < layout->bucket_count; b++)
        bytes += cek__layout_bucket_bytes(layout, b);
    return bytes;
}

/* That a device sends to another: gradients one way, what is read of parameters the other. */
static uint64_t travelling_bytes(const cek__layout *layout)
{
    uint64_t bytes = parameter_bytes(layout);

    for (size_t b = 0; b < layout->bucket_count; b++)
        bytes -= cek__layout_rounded_bytes(layout, b) / 2; /* half of these, one of two ways */
    return bytes;
}

typedef struct preparation {
    cek__replica *replica;
    int64_t rows;
} preparation;

static cek_status plan_prepare(void *user)
{
    const preparation *p = user;

    return cek__replica_prepare(p->replica, p->rows);
}

/* What batches are dealt out by, and plans for that. */
static cek_status shares_set(cek__balance *b)
{
    cek_status st = CEK_OK;
    const int64_t *rows = cek__schedule_rows(b->schedule);

    for (size_t i = 0; i < b->team->count; i++) {
        b->team->weights[i] = (double)rows[i];
        if (rows[i] > 0)
            CEK_TRY(cek__crew_call(b->team->crew, cek__replica_device(b->team->replicas[i]), plan_prepare,
                                   &(preparation){ b->team->replicas[i], rows[i] }));
    }
out:
    return st;
}

/* How many samples a device should be able to take that has so many. */
static int64_t room_for(const cek__balance *b, int64_t rows)
{
    return ROOM * rows < b->batch ? ROOM * rows : b->batch;
}

/* Replicas were made for equal shares of all devices, of which second views of a processor have none. */
static void rooms_widen(const cek__balance *b)
{
    const int64_t *rows = cek__schedule_rows(b->schedule);

    for (size_t i = 0; i < b->team->count; i++)
        if (rows[i] > cek__replica_most(b->team->replicas[i]))
            cek__replica_set_most(b->team->replicas[i], room_for(b, rows[i]));
}

/* In how many pieces parameters travel while all take part. */
static cek_status transfers_of(const cek__team *team, size_t *out)
{
    cek_status st;
    cek__shards shards;

    CEK_TRY(cek__shards_create(team->layout->bucket_count, team->layout->bucket_elements, team->count, &shards));
    *out = shards.count;
    cek__shards_close(&shards);
out:
    return st;
}

cek_status cek__balance_create(cek__team *team, cek_device *const *devices, int64_t batch, const cek__rules *rules,
                               cek__balance *out)
{
    cek_status st;
    cek__costs_device *facts = NULL;
    cek__costs_options o = { .count = team->count, .batch = batch };

    *out = (cek__balance){ .team = team, .batch = batch };
    CEK_TRY(transfers_of(team, &o.transfers));
    o.parameter_bytes = travelling_bytes(team->layout);
    /* parameters and moments are read and written, gradients read */
    o.update_bytes = parameter_bytes(team->layout) * (3 + 2 * cek__rules_moments(rules));
    CEK_TRY(cek__calloc(team->count, sizeof *facts, &facts));
    CEK_TRY(cek__calloc(team->count, sizeof *out->seconds, &out->seconds));
    CEK_TRY(cek__calloc(team->count, sizeof *out->busy, &out->busy));
    CEK_TRY(cek__calloc(team->count, sizeof *out->most, &out->most));
    CEK_TRY(cek__calloc(team->count, sizeof *out->resumed, &out->resumed));
    CEK_TRY(cek__calloc(team->count, sizeof *team->weights, &team->weights));
    CEK_TRY(devices_measure(team, facts));
    CEK_TRY(views_look(devices, team->count, facts));
    o.devices = facts;
    CEK_TRY(cek__schedule_create(&o, &out->schedule));
    rooms_widen(out);
    CEK_TRY(shares_set(out));
    free(facts);
    return CEK_OK;
out:
    free(facts);
    cek__balance_close(out);
    return st;
}

void cek__balance_close(cek__balance *b)
{
    cek__schedule_free(b->schedule);
    free(b->seconds);
    free(b->busy);
    free(b->most);
    free(b->resumed);
    memset(b, 0, sizeof *b);
}

/* ---- what is logged ---- */

static const char *name_of(const cek__balance *b, size_t i)
{
    return cek_device_name(cek__replica_device(b->team->replicas[i]));
}

/* "146,73,37", as far as there is room. */
static void list_write(const cek__balance *b, char *text, size_t size)
{
    const int64_t *rows = cek__schedule_rows(b->schedule);
    size_t at = 0;

    *text = 0;
    for (size_t i = 0; i < b->team->count && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%lld", i > 0 ? "," : "", (long long)rows[i]);
}

static void outside_log(const cek__balance *b, size_t i)
{
    double speed = cek__schedule_speed(b->schedule, i), times = cek__schedule_break_even(b->schedule, i);

    if (!(speed > 0))
        cek__log(CEK_LOG_INFO, "shares: %s takes no part, until it is asked how fast it is", name_of(b, i));
    else if (isfinite(times))
        cek__log(CEK_LOG_INFO, "shares: %s takes no part: of %.0f samples/s, it would help from %.0f on", name_of(b, i),
                 speed, speed * times);
    else
        cek__log(CEK_LOG_INFO, "shares: %s takes no part: of %.0f samples/s, it would not help at any speed",
                 name_of(b, i), speed);
}

/* What was decided, and why. */
static void decision_log(const cek__balance *b)
{
    char list[CEK__ERROR_TEXT_MAX];
    double predicted, seen, alone;
    const bool *members = cek__schedule_members(b->schedule);

    if (!cek__schedule_settled(b->schedule))
        return;
    list_write(b, list, sizeof list);
    cek__schedule_times(b->schedule, &predicted, &seen, &alone);
    cek__log(CEK_LOG_INFO, "shares: %s after %lld steps: %.3g ms a step predicted, the best device alone %.3g ms", list,
             (long long)b->steps, predicted * 1e3, alone * 1e3);
    for (size_t i = 0; i < b->team->count; i++) {
        if (members[i])
            cek__log(CEK_LOG_INFO, "shares: %s: %.0f samples/s", name_of(b, i), cek__schedule_speed(b->schedule, i));
        else
            outside_log(b, i);
    }
}

/* Once for each decision, when it has run for some steps. */
static void outcome_log(cek__balance *b)
{
    double predicted, seen, alone;

    cek__schedule_times(b->schedule, &predicted, &seen, &alone);
    if (b->told || b->due || !cek__schedule_settled(b->schedule) || seen <= 0)
        return;
    b->told = true;
    cek__log(CEK_LOG_INFO, "shares: %.3g ms a step measured, %.3g predicted", seen * 1e3, predicted * 1e3);
}

/* ---- steps ---- */

static void busy_note(cek__balance *b, double period)
{
    if (!(period > 0))
        return;
    b->span += period;
    for (size_t i = 0; i < b->team->count; i++)
        b->busy[i] += b->seconds[i] > 0 ? b->seconds[i] : 0;
}

double cek__balance_idle(const cek__balance *b, size_t index)
{
    return b->span > 0 ? fmax(0, 1 - b->busy[index] / b->span) : (double)NAN;
}

/* A period in which a question lies is that of no step: 0. */
static double questions_take(cek__balance *b, double period)
{
    double of_step = period;

    for (size_t i = 0; i < b->team->count; i++)
        if (b->resumed[i] == b->steps) {
            cek__schedule_resumed(b->schedule, i, period);
            of_step = 0;
        }
    return of_step;
}

void cek__balance_note(cek__balance *b, cek__lineup *lineup, const int64_t *rows)
{
    double period;

    b->steps++;
    if (b->stopped)
        return;
    cek__lineup_times(lineup, b->seconds, &period);
    period = questions_take(b, period);
    busy_note(b, period);
    if (cek__schedule_note(b->schedule, rows, b->seconds, period))
        b->due = true;
    outcome_log(b);
}

/* Members, or the rings of samples, have to be others. */
static bool must_change(const cek__balance *b, const cek__lineup *l)
{
    const int64_t *rows = cek__schedule_rows(b->schedule);

    if (memcmp(cek__schedule_members(b->schedule), l->members, l->of.all * sizeof *l->members) != 0)
        return true;
    for (size_t i = 0; i < l->of.all; i++)
        if (rows[i] > cek__replica_most(l->of.replicas[i]))
            return true;
    return false;
}

static cek_status change(cek__balance *b, cek__lineup *l)
{
    const int64_t *rows = cek__schedule_rows(b->schedule);

    for (size_t i = 0; i < l->of.all; i++)
        b->most[i] = room_for(b, rows[i]);
    return must_change(b, l) ? cek__lineup_change(l, cek__schedule_members(b->schedule), b->most) : CEK_OK;
}

cek_status cek__balance_apply(cek__balance *b, cek__lineup *l)
{
    cek_status st;

    b->due = b->told = false;
    st = change(b, l);
    if (st == CEK_OUT_OF_MEMORY) {
        cek__log(CEK_LOG_WARN, "shares: devices that take part stay those that do: %s", cek_error_text());
        cek__schedule_refuse(b->schedule, l->members);
        st = change(b, l);
    }
    if (st == CEK_OUT_OF_MEMORY) {
        cek__log(CEK_LOG_WARN, "shares stay as they are from now on: %s", cek_error_text());
        b->stopped = true;
        return CEK_OK;
    }
    CEK_TRY(st);
    CEK_TRY(shares_set(b));
    decision_log(b);
out:
    return st;
}

/* ---- questions ---- */

/* Of a question: the first may make a plan, the second is timed. */
enum { REHEARSALS = 2 };

static cek_status segment_ignored(void *user, size_t buckets)
{
    (void)user;
    (void)buckets;
    return CEK_OK;
}

/* Forward and backward, of which nobody uses the result. */
static cek_status rehearse(cek__replica *r, const cek__share *share, const cek_step_block *block, cek__meter *meter,
                           int64_t step)
{
    cek_status st;
    const size_t *reads;
    double loss;
    int64_t correct;

    cek__replica_set_step(r, block);
    CEK_TRY(cek__meter_start(meter, step));
    for (size_t i = 0; i < cek__replica_forward_count(r, &reads); i++)
        CEK_TRY(cek__replica_forward(r, share, i));
    CEK_TRY(cek__replica_train(r, share, segment_ignored, NULL));
    CEK_TRY(cek__meter_stop(meter, step));
    CEK_TRY(cek__replica_collect(r, &loss, &correct));
out:
    return st;
}

typedef struct question {
    cek__replica *replica;
    const cek__share *share;
    const cek_step_block *block;
    double busy, period;
} question;

static cek_status ask(void *user)
{
    cek_status st;
    question *q = user;
    cek__replica *r = q->replica;
    cek__meter *meter = NULL;

    CEK_TRY(cek__meter_create(cek__replica_device(r), cek__replica_stream(r), REHEARSALS, 1, &meter));
    for (int64_t step = 1; step <= REHEARSALS; step++)
        CEK_TRY(rehearse(r, q->share, q->block, meter, step));
    cek__meter_read(meter, REHEARSALS, &q->busy, &q->period);
out:
    if (st != CEK_OK)
        (void)cek__replica_quiesce(r); /* what is under way has the meter's markers */
    cek__meter_free(meter);
    return st;
}

bool cek__balance_asks(cek__balance *b, size_t *index, int64_t *rows)
{
    return !b->stopped && !b->due && cek__schedule_probe(b->schedule, index, rows);
}

cek_status cek__balance_ask(cek__balance *b, size_t index, int64_t rows, int64_t step, const cek__share *batch,
                            const cek_step_block *block)
{
    cek_status st;
    cek__share share = *batch;
    question q = { .replica = b->team->replicas[index], .share = &share, .block = block };

    share.rows = rows < batch->rows ? rows : batch->rows;
    st = cek__crew_call(b->team->crew, cek__replica_device(q.replica), ask, &q);
    if (st == CEK_OUT_OF_MEMORY) {
        cek__log(CEK_LOG_WARN, "shares: %s is asked another time how fast it is: %s", name_of(b, index),
                 cek_error_text());
        return cek__team_forget(b->team); /* half an answer is no part of what is summed up next */
    }
    CEK_TRY(st);
    cek__schedule_probed(b->schedule, index, share.rows, q.busy, REHEARSALS * q.period);
    if (b->resumed[index] == 0) /* the first answer */
        outside_log(b, index);
    b->resumed[index] = step;
out:
    return st;
}
