/* thread.h - the threads of these libraries: deaf to signals, with a stack that does not depend on who runs them. */
#ifndef CEK_CORE_BASE_THREAD_H
#define CEK_CORE_BASE_THREAD_H

#include <pthread.h>

#include <stdbool.h>
#include <stdint.h>

#include "core/base/export.h"

/* Starts run(arg) on a thread to be joined; 0 or an errno value.
 *
 * It takes no signal: those are the application's. Its stack has the 8 MiB that drivers, and the compilers in them, are
 * used to, or more where the process's limit (ulimit -s) gives more; where the limit gives less, it still has them. */
CEK__SHARED CEK__CHECKED int cek__thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

/* A condition variable on the monotonic clock, and a wait on it for `ns` at most: false if that time went by. */
CEK__SHARED void cek__cond_init(pthread_cond_t *cond);
CEK__SHARED bool cek__cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ns);

/* The monotonic clock. */
CEK__SHARED uint64_t cek__now_ns(void);

#endif
