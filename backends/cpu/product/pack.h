/* pack.h - operands of plain matrix products, handed to the walk: packed, converted, or where they
 * lie.
 *
 * Owns: the choice between the ways to read a strided matrix, and the ways.
 * Must not know: C, epilogues, threads. */
#ifndef CEK_BACKENDS_CPU_PRODUCT_PACK_H
#define CEK_BACKENDS_CPU_PRODUCT_PACK_H

#include "backends/cpu/product/matrix.h"
#include "backends/cpu/product/walk.h"

typedef enum pack_way {
    PACK_DIRECT, /* read in place: floats, or A's words; B: col_stride 1 */
    PACK_ALONG,  /* rows of memory lie along k: A is copied, B transposed */
    PACK_TURNED, /* the same of floats, and A is transposed */
    PACK_ACROSS, /* rows of memory lie across k: cut into panels */
    PACK_GATHER, /* neither: element by element */
    PACK_PANELS  /* B: packed before, all steps of k of a panel after those of the panel before */
} pack_way;

/* One operand of one product. For B "rows" are k, so `row_stride` is the distance of neighbours in
 * k. Of what is packed before it is how many steps of k there are. */
typedef struct pack_operand {
    const void *at;
    cpu_type type;
    int64_t row_stride, col_stride;
    pack_way way;
    /* set behind pack_of, from the plan: */
    const cpu_words *words; /* NULL: panels of floats; else `k` and `depth` below count words */
    int64_t k;              /* where words: elements of k in all, 0 beyond */
} pack_operand;

static inline pack_operand pack_of(const void *at, cpu_type type, int64_t row_stride, int64_t col_stride, pack_way way)
{
    return (pack_operand){ .at = at, .type = type, .row_stride = row_stride, .col_stride = col_stride, .way = way };
}

/* How A and B are read when they are packed. */
pack_way cek__pack_way_a(const gemm_matrix *a);
pack_way cek__pack_way_b(const gemm_matrix *b);

/* Whether an A whose columns lie along memory is read there, if n columns of B pass by. */
bool cek__pack_columns_stay(const cpu_config *config, const gemm_matrix *a, int64_t n);

/* Whether floats so far apart, the rows of a panel of A, fall into one set of an L1 cache: multiples of 4096 bytes, or
 * a float more or less, with which so many rows begin in one line, too. Rows side by side share their lines. */
static inline int cek__pack_rows_meet(int64_t row_stride)
{
    return (row_stride < -1 || row_stride > 1) && ((row_stride + 1) & 1023) <= 2;
}

/* Has a row that is packed soon come into L2. */
static inline void cek__pack_row_ahead(const char *row, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += 64)
        __builtin_prefetch(row + i, 0, 2);
}

/* As walk_give_a and walk_give_b, with the kernels that do the work. */
int64_t cek__pack_a(const cpu_kernels *kernels, const pack_operand *a, int64_t row, int64_t rows, int64_t k,
                    int64_t depth, const walk_scratch *to);
walk_edge cek__pack_b(const cpu_kernels *kernels, const pack_operand *b, int64_t k, int64_t depth, int64_t col,
                      int64_t cols, const walk_scratch *to);

/* cek__pack_panel - a panel of PACK_PANELS: `depth` steps of k, which are all, of columns from `col` on, zeros behind
 * those that there are. `to`: depth * nr. */
void cek__pack_panel(const cpu_kernels *kernels, const pack_operand *b, int64_t depth, int64_t col, int64_t cols,
                     float *to);

#endif
