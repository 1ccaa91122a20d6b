/* SPDX-License-Identifier: MIT
 *
 * product.cl - matrix products and convolutions, one tiled kernel: complete, on any device, decent on a GPU.
 *
 * A group computes a tile of TILE x TILE results from strips of A and B in local memory; each of its SIDE x SIDE
 * work-items (16 x 16 where the device allows it) holds 4 x 4 of them. MODE says what A(i,p) and B(p,j) are: elements
 * of matrices, or of images and weights (implicit GEMM).
 * A_TYPE, B_TYPE, C_TYPE: element types. SPLIT: k is summed in pieces, into partial sums that product_finish adds up.
 * WHOLE: it finishes sums that lie as C lies, and may be C itself.
 */
#define MODE_GEMM 0
#define MODE_FORWARD 1           /* rows: output positions; k: tap, input channel; columns: output channels */
#define MODE_DATA 2              /* rows: input positions; k: tap, output channel; columns: input channels */
#define MODE_WEIGHTS 3           /* rows: output channels; k: output positions; columns: tap, input channel */

#ifndef SIDE
#define SIDE 16
#endif
#define DEPTH 16
#define EACH 4
#define TILE (SIDE * EACH)
#define LOADS (DEPTH * TILE / (SIDE * SIDE))  /* values of either strip that a work-item collects */
#define SHARED (SIDE >= 4)                    /* all of them at one depth in A's strip, in one column of B's */

typedef struct spot { cek_u32 image, at[3]; } spot;

/* What of an element's place follows from one of its two numbers. It costs divisions, so each is found once and kept:
 * a position by the output or input that it is, or a tap with its channel. */
typedef struct part { spot at; cek_u32 channel; } part;

DEVICE_FN spot spot_of(cek_u64 i, const cek_u32 *size)
{
    spot s;
    s.at[2] = (cek_u32)(i % size[2]), i /= size[2];
    s.at[1] = (cek_u32)(i % size[1]), i /= size[1];
    s.at[0] = (cek_u32)(i % size[0]);
    s.image = (cek_u32)(i / size[0]);
    return s;
}

/* Channel `channel` of the input position that `tap` of an output position reads; 0 in the padding. */
#define POSITION(s, p, size) ((((cek_u64)(s).image * size[0] + (p)[0]) * size[1] + (p)[1]) * size[2] + (p)[2])
DEVICE_FN cek_u32 reads(const cek_k_window *w, const spot *out, const spot *tap, cek_u32 *p)
{
    for (int d = 0; d < 3; d++) {
        p[d] = out->at[d] * w->stride[d] + tap->at[d] * w->dilation[d] - w->pad[d];
        if (p[d] >= w->in[d])
            return 0;
    }
    return 1;
}

/* The other way round: the output position whose `tap` reads an input position. */
DEVICE_FN cek_u32 read_by(const cek_k_window *w, const spot *in, const spot *tap, cek_u32 *p)
{
    for (int d = 0; d < 3; d++) {
        cek_u32 padded = in->at[d] + w->pad[d], shift = tap->at[d] * w->dilation[d];
        p[d] = (padded - shift) / w->stride[d];
        if (padded < shift || (padded - shift) % w->stride[d] || p[d] >= w->out[d])
            return 0;
    }
    return 1;
}

DEVICE_FN part tap_part(const cek_k_window *w, cek_u64 i, cek_u32 channels)
{
    part t;
    t.at = spot_of(i / channels, w->taps);
    t.channel = (cek_u32)(i % channels);
    return t;
}

/* A(i,p) and B(p,j) of batch z; i < m, p < k, j < n. `a` are the arguments. A_PARTS, B_PARTS: they are found from
 * parts. */
#if MODE == MODE_GEMM
#define A_VALUE(i, p) LOAD(A_TYPE, A, z * a.a_batch + (i) * a.a_row + (p) * a.a_column)
#define B_VALUE(p, j) LOAD(B_TYPE, B, z * a.b_batch + (p) * a.b_row + (j) * a.b_column)
#define C_PLACE(i, j) (z * a.c_batch + (i) * a.c_row + (j))
#define BIAS_PLACE(j) (j)
#else
#define TAPS ((cek_u64)a.window.taps[0] * a.window.taps[1] * a.window.taps[2])
#endif

