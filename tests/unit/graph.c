/* graph.c - the parts: their gradients against central differences in double, what the passes make of small graphs, refusals.
 *
 * A network here is y = f(parameters, samples) with the loss sum of (y - target)^2; every parameter's gradient is compared
 * element by element with what the loss does when that element moves. */
#include "core/base/random.h"
#include "nn/graph/fuse.h"
#include "nn/graph/parts.h"
#include "nn/graph/physical.h"
#include "nn/graph/simplify.h"
#include "nn/program/binding.h"
#include "plan_run.h"
#include "tests/suite.h"

enum { ROWS = 3, PARAMETERS = 4, ROOM = 1 << 12 };

typedef struct net {
    bench b;
    cek__graph graph;
    cek__program program;
    int count;
    double theta[PARAMETERS][ROOM], samples[ROOM], target[ROOM];
    int64_t size[PARAMETERS], inputs, outputs;
    cek__image image[PARAMETERS];
    cek_ref input, targets, loss, parameters, gradients;
    cek__binding *binding;
    int length; /* of the program */
} net;

static double number(uint64_t stream, int64_t i)
{
    return cek__random_uniform(11, cek__stream(CEK__STREAM_USER, stream), (uint64_t)i);
}

static void net_open(net *n)
{
    *n = (net){ 0 };
    bench_open(&n->b, "reference:0");
    assert_ok(cek__graph_init(&n->graph));
    n->graph.node = 1;
    n->graph.name = "test";
}

/* A parameter with values in [low, high). */
static int parameter(net *n, cek__dims dims, double low, double high)
{
    cek__part part = { .kind = CEK__PART_PARAMETER, .dims = dims, .parameter = (size_t)n->count };
    int flow;

    assert_ok(cek__graph_add(&n->graph, &part, &flow));
    n->size[n->count] = cek__dims_elements(&dims, 0, dims.rank, ROWS);
    ck_assert_int_le(n->size[n->count], ROOM);
    for (int64_t i = 0; i < n->size[n->count]; i++)
        n->theta[n->count][i] = low + (high - low) * number((uint64_t)n->count + 1, i);
    n->count++;
    return flow;
}

static int samples(net *n, cek__dims dims)
{
    cek__part part = { .kind = CEK__PART_INPUT, .dims = dims };
    int flow;

    assert_ok(cek__graph_add(&n->graph, &part, &flow));
    n->inputs = cek__dims_elements(&dims, 0, dims.rank, ROWS);
    ck_assert_int_le(n->inputs, ROOM);
    for (int64_t i = 0; i < n->inputs; i++)
        n->samples[i] = 2 * number(90, i) - 1;
    return flow;
}

static cek__dims dims(int rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (cek__dims){ .rank = rank, .size = { a, b, c, d } };
}

static cek__dims per_sample(int rank, int64_t b, int64_t c, int64_t d)
{
    return (cek__dims){ .rank = rank, .samples = 1, .size = { 1, b, c, d } };
}

static int chain(net *n, uint32_t code, int a, int b)
{
    int out;

    assert_ok(cek__chain(&n->graph, code, a, b, &out));
    return out;
}

static void loss_add(net *n, int y)
{
    const cek__dims *dims = &n->graph.flows[y].dims;
    cek__part target = { .kind = CEK__PART_TARGET, .type = CEK_F64 },
              loss = { .kind = CEK__PART_SQUARED_ERROR, .inputs = 2 };
    int out;

    n->outputs = cek__dims_elements(dims, 0, dims->rank, ROWS);
    ck_assert_int_le(n->outputs, ROOM);
    assert_ok(cek__view(&n->graph, y, &(cek__dims){ .rank = 2, .samples = 1, .size = { 1, n->outputs / ROWS } }, &y));
    target.dims = n->graph.flows[y].dims;
    assert_ok(cek__graph_add(&n->graph, &target, &loss.input[1]));
    loss.input[0] = y;
    assert_ok(cek__graph_add(&n->graph, &loss, &out));
    n->graph.loss = n->graph.flows[out].part;
    for (int64_t i = 0; i < n->outputs; i++)
        n->target[i] = number(91, i);
}

