/* SPDX-License-Identifier: MIT
 *
 * hosts.h - the threads of the host, and whether they have all done what they could at this instant.
 *
 * A virtual clock stands still while the host works, so that what one thread hands to another takes no time however the
 * machine schedules them. The host has come to rest when every thread of the process sleeps, or waits here, or asks the
 * same question over and over; and still does when everybody was looked at again, since a thread may wake another in
 * between. Sleeping is what the system says (/proc); where it says nothing, the host is at rest when it has not called
 * for a while.
 *
 * Knows no device and no time but the machine's. The lock is the caller's, one for all calls.
 */
#ifndef CEK_BACKENDS_SIM_HOSTS_H
#define CEK_BACKENDS_SIM_HOSTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct cek__host_thread cek__host_thread;

typedef struct cek__hosts {
    pthread_mutex_t *lock;
    pthread_key_t key;    /* of each thread: its cek__host_thread */
    atomic_uint entering; /* threads on their way to the lock to do something: they sleep, but not for long */
    cek__host_thread *threads;
    uint64_t quiet_ns;        /* who has not asked for so long does not ask any more */
    uint64_t round;           /* of looking at everybody; a new one begins whenever a thread does something */
    uint64_t acted_ns;        /* when one did for the last time */
    bool looking, seen_quiet; /* somebody looks at /proc; everybody was quiet when looked at first */
} cek__hosts;

/* False: no memory. */
bool cek__hosts_init(cek__hosts *hosts, pthread_mutex_t *lock, uint64_t quiet_ns);
void cek__hosts_fini(cek__hosts *hosts);

/* Takes the lock. */
void cek__hosts_enter(cek__hosts *hosts);
/* As well, of a thread that will only ask: many that do so in turn, with one of them always on its way, are at rest. */
void cek__hosts_enter_to_ask(cek__hosts *hosts);

/* The calling thread did something, or learned something: others may hear of it. */
void cek__hosts_acted(cek__hosts *hosts);
/* It asked for `what` and was told that it has not happened. */
void cek__hosts_asked(cek__hosts *hosts, const void *what);
/* It waits here for `what`; until the next cek__hosts_acted. */
void cek__hosts_waits(cek__hosts *hosts, const void *what);
/* Whoever waits for `what` will go on: until it has acted, nobody is at rest. */
void cek__hosts_wake(cek__hosts *hosts, const void *what);

/* Whether all are at rest. Gives up the lock for a while. */
bool cek__hosts_rest(cek__hosts *hosts);

#endif
