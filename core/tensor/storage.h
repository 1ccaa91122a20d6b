/* storage.h - what tensors share: one piece of memory, freed with the last tensor that looks into it.
 *
 * The memory is the library's own (ordered on the device's default stream, so it may be freed while queued work still
 * uses it), or somebody else's that a plugin has taken in (mem_import), which is given back to its owner once no queued
 * work uses it.
 * Must not know: types, shapes. Threads: a storage may be kept and dropped by any. */
#ifndef CEK_CORE_TENSOR_STORAGE_H
#define CEK_CORE_TENSOR_STORAGE_H

#include "core/device/device.h"

typedef struct cek__storage cek__storage;

/* One reference, the caller's. It does not keep the device: tensors do. */
CEK__CHECKED cek_status cek__storage_new(cek_device *device, uint64_t bytes, cek__storage **out);

/* Of `bytes` at foreign->address on (any alignment), which stay another's: release(owner) is called once, when nobody
 * uses the memory any more, but not for a device that is lost and may still do so. */
CEK__CHECKED cek_status cek__storage_foreign(cek_device *device, const cek_foreign *foreign, bool read_only,
                                             void (*release)(void *owner), void *owner, cek__storage **out);

/* Frees another's memory that nothing has used yet, without release(): its owner keeps it. */
void cek__storage_disown(cek__storage *storage);

cek__storage *cek__storage_keep(cek__storage *storage);
void cek__storage_drop(cek__storage *storage);

/* Where it begins; of another's, where the other's memory does. */
cek_ref cek__storage_ref(const cek__storage *storage);

/* Nobody may write there. */
bool cek__storage_is_read_only(const cek__storage *storage);

/* Whether what is written to one may be seen in the other: another's memory may be ours, handed out and taken in. */
bool cek__storages_may_meet(const cek__storage *a, const cek__storage *b);

#endif
