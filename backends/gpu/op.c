/* SPDX-License-Identifier: MIT
 *
 * op.c - operations once they are lowered: launched step by step at every run.
 *
 * A step's kernel object carries its arguments from setting them to the launch, so runs of one
 * operation take turns for that long.
 */
#include <stdlib.h>

#include "backends/gpu/op.h"

/* --- the handle ------------------------------------------------------------------------------- */

cek_status cek__gpu_op_make(cek_dev *dev, const cek_op_desc *desc, cek_op **out)
{
    const cek_host *host = &dev->instance->host;
    *out = NULL;
    cek_op *op = calloc(1, sizeof *op);
    if (!op)
        return cek__host_fail(host, CEK_OUT_OF_MEMORY, "op_create: no memory for the handle");
    op->dev = dev;
    pthread_mutex_init(&op->lock, NULL);
    cek_status st = cek__request_init(host, desc, &op->request);
    if (st) {
        cek__gpu_op_destroy(op);
        return st;
    }
    *out = op;
    return CEK_OK;
}

void cek__gpu_op_clear(cek_op *op)
{
    for (uint32_t i = 0; i < op->step_count; i++) {
        cek__gpu_step *step = &op->steps[i];
        if (step->kernel)
            op->dev->driver->kernel_free(op->dev, step->kernel);
        else
            step->provider->plan_free(op->dev, step->plan);
    }
    op->step_count = 0;
    op->failure = CEK_OK;
    op->info = (cek_op_info){ .algorithm = "one launch per step" };
}

void cek__gpu_op_destroy(cek_op *op)
{
    if (!op)
        return;
    cek__gpu_op_clear(op);
    free(op->steps);
    cek__request_free(&op->request);
    pthread_mutex_destroy(&op->lock);
    free(op);
}

/* --- run -------------------------------------------------------------------------------------- */

/* clang-format off */
static void refs_resolve(const cek__gpu_step *step, const cek_ref *operands, cek_ref workspace, cek_ref *refs)
{
    for (uint32_t i = 0; i < step->buffer_count; i++) {
        const cek__gpu_place *place = &step->buffers[i];
        refs[i] = place->slot == CEK__GPU_NOTHING ? (cek_ref){ NULL, 0 }
                : place->slot == CEK__GPU_WORKSPACE ? workspace : operands[place->slot];
        refs[i].offset += place->offset;
    }
}
/* clang-format on */

cek_status cek__gpu_steps_run(cek_queue *queue, const cek_op *op, const cek_ref *operands, cek_ref workspace)
{
    const cek__gpu_driver *driver = op->dev->driver;
    cek_ref refs[CEK__GPU_BUFFERS];
    cek_status st = CEK_OK;
    for (uint32_t i = 0; !st && i < op->step_count; i++) {
        const cek__gpu_step *step = &op->steps[i];
        refs_resolve(step, operands, workspace, refs);
        st = step->kernel ? driver->launch(queue, step, refs) : step->provider->call(queue, step->plan, refs);
        if (st && i) /* half an operation is on its way: the queue's contents are no longer what anyone asked for */
            driver->queue_fail(queue, st, "op_run: only a part of an operation could be launched");
    }
    return st;
}

static cek_status operands_check(const cek_dev *dev, const char *call, const cek_op *op, const cek_ref *operands,
                                 uint32_t count, cek_ref workspace)
{
    const cek_host *host = &dev->instance->host;
    if (op->dev != dev)
        return cek__host_fail(host, CEK_INVALID, "%s: the operation is of another device", call);
    return cek__request_operands(host, &op->request, operands, count, workspace, op->info.workspace_bytes,
                                 cek__gpu_mem_bytes, dev);
}

cek_status cek__gpu_op_run(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count,
                           cek_ref workspace)
{
    const cek__gpu_driver *driver = op->dev->driver;
    cek_status st = driver->queue_ready(queue, "op_run");
    if (!st)
        st = operands_check(driver->queue_dev(queue), "op_run", op, operands, count, workspace);
    if (st)
        return st;
    pthread_mutex_t *lock = &((cek_op *)op)->lock;
    pthread_mutex_lock(lock);
    st = cek__gpu_steps_run(queue, op, operands, workspace);
    pthread_mutex_unlock(lock);
    return st;
}

cek_status cek__gpu_op_steps(cek_dev *dev, const char *call, const cek_op *op, const cek_ref *operands, uint32_t count,
                             cek_ref workspace, cek__gpu_step_fn *each, void *user)
{
    cek_ref refs[CEK__GPU_BUFFERS];
    cek_status st = operands_check(dev, call, op, operands, count, workspace);
    for (uint32_t i = 0; !st && i < op->step_count; i++) {
        refs_resolve(&op->steps[i], operands, workspace, refs);
        st = each(user, &op->steps[i], refs);
    }
    return st;
}

cek_status cek__gpu_op_prepack(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count,
                               cek_ref packed)
{
    (void)operands, (void)count, (void)packed;
    const cek__gpu_driver *driver = op->dev->driver;
    cek_status st = driver->queue_ready(queue, "op_prepack");
    return st ? st
              : cek__host_fail(&op->dev->instance->host, CEK_INVALID,
                               "op_prepack: the operation was not made with CEK_OP_PREPACKED");
}
