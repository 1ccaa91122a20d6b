/* cpu_threads.c - the CPU backend's threads: every task once, whatever calls at once and whoever lends a core. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backends/cpu/ops/parallel.h"
#include "backends/cpu/sharing.h"
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

static void either_run(int run, cpu_threads *threads, int64_t tasks, count *c)
{
    if (run % 3 == 0)
        cek__threads_run(threads, tasks, count_task, c);
    else if (run % 3 == 1)
        cek__threads_run_awake(threads, tasks, count_task, c);
    else
        cek__threads_run_brief(threads, 1, tasks, count_task, NULL, c);
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
        either_run(run, threads, tasks, &c);
        counts_are(&c, tasks, 1);
        if (run % 200 == 0)
            usleep(200); /* long enough for helpers to fall asleep */
    }
    cek__threads_destroy(threads);
}
END_TEST

/* Two tasks of so long, and who did them. */
typedef struct brief {
    int64_t ns;
    atomic_int others; /* tasks of helpers */
} brief;

static int64_t clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void brief_task(void *arg, int64_t task, int worker)
{
    brief *b = arg;
    const int64_t end = clock_now() + b->ns;
    (void)task;
    atomic_fetch_add(&b->others, worker != 0);
    while (clock_now() < end)
        ;
}

START_TEST(brief_runs_that_are_far_apart_wake_nobody)
{
    enum { RUNS = 50, TRIES = 20 };
    int alone = 0;
    _Static_assert((int)SHARING_HALF >= (int)RUNS, "these would be shared if helpers were awake");
    for (int try = 0; try < TRIES && alone < RUNS; try++) {
        cpu_threads *threads;
        ck_assert_int_eq(cek__threads_create(2, NULL, 0, &threads), 0);
        for (alone = 0; alone < RUNS; alone++) {
            brief b = { .ns = 300000 }; /* longer than a wake-up takes: whoever was woken would have a task */
            usleep(1000);               /* a helper that had no core yet falls asleep in one of these */
            cek__threads_run_brief(threads, 1, 2, brief_task, NULL, &b);
            if (atomic_load(&b.others))
                break;
        }
        cek__threads_destroy(threads);
    }
    ck_assert_int_eq(alone, RUNS);
}
END_TEST

/* Long enough for who was woken to have a task; the next ones wake nobody either. */
START_TEST(runs_for_those_who_are_awake_get_these_and_wake_nobody)
{
    enum { RUNS = 50, TRIES = 20 };
    cpu_threads *threads;
    int shared = 0, alone = 0;
    ck_assert_int_eq(cek__threads_create(2, NULL, 0, &threads), 0);
    for (const int64_t end = clock_now() + 20000000000; clock_now() < end && !shared;) {
        brief b = { .ns = 5000 };
        cek__threads_run(threads, 2, brief_task, &b); /* wakes a helper, who looks for more for a while */
        atomic_store(&b.others, 0);
        cek__threads_run_awake(threads, 2, brief_task, &b);
        shared = atomic_load(&b.others);
    }
    ck_assert_int_gt(shared, 0);
    for (int try = 0; try < TRIES && alone < RUNS; try++) {
        for (alone = 0; alone < RUNS; alone++) {
            brief b = { .ns = 300000 };
            usleep(1000);
            cek__threads_run_awake(threads, 2, brief_task, &b);
            if (atomic_load(&b.others))
                break;
        }
    }
    ck_assert_int_eq(alone, RUNS);
    cek__threads_destroy(threads);
}
END_TEST

static void brief_items(void *arg, int64_t begin, int64_t end, int worker)
{
    for (int64_t i = begin; i < end; i++)
        brief_task(arg, i, worker);
}

/* Whether a helper that is awake ever gets items of an operation that takes so long, for as long as the caller has
 * patience. */
static bool operation_is_shared(cpu_threads *threads, int64_t ns, int64_t patience_ns)
{
    enum { ITEMS = 16 };
    const cpu_dev dev = { .workers = 2, .threads = threads };
    int shared = 0;
    for (const int64_t end = clock_now() + patience_ns; clock_now() < end && !shared;) {
        brief b = { .ns = 5000 };
        cek__threads_run(threads, 2, brief_task, &b);
        b = (brief){ .ns = 1000 };
        cek__cpu_for(&dev, ITEMS, 1, (uint64_t)ns * 1000 / ITEMS, brief_items, &b);
        shared = atomic_load(&b.others);
    }
    return shared;
}

