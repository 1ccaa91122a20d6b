/* graph_passes.c - what is computed alike is computed once, chains behind each other are one: which are, and which are
 * not. */
#include "tests/graph_check.h"

static int count(const cek__graph *graph, cek__part_kind kind)
{
    int n = 0;

    for (int i = 0; i < graph->length; i++)
        n += graph->parts[graph->sequence[i]].kind == kind;
    return n;
}

static int code(net *n, cek__part *part, uint32_t length, const cek_pointwise_instruction *in)
{
    int out;

    part->kind = CEK__PART_CHAIN;
    part->chain.count = length;
    memcpy(part->chain.code, in, length * sizeof *in);
    assert_ok(cek__graph_add(&n->graph, part, &out));
    return out;
}

static int imm(net *n, uint32_t what, int x, double value)
{
    return code(n, &(cek__part){ .inputs = 1, .input = { x } }, 1,
                &(cek_pointwise_instruction){ .code = what, .imm = value });
}

static int vector(net *n)
{
    return parameter(n, AXES(4), 1, 2);
}

static void simplified(net *n, int result)
{
    n->graph.result = result;
    cek__simplify(&n->graph, false);
    assert_ok(cek__common(&n->graph));
}

/* ---- common subexpressions ---- */

START_TEST(what_is_computed_alike_is_computed_once)
{
    static net n;
    int x, y;

    net_open(&n);
    x = samples(&n, PER_SAMPLE(4));
    y = x;
    for (int i = 0; i < 3; i++) {
        int number;

        assert_ok(cek__count(&n.graph, x, 1, &number));
        y = chain(&n, CEK_PW_MUL, y, chain(&n, CEK_PW_EXP, number, CEK__NOTHING));
    }
    simplified(&n, y);
    ck_assert_int_eq(count(&n.graph, CEK__PART_REDUCE), 1);
    ck_assert_int_eq(count(&n.graph, CEK__PART_CHAIN), 3 + 3); /* the mask, the count, its exponential; products */
    net_close(&n);
}
END_TEST

/* By number: what differs between two that read the same. */
static int other(net *n, int which, int x, int w, int second)
{
    switch (which) {
    case 0: return imm(n, CEK_PW_MUL_IMM, w, second ? 2 : 3);
    case 1: return imm(n, CEK_PW_ADD_IMM, w, second ? 0.0 : -0.0);
    case 2: return chain(n, second ? CEK_PW_SIN : CEK_PW_COS, w, CEK__NOTHING);
    case 3: {
        int out;

        assert_ok(cek__reduce(&n->graph, w, second ? CEK_REDUCE_MAX : CEK_REDUCE_MIN, 1, &out));
        return out;
    }
    case 4: return chain(n, CEK_PW_MUL, x, w); /* nothing, but it is as large as the samples */
    default: return second ? chain(n, CEK_PW_SUB, w, vector(n)) : chain(n, CEK_PW_SUB, vector(n), w);
    }
}

START_TEST(what_differs_or_is_large_is_computed_apart)
{
    static net n;
    int x, w, before;

    net_open(&n);
    x = samples(&n, PER_SAMPLE(4));
    w = vector(&n);
    x = chain(&n, CEK_PW_ADD, chain(&n, CEK_PW_ADD, x, other(&n, _i, x, w, 0)), other(&n, _i, x, w, 1));
    before = n.graph.length;
    simplified(&n, x);
    ck_assert_int_eq(n.graph.length, before);
    net_close(&n);
}
END_TEST

/* Two parameters may have one gradient; each lies in a place of its own. */
START_TEST(gradients_stay_their_own)
{
    static net n;
    int x, y;

    net_open(&n);
    x = samples(&n, PER_SAMPLE(4));
    y = chain(&n, CEK_PW_ADD, chain(&n, CEK_PW_ADD, x, vector(&n)), vector(&n));
    gradients_are_right(&n, y, "two biases");
}
END_TEST

/* ---- chains ---- */

static void joined(net *n, int result, int chains)
{
    simplified(n, result);
    assert_ok(cek__physical(&n->graph));
    assert_ok(cek__fuse(&n->graph, NULL));
    ck_assert_int_eq(count(&n->graph, CEK__PART_CHAIN), chains);
    net_close(n);
}

