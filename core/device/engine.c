/* engine.c - the context: its life, the load report, the list of devices.
 *
 * Owns: the count of those who need the engine. It goes with the last of them, so that objects may be freed in any
 * order.
 * Must not know: where files come from (search.c), which are loaded when (start.c), what devices do. */
#include "core/device/engine.h"

#include <stdlib.h>

#include "config.h"
#include "core/base/alloc.h"
#include "core/base/options.h"
#include "core/base/thread.h"
#include "core/base/trace.h"
#include "core/device/search.h"
#include "core/device/start.h"
#include "core/device/wait.h"

const char *cek_version(void)
{
    return PACKAGE_VERSION;
}

/* ---- life ---- */

cek_status cek_engine_create(const cek_engine_options *options, cek_engine **out)
{
    cek_status st;
    cek_engine *engine = NULL;
    cek_engine_options taken;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK_TRY(cek__options_take("cek_engine_create", &taken, sizeof taken, options));
    if (taken.flags != 0)
        CEK_FAIL(CEK_UNSUPPORTED, "cek_engine_create: unknown flags %#x", taken.flags);
    CEK_TRY(cek__calloc(1, sizeof *engine, &engine));
    atomic_init(&engine->references, 1);
    cek__settings_init(&engine->settings);
    pthread_mutex_init(&engine->lock, NULL);
    cek__cond_init(&engine->changed);
    CEK_TRY(cek__timeout_resolve(taken.timeout_ns, &engine->timeout_ns));
    CEK_TRY(cek__making_timeout_resolve(taken.making_timeout_ns, engine->timeout_ns, &engine->making_timeout_ns));
    CEK_TRY(cek__search(&taken, &engine->report));
    CEK_TRY(cek__candidates_make(engine));
    *out = engine;
    return CEK_OK;
out:
    cek_engine_free(engine);
    return st;
}

static void engine_drop(cek_engine *engine)
{
    if (atomic_fetch_sub_explicit(&engine->references, 1, memory_order_acq_rel) != 1)
        return;
    cek__candidates_free(engine);
    cek__trace_free(engine->trace);
    cek__report_clear(&engine->report);
    if (engine->left) { /* a plugin that still runs may ask for its settings */
        cek__abandon(engine);
        return;
    }
    cek__settings_clear(&engine->settings);
    pthread_cond_destroy(&engine->changed);
    pthread_mutex_destroy(&engine->lock);
    free(engine);
}

void cek_engine_free(cek_engine *engine)
{
    if (engine != NULL)
        engine_drop(engine);
}

void cek__device_take(cek_device *device)
{
    atomic_fetch_add_explicit(&device->engine->references, 1, memory_order_relaxed);
}

void cek__device_drop(cek_device *device)
{
    engine_drop(device->engine);
}

/* ---- the trace ---- */

cek_status cek_trace_start(cek_engine *engine)
{
    cek_status st;
    cek_trace *trace = NULL, *none = NULL;

    CEK__NOT_NULL(engine);
    CEK_TRY(cek__trace_create(&trace));
    if (!atomic_compare_exchange_strong(&engine->trace, &none, trace))
        CEK_FAIL(CEK_INVALID, "cek_trace_start: this engine is being traced");
    return CEK_OK;
out:
    cek__trace_free(trace);
    return st;
}

cek_status cek_trace_save(cek_engine *engine, const char *path)
{
    cek_trace *trace;

    CEK__NOT_NULL(engine);
    CEK__NOT_NULL(path);
    trace = atomic_load_explicit(&engine->trace, memory_order_acquire);
    if (trace == NULL)
        return cek__fail(CEK_INVALID, "cek_trace_save: this engine is not being traced");
    return cek__trace_save(trace, path);
}

cek_trace *cek_device_trace(const cek_device *device)
{
    return device != NULL ? atomic_load_explicit(&device->engine->trace, memory_order_acquire) : NULL;
}

/* ---- the report ---- */

size_t cek_engine_load_count(const cek_engine *engine)
{
    return engine != NULL ? engine->report.count : 0;
}

cek_status cek_engine_load_entry(cek_engine *engine, size_t index, cek_load_entry *out)
{
    cek__report_line line;

    CEK__NOT_NULL(out);
    *out = (cek_load_entry){ .path = "", .plugin = "", .version = "", .stage = "", .reason = "" };
    CEK__NOT_NULL(engine);
    if (index >= engine->report.count)
        return cek__fail(CEK_INVALID, "load entry %zu: there are %zu", index, engine->report.count);
    pthread_mutex_lock(&engine->lock);
    line = engine->report.lines[index];
    pthread_mutex_unlock(&engine->lock);
    *out = (cek_load_entry){ .path = line.path,
                             .plugin = line.plugin != NULL ? line.plugin : "",
                             .version = line.version != NULL ? line.version : "",
                             .stage = line.stage,
                             .reason = line.status != CEK_OK ? cek__report_reason(&line) : "",
                             .status = line.status,
                             .profile = line.profile,
                             .device_count = line.device_count,
                             .abi = line.abi };
    return CEK_OK;
}

cek_status cek_engine_load_report(cek_engine *engine, char **out)
{
    cek_status st;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(engine);
    pthread_mutex_lock(&engine->lock);
    st = cek__report_text(&engine->report, out);
    pthread_mutex_unlock(&engine->lock);
    return st;
}

/* ---- the list of devices ---- */

cek_device *cek__walk_next(const cek_engine *engine, cek__walk *walk)
{
    for (; walk->candidate < engine->report.count; walk->candidate++, walk->index = 0) {
        const cek__candidate *c = &engine->candidates[walk->candidate];

        if (c->started && walk->index < c->module->device_count)
            return c->devices[walk->index++];
    }
    return NULL;
}

cek_status cek_engine_start(cek_engine *engine)
{
    CEK__NOT_NULL(engine);
    return cek__engine_start(engine, NULL, 0);
}

size_t cek_engine_device_count(cek_engine *engine)
{
    size_t count = 0;

    if (engine == NULL || cek__engine_start(engine, NULL, 0) != CEK_OK)
        return 0;
    pthread_mutex_lock(&engine->lock);
    for (cek__walk w = { 0 }; cek__walk_next(engine, &w) != NULL;)
        count++;
    pthread_mutex_unlock(&engine->lock);
    return count;
}

cek_device *cek_engine_device(cek_engine *engine, size_t index)
{
    cek_device *device = NULL;

    if (engine == NULL || cek__engine_start(engine, NULL, 0) != CEK_OK)
        return NULL;
    pthread_mutex_lock(&engine->lock);
    for (cek__walk w = { 0 }; (device = cek__walk_next(engine, &w)) != NULL && index > 0; index--)
        ;
    pthread_mutex_unlock(&engine->lock);
    return device;
}
