/* event_file.h - an event file, read as TensorBoard reads it: records whose lengths and checksums are right, each an
 * event, with what it tells. Field numbers are those of event.proto and summary.proto.
 *
 * Reads by the library's own wire.h, which ONNX files are read with. */
#ifndef CEK_TESTS_EVENT_FILE_H
#define CEK_TESTS_EVENT_FILE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/formats/records.h"
#include "nn/formats/wire.h"

/* What an event tells, or one value of its summary. */
typedef struct event_value {
    int64_t step;
    double time;
    const char *kind; /* version, graph, scalar, histogram, image, text, hparams */
    char tag[256];
    float scalar;
    /* version: the text; graph: GraphDef; histogram, image: theirs; text: the string; hparams: what the plugin reads */
    cek__wire data;
} event_value;

typedef void event_fn(void *user, const event_value *value);

/* The field of that number, the last one; empty where there is none. */
static inline cek__wire_field event_field(cek__wire in, uint32_t number)
{
    cek__wire_field field, found = { 0 };
    while (cek__wire_next(&in, &field))
        if (field.number == number)
            found = field;
    return found;
}

static inline void event_text(cek__wire bytes, char *text, size_t room)
{
    (void)!snprintf(text, room, "%.*s", (int)(bytes.end - bytes.at), (const char *)bytes.at);
}

static inline double event_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline bool event_summary_value(event_value v, cek__wire value, event_fn *each, void *user)
{
    cek__wire_field field;
    char plugin[32];
    const cek__wire data = event_field(event_field(value, 9).bytes, 1).bytes;
    event_text(event_field(value, 1).bytes, v.tag, sizeof v.tag);
    event_text(event_field(data, 1).bytes, plugin, sizeof plugin);
    while (cek__wire_next(&value, &field)) {
        const uint32_t bits = (uint32_t)field.value;
        switch (field.number) {
        case 2:
            v.kind = "scalar";
            memcpy(&v.scalar, &bits, sizeof bits);
            break;
        case 4: v.kind = "image"; break;
        case 5: v.kind = "histogram"; break;
        case 8: v.kind = !strcmp(plugin, "text") ? "text" : !strcmp(plugin, "hparams") ? "hparams" : NULL; break;
        default: continue;
        }
        if (!v.kind)
            return false;
        v.data = field.number < 8
                     ? field.bytes
                     : event_field(!strcmp(v.kind, "text") ? field.bytes : data, !strcmp(v.kind, "text") ? 8 : 2).bytes;
        each(user, &v);
    }
    return !value.cause && v.kind;
}

static inline bool event_of(cek__wire record, event_fn *each, void *user)
{
    cek__wire_field field;
    event_value v = { .step = (int64_t)event_field(record, 2).value,
                      .time = event_double(event_field(record, 1).value) };
    bool well = true;
    while (well && cek__wire_next(&record, &field)) {
        cek__wire_field value;
        v.data = field.bytes;
        v.kind = field.number == 3 ? "version" : field.number == 4 ? "graph" : NULL;
        if (v.kind)
            each(user, &v);
        else if (field.number == 5)
            while (well && cek__wire_next(&field.bytes, &value))
                well = event_summary_value(v, value.bytes, each, user);
        else
            well = field.number < 3;
    }
    return well && !record.cause;
}

/* NULL, or what is wrong with the file's bytes. */
static inline const char *events_read(uint8_t *bytes, size_t size, event_fn *each, void *user)
{
    for (size_t at = 0; at < size;) {
        uint64_t length;
        uint32_t sum;
        if (size - at < 12)
            return "ends within the head of a record";
        memcpy(&length, bytes + at, 8);
        memcpy(&sum, bytes + at + 8, 4);
        if (sum != cek__crc32c_masked(bytes + at, 8))
            return "a length with another checksum";
        if (length > size - at - 12 || size - at - 12 - length < 4)
            return "ends within a record";
        memcpy(&sum, bytes + at + 12 + length, 4);
        if (sum != cek__crc32c_masked(bytes + at + 12, length))
            return "a record with another checksum";
        if (!event_of((cek__wire){ .at = bytes + at + 12, .end = bytes + at + 12 + length }, each, user))
            return "a record that is no event";
        at += 16 + length;
    }
    return NULL;
}

/* NULL: it cannot be read. */
static inline uint8_t *event_file_bytes(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    long end = 0;
    uint8_t *bytes = NULL;
    if (file && !fseek(file, 0, SEEK_END) && (end = ftell(file)) >= 0 && (bytes = malloc((size_t)end + 1))) {
        rewind(file);
        *size = fread(bytes, 1, (size_t)end, file);
    }
    if (file)
        fclose(file);
    return bytes;
}

#endif
