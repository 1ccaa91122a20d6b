/* tables.c - see tables.h. */
#include "bench/tables.h"

#include <stdlib.h>
#include <string.h>

#include "bench/progress.h"

size_t words_count(const char *list)
{
    size_t count = 1;
    for (; *list; list++)
        count += *list == ',';
    return count;
}

void words_expect(output *out, const char *key, const char *list)
{
    for (const char *at = list; *at; at += strspn(at, ",")) {
        output_expect(out, key, strcspn(at, ","));
        at += strcspn(at, ",");
    }
}

void devices_expect(output *out, const char *key, cek_device *const *devices, size_t count)
{
    for (size_t i = 0; i < count; i++)
        output_expect(out, key, strlen(cek_device_name(devices[i])));
}

json_t *runs_json(const double *seconds, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_real(seconds[i] * 1e9));
    return list;
}

/* What a number means nothing without. */
static void about_set(output *out, const char *command, cek_device *const *devices, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        cek_device_info info = { .size = sizeof info };
        if (!cek_device_describe(devices[i], &info))
            json_array_append_new(list, json_pack("{ss so so}", "device", cek_device_name(devices[i]), "name",
                                                  text_json(info.name), "driver", text_json(info.driver)));
    }
    output_set(out, "command", json_string(command));
    output_set(out, "version", json_string(cek_version()));
    output_set(out, "devices", list);
}

int table_run(const bench_options *o, const char *command, uint32_t profile, table_rows *rows)
{
    cek_engine *engine = NULL;
    cek_device **devices = NULL;
    size_t count = 0;
    output out;
    int code = devices_open(o, profile, &engine, &devices, &count);
    if (code)
        return code;
    code = rows(o, devices, count, &out);
    progress_end();
    about_set(&out, command, devices, count);
    free(devices);
    cek_engine_free(engine);
    return output_close(&out, code);
}
