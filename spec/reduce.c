/* reduce.c - cases and oracle of reductions.
 *
 * Text: SHAPE, then :aDIGITS (the axes that go), the function (:sum :mean :max :min :squares
 * :nonfinite), :x~LAYOUT (see spec_layout), :two (a second operand), :two~LAYOUT, :centre, :sN:vN (samples of N rows, N
 * of which count), :acc, :inf (infinities among the values), :x=TYPE. */
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
#define MASKED(NAME)                                                                                              \
    REQUIRED("5x7:a0:s1:v3:" NAME, SPEC_F_ALL), REQUIRED("5x7:a1:s2:v1:" NAME, SPEC_F_ALL), /* rows of 2, 2 and 1 */ \
    REQUIRED("5x7:a0:s2:v3:" NAME, SPEC_F_BOTH), REQUIRED("5x7:a01:s1:v0:" NAME, SPEC_F_BOTH),                    \
    REQUIRED("6x4x5:a02:s1:v4:x~^:" NAME, SPEC_F_BOTH), REQUIRED("6x4x5:a1:s1:v4:" NAME, SPEC_F_BOTH)
static const spec_case reduce_cases[] = {
    FUNCTION("sum"), FUNCTION("mean"), FUNCTION("max"), FUNCTION("min"), FUNCTION("squares"),
    FUNCTION("nonfinite"),
    REQUIRED("5x7:a:sum", SPEC_F_BOTH), REQUIRED("5x7:a:squares:x~^:acc", SPEC_F_BOTH), /* nothing is reduced */
    REQUIRED("5x7:a:max:two:centre", SPEC_F_BOTH), REQUIRED("5x7:a:mean:s2:v2", SPEC_F_BOTH),
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
    REQUIRED("5x7:a1:sum:two", SPEC_F_ALL), REQUIRED("33x300:a1:sum:two", SPEC_F_ALL), /* gradient of a softmax */
    REQUIRED("300x33:a0:sum:two:centre", SPEC_F_ALL),      /* gradient of a normalisation */
    REQUIRED("300x33:a0:squares:centre", SPEC_F_BOTH),     /* a variance */
    REQUIRED("4x6x6x8:a012:mean:centre:two", SPEC_F_BOTH), REQUIRED("70000:a0:sum:two:centre", SPEC_F_BOTH),
    REQUIRED("3x4x5:a02:max:two", SPEC_F_BOTH), REQUIRED("3x4x5:a1:min:centre", SPEC_F_BOTH),
    REQUIRED("6x33:a0:sum:two~^", SPEC_F_BOTH), REQUIRED("6x33:a1:sum:two~0", SPEC_F_BOTH),
    REQUIRED("6x33:a1:mean:x~^:two~_:centre:acc", SPEC_F_BOTH), REQUIRED("9x20:a0:sum:x~0:two", SPEC_F_BOTH),
    REQUIRED("9x20:a0:nonfinite:two:centre", SPEC_F_ALL),
    REQUIRED("9x20:a0:squares:two", SPEC_F_BOTH), REQUIRED("9x20:a1:squares:two:centre", SPEC_F_BOTH),
    REQUIRED("9x20:a1:max:two:centre", SPEC_F_BOTH), REQUIRED("9x20:a0:min:two:centre", SPEC_F_BOTH),
    REQUIRED("9x20:a1:max:centre", SPEC_F_BOTH), REQUIRED("9x20:a0:min:two", SPEC_F_BOTH),
    MASKED("sum"), MASKED("mean"), MASKED("max"), MASKED("min"), MASKED("squares"), MASKED("nonfinite"),
    REQUIRED("3000x20:a0:mean:s1:v2731", SPEC_F_BOTH),     /* statistics of a batch with padding */
    REQUIRED("3000x20:a0:sum:two:centre:s3:v910", SPEC_F_BOTH), REQUIRED("16448x3:a0:sum:s1:v16384", SPEC_F_BOTH),
    REQUIRED("70x300:a01:mean:centre:s7:v3", SPEC_F_BOTH), REQUIRED("8x6x6x8:a012:mean:s1:v3:acc", SPEC_F_BOTH),
    REQUIRED("8x6x6x8:a012:squares:centre:s1:v0", SPEC_F_BOTH), REQUIRED("20x50:a1:mean:s2:v3:acc", SPEC_F_BOTH),
    REQUIRED("300x11:a0:sum:two:s1:v200:det", SPEC_F(REAL)),
    REQUIRED("5x7:a0:sum:s2147483648:v2", SPEC_F_BOTH), /* rows that count are more than 32 bits number */
    F32("997:a0:sum:align4", SPEC_F_BOTH), F32("97x5:a1:max:align4", SPEC_F_BOTH),
    OPTIONAL("5x7:a0:sum:x=u8", SPEC_F(WHOLE)), OPTIONAL("5x7:a1:max:x=i32", SPEC_F(WHOLE)),
};
/* clang-format on */

