/* gather.c - cases and oracle of gather and scatter_add.
 *
 * Text: BATCHxROWSxCOUNTxCOLUMNS, then :shared (one index for all batches), :out (some of the index lies outside),
 * :one (all of it is one row), :each (no row is named twice, where there are enough), :acc. */
#include <math.h>
#include <string.h>

#include "spec/problem.h"

#define CASE(text_, types_, fills_)                     \
    {                                                   \
        .text = text_, .types = types_, .fills = fills_ \
    }
#define EVERY_TYPE (SPEC_T_ALL | SPEC_T(U8) | SPEC_T(I32))
static const spec_case gather_cases[] = {
    CASE("1x1x1x1", EVERY_TYPE, SPEC_F_ALL),
    CASE("1x7x5x3", EVERY_TYPE, SPEC_F_ALL),
    CASE("1x7x50x3", EVERY_TYPE, SPEC_F_BOTH),     /* rows are named again and again */
    CASE("1x1000x37x64", SPEC_T_ALL, SPEC_F_ALL),  /* an embedding */
    CASE("1x50x700x129", SPEC_T_ALL, SPEC_F_BOTH), /* more than one piece */
    CASE("1x7x20x5:out", EVERY_TYPE, SPEC_F_BOTH),
    CASE("1x9x20x5:bits", EVERY_TYPE, SPEC_F(WHOLE)), /* they are moved as they are */
    CASE("3x6x4x5", SPEC_T_ALL, SPEC_F_ALL),
    CASE("3x6x4x5:shared", EVERY_TYPE, SPEC_F_BOTH),
    CASE("3x6x9x5:shared:out", SPEC_T_ALL, SPEC_F_BOTH),
    CASE("5x300x8x1:out", SPEC_T_ALL, SPEC_F_BOTH), /* one element of each row */
    CASE("1x9x9x9:one:det", SPEC_T_ALL, SPEC_F(REAL)),
    { .text = "1x9x9x9:align4", .types = SPEC_T(F32), .fills = SPEC_F_BOTH, .optional = true },
};
static const spec_case scatter_cases[] = {
    CASE("1x1x1x1", SPEC_T_ALL, SPEC_F_ALL),
    CASE("1x7x5x3", SPEC_T_ALL, SPEC_F_ALL),
    CASE("1x7x50x3", SPEC_T_ALL, SPEC_F_ALL),          /* a NaN in the rows that it is added to alone */
    CASE("1x1000x37x64", SPEC_T_ALL, SPEC_F_BOTH),     /* rows that nothing names are 0 */
    CASE("1x1000x37x64:acc", SPEC_T_ALL, SPEC_F_BOTH), /* or stay */
    CASE("1x50x700x129", SPEC_T_ALL, SPEC_F_BOTH),
    CASE("1x50x700x129:one:acc", SPEC_T_ALL, SPEC_F_BOTH),
    CASE("1x900x40x7:each", SPEC_T_ALL, SPEC_F_ALL),
    CASE("3x90x70x2:out", SPEC_T_ALL, SPEC_F_BOTH), /* several long indexes */
    CASE("2x100x130x3:each:acc", SPEC_T_ALL, SPEC_F_BOTH),
    CASE("1x7x20x5:out", SPEC_T_ALL, SPEC_F_BOTH), /* padding is left out */
    CASE("1x7x20x5:out:acc", SPEC_T_ALL, SPEC_F_BOTH),
    CASE("3x6x4x5", SPEC_T_ALL, SPEC_F_ALL),
    CASE("3x6x11x5:shared:out:acc", SPEC_T_ALL, SPEC_F_BOTH),
    CASE("5x300x8x1", SPEC_T_ALL, SPEC_F_BOTH),
    CASE("1x9x500x9:one:det", SPEC_T_ALL, SPEC_F(REAL)),
    { .text = "1x9x9x9:align4", .types = SPEC_T(F32), .fills = SPEC_F_BOTH, .optional = true },
};

typedef struct choice {
    bool out, one, each, acc, bits;
} choice;

static bool gather_read(const char *text, spec_problem *p, choice *c)
{
    cek_gather_desc *d = &p->desc.gather;
    uint64_t shape[CEK_RANK_MAX] = { 0 };
    const char *rest = text;
    char word[32];
    if (spec_shape_read(&rest, shape) != 4)
        return spec_fail(p, "%s: not BATCHxROWSxCOUNTxCOLUMNS", text);
    d->batch = shape[0], d->rows = shape[1], d->count = shape[2], d->columns = shape[3];
    d->type = p->type;
    while (spec_modifier(&rest, word, sizeof word)) {
        if (!strcmp(word, "shared"))
            d->flags |= CEK_GATHER_SHARED;
        else if (!strcmp(word, "out"))
            c->out = true;
        else if (!strcmp(word, "one"))
            c->one = true;
        else if (!strcmp(word, "each"))
            c->each = true;
        else if (!strcmp(word, "bits") && d->op.kind == CEK_OP_GATHER)
            c->bits = true;
        else if (!strcmp(word, "acc") && d->op.kind == CEK_OP_SCATTER_ADD)
            c->acc = true;
        else if (!spec_modifier_common(p, word))
            return spec_fail(p, "gather: unknown modifier \"%s\"", word);
    }
    return true;
}

