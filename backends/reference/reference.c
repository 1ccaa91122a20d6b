/* SPDX-License-Identifier: MIT
 *
 * reference.c - the oracle: one device that does every operation of plugin.h 1.0 in plain C, with sums in double.
 *
 * Clone this folder to write a backend. Everything but the operations comes from backends/host,
 * which suits any device that lives in host memory; a device with memory of its own replaces that
 * too. Owns instance, device and the choice of a `run` function. It is slow on purpose: no threads,
 * no blocking, nothing that a reader has to believe.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common/growth.h"
#include "backends/reference/reference.h"

static cek_status create(const cek_host *host, cek_instance **out)
{
    *out = NULL;
    cek_instance *instance = calloc(1, sizeof *instance);
    if (!instance)
        return CEK_OUT_OF_MEMORY;
    cek_status st = cek__host_instance_init(instance, host);
    if (st) {
        free(instance);
        return st;
    }
    *out = instance;
    return CEK_OK;
}

static void destroy(cek_instance *instance)
{
    if (!instance)
        return;
    cek__host_instance_fini(instance);
    free(instance);
}

static uint32_t device_count(cek_instance *instance)
{
    (void)instance;
    return 1;
}

/* Compiler and C library decide how a formula is rounded (the C library by exp, log and their like). */
static uint64_t numeric_id(void)
{
    uint64_t hash = cek__hash_text(CEK__HASH_START, "reference " PACKAGE_VERSION);
    hash = cek__hash_text(hash, __VERSION__);
    return cek__hash_text(hash, gnu_get_libc_version());
}

static cek_status index_check(cek_instance *instance, const char *call, uint32_t index)
{
    return index ? cek__host_fail(&instance->host, CEK_INVALID, "%s: device %u, there is one", call, index) : CEK_OK;
}

static cek_status device_info(cek_instance *instance, uint32_t index, cek_device_info *info)
{
    cek_device_info full = {
        .size = sizeof full,
        .kind = CEK_KIND_CPU,
        .flags = CEK_DEVICE_UNIFIED_MEMORY | CEK_DEVICE_ONLY_WHEN_NAMED | CEK_DEVICE_INLINE,
        .compute_units = 1,
        .types = 1u << CEK_F32 | 1u << CEK_F16 | 1u << CEK_BF16 | 1u << CEK_F64 | 1u << CEK_U8 | 1u << CEK_I32,
        .numeric_id = numeric_id(),
        .name = "plain C, one thread",
        .processor = "cpu",
        .reason = "it is the oracle, exact and slow",
    };
    cek_status st = index_check(instance, "device_info", index);
    if (st)
        return st;
    cek__host_memory(&full.free_bytes, &full.total_bytes);
    full.max_alloc_bytes = full.total_bytes;
    snprintf(full.driver, sizeof full.driver, "glibc %s", gnu_get_libc_version());
    return cek__struct_out(&instance->host, "device_info", info, &full, sizeof full);
}

static cek_status device_open(cek_instance *instance, uint32_t index, const cek_device_options *options, cek_dev **out)
{
    *out = NULL;
    cek_status st = index_check(instance, "device_open", index);
    if (st)
        return st;
    cek_dev *dev = calloc(1, sizeof *dev);
    if (!dev)
        return cek__host_fail(&instance->host, CEK_OUT_OF_MEMORY, "device_open: no memory for the handle");
    st = cek__host_device_init(dev, instance, index, options);
    if (st) {
        free(dev);
        return st;
    }
    *out = dev;
    return CEK_OK;
}

static void device_close(cek_dev *dev)
{
    if (!dev)
        return;
    cek__host_device_fini(dev);
    free(dev);
}

