/* threads.c - the pool declared in threads.h.
 *
 * Owns: the protocol by which a run is opened, joined, drained and ended.
 * Must not know: what a task computes.
 *
 * One word holds a run's life: how many of its tasks nobody has yet, and how many helpers are inside. A helper joins
 * where tasks are left, and has a right to one by the same exchange; who finds none left has no part in the run any
 * more. So a helper that comes too late changes nothing: the caller never waits for a thread that has no task. The
 * job lies beside the word, and is written only while no task is left and nobody inside: to give a task to a core that
 * spins costs the way of one cache line, and to learn that it is done the way back.
 *
 * Which one it is says a counter beside it: the next of his share, or where that is used up, of another's. So the same
 * tasks of runs that follow each other mostly meet the core whose caches hold what they read and write.
 *
 * A helper whose core other processes take may be in the middle of the last task, not running, for as long as the
 * kernel gives them, while the caller that waits for it leaves its own core idle. So a caller that waits for long looks
 * at the processor time of the helpers inside, and changes places with one that got none.
 *
 * A guest is a helper that joins, and goes on to its next task, only while its lender is in no operation. It does not
 * learn when that begins, which would cost the lender a call of the kernel each time: the caller looks when it opens a
 * run and after each of its tasks, and wakes guests whose lender was in none twice in a row. */
#include "backends/cpu/threads.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "backends/cpu/sharing.h"

enum {
    WAKE_HELPERS = 1,
    WAKE_CALLER = 2,
    WAKE_GUESTS = 4, /* futex bit sets: who sleeps */
    WORKERS_MAX = 4096,
    TASKS_MAX = INT32_MAX - WORKERS_MAX, /* of a run: workers may ask once more each */
    /* Kernels take 32 KiB at most; the rest is for the C library, which keeps thread-local memory there, and for
     * sanitizers. */
    STACK_BYTES = 1 << 20,
    CPU_LIMIT = 8192, /* CPU numbers are below this */
    /* Spinning for as long as a futex wake-up takes (50 to 80 us were measured) costs at most twice
     * the best choice. */
    SPIN_NS = 50000,
    /* How long a caller waits before it looks whether helpers are running: several times what looking and changing
     * places take, a twentieth of what the kernel gives another process at once (3 to 4 ms). */
    LOOK_NS = 150000,
    LINES = 128, /* two cache lines: some processors fetch them in pairs */
    SHARES = 21, /* as many as fit there beside a run */
};

/* A run: in the upper half tasks that nobody has yet, negative once they were asked for in vain; in the lower half the
 * helpers inside. Nobody comes in where no task is left. */
#define ONE_TASK ((uint64_t)1 << 32)

static int32_t tasks_left(uint64_t run)
{
    return (int32_t)(run >> 32);
}
static uint32_t helpers_inside(uint64_t run)
{
    return (uint32_t)run;
}

typedef struct helper {
    _Alignas(LINES / 2) struct cpu_threads *threads;
    const cpu_lender *from; /* a guest's */
    pthread_t thread;
    int worker;
    int cpu;                 /* pinned to it; -1 = may run on all of the pool's */
    _Atomic uint32_t inside; /* the run; written by the helper */
    clockid_t clock;         /* its processor time, */
    int64_t ran_ns;          /* and what that was when the caller looked last */
} helper;

struct cpu_threads {
    /* passes between cores in every run */
    _Alignas(LINES) _Atomic uint64_t run;
    int64_t begin; /* the number of the first task */
    cpu_task *fn;
    void *arg;
    int32_t owners;        /* of shares: own workers, no more than there are tasks */
    int32_t share, larger; /* tasks of each, and how many owners have one more */
    _Atomic int32_t few_taken[SHARES];
    /* hardly ever changes */
    _Alignas(LINES) _Atomic uint32_t sleepers; /* helpers in, or on the way into, the futex */
    _Atomic uint32_t guests_asleep;
    _Atomic uint32_t caller_sleeps;
    _Atomic uint32_t stop;
    int64_t spin_ns;
    int workers, started;   /* guests among them */
    int own;                /* without these */
    _Atomic int32_t *taken; /* [own]: how many tasks of a share were, or more than there are */
    const cpu_lender *lender;
    pid_t pid;
    int free_cpu; /* the CPU left to the caller; -1 = helpers are not pinned */
    /* the caller's */
    _Alignas(LINES) atomic_flag busy;
    uint32_t begun;                  /* by the lender when the caller looked last */
    int64_t brief_since, brief_last; /* when brief runs began to follow each other while helpers slept */
    cpu_sharing sharing;             /* of brief runs */
    helper helpers[];
};

