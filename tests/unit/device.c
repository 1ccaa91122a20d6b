/* device.c - tests of devices: opening, memory, streams, markers, and copies between any two. */
#include "fakes.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>

#include "core/base/fault.h"
#include "core/base/random.h"
#include "core/device/call.h"

static cek_engine *engine;
static cek_device *device;
static fake_control *control;

/* A file that is loaded must not be written again: a second start() in one test takes what is there. */
static void start(const char *file)
{
    const char *path = scratch_path(file);

    if (access(path, R_OK) != 0)
        path = fake_install(file);
    engine = engine_of(path);
    control = fake_steer(path);
    device = cek_engine_device(engine, 0);
    ck_assert_ptr_nonnull(device);
}

/* Everything that was made has been destroyed, of the plugin's and of ours. */
static void stop(void)
{
    cek_engine_free(engine);
    engine = NULL;
    ck_assert_int_eq(control->live, 0);
    ck_assert_uint_eq(control->bytes, 0);
}

static cek_memory_stats stats_of(cek_device *d)
{
    cek_memory_stats stats = { .size = sizeof stats };

    assert_ok(cek_device_memory_stats(d, &stats));
    return stats;
}

/* ---- opening and failing calls ---- */

START_TEST(a_device_is_opened_when_first_used)
{
    const cek_plugin *table;
    cek_dev *dev;
    cek_device_info info = { .size = sizeof info };

    start("a.so");
    ck_assert_int_eq(control->live, 1); /* the instance */
    assert_ok(cek_device_describe(device, &info));
    assert_ok(cek_device_sync(device));
    ck_assert_int_eq(control->live, 1);
    assert_ok(cek_device_raw(device, &table, &dev));
    ck_assert_int_eq(control->live, 2);
    ck_assert_str_eq(table->name, "a");
    ck_assert_ptr_eq(cek_device_engine(device), engine);
    stop();
}
END_TEST

START_TEST(a_device_that_does_not_open_says_why)
{
    const cek_plugin *table = (const cek_plugin *)&table;
    cek_dev *dev = (cek_dev *)&dev;
    cek_memory *memory = (cek_memory *)&memory;

    start("a-noopen.so");
    assert_fails(cek_device_raw(device, &table, &dev), CEK_INTERNAL, "a:0: device_open", "in use elsewhere");
    ck_assert_ptr_null(table);
    ck_assert_ptr_null(dev);
    assert_fails(cek_memory_alloc(device, 1, 0, &memory), CEK_INTERNAL, "a:0", "in use elsewhere");
    ck_assert_ptr_null(memory);
    stop();
}
END_TEST

START_TEST(statuses_without_a_text_get_one_and_unknown_ones_are_internal)
{
    cek_memory *memory;
    cek_stream *stream;

    start("a.so");
    control->silent_status = 4711;
    assert_fails(cek_memory_alloc(device, 1, 0, &memory), CEK_INTERNAL, "a:0: mem_alloc", "unknown status 4711");
    control->silent_status = CEK_UNSUPPORTED;
    assert_fails(cek_memory_alloc(device, 1, 0, &memory), CEK_UNSUPPORTED, "a:0: mem_alloc", "not available");
    control->silent_status = CEK_BAD_INPUT; /* a status of the libraries, which no plugin may answer */
    assert_fails(cek_memory_alloc(device, 1, 0, &memory), CEK_INTERNAL, "a:0: mem_alloc", "unknown status 64");
    control->silent_status = 0;
    assert_ok(cek_stream_create(device, &stream));
    control->lost = true;
    assert_fails(cek_memory_alloc(device, 1, 0, &memory), CEK_DEVICE_LOST, "a:0: mem_alloc",
                 "the fake cable was pulled");
    assert_fails(cek_stream_sync(stream, 0), CEK_DEVICE_LOST, "a:0: queue_sync", "the fake cable was pulled");
    cek_stream_free(stream);
    stop();
}
END_TEST

/* ---- memory ---- */

