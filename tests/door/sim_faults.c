/* SPDX-License-Identifier: MIT
 *
 * sim_faults.c - simulated devices fail, hang and are lost where they are told to, and the contract
 * of section 1 of plugin.h holds when they do.
 */
#include <pthread.h>
#include <time.h>

#include "tests/door/door.h"

#define OK(call) ck_assert_msg((call) == CEK_OK, "%s: %s", #call, d.text)

static door d;

static void with(const char *const *options)
{
    door_open(&d, "sim", options);
}

START_TEST(the_nth_allocation_fails_once)
{
    static const char *const options[] = { "sim_inner", "reference", "sim_faults", "out_of_memory@mem_alloc#3", NULL };
    with(options);
    const cek_mem_desc desc = { .size = sizeof desc, .bytes = 64 };
    for (int i = 1; i <= 5; i++) {
        cek_mem *mem;
        ck_assert_uint_eq(d.plugin.mem_alloc(d.dev, &desc, &mem), i == 3 ? CEK_OUT_OF_MEMORY : CEK_OK);
        ck_assert(!mem == (i == 3));
        d.plugin.mem_free(mem);
    }
    door_close(&d);
}
END_TEST

START_TEST(a_lost_device_stays_lost_and_lets_go_of_everything)
{
    static const char *const options[] = { "sim_inner", "reference", "sim_faults", "device_lost@upload#2/1", NULL };
    with(options);
    cek_dev *dev;
    cek_queue *queue;
    cek_mem *mem;
    cek_event *event;
    const cek_mem_desc desc = { .size = sizeof desc, .bytes = 64 };
    char byte = 1, text[64];
    OK(d.plugin.device_open(d.instance, 1, NULL, &dev));
    OK(d.plugin.queue_create(dev, NULL, &queue));
    OK(d.plugin.mem_alloc(dev, &desc, &mem));
    OK(d.plugin.event_create(dev, NULL, &event));
    OK(d.plugin.event_record(queue, event));
    OK(d.plugin.upload(queue, (cek_ref){ mem, 0 }, &byte, 1));
    ck_assert_uint_eq(d.plugin.upload(queue, (cek_ref){ mem, 0 }, &byte, 1), CEK_DEVICE_LOST);
    ck_assert(strstr(d.text, "sim:1") != NULL);

    ck_assert_uint_eq(d.plugin.device_status(dev, text, sizeof text), CEK_DEVICE_LOST);
    ck_assert_str_eq(text, "upload: simulated loss of sim:1");
    ck_assert_uint_eq(d.plugin.upload(queue, (cek_ref){ mem, 0 }, &byte, 1), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.queue_sync(queue, CEK_FOREVER), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.queue_status(queue, NULL, 0), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.event_query(event), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.event_sync(event, 0), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.event_status(event, NULL, 0), CEK_DEVICE_LOST);
    cek_device_sensors sensors = { .size = sizeof sensors };
    ck_assert_uint_eq(d.plugin.device_sensors(d.instance, 1, &sensors), CEK_DEVICE_LOST);
    cek_mem *more;
    ck_assert_uint_eq(d.plugin.mem_alloc(dev, &desc, &more), CEK_DEVICE_LOST);
    ck_assert_ptr_null(more);

    /* The other device goes on. */
    cek_mem *here = door_mem(&d, 64);
    OK(d.plugin.upload(d.queue, (cek_ref){ here, 0 }, &byte, 1));
    d.plugin.mem_free(here);
    d.plugin.event_destroy(event);
    d.plugin.mem_free(mem);
    d.plugin.queue_destroy(queue);
    d.plugin.device_close(dev);
    door_close(&d);
}
END_TEST

