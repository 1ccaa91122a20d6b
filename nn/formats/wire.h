/* wire.h - the wire format of protocol buffers, field by field, without memory of its own: nothing in it can
 * run out. message.h writes it.
 *
 *     cek__wire w = { .at = bytes, .end = bytes + size };
 *     cek__wire_field f;
 *
 *     while (cek__wire_next(&w, &f))
 *         if (f.number == 3 && f.kind == CEK__WIRE_BYTES)
 *             ... f.bytes, which is a message's, a text's or a packed list's ...
 *     if (w.cause != NULL)
 *         ... broken at w.at ...
 *
 * A message within is another cek__wire over f.bytes: who reads decides how deep, and nothing recurses. Bytes stay
 * where they lie. Groups, which no schema of today has, are a fault.
 * Must not know: what is read. */
#ifndef CEK_NN_FORMATS_WIRE_H
#define CEK_NN_FORMATS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/export.h"

typedef struct cek__wire {
    uint8_t *at, *end;
    const char *cause; /* NULL, or what is wrong at `at`, after which there is nothing more */
} cek__wire;

/* The format's own numbers. */
typedef enum cek__wire_kind {
    CEK__WIRE_VARINT = 0,
    CEK__WIRE_FIXED64 = 1,
    CEK__WIRE_BYTES = 2,
    CEK__WIRE_FIXED32 = 5
} cek__wire_kind;

typedef struct cek__wire_field {
    uint32_t number;
    cek__wire_kind kind;
    uint64_t value; /* of a VARINT or FIXED */
    cek__wire bytes;
} cek__wire_field;

CEK__SHARED bool cek__wire_next(cek__wire *w, cek__wire_field *out);

/* The next number of a packed list of varints, or of numbers of 4 or 8 bytes; false at its end and at a fault. */
CEK__SHARED bool cek__wire_number(cek__wire *w, cek__wire_kind kind, uint64_t *out);

#endif
