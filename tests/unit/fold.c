/* fold.c - normalisations, biases and other chains that go into the weights before them: when, what predictions are
 * then, and when they are made again. What memory they may take: packing.c. */
#include <cekernels/parts.h>
#include <math.h>

#include "nn/model/compose.h"
#include "plan_run.h"
#include "tests/suite.h"

enum { ROWS = 3, SIDE = 6, MOST = 12, IMAGE = SIDE * SIDE, VALUES = ROWS * MOST * IMAGE };

/* conv (kernel 3, padding 1) or linear, then batch norm; or the same over a product that another reads as well. What
 * has something behind it is not the last: a linear layer gives its elements again. */
typedef struct net {
    bool conv, bias, affine, twice;
    int in, out, groups;
    bool behind;
} net;

static const net nets[] = {
    { true, false, true, false, 5, 7, 1, false },  { true, true, true, false, 4, 6, 2, false },
    { true, true, false, false, 3, 4, 1, false },  { true, false, false, false, 8, 8, 8, false },
    { false, true, true, false, 9, 5, 1, false },  { false, false, true, false, 12, 12, 1, false },
    { false, true, false, false, 1, 3, 1, false },
};

static const char *const devices[] = { "cpu:0", "reference:0", "sim:0" };

/* Numbers everywhere; variances above 0. */
static cek_model *net_make(const net *n, uint32_t seed)
{
    const cek_batch_norm_layer norm = { .size = sizeof norm, .no_affine = !n->affine };
    const cek_conv2d_layer conv = { .size = sizeof conv,
                                    .out_channels = n->out,
                                    .kernel_h = 3,
                                    .kernel_w = 3,
                                    .pad_h = 1,
                                    .pad_w = 1,
                                    .groups = (uint32_t)n->groups,
                                    .no_bias = !n->bias };
    const int values = n->out * (n->conv ? IMAGE : 1);
    cek_parameter p;
    cek_model *m;
    int layer, x;

    assert_ok(cek_model_create(n->conv ? 3 : 1, (int64_t[]){ n->in, SIDE, SIDE }, &m));
    if (n->conv)
        assert_ok(cek_model_conv2d(m, 0, &conv, &layer));
    else
        assert_ok(cek_model_linear(m, 0, n->out, n->bias, &layer));
    assert_ok(cek_model_batch_norm(m, layer, &norm, &x));
    if (n->twice)
        assert_ok(cek_model_add(m, x, layer, &x));
    if (n->conv)
        assert_ok(cek_model_flatten(m, x, &x));
    if (n->behind)
        assert_ok(cek_model_linear(m, x, values, false, &x));
    for (size_t i = 0; i < cek_model_parameter_count(m); i++) {
        assert_ok(cek_model_parameter(m, i, &p));
        for (int64_t k = 0; k < p.count; k++)
            p.data[k] = random_value(&seed, -1, 1);
        if (n->behind && i + 1 == cek_model_parameter_count(m))
            for (int64_t k = 0; k < p.count; k++)
                p.data[k] = k / values == k % values;
    }
    for (size_t i = 0; i < 2; i++) {
        assert_ok(cek_model_buffer(m, i, &p));
        for (int64_t k = 0; k < p.count; k++)
            p.data[k] = i ? random_value(&seed, 0.01f, 2) : random_value(&seed, -1, 1);
    }
    return m;
}

static const float *numbers(const cek_model *m, const char *end)
{
    cek_parameter p;

    for (size_t i = 0; i < cek_model_parameter_count(m) + 2; i++) {
        if (i < 2)
            assert_ok(cek_model_buffer(m, i, &p));
        else
            assert_ok(cek_model_parameter(m, i - 2, &p));
        if (strcmp(p.name, end) == 0)
            return p.data;
    }
    return NULL;
}

