/* onnx_fold.c - tests of nn/formats/onnx_fold: each operator's results as ONNX has them, at any batch; what cannot be
 * said is not known, what is impossible is refused with its node. */
#include "nn/formats/onnx_fold.h"

#include <math.h>

#include "core/base/fault.h"
#include "core/base/random.h"
#include "onnx_files.h"
#include "scratch.h"

#define NAMES(...) ((const char *const[]){ __VA_ARGS__, NULL })
enum { MOST = 12, B = 1000 /* as a number of a case: so many thousands of batches, and the rest */ };

typedef struct tensor {
    int type, rank;
    int64_t shape[4], values[MOST];
} tensor;

#define I64 CEK__ONNX_INT64
#define I32 CEK__ONNX_INT32
#define F32 CEK__ONNX_FLOAT
#define BOO CEK__ONNX_BOOL
#define LIST(n, ...)    \
    {                   \
        I64, 1, { n },  \
        {               \
            __VA_ARGS__ \
        }               \
    }
#define ONE(type, value) \
    {                    \
        type, 0, { 0 },  \
        {                \
            value        \
        }                \
    }
#define ABSENT     \
    {              \
        .type = -1 \
    }
/* The shape of x, which is [batch, 3, 4 * batch]. */
#define OF_X       \
    {              \
        .type = -2 \
    }

