/* device_blocks.c - tests of calls into a plugin that do not return for a while, or ever: what other threads can do
 * meanwhile, and how long they wait for what such a call makes. */
#include <pthread.h>
#include <sched.h>

#include "devices.h"

enum { BYTES = 1 << 16 };

static cek_device *second; /* of the same plugin */
static char host[BYTES];

static void start_two(const char *file, uint64_t timeout_ns, uint64_t making_timeout_ns)
{
    const char *files[] = { fake_install(file), NULL };
    cek_engine_options options = { .size = sizeof options,
                                   .plugin_files = files,
                                   .only_plugin_files = true,
                                   .timeout_ns = timeout_ns,
                                   .making_timeout_ns = making_timeout_ns };

    assert_ok(cek_engine_create(&options, &engine));
    device = cek_engine_device(engine, 0);
    second = cek_engine_device(engine, 1);
    ck_assert_ptr_nonnull(second);
    control = fake_steer(files[0]);
}

/* ---- what goes into the call that blocks ---- */

static cek_status use_memory(cek_device *d)
{
    cek_memory *memory;
    cek_status st = cek_memory_alloc(d, BYTES, CEK_MEMORY_ALONE, &memory);

    cek_memory_free(memory);
    return st;
}

static cek_status use_pinned(cek_device *d)
{
    void *pinned;
    cek_status st = cek_pinned_alloc(d, BYTES, &pinned);

    cek_pinned_free(d, pinned);
    return st;
}

static cek_status use_tensor(cek_device *d)
{
    cek_tensor *tensor = NULL, *sum = NULL;
    cek_status st = cek_tensor_from_host(d, CEK_F32, 1, (int64_t[]){ 4 }, host, &tensor);

    if (st == CEK_OK)
        st = cek_add(tensor, tensor, &sum);
    cek_tensor_free(tensor);
    cek_tensor_free(sum);
    return st;
}

static cek_status use_all(cek_device *d)
{
    return cek_device_sync(d);
}

/* Through the bounce buffer. */
static cek_status use_copy(cek_device *d)
{
    cek_stream *from = NULL, *to = NULL;
    cek_memory *here = NULL, *there = NULL;
    cek_status st = cek_stream_create(d, &from);

    st = st == CEK_OK ? cek_stream_create(second, &to) : st;
    st = st == CEK_OK ? cek_memory_alloc(d, BYTES, 0, &here) : st;
    st = st == CEK_OK ? cek_memory_alloc(second, BYTES, 0, &there) : st;
    st = st == CEK_OK ? cek_stream_copy(to, cek_memory_ref(there), from, cek_memory_ref(here), BYTES) : st;
    cek_stream_free(from);
    cek_stream_free(to);
    cek_memory_free(here);
    cek_memory_free(there);
    return st;
}

static const struct {
    fake_call call;
    const char *file;
    cek_status (*use)(cek_device *d);
    bool in_turn; /* of the default stream */
} calls[] = {
    { FAKE_DEVICE_OPEN, "a.so", use_memory, false }, { FAKE_HOST_ALLOC, "a-pinned.so", use_pinned, false },
    { FAKE_MEM_ALLOC, "a.so", use_memory, false },   { FAKE_MEM_FREE, "a.so", use_memory, false },
    { FAKE_OP_CREATE, "a.so", use_tensor, true },    { FAKE_DOWNLOAD, "a-lazy.so", use_copy, false },
    { FAKE_QUEUE_SYNC, "a-lazy.so", use_all, true },
};
enum { CALLS = sizeof calls / sizeof *calls };

static void *use(void *arg)
{
    const int *row = arg;

    return calls[*row].use(device) == CEK_OK ? NULL : arg;
}

/* A thread of this program that is inside the call when this returns. */
static pthread_t enter(int *row)
{
    pthread_t thread;

    control->blocks = (int)calls[*row].call;
    ck_assert_int_eq(pthread_create(&thread, NULL, use, row), 0);
    while (!control->waiting)
        sched_yield();
    return thread;
}

static bool comes_out_well(pthread_t thread)
{
    void *failed;

    control->go = true;
    ck_assert_int_eq(pthread_join(thread, &failed), 0);
    return failed == NULL;
}

/* ---- tests ---- */

