/* graph.c - the parts: their gradients against central differences, what the passes make of small graphs, refusals. */
#include "nn/graph/normalise.h"
#include "tests/graph_check.h"

static cek__dims dims(int rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (cek__dims){ .rank = rank, .size = { a, b, c, d } };
}

static cek__dims per_sample(int rank, int64_t b, int64_t c, int64_t d)
{
    return (cek__dims){ .rank = rank, .samples = 1, .size = { 1, b, c, d } };
}

/* ---- gradients ---- */

typedef struct code_case {
    uint32_t code;
    int inputs;
    double low, high;
} code_case;
static const code_case codes[] = {
    { CEK_PW_COPY, 1, -1, 1 }, { CEK_PW_ADD, 2, -1, 1 },   { CEK_PW_SUB, 2, -1, 1 },     { CEK_PW_MUL, 2, -1, 1 },
    { CEK_PW_DIV, 2, 0.5, 2 }, { CEK_PW_MIN, 2, -1, 1 },   { CEK_PW_MAX, 2, -1, 1 },     { CEK_PW_NEG, 1, -1, 1 },
    { CEK_PW_ABS, 1, -1, 1 },  { CEK_PW_SQRT, 1, 0.5, 2 }, { CEK_PW_EXP, 1, -1, 1 },     { CEK_PW_LOG, 1, 0.5, 2 },
    { CEK_PW_RELU, 1, -1, 1 }, { CEK_PW_TANH, 1, -1, 1 },  { CEK_PW_SIGMOID, 1, -1, 1 }, { CEK_PW_GELU, 1, -1, 1 },
};

/* Alone, and as one of three instructions, so that its value has to be computed again; broadcast along every axis. */
START_TEST(instructions)
{
    const code_case *c = &codes[_i];
    static net n;

    for (int deep = 0; deep < 2; deep++) {
        cek__part part = { .kind = CEK__PART_CHAIN, .inputs = c->inputs, .chain = { .count = deep ? 3 : 1 } };
        int x, y;

        net_open(&n);
        part.input[0] = parameter(&n, dims(2, 3, 4, 0, 0), c->low, c->high);
        if (c->inputs > 1)
            part.input[1] = parameter(&n, _i % 2 ? dims(2, 3, 1, 0, 0) : dims(1, 4, 0, 0, 0), c->low, c->high);
        x = samples(&n, per_sample(3, 3, 4, 0));
        part.chain.code[0] = (cek_pointwise_instruction){ .code = c->code, .b = c->inputs > 1 };
        part.chain.code[1] =
            (cek_pointwise_instruction){ .code = CEK_PW_MUL_IMM, .a = (uint32_t)c->inputs, .imm = 1.5 };
        part.chain.code[2] =
            (cek_pointwise_instruction){ .code = CEK_PW_MUL, .a = (uint32_t)c->inputs + 1, .b = (uint32_t)c->inputs };
        assert_ok(cek__graph_add(&n.graph, &part, &y));
        gradients_are_right(&n, chain(&n, CEK_PW_MUL, y, x), "chain");
    }
}
END_TEST

/* Both operands either way round, with and without an axis that counts matrices. */
START_TEST(products)
{
    static net n;
    bool ta = _i & 1, tb = _i >> 1 & 1;
    int batch = _i >> 2 & 1, y;
    cek__part part = { .kind = CEK__PART_PRODUCT,
                       .inputs = 2,
                       .product = { { batch, batch + 1, ta }, { batch, batch + 1, tb } } };

    net_open(&n);
    part.input[0] = parameter(&n, batch ? dims(3, 2, ta ? 4 : 3, ta ? 3 : 4, 0) : dims(2, ta ? 4 : 3, ta ? 3 : 4, 0, 0),
                              -1, 1);
    part.input[1] = parameter(&n, batch ? dims(3, 2, tb ? 5 : 4, tb ? 4 : 5, 0) : dims(2, tb ? 5 : 4, tb ? 4 : 5, 0, 0),
                              -1, 1);
    assert_ok(cek__graph_add(&n.graph, &part, &y));
    gradients_are_right(
        &n, chain(&n, CEK_PW_MUL, y, samples(&n, batch ? per_sample(4, 2, 3, 5) : per_sample(3, 3, 5, 0))), "product");
}
END_TEST

