/* onnx_import.c - tests of nn/onnx: weights under their names, where the batch is, what the inputs are, and
 * what is refused. */
#include <math.h>

#include "core/base/fault.h"
#include "onnx_nets.h"

/* ---- a network ---- */

static const float weights[6] = { 1, 2, 3, 4, 5, 6 }, bias[2] = { 0.5f, -20 };

/* y = relu(x w + b) for samples of three numbers, then reshaped to what `sizes` says of a batch of two. */
static message network(const int64_t *batch, const int64_t *sizes, int64_t count)
{
    message g = { .size = 0 }, part;

    part = node_of("MatMul", NAMES("x", "layer.weight"), NAMES("p"));
    put_message(&g, 1, &part);
    part = node_of("Add", NAMES("p", "layer.bias"), NAMES("q"));
    put_message(&g, 1, &part);
    part = node_of("Relu", NAMES("q"), NAMES("r"));
    put_message(&g, 1, &part);
    part = node_of("Reshape", NAMES("r", "sizes"), NAMES("y"));
    put_message(&g, 1, &part);
    part = floats_of("layer.weight", 2, SHAPE(3, 2), weights, 6);
    put_message(&g, 5, &part);
    part = floats_of("layer.bias", 1, SHAPE(2), bias, 2);
    put_message(&g, 5, &part);
    part = list_of("sizes", sizes, count);
    put_message(&g, 5, &part);
    ends_put(&g, 2, batch);
    return g;
}

START_TEST(weights_are_parameters_under_their_names)
{
    message g = network(SHAPE(0, 3), SHAPE(-1, 2), 2);
    cek_parameter p;
    cek_model *model;
    int64_t shape[CEK_RANK_MAX];

    assert_ok(cek_model_read_onnx(written(&g), NULL, &model));
    ck_assert_uint_eq(cek_model_parameter_count(model), 2);
    ck_assert_uint_eq(cek_model_buffer_count(model), 0);
    assert_ok(cek_model_parameter(model, 0, &p));
    ck_assert_str_eq(p.name, "layer.weight");
    ck_assert_mem_eq(p.data, weights, sizeof weights);
    assert_ok(cek_model_parameter(model, 1, &p));
    ck_assert_str_eq(p.name, "layer.bias");
    ck_assert_int_eq(cek_model_input_shape(model, shape), 1);
    ck_assert_int_eq(shape[0], 3);
    cek_model_free(model);
}
END_TEST

/* The sizes of a reshape of [batch, 2], with the batch as the file has it, and the shape of a sample. */
static const struct {
    int64_t batch, count, sizes[3], rank, shape[2];
} reshapes[] = {
    { 0, 2, { -1, 2 }, 1, { 2 } },       { 0, 2, { 0, -1 }, 1, { 2 } }, { 0, 3, { -1, 1, 2 }, 2, { 1, 2 } },
    { 2, 2, { 2, -1 }, 1, { 2 } },       { 2, 2, { 2, 2 }, 1, { 2 } },  { 2, 3, { 2, 2, 1 }, 2, { 2, 1 } },
    { 2, 3, { 2, 1, -1 }, 2, { 1, 2 } }, { 1, 2, { 1, 2 }, 1, { 2 } },  { 1, 3, { 1, 2, 1 }, 2, { 2, 1 } },
    { 1, 2, { -1, 2 }, 1, { 2 } },
};

START_TEST(a_reshape_is_explained_at_any_batch)
{
    static const float x[4][3] = { { 1, 1, 1 }, { 0, 0, 0 }, { 4, 0, 0 }, { 0, 0, 8 } };
    message g = network(SHAPE(reshapes[_i].batch, 3), reshapes[_i].sizes, reshapes[_i].count);
    int64_t shape[CEK_RANK_MAX];
    cek_model *model;
    float y[MOST];

    assert_ok(cek_model_read_onnx(written(&g), NULL, &model));
    ck_assert_int_eq(cek_model_output_shape(model, shape), reshapes[_i].rank);
    for (int i = 0; i < reshapes[_i].rank; i++)
        ck_assert_int_eq(shape[i], reshapes[_i].shape[i]);
    cek_model_free(model);
    ck_assert_int_eq(predicted(&g, x, 4, y), 8);
    for (int n = 0; n < 4; n++)
        for (int k = 0; k < 2; k++) {
            double sum = (double)bias[k];

            for (int i = 0; i < 3; i++)
                sum += (double)x[n][i] * (double)weights[2 * i + k];
            ck_assert_double_eq((double)y[2 * n + k], fmax(sum, 0));
        }
}
END_TEST

