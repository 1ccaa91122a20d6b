/* SPDX-License-Identifier: MIT
 *
 * inner.c - finds and loads the plugin inside.
 *
 * The core's rules, without its search: a name stands for a file beside this shared object,
 * anything else must be an absolute path. Refused is a file, or a folder, that everyone may write
 * to or that belongs to a stranger: not root, the effective user, or whoever owns this shared
 * object (the core trusts the owner of its library instead).
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/sim/sim.h"

enum { PATH_BYTES = 4096 };

/* Where this shared object is itself. */
static bool self_path(char *path)
{
    Dl_info self;
    return dladdr((const void *)(uintptr_t)self_path, &self) && self.dli_fname && strchr(self.dli_fname, '/') &&
           snprintf(path, PATH_BYTES, "%s", self.dli_fname) < PATH_BYTES;
}

/* The path of the plugin of that name; false where it has none. */
static bool inner_path(const char *name, const char *self, char *path)
{
    int folder = (int)(strrchr(self, '/') - self);
    int length = *name == '/' ? snprintf(path, PATH_BYTES, "%s", name)
                              : snprintf(path, PATH_BYTES, "%.*s/%s.so", folder, self, name);
    return length < PATH_BYTES && (*name == '/' || !strchr(name, '/'));
}

static cek_status trust(const cek_host *host, const char *path, uid_t self_owner)
{
    struct stat info;
    if (stat(path, &info))
        return cek__host_fail(host, CEK_INVALID, "sim: %s: %s", path, strerror(errno));
    if (info.st_mode & S_IWOTH)
        return cek__host_fail(host, CEK_INVALID, "sim: %s may be written to by everyone", path);
    if (info.st_uid && info.st_uid != geteuid() && info.st_uid != self_owner)
        return cek__host_fail(host, CEK_INVALID, "sim: %s belongs to user %ld, a stranger", path, (long)info.st_uid);
    return CEK_OK;
}

/* The file, and the folder that it is in. */
static cek_status path_trust(const cek_host *host, const char *path, const char *self)
{
    char folder[PATH_BYTES];
    struct stat own;
    if (stat(self, &own))
        return cek__host_fail(host, CEK_INVALID, "sim: %s: %s", self, strerror(errno));
    size_t length = (size_t)(strrchr(path, '/') - path);
    snprintf(folder, sizeof folder, "%.*s", (int)(length ? length : 1), path);
    cek_status st = trust(host, folder, own.st_uid);
    return st ? st : trust(host, path, own.st_uid);
}

/* What a training plugin must have; the other slots are looked at before each call. */
static const char *slot_missing(const cek_plugin *p)
{
#define MISSING(slot) \
    if (!p->slot)     \
    return #slot
    MISSING(create);
    MISSING(destroy);
    MISSING(device_count);
    MISSING(device_info);
    MISSING(device_open);
    MISSING(device_close);
    MISSING(device_status);
    MISSING(device_memory);
    MISSING(mem_alloc);
    MISSING(mem_free);
    MISSING(mem_host_ptr);
    MISSING(queue_create);
    MISSING(queue_destroy);
    MISSING(queue_status);
    MISSING(queue_sync);
    MISSING(upload);
    MISSING(download);
    MISSING(copy);
    MISSING(fill);
    MISSING(update);
    MISSING(event_create);
    MISSING(event_destroy);
    MISSING(event_record);
    MISSING(event_wait);
    MISSING(event_query);
    MISSING(event_sync);
    MISSING(event_status);
    MISSING(op_create);
    MISSING(op_destroy);
    MISSING(op_run);
#undef MISSING
    if (p->cmdbuf_create && (!p->cmdbuf_destroy || !p->cmdbuf_run))
        return "cmdbuf_destroy or cmdbuf_run";
    return NULL;
}

static cek_status table_take(cek_instance *instance, const char *path, const cek_plugin *table)
{
    const cek_host *host = &instance->host;
    if (!table || table->abi >> 16 != CEK_ABI_MAJOR || table->size < offsetof(cek_plugin, create))
        return cek__host_fail(host, CEK_INVALID, "sim: %s: no plugin of ABI %u", path, CEK_ABI_MAJOR);
    memcpy(&instance->plugin, table, table->size < sizeof *table ? table->size : sizeof *table);
    if (instance->plugin.name && !strcmp(instance->plugin.name, "sim"))
        return cek__host_fail(host, CEK_INVALID, "sim: %s is sim itself", path);
    if (instance->plugin.profile < CEK_PROFILE_TRAINING)
        return cek__host_fail(host, CEK_INVALID, "sim: %s cannot train", path);
    const char *missing = slot_missing(&instance->plugin);
    return missing ? cek__host_fail(host, CEK_INVALID, "sim: %s: the slot %s is empty", path, missing) : CEK_OK;
}

/* The plugin stays loaded: it may not be unloaded once an instance was made. */
cek_status cek__sim_inner_load(cek_instance *instance)
{
    const cek_host *host = &instance->host;
    char self[PATH_BYTES], path[PATH_BYTES];
    const char *name = cek__host_option(host, "sim_inner");
    if (!name || !*name)
        name = "cpu";
    if (!self_path(self))
        return cek__host_fail(host, CEK_INTERNAL, "sim: does not find its own file");
    if (!inner_path(name, self, path))
        return cek__host_fail(host, CEK_INVALID,
                              "option sim_inner=\"%.64s\": neither a plugin's name "
                              "nor an absolute path",
                              name);
    cek_status st = path_trust(host, path, self);
    if (st)
        return st;
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!so)
        return cek__host_fail(host, CEK_UNAVAILABLE, "sim: %s", dlerror());
    cek_plugin_query_fn query = (cek_plugin_query_fn)dlsym(so, CEK_PLUGIN_SYMBOL);
    return table_take(instance, path, query ? query(CEK_ABI) : NULL);
}
