/* device.h - instance and devices of the CPU backend.
 *
 * Owns: how the machine is split into devices, a pool of threads per open device, who borrows whose cores, what
 * device_info tells.
 * Must not know: any operation. Memory, queues and events are backends/host's. */
#ifndef CEK_BACKENDS_CPU_DEVICE_H
#define CEK_BACKENDS_CPU_DEVICE_H

#include "backends/cpu/config.h"
#include "backends/cpu/sensors.h"
#include "backends/cpu/threads.h"
#include "backends/cpu/topology.h"
#include "backends/host/host.h"

typedef struct cpu_instance {
    struct cek_instance head;
    const cpu_config *config; /* instruction set and block sizes */
    uint32_t devices;
    cpu_topology topology;
    cpu_lender *lenders; /* [devices]; NULL: nothing is lent */
    pthread_mutex_t loads_lock;
    cpu_load loads[CPU_DEVICES_MAX]; /* as the sensors were read last */
} cpu_instance;

typedef struct cpu_dev {
    struct cek_dev head;
    const cpu_config *config;
    int workers;          /* its own, and those on borrowed cores */
    cpu_threads *threads; /* NULL where workers is 1 */
    cpu_lender *lender;   /* of its own cores; NULL: they are not lent */
} cpu_dev;

/* The settings of an instance, read from the host once:
 *     cpu_devices   how many devices the cores are split into (1; more than cores share cores)
 *     cpu_threads   how many threads all devices together have (one for each core that may be used)
 *     cpu_isa       portable, neon, avx2, avx512, avx512bf16, amx (the best that the processor runs) or amx-model
 *     cpu_lend      whether a device's idle cores help the device before it, the first one's the last: 1 (so it
 *                   is) or 0 */
cek_status cek__cpu_create(const cek_host *host, cek_instance **out);
void cek__cpu_destroy(cek_instance *instance);
uint32_t cek__cpu_device_count(cek_instance *instance);
cek_status cek__cpu_device_info(cek_instance *instance, uint32_t index, cek_device_info *info);
cek_status cek__cpu_device_sensors(cek_instance *instance, uint32_t index, cek_device_sensors *out);
cek_status cek__cpu_device_open(cek_instance *instance, uint32_t index, const cek_device_options *options,
                                cek_dev **out);
void cek__cpu_device_close(cek_dev *dev);

/* Slots that take time: backends/host's, in which a device needs its cores itself. */
cek_status cek__cpu_op_run(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count,
                           cek_ref workspace);
cek_status cek__cpu_cmdbuf_run(cek_queue *queue, cek_cmdbuf *cmdbuf);
cek_status cek__cpu_upload(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes);
cek_status cek__cpu_download(cek_queue *queue, void *dst, cek_ref src, uint64_t bytes);
cek_status cek__cpu_copy_mem(cek_queue *queue, cek_ref dst, cek_ref src, uint64_t bytes);
cek_status cek__cpu_fill(cek_queue *queue, cek_ref dst, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes);

/* cek__cpu_build - compiler, flags and instruction sets, one line. */
extern const char cek__cpu_build[];

/* cek__cpu_numeric_id - of a computation called `name` on this configuration: plugin, version of
 * the algorithms, compiler and instruction set in one number. */
uint64_t cek__cpu_numeric_id(const cpu_config *config, const char *name);

#endif
