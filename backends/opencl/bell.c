/* SPDX-License-Identifier: MIT
 *
 * bell.c - a thread sleeps until the driver tells that a command has ended.
 *
 * The driver may ring late, on any thread, or never, after whoever waited has gone: so a bell belongs to both, and
 * stays until both are done with it. One that never rings is left to the driver.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "backends/opencl/opencl.h"

struct bell {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool rang;
    uint32_t users;
};

static void bell_leave(bell *b, bool rings)
{
    pthread_mutex_lock(&b->lock);
    b->rang |= rings;
    bool last = !--b->users;
    if (rings)
        pthread_cond_signal(&b->changed);
    pthread_mutex_unlock(&b->lock);
    if (!last)
        return;
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

static void CL_CALLBACK ring(cl_event event, cl_int status, void *user)
{
    (void)event, (void)status;
    bell_leave(user, true);
}

bell *cek__bell_hang(cl_event event)
{
    pthread_condattr_t monotonic;
    bell *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->users = 2;
    pthread_mutex_init(&made->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&made->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (!clSetEventCallback(event, CL_COMPLETE, ring, made))
        return made;
    bell_leave(made, false);
    bell_leave(made, false);
    return NULL;
}

bool cek__bell_wait(bell *b, uint64_t ns)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    ns += (uint64_t)until.tv_nsec;
    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    pthread_mutex_lock(&b->lock);
    while (!b->rang && pthread_cond_timedwait(&b->changed, &b->lock, &until) != ETIMEDOUT)
        ;
    bool rang = b->rang;
    pthread_mutex_unlock(&b->lock);
    return rang;
}

void cek__bell_drop(bell *b)
{
    if (b)
        bell_leave(b, false);
}