START_TEST(failed_work_sticks_to_its_queue_its_events_and_whoever_waits)
{
    static const char *const options[] = { "sim_inner", "reference", "sim_faults", "later_internal@fill#2", NULL };
    with(options);
    cek_queue *waiter;
    cek_event *before, *behind;
    char text[64];
    cek_mem *mem = door_mem(&d, 64);
    const cek_ref at = { mem, 0 };
    OK(d.plugin.queue_create(d.dev, NULL, &waiter));
    OK(d.plugin.event_create(d.dev, NULL, &before));
    OK(d.plugin.event_create(d.dev, NULL, &behind));
    OK(d.plugin.fill(d.queue, at, 0, 4, 64));
    OK(d.plugin.event_record(d.queue, before));
    OK(d.plugin.event_record(d.queue, behind));
    OK(d.plugin.fill(d.queue, at, ~0u, 4, 64)); /* enqueued, and then it failed */

    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_INTERNAL);
    ck_assert_uint_eq(d.plugin.queue_status(d.queue, text, sizeof text), CEK_INTERNAL);
    ck_assert_str_eq(text, "fill: simulated failure of sim:0 by work in a queue");
    ck_assert_uint_eq(d.plugin.fill(d.queue, at, 0, 4, 64), CEK_INTERNAL);
    ck_assert_uint_eq(d.plugin.event_record(d.queue, behind), CEK_INTERNAL);
    OK(d.plugin.event_query(before)); /* recorded in front of the failure */
    ck_assert_uint_eq(d.plugin.event_query(behind), CEK_INTERNAL);
    ck_assert_uint_eq(d.plugin.event_sync(behind, 0), CEK_INTERNAL);
    ck_assert_uint_eq(d.plugin.event_status(behind, text, sizeof text), CEK_INTERNAL);
    ck_assert_str_eq(text, "fill: simulated failure of sim:0 by work in a queue");

    OK(d.plugin.event_wait(waiter, before));
    OK(d.plugin.fill(waiter, at, 0, 4, 64));
    OK(d.plugin.event_wait(waiter, behind));
    ck_assert_uint_eq(d.plugin.queue_sync(waiter, CEK_FOREVER), CEK_INTERNAL);
    ck_assert_uint_eq(d.plugin.fill(waiter, at, 0, 4, 64), CEK_INTERNAL);
    OK(d.plugin.device_status(d.dev, NULL, 0));

    d.plugin.queue_destroy(waiter);
    d.plugin.event_destroy(before);
    d.plugin.event_destroy(behind);
    d.plugin.mem_free(mem);
    door_close(&d);
}
END_TEST

START_TEST(a_failure_may_last_and_strikes_the_device_that_it_names)
{
    static const char *const options[] = { "sim_inner", "reference", "sim_faults",
                                           "unsupported@mem_alloc#2+/1,out_of_memory@make#3/0", NULL };
    const cek_mem_desc desc = { .size = sizeof desc, .bytes = 64 };
    cek_dev *other;
    cek_mem *mem;
    with(options); /* device_open and queue_create on sim:0 */
    ck_assert_uint_eq(d.plugin.mem_alloc(d.dev, &desc, &mem), CEK_OUT_OF_MEMORY);
    d.plugin.mem_free(door_mem(&d, 64));
    OK(d.plugin.device_open(d.instance, 1, NULL, &other));
    for (int i = 1; i <= 4; i++) {
        ck_assert_uint_eq(d.plugin.mem_alloc(other, &desc, &mem), i == 1 ? CEK_OK : CEK_UNSUPPORTED);
        d.plugin.mem_free(mem);
    }
    ck_assert_str_eq(d.text, "mem_alloc: simulated failure of sim:1");
    d.plugin.device_close(other);
    door_close(&d);
}
END_TEST

