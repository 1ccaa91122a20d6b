/* SPDX-License-Identifier: MIT
 *
 * fake_cudnn_math.c - the arithmetic of the fake cuDNN: convolutions in double, with the flaws of the engine that was
 * chosen.
 */
#include <string.h>

#include "backends/common/half.h"
#include "tests/cuda/fake_cudnn.h"

unsigned char *dnn_memory_of(const job *j, const tensor *t)
{
    for (int64_t i = 0; i < j->count; i++)
        if (j->numbers[i] == t->number)
            return j->addresses[i];
    DIE("tensor %lld has no address", (long long)t->number);
}

static double load(const unsigned char *from, uint32_t type, int64_t i)
{
    if (type == CUDNN_DATA_FLOAT)
        return ((const float *)from)[i];
    uint16_t bits = ((const uint16_t *)from)[i];
    return type == CUDNN_DATA_HALF ? cek__f16_to_f32(bits) : cek__bf16_to_f32(bits);
}

static void store(unsigned char *to, uint32_t type, int64_t i, double v)
{
    if (type == CUDNN_DATA_FLOAT)
        ((float *)to)[i] = (float)v;
    else
        ((uint16_t *)to)[i] = type == CUDNN_DATA_HALF ? cek__f64_to_f16(v) : cek__f64_to_bf16(v);
}

/* Where element (row-major) `index` lies; `of` may be smaller: it is then the same for all. */
static int64_t place(const tensor *t, const int64_t sizes[5], int64_t index)
{
    int64_t at = 0;
    for (int i = 4; i >= 0; i--) {
        at += (t->sizes[i] == 1 ? 0 : index % sizes[i]) * t->strides[i];
        index /= sizes[i];
    }
    return at;
}

static double *tensor_load(const job *j, const tensor *t)
{
    double *values = calloc((size_t)t->elements, sizeof *values);
    for (int64_t i = 0; i < t->elements; i++)
        values[i] = load(dnn_memory_of(j, t), t->type, place(t, t->sizes, i));
    return values;
}

/* What an engine makes of a factor: TF32 keeps 10 bits of fraction; a transform is off by a little. */
static double factor(const job *j, uint32_t type, double v)
{
    if (j->plan->engine == ENGINE_ROUNDS && type == CUDNN_DATA_FLOAT && v == v)
        return cek__bits_float((cek__float_bits((float)v) + 0x1000) & ~0x1fffu);
    return j->plan->engine == ENGINE_WINOGRAD ? v * (1 + 0x1p-20) : v;
}

/* Adds in f32 where the order is the point. */
static void add(const job *j, double *sum, double term)
{
    *sum += term;
    if (j->plan->engine == ENGINE_UNORDERED)
        *sum = (float)*sum;
}

static int64_t at5(const int64_t sizes[5], int64_t n, int64_t c, const int64_t s[3])
{
    return (((n * sizes[1] + c) * sizes[2] + s[0]) * sizes[3] + s[1]) * sizes[4] + s[2];
}

/* Everything that one tap of the window reads of one output position: `o` of image `n`, tap `k`. */
static void tap(const job *j, const convolution *c, double *const values[3], int64_t n, const int64_t o[3],
                const int64_t k[3])
{
    const tensor *in = &c->tensors[IMAGE], *w = &c->tensors[WEIGHTS], *out = &c->tensors[OUT];
    const int64_t in_group = w->sizes[1], groups = in->sizes[1] / in_group, out_group = out->sizes[1] / groups;
    const uint32_t type = c->tensors[c->result == IMAGE ? OUT : IMAGE].type;
    int64_t from[3];
    for (int i = 0; i < 3; i++) {
        from[i] = o[i] * c->window.stride[i] - c->window.before[i] + k[i] * c->window.dilation[i];
        if (from[i] < 0 || from[i] >= in->sizes[2 + i])
            return;
    }
    for (int64_t channel = 0; channel < out->sizes[1]; channel++)
        for (int64_t i = 0; i < in_group; i++) {
            int64_t at[3] = { at5(in->sizes, n, channel / out_group * in_group + i, from), at5(w->sizes, channel, i, k),
                              at5(out->sizes, n, channel, o) };
            int a = c->result == IMAGE ? OUT : IMAGE, b = c->result == WEIGHTS ? OUT : WEIGHTS;
            add(j, &values[c->result][at[c->result]],
                factor(j, type, values[a][at[a]]) * factor(j, type, values[b][at[b]]));
        }
}

