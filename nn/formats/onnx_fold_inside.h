/* onnx_fold_inside.h - what the operators of folding share: one call of one of them. */
#ifndef CEK_NN_FORMATS_ONNX_FOLD_INSIDE_H
#define CEK_NN_FORMATS_ONNX_FOLD_INSIDE_H

#include "nn/formats/onnx_fold.h"

enum { CEK__FOLD_INPUTS = 8 };

typedef struct cek__fold_call {
    cek__fold *fold;
    const cek__onnx_node *node;
    size_t number; /* of the node */
    int argument;  /* of the operator's line in the table */
    size_t inputs;
    const cek__fold_value *in[CEK__FOLD_INPUTS]; /* NULL: left out */
    cek__fold_value out;                         /* stays without numbers where it is not known */
} cek__fold_call;

/* CEK_BAD_INPUT with node and operator. */
cek_status cek__fold_bad(const cek__fold_call *c, const char *cause);
/* Memory for the output; where that is too large it stays not known, and so does c->out.numbers NULL. */
CEK__CHECKED cek_status cek__fold_make(cek__fold_call *c, int type, uint32_t rank, const int64_t *shape);
void cek__fold_forget(cek__fold_call *c); /* it is not known after all */
/* The values of a tensor of the file; not known if it is large or of another type. */
CEK__CHECKED cek_status cek__fold_tensor(cek__fold_call *c, const cek__onnx_tensor *t);

/* An attribute that is one integer. */
int64_t cek__fold_integer(const cek__fold_call *c, const char *name, int64_t otherwise);
/* An axis from 0 to below `rank`, counted from the end where it is negative. */
CEK__CHECKED cek_status cek__fold_axis(const cek__fold_call *c, int64_t axis, uint32_t rank, uint32_t *out);
/* Whether every number of a list of integers is without the batch. */
bool cek__fold_constant(const cek__fold_value *v);

/* onnx_fold_math.c: element by element; arguments of the first. */
enum {
    CEK__FOLD_ADD,
    CEK__FOLD_SUB,
    CEK__FOLD_MUL,
    CEK__FOLD_DIV,
    CEK__FOLD_MOD,
    CEK__FOLD_MIN,
    CEK__FOLD_MAX,
    CEK__FOLD_EQUAL, /* from here on truth values */
    CEK__FOLD_LESS,
    CEK__FOLD_LESS_OR_EQUAL,
    CEK__FOLD_GREATER,
    CEK__FOLD_GREATER_OR_EQUAL,
    CEK__FOLD_AND, /* from here on of truth values too */
    CEK__FOLD_OR
};
enum { CEK__FOLD_NEG, CEK__FOLD_SQRT, CEK__FOLD_NOT };
CEK__CHECKED cek_status cek__fold_two(cek__fold_call *c);
CEK__CHECKED cek_status cek__fold_one(cek__fold_call *c);
CEK__CHECKED cek_status cek__fold_cast(cek__fold_call *c);
CEK__CHECKED cek_status cek__fold_where(cek__fold_call *c);
CEK__CHECKED cek_status cek__fold_range(cek__fold_call *c);

/* onnx_fold_move.c: the same elements elsewhere. */
CEK__CHECKED cek_status cek__fold_gather(cek__fold_call *c);
CEK__CHECKED cek_status cek__fold_concat(cek__fold_call *c);
CEK__CHECKED cek_status cek__fold_slice(cek__fold_call *c);
CEK__CHECKED cek_status cek__fold_unsqueeze(cek__fold_call *c);
CEK__CHECKED cek_status cek__fold_squeeze(cek__fold_call *c);
CEK__CHECKED cek_status cek__fold_reshape(cek__fold_call *c);
CEK__CHECKED cek_status cek__fold_expand(cek__fold_call *c);
CEK__CHECKED cek_status cek__fold_trilu(cek__fold_call *c);
CEK__CHECKED cek_status cek__fold_identity(cek__fold_call *c);

/* The shape in which NumPy combines two; false where it does not. */
bool cek__fold_broadcast(const cek__fold_value *a, const cek__fold_value *b, uint32_t *rank,
                         int64_t shape[CEK_RANK_MAX]);
/* The element of `v` that stands at place i of a shape into which it is broadcast. */
const cek__fold_number *cek__fold_at(const cek__fold_value *v, uint32_t rank, const int64_t *shape, uint64_t i);

#endif
