/* loader.c - batches of a data set, in order, filled ahead by worker threads.
 *
 * Owns: a fixed number of slots (one batch each), the order of the epoch, the threads.
 * Must not know: devices (memory comes through callbacks), files, what becomes of a batch.
 * Threads: everything below `mutex` in the struct is guarded by it. A slot's contents belong to whoever its state says:
 * FILLING to one worker, HELD to the caller. */
#include "nn/data/loader.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/random.h"
#include "core/base/status.h"
#include "core/base/thread.h"
#include "nn/data/dataset.h"

enum slot_state { FREE, FILLING, READY, HELD };

typedef struct slot {
    cek__batch batch; /* first: what take() hands out is the slot */
    enum slot_state state;
    cek_status status; /* of filling it */
    char error[CEK__ERROR_TEXT_MAX];
    void *inputs, *targets;
    int64_t *rows;
} slot;

struct cek_loader {
    cek__loader_config config;
    cek_dataset *dataset;
    int64_t samples, batches;
    int64_t *order;      /* the epoch's rows; changes only while no worker fills */
    cek__data_draw draw; /* likewise */
    pthread_t *threads;
    uint32_t thread_count; /* started */

    pthread_mutex_t mutex;
    pthread_cond_t work;  /* a slot became free, an epoch began, or stop */
    pthread_cond_t ready; /* a slot was filled */
    slot *slots;
    uint32_t slot_count;
    bool running, stop;
    int64_t claimed;   /* batches of the epoch below this have a slot or had one */
    int64_t delivered; /* batches below this were handed out */
};

/* ---- filling ---- */

/* The batch's rows into the slot. Runs without the mutex. */
static void slot_fill(const cek_loader *loader, slot *s)
{
    int64_t left = loader->samples - s->batch.base;
    int64_t count = left < loader->config.batch ? left : loader->config.batch;

    memcpy(s->rows, loader->order + s->batch.base, (size_t)count * sizeof *s->rows);
    s->batch.batch.count = count;
    s->status = cek__dataset_draw(loader->dataset, &loader->draw, s->rows, count, s->inputs, s->targets);
    if (s->status != CEK_OK) /* the text is this thread's; the slot carries it to the caller's */
        strcpy(s->error, cek_error_text());
}

/* The next batch that nobody fills yet, with a slot for it; NULL if there is none of either. Batches get their slots in
 * order, so the one that the caller waits for always has one before those behind it. */
static slot *slot_claim(cek_loader *loader)
{
    if (!loader->running || loader->claimed == loader->batches)
        return NULL;
    for (uint32_t i = 0; i < loader->slot_count; i++) {
        slot *s = &loader->slots[i];

        if (s->state != FREE)
            continue;
        s->state = FILLING;
        s->batch.number = loader->claimed++;
        s->batch.base = s->batch.number * loader->config.batch;
        return s;
    }
    return NULL;
}

static void *worker_main(void *arg)
{
    cek_loader *loader = arg;

    pthread_mutex_lock(&loader->mutex);
    while (!loader->stop) {
        slot *s = slot_claim(loader);

        if (s == NULL) {
            pthread_cond_wait(&loader->work, &loader->mutex);
            continue;
        }
        pthread_mutex_unlock(&loader->mutex);
        slot_fill(loader, s);
        pthread_mutex_lock(&loader->mutex);
        s->state = READY;
        pthread_cond_signal(&loader->ready); /* the caller is the only one who waits */
    }
    pthread_mutex_unlock(&loader->mutex);
    return NULL;
}

/* ---- life ---- */

static cek_status buffer_alloc(const cek__loader_config *config, uint64_t bytes, void **out)
{
    cek_status st;

    if (config->memory_alloc == NULL)
        return cek__alloc_aligned(CEK_ALIGNMENT, bytes, out);
    st = config->memory_alloc(config->memory_user, bytes, out);
    if (st != CEK_OK)
        *out = NULL;
    return st;
}

static void buffer_free(const cek__loader_config *config, void *buffer)
{
    if (config->memory_alloc == NULL)
        free(buffer);
    else if (buffer != NULL)
        config->memory_free(config->memory_user, buffer);
}

