/* graph_check.h - small networks made of parts: their values, and their gradients against central
 * differences in double.
 *
 * Header only. A network is y = f(parameters, samples) with the loss sum of (y - target)^2; every parameter's gradient
 * is compared element by element with what the loss does when that element moves. Memory starts as NaN everywhere. */
#ifndef CEK_TESTS_GRAPH_CHECK_H
#define CEK_TESTS_GRAPH_CHECK_H

#include "core/base/random.h"
#include "nn/graph/common.h"
#include "nn/graph/fuse.h"
#include "nn/graph/parts.h"
#include "nn/graph/physical.h"
#include "nn/graph/simplify.h"
#include "nn/program/binding.h"
#include "tests/suite.h"
#include "tests/unit/plan_run.h"

/* Axes as they are; and with samples along the first, of which it has one each: AXES(3, 4), PER_SAMPLE(3, 4). */
#define AXES(...) ((cek__dims){ .rank = (int)(sizeof(int64_t[]){ __VA_ARGS__ } / 8), .size = { __VA_ARGS__ } })
#define PER_SAMPLE(...) \
    ((cek__dims){ .rank = 1 + (int)(sizeof(int64_t[]){ __VA_ARGS__ } / 8), .samples = 1, .size = { 1, __VA_ARGS__ } })

enum { ROWS = 3, PARAMETERS = 8, ROOM = 1 << 12, BUFFERS = 64 /* elements: 1 each, their statistics 0 */ };

typedef struct net {
    bench b;
    cek__graph graph;
    cek__program program;
    int count;
    double theta[PARAMETERS][ROOM], samples[ROOM], target[ROOM];
    bool integers; /* the samples are these */
    int32_t ids[ROOM];
    int64_t size[PARAMETERS], inputs, outputs;
    cek__image image[PARAMETERS];
    cek_ref input, targets, result, loss, parameters, gradients, statistics, correct;
    cek__binding *binding;
    cek__stretch whole;       /* all of the program */
    int valid;                /* rows that count; 0: all */
    double inv_n, loss_scale; /* of the step block; 0: 1 */
} net;

/* A whole number from low to high, the same for the same case and stream. */
static inline int64_t pick(int which, uint64_t stream, int64_t low, int64_t high)
{
    double u = cek__random_uniform(23, cek__stream(CEK__STREAM_USER, stream), (uint64_t)which);

    return low + (int64_t)(u * (double)(high - low + 1));
}

static inline double number(uint64_t stream, int64_t i)
{
    return cek__random_uniform(11, cek__stream(CEK__STREAM_USER, stream), (uint64_t)i);
}

static inline void net_open(net *n)
{
    *n = (net){ 0 };
    bench_open(&n->b, "reference:0");
    assert_ok(cek__graph_init(&n->graph));
    n->graph.node = 1;
    n->graph.name = "test";
}

/* A parameter with values in [low, high). */
static inline int parameter(net *n, cek__dims dims, double low, double high)
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

static inline int samples(net *n, cek__dims dims)
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

/* Samples that are whole numbers from 0 to below `count`. */
static inline int ids(net *n, cek__dims dims, int64_t count)
{
    cek__part part = { .kind = CEK__PART_INPUT, .dims = dims, .type = CEK_I32 };
    int flow;

    assert_ok(cek__graph_add(&n->graph, &part, &flow));
    n->integers = true;
    for (int i = 0; i < ROOM; i++)
        n->ids[i] = (int32_t)pick(i, 92, 0, count - 1);
    return flow;
}

static inline int chain(net *n, uint32_t code, int a, int b)
{
    int out;

    assert_ok(cek__chain(&n->graph, code, a, b, &out));
    return out;
}

static inline void loss_add(net *n, int y)
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

static inline void passes(net *n)
{
    cek__simplify(&n->graph, true);
    assert_ok(cek__differentiate(&n->graph));
    assert_ok(cek__common(&n->graph));
    assert_ok(cek__physical(&n->graph));
    assert_ok(cek__fuse(&n->graph, NULL));
}

/* [outer][channels][pixels] as they are numbered to [outer][pixels][channels] as they lie, or back. */
static inline void reordered(const double *from, double *to, int64_t count, cek__image image, bool back)
{
    int64_t all = image.channels * image.pixels;

    memcpy(to, from, (size_t)count * sizeof *to);
    for (int64_t i = 0; all && i < count; i++) {
        int64_t lies = i / all * all + i % image.pixels * image.channels + i % all / image.pixels;

        to[back ? i : lies] = from[back ? lies : i];
    }
}

