/* select.c - which devices a user means: "cpu", "cpu:0,cuda:1-3", "all", or nothing said.
 *
 * Owns: the grammar of lists, and the rule that one processor is used once: where several plugins reach it, the
 * backend made for it wins over the general one.
 * Must not know: what a device can do beyond its profile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/options.h"
#include "core/device/engine.h"
#include "core/device/slots.h"

/* One part of a list: a plugin, or a range of its devices. */
typedef struct part {
    const char *text; /* as written, `length` characters */
    size_t length;
    size_t name_length; /* the plugin's name is where the text starts */
    uint32_t first, last;
    bool whole; /* no range: all that there are */
    bool all;   /* "all" */
} part;

typedef struct selection {
    cek_device **devices; /* room for every device of the engine */
    size_t count;
} selection;

/* ---- what is written ---- */

static bool number_read(const char *text, size_t length, uint32_t *out)
{
    uint64_t value = 0;

    if (length == 0 || length > 9)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(text[i] - '0');
    }
    *out = (uint32_t)value;
    return true;
}

static bool range_read(const char *text, size_t length, part *out)
{
    const char *dash = memchr(text, '-', length);
    size_t before = dash != NULL ? (size_t)(dash - text) : length;

    if (!number_read(text, before, &out->first))
        return false;
    out->last = out->first;
    return dash == NULL || (number_read(dash + 1, length - before - 1, &out->last) && out->first <= out->last);
}

static cek_status part_read(const char *what, const char *text, size_t length, part *out)
{
    const char *colon = memchr(text, ':', length);

    *out = (part){ .text = text, .length = length, .whole = colon == NULL };
    out->name_length = colon != NULL ? (size_t)(colon - text) : length;
    out->all = colon == NULL && length == 3 && memcmp(text, "all", 3) == 0;
    if (!cek__plugin_name_ok(text, out->name_length) ||
        (colon != NULL && !range_read(colon + 1, length - out->name_length - 1, out)))
        return cek__fail(CEK_INVALID, "%s: '%.*s' is not a device such as cpu, cuda:0 or cuda:1-3", what, (int)length,
                         text);
    return CEK_OK;
}

/* ---- who joins by itself ---- */

/* How well a plugin fits the processors that it drives: OpenCL reaches nearly everything, but others were made for
 * it. */
static int fitness(const cek_device *device)
{
    const char *plugin = device->plugin->name;

    if (strcmp(plugin, "opencl") == 0)
        return 0;
    return strcmp(plugin, "cuda") == 0 || strcmp(plugin, "cpu") == 0 ? 2 : 1;
}

static bool may_join(const cek_device *device)
{
    return (device->info.flags & CEK_DEVICE_ONLY_WHEN_NAMED) == 0 && device->plugin->profile >= CEK_PROFILE_INFERENCE;
}

/* The same silicon through another plugin that fits it better, or equally well and was loaded before. One plugin may
 * split a processor into several devices: those are different. */
static bool is_second_view(const cek_engine *engine, size_t index)
{
    const cek_device *device = engine->devices[index];

    if (device->info.processor[0] == '\0')
        return false;
    for (size_t i = 0; i < engine->device_count; i++) {
        const cek_device *other = engine->devices[i];

        if (other->module != device->module && may_join(other) &&
            strcmp(other->info.processor, device->info.processor) == 0 &&
            (fitness(other) > fitness(device) || (fitness(other) == fitness(device) && i < index)))
            return true;
    }
    return false;
}

/* ---- selection ---- */

static void take(selection *s, cek_device *device)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->devices[i] == device)
            return;
    s->devices[s->count++] = device;
}

static bool belongs(const cek_device *device, const part *p)
{
    const char *plugin = device->plugin->name;

    return strlen(plugin) == p->name_length && memcmp(plugin, p->text, p->name_length) == 0 &&
           (p->whole || (device->index >= p->first && device->index <= p->last));
}

/* A plugin's name alone leaves out its devices that are only taken when named themselves (OpenCL's
 * simulators), unless it has no other. */
static bool is_meant(const cek_engine *engine, const cek_device *device, const part *p)
{
    if (!belongs(device, p) || !p->whole || may_join(device))
        return belongs(device, p);
    for (size_t i = 0; i < engine->device_count; i++)
        if (belongs(engine->devices[i], p) && may_join(engine->devices[i]))
            return false;
    return true;
}

static bool part_complete(const cek_engine *engine, const part *p)
{
    uint32_t found = 0;

    for (size_t i = 0; i < engine->device_count; i++)
        found += p->all ? may_join(engine->devices[i]) : is_meant(engine, engine->devices[i], p);
    return found > 0 && (p->whole || found == p->last - p->first + 1);
}

static void part_take(const cek_engine *engine, const part *p, selection *s)
{
    for (size_t i = 0; i < engine->device_count; i++)
        if (p->all ? may_join(engine->devices[i]) && !is_second_view(engine, i)
                   : is_meant(engine, engine->devices[i], p))
            take(s, engine->devices[i]);
}

static cek_status no_device(const cek_engine *engine, const char *text, size_t length)
{
    char names[256] = "none", summary[640];
    size_t used = 0;

    for (size_t i = 0; i < engine->device_count && used + sizeof engine->devices[i]->name < sizeof names; i++)
        used += (size_t)sprintf(names + used, "%s%s", i > 0 ? "," : "", engine->devices[i]->name);
    cek__report_summary(&engine->report, summary, sizeof summary);
    return cek__fail(CEK_NO_DEVICE, "no device for '%.*s'; devices: %s; plugins: %s", (int)length, text, names,
                     summary);
}

/* Walks a list; with `any`, the first part that is there is enough and the others need not be. */
static cek_status list_take(const cek_engine *engine, const char *what, const char *list, bool any, selection *s)
{
    const char *cursor = list, *item;
    size_t length;
    part p;

    while (cek__list_next(&cursor, &item, &length)) {
        cek_status st = part_read(what, item, length, &p);

        if (st != CEK_OK)
            return st;
        if (any && s->count > 0)
            continue; /* still read, so that a malformed list fails on every machine */
        if (part_complete(engine, &p))
            part_take(engine, &p, s);
        else if (!any)
            return no_device(engine, item, length);
    }
    return s->count > 0 ? CEK_OK : no_device(engine, list, strlen(list));
}

static cek_status resolve(const cek_engine *engine, const char *list, bool any, selection *s)
{
    const char *what = "device list";
    cek_status st;

    *s = (selection){ 0 };
    if (list == NULL) {
        what = "CEKERNELS_DEVICES";
        list = cek__env(what);
        any = false;
    }
    CEK_TRY(cek__alloc_array(engine->device_count, sizeof *s->devices, &s->devices));
    CEK_TRY(list_take(engine, what, list != NULL ? list : "all", any, s));
    return CEK_OK;
out:
    free(s->devices);
    *s = (selection){ 0 };
    return st;
}

cek_status cek_engine_select(cek_engine *engine, const char *list, cek_device ***out, size_t *count)
{
    selection s;
    cek_status st = resolve(engine, list, false, &s);

    *out = s.devices;
    *count = s.count;
    return st;
}

cek_status cek_engine_find(cek_engine *engine, const char *alternatives, cek_device **out)
{
    selection s;
    cek_status st = resolve(engine, alternatives, true, &s);

    *out = st == CEK_OK ? s.devices[0] : NULL;
    free(s.devices);
    return st;
}
