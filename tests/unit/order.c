/* order.c - the order of a step under every order of completion: random devices that finish what they were given
 * whenever they like, a second writing of the invariants that looks at every action, and lies that break each of
 * them on purpose.
 *
 * CEKERNELS_TEST_SEED starts elsewhere; a failure prints the seed of its run. */
#include <stdlib.h>

#include "order_checker.h"
#include "scratch.h"

/* What the order is told although it is not so. */
typedef enum lie {
    NO_LIE,
    EARLY_FETCH,     /* a contribution has come, before it has */
    EARLY_READY,     /* gradients are complete, before they are */
    EARLY_RECEIVE,   /* parameters have arrived, before they have */
    EARLY_ADD,       /* an addition has ended, before it has */
    EARLY_MEASURE,   /* a gradient was measured, before it was */
    HIDDEN_DEVICE,   /* a device has no samples, though it has */
    INVENTED_DEVICE, /* a device has samples, though it has none */
    EARLY_COUNT,     /* a result is there, before it is */
    HIDDEN_FAILURE,  /* nothing has failed, though something did */
    HIDDEN_HOLD,     /* a step may go on, though somebody wants to see its sums first */
    LIE_COUNT
} lie;

/* Which device finishes in what order: a queue for what is computed, one for what leaves, one for what comes in,
 * one for sums. */
enum { COMPUTE, OUT, IN, SUMS, QUEUES, QUEUE_MAX = 1024 };
static const int queue_of[CEK__PHASE_COUNT] = { COMPUTE, COMPUTE, COMPUTE, OUT, SUMS, SUMS, SUMS, SUMS, OUT, IN };

typedef struct work {
    cek__action action;
    bool told; /* the order believes already that it has ended */
} work;

typedef struct run {
    uint64_t random;
    lie lie;
    cek__shards shards;
    cek__order_options options;
    cek__order *order;
    checker seen;
    work queues[DEVICES_MAX][QUEUES][QUEUE_MAX];
    size_t first[DEVICES_MAX][QUEUES], count[DEVICES_MAX][QUEUES];
    size_t buckets_done[DEVICES_MAX]; /* of the backward at the head of COMPUTE */
    bool reaches[DEVICES_MAX * DEVICES_MAX];
    size_t reads[BUCKETS_MAX];
    int64_t steps;
    uint64_t events, fail_at;
    bool holds; /* now and then a step */
} run;

static uint64_t draw(run *r, uint64_t below)
{
    uint64_t z = r->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % below;
}

/* ---- a run's shape ---- */

static void shape_draw(run *r, size_t devices)
{
    uint64_t elements[BUCKETS_MAX];
    size_t buckets = 1 + draw(r, BUCKETS_MAX), segments = draw(r, 2) ? buckets : 1;
    for (size_t b = 0; b < buckets; b++)
        elements[b] = draw(r, 3) ? 64 + draw(r, 1000) : CEK__SHARD_LEAST + draw(r, 2u << 20);
    assert_ok(cek__shards_create(buckets, elements, devices, &r->shards));
    ck_assert_uint_le(r->shards.count, SHARDS_MAX);
    for (size_t i = 0; i < segments; i++)
        r->reads[i] = segments == 1 ? 0 : buckets - 1 - i;
    uint64_t far = draw(r, 5) * 2; /* who reaches whom: all others, some, nobody */
    for (size_t a = 0; a < devices; a++)
        for (size_t b = 0; b < devices; b++)
            r->reaches[a * devices + b] = a != b && (far == 0 || draw(r, 8) >= far);
    r->steps = 3 + (int64_t)draw(r, STEPS_MAX - 6);
    r->options = (cek__order_options){
        .shards = &r->shards,
        .depth = 1 + draw(r, 4),
        .credits = 1 + draw(r, 3),
        .segments = segments,
        .reads = r->reads,
        .reaches = r->reaches,
        .verdict = draw(r, 3) == 0,
    };
    r->holds = draw(r, 2);
    r->seen.options = &r->options;
    r->seen.devices = devices;
    assert_ok(cek__order_create(&r->options, &r->order));
}

