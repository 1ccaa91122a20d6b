/* SPDX-License-Identifier: MIT
 *
 * fake_cublaslt.c - a cuBLASLt that computes what its descriptors say, on the fake driver's
 * streams: column-major, in double.
 *
 * It believes nothing: factors must fit, leading dimensions and alignments must hold, of a bias
 * that of the address that it was told first, which must have a type that the library takes; an
 * algorithm's first run, which loads code, is not captured. Descriptors are as large as those of
 * 13.4. Its heuristic offers an algorithm that rounds f32 operands
 * first, one that failed second, and the right one last. FAKE_CUBLASLT_RELU=max: its ReLU makes 0
 * of NaN.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common/half.h"
#include "backends/cuda/cuda.h"
#include "backends/cuda/cublaslt.h"
#include "tests/cuda/fake.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* of functions that are found by name alone */

#define SCRATCH 5000 /* bytes of workspace, not a multiple of anything */
enum { ALGO_ROUNDS = 1, ALGO_BROKEN = 2, ALGO_RIGHT = 3 };
enum { MATRIX_TYPE, MATRIX_ORDER, MATRIX_ROWS, MATRIX_COLUMNS, MATRIX_LD };
enum { MATMUL_COMPUTE = 0, MATMUL_SCALE = 1 };
enum { MATRIX_WORDS = 14, PREFERENCE_WORDS = 12 };

static void die(const char *text)
{
    fprintf(stderr, "fake cuBLASLt: %s\n", text);
    abort();
}

/* --- descriptors: attribute i is word i ------------------------------------------------------- */

FAKE_API int cublasLtCreate(lt_handle *handle)
{
    *handle = (lt_handle)malloc(1);
    return *handle ? LT_SUCCESS : LT_ALLOC_FAILED;
}

FAKE_API int cublasLtDestroy(lt_handle handle)
{
    free(handle);
    return LT_SUCCESS;
}

FAKE_API size_t cublasLtGetVersion(void)
{
    return 130002;
}

FAKE_API const char *cublasLtGetStatusString(int status)
{
    return status ? "refused" : "fine";
}

static int attribute_set(uint64_t *data, size_t words, int what, const void *value, size_t bytes)
{
    if (what < 0 || (size_t)what >= words || bytes > sizeof *data)
        return LT_INVALID_VALUE;
    data[what] = 0;
    memcpy(&data[what], value, bytes);
    return LT_SUCCESS;
}

FAKE_API int cublasLtMatmulDescInit_internal(lt_matmul *desc, size_t bytes, int compute, int scale_type)
{
    if (bytes < sizeof *desc)
        return LT_ALLOC_FAILED;
    memset(desc, 0, sizeof *desc);
    desc->data[MATMUL_COMPUTE] = (uint64_t)compute;
    desc->data[MATMUL_SCALE] = (uint64_t)scale_type;
    desc->data[LT_MATMUL_EPILOGUE] = LT_EPILOGUE_DEFAULT;
    return LT_SUCCESS;
}

FAKE_API int cublasLtMatmulDescSetAttribute(lt_matmul *desc, int what, const void *value, size_t bytes)
{
    return attribute_set(desc->data, 32, what, value, bytes);
}

FAKE_API int cublasLtMatrixLayoutInit_internal(lt_matrix *matrix, size_t bytes, int type, uint64_t rows,
                                               uint64_t columns, int64_t ld)
{
    if (bytes < MATRIX_WORDS * sizeof(uint64_t))
        return LT_ALLOC_FAILED;
    *matrix = (lt_matrix){ { (uint64_t)type, 0, rows, columns, (uint64_t)ld, 1, 0, 0 } };
    return LT_SUCCESS;
}

FAKE_API int cublasLtMatrixLayoutSetAttribute(lt_matrix *matrix, int what, const void *value, size_t bytes)
{
    return attribute_set(matrix->data, MATRIX_WORDS, what, value, bytes);
}

/* Attribute 12 is the highest: kept as words of 32 bits. */
FAKE_API int cublasLtMatmulPreferenceInit_internal(lt_preference *preference, size_t bytes)
{
    if (bytes < PREFERENCE_WORDS * sizeof(uint64_t))
        return LT_ALLOC_FAILED;
    memset(preference, 0, sizeof *preference);
    return LT_SUCCESS;
}