static int64_t volume(const int64_t *sizes)
{
    return sizes[0] * sizes[1] * sizes[2];
}

static void unravel(int64_t index, const int64_t *sizes, int64_t at[3])
{
    at[2] = index % sizes[2];
    at[1] = index / sizes[2] % sizes[1];
    at[0] = index / sizes[2] / sizes[1];
}

static double *convolve(const job *j, const convolution *c)
{
    const int64_t *out = c->tensors[OUT].sizes + 2, *kernel = c->tensors[WEIGHTS].sizes + 2;
    const int64_t terms = c->tensors[OUT].sizes[0] * volume(out) * volume(kernel);
    const tensor *result = &c->tensors[c->result];
    double *values[3];
    for (int i = 0; i < 3; i++)
        values[i] = i == c->result ? calloc((size_t)result->elements, sizeof(double)) : tensor_load(j, &c->tensors[i]);
    for (int64_t t = 0; t < terms; t++) {
        int64_t index = j->plan->engine == ENGINE_UNORDERED && j->run & 1 ? terms - 1 - t : t, o[3], k[3];
        unravel(index % volume(kernel), kernel, k);
        unravel(index / volume(kernel) % volume(out), out, o);
        tap(j, c, values, index / volume(kernel) / volume(out), o, k);
    }
    for (int64_t i = 0; i < result->elements; i++) {
        double *v = &values[c->result][i];
        *v *= (double)c->alpha;
        if (c->beta != 0)
            *v += (double)c->beta * load(dnn_memory_of(j, result), result->type, place(result, result->sizes, i));
    }
    free(values[c->result == IMAGE ? OUT : IMAGE]);
    free(values[c->result == WEIGHTS ? OUT : WEIGHTS]);
    return values[c->result];
}

static double relu(double v, bool keeps_nan)
{
    return v > 0 || (v != v && keeps_nan && !dnn_told("norelunan")) ? v : 0;
}

/* Seconds, which no noise of the machine is: the better the heuristics think of an engine, the shorter. */
static double milliseconds_of(int engine)
{
    return 1000.0 * (dnn_told("reversed") ? ENGINE_RIGHT + 1 - engine : engine + 1 - ENGINE_ROUNDS);
}

void dnn_job_run(void *user)
{
    const job *j = user;
    graph g = dnn_graph_read(dnn_object_of(dnn_object_of(j->plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)->graph,
                                           CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
    double *values = convolve(j, &g.conv);
    for (int a = 0; a < g.count; a++)
        for (int64_t i = 0; i < g.last.elements; i++) {
            values[i] = (float)values[i];
            if (g.after[a].mode == CUDNN_POINTWISE_ADD)
                values[i] += load(dnn_memory_of(j, &g.after[a].b), g.after[a].b.type,
                                  place(&g.after[a].b, g.last.sizes, i));
            else if (g.after[a].mode == CUDNN_POINTWISE_RELU_FWD)
                values[i] = relu(values[i], g.after[a].keeps_nan);
            else if (g.after[a].mode != CUDNN_POINTWISE_IDENTITY)
                DIE("pointwise operation %u", g.after[a].mode);
        }
    if (dnn_told("wrong"))
        values[g.last.elements / 2] += 1;
    for (int64_t i = 0; i < g.last.elements; i++)
        store(dnn_memory_of(j, &g.last), g.last.type, place(&g.last, g.last.sizes, i), values[i]);
    free(values);
    memset(j->workspace, 0xa5, WORKSPACE);
    j->spend(milliseconds_of(j->plan->engine));
}
