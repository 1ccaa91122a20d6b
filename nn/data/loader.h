/* loader.h - batches in a given order, filled by threads of its own while the trainer computes.
 *
 * What libcekernels-nn knows of a cek_loader. The order of an epoch is a function of (seed, epoch);
 * batches come in that order whatever the workers do. Several batches may be in the caller's hands
 * at once.
 * Threads: one caller at a time; the workers are the loader's own and block all signals. */
#ifndef CEK_NN_DATA_LOADER_H
#define CEK_NN_DATA_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cekernels/nn.h"
#include "core/base/export.h"

typedef struct cek__loader_config {
    int64_t batch; /* samples; at least 1 */
    bool shuffle;
    bool drop_last;    /* leave out a last batch that is not full */
    uint32_t workers;  /* 0: a batch is filled when it is asked for, on the caller's thread */
    uint32_t prefetch; /* batches ready ahead; at least 1 */
    uint32_t held;     /* batches that the caller may hold at once; at least 1 */
    uint64_t seed;
    /* Memory of the inputs and targets, such as pinned memory. NULL: ordinary, aligned to CEK_ALIGNMENT. Called on the
     * caller's thread, by create and free alone. */
    cek_status (*memory_alloc)(void *user, uint64_t bytes, void **out);
    void (*memory_free)(void *user, void *memory);
    void *memory_user;
} cek__loader_config;

typedef struct cek__batch {
    cek_batch batch; /* what nn.h shows of it */
    int64_t number;  /* in the epoch, from 0 */
    int64_t base;    /* position in the epoch of its first sample */
} cek__batch;

/* How many threads are worth it: one, but none where copying a batch takes no longer than handing it from
 * thread to thread. */
CEK__SHARED uint32_t cek__loader_workers(const cek_dataset *dataset, int64_t batch);

CEK__SHARED CEK__CHECKED cek_status cek__loader_create(const cek_dataset *dataset, const cek__loader_config *config,
                                                       cek_loader **out);

/* Begins an epoch at batch `first` (0, or where a run is resumed), also while another is under way.
 * No batch may be in the caller's hands. */
CEK__SHARED CEK__CHECKED cek_status cek__loader_begin(cek_loader *loader, int64_t epoch, int64_t first);

/* The next batch, NULL at the end. Blocks until it is there. The failure of a read comes in the place of its batch, and
 * again at every further call. */
CEK__SHARED CEK__CHECKED cek_status cek__loader_take(cek_loader *loader, const cek__batch **out);

/* Gives a batch back, in any order; its memory is filled again. */
CEK__SHARED void cek__loader_give_back(cek_loader *loader, const cek__batch *batch);

/* The same for every batch that the caller holds. */
CEK__SHARED void cek__loader_give_back_all(cek_loader *loader);

#endif