static cek_status slots_alloc(cek_loader *loader)
{
    const cek__data_format *format = cek__dataset_format(loader->dataset);
    const cek__loader_config *config = &loader->config;
    uint64_t n = (uint64_t)config->batch;
    cek_status st;

    CEK_TRY(cek__calloc(loader->slot_count, sizeof *loader->slots, &loader->slots));
    for (uint32_t i = 0; i < loader->slot_count; i++) {
        slot *s = &loader->slots[i];

        CEK_TRY(buffer_alloc(config, n * cek__data_input_bytes(format), &s->inputs));
        CEK_TRY(buffer_alloc(config, n * cek__data_target_bytes(format), &s->targets));
        CEK_TRY(cek__alloc_array(n, sizeof *s->rows, &s->rows));
        s->batch.batch = (cek_batch){
            .size = sizeof s->batch.batch,
            .inputs = s->inputs,
            .targets = s->targets,
            .rows = s->rows,
            .input_type = format->input_type,
            .target_type = format->target_type,
            .target_columns = format->class_count > 0 && format->target_width == 1 ? 0 : (uint32_t)format->target_width,
        };
    }
    return CEK_OK;
out:
    return st;
}

static cek_status threads_start(cek_loader *loader)
{
    cek_status st = CEK_OK;

    if (loader->config.workers == 0)
        return CEK_OK;
    CEK_TRY(cek__calloc(loader->config.workers, sizeof *loader->threads, &loader->threads));
    while (loader->thread_count < loader->config.workers && st == CEK_OK) {
        int error = cek__thread_start(&loader->threads[loader->thread_count], worker_main, loader);

        if (error != 0)
            st = cek__fail_errno(CEK_OUT_OF_MEMORY, error, "loader: no thread for a worker");
        else
            loader->thread_count++;
    }
out:
    return st;
}

/* Of a sample. Fits: so many values are possible (cek__data_format_check). */
static size_t sample_bytes(const cek_dataset *dataset)
{
    const cek__data_format *format = cek__dataset_format(dataset);

    return cek__data_input_bytes(format) + cek__data_target_bytes(format);
}

static cek_status config_check(const cek_dataset *dataset, const cek__loader_config *config)
{
    enum { WORKERS_MAX = 1024, SLOTS_MAX = 4096 };
    const uint64_t most = PTRDIFF_MAX / (sample_bytes(dataset) + sizeof(int64_t)); /* with its row's number */

    if (config->batch < 1 || (uint64_t)config->batch > most)
        return cek__fail(CEK_INVALID, "loader: batches of %" PRId64 " samples", config->batch);
    if (config->workers > WORKERS_MAX)
        return cek__fail(CEK_INVALID, "loader: %" PRIu32 " workers, at most %d are possible", config->workers,
                         WORKERS_MAX);
    if (config->prefetch < 1 || config->held < 1 || config->prefetch > SLOTS_MAX || config->held > SLOTS_MAX)
        return cek__fail(CEK_INVALID, "loader: %" PRIu32 " batches ahead and %" PRIu32 " held, 1 to %d are possible",
                         config->prefetch, config->held, SLOTS_MAX);
    return CEK_OK;
}

uint32_t cek__loader_workers(const cek_dataset *dataset, int64_t batch)
{
    enum { HAND_OVER = 64 << 10 }; /* bytes that are copied while one thread sleeps and another wakes */

    return !cek__dataset_is_arrays(dataset) || (uint64_t)batch > HAND_OVER / sample_bytes(dataset);
}

cek_status cek__loader_create(const cek_dataset *dataset, const cek__loader_config *config, cek_loader **out)
{
    int64_t n = cek_dataset_size(dataset);
    cek_loader *loader = NULL;
    cek_status st;

    *out = NULL;
    CEK_TRY(config_check(dataset, config));
    CEK_TRY(cek__calloc(1, sizeof *loader, &loader));
    loader->config = *config;
    pthread_mutex_init(&loader->mutex, NULL); /* these three cannot fail with default attributes on Linux */
    pthread_cond_init(&loader->work, NULL);
    pthread_cond_init(&loader->ready, NULL);
    loader->samples = n;
    loader->batches = n / config->batch + (!config->drop_last && n % config->batch != 0);
    loader->delivered = loader->claimed = loader->batches; /* nothing before begin */
    loader->slot_count = config->held + (config->workers > 0 ? config->prefetch : 0);
    CEK_TRY(cek__dataset_share(dataset, &loader->dataset));
    CEK_TRY(cek__alloc_array((size_t)n, sizeof *loader->order, &loader->order));
    CEK_TRY(slots_alloc(loader));
    CEK_TRY(threads_start(loader));
    *out = loader;
    return CEK_OK;
out:
    cek_loader_free(loader);
    return st;
}

void cek_loader_free(cek_loader *loader)
{
    if (loader == NULL)
        return;
    pthread_mutex_lock(&loader->mutex);
    loader->stop = true;
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->mutex);
    for (uint32_t i = 0; i < loader->thread_count; i++)
        pthread_join(loader->threads[i], NULL);
    for (uint32_t i = 0; loader->slots != NULL && i < loader->slot_count; i++) {
        buffer_free(&loader->config, loader->slots[i].inputs);
        buffer_free(&loader->config, loader->slots[i].targets);
        free(loader->slots[i].rows);
    }
    pthread_cond_destroy(&loader->ready);
    pthread_cond_destroy(&loader->work);
    pthread_mutex_destroy(&loader->mutex);
    cek_dataset_free(loader->dataset);
    free(loader->threads);
    free(loader->slots);
    free(loader->order);
    free(loader);
}

