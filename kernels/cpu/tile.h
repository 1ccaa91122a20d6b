/* tile.h - the tile of a matrix product: the one loop in which the CPU backend spends its time.
 *
 * Owns: the register tile, in every number of rows up to the full one, so that no row is ever
 * computed in vain, and in one vector of columns where no more are wanted; the tables of them, TILE_NAME, TILE_EDGE
 * and, where it is defined, TILE_COPY: tiles that copy B as they read it.
 * Whoever includes it says what a word of 4 bytes is: TILE_ALL(p) has it as a TILE_X, every lane of a vector or what
 * multiplies one, TILE_ADD(x, y, sum) multiplies and adds.
 * TILE_RUNS: runs of k are written out; there TILE_ROW_OF_COLUMN(i, p, y, sum) adds to the sums of row i of a column
 * the word at p by all vectors y. TILE_ASM_RUNS: those of the higher tiles are AVX2's (runs_avx2.h).
 * Must not know: where A and B come from (packed panels or the caller's own memory; see
 * cpu_gemm_tiles), blocks, threads.
 *
 * Every sum is one chain over k, in order, whatever the number of rows: results do not depend on
 * how a matrix is cut.
 *
 * What the sums will meet in C comes nearer while they are made, a line or two at a time: all of a high tile's at once
 * would take every place that L1 has for what is on its way, and A and B would wait behind them. */
#if defined TILE_ASM_RUNS
#include "kernels/cpu/runs_avx2.h"
#endif
#include "kernels/cpu/table.h"
#include "kernels/cpu/vector.h"

enum {
    BASE_ROWS = 7,                        /* that are reached from one pointer */
    LOW = (int)TILE_ROWS <= (int)CPU_LOW, /* all rows of C come nearer at once */
    COPY_AHEAD = 6, /* rows of B that are asked for ahead while they are copied: each lies in a page of its own */
    FLEETING = 16   /* steps of k: a low tile of no more is made before what its sums will meet has come from memory */
};

/* What an edge's sums, rows of TILE_COLUMNS, do to the columns of C that there are. */
static __attribute__((noinline, unused)) void edge_store(int rows, int64_t columns, const float *sum, float *c,
                                                         int64_t ldc, cpu_store store)
{
    for (int64_t j = 0; j < columns; j += VL) {
        const int64_t n = columns - j < VL ? columns - j : VL;
        for (int i = 0; i < rows; i++) {
            float *to = c + i * ldc + j;
            vf x = v_load(sum + i * TILE_COLUMNS + j);
            if (store == CPU_ADD)
                x += v_load_part(to, n);
            if (TILE_STREAMS && store == CPU_STREAM && n == VL)
                v_stream(to, x);
            else
                v_store_part(to, n, x);
        }
    }
}

/* Bytes from a row of A to others. */
typedef struct strides {
    int64_t one, three, five, seven;
} strides;

V_INLINE const float *row_at(const char *row, int i, const strides *by)
{
    const char *at = row;
    switch (i) {
    case 0: break;
    case 1: at += by->one; break;
    case 2: at += 2 * by->one; break;
    case 3: at += by->three; break;
    case 4: at += 4 * by->one; break;
    case 5: at += by->five; break;
    case 6: at += 2 * by->three; break;
    }
    return (const float *)(const void *)at;
}

/* Where rows 0 and BASE_ROWS of a column of A are: 14 pointers would not fit the 16 integer registers, but two and
 * multiples of the rows' distance do. The empty asm keeps compilers from "improving" this: without it gcc 12 computes
 * all row addresses first (and loses 15% in spills for some numbers of rows), clang 14 loads all of A's column first
 * (and loses half). */
typedef struct bases {
    const char *row[2];
} bases;

V_INLINE bases bases_of(int rows, const float *column, const strides *by)
{
    bases at = { { (const char *)column, NULL } };
    __asm__ volatile("" : "+r"(at.row[0]) : : "memory");
    if (rows > BASE_ROWS) {
        at.row[1] = at.row[0] + by->seven;
        __asm__ volatile("" : "+r"(at.row[1]) : : "memory");
    }
    return at;
}

/* One of the steps of k behind `at`: a column of A by a row of B. Of few rows all addresses are one base and a
 * multiple: the empty asm keeps gcc 12 from adding these up beforehand, once for all steps. */