static void passes(net *n)
{
    cek__simplify(&n->graph, true);
    assert_ok(cek__differentiate(&n->graph));
    assert_ok(cek__physical(&n->graph));
    cek__fuse(&n->graph);
}

/* [outer][channels][pixels] as they are numbered to [outer][pixels][channels] as they lie, or back. */
static void reordered(const double *from, double *to, int64_t count, cek__image image, bool back)
{
    int64_t all = image.channels * image.pixels;

    memcpy(to, from, (size_t)count * sizeof *to);
    for (int64_t i = 0; all && i < count; i++) {
        int64_t lies = i / all * all + i % image.pixels * image.channels + i % all / image.pixels;

        to[back ? i : lies] = from[back ? lies : i];
    }
}

static void net_lower(net *n)
{
    int value[PARAMETERS], gradient[PARAMETERS];
    cek__lowering l = { .graph = &n->graph,
                        .program = &n->program,
                        .rows = ROWS,
                        .type = CEK_F64,
                        .input_type = CEK_F64,
                        .scale = 1,
                        .parameter = value,
                        .gradient = gradient };
    cek_step_block step = { .random_key = 5, .inv_n = f32x2(1), .loss_scale = { 1, 0 } };
    cek_batch_block batch = { .rows_valid = ROWS };
    cek__places places = { 0 };

    for (int i = 0; i < n->graph.part_count; i++)
        if (n->graph.parts[i].kind == CEK__PART_PARAMETER)
            n->image[n->graph.parts[i].parameter] = n->graph.flows[n->graph.parts[i].output[0]].image;
    assert_ok(cek__program_init(&n->program, n->b.device, 0));
    for (int i = 0; i < n->count; i++) {
        cek__value v = { .place = CEK__PLACE_PARAMETER,
                         .offset = (uint64_t)i * ROOM * 8,
                         .bytes = (uint64_t)n->size[i] * 8 };

        assert_ok(cek__program_value(&n->program, v, &value[i]));
        v.place = CEK__PLACE_GRADIENT;
        assert_ok(cek__program_value(&n->program, v, &gradient[i]));
    }
    assert_ok(cek__program_value(&n->program, (cek__value){ .place = CEK__PLACE_STEP, .bytes = sizeof step }, &l.step));
    assert_ok(cek__program_value(&n->program, (cek__value){ .place = CEK__PLACE_BATCH, .bytes = sizeof batch },
                                 &l.batch));
    assert_ok(cek__lower_begin(&l));
    assert_ok(cek__lower_forward(&l));
    assert_ok(cek__lower_backward(&l));
    cek__lower_end(&l);
    assert_ok(cek__program_finish(&n->program));
    n->parameters = bench_alloc(&n->b, PARAMETERS * ROOM * 8);
    n->gradients = bench_alloc(&n->b, PARAMETERS * ROOM * 8);
    n->input = bench_upload(&n->b, n->samples, sizeof n->samples);
    n->targets = bench_upload(&n->b, n->target, sizeof n->target);
    n->loss = bench_alloc(&n->b, 256);
    places.single[CEK__PLACE_INPUT] = n->input;
    places.single[CEK__PLACE_TARGET] = n->targets;
    places.single[CEK__PLACE_LOSS] = n->loss;
    places.single[CEK__PLACE_CORRECT] = bench_alloc(&n->b, 256);
    places.single[CEK__PLACE_STEP] = bench_upload(&n->b, &step, sizeof step);
    places.single[CEK__PLACE_BATCH] = bench_upload(&n->b, &batch, sizeof batch);
    places.arena = (cek_ref[]){ bench_alloc(&n->b, n->program.arena_bytes) };
    places.parameters = &n->parameters;
    places.gradients = &n->gradients;
    places.workspace = bench_alloc(&n->b, n->program.workspace_bytes);
    n->length = n->program.count;
    assert_ok(cek__binding_create(&n->program, &(const cek__stretch){ 0, n->length, false }, 1, &places, &n->binding));
}

