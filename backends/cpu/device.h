/* device.h - instance and devices of the CPU backend.
 *
 * Owns: how the machine is split into devices, a pool of threads per open device, what
 * device_info tells.
 * Must not know: any operation. Memory, queues and events are backends/host's. */
#ifndef CEK_BACKENDS_CPU_DEVICE_H
#define CEK_BACKENDS_CPU_DEVICE_H

#include "backends/cpu/config.h"
#include "backends/cpu/threads.h"
#include "backends/cpu/topology.h"
#include "backends/host/host.h"

typedef struct cpu_instance {
    struct cek_instance head;
    const cpu_config *config; /* instruction set and block sizes */
    uint32_t devices;
    cpu_topology topology;
} cpu_instance;

typedef struct cpu_dev {
    struct cek_dev head;
    const cpu_config *config;
    int workers;
    cpu_threads *threads; /* NULL where workers is 1 */
} cpu_dev;

/* The settings of an instance, read from the host once:
 *     cpu_devices   how many devices the cores are split into (1; more than cores share cores)
 *     cpu_threads   how many threads all devices together have (one for each core that may be used)
 *     cpu_isa       portable, avx2 or avx512 (the best that the processor runs) */
cek_status cek__cpu_create(const cek_host *host, cek_instance **out);
void cek__cpu_destroy(cek_instance *instance);
uint32_t cek__cpu_device_count(cek_instance *instance);
cek_status cek__cpu_device_info(cek_instance *instance, uint32_t index, cek_device_info *info);
cek_status cek__cpu_device_open(cek_instance *instance, uint32_t index, const cek_device_options *options,
                                cek_dev **out);
void cek__cpu_device_close(cek_dev *dev);

/* cek__cpu_build - compiler, flags and instruction sets, one line. */
extern const char cek__cpu_build[];

/* cek__cpu_numeric_id - of a computation called `name` on this configuration: plugin, version of
 * the algorithms, compiler and instruction set in one number. */
uint64_t cek__cpu_numeric_id(const cpu_config *config, const char *name);

#endif
