/* random.c - cases and oracle of random numbers and dropout: counters, masks and words must be
 * exact.
 *
 * Text: ROWSxCOLUMNS, then :perN (rows of a sample), :baseN (first sample of the micro-batch);
 * random: :uniform or :normal; dropout: :pN (thousandths that are dropped), :exact (the threshold is the word of the
 * first element), :alias. */
#include <math.h>
#include <string.h>

#include "spec/problem.h"

#define CASE(text_, fills_)                                 \
    {                                                       \
        .text = text_, .types = SPEC_T_ALL, .fills = fills_ \
    }
static const spec_case dropout_cases[] = {
    CASE("1x1:p500", SPEC_F_BOTH),
    CASE("3x7:p500", SPEC_F_ALL),
    CASE("13x33:p500", SPEC_F_BOTH),
    CASE("64x130:p500", SPEC_F_BOTH),
    CASE("5x1000:p100", SPEC_F_BOTH),
    CASE("5x40:p0", SPEC_F_ALL),
    CASE("5x40:p999", SPEC_F_BOTH),
    CASE("12x10:p250:per4", SPEC_F_BOTH),
    CASE("12x9:p250:per3:base7", SPEC_F_BOTH),
    CASE("11x10:p250:per4", SPEC_F_BOTH),       /* the last sample has fewer rows */
    CASE("3x5:p250:per500000000", SPEC_F_BOTH), /* there is little of the only one */
    CASE("9x9:p500:base4294967295", SPEC_F_BOTH),
    CASE("7x31:p500:alias", SPEC_F_BOTH),
    CASE("6x22:p750:base3:alias", SPEC_F_ALL),
    CASE("3x7:exact", SPEC_F_BOTH),
    CASE("8x50:p300:det", SPEC_F(REAL)),
    { .text = "13x33:p500:align4", .types = SPEC_T_F32 | SPEC_T_LOW, .fills = SPEC_F_BOTH, .optional = true },
};
static const spec_case random_cases[] = {
    CASE("1x1:uniform", SPEC_F(REAL)),
    CASE("3x7:uniform", SPEC_F(REAL)),
    CASE("64x130:uniform", SPEC_F(REAL)),
    CASE("12x9:uniform:per3:base7", SPEC_F(REAL)),
    CASE("11x9:uniform:per4:base7", SPEC_F(REAL)), /* the last sample has fewer rows */
    CASE("3x5:uniform:per500000000", SPEC_F(REAL)),
    CASE("9x9:uniform:base4294967295", SPEC_F(REAL)),
    CASE("8x50:uniform:det", SPEC_F(REAL)),
    CASE("1x1:normal", SPEC_F(REAL)),
    CASE("3x7:normal", SPEC_F(REAL)),
    CASE("64x130:normal", SPEC_F(REAL)),
    CASE("12x9:normal:per3:base7", SPEC_F(REAL)),
    CASE("9x9:normal:base4294967295", SPEC_F(REAL)),
    CASE("8x50:normal:det", SPEC_F(REAL)),
};

typedef struct random_choice {
    uint64_t rows, columns, per, base, p;
    bool has_base, alias, normal, exact;
} random_choice;

static const uint64_t random_key = 0x123456789abcdef1u;
static const uint32_t random_stream = 0x9e3779b5u; /* all 32 bits count */
static bool random_read(const char *text, spec_problem *p, random_choice *c)
{
    uint64_t shape[CEK_RANK_MAX];
    const char *rest = text;
    char word[32];
    if (spec_shape_read(&rest, shape) != 2)
        return spec_fail(p, "%s: not ROWSxCOLUMNS", text);
    *c = (random_choice){ .rows = shape[0], .columns = shape[1], .per = 1 };
    while (spec_modifier(&rest, word, sizeof word)) {
        if (!strcmp(word, "alias"))
            c->alias = true;
        else if (!strcmp(word, "exact"))
            c->exact = true;
        else if (!strcmp(word, "normal"))
            c->normal = true;
        else if (!strcmp(word, "uniform"))
            c->normal = false;
        else if (spec_modifier_number(word, "base", &c->base))
            c->has_base = true;
        else if (!spec_modifier_number(word, "per", &c->per) && !spec_modifier_number(word, "p", &c->p) &&
                 !spec_modifier_common(p, word))
            return spec_fail(p, "random: unknown modifier \"%s\"", word);
    }
    return true;
}

static bool random_blocks(spec_problem *p, const random_choice *c, uint32_t step_slot, uint32_t batch_slot)
{
    cek_step_block step = { .random_key = random_key };
    cek_batch_block batch = { .sample_base = c->base, .rows_valid = 1 }; /* which says nothing here */
    return spec_operand_block(p, step_slot, &step, sizeof step) &&
           (!c->has_base || spec_operand_block(p, batch_slot, &batch, sizeof batch));
}

/* The four words of the block that element (row, column) belongs to; returns which of them is its
 * own. */
static uint32_t words_of(const random_choice *c, uint64_t row, uint64_t column, uint32_t word[4])
{
    uint64_t index = row % c->per * c->columns + column;
    spec_philox(random_key, c->base + row / c->per, random_stream, index / 4, word);
    return (uint32_t)(index % 4);
}

