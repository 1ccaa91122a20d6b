/* ops.c - operations and command buffers: made by a device, run on its streams.
 *
 * Must not know: what an operation computes. */
#include "core/device/call.h"
#include "core/device/stream.h"

cek_status cek__op_make(cek_device *device, const cek_op_desc *desc, cek_op_info *info, cek_op **out)
{
    cek_status st;
    cek_dev *dev;

    *out = NULL;
    CEK_TRY(cek__device_open(device, &dev));
    CEK_TRY(CEK__CALL(device, op_create, dev, desc, info, out));
    if (*out == NULL)
        CEK_FAIL(CEK_BAD_PLUGIN, "%s: op_create succeeds without an operation", device->name);
    return CEK_OK;
out:
    *out = NULL;
    return st;
}

void cek__op_free(cek_device *device, cek_op *op)
{
    if (op != NULL)
        CEK__RELEASE(device, op_destroy, op);
}

cek_status cek_op_make(cek_device *device, const cek_op_desc *desc, cek_op_info *info, cek_op **out)
{
    cek_status st;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(device);
    CEK__NOT_NULL(desc);
    st = cek__op_make(device, desc, info, out);
    if (st == CEK_OK)
        cek__device_take(device);
    return st;
}

void cek_op_free(cek_device *device, cek_op *op)
{
    if (device == NULL || op == NULL)
        return;
    cek__op_free(device, op);
    cek__device_drop(device);
}

cek_status cek_stream_run(cek_stream *stream, const cek_op *op, const cek_ref *operands, uint32_t count,
                          cek_ref workspace)
{
    CEK__NOT_NULL(stream);
    CEK__NOT_NULL(op);
    CEK__NOT_NULL(operands);
    return CEK__STREAM_COMMAND(stream, op_run, op, operands, count, workspace);
}

cek_status cek_stream_prepack(cek_stream *stream, const cek_op *op, const cek_ref *operands, uint32_t count,
                              cek_ref packed)
{
    CEK__NOT_NULL(stream);
    CEK__NOT_NULL(op);
    CEK__NOT_NULL(operands);
    return CEK__STREAM_COMMAND(stream, op_prepack, op, operands, count, packed);
}

cek_status cek_commands_make(cek_device *device, const cek_cmd *commands, uint32_t count, cek_cmdbuf **out)
{
    cek_status st;
    cek_dev *dev;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(device);
    CEK__NOT_NULL(commands);
    CEK_TRY(cek__device_open(device, &dev));
    CEK_TRY(CEK__CALL(device, cmdbuf_create, dev, commands, count, sizeof *commands, out));
    if (*out == NULL)
        CEK_FAIL(CEK_BAD_PLUGIN, "%s: cmdbuf_create succeeds without a command buffer", device->name);
    cek__device_take(device);
    return CEK_OK;
out:
    *out = NULL;
    return st;
}

void cek_commands_free(cek_device *device, cek_cmdbuf *commands)
{
    if (device == NULL || commands == NULL)
        return;
    CEK__RELEASE(device, cmdbuf_destroy, commands);
    cek__device_drop(device);
}

cek_status cek_stream_run_commands(cek_stream *stream, cek_cmdbuf *commands)
{
    CEK__NOT_NULL(stream);
    CEK__NOT_NULL(commands);
    return CEK__STREAM_COMMAND(stream, cmdbuf_run, commands);
}
