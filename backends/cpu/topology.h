/* topology.h - what this process may use of the machine, and how it is split into devices.
 *
 * Owns: reading sched_getaffinity, cgroup v1/v2 quotas and /sys; the split into N devices.
 * Must not know: pools, kernels, plugin.h. Reads files; allocates nothing; no state. */
#ifndef CEK_BACKENDS_CPU_TOPOLOGY_H
#define CEK_BACKENDS_CPU_TOPOLOGY_H

#include <stdint.h>

enum { CPU_CPUS_MAX = 1024, CPU_DEVICES_MAX = 256 };

typedef struct cpu_topology {
    int n_cpus; /* usable CPUs: the affinity mask */
    /* their numbers, ascending, SMT siblings after the first threads of all cores */
    int cpus[CPU_CPUS_MAX];
    int n_cores;                 /* physical cores among them: cpus[0 .. n_cores-1] are on different ones */
    double quota;                /* CPUs' worth of time the cgroup grants; 0 = no limit */
    int workers;                 /* threads worth starting on the whole machine: min(n_cores, ceil(quota)), >= 1 */
    int64_t l1d_bytes, l2_bytes; /* of one core; 0 = unknown */
    int64_t l3_bytes;            /* of the cluster that contains cpus[0]; 0 = unknown or none */
    char model[96];              /* "model name" of /proc/cpuinfo; "unknown" */
} cpu_topology;

/* What one device gets. Devices beyond the number of cores share cores (oversubscription). */
typedef struct cpu_slice {
    int workers; /* >= 1 */
    int n_cpus;
    int cpus[CPU_CPUS_MAX]; /* affinity of the device's own threads */
} cpu_slice;

/* cek__topology_read - fills *out. Never fails: what cannot be read is 1 CPU, no quota, 0 bytes,
 * "unknown". */
void cek__topology_read(cpu_topology *out);

/* cek__topology_read_from - the same with `root` (at most 200 bytes) in front of every path, for
 * tests; affinity is the process's own. */
void cek__topology_read_from(const char *root, cpu_topology *out);

/* cek__topology_split - the part of device `index` of `devices`: contiguous runs of cpus[0 ..
 * workers-1], sizes differing by at most one, the earlier devices the larger. With more workers than
 * CPUs all devices may use all of these; with more devices than workers each has one, on the CPUs of the workers in
 * turn. Requires 0 <= index < devices <= CPU_DEVICES_MAX. */
void cek__topology_split(const cpu_topology *topology, int devices, int index, cpu_slice *out);

#endif
