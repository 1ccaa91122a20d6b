/* registry_start.c - tests of which plugins are opened and started, when, and by which thread. */
#include <pthread.h>

#include "core/base/fault.h"

#include "fakes.h"

static bool is_in_process(const char *path)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_NOLOAD);

    if (object != NULL)
        dlclose(object);
    return object != NULL;
}

static cek_status select_of(cek_engine *engine, const char *list, size_t *count)
{
    cek_device **devices;
    cek_status st = cek_engine_select(engine, list, CEK_PROFILE_INFERENCE, &devices, count);

    free(devices);
    return st;
}

static void assert_not_started(cek_engine *engine, size_t line)
{
    cek_load_entry e = load_entry(engine, line);

    ck_assert_str_eq(e.stage, "not started");
    ck_assert_str_eq(e.reason, "nothing has asked for it");
    ck_assert_uint_eq(e.status, CEK_NOT_READY);
    ck_assert_str_eq(e.plugin, "");
}

/* Of a folder, beside one whose create() crashes. */
START_TEST(nothing_but_what_is_named_is_opened)
{
    const char *alpha = fake_install("alpha.so"), *beta = fake_install("beta-crash.so");
    cek_engine *engine;
    cek_device *device;
    size_t count;

    setenv("CEKERNELS_PLUGIN_PATH", scratch_dir, 1);
    assert_ok(cek_engine_create(NULL, &engine));
    ck_assert(!is_in_process(alpha) && !is_in_process(beta));
    assert_not_started(engine, 0);
    ck_assert_uint_eq(select_of(engine, "alpha,beta:", &count), CEK_INVALID); /* nothing for a malformed list */
    assert_not_started(engine, 0);
    ck_assert_uint_eq(select_of(engine, "gamma", &count), CEK_NO_DEVICE);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "alpha.so: not started: nothing has asked for it"));
    assert_not_started(engine, 0);
    assert_ok(cek_engine_find(engine, "gamma:0,alpha:1,beta:0", &device));
    ck_assert_str_eq(cek_device_name(device), "alpha:1");
    assert_ok(select_of(engine, "alpha", &count));
    ck_assert_uint_eq(count, 2);
    setenv("CEKERNELS_DEVICES", "alpha:0", 1);
    assert_ok(select_of(engine, NULL, &count));
    ck_assert_uint_eq(count, 1);
    unsetenv("CEKERNELS_DEVICES");
    ck_assert_str_eq(load_entry(engine, 0).stage, "loaded");
    assert_not_started(engine, 1);
    ck_assert(!is_in_process(beta));
    cek_engine_free(engine);
}
END_TEST

START_TEST(all_are_started_for_a_list_of_all)
{
    const char *alpha = fake_install("alpha.so"), *beta = fake_install("beta.so");
    cek_engine *engine;
    size_t count;

    setenv("CEKERNELS_PLUGIN_PATH", scratch_dir, 1);
    for (int way = 0; way < 4; way++) {
        assert_ok(cek_engine_create(NULL, &engine));
        if (way == 0)
            ck_assert_uint_eq(cek_engine_device_count(engine), 4);
        if (way == 1)
            ck_assert_str_eq(cek_device_name(cek_engine_device(engine, 2)), "beta:0");
        if (way >= 2)
            assert_ok(select_of(engine, way == 2 ? "all" : NULL, &count));
        ck_assert_int_eq(fake_steer(alpha)->instances, 1);
        ck_assert_int_eq(fake_steer(beta)->instances, 1);
        cek_engine_free(engine);
    }
}
END_TEST

/* What was asked for last stands where its file does, and nobody's device moves. */
START_TEST(devices_have_their_places_whatever_was_started_first)
{
    cek_engine *engine;
    cek_device *beta;

    fake_install("alpha.so");
    fake_install("beta.so");
    setenv("CEKERNELS_PLUGIN_PATH", scratch_dir, 1);
    assert_ok(cek_engine_create(NULL, &engine));
    assert_ok(cek_engine_find(engine, "beta:0", &beta));
    ck_assert_uint_eq(cek_engine_device_count(engine), 4);
    ck_assert_str_eq(cek_device_name(cek_engine_device(engine, 0)), "alpha:0");
    ck_assert_ptr_eq(cek_engine_device(engine, 2), beta);
    ck_assert_ptr_null(cek_engine_device(engine, 4));
    cek_engine_free(engine);
}
END_TEST

