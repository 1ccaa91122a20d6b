/* operators.c - the table of operators, and what it says of the types of values (see operators.h). */
#include "nn/onnx/operators.h"

#include <string.h>

/* Whose type an operator gives: that of an input, by its place; `to`, or that of `value`; one of its own. */
enum { FIRST, SECOND, NAMED, BOOL, INT64 };

/* clang-format off */
static const cek__onnx_operator operators[] = {
    { "Abs", cek__onnx_apply, CEK_PW_ABS, FIRST },
    { "Acosh", cek__onnx_acosh, 0, FIRST },
    { "Add", cek__onnx_binary, CEK_PW_ADD, FIRST },
    { "And", cek__onnx_binary, CEK_PW_MUL, BOOL },
    { "ArgMax", cek__onnx_arg, CEK_ARG_MAX, INT64 },
    { "ArgMin", cek__onnx_arg, CEK_ARG_MIN, INT64 },
    { "Asinh", cek__onnx_asinh, 0, FIRST },
    { "Atanh", cek__onnx_formula, CEK__FORMULA_ATANH, FIRST },
    { "Attention", cek__onnx_attention, 0, FIRST },
    { "AveragePool", cek__onnx_pool, CEK_POOL_AVERAGE, FIRST },
    { "BatchNormalization", cek__onnx_batch_norm, 0, FIRST },
    { "Cast", cek__onnx_cast, 0, NAMED },
    { "CastLike", cek__onnx_cast_like, 0, SECOND },
    { "Ceil", cek__onnx_formula, CEK__FORMULA_CEIL, FIRST },
    { "Celu", cek__onnx_activation, CEK__ACTIVATION_CELU, FIRST },
    { "Clip", cek__onnx_clip, 0, FIRST },
    { "Concat", cek__onnx_concat, 0, FIRST },
    { "ConstantOfShape", cek__onnx_constant_of_shape, 0, NAMED },
    { "Conv", cek__onnx_conv, 0, FIRST },
    { "ConvTranspose", cek__onnx_conv_transposed, 0, FIRST },
    { "Cos", cek__onnx_apply, CEK_PW_COS, FIRST },
    { "Cosh", cek__onnx_sinh, 1, FIRST },
    { "DepthToSpace", cek__onnx_depth_to_space, 0, FIRST },
    { "Div", cek__onnx_binary, CEK_PW_DIV, FIRST },
    { "Dropout", cek__onnx_dropout, 0, FIRST },
    { "Elu", cek__onnx_activation, CEK__ACTIVATION_ELU, FIRST },
    { "Equal", cek__onnx_binary, CEK_PW_EQUAL, BOOL },
    { "Erf", cek__onnx_apply, CEK_PW_ERF, FIRST },
    { "Exp", cek__onnx_apply, CEK_PW_EXP, FIRST },
    { "Expand", cek__onnx_expand, 0, FIRST },
    { "Flatten", cek__onnx_flatten, 0, FIRST },
    { "Floor", cek__onnx_apply, CEK_PW_FLOOR, FIRST },
    { "GRU", cek__onnx_recurrent, 3, FIRST },
    { "Gather", cek__onnx_gather, 0, FIRST },
    { "GatherElements", cek__onnx_gather_elements, 0, FIRST },
    { "GatherND", cek__onnx_gather_nd, 0, FIRST },
    { "Gelu", cek__onnx_activation, CEK__ACTIVATION_GELU, FIRST },
    { "Gemm", cek__onnx_gemm, 0, FIRST },
    { "GlobalAveragePool", cek__onnx_global_pool, CEK_REDUCE_MEAN, FIRST },
    { "GlobalMaxPool", cek__onnx_global_pool, CEK_REDUCE_MAX, FIRST },
    { "Greater", cek__onnx_compare, CEK__COMPARE_SWAPPED, BOOL },
    { "GreaterOrEqual", cek__onnx_compare, CEK__COMPARE_SWAPPED | CEK__COMPARE_OR_EQUAL, BOOL },
    { "GroupNormalization", cek__onnx_group_norm, 0, FIRST },
    { "HardSigmoid", cek__onnx_activation, CEK__ACTIVATION_HARD_SIGMOID, FIRST },
    { "HardSwish", cek__onnx_activation, CEK__ACTIVATION_HARD_SWISH, FIRST },
    { "Hardmax", cek__onnx_hardmax, 0, FIRST },
    { "Identity", cek__onnx_identity, 0, FIRST },
    { "InstanceNormalization", cek__onnx_instance_norm, 0, FIRST },
    { "IsInf", cek__onnx_is_inf, 0, BOOL },
    { "IsNaN", cek__onnx_formula, CEK__FORMULA_IS_NAN, BOOL },
    { "LRN", cek__onnx_lrn, 0, FIRST },
    { "LSTM", cek__onnx_recurrent, 4, FIRST },
    { "LayerNormalization", cek__onnx_layer_norm, 0, FIRST },
    { "LeakyRelu", cek__onnx_activation, CEK__ACTIVATION_LEAKY_RELU, FIRST },
    { "Less", cek__onnx_compare, 0, BOOL },
    { "LessOrEqual", cek__onnx_compare, CEK__COMPARE_OR_EQUAL, BOOL },
    { "Log", cek__onnx_apply, CEK_PW_LOG, FIRST },
    { "LogSoftmax", cek__onnx_softmax, 1, FIRST },
    { "LpNormalization", cek__onnx_lp_norm, 0, FIRST },
    { "LpPool", cek__onnx_lp_pool, 0, FIRST },
    { "MatMul", cek__onnx_matmul, 0, FIRST },
    { "Max", cek__onnx_variadic, CEK_PW_MAX, FIRST },
    { "MaxPool", cek__onnx_pool, CEK_POOL_MAX, FIRST },
    { "Mean", cek__onnx_variadic, CEK__VARIADIC_MEAN, FIRST },
    { "MeanVarianceNormalization", cek__onnx_mean_variance, 0, FIRST },
    { "Min", cek__onnx_variadic, CEK_PW_MIN, FIRST },
    { "Mish", cek__onnx_activation, CEK__ACTIVATION_MISH, FIRST },
    { "Mod", cek__onnx_mod, 0, FIRST },
    { "Mul", cek__onnx_binary, CEK_PW_MUL, FIRST },
    { "Neg", cek__onnx_apply, CEK_PW_NEG, FIRST },
    { "NegativeLogLikelihoodLoss", cek__onnx_class_loss, 0, FIRST },
    { "Not", cek__onnx_formula, CEK__FORMULA_NOT, BOOL },
    { "Or", cek__onnx_binary, CEK_PW_MAX, BOOL },
    { "PRelu", cek__onnx_prelu, 0, FIRST },
    { "Pad", cek__onnx_pad, 0, FIRST },
    { "Pow", cek__onnx_binary, CEK_PW_POW, FIRST },
    { "RMSNormalization", cek__onnx_layer_norm, 1, FIRST },
    { "Reciprocal", cek__onnx_formula, CEK__FORMULA_RECIPROCAL, FIRST },
    { "ReduceL1", cek__onnx_reduce, CEK__SUM_L1, FIRST },
    { "ReduceL2", cek__onnx_reduce, CEK__SUM_L2, FIRST },
    { "ReduceLogSum", cek__onnx_reduce, CEK__SUM_LOG, FIRST },
    { "ReduceLogSumExp", cek__onnx_reduce, CEK__SUM_LOG_EXP, FIRST },
    { "ReduceMax", cek__onnx_reduce, CEK__SUM_MAX, FIRST },
    { "ReduceMean", cek__onnx_reduce, CEK__SUM_MEAN, FIRST },
    { "ReduceMin", cek__onnx_reduce, CEK__SUM_MIN, FIRST },
    { "ReduceSum", cek__onnx_reduce, CEK__SUM, FIRST },
    { "ReduceSumSquare", cek__onnx_reduce, CEK__SUM_SQUARES, FIRST },
    { "Relu", cek__onnx_apply, CEK_PW_RELU, FIRST },
    { "Reshape", cek__onnx_reshape, 0, FIRST },
    { "Resize", cek__onnx_resize, 0, FIRST },
    { "Round", cek__onnx_round, 0, FIRST },
    { "Selu", cek__onnx_activation, CEK__ACTIVATION_SELU, FIRST },
    { "Shrink", cek__onnx_activation, CEK__ACTIVATION_SHRINK, FIRST },
    { "Sigmoid", cek__onnx_apply, CEK_PW_SIGMOID, FIRST },
    { "Sign", cek__onnx_apply, CEK_PW_SIGN, FIRST },
    { "Sin", cek__onnx_apply, CEK_PW_SIN, FIRST },
    { "Sinh", cek__onnx_sinh, 0, FIRST },
    { "Slice", cek__onnx_slice, 0, FIRST },
    { "Softmax", cek__onnx_softmax, 0, FIRST },
    { "SoftmaxCrossEntropyLoss", cek__onnx_class_loss, 1, FIRST },
    { "Softplus", cek__onnx_activation, CEK__ACTIVATION_SOFTPLUS, FIRST },
    { "Softsign", cek__onnx_formula, CEK__FORMULA_SOFTSIGN, FIRST },
    { "SpaceToDepth", cek__onnx_space_to_depth, 0, FIRST },
    { "Split", cek__onnx_split, 0, FIRST },
    { "Sqrt", cek__onnx_apply, CEK_PW_SQRT, FIRST },
    { "Squeeze", cek__onnx_squeeze, 0, FIRST },
    { "Sub", cek__onnx_binary, CEK_PW_SUB, FIRST },
    { "Sum", cek__onnx_variadic, CEK_PW_ADD, FIRST },
    { "Swish", cek__onnx_activation, CEK__ACTIVATION_SWISH, FIRST },
    { "Tan", cek__onnx_formula, CEK__FORMULA_TAN, FIRST },
    { "Tanh", cek__onnx_apply, CEK_PW_TANH, FIRST },
    { "ThresholdedRelu", cek__onnx_activation, CEK__ACTIVATION_THRESHOLDED, FIRST },
    { "Tile", cek__onnx_tile, 0, FIRST },
    { "Transpose", cek__onnx_transpose, 0, FIRST },
    { "Trilu", cek__onnx_trilu, 0, FIRST },
    { "Unsqueeze", cek__onnx_unsqueeze, 0, FIRST },
    { "Where", cek__onnx_where, 0, SECOND },
    { "Xor", cek__onnx_xor, 0, BOOL },
};
/* clang-format on */