static void present_draw(run *r, bool *present)
{
    size_t devices = r->seen.devices, someone = draw(r, devices);
    uint64_t absent = draw(r, 3); /* in this step: nobody, a third, most */
    for (size_t d = 0; d < devices; d++)
        present[d] = d == someone || draw(r, 3) >= absent;
}

/* ---- events ---- */

static void try_submit(run *r)
{
    bool truth[DEVICES_MAX] = { false }, told[DEVICES_MAX];
    size_t devices = r->seen.devices, victim = draw(r, devices), others = 0;
    present_draw(r, truth);
    memcpy(told, truth, sizeof told);
    for (size_t d = 0; d < devices; d++)
        others += truth[d] && d != victim;
    if (r->lie == HIDDEN_DEVICE && others > 0)
        told[victim] = false;
    if (r->lie == INVENTED_DEVICE)
        told[victim] = true;
    bool room = cek__order_uncollected(r->order) < r->options.depth;
    if (r->holds && r->seen.held == 0 && room && draw(r, 3) == 0) {
        if (r->lie != HIDDEN_HOLD)
            cek__order_hold(r->order);
        r->seen.held = r->seen.submitted + 1;
    }
    bool taken = cek__order_submit(r->order, told);
    ck_assert_int_eq(taken, room);
    if (taken) {
        checker_submit(&r->seen, truth);
        r->events++;
    }
}

static work *head(run *r, size_t device, int queue)
{
    return &r->queues[device][queue][r->first[device][queue] % QUEUE_MAX];
}

static bool is_early(const run *r, const cek__action *a)
{
    return (r->lie == EARLY_FETCH && (a->phase == CEK__FETCH || a->phase == CEK__SEND)) ||
           (r->lie == EARLY_RECEIVE && a->phase == CEK__RECEIVE) || (r->lie == EARLY_ADD && a->phase == CEK__ADD) ||
           (r->lie == EARLY_MEASURE && a->phase == CEK__MEASURE);
}

static void try_take(run *r, size_t device, cek__lane lane)
{
    cek__action a;
    size_t *count;
    int queue;
    if (!cek__order_next(r->order, device, lane, &a))
        return;
    r->events++;
    checker_action(&r->seen, &a);
    ck_assert_uint_eq(a.device, device);
    queue = queue_of[a.phase];
    count = &r->count[device][queue];
    ck_assert_uint_lt(*count, QUEUE_MAX);
    bool told = is_early(r, &a);
    r->queues[device][queue][(r->first[device][queue] + (*count)++) % QUEUE_MAX] = (work){ a, told };
    if (told)
        cek__order_done(r->order, &a);
    if (r->lie == EARLY_READY && a.phase == CEK__BACKWARD)
        cek__order_ready(r->order, device, a.step, r->shards.buckets);
    if (r->lie == EARLY_COUNT && a.phase == CEK__BACKWARD)
        cek__order_counted(r->order, device, a.step);
}

/* One more bucket of the backward at the head, or its end. True if it has ended. */
static bool backward_go_on(run *r, size_t device, const cek__action *a)
{
    size_t *done = &r->buckets_done[device];
    if (*done < r->shards.buckets) {
        *done += 1 + draw(r, r->shards.buckets - *done); /* several may be seen at once */
        r->seen.steps[a->step].ready[device] = *done;
        cek__order_ready(r->order, device, a->step, *done);
        return false;
    }
    *done = 0;
    r->seen.steps[a->step].counted[device] = true;
    cek__order_counted(r->order, device, a->step);
    return true;
}

static void try_finish(run *r, size_t device, int queue)
{
    work w;
    if (r->count[device][queue] == 0)
        return;
    w = *head(r, device, queue);
    r->events++;
    if (w.action.phase == CEK__BACKWARD && !backward_go_on(r, device, &w.action))
        return;
    r->first[device][queue]++;
    r->count[device][queue]--;
    if (queue == COMPUTE || w.action.phase == CEK__VERDICT)
        return;
    checker_done(&r->seen, &w.action);
    if (!w.told)
        cek__order_done(r->order, &w.action);
}

