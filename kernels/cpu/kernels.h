/* kernels.h - the inner loops of the CPU backend as one table of functions per instruction set.
 *
 * Owns: the signatures, storage types and activations that kernels and their callers share.
 * Must not know: blocks, threads, descriptors. */
#ifndef CEK_KERNELS_CPU_KERNELS_H
#define CEK_KERNELS_CPU_KERNELS_H

#include <stdint.h>

typedef enum { CPU_F32, CPU_BF16, CPU_F16 } cpu_type;
typedef enum {
    CPU_ACT_NONE,
    CPU_ACT_RELU,
    CPU_ACT_TANH,
    CPU_ACT_SIGMOID,
    CPU_ACT_GELU /* erf form */
} cpu_act;

static inline int64_t cpu_type_bytes(cpu_type type)
{
    return type == CPU_F32 ? 4 : 2;
}

enum { CPU_MR_MAX = 32, CPU_NR_MAX = 64 }; /* bounds of every kernel's tile */
/* Rows that are asked for ahead by whoever copies parts of them: each part is in a page of its own, where no processor
 * looks ahead by itself. */
enum { CPU_ROWS_AHEAD = 2 };

/* Steps of k that a tile writes out one after the other, without a counter, where it may. */
enum { CPU_RUN = 4 };

enum {
    CPU_LOW = 8,
    CPU_HIGH = 16
}; /* rows: of a low tile; of a high one of vectors: those of tile registers have more */

/* Rows of the lowest tile that copies B. Panels of a block of more rows than a full one has, 6 at least, are of like
 * height: the first has more than half of these, or of the 7 that panels have whose rows meet in one set of L1. */
enum { CPU_COPIES = 4 };

/* The steps of a stretch for full tiles of so many rows, whole runs if it can be: what is done between two of them
 * costs tiles 2 to 8 %. Of high tiles no more than leave one for each row of C, of narrow ones, with a vector of each
 * row, for two, nor than tile registers take at once; of low ones as many as there are, and at most 80. */
static inline int64_t cpu_stretch(int64_t depth, int rows, int narrow)
{
    if (rows <= CPU_LOW)
        return depth < 80 ? (depth + 7) / 8 * 8 : 80;
    const int is_tile_register = rows > CPU_HIGH, deepest = is_tile_register ? 128 : 512;
    /* 1, from 32 on 2, from 64 on 4, from 128 on 8 ... */
    const int stretch = 1 << (27 - __builtin_clz((unsigned)(depth < deepest ? depth : deepest) | 16));
    return narrow && !is_tile_register ? 2 * stretch : stretch;
}

/* Of stretches in which tiles bring what others will wait for, a block of B or squares, the longest: of high tiles no
 * more than CPU_PACE steps, else it came late. */
enum { CPU_PACE = 8 };
static inline int64_t cpu_stretch_bringing(int64_t stretch, int rows)
{
    return rows <= CPU_LOW || stretch < CPU_PACE ? stretch : CPU_PACE;
}

/* Rows of memory that come into L2 while tiles work: in a stretch of steps of k CPU_LINES_AHEAD lines, side by side
 * along a row, with which processors go on by themselves, then along the next row. Every tile goes on where the one
 * before ended, be the addresses what they may. How long a stretch is stands here, where it costs tiles nothing: a loop
 * over several groups of lines took 2 % of all. */
enum { CPU_LINES_AHEAD = 4, CPU_FLOATS_AHEAD = 16 * CPU_LINES_AHEAD };
typedef struct cpu_ahead {
    const float *at;
    int64_t step;      /* CPU_FLOATS_AHEAD, or 0: always the same lines */
    const float *end;  /* of this row: steps end there */
    int64_t width, ld; /* floats of a row, to the next row */
    int64_t rows;      /* that are left, or fewer than 1 */
    int64_t stretch;   /* steps: 1 at least, cpu_stretch at most, or all of a shallow tile */
} cpu_ahead;

