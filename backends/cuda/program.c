/* SPDX-License-Identifier: MIT
 *
 * program.c - kernels as the device runs them: machine code that was embedded when the plugin was
 * built, or what NVRTC makes of the embedded source, kept on disk for the next time. And their
 * launch.
 *
 * A program is known by its source and the definitions in front of it, and loaded once per device.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common/hash.h"
#include "backends/cuda/cuda.h"

#define GRID_X_MAX INT32_MAX /* the driver's limits */
#define GRID_YZ_MAX 65535
#define WARM_TIMEOUT_NS UINT64_C(60000000000)

typedef struct warm_kernel {
    struct warm_kernel *next;
    CUfunction function;
} warm_kernel;

typedef struct cuda_program {
    cek__gpu_program head;
    CUmodule module;
    warm_kernel *warm;
    const char *prefix; /* of its kernels' names in the module */
    const void *image;  /* embedded, or NULL */
} cuda_program;

struct cek__gpu_kernel {
    cuda_program *program;
    CUfunction function;
    char name[64];
};

/* --- modules ---------------------------------------------------------------------------------- */

/* Results may be contracted to fused multiply-adds but where plugin.h says that every instruction rounds. */
static const char *fmad_option(const char *source)
{
    return strcmp(source, "pointwise.cl") ? "--fmad=true" : "--fmad=false";
}

static void key_make(cuda_dev *dev, const char *source, const char *text, char *key, uint64_t cap)
{
    const char *const parts[] = { dev->cache_key, cek__cuda_compiler_text(cek__cuda_instance(&dev->head)), source,
                                  fmad_option(source), text };
    uint64_t one = CEK__HASH_START, two = ~CEK__HASH_START;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        one = cek__hash_text(one, parts[i]);
        two = cek__hash_text(two, parts[i]);
    }
    snprintf(key, cap, "cuda-%016llx%016llx", (unsigned long long)one, (unsigned long long)two);
}

static char *text_join(const char *source, const char *defines)
{
    const char *const parts[] = { defines, cek__gpu_source_text("dialect.h"), cek__gpu_source_text("args.h"),
                                  cek__gpu_source_text(source) };
    size_t bytes = 1;
    for (int i = 0; i < 4; i++)
        bytes += parts[i] ? strlen(parts[i]) : 0;
    char *text = parts[3] ? malloc(bytes) : NULL;
    if (text)
        snprintf(text, bytes, "%s%s%s%s", parts[0], parts[1], parts[2], parts[3]);
    return text;
}

/* Code that the driver cannot use on this device, in contrast to a failure to load it. */
static bool is_foreign(CUresult error)
{
    return error == CUDA_ERROR_NO_BINARY_FOR_GPU || error == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ||
           error == CUDA_ERROR_INVALID_PTX || error == CUDA_ERROR_INVALID_IMAGE || error == CUDA_ERROR_INVALID_SOURCE ||
           error == CUDA_ERROR_JIT_COMPILER_NOT_FOUND || error == CUDA_ERROR_JIT_COMPILATION_DISABLED;
}

/* From disk or from NVRTC. What is on disk and of no use was made for another driver: it is made again. */
static cek_status module_compile(cuda_dev *dev, const char *source, const char *defines, CUmodule *out)
{
    const cuda_driver *api = cek__cuda_api(dev);
    const cek_host *host = &dev->head.instance->host;
    uint64_t bytes;
    char key[64];
    char *text = text_join(source, defines);
    if (!text)
        return cek__host_fail(host, CEK_OUT_OF_MEMORY, "op_create: no memory for the text of %s", source);
    key_make(dev, source, text, key, sizeof key);
    void *image = cek__cache_read(host, "cuda_cache", key, &bytes);
    CUresult error = image ? api->cuModuleLoadData(out, image) : CUDA_ERROR_INVALID_IMAGE;
    free(image);
    if (!is_foreign(error)) {
        free(text);
        return error ? cek__cuda_fail(dev, "op_create", "cuModuleLoadData", error) : CEK_OK;
    }
    cek_status st = cek__cuda_compile(dev, source, text, fmad_option(source), &image, &bytes);
    free(text);
    if (st)
        return st;
    error = api->cuModuleLoadData(out, image);
    if (error)
        st = cek__cuda_fail(dev, "op_create", "cuModuleLoadData", error);
    else
        cek__cache_write(host, "cuda_cache", key, image, bytes);
    free(image);
    return st;
}

