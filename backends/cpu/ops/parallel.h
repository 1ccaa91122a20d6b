/* parallel.h - whether work is worth a second thread, and into how many pieces it is cut.
 *
 * Owns: the thresholds and the estimates of cost.
 * Must not know: what the work is. Pieces depend on the number of threads, so this is for work
 * whose items are independent; sums are cut by shape alone before they come here. */
#ifndef CEK_BACKENDS_CPU_OPS_PARALLEL_H
#define CEK_BACKENDS_CPU_OPS_PARALLEL_H

#include <stdint.h>

#include "backends/cpu/device.h"

/* Rough times on one core, in picoseconds: they only decide between one thread and several, and
 * the size of pieces. */
enum {
    CPU_PS_BYTE = 80,   /* a byte read or written: 12 GB/s */
    CPU_PS_SIMPLE = 60, /* an arithmetic instruction on an element in the first-level cache */
    CPU_PS_EXP = 500,   /* an exponential or the like, per element */
    CPU_PS_WORD = 400,  /* a random word */
    CPU_PS_CALL = 10000 /* entering a kernel for one row, window or piece of a row */
};

enum {
    /* Below this nobody is woken up for an operation. Waking a sleeping thread costs
     * the caller some us and the thread is there 50 us later; if it still spins, 0.2 us. The
     * caller works on meanwhile: 40 us of tanh took 24 us with a second thread that was awake
     * and 41 us with one that slept. */
    CPU_INLINE_NS = 30000,
    /* A worker's part of an operation that is shared with threads that are awake: below this it is not worth the way of
     * the lines that another core wrote. */
    CPU_SHARE_NS = 6000,
    /* A piece: long against the 0.1 us that handing it out costs, short against waiting for a
     * last one. */
    CPU_PIECE_NS = 10000,
    /* Pieces per thread beyond which finer ones balance nothing. */
    CPU_PIECES = 8
};

/* One piece: the items from begin to behind end. `worker` selects scratch memory of the run (0
 * .. workers-1). */
typedef void cpu_range(void *arg, int64_t begin, int64_t end, int worker);

/* cek__cpu_for - calls fn over 0 .. items-1 in pieces that are multiples of `step`. */
void cek__cpu_for(const cpu_dev *dev, int64_t items, int64_t step, uint64_t ps_item, cpu_range *fn, void *arg);

#endif