/* ((x p - q) + x) sin(p): operands that are inputs of both, and in either order. */
static int chained(net *n, int x, const int w[2])
{
    int y = chain(n, CEK_PW_SUB, chain(n, CEK_PW_MUL, x, w[0]), w[1]);

    return chain(n, CEK_PW_MUL, chain(n, CEK_PW_ADD, y, x), chain(n, CEK_PW_SIN, w[0], CEK__NOTHING));
}

START_TEST(chains_behind_each_other_are_one)
{
    static net n;
    double got[ROOM];
    int w[2], x, y;

    net_open(&n);
    x = samples(&n, PER_SAMPLE(4));
    w[0] = vector(&n), w[1] = vector(&n);
    joined(&n, chained(&n, x, w), 2); /* the sine is of a vector and computed once, not for each sample */
    net_open(&n);
    x = samples(&n, PER_SAMPLE(4));
    w[0] = vector(&n), w[1] = vector(&n);
    y = chained(&n, x, w);
    ck_assert_int_eq(values_of(&n, y, got), ROWS * 4);
    for (int i = 0; i < ROWS * 4; i++) {
        const double p = n.theta[0][i % 4], q = n.theta[1][i % 4], v = n.samples[i];

        ck_assert_double_eq_tol(got[i], (v * p - q + v) * sin(p), 1e-12);
    }
}
END_TEST

START_TEST(a_chain_may_read_another_twice)
{
    static net n;
    double got[ROOM];
    int x, y;

    net_open(&n);
    x = samples(&n, PER_SAMPLE(4));
    y = chain(&n, CEK_PW_EXP, x, CEK__NOTHING);
    joined(&n, chain(&n, CEK_PW_MUL, y, y), 1);
    net_open(&n);
    x = samples(&n, PER_SAMPLE(4));
    y = chain(&n, CEK_PW_EXP, x, CEK__NOTHING);
    ck_assert_int_eq(values_of(&n, chain(&n, CEK_PW_MUL, y, y), got), ROWS * 4);
    for (int i = 0; i < ROWS * 4; i++)
        ck_assert_double_eq_tol(got[i], exp(2 * n.samples[i]), 1e-9);
}
END_TEST

/* Two chains of which the first one would be read by another, too; lie otherwise; be rounded; not fit. */
START_TEST(what_has_to_lie_somewhere_is_written)
{
    static net n;
    int x, y, out;

    net_open(&n);
    x = samples(&n, PER_SAMPLE(4));
    switch (_i) {
    case 0: /* another reader */
        y = chain(&n, CEK_PW_EXP, x, CEK__NOTHING);
        out = chain(&n, CEK_PW_SIN, y, CEK__NOTHING);
        assert_ok(cek__reduce(&n.graph, y, CEK_REDUCE_SUM, 2, &y));
        assert_ok(cek__view(&n.graph, y, &(cek__dims){ .rank = 2, .samples = 1, .size = { 1, 1 } }, &y));
        joined(&n, chain(&n, CEK_PW_ADD, out, y), 2);
        break;
    case 1: /* a cast, which rounds; the second one's goes into it */
        assert_ok(cek__cast(&n.graph, chain(&n, CEK_PW_EXP, x, CEK__NOTHING), CEK_BF16, &y));
        joined(&n, chain(&n, CEK_PW_SIN, y, CEK__NOTHING), 2);
        break;
    case 2: /* more instructions than a chain has */
        for (int i = 0; i < CEK_POINTWISE_INSTRUCTIONS + 1; i++)
            x = imm(&n, CEK_PW_ADD_IMM, x, i);
        joined(&n, x, 2);
        break;
    case 3: /* more inputs */
        for (int i = 0; i < CEK__PART_INPUTS; i++)
            x = chain(&n, CEK_PW_MUL, x, parameter(&n, AXES(4), i + 1, i + 2));
        joined(&n, x, 2);
        break;
    default: { /* both operands would be kept while something else is computed */
        cek__part product = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 0, 1, false }, { 0, 1, true } } };

        assert_ok(cek__reduce(&n.graph, x, CEK_REDUCE_SUM, 2, &y));
        assert_ok(cek__view(&n.graph, y, &(cek__dims){ .rank = 2, .samples = 1, .size = { 1, 1 } }, &y));
        product.input[0] = chain(&n, CEK_PW_ADD, x, y);
        product.input[1] = parameter(&n, AXES(4, 4), -1, 1);
        assert_ok(cek__graph_add(&n.graph, &product, &y));
        assert_ok(cek__reduce(&n.graph, y, CEK_REDUCE_MAX, 2, &out));
        assert_ok(cek__view(&n.graph, out, &(cek__dims){ .rank = 2, .samples = 1, .size = { 1, 1 } }, &out));
        x = chain(&n, CEK_PW_MUL, product.input[0], y);
        product.input[0] = y;
        assert_ok(cek__graph_add(&n.graph, &product, &y));
        joined(&n, chain(&n, CEK_PW_ADD, x, chain(&n, CEK_PW_MUL, y, out)), 3);
    }
    }
}
END_TEST

