/* onnx_file.c - tests of nn/formats/onnx: a model comes as it was written, lies and harm are refused.
 *
 * Files are made by onnx_files.h. A changed value of a weight cannot be seen (the form has no checksum); a changed
 * shape, type, name or length can. */
#include "nn/formats/onnx.h"

#include "core/base/fault.h"
#include "core/base/random.h"
#include "onnx_files.h"
#include "scratch.h"

static const float weights[6] = { 1, -2, 3, .5f, 1e-30f, 6 };
static const int64_t whole[3] = { -1, 0, INT64_MAX };

#define NAMES(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

/* x [batch,2] -> Gemm with raw weights -> Relu -> y; beside them a constant of varints and an empty tensor. */
static message graph_make(const char *location)
{
    message g = { .size = 0 }, node, part, list = { .size = 0 };

    node = node_of("Gemm", NAMES("x", "w", "", "b"), NAMES("h"));
    part = integers_of("packed", whole, 3, 1);
    put_message(&node, 5, &part);
    part = integers_of("loose", whole, 3, 0);
    put_message(&node, 5, &part);
    part = (message){ .size = 0 };
    put_text(&part, 1, "alpha");
    put_varint(&part, 2 << 3 | 5);
    memcpy(part.bytes + part.size, &weights[3], 4);
    part.size += 4;
    put_integer(&part, 20, 1);
    put_message(&node, 5, &part);
    part = (message){ .size = 0 };
    put_text(&part, 1, "mode");
    put_text(&part, 4, "nearest");
    put_integer(&part, 20, 3);
    put_message(&node, 5, &part);
    put_message(&g, 1, &node);
    node = node_of("Relu", NAMES("h"), NAMES("y"));
    put_message(&g, 1, &node);
    put_text(&g, 2, "graph");
    part = tensor_of("w", CEK__ONNX_FLOAT, 2, SHAPE(3, 2));
    if (location != NULL) {
        put_external(&part, "location", location);
        put_external(&part, "offset", "4");
        put_external(&part, "length", "24");
        put_integer(&part, 14, 1);
    } else {
        put_bytes(&part, 9, weights, sizeof weights);
    }
    put_message(&g, 5, &part);
    part = tensor_of("b", CEK__ONNX_INT64, 1, SHAPE(3));
    for (int i = 0; i < 3; i++)
        put_varint(&list, (uint64_t)whole[i]);
    put_message(&part, 7, &list);
    put_message(&g, 5, &part);
    part = tensor_of("empty", CEK__ONNX_FLOAT, 1, SHAPE(0));
    put_message(&g, 5, &part);
    part = tensor_of("scalar", CEK__ONNX_FLOAT, 0, NULL);
    put_bytes(&part, 4, &weights[2], 4);
    put_message(&g, 5, &part);
    part = value_of("x", 2, SHAPE(0, 2));
    put_message(&g, 11, &part);
    part = value_of("w", 2, SHAPE(3, 2)); /* as old files list weights */
    put_message(&g, 11, &part);
    part = value_of("y", 2, SHAPE(-1, 3));
    put_message(&g, 12, &part);
    return g;
}

static const char *written(const message *model)
{
    return scratch_write("net.onnx", model->bytes, model->size);
}

static const cek__onnx_value *value(const cek__onnx *o, int number, const char *name)
{
    ck_assert_int_ge(number, 0);
    ck_assert_str_eq(o->values[number].name, name);
    return &o->values[number];
}

