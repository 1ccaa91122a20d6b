/* graph_conv.c - convolutions of random shapes: what they give against plain loops, their
 * gradients against differences. */
#include "tests/graph_check.h"

enum { SHAPES = 20 };

/* A convolution of `in` to `out`, by axis behind the channels; those that are not there are 1. */
typedef struct shape {
    int spatial;
    int64_t channels, outputs, groups, in[3], kernel[3], out[3];
    cek__windows windows;
} shape;

/* Of case i: windows that fit; every fifth with as much padding as keeps the size. */
static shape shape_of(int i)
{
    shape s = { .spatial = 1 + i % 3, .in = { 1, 1, 1 }, .kernel = { 1, 1, 1 }, .out = { 1, 1, 1 } };

    s.groups = pick(i, 1, 1, 3);
    s.channels = s.groups * pick(i, 2, 1, 2);
    s.outputs = s.groups * pick(i, 3, 1, 2);
    for (int k = 0; k < s.spatial; k++) {
        uint64_t stream = 10 * (uint64_t)(k + 1);
        int64_t room;

        s.in[k] = pick(i, stream, 2, s.spatial < 3 ? 6 : 4);
        s.kernel[k] = pick(i, stream + 1, 1, 3);
        s.windows.stride[k] = pick(i, stream + 2, 1, 2);
        s.windows.dilation[k] = pick(i, stream + 3, 1, 2);
        s.windows.pad_lo[k] = pick(i, stream + 4, 0, 2);
        s.windows.pad_hi[k] = pick(i, stream + 5, 0, 2);
        if (i % 5 == 0)
            cek__windows_same(&s.windows, k, s.in[k], s.kernel[k]);
        room = s.in[k] + s.windows.pad_lo[k] + s.windows.pad_hi[k] - s.windows.dilation[k] * (s.kernel[k] - 1);
        if (room < 1) {
            s.windows.pad_hi[k] += 1 - room;
            room = 1;
        }
        s.out[k] = (room - 1) / s.windows.stride[k] + 1;
        if (i % 5 == 0)
            ck_assert_int_eq(s.out[k], (s.in[k] + s.windows.stride[k] - 1) / s.windows.stride[k]);
    }
    for (int k = s.spatial; k < 3; k++)
        s.windows.stride[k] = s.windows.dilation[k] = 1;
    return s;
}

static cek__dims image(const shape *s, int64_t channels, const int64_t *size, bool samples)
{
    cek__dims dims = { .rank = s->spatial + 1 + samples, .samples = samples, .size = { 1 } };

    dims.size[samples] = channels;
    for (int k = 0; k < s->spatial; k++)
        dims.size[samples + 1 + k] = size[k];
    return dims;
}

static cek__dims weights(const shape *s)
{
    cek__dims dims = { .rank = s->spatial + 2, .size = { s->outputs, s->channels / s->groups } };

    for (int k = 0; k < s->spatial; k++)
        dims.size[2 + k] = s->kernel[k];
    return dims;
}

static int64_t volume(const int64_t *size)
{
    return size[0] * size[1] * size[2];
}

/* Position `at` of a box, as three. */
static void position_of(int64_t at, const int64_t *size, int64_t *to)
{
    for (int k = 3; k-- > 0; at /= size[k])
        to[k] = at % size[k];
}

/* For every product of x and w in y: visit(x's place, w's place, y's place), in one image. */
typedef void visitor(double *x, double *w, double *y);
static void visit_all(const shape *s, double *x, double *w, double *y, visitor *visit)
{
    int64_t in = volume(s->in), out = volume(s->out), kernel = volume(s->kernel);
    int64_t ic = s->channels / s->groups, oc = s->outputs / s->groups;

    for (int64_t o = 0; o < s->outputs; o++)
        for (int64_t c = 0; c < ic; c++)
            for (int64_t p = 0; p < out * kernel; p++) {
                int64_t to[3], by[3], at[3];
                bool inside = true;

                position_of(p / kernel, s->out, to);
                position_of(p % kernel, s->kernel, by);
                for (int k = 0; k < 3; k++) {
                    at[k] = to[k] * s->windows.stride[k] + by[k] * s->windows.dilation[k] - s->windows.pad_lo[k];
                    inside &= at[k] >= 0 && at[k] < s->in[k];
                }
                if (inside)
                    visit(&x[((o / oc) * ic + c) * in + (at[0] * s->in[1] + at[1]) * s->in[2] + at[2]],
                          &w[(o * ic + c) * kernel + p % kernel], &y[o * out + p / kernel]);
            }
}

static void forward(double *x, double *w, double *y)
{
    *y += *x * *w;
}

static void backward(double *x, double *w, double *y)
{
    *x += *y * *w;
}

/* How samples of the shape come: images as images lie, all others by their axes. */
static cek__image lies(const shape *s, int64_t channels, const int64_t *size)
{
    return s->spatial == 2 ? cek__image_of(channels, volume(size)) : (cek__image){ 0, 0 };
}

/* x or y in the shape's place, by samples alone or with a parameter's share in it. */
static int source(net *n, const shape *s, int64_t channels, const int64_t *size, bool varied)
{
    int x = samples(n, image(s, channels, size, true));

    return varied ? chain(n, CEK_PW_MUL, x, parameter(n, image(s, channels, size, false), -1, 1)) : x;
}

