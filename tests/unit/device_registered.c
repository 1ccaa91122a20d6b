/* device_registered.c - tests of memory that a program registers: which calls reach the plugin, what
 * keeps the engine. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/device/engine.h"
#include "fakes.h"

/* A device that works beside the host, behind a table that counts what comes to it. */
static cek_engine *engine;
static cek_device *device;
static cek_plugin table, own;
static atomic_int registers, unregisters, closes, inside;
static atomic_bool slow;
static cek_status answer;
static char room[1 << 16];

static cek_status counted_register(cek_dev *dev, void *ptr, uint64_t bytes)
{
    cek_status st;

    registers++;
    ck_assert_int_eq(++inside, 1);
    if (slow)
        usleep(50000);
    st = answer != CEK_OK ? answer : own.host_register(dev, ptr, bytes);
    inside--;
    return st;
}

static void counted_unregister(cek_dev *dev, void *ptr)
{
    unregisters++;
    ck_assert_int_eq(++inside, 1);
    if (slow)
        usleep(50000);
    own.host_unregister(dev, ptr);
    inside--;
}

static void counted_close(cek_dev *dev)
{
    closes++;
    own.device_close(dev);
}

static void begin(void)
{
    cek_device **devices;
    size_t count;

    setenv("CEKERNELS_SIM_DEVICES", "2", 1);
    assert_ok(cek_engine_create(NULL, &engine));
    assert_ok(cek_engine_select(engine, "sim:0", CEK_PROFILE_MEMORY, &devices, &count));
    device = devices[0];
    free(devices);
    table = own = *device->plugin;
    table.host_register = counted_register;
    table.host_unregister = counted_unregister;
    table.device_close = counted_close;
    device->plugin = &table;
}

/* Registrations keep the engine, and nothing else does. */
static void engine_ends_with(void *ptr)
{
    cek_engine_free(engine);
    ck_assert_int_eq(closes, 0);
    cek_pinned_unregister(device, ptr);
    ck_assert_int_eq(closes, 1);
}

START_TEST(copies_go_from_and_to_registered_memory_which_keeps_the_engine)
{
    static char back[sizeof room];
    cek_stream *stream;
    cek_memory *memory;

    begin();
    for (size_t i = 0; i < sizeof room; i++)
        room[i] = (char)(i * 7);
    assert_ok(cek_pinned_register(device, room, sizeof room));
    assert_ok(cek_pinned_register(device, back, sizeof back));
    assert_ok(cek_stream_create(device, &stream));
    assert_ok(cek_memory_alloc(device, sizeof room, 0, &memory));
    assert_ok(cek_stream_upload(stream, cek_memory_ref(memory), room, sizeof room));
    assert_ok(cek_stream_download(stream, back, cek_memory_ref(memory), sizeof back));
    assert_ok(cek_stream_sync(stream, CEK_FOREVER));
    ck_assert_int_eq(memcmp(room, back, sizeof room), 0);
    cek_memory_free(memory);
    cek_stream_free(stream);
    cek_pinned_unregister(device, back);
    ck_assert_int_eq(registers, 2);
    ck_assert_int_eq(unregisters, 1);
    engine_ends_with(room);
    ck_assert_int_eq(unregisters, 2);
}
END_TEST

START_TEST(the_plugin_hears_of_the_first_and_the_last_of_equal_ranges)
{
    begin();
    for (int i = 0; i < 3; i++)
        assert_ok(cek_pinned_register(device, room, 100));
    ck_assert_int_eq(registers, 1);
    cek_pinned_unregister(device, room);
    cek_pinned_unregister(device, room);
    ck_assert_int_eq(unregisters, 0);
    engine_ends_with(room);
    ck_assert_int_eq(unregisters, 1);
}
END_TEST

