/* algorithm.c - see algorithm.h. */
#include "nn/train/algorithm.h"

#include <float.h>

#include "core/base/options.h"
#include "core/base/status.h"

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
    CEK_TRY(check("learning rate", o->lr, 0, FLT_MAX));
    CEK_TRY(check("weight decay", o->weight_decay, 0, FLT_MAX));
    CEK_TRY(check("momentum", o->momentum, 0, FLT_MAX));
    CEK_TRY(check("dampening", o->dampening, 0, FLT_MAX));
    CEK_TRY(check("beta1", o->beta1, 0, 1));
    CEK_TRY(check("beta2", o->beta2, 0, 1));
    CEK_TRY(check("epsilon", o->epsilon, 0, FLT_MAX));
    CEK_TRY(check("alpha", o->alpha, 0, 1));
    CEK_TRY(check("decay of the learning rate", o->lr_decay, 0, FLT_MAX));
    CEK_TRY(check("initial sum", o->initial_sum, 0, FLT_MAX));
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
    if (o->flags & ~(o->algorithm == CEK_OPTIMIZER_LAMB ? 0 : flags[o->algorithm]))
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
    bool adam;
    CEK_TRY(cek__options_take("optimizer", &o, sizeof o, given));
    if (o.algorithm == 0)
        o.algorithm = CEK_OPTIMIZER_ADAM;
    if (o.algorithm > CEK_OPTIMIZER_ADAGRAD && o.algorithm != CEK_OPTIMIZER_LAMB)
        CEK_FAIL(CEK_INVALID, "optimizer: algorithm %u is none of SGD, Adam, RMSprop, Adagrad and LAMB", o.algorithm);
    CEK_TRY(numbers_check(&o));
    CEK_TRY(takes_check(&o));
    adam = o.algorithm == CEK_OPTIMIZER_ADAM || o.algorithm == CEK_OPTIMIZER_LAMB;
    if (o.lr == 0)
        o.lr = adam ? 0.001 : 0.01;
    if (o.algorithm != CEK_OPTIMIZER_SGD && o.epsilon == 0)
        o.epsilon = o.algorithm == CEK_OPTIMIZER_ADAGRAD ? 1e-10 : o.algorithm == CEK_OPTIMIZER_LAMB ? 1e-6 : 1e-8;
    if (adam) {
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

uint32_t cek__algorithm_of(const cek_optimizer *o)
{
    return o->algorithm == CEK_OPTIMIZER_LAMB ? CEK_OPTIMIZER_ADAM : o->algorithm;
}

bool cek__algorithm_has(const cek_optimizer *o, uint32_t slot)
{
    switch (slot) {
    case CEK_OPTIMIZER_M: return cek__algorithm_of(o) == CEK_OPTIMIZER_ADAM || o->momentum != 0;
    case CEK_OPTIMIZER_V: return o->algorithm != CEK_OPTIMIZER_SGD;
    case CEK_OPTIMIZER_MEAN: return o->flags & CEK_OPTIMIZER_CENTERED;
    default: return false;
    }
}
