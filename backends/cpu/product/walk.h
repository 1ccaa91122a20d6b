/* walk.h - the packed skeleton that matrix products and convolutions share.
 *
 * Owns: the walk over blocks of one task: depth by depth, pack B, pack A, run tiles, finish.
 * Must not know: where operands come from (two functions hand them out) and where results go (one
 * function takes them).
 *
 * A task computes rows [row, row + rows) x columns [col, col + cols) of C, summed over [k, k +
 * depth). C is an f32 matrix of its own, or the caller's memory where the result can be summed in
 * place. */
#ifndef CEK_BACKENDS_CPU_PRODUCT_WALK_H
#define CEK_BACKENDS_CPU_PRODUCT_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/config.h"
#include "backends/cpu/product/offsets.h"

/* Sizes of a walk's blocks and of one worker's memory. */
typedef struct walk_sizes {
    int64_t mc;                 /* rows of A that are handed out at once */
    int64_t kc;                 /* depth of a block */
    int64_t mb, nb;             /* the largest task */
    int64_t nc;                 /* columns of B at once; 0: all of a task's. If fewer, A is kept for all of them */
    int64_t a_floats, b_floats; /* packing space for mc rows of A, for a block of B */
    int64_t edge_floats;        /* for a last panel of B that tiles cannot read where it lies */
    int64_t c_floats;           /* for sums of a task, or of a block of it at a time */
} walk_sizes;

/* One worker's memory; every part aligned to 64 bytes. */
typedef struct walk_scratch {
    int32_t *a_offset, *b_offset;     /* kc: as in cpu_gemm_tiles; set by whoever hands out A and B; a_offset again for
                                         each mc rows of A that are kept */
    int32_t *pixel_offset;            /* mc or kc: for slabs, or of B's rows that tiles copy */
    const float **a_panel, **b_panel; /* first elements of the panels of a block */
    int64_t *a_rows;                  /* their numbers of rows, 1 .. mr */
    float *a, *b;                     /* packing space */
    float *edge;                      /* that of B's last panel, where asked for */
    int32_t *edge_offset;             /* kc: b_offset of that panel, if it is apart */
    float *line;                      /* a row of B's, on its way */
    float *c;                         /* c_floats */
} walk_scratch;

/* Hands out rows [row, row + rows) x [k, k + depth) of A: sets a_offset and the panels, which cut
 * the rows in order; returns the distance of neighbouring rows in a panel. May pack into `to`->a. */
typedef int64_t walk_give_a(const void *source, int64_t row, int64_t rows, int64_t k, int64_t depth,
                            const walk_scratch *to);

/* How the rows of B's last panel may be read where it is not full. */
typedef enum walk_edge {
    WALK_WHOLE, /* as those of a full panel */
    WALK_PARTS, /* not beyond its columns: half a panel's, or fewer */
    WALK_APART  /* as those of a full panel, but at edge_offset */
} walk_edge;

/* Hands out [k, k + depth) x [col, col + cols) of B: sets b_offset and a panel for every nr columns. May pack into
 * `to`->b, and the last panel into `to`->edge. */
typedef walk_edge walk_give_b(const void *source, int64_t k, int64_t depth, int64_t col, int64_t cols,
                              const walk_scratch *to);

/* Takes a block of rows once its sums are complete. */
typedef void walk_take(const void *source, int64_t row, int64_t rows, int64_t col, int64_t cols, const float *c,
                       int64_t ldc);

/* Where element (row, col) of A or B is, and the distance of rows, of a turned B columns, in bytes: what this block
 * or a later one reads. */
typedef const char *walk_ahead(const void *source, int64_t row, int64_t col, int64_t *row_bytes);

/* What comes into L2, while a panel of A works, of the next one's rows, which tiles read where they lie. */
typedef enum walk_rows {
    WALK_NO_ROWS,
    WALK_ROW_STARTS, /* their first lines, behind which processors go on by themselves */
    WALK_WHOLE_ROWS
} walk_rows;

typedef struct walk {
    const cpu_kernels *kernels;
    const cpu_words *words; /* NULL: what panels hold are floats; else k and depths count words */
    int64_t mc, kc;
    int64_t nc;       /* 0, or columns of B at once: a multiple of its panels' */
    int64_t a_floats; /* where nc: from the space of mc rows of A to that of the next */
    int64_t b_floats; /* space for a block of B; 0: tiles read it where it lies */
    walk_give_a *a;
    walk_give_b *b;
    walk_take *take;     /* or NULL */
    walk_ahead *a_ahead; /* or NULL: A lies there, and the next block's rows are fetched into L2 */
    walk_ahead *b_ahead; /* or NULL: B lies there, and the next block is fetched into L2 during this one's last tiles;
                            of floats full panels, if there is space, are packed by the tiles that read them first, if
                            several will, unless they stay */
    bool a_across;       /* A's columns lie along memory: blocks of them are fetched, not of rows */
    bool b_along;        /* B's columns lie along memory and are transposed: none stay or are packed by tiles */
    bool by_columns;     /* tiles have a way for columns of A that lie the same distance apart */
    walk_rows a_rows_ahead; /* where tiles read A's rows where they lie */
    bool c_waits;           /* C comes from memory, in rows too short for processors to follow: tiles ask for lines */
    bool b_stays;           /* panels of A are so few that full ones of B are read where they lie, if lines allow it */
    int a_bytes, b_bytes;   /* of an element there */
    const void *source;
} walk;