/* What output `o` at a place is, in double, and the sum of magnitudes of what makes it. x: channels last. */
static void sums(const cek_model *m, const net *n, const float *x, int o, int at, double *is, double *magnitude)
{
    const float *w = numbers(m, "0.weight"), *bias = numbers(m, "0.bias"), *gamma = numbers(m, "1.weight"),
                *beta = numbers(m, "1.bias");
    const double mean = (double)numbers(m, "1.running_mean")[o], variance = (double)numbers(m, "1.running_var")[o];
    const double a = (gamma ? (double)gamma[o] : 1) / sqrt(variance + 1e-5), d = beta ? (double)beta[o] : 0;
    const int each = n->in / n->groups, first = o / (n->out / n->groups) * each, taps = n->conv ? 9 : 1;
    double sum = bias ? (double)bias[o] : 0, size = fabs(sum) + fabs(mean);

    for (int t = 0; t < taps; t++) {
        const int row = n->conv ? at / SIDE + t / 3 - 1 : 0, col = n->conv ? at % SIDE + t % 3 - 1 : 0;

        for (int c = 0; c < each && row >= 0 && row < SIDE && col >= 0 && col < SIDE; c++) {
            double term = (double)w[(o * each + c) * taps + t] * (double)x[(row * SIDE + col) * n->in + first + c];

            sum += term;
            size += fabs(term);
        }
    }
    *is = (sum - mean) * a + d;
    *magnitude = fabs(a) * size + fabs(d);
}

/* How far f32 may be from it (fold.h). */
static void truth(const cek_model *m, const net *n, const float *x, int o, int at, double *is, double *bound)
{
    sums(m, n, x, o, at, is, bound);
    *bound *= (n->in / n->groups * (n->conv ? 9 : 1) + 6 + 2) * 0x1p-24 * (1 + 1e-4);
}

START_TEST(folded_and_not_it_is_as_near_to_the_truth_as_so_many_roundings_are)
{
    const net *n = &nets[_i];
    const int pixels = n->conv ? IMAGE : 1;
    static float x[VALUES], y[2][VALUES];
    uint32_t state = 99;
    cek_model *m = net_make(n, 3 + (uint32_t)_i);
    int differ = 0;

    setenv("CEKERNELS_SIM_DEVICES", "1", 1);
    for (int i = 0; i < VALUES; i++)
        x[i] = random_value(&state, -2, 2);
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
        bench b;

        bench_open(&b, devices[d]);
        for (uint32_t math = CEK_MATH_F32; math <= CEK_MATH_STRICT; math++)
            predict_rows(m, b.device, math, 2, ROWS, x, y[math]); /* in two runs, one of them padded */
        for (int i = 0; i < ROWS * n->out * pixels; i++) {
            double is, bound;

            truth(m, n, x + i / (n->out * pixels) * n->in * pixels, i / pixels % n->out, i % pixels, &is, &bound);
            for (int k = 0; k < 2; k++)
                ck_assert_msg(fabs((double)y[k][i] - is) <= bound, "%s, net %d, %s [%d]: %.9g, is %.9g, bound %.3g",
                              devices[d], _i, k ? "strict" : "folded", i, (double)y[k][i], is, bound);
            differ += y[0][i] != y[1][i];
        }
        bench_close(&b);
    }
    ck_assert_int_gt(differ, 0); /* or nothing was folded, or strict was */
    cek_model_free(m);
}
END_TEST

/* Samples, weights and the result are rounded, and without folding what the product gives. Errors of all elements, each
 * as a part of what makes it. */
