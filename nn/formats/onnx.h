/* onnx.h - an ONNX file as a checked list of nodes: names are numbers, everything that is read was given before.
 *
 * Owns: the file's bytes, those of external files, what was made of them. Weights stay where they lie.
 * Values are numbers into `values`; a node's inputs and outputs are ranges of `links`, its attributes of `attributes`.
 * Graphs within attributes (If, Loop) are kept out: such an attribute is only known to be there.
 * Must not know: what an operator computes; parts, models. */
#ifndef CEK_NN_FORMATS_ONNX_H
#define CEK_NN_FORMATS_ONNX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

enum { CEK__ONNX_OPSET_MIN = 13, CEK__ONNX_OPSET_MAX = 28, CEK__ONNX_NONE = -1 };

/* ONNX's TensorProto.DataType, as far as it is read. */
typedef enum cek__onnx_type {
    CEK__ONNX_FLOAT = 1,
    CEK__ONNX_UINT8 = 2,
    CEK__ONNX_INT8 = 3,
    CEK__ONNX_INT32 = 6,
    CEK__ONNX_INT64 = 7,
    CEK__ONNX_BOOL = 9,
    CEK__ONNX_FLOAT16 = 10,
    CEK__ONNX_DOUBLE = 11,
    CEK__ONNX_BFLOAT16 = 16
} cek__onnx_type;
CEK__SHARED const char *cek__onnx_type_name(int type); /* "int64"; NULL for one that is not read */
CEK__SHARED uint64_t cek__onnx_type_bytes(int type);   /* 0 likewise */

typedef struct cek__onnx_tensor {
    const char *name;
    int type; /* cek__onnx_type */
    uint32_t rank;
    int64_t shape[CEK_RANK_MAX];
    uint64_t count;
    const void *data; /* count values, packed, row-major; at any address */
} cek__onnx_tensor;

/* What the file says of an input or output. */
typedef struct cek__onnx_form {
    int type;
    bool shaped; /* false: rank and sizes are not said */
    uint32_t rank;
    int64_t size[CEK_RANK_MAX];       /* -1: not said, or */
    const char *symbol[CEK_RANK_MAX]; /* said by a name, else NULL */
} cek__onnx_form;

/* What PyTorch's newer exporter says of a weight: whether the module trains it. */
typedef enum cek__onnx_role {
    CEK__ONNX_ROLE_NONE, /* nothing is said */
    CEK__ONNX_ROLE_PARAMETER,
    CEK__ONNX_ROLE_BUFFER
} cek__onnx_role;

typedef struct cek__onnx_value {
    const char *name;
    int node;            /* that gives it, or NONE; */
    int tensor;          /* an initialiser, or that of a Constant, or NONE; */
    int form;            /* an input's, or NONE */
    cek__onnx_role role; /* of an initialiser */
} cek__onnx_value;

/* ONNX's AttributeProto.AttributeType, as far as it is read; OTHER: a graph, a list of tensors, ... */
typedef enum cek__onnx_attribute_kind {
    CEK__ONNX_ATTRIBUTE_OTHER = 0,
    CEK__ONNX_ATTRIBUTE_FLOAT = 1,
    CEK__ONNX_ATTRIBUTE_INT = 2,
    CEK__ONNX_ATTRIBUTE_STRING = 3,
    CEK__ONNX_ATTRIBUTE_TENSOR = 4,
    CEK__ONNX_ATTRIBUTE_FLOATS = 6,
    CEK__ONNX_ATTRIBUTE_INTS = 7
} cek__onnx_attribute_kind;

typedef struct cek__onnx_attribute {
    const char *name;
    cek__onnx_attribute_kind kind;
    float number;
    int64_t integer;
    const char *text;
    int tensor;
    size_t first, count; /* of `numbers` or `integers` */
} cek__onnx_attribute;

typedef struct cek__onnx_node {
    const char *op, *domain, *name; /* never NULL */
    size_t first_input, inputs, first_output, outputs, first_attribute, attributes;
} cek__onnx_node;

typedef struct cek__onnx_link {
    const char *name;
    int value; /* NONE: left out */
} cek__onnx_link;

#define CEK__ONNX_LIST(type, name) \
    type *name;                    \
    size_t name##_count, name##_room

typedef struct cek__onnx {
    char *path;
    int64_t opset;
    CEK__ONNX_LIST(cek__onnx_node, nodes); /* each behind those that it reads */
    CEK__ONNX_LIST(cek__onnx_link, links);
    CEK__ONNX_LIST(cek__onnx_attribute, attributes);
    CEK__ONNX_LIST(int64_t, integers);
    CEK__ONNX_LIST(float, numbers);
    CEK__ONNX_LIST(cek__onnx_tensor, tensors);
    CEK__ONNX_LIST(cek__onnx_form, forms);
    CEK__ONNX_LIST(cek__onnx_value, values); /* in the order of their names */
    CEK__ONNX_LIST(cek__onnx_link, inputs);  /* of the graph, initialisers left out */
    CEK__ONNX_LIST(cek__onnx_link, outputs);
    /* What all of it points into. */
    CEK__ONNX_LIST(void *, blocks);
    CEK__ONNX_LIST(char *, ends); /* of texts: where their 0 bytes go */
} cek__onnx;

/* CEK_BAD_INPUT names the file, the node or tensor, and what is wrong: bytes that are no message, a tensor whose shape
 * and bytes differ, an external file outside of the model's folder (an absolute path, "..", a symbolic link that leads
 * out) or shorter than said, a name that is given twice or read before it is given, a model without an opset of ONNX's
 * own between the two above. CEK_IO: a file that cannot be read. */
CEK__SHARED CEK__CHECKED cek_status cek__onnx_read(const char *path, cek__onnx **out);
CEK__SHARED void cek__onnx_free(cek__onnx *onnx); /* NULL is accepted */

/* NULL if the node has none of that name. */
CEK__SHARED const cek__onnx_attribute *cek__onnx_attribute_find(const cek__onnx *onnx, const cek__onnx_node *node,
                                                                const char *name);

#endif
