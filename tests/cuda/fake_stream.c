/* SPDX-License-Identifier: MIT
 *
 * fake_stream.c - the fake driver's streams, each a thread with a list of work, and events.
 */
#include "tests/cuda/fake_cuda.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* of functions that are found by name alone */

CUstream streams[STREAMS_MAX];
unsigned kernel_fault, hang_generation;
_Atomic bool kernel_faults;
uint32_t kernel_error;
static double spent_ms; /* what the device's clock is ahead of the host's; under the lock */

/* --- streams: a thread each ------------------------------------------------------------------- */

void work_free(work *of)
{
    free(of->copy);
    free(of->parameters);
    if (of->record && !--of->record->users)
        free(of->record);
    if (of->graph && !--of->graph->users) {
        while (of->graph->first) {
            work *next = of->graph->first->next;
            work_free(of->graph->first);
            of->graph->first = next;
        }
        free(of->graph);
    }
    free(of);
}

static void fill_run(const work *of)
{
    for (size_t i = 0; i < of->bytes; i += of->pattern_bytes)
        memcpy(of->to + i, &of->pattern, of->pattern_bytes);
}

/* A kernel, unless it is the one that is to fail: that ends the context or hangs until the machine is reset. */
static void kernel_run(CUcontext context, const work *of)
{
    void *parameters[PARAMETERS_MAX];
    unsigned char *at = of->parameters;
    pthread_mutex_lock(&lock);
    bool fails = kernel_fault && --kernel_fault == 0;
    unsigned generation = hang_generation;
    if (fails && kernel_error)
        context->error = kernel_error;
    while (fails && !kernel_error && generation == hang_generation)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    if (fails)
        return;
    for (unsigned i = 0; i < of->kernel->parameter_count; i++) {
        parameters[i] = at;
        if (of->kernel->pointers[i] && *(void **)at) {
            pthread_mutex_lock(&lock);
            block *memory = block_of(*(void **)at, 1);
            if (!memory || memory->host || memory->context != context)
                fake_die("%s: parameter %u is no memory of this device any more", of->kernel->name, i);
            pthread_mutex_unlock(&lock);
        }
        at += (of->kernel->sizes[i] + 15) & ~(uint64_t)15;
    }
    uint32_t error = fake_kernel_run(of->kernel, of->grid, of->block, parameters, kernel_faults);
    pthread_mutex_lock(&lock);
    if (error)
        context->error = error;
    pthread_mutex_unlock(&lock);
}

static void work_run(CUstream stream, work *of)
{
    switch (of->kind) {
    case COPY: memcpy(of->to, of->copy ? of->copy : of->from, of->bytes); break;
    case FILL: fill_run(of); break;
    case KERNEL: kernel_run(stream->context, of); break;
    case CALL: of->call(of->parameters); break;
    case GRAPH:
        for (work *at = of->graph->first; at && !stream->context->error; at = at->next)
            work_run(stream, at);
        break;
    default: break;
    }
}

static void *stream_main(void *user)
{
    CUstream stream = user;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!stream->first && !stream->over)
            pthread_cond_wait(&changed, &lock);
        work *now = stream->first;
        if (!now)
            break;
        stream->busy = true;
        while (now->kind == WAIT && !now->record->done && !stream->context->error)
            pthread_cond_wait(&changed, &lock);
        if (!stream->context->error && now->kind != WAIT && now->kind != RECORD) {
            pthread_mutex_unlock(&lock);
            work_run(stream, now);
            pthread_mutex_lock(&lock);
        }
        if (now->kind == RECORD) {
            now->record->done = true;
            now->record->time_ms = now_ms() + spent_ms;
        }
        stream->first = now->next;
        if (!stream->first)
            stream->end = &stream->first;
        stream->busy = stream->first != NULL;
        work_free(now);
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

void append(CUstream stream, work of)
{
    work *copy = malloc(sizeof *copy);
    *copy = of;
    copy->next = NULL;
    if (stream->capture) {
        *stream->capture->end = copy;
        stream->capture->end = &copy->next;
        return;
    }
    if (!stream->first)
        stream->end = &stream->first;
    *stream->end = copy;
    stream->end = &copy->next;
    stream->busy = true;
    pthread_cond_broadcast(&changed);
}

void enqueue(CUstream stream, CUcontext context, work of)
{
    if (!stream)
        fake_die("the default stream, which is the host application's");
    own("a stream", stream->context, context);
    pthread_mutex_lock(&lock);
    append(stream, of);
    pthread_mutex_unlock(&lock);
}

