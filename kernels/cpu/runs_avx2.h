/* runs_avx2.h - runs of k of a full tile of 6 x 16 floats, as AVX2 has them: of 16 registers 15 are taken.
 *
 * Owns: what is done CPU_RUN steps at a time, by an asm: a step is 12 multiply-adds and 8 loads, and whatever comes on
 * top counts, since two threads of one core have too few instructions each. Compilers add up to a third: they move
 * sums about, and bring addresses that have no register from memory for each run.
 * Must not know: what else a tile does. */
#ifndef CEK_KERNELS_CPU_RUNS_AVX2_H
#define CEK_KERNELS_CPU_RUNS_AVX2_H

#include <stddef.h>

#include "kernels/cpu/isa.h"

/* Where the next run begins, and where the last one ends; an asm has no operands left for these. */
typedef struct runs_six {
    const float *a;                 /* of rows: where offsets count from; of columns: the next column */
    const float *b;                 /* the next row */
    const int32_t *offset, *end;    /* of A: that of the next step, one behind that of the last: whole runs */
    int64_t a_one, a_three, a_five; /* bytes to the first, third, fifth row of A behind one; or column */
    int64_t b_one, b_three;         /* row of B */
} runs_six;

_Static_assert(offsetof(runs_six, end) == 24 && offsetof(runs_six, a_five) == 48 && offsetof(runs_six, b_three) == 64,
               "the asm reads it");

/* clang-format off */
/* rbx: a, r8: b, r11 and rdi: offset and end, rcx, rdx, rsi: to A's rows or columns, r9, r10: to B's rows; rax: A's
 * column at the first step of this run. */
#define SIX_ROW(i, a)                               \
    "vbroadcastss " a ", %%ymm15\n\t"               \
    "vfmadd231ps %%ymm13, %%ymm15, %[s" #i "0]\n\t" \
    "vfmadd231ps %%ymm14, %%ymm15, %[s" #i "1]\n\t"

#define SIX_STEP(b, a0, a1, a2, a3, a4, a5) \
    "vmovups " b ", %%ymm13\n\t"            \
    "vmovups 32" b ", %%ymm14\n\t"          \
    SIX_ROW(0, a0) SIX_ROW(1, a1) SIX_ROW(2, a2) SIX_ROW(3, a3) SIX_ROW(4, a4) SIX_ROW(5, a5)

#define SIX_STEP_OF_ROWS(b, at)                                                             \
    SIX_STEP(b, at "(%%rax)", at "(%%rax,%%rcx)", at "(%%rax,%%rcx,2)", at "(%%rax,%%rdx)", \
             at "(%%rax,%%rcx,4)", at "(%%rax,%%rsi)")

#define SIX_STEP_OF_COLUMNS(b, at) \
    SIX_STEP(b, "" at, "4" at, "8" at, "12" at, "16" at, "20" at)

#define SIX_SUMS(i) [s##i##0] "+x"(sum[i][0]), [s##i##1] "+x"(sum[i][1])

/* before: all runs; each: a run, whose steps are at A's a0 to a3; next: behind it; after: all runs. */
#define SIX_RUNS(before, each, STEP, a0, a1, a2, a3, next, after)                                              \
    __asm__ volatile("movq (%[runs]), %%rbx\n\t"                                                               \
                     "movq 8(%[runs]), %%r8\n\t"                                                               \
                     "movq 16(%[runs]), %%r11\n\t"                                                             \
                     "movq 24(%[runs]), %%rdi\n\t"                                                             \
                     "movq 32(%[runs]), %%rcx\n\t"                                                             \
                     "movq 40(%[runs]), %%rdx\n\t"                                                             \
                     "movq 48(%[runs]), %%rsi\n\t"                                                             \
                     "movq 56(%[runs]), %%r9\n\t"                                                              \
                     "movq 64(%[runs]), %%r10\n\t"                                                             \
                     before                                                                                    \
                     ".p2align 4\n"                                                                            \
                     "0:\n\t"                                                                                  \
                     each                                                                                      \
                     STEP("(%%r8)", a0)                                                                        \
                     STEP("(%%r8,%%r9)", a1)                                                                   \
                     STEP("(%%r8,%%r9,2)", a2)                                                                 \
                     STEP("(%%r8,%%r10)", a3)                                                                  \
                     next                                                                                      \
                     "leaq (%%r8,%%r9,4), %%r8\n\t"                                                            \
                     "addq $16, %%r11\n\t"                                                                     \
                     "cmpq %%rdi, %%r11\n\t"                                                                   \
                     "jne 0b\n\t"                                                                              \
                     after                                                                                     \
                     "movq %%r8, 8(%[runs])\n\t"                                                               \
                     "movq %%r11, 16(%[runs])"                                                                 \
                     : SIX_SUMS(0), SIX_SUMS(1), SIX_SUMS(2), SIX_SUMS(3), SIX_SUMS(4), SIX_SUMS(5)            \
                     : [runs] "r"(runs)                                                                        \
                     : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11",                     \
                       "xmm13", "xmm14", "xmm15", "cc", "memory")

/* Rows of A lie along k in each run. */
V_INLINE void six_rows_add(runs_six *runs, vf sum[6][2])
{
    SIX_RUNS("", "movslq (%%r11), %%rax\n\tleaq (%%rbx,%%rax,4), %%rax\n\t",
             SIX_STEP_OF_ROWS, "", "4", "8", "12", "", "");
}

/* Columns of A lie the same distance apart all along k. */
V_INLINE void six_columns_add(runs_six *runs, vf sum[6][2])
{
    SIX_RUNS("movq %%rbx, %%rax\n\t", "",
             SIX_STEP_OF_COLUMNS, "(%%rax)", "(%%rax,%%rcx)", "(%%rax,%%rcx,2)", "(%%rax,%%rdx)",
             "leaq (%%rax,%%rcx,4), %%rax\n\t", "movq %%rax, (%[runs])\n\t");
}
/* clang-format on */

#endif
