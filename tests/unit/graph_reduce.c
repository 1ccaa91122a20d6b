/* graph_reduce.c - reductions over any axes: their gradients, what padding must not change, what would mix samples; and
 * random numbers, which are those that dropout keeps or drops by. */
#include "tests/graph_check.h"

enum { SHAPES = 20 };

static const uint32_t functions[] = { CEK_REDUCE_SUM, CEK_REDUCE_MEAN, CEK_REDUCE_MAX, CEK_REDUCE_MIN,
                                      CEK_REDUCE_SUM_SQUARES };

/* Samples, then one to three axes of up to three elements; those of three are images. */
static cek__dims sample_shape(int which)
{
    cek__dims dims = { .rank = 1 + (int)pick(which, 1, 1, 3), .samples = 1, .size = { 1 } };

    for (int i = 1; i < dims.rank; i++)
        dims.size[i] = pick(which, 2 + (uint64_t)i, 1, 3);
    return dims;
}

/* x times a parameter for each of its elements in a sample. */
static int scaled_samples(net *n, const cek__dims *dims)
{
    cek__dims each = { .rank = dims->rank - 1 };

    memcpy(each.size, dims->size + 1, (size_t)each.rank * sizeof *each.size);
    return chain(n, CEK_PW_MUL, samples(n, *dims), parameter(n, each, -1, 1));
}

/* Kept as axes of one it is taken from what it was made of. */
START_TEST(gradients)
{
    static net n;

    for (int which = 0; which < SHAPES; which++) {
        const cek__dims dims = sample_shape(which);
        uint32_t axes = (uint32_t)pick(which, 20, 1, (1 << (dims.rank - 1)) - 1) << 1;
        int x, y;

        net_open(&n);
        x = scaled_samples(&n, &dims);
        assert_ok(cek__reduce(&n.graph, x, functions[_i], axes, &y));
        ck_assert_int_eq(n.graph.flows[y].dims.rank, dims.rank - __builtin_popcount(axes));
        assert_ok(cek__keep(&n.graph, y, x, axes, &y));
        gradients_are_right(&n, chain(&n, CEK_PW_SUB, x, chain(&n, CEK_PW_SIN, y, 0)), "reduction");
    }
}
END_TEST

/* As torch.amax has it. */
START_TEST(a_maximum_that_several_are_shares_its_gradient)
{
    static net n;
    static double got[PARAMETERS][ROOM];
    double dy = 0;
    int w, y;

    net_open(&n);
    w = parameter(&n, AXES(4), 0, 1);
    memcpy(n.theta[0], (double[]){ 0.25, 1, -3, 1 }, 4 * sizeof(double));
    assert_ok(cek__reduce(&n.graph, w, CEK_REDUCE_MAX, 1, &y));
    gradients_of(&n, chain(&n, CEK_PW_MUL, y, samples(&n, PER_SAMPLE(1))), got);
    for (int i = 0; i < ROWS; i++)
        dy += 2 * (n.samples[i] - n.target[i]) * n.samples[i];
    ck_assert_double_eq(got[0][0], 0);
    ck_assert_double_eq(got[0][2], 0);
    ck_assert_double_eq_tol(got[0][1], dy / 2, 1e-12);
    ck_assert_double_eq_tol(got[0][3], dy / 2, 1e-12);
    net_close(&n);
}
END_TEST

/* ---- over samples ---- */

static double by_hand(uint32_t function, const double *x, int columns, int column, int rows)
{
    double y = function == CEK_REDUCE_MAX ? -INFINITY : function == CEK_REDUCE_MIN ? INFINITY : 0;

    for (int i = 0; i < rows; i++) {
        double v = x[i * columns + column];

        y = function == CEK_REDUCE_MAX           ? fmax(y, v)
            : function == CEK_REDUCE_MIN         ? fmin(y, v)
            : function == CEK_REDUCE_SUM_SQUARES ? y + v * v
                                                 : y + v;
    }
    return function == CEK_REDUCE_MEAN ? y / rows : y;
}

START_TEST(values_over_samples_leave_padding_out)
{
    static net n;
    double out[ROOM], given[8];
    int x, y;

    net_open(&n);
    n.valid = 2;
    x = samples(&n, PER_SAMPLE(4));
    for (int i = 0; i < 4; i++)
        n.samples[8 + i] = i % 2 ? 1e300 : -1e300;
    memcpy(given, n.samples, sizeof given);
    assert_ok(cek__reduce_masked(&n.graph, x, functions[_i], 1, &y));
    ck_assert_int_eq(values_of(&n, y, out), 4);
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq_tol(out[i], by_hand(functions[_i], given, 4, i, 2), 1e-15);
}
END_TEST

