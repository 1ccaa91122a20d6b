/* onnx_fold_math.c - folding, element by element: arithmetic, comparisons, casts, choices, ranges.
 *
 * Integers are constant + factor * batch, and the batch is 1 at least: what is true of all of those is known. */
#include <math.h>

#include "nn/formats/onnx_fold_inside.h"

typedef enum answer { ANSWER, UNKNOWN, IMPOSSIBLE } answer;

bool cek__fold_broadcast(const cek__fold_value *a, const cek__fold_value *b, uint32_t *rank,
                         int64_t shape[CEK_RANK_MAX])
{
    *rank = a->rank > b->rank ? a->rank : b->rank;
    for (uint32_t i = 0; i < *rank; i++) {
        int64_t x = i < a->rank ? a->shape[a->rank - 1 - i] : 1, y = i < b->rank ? b->shape[b->rank - 1 - i] : 1;

        if (x != y && x != 1 && y != 1)
            return false;
        shape[*rank - 1 - i] = x == 1 ? y : x;
    }
    return true;
}

const cek__fold_number *cek__fold_at(const cek__fold_value *v, uint32_t rank, const int64_t *shape, uint64_t i)
{
    uint64_t at = 0, step = 1;

    for (uint32_t k = 0; k < rank; k++) { /* from the last axis on */
        uint64_t index = i % (uint64_t)shape[rank - 1 - k];

        i /= (uint64_t)shape[rank - 1 - k];
        if (k >= v->rank)
            continue;
        at += v->shape[v->rank - 1 - k] == 1 ? 0 : index * step;
        step *= (uint64_t)v->shape[v->rank - 1 - k];
    }
    return &v->numbers[at];
}

/* ---- two ---- */

static answer multiply(const cek__fold_number *a, const cek__fold_number *b, cek__fold_number *out)
{
    const cek__fold_number *scale = b->factor == 0 ? b : a, *other = b->factor == 0 ? a : b;

    if (scale->factor != 0)
        return UNKNOWN; /* the batch squared */
    return __builtin_mul_overflow(other->constant, scale->constant, &out->constant) ||
                   __builtin_mul_overflow(other->factor, scale->constant, &out->factor)
               ? IMPOSSIBLE
               : ANSWER;
}

/* Towards zero, as ONNX divides; with a batch in it only what leaves no remainder. */
static answer divide(const cek__fold_number *a, const cek__fold_number *b, cek__fold_number *out)
{
    if (b->factor != 0) {
        if (b->constant != 0 || a->constant != 0 || a->factor % b->factor != 0)
            return UNKNOWN;
        out->constant = a->factor / b->factor; /* the batch in both: none is left */
        return ANSWER;
    }
    if (b->constant == 0 || (b->constant == -1 && (a->constant == INT64_MIN || a->factor == INT64_MIN)))
        return IMPOSSIBLE;
    if (a->factor != 0 && (a->factor % b->constant != 0 || a->constant % b->constant != 0))
        return UNKNOWN;
    out->constant = a->constant / b->constant;
    out->factor = a->factor / b->constant;
    return ANSWER;
}

/* Whether a - b is 0, below or above it, at every batch from 1 on. */
static answer compare(int code, const cek__fold_number *a, const cek__fold_number *b, cek__fold_number *out)
{
    int64_t constant, factor, first;
    bool above, below;

    if (__builtin_sub_overflow(a->constant, b->constant, &constant) ||
        __builtin_sub_overflow(a->factor, b->factor, &factor) || __builtin_add_overflow(constant, factor, &first))
        return UNKNOWN;
    above = first > 0 && factor >= 0;
    below = first < 0 && factor <= 0;
    if (!above && !below && factor != 0)
        return UNKNOWN;
    switch (code) {
    case CEK__FOLD_EQUAL: out->constant = !above && !below; break;
    case CEK__FOLD_LESS: out->constant = below; break;
    case CEK__FOLD_LESS_OR_EQUAL: out->constant = !above; break;
    case CEK__FOLD_GREATER: out->constant = above; break;
    default: out->constant = !below;
    }
    return ANSWER;
}

/* The remainder, with the divisor's sign. */
static answer remain(const cek__fold_number *a, const cek__fold_number *b, cek__fold_number *out)
{
    if (a->factor != 0 || b->factor != 0)
        return UNKNOWN;
    if (b->constant == 0)
        return IMPOSSIBLE;
    out->constant = b->constant == -1 ? 0 : a->constant % b->constant;
    if (out->constant != 0 && (out->constant < 0) != (b->constant < 0))
        out->constant += b->constant;
    return ANSWER;
}

/* The smaller one, or the larger. */
static answer choose(int code, const cek__fold_number *a, const cek__fold_number *b, cek__fold_number *out)
{
    cek__fold_number less = { 0 };
    answer found = compare(CEK__FOLD_LESS, a, b, &less);

    *out = (less.constant != 0) == (code == CEK__FOLD_MIN) ? *a : *b;
    return found;
}

