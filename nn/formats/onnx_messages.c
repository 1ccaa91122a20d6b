/* onnx_messages.c - ONNX's messages by their field numbers (onnx.proto), sorted into lists.
 *
 * Numbers of fields are the schema; a field of another kind than it has there is passed over like an unknown one, as
 * any reader of protocol buffers does. Fixed depth: model, graph, node, attribute, tensor, pair; graphs within
 * attributes are not entered. */
#include <inttypes.h>
#include <string.h>

#include "nn/formats/onnx_inside.h"

#define OWN "ai.onnx" /* the domain of ONNX's own operators, where it is said */

static cek_status broken(const cek__onnx_reader *r, const cek__wire *w)
{
    return cek__fail(CEK_BAD_INPUT, "%s: not an ONNX file, or a damaged one: %s (byte %td)", r->o->path, w->cause,
                     w->at - r->begin);
}

/* The next field of a message; *more false at its end. */
static cek_status next(const cek__onnx_reader *r, cek__wire *w, cek__wire_field *f, bool *more)
{
    *more = cek__wire_next(w, f);
    return w->cause != NULL ? broken(r, w) : CEK_OK;
}

static bool is(const cek__wire_field *f, uint32_t number, cek__wire_kind kind)
{
    return f->number == number && f->kind == kind;
}

static bool spells(const cek__wire *bytes, const char *word)
{
    const size_t length = strlen(word);

    return (size_t)(bytes->end - bytes->at) == length && memcmp(bytes->at, word, length) == 0;
}

/* A text that will have its 0 byte when all messages were read. */
static cek_status text(cek__onnx_reader *r, const cek__wire *bytes, const char **out)
{
    char **end;
    cek_status st;

    if (memchr(bytes->at, 0, (size_t)(bytes->end - bytes->at)) != NULL)
        CEK_FAIL(CEK_BAD_INPUT, "%s: a name has a zero character (byte %td)", r->o->path, bytes->at - r->begin);
    CEK__ONNX_ADD(r->o, ends, end);
    *end = (char *)bytes->end;
    *out = (const char *)bytes->at;
out:
    return st;
}

/* Appends the numbers of a field to a list of floats or integers: one, or packed ones. */
static cek_status numbers(cek__onnx_reader *r, const cek__wire_field *f, cek__wire_kind kind)
{
    cek__wire packed = f->bytes;
    uint64_t value = f->value;
    bool more = true;
    cek_status st = CEK_OK;

    if (f->kind == CEK__WIRE_BYTES)
        more = cek__wire_number(&packed, kind, &value);
    while (more) {
        if (kind == CEK__WIRE_VARINT) {
            int64_t *integer;

            CEK__ONNX_ADD(r->o, integers, integer);
            *integer = (int64_t)value;
        } else {
            uint32_t bits = (uint32_t)value;
            float *number;

            CEK__ONNX_ADD(r->o, numbers, number);
            memcpy(number, &bits, sizeof bits);
        }
        more = f->kind == CEK__WIRE_BYTES && cek__wire_number(&packed, kind, &value);
    }
    if (packed.cause != NULL)
        st = broken(r, &packed);
out:
    return st;
}

/* ---- tensors ---- */

/* StringStringEntryProto: what is said of an external file. */
static cek_status entry(cek__onnx_reader *r, cek__wire w, cek__onnx_source *s)
{
    static const char *const keys[] = { "location", "offset", "length" };
    const char *value = NULL;
    cek__wire key = { 0 };
    cek__wire_field f;
    bool more;
    cek_status st;

    for (;;) {
        CEK_TRY(next(r, &w, &f, &more));
        if (!more)
            break;
        if (is(&f, 1, CEK__WIRE_BYTES))
            key = f.bytes;
        else if (is(&f, 2, CEK__WIRE_BYTES))
            CEK_TRY(text(r, &f.bytes, &value));
    }
    for (int i = 0; i < 3; i++)
        if (spells(&key, keys[i]))
            *(i == 0 ? &s->location : i == 1 ? &s->offset : &s->length) = value;
out:
    return st;
}

