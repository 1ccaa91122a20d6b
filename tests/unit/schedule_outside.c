/* schedule_outside.c - devices that the schedule has left out: they are asked seldom whether they have become faster,
 * each for itself. */
#include "schedule_world.h"

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
    w.machines[1].asking = _i < 20 ? _i : _i - 20;
    w.settling = _i < 20 ? 0 : 3 * 256 / 2000.0; /* as long as three steps */
    start(&w);
    run(&w, WARM);
    w.questions[1] = 0;
    at_least(run(&w, 4000), 0.985 * alone(&w, 0));
    ck_assert_int_ge(w.questions[1], 4);
    ck_assert_int_le(w.questions[1], 30);
    stop(&w);
}
END_TEST

/* The first answers what was known, which takes long; the second is as slow at first, and is asked no
 * later for that. */
START_TEST(a_device_outside_that_is_slow_to_ask_keeps_no_other_from_being_asked)
{
    world w = mnist_cnn(256);
    int steps = 0;

    add(&w, fast(2000));
    add(&w, fast(20));
    add(&w, fast(20));
    w.machines[_i].asking = 100;
    start(&w);
    run(&w, WARM);
    ck_assert(!cek__schedule_members(w.schedule)[1] && !cek__schedule_members(w.schedule)[2]);
    at_least(run(&w, 4000), 0.985 * alone(&w, 0));
    ck_assert_int_le(w.questions[_i], 4);
    ck_assert_int_ge(w.questions[3 - _i], 15);
    ck_assert_int_le(w.questions[3 - _i], 30);
    w.machines[3 - _i].speed = 2000;
    while (!cek__schedule_members(w.schedule)[3 - _i] && steps++ < 600)
        run(&w, 1);
    ck_assert(cek__schedule_members(w.schedule)[3 - _i]);
    stop(&w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule_outside");
    TCase *tc = tcase_create("schedule_outside");

    tcase_add_test(tc, a_device_outside_that_has_become_fast_is_taken_in);
    tcase_add_loop_test(tc, asking_a_device_outside_takes_a_hundredth_of_the_time_and_few_questions, 0, 30);
    tcase_add_loop_test(tc, a_device_outside_that_is_slow_to_ask_keeps_no_other_from_being_asked, 1, 3);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