/* A sample less its batch's mean, of an axis of its own beside: no gradient knows what padding holds. */
START_TEST(gradients_over_samples_leave_padding_out)
{
    static net n;
    static double got[2][PARAMETERS][ROOM];

    for (int which = 0; which < SHAPES; which++) {
        const cek__dims dims = sample_shape(which);
        uint32_t axes = 1 | (uint32_t)pick(which, 20, 0, (1 << (dims.rank - 1)) - 1) << 1;

        for (int garbage = 0; garbage < 3; garbage++) {
            int64_t each = cek__dims_elements(&dims, 0, dims.rank, 1);
            int x, y;

            net_open(&n);
            n.valid = 2;
            x = scaled_samples(&n, &dims);
            for (int64_t i = 2 * each; i < ROWS * each && garbage < 2; i++)
                n.samples[i] = garbage ? 1e100 : 3;
            assert_ok(cek__reduce_masked(&n.graph, x, functions[_i], axes, &y));
            assert_ok(cek__keep(&n.graph, y, x, axes, &y));
            y = chain(&n, CEK_PW_SUB, x, chain(&n, CEK_PW_SIN, y, 0));
            if (garbage == 2) {
                gradients_are_right(&n, y, "reduction over samples");
                continue;
            }
            gradients_of(&n, y, got[garbage]);
            net_close(&n);
        }
        ck_assert_mem_eq(got[0][0], got[1][0], (size_t)cek__dims_elements(&dims, 1, dims.rank, 1) * sizeof(double));
    }
}
END_TEST

START_TEST(what_would_mix_samples_is_refused)
{
    static net n;
    int x, y;

    net_open(&n);
    x = samples(&n, PER_SAMPLE(4));
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        ck_assert_int_eq(cek__reduce(&n.graph, x, functions[i], 3, &y), CEK_INVALID);
        ck_assert_ptr_nonnull(strstr(cek_error_text(), "reduce: would mix samples"));
    }
    ck_assert_int_eq(cek__sum(&n.graph, x, 1u << 2, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "axes that are not there"));
    net_close(&n);
}
END_TEST

/* ---- random numbers ---- */

START_TEST(random_numbers_are_those_of_dropout)
{
    cek__part random = { .kind = CEK__PART_RANDOM,
                         .dims = PER_SAMPLE(3, 5),
                         .random = { 0, 1, CEK_RANDOM_UNIFORM, 9 } },
              dropout = { .kind = CEK__PART_DROPOUT, .inputs = 1, .dropout = { .p = 0.5, .stream = 9 } };
    static net n;
    double out[2][ROOM];
    int kept = 0, x, y;

    net_open(&n);
    samples(&n, PER_SAMPLE(1));
    assert_ok(cek__graph_add(&n.graph, &random, &y));
    ck_assert(!n.graph.flows[y].needs_gradient);
    ck_assert_int_eq(values_of(&n, y, out[0]), ROWS * 15);

    net_open(&n);
    samples(&n, PER_SAMPLE(1));
    assert_ok(cek__constant(&n.graph, 1, &PER_SAMPLE(3, 5), &x));
    dropout.input[0] = x;
    assert_ok(cek__graph_add(&n.graph, &dropout, &y));
    /* a network that is not trained drops nothing: it is lowered without the pass that says so */
    n.graph.result = y;
    assert_ok(cek__physical(&n.graph));
    assert_ok(cek__fuse(&n.graph, NULL));
    net_lower(&n);
    net_run(&n);
    bench_download(&n.b, out[1], n.result, ROWS * 15 * sizeof(double));
    net_close(&n);
    for (int i = 0; i < ROWS * 15; i++) {
        ck_assert_int_eq(out[1][i] != 0, out[0][i] >= 0.5);
        kept += out[1][i] != 0;
    }
    ck_assert_int_gt(kept, 0);
    ck_assert_int_lt(kept, ROWS * 15);

    net_open(&n);
    random.dims = AXES(3);
    ck_assert_int_eq(cek__graph_add(&n.graph, &random, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "random: gives samples along its first axis"));
    net_close(&n);
}
END_TEST

/* What is summed has to lie otherwise first, for which a part is added: among others of any number, so that their
 * array moves then in one of the cases. Sanitizers see who looks at where it was. */
START_TEST(a_sum_of_an_image_flattened_is_placed_beside_any_number_of_parts)
{
    static net n;
    int y, z;

    net_open(&n);
    y = samples(&n, (cek__dims){ .rank = 4, .samples = 1, .size = { 1, 2, 3, 3 } });
    for (int i = 0; i < _i; i++)
        y = chain(&n, CEK_PW_COPY, y, CEK__NOTHING);
    assert_ok(cek__view(&n.graph, y, &(cek__dims){ .rank = 2, .samples = 1, .size = { 1, 18 } }, &y));
    assert_ok(cek__reduce(&n.graph, y, CEK_REDUCE_SUM, 2, &z));
    n.graph.result = z;
    assert_ok(cek__physical(&n.graph));
    z = n.graph.parts[n.graph.flows[z].part].input[0];
    ck_assert_int_eq(n.graph.parts[n.graph.flows[z].part].kind, CEK__PART_REORDER);
    net_close(&n);
}
END_TEST

int main(void)
{
    const int count = sizeof functions / sizeof *functions;
    Suite *suite = suite_create("graph_reduce");
    TCase *tcase = tcase_create("graph_reduce");

    tcase_add_loop_test(tcase, gradients, 0, count);
    tcase_add_test(tcase, a_maximum_that_several_are_shares_its_gradient);
    tcase_add_loop_test(tcase, values_over_samples_leave_padding_out, 0, count);
    tcase_add_loop_test(tcase, gradients_over_samples_leave_padding_out, 0, count);
    tcase_add_test(tcase, what_would_mix_samples_is_refused);
    tcase_add_test(tcase, random_numbers_are_those_of_dropout);
    tcase_add_loop_test(tcase, a_sum_of_an_image_flattened_is_placed_beside_any_number_of_parts, 0, 64);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
