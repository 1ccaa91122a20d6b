/* fake_queue.c - the fake plugin's queues and events: rings of commands, executed at once or, in
 * mode "lazy", not before somebody waits for them. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_objects.h"

enum { COMMANDS_MAX = 4096 };

typedef struct command {
    enum { COPY, UPLOAD, DOWNLOAD, FILL, UPDATE, WAIT, RUN } kind;
    cek_ref dst, src;
    void *host;
    uint64_t bytes;
    uint32_t pattern;
    cek_queue *other;
    uint64_t position;
    const cek_op *op;
    cek_ref operands[INPUTS_MAX + 1];
} command;
struct cek_queue {
    cek_dev *dev;
    command *commands; /* a ring */
    uint64_t count, done, waits;
    cek_status failed;
    bool timing;
};
struct cek_event {
    cek_dev *dev;
    cek_queue *queue;
    uint64_t position;
};

static float *place(cek_ref ref)
{
    return (float *)(ref.mem->data + ref.offset);
}

static float instruction_run(const cek_pointwise_instruction *i, const float *value)
{
    float a = value[i->a], b = value[i->b], imm = (float)i->imm;

    switch (i->code) {
    case CEK_PW_CONST: return imm;
    case CEK_PW_ADD: return a + b;
    case CEK_PW_SUB: return a - b;
    case CEK_PW_MUL: return a * b;
    case CEK_PW_ADD_IMM: return a + imm;
    case CEK_PW_MUL_IMM: return a * imm;
    default: return a;
    }
}

static void pointwise_run(const command *c)
{
    const cek_op *op = c->op;
    uint64_t count = 1;

    for (uint32_t d = 0; d < op->rank; d++)
        count *= op->shape[d];
    for (uint64_t n = 0; n < count; n++) {
        int64_t at[INPUTS_MAX + 1] = { 0 };
        float value[INPUTS_MAX + CEK_POINTWISE_INSTRUCTIONS];
        uint64_t rest = n;

        for (uint32_t d = op->rank; d-- > 0; rest /= op->shape[d]) {
            int64_t i = (int64_t)(rest % op->shape[d]);

            for (uint32_t k = 0; k < op->inputs; k++)
                at[k] += i * op->input[k].strides[d];
            at[INPUTS_MAX] += i * op->out_strides[d];
        }
        for (uint32_t k = 0; k < op->inputs; k++)
            value[k] = place(c->operands[k])[at[k]];
        for (uint32_t k = 0; k < op->instructions; k++)
            value[op->inputs + k] = instruction_run(&op->instruction[k], value);
        place(c->operands[CEK_POINTWISE_OUT])[at[INPUTS_MAX]] = value[op->inputs + op->instructions - 1];
    }
}

static void queue_run(cek_queue *queue, uint64_t until);

static void command_run(cek_queue *queue, command *c)
{
    if (control.lose_after > 0 && --control.lose_after == 0)
        control.lost = true;
    if (control.lost)
        queue->failed = CEK_DEVICE_LOST;
    if (atomic_exchange(&control.poison, false))
        queue->failed = CEK_INTERNAL;
    if (queue->failed != CEK_OK)
        return;
    switch (c->kind) {
    case COPY: memcpy(place(c->dst), place(c->src), c->bytes); break;
    case UPLOAD: memcpy(place(c->dst), c->host, c->bytes); break;
    case DOWNLOAD: memcpy(c->host, place(c->src), c->bytes); break;
    case UPDATE:
        memcpy(place(c->dst), c->host, c->bytes);
        free(c->host);
        break;
    case FILL:
        for (uint64_t i = 0; i < c->bytes; i += c->position)
            memcpy((uint8_t *)place(c->dst) + i, &c->pattern, c->position);
        break;
    case WAIT:
        queue_run(c->other, c->position);
        queue->failed = c->other->failed;
        break;
    case RUN: pointwise_run(c); break;
    }
}

static void queue_run(cek_queue *queue, uint64_t until)
{
    while (queue->done < until)
        command_run(queue, &queue->commands[queue->done++ % COMMANDS_MAX]);
}

static cek_status enqueue(cek_queue *queue, command c)
{
    cek_instance *in = queue->dev->instance;
    cek_status st = control.lost ? CEK_DEVICE_LOST : queue->failed;

    if (st != CEK_OK)
        return st;
    pthread_mutex_lock(&in->lock);
    if (queue->count - queue->done == COMMANDS_MAX)
        queue_run(queue, queue->count);
    queue->commands[queue->count++ % COMMANDS_MAX] = c;
    if (!mode_is("lazy"))
        queue_run(queue, queue->count);
    pthread_mutex_unlock(&in->lock);
    return CEK_OK;
}

cek_status queue_create(cek_dev *dev, const cek_queue_desc *desc, cek_queue **out)
{
    *out = make(sizeof **out);
    (*out)->dev = dev;
    (*out)->timing = desc != NULL && (desc->flags & CEK_QUEUE_TIMING) != 0;
    (*out)->commands = calloc(COMMANDS_MAX, sizeof(command));
    if (!mode_is("stale"))
        return CEK_OK;
    free((*out)->commands);
    unmake(*out); /* and leaves the caller where it was */
    return fail(dev->instance, CEK_OUT_OF_MEMORY, "no queue is left");
}

