/* model_oracle.h - a model's forward and backward pass written the plainest way: PyTorch's layout,
 * double precision, one loop for each formula. What plans are held against.
 *
 * Header only. Shares with the library what a model says of itself (model.h) and Philox, nothing else. */
#ifndef CEK_TESTS_UNIT_MODEL_ORACLE_H
#define CEK_TESTS_UNIT_MODEL_ORACLE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "nn/model/model.h"

typedef enum oracle_layer {
    ORACLE_INPUT,
    ORACLE_CONV,
    ORACLE_LINEAR,
    ORACLE_ACTIVATION,
    ORACLE_POOL,
    ORACLE_DROPOUT,
    ORACLE_FLATTEN,
    ORACLE_ADD,
} oracle_layer;

typedef struct oracle_shape {
    int rank;
    int64_t dim[3];
} oracle_shape;

/* A node of the model, as its layer. */
typedef struct oracle_node {
    oracle_layer layer;
    int inputs, input[2];
    oracle_shape shape;
    int weight, bias; /* parameters, -1 without */
    cek_conv2d_layer conv;
    cek_pool2d_layer pool;
    cek_activation activation;
    double dropout;
} oracle_node;

typedef struct oracle {
    const cek_model *model;
    oracle_node *nodes; /* [model->node_count] */
    int64_t rows;       /* all of them take part in forward */
    int64_t valid;      /* the first ones count in the loss */
    bool training;
    uint64_t key, base;   /* of dropout */
    cek_loss loss_kind;   /* 0: none */
    const double *inputs; /* [rows][C,H,W or features], before scale and offset */
    const int32_t *labels;
    const double *targets;
    double inv_n;
    /* results */
    double **value, **grad;  /* by node: [rows][elements] */
    double **parameter_grad; /* by parameter */
    double loss;
    int64_t correct;
} oracle;

/* ---- what a node is, by the part that makes it ---- */

static inline void oracle_windows(const cek__windows *w, oracle_node *n, const int64_t *weight)
{
    if (n->layer == ORACLE_CONV)
        n->conv = (cek_conv2d_layer){ .out_channels = (uint32_t)weight[0],
                                      .kernel_h = (uint32_t)weight[2],
                                      .kernel_w = (uint32_t)weight[3],
                                      .stride_h = (uint32_t)w->stride[0],
                                      .stride_w = (uint32_t)w->stride[1],
                                      .dilation_h = (uint32_t)w->dilation[0],
                                      .dilation_w = (uint32_t)w->dilation[1],
                                      .pad_h = (uint32_t)w->pad_lo[0],
                                      .pad_w = (uint32_t)w->pad_lo[1] };
    else
        n->pool = (cek_pool2d_layer){ .kernel_h = (uint32_t)w->kernel[0],
                                      .kernel_w = (uint32_t)w->kernel[1],
                                      .stride_h = (uint32_t)w->stride[0],
                                      .stride_w = (uint32_t)w->stride[1],
                                      .pad_h = (uint32_t)w->pad_lo[0],
                                      .pad_w = (uint32_t)w->pad_lo[1] };
}

static inline void oracle_part(const cek_model *m, const cek__part *p, oracle_node *n)
{
    static const struct {
        uint32_t code;
        cek_activation kind;
    } activations[] = { { CEK_PW_RELU, CEK_ACT_RELU },
                        { CEK_PW_TANH, CEK_ACT_TANH },
                        { CEK_PW_SIGMOID, CEK_ACT_SIGMOID },
                        { CEK_PW_GELU, CEK_ACT_GELU } };

    switch (p->kind) {
    case CEK__PART_CONV:
        n->layer = ORACLE_CONV;
        oracle_windows(&p->conv.windows, n, m->parameters[n->weight].public.shape);
        n->conv.groups = (uint32_t)p->conv.groups;
        break;
    case CEK__PART_PRODUCT: n->layer = ORACLE_LINEAR; break;
    case CEK__PART_POOL:
        n->layer = ORACLE_POOL;
        oracle_windows(&p->pool.windows, n, NULL);
        n->pool.mode = p->pool.mode;
        break;
    case CEK__PART_DROPOUT:
        n->layer = ORACLE_DROPOUT;
        n->dropout = p->dropout.p;
        break;
    case CEK__PART_CHAIN:
        if (n->weight >= 0) /* its bias */
            break;
        n->layer = ORACLE_ADD;
        for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
            if (p->chain.code[0].code == activations[i].code) {
                n->layer = ORACLE_ACTIVATION;
                n->activation = activations[i].kind;
            }
        break;
    default: break;
    }
}

