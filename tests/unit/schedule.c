/* schedule.c - shares by measurement, over a world of devices that takes the times that a formula says: what is found
 * is nearly as fast as can be, never slower than the best device alone, follows changes of speed and stays where it is
 * when nothing changes. */
#include "nn/train/processors.h"
#include "schedule_world.h"

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

/* Equal shares twice, after a step that made plans, or once where that told enough, and what was submitted meanwhile;
 * then the fastest alone. */
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

/* Devices of one plugin are on one processor where that is the host's; of several, wherever they say the same. */
START_TEST(devices_of_one_processor_are_found_by_their_names)
{
    static const struct {
        cek__view view;
        size_t processor, number;
    } cases[] = {
        { { "opencl:0", "cpu" }, 1, 2 },
        { { "cuda:0", "pci:0000:01:00.0" }, 2, 0 },
        { { "cpu:0", "cpu" }, 1, 0 },
        { { "cpu:1", "cpu" }, 1, 0 },
        { { "sim:0", "sim" }, 0, 0 },
        { { "sim:1", "sim" }, 0, 0 },
        { { "opencl:1", "cpu" }, 1, 2 },
        { { "opencl:2", "pci:0000:01:00.0" }, 2, 1 },
        { { "cuda:1", "pci:0000:02:00.0" }, 0, 0 },
        { { "quiet:0", "" }, 0, 0 },
        { { "silent:0", "" }, 0, 0 },
        { { "reference:0", "cpu" }, 1, 1 },
    };
    enum { COUNT = sizeof cases / sizeof *cases };
    cek__view views[COUNT];
    cek__costs_device devices[COUNT];

    memset(devices, 0, sizeof devices);
    for (size_t i = 0; i < COUNT; i++)
        views[i] = cases[i].view;
    cek__processors_number(views, COUNT, devices);
    for (size_t i = 0; i < COUNT; i++)
        ck_assert_msg(devices[i].processor == cases[i].processor && devices[i].view == cases[i].number,
                      "%s: processor %zu, view %zu", views[i].device, devices[i].processor, devices[i].view);
}
END_TEST

static machine view_of(double speed, size_t view)
{
    machine m = fast(speed);

    m.facts.processor = 1;
    m.facts.view = view;
    return m;
}

/* A second view of a processor has no sample of any step, and is asked when that costs a hundredth: a short run, here
 * of ten seconds, is as fast as without it, and a long one pays no more than that. */
START_TEST(a_second_view_is_asked_when_that_costs_little_and_no_step_waits_for_it)
{
    world w = mnist_cnn(64);
    add(&w, view_of(_i ? 220 : 611, _i ? 1 : 0));
    add(&w, view_of(_i ? 611 : 220, _i ? 0 : 1));
    w.crowding = 2;
    w.noise = 0.03;
    start(&w);
    ck_assert(cek__schedule_members(w.schedule)[_i] && !cek__schedule_members(w.schedule)[1 - _i]);
    w.settling = 2 * 64 / 611.0; /* with plans and memory, two steps */
    at_least(run(&w, 100), 0.999 * alone(&w, (size_t)_i));
    is_settled(&w);
    ck_assert_int_eq(w.questions[1 - _i], 0);
    at_least(run(&w, 1000), 0.985 * alone(&w, (size_t)_i));
    ck_assert_int_le(w.changes, 2);
    ck_assert_int_ge(w.questions[1 - _i], 1);
    at_least(cek__schedule_break_even(w.schedule, (size_t)(1 - _i)), 2);
    ck_assert(cek__schedule_break_even(w.schedule, (size_t)(1 - _i)) < 4);
    stop(&w);
}
END_TEST

/* Of two parts and a whole, whichever is faster: when it was asked, and later where that changes. */
START_TEST(a_second_view_that_is_faster_takes_the_place_of_all_parts_of_the_first)
{
    world w = mnist_cnn(256);
    add(&w, view_of(500, 0));
    add(&w, view_of(600, 1));
    add(&w, view_of(500, 0));
    w.crowding = 1;
    w.machines[1].speed = _i ? 600 : 2000;
    start(&w);
    run(&w, WARM);
    is_settled(&w);
    ck_assert(!cek__schedule_members(w.schedule)[1]);
    run(&w, 300);
    ck_assert(cek__schedule_members(w.schedule)[1] == !_i);
    at_least(run(&w, 100), 0.95 * (_i ? 1000 : 2000));
    w.machines[1].speed = _i ? 2000 : 600;
    run(&w, 800);
    ck_assert(cek__schedule_members(w.schedule)[1] == _i);
    at_least(run(&w, 100), 0.95 * (_i ? 2000 : 1000));
    stop(&w);
}
END_TEST

/* Beside a device on its own, too. */
START_TEST(a_second_view_leaves_devices_of_other_processors_alone)
{
    world w = mnist_cnn(256);
    add(&w, fast(2000));
    add(&w, view_of(1000, 0));
    add(&w, view_of(400, 1));
    w.crowding = 2;
    start(&w);
    run(&w, WARM);
    is_settled(&w);
    ck_assert(!cek__schedule_members(w.schedule)[2]);
    at_least(run(&w, 100), 0.95 * 3000);
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
    tcase_add_loop_test(tc, the_slower_of_two_on_one_processor_is_out_when_the_other_was_seen_alone, 0, 2);
    tcase_add_test(tc, two_devices_on_one_processor_are_both_taken_where_they_do_not_disturb_each_other);
    tcase_add_test(tc, devices_of_one_processor_are_found_by_their_names);
    tcase_add_loop_test(tc, a_second_view_is_asked_when_that_costs_little_and_no_step_waits_for_it, 0, 2);
    tcase_add_loop_test(tc, a_second_view_that_is_faster_takes_the_place_of_all_parts_of_the_first, 0, 2);
    tcase_add_test(tc, a_second_view_leaves_devices_of_other_processors_alone);
    tcase_add_loop_test(tc, a_speed_that_halves_is_followed_within_20_steps, 0, 3);
    tcase_add_loop_test(tc, sixty_four_equal_devices_are_nearly_as_fast_as_all_their_speeds, 0, 2);
    tcase_add_loop_test(tc, measurements_that_waver_change_nothing, 0, 3);
    tcase_add_test(tc, a_batch_smaller_than_the_number_of_devices_and_measurements_that_fail_keep_it_going);
    tcase_add_test(tc, members_that_cannot_be_had_are_not_asked_for_again);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
