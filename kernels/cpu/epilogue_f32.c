/* epilogue_f32.c - what happens to rows of sums on their way to memory: bias, activation,
 * derivative.
 *
 * Owns: the loops over rows of floats; the functions themselves are vmath.h's.
 * Must not know: types in memory (see convert.c), matrices. */
#include "kernels/cpu/table.h"
#include "kernels/cpu/vmath.h"

/* One loop per activation, so that the choice is made once per row; the inlined `act` is a
 * constant. */
static inline __attribute__((always_inline)) void finish(cpu_act act, int64_t n, const float *x, const float *bias,
                                                         float row_bias, float *y)
{
    const vf all = v_all(row_bias);
    int64_t i = 0;
    for (; i + VL <= n; i += VL)
        v_store(y + i, v_act(act, v_load(x + i) + (bias ? v_load(bias + i) : (vf){ 0 }) + all));
    if (i < n)
        v_store_part(y + i, n - i,
                     v_act(act, v_load_part(x + i, n - i) + (bias ? v_load_part(bias + i, n - i) : (vf){ 0 }) + all));
}

void ISA_NAME(finish_f32)(cpu_act act, int64_t n, const float *x, const float *bias, float row_bias, float *y)
{
    switch (act) {
    case CPU_ACT_NONE: finish(CPU_ACT_NONE, n, x, bias, row_bias, y); break;
    case CPU_ACT_RELU: finish(CPU_ACT_RELU, n, x, bias, row_bias, y); break;
    case CPU_ACT_TANH: finish(CPU_ACT_TANH, n, x, bias, row_bias, y); break;
    case CPU_ACT_SIGMOID: finish(CPU_ACT_SIGMOID, n, x, bias, row_bias, y); break;
    case CPU_ACT_GELU: finish(CPU_ACT_GELU, n, x, bias, row_bias, y); break;
    }
}

static inline __attribute__((always_inline)) void deriv(cpu_act act, int64_t n, const float *x, const float *ref,
                                                        float *y)
{
    int64_t i = 0;
    for (; i + VL <= n; i += VL)
        v_store(y + i, v_act_grad(act, v_load(x + i), v_load(ref + i)));
    if (i < n)
        v_store_part(y + i, n - i, v_act_grad(act, v_load_part(x + i, n - i), v_load_part(ref + i, n - i)));
}

void ISA_NAME(deriv_f32)(cpu_act act, int64_t n, const float *x, const float *ref, float *y)
{
    switch (act) {
    case CPU_ACT_NONE: deriv(CPU_ACT_NONE, n, x, ref, y); break;
    case CPU_ACT_RELU: deriv(CPU_ACT_RELU, n, x, ref, y); break;
    case CPU_ACT_TANH: deriv(CPU_ACT_TANH, n, x, ref, y); break;
    case CPU_ACT_SIGMOID: deriv(CPU_ACT_SIGMOID, n, x, ref, y); break;
    case CPU_ACT_GELU: deriv(CPU_ACT_GELU, n, x, ref, y); break;
    }
}

void ISA_NAME(sums_f32)(int64_t depth, int64_t n, const float *x, const int32_t *offset, float *sum)
{
    int64_t i = 0;
    for (; i + 2 * VL <= n; i += 2 * VL) {
        vf low = v_load(sum + i), high = v_load(sum + i + VL);
        for (int64_t k = 0; k < depth; k++) {
            low += v_load(x + offset[k] + i);
            high += v_load(x + offset[k] + i + VL);
        }
        v_store(sum + i, low);
        v_store(sum + i + VL, high);
    }
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
