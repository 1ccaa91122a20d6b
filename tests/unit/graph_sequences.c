/* graph_sequences.c - attention, LSTM and GRU of random shapes: what they give against plain loops, their gradients
 * against differences. */
#include "nn/layers/attention.h"
#include "nn/layers/recurrent.h"
#include "tests/graph_check.h"

enum { SHAPES = 20 };

static void near(const double *got, const double *want, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(fabs(got[i] - want[i]) <= 1e-12, "element %lld: %.17g, expected %.17g", (long long)i, got[i],
                      want[i]);
}

/* Samples [N,first,last], whose elements, as numbered, are also in x; varied: times a parameter for each of `last`. */
static int sequence(net *n, int64_t first, int64_t last, double *x, bool varied)
{
    int flow = samples(n, PER_SAMPLE(first, last));

    if (x)
        memcpy(x, n->samples, (size_t)(ROWS * first * last) * sizeof *x);
    return varied ? chain(n, CEK_PW_MUL, flow, parameter(n, AXES(last), 0.5, 1)) : flow;
}

/* ---- attention ---- */

typedef struct shape {
    int64_t t, s, e, f, heads;
    bool causal, masked, itself;
} shape;

static shape attention_shape(int i)
{
    shape a = { .heads = pick(i, 1, 1, 3), .causal = i % 2, .masked = i % 4 < 2, .itself = i % 3 == 0 };

    a.t = pick(i, 2, 1, 4);
    a.s = a.itself ? a.t : pick(i, 3, 1, 4);
    a.e = a.heads * pick(i, 4, 1, 2);
    a.f = a.itself ? a.e : a.heads * pick(i, 5, 1, 2);
    return a;
}

/* Queries are samples; keys and values are the same, or parameters that all samples share, [S,E] and [S,F]. */
static int attention_add(net *n, const shape *a, double *x, bool varied)
{
    cek__attention with = { .heads = a->heads, .causal = a->causal };
    int y;

    if (a->masked)
        with.mask = parameter(n, AXES(a->t, a->s), -1, 1);
    with.q = with.k = with.v = sequence(n, a->t, a->e, x, varied);
    if (!a->itself) {
        assert_ok(cek__expand(&n->graph, parameter(n, AXES(a->s, a->e), -1, 1), &PER_SAMPLE(a->s, a->e), &with.k));
        assert_ok(cek__expand(&n->graph, parameter(n, AXES(a->s, a->f), -1, 1), &PER_SAMPLE(a->s, a->f), &with.v));
    }
    assert_ok(cek__layer_attention(&n->graph, &with, &y));
    return y;
}

/* One query of one head: q [e], k [S,all], v [S,all]. */
static void attend(const shape *a, int64_t t, const double *q, const double *k, const double *v, const double *mask,
                   double *y)
{
    int64_t e = a->e / a->heads, f = a->f / a->heads;
    double weight[8], sum = 0;

    for (int64_t s = 0; s < a->s; s++) {
        double score = 0;

        for (int64_t i = 0; i < e; i++)
            score += q[i] * k[s * a->e + i];
        score = score / sqrt((double)e) + (mask ? mask[t * a->s + s] : 0);
        sum += weight[s] = a->causal && s > t ? 0 : exp(score);
    }
    for (int64_t i = 0; i < f; i++) {
        y[i] = 0;
        for (int64_t s = 0; s < a->s; s++)
            y[i] += weight[s] / sum * v[s * a->f + i];
    }
}

START_TEST(attention)
{
    static net n;
    static double got[ROOM], want[ROOM], x[ROOM];
    shape a = attention_shape(_i);
    int64_t e = a.e / a.heads, f = a.f / a.heads;

    net_open(&n);
    ck_assert_int_eq(values_of(&n, attention_add(&n, &a, x, false), got), ROWS * a.t * a.f);
    for (int64_t i = 0; i < ROWS * a.t * a.heads; i++) {
        int64_t h = i % a.heads, row = i / a.heads, sample = row / a.t;
        const double *k = a.itself ? x + sample * a.s * a.e : n.theta[a.masked];
        const double *v = a.itself ? k : n.theta[a.masked + 1];

        attend(&a, row % a.t, x + row * a.e + h * e, k + h * e, v + h * f, a.masked ? n.theta[0] : NULL,
               want + row * a.f + h * f);
    }
    near(got, want, ROWS * a.t * a.f);
    net_open(&n);
    gradients_are_right(&n, attention_add(&n, &a, NULL, true), "attention");
}
END_TEST