/* One more dimension, or a packed list of them. */
static cek_status dims(const cek__onnx_reader *r, const cek__wire_field *f, cek__onnx_tensor *t)
{
    cek__wire packed = f->bytes;
    uint64_t value = f->value;
    bool more = f->kind != CEK__WIRE_BYTES || cek__wire_number(&packed, CEK__WIRE_VARINT, &value);

    while (more) {
        if (t->rank == CEK_RANK_MAX)
            return cek__fail(CEK_BAD_INPUT, "%s: a tensor has more than %d dimensions (byte %td)", r->o->path,
                             CEK_RANK_MAX, packed.at - r->begin);
        t->shape[t->rank++] = (int64_t)value;
        more = f->kind == CEK__WIRE_BYTES && cek__wire_number(&packed, CEK__WIRE_VARINT, &value);
    }
    return packed.cause != NULL ? broken(r, &packed) : CEK_OK;
}

/* TensorProto */
static cek_status tensor(cek__onnx_reader *r, cek__wire w, int *out)
{
    cek__onnx_tensor *t, made = { .name = "" };
    cek__onnx_source *s, source = { 0 };
    cek__wire_field f;
    bool more;
    cek_status st;

    for (;;) {
        CEK_TRY(next(r, &w, &f, &more));
        if (!more)
            break;
        if (f.number == 1 && (f.kind == CEK__WIRE_VARINT || f.kind == CEK__WIRE_BYTES))
            CEK_TRY(dims(r, &f, &made));
        else if (is(&f, 2, CEK__WIRE_VARINT))
            made.type = f.value < 1000 ? (int)f.value : CEK__ONNX_NONE;
        else if (is(&f, 8, CEK__WIRE_BYTES))
            CEK_TRY(text(r, &f.bytes, &made.name));
        else if (is(&f, 13, CEK__WIRE_BYTES))
            CEK_TRY(entry(r, f.bytes, &source));
        else if (is(&f, 14, CEK__WIRE_VARINT))
            source.external = f.value != 0;
        else if (f.number >= CEK__ONNX_FLOAT_DATA && f.number <= 11 && f.kind == CEK__WIRE_BYTES) {
            source.twice = source.field != 0;
            source.field = (int)f.number;
            source.bytes = f.bytes;
        }
    }
    *out = (int)r->o->tensors_count;
    CEK__ONNX_ADD(r->o, tensors, t);
    *t = made;
    CEK__ONNX_ADD(r, sources, s);
    *s = source;
out:
    return st;
}

/* ---- nodes ---- */

