/* onnx_fold.c - which operators are computed while a file is read, from what, and where their results are kept. */
#include "nn/formats/onnx_fold.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "nn/formats/onnx_fold_inside.h"

enum { NAME_SHOWN = 200 };

cek_status cek__fold_bad(const cek__fold_call *c, const char *cause)
{
    return cek__fail(CEK_BAD_INPUT, "node %zu ('%.*s', %.*s): %s", c->number, NAME_SHOWN, c->node->name, NAME_SHOWN,
                     c->node->op, cause);
}

cek_status cek__fold_make(cek__fold_call *c, int type, uint32_t rank, const int64_t *shape)
{
    cek__fold_value made = { .type = type, .rank = rank, .count = 1 };
    cek_status st = CEK_OK;

    for (uint32_t i = 0; i < rank; i++) {
        made.shape[i] = shape[i];
        if (shape[i] < 0 || __builtin_mul_overflow(made.count, (uint64_t)shape[i], &made.count))
            return cek__fold_bad(c, "the shape of what it gives is impossible");
    }
    if (made.count > CEK__FOLD_MOST)
        goto out;
    c->fold->taken += made.count + 1;
    if (c->fold->taken > CEK__FOLD_ALL)
        return cek__fold_bad(c, "the file computes too much of constants");
    CEK_TRY(cek__calloc(made.count, sizeof *made.numbers, &made.numbers));
    c->out = made;
out:
    return st;
}

void cek__fold_forget(cek__fold_call *c)
{
    free(c->out.numbers);
    c->out = (cek__fold_value){ 0 };
}

cek_status cek__fold_tensor(cek__fold_call *c, const cek__onnx_tensor *t)
{
    const uint8_t *at = t->data;
    float real;
    cek_status st = CEK_OK;

    if (t->type != CEK__ONNX_FLOAT && t->type != CEK__ONNX_INT64 && t->type != CEK__ONNX_INT32 &&
        t->type != CEK__ONNX_BOOL)
        goto out;
    CEK_TRY(cek__fold_make(c, t->type, t->rank, t->shape));
    for (uint64_t i = 0; i < c->out.count && c->out.numbers != NULL; i++, at += cek__onnx_type_bytes(t->type)) {
        cek__fold_number *n = &c->out.numbers[i];
        int32_t narrow;

        switch (t->type) {
        case CEK__ONNX_FLOAT:
            memcpy(&real, at, sizeof real);
            n->real = (double)real;
            break;
        case CEK__ONNX_INT64: memcpy(&n->constant, at, sizeof n->constant); break;
        case CEK__ONNX_INT32:
            memcpy(&narrow, at, sizeof narrow);
            n->constant = narrow;
            break;
        default: n->constant = *at != 0;
        }
    }
out:
    return st;
}

int64_t cek__fold_integer(const cek__fold_call *c, const char *name, int64_t otherwise)
{
    const cek__onnx_attribute *a = cek__onnx_attribute_find(c->fold->onnx, c->node, name);

    return a != NULL && a->kind == CEK__ONNX_ATTRIBUTE_INT ? a->integer : otherwise;
}

cek_status cek__fold_axis(const cek__fold_call *c, int64_t axis, uint32_t rank, uint32_t *out)
{
    *out = 0;
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return cek__fold_bad(c, "it has no such axis");
    *out = (uint32_t)(axis < 0 ? axis + rank : axis);
    return CEK_OK;
}

bool cek__fold_constant(const cek__fold_value *v)
{
    for (uint64_t i = 0; i < v->count; i++)
        if (v->numbers[i].factor != 0)
            return false;
    return v->type != CEK__ONNX_FLOAT;
}

/* ---- operators that need no values ---- */

/* The numbers in its attribute; of a tensor (onnx_names.c) they are taken when they are wanted. */
static cek_status constant(cek__fold_call *c)
{
    const cek__onnx *o = c->fold->onnx;
    const cek__onnx_attribute *a = c->node->attributes == 1 ? &o->attributes[c->node->first_attribute] : NULL;
    cek_status st = CEK_OK;
    int64_t length;

    if (a == NULL)
        return cek__fold_bad(c, "it has not one value");
    length = (int64_t)a->count;
    switch (a->kind) {
    case CEK__ONNX_ATTRIBUTE_INT:
        CEK_TRY(cek__fold_make(c, CEK__ONNX_INT64, 0, NULL));
        c->out.numbers[0].constant = a->integer;
        break;
    case CEK__ONNX_ATTRIBUTE_FLOAT:
        CEK_TRY(cek__fold_make(c, CEK__ONNX_FLOAT, 0, NULL));
        c->out.numbers[0].real = (double)a->number;
        break;
    case CEK__ONNX_ATTRIBUTE_INTS:
        CEK_TRY(cek__fold_make(c, CEK__ONNX_INT64, 1, &length));
        for (size_t i = 0; i < a->count && c->out.numbers != NULL; i++)
            c->out.numbers[i].constant = o->integers[a->first + i];
        break;
    case CEK__ONNX_ATTRIBUTE_FLOATS:
        CEK_TRY(cek__fold_make(c, CEK__ONNX_FLOAT, 1, &length));
        for (size_t i = 0; i < a->count && c->out.numbers != NULL; i++)
            c->out.numbers[i].real = (double)o->numbers[a->first + i];
        break;
    default: break; /* a text: nothing is computed of it */
    }
out:
    return st;
}

