/* SPDX-License-Identifier: MIT
 *
 * product.cl - matrix products and convolutions, one tiled kernel.
 *
 * A group computes a tile of ROWS x COLUMNS results from strips of A and B in local memory, DEPTH of k at a time; each of
 * its SIDE_X x SIDE_Y work-items holds 8 x 8 results and reads 4 values at once. While a strip is multiplied the values of
 * the next one are on their way into registers; there are two of each strip, so that a step has one barrier.
 *
 * MODE says what A(i,p) and B(p,j) are: elements of matrices, or of images and weights (implicit GEMM). Nothing is divided
 * in the loop over k: what an element's place owes to its row or column is found once and kept in local memory, and what
 * it owes to p is counted on, in digits, for a table of p at a time.
 * A_TYPE, B_TYPE, C_TYPE: element types. OUTER: matrices, in two levels of a batch. WHOLE: product_finish finishes sums
 * that lie as C lies, and may be C itself.
 */
#define MODE_GEMM 0
#define MODE_FORWARD 1           /* rows: output positions; k: tap, input channel; columns: output channels */
#define MODE_DATA 2              /* rows: input positions; k: tap, output channel; columns: input channels */
#define MODE_WEIGHTS 3           /* rows: output channels; k: output positions; columns: tap, input channel */

#define WINDOW_A (MODE == MODE_FORWARD || MODE == MODE_DATA) /* which operand is an image seen through windows */
#define WINDOW_B (MODE == MODE_WEIGHTS)

#ifndef SIDE_X
#define SIDE_X 16
#define SIDE_Y 16
#endif
#define EACH 8
#define ITEMS (SIDE_X * SIDE_Y)
#define ROWS (SIDE_Y * EACH)
#define COLUMNS (SIDE_X * EACH)
#define DEPTH (ITEMS < 8 ? ITEMS : 8)
#define SPAN (ITEMS / DEPTH)     /* work-items that collect values of one p, and the rows or columns between two of one's */
#define ROW_LOADS (ROWS / SPAN)
#define COLUMN_LOADS (COLUMNS / SPAN)
#define TABLE 32                 /* p whose places are found at once */
#define PITCH 4                  /* behind each strip's line: eight lines of four values fall into 32 different banks */
#define A_LINE (ROWS + PITCH)
#define B_LINE (COLUMNS + PITCH)
#define B_STRIP (DEPTH * A_LINE) /* behind A's */
#define STRIPS (B_STRIP + DEPTH * B_LINE)

/* A work-item collects rows (or columns) SPAN apart, so that neighbours read neighbours, and puts four of them into one
 * place of four: value number `l` of a work-item's, the place of a row, the row of a place. */
#define PLACE(l) ((l) / 4 * (4 * SPAN) + (l) % 4)
#define PLACE_OF(row) ((row) / (4 * SPAN) * (4 * SPAN) + (row) % SPAN * 4 + (row) / SPAN % 4)
#define ROW_AT(place) ((place) / (4 * SPAN) * (4 * SPAN) + (place) % 4 * SPAN + (place) / 4 % SPAN)

/* Groups on a multiprocessor: 168 registers a work-item, or 128. From sm_120 on addresses want pairs of registers, and 128
 * do not suffice; nor do they for matrices in two levels. */
#if defined(OUTER) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200)
#define GROUPS (ITEMS < 256 ? 384 / ITEMS : 1)
#else
#define GROUPS (ITEMS < 256 ? 384 / ITEMS : 2)
#endif

/* CUDA's compiler adds to each place in global memory what all of a loop's places share: not to this one. What places in
 * local memory follow from it computes again and again: not this one, a multiple of 16 bytes. */
#ifdef __CUDACC__
#define KEEP_PLACE(p)                                                                              \
    do {                                                                                           \
        asm volatile("" : "+l"(p));                                                                \
        __builtin_assume(__isGlobal(p));                                                           \
    } while (0)
