/* thread.c - see thread.h. */
#include "core/base/thread.h"

#include <signal.h>

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
