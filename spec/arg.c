/* arg.c - cases and oracle of arg: where along an axis the largest or smallest element is.
 *
 * Text: SHAPE, then :aDIGIT (the axis), :max or :min, :x~LAYOUT (see spec_layout), :ties (few different values, zeros
 * of both signs among them), :inf (infinities among the values), :nans (a NaN in every third line), :x=TYPE. */
#include <math.h>
#include <string.h>

#include "spec/problem.h"

/* clang-format off */
#define REQUIRED(text_, fills_) { .text = text_, .types = SPEC_T_ALL, .fills = fills_ }
#define OPTIONAL(text_, fills_) { .text = text_, .types = SPEC_T_F32, .fills = fills_, .optional = true }
#define FUNCTION(NAME)                                                                                     \
    REQUIRED("1:a0:" NAME, SPEC_F_ALL), REQUIRED("5x7:a0:" NAME, SPEC_F_ALL), REQUIRED("5x7:a1:" NAME, SPEC_F_ALL), \
    REQUIRED("3x4x5:a1:" NAME, SPEC_F_ALL), REQUIRED("1000:a0:" NAME, SPEC_F_BOTH),                        \
    REQUIRED("70000:a0:" NAME, SPEC_F_ALL), REQUIRED("33x300:a1:" NAME, SPEC_F_ALL),                      \
    REQUIRED("300x33:a0:" NAME, SPEC_F_ALL), REQUIRED("40x65:a1:ties:" NAME, SPEC_F_BOTH),                 \
    REQUIRED("700x3:a0:ties:" NAME, SPEC_F_BOTH), REQUIRED("40x65:a1:nans:" NAME, SPEC_F_BOTH),            \
    REQUIRED("700x5:a0:nans:" NAME, SPEC_F_BOTH), REQUIRED("40x9:a1:inf:" NAME, SPEC_F_ALL),               \
    REQUIRED("3x4x5:a2:x~^:" NAME, SPEC_F_BOTH), REQUIRED("6x33:a0:x~_:" NAME, SPEC_F_BOTH),               \
    REQUIRED("6x33:a1:x~0:" NAME, SPEC_F_BOTH), REQUIRED("6x33:a1:x~1:" NAME, SPEC_F_BOTH)
static const spec_case arg_cases[] = {
    FUNCTION("max"), FUNCTION("min"),
    REQUIRED("2x3x2x2x2x2x2x3:a3:max", SPEC_F_BOTH), REQUIRED("64x10:a1:max:det", SPEC_F(REAL)),
    { .text = "97x5:a1:max:align4", .types = SPEC_T_F32, .fills = SPEC_F_BOTH, .optional = true },
    OPTIONAL("5x7:a0:max:x=u8", SPEC_F(WHOLE)), OPTIONAL("5x300:a1:min:x=u8", SPEC_F(WHOLE)),
    OPTIONAL("5x7:a1:min:x=i32", SPEC_F(WHOLE)), OPTIONAL("300x7:a0:max:x=i32", SPEC_F(WHOLE)),
};
/* clang-format on */

typedef struct choice {
    bool ties, inf, nans;
} choice;

static bool arg_read(const char *text, spec_problem *p, choice *c)
{
    cek_arg_desc *d = &p->desc.arg;
    const char *rest = text;
    char word[32];
    uint64_t axis = UINT64_MAX;
    if (!(d->rank = spec_shape_read(&rest, d->shape)))
        return spec_fail(p, "%s: no shape", text);
    d->type = p->type;
    spec_strides(d->rank, d->shape, d->x_strides);
    while (spec_modifier(&rest, word, sizeof word)) {
        if (!strcmp(word, "ties"))
            c->ties = true;
        else if (!strcmp(word, "inf"))
            c->inf = true;
        else if (!strcmp(word, "nans"))
            c->nans = true;
        else if (!strcmp(word, "max") || !strcmp(word, "min"))
            d->function = word[1] == 'a' ? CEK_ARG_MAX : CEK_ARG_MIN;
        else if (!strncmp(word, "x=", 2))
            d->type = spec_type_parse(word + 2, strlen(word + 2));
        else if (!spec_modifier_number(word, "a", &axis) &&
                 !(word[0] == 'x' && word[1] == '~' && spec_layout(word + 2, d->rank, d->shape, d->x_strides)) &&
                 !spec_modifier_common(p, word))
            return spec_fail(p, "arg: unknown modifier \"%s\"", word);
    }
    d->axis = (uint32_t)axis;
    return d->function && axis < d->rank && !*rest ? true : spec_fail(p, "%s: no function or no axis", text);
}

static void x_fill(spec_problem *p, spec_operand *x, const choice *c)
{
    static const double few[] = { -2, 0.0, -0.0, 2 };
    spec_operand_fill(p, x, x->type == CEK_U8 ? 0 : -100, 100, true);
    for (uint64_t i = 0; i < x->count; i++) {
        const uint64_t chance = spec_mix(p->seed + 5, i);
        if (x->type == CEK_I32)
            x->value[i] += 0x1p30; /* more bits than f32 has */
        if (c->ties)
            x->value[i] =
                few[chance % (i % 5 ? 3 : 4)]; /* most lines have several of the largest, and of the smallest */
        if (c->inf && chance % 13 == 0)
            x->value[i] = i % 2 ? INFINITY : -INFINITY;
        if (c->nans && chance % 40 < 1 + i % 3)
            x->value[i] = NAN;
    }
}

/* Whether x comes before the best so far, which stands in front of it. */
static bool is_better(uint32_t function, double x, double best)
{
    if (isnan(best))
        return false;
    return isnan(x) || (function == CEK_ARG_MAX ? x > best : x < best);
}

static bool arg_build(const char *text, spec_problem *p)
{
    cek_arg_desc *d = &p->desc.arg;
    choice c = { 0 };
    if (!arg_read(text, p, &c))
        return false;
    uint64_t kept_shape[CEK_RANK_MAX], kept = 1;
    for (uint32_t i = 0; i < d->rank; i++)
        kept *= kept_shape[i] = i == d->axis ? 1 : d->shape[i];
    spec_operand *x = spec_operand_add(p, CEK_ARG_X, d->type, spec_extent(d->rank, d->shape, d->x_strides));
    spec_operand *y = spec_operand_add(p, CEK_ARG_Y, CEK_I32, kept);
    if (!x || !y)
        return false;
    x_fill(p, x, &c);
    for (uint64_t n = 0; n < kept; n++) {
        const double *line = x->value + spec_offset(d->rank, kept_shape, d->x_strides, n);
        uint64_t best = 0, stride = (uint64_t)d->x_strides[d->axis];
        for (uint64_t i = 1; i < d->shape[d->axis]; i++)
            if (is_better(d->function, line[i * stride], line[best * stride]))
                best = i;
        y->expect[n] = (double)best;
    }
    return true;
}

const spec_kind spec_kind_arg = SPEC_KIND("arg", CEK_OP_ARG, CEK_PROFILE_INFERENCE, "5x7:a1:max", arg_cases, arg_build);