/* One node over up to five tensors. `cause`: it is refused; NOT_KNOWN: it is left alone. */
#define NOT_KNOWN "?"
static const struct fold_case {
    const char *op, *cause;
    tensor in[5], out;
    struct {
        const char *name;
        int64_t value;
    } attribute[2];
} cases[] = {
    /* clang-format off */
    { "Identity", NULL, { { I64, 2, { 2, 2 }, { 1, 2, 3, 4 } } }, { I64, 2, { 2, 2 }, { 1, 2, 3, 4 } }, { { 0 } } },
    { "Identity", NULL, { OF_X }, LIST(3, 1 * B, 3, 4 * B), { { 0 } } },
    { "Gather", NULL, { OF_X, ONE(I64, 0) }, ONE(I64, 1 * B), { { "axis", 0 } } },
    { "Gather", NULL, { OF_X, ONE(I64, -1) }, ONE(I64, 4 * B), { { "axis", 0 } } },
    { "Gather", NULL, { { I64, 2, { 2, 3 }, { 1, 2, 3, 4, 5, 6 } }, LIST(2, 2, -3) },
      { I64, 2, { 2, 2 }, { 3, 1, 6, 4 } }, { { "axis", 1 } } },
    { "Gather", NULL, { { I64, 2, { 2, 3 }, { 1, 2, 3, 4, 5, 6 } }, { I32, 2, { 1, 2 }, { 1, 0 } } },
      { I64, 3, { 1, 2, 3 }, { 4, 5, 6, 1, 2, 3 } }, { { 0 } } },
    { "Gather", "index lies outside", { OF_X, ONE(I64, 3) }, { 0 }, { { 0 } } },
    { "Gather", "index lies outside", { OF_X, ONE(I64, -4) }, { 0 }, { { 0 } } },
    { "Gather", "no such axis", { OF_X, ONE(I64, 0) }, { 0 }, { { "axis", 1 } } },
    { "Gather", "no such axis", { ONE(I64, 1), ONE(I64, 0) }, { 0 }, { { 0 } } },
    { "Gather", NOT_KNOWN, { LIST(2, 1, 2), OF_X }, { 0 }, { { 0 } } },
    { "Concat", NULL, { LIST(1, 7), OF_X, LIST(1, -1) }, LIST(5, 7, 1 * B, 3, 4 * B, -1), { { "axis", 0 } } },
    { "Concat", NULL, { { I64, 2, { 2, 1 }, { 1, 2 } }, { I64, 2, { 2, 2 }, { 3, 4, 5, 6 } } },
      { I64, 2, { 2, 3 }, { 1, 3, 4, 2, 5, 6 } }, { { "axis", -1 } } },
    { "Concat", "differ beside", { LIST(1, 7), ONE(I64, 1) }, { 0 }, { { "axis", 0 } } },
    { "Concat", "differ beside", { LIST(1, 7), { I32, 1, { 1 }, { 1 } } }, { 0 }, { { "axis", 0 } } },
    { "Concat", "no such axis", { LIST(1, 7) }, { 0 }, { { 0 } } },
    { "Slice", NULL, { OF_X, LIST(1, 1), LIST(1, INT64_MAX) }, LIST(2, 3, 4 * B), { { 0 } } },
    { "Slice", NULL, { OF_X, LIST(1, -1), LIST(1, INT64_MIN), LIST(1, 0), LIST(1, -2) }, LIST(2, 4 * B, 1 * B),
      { { 0 } } },
    { "Slice", NULL, { { I64, 2, { 2, 3 }, { 1, 2, 3, 4, 5, 6 } }, LIST(2, 0, 0), LIST(2, 2, 3), LIST(2, 1, 0),
      LIST(2, 2, 1) }, { I64, 2, { 2, 1 }, { 1, 4 } }, { { 0 } } },
    { "Slice", NULL, { LIST(3, 1, 2, 3), LIST(1, 2), LIST(1, 1) }, LIST(0, 0), { { 0 } } },
    { "Slice", NULL, { LIST(3, 1, 2, 3), LIST(1, 2), LIST(1, -9), LIST(1, 0), LIST(1, INT64_MIN) }, LIST(1, 3),
      { { 0 } } },
    { "Slice", "step is zero", { OF_X, LIST(1, 0), LIST(1, 1), LIST(1, 0), LIST(1, 0) }, { 0 }, { { 0 } } },
    { "Slice", "lists of one length", { OF_X, LIST(1, 0), LIST(2, 1, 1) }, { 0 }, { { 0 } } },
    { "Slice", "no such axis", { OF_X, LIST(1, 0), LIST(1, 1), LIST(1, 1) }, { 0 }, { { 0 } } },
    { "Slice", NOT_KNOWN, { OF_X, OF_X, LIST(3, 1, 1, 1) }, { 0 }, { { 0 } } },
    { "Unsqueeze", NULL, { LIST(2, 5, 6), LIST(2, 0, -1) }, { I64, 3, { 1, 2, 1 }, { 5, 6 } }, { { 0 } } },
    { "Unsqueeze", "named twice", { LIST(2, 5, 6), LIST(2, 0, -3) }, { 0 }, { { 0 } } },
    { "Squeeze", NULL, { { I64, 3, { 1, 2, 1 }, { 5, 6 } }, LIST(1, -1) }, { I64, 2, { 1, 2 }, { 5, 6 } }, { { 0 } } },
    { "Squeeze", NULL, { { I64, 3, { 1, 2, 1 }, { 5, 6 } } }, LIST(2, 5, 6), { { 0 } } },
    { "Squeeze", "several elements", { LIST(2, 5, 6), LIST(1, 0) }, { 0 }, { { 0 } } },
    { "Reshape", NULL, { LIST(6, 1, 2, 3, 4, 5, 6), LIST(2, 2, -1) }, { I64, 2, { 2, 3 }, { 1, 2, 3, 4, 5, 6 } },
      { { 0 } } },
    { "Reshape", NULL, { { I64, 2, { 2, 3 }, { 1, 2, 3, 4, 5, 6 } }, LIST(3, 0, 3, 1) },
      { I64, 3, { 2, 3, 1 }, { 1, 2, 3, 4, 5, 6 } }, { { 0 } } },
    { "Reshape", "another number", { LIST(6, 1, 2, 3, 4, 5, 6), LIST(2, 4, -1) }, { 0 }, { { 0 } } },
    { "Reshape", "another number", { LIST(6, 1, 2, 3, 4, 5, 6), LIST(2, 2, 2) }, { 0 }, { { 0 } } },
    { "Reshape", "another number", { LIST(6, 1, 2, 3, 4, 5, 6), LIST(2, -1, -1) }, { 0 }, { { 0 } } },
    { "Reshape", NOT_KNOWN, { LIST(6, 1, 2, 3, 4, 5, 6), OF_X }, { 0 }, { { 0 } } },
    { "Expand", NULL, { { I64, 2, { 2, 1 }, { 1, 2 } }, LIST(3, 2, 1, 3) },
      { I64, 3, { 2, 2, 3 }, { 1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2 } }, { { 0 } } },
    { "Expand", "cannot be spread", { LIST(2, 1, 2), LIST(1, 3) }, { 0 }, { { 0 } } },
    { "Expand", "impossible", { ONE(I64, 1), LIST(1, -1) }, { 0 }, { { 0 } } },
    { "Expand", NOT_KNOWN, { ONE(I64, 1), LIST(2, 100, 100) }, { 0 }, { { 0 } } },
    { "Expand", "impossible", { ONE(I64, 1), LIST(2, INT64_MAX, 3) }, { 0 }, { { 0 } } },
    { "ConstantOfShape", NULL, { LIST(2, 1, 3) }, { F32, 2, { 1, 3 }, { 0 } }, { { 0 } } },
    { "ConstantOfShape", "impossible", { LIST(1, -2) }, { 0 }, { { 0 } } },
    { "ConstantOfShape", NOT_KNOWN, { OF_X }, { 0 }, { { 0 } } },
    { "ConstantOfShape", NOT_KNOWN, { LIST(1, 1 << 30) }, { 0 }, { { 0 } } },
    { "Range", NULL, { ONE(I64, 2), ONE(I64, 9), ONE(I64, 3) }, LIST(3, 2, 5, 8), { { 0 } } },
    { "Range", NULL, { ONE(I64, 2), ONE(I64, -3), ONE(I64, -2) }, LIST(3, 2, 0, -2), { { 0 } } },
    { "Range", NULL, { ONE(I64, 2), ONE(I64, 2), ONE(I64, 1) }, LIST(0, 0), { { 0 } } },
    { "Range", NULL, { ONE(I64, INT64_MIN), ONE(I64, INT64_MAX), ONE(I64, INT64_MAX) },
      LIST(3, INT64_MIN, -1, INT64_MAX - 1), { { 0 } } },
    { "Range", "step is zero", { ONE(I64, 2), ONE(I64, 9), ONE(I64, 0) }, { 0 }, { { 0 } } },
    { "Range", NOT_KNOWN, { ONE(I64, INT64_MIN), ONE(I64, INT64_MAX), ONE(I64, 1) }, { 0 }, { { 0 } } },
    { "Sqrt", NULL, { { F32, 1, { 3 }, { 0, 4, 9 } } }, { F32, 1, { 3 }, { 0, 2, 3 } }, { { 0 } } },
    { "Sqrt", NOT_KNOWN, { LIST(1, 4) }, { 0 }, { { 0 } } },
    { "Sqrt", "another type", { { BOO, 1, { 1 }, { 1 } } }, { 0 }, { { 0 } } },
    { "Not", NULL, { { BOO, 1, { 2 }, { 1, 0 } } }, { BOO, 1, { 2 }, { 0, 1 } }, { { 0 } } },
    { "Not", "another type", { LIST(1, 1) }, { 0 }, { { 0 } } },
    { "And", NULL, { { BOO, 1, { 4 }, { 0, 0, 1, 1 } }, { BOO, 1, { 4 }, { 0, 1, 0, 1 } } },
      { BOO, 1, { 4 }, { 0, 0, 0, 1 } }, { { 0 } } },
    { "Or", NULL, { { BOO, 1, { 4 }, { 0, 0, 1, 1 } }, { BOO, 1, { 4 }, { 0, 1, 0, 1 } } },
      { BOO, 1, { 4 }, { 0, 1, 1, 1 } }, { { 0 } } },
    { "Or", "no truth values", { LIST(1, 1), LIST(1, 0) }, { 0 }, { { 0 } } },
    { "LessOrEqual", NULL, { LIST(3, 1, 2, 3), ONE(I64, 2) }, { BOO, 1, { 3 }, { 1, 1, 0 } }, { { 0 } } },
    { "LessOrEqual", NULL, { LIST(1, 0), OF_X }, { BOO, 1, { 3 }, { 1, 1, 1 } }, { { 0 } } },
    { "GreaterOrEqual", NULL, { { F32, 1, { 3 }, { 1, 2, 3 } }, ONE(F32, 2) }, { BOO, 1, { 3 }, { 0, 1, 1 } },
      { { 0 } } },
    { "GreaterOrEqual", NOT_KNOWN, { OF_X, ONE(I64, 2) }, { 0 }, { { 0 } } },
    { "CastLike", NULL, { { F32, 1, { 2 }, { -3, 4 } }, ONE(I64, 9) }, LIST(2, -3, 4), { { 0 } } },
    { "Trilu", NULL, { { I64, 2, { 2, 3 }, { 1, 2, 3, 4, 5, 6 } } }, { I64, 2, { 2, 3 }, { 1, 2, 3, 0, 5, 6 } },
      { { 0 } } },
    { "Trilu", NULL, { { I64, 2, { 2, 3 }, { 1, 2, 3, 4, 5, 6 } }, ONE(I64, 1) },
      { I64, 2, { 2, 3 }, { 0, 2, 3, 0, 0, 6 } }, { { "upper", 1 } } },
    { "Trilu", NULL, { { I64, 3, { 2, 2, 2 }, { 1, 2, 3, 4, 5, 6, 7, 8 } }, ONE(I64, 0) },
      { I64, 3, { 2, 2, 2 }, { 1, 0, 3, 4, 5, 0, 7, 8 } }, { { "upper", 0 } } },
    { "Trilu", NULL, { { I64, 2, { 2, 3 }, { 1, 2, 3, 4, 5, 6 } }, ONE(I64, INT64_MIN) }, { I64, 2, { 2, 3 }, { 0 } },
      { { "upper", 0 } } },
    { "Trilu", "takes matrices", { LIST(2, 1, 2) }, { 0 }, { { 0 } } },
    { "Mod", NOT_KNOWN, { LIST(2, -7, 7), LIST(2, 3, -3) }, { 0 }, { { "fmod", 1 } } },
    { "Cast", NULL, { LIST(2, 5, -6) }, { F32, 1, { 2 }, { 5, -6 } }, { { "to", F32 } } },
    { "Cast", NULL, { { F32, 1, { 2 }, { 5, -6 } } }, LIST(2, 5, -6), { { "to", I64 } } },
    { "Cast", NULL, { LIST(3, 5, 0, -6) }, { BOO, 1, { 3 }, { 1, 0, 1 } }, { { "to", BOO } } },
    { "Cast", NULL, { OF_X }, { I32, 1, { 3 }, { 1 * B, 3, 4 * B } }, { { "to", I32 } } },
    { "Cast", "does not fit", { LIST(1, INT64_C(1) << 31) }, { 0 }, { { "to", I32 } } },
    { "Cast", NOT_KNOWN, { OF_X }, { 0 }, { { "to", F32 } } },
    { "Cast", NOT_KNOWN, { LIST(1, 1) }, { 0 }, { { "to", CEK__ONNX_FLOAT16 } } },
    { "Add", NULL, { OF_X, LIST(1, 2) }, LIST(3, 1 * B + 2, 5, 4 * B + 2), { { 0 } } },
    { "Add", NULL, { OF_X, OF_X }, LIST(3, 2 * B, 6, 8 * B), { { 0 } } },
    { "Add", NULL, { { I64, 2, { 2, 1 }, { 10, 20 } }, LIST(2, 1, 2) }, { I64, 2, { 2, 2 }, { 11, 12, 21, 22 } },
      { { 0 } } },
    { "Add", NULL, { { F32, 1, { 1 }, { 2 } }, ONE(F32, 3) }, { F32, 1, { 1 }, { 5 } }, { { 0 } } },
    { "Add", "no number of its type", { ONE(I64, INT64_MAX), ONE(I64, 1) }, { 0 }, { { 0 } } },
    { "Add", "no number of its type", { ONE(I32, INT32_MAX), ONE(I32, 1) }, { 0 }, { { 0 } } },
    { "Add", "do not go together", { ONE(I64, 1), ONE(F32, 1) }, { 0 }, { { 0 } } },
    { "Add", "do not go together", { LIST(2, 1, 2), LIST(3, 1, 2, 3) }, { 0 }, { { 0 } } },
    { "Add", "no numbers", { ONE(BOO, 1), ONE(BOO, 1) }, { 0 }, { { 0 } } },
    { "Sub", NULL, { OF_X, OF_X }, LIST(3, 0, 0, 0), { { 0 } } },
    { "Mul", NULL, { OF_X, ONE(I64, -2) }, LIST(3, -2 * B, -6, -8 * B), { { 0 } } },
    { "Mul", NOT_KNOWN, { OF_X, OF_X }, { 0 }, { { 0 } } },
    { "Mul", "no number of its type", { ONE(I64, INT64_MAX), ONE(I64, 2) }, { 0 }, { { 0 } } },
    { "Div", NULL, { LIST(4, 7, -7, 8, 0), ONE(I64, 2) }, LIST(4, 3, -3, 4, 0), { { 0 } } },
    { "Div", NOT_KNOWN, { OF_X, ONE(I64, 2) }, { 0 }, { { 0 } } },
    { "Div", NOT_KNOWN, { LIST(3, 6, 6, 6), OF_X }, { 0 }, { { 0 } } },
    { "Div", "no number of its type", { ONE(I64, 1), ONE(I64, 0) }, { 0 }, { { 0 } } },
    { "Div", "no number of its type", { ONE(I64, INT64_MIN), ONE(I64, -1) }, { 0 }, { { 0 } } },
    { "Equal", NULL, { OF_X, LIST(3, 0, 3, -1) }, { BOO, 1, { 3 }, { 0, 1, 0 } }, { { 0 } } },
    { "Equal", NOT_KNOWN, { OF_X, LIST(1, 1) }, { 0 }, { { 0 } } },
    { "Less", NULL, { LIST(2, -1, 5), LIST(2, 0, 5) }, { BOO, 1, { 2 }, { 1, 0 } }, { { 0 } } },
    { "Greater", NULL, { OF_X, LIST(3, 0, 2, 3) }, { BOO, 1, { 3 }, { 1, 1, 1 } }, { { 0 } } },
    { "Where", NULL, { { BOO, 1, { 3 }, { 1, 0, 1 } }, OF_X, ONE(I64, 9) }, LIST(3, 1 * B, 9, 4 * B), { { 0 } } },
    { "Where", "do not go together", { ONE(I64, 1), OF_X, ONE(I64, 9) }, { 0 }, { { 0 } } },
    /* clang-format on */
};
enum { CASES = sizeof cases / sizeof *cases };