#if MODE == MODE_FORWARD
#define A_PARTS 1
#define A_ROW(i) spot_of(i, a.window.out)
#define A_DEPTH(p) tap_part(&a.window, p, a.in_group)
#define B_VALUE(p, j) LOAD(B_TYPE, B, (z * a.out_group + (j)) * TAPS * a.in_group + (p))
#define C_PLACE(i, j) ((i) * a.out_channels + z * a.out_group + (j))
#define BIAS_PLACE(j) (z * a.out_group + (j))
DEVICE_FN cek_f32 a_value(const cek_k_product *a, GLOBAL const char *A, cek_u64 z, const spot *out, const part *tap)
{
    cek_u32 at[3];
    if (!reads(&a->window, out, &tap->at, at))
        return 0.0f;
    return LOAD(A_TYPE, A, POSITION(*out, at, a->window.in) * a->in_channels + z * a->in_group + tap->channel);
}
#endif

#if MODE == MODE_DATA
#define A_PARTS 1
#define A_ROW(i) spot_of(i, a.window.in)
#define A_DEPTH(p) tap_part(&a.window, p, a.out_group)
#define B_VALUE(p, j) \
    LOAD(B_TYPE, B, ((z * a.out_group + (p) % a.out_group) * TAPS + (p) / a.out_group) * a.in_group + (j))
#define C_PLACE(i, j) ((i) * a.in_channels + z * a.in_group + (j))
#define BIAS_PLACE(j) (j)
DEVICE_FN cek_f32 a_value(const cek_k_product *a, GLOBAL const char *A, cek_u64 z, const spot *in, const part *tap)
{
    cek_u32 at[3];
    if (!read_by(&a->window, in, &tap->at, at))
        return 0.0f;
    return LOAD(A_TYPE, A, POSITION(*in, at, a->window.out) * a->out_channels + z * a->out_group + tap->channel);
}
#endif

#if MODE == MODE_WEIGHTS
#define A_VALUE(i, p) LOAD(A_TYPE, A, (p) * a.out_channels + z * a.out_group + (i))
#define B_PARTS 1
#define B_COLUMN(j) tap_part(&a.window, j, a.in_group)
#define C_PLACE(i, j) ((z * a.out_group + (i)) * TAPS * a.in_group + (j))
#define BIAS_PLACE(j) (j)
DEVICE_FN cek_f32 b_value(const cek_k_product *a, GLOBAL const char *B, cek_u64 z, cek_u64 p, const part *tap)
{
    cek_u32 at[3];
    spot out = spot_of(p, a->window.out);
    if (!reads(&a->window, &out, &tap->at, at))
        return 0.0f;
    return LOAD(B_TYPE, B, POSITION(out, at, a->window.in) * a->in_channels + z * a->in_group + tap->channel);
}
#endif

/* The finished sum of C(i,j). */
DEVICE_FN void finish(const cek_k_product *args, GLOBAL char *C, GLOBAL const char *bias, GLOBAL const char *act_ref,
                      cek_u64 z, cek_u64 i, cek_u64 j, cek_f32 v)
{
    const cek_k_product a = *args;
    cek_u64 place = C_PLACE(i, j);
    if (a.bias)
        v += ((GLOBAL const cek_f32 *)bias)[BIAS_PLACE(j)];
    v = activate(a.activation, v);
    if (a.act_grad)
        v = activate_grad(a.act_grad, v, LOAD(C_TYPE, act_ref, place));
    STORE(C_TYPE, C, place, a.accumulate ? LOAD(C_TYPE, C, place) + v : v);
}

#define OPERANDS                                                                                   \
    GLOBAL char *A_, GLOBAL char *B_, GLOBAL char *C_, GLOBAL char *bias, GLOBAL char *act_ref,    \
    GLOBAL char *partial, const cek_k_product a

