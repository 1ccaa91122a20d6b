/* onnx.c - reads an ONNX file, in the order in which its parts may be believed; and what was read, for those
 * who use it. */
#include "nn/formats/onnx.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "nn/formats/onnx_inside.h"

/* A message of protocol buffers has at most 2 GiB; larger models have their weights in external files. */
#define FILE_BYTES_MAX ((uint64_t)1 << 31)

static const struct {
    const char *name;
    uint64_t bytes;
} types[] = {
    [CEK__ONNX_FLOAT] = { "float32", 4 },     [CEK__ONNX_UINT8] = { "uint8", 1 },
    [CEK__ONNX_INT8] = { "int8", 1 },         [CEK__ONNX_INT32] = { "int32", 4 },
    [CEK__ONNX_INT64] = { "int64", 8 },       [CEK__ONNX_BOOL] = { "bool", 1 },
    [CEK__ONNX_DOUBLE] = { "float64", 8 },    [CEK__ONNX_FLOAT16] = { "float16", 2 },
    [CEK__ONNX_BFLOAT16] = { "bfloat16", 2 },
};
enum { TYPES = sizeof types / sizeof *types };

const char *cek__onnx_type_name(int type)
{
    return type >= 0 && type < TYPES ? types[type].name : NULL;
}

uint64_t cek__onnx_type_bytes(int type)
{
    return type >= 0 && type < TYPES ? types[type].bytes : 0;
}

cek_status cek__onnx_room(size_t count, size_t *room, size_t size, void *list)
{
    size_t more = *room > 0 ? 2 * *room : 16;
    cek_status st = CEK_OK;

    if (count == *room) {
        CEK_TRY(cek__realloc_array(more, size, list));
        *room = more;
    }
out:
    return st;
}

cek_status cek__onnx_read(const char *path, cek__onnx **out)
{
    cek__onnx_reader r = { 0 };
    cek__onnx *o = NULL;
    void **block;
    size_t size;
    cek_status st;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *o, &o));
    r.o = o;
    CEK_TRY(cek__strdup(path, &o->path));
    CEK__ONNX_ADD(o, blocks, block);
    CEK_TRY(cek__file_read(path, FILE_BYTES_MAX, block, &size));
    r.begin = *block;
    CEK_TRY(cek__onnx_messages(&r, (cek__wire){ .at = r.begin, .end = r.begin + size }));
    for (size_t i = 0; i < o->ends_count; i++)
        *o->ends[i] = '\0'; /* the byte behind a text is a field's first, which has been read, or the file's end */
    CEK_TRY(cek__onnx_weights(&r));
    CEK_TRY(cek__onnx_names(&r));
    *out = o;
out:
    free(r.sources);
    free(r.initialisers);
    free(r.given);
    free(r.said);
    if (st != CEK_OK)
        cek__onnx_free(o);
    return st;
}

void cek__onnx_free(cek__onnx *o)
{
    if (o == NULL)
        return;
    for (size_t i = 0; i < o->blocks_count; i++)
        free(o->blocks[i]);
    free(o->nodes);
    free(o->links);
    free(o->attributes);
    free(o->integers);
    free(o->numbers);
    free(o->tensors);
    free(o->forms);
    free(o->values);
    free(o->inputs);
    free(o->outputs);
    free(o->blocks);
    free(o->ends);
    free(o->path);
    free(o);
}

const cek__onnx_attribute *cek__onnx_attribute_find(const cek__onnx *o, const cek__onnx_node *node, const char *name)
{
    for (size_t i = 0; i < node->attributes; i++)
        if (strcmp(o->attributes[node->first_attribute + i].name, name) == 0)
            return &o->attributes[node->first_attribute + i];
    return NULL;
}