static const cek__cuda_image *image_find(const char *source, const char *defines)
{
    for (const cek__cuda_image *at = cek__cuda_images; at->source; at++)
        if (!strcmp(at->source, source) && !strcmp(at->defines, defines))
            return at;
    return NULL;
}

/* All programs of one image share its module. *out stays NULL where the image has nothing for this device. */
static cek_status module_embedded(cuda_dev *dev, const cek__cuda_image *image, CUmodule *out)
{
    for (cek__gpu_program *at = dev->programs; at; at = at->next)
        if (((cuda_program *)at)->image == image->data) {
            *out = ((cuda_program *)at)->module;
            return CEK_OK;
        }
    CUresult error = cek__cuda_api(dev)->cuModuleLoadData(out, image->data);
    if (error)
        *out = NULL;
    if (!error || is_foreign(error))
        return CEK_OK;
    return cek__cuda_fail(dev, "op_create", "cuModuleLoadData", error);
}

/* Under programs_lock, in the context. */
static cek_status program_make(cek_dev *head, cek__gpu_program *program)
{
    cuda_dev *dev = (cuda_dev *)head;
    cuda_program *made = (cuda_program *)program;
    const char *source = program->source, *defines = program->defines;
    cuda_instance *instance = cek__cuda_instance(head);
    const cek__cuda_image *image = instance->images_off ? NULL : image_find(source, defines);
    made->prefix = "";
    if (image) {
        cek_status st = module_embedded(dev, image, &made->module);
        made->image = made->module ? image->data : NULL;
        made->prefix = made->module ? image->prefix : "";
        if (st || made->module)
            return st;
    }
    if (!cek__gpu_source_text(source))
        return cek__host_fail(&instance->head.host, CEK_INTERNAL, "op_create: there is no source %s", source);
    if (!cek__cuda_compiler(instance))
        return cek__host_fail(&instance->head.host, CEK_UNAVAILABLE,
                              "op_create: %s for sm_%d%d: not among the machine code of this build, and %s", source,
                              dev->major, dev->minor, cek__cuda_compiler_text(instance));
    return module_compile(dev, source, defines, &made->module);
}

static void program_free(cuda_program *program)
{
    while (program->warm) {
        warm_kernel *next = program->warm->next;
        free(program->warm);
        program->warm = next;
    }
    cek__gpu_program_free(&program->head);
}

/* Whether a program behind this one still names its module. */
static bool module_shared(const cuda_program *program)
{
    for (const cek__gpu_program *at = program->head.next; at; at = at->next)
        if (((const cuda_program *)at)->module == program->module)
            return true;
    return false;
}

void cek__cuda_programs_free(cuda_dev *dev)
{
    bool entered = dev->programs && !cek__latched(&dev->head.lost) && !cek__cuda_enter(dev, "device_close");
    while (dev->programs) {
        cuda_program *program = (cuda_program *)dev->programs;
        if (entered && !module_shared(program))
            (void)cek__cuda_api(dev)->cuModuleUnload(program->module);
        dev->programs = program->head.next;
        program_free(program);
    }
    if (entered)
        cek__cuda_leave(dev);
}

/* --- kernels ---------------------------------------------------------------------------------- */

cek_status cek__cuda_kernel_load(cek_dev *head, const char *source, const char *defines, const char *name,
                                 cek__gpu_kernel **out)
{
    cuda_dev *dev = (cuda_dev *)head;
    cek__gpu_program *program;
    char symbol[96];
    *out = NULL;
    cek__gpu_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel)
        return cek__host_fail(&head->instance->host, CEK_OUT_OF_MEMORY, "op_create: no memory for a kernel");
    snprintf(kernel->name, sizeof kernel->name, "%s", name);
    cek_status st = cek__cuda_enter(dev, "op_create");
    if (!st) {
        pthread_mutex_lock(&dev->programs_lock);
        st = cek__gpu_program_get(head, &dev->programs, source, defines, sizeof(cuda_program), program_make, &program);
        pthread_mutex_unlock(&dev->programs_lock);
        if (!st) {
            kernel->program = (cuda_program *)program;
            snprintf(symbol, sizeof symbol, "%s%s", kernel->program->prefix, name);
            CUresult error = cek__cuda_api(dev)->cuModuleGetFunction(&kernel->function, kernel->program->module,
                                                                     symbol);
            if (error)
                st = cek__cuda_fail(dev, "op_create", "cuModuleGetFunction", error);
        }
        cek__cuda_leave(dev);
    }
    if (st) {
        free(kernel);
        return st;
    }
    *out = kernel;
    return CEK_OK;
}

