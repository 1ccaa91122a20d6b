/* call.c - see call.h. */
#include "nn/onnx/call.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/log.h"
#include "nn/formats/tensors.h"

enum { NAME_SHOWN = 200 };

/* ---- attributes ---- */

static const cek__onnx_attribute *find(const cek__onnx_call *c, const char *name, cek__onnx_attribute_kind kind)
{
    const cek__onnx_attribute *a = cek__onnx_attribute_find(c->import->onnx, c->node, name);

    return a != NULL && a->kind == kind ? a : NULL;
}

int64_t cek__call_int(const cek__onnx_call *c, const char *name, int64_t otherwise)
{
    const cek__onnx_attribute *a = find(c, name, CEK__ONNX_ATTRIBUTE_INT);

    return a != NULL ? a->integer : otherwise;
}

double cek__call_float(const cek__onnx_call *c, const char *name, double otherwise)
{
    const cek__onnx_attribute *a = find(c, name, CEK__ONNX_ATTRIBUTE_FLOAT);

    return a != NULL ? (double)a->number : otherwise;
}

cek_status cek__call_word(const cek__onnx_call *c, const char *name, const char *const *words, int *out)
{
    const cek__onnx_attribute *a = find(c, name, CEK__ONNX_ATTRIBUTE_STRING);

    for (*out = 0; a != NULL && words[*out] != NULL && strcmp(words[*out], a->text) != 0;)
        ++*out;
    return words[*out] != NULL ? CEK_OK : cek__fail(CEK_BAD_INPUT, "its %s is '%.*s'", name, NAME_SHOWN, a->text);
}

cek_status cek__call_ints(const cek__onnx_call *c, const char *name, int64_t *list, int *count)
{
    const cek__onnx_attribute *a = find(c, name, CEK__ONNX_ATTRIBUTE_INTS);

    *count = a != NULL ? (int)a->count : -1;
    if (a != NULL && a->count > CEK__CALL_LIST)
        return cek__fail(CEK_UNSUPPORTED, "its %s are %zu numbers, at most %d are read", name, a->count,
                         CEK__CALL_LIST);
    for (int i = 0; i < *count; i++)
        list[i] = c->import->onnx->integers[a->first + (size_t)i];
    return CEK_OK;
}

/* ---- inputs ---- */

static const cek__onnx_link *link_of(const cek__onnx_call *c, size_t input)
{
    return &c->import->onnx->links[c->node->first_input + input];
}

bool cek__call_has(const cek__onnx_call *c, size_t input)
{
    return input < c->node->inputs && link_of(c, input)->value != CEK__ONNX_NONE;
}

static cek_status value_find(const cek__onnx_call *c, size_t input, int *value)
{
    *value = CEK__ONNX_NONE;
    if (!cek__call_has(c, input))
        return cek__fail(CEK_BAD_INPUT, "it has no input %zu", input);
    *value = link_of(c, input)->value;
    return CEK_OK;
}

/* As floats; integers are whole ones that a float has. */
static cek_status values_read(const cek__onnx_tensor *t, float *out)
{
    static const struct {
        int from;
        cek__st_type to;
    } types[] = { { CEK__ONNX_FLOAT, CEK__ST_F32 },
                  { CEK__ONNX_DOUBLE, CEK__ST_F64 },
                  { CEK__ONNX_FLOAT16, CEK__ST_F16 },
                  { CEK__ONNX_BFLOAT16, CEK__ST_BF16 } };
    cek__st_tensor as = { .name = t->name, .rank = t->rank, .count = t->count, .data = t->data };

    memcpy(as.shape, t->shape, sizeof t->shape);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].from == t->type) {
            as.type = types[i].to;
            return cek__st_to_f32(&as, out);
        }
    for (uint64_t i = 0; i < t->count; i++) {
        const uint8_t *at = (const uint8_t *)t->data + i * cek__onnx_type_bytes(t->type);
        int64_t value = 0;
        int32_t narrow;

        if (t->type == CEK__ONNX_INT64) {
            memcpy(&value, at, sizeof value);
        } else if (t->type == CEK__ONNX_INT32) {
            memcpy(&narrow, at, sizeof narrow);
            value = narrow;
        } else {
            value = t->type == CEK__ONNX_INT8 ? *(const int8_t *)at : *at;
        }
        if (value > CEK__CALL_EXACT || value < -CEK__CALL_EXACT)
            return cek__fail(CEK_UNSUPPORTED, "'%.*s' holds the integer %lld, at most %d is taken", NAME_SHOWN, t->name,
                             (long long)value, CEK__CALL_EXACT);
        out[i] = (float)value;
    }
    return CEK_OK;
}

