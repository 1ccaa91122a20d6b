/* optimizer.c - cases and oracle of optimizer steps.
 *
 * Text: COUNT, then :sgd, :adam, :rmsprop or :adagrad, :m (momentum), :damp, :nesterov, :centered,
 * :slows (of adagrad's rate), :wd (weight decay, coupled), :adamw (decoupled), :update (gradients are scaled), :skip,
 * :ranges (three, with gaps, of different groups), :lowf16 :lowbf16, :stepsN. Each step starts from what the device
 * left, so that tolerances are those of one step. */
#include <math.h>
#include <string.h>

#include "spec/problem.h"

#define CASE(text_, fills_)                                  \
    {                                                        \
        .text = text_, .types = SPEC_T_BOTH, .fills = fills_ \
    }
#define OPTIONAL(text_, fills_)                                               \
    {                                                                         \
        .text = text_, .types = SPEC_T_F32, .fills = fills_, .optional = true \
    }
static const spec_case optimizer_cases[] = {
    CASE("1:sgd", SPEC_F_BOTH),
    CASE("1000:sgd", SPEC_F_ALL),
    CASE("37:sgd:wd", SPEC_F_BOTH),
    CASE("37:sgd:update", SPEC_F_BOTH),
    CASE("70001:sgd:m", SPEC_F_BOTH),
    CASE("37:sgd:m:steps4", SPEC_F_BOTH),
    CASE("37:sgd:m:damp:steps4", SPEC_F_BOTH),
    CASE("37:sgd:m:nesterov:steps4", SPEC_F_BOTH),
    CASE("37:sgd:m:damp:nesterov:steps3", SPEC_F_BOTH),
    CASE("37:sgd:m:nesterov:wd:update:steps3", SPEC_F_BOTH),
    CASE("200:sgd:ranges", SPEC_F_BOTH),
    CASE("200:sgd:m:wd:ranges:steps3", SPEC_F_BOTH),
    CASE("200:sgd:hollow", SPEC_F_BOTH), /* a range of nothing */
    CASE("37:sgd:m:skip:steps2", SPEC_F_BOTH),
    CASE("37:sgd:skip", SPEC_F(NAN)),
    CASE("37:sgd:m:skiphigh:steps2", SPEC_F_BOTH), /* any bit: that of the sign, of f32 */
    CASE("37:adam:skiphigh", SPEC_F(REAL)),
    CASE("1:adam", SPEC_F(REAL)),
    CASE("37:adam:steps5", SPEC_F(REAL)),
    CASE("70001:adam:steps2", SPEC_F(REAL)),
    CASE("37:adam:wd:steps3", SPEC_F(REAL)),
    CASE("37:adamw:steps3", SPEC_F(REAL)),
    CASE("37:adam:update:steps3", SPEC_F(REAL)),
    CASE("200:adam:ranges:steps3", SPEC_F(REAL)),
    CASE("200:adamw:ranges:update:steps3", SPEC_F(REAL)),
    CASE("37:adam:skip:steps2", SPEC_F(REAL)),
    CASE("37:adam:skip", SPEC_F(NAN)),
    CASE("37:adam", SPEC_F(NAN)),
    CASE("300:adam:det:steps2", SPEC_F(REAL)),
    CASE("1:rmsprop", SPEC_F(REAL)),
    CASE("37:rmsprop:steps5", SPEC_F(REAL)),
    CASE("70001:rmsprop:m:steps2", SPEC_F(REAL)),
    CASE("37:rmsprop:centered:steps3", SPEC_F(REAL)),
    CASE("200:rmsprop:m:centered:wd:update:ranges:steps3", SPEC_F(REAL)),
    CASE("37:rmsprop:m:centered:skip:steps2", SPEC_F(REAL)),
    CASE("37:rmsprop:m:centered", SPEC_F(NAN)),
    CASE("1:adagrad", SPEC_F(REAL)),
    CASE("70001:adagrad:steps2", SPEC_F(REAL)),
    CASE("37:adagrad:slows:steps5", SPEC_F(REAL)),
    CASE("200:adagrad:slows:wd:update:ranges:steps3", SPEC_F(REAL)),
    CASE("37:adagrad:skip:steps2", SPEC_F(REAL)),
    CASE("37:adagrad", SPEC_F(NAN)),
    { .text = "200:sgd:m:update:steps2:align4", .types = SPEC_T_F32, .fills = SPEC_F_BOTH, .optional = true },
    { .text = "200:adam:update:steps2:align4", .types = SPEC_T_F32, .fills = SPEC_F(REAL), .optional = true },
    OPTIONAL("200:adam:update:steps2:align16", SPEC_F(REAL)),
    OPTIONAL("37:sgd:lowbf16", SPEC_F_BOTH),
    OPTIONAL("200:sgd:ranges:lowbf16", SPEC_F_BOTH), /* elements outside all ranges are left alone */
    OPTIONAL("37:rmsprop:lowbf16", SPEC_F(REAL)),
    OPTIONAL("37:adagrad:lowf16", SPEC_F(REAL)),
    OPTIONAL("37:adam:lowbf16:steps2", SPEC_F(REAL)),
    OPTIONAL("37:sgd:lowf16", SPEC_F_BOTH),
};