START_TEST(freed_memory_is_used_again_and_statistics_count_it)
{
    cek_memory *a, *b, *c;
    cek_ref first;
    cek_memory_stats s;

    start("a.so");
    control->capacity = 1 << 30;
    assert_ok(cek_memory_alloc(device, 1000, 0, &a));
    assert_ok(cek_memory_alloc(device, 1, 0, &b));
    ck_assert_uint_eq(cek_memory_ref(a).offset % CEK_ALIGNMENT, 0);
    ck_assert_uint_eq(cek_memory_bytes(a), 1024);
    ck_assert_uint_eq(cek_memory_bytes(b), 256);
    ck_assert_ptr_eq(cek_memory_device(b), device);
    first = cek_memory_ref(a);
    s = stats_of(device);
    ck_assert_uint_eq(s.used_bytes, 1024 + 256);
    ck_assert_uint_eq(s.used_bytes + s.cached_bytes, control->bytes);
    ck_assert_uint_eq(s.alloc_count, 2);
    ck_assert_uint_eq(s.plugin_alloc_count, 1);
    ck_assert_uint_eq(s.limit_bytes, CEK_UNKNOWN);
    ck_assert_uint_eq(s.device_total_bytes, 1 << 30);
    ck_assert_uint_eq(s.device_free_bytes, (1 << 30) - control->bytes);

    cek_memory_free(a);
    assert_ok(cek_memory_alloc(device, 900, 0, &c));
    ck_assert_ptr_eq(cek_memory_ref(c).mem, first.mem);
    ck_assert_uint_eq(cek_memory_ref(c).offset, first.offset);
    ck_assert_uint_eq(stats_of(device).plugin_alloc_count, 1);
    ck_assert_uint_eq(stats_of(device).peak_used_bytes, 1280);
    cek_memory_free(b);
    cek_memory_free(c);
    s = stats_of(device);
    ck_assert_uint_eq(s.used_bytes, 0);
    ck_assert_uint_eq(s.cached_bytes, control->bytes);
    ck_assert_uint_eq(s.peak_used_bytes, 1280);
    cek_device_reset_peak(device);
    ck_assert_uint_eq(stats_of(device).peak_used_bytes, 0);
    cek_device_empty_cache(device);
    ck_assert_uint_eq(control->bytes, 0);
    ck_assert_uint_eq(stats_of(device).cached_bytes, 0);
    stop();
}
END_TEST

START_TEST(neighbours_that_are_freed_grow_together)
{
    enum { N = 8, BYTES = 200 << 10 };
    cek_memory *m[N], *whole;
    uint64_t before;

    start("a.so");
    for (int i = 0; i < N; i++)
        assert_ok(cek_memory_alloc(device, BYTES, 0, &m[i]));
    before = control->allocations;
    for (int i = 0; i < N; i += 2)
        cek_memory_free(m[i]);
    for (int i = 1; i < N; i += 2)
        cek_memory_free(m[i]);
    assert_ok(cek_memory_alloc(device, 4 * BYTES, 0, &whole)); /* no single freed block was that large */
    ck_assert_int_eq(control->allocations, before);
    cek_memory_free(whole);
    stop();
}
END_TEST

START_TEST(memory_that_stands_alone_has_a_cek_mem_of_its_own)
{
    cek_memory *m[3];

    start("a.so");
    assert_ok(cek_memory_alloc(device, 100, CEK_MEMORY_ALONE, &m[0]));
    assert_ok(cek_memory_alloc(device, 100, 0, &m[1]));
    assert_ok(cek_memory_alloc(device, 100, CEK_MEMORY_ALONE, &m[2]));
    for (int i = 0; i < 3; i += 2) {
        ck_assert_uint_eq(cek_memory_ref(m[i]).offset, 0);
        ck_assert_ptr_ne(cek_memory_ref(m[i]).mem, cek_memory_ref(m[1]).mem);
    }
    ck_assert_ptr_ne(cek_memory_ref(m[0]).mem, cek_memory_ref(m[2]).mem);
    ck_assert_uint_eq(stats_of(device).used_bytes, 3 * 256);
    for (int i = 0; i < 3; i++)
        cek_memory_free(m[i]);
    assert_fails(cek_memory_alloc(device, 100, 1u << 7, &m[0]), CEK_UNSUPPORTED, "a:0", "unknown memory flags 0x80");
    assert_fails(cek_memory_alloc(device, 0, 0, &m[0]), CEK_INVALID, "a:0", "0 bytes");
    cek_memory_free(NULL);
    stop();
}
END_TEST