static bool is_integer(int type)
{
    return type == CEK__ONNX_INT64 || type == CEK__ONNX_INT32 || type == CEK__ONNX_INT8 || type == CEK__ONNX_UINT8;
}

typedef enum kind { PLACE_ANY, PLACE_PARAMETER, PLACE_BUFFER } kind;

static bool all_finite(const float *values, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

/* What a file says of a weight counts. */
static kind place_of(cek__onnx_role role, kind wanted)
{
    if (role == CEK__ONNX_ROLE_NONE)
        return wanted;
    return role == CEK__ONNX_ROLE_PARAMETER ? PLACE_PARAMETER : PLACE_BUFFER;
}

/* What a file has as numbers: where `place` leaves the choice, one number is a constant. */
static cek_status numbers_add(cek__onnx_call *c, const char *name, int type, uint32_t rank, const int64_t *shape,
                              uint64_t count, const float *values, kind place, int *flow)
{
    cek_status st;
    const cek__dims one = { .rank = rank ? (int)rank : 1, .size = { 1, 1, 1, 1, 1, 1, 1, 1 } };
    cek_model *model = c->import->model;
    const bool whole = is_integer(type) || type == CEK__ONNX_BOOL;
    float *data;

    if (count == 1 && place == PLACE_ANY) {
        CEK_TRY(cek__constant(c->graph, (double)values[0], &one, flow));
    } else if (place == PLACE_BUFFER || whole || !all_finite(values, count)) {
        CEK_TRY(cek__layer_buffer(&c->layer, name, one.rank, rank ? shape : one.size, 0, flow));
        data = model->buffers[model->buffer_count - 1].public.data;
        memcpy(data, values, count * sizeof *data);
    } else {
        CEK_TRY(cek__layer_parameter(&c->layer, name, one.rank, rank ? shape : one.size, 0, flow));
        data = model->parameters[model->parameter_count - 1].public.data;
        memcpy(data, values, count * sizeof *data);
    }
    if (is_integer(type))
        CEK_TRY(cek__cast(c->graph, *flow, CEK_I32, flow));
out:
    return st;
}

/* Those of an untrained network are written once, whosever they are. */
static void tied_tell(const cek__onnx_call *c, const char *name, uint64_t count, const float *values, int readers)
{
    for (uint64_t i = 1; i < count; i++)
        if (values[i] != values[0])
            return;
    if (count > 1 && readers > 1)
        cek__log(CEK_LOG_WARN,
                 "%s: '%.*s', all %g, is one parameter for %d readers: exporters write equal weights once (PyTorch's "
                 "with optimize=False does not)",
                 c->import->onnx->path, NAME_SHOWN, name, (double)values[0], readers);
}

static cek_status tensor_add(cek__onnx_call *c, const cek__onnx_tensor *t, const char *name, int readers, kind place,
                             int *flow)
{
    cek_status st;
    float *values = NULL;

    if (t->count == 0)
        CEK_FAIL(CEK_UNSUPPORTED, "'%.*s' has no elements", NAME_SHOWN, name);
    CEK_TRY(cek__alloc_array(t->count, sizeof *values, &values));
    CEK_TRY(values_read(t, values));
    CEK_TRY(numbers_add(c, name, t->type, t->rank, t->shape, t->count, values, place, flow));
    if (cek__graph_giver(c->graph, *flow)->kind == CEK__PART_PARAMETER)
        tied_tell(c, name, t->count, values, readers);
out:
    free(values);
    return st;
}

static cek_status known_add(cek__onnx_call *c, const cek__fold_value *v, const char *name, kind place, int *flow)
{
    cek_status st;
    float *values = NULL;

    if (v->count == 0)
        CEK_FAIL(CEK_UNSUPPORTED, "'%.*s' has no elements", NAME_SHOWN, name);
    CEK_TRY(cek__alloc_array(v->count, sizeof *values, &values));
    for (uint64_t i = 0; i < v->count; i++) {
        const cek__fold_number *n = &v->numbers[i];

        if (n->factor != 0 || n->constant > CEK__CALL_EXACT || n->constant < -CEK__CALL_EXACT)
            CEK_FAIL(CEK_UNSUPPORTED, "'%.*s' depends on the number of samples, or is above %d", NAME_SHOWN, name,
                     CEK__CALL_EXACT);
        values[i] = v->type == CEK__ONNX_FLOAT ? (float)n->real : (float)n->constant;
    }
    st = numbers_add(c, name, v->type, v->rank, v->shape, v->count, values, place, flow);
out:
    free(values);
    return st;
}

static cek_status flow_of(cek__onnx_call *c, size_t input, kind place, int *flow)
{
    cek_status st;
    const cek__onnx *o = c->import->onnx;
    const cek__fold_value *known;
    int value;

    *flow = CEK__NOTHING;
    CEK_TRY(value_find(c, input, &value));
    *flow = c->import->flows[value];
    if (*flow)
        return CEK_OK;
    known = cek__fold_known(&c->import->fold, value);
    if (o->values[value].tensor != CEK__ONNX_NONE)
        CEK_TRY(tensor_add(c, &o->tensors[o->values[value].tensor], o->values[value].name, c->import->readers[value],
                           place_of(o->values[value].role, place), flow));
    else if (known != NULL && known->weight)
        CEK_TRY(c->import->weight_compute(c, value, flow));
    else if (known != NULL)
        CEK_TRY(known_add(c, known, o->values[value].name, known->count == 1 ? PLACE_ANY : PLACE_BUFFER, flow));
    else
        CEK_FAIL(CEK_UNSUPPORTED, "its input '%.*s' is an output that is not computed", NAME_SHOWN,
                 o->values[value].name);
    c->import->flows[value] = *flow;
out:
    return st;
}

cek_status cek__call_flow(cek__onnx_call *c, size_t input, int *flow)
{
    return flow_of(c, input, PLACE_ANY, flow);
}

cek_status cek__call_weight(cek__onnx_call *c, size_t input, int *flow)
{
    return flow_of(c, input, PLACE_PARAMETER, flow);
}

/* Exporters write equal arrays once: those of an untrained network are the weights of norms, too. */
cek_status cek__call_buffer(cek__onnx_call *c, size_t input, const char *suffix, int *flow)
{
    cek_status st;
    const cek__onnx *o = c->import->onnx;
    const cek__fold_value *known;
    const cek__onnx_value *v;
    char *name = NULL;
    int value;

    *flow = CEK__NOTHING;
    CEK_TRY(value_find(c, input, &value));
    v = &o->values[value];
    known = cek__fold_known(&c->import->fold, value);
    if (c->import->readers[value] > 1)
        CEK_TRY(cek__asprintf(&name, "%s.%s", o->links[c->node->first_output].name, suffix));
    if (v->tensor != CEK__ONNX_NONE)
        st = tensor_add(c, &o->tensors[v->tensor], name ? name : v->name, 1, PLACE_BUFFER, flow);
    else if (known != NULL)
        st = known_add(c, known, name ? name : v->name, PLACE_BUFFER, flow);
    else
        st = cek__fail(CEK_UNSUPPORTED, "its input '%.*s' is no weight of the file", NAME_SHOWN, v->name);
out:
    free(name);
    return st;
}

cek_status cek__call_known(cek__onnx_call *c, size_t input, const cek__fold_value **out)
{
    cek_status st;
    int value;

    *out = NULL;
    CEK_TRY(value_find(c, input, &value));
    CEK_TRY(cek__fold_look(&c->import->fold, value, out));
    if (*out == NULL)
        CEK_FAIL(CEK_UNSUPPORTED, "its input '%.*s' is not known before it runs", NAME_SHOWN,
                 c->import->onnx->values[value].name);
out:
    return st;
}

cek_status cek__call_integers(cek__onnx_call *c, size_t input, int64_t *list, int *count)
{
    cek_status st;
    const cek__fold_value *v;

    *count = 0;
    CEK_TRY(cek__call_known(c, input, &v));
    if (v->type == CEK__ONNX_FLOAT || v->count > CEK__CALL_LIST)
        CEK_FAIL(CEK_UNSUPPORTED, "its input %zu is no list of at most %d integers", input, CEK__CALL_LIST);
    for (uint64_t i = 0; i < v->count; i++) {
        if (v->numbers[i].factor != 0)
            CEK_FAIL(CEK_UNSUPPORTED, "its input %zu depends on the number of samples", input);
        list[(*count)++] = v->numbers[i].constant;
    }
out:
    return st;
}

cek_status cek__call_number(cek__onnx_call *c, size_t input, double *number, bool *known)
{
    cek_status st;
    const cek__fold_value *v;
    int value;

    *known = false;
    CEK_TRY(value_find(c, input, &value));
    CEK_TRY(cek__fold_look(&c->import->fold, value, &v));
    *known = v != NULL && v->count == 1 && v->numbers[0].factor == 0;
    if (*known)
        *number = v->type == CEK__ONNX_FLOAT ? v->numbers[0].real : (double)v->numbers[0].constant;
out:
    return st;
}

/* ---- shapes ---- */

const cek__dims *cek__call_dims(const cek__onnx_call *c, int flow)
{
    return &c->graph->flows[flow].dims;
}

bool cek__call_scalar(const cek__onnx_call *c, size_t input)
{
    return c->import->fold.shapes[link_of(c, input)->value].count == 0;
}

cek_status cek__call_axis(int64_t axis, int rank, int *out)
{
    *out = 0;
    if (axis < -rank || axis >= rank)
        return cek__fail(CEK_BAD_INPUT, "axis %lld of %d", (long long)axis, rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return CEK_OK;
}

cek_status cek__call_apart(const cek__onnx_call *c, int flow, int axis)
{
    return cek__call_dims(c, flow)->samples >> axis & 1 ? cek__fail(CEK_UNSUPPORTED, "axis %d counts samples", axis)
                                                        : CEK_OK;
}

cek_status cek__call_axes(const int64_t *list, int count, int rank, uint32_t *mask)
{
    cek_status st = CEK_OK;

    *mask = 0;
    for (int i = 0; i < count; i++) {
        int axis;

        CEK_TRY(cek__call_axis(list[i], rank, &axis));
        if (*mask >> axis & 1)
            CEK_FAIL(CEK_BAD_INPUT, "axis %d is named twice", axis);
        *mask |= 1u << axis;
    }
out:
    return st;
}

cek_status cek__call_chain(cek__onnx_call *c, int inputs, const int *flows, uint32_t count,
                           const cek_pointwise_instruction *code)
{
    cek__part part = { .kind = CEK__PART_CHAIN, .inputs = inputs, .chain = { .count = count } };

    memcpy(part.input, flows, (size_t)inputs * sizeof *flows);
    memcpy(part.chain.code, code, count * sizeof *code);
    return cek__graph_add(c->graph, &part, &c->out[0]);
}
