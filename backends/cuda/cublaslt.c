/* SPDX-License-Identifier: MIT
 *
 * cublaslt.c - matrix products by cuBLASLt.
 *
 * Owns the way from a gemm request to a call: cuBLASLt's matrices are column-major, so C^T =
 * op(B)^T op(A)^T is computed, whose memory is that of the row-major C. What its epilogues do
 * exactly as plugin.h says is left to them; the rest our own kernels do. The library keeps the
 * bias' address in the descriptor: a call copies the descriptor, so the plan never changes.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common/hash.h"
#include "backends/cuda/cublaslt.h"
#include "backends/cuda/cuda.h"
#include "backends/gpu/providers.h"

#define WORKSPACE_LARGE ((uint64_t)32 << 20) /* what the vendor advises, from sm_90 on */
#define WORKSPACE_SMALL ((uint64_t)8 << 20)
#define WANTED 16 /* algorithms to choose from, best first */

/* --- the library ------------------------------------------------------------------------------ */

static cek__cublaslt *library_load(const cek_host *host, int driver)
{
    static const char *const names[] = { "libcublasLt.so.13", "libcublasLt.so.12", NULL };
    char path[CEK__TEXT_BYTES];
    if (cek__gpu_provider_hidden(host, &cek__cuda_driver, &cek__cublaslt_provider))
        return NULL;
    cek__cublaslt *lt = calloc(1, sizeof *lt);
    if (lt)
        lt->library = cek__cuda_library_open(host, cek__cuda_library_names(names, driver), path, sizeof path);
    if (!lt || !lt->library) {
        if (lt)
            cek__host_log(host, CEK_LOG_INFO, "no cuBLASLt: %s", path);
        free(lt);
        return NULL;
    }
    const char *missing = NULL;
#define MEMBER_FIND(NAME, RESULT, PARAMETERS)                   \
    *(void **)&lt->NAME = dlsym(lt->library, "cublasLt" #NAME); \
    missing = lt->NAME ? missing : "cublasLt" #NAME;
    CEK__CUBLASLT_FUNCTIONS(MEMBER_FIND)
#undef MEMBER_FIND
    if (missing) {
        cek__host_log(host, CEK_LOG_WARN, "%s has no %s and is left alone", path, missing);
        free(lt);
        return NULL;
    }
    unsigned version = (unsigned)lt->GetVersion(); /* 130002 is 13.0.2 */
    unsigned unit = version >= 100000 ? 10000 : 1000;
    snprintf(lt->version, sizeof lt->version, "cuBLASLt %u.%u.%u", version / unit, version % unit / 100, version % 100);
    cek__host_log(host, CEK_LOG_INFO, "%s: %s", path, lt->version);
    return lt;
}

static const cek__cublaslt *library_get(cek_instance *head)
{
    cuda_instance *instance = (cuda_instance *)head;
    pthread_mutex_lock(&instance->lock);
    if (!instance->cublaslt_sought)
        instance->cublaslt = library_load(&head->host, instance->version);
    instance->cublaslt_sought = true;
    pthread_mutex_unlock(&instance->lock);
    return instance->cublaslt;
}

void cek__cublaslt_free(cek__cublaslt *lt)
{
    free(lt);
}

static const char *version(cek_instance *instance)
{
    const cek__cublaslt *lt = library_get(instance);
    return lt ? lt->version : "";
}

static cek_status lt_fail(cuda_dev *dev, const cek__cublaslt *lt, const char *call, const char *function, int error)
{
    return cek__host_fail(&dev->head.instance->host, error == LT_ALLOC_FAILED ? CEK_OUT_OF_MEMORY : CEK_INTERNAL,
                          "%s: %s: %s (%d)", call, function, lt->GetStatusString(error), error);
}

/* One handle per device serves all queues: it carries no stream. */
static cek_status handle_get(cuda_dev *dev, const cek__cublaslt *lt, lt_handle *out)
{
    pthread_mutex_lock(&dev->programs_lock);
    cek_status st = CEK_OK;
    if (!dev->cublaslt_handle) {
        int error = lt->Create((lt_handle *)&dev->cublaslt_handle);
        if (error)
            st = lt_fail(dev, lt, "op_create", "cublasLtCreate", error);
    }
    *out = dev->cublaslt_handle;
    pthread_mutex_unlock(&dev->programs_lock);
    return st;
}

void cek__cublaslt_device_close(cuda_dev *dev)
{
    if (!dev->cublaslt_handle || cek__latched(&dev->head.lost) || cek__cuda_enter(dev, "device_close"))
        return;
    (void)library_get(dev->head.instance)->Destroy(dev->cublaslt_handle);
    cek__cuda_leave(dev);
}

/* --- plans ------------------------------------------------------------------------------------ */

struct cek__gpu_plan {
    const cek__cublaslt *lt;
    lt_handle handle;
    lt_matmul matmul;
    lt_matrix b, a, c; /* our B and A are cuBLASLt's first and second factor */
    lt_algo algo;
    size_t workspace_bytes;
    float beta;
    uint32_t vector; /* slot that the descriptor's bias address is: BIAS, A_SUM, or CEK__GPU_NOTHING */
};

static int type_of(cek_dtype type)
{
    return type == CEK_F32 ? LT_R_32F : type == CEK_F16 ? LT_R_16F : LT_R_16BF;
}

/* f16 and bf16 are always added up in f32. */
static int compute_of(const cek_gemm_desc *desc)
{
    if (desc->a_type != CEK_F32)
        return LT_COMPUTE_32F;
    return desc->op.math == CEK_MATH_TF32   ? LT_COMPUTE_32F_FAST_TF32
           : desc->op.math == CEK_MATH_FAST ? LT_COMPUTE_32F_FAST_16BF
                                            : LT_COMPUTE_32F;
}

static int matrix_make(const cek__cublaslt *lt, lt_matrix *to, cek_dtype type, uint64_t rows, uint64_t columns,
                       int64_t ld, uint64_t batch, int64_t stride)
{
    int32_t count = (int32_t)batch;
    int error = lt->MatrixLayoutInit_internal(to, sizeof *to, type_of(type), rows, columns, ld);
    if (!error && batch > 1)
        error = lt->MatrixLayoutSetAttribute(to, LT_MATRIX_BATCH_COUNT, &count, sizeof count);
    if (!error && batch > 1)
        error = lt->MatrixLayoutSetAttribute(to, LT_MATRIX_BATCH_STRIDE, &stride, sizeof stride);
    return error;
}

/* A row-major matrix is its transpose to cuBLASLt: what is stored as rows x columns has `columns` rows there. */
static int matrices_make(const cek_gemm_desc *desc, cek_dtype c_type, cek__gpu_plan *plan)
{
    const cek__cublaslt *lt = plan->lt;
    bool ta = desc->trans & CEK_GEMM_TRANS_A, tb = desc->trans & CEK_GEMM_TRANS_B;
    const int32_t first = tb ? LT_OP_T : LT_OP_N, second = ta ? LT_OP_T : LT_OP_N;
    int error = matrix_make(lt, &plan->b, desc->b_type, tb ? desc->k : desc->n, tb ? desc->n : desc->k, desc->ldb,
                            desc->batch, desc->stride_b);
    if (!error)
        error = matrix_make(lt, &plan->a, desc->a_type, ta ? desc->m : desc->k, ta ? desc->k : desc->m, desc->lda,
                            desc->batch, desc->stride_a);
    if (!error)
        error = matrix_make(lt, &plan->c, c_type, desc->n, desc->m, desc->ldc, desc->batch, desc->stride_c);
    if (!error)
        error = lt->MatmulDescInit_internal(&plan->matmul, sizeof plan->matmul, compute_of(desc), LT_R_32F);
    if (!error)
        error = lt->MatmulDescSetAttribute(&plan->matmul, LT_MATMUL_TRANSA, &first, sizeof first);
    if (!error)
        error = lt->MatmulDescSetAttribute(&plan->matmul, LT_MATMUL_TRANSB, &second, sizeof second);
    return error;
}

/* The epilogue, and the f32 vector that goes with it; its address is set at every call. Here only its alignment
 * counts: the library reads from the address that it is told now how wide it may load later. */
static int epilogue_set(cek__gpu_plan *plan, const cek__request *request, uint32_t epilogue)
{
    const cek__cublaslt *lt = plan->lt;
    const int32_t type = LT_R_32F;
    int error = lt->MatmulDescSetAttribute(&plan->matmul, LT_MATMUL_EPILOGUE, &epilogue, sizeof epilogue);
    if (error || plan->vector == CEK__GPU_NOTHING)
        return error;
    const void *aligned = (const void *)(uintptr_t)request->slots[plan->vector].align;
    error = lt->MatmulDescSetAttribute(&plan->matmul, LT_MATMUL_BIAS_DATA_TYPE, &type, sizeof type);
    return error ? error : lt->MatmulDescSetAttribute(&plan->matmul, LT_MATMUL_BIAS_POINTER, &aligned, sizeof aligned);
}

/* Split sums are added in f32, never in the type of the result, and never by whoever comes first. */
static int preference_make(const cuda_dev *dev, const cek__request *request, const cek__cublaslt *lt, lt_preference *to)
{
    static const int aligns[] = { LT_PREFERENCE_ALIGN_A, LT_PREFERENCE_ALIGN_B, LT_PREFERENCE_ALIGN_C,
                                  LT_PREFERENCE_ALIGN_D };
    const uint64_t workspace = dev->major >= 9 ? WORKSPACE_LARGE : WORKSPACE_SMALL;
    const uint32_t reductions = LT_REDUCTION_COMPUTE_TYPE, align = request->align;
    int error = lt->MatmulPreferenceInit_internal(to, sizeof *to);
    if (!error)
        error = lt->MatmulPreferenceSetAttribute(to, LT_PREFERENCE_WORKSPACE, &workspace, sizeof workspace);
    if (!error)
        error = lt->MatmulPreferenceSetAttribute(to, LT_PREFERENCE_REDUCTIONS, &reductions, sizeof reductions);
    for (size_t i = 0; !error && i < sizeof aligns / sizeof *aligns; i++)
        error = lt->MatmulPreferenceSetAttribute(to, aligns[i], &align, sizeof align);
    return error;
}

/* Whether f32 operands stay f32 in the algorithm: the mode says so, the algorithm's own flags must not say
 * otherwise. */
static bool keeps_f32(const cek__cublaslt *lt, const lt_algo *algo)
{
    uint64_t flags = 0;
    size_t written = 0;
    if (lt->MatmulAlgoCapGetAttribute(algo, LT_CAP_NUMERICAL_FLAGS, &flags, sizeof flags, &written) || !flags)
        return true;
    uint64_t input = flags >> LT_NUMERICAL_INPUT_SHIFT & LT_NUMERICAL_INPUT_MASK;
    return !(flags & LT_NUMERICAL_TENSOR_OP_MASK) && (!input || input == LT_NUMERICAL_INPUT_32F);
}

/* The first algorithm of the library's choice that may be used. CEK_UNSUPPORTED: there is none for this combination. */
static cek_status algorithm_choose(const cuda_dev *dev, const cek__request *request, cek__gpu_plan *plan)
{
    const cek__cublaslt *lt = plan->lt;
    const bool strict = compute_of(&request->desc.gemm) == LT_COMPUTE_32F && request->desc.gemm.a_type == CEK_F32;
    lt_preference preference;
    lt_found found[WANTED];
    int count = 0;
    memset(found, 0, sizeof found);
    if (preference_make(dev, request, lt, &preference))
        return CEK_UNSUPPORTED;
    if (lt->MatmulAlgoGetHeuristic(plan->handle, &plan->matmul, &plan->b, &plan->a, &plan->c, &plan->c, &preference,
                                   WANTED, found, &count))
        return CEK_UNSUPPORTED;
    for (int i = 0; i < count; i++)
        if (!found[i].status && (!strict || keeps_f32(lt, &found[i].algo))) {
            plan->algo = found[i].algo;
            plan->workspace_bytes = found[i].workspace_bytes;
            return CEK_OK;
        }
    return CEK_UNSUPPORTED;
}

static void algorithm_tell(const cek__gpu_plan *plan, cek__gpu_offer *out)
{
    int32_t id = 0, split = 0;
    uint32_t tile = 0;
    size_t written;
    (void)plan->lt->MatmulAlgoConfigGetAttribute(&plan->algo, LT_CONFIG_ID, &id, sizeof id, &written);
    (void)plan->lt->MatmulAlgoConfigGetAttribute(&plan->algo, LT_CONFIG_TILE, &tile, sizeof tile, &written);
    (void)plan->lt->MatmulAlgoConfigGetAttribute(&plan->algo, LT_CONFIG_SPLIT_K, &split, sizeof split, &written);
    snprintf(out->algorithm, sizeof out->algorithm, "%.24s, algorithm %d, tile %u, split %d", plan->lt->version, id,
             tile, split);
    out->numeric_id = cek__hash(cek__hash_text(CEK__HASH_START, plan->lt->version), &plan->algo, sizeof plan->algo);
}

/* --- ways to do a request --------------------------------------------------------------------- */

/* One way: what the library's epilogue does, and what that leaves. */
typedef struct way {
    uint32_t does, epilogue, vector;
    cek_dtype c_type;
} way;

static bool given(const cek__request *request, uint32_t slot)
{
    return cek__request_given(request, slot);
}

/* The ways from the most to the least that cuBLASLt might do; it will refuse what it has no kernel
 * for. Its ReLU comes after C was added, ours before; its GELU is another function, its derivatives
 * read what we do not keep; its sum of A overwrites. */
static uint32_t ways_make(const cek__request *request, uint32_t leave, way *ways)
{
    const cek_gemm_desc *desc = &request->desc.gemm;
    const cek_activation activation = request->epilogue.activation;
    const bool adds = cek__request_accumulates(request, CEK_GEMM_C), bias = given(request, CEK_GEMM_BIAS);
    const bool relu = activation == CEK_ACT_RELU && !adds && !(leave & CEK__GPU_DOES_ACTIVATION);
    uint32_t count = 0;
    if (!request->epilogue.act_grad && (relu || !activation)) {
        way whole = { CEK__GPU_DOES_EPILOGUE | (relu ? CEK__GPU_DOES_ACTIVATION : 0),
                      (relu ? LT_EPILOGUE_RELU : 0) | (bias ? LT_EPILOGUE_BIAS : 0),
                      bias ? CEK_GEMM_BIAS : CEK__GPU_NOTHING, desc->c_type };
        if (!whole.epilogue && given(request, CEK_GEMM_A_SUM) && !cek__request_accumulates(request, CEK_GEMM_A_SUM))
            ways[count++] = (way){ CEK__GPU_DOES_EPILOGUE | CEK__GPU_DOES_SUMS, LT_EPILOGUE_BGRADB, CEK_GEMM_A_SUM,
                                   desc->c_type };
        whole.epilogue = whole.epilogue ? whole.epilogue : LT_EPILOGUE_DEFAULT;
        ways[count++] = whole;
    }
    ways[count++] = (way){ 0, LT_EPILOGUE_DEFAULT, CEK__GPU_NOTHING, CEK_F32 };
    return count;
}

static cek_status way_try(cuda_dev *dev, const cek__request *request, const way *w, cek__gpu_plan *plan)
{
    plan->vector = w->vector;
    plan->beta = w->does & CEK__GPU_DOES_EPILOGUE && cek__request_accumulates(request, CEK_GEMM_C) ? 1.0f : 0.0f;
    if (matrices_make(&request->desc.gemm, w->c_type, plan) || epilogue_set(plan, request, w->epilogue))
        return CEK_UNSUPPORTED;
    return algorithm_choose(dev, request, plan);
}

static cek_status plan_make(cuda_dev *dev, const cek__request *request, cek__gpu_plan *plan, cek__gpu_offer *out)
{
    way ways[3];
    uint32_t count = ways_make(request, out->leave, ways);
    cek_status st = cek__cuda_enter(dev, "op_create");
    if (st)
        return st;
    st = handle_get(dev, plan->lt, &plan->handle);
    bool found = false;
    for (uint32_t i = 0; !st && !found && i < count; i++) {
        found = !way_try(dev, request, &ways[i], plan);
        out->does = ways[i].does;
    }
    cek__cuda_leave(dev);
    return st ? st : found ? CEK_OK : CEK_UNSUPPORTED;
}

static cek_status offer(cek_dev *head, const cek__request *request, cek__gpu_offer *out)
{
    const cek_gemm_desc *desc = &request->desc.gemm;
    if (desc->op.kind != CEK_OP_GEMM || !desc->k || desc->outer > 1 || desc->batch > INT32_MAX)
        return CEK_UNSUPPORTED;
    const cek__cublaslt *lt = library_get(head->instance);
    if (!lt)
        return CEK_UNSUPPORTED;
    cek__gpu_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return cek__host_fail(&head->instance->host, CEK_OUT_OF_MEMORY, "op_create: no memory for a plan of cuBLASLt");
    plan->lt = lt;
    cek_status st = plan_make((cuda_dev *)head, request, plan, out);
    if (st) {
        free(plan);
        return st;
    }
    out->plan = plan;
    out->workspace_bytes = plan->workspace_bytes;
    algorithm_tell(plan, out);
    return CEK_OK;
}

static void plan_free(cek_dev *dev, cek__gpu_plan *plan)
{
    (void)dev;
    free(plan);
}

/* --- calls ------------------------------------------------------------------------------------ */

static void *address(cek_ref ref)
{
    return (void *)(uintptr_t)cek__cuda_address(ref);
}

static cek_status call(cek_queue *queue, const cek__gpu_plan *plan, const cek_ref *refs)
{
    cuda_dev *dev = queue->dev;
    const cek__cublaslt *lt = plan->lt;
    const float one = 1.0f;
    lt_matmul matmul = plan->matmul;
    lt_matrix a = plan->a, b = plan->b, c = plan->c;
    void *result = address(refs[CEK_GEMM_C]);
    int error = 0;
    cek_status st = cek__cuda_enter(dev, "op_run");
    if (st)
        return st;
    if (plan->vector != CEK__GPU_NOTHING) {
        void *vector = address(refs[plan->vector]);
        error = lt->MatmulDescSetAttribute(&matmul, LT_MATMUL_BIAS_POINTER, &vector, sizeof vector);
    }
    if (!error)
        error = lt->Matmul(plan->handle, &matmul, &one, address(refs[CEK_GEMM_B]), &b, address(refs[CEK_GEMM_A]), &a,
                           &plan->beta, result, &c, result, &c, &plan->algo, address(refs[CEK_GEMM_PACKED + 1]),
                           plan->workspace_bytes, queue->stream);
    cek__cuda_leave(dev);
    return error ? lt_fail(dev, lt, "op_run", "cublasLtMatmul", error) : CEK_OK;
}

const cek__gpu_provider cek__cublaslt_provider = {
    .name = "cublaslt",
    .offer = offer,
    .plan_free = plan_free,
    .call = call,
    .version = version,
};
