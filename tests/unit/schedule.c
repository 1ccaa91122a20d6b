/* schedule.c - shares by measurement, over a world of devices that takes the times that a formula says: what is found is nearly as
 * fast as can be, never slower than the best device alone, follows changes of speed and stays where it is when nothing changes. */
#include <math.h>

#include "core/base/random.h"
#include "nn/train/schedule.h"
#include "scratch.h"

enum { MOST = 64, AHEAD = 2, WARM = 40 };

/* A device as it is, which the schedule does not see. */
typedef struct machine {
    double speed; /* samples a second */
    double fixed; /* seconds of each step */
    cek__costs_device facts;
} machine;

typedef struct world {
    machine machines[MOST];
    size_t count;
    cek__costs_options options;
    double crowding; /* devices of one processor take so many times longer side by side */
    double noise;    /* each measurement is off by up to this part */
    double tail;     /* seconds that a step of several members takes besides */
    double asking;   /* a question takes so many times longer than what it tells; 0: once */
    int questions;
    cek__schedule *schedule;
    cek__costs_device facts[MOST];
    uint64_t drawn;
    int64_t changes, steps, samples;
    double seconds;
    /* steps that are submitted and not collected */
    int64_t queued[AHEAD][MOST];
    bool lineups[AHEAD][MOST];
    size_t queue;
} world;

static machine fast(double speed)
{
    return (machine){ .speed = speed,
                      .facts = { .link_bytes = 12e9, .latency = 1e-6, .own_bytes = 200e9, .in_turn = false } };
}

/* 26 M parameters, Adam: mnist-cnn. */
static world mnist_cnn(int64_t batch)
{
    return (world){
        .options = { .batch = batch, .parameter_bytes = 104000000, .update_bytes = 7 * 104000000ull, .transfers = 30 },
        .tail = 1e-4
    };
}

static world lenet5(int64_t batch)
{
    return (
        world){ .options = { .batch = batch, .parameter_bytes = 250000, .update_bytes = 7 * 250000, .transfers = 3 },
                .tail = 2e-5 };
}

static void add(world *w, machine m)
{
    w->machines[w->count++] = m;
}

static void start(world *w)
{
    for (size_t i = 0; i < w->count; i++)
        w->facts[i] = w->machines[i].facts;
    w->options.count = w->count;
    w->options.devices = w->facts;
    assert_ok(cek__schedule_create(&w->options, &w->schedule));
}

static void stop(world *w)
{
    cek__schedule_free(w->schedule);
}

static double compute(const world *w, const int64_t *rows, size_t i)
{
    const machine *m = &w->machines[i];
    double seconds = rows[i] > 0 ? m->fixed + (double)rows[i] / m->speed : 0;

    for (size_t k = 0; m->facts.processor != 0 && k < w->count; k++)
        if (k != i && rows[k] > 0 && rows[i] > 0 && w->machines[k].facts.processor == m->facts.processor)
            return seconds * w->crowding;
    return seconds;
}

/* Gathering and spreading fill the links after the forward pass; sums run on the device's own engine. */
static double step_seconds(const world *w, const bool *members, const int64_t *rows)
{
    double longest = 0, n = 0, bytes = (double)w->options.parameter_bytes;

    for (size_t i = 0; i < w->count; i++)
        n += members[i];
    for (size_t i = 0; i < w->count; i++) {
        const machine *m = &w->machines[i];
        double c = compute(w, rows, i), sums, link;
        if (!members[i])
            continue;
        sums = (3 * (n - 1) / n * bytes + (double)w->options.update_bytes / n) / m->facts.own_bytes;
        link = 2 * (n - 1) / n * (bytes / m->facts.link_bytes + (double)w->options.transfers * m->facts.latency);
        longest = fmax(longest, m->facts.in_turn ? c + sums + link : fmax(c + sums, 0.35 * c + link));
    }
    return longest + (n > 1 ? w->tail : 0);
}

static double noisy(world *w, double value)
{
    float u = cek__random_uniform(11, cek__stream(CEK__STREAM_USER, 1), w->drawn++);

    return value * (1 + w->noise * (2 * (double)u - 1));
}

static void submit(world *w)
{
    memcpy(w->queued[w->queue], cek__schedule_rows(w->schedule), w->count * sizeof **w->queued);
    memcpy(w->lineups[w->queue], cek__schedule_members(w->schedule), w->count * sizeof **w->lineups);
    w->queue++;
}

