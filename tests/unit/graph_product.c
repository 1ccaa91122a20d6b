/* graph_product.c - products of random shapes: what they give against plain loops, their
 * gradients against differences. */
#include "tests/graph_check.h"

enum { SHAPES = 20 };

/* op(a) [batch,m,k] times op(b) [batch,k,n], the batch being two axes, one, or none. */
typedef struct shape {
    int levels;
    int64_t outer, inner, m, n, k;
    bool ta, tb;
} shape;

static shape shape_of(int i)
{
    shape s = { .levels = i % 3, .outer = 1, .inner = 1, .ta = i / 3 % 2, .tb = i / 6 % 2 };

    s.outer = s.levels > 1 ? pick(i, 1, 1, 3) : 1;
    s.inner = s.levels > 0 ? pick(i, 2, 1, 3) : 1;
    s.m = pick(i, 3, 1, 4);
    s.n = pick(i, 4, 1, 4);
    s.k = pick(i, 5, 1, 4);
    return s;
}

static cek__dims matrices(const shape *s, int64_t rows, int64_t columns)
{
    cek__dims dims = { .rank = 0 };

    if (s->levels > 1)
        dims.size[dims.rank++] = s->outer;
    if (s->levels > 0)
        dims.size[dims.rank++] = s->inner;
    dims.size[dims.rank++] = rows;
    dims.size[dims.rank++] = columns;
    return dims;
}

static int product_add(net *n, const shape *s)
{
    cek__part part = { .kind = CEK__PART_PRODUCT,
                       .inputs = 2,
                       .product = { { s->levels, s->levels + 1, s->ta }, { s->levels, s->levels + 1, s->tb } } };
    int y;

    part.input[0] = parameter(n, matrices(s, s->ta ? s->k : s->m, s->ta ? s->m : s->k), -1, 1);
    part.input[1] = parameter(n, matrices(s, s->tb ? s->n : s->k, s->tb ? s->k : s->n), -1, 1);
    assert_ok(cek__graph_add(&n->graph, &part, &y));
    return y;
}

START_TEST(stacks_of_matrices)
{
    static net n;
    static double got[ROOM];
    shape s = shape_of(_i);
    cek__dims each = matrices(&s, s.m, s.n);
    int y;

    net_open(&n);
    y = product_add(&n, &s);
    ck_assert_int_eq(values_of(&n, y, got), s.outer * s.inner * s.m * s.n);
    for (int64_t i = 0; i < s.outer * s.inner * s.m * s.n; i++) {
        int64_t which = i / (s.m * s.n), row = i / s.n % s.m, column = i % s.n;
        const double *a = n.theta[0] + which * s.m * s.k, *b = n.theta[1] + which * s.k * s.n;
        double sum = 0;

        for (int64_t k = 0; k < s.k; k++)
            sum += a[s.ta ? k * s.m + row : row * s.k + k] * b[s.tb ? column * s.k + k : k * s.n + column];
        ck_assert_double_eq_tol(got[i], sum, 1e-14);
    }
    net_open(&n);
    y = product_add(&n, &s);
    for (int i = each.rank++; i > 0; i--)
        each.size[i] = each.size[i - 1];
    each.size[0] = each.samples = 1;
    gradients_are_right(&n, chain(&n, CEK_PW_MUL, y, samples(&n, each)), "product");
}
END_TEST

/* Heads: [N,T,H,d] turned to [N,H,T,d], times [N,H,d,S] made of [N,S,H,d], or turned the other way. */
START_TEST(heads_of_samples)
{
    static net n;
    int64_t t = pick(_i, 1, 1, 3), s = pick(_i, 2, 1, 3), h = pick(_i, 3, 1, 3), d = pick(_i, 4, 1, 3);
    const int heads[4] = { 0, 2, 1, 3 }, turned[4] = { 0, 2, 3, 1 };
    cek__part part = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 2, 3, false }, { 2, 3, _i % 2 } } };
    int a, b, y;

    net_open(&n);
    a = chain(&n, CEK_PW_MUL, samples(&n, PER_SAMPLE(t, h, d)), parameter(&n, AXES(t, h, d), -1, 1));
    assert_ok(cek__expand(&n.graph, parameter(&n, AXES(s, h, d), -1, 1), &PER_SAMPLE(s, h, d), &b));
    assert_ok(cek__permute(&n.graph, a, heads, &part.input[0]));
    assert_ok(cek__permute(&n.graph, b, _i % 2 ? heads : turned, &part.input[1]));
    assert_ok(cek__graph_add(&n.graph, &part, &y)); /* [N,H,T,S] */
    ck_assert(cek__dims_equal(&n.graph.flows[y].dims, &PER_SAMPLE(h, t, s)));
    y = chain(&n, CEK_PW_TANH, y, CEK__NOTHING);
    assert_ok(cek__permute(&n.graph, y, heads, &y));
    gradients_are_right(&n, y, "heads");
}
END_TEST