/* AttributeProto: what its fields say; `type` decides which of them counts, where it is there. */
static cek_status attribute(cek__onnx_reader *r, cek__wire w)
{
    cek__onnx_attribute *a, made = { .name = "", .text = "", .tensor = CEK__ONNX_NONE };
    size_t integers = r->o->integers_count, floats = r->o->numbers_count;
    uint64_t type = 0;
    uint32_t bits;
    cek__wire_field f;
    bool more;
    cek_status st;

    for (;;) {
        CEK_TRY(next(r, &w, &f, &more));
        if (!more)
            break;
        if (is(&f, 1, CEK__WIRE_BYTES))
            CEK_TRY(text(r, &f.bytes, &made.name));
        else if (is(&f, 2, CEK__WIRE_FIXED32)) {
            bits = (uint32_t)f.value;
            memcpy(&made.number, &bits, sizeof bits);
        } else if (is(&f, 3, CEK__WIRE_VARINT))
            made.integer = (int64_t)f.value;
        else if (is(&f, 4, CEK__WIRE_BYTES))
            CEK_TRY(text(r, &f.bytes, &made.text));
        else if (is(&f, 5, CEK__WIRE_BYTES))
            CEK_TRY(tensor(r, f.bytes, &made.tensor));
        else if (f.number == 7 && (f.kind == CEK__WIRE_FIXED32 || f.kind == CEK__WIRE_BYTES))
            CEK_TRY(numbers(r, &f, CEK__WIRE_FIXED32));
        else if (f.number == 8 && (f.kind == CEK__WIRE_VARINT || f.kind == CEK__WIRE_BYTES))
            CEK_TRY(numbers(r, &f, CEK__WIRE_VARINT));
        else if (is(&f, 20, CEK__WIRE_VARINT))
            type = f.value;
    }
    made.kind = type <= CEK__ONNX_ATTRIBUTE_INTS && type != 5 ? (cek__onnx_attribute_kind)type
                                                              : CEK__ONNX_ATTRIBUTE_OTHER;
    if (made.kind == CEK__ONNX_ATTRIBUTE_TENSOR && made.tensor == CEK__ONNX_NONE)
        made.kind = CEK__ONNX_ATTRIBUTE_OTHER;
    made.first = made.kind == CEK__ONNX_ATTRIBUTE_FLOATS ? floats : integers;
    made.count = made.kind == CEK__ONNX_ATTRIBUTE_FLOATS ? r->o->numbers_count - floats
                                                         : r->o->integers_count - integers;
    CEK__ONNX_ADD(r->o, attributes, a);
    *a = made;
out:
    return st;
}

/* Those fields of a node that make one list each: inputs (1), outputs (2), attributes (5). */
static cek_status node_list(cek__onnx_reader *r, cek__wire w, uint32_t field)
{
    cek__onnx_link *link;
    cek__wire_field f;
    bool more;
    cek_status st;

    for (;;) {
        CEK_TRY(next(r, &w, &f, &more));
        if (!more)
            break;
        if (!is(&f, field, CEK__WIRE_BYTES))
            continue;
        if (field == 5) {
            CEK_TRY(attribute(r, f.bytes));
            continue;
        }
        CEK__ONNX_ADD(r->o, links, link);
        link->value = CEK__ONNX_NONE;
        CEK_TRY(text(r, &f.bytes, &link->name));
    }
out:
    return st;
}

/* NodeProto */
static cek_status node(cek__onnx_reader *r, cek__wire w)
{
    cek__onnx_node *n, made = { .op = "", .domain = "", .name = "" };
    cek__wire rest = w;
    cek__wire_field f;
    bool more;
    cek_status st;

    for (;;) {
        CEK_TRY(next(r, &rest, &f, &more));
        if (!more)
            break;
        if (is(&f, 3, CEK__WIRE_BYTES))
            CEK_TRY(text(r, &f.bytes, &made.name));
        else if (is(&f, 4, CEK__WIRE_BYTES))
            CEK_TRY(text(r, &f.bytes, &made.op));
        else if (is(&f, 7, CEK__WIRE_BYTES) && !spells(&f.bytes, OWN))
            CEK_TRY(text(r, &f.bytes, &made.domain));
    }
    made.first_input = r->o->links_count;
    CEK_TRY(node_list(r, w, 1));
    made.inputs = r->o->links_count - made.first_input;
    made.first_output = r->o->links_count;
    CEK_TRY(node_list(r, w, 2));
    made.outputs = r->o->links_count - made.first_output;
    made.first_attribute = r->o->attributes_count;
    CEK_TRY(node_list(r, w, 5));
    made.attributes = r->o->attributes_count - made.first_attribute;
    CEK__ONNX_ADD(r->o, nodes, n);
    *n = made;
out:
    return st;
}

/* ---- the graph's inputs and outputs ---- */

