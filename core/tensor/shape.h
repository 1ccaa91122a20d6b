/* shape.h - shapes, strides and broadcasting, without data.
 *
 * Must not know: tensors or devices. */
#ifndef CEK_CORE_TENSOR_SHAPE_H
#define CEK_CORE_TENSOR_SHAPE_H

#include <stdbool.h>

#include "core/base/status.h"

typedef struct cek__shape {
    int rank;
    int64_t dims[CEK_RANK_MAX];
} cek__shape;

enum { CEK__SHAPE_TEXT = 8 * 21 + 3 };

/* "[2,3]"; returns `out`, which has CEK__SHAPE_TEXT bytes. */
char *cek__shape_text(const cek__shape *shape, char *out);
#define CEK__SHAPE_TEXT_OF(shape) cek__shape_text((shape), (char[CEK__SHAPE_TEXT]){ 0 })

/* Checks rank and dimensions (>= 1) and that `element_bytes` times their product fit; `what` starts the error. */
CEK__CHECKED cek_status cek__shape_make(const char *what, int rank, const int64_t *dims, size_t element_bytes,
                                        cek__shape *out);
int64_t cek__shape_count(const cek__shape *shape);
bool cek__shape_equal(const cek__shape *a, const cek__shape *b);

/* As NumPy: aligned at the last dimension, 1 stretches. */
CEK__CHECKED cek_status cek__shape_broadcast(const char *what, const cek__shape *a, const cek__shape *b,
                                             cek__shape *out);

/* Row-major strides, in elements, of a dense array. */
void cek__shape_strides(const cek__shape *shape, int64_t strides[CEK_RANK_MAX]);

/* Whether these are they, but for dimensions of 1. */
bool cek__shape_is_dense(const cek__shape *shape, const int64_t *strides);

/* Joins neighbouring dimensions that all `count` operands walk as one, and drops those of size 1: fewer loops, fewer
 * kinds of operation. What remains has at least one dimension. */
void cek__shape_collapse(cek__shape *shape, int count, int64_t strides[][CEK_RANK_MAX]);

#endif
