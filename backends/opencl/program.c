/* SPDX-License-Identifier: MIT
 *
 * program.c - kernels compiled once per device: kept in memory for as long as the device is open,
 * on disk for the next time.
 *
 * A program is known by its source and the definitions in front of it; sources that all models want
 * and that are told only a type are one program, since a build takes drivers as long to set up as to
 * do. Some leave the real compilation to the first launch, per size of a group and per class of
 * grid: kernel_warm has it done when an operation is made.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common/hash.h"
#include "backends/opencl/opencl.h"

#define WARM_TIMEOUT_NS UINT64_C(300000000000) /* five minutes: some compilers are that slow */
#define WARM_ITEMS 16384 /* in a row: what launches on processors have at most, but for huge tilings */

static const char *const typed_sources[] = { "optimizer.cl", "random.cl", "rows.cl" };
#define TYPED_SOURCES (sizeof typed_sources / sizeof *typed_sources)
#define TYPED "optimizer, random, rows.cl" /* what the program of these is called */

typedef struct warm_launch {
    struct warm_launch *next;
    uint32_t group[3];
    uint64_t width;
    char kernel[64];
} warm_launch;

/* Queues tell by it which launch failed, and may do so when the operation is gone. */
typedef struct kernel_name {
    struct kernel_name *next;
    char text[64];
} kernel_name;

typedef struct opencl_program {
    cek__gpu_program head;
    cl_program program;
    warm_launch *warm;
    kernel_name *names;
} opencl_program;

/* A kernel object keeps its arguments from launch to launch; so what was set last is kept here, and only what differs
 * is set anew. Memory is told apart by its number, since handles and addresses come back. */
struct cek__gpu_kernel {
    opencl_program *program;
    cl_kernel kernel;
    uint32_t group;                    /* work-items of a group at most; 0: not told */
    const char *name;                  /* the program's */
    uint64_t memory[CEK__GPU_BUFFERS]; /* generations; NO_MEMORY, or 0: nobody knows */
    uint32_t args_bytes;               /* 0: nobody knows */
    uint64_t args[CEK__GPU_ARGS_BYTES / 8];
};
enum { NO_MEMORY = 1 }; /* below CEK__GENERATION_FIRST */

/* --- build ------------------------------------------------------------------------------------ */

static cek_status build_fail(opencl_dev *dev, cl_program program, const char *source, cl_int error)
{
    size_t bytes = 0;
    if (cek__opencl_judge(dev, error) == CEK_DEVICE_LOST)
        return cek__opencl_fail(dev, "op_create", "clBuildProgram", error);
    clGetProgramBuildInfo(program, dev->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
    char *log = calloc(1, bytes + 1);
    if (log)
        clGetProgramBuildInfo(program, dev->id, CL_PROGRAM_BUILD_LOG, bytes, log, NULL);
    char *rest = NULL;
    for (const char *line = log ? strtok_r(log, "\r\n", &rest) : NULL; line; line = strtok_r(NULL, "\r\n", &rest))
        cek__host_log(&dev->head.instance->host, CEK_LOG_ERROR, "%s: %s", source, line);
    for (size_t i = 0; log && i < bytes; i++) /* an error is one line */
        if (!log[i] || log[i] == '\r' || log[i] == '\n')
            log[i] = ' ';
    cek_status st = cek__opencl_status(error) == CEK_OUT_OF_MEMORY ? CEK_OUT_OF_MEMORY : CEK_INTERNAL;
    st = cek__host_fail(&dev->head.instance->host, st, "%s does not compile: %s (%d): %.600s", source,
                        cek__opencl_error(error), error, log ? log : "");
    free(log);
    return st;
}

static void key_make(opencl_dev *dev, const char *const *texts, uint32_t count, char *key, uint64_t cap)
{
    uint64_t one = cek__hash_text(CEK__HASH_START, dev->build_options),
             two = cek__hash_text(~CEK__HASH_START, dev->cache_key);
    one = cek__hash_text(one, dev->cache_key);
    for (uint32_t i = 0; i < count; i++) {
        one = cek__hash_text(one, texts[i]);
        two = cek__hash_text(two, texts[i]);
    }
    snprintf(key, cap, "opencl-%016llx%016llx", (unsigned long long)one, (unsigned long long)two);
}

static cl_program binary_load(opencl_dev *dev, const char *key)
{
    uint64_t bytes;
    cl_int status = CL_SUCCESS, error;
    unsigned char *data = cek__cache_read(&dev->head.instance->host, "opencl_cache", key, &bytes);
    if (!data)
        return NULL;
    size_t length = bytes;
    const unsigned char *from = data;
    cl_program program = clCreateProgramWithBinary(dev->context, 1, &dev->id, &length, &from, &status, &error);
    free(data);
    if (program && (error || status || clBuildProgram(program, 1, &dev->id, dev->build_options, NULL, NULL))) {
        clReleaseProgram(program); /* another build of the driver: from source, then */
        program = NULL;
    }
    return program;
}

static void binary_store(opencl_dev *dev, cl_program program, const char *key)
{
    size_t bytes = 0;
    if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) || !bytes)
        return;
    unsigned char *data = malloc(bytes);
    if (data && !clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof data, &data, NULL))
        cek__cache_write(&dev->head.instance->host, "opencl_cache", key, data, bytes);
    free(data);
}

