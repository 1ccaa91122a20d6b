/* fault.c - counters that make one chosen allocation or system call fail.
 *
 * Owns: one counter per kind of fault. Must not know what fails or how it is reported. */
#include "core/base/fault.h"

#include <stdatomic.h>

static atomic_long remaining[CEK__FAULT_COUNT];

void cek__fault_set(cek__fault kind, long nth)
{
    atomic_store(&remaining[kind], nth);
}

bool cek__fault_pending(cek__fault kind)
{
    return atomic_load(&remaining[kind]) > 0;
}

bool cek__fault_hit(cek__fault kind)
{
    if (atomic_load_explicit(&remaining[kind], memory_order_relaxed) <= 0)
        return false;
    /* Several threads may come past at once; the one that takes the counter from 1 to 0 fails. */
    return atomic_fetch_sub(&remaining[kind], 1) == 1;
}