START_TEST(the_cache_is_emptied_before_a_request_fails)
{
    cek_memory *a, *b;

    start("a.so");
    control->capacity = 10 << 20;
    assert_ok(cek_memory_alloc(device, 6 << 20, 0, &a));
    cek_memory_free(a); /* 6 MiB in the cache */
    assert_ok(cek_memory_alloc(device, 8 << 20, 0, &b));
    ck_assert_uint_eq(control->bytes, 8 << 20);
    assert_fails(cek_memory_alloc(device, 3 << 20, 0, &a), CEK_OUT_OF_MEMORY,
                 "a:0: out of memory: 3145728 bytes needed", "8388608 used, 0 cached, limit none, free 2097152");
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "the fake is full"));
    ck_assert_uint_eq(stats_of(device).used_bytes, 8 << 20);
    cek_memory_free(b);
    stop();
}
END_TEST

START_TEST(a_small_device_gives_the_last_bytes_without_rounding)
{
    cek_memory *a, *b;

    start("a.so");
    control->capacity = (1 << 20) + 512;
    assert_ok(cek_memory_alloc(device, 1 << 20, 0, &a));
    assert_ok(cek_memory_alloc(device, 512, 0, &b));
    ck_assert_uint_eq(control->bytes, (1 << 20) + 512);
    cek_memory_free(a);
    cek_memory_free(b);
    stop();
}
END_TEST

START_TEST(a_limit_holds_for_used_and_cached_memory_together)
{
    cek_memory *a, *b;

    start("a.so");
    assert_ok(cek_device_set_memory_limit(device, 4 << 20));
    ck_assert_uint_eq(stats_of(device).limit_bytes, 4 << 20);
    assert_ok(cek_memory_alloc(device, 3 << 20, 0, &a));
    assert_fails(cek_memory_alloc(device, (1 << 20) + 1, 0, &b), CEK_OUT_OF_MEMORY,
                 "a:0: out of memory: 1048577 bytes", "limit 4194304");
    ck_assert_uint_le(control->bytes, 4 << 20);
    cek_memory_free(a);
    assert_ok(cek_memory_alloc(device, 4 << 20, 0, &b)); /* what was cached made room */
    assert_ok(cek_device_set_memory_limit(device, 1 << 20));
    assert_fails(cek_memory_alloc(device, 1, 0, &a), CEK_OUT_OF_MEMORY, "limit 1048576", "4194304 used");
    assert_ok(cek_device_set_memory_limit(device, 0));
    assert_ok(cek_memory_alloc(device, 8 << 20, 0, &a));
    cek_memory_free(a);
    cek_memory_free(b);
    stop();
}
END_TEST

START_TEST(absurd_sizes_are_out_of_memory)
{
    static const uint64_t sizes[] = { UINT64_MAX, UINT64_MAX - 255, (uint64_t)1 << 63, ((uint64_t)1 << 62) + 1,
                                      (uint64_t)1 << 62, (uint64_t)1 << 45 };
    cek_memory *memory;

    start("a.so");
    assert_fails(cek_memory_alloc(device, sizes[_i], 0, &memory), CEK_OUT_OF_MEMORY, "a:0: out of memory", "needed");
    assert_fails(cek_memory_alloc(device, sizes[_i], CEK_MEMORY_ALONE, &memory), CEK_OUT_OF_MEMORY, "a:0", "needed");
    ck_assert_uint_eq(stats_of(device).used_bytes, 0);
    stop();
}
END_TEST

