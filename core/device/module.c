/* module.c - opens a plugin's file, negotiates, creates its instance, and reads what devices it has.
 *
 * Owns: the handle of the shared object, the instance, checked copies of what the plugin tells about itself.
 * A plugin is code of strangers: counts, sizes and texts are checked before anything is built on them. Once create()
 * was called the object stays in the process: it may have left threads, thread-local data or exit handlers behind. */
#include "core/device/module.h"

#include <dlfcn.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/device/call.h"
#include "core/device/object.h"
#include "core/device/slots.h"

enum { TEXT_MAX = 256 };

/* ---- open ---- */

/* The loader's texts follow the locale; what they say is read below, so they are asked for in the C locale. */
static void *object_open(const char *path, char *reason, size_t size)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = c != (locale_t)0 ? uselocale(c) : (locale_t)0;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (handle == NULL)
        snprintf(reason, size, "%s", dlerror());
    if (c != (locale_t)0)
        uselocale(before);
    return handle;
}

/* glibc's loader has no errno for some of it, and calls a file absent that is there where it had no memory for its
 * name. */
static bool memory_ran_out(const char *reason, const char *path)
{
    static const char unopened[] = ": cannot open shared object file";
    const char *behind = reason + strlen(path) + strlen(unopened);

    if (strstr(reason, "Cannot allocate memory") != NULL || strstr(reason, "out of memory") != NULL ||
        strstr(reason, "cannot create shared object descriptor") != NULL)
        return true;
    return strncmp(reason, path, strlen(path)) == 0 &&
           strncmp(reason + strlen(path), unopened, strlen(unopened)) == 0 &&
           (*behind == '\0' || strcmp(behind, ": No such file or directory") == 0) && access(path, R_OK) == 0;
}

/* A library that the plugin needs is not there: absent, not faulty. The loader names that library then. */
static bool needs_absent_library(const char *reason, const char *path)
{
    return (strstr(reason, "cannot open shared object file") != NULL && strncmp(reason, path, strlen(path)) != 0) ||
           (strstr(reason, "Error loading shared library ") != NULL && strstr(reason, "needed by") != NULL);
}

static cek_status text_take(const char *text, char **out)
{
    cek_status st = cek__strndup(text != NULL ? text : "", text != NULL ? strnlen(text, TEXT_MAX) : 0, out);

    if (st == CEK_OK)
        cek_text_printable(*out);
    return st;
}

/* Opens the object and reads its table; *stage tells how far it came, and a failure is the plugin's. */
static cek_status object_read(cek__module *module, const char *path, const char **stage)
{
    cek_status st;
    char reason[512];
    cek_plugin_query_fn query;
    const cek_plugin *theirs;

    *stage = "open";
    CEK_TRY(cek__object_check(path));
    cek__call_begin(path, "open");
    module->handle = object_open(path, reason, sizeof reason);
    cek__call_leave();
    if (module->handle == NULL && !memory_ran_out(reason, path) && needs_absent_library(reason, path))
        CEK_FAIL(CEK_UNAVAILABLE, "%s: install the package that has this library", reason);
    if (module->handle == NULL)
        CEK_FAIL(memory_ran_out(reason, path) ? CEK_OUT_OF_MEMORY : CEK_BAD_PLUGIN, "%s", reason);
    *stage = "query";
    *(void **)&query = dlsym(module->handle, CEK_PLUGIN_SYMBOL);
    if (query == NULL)
        CEK_FAIL(CEK_BAD_PLUGIN, "no symbol %s: this is no cekernels plugin", CEK_PLUGIN_SYMBOL);
    cek__call_begin(path, "query");
    theirs = query(CEK_ABI);
    cek__call_leave();
    if (theirs == NULL)
        CEK_FAIL(CEK_BAD_PLUGIN, "it does not serve hosts of ABI %u.%u", CEK_ABI_MAJOR, CEK_ABI_MINOR);
    CEK_TRY(cek__slots_negotiate(theirs, &module->table));
out:
    return st;
}

/* The module's own copies of what identifies it, so that texts are valid and constant whatever the plugin does. */
static cek_status identity_take(cek__module *module, cek__report_line *line)
{
    cek_status st;

    snprintf(module->user.name, sizeof module->user.name, "%s", module->table.name);
    CEK_TRY(text_take(module->table.version, &module->version));
    CEK_TRY(text_take(module->table.build, &module->build));
    module->table.name = module->user.name;
    module->table.version = module->version;
    module->table.build = module->build;
    if (line->plugin == NULL) /* else opened for the second time, after memory had run out */
        CEK_TRY(cek__strdup(module->user.name, &line->plugin));
    if (line->version == NULL)
        CEK_TRY(cek__strdup(module->version, &line->version));
    line->abi = module->table.abi;
out:
    return st;
}

cek_status cek__module_open(const char *path, cek__settings *settings, cek__report_line *line, cek__module **out)
{
    cek_status st;
    cek__module *module = NULL;
    const char *stage;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *module, &module));
    module->user.settings = settings;
    st = object_read(module, path, &stage);
    if (st != CEK_OK) {
        st = cek__report_stop(line, stage, st);
        goto out;
    }
    CEK_TRY(identity_take(module, line));
    *out = module;
    return CEK_OK;
