/* engine.c - the context: loads plugins along the search order, and owns their devices.
 *
 * Owns: modules, devices, the load report.
 * Must not know: where files come from (search.c), how one is loaded
 * (module.c), what devices do. */
#include "core/device/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "core/base/alloc.h"
#include "core/base/log.h"
#include "core/base/options.h"
#include "core/device/search.h"

const char *cek_version(void)
{
    return PACKAGE_VERSION;
}

/* ---- loading ---- */

static const cek__module *module_named(const cek_engine *engine, const char *name)
{
    for (size_t i = 0; i < engine->module_count; i++)
        if (strcmp(engine->modules[i]->table.name, name) == 0)
            return engine->modules[i];
    return NULL;
}

static const char *path_of(const cek_engine *engine, const char *plugin)
{
    for (size_t i = 0; i < engine->report.count; i++)
        if (engine->report.lines[i].status == CEK_OK && engine->report.lines[i].plugin != NULL &&
            strcmp(engine->report.lines[i].plugin, plugin) == 0)
            return engine->report.lines[i].path;
    return "another file";
}

static cek_status devices_add(cek_engine *engine, cek__module *module)
{
    cek_status st = CEK_OK;
    size_t count = engine->device_count + module->device_count;

    if (module->device_count == 0)
        return CEK_OK;
    CEK_TRY(cek__realloc_array(count, sizeof *engine->devices, &engine->devices));
    for (uint32_t i = 0; i < module->device_count; i++) {
        CEK_TRY(cek__device_create(engine, module, i, &engine->devices[engine->device_count]));
        engine->device_count++;
    }
out:
    return st;
}

/* The candidate of one line of the report. What happens to it ends in that line; only want of host memory is a
 * failure. */
static cek_status candidate_load(cek_engine *engine, cek__report_line *line)
{
    cek_status st;
    cek__module *module = NULL;
    bool started;

    CEK_TRY(cek__module_open(line->path, &engine->settings, line, &module));
    if (module == NULL)
        return CEK_OK;
    if (module_named(engine, module->table.name) != NULL) {
        cek__fail(CEK_UNAVAILABLE, "a plugin of this name was loaded from %s", path_of(engine, module->table.name));
        st = cek__report_stop(line, "query", CEK_UNAVAILABLE);
        goto out;
    }
    CEK_TRY(cek__module_start(module, line, &started));
    if (!started)
        goto out;
    CEK_TRY(cek__realloc_array(engine->module_count + 1, sizeof *engine->modules, &engine->modules));
    engine->modules[engine->module_count++] = module;
    return devices_add(engine, module); /* the module is the engine's now */
out:
    cek__module_free(module);
    return st;
}

static void line_log(const cek__report_line *line)
{
    if (line->status == CEK_OK)
        cek__log(CEK_LOG_INFO, "%s: plugin %s %s, %u device%s", line->path, line->plugin, line->version,
                 line->device_count, line->device_count == 1 ? "" : "s");
    else
        cek__log(line->status == CEK_UNAVAILABLE ? CEK_LOG_INFO : CEK_LOG_WARN, "%s: %s: %s", line->path, line->stage,
                 line->reason);
}

cek_status cek_engine_create(const cek_engine_options *options, cek_engine **out)
{
    cek_status st;
    cek_engine *engine = NULL;
    cek_engine_options taken;

    *out = NULL;
    CEK_TRY(cek__options_take("cek_engine_create", &taken, sizeof taken, options));
    if (taken.flags != 0)
        CEK_FAIL(CEK_UNSUPPORTED, "cek_engine_create: unknown flags %#x", taken.flags);
    CEK_TRY(cek__calloc(1, sizeof *engine, &engine));
    cek__settings_init(&engine->settings);
    CEK_TRY(cek__search(&taken, &engine->report));
    for (size_t i = 0; i < engine->report.count; i++) {
        if (engine->report.lines[i].status == CEK_OK)
            CEK_TRY(candidate_load(engine, &engine->report.lines[i]));
        line_log(&engine->report.lines[i]);
    }
    *out = engine;
    return CEK_OK;
out:
    cek_engine_free(engine);
    return st;
}

void cek_engine_free(cek_engine *engine)
{
    if (engine == NULL)
        return;
    for (size_t i = engine->device_count; i-- > 0;)
        cek__device_free(engine->devices[i]);
    for (size_t i = engine->module_count; i-- > 0;)
        cek__module_free(engine->modules[i]);
    free(engine->devices);
    free(engine->modules);
    cek__report_clear(&engine->report);
    cek__settings_clear(&engine->settings);
    free(engine);
}

/* ---- the report and the list of devices ---- */

size_t cek_engine_load_count(const cek_engine *engine)
{
    return engine->report.count;
}

cek_status cek_engine_load_entry(const cek_engine *engine, size_t index, cek_load_entry *out)
{
    const cek__report_line *line;

    *out = (cek_load_entry){ .path = "", .plugin = "", .version = "", .stage = "", .reason = "" };
    if (index >= engine->report.count)
        return cek__fail(CEK_INVALID, "load entry %zu: there are %zu", index, engine->report.count);
    line = &engine->report.lines[index];
    *out = (cek_load_entry){ .path = line->path,
                             .plugin = line->plugin != NULL ? line->plugin : "",
                             .version = line->version != NULL ? line->version : "",
                             .stage = line->stage,
                             .reason = line->reason != NULL ? line->reason : "",
                             .status = line->status,
                             .profile = line->profile,
                             .device_count = line->device_count,
                             .abi = line->abi };
    return CEK_OK;
}

cek_status cek_engine_load_report(const cek_engine *engine, char **out)
{
    return cek__report_text(&engine->report, out);
}

size_t cek_engine_device_count(const cek_engine *engine)
{
    return engine->device_count;
}

cek_device *cek_engine_device(const cek_engine *engine, size_t index)
{
    return index < engine->device_count ? engine->devices[index] : NULL;
}
