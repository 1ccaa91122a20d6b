/* fault.h - makes the Nth allocation or the Nth system call of a save fail, for tests.
 *
 * Always compiled in: what is tested is what is shipped. Costs one relaxed load of a counter that stays 0.
 * Counters are per process and shared by all threads. No environment variable reaches them. */
#ifndef CEK_CORE_BASE_FAULT_H
#define CEK_CORE_BASE_FAULT_H

#include <stdbool.h>

#include "core/base/export.h"

typedef enum cek__fault {
    CEK__FAULT_ALLOC, /* cek__malloc and its relatives */
    CEK__FAULT_FILE,  /* each open, write, fsync, close, rename of file.c */
    CEK__FAULT_COUNT
} cek__fault;

/* The `nth` site of this kind passed from now on fails, once (1 = the next); 0 takes the fault back. */
CEK__SHARED void cek__fault_set(cek__fault kind, long nth);

/* True while a fault that was set has not happened yet: the way for a test to know that it has tried every site. */
CEK__SHARED bool cek__fault_pending(cek__fault kind);

/* Called at each site: true means "fail now". */
CEK__SHARED bool cek__fault_hit(cek__fault kind);

#endif
