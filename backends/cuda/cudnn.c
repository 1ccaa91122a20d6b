/* SPDX-License-Identifier: MIT
 *
 * cudnn.c - convolutions by cuDNN: the library, found at run time, its handles, and the calls of plans that
 * cudnn_plan.c makes and cudnn_time.c chooses from.
 *
 * One handle per device, made with its first operation: a handle carries a stream, so calls take turns for as long as
 * it takes to enqueue one; nothing is left to make while a graph is captured. Addresses go to cuDNN in a descriptor
 * of their own, which is kept until they change: in training they do not.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common/hash.h"
#include "backends/cuda/cuda.h"
#include "backends/cuda/cudnn.h"
#include "backends/gpu/providers.h"

#define MAJOR 9

/* --- the library ----------------------------------------------------------------------------------------------- */

cek__cudnn *cek__cudnn_load(const cek_host *host)
{
    static const char *const names[] = { "libcudnn.so.9", NULL };
    char path[CEK__TEXT_BYTES];
    if (cek__gpu_provider_hidden(host, &cek__cuda_driver, &cek__cudnn_provider))
        return NULL;
    cek__cudnn *dnn = calloc(1, sizeof *dnn);
    if (dnn)
        dnn->library = cek__cuda_library_open(host, names, path, sizeof path);
    if (!dnn || !dnn->library) {
        if (dnn)
            cek__host_log(host, CEK_LOG_INFO, "no cuDNN: %s", path);
        free(dnn);
        return NULL;
    }
    const char *missing = NULL;
#define MEMBER_FIND(NAME, RESULT, PARAMETERS)                  \
    *(void **)&dnn->NAME = dlsym(dnn->library, "cudnn" #NAME); \
    missing = dnn->NAME ? missing : "cudnn" #NAME;
    CEK__CUDNN_FUNCTIONS(MEMBER_FIND)
#undef MEMBER_FIND
    unsigned version = missing ? 0 : (unsigned)dnn->GetVersion(); /* 91900 is 9.19.0 */
    if (missing)
        cek__host_log(host, CEK_LOG_WARN, "%s has no %s and is left alone", path, missing);
    else if (version / 10000 != MAJOR)
        cek__host_log(host, CEK_LOG_WARN, "%s says that it is version %u of cuDNN, not one of %u, and is left alone",
                      path, version, MAJOR);
    if (missing || version / 10000 != MAJOR) {
        free(dnn);
        return NULL;
    }
    snprintf(dnn->version, sizeof dnn->version, "cuDNN %u.%u.%u", version / 10000, version % 10000 / 100,
             version % 100);
    cek__host_log(host, CEK_LOG_INFO, "%s: %s", path, dnn->version);
    return dnn;
}

static const cek__cudnn *library_get(cek_instance *head)
{
    cuda_instance *instance = (cuda_instance *)head;
    pthread_mutex_lock(&instance->lock);
    if (!instance->cudnn_sought)
        instance->cudnn = cek__cudnn_load(&head->host);
    instance->cudnn_sought = true;
    pthread_mutex_unlock(&instance->lock);
    return instance->cudnn;
}

void cek__cudnn_free(cek__cudnn *dnn)
{
    free(dnn);
}

static const char *version(cek_instance *instance)
{
    const cek__cudnn *dnn = library_get(instance);
    return dnn ? dnn->version : "";
}

/* Under cudnn_lock, in the device's context. A library that does not start on this device is not asked again. */
static cek_status handle_get(cuda_dev *dev, const cek__cudnn *dnn)
{
    if (dev->cudnn_handle)
        return CEK_OK;
    if (dev->cudnn_failed)
        return CEK_UNSUPPORTED;
    cudnnStatus_t error = dnn->Create((cudnnHandle_t *)&dev->cudnn_handle);
    if (!error)
        return CEK_OK;
    dev->cudnn_handle = NULL;
    dev->cudnn_failed = true;
    cek__host_log(&dev->head.instance->host, CEK_LOG_WARN,
                  "%s does not start on device %u (cudnnCreate: %s (%u)): our own kernels do convolutions",
                  dnn->version, dev->head.index, dnn->GetErrorString(error), error);
    return CEK_UNSUPPORTED;
}

void cek__cudnn_device_close(cuda_dev *dev)
{
    cek__cudnn_choices_free(dev);
    if (!dev->cudnn_handle || cek__latched(&dev->head.lost) || cek__cuda_enter(dev, "device_close"))
        return;
    (void)library_get(dev->head.instance)->Destroy(dev->cudnn_handle);
    cek__cuda_leave(dev);
}

/* What is told of its old stream when it gets another may use that: it must be alive. */
void cek__cudnn_queue_destroy(cuda_dev *dev, CUstream stream)
{
    pthread_mutex_lock(&dev->cudnn_lock);
    if (dev->cudnn_stream == stream) {
        (void)library_get(dev->head.instance)->SetStream(dev->cudnn_handle, NULL);
        dev->cudnn_stream = NULL;
    }
    pthread_mutex_unlock(&dev->cudnn_lock);
}

/* --- plans ----------------------------------------------------------------------------------------------------- */

cek_status cek__cudnn_plan_from(cek_dev *head, const struct cek__cudnn *dnn, const cek__request *request,
                                uint32_t leave, cek__cudnn_place *place, cek__gpu_plan **out)
{
    cuda_dev *dev = (cuda_dev *)head;
    *out = NULL;
    cek__gpu_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return cek__host_fail(&head->instance->host, CEK_OUT_OF_MEMORY, "op_create: no memory for a plan of cuDNN");
    plan->dnn = dnn;
    plan->workspace_slot = request->slot_count;
    cek_status st = cek__cuda_enter(dev, "op_create");
    if (!st) {
        pthread_mutex_lock(&dev->cudnn_lock);
        st = handle_get(dev, dnn);
        const cek__cudnn_target target = { .handle = dev->cudnn_handle };
        if (!st)
            st = cek__cudnn_plan_next(dnn, &target, request, leave, place, &plan->plan);
        pthread_mutex_unlock(&dev->cudnn_lock);
        cek__cuda_leave(dev);
    }
    if (st) {
        free(plan);
        return st;
    }
    *out = plan;
    return CEK_OK;
}

static bool is_convolution(uint32_t kind)
{
    return kind == CEK_OP_CONV_FORWARD || kind == CEK_OP_CONV_BACKWARD_DATA || kind == CEK_OP_CONV_BACKWARD_WEIGHTS;
}

static bool is_inexact(const cek__cudnn_plan *plan)
{
    return plan->notes >> CUDNN_NUMERICAL_NOTE_WINOGRAD & 1 ||
           plan->notes >> CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4 & 1 ||
           plan->notes >> CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6 & 1;
}

static cek_status offer(cek_dev *head, const cek__request *request, cek__gpu_offer *out)
{
    const cek__cudnn *dnn = is_convolution(request->desc.op.kind) ? library_get(head->instance) : NULL;
    if (!dnn)
        return CEK_UNSUPPORTED;
    cek__gpu_plan *plan;
    cek_status st = cek__cudnn_fastest(head, dnn, request, out->leave, &plan);
    if (st)
        return st;
    out->plan = plan;
    out->does = plan->plan.does;
    out->workspace_bytes = plan->plan.workspace_bytes;
    out->info_flags = is_inexact(&plan->plan) ? CEK_OP_INFO_INEXACT : 0;
    out->numeric_id = cek__hash_number(cek__hash_text(plan->plan.choice, dnn->version), plan->plan.does);
    snprintf(out->algorithm, sizeof out->algorithm, "%.30s, engine %lld", dnn->version, (long long)plan->plan.engine);
    return CEK_OK;
}

/* On a lost device cuDNN is left with what it holds. */
void cek__cudnn_plan_free(cek_dev *head, cek__gpu_plan *plan)
{
    cuda_dev *dev = (cuda_dev *)head;
    if (!cek__latched(&head->lost) && !cek__cuda_enter(dev, "op_destroy")) {
        pthread_mutex_lock(&dev->cudnn_lock);
        if (plan->pack)
            (void)plan->dnn->BackendDestroyDescriptor(plan->pack);
        cek__cudnn_set_free(&plan->plan.set);
        pthread_mutex_unlock(&dev->cudnn_lock);
        cek__cuda_leave(dev);
    }
    free(plan);
}

/* --- calls ----------------------------------------------------------------------------------------------------- */

static void *address(cek_ref ref)
{
    return (void *)(uintptr_t)cek__cuda_address(ref);
}

/* Under cudnn_lock: plan->pack holds these addresses afterwards. */
static cudnnStatus_t pack_make(cek__gpu_plan *plan, void *const *addresses, void *workspace)
{
    const cek__cudnn_plan *made = &plan->plan;
    const size_t bytes = made->slot_count * sizeof *addresses;
    if (plan->pack && plan->workspace == workspace && !memcmp(plan->addresses, addresses, bytes))
        return CUDNN_STATUS_SUCCESS;
    cek__cudnn_set set = { .dnn = plan->dnn };
    int64_t numbers[4];
    for (uint32_t i = 0; i < made->slot_count; i++)
        numbers[i] = made->slots[i] + 1;
    cudnnBackendDescriptor_t pack = cek__cudnn_make(&set, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    cek__cudnn_tell(&set, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, made->slot_count, numbers);
    cek__cudnn_tell(&set, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, made->slot_count,
                    addresses);
    cek__cudnn_tell(&set, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    cek__cudnn_finish(&set, pack);
    if (set.error) {
        cek__cudnn_set_free(&set);
        return set.error;
    }
    if (plan->pack)
        (void)plan->dnn->BackendDestroyDescriptor(plan->pack);
    plan->pack = pack;
    plan->workspace = workspace;
    memcpy(plan->addresses, addresses, bytes);
    return CUDNN_STATUS_SUCCESS;
}

static cek_status dnn_fail(cuda_dev *dev, const cek__cudnn *dnn, const char *function, cudnnStatus_t error)
{
    bool memory = error == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                  error == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    return cek__host_fail(&dev->head.instance->host, memory ? CEK_OUT_OF_MEMORY : CEK_INTERNAL, "op_run: %s: %s (%u)",
                          function, dnn->GetErrorString(error), error);
}

cek_status cek__cudnn_call(cek_queue *queue, const cek__gpu_plan *of, const cek_ref *refs)
{
    cek__gpu_plan *plan = (cek__gpu_plan *)of; /* of which only the pack changes, under the lock */
    cuda_dev *dev = queue->dev;
    const cek__cudnn *dnn = plan->dnn;
    const char *function = "cudnnSetStream";
    void *addresses[4];
    for (uint32_t i = 0; i < plan->plan.slot_count; i++)
        addresses[i] = address(refs[plan->plan.slots[i]]);
    void *workspace = address(refs[plan->workspace_slot]);
    cek_status st = cek__cuda_enter(dev, "op_run");
    if (st)
        return st;
    pthread_mutex_lock(&dev->cudnn_lock);
    cudnnStatus_t error = dnn->SetStream(dev->cudnn_handle, queue->stream);
    if (!error) {
        dev->cudnn_stream = queue->stream;
        function = "a variant pack of cuDNN's";
        error = pack_make(plan, addresses, workspace);
    }
    if (!error) {
        function = "cudnnBackendExecute";
        error = dnn->BackendExecute(dev->cudnn_handle, plan->plan.plan, plan->pack);
    }
    pthread_mutex_unlock(&dev->cudnn_lock);
    cek__cuda_leave(dev);
    return error ? dnn_fail(dev, dnn, function, error) : CEK_OK;
}

const cek__gpu_provider cek__cudnn_provider = {
    .name = "cudnn",
    .offer = offer,
    .plan_free = cek__cudnn_plan_free,
    .call = cek__cudnn_call,
    .version = version,
};
