/* graph_padding.c - what samples hold that do not count changes no loss, no gradient, no statistic and no count,
 * to the bit.
 *
 * A case for each part of parts.h: a part without one fails. */
#include "tests/graph_check.h"

enum { COUNT = 2 /* of ROWS */, CLASSES = 3 };

static int add(net *n, const cek__part *part)
{
    int out;

    assert_ok(cek__graph_add(&n->graph, part, &out));
    return out;
}

/* Samples [N,...] times a parameter for each of their elements. */
static int scaled(net *n, cek__dims dims)
{
    cek__dims each = { .rank = dims.rank - 1 };

    memcpy(each.size, dims.size + 1, (size_t)each.rank * sizeof *each.size);
    return chain(n, CEK_PW_MUL, samples(n, dims), parameter(n, each, -2, 2));
}

static void loss_is(net *n, int gradient)
{
    n->graph.loss = n->graph.flows[gradient].part;
}

/* ---- cases: the flow whose squared error is the loss, or none where there is a loss already ---- */

static int product(net *n)
{
    cek__part p = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 0, 1, false }, { 0, 1, true } } };

    p.input[0] = scaled(n, PER_SAMPLE(4));
    p.input[1] = parameter(n, AXES(3, 4), -1, 1);
    return chain(n, CEK_PW_ADD, add(n, &p), parameter(n, AXES(3), -1, 1)); /* whose gradient is a sum beside */
}

/* Forward, and both ways back. */
static int conv(net *n)
{
    cek__part p = { .kind = CEK__PART_CONV, .inputs = 2, .conv = { .groups = 1 } };

    for (int i = 0; i < CEK_SPATIAL_MAX; i++)
        p.conv.windows.stride[i] = p.conv.windows.dilation[i] = 1;
    p.input[0] = scaled(n, PER_SAMPLE(2, 5, 4));
    p.input[1] = parameter(n, AXES(3, 2, 3, 2), -1, 1);
    return chain(n, CEK_PW_ADD, add(n, &p), parameter(n, AXES(3, 1, 1), -1, 1));
}

static int pool(net *n)
{
    cek__part p = { .kind = CEK__PART_POOL, .inputs = 1, .pool = { .mode = CEK_POOL_MAX } };

    for (int i = 0; i < CEK_SPATIAL_MAX; i++)
        p.pool.windows.kernel[i] = p.pool.windows.stride[i] = p.pool.windows.dilation[i] = 2 - (i > 1);
    for (int i = 0; i < CEK_SPATIAL_MAX; i++)
        p.pool.windows.dilation[i] = 1;
    p.input[0] = scaled(n, PER_SAMPLE(2, 4, 4));
    return add(n, &p);
}

static int elements(net *n)
{
    return chain(n, CEK_PW_TANH, scaled(n, PER_SAMPLE(5)), 0);
}

/* Over the samples too: each less the mean of all. */
static int reduction(net *n)
{
    int x = scaled(n, PER_SAMPLE(4)), mean;

    assert_ok(cek__reduce_masked(&n->graph, x, CEK_REDUCE_MEAN, 1, &mean));
    return chain(n, CEK_PW_SUB, x, chain(n, CEK_PW_SIN, mean, 0));
}

/* An image, flattened for a product, lies otherwise than its axes are. */
static int views(net *n)
{
    cek__part p = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 0, 1, false }, { 0, 1, true } } };
    int x;

    assert_ok(cek__softmax(&n->graph, scaled(n, PER_SAMPLE(2, 3, 2)), 1, &x));
    assert_ok(cek__view(&n->graph, x, &PER_SAMPLE(12), &p.input[0]));
    p.input[1] = parameter(n, AXES(2, 12), -1, 1);
    return add(n, &p);
}

static int permuted(net *n)
{
    int y;

    assert_ok(cek__permute(&n->graph, scaled(n, PER_SAMPLE(2, 3)), (int[]){ 0, 2, 1 }, &y));
    return chain(n, CEK_PW_MUL, y, parameter(n, AXES(3, 2), -1, 1));
}

static int padded(net *n)
{
    int y;

    assert_ok(cek__pad(&n->graph, scaled(n, PER_SAMPLE(4)), (int64_t[]){ 0, 2 }, (int64_t[]){ 0, -1 }, 0.5, &y));
    return y;
}

static int joined(net *n)
{
    int x = scaled(n, PER_SAMPLE(4)), y;

    assert_ok(cek__concat(&n->graph, (int[]){ x, chain(n, CEK_PW_SIN, x, 0) }, 2, 1, &y));
    return y;
}

/* Padding names rows too, others. */
static int gathered(net *n)
{
    int index = ids(n, PER_SAMPLE(4), 5), y;

    assert_ok(cek__gather(&n->graph, parameter(n, AXES(5, 3), -1, 1), index, 0, &y));
    return y;
}