/* 2 and 3 in types that nothing is computed of while a file is read. */
static const struct {
    int type;
    size_t bytes;
    uint8_t values[16];
} constants[] = { { 11, 16, { [7] = 0x40, [14] = 0x08, 0x40 } },
                  { 10, 4, { 0, 0x40, 0, 0x42 } },
                  { 16, 4, { 0, 0x40, 0x40, 0x40 } },
                  { 3, 2, { 2, 3 } },
                  { 2, 2, { 2, 3 } } };

START_TEST(a_constant_may_be_of_any_type)
{
    message g = { .size = 0 }, node = node_of("Constant", NAMES(NULL), NAMES("c"));
    message value = tensor_of("", constants[_i].type, 1, SHAPE(2));
    float y[MOST];

    put_bytes(&value, 9, constants[_i].values, constants[_i].bytes);
    put_tensor_attribute(&node, "value", &value);
    put_message(&g, 1, &node);
    node = node_of("Cast", NAMES("c"), NAMES("f"));
    put_whole(&node, "to", FLOAT);
    put_message(&g, 1, &node);
    node = node_of("Mul", NAMES("x", "f"), NAMES("y"));
    put_message(&g, 1, &node);
    ends_put(&g, 2, SHAPE(0, 2));
    ck_assert_int_eq(predicted(&g, ((const float[]){ 1, 10 }), 1, y), 2);
    ck_assert_double_eq((double)y[0], 2);
    ck_assert_double_eq((double)y[1], 30);
}
END_TEST

/* Of a file beside it; nobody trains it. */
START_TEST(a_constant_may_be_large)
{
    enum { COLUMNS = 2100 };
    message g = { .size = 0 }, node = node_of("Constant", NAMES(NULL), NAMES("c"));
    message value = tensor_of("", FLOAT, 2, SHAPE(2, COLUMNS)), axes = list_of("axes", SHAPE(1), 1);
    float halves[2 * COLUMNS], y[MOST];
    cek_model *model;

    for (int i = 0; i < COUNT(halves); i++)
        halves[i] = 0.5f;
    scratch_write("halves", halves, sizeof halves);
    put_external(&value, "location", "halves");
    put_integer(&value, 14, 1);
    put_tensor_attribute(&node, "value", &value);
    put_message(&g, 1, &node);
    node = node_of("MatMul", NAMES("x", "c"), NAMES("p"));
    put_message(&g, 1, &node);
    node = node_of("ReduceSum", NAMES("p", "axes"), NAMES("y"));
    put_message(&g, 1, &node);
    put_message(&g, 5, &axes);
    ends_put(&g, 2, SHAPE(0, 2));
    ck_assert_int_eq(predicted(&g, ((const float[]){ 1, 2, 3, 4 }), 2, y), 2);
    ck_assert_double_eq((double)y[0], 1.5 * COLUMNS);
    ck_assert_double_eq((double)y[1], 3.5 * COLUMNS);
    assert_ok(cek_model_read_onnx(scratch_path("net.onnx"), NULL, &model));
    ck_assert_uint_eq(cek_model_parameter_count(model), 0);
    ck_assert_uint_eq(cek_model_buffer_count(model), 1);
    cek_model_free(model);
}
END_TEST

/* An embedding: whole numbers in, rows of a table out. */
START_TEST(whole_numbers_name_rows_of_a_table)
{
    static const int32_t words[6] = { 2, 0, 1, 1, 2, 2 };
    message g = { .size = 0 }, part = node_of("Gather", NAMES("table", "x"), NAMES("y"));
    message type = { .size = 0 }, tensor = { .size = 0 }, dims = { .size = 0 }, dim = { .size = 0 };
    float y[MOST];

    put_message(&g, 1, &part);
    part = floats_of("table", 2, SHAPE(3, 2), weights, 6);
    put_message(&g, 5, &part);
    put_text(&dim, 2, "batch");
    put_message(&dims, 1, &dim);
    dim.size = 0;
    put_integer(&dim, 1, 3);
    put_message(&dims, 1, &dim);
    put_integer(&tensor, 1, INT64);
    put_message(&tensor, 2, &dims);
    put_message(&type, 1, &tensor);
    part.size = 0;
    put_text(&part, 1, "x");
    put_message(&part, 2, &type);
    put_message(&g, 11, &part);
    part = value_of("y", 1, SHAPE(-1));
    put_message(&g, 12, &part);
    ck_assert_int_eq(predicted(&g, words, 2, y), 12);
    for (int i = 0; i < 12; i++)
        ck_assert_double_eq((double)y[i], (double)weights[2 * words[i / 2] + i % 2]);
}
END_TEST

