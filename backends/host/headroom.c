/* SPDX-License-Identifier: MIT
 *
 * headroom.c - how much memory this process may still take before the kernel starts killing.
 *
 * The machine's available memory, and what each control group above this process has left: the least of them, less a
 * reserve for everything that is not device memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/host/host.h"

/* A 32nd of the whole stays free: page tables, stacks, the host application's own allocations. */
enum { RESERVE_SHARE = 32 };

#define PATH_BYTES 512

/* The number behind `key` in a file of "key number" lines; without a key the number that the file begins with. */
static bool number_read(const char *path, const char *key, uint64_t *out)
{
    char line[PATH_BYTES];
    bool found = false;
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    while (!found && fgets(line, sizeof line, file)) {
        size_t length = key ? strlen(key) : 0;
        if (key && (strncmp(line, key, length) || !strchr(": \t", line[length])))
            continue;
        char *from = line + length + (key != NULL), *end;
        *out = strtoull(from, &end, 10);
        found = end != from;
        if (!key)
            break;
    }
    fclose(file);
    return found;
}

/* Lowers *free_bytes and *total_bytes to what the group in folder `path` leaves. "max", or no file, is no limit. */
static void group_apply(const char *path, bool unified, uint64_t *free_bytes, uint64_t *total_bytes)
{
    char name[PATH_BYTES + 64];
    uint64_t limit, used, cached;
    snprintf(name, sizeof name, "%s/%s", path, unified ? "memory.max" : "memory.limit_in_bytes");
    if (!number_read(name, NULL, &limit))
        return;
    snprintf(name, sizeof name, "%s/%s", path, unified ? "memory.current" : "memory.usage_in_bytes");
    if (!number_read(name, NULL, &used))
        return;
    /* File pages that nobody used lately are given back before anything is killed. */
    snprintf(name, sizeof name, "%s/memory.stat", path);
    if (number_read(name, unified ? "inactive_file" : "total_inactive_file", &cached))
        used -= cached < used ? cached : used;
    uint64_t left = used < limit ? limit - used : 0;
    *total_bytes = limit < *total_bytes ? limit : *total_bytes;
    *free_bytes = left < *free_bytes ? left : *free_bytes;
}

/* From the group at `root` + `group` up to `root` itself. Inside a container the path may not exist there: the root does. */
static void groups_apply(const char *root, char *group, bool unified, uint64_t *free_bytes, uint64_t *total_bytes)
{
    char path[PATH_BYTES];
    for (;;) {
        if (snprintf(path, sizeof path, "%s%s", root, group) < (int)sizeof path)
            group_apply(path, unified, free_bytes, total_bytes);
        char *slash = strrchr(group, '/');
        if (!slash)
            return;
        *slash = 0;
    }
}

void cek__host_memory(uint64_t *free_bytes, uint64_t *total_bytes)
{
    uint64_t total, available;
    *free_bytes = *total_bytes = CEK_UNKNOWN;
    if (!number_read("/proc/meminfo", "MemTotal", &total) || !number_read("/proc/meminfo", "MemAvailable", &available))
        return;
    *total_bytes = total * 1024;
    *free_bytes = available * 1024;

    char line[PATH_BYTES];
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && fgets(line, sizeof line, file)) {
        /* "hierarchy:controllers:/group"; no controllers: the unified hierarchy */
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = 0;
        if (!controllers[1])
            groups_apply("/sys/fs/cgroup", group, true, free_bytes, total_bytes);
        else if (!strcmp(controllers + 1, "memory"))
            groups_apply("/sys/fs/cgroup/memory", group, false, free_bytes, total_bytes);
    }
    if (file)
        fclose(file);
    uint64_t reserve = *total_bytes / RESERVE_SHARE;
    *free_bytes -= reserve < *free_bytes ? reserve : *free_bytes;
}
