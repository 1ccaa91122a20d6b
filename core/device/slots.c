/* slots.c - negotiation of a plugin's table: what table.h makes of it, and functions that stand in for absent slots. */
#include "core/device/slots.h"

#include <stdio.h>
#include <string.h>

#include "core/device/call.h"
#include "core/table/table.h"

/* ---- stand-ins ---- */

/* The reason is told as a plugin would, so that it stays the text of the failure. */
static cek_status absent(const char *slot)
{
    char text[64];

    snprintf(text, sizeof text, "the plugin has no %s", slot);
    cek__call_told(CEK_UNSUPPORTED, text);
    return CEK_UNSUPPORTED;
}

static cek_status absent_mem_map(cek_mem *mem, uint32_t access, void **out)
{
    (void)mem, (void)access;
    *out = NULL;
    return absent("mem_map");
}

static cek_status absent_mem_unmap(cek_mem *mem)
{
    (void)mem;
    return absent("mem_unmap");
}

static cek_status absent_host_alloc(cek_dev *dev, uint64_t bytes, void **out)
{
    (void)dev, (void)bytes;
    *out = NULL;
    return absent("host_alloc");
}

static void absent_host_free(cek_dev *dev, void *ptr)
{
    (void)dev, (void)ptr;
}

static cek_status absent_op_create(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out)
{
    (void)dev, (void)desc, (void)info;
    *out = NULL;
    return absent("op_create");
}

static void absent_op_destroy(cek_op *op)
{
    (void)op;
}

static cek_status absent_op_prepack(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count,
                                    cek_ref packed)
{
    (void)queue, (void)op, (void)operands, (void)count, (void)packed;
    return absent("op_prepack");
}

static cek_status absent_op_run(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count,
                                cek_ref workspace)
{
    (void)queue, (void)op, (void)operands, (void)count, (void)workspace;
    return absent("op_run");
}

static cek_status absent_cmdbuf_create(cek_dev *dev, const cek_cmd *cmds, uint32_t count, uint32_t cmd_size,
                                       cek_cmdbuf **out)
{
    (void)dev, (void)cmds, (void)count, (void)cmd_size;
    *out = NULL;
    return absent("cmdbuf_create");
}

static void absent_cmdbuf_destroy(cek_cmdbuf *cmdbuf)
{
    (void)cmdbuf;
}

static cek_status absent_cmdbuf_run(cek_queue *queue, cek_cmdbuf *cmdbuf)
{
    (void)queue, (void)cmdbuf;
    return absent("cmdbuf_run");
}

static cek_status absent_device_times(cek_dev *dev, cek_device_times *times)
{
    (void)dev, (void)times;
    return absent("device_times");
}

static cek_status absent_host_register(cek_dev *dev, void *ptr, uint64_t bytes)
{
    (void)dev, (void)ptr, (void)bytes;
    return absent("host_register");
}

static void absent_host_unregister(cek_dev *dev, void *ptr)
{
    (void)dev, (void)ptr;
}

static cek_status absent_mem_import(cek_dev *dev, const cek_foreign *foreign, cek_mem **out)
{
    (void)dev, (void)foreign;
    *out = NULL;
    return absent("mem_import");
}

static cek_status absent_mem_export(cek_mem *mem, cek_foreign *out)
{
    (void)mem, (void)out;
    return absent("mem_export");
}

static cek_status absent_device_sensors(cek_instance *instance, uint32_t index, cek_device_sensors *out)
{
    (void)instance, (void)index, (void)out;
    return absent("device_sensors");
}

/* ---- negotiation ---- */

cek_status cek__slots_negotiate(const cek_plugin *theirs, cek_plugin *out)
{
    char error[CEK__TABLE_TEXT_BYTES];

    if (!cek__table_take(theirs, out, error, sizeof error))
        return cek__fail(CEK_BAD_PLUGIN, "%s", error);
#define STAND_IN(slot) out->slot = out->slot != NULL ? out->slot : absent_##slot
    STAND_IN(mem_map);
    STAND_IN(mem_unmap);
    STAND_IN(host_alloc);
    STAND_IN(host_free);
    STAND_IN(op_create);
    STAND_IN(op_destroy);
    STAND_IN(op_prepack);
    STAND_IN(op_run);
    STAND_IN(cmdbuf_create);
    STAND_IN(cmdbuf_destroy);
    STAND_IN(cmdbuf_run);
    STAND_IN(device_times);
    STAND_IN(host_register);
    STAND_IN(host_unregister);
    STAND_IN(mem_import);
    STAND_IN(mem_export);
    STAND_IN(device_sensors);
#undef STAND_IN
    return CEK_OK;
}
