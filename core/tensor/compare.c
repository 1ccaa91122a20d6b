/* compare.c - comparisons, which give u8, and the choice between two tensors by one.
 *
 * Chains compute in f32, or in f64 for what gives f64. So f64 is compared there, and whole numbers of 32 bits with the
 * help of their bytes: all answers are exact. */
#include <string.h>

#include "core/tensor/copy.h"
#include "core/tensor/pointwise.h"

typedef enum relation { EQ, NE, LT, LE, GT, GE } relation;

static void not_add(cek__chain *c, uint32_t value)
{
    value = cek__chain_add(c, (cek_pointwise_instruction){ .code = CEK_PW_MUL_IMM, .a = value, .imm = -1 });
    cek__chain_add(c, (cek_pointwise_instruction){ .code = CEK_PW_ADD_IMM, .a = value, .imm = 1 });
}

/* Of numbers that the arithmetic has all: a NaN is equal to nothing and on neither side of anything. */
static cek__chain numbers_chain(relation r)
{
    cek__chain c = { .inputs = 2 };
    const bool swapped = r == GT || r == GE;
    const uint32_t a = swapped, b = !swapped;
    uint32_t less = 0, equal = 0;

    if (r != EQ && r != NE)
        less = cek__chain_add(&c, (cek_pointwise_instruction){ .code = CEK_PW_LESS, .a = a, .b = b });
    if (r != LT && r != GT)
        equal = cek__chain_add(&c, (cek_pointwise_instruction){ .code = CEK_PW_EQUAL, .a = a, .b = b });
    if (r == LE || r == GE)
        cek__chain_add(&c, (cek_pointwise_instruction){ .code = CEK_PW_ADD, .a = less, .b = equal });
    if (r == NE)
        not_add(&c, equal);
    return c;
}

/* Of i32, which f32 rounds. Inputs: the two numbers, then the lowest and the next byte of each. Numbers that become
 * different floats compare as those do. Of numbers that become the same one the difference is less than 2^15 in size,
 * so it follows from the low 16 bits of each: it is theirs, brought back to between -2^15 and 2^15 by a multiple of
 * 2^16. */
static cek__chain whole_chain(relation r)
{
    cek__chain c = { .inputs = 6 };
    const bool swapped = r == GT || r == LE, orders = r != EQ && r != NE; /* a <= b is: not b < a */
    const uint32_t a = swapped, b = !swapped;
    uint32_t low[2], same, d, turns, less_low, less;

    for (uint32_t k = 0; k < 2; k++) {
        low[k] = cek__chain_add(&c, (cek_pointwise_instruction){ .code = CEK_PW_MUL_IMM, .a = 3 + 2 * k, .imm = 256 });
        low[k] = cek__chain_add(&c, (cek_pointwise_instruction){ .code = CEK_PW_ADD, .a = low[k], .b = 2 + 2 * k });
    }
    same = cek__chain_add(&c, (cek_pointwise_instruction){ .code = CEK_PW_EQUAL, .a = 0, .b = 1 });
    if (!orders) {
        d = cek__chain_add(&c, (cek_pointwise_instruction){ .code = CEK_PW_EQUAL, .a = low[0], .b = low[1] });
        same = cek__chain_add(&c, (cek_pointwise_instruction){ .code = CEK_PW_MUL, .a = same, .b = d });
        if (r == NE)
            not_add(&c, same);
        return c;
    }
    d = cek__chain_add(&c, (cek_pointwise_instruction){ .code = CEK_PW_SUB, .a = low[a], .b = low[b] });
    d = cek__chain_add(&c, (cek_pointwise_instruction){ .code = CEK_PW_MUL_IMM, .a = d, .imm = 0x1p-16 });
    turns = cek__chain_add(&c, (cek_pointwise_instruction){ .code = CEK_PW_ADD_IMM, .a = d, .imm = 0.5 });
    turns = cek__chain_add(&c, (cek_pointwise_instruction){ .code = CEK_PW_FLOOR, .a = turns });
    less_low = cek__chain_add(&c, (cek_pointwise_instruction){ .code = CEK_PW_LESS, .a = d, .b = turns });
    less = cek__chain_add(&c, (cek_pointwise_instruction){ .code = CEK_PW_LESS, .a = a, .b = b });
    less = cek__chain_add(&c,
                          (cek_pointwise_instruction){ .code = CEK_PW_SELECT, .a = same, .b = less_low, .c = less });
    if (r == LE || r == GE)
        not_add(&c, less);
    return c;
}

/* Byte `place` of the whole numbers that the lane walks. */
static cek__lane byte_of(const cek__lane *lane, uint64_t place)
{
    cek__lane bytes = { .ref = { lane->ref.mem, lane->ref.offset + place }, .type = CEK_U8 };

    for (int i = 0; i < CEK_RANK_MAX; i++)
        bytes.strides[i] = lane->strides[i] * (int64_t)sizeof(int32_t);
    return bytes;
}