/* ValueInfoProto of int64, of one axis: the batch by this name. */
static message words_of(const char *name, const char *batch)
{
    message m = { .size = 0 }, type = { .size = 0 }, tensor = { .size = 0 }, dims = { .size = 0 }, dim = { .size = 0 };

    put_text(&dim, 2, batch);
    put_message(&dims, 1, &dim);
    put_integer(&tensor, 1, INT64);
    put_message(&tensor, 2, &dims);
    put_message(&type, 1, &tensor);
    put_text(&m, 1, name);
    put_message(&m, 2, &type);
    return m;
}

/* The row of a table that a word names, plus x; an input that nothing reads stands between. */
static message two_inputs(const char *batch)
{
    message g = { .size = 0 }, part = node_of("Gather", NAMES("table", "the word"), NAMES("row"));

    put_message(&g, 1, &part);
    part = node_of("Add", NAMES("row", "x"), NAMES("y"));
    put_message(&g, 1, &part);
    part = floats_of("table", 2, SHAPE(3, 2), weights, 6);
    put_message(&g, 5, &part);
    part = words_of("the word", batch);
    put_message(&g, 11, &part);
    part = value_of("unused", 2, SHAPE(0, 9));
    put_message(&g, 11, &part);
    ends_put(&g, 2, SHAPE(0, 2));
    return g;
}

START_TEST(several_inputs_keep_their_names_and_order)
{
    static const int32_t words[3] = { 2, 0, 1 };
    static const float x[3][2] = { { 10, 20 }, { 30, 40 }, { 50, 60 } };
    const cek_predictor_options options = { .size = sizeof options, .batch = 2 };
    message g = two_inputs("batch");
    const void *const inputs[2] = { words, x };
    cek_input input = { .size = sizeof input };
    float y[6], *outputs[1] = { y };
    cek_predictor *predictor;
    cek_model *model;

    assert_ok(cek_model_read_onnx(written(&g), NULL, &model));
    ck_assert_uint_eq(cek_model_input_count(model), 2);
    assert_ok(cek_model_input(model, 0, &input));
    ck_assert_str_eq(input.name, "the word");
    ck_assert_uint_eq(input.type, CEK_I32);
    assert_ok(cek_model_input(model, 1, &input));
    ck_assert_str_eq(input.name, "x");
    ck_assert_uint_eq(input.type, CEK_F32);
    ck_assert_int_eq(input.rank, 1);
    ck_assert_int_eq(input.shape[0], 2);
    assert_fails(cek_model_input(model, 2, &input), CEK_INVALID, "input 2", "that has 2");
    assert_ok(cek_predictor_create(model, devices, 1, &options, &predictor));
    assert_ok(cek_predictor_run_arrays(predictor, inputs, 3, outputs));
    for (int n = 0; n < 3; n++)
        for (int k = 0; k < 2; k++)
            ck_assert_double_eq((double)y[2 * n + k], (double)(weights[2 * words[n] + k] + x[n][k]));
    cek_predictor_free(predictor);
    cek_model_free(model);
}
END_TEST

START_TEST(inputs_that_call_the_batch_otherwise_are_refused)
{
    message g = two_inputs("rows");
    cek_model *model;

    assert_fails(cek_model_read_onnx(written(&g), NULL, &model), CEK_UNSUPPORTED, "'the word' and 'x'",
                 "rows and batch");
}
END_TEST

/* ---- what is refused ---- */

START_TEST(an_operator_that_is_missing_is_named_with_its_node)
{
    message g = { .size = 0 }, node = node_of("Relu", NAMES("x"), NAMES("q"));
    cek_model *model;

    put_message(&g, 1, &node);
    node = node_of("NonMaxSuppression", NAMES("q"), NAMES("y"));
    put_message(&g, 1, &node);
    ends_put(&g, 2, SHAPE(0, 2));
    assert_fails(cek_model_read_onnx(written(&g), NULL, &model), CEK_UNSUPPORTED, "node 1 ('a node')",
                 "no operator NonMaxSuppression");
    ck_assert_ptr_null(model);
}
END_TEST

