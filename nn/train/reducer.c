/* reducer.c - see reducer.h.
 *
 * Owners do their reducing on their own thread between backward segments: no thread of its own
 * competes for the processor, and on devices that work asynchronously everything is queued behind
 * markers. Owner o reaches replica r's memory through a lane, a stream on r's device that only o's
 * thread uses. */
#include "nn/train/reducer.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "nn/train/optimizer.h"
#include "nn/train/shares.h"

/* Elements that travel at a time. 1 MiB of f32: stays in a core's cache between the copy and the
 * addition, and is long enough that a card's bus does not notice the pieces. */
enum { PIECE = 256 * 1024 };

typedef struct add_op {
    uint64_t count;
    cek_op *op;
} add_op;

typedef struct owner {
    cek__shard_optimizer **optimizers; /* [bucket]; NULL where the shard is empty */
    cek__shard *shards;                /* [bucket] */
    cek_stream **lanes;                /* [replica]; NULL for its own */
    cek_marker **pushed;               /* [replica]: end of this step's copies to it */
    cek_memory *inbox;
    add_op *adds;
    size_t add_count;
    cek_device *device;
    size_t next; /* bucket to reduce */
} owner;

struct cek__reducer {
    const cek__layout *layout;
    cek__replica *const *replicas;
    size_t count;
    uint64_t element_bytes;
    owner *owners;
    cek_marker **ready; /* [replica][bucket]: its gradients are complete */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t *arrived; /* [replica]: buckets; under lock */
    bool failed;     /* under lock */
    bool *absent;    /* [replica]: no samples in this step */
};

static cek_marker *ready_marker(const cek__reducer *red, size_t replica, size_t bucket)
{
    return red->ready[replica * red->layout->bucket_count + bucket];
}

static cek_ref element(const cek__reducer *red, cek_ref base, uint64_t index)
{
    return (cek_ref){ base.mem, base.offset + index * red->element_bytes };
}

/* ---- Life ------------------------------------------------------------------------------------ */

static uint64_t inbox_elements(const cek__layout *layout, size_t o, size_t count)
{
    uint64_t most = 0;
    for (size_t b = 0; count > 1 && b < layout->bucket_count; b++) {
        cek__shard s = cek__shard_of(b, layout->bucket_elements[b], o, count);
        most = s.end - s.first > most ? s.end - s.first : most;
    }
    return most < PIECE ? most : PIECE;
}

uint64_t cek__reducer_bytes(const cek__layout *layout, const cek_optimizer *optimizer, size_t o, size_t count)
{
    uint64_t bytes = inbox_elements(layout, o, count) * cek_dtype_bytes(layout->type);
    for (size_t b = 0; b < layout->bucket_count; b++) {
        cek__shard s = cek__shard_of(b, layout->bucket_elements[b], o, count);
        if (s.end > s.first)
            bytes += cek__shard_optimizer_bytes(optimizer, layout->type, s.end - s.first);
    }
    return bytes;
}

static cek_status add_make(cek__reducer *red, owner *w, uint64_t count, cek_op **out)
{
    cek_status st;
    cek_pointwise_input inputs[2] = { { .type = red->layout->type, .strides = { 1 } },
                                      { .type = red->layout->type, .strides = { 1 } } };
    cek_pointwise_instruction sum = { .code = CEK_PW_ADD, .a = 0, .b = 1 };
    cek_op_info info = { .size = sizeof info };
    cek_pointwise_desc desc = {
        .op = { .size = sizeof desc,
                .kind = CEK_OP_POINTWISE,
                .operands = CEK_BIT(CEK_POINTWISE_IN0) | CEK_BIT(CEK_POINTWISE_IN1) | CEK_BIT(CEK_POINTWISE_OUT) },
        .rank = 1,
        .out_type = red->layout->type,
        .shape = { count },
        .out_strides = { 1 },
        .inputs = inputs,
        .instructions = &sum,
        .input_count = 2,
        .input_size = sizeof *inputs,
        .instruction_count = 1,
        .instruction_size = sizeof sum,
    };
    CEK_TRY(cek_op_make(w->device, &desc.op, &info, out));
    if (info.workspace_bytes) {
        cek_op_free(w->device, *out);
        *out = NULL;
        CEK_FAIL(CEK_UNSUPPORTED, "an addition of %llu elements wants a workspace", (unsigned long long)count);
    }
    return CEK_OK;
out:
    return st;
}

