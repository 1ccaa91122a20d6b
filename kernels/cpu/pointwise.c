/* pointwise.c - one instruction of a pointwise chain over a run of floats, and the runs'
 * conversion from and to integers.
 *
 * Owns: the meaning of every CEK_PW_... code on the CPU.
 * Must not know: chains, strides. */
#include <math.h>

#include <cekernels/plugin.h>

#include "kernels/cpu/ops.h"
#include "kernels/cpu/table.h"
#include "kernels/cpu/vmath.h"

V_INLINE void map1(int64_t n, const float *a, float *y, vf (*f)(vf))
{
    int64_t i = 0;

    for (; i + VL <= n; i += VL)
        v_store(y + i, f(v_load(a + i)));
    if (i < n)
        v_store_part(y + i, n - i, f(v_load_part(a + i, n - i)));
}

V_RUN(exp_run, v_exp)
V_RUN(log_run, v_log)

V_INLINE void map2(int64_t n, const float *a, const float *b, float *y, vf (*f)(vf, vf))
{
    int64_t i = 0;

    for (; i + VL <= n; i += VL)
        v_store(y + i, f(v_load(a + i), v_load(b + i)));
    if (i < n)
        v_store_part(y + i, n - i, f(v_load_part(a + i, n - i), v_load_part(b + i, n - i)));
}

V_INLINE void map_imm(int64_t n, const float *a, float imm, float *y, vf (*f)(vf, vf))
{
    const vf b = v_all(imm);
    int64_t i = 0;

    for (; i + VL <= n; i += VL)
        v_store(y + i, f(v_load(a + i), b));
    if (i < n)
        v_store_part(y + i, n - i, f(v_load_part(a + i, n - i), b));
}

/* To the nearest integer, halves to even: above 2^23 a float has no fraction to lose. */
V_INLINE vf nearest(vf x)
{
    const vf two23 = v_all(8388608.0f);
    vf size = v_abs(x);

    return v_select(size < two23, v_copysign((size + two23) - two23, x), x);
}

V_INLINE vf op_floor(vf x)
{
    vf whole = nearest(x);

    return v_select(whole > x, whole - 1.0f, whole); /* NaN is not larger */
}

/* What is rare enough for a call of the C library per number, in f64: rounded once. */
static void map_f64(int64_t n, const float *a, float *y, double (*f)(double))
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)f(a[i]);
}

static void powers(int64_t n, const float *a, const float *b, float *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)pow(a[i], b[i]);
}

static void selection(int64_t n, const float *a, const float *b, const float *c, float *y)
{
    int64_t i = 0;

    for (; i + VL <= n; i += VL)
        v_store(y + i, v_select(v_load(a + i) != 0, v_load(b + i), v_load(c + i)));
    if (i < n)
        v_store_part(y + i, n - i,
                     v_select(v_load_part(a + i, n - i) != 0, v_load_part(b + i, n - i), v_load_part(c + i, n - i)));
}

/* clang-format off */
V_INLINE vf op_copy(vf a) { return a; }
V_INLINE vf op_imm(vf a, vf b) { (void)a; return b; }
V_INLINE vf op_add(vf a, vf b) { return a + b; }
V_INLINE vf op_sub(vf a, vf b) { return a - b; }
V_INLINE vf op_mul(vf a, vf b) { return a * b; }
V_INLINE vf op_div(vf a, vf b) { return a / b; }
V_INLINE vf op_neg(vf a) { return -a; }
V_INLINE vf op_less(vf a, vf b) { return v_select(a < b, v_all(1), v_all(0)); }
V_INLINE vf op_equal(vf a, vf b) { return v_select(a == b, v_all(1), v_all(0)); }
V_INLINE vf op_sign(vf x) { return v_select(x > 0, v_all(1), v_select(x < 0, v_all(-1), x)); }
V_INLINE vf op_relu_grad(vf dy, vf y) { return v_act_grad(CPU_ACT_RELU, dy, y); }
V_INLINE vf op_tanh_grad(vf dy, vf y) { return v_act_grad(CPU_ACT_TANH, dy, y); }
V_INLINE vf op_sigmoid_grad(vf dy, vf y) { return v_act_grad(CPU_ACT_SIGMOID, dy, y); }
/* clang-format on */