static int scattered(net *n)
{
    int index = ids(n, PER_SAMPLE(4), 5), rows, y;

    assert_ok(cek__expand(&n->graph, parameter(n, AXES(4, 2), -1, 1), &PER_SAMPLE(4, 2), &rows));
    assert_ok(cek__scatter_add(&n->graph, rows, index, 1, &PER_SAMPLE(5, 2), &y));
    return y;
}

/* The row that the largest element names. */
static int brightest(net *n)
{
    int x = samples(n, PER_SAMPLE(5)), index, y;

    assert_ok(cek__arg(&n->graph, x, CEK_ARG_MAX, 1, &index));
    assert_ok(cek__gather(&n->graph, parameter(n, AXES(5, 3), -1, 1), index, 0, &y));
    return y;
}

static int dropped(net *n)
{
    cek__part p = { .kind = CEK__PART_DROPOUT, .inputs = 1, .dropout = { .p = 0.25, .stream = 3 } };

    p.input[0] = scaled(n, PER_SAMPLE(8));
    return add(n, &p);
}

static int noise(net *n)
{
    const cek__part p = { .kind = CEK__PART_RANDOM, .dims = PER_SAMPLE(4), .random = { 0, 1, CEK_RANDOM_NORMAL, 9 } };

    return chain(n, CEK_PW_MUL, scaled(n, PER_SAMPLE(4)), add(n, &p));
}

static int softmax(net *n)
{
    int y;

    assert_ok(cek__softmax(&n->graph, scaled(n, PER_SAMPLE(4)), 1, &y));
    return y;
}

static int cross_entropy(net *n)
{
    const cek__part target = { .kind = CEK__PART_TARGET,
                               .dims = { .rank = 1, .samples = 1, .size = { 1 } },
                               .type = CEK_I32 };
    cek__part p = { .kind = CEK__PART_CROSS_ENTROPY, .inputs = 2 };
    const int32_t labels[ROWS] = { 2, 0, 1 };

    p.input[0] = scaled(n, PER_SAMPLE(CLASSES));
    p.input[1] = add(n, &target);
    memcpy(n->target, labels, sizeof labels);
    loss_is(n, add(n, &p));
    return CEK__NOTHING;
}

/* How many answers are right, beside a loss of another kind. */
static int hits(net *n)
{
    const cek__part target = { .kind = CEK__PART_TARGET,
                               .dims = { .rank = 1, .samples = 1, .size = { 1 } },
                               .type = CEK_I32 };
    cek__part p = { .kind = CEK__PART_HITS, .inputs = 2 };
    const int32_t labels[ROWS] = { 2, 0, 1 };
    int out;

    p.input[0] = scaled(n, PER_SAMPLE(CLASSES));
    p.input[1] = add(n, &target);
    memcpy(n->target, labels, sizeof labels);
    assert_ok(cek__loss(&n->graph, chain(n, CEK_PW_MUL, p.input[0], p.input[0]), CEK__NOTHING, &out));
    loss_is(n, out);
    n->graph.hits = n->graph.part_count;
    assert_ok(cek__graph_add(&n->graph, &p, &out));
    return CEK__NOTHING;
}

static int own_loss(net *n)
{
    int out, x = scaled(n, PER_SAMPLE(4));

    assert_ok(cek__loss(&n->graph, chain(n, CEK_PW_MUL, x, x), CEK__NOTHING, &out));
    loss_is(n, out);
    return CEK__NOTHING;
}

/* A buffer is read, and what the batch has in common goes into another. */
static int statistics(net *n)
{
    const cek__part buffer = { .kind = CEK__PART_BUFFER, .dims = AXES(4) };
    cek__part contribute = { .kind = CEK__PART_CONTRIBUTE, .inputs = 1, .buffer = { .at = 32, .momentum = 0.25 } };
    int x = scaled(n, PER_SAMPLE(4)), out;

    assert_ok(cek__reduce_masked(&n->graph, x, CEK_REDUCE_SUM_SQUARES, 1, &contribute.input[0]));
    assert_ok(cek__graph_add(&n->graph, &contribute, &out));
    return chain(n, CEK_PW_ADD, x, add(n, &buffer));
}

static int phase(net *n)
{
    cek__part p = { .kind = CEK__PART_PHASE, .inputs = 2 };

    p.input[0] = scaled(n, PER_SAMPLE(4));
    p.input[1] = chain(n, CEK_PW_EXP, p.input[0], 0);
    return add(n, &p);
}

