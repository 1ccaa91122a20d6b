/* SPDX-License-Identifier: MIT
 *
 * lower_tiles.c - products by register tiles (kernels/opencl/tile.cl), on OpenCL devices that are CPUs.
 *
 * What is read often is packed first, what is read once is read in place. Tiles are f32: operands of 16 bits are
 * widened before. All sizes follow from the descriptor and the vector width, never from the
 * number of threads.
 */
#include <stdio.h>
#include <string.h>

#include "backends/gpu/tiles.h"

#define SPLIT_ABOVE 3072          /* longer sums are cut, so that a panel of B stays in a second-level cache: */
#define SPLIT_K 2048              /* 32 columns x 2048 x 4 bytes = 256 KiB */
#define A_BLOCK_BYTES (384 << 10) /* of A for a work-item, in the rest of that cache */
#define B_BLOCK_BYTES (256 << 10) /* of B, where sums are short: */
#define SHORT_K 128               /* so short that C is a good part of the memory traffic */
#define ITEMS_ENOUGH 200          /* work-items that are shared out well although PoCL's threads wake up late */
#define SUMS_ENOUGH 24            /* of them, before a sum is cut for their sake */
#define PIECE 512                 /* of k for a packing work-item */
#define FEW_PANELS 24             /* so few uses of A's rows do not pay for packing them */
#define FEW_TILES 80              /* nor of B's, which are read 128 bytes at a time */
#define CACHE_STRIDE 1024         /* elements: rows a multiple of it apart drive each other out of the first cache */
#define STREAM_BYTES (32 << 20)   /* of C, of which no cache would have much left for whoever reads it */
#define CONV_TILES 8              /* tiles of neighbouring pixels that share a panel of weights in the first cache */
#define DIRECT_TILES 1000         /* of pixels, which do not pay for packing the weights of a gradient of data */
#define GATHER_DEPTH 8            /* fewer channels than this are collected pixel by pixel */
#define BAND_PIXELS 256           /* whose 128 channels fill half of a second-level cache */
#define SLICES 16                 /* of a batch, summed apart */
#define SLICES_BYTES ((uint64_t)64 << 20)

cek__tile_size cek__tile_of(const cek_dev *dev)
{
    uint32_t width = dev->traits.vector_width >= 16 ? 16 : dev->traits.vector_width >= 8 ? 8 : 4;
    return (cek__tile_size){ width, width == 16 ? 14 : 6, 2 * width };
}

cek__gpu_step *cek__tile_step(cek_op *op, const char *source, const char *name, uint64_t x, uint64_t y, uint64_t z)
{
    char defines[CEK__GPU_DEFINES];
    const uint64_t groups[3] = { x, y, z };
    const uint32_t group[3] = { 1, 1, 1 };
    const cek__tile_size size = cek__tile_of(op->dev);
    cek__gpu_defines(op->dev, defines, "#define VW %u\n#define MR %u\n", size.width, size.rows);
    return cek__gpu_step_grid(op, source, defines, name, groups, group);
}

static cek__gpu_step *tile_step(cek_op *op, const char *name, uint64_t x, uint64_t y, uint64_t z)
{
    return cek__tile_step(op, "tile.cl", name, x, y, z);
}

/* --- 16 bits --------------------------------------------------------------------------------- */

/* Whether the tiles take a product whose slots 0 and 1 are of that type. */
static bool takes(const cek_op *op, cek_dtype type)
{
    const cek__slot *slots = op->request.slots;
    if (!op->dev->traits.vector_width)
        return false;
    /* What lies between rows would be widened too. */
    return type == CEK_F32 || ((type == CEK_F16 || type == CEK_BF16) && slots[0].dense && slots[1].dense);
}

cek__gpu_place cek__tile_as_f32(cek_op *op, uint32_t slot, cek_dtype type)
{
    const cek__gpu_place from = { slot, 0 };
    if (type == CEK_F32)
        return from;
    char defines[CEK__GPU_DEFINES];
    const uint64_t elements = op->request.slots[slot].bytes / op->request.slots[slot].element;
    const cek_k_strided a = { .count = elements };
    const cek__gpu_place buffers[] = { from, cek__gpu_workspace(op, elements * sizeof(float)) };
    cek__gpu_defines(op->dev, defines, "#define X_TYPE %s\n#define Y_TYPE f32\n#define FLAT 1\n", cek__gpu_type(type));
    cek__gpu_step_fill(cek__gpu_step_add(op, "copy.cl", defines, "copy_convert", cek__gpu_items(op->dev, elements)),
                       buffers, 2, &a, sizeof a);
    return buffers[1];
}