static cek_status run_and_tell(cek_queue *queue, uint64_t until)
{
    pthread_mutex_lock(&queue->dev->instance->lock);
    queue_run(queue, until);
    pthread_mutex_unlock(&queue->dev->instance->lock);
    return control.lost ? CEK_DEVICE_LOST : queue->failed;
}

/* One more command, of this queue or of the one that it waits for. */
static void queue_step(cek_queue *queue)
{
    const command *c = &queue->commands[queue->done % COMMANDS_MAX];

    if (c->kind == WAIT && c->other->done < c->position)
        queue_step(c->other);
    else
        queue_run(queue, queue->done + 1);
}

static cek_status wait_for(cek_queue *queue, uint64_t until, uint64_t timeout_ns)
{
    struct timespec t = { .tv_sec = (time_t)(timeout_ns / 1000000000u), .tv_nsec = (long)(timeout_ns % 1000000000u) };
    bool done;

    if (!control.slow && control.pace == 0)
        return run_and_tell(queue, until);
    nanosleep(&t, NULL);
    if (control.slow)
        return CEK_TIMEOUT;
    pthread_mutex_lock(&queue->dev->instance->lock);
    if (++queue->waits % (uint64_t)control.pace == 0 && queue->done < until)
        queue_step(queue);
    done = queue->done >= until;
    pthread_mutex_unlock(&queue->dev->instance->lock);
    return done ? queue->failed : CEK_TIMEOUT;
}

void queue_destroy(cek_queue *queue)
{
    if (queue == NULL)
        return;
    atomic_fetch_add(&control.destroyed, control.slow);
    run_and_tell(queue, queue->count);
    free(queue->commands);
    unmake(queue);
}

cek_status queue_status(cek_queue *queue, char *text, uint64_t cap)
{
    if (text != NULL && cap > 0)
        snprintf(text, cap, "%s",
                 control.lost              ? "the fake cable was pulled"
                 : queue->failed != CEK_OK ? "a fake kernel caught fire"
                                           : "");
    return queue->failed;
}

cek_status queue_sync(cek_queue *queue, uint64_t timeout_ns)
{
    block(FAKE_QUEUE_SYNC);
    return wait_for(queue, queue->count, timeout_ns);
}

cek_status upload(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes)
{
    return enqueue(queue, (command){ .kind = UPLOAD, .dst = dst, .host = (void *)(uintptr_t)src, .bytes = bytes });
}

cek_status download(cek_queue *queue, void *dst, cek_ref src, uint64_t bytes)
{
    block(FAKE_DOWNLOAD);
    return enqueue(queue, (command){ .kind = DOWNLOAD, .src = src, .host = dst, .bytes = bytes });
}

cek_status copy(cek_queue *queue, cek_ref dst, cek_ref src, uint64_t bytes)
{
    if (src.mem->dev != queue->dev) {
        if (!mode_is("linked"))
            return fail(queue->dev->instance, CEK_UNSUPPORTED, "no link");
        atomic_fetch_add(&control.copies, 1);
    }
    return enqueue(queue, (command){ .kind = COPY, .dst = dst, .src = src, .bytes = bytes });
}

cek_status fill(cek_queue *queue, cek_ref dst, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes)
{
    return enqueue(
        queue, (command){ .kind = FILL, .dst = dst, .pattern = pattern, .position = pattern_bytes, .bytes = bytes });
}

cek_status update(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes)
{
    void *copied = malloc(bytes);

    memcpy(copied, src, bytes);
    return enqueue(queue, (command){ .kind = UPDATE, .dst = dst, .host = copied, .bytes = bytes });
}

cek_status op_run(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count, cek_ref workspace)
{
    command c = { .kind = RUN, .op = op };

    (void)workspace;
    memcpy(c.operands, operands, count * sizeof *operands);
    return enqueue(queue, c);
}

/* ---- events ---- */

cek_status event_create(cek_dev *dev, const cek_event_desc *desc, cek_event **out)
{
    (void)desc;
    *out = make(sizeof **out);
    (*out)->dev = dev;
    return CEK_OK;
}

void event_destroy(cek_event *event)
{
    unmake(event);
}

cek_status event_record(cek_queue *queue, cek_event *event)
{
    event->queue = queue;
    event->position = queue->count;
    return queue->failed;
}

cek_status event_wait(cek_queue *queue, cek_event *event)
{
    if (event->dev != queue->dev)
        return fail(queue->dev->instance, CEK_INVALID, "an event of another device");
    return enqueue(queue, (command){ .kind = WAIT, .other = event->queue, .position = event->position });
}

cek_status event_query(cek_event *event)
{
    cek_status st;

    if (event->queue == NULL)
        return fail(event->dev->instance, CEK_INVALID, "the event was never recorded");
    pthread_mutex_lock(&event->dev->instance->lock);
    st = event->queue->done >= event->position ? event->queue->failed : CEK_NOT_READY;
    pthread_mutex_unlock(&event->dev->instance->lock);
    return st;
}

cek_status event_sync(cek_event *event, uint64_t timeout_ns)
{
    return event->queue != NULL ? wait_for(event->queue, event->position, timeout_ns) : event_query(event);
}

cek_status event_status(cek_event *event, char *text, uint64_t cap)
{
    queue_status(event->queue, text, cap);
    return event_query(event);
}

cek_status event_elapsed(cek_event *start, cek_event *end, uint64_t *ns)
{
    if (!start->queue->timing || !end->queue->timing)
        return fail(start->dev->instance, CEK_UNSUPPORTED, "a queue without timing");
    *ns = 1000;
    return CEK_OK;
}
