/* rows.c - cases and oracle of what works on the rows of a matrix of samples: softmax,
 * cross-entropy, squared error.
 *
 * Text: ROWSxCOLUMNS, then :log (softmax); :w (sample weights), :validN (samples that count), :perN
 * (rows of a sample), :acc, :grad (the gradient alone), :loss (loss and count alone), :alias (the
 * result replaces the input), :big (values of which the exponential overflows), :low (all of which it underflows),
 * :label (labels out of range), :tie (all logits of a row equal), :scale (loss scale), :idle (weights of either sign,
 * three of four 0, in rows of which some hold a NaN or a label out of range; all other labels are right). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "spec/problem.h"

#define CASE(text_, fills_)                                 \
    {                                                       \
        .text = text_, .types = SPEC_T_ALL, .fills = fills_ \
    }

/* Less than CEK_ALIGNMENT may be refused. */
#define UNALIGNED(text_)                                                                        \
    {                                                                                           \
        .text = text_, .types = SPEC_T_F32 | SPEC_T_LOW, .fills = SPEC_F_BOTH, .optional = true \
    }

static const spec_case softmax_cases[] = {
    CASE("1x1", SPEC_F_BOTH),
    CASE("3x10", SPEC_F_ALL),
    CASE("7x33", SPEC_F_ALL),
    CASE("2x1000", SPEC_F_BOTH),
    CASE("65x5", SPEC_F_ALL),
    CASE("5x17:big", SPEC_F_BOTH),
    CASE("5x17:low", SPEC_F_BOTH),
    CASE("5x17:log:low", SPEC_F_BOTH),
    CASE("9x31:alias", SPEC_F_BOTH),
    CASE("5x17:masked", SPEC_F_BOTH),
    CASE("5x17:log:masked", SPEC_F_BOTH),
    CASE("8x16:tie", SPEC_F(WHOLE)),
    CASE("12x40:det", SPEC_F(REAL)),
    CASE("1x1:log", SPEC_F_BOTH),
    CASE("3x10:log", SPEC_F_ALL),
    CASE("7x33:log", SPEC_F_ALL),
    UNALIGNED("7x33:align4"),
    UNALIGNED("2x1000:log:align4"),
    CASE("2x1000:log", SPEC_F_BOTH),
    CASE("5x17:log:big", SPEC_F_BOTH),
    CASE("9x31:log:alias", SPEC_F_BOTH),
};
static const spec_case cross_entropy_cases[] = {
    CASE("1x2", SPEC_F_BOTH),
    CASE("6x10", SPEC_F_ALL),
    CASE("64x10", SPEC_F_BOTH),
    CASE("7x33", SPEC_F_ALL),
    CASE("3x1000", SPEC_F_BOTH),
    CASE("300x3", SPEC_F_BOTH),
    CASE("5x1", SPEC_F_BOTH),
    CASE("6x10:grad", SPEC_F_BOTH),
    CASE("6x10:loss", SPEC_F_ALL),
    CASE("6x10:loss:acc", SPEC_F_BOTH),
    CASE("13x10:acc", SPEC_F_BOTH),
    CASE("13x10:accloss", SPEC_F_BOTH),  /* LOSS alone is added to, */
    CASE("13x10:acccount", SPEC_F_BOTH), /* CORRECT alone */
    CASE("13x10:w", SPEC_F_ALL),
    CASE("13x10:w:acc", SPEC_F_BOTH),
    CASE("22x10:idle", SPEC_F_BOTH),
    CASE("22x10:idle:loss", SPEC_F_BOTH),
    CASE("8x10:valid5", SPEC_F_ALL),
    CASE("8x10:valid0", SPEC_F_BOTH),
    CASE("8x10:valid8", SPEC_F_BOTH),
    CASE("12x10:per3:valid2:w", SPEC_F_BOTH),
    CASE("11x10:per4:valid2:w", SPEC_F_BOTH), /* the last sample has fewer rows */
    CASE("11x10:per4:valid3", SPEC_F_BOTH),
    CASE("8x10:loss:valid3:acc", SPEC_F_BOTH),
    CASE("6x10:per2147483648:valid2", SPEC_F_BOTH), /* rows that count are more than 32 bits number */
    CASE("9x12:alias", SPEC_F_BOTH),
    CASE("9x12:alias:valid4", SPEC_F_BOTH),
    CASE("6x17:big", SPEC_F_BOTH),
    CASE("6x17:low", SPEC_F_BOTH),
    CASE("9x10:label", SPEC_F_BOTH),
    CASE("9x10:label:loss", SPEC_F_BOTH),
    CASE("9x16:tie", SPEC_F(WHOLE)),
    CASE("9x16:tie:loss", SPEC_F(WHOLE)),
    CASE("6x10:scale:w", SPEC_F_BOTH),
    CASE("40x10:det", SPEC_F(REAL)),
    UNALIGNED("6x10:w:align4"),
};
static const spec_case squared_error_cases[] = {
    CASE("1x1", SPEC_F_ALL),
    CASE("128x1", SPEC_F_ALL),
    CASE("20x1:w", SPEC_F_BOTH),
    CASE("22x5:idle", SPEC_F_BOTH),
    UNALIGNED("7x33:w:align4"),
    CASE("7x13", SPEC_F_ALL),
    CASE("300x5", SPEC_F_BOTH),
    CASE("7x13:grad", SPEC_F_BOTH),
    CASE("7x13:loss", SPEC_F_ALL),
    CASE("7x13:loss:acc", SPEC_F_BOTH),
    CASE("7x13:acc:w", SPEC_F_BOTH),
    CASE("8x3:valid5", SPEC_F_ALL),
    CASE("8x3:valid0:acc", SPEC_F_BOTH),
    CASE("12x4:per3:valid2:w", SPEC_F_BOTH),
    CASE("11x4:per4:valid2", SPEC_F_BOTH),
    CASE("6x4:per2147483648:valid2", SPEC_F_BOTH),
    CASE("9x12:alias", SPEC_F_BOTH),
    CASE("6x10:scale", SPEC_F_BOTH),
    CASE("40x10:det", SPEC_F(REAL)),
};