/* `rows` rows of `columns` floats, the first at `at`, `ld` apart; a single one where they lie side by side. Stretches
 * are of one step, until who knows the depth says more. */
static inline cpu_ahead cpu_ahead_rows(const float *at, int64_t rows, int64_t columns, int64_t ld)
{
    if (ld >= columns && ld < columns + CPU_FLOATS_AHEAD) {
        columns += (rows - 1) * ld;
        rows = 1;
    }
    const int64_t width = (columns + CPU_FLOATS_AHEAD - 1) / CPU_FLOATS_AHEAD * CPU_FLOATS_AHEAD;
    return (cpu_ahead){ at, CPU_FLOATS_AHEAD, at + width, width, ld, rows, 1 };
}

/* All that follows `at`. */
static inline cpu_ahead cpu_ahead_from(const float *at, int64_t stretch)
{
    return (cpu_ahead){ .at = at, .step = CPU_FLOATS_AHEAD, .stretch = stretch };
}

/* Nothing: lines that are in L1 anyway. */
static inline cpu_ahead cpu_ahead_none(const float *near, int64_t stretch)
{
    return (cpu_ahead){ .at = near, .stretch = stretch };
}

/* Asks for CPU_LINES_AHEAD lines of them. */
static inline __attribute__((always_inline)) void cpu_ahead_go(cpu_ahead *ahead)
{
    for (int i = 0; i < CPU_LINES_AHEAD; i++)
        __builtin_prefetch(ahead->at + i * 16, 0, 2);
    ahead->at += ahead->step;
    if (ahead->at == ahead->end) {
        ahead->end += ahead->ld;
        ahead->at = ahead->end - ahead->width;
        ahead->rows--;
    }
}

/* How a tile's sums meet C. CPU_STREAM is CPU_STORE past the caches, for a C that would only push
 * everything else out of them, of kernels that do so; C's rows are then aligned to 64 bytes, and `drain` is
 * called before anyone else reads them. */
typedef enum { CPU_STORE, CPU_ADD, CPU_STREAM } cpu_store;

/* What steps of k do whose offsets count on; see cpu_gemm_tiles. */
typedef enum {
    CPU_NO_RUNS = 0,
    CPU_RUNS_OF_ROWS = 1,
    CPU_RUNS_OF_COLUMNS = 2,
    CPU_RUNS_OF_B = 3,
    CPU_WHOLE_ROWS = 4
} cpu_runs;

/* How many tiles, and how far on the next one's are: floats of A and C, and panels of B, of which there is a list. */
typedef struct cpu_tiles {
    int64_t count, a, b, c;
} cpu_tiles;

/* Tiles of a product, one after the other, along rows of C or down its columns; each, i < rows, j < nr:
 *
 *     C[i][j] = (CPU_ADD ? C[i][j] : 0) + sum over k of A(i,k) * B(k,j)
 *
 * A(i,k) is a[i * lda + a_offset[k]]; row k of B is nr contiguous floats at *b + b_offset[k]; row i
 * of C is at c + i * ldc. Through the tables tiles read packed panels, strided matrices and windows of images alike;
 * they cost nothing measurable.
 * `runs`: all along k, B's offsets count on by nr; A's by 1 in every CPU_RUN steps from the first on
 * (CPU_RUNS_OF_ROWS), by 1 all along k (CPU_WHOLE_ROWS), or all along k by the tile's rows, whose columns lie one after
 * the other (lda is 1; CPU_RUNS_OF_COLUMNS). Tiles that take any step (cpu_kernels) want B's rows, and in the last case
 * A's columns, the same distance apart, whatever it is; and CPU_RUNS_OF_B says that of B's rows alone.
 * `rows` are those of the table's entry, for functions that stand there more than once. */
typedef void cpu_gemm_tiles(const cpu_tiles *tiles, int64_t depth, const float *a, int64_t lda, const int32_t *a_offset,
                            const float *const *b, const int32_t *b_offset, float *c, int64_t ldc, cpu_store store,
                            cpu_ahead *ahead, cpu_runs runs, int rows);

