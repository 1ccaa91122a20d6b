/* gradient.c - holds the oracle's backward forms against central differences of its forward forms,
 * in f64.
 *
 * For a function y = f(x) and random weights g, the gradient of sum(g * y) by x is what the
 * backward form gives for dy = g. A wrong oracle would otherwise prove wrong backends right. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/problem.h"

/* Values for operands of these names; all others keep their fill. (Numbers of slots mean others in
 * a forward problem that a backward one carries.) */
typedef struct preset {
    const char *name[3];
    const double *value[3];
    uint32_t count;
    uint64_t moved; /* element of the first that is moved by `by` */
    double by;
    bool *no_memory; /* becomes true where a problem could not be built for want of it */
} preset;

static bool preset_fill(void *user, spec_operand *o)
{
    const preset *s = user;
    for (uint32_t i = 0; i < s->count; i++) {
        if (strcmp(s->name[i], o->name))
            continue;
        memcpy(o->value, s->value[i], o->count * sizeof *o->value);
        if (i == 0 && s->moved < o->count)
            o->value[s->moved] += s->by;
        return true;
    }
    return false;
}

static spec_problem *build(const spec_kind *kind, const char *text, const preset *values)
{
    spec_problem *p = calloc(1, sizeof *p);
    if (!p) {
        *values->no_memory = true;
        return NULL;
    }
    spec_problem_init(p, kind->kind, CEK_F64, SPEC_REAL, false, 21);
    p->preset = preset_fill;
    p->preset_user = (void *)values;
    if (kind->build(text, p))
        return p;
    *values->no_memory |= p->no_memory;
    spec_problem_free(p);
    free(p);
    return NULL;
}

static void drop(spec_problem *p)
{
    if (p)
        spec_problem_free(p);
    free(p);
}

/* One check: a forward kind with the slot x and the result y; a backward kind with the name of what
 * takes dy and the slot of its result; and an input or result of the forward form that the backward
 * one reads under a name of its own. */
typedef struct gradient_case {
    const spec_kind *forward, *backward;
    const char *forward_text, *backward_text;
    uint32_t x, y, dx;
    const char *dy;
    uint32_t also_forward;
    const char *also_backward; /* NULL: nothing */
} gradient_case;

static double weighted(const spec_problem *p, uint32_t y, const double *g)
{
    const spec_operand *o = spec_operand_find((spec_problem *)p, y);
    long double sum = 0;
    for (uint64_t i = 0; i < o->count; i++)
        sum += (long double)g[i] * o->expect[i];
    return (double)sum;
}

static double difference(const gradient_case *c, preset *values, uint64_t i, const double *g)
{
    const double h = 0x1p-17;
    double at[2] = { NAN, NAN };
    for (int side = 0; side < 2; side++) {
        values->moved = i, values->by = side ? h : -h;
        spec_problem *p = build(c->forward, c->forward_text, values);
        if (p)
            at[side] = weighted(p, c->y, g);
        drop(p);
    }
    return (at[1] - at[0]) / (2 * h);
}

/* Number of elements that differ; -1 where nothing could be compared. *no_memory: neither is the number
 * to be believed. */
