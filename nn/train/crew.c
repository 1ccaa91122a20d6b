/* crew.c - see crew.h. Members sleep on a condition variable between jobs. */
#include "nn/train/crew.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "core/base/thread.h"
#include "core/device/gate.h"

typedef struct member {
    cek__crew *crew;
    size_t index;
    cek_device *device; /* NULL: none */
    bool lost;          /* it said so itself */
    bool has_thread;
    pthread_t thread; /* of an inline device */
    cek__gate *gate;  /* of another; NULL: it was left, and is started again where the device is not lost */
    pthread_cond_t work;
    cek__crew_fn fn; /* the job, until it is done; NULL: none */
    void *user;
    cek_status status;
    char text[CEK__ERROR_TEXT_MAX];
} member;

struct cek__crew {
    size_t count;
    member *members;
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool stop;
};

static bool is_gated(const member *m)
{
    return m->device != NULL && cek__gate_is_needed(m->device);
}

/* ---- a member ---- */

static void end(member *m, cek_status status)
{
    m->status = status;
    if (status != CEK_OK)
        strcpy(m->text, cek_error_text());
    m->fn = NULL;
}

static void member_run(void *arg)
{
    member *m = arg;
    cek__crew *crew = m->crew;
    cek_status st;

    pthread_mutex_lock(&crew->lock);
    for (;;) {
        while (m->fn == NULL && !crew->stop)
            pthread_cond_wait(&m->work, &crew->lock);
        if (m->fn == NULL)
            break;
        pthread_mutex_unlock(&crew->lock);
        st = m->fn(m->user, m->index);
        pthread_mutex_lock(&crew->lock);
        end(m, st);
        pthread_cond_signal(&crew->done);
    }
    pthread_mutex_unlock(&crew->lock);
}

static void *member_main(void *arg)
{
    member_run(arg);
    return NULL;
}

static cek_status member_start(member *m)
{
    int error;

    if (is_gated(m))
        return cek__gate_start(m->device, member_run, m, &m->gate);
    error = cek__thread_start(&m->thread, member_main, m);
    if (error != 0)
        return cek__fail_errno(CEK_OUT_OF_MEMORY, error, "thread of device %zu of %zu", m->index + 1, m->crew->count);
    return CEK_OK;
}

/* The lock is held. A job that cannot be taken has failed at once. */
static void give(member *m, cek__crew_fn fn, void *user)
{
    cek_status st = CEK_OK;

    if (is_gated(m) && m->gate == NULL) {
        st = cek__gate_check(m->device);
        if (st == CEK_OK)
            st = member_start(m);
    }
    if (st != CEK_OK) {
        end(m, st);
        return;
    }
    m->user = user;
    m->fn = fn;
    pthread_cond_signal(&m->work);
}

/* The lock is held. */
static void await(member *m)
{
    cek__crew *crew = m->crew;

    while (m->fn != NULL) {
        if (m->gate == NULL)
            pthread_cond_wait(&crew->done, &crew->lock);
        else if (!cek__cond_wait(&crew->done, &crew->lock, cek__gate_slice(m->device)) && m->fn != NULL &&
                 cek__gate_watch(m->gate)) {
            m->gate = NULL;
            end(m, CEK_DEVICE_LOST);
        }
    }
}

/* ---- life ---- */

cek_status cek__crew_create(cek_device *const *devices, size_t members, cek__crew **out)
{
    cek_status st;
    cek__crew *crew = NULL;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *crew, &crew));
    pthread_mutex_init(&crew->lock, NULL);
    cek__cond_init(&crew->done);
    CEK_TRY(cek__calloc(members, sizeof *crew->members, &crew->members));
    for (; crew->count < members; crew->count++) {
        member *m = &crew->members[crew->count];

        *m = (member){ .crew = crew, .index = crew->count, .device = devices != NULL ? devices[crew->count] : NULL };
        cek__cond_init(&m->work);
    }
    for (size_t i = 0; i < members; i++) {
        member *m = &crew->members[i];

        if (members > 1 || is_gated(m)) {
            CEK_TRY(member_start(m));
            m->has_thread = true;
        }
    }
    *out = crew;
    return CEK_OK;
out:
    cek__crew_free(crew);
    return st;
}

