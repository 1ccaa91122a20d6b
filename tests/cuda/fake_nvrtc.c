/* SPDX-License-Identifier: MIT
 *
 * fake_nvrtc.c - NVRTC's functions over the host's C++ compiler. FAKE_NVRTC_ARCHS="75 80" says what it compiles for.
 * As the real one it compiles nothing where libnvrtc-builtins is not found by its name alone: no folder of the loader's
 * has the fake one (fake_builtins.c), so whoever compiles has loaded it before.
 */
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/fake.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* of functions that are found by name alone */

enum {
    SUCCESS = 0,
    OUT_OF_MEMORY = 1,
    INVALID_INPUT = 3,
    INVALID_PROGRAM = 4,
    INVALID_OPTION = 5,
    COMPILATION = 6,
    BUILTINS = 7
};
#define BUILTINS_NAME "libnvrtc-builtins.so.13.0"

typedef struct program {
    char *text, *image;
    uint64_t bytes;
    char log[8192];
    bool ptx;
} program;

static int archs_read(int *to)
{
    const char *named = getenv("FAKE_NVRTC_ARCHS");
    char copy[256];
    int count = 0;
    snprintf(copy, sizeof copy, "%s", named ? named : "75 80 86 89 90 100 120");
    for (char *rest = copy, *word; (word = strtok_r(rest, " ", &rest));)
        to[count++] = atoi(word);
    return count;
}

FAKE_API uint32_t nvrtcVersion(int *major, int *minor)
{
    *major = 13, *minor = 0;
    return SUCCESS;
}

FAKE_API const char *nvrtcGetErrorString(uint32_t error)
{
    return error == COMPILATION      ? "NVRTC_ERROR_COMPILATION"
           : error == INVALID_OPTION ? "NVRTC_ERROR_INVALID_OPTION"
           : error == BUILTINS       ? "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE"
                                     : "NVRTC_ERROR";
}

FAKE_API uint32_t nvrtcGetNumSupportedArchs(int *count)
{
    int archs[64];
    *count = archs_read(archs);
    return SUCCESS;
}

FAKE_API uint32_t nvrtcGetSupportedArchs(int *archs)
{
    archs_read(archs);
    return SUCCESS;
}

FAKE_API uint32_t nvrtcCreateProgram(program **made, const char *text, const char *name, int count,
                                     const char *const *headers, const char *const *names)
{
    (void)name, (void)headers, (void)names;
    if (!text || count)
        return INVALID_INPUT;
    *made = calloc(1, sizeof **made);
    (*made)->text = strdup(text);
    return SUCCESS;
}

FAKE_API uint32_t nvrtcDestroyProgram(program **of)
{
    free((*of)->text);
    free((*of)->image);
    free(*of);
    *of = NULL;
    return SUCCESS;
}

/* Of one loaded library: whether it is the one. */
static int is_builtins(struct dl_phdr_info *of, size_t size, void *user)
{
    const char *slash = strrchr(of->dlpi_name, '/');
    (void)size, (void)user;
    return !strcmp(slash ? slash + 1 : of->dlpi_name, BUILTINS_NAME);
}

/* What was compiled in this process stays: tests begin again and again. Malloc'ed, as fake_compile's. */
static void *compiled(const char *text, uint64_t *bytes, char *log, size_t cap)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct kept {
        struct kept *next;
        char *text;
        void *object;
        uint64_t bytes;
    } * all;
    pthread_mutex_lock(&lock);
    struct kept *at = all;
    while (at && strcmp(at->text, text) != 0)
        at = at->next;
    void *object = at ? NULL : fake_compile(text, "", bytes, log, cap);
    if (object) {
        at = malloc(sizeof *at);
        *at = (struct kept){ all, strdup(text), object, *bytes };
        all = at;
    }
    void *copy = at ? malloc(at->bytes) : NULL;
    if (copy) {
        memcpy(copy, at->object, at->bytes);
        *bytes = at->bytes;
    }
    pthread_mutex_unlock(&lock);
    return copy;
}

FAKE_API uint32_t nvrtcCompileProgram(program *of, int count, const char *const *options)
{
    fake_image head = { .fmad = -1 };
    int archs[64], known = archs_read(archs);
    for (int i = 0; i < count; i++) {
        if (sscanf(options[i], "--gpu-architecture=sm_%d", &head.arch) == 1)
            of->ptx = false;
        else if (sscanf(options[i], "--gpu-architecture=compute_%d", &head.arch) == 1)
            of->ptx = true;
        else if (!strcmp(options[i], "--fmad=true") || !strcmp(options[i], "--fmad=false"))
            head.fmad = options[i][7] == 't';
        else if (strcmp(options[i], "--std=c++14"))
            return INVALID_OPTION;
    }
    if (!dl_iterate_phdr(is_builtins, NULL)) {
        snprintf(of->log, sizeof of->log, "nvrtc: error: failed to open " BUILTINS_NAME ".\n");
        return BUILTINS;
    }
    bool supported = false;
    for (int i = 0; i < known; i++)
        supported |= archs[i] == head.arch;
    if (!supported || head.fmad < 0)
        return INVALID_OPTION;
    if (strstr(of->text, "KERNEL void pointwise") && head.fmad)
        fake_die("a chain of instructions compiled with fused multiply-adds");
    void *object = compiled(of->text, &head.bytes, of->log, sizeof of->log);
    if (!object)
        return COMPILATION;
    memcpy(head.magic, of->ptx ? "FAKEPTX" : "FAKECUBN", sizeof head.magic);
    of->image = malloc(sizeof head + head.bytes);
    memcpy(of->image, &head, sizeof head);
    memcpy(of->image + sizeof head, object, head.bytes);
    of->bytes = sizeof head + head.bytes;
    free(object);
    return SUCCESS;
}

FAKE_API uint32_t nvrtcGetProgramLogSize(program *of, size_t *bytes)
{
    *bytes = strlen(of->log) + 1;
    return SUCCESS;
}

FAKE_API uint32_t nvrtcGetProgramLog(program *of, char *log)
{
    memcpy(log, of->log, strlen(of->log) + 1);
    return SUCCESS;
}

static uint32_t size_get(program *of, bool ptx, size_t *bytes)
{
    *bytes = of->ptx == ptx ? of->bytes : 0;
    return of->image && of->ptx == ptx ? SUCCESS : INVALID_PROGRAM;
}

static uint32_t image_get(program *of, bool ptx, char *image)
{
    if (!of->image || of->ptx != ptx)
        return INVALID_PROGRAM;
    memcpy(image, of->image, of->bytes);
    return SUCCESS;
}

/* clang-format off */
FAKE_API uint32_t nvrtcGetCUBINSize(program *of, size_t *bytes) { return size_get(of, false, bytes); }
FAKE_API uint32_t nvrtcGetCUBIN(program *of, char *image) { return image_get(of, false, image); }
FAKE_API uint32_t nvrtcGetPTXSize(program *of, size_t *bytes) { return size_get(of, true, bytes); }
FAKE_API uint32_t nvrtcGetPTX(program *of, char *image) { return image_get(of, true, image); }
/* clang-format on */