static int64_t clamped(int64_t value, int64_t most)
{
    value = value < 0 ? value + most : value;
    return value < 0 ? 0 : value > most ? most : value;
}

/* The shape of its input, from `start` to before `end`. */
static cek_status shape(cek__fold_call *c)
{
    const cek__onnx_link *link = &c->fold->onnx->links[c->node->first_input];
    const cek__fold_value *known;
    int64_t rank, start, end, length;
    cek_status st = CEK_OK;

    if (c->node->inputs != 1 || link->value == CEK__ONNX_NONE)
        return cek__fold_bad(c, "it has not one input");
    known = &c->fold->shapes[link->value];
    if (known->numbers == NULL)
        goto out;
    rank = (int64_t)known->count;
    start = clamped(cek__fold_integer(c, "start", 0), rank);
    end = clamped(cek__fold_integer(c, "end", rank), rank);
    length = end > start ? end - start : 0;
    CEK_TRY(cek__fold_make(c, CEK__ONNX_INT64, 1, &length));
    for (int64_t i = 0; i < length; i++)
        c->out.numbers[i] = known->numbers[start + i];
out:
    return st;
}

/* How many elements its input has, with at most one axis that depends on the batch. */
static cek_status size(cek__fold_call *c)
{
    const cek__onnx_link *link = &c->fold->onnx->links[c->node->first_input];
    const cek__fold_value *known;
    cek__fold_number all = { .constant = 1 };
    cek_status st = CEK_OK;

    if (c->node->inputs != 1 || link->value == CEK__ONNX_NONE)
        return cek__fold_bad(c, "it has not one input");
    known = &c->fold->shapes[link->value];
    if (known->numbers == NULL)
        goto out;
    for (uint64_t i = 0; i < known->count; i++) {
        const cek__fold_number *n = &known->numbers[i];
        int64_t by = n->factor != 0 ? n->factor : n->constant;

        if (n->factor != 0 && (all.factor != 0 || n->constant != 0))
            goto out;
        all.constant = all.factor == 0 ? all.constant : all.factor;
        if (__builtin_mul_overflow(all.constant, by, &all.constant))
            return cek__fold_bad(c, "there are too many");
        if (all.factor != 0 || n->factor != 0)
            all = (cek__fold_number){ .factor = all.constant };
    }
    CEK_TRY(cek__fold_make(c, CEK__ONNX_INT64, 0, NULL));
    c->out.numbers[0] = all;
out:
    return st;
}

/* One value as often as its input says. */
static cek_status constant_of_shape(cek__fold_call *c)
{
    const cek__onnx_attribute *a = cek__onnx_attribute_find(c->fold->onnx, c->node, "value");
    cek__fold_number number = { 0 };
    int64_t sizes[CEK_RANK_MAX];
    int type = CEK__ONNX_FLOAT;
    cek_status st = CEK_OK;

    if (c->in[0]->rank != 1 || c->in[0]->count > CEK_RANK_MAX)
        return cek__fold_bad(c, "its input is no shape");
    if (!cek__fold_constant(c->in[0]))
        goto out;
    for (uint64_t i = 0; i < c->in[0]->count; i++)
        sizes[i] = c->in[0]->numbers[i].constant;
    if (a != NULL) {
        if (a->kind != CEK__ONNX_ATTRIBUTE_TENSOR || c->fold->onnx->tensors[a->tensor].count != 1)
            return cek__fold_bad(c, "its value is not one number");
        CEK_TRY(cek__fold_tensor(c, &c->fold->onnx->tensors[a->tensor]));
        if (c->out.numbers == NULL)
            goto out;
        type = c->out.type;
        number = c->out.numbers[0];
        cek__fold_forget(c);
    }
    CEK_TRY(cek__fold_make(c, type, (uint32_t)c->in[0]->count, sizes));
    for (uint64_t i = 0; i < c->out.count; i++)
        c->out.numbers[i] = number;
out:
    return st;
}

