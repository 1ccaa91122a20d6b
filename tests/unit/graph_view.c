/* graph_view.c - axes in another order, pads, slices, concatenations, views: what they give against plain loops, their
 * gradients against differences, whoever reads them. */
#include "tests/graph_check.h"

enum { SHAPES = 20 };

/* ---- plain loops ---- */

typedef struct tensor {
    int rank;
    int64_t size[CEK_RANK_MAX];
    double v[ROOM];
} tensor;

static int64_t count_of(const tensor *t)
{
    int64_t count = 1;

    for (int i = 0; i < t->rank; i++)
        count *= t->size[i];
    return count;
}

static void index_of(const tensor *t, int64_t at, int64_t *index)
{
    for (int i = t->rank; i-- > 0; at /= t->size[i])
        index[i] = at % t->size[i];
}

/* NULL: outside. */
static double *element(tensor *t, const int64_t *index)
{
    int64_t at = 0;

    for (int i = 0; i < t->rank; i++) {
        if (index[i] < 0 || index[i] >= t->size[i])
            return NULL;
        at = at * t->size[i] + index[i];
    }
    return &t->v[at];
}

static void permute(tensor *t, const int *order)
{
    static tensor y;

    y = *t;
    for (int i = 0; i < t->rank; i++)
        y.size[i] = t->size[order[i]];
    for (int64_t at = 0; at < count_of(&y); at++) {
        int64_t to[CEK_RANK_MAX], from[CEK_RANK_MAX];

        index_of(&y, at, to);
        for (int i = 0; i < t->rank; i++)
            from[order[i]] = to[i];
        y.v[at] = *element(t, from);
    }
    *t = y;
}

static void pad(tensor *t, const int64_t *lo, const int64_t *hi, double value)
{
    static tensor y;

    y = *t;
    for (int i = 0; i < t->rank; i++)
        y.size[i] += lo[i] + hi[i];
    for (int64_t at = 0; at < count_of(&y); at++) {
        int64_t index[CEK_RANK_MAX];
        double *from;

        index_of(&y, at, index);
        for (int i = 0; i < t->rank; i++)
            index[i] -= lo[i];
        from = element(t, index);
        y.v[at] = from ? *from : value;
    }
    *t = y;
}

/* Itself times -1 behind it. */
static void concat_negative(tensor *t, int axis)
{
    static tensor y;

    y = *t;
    y.size[axis] *= 2;
    for (int64_t at = 0; at < count_of(&y); at++) {
        int64_t index[CEK_RANK_MAX];
        bool behind;

        index_of(&y, at, index);
        behind = index[axis] >= t->size[axis];
        index[axis] -= behind ? t->size[axis] : 0;
        y.v[at] = behind ? -*element(t, index) : *element(t, index);
    }
    *t = y;
}

/* ---- random networks ---- */

/* What case i does to x in this order, and which of it. */
typedef struct plan {
    int order[4], axis;
    int64_t lo[4], hi[4];
    double value;
    cek__dims dims;
} plan;

static plan plan_of(int i)
{
    plan p = { .order = { 0, 1, 2, 3 }, .value = 0.25 };

    p.dims = PER_SAMPLE(pick(i, 1, 2, 3), pick(i, 2, 1, 3), pick(i, 3, 2, 4));
    for (int k = 3; k > 0; k--) {
        int with = (int)pick(i, 10 + (uint64_t)k, i % 3 == 0, k), was = p.order[k];

        p.order[k] = p.order[with];
        p.order[with] = was;
    }
    for (int k = 0; k < 4; k++) {
        if (p.order[k] == 0)
            continue;
        p.axis = p.axis && i % 2 ? p.axis : k;
        p.lo[k] = pick(i, 20 + (uint64_t)k, i % 4 == 1 ? -1 : 0, i % 4 == 2 ? 0 : 1);
        p.hi[k] = p.lo[k] < 0 ? 0 : pick(i, 30 + (uint64_t)k, 0, i % 4 == 2 ? 0 : 2);
        if (p.dims.size[p.order[k]] + p.lo[k] < 1)
            p.lo[k] = 0;
    }
    return p;
}

