/* threads.c - tests of one engine used by many threads at once; meant to run under the thread sanitizer too. */
#include "fakes.h"

#include <pthread.h>
#include <stdint.h>

enum { THREADS = 4, STEPS = 60 };

static cek_engine *engine;

static void setup(void)
{
    scratch_make();
}

/* A chain of tensor work whose result is known; every thread shares the device, none shares a tensor. */
static cek_status chain(cek_device *device, cek_device *other, float start, float *result)
{
    cek_status st;
    cek_tensor *a = NULL, *b = NULL, *c = NULL, *d = NULL;

    CEK_TRY(cek_tensor_full(device, CEK_F32, 1, (int64_t[]){ 100 }, start, &a));
    CEK_TRY(cek_add(a, a, &b));
    cek_tensor_free(a);
    a = NULL;
    CEK_TRY(cek_scale(b, 3, 1, &c));
    CEK_TRY(cek_tensor_to(c, other, &d));
    float out[100];
    CEK_TRY(cek_tensor_read(d, out, sizeof out));
    *result = out[99];
out:
    cek_tensor_free(a);
    cek_tensor_free(b);
    cek_tensor_free(c);
    cek_tensor_free(d);
    return st;
}

static void *tensors_work(void *argument)
{
    int me = (int)(uintptr_t)argument;
    cek_device *devices[2] = { cek_engine_device(engine, 0), cek_engine_device(engine, 1) };

    for (int i = 0; i < STEPS; i++) {
        float start = (float)(1000 * me + i), got = 0;

        /* Half of the threads copy one way, half the other. */
        if (chain(devices[me & 1], devices[~me & 1], start, &got) != CEK_OK || got != start * 6 + 1)
            return argument;
        if (i % 16 == 0)
            cek_device_empty_cache(devices[me & 1]);
    }
    return NULL;
}

static void run_all(void *(*work)(void *))
{
    pthread_t threads[THREADS];
    void *failed;

    for (uintptr_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &failed);
        ck_assert_msg(failed == NULL, "thread %d", (int)(uintptr_t)failed);
    }
}

START_TEST(threads_share_devices_and_their_default_streams)
{
    static const char *const files[] = { "a.so", "a-lazy.so" };
    const char *path = fake_install(files[_i]);
    cek_memory_stats stats = { .size = sizeof stats };

    engine = engine_of(path);
    run_all(tensors_work);
    assert_ok(cek_device_memory_stats(cek_engine_device(engine, 0), &stats));
    ck_assert_uint_eq(stats.used_bytes, 0);
    cek_engine_free(engine);
    ck_assert_int_eq(fake_steer(path)->live, 0);
}
END_TEST

START_TEST(threads_share_devices_of_the_build)
{
    engine = NULL;
    assert_ok(cek_engine_create(NULL, &engine));
    cek_device *devices[2] = { NULL, NULL };
    assert_ok(cek_engine_find(engine, "reference:0", &devices[0]));
    run_all(tensors_work); /* the first two devices, whatever they are */
    cek_engine_free(engine);
}
END_TEST

/* A stream of its own for each thread, all of one device. */
static void *streams_work(void *argument)
{
    cek_device *device = cek_engine_device(engine, 0);
    uint32_t value = (uint32_t)(uintptr_t)argument, got = 0;

    for (int i = 0; i < STEPS; i++, value += 17) {
        cek_stream *stream = NULL;
        cek_marker *marker = NULL;
        cek_memory *memory = NULL;
        cek_status st;

        CEK_TRY(cek_stream_create(device, &stream));
        CEK_TRY(cek_marker_create(device, false, &marker));
        CEK_TRY(cek_memory_alloc(device, 4, 0, &memory));
        CEK_TRY(cek_stream_upload(stream, cek_memory_ref(memory), &value, 4));
        CEK_TRY(cek_stream_download(stream, &got, cek_memory_ref(memory), 4));
        CEK_TRY(cek_marker_record(marker, stream));
        CEK_TRY(cek_marker_sync(marker, CEK_FOREVER));
    out:
        cek_marker_free(marker);
        cek_stream_free(stream);
        cek_memory_free(memory);
        if (st != CEK_OK || got != value)
            return argument;
    }
    return NULL;
}

START_TEST(threads_have_streams_of_their_own)
{
    const char *path = fake_install("a-lazy.so");

    engine = engine_of(path);
    run_all(streams_work);
    cek_engine_free(engine);
    ck_assert_int_eq(fake_steer(path)->live, 0);
}
END_TEST

static void *engines_work(void *argument)
{
    for (int i = 0; i < 10; i++) {
        cek_engine *mine;
        cek_device *device;

        if (cek_engine_create(NULL, &mine) != CEK_OK)
            return argument;
        if (cek_engine_find(mine, "reference", &device) != CEK_OK)
            return argument;
        cek_engine_free(mine);
    }
    return NULL;
}

START_TEST(threads_make_engines_at_once)
{
    run_all(engines_work);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("threads");
    TCase *tc = tcase_create("threads");

    tcase_add_checked_fixture(tc, setup, scratch_remove);
    tcase_add_loop_test(tc, threads_share_devices_and_their_default_streams, 0, 2);
    tcase_add_test(tc, threads_share_devices_of_the_build);
    tcase_add_test(tc, threads_have_streams_of_their_own);
    tcase_add_test(tc, threads_make_engines_at_once);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
