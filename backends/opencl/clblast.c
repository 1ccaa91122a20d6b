/* SPDX-License-Identifier: MIT
 *
 * clblast.c - products in f32 by CLBlast, where it is installed: found at run time, declared here, never linked.
 *
 * Knows CLBlast and OpenCL; nothing of kernels of our own, nothing of when it is worth its while
 * (the tuner's business). Half-precision products are left alone: CLBlast adds them up in half
 * precision.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common/hash.h"
#include "backends/opencl/opencl.h"

#define LIBRARY_A_CYCLE 8 /* multiply-adds of a compute unit, at least */
#define LEFT_MOST 16      /* closed devices whose kernels are still kept */

/* --- the library ------------------------------------------------------------------------------ */

enum { ROW_MAJOR = 101, TRANSPOSE_NO = 111, TRANSPOSE_YES = 112 };
typedef int sgemm_fn(int layout, int a_transpose, int b_transpose, size_t m, size_t n, size_t k, float alpha, cl_mem a,
                     size_t a_offset, size_t a_ld, cl_mem b, size_t b_offset, size_t b_ld, float beta, cl_mem c,
                     size_t c_offset, size_t c_ld, cl_command_queue *queue, cl_event *event, cl_mem scratch);
typedef int sgemm_scratch_fn(int layout, int a_transpose, int b_transpose, size_t m, size_t n, size_t k,
                             size_t a_offset, size_t a_ld, size_t b_offset, size_t b_ld, size_t c_offset, size_t c_ld,
                             cl_command_queue *queue, size_t *bytes);
typedef int clear_fn(void);

struct cek__clblast {
    void *library;
    sgemm_fn *sgemm;
    sgemm_scratch_fn *sgemm_scratch;
    clear_fn *clear;
    char version[64];
};

/* CLBlast cannot be asked for its version, but its file is called by it. */
static void version_tell(cek__clblast *clblast)
{
    Dl_info info;
    char path[PATH_MAX];
    const char *number = "";
    if (dladdr((void *)clblast->sgemm, &info) && info.dli_fname && realpath(info.dli_fname, path)) {
        const char *so = strstr(strrchr(path, '/'), ".so.");
        number = so ? so + 4 : "";
    }
    snprintf(clblast->version, sizeof clblast->version, "CLBlast%s%.40s", *number ? " " : "", number);
}

static cek__clblast *library_load(const cek_host *host)
{
    cek__clblast *clblast = calloc(1, sizeof *clblast);
    if (!clblast)
        return NULL;
    clblast->library = dlopen("libclblast.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!clblast->library) {
        cek__host_log(host, CEK_LOG_DEBUG, "no CLBlast: %s", dlerror());
        free(clblast);
        return NULL;
    }
    *(void **)&clblast->sgemm = dlsym(clblast->library, "CLBlastSgemmWithTempBuffer");
    *(void **)&clblast->sgemm_scratch = dlsym(clblast->library, "CLBlastSGemmTempBufferSize");
    *(void **)&clblast->clear = dlsym(clblast->library, "CLBlastClearCache");
    if (!clblast->sgemm || !clblast->sgemm_scratch || !clblast->clear) {
        cek__host_log(host, CEK_LOG_WARN, "CLBlast is older than 1.5 and is left alone");
        free(clblast); /* the library stays: closing one that started threads is not safe */
        return NULL;
    }
    version_tell(clblast);
    return clblast;
}

static cek__clblast *library_get(cek_instance *head)
{
    opencl_instance *instance = (opencl_instance *)head;
    pthread_mutex_lock(&instance->clblast_lock);
    if (!instance->clblast_sought)
        instance->clblast = library_load(&head->host);
    instance->clblast_sought = true;
    pthread_mutex_unlock(&instance->clblast_lock);
    return instance->clblast;
}

void cek__clblast_free(cek__clblast *clblast)
{
    free(clblast);
}

/* CLBlast keeps what it compiled for all devices of the process, and with it their contexts, until it is told to forget
 * all of it. While others use it a closed device's share stays: its context is kept, so that no other takes its place.
 * What is left is forgotten with the last one, or when it becomes much. */
static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users, left;

static void use_begin(opencl_dev *dev)
{
    if (atomic_exchange(&dev->clblast_used, true))
        return;
    pthread_mutex_lock(&users_lock);
    users++;
    pthread_mutex_unlock(&users_lock);
}