START_TEST(operators_of_onnx_may_say_so)
{
    message g = { .size = 0 }, node = node_of("Relu", NAMES("x"), NAMES("y")), foreign = node;
    cek_model *model;
    float y[MOST];

    put_text(&node, 7, "ai.onnx");
    put_message(&g, 1, &node);
    ends_put(&g, 2, SHAPE(0, 2));
    ck_assert_int_eq(predicted(&g, ((const float[]){ -1, 2 }), 1, y), 2);
    ck_assert_double_eq((double)y[1], 2);
    g.size = 0;
    put_text(&foreign, 7, "ai.onn");
    put_message(&g, 1, &foreign);
    ends_put(&g, 2, SHAPE(0, 2));
    assert_fails(cek_model_read_onnx(written(&g), NULL, &model), CEK_UNSUPPORTED, "node 0 ('a node')",
                 "no operator ai.onn.Relu");
}
END_TEST

START_TEST(what_mixes_samples_of_any_number_is_refused)
{
    message g = { .size = 0 }, node = node_of("ReduceSum", NAMES("x", "axes"), NAMES("y")), part;
    cek_model *model;

    put_message(&g, 1, &node);
    part = list_of("axes", SHAPE(0), 1);
    put_message(&g, 5, &part);
    ends_put(&g, 2, SHAPE(0, 2));
    assert_fails(cek_model_read_onnx(written(&g), NULL, &model), CEK_UNSUPPORTED,
                 "net.onnx: node 0 ('a node'): ReduceSum y: ", "would mix samples");
}
END_TEST

/* Of x [N,3,4] rows of which every N-th one is a sample's. */
START_TEST(an_output_that_is_no_row_for_each_sample_is_refused)
{
    message g = { .size = 0 }, node = node_of("Transpose", NAMES("x"), NAMES("t"));
    message part = integers_of("perm", SHAPE(1, 0, 2), 3, 1);
    cek_model *model;

    put_message(&node, 5, &part);
    put_message(&g, 1, &node);
    node = node_of("Reshape", NAMES("t", "rows"), NAMES("y"));
    put_message(&g, 1, &node);
    part = list_of("rows", SHAPE(-1, 4), 2);
    put_message(&g, 5, &part);
    ends_put(&g, 3, SHAPE(0, 3, 4));
    assert_fails(cek_model_read_onnx(written(&g), NULL, &model), CEK_UNSUPPORTED,
                 "net.onnx: Output y: ", "samples lie among");
}
END_TEST

/* Of x [N,1] the differences of each two samples: as one sample that is the whole batch, where that is a number. */
START_TEST(an_output_of_each_two_samples_is_of_a_whole_batch)
{
    message g = { .size = 0 }, node = node_of("Transpose", NAMES("x"), NAMES("t"));
    cek_model *model;
    float y[MOST];

    put_message(&g, 1, &node);
    node = node_of("Sub", NAMES("x", "t"), NAMES("y"));
    put_message(&g, 1, &node);
    ends_put(&g, 2, SHAPE(_i ? 2 : 0, 1));
    if (_i == 0) {
        assert_fails(cek_model_read_onnx(written(&g), NULL, &model), CEK_UNSUPPORTED, "net.onnx: output 'y'",
                     "counts samples along several axes");
        return;
    }
    ck_assert_int_eq(predicted(&g, ((const float[]){ 5, 3 }), 1, y), 4);
    ck_assert_mem_eq(y, ((const float[]){ 0, 2, -2, 0 }), 4 * sizeof *y);
}
END_TEST

static const struct {
    const char *op, *name;
    int rank;
} texts[] = { { "Pad", "mode", 2 },          { "Gelu", "approximate", 2 },
              { "DepthToSpace", "mode", 4 }, { "MaxPool", "auto_pad", 4 },
              { "Conv", "auto_pad", 4 },     { "LSTM", "direction", 3 },
              { "GRU", "direction", 3 },     { "NegativeLogLikelihoodLoss", "reduction", 2 } };

START_TEST(a_word_that_onnx_does_not_have_is_refused)
{
    message g = { .size = 0 }, node = node_of(texts[_i].op, NAMES("x", texts[_i].rank == 4 ? "w" : "list"), NAMES("y"));
    message part = list_of("list", SHAPE(0), 1);
    char label[64], cause[64];
    cek_model *model;

    put_text_attribute(&node, texts[_i].name, "foo");
    put_whole(&node, "linear_before_reset", 1);
    put_message(&g, 1, &node);
    put_message(&g, 5, &part);
    part = floats_of("w", 4, SHAPE(1, 1, 1, 1), weights, 1);
    put_message(&g, 5, &part);
    ends_put(&g, texts[_i].rank, SHAPE(1, 1, 1, 1));
    snprintf(label, sizeof label, "%s y", texts[_i].op);
    snprintf(cause, sizeof cause, "its %s is 'foo'", texts[_i].name);
    assert_fails(cek_model_read_onnx(written(&g), NULL, &model), CEK_BAD_INPUT, label, cause);
}
END_TEST

