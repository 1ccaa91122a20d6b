/* text.c - tensors in words, as NumPy writes its arrays: the same characters as str() and repr() of NumPy 2.
 *
 * The rules are those of numpy/_core/arrayprint.py: which numbers are looked at to choose a form, when it is
 * scientific, how columns are aligned, where a line ends, and what is left out of a large array. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/options.h"
#include "core/tensor/copy.h"
#include "core/tensor/digits.h"

enum { PRECISION = 8, THRESHOLD = 1000, EDGE_ITEMS = 3, LINE_WIDTH = 75, SCALAR_PRECISION = CEK__PRECISION_MAX };

/* ---- a text that grows ---- */

typedef struct text {
    char *at;
    size_t used, room;
    cek_status failed; /* what came first; then nothing more is added */
} text;

static void text_add(text *t, const char *bytes, size_t count)
{
    if (t->failed == CEK_OK && t->room - t->used <= count) {
        const size_t room = 2 * t->room + count + 256;

        t->failed = cek__realloc_array(room, 1, &t->at);
        t->room = t->failed == CEK_OK ? room : t->room;
    }
    if (t->failed != CEK_OK)
        return;
    memcpy(t->at + t->used, bytes, count);
    t->used += count;
    t->at[t->used] = '\0';
}

static void text_word(text *t, const char *word)
{
    text_add(t, word, strlen(word));
}

static void text_repeat(text *t, char c, int count)
{
    for (; count > 0; count--)
        text_add(t, &c, 1);
}

/* ---- one number ---- */

/* How all numbers of an array are written. */
typedef struct form {
    cek_dtype type;
    bool scientific;
    int precision;
    int left, right; /* characters before the point, with a sign, and behind it */
    int fraction;    /* scientific: digits of every number */
    int exponent;    /* and characters of its exponent, with the sign */
} form;

typedef struct array {
    const unsigned char *elements; /* what is shown, dense */
    cek__shape shape;
    bool cut[CEK_RANK_MAX]; /* the middle of the dimension is left out */
    size_t element_bytes;
    form form;
    const cek_text_options *options;
    const char *separator;
} array;

static double element(const array *a, int64_t i)
{
    return cek__dtype_get(a->form.type, a->elements + (size_t)i * a->element_bytes);
}

/* Rounded as arithmetic of the type is. */
static double as_type(cek_dtype type, double value)
{
    unsigned char bytes[8];

    cek__dtype_put(type, value, bytes);
    return cek__dtype_get(type, bytes);
}

/* From where on the largest number makes the form scientific: 10 to the digits that the type has for sure, 8 at most.
 * bf16, which NumPy lacks, goes with f16. */
static double large(cek_dtype type)
{
    return type == CEK_F64 ? 1e8 : type == CEK_F32 ? 1e6 : 1e3;
}

static bool is_scientific(const array *a, int64_t count)
{
    const cek_dtype type = a->form.type;
    double most = 0, least = INFINITY;

    for (int64_t i = 0; i < count; i++) {
        const double value = fabs(element(a, i));

        if (isfinite(value) && value != 0) {
            most = fmax(most, value);
            least = fmin(least, value);
        }
    }
    if (most == 0)
        return false;
    return most >= large(type) ||
           (!a->options->suppress && (least < as_type(type, 0.0001) || as_type(type, most / least) > 1000));
}

static void reals_measure(array *a, int64_t count)
{
    form *f = &a->form;
    cek__digits d;
    bool negative_infinity = false, odd = false;

    f->scientific = is_scientific(a, count);
    for (int64_t i = 0; i < count; i++) {
        const double value = element(a, i);

        odd = odd || !isfinite(value);
        negative_infinity = negative_infinity || value == -INFINITY;
        if (!isfinite(value))
            continue;
        cek__digits_make(f->type, value, 0, f->precision, f->scientific, &d);
        f->left = d.whole > f->left ? d.whole : f->left;
        f->fraction = d.fraction > f->fraction ? d.fraction : f->fraction;
        f->exponent = d.exponent > f->exponent ? d.exponent : f->exponent;
    }
    f->right = f->fraction + (f->exponent > 0 ? 1 + f->exponent : 0);
    if (odd) { /* "nan", "inf" and "-inf" stand across the point */
        const int widest = 3 + negative_infinity - (f->right + 1);

        f->left = widest > f->left ? widest : f->left;
    }
}

static void real_put(text *t, const form *f, double value)
{
    cek__digits d;

    if (!isfinite(value)) {
        const char *word = isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";

        text_repeat(t, ' ', f->left + f->right + 1 - (int)strlen(word));
        text_word(t, word);
        return;
    }
    cek__digits_make(f->type, value, f->scientific ? f->fraction : 0, f->precision, f->scientific, &d);
    text_repeat(t, ' ', f->left - d.whole);
    text_word(t, d.text);
    text_repeat(t, ' ', f->fraction - d.fraction);
    if (f->scientific) {
        text_add(t, "e", 1);
        text_add(t, d.exponent_text, 1);
        text_repeat(t, '0', f->exponent - d.exponent);
        text_word(t, d.exponent_text + 1);
    }
}