void cek__clblast_device_close(opencl_dev *dev)
{
    if (!atomic_load(&dev->clblast_used))
        return;
    pthread_mutex_lock(&users_lock);
    users--;
    left++;
    if (!cek__latched(&dev->head.lost) && (!users || left > LEFT_MOST)) {
        library_get(dev->head.instance)->clear();
        left = 0;
    }
    pthread_mutex_unlock(&users_lock);
}

static const char *version(cek_instance *instance)
{
    const cek__clblast *clblast = library_get(instance);
    return clblast ? clblast->version : "";
}

/* CLBlast passes on what OpenCL says, and has numbers of its own below. */
static cek_status clblast_fail(opencl_dev *dev, const char *call, int error)
{
    if (error > -1024)
        return cek__opencl_fail(dev, call, "CLBlastSgemmWithTempBuffer", error);
    return cek__host_fail(&dev->head.instance->host, CEK_INTERNAL, "%s: CLBlastSgemmWithTempBuffer: CLBlast status %d",
                          call, error);
}

/* --- plans ------------------------------------------------------------------------------------ */

struct cek__gpu_plan {
    const cek__clblast *clblast;
    size_t m, n, k, outer, batch;
    size_t lda, ldb, ldc, stride_a, stride_b, stride_c, outer_a, outer_b, outer_c;
    int a_transpose, b_transpose;
    float beta;
    size_t scratch_bytes, scratch_align;
};

/* The scratch memory that any offsets of the operands may need: none of them zero. */
static cek_status scratch_ask(opencl_dev *dev, cek__gpu_plan *plan)
{
    cl_uint bits = 0;
    cek_queue *queue;
    cek_status st = cek__opencl_own_take(dev, &queue);
    if (st)
        return st;
    int error = plan->clblast->sgemm_scratch(ROW_MAJOR, plan->a_transpose, plan->b_transpose, plan->m, plan->n, plan->k,
                                             64, plan->lda, 64, plan->ldb, 64, plan->ldc, &queue->queue,
                                             &plan->scratch_bytes);
    cek__opencl_own_give(dev, CEK_OK);
    if (error)
        return clblast_fail(dev, "op_create", error);
    clGetDeviceInfo(dev->id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, NULL);
    plan->scratch_align = bits > 8 * CEK_ALIGNMENT ? bits / 8 : CEK_ALIGNMENT;
    return CEK_OK;
}

/* A bias or an activation is for our own kernels to add; accumulation alone is beta. */
static uint32_t does(const cek__request *request)
{
    bool plain = !cek__request_given(request, CEK_GEMM_BIAS) && !request->epilogue.activation &&
                 !request->epilogue.act_grad;
    return plain ? CEK__GPU_DOES_EPILOGUE : 0;
}

static cek_status offer(cek_dev *head, const cek__request *request, cek__gpu_offer *out)
{
    opencl_dev *dev = (opencl_dev *)head;
    const cek_gemm_desc *desc = &request->desc.gemm;
    if (desc->op.kind != CEK_OP_GEMM || desc->a_type != CEK_F32 || desc->c_type != CEK_F32 || !desc->k)
        return CEK_UNSUPPORTED;
    /* The library cuts nothing, and a watchdog may end what takes too long; our own kernels are cut. */
    const double most = LIBRARY_A_CYCLE * (double)head->traits.launch_work;
    if (most > 0 && (double)desc->m * (double)desc->n * (double)desc->k > most)
        return CEK_UNSUPPORTED;
    const cek__clblast *clblast = library_get(head->instance);
    if (!clblast)
        return CEK_UNSUPPORTED;
    cek__gpu_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return cek__host_fail(&head->instance->host, CEK_OUT_OF_MEMORY, "op_create: no memory for a plan of CLBlast");
    out->does = does(request);
    *plan = (cek__gpu_plan){
        .clblast = clblast,
        .m = desc->m,
        .n = desc->n,
        .k = desc->k,
        .outer = desc->outer,
        .batch = desc->batch,
        .lda = (size_t)desc->lda,
        .ldb = (size_t)desc->ldb,
        .ldc = (size_t)desc->ldc,
        .stride_a = (size_t)desc->stride_a,
        .stride_b = (size_t)desc->stride_b,
        .stride_c = (size_t)desc->stride_c,
        .outer_a = (size_t)desc->outer_a,
        .outer_b = (size_t)desc->outer_b,
        .outer_c = (size_t)desc->outer_c,
        .a_transpose = desc->trans & CEK_GEMM_TRANS_A ? TRANSPOSE_YES : TRANSPOSE_NO,
        .b_transpose = desc->trans & CEK_GEMM_TRANS_B ? TRANSPOSE_YES : TRANSPOSE_NO,
        .beta = out->does && cek__request_accumulates(request, CEK_GEMM_C) ? 1.0f : 0.0f,
    };
    use_begin(dev);
    cek_status st = scratch_ask(dev, plan);
    if (st) {
        free(plan);
        return st;
    }
    out->plan = plan;
    out->workspace_bytes = plan->scratch_bytes ? plan->scratch_bytes + plan->scratch_align : 0;
    out->numeric_id = cek__hash_text(CEK__HASH_START, clblast->version);
    snprintf(out->algorithm, sizeof out->algorithm, "%.60s", clblast->version);
    return CEK_OK;
}

