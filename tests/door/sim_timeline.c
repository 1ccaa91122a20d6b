/* SPDX-License-Identifier: MIT
 *
 * sim_timeline.c - the model of time behind simulated devices, alone: engines and links are shared, what has been ready
 * for longest goes first, and the order in which a host calls at one instant changes nothing.
 */
#include <string.h>

#include "backends/sim/timeline.h"
#include "tests/suite.h"

enum { NOBODY = -1 };

static cek__timeline *timeline;

static const cek__need compute = { .computes = true, .into = UINT32_MAX, .out_of = UINT32_MAX };

static cek__need copy_of(int into, int out_of)
{
    return (cek__need){ .copies = true, .into = (uint32_t)into, .out_of = (uint32_t)out_of };
}

static void enqueue(cek__line *line, cek__need need, uint64_t cost_ns)
{
    ck_assert(cek__timeline_enqueue(line, &need, cost_ns));
}

static cek__mark *mark(cek__line *line)
{
    cek__mark *made;
    ck_assert(cek__timeline_mark(line, &made));
    return made;
}

static void run(void)
{
    while (cek__timeline_next(timeline, UINT64_MAX))
        ;
}

/* When it happened; releases it. */
static uint64_t time_of(cek__mark *made)
{
    uint64_t ns;
    bool happened = cek__mark_time(made, &ns);
    cek__mark_release(made);
    return happened ? ns : UINT64_MAX;
}

static cek__line *open_line(uint32_t device)
{
    cek__line *line = cek__timeline_open(timeline, device);
    ck_assert_ptr_nonnull(line);
    return line;
}

static void start(uint32_t devices)
{
    timeline = cek__timeline_create(devices);
    ck_assert_ptr_nonnull(timeline);
}

START_TEST(commands_of_a_line_follow_each_other)
{
    start(1);
    cek__line *line = open_line(0);
    cek__mark *before = mark(line); /* nothing is outstanding: it has happened */
    enqueue(line, compute, 30);
    enqueue(line, copy_of(0, NOBODY), 20);
    enqueue(line, compute, 0);
    cek__mark *behind = mark(line);
    ck_assert(cek__mark_seen(before) && !cek__mark_seen(behind));
    ck_assert_uint_eq(time_of(before), 0);
    ck_assert(!cek__timeline_next(timeline, 29));
    ck_assert(cek__timeline_next(timeline, 30));
    ck_assert_uint_eq(cek__timeline_now(timeline), 30);
    run();
    ck_assert(cek__timeline_is_idle(line));
    ck_assert_uint_eq(time_of(behind), 50);

    /* What is enqueued later starts later. */
    cek__timeline_pass(timeline, 100);
    enqueue(line, compute, 5);
    behind = mark(line);
    run();
    ck_assert_uint_eq(time_of(behind), 105);
    cek__timeline_close(line);
    cek__timeline_free(timeline);
}
END_TEST

START_TEST(lines_of_a_device_share_its_compute_engine)
{
    start(2);
    cek__line *other = open_line(1), *a = open_line(0), *b = open_line(0);
    enqueue(b, compute, 10); /* enqueued first, but a was opened first */
    enqueue(a, compute, 100);
    enqueue(a, compute, 100);
    enqueue(b, compute, 10);
    enqueue(other, compute, 40); /* another device does not wait */
    cek__mark *of_a = mark(a), *of_b = mark(b), *of_other = mark(other);
    run();
    /* b is ready from 0 on, a's second only from 100 on; b's second is ready at 110, a's second is by then. */
    ck_assert_uint_eq(time_of(of_other), 40);
    ck_assert_uint_eq(time_of(of_a), 210);
    ck_assert_uint_eq(time_of(of_b), 220);
    cek__busy busy = cek__timeline_busy(timeline, 0);
    ck_assert_uint_eq(busy.compute_ns, 220);
    ck_assert_uint_eq(busy.copy_ns, 0);
    cek__timeline_close(a);
    cek__timeline_close(b);
    cek__timeline_close(other);
    cek__timeline_free(timeline);
}
END_TEST

