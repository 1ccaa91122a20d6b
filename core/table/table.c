/* table.c - see table.h. A plugin is code of strangers: what can be checked before calling it is checked here. */
#include "core/table/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NEVER = CEK_PROFILE_TRAINING + 1 };
enum { TABLE_MAX = 1 << 16 }; /* bytes: a table of 8,000 slots; more is garbage, not growth */
enum { NAME_MAX_LENGTH = 31 };

/* Every slot once: its name, the first profile that requires it, and the group of slots that come together (0: none).
 * An object that can be made but not used or freed is of no use. */
enum { ALONE, MAP, PINNED, OPERATION, RECORDING, REGISTERED, GROUPS };
/* clang-format off */
#define MEMORY CEK_PROFILE_MEMORY
#define INFERENCE CEK_PROFILE_INFERENCE
#define SLOTS(X)                                                                                         \
    X(create, MEMORY, ALONE) X(destroy, MEMORY, ALONE) X(device_count, MEMORY, ALONE)                    \
    X(device_info, MEMORY, ALONE) X(device_open, MEMORY, ALONE) X(device_close, MEMORY, ALONE)           \
    X(device_status, MEMORY, ALONE) X(device_memory, MEMORY, ALONE)                                      \
    X(mem_alloc, MEMORY, ALONE) X(mem_free, MEMORY, ALONE) X(mem_host_ptr, MEMORY, ALONE)                \
    X(mem_map, NEVER, MAP) X(mem_unmap, NEVER, MAP)                                                      \
    X(host_alloc, NEVER, PINNED) X(host_free, NEVER, PINNED)                                             \
    X(queue_create, MEMORY, ALONE) X(queue_destroy, MEMORY, ALONE) X(queue_status, MEMORY, ALONE)        \
    X(queue_sync, MEMORY, ALONE) X(upload, MEMORY, ALONE) X(download, MEMORY, ALONE)                     \
    X(copy, MEMORY, ALONE) X(fill, MEMORY, ALONE) X(update, MEMORY, ALONE)                               \
    X(event_create, MEMORY, ALONE) X(event_destroy, MEMORY, ALONE) X(event_record, MEMORY, ALONE)        \
    X(event_wait, MEMORY, ALONE) X(event_query, MEMORY, ALONE) X(event_sync, MEMORY, ALONE)              \
    X(event_status, MEMORY, ALONE) X(event_elapsed, MEMORY, ALONE)                                       \
    X(op_create, INFERENCE, OPERATION) X(op_destroy, INFERENCE, OPERATION) X(op_run, INFERENCE, OPERATION) \
    X(op_prepack, NEVER, ALONE)                                                                          \
    X(cmdbuf_create, NEVER, RECORDING) X(cmdbuf_destroy, NEVER, RECORDING) X(cmdbuf_run, NEVER, RECORDING)      \
    X(device_times, NEVER, ALONE)                                                                        \
    X(host_register, NEVER, REGISTERED) X(host_unregister, NEVER, REGISTERED)                               \
    X(mem_import, NEVER, ALONE) X(mem_export, NEVER, ALONE) X(device_sensors, NEVER, ALONE)
/* clang-format on */

typedef struct slot_row {
    const char *name;
    size_t offset;
    uint32_t profile, group;
} slot_row;

#define ROW(slot, first_profile, group) { #slot, offsetof(cek_plugin, slot), first_profile, group },
static const slot_row slots[] = { SLOTS(ROW) };
enum { SLOT_COUNT = sizeof slots / sizeof *slots };

/* No slot of the table is missing in the list. */
_Static_assert(offsetof(cek_plugin, create) + SLOT_COUNT * sizeof(void *) == sizeof(cek_plugin),
               "the list of slots is not that of plugin.h");

typedef struct complaint {
    char *text;
    size_t cap;
} complaint;

