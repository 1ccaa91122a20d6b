/* SPDX-License-Identifier: MIT
 *
 * cudnn.h - the part of NVIDIA's cuDNN 9 that is used here, declared by hand: the plugin builds where no cuDNN is.
 * All of it is the interface of descriptors: objects that are made, told attributes, finished, and only then used.
 * tests/cuda/provider_declarations.c holds it against NVIDIA's headers where they are.
 */
#ifndef CEK_BACKENDS_CUDA_CUDNN_H
#define CEK_BACKENDS_CUDA_CUDNN_H

#include "backends/cuda/cuda.h"
#include "backends/gpu/gpu.h"

#ifndef CUDNN_MAJOR /* else NVIDIA's header was here first: the test of these declarations */
typedef uint32_t cudnnStatus_t;
typedef uint32_t cudnnBackendDescriptorType_t;
typedef uint32_t cudnnBackendAttributeName_t;
typedef uint32_t cudnnBackendAttributeType_t;
typedef void *cudnnBackendDescriptor_t;
typedef struct cudnnContext *cudnnHandle_t;
#endif

/* clang-format off */
#define CEK__CUDNN_NUMBERS(ROW)                                                                                       \
    ROW(CUDNN_STATUS_SUCCESS, 0) ROW(CUDNN_STATUS_BAD_PARAM, 2000) ROW(CUDNN_STATUS_NOT_SUPPORTED, 3000)              \
    ROW(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, 4003)                                                     \
    ROW(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, 4004) ROW(CUDNN_STATUS_EXECUTION_FAILED, 5000)          \
    ROW(CUDNN_DATA_FLOAT, 0) ROW(CUDNN_DATA_HALF, 2) ROW(CUDNN_DATA_BFLOAT16, 9)                                      \
    ROW(CUDNN_CROSS_CORRELATION, 1) ROW(CUDNN_HEUR_MODE_FALLBACK, 2) ROW(CUDNN_HEUR_MODE_A, 3)                       \
    ROW(CUDNN_POINTWISE_ADD, 0) ROW(CUDNN_POINTWISE_IDENTITY, 21) ROW(CUDNN_POINTWISE_RELU_FWD, 100)                  \
    ROW(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, 0) ROW(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, 1)                           \
    ROW(CUDNN_BACKEND_ENGINE_DESCRIPTOR, 2) ROW(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 3)                                \
    ROW(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, 4) ROW(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5)                       \
    ROW(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, 10)                                                   \
    ROW(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, 11)                                           \
    ROW(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, 12)                                             \
    ROW(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 13) ROW(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15)            \
    ROW(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, 16) ROW(CUDNN_BACKEND_TENSOR_DESCRIPTOR, 17)                           \
    ROW(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, 38)                                                                      \
    ROW(CUDNN_ATTR_POINTWISE_MODE, 0) ROW(CUDNN_ATTR_POINTWISE_MATH_PREC, 1)                                          \
    ROW(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, 2) ROW(CUDNN_TYPE_NAN_PROPOGATION, 10) ROW(CUDNN_PROPAGATE_NAN, 1)      \
    ROW(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, 100) ROW(CUDNN_ATTR_CONVOLUTION_CONV_MODE, 101)                             \
    ROW(CUDNN_ATTR_CONVOLUTION_DILATIONS, 102) ROW(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 103)                        \
    ROW(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 104) ROW(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 105)                      \
    ROW(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 106)                                                                     \
    ROW(CUDNN_ATTR_ENGINEHEUR_MODE, 200) ROW(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 201)                              \
    ROW(CUDNN_ATTR_ENGINEHEUR_RESULTS, 202) ROW(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, 204)                                \
    ROW(CUDNN_ATTR_ENGINECFG_ENGINE, 300)                                                                             \
    ROW(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, 400) ROW(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401)                      \
    ROW(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402) ROW(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, 405)        \
    ROW(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, 407)                                                                    \
    ROW(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 700) ROW(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 701)  \
    ROW(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, 702) ROW(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, 703) \
    ROW(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, 704) ROW(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, 705)         \
    ROW(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 706)                                                         \
    ROW(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 707)                                                          \
    ROW(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, 708)                                                     \
    ROW(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, 709) ROW(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, 710)      \
    ROW(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, 711)                                                            \
    ROW(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 712)                                                       \
    ROW(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, 713)                                                        \
    ROW(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, 714)                                                   \
    ROW(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, 715) ROW(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, 716)  \
    ROW(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, 717)                                                          \
    ROW(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 750) ROW(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 751)             \
    ROW(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 752) ROW(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 753)                     \
    ROW(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, 800) ROW(CUDNN_ATTR_OPERATIONGRAPH_OPS, 801)                                \
    ROW(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 900) ROW(CUDNN_ATTR_TENSOR_DATA_TYPE, 901)                                  \
    ROW(CUDNN_ATTR_TENSOR_DIMENSIONS, 902) ROW(CUDNN_ATTR_TENSOR_STRIDES, 903)                                        \
    ROW(CUDNN_ATTR_TENSOR_UNIQUE_ID, 906) ROW(CUDNN_ATTR_TENSOR_IS_VIRTUAL, 907)                                      \
    ROW(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, 1000) ROW(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, 1001)                    \
    ROW(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 1003)                                                                      \
    ROW(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1301) ROW(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, 1303)                             \
    ROW(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, 2702)                                                              \
    ROW(CUDNN_TYPE_HANDLE, 0) ROW(CUDNN_TYPE_DATA_TYPE, 1) ROW(CUDNN_TYPE_BOOLEAN, 2) ROW(CUDNN_TYPE_INT64, 3)        \
    ROW(CUDNN_TYPE_FLOAT, 4) ROW(CUDNN_TYPE_VOID_PTR, 6) ROW(CUDNN_TYPE_CONVOLUTION_MODE, 7)                          \
    ROW(CUDNN_TYPE_HEUR_MODE, 8) ROW(CUDNN_TYPE_NUMERICAL_NOTE, 11) ROW(CUDNN_TYPE_POINTWISE_MODE, 14)                \
    ROW(CUDNN_TYPE_BACKEND_DESCRIPTOR, 15) ROW(CUDNN_TYPE_CHAR, 24)                                                   \
    ROW(CUDNN_NUMERICAL_NOTE_TENSOR_CORE, 0) ROW(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, 1)                         \
    ROW(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, 2) ROW(CUDNN_NUMERICAL_NOTE_FFT, 3)                         \
    ROW(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, 4) ROW(CUDNN_NUMERICAL_NOTE_WINOGRAD, 5)                               \
    ROW(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4, 6) ROW(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6, 7)                     \
    ROW(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13, 8)