/* A linear layer over the last of three axes: rows are samples times steps. */
START_TEST(rows_are_several_axes)
{
    static net n;
    int y, w, b, x;
    cek__part part = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 0, 2, false }, { 0, 1, true } } };

    net_open(&n);
    w = parameter(&n, dims(2, 5, 4, 0, 0), -1, 1);
    b = parameter(&n, dims(1, 5, 0, 0, 0), -1, 1);
    x = chain(&n, CEK_PW_MUL, samples(&n, per_sample(3, 2, 4, 0)), parameter(&n, dims(1, 4, 0, 0, 0), -1, 1));
    part.input[0] = x;
    part.input[1] = w;
    assert_ok(cek__graph_add(&n.graph, &part, &y));
    y = chain(&n, CEK_PW_ADD, y, b);
    gradients_are_right(&n, chain(&n, CEK_PW_TANH, y, CEK__NOTHING), "rows of two axes");
}
END_TEST

START_TEST(sums_softmax_and_a_parameter_read_twice)
{
    static net n;
    int w, x, y, sum;
    cek__part softmax = { .kind = CEK__PART_SOFTMAX, .inputs = 1 };

    net_open(&n);
    w = parameter(&n, dims(2, 3, 4, 0, 0), -1, 1);
    x = samples(&n, per_sample(3, 3, 4, 0));
    softmax.input[0] = chain(&n, CEK_PW_MUL, x, w);
    assert_ok(cek__graph_add(&n.graph, &softmax, &y));
    assert_ok(cek__sum(&n.graph, y, 1u << 1, &sum)); /* [N,4] */
    y = chain(&n, CEK_PW_MUL, y, w);
    assert_ok(cek__view(&n.graph, sum, &(cek__dims){ .rank = 3, .samples = 1, .size = { 1, 1, 4 } }, &sum));
    gradients_are_right(&n, chain(&n, CEK_PW_ADD, y, sum), "sum and softmax");
}
END_TEST

/* What makes passes go wrong: parameters read in several ways, given late, or lying otherwise than their gradients. */
START_TEST(odd_uses_of_parameters)
{
    static net n;
    int w, x, y, b, out;
    cek__part product = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 0, 1, false }, { 0, 1, true } } };

    net_open(&n);
    if (_i == 0) { /* itself beside what is made of it */
        w = parameter(&n, dims(1, 4, 0, 0, 0), -1, 1);
        x = samples(&n, per_sample(2, 4, 0, 0));
        y = chain(&n, CEK_PW_MUL, x, chain(&n, CEK_PW_ADD, chain(&n, CEK_PW_TANH, w, 0), w));
    } else if (_i == 1) { /* half of the weights behind a flattened image */
        cek__part half = { .kind = CEK__PART_CHAIN, .inputs = 1, .chain = { .count = 1 } };

        x = samples(&n, per_sample(4, 2, 3, 3));
        assert_ok(cek__view(&n.graph, x, &(cek__dims){ .rank = 2, .samples = 1, .size = { 1, 18 } },
                            &product.input[0]));
        half.input[0] = parameter(&n, dims(2, 5, 18, 0, 0), -1, 1);
        half.chain.code[0] = (cek_pointwise_instruction){ .code = CEK_PW_MUL_IMM, .imm = 0.5 };
        assert_ok(cek__graph_add(&n.graph, &half, &product.input[1]));
        assert_ok(cek__graph_add(&n.graph, &product, &y));
    } else if (_i == 2) { /* a factor for each group of an image's channels */
        x = samples(&n, per_sample(4, 8, 4, 4));
        assert_ok(cek__view(&n.graph, x, &(cek__dims){ .rank = 4, .samples = 1, .size = { 1, 4, 2, 16 } }, &x));
        y = chain(&n, CEK_PW_MUL, x, parameter(&n, dims(3, 4, 1, 1, 0), -1, 1));
    } else { /* biases: twice the same, of two axes, made of another, given behind the product */
        product.input[0] = samples(&n, per_sample(2, 4, 0, 0));
        product.input[1] = parameter(&n, dims(2, 5, 4, 0, 0), -1, 1);
        assert_ok(cek__graph_add(&n.graph, &product, &y));
        b = parameter(&n, _i == 4 ? dims(2, 1, 5, 0, 0) : dims(1, 5, 0, 0, 0), -1, 1);
        out = _i == 5 ? chain(&n, CEK_PW_TANH, b, 0) : b;
        y = chain(&n, CEK_PW_ADD, y, out);
        y = _i == 3 ? chain(&n, CEK_PW_ADD, y, b) : y;
    }
    gradients_are_right(&n, y, "odd use");
}
END_TEST