static answer two_integers(int code, const cek__fold_number *a, const cek__fold_number *b, cek__fold_number *out)
{
    switch (code) {
    case CEK__FOLD_ADD:
        return __builtin_add_overflow(a->constant, b->constant, &out->constant) ||
                       __builtin_add_overflow(a->factor, b->factor, &out->factor)
                   ? IMPOSSIBLE
                   : ANSWER;
    case CEK__FOLD_SUB:
        return __builtin_sub_overflow(a->constant, b->constant, &out->constant) ||
                       __builtin_sub_overflow(a->factor, b->factor, &out->factor)
                   ? IMPOSSIBLE
                   : ANSWER;
    case CEK__FOLD_MUL: return multiply(a, b, out);
    case CEK__FOLD_DIV: return divide(a, b, out);
    case CEK__FOLD_MOD: return remain(a, b, out);
    case CEK__FOLD_MIN:
    case CEK__FOLD_MAX: return choose(code, a, b, out);
    case CEK__FOLD_AND: out->constant = a->constant != 0 && b->constant != 0; return ANSWER;
    case CEK__FOLD_OR: out->constant = a->constant != 0 || b->constant != 0; return ANSWER;
    default: return compare(code, a, b, out);
    }
}

static answer two_reals(int code, double a, double b, cek__fold_number *out)
{
    switch (code) {
    case CEK__FOLD_ADD: out->real = (double)(float)(a + b); break;
    case CEK__FOLD_SUB: out->real = (double)(float)(a - b); break;
    case CEK__FOLD_MUL: out->real = (double)(float)(a * b); break;
    case CEK__FOLD_DIV: out->real = (double)(float)(a / b); break;
    case CEK__FOLD_MOD: return UNKNOWN;
    case CEK__FOLD_MIN: out->real = a < b || isnan(a) ? a : b; break;
    case CEK__FOLD_MAX: out->real = a > b || isnan(a) ? a : b; break;
    case CEK__FOLD_EQUAL: out->constant = a == b; break;
    case CEK__FOLD_LESS: out->constant = a < b; break;
    case CEK__FOLD_LESS_OR_EQUAL: out->constant = a <= b; break;
    case CEK__FOLD_GREATER: out->constant = a > b; break;
    default: out->constant = a >= b;
    }
    return ANSWER;
}

/* Gives up what was made: not known, or impossible. */
static cek_status ended(cek__fold_call *c, answer a, const char *cause)
{
    cek__fold_forget(c);
    return a == UNKNOWN ? CEK_OK : cek__fold_bad(c, cause);
}

/* An i32 stays one. */
static bool fits(int type, const cek__fold_number *n)
{
    return type != CEK__ONNX_INT32 || (n->constant >= INT32_MIN && n->constant <= INT32_MAX);
}

cek_status cek__fold_two(cek__fold_call *c)
{
    const cek__fold_value *a = c->in[0], *b = c->in[1];
    int64_t shape[CEK_RANK_MAX];
    uint32_t rank;
    cek_status st = CEK_OK;

    if (c->argument == CEK__FOLD_MOD && cek__fold_integer(c, "fmod", 0) != 0)
        return CEK_OK; /* the dividend's sign */
    if (a->type != b->type || !cek__fold_broadcast(a, b, &rank, shape))
        return cek__fold_bad(c, "types or shapes of its inputs do not go together");
    if (a->type == CEK__ONNX_BOOL && c->argument < CEK__FOLD_EQUAL)
        return cek__fold_bad(c, "truth values are no numbers");
    if (a->type != CEK__ONNX_BOOL && c->argument >= CEK__FOLD_AND)
        return cek__fold_bad(c, "numbers are no truth values");
    CEK_TRY(cek__fold_make(c, c->argument >= CEK__FOLD_EQUAL ? CEK__ONNX_BOOL : a->type, rank, shape));
    for (uint64_t i = 0; i < c->out.count; i++) {
        const cek__fold_number *x = cek__fold_at(a, rank, shape, i), *y = cek__fold_at(b, rank, shape, i);
        answer found = a->type == CEK__ONNX_FLOAT ? two_reals(c->argument, x->real, y->real, &c->out.numbers[i])
                                                  : two_integers(c->argument, x, y, &c->out.numbers[i]);

        if (found != ANSWER || !fits(c->out.type, &c->out.numbers[i]))
            return ended(c, found == ANSWER ? IMPOSSIBLE : found, "a result is no number of its type");
    }
out:
    return st;
}