static void net_close(net *n)
{
    cek__binding_free(n->binding);
    cek__program_clear(&n->program);
    cek__graph_clear(&n->graph);
    bench_close(&n->b);
}

/* The loss with the parameters as they are. */
static double net_run(net *n)
{
    double loss = 0, lies[ROOM];

    for (int i = 0; i < n->count; i++) {
        cek_ref at = n->parameters;

        at.offset += (uint64_t)i * ROOM * 8;
        reordered(n->theta[i], lies, n->size[i], n->image[i], false);
        assert_ok(n->b.plugin->upload(n->b.queue, at, lies, (uint64_t)n->size[i] * 8));
        assert_ok(n->b.plugin->queue_sync(n->b.queue, CEK_FOREVER));
    }
    assert_ok(n->b.plugin->upload(n->b.queue, n->loss, &loss, sizeof loss));
    assert_ok(n->b.plugin->queue_sync(n->b.queue, CEK_FOREVER));
    assert_ok(cek__binding_run(n->binding, n->b.stream, 0));
    bench_download(&n->b, &loss, n->loss, sizeof loss);
    return loss;
}

/* Makes the program of what was added, and compares all gradients; frees the net. */
static void gradients_are_right(net *n, int y, const char *what)
{
    const double h = 1e-5;
    double raw[ROOM], got[PARAMETERS][ROOM];

    loss_add(n, y);
    passes(n);
    net_lower(n);
    net_run(n);
    for (int i = 0; i < n->count; i++) {
        cek_ref at = n->gradients;

        at.offset += (uint64_t)i * ROOM * 8;
        bench_download(&n->b, raw, at, (uint64_t)n->size[i] * 8);
        reordered(raw, got[i], n->size[i], n->image[i], true);
    }
    for (int i = 0; i < n->count; i++)
        for (int64_t k = 0; k < n->size[i]; k++) {
            double *theta = &n->theta[i][k], was = *theta, up, down;

            *theta = was + h;
            up = net_run(n);
            *theta = was - h;
            down = net_run(n);
            *theta = was;
            ck_assert_msg(fabs((up - down) / (2 * h) - got[i][k]) <= 2e-7 * fmax(1, fabs(got[i][k]) * 10),
                          "%s: parameter %d, element %lld: %.12g by the part, %.12g by differences", what, i,
                          (long long)k, got[i][k], (up - down) / (2 * h));
        }
    net_close(n);
}

/* ---- gradients ---- */

typedef struct code_case {
    uint32_t code;
    int inputs;
    double low, high;
} code_case;
static const code_case codes[] = {
    { CEK_PW_COPY, 1, -1, 1 }, { CEK_PW_ADD, 2, -1, 1 },   { CEK_PW_SUB, 2, -1, 1 },     { CEK_PW_MUL, 2, -1, 1 },
    { CEK_PW_DIV, 2, 0.5, 2 }, { CEK_PW_MIN, 2, -1, 1 },   { CEK_PW_MAX, 2, -1, 1 },     { CEK_PW_NEG, 1, -1, 1 },
    { CEK_PW_ABS, 1, -1, 1 },  { CEK_PW_SQRT, 1, 0.5, 2 }, { CEK_PW_EXP, 1, -1, 1 },     { CEK_PW_LOG, 1, 0.5, 2 },
    { CEK_PW_RELU, 1, -1, 1 }, { CEK_PW_TANH, 1, -1, 1 },  { CEK_PW_SIGMOID, 1, -1, 1 }, { CEK_PW_GELU, 1, -1, 1 },
};