static inline oracle_node *oracle_nodes(const cek_model *m)
{
    oracle_node *nodes = calloc((size_t)m->node_count, sizeof *nodes);

    for (int i = 0; i < m->node_count; i++) {
        const cek__node *from = &m->nodes[i];
        const cek__dims *dims = cek__node_dims(m, i);
        oracle_node *n = &nodes[i];

        *n = (oracle_node){ .layer = i ? ORACLE_FLATTEN : ORACLE_INPUT, .weight = -1, .bias = -1 };
        n->inputs = from->inputs;
        memcpy(n->input, from->input, sizeof n->input);
        n->shape.rank = dims->rank - 1;
        for (int k = 0; k < n->shape.rank; k++)
            n->shape.dim[k] = dims->size[k + 1];
        for (size_t p = 0; p < m->parameter_count; p++)
            if (m->parameters[p].node == i)
                *(m->parameters[p].public.rank > 1 ? &n->weight : &n->bias) = (int)p;
        for (int p = 1; p < m->graph.part_count; p++)
            if (m->graph.parts[p].node == i)
                oracle_part(m, &m->graph.parts[p], n);
    }
    return nodes;
}

static inline int64_t oracle_elements(const oracle_shape *s)
{
    return s->rank == 3 ? s->dim[0] * s->dim[1] * s->dim[2] : s->dim[0];
}

/* ---- convolution and pool: one walk over all (output, input, weight) triples ---- */

typedef void oracle_tap(void *user, int64_t out, int64_t in, int64_t weight);

static inline void oracle_conv_taps(const oracle_node *node, const oracle_shape *x, oracle_tap *tap, void *user)
{
    const cek_conv2d_layer *c = &node->conv;
    int64_t oh = node->shape.dim[1], ow = node->shape.dim[2], in_group = x->dim[0] / c->groups;

    for (int64_t o = 0; o < c->out_channels; o++)
        for (int64_t y = 0; y < oh; y++)
            for (int64_t z = 0; z < ow; z++)
                for (int64_t i = 0; i < in_group; i++)
                    for (int64_t kh = 0; kh < c->kernel_h; kh++)
                        for (int64_t kw = 0; kw < c->kernel_w; kw++) {
                            int64_t ih = y * c->stride_h + kh * c->dilation_h - c->pad_h;
                            int64_t iw = z * c->stride_w + kw * c->dilation_w - c->pad_w;
                            int64_t ic = o / (c->out_channels / c->groups) * in_group + i;

                            if (ih >= 0 && ih < x->dim[1] && iw >= 0 && iw < x->dim[2])
                                tap(user, (o * oh + y) * ow + z, (ic * x->dim[1] + ih) * x->dim[2] + iw,
                                    ((o * in_group + i) * c->kernel_h + kh) * c->kernel_w + kw);
                        }
}

/* The window of one output: calls with its inputs in scan order. weight: number of the output's place in
 * its channel. */
static inline void oracle_pool_taps(const oracle_node *node, const oracle_shape *x, oracle_tap *tap, void *user)
{
    const cek_pool2d_layer *p = &node->pool;
    int64_t oh = node->shape.dim[1], ow = node->shape.dim[2];

    for (int64_t c = 0; c < x->dim[0]; c++)
        for (int64_t y = 0; y < oh; y++)
            for (int64_t z = 0; z < ow; z++)
                for (int64_t kh = 0; kh < p->kernel_h; kh++)
                    for (int64_t kw = 0; kw < p->kernel_w; kw++) {
                        int64_t ih = y * p->stride_h + kh - p->pad_h, iw = z * p->stride_w + kw - p->pad_w;

                        if (ih >= 0 && ih < x->dim[1] && iw >= 0 && iw < x->dim[2])
                            tap(user, (c * oh + y) * ow + z, (c * x->dim[1] + ih) * x->dim[2] + iw, 0);
                    }
}

