/* problem.c - building and freeing problems, fills, modifiers; see problem.h. */
#include "spec/problem.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct slot_row {
    uint32_t kind, slot, direction;
    const char *name;
    uint32_t presence;
    bool accumulates;
    uint64_t aliases;
} slot_row;

enum { DIRECTION_in = SPEC_IN, DIRECTION_out = SPEC_OUT, DIRECTION_inout = SPEC_INOUT };
enum { PRESENCE_required = 0, PRESENCE_optional = 1, PRESENCE_weights = 2, ACCUMULATE_no = 0, ACCUMULATE_acc = 1 };
#define SLOT_ROW(KIND, SLOT, NUMBER, DIRECTION, PRESENCE, ACCUMULATE, ALIASES, SHAPE) \
    { CEK_OP_##KIND, NUMBER, DIRECTION_##DIRECTION, #SLOT, PRESENCE_##PRESENCE, ACCUMULATE_##ACCUMULATE, ALIASES },
static const slot_row slot_rows[] = { CEK_ALL_OPERANDS(SLOT_ROW) };

static const slot_row *slot_find(uint32_t kind, uint32_t slot)
{
    for (size_t i = 0; i < sizeof slot_rows / sizeof *slot_rows; i++)
        if (slot_rows[i].kind == kind && slot_rows[i].slot == slot)
            return &slot_rows[i];
    return NULL;
}

const char *spec_slot_name(uint32_t kind, uint32_t slot)
{
    const slot_row *row = slot_find(kind, slot);
    return row ? row->name : NULL;
}

uint32_t spec_slot_direction(uint32_t kind, uint32_t slot)
{
    const slot_row *row = slot_find(kind, slot);
    return row ? row->direction : 0;
}

bool spec_slot_optional(uint32_t kind, uint32_t slot)
{
    const slot_row *row = slot_find(kind, slot);
    return row && row->presence == PRESENCE_optional;
}

bool spec_slot_accumulates(uint32_t kind, uint32_t slot)
{
    const slot_row *row = slot_find(kind, slot);
    return row && row->accumulates;
}

uint64_t spec_slot_aliases(uint32_t kind, uint32_t slot)
{
    const slot_row *row = slot_find(kind, slot);
    return row ? row->aliases : 0;
}

uint32_t spec_desc_size(uint32_t kind)
{
    switch (kind) {
    case CEK_OP_GEMM: return sizeof(cek_gemm_desc);
    case CEK_OP_CONV_FORWARD:
    case CEK_OP_CONV_BACKWARD_DATA:
    case CEK_OP_CONV_BACKWARD_WEIGHTS: return sizeof(cek_conv_desc);
    case CEK_OP_POOL_FORWARD:
    case CEK_OP_POOL_BACKWARD: return sizeof(cek_pool_desc);
    case CEK_OP_POINTWISE: return sizeof(cek_pointwise_desc);
    case CEK_OP_REDUCE: return sizeof(cek_reduce_desc);
    case CEK_OP_SOFTMAX: return sizeof(cek_softmax_desc);
    case CEK_OP_CROSS_ENTROPY: return sizeof(cek_cross_entropy_desc);
    case CEK_OP_SQUARED_ERROR: return sizeof(cek_squared_error_desc);
    case CEK_OP_DROPOUT: return sizeof(cek_dropout_desc);
    case CEK_OP_RANDOM: return sizeof(cek_random_desc);
    case CEK_OP_OPTIMIZER: return sizeof(cek_optimizer_desc);
    case CEK_OP_COPY: return sizeof(cek_copy_desc);
    case CEK_OP_GATHER:
    case CEK_OP_SCATTER_ADD: return sizeof(cek_gather_desc);
    case CEK_OP_ARG: return sizeof(cek_arg_desc);
    default: return 0;
    }
}

const spec_kind *const *spec_kinds(uint32_t *count)
{
    static const spec_kind *const kinds[] = {
        &spec_kind_gemm,
        &spec_kind_conv_forward,
        &spec_kind_pool_forward,
        &spec_kind_pointwise,
        &spec_kind_reduce,
        &spec_kind_softmax,
        &spec_kind_copy,
        &spec_kind_arg,
        &spec_kind_conv_backward_data,
        &spec_kind_conv_backward_weights,
        &spec_kind_pool_backward,
        &spec_kind_cross_entropy,
        &spec_kind_squared_error,
        &spec_kind_dropout,
        &spec_kind_random,
        &spec_kind_optimizer,
        &spec_kind_gather,
        &spec_kind_scatter_add,
    };
    *count = sizeof kinds / sizeof *kinds;
    return kinds;
}

const char *spec_group_name(uint32_t index)
{
    static const char *const others[] = { "device", "memory", "queue", "command_buffer", "null" };
    uint32_t count;
    const spec_kind *const *kinds = spec_kinds(&count);
    if (index < count)
        return kinds[index]->name;
    return index - count < sizeof others / sizeof *others ? others[index - count] : NULL;
}

bool spec_group_known(const char *name)
{
    const char *group;
    for (uint32_t i = 0; (group = spec_group_name(i)); i++)
        if (!strcmp(group, name))
            return true;
    return false;
}

uint32_t spec_kind_parse(const char *name)
{
    uint32_t count;
    const spec_kind *const *kinds = spec_kinds(&count);
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(kinds[i]->name, name))
            return kinds[i]->kind;
    return 0;
}

