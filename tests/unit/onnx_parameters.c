/* onnx_parameters.c - tests of nn/onnx: which weights of a file are parameters, which are buffers or constants. */
#include "onnx_nets.h"

static const float weights[6] = { 1, 2, 3, 4, 5, 6 }, bias[2] = { 0.5f, -20 };

static void counts_are(const cek_model *model, size_t parameters, size_t buffers)
{
    ck_assert_uint_eq(cek_model_parameter_count(model), parameters);
    ck_assert_uint_eq(cek_model_buffer_count(model), buffers);
}

/* y = x * (w as [1,2], twice itself): that is known when the file is read, and yet it follows the weight. */
START_TEST(a_weight_behind_arithmetic_on_weights_is_a_parameter)
{
    const cek_predictor_options options = { .size = sizeof options, .batch = 1 };
    message g = { .size = 0 }, part = node_of("Reshape", NAMES("w", "sizes"), NAMES("row"));
    cek_predictor *predictor;
    cek_model *model;
    cek_parameter p;
    float y[2];

    put_message(&g, 1, &part);
    part = node_of("Add", NAMES("row", "row"), NAMES("twice"));
    put_message(&g, 1, &part);
    part = node_of("Mul", NAMES("x", "twice"), NAMES("y"));
    put_message(&g, 1, &part);
    part = floats_of("w", 1, SHAPE(2), weights, 2);
    put_message(&g, 5, &part);
    part = list_of("sizes", SHAPE(1, 2), 2);
    put_message(&g, 5, &part);
    ends_put(&g, 2, SHAPE(0, 2));
    assert_ok(cek_model_read_onnx(written(&g), NULL, &model));
    counts_are(model, 1, 0);
    assert_ok(cek_model_parameter(model, 0, &p));
    ck_assert_str_eq(p.name, "w");
    p.data[0] = 10;
    assert_ok(cek_predictor_create(model, devices, 1, &options, &predictor));
    assert_ok(cek_predictor_run(predictor, ((const float[]){ 1, 1 }), 1, y));
    ck_assert_double_eq((double)y[0], 20);
    ck_assert_double_eq((double)y[1], 2 * (double)weights[1]);
    cek_predictor_free(predictor);
    cek_model_free(model);
}
END_TEST