static void plan_free(cek_dev *dev, cek__gpu_plan *plan)
{
    (void)dev;
    free(plan);
}

/* The workspace as a buffer of its own: CLBlast takes no offset for it. It allocates nothing, and
 * lives as long as the kernels that use it. */
static cek_status scratch_make(opencl_dev *dev, const cek__gpu_plan *plan, cek_ref workspace, cl_mem *out)
{
    cl_int error;
    *out = NULL;
    if (!plan->scratch_bytes)
        return CEK_OK;
    uint64_t origin = (workspace.offset + plan->scratch_align - 1) / plan->scratch_align * plan->scratch_align;
    const cl_buffer_region region = { origin, plan->scratch_bytes };
    *out = clCreateSubBuffer(((const opencl_mem *)workspace.mem)->buffer, CL_MEM_READ_WRITE,
                             CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
    return *out ? CEK_OK : cek__opencl_fail(dev, "op_run", "clCreateSubBuffer", error);
}

static cek_status call(cek_queue *queue, const cek__gpu_plan *plan, const cek_ref *refs)
{
    cl_mem scratch, a = ((const opencl_mem *)refs[CEK_GEMM_A].mem)->buffer,
                    b = ((const opencl_mem *)refs[CEK_GEMM_B].mem)->buffer;
    cl_mem c = ((const opencl_mem *)refs[CEK_GEMM_C].mem)->buffer;
    size_t a_offset = refs[CEK_GEMM_A].offset / sizeof(float), b_offset = refs[CEK_GEMM_B].offset / sizeof(float);
    size_t c_offset = refs[CEK_GEMM_C].offset / sizeof(float);
    cek_status st = scratch_make(queue->dev, plan, refs[CEK_GEMM_PACKED + 1], &scratch);
    for (size_t i = 0; !st && i < plan->outer * plan->batch; i++) {
        const size_t outer = i / plan->batch, inner = i % plan->batch;
        cl_event event = NULL;
        if (!cek__ledger_reserve(queue->ledger)) {
            st = cek__host_fail(&queue->dev->head.instance->host, CEK_OUT_OF_MEMORY,
                                "op_run: no memory to remember one more product");
            if (i)
                cek__opencl_queue_fail(queue, st, "op_run: only a part of the products could be enqueued");
            break;
        }
        int error = plan->clblast->sgemm(ROW_MAJOR, plan->a_transpose, plan->b_transpose, plan->m, plan->n, plan->k,
                                         1.0f, a, a_offset + outer * plan->outer_a + inner * plan->stride_a, plan->lda,
                                         b, b_offset + outer * plan->outer_b + inner * plan->stride_b, plan->ldb,
                                         plan->beta, c, c_offset + outer * plan->outer_c + inner * plan->stride_c,
                                         plan->ldc, &queue->queue, &event, scratch);
        if (error) {
            st = clblast_fail(queue->dev, "op_run", error);
            /* Of several kernels some may be on their way. */
            cek__opencl_queue_fail(queue, st, "op_run: CLBlast could not enqueue all of a product");
        } else {
            cek__opencl_enqueued(queue, event, "CLBlastSgemmWithTempBuffer", NULL);
        }
    }
    if (scratch)
        clReleaseMemObject(scratch);
    return st;
}

const cek__gpu_provider cek__clblast_provider = {
    .name = "clblast",
    .offer = offer,
    .plan_free = plan_free,
    .call = call,
    .version = version,
};
