/* order_checker.h - the invariants of order.h, written a second time: what was seen to happen, and what each action
 * asks of it.
 *
 * Told of every event as it truly happens and of every action; notes which invariants an action breaks. Shares no line
 * with order.c, so that a mistake there is not made here too. */
#ifndef TESTS_UNIT_ORDER_CHECKER_H
#define TESTS_UNIT_ORDER_CHECKER_H

#include <stdio.h>
#include <string.h>

#include "nn/train/order.h"

enum { DEVICES_MAX = 8, BUCKETS_MAX = 4, SHARDS_MAX = 32, STEPS_MAX = 24 };

typedef struct seen_shard {
    bool contributes[DEVICES_MAX];
    bool fetch_given[DEVICES_MAX], fetch_ended[DEVICES_MAX], add_given[DEVICES_MAX], add_ended[DEVICES_MAX];
    bool receive_given[DEVICES_MAX], received[DEVICES_MAX]; /* the owner's: its update has ended */
    size_t receive_from[DEVICES_MAX];
    bool measure_given, measured, update_given, updated, send_given, sent;
} seen_shard;

typedef struct seen_step {
    bool present[DEVICES_MAX], upload_given[DEVICES_MAX], backward_given[DEVICES_MAX], counted[DEVICES_MAX];
    bool verdict_given[DEVICES_MAX];
    size_t forward_given[DEVICES_MAX], ready[DEVICES_MAX];
    seen_shard shard[SHARDS_MAX];
} seen_step;

typedef struct checker {
    const cek__order_options *options;
    size_t devices;
    int64_t submitted, collected;
    int64_t held; /* the first step that is; 0: none */
    bool failed;
    uint64_t actions;
    uint32_t broken; /* a bit for each invariant that was broken */
    char first[160]; /* what broke one first */
    seen_step steps[STEPS_MAX + 1];
} checker;

static const char *const phase_names[] = { "upload",  "forward", "backward", "fetch", "add",
                                           "measure", "verdict", "update",   "send",  "receive" };

static void must(checker *c, bool holds, int invariant, const cek__action *a, const char *what)
{
    if (holds)
        return;
    if (c->broken == 0)
        snprintf(c->first, sizeof c->first, "invariant %d: %s(step %lld, device %zu, shard %zu, peer %zu): %s",
                 invariant, phase_names[a->phase], (long long)a->step, a->device, a->shard, a->peer, what);
    c->broken |= 1u << invariant;
}

static const cek__shard *shard_of(const checker *c, size_t s)
{
    return &c->options->shards->list[s];
}

/* To whom a device gives what it has of a shard: neighbours behind the owner pair up, then pairs, then fours, in each
 * the farther giving to the nearer; of a large shard all give to the owner. The owner's is the owner. */
static size_t taker_of(const checker *c, size_t s, size_t device)
{
    size_t owner = shard_of(c, s)->owner, behind = (device + c->devices - owner) % c->devices;
    if (!shard_of(c, s)->branched)
        return owner;
    for (size_t width = 1; width < c->devices; width *= 2)
        for (size_t near = 0; near + width < c->devices; near += 2 * width)
            if (near + width == behind)
                return (owner + near) % c->devices;
    return owner;
}

/* It or somebody who gives through it has samples. */
static bool contributes(const checker *c, int64_t n, size_t s, size_t device)
{
    return c->steps[n].shard[s].contributes[device];
}

/* a reads b's memory. */
static bool reaches(const checker *c, size_t a, size_t b)
{
    return c->options->reaches != NULL && c->options->reaches[a * c->devices + b];
}

/* Everybody has the shard in the version of this step. */
static bool spread_ended(const checker *c, int64_t step, size_t s)
{
    bool all = true;
    for (size_t r = 0; step > 0 && r < c->devices; r++)
        all = all && c->steps[step].shard[s].received[r];
    return all;
}

