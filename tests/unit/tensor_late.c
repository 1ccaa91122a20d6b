/* tensor_late.c - tensors on a device that works late (see "lazy" in tests/plugins/fake.c): what is
 * freed, short or failing. */
#include "core/base/fault.h"
#include "fakes.h"

static cek_engine *lazy_engine;
static fake_control *lazy_control;

static cek_device *lazy_start(void)
{
    const char *path = scratch_path("late-lazy.so");

    if (access(path, R_OK) != 0)
        fake_install("late-lazy.so");
    lazy_engine = engine_of(path);
    lazy_control = fake_steer(path);
    return cek_engine_device(lazy_engine, 0);
}

static void lazy_stop(void)
{
    cek_engine_free(lazy_engine);
    ck_assert_int_eq(lazy_control->live, 0);
}

START_TEST(a_tensor_may_be_freed_before_the_work_that_reads_it)
{
    enum { N = 1000 };
    cek_device *device = lazy_start();
    float in[N], out[N], garbage[N];
    cek_tensor *a, *b;
    cek_stream *stream;
    cek_memory *memory[8];

    for (int i = 0; i < N; i++)
        in[i] = (float)i, garbage[i] = -1e30f;
    assert_ok(cek_tensor_from_host(device, CEK_F32, 1, (int64_t[]){ N }, in, &a));
    assert_ok(cek_stream_create(device, &stream));
    assert_ok(cek_add(a, a, &b)); /* queued, not done */
    cek_tensor_free(a);
    for (int i = 0; i < 8; i++) { /* memory for other streams must not be what the queued work still reads */
        assert_ok(cek_memory_alloc(device, sizeof in, 0, &memory[i]));
        assert_ok(cek_stream_upload(stream, cek_memory_ref(memory[i]), garbage, sizeof garbage));
    }
    assert_ok(cek_stream_sync(stream, CEK_FOREVER));
    assert_ok(cek_tensor_read(b, out, sizeof out));
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(out[i], 2 * in[i]);
    cek_tensor_free(b);
    for (int i = 0; i < 8; i++)
        cek_memory_free(memory[i]);
    cek_stream_free(stream);
    lazy_stop();
}
END_TEST

START_TEST(emptying_the_cache_waits_for_queued_work)
{
    cek_device *device = lazy_start();
    cek_tensor *a, *b;
    float out = 0;

    assert_ok(cek_tensor_full(device, CEK_F32, 0, NULL, 21, &a));
    assert_ok(cek_add(a, a, &b));
    cek_tensor_free(a);
    cek_device_empty_cache(device);
    assert_ok(cek_tensor_read(b, &out, sizeof out));
    ck_assert_float_eq(out, 42);
    cek_tensor_free(b);
    cek_device_empty_cache(device);
    ck_assert_uint_eq(lazy_control->bytes, 0);
    lazy_stop();
}
END_TEST

START_TEST(memory_of_freed_tensors_is_found_when_memory_is_short)
{
    cek_device *device = lazy_start();
    cek_tensor *a;
    cek_memory *memory;

    lazy_control->capacity = 10 << 20;
    assert_ok(cek_tensor_full(device, CEK_F32, 1, (int64_t[]){ 2 << 20 }, 1, &a));
    cek_tensor_free(a);
    assert_ok(cek_memory_alloc(device, 9 << 20, 0, &memory));
    cek_memory_free(memory);
    lazy_stop();
}
END_TEST

START_TEST(more_kinds_of_operation_than_are_kept_at_once)
{
    enum { KINDS = 200 };
    cek_device *device = lazy_start();
    cek_tensor *x, *y[KINDS];
    float out;

    assert_ok(cek_tensor_full(device, CEK_F32, 0, NULL, 2, &x));
    for (int i = 0; i < KINDS; i++)
        assert_ok(cek_scale(x, i, 1, &y[i]));
    for (int i = 0; i < KINDS; i++) {
        assert_ok(cek_tensor_read(y[i], &out, sizeof out));
        ck_assert_float_eq(out, 2 * (float)i + 1);
        cek_tensor_free(y[i]);
    }
    cek_tensor_free(x);
    ck_assert_int_le(lazy_control->live, 64 + 32 + 10); /* operations, events between commands, the rest */
    lazy_stop();
}
END_TEST

static cek_status compute_much(cek_device *device)
{
    cek_status st;
    static const float in[4] = { 1, 2, 3, 4 };
    cek_tensor *a = NULL, *b = NULL, *c = NULL, *d = NULL, *e = NULL;
    float out[4];

    CEK_TRY(cek_tensor_from_host(device, CEK_F32, 2, (int64_t[]){ 2, 2 }, in, &a));
    CEK_TRY(cek_tensor_full(device, CEK_F64, 1, (int64_t[]){ 3 }, 0.1, &e));
    CEK_TRY(cek_add(a, a, &b));
    CEK_TRY(cek_tensor_reshape(b, 1, (int64_t[]){ 4 }, &c));
    CEK_TRY(cek_tensor_to(c, cek_engine_device(cek_device_engine(device), 1), &d));
    CEK_TRY(cek_tensor_read(d, out, sizeof out));
out:
    cek_tensor_free(a);
    cek_tensor_free(b);
    cek_tensor_free(c);
    cek_tensor_free(d);
    cek_tensor_free(e);
    return st;
}

