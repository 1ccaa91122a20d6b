/* SPDX-License-Identifier: MIT
 *
 * gpu.h - what OpenCL and CUDA share: devices that run kernels, and operations as lists of launches.
 *
 * A driver (backends/opencl, backends/cuda) owns instances, memory, queues and events, embeds the structs below as the
 * first member of its own, and offers a handful of functions: load a kernel, prepare a launch, launch. The shared part
 * owns op_create, op_destroy, op_prepack and op_run: it validates, lowers an operation to steps, and hands each step to
 * the driver. It knows no API of a driver; a driver knows no operation.
 *
 * What calls what, downwards:
 *
 *     create.c                     op_create: what is asked for, and which way it is done
 *        |  \
 *        |   tuner.c               the fastest of several ways, measured, remembered (cache.c)
 *        |  /   |
 *     lowering.c |                 one way: an operation's steps, made anew and warmed
 *        |  \    |  providers.c    which libraries the user lets do what
 *        |   provided.c            the steps around a library's call, its first run
 *        |  /
 *     lower_*.c                    the steps of our own kernels, a family of operations each
 *        |
 *     step.c    op.c               a step, a list of steps; a list's end and its runs
 *
 * A driver uses gpu.h, providers.h, and program.h for what it compiled.
 */
#ifndef CEK_BACKENDS_GPU_GPU_H
#define CEK_BACKENDS_GPU_GPU_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <cekernels/plugin.h>

#include "backends/common/failure.h"
#include "backends/common/validate.h"

/* A part of every numeric id. Raised whenever a kernel or its lowering may change the last bit of any result. */
#define CEK__GPU_ALGORITHMS "2"

typedef struct cek__gpu_driver cek__gpu_driver;
typedef struct cek__gpu_tuner cek__gpu_tuner;
typedef struct cek__gpu_kernel cek__gpu_kernel; /* the driver's: one kernel, ready to be launched */

struct cek_instance {
    cek_host host; /* zeroed where there is none */
};

/* What lowering may look at. DETERMINISTIC operations depend on the model of the device: what is computed on everything
 * here but compute_units and launch_work, in how many launches on them too. */
typedef struct cek__gpu_traits {
    uint32_t compute_units;
    uint64_t launch_work;  /* multiply-adds that a launch should have at most; 0: nothing ends one that takes long */
    uint32_t max_group;    /* work-items in a group */
    uint32_t vector_width; /* f32 lanes of a register where the device is a CPU, else 0 */
    uint64_t local_bytes;
    uint64_t numeric_id; /* device model, driver, compiler */
    /* no compiler at run time: only the kernels that were compiled when the plugin was built */
    bool built_in_only;
} cek__gpu_traits;

struct cek_dev {
    cek_instance *instance;
    const cek__gpu_driver *driver;
    uint32_t index;
    cek__latch lost;
    cek__gpu_traits traits;
    cek__gpu_tuner *tuner;
};

struct cek_mem {
    cek_dev *dev;
    uint64_t bytes;
};

/* A kernel's arguments: `buffer_count` pointers, then a struct of plain numbers which begins with
 * as many byte offsets as there are buffers (see CEK_OFFSETS in kernels/gpu/args.h). */
#define CEK__GPU_BUFFERS 10
#define CEK__GPU_ARGS_BYTES 1024

/* cek__gpu_arguments_most - bytes of the largest list of arguments, pointers of 8 bytes included. */
extern const uint32_t cek__gpu_arguments_most;

/* Which memory a kernel's pointer is: a slot of the operation, a piece of the workspace, or nothing. */
enum { CEK__GPU_WORKSPACE = 62, CEK__GPU_NOTHING = 63 };
typedef struct cek__gpu_place {
    uint32_t slot;
    uint64_t offset;
} cek__gpu_place;

typedef struct cek__gpu_provider cek__gpu_provider;
typedef struct cek__gpu_plan cek__gpu_plan; /* a provider's: one call, ready to be made; immutable */

/* One launch of a kernel, or one call of a provider. A call's buffers are the operation's slots, by
 * number, then its workspace. */
typedef struct cek__gpu_step {
    cek__gpu_kernel *kernel; /* or NULL: */
    const cek__gpu_provider *provider;
    cek__gpu_plan *plan;
    uint64_t groups[3];
    uint32_t group[3]; /* work-items of a group */
    uint32_t buffer_count;
    uint32_t args_bytes;
    cek__gpu_place buffers[CEK__GPU_BUFFERS];
    uint64_t args[CEK__GPU_ARGS_BYTES / 8];
} cek__gpu_step;