static void bf16_errors(const net *of, cek_device *device, double error[2])
{
    net n = *of;
    const int pixels = n.conv ? IMAGE : 1;
    static float x[VALUES], y[2][VALUES];
    uint32_t state = 99;
    cek_model *m;

    n.behind = true;
    m = net_make(&n, 3);
    for (int i = 0; i < VALUES; i++)
        x[i] = random_value(&state, -2, 2);
    for (uint32_t math = CEK_MATH_F32; math <= CEK_MATH_STRICT; math++)
        predict_rows_in(CEK_BF16, m, device, math, 2, ROWS, x, y[math]);
    for (int i = 0; i < ROWS * n.out * pixels; i++) {
        double is, magnitude;

        sums(m, &n, x + i / (n.out * pixels) * n.in * pixels, i / pixels % n.out, i % pixels, &is, &magnitude);
        for (int k = 0; k < 2; k++) {
            const double part = fabs((double)y[k][i] - is) / magnitude;

            ck_assert_msg(part <= (k ? 4 : 3) * 0x1p-8 * (1 + 1e-2), "%d to %d, %s [%d]: %.9g, is %.9g of %.9g", n.in,
                          n.out, k ? "strict" : "folded", i, (double)y[k][i], is, magnitude);
            error[k] += part;
        }
    }
    cek_model_free(m);
}

START_TEST(folded_in_bf16_they_are_nearer_to_the_truth)
{
    setenv("CEKERNELS_SIM_DEVICES", "1", 1);
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
        double error[2] = { 0 };
        bench b;

        bench_open(&b, devices[d]);
        for (size_t i = 0; i < sizeof nets / sizeof *nets; i++)
            bf16_errors(&nets[i], b.device, error);
        ck_assert_msg(error[0] < error[1], "%s: folded %g, as they are %g", devices[d], error[0], error[1]);
        bench_close(&b);
    }
}
END_TEST

/* ---- the graph ---- */

/* Parts of a kind behind what is known. */
static int count(const cek__graph *graph, cek__part_kind kind)
{
    int n = 0;

    for (int i = 0; i < graph->length; i++)
        n += !graph->parts[graph->sequence[i]].known && graph->parts[graph->sequence[i]].kind == kind;
    return n;
}

static void compose(const cek_model *m, const cek__folding *folding, cek__graph *graph)
{
    bool known = true;

    assert_ok(cek__model_compose(m, &(cek__purpose){ .folding = folding }, graph));
    for (int i = 0; i < graph->length; i++) {
        ck_assert(known || !graph->parts[graph->sequence[i]].known); /* they come first */
        known = graph->parts[graph->sequence[i]].known;
    }
}

/* Instructions of chains that samples go through. */
static uint32_t instructions_left(const net *n, const cek__purpose *purpose)
{
    cek_model *m = net_make(n, 1);
    uint32_t left = 0;
    cek__graph graph;

    assert_ok(cek__model_compose(m, purpose, &graph));
    ck_assert_int_eq(count(&graph, CEK__PART_CONV) + count(&graph, CEK__PART_PRODUCT), 1 + n->behind);
    for (int i = 0; i < graph.length; i++) {
        const cek__part *part = &graph.parts[graph.sequence[i]];

        left += part->kind == CEK__PART_CHAIN && !part->known ? part->chain.count : 0;
    }
    cek__graph_clear(&graph);
    cek_model_free(m);
    return left;
}

static void stays(const net *n, cek__purpose purpose, bool but_for_scales)
{
    cek__folding folding = { .divided = purpose.folding ? purpose.folding->divided : NULL };
    uint32_t all, left;

    purpose.folding = &folding;
    all = instructions_left(n, &purpose);
    folding.scales = true;
    left = instructions_left(n, &purpose);
    ck_assert_uint_gt(all, 1);
    if (but_for_scales)
        ck_assert_uint_lt(left, all);
    else
        ck_assert_uint_eq(left, all);
}

START_TEST(nothing_is_left_of_a_normalisation)
{
    ck_assert_uint_eq(instructions_left(&nets[_i], &(cek__purpose){ .folding = &(cek__folding){ .scales = true } }), 0);
    stays(&nets[_i], (cek__purpose){ .low = CEK_DTYPE_NONE }, true);
}
END_TEST

