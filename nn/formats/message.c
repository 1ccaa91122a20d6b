/* message.c - see message.h. Little-endian, as the machines are that this builds for. */
#include "nn/formats/message.h"

#include <string.h>

#include "core/base/alloc.h"
#include "nn/formats/wire.h"

cek_status cek__message_bytes(cek__message *m, const void *bytes, size_t size)
{
    cek_status st;

    if (m->room - m->size < size) {
        const size_t room = 2 * (m->size + size);

        CEK_TRY(cek__realloc_array(room, 1, &m->at));
        m->room = room;
    }
    if (size > 0)
        memcpy(m->at + m->size, bytes, size);
    m->size += size;
    return CEK_OK;
out:
    return st;
}

static cek_status varint_add(cek__message *m, uint64_t value)
{
    uint8_t bytes[10];
    size_t size = 0;

    for (; value >= 128; value >>= 7)
        bytes[size++] = (uint8_t)(value | 128);
    bytes[size++] = (uint8_t)value;
    return cek__message_bytes(m, bytes, size);
}

static cek_status tag_add(cek__message *m, uint32_t field, cek__wire_kind kind)
{
    return varint_add(m, (uint64_t)field << 3 | kind);
}

cek_status cek__message_integer(cek__message *m, uint32_t field, int64_t value)
{
    cek_status st;

    CEK_TRY(tag_add(m, field, CEK__WIRE_VARINT));
    st = varint_add(m, (uint64_t)value);
out:
    return st;
}

cek_status cek__message_float(cek__message *m, uint32_t field, float value)
{
    cek_status st;

    CEK_TRY(tag_add(m, field, CEK__WIRE_FIXED32));
    st = cek__message_bytes(m, &value, sizeof value);
out:
    return st;
}

cek_status cek__message_double(cek__message *m, uint32_t field, double value)
{
    cek_status st;

    CEK_TRY(tag_add(m, field, CEK__WIRE_FIXED64));
    st = cek__message_bytes(m, &value, sizeof value);
out:
    return st;
}

cek_status cek__message_doubles(cek__message *m, uint32_t field, const double *values, size_t count)
{
    return cek__message_field(m, field, values, count * sizeof *values);
}

cek_status cek__message_head(cek__message *m, uint32_t field, uint64_t size)
{
    cek_status st;

    CEK_TRY(tag_add(m, field, CEK__WIRE_BYTES));
    st = varint_add(m, size);
out:
    return st;
}

cek_status cek__message_field(cek__message *m, uint32_t field, const void *bytes, size_t size)
{
    cek_status st;

    CEK_TRY(cek__message_head(m, field, size));
    st = cek__message_bytes(m, bytes, size);
out:
    return st;
}

cek_status cek__message_text(cek__message *m, uint32_t field, const char *text)
{
    return cek__message_field(m, field, text, strlen(text));
}

cek_status cek__message_within(cek__message *m, uint32_t field, cek__message *within)
{
    cek_status st = cek__message_field(m, field, within->at, within->size);

    within->size = 0;
    return st;
}