typedef struct rows_choice {
    bool masked;
    uint64_t rows, columns, per, valid;
    bool has_valid, weights, acc, acc_loss, acc_count, no_loss, no_grad, alias, big, low, label, tie, log, scale, idle;
} rows_choice;

static bool rows_read(const char *text, spec_problem *p, rows_choice *c)
{
    uint64_t shape[CEK_RANK_MAX];
    const char *rest = text;
    char word[32];
    if (spec_shape_read(&rest, shape) != 2)
        return spec_fail(p, "%s: not ROWSxCOLUMNS", text);
    *c = (rows_choice){ .rows = shape[0], .columns = shape[1], .per = 1 };
    while (spec_modifier(&rest, word, sizeof word)) {
        if (!strcmp(word, "log"))
            c->log = true;
        else if (!strcmp(word, "w"))
            c->weights = true;
        else if (!strcmp(word, "idle"))
            c->weights = c->idle = true;
        else if (!strcmp(word, "acc"))
            c->acc = true;
        else if (!strcmp(word, "accloss"))
            c->acc_loss = true;
        else if (!strcmp(word, "acccount"))
            c->acc_count = true;
        else if (!strcmp(word, "grad"))
            c->no_loss = true;
        else if (!strcmp(word, "loss"))
            c->no_grad = true;
        else if (!strcmp(word, "alias"))
            c->alias = true;
        else if (!strcmp(word, "big"))
            c->big = true;
        else if (!strcmp(word, "low"))
            c->low = true;
        else if (!strcmp(word, "label"))
            c->label = true;
        else if (!strcmp(word, "masked"))
            c->masked = true;
        else if (!strcmp(word, "tie"))
            c->tie = true;
        else if (!strcmp(word, "scale"))
            c->scale = true;
        else if (spec_modifier_number(word, "valid", &c->valid))
            c->has_valid = true;
        else if (spec_modifier_number(word, "per", &c->per))
            continue;
        else if (!spec_modifier_common(p, word))
            return spec_fail(p, "rows: unknown modifier \"%s\"", word);
    }
    return *rest ? spec_fail(p, "%s: unknown \"%s\"", text, rest) : true;
}

static void fill_rows(spec_problem *p, const rows_choice *c, spec_operand *o)
{
    spec_operand_fill(p, o, -4, 4, true);
    for (uint64_t i = 0; i < o->count; i++) {
        if (c->tie)
            o->value[i] = o->value[i - i % c->columns];
        if (c->masked && i % c->columns % 3 == 1)
            o->value[i] = -INFINITY;
        if (c->big)
            o->value[i] *= p->type == CEK_F16 ? 1024 : 8192;
        if (c->low)
            o->value[i] = spec_round(o->value[i] - 1000, p->type);
        /* Rows of padding hold finite values, as the host promises. */
        if (c->has_valid && i / c->columns / c->per >= c->valid && isnan(o->value[i]))
            o->value[i] = 1;
    }
}