/* --- matrices -------------------------------------------------------------------------------- */

/* An operand as rows (of A) or columns (of B) by k. */
typedef struct factor {
    cek__gpu_place place;
    uint64_t row, k, batch, outer; /* strides */
} factor;

/* The matrices of both levels of a batch. */
typedef struct batches {
    uint64_t outer, inner;
} batches;

/* Packs `count` rows or columns in groups of `side`; *f becomes the packed form. Returns the elements from group to
 * group. */
static uint64_t factor_pack(cek_op *op, const char *kernel, factor *f, uint64_t count, uint64_t k, batches of,
                            uint32_t side)
{
    const uint64_t groups = cek__ceil_div(count, side), inner = f->batch ? of.inner : 1;
    const uint64_t matrices = inner * (f->outer ? of.outer : 1);
    const cek_k_pack a = { .rows = count,
                           .k = k,
                           .row = f->row,
                           .column = f->k,
                           .piece = PIECE,
                           .inner = inner,
                           .from_batch = f->batch,
                           .from_outer = f->outer };
    cek__gpu_place to = cek__gpu_workspace(op, matrices * groups * side * k * sizeof(float));
    const cek__gpu_place buffers[] = { f->place, to };
    cek__gpu_step_fill(tile_step(op, kernel, groups, cek__ceil_div(k, PIECE), matrices), buffers, 2, &a, sizeof a);
    const uint64_t packed = groups * side * k;
    *f = (factor){ to, 1, side, f->batch ? packed : 0, f->outer ? inner * packed : 0 };
    return side * k;
}

/* How k is cut: long sums for the cache's sake, and any where there are too few tiles. */
static void split_choose(cek_k_tile *a, uint64_t tiles)
{
    a->splits = a->k > SPLIT_ABOVE ? cek__ceil_div(a->k, SPLIT_K) : 1;
    while (tiles * a->splits < SUMS_ENOUGH && a->k / a->splits >= 2 * PIECE)
        a->splits *= 2;
    a->split_k = cek__ceil_div(a->k, a->splits);
    a->splits = cek__ceil_div(a->k, a->split_k);
}

static uint64_t at_least_one(uint64_t count)
{
    return count ? count : 1;
}

/* Of `count` tiles or panels, those of one work-item: `most`, or fewer where that leaves too few work-items, of which
 * there are `others` for each share. */
static uint64_t share_of(uint64_t count, uint64_t most, uint64_t others)
{
    uint64_t share = at_least_one(most < count ? most : count);
    while (share > 1 && cek__ceil_div(count, share) * others < ITEMS_ENOUGH)
        share = (share + 1) / 2;
    return share;
}

/* Long sums share a panel of B, which is then read once; short ones are as much about writing C: along its rows. */
static void blocks_choose(cek_k_tile *a, uint64_t tiles, uint64_t panels, uint64_t others, cek__tile_size size)
{
    const uint64_t tile_bytes = a->split_k * size.rows * sizeof(float);
    const uint64_t panel_bytes = a->split_k * size.columns * sizeof(float);
    a->panels = 1;
    if (a->split_k <= SHORT_K)
        a->panels = share_of(panels, B_BLOCK_BYTES / panel_bytes, tiles * others);
    a->row_tiles = share_of(tiles, A_BLOCK_BYTES / tile_bytes, cek__ceil_div(panels, a->panels) * others);
}

static void product_add(cek_op *op, cek_k_tile *a, factor A, factor B, batches of, cek__gpu_place *buffers)
{
    const cek__tile_size size = cek__tile_of(op->dev);
    const uint64_t batch = of.outer * of.inner;
    const uint64_t tiles = cek__ceil_div(a->m, size.rows), panels = cek__ceil_div(a->n, size.columns);
    bool direct = A.k == 1 && panels <= FEW_PANELS && A.row % CACHE_STRIDE;
    if (!direct)
        factor_pack(op, "tile_pack_a", &A, a->m, a->k, of, size.rows);
    const bool in_place = B.row == 1 && a->n >= size.columns && tiles <= FEW_TILES;
    a->b_panel = in_place ? size.columns : factor_pack(op, "tile_pack_b", &B, a->n, a->k, of, size.columns);
    a->back = in_place ? panels * size.columns - a->n : 0;
    a->a_row = A.row, a->a_batch = A.batch, a->b_k = B.k, a->b_batch = B.batch;
    a->inner = of.inner, a->a_outer = A.outer, a->b_outer = B.outer;
    a->stream = a->type == CEK_F32 && !a->accumulate && batch * a->m * a->n * sizeof(float) > STREAM_BYTES;
    split_choose(a, tiles * panels * batch);
    blocks_choose(a, tiles, panels, batch * a->splits, size);
    buffers[0] = A.place;
    buffers[1] = B.place;
    buffers[5] = (cek__gpu_place){ CEK__GPU_NOTHING, 0 };
    if (a->splits > 1)
        buffers[5] = cek__gpu_workspace(op,
                                        batch * a->splits * tiles * panels * size.rows * size.columns * sizeof(float));
    cek__gpu_step_fill(tile_step(op, direct ? "tile_product_direct" : "tile_product", cek__ceil_div(panels, a->panels),
                                 cek__ceil_div(tiles, a->row_tiles), batch * a->splits),
                       buffers, 6, a, sizeof *a);
    if (a->splits > 1)
        cek__gpu_step_fill(tile_step(op, "tile_finish", panels, tiles, batch), buffers, 6, a, sizeof *a);
    snprintf(op->info.algorithm, sizeof op->info.algorithm, "register tiles of %ux%u", size.rows, size.columns);
}

