/* device.c - instance and devices of the CPU backend; see device.h. */
#include "backends/cpu/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "backends/common/growth.h"
#include "backends/common/hash.h"
#include "backends/cpu/amx.h"

/* Raised whenever any result may change in its last bit. */
#define ALGORITHMS "14"

#if defined __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif
/* What was built, a word each. */
#if defined CEK_HAVE_NEON
#define ISA_NEON " neon"
#else
#define ISA_NEON ""
#endif
#if defined CEK_HAVE_AVX2
#define ISA_AVX2 " avx2"
#else
#define ISA_AVX2 ""
#endif
#if defined CEK_HAVE_AVX512
#define ISA_AVX512 " avx512"
#else
#define ISA_AVX512 ""
#endif
#if defined CEK_HAVE_AVX512BF16
#define ISA_AVX512BF16 " avx512bf16"
#else
#define ISA_AVX512BF16 ""
#endif
#if defined CEK_HAVE_AMX
#define ISA_AMX " amx"
#else
#define ISA_AMX ""
#endif
#define ISAS "portable amx-model" ISA_NEON ISA_AVX2 ISA_AVX512 ISA_AVX512BF16 ISA_AMX
const char cek__cpu_build[] = COMPILER "; " ISAS "; algorithms " ALGORITHMS;

/* The C library's exp, log and expm1 have a part in losses and optimizers; glibc has them with
 * and without FMA. */
static uint64_t hash_library(uint64_t h)
{
#if defined __GLIBC__
    h = cek__hash_text(h, gnu_get_libc_version());
#endif
#if defined __x86_64__ || defined __i386__
    h = cek__hash_number(h, __builtin_cpu_supports("fma") != 0);
#endif
    return h;
}

uint64_t cek__cpu_numeric_id(const cpu_config *config, const char *name)
{
    const uint64_t h = hash_library(cek__hash_text(CEK__HASH_START, "cpu " COMPILER " " ALGORITHMS));

    return cek__hash_text(cek__hash_text(h, config->isa), name);
}

/* The kernels that are named, or the best ones. Tiles that this process does not get are no reason to fail where nobody
 * named them, but one to say so. */
static cek_status config_choose(cpu_instance *in, const char *isa)
{
    const cek_host *host = &in->head.host;
    const int any = isa == NULL || isa[0] == '\0';
    const char *reason;

    in->config = cek__config_select(isa);
    if (sizeof ISA_AMX > 1 && (any || strcmp(isa, "amx") == 0) && cek__amx(&reason) == AMX_REFUSED) {
        if (!any)
            return cek__host_fail(host, CEK_INVALID, "cpu_isa: \"%s\": %s", isa, reason);
        cek__host_log(host, CEK_LOG_WARN, "cpu: %s instead of amx: %s", in->config->isa, reason);
    }
    if (!in->config)
        return cek__host_fail(host, CEK_INVALID, "cpu_isa: \"%s\" was not built (only %s), or does not run here", isa,
                              ISAS);
    return CEK_OK;
}

static cek_status settings_read(cpu_instance *in)
{
    const cek_host *host = &in->head.host;
    uint64_t devices = 1, threads = 0, lend = 1;
    cek_status st = cek__host_option_number(host, "cpu_devices", 1, CPU_DEVICES_MAX, &devices);

    if (st == CEK_OK)
        st = cek__host_option_number(host, "cpu_threads", 1, CPU_CPUS_MAX, &threads);
    if (st == CEK_OK)
        st = cek__host_option_number(host, "cpu_lend", 0, 1, &lend);
    if (st != CEK_OK)
        return st;
    st = config_choose(in, cek__host_option(host, "cpu_isa"));
    if (st != CEK_OK)
        return st;
    in->devices = (uint32_t)devices;
    cek__topology_read(&in->topology);
    if (threads)
        in->topology.workers = (int)threads;
    /* a lone device has nobody to borrow from; devices that share cores have none idle */
    if (!lend || devices == 1 || in->topology.workers < (int)devices || in->topology.workers > in->topology.n_cpus)
        return CEK_OK;
    in->lenders = aligned_alloc(sizeof *in->lenders, devices * sizeof *in->lenders);
    if (!in->lenders)
        return cek__host_fail(host, CEK_OUT_OF_MEMORY, "create: no memory for %u devices", in->devices);
    memset(in->lenders, 0, devices * sizeof *in->lenders);
    return CEK_OK;
}

