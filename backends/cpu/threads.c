/* threads.c - the pool declared in threads.h.
 *
 * Owns: the protocol by which a run is opened, joined, drained and closed.
 * Must not know: what a task computes.
 *
 * One word, `state`, holds a run's life: its low bits count the helpers inside the run, one bit
 * says that the run may be joined, the rest number the runs. A helper joins by raising the count
 * while the run is open, and leaves by lowering it; the caller closes the run when no task is left
 * to hand out and waits for the count to fall to 0. So a helper that wakes too late simply finds
 * the run closed: the caller never waits for a thread that has no task. Fields of the job are
 * written only while the run is closed and the count is 0.
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
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    COUNT_MASK = 0xffff, /* helpers inside the run */
    OPEN = 0x10000,
    RUN_STEP = 0x20000, /* the run's number is what lies above */
    WAKE_HELPERS = 1,
    WAKE_CALLER = 2,
    WAKE_GUESTS = 4, /* futex bit sets: who sleeps on `state` */
    WORKERS_MAX = 4096,
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
};

typedef struct helper {
    struct cpu_threads *threads;
    const cpu_lender *from; /* a guest's */
    pthread_t thread;
    int worker;
    int cpu;                 /* pinned to it; -1 = may run on all of the pool's */
    _Atomic uint32_t inside; /* the run; written by the helper */
    clockid_t clock;         /* its processor time, */
    int64_t ran_ns;          /* and what that was when the caller looked last */
} helper;

struct cpu_threads {
    _Atomic uint32_t state;
    _Atomic uint32_t sleepers; /* helpers in, or on the way into, the futex */
    _Atomic uint32_t guests_asleep;
    _Atomic uint32_t caller_sleeps;
    _Atomic uint32_t stop;
    char pad0[44]; /* `next` is hammered by all workers: a cache line of its own */
    _Atomic int64_t next;
    char pad1[56];
    int64_t tasks;
    cpu_task *fn;
    void *arg;
    atomic_flag busy;
    int workers, started; /* guests among them */
    const cpu_lender *lender;
    uint32_t begun; /* by the lender when the caller looked last */
    int64_t spin_ns;
    _Atomic int64_t brief_since, brief_last; /* when brief runs began to follow each other while helpers slept */
    pid_t pid;
    int free_cpu; /* the CPU left to the caller; -1 = helpers are not pinned */
    helper helpers[];
};

/* Until `end` by the clock of now_ns, or without end where that is NULL. */
static void futex_sleep(_Atomic uint32_t *word, uint32_t seen, const struct timespec *end, uint32_t who)
{
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, seen, end, NULL, who);
}

static void futex_wake(_Atomic uint32_t *word, uint32_t who)
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

/* Waits, spinning, until done(state) or the time is up or the core is needed; returns whether done. */
static int spin(cpu_threads *threads, int (*done)(uint32_t state, uint32_t last), uint32_t last, const cpu_lender *from)
{
    const int64_t end = now_ns() + threads->spin_ns;
    do {
        for (int i = 0; i < 32; i++) {
            if (is_needed(from))
                return 0;
            if (done(atomic_load_explicit(&threads->state, memory_order_acquire), last))
                return 1;
            relax();
        }
    } while (now_ns() < end);
    return 0;
}

static int is_new_run(uint32_t state, uint32_t last)
{
    return (state & OPEN) && (state & ~COUNT_MASK) != last;
}
static int is_empty(uint32_t state, uint32_t last)
{
    (void)last;
    return (state & COUNT_MASK) == 0;
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
        futex_wake(&threads->state, WAKE_GUESTS);
}

/* Executes tasks until none is left, or the core is needed; returns whether none is left. */
static int drain(cpu_threads *threads, int worker, const cpu_lender *from)
{
    const int64_t tasks = threads->tasks;
    while (!is_needed(from)) {
        const int64_t task = atomic_fetch_add_explicit(&threads->next, 1, memory_order_relaxed);
        if (task >= tasks)
            return 1;
        threads->fn(threads->arg, task, worker);
        if (worker == 0)
            guests_call(threads);
    }
    return 0;
}

/* Joins the open run unless it is `*last`, the one this helper was in before; returns whether it
 * joined. */
static int join(cpu_threads *threads, uint32_t *last)
{
    uint32_t state = atomic_load_explicit(&threads->state, memory_order_acquire);
    while (is_new_run(state, *last))
        if (atomic_compare_exchange_weak_explicit(&threads->state, &state, state + 1, memory_order_acq_rel,
                                                  memory_order_acquire)) {
            *last = state & ~(uint32_t)COUNT_MASK;
            return 1;
        }
    return 0;
}

static void leave(cpu_threads *threads)
{
    const uint32_t state = atomic_fetch_sub(&threads->state, 1) - 1;
    if ((state & COUNT_MASK) == 0 && atomic_load(&threads->caller_sleeps))
        futex_wake(&threads->state, WAKE_CALLER);
}

static void helper_sleep(helper *self, uint32_t last)
{
    cpu_threads *threads = self->threads;
    _Atomic uint32_t *asleep = self->from ? &threads->guests_asleep : &threads->sleepers;

    atomic_fetch_add(asleep, 1);
    for (;;) {
        const uint32_t state = atomic_load(&threads->state);
        if ((is_new_run(state, last) && !is_needed(self->from)) || atomic_load(&threads->stop))
            break;
        futex_sleep(&threads->state, state, NULL, self->from ? WAKE_GUESTS : WAKE_HELPERS);
    }
    atomic_fetch_sub(asleep, 1);
}