static void model_is_whole(const cek__onnx *o)
{
    const cek__onnx_node *gemm = &o->nodes[0], *relu = &o->nodes[1];
    const cek__onnx_value *w = value(o, o->links[gemm->first_input + 1].value, "w");
    const cek__onnx_tensor *t = &o->tensors[w->tensor], *b;
    const cek__onnx_form *form;
    const cek__onnx_attribute *a;

    ck_assert(o->opset == 17 && o->nodes_count == 2 && o->inputs_count == 1 && o->outputs_count == 1);
    ck_assert(gemm->inputs == 4 && gemm->outputs == 1 && relu->inputs == 1 && relu->attributes == 0);
    ck_assert_str_eq(gemm->op, "Gemm");
    ck_assert_str_eq(gemm->domain, "");
    ck_assert_str_eq(relu->name, "a node");
    ck_assert_int_eq(o->links[gemm->first_input + 2].value, CEK__ONNX_NONE);
    ck_assert_int_eq(value(o, o->links[relu->first_input].value, "h")->node, 0);
    ck_assert_int_eq(value(o, o->outputs[0].value, "y")->node, 1);
    form = &o->forms[value(o, o->inputs[0].value, "x")->form];
    ck_assert(form->type == CEK__ONNX_FLOAT && form->shaped && form->rank == 2 && form->size[0] == -1 &&
              form->size[1] == 2);
    ck_assert_str_eq(form->symbol[0], "batch");
    ck_assert(t->rank == 2 && t->shape[0] == 3 && t->shape[1] == 2 && t->count == 6);
    ck_assert_mem_eq(t->data, weights, sizeof weights);
    b = &o->tensors[value(o, o->links[gemm->first_input + 3].value, "b")->tensor];
    ck_assert(b->type == CEK__ONNX_INT64 && b->count == 3);
    ck_assert_mem_eq(b->data, whole, sizeof whole);
    for (int i = 0; i < 2; i++) {
        a = cek__onnx_attribute_find(o, gemm, i == 0 ? "packed" : "loose");
        ck_assert(a != NULL && a->kind == CEK__ONNX_ATTRIBUTE_INTS && a->count == 3);
        ck_assert_mem_eq(o->integers + a->first, whole, sizeof whole);
    }
    a = cek__onnx_attribute_find(o, gemm, "alpha");
    ck_assert(a != NULL && a->kind == CEK__ONNX_ATTRIBUTE_FLOAT && a->number == .5f);
    a = cek__onnx_attribute_find(o, gemm, "mode");
    ck_assert_str_eq(a->text, "nearest");
    ck_assert_ptr_null(cek__onnx_attribute_find(o, gemm, "beta"));
}

START_TEST(a_model_comes_as_it_was_written)
{
    message g = graph_make(NULL), m = model_of(&g, 17);
    cek__onnx *o;

    assert_ok(cek__onnx_read(written(&m), &o));
    model_is_whole(o);
    for (size_t i = 0; i < o->values_count; i++)
        if (o->values[i].name[0] == 's')
            ck_assert_mem_eq(o->tensors[o->values[i].tensor].data, &weights[2], sizeof(float));
    cek__onnx_free(o);
}
END_TEST

START_TEST(weights_may_lie_in_a_file_of_the_same_folder_and_in_no_other)
{
    static const struct {
        const char *location, *cause;
        cek_status status;
    } places[] = {
        { "w.bin", NULL, CEK_OK },
        { "./w.bin", NULL, CEK_OK },
        { "linked.bin", NULL, CEK_OK },
        { "short.bin", "too short", CEK_BAD_INPUT },
        { "none.bin", "cannot be found", CEK_IO },
        { "out.bin", "symbolic link", CEK_BAD_INPUT },
        { "../w.bin", "not named as one in", CEK_BAD_INPUT },
        { "a/../../w.bin", "not named as one in", CEK_BAD_INPUT },
        { "..", "not named as one in", CEK_BAD_INPUT },
        { "/etc/passwd", "not named as one in", CEK_BAD_INPUT },
        { "", "not named as one in", CEK_BAD_INPUT },
    };
    char bytes[4 + sizeof weights] = "head";
    cek__onnx *o;

    memcpy(bytes + 4, weights, sizeof weights);
    scratch_write("w.bin", bytes, sizeof bytes);
    scratch_write("short.bin", bytes, sizeof bytes - 1);
    ck_assert_int_eq(symlink("w.bin", scratch_path("linked.bin")), 0);
    ck_assert_int_eq(symlink("/etc/passwd", scratch_path("out.bin")), 0);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        message g = graph_make(places[i].location), m = model_of(&g, 17);

        if (places[i].status != CEK_OK) {
            assert_fails(cek__onnx_read(written(&m), &o), places[i].status, "tensor 'w'", places[i].cause);
            continue;
        }
        assert_ok(cek__onnx_read(written(&m), &o));
        model_is_whole(o);
        cek__onnx_free(o);
    }
}
END_TEST