START_TEST(while_a_call_blocks_other_devices_work_and_the_same_one_answers)
{
    bool opening = calls[_i].call == FAKE_DEVICE_OPEN;
    cek_device_info info = { .size = sizeof info };
    cek_tensor *tensor = NULL;
    pthread_t thread;

    start_two(calls[_i].file, 0, 0);
    if (!opening)
        assert_ok(cek_tensor_full(device, CEK_F32, 1, (int64_t[]){ 4 }, 1, &tensor));
    thread = enter(&_i);
    assert_ok(use_memory(second));
    assert_ok(use_pinned(second));
    assert_ok(use_tensor(second));
    assert_ok(use_all(second));
    assert_ok(cek_device_describe(device, &info));
    assert_ok(cek_device_set_memory_limit(device, 0));
    cek_device_reset_peak(device);
    if (!opening) {
        stats_of(device);
        assert_ok(use_memory(device));
        assert_ok(use_pinned(device));
    }
    if (!opening && !calls[_i].in_turn)
        assert_ok(use_tensor(device));
    if (calls[_i].call == FAKE_DOWNLOAD)
        assert_ok(use_copy(device));
    ck_assert(comes_out_well(thread));
    cek_tensor_free(tensor);
    stop();
}
END_TEST

START_TEST(who_waits_for_a_call_that_does_not_return_waits_until_its_deadline)
{
    static const int rows[] = { 0, 4, 6 };
    int row = rows[_i];
    cek_tensor *tensor = NULL;
    pthread_t thread;

    start_two(calls[row].file, 16000000, 32000000);
    if (calls[row].call != FAKE_DEVICE_OPEN)
        assert_ok(cek_tensor_full(device, CEK_F32, 1, (int64_t[]){ 4 }, 1, &tensor));
    thread = enter(&row);
    if (calls[row].call == FAKE_DEVICE_OPEN)
        assert_fails(use_memory(device), CEK_DEVICE_LOST, "a:0: device_open", "for 0.032 s");
    else
        assert_fails(use_tensor(device), CEK_TIMEOUT, "a:0: the default stream", "another thread has had it");
    assert_ok(use_tensor(second));
    ck_assert(comes_out_well(thread) == (calls[row].call != FAKE_DEVICE_OPEN)); /* where the device was not lost */
    cek_tensor_free(tensor);
    cek_engine_free(engine);
}
END_TEST

static void *count_devices(void *arg)
{
    ck_assert_uint_eq(cek_engine_device_count(arg), 2);
    return NULL;
}

START_TEST(so_it_is_where_a_plugin_does_not_come_out_of_its_start)
{
    const char *path = fake_install("a-waits.so");
    void *object = dlopen(path, RTLD_NOW); /* so that it can be steered before it is started */
    const char *files[] = { path, NULL };
    cek_engine_options options = {
        .size = sizeof options, .plugin_files = files, .only_plugin_files = true, .making_timeout_ns = 32000000
    };
    cek_device **devices;
    size_t count;
    pthread_t thread;

    ck_assert_ptr_nonnull(object);
    control = fake_steer(path);
    assert_ok(cek_engine_create(&options, &engine));
    ck_assert_int_eq(pthread_create(&thread, NULL, count_devices, engine), 0);
    while (!control->waiting)
        sched_yield();
    assert_fails(cek_engine_select(engine, "a", CEK_PROFILE_MEMORY, &devices, &count), CEK_TIMEOUT, "a-waits.so",
                 "another thread has been starting it for 0.032 s");
    ck_assert(comes_out_well(thread));
    stop();
    dlclose(object);
}
END_TEST

START_TEST(the_time_out_of_making_comes_from_the_option_or_the_variable)
{
    int row = 0;
    pthread_t thread;

    setenv("CEKERNELS_MAKING_TIMEOUT", "0.016", 1);
    start_two("a.so", 1600000, _i == 0 ? 0 : 24000000);
    thread = enter(&row);
    assert_fails(use_memory(device), CEK_DEVICE_LOST, "a:0", _i == 0 ? "for 0.016 s" : "for 0.024 s");
    ck_assert(!comes_out_well(thread));
    cek_engine_free(engine);
}
END_TEST

START_TEST(without_either_it_is_ten_times_the_other)
{
    int row = 0;
    pthread_t thread;

    start_two("a.so", 1600000, 0);
    thread = enter(&row);
    assert_fails(use_memory(device), CEK_DEVICE_LOST, "a:0", "for 0.016 s");
    ck_assert(!comes_out_well(thread));
    cek_engine_free(engine);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("device blocks");
    TCase *tc = tcase_create("device blocks");

    tcase_add_checked_fixture(tc, fakes_setup, scratch_remove);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, while_a_call_blocks_other_devices_work_and_the_same_one_answers, 0, CALLS);
    tcase_add_loop_test(tc, who_waits_for_a_call_that_does_not_return_waits_until_its_deadline, 0, 3);
    tcase_add_test(tc, so_it_is_where_a_plugin_does_not_come_out_of_its_start);
    tcase_add_loop_test(tc, the_time_out_of_making_comes_from_the_option_or_the_variable, 0, 2);
    tcase_add_test(tc, without_either_it_is_ten_times_the_other);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
