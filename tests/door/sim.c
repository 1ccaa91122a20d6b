/* SPDX-License-Identifier: MIT
 *
 * sim.c - the simulator does what it is told: devices, memory, and failures of each kind, and the contract of section 1 of
 * plugin.h holds when they strike.
 */
#include "tests/door/door.h"

#define OK(call) ck_assert_msg((call) == CEK_OK, "%s: %s", #call, d.text)

static door d;

static void with(const char *const *options)
{
    door_open(&d, "sim", options);
}

static void refused(const char *key, const char *value)
{
    const char *const options[] = { "sim_plugin", "reference", key, value, NULL };
    void *so;
    const cek_plugin *table = door_table(&so, "sim");
    d = (door){ .options = options };
    d.host = (cek_host){ .size = sizeof d.host, .abi = CEK_ABI, .user = &d, .fail = door_failed, .option = door_option };
    ck_assert_uint_eq(table->create(&d.host, &d.instance), CEK_INVALID);
    ck_assert_ptr_null(d.instance);
    ck_assert_msg(strstr(d.text, value) != NULL, "%s=%s: %s", key, value, d.text);
}

START_TEST(wrong_settings_are_refused_by_name)
{
    refused("sim_devices", "0");
    refused("sim_devices", "65");
    refused("sim_devices", "two");
    refused("sim_memory", "1G");
    refused("sim_fail_at", "0");
    refused("sim_fail_device", "2");
    refused("sim_fail_status", "broken");
}
END_TEST

START_TEST(an_inner_plugin_that_is_not_there_is_named)
{
    const char *const options[] = { "sim_plugin", "no_such_plugin", NULL };
    void *so;
    const cek_plugin *table = door_table(&so, "sim");
    d = (door){ .options = options };
    d.host = (cek_host){ .size = sizeof d.host, .abi = CEK_ABI, .user = &d, .fail = door_failed, .option = door_option };
    ck_assert_uint_eq(table->create(&d.host, &d.instance), CEK_INVALID);
    ck_assert(strstr(d.text, "no_such_plugin.so") != NULL);
}
END_TEST

START_TEST(there_are_as_many_devices_as_were_asked_for)
{
    static const char *const options[] = { "sim_plugin", "reference", "sim_devices", "5", NULL };
    with(options);
    ck_assert_uint_eq(d.plugin.device_count(d.instance), 5);
    cek_dev *last, *none;
    OK(d.plugin.device_open(d.instance, 4, NULL, &last));
    ck_assert_uint_eq(d.plugin.device_open(d.instance, 5, NULL, &none), CEK_INVALID);
    ck_assert_ptr_null(none);
    d.plugin.device_close(last);
    door_close(&d);
}
END_TEST

START_TEST(a_device_has_the_memory_that_it_was_given)
{
    static const char *const options[] = { "sim_plugin", "reference", "sim_memory", "1000", NULL };
    with(options);
    cek_mem *a = door_mem(&d, 600), *b;
    uint64_t free_bytes, total_bytes;
    OK(d.plugin.device_memory(d.dev, &free_bytes, &total_bytes));
    ck_assert_uint_eq(free_bytes, 400);
    ck_assert_uint_eq(total_bytes, 1000);
    const cek_mem_desc desc = { .size = sizeof desc, .bytes = 401 };
    ck_assert_uint_eq(d.plugin.mem_alloc(d.dev, &desc, &b), CEK_OUT_OF_MEMORY);
    ck_assert_ptr_null(b);
    ck_assert_str_eq(d.text, "mem_alloc: 401 bytes, but 400 of 1000 are free on sim:0");
    b = door_mem(&d, 400);
    d.plugin.mem_free(a);
    a = door_mem(&d, 600);

    /* Another handle of the same device shares its memory, another device does not. */
    cek_dev *same, *other;
    cek_mem *c;
    OK(d.plugin.device_open(d.instance, 0, NULL, &same));
    OK(d.plugin.device_open(d.instance, 1, NULL, &other));
    ck_assert_uint_eq(d.plugin.mem_alloc(same, &desc, &c), CEK_OUT_OF_MEMORY);
    OK(d.plugin.mem_alloc(other, &desc, &c));
    d.plugin.mem_free(a);
    d.plugin.mem_free(b);
    d.plugin.mem_free(c);
    cek_device_info info = { .size = sizeof info };
    OK(d.plugin.device_info(d.instance, 0, &info));
    ck_assert_uint_eq(info.total_bytes, 1000);
    ck_assert_uint_eq(info.free_bytes, 1000);
    d.plugin.device_close(same);
    d.plugin.device_close(other);
    door_close(&d);
}
END_TEST

