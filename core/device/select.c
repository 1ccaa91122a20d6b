/* select.c - which devices a user means: "cpu", "cpu:0,cuda:1,3-5", "gpu", "fastest", "all", or nothing said.
 *
 * Owns: the grammar of lists, what starts the plugins that they name and no others, which device counts as the fastest,
 * and the rule that one processor is used once: where several plugins reach it, the backend made for it wins over the
 * general one.
 * Must not know: what a device can do beyond its profile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/nearest.h"
#include "core/base/options.h"
#include "core/base/views.h"
#include "core/device/engine.h"
#include "core/device/search.h"
#include "core/device/start.h"
#include "core/table/table.h"

/* Words of lists, which no plugin may be called: over the devices that would join the job by themselves. */
typedef enum word { NO_WORD, ALL, GPU, FASTEST } word;
static const char *const words[] = { [ALL] = "all", [GPU] = "gpu", [FASTEST] = "fastest" };

/* One part of a list: a plugin or a word, or a range of its devices. */
typedef struct part {
    const char *text; /* as written, `length` characters */
    size_t length;
    const char *name; /* the plugin's, or the word; of the part before where the text is a bare number */
    size_t name_length;
    word word;
    uint32_t first, last;
    bool whole; /* no range: all that there are */
} part;

typedef struct selection {
    const cek_engine *engine;
    uint32_t profile; /* that the job needs */
    cek_device **devices;
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

/* "; did you mean 'cuda'?" of a plugin's name: of words and plugins, started or not. "" for one that is there. */
static const char *hint(const cek_engine *engine, const part *p, cek__nearest *near)
{
    if (engine->report.count == 0)
        return "";
    cek__nearest_begin(near, p->name, p->name_length);
    for (size_t i = 0; i < engine->report.count; i++) {
        const cek__report_line *line = &engine->report.lines[i];
        char name[CEK__WORD_MAX];
        size_t length;
        const char *file = cek__plugin_file_name(line->path, &length);

        snprintf(name, sizeof name, "%.*s", (int)length, file);
        cek__nearest_try(near, line->plugin != NULL ? line->plugin : name);
    }
    for (word w = ALL; w <= FASTEST; w++)
        cek__nearest_try(near, words[w]);
    return strlen(near->word) == p->name_length && memcmp(near->word, p->name, p->name_length) == 0
               ? ""
               : cek__nearest_hint(near);
}

static word word_of(const char *text, size_t length)
{
    for (word w = ALL; w <= FASTEST; w++)
        if (strlen(words[w]) == length && memcmp(words[w], text, length) == 0)
            return w;
    return NO_WORD;
}

/* A number alone, or a range, goes on with the plugin of the part before, which had numbers too. */
static cek_status part_read(const cek_engine *engine, const char *what, const char *text, size_t length,
                            const part *before, part *out)
{
    const bool bare = length > 0 && text[0] >= '0' && text[0] <= '9' && before->name != NULL && !before->whole;
    const char *colon = bare ? NULL : memchr(text, ':', length);
    const char *range = bare ? text : colon != NULL ? colon + 1 : NULL;
    cek__nearest near;

    *out = (part){ .text = text, .length = length, .whole = range == NULL };
    out->name = bare ? before->name : text;
    out->name_length = bare ? before->name_length : colon != NULL ? (size_t)(colon - text) : length;
    out->word = word_of(out->name, out->name_length);
    if (cek__plugin_name_ok(out->name, out->name_length) &&
        (range == NULL ||
         (range_read(range, length - (size_t)(range - text), out) && out->word != ALL && out->word != FASTEST)))
        return CEK_OK;
    return cek__fail(CEK_INVALID, "%s: '%.*s' is not a device such as cpu, cuda:0,2-3, gpu, fastest or all%s", what,
                     (int)length, text, hint(engine, out, &near));
}

/* ---- who joins by itself ---- */

static bool is_open_to_all(const cek_device *device)
{
    return (device->info.flags & CEK_DEVICE_ONLY_WHEN_NAMED) == 0;
}

static bool can(const selection *s, const cek_device *device)
{
    return device->plugin->profile >= s->profile;
}

static cek__view view_of(const cek_device *device)
{
    return (cek__view){ device->name, device->info.processor };
}

/* The same silicon through another plugin that fits it better, or equally well and stands before. */
static bool is_second_view(const selection *s, const cek_device *device)
{
    cek_device *other;
    const cek__view view = view_of(device);
    bool before = true;

    for (cek__walk w = { 0 }; (other = cek__walk_next(s->engine, &w)) != NULL;) {
        before = before && other != device;
        const int better = cek__view_fitness(view_of(other)) - cek__view_fitness(view);
        if (cek__views_of_one(view_of(other), view) && is_open_to_all(other) && can(s, other) &&
            (better > 0 || (better == 0 && before)))
            return true;
    }
    return false;
}

static bool joins(const selection *s, const cek_device *device)
{
    return is_open_to_all(device) && can(s, device) && !is_second_view(s, device);
}

/* By what plugins report, so that the answer is the same every time: whatever is no processor before what is, then the
 * more compute units, then the more memory. Units of two makers are not the same; who knows better names a device. */
static bool is_faster(const cek_device *a, const cek_device *b)
{
    const bool a_cpu = a->info.kind == CEK_KIND_CPU, b_cpu = b->info.kind == CEK_KIND_CPU;

    if (a_cpu != b_cpu)
        return b_cpu;
    if (a->info.compute_units != b->info.compute_units)
        return a->info.compute_units > b->info.compute_units;
    return a->info.total_bytes != b->info.total_bytes && b->info.total_bytes != CEK_UNKNOWN &&
           (a->info.total_bytes > b->info.total_bytes || a->info.total_bytes == CEK_UNKNOWN);
}

/* The first of equals; NULL: none joins. */
static const cek_device *fastest(const selection *s)
{
    const cek_device *device, *best = NULL;

    for (cek__walk w = { 0 }; (device = cek__walk_next(s->engine, &w)) != NULL;)
        if (joins(s, device) && (best == NULL || is_faster(device, best)))
            best = device;
    return best;
}

/* ---- who is named ---- */

static bool belongs(const cek_device *device, const part *p)
{
    const char *plugin = device->plugin->name;

    return strlen(plugin) == p->name_length && memcmp(plugin, p->name, p->name_length) == 0 &&
           (p->whole || (device->index >= p->first && device->index <= p->last));
}

/* A plugin's name alone leaves out its devices that are only taken when named themselves (OpenCL's
 * simulators), unless it has no other. */
static bool is_named(const selection *s, const cek_device *device, const part *p)
{
    cek_device *other;

    if (!belongs(device, p) || !p->whole || is_open_to_all(device))
        return belongs(device, p);
    for (cek__walk w = { 0 }; (other = cek__walk_next(s->engine, &w)) != NULL;)
        if (belongs(other, p) && is_open_to_all(other))
            return false;
    return true;
}

/* `gpus`: how many GPUs there are in front of this device; a number behind "gpu" counts these. */
static bool is_meant(const selection *s, const cek_device *device, const part *p, uint32_t *gpus)
{
    uint32_t place;

    switch (p->word) {
    case ALL: return joins(s, device);
    case FASTEST: return device == fastest(s);
    case GPU:
        if (device->info.kind != CEK_KIND_GPU || !joins(s, device))
            return false;
        place = (*gpus)++;
        return p->whole || (place >= p->first && place <= p->last);
    case NO_WORD: break;
    }
    return is_named(s, device, p);
}

static cek_status take(selection *s, cek_device *device)
{
    cek_status st;

    for (size_t i = 0; i < s->count; i++)
        if (s->devices[i] == device)
            return CEK_OK;
    CEK_TRY(cek__realloc_array(s->count + 1, sizeof *s->devices, &s->devices));
    s->devices[s->count++] = device;
out:
    return st;
}

static const char *profile_name(uint32_t profile)
{
    return profile >= CEK_PROFILE_TRAINING ? "training" : profile == CEK_PROFILE_INFERENCE ? "inference" : "memory";
}

cek_status cek_device_require(const cek_device *device, uint32_t profile)
{
    CEK__NOT_NULL(device);
    if (device->plugin->profile >= profile)
        return CEK_OK;
    return cek__fail(CEK_NO_DEVICE, "%s: its plugin is of profile %s, and this needs profile %s", device->name,
                     profile_name(device->plugin->profile), profile_name(profile));
}

/* `p` NULL: of a whole list. */
static cek_status no_device(const selection *s, const part *p, const char *list)
{
    char names[256] = "none", summary[600];
    cek__nearest near;
    size_t used = 0;
    cek_device *device;

    for (cek__walk w = { 0 }; (device = cek__walk_next(s->engine, &w)) != NULL;)
        if (used + sizeof device->name + 1 < sizeof names)
            used += (size_t)sprintf(names + used, "%s%s", used > 0 ? "," : "", device->name);
    cek__report_summary(&s->engine->report, summary, sizeof summary);
    return cek__fail(CEK_NO_DEVICE, "no device for '%.*s' of profile %s%s; devices: %s; plugins: %s",
                     (int)(p != NULL ? p->length : strlen(list)), p != NULL ? p->text : list, profile_name(s->profile),
                     p != NULL ? hint(s->engine, p, &near) : "", names, summary);
}

/* The devices of one part, if all that it names are there; the first one named that cannot do the job in *unfit. */
static cek_status part_take(selection *s, const part *p, bool *complete, const cek_device **unfit)
{
    cek_status st = CEK_OK;
    uint32_t found = 0, gpus = 0;
    size_t before = s->count;
    cek_device *device;

    *unfit = NULL;
    for (cek__walk w = { 0 }; (device = cek__walk_next(s->engine, &w)) != NULL;) {
        if (!is_meant(s, device, p, &gpus))
            continue;
        found++;
        if (*unfit == NULL && !can(s, device))
            *unfit = device;
        CEK_TRY(take(s, device));
    }
    *complete = found > 0 && (p->whole || found == p->last - p->first + 1);
out:
    if (st != CEK_OK || !*complete || *unfit != NULL)
        s->count = before;
    return st;
}

/* One part of a list; with `any` it may be missing, or of use for other jobs alone. */
static cek_status part_select(cek_engine *engine, selection *s, const part *p, bool any)
{
    cek_status st;
    const cek_device *unfit;
    bool complete;

    CEK_TRY(cek__engine_start(engine, p->word != NO_WORD ? NULL : p->name, p->name_length));
    pthread_mutex_lock(&engine->lock);
    st = part_take(s, p, &complete, &unfit);
    if (st == CEK_OK && !any && !complete)
        st = no_device(s, p, NULL);
    else if (st == CEK_OK && !any && unfit != NULL)
        st = cek_device_require(unfit, s->profile);
    pthread_mutex_unlock(&engine->lock);
out:
    return st;
}

/* ---- lists ---- */

/* Walks a list; with `any`, the first part that is there is enough. Nothing is started for a malformed one. */
static cek_status list_select(cek_engine *engine, const char *what, const char *list, bool any, selection *s)
{
    cek_status st = CEK_OK;
    const char *cursor, *item;
    size_t length;
    part p = { 0 };

    pthread_mutex_lock(&engine->lock);
    for (cursor = list; st == CEK_OK && cek__list_next(&cursor, &item, &length);) {
        const part before = p;

        st = part_read(engine, what, item, length, &before, &p);
    }
    pthread_mutex_unlock(&engine->lock);
    p = (part){ 0 };
    for (cursor = list; st == CEK_OK && cek__list_next(&cursor, &item, &length) && !(any && s->count > 0);) {
        const part before = p;

        st = part_read(engine, what, item, length, &before, &p);
        if (st == CEK_OK)
            st = part_select(engine, s, &p, any);
    }
    if (st != CEK_OK || s->count > 0)
        return st;
    pthread_mutex_lock(&engine->lock);
    st = no_device(s, NULL, list);
    pthread_mutex_unlock(&engine->lock);
    return st;
}

static cek_status resolve(cek_engine *engine, const char *list, uint32_t profile, bool any, selection *s)
{
    const char *what = "device list";
    cek_status st;

    *s = (selection){ .engine = engine, .profile = profile };
    if (list == NULL) {
        what = "CEKERNELS_DEVICES";
        list = cek__env(what);
        any = false;
    }
    st = list_select(engine, what, list != NULL ? list : "all", any, s);
    if (st == CEK_OK)
        return CEK_OK;
    free(s->devices);
    *s = (selection){ 0 };
    return st;
}

cek_status cek_engine_select(cek_engine *engine, const char *list, uint32_t profile, cek_device ***out, size_t *count)
{
    selection s;
    cek_status st;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(count);
    *count = 0;
    CEK__NOT_NULL(engine);
    if (profile < CEK_PROFILE_MEMORY || profile > CEK_PROFILE_TRAINING)
        return cek__fail(CEK_INVALID, "cek_engine_select: %u is no profile", profile);
    st = resolve(engine, list, profile, false, &s);
    *out = s.devices;
    *count = s.count;
    return st;
}

cek_status cek_engine_find(cek_engine *engine, const char *alternatives, cek_device **out)
{
    selection s;
    cek_status st;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(engine);
    st = resolve(engine, alternatives, alternatives != NULL ? CEK_PROFILE_MEMORY : CEK_PROFILE_INFERENCE, true, &s);
    *out = st == CEK_OK ? s.devices[0] : NULL;
    free(s.devices);
    return st;
}
