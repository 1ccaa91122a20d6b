/* SPDX-License-Identifier: MIT
 * optimizer.c - one step of an algorithm over ranges of a bucket of parameters. */
#include <string.h>

#include "backends/reference/element.h"
#include "backends/reference/reference.h"

/* The numbers of one step. */
typedef struct step {
    double steps; /* applied, with this one */
    double grad_scale;
    double lr, weight_decay; /* of the range at hand */
    double ln_beta1, ln_beta2;
} step;

static void sgd(const cek_optimizer_desc *desc, const step *s, void *const *at, uint64_t i)
{
    double p = load(at[CEK_OPTIMIZER_PARAM], desc->type, i);
    double g = s->grad_scale * load(at[CEK_OPTIMIZER_GRAD], desc->type, i) + s->weight_decay * p;
    double d = g;
    if (at[CEK_OPTIMIZER_M]) {
        double m = load(at[CEK_OPTIMIZER_M], desc->type, i);
        m = s->steps == 1 ? g : desc->momentum * m + (1 - desc->dampening) * g;
        d = desc->flags & CEK_OPTIMIZER_NESTEROV ? g + desc->momentum * m : m;
        store(at[CEK_OPTIMIZER_M], desc->type, i, m);
    }
    store(at[CEK_OPTIMIZER_PARAM], desc->type, i, p - s->lr * d);
}

static void adam(const cek_optimizer_desc *desc, const step *s, void *const *at, uint64_t i)
{
    double p = load(at[CEK_OPTIMIZER_PARAM], desc->type, i);
    double g = s->grad_scale * load(at[CEK_OPTIMIZER_GRAD], desc->type, i);
    double m = load(at[CEK_OPTIMIZER_M], desc->type, i), v = load(at[CEK_OPTIMIZER_V], desc->type, i);
    if (desc->flags & CEK_OPTIMIZER_DECOUPLED)
        p *= 1 - s->lr * s->weight_decay;
    else
        g += s->weight_decay * p;
    /* 1 - beta is -expm1(ln beta), which keeps the digits that 1 - exp(ln beta) loses. */
    m = exp(s->ln_beta1) * m - expm1(s->ln_beta1) * g;
    v = exp(s->ln_beta2) * v - expm1(s->ln_beta2) * g * g;
    double m_hat = m / -expm1(s->steps * s->ln_beta1), v_hat = v / -expm1(s->steps * s->ln_beta2);
    store(at[CEK_OPTIMIZER_M], desc->type, i, m);
    store(at[CEK_OPTIMIZER_V], desc->type, i, v);
    store(at[CEK_OPTIMIZER_PARAM], desc->type, i, p - s->lr * m_hat / (sqrt(v_hat) + desc->epsilon));
}

static void rmsprop(const cek_optimizer_desc *desc, const step *s, void *const *at, uint64_t i)
{
    double p = load(at[CEK_OPTIMIZER_PARAM], desc->type, i);
    double g = s->grad_scale * load(at[CEK_OPTIMIZER_GRAD], desc->type, i) + s->weight_decay * p;
    double v = desc->decay * load(at[CEK_OPTIMIZER_V], desc->type, i) + (1 - desc->decay) * g * g, w = v, d;
    store(at[CEK_OPTIMIZER_V], desc->type, i, v);
    if (at[CEK_OPTIMIZER_MEAN]) {
        double mean = desc->decay * load(at[CEK_OPTIMIZER_MEAN], desc->type, i) + (1 - desc->decay) * g;
        store(at[CEK_OPTIMIZER_MEAN], desc->type, i, mean);
        w = v - mean * mean;
        w = w < 0 ? 0 : w; /* by rounding; NaN stays */
    }
    d = g / (sqrt(w) + desc->epsilon);
    if (at[CEK_OPTIMIZER_M]) {
        d += desc->momentum * load(at[CEK_OPTIMIZER_M], desc->type, i);
        store(at[CEK_OPTIMIZER_M], desc->type, i, d);
    }
    store(at[CEK_OPTIMIZER_PARAM], desc->type, i, p - s->lr * d);
}

static void adagrad(const cek_optimizer_desc *desc, const step *s, void *const *at, uint64_t i)
{
    double p = load(at[CEK_OPTIMIZER_PARAM], desc->type, i);
    double g = s->grad_scale * load(at[CEK_OPTIMIZER_GRAD], desc->type, i) + s->weight_decay * p;
    double v = load(at[CEK_OPTIMIZER_V], desc->type, i) + g * g;
    double lr = s->lr / (1 + (s->steps - 1) * desc->decay);
    store(at[CEK_OPTIMIZER_V], desc->type, i, v);
    store(at[CEK_OPTIMIZER_PARAM], desc->type, i, p - lr * g / (sqrt(v) + desc->epsilon));
}

/* Of one parameter. */
typedef void step_fn(const cek_optimizer_desc *desc, const step *s, void *const *at, uint64_t i);
static step_fn *const algorithms[] = {
    [CEK_OPTIMIZER_SGD] = sgd,
    [CEK_OPTIMIZER_ADAM] = adam,
    [CEK_OPTIMIZER_RMSPROP] = rmsprop,
    [CEK_OPTIMIZER_ADAGRAD] = adagrad,
};

void cek__reference_optimizer(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_optimizer_desc *desc = &op->request.desc.optimizer;
    cek_step_block block;
    cek_update_block update = { .grad_scale = { 1, 0 } };
    uint64_t applied;
    (void)queue, (void)workspace;
    memcpy(&block, at[CEK_OPTIMIZER_STEP], sizeof block);
    memcpy(&applied, at[CEK_OPTIMIZER_STATE], sizeof applied);
    if (at[CEK_OPTIMIZER_UPDATE])
        memcpy(&update, at[CEK_OPTIMIZER_UPDATE], sizeof update);
    if (update.skip)
        return;
    applied++;

    step s = { .steps = (double)applied,
               .grad_scale = block_number(update.grad_scale, desc->type),
               .ln_beta1 = block_number(block.ln_beta1, desc->type),
               .ln_beta2 = block_number(block.ln_beta2, desc->type) };
    for (uint32_t r = 0; r < desc->range_count; r++) {
        const cek_param_range *range = &desc->ranges[r];
        s.lr = block_number(block.lr[range->group], desc->type);
        s.weight_decay = block_number(block.weight_decay[range->group], desc->type);
        for (uint64_t i = range->begin; i < range->end; i++) {
            algorithms[desc->algorithm](desc, &s, at, i);
            if (at[CEK_OPTIMIZER_LOW])
                store(at[CEK_OPTIMIZER_LOW], desc->low_type, i, load(at[CEK_OPTIMIZER_PARAM], desc->type, i));
        }
    }
    memcpy(at[CEK_OPTIMIZER_STATE], &applied, sizeof applied);
}
