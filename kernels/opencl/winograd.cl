/* SPDX-License-Identifier: MIT
 *
 * winograd.cl - convolutions of 3 x 3 taps by Winograd's squares, 4 x 4 outputs at once, on OpenCL devices that are
 * CPUs.
 *
 * A square is the 6 x 6 pixels that a tile of 4 x 4 outputs sees. Of each point of it transformed images are multiplied
 * by transformed weights, by the register tiles of tile.h; y = At [(G g Gt) . (Bt d B)] A with the points 0, a, -a, b,
 * -b and infinity. The gradient of the weights is the same read backwards: dg = Gt [(A dy At) . (Bt d B)] G.
 * A work-item has scratch memory of its own, so small that squares of up to 256 channels stay in a second-level cache
 * of 1 MiB. All channels come in whole vectors.
 */
#include "tile.h"

#define SIDE 6
#define POINTS (SIDE * SIDE)
#define OUTPUTS 4
#define TAPS 3
/* Of gradients of weights: rows of a block's sums of a point, and all of them. */
#define SUMS_ROWS ((CEK_K_CHANNELS + MR - 1) / MR * MR)
#define SUMS (SUMS_ROWS * CEK_K_CHANNELS)

/* --- squares ------------------------------------------------------------------------------------- */

#define SIDE_FN(name) DEVICE_FN void side_##name(const VEC *x, VEC *y)
#define SIDE_VECTOR VEC
#include "kernels/cpu/winograd_sides.h"
#undef SIDE_FN
#undef SIDE_VECTOR

/* Both sides of a square of from x from vectors, which becomes one of to x to: down its columns, then along its rows.
 * READ(i): vector i. WRITE(i, v): vector i of the result. */
#define SQUARE(side, from, to, READ, WRITE)      \
    {                                            \
        VEC half_[SIDE * SIDE];                  \
        UNROLL                                   \
        for (int j_ = 0; j_ < (from); j_++) {    \
            VEC in_[SIDE], out_[SIDE];           \
            UNROLL                               \
            for (int i_ = 0; i_ < (from); i_++)  \
                in_[i_] = READ(i_ * (from) + j_); \
            side(in_, out_);                     \
            UNROLL                               \
            for (int i_ = 0; i_ < (to); i_++)    \
                half_[i_ * SIDE + j_] = out_[i_]; \
        }                                        \
        UNROLL                                   \
        for (int i_ = 0; i_ < (to); i_++) {      \
            VEC out_[SIDE];                      \
            side(half_ + i_ * SIDE, out_);       \
            UNROLL                               \
            for (int j_ = 0; j_ < (to); j_++) {  \
                WRITE(i_ * (to) + j_, out_[j_])  \
            }                                    \
        }                                        \
    }

/* --- squares of images --------------------------------------------------------------------------- */

/* A tile by its number: its image, and the first of its outputs. */
typedef struct tile_spot { cek_u32 y, x; cek_u64 image; } tile_spot;

DEVICE_FN tile_spot tile_at(const cek_k_winograd *a, cek_u64 tile)
{
    tile_spot s;
    s.x = (cek_u32)(tile % a->tiles[1]) * OUTPUTS, tile /= a->tiles[1];
    s.y = (cek_u32)(tile % a->tiles[0]) * OUTPUTS;
    s.image = tile / a->tiles[0];
    return s;
}

/* `side` x `side` pixels from (y, x) on of an image of so many rows and columns, each `channels` from the next: where
 * each lies, or zeros. */
DEVICE_FN void pixels_find(cek_in image, const cek_u32 *size, cek_u64 channels, cek_u32 y, cek_u32 x, cek_u32 side,
                           cek_in zeros, cek_in *seen)
{
    for (cek_u32 i = 0; i < side; i++)
        for (cek_u32 j = 0; j < side; j++)
            seen[i * side + j] = y + i < size[0] && x + j < size[1]
                                     ? image + ((cek_u64)(y + i) * size[1] + (x + j)) * channels
                                     : zeros;
}

#define SEEN(i) VLOAD(seen[i] + c)
#define TO_PLANES(i, v) VSTORE(v, to + (i) * plane);

/* The square that a tile of the result sees, transformed: `channels` of them from `image` on, at `to`, from point to
 * point `plane`. */