/* ---- recurrent layers ---- */

typedef struct cell {
    int gates;
    int64_t t, d, h;
    bool biased, begun, reverse;
} cell;

static cell cell_shape(int i)
{
    return (cell){ .gates = i % 2 ? 4 : 3,
                   .t = pick(i, 1, 1, 4),
                   .d = pick(i, 2, 1, 3),
                   .h = pick(i, 3, 1, 3),
                   .biased = i % 4 < 2,
                   .begun = i % 8 < 4,
                   .reverse = i % 3 == 0 };
}

/* A beginning is the same for all samples. */
static cek__recurrence cell_add(net *n, const cell *c, double *x, bool varied)
{
    cek__recurrent r = { .reverse = c->reverse };
    cek__recurrence out;
    int64_t rows = c->gates * c->h;

    r.w_input = parameter(n, AXES(rows, c->d), -1, 1);
    r.w_state = parameter(n, AXES(rows, c->h), -1, 1);
    if (c->biased) {
        r.bias_input = parameter(n, AXES(rows), -1, 1);
        r.bias_state = parameter(n, AXES(rows), -1, 1);
    }
    if (c->begun) {
        assert_ok(cek__expand(&n->graph, parameter(n, AXES(c->h), -1, 1), &PER_SAMPLE(c->h), &r.state));
        if (c->gates == 4)
            assert_ok(cek__expand(&n->graph, parameter(n, AXES(c->h), -1, 1), &PER_SAMPLE(c->h), &r.cell));
    }
    r.x = sequence(n, c->t, c->d, x, varied);
    assert_ok((c->gates == 4 ? cek__layer_lstm : cek__layer_gru)(&n->graph, &r, &out));
    return out;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Gate g of element i: what the input and what the state give. */
static double part_of(const cell *c, const double *w, const double *bias, const double *x, int64_t size, int g,
                      int64_t i)
{
    double sum = bias ? bias[g * c->h + i] : 0;

    for (int64_t k = 0; k < size; k++)
        sum += w[(g * c->h + i) * size + k] * x[k];
    return sum;
}

/* One sample: x [T,D] to y [T,H], h and c as they end. */
static void run(const cell *c, const net *n, const double *x, double *y, double *h, double *m)
{
    const double *b_input = c->biased ? n->theta[2] : NULL, *b_state = c->biased ? n->theta[3] : NULL;
    int begin = c->biased ? 4 : 2;

    for (int64_t i = 0; i < c->h; i++) {
        h[i] = c->begun ? n->theta[begin][i] : 0;
        m[i] = c->begun && c->gates == 4 ? n->theta[begin + 1][i] : 0;
    }
    for (int64_t at = 0; at < c->t; at++) {
        int64_t t = c->reverse ? c->t - 1 - at : at;
        double next[8];

        for (int64_t i = 0; i < c->h; i++) {
            double u[4], v[4];

            for (int g = 0; g < c->gates; g++) {
                u[g] = part_of(c, n->theta[0], b_input, x + t * c->d, c->d, g, i);
                v[g] = part_of(c, n->theta[1], b_state, h, c->h, g, i);
            }
            if (c->gates == 4) {
                m[i] = sigmoid(u[1] + v[1]) * m[i] + sigmoid(u[0] + v[0]) * tanh(u[2] + v[2]);
                next[i] = sigmoid(u[3] + v[3]) * tanh(m[i]);
            } else {
                double z = sigmoid(u[1] + v[1]), fresh = tanh(u[2] + sigmoid(u[0] + v[0]) * v[2]);

                next[i] = (1 - z) * fresh + z * h[i];
            }
        }
        memcpy(h, next, (size_t)c->h * sizeof *h);
        memcpy(y + t * c->h, next, (size_t)c->h * sizeof *y);
    }
}

/* All steps, and behind them, where it is asked for, the last state and cell. */
START_TEST(recurrent)
{
    static net n;
    static double got[ROOM], want[ROOM], x[ROOM], h[8], m[8];
    cell c = cell_shape(_i);
    cek__recurrence r;
    int64_t out = c.t * c.h;
    int y, flat[3];

    for (int which = 0; which < 3; which++) {
        net_open(&n);
        r = cell_add(&n, &c, x, false);
        y = which == 0 ? r.steps : which == 1 ? r.state : r.cell;
        if (y == CEK__NOTHING) {
            ck_assert_int_eq(c.gates, 3);
            net_close(&n);
            continue;
        }
        values_of(&n, y, got);
        for (int s = 0; s < ROWS; s++) {
            run(&c, &n, x + s * c.t * c.d, want + s * out, h, m);
            if (which)
                near(got + s * c.h, which == 1 ? h : m, c.h);
        }
        if (which == 0)
            near(got, want, ROWS * out);
    }
    net_open(&n);
    r = cell_add(&n, &c, NULL, true);
    assert_ok(cek__view(&n.graph, r.steps, &PER_SAMPLE(out), &flat[0]));
    flat[1] = r.state;
    flat[2] = r.cell;
    assert_ok(cek__concat(&n.graph, flat, r.cell ? 3 : 2, 1, &y));
    gradients_are_right(&n, y, c.gates == 4 ? "LSTM" : "GRU");
}
END_TEST

/* What the passes look at for so many steps. */
static double looks_of(int64_t steps, int gates)
{
    static net n;
    const cell c = { .t = steps, .d = 2, .h = 2, .gates = gates, .biased = true };
    uint64_t before;
    int y;

    net_open(&n);
    y = cell_add(&n, &c, NULL, true).steps;
    loss_add(&n, y);
    before = cek__graph_looks();
    passes(&n);
    net_close(&n);
    return (double)(cek__graph_looks() - before);
}

/* Twice the steps are twice the work: with a search for every part it would be four times. */
START_TEST(passes_take_time_as_the_sequence_is_long)
{
    double some = looks_of(100, _i), twice = looks_of(200, _i);

    ck_assert_double_gt(some, 1000);
    ck_assert_msg(twice < 2.1 * some, "%.0f looks at 100 steps, %.0f at 200", some, twice);
}
END_TEST

START_TEST(what_does_not_fit_is_refused)
{
    static net n;
    cek__attention a = { .heads = 2 };
    cek__recurrent r = { 0 };
    cek__recurrence all;
    int y;

    net_open(&n);
    a.q = a.k = a.v = r.x = samples(&n, PER_SAMPLE(3, 5));
    ck_assert_int_eq(cek__layer_attention(&n.graph, &a, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "attention: takes [N,T,E], and E is a multiple of the 2 heads"));
    a.heads = 1;
    a.mask = parameter(&n, AXES(2, 3, 3), 0, 1);
    ck_assert_int_eq(cek__layer_attention(&n.graph, &a, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "attention: a mask that is not broadcast to the scores"));
    r.w_input = parameter(&n, AXES(8, 5), 0, 1);
    r.w_state = parameter(&n, AXES(8, 2), 0, 1);
    ck_assert_int_eq(cek__layer_gru(&n.graph, &r, &all), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "recurrent: weights of the state are not [3 H,H]"));
    r.w_input = parameter(&n, AXES(4, 5), 0, 1);
    ck_assert_int_eq(cek__layer_lstm(&n.graph, &r, &all), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "recurrent: weights of input and state give different numbers"));
    net_close(&n);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph_sequences");
    TCase *tcase = tcase_create("graph_sequences");

    tcase_add_loop_test(tcase, attention, 0, SHAPES);
    tcase_add_loop_test(tcase, recurrent, 0, SHAPES);
    tcase_add_loop_test(tcase, passes_take_time_as_the_sequence_is_long, 3, 5);
    tcase_add_test(tcase, what_does_not_fit_is_refused);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