/* No device is one thing, no memory to look for them another: the failure is told, of the start or, where a plugin met
 * it, in its line of the report; behind the former the next call goes on. */
START_TEST(where_memory_runs_out_the_start_says_so)
{
    const char *files[] = { fake_install("alpha.so"), NULL };
    int failures = 0;

    for (uint64_t nth = 1;; nth++) {
        cek_engine *engine = engine_idle_of(files);
        cek__fault_set(CEK__FAULT_ALLOC, nth);
        cek_status st = cek_engine_start(engine);
        bool through = cek__fault_pending(CEK__FAULT_ALLOC);
        cek__fault_set(CEK__FAULT_ALLOC, 0);
        if (st != CEK_OK) {
            ck_assert_uint_eq(st, CEK_OUT_OF_MEMORY);
            ck_assert_str_ne(cek_error_text(), "");
            failures++;
            assert_ok(cek_engine_start(engine));
        }
        if (load_entry(engine, 0).status != CEK_OUT_OF_MEMORY)
            ck_assert_uint_eq(cek_engine_device_count(engine), 2);
        cek_engine_free(engine);
        if (through)
            break;
    }
    ck_assert_int_gt(failures, 0);
}
END_TEST

START_TEST(a_file_that_the_program_names_is_opened_to_learn_its_name_and_not_started)
{
    const char *files[] = { fake_install("alpha.so"), fake_install("beta.so"), fake_install("alpha-zero.so"), NULL };
    cek_engine *engine = engine_idle_of(files);
    size_t count;

    ck_assert(!is_in_process(files[0]));
    assert_ok(select_of(engine, "beta", &count));
    ck_assert_str_eq(load_entry(engine, 0).stage, "not started");
    ck_assert_str_eq(load_entry(engine, 0).plugin, "alpha");
    ck_assert_int_eq(fake_steer(files[0])->instances, 0);
    ck_assert_int_eq(fake_steer(files[1])->instances, 1);
    assert_ok(select_of(engine, "alpha", &count));
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(load_entry(engine, 0).stage, "loaded");
    ck_assert_uint_eq(load_entry(engine, 2).status, CEK_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(load_entry(engine, 2).reason, files[0])); /* the first of a name, and it alone */
    cek_engine_free(engine);
}
END_TEST

START_TEST(the_next_of_a_name_is_taken_where_the_first_cannot_be)
{
    cek_engine *engine;
    size_t count;

    fake_install("alpha-failing.so");
    fake_install("alpha-slot.so");
    fake_install("alpha.so");
    setenv("CEKERNELS_PLUGIN_PATH", scratch_dir, 1);
    assert_ok(cek_engine_create(NULL, &engine));
    assert_ok(select_of(engine, "alpha", &count));
    ck_assert_str_eq(load_entry(engine, 0).stage, "create");
    ck_assert_str_eq(load_entry(engine, 1).stage, "query");
    ck_assert_str_eq(load_entry(engine, 2).stage, "loaded");
    cek_engine_free(engine);
}
END_TEST

START_TEST(in_a_folder_a_plugin_is_called_like_its_file)
{
    const char *alpha = fake_install("alpha.so"), *other = scratch_path("other.so");
    cek_engine *engine;
    size_t count;

    /* The fake takes its name from its file; this one is loaded under its former name already. */
    void *object = dlopen(alpha, RTLD_NOW | RTLD_LOCAL);
    ck_assert_ptr_nonnull(object);
    ck_assert_int_eq(rename(alpha, other), 0);
    setenv("CEKERNELS_PLUGIN_PATH", scratch_dir, 1);
    assert_ok(cek_engine_create(NULL, &engine));
    ck_assert_uint_eq(select_of(engine, "other", &count), CEK_NO_DEVICE);
    ck_assert_str_eq(load_entry(engine, 0).stage, "query");
    ck_assert_ptr_nonnull(
        strstr(load_entry(engine, 0).reason,
               "it is called 'alpha', so in a folder its file must be called alpha.so or alpha-*.so"));
    cek_engine_free(engine);
    dlclose(object);
}
END_TEST

