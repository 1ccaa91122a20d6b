/* optimizer.c - see optimizer.h. All parameters are in group 0. */
#include "nn/train/optimizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/options.h"
#include "core/base/status.h"

struct cek__shard_optimizer {
    cek_device *device;
    cek_op *op;
    cek_memory *moments[CEK__MOMENTS], *state, *workspace;
    uint64_t moment_bytes;
};

cek_f32x2 cek__f32x2(double value)
{
    cek_f32x2 pair = { .hi = (float)value };
    pair.lo = (float)(value - (double)pair.hi);
    return pair;
}

static cek_status check(const char *name, double value, double low, double below)
{
    return value >= low && value < below
               ? CEK_OK
               : cek__fail(CEK_INVALID, "optimizer: %s = %g, allowed are %g to below %g", name, value, low, below);
}

static cek_status numbers_check(const cek_optimizer *o)
{
    cek_status st;
    CEK_TRY(check("learning rate", o->lr, 0, INFINITY));
    CEK_TRY(check("weight decay", o->weight_decay, 0, INFINITY));
    CEK_TRY(check("momentum", o->momentum, 0, INFINITY));
    CEK_TRY(check("dampening", o->dampening, 0, INFINITY));
    CEK_TRY(check("beta1", o->beta1, 0, 1));
    CEK_TRY(check("beta2", o->beta2, 0, 1));
    CEK_TRY(check("epsilon", o->epsilon, 0, INFINITY));
    CEK_TRY(check("alpha", o->alpha, 0, 1));
    CEK_TRY(check("decay of the learning rate", o->lr_decay, 0, INFINITY));
    CEK_TRY(check("initial sum", o->initial_sum, 0, INFINITY));
out:
    return st;
}

/* What belongs to another algorithm would be overlooked. */
static cek_status takes_check(const cek_optimizer *o)
{
    static const uint32_t flags[] = {
        [CEK_OPTIMIZER_SGD] = CEK_OPTIMIZER_NESTEROV,
        [CEK_OPTIMIZER_ADAM] = CEK_OPTIMIZER_DECOUPLED,
        [CEK_OPTIMIZER_RMSPROP] = CEK_OPTIMIZER_CENTERED,
        [CEK_OPTIMIZER_ADAGRAD] = 0,
    };
    cek_status st = CEK_OK;
    const bool sgd = o->algorithm == CEK_OPTIMIZER_SGD, rmsprop = o->algorithm == CEK_OPTIMIZER_RMSPROP;
    if (o->flags & ~flags[o->algorithm])
        CEK_FAIL(CEK_INVALID, "optimizer: flags 0x%x do not belong to the algorithm", o->flags);
    if (o->momentum != 0 && !sgd && !rmsprop)
        CEK_FAIL(CEK_INVALID, "optimizer: momentum is SGD's and RMSprop's");
    if (o->dampening != 0 && !sgd)
        CEK_FAIL(CEK_INVALID, "optimizer: dampening is SGD's");
    if (o->alpha != 0 && !rmsprop)
        CEK_FAIL(CEK_INVALID, "optimizer: alpha is RMSprop's");
    if ((o->lr_decay != 0 || o->initial_sum != 0) && o->algorithm != CEK_OPTIMIZER_ADAGRAD)
        CEK_FAIL(CEK_INVALID, "optimizer: a decay of the learning rate and an initial sum are Adagrad's");
    if ((o->flags & CEK_OPTIMIZER_NESTEROV) && (o->momentum == 0 || o->dampening != 0))
        CEK_FAIL(CEK_INVALID, "optimizer: Nesterov wants a momentum and no dampening");
out:
    return st;
}

cek_status cek__optimizer_resolve(const cek_optimizer *given, cek_optimizer *out)
{
    cek_status st;
    cek_optimizer o;
    CEK_TRY(cek__options_take("optimizer", &o, sizeof o, given));
    if (o.algorithm == 0)
        o.algorithm = CEK_OPTIMIZER_ADAM;
    if (o.algorithm > CEK_OPTIMIZER_ADAGRAD)
        CEK_FAIL(CEK_INVALID, "optimizer: algorithm %u is none of SGD, Adam, RMSprop and Adagrad", o.algorithm);
    CEK_TRY(numbers_check(&o));
    CEK_TRY(takes_check(&o));
    if (o.lr == 0)
        o.lr = o.algorithm == CEK_OPTIMIZER_ADAM ? 0.001 : 0.01;
    if (o.algorithm != CEK_OPTIMIZER_SGD && o.epsilon == 0)
        o.epsilon = o.algorithm == CEK_OPTIMIZER_ADAGRAD ? 1e-10 : 1e-8;
    if (o.algorithm == CEK_OPTIMIZER_ADAM) {
        o.beta1 = o.beta1 == 0 ? 0.9 : o.beta1;
        o.beta2 = o.beta2 == 0 ? 0.999 : o.beta2;
    } else { /* presets have Adam's */
        o.beta1 = o.beta2 = 0;
    }
    if (o.algorithm == CEK_OPTIMIZER_SGD)
        o.epsilon = 0;
    if (o.algorithm == CEK_OPTIMIZER_RMSPROP && o.alpha == 0)
        o.alpha = 0.99;
    *out = o;
    return CEK_OK;
out:
    return st;
}