/* Alone, and as one of three instructions, so that its value has to be computed again; broadcast along every axis. */
START_TEST(instructions)
{
    const code_case *c = &codes[_i];
    static net n;

    for (int deep = 0; deep < 2; deep++) {
        cek__part part = { .kind = CEK__PART_CHAIN, .inputs = c->inputs, .chain = { .count = deep ? 3 : 1 } };
        int x, y;

        net_open(&n);
        part.input[0] = parameter(&n, dims(2, 3, 4, 0, 0), c->low, c->high);
        if (c->inputs > 1)
            part.input[1] = parameter(&n, _i % 2 ? dims(2, 3, 1, 0, 0) : dims(1, 4, 0, 0, 0), c->low, c->high);
        x = samples(&n, per_sample(3, 3, 4, 0));
        part.chain.code[0] = (cek_pointwise_instruction){ .code = c->code, .b = c->inputs > 1 };
        part.chain.code[1] =
            (cek_pointwise_instruction){ .code = CEK_PW_MUL_IMM, .a = (uint32_t)c->inputs, .imm = 1.5 };
        part.chain.code[2] =
            (cek_pointwise_instruction){ .code = CEK_PW_MUL, .a = (uint32_t)c->inputs + 1, .b = (uint32_t)c->inputs };
        assert_ok(cek__graph_add(&n.graph, &part, &y));
        gradients_are_right(&n, chain(&n, CEK_PW_MUL, y, x), "chain");
    }
}
END_TEST

/* Both operands either way round, with and without an axis that counts matrices. */
START_TEST(products)
{
    static net n;
    bool ta = _i & 1, tb = _i >> 1 & 1;
    int batch = _i >> 2 & 1, y;
    cek__part part = { .kind = CEK__PART_PRODUCT,
                       .inputs = 2,
                       .product = { { batch, batch + 1, ta }, { batch, batch + 1, tb } } };

    net_open(&n);
    part.input[0] = parameter(&n, batch ? dims(3, 2, ta ? 4 : 3, ta ? 3 : 4, 0) : dims(2, ta ? 4 : 3, ta ? 3 : 4, 0, 0),
                              -1, 1);
    part.input[1] = parameter(&n, batch ? dims(3, 2, tb ? 5 : 4, tb ? 4 : 5, 0) : dims(2, tb ? 5 : 4, tb ? 4 : 5, 0, 0),
                              -1, 1);
    assert_ok(cek__graph_add(&n.graph, &part, &y));
    gradients_are_right(
        &n, chain(&n, CEK_PW_MUL, y, samples(&n, batch ? per_sample(4, 2, 3, 5) : per_sample(3, 3, 5, 0))), "product");
}
END_TEST

/* A linear layer over the last of three axes: rows are samples times steps. */
START_TEST(rows_are_several_axes)
{
    static net n;
    int y, w, b, x;
    cek__part part = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 0, 2, false }, { 0, 1, true } } };

    net_open(&n);
    w = parameter(&n, dims(2, 5, 4, 0, 0), -1, 1);
    b = parameter(&n, dims(1, 5, 0, 0, 0), -1, 1);
    x = chain(&n, CEK_PW_MUL, samples(&n, per_sample(3, 2, 4, 0)), parameter(&n, dims(1, 4, 0, 0, 0), -1, 1));
    part.input[0] = x;
    part.input[1] = w;
    assert_ok(cek__graph_add(&n.graph, &part, &y));
    y = chain(&n, CEK_PW_ADD, y, b);
    gradients_are_right(&n, chain(&n, CEK_PW_TANH, y, CEK__NOTHING), "rows of two axes");
}
END_TEST

START_TEST(sums_softmax_and_a_parameter_read_twice)
{
    static net n;
    int w, x, y, sum;
    cek__part softmax = { .kind = CEK__PART_SOFTMAX, .inputs = 1 };

    net_open(&n);
    w = parameter(&n, dims(2, 3, 4, 0, 0), -1, 1);
    x = samples(&n, per_sample(3, 3, 4, 0));
    softmax.input[0] = chain(&n, CEK_PW_MUL, x, w);
    assert_ok(cek__graph_add(&n.graph, &softmax, &y));
    assert_ok(cek__sum(&n.graph, y, 1u << 1, &sum)); /* [N,4] */
    y = chain(&n, CEK_PW_MUL, y, w);
    assert_ok(cek__view(&n.graph, sum, &(cek__dims){ .rank = 3, .samples = 1, .size = { 1, 1, 4 } }, &sum));
    gradients_are_right(&n, chain(&n, CEK_PW_ADD, y, sum), "sum and softmax");
}
END_TEST