void cek__cuda_kernel_free(cek_dev *dev, cek__gpu_kernel *kernel)
{
    (void)dev; /* functions belong to their module */
    free(kernel);
}

cek_status cek__cuda_launch(cek_queue *queue, const cek__gpu_step *step, const cek_ref *refs)
{
    uint64_t args[CEK__GPU_ARGS_BYTES / 8];
    CUdeviceptr addresses[CEK__GPU_BUFFERS];
    void *parameters[CEK__GPU_BUFFERS + 1];
    memcpy(args, step->args, step->args_bytes);
    for (uint32_t i = 0; i < step->buffer_count; i++) {
        args[i] = refs[i].offset;
        addresses[i] = cek__cuda_address((cek_ref){ refs[i].mem, 0 });
        parameters[i] = &addresses[i];
    }
    parameters[step->buffer_count] = args;
    cek_status st = cek__cuda_enter(queue->dev, "op_run");
    if (st)
        return st;
    CUresult error = cek__cuda_api(queue->dev)
                         ->cuLaunchKernel(step->kernel->function, (unsigned int)step->groups[0],
                                          (unsigned int)step->groups[1], (unsigned int)step->groups[2], step->group[0],
                                          step->group[1], step->group[2], 0, queue->stream, parameters, NULL);
    cek__cuda_leave(queue->dev);
    return error ? cek__cuda_fail(queue->dev, step->kernel->name, "cuLaunchKernel", error) : CEK_OK;
}

/* Whether a launch of this kernel has ended. */
static bool is_warm(cuda_dev *dev, const cek__gpu_kernel *kernel)
{
    bool warm = false;
    pthread_mutex_lock(&dev->programs_lock);
    for (warm_kernel *at = kernel->program->warm; !warm && at; at = at->next)
        warm = at->function == kernel->function;
    pthread_mutex_unlock(&dev->programs_lock);
    return warm;
}

/* Without memory it is warmed once more another time. */
static void warm_note(cuda_dev *dev, const cek__gpu_kernel *kernel)
{
    warm_kernel *made = calloc(1, sizeof *made);
    if (!made)
        return;
    pthread_mutex_lock(&dev->programs_lock);
    *made = (warm_kernel){ kernel->program->warm, kernel->function };
    kernel->program->warm = made;
    pthread_mutex_unlock(&dev->programs_lock);
}

/* The driver loads a kernel's code at its first launch, which may wait for the whole device and
 * breaks a capture. Here too the limits of a grid are looked at, before anything runs. */
cek_status cek__cuda_kernel_warm(cek_dev *head, const cek__gpu_step *step)
{
    cuda_dev *dev = (cuda_dev *)head;
    const cek_ref nothing[CEK__GPU_BUFFERS] = { { NULL, 0 } };
    cek__gpu_step idle = *step;
    cek_queue *queue;
    if (step->groups[0] > GRID_X_MAX || step->groups[1] > GRID_YZ_MAX || step->groups[2] > GRID_YZ_MAX)
        return cek__host_fail(&head->instance->host, CEK_UNSUPPORTED,
                              "op_create: %s: %llu x %llu x %llu groups of work-items", step->kernel->name,
                              (unsigned long long)step->groups[0], (unsigned long long)step->groups[1],
                              (unsigned long long)step->groups[2]);
    if (is_warm(dev, step->kernel))
        return CEK_OK;
    memset(idle.args, 0, sizeof idle.args);
    idle.groups[0] = idle.groups[1] = idle.groups[2] = 1;
    cek_status st = cek__cuda_queue_create(head, NULL, &queue);
    if (st)
        return st;
    st = cek__cuda_launch(queue, &idle, nothing);
    if (!st)
        st = cek__cuda_queue_sync(queue, WARM_TIMEOUT_NS);
    if (st == CEK_TIMEOUT)
        st = cek__host_fail(&head->instance->host, CEK_INTERNAL, "op_create: the first launch of %s did not end",
                            step->kernel->name);
    if (!st)
        warm_note(dev, step->kernel);
    cek__cuda_queue_destroy(queue);
    return st;
}