static bool refuse(const complaint *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool refuse(const complaint *to, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(to->text, to->cap, format, args);
    va_end(args);
    return false;
}

bool cek__plugin_name_ok(const char *name, size_t length)
{
    if (length == 0 || length > NAME_MAX_LENGTH || name[0] < 'a' || name[0] > 'z')
        return false;
    for (size_t i = 0; i < length; i++)
        if (!(name[i] >= 'a' && name[i] <= 'z') && !(name[i] >= '0' && name[i] <= '9') && name[i] != '_')
            return false;
    return true;
}

static bool name_take(const char *name, const complaint *to)
{
    if (name == NULL)
        return refuse(to, "its name is NULL");
    if (!cek__plugin_name_ok(name, strnlen(name, NAME_MAX_LENGTH + 1)) || strcmp(name, "all") == 0 ||
        strcmp(name, "gpu") == 0 || strcmp(name, "fastest") == 0)
        return refuse(to,
                      "its name is not of the form [a-z][a-z0-9_]*, at most %d characters, or is 'all', "
                      "'gpu' or 'fastest'",
                      NAME_MAX_LENGTH);
    return true;
}

/* Profiles include each other, so one of a later minor includes all that are known here. */
static bool profile_take(cek_plugin *table, const complaint *to)
{
    if (table->profile > CEK_PROFILE_TRAINING && table->abi > CEK_ABI)
        table->profile = CEK_PROFILE_TRAINING;
    if (table->profile >= CEK_PROFILE_MEMORY && table->profile <= CEK_PROFILE_TRAINING)
        return true;
    return refuse(to, "its profile is %u, which ABI %u.%u does not define", table->profile, table->abi >> 16,
                  table->abi & 0xffff);
}

static bool given(const cek_plugin *table, const slot_row *slot)
{
    void (*function)(void);
    memcpy(&function, (const char *)table + slot->offset, sizeof function);
    return function != NULL;
}

static bool slots_check(const cek_plugin *table, const complaint *to)
{
    const slot_row *present[GROUPS] = { NULL }, *absent[GROUPS] = { NULL };

    for (int i = 0; i < SLOT_COUNT; i++) {
        const slot_row *slot = &slots[i];
        if (!given(table, slot) && table->profile >= slot->profile)
            return refuse(to, "the slot %s is empty, which its profile %u requires", slot->name, table->profile);
        if (given(table, slot))
            present[slot->group] = slot;
        else
            absent[slot->group] = slot;
    }
    for (int group = ALONE + 1; group < GROUPS; group++)
        if (present[group] != NULL && absent[group] != NULL)
            return refuse(to, "it has the slot %s, but not %s, which comes with it", present[group]->name,
                          absent[group]->name);
    return true;
}

static bool table_take(const cek_plugin *theirs, cek_plugin *out, const complaint *to)
{
    uint32_t size = theirs->size;

    if (theirs->abi >> 16 != CEK_ABI_MAJOR)
        return refuse(to, "it speaks ABI %u.%u, this host %u.%u", theirs->abi >> 16, theirs->abi & 0xffff,
                      CEK_ABI_MAJOR, CEK_ABI_MINOR);
    /* No cut through a pointer, and never less than the head that says what the rest is. */
    if (size < offsetof(cek_plugin, create) || size > TABLE_MAX || size % sizeof(void *) != 0)
        return refuse(to, "its table has an impossible size, %u bytes", size);
    memcpy(out, theirs, size < sizeof *out ? size : sizeof *out);
    out->size = sizeof *out;
    return name_take(out->name, to) && profile_take(out, to) && slots_check(out, to);
}

bool cek__table_take(const cek_plugin *theirs, cek_plugin *out, char *error, size_t cap)
{
    const complaint to = { error, cap };

    memset(out, 0, sizeof *out);
    if (cap > 0)
        error[0] = '\0';
    if (table_take(theirs, out, &to))
        return true;
    memset(out, 0, sizeof *out);
    return false;
}
