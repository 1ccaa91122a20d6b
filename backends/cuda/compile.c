/* SPDX-License-Identifier: MIT
 *
 * compile.c - NVRTC, NVIDIA's compiler as a library, where a machine has it: a toolkit or a Python wheel.
 *
 * It targets the device's own architecture; one that is older than the device makes PTX for the
 * newest that it knows, which the driver translates. A compiler counts as one once it has compiled
 * something: a library that loads may lack what it opens while it works.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cuda.h"

typedef uint32_t nvrtc_result;
typedef struct nvrtc_program_object *nvrtc_program;

#define NVRTC_FUNCTIONS(ROW)                                                                                 \
    ROW(nvrtcVersion, nvrtc_result, (int *major, int *minor))                                                \
    ROW(nvrtcGetErrorString, const char *, (nvrtc_result error))                                             \
    ROW(nvrtcGetNumSupportedArchs, nvrtc_result, (int *count))                                               \
    ROW(nvrtcGetSupportedArchs, nvrtc_result, (int *archs))                                                  \
    ROW(nvrtcCreateProgram, nvrtc_result,                                                                    \
        (nvrtc_program * program, const char *text, const char *name, int count, const char *const *headers, \
         const char *const *names))                                                                          \
    ROW(nvrtcDestroyProgram, nvrtc_result, (nvrtc_program * program))                                        \
    ROW(nvrtcCompileProgram, nvrtc_result, (nvrtc_program program, int count, const char *const *options))   \
    ROW(nvrtcGetProgramLogSize, nvrtc_result, (nvrtc_program program, size_t * bytes))                       \
    ROW(nvrtcGetProgramLog, nvrtc_result, (nvrtc_program program, char *log))                                \
    ROW(nvrtcGetCUBINSize, nvrtc_result, (nvrtc_program program, size_t * bytes))                            \
    ROW(nvrtcGetCUBIN, nvrtc_result, (nvrtc_program program, char *image))                                   \
    ROW(nvrtcGetPTXSize, nvrtc_result, (nvrtc_program program, size_t * bytes))                              \
    ROW(nvrtcGetPTX, nvrtc_result, (nvrtc_program program, char *image))

#define ARCHS_MAX 64

struct cuda_compiler {
#define MEMBER(NAME, RESULT, PARAMETERS) RESULT(*NAME) PARAMETERS;
    NVRTC_FUNCTIONS(MEMBER)
#undef MEMBER
    int major, minor;
    int arch_count, archs[ARCHS_MAX]; /* 90 is sm_90 */
};

/* --- one compilation --------------------------------------------------------------------------- */

/* Whatever the answer, *program is to be destroyed where it is not NULL. */
static nvrtc_result program_compile(const cuda_compiler *compiler, const char *name, const char *text, const char *arch,
                                    const char *fmad, nvrtc_program *program)
{
    const char *const options[] = { arch, fmad, "--std=c++14" };
    *program = NULL;
    nvrtc_result error = compiler->nvrtcCreateProgram(program, text, name, 0, NULL, NULL);
    return error ? error : compiler->nvrtcCompileProgram(*program, sizeof options / sizeof *options, options);
}

static void program_free(const cuda_compiler *compiler, nvrtc_program program)
{
    if (program)
        compiler->nvrtcDestroyProgram(&program);
}

/* What it said, in one line, malloc'ed; NULL where there is nothing, or no memory. */
static char *log_read(const cuda_compiler *compiler, nvrtc_program program)
{
    size_t bytes = 0;
    if (!program || compiler->nvrtcGetProgramLogSize(program, &bytes))
        return NULL;
    char *log = calloc(1, bytes + 1);
    if (log)
        compiler->nvrtcGetProgramLog(program, log);
    for (char *at = log; at && *at; at++)
        if (*at == '\n' || *at == '\r')
            *at = ' ';
    return log;
}

/* --- load ------------------------------------------------------------------------------------- */

