/* SPDX-License-Identifier: MIT
 *
 * sim_late.c - sim_work=late: commands do their work when their time has passed, so a missing wait between two queues
 * gives wrong bytes, whatever the order of the calls.
 */
#include <stdbool.h>

#include "tests/door/door.h"

#define OK(call) ck_assert_msg((call) == CEK_OK, "%s: %s", #call, d.text)

/* A byte is a nanosecond. */
static const char *const late[] = { "sim_inner", "reference", "sim_bandwidth",  "1G", "sim_link",      "1G",
                                    "sim_work",  "late",      "sim_latency_ns", "0",  "sim_launch_ns", "0",
                                    NULL };
static const char *const all[] = { "sim_inner",      "reference", "sim_bandwidth", "1G", "sim_link", "1G",
                                   "sim_latency_ns", "0",         "sim_launch_ns", "0",  NULL };

enum { BYTES = 4000, BEFORE = 1, AFTER = 2 };

static door d;
static cek_queue *other;
static cek_event *event;
static cek_mem *mem;
static unsigned char seen[BYTES];

static void fill(cek_queue *queue, uint32_t byte, uint64_t bytes)
{
    OK(d.plugin.fill(queue, (cek_ref){ mem, 0 }, byte, 1, bytes));
}

static void open_all(const char *const *options)
{
    door_open(&d, "sim", options);
    OK(d.plugin.queue_create(d.dev, NULL, &other));
    OK(d.plugin.event_create(d.dev, NULL, &event));
    mem = door_mem(&d, BYTES);
    fill(d.queue, BEFORE, BYTES);
    OK(d.plugin.queue_sync(d.queue, CEK_FOREVER));
}

static void close_all(cek_status ends)
{
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), ends);
    ck_assert_uint_eq(d.plugin.queue_sync(other, CEK_FOREVER), ends);
    d.plugin.mem_free(mem);
    d.plugin.event_destroy(event);
    d.plugin.queue_destroy(other);
    door_close(&d);
}

/* What the other queue does goes behind all that is in the first, or does not. */
static void order(bool waits)
{
    OK(d.plugin.event_record(d.queue, event));
    if (waits)
        OK(d.plugin.event_wait(other, event));
}

static int read_behind_a_write(const char *const *options, bool waits)
{
    open_all(options);
    fill(d.queue, AFTER, BYTES);
    order(waits);
    OK(d.plugin.download(other, seen, (cek_ref){ mem, 0 }, 1));
    close_all(CEK_OK);
    return seen[0];
}

START_TEST(who_does_not_wait_for_a_write_reads_what_was_there_before)
{
    ck_assert_int_eq(read_behind_a_write(late, true), AFTER);
    ck_assert_int_eq(read_behind_a_write(late, false), BEFORE);
    ck_assert_int_eq(read_behind_a_write(all, false), AFTER); /* which nobody would notice */
}
END_TEST

static int write_behind_a_read(const char *const *options, bool waits)
{
    open_all(options);
    OK(d.plugin.download(d.queue, seen, (cek_ref){ mem, 0 }, BYTES));
    order(waits);
    fill(other, AFTER, 1);
    close_all(CEK_OK);
    return seen[0];
}

START_TEST(who_does_not_wait_for_a_read_spoils_it)
{
    ck_assert_int_eq(write_behind_a_read(late, true), BEFORE);
    ck_assert_int_eq(write_behind_a_read(late, false), AFTER);
    ck_assert_int_eq(write_behind_a_read(all, false), BEFORE);
}
END_TEST

START_TEST(what_an_update_was_given_may_change_at_once)
{
    unsigned char bytes[4] = { AFTER };
    open_all(late);
    OK(d.plugin.update(d.queue, (cek_ref){ mem, 0 }, bytes, sizeof bytes));
    bytes[0] = BEFORE;
    OK(d.plugin.download(d.queue, seen, (cek_ref){ mem, 0 }, 1));
    close_all(CEK_OK);
    ck_assert_int_eq(seen[0], AFTER);
}
END_TEST

START_TEST(what_the_plugin_inside_refuses_loses_the_device_when_its_time_has_passed)
{
    open_all(late);
    OK(d.plugin.upload(d.queue, (cek_ref){ mem, 1 }, seen, BYTES));
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_DEVICE_LOST);
    ck_assert_msg(strstr(d.text, "upload: status") != NULL, "%s", d.text);
    close_all(CEK_DEVICE_LOST);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim_late");
    TCase *cases = tcase_create("sim_late");
    tcase_add_test(cases, who_does_not_wait_for_a_write_reads_what_was_there_before);
    tcase_add_test(cases, who_does_not_wait_for_a_read_spoils_it);
    tcase_add_test(cases, what_an_update_was_given_may_change_at_once);
    tcase_add_test(cases, what_the_plugin_inside_refuses_loses_the_device_when_its_time_has_passed);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
