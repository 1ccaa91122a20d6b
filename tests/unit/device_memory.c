/* device_memory.c - tests of device memory: the cache, its statistics, limits, and what is pinned. */
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>

#include "core/base/random.h"
#include "devices.h"

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
    ck_assert_uint_eq(cek_memory_bytes(a), 1000);
    ck_assert_uint_eq(cek_memory_bytes(b), 1);
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

/* Four neighbours in one slab: whatever is asked of the second ends with the bytes that were asked for. */
START_TEST(no_stream_reaches_beyond_the_memory_that_was_asked_for)
{
    enum { N = 4, BYTES = 300 };
    static uint8_t host[4096];
    cek_memory *m[N], *alone, *far;
    cek_stream *stream, *other;
    cek_device *second;
    cek_ref ref;

    start("a-lazy.so");
    second = cek_engine_device(engine, 1);
    assert_ok(cek_stream_create(device, &stream));
    assert_ok(cek_stream_create(second, &other));
    for (int i = 0; i < N; i++)
        assert_ok(cek_memory_alloc(device, BYTES, 0, &m[i]));
    assert_ok(cek_memory_alloc(device, BYTES, CEK_MEMORY_ALONE, &alone));
    assert_ok(cek_memory_alloc(second, 1000, 0, &far));
    ref = cek_memory_ref(m[1]);
    ck_assert_ptr_eq(ref.mem, cek_memory_ref(m[2]).mem);
#define BEYOND(call, slot) assert_fails(call, CEK_INVALID, "a:0: " slot, "of a memory of 300")
    for (uint64_t first = 0; first <= BYTES; first += 100) {
        cek_ref at = { ref.mem, ref.offset + first };
        uint64_t rest = BYTES - first;

        assert_ok(cek_stream_upload(stream, at, host, rest));
        assert_ok(cek_stream_download(stream, host, at, rest));
        assert_ok(cek_stream_fill(stream, at, 0, 1, rest));
        assert_ok(cek_stream_update(stream, at, host, rest));
        assert_ok(cek_stream_copy(stream, at, stream, cek_memory_ref(m[3]), rest));
        assert_ok(cek_stream_copy(stream, at, other, cek_memory_ref(far), rest));
        BEYOND(cek_stream_upload(stream, at, host, rest + 1), "upload");
        BEYOND(cek_stream_download(stream, host, at, rest + 1), "download");
        BEYOND(cek_stream_fill(stream, at, 0, 1, rest + 1), "fill");
        BEYOND(cek_stream_update(stream, at, host, rest + 4), "update");
        BEYOND(cek_stream_copy(stream, at, stream, cek_memory_ref(m[3]), rest + 1), "copy");
        BEYOND(cek_stream_copy(other, cek_memory_ref(far), stream, at, rest + 1), "copy");
        BEYOND(cek_stream_upload(stream, at, host, UINT64_MAX), "upload");
    }
    BEYOND(cek_stream_upload(stream, cek_memory_ref(alone), host, BYTES + 1), "upload");
    ref.offset += BYTES + 1; /* of the bytes that rounding adds */
    BEYOND(cek_stream_upload(stream, ref, host, 1), "upload");
    ref = cek_memory_ref(m[1]);
    assert_ok(cek_stream_sync(stream, CEK_FOREVER));
    cek_memory_free(m[1]);
    assert_fails(cek_stream_upload(stream, ref, host, 1), CEK_INVALID, "a:0: upload", "in no memory that is in use");
    assert_fails(cek_stream_fill(stream, (cek_ref){ NULL, 0 }, 0, 1, 1), CEK_INVALID, "a:0: fill", "no memory");
    cek_stream_free(stream);
    cek_stream_free(other);
    for (int i = 0; i < N; i++)
        if (i != 1)
            cek_memory_free(m[i]);
    cek_memory_free(alone);
    cek_memory_free(far);
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
    assert_fails(cek_memory_alloc(device, (1 << 20) + 1, 0, &b), CEK_OUT_OF_MEMORY, "a:0: out of memory: 1048577 bytes",
                 "limit 4194304");
    ck_assert_uint_le(control->bytes, 4 << 20);
    cek_memory_free(a);
    assert_ok(cek_memory_alloc(device, 4 << 20, 0, &b)); /* what was cached made room */
    assert_ok(cek_device_set_memory_limit(device, 1 << 20));
    assert_fails(cek_memory_alloc(device, 1, 0, &a), CEK_OUT_OF_MEMORY, "limit 1048576", "4194304 used");
    assert_ok(cek_device_set_memory_limit(device, 0));
    assert_ok(cek_memory_alloc(device, 4 << 10, 0, &a)); /* of a segment that has room for more */
    assert_ok(cek_device_set_memory_limit(device, 1 << 10));
    cek_memory *more;
    assert_fails(cek_memory_alloc(device, 4 << 10, 0, &more), CEK_OUT_OF_MEMORY, "limit 1024", "");
    cek_memory_free(a);
    assert_ok(cek_device_set_memory_limit(device, 0));
    assert_ok(cek_memory_alloc(device, 8 << 20, 0, &a));
    cek_memory_free(a);
    cek_memory_free(b);
    stop();
}
END_TEST

