/* SPDX-License-Identifier: MIT
 *
 * cost.c - what commands take: floating-point operations and bytes of one run of an operation, from its descriptor
 * alone, and the time of both at a device's speed.
 *
 * Bytes are those of the operands, each read or written once, and both where it is added to or
 * updated in place: what an ideal kernel moves. Counts per element are those of plugin.h's
 * formulas, an exponential or a root being one.
 */
#include "backends/common/extent.h"
#include "backends/common/validate.h"
#include "backends/sim/sim.h"

enum {
    SOFTMAX_FLOPS = 5,       /* maximum, difference, exponential, sum, quotient */
    CROSS_ENTROPY_FLOPS = 7, /* softmax; difference to the label, scale */
    SQUARED_ERROR_FLOPS = 5, /* difference, square, sum; times two, scale */
    DROPOUT_FLOPS = 1,
    RANDOM_FLOPS = 2,
    SGD_FLOPS = 2,      /* rate times gradient, difference */
    MOMENTUM_FLOPS = 4, /* and momentum times mean, sum */
    /* scale, two means of three each, two corrections, root, sum, quotient, rate, difference */
    ADAM_FLOPS = 13,
    RMSPROP_FLOPS = 8, /* scale, mean of three, root, quotient, rate, difference */
    ADAGRAD_FLOPS = 7
};

/* ---- time ---- */

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Nanoseconds for `amount` at `rate` a second, rounded up. */
static uint64_t span(uint64_t amount, uint64_t rate)
{
    __extension__ unsigned __int128 ns = ((unsigned __int128)amount * 1000000000 + rate - 1) / rate;
    return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

uint64_t cek__sim_work_ns(const cek__sim_speed *speed, uint64_t flops, uint64_t bytes)
{
    uint64_t computing = span(flops, speed->flops), moving = span(bytes, speed->bandwidth);
    return add(speed->launch_ns, computing > moving ? computing : moving);
}

uint64_t cek__sim_transfer_ns(const cek__sim_speed *speed, uint64_t bytes)
{
    return bytes ? add(speed->latency_ns, span(bytes, speed->link)) : 0;
}

uint64_t cek__sim_copy_ns(const cek_dev *dev, cek_ref src, uint64_t bytes)
{
    const cek__sim_speed *here = &cek__sim_state(dev)->speed;
    if (!bytes)
        return 0;
    if (src.mem->dev->index == dev->index)
        return cek__sim_work_ns(here, 0, add(bytes, bytes));
    /* The slower of the two links is what the bytes wait for. */
    uint64_t to = cek__sim_transfer_ns(here, bytes),
             from = cek__sim_transfer_ns(&cek__sim_state(src.mem->dev)->speed, bytes);
    return to > from ? to : from;
}

/* ---- operations ---- */

static uint64_t product(uint64_t a, uint64_t b)
{
    uint64_t to;
    return cek__mul(a, b, &to) ? to : UINT64_MAX;
}

static uint64_t all(uint64_t factor, const uint64_t *sizes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        factor = product(factor, sizes[i]);
    return factor;
}

static uint64_t conv_flops(const cek__request *request)
{
    const cek_conv_desc *d = &request->desc.conv;
    uint64_t sums = all(product(d->batch, d->out_channels), request->out, d->spatial);
    return product(2, product(sums, all(d->in_channels / d->groups, d->kernel, d->spatial)));
}

static uint64_t pool_flops(const cek__request *request)
{
    const cek_pool_desc *d = &request->desc.pool;
    return product(all(product(d->batch, d->channels), request->out, d->spatial), all(1, d->kernel, d->spatial));
}

static uint64_t optimizer_flops(const cek_optimizer_desc *d)
{
    switch (d->algorithm) {
    case CEK_OPTIMIZER_ADAM: return product(ADAM_FLOPS, d->count);
    case CEK_OPTIMIZER_RMSPROP: return product(RMSPROP_FLOPS, d->count);
    case CEK_OPTIMIZER_ADAGRAD: return product(ADAGRAD_FLOPS, d->count);
    default: return product(d->momentum > 0 ? MOMENTUM_FLOPS : SGD_FLOPS, d->count);
    }
}

static uint64_t request_flops(const cek__request *request)
{
    switch (request->desc.op.kind) {
    case CEK_OP_GEMM: {
        const cek_gemm_desc *d = &request->desc.gemm;
        return product(2, all(d->batch, (uint64_t[]){ d->outer, d->m, d->n, d->k }, 4));
    }
    case CEK_OP_CONV_FORWARD:
    case CEK_OP_CONV_BACKWARD_DATA:
    case CEK_OP_CONV_BACKWARD_WEIGHTS: return conv_flops(request);
    case CEK_OP_POOL_FORWARD:
    case CEK_OP_POOL_BACKWARD: return pool_flops(request);
    case CEK_OP_POINTWISE: {
        const cek_pointwise_desc *d = &request->desc.pointwise;
        return all(d->instruction_count, d->shape, d->rank);
    }
    case CEK_OP_REDUCE: return all(1, request->desc.reduce.shape, request->desc.reduce.rank);
    case CEK_OP_ARG: return all(1, request->desc.arg.shape, request->desc.arg.rank);
    case CEK_OP_SOFTMAX:
        return product(SOFTMAX_FLOPS, product(request->desc.softmax.rows, request->desc.softmax.columns));
    case CEK_OP_CROSS_ENTROPY:
        return product(CROSS_ENTROPY_FLOPS,
                       product(request->desc.cross_entropy.rows, request->desc.cross_entropy.classes));
    case CEK_OP_SQUARED_ERROR:
        return product(SQUARED_ERROR_FLOPS,
                       product(request->desc.squared_error.rows, request->desc.squared_error.columns));
    case CEK_OP_DROPOUT:
        return product(DROPOUT_FLOPS, product(request->desc.dropout.rows, request->desc.dropout.columns));
    case CEK_OP_RANDOM: return product(RANDOM_FLOPS, product(request->desc.random.rows, request->desc.random.columns));
    case CEK_OP_OPTIMIZER: return optimizer_flops(&request->desc.optimizer);
    case CEK_OP_SCATTER_ADD: {
        const cek_gather_desc *d = &request->desc.gather;
        return all(d->batch, (uint64_t[]){ d->count, d->columns }, 2);
    }
    default: return 0; /* copy and gather move, and compute nothing */
    }
}

/* Slots that are updated in place: a bit for each inout of the only kind that has some. */
#define READS_in 0
#define READS_out 0
#define READS_inout 1
#define UPDATED(KIND, SLOT, NUMBER, DIRECTION, ...) | (READS_##DIRECTION ? CEK_BIT(NUMBER) : 0)

static uint64_t request_bytes(const cek__request *request)
{
    const uint64_t updated = request->desc.op.kind == CEK_OP_OPTIMIZER ? 0 CEK_OPTIMIZER_OPERANDS(UPDATED) : 0;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < request->slot_count; i++) {
        const cek__slot *slot = &request->slots[i];
        bool twice = slot->accumulated || updated >> i & 1;
        if (slot->given && !cek__add(sum, product(slot->bytes, twice ? 2 : 1), &sum))
            return UINT64_MAX;
    }
    return sum;
}