/* More inputs than are looked at when a file is read: a Concat of a DenseNet. */
START_TEST(many_inputs_of_one_node_are_taken)
{
    const char *const list[] = { "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "w", "w", NULL };
    message g = { .size = 0 }, part = node_of("Concat", list, NAMES("y"));
    float y[MOST];

    put_whole(&part, "axis", 2);
    put_message(&g, 1, &part);
    part = floats_of("w", 3, SHAPE(1, 1, 2), weights, 2);
    put_message(&g, 5, &part);
    ends_put(&g, 3, SHAPE(1, 1, 2));
    ck_assert_int_eq(predicted(&g, ((const float[]){ 7, 8 }), 1, y), 24);
    ck_assert(y[18] == 7 && y[19] == 8 && y[22] == weights[0] && y[23] == weights[1]);
}
END_TEST

/* Deeper than any exporter writes them, so that a file cannot use up the stack. */
START_TEST(weights_behind_too_many_nodes_are_refused)
{
    message g = { .size = 0 }, part;
    char names[2][16] = { "w", "" };
    cek_model *model;

    for (int i = 0; i < 66; i++) {
        snprintf(names[1 - i % 2], sizeof names[0], "n%d", i);
        part = node_of("Neg", NAMES(names[i % 2]), NAMES(names[1 - i % 2]));
        put_message(&g, 1, &part);
    }
    part = node_of("Mul", NAMES("x", "n65"), NAMES("y"));
    put_message(&g, 1, &part);
    part = floats_of("w", 1, SHAPE(2), weights, 2);
    put_message(&g, 5, &part);
    ends_put(&g, 2, SHAPE(0, 2));
    assert_fails(cek_model_read_onnx(written(&g), NULL, &model), CEK_UNSUPPORTED, "more than 64 nodes", "'n1'");
}
END_TEST

/* y = x * s of `count` numbers, of which the file says `role`. */
static const struct {
    int count;
    const char *role;
    size_t parameters, buffers;
} roles[] = {
    { 1, NULL, 0, 0 }, { 1, "PARAMETER", 1, 0 }, { 1, "BUFFER", 0, 1 }, { 1, "USER_INPUT", 0, 0 },
    { 2, NULL, 1, 0 }, { 2, "PARAMETER", 1, 0 }, { 2, "BUFFER", 0, 1 },
};

START_TEST(what_the_file_says_of_a_weight_counts)
{
    message g = { .size = 0 }, part = node_of("Mul", NAMES("x", "s"), NAMES("y"));
    cek_model *model;
    float y[MOST];

    put_message(&g, 1, &part);
    part = floats_of("s", 1, SHAPE(roles[_i].count), weights + 1, roles[_i].count);
    put_message(&g, 5, &part);
    role_put(&g, "no such weight", "PARAMETER");
    if (roles[_i].role)
        role_put(&g, "s", roles[_i].role);
    ends_put(&g, 2, SHAPE(0, 2));
    assert_ok(cek_model_read_onnx(written(&g), NULL, &model));
    counts_are(model, roles[_i].parameters, roles[_i].buffers);
    cek_model_free(model);
    ck_assert_int_eq(predicted(&g, ((const float[]){ 1, 1 }), 1, y), 2);
    ck_assert_double_eq((double)y[0], 2);
    ck_assert_double_eq((double)y[1], roles[_i].count == 1 ? 2 : 3);
}
END_TEST

/* As an optimiser of files writes an untrained norm: ones and zeros once each. */
START_TEST(running_statistics_are_no_weights_of_others)
{
    message g = { .size = 0 }, part = node_of("BatchNormalization", NAMES("x", "w", "b", "b", "w"), NAMES("y"));
    cek_model *model;
    cek_parameter p;

    put_message(&g, 1, &part);
    part = floats_of("w", 1, SHAPE(2), (const float[]){ 1, 1 }, 2);
    put_message(&g, 5, &part);
    part = floats_of("b", 1, SHAPE(2), (const float[]){ 0, 0 }, 2);
    put_message(&g, 5, &part);
    ends_put(&g, 2, SHAPE(0, 2));
    assert_ok(cek_model_read_onnx(written(&g), NULL, &model));
    counts_are(model, 2, 2);
    assert_ok(cek_model_parameter(model, 0, &p));
    ck_assert_str_eq(p.name, "w");
    assert_ok(cek_model_buffer(model, 1, &p));
    ck_assert_str_eq(p.name, "y.running_var");
    ck_assert_double_eq((double)p.data[1], 1);
    cek_model_free(model);
}
END_TEST

static int warnings;

static void warned(void *user, int level, const char *text)
{
    (void)user;
    warnings += level == CEK_LOG_WARN && strstr(text, "'b', all 0.5, is one parameter for 2 readers") != NULL;
}

/* relu(x + b) + b: of a trained network nobody would take it for two that were equal. */
START_TEST(equal_weights_that_are_written_once_are_told)
{
    for (int alike = 0; alike < 2; alike++) {
        message g = { .size = 0 }, part = node_of("Add", NAMES("x", "b"), NAMES("p"));
        cek_model *model;

        put_message(&g, 1, &part);
        part = node_of("Relu", NAMES("p"), NAMES("q"));
        put_message(&g, 1, &part);
        part = node_of("Add", NAMES("q", "b"), NAMES("y"));
        put_message(&g, 1, &part);
        part = floats_of("b", 1, SHAPE(2), alike ? (const float[]){ 0.5f, 0.5f } : bias, 2);
        put_message(&g, 5, &part);
        ends_put(&g, 2, SHAPE(0, 2));
        warnings = 0;
        cek_log_set(warned, NULL, CEK_LOG_WARN);
        assert_ok(cek_model_read_onnx(written(&g), NULL, &model));
        cek_log_set(NULL, NULL, CEK_LOG_WARN);
        ck_assert_int_eq(warnings, alike);
        counts_are(model, 1, 0);
        cek_model_free(model);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("onnx_parameters");
    TCase *all = tcase_create("all");

    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_test(all, a_weight_behind_arithmetic_on_weights_is_a_parameter);
    tcase_add_test(all, many_inputs_of_one_node_are_taken);
    tcase_add_test(all, weights_behind_too_many_nodes_are_refused);
    tcase_add_loop_test(all, what_the_file_says_of_a_weight_counts, 0, COUNT(roles));
    tcase_add_test(all, equal_weights_that_are_written_once_are_told);
    tcase_add_test(all, running_statistics_are_no_weights_of_others);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