static void look(run *r)
{
    cek__action settled = { .step = r->seen.submitted };
    if (cek__order_collect(r->order))
        checker_collect(&r->seen);
    if (r->seen.held > 0 && cek__order_holds(r->order)) {
        settled.step = r->seen.held;
        must(&r->seen, everything_summed(&r->seen), 20, &settled, "held, and something is still being added");
        if (draw(r, 4) == 0) {
            r->seen.held = 0;
            cek__order_release(r->order);
        }
    }
    if (!r->seen.failed && cek__order_settled(r->order))
        must(&r->seen, everything_spread(&r->seen), 19, &settled, "settled, and something is still spreading");
}

static void one_event(run *r)
{
    size_t device = draw(r, r->seen.devices);
    if (r->fail_at > 0 && r->events >= r->fail_at && !r->seen.failed) {
        r->seen.failed = true;
        if (r->lie != HIDDEN_FAILURE)
            cek__order_fail(r->order);
    }
    switch (draw(r, 8)) {
    case 0:
        if (r->seen.submitted < r->steps && !r->seen.failed)
            try_submit(r);
        break;
    case 1:
    case 2: try_take(r, device, CEK__LANE_COMPUTE); break;
    case 3:
    case 4: try_take(r, device, CEK__LANE_EXCHANGE); break;
    default: try_finish(r, device, (int)draw(r, QUEUES)); break;
    }
    look(r);
}

/* Nothing is left to take or to finish. */
static bool is_idle(run *r)
{
    for (size_t d = 0; d < r->seen.devices; d++) {
        try_take(r, d, CEK__LANE_COMPUTE);
        try_take(r, d, CEK__LANE_EXCHANGE);
        for (int q = 0; q < QUEUES; q++)
            if (r->count[d][q] > 0)
                return false;
    }
    return true;
}

/* ---- whole runs ---- */

/* One run from a seed; what was broken is in seen.broken. True if everything that was submitted has ended. */
static bool run_through(run *r, uint64_t seed, size_t devices, lie told, uint64_t fail_at)
{
    bool ended = false;
    memset(r, 0, sizeof *r);
    r->random = seed;
    r->lie = told;
    r->fail_at = fail_at;
    shape_draw(r, devices);
    for (int idle = 0; !ended;) {
        uint64_t before = r->events;
        one_event(r);
        idle = r->events == before ? idle + 1 : 0;
        if (idle < 500 || !is_idle(r)) /* so many draws in vain: most likely nothing is left */
            continue;
        look(r);
        ended = r->seen.submitted == r->steps || r->seen.failed;
        if (!ended && cek__order_uncollected(r->order) == r->options.depth)
            break; /* stuck */
    }
    return ended;
}

static void run_close(run *r)
{
    cek__order_free(r->order);
    cek__shards_close(&r->shards);
}

static uint64_t first_seed(void)
{
    const char *given = getenv("CEKERNELS_TEST_SEED");
    return given ? strtoull(given, NULL, 10) : 1;
}

static run the_run; /* large */

START_TEST(every_order_of_completion_keeps_every_invariant_and_comes_to_an_end)
{
    uint64_t wanted = getenv("CEKERNELS_TEST_LONG") ? 10000000 : 1000000, events = 0, actions = 0;
    for (uint64_t seed = first_seed(); events < wanted; seed++) {
        size_t devices = 1 + seed % DEVICES_MAX;
        bool ended = run_through(&the_run, seed, devices, NO_LIE, 0);
        ck_assert_msg(the_run.seen.broken == 0, "seed %llu, %zu devices: %s", (unsigned long long)seed, devices,
                      the_run.seen.first);
        ck_assert_msg(ended && cek__order_settled(the_run.order) && everything_spread(&the_run.seen) &&
                          the_run.seen.collected == the_run.steps,
                      "seed %llu, %zu devices: stuck: step %lld of %lld, %lld collected", (unsigned long long)seed,
                      devices, (long long)the_run.seen.submitted, (long long)the_run.steps,
                      (long long)the_run.seen.collected);
        events += the_run.events;
        actions += the_run.seen.actions;
        run_close(&the_run);
    }
    ck_assert_uint_gt(actions, wanted / 4); /* the others are what ends them */
}
END_TEST

