/* reduce.c - cases and oracle of reductions.
 *
 * Text: SHAPE, then :aDIGITS (the axes that go), the function (:sum :mean :max :min :squares
 * :nonfinite), :x~LAYOUT (see spec_layout), :acc, :inf (infinities among the values), :x=TYPE. */
#include <math.h>
#include <string.h>

#include "spec/problem.h"

/* clang-format off */
#define REQUIRED(text_, fills_) { .text = text_, .types = SPEC_T_ALL, .fills = fills_ }
#define F32(text_, fills_) { .text = text_, .types = SPEC_T_F32, .fills = fills_ }
#define OPTIONAL(text_, fills_) { .text = text_, .types = SPEC_T_F32, .fills = fills_, .optional = true }
#define FUNCTION(NAME)                                                                            \
    REQUIRED("1:a0:" NAME, SPEC_F_BOTH), REQUIRED("1000:a0:" NAME, SPEC_F_ALL), REQUIRED("5x7:a0:" NAME, SPEC_F_ALL),  \
    REQUIRED("5x7:a1:" NAME, SPEC_F_ALL), REQUIRED("3x4x5:a02:" NAME, SPEC_F_BOTH),                                    \
    REQUIRED("3x4x5:a1:" NAME, SPEC_F_BOTH),                                                          \
    REQUIRED("3x4x5:a012:x~^:" NAME, SPEC_F_BOTH), REQUIRED("6x33:a0:x~^:" NAME, SPEC_F_BOTH),    \
    REQUIRED("6x33:a1:x~_:" NAME, SPEC_F_BOTH), REQUIRED("9x20:a0:x~0:" NAME, SPEC_F_BOTH)
static const spec_case reduce_cases[] = {
    FUNCTION("sum"), FUNCTION("mean"), FUNCTION("max"), FUNCTION("min"), FUNCTION("squares"),
    FUNCTION("nonfinite"),
    REQUIRED("70000:a0:sum", SPEC_F_BOTH), REQUIRED("70000:a0:squares", SPEC_F_BOTH),
    REQUIRED("70000:a0:max", SPEC_F_ALL),
    REQUIRED("70000:a0:nonfinite", SPEC_F_ALL),
    REQUIRED("500x70:a0:sum", SPEC_F_BOTH),                                /* the gradient of a bias */
    REQUIRED("4x6x6x8:a012:mean", SPEC_F_BOTH), REQUIRED("4x6x6x8:a12:mean", SPEC_F_BOTH), /* statistics of images */
    REQUIRED("2x2x2x2x2x2x2x3:a0246:sum", SPEC_F_BOTH),
    REQUIRED("5x7:a0:sum:acc", SPEC_F_BOTH), REQUIRED("5x8:a1:mean:acc", SPEC_F_BOTH),
    REQUIRED("5x7:a01:squares:acc", SPEC_F_BOTH), REQUIRED("5x7:a1:nonfinite:acc", SPEC_F_BOTH),
    REQUIRED("40x9:a1:nonfinite:inf", SPEC_F_ALL), REQUIRED("40x9:a1:max:inf", SPEC_F_ALL),
    REQUIRED("40x9:a1:min:inf", SPEC_F_ALL),
    REQUIRED("3000:a0:sum:det", SPEC_F(REAL)), REQUIRED("300x11:a0:squares:det", SPEC_F(REAL)),
    F32("997:a0:sum:align4", SPEC_F_BOTH), F32("97x5:a1:max:align4", SPEC_F_BOTH),
    OPTIONAL("5x7:a0:sum:x=u8", SPEC_F(WHOLE)), OPTIONAL("5x7:a1:max:x=i32", SPEC_F(WHOLE)),
};
/* clang-format on */

typedef struct reduce_choice {
    int64_t strides[CEK_RANK_MAX];
    bool acc, inf;
} reduce_choice;

static uint32_t function_parse(const char *word)
{
    static const char *const names[] = { "", "sum", "mean", "max", "min", "squares", "nonfinite" };
    for (uint32_t f = CEK_REDUCE_SUM; f <= CEK_REDUCE_COUNT_NONFINITE; f++)
        if (!strcmp(word, names[f]))
            return f;
    return 0;
}