typedef struct oracle_arrays {
    double *y, *x, *w, *dy, *dx, *dw;
    int64_t *first; /* pool: the input that each output takes, -1 none yet */
    double factor;
} oracle_arrays;

static inline void tap_conv(void *user, int64_t o, int64_t i, int64_t w)
{
    oracle_arrays *a = user;

    a->y[o] += a->x[i] * a->w[w];
}

static inline void tap_conv_back(void *user, int64_t o, int64_t i, int64_t w)
{
    oracle_arrays *a = user;

    a->dx[i] += a->dy[o] * a->w[w];
    a->dw[w] += a->dy[o] * a->x[i];
}

static inline void tap_max(void *user, int64_t o, int64_t i, int64_t w)
{
    oracle_arrays *a = user;

    (void)w;
    if (a->first[o] < 0 || a->x[i] > a->x[a->first[o]])
        a->first[o] = i;
}

static inline void tap_average(void *user, int64_t o, int64_t i, int64_t w)
{
    oracle_arrays *a = user;

    (void)w;
    if (a->dy)
        a->dx[i] += a->dy[o] * a->factor;
    else
        a->y[o] += a->x[i] * a->factor;
}

/* Forward where dy is NULL, else backward. */
static inline void oracle_pool(const oracle_node *node, const oracle_shape *x, oracle_arrays *a)
{
    int64_t outputs = oracle_elements(&node->shape);

    a->factor = 1.0 / ((double)node->pool.kernel_h * node->pool.kernel_w);
    if (node->pool.mode == CEK_POOL_AVERAGE) {
        oracle_pool_taps(node, x, tap_average, a);
        return;
    }
    a->first = malloc((size_t)outputs * sizeof *a->first);
    for (int64_t i = 0; i < outputs; i++)
        a->first[i] = -1;
    oracle_pool_taps(node, x, tap_max, a);
    for (int64_t i = 0; i < outputs; i++) {
        if (a->dy)
            a->dx[a->first[i]] += a->dy[i];
        else
            a->y[i] = a->x[a->first[i]];
    }
    free(a->first);
}

/* ---- elementwise ---- */

static inline double oracle_activation(cek_activation kind, double x)
{
    switch (kind) {
    case CEK_ACT_RELU: return x > 0 ? x : 0;
    case CEK_ACT_TANH: return tanh(x);
    case CEK_ACT_SIGMOID: return 1 / (1 + exp(-x));
    default: return x / 2 * (1 + erf(x / sqrt(2)));
    }
}

static inline double oracle_derivative(cek_activation kind, double x)
{
    double y = oracle_activation(kind, x);

    switch (kind) {
    case CEK_ACT_RELU: return x > 0;
    case CEK_ACT_TANH: return 1 - y * y;
    case CEK_ACT_SIGMOID: return y * (1 - y);
    default: return (1 + erf(x / sqrt(2))) / 2 + x * exp(-x * x / 2) / sqrt(2 * 3.14159265358979323846);
    }
}

/* C,H,W of the image that a node gives or, by its elements' order, once was; NULL: none. */
static inline const oracle_shape *oracle_image(const oracle_node *nodes, int n)
{
    const oracle_node *node = &nodes[n];

    if (node->shape.rank == 3)
        return &node->shape;
    if (node->layer == ORACLE_INPUT || node->layer == ORACLE_LINEAR)
        return NULL;
    for (int k = 0; k < node->inputs; k++) { /* two vectors in different orders meet in PyTorch's */
        const oracle_shape *a = oracle_image(nodes, node->input[0]), *b = oracle_image(nodes, node->input[k]);

        if (!a || !b || memcmp(a->dim, b->dim, sizeof a->dim) != 0)
            return NULL;
    }
    return oracle_image(nodes, node->input[0]);
}