struct cek_op {
    cek_dev *dev;
    cek__request request;
    cek_op_info info;
    pthread_mutex_t lock; /* a kernel object's arguments are set and launched by one thread at a time */
    uint32_t step_count, step_room;
    cek__gpu_step *steps;
    cek_status failure; /* of lowering: the first one stays */
    uint32_t tile;      /* of our own product, or way to pool: the number of the one to take, 0: the rule's; then the
                         * one that was */
};

/* What a provider answers to a request that it takes. */
typedef struct cek__gpu_offer {
    uint32_t leave;      /* set by the caller: CEK__GPU_DOES_ACTIVATION must not be among what the call does */
    uint32_t info_flags; /* CEK_OP_INFO_... */
    cek__gpu_plan *plan;
    uint32_t does;            /* CEK__GPU_DOES_... */
    uint64_t workspace_bytes; /* of its own; begins at a multiple of CEK_ALIGNMENT */
    uint64_t numeric_id;      /* library, version, algorithm */
    char algorithm[64];       /* for people */
} cek__gpu_offer;
enum {
    /* The result is whole: bias, activation, derivative, accumulation, in the type that was asked
     * for. Without it the call writes the plain sums in f32, overwriting, laid out as the result;
     * our own kernels do the rest. */
    CEK__GPU_DOES_EPILOGUE = 1u << 0,
    /* The row sums of gemm's A, the bias gradient of a convolution: by the call; else by our own kernels. */
    CEK__GPU_DOES_SUMS = 1u << 1,
    /* With the epilogue: there is an activation, and the library applies it. Its first run shows
     * whether a NaN comes through; if not, another offer is asked for that leaves the activation. */
    CEK__GPU_DOES_ACTIVATION = 1u << 2
};

/* A library found at run time that computes products or convolutions: CLBlast, cuBLASLt, cuDNN. It
 * sees validated requests of the kinds gemm and conv_*, and memory through cek_ref; it knows
 * nothing of steps. */
struct cek__gpu_provider {
    const char *name; /* "clblast", as users write it in the driver's providers_option */
    /* offer - a plan for the request, or CEK_UNSUPPORTED where the library, or this way to it, does
     * not do that. Anything else is a failure, which is logged; our own kernels do the work then. */
    cek_status (*offer)(cek_dev *dev, const cek__request *request, cek__gpu_offer *out);
    void (*plan_free)(cek_dev *dev, cek__gpu_plan *plan);
    /* call - enqueues; refs[slot] for each slot of the kind ({NULL, 0} where it is not given), then
     * the workspace. Any thread; several at once, on queues of their own. Allocates no device
     * memory. */
    cek_status (*call)(cek_queue *queue, const cek__gpu_plan *plan, const cek_ref *refs);
    /* version - of the library that serves this device: "CLBlast 1.5.3", or "" without one. */
    const char *(*version)(cek_instance *instance);
};

struct cek__gpu_driver {
    /* The providers of all devices of this driver, best first, NULL at the end. */
    const cek__gpu_provider *const *providers;
    /* The option that says which of them may do what ("opencl_providers", see providers.h). */
    const char *providers_option;
    /* Whether a provider is taken unmeasured wherever it takes the request; else it is one of the
     * candidates that are measured. */
    bool providers_first;
    /* The option that says which way pools are computed, by its number ("opencl_pools"): then none is tried. */
    const char *pools_option;
    /* The option that names the cache folder, where what was measured is kept too; NULL: nowhere. */
    const char *cache_option;
    /* kernel_load - the kernel `name` of `source` (a name of cek__gpu_source), compiled behind the lines of `defines`.
     * The driver keeps what it compiled, in memory and on disk; kernel_free releases the handle alone. */
    cek_status (*kernel_load)(cek_dev *dev, const char *source, const char *defines, const char *name,
                              cek__gpu_kernel **out);
    void (*kernel_free)(cek_dev *dev, cek__gpu_kernel *kernel);
    /* kernel_group - the most work-items of a group that this kernel, as it was compiled, can be launched with. NULL:
     * as many as the device takes. */
    uint32_t (*kernel_group)(const cek__gpu_kernel *kernel);
    /* kernel_warm - whatever the driver leaves to a first launch, done now: with arguments that are
     * all zero, which every kernel takes for "nothing to do". */
    cek_status (*kernel_warm)(cek_dev *dev, const cek__gpu_step *step);
    /* launch - enqueues a step; refs[i] is the memory of buffer i, {NULL, 0} for nothing. The caller holds the op's
     * lock. */
    cek_status (*launch)(cek_queue *queue, const cek__gpu_step *step, const cek_ref *refs);
    /* queue_ready - CEK_OK, the latched loss, or the failure that stuck to the queue. queue_dev - whose it is.
     * queue_fail - makes a failure stick. */
    cek_status (*queue_ready)(cek_queue *queue, const char *call);
    cek_dev *(*queue_dev)(cek_queue *queue);
    void (*queue_fail)(cek_queue *queue, cek_status status, const char *text);
    /* As the slots of plugin.h: scratch memory and a queue of our own, to try an operation when it is made. */
    cek_status (*mem_alloc)(cek_dev *dev, const cek_mem_desc *desc, cek_mem **out);
    void (*mem_free)(cek_mem *mem);
    cek_status (*queue_create)(cek_dev *dev, const cek_queue_desc *desc, cek_queue **out);
    void (*queue_destroy)(cek_queue *queue);
    cek_status (*queue_sync)(cek_queue *queue, uint64_t timeout_ns);
    cek_status (*fill)(cek_queue *queue, cek_ref dst, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes);
    cek_status (*download)(cek_queue *queue, void *dst, cek_ref src, uint64_t bytes);
};