START_TEST(a_call_that_fails_by_itself_leaves_its_queue_usable)
{
    static const char *const options[] = { "sim_inner", "reference", "sim_faults", "internal@enqueue#2,internal@wait",
                                           NULL };
    char text[64];
    with(options);
    cek_mem *mem = door_mem(&d, 64);
    int32_t value[2] = { 1, 2 };
    OK(d.plugin.upload(d.queue, (cek_ref){ mem, 0 }, value, 8));
    ck_assert_uint_eq(d.plugin.fill(d.queue, (cek_ref){ mem, 0 }, 7, 4, 8), CEK_INTERNAL);
    OK(d.plugin.download(d.queue, value, (cek_ref){ mem, 0 }, 8));
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_INTERNAL);
    OK(d.plugin.queue_sync(d.queue, CEK_FOREVER));
    OK(d.plugin.queue_status(d.queue, text, sizeof text));
    ck_assert(value[0] == 1 && value[1] == 2); /* nothing was enqueued by the call that failed */
    d.plugin.mem_free(mem);
    door_close(&d);
}
END_TEST

START_TEST(work_that_loses_the_device_is_seen_after_the_call)
{
    static const char *const options[] = { "sim_inner", "reference", "sim_faults", "later_device_lost@fill", NULL };
    char text[128];
    with(options);
    cek_mem *mem = door_mem(&d, 64);
    OK(d.plugin.fill(d.queue, (cek_ref){ mem, 0 }, 7, 4, 8));
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.device_status(d.dev, text, sizeof text), CEK_DEVICE_LOST);
    ck_assert_str_eq(text, "fill: simulated loss of sim:0 by work in a queue");
    d.plugin.mem_free(mem);
    door_close(&d);
}
END_TEST

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

START_TEST(what_hangs_ends_at_the_deadline_of_whoever_waits)
{
    static const char *const options[] = { "sim_inner", "reference", "sim_faults", "hang@fill#2", NULL };
    enum { DEADLINE_MS = 30 };
    const cek_queue_desc desc = { .size = sizeof desc, .deadline_ns = DEADLINE_MS * 1000000 };
    cek_queue *stuck, *waiter, *free_queue;
    cek_event *before, *behind;
    char text[256];
    with(options);
    cek_mem *mem = door_mem(&d, 64);
    const cek_ref at = { mem, 0 };
    int32_t value = 0;
    OK(d.plugin.queue_create(d.dev, &desc, &stuck));
    OK(d.plugin.queue_create(d.dev, &desc, &waiter));
    OK(d.plugin.queue_create(d.dev, &desc, &free_queue));
    OK(d.plugin.event_create(d.dev, NULL, &before));
    OK(d.plugin.event_create(d.dev, NULL, &behind));
    OK(d.plugin.fill(stuck, at, 1, 4, 64));
    OK(d.plugin.event_record(stuck, before));
    OK(d.plugin.fill(stuck, at, 2, 4, 64));
    OK(d.plugin.fill(stuck, at, 3, 4, 64)); /* is taken, and waits for ever */
    OK(d.plugin.event_record(stuck, behind));

    OK(d.plugin.event_sync(before, 0));
    ck_assert_uint_eq(d.plugin.event_query(behind), CEK_NOT_READY);
    ck_assert_uint_eq(d.plugin.event_status(behind, text, sizeof text), CEK_NOT_READY);
    uint64_t start = now_ms();
    ck_assert_uint_eq(d.plugin.queue_sync(stuck, 0), CEK_TIMEOUT);
    ck_assert_uint_eq(d.plugin.queue_sync(stuck, DEADLINE_MS * 1000000), CEK_TIMEOUT);
    ck_assert_uint_eq(d.plugin.event_sync(behind, DEADLINE_MS * 1000000), CEK_TIMEOUT);
    ck_assert_uint_ge(now_ms() - start, 2 * DEADLINE_MS - 2);
    OK(d.plugin.queue_status(stuck, NULL, 0));
    OK(d.plugin.event_wait(waiter, behind));
    OK(d.plugin.fill(waiter, at, 4, 4, 64));
    ck_assert_uint_eq(d.plugin.queue_sync(waiter, 0), CEK_TIMEOUT);

    /* Other queues go on, and nothing behind the hang was done. */
    OK(d.plugin.download(free_queue, &value, at, 4));
    OK(d.plugin.queue_sync(free_queue, CEK_FOREVER));
    ck_assert_int_eq(value, 1);

    OK(d.plugin.device_status(d.dev, NULL, 0));
    start = now_ms();
    d.plugin.queue_destroy(stuck); /* at its deadline the device is lost */
    ck_assert_uint_ge(now_ms() - start, DEADLINE_MS - 1);
    ck_assert_uint_eq(d.plugin.device_status(d.dev, text, sizeof text), CEK_DEVICE_LOST);
    ck_assert_str_eq(text, "queue_destroy: the work of a queue of sim:0 did not end in 30 ms");
    ck_assert_uint_eq(d.plugin.event_query(behind), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.fill(free_queue, at, 0, 4, 64), CEK_DEVICE_LOST);
    start = now_ms();
    d.plugin.queue_destroy(waiter); /* a lost device is not waited for */
    ck_assert_uint_lt(now_ms() - start, 1000);
    d.plugin.queue_destroy(free_queue);
    d.plugin.event_destroy(before);
    d.plugin.event_destroy(behind);
    d.plugin.mem_free(mem);
    door_close(&d);
}
END_TEST

