/* cmd_devices.c - `devices`: what is there, and the load report, which says why the rest is not. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/tables.h"
#include "spec/number.h"

#define SENSORS_NS 100000000L /* between two readings: ten of the system's ticks, and nobody notices */

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

static json_t *sensor_json(const cek_device_sensors *now, uint32_t sensor, double value)
{
    return now->known & sensor ? json_real(value) : json_null();
}

/* What is not known is null. */
static json_t *sensors_json(const cek_device_sensors *now)
{
    return json_pack("{so so so so so so}", "utilization", sensor_json(now, CEK_SENSOR_UTILIZATION, now->utilization),
                     "temperature_celsius", sensor_json(now, CEK_SENSOR_TEMPERATURE, now->celsius), "power_watts",
                     sensor_json(now, CEK_SENSOR_POWER, now->watts), "clock_hertz",
                     sensor_json(now, CEK_SENSOR_CLOCK, now->hertz), "used_bytes",
                     size_json(now->known & CEK_SENSOR_MEMORY ? now->used_bytes : CEK_UNKNOWN), "throttled",
                     now->known & CEK_SENSOR_THROTTLED ? json_boolean(now->throttled) : json_null());
}

/* A device without sensors knows nothing: that is no failure. 0 or an exit code. */
static int sensors_ask(cek_device *device, cek_device_sensors *out)
{
    *out = (cek_device_sensors){ .size = sizeof *out };
    const cek_status st = cek_device_read_sensors(device, out);
    return st && st != CEK_UNSUPPORTED ? complain_status(st) : EXIT_OK;
}

/* The load of a processor is that since the reading before: this is the one before, where there is a device that tells
 * something, but not yet that. */
static void sensors_begin(cek_engine *engine)
{
    bool wait = false;
    for (size_t i = 0; i < cek_engine_device_count(engine); i++) {
        cek_device_sensors now = { .size = sizeof now };
        if (!cek_device_read_sensors(cek_engine_device(engine, i), &now))
            wait |= now.known && !(now.known & CEK_SENSOR_UTILIZATION);
    }
    if (wait)
        nanosleep(&(struct timespec){ .tv_nsec = SENSORS_NS }, NULL);
}

/* One thing more, behind a comma. */
static void text_add(char text[DEVICE_NOW_BYTES], const char *format, ...) __attribute__((format(printf, 2, 3)));
static void text_add(char text[DEVICE_NOW_BYTES], const char *format, ...)
{
    va_list args;
    const size_t used = strlen(text),
                 at = used + (used ? (size_t)snprintf(text + used, DEVICE_NOW_BYTES - used, ", ") : 0);
    va_start(args, format);
    if (at < DEVICE_NOW_BYTES)
        vsnprintf(text + at, DEVICE_NOW_BYTES - at, format, args);
    va_end(args);
}

int device_now(cek_device *device, char text[DEVICE_NOW_BYTES])
{
    cek_device_sensors now;
    const int code = sensors_ask(device, &now);
    *text = 0;
    if (now.known & CEK_SENSOR_UTILIZATION)
        text_add(text, "%.0f%% busy", 100 * now.utilization);
    if (now.known & CEK_SENSOR_TEMPERATURE)
        text_add(text, "%.0f degrees Celsius", now.celsius);
    if (now.known & CEK_SENSOR_POWER)
        text_add(text, "%.0f W", now.watts);
    if (now.known & CEK_SENSOR_CLOCK)
        text_add(text, "%.0f MHz", now.hertz * 1e-6);
    if (now.known & CEK_SENSOR_MEMORY)
        text_add(text, "%.1f of %.1f GiB in use", (double)now.used_bytes * 0x1p-30, (double)now.total_bytes * 0x1p-30);
    if (now.known & CEK_SENSOR_THROTTLED && now.throttled)
        text_add(text, "held back by heat or power");
    return code;
}

static json_t *device_json(cek_device *device, const cek_device_info *info, const cek_device_sensors *now)
{
    static const char *const kinds[] = { "accelerator", "cpu", "gpu", "accelerator" };
    json_t *types = json_array();
    for (cek_dtype t = CEK_F32; t <= CEK_I32; t++)
        if (info->types >> t & 1)
            json_array_append_new(types, json_string(spec_type_name(t)));
    char uuid[40] = "", id[20];
    uuid_text(info->uuid, uuid);
    snprintf(id, sizeof id, "%016" PRIx64, info->numeric_id);
    json_t *row = json_pack(
        "{ss ss ss ss ss ss ss ss ss si si so so so so sb sb sb sb ss}", "device", cek_device_name(device), "kind",
        kinds[info->kind < 4 ? info->kind : 0], "name", info->name, "vendor", info->vendor, "driver", info->driver,
        "pci", info->pci, "uuid", uuid, "processor", info->processor, "numeric_id", id, "compute_units",
        (int)info->compute_units, "copy_engines", (int)info->copy_engines, "total_bytes", size_json(info->total_bytes),
        "free_bytes", size_json(info->free_bytes), "max_alloc_bytes", size_json(info->max_alloc_bytes), "types", types,
        "unified_memory", (info->flags & CEK_DEVICE_UNIFIED_MEMORY) != 0, "inline",
        (info->flags & CEK_DEVICE_INLINE) != 0, "flushes_denormals", (info->flags & CEK_DEVICE_FLUSHES_DENORMALS) != 0,
        "joins", !(info->flags & CEK_DEVICE_ONLY_WHEN_NAMED), "reason", info->reason);
    json_object_update_new(row, sensors_json(now));
    return row;
}

/* What the table has no room for. 0 or an exit code. */
static int device_note(output *out, cek_device *device)
{
    cek_device_info info = { .size = sizeof info };
    char uuid[40] = "", now[DEVICE_NOW_BYTES];
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
    const int code = device_now(device, now);
    if (*now)
        output_note(out, "    now        %s", now);
    return code;
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
    sensors_begin(engine);
    output_open(out, o->output, columns, sizeof columns / sizeof *columns, "devices");
    for (size_t i = 0; i < cek_engine_device_count(engine); i++) {
        cek_device_info info = { .size = sizeof info };
        output_expect(out, "device", strlen(cek_device_name(cek_engine_device(engine, i))));
        if (!cek_device_describe(cek_engine_device(engine, i), &info))
            output_expect(out, "name", strlen(info.name));
    }
    for (size_t i = 0; i < cek_engine_device_count(engine); i++) {
        cek_device *device = cek_engine_device(engine, i);
        cek_device_info info = { .size = sizeof info };
        cek_device_sensors now;
        cek_status st = cek_device_describe(device, &info);
        const int told = st ? complain_status(st) : sensors_ask(device, &now);
        code = told ? told : code;
        if (!st)
            output_row(out, device_json(device, &info, &now));
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