#define KEEP_NEAR(p)                                                                               \
    do {                                                                                           \
        cek_u32 near_ = (cek_u32)__cvta_generic_to_shared(p);                                      \
        asm volatile("" : "+r"(near_));                                                            \
        (p) = (decltype(p))__builtin_assume_aligned(__cvta_shared_to_generic(near_), 16);          \
    } while (0)
#else
#define KEEP_PLACE(p) ((void)0)
#define KEEP_NEAR(p) ((void)0)
#endif

/* The place of value number `e` of a work-item's eight: two runs of four, so that neighbours read neighbours. */
#define SPREAD(e, lane, extent) ((e) / 4 * ((extent) / 2) + 4 * (lane) + (e) % 4)

#include "window.h"

/* --- the result ------------------------------------------------------------------------------- */

/* Where matrix z begins, of one level of a batch or of two. What `finish` is told of it: its number, with which goes a bias
 * of its own, or where that of C begins. */
#ifdef OUTER
#define MATRIX_AT(z, name) ((cek_u32)(z) / a.inner * a.name##_outer + (cek_u32)(z) % a.inner * a.name##_batch)
#define MATRIX(z) MATRIX_AT(z, c)
#define MATRIX_C(matrix) (matrix)
#define MATRIX_BIAS(matrix) 0
#else
#define MATRIX_AT(z, name) ((z) * a.name##_batch)
#define MATRIX(z) (z)
#define MATRIX_C(matrix) MATRIX_AT(matrix, c)
#define MATRIX_BIAS(matrix) ((matrix) * a.bias_batch)
#endif

/* The finished sum of C(i,j) of a matrix. */
DEVICE_FN void finish(const cek_k_product *args, GLOBAL char *C, GLOBAL const char *bias, GLOBAL const char *act_ref,
                      cek_u64 matrix, cek_u64 i, cek_u64 j, cek_f32 v)
{
    const cek_k_product a = *args;
    const cek_u64 place = MATRIX_C(matrix) + i * a.c_row + j;
    if (a.bias)
        v += ((GLOBAL const cek_f32 *)bias)[MATRIX_BIAS(matrix) + j];
    v = activate(a.activation, v);
    if (a.act_grad)
        v = activate_grad(a.act_grad, v, LOAD(C_TYPE, act_ref, place));
    STORE(C_TYPE, C, place, a.accumulate ? LOAD(C_TYPE, C, place) + v : v);
}

#define OPERANDS                                                                                   \
    GLOBAL char *A_, GLOBAL char *B_, GLOBAL char *C_, GLOBAL char *bias, GLOBAL char *act_ref,    \
    GLOBAL char *partial, const cek_k_product a

#ifndef WHOLE

/* --- what a group and a work-item hold -------------------------------------------------------- */

/* Of a group, in local memory. */
typedef struct __attribute__((aligned(16))) tile {
    cek_f32 strips[2 * STRIPS];
    cek_u64 a_line[ROWS], b_line[COLUMNS]; /* by places: bytes in front of a row of A, a column of B */
#if WINDOW_A || WINDOW_B
    spot spots[SPOTS], depths[TABLE]; /* of lines, and of p */
    cek_u64 depth_bytes[TABLE];
#if MODE == MODE_DATA
    cek_u64 weight_bytes[TABLE];
#endif
    cek_u32 digits[TABLE + 1][4]; /* of the next table's p; behind them what a table adds */
#endif
    cek_u64 origin[3]; /* first row, first column, piece of a batch, or the matrix: no registers in the loop */
} tile;

/* Of a work-item: it collects values of one p, and of every SPANth row or column. */
typedef struct hand {
    GLOBAL const char *a, *b;    /* in front of what it collects next */
    NEAR const cek_u64 *a_lines, *b_lines;
    cek_u32 a_p, b_p, a_first, b_first;
    NEAR cek_f32 *a_put, *b_put; /* where in the strips */
    NEAR cek_f32 *a_get, *b_get; /* and from where it multiplies */
    cek_f32 next_a[ROW_LOADS], next_b[COLUMN_LOADS];
} hand;