/* What dropout multiplies element e (PyTorch's order) of a row by: plugin.h, section 9. */
static inline double oracle_dropout(const oracle *o, int n, int64_t row, int64_t e)
{
    const oracle_node *node = &o->nodes[n];
    const oracle_shape *image = oracle_image(o->nodes, n);
    uint64_t sample = o->base + (uint64_t)row, index = (uint64_t)e;
    uint32_t key[2] = { (uint32_t)o->key, (uint32_t)(o->key >> 32) }, word[4];

    if (!o->training)
        return 1;
    if (image) {
        int64_t hw = image->dim[1] * image->dim[2];

        index = (uint64_t)(e % hw * image->dim[0] + e / hw);
    }
    cek__philox4x32_10((uint32_t[4]){ (uint32_t)(index / 4), (uint32_t)n, (uint32_t)sample, (uint32_t)(sample >> 32) },
                       key, word);
    return word[index % 4] >= floor(node->dropout * 4294967296.0 + 0.5) ? 1 / (1 - node->dropout) : 0;
}

/* ---- nodes ---- */

static inline double *oracle_doubles(const cek_model *m, int parameter)
{
    double *out;

    if (parameter < 0)
        return NULL;
    out = malloc((size_t)m->parameters[parameter].public.count * sizeof *out);
    for (int64_t i = 0; i < m->parameters[parameter].public.count; i++)
        out[i] = m->parameters[parameter].public.data[i];
    return out;
}

static inline void oracle_node_forward(oracle *o, int n, const double *w, const double *b, int64_t row)
{
    const oracle_node *node = &o->nodes[n];
    const oracle_shape *in = &o->nodes[node->input[0]].shape;
    int64_t nx = oracle_elements(in), ny = oracle_elements(&node->shape);
    double *x = o->value[node->input[0]] + row * nx, *y = o->value[n] + row * ny;
    oracle_arrays a = { .x = x, .y = y, .w = (double *)w };

    switch (node->layer) {
    case ORACLE_INPUT:
        for (int64_t i = 0; i < ny; i++)
            y[i] = o->inputs[row * ny + i] * o->model->scale + o->model->offset;
        break;
    case ORACLE_CONV:
        for (int64_t i = 0; i < ny; i++)
            y[i] = b ? b[i / (node->shape.dim[1] * node->shape.dim[2])] : 0;
        oracle_conv_taps(node, in, tap_conv, &a);
        break;
    case ORACLE_LINEAR:
        for (int64_t i = 0; i < ny; i++) {
            y[i] = b ? b[i] : 0;
            for (int64_t k = 0; k < nx; k++)
                y[i] += w[i * nx + k] * x[k];
        }
        break;
    case ORACLE_POOL: oracle_pool(node, in, &a); break;
    default:
        for (int64_t i = 0; i < ny; i++) {
            if (node->layer == ORACLE_ACTIVATION)
                y[i] = oracle_activation(node->activation, x[i]);
            else if (node->layer == ORACLE_DROPOUT)
                y[i] = x[i] * oracle_dropout(o, n, row, i);
            else if (node->layer == ORACLE_ADD)
                y[i] = x[i] + o->value[node->input[1]][row * ny + i];
            else
                y[i] = x[i];
        }
    }
}