/* Which half of `run` sleepers look at. */
static void *upper_half(_Atomic uint64_t *run)
{
    return (char *)run + (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 4 : 0);
}
static void *lower_half(_Atomic uint64_t *run)
{
    return (char *)run + (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 4);
}

/* Until `end` by the clock of now_ns, or without end where that is NULL. */
static void futex_sleep(void *word, uint32_t seen, const struct timespec *end, uint32_t who)
{
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, seen, end, NULL, who);
}

static void futex_wake(void *word, uint32_t who)
{
    syscall(SYS_futex, word, FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG, INT_MAX, NULL, NULL, who);
}

static inline void relax(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t = { 0 };
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

/* A guest's core is needed for what it is there for. */
static int is_needed(const cpu_lender *from)
{
    return from != NULL && (atomic_load_explicit(&from->inside, memory_order_acquire) > 0 ||
                            atomic_load_explicit(&from->open, memory_order_relaxed) == 0);
}

/* Waits, spinning, until done(run) or the time is up or the core is needed; returns whether done. */
static int spin(cpu_threads *threads, int (*done)(uint64_t run), const cpu_lender *from)
{
    int64_t end = 0;
    do {
        for (int i = 0; i < 32; i++) {
            if (is_needed(from))
                return 0;
            if (done(atomic_load_explicit(&threads->run, memory_order_acquire)))
                return 1;
            relax();
        }
        if (end == 0)
            end = now_ns() + threads->spin_ns;
    } while (now_ns() < end);
    return 0;
}

static int has_tasks(uint64_t run)
{
    return tasks_left(run) > 0;
}
static int is_empty(uint64_t run)
{
    return helpers_inside(run) == 0;
}

/* Wakes guests where their lender was in no operation when the caller looked last, is in none now, and
 * began none between. */
static void guests_call(cpu_threads *threads)
{
    const cpu_lender *from = threads->lender;
    if (from == NULL)
        return;
    const uint32_t before = threads->begun;
    threads->begun = atomic_load_explicit(&from->begun, memory_order_relaxed);
    if (threads->begun == before && !is_needed(from) && atomic_load(&threads->guests_asleep))
        futex_wake(upper_half(&threads->run), WAKE_GUESTS);
}

/* A task of a share, or -1: all are taken. Shares are alike, the first ones a task larger. */
static int32_t share_take(cpu_threads *threads, int owner)
{
    const int32_t larger = owner < threads->larger, tasks = threads->share + larger;
    const int32_t begin = threads->share * owner + (larger ? owner : threads->larger);
    _Atomic int32_t *taken = &threads->taken[owner];
    if (atomic_load_explicit(taken, memory_order_relaxed) >= tasks)
        return -1;
    const int32_t n = atomic_fetch_add_explicit(taken, 1, memory_order_relaxed);
    return n >= tasks ? -1 : owner % 2 ? begin + tasks - 1 - n : begin + n;
}

/* The task of one who has a right to any, and finds it: there are no more of them than tasks. *owner: the share where
 * he looks first; those before it are used up. */
static int64_t task_take(cpu_threads *threads, int *owner)
{
    int32_t task;
    while ((task = share_take(threads, *owner)) < 0)
        *owner = *owner + 1 < threads->owners ? *owner + 1 : 0;
    return threads->begin + task;
}

/* Executes a task, if any were left when it was asked for, and others until none is left or the core is needed. */
static void drain(cpu_threads *threads, int32_t left, int worker, const cpu_lender *from)
{
    cpu_task *const fn = threads->fn;
    void *const arg = threads->arg;
    int owner = worker % threads->owners;
    while (left > 0) {
        fn(arg, task_take(threads, &owner), worker);
        if (worker == 0)
            guests_call(threads);
        if (is_needed(from))
            return;
        left = tasks_left(atomic_fetch_sub_explicit(&threads->run, ONE_TASK, memory_order_acq_rel));
    }
}

/* Joins where a task is left, and takes it; returns how many were, or 0. */
static int32_t join(cpu_threads *threads)
{
    uint64_t run = atomic_load_explicit(&threads->run, memory_order_acquire);
    while (has_tasks(run))
        if (atomic_compare_exchange_weak_explicit(&threads->run, &run, run - ONE_TASK + 1, memory_order_acq_rel,
                                                  memory_order_acquire))
            return tasks_left(run);
    return 0;
}

static void leave(cpu_threads *threads)
{
    const uint64_t run = atomic_fetch_sub(&threads->run, 1) - 1;
    if (is_empty(run) && atomic_load(&threads->caller_sleeps))
        futex_wake(lower_half(&threads->run), WAKE_CALLER);
}

static void helper_sleep(helper *self)
{
    cpu_threads *threads = self->threads;
    _Atomic uint32_t *asleep = self->from ? &threads->guests_asleep : &threads->sleepers;

    atomic_fetch_add(asleep, 1);
    for (;;) {
        const uint64_t run = atomic_load(&threads->run);
        if ((has_tasks(run) && !is_needed(self->from)) || atomic_load(&threads->stop))
            break;
        futex_sleep(upper_half(&threads->run), (uint32_t)tasks_left(run), NULL,
                    self->from ? WAKE_GUESTS : WAKE_HELPERS);
    }
    atomic_fetch_sub(asleep, 1);
}

static void *helper_main(void *arg)
{
    helper *self = arg;
    cpu_threads *threads = self->threads;

    while (!atomic_load(&threads->stop)) {
        const int32_t left = is_needed(self->from) ? 0 : join(threads);
        if (left > 0) {
            atomic_store_explicit(&self->inside, 1, memory_order_relaxed);
            drain(threads, left, self->worker, self->from);
            atomic_store_explicit(&self->inside, 0, memory_order_relaxed);
            leave(threads);
        } else if (!spin(threads, has_tasks, self->from)) {
            helper_sleep(self);
        }
    }
    return NULL;
}

/* A CPU that has gone away since is no error: the thread then runs where it may. */
static void affinity_set(pthread_t thread, const int *cpus, int n)
{
    cpu_set_t *set = CPU_ALLOC(CPU_LIMIT);
    if (set == NULL)
        return;
    const size_t bytes = CPU_ALLOC_SIZE(CPU_LIMIT);
    CPU_ZERO_S(bytes, set);
    for (int i = 0; i < n; i++)
        CPU_SET_S((size_t)cpus[i], bytes, set);
    pthread_setaffinity_np(thread, bytes, set);
    CPU_FREE(set);
}

/* A helper gets the CPU that was left to the caller, and leaves its own. */
static void places_change(cpu_threads *threads, helper *h)
{
    const int cpu = h->cpu;
    affinity_set(h->thread, &threads->free_cpu, 1);
    h->cpu = threads->free_cpu;
    threads->free_cpu = cpu;
}

/* Helpers have a CPU each, and one is left for the caller. Where the caller has moved to a helper's
 * CPU, the two change places: left alone, a woken helper would queue behind the very thread that
 * waits for it, for milliseconds. In a forked child nobody has the places. */
static void make_way(cpu_threads *threads)
{
    if (threads->free_cpu < 0)
        return;
    const int cpu = sched_getcpu();
    for (int i = 1; i < threads->workers && cpu != threads->free_cpu; i++)
        if (threads->helpers[i].cpu == cpu && getpid() == threads->pid)
            places_change(threads, &threads->helpers[i]);
}

/* For a caller that has nothing to do but to wait: where LOOK_NS have passed since it looked last, a helper that is in
 * a task but did not run meanwhile goes on in the caller's place. */
static void places_leave(cpu_threads *threads, int waited)
{
    const int cpu = sched_getcpu();
    for (int i = 1; i < threads->workers; i++) {
        helper *h = &threads->helpers[i];
        if (h->from || !atomic_load_explicit(&h->inside, memory_order_relaxed))
            continue;
        const int64_t before = h->ran_ns;
        h->ran_ns = clock_ns(h->clock);
        if (waited && cpu == threads->free_cpu && h->ran_ns - before < LOOK_NS / 8) {
            places_change(threads, h);
            return;
        }
    }
}

/* The first task is the caller's, which begins with it before others need have seen the run: a helper that goes to
 * sleep at this very moment finds it in the kernel, or sleeps through it. */
static void run_open(cpu_threads *threads, int32_t tasks)
{
    make_way(threads);
    threads->owners = tasks < threads->own ? tasks : threads->own;
    threads->share = tasks / threads->owners;
    threads->larger = tasks % threads->owners;
    for (int i = 0; i < threads->owners; i++)
        atomic_store_explicit(&threads->taken[i], 0, memory_order_relaxed);
    atomic_store_explicit(&threads->run, (uint64_t)(tasks - 1) * ONE_TASK, memory_order_release);
    if (atomic_load_explicit(&threads->sleepers, memory_order_relaxed))
        futex_wake(upper_half(&threads->run), WAKE_HELPERS);
    guests_call(threads);
}

/* No task is left; until nobody is inside. Returns whether that took so long that a helper hardly ran. */
static int run_end(cpu_threads *threads)
{
    uint64_t run = atomic_load_explicit(&threads->run, memory_order_acquire);
    if (is_empty(run) || spin(threads, is_empty, NULL))
        return 0;
    atomic_store(&threads->caller_sleeps, 1);
    for (int64_t end = 0; !is_empty(run = atomic_load(&threads->run));) {
        const int64_t now = now_ns();
        if (threads->free_cpu >= 0 && now >= end) { /* others that leave end the sleep, too */
            places_leave(threads, end > 0);
            end = now + LOOK_NS;
        }
        const struct timespec at = { .tv_sec = end / 1000000000, .tv_nsec = end % 1000000000 };
        futex_sleep(lower_half(&threads->run), helpers_inside(run), threads->free_cpu >= 0 ? &at : NULL, WAKE_CALLER);
    }
    atomic_store(&threads->caller_sleeps, 0);
    return 1;
}

static void run_alone(int64_t tasks, cpu_task *fn, void *arg)
{
    for (int64_t task = 0; task < tasks; task++)
        fn(arg, task, 0);
}

/* By the caller that has the pool. Returns whether a helper hardly ran. */
static int run_shared(cpu_threads *threads, int64_t tasks, cpu_task *fn, void *arg)
{
    int stalled = 0;
    threads->fn = fn;
    threads->arg = arg;
    for (int64_t begin = 0, some; begin < tasks; begin += some) {
        some = tasks - begin < TASKS_MAX ? tasks - begin : TASKS_MAX;
        threads->begin = begin;
        run_open(threads, (int32_t)some);
        drain(threads, (int32_t)some, 0, NULL);
        stalled |= run_end(threads);
    }
    return stalled;
}

static int pool_take(cpu_threads *threads)
{
    return !atomic_flag_test_and_set_explicit(&threads->busy, memory_order_acquire);
}

static void pool_give(cpu_threads *threads)
{
    atomic_flag_clear_explicit(&threads->busy, memory_order_release);
}

void cek__threads_run(cpu_threads *threads, int64_t tasks, cpu_task *fn, void *arg)
{
    if (tasks <= 1 || threads == NULL || threads->workers == 1 || !pool_take(threads)) {
        run_alone(tasks, fn, arg);
        return;
    }
    run_shared(threads, tasks, fn, arg);
    pool_give(threads);
}

/* A helper that falls asleep meanwhile sleeps through it. */
void cek__threads_run_awake(cpu_threads *threads, int64_t tasks, cpu_task *fn, void *arg)
{
    if (tasks > 1 && threads && threads->workers > 1 && !threads->lender && pool_take(threads)) {
        const int shared = !atomic_load(&threads->sleepers);
        if (shared)
            run_shared(threads, tasks, fn, arg);
        pool_give(threads);
        if (shared)
            return;
    }
    run_alone(tasks, fn, arg);
}

/* Whether brief runs follow each other so closely that helpers, once awake, would stay so, and have for as long as
 * waking them takes. */
static int is_steady(cpu_threads *threads)
{
    const int64_t now = now_ns(), last = threads->brief_last;
    threads->brief_last = now;
    if (now - last > threads->spin_ns)
        threads->brief_since = now;
    return now - threads->brief_since > threads->spin_ns;
}

static void brief_alone(int64_t tasks, cpu_task *fn, cpu_whole *alone, void *arg)
{
    if (alone)
        alone(arg);
    else
        run_alone(tasks, fn, arg);
}

/* A run that is the caller's alone leaves the pool to other callers. */
void cek__threads_run_brief(cpu_threads *threads, double work, int64_t tasks, cpu_task *fn, cpu_whole *alone, void *arg)
{
    /* a run that is opened may wake guests, too */
    if (tasks <= 1 || threads == NULL || threads->workers == 1 || threads->lender || !pool_take(threads)) {
        brief_alone(tasks, fn, alone, arg);
        return;
    }
    cpu_sharing *sharing = &threads->sharing;
    const cpu_sharing_way way = cek__sharing_next(sharing, work, now_ns);
    if (way.shared && (!atomic_load(&threads->sleepers) || is_steady(threads))) {
        if (run_shared(threads, tasks, fn, arg))
            cek__sharing_stalled(sharing, &way);
        pool_give(threads);
        return;
    }
    if (way.shared)
        cek__sharing_missed(sharing, &way);
    pool_give(threads);
    brief_alone(tasks, fn, alone, arg);
}

/* Helpers take no signals (those are the host application's), keep to the device's CPUs, and have the same stack
 * whatever the process's limit (ulimit -s) says. */
static int helper_start(cpu_threads *threads, helper *h, const int *cpus, int n_cpus)
{
    sigset_t all, old;
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error)
        return error;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    error = pthread_create(&h->thread, &attributes, helper_main, h);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
    if (error)
        return error;
    threads->started++;
    if (pthread_getcpuclockid(h->thread, &h->clock) != 0)
        h->clock = CLOCK_MONOTONIC; /* it counts as one that runs */
    if (h->cpu >= 0)
        affinity_set(h->thread, &h->cpu, 1);
    else if (n_cpus > 0)
        affinity_set(h->thread, cpus, n_cpus);
    return 0;
}

