/* loader_api.c - nn.h's loader: one batch at a time, in memory that a device copies from fastest.
 *
 * Owns: options and their defaults, and which batch the caller has. Must not know: how batches are filled
 * (loader.c). */
#include "cekernels/nn.h"
#include "core/base/options.h"
#include "core/base/status.h"
#include "nn/data/loader.h"

static cek_status pinned_alloc(void *device, uint64_t bytes, void **out)
{
    return cek_pinned_alloc(device, bytes, out);
}

static void pinned_free(void *device, void *memory)
{
    cek_pinned_free(device, memory);
}

cek_status cek_loader_create(const cek_dataset *dataset, const cek_loader_options *options, cek_loader **out)
{
    /* defaults: torch's usual batch; one batch being used, one ready, one in the making */
    enum { BATCH = 64, PREFETCH = 2 };
    cek_loader_options o;
    cek__loader_config config;
    cek_status st;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(dataset);
    st = cek__options_take("cek_loader_create", &o, sizeof o, options);
    if (st != CEK_OK)
        return st;
    config = (cek__loader_config){ .batch = o.batch != 0 ? o.batch : BATCH,
                                   .shuffle = o.shuffle,
                                   .drop_last = o.drop_last,
                                   .workers = o.workers,
                                   .prefetch = o.prefetch != 0 ? o.prefetch : PREFETCH,
                                   .held = 1,
                                   .seed = o.seed };
    if (o.workers == CEK_WORKERS_AUTO)
        config.workers = cek__loader_workers(dataset, config.batch);
    if (o.pin_for != NULL) {
        config.memory_alloc = pinned_alloc;
        config.memory_free = pinned_free;
        config.memory_user = o.pin_for;
    }
    return cek__loader_create(dataset, &config, out);
}

cek_status cek_loader_start(cek_loader *loader, int64_t epoch)
{
    CEK__NOT_NULL(loader);
    cek__loader_give_back_all(loader);
    return cek__loader_begin(loader, epoch, 0);
}

cek_status cek_loader_next(cek_loader *loader, const cek_batch **batch)
{
    const cek__batch *next;
    cek_status st;

    CEK__NOT_NULL(batch);
    *batch = NULL;
    CEK__NOT_NULL(loader);
    cek__loader_give_back_all(loader);
    st = cek__loader_take(loader, &next);
    if (st == CEK_OK && next != NULL)
        *batch = &next->batch;
    return st;
}
