/* onnx_write.c - see onnx_write.h. Field numbers are those of onnx.proto. */
#include "nn/formats/onnx_write.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/file.h"

enum { IR_VERSION = 8 };
#define FILE_BYTES_MAX ((uint64_t)INT32_MAX) /* of protocol buffers */

/* ---- bytes ---- */

static cek_status bytes_add(cek__onnx_bytes *b, const void *data, size_t size)
{
    cek_status st;

    if (b->room - b->size < size) {
        const size_t room = 2 * (b->size + size);

        CEK_TRY(cek__realloc_array(room, 1, &b->at));
        b->room = room;
    }
    if (size > 0)
        memcpy(b->at + b->size, data, size);
    b->size += size;
    return CEK_OK;
out:
    return st;
}

static cek_status varint_add(cek__onnx_bytes *b, uint64_t value)
{
    uint8_t bytes[10];
    size_t size = 0;

    for (; value >= 128; value >>= 7)
        bytes[size++] = (uint8_t)(value | 128);
    bytes[size++] = (uint8_t)value;
    return bytes_add(b, bytes, size);
}

static cek_status integer_add(cek__onnx_bytes *b, uint32_t field, int64_t value)
{
    cek_status st;

    CEK_TRY(varint_add(b, (uint64_t)field << 3));
    st = varint_add(b, (uint64_t)value);
out:
    return st;
}

/* The beginning of a field of so many bytes. */
static cek_status head_add(cek__onnx_bytes *b, uint32_t field, uint64_t size)
{
    cek_status st;

    CEK_TRY(varint_add(b, (uint64_t)field << 3 | 2));
    st = varint_add(b, size);
out:
    return st;
}

static cek_status field_add(cek__onnx_bytes *b, uint32_t field, const void *data, size_t size)
{
    cek_status st;

    CEK_TRY(head_add(b, field, size));
    st = bytes_add(b, data, size);
out:
    return st;
}

static cek_status text_add(cek__onnx_bytes *b, uint32_t field, const char *text)
{
    return field_add(b, field, text, strlen(text));
}

/* A message within, which is done with. */
static cek_status message_add(cek__onnx_bytes *b, uint32_t field, cek__onnx_bytes *within)
{
    cek_status st = field_add(b, field, within->at, within->size);

    within->size = 0;
    return st;
}

/* ---- nodes ---- */

static cek_status setting_add(cek__onnx_bytes *node, const cek__onnx_setting *s)
{
    cek_status st;
    cek__onnx_bytes a = { 0 };
    const float number = (float)s->number;

    CEK_TRY(text_add(&a, 1, s->name));
    if (s->kind == CEK__ONNX_ATTRIBUTE_FLOAT) {
        CEK_TRY(varint_add(&a, 2 << 3 | 5));
        CEK_TRY(bytes_add(&a, &number, sizeof number));
    } else if (s->kind == CEK__ONNX_ATTRIBUTE_INT) {
        CEK_TRY(integer_add(&a, 3, s->integer));
    } else {
        for (int i = 0; i < s->count; i++)
            CEK_TRY(integer_add(&a, 8, s->integers[i]));
    }
    CEK_TRY(integer_add(&a, 20, s->kind));
    st = message_add(node, 5, &a);
out:
    free(a.at);
    return st;
}

void cek__onnx_put_node(cek__onnx_out *o, const char *op, int inputs, const char *const *input, const char *output,
                        int settings, const cek__onnx_setting *setting)
{
    cek_status st = o->st;
    cek__onnx_bytes node = { 0 };

    if (st != CEK_OK)
        goto out;
    for (int i = 0; i < inputs; i++)
        CEK_TRY(text_add(&node, 1, input[i]));
    CEK_TRY(text_add(&node, 2, output));
    CEK_TRY(text_add(&node, 3, output));
    CEK_TRY(text_add(&node, 4, op));
    for (int i = 0; i < settings; i++)
        CEK_TRY(setting_add(&node, &setting[i]));
    st = message_add(&o->nodes, 1, &node);
out:
    free(node.at);
    o->st = st;
}

/* ---- tensors ---- */

static cek_status tensor_head(cek__onnx_bytes *b, const char *name, int type, int rank, const int64_t *shape)
{
    cek_status st;

    for (int i = 0; i < rank; i++)
        CEK_TRY(integer_add(b, 1, shape[i]));
    CEK_TRY(integer_add(b, 2, type));
    st = text_add(b, 8, name);
out:
    return st;
}

void cek__onnx_put_tensor(cek__onnx_out *o, const char *name, int type, int rank, const int64_t *shape,
                          const void *data, uint64_t bytes)
{
    cek_status st = o->st;
    cek__onnx_weight *w;

    if (st != CEK_OK)
        goto out;
    if (o->weights_count == o->weights_room) {
        const size_t room = o->weights_room ? 2 * o->weights_room : 64;

        CEK_TRY(cek__realloc_array(room, sizeof *o->weights, &o->weights));
        o->weights_room = room;
    }
    w = &o->weights[o->weights_count++];
    *w = (cek__onnx_weight){ .data = data, .bytes = bytes };
    CEK_TRY(tensor_head(&w->head, name, type, rank, shape));
    st = head_add(&w->head, 9, bytes);
out:
    o->st = st;
}