static bool reduce_read(const char *text, spec_problem *p, reduce_choice *c)
{
    cek_reduce_desc *d = &p->desc.reduce;
    const char *rest = text;
    char word[32];
    if (!(d->rank = spec_shape_read(&rest, d->shape)))
        return spec_fail(p, "%s: no shape", text);
    d->x_type = p->type;
    spec_strides(d->rank, d->shape, d->x_strides);
    while (spec_modifier(&rest, word, sizeof word)) {
        if (!strcmp(word, "acc"))
            c->acc = true;
        else if (!strcmp(word, "inf"))
            c->inf = true;
        else if (function_parse(word))
            d->function = function_parse(word);
        else if (word[0] == 'a' && strspn(word + 1, "01234567") == strlen(word + 1))
            for (const char *a = word + 1; *a; a++)
                d->axes |= 1u << (*a - '0');
        else if (!strncmp(word, "x=", 2))
            d->x_type = spec_type_parse(word + 2, strlen(word + 2));
        else if (!(word[0] == 'x' && word[1] == '~' && spec_layout(word + 2, d->rank, d->shape, d->x_strides)) &&
                 !spec_modifier_common(p, word))
            return spec_fail(p, "reduce: unknown modifier \"%s\"", word);
    }
    return d->function && d->axes && !*rest ? true : spec_fail(p, "%s: no function or no axes", text);
}

static spec_num finish(spec_problem *p, cek_dtype type, long double v, long double magnitude, uint64_t n)
{
    switch (p->desc.reduce.function) {
    case CEK_REDUCE_SUM: return spec_sum(type, v, magnitude, n, spec_whole(p));
    case CEK_REDUCE_MEAN: return spec_div(type, spec_sum(type, v, magnitude, n, spec_whole(p)), spec_exact(n));
    case CEK_REDUCE_SUM_SQUARES: return spec_sum(type, v, magnitude, 2 * n, spec_whole(p));
    default: return spec_exact(v);
    }
}

static void step(uint32_t function, long double x, bool first, long double *v, long double *magnitude)
{
    switch (function) {
    case CEK_REDUCE_MAX: *v = first || isnan(x) || (!isnan(*v) && x > *v) ? x : *v; break;
    case CEK_REDUCE_MIN: *v = first || isnan(x) || (!isnan(*v) && x < *v) ? x : *v; break;
    case CEK_REDUCE_SUM_SQUARES:
        *v += x * x;
        *magnitude += x * x;
        break;
    case CEK_REDUCE_COUNT_NONFINITE: *v += !isfinite(x); break;
    default: *v += x; *magnitude += fabsl(x);
    }
}

static bool reduce_build(const char *text, spec_problem *p)
{
    cek_reduce_desc *d = &p->desc.reduce;
    reduce_choice c = { .acc = false };
    if (!reduce_read(text, p, &c))
        return false;
    cek_dtype type = spec_sum_type(d->x_type);
    uint64_t kept = 1, all = 1;
    int64_t y_strides[CEK_RANK_MAX] = { 0 };
    for (uint32_t i = d->rank; i-- > 0; all *= d->shape[i]) {
        if (d->axes & 1u << i)
            continue;
        y_strides[i] = (int64_t)kept;
        kept *= d->shape[i];
    }
    spec_operand *x = spec_operand_add(p, CEK_REDUCE_X, d->x_type, spec_extent(d->rank, d->shape, d->x_strides));
    spec_operand *y = spec_operand_add(p, CEK_REDUCE_Y, type, kept);
    uint64_t *seen = spec_problem_alloc(p, kept, sizeof *seen);
    long double *v = spec_problem_alloc(p, kept, sizeof *v),
                *magnitude = spec_problem_alloc(p, kept, sizeof *magnitude);
    if (!x || !y || !seen || !v || !magnitude)
        return false;
    spec_operand_fill(p, x, d->x_type == CEK_U8 ? 0 : -3, 3, true);
    for (uint64_t i = 0; c.inf && i < x->count; i += 13)
        x->value[i] = i % 2 ? INFINITY : -INFINITY;
    if (c.acc)
        spec_operand_accumulate(p, y);
    for (uint64_t n = 0; n < all; n++) {
        uint64_t at = spec_offset(d->rank, d->shape, y_strides, n);
        double element = x->value[spec_offset(d->rank, d->shape, d->x_strides, n)];
        step(d->function, element, !seen[at]++, &v[at], &magnitude[at]);
    }
    for (uint64_t i = 0; i < kept; i++)
        spec_operand_expect(y, i, finish(p, type, v[i], magnitude[i], seen[i]), type);
    return true;
}

const spec_kind spec_kind_reduce = SPEC_KIND("reduce", CEK_OP_REDUCE, CEK_PROFILE_INFERENCE, "5x7:a0:sum", reduce_cases,
                                             reduce_build);