/* One row's softmax: the largest value, the logarithm of the sum of exponentials above it. */
typedef struct row_sum {
    long double top;
    spec_num log_sum, sum;
} row_sum;

/* exp(x - top), the difference being rounded once. */
static spec_num shifted_exp(cek_dtype type, double x, long double top)
{
    return x == -INFINITY && isfinite(top) ? spec_exact(0)
                                           : spec_exp(type, spec_sub(type, spec_exact(x), spec_exact(top)));
}

static row_sum row_sum_of(cek_dtype type, const double *x, uint64_t columns)
{
    row_sum r = { .top = -INFINITY };
    long double v = 0, e = 0;
    for (uint64_t j = 0; j < columns; j++)
        r.top = isnan(x[j]) || isnan(r.top) ? NAN : fmaxl(r.top, x[j]);
    for (uint64_t j = 0; j < columns; j++) {
        spec_num t = shifted_exp(type, x[j], r.top);
        v += t.v;
        e += t.e;
    }
    r.sum = spec_sum(type, v, v, columns, false);
    r.sum.e += e;
    r.log_sum = spec_log(type, r.sum);
    r.log_sum.e += 2 * SPEC_FUNCTION_ULPS *
                   spec_roundoff(type); /* near sum = 1 the logarithm is absolute, not relative */
    return r;
}

static bool softmax_build(const char *text, spec_problem *p)
{
    rows_choice c;
    if (!rows_read(text, p, &c))
        return false;
    cek_softmax_desc *d = &p->desc.softmax;
    d->rows = c.rows, d->columns = c.columns, d->type = p->type;
    d->flags = c.log ? CEK_SOFTMAX_LOG : 0;
    spec_operand *x = spec_operand_add(p, CEK_SOFTMAX_X, p->type, c.rows * c.columns);
    spec_operand *y = spec_operand_add(p, CEK_SOFTMAX_Y, p->type, c.rows * c.columns);
    if (!x || !y)
        return false;
    fill_rows(p, &c, x);
    y->alias = c.alias ? 1 + CEK_SOFTMAX_X : 0;
    cek_dtype type = spec_sum_type(p->type);
    for (uint64_t r = 0; r < c.rows; r++) {
        const double *row = x->value + r * c.columns;
        row_sum s = row_sum_of(type, row, c.columns);
        for (uint64_t j = 0; j < c.columns; j++) {
            spec_num shifted = spec_sub(type, spec_exact(row[j]), spec_exact(s.top));
            /* x - (top + log sum) is as good a way: its rounding is relative to the largest of the
             * three */
            shifted.e += spec_roundoff(type) * fabsl(s.top) * (c.log ? 2 : 0);
            spec_num v = c.log ? spec_sub(type, shifted, s.log_sum)
                               : spec_div(type, shifted_exp(type, row[j], s.top), s.sum);
            if (c.masked && row[j] == -INFINITY)
                v = spec_exact(c.log ? -INFINITY : 0);
            spec_operand_expect(y, r * c.columns + j, v, type);
        }
    }
    return true;
}

/* ---- losses ---- */

/* The blocks of a loss: global divisor, loss scale, rows that count. */
static bool loss_blocks(spec_problem *p, const rows_choice *c, uint32_t step_slot, uint32_t batch_slot, double *factor)
{
    bool grad = !c->no_grad;
    double inv_n = spec_whole(p) ? 0.25 : 1.0 / 37, scale = c->scale ? 1024 : 1;
    cek_step_block step = { .random_key = 1 };
    step.inv_n.hi = (float)inv_n, step.inv_n.lo = (float)(inv_n - (float)inv_n);
    step.loss_scale.hi = (float)scale;
    *factor = (p->type == CEK_F64 ? (double)step.inv_n.hi + step.inv_n.lo : step.inv_n.hi) * scale;
    if (grad && !spec_operand_block(p, step_slot, &step, sizeof step))
        return false;
    cek_batch_block batch = { .sample_base = 77, .rows_valid = (uint32_t)c->valid };
    return !c->has_valid || spec_operand_block(p, batch_slot, &batch, sizeof batch);
}

static bool row_counts(const rows_choice *c, uint64_t row)
{
    return !c->has_valid || row / c->per < c->valid;
}

/* A sum of numbers with errors of their own. */
typedef struct total {
    long double v, e, magnitude;
    uint64_t terms;
} total;

static void total_add(total *t, spec_num x)
{
    t->v += x.v;
    t->e += x.e;
    t->magnitude += fabsl(x.v);
    t->terms++;
}

