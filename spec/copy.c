/* copy.c - cases and oracle of copies between layouts and types.
 *
 * Text: SHAPE, then :from TYPE (of X; the case's own type is that of Y), :x~LAYOUT, :y~LAYOUT (see
 * spec_layout), :wide (values that overflow small types, and ties). */
#include <math.h>
#include <string.h>

#include "spec/problem.h"

#define REQUIRED(text_, type_, fills_)                                           \
    {                                                                            \
        .text = text_, .types = SPEC_T(type_), .fills = fills_, .any_type = true \
    }
#define OPTIONAL(text_, types_, fills_)                                   \
    {                                                                     \
        .text = text_, .types = types_, .fills = fills_, .optional = true \
    }
#define EVERY_TYPE (SPEC_T_ALL | SPEC_T(U8) | SPEC_T(I32))
static const spec_case copy_cases[] = {
    REQUIRED("1:fromf32", F32, SPEC_F_ALL),
    REQUIRED("1000:fromf32", F32, SPEC_F_ALL),
    REQUIRED("70001:fromf32", F32, SPEC_F_BOTH),
    REQUIRED("300:fromf32:wide", F32, SPEC_F_BOTH),   /* zeros keep their sign, and denormals count */
    REQUIRED("301:fromi32:wide", I32, SPEC_F(WHOLE)), /* more bits than f32 has */
    REQUIRED("5x7:fromf32:x~^", F32, SPEC_F_ALL),
    REQUIRED("5x7:fromf32:y~^", F32, SPEC_F_ALL),
    REQUIRED("33x65:fromf32:x~^", F32, SPEC_F_BOTH),
    REQUIRED("3x4x5x6:fromf32:x~^", F32, SPEC_F_BOTH),
    REQUIRED("5x7:fromf32:x~0", F32, SPEC_F_BOTH),
    REQUIRED("5x7:fromf32:x~1", F32, SPEC_F_BOTH),
    REQUIRED("5x7:fromf32:x~_:y~^_", F32, SPEC_F_BOTH),
    REQUIRED("2x3x2x3x2x3x2x2:fromf32:x~^:y~_", F32, SPEC_F_BOTH),
    REQUIRED("97:fromf32:align4", F32, SPEC_F_BOTH),
    REQUIRED("97:fromf32:det", F32, SPEC_F(REAL)),
    REQUIRED("300:fromu8", F32, SPEC_F(WHOLE)),
    REQUIRED("5x7:fromu8:x~^", F32, SPEC_F(WHOLE)),
    REQUIRED("300:fromi32", F32, SPEC_F(WHOLE)),
    REQUIRED("300:fromi32:wide", F32, SPEC_F(WHOLE)),
    REQUIRED("301:fromu8", U8, SPEC_F(WHOLE)),
    REQUIRED("5x7:fromu8:x~^", U8, SPEC_F(WHOLE)),
    REQUIRED("31:fromu8:align1", U8, SPEC_F(WHOLE)),
    REQUIRED("301:fromi32", I32, SPEC_F(WHOLE)),
    REQUIRED("5x7:fromi32:y~^", I32, SPEC_F(WHOLE)),
    OPTIONAL("300:fromf32:wide", SPEC_T_LOW | SPEC_T(F64) | SPEC_T(U8) | SPEC_T(I32), SPEC_F_ALL),
    OPTIONAL("300:fromf64:wide", EVERY_TYPE, SPEC_F_ALL),
    OPTIONAL("300:fromf16", EVERY_TYPE, SPEC_F_ALL),
    OPTIONAL("300:frombf16", EVERY_TYPE, SPEC_F_ALL),
    OPTIONAL("300:fromu8", SPEC_T_LOW | SPEC_T(F64) | SPEC_T(I32), SPEC_F(WHOLE)),
    OPTIONAL("300:fromi32:wide", SPEC_T_LOW | SPEC_T(F64) | SPEC_T(U8), SPEC_F(WHOLE)),
};

/* Values around what matters to the small types: ties (the last two but for a bit that f32 does not hold), the largest
 * of each, beyond it, zeros of both signs. */
static void fill_wide(spec_operand *x)
{
    /* clang-format off */
    static const double marks[] = { 0.5,          1.5,           2.5,      -0.5,    -1.5,      254.5,
                                    255.5,        256,           -1,       2049,    2051,      65504,
                                    65519,        65520,         -65520,   1e6,     -1e6,      257,
                                    259,          0x1.01p0,      0x1.03p0, 0x1p-15, 0x1.8p-24, 0x1p-25,
                                    2147483647.0, -2147483648.0, 4e9,      -4e9,    1e38,      3.3961e38,
                                    16777217,     33554434,      0,        -0.0,    6e-8,      1e-40,
                                    0x1.0020000001p0, 0x1.01000000001p0 };
    /* clang-format on */
    for (uint64_t i = 0; i < x->count; i++)
        if (i % 3 == 0)
            x->value[i] = spec_round(marks[i / 3 % (sizeof marks / sizeof *marks)], x->type);
}

static bool copy_build(const char *text, spec_problem *p)
{
    cek_copy_desc *d = &p->desc.copy;
    const char *rest = text;
    char word[32];
    bool wide = false;
    if (!(d->rank = spec_shape_read(&rest, d->shape)))
        return spec_fail(p, "%s: no shape", text);
    d->y_type = p->type;
    uint64_t count = spec_strides(d->rank, d->shape, d->x_strides);
    spec_strides(d->rank, d->shape, d->y_strides);
    while (spec_modifier(&rest, word, sizeof word)) {
        int64_t *strides = word[0] == 'x' ? d->x_strides : d->y_strides;
        if (!strcmp(word, "wide"))
            wide = true;
        else if (!strncmp(word, "from", 4))
            d->x_type = spec_type_parse(word + 4, strlen(word + 4));
        else if (!(strchr("xy", word[0]) && word[1] == '~' && spec_layout(word + 2, d->rank, d->shape, strides)) &&
                 !spec_modifier_common(p, word))
            return spec_fail(p, "copy: unknown modifier \"%s\"", word);
    }
    spec_operand *x = spec_operand_add(p, CEK_COPY_X, d->x_type, spec_extent(d->rank, d->shape, d->x_strides));
    spec_operand *y = spec_operand_add(p, CEK_COPY_Y, d->y_type, spec_extent(d->rank, d->shape, d->y_strides));
    if (!x || !y || !(y->written = spec_problem_alloc(p, y->count, 1)))
        return false;
    y->zeros = x->type != CEK_U8 && x->type != CEK_I32 && y->type != CEK_U8 && y->type != CEK_I32;
    spec_operand_fill(p, x, x->type == CEK_U8 ? 0 : -100, x->type == CEK_U8 ? 255 : 100, true);
    if (wide)
        fill_wide(x);
    for (uint64_t n = 0; n < count; n++) {
        uint64_t at = spec_offset(d->rank, d->shape, d->y_strides, n);
        double value = x->value[spec_offset(d->rank, d->shape, d->x_strides, n)];
        y->expect[at] = spec_round(value, y->type);
        /* To f64 nothing of f32 is lost. */
        bool tiny = p->flushes && value != 0 && fabs(value) < (double)spec_tiny(x->type == CEK_F64 ? CEK_F64 : CEK_F32);
        y->bound[at] = tiny && x->type != CEK_F64 ? fabs(value) : 0;
        y->written[at] = 1;
    }
    return true;
}

const spec_kind spec_kind_copy = SPEC_KIND("copy", CEK_OP_COPY, CEK_PROFILE_INFERENCE, "5x7:fromf32", copy_cases,
                                           copy_build);