static message tensor_put(const char *name, const tensor *t)
{
    message m = tensor_of(name, t->type, t->rank, t->shape);
    uint8_t raw[8 * MOST + 8];
    size_t size = 0;
    int64_t count = 1;

    for (int i = 0; i < t->rank; i++)
        count *= t->shape[i];
    for (int64_t i = 0; i < count; i++) {
        float real = (float)t->values[i];

        if (t->type == F32)
            memcpy(raw + size, &real, sizeof real);
        else
            memcpy(raw + size, &t->values[i], 8);
        size += cek__onnx_type_bytes(t->type);
    }
    put_bytes(&m, 9, raw, size);
    return m;
}

/* Node 0 gives "s", the shape of x; node 1 is the case's. */
static message case_make(const struct fold_case *t)
{
    static const char *const letters[] = { "a", "b", "c", "d", "e" };
    message g = { .size = 0 }, part = node_of("Shape", NAMES("x"), NAMES("s"));
    const char *inputs[6] = { 0 };

    put_message(&g, 1, &part);
    for (int i = 0; i < 5 && t->in[i].type != 0; i++) {
        inputs[i] = t->in[i].type == -2 ? "s" : t->in[i].type == -1 ? "" : letters[i];
        if (t->in[i].type < 0)
            continue;
        part = tensor_put(letters[i], &t->in[i]);
        put_message(&g, 5, &part);
    }
    part = node_of(t->op, inputs, NAMES("y"));
    for (int i = 0; i < 2 && t->attribute[i].name != NULL; i++) {
        message a = { .size = 0 };

        put_text(&a, 1, t->attribute[i].name);
        put_integer(&a, 3, t->attribute[i].value);
        put_integer(&a, 20, 2);
        put_message(&part, 5, &a);
    }
    put_message(&g, 1, &part);
    part = value_of("x", 3, (const int64_t[]){ 0, 3, -1 });
    put_message(&g, 11, &part);
    part = value_of("y", 0, NULL);
    put_message(&g, 12, &part);
    return model_of(&g, 17);
}