/* An image that is convolved and added: one gradient is added to the other in its place. */
START_TEST(residual)
{
    static net n;
    int x, y, w;
    cek__part conv = { .kind = CEK__PART_CONV, .inputs = 2 };

    net_open(&n);
    x = samples(&n, per_sample(4, 2, 4, 3));
    x = chain(&n, CEK_PW_MUL, x, parameter(&n, dims(3, 2, 1, 1, 0), -1, 1));
    conv.input[0] = x;
    conv.conv.groups = 1;
    conv.conv.windows =
        (cek__windows){ .stride = { 1, 1 }, .dilation = { 1, 1 }, .pad_lo = { 1, 1 }, .pad_hi = { 1, 1 } };
    w = parameter(&n, dims(4, 2, 2, 3, 3), -1, 1);
    conv.input[1] = w;
    assert_ok(cek__graph_add(&n.graph, &conv, &y));
    conv.input[0] = y = chain(&n, CEK_PW_RELU, y, 0);
    assert_ok(cek__graph_add(&n.graph, &conv, &w)); /* the same weights again */
    y = chain(&n, CEK_PW_ADD, y, w);
    gradients_are_right(&n, chain(&n, CEK_PW_ADD, y, x), "residual");
}
END_TEST

/* Convolutions and pools with one and two axes, padding on one side, dilation, groups, then dropout and
 * a flattened product. */
START_TEST(windows)
{
    static net n;
    int spatial = 1 + (_i & 1), y, dropped, flat;
    uint32_t mode = _i & 2 ? CEK_POOL_AVERAGE : CEK_POOL_MAX;
    cek__part conv = { .kind = CEK__PART_CONV, .inputs = 2 }, pool = { .kind = CEK__PART_POOL, .inputs = 1 },
              dropout = { .kind = CEK__PART_DROPOUT, .inputs = 1 },
              product = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 0, 1, false }, { 0, 1, true } } };
    cek__dims bias = { .rank = spatial + 1, .size = { 4, 1, 1 } };
    int64_t features;

    net_open(&n);
    conv.input[1] = parameter(&n, spatial == 1 ? dims(3, 4, 1, 3, 0) : dims(4, 4, 1, 3, 2), -1, 1);
    conv.input[0] = samples(&n, spatial == 1 ? per_sample(3, 2, 9, 0) : per_sample(4, 2, 9, 6));
    conv.conv.groups = 2;
    conv.conv.windows =
        (cek__windows){ .stride = { 1, 1 }, .dilation = { 2, 1 }, .pad_lo = { 1, 1 }, .pad_hi = { 2, 0 } };
    assert_ok(cek__graph_add(&n.graph, &conv, &y));
    assert_ok(cek__view(&n.graph, parameter(&n, dims(1, 4, 0, 0, 0), -1, 1), &bias, &flat));
    y = chain(&n, CEK_PW_TANH, chain(&n, CEK_PW_ADD, y, flat), CEK__NOTHING);
    pool.input[0] = y;
    pool.pool.mode = mode;
    pool.pool.count_pad = mode == CEK_POOL_AVERAGE;
    pool.pool.windows =
        (cek__windows){ .kernel = { 3, 2 }, .stride = { 2, 2 }, .pad_lo = { 1, 0 }, .pad_hi = { 0, 1 } };
    assert_ok(cek__graph_add(&n.graph, &pool, &dropout.input[0]));
    dropout.dropout.p = 0.3;
    assert_ok(cek__graph_add(&n.graph, &dropout, &dropped));
    features = cek__dims_elements(&n.graph.flows[dropped].dims, 1, spatial + 2, 1);
    assert_ok(cek__view(&n.graph, dropped, &(cek__dims){ .rank = 2, .samples = 1, .size = { 1, features } }, &flat));
    product.input[0] = flat;
    product.input[1] = parameter(&n, dims(2, 3, features, 0, 0), -1, 1);
    assert_ok(cek__graph_add(&n.graph, &product, &y));
    gradients_are_right(&n, y, "windows");
}
END_TEST

