/* SPDX-License-Identifier: MIT
 *
 * nulls.c - NULL is refused by name in every slot of every plugin that was built: spec's cases, where the plugin has a
 * device here, and where it has none the calls that need none. And spec finds the plugin that lets NULL pass. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/spec.h"

static char text[512];    /* the latest that the plugin gave as a reason */
static char running[256]; /* "null mem_alloc without out" */
static int wrong;

static void failed(void *user, cek_status status, const char *line)
{
    (void)user, (void)status;
    snprintf(text, sizeof text, "%s", line);
}

static const cek_host host = { .size = sizeof host, .abi = CEK_ABI, .fail = failed };

static void begun(void *user, const char *name)
{
    (void)user;
    *text = 0;
    snprintf(running, sizeof running, "%s", name);
}

/* What a plugin of ours tells: the slot, and that something is NULL or missing. */
static void ended(void *user, const char *name, int result, bool required)
{
    char slot[64];
    (void)user, (void)required;
    if (result == SPEC_PASSED && *text && sscanf(name, "null %63s without", slot) == 1 && strchr(slot, '_') &&
        !strstr(text, slot)) {
        printf("%s: the text \"%s\" does not name the slot\n", name, text);
        wrong++;
    }
}

static const char *error_text(void *user)
{
    (void)user;
    return text;
}

static const cek_plugin *table(const char *folder, const char *file)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!so) {
        printf("%s\n", dlerror());
        exit(99);
    }
    return ((cek_plugin_query_fn)dlsym(so, CEK_PLUGIN_SYMBOL))(CEK_ABI);
}

#define REFUSED(call)                                                      \
    do {                                                                   \
        cek_status st_ = (call);                                           \
        if (st_ != CEK_INVALID) {                                          \
            printf("%s: %s answered %u\n", p->name, #call, (unsigned)st_); \
            wrong++;                                                       \
        }                                                                  \
    } while (0)

/* What can be called without an instance, whatever drives the devices. */
static void without_instance(const cek_plugin *p)
{
    const cek_ref none = { NULL, 0 };
    cek_dev *dev = (cek_dev *)&wrong;
    *text = 0;
    REFUSED(p->create(&host, NULL));
    if (!strstr(text, "create: out is NULL")) {
        printf("%s: create without out tells \"%s\"\n", p->name, text);
        wrong++;
    }
    REFUSED(p->create(NULL, NULL));
    REFUSED(p->device_info(NULL, 0, NULL));
    REFUSED(p->device_open(NULL, 0, NULL, &dev));
    REFUSED(p->device_memory(NULL, NULL, NULL));
    if (p->device_times)
        REFUSED(p->device_times(NULL, NULL));
    if (p->device_sensors)
        REFUSED(p->device_sensors(NULL, 0, NULL));
    if (p->host_register)
        REFUSED(p->host_register(NULL, NULL, 1));
    REFUSED(p->mem_alloc(NULL, NULL, NULL));
    REFUSED(p->queue_create(NULL, NULL, NULL));
    REFUSED(p->queue_sync(NULL, 0));
    REFUSED(p->upload(NULL, none, NULL, 1));
    REFUSED(p->event_create(NULL, NULL, NULL));
    REFUSED(p->event_elapsed(NULL, NULL, NULL));
    REFUSED(p->op_create(NULL, NULL, NULL, NULL));
    REFUSED(p->op_run(NULL, NULL, NULL, 0, none));
    if (dev || p->device_count(NULL) || p->mem_host_ptr(NULL)) {
        printf("%s: an output is not NULL or 0\n", p->name);
        wrong++;
    }
}

static spec_report report;

static bool examine(const cek_plugin *p)
{
    spec_target target = { .plugin = p, .host = &host, .error_text = error_text };
    const spec_options options = { .group = "null", .begin = begun, .progress = ended };
    if (p->create(&host, &target.instance) || p->device_open(target.instance, 0, NULL, &target.dev))
        return false;
    const cek_status st = spec_run(&target, &options, &report);
    if (st)
        printf("%s: the run broke off with %u in %s\n", p->name, (unsigned)st, running);
    wrong += st != CEK_OK;
    p->device_close(target.dev);
    p->destroy(target.instance);
    return true;
}

static void plugin_test(const char *folder, const char *file)
{
    const cek_plugin *p = table(folder, file);
    without_instance(p);
    bool there = examine(p);
    printf("%s: %u of %u refused\n", file, there ? report.total.required_passed : 0, there ? report.total.required : 0);
    for (uint32_t i = 0; there && i < report.failure_count && i < SPEC_FAILURES_MAX; i++)
        printf("    %s: %s\n", report.failure[i].name, report.failure[i].what);
    wrong += there && (!report.ok || report.total.required < 50);
}

/* --- a plugin that lets NULL pass --- */

static const cek_plugin *sound;

static cek_status careless_query(cek_event *event)
{
    return event ? sound->event_query(event) : CEK_OK;
}

static cek_status careless_alloc(cek_dev *dev, const cek_mem_desc *desc, cek_mem **out)
{
    return desc ? sound->mem_alloc(dev, desc, out) : CEK_INVALID; /* without a text, and *out as it was */
}

static void careless_found(const char *folder)
{
    sound = table(folder, "reference.so");
    cek_plugin careless = *sound;
    careless.event_query = careless_query;
    careless.mem_alloc = careless_alloc;
    bool found = examine(&careless) && report.failure_count == 2 &&
                 !strcmp(report.failure[0].name, "null mem_alloc without desc") &&
                 !strcmp(report.failure[1].name, "null event_query without event") &&
                 strstr(report.failure[1].what, "answered OK");
    for (uint32_t i = 0; !found && i < report.failure_count && i < SPEC_FAILURES_MAX; i++)
        printf("careless: %s: %s\n", report.failure[i].name, report.failure[i].what);
    if (!found)
        printf("the plugin that lets NULL pass: %u failures were found\n", report.failure_count);
    wrong += !found;
}

int main(void)
{
    const char *folder = getenv("TEST_PLUGIN_DIR");
    DIR *dir = folder ? opendir(folder) : NULL;
    int plugins = 0;
    if (!dir)
        return 99;
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        const char *end = strrchr(e->d_name, '.');
        if (!end || strcmp(end, ".so"))
            continue;
        plugin_test(folder, e->d_name);
        plugins++;
    }
    closedir(dir);
    careless_found(folder);
    printf("%d plugins, %d wrong\n", plugins, wrong);
    return wrong || plugins < 4; /* of opencl there may be none */
}
