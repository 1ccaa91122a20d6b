/* wire.c - varints, fixed numbers, bytes with a length (protobuf.dev, "Encoding"). */
#include "nn/formats/wire.h"

#include <endian.h>
#include <string.h>

static bool fault(cek__wire *w, const char *cause)
{
    w->cause = cause;
    w->end = w->at;
    return false;
}

static bool varint(cek__wire *w, uint64_t *out)
{
    uint8_t *at = w->at;

    *out = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (at == w->end)
            return fault(w, "the file ends within a number");
        if (shift == 63 && *at > 1)
            return fault(w, "a number of more than 64 bits");
        *out |= (uint64_t)(*at & 0x7f) << shift;
        if ((*at++ & 0x80) == 0) {
            w->at = at;
            return true;
        }
    }
    return fault(w, "a number of more than 64 bits");
}

bool cek__wire_number(cek__wire *w, cek__wire_kind kind, uint64_t *out)
{
    uint32_t narrow;
    size_t size = kind == CEK__WIRE_FIXED64 ? 8 : 4;

    if (w->at == w->end)
        return false;
    if (kind == CEK__WIRE_VARINT)
        return varint(w, out);
    if ((size_t)(w->end - w->at) < size)
        return fault(w, "the file ends within a number");
    if (size == 8) {
        memcpy(out, w->at, 8);
        *out = le64toh(*out);
    } else {
        memcpy(&narrow, w->at, 4);
        *out = le32toh(narrow);
    }
    w->at += size;
    return true;
}

bool cek__wire_next(cek__wire *w, cek__wire_field *out)
{
    uint64_t tag, length;

    *out = (cek__wire_field){ 0 };
    if (w->at == w->end || !varint(w, &tag))
        return false;
    if (tag >> 3 == 0 || tag >> 3 >= UINT64_C(1) << 29)
        return fault(w, "a field without a number");
    out->number = (uint32_t)(tag >> 3);
    out->kind = (cek__wire_kind)(tag & 7);
    switch (tag & 7) {
    case CEK__WIRE_VARINT: return varint(w, &out->value);
    case CEK__WIRE_FIXED32:
    case CEK__WIRE_FIXED64:
        if (w->at == w->end)
            return fault(w, "the file ends within a number");
        return cek__wire_number(w, out->kind, &out->value);
    case CEK__WIRE_BYTES:
        if (!varint(w, &length))
            return false;
        if (length > (uint64_t)(w->end - w->at))
            return fault(w, "a field is longer than what it is in");
        out->bytes = (cek__wire){ .at = w->at, .end = w->at + length };
        w->at += length;
        return true;
    default: return fault(w, "a field of an unknown kind");
    }
}