/* No head is copied to be read. */
START_TEST(heads_are_read_where_they_lie)
{
    static net n;
    const int heads[4] = { 0, 2, 1, 3 };
    cek__part part = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 2, 3, false }, { 2, 3, true } } };
    int x, y;

    net_open(&n);
    x = chain(&n, CEK_PW_TANH, samples(&n, PER_SAMPLE(3, 2, 4)), CEK__NOTHING);
    assert_ok(cek__permute(&n.graph, x, heads, &part.input[0]));
    part.input[1] = part.input[0];
    assert_ok(cek__graph_add(&n.graph, &part, &y));
    n.graph.result = y;
    cek__simplify(&n.graph, false);
    assert_ok(cek__physical(&n.graph));
    for (int i = 0; i < n.graph.length; i++)
        ck_assert_int_ne(n.graph.parts[n.graph.sequence[i]].kind == CEK__PART_REORDER &&
                             n.graph.parts[n.graph.sequence[i]].input[0] == part.input[0],
                         1);
    net_close(&n);
}
END_TEST

/* Stacks that are broadcast to each other, and one matrix for all rows. */
START_TEST(stacks_are_broadcast)
{
    static net n;
    int64_t m = pick(_i, 1, 1, 3), k = pick(_i, 2, 1, 3), o = pick(_i, 3, 1, 3), h = pick(_i, 4, 1, 3);
    int kind = _i % 4, x, b, y;

    net_open(&n);
    x = chain(&n, CEK_PW_MUL, samples(&n, PER_SAMPLE(kind == 3 ? 1 : h, m, k)), parameter(&n, AXES(m, k), -1, 1));
    b = parameter(&n, kind == 0 ? AXES(k, o) : kind == 1 ? AXES(1, k, o) : AXES(h, k, o), -1, 1);
    assert_ok(cek__matmul(&n.graph, x, b, &y));
    ck_assert(cek__dims_equal(&n.graph.flows[y].dims, &PER_SAMPLE(h, m, o)) || kind == 0);
    gradients_are_right(&n, chain(&n, CEK_PW_TANH, y, CEK__NOTHING), "broadcast");
}
END_TEST

/* [N,T,D] times [E,D] of one parameter that two layers read: the first gradient is written, the other added. */
START_TEST(weights_that_are_shared)
{
    static net n;
    int64_t t = pick(_i, 1, 1, 4), d = pick(_i, 2, 1, 4);
    cek__part part = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 0, 2, false }, { 0, 1, true } } };

    net_open(&n);
    part.input[1] = parameter(&n, AXES(d, d), -1, 1);
    part.input[0] = chain(&n, CEK_PW_MUL, samples(&n, PER_SAMPLE(t, d)), parameter(&n, AXES(d), -1, 1));
    for (int i = 0; i < 3; i++) {
        part.product.b.transposed = i != _i % 3; /* and once the other way round */
        assert_ok(cek__graph_add(&n.graph, &part, &part.input[0]));
        part.input[0] = chain(&n, CEK_PW_TANH, part.input[0], CEK__NOTHING);
    }
    gradients_are_right(&n, part.input[0], "shared");
}
END_TEST

START_TEST(what_does_not_fit_is_refused)
{
    static net n;
    cek__part part = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 0, 1, false }, { 0, 1, true } } };
    int x, y;

    net_open(&n);
    part.input[0] = part.input[1] = x = samples(&n, PER_SAMPLE(4));
    ck_assert_int_eq(cek__graph_add(&n.graph, &part, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "product: would give each sample something of all others"));
    part.product.a.transposed = true;
    part.product.b.transposed = false;
    ck_assert_int_eq(cek__graph_add(&n.graph, &part, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "product: would sum over samples"));
    ck_assert_int_eq(cek__matmul(&n.graph, parameter(&n, AXES(2, 3, 4), 0, 1), parameter(&n, AXES(3, 4, 2), 0, 1), &y),
                     CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "product: stacks of 2 and of 3 matrices"));
    net_close(&n);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph_product");
    TCase *tcase = tcase_create("graph_product");

    tcase_add_loop_test(tcase, stacks_of_matrices, 0, SHAPES);
    tcase_add_loop_test(tcase, heads_of_samples, 0, SHAPES);
    tcase_add_test(tcase, heads_are_read_where_they_lie);
    tcase_add_loop_test(tcase, stacks_are_broadcast, 0, SHAPES);
    tcase_add_loop_test(tcase, weights_that_are_shared, 0, SHAPES);
    tcase_add_test(tcase, what_does_not_fit_is_refused);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