static int plan_add(net *n, const plan *p, int x)
{
    int y, both[2];

    assert_ok(cek__permute(&n->graph, x, p->order, &y));
    assert_ok(cek__pad(&n->graph, y, p->lo, p->hi, p->value, &both[0]));
    both[1] = chain(n, CEK_PW_NEG, both[0], CEK__NOTHING);
    assert_ok(cek__concat(&n->graph, both, 2, p->axis, &y));
    return y;
}

START_TEST(elements_are_where_they_should_be)
{
    static net n;
    static tensor want;
    static double got[ROOM];
    plan p = plan_of(_i);
    int64_t count;

    net_open(&n);
    count = values_of(&n, plan_add(&n, &p, samples(&n, p.dims)), got);
    want = (tensor){ .rank = 4, .size = { ROWS, p.dims.size[1], p.dims.size[2], p.dims.size[3] } };
    reordered(n.samples, want.v, count_of(&want), cek__image_of(want.size[1], want.size[2] * want.size[3]), true);
    permute(&want, p.order);
    pad(&want, p.lo, p.hi, p.value);
    concat_negative(&want, p.axis);
    ck_assert_int_eq(count, count_of(&want));
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(got[i] == want.v[i], "element %lld: %g, expected %g", (long long)i, got[i], want.v[i]);
}
END_TEST

/* x, permuted and cut, read by chains, sums, softmax, products. */
START_TEST(gradients)
{
    static net n;
    plan p = plan_of(_i);
    cek__part softmax = { .kind = CEK__PART_SOFTMAX, .inputs = 1 };
    cek__dims dims;
    int x, y, sum, back[4] = { 0 }, sample;

    net_open(&n);
    x = chain(&n, CEK_PW_MUL, samples(&n, p.dims),
              parameter(&n, AXES(p.dims.size[1], p.dims.size[2], p.dims.size[3]), -1, 1));
    y = plan_add(&n, &p, x);
    dims = n.graph.flows[y].dims;
    for (sample = 0; p.order[sample] != 0;)
        sample++;
    if (dims.size[p.axis] > 1 && _i % 3)
        assert_ok(cek__slice(&n.graph, y, p.axis, 1, dims.size[p.axis] - 1, &y));
    if (_i % 4 == 0 && sample < 3) { /* softmax over what lies elsewhere */
        assert_ok(cek__permute(&n.graph, y, (int[]){ 0, 1, 3, 2 }, &softmax.input[0]));
        if (sample != 2)
            assert_ok(cek__graph_add(&n.graph, &softmax, &y));
    } else if (_i % 4 == 1) {
        assert_ok(cek__sum(&n.graph, y, 1u << p.axis, &sum));
        y = chain(&n, CEK_PW_TANH, sum, CEK__NOTHING);
        back[3] = -1;
    }
    dims = n.graph.flows[y].dims;
    for (sample = 0; !(dims.samples >> sample & 1);)
        sample++;
    back[0] = sample; /* samples first, for the loss */
    for (int i = 0, at = 1; i < dims.rank; i++)
        if (i != sample)
            back[at++] = i;
    assert_ok(cek__permute(&n.graph, y, back, &y));
    gradients_are_right(&n, y, "permuted, padded, concatenated");
}
END_TEST

