/* SPDX-License-Identifier: MIT
 *
 * cuda.h - the CUDA driver inside: instances, devices, memory, queues, events, kernels and command
 * buffers over NVIDIA's driver API.
 *
 * A device holds the primary context of its GPU, which the host application may use too: every call
 * pushes it and pops it again, so that a thread's own current context is as it was. What breaks
 * that context (a kernel that reads out of bounds, an uncorrectable memory error) breaks it for all
 * its users; here it latches CEK_DEVICE_LOST.
 */
#ifndef CEK_BACKENDS_CUDA_CUDA_H
#define CEK_BACKENDS_CUDA_CUDA_H

#include "backends/cuda/driver.h"
#include "backends/gpu/program.h"

extern const cek__gpu_driver cek__cuda_driver;

/* NVRTC, where it was found. */
typedef struct cuda_compiler cuda_compiler;
typedef struct cek__cublaslt cek__cublaslt;
typedef struct cek__cudnn cek__cudnn;
typedef struct cek__nvml cek__nvml;

typedef struct cuda_instance {
    cek_instance head;
    cuda_driver driver;
    int version; /* of CUDA that the driver knows: 13000 is 13.0 */
    uint32_t count;
    bool images_off;             /* the option cuda_images=off: as if built without nvcc */
    pthread_mutex_t ranges_lock; /* never held inside the driver */
    pthread_cond_t ranges_changed;
    struct cuda_range *ranges; /* of the host's memory that is registered, for all devices */
    pthread_mutex_t lock;      /* of all that follows: NVRTC is looked for when it is first needed */
    bool compiler_sought;
    cuda_compiler *compiler; /* or NULL */
    char compiler_text[512]; /* "NVRTC 13.0", or why there is none */
    bool cublaslt_sought;
    cek__cublaslt *cublaslt; /* or NULL */
    bool cudnn_sought;
    cek__cudnn *cudnn;         /* or NULL */
    _Atomic(cek__nvml *) nvml; /* NULL: no sensors were read yet */
} cuda_instance;

typedef struct cuda_dev {
    cek_dev head;
    CUdevice device;
    CUcontext context;  /* the primary one, retained */
    int major, minor;   /* compute capability */
    char cache_key[64]; /* device and driver, for file names of compiled kernels */
    pthread_mutex_t programs_lock;
    cek__gpu_program *programs;
    void *cublaslt_handle; /* under programs_lock until it is there */
    /* of the three that follow and of every call of cuDNN: a handle is for one thread at a time */
    pthread_mutex_t cudnn_lock;
    void *cudnn_handle;
    CUstream cudnn_stream;                /* that the handle carries, or NULL */
    struct cek__cudnn_choice *cudnn_best; /* of requests that were measured; under cudnn_lock */
    bool cudnn_failed;                    /* it does not start here */
    uint64_t peers_tried; /* bit i: access to device i of the instance was asked for; under programs_lock */
} cuda_dev;

typedef struct cuda_mem {
    cek_mem head;
    CUdeviceptr address;
    bool foreign; /* somebody else's (mem_import) */
} cuda_mem;

struct cek_queue {
    cuda_dev *dev;
    CUstream stream;
    bool timing;
    uint64_t deadline_ns;
    /* A failure that is not the driver's: half an operation enqueued, a wait for a failed event.
     * The driver's own end the context. */
    cek__failure failure;
};

static inline cuda_instance *cek__cuda_instance(const cek_dev *dev)
{
    return (cuda_instance *)dev->instance;
}

static inline const cuda_driver *cek__cuda_api(const cuda_dev *dev)
{
    return &((cuda_instance *)dev->head.instance)->driver;
}

/* The address of a place, 0 for {NULL, 0}. */
static inline CUdeviceptr cek__cuda_address(cek_ref ref)
{
    return ref.mem ? ((const cuda_mem *)ref.mem)->address + ref.offset : 0;
}

/* --- library.c: shared objects of NVIDIA's, found at run time --------------------------------- */

/* cek__cuda_library_open - the first of `names` (ends with NULL; "libnvrtc.so.13") that loads: from
 * the folders of the option cuda_path (separated by colons), by the loader's own search, from the
 * toolkit and from the folders of Python wheels. `path` (cap bytes) gets what was loaded, or the
 * reason why nothing was. The handle is never closed: such libraries keep threads and destructors
 * of their own. NULL: none. */
