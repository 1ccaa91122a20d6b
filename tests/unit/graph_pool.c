/* graph_pool.c - pools of random shapes: what they give against plain loops, their gradients against differences. */
#include "nn/layers/pooling.h"
#include "tests/graph_check.h"

enum { SHAPES = 20 };
#define FAR ((int64_t)1 << 32)

typedef struct shape {
    int spatial;
    int64_t channels, in[3], out[3];
    cek__pooling p;
} shape;

static int64_t reach_of(const cek__pooling *p, int k)
{
    return (p->windows.kernel[k] - 1) * p->windows.dilation[k] + 1;
}

/* PyTorch's rule for the number of windows. */
static int64_t windows_of(const cek__pooling *p, int k, int64_t in)
{
    int64_t stride = p->windows.stride[k], room = in + p->windows.pad_lo[k] + p->windows.pad_hi[k] - reach_of(p, k);
    int64_t count = (p->ceil ? (room + stride - 1) / stride : room / stride) + 1;

    return p->ceil && (count - 1) * stride >= in + p->windows.pad_lo[k] ? count - 1 : count;
}

/* From SHAPES on with gaps between the elements of a window. */
static shape shape_of(int i)
{
    shape s = { .spatial = 1 + i % 3, .channels = pick(i, 1, 1, 3), .in = { 1, 1, 1 }, .out = { 1, 1, 1 } };

    s.p = (cek__pooling){ .mode = i % 2 ? CEK_POOL_MAX : CEK_POOL_AVERAGE, .ceil = i % 4 < 2, .count_pad = i % 8 < 4 };
    for (int k = 0; k < 3; k++) {
        uint64_t stream = 10 * (uint64_t)(k + 1);

        s.p.windows.kernel[k] = s.p.windows.stride[k] = s.p.windows.dilation[k] = 1;
        if (k >= s.spatial)
            continue;
        s.in[k] = pick(i, stream, 3, s.spatial < 3 ? 7 : 4);
        s.p.windows.kernel[k] = pick(i, stream + 1, 1, 3);
        s.p.windows.stride[k] = pick(i, stream + 2, 1, 3);
        if (i >= SHAPES)
            s.p.windows.dilation[k] = pick(i, stream + 5, 1, (s.in[k] - 1) / (s.p.windows.kernel[k] > 2 ? 2 : 1));
        s.p.windows.pad_lo[k] = pick(i, stream + 3, 0, reach_of(&s.p, k) / 2);
        s.p.windows.pad_hi[k] = pick(i, stream + 4, 0, reach_of(&s.p, k) / 2);
        s.out[k] = windows_of(&s.p, k, s.in[k]);
        if ((s.out[k] - 1) * s.p.windows.stride[k] >= s.in[k] + s.p.windows.pad_lo[k]) { /* wholly in the padding */
            s.p.windows.pad_hi[k] = 0;
            s.out[k] = windows_of(&s.p, k, s.in[k]);
        }
    }
    return s;
}

static cek__dims image(const shape *s, bool samples)
{
    cek__dims dims = { .rank = s->spatial + 1 + samples, .samples = samples, .size = { 1 } };

    dims.size[samples] = s->channels;
    for (int k = 0; k < s->spatial; k++)
        dims.size[samples + 1 + k] = s->in[k];
    return dims;
}

/* Of each step-th of the elements [first, end) in each direction of one channel; those outside count if there is a
 * divisor for them. */
static double window(const shape *s, const double *x, const int64_t *first, const int64_t *end, const int64_t *step,
                     int64_t divisor)
{
    double sum = 0, largest = -INFINITY;
    int64_t count = 0;

    for (int64_t a = first[0]; a < end[0]; a += step[0])
        for (int64_t b = first[1]; b < end[1]; b += step[1])
            for (int64_t c = first[2]; c < end[2]; c += step[2]) {
                if (a < 0 || b < 0 || c < 0 || a >= s->in[0] || b >= s->in[1] || c >= s->in[2])
                    continue;
                sum += x[(a * s->in[1] + b) * s->in[2] + c];
                largest = fmax(largest, x[(a * s->in[1] + b) * s->in[2] + c]);
                count++;
            }
    return s->p.mode == CEK_POOL_MAX ? largest : sum / (double)(divisor ? divisor : count);
}

