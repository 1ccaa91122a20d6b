/* SPDX-License-Identifier: MIT
 *
 * gpu.h - what OpenCL and CUDA share: devices that run kernels, and operations as lists of launches.
 *
 * A driver (backends/opencl, backends/cuda) owns instances, memory, queues and events, embeds the structs below as the
 * first member of its own, and offers a handful of functions: load a kernel, prepare a launch, launch. The shared part
 * owns op_create, op_destroy, op_prepack and op_run: it validates, lowers an operation to steps, and hands each step to
 * the driver. It knows no API of a driver; a driver knows no operation.
 */
#ifndef CEK_BACKENDS_GPU_GPU_H
#define CEK_BACKENDS_GPU_GPU_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <cekernels/plugin.h>

#include "backends/common/fail.h"
#include "backends/common/validate.h"

typedef struct cek__gpu_driver cek__gpu_driver;
typedef struct cek__gpu_kernel cek__gpu_kernel;  /* the driver's: one kernel, ready to be launched */

struct cek_instance {
    cek_host host;  /* zeroed where there is none */
};

/* What lowering may look at. DETERMINISTIC operations depend on the model of the device: everything here but compute_units. */
typedef struct cek__gpu_traits {
    uint32_t compute_units;
    uint32_t max_group;      /* work-items in a group */
    uint32_t vector_width;   /* f32 lanes of a register where the device is a CPU, else 0 */
    uint64_t local_bytes;
    uint64_t numeric_id;     /* device model, driver, compiler */
    bool built_in_only;      /* no compiler at run time: only the kernels that were compiled when the plugin was built */
} cek__gpu_traits;

struct cek_dev {
    cek_instance *instance;
    const cek__gpu_driver *driver;
    uint32_t index;
    atomic_bool lost;        /* set once, after lost_text */
    pthread_mutex_t lock;    /* of the first cek__gpu_device_lose() */
    char lost_text[CEK__TEXT_BYTES];
    cek__gpu_traits traits;
};

struct cek_mem {
    cek_dev *dev;
    uint64_t bytes;
};

/* A kernel's arguments: `buffer_count` pointers, then a struct of plain numbers which begins with as many byte offsets as
 * there are buffers (see CEK_OFFSETS in kernels/gpu/args.h). */
#define CEK__GPU_BUFFERS 9
#define CEK__GPU_ARGS_BYTES 1024

/* Which memory a kernel's pointer is: a slot of the operation, a piece of the workspace, or nothing. */
enum { CEK__GPU_WORKSPACE = 62, CEK__GPU_NOTHING = 63 };
typedef struct cek__gpu_place {
    uint32_t slot;
    uint64_t offset;
} cek__gpu_place;

/* One launch. */
typedef struct cek__gpu_step {
    cek__gpu_kernel *kernel;
    uint64_t groups[3];
    uint32_t group[3];       /* work-items of a group */
    uint32_t buffer_count;
    uint32_t args_bytes;
    cek__gpu_place buffers[CEK__GPU_BUFFERS];
    uint64_t args[CEK__GPU_ARGS_BYTES / 8];
} cek__gpu_step;

struct cek_op {
    cek_dev *dev;
    cek__request request;
    cek_op_info info;
    pthread_mutex_t lock;    /* a kernel object's arguments are set and launched by one thread at a time */
    uint32_t step_count, step_room;
    cek__gpu_step *steps;
    cek_status failure;      /* of lowering: the first one stays */
};

struct cek__gpu_driver {
    /* kernel_load - the kernel `name` of `source` (a name of cek__gpu_source), compiled behind the lines of `defines`.
     * The driver keeps what it compiled, in memory and on disk; kernel_free releases the handle alone. */
    cek_status (*kernel_load)(cek_dev *dev, const char *source, const char *defines, const char *name, cek__gpu_kernel **out);
    void (*kernel_free)(cek_dev *dev, cek__gpu_kernel *kernel);
    /* kernel_warm - whatever the driver leaves to a first launch, done now: with arguments that are all zero, which every kernel
     * takes for "nothing to do". */
    cek_status (*kernel_warm)(cek_dev *dev, const cek__gpu_step *step);
    /* launch - enqueues a step; refs[i] is the memory of buffer i, {NULL, 0} for nothing. Caller holds the op's lock. */
    cek_status (*launch)(cek_queue *queue, const cek__gpu_step *step, const cek_ref *refs);
    /* queue_ready - CEK_OK, the latched loss, or the failure that stuck to the queue. queue_dev - whose it is.
     * queue_fail - makes a failure stick. */
    cek_status (*queue_ready)(cek_queue *queue, const char *call);
    cek_dev *(*queue_dev)(cek_queue *queue);
    void (*queue_fail)(cek_queue *queue, cek_status status, const char *text);
};

/* --- device ------------------------------------------------------------------------------------------------------- */

cek_status cek__gpu_device_init(cek_dev *dev, cek_instance *instance, const cek__gpu_driver *driver, uint32_t index,
                                const cek_device_options *options);
void cek__gpu_device_fini(cek_dev *dev);
/* cek__gpu_device_lose - latches CEK_DEVICE_LOST; the first reason stays. */
void cek__gpu_device_lose(cek_dev *dev, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
cek_status cek__gpu_ready(const cek_dev *dev, const char *call);
cek_status cek__gpu_device_status(cek_dev *dev, char *text, uint64_t cap);
/* A cek__mem_bytes_fn whose `user` is the device. */
bool cek__gpu_mem_bytes(const void *dev, const cek_mem *mem, uint64_t *bytes);

/* Checks of mem_alloc, queue_create, copy, fill and update that need no driver. */
cek_status cek__gpu_alloc_check(cek_dev *dev, const cek_mem_desc *desc, uint64_t *bytes);
cek_status cek__gpu_copy_check(cek_dev *dev, cek_ref dst, cek_ref src, uint64_t bytes);
cek_status cek__gpu_fill_check(cek_dev *dev, cek_ref dst, uint32_t pattern_bytes, uint64_t bytes);
cek_status cek__gpu_update_check(cek_dev *dev, cek_ref dst, const void *src, uint64_t bytes);

/* --- cache.c: compiled kernels on disk --------------------------------------------------------------------------------- */

/* cek__cache_check - CEK_INVALID where the setting says neither a folder nor "off".
 * cek__cache_read - the bytes stored under `key` (a file's name), malloc'ed, or NULL: none, or damaged. `option` is the setting
 * that names the folder ("opencl_cache"). */
cek_status cek__cache_check(const cek_host *host, const char *option);
unsigned char *cek__cache_read(const cek_host *host, const char *option, const char *key, uint64_t *bytes);
/* cek__cache_write - stores them, atomically; a cache that cannot be written is only slow. */
void cek__cache_write(const cek_host *host, const char *option, const char *key, const void *data, uint64_t bytes);

/* --- sources: kernels/gpu and kernels/opencl, embedded at build time --------------------------------------------------- */

typedef struct cek__gpu_source {
    const char *name;   /* "tensor.cl" */
    const char *text;
} cek__gpu_source;
extern const cek__gpu_source cek__gpu_sources[];  /* ends with a NULL name */
const char *cek__gpu_source_text(const char *name);

/* --- slots of the table --------------------------------------------------------------------------------------------- */

cek_status cek__gpu_op_create(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out);
void cek__gpu_op_destroy(cek_op *op);
cek_status cek__gpu_op_prepack(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count, cek_ref packed);
cek_status cek__gpu_op_run(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count, cek_ref workspace);

#endif