/* ---- what the passes make ---- */

static void text_is(const cek__graph *graph, const char *expected)
{
    char *text;

    assert_ok(cek__graph_text(graph, &text));
    ck_assert_str_eq(text, expected);
    free(text);
}

START_TEST(a_layer_is_one_operation_and_its_gradients_two)
{
    static net n;
    int w, b, y;
    cek__part product = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 0, 1, false }, { 0, 1, true } } };

    net_open(&n);
    w = samples(&n, per_sample(2, 4, 0, 0));
    product.input[0] = chain(&n, CEK_PW_MUL, w, parameter(&n, dims(1, 4, 0, 0, 0), -1, 1));
    w = parameter(&n, dims(2, 5, 4, 0, 0), -1, 1);
    b = parameter(&n, dims(1, 5, 0, 0, 0), -1, 1);
    product.input[1] = w;
    assert_ok(cek__graph_add(&n.graph, &product, &y));
    y = chain(&n, CEK_PW_RELU, chain(&n, CEK_PW_ADD, y, b), CEK__NOTHING);
    loss_add(&n, y);
    passes(&n);
    text_is(&n.graph, "%1 [N,4] = input\n"
                      "%2 [4] = parameter\n"
                      "%3 [N,4] = chain %1 %2\n"
                      "%4 [5,4] = parameter\n"
                      "%5 [5] = parameter\n"
                      "%7 [N,5] = product %3 %4 %5 then %8\n"
                      "%8 [N,5] = chain %7\n"
                      "%9 [N,5] f64 = target\n"
                      "%10 [N,5] = squared_error %8 %9\n"
                      "%11 [N,5] = chain %10 %8 (backward)\n"
                      "%13 [5,4], %12 [5] = product %11 %3 (backward)\n"
                      "%14 [N,4] = product %11 %4 (backward)\n"
                      "%15 [N,4] = chain %14 %1 (backward)\n"
                      "%16 [4] = reduce %15 (backward)\n");
    net_close(&n);
}
END_TEST

/* Way back: two sums of what has the size of the samples, and one chain; the rest is as small as a channel. */
START_TEST(a_normalisation_is_one_chain_and_its_gradients_two_sums_and_one)
{
    static net n;
    int x, y, affine[2], statistics[2];

    net_open(&n);
    x = chain(&n, CEK_PW_MUL, samples(&n, per_sample(2, 4, 0, 0)), parameter(&n, dims(1, 4, 0, 0, 0), -1, 1));
    for (int k = 0; k < 2; k++) {
        affine[k] = parameter(&n, dims(1, 4, 0, 0, 0), -1, 1);
        assert_ok(cek__reduce_masked(&n.graph, x, k ? CEK_REDUCE_SUM_SQUARES : CEK_REDUCE_SUM, 1, &statistics[k]));
    }
    assert_ok(cek__normalise(&n.graph, x, statistics[0], statistics[1], affine, &y));
    loss_add(&n, y);
    passes(&n);
    text_is(&n.graph, "%1 [4] = parameter\n"
                      "%2 [N,4] = input\n"
                      "%3 [N,4] = chain %2 %1\n"
                      "%4 [4] = parameter\n"
                      "%5 [4] = reduce %3\n"
                      "%6 [4] = parameter\n"
                      "%7 [4] = reduce %3\n"
                      "%8 [N,4] = chain %3 %5 %7 %4 %6\n"
                      "%9 [N,4] f64 = target\n"
                      "%10 [N,4] = squared_error %8 %9\n"
                      "%11 [4] = reduce %10 (backward)\n"
                      "%12 [4] = reduce %3 %10 %5 (backward)\n"
                      "%13 [4] = chain %12 %7 (backward)\n"
                      "%14 [N] = chain (backward)\n"
                      "%15 [1] = reduce %14 (backward)\n"
                      "%16 [1] = chain %15 (backward)\n"
                      "%17 [4] = chain %7 %4 (backward)\n"
                      "%18 [4] = chain %11 %16 %7 %4 (backward)\n"
                      "%19 [4] = chain %12 %16 %7 %4 (backward)\n"
                      "%21 [N,4] = chain %2 %10 %3 %5 %17 %18 %19 (backward)\n"
                      "%22 [4] = reduce %21 (backward)\n"
                      "%23 [4] = chain %11 (backward)\n");
    net_close(&n);
}
END_TEST