void idle_wait(CUcontext context)
{
    pthread_mutex_lock(&lock);
    watch.waits++;
    for (unsigned i = 0; i < STREAMS_MAX; i++)
        while (streams[i] && streams[i]->context == context && streams[i]->busy && !context->error)
            pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

CUresult fake_cuStreamCreate(CUstream *stream, unsigned int flags)
{
    CUcontext context;
    unsigned slot = 0;
    ENTER(cuStreamCreate, &context);
    if (flags != CU_STREAM_NON_BLOCKING)
        return ERROR_INVALID_VALUE;
    CUstream of = calloc(1, sizeof *of);
    of->context = context;
    of->end = &of->first;
    pthread_mutex_lock(&lock);
    while (slot < STREAMS_MAX && streams[slot])
        slot++;
    if (slot == STREAMS_MAX)
        fake_die("cuStreamCreate: more than %d streams", STREAMS_MAX);
    streams[slot] = of;
    pthread_mutex_unlock(&lock);
    if (pthread_create(&of->thread, NULL, stream_main, of))
        fake_die("cuStreamCreate: no thread");
    made(context, 1);
    *stream = of;
    return CUDA_SUCCESS;
}

CUresult fake_cuStreamDestroy(CUstream stream)
{
    CUcontext context;
    ENTER(cuStreamDestroy, &context);
    own("a stream", stream->context, context);
    pthread_mutex_lock(&lock);
    if (stream->capture)
        fake_die("cuStreamDestroy: the stream captures");
    stream->over = true;
    for (unsigned i = 0; i < STREAMS_MAX; i++)
        if (streams[i] == stream)
            streams[i] = NULL;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(stream->thread, NULL);
    free(stream);
    made(context, -1);
    return CUDA_SUCCESS;
}

CUresult fake_cuStreamQuery(CUstream stream)
{
    CUcontext context;
    ENTER(cuStreamQuery, &context);
    own("a stream", stream->context, context);
    if (stream->capture) {
        stream->capture_broken = true;
        return ERROR_CAPTURE_UNSUPPORTED;
    }
    pthread_mutex_lock(&lock);
    CUresult answer = context->error ? context->error : stream->busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
    pthread_mutex_unlock(&lock);
    return answer;
}

/* What a fake library computes keeps its place in the stream, or in the graph that the stream captures. */
FAKE_API void fake_cuda_call(void *stream, void (*call)(void *data), const void *data, size_t bytes)
{
    CUcontext context = thread.depth ? thread.stack[thread.depth - 1] : NULL;
    work of = { .kind = CALL, .call = call, .parameters = malloc(bytes) };
    if (!context)
        fake_die("a library is called without a context");
    memcpy(of.parameters, data, bytes);
    enqueue(stream, context, of);
}

FAKE_API void fake_cuda_spend(double milliseconds)
{
    pthread_mutex_lock(&lock);
    spent_ms += milliseconds;
    pthread_mutex_unlock(&lock);
}

FAKE_API bool fake_cuda_alive(void *stream)
{
    bool alive = false;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < STREAMS_MAX; i++)
        alive |= stream && streams[i] == stream;
    pthread_mutex_unlock(&lock);
    return alive;
}

FAKE_API bool fake_cuda_capturing(void)
{
    return thread.capturing != NULL;
}

/* --- events ----------------------------------------------------------------------------------- */

CUresult fake_cuEventCreate(CUevent *event, unsigned int flags)
{
    CUcontext context;
    ENTER(cuEventCreate, &context);
    if (flags & ~(unsigned)CU_EVENT_DISABLE_TIMING)
        return ERROR_INVALID_VALUE;
    *event = calloc(1, sizeof **event);
    (*event)->context = context;
    (*event)->timing = !flags;
    made(context, 1);
    return CUDA_SUCCESS;
}

CUresult fake_cuEventDestroy(CUevent event)
{
    CUcontext context;
    ENTER(cuEventDestroy, &context);
    own("an event", event->context, context);
    pthread_mutex_lock(&lock);
    if (event->latest && !--event->latest->users)
        free(event->latest);
    pthread_mutex_unlock(&lock);
    free(event);
    made(context, -1);
    return CUDA_SUCCESS;
}

CUresult fake_cuEventRecord(CUevent event, CUstream stream)
{
    CUcontext context;
    ENTER(cuEventRecord, &context);
    own("an event", event->context, context);
    own("a stream", stream->context, context);
    pthread_mutex_lock(&lock);
    if (event->latest && !--event->latest->users)
        free(event->latest);
    event->latest = calloc(1, sizeof *event->latest);
    event->latest->users = 2;
    append(stream, (work){ .kind = RECORD, .record = event->latest });
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult fake_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    CUcontext context;
    ENTER(cuStreamWaitEvent, &context);
    own("a stream", stream->context, context);
    if (flags)
        return ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    if (event->latest) {
        event->latest->users++;
        append(stream, (work){ .kind = WAIT, .record = event->latest });
    }
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* As the real one: what was never recorded has happened. */
CUresult fake_cuEventQuery(CUevent event)
{
    CUcontext context;
    ENTER(cuEventQuery, &context);
    own("an event", event->context, context);
    pthread_mutex_lock(&lock);
    bool done = (!event->latest || event->latest->done) && !watch.blind;
    CUresult answer = context->error ? context->error : done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    pthread_mutex_unlock(&lock);
    return answer;
}

CUresult fake_cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    CUcontext context;
    ENTER(cuEventElapsedTime, &context);
    if (!start->timing || !end->timing || !start->latest || !end->latest)
        return 400; /* CUDA_ERROR_INVALID_HANDLE */
    pthread_mutex_lock(&lock);
    bool done = start->latest->done && end->latest->done;
    *milliseconds = (float)(end->latest->time_ms - start->latest->time_ms);
    pthread_mutex_unlock(&lock);
    return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