V_INLINE void rows_add(int rows, int vectors, const bases *at, int step, strides *by, const vf y[TILE_VECTORS],
                       vf sum[TILE_ROWS][TILE_VECTORS])
{
    if ((int)TILE_ROWS <= (int)BASE_ROWS)
        __asm__("" : "+r"(by->one), "+r"(by->three), "+r"(by->five));
    UNROLL
    for (int i = 0; i < rows; i++) {
        const TILE_X x = TILE_ALL(row_at(at->row[i / BASE_ROWS], i % BASE_ROWS, by) + step);
        UNROLL
        for (int j = 0; j < vectors; j++)
            sum[i][j] = TILE_ADD(x, y[j], sum[i][j]);
    }
}

#if TILE_RUNS
/* CPU_RUN steps of k whose columns of A lie the same distance apart: one pointer has them all. */
V_INLINE void columns_add(int rows, const float *a, int64_t step_a, const float *b, int64_t step_b,
                          vf sum[TILE_ROWS][TILE_VECTORS])
{
    UNROLL
    for (int step = 0; step < CPU_RUN; step++, a += step_a, b += step_b) {
        vf y[TILE_VECTORS];
        UNROLL
        for (int j = 0; j < TILE_VECTORS; j++)
            y[j] = v_load(b + j * VL);
        UNROLL
        for (int i = 0; i < rows; i++)
            TILE_ROW_OF_COLUMN(i, a + i, y, sum[i]);
    }
}
#endif

/* What the sums will meet, of all rows: the last line of each. What begins in another one is the tile's before. */
V_INLINE void meets_ask(int rows, int vectors, const float *c, int64_t ldc)
{
    UNROLL
    for (int i = 0; i < rows; i++, c += ldc)
        __builtin_prefetch(c + vectors * VL - 1, 1, 3);
}

/* The last vector of a row has `last` floats. */
V_INLINE void sums_meet(int rows, int vectors, int64_t last, vf sum[TILE_ROWS][TILE_VECTORS], float *c, int64_t ldc,
                        cpu_store store)
{
    const int is_part = vectors == 1;
    if (store == CPU_ADD) {
        const float *from = c;
        UNROLL
        for (int i = 0; i < rows; i++, from += ldc) {
            UNROLL
            for (int j = 0; j < vectors; j++)
                sum[i][j] += is_part && HAS_PARTS ? v_load_part(from, last) : v_load(from + j * VL);
        }
    }
    if (TILE_STREAMS && store == CPU_STREAM && (!is_part || last == VL)) {
        UNROLL
        for (int i = 0; i < rows; i++, c += ldc) {
            UNROLL
            for (int j = 0; j < vectors; j++)
                v_stream(c + j * VL, sum[i][j]);
        }
        return;
    }
    UNROLL
    for (int i = 0; i < rows; i++, c += ldc) {
        UNROLL
        for (int j = 0; j < vectors; j++)
            if (is_part && HAS_PARTS)
                v_store_part(c, last, sum[i][j]);
            else
                v_store(c + j * VL, sum[i][j]);
    }
}

/* The innermost loop has two branches at most, and of additions what multiply-adds leave room for: what else there is
 * to do waits for the end of a stretch of k. */