/* Everything of one library, or nothing. */
static bool functions_find(cuda_compiler *compiler, void *library, char *text, size_t cap)
{
#define FIND(NAME, RESULT, PARAMETERS)                                     \
    if (!(*(void **)&compiler->NAME = dlsym(library, #NAME))) {            \
        snprintf(text, cap, "no NVRTC: it is too old, without %s", #NAME); \
        return false;                                                      \
    }
    NVRTC_FUNCTIONS(FIND)
#undef FIND
    if (compiler->nvrtcVersion(&compiler->major, &compiler->minor) ||
        compiler->nvrtcGetNumSupportedArchs(&compiler->arch_count) || compiler->arch_count < 1 ||
        compiler->arch_count > ARCHS_MAX || compiler->nvrtcGetSupportedArchs(compiler->archs)) {
        snprintf(text, cap, "no NVRTC: it does not tell what it compiles for");
        return false;
    }
    return true;
}

/* Whether it compiles anything. */
static bool trial_passes(const cek_host *host, const cuda_compiler *compiler, const char *path, char *text, size_t cap)
{
    static const char source[] = "extern \"C\" __global__ void trial(float *x)\n{\n    x[threadIdx.x] = 1.0f;\n}\n";
    char arch[64];
    nvrtc_program program;
    snprintf(arch, sizeof arch, "--gpu-architecture=sm_%d", compiler->archs[compiler->arch_count - 1]);
    nvrtc_result error = program_compile(compiler, "trial", source, arch, "--fmad=true", &program);
    if (error) {
        char *log = log_read(compiler, program);
        snprintf(text, cap, "no NVRTC: it compiles nothing: %.200s (%.255s)",
                 log && *log ? log : compiler->nvrtcGetErrorString(error), path);
        cek__host_log(host, CEK_LOG_WARN, "%s", text);
        free(log);
    }
    program_free(compiler, program);
    return !error;
}

/* Of `library`, which lies at `path`. NULL: it is of no use, and `text` says why. */
static cuda_compiler *compiler_make(const cek_host *host, void *library, const char *path, int driver, char *text,
                                    size_t cap)
{
    char builtins[64];
    cuda_compiler *compiler = calloc(1, sizeof *compiler);
    if (!compiler || !functions_find(compiler, library, text, cap))
        goto out;
    if (compiler->major > driver / 1000) { /* its name did not say so */
        snprintf(text, cap, "no NVRTC: %d.%d is too new for a driver of CUDA %d.%d", compiler->major, compiler->minor,
                 driver / 1000, driver % 1000 / 10);
        goto out;
    }
    /* It opens this by name alone, whatever folder it came from itself; what is loaded by then has that name. */
    snprintf(builtins, sizeof builtins, "libnvrtc-builtins.so.%d.%d", compiler->major, compiler->minor);
    cek__cuda_library_beside(library, builtins);
    if (!trial_passes(host, compiler, path, text, cap))
        goto out;
    snprintf(text, cap, "NVRTC %d.%d", compiler->major, compiler->minor);
    return compiler;
out:
    free(compiler);
    return NULL;
}

static cuda_compiler *compiler_load(const cek_host *host, int driver, char *text, size_t cap)
{
    static const char *const names[] = { "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so", NULL };
    char path[256];
    const char *off = cek__host_option(host, "cuda_nvrtc");
    snprintf(text, cap, "no NVRTC: no memory for it");
    if (off && !strcmp(off, "off")) {
        snprintf(text, cap, "no NVRTC: switched off");
        return NULL;
    }
    void *library = cek__cuda_library_open(host, cek__cuda_library_names(names, driver), path, sizeof path);
    if (!library) {
        snprintf(text, cap, "no NVRTC: %s", path);
        return NULL;
    }
    cuda_compiler *compiler = compiler_make(host, library, path, driver, text, cap);
    if (compiler)
        cek__host_log(host, CEK_LOG_INFO, "%s: %s", path, text);
    return compiler;
}

cuda_compiler *cek__cuda_compiler(cuda_instance *instance)
{
    pthread_mutex_lock(&instance->lock);
    if (!instance->compiler_sought) {
        instance->compiler = compiler_load(&instance->head.host, instance->version, instance->compiler_text,
                                           sizeof instance->compiler_text);
        instance->compiler_sought = true;
    }
    cuda_compiler *compiler = instance->compiler;
    pthread_mutex_unlock(&instance->lock);
    return compiler;
}

const char *cek__cuda_compiler_text(cuda_instance *instance)
{
    (void)cek__cuda_compiler(instance);
    return instance->compiler_text; /* never changes again */
}

void cek__cuda_compiler_free(cuda_compiler *compiler)
{
    free(compiler);
}

/* --- compile ---------------------------------------------------------------------------------- */

/* The newest architecture that both know. *exact: it is the device's own. 0: the device is older than all. */
static int arch_choose(const cuda_compiler *compiler, int device, bool *exact)
{
    int best = 0;
    for (int i = 0; i < compiler->arch_count; i++)
        if (compiler->archs[i] <= device && compiler->archs[i] > best)
            best = compiler->archs[i];
    *exact = best == device;
    return best;
}

static cek_status compile_fail(cuda_dev *dev, nvrtc_program program, const char *source, nvrtc_result error)
{
    const cuda_compiler *compiler = cek__cuda_instance(&dev->head)->compiler;
    const cek_host *host = &dev->head.instance->host;
    char *log = log_read(compiler, program);
    if (log)
        cek__host_log(host, CEK_LOG_ERROR, "%s does not compile: %s", source, log);
    cek_status st = cek__host_fail(host, error == 1 ? CEK_OUT_OF_MEMORY : CEK_INTERNAL,
                                   "%s does not compile: %s: %.600s", source, compiler->nvrtcGetErrorString(error),
                                   log ? log : "");
    free(log);
    return st;
}

static cek_status image_take(cuda_dev *dev, nvrtc_program program, bool exact, void **image, uint64_t *bytes)
{
    const cuda_compiler *compiler = cek__cuda_instance(&dev->head)->compiler;
    const cek_host *host = &dev->head.instance->host;
    size_t size = 0;
    nvrtc_result error = exact ? compiler->nvrtcGetCUBINSize(program, &size)
                               : compiler->nvrtcGetPTXSize(program, &size);
    char *made = error ? NULL : malloc(size + 1);
    if (!error && !made)
        return cek__host_fail(host, CEK_OUT_OF_MEMORY, "op_create: no memory for %zu bytes of machine code", size);
    if (!error)
        error = exact ? compiler->nvrtcGetCUBIN(program, made) : compiler->nvrtcGetPTX(program, made);
    if (error) {
        free(made);
        return cek__host_fail(host, CEK_INTERNAL, "op_create: NVRTC: %s", compiler->nvrtcGetErrorString(error));
    }
    made[size] = 0;
    *image = made;
    *bytes = size;
    return CEK_OK;
}

cek_status cek__cuda_compile(cuda_dev *dev, const char *source, const char *text, const char *fmad, void **image,
                             uint64_t *bytes)
{
    const cuda_compiler *compiler = cek__cuda_compiler(cek__cuda_instance(&dev->head));
    char arch[64];
    bool exact;
    int number = arch_choose(compiler, 10 * dev->major + dev->minor, &exact);
    nvrtc_program program;
    if (!number)
        return cek__host_fail(&dev->head.instance->host, CEK_UNAVAILABLE,
                              "op_create: NVRTC %d.%d does not know sm_%d%d any more", compiler->major, compiler->minor,
                              dev->major, dev->minor);
    snprintf(arch, sizeof arch, "--gpu-architecture=%s_%d", exact ? "sm" : "compute", number);
    nvrtc_result error = program_compile(compiler, source, text, arch, fmad, &program);
    cek_status st = error ? compile_fail(dev, program, source, error) : image_take(dev, program, exact, image, bytes);
    program_free(compiler, program);
    return st;
}
