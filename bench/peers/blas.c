/* blas.c - a library of matrix products as a contender: OpenBLAS, BLIS, MKL or oneDNN, opened by name.
 *
 *     blas LIBRARY        "libopenblas.so.0", "/opt/x/libmkl_rt.so.3", "libdnnl.so.2"
 *
 * Variants: "-"; of oneDNN "sgemm" and "matmul", its primitive, which is there where its headers of version 2 were when
 * this was compiled. How many threads there are and how they wait are the environment's. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined __has_include
#if __has_include(<oneapi/dnnl/dnnl.h>)
#include <oneapi/dnnl/dnnl.h>
#endif
#endif

#include "bench/peers/runner.h"

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 }; /* CBLAS's constants */
typedef void cblas_sgemm_fn(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *,
                            int);
typedef int dnnl_sgemm_fn(char, char, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *, int64_t,
                          float, float *, int64_t);

static void *library;
static cblas_sgemm_fn *cblas_sgemm;
static dnnl_sgemm_fn *onednn_sgemm;

typedef struct work {
    bool ta, tb;
    int m, n, k;
    float *a, *b, *c;
    void *matmul; /* oneDNN's primitive, with its operands */
} work;
static work works[RUNNER_SLOTS];

/* ---- oneDNN's primitive ---- */

#if defined DNNL_VERSION_MAJOR && DNNL_VERSION_MAJOR == 2

/* Its functions, found in the library under their own names. */
/* clang-format off */
#define FUNCTIONS(DO) \
    DO(engine_create) DO(stream_create) DO(stream_wait) \
    DO(memory_desc_init_by_strides) DO(matmul_desc_init) DO(primitive_desc_create) \
    DO(primitive_desc_destroy) DO(primitive_create) DO(primitive_destroy) \
    DO(primitive_execute) DO(memory_create) DO(memory_destroy)
/* clang-format on */
#define MEMBER(name) __typeof__(dnnl_##name) *name;
static struct {
    FUNCTIONS(MEMBER)
} dnnl;

typedef struct matmul {
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[3];
} matmul;

static dnnl_engine_t engine;
static dnnl_stream_t stream;

static void matmul_free(void *user)
{
    matmul *m = user;
    for (int i = 0; m && i < 3; i++)
        if (m->memory[i])
            dnnl.memory_destroy(m->memory[i]);
    if (m && m->primitive)
        dnnl.primitive_destroy(m->primitive);
    free(m);
}

