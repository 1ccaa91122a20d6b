/* runs_avx2.h - runs of k of tiles of 4 to 6 x 16 floats, as AVX2 has them: of 16 registers six rows take 15.
 *
 * Owns: what is done CPU_RUN steps at a time, by an asm: of six rows a step is 12 multiply-adds and 8 loads, and what
 * comes on top counts, since two threads of one core have too few instructions each. Compilers add up to a third: they
 * move sums about, and bring addresses that have no register from memory for each run. Of fewer than four rows sums
 * wait for each other, whatever else there is to do.
 * Must not know: what else a tile does. */
#ifndef CEK_KERNELS_CPU_RUNS_AVX2_H
#define CEK_KERNELS_CPU_RUNS_AVX2_H

#include <stddef.h>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/kernels.h"

/* What stays in memory between runs; an asm has no operands left for these. */
typedef struct run_places {
    const float *a;                 /* of columns: the next one; else where offsets count from */
    int64_t a_one, a_three, a_five; /* bytes to the first, third, fifth row of A behind one; or column */
    int64_t b_one, b_three;         /* row of B */
} run_places;

_Static_assert(offsetof(run_places, a_five) == 24 && offsetof(run_places, b_three) == 40, "the asm reads it");

/* clang-format off */
/* rbx: a, r8: B's row, r11 and rdi: offset and end, rcx, rdx, rsi: to A's rows or columns, r9, r10: to B's rows; rax:
 * A's column at this step or at the first one of this run. */
#define RUN_ROW(i, a)                               \
    "vbroadcastss " a ", %%ymm15\n\t"               \
    "vfmadd231ps %%ymm13, %%ymm15, %[s" #i "0]\n\t" \
    "vfmadd231ps %%ymm14, %%ymm15, %[s" #i "1]\n\t"

/* A row of B, and a column of A. */
#define RUN_STEP_4(b, a0, a1, a2, a3, a4, a5) \
    "vmovups " b ", %%ymm13\n\t"              \
    "vmovups 32" b ", %%ymm14\n\t"            \
    RUN_ROW(0, a0) RUN_ROW(1, a1) RUN_ROW(2, a2) RUN_ROW(3, a3)
#define RUN_STEP_5(b, a0, a1, a2, a3, a4, a5) RUN_STEP_4(b, a0, a1, a2, a3, , ) RUN_ROW(4, a4)
#define RUN_STEP_6(b, a0, a1, a2, a3, a4, a5) RUN_STEP_5(b, a0, a1, a2, a3, a4, ) RUN_ROW(5, a5)

#define RUN_STEP_OF_ROWS(rows, b, at)                                                                  \
    RUN_STEP_##rows(b, at "(%%rax)", at "(%%rax,%%rcx)", at "(%%rax,%%rcx,2)", at "(%%rax,%%rdx)",     \
                    at "(%%rax,%%rcx,4)", at "(%%rax,%%rsi)")
#define RUN_STEP_OF_COLUMNS(rows, b, at) \
    RUN_STEP_##rows(b, "" at, "4" at, "8" at, "12" at, "16" at, "20" at)
#define RUN_STEP_OF_B(rows, b, at)                      \
    "movslq " at "(%%r11), %%rax\n\t"                   \
    "leaq (%%rbx,%%rax,4), %%rax\n\t"                   \
    RUN_STEP_OF_ROWS(rows, b, "")

#define RUN_SUM(i) [s##i##0] "+x"(sum[i][0]), [s##i##1] "+x"(sum[i][1])
#define RUN_SUMS_4 RUN_SUM(0), RUN_SUM(1), RUN_SUM(2), RUN_SUM(3)
#define RUN_SUMS_5 RUN_SUMS_4, RUN_SUM(4)
#define RUN_SUMS_6 RUN_SUMS_5, RUN_SUM(5)

/* before: all runs; each: a run, whose steps are at A's a0 to a3; next: behind it; after: all runs. What a tile is only
 * just told has a register from the start: by way of memory its first multiply-adds would wait for it. */