static const cek_op *add_find(const owner *w, uint64_t count)
{
    for (size_t i = 0; i < w->add_count; i++)
        if (w->adds[i].count == count)
            return w->adds[i].op;
    return NULL;
}

static cek_status add_want(cek__reducer *red, owner *w, uint64_t count)
{
    cek_status st;
    cek_op *op = NULL;
    if (count == 0 || add_find(w, count))
        return CEK_OK;
    CEK_TRY(add_make(red, w, count, &op));
    st = cek__realloc_array(w->add_count + 1, sizeof *w->adds, &w->adds);
    if (st != CEK_OK) {
        cek_op_free(w->device, op);
        goto out;
    }
    w->adds[w->add_count++] = (add_op){ count, op };
    return CEK_OK;
out:
    return st;
}

static cek_status lanes_make(cek__reducer *red, owner *w, size_t o)
{
    cek_status st;
    uint64_t inbox = inbox_elements(red->layout, o, red->count) * red->element_bytes;
    CEK_TRY(cek__calloc(red->count, sizeof *w->lanes, &w->lanes));
    CEK_TRY(cek__calloc(red->count, sizeof *w->pushed, &w->pushed));
    for (size_t r = 0; r < red->count; r++) {
        cek_device *device = cek__replica_device(red->replicas[r]);
        if (r == o)
            continue;
        CEK_TRY(cek_stream_create(device, &w->lanes[r]));
        CEK_TRY(cek_marker_create(device, false, &w->pushed[r]));
    }
    if (inbox)
        CEK_TRY(cek_memory_alloc(cek__replica_device(red->replicas[o]), inbox, CEK_MEMORY_ALONE, &w->inbox));
    return CEK_OK;
out:
    return st;
}

static cek_status owner_make(cek__reducer *red, size_t o, const cek_optimizer *optimizer)
{
    cek_status st;
    owner *w = &red->owners[o];
    size_t buckets = red->layout->bucket_count;
    cek_device *device = cek__replica_device(red->replicas[o]);
    w->device = device;
    CEK_TRY(cek__calloc(buckets, sizeof *w->optimizers, &w->optimizers));
    CEK_TRY(cek__calloc(buckets, sizeof *w->shards, &w->shards));
    CEK_TRY(lanes_make(red, w, o));
    for (size_t b = 0; b < buckets; b++) {
        cek__shard s = cek__shard_of(b, red->layout->bucket_elements[b], o, red->count);
        uint64_t count = s.end - s.first;
        w->shards[b] = s;
        if (count == 0)
            continue;
        CEK_TRY(cek__shard_optimizer_create(device, cek__replica_stream(red->replicas[o]), optimizer, red->layout->type,
                                            count, &w->optimizers[b]));
        if (red->count == 1)
            continue;
        if (count >= PIECE)
            CEK_TRY(add_want(red, w, PIECE));
        CEK_TRY(add_want(red, w, count % PIECE));
    }
    return CEK_OK;
out:
    return st;
}

cek_status cek__reducer_create(const cek__layout *layout, cek__replica *const *replicas, size_t count,
                               const cek_optimizer *optimizer, cek__reducer **out)
{
    cek_status st;
    cek__reducer *red = NULL;
    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *red, &red));
    pthread_mutex_init(&red->lock, NULL);
    pthread_cond_init(&red->changed, NULL);
    red->layout = layout;
    red->replicas = replicas;
    red->count = count;
    red->element_bytes = cek_dtype_bytes(layout->type);
    CEK_TRY(cek__calloc(count, sizeof *red->owners, &red->owners));
    CEK_TRY(cek__calloc(count, sizeof *red->arrived, &red->arrived));
    CEK_TRY(cek__calloc(count, sizeof *red->absent, &red->absent));
    CEK_TRY(cek__calloc(count * layout->bucket_count, sizeof *red->ready, &red->ready));
    for (size_t i = 0; count > 1 && i < count * layout->bucket_count; i++)
        CEK_TRY(cek_marker_create(cek__replica_device(replicas[i / layout->bucket_count]), false, &red->ready[i]));
    for (size_t o = 0; o < count; o++)
        CEK_TRY(owner_make(red, o, optimizer));
    *out = red;
    return CEK_OK;
out:
    cek__reducer_free(red);
    return st;
}