const cek__onnx_operator *cek__onnx_operator_find(const char *name)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strcmp(operators[i].name, name) == 0)
            return &operators[i];
    return NULL;
}

enum { NOT_TOLD = -1 };

/* What a file says may be no type. */
static int told(int64_t type)
{
    return type > 0 && type <= INT32_MAX ? (int)type : NOT_TOLD;
}

/* Of what a value is, or NOT_TOLD; 0: of what *from is. */
static int type_here(const cek__onnx_import *i, int value, int *from)
{
    const cek__onnx *o = i->onnx;
    const cek__onnx_value *v = &o->values[value];
    const cek__fold_value *known = cek__fold_known(&i->fold, value);
    const cek__onnx_node *node = v->node != CEK__ONNX_NONE ? &o->nodes[v->node] : NULL;
    const cek__onnx_operator *kind = node ? cek__onnx_operator_find(node->op) : NULL;
    const cek__onnx_attribute *named;

    if (known != NULL)
        return told(known->type);
    if (v->tensor != CEK__ONNX_NONE)
        return told(o->tensors[v->tensor].type);
    if (v->form != CEK__ONNX_NONE)
        return told(o->forms[v->form].type);
    if (kind == NULL)
        return NOT_TOLD;
    switch (kind->gives) {
    case BOOL: return CEK__ONNX_BOOL;
    case INT64: return CEK__ONNX_INT64;
    case NAMED:
        named = cek__onnx_attribute_find(o, node, "to");
        if (named != NULL)
            return told(named->integer);
        named = cek__onnx_attribute_find(o, node, "value");
        return told(named != NULL && named->kind == CEK__ONNX_ATTRIBUTE_TENSOR ? (int)o->tensors[named->tensor].type
                                                                               : CEK__ONNX_FLOAT);
    default: break;
    }
    if (node->inputs <= kind->gives || o->links[node->first_input + kind->gives].value == CEK__ONNX_NONE)
        return NOT_TOLD;
    *from = o->links[node->first_input + kind->gives].value;
    return 0;
}

/* Each node stands behind what it reads, so this ends; what it goes by is told for the next one, so a file of many that
 * ask takes no longer. */
int cek__onnx_type_of(const cek__onnx_import *i, int value)
{
    int type = value == CEK__ONNX_NONE ? NOT_TOLD : 0;

    for (int v = value, from = v; type == 0; v = from)
        type = i->types[v] ? i->types[v] : type_here(i, v, &from);
    for (int v = value, from = v; v != CEK__ONNX_NONE && i->types[v] == 0; v = from) {
        (void)type_here(i, v, &from);
        i->types[v] = type;
    }
    return type == NOT_TOLD ? 0 : type;
}