static void *helper_main(void *arg)
{
    helper *self = arg;
    cpu_threads *threads = self->threads;
    uint32_t last = 0; /* runs are numbered from 1 */

    while (!atomic_load(&threads->stop)) {
        if (!is_needed(self->from) && join(threads, &last)) {
            atomic_store_explicit(&self->inside, 1, memory_order_relaxed);
            if (!drain(threads, self->worker, self->from))
                last = 0; /* a guest may come back to it */
            atomic_store_explicit(&self->inside, 0, memory_order_relaxed);
            leave(threads);
        } else if (!spin(threads, is_new_run, last, self->from)) {
            helper_sleep(self, last);
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
 * waits for it, for milliseconds. */
static void make_way(cpu_threads *threads)
{
    if (threads->free_cpu < 0)
        return;
    const int cpu = sched_getcpu();
    for (int i = 1; i < threads->workers && cpu != threads->free_cpu; i++)
        if (threads->helpers[i].cpu == cpu)
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

/* Opens run number +1. The state's old count is 0 and OPEN is clear; the sum wraps after 32767
 * runs, past 0. */
static void run_open(cpu_threads *threads)
{
    uint32_t number = (atomic_load(&threads->state) & ~(uint32_t)(COUNT_MASK | OPEN)) + RUN_STEP;
    if (number == 0)
        number = RUN_STEP;
    make_way(threads);
    atomic_store(&threads->state, number | OPEN);
    if (atomic_load(&threads->sleepers))
        futex_wake(&threads->state, WAKE_HELPERS);
    guests_call(threads);
}

static void run_close(cpu_threads *threads)
{
    uint32_t state = atomic_fetch_and(&threads->state, ~(uint32_t)OPEN) & ~(uint32_t)OPEN;
    if (is_empty(state, 0) || spin(threads, is_empty, 0, NULL))
        return;
    atomic_store(&threads->caller_sleeps, 1);
    for (int64_t end = 0; !is_empty(state = atomic_load(&threads->state), 0);) {
        const int64_t now = now_ns();
        if (threads->free_cpu >= 0 && now >= end) { /* others that leave end the sleep, too */
            places_leave(threads, end > 0);
            end = now + LOOK_NS;
        }
        const struct timespec at = { .tv_sec = end / 1000000000, .tv_nsec = end % 1000000000 };
        futex_sleep(&threads->state, state, threads->free_cpu >= 0 ? &at : NULL, WAKE_CALLER);
    }
    atomic_store(&threads->caller_sleeps, 0);
}

void cek__threads_run(cpu_threads *threads, int64_t tasks, cpu_task *fn, void *arg)
{
    if (tasks <= 1 || threads == NULL || threads->workers == 1 ||
        atomic_flag_test_and_set_explicit(&threads->busy, memory_order_acquire)) {
        for (int64_t task = 0; task < tasks; task++)
            fn(arg, task, 0);
        return;
    }
    if (getpid() == threads->pid) {
        threads->fn = fn;
        threads->arg = arg;
        threads->tasks = tasks;
        atomic_store_explicit(&threads->next, 0, memory_order_relaxed);
        run_open(threads);
        drain(threads, 0, NULL);
        run_close(threads);
    } else { /* a forked child has no helpers */
        for (int64_t task = 0; task < tasks; task++)
            fn(arg, task, 0);
    }
    atomic_flag_clear_explicit(&threads->busy, memory_order_release);
}

/* Whether brief runs follow each other so closely that helpers, once awake, would stay so, and have for as long as
 * waking them takes. */
static int is_steady(cpu_threads *threads)
{
    const int64_t now = now_ns(), last = atomic_exchange_explicit(&threads->brief_last, now, memory_order_relaxed);
    if (now - last > threads->spin_ns)
        atomic_store_explicit(&threads->brief_since, now, memory_order_relaxed);
    return now - atomic_load_explicit(&threads->brief_since, memory_order_relaxed) > threads->spin_ns;
}

void cek__threads_run_brief(cpu_threads *threads, int64_t tasks, cpu_task *fn, void *arg)
{
    /* a run that is opened may wake guests, too */
    if (threads && (threads->lender || (atomic_load(&threads->sleepers) && !is_steady(threads))))
        threads = NULL;
    cek__threads_run(threads, tasks, fn, arg);
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
    cpu_threads *threads = calloc(1, sizeof *threads + (size_t)workers * sizeof *threads->helpers);
    if (threads == NULL)
        return ENOMEM;
    threads->workers = workers;
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
    /* a change of the state's number makes every futex_sleep that is about to begin return at once */
    atomic_fetch_add(&threads->state, RUN_STEP);
    futex_wake(&threads->state, WAKE_HELPERS | WAKE_GUESTS);
    for (int i = 1; i <= threads->started; i++)
        pthread_join(threads->helpers[i].thread, NULL);
    free(threads);
}

int cek__threads_workers(const cpu_threads *threads)
{
    return threads ? threads->workers : 1;
}