static bool is_typed(const char *source)
{
    for (uint32_t i = 0; i < TYPED_SOURCES; i++)
        if (!strcmp(source, typed_sources[i]))
            return true;
    return false;
}

/* The texts of a program; 0 where there is no such source. */
static uint32_t texts_collect(const char *source, const char *defines, const char *texts[3 + TYPED_SOURCES])
{
    uint32_t count = 0;
    texts[count++] = defines;
    texts[count++] = cek__gpu_source_text("dialect.h");
    texts[count++] = cek__gpu_source_text("args.h");
    if (strcmp(source, TYPED))
        texts[count++] = cek__gpu_source_text(source);
    else
        for (uint32_t i = 0; i < TYPED_SOURCES; i++)
            texts[count++] = cek__gpu_source_text(typed_sources[i]);
    return texts[count - 1] ? count : 0;
}

/* Under programs_lock. */
static cek_status program_build(cek_dev *head, cek__gpu_program *made)
{
    opencl_dev *dev = (opencl_dev *)head;
    cl_program *out = &((opencl_program *)made)->program;
    const char *source = made->source, *defines = made->defines;
    const char *texts[3 + TYPED_SOURCES];
    const uint32_t count = texts_collect(source, defines, texts);
    char key[64];
    cl_int error;
    if (!count)
        return cek__host_fail(&dev->head.instance->host, CEK_INTERNAL, "op_create: there is no source %s", source);
    if (dev->keeps_kernels) {
        key_make(dev, texts, count, key, sizeof key);
        *out = binary_load(dev, key);
        if (*out)
            return CEK_OK;
    }
    cl_program program = clCreateProgramWithSource(dev->context, count, texts, NULL, &error);
    if (!program)
        return cek__opencl_fail(dev, "op_create", "clCreateProgramWithSource", error);
    error = clBuildProgram(program, 1, &dev->id, dev->build_options, NULL, NULL);
    if (error) {
        cek_status st = build_fail(dev, program, source, error);
        clReleaseProgram(program);
        return st;
    }
    if (dev->keeps_kernels)
        binary_store(dev, program, key);
    *out = program;
    return CEK_OK;
}

static void program_free(opencl_program *program, bool lost)
{
    while (program->warm) {
        warm_launch *next = program->warm->next;
        free(program->warm);
        program->warm = next;
    }
    while (program->names) {
        kernel_name *next = program->names->next;
        free(program->names);
        program->names = next;
    }
    if (!lost)
        clReleaseProgram(program->program);
    cek__gpu_program_free(&program->head);
}

void cek__opencl_programs_free(opencl_dev *dev)
{
    while (dev->programs) {
        cek__gpu_program *next = dev->programs->next;
        program_free((opencl_program *)dev->programs, cek__latched(&dev->head.lost));
        dev->programs = next;
    }
}

/* What registers and local memory of this kernel leave room for: often less than the device's own limit. */
static uint32_t group_read(const opencl_dev *dev, cl_kernel kernel)
{
    size_t group = 0;
    if (clGetKernelWorkGroupInfo(kernel, dev->id, CL_KERNEL_WORK_GROUP_SIZE, sizeof group, &group, NULL))
        return 0;
    return group < UINT32_MAX ? (uint32_t)group : UINT32_MAX;
}