static void one_step(world *w)
{
    double seconds[MOST], period, took;
    int64_t rows[MOST], all = 0, probe;
    size_t index;

    while (w->queue < AHEAD)
        submit(w);
    memcpy(rows, w->queued[0], sizeof rows);
    period = step_seconds(w, w->lineups[0], rows);
    for (size_t i = 0; i < w->count; i++) {
        ck_assert_int_ge(rows[i], 0);
        all += rows[i];
        seconds[i] = rows[i] > 0 ? noisy(w, compute(w, rows, i)) : 0;
    }
    ck_assert_int_eq(all, w->options.batch);
    memmove(w->queued, w->queued + 1, sizeof w->queued - sizeof *w->queued);
    memmove(w->lineups, w->lineups + 1, sizeof w->lineups - sizeof *w->lineups);
    w->queue--;
    w->steps++;
    w->samples += all;
    w->seconds += period;
    w->changes += cek__schedule_note(w->schedule, rows, seconds, noisy(w, period));
    if (cek__schedule_probe(w->schedule, &index, &probe)) {
        int64_t asked[MOST] = { 0 };
        ck_assert(!cek__schedule_members(w->schedule)[index]);
        asked[index] = probe;
        took = compute(w, asked, index) * fmax(1, w->asking);
        w->seconds += took; /* nobody does anything else meanwhile */
        w->questions++;
        cek__schedule_probed(w->schedule, index, probe, noisy(w, compute(w, asked, index)), took);
    }
}

/* Samples a second over so many steps. */
static double run(world *w, int steps)
{
    w->samples = 0;
    w->seconds = 0;
    w->changes = 0;
    for (int i = 0; i < steps; i++)
        one_step(w);
    return (double)w->samples / w->seconds;
}

/* Of the device alone, all its work counted. */
static double alone(const world *w, size_t i)
{
    bool members[MOST] = { false };
    int64_t rows[MOST] = { 0 };

    members[i] = true;
    rows[i] = w->options.batch;
    return (double)w->options.batch / step_seconds(w, members, rows);
}

static void is_settled(const world *w)
{
    ck_assert(cek__schedule_settled(w->schedule));
}