static int conv_add(net *n, const shape *s, bool varied)
{
    cek__part conv = { .kind = CEK__PART_CONV, .inputs = 2, .conv = { s->windows, s->groups } };
    int y;

    conv.input[1] = parameter(n, weights(s), -1, 1);
    conv.input[0] = source(n, s, s->channels, s->in, varied);
    assert_ok(cek__graph_add(&n->graph, &conv, &y));
    return y;
}

/* The other way: the rest of each axis that no window reaches is asked for. */
static int transposed_add(net *n, const shape *s, bool varied)
{
    int w = parameter(n, weights(s), -1, 1), x = source(n, s, s->outputs, s->out, varied), y;
    int64_t more[3];

    for (int k = 0; k < 3; k++)
        more[k] =
            (s->in[k] + s->windows.pad_lo[k] + s->windows.pad_hi[k] - s->windows.dilation[k] * (s->kernel[k] - 1) - 1) %
            s->windows.stride[k];
    assert_ok(cek__conv_transposed(&n->graph, x, w, &s->windows, s->groups, more, &y));
    return y;
}

static void all_are(const double *got, const double *want, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(fabs(got[i] - want[i]) <= 1e-13 * fmax(1, fabs(want[i])) * 64,
                      "element %lld: %.17g, expected %.17g", (long long)i, got[i], want[i]);
}

START_TEST(what_a_convolution_gives)
{
    static net n;
    static double got[ROOM], want[ROOM], x[ROOM];
    shape s = shape_of(_i);
    int64_t in = s.channels * volume(s.in), out = s.outputs * volume(s.out);

    net_open(&n);
    ck_assert_int_eq(values_of(&n, conv_add(&n, &s, false), got), ROWS * out);
    memset(want, 0, sizeof want);
    reordered(n.samples, x, ROWS * in, lies(&s, s.channels, s.in), true);
    for (int r = 0; r < ROWS; r++)
        visit_all(&s, x + r * in, n.theta[0], want + r * out, forward);
    all_are(got, want, ROWS * out);

    net_open(&n);
    ck_assert_int_eq(values_of(&n, transposed_add(&n, &s, false), got), ROWS * in);
    memset(want, 0, sizeof want);
    reordered(n.samples, x, ROWS * out, lies(&s, s.outputs, s.out), true);
    for (int r = 0; r < ROWS; r++)
        visit_all(&s, want + r * in, n.theta[0], x + r * out, backward);
    all_are(got, want, ROWS * in);
}
END_TEST

START_TEST(gradients)
{
    static net n;
    shape s = shape_of(_i);

    net_open(&n);
    gradients_are_right(&n, conv_add(&n, &s, true), "convolution");
    net_open(&n);
    gradients_are_right(&n, transposed_add(&n, &s, true), "transposed convolution");
}
END_TEST

/* With a bias and an activation, which the device may do at once. */
START_TEST(a_layer_of_either)
{
    static net n;
    shape s = shape_of(_i);
    int64_t channels = _i & 1 ? s.channels : s.outputs;
    cek__dims along = { .rank = s.spatial + 1, .size = { channels, 1, 1, 1 } };
    int y, bias;

    net_open(&n);
    y = _i & 1 ? transposed_add(&n, &s, true) : conv_add(&n, &s, true);
    assert_ok(cek__view(&n.graph, parameter(&n, AXES(channels), -1, 1), &along, &bias));
    gradients_are_right(&n, chain(&n, CEK_PW_TANH, chain(&n, CEK_PW_ADD, y, bias), CEK__NOTHING), "layer");
}
END_TEST

START_TEST(what_does_not_fit_is_refused)
{
    static net n;
    const int64_t more[3] = { 2, 2 };
    cek__windows windows = { .stride = { 2, 2 }, .dilation = { 1, 1 } };
    cek__part conv = { .kind = CEK__PART_CONV, .inputs = 2, .conv = { windows, 1 } };
    int x, w, y;

    net_open(&n);
    x = samples(&n, PER_SAMPLE(2, 4, 4));
    w = parameter(&n, AXES(3, 2, 5, 1), -1, 1);
    conv.input[0] = x;
    conv.input[1] = w;
    ck_assert_int_eq(cek__graph_add(&n.graph, &conv, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "conv: a window is larger than the image"));
    conv.conv.groups = 2;
    ck_assert_int_eq(cek__graph_add(&n.graph, &conv, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "conv: weights that do not fit the image"));
    conv.conv.groups = 1;
    conv.conv.windows.stride[0] = 0;
    ck_assert_int_eq(cek__graph_add(&n.graph, &conv, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "conv: a stride or dilation below 1"));
    conv.conv.windows.stride[0] = 1;
    conv.conv.windows.dilation[0] = INT64_C(1) << 62; /* four times that is 0 modulo 2^64 */
    ck_assert_int_eq(cek__graph_add(&n.graph, &conv, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "conv: a window is larger than the image"));
    w = parameter(&n, AXES(2, 3, 2, 2), -1, 1);
    ck_assert_int_eq(cek__conv_transposed(&n.graph, x, w, &windows, 1, more, &y), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "conv_data: an image that no window over the result reaches so"));
    net_close(&n);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph_conv");
    TCase *tcase = tcase_create("graph_conv");

    tcase_add_loop_test(tcase, what_a_convolution_gives, 0, SHAPES);
    tcase_add_loop_test(tcase, gradients, 0, SHAPES);
    tcase_add_loop_test(tcase, a_layer_of_either, 0, SHAPES);
    tcase_add_test(tcase, what_does_not_fit_is_refused);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
