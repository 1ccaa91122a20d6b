/* graph_loss.c - losses that are made of parts: what they sum, with weights, without padding, and their gradients. */
#include "tests/graph_check.h"

/* The loss of what the parameters give for each sample, weighed by `weights` of each sample (0: not). */
static void own_loss(net *n, int v, int weights)
{
    int out;

    assert_ok(cek__loss(&n->graph, v, weights, &out));
    n->graph.loss = n->graph.flows[out].part;
}

/* sin(w x) summed: of those that count, with a value or several for each sample. */
START_TEST(a_loss_is_the_sum_of_what_counts)
{
    static net n;
    double expected = 0;
    int columns = _i ? 3 : 1, v;

    net_open(&n);
    n.valid = 2;
    v = chain(&n, CEK_PW_SIN,
              chain(&n, CEK_PW_MUL, samples(&n, PER_SAMPLE(columns)), parameter(&n, AXES(columns), -1, 1)), 0);
    for (int i = 0; i < 2 * columns; i++)
        expected += sin(n.samples[i] * n.theta[0][i % columns]);
    for (int i = 2 * columns; i < ROWS * columns; i++)
        n.samples[i] = 1e30;
    own_loss(&n, v, 0);
    passes(&n);
    net_lower(&n);
    ck_assert_double_eq_tol(net_run(&n), expected, 1e-14);
    net_close(&n);

    for (int which = 0; which < 20; which++) {
        int64_t a = pick(which, 1, 1, 4), b = pick(which, 2, 1, 4);

        net_open(&n);
        n.valid = 1 + which % ROWS;
        v = chain(&n, CEK_PW_MUL, samples(&n, PER_SAMPLE(a, b)), parameter(&n, AXES(a, b), -1, 1));
        own_loss(&n, chain(&n, CEK_PW_SIN, v, 0), 0);
        gradients_are_right(&n, CEK__NOTHING, "a loss of one's own");
    }
}
END_TEST

/* Weights of 0 leave out whatever the value is. */
START_TEST(weights)
{
    static net n;
    int x, v, w;

    net_open(&n);
    x = samples(&n, PER_SAMPLE(1));
    memcpy(n.samples, (double[]){ 2, 0, 3 }, 3 * sizeof(double));
    w = chain(&n, CEK_PW_MUL, x, x);
    v = chain(&n, CEK_PW_DIV, parameter(&n, AXES(1), 1, 2), x); /* the second is infinite */
    own_loss(&n, v, w);
    passes(&n);
    net_lower(&n);
    ck_assert_double_eq_tol(net_run(&n), n.theta[0][0] * (4. / 2 + 9. / 3), 1e-14);
    net_close(&n);
}
END_TEST

/* The trainer's mean and scale are in the gradient alone, and padding's is 0 to the bit. */
START_TEST(the_step_says_what_a_sum_is_divided_by)
{
    static net n;
    static double got[PARAMETERS][ROOM];
    int v;

    net_open(&n);
    n.inv_n = 1.0 / 3;
    n.loss_scale = 8;
    n.valid = 2;
    v = chain(&n, CEK_PW_MUL, samples(&n, PER_SAMPLE(1)), parameter(&n, AXES(1), 1, 2));
    memcpy(n.samples, (double[]){ 2, 5, 1e300 }, 3 * sizeof(double));
    own_loss(&n, v, 0);
    gradients_of(&n, CEK__NOTHING, got);
    ck_assert_double_eq_tol(got[0][0], 7 * 8 / 3.0, 1e-13);
    net_close(&n);
}
END_TEST

START_TEST(a_loss_takes_samples)
{
    static net n;
    int out;

    net_open(&n);
    ck_assert_int_eq(cek__loss(&n.graph, parameter(&n, AXES(3), 0, 1), 0, &out), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "loss: takes samples along its first axis"));
    net_close(&n);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph_loss");
    TCase *tcase = tcase_create("graph_loss");

    tcase_add_loop_test(tcase, a_loss_is_the_sum_of_what_counts, 0, 2);
    tcase_add_test(tcase, weights);
    tcase_add_test(tcase, the_step_says_what_a_sum_is_divided_by);
    tcase_add_test(tcase, a_loss_takes_samples);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