START_TEST(what_is_read_twice_stays)
{
    net n = nets[_i];

    n.twice = true;
    stays(&n, (cek__purpose){ .low = CEK_DTYPE_NONE }, false);
}
END_TEST

START_TEST(what_a_caller_reads_stays)
{
    stays(&nets[0], (cek__purpose){ .outputs = (int[]){ 1, 2 }, .output_count = 2 }, false);
}
END_TEST

START_TEST(weights_in_pieces_stay)
{
    const bool divided[] = { true, false, false, false };

    stays(&nets[4], (cek__purpose){ .folding = &(cek__folding){ .divided = divided } }, false);
}
END_TEST

START_TEST(weights_in_bf16_are_multiplied_and_those_in_f16_have_not_the_range)
{
    net n = nets[_i];

    n.behind = true;
    stays(&n, (cek__purpose){ .low = CEK_BF16 }, true);
    stays(&n, (cek__purpose){ .low = CEK_F16 }, false);
}
END_TEST

/* ---- chains ---- */

#define IN(code_, ...)                      \
    {                                       \
        .code = CEK_PW_##code_, __VA_ARGS__ \
    }

/* Of a linear layer's output, value `y`, and of parameters p, q, r, the other three; what goes into the layer and what
 * does not. */
static const struct {
    int y, length;
    bool goes;
    cek_pointwise_instruction code[4];
} chains[] = {
    { 0, 2, true, { IN(MUL, .a = 1, .b = 0), IN(SUB, .a = 2, .b = 4) } },                          /* q - p y */
    { 1, 3, true, { IN(MUL, .a = 1, .b = 0), IN(DIV, .a = 4, .b = 2), IN(ADD, .a = 5, .b = 1) } }, /* y p / q + y */
    { 3, 3, true, { IN(MUL, .a = 3, .b = 0), IN(SUB, .a = 3, .b = 4), IN(ADD, .a = 1, .b = 5) } }, /* y - y p + q */
    { 2,
      4,
      true,
      { IN(MUL_IMM, .a = 2, .imm = -3), IN(ADD_IMM, .a = 4, .imm = 2), IN(ADD, .a = 0, .b = 1),
        IN(MUL, .a = 6, .b = 5) } },                                       /* (p + q) (2 - 3 y) */
    { 1, 2, true, { IN(ADD, .a = 0, .b = 1), IN(COPY, .a = 4) } },         /* p + y: another bias */
    { 0, 2, false, { IN(MUL, .a = 0, .b = 0), IN(ADD, .a = 4, .b = 1) } }, /* y y + p */
    { 0, 1, false, { IN(DIV, .a = 1, .b = 0) } },                          /* p / y */
    { 0, 2, false, { IN(MAX, .a = 0, .b = 1), IN(MUL, .a = 4, .b = 2) } },
    { 0, 1, false, { IN(SUB, .a = 1, .b = 2) } }, /* without y */
};

enum { LINEAR_IN = 9, LINEAR_OUT = 5 };

/* The layer, then the chain; `numbers` of weights, bias, p, q, r. Tied: its weights are read a second time, and what
 * that gives is added. */
static cek_model *chained(int which, bool tied, const float *numbers[5])
{
    const cek_parameter_options o = { .size = sizeof o, .rank = 1, .shape = (int64_t[]){ LINEAR_OUT } };
    int nodes[4], layer, y;
    uint32_t seed = 31;
    cek_parameter p;
    cek_model *m;

    assert_ok(cek_model_create(1, (int64_t[]){ LINEAR_IN }, &m));
    assert_ok(cek_model_linear(m, 0, LINEAR_OUT, true, &layer));
    for (int i = 0; i < 4; i++)
        nodes[i] = i == chains[which].y ? layer : cek_part_parameter(m, "p", &o);
    y = cek_part_chain(m, 4, nodes, chains[which].length, chains[which].code);
    if (tied) {
        assert_ok(cek_model_parameter(m, 0, &p));
        y = cek_part_apply(m, CEK_PW_ADD, y, cek_part_matmul(m, 0, cek_part_shared(m, p.name), true));
    }
    assert_ok(cek_model_status(m));
    ck_assert_uint_eq(cek_model_parameter_count(m), 5);
    for (size_t i = 0; i < 5; i++) {
        assert_ok(cek_model_parameter(m, i, &p));
        for (int64_t k = 0; k < p.count; k++)
            p.data[k] = random_value(&seed, 0.5f, 2);
        numbers[i] = p.data;
    }
    return m;
}

