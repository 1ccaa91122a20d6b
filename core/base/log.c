/* log.c - the process's log callback.
 *
 * Owns: the callback, its user pointer and level. Formats a line and hands it over; never prints by itself.
 * Threads: all functions from any thread. */
#include "core/base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "core/base/text.h"

/* Held for reading during a callback, so that cek_log_set can promise that the former one is gone. A callback may
 * log itself: the default kind of lock lets a reader in again while a writer waits. */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static cek_log_fn log_fn;
static void *log_user;
static atomic_int log_level; /* read without the lock, so that a silent log costs one load */

void cek_log_set(cek_log_fn fn, void *user, int level)
{
    pthread_rwlock_wrlock(&lock);
    log_fn = fn;
    log_user = user;
    atomic_store(&log_level, fn != NULL ? level : 0);
    pthread_rwlock_unlock(&lock);
}

void cek__log(int level, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    if (level > atomic_load_explicit(&log_level, memory_order_relaxed))
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    cek_text_printable(text);

    pthread_rwlock_rdlock(&lock);
    if (log_fn != NULL && level <= atomic_load(&log_level))
        log_fn(log_user, level, text);
    pthread_rwlock_unlock(&lock);
}
