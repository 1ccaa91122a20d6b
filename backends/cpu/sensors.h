/* sensors.h - what the system tells of the processor while it works: load, temperature, memory in use.
 *
 * Owns: the files and their formats, and how two readings become a load. Must not know: devices, plugin.h's rules of
 * sizes. Reads files; allocates nothing. What it does not know: power (energy counters are root's to read) and clocks
 * (a file for each core, each read by an interrupt there). */
#ifndef CEK_BACKENDS_CPU_SENSORS_H
#define CEK_BACKENDS_CPU_SENSORS_H

#include <cekernels/plugin.h>

#include "backends/cpu/topology.h"

/* What cores had done up to a reading, in ticks, and what came of the two readings before. All zero: none yet. */
typedef struct cpu_load {
    uint64_t time_ns, busy, all;
    double utilization;
    uint64_t interval_ns; /* 0: there were no two readings yet */
} cpu_load;

/* cek__sensors_read - fills in `known` and what that says, by files below `root` ("" but for tests; at most 200
 * bytes). The caller keeps `load` from reading to reading, now_ns is any clock that does not run back. */
void cek__sensors_read(const char *root, const cpu_slice *slice, uint64_t now_ns, cpu_load *load,
                       cek_device_sensors *out);

#endif