START_TEST(absurd_sizes_are_out_of_memory)
{
    static const uint64_t sizes[] = { UINT64_MAX,        UINT64_MAX - 255, (uint64_t)1 << 63, ((uint64_t)1 << 62) + 1,
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
    struct {
        cek_memory *memory;
        uint8_t mark;
    } slot[SLOTS] = { 0 };
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
            cek_memory_free(slot[i].memory);
            used -= n;
            ck_assert_uint_ge(stats_of(device).used_bytes, used);
        }
        assert_ok(cek_memory_alloc(device, bytes, r % 31 == 0 ? CEK_MEMORY_ALONE : 0, &slot[i].memory));
        ck_assert_uint_eq(cek_memory_bytes(slot[i].memory), bytes);
        slot[i].mark = (uint8_t)step;
        used += cek_memory_bytes(slot[i].memory);
        cek_ref ref = cek_memory_ref(slot[i].memory);
        memset((uint8_t *)table->mem_host_ptr(ref.mem) + ref.offset, slot[i].mark, cek_memory_bytes(slot[i].memory));
        ck_assert_uint_ge(stats_of(device).used_bytes, used);
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

START_TEST(a_device_that_reads_the_hosts_memory_itself_registers_none)
{
    char room[100];

    start("a.so");
    assert_fails(cek_pinned_register(device, room, sizeof room), CEK_UNSUPPORTED, "a:0",
                 "reads the host's memory itself");
    assert_fails(cek_pinned_register(device, room, 0), CEK_INVALID, "a:0", "0 bytes");
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

int main(void)
{
    Suite *suite = suite_create("device memory");
    TCase *tc = tcase_create("device memory");

    tcase_add_checked_fixture(tc, scratch_make, scratch_remove);
    tcase_add_test(tc, freed_memory_is_used_again_and_statistics_count_it);
    tcase_add_test(tc, neighbours_that_are_freed_grow_together);
    tcase_add_test(tc, no_stream_reaches_beyond_the_memory_that_was_asked_for);
    tcase_add_test(tc, memory_that_stands_alone_has_a_cek_mem_of_its_own);
    tcase_add_test(tc, the_cache_is_emptied_before_a_request_fails);
    tcase_add_test(tc, a_small_device_gives_the_last_bytes_without_rounding);
    tcase_add_test(tc, a_limit_holds_for_used_and_cached_memory_together);
    tcase_add_loop_test(tc, absurd_sizes_are_out_of_memory, 0, 6);
    tcase_add_test(tc, blocks_never_overlap_in_a_long_random_workload);
    tcase_add_test(tc, threads_may_allocate_at_once);
    tcase_add_test(tc, a_device_that_reads_the_hosts_memory_itself_registers_none);
    tcase_add_loop_test(tc, pinned_memory_comes_from_the_backend_that_has_it, 0, 2);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
