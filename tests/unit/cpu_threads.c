/* cpu_threads.c - the CPU backend's threads, its view of the machine and its choice of kernels.
 *
 * Every task once, whatever calls at once; files of /sys and cgroups from a made-up root. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/cpu/config.h"
#include "backends/cpu/threads.h"
#include "backends/cpu/topology.h"
#include "tests/suite.h"

enum { TASKS = 100, WORKERS = 4 };

typedef struct count {
    atomic_int done[TASKS];
    atomic_int worker[WORKERS]; /* 1 while a task runs with that number */
    int plain[TASKS];           /* written by a task, read by the caller: the run must order them */
    cpu_threads *nested;
} count;

static void count_task(void *arg, int64_t task, int worker)
{
    count *c = arg;
    if (worker < 0 || worker >= WORKERS || atomic_exchange(&c->worker[worker], 1))
        ck_abort_msg("two tasks at once as worker %d, or no such worker", worker);
    c->plain[task]++;
    atomic_fetch_add(&c->done[task], 1);
    atomic_store(&c->worker[worker], 0);
}

static void counts_are(const count *c, int64_t tasks, int n)
{
    for (int64_t i = 0; i < TASKS; i++) {
        const int want = i < tasks ? n : 0;
        if (atomic_load(&c->done[i]) != want || c->plain[i] != want)
            ck_abort_msg("task %d of %d ran %d times", (int)i, (int)tasks, atomic_load(&c->done[i]));
    }
}

START_TEST(every_task_runs_once_and_is_visible)
{
    cpu_threads *threads;
    ck_assert_int_eq(cek__threads_create(_i, NULL, 0, &threads), 0);
    ck_assert_int_eq(cek__threads_workers(threads), _i);
    for (int run = 0; run < 2000; run++) {
        static count c;
        const int64_t tasks = run % (TASKS + 1);
        memset(&c, 0, sizeof c);
        cek__threads_run(threads, tasks, count_task, &c);
        counts_are(&c, tasks, 1);
        if (run % 200 == 0)
            usleep(200); /* long enough for helpers to fall asleep */
    }
    cek__threads_destroy(threads);
}
END_TEST

START_TEST(no_pool_is_one_worker)
{
    static count c;
    cek__threads_run(NULL, TASKS, count_task, &c);
    counts_are(&c, TASKS, 1);
    ck_assert_int_eq(cek__threads_workers(NULL), 1);
    cek__threads_destroy(NULL);
}
END_TEST

static void *caller(void *arg)
{
    cpu_threads *threads = arg;
    for (int run = 0; run < 300; run++) {
        count *c = calloc(1, sizeof *c);
        cek__threads_run(threads, TASKS, count_task, c);
        counts_are(c, TASKS, 1);
        free(c);
    }
    return NULL;
}

START_TEST(several_callers_of_one_pool_do_not_mix)
{
    pthread_t callers[3];
    cpu_threads *threads;
    ck_assert_int_eq(cek__threads_create(WORKERS, NULL, 0, &threads), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&callers[i], NULL, caller, threads), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(callers[i], NULL);
    cek__threads_destroy(threads);
}
END_TEST

static void nested_task(void *arg, int64_t task, int worker)
{
    count *outer = arg, inner = { 0 };
    (void)worker;
    cek__threads_run(outer->nested, TASKS, count_task, &inner);
    counts_are(&inner, TASKS, 1);
    atomic_fetch_add(&outer->done[task], 1);
    outer->plain[task]++;
}

START_TEST(a_run_inside_a_task_is_inline)
{
    static count c;
    ck_assert_int_eq(cek__threads_create(WORKERS, NULL, 0, &c.nested), 0);
    cek__threads_run(c.nested, 50, nested_task, &c);
    counts_are(&c, 50, 1);
    cek__threads_destroy(c.nested);
}
END_TEST