#define RUNS(rows, before, each, STEP, a0, a1, a2, a3, next, after)                               \
    register const float *row __asm__("r8") = *b;                                                 \
    register const int32_t *of_a __asm__("r11") = *offset;                                        \
    register const int32_t *to __asm__("rdi") = end;                                              \
    __asm__ volatile("movq (%[at]), %%rbx\n\t"                                                    \
                     "movq 8(%[at]), %%rcx\n\t"                                                   \
                     "movq 16(%[at]), %%rdx\n\t"                                                  \
                     "movq 24(%[at]), %%rsi\n\t"                                                  \
                     "movq 32(%[at]), %%r9\n\t"                                                   \
                     "movq 40(%[at]), %%r10\n\t"                                                  \
                     before                                                                       \
                     ".p2align 4\n"                                                               \
                     "0:\n\t"                                                                     \
                     each                                                                         \
                     STEP(rows, "(%%r8)", a0)                                                     \
                     STEP(rows, "(%%r8,%%r9)", a1)                                                \
                     STEP(rows, "(%%r8,%%r9,2)", a2)                                              \
                     STEP(rows, "(%%r8,%%r10)", a3)                                               \
                     next                                                                         \
                     "leaq (%%r8,%%r9,4), %%r8\n\t"                                               \
                     "addq $16, %%r11\n\t"                                                       \
                     "cmpq %%rdi, %%r11\n\t"                                                      \
                     "jne 0b\n\t"                                                                \
                     after                                                                        \
                     : RUN_SUMS_##rows, "+r"(row), "+r"(of_a)                                     \
                     : [at] "r"(at), "r"(to)                                                      \
                     : "rax", "rbx", "rcx", "rdx", "rsi", "r9", "r10",                            \
                       "xmm13", "xmm14", "xmm15", "cc", "memory");                                \
    *b = row, *offset = of_a

/* Rows of A lie along k in each run; its columns lie the same distance apart all along k; or neither. The next run's
 * row of B is at *b, what is behind the last step at `end`: whole runs. */
#define RUNS_OF(rows)                                                                                            \
    V_INLINE void runs_add_##rows(cpu_runs runs, run_places *at, const float **b, const int32_t **offset,        \
                                  const int32_t *end, vf sum[][2])                                               \
    {                                                                                                            \
        if (runs == CPU_RUNS_OF_ROWS || runs == CPU_WHOLE_ROWS) {                                                \
            RUNS(rows, "", "movslq (%%r11), %%rax\n\tleaq (%%rbx,%%rax,4), %%rax\n\t",                           \
                 RUN_STEP_OF_ROWS, "", "4", "8", "12", "", "");                                                  \
        } else if (runs == CPU_RUNS_OF_COLUMNS) {                                                                \
            RUNS(rows, "movq %%rbx, %%rax\n\t", "",                                                              \
                 RUN_STEP_OF_COLUMNS, "(%%rax)", "(%%rax,%%rcx)", "(%%rax,%%rcx,2)", "(%%rax,%%rdx)",            \
                 "leaq (%%rax,%%rcx,4), %%rax\n\t", "movq %%rax, (%[at])\n\t");                                \
        } else {                                                                                                 \
            RUNS(rows, "", "", RUN_STEP_OF_B, "", "4", "8", "12", "", "");                                       \
        }                                                                                                        \
    }
RUNS_OF(4)
RUNS_OF(5)
RUNS_OF(6)
/* clang-format on */

V_INLINE void runs_add(int rows, cpu_runs runs, run_places *at, const float **b, const int32_t **offset,
                       const int32_t *end, vf sum[][2])
{
    switch (rows) {
    case 4: runs_add_4(runs, at, b, offset, end, sum); break;
    case 5: runs_add_5(runs, at, b, offset, end, sum); break;
    case 6: runs_add_6(runs, at, b, offset, end, sum); break;
    }
}

#endif