/* Of two operands as large as the result it may take the place of one, unless it has fewer bits. */
START_TEST(what_is_kept_for_a_result_is_no_more_than_before)
{
    static net n;
    cek__part product = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 0, 1, false }, { 0, 1, true } } };
    int x, y;

    net_open(&n);
    x = samples(&n, PER_SAMPLE(4));
    product.input[0] = x;
    product.input[1] = parameter(&n, AXES(4, 4), -1, 1);
    assert_ok(cek__graph_add(&n.graph, &product, &y));
    y = chain(&n, CEK_PW_MUL, x, y);
    if (_i)
        assert_ok(cek__cast(&n.graph, y, CEK_BF16, &y));
    else
        y = chain(&n, CEK_PW_EXP, y, CEK__NOTHING);
    joined(&n, y, _i ? 2 : 1);
}
END_TEST

/* Activations and derivatives that a product may compute itself; what comes behind reads what it gives. */
START_TEST(what_a_product_computes_itself_is_no_part_of_a_chain)
{
    static net n;
    cek__part product = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 0, 1, false }, { 0, 1, true } } };
    int x, e, y;

    net_open(&n);
    x = samples(&n, PER_SAMPLE(4));
    e = chain(&n, CEK_PW_EXP, x, CEK__NOTHING); /* before the product, which reads it, too */
    product.input[0] = x;
    product.input[1] = parameter(&n, AXES(4, 4), -1, 1);
    assert_ok(cek__graph_add(&n.graph, &product, &y));
    if (_i)
        y = chain(&n, CEK_PW_RELU_GRAD, y, e);
    else
        y = chain(&n, CEK_PW_EXP, chain(&n, CEK_PW_RELU, y, CEK__NOTHING), CEK__NOTHING);
    simplified(&n, y);
    assert_ok(cek__physical(&n.graph));
    assert_ok(cek__fuse(&n.graph, NULL));
    ck_assert_int_eq(count(&n.graph, CEK__PART_CHAIN), 2);
    net_close(&n);
}
END_TEST

/* Of a prediction; how many samples count is not known ahead. */
START_TEST(what_is_known_ahead_is_no_part_of_what_is_not)
{
    static net n;
    const cek__folding folding = { 0 };
    int x, y, number;

    net_open(&n);
    x = samples(&n, PER_SAMPLE(4));
    assert_ok(cek__count(&n.graph, x, 1, &number));
    y = chain(&n, CEK_PW_EXP, parameter(&n, AXES(1), 1, 2), CEK__NOTHING);
    simplified(&n, chain(&n, CEK_PW_MUL, x, chain(&n, CEK_PW_MUL, y, number)));
    assert_ok(cek__physical(&n.graph));
    assert_ok(cek__fuse(&n.graph, _i ? &folding : NULL));
    ck_assert_int_eq(count(&n.graph, CEK__PART_CHAIN), _i ? 4 : 3); /* the mask, (the exponential,) two products */
    net_close(&n);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph, passes");
    TCase *tcase = tcase_create("passes");

    tcase_add_test(tcase, what_is_computed_alike_is_computed_once);
    tcase_add_loop_test(tcase, what_differs_or_is_large_is_computed_apart, 0, 6);
    tcase_add_test(tcase, gradients_stay_their_own);
    tcase_add_test(tcase, chains_behind_each_other_are_one);
    tcase_add_test(tcase, a_chain_may_read_another_twice);
    tcase_add_loop_test(tcase, what_has_to_lie_somewhere_is_written, 0, 5);
    tcase_add_loop_test(tcase, what_is_kept_for_a_result_is_no_more_than_before, 0, 2);
    tcase_add_loop_test(tcase, what_a_product_computes_itself_is_no_part_of_a_chain, 0, 2);
    tcase_add_loop_test(tcase, what_is_known_ahead_is_no_part_of_what_is_not, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