/* Neighbours lie along the direction in which memory is contiguous. */
GROUP_FN void hand_place(NEAR tile *t, hand *h, cek_u32 item, cek_u32 a_turned, cek_u32 b_turned)
{
    h->a_p = a_turned ? item / SPAN : item % DEPTH, h->a_first = a_turned ? item % SPAN : item / DEPTH;
    h->b_p = b_turned ? item / SPAN : item % DEPTH, h->b_first = b_turned ? item % SPAN : item / DEPTH;
    h->a_lines = t->a_line + 4 * h->a_first, h->b_lines = t->b_line + 4 * h->b_first;
    h->a_put = t->strips + h->a_p * A_LINE + 4 * h->a_first;
    h->b_put = t->strips + B_STRIP + h->b_p * B_LINE + 4 * h->b_first;
    h->a_get = t->strips + STRIPS + item / SIDE_X * 4; /* of the strips that the first step writes: it comes second */
    h->b_get = t->strips + STRIPS + B_STRIP + item % SIDE_X * 4;
}

/* --- places of lines, and of p ---------------------------------------------------------------- */

#if WINDOW_A || WINDOW_B
/* The spots of an image's lines in the tile, the first of which is `first`; `front`: bytes in front of all. Behind the last
 * line it is that again. */
GROUP_FN void spots_find(const cek_k_product *args, NEAR tile *t, cek_u32 item, cek_u64 front, cek_u64 first,
                          cek_u32 last)
{
    const cek_u32 size[4] = LINE_SIZE;
    cek_u32 first_line[4];
    digits_of(first, size, first_line);
    for (cek_u32 l = item; l < SPOTS; l += ITEMS) {
        cek_u32 line[4];
        spot s;
        digits_small(l < last ? l : last, size, line);
        digits_add(line, first_line, size);
        t->IMAGE_LINES[PLACE_OF(l)] = front + LINE_SPOT(args, line, &s) * LINE_BYTES;
        t->spots[l] = s;
    }
}

/* The digits of the first table's p, from `begin` on, and what a table adds to them. */
GROUP_FN void depths_begin(const cek_k_product *args, NEAR tile *t, cek_u32 item, cek_u64 begin)
{
    const cek_u32 size[4] = DEPTH_SIZE;
    for (cek_u32 e = item; e < TABLE; e += ITEMS) {
        cek_u32 digit[4], by[4];
        digits_of(begin, size, digit);
        digits_small(e, size, by);
        digits_add(digit, by, size);
        digits_small(TABLE, size, by);
        for (int d = 0; d < 4; d++)
            t->digits[e][d] = digit[d];
        for (int d = 0; !item && d < 4; d++)
            t->digits[TABLE][d] = by[d];
    }
}

/* The next table: spots of p, of which `left` are left. */
GROUP_FN void depths_find(const cek_k_product *args, NEAR tile *t, cek_u32 item, cek_u32 left)
{
    const cek_u32 size[4] = DEPTH_SIZE;
    for (cek_u32 e = item; e < TABLE; e += ITEMS) {
        cek_u32 digit[4], by[4];
        spot depth;
        for (int d = 0; d < 4; d++) {
            digit[d] = t->digits[e][d];
            by[d] = t->digits[TABLE][d];
        }
        t->depth_bytes[e] = DEPTH_SPOT(args, digit, &depth) * LINE_BYTES;
        if (e >= left)
            depth.at[0] = NOWHERE;
        t->depths[e] = depth;
#if MODE == MODE_DATA
        t->weight_bytes[e] = weights_front(args, digit);
#endif
        digits_add(digit, by, size);
        for (int d = 0; d < 4; d++)
            t->digits[e][d] = digit[d];
    }
}
#endif

