/* topology.c - reads what the kernel says about this process's CPUs; see topology.h.
 *
 * Owns: the files and their formats. Must not know: what the numbers are used for. */
#include "backends/cpu/topology.h"

#include <ctype.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/host/lines.h"

/* The CPUs of the affinity mask, in ascending order. */
static int affinity_read(int *cpus)
{
    int n = 0;
    cpu_set_t set[CPU_CPUS_MAX * 8 / CPU_SETSIZE];
    if (sched_getaffinity(0, sizeof set, set) == 0)
        for (int cpu = 0; cpu < CPU_CPUS_MAX * 8 && n < CPU_CPUS_MAX; cpu++)
            if (CPU_ISSET_S((size_t)cpu, sizeof set, set))
                cpus[n++] = cpu;
    if (n == 0)
        cpus[n++] = 0;
    return n;
}

/* The first CPU of the same core that is in the list: a core's name. Where /sys is silent every CPU
 * is its own core. */
static int core_of(const char *root, const int *cpus, int n, int cpu)
{
    char line[256];
    if (!cek__line_read(root, line, sizeof line, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu))
        return cpu;
    for (const char *p = line; *p;) { /* "0,64" or "0-1,8" */
        char *end;
        long first = strtol(p, &end, 10), last = first;
        if (end == p)
            break;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        for (int i = 0; i < n; i++)
            if (cpus[i] >= first && cpus[i] <= last)
                return cpus[i];
        p = *end == ',' ? end + 1 : "";
    }
    return cpu;
}

/* First threads of cores to the front, siblings behind, each part ascending; returns the number of
 * cores. */
static int cores_first(const char *root, int *cpus, int n)
{
    int siblings[CPU_CPUS_MAX], n_siblings = 0, n_cores = 0;
    int all[CPU_CPUS_MAX];
    memcpy(all, cpus, (size_t)n * sizeof *all);
    for (int i = 0; i < n; i++) {
        if (core_of(root, all, n, all[i]) == all[i])
            cpus[n_cores++] = all[i];
        else
            siblings[n_siblings++] = all[i];
    }
    memcpy(cpus + n_cores, siblings, (size_t)n_siblings * sizeof *siblings);
    return n_cores;
}

/* A limit holds for the whole subtree, so the smallest on the way up to the root counts. `read`
 * gives one group's. */
static double quota_climb(const char *root, const char *mount, char *group,
                          double (*read)(const char *, const char *, const char *))
{
    double least = 0;
    for (;;) {
        const double quota = read(root, mount, group);
        if (quota > 0 && (least == 0 || quota < least))
            least = quota;
        char *slash = strrchr(group, '/');
        if (slash == NULL || group[0] == '\0')
            return least;
        *slash = '\0';
    }
}

static double quota_v2(const char *root, const char *mount, const char *group)
{
    char line[128];
    double quota, period;
    if (cek__line_read(root, line, sizeof line, "%s%s/cpu.max", mount, group) &&
        sscanf(line, "%lf %lf", &quota, &period) == 2 && quota > 0 && period > 0)
        return quota / period;
    return 0; /* "max 100000" or no file */
}

static double quota_v1(const char *root, const char *mount, const char *group)
{
    char line[128];
    double quota = 0, period = 0;
    if (cek__line_read(root, line, sizeof line, "%s%s/cpu.cfs_quota_us", mount, group))
        quota = atof(line);
    if (cek__line_read(root, line, sizeof line, "%s%s/cpu.cfs_period_us", mount, group))
        period = atof(line);
    return quota > 0 && period > 0 ? quota / period : 0; /* -1 = none */
}

static int has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *p = list; (p = strstr(p, word)) != NULL; p += length)
        if ((p == list || p[-1] == ',') && (p[length] == ',' || p[length] == '\0'))
            return 1;
    return 0;
}

/* Lines of /proc/self/cgroup: "0::/path" is v2, "N:controllers:/path" v1. Inside a container the
 * path may be one of the host's that is not mounted here; the climb then ends at the mount point,
 * which is the container's own group. */