cek_status cek__cpu_create(const cek_host *host, cek_instance **out)
{
    cpu_instance *in = calloc(1, sizeof *in);
    cek_status st;

    *out = NULL;
    if (!in) {
        cek_host callbacks;

        st = cek__callbacks_copy(host, &callbacks);
        return st == CEK_OK ? cek__host_fail(&callbacks, CEK_OUT_OF_MEMORY, "create: no memory for the cpu instance")
                            : st;
    }
    st = cek__host_instance_init(&in->head, host);
    if (st != CEK_OK) {
        free(in);
        return st;
    }
    pthread_mutex_init(&in->loads_lock, NULL);
    st = settings_read(in);
    if (st != CEK_OK) {
        cek__cpu_destroy(&in->head);
        return st;
    }
    *out = &in->head;
    return CEK_OK;
}

void cek__cpu_destroy(cek_instance *instance)
{
    if (!instance)
        return;
    cek__host_instance_fini(instance);
    pthread_mutex_destroy(&((cpu_instance *)instance)->loads_lock);
    free(((cpu_instance *)instance)->lenders);
    free(instance);
}

uint32_t cek__cpu_device_count(cek_instance *instance)
{
    return ((cpu_instance *)instance)->devices;
}

static void driver_text(const cpu_instance *in, char *to, size_t cap)
{
    const cpu_topology *t = &in->topology;

    snprintf(to, cap, "%s, L1 %lld KiB, L2 %lld KiB, L3 %lld KiB, %s", in->config->isa, (long long)t->l1d_bytes >> 10,
             (long long)t->l2_bytes >> 10, (long long)t->l3_bytes >> 10, COMPILER);
}

cek_status cek__cpu_device_info(cek_instance *instance, uint32_t index, cek_device_info *info)
{
    const cpu_instance *in = (const cpu_instance *)instance;
    cek_device_info full = {
        .kind = CEK_KIND_CPU,
        .flags = CEK_DEVICE_UNIFIED_MEMORY | CEK_DEVICE_INLINE,
        .types = 1u << CEK_F32 | 1u << CEK_F16 | 1u << CEK_BF16 | 1u << CEK_U8 | 1u << CEK_I32,
    };
    cpu_slice slice;

    if (index >= in->devices)
        return cek__host_fail(&in->head.host, CEK_INVALID, "device_info: there is no device %u of %u", index,
                              in->devices);
    cek__topology_split(&in->topology, (int)in->devices, (int)index, &slice);
    full.compute_units = (uint32_t)slice.workers;
    cek__host_memory(&full.free_bytes, &full.total_bytes);
    full.max_alloc_bytes = full.total_bytes;
    full.numeric_id = cek__cpu_numeric_id(in->config, "");
    snprintf(full.name, sizeof full.name, "%.100s (%d thread%s)", in->topology.model, slice.workers,
             slice.workers == 1 ? "" : "s");
    driver_text(in, full.driver, sizeof full.driver);
    snprintf(full.processor, sizeof full.processor, "cpu");
    return cek__struct_out(&in->head.host, "device_info: info", info, &full, sizeof full);
}

cek_status cek__cpu_device_sensors(cek_instance *instance, uint32_t index, cek_device_sensors *out)
{
    cpu_instance *in = (cpu_instance *)instance;
    cek_device_sensors full = { .size = sizeof full };
    cpu_slice slice;
    struct timespec now;

    if (index >= in->devices)
        return cek__host_fail(&in->head.host, CEK_INVALID, "device_sensors: there is no device %u of %u", index,
                              in->devices);
    cek__topology_split(&in->topology, (int)in->devices, (int)index, &slice);
    pthread_mutex_lock(&in->loads_lock);
    clock_gettime(CLOCK_MONOTONIC, &now);
    cek__sensors_read("", &slice, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec, &in->loads[index], &full);
    pthread_mutex_unlock(&in->loads_lock);
    return cek__struct_out(&in->head.host, "device_sensors: out", out, &full, sizeof full);
}