#if !WINDOW_A || !WINDOW_B
/* Lines that lie `bytes` apart. */
GROUP_FN void lines_find(NEAR cek_u64 *lines, cek_u32 count, cek_u32 item, cek_u64 front, cek_u64 first, cek_u32 last,
                          cek_u64 bytes)
{
    for (cek_u32 l = item; l < count; l += ITEMS)
        lines[PLACE_OF(l)] = front + (first + (l < last ? l : last)) * bytes;
}
#endif

/* --- a step: values for the next strips, sums of those before --------------------------------- */

/* `there`: whether k reaches to the work-item's p. */
GROUP_FN void a_load(const cek_k_product *args, NEAR const tile *t, hand *h, cek_u32 entry, cek_u32 there)
{
    cek_u64 at[ROW_LOADS];
#if WINDOW_A
    const spot depth = t->depths[entry + h->a_p];
    GLOBAL const char *from = h->a + t->depth_bytes[entry + h->a_p];
#else
    GLOBAL const char *from = h->a;
#endif
    KEEP_PLACE(from);
    UNROLL for (int l = 0; l < ROW_LOADS; l++)
        at[l] = h->a_lines[PLACE(l)];
    UNROLL for (int l = 0; l < ROW_LOADS; l++) {
#if WINDOW_A
        const spot s = t->spots[h->a_first + l * SPAN];
        there = SEES(s, depth);
#endif
        h->next_a[l] = there ? LOAD(A_TYPE, from + at[l], 0) : 0.0f;
    }
}
GROUP_FN void b_load(const cek_k_product *args, NEAR const tile *t, hand *h, cek_u32 entry, cek_u32 there)
{
    cek_u64 at[COLUMN_LOADS];
#if WINDOW_B
    const spot depth = t->depths[entry + h->b_p];
    GLOBAL const char *from = h->b + t->depth_bytes[entry + h->b_p];
#elif MODE == MODE_DATA
    GLOBAL const char *from = h->b + t->weight_bytes[entry + h->b_p];
#else
    GLOBAL const char *from = h->b;
#endif
    KEEP_PLACE(from);
    UNROLL for (int l = 0; l < COLUMN_LOADS; l++)
        at[l] = h->b_lines[PLACE(l)];
    UNROLL for (int l = 0; l < COLUMN_LOADS; l++) {
#if WINDOW_B
        const spot s = t->spots[h->b_first + l * SPAN];
        there = SEES(s, depth);
#endif
        h->next_b[l] = there ? LOAD(B_TYPE, from + at[l], 0) : 0.0f;
    }
}

/* To what is collected `p` further on, where that is no image. */
DEVICE_FN void hand_advance(const cek_k_product *args, hand *h, cek_u32 p)
{
#if !WINDOW_A
    h->a += p * args->a_column * BYTES(A_TYPE);
#endif
#if !WINDOW_B && MODE != MODE_DATA
    h->b += p * args->b_row * BYTES(B_TYPE);
#endif
}

GROUP_FN void quads_store(NEAR cek_f32 *to, const cek_f32 *v, int count)
{
    UNROLL for (int l = 0; l < count; l += 4) {
        cek_quad q;
        q.x = v[l], q.y = v[l + 1], q.z = v[l + 2], q.w = v[l + 3];
        *(NEAR cek_quad *)(to + PLACE(l)) = q;
    }
}

GROUP_FN void strips_multiply(const hand *h, cek_f32 (*sum)[EACH])
{
    UNROLL for (int d = 0; d < DEPTH; d++) {
        const cek_quad a0 = QUAD(h->a_get + d * A_LINE), a1 = QUAD(h->a_get + d * A_LINE + ROWS / 2);
        const cek_quad b0 = QUAD(h->b_get + d * B_LINE), b1 = QUAD(h->b_get + d * B_LINE + COLUMNS / 2);
        const cek_f32 left[EACH] = { a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w };
        const cek_f32 right[EACH] = { b0.x, b0.y, b0.z, b0.w, b1.x, b1.y, b1.z, b1.w };
        UNROLL for (int r = 0; r < EACH; r++)
            UNROLL for (int c = 0; c < EACH; c++)
                sum[r][c] += left[r] * right[c];
    }
}