/* Reads a file and computes what of it can be; x is [batch, 3, 4 * batch] where the file has one. */
static cek_status compute(const char *path, cek__onnx **o, cek__fold *f, bool *known)
{
    static const cek__fold_number sizes[3] = { { 0, 1, 0 }, { 3, 0, 0 }, { 0, 4, 0 } };
    cek_status st;

    *o = NULL;
    *f = (cek__fold){ 0 };
    CEK_TRY(cek__onnx_read(path, o));
    CEK_TRY(cek__fold_begin(*o, f));
    for (size_t i = 0; i < (*o)->inputs_count; i++)
        CEK_TRY(cek__fold_shape_set(f, (*o)->inputs[i].value, 3, sizes));
    for (size_t n = 0; n < (*o)->nodes_count; n++)
        CEK_TRY(cek__fold_node(f, n, known));
out:
    return st;
}

static void equals(const cek__fold_value *v, const tensor *t)
{
    ck_assert_int_eq(v->type, t->type);
    ck_assert_uint_eq(v->rank, (uint32_t)t->rank);
    for (int i = 0; i < t->rank; i++)
        ck_assert_int_eq(v->shape[i], t->shape[i]);
    for (uint64_t i = 0; i < v->count; i++) {
        bool large = t->values[i] > INT32_MAX || t->values[i] < INT32_MIN;
        int64_t factor = t->type == F32 || large ? 0 : (int64_t)llround((double)t->values[i] / B);

        if (t->type == F32) {
            ck_assert_double_eq(v->numbers[i].real, (double)t->values[i]);
            continue;
        }
        ck_assert_int_eq(v->numbers[i].factor, factor);
        ck_assert_int_eq(v->numbers[i].constant, t->values[i] - factor * B);
    }
}