START_TEST(ranges_that_overlap_otherwise_are_refused)
{
    static const struct {
        size_t first, bytes;
    } others[] = { { 100, 99 }, { 100, 101 }, { 50, 51 }, { 199, 1 }, { 0, 400 }, { 120, 10 } };

    begin();
    assert_ok(cek_pinned_register(device, room + 100, 100));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_fails(cek_pinned_register(device, room + others[i].first, others[i].bytes), CEK_INVALID, "sim:0",
                     "overlap 100 registered ones");
    assert_fails(cek_pinned_register(device, room, UINT64_MAX), CEK_INVALID, "sim:0",
                 "18446744073709551615 bytes to register");
    assert_ok(cek_pinned_register(device, room, 100));
    assert_ok(cek_pinned_register(device, room + 200, 100));
    ck_assert_int_eq(registers, 3);
    cek_pinned_unregister(device, room + 200);
    cek_pinned_unregister(device, room);
    engine_ends_with(room + 100);
    ck_assert_int_eq(unregisters, 3);
}
END_TEST

START_TEST(what_is_not_registered_is_not_unregistered)
{
    begin();
    answer = CEK_UNSUPPORTED;
    assert_fails(cek_pinned_register(device, room, 100), CEK_UNSUPPORTED, "sim:0", "host_register");
    cek_pinned_unregister(device, room);
    answer = CEK_OK;
    assert_ok(cek_pinned_register(device, room, 100));
    cek_pinned_unregister(device, room + 1);
    cek_pinned_unregister(device, room + 100);
    ck_assert_int_eq(unregisters, 0);
    engine_ends_with(room);
    ck_assert_int_eq(unregisters, 1);
}
END_TEST

/* By the library, which then leaves the plugin alone, and by the plugin. */
START_TEST(after_a_loss_the_engine_is_freed_all_the_same)
{
    const bool ours = _i == 0;

    if (!ours)
        setenv("CEKERNELS_SIM_FAULTS", "device_lost@queue_create", 1);
    begin();
    assert_ok(cek_pinned_register(device, room, 100));
    if (ours) {
        strcpy(device->lost_text, "no command finished");
        device->lost = true;
        assert_fails(cek_pinned_register(device, room, 100), CEK_DEVICE_LOST, "sim:0", "no command finished");
    } else {
        cek_stream *stream;
        assert_fails(cek_stream_create(device, &stream), CEK_DEVICE_LOST, "sim:0", "");
        assert_fails(cek_pinned_register(device, room + 200, 100), CEK_DEVICE_LOST, "sim:0", "");
    }
    ck_assert_uint_eq(engine->references, 2);
    cek_pinned_unregister(device, room);
    ck_assert_uint_eq(engine->references, 1);
    cek_pinned_unregister(device, room);
    ck_assert_uint_eq(engine->references, 1);
    ck_assert_int_eq(unregisters, ours ? 0 : 1);
    cek_engine_free(engine);
    ck_assert_int_eq(closes, ours ? 0 : 1);
}
END_TEST

static void *again_and_again(void *arg)
{
    (void)arg;
    for (int i = 0; i < 10; i++) {
        assert_ok(cek_pinned_register(device, room, 100));
        usleep(1000);
        cek_pinned_unregister(device, room);
    }
    return NULL;
}

/* counted_register and _unregister count who is inside. */
START_TEST(threads_that_want_the_same_range_wait_for_whoever_is_inside_the_plugin)
{
    enum { THREADS = 3 };
    pthread_t threads[THREADS];

    begin();
    slow = true;
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, again_and_again, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(registers, unregisters);
    ck_assert_uint_eq(engine->references, 1);
    cek_engine_free(engine);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("device_registered");
    TCase *tc = tcase_create("device_registered");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, copies_go_from_and_to_registered_memory_which_keeps_the_engine);
    tcase_add_test(tc, the_plugin_hears_of_the_first_and_the_last_of_equal_ranges);
    tcase_add_test(tc, ranges_that_overlap_otherwise_are_refused);
    tcase_add_test(tc, what_is_not_registered_is_not_unregistered);
    tcase_add_loop_test(tc, after_a_loss_the_engine_is_freed_all_the_same, 0, 2);
    tcase_add_test(tc, threads_that_want_the_same_range_wait_for_whoever_is_inside_the_plugin);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