static bool matmul_open(void)
{
#define FIND(name)                                                       \
    if (!(*(void **)(void *)&dnnl.name = dlsym(library, "dnnl_" #name))) \
        return false;
    FUNCTIONS(FIND)
    return !dnnl.engine_create(&engine, dnnl_cpu, 0) && !dnnl.stream_create(&stream, engine, dnnl_stream_default_flags);
}

/* NULL: it has no such product. */
static void *matmul_make(const work *w)
{
    const dnnl_dims_t dims[3] = { { w->m, w->k }, { w->k, w->n }, { w->m, w->n } };
    const dnnl_dims_t strides[3] = { { w->ta ? 1 : w->k, w->ta ? w->m : 1 },
                                     { w->tb ? 1 : w->n, w->tb ? w->k : 1 },
                                     { w->n, 1 } };
    float *const data[3] = { w->a, w->b, w->c };
    dnnl_memory_desc_t mds[3];
    dnnl_matmul_desc_t desc;
    dnnl_primitive_desc_t pd = NULL;
    matmul *m = engine ? calloc(1, sizeof *m) : NULL;
    bool good = m != NULL;
    for (int i = 0; i < 3 && good; i++)
        good = !dnnl.memory_desc_init_by_strides(&mds[i], 2, dims[i], dnnl_f32, strides[i]) &&
               !dnnl.memory_create(&m->memory[i], &mds[i], engine, data[i]);
    good = good && !dnnl.matmul_desc_init(&desc, &mds[0], &mds[1], NULL, &mds[2]) &&
           !dnnl.primitive_desc_create(&pd, &desc, NULL, engine, NULL) && !dnnl.primitive_create(&m->primitive, pd);
    if (pd)
        dnnl.primitive_desc_destroy(pd);
    if (good)
        return m;
    matmul_free(m);
    return NULL;
}

static bool matmul_run(void *user)
{
    const matmul *m = user;
    const dnnl_exec_arg_t args[3] = { { DNNL_ARG_SRC, m->memory[0] },
                                      { DNNL_ARG_WEIGHTS, m->memory[1] },
                                      { DNNL_ARG_DST, m->memory[2] } };
    return !dnnl.primitive_execute(m->primitive, stream, 3, args) && !dnnl.stream_wait(stream);
}

#else

static bool matmul_open(void)
{
    return false;
}

static void *matmul_make(const work *w)
{
    (void)w;
    return NULL;
}

static bool matmul_run(void *user)
{
    (void)user;
    return false;
}

static void matmul_free(void *user)
{
    (void)user;
}

#endif

/* ---- the runner ---- */

static bool refuse(char text[RUNNER_TEXT], const char *why)
{
    snprintf(text, RUNNER_TEXT, "%s", why);
    return false;
}

static bool prepare(uint32_t slot, const runner_problem *p, char text[RUNNER_TEXT])
{
    work *w = &works[slot];
    const uint64_t m = runner_number(p, 2), n = runner_number(p, 3), k = runner_number(p, 4);
    if (p->count != 6 || strcmp(p->words[0], "gemm") != 0 || strcmp(p->words[1], "f32") != 0 || !m || !n || !k)
        return refuse(text, "gemm f32 M N K nn|tn|nt|tt is wanted");
    const bool by_matmul = !strcmp(p->variant, "matmul");
    if (!by_matmul && strcmp(p->variant, onednn_sgemm ? "sgemm" : "-") != 0)
        return refuse(text, "no such variant");
    *w = (work){ .ta = p->words[5][0] == 't', .tb = p->words[5][1] == 't', .m = (int)m, .n = (int)n, .k = (int)k };
    w->a = runner_floats(m * k, 1);
    w->b = runner_floats(k * n, 2);
    w->c = runner_floats(m * n, 3);
    if (!w->a || !w->b || !w->c)
        return refuse(text, "no host memory");
    if (by_matmul && !(w->matmul = matmul_make(w)))
        return refuse(text, "there is no matmul of it");
    return true;
}

static bool run(uint32_t slot, uint64_t times, char text[RUNNER_TEXT])
{
    const work *w = &works[slot];
    const int lda = w->ta ? w->m : w->k, ldb = w->tb ? w->k : w->n;
    if (!w->c)
        return refuse(text, "nothing is prepared");
    for (uint64_t i = 0; i < times; i++) {
        if (w->matmul && !matmul_run(w->matmul))
            return refuse(text, "matmul failed");
        if (!w->matmul && onednn_sgemm &&
            onednn_sgemm(w->ta ? 'T' : 'N', w->tb ? 'T' : 'N', w->m, w->n, w->k, 1, w->a, lda, w->b, ldb, 0, w->c,
                         w->n))
            return refuse(text, "dnnl_sgemm failed");
        if (!w->matmul && cblas_sgemm)
            cblas_sgemm(ROW_MAJOR, w->ta ? TRANS : NO_TRANS, w->tb ? TRANS : NO_TRANS, w->m, w->n, w->k, 1, w->a, lda,
                        w->b, ldb, 0, w->c, w->n);
    }
    return true;
}

static void drop(uint32_t slot)
{
    work *w = &works[slot];
    matmul_free(w->matmul);
    free(w->a), free(w->b), free(w->c);
    *w = (work){ .a = NULL };
}

/* Each library has its own way to say which it is. */
static void version_write(const char *file, char out[RUNNER_TEXT])
{
    const char *(*text)(void);
    void (*fill)(char *, int);
    snprintf(out, RUNNER_TEXT, "%.200s", file);
    if ((*(void **)(void *)&fill = dlsym(library, "MKL_Get_Version_String"))) {
        memset(out, 0, RUNNER_TEXT);
        fill(out, RUNNER_TEXT - 1);
    } else if ((*(void **)(void *)&text = dlsym(library, "openblas_get_config"))) {
        const char *(*core)(void) = NULL;
        *(void **)(void *)&core = dlsym(library, "openblas_get_corename");
        snprintf(out, RUNNER_TEXT, "%.180s, kernels for %.40s", text(), core ? core() : "?");
    } else if ((*(void **)(void *)&text = dlsym(library, "bli_info_get_version_str"))) {
        snprintf(out, RUNNER_TEXT, "BLIS %.200s", text());
    }
#if defined DNNL_VERSION_MAJOR
    __typeof__(dnnl_version) *version;
    if ((*(void **)(void *)&version = dlsym(library, "dnnl_version")))
        snprintf(out, RUNNER_TEXT, "oneDNN %d.%d.%d", version()->major, version()->minor, version()->patch);
#endif
}

int main(int argc, char **argv)
{
    char version[RUNNER_TEXT];
    if (argc != 2) {
        fprintf(stderr, "usage: blas LIBRARY\n");
        return 2;
    }
    if (!(library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)))
        return runner_absent(dlerror());
    *(void **)(void *)&cblas_sgemm = dlsym(library, "cblas_sgemm");
    *(void **)(void *)&onednn_sgemm = dlsym(library, "dnnl_sgemm");
    if (!cblas_sgemm && !onednn_sgemm)
        return runner_absent("has neither cblas_sgemm nor dnnl_sgemm");
    version_write(argv[1], version);
    if (onednn_sgemm && !matmul_open())
        strncat(version, ", without matmul", sizeof version - strlen(version) - 1);
    return runner_serve(version, &(runner){ prepare, run, drop });
}