START_TEST(a_failure_at_any_event_ends_all_actions)
{
    for (uint64_t seed = first_seed(); seed < first_seed() + 8; seed++) {
        size_t devices = 1 + seed % DEVICES_MAX;
        uint64_t events;
        run_through(&the_run, seed, devices, NO_LIE, 0);
        events = the_run.events < 3000 ? the_run.events : 3000;
        run_close(&the_run);
        for (uint64_t at = 1; at < events; at += getenv("CEKERNELS_TEST_LONG") ? 1 : 1 + at / 50) {
            bool ended = run_through(&the_run, seed, devices, NO_LIE, at);
            ck_assert_msg(ended && the_run.seen.broken == 0, "seed %llu, failure at event %llu: %s",
                          (unsigned long long)seed, (unsigned long long)at, the_run.seen.first);
            ck_assert(!cek__order_settled(the_run.order));
            run_close(&the_run);
        }
    }
}
END_TEST

/* Of two devices one never finishes anything: the other computes its whole step, and what it has for the
 * late one leaves. */
START_TEST(a_late_device_holds_up_nobodys_computation)
{
    bool present[2] = { true, true };
    cek__action a;
    int phases[CEK__PHASE_COUNT] = { 0 };
    cek__shards shards;
    cek__order *order;
    assert_ok(cek__shards_create(2, (uint64_t[]){ 300000, 300000 }, 2, &shards));
    cek__order_options o = { .shards = &shards, .depth = 2, .credits = 2, .segments = 1 };
    assert_ok(cek__order_create(&o, &order));
    ck_assert(cek__order_submit(order, present));
    while (cek__order_next(order, 0, CEK__LANE_COMPUTE, &a))
        phases[a.phase]++;
    ck_assert(phases[CEK__UPLOAD] == 1 && phases[CEK__FORWARD] == 1 && phases[CEK__BACKWARD] == 1);
    cek__order_ready(order, 0, 1, 2);
    while (cek__order_next(order, 0, CEK__LANE_EXCHANGE, &a))
        phases[a.phase]++;
    ck_assert_int_eq(phases[CEK__FETCH], 2); /* its part of the late device's shard of each bucket */
    ck_assert_int_eq(phases[CEK__ADD] + phases[CEK__UPDATE], 0);
    cek__order_free(order);
    cek__shards_close(&shards);
}
END_TEST

/* Two buckets, two segments of forward, two devices: the first step is over but for the spread of the bucket that
 * forward reads last. */
START_TEST(a_segment_of_forward_begins_when_its_own_parameters_have_arrived)
{
    bool present[2] = { true, true }, reaches[4] = { false, true, true, false };
    cek__action a, held = { 0 };
    cek__shards shards;
    cek__order *order;
    int forward = 0;
    assert_ok(cek__shards_create(2, (uint64_t[]){ 64, 64 }, 2, &shards)); /* bucket 0 is device 0's, 1 device 1's */
    cek__order_options o = {
        .shards = &shards, .depth = 2, .credits = 2, .segments = 2, .reads = (size_t[]){ 1, 0 }, .reaches = reaches
    };
    assert_ok(cek__order_create(&o, &order));
    for (int n = 0; n < 2; n++)
        ck_assert(cek__order_submit(order, present));
    for (size_t d = 0; d < 2; d++) {
        for (int i = 0; i < 5; i++) { /* upload, forward twice, backward; upload of the next */
            ck_assert(cek__order_next(order, d, CEK__LANE_COMPUTE, &a));
            ck_assert_int_eq(a.step, a.phase == CEK__UPLOAD && i > 0 ? 2 : 1);
        }
        ck_assert(!cek__order_next(order, d, CEK__LANE_COMPUTE, &a));
    }
    for (size_t d = 0; d < 2; d++)
        cek__order_ready(order, d, 1, 2);
    for (bool any = true; any;) {
        any = false;
        for (size_t d = 0; d < 2; d++) {
            while (cek__order_next(order, d, CEK__LANE_EXCHANGE, &a)) {
                any = true;
                if (a.phase == CEK__RECEIVE && a.device == 1)
                    held = a;
                else
                    cek__order_done(order, &a);
            }
        }
    }
    ck_assert_uint_eq(shards.list[held.shard].bucket, 0);
    while (cek__order_next(order, 1, CEK__LANE_COMPUTE, &a)) {
        ck_assert(a.phase == CEK__FORWARD && a.step == 2 && a.segment == 0);
        forward++;
    }
    ck_assert_int_eq(forward, 1);
    cek__order_done(order, &held);
    ck_assert(cek__order_next(order, 1, CEK__LANE_COMPUTE, &a));
    ck_assert(a.phase == CEK__FORWARD && a.step == 2 && a.segment == 1);
    ck_assert(cek__order_next(order, 1, CEK__LANE_COMPUTE, &a) && a.phase == CEK__BACKWARD);
    cek__order_free(order);
    cek__shards_close(&shards);
}
END_TEST