static const uint32_t moment_slots[CEK__MOMENTS] = { CEK_OPTIMIZER_M, CEK_OPTIMIZER_V, CEK_OPTIMIZER_MEAN };

bool cek__optimizer_has(const cek_optimizer *o, size_t moment)
{
    switch (moment_slots[moment]) {
    case CEK_OPTIMIZER_M: return o->algorithm == CEK_OPTIMIZER_ADAM || o->momentum != 0;
    case CEK_OPTIMIZER_V: return o->algorithm != CEK_OPTIMIZER_SGD;
    default: return o->flags & CEK_OPTIMIZER_CENTERED;
    }
}

size_t cek__optimizer_moments(const cek_optimizer *o)
{
    size_t count = 0;
    for (size_t i = 0; i < CEK__MOMENTS; i++)
        count += cek__optimizer_has(o, i);
    return count;
}

uint64_t cek__shard_optimizer_bytes(const cek_optimizer *o, cek_dtype type, uint64_t count)
{
    return cek__optimizer_moments(o) * count * cek_dtype_bytes(type) + CEK_ALIGNMENT;
}

/* Full of one number. */
static cek_status filled(cek_device *device, cek_stream *stream, cek_dtype type, double value, uint64_t bytes,
                         cek_memory **out)
{
    cek_status st;
    const float single = (float)value;
    uint32_t pattern;
    double *wide = NULL;

    memcpy(&pattern, &single, sizeof pattern);
    CEK_TRY(cek_memory_alloc(device, bytes, CEK_MEMORY_ALONE, out));
    if (type == CEK_F32 || value == 0) {
        CEK_TRY(cek_stream_fill(stream, cek_memory_ref(*out), pattern, 4, bytes));
        return CEK_OK;
    }
    CEK_TRY(cek__alloc_array(bytes / sizeof *wide, sizeof *wide, &wide)); /* no pattern is so wide */
    for (uint64_t i = 0; i < bytes / sizeof *wide; i++)
        wide[i] = value;
    CEK_TRY(cek_stream_upload(stream, cek_memory_ref(*out), wide, bytes));
    CEK_TRY(cek_stream_sync(stream, CEK_FOREVER));
out:
    cek__free_after(st, wide);
    return st;
}

static cek_status op_make(cek__shard_optimizer *s, const cek_optimizer *o, cek_dtype type, uint64_t count, bool scaled)
{
    cek_status st;
    cek_param_range all = { .begin = 0, .end = count, .group = 0 };
    cek_op_info info = { .size = sizeof info };
    cek_optimizer_desc desc = {
        .op = { .size = sizeof desc,
                .kind = CEK_OP_OPTIMIZER,
                .operands = CEK_BIT(CEK_OPTIMIZER_PARAM) | CEK_BIT(CEK_OPTIMIZER_GRAD) | CEK_BIT(CEK_OPTIMIZER_STATE) |
                            CEK_BIT(CEK_OPTIMIZER_STEP) | (scaled ? CEK_BIT(CEK_OPTIMIZER_UPDATE) : 0) },
        .count = count,
        .ranges = &all,
        .range_count = 1,
        .range_size = sizeof all,
        .momentum = o->momentum,
        .dampening = o->dampening,
        .epsilon = o->epsilon,
        .algorithm = o->algorithm,
        .flags = o->flags,
        .type = type,
        .decay = o->algorithm == CEK_OPTIMIZER_RMSPROP ? o->alpha : o->lr_decay,
    };
    for (size_t i = 0; i < CEK__MOMENTS; i++)
        desc.op.operands |= cek__optimizer_has(o, i) ? CEK_BIT(moment_slots[i]) : 0;
    CEK_TRY(cek_op_make(s->device, &desc.op, &info, &s->op));
    if (info.workspace_bytes)
        CEK_TRY(cek_memory_alloc(s->device, info.workspace_bytes, 0, &s->workspace));
    return CEK_OK;
out:
    return cek__fail_prefix(st, "optimizer of %llu parameters", (unsigned long long)count);
}