/* A sum over samples, of what has as many axes as there can be: none is left to count samples by. */
START_TEST(a_whole_batch_of_as_many_axes_as_there_are_is_refused)
{
    message g = { .size = 0 }, node = node_of("ReduceSum", NAMES("x", "axes"), NAMES("y")), part;
    cek_model *model;

    put_message(&g, 1, &node);
    part = list_of("axes", SHAPE(0), 1);
    put_message(&g, 5, &part);
    ends_put(&g, 8, SHAPE(2, 1, 1, 1, 1, 1, 1, 3));
    assert_fails(cek_model_read_onnx(written(&g), NULL, &model), CEK_UNSUPPORTED, "a sample of more than",
                 "an output of 8 axes");
}
END_TEST

START_TEST(sizes_of_inputs_that_nothing_reads_need_not_be_known)
{
    message g = { .size = 0 }, node = node_of("ReduceSum", NAMES("x", "axes"), NAMES("y")), part;
    float y[MOST];

    put_message(&g, 1, &node);
    part = list_of("axes", SHAPE(0), 1);
    put_message(&g, 5, &part);
    part = value_of("unread", 2, SHAPE(0, -1));
    put_message(&g, 11, &part);
    ends_put(&g, 2, SHAPE(2, 3));
    ck_assert_int_eq(predicted(&g, ((const float[]){ 1, 2, 3, 10, 20, 30 }), 1, y), 3);
    ck_assert_double_eq((double)y[2], 33);
    node = node_of("Identity", NAMES("unread"), NAMES("z"));
    put_message(&g, 1, &node); /* read, but not by what gives the output */
    ck_assert_int_eq(predicted(&g, ((const float[]){ 1, 2, 3, 10, 20, 30 }), 1, y), 3);
}
END_TEST

START_TEST(one_sample_that_is_a_whole_batch_is_not_trained)
{
    message g = { .size = 0 }, node = node_of("ReduceSum", NAMES("x", "axes"), NAMES("q")), part;
    cek_trainer *trainer;
    cek_model *model;

    put_message(&g, 1, &node);
    node = node_of("MatMul", NAMES("q", "w"), NAMES("y"));
    put_message(&g, 1, &node);
    part = list_of("axes", SHAPE(0), 1);
    put_message(&g, 5, &part);
    part = floats_of("w", 2, SHAPE(3, 2), weights, 6);
    put_message(&g, 5, &part);
    ends_put(&g, 2, SHAPE(2, 3));
    assert_ok(cek_model_read_onnx(written(&g), NULL, &model));
    assert_fails(cek_trainer_create(model, devices, 1, NULL, &trainer), CEK_INVALID, "one sample", "not trained");
    assert_fails(cek_model_write_onnx(model, scratch_path("whole.onnx"), NULL), CEK_UNSUPPORTED, "one sample",
                 "whole batch");
    cek_model_free(model);
}
END_TEST

START_TEST(a_size_that_has_a_name_is_given)
{
    message g = { .size = 0 }, node = node_of("Relu", NAMES("x"), NAMES("y"));
    cek_onnx_options options = { .size = sizeof options, .sizes = "batches=2,batch=5" };
    cek_input input = { .size = sizeof input };
    int64_t shape[CEK_RANK_MAX];
    cek_model *model;

    put_message(&g, 1, &node);
    ends_put(&g, 3, SHAPE(-1, 0, 2)); /* value_of calls 0 "batch" and -1 nothing */
    assert_fails(cek_model_read_onnx(written(&g), NULL, &model), CEK_UNSUPPORTED, "input 'x'", "axis 1 (batch)");
    assert_ok(cek_model_read_onnx(written(&g), &options, &model));
    ck_assert_int_eq(cek_model_input_shape(model, shape), 2);
    ck_assert_int_eq(shape[0], 5);
    ck_assert_int_eq(shape[1], 2);
    assert_fails(cek_model_input(model, 1, &input), CEK_INVALID, "1", "input");
    cek_model_free(model);
    options.output = "z";
    assert_fails(cek_model_read_onnx(written(&g), &options, &model), CEK_BAD_INPUT, "net.onnx", "no output z");
}
END_TEST