/* ---- an epoch ---- */

static uint32_t slots_in(const cek_loader *loader, enum slot_state state)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < loader->slot_count; i++)
        n += loader->slots[i].state == state;
    return n;
}

/* Stops the epoch under way, if any: when this returns, no worker reads `order`. */
static void epoch_end(cek_loader *loader)
{
    loader->running = false;
    while (slots_in(loader, FILLING) > 0)
        pthread_cond_wait(&loader->ready, &loader->mutex);
    for (uint32_t i = 0; i < loader->slot_count; i++)
        if (loader->slots[i].state == READY)
            loader->slots[i].state = FREE;
}

static void order_make(cek_loader *loader, int64_t epoch)
{
    if (loader->config.shuffle) {
        cek__random_permutation(loader->config.seed, cek__stream(CEK__STREAM_PERMUTATION, (uint64_t)epoch),
                                (size_t)loader->samples, loader->order);
        return;
    }
    for (int64_t i = 0; i < loader->samples; i++)
        loader->order[i] = i;
}

cek_status cek__loader_begin(cek_loader *loader, int64_t epoch, int64_t first)
{
    cek_status st = CEK_OK;

    pthread_mutex_lock(&loader->mutex);
    if (slots_in(loader, HELD) > 0)
        CEK_FAIL(CEK_INVALID, "loader: an epoch cannot begin while batches of the former one are in use");
    if (epoch < 0 || first < 0 || first > loader->batches)
        CEK_FAIL(CEK_INVALID, "loader: no batch %" PRId64 " in epoch %" PRId64 ", there are %" PRId64, first, epoch,
                 loader->batches);
    epoch_end(loader);
    order_make(loader, epoch);
    loader->draw = (cek__data_draw){ loader->config.seed, epoch };
    loader->claimed = loader->delivered = first;
    loader->running = true;
    pthread_cond_broadcast(&loader->work);
out:
    pthread_mutex_unlock(&loader->mutex);
    return st;
}

/* The filled slot of the batch that is due, or NULL. */
static slot *slot_due(cek_loader *loader)
{
    for (uint32_t i = 0; i < loader->slot_count; i++)
        if (loader->slots[i].state == READY && loader->slots[i].batch.number == loader->delivered)
            return &loader->slots[i];
    return NULL;
}

/* Waits for the batch that is due; without workers, fills it. NULL: the caller holds every slot. */
static slot *slot_wait(cek_loader *loader)
{
    slot *s;

    while ((s = slot_due(loader)) == NULL && slots_in(loader, HELD) < loader->slot_count) {
        if (loader->thread_count > 0) {
            pthread_cond_wait(&loader->ready, &loader->mutex);
            continue;
        }
        s = slot_claim(loader);
        slot_fill(loader, s); /* no workers: nobody else wants the mutex */
        s->state = READY;
    }
    return s;
}

cek_status cek__loader_take(cek_loader *loader, const cek__batch **out)
{
    cek_status st = CEK_OK;
    slot *s;

    *out = NULL;
    pthread_mutex_lock(&loader->mutex);
    if (loader->delivered == loader->batches)
        goto out;
    s = slot_wait(loader);
    if (s == NULL)
        CEK_FAIL(CEK_INVALID, "loader: all %" PRIu32 " batches are in use", loader->slot_count);
    if (s->status != CEK_OK) /* stays due, so that it is reported again */
        CEK_FAIL(s->status, "%s", s->error);
    s->state = HELD;
    loader->delivered++;
    *out = &s->batch;
out:
    pthread_mutex_unlock(&loader->mutex);
    return st;
}

void cek__loader_give_back(cek_loader *loader, const cek__batch *batch)
{
    pthread_mutex_lock(&loader->mutex);
    for (uint32_t i = 0; i < loader->slot_count; i++)
        if (&loader->slots[i].batch == batch)
            loader->slots[i].state = FREE;
    pthread_cond_signal(&loader->work); /* one slot, one worker */
    pthread_mutex_unlock(&loader->mutex);
}

void cek__loader_give_back_all(cek_loader *loader)
{
    pthread_mutex_lock(&loader->mutex);
    for (uint32_t i = 0; i < loader->slot_count; i++)
        if (loader->slots[i].state == HELD)
            loader->slots[i].state = FREE;
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->mutex);
}