DEVICE_FN void square_input(const cek_k_winograd *a, cek_in image, tile_spot s, cek_u64 channels, cek_in zeros,
                            cek_out to_, cek_u64 plane)
{
    cek_in seen[POINTS];
    pixels_find(image + s.image * a->size[0] * a->size[1] * a->from, a->size, a->from, s.y - a->pad[0], s.x - a->pad[1],
                SIDE, zeros, seen);
    for (cek_u64 c = 0; c < channels; c += VW) {
        cek_out to = to_ + c / CEK_K_CHANNELS * a->chunk + c % CEK_K_CHANNELS;
        SQUARE(side_input, SIDE, SIDE, SEEN, TO_PLANES)
    }
}

/* --- weights ------------------------------------------------------------------------------------- */

/* Weights [out][tap][in] become [panel][point][from][NR], of which the last panel may be part zeros. A work-item is a
 * panel and CEK_K_FILTERS of `from`. `data`: taps turned around, inputs as columns. */
KERNEL void winograd_filters(GLOBAL char *from_, GLOBAL char *to_, const cek_k_winograd a)
{
    const cek_u64 panel = GROUP_ID(0), first = GROUP_ID(1) * CEK_K_FILTERS, panels = (a.to + NR - 1) / NR;
    const cek_u64 end = first + CEK_K_FILTERS < a.from ? first + CEK_K_FILTERS : a.from;
    const cek_u64 plane = a.from * NR;
    cek_in w = (cek_in)AT(from_, 0);
    if (panel >= panels)
        return;
    for (cek_u64 d = first; d < end; d++)
        for (cek_u64 vector = 0; vector < 2; vector++) {
            const cek_u64 column = panel * NR + vector * VW;
            cek_out to = (cek_out)AT(to_, 1) + (panel * POINTS * a.from + d) * NR + vector * VW;
            VEC taps[TAPS * TAPS];
            for (int t = 0; t < TAPS * TAPS; t++) {
                if (column >= a.to) {
                    taps[t] = 0.0f;
                } else if (a.data) {
                    taps[t] = VLOAD(w + (d * TAPS * TAPS + (TAPS * TAPS - 1 - t)) * a.to + column);
                } else {
                    cek_f32 lane[VW];
                    for (int l = 0; l < VW; l++)
                        lane[l] = w[((column + l) * TAPS * TAPS + t) * a.from + d];
                    taps[t] = CEK_PASTE(vload, VW)(0, lane);
                }
            }
#define TAP(i) taps[i]
            SQUARE(side_weights, TAPS, SIDE, TAP, TO_PLANES)
        }
}

/* --- forward, and backward to the input ---------------------------------------------------------- */

/* A work-item goes through its blocks of tiles: their squares transformed, then, panel by panel of weights, their
 * products of all points, and those transformed back into pixels. `scratch`: squares [point][chunk of channels][tile],
 * products [point][tile][NR], zeros. */