/* Every block keeps what was written into it, whatever else is allocated and freed. */
START_TEST(blocks_never_overlap_in_a_long_random_workload)
{
    enum { SLOTS = 100, STEPS = 4000 };
    struct { cek_memory *memory; uint8_t mark; } slot[SLOTS] = { 0 };
    const cek_plugin *table;
    cek_dev *dev;
    uint64_t used = 0;

    start("a.so");
    assert_ok(cek_device_raw(device, &table, &dev));
    for (uint64_t step = 0; step < STEPS; step++) {
        uint32_t r = cek__random_u32(7, 1, 2 * step), size = cek__random_u32(7, 1, 2 * step + 1);
        int i = (int)(r % SLOTS);
        uint64_t bytes = 1 + size % (1u << (5 + (r >> 16) % 17));

        if (slot[i].memory != NULL) {
            cek_ref ref = cek_memory_ref(slot[i].memory);
            const uint8_t *at = (const uint8_t *)table->mem_host_ptr(ref.mem) + ref.offset;
            uint64_t n = cek_memory_bytes(slot[i].memory);

            ck_assert_msg(at[0] == slot[i].mark && at[n - 1] == slot[i].mark && memcmp(at, at + 1, n - 1) == 0,
                          "step %" PRIu64 ": block %d was overwritten", step, i);
            used -= n;
            cek_memory_free(slot[i].memory);
        }
        assert_ok(cek_memory_alloc(device, bytes, r % 31 == 0 ? CEK_MEMORY_ALONE : 0, &slot[i].memory));
        ck_assert_uint_ge(cek_memory_bytes(slot[i].memory), bytes);
        slot[i].mark = (uint8_t)step;
        used += cek_memory_bytes(slot[i].memory);
        cek_ref ref = cek_memory_ref(slot[i].memory);
        memset((uint8_t *)table->mem_host_ptr(ref.mem) + ref.offset, slot[i].mark, cek_memory_bytes(slot[i].memory));
        ck_assert_uint_eq(stats_of(device).used_bytes, used);
        if (step % 500 == 499)
            cek_device_empty_cache(device);
    }
    for (int i = 0; i < SLOTS; i++)
        cek_memory_free(slot[i].memory);
    ck_assert_uint_eq(stats_of(device).used_bytes, 0);
    ck_assert_uint_lt(stats_of(device).plugin_alloc_count, STEPS / 4); /* the cache serves the most */
    cek_device_empty_cache(device);
    ck_assert_uint_eq(control->bytes, 0);
    stop();
}
END_TEST

static void *allocate_much(void *seed)
{
    cek_memory *held[16] = { NULL };

    for (uint64_t step = 0; step < 2000; step++) {
        uint32_t r = cek__random_u32((uintptr_t)seed, 2, step);

        cek_memory_free(held[r % 16]);
        if (cek_memory_alloc(device, 1 + r % 300000, 0, &held[r % 16]) != CEK_OK)
            return seed;
        if (step % 512 == 0)
            cek_device_empty_cache(device);
    }
    for (int i = 0; i < 16; i++)
        cek_memory_free(held[i]);
    return NULL;
}

START_TEST(threads_may_allocate_at_once)
{
    pthread_t threads[4];
    void *failed;

    start("a.so");
    for (uintptr_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, allocate_much, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
    }
    ck_assert_uint_eq(stats_of(device).used_bytes, 0);
    ck_assert_uint_eq(stats_of(device).alloc_count, 8000);
    stop();
}
END_TEST

START_TEST(pinned_memory_comes_from_the_backend_that_has_it)
{
    static const char *const files[] = { "a.so", "a-pinned.so" };
    void *p, *q;

    start(files[_i]);
    assert_ok(cek_pinned_alloc(device, 1000, &p));
    assert_ok(cek_pinned_alloc(device, 1, &q));
    memset(p, 1, 1000);
    ck_assert_int_eq(control->pinned, _i == 1 ? 2 : 0);
    cek_pinned_free(device, p);
    cek_pinned_free(device, q);
    cek_pinned_free(device, NULL);
    ck_assert_int_eq(control->pinned, 0);
    assert_fails(cek_pinned_alloc(device, 0, &p), CEK_INVALID, "a:0", "0 bytes");
    ck_assert_ptr_null(p);
    stop();
}
END_TEST