/* -x, its root or not x. */
cek_status cek__fold_one(cek__fold_call *c)
{
    const cek__fold_value *x = c->in[0];
    cek_status st = CEK_OK;

    if ((x->type == CEK__ONNX_BOOL) != (c->argument == CEK__FOLD_NOT))
        return cek__fold_bad(c, "its input is of another type");
    if (c->argument == CEK__FOLD_SQRT && x->type != CEK__ONNX_FLOAT)
        return CEK_OK;
    CEK_TRY(cek__fold_make(c, x->type, x->rank, x->shape));
    for (uint64_t i = 0; i < c->out.count; i++) {
        const cek__fold_number *n = &x->numbers[i], zero = { 0 };

        if (c->argument == CEK__FOLD_NOT)
            c->out.numbers[i].constant = n->constant == 0;
        else if (x->type == CEK__ONNX_FLOAT)
            c->out.numbers[i].real = c->argument == CEK__FOLD_SQRT ? (double)(float)sqrt(n->real) : -n->real;
        else if (two_integers(CEK__FOLD_SUB, &zero, n, &c->out.numbers[i]) != ANSWER ||
                 !fits(x->type, &c->out.numbers[i]))
            return ended(c, IMPOSSIBLE, "a result is no number of its type");
    }
out:
    return st;
}

/* ---- casts, choices, ranges ---- */

static answer cast_one(int from, int to, const cek__fold_number *n, cek__fold_number *out)
{
    *out = *n;
    if (to == CEK__ONNX_FLOAT) {
        if (n->factor != 0)
            return UNKNOWN;
        *out = (cek__fold_number){ .real = from == CEK__ONNX_FLOAT ? n->real : (double)(float)n->constant };
    } else if (from == CEK__ONNX_FLOAT) {
        if (to != CEK__ONNX_BOOL && !(fabs(n->real) < 0x1p63))
            return IMPOSSIBLE;
        *out = (cek__fold_number){ .constant = to == CEK__ONNX_BOOL ? n->real != 0 : (int64_t)n->real };
    } else if (to == CEK__ONNX_BOOL) {
        if (n->factor != 0)
            return UNKNOWN;
        out->constant = n->constant != 0;
    }
    return fits(to, out) ? ANSWER : IMPOSSIBLE;
}

cek_status cek__fold_cast(cek__fold_call *c)
{
    int64_t to = c->inputs > 1 ? c->in[1]->type : cek__fold_integer(c, "to", 0);
    cek_status st = CEK_OK;

    if (to != CEK__ONNX_FLOAT && to != CEK__ONNX_INT64 && to != CEK__ONNX_INT32 && to != CEK__ONNX_BOOL)
        goto out;
    CEK_TRY(cek__fold_make(c, (int)to, c->in[0]->rank, c->in[0]->shape));
    for (uint64_t i = 0; i < c->out.count; i++) {
        answer found = cast_one(c->in[0]->type, (int)to, &c->in[0]->numbers[i], &c->out.numbers[i]);

        if (found != ANSWER)
            return ended(c, found, "a value does not fit the type that it is cast to");
    }
out:
    return st;
}

cek_status cek__fold_where(cek__fold_call *c)
{
    cek__fold_value both = { 0 };
    int64_t shape[CEK_RANK_MAX];
    uint32_t rank;
    cek_status st = CEK_OK;

    if (c->in[0]->type != CEK__ONNX_BOOL || c->in[1]->type != c->in[2]->type ||
        !cek__fold_broadcast(c->in[1], c->in[2], &both.rank, both.shape) ||
        !cek__fold_broadcast(c->in[0], &both, &rank, shape))
        return cek__fold_bad(c, "types or shapes of its inputs do not go together");
    CEK_TRY(cek__fold_make(c, c->in[1]->type, rank, shape));
    for (uint64_t i = 0; i < c->out.count; i++) {
        const cek__fold_number *choice = cek__fold_at(c->in[0], rank, shape, i);

        c->out.numbers[i] = *cek__fold_at(choice->constant != 0 ? c->in[1] : c->in[2], rank, shape, i);
    }
out:
    return st;
}

/* start, start + delta, ... before the limit. */
cek_status cek__fold_range(cek__fold_call *c)
{
    int64_t start, limit, delta, count;
    uint64_t span, step;
    cek_status st = CEK_OK;

    for (int i = 0; i < 3; i++)
        if (c->in[i]->count != 1 || c->in[i]->type != c->in[0]->type)
            return cek__fold_bad(c, "its inputs are not three numbers of one type");
    if (!cek__fold_constant(c->in[0]) || !cek__fold_constant(c->in[1]) || !cek__fold_constant(c->in[2]))
        goto out;
    start = c->in[0]->numbers[0].constant;
    limit = c->in[1]->numbers[0].constant;
    delta = c->in[2]->numbers[0].constant;
    if (delta == 0)
        return cek__fold_bad(c, "its step is zero");
    span = delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    step = delta > 0 ? (uint64_t)delta : -(uint64_t)delta;
    if (delta > 0 ? limit <= start : limit >= start)
        span = 0;
    if (span / step > CEK__FOLD_MOST)
        goto out;
    count = (int64_t)(span / step + (span % step != 0));
    CEK_TRY(cek__fold_make(c, c->in[0]->type, 1, &count));
    for (int64_t i = 0; i < (int64_t)c->out.count; i++)
        c->out.numbers[i].constant = (int64_t)((uint64_t)start + (uint64_t)i * (uint64_t)delta);
out:
    return st;
}