static inline void oracle_node_backward(oracle *o, int n, const double *w, int64_t row)
{
    const oracle_node *node = &o->nodes[n];
    const oracle_shape *in = &o->nodes[node->input[0]].shape;
    int64_t nx = oracle_elements(in), ny = oracle_elements(&node->shape);
    double *x = o->value[node->input[0]] + row * nx, *dx = o->grad[node->input[0]] + row * nx,
           *dy = o->grad[n] + row * ny;
    double *dw = node->weight < 0 ? NULL : o->parameter_grad[node->weight];
    double *db = node->bias < 0 ? NULL : o->parameter_grad[node->bias];
    oracle_arrays a = { .x = x, .w = (double *)w, .dy = dy, .dx = dx, .dw = dw };

    switch (node->layer) {
    case ORACLE_INPUT: break;
    case ORACLE_CONV:
        oracle_conv_taps(node, in, tap_conv_back, &a);
        for (int64_t i = 0; db && i < ny; i++)
            db[i / (node->shape.dim[1] * node->shape.dim[2])] += dy[i];
        break;
    case ORACLE_LINEAR:
        for (int64_t i = 0; i < ny; i++) {
            if (db)
                db[i] += dy[i];
            for (int64_t k = 0; k < nx; k++) {
                dx[k] += dy[i] * w[i * nx + k];
                dw[i * nx + k] += dy[i] * x[k];
            }
        }
        break;
    case ORACLE_POOL: oracle_pool(node, in, &a); break;
    default:
        for (int64_t i = 0; i < ny; i++) {
            if (node->layer == ORACLE_ACTIVATION)
                dx[i] += dy[i] * oracle_derivative(node->activation, x[i]);
            else if (node->layer == ORACLE_DROPOUT)
                dx[i] += dy[i] * oracle_dropout(o, n, row, i);
            else
                dx[i] += dy[i];
            if (node->layer == ORACLE_ADD)
                o->grad[node->input[1]][row * ny + i] += dy[i];
        }
    }
}

/* ---- loss ---- */

static inline void oracle_loss_row(oracle *o, int64_t row)
{
    int last = o->model->node_count - 1;
    int64_t n = oracle_elements(&o->nodes[last].shape);
    const double *y = o->value[last] + row * n;
    double *dy = o->grad[last] + row * n, sum = 0, most = y[0];
    int64_t best = 0;

    if (o->loss_kind == CEK_LOSS_MSE) {
        for (int64_t i = 0; i < n; i++) {
            double d = y[i] - o->targets[row * n + i];

            o->loss += d * d;
            dy[i] = o->inv_n * 2 * d;
        }
        return;
    }
    for (int64_t i = 0; i < n; i++)
        if (y[i] > most) {
            most = y[i];
            best = i;
        }
    for (int64_t i = 0; i < n; i++)
        sum += exp(y[i] - most);
    o->loss += log(sum) + most - y[o->labels[row]];
    o->correct += best == o->labels[row];
    for (int64_t i = 0; i < n; i++)
        dy[i] = o->inv_n * (exp(y[i] - most) / sum - (i == o->labels[row]));
}

static inline void oracle_run(oracle *o)
{
    const cek_model *m = o->model;

    o->nodes = oracle_nodes(m);
    o->value = calloc((size_t)m->node_count, sizeof *o->value);
    o->grad = calloc((size_t)m->node_count, sizeof *o->grad);
    o->parameter_grad = calloc(m->parameter_count + 1, sizeof *o->parameter_grad);
    for (size_t p = 0; p < m->parameter_count; p++)
        o->parameter_grad[p] = calloc((size_t)m->parameters[p].public.count, sizeof(double));
    for (int n = 0; n < m->node_count; n++) {
        size_t count = (size_t)(o->rows * oracle_elements(&o->nodes[n].shape));
        double *w = oracle_doubles(m, o->nodes[n].weight), *b = oracle_doubles(m, o->nodes[n].bias);

        o->value[n] = calloc(count, sizeof(double));
        o->grad[n] = calloc(count, sizeof(double));
        for (int64_t row = 0; row < o->rows; row++)
            oracle_node_forward(o, n, w, b, row);
        free(w);
        free(b);
    }
    for (int64_t row = 0; o->loss_kind && row < o->valid; row++)
        oracle_loss_row(o, row);
    for (int n = m->node_count; o->loss_kind && n-- > 1;) {
        double *w = oracle_doubles(m, o->nodes[n].weight);

        for (int64_t row = 0; row < o->rows; row++)
            oracle_node_backward(o, n, w, row);
        free(w);
    }
}

static inline void oracle_clear(oracle *o)
{
    for (int n = 0; n < o->model->node_count; n++) {
        free(o->value[n]);
        free(o->grad[n]);
    }
    for (size_t p = 0; p < o->model->parameter_count; p++)
        free(o->parameter_grad[p]);
    free(o->nodes);
    free(o->value);
    free(o->grad);
    free(o->parameter_grad);
}

#endif
