/* reducer.c - see reducer.h. */
#include "nn/train/reducer.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "nn/train/branches.h"
#include "nn/train/chains.h"
#include "nn/train/room.h"

/* Elements that are added at a time, for each core, on a device that works inline. 128 KiB of f32: what was copied, and
 * the sum, stay in a core's own cache between the copy and the addition; a quarter less time than with pieces that fill
 * it. Beside the host a shard is added at once: its copy and its addition wait once each for a turn on link and engine,
 * which other work has meanwhile. */
enum { PIECE = 32 * 1024 };

/* What the commands of one side use, one after the other. */
typedef struct reducer_side {
    cek_memory *inbox, *workspace;
} reducer_side;

/* An operation over `count` elements; sizes repeat, so there are few. */
typedef struct sized_op {
    uint64_t count;
    cek__chain_op chain;
} sized_op;

typedef struct sized_ops {
    sized_op *list;
    size_t count;
} sized_ops;

struct cek__reducer {
    const cek__shards *shards;
    const cek__replica *replica;
    cek_device *device;
    cek_dtype type;
    uint64_t element_bytes, piece;
    sized_ops adds;
    reducer_side sides[CEK__REDUCER_SIDES];
};

/* ---- operations ---- */

static cek_status add_make(const cek__reducer *red, uint64_t count, sized_op *out)
{
    const cek_pointwise_instruction sum = { .code = CEK_PW_ADD, .a = 0, .b = 1 };

    return cek__chain_make(red->device, red->type, count, 2, &sum, 1, &out->chain);
}

static const sized_op *op_find(const sized_ops *ops, uint64_t count)
{
    for (size_t i = 0; i < ops->count; i++)
        if (ops->list[i].count == count)
            return &ops->list[i];
    return NULL;
}

static cek_status op_want(const cek__reducer *red, sized_ops *ops, uint64_t count)
{
    cek_status st;
    sized_op fresh = { .count = count };

    if (count == 0 || op_find(ops, count) != NULL)
        return CEK_OK;
    CEK_TRY(cek__realloc_array(ops->count + 1, sizeof *ops->list, &ops->list));
    CEK_TRY(add_make(red, count, &fresh));
    ops->list[ops->count++] = fresh;
    return CEK_OK;
out:
    return st;
}

static uint64_t workspace_bytes(const sized_ops *ops)
{
    uint64_t most = 0;

    for (size_t i = 0; i < ops->count; i++)
        most = ops->list[i].chain.workspace_bytes > most ? ops->list[i].chain.workspace_bytes : most;
    return most;
}

/* ---- life ---- */

static cek_status piece_find(cek__reducer *red)
{
    cek_status st;
    cek_device_info info = { .size = sizeof info };

    red->piece = CEK__SHARD_MOST;
    if (!cek__replica_is_inline(red->replica))
        return CEK_OK;
    CEK_TRY(cek_device_describe(red->device, &info));
    if (info.compute_units < CEK__SHARD_MOST / PIECE)
        red->piece = (uint64_t)PIECE * (info.compute_units > 0 ? info.compute_units : 1);
out:
    return st;
}

/* The device adds others' gradients of the shard to its own. */
static bool adds(const cek__shards *shards, size_t shard, size_t device)
{
    return cek__branch_givers(shards, shard, device) > 0;
}

static uint64_t inbox_elements(const cek__shards *shards, uint64_t piece, size_t device)
{
    uint64_t most = 0;

    for (size_t s = 0; s < shards->count; s++)
        if (adds(shards, s, device) && cek__shard_elements(&shards->list[s]) > most)
            most = cek__shard_elements(&shards->list[s]);
    return most < piece ? most : piece;
}

uint64_t cek__reducer_bytes(const cek__shards *shards, cek_dtype type, size_t device)
{
    return CEK__REDUCER_SIDES * inbox_elements(shards, CEK__SHARD_MOST, device) * cek_dtype_bytes(type);
}

uint64_t cek__reducer_room(const cek__reducer *red)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < CEK__REDUCER_SIDES; i++)
        bytes += cek__room_of(red->sides[i].inbox) + cek__room_of(red->sides[i].workspace);
    return bytes;
}

