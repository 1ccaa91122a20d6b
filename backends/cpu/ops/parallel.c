/* parallel.c - cutting independent work into pieces; see parallel.h. */
#include "backends/cpu/ops/parallel.h"

typedef struct job {
    cpu_range *fn;
    void *arg;
    int64_t items, piece;
} job;

static void job_task(void *arg, int64_t task, int worker)
{
    const job *j = arg;
    const int64_t begin = task * j->piece, end = begin + j->piece;

    j->fn(j->arg, begin, end < j->items ? end : j->items, worker);
}

void cek__cpu_for(const cpu_dev *dev, int64_t items, int64_t step, uint64_t ps_item, cpu_range *fn, void *arg)
{
    const double ns = (double)items * (double)ps_item * 1e-3;
    const double most = (double)CPU_PIECES * dev->workers;
    double pieces = ns / CPU_PIECE_NS;
    job j = { .fn = fn, .arg = arg, .items = items };

    if (items <= 0)
        return;
    if (dev->workers == 1 || ns < (double)dev->workers * CPU_SHARE_NS) {
        fn(arg, 0, items, 0);
        return;
    }
    if (ns < CPU_INLINE_NS) {
        j.piece = ((items - 1) / dev->workers / step + 1) * step;
        cek__threads_run_awake(dev->threads, (items - 1) / j.piece + 1, job_task, &j);
        return;
    }
    if (pieces > most)
        pieces = most;
    j.piece = (int64_t)((double)items / pieces / (double)step + 1) * step;
    cek__threads_run(dev->threads, (items + j.piece - 1) / j.piece, job_task, &j);
}