static bool dropout_build(const char *text, spec_problem *p)
{
    random_choice c;
    if (!random_read(text, p, &c))
        return false;
    cek_dropout_desc *d = &p->desc.dropout;
    double drop = (double)c.p / 1000;
    d->rows = c.rows, d->columns = c.columns, d->rows_per_sample = c.per, d->type = p->type;
    d->stream = random_stream;
    d->scale = 1 / (1 - drop);
    d->threshold = (uint32_t)floor(drop * 0x1p32 + 0.5);
    if (c.exact) {
        uint32_t word[4];
        d->threshold = word[words_of(&c, 0, 0, word)];
    }
    spec_operand *x = spec_operand_add(p, CEK_DROPOUT_X, p->type, c.rows * c.columns);
    spec_operand *y = spec_operand_add(p, CEK_DROPOUT_Y, p->type, c.rows * c.columns);
    if (!x || !y || !random_blocks(p, &c, CEK_DROPOUT_STEP, CEK_DROPOUT_BATCH))
        return false;
    spec_operand_fill(p, x, 1, 5, false);
    y->alias = c.alias ? 1 + CEK_DROPOUT_X : 0;
    cek_dtype type = spec_sum_type(p->type);
    spec_num scale = { d->scale, spec_round(d->scale, type) == d->scale ? 0 : spec_roundoff(type) * d->scale };
    for (uint64_t i = 0; i < x->count; i++) {
        uint32_t word[4], n = words_of(&c, i / c.columns, i % c.columns, word);
        bool keep = word[n] >= d->threshold;
        if (p->fill == SPEC_NAN && i % 5 == 0)
            x->value[i] = NAN; /* a kept NaN is NaN, a dropped one is 0 */
        spec_operand_expect(y, i, keep ? spec_mul(type, spec_exact(x->value[i]), scale) : spec_exact(0), type);
    }
    return true;
}

static spec_num uniform_of(cek_dtype type, const cek_random_desc *d, uint32_t word)
{
    spec_num low = spec_exact(spec_round(d->a, type)), high = spec_exact(spec_round(d->b, type));
    spec_num width = spec_sub(type, high, low);
    width.e += spec_roundoff(type) *
               (fabs(d->a) + fabs(d->b)); /* the bounds may be rounded before or after the difference */
    return spec_add(type, low, spec_mul(type, width, spec_exact((word >> 8) * 0x1p-24L)));
}

static spec_num normal_of(cek_dtype type, const cek_random_desc *d, const uint32_t word[4], uint32_t n)
{
    uint32_t pair = n & 2;
    long double u1 = ((word[pair] >> 8) + 1) * 0x1p-24L, angle = 2 * acosl(-1) * ((word[pair + 1] >> 8) * 0x1p-24L);
    spec_num radius = spec_sqrt(type, spec_mul(type, spec_exact(-2), spec_log(type, spec_exact(u1))));
    /* The angle, below 2 pi, is rounded twice; sine and cosine are within their own error of 1. */
    spec_num wave = { n & 1 ? sinl(angle) : cosl(angle), (2 * 6.3L + 2 * SPEC_FUNCTION_ULPS) * spec_roundoff(type) };
    spec_num std = spec_exact(spec_round(d->b, type)), mean = spec_exact(spec_round(d->a, type));
    return spec_add(type, mean, spec_mul(type, std, spec_mul(type, radius, wave)));
}

static bool random_build(const char *text, spec_problem *p)
{
    random_choice c;
    if (!random_read(text, p, &c))
        return false;
    cek_random_desc *d = &p->desc.random;
    d->rows = c.rows, d->columns = c.columns, d->rows_per_sample = c.per, d->type = p->type;
    d->distribution = c.normal ? CEK_RANDOM_NORMAL : CEK_RANDOM_UNIFORM;
    d->stream = random_stream;
    d->a = c.normal ? 0.5 : -0.75, d->b = c.normal ? 2 : 1.25;
    spec_operand *y = spec_operand_add(p, CEK_RANDOM_Y, p->type, c.rows * c.columns);
    if (!y || !random_blocks(p, &c, CEK_RANDOM_STEP, CEK_RANDOM_BATCH))
        return false;
    cek_dtype type = spec_sum_type(p->type);
    for (uint64_t i = 0; i < y->count; i++) {
        uint32_t word[4], n = words_of(&c, i / c.columns, i % c.columns, word);
        spec_operand_expect(y, i, c.normal ? normal_of(type, d, word, n) : uniform_of(type, d, word[n]), type);
    }
    return true;
}

const spec_kind spec_kind_dropout = SPEC_KIND("dropout", CEK_OP_DROPOUT, CEK_PROFILE_TRAINING, "3x7:p500",
                                              dropout_cases, dropout_build);
const spec_kind spec_kind_random = SPEC_KIND("random", CEK_OP_RANDOM, CEK_PROFILE_TRAINING, "3x7:uniform", random_cases,
                                             random_build);
