/* nvrtc.c LIBRARY ARCH [loops] - compiles with NVIDIA's own NVRTC what standard input names, a variant per line:
 * a source of kernels/gpu, then definitions NAME=VALUE, as kernels/images.sh writes them. For sm_N to machine code,
 * for compute_N to PTX. Prints what fails, and how many did not; with "loops" also how many each kernel has in PTX. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/gpu/gpu.h"

#define GET(RESULT, NAME, PARAMETERS) RESULT(*NAME) PARAMETERS = (RESULT(*) PARAMETERS)find(library, #NAME)
#define CHAIN                                                                                                     \
    "#define INPUTS(X) X(0) X(1)\n"                                                                               \
    "#define CHAIN const cek_f32 v0 = IN(0); const cek_f32 v1 = IN(1); const cek_f32 v2 = COUNTS ? 1.0f : 0.0f; " \
    "const cek_f32 v3 = pow(erf(v0), log1p(v1)) - expm1(floor(v1)) * pw_sign(sin(v0)) / cos(v1); "                \
    "value = v2 != 0.0f ? act_gelu(v0) * AS_F32(0x3f000000u) + pw_max(v0, v1) : v3;\n"

static void *find(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        printf("no %s\n", name);
        exit(2);
    }
    return found;
}

/* The text of a variant, or NULL: definitions, the dialect, the source. */
static char *variant_text(char *line, const char **source)
{
    char *rest = line, *text = calloc(1, 1 << 20);
    *source = strtok_r(line, " \n", &rest);
    if (!*source || !text || !cek__gpu_source_text(*source))
        return NULL;
    size_t at = 0, cap = 1 << 20;
    for (char *word; (word = strtok_r(NULL, " \n", &rest));) {
        char *value = strchr(word, '=');
        if (!value)
            return NULL;
        *value = 0;
        at += (size_t)snprintf(text + at, cap - at, "#define %s %s\n", word, value + 1);
    }
    at += (size_t)snprintf(text + at, cap - at, "%s%s%s%s", strstr(text, "OUT_TYPE") ? CHAIN : "",
                           cek__gpu_source_text("dialect.h"), cek__gpu_source_text("args.h"),
                           cek__gpu_source_text(*source));
    return at < cap ? text : NULL;
}

/* A line for each kernel of a program in PTX: its name and how many branches go back. */
static void loops_print(char *ptx)
{
    char labels[256][32], kernel[128] = "", rest[64], *next = NULL;
    unsigned seen = 0, loops = 0;
    for (char *line = strtok_r(ptx, "\n", &next); line; line = strtok_r(NULL, "\n", &next)) {
        char *branch = strstr(line, "bra");
        char label[32] = "";
        if (strstr(line, ".entry ")) {
            sscanf(strstr(line, ".entry "), ".entry %127[a-z_0-9]", kernel);
            seen = loops = 0;
        } else if (sscanf(line, "$%31[A-Za-z_0-9]%1[:]", label, rest) == 2 && seen < 256) {
            snprintf(labels[seen++], sizeof *labels, "%s", label);
        } else if (branch && (branch = strchr(branch, '$')) && sscanf(branch, "$%31[A-Za-z_0-9]", label) == 1) {
            for (unsigned i = 0; i < seen; i++)
                loops += !strcmp(labels[i], label);
        } else if (line[0] == '}' && kernel[0]) {
            printf("%s %u\n", kernel, loops);
            kernel[0] = 0;
        }
    }
}

int main(int argc, char **argv)
{
    char line[512], shown[512], arch[64], log[4096];
    unsigned good = 0, all = 0;
    const int loops = argc == 4 && !strcmp(argv[3], "loops");
    void *library = argc == 3 + loops ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) {
        printf("%s\n", argc == 3 + loops ? dlerror() : "nvrtc LIBRARY ARCH [loops]");
        return 2;
    }
    GET(int, nvrtcCreateProgram, (void **, const char *, const char *, int, const char *const *, const char *const *));
    GET(int, nvrtcCompileProgram, (void *, int, const char *const *));
    GET(int, nvrtcGetProgramLogSize, (void *, size_t *));
    GET(int, nvrtcGetProgramLog, (void *, char *));
    GET(int, nvrtcGetPTXSize, (void *, size_t *));
    GET(int, nvrtcGetPTX, (void *, char *));
    GET(int, nvrtcDestroyProgram, (void **));
    snprintf(arch, sizeof arch, "--gpu-architecture=%s", argv[2]);
    const char *const options[] = { arch, "--fmad=true", "--std=c++14" }; /* as backends/cuda/compile.c */
    while (fgets(line, sizeof line, stdin)) {
        const char *source;
        void *program = NULL;
        size_t bytes = 0;
        snprintf(shown, sizeof shown, "%s", line);
        char *text = variant_text(line, &source);
        all++;
        int error = text ? nvrtcCreateProgram(&program, text, source, 0, NULL, NULL) : 1;
        error = error ? error : nvrtcCompileProgram(program, 3, options);
        good += !error;
        if (error && program && !nvrtcGetProgramLogSize(program, &bytes) && bytes < sizeof log &&
            !nvrtcGetProgramLog(program, log))
            printf("%s%s\n", shown, log);
        else if (error)
            printf("%sdoes not compile: %d\n", shown, error);
        if (!error && loops && !nvrtcGetPTXSize(program, &bytes)) {
            char *ptx = malloc(bytes);
            if (ptx && !nvrtcGetPTX(program, ptx))
                loops_print(ptx);
            free(ptx);
        }
        if (program)
            nvrtcDestroyProgram(&program);
        free(text);
    }
    printf("%u of %u variants compile for %s\n", good, all, argv[2]);
    return good == all && all ? 0 : 1;
}
