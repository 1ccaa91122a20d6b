/* SPDX-License-Identifier: MIT
 *
 * tile.cl - products on OpenCL devices that are CPUs: a work-item is a thread, a tile of C its vector registers.
 *
 * A tile has MR rows (one broadcast operand each) and NR = 2 VW columns (two vectors). VW and MR come from the
 * host: 16 and 14 fill the 32 registers of AVX-512, 8 and 6 the 16 of AVX2. Rows and columns are named, not
 * indexed, so that no compiler has to be trusted to keep an array in registers.
 *
 * Kernels that differ in one choice are one function with that choice as a constant. All are one program: drivers
 * take as long to set up the compiler as to read the source.
 */
#include "tile.h"

/* What the hardware does not foresee: rows of B that lie pages apart. */
#ifdef POCL_DEVICE_ADDRESS_BITS
#define AHEAD 16
#define PREFETCH(p) __builtin_prefetch((const void *)(ulong)(p));
#else
#define AHEAD 0
#define PREFETCH(p)
#endif

/* Where matrix z begins, of two levels of a batch. */
#define MATRIX_AT(z, name) (a.inner ? (z) / a.inner * a.name##_outer + (z) % a.inner * a.name##_batch : 0)

/* --- matrices -------------------------------------------------------------------------------- */

/* How far panel `panel` of B lies back, where it is read in place and has fewer than NR columns of its own. */
#define BACK(panel) ((panel) * NR + NR > a.n ? a.back : 0)

/* Packs rows of A into tiles [k][MR], zero below the last row; a work-item is a tile and a piece of k. */
KERNEL void tile_pack_a(GLOBAL char *from, GLOBAL char *to, const cek_k_pack a)
{
    cek_u64 tiles = (a.rows + MR - 1) / MR, z = GROUP_ID(2), tile = GROUP_ID(0), begin = GROUP_ID(1) * a.piece;
    if (tile >= tiles || begin >= a.k)
        return;
    cek_u64 end = begin + a.piece < a.k ? begin + a.piece : a.k;
    cek_in x = (cek_in)AT(from, 0) + MATRIX_AT(z, from) + tile * MR * a.row;
    cek_out y = (cek_out)AT(to, 1) + (z * tiles + tile) * a.k * MR;
    cek_u64 rows = a.rows - tile * MR;
    if (rows >= MR && a.column == 1) {
        for (cek_u64 p = begin; p < end; p++)
            for (int i = 0; i < MR; i++)
                y[p * MR + i] = x[i * a.row + p];
    } else if (rows >= MR && a.row == 1) {
        for (cek_u64 p = begin; p < end; p++)
            for (int i = 0; i < MR; i++)
                y[p * MR + i] = x[i + p * a.column];
    } else {
        for (cek_u64 p = begin; p < end; p++)
            for (cek_u64 i = 0; i < MR; i++)
                y[p * MR + i] = i < rows ? x[i * a.row + p * a.column] : 0.0f;
    }
}

/* Packs columns of B into panels [k][NR], zero beyond the last column. */
KERNEL void tile_pack_b(GLOBAL char *from, GLOBAL char *to, const cek_k_pack a)
{
    cek_u64 panels = (a.rows + NR - 1) / NR, z = GROUP_ID(2), panel = GROUP_ID(0), begin = GROUP_ID(1) * a.piece;
    if (panel >= panels || begin >= a.k)
        return;
    cek_u64 end = begin + a.piece < a.k ? begin + a.piece : a.k, columns = a.rows - panel * NR;
    cek_in x = (cek_in)AT(from, 0) + MATRIX_AT(z, from) + panel * NR * a.row;
    cek_out y = (cek_out)AT(to, 1) + (z * panels + panel) * a.k * NR;
    if (columns >= NR && a.row == 1) {
        for (cek_u64 p = begin; p < end; p++) {
            VSTORE(VLOAD(x + p * a.column), y + p * NR);
            VSTORE(VLOAD(x + p * a.column + VW), y + p * NR + VW);
        }
        return;
    }
    columns = columns < NR ? columns : NR;
    if (a.row == 1) {
        for (cek_u64 p = begin; p < end; p++) {
            for (cek_u64 j = 0; j < columns; j++)
                y[p * NR + j] = x[p * a.column + j];
            for (cek_u64 j = columns; j < NR; j++)
                y[p * NR + j] = 0.0f;
        }
        return;
    }
    /* Blocks that stay in the first cache: rows are read along, written across. */
    for (cek_u64 p = begin; p < end; p += VW) {
        cek_u64 last = p + VW < end ? p + VW : end;
        for (cek_u64 j = 0; j < NR; j++)
            for (cek_u64 q = p; q < last; q++)
                y[q * NR + j] = j < columns ? x[j * a.row + q * a.column] : 0.0f;
    }
}

DEVICE_FN void epilogue_set(epilogue *e, const cek_k_tile *a, GLOBAL char *c, GLOBAL const char *bias,
                            GLOBAL const char *act_ref)
{
    e->c = c, e->type = a->type, e->accumulate = a->accumulate;
    e->bias = a->bias ? (cek_in)bias : 0, e->bias_rows = a->bias_rows;
    e->act_ref = a->act_grad ? act_ref : 0;
    e->activation = a->activation, e->act_grad = a->act_grad, e->stream = a->stream;
}

/* C from A and B; a work-item takes `panels` panels of B and `row_tiles` tiles of A, along C's rows. A is packed, or
 * (direct) read in place row by row; B is packed, or read in place where each row has NR neighbours: the last panel
 * then lies back, inside the row. */