/* What the chain makes of y in double, and of magnitudes: what is subtracted counts as if it were added. */
static double chain_value(int which, double y, bool magnitude, const float *numbers[5], int o)
{
    double v[8], sign = magnitude ? 1 : -1;
    int at = 4;

    for (int i = 0, k = 2; i < 4; i++)
        v[i] = i == chains[which].y ? y : (double)numbers[k++][o];
    for (int i = 0; i < chains[which].length; i++, at++) {
        const cek_pointwise_instruction *in = &chains[which].code[i];
        const double imm = magnitude ? fabs(in->imm) : in->imm;

        switch (in->code) {
        case CEK_PW_ADD: v[at] = v[in->a] + v[in->b]; break;
        case CEK_PW_SUB: v[at] = v[in->a] + sign * v[in->b]; break;
        case CEK_PW_MUL: v[at] = v[in->a] * v[in->b]; break;
        case CEK_PW_DIV: v[at] = v[in->a] / v[in->b]; break;
        case CEK_PW_ADD_IMM: v[at] = v[in->a] + imm; break;
        case CEK_PW_MUL_IMM: v[at] = v[in->a] * imm; break;
        default: v[at] = v[in->a]; break;
        }
    }
    return v[at - 1];
}

START_TEST(what_multiplies_and_adds_goes_into_weights_and_nothing_else_does)
{
    const float *numbers[5];
    float x[ROWS * LINEAR_IN], y[ROWS * LINEAR_OUT];
    uint32_t state = 77;
    cek__graph graph;
    cek_model *m;
    bench b;

    for (int i = 0; i < ROWS * LINEAR_IN; i++)
        x[i] = random_value(&state, 0.5f, 2);
    m = chained(_i, false, numbers);
    compose(m, &(cek__folding){ .scales = true }, &graph);
    ck_assert_int_eq(count(&graph, CEK__PART_CHAIN), !chains[_i].goes);
    cek__graph_clear(&graph);
    cek_model_free(m);
    bench_open(&b, "cpu:0");
    for (int tied = 0; tied < 2 && chains[_i].goes; tied++) {
        m = chained(_i, tied, numbers);
        predict_rows(m, b.device, CEK_MATH_F32, ROWS, ROWS, x, y);
        for (int i = 0; i < ROWS * LINEAR_OUT; i++) {
            const int o = i % LINEAR_OUT;
            double sum = 0, with, is, size;

            for (int c = 0; c < LINEAR_IN; c++)
                sum += (double)x[i / LINEAR_OUT * LINEAR_IN + c] * (double)numbers[0][o * LINEAR_IN + c];
            with = sum + (double)numbers[1][o];
            is = chain_value(_i, with, false, numbers, o) + tied * sum;
            size = chain_value(_i, with, true, numbers, o) + tied * sum;
            ck_assert_msg(fabs((double)y[i] - is) <= 2 * (LINEAR_IN + 4 + 3) * 0x1p-24 * size * (1 + 1e-4),
                          "chain %d, tied %d [%d]: %.9g, is %.9g", _i, tied, i, (double)y[i], is);
        }
        cek_model_free(m);
    }
    bench_close(&b);
}
END_TEST

/* ---- weights that change ---- */

