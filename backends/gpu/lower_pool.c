/* SPDX-License-Identifier: MIT
 *
 * lower_pool.c - pooling: how many channels and results a work-item has, and which images a launch.
 *
 * Owns the ways to pool (kernels/gpu/pool.cl), of which all give the same bits. Which is the fastest is not known here:
 * tuner.c tries them, and the rule is for what is not tried.
 */
#include <stdio.h>

#include "backends/gpu/lower.h"

#define FOUR 4                   /* channels of 16 bytes in f32 */
#define ITEMS_ENOUGH (256 * 256) /* work-items that fill any device of today */

/* What a work-item has. Results that share a window's places or a place's windows read them once: forward 9 loads of 12
 * in a 3 x 3 window with stride 2, backward 4 of 9, and 1 of 4 in one of 2 x 2; there are four times fewer work-items.
 * Single channels are for numbers of them that no four divides, or few of all. kernels/images.sh has the same. */
typedef struct way {
    uint32_t channels;
    bool many; /* results */
} way;
static const way ways[] = { { FOUR, false }, { FOUR, true }, { 1, false }, { 1, true } };
enum { WAYS = sizeof ways / sizeof *ways };
_Static_assert((int)WAYS <= (int)CEK__GPU_TILES, "all of them can be tried");

static bool is_forward(const cek_op *op)
{
    return op->request.desc.op.kind == CEK_OP_POOL_FORWARD;
}

static uint32_t each_of(const cek_op *op, way w)
{
    return !w.many ? 1 : is_forward(op) ? CEK_K_POOL_ROW : CEK_K_POOL_SQUARE;
}

/* Fours need all images of all operands at multiples of 16 bytes; neighbours need two dimensions of them, and windows
 * that no gap is between. */
static bool way_fits(const cek_op *op, way w)
{
    const cek_pool_desc *desc = &op->request.desc.pool;
    const uint64_t *out = op->request.out;
    if (w.channels == FOUR && (desc->channels % FOUR || op->request.align < 16))
        return false;
    return !w.many || (desc->spatial == 2 && desc->stride[0] <= desc->kernel[0] && desc->stride[1] <= desc->kernel[1] &&
                       (is_forward(op) ? out[1] > 1 : desc->in[0] > 1 && desc->in[1] > 1));
}

/* Positions of the result in blocks of a work-item's, and channels likewise. Squares begin where windows do that have
 * an even stride. */
static void blocks_of(const cek_op *op, way w, const cek_k_window *window, uint64_t blocks[4])
{
    const uint64_t each = each_of(op, w);
    const cek_u32 *positions = is_forward(op) ? window->out : window->in;
    for (uint32_t d = 0; d < 3; d++) {
        const bool shared = d == 1 || (d == 0 && !is_forward(op));
        const uint64_t before = is_forward(op) ? 0 : window->pad[d] % each;
        blocks[d] = shared ? (positions[d] + before + each - 1) / each : positions[d];
    }
    blocks[3] = (op->request.desc.pool.channels + w.channels - 1) / w.channels;
}

static uint64_t items_of(const uint64_t blocks[4])
{
    return blocks[0] * blocks[1] * blocks[2] * blocks[3];
}

/* Fours where there are any, and many results where enough work-items are left. */
static uint32_t way_by_rule(const cek_op *op, const cek_k_window *window)
{
    const uint32_t one = way_fits(op, ways[0]) ? 0 : 2, many = one + 1;
    uint64_t blocks[4];
    blocks_of(op, ways[many], window, blocks);
    const double items = (double)items_of(blocks) * (double)op->request.desc.pool.batch;
    return way_fits(op, ways[many]) && items >= ITEMS_ENOUGH ? many : one;
}

/* The one that is tried, then the user's, where it is one for this geometry. */
static cek_status way_choose(const cek_op *op, const cek_k_window *window, uint32_t *taken)
{
    uint64_t number = op->tile;
    cek_status st = CEK_OK;
    if (!number)
        st = cek__host_option_number(&op->dev->instance->host, op->dev->driver->pools_option, 1, WAYS, &number);
    *taken = number && number <= WAYS && way_fits(op, ways[number - 1]) ? (uint32_t)number - 1
                                                                        : way_by_rule(op, window);
    return st;
}