static int cpu_of(const cpu_threads *threads, int index, int own, const int *cpus, const cpu_loan *loan)
{
    return index >= own ? loan->cpus[index - own] : threads->free_cpu < 0 ? -1 : cpus[index];
}

int cek__threads_create_borrowing(int workers, const int *cpus, int n_cpus, const cpu_loan *loan, cpu_threads **out)
{
    const int own = workers, guests = loan ? loan->guests : 0;

    *out = NULL;
    if (workers < 1 || guests < 0 || workers > WORKERS_MAX - guests)
        return EINVAL;
    workers += guests;
    const size_t shares = sizeof(struct cpu_threads) + (size_t)workers * sizeof(helper);
    const size_t bytes = shares + (size_t)(own > SHARES ? own : 0) * sizeof(int32_t);
    cpu_threads *threads = aligned_alloc(LINES, (bytes + LINES - 1) / LINES * LINES);
    if (threads == NULL)
        return ENOMEM;
    memset(threads, 0, bytes);
    threads->workers = workers;
    threads->own = own;
    threads->taken = own > SHARES ? (_Atomic int32_t *)((char *)threads + shares) : threads->few_taken;
    threads->lender = guests > 0 ? loan->from : NULL;
    threads->pid = getpid();
    /* with more workers than CPUs a spinning thread keeps the one it waits for from running */
    threads->spin_ns = n_cpus > 0 && own > n_cpus ? 0 : SPIN_NS;
    threads->free_cpu = n_cpus >= own ? cpus[0] : -1;
    atomic_flag_clear(&threads->busy);
    for (int i = 1; i < workers; i++) {
        helper *h = &threads->helpers[i];
        *h = (helper){ .threads = threads,
                       .from = i >= own ? loan->from : NULL,
                       .worker = i,
                       .cpu = cpu_of(threads, i, own, cpus, loan) };
        const int error = helper_start(threads, h, cpus, n_cpus);
        if (error) {
            cek__threads_destroy(threads);
            return error;
        }
    }
    *out = threads;
    return 0;
}

int cek__threads_create(int workers, const int *cpus, int n_cpus, cpu_threads **out)
{
    return cek__threads_create_borrowing(workers, cpus, n_cpus, NULL, out);
}

void cek__threads_destroy(cpu_threads *threads)
{
    if (threads == NULL)
        return;
    if (getpid() != threads->pid) /* nothing to join in a forked child */
        return;
    atomic_store(&threads->stop, 1);
    /* another number makes every futex_sleep that is about to begin return at once */
    atomic_fetch_sub(&threads->run, ONE_TASK);
    futex_wake(upper_half(&threads->run), WAKE_HELPERS | WAKE_GUESTS);
    for (int i = 1; i <= threads->started; i++)
        pthread_join(threads->helpers[i].thread, NULL);
    free(threads);
}

int cek__threads_workers(const cpu_threads *threads)
{
    return threads ? threads->workers : 1;
}
