/* provider_declarations.c - compiled, never run: backends/cuda/cudnn.h and cublaslt.h against NVIDIA's headers. */
#include <cuda.h>
#include <cublasLt.h>
#include <cudnn_graph.h>

#include "backends/cuda/cublaslt.h"
#include "backends/cuda/cudnn.h"

#ifdef SPOIL /* the test of this test */
#define SPOILED +1
#else
#define SPOILED
#endif

_Static_assert(CUDNN_MAJOR == 9, "of cuDNN 9");

#define NUMBER(NAME, VALUE) _Static_assert((long)NAME == VALUE SPOILED, #NAME);
CEK__CUDNN_NUMBERS(NUMBER)

/* The types that go without a name of ours. */
_Static_assert(sizeof(cudnnDataType_t) == sizeof(uint32_t) && sizeof(cudnnPointwiseMode_t) == sizeof(uint32_t) &&
                   sizeof(cudnnConvolutionMode_t) == sizeof(uint32_t) &&
                   sizeof(cudnnBackendHeurMode_t) == sizeof(uint32_t) &&
                   sizeof(cudnnBackendNumericalNote_t) == sizeof(uint32_t),
               "attributes that are told as numbers");

#define FUNCTION(NAME, RESULT, PARAMETERS)         \
    typedef RESULT(*own_##NAME##_type) PARAMETERS; \
    _Static_assert(__builtin_types_compatible_p(own_##NAME##_type, __typeof__(&cudnn##NAME)), #NAME);
CEK__CUDNN_FUNCTIONS(FUNCTION)

/* cuBLASLt goes by names of our own: values, sizes and offsets; its functions have types of other
 * names and are not compared. */
#define SAME(OWN, THEIRS) _Static_assert((long)OWN == (long)THEIRS SPOILED, #OWN);
#define ROOM(OWN, THEIRS) _Static_assert(sizeof(OWN) >= sizeof(THEIRS) && sizeof(OWN) % sizeof(uint64_t) == 0, #OWN);
SAME(LT_SUCCESS, CUBLAS_STATUS_SUCCESS)
SAME(LT_ALLOC_FAILED, CUBLAS_STATUS_ALLOC_FAILED)
SAME(LT_INVALID_VALUE, CUBLAS_STATUS_INVALID_VALUE)
SAME(LT_ARCH_MISMATCH, CUBLAS_STATUS_ARCH_MISMATCH)
SAME(LT_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED)
SAME(LT_R_32F, CUDA_R_32F)
SAME(LT_R_16F, CUDA_R_16F)
SAME(LT_R_16BF, CUDA_R_16BF)
SAME(LT_COMPUTE_32F, CUBLAS_COMPUTE_32F)
SAME(LT_COMPUTE_32F_FAST_16BF, CUBLAS_COMPUTE_32F_FAST_16BF)
SAME(LT_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F_FAST_TF32)
SAME(LT_OP_N, CUBLAS_OP_N)
SAME(LT_OP_T, CUBLAS_OP_T)
SAME(LT_MATMUL_TRANSA, CUBLASLT_MATMUL_DESC_TRANSA)
SAME(LT_MATMUL_TRANSB, CUBLASLT_MATMUL_DESC_TRANSB)
SAME(LT_MATMUL_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE)
SAME(LT_MATMUL_BIAS_POINTER, CUBLASLT_MATMUL_DESC_BIAS_POINTER)
SAME(LT_MATMUL_BIAS_DATA_TYPE, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE)
SAME(LT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_DEFAULT)
SAME(LT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU)
SAME(LT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_BIAS)
SAME(LT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS)
SAME(LT_EPILOGUE_BGRADB, CUBLASLT_EPILOGUE_BGRADB)
SAME(LT_MATRIX_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
SAME(LT_MATRIX_BATCH_STRIDE, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
SAME(LT_PREFERENCE_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
SAME(LT_PREFERENCE_REDUCTIONS, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
SAME(LT_PREFERENCE_ALIGN_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES)
SAME(LT_PREFERENCE_ALIGN_B, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES)
SAME(LT_PREFERENCE_ALIGN_C, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES)
SAME(LT_PREFERENCE_ALIGN_D, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES)
SAME(LT_REDUCTION_COMPUTE_TYPE, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)
SAME(LT_CONFIG_ID, CUBLASLT_ALGO_CONFIG_ID)
SAME(LT_CONFIG_TILE, CUBLASLT_ALGO_CONFIG_TILE_ID)
SAME(LT_CONFIG_SPLIT_K, CUBLASLT_ALGO_CONFIG_SPLITK_NUM)
SAME(LT_CAP_NUMERICAL_FLAGS, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS)
SAME(LT_NUMERICAL_TENSOR_OP_MASK, CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK)
SAME(LT_NUMERICAL_INPUT_SHIFT, 16)
SAME(LT_NUMERICAL_INPUT_32F << LT_NUMERICAL_INPUT_SHIFT, CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F)
SAME(LT_NUMERICAL_INPUT_MASK << LT_NUMERICAL_INPUT_SHIFT, CUBLASLT_NUMERICAL_IMPL_FLAGS_OP_INPUT_TYPE_MASK)
ROOM(lt_matrix, cublasLtMatrixLayoutOpaque_t)
ROOM(lt_matmul, cublasLtMatmulDescOpaque_t)
ROOM(lt_preference, cublasLtMatmulPreferenceOpaque_t)
SAME(sizeof(lt_algo), sizeof(cublasLtMatmulAlgo_t))
SAME(sizeof(lt_found), sizeof(cublasLtMatmulHeuristicResult_t))
SAME(offsetof(lt_found, workspace_bytes), offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize))
SAME(offsetof(lt_found, status), offsetof(cublasLtMatmulHeuristicResult_t, state))
SAME(offsetof(lt_found, waves), offsetof(cublasLtMatmulHeuristicResult_t, wavesCount))
SAME(sizeof(int), sizeof(cublasStatus_t))
