/* epilogue_f32.c - what happens to rows of sums on their way to memory: bias, activation,
 * derivative.
 *
 * Owns: the loops over rows of floats; the functions themselves are vmath.h's.
 * Must not know: types in memory (see convert.c), matrices. */
#include "kernels/cpu/table.h"
#include "kernels/cpu/vmath.h"

V_RUN(tanh_run, v_tanh)
V_RUN(sigmoid_run, v_sigmoid)
V_RUN(gelu_run, v_gelu)

static void gelu_slope_run(int64_t n, const float *dy, const float *x, float *dx)
{
    for (int64_t i = 0; i < n; i += VL)
        v_store(dx + i, v_act_grad(CPU_ACT_GELU, v_load(dy + i), v_load(x + i)));
}

static v_run *run_of(cpu_act act)
{
    return act == CPU_ACT_TANH ? tanh_run : act == CPU_ACT_SIGMOID ? sigmoid_run : gelu_run;
}

void ISA_NAME(activate_f32)(cpu_act act, int64_t n, const float *x, float *y)
{
    v_run_all(run_of(act), n, x, x, y);
}

/* One loop per short activation, so that the choice is made once; the inlined `relu` and `columns_only` are constants:
 * a bias of columns alone is what most layers have, and with less to do two vectors at once pay. */
V_INLINE void finish(int relu, int columns_only, int64_t rows, int64_t n, const float *x, int64_t ldx,
                     const float *bias, const float *row_bias, float *y, int64_t ldy)
{
    for (int64_t r = 0; r < rows; r++, x += ldx, y += ldy) {
        const vf all = v_all(!columns_only && row_bias ? row_bias[r] : 0);
        int64_t i = 0;
        for (; columns_only && i + 2 * VL <= n; i += 2 * VL)
            for (int v = 0; v < 2; v++) {
                const vf sum = v_load(x + i + v * VL) + v_load(bias + i + v * VL);
                v_store(y + i + v * VL, relu ? v_relu(sum) : sum);
            }
        for (; i + VL <= n; i += VL) {
            const vf sum = v_load(x + i) + (bias ? v_load(bias + i) : (vf){ 0 }) + all;
            v_store(y + i, relu ? v_relu(sum) : sum);
        }
        if (i < n) {
            const vf some = bias ? v_load_part(bias + i, n - i) : (vf){ 0 };
            const vf sum = v_load_part(x + i, n - i) + some + all;
            v_store_part(y + i, n - i, relu ? v_relu(sum) : sum);
        }
    }
}

V_INLINE void finish_short(int relu, int64_t rows, int64_t n, const float *x, int64_t ldx, const float *bias,
                           const float *row_bias, float *y, int64_t ldy)
{
    if (bias && !row_bias)
        finish(relu, 1, rows, n, x, ldx, bias, NULL, y, ldy);
    else
        finish(relu, 0, rows, n, x, ldx, bias, row_bias, y, ldy);
}

/* A row passes twice: L1 has it in between. */
static void finish_long(v_run *run, int64_t rows, int64_t n, const float *x, int64_t ldx, const float *bias,
                        const float *row_bias, float *y, int64_t ldy)
{
    const int64_t rest = n % VL, whole = n - rest;
    const vf some = bias ? v_load_part(bias + whole, rest) : (vf){ 0 };

    for (int64_t r = 0; r < rows; r++, x += ldx, y += ldy) {
        const float *one = row_bias ? row_bias + r : NULL;
        ISA_NAME(finish_f32)(CPU_ACT_NONE, 1, whole, x, ldx, bias, one, y, ldy);
        run(whole, y, y, y);
        if (rest > 0) {
            const vf sum = v_load_part(x + whole, rest) + some + v_all(one ? *one : 0);
            v_run_part(run, rest, sum, sum, y + whole);
        }
    }
}

void ISA_NAME(finish_f32)(cpu_act act, int64_t rows, int64_t n, const float *x, int64_t ldx, const float *bias,
                          const float *row_bias, float *y, int64_t ldy)
{
    if (act == CPU_ACT_NONE)
        finish_short(0, rows, n, x, ldx, bias, row_bias, y, ldy);
    else if (act == CPU_ACT_RELU)
        finish_short(1, rows, n, x, ldx, bias, row_bias, y, ldy);
    else
        finish_long(run_of(act), rows, n, x, ldx, bias, row_bias, y, ldy);
}

V_INLINE void deriv(cpu_act act, int64_t rows, int64_t n, const float *x, int64_t ldx, const float *ref, int64_t ldref,
                    float *y, int64_t ldy)
{
    for (int64_t r = 0; r < rows; r++, x += ldx, ref += ldref, y += ldy) {
        int64_t i = 0;
        for (; i + VL <= n; i += VL)
            v_store(y + i, v_act_grad(act, v_load(x + i), v_load(ref + i)));
        if (i < n)
            v_store_part(y + i, n - i, v_act_grad(act, v_load_part(x + i, n - i), v_load_part(ref + i, n - i)));
    }
}

void ISA_NAME(deriv_f32)(cpu_act act, int64_t rows, int64_t n, const float *x, int64_t ldx, const float *ref,
                         int64_t ldref, float *y, int64_t ldy)
{
#define DERIV(act) \
    case act: deriv(act, rows, n, x, ldx, ref, ldref, y, ldy); break
    switch (act) {
        DERIV(CPU_ACT_NONE);
        DERIV(CPU_ACT_RELU);
        DERIV(CPU_ACT_TANH);
        DERIV(CPU_ACT_SIGMOID);
    case CPU_ACT_GELU:
        for (int64_t r = 0; r < rows; r++, x += ldx, ref += ldref, y += ldy)
            v_run_all(gelu_slope_run, n, x, ref, y);
        break;
    }
#undef DERIV
}

/* `vectors` chains side by side, which wait for their memory together. */
V_INLINE void sums(int vectors, int64_t depth, const float *x, const int32_t *offset, float *sum)
{
    vf all[4];
    UNROLL
    for (int v = 0; v < vectors; v++)
        all[v] = v_load(sum + v * VL);
    for (int64_t k = 0; k < depth; k++) {
        UNROLL
        for (int v = 0; v < vectors; v++)
            all[v] += v_load(x + offset[k] + v * VL);
    }
    UNROLL
    for (int v = 0; v < vectors; v++)
        v_store(sum + v * VL, all[v]);
}

void ISA_NAME(sums_f32)(int64_t depth, int64_t n, const float *x, const int32_t *offset, float *sum)
{
    int64_t i = 0;
    for (; i + 4 * VL <= n; i += 4 * VL)
        sums(4, depth, x + i, offset, sum + i);
    for (; i + 2 * VL <= n; i += 2 * VL)
        sums(2, depth, x + i, offset, sum + i);
    for (; i < n; i += VL) {
        const int64_t part = n - i < VL ? n - i : VL;
        vf all = v_load_part(sum + i, part);
        for (int64_t k = 0; k < depth; k++)
            all += v_load_part(x + offset[k] + i, part);
        v_store_part(sum + i, part, all);
    }
}

void ISA_NAME(add_f32)(int64_t n, const float *x, const float *y, float *to)
{
    int64_t i = 0;
    for (; i + VL <= n; i += VL)
        v_store(to + i, v_load(x + i) + v_load(y + i));
    if (i < n)
        v_store_part(to + i, n - i, v_load_part(x + i, n - i) + v_load_part(y + i, n - i));
}
