/* SPDX-License-Identifier: MIT
 *
 * fake_module.c - the fake driver's modules and kernels, and graphs of them.
 *
 * FAKE_CUDA_KERNELS: the folder of kernels/cuda in the build, whose .cu files stand for the machine code beside them.
 */
#include <dirent.h>
#include <stdio.h>

#include "tests/cuda/fake_cuda.h"

/* --- modules and kernels ---------------------------------------------------------------------- */

static bool same_bytes(const char *path, const void *image)
{
    unsigned char part[4096];
    const unsigned char *at = image;
    FILE *file = fopen(path, "rb");
    bool same = file != NULL;
    size_t got;
    while (same && (got = fread(part, 1, sizeof part, file))) {
        same = !memcmp(part, at, got);
        at += got;
    }
    if (file)
        fclose(file);
    return same;
}

/* nvcc's machine code: the file of the build that holds the same, and its source. NULL: none. */
static void *object_of(const void *image, uint64_t *bytes)
{
    const char *folder = getenv("FAKE_CUDA_KERNELS"), *sources = getenv("FAKE_CUDA_SOURCES");
    DIR *open = folder ? opendir(folder) : NULL;
    char path[1024], log[4096];
    void *object = NULL;
    for (struct dirent *entry; open && !object && (entry = readdir(open));) {
        size_t length = strlen(entry->d_name);
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (length < 8 || strcmp(entry->d_name + length - 7, ".fatbin") || !same_bytes(path, image))
            continue;
        strcpy(strrchr(path, '.'), ".cu");
        char text[1100];
        snprintf(text, sizeof text, "#include \"%s\"\n", path);
        object = fake_compile(text, sources ? sources : "", bytes, log, sizeof log);
        if (!object)
            fake_die("%s: %s", path, log);
    }
    if (open)
        closedir(open);
    return object;
}

CUresult fake_cuModuleLoadData(CUmodule *module, const void *image)
{
    CUcontext context;
    ENTER(cuModuleLoadData, &context);
    NO_CAPTURE();
    const fake_image *head = image;
    int own_arch = (int)number("FAKE_CUDA_SM", 90);
    uint64_t bytes = 0;
    void *object = NULL;
    if (!memcmp(head->magic, "FAKECUBN", 8)) {
        if (head->arch / 10 != own_arch / 10 || head->arch > own_arch)
            return CUDA_ERROR_NO_BINARY_FOR_GPU;
    } else if (!memcmp(head->magic, "FAKEPTX", 8)) {
        if (head->arch > own_arch)
            return CUDA_ERROR_NO_BINARY_FOR_GPU;
    } else if (*(const uint32_t *)image == 0xba55ed50u) {
        object = object_of(image, &bytes);
        if (!object || own_arch < 75)
            return free(object), CUDA_ERROR_NO_BINARY_FOR_GPU;
    } else {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    CUmodule of = calloc(1, sizeof *of);
    of->context = context;
    of->module = object ? fake_module_load(object, bytes) : fake_module_load(head + 1, head->bytes);
    free(object);
    if (!of->module) {
        free(of);
        return CUDA_ERROR_INVALID_IMAGE;
    }
    made(context, 1);
    *module = of;
    return CUDA_SUCCESS;
}

CUresult fake_cuModuleUnload(CUmodule module)
{
    CUcontext context;
    ENTER(cuModuleUnload, &context);
    NO_CAPTURE();
    own("a module", module->context, context);
    idle_wait(context);
    while (module->functions) {
        CUfunction next = module->functions->next;
        free(module->functions);
        module->functions = next;
    }
    fake_module_free(module->module);
    free(module);
    made(context, -1);
    return CUDA_SUCCESS;
}

CUresult fake_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    CUcontext context;
    ENTER(cuModuleGetFunction, &context);
    own("a module", module->context, context);
    fake_kernel *kernel = fake_module_kernel(module->module, name);
    if (!kernel)
        return ERROR_NOT_FOUND;
    CUfunction of = calloc(1, sizeof *of);
    *of = (struct CUfunc_st){ module, kernel, module->functions };
    for (CUfunction at = module->functions; at; at = at->next)
        if (at->kernel == kernel) {
            free(of);
            *function = at; /* the same handle each time, as the driver's */
            return CUDA_SUCCESS;
        }
    module->functions = of;
    *function = of;
    return CUDA_SUCCESS;
}