/* What to call for each kind. */
static const struct {
    cek__op_run_fn *run;
    void (*prepare)(cek_op *op);
    cek__op_prepack_fn *prepack;
} families[] = {
    [CEK_OP_GEMM] = { cek__reference_gemm, cek__reference_gemm_prepare, cek__reference_gemm_prepack },
    [CEK_OP_CONV_FORWARD] = { cek__reference_conv_forward, cek__reference_conv_prepare, cek__reference_conv_prepack },
    [CEK_OP_CONV_BACKWARD_DATA] = { cek__reference_conv_backward_data, cek__reference_conv_prepare, NULL },
    [CEK_OP_CONV_BACKWARD_WEIGHTS] = { cek__reference_conv_backward_weights, cek__reference_conv_prepare, NULL },
    [CEK_OP_POOL_FORWARD] = { cek__reference_pool_forward, cek__reference_pool_prepare, NULL },
    [CEK_OP_POOL_BACKWARD] = { cek__reference_pool_backward, cek__reference_pool_prepare, NULL },
    [CEK_OP_POINTWISE] = { cek__reference_pointwise, NULL, NULL },
    [CEK_OP_REDUCE] = { cek__reference_reduce, NULL, NULL },
    [CEK_OP_SOFTMAX] = { cek__reference_softmax, NULL, NULL },
    [CEK_OP_CROSS_ENTROPY] = { cek__reference_cross_entropy, NULL, NULL },
    [CEK_OP_SQUARED_ERROR] = { cek__reference_squared_error, NULL, NULL },
    [CEK_OP_DROPOUT] = { cek__reference_dropout, NULL, NULL },
    [CEK_OP_RANDOM] = { cek__reference_random, NULL, NULL },
    [CEK_OP_OPTIMIZER] = { cek__reference_optimizer, NULL, NULL },
    [CEK_OP_COPY] = { cek__reference_copy, NULL, NULL },
    [CEK_OP_ARG] = { cek__reference_arg, NULL, NULL },
    [CEK_OP_GATHER] = { cek__reference_gather, NULL, NULL },
    [CEK_OP_SCATTER_ADD] = { cek__reference_scatter_add, cek__reference_scatter_prepare, NULL },
};

static cek_status op_create(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out)
{
    *out = NULL;
    cek_op *op = calloc(1, sizeof *op);
    if (!op)
        return cek__host_fail(&dev->instance->host, CEK_OUT_OF_MEMORY, "op_create: no memory for the handle");
    cek_status st = cek__host_op_init(op, dev, desc);
    if (st) {
        free(op);
        return st;
    }
    uint32_t kind = op->request.desc.op.kind;
    op->run = families[kind].run;
    op->prepack = families[kind].prepack;
    op->info.numeric_id = cek__hash_number(numeric_id(), kind);
    snprintf(op->info.algorithm, sizeof op->info.algorithm, "plain loops, f64 sums");
    if (families[kind].prepare)
        families[kind].prepare(op);
    return cek__host_op_publish(op, info, out);
}

static const cek_plugin bare = {
    .create = create,
    .destroy = destroy,
    .device_count = device_count,
    .device_info = device_info,
    .device_open = device_open,
    .device_close = device_close,
    .device_status = cek__host_device_status,
    .device_memory = cek__host_device_memory,

    .mem_alloc = cek__host_mem_alloc,
    .mem_free = cek__host_mem_free,
    .mem_host_ptr = cek__host_mem_host_ptr,
    .mem_map = cek__host_mem_map,
    .mem_unmap = cek__host_mem_unmap,
    .host_alloc = cek__host_host_alloc,
    .host_free = cek__host_host_free,
    .host_register = cek__host_host_register,
    .host_unregister = cek__host_host_unregister,
    .mem_import = cek__host_mem_import,

    .queue_create = cek__host_queue_create,
    .queue_destroy = cek__host_queue_destroy,
    .queue_status = cek__host_queue_status,
    .queue_sync = cek__host_queue_sync,
    .upload = cek__host_upload,
    .download = cek__host_download,
    .copy = cek__host_copy_mem,
    .fill = cek__host_fill,
    .update = cek__host_update,

    .event_create = cek__host_event_create,
    .event_destroy = cek__host_event_destroy,
    .event_record = cek__host_event_record,
    .event_wait = cek__host_event_wait,
    .event_query = cek__host_event_query,
    .event_sync = cek__host_event_sync,
    .event_status = cek__host_event_status,
    .event_elapsed = cek__host_event_elapsed,

    .op_create = op_create,
    .op_destroy = cek__host_op_destroy,
    .op_prepack = cek__host_op_prepack,
    .op_run = cek__host_op_run,

    .cmdbuf_create = cek__host_cmdbuf_create,
    .cmdbuf_destroy = cek__host_cmdbuf_destroy,
    .cmdbuf_run = cek__host_cmdbuf_run,
};

#include "backends/common/nulls.h"

const cek_plugin cek__reference_plugin = {
    .size = sizeof cek__reference_plugin,
    .abi = CEK_ABI,
    .name = "reference",
    .version = PACKAGE_VERSION,
    .build = __VERSION__,
    .profile = CEK_PROFILE_TRAINING,
    CEK__DOORS,
    CEK__DOORS_MAP,
    CEK__DOORS_CMDBUF,
    CEK__DOORS_REGISTER,
    CEK__DOORS_IMPORT,
};
