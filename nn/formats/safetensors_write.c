/* safetensors_write.c - writes safetensors files.
 *
 * Must not know: models, layouts, what a name means. */
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "nn/formats/safetensors.h"

enum { HEADER_ALIGN = 8 }; /* so that values of every type are aligned in the file */

typedef struct text {
    char *bytes;
    size_t length, room;
} text;

static cek_status text_add(text *t, const char *bytes, size_t count)
{
    cek_status st;

    if (t->room - t->length < count) {
        size_t room = 2 * (t->length + count);

        CEK_TRY(cek__realloc_array(room, 1, &t->bytes));
        t->room = room;
    }
    memcpy(t->bytes + t->length, bytes, count);
    t->length += count;
    return CEK_OK;
out:
    return st;
}

/* As a JSON string; what comes before it with it. */
static cek_status string_add(text *t, const char *before, const char *string)
{
    char escape[8];
    cek_status st;

    CEK_TRY(text_add(t, before, strlen(before)));
    CEK_TRY(text_add(t, "\"", 1));
    while (*string != '\0') {
        uint32_t code;
        size_t length = cek__utf8_next(string, &code);

        if (length == 0)
            CEK_FAIL(CEK_INVALID, "the name '%.*s' is not UTF-8", CEK__ST_NAME_SHOWN, string);
        if (code < ' ' || code == '"' || code == '\\') {
            snprintf(escape, sizeof escape, code < ' ' ? "\\u%04x" : "\\%c", (unsigned)code);
            CEK_TRY(text_add(t, escape, strlen(escape)));
        } else {
            CEK_TRY(text_add(t, string, length));
        }
        string += length;
    }
    return text_add(t, "\"", 1);
out:
    return st;
}

static cek_status entry_add(text *t, const cek__st_tensor *tensor, uint64_t *at)
{
    char entry[64 + (CEK_RANK_MAX + 2) * 21]; /* the words, and numbers of at most 20 digits with a comma */
    int n = snprintf(entry, sizeof entry, ":{\"dtype\":\"%s\",\"shape\":[", cek__st_type_name(tensor->type));

    for (uint32_t i = 0; i < tensor->rank; i++)
        n += snprintf(entry + n, sizeof entry - (size_t)n, "%s%" PRId64, i > 0 ? "," : "", tensor->shape[i]);
    n += snprintf(entry + n, sizeof entry - (size_t)n, "],\"data_offsets\":[%" PRIu64, *at);
    *at += tensor->count * cek__st_type_bytes(tensor->type);
    n += snprintf(entry + n, sizeof entry - (size_t)n, ",%" PRIu64 "]}", *at);
    return text_add(t, entry, (size_t)n);
}

/* The header, padded with blanks as the format allows. */
static cek_status header_make(const cek__st_tensor *tensors, size_t count, const char *const (*metadata)[2],
                              size_t pairs, text *t)
{
    uint64_t at = 0;
    cek_status st;

    CEK_TRY(text_add(t, "{", 1));
    for (size_t i = 0; i < pairs; i++) {
        CEK_TRY(string_add(t, i > 0 ? "," : "\"" CEK__ST_METADATA "\":{", metadata[i][0]));
        CEK_TRY(string_add(t, ":", metadata[i][1]));
    }
    if (pairs > 0)
        CEK_TRY(text_add(t, "}", 1));
    for (size_t i = 0; i < count; i++) {
        CEK_TRY(string_add(t, i > 0 || pairs > 0 ? "," : "", tensors[i].name));
        CEK_TRY(entry_add(t, &tensors[i], &at));
    }
    CEK_TRY(text_add(t, "}", 1));
    while (t->length % HEADER_ALIGN != 0)
        CEK_TRY(text_add(t, " ", 1));
    st = CEK_OK;
out:
    return st;
}

static cek_status sort_checked(cek__st_tensor *tensors, size_t count)
{
    const char *twice = cek__st_sort(tensors, count);

    if (twice != NULL)
        return cek__fail(CEK_INVALID, "two tensors are called '%.*s'", CEK__ST_NAME_SHOWN, twice);
    for (size_t i = 0; i < count; i++)
        if (strcmp(tensors[i].name, CEK__ST_METADATA) == 0)
            return cek__fail(CEK_INVALID, "no tensor may be called '%s'", CEK__ST_METADATA);
    return CEK_OK;
}

cek_status cek__safetensors_write(const char *path, const cek__st_tensor *tensors, size_t count,
                                  const char *const (*metadata)[2], size_t pairs)
{
    cek__file_writer *writer = NULL;
    cek__st_tensor *sorted = NULL;
    text header = { 0 };
    uint64_t prefix;
    cek_status st;

    CEK_TRY(cek__alloc_array(count, sizeof *sorted, &sorted));
    for (size_t i = 0; i < count; i++)
        sorted[i] = tensors[i];
    CEK_TRY(sort_checked(sorted, count));
    CEK_TRY(header_make(sorted, count, metadata, pairs, &header));
    prefix = htole64(header.length);
    CEK_TRY(cek__file_create(path, &writer));
    CEK_TRY(cek__file_write(writer, &prefix, sizeof prefix));
    CEK_TRY(cek__file_write(writer, header.bytes, header.length));
    for (size_t i = 0; i < count; i++)
        CEK_TRY(cek__file_write(writer, sorted[i].data, sorted[i].count * cek__st_type_bytes(sorted[i].type)));
    st = cek__file_commit(&writer);
out:
    cek__file_abandon(&writer);
    free(header.bytes);
    free(sorted);
    return st;
}