/* What makes passes go wrong: parameters read in several ways, given late, or lying otherwise than their gradients. */
START_TEST(odd_uses_of_parameters)
{
    static net n;
    int w, x, y, b, out;
    cek__part product = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 0, 1, false }, { 0, 1, true } } };

    net_open(&n);
    if (_i == 0) { /* itself beside what is made of it */
        w = parameter(&n, dims(1, 4, 0, 0, 0), -1, 1);
        x = samples(&n, per_sample(2, 4, 0, 0));
        y = chain(&n, CEK_PW_MUL, x, chain(&n, CEK_PW_ADD, chain(&n, CEK_PW_TANH, w, 0), w));
    } else if (_i == 1) { /* half of the weights behind a flattened image */
        cek__part half = { .kind = CEK__PART_CHAIN, .inputs = 1, .chain = { .count = 1 } };

        x = samples(&n, per_sample(4, 2, 3, 3));
        assert_ok(cek__view(&n.graph, x, &(cek__dims){ .rank = 2, .samples = 1, .size = { 1, 18 } },
                            &product.input[0]));
        half.input[0] = parameter(&n, dims(2, 5, 18, 0, 0), -1, 1);
        half.chain.code[0] = (cek_pointwise_instruction){ .code = CEK_PW_MUL_IMM, .imm = 0.5 };
        assert_ok(cek__graph_add(&n.graph, &half, &product.input[1]));
        assert_ok(cek__graph_add(&n.graph, &product, &y));
    } else if (_i == 2) { /* a factor for each group of an image's channels */
        x = samples(&n, per_sample(4, 8, 4, 4));
        assert_ok(cek__view(&n.graph, x, &(cek__dims){ .rank = 4, .samples = 1, .size = { 1, 4, 2, 16 } }, &x));
        y = chain(&n, CEK_PW_MUL, x, parameter(&n, dims(3, 4, 1, 1, 0), -1, 1));
    } else { /* biases: twice the same, of two axes, made of another, given behind the product */
        product.input[0] = samples(&n, per_sample(2, 4, 0, 0));
        product.input[1] = parameter(&n, dims(2, 5, 4, 0, 0), -1, 1);
        assert_ok(cek__graph_add(&n.graph, &product, &y));
        b = parameter(&n, _i == 4 ? dims(2, 1, 5, 0, 0) : dims(1, 5, 0, 0, 0), -1, 1);
        out = _i == 5 ? chain(&n, CEK_PW_TANH, b, 0) : b;
        y = chain(&n, CEK_PW_ADD, y, out);
        y = _i == 3 ? chain(&n, CEK_PW_ADD, y, b) : y;
    }
    gradients_are_right(&n, y, "odd use");
}
END_TEST

/* An image that is convolved and added: one gradient is added to the other in its place. */
START_TEST(residual)
{
    static net n;
    int x, y, w;
    cek__part conv = { .kind = CEK__PART_CONV, .inputs = 2 };

    net_open(&n);
    x = samples(&n, per_sample(4, 2, 4, 3));
    x = chain(&n, CEK_PW_MUL, x, parameter(&n, dims(3, 2, 1, 1, 0), -1, 1));
    conv.input[0] = x;
    conv.conv.groups = 1;
    conv.conv.windows =
        (cek__windows){ .stride = { 1, 1 }, .dilation = { 1, 1 }, .pad_lo = { 1, 1 }, .pad_hi = { 1, 1 } };
    w = parameter(&n, dims(4, 2, 2, 3, 3), -1, 1);
    conv.input[1] = w;
    assert_ok(cek__graph_add(&n.graph, &conv, &y));
    conv.input[0] = y = chain(&n, CEK_PW_RELU, y, 0);
    assert_ok(cek__graph_add(&n.graph, &conv, &w)); /* the same weights again */
    y = chain(&n, CEK_PW_ADD, y, w);
    gradients_are_right(&n, chain(&n, CEK_PW_ADD, y, x), "residual");
}
END_TEST