void cek__onnx_put_numbers(cek__onnx_out *o, const char *name, int type, int rank, const int64_t *shape,
                           const void *data, uint64_t bytes)
{
    cek_status st = o->st;
    cek__onnx_bytes tensor = { 0 };

    if (st != CEK_OK)
        goto out;
    CEK_TRY(tensor_head(&tensor, name, type, rank, shape));
    CEK_TRY(field_add(&tensor, 9, data, bytes));
    st = message_add(&o->ends, 5, &tensor);
out:
    free(tensor.at);
    o->st = st;
}

/* ---- ends ---- */

/* TypeProto of a tensor. */
static cek_status type_add(cek__onnx_bytes *type, int element, int rank, const int64_t *size, const char *batch)
{
    cek_status st;
    cek__onnx_bytes dim = { 0 }, dims = { 0 }, tensor = { 0 };

    for (int i = 0; i < rank; i++) {
        if (size[i] == 0)
            CEK_TRY(text_add(&dim, 2, batch));
        else if (size[i] > 0)
            CEK_TRY(integer_add(&dim, 1, size[i]));
        CEK_TRY(message_add(&dims, 1, &dim));
    }
    CEK_TRY(integer_add(&tensor, 1, element));
    CEK_TRY(message_add(&tensor, 2, &dims));
    st = message_add(type, 1, &tensor);
out:
    free(dim.at);
    free(dims.at);
    free(tensor.at);
    return st;
}

static void end_put(cek__onnx_out *o, uint32_t field, const char *name, int type, int rank, const int64_t *size,
                    const char *batch)
{
    cek_status st = o->st;
    cek__onnx_bytes value = { 0 }, of = { 0 };

    if (st != CEK_OK)
        goto out;
    CEK_TRY(text_add(&value, 1, name));
    CEK_TRY(type_add(&of, type, rank, size, batch));
    CEK_TRY(message_add(&value, 2, &of));
    st = message_add(&o->ends, field, &value);
out:
    free(value.at);
    free(of.at);
    o->st = st;
}

void cek__onnx_put_input(cek__onnx_out *o, const char *name, int type, int rank, const int64_t *size, const char *batch)
{
    end_put(o, 11, name, type, rank, size, batch);
}

void cek__onnx_put_output(cek__onnx_out *o, const char *name, int type, int rank, const int64_t *size,
                          const char *batch)
{
    end_put(o, 12, name, type, rank, size, batch);
}

/* ---- the file ---- */

static cek_status opset_add(cek__onnx_bytes *model, int64_t opset)
{
    cek_status st;
    cek__onnx_bytes operators = { 0 };

    CEK_TRY(text_add(&operators, 1, ""));
    CEK_TRY(integer_add(&operators, 2, opset));
    st = message_add(model, 8, &operators);
out:
    free(operators.at);
    return st;
}

/* What stands before the graph's fields. */
static cek_status model_head(cek__onnx_bytes *model, int64_t opset, uint64_t graph_bytes)
{
    cek_status st;

    CEK_TRY(integer_add(model, 1, IR_VERSION));
    CEK_TRY(text_add(model, 2, "cekernels"));
    CEK_TRY(opset_add(model, opset));
    st = head_add(model, 7, graph_bytes);
out:
    return st;
}

cek_status cek__onnx_write(const cek__onnx_out *o, const char *path, int64_t opset)
{
    cek_status st = o->st;
    cek__file_writer *writer = NULL;
    cek__onnx_bytes head = { 0 }, name = { 0 };
    uint64_t all;

    if (st != CEK_OK)
        goto out;
    CEK_TRY(text_add(&name, 2, "network"));
    all = name.size + o->nodes.size + o->ends.size;
    for (size_t i = 0; i < o->weights_count; i++) {
        const cek__onnx_weight *w = &o->weights[i];

        head.size = 0;
        CEK_TRY(head_add(&head, 5, w->head.size + w->bytes));
        all += head.size + w->head.size + w->bytes;
    }
    head.size = 0;
    CEK_TRY(model_head(&head, opset, all));
    if (all + head.size > FILE_BYTES_MAX)
        CEK_FAIL(CEK_UNSUPPORTED, "%s: %llu bytes, an ONNX file has at most %llu", path, (unsigned long long)all,
                 (unsigned long long)FILE_BYTES_MAX);
    CEK_TRY(cek__file_create(path, &writer));
    CEK_TRY(cek__file_write(writer, head.at, head.size));
    CEK_TRY(cek__file_write(writer, o->nodes.at, o->nodes.size));
    CEK_TRY(cek__file_write(writer, name.at, name.size));
    for (size_t i = 0; i < o->weights_count; i++) {
        const cek__onnx_weight *w = &o->weights[i];

        head.size = 0;
        CEK_TRY(head_add(&head, 5, w->head.size + w->bytes));
        CEK_TRY(cek__file_write(writer, head.at, head.size));
        CEK_TRY(cek__file_write(writer, w->head.at, w->head.size));
        CEK_TRY(cek__file_write(writer, w->data, w->bytes));
    }
    CEK_TRY(cek__file_write(writer, o->ends.at, o->ends.size));
    st = cek__file_commit(&writer);
out:
    cek__file_abandon(&writer);
    free(head.at);
    free(name.at);
    return st;
}

void cek__onnx_out_clear(cek__onnx_out *o)
{
    for (size_t i = 0; i < o->weights_count; i++)
        free(o->weights[i].head.at);
    free(o->weights);
    free(o->nodes.at);
    free(o->ends.at);
    *o = (cek__onnx_out){ 0 };
}