V_INLINE void tile(int rows, int vectors, int64_t last, int64_t depth, const float *a, int64_t lda,
                   const int32_t *a_offset, const float *b, const int32_t *b_offset, float *c, int64_t ldc,
                   cpu_store store, cpu_ahead *ahead, cpu_runs runs, float *to)
{
    vf sum[TILE_ROWS][TILE_VECTORS] = { 0 };
    strides by = { 4 * lda, 12 * lda, 20 * lda, 28 * lda };
    __asm__("" : "+r"(by.one), "+r"(by.three), "+r"(by.five), "+r"(by.seven));
    const int64_t stretch = ahead->stretch;
    const float *meets = c;
    const int64_t rows_ahead = to && depth > 1 ? COPY_AHEAD * (int64_t)(b_offset[1] - b_offset[0]) : 0;
    const int is_part = vectors == 1;
    const int has_runs = TILE_RUNS && !(__builtin_constant_p(runs) && !runs);
    const int64_t run = runs ? CPU_RUN : INT64_MAX; /* one comparison for both: is it one, and is there one more */
    int left = TILE_STREAMS && store == CPU_STREAM ? 0 : rows;

    if (depth < 1)
        __builtin_unreachable();
    if (LOW && left > 0) {
        meets_ask(rows, vectors, c, ldc);
        left = 0;
    }
    /* from a row of B to the next, from a column of A to the next, in runs */
    const int64_t step = !runs || depth < CPU_RUN        ? 0
                         : TILE_ANY_STEP || vectors == 1 ? (int64_t)b_offset[1] - b_offset[0]
                                                         : TILE_COLUMNS;
#if TILE_RUNS
    const int64_t step_a = !step || !TILE_ANY_STEP ? rows : (int64_t)a_offset[1] - a_offset[0];
#endif
    int64_t k = 0;
    while (k < depth) {
        const int64_t stop = k + stretch < depth ? k + stretch : depth;
        if (left > 0) {
            for (int j = 0; j < vectors; j++)
                __builtin_prefetch(meets + j * VL, 1, 3);
            if (is_part)
                __builtin_prefetch(meets + ldc, 1, 3);
            left -= 1 + is_part, meets += (1 + is_part) * ldc;
        }
        cpu_ahead_go(ahead);
#if TILE_RUNS
        if (has_runs && vectors == TILE_VECTORS && runs == CPU_RUNS_OF_COLUMNS) {
            const float *column = a + a_offset[k], *row = b + b_offset[k];
            for (; stop - k >= CPU_RUN; k += CPU_RUN) {
                columns_add(rows, column, step_a, row, step, sum);
                column += CPU_RUN * step_a;
                row += CPU_RUN * step;
            }
        }
#endif
        if (has_runs && stop - k >= run) {
            const float *column = b + b_offset[k], *row = a + a_offset[k];
            do {
                if (runs == CPU_RUNS_OF_ROWS)
                    row = a + a_offset[k];
                const bases at = bases_of(rows, row, &by);
                UNROLL
                for (int i = 0; i < CPU_RUN; i++) {
                    vf y[TILE_VECTORS];
                    UNROLL
                    for (int j = 0; j < vectors; j++)
                        y[j] = v_load(column + j * VL);
                    column += step;
                    rows_add(rows, vectors, &at, i, &by, y, sum);
                }
                k += CPU_RUN, row += CPU_RUN;
            } while (stop - k >= run);
        }
        for (; k != stop; k++) {
            const float *column = b + b_offset[k];
            const bases at = bases_of(rows, a + a_offset[k], &by);
            vf y[TILE_VECTORS];
            UNROLL
            for (int j = 0; j < vectors; j++)
                y[j] = vectors == TILE_VECTORS ? v_load(column + j * VL)
                       : HAS_PARTS             ? v_load_part(column, last)
                                               : v_load_lanes(column, last);
            if (to) {
                UNROLL
                for (int j = 0; j < vectors; j++) {
                    v_store(to + j * VL, y[j]);
                    __builtin_prefetch(column + rows_ahead + j * VL + VL - 1, 0, 3);
                }
                to += TILE_COLUMNS;
            }
            rows_add(rows, vectors, &at, 0, &by, y, sum);
        }
    }
    if (is_part && !HAS_PARTS && last < VL) {
        float part[TILE_ROWS * TILE_COLUMNS];
        UNROLL
        for (int i = 0; i < rows; i++)
            v_store(part + i * TILE_COLUMNS, sum[i][0]);
        edge_store(rows, last, part, c, ldc, store);
        return;
    }
    sums_meet(rows, vectors, last, sum, c, ldc, store);
}

#if defined TILE_ASM_RUNS
/* Tiles whose steps of k come in runs, but for the last ones: of low tiles that are not deep, what stands around the
 * runs costs as much as they do, and this has less of it than all that a tile may have to do. Fleeting ones ask for
 * what those of the next panel of A will meet: 0.8 of the time of 9 steps where C comes from memory. */