START_TEST(an_operator_gives_what_onnx_says)
{
    const struct fold_case *t = &cases[_i];
    message m = case_make(t);
    const char *path = scratch_write("net.onnx", m.bytes, m.size);
    bool known;
    cek__onnx *o;
    cek__fold f;

    if (t->cause != NULL && strcmp(t->cause, NOT_KNOWN) != 0) {
        assert_fails(compute(path, &o, &f, &known), CEK_BAD_INPUT, "node 1 ('a node'", t->cause);
    } else {
        assert_ok(compute(path, &o, &f, &known));
        ck_assert_int_eq(known, t->cause == NULL);
        ck_assert((cek__fold_known(&f, o->outputs[0].value) != NULL) == known);
        if (known)
            equals(cek__fold_known(&f, o->outputs[0].value), &t->out);
    }
    cek__fold_end(&f);
    cek__onnx_free(o);
}
END_TEST

/* What torch.onnx writes of x.view(x.size(0), -1) and of x.view(x.size(0) * 3, x.size(2) // 4). */
START_TEST(a_chain_keeps_the_batch_to_its_end)
{
    static const tensor zero = ONE(I64, 0), two = ONE(I64, 2), three = ONE(I64, 3), four = ONE(I64, 4),
                        axis = LIST(1, 0);
    static const tensor expected = LIST(3, 3 * B, 1 * B, -1);
    message g = { .size = 0 }, part, a;
    bool known;
    cek__onnx *o;
    cek__fold f;
    const struct {
        const char *op;
        const char *inputs[4], *output;
    } nodes[] = {
        { "Shape", { "x" }, "s" },
        { "Gather", { "s", "zero" }, "n" },
        { "Mul", { "n", "three" }, "n3" },
        { "Gather", { "s", "two" }, "w" },
        { "Div", { "w", "four" }, "w4" },
        { "Unsqueeze", { "n3", "axis" }, "p" },
        { "Unsqueeze", { "w4", "axis" }, "q" },
        { "Constant", { NULL }, "r" },
        { "Concat", { "p", "q", "r" }, "y" },
    };
    const struct {
        const char *name;
        const tensor *t;
    } weights[] = { { "zero", &zero }, { "two", &two }, { "three", &three }, { "four", &four }, { "axis", &axis } };

    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
        part = tensor_put(weights[i].name, weights[i].t);
        put_message(&g, 5, &part);
    }
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        part = node_of(nodes[i].op, nodes[i].inputs, NAMES(nodes[i].output));
        a = nodes[i].op[3] == 's' ? integers_of("value_ints", (const int64_t[]){ -1 }, 1, 0) : (message){ .size = 0 };
        if (nodes[i].op[3] == 'c') {
            put_text(&a, 1, "axis");
            put_integer(&a, 3, 0);
            put_integer(&a, 20, 2);
        }
        if (a.size > 0)
            put_message(&part, 5, &a);
        put_message(&g, 1, &part);
    }
    part = value_of("x", 3, (const int64_t[]){ 0, 3, -1 });
    put_message(&g, 11, &part);
    part = value_of("y", 1, (const int64_t[]){ 3 });
    put_message(&g, 12, &part);
    g = model_of(&g, 17);
    assert_ok(compute(scratch_write("net.onnx", g.bytes, g.size), &o, &f, &known));
    ck_assert(known);
    equals(cek__fold_known(&f, o->outputs[0].value), &expected);
    cek__fold_end(&f);
    cek__onnx_free(o);
}
END_TEST