typedef struct reduce_choice {
    bool acc, inf, two, centre, masked, axes;
    uint64_t valid;
} reduce_choice;

static uint32_t function_parse(const char *word)
{
    static const char *const names[] = { "", "sum", "mean", "max", "min", "squares", "nonfinite" };
    for (uint32_t f = CEK_REDUCE_SUM; f <= CEK_REDUCE_COUNT_NONFINITE; f++)
        if (!strcmp(word, names[f]))
            return f;
    return 0;
}

/* How the second operand lies: "", or "~LAYOUT". */
static bool two_read(const char *text, cek_reduce_desc *d)
{
    spec_strides(d->rank, d->shape, d->x2_strides);
    return !*text || (*text == '~' && spec_layout(text + 1, d->rank, d->shape, d->x2_strides));
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
        else if (!strcmp(word, "centre"))
            c->centre = true;
        else if (!strncmp(word, "two", 3) && two_read(word + 3, d))
            c->two = true;
        else if (spec_modifier_number(word, "v", &c->valid))
            c->masked = true;
        else if (spec_modifier_number(word, "s", &d->rows_per_sample))
            continue;
        else if (function_parse(word))
            d->function = function_parse(word);
        else if (word[0] == 'a' && strspn(word + 1, "01234567") == strlen(word + 1)) {
            c->axes = true;
            for (const char *a = word + 1; *a; a++)
                d->axes |= 1u << (*a - '0');
        } else if (!strncmp(word, "x=", 2))
            d->x_type = spec_type_parse(word + 2, strlen(word + 2));
        else if (!(word[0] == 'x' && word[1] == '~' && spec_layout(word + 2, d->rank, d->shape, d->x_strides)) &&
                 !spec_modifier_common(p, word))
            return spec_fail(p, "reduce: unknown modifier \"%s\"", word);
    }
    if (c->masked != (d->rows_per_sample > 0))
        return spec_fail(p, "%s: samples without a number that counts, or one without samples", text);
    return d->function && c->axes && !*rest ? true : spec_fail(p, "%s: no function or no axes", text);
}

/* The terms of a result: their sum or extreme, the sum of their sizes, of their errors, and of extremes the largest. */
typedef struct line {
    long double v, magnitude, error;
    uint64_t terms;
} line;

static spec_num finish(spec_problem *p, cek_dtype type, const line *l)
{
    const uint32_t function = p->desc.reduce.function;
    const uint64_t n = function == CEK_REDUCE_SUM_SQUARES ? 2 * l->terms : l->terms;
    if (!l->terms)
        return spec_exact(function == CEK_REDUCE_MAX ? -INFINITY : function == CEK_REDUCE_MIN ? INFINITY : 0);
    spec_num sum = { l->v, l->error };
    if (function == CEK_REDUCE_SUM || function == CEK_REDUCE_MEAN || function == CEK_REDUCE_SUM_SQUARES) {
        sum = spec_sum(type, l->v, l->magnitude, n, spec_whole(p));
        sum.e += l->error;
    }
    return function == CEK_REDUCE_MEAN ? spec_div(type, sum, spec_exact(l->terms)) : sum;
}