/* ---- streams and markers ---- */

START_TEST(a_stream_works_in_order_and_a_marker_tells_how_far)
{
    cek_stream *stream;
    cek_marker *first, *second;
    cek_memory *memory;
    uint32_t in[2] = { 1, 2 }, out[2] = { 0 };
    uint64_t ns;

    start("a-lazy.so");
    assert_ok(cek_stream_create(device, &stream));
    ck_assert_ptr_eq(cek_stream_device(stream), device);
    ck_assert_ptr_nonnull(cek_stream_raw(stream));
    assert_ok(cek_marker_create(device, true, &first));
    assert_ok(cek_marker_create(device, true, &second));
    assert_ok(cek_memory_alloc(device, 4, 0, &memory));
    assert_fails(cek_marker_query(first), CEK_INVALID, "a:0: event_query", "never recorded");
    assert_ok(cek_stream_upload(stream, cek_memory_ref(memory), &in[0], 4));
    assert_ok(cek_stream_download(stream, &out[0], cek_memory_ref(memory), 4));
    assert_ok(cek_marker_record(first, stream));
    assert_ok(cek_stream_upload(stream, cek_memory_ref(memory), &in[1], 4));
    assert_ok(cek_stream_download(stream, &out[1], cek_memory_ref(memory), 4));
    assert_ok(cek_marker_record(second, stream));
    ck_assert_uint_eq(cek_marker_query(first), CEK_NOT_READY);
    assert_ok(cek_marker_sync(first, CEK_FOREVER));
    assert_ok(cek_marker_query(first));
    ck_assert_uint_eq(cek_marker_query(second), CEK_NOT_READY);
    ck_assert_uint_eq(out[0], 1);
    ck_assert_uint_eq(out[1], 0);
    assert_ok(cek_device_sync(device));
    assert_ok(cek_marker_query(second));
    ck_assert_uint_eq(out[1], 2);
    assert_ok(cek_marker_elapsed(first, second, &ns));
    ck_assert_uint_gt(ns, 0);
    assert_ok(cek_stream_upload(stream, (cek_ref){ 0 }, NULL, 0));
    control->slow = true;
    assert_fails(cek_stream_sync(stream, 1000), CEK_TIMEOUT, "a:0: queue_sync", "time");
    control->slow = false;
    assert_ok(cek_stream_sync(stream, 1000));
    cek_marker_free(first);
    cek_marker_free(second);
    cek_marker_free(NULL);
    cek_stream_free(stream);
    cek_stream_free(NULL);
    cek_memory_free(memory);
    stop();
}
END_TEST

START_TEST(a_failure_of_queued_work_is_told_with_its_text)
{
    cek_stream *stream, *waiter;
    cek_marker *marker;
    cek_memory *memory;
    uint32_t value = 1;

    start("a-lazy.so");
    assert_ok(cek_stream_create(device, &stream));
    assert_ok(cek_stream_create(device, &waiter));
    assert_ok(cek_marker_create(device, false, &marker));
    assert_ok(cek_memory_alloc(device, 4, 0, &memory));
    control->poison = true;
    assert_ok(cek_stream_upload(stream, cek_memory_ref(memory), &value, 4));
    assert_ok(cek_marker_record(marker, stream));
    assert_ok(cek_stream_wait(waiter, marker));
    assert_fails(cek_stream_sync(stream, CEK_FOREVER), CEK_INTERNAL, "a:0: queue_sync", "a fake kernel caught fire");
    assert_fails(cek_stream_sync(stream, CEK_FOREVER), CEK_INTERNAL, "a:0: queue_sync", "a fake kernel caught fire");
    assert_fails(cek_stream_upload(stream, cek_memory_ref(memory), &value, 4), CEK_INTERNAL, "a:0: upload",
                 "caught fire");
    assert_fails(cek_marker_sync(marker, CEK_FOREVER), CEK_INTERNAL, "a:0: event_sync", "caught fire");
    assert_fails(cek_stream_sync(waiter, CEK_FOREVER), CEK_INTERNAL, "a:0", "caught fire");
    assert_fails(cek_device_sync(device), CEK_INTERNAL, "a:0", "caught fire");
    cek_stream_free(waiter);
    cek_stream_free(stream);
    cek_marker_free(marker);
    cek_memory_free(memory);
    stop();
}
END_TEST