/* Its own threads, and as many at most on cores of the device behind it. */
static int threads_start(cpu_instance *in, uint32_t index, cpu_dev *dev)
{
    const uint32_t behind = (index + 1) % in->devices;
    cpu_slice own, other;
    cpu_loan loan = { 0 };
    int error = 0;

    cek__topology_split(&in->topology, (int)in->devices, (int)index, &own);
    if (in->lenders) {
        cek__topology_split(&in->topology, (int)in->devices, (int)behind, &other);
        loan = (cpu_loan){ .from = &in->lenders[behind],
                           .guests = own.workers < other.workers ? own.workers : other.workers,
                           .cpus = other.cpus };
    }
    dev->workers = own.workers + loan.guests;
    if (dev->workers > 1)
        error = cek__threads_create_borrowing(own.workers, own.cpus, own.n_cpus, &loan, &dev->threads);
    if (error || !in->lenders)
        return error;
    dev->lender = &in->lenders[index];
    cek__lender_open(dev->lender);
    return 0;
}

cek_status cek__cpu_device_open(cek_instance *instance, uint32_t index, const cek_device_options *options,
                                cek_dev **out)
{
    cpu_instance *in = (cpu_instance *)instance;
    const cek_host *host = &in->head.host;
    cpu_dev *dev;
    cek_status st;
    int error;

    *out = NULL;
    if (index >= in->devices)
        return cek__host_fail(host, CEK_INVALID, "device_open: there is no device %u of %u", index, in->devices);
    dev = calloc(1, sizeof *dev);
    if (!dev)
        return cek__host_fail(host, CEK_OUT_OF_MEMORY, "device_open: no memory for device %u", index);
    st = cek__host_device_init(&dev->head, instance, index, options);
    if (st != CEK_OK) {
        free(dev);
        return st;
    }
    dev->config = in->config;
    error = threads_start(in, index, dev);
    if (error) {
        st = cek__host_fail(host, CEK_OUT_OF_MEMORY, "device_open: cannot start %d threads: %s", dev->workers - 1,
                            strerror(error));
        cek__cpu_device_close(&dev->head);
        return st;
    }
    *out = &dev->head;
    return CEK_OK;
}

void cek__cpu_device_close(cek_dev *head)
{
    cpu_dev *dev = (cpu_dev *)head;

    if (!dev)
        return;
    if (dev->lender)
        cek__lender_close(dev->lender);
    cek__threads_destroy(dev->threads);
    cek__host_device_fini(head);
    free(dev);
}

/* ---- slots ---- */

#define NEEDED(queue, call)                                 \
    cpu_lender *lender = ((cpu_dev *)(queue)->dev)->lender; \
    cek__lender_begin(lender);                              \
    const cek_status st = call;                             \
    cek__lender_end(lender);                                \
    return st

cek_status cek__cpu_op_run(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count,
                           cek_ref workspace)
{
    NEEDED(queue, cek__host_op_run(queue, op, operands, count, workspace));
}

cek_status cek__cpu_cmdbuf_run(cek_queue *queue, cek_cmdbuf *cmdbuf)
{
    NEEDED(queue, cek__host_cmdbuf_run(queue, cmdbuf));
}

cek_status cek__cpu_upload(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes)
{
    NEEDED(queue, cek__host_upload(queue, dst, src, bytes));
}

cek_status cek__cpu_download(cek_queue *queue, void *dst, cek_ref src, uint64_t bytes)
{
    NEEDED(queue, cek__host_download(queue, dst, src, bytes));
}

cek_status cek__cpu_copy_mem(cek_queue *queue, cek_ref dst, cek_ref src, uint64_t bytes)
{
    NEEDED(queue, cek__host_copy_mem(queue, dst, src, bytes));
}

cek_status cek__cpu_fill(cek_queue *queue, cek_ref dst, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes)
{
    NEEDED(queue, cek__host_fill(queue, dst, pattern, pattern_bytes, bytes));
}