/* Windows by their number: of a pool, or to a size. */
static void expect(const shape *s, bool to_size, const double *x, double *y)
{
    int64_t out = s->out[0] * s->out[1] * s->out[2], in = s->in[0] * s->in[1] * s->in[2];

    for (int64_t i = 0; i < ROWS * s->channels * out; i++) {
        int64_t at[3] = { i % out / (s->out[1] * s->out[2]), i % out / s->out[2] % s->out[1], i % s->out[2] };
        int64_t first[3], end[3], step[3], divisor = 1;

        for (int k = 0; k < 3; k++) {
            const cek__windows *w = &s->p.windows;

            first[k] = to_size ? at[k] * s->in[k] / s->out[k] : at[k] * w->stride[k] - w->pad_lo[k];
            end[k] = to_size ? ((at[k] + 1) * s->in[k] + s->out[k] - 1) / s->out[k] : first[k] + reach_of(&s->p, k);
            step[k] = to_size ? 1 : w->dilation[k];
            if (!to_size && end[k] > s->in[k] + w->pad_hi[k])
                end[k] = s->in[k] + w->pad_hi[k];
            divisor *= (end[k] - first[k] + step[k] - 1) / step[k];
        }
        y[i] = window(s, x + i / out * in, first, end, step, s->p.count_pad && !to_size ? divisor : 0);
    }
}

static int pool_add(net *n, const shape *s, bool to_size, bool varied)
{
    int x = samples(n, image(s, true)), y;

    if (varied)
        x = chain(n, CEK_PW_MUL, x, parameter(n, image(s, false), 0.5, 1));
    if (to_size)
        assert_ok(cek__pool_to(&n->graph, x, s->p.mode, s->out, &y));
    else
        assert_ok(cek__pool(&n->graph, x, &s->p, &y));
    for (int k = 0; k < s->spatial; k++)
        ck_assert_int_eq(n->graph.flows[y].dims.size[2 + k], s->out[k]);
    return y;
}

static void compare(const shape *s, bool to_size)
{
    static net n;
    static double got[ROOM], want[ROOM], x[ROOM];
    int64_t pixels = s->in[0] * s->in[1] * s->in[2], count;

    net_open(&n);
    count = values_of(&n, pool_add(&n, s, to_size, false), got);
    reordered(n.samples, x, ROWS * s->channels * pixels,
              s->spatial == 2 ? cek__image_of(s->channels, pixels) : (cek__image){ 0, 0 }, true);
    expect(s, to_size, x, want);
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(fabs(got[i] - want[i]) <= 1e-14, "element %lld: %.17g, expected %.17g", (long long)i, got[i],
                      want[i]);
    net_open(&n);
    gradients_are_right(&n, pool_add(&n, s, to_size, true), to_size ? "pool to a size" : "pool");
}

START_TEST(pools)
{
    shape s = shape_of(_i);

    compare(&s, false);
}
END_TEST

/* To less, to as much, to more than there is. */
START_TEST(pools_to_a_size)
{
    shape s = shape_of(_i);

    for (int k = 0; k < s.spatial; k++)
        s.out[k] = pick(_i, 50 + (uint64_t)k, 1, s.in[k] + (_i % 5 == 0));
    compare(&s, true);
}
END_TEST