/* ReLU comes behind the pool that alone reads it; what nobody reads is gone. */
START_TEST(less_is_computed)
{
    static net n;
    int x, y, nobody;
    cek__part pool = { .kind = CEK__PART_POOL, .inputs = 1, .pool = { .mode = CEK_POOL_MAX } };

    net_open(&n);
    pool.pool.windows = (cek__windows){ .kernel = { 2 }, .stride = { 2 } };
    x = samples(&n, per_sample(3, 2, 8, 0));
    nobody = chain(&n, CEK_PW_EXP, x, CEK__NOTHING);
    ck_assert_int_ne(nobody, CEK__NOTHING);
    pool.input[0] = chain(&n, CEK_PW_RELU, x, CEK__NOTHING);
    assert_ok(cek__graph_add(&n.graph, &pool, &y));
    n.graph.result = y;
    cek__simplify(&n.graph, true);
    text_is(&n.graph, "%1 [N,2,8] = input\n"
                      "%3 [N,2,4] = pool %1\n"
                      "%4 [N,2,4] = chain %3\n");
    net_close(&n);
}
END_TEST

/* ---- refusals ---- */

START_TEST(what_does_not_fit_is_refused)
{
    static net n;
    int x, out;
    cek__part part = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 0, 1, false }, { 0, 1, true } } };

    net_open(&n);
    x = samples(&n, per_sample(2, 4, 0, 0));
    part.input[0] = x;
    part.input[1] = parameter(&n, dims(2, 5, 3, 0, 0), -1, 1);
    ck_assert_int_eq(cek__graph_add(&n.graph, &part, &out), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "product: the axes that are summed over differ"));
    ck_assert_int_eq(cek__chain(&n.graph, CEK_PW_ADD, x, parameter(&n, dims(1, 3, 0, 0, 0), -1, 1), &out), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "chain: axis 1 is 4 in one input and 3 in another"));
    ck_assert_int_eq(cek__view(&n.graph, x, &(cek__dims){ .rank = 1, .size = { 12 } }, &out), CEK_INVALID);
    part.kind = CEK__PART_COUNT;
    ck_assert_int_eq(cek__graph_add(&n.graph, &part, &out), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "unknown kind"));
    part.kind = CEK__PART_CHAIN;
    part.inputs = 1;
    part.input[0] = chain(&n, CEK_PW_MUL, x, parameter(&n, dims(1, 4, 0, 0, 0), -1, 1));
    part.chain.count = 1;
    part.chain.code[0] = (cek_pointwise_instruction){ .code = 999 };
    ck_assert_int_eq(cek__graph_add(&n.graph, &part, &out), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "unknown code 999"));
    net_close(&n);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph");
    TCase *tcase = tcase_create("graph");

    tcase_add_loop_test(tcase, instructions, 0, sizeof codes / sizeof *codes);
    tcase_add_loop_test(tcase, products, 0, 8);
    tcase_add_test(tcase, rows_are_several_axes);
    tcase_add_test(tcase, sums_softmax_and_a_parameter_read_twice);
    tcase_add_loop_test(tcase, odd_uses_of_parameters, 0, 6);
    tcase_add_test(tcase, residual);
    tcase_add_loop_test(tcase, windows, 0, 4);
    tcase_add_test(tcase, a_layer_is_one_operation_and_its_gradients_two);
    tcase_add_test(tcase, a_normalisation_is_one_chain_and_its_gradients_two_sums_and_one);
    tcase_add_test(tcase, less_is_computed);
    tcase_add_test(tcase, what_does_not_fit_is_refused);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