FAKE_API int cublasLtMatmulPreferenceSetAttribute(lt_preference *preference, int what, const void *value, size_t bytes)
{
    if (what < 0 || what > 12 || bytes > 8)
        return LT_INVALID_VALUE;
    memcpy((uint32_t *)preference->data + what, value, 4); /* what is said here is below 4 GiB */
    return LT_SUCCESS;
}

/* --- algorithms ------------------------------------------------------------------------------- */

typedef struct shape {
    uint64_t m, n, k, batch;
} shape;

static int matrix_bad(const lt_matrix *matrix)
{
    return matrix->data[MATRIX_LD] < matrix->data[MATRIX_ROWS] || !matrix->data[MATRIX_ROWS] ||
           !matrix->data[MATRIX_COLUMNS];
}

/* Whether the library takes the combination. */
static int shape_read(const lt_matmul *desc, const lt_matrix *a, const lt_matrix *b, const lt_matrix *c,
                      const lt_matrix *d, shape *s)
{
    int ta = (int)desc->data[LT_MATMUL_TRANSA], tb = (int)desc->data[LT_MATMUL_TRANSB];
    s->m = a->data[ta ? MATRIX_COLUMNS : MATRIX_ROWS];
    s->k = a->data[ta ? MATRIX_ROWS : MATRIX_COLUMNS];
    s->n = b->data[tb ? MATRIX_ROWS : MATRIX_COLUMNS];
    s->batch = d->data[LT_MATRIX_BATCH_COUNT];
    if (b->data[tb ? MATRIX_COLUMNS : MATRIX_ROWS] != s->k || d->data[MATRIX_ROWS] != s->m ||
        d->data[MATRIX_COLUMNS] != s->n)
        return LT_INVALID_VALUE;
    if (matrix_bad(a) || matrix_bad(b) || matrix_bad(d) || memcmp(c, d, sizeof *c))
        return LT_INVALID_VALUE;
    if (a->data[MATRIX_TYPE] != b->data[MATRIX_TYPE] || desc->data[MATMUL_SCALE] != LT_R_32F ||
        (d->data[MATRIX_TYPE] != LT_R_32F && d->data[MATRIX_TYPE] != a->data[MATRIX_TYPE]))
        return LT_NOT_SUPPORTED;
    if (a->data[LT_MATRIX_BATCH_COUNT] != s->batch || b->data[LT_MATRIX_BATCH_COUNT] != s->batch)
        return LT_INVALID_VALUE;
    uint64_t epilogue = desc->data[LT_MATMUL_EPILOGUE];
    if (epilogue & (LT_EPILOGUE_BIAS | LT_EPILOGUE_BGRADB)) {
        if (!desc->data[LT_MATMUL_BIAS_POINTER] || desc->data[LT_MATMUL_BIAS_DATA_TYPE] != d->data[MATRIX_TYPE])
            return LT_NOT_SUPPORTED;
        if (epilogue & LT_EPILOGUE_BGRADB &&
            (epilogue != LT_EPILOGUE_BGRADB || a->data[MATRIX_TYPE] != LT_R_32F || s->batch > 1))
            return LT_NOT_SUPPORTED;
    }
    return LT_SUCCESS;
}

/* What an address tells of how it is aligned. */
static uint64_t alignment(uint64_t address)
{
    return address & -address;
}

FAKE_API int cublasLtMatmulAlgoGetHeuristic(lt_handle handle, lt_matmul *desc, lt_matrix *a, lt_matrix *b, lt_matrix *c,
                                            lt_matrix *d, lt_preference *preference, int wanted, lt_found *found,
                                            int *count)
{
    const uint32_t *said = (const uint32_t *)preference->data;
    shape s;
    *count = 0;
    int error = handle ? shape_read(desc, a, b, c, d, &s) : LT_INVALID_VALUE;
    if (error)
        return error;
    if (said[LT_PREFERENCE_REDUCTIONS] != LT_REDUCTION_COMPUTE_TYPE)
        die("split sums might be added in another type");
    for (int i = 0; i < 3 && i < wanted; i++) {
        found[i].algo = (lt_algo){ { (uint64_t)i + ALGO_ROUNDS, said[LT_PREFERENCE_ALIGN_A], desc->data[MATMUL_COMPUTE],
                                     a->data[MATRIX_TYPE], alignment(desc->data[LT_MATMUL_BIAS_POINTER]) } };
        found[i].workspace_bytes = SCRATCH;
        found[i].status = i + ALGO_ROUNDS == ALGO_BROKEN ? LT_NOT_SUPPORTED : LT_SUCCESS;
        *count = i + 1;
    }
    return said[LT_PREFERENCE_WORKSPACE] < SCRATCH ? LT_NOT_SUPPORTED : LT_SUCCESS;
}

