/* SPDX-License-Identifier: MIT
 *
 * hosts.c - see hosts.h.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "backends/sim/hosts.h"

/* A thread that works for so long without a call is none that the devices' clock should wait for. */
#define PATIENCE_NS UINT64_C(10000000000)

struct cek__host_thread {
    cek__host_thread *next;
    long id;
    atomic_bool gone;
    atomic_bool asking; /* on its way to the lock, to ask and no more */
    bool asks, woken;
    const void *waits_for;
    uint64_t asked_ns;
    const void *first; /* that it asked for in this round: asking again, it has looked at all that it looks at */
    uint64_t round;
    bool looked;
};

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- threads that call ---- */

static void thread_ends(void *thread)
{
    atomic_store(&((cek__host_thread *)thread)->gone, true);
}

bool cek__hosts_init(cek__hosts *h, pthread_mutex_t *lock, uint64_t quiet_ns)
{
    *h = (cek__hosts){ .lock = lock, .quiet_ns = quiet_ns, .acted_ns = now_ns() };
    return pthread_key_create(&h->key, thread_ends) == 0;
}

void cek__hosts_fini(cek__hosts *h)
{
    pthread_key_delete(h->key);
    while (h->threads) {
        cek__host_thread *next = h->threads->next;
        free(h->threads);
        h->threads = next;
    }
}

void cek__hosts_enter(cek__hosts *h)
{
    atomic_fetch_add(&h->entering, 1);
    pthread_mutex_lock(h->lock);
    atomic_fetch_sub(&h->entering, 1);
}

void cek__hosts_enter_to_ask(cek__hosts *h)
{
    cek__host_thread *t = pthread_getspecific(h->key);
    if (!t) {
        cek__hosts_enter(h);
        return;
    }
    atomic_store(&t->asking, true);
    pthread_mutex_lock(h->lock);
    atomic_store(&t->asking, false);
}

/* NULL: no memory, and the thread is judged by what the system says of it. */
static cek__host_thread *self(cek__hosts *h)
{
    cek__host_thread *t = pthread_getspecific(h->key);
    if (t)
        return t;
    for (t = h->threads; t && !atomic_load(&t->gone); t = t->next)
        ;
    if (!t) {
        t = calloc(1, sizeof *t);
        if (!t)
            return NULL;
        t->next = h->threads;
        h->threads = t;
    }
    cek__host_thread *next = t->next;
    *t = (cek__host_thread){ .next = next, .id = syscall(SYS_gettid) };
    if (pthread_setspecific(h->key, t)) {
        atomic_store(&t->gone, true);
        return NULL;
    }
    return t;
}

static void round_begin(cek__hosts *h)
{
    h->round++;
    h->acted_ns = now_ns();
    h->seen_quiet = false;
}

void cek__hosts_acted(cek__hosts *h)
{
    cek__host_thread *t = self(h);
    if (t) {
        t->asks = t->woken = false;
        t->waits_for = NULL;
    }
    round_begin(h);
}

void cek__hosts_asked(cek__hosts *h, const void *what)
{
    cek__host_thread *t = self(h);
    if (!t)
        return;
    t->asks = true;
    t->asked_ns = now_ns();
    if (t->round != h->round) {
        t->round = h->round;
        t->first = what;
        t->looked = false;
    } else if (t->first == what) {
        t->looked = true;
    }
}

void cek__hosts_waits(cek__hosts *h, const void *what)
{
    cek__host_thread *t = self(h);
    if (!t)
        return;
    t->asks = false;
    t->waits_for = what;
}

void cek__hosts_wake(cek__hosts *h, const void *what)
{
    for (cek__host_thread *t = h->threads; t; t = t->next)
        if (t->waits_for == what) {
            t->waits_for = NULL;
            t->woken = true;
        }
    round_begin(h);
}

/* ---- all threads ---- */

typedef enum verdict { RESTS, BUSY, ASK_SYSTEM } verdict;

static bool still_asks(const cek__hosts *h, const cek__host_thread *t)
{
    return atomic_load(&t->asking) || (t->asks && now_ns() - t->asked_ns < h->quiet_ns);
}

static verdict judge(const cek__hosts *h, const cek__host_thread *t)
{
    if (t->woken)
        return BUSY;
    if (t->waits_for)
        return RESTS;
    if (still_asks(h, t))
        return t->asks && t->round == h->round && t->looked ? RESTS : BUSY;
    return ASK_SYSTEM;
}

static bool callers_rest(const cek__hosts *h)
{
    for (const cek__host_thread *t = h->threads; t; t = t->next)
        if (!atomic_load(&t->gone) && judge(h, t) == BUSY)
            return false;
    return true;
}

static bool is_judged(cek__hosts *h, long id)
{
    bool judged = false;
    pthread_mutex_lock(h->lock);
    for (const cek__host_thread *t = h->threads; t && !judged; t = t->next)
        judged = t->id == id && !atomic_load(&t->gone) && judge(h, t) != ASK_SYSTEM;
    pthread_mutex_unlock(h->lock);
    return judged;
}

/* The state is behind the name, which may hold anything but ends with the last ')'. A thread that has ended rests. */
static bool sleeps(const char *id)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", id);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return true;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0)
        return true;
    text[length] = 0;
    const char *state = strrchr(text, ')');
    return !state || !state[1] || !strchr("RD", state[2]);
}

/* Whether all other threads of the process sleep or are judged by what they asked. Without the lock. */
static bool others_sleep(cek__hosts *h)
{
    DIR *tasks = opendir("/proc/self/task");
    long own = syscall(SYS_gettid);
    bool all = true;
    if (!tasks) { /* nothing says: they have if nobody has called for a while */
        pthread_mutex_lock(h->lock);
        all = now_ns() - h->acted_ns > h->quiet_ns;
        pthread_mutex_unlock(h->lock);
        return all;
    }
    for (struct dirent *task = readdir(tasks); task && all; task = readdir(tasks)) {
        long id = strtol(task->d_name, NULL, 10);
        all = id <= 0 || id == own || is_judged(h, id) || sleeps(task->d_name);
    }
    closedir(tasks);
    return all;
}

bool cek__hosts_rest(cek__hosts *h)
{
    uint64_t round = h->round;
    if (h->looking)
        return false;
    if (now_ns() - h->acted_ns > PATIENCE_NS)
        return true;
    if (!callers_rest(h))
        return false;
    h->looking = true;
    pthread_mutex_unlock(h->lock);
    bool rest = others_sleep(h);
    pthread_mutex_lock(h->lock);
    h->looking = false;
    if (!rest || h->round != round || atomic_load(&h->entering) > 0 || !callers_rest(h)) {
        h->seen_quiet = h->seen_quiet && h->round == round && rest;
        return false;
    }
    if (h->seen_quiet)
        return true;
    h->seen_quiet = true;
    h->round++;
    return false;
}