void spec_problem_init(spec_problem *p, uint32_t kind, cek_dtype type, uint32_t fill, bool inexact, uint64_t seed)
{
    *p = (spec_problem){ .type = type, .fill = fill, .inexact = inexact, .seed = seed };
    p->desc.op.size = spec_desc_size(kind);
    p->desc.op.kind = kind;
    p->epilogue.size = sizeof p->epilogue;
}

void spec_problem_free(spec_problem *p)
{
    if (p->forward)
        spec_problem_free(p->forward); /* itself one of the blocks */
    for (uint32_t i = 0; i < p->block_count; i++)
        free(p->blocks[i]);
    free(p->blocks);
    p->forward = NULL;
    p->blocks = NULL;
    p->block_count = 0;
}

bool spec_fail(spec_problem *p, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(p->error, sizeof p->error, fmt, args);
    va_end(args);
    return false;
}

void *spec_problem_alloc(spec_problem *p, uint64_t count, size_t size)
{
    void **blocks = realloc(p->blocks, (p->block_count + 1) * sizeof *blocks);
    if (blocks)
        p->blocks = blocks;
    void *block = blocks ? calloc(count ? count : 1, size) : NULL;
    if (!block) {
        p->no_memory = true;
        spec_fail(p, "no memory for %llu elements of %zu bytes", (unsigned long long)count, size);
        return NULL;
    }
    p->blocks[p->block_count++] = block;
    return block;
}

static spec_operand *operand_new(spec_problem *p, uint32_t slot)
{
    const slot_row *row = slot_find(p->desc.op.kind, slot);
    if (!row || p->operand_count == SPEC_OPERANDS_MAX) {
        spec_fail(p, "operation %u has no slot %u", p->desc.op.kind, slot);
        return NULL;
    }
    spec_operand *o = &p->operand[p->operand_count++];
    *o = (spec_operand){ .name = row->name, .slot = slot, .direction = row->direction };
    p->desc.op.operands |= CEK_BIT(slot);
    return o;
}

spec_operand *spec_operand_add(spec_problem *p, uint32_t slot, cek_dtype type, uint64_t count)
{
    spec_operand *o = operand_new(p, slot);
    if (!o)
        return NULL;
    o->type = type;
    o->count = count;
    o->value = spec_problem_alloc(p, count, sizeof(double));
    if (o->direction & SPEC_OUT) {
        o->expect = spec_problem_alloc(p, count, sizeof(double));
        o->bound = spec_problem_alloc(p, count, sizeof(double));
    }
    return o->value && (!(o->direction & SPEC_OUT) || (o->expect && o->bound)) ? o : NULL;
}