static void wholes_measure(array *a, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const int width = snprintf(NULL, 0, "%" PRId64, (int64_t)element(a, i));

        a->form.left = width > a->form.left ? width : a->form.left;
    }
}

static void number_put(text *t, const form *f, double value)
{
    char word[32];

    if (cek__dtype_is_float(f->type)) {
        real_put(t, f, value);
    } else {
        snprintf(word, sizeof word, "%*" PRId64, f->left, (int64_t)value);
        text_word(t, word);
    }
}

/* A number that stands alone, as Python's str() of a NumPy scalar. */
static void scalar_put(text *t, const array *a)
{
    const double value = element(a, 0), magnitude = fabs(value);
    cek__digits d;

    if (!cek__dtype_is_float(a->form.type) || !isfinite(value)) {
        number_put(t, &(form){ .type = a->form.type }, value);
        return;
    }
    cek__digits_make(a->form.type, value, 0, SCALAR_PRECISION,
                     magnitude != 0 &&
                         (magnitude >= (a->form.type == CEK_F64 ? 1e16 : large(a->form.type)) || magnitude < 1e-4),
                     &d);
    if (d.exponent > 0 && d.fraction == 0)
        d.text[d.whole] = '\0';
    text_word(t, d.text);
    if (d.exponent > 0) {
        text_add(t, "e", 1);
        text_word(t, d.exponent_text);
    } else if (d.fraction == 0) {
        text_add(t, "0", 1);
    }
}

/* ---- rows and what holds them ---- */

/* Where a line stands. */
typedef struct line {
    int indent, column, width;
} line;

static void word_begin(text *t, line *l, int length)
{
    if (l->column + length > l->width && l->column > l->indent) {
        while (t->used > 0 && t->failed == CEK_OK && t->at[t->used - 1] == ' ')
            t->used--;
        text_add(t, "\n", 1);
        text_repeat(t, ' ', l->indent);
        l->column = l->indent;
    }
    l->column += length;
}

static void row_put(text *t, const array *a, int64_t first, int indent, int width)
{
    const int axis = a->shape.rank - 1, after = (int)strlen(a->separator);
    const int64_t size = a->shape.dims[axis];
    const int word = a->form.left + (cek__dtype_is_float(a->form.type) ? 1 + a->form.right : 0);
    line l = { .indent = indent, .column = indent, .width = width - 1 };

    for (int64_t i = 0; i < size; i++) {
        if (i > 0) {
            text_word(t, a->separator);
            l.column += after;
        }
        if (a->cut[axis] && i == size / 2) {
            word_begin(t, &l, 3);
            text_word(t, "...");
            text_word(t, a->separator);
            l.column += after;
        }
        word_begin(t, &l, word);
        number_put(t, &a->form, element(a, first + i));
    }
}

static void level_put(text *t, const array *a, int axis, int64_t first, int indent, int width)
{
    const int64_t size = a->shape.dims[axis];
    int64_t inner = 1;

    for (int i = axis + 1; i < a->shape.rank; i++)
        inner *= a->shape.dims[i];
    text_add(t, "[", 1);
    if (axis == a->shape.rank - 1)
        row_put(t, a, first, indent, width);
    for (int64_t i = 0; i < size && axis < a->shape.rank - 1; i++) {
        const bool dots = a->cut[axis] && i == size / 2;

        for (int part = !dots; part < 2; part++) {
            if (i > 0) {
                text_add(t, a->separator, strcspn(a->separator, " "));
                text_repeat(t, '\n', a->shape.rank - axis - 1);
                text_repeat(t, ' ', indent);
            }
            if (part == 0)
                text_word(t, "...");
            else
                level_put(t, a, axis + 1, first + i * inner, indent + 1, width - 1);
        }
    }
    text_add(t, "]", 1);
}

/* ---- the whole ---- */

/* The corners of a large tensor, joined: all that is shown of it. */
static cek_status corners(const cek_tensor *x, int64_t edge, bool cut[CEK_RANK_MAX], cek_tensor **out)
{
    cek_status st = CEK_OK;
    cek_tensor *now = NULL, *ends[2] = { NULL, NULL };

    *out = NULL;
    CEK_TRY(cek__tensor_view(x, &x->shape, x->strides, x->offset, &now));
    for (int axis = 0; axis < x->shape.rank; axis++) {
        cek_tensor *joined;
        const int64_t size = x->shape.dims[axis];

        cut[axis] = size / 2 > edge || (size / 2 == edge && size % 2 != 0);
        if (!cut[axis])
            continue;
        CEK_TRY(cek_tensor_narrow(now, axis, 0, edge, &ends[0]));
        CEK_TRY(cek_tensor_narrow(now, axis, size - edge, edge, &ends[1]));
        CEK_TRY(cek_tensor_cat(2, (const cek_tensor *const *)ends, axis, &joined));
        cek_tensor_free(now);
        cek_tensor_free(ends[0]);
        cek_tensor_free(ends[1]);
        now = joined;
        ends[0] = ends[1] = NULL;
    }
    *out = now;
    return CEK_OK;
out:
    cek_tensor_free(now);
    cek_tensor_free(ends[0]);
    cek_tensor_free(ends[1]);
    return st;
}