static double quota_read(const char *root)
{
    char path[256], line[512];
    double least = 0;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    cek__lines file;
    cek__lines_open(&file, path);
    while (cek__lines_next(&file, line, sizeof line)) {
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL)
            continue;
        *controllers++ = *group++ = '\0';
        const int v2 = controllers[0] == '\0';
        if (!v2 && !has_word(controllers, "cpu"))
            continue;
        static const char *const mounts[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu",
                                              "/sys/fs/cgroup/cpu,cpuacct" };
        for (int m = v2 ? 0 : 2; m < (v2 ? 2 : 4); m++) {
            char climb[512];
            snprintf(climb, sizeof climb, "%s", strcmp(group, "/") == 0 ? "" : group);
            const double quota = quota_climb(root, mounts[m], climb, v2 ? quota_v2 : quota_v1);
            if (quota > 0 && (least == 0 || quota < least))
                least = quota;
        }
    }
    cek__lines_close(&file);
    return least;
}

static void caches_read(const char *root, int cpu, cpu_topology *out)
{
    for (int i = 0; i < 8; i++) {
        char level[16], type[32], size[32];
        if (!cek__line_read(root, level, sizeof level, "/sys/devices/system/cpu/cpu%d/cache/index%d/level", cpu, i) ||
            !cek__line_read(root, type, sizeof type, "/sys/devices/system/cpu/cpu%d/cache/index%d/type", cpu, i) ||
            !cek__line_read(root, size, sizeof size, "/sys/devices/system/cpu/cpu%d/cache/index%d/size", cpu, i))
            break;
        char *unit;
        int64_t bytes = strtoll(size, &unit, 10);
        bytes <<= *unit == 'K' ? 10 : *unit == 'M' ? 20 : 0;
        if (strcmp(type, "Instruction") == 0)
            continue;
        if (level[0] == '1')
            out->l1d_bytes = bytes;
        if (level[0] == '2')
            out->l2_bytes = bytes;
        if (level[0] == '3')
            out->l3_bytes = bytes;
    }
}

static void model_read(const char *root, char *model, size_t size)
{
    char path[256], line[512];
    snprintf(model, size, "unknown");
    snprintf(path, sizeof path, "%s/proc/cpuinfo", root);
    cek__lines file;
    cek__lines_open(&file, path);
    while (cek__lines_next(&file, line, sizeof line)) {
        char *value = strchr(line, ':');
        if (value == NULL || (strncmp(line, "model name", 10) != 0 && strncmp(line, "Processor", 9) != 0))
            continue;
        value++;
        while (isspace((unsigned char)*value))
            value++;
        snprintf(model, size, "%s", value);
        break;
    }
    cek__lines_close(&file);
}

void cek__topology_read_from(const char *root, cpu_topology *out)
{
    memset(out, 0, sizeof *out);
    out->n_cpus = affinity_read(out->cpus);
    out->n_cores = cores_first(root, out->cpus, out->n_cpus);
    out->quota = quota_read(root);
    out->workers = out->n_cores;
    if (out->quota > 0 && ceil(out->quota) < out->workers)
        out->workers = (int)ceil(out->quota);
    caches_read(root, out->cpus[0], out);
    model_read(root, out->model, sizeof out->model);
}

void cek__topology_read(cpu_topology *out)
{
    cek__topology_read_from("", out);
}

void cek__topology_split(const cpu_topology *topology, int devices, int index, cpu_slice *out)
{
    const int all = topology->workers, cpus = topology->n_cpus;
    memset(out, 0, sizeof *out);
    if (devices > all) {
        out->workers = out->n_cpus = 1;
        out->cpus[0] = topology->cpus[index % (all < cpus ? all : cpus)];
        return;
    }
    const int size = all / devices, larger = all % devices;
    const int first = all > cpus ? 0 : index * size + (index < larger ? index : larger);
    out->workers = size + (index < larger);
    out->n_cpus = all > cpus ? cpus : out->workers;
    for (int i = 0; i < out->n_cpus; i++)
        out->cpus[i] = topology->cpus[first + i];
}
