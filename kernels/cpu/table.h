/* table.h - declares what the kernel files of one instruction set give to its table (table.c); for
 * kernel files only. */
#ifndef CEK_KERNELS_CPU_TABLE_H
#define CEK_KERNELS_CPU_TABLE_H

#include "kernels/cpu/isa.h"
#include "kernels/cpu/kernels.h"

extern cpu_gemm_tiles *const ISA_NAME(gemm_f32_tiles)[CPU_MR_MAX + 1];
extern cpu_gemm_edge *const ISA_NAME(gemm_f32_edges)[CPU_MR_MAX + 1];
extern cpu_gemm_copy *const ISA_NAME(gemm_f32_copies)[CPU_MR_MAX + 1];
void ISA_NAME(drain)(void);
void ISA_NAME(thin)(const cpu_thin *t);
void ISA_NAME(dots_f32)(int64_t xs, int64_t rows, int64_t depth, const float *x, int64_t ldx, const float *w,
                        int64_t ldw, float *out, int64_t ldout);
void ISA_NAME(dots_narrow)(cpu_type type, int64_t depth, const float *x, const void *w, int64_t ldw, float *out);
void ISA_NAME(transpose_f32)(int64_t rows, int64_t columns, const float *from, int64_t ld, float *to, int64_t ldto);
void ISA_NAME(panels)(cpu_type type, int64_t depth, int64_t columns, int64_t width, const void *from, int64_t ld,
                      float *to, int64_t panel);
void ISA_NAME(finish_f32)(cpu_act act, int64_t rows, int64_t n, const float *x, int64_t ldx, const float *bias,
                          const float *row_bias, float *y, int64_t ldy);
void ISA_NAME(deriv_f32)(cpu_act act, int64_t rows, int64_t n, const float *x, int64_t ldx, const float *ref,
                         int64_t ldref, float *y, int64_t ldy);
/* tanh, sigmoid or gelu of n elements, in place allowed */
void ISA_NAME(activate_f32)(cpu_act act, int64_t n, const float *x, float *y);
void ISA_NAME(sums_f32)(int64_t depth, int64_t n, const float *x, const int32_t *offset, float *sum);
void ISA_NAME(add_f32)(int64_t n, const float *x, const float *y, float *to);
void ISA_NAME(depthwise_sum_f32)(int64_t pixels, int64_t taps, int64_t channels, const float *const *x, int64_t x_step,
                                 const float *const *w, float *y, int64_t y_step);
void ISA_NAME(depthwise_add_f32)(int64_t pixels, int64_t taps, int64_t channels, const float *const *x, int64_t x_step,
                                 const float *dy, int64_t dy_step, float *const *dw);
extern const cpu_winograd ISA_NAME(winograd_f32)[CPU_WINOGRADS];
void ISA_NAME(load)(cpu_type type, int64_t n, const void *from, float *to);
void ISA_NAME(store)(cpu_type type, int64_t n, const float *from, void *to);

#endif