#ifndef WHOLE
GROUP_IS(SIDE, SIDE)
KERNEL void product(OPERANDS)
{
    LOCAL cek_f32 strip_a[DEPTH][TILE + 1], strip_b[DEPTH][TILE + 1];
    GLOBAL const char *A = AT(A_, 0);
    GLOBAL const char *B = AT(B_, 1);
    /* Groups are numbered along x, the one direction without a low limit: columns first, then rows, pieces of k,
     * batches. */
    cek_u64 columns = (a.n + TILE - 1) / TILE, rows = (a.m + TILE - 1) / TILE, at = GROUP_ID(0);
    if (!a.splits)
        return;
    cek_u64 column = at % columns * TILE, row = at / columns % rows * TILE;
    cek_u64 split = at / columns / rows % a.splits, z = at / columns / rows / a.splits;
    cek_u64 begin = split * a.split_k, end = begin + a.split_k < a.k ? begin + a.split_k : a.k;
    cek_u32 x = ITEM_ID(0), y = ITEM_ID(1), item = y * SIDE + x;
    cek_f32 sum[EACH][EACH];
    for (int r = 0; r < EACH; r++)
        for (int c = 0; c < EACH; c++)
            sum[r][c] = 0.0f;
#ifdef A_PARTS
    spot a_row[LOADS];
    for (cek_u32 l = 0; l < LOADS; l++)
        a_row[l] = A_ROW(row + (item + l * SIDE * SIDE) / DEPTH);
#define A_VALUE(i, p) a_value(&a, A, z, &a_row[l], &a_depth)
#endif
#ifdef B_PARTS
    part b_column[SHARED ? 1 : LOADS];
    for (cek_u32 l = 0; l < (SHARED ? 1 : LOADS); l++)
        b_column[l] = B_COLUMN(column + (item + l * SIDE * SIDE) % TILE);
#define B_VALUE(p, j) b_value(&a, B, z, p, &b_column[SHARED ? 0 : l])
#endif
    for (cek_u64 p = begin; p < end; p += DEPTH) {
#ifdef A_PARTS
        part a_depth = A_DEPTH(p + item % DEPTH);
#endif
        for (cek_u32 l = 0; l < LOADS; l++) {
            cek_u32 e = item + l * SIDE * SIDE;
            cek_u64 i = row + e / DEPTH, j = column + e % TILE, pa = p + e % DEPTH, pb = p + e / TILE;
#ifdef A_PARTS
            if (!SHARED)
                a_depth = A_DEPTH(pa);
#endif
            strip_a[e % DEPTH][e / DEPTH] = i < a.m && pa < end ? A_VALUE(i, pa) : 0.0f;
            strip_b[e / TILE][e % TILE] = j < a.n && pb < end ? B_VALUE(pb, j) : 0.0f;
        }
        BARRIER();
        for (int d = 0; d < DEPTH; d++)
            for (int r = 0; r < EACH; r++)
                for (int c = 0; c < EACH; c++)
                    sum[r][c] += strip_a[d][y + r * SIDE] * strip_b[d][x + c * SIDE];
        BARRIER();
    }
    for (int r = 0; r < EACH; r++)
        for (int c = 0; c < EACH; c++) {
            cek_u64 i = row + y + r * SIDE, j = column + x + c * SIDE;
            if (i >= a.m || j >= a.n)
                continue;
#ifdef SPLIT
            ((GLOBAL cek_f32 *)AT(partial, 5))[((z * a.splits + split) * a.m + i) * a.n + j] = sum[r][c];
#else
            finish(&a, AT(C_, 2), AT(bias, 3), AT(act_ref, 4), z, i, j, sum[r][c]);
#endif
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
    cek_f32 sum = ((GLOBAL const cek_f32 *)AT(partial, 5))[C_PLACE(i, j)];
#else
    cek_f32 sum = 0.0f;
    for (cek_u64 split = 0; split < a.splits; split++)
        sum += ((GLOBAL const cek_f32 *)AT(partial, 5))[((z * a.splits + split) * a.m + i) * a.n + j];
#endif
    finish(&a, AT(C_, 2), AT(bias, 3), AT(act_ref, 4), z, i, j, sum);
}
