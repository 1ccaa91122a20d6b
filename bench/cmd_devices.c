/* cmd_devices.c - `devices`: what is there, and the load report, which says why the rest is not. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/output.h"
#include "spec/number.h"

static const output_column columns[] = {
    { "device", "device", -14, 0, 0 }, { "kind", "kind", -12, 0, 0 }, { "name", "name", -44, 0, 0 },
    { "compute_units", "units", 5, 0, 0 }, { "total_bytes", "GiB", 8, 0x1p-30, 1 },
    { "free_bytes", "free", 8, 0x1p-30, 1 },
    { "types", "types", -22, 0, 0 },         { "joins", "joins", -5, 0, 0 },
};

static json_t *size_json(uint64_t bytes)
{
    return bytes == CEK_UNKNOWN ? json_null() : json_integer((json_int_t)bytes);
}

static json_t *device_json(cek_device *device, const cek_device_info *info)
{
    static const char *const kinds[] = { "accelerator", "cpu", "gpu", "accelerator" };
    json_t *types = json_array();
    for (cek_dtype t = CEK_F32; t <= CEK_I32; t++)
        if (info->types >> t & 1)
            json_array_append_new(types, json_string(spec_type_name(t)));
    return json_pack(
        "{ss ss ss ss ss ss ss si so so so so sb sb}", "device", cek_device_name(device), "kind",
        kinds[info->kind < 4 ? info->kind : 0], "name", info->name, "vendor", info->vendor,
        "driver", info->driver, "pci", info->pci, "processor", info->processor, "compute_units",
        (int)info->compute_units, "total_bytes", size_json(info->total_bytes), "free_bytes",
        size_json(info->free_bytes), "max_alloc_bytes", size_json(info->max_alloc_bytes), "types",
        types, "unified_memory", (info->flags & CEK_DEVICE_UNIFIED_MEMORY) != 0, "joins",
        !(info->flags & CEK_DEVICE_ONLY_WHEN_NAMED));
}

static json_t *report_json(cek_engine *engine)
{
    json_t *list = json_array();
    for (size_t i = 0; i < cek_engine_load_count(engine); i++) {
        cek_load_entry e;
        if (cek_engine_load_entry(engine, i, &e))
            continue;
        json_array_append_new(list,
                              json_pack("{ss ss ss ss ss ss si si}", "path", e.path, "plugin",
                                        e.plugin, "version", e.version, "stage", e.stage, "reason",
                                        e.reason, "status", cek_status_name(e.status), "profile",
                                        (int)e.profile, "devices", (int)e.device_count));
    }
    return list;
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
    output_open(&out, o->output, columns, sizeof columns / sizeof *columns, "devices");
    size_t count = cek_engine_device_count(engine);
    for (size_t i = 0; i < count; i++) {
        cek_device *device = cek_engine_device(engine, i);
        cek_device_info info = { .size = sizeof info };
        cek_status st = cek_device_describe(device, &info);
        if (st)
            code = complain_status(st);
        else
            output_row(&out, device_json(device, &info));
    }
    output_set(&out, "plugins", report_json(engine));
    char *report = NULL;
    if (!o->quiet && !cek_engine_load_report(engine, &report))
        output_note(&out, "\nload report:\n%s", report);
    free(report);
    cek_engine_free(engine);
    if (!count && !code)
        code = complain(EXIT_NO_DEVICE, "no device");
    return output_close(&out, code);
}