/* ---- the table ---- */

/* clang-format off */
static const struct {
    const char *op;
    size_t least, most; /* inputs whose values are needed */
    cek_status (*run)(cek__fold_call *call);
    int argument;
} operators[] = {
    { "Constant", 0, 0, constant, 0 },
    { "Shape", 0, 0, shape, 0 },
    { "Size", 0, 0, size, 0 },
    { "Neg", 1, 1, cek__fold_one, CEK__FOLD_NEG },
    { "Sqrt", 1, 1, cek__fold_one, CEK__FOLD_SQRT },
    { "Not", 1, 1, cek__fold_one, CEK__FOLD_NOT },
    { "ConstantOfShape", 1, 1, constant_of_shape, 0 },
    { "Identity", 1, 1, cek__fold_identity, 0 },
    { "Gather", 2, 2, cek__fold_gather, 0 },
    { "Concat", 1, CEK__FOLD_INPUTS, cek__fold_concat, 0 },
    { "Slice", 3, 5, cek__fold_slice, 0 },
    { "Unsqueeze", 2, 2, cek__fold_unsqueeze, 0 },
    { "Squeeze", 1, 2, cek__fold_squeeze, 0 },
    { "Reshape", 2, 2, cek__fold_reshape, 0 },
    { "Expand", 2, 2, cek__fold_expand, 0 },
    { "Trilu", 1, 2, cek__fold_trilu, 0 },
    { "Cast", 1, 1, cek__fold_cast, 0 },
    { "CastLike", 2, 2, cek__fold_cast, 0 },
    { "Where", 3, 3, cek__fold_where, 0 },
    { "Range", 3, 3, cek__fold_range, 0 },
    { "Add", 2, 2, cek__fold_two, CEK__FOLD_ADD },
    { "Sub", 2, 2, cek__fold_two, CEK__FOLD_SUB },
    { "Mul", 2, 2, cek__fold_two, CEK__FOLD_MUL },
    { "Div", 2, 2, cek__fold_two, CEK__FOLD_DIV },
    { "Mod", 2, 2, cek__fold_two, CEK__FOLD_MOD },
    { "Min", 2, 2, cek__fold_two, CEK__FOLD_MIN },
    { "Max", 2, 2, cek__fold_two, CEK__FOLD_MAX },
    { "Equal", 2, 2, cek__fold_two, CEK__FOLD_EQUAL },
    { "Less", 2, 2, cek__fold_two, CEK__FOLD_LESS },
    { "LessOrEqual", 2, 2, cek__fold_two, CEK__FOLD_LESS_OR_EQUAL },
    { "Greater", 2, 2, cek__fold_two, CEK__FOLD_GREATER },
    { "GreaterOrEqual", 2, 2, cek__fold_two, CEK__FOLD_GREATER_OR_EQUAL },
    { "And", 2, 2, cek__fold_two, CEK__FOLD_AND },
    { "Or", 2, 2, cek__fold_two, CEK__FOLD_OR },
};
/* clang-format on */

/* One number is a weight if the file says so: it is a constant most of the time. */
static bool is_weight(const cek__onnx *o, int value)
{
    const cek__onnx_value *v = &o->values[value];
    const cek__onnx_tensor *t = &o->tensors[v->tensor];

    return t->type == CEK__ONNX_FLOAT && v->role != CEK__ONNX_ROLE_BUFFER &&
           (t->count > 1 || v->role == CEK__ONNX_ROLE_PARAMETER);
}

bool cek__fold_knows(const cek__onnx_node *node)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strcmp(node->op, operators[i].op) == 0 && node->domain[0] == '\0')
            return true;
    return false;
}

cek_status cek__fold_look(cek__fold *f, int value, const cek__fold_value **out)
{
    cek__onnx_node giver = { .op = "initialiser", .name = "" };
    cek__fold_call load = { .fold = f, .node = &giver };
    cek_status st = CEK_OK;

    *out = cek__fold_known(f, value);
    if (*out != NULL || value < 0 || f->onnx->values[value].tensor == CEK__ONNX_NONE)
        goto out;
    giver.name = f->onnx->values[value].name;
    CEK_TRY(cek__fold_tensor(&load, &f->onnx->tensors[f->onnx->values[value].tensor]));
    f->values[value] = load.out;
    f->values[value].weight = is_weight(f->onnx, value);
    *out = cek__fold_known(f, value);
out:
    return st;
}

/* Fills in the values of the inputs; *known false where one is not known or the node has others than the operator
 * takes. Weights are looked at last: those of layers, whose other input is not known, never. */