void cek__crew_free(cek__crew *crew)
{
    if (crew == NULL)
        return;
    pthread_mutex_lock(&crew->lock);
    crew->stop = true;
    for (size_t i = 0; i < crew->count; i++)
        pthread_cond_signal(&crew->members[i].work);
    pthread_mutex_unlock(&crew->lock);
    for (size_t i = 0; i < crew->count; i++) {
        member *m = &crew->members[i];

        if (m->gate != NULL)
            cek__gate_join(m->gate);
        else if (m->has_thread && !is_gated(m))
            pthread_join(m->thread, NULL);
    }
    for (size_t i = 0; i < crew->count; i++)
        pthread_cond_destroy(&crew->members[i].work);
    pthread_cond_destroy(&crew->done);
    pthread_mutex_destroy(&crew->lock);
    free(crew->members);
    free(crew);
}

/* ---- jobs ---- */

static cek_status verdict(const cek__crew *crew)
{
    const member *worst = NULL;
    for (size_t i = 0; i < crew->count; i++) {
        const member *m = &crew->members[i];
        if (m->status != CEK_OK && (!worst || (worst->status == CEK_CANCELLED && m->status != CEK_CANCELLED)))
            worst = m;
    }
    return worst ? cek__fail(worst->status, "%s", worst->text) : CEK_OK;
}

/* A job for one device as one for a member. */
typedef struct single {
    cek__crew_job fn;
    void *user;
} single;

static cek_status single_run(void *user, size_t index)
{
    const single *one = user;

    (void)index;
    return one->fn(one->user);
}

static cek_status member_call(member *m, cek__crew_fn fn, void *user)
{
    cek__crew *crew = m->crew;

    if (!is_gated(m) || cek__gate_is_here())
        return fn(user, m->index);
    pthread_mutex_lock(&crew->lock);
    give(m, fn, user);
    await(m);
    pthread_mutex_unlock(&crew->lock);
    return m->status == CEK_OK ? CEK_OK : cek__fail(m->status, "%s", m->text);
}

cek_status cek__crew_run(cek__crew *crew, cek__crew_fn fn, void *user)
{
    if (crew->count == 1)
        return member_call(&crew->members[0], fn, user);
    pthread_mutex_lock(&crew->lock);
    for (size_t i = 0; i < crew->count; i++)
        give(&crew->members[i], fn, user);
    for (size_t i = 0; i < crew->count; i++)
        await(&crew->members[i]);
    pthread_mutex_unlock(&crew->lock);
    return verdict(crew);
}

static member *member_of(cek__crew *crew, const cek_device *device)
{
    size_t i = 0;

    while (crew->members[i].device != device)
        i++;
    return &crew->members[i];
}

cek_status cek__crew_call(cek__crew *crew, const cek_device *device, cek__crew_job fn, void *user)
{
    return cek__gate_is_needed(device) ? member_call(member_of(crew, device), single_run, &(single){ fn, user })
                                       : fn(user);
}

cek_status cek__crew_call_any(cek__crew *crew, cek__crew_job fn, void *user)
{
    for (size_t i = 0; i < crew->count; i++)
        if (is_gated(&crew->members[i]) && cek__gate_check(crew->members[i].device) == CEK_OK)
            return cek__crew_call(crew, crew->members[i].device, fn, user);
    return fn(user);
}

typedef struct release {
    void (*fn)(void *object);
    void *object;
} release;

static cek_status release_run(void *user)
{
    const release *r = user;

    r->fn(r->object);
    return CEK_OK;
}

/* A thread was left inside one of the devices, in a copy from this one perhaps; or another one is lost, and may still
 * read from this one's memory (plugin.h, Errors). */
static bool is_in_use(const cek__crew *crew, const cek_device *device)
{
    for (size_t i = 0; i < crew->count; i++) {
        const member *m = &crew->members[i];

        if (cek__gate_is_occupied(m->device) || (m->device != device && (m->lost || cek__gate_is_lost(m->device))))
            return true;
    }
    return false;
}

void cek__crew_lost(cek__crew *crew, const cek_device *device)
{
    member_of(crew, device)->lost = true;
}

void cek__crew_release(cek__crew *crew, const cek_device *device, void (*fn)(void *object), void *object)
{
    release r = { fn, object };

    if (object == NULL)
        return;
    if (is_in_use(crew, device) || cek__crew_call(crew, device, release_run, &r) != CEK_OK)
        cek__abandon(object);
}