START_TEST(operations_that_wake_nobody_are_shared_if_each_worker_has_enough_of_them)
{
    cpu_threads *threads;
    ck_assert_int_eq(cek__threads_create(2, NULL, 0, &threads), 0);
    ck_assert(operation_is_shared(threads, CPU_INLINE_NS - 1000, 20000000000));
    ck_assert(operation_is_shared(threads, 2 * CPU_SHARE_NS + 1000, 20000000000));
    ck_assert(!operation_is_shared(threads, 2 * CPU_SHARE_NS - 1000, 100000000));
    cek__threads_destroy(threads);
}
END_TEST

START_TEST(brief_runs_that_follow_each_other_get_helpers)
{
    cpu_threads *threads;
    int shared = 0;
    ck_assert_int_eq(cek__threads_create(2, NULL, 0, &threads), 0);
    usleep(20000); /* helpers sleep */
    for (const int64_t end = clock_now() + 20000000000; clock_now() < end && !shared;) {
        brief b = { .ns = 5000 };
        cek__threads_run_brief(threads, 1, 2, brief_task, NULL, &b);
        shared = atomic_load(&b.others);
    }
    ck_assert_int_gt(shared, 0); /* a helper may take both tasks */
    cek__threads_destroy(threads);
}
END_TEST

/* A helper takes fifty times as long as the caller: as one whose core is far away, or another process's. */
static void lame_task(void *arg, int64_t task, int worker)
{
    atomic_int *others = arg;
    const int64_t end = clock_now() + (worker ? 50000 : 1000);
    (void)task;
    atomic_fetch_add(others, worker != 0);
    while (clock_now() < end)
        ;
}

START_TEST(brief_runs_that_helpers_delay_are_the_callers_alone)
{
    enum { RUNS = 40000 };
    cpu_threads *threads;
    atomic_int others = 0;
    ck_assert_int_eq(cek__threads_create(2, NULL, 0, &threads), 0);
    for (int run = 0; run < RUNS; run++)
        cek__threads_run_brief(threads, 1, 2, lame_task, NULL, &others);
    ck_assert_int_lt(atomic_load(&others), RUNS / 10);
    cek__threads_destroy(threads);
}
END_TEST

static void spin_for(int64_t ns)
{
    for (const int64_t end = clock_now() + ns; clock_now() < end;)
        ;
}

/* As a caller that goes on with what a helper wrote: the run itself takes half of its time shared. A step of an MLP of
 * 13-64-64-1 and 32 samples took 14 us alone, and 19 where its products were shared. */