static size_t places_taken(const checker *c, size_t from, size_t to)
{
    size_t taken = 0;
    for (int64_t n = 1; n <= c->submitted; n++)
        for (size_t s = 0; s < c->options->shards->count; s++)
            if (taker_of(c, s, from) == to)
                taken += c->steps[n].shard[s].fetch_given[from] && !c->steps[n].shard[s].add_ended[from];
    return taken;
}

static size_t sends_taken(const checker *c, size_t owner)
{
    size_t taken = 0;
    for (int64_t n = 1; n <= c->submitted; n++)
        for (size_t s = 0; s < c->options->shards->count; s++)
            if (shard_of(c, s)->owner == owner)
                taken += c->steps[n].shard[s].send_given && !spread_ended(c, n, s);
    return taken;
}

/* Out of others' memory. */
static size_t reads_taken(const checker *c, size_t device)
{
    size_t taken = 0;
    for (int64_t n = 1; n <= c->submitted; n++)
        for (size_t s = 0; s < c->options->shards->count; s++)
            if (reaches(c, device, c->steps[n].shard[s].receive_from[device]))
                taken += c->steps[n].shard[s].receive_given[device] && !c->steps[n].shard[s].received[device];
    return taken;
}

static void forward_given(checker *c, const cek__action *a)
{
    seen_step *step = &c->steps[a->step];
    size_t lowest = c->options->reads != NULL ? c->options->reads[a->segment] : 0;
    must(c, step->present[a->device], 12, a, "the device has no samples");
    must(c, step->upload_given[a->device] && step->forward_given[a->device] == a->segment, 10, a, "out of turn");
    for (int64_t n = 1; n < a->step; n++)
        must(c, !c->steps[n].present[a->device] || c->steps[n].backward_given[a->device], 10, a,
             "before an earlier step");
    for (size_t s = 0; a->step > 1 && s < c->options->shards->count; s++)
        must(c, shard_of(c, s)->bucket < lowest || c->steps[a->step - 1].shard[s].received[a->device], 10, a,
             "parameters of the step before have not arrived");
    step->forward_given[a->device]++;
}

static void backward_given(checker *c, const cek__action *a)
{
    must(c, c->steps[a->step].forward_given[a->device] == c->options->segments, 10, a, "before forward");
    for (int64_t n = 1; n < a->step; n++)
        for (size_t s = 0; s < c->options->shards->count; s++) {
            const seen_shard *shard = &c->steps[n].shard[s];
            size_t taker = taker_of(c, s, a->device);
            bool read = shard_of(c, s)->owner == a->device ? shard->updated
                        : !contributes(c, n, s, a->device) ? true
                        : reaches(c, taker, a->device)     ? shard->add_ended[a->device]
                                                           : shard->fetch_ended[a->device];
            must(c, read, 11, a, "gradients of an earlier step are still to be read");
        }
    c->steps[a->step].backward_given[a->device] = true;
}

/* Every contribution to `taker` that comes before that of `r` in its order, or all of them for r == taker. */
static bool given_before(const checker *c, int64_t n, size_t s, size_t taker, size_t r)
{
    const seen_step *step = &c->steps[n];
    if (step->present[taker] && step->ready[taker] <= shard_of(c, s)->bucket)
        return false;
    for (size_t q = (taker + 1) % c->devices; q != r; q = (q + 1) % c->devices)
        if (q != shard_of(c, s)->owner && taker_of(c, s, q) == taker && contributes(c, n, s, q) &&
            !step->shard[s].add_given[q])
            return false;
    return true;
}

/* What a device gives has been added up there. */
static bool whole(const checker *c, int64_t n, size_t s, size_t device)
{
    bool all = given_before(c, n, s, device, device);
    for (size_t q = 0; q < c->devices; q++)
        if (q != shard_of(c, s)->owner && taker_of(c, s, q) == device)
            all = all && (!contributes(c, n, s, q) || c->steps[n].shard[s].add_ended[q]);
    return all;
}

