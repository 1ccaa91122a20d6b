/* cmd_devices.c - `devices`: what is there, and the load report, which says why the rest is not. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/tables.h"
#include "spec/number.h"

static const output_column columns[] = {
    { "device", "device", -14, 0, 0 },       { "kind", "kind", -12, 0, 0 },
    { "name", "name", -44, 0, 0 },           { "compute_units", "units", 5, 0, 0 },
    { "total_bytes", "GiB", 8, 0x1p-30, 1 }, { "free_bytes", "free", 8, 0x1p-30, 1 },
    { "types", "types", -22, 0, 0 },         { "joins", "joins", -5, 0, 0 },
};

static json_t *size_json(uint64_t bytes)
{
    return bytes == CEK_UNKNOWN ? json_null() : json_integer((json_int_t)bytes);
}

/* Groups of 8-4-4-4-12 digits; left as it is where there is none. */
static void uuid_text(const uint8_t uuid[16], char text[40])
{
    static const uint8_t none[16];
    char *at = text;
    if (!memcmp(uuid, none, sizeof none))
        return;
    for (int i = 0; i < 16; i++)
        at += sprintf(at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

static json_t *device_json(cek_device *device, const cek_device_info *info)
{
    static const char *const kinds[] = { "accelerator", "cpu", "gpu", "accelerator" };
    json_t *types = json_array();
    for (cek_dtype t = CEK_F32; t <= CEK_I32; t++)
        if (info->types >> t & 1)
            json_array_append_new(types, json_string(spec_type_name(t)));
    char uuid[40] = "", id[20];
    uuid_text(info->uuid, uuid);
    snprintf(id, sizeof id, "%016" PRIx64, info->numeric_id);
    return json_pack("{ss ss ss ss ss ss ss ss ss si si so so so so sb sb sb sb ss}", "device", cek_device_name(device),
                     "kind", kinds[info->kind < 4 ? info->kind : 0], "name", info->name, "vendor", info->vendor,
                     "driver", info->driver, "pci", info->pci, "uuid", uuid, "processor", info->processor, "numeric_id",
                     id, "compute_units", (int)info->compute_units, "copy_engines", (int)info->copy_engines,
                     "total_bytes", size_json(info->total_bytes), "free_bytes", size_json(info->free_bytes),
                     "max_alloc_bytes", size_json(info->max_alloc_bytes), "types", types, "unified_memory",
                     (info->flags & CEK_DEVICE_UNIFIED_MEMORY) != 0, "inline", (info->flags & CEK_DEVICE_INLINE) != 0,
                     "flushes_denormals", (info->flags & CEK_DEVICE_FLUSHES_DENORMALS) != 0, "joins",
                     !(info->flags & CEK_DEVICE_ONLY_WHEN_NAMED), "reason", info->reason);
}

/* What the table has no room for. 0 or an exit code. */
static int device_note(output *out, cek_device *device)
{
    cek_device_info info = { .size = sizeof info };
    char uuid[40] = "";
    cek_status st = cek_device_describe(device, &info);
    if (st)
        return complain_status(st);
    uuid_text(info.uuid, uuid);
    output_note(out, "\n%s", cek_device_name(device));
    output_note(out, "    driver     %s%s%s", info.driver, *info.vendor ? ", " : "", info.vendor);
    if (info.max_alloc_bytes != CEK_UNKNOWN)
        output_note(out, "    memory     at most %.1f GiB in one piece%s", (double)info.max_alloc_bytes * 0x1p-30,
                    info.flags & CEK_DEVICE_UNIFIED_MEMORY ? ", the host's own" : "");
    output_note(out, "    processor  %s%s%s", info.processor, *uuid ? ", " : "", uuid);
    if (info.flags & CEK_DEVICE_ONLY_WHEN_NAMED)
        output_note(out, "    joins      only when named%s%s", *info.reason ? ": " : "", info.reason);
    if (info.copy_engines)
        output_note(out, "    copies     %u beside computation", info.copy_engines);
    if (info.flags & CEK_DEVICE_INLINE)
        output_note(out, "    commands   have been executed when the call returns");
    if (info.flags & CEK_DEVICE_FLUSHES_DENORMALS)
        output_note(out, "    denormals  may count as 0");
    output_note(out, "    computes   as any device with id %016" PRIx64, info.numeric_id);
    return EXIT_OK;
}

static json_t *report_json(cek_engine *engine)
{
    json_t *list = json_array();
    for (size_t i = 0; i < cek_engine_load_count(engine); i++) {
        cek_load_entry e;
        if (cek_engine_load_entry(engine, i, &e))
            continue;
        json_array_append_new(list, json_pack("{so ss ss ss so ss si si}", "path", text_json(e.path), "plugin",
                                              e.plugin, "version", e.version, "stage", e.stage, "reason",
                                              text_json(e.reason), "status", cek_status_name(e.status), "profile",
                                              (int)e.profile, "devices", (int)e.device_count));
    }
    return list;
}

int devices_rows(const bench_options *o, cek_engine *engine, output *out)
{
    int code = EXIT_OK;
    output_open(out, o->output, columns, sizeof columns / sizeof *columns, "devices");
    for (size_t i = 0; i < cek_engine_device_count(engine); i++) {
        cek_device *device = cek_engine_device(engine, i);
        cek_device_info info = { .size = sizeof info };
        cek_status st = cek_device_describe(device, &info);
        if (st)
            code = complain_status(st);
        else
            output_row(out, device_json(device, &info));
    }
    return code;
}

int cmd_devices(const bench_options *o)
{
    cek_engine *engine = NULL;
    output out;
    if (o->argc)
        return complain(EXIT_USAGE, "devices takes no argument: %s", o->argv[0]);
    int code = engine_open(o, &engine);
    if (code)
        return code;
    cek_status started = cek_engine_start(engine);
    if (started) {
        code = complain_status(started);
        cek_engine_free(engine);
        return code;
    }
    const size_t count = cek_engine_device_count(engine);
    code = devices_rows(o, engine, &out);
    output_set(&out, "plugins", report_json(engine));
    for (size_t i = 0; i < count && !o->quiet && !code; i++)
        code = device_note(&out, cek_engine_device(engine, i));
    char *report = NULL;
    if (!o->quiet && !code) {
        cek_status st = cek_engine_load_report(engine, &report);
        if (st)
            code = complain_status(st);
        else
            output_note(&out, "\nload report:\n%s", report);
    }
    free(report);
    if (!code)
        code = loads_judge(engine);
    cek_engine_free(engine);
    if (!count && !code)
        code = complain(EXIT_NO_DEVICE, "no device");
    return output_close(&out, code);
}
