/* storage.c - see storage.h. */
#include "core/tensor/storage.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/device/call.h"
#include "core/device/stream.h"

struct cek__storage {
    cek_device *device;
    atomic_size_t users;
    cek_memory *memory; /* NULL: another's, as follows */
    cek_mem *taken;
    uint64_t offset; /* of the other's first byte in `taken` */
    bool read_only;
    void (*release)(void *owner);
    void *owner;
};

cek_status cek__storage_new(cek_device *device, uint64_t bytes, cek__storage **out)
{
    cek_status st;
    cek__storage *storage = NULL;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *storage, &storage));
    storage->device = device;
    storage->users = 1;
    CEK_TRY(cek__memory_alloc_order(device, bytes, &storage->memory));
    *out = storage;
    return CEK_OK;
out:
    free(storage);
    return st;
}

/* Operands lie at multiples of something from where their memory begins, so the plugin is given the aligned address
 * before the first byte; what lies between is never touched. */
cek_status cek__storage_foreign(cek_device *device, const cek_foreign *foreign, bool read_only,
                                void (*release)(void *owner), void *owner, cek__storage **out)
{
    cek_status st;
    cek__storage *storage = NULL;
    cek_dev *dev;
    cek_foreign whole = *foreign;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *storage, &storage));
    *storage = (cek__storage){ .device = device, .users = 1, .read_only = read_only };
    storage->release = release;
    storage->owner = owner;
    storage->offset = foreign->address % CEK_ALIGNMENT;
    whole.address -= storage->offset;
    if (__builtin_add_overflow(whole.bytes, storage->offset, &whole.bytes))
        CEK_FAIL(CEK_INVALID, "%s: more bytes than an address has room for", device->name);
    CEK_TRY(cek__device_open(device, &dev));
    CEK_TRY(CEK__CALL(device, mem_import, dev, &whole, &storage->taken));
    if (storage->taken == NULL)
        CEK_FAIL(CEK_BAD_PLUGIN, "%s: mem_import succeeds without memory", device->name);
    *out = storage;
    return CEK_OK;
out:
    free(storage);
    return st;
}

void cek__storage_disown(cek__storage *storage)
{
    CEK__RELEASE(storage->device, mem_free, storage->taken);
    free(storage);
}

cek__storage *cek__storage_keep(cek__storage *storage)
{
    atomic_fetch_add(&storage->users, 1);
    return storage;
}

/* Waits for the work that was queued with it. False: it did not end, and may still write there. */
static bool work_ended(cek_device *device)
{
    cek_stream *stream;
    bool ended;

    if (cek__device_order_take(device, &stream) != CEK_OK)
        return false;
    ended = cek_stream_sync(stream, CEK_FOREVER) == CEK_OK || cek__stream_quiesce(stream);
    cek__device_turn_give(device);
    return ended;
}

void cek__storage_drop(cek__storage *storage)
{
    if (atomic_fetch_sub(&storage->users, 1) != 1)
        return;
    if (storage->memory != NULL) {
        cek_memory_free(storage->memory);
    } else if (work_ended(storage->device)) {
        CEK__RELEASE(storage->device, mem_free, storage->taken);
        storage->release(storage->owner);
    } else {
        cek__abandon(storage->taken);
        cek__abandon(storage->owner);
    }
    free(storage);
}

cek_ref cek__storage_ref(const cek__storage *storage)
{
    return storage->memory != NULL ? cek_memory_ref(storage->memory) : (cek_ref){ storage->taken, storage->offset };
}

bool cek__storage_is_read_only(const cek__storage *storage)
{
    return storage->read_only;
}

bool cek__storages_may_meet(const cek__storage *a, const cek__storage *b)
{
    return a == b || a->memory == NULL || b->memory == NULL;
}
