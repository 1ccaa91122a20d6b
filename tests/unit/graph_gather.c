/* graph_gather.c - rows that an index names, and sums into them: what they give, their
 * gradients against differences. */
#include "tests/graph_check.h"

enum { SHAPES = 20 };

/* An embedding of [N,T] or [N], in a table that is read again for what follows, as tied weights are. */
START_TEST(embeddings)
{
    static net n;
    static double got[ROOM];
    int64_t rows = pick(_i, 1, 1, 5), columns = pick(_i, 2, 1, 4), steps = pick(_i, 3, 1, 4);
    cek__part product = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 0, 2, false }, { 0, 1, true } } };
    int table, y, index;

    net_open(&n);
    table = parameter(&n, AXES(rows, columns), -1, 1);
    assert_ok(cek__gather(&n.graph, table, ids(&n, PER_SAMPLE(steps), rows), 0, &y));
    ck_assert_int_eq(values_of(&n, y, got), ROWS * steps * columns);
    for (int64_t i = 0; i < ROWS * steps * columns; i++)
        ck_assert_double_eq(got[i], n.theta[0][n.ids[i / columns] * columns + i % columns]);

    net_open(&n);
    table = parameter(&n, AXES(rows, columns), -1, 1);
    index = ids(&n, PER_SAMPLE(steps), rows);
    assert_ok(cek__gather(&n.graph, table, index, 0, &y));
    product.input[0] = chain(&n, CEK_PW_TANH, y, CEK__NOTHING);
    product.input[1] = table; /* [N,steps,rows] */
    if (_i % 2)
        assert_ok(cek__graph_add(&n.graph, &product, &y));
    gradients_are_right(&n, y, "embedding");
}
END_TEST

/* Each sample has a table of its own: [N,rows,columns] and [N,T]; and rows are summed into one. */
START_TEST(a_table_for_each_sample)
{
    static net n;
    static double got[ROOM], want[ROOM];
    int64_t rows = pick(_i, 1, 1, 5), columns = pick(_i, 2, 1, 4), steps = pick(_i, 3, 1, 4);
    int x, y, index;

    net_open(&n);
    index = ids(&n, PER_SAMPLE(steps), rows);
    x = parameter(&n, AXES(steps, columns), -1, 1);
    assert_ok(cek__expand(&n.graph, x, &PER_SAMPLE(steps, columns), &x));
    assert_ok(cek__scatter_add(&n.graph, x, index, 1, &PER_SAMPLE(rows, columns), &y));
    ck_assert_int_eq(values_of(&n, y, got), ROWS * rows * columns);
    memset(want, 0, sizeof want);
    for (int64_t i = 0; i < ROWS * steps * columns; i++) {
        int64_t step = i / columns;

        want[(step / steps * rows + n.ids[step]) * columns + i % columns] += n.theta[0][i % (steps * columns)];
    }
    for (int64_t i = 0; i < ROWS * rows * columns; i++)
        ck_assert_double_eq_tol(got[i], want[i], 1e-14);

    net_open(&n);
    index = ids(&n, PER_SAMPLE(steps), rows);
    x = parameter(&n, AXES(rows, columns), -1, 1);
    assert_ok(cek__expand(&n.graph, x, &PER_SAMPLE(rows, columns), &x));
    assert_ok(cek__gather(&n.graph, chain(&n, CEK_PW_TANH, x, CEK__NOTHING), index, 1, &y));
    y = chain(&n, CEK_PW_TANH, y, CEK__NOTHING);
    if (_i % 2)
        assert_ok(cek__scatter_add(&n.graph, y, index, 1, &PER_SAMPLE(rows, columns), &y));
    gradients_are_right(&n, y, "tables");
}
END_TEST

START_TEST(what_does_not_fit_is_refused)
{
    static net n;
    int table, index, y;

    net_open(&n);
    index = ids(&n, PER_SAMPLE(3), 4);
    table = parameter(&n, AXES(4, 2), 0, 1);
    ck_assert_int_eq(cek__gather(&n.graph, table, table, 0, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "gather: its index is not of i32"));
    ck_assert_int_eq(cek__gather(&n.graph, table, index, 2, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "gather: 2 axes that count tables are not there"));
    ck_assert_int_eq(cek__gather(&n.graph, table, index, 1, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "gather: axis 0 is 4 in the table and 1 in the index"));
    assert_ok(cek__gather(&n.graph, table, index, 0, &y));
    ck_assert_int_eq(cek__gather(&n.graph, y, index, 0, &y), CEK_INVALID); /* a table of samples */
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "gather: would mix samples"));
    assert_ok(cek__gather(&n.graph, table, index, 0, &y));
    ck_assert_int_eq(cek__scatter_add(&n.graph, y, index, 0, &AXES(4, 2), &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "scatter_add: would sum over samples"));
    net_close(&n);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph_gather");
    TCase *tcase = tcase_create("graph_gather");

    tcase_add_loop_test(tcase, embeddings, 0, SHAPES);
    tcase_add_loop_test(tcase, a_table_for_each_sample, 0, SHAPES);
    tcase_add_test(tcase, what_does_not_fit_is_refused);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
