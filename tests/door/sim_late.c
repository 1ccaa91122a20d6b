/* SPDX-License-Identifier: MIT
 *
 * sim_late.c - sim_work=late: commands do their work when their time has passed, so a missing wait between two queues
 * gives wrong bytes, whatever the order of the calls, and transfers lose the device or spoil what they write
 * whichever of the two is the longer.
 */
#include <stdbool.h>

#include "tests/door/door.h"

#define OK(call) ck_assert_msg((call) == CEK_OK, "%s: %s", #call, d.text)

/* A byte is a nanosecond. */
static const char *const late[] = {
    "sim_inner",      "reference", "sim_bandwidth", "1G", "sim_link",    "1G", "sim_work", "late",
    "sim_latency_ns", "0",         "sim_launch_ns", "0",  "sim_devices", "2",  NULL
};
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

enum { SHORT = 1, LOST = -1 };

/* What was read, or LOST, and then why in d.text. */
static int read_behind_a_write(const char *const *options, bool waits, uint64_t written, uint64_t read)
{
    open_all(options);
    fill(d.queue, AFTER, written);
    order(waits);
    OK(d.plugin.download(other, seen, (cek_ref){ mem, 0 }, read));
    const bool lost = d.plugin.queue_sync(other, CEK_FOREVER) == CEK_DEVICE_LOST;
    close_all(lost ? CEK_DEVICE_LOST : CEK_OK);
    return lost ? LOST : seen[0];
}

START_TEST(who_does_not_wait_for_a_write_reads_what_was_there_before)
{
    ck_assert_int_eq(read_behind_a_write(late, true, BYTES, SHORT), AFTER);
    ck_assert_int_eq(read_behind_a_write(late, true, SHORT, BYTES), AFTER);
    ck_assert_int_eq(read_behind_a_write(all, false, BYTES, SHORT), AFTER); /* which nobody would notice */
    /* While a fill lasts there is garbage. Where it is over when the read ends, that saw two sources. */
    ck_assert_int_eq(read_behind_a_write(late, false, BYTES, SHORT), 0xff);
    ck_assert_int_eq(read_behind_a_write(late, false, SHORT, BYTES), LOST);
    ck_assert_msg(strstr(d.text, "download: its source was written to") != NULL, "%s", d.text);
}
END_TEST

static int write_behind_a_read(const char *const *options, bool waits, uint64_t read, uint64_t written)
{
    open_all(options);
    OK(d.plugin.download(d.queue, seen, (cek_ref){ mem, 0 }, read));
    order(waits);
    fill(other, AFTER, written);
    const bool lost = d.plugin.queue_sync(d.queue, CEK_FOREVER) == CEK_DEVICE_LOST;
    close_all(lost ? CEK_DEVICE_LOST : CEK_OK);
    return lost ? LOST : seen[0];
}

START_TEST(who_does_not_wait_for_a_read_spoils_it)
{
    ck_assert_int_eq(write_behind_a_read(late, true, BYTES, SHORT), BEFORE);
    ck_assert_int_eq(write_behind_a_read(late, true, SHORT, BYTES), BEFORE);
    ck_assert_int_eq(write_behind_a_read(late, false, BYTES, SHORT), LOST);
    ck_assert_int_eq(write_behind_a_read(late, false, SHORT, BYTES), LOST);
    ck_assert_int_eq(write_behind_a_read(all, false, BYTES, SHORT), BEFORE);
}
END_TEST

START_TEST(who_does_not_wait_for_a_download_finds_garbage)
{
    memset(seen, BEFORE, sizeof seen);
    open_all(late);
    cek_mem *apart = door_mem(&d, SHORT);
    OK(d.plugin.download(d.queue, seen, (cek_ref){ mem, 0 }, BYTES));
    OK(d.plugin.fill(other, (cek_ref){ apart, 0 }, BEFORE, 1, SHORT)); /* time passes */
    ck_assert_uint_eq(d.plugin.queue_sync(other, CEK_FOREVER), CEK_OK);
    ck_assert_int_ne(seen[0], BEFORE);
    d.plugin.mem_free(apart);
    close_all(CEK_OK);
    ck_assert_int_eq(seen[0], BEFORE);
}
END_TEST