DEVICE_FN void product(GLOBAL char *A_, GLOBAL char *B_, GLOBAL char *C_, GLOBAL char *bias, GLOBAL char *act_ref,
                       GLOBAL char *partial, const cek_k_tile a, const int direct)
{
    cek_u64 z = a.splits ? GROUP_ID(2) / a.splits : 0, split = a.splits ? GROUP_ID(2) % a.splits : 0;
    cek_u64 tile_first = GROUP_ID(1) * a.row_tiles, tiles = (a.m + MR - 1) / MR;
    cek_u64 tile_end = tile_first + a.row_tiles < tiles ? tile_first + a.row_tiles : tiles;
    cek_u64 panel_first = GROUP_ID(0) * a.panels, panels = (a.n + NR - 1) / NR;
    cek_u64 panel_end = panel_first + a.panels < panels ? panel_first + a.panels : panels;
    cek_u64 begin = split * a.split_k, end = begin + a.split_k < a.k ? begin + a.split_k : a.k;
    cek_in A = (cek_in)AT(A_, 0) + MATRIX_AT(z, a), B = (cek_in)AT(B_, 1) + MATRIX_AT(z, b) + begin * a.b_k;
    epilogue e;
    epilogue_set(&e, &a, AT(C_, 2), AT(bias, 3), AT(act_ref, 4));
    for (cek_u64 t = tile_first; t < tile_end; t++) {
#define ROW_POINTER(i) cek_in r##i = A + begin + (t * MR + i < a.m ? t * MR + i : a.m - 1) * a.a_row;
        ROWS(ROW_POINTER)
        for (cek_u64 panel = panel_first; panel < panel_end; panel++) {
            ROWS(TILE_DECLARE)
            const cek_u64 back = BACK(panel);
            cek_in b = B + panel * a.b_panel - back;
            cek_in x = A + (t * a.k + begin) * MR;
            for (cek_u64 p = 0; p < end - begin; p++, b += a.b_k, x += MR) {
                const VEC b0 = VLOAD(b), b1 = VLOAD(b + VW);
                PREFETCH(b + AHEAD * a.b_k)
                PREFETCH(b + AHEAD * a.b_k + VW)
                PREFETCH(b + AHEAD * a.b_k + NR - 1) /* rows begin anywhere in a line: two vectors lie in three */
#define A_OF(i) (direct ? r##i[p] : x[i])
                ROWS(TILE_STEP)
#undef A_OF
            }
            if (a.splits > 1) {
                cek_u64 number = ((z * a.splits + split) * tiles + t) * panels + panel;
                cek_out tile = (cek_out)AT(partial, 5) + number * (MR * NR);
                ROWS(TILE_STORE)
            } else {
                const cek_u64 place = MATRIX_AT(z, c) + t * MR * a.c_row;
#define FINISH(i) if (t * MR + i < a.m) \
                    finish_row(&e, place + i * a.c_row, a.c_column, t * MR + i, panel * NR, back, a.n, lo##i, hi##i);
                ROWS(FINISH)
            }
        }
    }
    if (a.stream)
        STREAMED();
}

KERNEL void tile_product(GLOBAL char *A_, GLOBAL char *B_, GLOBAL char *C_, GLOBAL char *bias, GLOBAL char *act_ref,
                         GLOBAL char *partial, const cek_k_tile a)
{
    product(A_, B_, C_, bias, act_ref, partial, a, 0);
}

KERNEL void tile_product_direct(GLOBAL char *A_, GLOBAL char *B_, GLOBAL char *C_, GLOBAL char *bias,
                                GLOBAL char *act_ref, GLOBAL char *partial, const cek_k_tile a)
{
    product(A_, B_, C_, bias, act_ref, partial, a, 1);
}

/* The sum of the pieces of k, a tile per work-item. */
KERNEL void tile_finish(GLOBAL char *A_, GLOBAL char *B_, GLOBAL char *C_, GLOBAL char *bias, GLOBAL char *act_ref,
                        GLOBAL char *partial, const cek_k_tile a)
{
    cek_u64 tiles = (a.m + MR - 1) / MR, panels = (a.n + NR - 1) / NR;
    cek_u64 z = GROUP_ID(2), t = GROUP_ID(1), column = GROUP_ID(0) * NR;
    if (column >= a.n || t >= tiles)
        return;
    epilogue e;
    epilogue_set(&e, &a, AT(C_, 2), AT(bias, 3), AT(act_ref, 4));
    for (cek_u64 row = t * MR; row < a.m && row < t * MR + MR; row++) {
        VEC lo = 0.0f, hi = 0.0f;
        for (cek_u64 split = 0; split < a.splits; split++) {
            cek_u64 number = ((z * a.splits + split) * tiles + t) * panels + GROUP_ID(0);
            cek_in sums = (cek_in)AT(partial, 5) + number * (MR * NR) + (row - t * MR) * NR;
            lo += VLOAD(sums);
            hi += VLOAD(sums + VW);
        }
        finish_row(&e, MATRIX_AT(z, c) + row * a.c_row, a.c_column, row, column, BACK(GROUP_ID(0)), a.n, lo, hi);
    }
    if (a.stream)
        STREAMED();
}

/* --- convolutions, forward and backward to the input ----------------------------------------- */

/* How many taps there are, and which of them is number `tap` of those that see something. */
DEVICE_FN cek_u64 taps_all(const cek_k_taps *t)
{
    return (cek_u64)t->all[0] * t->all[1];
}
DEVICE_FN cek_u64 tap_seen(const cek_k_taps *t, cek_u64 tap)
{
    return (t->first[0] + tap / t->seen[1]) * t->all[1] + t->first[1] + tap % t->seen[1];
}

/* The other way: its number among those; their number where it is none of them. */
DEVICE_FN cek_u64 tap_among_seen(const cek_k_taps *t, cek_u64 tap)
{
    const cek_u64 y = tap / t->all[1] - t->first[0], x = tap % t->all[1] - t->first[1];
    return y < t->seen[0] && x < t->seen[1] ? y * t->seen[1] + x : (cek_u64)t->seen[0] * t->seen[1];
}

/* Packs weights [out][tap][in] into panels [tap][in][NR] of outputs (forward), or [tap][out][NR] of inputs (data), of
 * the taps that see something, and leaves `zeros` zeros behind them: what the padding reads. A work-item is a panel and a
 * tap, or (data) a few outputs and a tap: their rows, pages apart, are read along. */
KERNEL void tile_pack_weights(GLOBAL char *from, GLOBAL char *to, const cek_k_pack_weights a)
{
    const cek_u64 first = GROUP_ID(0), tap = GROUP_ID(1);
    const cek_u64 columns = a.data ? a.in : a.out, depth = a.data ? a.out : a.in, panels = (columns + NR - 1) / NR;
    const cek_u64 taps = (cek_u64)a.taps.seen[0] * a.taps.seen[1], row_of = taps_all(&a.taps) * a.in;
    if (!taps)
        return;
    cek_in w = (cek_in)AT(from, 0) + tap_seen(&a.taps, tap) * a.in;
    cek_out y = (cek_out)AT(to, 1);
    if (first == 0 && tap == 0)
        for (cek_u64 i = 0; i < a.zeros; i++)
            y[a.nothing ? i : panels * taps * depth * NR + i] = 0.0f;
    if (a.nothing)
        return;
    const cek_u64 begin = a.data ? first * CEK_K_PACK_ROWS : 0, left = depth - begin;
    const cek_u64 rows = a.data && left > CEK_K_PACK_ROWS ? CEK_K_PACK_ROWS : left;
    for (cek_u64 panel = a.data ? 0 : first; panel < (a.data ? panels : first + 1); panel++) {
        const cek_u64 column = panel * NR, count = columns - column < NR ? columns - column : NR;
        cek_out to_panel = y + ((panel * taps + tap) * depth + begin) * NR;
        if (a.data && count == NR)
            for (cek_u64 d = 0; d < rows; d++) {
                cek_in row = w + (begin + d) * row_of + column;
                VSTORE(VLOAD(row), to_panel + d * NR);
                VSTORE(VLOAD(row + VW), to_panel + d * NR + VW);
            }
        else
            for (cek_u64 d = 0; d < rows; d++)
                for (cek_u64 j = 0; j < NR; j++) {
                    const cek_u64 o = a.data ? begin + d : column + j, i = a.data ? column + j : d;
                    to_panel[d * NR + j] = j < count ? w[o * row_of + i] : 0.0f;
                }
    }
}

/* A pixel of the result, its number there, and where its image begins in what is read. Of the gradient of the input,
 * `at` and `phase` of each axis are the pixel and its padding, divided by the stride, and the rest. */
typedef struct pixel { cek_u32 y, x, at[2], phase[2]; cek_u64 place, image; } pixel;

DEVICE_FN void pixel_divide(const cek_k_window *w, pixel *p)
{
    const cek_u32 y = p->y + w->pad[0], x = p->x + w->pad[1];
    p->at[0] = y / w->stride[0], p->phase[0] = y % w->stride[0];
    p->at[1] = x / w->stride[1], p->phase[1] = x % w->stride[1];
}

/* Where the gradient of the input strides, pixels that are a stride apart follow each other, of so many images: all of
 * a tile then see something through a tap, or none does. */
#define PHASE_PIXELS 1024
DEVICE_FN cek_u64 phase_images(cek_u64 area)
{
    return area < PHASE_PIXELS ? PHASE_PIXELS / area : 1;
}

/* Pixel `number` of images of so many rows and columns. (No struct is returned that registers do not hold: oclgrind does
 * not know what LLVM makes of that.) */
DEVICE_FN void pixel_find(const cek_k_conv_tile *a, cek_u64 number, cek_u32 height, cek_u32 width, cek_u64 image,
                          cek_u32 strided, pixel *p)
{
    const cek_u64 area = (cek_u64)height * width;
    cek_u64 before = number / area, rest = number % area;
    if (strided) {
        const cek_u64 many = phase_images(area), first = before / many * many, left = a->pixels / area - first;
        const cek_u64 images = left < many ? left : many;
        const cek_u32 *stride = a->window.stride;
        cek_u32 y = 0, x = 0;
        cek_u64 rows = (height + stride[0] - 1) / stride[0], columns = (width + stride[1] - 1) / stride[1];
        rest = number - first * area;
        for (; rest >= images * rows * width; rows = (height - y + stride[0] - 1) / stride[0])
            rest -= images * rows * width, y++;
        for (; rest >= images * rows * columns; columns = (width - x + stride[1] - 1) / stride[1])
            rest -= images * rows * columns, x++;
        before = first + rest / (rows * columns), rest %= rows * columns;
        p->y = (cek_u32)(rest / columns) * stride[0] + y, p->x = (cek_u32)(rest % columns) * stride[1] + x;
    } else {
        p->y = (cek_u32)(rest / width), p->x = (cek_u32)(rest % width);
    }
    p->place = before * area + (cek_u64)p->y * width + p->x;
    p->image = before * image;
    pixel_divide(&a->window, p);
}

/* The next one, where they follow each other as they lie: divisions take longer than a tile of few channels. */
DEVICE_FN void pixel_next(pixel *p, cek_u32 height, cek_u32 width, cek_u64 image)
{
    p->place++, p->at[1]++;
    if (++p->x < width)
        return;
    p->at[1] -= width, p->x = 0, p->at[0]++;
    if (++p->y < height)
        return;
    p->at[0] -= height, p->y = 0, p->image += image;
}

/* The next one of those that are a stride apart: of the same phases, of the next image's, of the next phases. */
DEVICE_FN void pixel_next_strided(const cek_k_conv_tile *a, pixel *p, cek_u32 height, cek_u32 width, cek_u64 image)
{
    const cek_u32 *stride = a->window.stride;
    const cek_u64 area = (cek_u64)height * width, many = phase_images(area);
    p->place += stride[1], p->x += stride[1], p->at[1]++;
    if (p->x < width)
        return;
    cek_u64 first = p->place - ((cek_u64)p->y * width + p->x); /* of the image */
    p->x %= stride[1], p->y += stride[0];
    if (p->y >= height) {
        p->y %= stride[0];
        p->image += image, first += area;
        const cek_u64 done = (first / area - 1) % many + 1; /* of these images */
        if (done == many || first == a->pixels) {
            if (++p->x == stride[1] || p->x == width)
                p->x = 0, p->y++;
            if (p->y == stride[0] || p->y == height)
                p->y = 0;
            else
                p->image -= done * image, first -= done * area;
        }
    }
    p->place = first + (cek_u64)p->y * width + p->x;
    pixel_divide(&a->window, p);
}

/* How far a tap lies behind the window's first, along an axis: so many strides, and the rest. */
typedef struct shift { cek_u32 strides, rest; } shift;

DEVICE_FN void shift_next(const cek_k_window *w, int axis, shift *s)
{
    s->rest += w->dilation[axis];
    if (s->rest >= 2 * w->stride[axis])
        s->strides += s->rest / w->stride[axis], s->rest %= w->stride[axis];
    else if (s->rest >= w->stride[axis]) /* as a rule */
        s->strides++, s->rest -= w->stride[axis];
}

/* What a pixel sees through a tap, a row of A: a pointer to that pixel's channels, or to zeros. */
DEVICE_FN cek_in seen_forward(const cek_k_conv_tile *a, const pixel *p, cek_u32 ty, cek_u32 tx, cek_in X, cek_in zeros)
{
    const cek_k_window *w = &a->window;
    cek_u32 y = p->y * w->stride[0] + ty * w->dilation[0] - w->pad[0];
    cek_u32 x = p->x * w->stride[1] + tx * w->dilation[1] - w->pad[1];
    return y < w->in[0] && x < w->in[1] ? X + p->image + ((cek_u64)y * w->in[1] + x) * a->depth : zeros;
}

DEVICE_FN cek_in seen_data(const cek_k_conv_tile *a, const pixel *p, shift sy, shift sx, cek_in DY, cek_in zeros)
{
    const cek_u32 y = p->at[0] - sy.strides, x = p->at[1] - sx.strides;
    const cek_u32 whole = p->phase[0] == sy.rest && p->phase[1] == sx.rest;
    return whole && y < a->window.out[0] && x < a->window.out[1]
               ? DY + p->image + ((cek_u64)y * a->window.out[1] + x) * a->depth
               : zeros;
}

/* Copies so many values, a vector at a time where that does not read behind `end`; behind them others may be written,
 * which are in front of what is copied next. */
DEVICE_FN void values_copy(cek_in from, cek_u64 count, cek_in end, cek_f32 *to)
{
    cek_u64 k = 0;
    for (; k < count && end - from >= (long)(k + VW); k += VW)
        VSTORE(VLOAD(from + k), to + k);
    for (; k < count; k++)
        to[k] = from[k];
}

/* All that a pixel sees, a row of A: lines of its window at a time, where it lies whole in the image and its taps side
 * by side, else tap by tap. */
DEVICE_FN void conv_gather(const cek_k_conv_tile *a, const pixel *p, const int data, cek_in X, cek_in end, cek_in zeros,
                           cek_f32 *to)
{
    const cek_k_window *w = &a->window;
    if (!data && w->dilation[1] == 1) {
        const cek_u32 y = p->y * w->stride[0] - w->pad[0], last = y + (w->taps[0] - 1) * w->dilation[0];
        const cek_u32 x = p->x * w->stride[1] - w->pad[1], behind = x + w->taps[1];
        if (y < w->in[0] && last < w->in[0] && x < w->in[1] && behind <= w->in[1]) {
            const cek_u64 line = (cek_u64)w->in[1] * a->depth;
            const cek_u32 values = w->taps[1] * (cek_u32)a->depth;
            cek_in from = X + p->image + y * line + x * a->depth;
            for (cek_u32 ty = 0; ty < w->taps[0]; ty++, from += w->dilation[0] * line, to += values)
                values_copy(from, values, end, to);
            return;
        }
    }
    shift sy = { 0, 0 };
    for (cek_u32 ty = 0; ty < w->taps[0]; ty++, shift_next(w, 0, &sy)) {
        shift sx = { 0, 0 };
        for (cek_u32 tx = 0; tx < w->taps[1]; tx++, shift_next(w, 1, &sx), to += a->depth) {
            cek_in seen = data ? seen_data(a, p, sy, sx, X, zeros) : seen_forward(a, p, ty, tx, X, zeros);
            for (cek_u32 c = 0; c < a->depth; c++)
                to[c] = seen[c];
        }
    }
}

/* Rows are pixels of the result, MR in a row; k is tap by tap, channel by channel. Two spatial dimensions. `data`:
 * the gradient of the input. `gather`: few channels, so the tile's A is collected first; else it is read in place, of
 * half panels by a kernel of their own (`half_vec`): a loop beside the other one made networks that never enter it
 * slower (PoCL: 1.05 of mnist-cnn's time). `in_place`: weights are read as they lie, not packed. */
DEVICE_FN void conv(GLOBAL char *X_, GLOBAL char *W_, GLOBAL char *Y_, GLOBAL char *bias, GLOBAL char *act_ref,
                    GLOBAL char *zeros_, const cek_k_conv_tile a, const int data, const int gather, const int half_vec,
                    const int in_place)
{
    const cek_k_window w = a.window;
    cek_u64 tiles = (a.pixels + MR - 1) / MR, tile_first = GROUP_ID(0) * a.row_tiles;
    cek_u64 tile_end = tile_first + a.row_tiles < tiles ? tile_first + a.row_tiles : tiles;
    cek_u64 panels = (a.columns + NR - 1) / NR, taps = (cek_u64)w.taps[0] * w.taps[1];
    cek_u64 panel_first = GROUP_ID(1) * a.panels;
    cek_u64 panel_end = panel_first + a.panels < panels ? panel_first + a.panels : panels;
    cek_in X = (cek_in)AT(X_, 0), W = (cek_in)AT(W_, 1);
    cek_in zeros = in_place ? (cek_in)AT(zeros_, 5) : W + panels * taps * a.depth * NR;
    const cek_u64 b_k = in_place ? taps_all(&a.taps) * a.columns : NR;
    epilogue e;
    e.c = AT(Y_, 2), e.type = a.type, e.accumulate = a.accumulate;
    e.bias = a.bias ? (cek_in)AT(bias, 3) : 0, e.bias_rows = 0;
    e.act_ref = a.act_grad ? AT(act_ref, 4) : 0;
    e.activation = a.activation, e.act_grad = a.act_grad, e.stream = 0;
    const cek_u32 height = data ? w.in[0] : w.out[0], width = data ? w.in[1] : w.out[1];
    const cek_u64 image = (data ? (cek_u64)w.out[0] * w.out[1] : (cek_u64)w.in[0] * w.in[1]) * a.depth;
#define SEEN(i) (data ? seen_data(&a, pixels + (i), sy, sx, X, zeros) : seen_forward(&a, pixels + (i), ty, tx, X, zeros))
#define GATHERED (CEK_K_GATHER_VALUES + VW) /* a row of what is collected, and what is written behind it */
    pixel at;
    pixel_find(&a, tile_first * MR, height, width, image, data && a.strided, &at);
    for (cek_u64 t = tile_first; t < tile_end; t++) {
        pixel pixels[MR];
        for (int i = 0; i < MR; i++) {
            pixels[i] = at;
            if (t * MR + i + 1 >= a.pixels)
                continue;
            if (data && a.strided)
                pixel_next_strided(&a, &at, height, width, image);
            else
                pixel_next(&at, height, width, image);
        }
        cek_f32 gathered[MR * GATHERED];
        if (gather) {
            cek_in end = X + a.pixels / ((cek_u64)height * width) * image;
            for (int i = 0; i < MR; i++)
                conv_gather(&a, pixels + i, data, X, end, zeros, gathered + i * GATHERED);
        }
        for (cek_u64 panel = panel_first; panel < panel_end; panel++) {
            cek_in b = W + panel * taps * a.depth * NR;
            const cek_u32 half_panel = panel * NR + VW >= a.columns;
            ROWS(TILE_DECLARE)
            if (gather) {
                const cek_f32 *x = gathered, *end = gathered + taps * a.depth;
#define A_OF(i) x[(i) * GATHERED]
                if (half_panel)
                    for (; x < end; b += NR, x++) {
                        const VEC b0 = VLOAD(b);
                        ROWS(TILE_HALF_STEP)
                    }
                for (; x < end; b += NR, x++) {
                    const VEC b0 = VLOAD(b), b1 = VLOAD(b + VW);
                    ROWS(TILE_STEP)
                }
#undef A_OF
            } else {
                shift sy = { 0, 0 };
                for (cek_u32 ty = 0; ty < w.taps[0]; ty++, shift_next(&w, 0, &sy)) {
                    shift sx = { 0, 0 };
                    for (cek_u32 tx = 0; tx < w.taps[1]; tx++, shift_next(&w, 1, &sx)) {
                        if (in_place)
                            b = W + tap_seen(&a.taps, ty * w.taps[1] + tx) * a.columns + panel * NR;
#define SEEN_ROW(i) cek_in r##i = SEEN(i);
                        ROWS(SEEN_ROW)
#define SEES_ROW(i) sees |= r##i != zeros;
                        cek_u32 sees = 0;
                        ROWS(SEES_ROW)
                        if (!sees) {
                            b += a.depth * NR;
                            continue;
                        }
#define A_OF(i) r##i[c]
                        if (half_vec)
                            for (cek_u64 c = 0; c < a.depth; c++, b += NR) {
                                const VEC b0 = VLOAD(b);
                                ROWS(TILE_HALF_STEP)
                            }
                        else
                            for (cek_u64 c = 0; c < a.depth; c++, b += b_k) {
                                const VEC b0 = VLOAD(b), b1 = VLOAD(b + VW);
                                if (in_place) {
                                    PREFETCH(b + AHEAD * b_k)
                                    PREFETCH(b + AHEAD * b_k + VW)
                                }
                                ROWS(TILE_STEP)
                            }
#undef A_OF
                    }
                }
            }
#define CONV_FINISH(i) if (t * MR + i < a.pixels) \
                finish_row(&e, pixels[i].place * a.columns, 1, t * MR + i, panel * NR, 0, a.columns, lo##i, hi##i);
            ROWS(CONV_FINISH)
        }
    }
}

KERNEL void tile_conv_forward(GLOBAL char *X_, GLOBAL char *W_, GLOBAL char *Y_, GLOBAL char *bias,
                              GLOBAL char *act_ref, const cek_k_conv_tile a)
{
    conv(X_, W_, Y_, bias, act_ref, 0, a, 0, 0, 0, 0);
}

KERNEL void tile_conv_forward_half(GLOBAL char *X_, GLOBAL char *W_, GLOBAL char *Y_, GLOBAL char *bias,
                                   GLOBAL char *act_ref, const cek_k_conv_tile a)
{
    conv(X_, W_, Y_, bias, act_ref, 0, a, 0, 0, 1, 0);
}

KERNEL void tile_conv_forward_gather(GLOBAL char *X_, GLOBAL char *W_, GLOBAL char *Y_, GLOBAL char *bias,
                                     GLOBAL char *act_ref, const cek_k_conv_tile a)
{
    conv(X_, W_, Y_, bias, act_ref, 0, a, 0, 1, 0, 0);
}

KERNEL void tile_conv_data(GLOBAL char *X_, GLOBAL char *W_, GLOBAL char *Y_, GLOBAL char *bias,
                           GLOBAL char *act_ref, const cek_k_conv_tile a)
{
    conv(X_, W_, Y_, bias, act_ref, 0, a, 1, 0, 0, 0);
}

KERNEL void tile_conv_data_half(GLOBAL char *X_, GLOBAL char *W_, GLOBAL char *Y_, GLOBAL char *bias,
                                GLOBAL char *act_ref, const cek_k_conv_tile a)
{
    conv(X_, W_, Y_, bias, act_ref, 0, a, 1, 0, 1, 0);
}

KERNEL void tile_conv_data_gather(GLOBAL char *X_, GLOBAL char *W_, GLOBAL char *Y_, GLOBAL char *bias,
                                  GLOBAL char *act_ref, const cek_k_conv_tile a)
{
    conv(X_, W_, Y_, bias, act_ref, 0, a, 1, 1, 0, 0);
}

/* Weights are read where they lie: whole panels, of so few tiles that they would not be worth packing. */
KERNEL void tile_conv_data_direct(GLOBAL char *X_, GLOBAL char *W_, GLOBAL char *Y_, GLOBAL char *bias,
                                  GLOBAL char *act_ref, GLOBAL char *zeros, const cek_k_conv_tile a)
{
    conv(X_, W_, Y_, bias, act_ref, zeros, a, 1, 0, 0, 1);
}

/* --- gradients of weights -------------------------------------------------------------------- */

/* Pairs of tap and channel of a tile that lie side by side in a line of the window. */
typedef struct run {
    cek_u32 at, count;       /* of the tile's pairs: the first, and how many */
    cek_u32 ty, tx, channel; /* of the first */
} run;

/* The runs of a tile's pairs, from `row` on; how many there are. Taps that lie apart end them. */
DEVICE_FN cek_u32 runs_find(const cek_k_weights_tile *a, cek_u64 row, run *runs)
{
    const cek_k_window *w = &a->window;
    const cek_u32 in = (cek_u32)a->in, all = w->taps[0] * w->taps[1] * in;
    const cek_u32 first = (cek_u32)row, end = first + MR < all ? first + MR : all;
    const cek_u32 whole = w->dilation[1] == 1 ? w->taps[1] * in : in;
    cek_u32 count = 0;
    for (cek_u32 pair = first; pair < end; count++) {
        run r;
        const cek_u32 left = whole - pair % whole, tap = pair / in;
        r.at = pair - first, r.count = left < end - pair ? left : end - pair;
        r.ty = tap / w->taps[1], r.tx = tap % w->taps[1], r.channel = pair % in;
        runs[count] = r;
        pair += r.count;
    }
    return count;
}

/* What `count` pixels of a row of the result see, from column `x0` on, of each a tile's pairs; zeros beside the image.
 * Pair by pair, where runs are short; */
DEVICE_FN void pairs_gather(const cek_k_weights_tile *a, cek_in X, cek_u64 image, cek_u32 y, cek_u64 row, cek_u32 x0,
                            cek_u32 count, cek_f32 *gathered)
{
    const cek_k_window *w = &a->window;
    const cek_u64 pairs = (cek_u64)w->taps[0] * w->taps[1] * a->in;
    for (cek_u32 i = 0; i < MR && row + i < pairs; i++) {
        const cek_u64 pair = row + i, tap = pair / a->in;
        const cek_u32 sy = y * w->stride[0] + (cek_u32)(tap / w->taps[1]) * w->dilation[0] - w->pad[0];
        const cek_u32 columns = sy < w->in[0] ? w->in[1] : 0;
        cek_in from = X + (image * w->in[0] + sy) * w->in[1] * a->in + pair % a->in;
        cek_u32 sx = x0 * w->stride[1] + (cek_u32)(tap % w->taps[1]) * w->dilation[1] - w->pad[1], x = 0;
        for (; x < count && sx >= columns; x++, sx += w->stride[1])
            gathered[x * MR + i] = 0.0f;
        from += (cek_u64)sx * a->in;
        for (; x < count && sx < columns; x++, sx += w->stride[1], from += w->stride[1] * a->in)
            gathered[x * MR + i] = *from;
        for (; x < count; x++)
            gathered[x * MR + i] = 0.0f;
    }
}

/* run by run, in the order in which they lie, since copies write behind them. */
DEVICE_FN void runs_gather(const cek_k_weights_tile *a, cek_in X, cek_in end, cek_u64 image, cek_u32 y, cek_u32 x0,
                          cek_u32 count, const run *runs, cek_u32 run_count, cek_f32 *to)
{
    const cek_k_window *w = &a->window;
    const cek_u32 in = (cek_u32)a->in;
    for (cek_u32 x = 0; x < count; x++, to += MR)
        for (cek_u32 number = 0; number < run_count; number++) {
            const run r = runs[number];
            const cek_u32 sy = y * w->stride[0] + r.ty * w->dilation[0] - w->pad[0];
            const cek_u32 sx = (x0 + x) * w->stride[1] + r.tx * w->dilation[1] - w->pad[1];
            const cek_u32 last = sx + (r.channel + r.count - 1) / in; /* the last one's pixel */
            cek_f32 *values = to + r.at;
            if (sy >= w->in[0]) {
                for (cek_u32 i = 0; i < r.count; i++)
                    values[i] = 0.0f;
                continue;
            }
            cek_in line = X + (image * w->in[0] + sy) * w->in[1] * a->in;
            if (sx < w->in[1] && last < w->in[1])
                values_copy(line + (cek_u64)sx * in + r.channel, r.count, end, values);
            else
                for (cek_u32 i = 0, c = r.channel, at = sx; i < r.count; i++) {
                    values[i] = at < w->in[1] ? line[(cek_u64)at * in + c] : 0.0f;
                    if (++c == in)
                        c = 0, at++;
                }
        }
}

/* The first vector of a pixel whose row of B is shorter, at the end of what there is. */
DEVICE_FN VEC load_last(cek_in b, cek_u64 columns)
{
    cek_f32 lane[VW];
    for (cek_u64 j = 0; j < VW; j++)
        lane[j] = j < columns ? b[j] : 0.0f;
    return CEK_PASTE(vload, VW)(0, lane);
}

/* Results along an axis whose window sees the image through one tap, `shift` behind the window's first. */
typedef struct range { cek_u32 first, end; } range;

DEVICE_FN range seen_range(const cek_k_window *w, int axis, cek_u32 tap)
{
    const cek_u32 shift = tap * w->dilation[axis], reach = w->in[axis] + w->pad[axis], stride = w->stride[axis];
    range r;
    r.first = shift < w->pad[axis] ? (w->pad[axis] - shift + stride - 1) / stride : 0;
    r.end = reach > shift ? (reach - shift - 1) / stride + 1 : 0;
    r.end = r.end < w->out[axis] ? r.end : w->out[axis];
    return r;
}

/* Columns of sums of a panel become rows of DW, from `to` on so many elements apart: `values` of MR, of which those from
 * line `tile_first` on lie between `line` and `lines`. */
DEVICE_FN void sums_turn(const cek_f32 *values, cek_u64 columns, cek_u64 tile_first, cek_u64 line, cek_u64 lines,
                         cek_out to, cek_u64 apart, cek_u32 accumulate)
{
    for (cek_u64 j = 0; j < columns; j++) {
        cek_out row = to + j * apart;
        for (cek_u64 i = 0; i < MR; i++) {
            const cek_u64 at = tile_first + i;
            if (at >= line && at < lines)
                row[at] = accumulate ? row[at] + values[i * NR + j] : values[i * NR + j];
        }
    }
}

/* The same of a tap that sees nothing. */
DEVICE_FN void sums_clear(cek_u64 columns, cek_u64 line, cek_u64 end, cek_out to, cek_u64 apart)
{
    for (cek_u64 j = 0; j < columns; j++) {
        cek_u64 at = line;
        for (; at + VW <= end; at += VW)
            VSTORE((VEC)0.0f, to + j * apart + at);
        for (; at < end; at++)
            to[j * apart + at] = 0.0f;
    }
}

/* What a work-item has: a slice of the images, panels of DY, tiles of rows for each of them. */
typedef struct share { cek_u64 first, end, panel_first, panels, row_tiles; } share;

DEVICE_FN void share_find(const cek_k_weights_tile *a, cek_u64 lines, share *s)
{
    const cek_u64 slice = GROUP_ID(1), panels = (a->out + NR - 1) / NR;
    s->first = slice * a->batch / a->slices, s->end = (slice + 1) * a->batch / a->slices;
    s->panel_first = GROUP_ID(2) * a->panels;
    s->panels = s->panel_first + a->panels < panels ? a->panels : panels - s->panel_first;
    s->row_tiles = (lines + MR - 1) / MR;
}

/* Where its sums wait, of one of so many taps, which begin as zeros. */
DEVICE_FN cek_out share_sums(const cek_k_weights_tile *a, const share *s, cek_u64 taps, cek_out sums)
{
    const cek_u64 panels = (a->out + NR - 1) / NR;
    sums += ((GROUP_ID(1) * taps + GROUP_ID(0)) * panels + s->panel_first) * s->row_tiles * (MR * NR);
    for (cek_u64 i = 0; i < s->row_tiles * s->panels * MR * NR; i += VW)
        VSTORE((VEC)0.0f, sums + i);
    return sums;
}

/* A tile is MR input channels of one tap by NR output channels; k is the pixels of the result. A work-item is a slice of
 * the images, a tap and panels of DY: it goes through a slice by bands, rows of an image or several images, so that a
 * band's pixels stay in cache for all tiles. DY is packed in panels or read in place. `whole`: one band is all, so that
 * sums go to DW as they are found, and those of taps that see nothing, too. */
DEVICE_FN void weights(GLOBAL char *X_, GLOBAL char *DY_, cek_out out, const cek_k_weights_tile a, const int whole)
{
    const cek_k_window w = a.window;
    const cek_u64 taps = (cek_u64)w.taps[0] * w.taps[1], all = taps_all(&a.taps);
    const cek_u64 tap = whole ? tap_among_seen(&a.taps, GROUP_ID(0)) : GROUP_ID(0);
    share s;
    share_find(&a, a.in, &s);
    cek_in X = (cek_in)AT(X_, 0), DY = (cek_in)AT(DY_, 1);
    if (tap == taps) {
        const cek_u64 first = s.panel_first * NR, left = a.out - first;
        if (!a.accumulate)
            sums_clear(left < s.panels * NR ? left : s.panels * NR, 0, a.in, out + (first * all + GROUP_ID(0)) * a.in,
                       all * a.in);
        return;
    }
    if (!whole)
        out = share_sums(&a, &s, taps, out);
    const cek_u32 ty = (cek_u32)(tap / w.taps[1]), tx = (cek_u32)(tap % w.taps[1]);
    const range rows = seen_range(&w, 0, ty), columns = seen_range(&w, 1, tx);
    for (cek_u64 block = s.first; block < s.end; block += a.images) {
        const cek_u64 block_end = block + a.images < s.end ? block + a.images : s.end;
        for (cek_u32 band = 0; band < w.out[0]; band += a.band) {
            const cek_u32 y_first = band > rows.first ? band : rows.first;
            const cek_u32 y_end = band + a.band < rows.end ? band + a.band : rows.end;
            for (cek_u64 number = 0; number < s.row_tiles * s.panels; number++) {
                const cek_u64 panel = s.panel_first + number / s.row_tiles, row = number % s.row_tiles * MR;
                /* The last tile of channels lies back, inside the pixel; its first rows are computed twice. */
                const cek_u64 channel = row + MR <= a.in ? row : a.in - MR;
                cek_in dy = DY + panel * a.dy_panel + block * w.out[0] * w.out[1] * a.dy_pixel;
                cek_in image_x = X + block * w.in[0] * w.in[1] * a.in + channel;
                ROWS(TILE_DECLARE)
                if (!whole) {
                    cek_out tile = out + number * (MR * NR);
                    ROWS(TILE_LOAD)
                }
#define A_OF(i) x[i]
                for (cek_u64 image = 0; image < block_end - block; image++)
                    for (cek_u32 y = y_first; y < y_end; y++) {
                        const cek_u32 sy = y * w.stride[0] + ty * w.dilation[0] - w.pad[0];
                        const cek_u32 sx = columns.first * w.stride[1] + tx * w.dilation[1] - w.pad[1];
                        cek_in x = image_x + ((image * w.in[0] + sy) * w.in[1] + sx) * a.in;
                        cek_in b = dy + ((image * w.out[0] + y) * w.out[1] + columns.first) * a.dy_pixel;
                        for (cek_u32 p = columns.first; p < columns.end; p++, b += a.dy_pixel, x += w.stride[1] * a.in) {
                            const VEC b0 = VLOAD(b), b1 = VLOAD(b + VW);
                            ROWS(TILE_STEP)
                        }
                    }
#undef A_OF
                if (whole) {
                    cek_f32 tile[MR * NR];
                    ROWS(TILE_STORE)
                    sums_turn(tile, a.out - panel * NR < NR ? a.out - panel * NR : NR, channel, row, a.in,
                              out + (panel * NR * all + GROUP_ID(0)) * a.in, all * a.in, a.accumulate);
                } else {
                    cek_out tile = out + number * (MR * NR);
                    ROWS(TILE_STORE)
                }
            }
        }
    }
}

KERNEL void tile_weights(GLOBAL char *X_, GLOBAL char *DY_, GLOBAL char *partial, const cek_k_weights_tile a)
{
    if (a.batch)
        weights(X_, DY_, (cek_out)AT(partial, 2), a, 0);
}

KERNEL void tile_weights_whole(GLOBAL char *X_, GLOBAL char *DY_, GLOBAL char *DW_, const cek_k_weights_tile a)
{
    if (a.batch)
        weights(X_, DY_, (cek_out)AT(DW_, 2), a, 1);
}

/* Of few channels a tile is MR pairs of tap and channel, which are collected first, of CEK_K_GATHER_PIXELS pixels at a
 * time for all panels. Of fewer columns of DY than a vector what belongs to the next pixels is multiplied, too, and never
 * asked for. */
KERNEL void tile_weights_gather(GLOBAL char *X_, GLOBAL char *DY_, GLOBAL char *partial, const cek_k_weights_tile a)
{
    const cek_k_window w = a.window;
    const cek_u64 area = (cek_u64)w.out[0] * w.out[1];
    cek_in X = (cek_in)AT(X_, 0), DY = (cek_in)AT(DY_, 1);
    if (!a.batch)
        return;
    share s;
    share_find(&a, (cek_u64)w.taps[0] * w.taps[1] * a.in, &s);
    cek_out sums = share_sums(&a, &s, 1, (cek_out)AT(partial, 2));
    cek_in x_end = X + a.batch * w.in[0] * w.in[1] * a.in;
    cek_in dy_end = DY + a.batch * area * a.dy_pixel; /* where it is read in place */
    cek_f32 gathered[CEK_K_GATHER_PIXELS * MR + VW];
    const cek_u32 long_runs = (w.dilation[1] == 1 ? w.taps[1] * a.in : a.in) >= CEK_K_LONG_RUN;
    run runs[MR];
    /* rows behind the last pair are multiplied, too: by nothing that takes a processor longer */
    for (int i = 0; i < CEK_K_GATHER_PIXELS * MR + VW; i++)
        gathered[i] = 0.0f;
    for (cek_u64 first = s.first * area; first < s.end * area; first += CEK_K_GATHER_PIXELS) {
        const cek_u64 left = s.end * area - first;
        const cek_u32 count = left < CEK_K_GATHER_PIXELS ? (cek_u32)left : CEK_K_GATHER_PIXELS;
        for (cek_u64 row = 0; row < s.row_tiles; row++) {
            const cek_u32 run_count = runs_find(&a, row * MR, runs);
            cek_u64 image = first / area;
            cek_u32 y = (cek_u32)(first % area / w.out[1]), x = (cek_u32)(first % w.out[1]);
            for (cek_u32 done = 0; done < count;) {
                const cek_u32 of_row = w.out[1] - x < count - done ? w.out[1] - x : count - done;
                if (long_runs)
                    runs_gather(&a, X, x_end, image, y, x, of_row, runs, run_count, gathered + done * MR);
                else
                    pairs_gather(&a, X, image, y, row * MR, x, of_row, gathered + done * MR);
                done += of_row, x = 0;
                if (++y == w.out[0])
                    y = 0, image++;
            }
            for (cek_u64 panel = 0; panel < s.panels; panel++) {
                const cek_u64 column = (s.panel_first + panel) * NR;
                cek_in b = DY + (s.panel_first + panel) * a.dy_panel + first * a.dy_pixel;
                cek_out tile = sums + (panel * s.row_tiles + row) * (MR * NR);
                const cek_f32 *x = gathered, *end = gathered + count * MR;
                ROWS(TILE_DECLARE)
                ROWS(TILE_LOAD)
#define A_OF(i) x[i]
                if (column + VW >= a.out)
                    for (; x < end; x += MR, b += a.dy_pixel) {
                        const VEC b0 = a.dy_panel || dy_end - b >= VW ? VLOAD(b) : load_last(b, a.out);
                        ROWS(TILE_HALF_STEP)
                    }
                for (; x < end; x += MR, b += a.dy_pixel) {
                    const VEC b0 = VLOAD(b), b1 = VLOAD(b + VW);
                    ROWS(TILE_STEP)
                }
#undef A_OF
                ROWS(TILE_STORE)
            }
        }
    }
}

/* The slices' sums in order, turned into [out][tap][in], and zeros of taps that see nothing: a panel, a tap and
 * CEK_K_FINISH_TILES tiles per work-item. */
KERNEL void tile_weights_finish(GLOBAL char *partial, GLOBAL char *DW_, const cek_k_weights_tile a)
{
    const cek_u64 panel = GROUP_ID(0), number = GROUP_ID(1), all = taps_all(&a.taps);
    /* Collected pairs are the channels of a single tap. */
    const cek_u64 taps = a.gather ? 1 : all, lines = a.gather ? all * a.in : a.in;
    const cek_u64 panels = (a.out + NR - 1) / NR, row_tiles = (lines + MR - 1) / MR, first = panel * NR;
    const cek_u64 begin = GROUP_ID(2) * CEK_K_FINISH_TILES, columns = a.out - first < NR ? a.out - first : NR;
    if (panel >= panels || number >= taps)
        return;
    cek_out to = (cek_out)AT(DW_, 1) + (first * taps + number) * lines;
    const cek_u64 seen = a.gather ? 1 : (cek_u64)a.taps.seen[0] * a.taps.seen[1];
    const cek_u64 tap = a.gather ? 0 : tap_among_seen(&a.taps, number);
    if (tap == seen) {
        const cek_u64 end = (begin + CEK_K_FINISH_TILES) * MR;
        if (!a.accumulate)
            sums_clear(columns, begin * MR, end < lines ? end : lines, to, taps * lines);
        return;
    }
    cek_in sums = (cek_in)AT(partial, 0) + (tap * panels + panel) * row_tiles * (MR * NR);
    for (cek_u64 t = begin; t < begin + CEK_K_FINISH_TILES && t < row_tiles; t++) {
        cek_f32 turned[NR * MR], *tile = turned;
        ROWS(TILE_DECLARE)
        for (cek_u64 slice = 0; slice < a.slices; slice++) {
            cek_in at = sums + (slice * seen * panels * row_tiles + t) * (MR * NR);
#define TILE_ADD(i) lo##i += VLOAD(at + (i)*NR), hi##i += VLOAD(at + (i)*NR + VW);
            ROWS(TILE_ADD)
        }
        ROWS(TILE_STORE)
        /* The last tile lies back, unless pairs were collected: what the one before has is left out. */
        const cek_u64 line = t * MR, tile_first = a.gather || line + MR <= lines ? line : lines - MR;
        sums_turn(turned, columns, tile_first, line, lines, to, taps * lines, a.accumulate);
    }
}
