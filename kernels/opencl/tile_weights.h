/* SPDX-License-Identifier: MIT
 *
 * tile_weights.h - gradients of the weights of convolutions by register tiles; a part of tile.cl.
 */

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
typedef struct range {
    cek_u32 first, end;
} range;

DEVICE_FN range seen_range(const cek_k_window *w, int axis, cek_u32 tap)
{
    const cek_u32 shift = tap * w->dilation[axis], reach = w->in[axis] + w->pad[axis], stride = w->stride[axis];
    range r;
    r.first = shift < w->pad[axis] ? (w->pad[axis] - shift + stride - 1) / stride : 0;
    r.end = reach > shift ? (reach - shift - 1) / stride + 1 : 0;
    r.end = r.end < w->out[axis] ? r.end : w->out[axis];
    return r;
}

/* Columns of sums of a panel become rows of DW, from `to` on so many elements apart: `values` of MR, of which those
 * from line `tile_first` on lie between `line` and `lines`. */
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
typedef struct share {
    cek_u64 first, end, panel_first, panels, row_tiles;
} share;

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

/* A tile is MR input channels of one tap by NR output channels; k is the pixels of the result. A work-item is a
 * slice of the images, a tap and panels of DY: it goes through a slice by bands, rows of an image or several images,
 * so that a band's pixels stay in cache for all tiles. DY is packed in panels or read in place. `whole`: one band is
 * all, so that sums go to DW as they are found, and those of taps that see nothing, too. */
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
                        const cek_u64 step = w.stride[1] * a.in;
                        for (cek_u32 p = columns.first; p < columns.end; p++, b += a.dy_pixel, x += step) {
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

/* Of few channels a tile is MR pairs of tap and channel, which are collected first, of CEK_K_GATHER_PIXELS pixels at
 * a time for all panels. Of fewer columns of DY than a vector what belongs to the next pixels is multiplied, too,
 * and never asked for. */
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
