/* threads.h - a small pool of threads per CPU device.
 *
 * Owns: worker threads, their affinity, the hand-out of tasks.
 * Must not know: what a task computes, devices, plugin.h.
 *
 * A pool of W workers is the calling thread plus W - 1 threads. A run hands out the task numbers 0
 * .. tasks-1: each worker has a W-th of them, and who is through with his takes of others'. Which
 * worker gets which task depends on timing, so a task's result must depend on its number alone.
 *
 *     static void scale(void *arg, int64_t task, int worker) { ... }
 *     cek__threads_run(threads, 16, scale, &job);       // returns when all 16 tasks have run
 *
 * A pool may borrow: it then has guests, further threads, that take tasks of its runs while the cores that they stand
 * for are in no operation of their own (cpu_lender). A guest gives such a core back after the task that it is in. So no
 * more threads compute than there are cores, and a core that has nothing to do helps one that has.
 *
 * Several pools may live in one process. Idle workers spin for some microseconds, then sleep in a
 * futex. fork: the child has the memory of the pool but none of its threads. The only call a child
 * may make is cek__threads_run, whose tasks nobody but the caller takes then; the pool leaks there. */
#ifndef CEK_BACKENDS_CPU_THREADS_H
#define CEK_BACKENDS_CPU_THREADS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cpu_threads cpu_threads;

/* The cores of a device, for the one pool that borrows them. All zeros: nobody is there, nothing is lent. */
typedef struct cpu_lender {
    _Atomic uint32_t open;   /* its device is there; */
    _Atomic uint32_t inside; /* calls that are in an operation of it now, */
    _Atomic uint32_t begun;  /* and all that ever were */
    char pad[52];            /* another device's lies behind */
} cpu_lender;
_Static_assert(sizeof(cpu_lender) == 64, "a cache line");

/* clang-format off */
static inline void cek__lender_open(cpu_lender *l) { atomic_fetch_add(&l->open, 1); }
static inline void cek__lender_close(cpu_lender *l) { atomic_fetch_sub(&l->open, 1); }
/* clang-format on */

/* cek__lender_begin, cek__lender_end - around each operation of the device that the cores belong to. NULL: they
 * are not lent. */
static inline void cek__lender_begin(cpu_lender *l)
{
    if (l == NULL)
        return;
    atomic_fetch_add(&l->inside, 1);
    atomic_fetch_add(&l->begun, 1);
}
static inline void cek__lender_end(cpu_lender *l)
{
    if (l != NULL)
        atomic_fetch_sub(&l->inside, 1);
}

/* What a pool borrows: `guests` threads, each on one of `cpus`. The lender must outlive the pool. */
typedef struct cpu_loan {
    const cpu_lender *from;
    int guests;
    const int *cpus;
} cpu_loan;

/* One task. `worker` is in [0, workers) and no two tasks of one run are executed with the same
 * number at once: it selects scratch memory that belongs to the run (never to the threads, see
 * cek__threads_run). */
typedef void cpu_task(void *arg, int64_t task, int worker);

/* cek__threads_create - starts `workers` - 1 threads. Threads that the pool starts run only on `cpus`
 * (`n_cpus` of them, each below 8192; NULL or 0 leaves affinity alone), one on each where there are
 * enough; a calling thread's affinity is never touched. Returns 0 or an errno value (ENOMEM,
 * EAGAIN); on error *out is NULL. */
int cek__threads_create(int workers, const int *cpus, int n_cpus, cpu_threads **out);

/* cek__threads_create_borrowing - the same with guests; NULL or 0 of them: none. */
int cek__threads_create_borrowing(int workers, const int *cpus, int n_cpus, const cpu_loan *loan, cpu_threads **out);

/* cek__threads_destroy - joins the threads. NULL is allowed. No run may be under way. */
void cek__threads_destroy(cpu_threads *threads);

/* cek__threads_workers - the number W given at creation and the guests; the number of scratch areas a run needs. */
int cek__threads_workers(const cpu_threads *threads);

/* cek__threads_run - executes all tasks and returns when the last has finished; its writes are then
 * visible.
 * Threads: any; a caller that finds the pool busy with another run (or calls from inside a task)
 * executes its own tasks inline, as worker 0: it does not wait. Scratch must therefore belong to
 * the call, not to the pool. threads == NULL runs inline. */
void cek__threads_run(cpu_threads *threads, int64_t tasks, cpu_task *fn, void *arg);

/* cek__threads_run_awake - the same for work that is not worth waking anybody up: where a helper sleeps it is the
 * caller's alone. */
void cek__threads_run_awake(cpu_threads *threads, int64_t tasks, cpu_task *fn, void *arg);

/* What all tasks of a run do, as one thread does it best. */
typedef void cpu_whole(void *arg);

/* cek__threads_run_brief - the same for work of some microseconds, less than waking a helper up takes: shared with
 * helpers where trials show that this is faster (sharing.h; `work` in any unit, the same in all calls), and where none
 * sleeps or such work has come for as long as waking takes. Else it is the caller's alone, by `alone` instead of the
 * tasks, if that is not NULL. */
void cek__threads_run_brief(cpu_threads *threads, double work, int64_t tasks, cpu_task *fn, cpu_whole *alone,
                            void *arg);

#endif