START_TEST(streams_wait_for_markers_on_their_device_and_across)
{
    cek_device *other;
    cek_stream *maker, *taker, *far;
    cek_marker *made, *never;
    cek_memory *memory;
    uint32_t in = 42, out = 0;

    start("a-lazy.so");
    other = cek_engine_device(engine, 1);
    assert_ok(cek_stream_create(device, &maker));
    assert_ok(cek_stream_create(device, &taker));
    assert_ok(cek_stream_create(other, &far));
    assert_ok(cek_marker_create(device, false, &made));
    assert_ok(cek_marker_create(other, false, &never));
    assert_ok(cek_memory_alloc(device, 4, 0, &memory));
    assert_ok(cek_stream_upload(maker, cek_memory_ref(memory), &in, 4));
    assert_ok(cek_marker_record(made, maker));
    assert_ok(cek_stream_wait(taker, made));
    assert_ok(cek_stream_download(taker, &out, cek_memory_ref(memory), 4));
    assert_ok(cek_stream_sync(taker, CEK_FOREVER));
    ck_assert_uint_eq(out, 42);
    in = 43;
    assert_ok(cek_stream_upload(maker, cek_memory_ref(memory), &in, 4));
    assert_ok(cek_marker_record(made, maker));
    assert_ok(cek_stream_wait(far, made)); /* of another device: has happened when the call returns */
    assert_ok(cek_marker_query(made));
    assert_fails(cek_marker_record(made, far), CEK_INVALID, "a:0", "a:1");
    uint64_t ns = 7;
    assert_fails(cek_marker_elapsed(made, never, &ns), CEK_INVALID, "a:0", "a:1");
    ck_assert_uint_eq(ns, 0);
    cek_marker_free(made);
    cek_marker_free(never);
    cek_stream_free(far);
    cek_stream_free(taker);
    cek_stream_free(maker);
    cek_memory_free(memory);
    stop();
}
END_TEST

/* ---- copies ---- */

enum { COPY_BYTES = 9 * (1 << 20) + 12 }; /* more than two stages, and a tail */

static uint8_t byte_at(uint64_t i, unsigned salt)
{
    return (uint8_t)(i * 2654435761u >> 13 ^ salt);
}

/* From a to b while earlier work of both is still queued; then the source's memory is overwritten. */
static void assert_copies(cek_device *from_device, cek_device *to_device, uint64_t bytes, unsigned salt)
{
    cek_stream *from, *to;
    cek_memory *src, *dst;
    uint8_t *in = malloc(bytes), *out = calloc(1, bytes), *zeros = calloc(1, bytes);

    for (uint64_t i = 0; i < bytes; i++)
        in[i] = byte_at(i, salt);
    assert_ok(cek_stream_create(from_device, &from));
    assert_ok(cek_stream_create(to_device, &to));
    assert_ok(cek_memory_alloc(from_device, bytes, 0, &src));
    assert_ok(cek_memory_alloc(to_device, bytes + 256, 0, &dst));
    cek_ref to_ref = { cek_memory_ref(dst).mem, cek_memory_ref(dst).offset + 256 };
    assert_ok(cek_stream_upload(to, to_ref, zeros, bytes)); /* must not come after the copy */
    assert_ok(cek_stream_upload(from, cek_memory_ref(src), in, bytes));
    assert_ok(cek_stream_copy(to, to_ref, from, cek_memory_ref(src), bytes));
    assert_ok(cek_stream_download(to, out, to_ref, bytes));
    assert_ok(cek_stream_sync(to, CEK_FOREVER));
    ck_assert_msg(memcmp(in, out, bytes) == 0, "%s to %s: wrong bytes", cek_device_name(from_device),
                  cek_device_name(to_device));
    cek_stream_free(from);
    cek_stream_free(to);
    cek_memory_free(src);
    cek_memory_free(dst);
    free(in);
    free(out);
    free(zeros);
}