static void pointwise_run(uint32_t code, int64_t n, const float *a, const float *b, const float *c, float imm, float *y)
{
    switch (code) {
    case CEK_PW_CONST: map_imm(n, y, imm, y, op_imm); return;
    case CEK_PW_COPY: map1(n, a, y, op_copy); return;
    case CEK_PW_ADD: map2(n, a, b, y, op_add); return;
    case CEK_PW_SUB: map2(n, a, b, y, op_sub); return;
    case CEK_PW_MUL: map2(n, a, b, y, op_mul); return;
    case CEK_PW_DIV: map2(n, a, b, y, op_div); return;
    case CEK_PW_MIN: map2(n, a, b, y, v_min); return;
    case CEK_PW_MAX: map2(n, a, b, y, v_max); return;
    case CEK_PW_NEG: map1(n, a, y, op_neg); return;
    case CEK_PW_ABS: map1(n, a, y, v_abs); return;
    case CEK_PW_SQRT: map1(n, a, y, v_sqrt); return;
    case CEK_PW_EXP: v_run_all(exp_run, n, a, a, y); return;
    case CEK_PW_LOG: v_run_all(log_run, n, a, a, y); return;
    case CEK_PW_ADD_IMM: map_imm(n, a, imm, y, op_add); return;
    case CEK_PW_MUL_IMM: map_imm(n, a, imm, y, op_mul); return;
    case CEK_PW_RELU: map1(n, a, y, v_relu); return;
    case CEK_PW_TANH: ISA_NAME(activate_f32)(CPU_ACT_TANH, n, a, y); return;
    case CEK_PW_SIGMOID: ISA_NAME(activate_f32)(CPU_ACT_SIGMOID, n, a, y); return;
    case CEK_PW_GELU: ISA_NAME(activate_f32)(CPU_ACT_GELU, n, a, y); return;
    case CEK_PW_RELU_GRAD: map2(n, a, b, y, op_relu_grad); return;
    case CEK_PW_TANH_GRAD: map2(n, a, b, y, op_tanh_grad); return;
    case CEK_PW_SIGMOID_GRAD: map2(n, a, b, y, op_sigmoid_grad); return;
    case CEK_PW_GELU_GRAD: ISA_NAME(deriv_f32)(CPU_ACT_GELU, 1, n, a, n, b, n, y, n); return;
    case CEK_PW_LESS: map2(n, a, b, y, op_less); return;
    case CEK_PW_EQUAL: map2(n, a, b, y, op_equal); return;
    case CEK_PW_SELECT: selection(n, a, b, c, y); return;
    case CEK_PW_POW: powers(n, a, b, y); return;
    case CEK_PW_ERF: map_f64(n, a, y, erf); return;
    case CEK_PW_LOG1P: map_f64(n, a, y, log1p); return;
    case CEK_PW_EXPM1: map_f64(n, a, y, expm1); return;
    case CEK_PW_FLOOR: map1(n, a, y, op_floor); return;
    case CEK_PW_SIGN: map1(n, a, y, op_sign); return;
    case CEK_PW_SIN: map_f64(n, a, y, sin); return;
    case CEK_PW_COS: map_f64(n, a, y, cos); return;
    }
}

static void from_u8(int64_t n, const uint8_t *x, float *y)
{
    int64_t i = 0;

    for (; i + VL <= n; i += VL)
        v_store(y + i, v_to_f32(v_from_u8(*(const vb_mem *)(x + i))));
    for (; i < n; i++)
        y[i] = x[i];
}

static void from_i32(int64_t n, const int32_t *x, float *y)
{
    int64_t i = 0;

    for (; i + VL <= n; i += VL)
        v_store(y + i, v_to_f32(v_load_i32(x + i)));
    for (; i < n; i++)
        y[i] = (float)x[i];
}

V_INLINE vi rounded_i32(vf x)
{
    vi over = x >= 2147483648.0f, under = x < -2147483648.0f, lost = x != x;
    vi whole = v_to_i32(nearest(v_select(over | under | lost, v_all(0), x)));

    return v_select_i32(over, v_all_i32(INT32_MAX), v_select_i32(under, v_all_i32(INT32_MIN), whole));
}

V_INLINE vi rounded_u8(vf x)
{
    vf bounded = v_select(x > 0, v_select(x > 255.0f, v_all(255.0f), x), v_all(0)); /* NaN is not > 0 */

    return v_to_i32(nearest(bounded));
}

static void to_i32(int64_t n, const float *x, int32_t *y)
{
    int32_t lanes[VL];
    int64_t i = 0;

    for (; i + VL <= n; i += VL)
        v_store_i32(y + i, rounded_i32(v_load(x + i)));
    if (i < n) {
        v_store_i32(lanes, rounded_i32(v_load_part(x + i, n - i)));
        memcpy(y + i, lanes, (size_t)(n - i) * sizeof *y);
    }
}

static void to_u8(int64_t n, const float *x, uint8_t *y)
{
    uint8_t lanes[VL];
    int64_t i = 0;

    for (; i + VL <= n; i += VL)
        *(vb_mem *)(y + i) = v_to_u8(rounded_u8(v_load(x + i)));
    if (i < n) {
        *(vb_mem *)lanes = v_to_u8(rounded_u8(v_load_part(x + i, n - i)));
        memcpy(y + i, lanes, (size_t)(n - i));
    }
}

const cpu_pointwise_kernels ISA_NAME(cek__pointwise_kernels) = {
    .run = pointwise_run,
    .from_u8 = from_u8,
    .from_i32 = from_i32,
    .to_u8 = to_u8,
    .to_i32 = to_i32,
};
