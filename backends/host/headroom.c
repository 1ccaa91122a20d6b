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
#include "backends/host/lines.h"

#define PATH_BYTES 512

/* The numbers behind `count` keys in a file of "key number" lines. Without keys: the number that the file
 * begins with. */
static bool numbers_read(const char *path, const char *const *keys, int count, uint64_t *out)
{
    char line[PATH_BYTES], *end;
    int found = 0;
    cek__lines file;
    cek__lines_open(&file, path);
    while (found < count && cek__lines_next(&file, line, sizeof line))
        for (int i = 0; i < count; i++) {
            size_t length = keys ? strlen(keys[i]) : 0;
            if (keys && (strncmp(line, keys[i], length) || !strchr(": ", line[length])))
                continue;
            char *from = line + length + (keys != NULL);
            out[i] = strtoull(from, &end, 10);
            found += end != from;
        }
    cek__lines_close(&file);
    return found == count;
}

static bool number_read(const char *folder, const char *name, uint64_t *out)
{
    char path[PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return numbers_read(path, NULL, 1, out);
}

/* Lowers *free_bytes and *total_bytes to what the group in folder `path` leaves. "max", or no file, is no limit. */
static void group_apply(const char *path, bool unified, uint64_t *free_bytes, uint64_t *total_bytes)
{
    static const char *const keys[] = { "total_inactive_file", "inactive_file" };
    char name[PATH_BYTES + 64];
    uint64_t limit, used, cached;
    if (!number_read(path, unified ? "memory.max" : "memory.limit_in_bytes", &limit) || limit >= *total_bytes ||
        !number_read(path, unified ? "memory.current" : "memory.usage_in_bytes", &used))
        return;
    /* File pages that nobody used lately are given back before anything is killed. */
    snprintf(name, sizeof name, "%s/memory.stat", path);
    if (numbers_read(name, &keys[unified], 1, &cached))
        used -= cached < used ? cached : used;
    uint64_t left = used < limit ? limit - used : 0;
    *total_bytes = limit;
    *free_bytes = left < *free_bytes ? left : *free_bytes;
}

/* From the group at `root` + `group` up to `root` itself. Inside a container the path may not exist
 * there: the root does. */
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
    static const char *const keys[] = { "MemTotal", "MemAvailable" };
    uint64_t kilobytes[2];
    *free_bytes = *total_bytes = CEK_UNKNOWN;
    if (!numbers_read("/proc/meminfo", keys, 2, kilobytes))
        return;
    *total_bytes = kilobytes[0] * 1024;
    *free_bytes = kilobytes[1] * 1024;

    char line[PATH_BYTES];
    cek__lines file;
    cek__lines_open(&file, "/proc/self/cgroup");
    while (cek__lines_next(&file, line, sizeof line)) {
        /* "hierarchy:controllers:/group"; no controllers: the unified hierarchy */
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = 0;
        if (!controllers[1])
            groups_apply("/sys/fs/cgroup", group, true, free_bytes, total_bytes);
        else if (!strcmp(controllers + 1, "memory"))
            groups_apply("/sys/fs/cgroup/memory", group, false, free_bytes, total_bytes);
    }
    cek__lines_close(&file);
    uint64_t reserve = *total_bytes / CEK__HOST_RESERVE_SHARE;
    *free_bytes -= reserve < *free_bytes ? reserve : *free_bytes;
}

cek_status cek__host_room_check(const cek_host *host, const char *call, uint64_t bytes)
{
    uint64_t free_bytes, total_bytes;
    if (!bytes)
        return cek__host_fail(host, CEK_INVALID, "%s: 0 bytes", call);
    cek__host_memory(&free_bytes, &total_bytes);
    if (bytes <= INT64_MAX - CEK_ALIGNMENT && bytes <= free_bytes)
        return CEK_OK;
    return cek__host_fail(host, CEK_OUT_OF_MEMORY, "%s: %llu bytes; free: %s of %s", call, (unsigned long long)bytes,
                          CEK__AMOUNT(free_bytes), CEK__AMOUNT(total_bytes));
}