static cek_status ops_make(cek__reducer *red, size_t device)
{
    cek_status st = CEK_OK;

    for (size_t s = 0; s < red->shards->count; s++) {
        uint64_t count = cek__shard_elements(&red->shards->list[s]);
        if (adds(red->shards, s, device) && count >= red->piece)
            CEK_TRY(op_want(red, &red->adds, red->piece));
        if (adds(red->shards, s, device))
            CEK_TRY(op_want(red, &red->adds, count % red->piece));
    }
out:
    return st;
}

static cek_status sides_make(cek__reducer *red, size_t device, size_t count)
{
    cek_status st = CEK_OK;
    uint64_t inbox = inbox_elements(red->shards, red->piece, device) * red->element_bytes;
    uint64_t workspace = workspace_bytes(&red->adds);

    for (size_t i = 0; i < count; i++) {
        if (inbox > 0)
            CEK_TRY(cek_memory_alloc(red->device, inbox, CEK_MEMORY_ALONE, &red->sides[i].inbox));
        if (workspace > 0)
            CEK_TRY(cek_memory_alloc(red->device, workspace, CEK_MEMORY_ALONE, &red->sides[i].workspace));
    }
out:
    return st;
}

cek_status cek__reducer_create(const cek__shards *shards, const cek__replica *replica, cek_dtype type, size_t device,
                               size_t sides, cek__reducer **out)
{
    cek_status st;
    cek__reducer *red = NULL;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *red, &red));
    red->shards = shards;
    red->replica = replica;
    red->device = cek__replica_device(replica);
    red->type = type;
    red->element_bytes = cek_dtype_bytes(type);
    CEK_TRY(piece_find(red));
    CEK_TRY(ops_make(red, device));
    CEK_TRY(sides_make(red, device, sides));
    *out = red;
    return CEK_OK;
out:
    cek__reducer_free(red);
    return st;
}

static void ops_free(cek__reducer *red, sized_ops *ops)
{
    for (size_t i = 0; i < ops->count; i++)
        cek_op_free(red->device, ops->list[i].chain.op);
    free(ops->list);
}

void cek__reducer_free(cek__reducer *red)
{
    if (red == NULL)
        return;
    ops_free(red, &red->adds);
    for (size_t i = 0; i < CEK__REDUCER_SIDES; i++) {
        cek_memory_free(red->sides[i].inbox);
        cek_memory_free(red->sides[i].workspace);
    }
    free(red);
}

/* ---- sums ---- */

static cek_ref workspace_ref(const reducer_side *side, const sized_op *op)
{
    return op->chain.workspace_bytes > 0 ? cek_memory_ref(side->workspace) : (cek_ref){ NULL, 0 };
}

static cek_ref gradient(const cek__reducer *red, size_t shard, uint64_t first)
{
    const cek__shard *s = &red->shards->list[shard];
    cek_ref ref = cek__replica_gradients(red->replica, s->bucket);

    ref.offset += (s->first + first) * red->element_bytes;
    return ref;
}

cek_status cek__reducer_add(cek__reducer *red, cek__exchange *exchange, const cek__action *a, size_t side,
                            cek_stream *stream)
{
    cek_status st;
    const reducer_side *at = &red->sides[side];
    uint64_t count = cek__shard_elements(&red->shards->list[a->shard]);

    if (a->first)
        return cek__exchange_gradients(exchange, a, stream, gradient(red, a->shard, 0), 0, count);
    for (uint64_t i = 0; i < count; i += red->piece) {
        uint64_t n = count - i < red->piece ? count - i : red->piece;
        const sized_op *add = op_find(&red->adds, n);
        cek_ref operands[] = {
            [CEK_POINTWISE_IN0] = gradient(red, a->shard, i),
            [CEK_POINTWISE_IN1] = cek_memory_ref(at->inbox),
            [CEK_POINTWISE_OUT] = gradient(red, a->shard, i),
        };
        CEK_TRY(cek__exchange_gradients(exchange, a, stream, cek_memory_ref(at->inbox), i, n));
        CEK_TRY(cek_stream_run(stream, add->chain.op, operands, CEK_POINTWISE_OUT + 1, workspace_ref(at, add)));
    }
    return CEK_OK;
out:
    return st;
}