/* Two transfers into device 0 and two out of it: a link carries one each way at a time. */
static void four_transfers(uint64_t copy_engines, const uint64_t *want)
{
    cek__line *lines[4];
    cek__mark *marks[4];
    start(1);
    cek__timeline_engines(timeline, 0, copy_engines);
    for (int i = 0; i < 4; i++) {
        lines[i] = open_line(0);
        enqueue(lines[i], i % 2 ? copy_of(NOBODY, 0) : copy_of(0, NOBODY), 100);
        marks[i] = mark(lines[i]);
    }
    run();
    for (int i = 0; i < 4; i++) {
        uint64_t ns = time_of(marks[i]);
        ck_assert_msg(ns == want[i], "transfer %d of 4, %d engines: at %d, not %d", i, (int)copy_engines, (int)ns,
                      (int)want[i]);
        cek__timeline_close(lines[i]);
    }
    cek__timeline_free(timeline);
}

START_TEST(a_link_carries_one_transfer_each_way)
{
    four_transfers(1, (uint64_t[]){ 100, 200, 300, 400 });
    four_transfers(2, (uint64_t[]){ 100, 100, 200, 200 });
    four_transfers(4, (uint64_t[]){ 100, 100, 200, 200 });
}
END_TEST

START_TEST(a_copy_between_devices_occupies_both_links)
{
    start(3);
    cek__line *pull = open_line(0), *upload = open_line(0), *download = open_line(1), *other = open_line(2),
              *into = open_line(1);
    cek__timeline_engines(timeline, 0, 2);
    cek__timeline_engines(timeline, 1, 2);
    enqueue(pull, copy_of(0, 1), 100);
    enqueue(upload, copy_of(0, NOBODY), 10);   /* the way into 0 is taken */
    enqueue(download, copy_of(NOBODY, 1), 20); /* and the way out of 1 */
    enqueue(into, copy_of(1, NOBODY), 30);     /* but not the way into 1 */
    enqueue(other, copy_of(2, 0), 40);         /* nor that out of 0 */
    cek__mark *marks[] = { mark(pull), mark(upload), mark(download), mark(into), mark(other) };
    static const uint64_t want[] = { 100, 110, 120, 30, 40 };
    run();
    for (int i = 0; i < 5; i++)
        ck_assert_uint_eq(time_of(marks[i]), want[i]);
    cek__timeline_close(pull);
    cek__timeline_close(upload);
    cek__timeline_close(download);
    cek__timeline_close(other);
    cek__timeline_close(into);
    cek__timeline_free(timeline);
}
END_TEST

START_TEST(a_line_waits_for_a_mark_of_another)
{
    start(1);
    cek__line *a = open_line(0), *b = open_line(0), *c = open_line(0);
    cek__timeline_engines(timeline, 0, 2);
    enqueue(a, compute, 70);
    cek__mark *of_a = mark(a);
    ck_assert(cek__timeline_wait(b, of_a));
    enqueue(b, copy_of(0, NOBODY), 5);
    cek__mark *of_b = mark(b);
    ck_assert(cek__timeline_wait(c, of_b));
    cek__mark *of_c = mark(c);
    run();
    ck_assert(cek__timeline_wait(c, of_b)); /* has happened: nothing is waited for */
    ck_assert(cek__timeline_is_idle(c));
    ck_assert_uint_eq(time_of(of_a), 70);
    ck_assert_uint_eq(time_of(of_b), 75);
    ck_assert_uint_eq(time_of(of_c), 75);

    /* A line that is closed never comes to its marks. */
    enqueue(a, compute, 70);
    of_a = mark(a);
    ck_assert(cek__timeline_wait(b, of_a));
    enqueue(b, compute, 5);
    of_b = mark(b);
    ck_assert_uint_eq(cek__timeline_horizon(timeline), 145);
    cek__timeline_close(a);
    enqueue(c, compute, 10); /* what it occupied is free */
    of_c = mark(c);
    run();
    ck_assert_uint_eq(time_of(of_a), UINT64_MAX);
    ck_assert_uint_eq(time_of(of_b), UINT64_MAX);
    ck_assert_uint_eq(time_of(of_c), 85);
    cek__timeline_close(b);
    cek__timeline_close(c);
    cek__timeline_free(timeline);
}
END_TEST