/* TensorShapeProto: dimensions, each a number or a name. */
static cek_status shape(cek__onnx_reader *r, cek__wire w, cek__onnx_form *form)
{
    cek__wire_field f, d;
    bool more;
    cek_status st;

    form->shaped = true;
    for (;;) {
        CEK_TRY(next(r, &w, &f, &more));
        if (!more)
            break;
        if (!is(&f, 1, CEK__WIRE_BYTES))
            continue;
        if (form->rank == CEK_RANK_MAX)
            CEK_FAIL(CEK_BAD_INPUT, "%s: an input or output has more than %d dimensions (byte %td)", r->o->path,
                     CEK_RANK_MAX, f.bytes.at - r->begin);
        form->size[form->rank] = -1;
        for (;;) {
            CEK_TRY(next(r, &f.bytes, &d, &more));
            if (!more)
                break;
            if (is(&d, 1, CEK__WIRE_VARINT))
                form->size[form->rank] = (int64_t)d.value;
            else if (is(&d, 2, CEK__WIRE_BYTES))
                CEK_TRY(text(r, &d.bytes, &form->symbol[form->rank]));
        }
        if (form->size[form->rank] < -1)
            form->size[form->rank] = -1;
        form->rank++;
    }
out:
    return st;
}

/* The one message within another by its field; an empty one where there is none. */
static cek_status within(const cek__onnx_reader *r, cek__wire w, uint32_t field, cek__wire *out)
{
    cek__wire_field f;
    bool more;
    cek_status st;

    *out = (cek__wire){ .at = w.end, .end = w.end };
    for (;;) {
        CEK_TRY(next(r, &w, &f, &more));
        if (!more)
            break;
        if (is(&f, field, CEK__WIRE_BYTES))
            *out = f.bytes;
    }
out:
    return st;
}

/* ValueInfoProto: a name, and within its type the tensor's (1): element type and shape. */
static cek_status value_info(cek__onnx_reader *r, cek__wire w, const char **name, cek__onnx_form *form)
{
    cek__wire type, bytes;
    cek__wire_field f;
    bool more;
    cek_status st;

    *form = (cek__onnx_form){ 0 };
    *name = "";
    CEK_TRY(within(r, w, 1, &bytes));
    CEK_TRY(text(r, &bytes, name));
    CEK_TRY(within(r, w, 2, &type));
    CEK_TRY(within(r, type, 1, &type));
    for (;;) {
        CEK_TRY(next(r, &type, &f, &more));
        if (!more)
            break;
        if (is(&f, 1, CEK__WIRE_VARINT))
            form->type = f.value < 1000 ? (int)f.value : CEK__ONNX_NONE;
        else if (is(&f, 2, CEK__WIRE_BYTES) && !form->shaped)
            CEK_TRY(shape(r, f.bytes, form));
    }
out:
    return st;
}

/* ValueInfoProto of what is no input or output: a name, and among its pairs (4) what PyTorch says of a weight. */
static cek_status weight_info(cek__onnx_reader *r, cek__wire w)
{
    static const char kind[] = "pkg.torch.export.graph_signature.InputSpec.kind";
    cek__onnx_role role = CEK__ONNX_ROLE_NONE;
    cek__onnx_said *said;
    cek__wire name, key, value;
    cek__wire_field f;
    bool more;
    cek_status st;

    CEK_TRY(within(r, w, 1, &name));
    for (;;) {
        CEK_TRY(next(r, &w, &f, &more));
        if (!more)
            break;
        if (!is(&f, 4, CEK__WIRE_BYTES))
            continue;
        CEK_TRY(within(r, f.bytes, 1, &key));
        CEK_TRY(within(r, f.bytes, 2, &value));
        if (spells(&key, kind) && spells(&value, "PARAMETER"))
            role = CEK__ONNX_ROLE_PARAMETER;
        else if (spells(&key, kind) && spells(&value, "BUFFER"))
            role = CEK__ONNX_ROLE_BUFFER;
    }
    if (role != CEK__ONNX_ROLE_NONE) {
        CEK__ONNX_ADD(r, said, said);
        said->role = role;
        CEK_TRY(text(r, &name, &said->name));
    }
out:
    return st;
}

/* ---- graph and model ---- */