static bool optimizer_read(const char *text, spec_problem *p, bool *wd, bool *update, bool *skip)
{
    cek_optimizer_desc *d = &p->desc.optimizer;
    const char *rest = text;
    uint64_t shape[CEK_RANK_MAX], steps = 1;
    char word[32];
    bool ranges = false, hollow = false,
         whole = p->fill != SPEC_REAL; /* halves and quarters keep whole numbers exact */
    if (spec_shape_read(&rest, shape) != 1)
        return spec_fail(p, "%s: no count", text);
    d->count = shape[0], d->type = p->type;
    while (spec_modifier(&rest, word, sizeof word)) {
        if (!strcmp(word, "sgd"))
            d->algorithm = CEK_OPTIMIZER_SGD;
        else if (!strcmp(word, "adam"))
            d->algorithm = CEK_OPTIMIZER_ADAM, d->epsilon = 1e-8;
        else if (!strcmp(word, "adamw"))
            d->algorithm = CEK_OPTIMIZER_ADAM, d->flags |= CEK_OPTIMIZER_DECOUPLED, d->epsilon = 1e-8, *wd = true;
        else if (!strcmp(word, "rmsprop"))
            d->algorithm = CEK_OPTIMIZER_RMSPROP, d->epsilon = 1e-8, d->decay = 0.9;
        else if (!strcmp(word, "adagrad"))
            d->algorithm = CEK_OPTIMIZER_ADAGRAD, d->epsilon = 1e-10;
        else if (!strcmp(word, "slows"))
            d->decay = 0.3;
        else if (!strcmp(word, "centered"))
            d->flags |= CEK_OPTIMIZER_CENTERED;
        else if (!strcmp(word, "m"))
            d->momentum = whole ? 0.5 : 0.9;
        else if (!strcmp(word, "damp"))
            d->dampening = whole ? 0.5 : 0.1;
        else if (!strcmp(word, "nesterov"))
            d->flags |= CEK_OPTIMIZER_NESTEROV;
        else if (!strcmp(word, "wd"))
            *wd = true;
        else if (!strcmp(word, "update"))
            *update = true;
        else if (!strcmp(word, "skip"))
            *update = *skip = true;
        else if (!strcmp(word, "skiphigh"))
            *update = *skip = true;
        else if (!strcmp(word, "ranges") || !strcmp(word, "hollow"))
            ranges = true, hollow = word[0] == 'h';
        else if (!strncmp(word, "low", 3))
            d->low_type = spec_type_parse(word + 3, strlen(word + 3));
        else if (!spec_modifier_number(word, "steps", &steps) && !spec_modifier_common(p, word))
            return spec_fail(p, "optimizer: unknown modifier \"%s\"", word);
    }
    p->steps = (uint32_t)steps;
    d->ranges = p->ranges, d->range_size = sizeof *p->ranges, d->range_count = ranges ? 3 : 1;
    if (ranges) {
        if (d->count <= 64 + 1) /* the last of them begins at 64 */
            return spec_fail(p, "%s: ranges need more than 65 parameters", text);
        p->ranges[0] = (cek_param_range){ .begin = 3, .end = 50, .group = 0 };
        p->ranges[1] = (cek_param_range){ .begin = 50, .end = hollow ? 50 : 51, .group = 31 };
        p->ranges[2] = (cek_param_range){ .begin = 64, .end = d->count - 1, .group = 5 };
    } else {
        p->ranges[0] = (cek_param_range){ .begin = 0, .end = d->count, .group = 2 };
    }
    return true;
}