static void fetch_given(checker *c, const cek__action *a)
{
    seen_step *step = &c->steps[a->step];
    seen_shard *shard = &step->shard[a->shard];
    must(c, taker_of(c, a->shard, a->device) == a->peer && a->device != a->peer && !reaches(c, a->peer, a->device), 12,
         a, "nobody needs it");
    must(c, contributes(c, a->step, a->shard, a->device), 12, a, "nobody has samples");
    must(c, !step->present[a->device] || step->ready[a->device] > shard_of(c, a->shard)->bucket, 7, a,
         "its gradients are not complete");
    must(c, whole(c, a->step, a->shard, a->device), 8, a, "a contribution to it is missing, or not yet added");
    must(c, !shard->fetch_given[a->device], 12, a, "twice");
    shard->fetch_given[a->device] = true;
    must(c, places_taken(c, a->device, a->peer) <= c->options->credits, 15, a, "no place is free");
}

static void add_given(checker *c, const cek__action *a)
{
    seen_step *step = &c->steps[a->step];
    seen_shard *shard = &step->shard[a->shard];
    size_t others = 0;
    must(c, taker_of(c, a->shard, a->peer) == a->device && a->peer != a->device && !shard->add_given[a->peer], 12, a,
         "nobody needs it");
    must(c, contributes(c, a->step, a->shard, a->peer), 12, a, "the peer has nothing to give");
    must(c, !step->present[a->peer] || step->ready[a->peer] > shard_of(c, a->shard)->bucket, 7, a,
         "the peer's gradients are not complete");
    must(c, reaches(c, a->device, a->peer) || shard->fetch_ended[a->peer], 5, a, "the contribution has not come");
    must(c, whole(c, a->step, a->shard, a->peer), 8, a, "a contribution to the peer is missing, or not yet added");
    must(c, given_before(c, a->step, a->shard, a->device, a->peer), 8, a, "before an earlier contribution");
    for (size_t q = 0; q < c->devices; q++)
        others += shard->add_given[q] && taker_of(c, a->shard, q) == a->device;
    must(c, a->first == (!step->present[a->device] && others == 0), 8, a, "adds to nothing, or overwrites a sum");
    shard->add_given[a->peer] = true;
}

static void update_given(checker *c, const cek__action *a)
{
    seen_step *step = &c->steps[a->step];
    seen_shard *shard = &step->shard[a->shard];
    must(c, shard_of(c, a->shard)->owner == a->device && !shard->update_given, 14, a, "not its shard, or twice");
    must(c, given_before(c, a->step, a->shard, a->device, a->device), 8, a, "a contribution is missing");
    must(c, !c->options->verdict || step->verdict_given[a->device], 8, a, "no verdict");
    must(c, spread_ended(c, a->step - 1, a->shard), 9, a, "the step before is still spreading");
    shard->update_given = true;
}

static bool all_reach(const checker *c)
{
    bool all = true;
    for (size_t a = 0; a < c->devices; a++)
        for (size_t b = 0; b < c->devices; b++)
            all = all && (a == b || reaches(c, a, b));
    return all;
}

static void receive_given(checker *c, const cek__action *a)
{
    seen_shard *shard = &c->steps[a->step].shard[a->shard];
    size_t from = shard_of(c, a->shard)->owner;
    must(c, a->device != from && !shard->receive_given[a->device], 12, a, "nobody needs it");
    if (shard_of(c, a->shard)->branched && all_reach(c))
        from = taker_of(c, a->shard, a->device);
    must(c, a->peer == from, 12, a, "from somebody else");
    must(c, reaches(c, a->device, from) ? shard->received[from] : shard->sent, 5, a, "there is nothing to receive yet");
    shard->receive_given[a->device] = true;
    shard->receive_from[a->device] = a->peer;
    must(c, reads_taken(c, a->device) <= c->options->credits, 15, a, "it reads too much at once");
}