/* A work-item's sums over `length` of k. Of matrices the first strips hold what no whole ones are left for, so that nothing
 * asks in the loop how far k reaches. */
GROUP_FN void sums_find(const cek_k_product *args, NEAR tile *t, hand *h, cek_u32 item, cek_u32 length,
                         cek_f32 (*sum)[EACH])
{
    const cek_u32 steps = length ? (length + DEPTH - 1) / DEPTH : 1;
    const cek_u32 head = MODE == MODE_GEMM ? length - (steps - 1) * DEPTH : length < DEPTH ? length : DEPTH;
    cek_i32 flip = STRIPS / 4; /* to the other strips */
#if WINDOW_A || WINDOW_B
    depths_find(args, t, item, length);
    BARRIER();
#endif
    a_load(args, t, h, 0, h->a_p < head);
    b_load(args, t, h, 0, h->b_p < head);
    hand_advance(args, h, head);
    quads_store(h->a_put, h->next_a, ROW_LOADS);
    quads_store(h->b_put, h->next_b, COLUMN_LOADS);
    BARRIER();
    for (cek_u32 step = 1; step <= steps;) {
#if WINDOW_A || WINDOW_B
        const cek_u32 table_end = step / (TABLE / DEPTH) * (TABLE / DEPTH) + TABLE / DEPTH - 1;
        const cek_u32 last_step = table_end < steps ? table_end : steps;
        if (step % (TABLE / DEPTH) == 0)
            depths_find(args, t, item, length - step * DEPTH);
        BARRIER();
#else
        const cek_u32 last_step = steps;
#endif
        for (; step <= last_step; step++) {
            KEEP_NEAR(h->a_put); KEEP_NEAR(h->b_put); KEEP_NEAR(h->a_get); KEEP_NEAR(h->b_get);
            h->a_put += 4 * flip, h->b_put += 4 * flip, h->a_get -= 4 * flip, h->b_get -= 4 * flip;
            flip = -flip;
            KEEP_NEAR(h->a_lines); KEEP_NEAR(h->b_lines);
            if (step < steps) {
                a_load(args, t, h, step * DEPTH % TABLE, MODE == MODE_GEMM || step * DEPTH + h->a_p < length);
                b_load(args, t, h, step * DEPTH % TABLE, MODE == MODE_GEMM || step * DEPTH + h->b_p < length);
                hand_advance(args, h, DEPTH);
            }
            strips_multiply(h, sum);
            if (step < steps) {
                quads_store(h->a_put, h->next_a, ROW_LOADS);
                quads_store(h->b_put, h->next_b, COLUMN_LOADS);
            }
            BARRIER();
        }
    }
}