static int (*const cases[CEK__PART_COUNT])(net *) = {
    [CEK__PART_INPUT] = elements,
    [CEK__PART_TARGET] = elements,
    [CEK__PART_PARAMETER] = elements,
    [CEK__PART_PRODUCT] = product,
    [CEK__PART_CONV] = conv,
    [CEK__PART_CONV_DATA] = conv,
    [CEK__PART_CONV_WEIGHTS] = conv,
    [CEK__PART_POOL] = pool,
    [CEK__PART_POOL_BACK] = pool,
    [CEK__PART_CHAIN] = elements,
    [CEK__PART_REDUCE] = reduction,
    [CEK__PART_VIEW] = views,
    [CEK__PART_REORDER] = views,
    [CEK__PART_PERMUTE] = permuted,
    [CEK__PART_PAD] = padded,
    [CEK__PART_CONCAT] = joined,
    [CEK__PART_GATHER] = gathered,
    [CEK__PART_SCATTER_ADD] = scattered,
    [CEK__PART_ARG] = brightest,
    [CEK__PART_DROPOUT] = dropped,
    [CEK__PART_RANDOM] = noise,
    [CEK__PART_SOFTMAX] = softmax,
    [CEK__PART_CROSS_ENTROPY] = cross_entropy,
    [CEK__PART_SQUARED_ERROR] = elements,
    [CEK__PART_BUFFER] = statistics,
    [CEK__PART_CONTRIBUTE] = statistics,
    [CEK__PART_PHASE] = phase,
    [CEK__PART_LOSS] = own_loss,
    [CEK__PART_HITS] = hits,
};

/* ---- what must not change ---- */

typedef struct outcome {
    double loss, gradients[PARAMETERS][ROOM], statistics[BUFFERS];
    uint64_t correct;
} outcome;

/* Whatever is in samples, indices and targets behind those that count; labels are then no class. */
static void garbage_fill(net *n, int garbage, bool labels)
{
    const double values[] = { 0.5, 1e30, -3e25 };
    const int64_t input = n->inputs / ROWS * COUNT, output = n->outputs / ROWS * COUNT;

    for (int64_t i = input; i < ROOM; i++)
        n->samples[i] = values[garbage] * (i % 2 ? 1 : -0.75);
    for (int64_t i = COUNT * 4; i < ROOM; i++) /* of indices there are four a sample */
        n->ids[i] = (int32_t)((i + garbage) % 5);
    for (int64_t i = output; i < ROOM && !labels; i++)
        n->target[i] = values[garbage];
    if (labels)
        memcpy((int32_t *)n->target + COUNT, (int32_t[]){ (int32_t[]){ 1, 1000000, -7 }[garbage] }, 4);
}

static bool has_part(const net *n, int kind)
{
    bool has = false;

    for (int i = 0; i < n->graph.part_count; i++)
        has |= n->graph.parts[i].kind == (cek__part_kind)kind;
    return has;
}

static void outcome_of(int kind, int garbage, outcome *out, bool *any)
{
    static net n;
    int y;

    net_open(&n);
    n.valid = COUNT;
    y = cases[kind](&n);
    if (!n.graph.loss)
        loss_add(&n, y);
    garbage_fill(&n, garbage, kind == CEK__PART_CROSS_ENTROPY || kind == CEK__PART_HITS);
    gradients_of(&n, CEK__NOTHING, out->gradients);
    ck_assert_msg(has_part(&n, kind), "the case for part kind %d has none", kind);
    bench_download(&n.b, &out->loss, n.loss, sizeof out->loss);
    bench_download(&n.b, out->statistics, n.statistics, sizeof out->statistics);
    bench_download(&n.b, &out->correct, n.correct, sizeof out->correct);
    for (int i = 0; i < n.count; i++)
        for (int64_t k = 0; k < n.size[i]; k++) {
            ck_assert(isfinite(out->gradients[i][k]));
            *any |= out->gradients[i][k] != 0;
        }
    net_close(&n);
}

START_TEST(what_padding_holds_changes_nothing)
{
    static outcome first, other;
    bool any = false;

    ck_assert_msg(cases[_i] != NULL, "part kind %d has no case", _i);
    memset(&first, 0, sizeof first);
    outcome_of(_i, 0, &first, &any);
    ck_assert(isfinite(first.loss) && first.loss != 0 && any);
    if (_i == CEK__PART_CONTRIBUTE)
        ck_assert_double_gt(first.statistics[32], 0);
    for (int garbage = 1; garbage < 3; garbage++) {
        memset(&other, 0, sizeof other);
        outcome_of(_i, garbage, &other, &any);
        ck_assert_mem_eq(&first, &other, sizeof first);
    }
}
END_TEST

/* Whatever the scores are, each row that counts is right for one of the classes. */
START_TEST(each_row_that_counts_is_right_once)
{
    static net n;
    static outcome out;
    int32_t sum = 0;

    for (int32_t label = 0; label < CLASSES; label++) {
        const int32_t labels[ROWS] = { label, label, label };
        int32_t right;

        net_open(&n);
        n.valid = COUNT;
        ck_assert_int_eq(hits(&n), CEK__NOTHING);
        memcpy(n.target, labels, sizeof labels);
        gradients_of(&n, CEK__NOTHING, out.gradients);
        bench_download(&n.b, &right, n.correct, sizeof right);
        sum += right;
        net_close(&n);
    }
    ck_assert_int_eq(sum, COUNT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph_padding");
    TCase *tcase = tcase_create("graph_padding");

    tcase_add_loop_test(tcase, what_padding_holds_changes_nothing, CEK__PART_INPUT, CEK__PART_COUNT);
    tcase_add_test(tcase, each_row_that_counts_is_right_once);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