#define at_least(got, want) \
    ck_assert_msg((got) >= (want), "%s: %g, not %g (line %d)", #got, (double)(got), (double)(want), __LINE__)

START_TEST(devices_of_unequal_speed_give_the_sum_of_their_speeds)
{
    world w = mnist_cnn(256);
    add(&w, fast(2000));
    add(&w, fast(1000));
    add(&w, fast(500));
    w.noise = _i * 0.03;
    start(&w);
    run(&w, WARM);
    is_settled(&w);
    at_least(run(&w, 100), 0.95 * (alone(&w, 0) + alone(&w, 1) + alone(&w, 2)));
    stop(&w);
}
END_TEST

START_TEST(what_a_step_costs_whatever_the_samples_is_told_from_what_a_sample_costs)
{
    world w = lenet5(256);
    machine slow_start = fast(20000);
    slow_start.fixed = 0.004;
    add(&w, fast(20000));
    add(&w, slow_start);
    start(&w);
    run(&w, WARM);
    is_settled(&w);
    /* equal ends: 20000 t + 20000 (t - 0.004) = 256 */
    at_least(run(&w, 50), 0.95 * 256 / ((256 + 80) / 40000.0));
    stop(&w);
}
END_TEST

/* What is left out costs nothing any more but the questions whether it has become faster. */
static void best_alone_is_held(world *w, size_t best)
{
    start(w);
    run(w, WARM);
    is_settled(w);
    for (size_t i = 0; i < w->count; i++)
        ck_assert_int_eq(cek__schedule_members(w->schedule)[i], i == best);
    at_least(run(w, 200), 0.97 * alone(w, best));
    ck_assert_int_eq(w->changes, 0);
    stop(w);
}

START_TEST(a_device_of_a_hundredth_of_the_speed_is_left_out)
{
    world w = mnist_cnn(256);
    add(&w, fast(20));
    add(&w, fast(2000));
    best_alone_is_held(&w, 1);
}
END_TEST

START_TEST(a_device_behind_a_slow_link_is_left_out)
{
    world w = mnist_cnn(256);
    machine far = fast(4000);
    far.facts.link_bytes = 1e8;
    far.facts.in_turn = _i;
    add(&w, fast(4000));
    add(&w, far);
    start(&w);
    ck_assert(isinf(cek__schedule_break_even(w.schedule, 1)));
    stop(&w);
    best_alone_is_held(&w, 0);
}
END_TEST

START_TEST(steps_that_take_longer_together_than_the_model_says_end_the_team)
{
    world w = lenet5(256);
    add(&w, fast(20000));
    add(&w, fast(19000));
    w.tail = 0.012; /* one of them needs 0.0128 for all */
    best_alone_is_held(&w, 0);
}
END_TEST

START_TEST(a_team_that_a_disturbance_ended_comes_together_again)
{
    world w = lenet5(256);
    add(&w, fast(20000));
    add(&w, fast(19000));
    w.tail = 0.012;
    start(&w);
    run(&w, WARM);
    ck_assert(!cek__schedule_members(w.schedule)[1]);
    at_least(run(&w, 3000), 0.97 * alone(&w, 0)); /* although it is tried now and then */
    w.tail = 1e-4;
    run(&w, 10000);
    ck_assert(cek__schedule_members(w.schedule)[1]);
    at_least(run(&w, 100), 0.95 * 39000);
    stop(&w);
}
END_TEST

START_TEST(sharing_what_a_step_costs_whatever_the_samples_is_no_gain)
{
    world w = lenet5(256);
    machine m = fast(20000);
    m.fixed = 0.010;
    add(&w, m); /* 0.0228 alone, 0.0164 with half of the samples */
    m.fixed = 0.0101;
    add(&w, m);
    w.tail = 0.008;
    best_alone_is_held(&w, 0);
}
END_TEST

START_TEST(of_two_devices_on_one_processor_the_faster_is_taken)
{
    world w = lenet5(256);
    machine a = fast(9000), b = fast(10000);
    a.facts.processor = b.facts.processor = 1;
    a.facts.in_turn = true;
    add(&w, a);
    add(&w, b);
    w.crowding = 2.2;
    best_alone_is_held(&w, 1);
}
END_TEST

/* Steps that had samples of device 1 until it was no member any more. */
static int steps_with_it(world *w)
{
    int steps = 0;

    start(w);
    while (cek__schedule_members(w->schedule)[1] && w->steps < WARM) {
        while (w->queue < AHEAD)
            submit(w);
        steps += w->queued[0][1] > 0;
        one_step(w);
    }
    ck_assert(!cek__schedule_members(w->schedule)[1]);
    return steps;
}

/* Equal shares twice, after a step that made plans, or once where that told enough, and what was submitted meanwhile; then the
 * fastest alone. */
START_TEST(the_slower_of_two_on_one_processor_is_out_when_the_other_was_seen_alone)
{
    static const struct {
        double speed;
        int steps;
    } cases[] = { { 3000, 3 }, { 1800, 1 } };
    world w = mnist_cnn(256);
    machine a = fast(cases[_i].speed), b = fast(10000);
    a.facts.processor = b.facts.processor = 1;
    add(&w, b);
    add(&w, a);
    w.crowding = 2;
    w.noise = 0.05;
    ck_assert_int_le(steps_with_it(&w), cases[_i].steps + AHEAD - 1);
    stop(&w);
}
END_TEST

START_TEST(two_devices_on_one_processor_are_both_taken_where_they_do_not_disturb_each_other)
{
    world w = lenet5(256);
    machine a = fast(9000), b = fast(10000);
    a.facts.processor = b.facts.processor = 1;
    add(&w, a);
    add(&w, b);
    add(&w, fast(10000));
    w.crowding = 1.02;
    start(&w);
    run(&w, WARM);
    is_settled(&w);
    at_least(run(&w, 50), 0.95 * (9000 + 10000 + 10000));
    stop(&w);
}
END_TEST

START_TEST(a_speed_that_halves_is_followed_within_20_steps)
{
    world w = mnist_cnn(256);
    add(&w, fast(2000));
    add(&w, fast(1000));
    add(&w, fast(500));
    start(&w);
    run(&w, WARM);
    w.machines[_i].speed /= 2;
    run(&w, 20);
    at_least(run(&w, 50), 0.95 * (alone(&w, 0) + alone(&w, 1) + alone(&w, 2)));
    w.machines[_i].speed *= 2; /* and back */
    run(&w, 20);
    at_least(run(&w, 50), 0.95 * (alone(&w, 0) + alone(&w, 1) + alone(&w, 2)));
    stop(&w);
}
END_TEST

START_TEST(a_device_outside_that_has_become_fast_is_taken_in)
{
    world w = mnist_cnn(256);
    add(&w, fast(2000));
    add(&w, fast(20));
    start(&w);
    run(&w, WARM);
    ck_assert(!cek__schedule_members(w.schedule)[1]);
    ck_assert(cek__schedule_break_even(w.schedule, 1) > 1.5);
    ck_assert(cek__schedule_break_even(w.schedule, 1) < 10);
    w.machines[1].speed = 2000;
    run(&w, 600);
    ck_assert(cek__schedule_members(w.schedule)[1]);
    at_least(run(&w, 50), 0.95 * (alone(&w, 0) + alone(&w, 1)));
    stop(&w);
}
END_TEST

START_TEST(asking_a_device_outside_takes_a_hundredth_of_the_time_and_few_questions)
{
    world w = mnist_cnn(256);
    add(&w, fast(2000));
    add(&w, fast(20));
    w.asking = _i;
    start(&w);
    run(&w, WARM);
    w.questions = 0;
    at_least(run(&w, 4000), 0.985 * alone(&w, 0));
    ck_assert_int_ge(w.questions, 4);
    ck_assert_int_le(w.questions, 30);
    stop(&w);
}
END_TEST

START_TEST(sixty_four_equal_devices_are_nearly_as_fast_as_all_their_speeds)
{
    world w = lenet5(64 * 64);
    for (int i = 0; i < 64; i++)
        add(&w, fast(4000));
    w.noise = _i * 0.03;
    start(&w);
    run(&w, WARM);
    is_settled(&w);
    at_least(run(&w, 50), 0.9 * 64 * 4000);
    stop(&w);
}
END_TEST

START_TEST(measurements_that_waver_change_nothing)
{
    world w = mnist_cnn(256);
    add(&w, fast(2000));
    add(&w, fast(1000));
    w.noise = _i * 0.05;
    start(&w);
    run(&w, 2 * WARM);
    is_settled(&w);
    at_least(run(&w, 1000), 0.93 * (alone(&w, 0) + alone(&w, 1)));
    ck_assert_msg(w.changes <= 2, "%lld changes in 1000 steps", (long long)w.changes);
    stop(&w);
}
END_TEST

START_TEST(a_batch_smaller_than_the_number_of_devices_and_measurements_that_fail_keep_it_going)
{
    world w = lenet5(3);
    const double unknown[MOST] = { 0 };
    for (int i = 0; i < 7; i++)
        add(&w, fast(1000));
    start(&w);
    run(&w, WARM);
    is_settled(&w);
    stop(&w);
    w.options.batch = 64;
    start(&w);
    for (int i = 0; i < WARM; i++)
        ck_assert(!cek__schedule_note(w.schedule, cek__schedule_rows(w.schedule), unknown, -1));
    ck_assert(!cek__schedule_settled(w.schedule)); /* shares stay equal */
    ck_assert_int_eq(cek__schedule_rows(w.schedule)[0], 10);
    ck_assert_int_eq(cek__schedule_rows(w.schedule)[6], 9);
    stop(&w);
}
END_TEST

START_TEST(members_that_cannot_be_had_are_not_asked_for_again)
{
    world w = mnist_cnn(256);
    const bool both[2] = { true, true };
    add(&w, fast(2000));
    add(&w, fast(20));
    start(&w);
    for (int i = 0; i < 200; i++) {
        one_step(&w);
        if (!cek__schedule_members(w.schedule)[1])
            cek__schedule_refuse(w.schedule, both);
        ck_assert(cek__schedule_members(w.schedule)[0] && cek__schedule_members(w.schedule)[1]);
    }
    ck_assert_int_le(cek__schedule_rows(w.schedule)[1], 8);
    stop(&w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule");
    TCase *tc = tcase_create("schedule");

    tcase_add_loop_test(tc, devices_of_unequal_speed_give_the_sum_of_their_speeds, 0, 3);
    tcase_add_test(tc, what_a_step_costs_whatever_the_samples_is_told_from_what_a_sample_costs);
    tcase_add_test(tc, a_device_of_a_hundredth_of_the_speed_is_left_out);
    tcase_add_loop_test(tc, a_device_behind_a_slow_link_is_left_out, 0, 2);
    tcase_add_test(tc, steps_that_take_longer_together_than_the_model_says_end_the_team);
    tcase_add_test(tc, a_team_that_a_disturbance_ended_comes_together_again);
    tcase_add_test(tc, sharing_what_a_step_costs_whatever_the_samples_is_no_gain);
    tcase_add_test(tc, of_two_devices_on_one_processor_the_faster_is_taken);
    tcase_add_loop_test(tc, asking_a_device_outside_takes_a_hundredth_of_the_time_and_few_questions, 0, 20);
    tcase_add_loop_test(tc, the_slower_of_two_on_one_processor_is_out_when_the_other_was_seen_alone, 0, 2);
    tcase_add_test(tc, two_devices_on_one_processor_are_both_taken_where_they_do_not_disturb_each_other);
    tcase_add_loop_test(tc, a_speed_that_halves_is_followed_within_20_steps, 0, 3);
    tcase_add_test(tc, a_device_outside_that_has_become_fast_is_taken_in);
    tcase_add_loop_test(tc, sixty_four_equal_devices_are_nearly_as_fast_as_all_their_speeds, 0, 2);
    tcase_add_loop_test(tc, measurements_that_waver_change_nothing, 0, 3);
    tcase_add_test(tc, a_batch_smaller_than_the_number_of_devices_and_measurements_that_fail_keep_it_going);
    tcase_add_test(tc, members_that_cannot_be_had_are_not_asked_for_again);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