V_INLINE void tiles_of_runs(int rows, const cpu_tiles *tiles, int64_t depth, const float *a, int64_t lda,
                            const int32_t *a_offset, const float *const *b, const int32_t *b_offset, float *c,
                            int64_t ldc, cpu_store store, cpu_ahead *ahead, cpu_runs runs)
{
    const int64_t step = 4 * ((int64_t)b_offset[1] - b_offset[0]), stretch = ahead->stretch;
    const int32_t *const end = a_offset + (depth & -CPU_RUN);
    strides by = { 4 * lda, 12 * lda, 20 * lda, 0 };
    run_places at = { .a_one = by.one, .a_three = by.three, .a_five = by.five, .b_one = step, .b_three = 3 * step };
    const int64_t first = runs == CPU_RUNS_OF_COLUMNS ? *a_offset : 0; /* where else offsets count from */
    const int64_t meets = depth <= FLEETING ? rows * ldc : 0;
    if (runs == CPU_RUNS_OF_COLUMNS) {
        at.a_one = 4 * (a_offset[1] - first);
        at.a_three = 3 * at.a_one;
    }
    for (int64_t left = tiles->count; left > 0; left--, a += tiles->a, b += tiles->b, c += tiles->c) {
        vf sum[TILE_ROWS][TILE_VECTORS] = { 0 };
        meets_ask(rows, TILE_VECTORS, c + meets, ldc);
        const float *row = *b + *b_offset;
        const int32_t *offset = a_offset;
        at.a = a + first;
        do {
            const int32_t *stop = end - offset > stretch ? offset + stretch : end;
            cpu_ahead_go(ahead);
            runs_add(rows, runs, &at, &row, &offset, stop, sum);
        } while (offset != end);
        for (int64_t k = end - a_offset; k != depth; k++) {
            const bases rest = bases_of(rows, a + a_offset[k], &by);
            const vf y[TILE_VECTORS] = { v_load(*b + b_offset[k]), v_load(*b + b_offset[k] + VL) };
            rows_add(rows, TILE_VECTORS, &rest, 0, &by, y, sum);
        }
        sums_meet(rows, TILE_VECTORS, VL, sum, c, ldc, store);
    }
}
#endif

/* Tuned for no processor gcc keeps integers in vector registers where it has no others left, and the ways back take
 * places that multiply-adds want: of one vector of columns, with a load for each of these, a fifth of the time, of 11
 * rows that copy B a seventh, of whole tiles a hundredth. */
#if defined CEK_ISA_AVX512 && defined __GNUC__ && !defined __clang__
#define TUNED __attribute__((target("tune=skylake-avx512")))
#else
#define TUNED
#endif

static cpu_gemm_edge edge_whole;

#define ONE_PARAMETERS                                                                                            \
    int64_t depth, const float *a, int64_t lda, const int32_t *a_offset, const float *b, const int32_t *b_offset, \
        float *c, int64_t ldc, cpu_store store, cpu_ahead *ahead, cpu_runs runs
typedef void one_tile(ONE_PARAMETERS);

/* One tile. */
#define ONE(rows, runs_of_it)                                                                                         \
    static TUNED void one_##rows(ONE_PARAMETERS)                                                                      \
    {                                                                                                                 \
        (void)runs;                                                                                                   \
        tile(rows, TILE_VECTORS, VL, depth, a, lda, a_offset, b, b_offset, c, ldc, store, ahead, (runs_of_it), NULL); \
    }

#define EDGE(rows)                                                                                            \
    static TUNED void edge_##rows(int64_t columns, int64_t depth, const float *a, int64_t lda,                \
                                  const int32_t *a_offset, const float *b, const int32_t *b_offset, float *c, \
                                  int64_t ldc, cpu_store store, cpu_ahead *ahead, cpu_runs runs, int entry)   \
    {                                                                                                         \
        if (columns > VL)                                                                                     \
            edge_whole(columns, depth, a, lda, a_offset, b, b_offset, c, ldc, store, ahead, runs, entry);     \
        else                                                                                                  \
            tile(rows, 1, columns, depth, a, lda, a_offset, b, b_offset, c, ldc, store, ahead,                \
                 runs == CPU_RUNS_OF_ROWS || runs == CPU_WHOLE_ROWS ? runs : CPU_NO_RUNS, NULL);              \
    }

#if defined TILE_COPY
#define COPY(rows)                                                                                                     \
    static TUNED void copy_##rows(int64_t depth, const float *a, int64_t lda, const int32_t *a_offset, const float *b, \
                                  const int32_t *b_offset, float *c, int64_t ldc, cpu_store store, cpu_ahead *ahead,   \
                                  float *to)                                                                           \
    {                                                                                                                  \
        if (to == NULL)                                                                                                \
            __builtin_unreachable();                                                                                   \
        tile(rows, TILE_VECTORS, VL, depth, a, lda, a_offset, b, b_offset, c, ldc, store, ahead, CPU_NO_RUNS, to);     \
    }
#else
#define COPY(rows)
#endif

