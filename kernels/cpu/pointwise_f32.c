/* pointwise_f32.c - what happens to rows of sums on their way to memory: bias, activation, derivative.
 *
 * Owns: activations and their derivatives over arrays of floats.
 * Must not know: types in memory (see convert.c), matrices. */
#include "kernels/cpu/isa.h"
#include "kernels/cpu/math.h"
#include "kernels/cpu/table.h"

/* ReLU(NaN) is NaN: the comparison is written so that only numbers below zero are replaced. */
static inline vf relu(vf x) { return v_select(x < v_all(0.0f), v_all(0.0f), x); }

/* Derivatives by what backward keeps (see gemm.h): the output y for relu, tanh, sigmoid, the input for gelu.
 * ReLU passes dy unless y <= 0, so a NaN in y passes dy. */
static inline vf slope_relu(vf dy, vf y) { return v_select(y <= v_all(0.0f), v_all(0.0f), dy); }
static inline vf slope_tanh(vf dy, vf y) { return dy * v_fma(-y, y, v_all(1.0f)); }
static inline vf slope_sigmoid(vf dy, vf y) { return dy * (y * (1.0f - y)); }
static inline vf slope_gelu(vf dy, vf x) { return dy * v_gelu_slope(x); }

static inline vf same(vf x) { return x; }

/* The last, partial vector goes through an array of a full one. */
#define FINISH(function)                                                                                \
    for (; i + VL <= n; i += VL)                                                                        \
        v_store(y + i, function(v_load(x + i) + (bias ? v_load(bias + i) : (vf){ 0 }) + add));          \
    if (i < n) {                                                                                        \
        float tx[VL] = { 0 }, tb[VL] = { 0 };                                                           \
        memcpy(tx, x + i, (size_t)(n - i) * 4);                                                         \
        if (bias)                                                                                       \
            memcpy(tb, bias + i, (size_t)(n - i) * 4);                                                  \
        v_store(tx, function(v_load(tx) + v_load(tb) + add));                                           \
        memcpy(y + i, tx, (size_t)(n - i) * 4);                                                         \
    }                                                                                                   \
    break

void ISA_NAME(finish_f32)(cpu_act act, int64_t n, const float *x, const float *bias, float row_bias, float *y)
{
    const vf add = v_all(row_bias);
    int64_t i = 0;
    switch (act) {
    case CPU_ACT_NONE: FINISH(same);
    case CPU_ACT_RELU: FINISH(relu);
    case CPU_ACT_TANH: FINISH(v_tanh);
    case CPU_ACT_SIGMOID: FINISH(v_sigmoid);
    case CPU_ACT_GELU: FINISH(v_gelu);
    }
}

#define DERIV(function)                                                                                 \
    for (; i + VL <= n; i += VL)                                                                        \
        v_store(y + i, function(v_load(x + i), v_load(ref + i)));                                       \
    if (i < n) {                                                                                        \
        float tx[VL] = { 0 }, tr[VL] = { 0 };                                                           \
        memcpy(tx, x + i, (size_t)(n - i) * 4);                                                         \
        memcpy(tr, ref + i, (size_t)(n - i) * 4);                                                       \
        v_store(tx, function(v_load(tx), v_load(tr)));                                                  \
        memcpy(y + i, tx, (size_t)(n - i) * 4);                                                         \
    }                                                                                                   \
    break

void ISA_NAME(deriv_f32)(cpu_act act, int64_t n, const float *x, const float *ref, float *y)
{
    int64_t i = 0;
    switch (act) {
    case CPU_ACT_NONE: if (y != x) memmove(y, x, (size_t)n * 4); break;
    case CPU_ACT_RELU: DERIV(slope_relu);
    case CPU_ACT_TANH: DERIV(slope_tanh);
    case CPU_ACT_SIGMOID: DERIV(slope_sigmoid);
    case CPU_ACT_GELU: DERIV(slope_gelu);
    }
}

void ISA_NAME(add_f32)(int64_t n, const float *x, const float *y, float *to)
{
    int64_t i = 0;
    for (; i + VL <= n; i += VL)
        v_store(to + i, v_load(x + i) + v_load(y + i));
    for (; i < n; i++)
        to[i] = x[i] + y[i];
}