static void index_fill(spec_problem *p, spec_operand *index, const choice *c)
{
    static const double outside[] = { -1, INT32_MIN, INT32_MAX, 0 };
    const uint64_t rows = p->desc.gather.rows;
    for (uint64_t i = 0; i < index->count; i++) {
        uint64_t row = c->one ? rows / 2 : c->each ? i * 7 % rows : spec_mix(p->seed + 77, i) % rows;
        index->value[i] = (double)row;
        if (c->out && i % 3 == 1)
            index->value[i] = i / 3 % 4 == 3 ? (double)rows : outside[i / 3 % 4]; /* the first that is none */
    }
}

/* The index, and of element i of batch b which row of all tables it names; UINT64_MAX: none. */
static spec_operand *index_add(spec_problem *p, const choice *c)
{
    const cek_gather_desc *d = &p->desc.gather;
    spec_operand *index = spec_operand_add(p, CEK_GATHER_INDEX, CEK_I32,
                                           (d->flags & CEK_GATHER_SHARED ? 1 : d->batch) * d->count);
    if (index)
        index_fill(p, index, c);
    return index;
}

static uint64_t row_of(const cek_gather_desc *d, const spec_operand *index, uint64_t b, uint64_t i)
{
    double row = index->value[(d->flags & CEK_GATHER_SHARED ? 0 : b * d->count) + i];
    return row >= 0 && row < (double)d->rows ? b * d->rows + (uint64_t)row : UINT64_MAX;
}

/* What arithmetic would change: a zero of sign, a denormal (where they count), more bits than f32 has. */
static void bits_fill(const spec_problem *p, spec_operand *table)
{
    const double marks[] = { -0.0, p->flushes ? 1 : 0x1p-149, 16777217, -2147483647 };
    for (uint64_t i = 0; i < table->count && table->type != CEK_U8; i += 2)
        table->value[i] = spec_round(marks[i / 2 % 4], table->type);
}

static bool gather_build(const char *text, spec_problem *p)
{
    cek_gather_desc *d = &p->desc.gather;
    choice c = { 0 };
    if (!gather_read(text, p, &c))
        return false;
    spec_operand *table = spec_operand_add(p, CEK_GATHER_TABLE, d->type, d->batch * d->rows * d->columns);
    spec_operand *index = index_add(p, &c);
    spec_operand *y = spec_operand_add(p, CEK_GATHER_Y, d->type, d->batch * d->count * d->columns);
    if (!table || !index || !y)
        return false;
    const bool whole = d->type == CEK_U8 || d->type == CEK_I32;
    spec_operand_fill(p, table, d->type == CEK_U8 ? 0 : -100, d->type == CEK_U8 ? 255 : 100, true);
    y->zeros = !whole;
    if (c.bits)
        bits_fill(p, table);
    for (uint64_t n = 0; n < y->count; n++) {
        uint64_t item = n / d->columns, row = row_of(d, index, item / d->count, item % d->count);
        y->expect[n] = row != UINT64_MAX ? table->value[row * d->columns + n % d->columns] : whole ? 0 : NAN;
    }
    return true;
}

static bool scatter_build(const char *text, spec_problem *p)
{
    cek_gather_desc *d = &p->desc.gather;
    const cek_dtype sum = spec_sum_type(p->type);
    choice c = { 0 };
    if (!gather_read(text, p, &c))
        return false;
    spec_operand *dy = spec_operand_add(p, CEK_SCATTER_ADD_DY, d->type, d->batch * d->count * d->columns);
    spec_operand *index = index_add(p, &c);
    spec_operand *table = spec_operand_add(p, CEK_SCATTER_ADD_DTABLE, sum, d->batch * d->rows * d->columns);
    if (!dy || !index || !table)
        return false;
    spec_operand_fill(p, dy, -3, 3, true);
    if (c.acc)
        spec_operand_accumulate(p, table);
    long double *v = spec_problem_alloc(p, table->count, sizeof *v),
                *size = spec_problem_alloc(p, table->count, sizeof *size);
    uint64_t *terms = spec_problem_alloc(p, table->count, sizeof *terms);
    if (!v || !size || !terms)
        return false;
    for (uint64_t n = 0; n < dy->count; n++) {
        uint64_t item = n / d->columns, row = row_of(d, index, item / d->count, item % d->count);
        if (row == UINT64_MAX)
            continue;
        uint64_t at = row * d->columns + n % d->columns;
        v[at] += dy->value[n];
        size[at] += fabs(dy->value[n]);
        terms[at]++;
    }
    for (uint64_t n = 0; n < table->count; n++) {
        /* What is there is a term like the others. */
        const double old = c.acc ? table->value[n] : 0;
        spec_num all = spec_sum(sum, v[n] + old, size[n] + fabs(old), terms[n] + c.acc, spec_whole(p));
        if (!terms[n])
            all = spec_exact(old);
        spec_store(sum, all, &table->expect[n], &table->bound[n]);
    }
    return true;
}

const spec_kind spec_kind_gather = SPEC_KIND("gather", CEK_OP_GATHER, CEK_PROFILE_TRAINING, "1x7x5x3", gather_cases,
                                             gather_build);
const spec_kind spec_kind_scatter_add = SPEC_KIND("scatter_add", CEK_OP_SCATTER_ADD, CEK_PROFILE_TRAINING, "1x7x5x3",
                                                  scatter_cases, scatter_build);
