/* SPDX-License-Identifier: MIT
 *
 * semantics.c - devices, memory, queues and events as plugin.h promises them, driven through the
 * table of a plugin loaded by bare dlopen: the reference, and the reference inside the simulator.
 * Operations: semantics_ops.c.
 */
#include <pthread.h>

#include "tests/door/semantics.h"

/* --- plugin and devices ----------------------------------------------------------------------- */

START_TEST(the_query_refuses_another_major_and_finds_the_symbol_alone)
{
    void *so;
    door_table(&so, plugins[_i]);
    cek_plugin_query_fn query = (cek_plugin_query_fn)dlsym(so, CEK_PLUGIN_SYMBOL);
    ck_assert_ptr_null(query((CEK_ABI_MAJOR + 1) << 16));
    ck_assert_ptr_nonnull(query(CEK_ABI + 7)); /* a newer minor */
    ck_assert_ptr_null(dlsym(so, "cek__host_fail"));
}
END_TEST

START_TEST(devices_say_what_they_are)
{
    start(_i);
    cek_device_info info = { .size = sizeof info };
    OK(d.plugin.device_info(d.instance, 0, &info));
    ck_assert_uint_eq(info.size, sizeof info);
    ck_assert_uint_eq(info.kind, CEK_KIND_CPU);
    ck_assert(info.flags & CEK_DEVICE_ONLY_WHEN_NAMED);
    /* it stands for a device beside the host */
    ck_assert_int_eq(!(info.flags & CEK_DEVICE_INLINE), !strcmp(plugins[_i], "sim"));
    ck_assert(info.types >> CEK_F64 & 1);
    ck_assert_uint_gt(info.total_bytes, 1 << 20);
    ck_assert(info.name[0] && info.numeric_id && info.processor[0]);

    REFUSED(CEK_INVALID, "device", d.plugin.device_info(d.instance, 99, &info));
    cek_dev *dev;
    REFUSED(CEK_INVALID, "device", d.plugin.device_open(d.instance, 99, NULL, &dev));
    ck_assert_ptr_null(dev);
    const cek_device_options options = { .size = sizeof options, .flags = 1u << 31 };
    REFUSED(CEK_UNSUPPORTED, "flags", d.plugin.device_open(d.instance, 0, &options, &dev));
    info.size = 8;
    REFUSED(CEK_INVALID, "size", d.plugin.device_info(d.instance, 0, &info));

    uint64_t free_bytes, total_bytes;
    char text[16] = "x";
    OK(d.plugin.device_memory(d.dev, &free_bytes, &total_bytes));
    ck_assert_uint_le(free_bytes, total_bytes);
    OK(d.plugin.device_status(d.dev, text, sizeof text));
    ck_assert_str_eq(text, "");
    door_close(&d);
}
END_TEST

START_TEST(an_instance_needs_no_host_and_two_may_live_at_once)
{
    void *so;
    const cek_plugin *table = door_table(&so, "reference");
    cek_instance *a, *b;
    ck_assert_uint_eq(table->create(NULL, &a), CEK_OK);
    ck_assert_uint_eq(table->create(NULL, &b), CEK_OK);
    ck_assert_ptr_ne(a, b);
    table->destroy(a);
    cek_dev *dev;
    ck_assert_uint_eq(table->device_open(b, 0, NULL, &dev), CEK_OK);
    cek_mem *mem;
    ck_assert_uint_eq(table->mem_alloc(dev, NULL, &mem), CEK_INVALID);
    table->device_close(dev);
    table->destroy(b);
    table->destroy(NULL);
    cek_host other = { .size = sizeof other, .abi = 2u << 16 };
    ck_assert_uint_eq(table->create(&other, &a), CEK_UNSUPPORTED);
    ck_assert_ptr_null(a);
    const struct {
        cek_host host;
        const void *newer;
    } newer = { { .size = sizeof newer, .abi = CEK_ABI + 1 }, &newer };
    ck_assert_uint_eq(table->create(&newer.host, &a), CEK_OK); /* an offer that it may leave alone */
    table->destroy(a);
}
END_TEST

