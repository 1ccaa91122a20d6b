/* shim_queue.c - commands: in which order they were enqueued, which of them were flushed, how they ended; and the
 * context that a failed one took with it. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/opencl/shim_inside.h"

/* --- which commands were flushed -------------------------------------------------------------- */

#define QUEUES 4096

/* Commands have numbers, counted over all queues. An event that was released leaves its row to the next of its
 * address. */
typedef struct command {
    cl_event event;
    cl_command_queue queue;
    uint64_t number;
} command;

typedef struct queue_state {
    cl_command_queue queue;
    uint64_t flushed; /* the last number that was there at the last flush */
    bool profiling;
} queue_state;

/* A callback that waits for its command's queue to be flushed. */
typedef struct callback {
    struct callback *next;
    cl_event event;
    cl_int type;
    void(CL_CALLBACK *notify)(cl_event, cl_int, void *);
    void *user;
} callback;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static command *commands;                                /* by address, a table of `room` rows */
static size_t room, used;
static queue_state queues[QUEUES];
static callback *callbacks;
static uint64_t last, dead_from; /* numbers: of the last command, of the one that took its context with it */

static command *row_of(command *in, size_t rows, cl_event event)
{
    size_t at = (size_t)event >> 4;
    while (in[at & (rows - 1)].event && in[at & (rows - 1)].event != event)
        at++;
    return &in[at & (rows - 1)];
}

static command *command_find(cl_event event)
{
    command *row = room ? row_of(commands, room, event) : NULL;
    return row && row->event ? row : NULL;
}

static void command_note(cl_event event, cl_command_queue queue, uint64_t number)
{
    if (2 * (used + 1) > room) {
        size_t larger = room ? 2 * room : 1024;
        command *rows = calloc(larger, sizeof *rows);
        if (!rows)
            abort();
        for (size_t i = 0; i < room; i++)
            if (commands[i].event)
                *row_of(rows, larger, commands[i].event) = commands[i];
        free(commands);
        commands = rows;
        room = larger;
    }
    command *row = row_of(commands, room, event);
    used += !row->event;
    *row = (command){ event, queue, number };
}

static queue_state *queue_find(cl_command_queue queue)
{
    size_t at = (size_t)queue >> 4;
    for (size_t i = 0; i < QUEUES; i++, at++)
        if (!queues[at % QUEUES].queue || queues[at % QUEUES].queue == queue)
            return &queues[at % QUEUES];
    abort();
}

static bool is_flushed(const command *of)
{
    return of->number <= queue_find(of->queue)->flushed;
}

void shim_queue_made(cl_command_queue queue, cl_command_queue_properties properties)
{
    atomic_fetch_add(&shim.profiling_queues, properties & CL_QUEUE_PROFILING_ENABLE ? 1 : 0);
    pthread_mutex_lock(&lock);
    *queue_find(queue) = (queue_state){ queue, last, properties & CL_QUEUE_PROFILING_ENABLE };
    shim_order_made(queue, last);
    pthread_mutex_unlock(&lock);
}

void shim_queue_flushed(cl_command_queue queue)
{
    callback *due = NULL;
    pthread_mutex_lock(&lock);
    queue_find(queue)->flushed = last;
    for (callback **at = &callbacks; *at;) {
        callback *it = *at;
        const command *of = command_find(it->event);
        if (of && !is_flushed(of)) {
            at = &it->next;
            continue;
        }
        *at = it->next;
        it->next = due;
        due = it;
    }
    pthread_mutex_unlock(&lock);
    while (due) {
        callback *next = due->next;
        if (REAL(clSetEventCallback)(due->event, due->type, due->notify, due->user))
            abort();
        REAL(clReleaseEvent)(due->event);
        free(due);
        due = next;
    }
}