/* One tile, whose row k of B is written to to + k * nr, too: a panel is packed by the first rows of A that it meets. */
typedef void cpu_gemm_copy(int64_t depth, const float *a, int64_t lda, const int32_t *a_offset, const float *b,
                           const int32_t *b_offset, float *c, int64_t ldc, cpu_store store, cpu_ahead *ahead,
                           float *to);

/* As one tile of fewer columns, 1 <= columns < nr: half of them cost half. Nothing beyond them is written to C.
 * Of B's rows nr floats are read; where columns <= nr / 2 no more than these, but nr / 2 where B comes in runs, whose
 * rows may then lie any one distance apart. */
typedef void cpu_gemm_edge(int64_t columns, int64_t depth, const float *a, int64_t lda, const int32_t *a_offset,
                           const float *b, const int32_t *b_offset, float *c, int64_t ldc, cpu_store store,
                           cpu_ahead *ahead, cpu_runs runs, int rows);

/* A product of a few rows, whose B is read once, where it lies:
 *
 *     C[i][j] = (add ? C[i][j] : 0) + sum over k of A(i,k) * B[k][j]        i < rows, j < columns
 *
 * A(i,k) is a[i * lda + k * step], B[k][j] is element k * ldb + j of b, C[i][j] is c[i * ldc + j]. */
enum { CPU_THIN_MAX = 7 }; /* at once; twice as many take turns */
typedef struct cpu_thin {
    int64_t rows, depth, columns; /* 1 <= rows <= 2 * CPU_THIN_MAX */
    const float *a;
    int64_t lda, step;
    cpu_type type; /* of B */
    const void *b;
    int64_t ldb;
    float *c;
    int64_t ldc;
    int add;
    int is_far; /* B comes from L3 or beyond, and is asked for ahead, if several rows of floats meet it */
} cpu_thin;

/* A family of tiles for products of a type that is narrower than a float: what a tile takes for a float is then a word
 * of `unit` elements that are neighbours in k, and its depth counts words. B is always
 * packed; A may be read in place. */
typedef struct cpu_words {
    cpu_type type; /* of both operands */
    int unit;
    int mr, nr;                  /* rows and columns of the full tile */
    cpu_gemm_tiles *const *gemm; /* [rows], as cpu_kernels'; need not fetch ahead */
    cpu_gemm_edge *const *edge;  /* the same */
    int step;   /* words of k that are taken at once: depth is a multiple, and zeros fill up what is missing */
    int height; /* rows that are taken at once: panels of A begin at multiples, and may be read to the next one */
    int pace;   /* vectors of words multiplied by an element in the time of a multiply-add of floats */
    int along;  /* panels of A have their words side by side along k: a_offset[k] = k */
    /* NULL, or before the first and after the last tile of a task, on the task's thread */
    void (*begin)(void), (*end)(void);
    /* As cpu_kernels' panels, of `depth` rows of memory, told the tile's columns; the last word is filled up with
     * zeros. */
    void (*panels)(int64_t nr, int64_t depth, int64_t columns, int64_t width, const void *from, int64_t ld, float *to,
                   int64_t panel);
    void (*add)(int64_t n, const float *words, float *sum); /* sum[i] += the elements of word i, in order */
} cpu_words;

/* A square of pixels, turned into another: `channels` floats of each, `pixel` floats from one to the next of a line,
 * `line` from one line to the next. Nothing beyond `channels` is read or written; what is written is nothing of what is
 * read. */
typedef void cpu_transform(int64_t channels, const float *from, int64_t line, int64_t pixel, float *to, int64_t line_to,
                           int64_t pixel_to);

/* Winograd's convolution of 3 x 3 taps, outputs x outputs at once, by way of points x points products, points =
 * outputs + 2. */
typedef struct cpu_winograd {
    int outputs;
    cpu_transform *input;            /* points x points of an image, to points x points */
    cpu_transform *output;           /* points x points to outputs x outputs */
    cpu_transform *weights;          /* 3 x 3 to points x points */
    cpu_transform *gradient;         /* outputs x outputs of a gradient, to points x points */
    cpu_transform *weights_gradient; /* points x points to 3 x 3 */
} cpu_winograd;
enum { CPU_WINOGRADS = 2 }; /* the smaller first */

