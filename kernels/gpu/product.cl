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
 * A_TYPE, B_TYPE, C_TYPE: element types. OUTER: matrices, in two levels of a batch. WHOLE: product_finish finishes sums that lie as C lies, and may be C itself.
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
#define LINE(l, loads) ((l) % SPAN * (loads) + (l) / SPAN)
#define TABLE 32                 /* p whose places are found at once */
#define PITCH 4                  /* behind each strip's line: eight lines of four values fall into 32 different banks */
#define A_LINE (ROWS + PITCH)
#define B_LINE (COLUMNS + PITCH)

/* Groups on a multiprocessor: 168 registers a work-item, or 128. From sm_120 on addresses want pairs of registers, and 128
 * do not suffice; nor do they for matrices in two levels. */
#if defined(OUTER) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200)
#define GROUPS (ITEMS < 256 ? 384 / ITEMS : 1)
#else
#define GROUPS (ITEMS < 256 ? 384 / ITEMS : 2)
#endif

/* CUDA's compiler computes cheap values again and again in a loop that is short of registers: not this one. To a place
 * in global memory it adds what all of a loop's places share once for each: not to this one. */
#ifdef __CUDACC__
#define KEEP(x) asm volatile("" : "+r"(x))
#define KEEP_PLACE(p)                                                                              \
    do {                                                                                           \
        asm volatile("" : "+l"(p));                                                                \
        __builtin_assume(__isGlobal(p));                                                           \
    } while (0)
#else
#define KEEP(x) ((void)0)
#define KEEP_PLACE(p) ((void)0)
#endif

/* Row or column number `e` of a work-item's eight, in the tile: two runs of four, so that neighbours read neighbours. */
#define SPREAD(e, lane, extent) ((e) / 4 * ((extent) / 2) + 4 * (lane) + (e) % 4)

/* --- places in images ------------------------------------------------------------------------- */

/* The half of an element's coordinates that follows from its row or column, or the half that follows from p: they add up.
 * rest: what the strides leave over, which must be equal. */
typedef struct __attribute__((aligned(16))) spot { cek_u32 at[3], rest; } spot;

/* Numbers as four digits: digit d counts to size[d], the first one for ever. Those of a small one are found without 64
 * bits. */
DEVICE_FN void digits_of(cek_u64 i, const cek_u32 *size, cek_u32 *digit)
{
    for (int d = 3; d > 0; d--) {
        digit[d] = (cek_u32)(i % size[d]);
        i /= size[d];
    }
    digit[0] = (cek_u32)i;
}
DEVICE_FN void digits_add(cek_u32 *digit, const cek_u32 *by, const cek_u32 *size)
{
    cek_u32 carry = 0;
    for (int d = 3; d > 0; d--) {
        digit[d] += by[d] + carry;
        carry = digit[d] >= size[d];
        digit[d] -= carry ? size[d] : 0;
    }
    digit[0] += by[0] + carry;
}
DEVICE_FN void digits_small(cek_u32 i, const cek_u32 *size, cek_u32 *digit)
{
    for (int d = 3; d > 0; d--) {
        digit[d] = i % size[d];
        i /= size[d];
    }
    digit[0] = i;
}

/* Coordinates may be below 0. */
DEVICE_FN cek_u64 position_of(cek_u64 image, const cek_u32 *at, const cek_u32 *size)
{
    for (int d = 0; d < 3; d++)
        image = image * size[d] + (cek_u64)(cek_i64)(cek_i32)at[d];
    return image;
}

#if MODE == MODE_FORWARD || MODE == MODE_WEIGHTS
#define LIMIT a.window.in
#define PLACES { 0, a.window.out[0], a.window.out[1], a.window.out[2] }
#define TAPS { 0, a.window.taps[1], a.window.taps[2], a.in_group }
/* Of an output position (image, three coordinates), then of a tap and its input channel: the spot, and the elements in
 * front of it. */