cl_context shim_queue_context(cl_command_queue queue)
{
    cl_context context = NULL;
    REAL(clGetCommandQueueInfo)(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
    return context;
}

static cl_context event_context(cl_event event)
{
    cl_context context = NULL;
    REAL(clGetEventInfo)(event, CL_EVENT_CONTEXT, sizeof context, &context, NULL);
    return context;
}

/* --- commands --------------------------------------------------------------------------------- */

/* Behind every command: what it waits for, whose it is, and whether its queue waits for it. Its number. */
static uint64_t enqueued(cl_command_queue queue, cl_uint waits, const cl_event *list, const cl_event *event)
{
    pthread_mutex_lock(&lock);
    for (cl_uint i = 0; i < waits; i++) {
        const command *on = command_find(list[i]);
        if (on && on->queue != queue && !is_flushed(on))
            atomic_fetch_add(&shim.unflushed, 1);
        if (on)
            shim_order_waited(on->queue, on->number);
    }
    shim_order_enqueued(queue);
    const uint64_t number = ++last;
    if (event) {
        shim.latest = *event;
        command_note(*event, queue, number);
    }
    const bool profiling = queue_find(queue)->profiling, slow = shim.slow_profiling && profiling;
    atomic_fetch_add(&shim.profiled, profiling);
    pthread_mutex_unlock(&lock);
    if (slow) {
        REAL(clFinish)(queue);
        shim_queue_flushed(queue);
    }
    return number;
}

/* The host has waited for all that was enqueued there. */
static void waited(cl_command_queue queue)
{
    shim_queue_flushed(queue);
    pthread_mutex_lock(&lock);
    shim_order_waited(queue, last);
    pthread_mutex_unlock(&lock);
}

static void blocking_note(cl_command_queue queue, cl_bool blocking)
{
    if (!blocking)
        return;
    atomic_fetch_add(&shim.waits, 1);
    waited(queue);
}

EXPORT cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t bytes, const void *value)
{
    cl_context context = NULL;
    REAL(clGetKernelInfo)(kernel, CL_KERNEL_CONTEXT, sizeof context, &context, NULL);
    cl_int error = shim_refuse(&shim.argument, context);
    if (!error)
        error = shim_argument_check(kernel, index, bytes, value);
    return error ? error : REAL(clSetKernelArg)(kernel, index, bytes, value);
}

static void kernel_note(cl_kernel kernel)
{
    static char seen[128][64];
    static int count;
    const char *path = getenv("SHIM_KERNELS");
    char name[64] = "";
    if (!path)
        return;
    REAL(clGetKernelInfo)(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < count && strcmp(seen[i], name))
        i++;
    if (i == 128)
        abort();
    if (i == count) {
        strcpy(seen[count++], name);
        FILE *file = fopen(path, "a");
        if (!file || fprintf(file, "%s\n", name) < 0 || fclose(file))
            abort();
    }
    pthread_mutex_unlock(&lock);
}

static void groups_note(cl_kernel kernel, cl_uint dims, const size_t *global, const size_t *local)
{
    size_t groups = 1, before = shim.groups;
    char name[64] = "";
    if (!shim.watched_kernel)
        return;
    REAL(clGetKernelInfo)(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
    if (strcmp(name, shim.watched_kernel))
        return;
    for (cl_uint i = 0; local && i < dims; i++)
        groups *= global[i] / local[i];
    while (groups > before && !atomic_compare_exchange_weak(&shim.groups, &before, groups))
        ;
}

/* From here on every call on this context fails, and so has every command from `number` on. */
static void context_kill(cl_context context, uint64_t number)
{
    pthread_mutex_lock(&lock);
    if (!shim.dead) {
        dead_from = number;
        shim.dead = context;
    }
    pthread_mutex_unlock(&lock);
}

EXPORT cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims, const size_t *offset,
                                     const size_t *global, const size_t *local, cl_uint waits, const cl_event *list,
                                     cl_event *event)
{
    cl_int error = shim_refuse(&shim.launch, shim_queue_context(queue));
    if (!error)
        error = shim_launch_check(dims, local);
    if (error)
        return error;
    const bool idle = shim_kernel_idle(kernel);
    shim_serial_begin();
    error = REAL(clEnqueueNDRangeKernel)(queue, kernel, dims, offset, global, local, waits, list, event);
    shim_serial_end();
    if (error)
        return error;
    if (!idle) {
        kernel_note(kernel);
        groups_note(kernel, dims, global, local);
    }
    const uint64_t number = enqueued(queue, waits, list, event);
    if (!idle && shim.fault && atomic_fetch_sub(&shim.fault_after, 1) == 0)
        context_kill(shim_queue_context(queue), number);
    return CL_SUCCESS;
}

EXPORT cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem to, cl_bool blocking, size_t offset, size_t bytes,
                                   const void *from, cl_uint waits, const cl_event *list, cl_event *event)
{
    cl_int error = shim_refuse(&shim.write, shim_queue_context(queue));
    if (error)
        return error;
    if (shim.step && bytes == shim.step)
        shim_counts_write();
    if (bytes == shim.watched)
        atomic_fetch_add(&shim.watched_writes, 1);
    if (shim.running)
        shim.unread = from;
    atomic_fetch_add(&shim.pageable, !shim_is_pinned(from, bytes));
    shim_serial_begin();
    error = REAL(clEnqueueWriteBuffer)(queue, to, blocking, offset, bytes, from, waits, list, event);
    shim_serial_end();
    if (!error)
        enqueued(queue, waits, list, event);
    blocking_note(queue, blocking);
    return error;
}