static void verdict_given(checker *c, const cek__action *a)
{
    for (size_t s = 0; s < c->options->shards->count; s++)
        must(c, c->steps[a->step].shard[s].measured, 8, a, "not everything is measured");
    c->steps[a->step].verdict_given[a->device] = true;
}

static void checker_action(checker *c, const cek__action *a)
{
    seen_shard *shard = &c->steps[a->step].shard[a->shard];
    c->actions++;
    must(c, !c->failed, 18, a, "after a failure");
    must(c, a->step >= 1 && a->step <= c->submitted, 18, a, "of a step that was not submitted");
    if (a->phase == CEK__MEASURE || a->phase == CEK__UPDATE)
        must(c, c->held == 0 || a->step < c->held, 20, a, "its step is held");
    switch (a->phase) {
    case CEK__UPLOAD:
        must(c, c->steps[a->step].present[a->device], 12, a, "the device has no samples");
        c->steps[a->step].upload_given[a->device] = true;
        break;
    case CEK__FORWARD: forward_given(c, a); break;
    case CEK__BACKWARD: backward_given(c, a); break;
    case CEK__FETCH: fetch_given(c, a); break;
    case CEK__ADD: add_given(c, a); break;
    case CEK__MEASURE:
        must(c, c->options->verdict && given_before(c, a->step, a->shard, a->device, a->device), 8, a,
             "a contribution is missing");
        shard->measure_given = true;
        break;
    case CEK__VERDICT: verdict_given(c, a); break;
    case CEK__UPDATE: update_given(c, a); break;
    case CEK__SEND:
        must(c, shard->updated && !shard->send_given, 5, a, "it is not updated yet, or twice");
        shard->send_given = true;
        must(c, sends_taken(c, a->device) <= c->options->credits, 15, a, "no place is free");
        break;
    case CEK__RECEIVE: receive_given(c, a); break;
    default: must(c, false, 12, a, "unknown"); break;
    }
}

/* What an action began has truly ended. */
static void checker_done(checker *c, const cek__action *a)
{
    seen_shard *shard = &c->steps[a->step].shard[a->shard];
    switch (a->phase) {
    case CEK__FETCH: shard->fetch_ended[a->device] = true; break;
    case CEK__ADD: shard->add_ended[a->peer] = true; break;
    case CEK__MEASURE: shard->measured = true; break;
    case CEK__UPDATE: shard->updated = shard->received[a->device] = true; break;
    case CEK__SEND: shard->sent = true; break;
    case CEK__RECEIVE: shard->received[a->device] = true; break;
    default: break;
    }
}

static void checker_submit(checker *c, const bool *present)
{
    c->submitted++;
    memcpy(c->steps[c->submitted].present, present, c->devices * sizeof *present);
    for (size_t s = 0; s < c->options->shards->count; s++)
        for (size_t r = 0; r < c->devices; r++)
            for (size_t d = r; present[r] && !contributes(c, c->submitted, s, d); d = taker_of(c, s, d))
                c->steps[c->submitted].shard[s].contributes[d] = true;
}

static void checker_collect(checker *c)
{
    cek__action result = { .step = ++c->collected };
    for (size_t r = 0; r < c->devices; r++)
        must(c, !c->steps[c->collected].present[r] || c->steps[c->collected].counted[r], 18, &result,
             "collected before all devices had counted");
}

/* What a step that is held waits for. */
static bool everything_summed(const checker *c)
{
    bool all = true;
    for (size_t s = 0; s < c->options->shards->count; s++)
        for (size_t d = 0; d < c->devices; d++)
            all = all && c->steps[c->held].shard[s].add_given[d] == c->steps[c->held].shard[s].add_ended[d];
    return all;
}

static bool everything_spread(const checker *c)
{
    bool all = true;
    for (size_t s = 0; s < c->options->shards->count; s++)
        all = all && spread_ended(c, c->submitted, s);
    return all;
}

#endif
