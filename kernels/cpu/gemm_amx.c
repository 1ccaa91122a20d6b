/* gemm_amx.c - products of bf16 with sums in f32, by tile registers: 32 x 32 sums in four of them.
 *
 * Owns: the loop over k, what is left of a tile's rows, the configuration that a thread needs. Written once over amx.h:
 * compiled for processors with AMX, and over a model of its instructions.
 * Must not know: who chooses this over floats; how panels come about.
 *
 * A tile holds 16 rows of 16 words. Two of A's (4, 5) meet two of B's (6, 7) in four of sums (0 .. 3), so each that
 * is loaded is used twice. All are configured whole: a panel of A may be read beyond its rows (cpu_words.height),
 * what comes of those rows is dropped; B's missing columns and all that is missing of k are zeros.
 * Denormal numbers are taken for 0, as by gemm_bf16.c's instruction. */
#if defined CEK_ISA_AMX
#include "kernels/cpu/amx.h"
#else
#include "kernels/cpu/amx_model.h"
#endif
#include "kernels/cpu/pairs.h"
#include "kernels/cpu/table.h"

enum {
    SIDE = AMX_ROWS,
    ROWS = 2 * SIDE,
    COLUMNS = 2 * SIDE,
    B_BYTES = COLUMNS * 4, /* from one row of a panel of B to the next */
};

static void begin(void)
{
#define EIGHT(x)               \
    {                          \
        x, x, x, x, x, x, x, x \
    }
    static const amx_config config = { .palette = 1, .row_bytes = EIGHT(AMX_ROW_BYTES), .rows = EIGHT(AMX_ROWS) };
    amx_configure(&config);
}

static void end(void)
{
    amx_release();
}

static void multiply_two(int64_t depth, const float *a, int64_t lda, const int32_t *a_offset, const float *b,
                         const int32_t *b_offset, cpu_ahead *ahead, int64_t turns)
{
    for (int64_t k = 0; k < depth; k += SIDE) {
        const float *row = a + a_offset[k], *column = b + b_offset[k];
        amx_load(6, column, B_BYTES);
        amx_load(7, column + SIDE, B_BYTES);
        amx_load(4, row, lda * 4);
        amx_multiply(0, 4, 6);
        amx_multiply(1, 4, 7);
        amx_load(5, row + SIDE * lda, lda * 4);
        amx_multiply(2, 5, 6);
        amx_multiply(3, 5, 7);
        for (int64_t turn = 0; turn < turns; turn++)
            cpu_ahead_go(ahead);
    }
}

static void multiply_one(int64_t depth, const float *a, int64_t lda, const int32_t *a_offset, const float *b,
                         const int32_t *b_offset, cpu_ahead *ahead, int64_t turns)
{
    for (int64_t k = 0; k < depth; k += SIDE) {
        const float *column = b + b_offset[k];
        amx_load(4, a + a_offset[k], lda * 4);
        amx_load(6, column, B_BYTES);
        amx_multiply(0, 4, 6);
        amx_load(7, column + SIDE, B_BYTES);
        amx_multiply(1, 4, 7);
        for (int64_t turn = 0; turn < turns; turn++)
            cpu_ahead_go(ahead);
    }
}

/* Sums that meet what C holds, or of fewer rows or columns than the tiles have. They are added to C here and not by
 * loading it into the tiles, which would take its denormal numbers for 0. */
static void rows_take(int rows, int64_t columns, const float *sums, float *c, int64_t ldc, cpu_store store)
{
    for (int i = 0; i < rows; i++, sums += COLUMNS, c += ldc)
        for (int64_t j = 0; j < columns; j += VL) {
            const int64_t n = columns - j < VL ? columns - j : VL;
            const vf sum = v_load(sums + j);
            if (store == CPU_STREAM && n == VL)
                v_stream(c + j, sum);
            else
                v_store_part(c + j, n, store == CPU_ADD ? sum + v_load_part(c + j, n) : sum);
        }
}

static void tile(int rows, int64_t columns, int64_t depth, const float *a, int64_t lda, const int32_t *a_offset,
                 const float *b, const int32_t *b_offset, float *c, int64_t ldc, cpu_store store, cpu_ahead *ahead)
{
    float sums[ROWS * COLUMNS] __attribute__((aligned(64)));
    const int in_place = store == CPU_STORE && rows == ROWS && columns == COLUMNS;
    float *to = in_place ? c : sums;
    const int64_t ld = in_place ? ldc : COLUMNS;
    /* what comes ahead in a step, which is several stretches */
    const int64_t turns = ahead && ahead->step ? SIDE / ahead->stretch : 0;

    /* what the sums will meet in C comes nearer while they are made */
    for (int i = 0; store == CPU_ADD && i < rows; i++)
        for (int64_t j = 0; j < columns; j += VL)
            __builtin_prefetch(c + i * ldc + j, 1, 3);
    amx_zero(0);
    amx_zero(1);
    if (rows > SIDE) {
        amx_zero(2);
        amx_zero(3);
        multiply_two(depth, a, lda, a_offset, b, b_offset, ahead, turns);
        amx_store(2, to + SIDE * ld, ld * 4);
        amx_store(3, to + SIDE * ld + SIDE, ld * 4);
    } else {
        multiply_one(depth, a, lda, a_offset, b, b_offset, ahead, turns);
    }
    amx_store(0, to, ld * 4);
    amx_store(1, to + SIDE, ld * 4);
    if (!in_place)
        rows_take(rows, columns, sums, c, ldc, store);
}

static void gemm(const cpu_tiles *tiles, int64_t depth, const float *a, int64_t lda, const int32_t *a_offset,
                 const float *const *b, const int32_t *b_offset, float *c, int64_t ldc, cpu_store store,
                 cpu_ahead *ahead, cpu_runs runs, int rows)
{
    (void)runs;
    for (int64_t left = tiles->count; left > 0; left--, a += tiles->a, b += tiles->b, c += tiles->c)
        tile(rows, COLUMNS, depth, a, lda, a_offset, *b, b_offset, c, ldc, store, ahead);
}

static void edge(int64_t columns, int64_t depth, const float *a, int64_t lda, const int32_t *a_offset, const float *b,
                 const int32_t *b_offset, float *c, int64_t ldc, cpu_store store, cpu_ahead *ahead, cpu_runs runs,
                 int rows)
{
    (void)runs;
    tile(rows, columns, depth, a, lda, a_offset, b, b_offset, c, ldc, store, ahead);
}

/* One function whatever the rows. */
static cpu_gemm_tiles *const tiles[CPU_MR_MAX + 1] = { [1 ... ROWS] = gemm };
static cpu_gemm_edge *const edges[CPU_MR_MAX + 1] = { [1 ... ROWS] = edge };

extern const cpu_words ISA_NAME(cek__bf16_words);

const cpu_words ISA_NAME(cek__bf16_words) = {
    .type = CPU_BF16,
    .unit = 2,
    .mr = ROWS,
    .nr = COLUMNS,
    .gemm = tiles,
    .edge = edges,
    .step = SIDE,
    .height = SIDE,
    .pace = 8,
    .along = 1,
    .begin = begin,
    .end = end,
    .panels = pairs_panels,
    .add = pairs_add,
};
