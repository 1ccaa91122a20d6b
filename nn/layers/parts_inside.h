/* parts_inside.h - a part that a caller adds, as a node of its own: for parts*.c alone. */
#ifndef CEK_NN_LAYERS_PARTS_INSIDE_H
#define CEK_NN_LAYERS_PARTS_INSIDE_H

#include <stdlib.h>

#include "cekernels/parts.h"
#include "core/base/alloc.h"
#include "core/base/status.h"
#include "nn/model/layer.h"

/* A node that an earlier failure kept from being says so again. */
static inline cek_status begin(cek__layer *l, cek_model *model, const char *kind, int inputs, const int *nodes)
{
    for (int i = 0; i < inputs && model && (model->failed != CEK_OK || model->failure); i++)
        if (nodes[i] == -1) {
            *l = (cek__layer){ 0 };
            return cek__node_check(model, -1, "input");
        }
    return cek__layer_begin(l, model, kind, inputs, nodes);
}

/* Returns the node, or -1; the first failure stays with the model. */
static inline int end(cek_model *model, cek__layer *l, cek_status st, int flow)
{
    int node;

    st = cek__layer_end(l, st, flow, &node);
    if (st != CEK_OK && model && model->failed == CEK_OK) {
        model->failed = st;
        free(model->failure);
        if (cek__strdup(cek_error_text(), &model->failure) != CEK_OK)
            model->failed = CEK_OUT_OF_MEMORY;
    }
    return node;
}

/* A shape as callers write it. */
static inline cek_status dims_take(int rank, const int64_t *shape, cek__dims *out)
{
    *out = (cek__dims){ .rank = rank };
    if (rank > 0 && !shape)
        return cek__fail(CEK_INVALID, "shape is NULL");
    if (rank < 0 || rank > CEK_RANK_MAX)
        return cek__fail(CEK_INVALID, "a shape of rank %d, it is 0 to %d", rank, CEK_RANK_MAX);
    for (int i = 0; i < rank; i++) {
        int64_t size = shape[i];

        if (size == 0 || size == INT64_MIN || llabs(size) > CEK__ELEMENTS_MAX)
            return cek__fail(CEK_INVALID, "axis %d is of size %lld", i, (long long)size);
        if (size < 0 && out->samples)
            return cek__fail(CEK_INVALID, "two axes count samples");
        out->size[i] = llabs(size);
        out->samples |= (uint32_t)(size < 0) << i;
    }
    return CEK_OK;
}

#endif