/* clang-format on */

#ifndef CUDNN_MAJOR
enum {
#define CEK__CUDNN_NUMBER(NAME, VALUE) NAME = VALUE,
    CEK__CUDNN_NUMBERS(CEK__CUDNN_NUMBER)
#undef CEK__CUDNN_NUMBER
};
#endif

/* Functions: the name behind "cudnn", result, parameters. */
#define CEK__CUDNN_FUNCTIONS(ROW)                                                                                 \
    ROW(GetVersion, size_t, (void))                                                                               \
    ROW(GetErrorString, const char *, (cudnnStatus_t status))                                                     \
    ROW(Create, cudnnStatus_t, (cudnnHandle_t * handle))                                                          \
    ROW(Destroy, cudnnStatus_t, (cudnnHandle_t handle))                                                           \
    ROW(SetStream, cudnnStatus_t, (cudnnHandle_t handle, CUstream stream))                                        \
    ROW(BackendCreateDescriptor, cudnnStatus_t,                                                                   \
        (cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t * descriptor))                               \
    ROW(BackendDestroyDescriptor, cudnnStatus_t, (cudnnBackendDescriptor_t descriptor))                           \
    ROW(BackendFinalize, cudnnStatus_t, (cudnnBackendDescriptor_t descriptor))                                    \
    ROW(BackendSetAttribute, cudnnStatus_t,                                                                       \
        (cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, \
         int64_t count, const void *values))                                                                      \
    ROW(BackendGetAttribute, cudnnStatus_t,                                                                       \
        (cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, \
         int64_t wanted, int64_t * count, void *values))                                                          \
    ROW(BackendExecute, cudnnStatus_t,                                                                            \
        (cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack))

/* A loaded library (cek__cudnn of cuda.h). */
struct cek__cudnn {
    void *library;
    char version[64]; /* "cuDNN 9.19.0" */
#define CEK__CUDNN_MEMBER(NAME, RESULT, PARAMETERS) RESULT(*NAME) PARAMETERS;
    CEK__CUDNN_FUNCTIONS(CEK__CUDNN_MEMBER)
#undef CEK__CUDNN_MEMBER
};

