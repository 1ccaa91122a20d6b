/* sensors.c - what the cuda plugin tells of sensors, over the fake driver and a fake NVML: that of the right card,
 * found by its UUID, without a context and without loading anything before it is asked; and nothing where there is
 * nothing. */
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "tests/cuda/fake.h"
#include "tests/door/door.h"

enum { ALL = 0x3f };

static char folder[64];
static const char *options[] = { "cuda_path", folder, "cuda_cache", "off", NULL };
static door d;

static void link_make(const char *library, const char *name)
{
    char from[4096], to[128];
    snprintf(from, sizeof from, "%s/tests/cuda/.libs/%s", getenv("top_builddir"), library);
    snprintf(to, sizeof to, "%s/%s", folder, name);
    ck_assert_int_eq(symlink(from, to), 0);
}

/* A folder of its own for each, since what was loaded once stays under its name. NULL: no NVML. */
static void with(const char *library, const char *way)
{
    strcpy(folder, "/tmp/cek-nvml-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    link_make("fake_cuda.so", "libcuda.so.1");
    if (library)
        link_make(library, "libnvidia-ml.so.1");
    setenv("FAKE_NVML", way, 1);
    door_load(&d, "cuda", options);
}

static void *library_of(const char *name, int flags)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return dlopen(path, RTLD_NOW | flags);
}

static void over(void)
{
    char command[128];
    d.plugin.destroy(d.instance);
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static cek_device_sensors told(uint32_t index)
{
    cek_device_sensors all = { .size = sizeof all };
    cek_status st = d.plugin.device_sensors(d.instance, index, &all);
    ck_assert_msg(!st, "device %u: status %u: %s", index, st, d.text);
    return all;
}

START_TEST(sensors_are_those_of_the_card_with_the_uuid)
{
    with("fake_nvml.so", "");
    for (int again = 0; again < 2; again++) {
        const cek_device_sensors busy = told(0), idle = told(1);
        ck_assert_uint_eq(busy.known, ALL);
        ck_assert(busy.utilization == 0.87 && busy.interval_ns == 0);
        ck_assert(busy.celsius == 74 && busy.watts == 612.5 && busy.hertz == 1755e6);
        ck_assert(busy.used_bytes == 70ull << 30 && busy.total_bytes == 80ull << 30 && busy.throttled == 1);
        ck_assert_uint_eq(idle.known, ALL);
        ck_assert(idle.utilization == 0 && idle.celsius == 31 && idle.watts == 68.25 && idle.throttled == 0);
    }
    cek_device_sensors all = { .size = sizeof all };
    ck_assert_uint_eq(d.plugin.device_sensors(d.instance, 2, &all), CEK_INVALID);
    over();
}
END_TEST

/* The first of this program: a library stays loaded. */
START_TEST(the_library_is_loaded_by_the_first_question_and_no_context_is_made)
{
    int all, left;
    cek_device_info info = { .size = sizeof info };
    with("fake_nvml.so", "");
    ck_assert_uint_eq(d.plugin.device_info(d.instance, 0, &info), CEK_OK);
    ck_assert_ptr_null(library_of("libnvidia-ml.so.1", RTLD_NOLOAD));
    told(0);
    void *nvml = library_of("libnvidia-ml.so.1", RTLD_NOLOAD);
    ck_assert_ptr_nonnull(nvml);
    void (*counts)(int *, int *) = (void (*)(int *, int *))dlsym(nvml, "fake_nvml_begun");
    fake_cuda_calls_fn *calls = (fake_cuda_calls_fn *)dlsym(library_of("libcuda.so.1", RTLD_NOLOAD), "fake_cuda_calls");
    ck_assert_uint_eq(calls("cuDevicePrimaryCtxRetain"), 0);
    over();
    counts(&all, &left);
    ck_assert_int_eq(all, 1);
    ck_assert_int_eq(left, 0);
}
END_TEST

static void *ask(void *ready)
{
    pthread_barrier_wait(ready);
    for (int i = 0; i < 100; i++) {
        cek_device_sensors all = told((uint32_t)i & 1);
        ck_assert(all.known == ALL && all.celsius == (i & 1 ? 31 : 74));
    }
    return NULL;
}

START_TEST(threads_that_ask_first_together_begin_it_and_end_it)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    pthread_barrier_t ready;
    int all, left;
    with("fake_nvml.so", "");
    pthread_barrier_init(&ready, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask, &ready), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&ready);
    void *nvml = library_of("libnvidia-ml.so.1", RTLD_NOLOAD);
    void (*counts)(int *, int *) = (void (*)(int *, int *))dlsym(nvml, "fake_nvml_begun");
    counts(&all, &left);
    ck_assert_int_eq(left, 1);
    over();
    counts(&all, &left);
    ck_assert_int_eq(left, 0);
}
END_TEST

/* The library, FAKE_NVML, and what is known of the first card. */
static const struct {
    const char *library, *way;
    uint32_t known;
} machines[] = {
    { "fake_nvml.so", "refuses", 0 },
    { "fake_nvml.so", "parts", 0 },
    { "fake_nvml.so", "init", 0 },
    { "fake_builtins.so", "", 0 }, /* nothing of NVML's is in it */
    { "fake_nvml_old.so", "", ALL & ~(CEK_SENSOR_POWER | CEK_SENSOR_THROTTLED) },
    { NULL, "", 0 },
};
enum { MACHINES = sizeof machines / sizeof *machines };

START_TEST(what_is_not_told_is_unknown_and_no_failure)
{
    if (!machines[_i].library && dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
        puts("this machine has an NVML: its absence is not looked at");
        return;
    }
    with(machines[_i].library, machines[_i].way);
    for (int again = 0; again < 2; again++) {
        const cek_device_sensors all = told(0);
        ck_assert_uint_eq(all.known, machines[_i].known);
        ck_assert(all.celsius == (all.known & CEK_SENSOR_TEMPERATURE ? 74 : 0) && all.watts == 0 && !all.throttled);
    }
    over();
}
END_TEST

START_TEST(a_card_that_fell_off_the_bus_is_lost)
{
    cek_device_sensors all = { .size = sizeof all };
    with("fake_nvml.so", "lost");
    ck_assert_uint_eq(d.plugin.device_sensors(d.instance, 0, &all), CEK_DEVICE_LOST);
    ck_assert_msg(strstr(d.text, "NVML: the GPU is lost") != NULL, "%s", d.text);
    ck_assert_uint_eq(all.known, 0);
    over();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda sensors");
    TCase *tcase = tcase_create("sensors");
    tcase_add_test(tcase, the_library_is_loaded_by_the_first_question_and_no_context_is_made);
    tcase_add_test(tcase, sensors_are_those_of_the_card_with_the_uuid);
    tcase_add_test(tcase, threads_that_ask_first_together_begin_it_and_end_it);
    tcase_add_loop_test(tcase, what_is_not_told_is_unknown_and_no_failure, 0, MACHINES);
    tcase_add_test(tcase, a_card_that_fell_off_the_bus_is_lost);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
