/* norms.c - see norms.h. */
#include "nn/train/norms.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "nn/train/room.h"

enum { SIDES_MOST = 4 };

/* An operation over `count` elements; sizes repeat, so there are few. */
typedef struct sized_op {
    uint64_t count, workspace_bytes;
    cek_op *op;
} sized_op;

struct cek__norms {
    cek_device *device;
    cek_dtype type;
    size_t slots, sides, op_count;
    sized_op *ops;
    cek_memory *squares, *workspace[SIDES_MOST];
    unsigned char *host; /* [slots] at CEK_ALIGNMENT, as on the device */
};

uint64_t cek__norms_bytes(size_t slots)
{
    return slots * CEK_ALIGNMENT;
}

cek_status cek__norms_create(cek_device *device, cek_dtype type, size_t slots, size_t sides, cek__norms **out)
{
    cek_status st;
    cek__norms *n = NULL;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *n, &n));
    *n = (cek__norms){ .device = device, .type = type, .slots = slots, .sides = sides };
    if (slots > 0) {
        CEK_TRY(cek_memory_alloc(device, cek__norms_bytes(slots), CEK_MEMORY_ALONE, &n->squares));
        CEK_TRY(cek_pinned_alloc(device, cek__norms_bytes(slots), (void **)&n->host));
    }
    *out = n;
    return CEK_OK;
out:
    cek__norms_free(n);
    return st;
}

void cek__norms_free(cek__norms *n)
{
    if (n == NULL)
        return;
    for (size_t i = 0; i < n->op_count; i++)
        cek_op_free(n->device, n->ops[i].op);
    for (size_t i = 0; i < SIDES_MOST; i++)
        cek_memory_free(n->workspace[i]);
    cek_memory_free(n->squares);
    cek_pinned_free(n->device, n->host);
    free(n->ops);
    free(n);
}

uint64_t cek__norms_workspace_bytes(const cek__norms *n)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < SIDES_MOST; i++)
        bytes += cek__room_of(n->workspace[i]);
    return bytes;
}

static const sized_op *op_find(const cek__norms *n, uint64_t count)
{
    for (size_t i = 0; i < n->op_count; i++)
        if (n->ops[i].count == count)
            return &n->ops[i];
    return NULL;
}

cek_status cek__norms_want(cek__norms *n, uint64_t count)
{
    cek_status st;
    cek_op_info info = { .size = sizeof info };
    sized_op fresh = { .count = count };
    cek_reduce_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_REDUCE, .operands = CEK_BIT(CEK_REDUCE_X) | CEK_BIT(CEK_REDUCE_Y) },
        .function = CEK_REDUCE_SUM_SQUARES,
        .axes = 1,
        .rank = 1,
        .x_type = n->type,
        .shape = { count },
        .x_strides = { 1 },
    };

    if (op_find(n, count) != NULL)
        return CEK_OK;
    CEK_TRY(cek__realloc_array(n->op_count + 1, sizeof *n->ops, &n->ops));
    CEK_TRY(cek_op_make(n->device, &desc.op, &info, &fresh.op));
    fresh.workspace_bytes = info.workspace_bytes;
    n->ops[n->op_count++] = fresh;
out:
    return st;
}

cek_status cek__norms_ready(cek__norms *n)
{
    cek_status st = CEK_OK;
    uint64_t bytes = 0;

    for (size_t i = 0; i < n->op_count; i++)
        bytes = n->ops[i].workspace_bytes > bytes ? n->ops[i].workspace_bytes : bytes;
    for (size_t i = 0; bytes > 0 && i < n->sides; i++)
        CEK_TRY(cek_memory_alloc(n->device, bytes, CEK_MEMORY_ALONE, &n->workspace[i]));
out:
    return st;
}

static cek_ref place(const cek__norms *n, size_t slot)
{
    cek_ref ref = cek_memory_ref(n->squares);

    ref.offset += slot * CEK_ALIGNMENT;
    return ref;
}

cek_status cek__norms_measure(cek__norms *n, size_t slot, cek_ref what, uint64_t count, size_t side, cek_stream *stream)
{
    const sized_op *o = op_find(n, count);
    const cek_ref operands[2] = { [CEK_REDUCE_X] = what, [CEK_REDUCE_Y] = place(n, slot) };

    return cek_stream_run(stream, o->op, operands, 2,
                          o->workspace_bytes > 0 ? cek_memory_ref(n->workspace[side]) : (cek_ref){ NULL, 0 });
}

cek_status cek__norms_fetch(cek__norms *n, size_t first, size_t slots, cek_stream *stream)
{
    if (slots == 0)
        return CEK_OK;
    return cek_stream_download(stream, n->host + first * CEK_ALIGNMENT, place(n, first),
                               (slots - 1) * CEK_ALIGNMENT + cek_dtype_bytes(n->type));
}

double cek__norms_square(const cek__norms *n, size_t slot)
{
    const unsigned char *raw = n->host + slot * CEK_ALIGNMENT;
    double wide;
    float single;

    if (n->type == CEK_F64) {
        memcpy(&wide, raw, sizeof wide);
        return wide;
    }
    memcpy(&single, raw, sizeof single);
    return (double)single;
}
