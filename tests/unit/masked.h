/* masked.h - a device without all that devices may lack and training could use: activations and derivatives within
 * products and convolutions, command buffers.
 *
 * Header only. A table in front of the device's own answers CEK_UNSUPPORTED; one plugin's devices at a time. */
#ifndef CEK_TESTS_UNIT_MASKED_H
#define CEK_TESTS_UNIT_MASKED_H

#include "core/device/device.h"

static struct {
    cek_plugin table;
    cek_status (*create)(cek_dev *, const cek_op_desc *, cek_op_info *, cek_op **);
    int refused; /* fused operations */
} masked;

static inline cek_status masked_op_create(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out)
{
    *out = NULL;
    if (desc->epilogue && (desc->epilogue->activation || desc->epilogue->act_grad)) {
        masked.refused++;
        return CEK_UNSUPPORTED;
    }
    return masked.create(dev, desc, info, out);
}

static inline cek_status masked_cmdbuf_create(cek_dev *dev, const cek_cmd *cmds, uint32_t count, uint32_t cmd_size,
                                              cek_cmdbuf **out)
{
    (void)dev;
    (void)cmds;
    (void)count;
    (void)cmd_size;
    *out = NULL;
    return CEK_UNSUPPORTED;
}

static inline void device_mask(cek_device *device)
{
    masked.table = *device->plugin;
    masked.create = masked.table.op_create;
    masked.refused = 0;
    masked.table.op_create = masked_op_create;
    masked.table.cmdbuf_create = masked_cmdbuf_create;
    device->plugin = &masked.table;
}

#endif