uint32_t cek__opencl_kernel_group(const cek__gpu_kernel *kernel)
{
    return kernel->group;
}

static const char *name_keep(opencl_dev *dev, opencl_program *program, const char *name)
{
    pthread_mutex_lock(&dev->programs_lock);
    kernel_name *at = program->names;
    while (at && strcmp(at->text, name))
        at = at->next;
    if (!at && (at = calloc(1, sizeof *at))) {
        snprintf(at->text, sizeof at->text, "%s", name);
        at->next = program->names;
        program->names = at;
    }
    pthread_mutex_unlock(&dev->programs_lock);
    return at ? at->text : NULL;
}

static cek_status kernel_make(opencl_dev *dev, const char *call, opencl_program *program, const char *name,
                              cek__gpu_kernel **out)
{
    cl_int error;
    *out = NULL;
    cek__gpu_kernel *kernel = calloc(1, sizeof *kernel);
    if (kernel)
        kernel->name = name_keep(dev, program, name);
    if (!kernel || !kernel->name) {
        free(kernel);
        return cek__host_fail(&dev->head.instance->host, CEK_OUT_OF_MEMORY, "%s: no memory for a kernel", call);
    }
    kernel->program = program;
    kernel->kernel = clCreateKernel(program->program, name, &error);
    if (!kernel->kernel) {
        free(kernel);
        return cek__opencl_fail(dev, call, "clCreateKernel", error);
    }
    kernel->group = group_read(dev, kernel->kernel);
    *out = kernel;
    return CEK_OK;
}

cek_status cek__opencl_kernel_load(cek_dev *head, const char *source, const char *defines, const char *name,
                                   cek__gpu_kernel **out)
{
    opencl_dev *dev = (opencl_dev *)head;
    cek__gpu_program *program = NULL;
    *out = NULL;
    pthread_mutex_lock(&dev->programs_lock);
    cek_status st = cek__gpu_program_get(head, &dev->programs, is_typed(source) ? TYPED : source, defines,
                                         sizeof(opencl_program), program_build, &program);
    pthread_mutex_unlock(&dev->programs_lock);
    return st ? st : kernel_make(dev, "op_create", (opencl_program *)program, name, out);
}

cek_status cek__opencl_kernel_copy(cek_dev *dev, const cek__gpu_kernel *of, cek__gpu_kernel **out)
{
    return kernel_make((opencl_dev *)dev, "cmdbuf_create", of->program, of->name, out);
}

void cek__opencl_kernel_free(cek_dev *dev, cek__gpu_kernel *kernel)
{
    if (!kernel)
        return;
    if (!cek__latched(&dev->lost))
        clReleaseKernel(kernel->kernel);
    free(kernel);
}

cl_kernel cek__opencl_kernel_object(const cek__gpu_kernel *kernel)
{
    return kernel->kernel;
}

/* --- launch ----------------------------------------------------------------------------------- */

static cl_int memory_set(cek__gpu_kernel *kernel, uint32_t i, const opencl_mem *mem)
{
    const uint64_t wanted = mem ? mem->generation : NO_MEMORY;
    if (kernel->memory[i] == wanted)
        return CL_SUCCESS;
    cl_int error = clSetKernelArg(kernel->kernel, i, sizeof(cl_mem), mem ? &mem->buffer : NULL);
    kernel->memory[i] = error ? 0 : wanted;
    return error;
}

cl_int cek__opencl_arguments_set(cek__gpu_kernel *kernel, const cek__gpu_step *step, const cek_ref *refs)
{
    uint64_t args[CEK__GPU_ARGS_BYTES / 8];
    memcpy(args, step->args, step->args_bytes);
    cl_int error = CL_SUCCESS;
    for (uint32_t i = 0; !error && i < step->buffer_count; i++) {
        args[i] = refs[i].offset;
        error = memory_set(kernel, i, (const opencl_mem *)refs[i].mem);
    }
    if (error || (kernel->args_bytes == step->args_bytes && !memcmp(kernel->args, args, step->args_bytes)))
        return error;
    error = clSetKernelArg(kernel->kernel, step->buffer_count, step->args_bytes, args);
    kernel->args_bytes = error ? 0 : step->args_bytes;
    memcpy(kernel->args, args, step->args_bytes);
    return error;
}