KERNEL void winograd_images(GLOBAL char *X_, GLOBAL char *U_, GLOBAL char *Y_, GLOBAL char *bias, GLOBAL char *act_ref,
                            GLOBAL char *scratch, const cek_k_winograd a)
{
    if (!a.count)
        return;
    const cek_u64 blocks = (a.count + a.block - 1) / a.block, panels = (a.to + NR - 1) / NR;
    const cek_u64 panel_first = GROUP_ID(1) * a.panels;
    const cek_u64 panel_end = panel_first + a.panels < panels ? panel_first + a.panels : panels;
    const cek_u64 block_first = GROUP_ID(0) * blocks / a.parts, block_end = (GROUP_ID(0) + 1) * blocks / a.parts;
    const cek_u64 plane = (a.from + CEK_K_CHANNELS - 1) / CEK_K_CHANNELS * a.chunk, sums_plane = a.block * NR;
    cek_in X = (cek_in)AT(X_, 0);
    cek_out V = (cek_out)AT(scratch, 5) + (GROUP_ID(1) * a.parts + GROUP_ID(0)) * a.scratch;
    cek_out M = V + POINTS * plane, zeros = M + POINTS * sums_plane;
    epilogue e;
    e.c = AT(Y_, 2), e.type = a.type, e.accumulate = a.accumulate;
    e.bias = a.bias ? (cek_in)AT(bias, 3) : 0, e.bias_rows = 0;
    e.act_ref = a.act_grad ? AT(act_ref, 4) : 0;
    e.activation = a.activation, e.act_grad = a.act_grad, e.stream = 0;
    for (cek_u64 c = 0; c < a.from; c += VW)
        VSTORE((VEC)0.0f, zeros + c);
    for (cek_u64 block = block_first; block < block_end; block++) {
        const cek_u64 first = block * a.block, tiles = a.count - first < a.block ? a.count - first : a.block;
        /* Rows of a register tile beyond the last tile are that one again. */
        for (cek_u64 t = 0; t < (tiles + MR - 1) / MR * MR; t++)
            square_input(&a, X, tile_at(&a, first + (t < tiles ? t : tiles - 1)), a.from, zeros, V + t * CEK_K_PITCH,
                         plane);
        for (cek_u64 panel = panel_first; panel < panel_end; panel++) {
            cek_in U = (cek_in)AT(U_, 1) + panel * POINTS * a.from * NR;
            for (int point = 0; point < POINTS; point++)
                for (cek_u64 row = 0; row < tiles; row += MR) {
                    cek_in b = U + point * a.from * NR, x = V + point * plane + row * CEK_K_PITCH;
                    ROWS(TILE_DECLARE)
                    for (cek_u64 c = 0; c < a.from; c += CEK_K_CHANNELS, x += a.chunk) {
                        const cek_u32 depth = a.from - c < CEK_K_CHANNELS ? (cek_u32)(a.from - c) : CEK_K_CHANNELS;
#define A_OF(i) x[(i) * CEK_K_PITCH + k]
                        for (cek_u32 k = 0; k < depth; k++, b += NR) {
                            const VEC b0 = VLOAD(b), b1 = VLOAD(b + VW);
                            ROWS(TILE_STEP)
                        }
#undef A_OF
                    }
                    cek_out tile = M + point * sums_plane + row * NR;
                    ROWS(TILE_STORE)
                }
            for (cek_u64 t = 0; t < tiles; t++) {
                const tile_spot s = tile_at(&a, first + t);
                for (cek_u64 vector = 0; vector < 2 && panel * NR + vector * VW < a.to; vector++) {
                    const cek_u64 column = panel * NR + vector * VW;
                    cek_in sums = M + t * NR + vector * VW;
#define SUM(i) VLOAD(sums + (i) * sums_plane)
#define PIXEL(i, v)                                                                                                \
    if (s.y + (i) / OUTPUTS < a.result[0] && s.x + (i) % OUTPUTS < a.result[1])                                     \
        finish_vec(&e, ((s.image * a.result[0] + s.y + (i) / OUTPUTS) * a.result[1] + s.x + (i) % OUTPUTS) * a.to + \
                           column, 0, column, v);
                    SQUARE(side_output, SIDE, OUTPUTS, SUM, PIXEL)
                }
            }
        }
    }
}

/* --- gradients of weights ------------------------------------------------------------------------ */

/* A work-item sums a part of the tiles for a block of `to` and one of `from` channels, CEK_K_CHANNELS of each: block by
 * block of tiles it transforms dy and x, and adds the products of each point to its sums in `partial`, which are
 * [point][panel][tile of rows][MR][NR]. `scratch`: squares of x, and of dy, [point][tile], zeros. */
