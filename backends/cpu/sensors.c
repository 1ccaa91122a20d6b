/* sensors.c - /proc/stat, /proc/meminfo and /sys/class/hwmon; see sensors.h. */
#include "backends/cpu/sensors.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/host/lines.h"

/* Ticks are 10 ms: of fewer than five a core's load is a guess, and the answer before is given again. */
#define LEAST_NS UINT64_C(50000000)
#define HWMON_MAX 64 /* folders of sensors that are looked at: disks, fans and network cards have some, too */

/* The ticks of all that a core does, and of those that it did something in. Waiting for a disk is idling. */
static void core_add(const char *ticks, uint64_t *busy, uint64_t *all)
{
    enum { IDLE = 3, WAITING = 4, FIELDS = 8 }; /* what follows, guests, is counted in the others already */
    char *end;
    for (int field = 0; field < FIELDS; field++, ticks = end) {
        const uint64_t n = strtoull(ticks, &end, 10);
        if (end == ticks)
            break;
        *all += n;
        *busy += field == IDLE || field == WAITING ? 0 : n;
    }
}

/* Of the slice's cores; 0 where the file is none of Linux's. */
static void cores_read(const char *root, const cpu_slice *slice, uint64_t *busy, uint64_t *all)
{
    bool wanted[CPU_CPUS_MAX * 8] = { false };
    char path[256], line[256], *ticks;
    cek__lines file;
    for (int i = 0; i < slice->n_cpus; i++)
        wanted[slice->cpus[i]] = true;
    snprintf(path, sizeof path, "%s/proc/stat", root);
    cek__lines_open(&file, path);
    while (cek__lines_next(&file, line, sizeof line) && !strncmp(line, "cpu", 3)) {
        const unsigned long cpu = strtoul(line + 3, &ticks, 10); /* the first line, of all, has no number */
        if (ticks != line + 3 && cpu < CPU_CPUS_MAX * 8 && wanted[cpu])
            core_add(ticks, busy, all);
    }
    cek__lines_close(&file);
}

static void load_read(const char *root, const cpu_slice *slice, uint64_t now_ns, cpu_load *load,
                      cek_device_sensors *out)
{
    uint64_t busy = 0, all = 0;
    cores_read(root, slice, &busy, &all);
    if (!all)
        return;
    const bool first = !load->all;
    if (!first && now_ns - load->time_ns >= LEAST_NS && all > load->all) {
        const uint64_t worked = busy > load->busy ? busy - load->busy : 0; /* counts of idle cores are corrected */
        load->utilization = (double)worked / (double)(all - load->all);
        load->utilization = load->utilization < 1 ? load->utilization : 1;
        load->interval_ns = now_ns - load->time_ns;
    }
    if (first || now_ns - load->time_ns >= LEAST_NS)
        load->time_ns = now_ns, load->busy = busy, load->all = all;
    if (!load->interval_ns)
        return;
    out->known |= CEK_SENSOR_UTILIZATION;
    out->utilization = load->utilization;
    out->interval_ns = load->interval_ns;
}

/* Of the hottest package, whichever of them the slice is in. k10temp calls temp1 what fans are driven by, which is 10
 * to 27 degrees above the truth on some processors: they have Tdie besides. */
static void temperature_read(const char *root, cek_device_sensors *out)
{
    static const char *const drivers[] = { "coretemp", "k10temp", "zenpower", "cpu_thermal" };
    char line[64], *end;
    for (int i = 0; i < HWMON_MAX; i++) {
        size_t d = 0;
        if (!cek__line_read(root, line, sizeof line, "/sys/class/hwmon/hwmon%d/name", i))
            continue;
        while (d < sizeof drivers / sizeof *drivers && strcmp(line, drivers[d]))
            d++;
        if (d == sizeof drivers / sizeof *drivers)
            continue;
        cek__line_read(root, line, sizeof line, "/sys/class/hwmon/hwmon%d/temp2_label", i);
        const int input = strcmp(line, "Tdie") ? 1 : 2;
        cek__line_read(root, line, sizeof line, "/sys/class/hwmon/hwmon%d/temp%d_input", i, input);
        const double celsius = (double)strtol(line, &end, 10) / 1000;
        if (end == line || (out->known & CEK_SENSOR_TEMPERATURE && celsius <= out->celsius))
            continue;
        out->known |= CEK_SENSOR_TEMPERATURE;
        out->celsius = celsius;
    }
}

/* What programs and the system use; what the system would give up for them counts as free. */
static void memory_read(const char *root, cek_device_sensors *out)
{
    uint64_t total = 0, available = 0;
    char path[256], line[128];
    cek__lines file;
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    cek__lines_open(&file, path);
    while ((!total || !available) && cek__lines_next(&file, line, sizeof line)) {
        sscanf(line, "MemTotal: %" SCNu64, &total);
        sscanf(line, "MemAvailable: %" SCNu64, &available);
    }
    cek__lines_close(&file);
    if (!available || available > total)
        return;
    out->known |= CEK_SENSOR_MEMORY;
    out->used_bytes = (total - available) << 10;
    out->total_bytes = total << 10;
}

void cek__sensors_read(const char *root, const cpu_slice *slice, uint64_t now_ns, cpu_load *load,
                       cek_device_sensors *out)
{
    load_read(root, slice, now_ns, load, out);
    temperature_read(root, out);
    memory_read(root, out);
}