bool cek__gpu_lower_gemm_tiles(cek_op *op)
{
    const cek_gemm_desc *desc = &op->request.desc.gemm;
    if (!takes(op, desc->a_type) || !desc->k)
        return false;
    const bool ta = desc->trans & CEK_GEMM_TRANS_A, tb = desc->trans & CEK_GEMM_TRANS_B;
    uint64_t lda = (uint64_t)desc->lda, ldb = (uint64_t)desc->ldb;
    factor A = { cek__tile_as_f32(op, CEK_GEMM_A, desc->a_type), ta ? 1 : lda, ta ? lda : 1, (uint64_t)desc->stride_a,
                 (uint64_t)desc->outer_a };
    factor B = { cek__tile_as_f32(op, CEK_GEMM_B, desc->b_type), tb ? ldb : 1, tb ? 1 : ldb, (uint64_t)desc->stride_b,
                 (uint64_t)desc->outer_b };
    cek_k_tile a = { .m = desc->m,
                     .n = desc->n,
                     .k = desc->k,
                     .c_row = (uint64_t)desc->ldc,
                     .c_column = 1,
                     .c_batch = (uint64_t)desc->stride_c,
                     .c_outer = (uint64_t)desc->outer_c,
                     .type = desc->c_type,
                     .bias = cek__request_given(&op->request, CEK_GEMM_BIAS),
                     .accumulate = cek__request_accumulates(&op->request, CEK_GEMM_C),
                     .activation = op->request.epilogue.activation,
                     .act_grad = op->request.epilogue.act_grad };
    cek__gpu_place buffers[6] = {
        A.place, B.place, { CEK_GEMM_C, 0 }, cek__gpu_slot(op, CEK_GEMM_BIAS), cek__gpu_slot(op, CEK_GEMM_ACT_REF)
    };
    /* A large B whose rows run along k (the weights of a linear layer) takes A's place, where it is read as it lies: C
     * comes out transposed. */
    if (tb && 2 * desc->m <= desc->n) {
        factor swap = A;
        A = B, B = swap;
        a.m = desc->n, a.n = desc->m;
        a.c_row = 1, a.c_column = (uint64_t)desc->ldc;
        a.bias_rows = 1;
    }
    product_add(op, &a, A, B, (batches){ desc->outer, desc->batch }, buffers);
    return true;
}

/* --- convolutions ---------------------------------------------------------------------------- */

/* Whether a tap along an axis sees a pixel anywhere. */
static bool tap_sees(const cek_k_window *w, uint32_t axis, uint32_t tap)
{
    const uint64_t shift = (uint64_t)tap * w->dilation[axis], pad = w->pad[axis], stride = w->stride[axis];
    const uint64_t first = shift < pad ? cek__ceil_div(pad - shift, stride) : 0; /* window that reaches the image, */
    return first < w->out[axis] && first * stride + shift < pad + w->in[axis];   /* and does not lie behind it */
}

/* Leaves the taps that see something in the window: of images smaller than it, padding is most of what others meet. */
static cek_k_taps taps_crop(cek_k_window *w)
{
    cek_k_taps taps;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t first = 0, end = w->taps[i];
        /* no further than the image begins, so that there is no padding below zero */
        while (first + 1 < end && !tap_sees(w, i, first) && (first + 1) * w->dilation[i] <= w->pad[i])
            first++;
        while (end > first + 1 && !tap_sees(w, i, end - 1))
            end--;
        taps.all[i] = w->taps[i], taps.first[i] = first, taps.seen[i] = end - first;
        w->taps[i] = end - first;
        w->pad[i] -= first * w->dilation[i];
    }
    return taps;
}