static cek_f32x2 split(double v)
{
    float hi = (float)v;
    return (cek_f32x2){ hi, (float)(v - hi) };
}

static double joined(cek_dtype type, cek_f32x2 v)
{
    return type == CEK_F64 ? (double)v.hi + v.lo : v.hi;
}

static void step_block(const spec_problem *p, bool wd, cek_step_block *s)
{
    bool whole = p->fill != SPEC_REAL;
    *s = (cek_step_block){ .ln_beta1 = split(log(0.9)), .ln_beta2 = split(log(0.999)) };
    for (uint32_t g = 0; g < CEK_PARAM_GROUPS; g++) {
        s->lr[g] = split(whole ? 0.25 * (g % 3 + 1) : 0.01 * (g + 1));
        s->weight_decay[g] = split(!wd ? 0 : whole ? 0.5 * (g % 2 + 1) : 0.02 * (g + 1));
    }
}

/* One parameter: what the formulas of plugin.h make of it. */
typedef struct update {
    spec_num p, m, v, mean;
} update;

static spec_num sgd_direction(const cek_optimizer_desc *d, spec_num g, uint64_t t, update *u)
{
    cek_dtype type = d->type;
    if (d->momentum == 0)
        return g;
    spec_num momentum = spec_exact(spec_round(d->momentum, type)), rest = spec_exact(1 - d->dampening);
    if (type == CEK_F32 && rest.v != (float)rest.v)
        rest.e = 2 * spec_roundoff(type);
    if (momentum.v != d->momentum)
        momentum.e = spec_roundoff(type);
    u->m = t == 1 ? g : spec_add(type, spec_mul(type, momentum, u->m), spec_mul(type, rest, g));
    return d->flags & CEK_OPTIMIZER_NESTEROV ? spec_add(type, g, spec_mul(type, momentum, u->m)) : u->m;
}

static spec_num adam_direction(const cek_optimizer_desc *d, const cek_step_block *s, spec_num g, uint64_t t, update *u)
{
    cek_dtype type = d->type;
    spec_num ln1 = spec_exact(joined(type, s->ln_beta1)), ln2 = spec_exact(joined(type, s->ln_beta2));
    spec_num one1 = spec_expm1(type, ln1), one2 = spec_expm1(type, ln2), steps = spec_exact(t);
    one1.v = -one1.v, one2.v = -one2.v; /* 1 - beta, not from a rounded beta */
    u->m = spec_add(type, spec_mul(type, spec_exp(type, ln1), u->m), spec_mul(type, one1, g));
    u->v = spec_add(type, spec_mul(type, spec_exp(type, ln2), u->v), spec_mul(type, one2, spec_mul(type, g, g)));
    spec_num bias1 = spec_expm1(type, spec_mul(type, steps, ln1)), bias2 = spec_expm1(type, spec_mul(type, steps, ln2));
    bias1.v = -bias1.v, bias2.v = -bias2.v;
    spec_num root = spec_sqrt(type, spec_div(type, u->v, bias2));
    spec_num epsilon = { d->epsilon, spec_roundoff(type) * d->epsilon };
    return spec_div(type, spec_div(type, u->m, bias1), spec_add(type, root, epsilon));
}

/* A constant of the descriptor, which a device may round. */
static spec_num constant(cek_dtype type, double v)
{
    return (spec_num){ v, v == spec_round(v, type) ? 0 : spec_roundoff(type) * fabs(v) };
}