START_TEST(a_forked_child_may_run)
{
    static count c;
    cpu_threads *threads;
    int status;
    ck_assert_int_eq(cek__threads_create(WORKERS, NULL, 0, &threads), 0);
    cek__threads_run(threads, TASKS, count_task, &c);
    const pid_t child = fork();
    if (child == 0) {
        memset(&c, 0, sizeof c);
        cek__threads_run(threads, TASKS, count_task, &c);
        int good = 1;
        for (int i = 0; i < TASKS; i++)
            good &= c.plain[i] == 1;
        _exit(good ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cek__threads_destroy(threads);
}
END_TEST

static void where_task(void *arg, int64_t task, int worker)
{
    (void)task;
    cpu_set_t *sets = arg, now;
    CPU_ZERO(&now);
    sched_getaffinity(0, sizeof now, &now);
    if (worker > 0)
        sets[worker] = now;
    usleep(2000); /* so that helpers get tasks */
}

START_TEST(helpers_keep_to_their_cpus_and_callers_are_left_alone)
{
    cpu_topology machine;
    cpu_set_t before, after, sets[3];
    cpu_threads *threads;

    cek__topology_read(&machine);
    sched_getaffinity(0, sizeof before, &before);
    const int cpus[1] = { machine.cpus[machine.n_cpus - 1] };
    ck_assert_int_eq(cek__threads_create(3, cpus, 1, &threads), 0);
    memset(sets, 0, sizeof sets);
    cek__threads_run(threads, 60, where_task, sets);
    sched_getaffinity(0, sizeof after, &after);
    ck_assert(CPU_EQUAL(&before, &after));
    for (int i = 1; i < 3; i++)
        if (CPU_COUNT(&sets[i]) > 0) {
            ck_assert_int_eq(CPU_COUNT(&sets[i]), 1);
            ck_assert(CPU_ISSET((size_t)cpus[0], &sets[i]));
        }
    ck_assert_msg(CPU_COUNT(&sets[1]) + CPU_COUNT(&sets[2]) > 0, "no helper took a task in 120 ms");
    cek__threads_destroy(threads);
}
END_TEST

typedef struct masks {
    pthread_t caller;
    atomic_int by_helpers, open; /* tasks; and of those, with a signal that is not blocked */
} masks;

static void mask_task(void *arg, int64_t task, int worker)
{
    masks *m = arg;
    sigset_t now;
    (void)task, (void)worker;
    if (pthread_equal(pthread_self(), m->caller))
        return;
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    for (int s = 1; s < 32; s++)
        if (s != SIGKILL && s != SIGSTOP && !sigismember(&now, s))
            atomic_store(&m->open, s);
    atomic_fetch_add(&m->by_helpers, 1);
}

START_TEST(helpers_block_all_signals_and_the_callers_mask_stays)
{
    masks m = { .caller = pthread_self() };
    cpu_threads *threads;
    sigset_t before, after;
    sigemptyset(&before), sigemptyset(&after);
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    ck_assert_int_eq(cek__threads_create(WORKERS, NULL, 0, &threads), 0);
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    for (int s = 1; s < 32; s++)
        ck_assert_int_eq(sigismember(&before, s), sigismember(&after, s));
    while (atomic_load(&m.by_helpers) < 10) /* the test's own time-out ends it */
        cek__threads_run(threads, TASKS, mask_task, &m);
    ck_assert_msg(!atomic_load(&m.open), "a helper does not block signal %d", atomic_load(&m.open));
    cek__threads_destroy(threads);
}
END_TEST

START_TEST(impossible_pools_are_refused)
{
    cpu_threads *threads = (cpu_threads *)&threads;
    ck_assert_int_eq(cek__threads_create(0, NULL, 0, &threads), EINVAL);
    ck_assert_ptr_null(threads);
    ck_assert_int_eq(cek__threads_create(1 << 20, NULL, 0, &threads), EINVAL);
    ck_assert_ptr_null(threads);
}
END_TEST

/* A made-up machine: files below a temporary folder. */
static char root[64];

static void root_make(void)
{
    snprintf(root, sizeof root, "/tmp/cek-topology-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void root_remove(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", root);
    ck_assert_int_eq(system(command), 0);
}

static void root_write(const char *path, const char *text)
{
    char full[256];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        mkdir(full, 0700);
        *p = '/';
    }
    FILE *f = fopen(full, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static double quota_of(void)
{
    cpu_topology t;
    cek__topology_read_from(root, &t);
    return t.quota;
}

START_TEST(the_smallest_quota_on_the_way_up_counts)
{
    ck_assert(quota_of() == 0);
    root_write("/proc/self/cgroup", "0::/a/b\n");
    root_write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    ck_assert(quota_of() == 0);
    root_write("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
    ck_assert(quota_of() == 1.5);
    root_write("/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n");
    ck_assert(quota_of() == 1.5);
    root_write("/sys/fs/cgroup/cpu.max", "50000 100000\n"); /* what a container sees of itself */
    ck_assert(quota_of() == 0.5);
}
END_TEST

START_TEST(version_1_quotas_are_read)
{
    root_write("/proc/self/cgroup", "4:memory:/x\n3:cpuset:/y\n2:cpu,cpuacct:/jobs/7\n");
    root_write("/sys/fs/cgroup/cpu,cpuacct/jobs/7/cpu.cfs_quota_us", "-1\n");
    root_write("/sys/fs/cgroup/cpu,cpuacct/jobs/7/cpu.cfs_period_us", "100000\n");
    root_write("/sys/fs/cgroup/cpu,cpuacct/y/cpu.cfs_quota_us", "1000\n"); /* of another controller's group */
    root_write("/sys/fs/cgroup/cpu,cpuacct/y/cpu.cfs_period_us", "100000\n");
    ck_assert(quota_of() == 0);
    root_write("/sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_quota_us", "250000\n");
    root_write("/sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_period_us", "100000\n");
    ck_assert(quota_of() == 2.5);
}
END_TEST

START_TEST(caches_and_model_are_read)
{
    cpu_topology t;
    char path[128];
    cek__topology_read_from(root, &t);
    ck_assert_int_eq(t.l1d_bytes, 0);
    ck_assert_str_eq(t.model, "unknown");
    root_write("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Abacus 3000\nprocessor\t: 1\nmodel name\t: Other\n");
    const char *const caches[4][3] = {
        { "1", "Data", "32K" }, { "1", "Instruction", "64K" }, { "2", "Unified", "1024K" }, { "3", "Unified", "32M" }
    };
    static const char *const names[3] = { "level", "type", "size" };
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 3; j++) {
            snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/%s", t.cpus[0], i, names[j]);
            root_write(path, caches[i][j]);
        }
    cek__topology_read_from(root, &t);
    ck_assert_int_eq(t.l1d_bytes, 32 << 10);
    ck_assert_int_eq(t.l2_bytes, 1 << 20);
    ck_assert_int_eq(t.l3_bytes, 32 << 20);
    ck_assert_str_eq(t.model, "Abacus 3000");
}
END_TEST

START_TEST(siblings_are_one_core)
{
    cpu_topology t;
    cek__topology_read_from(root, &t);
    ck_assert_int_eq(t.n_cores, t.n_cpus);
    ck_assert_int_eq(t.workers, t.n_cpus);
    if (t.n_cpus < 2)
        return;
    char path[128], siblings[64];
    snprintf(siblings, sizeof siblings, "%d,%d\n", t.cpus[0], t.cpus[1]);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", t.cpus[i]);
        root_write(path, siblings);
    }
    const int second = t.cpus[1], n = t.n_cpus;
    cek__topology_read_from(root, &t);
    ck_assert_int_eq(t.n_cores, n - 1);
    ck_assert_int_eq(t.workers, n - 1);
    ck_assert_int_eq(t.cpus[n - 1], second); /* behind the first threads of all cores */
}
END_TEST

START_TEST(devices_share_out_the_workers)
{
    cpu_topology t = { .n_cpus = 8, .cpus = { 0, 2, 4, 6, 8, 1, 3, 5 }, .n_cores = 5, .workers = 5 };
    cpu_slice s;
    const int sizes[] = { 2, 2, 1 }, firsts[] = { 0, 4, 8 };
    for (int i = 0; i < 3; i++) {
        cek__topology_split(&t, 3, i, &s);
        ck_assert_int_eq(s.workers, sizes[i]);
        ck_assert_int_eq(s.n_cpus, sizes[i]);
        ck_assert_int_eq(s.cpus[0], firsts[i]);
    }
    for (int i = 0; i < 7; i++) { /* more devices than workers */
        cek__topology_split(&t, 7, i, &s);
        ck_assert_int_eq(s.workers, 1);
        ck_assert_int_eq(s.cpus[0], t.cpus[i % 5]);
    }
    cek__topology_split(&t, 1, 0, &s);
    ck_assert_int_eq(s.workers, 5);
}
END_TEST

START_TEST(lower_instruction_sets_can_be_asked_for)
{
    const cpu_config *c;
    int n = 0;
    for (; (c = cek__config_at(n)) != NULL; n++)
        ck_assert_ptr_eq(cek__config_select(c->isa), c);
    ck_assert_int_ge(n, 1);
    ck_assert_str_eq(cek__config_at(n - 1)->isa, "portable");
    ck_assert_ptr_eq(cek__config_select(NULL), cek__config_at(0));
    ck_assert_ptr_eq(cek__config_select(""), cek__config_at(0));
    ck_assert_ptr_null(cek__config_select("mmx"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cpu_threads");
    TCase *threads = tcase_create("pool"), *made_up = tcase_create("topology"), *config = tcase_create("config");
    tcase_set_timeout(threads, 60);
    tcase_add_loop_test(threads, every_task_runs_once_and_is_visible, 1, WORKERS + 1);
    tcase_add_test(threads, no_pool_is_one_worker);
    tcase_add_test(threads, several_callers_of_one_pool_do_not_mix);
    tcase_add_test(threads, a_run_inside_a_task_is_inline);
    tcase_add_test(threads, a_forked_child_may_run);
    tcase_add_test(threads, helpers_keep_to_their_cpus_and_callers_are_left_alone);
    tcase_add_test(threads, helpers_block_all_signals_and_the_callers_mask_stays);
    tcase_add_test(threads, impossible_pools_are_refused);
    tcase_add_checked_fixture(made_up, root_make, root_remove);
    tcase_add_test(made_up, the_smallest_quota_on_the_way_up_counts);
    tcase_add_test(made_up, version_1_quotas_are_read);
    tcase_add_test(made_up, caches_and_model_are_read);
    tcase_add_test(made_up, siblings_are_one_core);
    tcase_add_test(config, devices_share_out_the_workers);
    tcase_add_test(config, lower_instruction_sets_can_be_asked_for);
    suite_add_tcase(suite, threads);
    suite_add_tcase(suite, made_up);
    suite_add_tcase(suite, config);
    return suite_run(suite);
}