/* Sizes that only the inner plugin knows. */
static void private_sizes(cek__request *request, uint64_t packed_bytes, uint64_t reserve_bytes)
{
    switch (request->desc.op.kind) {
    case CEK_OP_GEMM: cek__request_reserve(request, CEK_GEMM_PACKED, packed_bytes); break;
    case CEK_OP_CONV_FORWARD: cek__request_reserve(request, CEK_CONV_FORWARD_PACKED, packed_bytes); break;
    case CEK_OP_POOL_FORWARD: cek__request_reserve(request, CEK_POOL_FORWARD_RESERVE, reserve_bytes); break;
    case CEK_OP_POOL_BACKWARD: cek__request_reserve(request, CEK_POOL_BACKWARD_RESERVE, reserve_bytes); break;
    default: break;
    }
}

cek_status cek__sim_op_cost(const cek_host *host, const cek_op_desc *desc, uint64_t packed_bytes,
                            uint64_t reserve_bytes, uint64_t *flops, uint64_t *bytes)
{
    cek__request request;
    cek_status st = cek__request_init(host, desc, &request);
    if (st)
        return st;
    private_sizes(&request, packed_bytes, reserve_bytes);
    *flops = request_flops(&request);
    *bytes = request_bytes(&request);
    cek__request_free(&request);
    return CEK_OK;
}