static spec_num rmsprop_direction(const cek_optimizer_desc *d, spec_num g, update *u)
{
    cek_dtype type = d->type;
    spec_num decay = constant(type, d->decay), rest = constant(type, 1 - d->decay);
    u->v = spec_add(type, spec_mul(type, decay, u->v), spec_mul(type, rest, spec_mul(type, g, g)));
    spec_num w = u->v;
    if (d->flags & CEK_OPTIMIZER_CENTERED) {
        u->mean = spec_add(type, spec_mul(type, decay, u->mean), spec_mul(type, rest, g));
        w = spec_sub(type, w, spec_mul(type, u->mean, u->mean));
        w.v = w.v < 0 ? 0 : w.v;
    }
    spec_num direction = spec_div(type, g, spec_add(type, spec_sqrt(type, w), constant(type, d->epsilon)));
    if (d->momentum == 0)
        return direction;
    return u->m = spec_add(type, spec_mul(type, constant(type, d->momentum), u->m), direction);
}

/* *lr becomes smaller from step to step. */
static spec_num adagrad_direction(const cek_optimizer_desc *d, spec_num g, uint64_t t, update *u, spec_num *lr)
{
    cek_dtype type = d->type;
    spec_num slower = spec_mul(type, spec_exact((double)(t - 1)), constant(type, d->decay));
    *lr = spec_div(type, *lr, spec_add(type, spec_exact(1), slower));
    u->v = spec_add(type, u->v, spec_mul(type, g, g));
    return spec_div(type, g, spec_add(type, spec_sqrt(type, u->v), constant(type, d->epsilon)));
}

static spec_num direction_of(const cek_optimizer_desc *d, const cek_step_block *s, spec_num g, uint64_t t, update *u,
                             spec_num *lr)
{
    switch (d->algorithm) {
    case CEK_OPTIMIZER_SGD: return sgd_direction(d, g, t, u);
    case CEK_OPTIMIZER_ADAM: return adam_direction(d, s, g, t, u);
    case CEK_OPTIMIZER_RMSPROP: return rmsprop_direction(d, g, u);
    default: return adagrad_direction(d, g, t, u, lr);
    }
}

static void optimizer_element(spec_problem *p, const cek_step_block *s, const cek_update_block *ub, uint32_t group,
                              uint64_t t, uint64_t i)
{
    const cek_optimizer_desc *d = &p->desc.optimizer;
    cek_dtype type = d->type;
    spec_operand *param = spec_operand_find(p, CEK_OPTIMIZER_PARAM), *m = spec_operand_find(p, CEK_OPTIMIZER_M);
    spec_operand *v = spec_operand_find(p, CEK_OPTIMIZER_V), *low = spec_operand_find(p, CEK_OPTIMIZER_LOW);
    spec_operand *mean = spec_operand_find(p, CEK_OPTIMIZER_MEAN);
    spec_num lr = spec_exact(joined(type, s->lr[group])), wd = spec_exact(joined(type, s->weight_decay[group]));
    update u = { .p = spec_exact(param->value[i]),
                 .m = spec_exact(m ? m->value[i] : 0),
                 .v = spec_exact(v ? v->value[i] : 0),
                 .mean = spec_exact(mean ? mean->value[i] : 0) };
    spec_num g = spec_exact(spec_operand_find(p, CEK_OPTIMIZER_GRAD)->value[i]);
    if (ub)
        g = spec_mul(type, spec_exact(joined(type, ub->grad_scale)), g);
    if (d->flags & CEK_OPTIMIZER_DECOUPLED)
        u.p = spec_mul(type, u.p, spec_sub(type, spec_exact(1), spec_mul(type, lr, wd)));
    else
        g = spec_add(type, g, spec_mul(type, wd, u.p));
    spec_num direction = direction_of(d, s, g, t, &u, &lr);
    u.p = spec_sub(type, u.p, spec_mul(type, lr, direction));
    spec_store(type, u.p, &param->expect[i], &param->bound[i]);
    if (m)
        spec_store(type, u.m, &m->expect[i], &m->bound[i]);
    if (v)
        spec_store(type, u.v, &v->expect[i], &v->bound[i]);
    if (mean)
        spec_store(type, u.mean, &mean->expect[i], &mean->bound[i]);
    if (low)
        spec_store(low->type, u.p, &low->expect[i], &low->bound[i]);
}

