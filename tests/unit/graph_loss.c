/* graph_loss.c - losses that are made of parts: what they sum, with weights, without padding, and their gradients. */
#include "nn/layers/losses.h"
#include "tests/graph_check.h"

enum { SHAPES = 20 };

static void weighed_loss(net *n, int v, int weights)
{
    int out;

    assert_ok(cek__loss(&n->graph, v, weights, &out));
    n->graph.loss = n->graph.flows[out].part;
}

static void own_loss(net *n, int v)
{
    weighed_loss(n, v, CEK__NOTHING);
}

/* x [N,...] times a parameter for each element of a sample. */
static int scaled_samples(net *n, const cek__dims *dims)
{
    cek__dims each = { .rank = dims->rank - 1 };

    memcpy(each.size, dims->size + 1, (size_t)each.rank * sizeof *each.size);
    return chain(n, CEK_PW_MUL, samples(n, *dims), parameter(n, each, -2, 2));
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
    own_loss(&n, v);
    passes(&n);
    net_lower(&n);
    ck_assert_double_eq_tol(net_run(&n), expected, 1e-14);
    net_close(&n);

    for (int which = 0; which < 20; which++) {
        int64_t a = pick(which, 1, 1, 4), b = pick(which, 2, 1, 4);

        net_open(&n);
        n.valid = 1 + which % ROWS;
        v = chain(&n, CEK_PW_MUL, samples(&n, PER_SAMPLE(a, b)), parameter(&n, AXES(a, b), -1, 1));
        own_loss(&n, chain(&n, CEK_PW_SIN, v, 0));
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
    weighed_loss(&n, v, w);
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
    own_loss(&n, v);
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

/* ---- what is composed ---- */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static cek_status smooth(cek__graph *g, int x, int t, int *out)
{
    return cek__smooth_l1(g, x, t, 0.5, out);
}
static cek_status binary(cek__graph *g, int x, int t, int *out)
{
    return cek__binary_cross_entropy(g, x, t, 1, out);
}
static cek_status weighed(cek__graph *g, int x, int t, int *out)
{
    return cek__binary_cross_entropy(g, x, t, 3, out);
}

static double l1_value(double x, double t)
{
    return fabs(x - t);
}
static double squared_value(double x, double t)
{
    return (x - t) * (x - t);
}
static double smooth_value(double x, double t)
{
    return fabs(x - t) < 0.5 ? (x - t) * (x - t) : fabs(x - t) - 0.25;
}
static double binary_value(double x, double t)
{
    return -t * log(sigmoid(x)) - (1 - t) * log(sigmoid(-x));
}
static double weighed_value(double x, double t)
{
    return -3 * t * log(sigmoid(x)) - (1 - t) * log(sigmoid(-x));
}
static double kl_value(double x, double t)
{
    return t == 0 ? 0 : t * (log(t) - x);
}

static const struct {
    const char *name;
    cek_status (*add)(cek__graph *graph, int x, int target, int *out);
    double (*value)(double x, double target);
} losses[] = {
    { "l1", cek__l1, l1_value },
    { "squared", cek__squared_difference, squared_value },
    { "smooth l1", smooth, smooth_value },
    { "binary cross-entropy", binary, binary_value },
    { "binary cross-entropy, weighed", weighed, weighed_value },
    { "kl", cek__kl_divergence, kl_value },
};

static int target_add(net *n, cek__dims dims)
{
    cek__part part = { .kind = CEK__PART_TARGET, .type = CEK_F64, .dims = dims };
    int flow;

    assert_ok(cek__graph_add(&n->graph, &part, &flow));
    return flow;
}

/* The mean over a sample's elements, summed over the samples that count. */
START_TEST(losses_have_values_and_gradients)
{
    static net n;

    for (int which = 0; which < SHAPES; which++) {
        int64_t each = pick(which, 1, 1, 3) * pick(which, 2, 1, 4);
        double expected = 0;

        for (int trained = 0; trained < 2; trained++) {
            cek__dims dims = PER_SAMPLE(each);
            int x, target, v;

            if (trained) /* images, which lie otherwise than their targets */
                dims = PER_SAMPLE(pick(which, 1, 1, 3), pick(which, 2, 1, 4));

            net_open(&n);
            n.valid = 2;
            x = scaled_samples(&n, &dims);
            target = target_add(&n, dims);
            for (int64_t i = 0; i < ROWS * each; i++)
                n.target[i] = i % 5 == 0 ? 0 : number(91, i);
            for (int64_t i = 2 * each; i < ROWS * each; i++)
                n.target[i] = n.samples[i] = 1e10;
            assert_ok(losses[_i].add(&n.graph, x, target, &v));
            assert_ok(cek__sample_mean(&n.graph, v, &v));
            own_loss(&n, v);
            if (trained) {
                gradients_are_right(&n, CEK__NOTHING, losses[_i].name);
                continue;
            }
            for (int64_t i = 0; i < 2 * each; i++)
                expected += losses[_i].value(n.samples[i] * n.theta[0][i % each], n.target[i]) / (double)each;
            passes(&n);
            net_lower(&n);
            ck_assert_msg(fabs(net_run(&n) - expected) <= 1e-12, "%s: not %.17g", losses[_i].name, expected);
            net_close(&n);
        }
    }
}
END_TEST

/* Where a target is 0 or a logit far from it nothing is infinite. */
START_TEST(losses_stay_finite)
{
    static const double logits[] = { -800, 800, 0 }, classes[] = { 1, 0, 0.25 };
    static net n;
    static double got[PARAMETERS][ROOM];
    int x, w, v, out;

    net_open(&n);
    w = parameter(&n, AXES(3), 0, 1);
    memcpy(n.theta[0], logits, sizeof logits);
    x = chain(&n, CEK_PW_MUL, samples(&n, PER_SAMPLE(3)), w);
    for (int i = 0; i < 9; i++) {
        n.samples[i] = 1;
        n.target[i] = classes[i % 3];
    }
    assert_ok(cek__binary_cross_entropy(&n.graph, x, target_add(&n, PER_SAMPLE(3)), 1, &v));
    assert_ok(cek__sample_sum(&n.graph, v, &v));
    own_loss(&n, v);
    gradients_of(&n, CEK__NOTHING, got);
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq_tol(got[0][i], 3 * (sigmoid(logits[i]) - classes[i]), 1e-14);
    ck_assert_double_eq_tol(net_run(&n), 3 * (800 + 800 + log(2)), 1e-10);
    net_close(&n);

    net_open(&n);
    ck_assert_int_eq(cek__smooth_l1(&n.graph, samples(&n, PER_SAMPLE(2)), target_add(&n, PER_SAMPLE(2)), 0, &out),
                     CEK_INVALID);
    ck_assert_int_eq(cek__l1(&n.graph, 1, target_add(&n, PER_SAMPLE(3)), &out), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "the target's shape is another"));
    net_close(&n);
}
END_TEST

/* Against probabilities: with those of one class it is the part cross_entropy's. */
START_TEST(soft_cross_entropy)
{
    static net n;
    double expected = 0, loss;

    for (int trained = 0; trained < 2; trained++) {
        int v, x;

        net_open(&n);
        x = scaled_samples(&n, &PER_SAMPLE(4));
        for (int i = 0; i < 12; i++)
            n.target[i] = 0.1 + 0.15 * (i % 4); /* they need not add up to 1 */
        assert_ok(cek__soft_cross_entropy(&n.graph, x, target_add(&n, PER_SAMPLE(4)), &v));
        own_loss(&n, v);
        if (trained) {
            gradients_are_right(&n, CEK__NOTHING, "soft cross-entropy");
            continue;
        }
        for (int row = 0; row < ROWS; row++) {
            double sum = 0;

            for (int i = 0; i < 4; i++)
                sum += exp(n.samples[row * 4 + i] * n.theta[0][i]);
            for (int i = 0; i < 4; i++)
                expected -= n.target[row * 4 + i] * (n.samples[row * 4 + i] * n.theta[0][i] - log(sum));
        }
        passes(&n);
        net_lower(&n);
        loss = net_run(&n);
        ck_assert_double_eq_tol(loss, expected, 1e-13);
        net_close(&n);
    }
}
END_TEST

/* ---- classes ---- */

enum { CLASSES = 4 };

/* What PyTorch sums for one row. */
static double class_value(const double *logits, int label, const cek__class_options *o, const double *factor)
{
    double sum = 0, v, even = 0;

    if (o->ignores && label == o->ignored)
        return 0;
    for (int c = 0; c < CLASSES; c++)
        sum += exp(logits[c]);
    for (int c = 0; c < CLASSES; c++)
        even -= (o->weights ? factor[c] : 1) * (logits[c] - log(sum));
    v = -(o->weights ? factor[label] : 1) * (logits[label] - log(sum));
    return (1 - o->smoothing) * v + o->smoothing / CLASSES * even;
}

/* With and without smoothing, weights of classes, a label that is ignored: by row, and rows several for each sample. */
START_TEST(class_cross_entropy)
{
    static const double factor[CLASSES] = { 0.5, 2, 1, 1.25 };
    static net n;

    for (int which = 0; which < SHAPES; which++) {
        cek__class_options o = { .smoothing = which % 2 * 0.1, .ignores = which / 4 % 2, .ignored = -100 };
        int64_t rows = 1 + which % 3;
        cek__dims dims = PER_SAMPLE(CLASSES);
        cek__part target = { .kind = CEK__PART_TARGET,
                             .type = CEK_I32,
                             .dims = { .rank = 1, .samples = 1, .size = { 1 } } };
        int32_t labels[ROOM] = { 0 };
        double expected = 0, weight = 0;

        for (int trained = 0; trained < 2; trained++) {
            int x, v, w, label;

            net_open(&n);
            n.valid = 2;
            if (trained && rows > 1) {
                dims = PER_SAMPLE(rows, CLASSES);
                target.dims = PER_SAMPLE(rows);
            }
            x = scaled_samples(&n, &dims);
            assert_ok(cek__graph_add(&n.graph, &target, &label));
            for (int i = 0; i < ROOM; i++)
                labels[i] = i % 3 == 1 && o.ignores ? -100 : (i + which) % CLASSES;
            memcpy(n.target, labels, sizeof labels);
            o.weights = CEK__NOTHING;
            if (which / 2 % 2) {
                o.weights = parameter(&n, AXES(CLASSES), 0, 1);
                memcpy(n.theta[1], factor, sizeof factor);
            }
            assert_ok(cek__class_cross_entropy(&n.graph, x, label, &o, &v, &w));
            ck_assert_int_eq(w != CEK__NOTHING, o.ignores || o.weights);
            if (dims.rank > 2)
                assert_ok(cek__sample_sum(&n.graph, v, &v));
            own_loss(&n, v);
            if (trained) {
                gradients_are_right(&n, CEK__NOTHING, "cross-entropy of classes");
                continue;
            }
            for (int row = 0; row < 2; row++) {
                double logits[CLASSES];

                for (int c = 0; c < CLASSES; c++)
                    logits[c] = n.samples[row * CLASSES + c] * n.theta[0][c];
                expected += class_value(logits, labels[row], &o, factor);
                weight += o.ignores && labels[row] < 0 ? 0 : o.weights ? factor[labels[row]] : 1;
            }
            passes(&n);
            net_lower(&n);
            ck_assert_double_eq_tol(net_run(&n), expected, 1e-13);
            net_close(&n);

            if (w) { /* the weights themselves */
                double out[ROOM], sum = 0;

                net_open(&n);
                x = samples(&n, dims);
                assert_ok(cek__graph_add(&n.graph, &target, &label));
                memcpy(n.target, labels, sizeof labels);
                o.weights = o.weights ? parameter(&n, AXES(CLASSES), 0, 1) : CEK__NOTHING;
                memcpy(n.theta[0], factor, sizeof factor);
                assert_ok(cek__class_cross_entropy(&n.graph, x, label, &o, &v, &w));
                ck_assert_int_eq(values_of(&n, w, out), ROWS);
                for (int row = 0; row < 2; row++)
                    sum += out[row];
                ck_assert_double_eq_tol(sum, weight, 1e-15);
            }
        }
    }
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
    tcase_add_loop_test(tcase, losses_have_values_and_gradients, 0, sizeof losses / sizeof *losses);
    tcase_add_test(tcase, losses_stay_finite);
    tcase_add_test(tcase, soft_cross_entropy);
    tcase_add_test(tcase, class_cross_entropy);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