START_TEST(what_does_not_fit_is_refused)
{
    static net n;
    cek__pooling p = { .mode = CEK_POOL_MAX, .windows = { .kernel = { 3, 3 }, .stride = { 1, 1 } } };
    int x, y;

    net_open(&n);
    x = samples(&n, PER_SAMPLE(1, 2, 4));
    ck_assert_int_eq(cek__pool(&n.graph, x, &p, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "pool: a window is larger than the image"));
    p.windows.pad_lo[0] = 3;
    ck_assert_int_eq(cek__pool(&n.graph, x, &p, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "pool: padding that is not less than the window"));
    p.windows = (cek__windows){ .kernel = { 2, 2 }, .stride = { 3, 1 }, .pad_hi = { 1 } };
    assert_ok(cek__pool(&n.graph, x, &p, &y));
    p.windows = (cek__windows){ .kernel = { 2, 2 }, .stride = { 1, 1 }, .pad_hi = { 1 }, .dilation = { 3, 1 } };
    ck_assert_int_eq(cek__pool(&n.graph, x, &p, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "or a window larger than the image"));
    p.windows.pad_lo[0] = 1;
    ck_assert_int_eq(cek__pool(&n.graph, x, &p, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "a dilation of 3 of an axis of 2 elements and padding"));
    p.windows = (cek__windows){ .kernel = { 2, 2 }, .stride = { 3, 1 }, .pad_hi = { 4 }, .dilation = { 2, 1 } };
    ck_assert_int_eq(cek__pool(&n.graph, x, &p, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "wholly in the padding"));
    p.windows = (cek__windows){ .kernel = { 3, 2 }, .stride = { 2, 1 }, .pad_hi = { 3 } };
    ck_assert_int_eq(cek__pool(&n.graph, x, &p, &y), CEK_INVALID);
    ck_assert_int_eq(cek__pool_to(&n.graph, x, CEK_POOL_MAX, (int64_t[]){ 1, 0 }, &y), CEK_INVALID);
    p.windows = (cek__windows){ .kernel = { 1, 2 }, .stride = { 1, 4 }, .pad_hi = { 0, 1 } };
    x = samples(&n, PER_SAMPLE(1, 2, 5));
    assert_ok(cek__pool(&n.graph, x, &p, &y));
    p.windows = (cek__windows){ .kernel = { 1, 3 }, .stride = { 1, 5 }, .pad_hi = { 0, 3 } };
    ck_assert_int_eq(cek__pool(&n.graph, x, &p, &y), CEK_INVALID);
    p.windows = (cek__windows){ .kernel = { FAR, 1 }, .stride = { 1, 1 }, .dilation = { FAR, 1 } };
    ck_assert_int_eq(cek__pool(&n.graph, x, &p, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "or a window larger than the image"));
    p.windows = (cek__windows){
        .kernel = { 2, 2, 2 }, .stride = { 1, 1, 1 }, .pad_hi = { FAR, FAR, FAR }, .dilation = { FAR, FAR, FAR }
    };
    x = samples(&n, PER_SAMPLE(1, 1, 1, 1));
    ck_assert_int_eq(cek__pool(&n.graph, x, &p, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "pool: an image of more than 2^63 elements"));
    net_close(&n);
}
END_TEST

/* However far the elements beside a window's only one would be. */
START_TEST(windows_of_one_element_have_no_dilation)
{
    static net n;
    cek__pooling p = { .mode = CEK_POOL_AVERAGE, .windows = { .kernel = { 1, 2 }, .stride = { 1, 1 } } };
    int x, y, flows;

    net_open(&n);
    x = samples(&n, PER_SAMPLE(1, 4, 6));
    memcpy(p.windows.dilation, (int64_t[]){ 3000000, 2 }, 2 * sizeof *p.windows.dilation);
    flows = n.graph.flow_count;
    assert_ok(cek__pool(&n.graph, x, &p, &y));
    ck_assert_int_gt(n.graph.flow_count, flows);
    for (; flows < n.graph.flow_count; flows++)
        ck_assert_int_le(cek__dims_elements(&n.graph.flows[flows].dims, 0, n.graph.flows[flows].dims.rank, 1), 4 * 6);
    net_close(&n);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph_pool");
    TCase *tcase = tcase_create("graph_pool");

    tcase_add_loop_test(tcase, pools, 0, 2 * SHAPES);
    tcase_add_loop_test(tcase, pools_to_a_size, 0, SHAPES);
    tcase_add_test(tcase, windows_of_one_element_have_no_dilation);
    tcase_add_test(tcase, what_does_not_fit_is_refused);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