/* GraphProto */
static cek_status graph(cek__onnx_reader *r, cek__wire w)
{
    cek__onnx_form form, *kept;
    cek__onnx_value *given;
    cek__onnx_link *link;
    cek__wire_field f;
    const char *name;
    int number, *initialiser;
    bool more;
    cek_status st;

    for (;;) {
        CEK_TRY(next(r, &w, &f, &more));
        if (!more)
            break;
        if (is(&f, 1, CEK__WIRE_BYTES)) {
            CEK_TRY(node(r, f.bytes));
        } else if (is(&f, 5, CEK__WIRE_BYTES)) {
            CEK_TRY(tensor(r, f.bytes, &number));
            CEK__ONNX_ADD(r, initialisers, initialiser);
            *initialiser = number;
        } else if (is(&f, 11, CEK__WIRE_BYTES)) {
            CEK_TRY(value_info(r, f.bytes, &name, &form));
            CEK__ONNX_ADD(r, given, given);
            *given = (cek__onnx_value){
                .name = name, .node = CEK__ONNX_NONE, .tensor = CEK__ONNX_NONE, .form = (int)r->o->forms_count
            };
            CEK__ONNX_ADD(r->o, forms, kept);
            *kept = form;
        } else if (is(&f, 12, CEK__WIRE_BYTES)) {
            CEK_TRY(value_info(r, f.bytes, &name, &form));
            CEK__ONNX_ADD(r->o, outputs, link);
            *link = (cek__onnx_link){ name, CEK__ONNX_NONE };
        } else if (is(&f, 13, CEK__WIRE_BYTES)) {
            CEK_TRY(weight_info(r, f.bytes));
        } else if (is(&f, 15, CEK__WIRE_BYTES)) {
            CEK_FAIL(CEK_BAD_INPUT, "%s: it has sparse weights, which are not read", r->o->path);
        }
    }
out:
    return st;
}

/* OperatorSetIdProto: the version of ONNX's own operators. */
static cek_status opset(cek__onnx_reader *r, cek__wire w)
{
    cek__wire domain;
    cek__wire_field f;
    bool more;
    cek_status st;

    CEK_TRY(within(r, w, 1, &domain));
    if (domain.at != domain.end && !spells(&domain, OWN))
        goto out;
    for (;;) {
        CEK_TRY(next(r, &w, &f, &more));
        if (!more)
            break;
        if (is(&f, 2, CEK__WIRE_VARINT))
            r->o->opset = (int64_t)f.value;
    }
out:
    return st;
}

cek_status cek__onnx_messages(cek__onnx_reader *r, cek__wire w)
{
    int graphs = 0;
    cek__wire_field f;
    bool more;
    cek_status st;

    for (;;) {
        CEK_TRY(next(r, &w, &f, &more));
        if (!more)
            break;
        if (is(&f, 8, CEK__WIRE_BYTES)) {
            CEK_TRY(opset(r, f.bytes));
        } else if (is(&f, 7, CEK__WIRE_BYTES)) {
            if (graphs++ > 0)
                CEK_FAIL(CEK_BAD_INPUT, "%s: it has two graphs", r->o->path);
            CEK_TRY(graph(r, f.bytes));
        } else if (is(&f, 25, CEK__WIRE_BYTES)) {
            CEK_FAIL(CEK_BAD_INPUT, "%s: it defines functions of its own, which are not read", r->o->path);
        }
    }
    if (graphs == 0)
        CEK_FAIL(CEK_BAD_INPUT, "%s: not an ONNX file: it has no graph", r->o->path);
    if (r->o->opset < CEK__ONNX_OPSET_MIN || r->o->opset > CEK__ONNX_OPSET_MAX)
        CEK_FAIL(CEK_BAD_INPUT, "%s: operators of version %" PRId64 "; %d to %d are read", r->o->path, r->o->opset,
                 CEK__ONNX_OPSET_MIN, CEK__ONNX_OPSET_MAX);
out:
    return st;
}