out:
    cek__module_free(module);
    return st;
}

/* ---- start ---- */

static cek_status info_text_check(const cek__module *module, uint32_t index, const char *field, char *text, size_t size)
{
    if (memchr(text, '\0', size) == NULL)
        return cek__fail(CEK_BAD_PLUGIN, "%s:%u: device_info: %s has no end", module->user.name, index, field);
    cek_text_printable(text);
    return CEK_OK;
}

cek_status cek__module_device_info(const cek__module *module, uint32_t index, cek_device_info *out)
{
    /* A plugin that writes more than it was allowed to is seen by the guard. */
    struct {
        cek_device_info info;
        uint8_t guard[64];
    } given;
    cek_device_info *info = &given.info;
    cek_status st;
    char who[48];

    memset(&given, 0, sizeof given);
    memset(given.guard, 0xa5, sizeof given.guard);
    info->size = sizeof *info;
    snprintf(who, sizeof who, "%s:%u", module->user.name, index);
    cek__call_begin(who, "device_info");
    CEK_TRY(cek__call_end_of(who, "device_info", module->table.device_info(module->instance, index, info)));
    for (size_t i = 0; i < sizeof given.guard; i++)
        if (given.guard[i] != 0xa5)
            CEK_FAIL(CEK_BAD_PLUGIN, "%s: device_info writes beyond the size it was given", who);
    if (info->size != sizeof *info)
        CEK_FAIL(CEK_BAD_PLUGIN, "%s: device_info changes the size it was given", who);
#define CHECK(field) CEK_TRY(info_text_check(module, index, #field, info->field, sizeof info->field))
    CHECK(name);
    CHECK(vendor);
    CHECK(driver);
    CHECK(pci);
    CHECK(processor);
    CHECK(reason);
#undef CHECK
    if (info->kind < CEK_KIND_CPU || info->kind > CEK_KIND_ACCELERATOR)
        info->kind = CEK_KIND_ACCELERATOR;
    info->flags &= CEK_DEVICE_UNIFIED_MEMORY | CEK_DEVICE_ONLY_WHEN_NAMED | CEK_DEVICE_INLINE |
                   CEK_DEVICE_FLUSHES_DENORMALS;
    *out = *info;
    return CEK_OK;
out:
    return st;
}

static cek_status instance_create(cek__module *module)
{
    cek_status st;

    cek__host_fill(&module->host, &module->user);
    module->pinned = true;
    cek__call_begin(module->user.name, "create");
    CEK_TRY(cek__call_end_of(module->user.name, "create", module->table.create(&module->host, &module->instance)));
    if (module->instance == NULL)
        CEK_FAIL(CEK_BAD_PLUGIN, "%s: create succeeds without an instance", module->user.name);
    return CEK_OK;
out:
    module->instance = NULL; /* whatever a failing create left there */
    return st;
}

static cek_status devices_count(cek__module *module)
{
    cek__call_begin(module->user.name, "device_count");
    module->device_count = module->table.device_count(module->instance);
    cek__call_leave();
    if (module->device_count <= CEK_DEVICES_MAX)
        return CEK_OK;
    return cek__fail(CEK_BAD_PLUGIN, "%s: it reports %u devices, at most %d are possible", module->user.name,
                     module->device_count, CEK_DEVICES_MAX);
}

cek_status cek__module_start(cek__module *module, cek__report_line *line)
{
    cek_status st;

    st = instance_create(module);
    if (st == CEK_OK && cek__settings_starved(module->user.settings)) /* it is not as it was told to be */
        st = cek__fail(CEK_OUT_OF_MEMORY, "out of host memory: a setting of the plugin could not be read");
    if (st != CEK_OK)
        return cek__report_stop(line, "create", st);
    st = devices_count(module);
    if (st != CEK_OK)
        return cek__report_stop(line, "devices", st);
    CEK_TRY(cek__calloc(module->device_count, sizeof *module->infos, &module->infos));
    for (uint32_t i = 0; i < module->device_count; i++) {
        st = cek__module_device_info(module, i, &module->infos[i]);
        if (st != CEK_OK)
            return cek__report_stop(line, "devices", st);
    }
    line->stage = "loaded";
    line->status = CEK_OK;
    line->profile = module->table.profile;
    line->device_count = module->device_count;
    return CEK_OK;
out:
    return st;
}

void cek__module_free(cek__module *module)
{
    if (module == NULL)
        return;
    if (module->left) {
        cek__abandon(module);
        return;
    }
    if (module->instance != NULL) {
        cek__release_begin(module->user.name, "destroy");
        module->table.destroy(module->instance);
        cek__call_leave();
    }
    if (module->handle != NULL && !module->pinned)
        dlclose(module->handle);
    free(module->infos);
    free(module->version);
    free(module->build);
    free(module);
}