FAKE_API int cublasLtMatmulAlgoConfigGetAttribute(const lt_algo *algo, int what, void *value, size_t bytes,
                                                  size_t *written)
{
    const uint32_t number = what == LT_CONFIG_ID ? (uint32_t)algo->data[0] : 0;
    *written = bytes;
    memcpy(value, &number, 4);
    return LT_SUCCESS;
}

FAKE_API int cublasLtMatmulAlgoCapGetAttribute(const lt_algo *algo, int what, void *value, size_t bytes,
                                               size_t *written)
{
    const uint64_t rounds = 0x02 | 0x04 << LT_NUMERICAL_INPUT_SHIFT,
                   right = 0x01 | LT_NUMERICAL_INPUT_32F << LT_NUMERICAL_INPUT_SHIFT;
    if (what != LT_CAP_NUMERICAL_FLAGS || bytes != 8)
        return LT_INVALID_VALUE;
    *written = bytes;
    memcpy(value, algo->data[0] == ALGO_ROUNDS ? &rounds : &right, 8);
    return LT_SUCCESS;
}

/* --- the product ------------------------------------------------------------------------------ */

typedef struct product {
    lt_matmul desc;
    lt_matrix a, b, d;
    lt_algo algo;
    shape s;
    float alpha, beta;
    const unsigned char *A, *B;
    unsigned char *D;
    unsigned char *workspace;
} product;

static double load(const unsigned char *from, uint64_t type, uint64_t i)
{
    if (type == LT_R_32F)
        return ((const float *)from)[i];
    uint16_t bits = ((const uint16_t *)from)[i];
    return type == LT_R_16F ? cek__f16_to_f32(bits) : cek__bf16_to_f32(bits);
}

static void store(unsigned char *to, uint64_t type, uint64_t i, double v)
{
    if (type == LT_R_32F)
        ((float *)to)[i] = (float)v;
    else
        ((uint16_t *)to)[i] = type == LT_R_16F ? cek__f64_to_f16(v) : cek__f64_to_bf16(v);
}

/* Element (row, column) of op(matrix) of one of the batch. */
static double element(const lt_matrix *matrix, const unsigned char *from, uint64_t trans, uint64_t z, uint64_t row,
                      uint64_t column)
{
    uint64_t at = trans ? column + row * matrix->data[MATRIX_LD] : row + column * matrix->data[MATRIX_LD];
    return load(from, matrix->data[MATRIX_TYPE], z * matrix->data[LT_MATRIX_BATCH_STRIDE] + at);
}

/* What a unit for narrow types makes of an f32 factor: 10 bits of fraction, as in TF32. */
static double narrow(const product *p, double v)
{
    bool rounds = p->algo.data[0] == ALGO_ROUNDS && p->a.data[MATRIX_TYPE] == LT_R_32F && v == v;
    return rounds ? cek__bits_float((cek__float_bits((float)v) + 0x1000) & ~0x1fffu) : v;
}

static double relu(double v)
{
    const char *how = getenv("FAKE_CUBLASLT_RELU");
    if (how && !strcmp(how, "max"))
        return v > 0 ? v : 0;
    return v > 0 || v != v ? v : 0;
}

static const unsigned char *vector_of(const product *p)
{
    return (const unsigned char *)(uintptr_t)p->desc.data[LT_MATMUL_BIAS_POINTER];
}

static void element_compute(const product *p, uint64_t z, uint64_t i, uint64_t j)
{
    uint64_t epilogue = p->desc.data[LT_MATMUL_EPILOGUE],
             at = z * p->d.data[LT_MATRIX_BATCH_STRIDE] + i + j * p->d.data[MATRIX_LD];
    double sum = 0;
    for (uint64_t k = 0; k < p->s.k; k++)
        sum += narrow(p, element(&p->a, p->A, p->desc.data[LT_MATMUL_TRANSA], z, i, k)) *
               narrow(p, element(&p->b, p->B, p->desc.data[LT_MATMUL_TRANSB], z, k, j));
    sum *= (double)p->alpha;
    if (p->beta != 0)
        sum += (double)p->beta * load(p->D, p->d.data[MATRIX_TYPE], at);
    if (epilogue & LT_EPILOGUE_BIAS)
        sum += load(vector_of(p), p->desc.data[LT_MATMUL_BIAS_DATA_TYPE], i);
    if (epilogue & LT_EPILOGUE_RELU)
        sum = relu(sum);
    store(p->D, p->d.data[MATRIX_TYPE], at, sum);
}

