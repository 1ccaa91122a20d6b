/* slots.c - negotiation of the vtable: sizes, versions, required and absent slots.
 *
 * Owns: the list of slots with who requires them, and the functions that stand in for absent ones. A plugin is code
 * of strangers: what can be checked before calling it is checked here. */
#include "core/device/slots.h"

#include <stddef.h>
#include <string.h>

enum { NEVER = CEK_PROFILE_TRAINING + 1 };
enum { TABLE_MAX = 1 << 16 }; /* bytes: a table of 8,000 slots; more is garbage, not growth */

/* Every slot once: its name and the first profile that requires it. */
/* clang-format off */
#define SLOTS(X)                                                                                                  \
    X(create, CEK_PROFILE_MEMORY) X(destroy, CEK_PROFILE_MEMORY) X(device_count, CEK_PROFILE_MEMORY)              \
    X(device_info, CEK_PROFILE_MEMORY) X(device_open, CEK_PROFILE_MEMORY) X(device_close, CEK_PROFILE_MEMORY)     \
    X(device_status, CEK_PROFILE_MEMORY) X(device_memory, CEK_PROFILE_MEMORY)                                     \
    X(mem_alloc, CEK_PROFILE_MEMORY) X(mem_free, CEK_PROFILE_MEMORY) X(mem_host_ptr, CEK_PROFILE_MEMORY)          \
    X(mem_map, NEVER) X(mem_unmap, NEVER) X(host_alloc, NEVER) X(host_free, NEVER)                                \
    X(queue_create, CEK_PROFILE_MEMORY) X(queue_destroy, CEK_PROFILE_MEMORY) X(queue_status, CEK_PROFILE_MEMORY)  \
    X(queue_sync, CEK_PROFILE_MEMORY) X(upload, CEK_PROFILE_MEMORY) X(download, CEK_PROFILE_MEMORY)               \
    X(copy, CEK_PROFILE_MEMORY) X(fill, CEK_PROFILE_MEMORY) X(update, CEK_PROFILE_MEMORY)                         \
    X(event_create, CEK_PROFILE_MEMORY) X(event_destroy, CEK_PROFILE_MEMORY) X(event_record, CEK_PROFILE_MEMORY)  \
    X(event_wait, CEK_PROFILE_MEMORY) X(event_query, CEK_PROFILE_MEMORY) X(event_sync, CEK_PROFILE_MEMORY)        \
    X(event_status, CEK_PROFILE_MEMORY) X(event_elapsed, CEK_PROFILE_MEMORY)                                      \
    X(op_create, CEK_PROFILE_INFERENCE) X(op_destroy, CEK_PROFILE_INFERENCE) X(op_prepack, NEVER)                 \
    X(op_run, CEK_PROFILE_INFERENCE)                                                                              \
    X(cmdbuf_create, NEVER) X(cmdbuf_destroy, NEVER) X(cmdbuf_run, NEVER)
/* clang-format on */

/* ---- stand-ins ---- */

static cek_status absent(const char *slot)
{
    return cek__fail(CEK_UNSUPPORTED, "the plugin has no %s", slot);
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

/* Slots that come together: an object that can be made but not used or freed is of no use. */
static cek_status complete(cek_plugin *p)
{
    if (!p->mem_map != !p->mem_unmap)
        return cek__fail(CEK_BAD_PLUGIN, "only one of mem_map and mem_unmap is given");
    if (!p->host_alloc != !p->host_free)
        return cek__fail(CEK_BAD_PLUGIN, "only one of host_alloc and host_free is given");
    if (!p->op_create != !p->op_destroy || !p->op_create != !p->op_run)
        return cek__fail(CEK_BAD_PLUGIN, "of op_create, op_destroy and op_run some are given and some are not");
    if (!p->cmdbuf_create != !p->cmdbuf_destroy || !p->cmdbuf_create != !p->cmdbuf_run)
        return cek__fail(CEK_BAD_PLUGIN,
                         "of cmdbuf_create, cmdbuf_destroy and cmdbuf_run some are given and some are not");
#define STAND_IN(slot) p->slot = p->slot != NULL ? p->slot : absent_##slot
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
#undef STAND_IN
    return CEK_OK;
}

/* ---- negotiation ---- */

bool cek__plugin_name_ok(const char *name, size_t length)
{
    if (length == 0 || length > 31 || name[0] < 'a' || name[0] > 'z')
        return false;
    for (size_t i = 0; i < length; i++)
        if (!(name[i] >= 'a' && name[i] <= 'z') && !(name[i] >= '0' && name[i] <= '9') && name[i] != '_')
            return false;
    return true;
}

static cek_status name_check(const char *name)
{
    size_t length;

    if (name == NULL)
        return cek__fail(CEK_BAD_PLUGIN, "its name is NULL");
    length = strnlen(name, 64);
    if (!cek__plugin_name_ok(name, length) || strcmp(name, "all") == 0)
        return cek__fail(CEK_BAD_PLUGIN,
                         "its name is not of the form [a-z][a-z0-9_]*, at most 31 characters, or is 'all'");
    return CEK_OK;
}

static cek_status profile_check(cek_plugin *p)
{
    /* Profiles include each other, so one of a later minor includes all that are known here. */
    if (p->profile > CEK_PROFILE_TRAINING && p->abi > CEK_ABI)
        p->profile = CEK_PROFILE_TRAINING;
    if (p->profile < CEK_PROFILE_MEMORY || p->profile > CEK_PROFILE_TRAINING)
        return cek__fail(CEK_BAD_PLUGIN, "its profile is %u, which ABI %u.%u does not define", p->profile, p->abi >> 16,
                         p->abi & 0xffff);
#define REQUIRE(slot, first_profile)                      \
    if (p->slot == NULL && p->profile >= (first_profile)) \
        return cek__fail(CEK_BAD_PLUGIN, "the slot %s is empty, which its profile %u requires", #slot, p->profile);
    SLOTS(REQUIRE)
#undef REQUIRE
    return CEK_OK;
}

cek_status cek__slots_negotiate(const cek_plugin *theirs, cek_plugin *out)
{
    cek_status st;
    uint32_t size = theirs->size;

    memset(out, 0, sizeof *out);
    if (theirs->abi >> 16 != CEK_ABI_MAJOR)
        CEK_FAIL(CEK_BAD_PLUGIN, "it speaks ABI %u.%u, this library %u.%u", theirs->abi >> 16, theirs->abi & 0xffff,
                 CEK_ABI_MAJOR, CEK_ABI_MINOR);
    /* No cut through a pointer, and never less than the head that says what the rest is. */
    if (size < offsetof(cek_plugin, create) || size > TABLE_MAX || size % sizeof(void *) != 0)
        CEK_FAIL(CEK_BAD_PLUGIN, "its table has an impossible size, %u bytes", size);
    memcpy(out, theirs, size < sizeof *out ? size : sizeof *out);
    CEK_TRY(name_check(out->name));
    CEK_TRY(profile_check(out));
    CEK_TRY(complete(out));
    out->size = sizeof *out;
    return CEK_OK;
out:
    memset(out, 0, sizeof *out);
    return st;
}