START_TEST(what_cannot_be_waited_for_is_refused_late_as_well)
{
    cek_dev *second;
    cek_event *elsewhere;
    open_all(late);
    ck_assert_uint_eq(d.plugin.event_wait(other, event), CEK_INVALID);
    ck_assert_msg(strstr(d.text, "never recorded") != NULL, "%s", d.text);
    OK(d.plugin.device_open(d.instance, 1, NULL, &second));
    OK(d.plugin.event_create(second, NULL, &elsewhere));
    ck_assert_uint_eq(d.plugin.event_wait(other, elsewhere), CEK_UNSUPPORTED);
    d.plugin.event_destroy(elsewhere);
    d.plugin.device_close(second);
    close_all(CEK_OK);
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

START_TEST(a_lost_device_does_nothing_more)
{
    enum { PLACES = sizeof late / sizeof *late };
    const char *options[PLACES + 2] = { "sim_faults", "device_lost@device_memory" };
    const cek_mem_desc desc = { .size = sizeof desc, .bytes = 2 * BYTES };
    cek_dev *second;
    cek_queue *clock;
    cek_mem *elsewhere;
    uint64_t bytes;
    memcpy(options + 2, late, sizeof late);
    memset(seen, 0, sizeof seen);
    open_all(options);
    OK(d.plugin.device_open(d.instance, 1, NULL, &second));
    OK(d.plugin.queue_create(second, NULL, &clock));
    OK(d.plugin.mem_alloc(second, &desc, &elsewhere));
    OK(d.plugin.download(d.queue, seen, (cek_ref){ mem, 0 }, BYTES));
    ck_assert_uint_eq(d.plugin.device_memory(d.dev, &bytes, &bytes), CEK_DEVICE_LOST);
    OK(d.plugin.fill(clock, (cek_ref){ elsewhere, 0 }, AFTER, 1, 2 * BYTES)); /* time passes */
    OK(d.plugin.queue_sync(clock, CEK_FOREVER));
    d.plugin.mem_free(elsewhere);
    d.plugin.queue_destroy(clock);
    d.plugin.device_close(second);
    close_all(CEK_DEVICE_LOST);
    for (int i = 0; i < BYTES; i++)
        ck_assert_int_eq(seen[i], 0);
}
END_TEST

START_TEST(a_queue_that_failed_is_waited_for_all_the_same)
{
    enum { PLACES = sizeof late / sizeof *late };
    const char *options[PLACES + 2] = { "sim_faults", "later_internal@download#2" };
    memcpy(options + 2, late, sizeof late);
    memset(seen, 0, sizeof seen);
    open_all(options);
    OK(d.plugin.download(d.queue, seen, (cek_ref){ mem, 0 }, BYTES));
    OK(d.plugin.download(d.queue, seen, (cek_ref){ mem, 0 }, SHORT));
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, 0), CEK_TIMEOUT);
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, CEK_FOREVER), CEK_INTERNAL);
    ck_assert_int_eq(seen[BYTES - 1], BEFORE);
    ck_assert_uint_eq(d.plugin.queue_sync(d.queue, 0), CEK_INTERNAL);
    d.plugin.mem_free(mem);
    d.plugin.event_destroy(event);
    d.plugin.queue_destroy(other);
    door_close(&d);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim_late");
    TCase *cases = tcase_create("sim_late");
    tcase_add_test(cases, who_does_not_wait_for_a_write_reads_what_was_there_before);
    tcase_add_test(cases, who_does_not_wait_for_a_read_spoils_it);
    tcase_add_test(cases, who_does_not_wait_for_a_download_finds_garbage);
    tcase_add_test(cases, what_cannot_be_waited_for_is_refused_late_as_well);
    tcase_add_test(cases, what_an_update_was_given_may_change_at_once);
    tcase_add_test(cases, what_the_plugin_inside_refuses_loses_the_device_when_its_time_has_passed);
    tcase_add_test(cases, a_lost_device_does_nothing_more);
    tcase_add_test(cases, a_queue_that_failed_is_waited_for_all_the_same);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