START_TEST(copies_arrive_between_every_two_devices)
{
    const char *files[] = { fake_install("near.so"), fake_install("far-lazy.so"), fake_install("also-lazy.so"),
                            fake_install("joined-linked.so"), fake_install("page-pinned.so"), NULL };
    fake_control *joined;

    engine = engine_of_files(files);
    joined = fake_steer(files[3]);
    ck_assert_uint_eq(cek_engine_device_count(engine), 10);
    for (size_t i = 0; i < 10; i++)
        for (size_t k = 0; k < 10; k++) {
            assert_copies(cek_engine_device(engine, i), cek_engine_device(engine, k), 4, (unsigned)(10 * i + k));
            assert_copies(cek_engine_device(engine, i), cek_engine_device(engine, k), i == k ? 5000 : COPY_BYTES,
                          (unsigned)(10 * i + k));
        }
    ck_assert_int_eq(joined->copies, 4); /* its two devices use their link, twice in either direction */
    cek_engine_free(engine);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(fake_steer(files[i])->live, 0);
}
END_TEST

START_TEST(a_copy_that_fails_on_its_way_is_told_and_leaves_the_device_usable)
{
    cek_device *other;
    cek_stream *from, *to;
    cek_memory *src, *dst;

    start("a-lazy.so");
    other = cek_engine_device(engine, 1);
    assert_ok(cek_stream_create(device, &from));
    assert_ok(cek_stream_create(other, &to));
    assert_ok(cek_memory_alloc(device, 100, 0, &src));
    assert_ok(cek_memory_alloc(other, 100, 0, &dst));
    assert_fails(cek_stream_copy(to, (cek_ref){ 0 }, from, cek_memory_ref(src), 4), CEK_INVALID, "a:0", "no memory");
    assert_ok(cek_stream_copy(to, (cek_ref){ 0 }, from, (cek_ref){ 0 }, 0));
    control->poison = true;
    assert_fails(cek_stream_copy(to, cek_memory_ref(dst), from, cek_memory_ref(src), 100), CEK_INTERNAL, "a:0",
                 "caught fire");
    cek_stream_free(from);
    cek_stream_free(to);
    cek_memory_free(src);
    cek_memory_free(dst);
    assert_copies(device, other, 1000, 3);
    stop();
}
END_TEST

START_TEST(a_device_lost_during_a_copy_is_told)
{
    cek_stream *from, *to;
    cek_memory *src, *dst;

    start("a-lazy.so");
    assert_ok(cek_stream_create(device, &from));
    assert_ok(cek_stream_create(cek_engine_device(engine, 1), &to));
    assert_ok(cek_memory_alloc(device, COPY_BYTES, 0, &src));
    assert_ok(cek_memory_alloc(cek_engine_device(engine, 1), COPY_BYTES, 0, &dst));
    control->lose_after = 3; /* in the second stage */
    assert_fails(cek_stream_copy(to, cek_memory_ref(dst), from, cek_memory_ref(src), COPY_BYTES), CEK_DEVICE_LOST, "a:",
                 "the fake cable was pulled");
    cek_stream_free(from);
    cek_stream_free(to);
    cek_memory_free(src);
    cek_memory_free(dst);
    stop();
}
END_TEST

/* ---- host memory runs out ---- */