typedef struct cpu_op_kernels cpu_op_kernels; /* ops.h: everything but products and convolutions */

enum { CPU_NARROW_ROWS = 4 }; /* streams from memory, whose sums' lanes are added up together */

typedef struct cpu_kernels {
    int mr, nr;                  /* rows and columns of the full tile */
    int streams;                 /* tiles know CPU_STREAM */
    int any_step;                /* tiles take any step from a row of B, or a column of A, to the next in runs */
    cpu_gemm_tiles *const *gemm; /* [rows], 1 <= rows <= mr */
    cpu_gemm_edge *const *edge;  /* the same */
    cpu_gemm_copy *const *copy;  /* the same, from CPU_COPIES rows on */
    void (*drain)(void);
    void (*thin)(const cpu_thin *product);
    /* out[i * ldout + r] = sum over k of x[i * ldx + k] * w[r * ldw + k], i < xs, r < rows */
    void (*dots)(int64_t xs, int64_t rows, int64_t depth, const float *x, int64_t ldx, const float *w, int64_t ldw,
                 float *out, int64_t ldout);
    /* The same of one vector and CPU_NARROW_ROWS rows of `type`, not f32 */
    void (*dots_narrow)(cpu_type type, int64_t depth, const float *x, const void *w, int64_t ldw, float *out);
    /* to[j * ldto + i] = from[i * ld + j], i < rows, j < columns */
    void (*transpose)(int64_t rows, int64_t columns, const float *from, int64_t ld, float *to, int64_t ldto);
    /* Cuts rows, of `type`, into panels of `width` columns (nr, nr / 2, or at most mr, of several more than mr / 2):
     * to[p * panel + k * width + j] = from[k * ld + p * width + j]. Where width == nr the last
     * panel is filled up with zeros. */
    void (*panels)(cpu_type type, int64_t depth, int64_t columns, int64_t width, const void *from, int64_t ld,
                   float *to, int64_t panel);
    /* n elements to and from f32; rounds to nearest even, keeps NaN */
    void (*load)(cpu_type type, int64_t n, const void *from, float *to);
    void (*store)(cpu_type type, int64_t n, const float *from, void *to);
    /* y = act(x + bias + row_bias), bias NULL or n values, row_bias NULL or one for each row; y = x * act'(ref): rows
     * of n elements, ld floats apart; to = x + y: n elements. In place allowed */
    void (*finish)(cpu_act act, int64_t rows, int64_t n, const float *x, int64_t ldx, const float *bias,
                   const float *row_bias, float *y, int64_t ldy);
    void (*deriv)(cpu_act act, int64_t rows, int64_t n, const float *x, int64_t ldx, const float *ref, int64_t ldref,
                  float *y, int64_t ldy);
    void (*add)(int64_t n, const float *x, const float *y, float *to);
    /* sum[j] += x[offset[k] + j] for each k < depth, in order; j < n */
    void (*sums)(int64_t depth, int64_t n, const float *x, const int32_t *offset, float *sum);
    const cpu_op_kernels *ops;
    /* A run of pixels, `x_step`, `y_step` and `dy_step` floats from one to the next, each channel by itself:
     * y = sum over taps of x[t] * w[t], in order; dw[t] += x[t] * dy, pixel by pixel. */
    void (*depthwise_sum)(int64_t pixels, int64_t taps, int64_t channels, const float *const *x, int64_t x_step,
                          const float *const *w, float *y, int64_t y_step);
    void (*depthwise_add)(int64_t pixels, int64_t taps, int64_t channels, const float *const *x, int64_t x_step,
                          const float *dy, int64_t dy_step, float *const *dw);
    const cpu_winograd *winograd; /* [CPU_WINOGRADS] */
} cpu_kernels;

#endif