static void owner_free(cek__reducer *red, owner *w)
{
    for (size_t r = 0; r < red->count; r++) {
        if (w->lanes)
            cek_stream_free(w->lanes[r]);
        if (w->pushed)
            cek_marker_free(w->pushed[r]);
    }
    for (size_t b = 0; w->optimizers && b < red->layout->bucket_count; b++)
        cek__shard_optimizer_free(w->optimizers[b]);
    for (size_t i = 0; i < w->add_count; i++)
        cek_op_free(w->device, w->adds[i].op);
    cek_memory_free(w->inbox);
    free(w->adds);
    free(w->lanes);
    free(w->pushed);
    free(w->optimizers);
    free(w->shards);
}

void cek__reducer_free(cek__reducer *red)
{
    if (!red)
        return;
    for (size_t o = 0; red->owners && o < red->count; o++) /* what is queued still uses the states */
        (void)!cek_device_sync(cek__replica_device(red->replicas[o]));
    for (size_t o = 0; red->owners && o < red->count; o++)
        owner_free(red, &red->owners[o]);
    for (size_t i = 0; red->ready && i < red->count * red->layout->bucket_count; i++)
        cek_marker_free(red->ready[i]);
    pthread_cond_destroy(&red->changed);
    pthread_mutex_destroy(&red->lock);
    free(red->ready);
    free(red->absent);
    free(red->arrived);
    free(red->owners);
    free(red);
}

/* ---- One step -------------------------------------------------------------------------------- */

void cek__reducer_begin(cek__reducer *red, const int64_t *rows)
{
    pthread_mutex_lock(&red->lock);
    for (size_t r = 0; r < red->count; r++) {
        red->absent[r] = rows[r] == 0;
        red->arrived[r] = red->absent[r] ? red->layout->bucket_count : 0;
        red->owners[r].next = 0;
    }
    red->failed = false;
    pthread_mutex_unlock(&red->lock);
}

void cek__reducer_fail(cek__reducer *red)
{
    pthread_mutex_lock(&red->lock);
    red->failed = true;
    pthread_cond_broadcast(&red->changed);
    pthread_mutex_unlock(&red->lock);
}

/* The owner's gradients [first, first + count) += those of replica r. */
static cek_status add_from(cek__reducer *red, size_t o, size_t r, size_t bucket, uint64_t first, uint64_t count)
{
    cek_status st;
    owner *w = &red->owners[o];
    cek_stream *compute = cek__replica_stream(red->replicas[o]);
    cek_ref mine = cek__replica_gradients(red->replicas[o], bucket),
            theirs = cek__replica_gradients(red->replicas[r], bucket);
    for (uint64_t i = 0; i < count; i += PIECE) {
        uint64_t n = count - i < PIECE ? count - i : PIECE;
        cek_ref operands[] = {
            [CEK_POINTWISE_IN0] = element(red, mine, first + i),
            [CEK_POINTWISE_IN1] = cek_memory_ref(w->inbox),
            [CEK_POINTWISE_OUT] = element(red, mine, first + i),
        };
        CEK_TRY(cek_stream_copy(compute, cek_memory_ref(w->inbox), w->lanes[r], element(red, theirs, first + i),
                                n * red->element_bytes));
        CEK_TRY(cek_stream_run(compute, add_find(w, n), operands, CEK_POINTWISE_OUT + 1, (cek_ref){ NULL, 0 }));
    }
    return CEK_OK;
out:
    return st;
}

/* Sums replica by replica in their order, the owner's own first. */
static cek_status gather(cek__reducer *red, size_t o, size_t bucket)
{
    cek_status st;
    owner *w = &red->owners[o];
    cek__shard s = w->shards[bucket];
    bool have = !red->absent[o];
    for (size_t r = 0; r < red->count; r++) {
        if (r == o || red->absent[r])
            continue;
        CEK_TRY(cek_stream_wait(w->lanes[r], ready_marker(red, r, bucket)));
        if (have)
            CEK_TRY(add_from(red, o, r, bucket, s.first, s.end - s.first));
        else
            CEK_TRY(cek_stream_copy(cek__replica_stream(red->replicas[o]),
                                    element(red, cek__replica_gradients(red->replicas[o], bucket), s.first),
                                    w->lanes[r],
                                    element(red, cek__replica_gradients(red->replicas[r], bucket), s.first),
                                    (s.end - s.first) * red->element_bytes));
        have = true;
    }
    return CEK_OK;
out:
    return st;
}

