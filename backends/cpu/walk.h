/* walk.h - the packed skeleton that matrix products and convolutions share.
 *
 * Owns: the walk over blocks of one task: depth by depth, pack B, pack A, run tiles, finish.
 * Must not know: where operands come from (two functions hand them out) and where results go (one function takes them).
 *
 * A task computes rows [row, row + rows) x columns [col, col + cols) of C, summed over [k, k + depth). C is an f32 matrix of its
 * own, or the caller's memory where the result can be summed in place. */
#ifndef CEK_BACKENDS_CPU_WALK_H
#define CEK_BACKENDS_CPU_WALK_H

#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/config.h"

/* A block of A: element (i, kk) of panel p is at[p * panel + i * lda + kk * step], `step` being the walk's. */
typedef struct walk_a {
    const float *at;
    int64_t panel, lda;
} walk_a;

/* A block of B: row kk of panel p is the nr floats at at[p * panel + kk * ldb]; the last panel is at `last`, where it is not full or
 * `last` is not NULL, and there ldb is nr. */
typedef struct walk_b {
    const float *at;
    int64_t panel, ldb;
    const float *last;
} walk_b;

/* One worker's memory; every part aligned to 64 bytes, sizes from cek__walk_scratch. */
typedef struct walk_scratch {
    int32_t *offset;             /* kc */
    float *a;                    /* config->mc rows of walk_row_floats(kc) */
    float *b;                    /* kc x nb */
    float *line;                 /* 4 lines of `line_floats` */
    float *c;                    /* mb x nb, where asked for */
} walk_scratch;

typedef struct walk {
    const cpu_config *config;
    int64_t kc;                  /* <= config->kc */
    int64_t step;                /* distance in A of neighbours in k; 0 = the number of rows of a panel */
    /* Hands out rows [row, row + rows) x [k, k + depth) of A in panels of `panel_rows`; may pack into to->a. */
    void (*a)(const void *source, int64_t row, int64_t rows, int64_t panel_rows, int64_t k, int64_t depth,
              const walk_scratch *to, walk_a *out);
    /* Hands out [k, k + depth) x [col, col + cols) of B; may pack into to->b. */
    void (*b)(const void *source, int64_t k, int64_t depth, int64_t col, int64_t cols, const walk_scratch *to, walk_b *out);
    const void *source;
    /* Called for each block of rows once its sums are complete; may be NULL. */
    void (*finish)(const void *source, int64_t row, int64_t rows, int64_t col, int64_t cols,
                   const float *c, int64_t ldc, const walk_scratch *scratch);
} walk;

typedef struct walk_task {
    int64_t row, rows, col, cols, k, depth;
    float *c;                    /* element (row, col) */
    int64_t ldc;
    int add;                     /* to what C holds */
    int padded;                  /* rows of C have room for whole panels */
    float *row_sum, *col_sum;    /* NULL, or added to: the sums of A over k (for `rows`), of B over k (for `cols`) */
} walk_task;

/* Floats from one packed row of A to the next, where rows are k-contiguous: an odd number of cache lines, so that the rows
 * of a panel fall into different sets. */
static inline int64_t walk_row_floats(int64_t depth) { return ((depth + 15) / 16 | 1) * 16; }

/* Rows of one panel when `rows` rows are cut into as few panels as possible, of like sizes. */
static inline int64_t walk_panel_rows(int64_t rows, int64_t mr)
{
    const int64_t panels = (rows + mr - 1) / mr;
    return (rows + panels - 1) / panels;
}

/* cek__walk_scratch - lays out one worker's memory from `base` (NULL: only measures) and returns its bytes, a multiple of 64. */
size_t cek__walk_scratch(const cpu_config *config, int64_t kc, int64_t mb, int64_t nb, int64_t line_floats, int with_c,
                         void *base, walk_scratch *out);

/* cek__walk - computes one task. depth 0 gives zeros (or adds nothing). */
void cek__walk(const walk *w, const walk_task *task, const walk_scratch *scratch);

#endif
