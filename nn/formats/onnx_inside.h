/* onnx_inside.h - what the readers of ONNX files share: a file that is being read.
 *
 * Messages first (onnx_messages.c), which believe nothing and only sort bytes; then texts get their 0 bytes, and what
 * they name is checked: weights (onnx_weights.c), names (onnx_names.c). */
#ifndef CEK_NN_FORMATS_ONNX_INSIDE_H
#define CEK_NN_FORMATS_ONNX_INSIDE_H

#include "core/base/alloc.h"
#include "nn/formats/onnx.h"
#include "nn/formats/wire.h"

/* Where a tensor's values are, before anybody has looked. */
typedef struct cek__onnx_source {
    cek__wire bytes; /* raw, or a packed list of numbers of this kind: */
    int field;       /* of TensorProto, from which; 0: none */
    bool twice;      /* more than one */
    bool external;
    const char *location, *offset, *length; /* NULL: not said */
} cek__onnx_source;

/* What is said of a value that may be a weight. */
typedef struct cek__onnx_said {
    const char *name;
    cek__onnx_role role;
} cek__onnx_said;

typedef struct cek__onnx_reader {
    cek__onnx *o;
    uint8_t *begin;
    CEK__ONNX_LIST(cek__onnx_source, sources); /* one for each tensor */
    CEK__ONNX_LIST(int, initialisers);         /* tensors */
    CEK__ONNX_LIST(cek__onnx_value, given);    /* inputs of the graph, initialisers among them */
    CEK__ONNX_LIST(cek__onnx_said, said);
} cek__onnx_reader;

cek_status cek__onnx_room(size_t count, size_t *room, size_t size, void *list);
/* Appends a zeroed item and leads to it; leaves through `out:`. */
#define CEK__ONNX_ADD(of, list, item)                                                                     \
    do {                                                                                                  \
        CEK_TRY(cek__onnx_room((of)->list##_count, &(of)->list##_room, sizeof *(of)->list, &(of)->list)); \
        memset(&(of)->list[(of)->list##_count], 0, sizeof *(of)->list);                                   \
        (item) = &(of)->list[(of)->list##_count++];                                                       \
    } while (0)

/* Fields of TensorProto that hold values. */
enum {
    CEK__ONNX_FLOAT_DATA = 4,
    CEK__ONNX_INT32_DATA = 5,
    CEK__ONNX_INT64_DATA = 7,
    CEK__ONNX_RAW_DATA = 9,
    CEK__ONNX_DOUBLE_DATA = 10
};

CEK__CHECKED cek_status cek__onnx_messages(cek__onnx_reader *r, cek__wire file);
CEK__CHECKED cek_status cek__onnx_weights(cek__onnx_reader *r);
CEK__CHECKED cek_status cek__onnx_names(cek__onnx_reader *r);

#endif
