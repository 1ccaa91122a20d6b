/* SPDX-License-Identifier: MIT
 *
 * pool.c - maximum and average pooling. The reserve of a maximum is, for each output element, the
 * number of the tap that won, as uint32.
 */
#include "backends/reference/element.h"
#include "backends/reference/reference.h"
#include "backends/reference/window.h"

static window window_of(const cek_op *op)
{
    const cek_pool_desc *desc = &op->request.desc.pool;
    return window_make(desc->spatial, desc->in, op->request.out, desc->kernel, desc->stride, NULL, desc->pad_lo);
}

/* What an average divides by: all taps, or those inside the image. */
static double divisor(const cek_pool_desc *desc, const window *w, uint64_t position)
{
    uint64_t taps = positions(w->kernel), inside = 0, from;
    if (desc->flags & CEK_POOL_COUNT_PAD)
        return (double)taps;
    for (uint64_t tap = 0; tap < taps; tap++)
        inside += window_reads(w, position, tap, &from);
    return (double)inside;
}

void cek__reference_pool_forward(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_pool_desc *desc = &op->request.desc.pool;
    const window w = window_of(op);
    uint64_t outs = positions(w.out), ins = positions(w.in), taps = positions(w.kernel), from;
    uint32_t *winners = at[CEK_POOL_FORWARD_RESERVE];
    (void)queue, (void)workspace;
    for (uint64_t i = 0; i < desc->batch * outs * desc->channels; i++) {
        uint64_t channel = i % desc->channels, position = i / desc->channels % outs, image = i / desc->channels / outs;
        double sum = 0, best = 0;
        uint64_t winner = taps; /* none yet */
        for (uint64_t tap = 0; tap < taps; tap++) {
            if (!window_reads(&w, position, tap, &from))
                continue;
            double x = load(at[CEK_POOL_FORWARD_X], desc->type, (image * ins + from) * desc->channels + channel);
            sum += x;
            if (winner == taps || x > best || (isnan(x) && !isnan(best))) {
                best = x;
                winner = tap;
            }
        }
        store(at[CEK_POOL_FORWARD_Y], desc->type, i,
              desc->mode == CEK_POOL_MAX ? best : sum / divisor(desc, &w, position));
        if (winners)
            winners[i] = (uint32_t)winner;
    }
}

void cek__reference_pool_backward(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_pool_desc *desc = &op->request.desc.pool;
    const window w = window_of(op);
    uint64_t outs = positions(w.out), ins = positions(w.in), taps = positions(w.kernel), from;
    const uint32_t *winners = at[CEK_POOL_BACKWARD_RESERVE];
    (void)queue, (void)workspace;
    for (uint64_t i = 0; i < desc->batch * ins * desc->channels; i++) {
        uint64_t channel = i % desc->channels, position = i / desc->channels % ins, image = i / desc->channels / ins;
        double sum = 0;
        for (uint64_t tap = 0; tap < taps; tap++) {
            if (!window_read_by(&w, position, tap, &from))
                continue;
            uint64_t out = (image * outs + from) * desc->channels + channel;
            double dy = load(at[CEK_POOL_BACKWARD_DY], desc->type, out);
            if (desc->mode == CEK_POOL_AVERAGE)
                sum += dy / divisor(desc, &w, from);
            else if (winners[out] == tap)
                sum += dy;
        }
        store(at[CEK_POOL_BACKWARD_DX], desc->type, i, sum);
    }
}

void cek__reference_pool_prepare(cek_op *op)
{
    const cek_pool_desc *desc = &op->request.desc.pool;
    const window w = window_of(op);
    if (desc->op.kind == CEK_OP_POOL_FORWARD && cek__request_given(&op->request, CEK_POOL_FORWARD_RESERVE))
        op->info.reserve_bytes = desc->batch * positions(w.out) * desc->channels * sizeof(uint32_t);
}