/* --- memory ----------------------------------------------------------------------------------- */

START_TEST(memory_is_aligned_there_and_refused_beyond_what_is_left)
{
    start(_i);
    cek_mem *mem;
    const uint64_t sizes[] = { 1, 255, 4097, (2u << 20) - 1, 5u << 20 };
    for (int i = 0; i < 5; i++) {
        mem = door_mem(&d, sizes[i]);
        unsigned char *at = d.plugin.mem_host_ptr(mem);
        ck_assert_uint_eq((uintptr_t)at % CEK_ALIGNMENT, 0);
        memset(at, 0x5a, sizes[i]);
        d.plugin.mem_free(mem);
    }
    struct {
        cek_mem_desc desc;
        uint64_t later;
    } grown = { { .size = sizeof grown, .bytes = 64 }, 0 };
    OK(d.plugin.mem_alloc(d.dev, &grown.desc, &mem));
    d.plugin.mem_free(mem);
    grown.later = 1;
    REFUSED(CEK_UNSUPPORTED, "not zero", d.plugin.mem_alloc(d.dev, &grown.desc, &mem));
    cek_mem_desc desc = { .size = sizeof desc, .bytes = 0 };
    REFUSED(CEK_INVALID, "0 bytes", d.plugin.mem_alloc(d.dev, &desc, &mem));
    desc = (cek_mem_desc){ .size = 0, .bytes = 1 };
    REFUSED(CEK_INVALID, "size", d.plugin.mem_alloc(d.dev, &desc, &mem));
    desc = (cek_mem_desc){ .size = sizeof desc, .bytes = 1, .flags = 4 };
    REFUSED(CEK_UNSUPPORTED, "flags", d.plugin.mem_alloc(d.dev, &desc, &mem));
    /* More than the machine has: refused at once, with numbers, instead of promised. */
    uint64_t free_bytes, total_bytes;
    OK(d.plugin.device_memory(d.dev, &free_bytes, &total_bytes));
    desc = (cek_mem_desc){ .size = sizeof desc, .bytes = total_bytes };
    REFUSED(CEK_OUT_OF_MEMORY, "free", d.plugin.mem_alloc(d.dev, &desc, &mem));
    ck_assert_ptr_null(mem);
    desc.bytes = UINT64_MAX - 5;
    REFUSED(CEK_OUT_OF_MEMORY, "bytes", d.plugin.mem_alloc(d.dev, &desc, &mem));
    d.plugin.mem_free(NULL);
    door_close(&d);
}
END_TEST

START_TEST(memory_maps_once_at_a_time)
{
    start(_i);
    cek_mem *mem = door_mem(&d, 1000);
    void *at, *again;
    OK(d.plugin.mem_map(mem, CEK_MAP_READ | CEK_MAP_WRITE, &at));
    ck_assert_ptr_eq(at, d.plugin.mem_host_ptr(mem));
    REFUSED(CEK_INVALID, "mapped already", d.plugin.mem_map(mem, CEK_MAP_READ, &again));
    OK(d.plugin.mem_unmap(mem));
    REFUSED(CEK_INVALID, "not mapped", d.plugin.mem_unmap(mem));
    REFUSED(CEK_INVALID, "neither", d.plugin.mem_map(mem, 0, &at));
    REFUSED(CEK_UNSUPPORTED, "access", d.plugin.mem_map(mem, 8, &at));
    d.plugin.mem_free(mem);
    OK(d.plugin.host_alloc(d.dev, 70000, &at));
    ck_assert_uint_eq((uintptr_t)at % CEK_ALIGNMENT, 0);
    memset(at, 1, 70000);
    d.plugin.host_free(d.dev, at);
    d.plugin.host_free(d.dev, NULL);
    REFUSED(CEK_INVALID, "0 bytes", d.plugin.host_alloc(d.dev, 0, &at));
    door_close(&d);
}
END_TEST