/* Nodes of a few bytes that each make as much as is computed with: their sum is refused. */
START_TEST(small_nodes_cannot_make_much_memory)
{
    static const tensor size = LIST(1, CEK__FOLD_MOST);
    message g = { .size = 0 }, part = tensor_put("n", &size);
    char name[16];
    bool known;
    cek__onnx *o;
    cek__fold f;

    ck_assert_int_lt(100 * CEK__FOLD_MOST, CEK__FOLD_ALL);
    put_message(&g, 5, &part);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "y%d", i);
        part = (message){ .size = 0 };
        put_text(&part, 1, "n");
        put_text(&part, 2, name);
        put_text(&part, 4, "ConstantOfShape");
        put_message(&g, 1, &part);
    }
    part = value_of("y0", 0, NULL);
    put_message(&g, 12, &part);
    g = model_of(&g, 17);
    assert_ok(compute(scratch_write("net.onnx", g.bytes, g.size), &o, &f, &known));
    ck_assert(known);
    for (size_t n = 0; cek__fold_node(&f, n % 100, &known) == CEK_OK; n++)
        ck_assert_uint_lt(n, 200);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "too much of constants"));
    cek__fold_end(&f);
    cek__onnx_free(o);
}
END_TEST

static uint64_t draws;

static uint32_t below(size_t bound)
{
    return (uint32_t)(((uint64_t)cek__random_u32(20261124, 0, draws++) * bound) >> 32);
}