static const char *numpy_name(cek_dtype type)
{
    static const char *const names[] = { [CEK_F32] = "float32", [CEK_F16] = "float16", [CEK_BF16] = "bfloat16",
                                         [CEK_F64] = "float64", [CEK_U8] = "uint8",    [CEK_I32] = "int32" };

    return names[type];
}

/* What repr() says behind the elements: the shape of what was cut short, and every type but Python's own. */
static void repr_end(text *t, const cek_tensor *x, bool summary, int width)
{
    char more[CEK_RANK_MAX * 24 + 64];
    size_t used = 0, begin;

    more[0] = '\0';
    if (summary) {
        used += (size_t)snprintf(more, sizeof more, "shape=(");
        for (int i = 0; i < x->shape.rank; i++)
            used += (size_t)snprintf(more + used, sizeof more - used, "%s%" PRId64 "%s", i > 0 ? " " : "",
                                     x->shape.dims[i], i + 1 < x->shape.rank || i == 0 ? "," : "");
        used += (size_t)snprintf(more + used, sizeof more - used, ")");
    }
    if (x->type != CEK_F64)
        used += (size_t)snprintf(more + used, sizeof more - used, "%sdtype=%s", summary ? ", " : "",
                                 numpy_name(x->type));
    if (used > 0 && t->failed == CEK_OK) {
        text_add(t, ",", 1);
        for (begin = t->used; begin > 0 && t->at[begin - 1] != '\n'; begin--)
            ;
        text_word(t, t->used - begin + used + 2 > (size_t)width ? "\n      " : " ");
        text_word(t, more);
    }
    text_add(t, ")", 1);
}

static cek_status options_take(const cek_text_options *given, cek_text_options *o)
{
    static const char what[] = "cek_tensor_text";
    cek_status st;

    CEK_TRY(cek__options_take(what, o, sizeof *o, given));
    o->precision = o->precision == 0 ? PRECISION : o->precision == CEK_TEXT_WHOLE ? 0 : o->precision;
    o->threshold += o->threshold == 0 ? THRESHOLD : 0;
    o->edge_items += o->edge_items == 0 ? EDGE_ITEMS : 0;
    o->line_width += o->line_width == 0 ? LINE_WIDTH : 0;
    if (o->precision < 0 || o->precision > CEK__PRECISION_MAX)
        CEK_FAIL(CEK_INVALID, "%s: precision %d: 1 to %d, or CEK_TEXT_WHOLE", what, o->precision, CEK__PRECISION_MAX);
    if (o->threshold < 0 || o->edge_items < 0 || o->line_width < 0)
        CEK_FAIL(CEK_INVALID, "%s: threshold %" PRId64 ", edge_items %d, line_width %d: 0 or more", what, o->threshold,
                 o->edge_items, o->line_width);
out:
    return st;
}

cek_status cek_tensor_text(const cek_tensor *tensor, const cek_text_options *options, char **out)
{
    cek_status st;
    cek_text_options o;
    cek_tensor *shown = NULL;
    unsigned char *elements = NULL;
    text t = { .at = NULL };
    array a;
    bool summary;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(tensor);
    CEK_TRY(options_take(options, &o));
    a = (array){ .options = &o,
                 .element_bytes = cek_dtype_bytes(tensor->type),
                 .form = { .type = tensor->type, .precision = o.precision },
                 .separator = o.repr ? ", " : " " };
    summary = cek_tensor_count(tensor) > o.threshold;
    CEK_TRY(summary ? corners(tensor, o.edge_items, a.cut, &shown) : cek_tensor_contiguous(tensor, &shown));
    CEK_TRY(cek__malloc(cek_tensor_bytes(shown), &elements));
    CEK_TRY(cek_tensor_read(shown, elements, cek_tensor_bytes(shown)));
    a.elements = elements;
    a.shape = shown->shape;
    if (cek__dtype_is_float(a.form.type))
        reals_measure(&a, cek_tensor_count(shown));
    else
        wholes_measure(&a, cek_tensor_count(shown));
    if (o.repr)
        text_word(&t, "array(");
    if (a.shape.rank > 0)
        level_put(&t, &a, 0, 0, 1 + (o.repr ? 6 : 0), o.line_width - o.repr);
    else if (o.repr)
        number_put(&t, &a.form, element(&a, 0));
    else
        scalar_put(&t, &a);
    if (o.repr)
        repr_end(&t, tensor, summary, o.line_width);
    CEK_TRY(t.failed);
    *out = t.at;
    t.at = NULL;
out:
    free(t.at);
    cek__free_after(st, elements);
    cek_tensor_free(shown);
    return st;
}
