/* operators.h - which operators of ONNX there are as parts, and the functions that add them.
 *
 * A function reads its node through call.h and gives c->out. `argument` in the table says which of several like
 * ones it is.
 * Must not know: how a file is read, models beside the layer that is being added. */
#ifndef CEK_NN_ONNX_OPERATORS_H
#define CEK_NN_ONNX_OPERATORS_H

#include "nn/onnx/call.h"

typedef struct cek__onnx_operator {
    const char *name;
    cek_status (*add)(cek__onnx_call *call);
    uint32_t argument;
    uint32_t gives; /* of which type, as operators.c says */
} cek__onnx_operator;

/* NULL: there is none of that name. */
const cek__onnx_operator *cek__onnx_operator_find(const char *name);
/* A value's cek__onnx_type, which its flow does not say: truths are floats there. 0: it cannot be told. */
int cek__onnx_type_of(const cek__onnx_import *i, int value);

/* ---- elements.c ---- */

enum {
    CEK__FORMULA_CEIL,
    CEK__FORMULA_RECIPROCAL,
    CEK__FORMULA_SOFTSIGN,
    CEK__FORMULA_TAN,
    CEK__FORMULA_ATANH,
    CEK__FORMULA_NOT,
    CEK__FORMULA_IS_NAN
};
enum {
    CEK__ACTIVATION_ELU,
    CEK__ACTIVATION_SELU,
    CEK__ACTIVATION_CELU,
    CEK__ACTIVATION_LEAKY_RELU,
    CEK__ACTIVATION_THRESHOLDED,
    CEK__ACTIVATION_SHRINK,
    CEK__ACTIVATION_HARD_SIGMOID,
    CEK__ACTIVATION_HARD_SWISH,
    CEK__ACTIVATION_SOFTPLUS,
    CEK__ACTIVATION_MISH,
    CEK__ACTIVATION_SWISH,
    CEK__ACTIVATION_GELU
};
enum { CEK__COMPARE_SWAPPED = 1, CEK__COMPARE_OR_EQUAL = 2 }; /* of "less" */
enum { CEK__VARIADIC_MEAN = 0 /* else an instruction */ };
cek_status cek__onnx_apply(cek__onnx_call *c); /* argument: an instruction of one */
cek_status cek__onnx_identity(cek__onnx_call *c);
cek_status cek__onnx_dropout(cek__onnx_call *c);
cek_status cek__onnx_formula(cek__onnx_call *c);
cek_status cek__onnx_sinh(cek__onnx_call *c); /* 1: cosh */
cek_status cek__onnx_asinh(cek__onnx_call *c);
cek_status cek__onnx_acosh(cek__onnx_call *c);
cek_status cek__onnx_round(cek__onnx_call *c);
cek_status cek__onnx_is_inf(cek__onnx_call *c);
cek_status cek__onnx_activation(cek__onnx_call *c);
cek_status cek__onnx_clip(cek__onnx_call *c);
cek_status cek__onnx_binary(cek__onnx_call *c); /* an instruction of two */
cek_status cek__onnx_compare(cek__onnx_call *c);
cek_status cek__onnx_xor(cek__onnx_call *c);
cek_status cek__onnx_mod(cek__onnx_call *c);
cek_status cek__onnx_variadic(cek__onnx_call *c);
cek_status cek__onnx_prelu(cek__onnx_call *c);
cek_status cek__onnx_where(cek__onnx_call *c);
cek_status cek__onnx_cast(cek__onnx_call *c);
cek_status cek__onnx_cast_like(cek__onnx_call *c);

/* ---- axes.c ---- */

cek_status cek__onnx_reshape(cek__onnx_call *c);
cek_status cek__onnx_flatten(cek__onnx_call *c);
cek_status cek__onnx_squeeze(cek__onnx_call *c);
cek_status cek__onnx_unsqueeze(cek__onnx_call *c);
cek_status cek__onnx_transpose(cek__onnx_call *c);
cek_status cek__onnx_expand(cek__onnx_call *c);
cek_status cek__onnx_constant_of_shape(cek__onnx_call *c);
/* Elements of an axis as often: all of them behind each other, `at` that axis; each by itself, at the next one. */
cek_status cek__onnx_repeat(cek__onnx_call *c, int x, int axis, int at, int64_t times, int *out);
cek_status cek__onnx_tile(cek__onnx_call *c);
cek_status cek__onnx_concat(cek__onnx_call *c);
cek_status cek__onnx_depth_to_space(cek__onnx_call *c);
cek_status cek__onnx_space_to_depth(cek__onnx_call *c);

/* ---- pieces.c ---- */

cek_status cek__onnx_split(cek__onnx_call *c);
cek_status cek__onnx_slice(cek__onnx_call *c);
cek_status cek__onnx_gather(cek__onnx_call *c);
cek_status cek__onnx_gather_nd(cek__onnx_call *c);
cek_status cek__onnx_gather_elements(cek__onnx_call *c);
cek_status cek__onnx_trilu(cek__onnx_call *c);
cek_status cek__onnx_pad(cek__onnx_call *c);

/* ---- windows.c ---- */

cek_status cek__onnx_conv(cek__onnx_call *c);
cek_status cek__onnx_conv_transposed(cek__onnx_call *c);
cek_status cek__onnx_pool(cek__onnx_call *c);        /* CEK_POOL_... */
cek_status cek__onnx_global_pool(cek__onnx_call *c); /* CEK_REDUCE_... */
cek_status cek__onnx_lp_pool(cek__onnx_call *c);
cek_status cek__onnx_lrn(cek__onnx_call *c);

/* ---- resample.c ---- */

cek_status cek__onnx_resize(cek__onnx_call *c);

/* ---- sums.c ---- */

enum {
    CEK__SUM,
    CEK__SUM_MEAN,
    CEK__SUM_MAX,
    CEK__SUM_MIN,
    CEK__SUM_SQUARES,
    CEK__SUM_L1,
    CEK__SUM_L2,
    CEK__SUM_LOG,
    CEK__SUM_LOG_EXP
};
cek_status cek__onnx_matmul(cek__onnx_call *c);
cek_status cek__onnx_gemm(cek__onnx_call *c);
cek_status cek__onnx_reduce(cek__onnx_call *c);
cek_status cek__onnx_arg(cek__onnx_call *c);     /* CEK_ARG_... */
cek_status cek__onnx_softmax(cek__onnx_call *c); /* 1: its logarithm */
cek_status cek__onnx_batch_norm(cek__onnx_call *c);
cek_status cek__onnx_layer_norm(cek__onnx_call *c); /* 1: without the mean */
cek_status cek__onnx_instance_norm(cek__onnx_call *c);
cek_status cek__onnx_group_norm(cek__onnx_call *c);
cek_status cek__onnx_lp_norm(cek__onnx_call *c);
cek_status cek__onnx_mean_variance(cek__onnx_call *c);

/* ---- attend.c ---- */

cek_status cek__onnx_attention(cek__onnx_call *c);

/* ---- classes.c ---- */

cek_status cek__onnx_class_loss(cek__onnx_call *c); /* 1: of scores, else of logarithms of probabilities */
cek_status cek__onnx_hardmax(cek__onnx_call *c);

/* ---- recurrent.c ---- */

cek_status cek__onnx_recurrent(cek__onnx_call *c); /* how many gates */

#endif