/* --- queues ----------------------------------------------------------------------------------- */

START_TEST(bytes_move_where_they_should_and_nowhere_else)
{
    start(_i);
    unsigned char from[300], to[300];
    cek_mem *a = door_mem(&d, 300), *b = door_mem(&d, 300);
    for (int i = 0; i < 300; i++)
        from[i] = (unsigned char)(i * 7 + 1);
    OK(d.plugin.fill(d.queue, (cek_ref){ b, 0 }, 0xabcdef12, 4, 300));
    OK(d.plugin.upload(d.queue, (cek_ref){ a, 13 }, from, 200));
    OK(d.plugin.copy(d.queue, (cek_ref){ b, 5 }, (cek_ref){ a, 13 }, 200));
    OK(d.plugin.download(d.queue, to, (cek_ref){ b, 0 }, 300));
    OK(d.plugin.queue_sync(d.queue, CEK_FOREVER));
    const unsigned char pattern[] = { 0x12, 0xef, 0xcd, 0xab };
    for (int i = 0; i < 300; i++)
        ck_assert_uint_eq(to[i], i < 5 || i >= 205 ? pattern[i % 4] : from[i - 5]);

    OK(d.plugin.fill(d.queue, (cek_ref){ a, 2 }, 0xffff1234, 2, 4));
    OK(d.plugin.fill(d.queue, (cek_ref){ a, 1 }, 0x77, 1, 1));
    OK(d.plugin.update(d.queue, (cek_ref){ a, 8 }, from, 8));
    memset(from, 0, 8); /* update has copied */
    OK(d.plugin.download(d.queue, to, (cek_ref){ a, 1 }, 15));
    const unsigned char want[] = { 0x77, 0x34, 0x12, 0x34, 0x12 };
    ck_assert_mem_eq(to, want, 5);
    ck_assert_uint_eq(to[7], 1);
    ck_assert_uint_eq(to[14], 50);
    d.plugin.mem_free(a);
    d.plugin.mem_free(b);
    door_close(&d);
}
END_TEST

START_TEST(commands_out_of_bounds_are_refused_and_the_queue_stays_usable)
{
    start(_i);
    unsigned char bytes[8192] = { 0 };
    cek_mem *mem = door_mem(&d, 100), *large = door_mem(&d, 8192);
    const cek_ref start_of = { mem, 0 }, none = { NULL, 0 };
    REFUSED(CEK_INVALID, "101 bytes", d.plugin.upload(d.queue, start_of, bytes, 101));
    REFUSED(CEK_INVALID, "offset 101", d.plugin.upload(d.queue, (cek_ref){ mem, 101 }, bytes, 1));
    REFUSED(CEK_INVALID, "offset", d.plugin.download(d.queue, bytes, (cek_ref){ mem, UINT64_MAX }, 2));
    REFUSED(CEK_INVALID, "download", d.plugin.download(d.queue, bytes, (cek_ref){ mem, 50 }, UINT64_MAX - 10));
    REFUSED(CEK_INVALID, "dst.mem is NULL", d.plugin.upload(d.queue, none, bytes, 1));
    REFUSED(CEK_INVALID, "src is NULL", d.plugin.upload(d.queue, start_of, NULL, 1));
    REFUSED(CEK_INVALID, "overlap", d.plugin.copy(d.queue, start_of, (cek_ref){ mem, 9 }, 10));
    REFUSED(CEK_INVALID, "pattern", d.plugin.fill(d.queue, start_of, 0, 3, 9));
    REFUSED(CEK_INVALID, "multiples", d.plugin.fill(d.queue, (cek_ref){ mem, 2 }, 0, 4, 4));
    REFUSED(CEK_INVALID, "4096", d.plugin.update(d.queue, (cek_ref){ large, 0 }, bytes, 4100));
    REFUSED(CEK_INVALID, "multiples", d.plugin.update(d.queue, start_of, bytes, 6));
    REFUSED(CEK_INVALID, "multiples", d.plugin.update(d.queue, (cek_ref){ mem, 2 }, bytes, 4));
    OK(d.plugin.copy(d.queue, (cek_ref){ mem, 10 }, start_of, 10));
    OK(d.plugin.upload(d.queue, none, NULL, 0));
    OK(d.plugin.download(d.queue, NULL, none, 0));
    OK(d.plugin.copy(d.queue, none, none, 0));
    OK(d.plugin.fill(d.queue, none, 0, 4, 0));
    OK(d.plugin.update(d.queue, none, NULL, 0));
    OK(d.plugin.queue_sync(d.queue, 0));

    cek_queue *queue;
    const cek_queue_desc desc = { .size = sizeof desc, .flags = 1u << 20 };
    REFUSED(CEK_UNSUPPORTED, "flags", d.plugin.queue_create(d.dev, &desc, &queue));
    d.plugin.queue_destroy(NULL);
    d.plugin.mem_free(mem);
    d.plugin.mem_free(large);
    door_close(&d);
}
END_TEST