static cek_status push(cek__reducer *red, size_t o, size_t bucket)
{
    cek_status st;
    owner *w = &red->owners[o];
    cek__shard s = w->shards[bucket];
    cek_ref mine = element(red, cek__replica_parameters(red->replicas[o], bucket), s.first);
    for (size_t r = 0; r < red->count; r++) {
        if (r == o)
            continue;
        CEK_TRY(cek_stream_copy(w->lanes[r], element(red, cek__replica_parameters(red->replicas[r], bucket), s.first),
                                cek__replica_stream(red->replicas[o]), mine, (s.end - s.first) * red->element_bytes));
    }
    return CEK_OK;
out:
    return st;
}

static cek_status reduce_bucket(cek__reducer *red, size_t o, size_t bucket)
{
    cek_status st;
    owner *w = &red->owners[o];
    cek__replica *replica = red->replicas[o];
    cek__shard s = w->shards[bucket];
    if (s.end == s.first)
        return CEK_OK;
    CEK_TRY(gather(red, o, bucket));
    CEK_TRY(cek__shard_optimizer_run(w->optimizers[bucket], cek__replica_stream(replica),
                                     element(red, cek__replica_parameters(replica, bucket), s.first),
                                     element(red, cek__replica_gradients(replica, bucket), s.first),
                                     cek__replica_step_block(replica)));
    CEK_TRY(push(red, o, bucket));
    return CEK_OK;
out:
    return st;
}

/* Buckets that every replica has finished. Under lock. */
static size_t complete(const cek__reducer *red)
{
    size_t least = red->layout->bucket_count;
    for (size_t r = 0; r < red->count; r++)
        least = red->arrived[r] < least ? red->arrived[r] : least;
    return least;
}

static cek_status reduce_below(cek__reducer *red, size_t o, size_t end)
{
    cek_status st;
    for (; red->owners[o].next < end; red->owners[o].next++)
        CEK_TRY(reduce_bucket(red, o, red->owners[o].next));
    return CEK_OK;
out:
    return st;
}

cek_status cek__reducer_arrive(cek__reducer *red, size_t member, size_t buckets)
{
    cek_status st;
    size_t end;
    if (red->count > 1)
        for (size_t b = red->arrived[member]; b < buckets; b++)
            CEK_TRY(cek_marker_record(ready_marker(red, member, b), cek__replica_stream(red->replicas[member])));
    pthread_mutex_lock(&red->lock);
    red->arrived[member] = buckets;
    pthread_cond_broadcast(&red->changed);
    end = complete(red);
    pthread_mutex_unlock(&red->lock);
    return reduce_below(red, member, end);
out:
    return st;
}

cek_status cek__reducer_finish(cek__reducer *red, size_t member)
{
    cek_status st;
    owner *w = &red->owners[member];
    while (w->next < red->layout->bucket_count) {
        size_t end;
        bool failed;
        pthread_mutex_lock(&red->lock);
        while ((end = complete(red)) <= w->next && !red->failed)
            pthread_cond_wait(&red->changed, &red->lock);
        failed = red->failed;
        pthread_mutex_unlock(&red->lock);
        if (failed)
            CEK_FAIL(CEK_CANCELLED, "another device failed");
        CEK_TRY(reduce_below(red, member, end));
    }
    for (size_t r = 0; r < red->count; r++)
        if (r != member)
            CEK_TRY(cek_marker_record(w->pushed[r], w->lanes[r]));
    return CEK_OK;
out:
    return st;
}

cek_status cek__reducer_settle(cek__reducer *red)
{
    cek_status st;
    for (size_t o = 0; o < red->count; o++)
        for (size_t r = 0; r < red->count; r++)
            if (r != o)
                CEK_TRY(cek_stream_wait(cek__replica_stream(red->replicas[r]), red->owners[o].pushed[r]));
    return CEK_OK;
out:
    return st;
}

cek_status cek__reducer_read_gradient(cek__reducer *red, size_t bucket, uint64_t first, uint64_t count, void *dst)
{
    cek_status st;
    uint64_t end = first + count;
    for (size_t o = 0; o < red->count; o++) {
        cek__shard s = red->owners[o].shards[bucket];
        uint64_t from = s.first > first ? s.first : first, to = s.end < end ? s.end : end;
        if (from < to)
            CEK_TRY(cek__replica_read(
                red->replicas[o], element(red, cek__replica_gradients(red->replicas[o], bucket), from),
                (unsigned char *)dst + (from - first) * red->element_bytes, (to - from) * red->element_bytes));
    }
    return CEK_OK;
out:
    return st;
}