KERNEL_OF(SIDE_X, SIDE_Y, GROUPS) void product(OPERANDS)
{
    LOCAL tile t;
    hand h;
    cek_f32 sum[EACH][EACH];
    const cek_u32 item = ITEM_ID(1) * SIDE_X + ITEM_ID(0);
    /* Groups are numbered along x, the one direction without a low limit, and through several launches: columns first,
     * then rows, pieces of k, batches. */
    const cek_u64 columns = (a.n + COLUMNS - 1) / COLUMNS, rows = (a.m + ROWS - 1) / ROWS, at = a.first + GROUP_ID(0);
    if (!a.splits)
        return;
    const cek_u64 column = at % columns * COLUMNS, row = at / columns % rows * ROWS;
    const cek_u64 split = at / columns / rows % a.splits, z = at / columns / rows / a.splits;
    const cek_u64 begin = split * a.split_k < a.k ? split * a.split_k : a.k;
    const cek_u32 length = (cek_u32)(a.k - begin < a.split_k ? a.k - begin : a.split_k);
    /* Rows and columns behind the last one are the last one again: their results are left out. */
    const cek_u32 last_row = a.m - row < ROWS ? (cek_u32)(a.m - row) - 1 : ROWS - 1;
    const cek_u32 last_column = a.n - column < COLUMNS ? (cek_u32)(a.n - column) - 1 : COLUMNS - 1;

    hand_place(&t, &h, item, !WINDOW_A && a.a_row < a.a_column, WINDOW_B || a.b_column < a.b_row);
    h.a = A_, h.b = B_; /* the fronts lie in the lines: two registers less in loops that do not move on */
    const cek_u64 a_front = a.at[0] + MATRIX_AT(z, a) * BYTES(A_TYPE), b_front = a.at[1] + MATRIX_AT(z, b) * BYTES(B_TYPE);
#if WINDOW_A || WINDOW_B
    spots_find(&a, &t, item, WINDOW_A ? a_front : b_front, WINDOW_A ? row : column, WINDOW_A ? last_row : last_column);
    depths_begin(&a, &t, item, begin);
#endif
#if !WINDOW_A
    lines_find(t.a_line, ROWS, item, a_front, row, last_row, a.a_row * BYTES(A_TYPE));
    h.a += (begin + h.a_p) * a.a_column * BYTES(A_TYPE);
#endif
#if !WINDOW_B
    lines_find(t.b_line, COLUMNS, item, b_front, column, last_column, a.b_column * BYTES(B_TYPE));
#if MODE != MODE_DATA
    h.b += (begin + h.b_p) * a.b_row * BYTES(B_TYPE);
#endif
#endif
    if (!item) {
        t.origin[0] = row;
        t.origin[1] = column;
#ifdef OUTER
        t.origin[2] = a.splits > 1 ? z * a.splits + split : MATRIX(z);
#else
        t.origin[2] = z * a.splits + split;
#endif
    }
    UNROLL for (int r = 0; r < EACH; r++)
        UNROLL for (int c = 0; c < EACH; c++)
            sum[r][c] = 0.0f;
    BARRIER();
    sums_find(&a, &t, &h, item, length, sum);

    /* One row of each work-item at a time goes through local memory: neighbours then write neighbours. */
    const cek_u32 x = ITEM_ID(0), y = ITEM_ID(1);
    UNROLL for (int r = 0; r < EACH; r++) {
        UNROLL for (int c = 0; c < EACH; c++)
            t.strips[y * COLUMNS + ROW_AT(SPREAD(c, x, COLUMNS))] = sum[r][c];
        BARRIER();
        for (cek_u32 e = y * SIDE_X + x; e < SIDE_Y * COLUMNS; e += ITEMS) {
            const cek_u64 i = t.origin[0] + ROW_AT(SPREAD(r, e / COLUMNS, ROWS)), j = t.origin[1] + e % COLUMNS;
            if (i >= a.m || j >= a.n)
                continue;
            if (a.splits > 1)
                ((GLOBAL cek_f32 *)AT(partial, 5))[(t.origin[2] * a.m + i) * a.n + j] = t.strips[e];
            else
                finish(&a, AT(C_, 2), AT(bias, 3), AT(act_ref, 4), t.origin[2], i, j, t.strips[e]);
        }
        BARRIER();
    }
}
#endif

KERNEL void product_finish(OPERANDS)
{
    cek_u64 item = GLOBAL_ID();
    if (item >= a.batch * a.m * a.n)
        return;
    cek_u64 z = item / (a.m * a.n), i = item / a.n % a.m, j = item % a.n;
#ifdef WHOLE
    cek_f32 sum = ((GLOBAL const cek_f32 *)AT(partial, 5))[MATRIX_AT(z, c) + i * a.c_row + j];
#else
    cek_f32 sum = 0.0f;
    GLOBAL const cek_f32 *from = (GLOBAL const cek_f32 *)AT(partial, 5) + (z * a.splits * a.m + i) * a.n + j;
#pragma unroll 8
    for (cek_u64 split = 0; split < a.splits; split++)
        sum += from[split * a.m * a.n];
#endif
    finish(&a, AT(C_, 2), AT(bias, 3), AT(act_ref, 4), MATRIX(z), i, j, sum);
}
