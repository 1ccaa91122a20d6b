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

/* ---- sums in place of cuts ---- */

enum { STEPS = 3, INPUT = 2, STATE = 2, WIDE = 4 };

static int product(net *n, int x, int w)
{
    cek__part part = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 0, 2, false }, { 0, 1, true } } };
    int out;

    part.input[0] = x;
    part.input[1] = w;
    assert_ok(cek__graph_add(&n->graph, &part, &out));
    return out;
}

static int slice(net *n, int x, int axis, int64_t first, int64_t count)
{
    int out;

    assert_ok(cek__slice(&n->graph, x, axis, first, count, &out));
    return out;
}

static int bases(const cek__graph *graph)
{
    int count = 0;

    for (int i = 0; i < graph->length; i++)
        count += graph->parts[graph->sequence[i]].base != CEK__NOTHING;
    return count;
}

/* What of a step's sum is read, or something else by the case. */
typedef struct unrolled {
    const char *what;
    int in_place; /* sums of STEPS that need no memory of their own */
} unrolled;

static const unrolled unrollings[] = {
    { "steps of a sequence", STEPS },   { "the other way round", STEPS }, { "backwards", STEPS },
    { "a step that is read twice", 0 }, { "all of it read beside", 0 },   { "a base with another reader", STEPS - 1 },
    { "sums that are read whole", 0 },  { "cuts along another axis", 0 }, { "a base of no product", 0 },
    { "steps that lie otherwise", 0 },
};

/* h' = a b of a | b = the step's part of x v^T + h w^T, all [N,1,...]; y = the sum of all h. */
static int unrolled_add(net *n, int which)
{
    const int x = samples(n, PER_SAMPLE(STEPS, INPUT)), v = parameter(n, AXES(WIDE, INPUT), -1, 1),
              w = parameter(n, AXES(WIDE, STATE), -1, 1),
              given = which == 6 || which == 8 ? parameter(n, AXES(WIDE), -1, 1) : CEK__NOTHING;
    int all = product(n, x, v), h = slice(n, x, 1, 0, 1), y = CEK__NOTHING;

    if (which == 8)
        all = chain(n, CEK_PW_MUL, all, given);
    if (which == 9) { /* two of each sample, which are not two of all */
        y = chain(n, CEK_PW_ADD, product(n, slice(n, x, 1, 0, 2), w), slice(n, all, 1, 0, 2));
        return slice(n, slice(n, y, 2, 0, STATE), 1, 1, 1);
    }
    for (int t = 0; t < STEPS; t++) {
        const int64_t at = which == 2 ? STEPS - 1 - t : which == 3 && t == 2 ? 1 : t;
        const cek__dims dims = n->graph.flows[h].dims;
        int step = slice(n, all, 1, at, 1), of_state = product(n, h, w), sum;

        sum = which == 1 ? chain(n, CEK_PW_ADD, step, of_state) : chain(n, CEK_PW_ADD, of_state, step);
        h = chain(n, CEK_PW_MUL, slice(n, sum, 2, 0, STATE), slice(n, sum, 2, STATE, STATE));
        ck_assert(cek__dims_equal(&dims, &n->graph.flows[h].dims));
        if (which == 5 && t == 1)
            h = chain(n, CEK_PW_ADD, h, slice(n, step, 2, 0, STATE));
        if (which == 6)
            h = chain(n, CEK_PW_ADD, h, slice(n, chain(n, CEK_PW_MUL, sum, given), 2, 0, STATE));
        y = y ? chain(n, CEK_PW_ADD, y, h) : h;
    }
    if (which == 4) {
        assert_ok(cek__reduce(&n->graph, all, CEK_REDUCE_SUM, 6, &all));
        assert_ok(cek__view(&n->graph, all, &(cek__dims){ .rank = 3, .samples = 1, .size = { 1, 1, 1 } }, &all));
        y = chain(n, CEK_PW_ADD, y, all);
    }
    if (which == 7)
        y = chain(n, CEK_PW_ADD, y, slice(n, slice(n, all, 2, STEPS, 1), 1, 0, 1));
    return y;
}

static double unrolled_value(const net *n, int which, int row, int column)
{
    double all[STEPS][WIDE], h[STATE], y = 0;

    for (int t = 0; t < STEPS; t++)
        for (int j = 0; j < WIDE; j++) {
            all[t][j] = 0;
            for (int i = 0; i < INPUT; i++)
                all[t][j] += n->samples[(row * STEPS + t) * INPUT + i] * n->theta[0][j * INPUT + i];
            all[t][j] *= which == 8 ? n->theta[2][j] : 1;
        }
    for (int j = 0; j < STATE; j++)
        h[j] = n->samples[(row * STEPS + (which == 9)) * INPUT + j];
    if (which == 9)
        return all[1][column] + h[0] * n->theta[1][column * STATE] + h[1] * n->theta[1][column * STATE + 1];
    for (int t = 0; t < STEPS; t++) {
        const int at = which == 2 ? STEPS - 1 - t : which == 3 && t == 2 ? 1 : t;
        double sum[WIDE];

        for (int j = 0; j < WIDE; j++)
            sum[j] = all[at][j] + h[0] * n->theta[1][j * STATE] + h[1] * n->theta[1][j * STATE + 1];
        for (int j = 0; j < STATE; j++)
            h[j] = sum[j] * sum[STATE + j] + (which == 5 && t == 1 ? all[at][j] : 0) +
                   (which == 6 ? sum[j] * n->theta[2][j] : 0);
        y += h[column];
    }
    for (int t = 0; which == 4 && t < STEPS; t++)
        for (int j = 0; j < WIDE; j++)
            y += all[t][j];
    return y + (which == 7 ? all[0][STEPS] : 0);
}

START_TEST(what_a_step_adds_to_its_part_of_all_inputs_stays_there)
{
    static net n;
    double got[ROOM];

    net_open(&n);
    simplified(&n, unrolled_add(&n, _i));
    assert_ok(cek__physical(&n.graph));
    assert_ok(cek__fuse(&n.graph, NULL));
    ck_assert_msg(bases(&n.graph) == unrollings[_i].in_place, "%s: %d sums in place", unrollings[_i].what,
                  bases(&n.graph));
    net_close(&n);
    net_open(&n);
    ck_assert_int_eq(values_of(&n, unrolled_add(&n, _i), got), ROWS * STATE);
    for (int row = 0; row < ROWS; row++)
        for (int j = 0; j < STATE; j++)
            ck_assert_double_eq_tol(got[row * STATE + j], unrolled_value(&n, _i, row, j), 1e-9);
    net_open(&n);
    gradients_are_right(&n, unrolled_add(&n, _i), unrollings[_i].what);
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
    tcase_add_loop_test(tcase, what_a_step_adds_to_its_part_of_all_inputs_stays_there, 0,
                        (int)(sizeof unrollings / sizeof *unrollings));
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
