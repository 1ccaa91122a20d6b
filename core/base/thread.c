/* thread.c - see thread.h. */
#include "core/base/thread.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#define SECOND_NS 1000000000u

enum { STACK_BYTES = 8 << 20 };

int cek__thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    size_t stack;
    int error = pthread_attr_init(&attributes);

    if (error != 0)
        return error;
    pthread_attr_getstacksize(&attributes, &stack);
    if (stack < STACK_BYTES)
        pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(thread, &attributes, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

void cek__cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

uint64_t cek__now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

bool cek__cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ns)
{
    uint64_t until = cek__now_ns() + ns;
    struct timespec t = { .tv_sec = (time_t)(until / SECOND_NS), .tv_nsec = (long)(until % SECOND_NS) };

    return pthread_cond_timedwait(cond, lock, &t) != ETIMEDOUT;
}