static cek_status compare(const char *what, relation r, const cek_tensor *a, const cek_tensor *b, cek_tensor **out)
{
    cek_status st;
    cek_tensor *y = NULL;
    cek__shape shape;
    cek__lane in[CEK__CHAIN_INPUTS], to;
    cek__chain c;

    CEK_TRY(cek__tensors_meet(what, 2, (const char *const[]){ "a", "b" }, (const cek_tensor *const[]){ a, b }));
    CEK_TRY(cek__shape_broadcast(what, &a->shape, &b->shape, &shape));
    CEK_TRY(cek__shape_make(what, shape.rank, shape.dims, sizeof(double), &shape));
    CEK_TRY(cek__tensor_new(what, a->device, a->type == CEK_F64 ? CEK_F64 : CEK_U8, &shape, &y));
    to = cek__lane_of(y, &shape);
    in[0] = cek__lane_of(a, &shape);
    in[1] = cek__lane_of(b, &shape);
    for (uint64_t k = 0; k < 4; k++)
        in[2 + k] = byte_of(&in[k / 2], k % 2);
    c = a->type == CEK_I32 ? whole_chain(r) : numbers_chain(r);
    CEK_TRY(cek__pointwise_run(what, a->device, &shape, &c, in, &to));
    if (y->type == CEK_U8) {
        *out = y;
        y = NULL;
    } else {
        CEK_TRY(cek_tensor_cast(y, CEK_U8, out));
    }
out:
    cek_tensor_free(y);
    return st;
}

#define RELATION(name, relation)                                                      \
    cek_status cek_##name(const cek_tensor *a, const cek_tensor *b, cek_tensor **out) \
    {                                                                                 \
        CEK__NOT_NULL(out);                                                           \
        *out = NULL;                                                                  \
        CEK__NOT_NULL(a);                                                             \
        CEK__NOT_NULL(b);                                                             \
        return compare("cek_" #name, relation, a, b, out);                            \
    }
RELATION(eq, EQ)
RELATION(ne, NE)
RELATION(lt, LT)
RELATION(le, LE)
RELATION(gt, GT)
RELATION(ge, GE)
#undef RELATION

/* ---- the choice ---- */

/* Whole numbers of 32 bits are chosen byte by byte, along one dimension more. */
static cek_status bytes_spread(const char *what, cek__shape *shape, cek__lane lanes[4])
{
    int64_t strides[4][CEK_RANK_MAX];

    for (int k = 0; k < 4; k++)
        memcpy(strides[k], lanes[k].strides, sizeof strides[k]);
    cek__shape_collapse(shape, 4, strides);
    if (shape->rank == CEK_RANK_MAX)
        return cek__fail(CEK_UNSUPPORTED, "%s: %d dimensions of i32 that are walked each in its own way", what,
                         shape->rank);
    for (int k = 0; k < 4; k++) {
        memcpy(lanes[k].strides, strides[k], sizeof strides[k]);
        if (k > 0) {
            lanes[k] = byte_of(&lanes[k], 0);
            lanes[k].strides[shape->rank] = 1;
        }
    }
    shape->dims[shape->rank++] = sizeof(int32_t);
    return CEK_OK;
}

cek_status cek_where(const cek_tensor *condition, const cek_tensor *a, const cek_tensor *b, cek_tensor **out)
{
    static const char what[] = "cek_where";
    static const cek__chain choice = { .inputs = 3,
                                       .length = 1,
                                       .code = { { .code = CEK_PW_SELECT, .a = 0, .b = 1, .c = 2 } } };
    cek_status st;
    cek_tensor *y = NULL;
    cek__shape both, shape;
    cek__lane lanes[4];

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(condition);
    CEK__NOT_NULL(a);
    CEK__NOT_NULL(b);
    CEK_TRY(cek__tensors_meet(what, 2, (const char *const[]){ "a", "b" }, (const cek_tensor *const[]){ a, b }));
    if (condition->device != a->device)
        CEK_FAIL(CEK_INVALID,
                 "%s: tensors on different devices: condition is on %s, a on %s; move one with cek_tensor_to", what,
                 condition->device->name, a->device->name);
    if (condition->type != CEK_U8)
        CEK_FAIL(CEK_INVALID, "%s: condition is %s, and u8 is needed, as comparisons give", what,
                 cek_dtype_name(condition->type));
    CEK_TRY(cek__shape_broadcast(what, &a->shape, &b->shape, &both));
    CEK_TRY(cek__shape_broadcast(what, &condition->shape, &both, &shape));
    CEK_TRY(cek__shape_make(what, shape.rank, shape.dims, cek_dtype_bytes(a->type), &shape));
    CEK_TRY(cek__tensor_new(what, a->device, a->type, &shape, &y));
    lanes[0] = cek__lane_of(condition, &shape);
    lanes[1] = cek__lane_of(a, &shape);
    lanes[2] = cek__lane_of(b, &shape);
    lanes[3] = cek__lane_of(y, &shape);
    if (a->type == CEK_I32)
        CEK_TRY(bytes_spread(what, &shape, lanes));
    CEK_TRY(cek__pointwise_run(what, a->device, &shape, &choice, lanes, &lanes[3]));
    *out = y;
    y = NULL;
out:
    cek_tensor_free(y);
    return st;
}
