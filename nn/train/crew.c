/* crew.c - see crew.h. Members sleep on a condition variable between jobs; a job is a generation number. */
#include "nn/train/crew.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "core/base/thread.h"

typedef struct member {
    cek__crew *crew;
    size_t index;
    pthread_t thread;
    cek_status status;
    char text[CEK__ERROR_TEXT_MAX];
} member;

struct cek__crew {
    size_t count, started; /* members; threads that exist */
    member *members;
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    uint64_t generation; /* the job that may be taken */
    size_t running;
    bool stop;
    cek__crew_fn fn;
    void *user;
};

static void *member_main(void *arg)
{
    member *m = arg;
    cek__crew *crew = m->crew;
    uint64_t seen = 0;
    pthread_mutex_lock(&crew->lock);
    for (;;) {
        while (crew->generation == seen && !crew->stop)
            pthread_cond_wait(&crew->work, &crew->lock);
        if (crew->stop)
            break;
        seen = crew->generation;
        pthread_mutex_unlock(&crew->lock);
        m->status = crew->fn(crew->user, m->index);
        if (m->status != CEK_OK)
            strcpy(m->text, cek_error_text());
        pthread_mutex_lock(&crew->lock);
        if (--crew->running == 0)
            pthread_cond_signal(&crew->done);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

cek_status cek__crew_create(size_t members, cek__crew **out)
{
    cek_status st;
    cek__crew *crew = NULL;
    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *crew, &crew));
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->work, NULL);
    pthread_cond_init(&crew->done, NULL);
    crew->count = members;
    if (members > 1)
        CEK_TRY(cek__calloc(members, sizeof *crew->members, &crew->members));
    for (size_t i = 0; crew->members && i < members; i++) {
        member *m = &crew->members[i];
        int error;
        m->crew = crew;
        m->index = i;
        error = cek__thread_start(&m->thread, member_main, m);
        if (error) {
            st = cek__fail_errno(CEK_OUT_OF_MEMORY, error, "thread of device %zu of %zu", i + 1, members);
            goto out;
        }
        crew->started++;
    }
    *out = crew;
    return CEK_OK;
out:
    cek__crew_free(crew);
    return st;
}

void cek__crew_free(cek__crew *crew)
{
    if (!crew)
        return;
    pthread_mutex_lock(&crew->lock);
    crew->stop = true;
    pthread_cond_broadcast(&crew->work);
    pthread_mutex_unlock(&crew->lock);
    for (size_t i = 0; i < crew->started; i++)
        pthread_join(crew->members[i].thread, NULL);
    pthread_cond_destroy(&crew->done);
    pthread_cond_destroy(&crew->work);
    pthread_mutex_destroy(&crew->lock);
    free(crew->members);
    free(crew);
}

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

cek_status cek__crew_run(cek__crew *crew, cek__crew_fn fn, void *user)
{
    if (crew->count == 1)
        return fn(user, 0);
    pthread_mutex_lock(&crew->lock);
    crew->fn = fn;
    crew->user = user;
    crew->running = crew->count;
    crew->generation++;
    pthread_cond_broadcast(&crew->work);
    while (crew->running > 0)
        pthread_cond_wait(&crew->done, &crew->lock);
    pthread_mutex_unlock(&crew->lock);
    return verdict(crew);
}