/* Six buckets that are ready at once on two devices; through one place, or from memory to memory. */
START_TEST(of_what_may_go_that_goes_first_which_forward_reads_first)
{
    static const size_t want[] = { 4, 2, 0 }; /* device 0's shards, one a bucket */
    bool present[2] = { true, true }, reaches[4] = { _i, _i, _i, _i };
    size_t seen[CEK__PHASE_COUNT] = { 0 };
    cek__action a;
    cek__shards shards;
    cek__order *order;
    assert_ok(cek__shards_create(6, (uint64_t[]){ 64, 64, 64, 64, 64, 64 }, 2, &shards));
    cek__order_options o = { .shards = &shards, .depth = 1, .credits = 1, .segments = 1, .reaches = reaches };
    assert_ok(cek__order_create(&o, &order));
    ck_assert(cek__order_submit(order, present));
    for (size_t d = 0; d < 2; d++)
        cek__order_ready(order, d, 1, 6);
    for (bool any = true; any;) {
        any = false;
        for (size_t d = 0; d < 2; d++) {
            while (cek__order_next(order, d, CEK__LANE_EXCHANGE, &a)) {
                any = true;
                if (shards.list[a.shard].owner == 0) /* every phase of them, in this order */
                    ck_assert_uint_eq(a.shard, want[seen[a.phase]++]);
                cek__order_done(order, &a);
            }
        }
    }
    ck_assert(cek__order_settled(order));
    ck_assert_uint_eq(seen[CEK__FETCH], _i ? 0 : 3);
    ck_assert(seen[CEK__ADD] == 3 && seen[CEK__UPDATE] == 3 && seen[CEK__RECEIVE] == 3);
    cek__order_free(order);
    cek__shards_close(&shards);
}
END_TEST

/* The invariants that each lie must break; the checker that does not notice proves nothing. */
static const struct {
    lie lie;
    int invariant;
} lies[] = {
    { EARLY_FETCH, 5 },     { EARLY_READY, 7 },    { HIDDEN_DEVICE, 8 },    { EARLY_MEASURE, 8 }, { EARLY_RECEIVE, 9 },
    { EARLY_RECEIVE, 10 },  { EARLY_FETCH, 11 },   { INVENTED_DEVICE, 12 }, { EARLY_ADD, 15 },    { EARLY_COUNT, 18 },
    { HIDDEN_FAILURE, 18 }, { EARLY_RECEIVE, 19 }, { HIDDEN_HOLD, 20 },
};

START_TEST(an_invariant_that_is_broken_is_noticed)
{
    uint32_t noticed = 0;
    for (uint64_t seed = 1; seed < 200 && !(noticed >> lies[_i].invariant & 1); seed++) {
        run_through(&the_run, seed, 2 + seed % (DEVICES_MAX - 1), lies[_i].lie,
                    lies[_i].lie == HIDDEN_FAILURE ? 100 : 0);
        noticed |= the_run.seen.broken;
        run_close(&the_run);
    }
    ck_assert_msg(noticed >> lies[_i].invariant & 1, "lie %d does not break invariant %d", lies[_i].lie,
                  lies[_i].invariant);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("order");
    TCase *tc = tcase_create("order");

    tcase_add_test(tc, every_order_of_completion_keeps_every_invariant_and_comes_to_an_end);
    tcase_add_test(tc, a_failure_at_any_event_ends_all_actions);
    tcase_add_test(tc, a_late_device_holds_up_nobodys_computation);
    tcase_add_loop_test(tc, of_what_may_go_that_goes_first_which_forward_reads_first, 0, 2);
    tcase_add_test(tc, a_segment_of_forward_begins_when_its_own_parameters_have_arrived);
    tcase_add_loop_test(tc, an_invariant_that_is_broken_is_noticed, 0, (int)(sizeof lies / sizeof *lies));
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
