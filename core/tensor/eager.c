/* eager.c - a small cache of operation objects per device, and the workspace that they share.
 *
 * Owns: both, hung on the device, in the turn of its default stream. Creating an operation may choose, tune and
 * compile, so an object is kept under the bytes of its descriptor; the least recently used half goes when the cache is
 * full. All run in the order of one stream, so one workspace serves them all. */
#include "core/tensor/eager.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/device/call.h"
#include "core/device/stream.h"

enum { OPS_MAX = 64 };   /* descriptors of an eager program's loop; each costs its backend some KiB */
enum { KEY_MAX = 4096 }; /* the largest descriptor with its arrays is 1.5 KiB */

typedef struct entry {
    cek_op *op;
    uint64_t workspace_bytes;
    uint64_t last_use;
    uint64_t hash;
    size_t key_size;
    uint8_t *key;
} entry;

typedef struct eager {
    entry entries[OPS_MAX];
    int count;
    uint64_t clock;
    cek_memory *workspace;
} eager;

typedef struct key {
    size_t size;
    uint8_t bytes[KEY_MAX];
} key;

/* ---- keys ---- */

static cek_status key_append(key *k, const void *data, size_t size)
{
    if (size > KEY_MAX - k->size)
        return cek__fail(CEK_INVALID, "a descriptor of more than %d bytes", KEY_MAX);
    memcpy(k->bytes + k->size, data, size);
    k->size += size;
    return CEK_OK;
}

static void pointer_clear(key *k, size_t offset)
{
    memset(k->bytes + offset, 0, sizeof(void *));
}

/* The descriptor without its pointers, then what these point to. */
static cek_status key_make(const cek_op_desc *desc, key *k)
{
    cek_status st;

    k->size = 0;
    CEK_TRY(key_append(k, desc, desc->size));
    pointer_clear(k, offsetof(cek_op_desc, forward));
    pointer_clear(k, offsetof(cek_op_desc, epilogue));
    if (desc->epilogue != NULL)
        CEK_TRY(key_append(k, desc->epilogue, desc->epilogue->size));
    if (desc->kind == CEK_OP_POINTWISE) {
        const cek_pointwise_desc *pw = (const cek_pointwise_desc *)desc;

        pointer_clear(k, offsetof(cek_pointwise_desc, inputs));
        pointer_clear(k, offsetof(cek_pointwise_desc, instructions));
        CEK_TRY(key_append(k, pw->inputs, pw->input_count * sizeof *pw->inputs));
        CEK_TRY(key_append(k, pw->instructions, pw->instruction_count * sizeof *pw->instructions));
    }
out:
    return st;
}

/* FNV-1a over 8 bytes at a time, with the high half folded in; every struct in a key is a multiple of 8 long. */
static uint64_t key_hash(const key *k)
{
    uint64_t hash = 0xcbf29ce484222325, word;

    for (size_t i = 0; i + sizeof word <= k->size; i += sizeof word) {
        memcpy(&word, k->bytes + i, sizeof word);
        hash = (hash ^ word) * 0x100000001b3;
        hash ^= hash >> 32;
    }
    return hash;
}

/* ---- the cache ---- */

static void entry_free(cek_device *device, entry *e)
{
    cek__op_free(device, e->op);
    free(e->key);
}

static void eager_free(cek_device *device, void *attachment)
{
    eager *cache = attachment;

    for (int i = 0; i < cache->count; i++)
        entry_free(device, &cache->entries[i]);
    cek_memory_free(cache->workspace);
    free(cache);
}

static cek_status eager_of(cek_device *device, eager **out)
{
    cek_status st = CEK_OK;

    if (device->attachment == NULL) {
        st = cek__calloc(1, sizeof(eager), &device->attachment);
        device->attachment_free = eager_free;
    }
    *out = device->attachment;
    return st;
}

static int by_age(const void *a, const void *b)
{
    uint64_t x = ((const entry *)a)->last_use, y = ((const entry *)b)->last_use;

    return (x < y) - (x > y);
}

/* Room for one more. An operation may only go once the work that uses it has finished. */
static cek_status room_make(eager *cache, cek_device *device, cek_stream *stream)
{
    cek_status st;

    if (cache->count < OPS_MAX)
        return CEK_OK;
    CEK_TRY(cek_stream_sync(stream, CEK_FOREVER));
    qsort(cache->entries, OPS_MAX, sizeof *cache->entries, by_age);
    while (cache->count > OPS_MAX / 2)
        entry_free(device, &cache->entries[--cache->count]);
out:
    return st;
}

static cek_status op_make(eager *cache, cek_device *device, cek_stream *stream, const cek_op_desc *desc, const key *k,
                          uint64_t hash, entry **out)
{
    cek_status st;
    cek_op_info info = { .size = sizeof info };
    entry e = { .hash = hash, .key_size = k->size };

    CEK_TRY(room_make(cache, device, stream));
    CEK_TRY(cek__malloc(k->size, &e.key));
    memcpy(e.key, k->bytes, k->size);
    CEK_TRY(cek__op_make(device, desc, &info, &e.op));
    e.workspace_bytes = info.workspace_bytes;
    cache->entries[cache->count] = e;
    *out = &cache->entries[cache->count++];
    return CEK_OK;
out:
    free(e.key);
    return st;
}

static cek_status op_find(eager *cache, cek_device *device, cek_stream *stream, const cek_op_desc *desc, entry **out)
{
    cek_status st;
    key k;
    uint64_t hash;

    CEK_TRY(key_make(desc, &k));
    hash = key_hash(&k);
    *out = NULL;
    for (int i = 0; i < cache->count && *out == NULL; i++) {
        entry *e = &cache->entries[i];

        if (e->hash == hash && e->key_size == k.size && memcmp(e->key, k.bytes, k.size) == 0)
            *out = e;
    }
    if (*out == NULL)
        CEK_TRY(op_make(cache, device, stream, desc, &k, hash, out));
    (*out)->last_use = ++cache->clock;
out:
    return st;
}

/* At least `bytes`; a smaller one is freed in stream order, behind the work that uses it. */
static cek_status workspace_of(eager *cache, cek_device *device, uint64_t bytes, cek_ref *out)
{
    cek_status st;

    *out = (cek_ref){ 0 };
    if (bytes == 0)
        return CEK_OK;
    if (cache->workspace == NULL || cek_memory_bytes(cache->workspace) < bytes) {
        cek_memory_free(cache->workspace);
        cache->workspace = NULL;
        CEK_TRY(cek__memory_alloc_order(device, bytes, &cache->workspace));
    }
    *out = cek_memory_ref(cache->workspace);
    return CEK_OK;
out:
    return st;
}

cek_status cek__eager_run(const char *what, cek_device *device, const cek_op_desc *desc, const cek_ref *operands,
                          uint32_t count)
{
    cek_status st;
    cek_stream *stream;
    eager *cache;
    entry *e;
    cek_ref workspace;

    st = cek__device_order_take(device, &stream);
    if (st != CEK_OK)
        return cek__fail_prefix(st, "%s", what);
    CEK_TRY(eager_of(device, &cache));
    CEK_TRY(op_find(cache, device, stream, desc, &e));
    CEK_TRY(workspace_of(cache, device, e->workspace_bytes, &workspace));
    CEK_TRY(cek_stream_run(stream, e->op, operands, count, workspace));
out:
    cek__device_turn_give(device);
    return st != CEK_OK ? cek__fail_prefix(st, "%s", what) : CEK_OK;
}