START_TEST(a_long_command_gives_way_behind_each_wave)
{
    start(1);
    cek__line *longer = open_line(0), *shorter = open_line(0), *copies = open_line(0);
    cek__timeline_waves(timeline, 0, 100);
    enqueue(longer, compute, 250);
    enqueue(shorter, compute, 30);
    enqueue(shorter, compute, 30);
    enqueue(shorter, compute, 130);
    enqueue(copies, copy_of(0, NOBODY), 1000); /* a transfer does not */
    cek__mark *behind_longer = mark(longer), *behind_shorter = mark(shorter), *behind_copies = mark(copies);
    run();
    /* 100 of the longer, 30, 100, 30, the last 50, 100 + 30: each has waited for longer than the one that goes on. */
    ck_assert_uint_eq(time_of(behind_longer), 100 + 30 + 100 + 30 + 50);
    ck_assert_uint_eq(time_of(behind_shorter), 310 + 130);
    ck_assert_uint_eq(time_of(behind_copies), 1000);
    ck_assert_uint_eq(cek__timeline_busy(timeline, 0).compute_ns, 440);
    cek__timeline_close(longer);
    cek__timeline_close(shorter);
    cek__timeline_close(copies);
    cek__timeline_free(timeline);
}
END_TEST

START_TEST(a_device_changes_its_speed_when_it_was_told_to)
{
    start(2);
    cek__line *line = open_line(0);
    cek__line *other = open_line(0), *elsewhere = open_line(1);
    enqueue(line, compute, 100);
    ck_assert(cek__timeline_speed(line, 50));
    enqueue(line, compute, 100);
    enqueue(line, copy_of(0, NOBODY), 100); /* is a copy */
    enqueue(elsewhere, compute, 400);
    enqueue(other, copy_of(NOBODY, 0), 150);
    enqueue(other, compute, 50); /* at its turn behind the others, by then at half the speed */
    cek__mark *behind = mark(line), *behind_other = mark(other), *behind_elsewhere = mark(elsewhere);
    run();
    ck_assert_uint_eq(time_of(behind), 100 + 200 + 100);
    ck_assert_uint_eq(time_of(behind_other), 100 + 200 + 100);
    ck_assert_uint_eq(time_of(behind_elsewhere), 400);
    cek__timeline_close(line);
    cek__timeline_close(other);
    cek__timeline_close(elsewhere);
    cek__timeline_free(timeline);
}
END_TEST

START_TEST(exchange_that_nothing_hides_is_counted)
{
    start(1);
    cek__line *a = open_line(0), *b = open_line(0);
    enqueue(a, compute, 60);
    enqueue(b, copy_of(NOBODY, 0), 100);
    run();
    cek__timeline_pass(timeline, 150);
    cek__busy busy = cek__timeline_busy(timeline, 0);
    ck_assert_uint_eq(busy.compute_ns, 60);
    ck_assert_uint_eq(busy.copy_ns, 100);
    ck_assert_uint_eq(busy.exposed_ns, 40);
    cek__timeline_close(a);
    cek__timeline_close(b);
    cek__timeline_free(timeline);
}
END_TEST

START_TEST(marks_are_told_in_the_order_of_time)
{
    cek__mark *told;
    start(2);
    cek__line *late = open_line(0), *early = open_line(1);
    enqueue(late, compute, 20);
    enqueue(early, compute, 10);
    cek__mark *first = mark(early), *second = mark(late);
    cek__mark_watch(second);
    ck_assert_ptr_null(cek__timeline_tell(timeline));
    run();
    ck_assert(!cek__mark_seen(first));
    told = cek__timeline_tell(timeline);
    ck_assert_ptr_eq(told, first);
    ck_assert(!cek__mark_watched(told) && cek__mark_seen(first) && !cek__mark_seen(second));
    cek__mark_release(told);
    told = cek__timeline_tell(timeline);
    ck_assert_ptr_eq(told, second);
    ck_assert(cek__mark_watched(told) && cek__mark_seen(second));
    cek__mark_release(told);
    ck_assert_ptr_null(cek__timeline_tell(timeline));
    cek__mark_release(first);
    cek__mark_release(second);
    cek__timeline_close(late);
    cek__timeline_close(early);
    cek__timeline_free(timeline);
}
END_TEST

/* ---- whoever enqueues first ---- */

enum { DEVICES = 3, LINES = 9, ROUNDS = 6, COMMANDS = 3, MARKS = LINES * ROUNDS };

static uint64_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* What line `l` enqueues in a round depends on the seed alone: commands, perhaps a wait for what another line marked in
 * an earlier round, a mark. */
