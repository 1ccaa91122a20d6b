/* SPDX-License-Identifier: MIT
 *
 * tile_conv.h - convolutions by register tiles, forward and backward to the input; a part of tile.cl.
 */

/* Packs weights [out][tap][in] into panels [tap][in][NR] of outputs (forward), or [tap][out][NR] of inputs (data),
 * of the taps that see something, and leaves `zeros` zeros behind them: what the padding reads. A work-item is a
 * panel and a tap, or (data) a few outputs and a tap: their rows, pages apart, are read along. */
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
typedef struct pixel {
    cek_u32 y, x, at[2], phase[2];
    cek_u64 place, image;
} pixel;

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

/* Pixel `number` of images of so many rows and columns. (No struct is returned that registers do not hold: oclgrind
 * does not know what LLVM makes of that.) */
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
typedef struct shift {
    cek_u32 strides, rest;
} shift;

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
#define SEEN(i) \
    (data ? seen_data(&a, pixels + (i), sy, sx, X, zeros) : seen_forward(&a, pixels + (i), ty, tx, X, zeros))
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
#define A_OF(i) x[(i)*GATHERED]
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
#define CONV_FINISH(i)         \
    if (t * MR + i < a.pixels) \
        finish_row(&e, pixels[i].place *a.columns, 1, t *MR + i, panel * NR, 0, a.columns, lo##i, hi##i);
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

KERNEL void tile_conv_data(GLOBAL char *X_, GLOBAL char *W_, GLOBAL char *Y_, GLOBAL char *bias, GLOBAL char *act_ref,
                           const cek_k_conv_tile a)
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