DEVICE_FN cek_u64 place_spot(const cek_k_product *a, const cek_u32 *digit, spot *s)
{
    for (int d = 0; d < 3; d++)
        s->at[d] = digit[d + 1] * a->window.stride[d] - a->window.pad[d];
    s->rest = 0;
    return position_of(digit[0], s->at, a->window.in) * a->in_channels;
}
DEVICE_FN cek_u64 tap_spot(const cek_k_product *a, const cek_u32 *digit, spot *s)
{
    for (int d = 0; d < 3; d++)
        s->at[d] = digit[d] * a->window.dilation[d];
    s->rest = 0;
    return position_of(0, s->at, a->window.in) * a->in_channels + digit[3];
}
#define REST_EQUAL(s, t) 1
#endif

#if MODE == MODE_DATA
#define LIMIT a.window.out
#define PLACES { 0, a.window.in[0], a.window.in[1], a.window.in[2] }
#define TAPS { 0, a.window.taps[1], a.window.taps[2], a.out_group }
/* `n` strides and a rest, of dimension d. */
DEVICE_FN cek_u32 strides_in(const cek_k_product *a, int d, cek_u32 n, cek_u32 *rest)
{
    cek_u32 q = MUL_HIGH(2 * n, a->stride_multiplier[d]) >> a->stride_shift[d];
    *rest = *rest * a->window.stride[d] + (n - q * a->window.stride[d]);
    return q;
}
/* The same of an input position, and of a tap with its output channel. */
DEVICE_FN cek_u64 place_spot(const cek_k_product *a, const cek_u32 *digit, spot *s)
{
    s->rest = 0;
    for (int d = 0; d < 3; d++)
        s->at[d] = strides_in(a, d, digit[d + 1] + a->window.pad[d], &s->rest);
    return position_of(digit[0], s->at, a->window.out) * a->out_channels;
}
DEVICE_FN cek_u64 tap_spot(const cek_k_product *a, const cek_u32 *digit, spot *s)
{
    s->rest = 0;
    for (int d = 0; d < 3; d++)
        s->at[d] = 0 - strides_in(a, d, digit[d] * a->window.dilation[d], &s->rest);
    return position_of(0, s->at, a->window.out) * a->out_channels + digit[3];
}
#define REST_EQUAL(s, t) ((s).rest == (t).rest)
#define WEIGHT_BYTES                                                                                        \
    ((((cek_u64)digit[0] * a.window.taps[1] + digit[1]) * a.window.taps[2] + digit[2]) * a.in_group * BYTES(B_TYPE) + \
     digit[3] * a.b_row * BYTES(B_TYPE))
#endif
#define NOWHERE 0x80000000u /* added to any coordinate it is beyond all limits */

#define SEES(s, t) \
    (((s).at[0] + (t).at[0] < LIMIT[0]) & ((s).at[1] + (t).at[1] < LIMIT[1]) & ((s).at[2] + (t).at[2] < LIMIT[2]) & \
     REST_EQUAL(s, t))