/* ---- lies ---- */

/* Adds one thing to the graph that does not fit it. */
enum { NODE, TENSOR, OUTPUT, RAW };
static const struct {
    const char *cause, *name;
    int kind, type;
    const char *inputs[3], *outputs[2];
    int64_t shape[2];
    int64_t bytes; /* of raw data; -1: none */
} lies[] = {
    { "reads 'z', which nothing before", "", NODE, 0, { "z" }, { "q" }, { 0 }, 0 },
    { "reads 'q', which nothing before", "", NODE, 0, { "q" }, { "q" }, { 0 }, 0 },
    { "'y' is given twice", "", NODE, 0, { "x" }, { "y" }, { 0 }, 0 },
    { "'x' is given twice", "", NODE, 0, { "h" }, { "x" }, { 0 }, 0 },
    { "'w' is given twice", "", NODE, 0, { "h" }, { "w" }, { 0 }, 0 },
    { "gives nothing", "", NODE, 0, { "h" }, { NULL }, { 0 }, 0 },
    { "'w' is given twice", "w", TENSOR, CEK__ONNX_FLOAT, { NULL }, { NULL }, { 1, 1 }, 4 },
    { "'h' is given twice", "h", TENSOR, CEK__ONNX_FLOAT, { NULL }, { NULL }, { 1, 1 }, 4 },
    { "has no name", "", TENSOR, CEK__ONNX_FLOAT, { NULL }, { NULL }, { 1, 1 }, 4 },
    { "'t': its shape does not take", "t", TENSOR, CEK__ONNX_FLOAT, { NULL }, { NULL }, { 1, 1 }, 5 },
    { "'t': its shape does not take", "t", TENSOR, CEK__ONNX_FLOAT, { NULL }, { NULL }, { 2, 1 }, 4 },
    { "'t': its shape is impossible", "t", TENSOR, CEK__ONNX_FLOAT, { NULL }, { NULL }, { -1, -1 }, 4 },
    { "'t': its shape is impossible", "t", TENSOR, CEK__ONNX_FLOAT, { NULL }, { NULL }, { INT64_MAX, 3 }, 4 },
    { "'t': its shape is impossible", "t", TENSOR, CEK__ONNX_DOUBLE, { NULL }, { NULL }, { INT64_MAX / 2, 1 }, 4 },
    { "'t': its type, 8 of ONNX's", "t", TENSOR, 8, { NULL }, { NULL }, { 1, 1 }, 4 },
    { "'t': its type, 0 of ONNX's", "t", TENSOR, 0, { NULL }, { NULL }, { 1, 1 }, 4 },
    { "'t': its type, -1 of ONNX's", "t", TENSOR, 1000000, { NULL }, { NULL }, { 1, 1 }, 4 },
    { "'t': it has no values", "t", TENSOR, CEK__ONNX_FLOAT, { NULL }, { NULL }, { 1, 1 }, -1 },
    { "nothing gives its output 'o'", "o", OUTPUT, 0, { NULL }, { NULL }, { 1, 1 }, 0 },
};

START_TEST(a_graph_that_lies_is_refused)
{
    message g = graph_make(NULL), m, part;
    const char *inputs[4] = { lies[_i].inputs[0] }, *outputs[2] = { lies[_i].outputs[0] };
    cek__onnx *o;

    if (lies[_i].kind == NODE) {
        part = node_of("Relu", inputs, outputs);
        put_message(&g, 1, &part);
    } else if (lies[_i].kind == TENSOR) {
        part = tensor_of(lies[_i].name, lies[_i].type, 2, lies[_i].shape);
        if (lies[_i].bytes >= 0)
            put_bytes(&part, 9, weights, (size_t)lies[_i].bytes);
        put_message(&g, 5, &part);
    } else {
        part = value_of(lies[_i].name, 2, lies[_i].shape);
        put_message(&g, 12, &part);
    }
    m = model_of(&g, 17);
    assert_fails(cek__onnx_read(written(&m), &o), CEK_BAD_INPUT, "net.onnx", lies[_i].cause);
    ck_assert_ptr_null(o);
}
END_TEST