START_TEST(brief_runs_that_delay_what_comes_next_are_the_callers_alone)
{
    enum { RUNS = 40000 };
    cpu_threads *threads;
    int others = 0;
    ck_assert_int_eq(cek__threads_create(2, NULL, 0, &threads), 0);
    for (int run = 0; run < RUNS; run++) {
        brief b = { .ns = 2000 };
        cek__threads_run_brief(threads, 1, 2, brief_task, NULL, &b);
        if (atomic_load(&b.others))
            spin_for(8000);
        others += atomic_load(&b.others);
    }
    ck_assert_int_lt(others, RUNS / 10);
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

/* Which task each worker had first, and how often each was run. */
enum { OWNERS_MAX = 30, PER_OWNER = 5 };
typedef struct shares {
    int workers;
    atomic_int begun, done;
    atomic_int ran[OWNERS_MAX * PER_OWNER];
    int64_t first[OWNERS_MAX]; /* -1: none yet */
    int busy;                  /* who ends his first task when all others are done; -1: nobody */
} shares;

static shares *shares_new(int workers, int busy)
{
    shares *s = calloc(1, sizeof *s);
    s->workers = workers;
    s->busy = busy;
    for (int w = 0; w < workers; w++)
        s->first[w] = -1;
    return s;
}

static void share_task(void *arg, int64_t task, int worker)
{
    shares *s = arg;
    atomic_fetch_add(&s->ran[task], 1);
    if (s->first[worker] < 0) {
        s->first[worker] = task;
        atomic_fetch_add(&s->begun, 1);
        while (atomic_load(&s->begun) < s->workers)
            usleep(10);
        while (worker == s->busy && atomic_load(&s->done) < s->workers * PER_OWNER - 1)
            usleep(10);
    }
    atomic_fetch_add(&s->done, 1);
}

static void all_ran_once(const shares *s, int tasks)
{
    for (int i = 0; i < tasks; i++)
        if (atomic_load(&s->ran[i]) != 1)
            ck_abort_msg("task %d of %d ran %d times", i, tasks, atomic_load(&s->ran[i]));
}

START_TEST(workers_begin_with_shares_of_their_own)
{
    const int counts[] = { 2, 3, 4, OWNERS_MAX }, workers = counts[_i];
    cpu_threads *threads;
    ck_assert_int_eq(cek__threads_create(workers, NULL, 0, &threads), 0);
    for (int larger = 0; larger < workers; larger += 2) { /* shares of two tasks, the first ones of three */
        const int tasks = 2 * workers + larger;
        shares *s = shares_new(workers, -1);
        cek__threads_run(threads, tasks, share_task, s);
        all_ran_once(s, tasks);
        for (int w = 0; w < workers; w++) { /* of neighbours one goes up, the other down */
            const int begin = 2 * w + (w < larger ? w : larger), last = begin + 1 + (w < larger);
            ck_assert_int_eq(s->first[w], w % 2 ? last : begin);
        }
        free(s);
    }
    cek__threads_destroy(threads);
}
END_TEST

START_TEST(the_share_of_one_who_is_busy_is_run_by_others)
{
    cpu_threads *threads;
    ck_assert_int_eq(cek__threads_create(WORKERS, NULL, 0, &threads), 0);
    for (int busy = 0; busy < WORKERS; busy++) {
        shares *s = shares_new(WORKERS, busy);
        cek__threads_run(threads, WORKERS * PER_OWNER, share_task, s);
        all_ran_once(s, WORKERS * PER_OWNER);
        free(s);
    }
    cek__threads_destroy(threads);
}
END_TEST

static void *caller(void *arg)
{
    cpu_threads *threads = arg;
    for (int run = 0; run < 300; run++) {
        count *c = calloc(1, sizeof *c);
        either_run(run, threads, TASKS, c);
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
    if (worker > 0 && CPU_COUNT(&sets[worker]) == 0) /* before a caller that waits for it could move it */
        sets[worker] = now;
    usleep(2000); /* so that helpers get tasks */
}

/* Neither its own, which it did not ask for, nor those of its parent's helper. */
START_TEST(a_forked_child_on_the_cpu_of_a_helper_changes_no_places)
{
    cpu_topology machine;
    cpu_set_t before, one, sets[2];
    cpu_threads *threads;
    int status;

    cek__topology_read(&machine);
    if (machine.n_cpus < 2)
        return; /* there is one place */
    sched_getaffinity(0, sizeof before, &before);
    CPU_ZERO(&one);
    CPU_SET((size_t)machine.cpus[0], &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0); /* the place that is left to the caller */
    ck_assert_int_eq(cek__threads_create(2, machine.cpus, 2, &threads), 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)machine.cpus[1], &one);
    const pid_t child = fork();
    if (child == 0) {
        static count c;
        cpu_set_t now;
        CPU_ZERO(&now);
        sched_setaffinity(0, sizeof one, &one);
        cek__threads_run(threads, TASKS, count_task, &c);
        sched_getaffinity(0, sizeof now, &now);
        _exit(CPU_EQUAL(&now, &one) ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child was moved: status %d", status);
    memset(sets, 0, sizeof sets);
    while (CPU_COUNT(&sets[1]) == 0) /* the test's own time-out ends it */
        cek__threads_run(threads, 10, where_task, sets);
    ck_assert_msg(CPU_EQUAL(&sets[1], &one), "the helper was moved");
    sched_setaffinity(0, sizeof before, &before);
    cek__threads_destroy(threads);
}
END_TEST

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

/* The caller, which is held to a CPU, has no task left; the helper is in one and does not run. */
typedef struct places {
    pthread_t caller;
    atomic_int taken;
    int caller_cpu;
} places;

static int may_run_on(int cpu)
{
    cpu_set_t now;
    CPU_ZERO(&now);
    sched_getaffinity(0, sizeof now, &now);
    return CPU_ISSET((size_t)cpu, &now);
}

static void place_task(void *arg, int64_t task, int worker)
{
    places *p = arg;
    (void)task, (void)worker;
    if (pthread_equal(pthread_self(), p->caller)) {
        while (!atomic_load(&p->taken)) /* the test's own time-out ends this and the next */
            usleep(100);
        return;
    }
    if (may_run_on(p->caller_cpu))
        ck_abort_msg("the helper had no place of its own");
    atomic_store(&p->taken, 1);
    while (!may_run_on(p->caller_cpu))
        usleep(1000);
}

START_TEST(a_helper_that_does_not_run_goes_on_in_the_place_of_the_caller_that_waits)
{
    cpu_topology machine;
    cpu_set_t before, one;
    cpu_threads *threads;
    places p = { .caller = pthread_self() };

    cek__topology_read(&machine);
    if (machine.n_cpus < 2)
        return; /* there is one place */
    sched_getaffinity(0, sizeof before, &before);
    ck_assert_int_eq(cek__threads_create(2, machine.cpus, 2, &threads), 0);
    for (int i = 0; i < 6; i++) { /* whoever had which place before */
        p.caller_cpu = machine.cpus[i / 2 % 2];
        atomic_store(&p.taken, 0);
        CPU_ZERO(&one);
        CPU_SET((size_t)p.caller_cpu, &one);
        ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
        cek__threads_run(threads, 2, place_task, &p);
    }
    sched_setaffinity(0, sizeof before, &before);
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

/* Two pools of one worker each, of which the second lends its core to the first. */
typedef struct borrowed {
    cpu_lender lender;
    cpu_threads *threads;
    atomic_int by_guest, begin_after, after; /* begin_after: as many tasks of the guest; 0: never */
    int done[TASKS];
} borrowed;

static void borrow(borrowed *b)
{
    const int cpu = sched_getcpu();
    const cpu_loan loan = { .from = &b->lender, .guests = 1, .cpus = &cpu };

    memset(b, 0, sizeof *b);
    ck_assert_int_eq(cek__threads_create_borrowing(1, &cpu, 1, &loan, &b->threads), 0);
    ck_assert_int_eq(cek__threads_workers(b->threads), 2);
}

static void borrowing_task(void *arg, int64_t task, int worker)
{
    borrowed *b = arg;

    b->done[task]++;
    if (worker == 1 && atomic_load(&b->lender.inside))
        atomic_fetch_add(&b->after, 1);
    if (worker == 1 && atomic_fetch_add(&b->by_guest, 1) + 1 == atomic_load(&b->begin_after))
        cek__lender_begin(&b->lender);
    usleep(200);
}

static void borrowing_run(borrowed *b)
{
    memset(b->done, 0, sizeof b->done);
    cek__threads_run(b->threads, TASKS, borrowing_task, b);
    for (int i = 0; i < TASKS; i++)
        ck_assert_int_eq(b->done[i], 1);
}

START_TEST(a_core_in_no_operation_takes_tasks_of_another_pool)
{
    borrowed b;

    borrow(&b);
    cek__lender_open(&b.lender);
    while (atomic_load(&b.by_guest) < TASKS / 4) /* the test's own time-out ends it */
        borrowing_run(&b);
    cek__threads_destroy(b.threads);
}
END_TEST

/* Whatever the guest does at that moment: asleep, spinning or in a task, which it ends. */
START_TEST(a_core_is_given_back_when_its_own_device_begins)
{
    borrowed b;

    borrow(&b);
    cek__lender_open(&b.lender);
    for (int begins = 0; begins < 20; begins++) {
        atomic_store(&b.by_guest, 0);
        atomic_store(&b.begin_after, 1 + begins % 3);
        while (atomic_load(&b.lender.inside) == 0)
            borrowing_run(&b);
        borrowing_run(&b);
        ck_assert_int_eq(atomic_load(&b.by_guest), 1 + begins % 3);
        cek__lender_end(&b.lender);
    }
    ck_assert_int_eq(atomic_load(&b.after), 0);
    cek__threads_destroy(b.threads);
}
END_TEST

START_TEST(nothing_is_borrowed_from_a_device_that_is_not_there)
{
    borrowed b;

    borrow(&b);
    for (int i = 0; i < 3; i++)
        borrowing_run(&b);
    cek__lender_open(&b.lender);
    while (atomic_load(&b.by_guest) == 0)
        borrowing_run(&b);
    cek__lender_close(&b.lender);
    borrowing_run(&b); /* begins after the guest may have been in a task */
    atomic_store(&b.by_guest, 0);
    borrowing_run(&b);
    ck_assert_int_eq(atomic_load(&b.by_guest), 0);
    cek__threads_destroy(b.threads);
}
END_TEST

/* Not even from one that has just been in a task and is awake. */
START_TEST(brief_runs_borrow_nothing)
{
    borrowed b;

    borrow(&b);
    cek__lender_open(&b.lender);
    for (int run = 0; run < 5; run++) {
        atomic_store(&b.by_guest, 0);
        while (atomic_load(&b.by_guest) == 0)
            borrowing_run(&b);
        atomic_store(&b.by_guest, 0);
        cek__threads_run_brief(b.threads, 1, TASKS, borrowing_task, NULL, &b);
        ck_assert_int_eq(atomic_load(&b.by_guest), 0);
    }
    cek__threads_destroy(b.threads);
}
END_TEST

/* Both begin and end operations, and help each other in between; destroyed in either order, with the other at work. */
typedef struct neighbour {
    cpu_lender *lender;
    cpu_threads *threads;
    int runs;
} neighbour;

static void *neighbour_main(void *arg)
{
    neighbour *n = arg;
    static _Thread_local count c;

    cek__lender_open(n->lender);
    for (int run = 0; run < n->runs; run++) {
        memset(&c, 0, sizeof c);
        cek__lender_begin(n->lender);
        cek__threads_run(n->threads, TASKS, count_task, &c);
        cek__lender_end(n->lender);
        counts_are(&c, TASKS, 1);
        if (run % 50 == 0)
            usleep(500);
    }
    cek__lender_close(n->lender);
    cek__threads_destroy(n->threads);
    return NULL;
}

START_TEST(pools_that_borrow_from_each_other_run_every_task_once)
{
    cpu_lender lenders[2];
    neighbour both[2];
    pthread_t threads[2];
    const int cpu = sched_getcpu();

    memset(lenders, 0, sizeof lenders);
    for (int i = 0; i < 2; i++) {
        const cpu_loan loan = { .from = &lenders[1 - i], .guests = 1, .cpus = &cpu };
        both[i] = (neighbour){ .lender = &lenders[i], .runs = i == _i ? 300 : 3000 };
        ck_assert_int_eq(cek__threads_create_borrowing(1 + _i, NULL, 0, &loan, &both[i].threads), 0);
    }
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, neighbour_main, &both[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
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

int main(void)
{
    Suite *suite = suite_create("cpu_threads");
    TCase *threads = tcase_create("pool");
    tcase_set_timeout(threads, 60);
    tcase_add_loop_test(threads, every_task_runs_once_and_is_visible, 1, WORKERS + 1);
    tcase_add_loop_test(threads, workers_begin_with_shares_of_their_own, 0, 4);
    tcase_add_test(threads, the_share_of_one_who_is_busy_is_run_by_others);
    tcase_add_test(threads, brief_runs_that_are_far_apart_wake_nobody);
    tcase_add_test(threads, runs_for_those_who_are_awake_get_these_and_wake_nobody);
    tcase_add_test(threads, operations_that_wake_nobody_are_shared_if_each_worker_has_enough_of_them);
    tcase_add_test(threads, brief_runs_that_follow_each_other_get_helpers);
    tcase_add_test(threads, brief_runs_that_helpers_delay_are_the_callers_alone);
    tcase_add_test(threads, brief_runs_that_delay_what_comes_next_are_the_callers_alone);
    tcase_add_test(threads, no_pool_is_one_worker);
    tcase_add_test(threads, several_callers_of_one_pool_do_not_mix);
    tcase_add_test(threads, a_run_inside_a_task_is_inline);
    tcase_add_test(threads, a_forked_child_may_run);
    tcase_add_test(threads, a_forked_child_on_the_cpu_of_a_helper_changes_no_places);
    tcase_add_test(threads, helpers_keep_to_their_cpus_and_callers_are_left_alone);
    tcase_add_test(threads, a_helper_that_does_not_run_goes_on_in_the_place_of_the_caller_that_waits);
    tcase_add_test(threads, helpers_block_all_signals_and_the_callers_mask_stays);
    tcase_add_test(threads, a_core_in_no_operation_takes_tasks_of_another_pool);
    tcase_add_test(threads, a_core_is_given_back_when_its_own_device_begins);
    tcase_add_test(threads, nothing_is_borrowed_from_a_device_that_is_not_there);
    tcase_add_test(threads, brief_runs_borrow_nothing);
    tcase_add_loop_test(threads, pools_that_borrow_from_each_other_run_every_task_once, 0, 2);
    tcase_add_test(threads, impossible_pools_are_refused);
    suite_add_tcase(suite, threads);
    return suite_run(suite);
}