START_TEST(changed_bytes_are_computed_or_refused)
{
    int accepted = 0, times = getenv("CEKERNELS_TEST_LONG") != NULL ? 100 * CASES : 12 * CASES;
    bool known;
    cek__onnx *o;
    cek__fold f;

    for (int i = 0; i < times; i++) {
        message m = case_make(&cases[i % CASES]);
        cek_status st;

        for (uint32_t k = 0, n = 1 + below(3); k < n; k++)
            m.bytes[below(m.size)] = (uint8_t)below(256);
        st = compute(scratch_write("net.onnx", m.bytes, m.size), &o, &f, &known);
        ck_assert_msg(st == CEK_OK || st == CEK_BAD_INPUT || st == CEK_IO, "%s", cek_error_text());
        accepted += st == CEK_OK;
        cek__fold_end(&f);
        cek__onnx_free(o);
    }
    ck_assert_int_gt(accepted, 0);
    ck_assert_int_lt(accepted, times);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    message m = case_make(&cases[_i]);
    const char *path = scratch_write("net.onnx", m.bytes, m.size);
    cek_status st = CEK_OUT_OF_MEMORY;
    bool known;
    cek__onnx *o;
    cek__fold f;

    for (long n = 1; st == CEK_OUT_OF_MEMORY; n++) {
        cek__fault_set(CEK__FAULT_ALLOC, n);
        st = compute(path, &o, &f, &known);
        cek__fold_end(&f);
        cek__onnx_free(o);
    }
    ck_assert(cek__fault_pending(CEK__FAULT_ALLOC));
    cek__fault_set(CEK__FAULT_ALLOC, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("onnx_fold");
    TCase *all = tcase_create("all");

    tcase_add_checked_fixture(all, scratch_make, scratch_remove);
    tcase_add_loop_test(all, an_operator_gives_what_onnx_says, 0, CASES);
    tcase_add_test(all, a_chain_keeps_the_batch_to_its_end);
    tcase_add_test(all, small_nodes_cannot_make_much_memory);
    tcase_add_test(all, changed_bytes_are_computed_or_refused);
    tcase_add_loop_test(all, every_allocation_may_fail, 0, CASES);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