START_TEST(the_nth_allocation_fails_once)
{
    static const char *const options[] = { "sim_plugin", "reference", "sim_fail_call", "mem_alloc", "sim_fail_at", "3",
                                           "sim_fail_status", "out_of_memory", NULL };
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
    static const char *const options[] = { "sim_plugin", "reference", "sim_fail_call", "upload", "sim_fail_at", "2",
                                           "sim_fail_status", "device_lost", "sim_fail_device", "1", NULL };
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
    ck_assert_str_eq(text, "simulated loss");
    ck_assert_uint_eq(d.plugin.upload(queue, (cek_ref){ mem, 0 }, &byte, 1), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.queue_sync(queue, CEK_FOREVER), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.queue_status(queue, NULL, 0), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.event_query(event), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.event_sync(event, 0), CEK_DEVICE_LOST);
    ck_assert_uint_eq(d.plugin.event_status(event, NULL, 0), CEK_DEVICE_LOST);
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
    static const char *const options[] = { "sim_plugin", "reference", "sim_fail_call", "fill", "sim_fail_at", "2", NULL };
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
    OK(d.plugin.fill(d.queue, at, ~0u, 4, 64));  /* enqueued, and then it failed */

    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_INTERNAL);
    ck_assert_uint_eq(d.plugin.queue_status(d.queue, text, sizeof text), CEK_INTERNAL);
    ck_assert_str_eq(text, "fill: simulated failure of sim:0");
    ck_assert_uint_eq(d.plugin.fill(d.queue, at, 0, 4, 64), CEK_INTERNAL);
    ck_assert_uint_eq(d.plugin.event_record(d.queue, behind), CEK_INTERNAL);
    OK(d.plugin.event_query(before));  /* recorded in front of the failure */
    ck_assert_uint_eq(d.plugin.event_query(behind), CEK_INTERNAL);
    ck_assert_uint_eq(d.plugin.event_sync(behind, 0), CEK_INTERNAL);
    ck_assert_uint_eq(d.plugin.event_status(behind, text, sizeof text), CEK_INTERNAL);
    ck_assert_str_eq(text, "fill: simulated failure of sim:0");

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

/* Whatever call is the one that fails, an ordinary use of a device ends with that failure or without one, and nothing leaks
 * (the sanitizer runs of the tests look for that). */
START_TEST(any_call_may_fail)
{
    static const char *const statuses[] = { "internal", "out_of_memory", "device_lost" };
    static const cek_status codes[] = { CEK_INTERNAL, CEK_OUT_OF_MEMORY, CEK_DEVICE_LOST };
    int failures = 0;
    for (int n = 1; n < 40; n++) {
        char number[16];
        snprintf(number, sizeof number, "%d", n);
        const char *const options[] = { "sim_plugin", "reference", "sim_fail_at", number, "sim_fail_status", statuses[_i], NULL };
        cek_queue *queue = NULL;
        cek_event *event = NULL;
        cek_mem *mem = NULL;
        cek_dev *dev = NULL;
        const cek_mem_desc desc = { .size = sizeof desc, .bytes = 64 };
        cek_status st;
        float value = 1;
        door_load(&d, "sim", options);
        (void)((st = d.plugin.device_open(d.instance, 0, NULL, &dev)) || (st = d.plugin.queue_create(dev, NULL, &queue)) ||
            (st = d.plugin.mem_alloc(dev, &desc, &mem)) || (st = d.plugin.event_create(dev, NULL, &event)) ||
            (st = d.plugin.upload(queue, (cek_ref){ mem, 0 }, &value, 4)) || (st = d.plugin.event_record(queue, event)) ||
            (st = d.plugin.event_wait(queue, event)) ||
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
    ck_assert_int_eq(failures, 10);  /* the ten calls above */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim");
    TCase *cases = tcase_create("failures on demand");
    tcase_add_test(cases, wrong_settings_are_refused_by_name);
    tcase_add_test(cases, an_inner_plugin_that_is_not_there_is_named);
    tcase_add_test(cases, there_are_as_many_devices_as_were_asked_for);
    tcase_add_test(cases, a_device_has_the_memory_that_it_was_given);
    tcase_add_test(cases, the_nth_allocation_fails_once);
    tcase_add_test(cases, a_lost_device_stays_lost_and_lets_go_of_everything);
    tcase_add_test(cases, failed_work_sticks_to_its_queue_its_events_and_whoever_waits);
    tcase_add_loop_test(cases, any_call_may_fail, 0, 3);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