EXPORT cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem from, cl_bool blocking, size_t offset, size_t bytes,
                                  void *to, cl_uint waits, const cl_event *list, cl_event *event)
{
    cl_int error = shim_refuse(&shim.read, shim_queue_context(queue));
    if (error)
        return error;
    atomic_fetch_add(&shim.pageable, !shim_is_pinned(to, bytes));
    shim_serial_begin();
    error = REAL(clEnqueueReadBuffer)(queue, from, blocking, offset, bytes, to, waits, list, event);
    shim_serial_end();
    if (!error)
        enqueued(queue, waits, list, event);
    blocking_note(queue, blocking);
    return error;
}

EXPORT void *clEnqueueMapBuffer(cl_command_queue queue, cl_mem mem, cl_bool blocking, cl_map_flags flags, size_t offset,
                                size_t bytes, cl_uint waits, const cl_event *list, cl_event *event, cl_int *error)
{
    *error = shim_refuse(&shim.map, shim_queue_context(queue));
    if (*error)
        return NULL;
    void *at = REAL(clEnqueueMapBuffer)(queue, mem, blocking, flags, offset, bytes, waits, list, event, error);
    if (!*error) {
        shim_mapped(mem, at, bytes);
        enqueued(queue, waits, list, event);
    }
    blocking_note(queue, blocking);
    return at;
}

/* `since`: whether OpenCL 1.1 has it. */
#define ENQUEUES(member, name, since, parameters, arguments)                 \
    EXPORT cl_int name parameters                                            \
    {                                                                        \
        cl_int error = shim_refuse(&shim.member, shim_queue_context(queue)); \
        if (error || (!(since) && shim.old))                                 \
            return error ? error : CL_INVALID_OPERATION;                     \
        shim_serial_begin();                                                 \
        error = REAL(name) arguments;                                        \
        shim_serial_end();                                                   \
        if (!error)                                                          \
            enqueued(queue, waits, list, event);                             \
        return error;                                                        \
    }

ENQUEUES(copy, clEnqueueCopyBuffer, true,
         (cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset, size_t bytes,
          cl_uint waits, const cl_event *list, cl_event *event),
         (queue, from, to, from_offset, to_offset, bytes, waits, list, event))
ENQUEUES(fill, clEnqueueFillBuffer, false,
         (cl_command_queue queue, cl_mem to, const void *pattern, size_t pattern_bytes, size_t offset, size_t bytes,
          cl_uint waits, const cl_event *list, cl_event *event),
         (queue, to, pattern, pattern_bytes, offset, bytes, waits, list, event))
ENQUEUES(unmap, clEnqueueUnmapMemObject, true,
         (cl_command_queue queue, cl_mem mem, void *mapped, cl_uint waits, const cl_event *list, cl_event *event),
         (queue, mem, mapped, waits, list, (shim_unmapped(mapped), event)))
ENQUEUES(marker, clEnqueueMarkerWithWaitList, false,
         (cl_command_queue queue, cl_uint waits, const cl_event *list, cl_event *event), (queue, waits, list, event))
ENQUEUES(barrier, clEnqueueBarrierWithWaitList, false,
         (cl_command_queue queue, cl_uint waits, const cl_event *list, cl_event *event), (queue, waits, list, event))

/* --- what became of them ---------------------------------------------------------------------- */

EXPORT cl_int clFlush(cl_command_queue queue)
{
    cl_int error = shim_refuse(&shim.flush, shim_queue_context(queue));
    if (error)
        return error;
    shim_serial_begin();
    error = REAL(clFlush)(queue);
    shim_serial_end();
    if (!error)
        shim_queue_flushed(queue);
    return error;
}

EXPORT cl_int clFinish(cl_command_queue queue)
{
    atomic_fetch_add(&shim.finishes, 1);
    if (shim.dead && shim_queue_context(queue) == shim.dead)
        return CL_OUT_OF_RESOURCES;
    waited(queue);
    return REAL(clFinish)(queue);
}