START_TEST(memory_of_another_handle_is_another_device)
{
    start(_i);
    cek_dev *other;
    cek_queue *queue;
    cek_mem *theirs;
    unsigned char bytes[64], back[64];
    const cek_mem_desc desc = { .size = sizeof desc, .bytes = 64 };
    OK(d.plugin.device_open(d.instance, 0, NULL, &other));
    OK(d.plugin.mem_alloc(other, &desc, &theirs));
    OK(d.plugin.queue_create(other, NULL, &queue));
    memset(bytes, 0x3c, sizeof bytes);
    REFUSED(CEK_INVALID, "another device", d.plugin.upload(d.queue, (cek_ref){ theirs, 0 }, bytes, 64));
    /* But a copy may come from there. */
    cek_mem *mine = door_mem(&d, 64);
    OK(d.plugin.upload(queue, (cek_ref){ theirs, 0 }, bytes, 64));
    OK(d.plugin.copy(d.queue, (cek_ref){ mine, 0 }, (cek_ref){ theirs, 0 }, 64));
    OK(d.plugin.download(d.queue, back, (cek_ref){ mine, 0 }, 64));
    ck_assert_mem_eq(bytes, back, 64);
    cek_event *event;
    OK(d.plugin.event_create(other, NULL, &event));
    OK(d.plugin.event_record(queue, event));
    REFUSED(CEK_UNSUPPORTED, "another device", d.plugin.event_wait(d.queue, event));
    d.plugin.event_destroy(event);
    d.plugin.mem_free(mine);
    d.plugin.mem_free(theirs);
    d.plugin.queue_destroy(queue);
    d.plugin.device_close(other);
    door_close(&d);
}
END_TEST

/* --- events ----------------------------------------------------------------------------------- */

START_TEST(an_event_that_was_never_recorded_is_invalid)
{
    start(_i);
    cek_event *event;
    char text[64] = "x";
    OK(d.plugin.event_create(d.dev, NULL, &event));
    REFUSED(CEK_INVALID, "never recorded", d.plugin.event_query(event));
    REFUSED(CEK_INVALID, "never recorded", d.plugin.event_sync(event, CEK_FOREVER));
    REFUSED(CEK_INVALID, "never recorded", d.plugin.event_wait(d.queue, event));
    REFUSED(CEK_INVALID, "never recorded", d.plugin.event_status(event, text, sizeof text));
    OK(d.plugin.queue_status(d.queue, text, sizeof text)); /* the refused wait left no mark */
    OK(d.plugin.event_record(d.queue, event));
    OK(d.plugin.event_record(d.queue, event)); /* again */
    OK(d.plugin.event_query(event));
    OK(d.plugin.event_sync(event, 0));
    OK(d.plugin.event_wait(d.queue, event));
    OK(d.plugin.event_status(event, text, sizeof text));
    ck_assert_str_eq(text, "");
    d.plugin.event_destroy(event);
    d.plugin.event_destroy(NULL);
    const cek_event_desc desc = { .size = sizeof desc, .flags = 64 };
    REFUSED(CEK_UNSUPPORTED, "flags", d.plugin.event_create(d.dev, &desc, &event));
    door_close(&d);
}
END_TEST