spec_operand *spec_operand_block(spec_problem *p, uint32_t slot, const void *data, uint64_t bytes)
{
    spec_operand *o = operand_new(p, slot);
    if (!o || !(o->raw = spec_problem_alloc(p, bytes, 1)))
        return NULL;
    memcpy(o->raw, data, bytes);
    o->count = bytes;
    return o;
}

spec_operand *spec_operand_sized(spec_problem *p, uint32_t slot, uint32_t sizing)
{
    spec_operand *o = operand_new(p, slot);
    if (o)
        o->sizing = sizing;
    return o;
}

spec_operand *spec_operand_find(spec_problem *p, uint32_t slot)
{
    for (uint32_t i = 0; i < p->operand_count; i++)
        if (p->operand[i].slot == slot)
            return &p->operand[i];
    return NULL;
}

/* splitmix64's finaliser. */
uint64_t spec_mix(uint64_t seed, uint64_t index)
{
    uint64_t z = seed * 0x9E3779B97F4A7C15u + (index + 1) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

double spec_uniform(uint64_t seed, uint64_t index)
{
    return (double)(spec_mix(seed, index) >> 11) * 0x1p-53;
}

bool spec_whole(const spec_problem *p)
{
    return p->fill != SPEC_REAL && !p->inexact;
}

void spec_operand_fill(spec_problem *p, spec_operand *o, int low, int high, bool special)
{
    if (p->preset && p->preset(p->preset_user, o))
        return;
    uint64_t seed = p->seed * 64 + o->slot;
    double scale = abs(low) > 8 || abs(high) > 8 ? fmax(abs(low), abs(high)) : 1;
    bool integers = o->type == CEK_U8 || o->type == CEK_I32;
    for (uint64_t i = 0; i < o->count; i++) {
        double u = spec_uniform(seed, i);
        if (p->fill == SPEC_REAL && !integers)
            o->value[i] = spec_round((low < 0 ? 2 * u - 1 : u) * scale, o->type);
        else
            o->value[i] = low + floor(u * (high - low + 1));
    }
    if ((p->fill == SPEC_NAN || p->fill == SPEC_INFINITE) && special && !integers) {
        const double value = p->fill == SPEC_NAN ? NAN : INFINITY;
        o->value[spec_mix(seed, o->count) % o->count] = value;
        if (o->count > 64)
            o->value[o->count - 1] = -value;
    }
}

void spec_operand_accumulate(spec_problem *p, spec_operand *o)
{
    p->desc.op.accumulate |= CEK_BIT(o->slot);
    o->accumulated = true;
    spec_operand_fill(p, o, -3, 3, false);
}

void spec_operand_expect(spec_operand *o, uint64_t i, spec_num v, cek_dtype sum_type)
{
    if (o->accumulated) {
        spec_num sum = spec_add(sum_type, v, spec_exact(o->value[i]));
        if (spec_plain(sum_type) != o->type) /* a backend may round the sum before it adds: allow both orders */
            sum.e += v.e > 0 || spec_round(v.v, o->type) != v.v ? spec_roundoff(o->type) * fabsl(v.v) : 0;
        v = sum;
    }
    spec_store(o->type, v, &o->expect[i], &o->bound[i]);
}

cek_dtype spec_arithmetic(const spec_problem *p, cek_dtype type)
{
    return spec_sum_type(type) | (p->flushes ? 0 : SPEC_DENORMALS);
}

bool spec_modifier(const char **cursor, char *word, size_t cap)
{
    const char *p = *cursor;
    if (*p != ':')
        return false;
    size_t length = strcspn(++p, ":");
    snprintf(word, cap, "%.*s", (int)length, p);
    *cursor = p + length;
    return true;
}

bool spec_modifier_common(spec_problem *p, const char *word)
{
    if (!strcmp(word, "det")) {
        p->desc.op.flags |= CEK_OP_DETERMINISTIC;
        p->twice = true;
        return true;
    }
    if (!strcmp(word, "strict")) {
        p->desc.op.math = CEK_MATH_STRICT;
        return true;
    }
    uint64_t align;
    if (spec_modifier_number(word, "align", &align)) {
        p->desc.op.align = (uint32_t)align;
        return true;
    }
    return false;
}

bool spec_modifier_number(const char *word, const char *name, uint64_t *out)
{
    size_t length = strlen(name);
    if (strncmp(word, name, length) || !isdigit((unsigned char)word[length]))
        return false;
    char *end;
    *out = strtoull(word + length, &end, 10);
    return !*end;
}

cek_activation spec_activation_parse(const char *word)
{
    static const char *const names[] = { "", "relu", "tanh", "sigmoid", "gelu" };
    for (cek_activation a = CEK_ACT_RELU; a <= CEK_ACT_GELU; a++)
        if (!strcmp(word, names[a]))
            return a;
    return CEK_ACT_NONE;
}

/* Reads a decimal number; what does not fit 31 bits is no size that a case or a benchmark would
 * have. */
static bool number_read(const char **cursor, uint64_t *value)
{
    uint64_t n = 0;
    const char *p = *cursor;
    if (!isdigit((unsigned char)*p))
        return false;
    for (; isdigit((unsigned char)*p); p++)
        if ((n = n * 10 + (uint64_t)(*p - '0')) > INT32_MAX)
            return false;
    *cursor = p;
    *value = n;
    return true;
}

bool spec_countable(uint32_t rank, const uint64_t *shape, uint64_t times)
{
    for (uint32_t i = 0; i < rank; i++)
        if (__builtin_mul_overflow(times, shape[i] ? shape[i] : 1, &times))
            return false;
    return times <= SPEC_COUNT_MAX;
}

uint32_t spec_shape_read(const char **cursor, uint64_t shape[CEK_RANK_MAX])
{
    const char *p = *cursor;
    uint32_t rank = 0;
    do {
        if (rank == CEK_RANK_MAX || !number_read(&p, &shape[rank]))
            return 0;
        rank++;
    } while (*p == 'x' && p++);
    if (!spec_countable(rank, shape, 1))
        return 0;
    *cursor = p;
    return rank;
}

bool spec_pair_read(const char **cursor, char key[8], uint64_t *value)
{
    const char *p = *cursor;
    size_t n = 0;
    for (; isalpha((unsigned char)*p) && n < 7; p++)
        key[n++] = *p;
    key[n] = 0;
    if (!n || !number_read(&p, value))
        return false;
    *cursor = p;
    return true;
}

uint64_t spec_strides(uint32_t rank, const uint64_t *shape, int64_t *strides)
{
    uint64_t count = 1;
    for (uint32_t i = rank; i-- > 0; count *= shape[i])
        strides[i] = (int64_t)count;
    return count;
}

uint64_t spec_offset(uint32_t rank, const uint64_t *shape, const int64_t *strides, uint64_t index)
{
    uint64_t at = 0;
    for (uint32_t i = rank; i-- > 0; index /= shape[i])
        at += index % shape[i] * (uint64_t)strides[i];
    return at;
}

uint64_t spec_extent(uint32_t rank, const uint64_t *shape, const int64_t *strides)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < rank; i++)
        last += (shape[i] - 1) * (uint64_t)strides[i];
    return last + 1;
}

bool spec_layout(const char *letters, uint32_t rank, const uint64_t *shape, int64_t *strides)
{
    bool columns = strchr(letters, '^'), gaps = strchr(letters, '_');
    uint64_t step = gaps ? 3 : 1;
    for (uint32_t n = 0; n < rank; n++) {
        uint32_t axis = columns ? n : rank - 1 - n;
        bool broadcast = strchr(letters, '0' + (int)axis);
        strides[axis] = broadcast ? 0 : (int64_t)step;
        step *= broadcast ? 1 : shape[axis];
    }
    return strspn(letters, "01234567^_") == strlen(letters);
}