START_TEST(an_integer_that_is_too_large_is_refused)
{
    message g = { .size = 0 }, node = node_of("Cast", NAMES("x"), NAMES("i")), part;
    cek_model *model;

    put_whole(&node, "to", INT64);
    put_message(&g, 1, &node);
    node = node_of("Add", NAMES("i", "many"), NAMES("y"));
    put_message(&g, 1, &node);
    part = list_of("many", SHAPE(1, INT64_C(1) << 40), 2);
    put_message(&g, 5, &part);
    ends_put(&g, 2, SHAPE(0, 2));
    assert_fails(cek_model_read_onnx(written(&g), NULL, &model), CEK_UNSUPPORTED, "'many'", "1099511627776");
}
END_TEST

/* ---- hostile files ---- */

static uint32_t state = 1;

static uint32_t below(size_t limit)
{
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(state >> 8) * limit >> 24);
}

START_TEST(changed_bytes_lead_nowhere)
{
    message g = network(SHAPE(2, 3), SHAPE(2, 2, 1), 3), original;
    int accepted = 0;

    role_put(&g, "layer.bias", "PARAMETER");
    original = model_of(&g, 20);

    for (int i = 0; i < 1000; i++) {
        message m = original;
        cek_model *model;
        cek_status st;

        for (uint32_t k = 0, n = 1 + below(3); k < n; k++) {
            size_t at = below(m.size);

            m.bytes[at] = (uint8_t)(below(2) ? below(256) : m.bytes[at] ^ 1U << below(8));
        }
        st = cek_model_read_onnx(scratch_write("net.onnx", m.bytes, m.size), NULL, &model);
        accepted += st == CEK_OK;
        ck_assert_msg(st == CEK_OK || st == CEK_BAD_INPUT || st == CEK_UNSUPPORTED, "%s: %s", cek_status_name(st),
                      cek_error_text());
        ck_assert((st == CEK_OK) == (model != NULL));
        cek_model_free(model);
    }
    ck_assert_int_gt(accepted, 0);
    ck_assert_int_lt(accepted, 1000);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    message g = network(SHAPE(2, 3), SHAPE(2, 2, 1), 3);
    const char *path = written(&g);
    cek_status st = CEK_OUT_OF_MEMORY;
    cek_model *model;

    for (long n = 1; st != CEK_OK; n++) {
        cek__fault_set(CEK__FAULT_ALLOC, n);
        st = cek_model_read_onnx(path, NULL, &model);
        ck_assert_msg(st == CEK_OK || st == CEK_OUT_OF_MEMORY, "%s", cek_error_text());
        cek_model_free(model);
    }
    cek__fault_set(CEK__FAULT_ALLOC, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("onnx_import");
    TCase *all = tcase_create("all");

    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_test(all, weights_are_parameters_under_their_names);
    tcase_add_loop_test(all, a_reshape_is_explained_at_any_batch, 0, COUNT(reshapes));
    tcase_add_loop_test(all, a_constant_may_be_of_any_type, 0, COUNT(constants));
    tcase_add_test(all, a_constant_may_be_large);
    tcase_add_test(all, whole_numbers_name_rows_of_a_table);
    tcase_add_test(all, several_inputs_keep_their_names_and_order);
    tcase_add_test(all, inputs_that_call_the_batch_otherwise_are_refused);
    tcase_add_test(all, an_operator_that_is_missing_is_named_with_its_node);
    tcase_add_test(all, operators_of_onnx_may_say_so);
    tcase_add_test(all, what_mixes_samples_of_any_number_is_refused);
    tcase_add_test(all, an_output_that_is_no_row_for_each_sample_is_refused);
    tcase_add_loop_test(all, an_output_of_each_two_samples_is_of_a_whole_batch, 0, 2);
    tcase_add_loop_test(all, a_word_that_onnx_does_not_have_is_refused, 0, COUNT(texts));
    tcase_add_test(all, a_whole_batch_of_as_many_axes_as_there_are_is_refused);
    tcase_add_test(all, sizes_of_inputs_that_nothing_reads_need_not_be_known);
    tcase_add_test(all, one_sample_that_is_a_whole_batch_is_not_trained);
    tcase_add_test(all, a_size_that_has_a_name_is_given);
    tcase_add_test(all, an_integer_that_is_too_large_is_refused);
    tcase_add_test(all, changed_bytes_lead_nowhere);
    tcase_add_test(all, every_allocation_may_fail);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