START_TEST(events_tell_time_when_they_were_made_for_it)
{
    start(_i);
    cek_event *plain, *first, *last;
    cek_queue *timed;
    uint64_t ns = 1;
    const cek_event_desc timing = { .size = sizeof timing, .flags = CEK_EVENT_TIMING };
    const cek_queue_desc with_timing = { .size = sizeof with_timing, .flags = CEK_QUEUE_TIMING };
    OK(d.plugin.queue_create(d.dev, &with_timing, &timed));
    OK(d.plugin.event_create(d.dev, NULL, &plain));
    OK(d.plugin.event_create(d.dev, &timing, &first));
    OK(d.plugin.event_create(d.dev, &timing, &last));
    OK(d.plugin.event_record(timed, plain));
    OK(d.plugin.event_record(timed, first));
    REFUSED(CEK_INVALID, "never recorded", d.plugin.event_elapsed(first, last, &ns));
    ck_assert_uint_eq(ns, 0);
    cek_mem *mem = door_mem(&d, 1 << 20);
    OK(d.plugin.fill(timed, (cek_ref){ mem, 0 }, 1, 4, 1 << 20));
    OK(d.plugin.event_record(timed, last));
    OK(d.plugin.event_elapsed(first, last, &ns));
    ck_assert(ns > 1000 && ns < UINT64_C(60000000000));
    REFUSED(CEK_INVALID, "TIMING", d.plugin.event_elapsed(plain, last, &ns));
    REFUSED(CEK_INVALID, "before the start", d.plugin.event_elapsed(last, first, &ns));
    OK(d.plugin.event_record(d.queue, last));
    REFUSED(CEK_UNSUPPORTED, "CEK_QUEUE_TIMING", d.plugin.event_elapsed(first, last, &ns));
    d.plugin.mem_free(mem);
    d.plugin.event_destroy(plain);
    d.plugin.event_destroy(first);
    d.plugin.event_destroy(last);
    d.plugin.queue_destroy(timed);
    door_close(&d);
}
END_TEST

static void *query_often(void *event)
{
    for (int i = 0; i < 2000; i++)
        if (d.plugin.event_query(event))
            return event;
    return NULL;
}

START_TEST(an_event_is_recorded_by_one_thread_and_asked_by_another)
{
    start(_i);
    cek_event *event;
    pthread_t other;
    void *failed;
    OK(d.plugin.event_create(d.dev, NULL, &event));
    OK(d.plugin.event_record(d.queue, event));
    ck_assert_int_eq(pthread_create(&other, NULL, query_often, event), 0);
    for (int i = 0; i < 2000; i++)
        OK(d.plugin.event_record(d.queue, event));
    pthread_join(other, &failed);
    ck_assert_ptr_null(failed);
    d.plugin.event_destroy(event);
    door_close(&d);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("a plugin through its table");
    TCase *tc = tcase_create("reference, and inside sim");
    EACH(tc, the_query_refuses_another_major_and_finds_the_symbol_alone);
    EACH(tc, devices_say_what_they_are);
    tcase_add_test(tc, an_instance_needs_no_host_and_two_may_live_at_once);
    EACH(tc, memory_is_aligned_there_and_refused_beyond_what_is_left);
    EACH(tc, memory_maps_once_at_a_time);
    EACH(tc, bytes_move_where_they_should_and_nowhere_else);
    EACH(tc, commands_out_of_bounds_are_refused_and_the_queue_stays_usable);
    EACH(tc, memory_of_another_handle_is_another_device);
    EACH(tc, an_event_that_was_never_recorded_is_invalid);
    EACH(tc, events_tell_time_when_they_were_made_for_it);
    EACH(tc, an_event_is_recorded_by_one_thread_and_asked_by_another);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