KERNEL void winograd_weights(GLOBAL char *X_, GLOBAL char *DY_, GLOBAL char *partial, GLOBAL char *scratch,
                             const cek_k_winograd a)
{
    if (!a.count)
        return;
    const cek_u64 columns_all = (a.from + CEK_K_CHANNELS - 1) / CEK_K_CHANNELS, pair = GROUP_ID(0), part = GROUP_ID(1);
    const cek_u64 pairs = columns_all * ((a.to + CEK_K_CHANNELS - 1) / CEK_K_CHANNELS);
    const cek_u64 column = pair % columns_all * CEK_K_CHANNELS, row = pair / columns_all * CEK_K_CHANNELS;
    const cek_u64 columns = a.from - column < CEK_K_CHANNELS ? a.from - column : CEK_K_CHANNELS;
    const cek_u64 rows = a.to - row < CEK_K_CHANNELS ? a.to - row : CEK_K_CHANNELS;
    const cek_u64 blocks = (a.count + a.block - 1) / a.block, plane = a.block * CEK_K_PITCH;
    const cek_u64 block_first = part * blocks / a.parts, block_end = (part + 1) * blocks / a.parts;
    const cek_u64 number = part * pairs + pair;
    cek_in X = (cek_in)AT(X_, 0) + column, DY = (cek_in)AT(DY_, 1) + row;
    cek_out sums = (cek_out)AT(partial, 2) + number * POINTS * SUMS;
    cek_out V = (cek_out)AT(scratch, 3) + number * a.scratch, D = V + POINTS * plane, zeros = D + POINTS * plane;
    /* What register tiles read beyond the last channel is multiplied, though nobody wants it. */
    for (cek_u64 i = 0; i < a.scratch; i += VW)
        VSTORE((VEC)0.0f, V + i);
    for (cek_u64 block = block_first; block < block_end; block++) {
        const cek_u64 first = block * a.block, tiles = a.count - first < a.block ? a.count - first : a.block;
        for (cek_u64 t = 0; t < tiles; t++) {
            const tile_spot s = tile_at(&a, first + t);
            cek_in seen[OUTPUTS * OUTPUTS];
            square_input(&a, X, s, columns, zeros, V + t * CEK_K_PITCH, plane);
            pixels_find(DY + s.image * a.result[0] * a.result[1] * a.to, a.result, a.to, s.y, s.x, OUTPUTS, zeros,
                        seen);
            for (cek_u64 c = 0; c < rows; c += VW) {
                cek_out to = D + t * CEK_K_PITCH + c;
                SQUARE(side_gradient, OUTPUTS, SIDE, SEEN, TO_PLANES)
            }
        }
        for (int point = 0; point < POINTS; point++)
            for (cek_u64 i = 0; i < columns; i += NR)
                for (cek_u64 j = 0; j < rows; j += MR) {
                    cek_out tile = sums + point * SUMS + i / NR * (SUMS_ROWS * NR) + j * NR;
                    cek_in b = V + point * plane + i, x = D + point * plane + j;
                    ROWS(TILE_DECLARE)
                    if (block > block_first) {
                        ROWS(TILE_LOAD)
                    }
#define A_OF(i) x[i]
                    for (cek_u64 t = 0; t < tiles; t++, b += CEK_K_PITCH, x += CEK_K_PITCH) {
                        const VEC b0 = VLOAD(b), b1 = VLOAD(b + VW);
                        ROWS(TILE_STEP)
                    }
#undef A_OF
                    ROWS(TILE_STORE)
                }
    }
}

/* The parts' sums in order, transformed into [out][tap][in]: an output channel per work-item. */
KERNEL void winograd_weights_finish(GLOBAL char *partial, GLOBAL char *DW_, const cek_k_winograd a)
{
    const cek_u64 o = GROUP_ID(0), columns_all = (a.from + CEK_K_CHANNELS - 1) / CEK_K_CHANNELS;
    const cek_u64 pairs = columns_all * ((a.to + CEK_K_CHANNELS - 1) / CEK_K_CHANNELS);
    if (o >= a.to)
        return;
    for (cek_u64 c = 0; c < a.from; c += VW) {
        const cek_u64 pair = o / CEK_K_CHANNELS * columns_all + c / CEK_K_CHANNELS, i = c % CEK_K_CHANNELS;
        cek_in from = (cek_in)AT(partial, 0) + pair * POINTS * SUMS + i / NR * (SUMS_ROWS * NR) +
                      o % CEK_K_CHANNELS * NR + i % NR;
        cek_out to = (cek_out)AT(DW_, 1) + o * TAPS * TAPS * a.from + c;
        VEC sums[POINTS];
        for (int point = 0; point < POINTS; point++) {
            sums[point] = 0.0f;
            for (cek_u64 part = 0; part < a.parts; part++)
                sums[point] += VLOAD(from + (part * pairs * POINTS + point) * SUMS);
        }
#define SUMMED(i) sums[i]
#define TO_TAPS(i, v) VSTORE(a.accumulate ? VLOAD(to + (i) * a.from) + (v) : (v), to + (i) * a.from);
        SQUARE(side_weights_gradient, SIDE, TAPS, SUMMED, TO_TAPS)
    }
}