EXPORT cl_int clWaitForEvents(cl_uint count, const cl_event *events)
{
    bool ended = true;
    cl_int error = shim_refuse(&shim.wait, NULL);
    if (error)
        return error;
    if (shim.dead && count && event_context(events[0]) == shim.dead)
        return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    for (cl_uint i = 0; i < count; i++) {
        cl_command_queue queue = NULL;
        cl_int status = CL_QUEUED;
        REAL(clGetEventInfo)(events[i], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
        ended = ended && status <= CL_COMPLETE; /* then the wait is for the sake of order alone */
        REAL(clGetEventInfo)(events[i], CL_EVENT_COMMAND_QUEUE, sizeof queue, &queue, NULL);
        if (queue)
            shim_queue_flushed(queue);
    }
    atomic_fetch_add(&shim.waits, ended ? 0 : 1);
    error = REAL(clWaitForEvents)(count, events);
    pthread_mutex_lock(&lock);
    for (cl_uint i = 0; !error && i < count; i++) {
        const command *of = command_find(events[i]);
        if (of)
            shim_order_waited(of->queue, of->number);
    }
    pthread_mutex_unlock(&lock);
    return error;
}

EXPORT cl_int clSetEventCallback(cl_event event, cl_int type, void(CL_CALLBACK *notify)(cl_event, cl_int, void *),
                                 void *user)
{
    static void *never_called[64]; /* a driver holds what it was given as long as it may call */
    static unsigned never;
    cl_int error = shim_refuse(&shim.callback, NULL);
    if (error)
        return error;
    if (shim.deaf) {
        pthread_mutex_lock(&lock);
        never_called[never++ % (sizeof never_called / sizeof *never_called)] = user;
        pthread_mutex_unlock(&lock);
        return CL_SUCCESS;
    }
    pthread_mutex_lock(&lock);
    const command *of = command_find(event);
    bool waits = shim.queued && of && !is_flushed(of);
    if (waits) {
        callback *made = malloc(sizeof *made);
        if (!made || REAL(clRetainEvent)(event))
            abort();
        *made = (callback){ callbacks, event, type, notify, user };
        callbacks = made;
    }
    pthread_mutex_unlock(&lock);
    return waits ? CL_SUCCESS : REAL(clSetEventCallback)(event, type, notify, user);
}

/* As the tests want it: `status` is the driver's. */
static cl_int status_told(cl_event event, cl_int status)
{
    if (shim.victim == event) /* no sooner than the command has left the memory that will be freed now */
        return status <= CL_COMPLETE ? shim.victim_error : CL_RUNNING;
    if (shim.victim)
        return shim.running ? CL_RUNNING : status;
    if (shim.running)
        return CL_RUNNING;
    if (shim.event_error && status <= CL_COMPLETE && atomic_fetch_sub(&shim.event_error_after, 1) <= 0)
        return shim.event_error;
    return status;
}

EXPORT cl_int clGetEventInfo(cl_event event, cl_event_info what, size_t bytes, void *value, size_t *length)
{
    if (what != CL_EVENT_COMMAND_EXECUTION_STATUS)
        return REAL(clGetEventInfo)(event, what, bytes, value, length);
    cl_int error = shim_refuse(&shim.event_info, NULL), *status = value;
    if (error)
        return error;
    shim.asked = event;
    shim_serial_begin();
    error = REAL(clGetEventInfo)(event, what, bytes, value, length);
    shim_serial_end();
    if (error)
        return error;
    pthread_mutex_lock(&lock);
    const command *of = command_find(event), row = of ? *of : (command){ event, NULL, UINT64_MAX };
    const bool unflushed = of && !is_flushed(of);
    const uint64_t number = row.number;
    const bool gone = shim.dead && number >= dead_from && event_context(event) == shim.dead;
    pthread_mutex_unlock(&lock);
    if (gone) {
        *status = shim.fault ? shim.fault : CL_OUT_OF_RESOURCES;
        return CL_SUCCESS;
    }
    *status = shim.queued && unflushed ? CL_QUEUED : status_told(event, *status);
    if (*status == CL_COMPLETE && of)
        shim_order_told(row.queue, row.number);
    if (*status < 0 && shim.poisons)
        context_kill(event_context(event), number);
    return CL_SUCCESS;
}

EXPORT cl_int clGetEventProfilingInfo(cl_event event, cl_profiling_info what, size_t bytes, void *value, size_t *length)
{
    cl_int error = shim_refuse(&shim.profiling, event_context(event));
    return error ? error : REAL(clGetEventProfilingInfo)(event, what, bytes, value, length);
}