uint32_t cek__gpu_pool_ways(const cek_op *op, uint32_t found[CEK__GPU_TILES])
{
    const char *asked = cek__host_option(&op->dev->instance->host, op->dev->driver->pools_option);
    uint32_t count = 0;
    for (uint32_t i = 0; i < WAYS && !op->dev->traits.vector_width && !(asked && *asked); i++)
        if (way_fits(op, ways[i]))
            found[count++] = i + 1;
    return count > 1 ? count : 0;
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

/* The images of a launch: as many as 32 bits number the work-items of, and a watchdog allows, which counts taps that
 * are read. One alone is not divided. */
static uint64_t images_of(const cek_op *op, const cek_k_pool *a, uint64_t items)
{
    const uint64_t counted = INT32_MAX / items, work = op->dev->traits.launch_work;
    const double image = (double)a->image_out * (double)cek__gpu_positions(a->window.taps);
    if (!work || (double)counted * image <= (double)work)
        return counted;
    return image < (double)work ? (uint64_t)((double)work / image) : 1;
}

/* The images of one launch at most `most`, and all of them in as many launches as that takes. */
static void launches_add(cek_op *op, const char *defines, cek_k_pool *a, uint64_t items, uint64_t most)
{
    const cek_pool_desc *desc = &op->request.desc.pool;
    const bool forward = is_forward(op);
    const uint64_t bytes = cek__type_bytes(desc->type), from = forward ? a->image_in : a->image_out,
                   to = forward ? a->image_out : a->image_in;
    const uint32_t reserve = forward ? CEK_POOL_FORWARD_RESERVE : CEK_POOL_BACKWARD_RESERVE;
    const uint64_t piece = op->dev->traits.vector_width ? CEK_K_POOL_PIECE : 1;
    for (uint64_t first = 0; first < desc->batch; first += most) {
        const uint64_t images = desc->batch - first < most ? desc->batch - first : most;
        const cek__gpu_place buffers[] = {
            { forward ? CEK_POOL_FORWARD_X : CEK_POOL_BACKWARD_DY, first * from * bytes },
            { forward ? CEK_POOL_FORWARD_Y : CEK_POOL_BACKWARD_DX, first * to * bytes },
            { cek__gpu_slot(op, reserve).slot, a->reserve ? first * a->image_out * sizeof(uint32_t) : 0 },
        };
        a->count = (cek_u32)(images * items);
        cek__gpu_step_fill(cek__gpu_step_add(op, "pool.cl", defines, forward ? "pool_forward" : "pool_backward",
                                             (a->count + piece - 1) / piece),
                           buffers, 3, a, sizeof *a);
    }
}

/* In the order of kernels/images.sh, whose machine code is found by this text. */
static void defines_make(const cek_op *op, way w, char defines[CEK__GPU_DEFINES])
{
    const cek_pool_desc *desc = &op->request.desc.pool;
    cek__gpu_defines(op->dev, defines, "#define TYPE %s\n#define SPATIAL %u\n%s#define CHANNELS %u\n%s",
                     cek__gpu_type(desc->type), desc->spatial < 3 ? 2 : 3,
                     desc->mode == CEK_POOL_AVERAGE ? "#define AVERAGE 1\n" : "", w.channels,
                     w.many ? "#define MANY 1\n" : "");
}

cek_status cek__gpu_lower_pool(cek_op *op)
{
    const cek_pool_desc *desc = &op->request.desc.pool;
    const bool forward = is_forward(op), cpu = op->dev->traits.vector_width;
    cek_k_pool a = { .window = cek__gpu_window(desc->spatial, desc->in, op->request.out, desc->kernel, desc->stride,
                                               NULL, desc->pad_lo),
                     .channels = (cek_u32)desc->channels,
                     .count_pad = desc->flags & CEK_POOL_COUNT_PAD };
    uint64_t blocks[4];
    uint32_t taken = 0;
    char defines[CEK__GPU_DEFINES];
    a.reserve = cek__request_given(&op->request, forward ? CEK_POOL_FORWARD_RESERVE : CEK_POOL_BACKWARD_RESERVE);
    a.image_in = cek__gpu_positions(a.window.in) * desc->channels;
    a.image_out = cek__gpu_positions(a.window.out) * desc->channels;
    cek_status st = cpu ? CEK_OK : way_choose(op, &a.window, &taken);
    if (st)
        return st;
    /* a processor's work-item has the channels of a position, in vectors: shorter ones where there are few */
    const way w = cpu ? (way){ cek__gpu_power(desc->channels, cek__gpu_lanes(op->dev)), false } : ways[taken];
    blocks_of(op, w, &a.window, blocks);
    if (a.image_in > INT32_MAX || a.image_out > INT32_MAX || !cek__gpu_shape(4, blocks, &a.shape))
        return cek__host_fail(&op->dev->instance->host, CEK_UNSUPPORTED, "pool: an image has more than 2^31 elements");
    for (uint32_t d = 0; d < 3; d++) { /* each by itself: no number is taken apart by all */
        cek_k_shape one;
        const uint64_t stride = a.window.stride[d];
        (void)cek__gpu_shape(1, &stride, &one);
        a.stride.size[d] = one.size[0], a.stride.multiplier[d] = one.multiplier[0], a.stride.shift[d] = one.shift[0];
    }
    if (forward && a.reserve)
        op->info.reserve_bytes = desc->batch * a.image_out * sizeof(uint32_t);
    defines_make(op, w, defines);
    launches_add(op, defines, &a, items_of(blocks), images_of(op, &a, items_of(blocks)));
    if (!cpu) {
        snprintf(op->info.algorithm, sizeof op->info.algorithm, "%u channel%s of %u result%s a work-item", w.channels,
                 w.channels > 1 ? "s" : "", w.many ? 4 : 1, w.many ? "s" : "");
        op->tile = taken + 1;
    }
    return op->failure;
}