void *cek__cuda_library_open(const cek_host *host, const char *const *names, char *path, uint64_t cap);
/* cek__cuda_library_names - `names`, newest first, from the first on whose major version is not
 * beyond what the driver knows (13000): a driver of CUDA 12 runs nothing of a library of CUDA 13,
 * nor what such a compiler makes. */
const char *const *cek__cuda_library_names(const char *const *names, int version);
/* cek__cuda_library_beside - loads `name` from the folder of an open library, where it is there: what libraries open by
 * name alone while they work. The handle is never closed. */
void cek__cuda_library_beside(void *library, const char *name);

/* --- driver.c --------------------------------------------------------------------------------- */

/* cek__cuda_driver_load - libcuda.so.1 and all functions of the table. CEK_UNAVAILABLE with one line that says why. */
cek_status cek__cuda_driver_load(const cek_host *host, cuda_driver *out);

/* cek__cuda_status - what plugin.h calls an error; cek__cuda_is_lost - whether it has ended the
 * context; cek__cuda_is_capture - whether it is a call's refusal while this thread, or another,
 * captures a stream. */
cek_status cek__cuda_status(CUresult error);
bool cek__cuda_is_lost(CUresult error);
bool cek__cuda_is_capture(CUresult error);
/* cek__cuda_fail - reports a call that failed and returns its status; latches the loss of a device.
 * `call` is plugin.h's name of what was asked for, `function` the driver's. */
cek_status cek__cuda_fail(cuda_dev *dev, const char *call, const char *function, CUresult error);
/* The text of an error: "CUDA_ERROR_OUT_OF_MEMORY". Never NULL. */
const char *cek__cuda_error(const cuda_driver *driver, CUresult error);

/* cek__cuda_enter - makes the device's context the thread's current one, until cek__cuda_leave. On
 * failure nothing is to be left. */
cek_status cek__cuda_enter(cuda_dev *dev, const char *call);
void cek__cuda_leave(cuda_dev *dev);

/* cek__cuda_poll - asks until the answer is not "not ready" or the time is over: CEK_OK,
 * CEK_TIMEOUT, or the failure, reported. */
cek_status cek__cuda_poll_stream(cuda_dev *dev, const char *call, CUstream stream, uint64_t timeout_ns);
cek_status cek__cuda_poll_event(cuda_dev *dev, const char *call, CUevent event, uint64_t timeout_ns);

/* --- compile.c: NVRTC ------------------------------------------------------------------------- */

/* cek__cuda_compiler - the instance's, loaded and tried at the first call, or NULL;
 * cek__cuda_compiler_text - "NVRTC 13.0", or why there is none. */
cuda_compiler *cek__cuda_compiler(cuda_instance *instance);
const char *cek__cuda_compiler_text(cuda_instance *instance);
void cek__cuda_compiler_free(cuda_compiler *compiler);
/* cek__cuda_compile - machine code of `text` for the device (or PTX, where the compiler is older
 * than the device), malloc'ed. `source` names it in errors. There is a compiler. */
cek_status cek__cuda_compile(cuda_dev *dev, const char *source, const char *text, const char *fmad, void **image,
                             uint64_t *bytes);

/* --- machine code that nvcc made when the plugin was built (kernels/images.sh); ends with a NULL source --- */

typedef struct cek__cuda_image {
    const char *source, *defines; /* as kernel_load is given them */
    const char *prefix;           /* of the kernels' names: one image holds all variants of a source */
    const void *data;
} cek__cuda_image;
extern const cek__cuda_image cek__cuda_images[];

/* --- program.c -------------------------------------------------------------------------------- */

void cek__cuda_programs_free(cuda_dev *dev);
cek_status cek__cuda_kernel_load(cek_dev *dev, const char *source, const char *defines, const char *name,
                                 cek__gpu_kernel **out);
void cek__cuda_kernel_free(cek_dev *dev, cek__gpu_kernel *kernel);
cek_status cek__cuda_kernel_warm(cek_dev *dev, const cek__gpu_step *step);
cek_status cek__cuda_launch(cek_queue *queue, const cek__gpu_step *step, const cek_ref *refs);

/* --- cublaslt.c, cudnn.c: libraries that do products and convolutions ------------------------- */

extern const cek__gpu_provider cek__cublaslt_provider;
void cek__cublaslt_device_close(cuda_dev *dev);
void cek__cublaslt_free(cek__cublaslt *lt);
extern const cek__gpu_provider cek__cudnn_provider;
void cek__cudnn_device_close(cuda_dev *dev);
/* cek__cudnn_queue_destroy - before a stream of the device is destroyed, in its context: cuDNN forgets it. */
void cek__cudnn_queue_destroy(cuda_dev *dev, CUstream stream);
/* cek__cudnn_load - the library and its functions, or NULL with one line of the log that says why. */
cek__cudnn *cek__cudnn_load(const cek_host *host);
void cek__cudnn_free(cek__cudnn *dnn);