/* Convolutions and pools with one and two axes, padding on one side, dilation, groups, then dropout and a flattened product. */
START_TEST(windows)
{
    static net n;
    int spatial = 1 + (_i & 1), y, dropped, flat;
    uint32_t mode = _i & 2 ? CEK_POOL_AVERAGE : CEK_POOL_MAX;
    cek__part conv = { .kind = CEK__PART_CONV, .inputs = 2 }, pool = { .kind = CEK__PART_POOL, .inputs = 1 },
              dropout = { .kind = CEK__PART_DROPOUT, .inputs = 1 },
              product = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 0, 1, false }, { 0, 1, true } } };
    cek__dims bias = { .rank = spatial + 1, .size = { 4, 1, 1 } };
    int64_t features;

    net_open(&n);
    conv.input[1] = parameter(&n, spatial == 1 ? dims(3, 4, 1, 3, 0) : dims(4, 4, 1, 3, 2), -1, 1);
    conv.input[0] = samples(&n, spatial == 1 ? per_sample(3, 2, 9, 0) : per_sample(4, 2, 9, 6));
    conv.conv.groups = 2;
    conv.conv.windows =
        (cek__windows){ .stride = { 1, 1 }, .dilation = { 2, 1 }, .pad_lo = { 1, 1 }, .pad_hi = { 2, 0 } };
    assert_ok(cek__graph_add(&n.graph, &conv, &y));
    assert_ok(cek__view(&n.graph, parameter(&n, dims(1, 4, 0, 0, 0), -1, 1), &bias, &flat));
    y = chain(&n, CEK_PW_TANH, chain(&n, CEK_PW_ADD, y, flat), CEK__NOTHING);
    pool.input[0] = y;
    pool.pool.mode = mode;
    pool.pool.count_pad = mode == CEK_POOL_AVERAGE;
    pool.pool.windows =
        (cek__windows){ .kernel = { 3, 2 }, .stride = { 2, 2 }, .pad_lo = { 1, 0 }, .pad_hi = { 0, 1 } };
    assert_ok(cek__graph_add(&n.graph, &pool, &dropout.input[0]));
    dropout.dropout.p = 0.3;
    assert_ok(cek__graph_add(&n.graph, &dropout, &dropped));
    features = cek__dims_elements(&n.graph.flows[dropped].dims, 1, spatial + 2, 1);
    assert_ok(cek__view(&n.graph, dropped, &(cek__dims){ .rank = 2, .samples = 1, .size = { 1, features } }, &flat));
    product.input[0] = flat;
    product.input[1] = parameter(&n, dims(2, 3, features, 0, 0), -1, 1);
    assert_ok(cek__graph_add(&n.graph, &product, &y));
    gradients_are_right(&n, y, "windows");
}
END_TEST

/* ---- what the passes make ---- */

static void text_is(const cek__graph *graph, const char *expected)
{
    char *text;

    assert_ok(cek__graph_text(graph, &text));
    ck_assert_str_eq(text, expected);
    free(text);
}

START_TEST(a_layer_is_one_operation_and_its_gradients_two)
{
    static net n;
    int w, b, y;
    cek__part product = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 0, 1, false }, { 0, 1, true } } };

    net_open(&n);
    w = samples(&n, per_sample(2, 4, 0, 0));
    product.input[0] = chain(&n, CEK_PW_MUL, w, parameter(&n, dims(1, 4, 0, 0, 0), -1, 1));
    w = parameter(&n, dims(2, 5, 4, 0, 0), -1, 1);
    b = parameter(&n, dims(1, 5, 0, 0, 0), -1, 1);
    product.input[1] = w;
    assert_ok(cek__graph_add(&n.graph, &product, &y));
    y = chain(&n, CEK_PW_RELU, chain(&n, CEK_PW_ADD, y, b), CEK__NOTHING);
    loss_add(&n, y);
    passes(&n);
    text_is(&n.graph, "%1 [N,4] = input\n"
                      "%2 [4] = parameter\n"
                      "%3 [N,4] = chain %1 %2\n"
                      "%4 [5,4] = parameter\n"
                      "%5 [5] = parameter\n"
                      "%7 [N,5] = product %3 %4 %5 then %8\n"
                      "%8 [N,5] = chain %7\n"
                      "%9 [N,5] = target\n"
                      "%10 [N,5] = squared_error %8 %9\n"
                      "%11 [N,5] = chain %10 %8 (backward)\n"
                      "%13 [5,4], %12 [5] = product %11 %3 (backward)\n"
                      "%14 [N,4] = product %11 %4 (backward)\n"
                      "%15 [N,4] = chain %14 %1 (backward)\n"
                      "%16 [4] = reduce %15 (backward)\n");
    net_close(&n);
}
END_TEST