/* clang-format off */
#define LOWEST_TILES(rows) ONE(rows, runs == CPU_RUNS_OF_B ? CPU_NO_RUNS : runs) EDGE(rows)
#define TILES(rows) LOWEST_TILES(rows) COPY(rows)
LOWEST_TILES(1) LOWEST_TILES(2) LOWEST_TILES(3)
#if defined TILE_ASM_RUNS
#define HIGHER_TILES(rows) ONE(rows, CPU_NO_RUNS) EDGE(rows) COPY(rows)
HIGHER_TILES(4) HIGHER_TILES(5) HIGHER_TILES(6)
#else
TILES(4) TILES(5) TILES(6)
#endif
#if defined CEK_ISA_AVX512 || defined CEK_ISA_NEON
TILES(7) TILES(8) TILES(9) TILES(10) TILES(11) TILES(12)
#endif
#if defined CEK_ISA_AVX512
TILES(13) TILES(14)
#define TILE_MORE(name) name##_7, name##_8, name##_9, name##_10, name##_11, name##_12, name##_13, name##_14,
#elif defined CEK_ISA_NEON
#define TILE_MORE(name) name##_7, name##_8, name##_9, name##_10, name##_11, name##_12,
#else
#define TILE_MORE(name)
#endif
#define TILE_TABLE(name) { NULL, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6, TILE_MORE(name) }

#define TILES_PARAMETERS                                                                                          \
    const cpu_tiles *tiles, int64_t depth, const float *a, int64_t lda, const int32_t *a_offset,                  \
        const float *const *b, const int32_t *b_offset, float *c, int64_t ldc, cpu_store store, cpu_ahead *ahead, \
        cpu_runs runs, int rows

/* One after the other. */
static void gemm(TILES_PARAMETERS)
{
    static one_tile *const one[] = TILE_TABLE(one);
    _Static_assert(sizeof one / sizeof *one == TILE_ROWS + 1, "a tile for each number of rows");

    for (int64_t left = tiles->count; left > 0; left--, a += tiles->a, b += tiles->b, c += tiles->c)
        one[rows](depth, a, lda, a_offset, *b, b_offset, c, ldc, store, ahead, runs);
}

#if defined TILE_ASM_RUNS
#define OF_RUNS(height)                                                                                     \
    static void gemm_##height(TILES_PARAMETERS)                                                             \
    {                                                                                                       \
        if (runs && depth >= CPU_RUN && ahead->stretch % CPU_RUN == 0)                                      \
            tiles_of_runs(height, tiles, depth, a, lda, a_offset, b, b_offset, c, ldc, store, ahead, runs); \
        else                                                                                                \
            gemm(tiles, depth, a, lda, a_offset, b, b_offset, c, ldc, store, ahead, runs, rows);            \
    }
OF_RUNS(4) OF_RUNS(5) OF_RUNS(6)
#define GEMM_TABLE { [1 ... 3] = gemm, gemm_4, gemm_5, gemm_6 }
#else
#define GEMM_TABLE { [1 ... TILE_ROWS] = gemm }
#endif

cpu_gemm_tiles *const ISA_NAME(TILE_NAME)[CPU_MR_MAX + 1] = GEMM_TABLE;
/* clang-format on */

cpu_gemm_edge *const ISA_NAME(TILE_EDGE)[CPU_MR_MAX + 1] = TILE_TABLE(edge);

/* Of columns that need two vectors all sums are made, and those that are wanted taken. */
static void edge_whole(int64_t columns, int64_t depth, const float *a, int64_t lda, const int32_t *a_offset,
                       const float *b, const int32_t *b_offset, float *c, int64_t ldc, cpu_store store,
                       cpu_ahead *ahead, cpu_runs runs, int rows)
{
    float sum[TILE_ROWS * TILE_COLUMNS] __attribute__((aligned(64)));

    for (int i = 0; store == CPU_ADD && i < rows; i++)
        __builtin_prefetch(c + i * ldc, 1, 3);
    ISA_NAME(TILE_NAME)
    [rows](&(cpu_tiles){ .count = 1 }, depth, a, lda, a_offset, &b, b_offset, sum, TILE_COLUMNS, CPU_STORE, ahead, runs,
           rows);
    edge_store(rows, columns, sum, c, ldc, store);
}
#if defined TILE_COPY
cpu_gemm_copy *const ISA_NAME(TILE_COPY)[CPU_MR_MAX + 1] = { [CPU_COPIES] = copy_4, copy_5, copy_6, TILE_MORE(copy) };
#endif
