/* thread.h - the threads of these libraries: deaf to signals, with a stack that does not depend on who runs them. */
#ifndef CEK_CORE_BASE_THREAD_H
#define CEK_CORE_BASE_THREAD_H

#include <pthread.h>

#include "core/base/export.h"

/* Starts run(arg) on a thread to be joined; 0 or an errno value.
 *
 * It takes no signal: those are the application's. Its stack has the 8 MiB that drivers, and the compilers in them, are
 * used to, or more where the process's limit (ulimit -s) gives more; where the limit gives less, it still has them. */
CEK__SHARED CEK__CHECKED int cek__thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

#endif