/* --- device ------------------------------------------------------------------------------------------------------- */

cek_status cek__gpu_device_init(cek_dev *dev, cek_instance *instance, const cek__gpu_driver *driver, uint32_t index,
                                const cek_device_options *options);
void cek__gpu_device_fini(cek_dev *dev);
/* cek__gpu_launch_work - launch_work of a device whose driver ends launches that take seconds, from its clock (0: not
 * told). */
uint64_t cek__gpu_launch_work(uint32_t compute_units, uint32_t clock_mhz);
/* cek__gpu_ready - CEK_OK, or the latched CEK_DEVICE_LOST with its text. */
static inline cek_status cek__gpu_ready(const cek_dev *dev, const char *call)
{
    return cek__latch_check(&dev->lost, &dev->instance->host, call, dev->index);
}
cek_status cek__gpu_device_status(cek_dev *dev, char *text, uint64_t cap);
/* A cek__mem_bytes_fn whose `user` is the device. */
bool cek__gpu_mem_bytes(const void *dev, const cek_mem *mem, uint64_t *bytes);

/* Whether a copy may be queued on `dev`. */
cek_status cek__gpu_copy_check(cek_dev *dev, cek_ref dst, cek_ref src, uint64_t bytes);

/* cek__gpu_op_steps - calls `each` for every step of a run with these operands, which are checked as op_run's are, in
 * order, until one fails: what a driver needs to keep a run for later. The steps are the operation's; refs are gone
 * behind the call. */
typedef cek_status cek__gpu_step_fn(void *user, const cek__gpu_step *step, const cek_ref *refs);
cek_status cek__gpu_op_steps(cek_dev *dev, const char *call, const cek_op *op, const cek_ref *operands, uint32_t count,
                             cek_ref workspace, cek__gpu_step_fn *each, void *user);

/* --- cache.c: compiled kernels on disk -------------------------------------------------------- */

/* cek__cache_check - CEK_INVALID where the setting says neither a folder nor "off". cek__cache_read
 * - the bytes stored under `key` (a file's name), malloc'ed, or NULL: none, or damaged. `option` is
 * the setting that names the folder ("opencl_cache"); the log has whether nothing can be kept in one that is named. */
cek_status cek__cache_check(const cek_host *host, const char *option);
unsigned char *cek__cache_read(const cek_host *host, const char *option, const char *key, uint64_t *bytes);
/* cek__cache_write - stores them, atomically; a cache that cannot be written is only slow. */
void cek__cache_write(const cek_host *host, const char *option, const char *key, const void *data, uint64_t bytes);

/* --- sources: kernels/gpu and kernels/opencl, embedded at build time -------------------------- */

typedef struct cek__gpu_source {
    const char *name; /* "copy.cl" */
    const char *text;
} cek__gpu_source;
extern const cek__gpu_source cek__gpu_sources[]; /* ends with a NULL name */
const char *cek__gpu_source_text(const char *name);

/* --- slots of the table ----------------------------------------------------------------------- */

cek_status cek__gpu_op_create(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out);
void cek__gpu_op_destroy(cek_op *op);
cek_status cek__gpu_op_prepack(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count,
                               cek_ref packed);
cek_status cek__gpu_op_run(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count,
                           cek_ref workspace);

#endif
