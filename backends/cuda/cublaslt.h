/* SPDX-License-Identifier: MIT
 *
 * cublaslt.h - the part of NVIDIA's cuBLASLt that is used here, declared by hand, under names of
 * our own: the plugin builds where no toolkit is. tests/cuda/provider_declarations.c holds it
 * against NVIDIA's headers where they are.
 */
#ifndef CEK_BACKENDS_CUDA_CUBLASLT_H
#define CEK_BACKENDS_CUDA_CUBLASLT_H

#include <stddef.h>
#include <stdint.h>

/* clang-format off */
typedef struct lt_context *lt_handle;
/* Filled in by the library, copied as they are; told how large they are, it uses what it needs: 13.4 more than 13.0. */
typedef struct lt_matrix { uint64_t data[16]; } lt_matrix;
typedef struct lt_matmul { uint64_t data[32]; } lt_matmul;
typedef struct lt_preference { uint64_t data[16]; } lt_preference;
typedef struct lt_algo { uint64_t data[8]; } lt_algo;
typedef struct lt_found {
    lt_algo algo;
    size_t workspace_bytes;
    int status;
    float waves;
    int reserved[4];
} lt_found;
/* clang-format on */

/* clang-format off */
enum { LT_SUCCESS = 0, LT_ALLOC_FAILED = 3, LT_INVALID_VALUE = 7, LT_ARCH_MISMATCH = 8, LT_NOT_SUPPORTED = 15 };
enum { LT_R_32F = 0, LT_R_16F = 2, LT_R_16BF = 14 };
enum { LT_COMPUTE_32F = 68, LT_COMPUTE_32F_FAST_16BF = 75, LT_COMPUTE_32F_FAST_TF32 = 77 };
enum { LT_OP_N = 0, LT_OP_T = 1 };
enum { LT_MATMUL_TRANSA = 3, LT_MATMUL_TRANSB = 4, LT_MATMUL_EPILOGUE = 7,
       LT_MATMUL_BIAS_POINTER = 8, LT_MATMUL_BIAS_DATA_TYPE = 26 };
enum { LT_EPILOGUE_DEFAULT = 1, LT_EPILOGUE_RELU = 2, LT_EPILOGUE_BIAS = 4,
       LT_EPILOGUE_RELU_BIAS = 6, LT_EPILOGUE_BGRADB = 512 };
enum { LT_MATRIX_BATCH_COUNT = 5, LT_MATRIX_BATCH_STRIDE = 6 };
enum {
    LT_PREFERENCE_WORKSPACE = 1, LT_PREFERENCE_REDUCTIONS = 3, LT_PREFERENCE_ALIGN_A = 5, LT_PREFERENCE_ALIGN_B = 6,
    LT_PREFERENCE_ALIGN_C = 7, LT_PREFERENCE_ALIGN_D = 8
};
enum { LT_REDUCTION_COMPUTE_TYPE = 2 };
enum { LT_CONFIG_ID = 0, LT_CONFIG_TILE = 1, LT_CONFIG_SPLIT_K = 2 };
enum { LT_CAP_NUMERICAL_FLAGS = 15 };
#define LT_NUMERICAL_TENSOR_OP_MASK UINT64_C(0xfe)
#define LT_NUMERICAL_INPUT_SHIFT 16
#define LT_NUMERICAL_INPUT_MASK UINT64_C(0xff)
#define LT_NUMERICAL_INPUT_32F UINT64_C(0x08)
/* clang-format on */

/* Functions: the name behind "cublasLt", result, parameters. */
#define CEK__CUBLASLT_FUNCTIONS(ROW)                                                                                 \
    ROW(Create, int, (lt_handle * handle))                                                                           \
    ROW(Destroy, int, (lt_handle handle))                                                                            \
    ROW(GetVersion, size_t, (void))                                                                                  \
    ROW(GetStatusString, const char *, (int status))                                                                 \
    ROW(MatmulDescInit_internal, int, (lt_matmul * desc, size_t bytes, int compute, int scale_type))                 \
    ROW(MatmulDescSetAttribute, int, (lt_matmul * desc, int what, const void *value, size_t bytes))                  \
    ROW(MatrixLayoutInit_internal, int,                                                                              \
        (lt_matrix * matrix, size_t bytes, int type, uint64_t rows, uint64_t columns, int64_t ld))                   \
    ROW(MatrixLayoutSetAttribute, int, (lt_matrix * matrix, int what, const void *value, size_t bytes))              \
    ROW(MatmulPreferenceInit_internal, int, (lt_preference * preference, size_t bytes))                              \
    ROW(MatmulPreferenceSetAttribute, int, (lt_preference * preference, int what, const void *value, size_t bytes))  \
    ROW(MatmulAlgoGetHeuristic, int,                                                                                 \
        (lt_handle handle, lt_matmul * desc, lt_matrix * a, lt_matrix * b, lt_matrix * c, lt_matrix * d,             \
         lt_preference * preference, int wanted, lt_found *found, int *count))                                       \
    ROW(MatmulAlgoConfigGetAttribute, int,                                                                           \
        (const lt_algo *algo, int what, void *value, size_t bytes, size_t *written))                                 \
    ROW(MatmulAlgoCapGetAttribute, int, (const lt_algo *algo, int what, void *value, size_t bytes, size_t *written)) \
    ROW(Matmul, int,                                                                                                 \
        (lt_handle handle, lt_matmul * desc, const void *alpha, const void *a, lt_matrix *a_layout, const void *b,   \
         lt_matrix *b_layout, const void *beta, const void *c, lt_matrix *c_layout, void *d, lt_matrix *d_layout,    \
         const lt_algo *algo, void *workspace, size_t workspace_bytes, void *stream))

/* A loaded library (cek__cublaslt of cuda.h). */
struct cek__cublaslt {
    void *library;
    char version[64]; /* "cuBLASLt 13.0.2" */
#define CEK__CUBLASLT_MEMBER(NAME, RESULT, PARAMETERS) RESULT(*NAME) PARAMETERS;
    CEK__CUBLASLT_FUNCTIONS(CEK__CUBLASLT_MEMBER)
#undef CEK__CUBLASLT_MEMBER
};

#endif