START_TEST(prepared_again_it_is_of_the_weights_that_are_there_and_not_before)
{
    const net *n = &nets[0];
    const cek__plan_options options = { .rows = ROWS, .input_type = CEK_F32, .ahead = true };
    cek_model *m = net_make(n, 1), *other = net_make(n, 2);
    static float x[VALUES], y[VALUES], wanted[2][VALUES];
    const uint64_t bytes = sizeof(float) * ROWS * (uint64_t)n->out * IMAGE;
    float buffers[256] = { 0 };
    uint32_t state = 5;
    plan_run r;
    bench b;

    for (int i = 0; i < VALUES; i++)
        x[i] = random_value(&state, -2, 2);
    bench_open(&b, "cpu:0");
    predict_rows(m, b.device, CEK_MATH_F32, ROWS, ROWS, x, wanted[0]);
    predict_rows(other, b.device, CEK_MATH_F32, ROWS, ROWS, x, wanted[1]);
    plan_run_open(&r, &b, m, CEK_F32, &options);
    ck_assert_uint_le(m->buffer_elements, sizeof buffers / sizeof *buffers);
    plan_run_put(&r, r.binding.input, x, sizeof(float) * ROWS * (uint64_t)n->in * IMAGE);
    for (int i = 0; i < 2; i++) {
        const cek_model *of = i ? other : m;

        for (size_t k = 0; k < r.layout->bucket_count; k++) {
            char host[1 << 14];

            ck_assert_uint_le(cek__layout_bucket_bytes(r.layout, k), sizeof host);
            cek__layout_pack(r.layout, of, k, host);
            plan_run_put(&r, r.parameters[k], host, cek__layout_bucket_bytes(r.layout, k));
        }
        memcpy(buffers + of->buffers[0].at, numbers(of, "1.running_mean"), (size_t)n->out * sizeof(float));
        memcpy(buffers + of->buffers[1].at, numbers(of, "1.running_var"), (size_t)n->out * sizeof(float));
        plan_run_put(&r, r.binding.buffers, buffers, m->buffer_elements * sizeof *buffers);
        if (i > 0) {
            assert_ok(cek__plan_forward(r.plan, 0, b.stream));
            bench_download(&b, y, r.binding.output, bytes);
            ck_assert_mem_eq(y, wanted[0], bytes);
        }
        assert_ok(cek__plan_prepare(r.plan, 0, b.stream));
        for (int again = 0; again < 3; again++) {
            assert_ok(cek__plan_forward(r.plan, 0, b.stream));
            bench_download(&b, y, r.binding.output, bytes);
            ck_assert_mem_eq(y, wanted[i], bytes);
        }
    }
    plan_run_close(&r);
    bench_close(&b);
    cek_model_free(m);
    cek_model_free(other);
}
END_TEST

int main(void)
{
    const int all = sizeof nets / sizeof *nets;
    Suite *suite = suite_create("fold");
    TCase *tcase = tcase_create("fold");

    tcase_add_loop_test(tcase, folded_and_not_it_is_as_near_to_the_truth_as_so_many_roundings_are, 0, all);
    tcase_add_test(tcase, folded_in_bf16_they_are_nearer_to_the_truth);
    tcase_add_loop_test(tcase, nothing_is_left_of_a_normalisation, 0, all);
    tcase_add_loop_test(tcase, what_is_read_twice_stays, 0, all);
    tcase_add_test(tcase, what_a_caller_reads_stays);
    tcase_add_test(tcase, weights_in_pieces_stay);
    tcase_add_loop_test(tcase, weights_in_bf16_are_multiplied_and_those_in_f16_have_not_the_range, 0, all);
    tcase_add_loop_test(tcase, what_multiplies_and_adds_goes_into_weights_and_nothing_else_does, 0,
                        sizeof chains / sizeof *chains);
    tcase_add_test(tcase, prepared_again_it_is_of_the_weights_that_are_there_and_not_before);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
