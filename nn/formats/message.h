/* message.h - a message of protocol buffers being written, field behind field (protobuf.dev, "Encoding"); wire.h reads
 * them.
 *
 *     cek__message m = { 0 }, within = { 0 };
 *     CEK_TRY(cek__message_text(&within, 1, "name"));
 *     CEK_TRY(cek__message_within(&m, 5, &within));
 *     ... m.at[0 .. m.size) ...
 *     out:
 *         free(within.at);
 *         free(m.at);
 *
 * A message without a schema is bytes with numbers: which field means what, whoever writes knows. Errors:
 * CEK_OUT_OF_MEMORY, and then the message is not whole. Must not know: what is written. */
#ifndef CEK_NN_FORMATS_MESSAGE_H
#define CEK_NN_FORMATS_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

typedef struct cek__message {
    uint8_t *at; /* free() */
    size_t size, room;
} cek__message;

/* Bytes as they are. */
CEK__CHECKED cek_status cek__message_bytes(cek__message *m, const void *bytes, size_t size);
CEK__CHECKED cek_status cek__message_integer(cek__message *m, uint32_t field, int64_t value);
CEK__CHECKED cek_status cek__message_float(cek__message *m, uint32_t field, float value);
CEK__CHECKED cek_status cek__message_double(cek__message *m, uint32_t field, double value);
/* A list of doubles as one field. */
CEK__CHECKED cek_status cek__message_doubles(cek__message *m, uint32_t field, const double *values, size_t count);
/* The beginning of a field of so many bytes, which follow. */
CEK__CHECKED cek_status cek__message_head(cek__message *m, uint32_t field, uint64_t size);
CEK__CHECKED cek_status cek__message_field(cek__message *m, uint32_t field, const void *bytes, size_t size);
CEK__CHECKED cek_status cek__message_text(cek__message *m, uint32_t field, const char *text);
/* A message that is done, which is empty afterwards and may be the next one. */
CEK__CHECKED cek_status cek__message_within(cek__message *m, uint32_t field, cek__message *within);

#endif