/* A wait or call without a deadline that hangs: the watchdog loses the device. */
START_TEST(what_hangs_without_a_deadline_is_ended_by_the_watchdog)
{
    static const char *const calls[] = { "mem_alloc", "queue_sync", "event_sync", "fill", "event_query" };
    char fault[64];
    snprintf(fault, sizeof fault, "hang@%s", calls[_i]);
    const char *const options[] = { "sim_inner", "reference", "sim_faults", fault, "sim_watchdog_ms", "20", NULL };
    cek_mem *mem = NULL;
    cek_event *event;
    char text[128];
    with(options);
    const cek_mem_desc desc = { .size = sizeof desc, .bytes = 64 };
    OK(d.plugin.event_create(d.dev, NULL, &event));
    cek_status st;
    (void)((st = d.plugin.mem_alloc(d.dev, &desc, &mem)) ||
           (st = d.plugin.fill(d.queue, (cek_ref){ mem, 0 }, 1, 4, 64)) ||
           (st = d.plugin.event_record(d.queue, event)) || (st = d.plugin.queue_sync(d.queue, CEK_FOREVER)) ||
           (st = d.plugin.event_sync(event, CEK_FOREVER)) || (st = d.plugin.event_query(event)));
    ck_assert_uint_eq(st, CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.device_status(d.dev, text, sizeof text), CEK_DEVICE_LOST);
    ck_assert_str_eq(text, "the watchdog ended a simulated hang of sim:0 after 20 ms");
    d.plugin.event_destroy(event);
    d.plugin.mem_free(mem);
    door_close(&d);
}
END_TEST

/* Its caller takes the work for done when the call returns. */
START_TEST(work_that_hangs_on_an_inline_device_keeps_its_caller)
{
    static const char *const options[] = { "sim_inner", "reference",       "sim_faults", "hang@fill", "sim_inline",
                                           "1",         "sim_watchdog_ms", "20",         NULL };
    with(options);
    cek_mem *mem = door_mem(&d, 64);
    ck_assert_uint_eq(d.plugin.fill(d.queue, (cek_ref){ mem, 0 }, 1, 4, 64), CEK_DEVICE_LOST);
    ck_assert(strstr(d.text, "watchdog") != NULL);
    d.plugin.mem_free(mem);
    door_close(&d);
}
END_TEST

static void *sync_for_ever(void *status)
{
    *(cek_status *)status = d.plugin.queue_sync(d.queue, CEK_FOREVER);
    return NULL;
}