static void line_round(uint64_t seed, int round, int l, cek__line **lines, cek__mark **marks, uint64_t *work)
{
    uint64_t state = seed * 1000003 + (uint64_t)(round * LINES + l);
    random_next(&state);
    if (round > 0 && random_next(&state) % 2)
        ck_assert(cek__timeline_wait(lines[l], marks[(round - 1) * LINES + (int)(random_next(&state) % LINES)]));
    for (int i = 0; i < COMMANDS; i++) {
        uint64_t ns = random_next(&state) % 4 *
                      10; /* few lengths, so that much happens at one instant; some take none */
        int device = l % DEVICES, other = (int)(random_next(&state) % DEVICES);
        switch (random_next(&state) % 4) {
        case 0: enqueue(lines[l], copy_of(device, NOBODY), ns); break;
        case 1: enqueue(lines[l], other != device ? copy_of(device, other) : copy_of(NOBODY, device), ns); break;
        default:
            enqueue(lines[l], compute, ns);
            work[device] += ns;
            break;
        }
    }
    marks[round * LINES + l] = mark(lines[l]);
}

/* The times of all marks, in rounds at fixed instants; `order` shuffles who enqueues first in each. */
static void rounds_run(uint64_t seed, uint64_t order, uint64_t *times)
{
    cek__line *lines[LINES];
    cek__mark *marks[MARKS];
    uint64_t work[DEVICES] = { 0 };
    start(DEVICES);
    for (uint32_t i = 0; i < DEVICES; i++)
        cek__timeline_engines(timeline, i, 1 + i % 2);
    for (uint32_t i = 0; i < DEVICES; i++)
        cek__timeline_waves(timeline, i, seed % 3 * 7);
    for (uint32_t l = 0; l < LINES; l++)
        lines[l] = open_line(l % DEVICES);
    for (int round = 0; round < ROUNDS; round++) {
        int who[LINES];
        for (int l = 0; l < LINES; l++)
            who[l] = l;
        for (int l = LINES - 1; l > 0; l--) {
            int with = (int)(random_next(&order) % (uint64_t)(l + 1)), kept = who[l];
            who[l] = who[with];
            who[with] = kept;
        }
        for (int l = 0; l < LINES; l++)
            line_round(seed, round, who[l], lines, marks, work);
        while (cek__timeline_next(timeline, 40 * (uint64_t)(round + 1)))
            ;
        cek__timeline_pass(timeline, 40 * (uint64_t)(round + 1));
    }
    run();
    for (int i = 0; i < MARKS; i++) {
        times[i] = time_of(marks[i]);
        ck_assert_msg(times[i] != UINT64_MAX, "seed %d: mark %d never happens", (int)seed, i);
    }
    for (uint32_t i = 0; i < DEVICES; i++) {
        cek__busy busy = cek__timeline_busy(timeline, i);
        /* One at a time: had two computed at once, the engine would have been busy for less than the sum. */
        ck_assert_uint_eq(busy.compute_ns, work[i]);
    }
    for (int l = 0; l < LINES; l++)
        cek__timeline_close(lines[l]);
    cek__timeline_free(timeline);
}

START_TEST(whoever_enqueues_first_times_are_the_same)
{
    uint64_t times[MARKS], again[MARKS];
    for (uint64_t seed = 1; seed <= 200; seed++) {
        rounds_run(seed, 1, times);
        for (uint64_t order = 2; order <= 5; order++) {
            rounds_run(seed, order, again);
            ck_assert_msg(memcmp(times, again, sizeof times) == 0, "seed %d, order %d: other times", (int)seed,
                          (int)order);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim_timeline");
    TCase *cases = tcase_create("timeline");
    tcase_add_test(cases, commands_of_a_line_follow_each_other);
    tcase_add_test(cases, lines_of_a_device_share_its_compute_engine);
    tcase_add_test(cases, a_link_carries_one_transfer_each_way);
    tcase_add_test(cases, a_copy_between_devices_occupies_both_links);
    tcase_add_test(cases, a_line_waits_for_a_mark_of_another);
    tcase_add_test(cases, a_long_command_gives_way_behind_each_wave);
    tcase_add_test(cases, a_device_changes_its_speed_when_it_was_told_to);
    tcase_add_test(cases, exchange_that_nothing_hides_is_counted);
    tcase_add_test(cases, marks_are_told_in_the_order_of_time);
    tcase_add_test(cases, whoever_enqueues_first_times_are_the_same);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