static long gradient_compare(const gradient_case *c, bool *no_memory, char *text, size_t cap)
{
    preset none = { .count = 0, .no_memory = no_memory };
    spec_problem *start = build(c->forward, c->forward_text, &none), *back = NULL;
    const spec_operand *x = start ? spec_operand_find(start, c->x) : NULL,
                       *y = start ? spec_operand_find(start, c->y) : NULL;
    double *g = y ? malloc(y->count * sizeof *g) : NULL;
    long wrong = -1;
    *no_memory |= y && !g;
    if (x && g) {
        for (uint64_t i = 0; i < y->count; i++)
            g[i] = 2 * spec_uniform(5, i) - 1;
        preset forward = { .name = { x->name }, .value = { x->value }, .count = 1, .no_memory = no_memory };
        preset backward = {
            .name = { c->dy }, .value = { g }, .count = 1, .moved = UINT64_MAX, .no_memory = no_memory
        };
        if (c->also_backward) {
            const spec_operand *also = spec_operand_find(start, c->also_forward);
            backward.name[1] = c->also_backward;
            backward.value[1] = also->expect ? also->expect : also->value;
            backward.count = 2;
        }
        back = build(c->backward, c->backward_text, &backward);
        const spec_operand *dx = back ? spec_operand_find(back, c->dx) : NULL;
        wrong = dx ? 0 : -1;
        for (uint64_t i = 0; dx && i < dx->count; i++) {
            double numeric = difference(c, &forward, i, g);
            if (!(fabs(numeric - dx->expect[i]) <= 1e-6 * (1 + fabs(numeric))) && !wrong++)
                snprintf(text, cap, "%s %s: element %llu is %g, differences give %g", c->backward->name,
                         c->backward_text, (unsigned long long)i, dx->expect[i], numeric);
        }
    }
    if (wrong < 0)
        snprintf(text, cap, "%s %s: cannot be built", c->backward->name, c->backward_text);
    free(g);
    drop(start);
    drop(back);
    return wrong;
}

/* Losses give value and gradient in one problem, with inv_n as a factor of the gradient alone. */
static long loss_compare(const spec_kind *kind, const char *text_, uint32_t x_slot, uint32_t dx_slot,
                         uint32_t loss_slot, bool *no_memory, char *text, size_t cap)
{
    gradient_case c = { .forward = kind, .forward_text = text_, .y = loss_slot };
    preset none = { .count = 0, .no_memory = no_memory };
    spec_problem *start = build(kind, text_, &none);
    long wrong = start ? 0 : -1;
    if (start) {
        const spec_operand *x = spec_operand_find(start, x_slot), *dx = spec_operand_find(start, dx_slot);
        preset values = { .name = { x->name }, .value = { x->value }, .count = 1, .no_memory = no_memory };
        cek_step_block step;
        uint32_t step_slot = kind->kind == CEK_OP_CROSS_ENTROPY ? CEK_CROSS_ENTROPY_STEP : CEK_SQUARED_ERROR_STEP;
        memcpy(&step, spec_operand_find(start, step_slot)->raw, sizeof step);
        double factor = ((double)step.inv_n.hi + step.inv_n.lo) * step.loss_scale.hi, one = 1;
        for (uint64_t i = 0; i < x->count; i++) {
            double numeric = difference(&c, &values, i, &one) * factor;
            if (!(fabs(numeric - dx->expect[i]) <= 1e-6 * (1 + fabs(numeric))) && !wrong++)
                snprintf(text, cap, "%s %s: element %llu is %g, differences give %g", kind->name, text_,
                         (unsigned long long)i, dx->expect[i], numeric);
        }
    }
    if (wrong < 0)
        snprintf(text, cap, "%s %s: cannot be built", kind->name, text_);
    drop(start);
    return wrong;
}

/* clang-format off */
#define CONV(t)                                                                                   \
    { &spec_kind_conv_forward, &spec_kind_conv_backward_data, t, t, CEK_CONV_FORWARD_X, CEK_CONV_FORWARD_Y,            \
      CEK_CONV_BACKWARD_DATA_DX, "DY", CEK_CONV_FORWARD_W, "W" },                                 \
    { &spec_kind_conv_forward, &spec_kind_conv_backward_weights, t, t, CEK_CONV_FORWARD_W, CEK_CONV_FORWARD_Y,         \
      CEK_CONV_BACKWARD_WEIGHTS_DW, "DY", CEK_CONV_FORWARD_X, "X" }
#define POOL(t)                                                                                   \
    { &spec_kind_pool_forward, &spec_kind_pool_backward, t, t, CEK_POOL_FORWARD_X, CEK_POOL_FORWARD_Y, \
      CEK_POOL_BACKWARD_DX, "DY", CEK_POOL_FORWARD_X, "X" }