/* BGRADB: sums of op(B) along k, one per column of D. */
static void sums_compute(const product *p)
{
    for (uint64_t j = 0; j < p->s.n; j++) {
        double sum = 0;
        for (uint64_t k = 0; k < p->s.k; k++)
            sum += element(&p->b, p->B, p->desc.data[LT_MATMUL_TRANSB], 0, k, j);
        store((unsigned char *)vector_of(p), p->desc.data[LT_MATMUL_BIAS_DATA_TYPE], j, sum);
    }
}

static void product_run(void *user)
{
    const product *p = user;
    for (uint64_t z = 0; z < p->s.batch; z++)
        for (uint64_t j = 0; j < p->s.n; j++)
            for (uint64_t i = 0; i < p->s.m; i++)
                element_compute(p, z, i, j);
    if (p->desc.data[LT_MATMUL_EPILOGUE] & LT_EPILOGUE_BGRADB)
        sums_compute(p);
    memset(p->workspace, 0xa5, SCRATCH);
}

/* The fake driver that the plugin has loaded: what it runs on a stream keeps its place among the rest. */
static void *driver_function(const char *name)
{
    char path[4096];
    const char *folder = getenv("CEKERNELS_CUDA_PATH");
    snprintf(path, sizeof path, "%s/libcuda.so.1", folder ? folder : "");
    void *driver = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (!driver)
        die("the fake driver is not there");
    return dlsym(driver, name);
}

/* The driver loads an algorithm's code at its first call. */
static void first_run_check(const lt_algo *algo)
{
    static atomic_bool ran[ALGO_RIGHT + 1][LT_R_16BF + 1];
    fake_cuda_capturing_fn *capturing;
    *(void **)&capturing = driver_function("fake_cuda_capturing");
    if (!atomic_exchange(&ran[algo->data[0]][algo->data[3]], true) && capturing())
        die("the first run of an algorithm is inside a capture");
}

FAKE_API int cublasLtMatmul(lt_handle handle, lt_matmul *desc, const void *alpha, const void *a, lt_matrix *a_layout,
                            const void *b, lt_matrix *b_layout, const void *beta, const void *c, lt_matrix *c_layout,
                            void *d, lt_matrix *d_layout, const lt_algo *algo, void *workspace, size_t workspace_bytes,
                            void *stream)
{
    product p = { .desc = *desc,
                  .a = *a_layout,
                  .b = *b_layout,
                  .d = *d_layout,
                  .algo = *algo,
                  .alpha = *(const float *)alpha,
                  .beta = *(const float *)beta,
                  .A = a,
                  .B = b,
                  .D = d,
                  .workspace = workspace };
    const uint64_t align = algo->data[1];
    if (!handle || c != d)
        die("C and D are not the same");
    int error = shape_read(desc, a_layout, b_layout, c_layout, d_layout, &p.s);
    if (error)
        return error;
    if (workspace_bytes < SCRATCH || !workspace || (uintptr_t)workspace % 256)
        die("the workspace is too small or not aligned");
    if (((uintptr_t)a | (uintptr_t)b | (uintptr_t)d) % align)
        die("an operand is not aligned as was said");
    if (algo->data[0] == ALGO_BROKEN || algo->data[2] != desc->data[MATMUL_COMPUTE] ||
        algo->data[3] != a_layout->data[MATRIX_TYPE])
        die("the algorithm is not one for this product");
    if (desc->data[LT_MATMUL_EPILOGUE] & (LT_EPILOGUE_BIAS | LT_EPILOGUE_BGRADB) &&
        desc->data[LT_MATMUL_BIAS_POINTER] % algo->data[4])
        die("the bias is not aligned as was said");
    first_run_check(algo);
    fake_cuda_call_fn *run;
    *(void **)&run = driver_function("fake_cuda_call");
    run(stream, product_run, &p, sizeof p);
    return LT_SUCCESS;
}