/* Images keep their channels last between convolutions, and parameters may be cut and turned. */
START_TEST(images_and_parameters)
{
    static net n;
    cek__windows windows = { .stride = { 1, 1 }, .dilation = { 1, 1 } };
    cek__part conv = { .kind = CEK__PART_CONV, .inputs = 2, .conv = { windows, 1 } };
    cek__part product = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 0, 1, false }, { 0, 1, true } } };
    int x, w, y, both[2];

    net_open(&n);
    x = chain(&n, CEK_PW_MUL, samples(&n, PER_SAMPLE(2, 4, 3)), parameter(&n, AXES(2, 1, 1), -1, 1));
    conv.input[0] = x;
    conv.input[1] = parameter(&n, AXES(3, 2, 2, 2), -1, 1);
    assert_ok(cek__graph_add(&n.graph, &conv, &both[0]));
    assert_ok(cek__slice(&n.graph, x, 2, 1, 3, &both[1]));
    assert_ok(cek__slice(&n.graph, both[1], 3, 0, 2, &both[1]));
    assert_ok(cek__concat(&n.graph, both, 2, 1, &y)); /* [N,5,3,2] */
    assert_ok(cek__pad(&n.graph, y, (int64_t[]){ 0, 0, 1, 0 }, (int64_t[]){ 0, 0, 0, 1 }, 0.5, &y));
    conv.input[0] = y;
    assert_ok(cek__permute(&n.graph, parameter(&n, AXES(5, 2, 2, 2), -1, 1), (int[]){ 1, 0, 3, 2 }, &conv.input[1]));
    assert_ok(cek__graph_add(&n.graph, &conv, &y)); /* [N,2,3,2] */
    assert_ok(cek__permute(&n.graph, y, (int[]){ 0, 2, 3, 1 }, &y));
    assert_ok(cek__view(&n.graph, y, &PER_SAMPLE(12), &product.input[0]));
    w = parameter(&n, AXES(5, 14), -1, 1);
    assert_ok(cek__slice(&n.graph, w, 1, _i, 12, &product.input[1]));
    assert_ok(cek__graph_add(&n.graph, &product, &y));
    assert_ok(cek__slice(&n.graph, parameter(&n, AXES(7), -1, 1), 0, _i, 5, &w)); /* a bias that is part of another */
    gradients_are_right(&n, chain(&n, CEK_PW_TANH, chain(&n, CEK_PW_ADD, y, w), CEK__NOTHING), "images");
}
END_TEST

/* Cuts of one flow: its gradient is filled once, and each is added in its place. */
START_TEST(many_slices)
{
    static net n;
    int x, y = CEK__NOTHING, s, fills = 0;

    net_open(&n);
    x = chain(&n, CEK_PW_MUL, samples(&n, PER_SAMPLE(6, 4)), parameter(&n, AXES(6, 4), -1, 1));
    for (int i = 0; i < 6; i++) {
        assert_ok(cek__slice(&n.graph, x, 1, i, 1, &s));
        y = y ? chain(&n, CEK_PW_TANH, chain(&n, CEK_PW_ADD, y, s), CEK__NOTHING) : s;
    }
    gradients_are_right(&n, y, "slices");
    net_open(&n);
    x = chain(&n, CEK_PW_MUL, samples(&n, PER_SAMPLE(6, 4)), parameter(&n, AXES(6, 4), -1, 1));
    y = CEK__NOTHING;
    for (int i = 0; i < 6; i++) {
        assert_ok(cek__slice(&n.graph, x, 1, i, 1, &s));
        y = y ? chain(&n, CEK_PW_TANH, chain(&n, CEK_PW_ADD, y, s), CEK__NOTHING) : s;
    }
    loss_add(&n, y);
    passes(&n);
    for (int i = 0; i < n.graph.length; i++) {
        const cek__part *part = &n.graph.parts[n.graph.sequence[i]];

        fills += part->backward && part->kind == CEK__PART_PAD && !part->base;
    }
    ck_assert_int_eq(fills, 1);
    net_close(&n);
}
END_TEST