static spec_num total_of(const total *t, cek_dtype type, bool whole)
{
    spec_num s = t->terms ? spec_sum(type, t->v, t->magnitude, t->terms, whole && t->e == 0) : spec_exact(0);
    s.e += t->e;
    return s;
}

static uint64_t first_largest(const double *row, uint64_t columns)
{
    uint64_t best = 0;
    for (uint64_t j = 0; j < columns; j++) {
        if (isnan(row[j]))
            return columns;
        if (row[j] > row[best])
            best = j;
    }
    return isinf(row[best]) ? columns : best;
}

typedef struct cross_entropy {
    spec_operand *logits, *labels, *weights, *dlogits, *loss, *correct;
    double factor;
} cross_entropy;

static void cross_entropy_row(const rows_choice *c, const cross_entropy *o, cek_dtype type, uint64_t r, total *loss,
                              uint64_t *correct)
{
    const double *row = o->logits->value + r * c->columns;
    double label = o->labels->value[r], w = o->weights ? o->weights->value[r] : 1;
    bool counts = row_counts(c, r), known = label >= 0 && label < (double)c->columns;
    row_sum s = row_sum_of(type, row, c->columns);
    if (counts) {
        spec_num gap = known ? spec_sub(type, spec_exact(s.top), spec_exact(row[(uint64_t)label])) : spec_exact(NAN);
        gap.e += 2 * spec_roundoff(type) * fabsl(s.top); /* as in softmax: top + log sum may come first */
        if (w != 0)
            total_add(loss, spec_mul(type, spec_exact(w), spec_add(type, gap, s.log_sum)));
        *correct += known && first_largest(row, c->columns) == (uint64_t)label;
    }
    for (uint64_t j = 0; o->dlogits && j < c->columns; j++) {
        spec_num v = spec_exact(0);
        if (counts && w != 0 && !known)
            v = spec_exact(NAN);
        else if (counts && w != 0) {
            spec_num prob = spec_div(type, shifted_exp(type, row[j], s.top), s.sum);
            v = spec_sub(type, prob, spec_exact(j == (uint64_t)label));
            spec_num factor = { o->factor, 2 * spec_roundoff(type) * fabs(o->factor) };
            v = spec_mul(type, spec_mul(type, factor, spec_exact(w)), v);
        }
        spec_operand_expect(o->dlogits, r * c->columns + j, v, type);
    }
}

static void labels_fill(spec_problem *p, const rows_choice *c, spec_operand *labels)
{
    spec_operand_fill(p, labels, 0, (int)c->columns - 1, false);
    for (uint64_t r = 0; c->label && r < c->rows; r += 3)
        labels->value[r] = r % 2 ? (double)c->columns : r % 4 ? -1 : INT32_MIN;
}

/* Right labels, and rows without weight that hold what they like. */
static void idle_fill(const rows_choice *c, spec_operand *x, spec_operand *labels, spec_operand *weights)
{
    for (uint64_t r = 0; c->idle && r < c->rows; r++) {
        double *row = x->value + r * c->columns;
        if (labels)
            labels->value[r] = (double)(r % 4 == 3 ? c->columns : first_largest(row, c->columns));
        weights->value[r] = r % 4 ? 0 : r % 8 ? -2 : 1 + (double)(r % 3);
        if (r % 4 == 2)
            row[c->columns - 1] = NAN;
    }
}