void cek__opencl_grid(const cek__gpu_step *step, size_t global[3], size_t local[3])
{
    for (int i = 0; i < 3; i++) {
        local[i] = step->group[i];
        global[i] = step->groups[i] * step->group[i];
    }
}

cek_status cek__opencl_kernel_enqueue(cek_queue *queue, const char *call, const cek__gpu_kernel *kernel,
                                      const size_t global[3], const size_t local[3])
{
    cl_event event = NULL;
    if (!cek__ledger_reserve(queue->ledger))
        return cek__host_fail(&queue->dev->head.instance->host, CEK_OUT_OF_MEMORY,
                              "%s: no memory to remember one more launch", call);
    cl_int error = clEnqueueNDRangeKernel(queue->queue, kernel->kernel, 3, NULL, global, local, 0, NULL, &event);
    if (error)
        return cek__opencl_fail(queue->dev, call, "clEnqueueNDRangeKernel", error);
    cek__opencl_enqueued(queue, event, kernel->name, NULL);
    return CEK_OK;
}

cek_status cek__opencl_launch(cek_queue *queue, const cek__gpu_step *step, const cek_ref *refs)
{
    size_t global[3], local[3];
    cl_int error = cek__opencl_arguments_set(step->kernel, step, refs);
    if (error)
        return cek__opencl_fail(queue->dev, "op_run", "clSetKernelArg", error);
    cek__opencl_grid(step, global, local);
    return cek__opencl_kernel_enqueue(queue, "op_run", step->kernel, global, local);
}

/* PoCL keeps an entry for each kernel, size of a group and width of a grid that is larger than all
 * before, and finds the wrong one when a launch ends that began before the newest was made (it
 * aborts, then). So the first launch is as wide as any that follows. */
static uint64_t warm_width(const opencl_dev *dev, const cek__gpu_step *step)
{
    uint64_t width = WARM_ITEMS;
    if (!dev->head.traits.vector_width)
        return 1;
    for (int i = 0; i < 3; i++)
        while (step->groups[i] * step->group[i] > width && width < UINT64_C(1) << 62)
            width *= 2;
    return width;
}

/* Whether this kind of launch has been warmed before. Under programs_lock. */
static bool warm_before(const opencl_program *program, const cek__gpu_step *step, uint64_t width)
{
    for (const warm_launch *at = program->warm; at; at = at->next)
        if (at->width >= width && !strcmp(at->kernel, step->kernel->name) &&
            !memcmp(at->group, step->group, sizeof at->group))
            return true;
    return false;
}

static void warm_note(opencl_program *program, const cek__gpu_step *step, uint64_t width)
{
    warm_launch *made = calloc(1, sizeof *made);
    if (made) { /* without: warmed once more */
        memcpy(made->group, step->group, sizeof made->group);
        made->width = width;
        snprintf(made->kernel, sizeof made->kernel, "%s", step->kernel->name);
        made->next = program->warm;
        program->warm = made;
    }
}

cek_status cek__opencl_kernel_warm(cek_dev *head, const cek__gpu_step *step)
{
    opencl_dev *dev = (opencl_dev *)head;
    const cek_ref nothing[CEK__GPU_BUFFERS] = { { NULL, 0 } };
    cek__gpu_step idle = *step;
    cek_queue *queue;
    const uint64_t width = warm_width(dev, step);
    pthread_mutex_lock(&dev->programs_lock);
    bool before = warm_before(step->kernel->program, step, width);
    pthread_mutex_unlock(&dev->programs_lock);
    if (before)
        return CEK_OK;
    memset(idle.args, 0, sizeof idle.args);
    idle.groups[0] = (width + step->group[0] - 1) / step->group[0];
    idle.groups[1] = idle.groups[2] = 1;
    cek_status st = cek__opencl_own_take(dev, &queue);
    if (st)
        return st;
    st = cek__opencl_launch(queue, &idle, nothing);
    if (!st)
        st = cek__opencl_queue_sync(queue, WARM_TIMEOUT_NS);
    if (st == CEK_TIMEOUT)
        st = cek__host_fail(&head->instance->host, CEK_INTERNAL, "op_create: the first launch of %s did not end",
                            step->kernel->name);
    cek__opencl_own_give(dev, st);
    if (!st) {
        pthread_mutex_lock(&dev->programs_lock);
        warm_note(step->kernel->program, step, width);
        pthread_mutex_unlock(&dev->programs_lock);
    }
    return st;
}
