/* onnx_write.c - see onnx_write.h. Field numbers are those of onnx.proto. */
#include "nn/formats/onnx_write.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/file.h"

enum { IR_VERSION = 8 };
#define FILE_BYTES_MAX ((uint64_t)INT32_MAX) /* of protocol buffers */

/* ---- nodes ---- */

static cek_status setting_add(cek__message *node, const cek__onnx_setting *s)
{
    cek_status st;
    cek__message a = { 0 };

    CEK_TRY(cek__message_text(&a, 1, s->name));
    if (s->kind == CEK__ONNX_ATTRIBUTE_FLOAT) {
        CEK_TRY(cek__message_float(&a, 2, (float)s->number));
    } else if (s->kind == CEK__ONNX_ATTRIBUTE_INT) {
        CEK_TRY(cek__message_integer(&a, 3, s->integer));
    } else {
        for (int i = 0; i < s->count; i++)
            CEK_TRY(cek__message_integer(&a, 8, s->integers[i]));
    }
    CEK_TRY(cek__message_integer(&a, 20, s->kind));
    st = cek__message_within(node, 5, &a);
out:
    free(a.at);
    return st;
}

void cek__onnx_put_node(cek__onnx_out *o, const char *op, int inputs, const char *const *input, const char *output,
                        int settings, const cek__onnx_setting *setting)
{
    cek_status st = o->st;
    cek__message node = { 0 };

    if (st != CEK_OK)
        goto out;
    for (int i = 0; i < inputs; i++)
        CEK_TRY(cek__message_text(&node, 1, input[i]));
    CEK_TRY(cek__message_text(&node, 2, output));
    CEK_TRY(cek__message_text(&node, 3, output));
    CEK_TRY(cek__message_text(&node, 4, op));
    for (int i = 0; i < settings; i++)
        CEK_TRY(setting_add(&node, &setting[i]));
    st = cek__message_within(&o->nodes, 1, &node);
out:
    free(node.at);
    o->st = st;
}

/* ---- tensors ---- */

static cek_status tensor_head(cek__message *b, const char *name, int type, int rank, const int64_t *shape)
{
    cek_status st;

    for (int i = 0; i < rank; i++)
        CEK_TRY(cek__message_integer(b, 1, shape[i]));
    CEK_TRY(cek__message_integer(b, 2, type));
    st = cek__message_text(b, 8, name);
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
    st = cek__message_head(&w->head, 9, bytes);
out:
    o->st = st;
}

void cek__onnx_put_numbers(cek__onnx_out *o, const char *name, int type, int rank, const int64_t *shape,
                           const void *data, uint64_t bytes)
{
    cek_status st = o->st;
    cek__message tensor = { 0 };

    if (st != CEK_OK)
        goto out;
    CEK_TRY(tensor_head(&tensor, name, type, rank, shape));
    CEK_TRY(cek__message_field(&tensor, 9, data, bytes));
    st = cek__message_within(&o->ends, 5, &tensor);
out:
    free(tensor.at);
    o->st = st;
}

void cek__onnx_put_constant(cek__onnx_out *o, const char *name, int type, int rank, const int64_t *shape,
                            const void *data, uint64_t bytes)
{
    cek_status st = o->st;
    cek__message tensor = { 0 }, value = { 0 }, node = { 0 };

    if (st != CEK_OK)
        goto out;
    CEK_TRY(tensor_head(&tensor, name, type, rank, shape));
    CEK_TRY(cek__message_field(&tensor, 9, data, bytes));
    CEK_TRY(cek__message_text(&value, 1, "value"));
    CEK_TRY(cek__message_within(&value, 5, &tensor));
    CEK_TRY(cek__message_integer(&value, 20, CEK__ONNX_ATTRIBUTE_TENSOR));
    CEK_TRY(cek__message_text(&node, 2, name));
    CEK_TRY(cek__message_text(&node, 3, name));
    CEK_TRY(cek__message_text(&node, 4, "Constant"));
    CEK_TRY(cek__message_within(&node, 5, &value));
    st = cek__message_within(&o->nodes, 1, &node);
out:
    free(tensor.at);
    free(value.at);
    free(node.at);
    o->st = st;
}

/* ---- ends ---- */

/* TypeProto of a tensor. */
static cek_status type_add(cek__message *type, int element, int rank, const int64_t *size, const char *batch)
{
    cek_status st;
    cek__message dim = { 0 }, dims = { 0 }, tensor = { 0 };

    for (int i = 0; i < rank; i++) {
        if (size[i] == 0)
            CEK_TRY(cek__message_text(&dim, 2, batch));
        else if (size[i] > 0)
            CEK_TRY(cek__message_integer(&dim, 1, size[i]));
        CEK_TRY(cek__message_within(&dims, 1, &dim));
    }
    CEK_TRY(cek__message_integer(&tensor, 1, element));
    CEK_TRY(cek__message_within(&tensor, 2, &dims));
    st = cek__message_within(type, 1, &tensor);
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
    cek__message value = { 0 }, of = { 0 };

    if (st != CEK_OK)
        goto out;
    CEK_TRY(cek__message_text(&value, 1, name));
    CEK_TRY(type_add(&of, type, rank, size, batch));
    CEK_TRY(cek__message_within(&value, 2, &of));
    st = cek__message_within(&o->ends, field, &value);
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

static cek_status opset_add(cek__message *model, int64_t opset)
{
    cek_status st;
    cek__message operators = { 0 };

    CEK_TRY(cek__message_text(&operators, 1, ""));
    CEK_TRY(cek__message_integer(&operators, 2, opset));
    st = cek__message_within(model, 8, &operators);
out:
    free(operators.at);
    return st;
}

/* What stands before the graph's fields. */
static cek_status model_head(cek__message *model, int64_t opset, uint64_t graph_bytes)
{
    cek_status st;

    CEK_TRY(cek__message_integer(model, 1, IR_VERSION));
    CEK_TRY(cek__message_text(model, 2, "cekernels"));
    CEK_TRY(opset_add(model, opset));
    st = cek__message_head(model, 7, graph_bytes);
out:
    return st;
}

cek_status cek__onnx_write(const cek__onnx_out *o, const char *path, int64_t opset)
{
    cek_status st = o->st;
    cek__file_writer *writer = NULL;
    cek__message head = { 0 }, name = { 0 };
    uint64_t all;

    if (st != CEK_OK)
        goto out;
    CEK_TRY(cek__message_text(&name, 2, "network"));
    all = name.size + o->nodes.size + o->ends.size;
    for (size_t i = 0; i < o->weights_count; i++) {
        const cek__onnx_weight *w = &o->weights[i];

        head.size = 0;
        CEK_TRY(cek__message_head(&head, 5, w->head.size + w->bytes));
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
        CEK_TRY(cek__message_head(&head, 5, w->head.size + w->bytes));
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