/* Steps before or behind the samples, as one axis and apart. */
START_TEST(samples_are_a_factor_of_an_axis)
{
    static net n;
    cek__part product = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 0, 1, false }, { 0, 1, true } } };
    cek__dims merged = { .rank = 2, .samples = 1, .size = { 5, 4 } };
    int x, y, out;

    net_open(&n);
    x = chain(&n, CEK_PW_MUL, samples(&n, PER_SAMPLE(5, 4)), parameter(&n, AXES(5, 4), -1, 1));
    if (_i)
        assert_ok(cek__permute(&n.graph, x, (int[]){ 1, 0, 2 }, &x)); /* [5,N,4] */
    assert_ok(cek__view(&n.graph, x, &merged, &product.input[0]));
    product.input[1] = parameter(&n, AXES(3, 4), -1, 1);
    assert_ok(cek__graph_add(&n.graph, &product, &y));
    ck_assert_int_eq(n.graph.flows[y].dims.outside, _i ? 5 : 0);
    y = chain(&n, CEK_PW_TANH, y, CEK__NOTHING);
    if (_i) {
        ck_assert_int_eq(cek__view(&n.graph, y, &PER_SAMPLE(5, 3), &out), CEK_INVALID);
        ck_assert_ptr_nonnull(strstr(cek_error_text(), "view: would mix samples"));
        assert_ok(cek__view(&n.graph, y, &(cek__dims){ .rank = 3, .samples = 2, .size = { 5, 1, 3 } }, &y));
        assert_ok(cek__permute(&n.graph, y, (int[]){ 1, 0, 2 }, &y));
    } else {
        ck_assert_int_eq(cek__view(&n.graph, y, &(cek__dims){ .rank = 3, .samples = 2, .size = { 5, 1, 3 } }, &out),
                         CEK_INVALID);
        assert_ok(cek__view(&n.graph, y, &PER_SAMPLE(5, 3), &y));
    }
    gradients_are_right(&n, y, "merged");
}
END_TEST

START_TEST(expanded)
{
    static net n;
    int y;

    net_open(&n);
    assert_ok(cek__expand(&n.graph, parameter(&n, AXES(3, 1), -1, 1), &PER_SAMPLE(3, 4), &y));
    gradients_are_right(&n, chain(&n, CEK_PW_MUL, y, samples(&n, PER_SAMPLE(3, 4))), "expanded");
}
END_TEST

START_TEST(what_does_not_fit_is_refused)
{
    static net n;
    int x, y;

    net_open(&n);
    x = samples(&n, PER_SAMPLE(3, 4));
    ck_assert_int_eq(cek__slice(&n.graph, x, 0, 0, 0, &y), CEK_INVALID);
    ck_assert_int_eq(cek__slice(&n.graph, x, 1, 1, 3, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "slice: 3 elements from 1 on are not there along axis 1"));
    ck_assert_int_eq(cek__pad(&n.graph, x, (int64_t[]){ 1, 0, 0 }, (int64_t[]){ 0, 0, 0 }, 0, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "pad: axis 0 counts samples"));
    ck_assert_int_eq(cek__pad(&n.graph, x, (int64_t[]){ 0, -2, 0 }, (int64_t[]){ 0, -1, 0 }, 0, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "pad: axis 1: of 3 elements 2 and 1 are left out"));
    ck_assert_int_eq(cek__concat(&n.graph, (int[]){ x, x }, 2, 0, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "concat: axis 0 counts samples"));
    ck_assert_int_eq(cek__concat(&n.graph, (int[]){ x, parameter(&n, AXES(3, 4), 0, 1) }, 2, 1, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "concat: input 1 differs from the first"));
    ck_assert_int_eq(cek__permute(&n.graph, x, (int[]){ 0, 1, 1 }, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "permute: axis 2 is not one of 3, each once"));
    net_close(&n);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph_view");
    TCase *tcase = tcase_create("graph_view");

    tcase_add_loop_test(tcase, elements_are_where_they_should_be, 0, SHAPES);
    tcase_add_loop_test(tcase, gradients, 0, SHAPES);
    tcase_add_loop_test(tcase, images_and_parameters, 0, 3);
    tcase_add_test(tcase, many_slices);
    tcase_add_loop_test(tcase, samples_are_a_factor_of_an_axis, 0, 2);
    tcase_add_test(tcase, expanded);
    tcase_add_test(tcase, what_does_not_fit_is_refused);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