static cek_status inputs_find(cek__fold_call *c, size_t least, size_t most, bool *known)
{
    const cek__onnx *o = c->fold->onnx;
    const cek__onnx_link *links = &o->links[c->node->first_input];
    cek_status st = CEK_OK;

    *known = most == 0 || (c->node->inputs >= least && c->node->inputs <= most);
    c->inputs = most == 0 ? 0 : c->node->inputs;
    for (size_t i = 0; *known && i < c->inputs; i++) {
        int value = links[i].value;

        if (value == CEK__ONNX_NONE)
            *known = i >= least;
        else if (o->values[value].tensor == CEK__ONNX_NONE)
            *known = cek__fold_known(c->fold, value) != NULL;
    }
    for (size_t i = 0; *known && i < c->inputs; i++) {
        int value = links[i].value;

        if (value == CEK__ONNX_NONE)
            continue;
        CEK_TRY(cek__fold_look(c->fold, value, &c->in[i]));
        *known = c->in[i] != NULL;
    }
out:
    return st;
}

/* What a value is, and with that its shape; takes the numbers over, also on failure. */
static cek_status known_set(cek__fold *f, int value, const cek__fold_value *v)
{
    cek__fold_number sizes[CEK_RANK_MAX] = { 0 };

    free(f->values[value].numbers);
    f->values[value] = *v;
    for (uint32_t i = 0; i < v->rank; i++)
        sizes[i].constant = v->shape[i];
    return cek__fold_shape_set(f, value, v->rank, sizes);
}

cek_status cek__fold_node(cek__fold *f, size_t number, bool *known)
{
    const cek__onnx_node *node = &f->onnx->nodes[number];
    cek__fold_call c = { .fold = f, .node = node, .number = number };
    const cek__onnx_link *output = &f->onnx->links[node->first_output];
    cek_status st = CEK_OK;

    *known = false;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (strcmp(node->op, operators[i].op) != 0 || node->domain[0] != '\0' || node->outputs != 1 ||
            output->value == CEK__ONNX_NONE)
            continue;
        CEK_TRY(inputs_find(&c, operators[i].least, operators[i].most, known));
        c.argument = operators[i].argument;
        if (*known)
            CEK_TRY(operators[i].run(&c));
        *known = c.out.numbers != NULL;
        for (size_t k = 0; *known && k < c.inputs; k++)
            c.out.weight |= c.in[k] != NULL && c.in[k]->weight && c.out.type == CEK__ONNX_FLOAT;
        if (*known)
            return known_set(f, output->value, &c.out);
        break;
    }
out:
    if (st != CEK_OK) {
        *known = false;
        cek__fold_forget(&c);
    }
    return st;
}

cek_status cek__fold_shape_set(cek__fold *f, int value, uint32_t rank, const cek__fold_number *sizes)
{
    cek__fold_value *s = &f->shapes[value];
    cek_status st;

    free(s->numbers);
    *s = (cek__fold_value){ .type = CEK__ONNX_INT64, .rank = 1, .shape = { rank }, .count = rank };
    CEK_TRY(cek__calloc(rank, sizeof *s->numbers, &s->numbers));
    for (uint32_t i = 0; i < rank; i++)
        s->numbers[i] = sizes[i];
out:
    return st;
}

const cek__fold_value *cek__fold_known(const cek__fold *f, int value)
{
    return value >= 0 && f->values[value].numbers != NULL ? &f->values[value] : NULL;
}

cek_status cek__fold_begin(const cek__onnx *onnx, cek__fold *out)
{
    cek_status st;

    *out = (cek__fold){ .onnx = onnx };
    CEK_TRY(cek__calloc(onnx->values_count, sizeof *out->values, &out->values));
    CEK_TRY(cek__calloc(onnx->values_count, sizeof *out->shapes, &out->shapes));
    for (size_t i = 0; i < onnx->values_count; i++) {
        const cek__onnx_tensor *t;
        cek__fold_number sizes[CEK_RANK_MAX] = { 0 };

        if (onnx->values[i].tensor == CEK__ONNX_NONE)
            continue;
        t = &onnx->tensors[onnx->values[i].tensor];
        for (uint32_t k = 0; k < t->rank; k++)
            sizes[k].constant = t->shape[k];
        CEK_TRY(cek__fold_shape_set(out, (int)i, t->rank, sizes));
    }
    return CEK_OK;
out:
    cek__fold_end(out);
    return st;
}

void cek__fold_end(cek__fold *f)
{
    for (size_t i = 0; f->onnx != NULL && i < f->onnx->values_count; i++) {
        if (f->values != NULL)
            free(f->values[i].numbers);
        if (f->shapes != NULL)
            free(f->shapes[i].numbers);
    }
    free(f->values);
    free(f->shapes);
    *f = (cek__fold){ 0 };
}