/* Expected state after one step from what `value` holds now. */
static void optimizer_expect(spec_problem *p)
{
    const cek_optimizer_desc *d = &p->desc.optimizer;
    const cek_step_block *s = spec_operand_find(p, CEK_OPTIMIZER_STEP)->raw;
    spec_operand *update_operand = spec_operand_find(p, CEK_OPTIMIZER_UPDATE),
                 *state = spec_operand_find(p, CEK_OPTIMIZER_STATE);
    const cek_update_block *ub = update_operand ? update_operand->raw : NULL;
    bool skip = ub && ub->skip;
    uint64_t applied;
    memcpy(&applied, state->raw, sizeof applied);
    applied += !skip;
    memcpy(state->raw_expect, &applied, sizeof applied);
    for (uint32_t i = 0; i < p->operand_count; i++)
        if (p->operand[i].direction == SPEC_INOUT && p->operand[i].written)
            memset(p->operand[i].written, 0, p->operand[i].count);
    for (uint32_t r = 0; !skip && r < d->range_count; r++) {
        for (uint64_t i = p->ranges[r].begin; i < p->ranges[r].end; i++) {
            optimizer_element(p, s, ub, p->ranges[r].group, applied, i);
            for (uint32_t o = 0; o < p->operand_count; o++)
                if (p->operand[o].written)
                    p->operand[o].written[i] = 1;
        }
    }
}

/* New gradients; a skipped step is followed by one that counts. */
static void optimizer_next(spec_problem *p, uint32_t step)
{
    spec_operand *update_operand = spec_operand_find(p, CEK_OPTIMIZER_UPDATE);
    p->seed += step;
    spec_operand_fill(p, spec_operand_find(p, CEK_OPTIMIZER_GRAD), -3, 3, false);
    if (update_operand)
        ((cek_update_block *)update_operand->raw)->skip = 0;
    optimizer_expect(p);
}

static bool optimizer_state(spec_problem *p, uint32_t slot, cek_dtype type, bool fill)
{
    spec_operand *o = spec_operand_add(p, slot, type, p->desc.optimizer.count);
    if (!o || !(o->written = spec_problem_alloc(p, o->count, 1)))
        return false;
    if (fill)
        spec_operand_fill(p, o, -8, 8, false);
    return true;
}

static bool optimizer_build(const char *text, spec_problem *p)
{
    cek_optimizer_desc *d = &p->desc.optimizer;
    bool wd = false, update_given = false, skip = false;
    if (!optimizer_read(text, p, &wd, &update_given, &skip))
        return false;
    cek_step_block step;
    step_block(p, wd, &step);
    cek_update_block ub = { .grad_scale = split(p->fill == SPEC_REAL ? 0.3 : 0.5), .skip = skip };
    if (skip && strstr(text, ":skiphigh"))
        ub.skip = 1u << 31;
    uint64_t none[32] = { 0 };
    spec_operand *grad = spec_operand_add(p, CEK_OPTIMIZER_GRAD, p->type, d->count);
    bool adam = d->algorithm == CEK_OPTIMIZER_ADAM;
    if (!grad || !optimizer_state(p, CEK_OPTIMIZER_PARAM, p->type, true) ||
        ((adam || d->momentum != 0) && !optimizer_state(p, CEK_OPTIMIZER_M, p->type, false)) ||
        (d->algorithm != CEK_OPTIMIZER_SGD && !optimizer_state(p, CEK_OPTIMIZER_V, p->type, false)) ||
        ((d->flags & CEK_OPTIMIZER_CENTERED) && !optimizer_state(p, CEK_OPTIMIZER_MEAN, p->type, false)) ||
        (d->low_type && !optimizer_state(p, CEK_OPTIMIZER_LOW, d->low_type, false)) ||
        !spec_operand_block(p, CEK_OPTIMIZER_STEP, &step, sizeof step) ||
        (update_given && !spec_operand_block(p, CEK_OPTIMIZER_UPDATE, &ub, sizeof ub)))
        return false;
    spec_operand *state = spec_operand_block(p, CEK_OPTIMIZER_STATE, none, sizeof none);
    if (!state || !(state->raw_expect = spec_problem_alloc(p, sizeof none, 1)))
        return false;
    spec_operand_fill(p, grad, -3, 3, true);
    p->next = optimizer_next;
    optimizer_expect(p);
    return true;
}

const spec_kind spec_kind_optimizer = SPEC_KIND("optimizer", CEK_OP_OPTIMIZER, CEK_PROFILE_TRAINING, "37:adam",
                                                optimizer_cases, optimizer_build);