/* --- sensors.c -------------------------------------------------------------------------------- */

void cek__nvml_free(cek__nvml *nvml);

/* --- slots of the table ----------------------------------------------------------------------- */

extern const char cek__cuda_build[];
cek_status cek__cuda_create(const cek_host *host, cek_instance **out);
void cek__cuda_destroy(cek_instance *instance);
uint32_t cek__cuda_device_count(cek_instance *instance);
cek_status cek__cuda_device_info(cek_instance *instance, uint32_t index, cek_device_info *info);
cek_status cek__cuda_device_open(cek_instance *instance, uint32_t index, const cek_device_options *options,
                                 cek_dev **out);
void cek__cuda_device_close(cek_dev *dev);
cek_status cek__cuda_device_memory(cek_dev *dev, uint64_t *free_bytes, uint64_t *total_bytes);
cek_status cek__cuda_device_sensors(cek_instance *instance, uint32_t index, cek_device_sensors *out);

cek_status cek__cuda_mem_alloc(cek_dev *dev, const cek_mem_desc *desc, cek_mem **out);
void cek__cuda_mem_free(cek_mem *mem);
cek_status cek__cuda_mem_import(cek_dev *dev, const cek_foreign *foreign, cek_mem **out);
cek_status cek__cuda_mem_export(cek_mem *mem, cek_foreign *out);
void *cek__cuda_mem_host_ptr(cek_mem *mem);
cek_status cek__cuda_host_alloc(cek_dev *dev, uint64_t bytes, void **out);
cek_status cek__cuda_host_register(cek_dev *dev, void *ptr, uint64_t bytes);
void cek__cuda_host_unregister(cek_dev *dev, void *ptr);
/* What a host has left registered with a device that it closes. */
void cek__cuda_host_forget(cek_dev *dev);
void cek__cuda_host_free(cek_dev *dev, void *ptr);

cek_status cek__cuda_queue_create(cek_dev *dev, const cek_queue_desc *desc, cek_queue **out);
void cek__cuda_queue_destroy(cek_queue *queue);
cek_status cek__cuda_queue_status(cek_queue *queue, char *text, uint64_t cap);
cek_status cek__cuda_queue_sync(cek_queue *queue, uint64_t timeout_ns);
cek_status cek__cuda_upload(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes);
cek_status cek__cuda_download(cek_queue *queue, void *dst, cek_ref src, uint64_t bytes);
cek_status cek__cuda_copy(cek_queue *queue, cek_ref dst, cek_ref src, uint64_t bytes);
cek_status cek__cuda_fill(cek_queue *queue, cek_ref dst, uint32_t pattern, uint32_t pattern_bytes, uint64_t bytes);
cek_status cek__cuda_update(cek_queue *queue, cek_ref dst, const void *src, uint64_t bytes);
/* cek__cuda_queue_ready - CEK_OK, the latched loss or the failure that stuck. */
cek_status cek__cuda_queue_ready(cek_queue *queue, const char *call);
cek_dev *cek__cuda_queue_dev(cek_queue *queue);
void cek__cuda_queue_fail(cek_queue *queue, cek_status status, const char *text);

cek_status cek__cuda_event_create(cek_dev *dev, const cek_event_desc *desc, cek_event **out);
void cek__cuda_event_destroy(cek_event *event);
cek_status cek__cuda_event_record(cek_queue *queue, cek_event *event);
cek_status cek__cuda_event_wait(cek_queue *queue, cek_event *event);
cek_status cek__cuda_event_query(cek_event *event);
cek_status cek__cuda_event_sync(cek_event *event, uint64_t timeout_ns);
cek_status cek__cuda_event_status(cek_event *event, char *text, uint64_t cap);
cek_status cek__cuda_event_elapsed(cek_event *start, cek_event *end, uint64_t *ns);

cek_status cek__cuda_cmdbuf_create(cek_dev *dev, const cek_cmd *cmds, uint32_t count, uint32_t cmd_size,
                                   cek_cmdbuf **out);
void cek__cuda_cmdbuf_destroy(cek_cmdbuf *cmdbuf);
cek_status cek__cuda_cmdbuf_run(cek_queue *queue, cek_cmdbuf *cmdbuf);

#endif