static void step(uint32_t function, spec_num x, line *l)
{
    const bool first = !l->terms++;
    switch (function) {
    case CEK_REDUCE_MAX:
    case CEK_REDUCE_MIN:
        if (first || isnan(x.v) || (!isnan(l->v) && (function == CEK_REDUCE_MAX ? x.v > l->v : x.v < l->v)))
            l->v = x.v;
        l->error = fmaxl(l->error, x.e);
        break;
    case CEK_REDUCE_SUM_SQUARES:
        l->v += x.v * x.v;
        l->magnitude += x.v * x.v;
        l->error += 2 * fabsl(x.v) * x.e + x.e * x.e;
        break;
    case CEK_REDUCE_COUNT_NONFINITE: l->v += !isfinite(x.v); break;
    default:
        l->v += x.v;
        l->magnitude += fabsl(x.v);
        l->error += x.e;
    }
}

/* The operands that make terms; NULL where there is none. */
typedef struct parts {
    const spec_operand *x, *second, *centre;
} parts;

static spec_num term_of(const spec_problem *p, cek_dtype type, const parts *from, uint64_t n, uint64_t output)
{
    const cek_reduce_desc *d = &p->desc.reduce;
    spec_num x = spec_exact(from->x->value[spec_offset(d->rank, d->shape, d->x_strides, n)]);
    if (from->centre)
        x = spec_sub(spec_arithmetic(p, type), x, spec_exact(from->centre->value[output]));
    if (from->second)
        x = spec_mul(spec_arithmetic(p, type), x,
                     spec_exact(from->second->value[spec_offset(d->rank, d->shape, d->x2_strides, n)]));
    return x;
}

/* The operands beside X and Y. False without memory. */
static bool parts_add(spec_problem *p, const reduce_choice *c, cek_dtype type, uint64_t kept, parts *out)
{
    const cek_reduce_desc *d = &p->desc.reduce;
    spec_operand *second = NULL, *centre = NULL;
    const cek_batch_block batch = { .rows_valid = (uint32_t)c->valid };
    if (c->two &&
        !(second = spec_operand_add(p, CEK_REDUCE_X2, d->x_type, spec_extent(d->rank, d->shape, d->x2_strides))))
        return false;
    if (c->centre && !(centre = spec_operand_add(p, CEK_REDUCE_CENTRE, type, kept)))
        return false;
    if (c->masked && !spec_operand_block(p, CEK_REDUCE_BATCH, &batch, sizeof batch))
        return false;
    if (second)
        spec_operand_fill(p, second, -3, 3, true);
    if (centre)
        spec_operand_fill(p, centre, -2, 2, false);
    out->second = second;
    out->centre = centre;
    return true;
}

static bool counts(const cek_reduce_desc *d, const reduce_choice *c, uint64_t row)
{
    return !c->masked || row / d->rows_per_sample < c->valid;
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
    parts from = { .x = x };
    line *lines = spec_problem_alloc(p, kept, sizeof *lines);
    if (!x || !y || !lines || !parts_add(p, &c, type, kept, &from))
        return false;
    spec_operand_fill(p, x, d->x_type == CEK_U8 ? 0 : -3, 3, true);
    for (uint64_t i = 0; c.inf && i < x->count; i += 13)
        x->value[i] = i % 2 ? INFINITY : -INFINITY;
    if (c.acc)
        spec_operand_accumulate(p, y);
    for (uint64_t n = 0; n < all; n++) {
        uint64_t at = spec_offset(d->rank, d->shape, y_strides, n);
        if (counts(d, &c, n / (all / d->shape[0])))
            step(d->function, term_of(p, type, &from, n, at), &lines[at]);
        else if (d->x_strides[0] != 0) /* whatever it holds, where it is no row that counts as well */
            x->value[spec_offset(d->rank, d->shape, d->x_strides, n)] = NAN;
    }
    for (uint64_t i = 0; i < kept; i++)
        spec_operand_expect(y, i, finish(p, type, &lines[i]), type);
    return true;
}

const spec_kind spec_kind_reduce = SPEC_KIND("reduce", CEK_OP_REDUCE, CEK_PROFILE_INFERENCE, "5x7:a0:sum", reduce_cases,
                                             reduce_build);