/* ReLU comes behind the pool that alone reads it; what nobody reads is gone. */
START_TEST(less_is_computed)
{
    static net n;
    int x, y, nobody;
    cek__part pool = { .kind = CEK__PART_POOL, .inputs = 1, .pool = { .mode = CEK_POOL_MAX } };

    net_open(&n);
    pool.pool.windows = (cek__windows){ .kernel = { 2 }, .stride = { 2 } };
    x = samples(&n, per_sample(3, 2, 8, 0));
    nobody = chain(&n, CEK_PW_EXP, x, CEK__NOTHING);
    ck_assert_int_ne(nobody, CEK__NOTHING);
    pool.input[0] = chain(&n, CEK_PW_RELU, x, CEK__NOTHING);
    assert_ok(cek__graph_add(&n.graph, &pool, &y));
    n.graph.result = y;
    cek__simplify(&n.graph, true);
    text_is(&n.graph, "%1 [N,2,8] = input\n"
                      "%3 [N,2,4] = pool %1\n"
                      "%4 [N,2,4] = chain %3\n");
    net_close(&n);
}
END_TEST

/* ---- refusals ---- */

START_TEST(what_does_not_fit_is_refused)
{
    static net n;
    int x, out;
    cek__part part = { .kind = CEK__PART_PRODUCT, .inputs = 2, .product = { { 0, 1, false }, { 0, 1, true } } };

    net_open(&n);
    x = samples(&n, per_sample(2, 4, 0, 0));
    part.input[0] = x;
    part.input[1] = parameter(&n, dims(2, 5, 3, 0, 0), -1, 1);
    ck_assert_int_eq(cek__graph_add(&n.graph, &part, &out), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "product: the axes that are summed over differ"));
    ck_assert_int_eq(cek__chain(&n.graph, CEK_PW_ADD, x, parameter(&n, dims(1, 3, 0, 0, 0), -1, 1), &out), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "chain: axis 1 is 4 in one input and 3 in another"));
    ck_assert_int_eq(cek__view(&n.graph, x, &(cek__dims){ .rank = 1, .size = { 12 } }, &out), CEK_INVALID);
    part.kind = CEK__PART_COUNT;
    ck_assert_int_eq(cek__graph_add(&n.graph, &part, &out), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "unknown kind"));
    part.kind = CEK__PART_CHAIN;
    part.inputs = 1;
    part.input[0] = chain(&n, CEK_PW_MUL, x, parameter(&n, dims(1, 4, 0, 0, 0), -1, 1));
    part.chain.count = 1;
    part.chain.code[0] = (cek_pointwise_instruction){ .code = 999 };
    assert_ok(cek__graph_add(&n.graph, &part, &out));
    loss_add(&n, out);
    ck_assert_int_eq(cek__differentiate(&n.graph), CEK_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "instruction 999 has no derivative"));
    net_close(&n);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph");
    TCase *tcase = tcase_create("graph");

    tcase_add_loop_test(tcase, instructions, 0, sizeof codes / sizeof *codes);
    tcase_add_loop_test(tcase, products, 0, 8);
    tcase_add_test(tcase, rows_are_several_axes);
    tcase_add_test(tcase, sums_softmax_and_a_parameter_read_twice);
    tcase_add_loop_test(tcase, odd_uses_of_parameters, 0, 6);
    tcase_add_test(tcase, residual);
    tcase_add_loop_test(tcase, windows, 0, 4);
    tcase_add_test(tcase, a_layer_is_one_operation_and_its_gradients_two);
    tcase_add_test(tcase, less_is_computed);
    tcase_add_test(tcase, what_does_not_fit_is_refused);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