START_TEST(every_failing_allocation_of_tensor_work_is_reported_and_leaves_nothing)
{
    long site, failures = 0;
    bool pending = false;

    for (site = 1; !pending; site++) {
        cek_device *device = lazy_start();
        cek_memory_stats stats = { .size = sizeof stats };
        cek_status st;

        cek__fault_set(CEK__FAULT_ALLOC, site);
        st = compute_much(device);
        pending = cek__fault_pending(CEK__FAULT_ALLOC);
        cek__fault_set(CEK__FAULT_ALLOC, 0);
        failures += st != CEK_OK;
        ck_assert(st == CEK_OK || (st == CEK_OUT_OF_MEMORY && strstr(cek_error_text(), "out of ") != NULL));
        assert_ok(compute_much(device)); /* nothing is left in a bad state */
        assert_ok(cek_device_memory_stats(device, &stats));
        ck_assert_uint_eq(stats.used_bytes, 0);
        lazy_stop();
    }
    ck_assert_int_ge(site, 16);
    ck_assert_int_ge(failures, 8);
}
END_TEST

START_TEST(a_failed_default_stream_tells_why_and_the_engine_can_be_freed)
{
    cek_device *device = lazy_start();
    cek_tensor *a, *b, *c;
    float out;

    assert_ok(cek_tensor_full(device, CEK_F32, 0, NULL, 1, &a));
    lazy_control->poison = true;
    assert_ok(cek_add(a, a, &b));
    assert_fails(cek_tensor_read(b, &out, sizeof out), CEK_INTERNAL, "late:0", "caught fire");
    assert_fails(cek_tensor_read(a, &out, sizeof out), CEK_INTERNAL, "late:0", "caught fire");
    assert_fails(cek_add(a, a, &c), CEK_INTERNAL, "cek_add: late:0", "caught fire");
    ck_assert_ptr_null(c);
    cek_tensor_free(a);
    cek_tensor_free(b);
    lazy_stop();
}
END_TEST

/* The far device was to write into the near one's memory, and may still do so. */
START_TEST(a_copy_that_a_device_was_lost_in_gives_no_memory_back)
{
    enum { N = 1000 };
    const char *files[] = { fake_install("near.so"), fake_install("far-lazy.so"), NULL };
    cek_engine *engine = engine_of_files(files);
    fake_control *near = fake_steer(files[0]), *far = fake_steer(files[1]);
    cek_device *to = cek_engine_device(engine, 0);
    cek_memory_stats stats = { .size = sizeof stats };
    cek_tensor *a, *b;

    ck_assert_str_eq(cek_device_name(to), "near:0");
    assert_ok(cek_tensor_full(cek_engine_device(engine, 2), CEK_F32, 1, (int64_t[]){ N }, 1, &a));
    assert_ok(cek_tensor_to(a, to, &b));
    cek_tensor_free(b);
    assert_ok(cek_device_memory_stats(to, &stats));
    ck_assert_uint_eq(stats.used_bytes, 0);
    far->lost = true;
    assert_fails(cek_tensor_to(a, to, &b), CEK_DEVICE_LOST, "cek_tensor_to: from far:0 to near:0", "far:0");
    ck_assert_ptr_null(b);
    assert_ok(cek_device_memory_stats(to, &stats));
    ck_assert_uint_ge(stats.used_bytes, N * sizeof(float));
    cek_tensor_free(a);
    cek_engine_free(engine);
    ck_assert_int_gt(near->live, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tensor late");
    TCase *tc = tcase_create("tensor late");

    tcase_add_checked_fixture(tc, scratch_make, scratch_remove);
    tcase_add_test(tc, a_tensor_may_be_freed_before_the_work_that_reads_it);
    tcase_add_test(tc, emptying_the_cache_waits_for_queued_work);
    tcase_add_test(tc, memory_of_freed_tensors_is_found_when_memory_is_short);
    tcase_add_test(tc, more_kinds_of_operation_than_are_kept_at_once);
    tcase_add_test(tc, every_failing_allocation_of_tensor_work_is_reported_and_leaves_nothing);
    tcase_add_test(tc, a_failed_default_stream_tells_why_and_the_engine_can_be_freed);
    tcase_add_test(tc, a_copy_that_a_device_was_lost_in_gives_no_memory_back);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