/* ---- threads ---- */

typedef struct request {
    cek_engine *engine;
    const char *list;
    cek_status status;
    size_t count;
} request;

static void *request_main(void *arg)
{
    request *r = arg;

    r->status = select_of(r->engine, r->list, &r->count);
    return NULL;
}

START_TEST(threads_that_ask_at_once_get_one_instance_of_each)
{
    static const char *const lists[] = { "beta", "alpha,beta", "all", "beta:1,alpha:0" };
    const char *alpha = fake_install("alpha.so"), *beta = fake_install("beta.so");
    request requests[8];
    pthread_t threads[8];
    cek_engine *engine;

    setenv("CEKERNELS_PLUGIN_PATH", scratch_dir, 1);
    assert_ok(cek_engine_create(NULL, &engine));
    for (int i = 0; i < 8; i++) {
        requests[i] = (request){ .engine = engine, .list = lists[i % 4] };
        ck_assert_int_eq(pthread_create(&threads[i], NULL, request_main, &requests[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        assert_ok(requests[i].status);
        ck_assert_uint_eq(requests[i].count, i % 4 == 1 || i % 4 == 2 ? 4 : 2);
    }
    ck_assert_int_eq(fake_steer(alpha)->instances, 1);
    ck_assert_int_eq(fake_steer(beta)->instances, 1);
    cek_engine_free(engine);
}
END_TEST

START_TEST(a_driver_that_does_not_return_holds_up_those_alone_that_ask_for_it)
{
    const char *slow = fake_install("slow-waits.so");
    request waiting = { .list = "slow" }, also = { .list = "slow:1" };
    pthread_t threads[2];
    char *report;
    size_t count;

    fake_install("alpha.so");
    setenv("CEKERNELS_PLUGIN_PATH", scratch_dir, 1);
    assert_ok(cek_engine_create(NULL, &waiting.engine));
    also.engine = waiting.engine;
    ck_assert_int_eq(pthread_create(&threads[0], NULL, request_main, &waiting), 0);
    while (!is_in_process(slow) || !fake_steer(slow)->waiting)
        ;
    ck_assert_int_eq(pthread_create(&threads[1], NULL, request_main, &also), 0);
    assert_ok(select_of(waiting.engine, "alpha", &count));
    ck_assert_uint_eq(count, 2);
    assert_ok(cek_engine_load_report(waiting.engine, &report));
    ck_assert_ptr_nonnull(strstr(report, "slow-waits.so: not started: "));
    free(report);
    fake_steer(slow)->go = true;
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert_ok(waiting.status);
    assert_ok(also.status);
    ck_assert_uint_eq(waiting.count, 2);
    ck_assert_uint_eq(also.count, 1);
    ck_assert_int_eq(fake_steer(slow)->instances, 1);
    cek_engine_free(waiting.engine);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("registry start");
    TCase *tc = tcase_create("registry start");

    tcase_add_checked_fixture(tc, fakes_setup, scratch_remove);
    tcase_add_test(tc, nothing_but_what_is_named_is_opened);
    tcase_add_test(tc, all_are_started_for_a_list_of_all);
    tcase_add_test(tc, devices_have_their_places_whatever_was_started_first);
    tcase_add_test(tc, where_memory_runs_out_the_start_says_so);
    tcase_add_test(tc, a_file_that_the_program_names_is_opened_to_learn_its_name_and_not_started);
    tcase_add_test(tc, the_next_of_a_name_is_taken_where_the_first_cannot_be);
    tcase_add_test(tc, in_a_folder_a_plugin_is_called_like_its_file);
    tcase_add_test(tc, threads_that_ask_at_once_get_one_instance_of_each);
    tcase_add_test(tc, a_driver_that_does_not_return_holds_up_those_alone_that_ask_for_it);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
