/* onnx_fold.h - what an ONNX graph computes of constants and shapes, computed when it is read.
 *
 *     CEK_TRY(cek__fold_begin(onnx, &fold));
 *     CEK_TRY(cek__fold_shape_set(&fold, input, rank, sizes));    the batch as a symbol
 *     for each node, in order:
 *         CEK_TRY(cek__fold_node(&fold, node, &known));
 *         if (!known) ... it is work for a device; its outputs' shapes are told by cek__fold_shape_set ...
 *     cek__fold_value *v = cek__fold_known(&fold, value);          a reshape's sizes, say
 *
 * Exporters write the sizes of reshapes as arithmetic on shapes (Shape, Gather, Concat, ...). Integers here are
 * constant + factor * batch, so that such arithmetic stays true at any batch; what that form cannot say is not known,
 * never guessed. Small tensors alone: whatever has more than CEK__FOLD_MOST elements is not known.
 * Must not know: parts, models, what other operators compute. */
#ifndef CEK_NN_FORMATS_ONNX_FOLD_H
#define CEK_NN_FORMATS_ONNX_FOLD_H

#include "nn/formats/onnx.h"

/* The longest list of a shape's arithmetic has a few elements; relative positions of attention have as many as a
 * sequence. All of a file's together: so that small nodes cannot make much memory. */
enum { CEK__FOLD_MOST = 4096, CEK__FOLD_ALL = 1 << 20 };

typedef struct cek__fold_number {
    int64_t constant, factor; /* constant + factor * batch; the factor is 0 but of integers */
    double real;              /* of FLOAT */
} cek__fold_number;

typedef struct cek__fold_value {
    int type; /* CEK__ONNX_FLOAT, _INT64, _INT32 or _BOOL */
    uint32_t rank;
    int64_t shape[CEK_RANK_MAX];
    uint64_t count;
    cek__fold_number *numbers; /* NULL: not known */
    bool weight;               /* floats, computed of a weight of the file that may be trained */
} cek__fold_value;

typedef struct cek__fold {
    const cek__onnx *onnx;
    cek__fold_value *values, *shapes; /* of each value of the file: what it is, and its shape as a list of INT64 */
    uint64_t taken;                   /* numbers */
} cek__fold;

CEK__SHARED CEK__CHECKED cek_status cek__fold_begin(const cek__onnx *onnx, cek__fold *out);
CEK__SHARED void cek__fold_end(cek__fold *fold); /* a zeroed one is accepted */

/* What a value's shape is; of those that are known themselves it need not be told. */
CEK__SHARED CEK__CHECKED cek_status cek__fold_shape_set(cek__fold *fold, int value, uint32_t rank,
                                                        const cek__fold_number *sizes);

/* Whether the node's output is known now. CEK_BAD_INPUT, with the node, where what it is to
 * compute is impossible. */
CEK__SHARED CEK__CHECKED cek_status cek__fold_node(cek__fold *fold, size_t node, bool *known);

/* Whether there are nodes of this operator that can be known. */
CEK__SHARED bool cek__fold_knows(const cek__onnx_node *node);

/* What a value is; also of initialisers that are small and of a type that is computed with. *out NULL: it
 * is not known. */
CEK__SHARED CEK__CHECKED cek_status cek__fold_look(cek__fold *fold, int value, const cek__fold_value **out);

/* NULL where it is not known; initialisers are, once a node or cek__fold_look wanted them. */
CEK__SHARED const cek__fold_value *cek__fold_known(const cek__fold *fold, int value);

#endif