static cek_status use_everything(void)
{
    cek_status st;
    cek_device *other = cek_engine_device(engine, 1);
    cek_stream *from = NULL, *to = NULL;
    cek_marker *marker = NULL;
    cek_memory *src = NULL, *dst = NULL, *large = NULL, *alone = NULL;
    void *pinned = NULL;

    CEK_TRY(cek_memory_alloc(device, 100, 0, &src));
    CEK_TRY(cek_memory_alloc(other, 100, 0, &dst));
    CEK_TRY(cek_memory_alloc(other, 5 << 20, 0, &large));
    CEK_TRY(cek_memory_alloc(other, 100, CEK_MEMORY_ALONE, &alone));
    CEK_TRY(cek_stream_create(device, &from));
    CEK_TRY(cek_stream_create(other, &to));
    CEK_TRY(cek_marker_create(device, true, &marker));
    CEK_TRY(cek_marker_record(marker, from));
    CEK_TRY(cek_stream_copy(to, cek_memory_ref(dst), from, cek_memory_ref(src), 100));
    CEK_TRY(cek_stream_wait(to, marker));
    CEK_TRY(cek_pinned_alloc(device, 100, &pinned));
out:
    cek_pinned_free(device, pinned);
    cek_marker_free(marker);
    cek_stream_free(from);
    cek_stream_free(to);
    cek_memory_free(src);
    cek_memory_free(dst);
    cek_memory_free(large);
    cek_memory_free(alone);
    return st;
}

START_TEST(every_failing_allocation_is_reported_and_leaves_nothing)
{
    long site, failures = 0;

    for (site = 1;; site++) {
        cek_status st;
        bool pending;

        start("a-lazy.so");
        cek__fault_set(CEK__FAULT_ALLOC, site);
        st = use_everything();
        pending = cek__fault_pending(CEK__FAULT_ALLOC);
        cek__fault_set(CEK__FAULT_ALLOC, 0);
        failures += st != CEK_OK;
        ck_assert(st == CEK_OK || (st == CEK_OUT_OF_MEMORY && strstr(cek_error_text(), "out of ") != NULL));
        for (size_t i = 0; i < 2; i++)
            ck_assert_uint_eq(stats_of(cek_engine_device(engine, i)).used_bytes, 0);
        stop();
        if (pending)
            break;
    }
    /* Memory requests try again and so survive; streams, markers and staging do not. */
    ck_assert_int_ge(site, 12);
    ck_assert_int_ge(failures, 5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("device");
    TCase *tc = tcase_create("device");

    tcase_add_checked_fixture(tc, scratch_make, scratch_remove);
    tcase_add_test(tc, a_device_is_opened_when_first_used);
    tcase_add_test(tc, a_device_that_does_not_open_says_why);
    tcase_add_test(tc, statuses_without_a_text_get_one_and_unknown_ones_are_internal);
    tcase_add_test(tc, freed_memory_is_used_again_and_statistics_count_it);
    tcase_add_test(tc, neighbours_that_are_freed_grow_together);
    tcase_add_test(tc, memory_that_stands_alone_has_a_cek_mem_of_its_own);
    tcase_add_test(tc, the_cache_is_emptied_before_a_request_fails);
    tcase_add_test(tc, a_small_device_gives_the_last_bytes_without_rounding);
    tcase_add_test(tc, a_limit_holds_for_used_and_cached_memory_together);
    tcase_add_loop_test(tc, absurd_sizes_are_out_of_memory, 0, 6);
    tcase_add_test(tc, blocks_never_overlap_in_a_long_random_workload);
    tcase_add_test(tc, threads_may_allocate_at_once);
    tcase_add_loop_test(tc, pinned_memory_comes_from_the_backend_that_has_it, 0, 2);
    tcase_add_test(tc, a_stream_works_in_order_and_a_marker_tells_how_far);
    tcase_add_test(tc, a_failure_of_queued_work_is_told_with_its_text);
    tcase_add_test(tc, streams_wait_for_markers_on_their_device_and_across);
    tcase_add_test(tc, copies_arrive_between_every_two_devices);
    tcase_add_test(tc, a_copy_that_fails_on_its_way_is_told_and_leaves_the_device_usable);
    if (strstr(getenv("SANITIZERS") != NULL ? getenv("SANITIZERS") : "", "address") == NULL)
        tcase_add_test(tc, a_device_lost_during_a_copy_is_told); /* leaks the buffer, as it must */
    tcase_add_test(tc, every_failing_allocation_is_reported_and_leaves_nothing);
    suite_add_tcase(suite, tc);
    return scratch_run(suite);
}