typedef struct walk_task {
    int64_t row, rows, col, cols, k, depth;
    float *c; /* element (row, col) */
    int64_t ldc;
    bool again; /* C has room for a block, mc x nc in whole panels: all of k is in one, and `take` takes each */
    int add;    /* to what C holds */
    int stream; /* C is large, aligned and written once: past the caches; depth <= kc */
    /* NULL, or added to: the sums over k of A (for `rows`), of B (for `cols`) */
    float *row_sum, *col_sum;
} walk_task;

/* Rows of B just so far apart come late from L3 on Zen 4, unless a block has few of them: read once where they lie, in
 * blocks no deeper than this, they take 0.65 to 0.95 of the time that copying them takes. Those 7, 10, 12, 16, 24 or
 * 40 KiB apart do not come late. */
enum { WALK_LATE_DEPTH = 48 };
static inline bool walk_rows_come_late(int64_t row_bytes)
{
    return row_bytes == 4096 || row_bytes == 8192;
}

/* Whether so many rows of a block fall into so few sets of L2 that they do not stay there: lines 128 KiB apart share
 * one, if pages follow each other in memory, too, of which B may take six places. */
static inline bool walk_rows_meet(int64_t row_bytes, int64_t rows)
{
    const int64_t way = 128 << 10, both = row_bytes | way, apart = both & -both; /* a power of two divides them */
    return rows > way / apart * 6;
}

/* Floats from one packed row of A to the next, where rows are k-contiguous: an odd number of cache
 * lines, so that the rows of a panel fall into different sets. */
static inline int64_t walk_row_floats(int64_t depth)
{
    return ((depth + 15) / 16 | 1) * 16;
}

/* cek__walk_scratch - lays out one worker's memory, for panels of nr columns, from `base` (NULL: only measures) and
 * returns its bytes, a multiple of 64. */
size_t cek__walk_scratch(const walk_sizes *sizes, int64_t nr, void *base, walk_scratch *out);

/* cek__walk_panels_a - cuts `rows` rows into panels of `height` (the last: what is left), the first at `at`, rows `lda`
 * apart, or where lda is 0, panels of k-major rows: panel p at at + (first row of p) * depth, k-rows as long as the
 * panel is high. */
void cek__walk_panels_a(int64_t height, const float *at, int64_t lda, int64_t rows, int64_t depth,
                        const walk_scratch *to);

/* cek__walk_panels_b - `cols` columns lie in to->b, packed: panels of `depth` rows of nr, one after the other. Sets
 * their b_offset, too. */
void cek__walk_panels_b(int64_t nr, int64_t depth, int64_t cols, const walk_scratch *to);

/* The height of as few panels as possible, of like height. */
static inline int64_t walk_panel_rows(int64_t rows, int64_t mr)
{
    const int64_t panels = (rows + mr - 1) / mr;
    return (rows + panels - 1) / panels;
}

/* Low panels end with two of like height where little would be left: a tile of one or two rows has too few sums to add
 * to one while another is on its way. */
static inline bool walk_is_little(int64_t rest, int64_t height)
{
    return rest > 0 && height <= CPU_LOW && 2 * rest <= height + 1;
}

/* The rows of the next panel, of `left` that lie some distance apart. */
static inline int64_t walk_panel_next(int64_t left, int64_t height)
{
    if (left <= height)
        return left;
    return walk_is_little(left - height, height) ? (left + 1) / 2 : height;
}

/* Whether rows of a block are so close that its panels are one run of memory each. */
static inline bool walk_rows_join(int64_t row, int64_t depth)
{
    return row >= depth && row <= depth + depth / 4;
}

/* How many of the next panels are as high as the first of them. */
static inline int64_t walk_panels_alike(int64_t left, int64_t height)
{
    const int64_t alike = left / height - walk_is_little(left % height, height);
    return alike > 0 ? alike : 1;
}

/* cek__walk - computes one task. depth 0 gives zeros (or adds nothing). */
void cek__walk(const walk *w, const walk_task *task, const walk_scratch *scratch);

#endif