START_TEST(a_loss_ends_the_waits_of_other_threads)
{
    static const char *const options[] = {
        "sim_inner",       "reference", "sim_faults", "hang@queue_sync,device_lost@mem_alloc",
        "sim_watchdog_ms", "100000",    NULL
    };
    const cek_mem_desc desc = { .size = sizeof desc, .bytes = 64 };
    pthread_t thread;
    cek_status st = CEK_OK;
    cek_mem *mem;
    with(options);
    ck_assert_int_eq(pthread_create(&thread, NULL, sync_for_ever, &st), 0);
    nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    ck_assert_uint_eq(d.plugin.mem_alloc(d.dev, &desc, &mem), CEK_DEVICE_LOST);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_eq(st, CEK_DEVICE_LOST);
    door_close(&d);
}
END_TEST

/* Whatever call is the one that fails, an ordinary use of a device ends with that failure or
 * without one, and nothing leaks (the sanitizer runs of the tests look for that). */
START_TEST(any_call_may_fail)
{
    static const char *const statuses[] = { "internal", "out_of_memory", "device_lost" };
    static const cek_status codes[] = { CEK_INTERNAL, CEK_OUT_OF_MEMORY, CEK_DEVICE_LOST };
    int failures = 0;
    for (int n = 1; n < 40; n++) {
        char fault[64];
        snprintf(fault, sizeof fault, "%s@any#%d", statuses[_i], n);
        const char *const options[] = { "sim_inner", "reference", "sim_faults", fault, NULL };
        cek_queue *queue = NULL;
        cek_event *event = NULL;
        cek_mem *mem = NULL;
        cek_dev *dev = NULL;
        const cek_mem_desc desc = { .size = sizeof desc, .bytes = 64 };
        cek_status st;
        float value = 1;
        door_load(&d, "sim", options);
        (void)((st = d.plugin.device_open(d.instance, 0, NULL, &dev)) ||
               (st = d.plugin.queue_create(dev, NULL, &queue)) || (st = d.plugin.mem_alloc(dev, &desc, &mem)) ||
               (st = d.plugin.event_create(dev, NULL, &event)) ||
               (st = d.plugin.upload(queue, (cek_ref){ mem, 0 }, &value, 4)) ||
               (st = d.plugin.event_record(queue, event)) || (st = d.plugin.event_wait(queue, event)) ||
               (st = d.plugin.download(queue, &value, (cek_ref){ mem, 0 }, 4)) ||
               (st = d.plugin.queue_sync(queue, CEK_FOREVER)) || (st = d.plugin.event_sync(event, CEK_FOREVER)));
        ck_assert_msg(st == CEK_OK || st == codes[_i], "call %d: %u", n, st);
        failures += st != CEK_OK;
        if (dev) {
            d.plugin.event_destroy(event);
            d.plugin.mem_free(mem);
            d.plugin.queue_destroy(queue);
            d.plugin.device_close(dev);
        }
        d.plugin.destroy(d.instance);
    }
    ck_assert_int_eq(failures, 10); /* the ten calls above */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim_faults");
    TCase *cases = tcase_create("failures on demand");
    tcase_add_test(cases, the_nth_allocation_fails_once);
    tcase_add_test(cases, a_failure_may_last_and_strikes_the_device_that_it_names);
    tcase_add_test(cases, a_call_that_fails_by_itself_leaves_its_queue_usable);
    tcase_add_test(cases, a_lost_device_stays_lost_and_lets_go_of_everything);
    tcase_add_test(cases, failed_work_sticks_to_its_queue_its_events_and_whoever_waits);
    tcase_add_test(cases, work_that_loses_the_device_is_seen_after_the_call);
    tcase_add_test(cases, what_hangs_ends_at_the_deadline_of_whoever_waits);
    tcase_add_loop_test(cases, what_hangs_without_a_deadline_is_ended_by_the_watchdog, 0, 5);
    tcase_add_test(cases, work_that_hangs_on_an_inline_device_keeps_its_caller);
    tcase_add_test(cases, a_loss_ends_the_waits_of_other_threads);
    tcase_add_loop_test(cases, any_call_may_fail, 0, 3);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