CUresult fake_cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                             unsigned int block_x, unsigned int block_y, unsigned int block_z,
                             unsigned int shared_bytes, CUstream stream, void **parameters, void **extra)
{
    CUcontext context;
    ENTER(cuLaunchKernel, &context);
    fake_kernel *kernel = function->kernel;
    own("a module", function->module->context, context);
    if (!grid_x || grid_x > INT32_MAX || !grid_y || grid_y > 65535 || !grid_z || grid_z > 65535 || !block_x ||
        !block_y || !block_z || block_x > 1024 || block_y > 1024 || block_z > 64 ||
        (uint64_t)block_x * block_y * block_z > 1024 || shared_bytes || extra)
        return ERROR_INVALID_VALUE;
    if (stream->capture && !kernel->launched)
        fake_die("%s: captured, and no launch of it has ended yet", kernel->name);
    uint64_t bytes = 0;
    for (unsigned i = 0; i < kernel->parameter_count; i++)
        bytes += (kernel->sizes[i] + 15) & ~(uint64_t)15;
    if (bytes > 4096)
        fake_die("%s: %llu bytes of parameters", kernel->name, (unsigned long long)bytes);
    unsigned char *copy = aligned_alloc(16, bytes + 16), *at = copy;
    for (unsigned i = 0; i < kernel->parameter_count; i++) {
        memcpy(at, parameters[i], kernel->sizes[i]);
        at += (kernel->sizes[i] + 15) & ~(uint64_t)15;
    }
    enqueue(stream, context,
            (work){ .kind = KERNEL,
                    .kernel = kernel,
                    .grid = { grid_x, grid_y, grid_z },
                    .block = { block_x, block_y, block_z },
                    .parameters = copy });
    return CUDA_SUCCESS;
}

/* --- graphs ----------------------------------------------------------------------------------- */

CUresult fake_cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode)
{
    CUcontext context;
    ENTER(cuStreamBeginCapture, &context);
    own("a stream", stream->context, context);
    if (mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL || thread.capturing || stream->capture || stream->busy)
        return ERROR_INVALID_VALUE;
    stream->capture = calloc(1, sizeof *stream->capture);
    stream->capture->context = context;
    stream->capture->end = &stream->capture->first;
    stream->capture_broken = false;
    thread.capturing = stream;
    made(context, 1);
    return CUDA_SUCCESS;
}

CUresult fake_cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    CUcontext context;
    uint32_t error = enter(CALL_cuStreamEndCapture, &context);
    if (!stream->capture || thread.capturing != stream)
        fake_die("cuStreamEndCapture: not in the thread and stream that began");
    *graph = stream->capture;
    stream->capture = NULL;
    thread.capturing = NULL;
    if (error || stream->capture_broken) {
        (void)fake_cuGraphDestroy(*graph);
        *graph = NULL;
    }
    return error ? error : stream->capture_broken ? ERROR_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

CUresult fake_cuGraphDestroy(CUgraph graph)
{
    CUcontext context;
    ENTER(cuGraphDestroy, &context);
    while (graph->first) {
        work *next = graph->first->next;
        work_free(graph->first);
        graph->first = next;
    }
    free(graph);
    made(context, -1);
    return CUDA_SUCCESS;
}

CUresult fake_cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    CUcontext context;
    ENTER(cuGraphInstantiateWithFlags, &context);
    if (flags)
        return ERROR_INVALID_VALUE;
    *exec = calloc(1, sizeof **exec);
    (*exec)->context = context;
    (*exec)->users = 1;
    (*exec)->first = graph->first; /* as far as anyone can tell, a copy */
    graph->first = NULL;
    made(context, 1);
    return CUDA_SUCCESS;
}

CUresult fake_cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    CUcontext context;
    ENTER(cuGraphLaunch, &context);
    own("a graph", exec->context, context);
    pthread_mutex_lock(&lock);
    exec->users++;
    pthread_mutex_unlock(&lock);
    enqueue(stream, context, (work){ .kind = GRAPH, .graph = exec });
    return CUDA_SUCCESS;
}

CUresult fake_cuGraphExecDestroy(CUgraphExec exec)
{
    CUcontext context;
    ENTER(cuGraphExecDestroy, &context);
    own("a graph", exec->context, context);
    pthread_mutex_lock(&lock);
    work *handle = calloc(1, sizeof *handle);
    handle->graph = exec;
    work_free(handle);
    pthread_mutex_unlock(&lock);
    made(context, -1);
    return CUDA_SUCCESS;
}