/* --- cudnn_plan.c: from a convolution to a plan; needs no device ----------------------------------------------- */

/* What a plan is made for: the device of a handle, or one that is described (tests, on machines without any). */
typedef struct cek__cudnn_target {
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t described; /* where handle is NULL */
} cek__cudnn_target;

/* Descriptors that belong together, destroyed together; the first error stays and makes all that follows do nothing. */
#define CEK__CUDNN_MADE 32
typedef struct cek__cudnn_set {
    const struct cek__cudnn *dnn;
    cudnnStatus_t error;
    uint32_t count;
    cudnnBackendDescriptor_t made[CEK__CUDNN_MADE];
} cek__cudnn_set;

/* A plan, ready to be executed. Tensors have the number of their slot + 1. */
typedef struct cek__cudnn_plan {
    cek__cudnn_set set; /* the plan and all that it was made from */
    cudnnBackendDescriptor_t plan;
    uint32_t does; /* CEK__GPU_DOES_... */
    uint32_t slot_count;
    uint32_t slots[4]; /* that it reads or writes */
    uint64_t workspace_bytes;
    int64_t engine;
    uint64_t notes;  /* of the engine: bit CUDNN_NUMERICAL_NOTE_... */
    uint64_t choice; /* hash of engine and knobs */
} cek__cudnn_plan;

cudnnBackendDescriptor_t cek__cudnn_make(cek__cudnn_set *set, cudnnBackendDescriptorType_t type);
void cek__cudnn_tell(cek__cudnn_set *set, cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                     cudnnBackendAttributeType_t type, int64_t count, const void *values);
void cek__cudnn_finish(cek__cudnn_set *set, cudnnBackendDescriptor_t descriptor);
void cek__cudnn_set_free(cek__cudnn_set *set);

/* Where the search for plans stands; all zero at its beginning. */
typedef struct cek__cudnn_place {
    uint32_t way, mode;
    int64_t config; /* the next one of the heuristics' list; above 0 once there was a plan */
} cek__cudnn_place;

/* cek__cudnn_plan_next - the next plan, in the order of cuDNN's heuristics, for a convolution, of those that keep what
 * plugin.h promises, in the least number of passes; `leave` as in cek__gpu_offer. All plans of one search do the same.
 * CEK_UNSUPPORTED: there is no other. *to needs cek__cudnn_set_free after CEK_OK alone. */
cek_status cek__cudnn_plan_next(const struct cek__cudnn *dnn, const cek__cudnn_target *target,
                                const cek__request *request, uint32_t leave, cek__cudnn_place *place,
                                cek__cudnn_plan *to);

/* --- cudnn.c, for cudnn_time.c: calls -------------------------------------------------------------------------- */

/* A plan on a device, and what its calls keep. */
struct cek__gpu_plan {
    const struct cek__cudnn *dnn;
    cek__cudnn_plan plan;
    uint32_t workspace_slot; /* the one behind the operation's */
    /* Under the device's cudnn_lock: */
    cudnnBackendDescriptor_t pack;  /* or NULL */
    void *addresses[4], *workspace; /* that it holds */
};

/* cek__cudnn_call, cek__cudnn_plan_free - as in cek__gpu_provider. */
cek_status cek__cudnn_call(cek_queue *queue, const cek__gpu_plan *plan, const cek_ref *refs);
void cek__cudnn_plan_free(cek_dev *dev, cek__gpu_plan *plan);
/* cek__cudnn_plan_from - the next plan of a search on a device, malloc'ed. */
cek_status cek__cudnn_plan_from(cek_dev *dev, const struct cek__cudnn *dnn, const cek__request *request, uint32_t leave,
                                cek__cudnn_place *place, cek__gpu_plan **out);

/* --- cudnn_time.c: the fastest of several plans ---------------------------------------------------------------- */

/* cek__cudnn_fastest - of the plans for a request, measured once per device and request; for DETERMINISTIC ones the
 * first, as nothing that is computed may depend on a clock. CEK_UNSUPPORTED: there is none. */
cek_status cek__cudnn_fastest(cek_dev *dev, const struct cek__cudnn *dnn, const cek__request *request, uint32_t leave,
                              cek__gpu_plan **out);
void cek__cudnn_choices_free(cuda_dev *dev);

#endif