static bool cross_entropy_build(const char *text, spec_problem *p)
{
    rows_choice c;
    cross_entropy o = { 0 };
    if (!rows_read(text, p, &c))
        return false;
    cek_cross_entropy_desc *d = &p->desc.cross_entropy;
    d->rows = c.rows, d->classes = c.columns, d->rows_per_sample = c.per, d->type = p->type;
    cek_dtype type = spec_sum_type(p->type);
    o.logits = spec_operand_add(p, CEK_CROSS_ENTROPY_LOGITS, p->type, c.rows * c.columns);
    o.labels = spec_operand_add(p, CEK_CROSS_ENTROPY_LABELS, CEK_I32, c.rows);
    o.weights = c.weights ? spec_operand_add(p, CEK_CROSS_ENTROPY_WEIGHTS, CEK_F32, c.rows) : NULL;
    o.dlogits = c.no_grad ? NULL : spec_operand_add(p, CEK_CROSS_ENTROPY_DLOGITS, p->type, c.rows * c.columns);
    o.loss = c.no_loss ? NULL : spec_operand_add(p, CEK_CROSS_ENTROPY_LOSS, type, 1);
    o.correct = c.no_loss ? NULL : spec_operand_add(p, CEK_CROSS_ENTROPY_CORRECT, CEK_I32, 1);
    if (*p->error || !loss_blocks(p, &c, CEK_CROSS_ENTROPY_STEP, CEK_CROSS_ENTROPY_BATCH, &o.factor))
        return false;
    fill_rows(p, &c, o.logits);
    labels_fill(p, &c, o.labels);
    if (o.weights)
        spec_operand_fill(p, o.weights, 0, 3, false);
    idle_fill(&c, o.logits, o.labels, o.weights);
    if (o.dlogits)
        o.dlogits->alias = c.alias ? 1 + CEK_CROSS_ENTROPY_LOGITS : 0;
    if ((c.acc || c.acc_loss) && o.loss)
        spec_operand_accumulate(p, o.loss);
    if ((c.acc || c.acc_count) && o.correct)
        spec_operand_accumulate(p, o.correct);
    total loss = { 0 };
    uint64_t correct = 0;
    for (uint64_t r = 0; r < c.rows; r++)
        cross_entropy_row(&c, &o, type, r, &loss, &correct);
    if (o.loss) {
        spec_operand_expect(o.loss, 0, total_of(&loss, type, false), type);
        spec_operand_expect(o.correct, 0, spec_exact(correct), CEK_I32);
    }
    return true;
}

static bool squared_error_build(const char *text, spec_problem *p)
{
    rows_choice c;
    double factor;
    if (!rows_read(text, p, &c))
        return false;
    cek_squared_error_desc *d = &p->desc.squared_error;
    d->rows = c.rows, d->columns = c.columns, d->rows_per_sample = c.per, d->type = p->type;
    cek_dtype type = spec_sum_type(p->type);
    spec_operand *x = spec_operand_add(p, CEK_SQUARED_ERROR_PREDICTION, p->type, c.rows * c.columns);
    spec_operand *t = spec_operand_add(p, CEK_SQUARED_ERROR_TARGET, type, c.rows * c.columns);
    spec_operand *w = c.weights ? spec_operand_add(p, CEK_SQUARED_ERROR_WEIGHTS, CEK_F32, c.rows) : NULL;
    spec_operand *dx = c.no_grad ? NULL
                                 : spec_operand_add(p, CEK_SQUARED_ERROR_DPREDICTION, p->type, c.rows * c.columns);
    spec_operand *loss = c.no_loss ? NULL : spec_operand_add(p, CEK_SQUARED_ERROR_LOSS, type, 1);
    if (*p->error || !loss_blocks(p, &c, CEK_SQUARED_ERROR_STEP, CEK_SQUARED_ERROR_BATCH, &factor))
        return false;
    fill_rows(p, &c, x);
    spec_operand_fill(p, t, -4, 4, false);
    if (w)
        spec_operand_fill(p, w, 0, 3, false);
    idle_fill(&c, x, NULL, w);
    if (dx)
        dx->alias = c.alias ? 1 + CEK_SQUARED_ERROR_PREDICTION : 0;
    if (c.acc && loss)
        spec_operand_accumulate(p, loss);
    total sum = { 0 };
    for (uint64_t i = 0; i < x->count; i++) {
        uint64_t r = i / c.columns;
        spec_num weight = spec_exact(w ? w->value[r] : 1),
                 gap = spec_sub(type, spec_exact(x->value[i]), spec_exact(t->value[i]));
        spec_num gradient = spec_exact(0);
        if (row_counts(&c, r) && weight.v != 0) {
            total_add(&sum, spec_mul(type, weight, spec_mul(type, gap, gap)));
            gradient = spec_mul(type, spec_mul(type, spec_mul(type, spec_exact(factor), weight), spec_exact(2)), gap);
        }
        if (dx)
            spec_operand_expect(dx, i, gradient, type);
    }
    if (loss)
        spec_operand_expect(loss, 0, total_of(&sum, type, spec_whole(p)), type);
    return true;
}

const spec_kind spec_kind_softmax = SPEC_KIND("softmax", CEK_OP_SOFTMAX, CEK_PROFILE_INFERENCE, "3x10", softmax_cases,
                                              softmax_build);
const spec_kind spec_kind_cross_entropy = SPEC_KIND("cross_entropy", CEK_OP_CROSS_ENTROPY, CEK_PROFILE_TRAINING, "6x10",
                                                    cross_entropy_cases, cross_entropy_build);
const spec_kind spec_kind_squared_error = SPEC_KIND("squared_error", CEK_OP_SQUARED_ERROR, CEK_PROFILE_TRAINING, "7x13",
                                                    squared_error_cases, squared_error_build);