/* Forward, and the gradient of the input: both read pixels through windows and multiply them by weights, which are
 * packed, or (direct) as a panel wants them where they lie; then zeros alone are made, which the padding reads. */
static void conv_add(cek_op *op, bool data)
{
    enum { WHOLE, HALF, GATHER, DIRECT, WAYS };
    static const char *const kernels[2][WAYS] = {
        { "tile_conv_forward", "tile_conv_forward_half", "tile_conv_forward_gather", NULL },
        { "tile_conv_data", "tile_conv_data_half", "tile_conv_data_gather", "tile_conv_data_direct" },
    };
    const cek__gpu_place nothing = { CEK__GPU_NOTHING, 0 };
    const cek_conv_desc *desc = &op->request.desc.conv;
    const cek__tile_size size = cek__tile_of(op->dev);
    cek_k_conv_tile a = { .columns = data ? desc->in_channels : desc->out_channels,
                          .depth = data ? desc->out_channels : desc->in_channels,
                          .type = desc->x_type,
                          .accumulate = data && cek__request_accumulates(&op->request, CEK_CONV_BACKWARD_DATA_DX),
                          .bias = !data && cek__request_given(&op->request, CEK_CONV_FORWARD_BIAS),
                          .activation = op->request.epilogue.activation,
                          .act_grad = op->request.epilogue.act_grad };
    a.window = cek__gpu_window(desc->spatial, desc->in, op->request.out, desc->kernel, desc->stride, desc->dilation,
                               desc->pad_lo);
    a.pixels = desc->batch * cek__gpu_positions(data ? a.window.in : a.window.out);
    a.strided = a.window.stride[0] > 1 || a.window.stride[1] > 1;
    a.taps = taps_crop(&a.window);
    const uint64_t taps = cek__gpu_positions(a.window.taps), panels = cek__ceil_div(a.columns, size.columns);
    const uint64_t tiles = cek__ceil_div(a.pixels, size.rows);
    const bool gather = a.depth < GATHER_DEPTH && taps * a.depth <= CEK_K_GATHER_VALUES;
    a.row_tiles = share_of(tiles, CONV_TILES, 1);
    a.panels = share_of(panels, panels, cek__ceil_div(tiles, a.row_tiles));

    const cek__gpu_place weights = cek__tile_as_f32(op, data ? CEK_CONV_BACKWARD_DATA_W : CEK_CONV_FORWARD_W,
                                                    desc->w_type);
    const bool direct = data && a.columns % size.columns == 0 && tiles <= DIRECT_TILES && !gather;
    const uint64_t packed_rows = direct ? 0 : panels * taps * size.columns;
    const cek__gpu_place packed = cek__gpu_workspace(op, (packed_rows + 1) * a.depth * sizeof(float));
    const cek__gpu_place packing[] = { weights, packed };
    const cek_k_pack_weights pack = { .out = desc->out_channels,
                                      .in = desc->in_channels,
                                      .zeros = a.depth,
                                      .data = data,
                                      .taps = a.taps,
                                      .nothing = direct };
    const uint64_t packers = data ? cek__ceil_div(a.depth, CEK_K_PACK_ROWS) : panels;
    cek__gpu_step_fill(tile_step(op, "tile_pack_weights", direct ? 1 : packers, direct ? 1 : taps, 1), packing, 2,
                       &pack, sizeof pack);

    const cek__gpu_place buffers[] = { cek__tile_as_f32(op, data ? CEK_CONV_BACKWARD_DATA_DY : CEK_CONV_FORWARD_X,
                                                        desc->x_type),
                                       direct ? weights : packed,
                                       { data ? CEK_CONV_BACKWARD_DATA_DX : CEK_CONV_FORWARD_Y, 0 },
                                       data ? nothing : cek__gpu_slot(op, CEK_CONV_FORWARD_BIAS),
                                       data ? cek__gpu_slot(op, CEK_CONV_BACKWARD_DATA_ACT_REF) : nothing,
                                       packed };
    const int way = direct ? DIRECT : gather ? GATHER : a.columns <= size.width ? HALF : WHOLE;
    cek__gpu_step_fill(tile_step(op, kernels[data][way], cek__ceil_div(tiles, a.row_tiles),
                                 cek__ceil_div(panels, a.panels), 1),
                       buffers, direct ? 6 : 5, &a, sizeof a);
}