#if WINDOW_A
#define LINE_SPOT place_spot
#define LINE_SIZE PLACES
#define DEPTH_SPOT tap_spot
#define DEPTH_SIZE TAPS
#define SPOTS ROWS
#define LINE_BYTES BYTES(A_TYPE)
#elif WINDOW_B
#define LINE_SPOT tap_spot
#define LINE_SIZE TAPS
#define DEPTH_SPOT place_spot
#define DEPTH_SIZE PLACES
#define SPOTS COLUMNS
#define LINE_BYTES BYTES(B_TYPE)
#endif

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
KERNEL_OF(SIDE_X, SIDE_Y, GROUPS) void product(OPERANDS)
{
    LOCAL __attribute__((aligned(16))) cek_f32 strip_a[2 * DEPTH * A_LINE], strip_b[2 * DEPTH * B_LINE];
    /* Bytes in front of a row of A, a column of B; those that one work-item collects lie side by side (LINE). */
    LOCAL __attribute__((aligned(16))) cek_u64 a_line[ROWS], b_line[COLUMNS];
#if WINDOW_A || WINDOW_B
    LOCAL spot spots[SPOTS], depths[TABLE]; /* of lines, and of p */
    LOCAL cek_u64 depth_bytes[TABLE];
#if MODE == MODE_DATA
    LOCAL cek_u64 weight_bytes[TABLE];
#endif
    LOCAL cek_u32 digits[TABLE + 1][4]; /* of the next table's p; behind them what a table adds */
#endif
    LOCAL cek_u64 origin[3]; /* first row, first column, piece of a batch, or the matrix: no registers in the loop */
    /* Groups are numbered along x, the one direction without a low limit, and through several launches: columns first,
     * then rows, pieces of k, batches. */
    const cek_u64 columns = (a.n + COLUMNS - 1) / COLUMNS, rows = (a.m + ROWS - 1) / ROWS, at = a.first + GROUP_ID(0);
    if (!a.splits)
        return;
    const cek_u64 column = at % columns * COLUMNS, row = at / columns % rows * ROWS;
    const cek_u64 split = at / columns / rows % a.splits, z = at / columns / rows / a.splits;
    const cek_u64 begin = split * a.split_k < a.k ? split * a.split_k : a.k;
    const cek_u32 length = (cek_u32)(a.k - begin < a.split_k ? a.k - begin : a.split_k);
    const cek_u32 steps = (length + DEPTH - 1) / DEPTH;
    const cek_u32 x = ITEM_ID(0), y = ITEM_ID(1), item = y * SIDE_X + x;
    /* Rows and columns behind the last one are the last one again: their results are left out. */
    const cek_u32 last_row = a.m - row < ROWS ? (cek_u32)(a.m - row) - 1 : ROWS - 1;
    const cek_u32 last_column = a.n - column < COLUMNS ? (cek_u32)(a.n - column) - 1 : COLUMNS - 1;

    /* A work-item collects values of one p and of every SPANth row or column. Neighbours lie along the direction in
     * which memory is contiguous. */
    const cek_u32 a_turned = !WINDOW_A && a.a_row < a.a_column, b_turned = WINDOW_B || a.b_column < a.b_row;
    cek_u32 a_p = a_turned ? item / SPAN : item % DEPTH, b_p = b_turned ? item / SPAN : item % DEPTH;
    cek_u32 a_first = a_turned ? item % SPAN : item / DEPTH, b_first = b_turned ? item % SPAN : item / DEPTH;
    cek_u32 a_put = a_p * A_LINE + a_first, b_put = b_p * B_LINE + b_first;
    cek_u32 a_get = 4 * y, b_get = 4 * x; /* all that the loop knows of x and y, or registers are short */
    GLOBAL const char *A = AT(A_, 0) + MATRIX_AT(z, a) * BYTES(A_TYPE);
    GLOBAL const char *B = AT(B_, 1) + MATRIX_AT(z, b) * BYTES(B_TYPE);
#if WINDOW_A || WINDOW_B
    const cek_u32 line_size[4] = LINE_SIZE, depth_size[4] = DEPTH_SIZE;
    cek_u32 first_line[4];
    spot depth;
    digits_of(WINDOW_A ? row : column, line_size, first_line);
    for (cek_u32 l = item; l < SPOTS; l += ITEMS) {
        cek_u32 line[4];
        spot s;
        const cek_u32 last = WINDOW_A ? last_row : last_column;
        digits_small(l < last ? l : last, line_size, line);
        digits_add(line, first_line, line_size);
        (WINDOW_A ? a_line : b_line)[LINE(l, WINDOW_A ? ROW_LOADS : COLUMN_LOADS)] = LINE_SPOT(&a, line, &s) * LINE_BYTES;
        spots[l] = s;
    }
    for (cek_u32 e = item; e < TABLE; e += ITEMS) {
        cek_u32 digit[4], by[4];
        digits_of(begin, depth_size, digit);
        digits_small(e, depth_size, by);
        digits_add(digit, by, depth_size);
        digits_small(TABLE, depth_size, by);
        for (int d = 0; d < 4; d++)
            digits[e][d] = digit[d];
        for (int d = 0; !item && d < 4; d++)
            digits[TABLE][d] = by[d];
    }
#endif
#if !WINDOW_A
    for (cek_u32 l = item; l < ROWS; l += ITEMS)
        a_line[LINE(l, ROW_LOADS)] = (row + (l < last_row ? l : last_row)) * a.a_row * BYTES(A_TYPE);
    A += (begin + a_p) * a.a_column * BYTES(A_TYPE);
#endif
#if !WINDOW_B
    for (cek_u32 l = item; l < COLUMNS; l += ITEMS)
        b_line[LINE(l, COLUMN_LOADS)] = (column + (l < last_column ? l : last_column)) * a.b_column * BYTES(B_TYPE);
#if MODE != MODE_DATA
    B += (begin + b_p) * a.b_row * BYTES(B_TYPE);
#endif
#endif

    if (!item) {
        origin[0] = row;
        origin[1] = column;
#ifdef OUTER
        origin[2] = a.splits > 1 ? z * a.splits + split : MATRIX(z);
#else
        origin[2] = z * a.splits + split;
#endif
    }

    cek_f32 sum[EACH][EACH], next_a[ROW_LOADS], next_b[COLUMN_LOADS];
#pragma unroll
    for (int r = 0; r < EACH; r++)
#pragma unroll
        for (int c = 0; c < EACH; c++)
            sum[r][c] = 0.0f;
    KEEP(a_first); KEEP(b_first); KEEP(a_put); KEEP(b_put);
#if MODE == MODE_GEMM || MODE == MODE_DATA /* the others have one register too few */
    KEEP(a_p); KEEP(b_p);
#endif
    BARRIER();
    for (cek_u32 step = 0; step <= steps;) {
#if WINDOW_A || WINDOW_B
        KEEP(a_get); KEEP(b_get);
        for (cek_u32 e = a_get / 4 * SIDE_X + b_get / 4; e < TABLE; e += ITEMS) {
            cek_u32 digit[4], by[4];
            for (int d = 0; d < 4; d++) {
                digit[d] = digits[e][d];
                by[d] = digits[TABLE][d];
            }
            depth_bytes[e] = DEPTH_SPOT(&a, digit, &depth) * LINE_BYTES;
            if (step * DEPTH + e >= length)
                depth.at[0] = NOWHERE;
            depths[e] = depth;
#if MODE == MODE_DATA
            weight_bytes[e] = WEIGHT_BYTES;
#endif
            digits_add(digit, by, depth_size);
            for (int d = 0; d < 4; d++)
                digits[e][d] = digit[d];
        }
        BARRIER();
        const cek_u32 last_step = steps - step < TABLE / DEPTH ? steps : step + TABLE / DEPTH - 1;
#else
        const cek_u32 last_step = steps;
#endif
        for (; step <= last_step; step++) {
            const cek_u32 now = step & 1;
            if (step < steps) {
#if WINDOW_A || WINDOW_B
                const cek_u32 entry = step * DEPTH % TABLE;
                depth = depths[entry + (WINDOW_A ? a_p : b_p)];
#endif
#if WINDOW_A
                GLOBAL const char *from_a = A + depth_bytes[entry + a_p];
#else
                GLOBAL const char *from_a = A;
                const cek_u32 a_there = step * DEPTH + a_p < length;
                A += DEPTH * a.a_column * BYTES(A_TYPE);
#endif
#if WINDOW_B
                GLOBAL const char *from_b = B + depth_bytes[entry + b_p];
#else
                const cek_u32 b_there = step * DEPTH + b_p < length;
#if MODE == MODE_DATA
                GLOBAL const char *from_b = B + weight_bytes[entry + b_p];
#else
                GLOBAL const char *from_b = B;
                B += DEPTH * a.b_row * BYTES(B_TYPE);
#endif
#endif
                KEEP_PLACE(from_a); KEEP_PLACE(from_b);
                cek_u64 a_at[ROW_LOADS], b_at[COLUMN_LOADS];
#pragma unroll
                for (int l = 0; l < ROW_LOADS; l++)
                    a_at[l] = a_line[a_first * ROW_LOADS + l];
#pragma unroll
                for (int l = 0; l < COLUMN_LOADS; l++)
                    b_at[l] = b_line[b_first * COLUMN_LOADS + l];
#pragma unroll
                for (int l = 0; l < ROW_LOADS; l++) {
#if WINDOW_A
                    const spot s = spots[a_first + l * SPAN];
                    const cek_u32 a_there = SEES(s, depth);
#endif
                    next_a[l] = a_there ? LOAD(A_TYPE, from_a + a_at[l], 0) : 0.0f;
                }
#pragma unroll
                for (int l = 0; l < COLUMN_LOADS; l++) {
#if WINDOW_B
                    const spot s = spots[b_first + l * SPAN];
                    const cek_u32 b_there = SEES(s, depth);
#endif
                    next_b[l] = b_there ? LOAD(B_TYPE, from_b + b_at[l], 0) : 0.0f;
                }
            }
            if (step) {
                NEAR const cek_f32 *from_a = strip_a + !now * DEPTH * A_LINE + a_get;
                NEAR const cek_f32 *from_b = strip_b + !now * DEPTH * B_LINE + b_get;
#pragma unroll
                for (int d = 0; d < DEPTH; d++) {
                    const cek_quad a0 = QUAD(from_a + d * A_LINE), a1 = QUAD(from_a + d * A_LINE + ROWS / 2);
                    const cek_quad b0 = QUAD(from_b + d * B_LINE), b1 = QUAD(from_b + d * B_LINE + COLUMNS / 2);
                    const cek_f32 left[EACH] = { a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w };
                    const cek_f32 right[EACH] = { b0.x, b0.y, b0.z, b0.w, b1.x, b1.y, b1.z, b1.w };
#pragma unroll
                    for (int r = 0; r < EACH; r++)
#pragma unroll
                        for (int c = 0; c < EACH; c++)
                            sum[r][c] += left[r] * right[c];
                }
            }
            if (step < steps) {
                NEAR cek_f32 *to_a = strip_a + now * DEPTH * A_LINE + a_put, *to_b = strip_b + now * DEPTH * B_LINE + b_put;
#pragma unroll
                for (int l = 0; l < ROW_LOADS; l++)
                    to_a[l * SPAN] = next_a[l];
#pragma unroll
                for (int l = 0; l < COLUMN_LOADS; l++)
                    to_b[l * SPAN] = next_b[l];
            }
            BARRIER();
        }
    }

    /* One row of each work-item at a time goes through local memory: neighbours then write neighbours. */
    NEAR cek_f32 *stage = strip_b;
    KEEP(a_get); KEEP(b_get);
    const cek_u32 stage_x = b_get / 4, stage_y = a_get / 4;
#pragma unroll
    for (int r = 0; r < EACH; r++) {
#pragma unroll
        for (int c = 0; c < EACH; c++)
            stage[stage_y * COLUMNS + SPREAD(c, stage_x, COLUMNS)] = sum[r][c];
        BARRIER();
        for (cek_u32 e = stage_y * SIDE_X + stage_x; e < SIDE_Y * COLUMNS; e += ITEMS) {
            const cek_u64 i = origin[0] + SPREAD(r, e / COLUMNS, ROWS), j = origin[1] + e % COLUMNS;
            if (i >= a.m || j >= a.n)
                continue;
            if (a.splits > 1)
                ((GLOBAL cek_f32 *)AT(partial, 5))[(origin[2] * a.m + i) * a.n + j] = stage[e];
            else
                finish(&a, AT(C_, 2), AT(bias, 3), AT(act_ref, 4), origin[2], i, j, stage[e]);
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