static const struct {
    const char *cause, *bytes;
    size_t size;
} damaged[] = {
#define BYTES(cause, bytes)            \
    {                                  \
        cause, bytes, sizeof bytes - 1 \
    }
    BYTES("has no graph", ""),
    BYTES("has no graph", "\x08\x08"),
    BYTES("ends within a number", "\x08"),
    BYTES("ends within a number", "\x08\xff"),
    BYTES("more than 64 bits", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"),
    BYTES("more than 64 bits", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
    BYTES("longer than what it is in", "\x3a\x05"
                                       "abc"),
    BYTES("longer than what it is in", "\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
                                       "abc"),
    BYTES("of an unknown kind", "\x3b"),
    BYTES("without a number", "\x02\x00"),
    BYTES("ends within a number", "\x0d"
                                  "abc"),
    BYTES("ends within a number", "\x09"
                                  "abcdefg"),
    BYTES("two graphs", "\x3a\x00\x3a\x00"),
    BYTES("operators of version 0", "\x3a\x00"),
    BYTES("operators of version 0", "\x3a\x00\x42\x06\x0a\x02zz\x10\x11"),
    BYTES("operators of version 12", "\x3a\x00\x42\x02\x10\x0c"),
    BYTES("operators of version -1", "\x3a\x00\x42\x0b\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
    BYTES("functions of its own", "\xca\x01\x00"),
    BYTES("has no output", "\x3a\x00\x42\x02\x10\x11"),
    BYTES("sparse", "\x3a\x02\x7a\x00"),
    BYTES("zero character", "\x3a\x05\x0a\x03\x22\x01\x00"),
};

START_TEST(bytes_that_are_no_model_are_refused)
{
    cek__onnx *o;

    assert_fails(cek__onnx_read(scratch_write("net.onnx", damaged[_i].bytes, damaged[_i].size), &o), CEK_BAD_INPUT,
                 "net.onnx", damaged[_i].cause);
}
END_TEST

/* ---- harm ---- */

static uint64_t draws;

static uint32_t below(size_t bound)
{
    return (uint32_t)(((uint64_t)cek__random_u32(20261123, 0, draws++) * bound) >> 32);
}

static int times(int n)
{
    return getenv("CEKERNELS_TEST_LONG") != NULL ? 50 * n : n;
}

/* Whether it was read; then everything in it leads to something. */
static bool harmless(const message *m)
{
    const char *path = written(m);
    cek__onnx *o;
    uint64_t sum = 0;

    cek_status st = cek__onnx_read(path, &o);
    if (st != CEK_OK) {
        ck_assert_msg(st == CEK_BAD_INPUT || st == CEK_IO, "%s: %s", cek_status_name(st), cek_error_text());
        ck_assert_msg(strstr(cek_error_text(), path) != NULL, "'%s' does not name the file", cek_error_text());
        return false;
    }
    for (size_t n = 0; n < o->nodes_count; n++) {
        const cek__onnx_node *node = &o->nodes[n];

        sum += strlen(node->op) + strlen(node->name) + strlen(node->domain);
        for (size_t i = 0; i < node->inputs; i++) {
            int v = o->links[node->first_input + i].value;

            ck_assert(v == CEK__ONNX_NONE || (v >= 0 && (size_t)v < o->values_count && o->values[v].node < (int)n));
        }
        for (size_t i = 0; i < node->attributes; i++) {
            const cek__onnx_attribute *a = &o->attributes[node->first_attribute + i];

            sum += strlen(a->name) + strlen(a->text);
            ck_assert(a->kind != CEK__ONNX_ATTRIBUTE_INTS || a->first + a->count <= o->integers_count);
            ck_assert(a->kind != CEK__ONNX_ATTRIBUTE_FLOATS || a->first + a->count <= o->numbers_count);
            ck_assert(a->kind != CEK__ONNX_ATTRIBUTE_TENSOR || (size_t)a->tensor < o->tensors_count);
        }
    }
    for (size_t i = 0; i < o->tensors_count; i++)
        for (uint64_t k = 0; k < o->tensors[i].count * cek__onnx_type_bytes(o->tensors[i].type); k++)
            sum += ((const uint8_t *)o->tensors[i].data)[k];
    ck_assert_uint_lt(sum, UINT64_MAX);
    cek__onnx_free(o);
    return true;
}

START_TEST(a_truncated_file_is_refused)
{
    message g = graph_make(NULL), m = model_of(&g, 17);

    ck_assert(harmless(&m));
    while (m.size-- > 0)
        ck_assert(!harmless(&m));
}
END_TEST

START_TEST(changed_bytes_lead_nowhere)
{
    message g = graph_make(NULL), original = model_of(&g, 17), m;
    int accepted = 0;

    for (int i = 0; i < times(1000); i++) {
        m = original;
        for (uint32_t k = 0, n = 1 + below(3) * (i % 2 == 0); k < n; k++) {
            size_t at = below(m.size);

            m.bytes[at] = (uint8_t)(below(2) ? below(256) : m.bytes[at] ^ 1U << below(8));
        }
        accepted += harmless(&m);
    }
    ck_assert_int_gt(accepted, 0);
    ck_assert_int_lt(accepted, times(1000));
}
END_TEST

/* Messages within messages within graphs of attributes are not entered; a thousand small nodes take memory of
 * their own size. */
START_TEST(what_is_nested_deeply_is_not_entered)
{
    message deep = { .size = 0 }, node, g, m;
    cek__onnx *o;

    for (int i = 0; i < 300; i++) {
        message outer = { .size = 0 };

        put_message(&outer, i % 3 == 2 ? 6 : i % 3 == 1 ? 1 : 5, &deep);
        deep = outer;
    }
    g = graph_make(NULL);
    node = node_of("If", NAMES("y"), NAMES("q"));
    put_message(&node, 5, &deep);
    put_message(&g, 1, &node);
    m = model_of(&g, 17);
    assert_ok(cek__onnx_read(written(&m), &o));
    ck_assert_int_eq(o->attributes[o->nodes[2].first_attribute].kind, CEK__ONNX_ATTRIBUTE_OTHER);
    cek__onnx_free(o);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    message g = graph_make(NULL), m = model_of(&g, 17);
    const char *path = written(&m);
    cek_status st = CEK_OUT_OF_MEMORY;
    cek__onnx *o;

    for (long n = 1; st != CEK_OK; n++) {
        cek__fault_set(CEK__FAULT_ALLOC, n);
        st = cek__onnx_read(path, &o);
        ck_assert_msg(st == CEK_OK || st == CEK_OUT_OF_MEMORY, "%s", cek_error_text());
        ck_assert(st != CEK_OK || cek__fault_pending(CEK__FAULT_ALLOC));
        cek__onnx_free(o);
    }
    cek__fault_set(CEK__FAULT_ALLOC, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("onnx_file");
    TCase *all = tcase_create("all");

    tcase_add_checked_fixture(all, scratch_make, scratch_remove);
    tcase_add_test(all, a_model_comes_as_it_was_written);
    tcase_add_test(all, weights_may_lie_in_a_file_of_the_same_folder_and_in_no_other);
    tcase_add_loop_test(all, a_graph_that_lies_is_refused, 0, sizeof lies / sizeof *lies);
    tcase_add_loop_test(all, bytes_that_are_no_model_are_refused, 0, sizeof damaged / sizeof *damaged);
    tcase_add_test(all, a_truncated_file_is_refused);
    tcase_add_test(all, changed_bytes_lead_nowhere);
    tcase_add_test(all, what_is_nested_deeply_is_not_entered);
    tcase_add_test(all, every_allocation_may_fail);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
