/* onnx_files.h - ONNX files made field by field (onnx.proto), so that lies can be written as easily as models. */
#ifndef CEK_TESTS_UNIT_ONNX_FILES_H
#define CEK_TESTS_UNIT_ONNX_FILES_H

#include <stdint.h>
#include <string.h>

enum { MESSAGE_ROOM = 4096 };

typedef struct message {
    uint8_t bytes[MESSAGE_ROOM];
    size_t size;
} message;

static inline void put_varint(message *m, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        m->bytes[m->size++] = (uint8_t)(value | 128);
    m->bytes[m->size++] = (uint8_t)value;
}

static inline void put_integer(message *m, uint32_t field, int64_t value)
{
    put_varint(m, (uint64_t)field << 3);
    put_varint(m, (uint64_t)value);
}

static inline void put_bytes(message *m, uint32_t field, const void *bytes, size_t size)
{
    put_varint(m, (uint64_t)field << 3 | 2);
    put_varint(m, size);
    memcpy(m->bytes + m->size, bytes, size);
    m->size += size;
}

static inline void put_text(message *m, uint32_t field, const char *text)
{
    put_bytes(m, field, text, strlen(text));
}

static inline void put_message(message *m, uint32_t field, const message *within)
{
    put_bytes(m, field, within->bytes, within->size);
}

/* TensorProto without its values. */
static inline message tensor_of(const char *name, int type, int rank, const int64_t *shape)
{
    message m = { .size = 0 };

    for (int i = 0; i < rank; i++)
        put_integer(&m, 1, shape[i]);
    put_integer(&m, 2, type);
    put_text(&m, 8, name);
    return m;
}

static inline void put_external(message *tensor, const char *key, const char *value)
{
    message pair = { .size = 0 };

    put_text(&pair, 1, key);
    put_text(&pair, 2, value);
    put_message(tensor, 13, &pair);
}

/* NodeProto; `inputs` and `outputs` end with NULL. */
static inline message node_of(const char *op, const char *const *inputs, const char *const *outputs)
{
    message m = { .size = 0 };

    for (; *inputs != NULL; inputs++)
        put_text(&m, 1, *inputs);
    for (; *outputs != NULL; outputs++)
        put_text(&m, 2, *outputs);
    put_text(&m, 3, "a node");
    put_text(&m, 4, op);
    return m;
}

/* AttributeProto of a list of integers, packed or one by one. */
static inline message integers_of(const char *name, const int64_t *values, int count, int packed)
{
    message m = { .size = 0 }, list = { .size = 0 };

    put_text(&m, 1, name);
    for (int i = 0; i < count; i++)
        if (packed)
            put_varint(&list, (uint64_t)values[i]);
        else
            put_integer(&m, 8, values[i]);
    if (packed)
        put_message(&m, 8, &list);
    put_integer(&m, 20, 7);
    return m;
}

/* ValueInfoProto of float32; a size of 0 is called "batch", one of -1 is not said. */
static inline message value_of(const char *name, int rank, const int64_t *shape)
{
    message m = { .size = 0 }, type = { .size = 0 }, tensor = { .size = 0 }, dims = { .size = 0 };

    for (int i = 0; i < rank; i++) {
        message dim = { .size = 0 };

        if (shape[i] > 0)
            put_integer(&dim, 1, shape[i]);
        if (shape[i] == 0)
            put_text(&dim, 2, "batch");
        put_message(&dims, 1, &dim);
    }
    put_integer(&tensor, 1, 1);
    put_message(&tensor, 2, &dims);
    put_message(&type, 1, &tensor);
    put_text(&m, 1, name);
    put_message(&m, 2, &type);
    return m;
}

static inline message model_of(const message *graph, int64_t opset)
{
    message m = { .size = 0 }, operators = { .size = 0 };

    put_integer(&m, 1, 8);
    put_text(&m, 2, "a test");
    put_message(&m, 7, graph);
    put_text(&operators, 1, "");
    put_integer(&operators, 2, opset);
    put_message(&m, 8, &operators);
    return m;
}

#endif