/* The backward form reads the output as its second input; that of gelu the input. */
#define ACTIVATION(forward, backward, reads)                                                      \
    { &spec_kind_pointwise, &spec_kind_pointwise, "37/x0," forward, "37/x0,x1," backward, CEK_POINTWISE_IN0,           \
      CEK_POINTWISE_OUT, CEK_POINTWISE_OUT, "IN0", reads, "IN1" }
static const gradient_case cases[] = {
    CONV("mb2ic4ih5oc6oh5kh3ph1"),
    CONV("mb1ic4ih7oc4oh4kh3sh2ph1g2"),
    CONV("mb1ic2ih7iw6oc3oh3ow4kh3kw2ph0pw1dh1dw0sw2"),
    CONV("mb1ic2ih5oc3oh5kh4ph1"),
    CONV("mb2ic3iw8oc2ow6kw3pw0"),
    CONV("mb1ic2id3ih4iw3oc2od2oh4ow2kd2kh3kw2ph1pd0pw0"),
    { &spec_kind_conv_forward, &spec_kind_conv_backward_weights, "mb2ic3ih5oc4oh5kh3ph1:bias",
      "mb2ic3ih5oc4oh5kh3ph1:bias", CEK_CONV_FORWARD_BIAS, CEK_CONV_FORWARD_Y,
      CEK_CONV_BACKWARD_WEIGHTS_BIAS_GRAD, "DY", 0, NULL },
    POOL("mb2c3ih7kh3sh2ph1:max"),
    POOL("mb2c3ih7kh3sh2ph1:avg"),
    POOL("mb2c3ih7kh3sh2ph1:avg:pad"),
    POOL("mb1c2ih6kh3sh1ph0qh2pw2qw1:avg"),
    ACTIVATION("relu", "relu_grad", CEK_POINTWISE_OUT),
    ACTIVATION("tanh", "tanh_grad", CEK_POINTWISE_OUT),
    ACTIVATION("sigmoid", "sigmoid_grad", CEK_POINTWISE_OUT),
    ACTIVATION("gelu", "gelu_grad", CEK_POINTWISE_IN0),
};
/* clang-format on */

cek_status spec_gradients(uint32_t *run, uint32_t *failed, char *text, size_t cap)
{
    bool no_memory = false;
    char first[SPEC_TEXT_MAX] = "", latest[SPEC_TEXT_MAX];
    *run = *failed = 0;
#define COUNT(call) ((*run)++, (call) && !(*failed)++ ? (void)memcpy(first, latest, sizeof first) : (void)0)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        COUNT(gradient_compare(&cases[i], &no_memory, latest, sizeof latest));
    COUNT(loss_compare(&spec_kind_cross_entropy, "6x10", CEK_CROSS_ENTROPY_LOGITS, CEK_CROSS_ENTROPY_DLOGITS,
                       CEK_CROSS_ENTROPY_LOSS, &no_memory, latest, sizeof latest));
    COUNT(loss_compare(&spec_kind_cross_entropy, "12x5:per3:valid2:w", CEK_CROSS_ENTROPY_LOGITS,
                       CEK_CROSS_ENTROPY_DLOGITS, CEK_CROSS_ENTROPY_LOSS, &no_memory, latest, sizeof latest));
    COUNT(loss_compare(&spec_kind_squared_error, "7x3", CEK_SQUARED_ERROR_PREDICTION, CEK_SQUARED_ERROR_DPREDICTION,
                       CEK_SQUARED_ERROR_LOSS, &no_memory, latest, sizeof latest));
    COUNT(loss_compare(&spec_kind_squared_error, "12x4:per3:valid2:w", CEK_SQUARED_ERROR_PREDICTION,
                       CEK_SQUARED_ERROR_DPREDICTION, CEK_SQUARED_ERROR_LOSS, &no_memory, latest, sizeof latest));
#undef COUNT
    snprintf(text, cap, "%s", first);
    return no_memory ? CEK_OUT_OF_MEMORY : CEK_OK;
}