cek_status cek__shard_optimizer_create(cek_device *device, cek_stream *stream, const cek_optimizer *o, cek_dtype type,
                                       uint64_t count, bool scaled, cek__shard_optimizer **out)
{
    cek_status st;
    cek__shard_optimizer *s = NULL;
    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *s, &s));
    s->device = device;
    s->moment_bytes = count * cek_dtype_bytes(type);
    CEK_TRY(op_make(s, o, type, count, scaled));
    for (size_t i = 0; i < CEK__MOMENTS; i++)
        if (cek__optimizer_has(o, i))
            CEK_TRY(filled(device, stream, type, moment_slots[i] == CEK_OPTIMIZER_V ? o->initial_sum : 0,
                           s->moment_bytes, &s->moments[i]));
    CEK_TRY(filled(device, stream, CEK_F32, 0, CEK__COUNTER_BYTES, &s->state));
    *out = s;
    return CEK_OK;
out:
    cek__shard_optimizer_free(s);
    return st;
}

void cek__shard_optimizer_free(cek__shard_optimizer *s)
{
    if (!s)
        return;
    cek_op_free(s->device, s->op);
    for (size_t i = 0; i < CEK__MOMENTS; i++)
        cek_memory_free(s->moments[i]);
    cek_memory_free(s->state);
    cek_memory_free(s->workspace);
    free(s);
}

static cek_ref ref_or_none(const cek_memory *memory)
{
    return memory ? cek_memory_ref(memory) : (cek_ref){ NULL, 0 };
}

cek_cmd cek__shard_optimizer_command(const cek__shard_optimizer *s, cek_ref parameters, cek_ref gradients,
                                     cek_ref step_block, cek_ref update_block, cek_ref operands[CEK__OPTIMIZER_SLOTS])
{
    operands[CEK_OPTIMIZER_PARAM] = parameters;
    operands[CEK_OPTIMIZER_GRAD] = gradients;
    for (size_t i = 0; i < CEK__MOMENTS; i++)
        operands[moment_slots[i]] = ref_or_none(s->moments[i]);
    operands[CEK_OPTIMIZER_STATE] = cek_memory_ref(s->state);
    operands[CEK_OPTIMIZER_STEP] = step_block;
    operands[CEK_OPTIMIZER_UPDATE] = update_block;
    return (cek_cmd){ .kind = CEK_CMD_RUN,
                      .op = s->op,
                      .operands = operands,
                      .operand_count = CEK__OPTIMIZER_SLOTS,
                      .workspace = ref_or_none(s->workspace) };
}

cek_status cek__shard_optimizer_run(cek__shard_optimizer *s, cek_stream *stream, cek_ref parameters, cek_ref gradients,
                                    cek_ref step_block, cek_ref update_block)
{
    cek_ref operands[CEK__OPTIMIZER_SLOTS] = { { NULL, 0 } };
    cek_cmd c = cek__shard_optimizer_command(s, parameters, gradients, step_block, update_block, operands);
    return cek_stream_run(stream, c.op, c.operands, c.operand_count, c.workspace);
}

void cek__optimizer_fill_block(const cek_optimizer *o, double rate, cek_step_block *block)
{
    block->ln_beta1 = cek__f32x2(o->beta1 > 0 ? log(o->beta1) : 0);
    block->ln_beta2 = cek__f32x2(o->beta2 > 0 ? log(o->beta2) : 0);
    block->lr[0] = cek__f32x2(rate);
    block->weight_decay[0] = cek__f32x2(o->weight_decay);
}

cek_status cek__shard_optimizer_read(const cek__shard_optimizer *s, cek_stream *stream, cek__optimizer_state *out)
{
    cek_status st;
    for (size_t i = 0; i < CEK__MOMENTS; i++)
        if (s->moments[i])
            CEK_TRY(cek_stream_download(stream, out->moments[i], cek_memory_ref(s->moments[i]), s->moment_bytes));
    CEK_TRY(cek_stream_download(stream, out->counter, cek_memory_ref(s->state), CEK__COUNTER_BYTES));
    CEK_TRY(cek_stream_sync(stream, CEK_FOREVER));
out:
    return st;
}

cek_status cek__shard_optimizer_write(cek__shard_optimizer *s, cek_stream *stream, const cek__optimizer_state *state)
{
    cek_status st;
    for (size_t i = 0; i < CEK__MOMENTS; i++)
        if (s->moments[i])
            CEK_TRY(cek_stream_upload(stream, cek_memory_ref(s->moments[i]), state->moments[i], s->moment_bytes));
    CEK_TRY(cek_stream_upload(stream, cek_memory_ref(s->state), state->counter, CEK__COUNTER_BYTES));
    CEK_TRY(cek_stream_sync(stream, CEK_FOREVER));
out:
    return st;
}