/* With backward where there is a loss. */
static inline void net_lower(net *n)
{
    int value[PARAMETERS], gradient[PARAMETERS];
    cek__lowering l = { .graph = &n->graph,
                        .program = &n->program,
                        .rows = ROWS,
                        .type = CEK_F64,
                        .input_type = n->integers ? CEK_I32 : CEK_F64,
                        .scale = 1,
                        .parameter = value,
                        .gradient = gradient };
    cek_step_block step = { .random_key = 5,
                            .inv_n = f32x2(n->inv_n ? n->inv_n : 1),
                            .loss_scale = f32x2(n->loss_scale ? n->loss_scale : 1) };
    cek_batch_block batch = { .rows_valid = n->valid ? (uint32_t)n->valid : ROWS };
    cek__places places = { 0 };
    double kept[BUFFERS];

    for (int i = 0; i < n->graph.part_count; i++)
        if (n->graph.parts[i].kind == CEK__PART_PARAMETER)
            n->image[n->graph.parts[i].parameter] = n->graph.flows[n->graph.parts[i].output[0]].image;
    assert_ok(cek__program_init(&n->program, n->b.device, CEK_MATH_STRICT));
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
    if (n->graph.loss)
        assert_ok(cek__lower_backward(&l));
    cek__lower_end(&l);
    assert_ok(cek__program_finish(&n->program));
    n->parameters = bench_alloc(&n->b, PARAMETERS * ROOM * 8);
    n->gradients = bench_alloc(&n->b, PARAMETERS * ROOM * 8);
    n->input = n->integers ? bench_upload(&n->b, n->ids, sizeof n->ids)
                           : bench_upload(&n->b, n->samples, sizeof n->samples);
    n->targets = bench_upload(&n->b, n->target, sizeof n->target);
    n->loss = bench_alloc(&n->b, 256);
    places.single[CEK__PLACE_INPUT] = n->input;
    places.single[CEK__PLACE_OUTPUT] = n->result = bench_alloc(&n->b, ROOM * 8);
    places.single[CEK__PLACE_TARGET] = n->targets;
    places.single[CEK__PLACE_LOSS] = n->loss;
    places.single[CEK__PLACE_CORRECT] = n->correct = bench_upload(&n->b, (uint64_t[32]){ 0 }, 256);
    for (int i = 0; i < BUFFERS; i++)
        kept[i] = 1;
    places.single[CEK__PLACE_BUFFERS] = bench_upload(&n->b, kept, sizeof kept);
    memset(kept, 0, sizeof kept);
    places.single[CEK__PLACE_STATISTICS] = n->statistics = bench_upload(&n->b, kept, sizeof kept);
    places.single[CEK__PLACE_STEP] = bench_upload(&n->b, &step, sizeof step);
    places.single[CEK__PLACE_BATCH] = bench_upload(&n->b, &batch, sizeof batch);
    places.arena = (cek_ref[]){ bench_alloc(&n->b, n->program.arena_bytes) };
    places.parameters = &n->parameters;
    places.gradients = &n->gradients;
    places.workspace = bench_alloc(&n->b, n->program.workspace_bytes);
    n->whole = (cek__stretch){ 0, n->program.count, false };
    assert_ok(cek__binding_create(&n->program, &n->whole, 1, &places, &n->binding));
}

static inline void net_close(net *n)
{
    cek__binding_free(n->binding);
    cek__program_clear(&n->program);
    cek__graph_clear(&n->graph);
    bench_close(&n->b);
}

/* The loss with the parameters as they are. */
static inline double net_run(net *n)
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

/* What the network gives without training, in the order of its axes, and how many; frees the net. */
static inline int64_t values_of(net *n, int y, double *out)
{
    int64_t count = cek__dims_elements(&n->graph.flows[y].dims, 0, n->graph.flows[y].dims.rank, ROWS);

    ck_assert_int_le(count, ROOM);
    n->graph.result = y;
    cek__simplify(&n->graph, false);
    assert_ok(cek__common(&n->graph));
    assert_ok(cek__physical(&n->graph));
    assert_ok(cek__fuse(&n->graph, NULL));
    net_lower(n);
    net_run(n);
    bench_download(&n->b, out, n->result, (uint64_t)count * 8);
    net_close(n);
    return count;
}

/* What is computed for the squared error of `y`: the gradient of each parameter, in the order of its axes. */
static inline void gradients_of(net *n, int y, double got[PARAMETERS][ROOM])
{
    double raw[ROOM];

    if (!n->graph.loss)
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
}

/* Makes the program of what was added, and compares all gradients; frees the net. A loss that is there
 * already is taken. */
static inline void gradients_are_right(net *n, int y, const char *what)
{
    const double h = 1e-5;
    double got[PARAMETERS][ROOM];

    gradients_of(n, y, got);
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

#endif