static void weights_add(cek_op *op)
{
    const cek_conv_desc *desc = &op->request.desc.conv;
    const cek__tile_size size = cek__tile_of(op->dev);
    cek_k_weights_tile a = { .batch = desc->batch,
                             .in = desc->in_channels,
                             .out = desc->out_channels,
                             .accumulate = cek__request_accumulates(&op->request, CEK_CONV_BACKWARD_WEIGHTS_DW) };
    a.window = cek__gpu_window(desc->spatial, desc->in, op->request.out, desc->kernel, desc->stride, desc->dilation,
                               desc->pad_lo);
    const bool gather = a.in < size.rows;
    a.taps = (cek_k_taps){ .all = { a.window.taps[0], a.window.taps[1] } };
    if (!gather)
        a.taps = taps_crop(&a.window);
    const uint64_t taps = cek__gpu_positions(a.window.taps), pixels = desc->batch * cek__gpu_positions(a.window.out);
    const uint64_t panels = cek__ceil_div(a.out, size.columns);
    const uint64_t tap_groups = gather ? 1 : taps, row_tiles = cek__ceil_div(taps / tap_groups * a.in, size.rows);
    const uint64_t sums = tap_groups * row_tiles * panels * size.rows * size.columns * sizeof(float);
    a.gather = gather;
    factor dy = { cek__tile_as_f32(op, CEK_CONV_BACKWARD_WEIGHTS_DY, desc->y_type), 1, a.out, 0, 0 };
    /* of one panel, which is the first: 0 says that nothing lies behind the last pixel */
    const bool short_rows = gather && a.out <= size.width;
    a.dy_panel = short_rows ? 0 : size.columns;
    if (a.out % size.columns && !short_rows)
        a.dy_panel = factor_pack(op, "tile_pack_b", &dy, a.out, pixels, (batches){ 1, 1 }, size.columns);
    a.dy_pixel = dy.k;
    a.slices = desc->batch < SLICES ? desc->batch : SLICES;
    while (a.slices > 2 && a.slices * sums > SLICES_BYTES)
        a.slices /= 2;
    while (a.slices > 1 && pixels < a.slices * BAND_PIXELS)
        a.slices /= 2;
    /* Work-items of one slice read the same pixels, which their caches hold if they are one band. */
    a.panels = pixels > a.slices * BAND_PIXELS ? panels : share_of(panels, panels, tap_groups * a.slices);
    a.images = (uint32_t)at_least_one(BAND_PIXELS / cek__gpu_positions(a.window.out));
    a.band = (uint32_t)at_least_one(BAND_PIXELS / a.window.out[1]);

    const cek__gpu_place x = cek__tile_as_f32(op, CEK_CONV_BACKWARD_WEIGHTS_X, desc->x_type);
    const cek__gpu_place dw = { CEK_CONV_BACKWARD_WEIGHTS_DW, 0 };
    const uint64_t all = gather ? 1 : (uint64_t)a.taps.all[0] * a.taps.all[1];
    const uint64_t panel_groups = cek__ceil_div(panels, a.panels);
    if (!gather && a.slices == 1 && a.images >= a.batch && a.band >= a.window.out[0]) {
        const cek__gpu_place buffers[] = { x, dy.place, dw };
        cek__gpu_step_fill(tile_step(op, "tile_weights_whole", all, 1, panel_groups), buffers, 3, &a, sizeof a);
        return;
    }
    const cek__gpu_place partial = cek__gpu_workspace(op, a.slices * sums);
    const cek__gpu_place buffers[] = { x, dy.place, partial }, finish[] = { partial, dw };
    cek__gpu_step_fill(tile_step(op, gather ? "tile_weights_gather" : "tile_weights", tap_groups, a.slices,
                                 panel_groups),
                       buffers, 3, &a, sizeof a);
    cek__gpu_step_fill(tile_step(op, "tile_weights_finish", panels, all, cek__ceil_div(row_tiles, CEK_K_FINISH_TILES)),
                       finish, 2, &a, sizeof a);
}

bool cek__gpu_lower_conv_tiles(cek_op *op)
{
    const cek_conv_desc *desc = &op->request.desc.conv;
    const bool weights = desc->op.kind == CEK_OP_CONV_BACKWARD_WEIGHTS;
    if (!takes(op, desc->x_type) || desc->groups != 1 || desc->spatial > 2)
        return false;
    if (cek__gpu_lower_conv_winograd(op))
        return true;
    if (weights)
        weights_add(op);
    else
        conv_add(op, desc->op.kind == CEK_OP_CONV_BACKWARD_DATA);
    const cek__tile_size size = cek__tile_of(op->dev);
    snprintf(op->info.algorithm, sizeof op->info.algorithm, "implicit gemm, register tiles of %ux%u", size.rows,
             size.columns);
    return true;
}
