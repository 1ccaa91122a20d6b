/* conv.c - cases and oracle of convolutions, forward and both backward ones.
 *
 * Text: benchdnn's problem, then :bias (BIAS, or BIAS_GRAD of backward weights), :acc, an
 * activation (forward), :g and an activation (backward data), :packed (forward). The oracle
 * gathers: each element of a result is one sum over what contributes to it, written from the
 * definition in plugin.h, for three spatial dimensions of which unused ones are 1. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "spec/problem.h"

/* One list for all three operations, so that every shape is tried in every direction. */
#define PROBLEMS(X, FILLS)                                                                \
    X("mb1ic1ih1oc1oh1kh1ph0", FILLS)                                                     \
    X("mb2ic5ih7oc3oh7kh3ph1", FILLS)      /* odd channels: no vector tail is full */     \
    X("mb1ic4ih9oc4oh5kh3sh2ph1g4", FILLS) /* depthwise, stride 2 */                      \
    X("mb3ic1ih28oc6oh28kh5ph2", FILLS)    /* first layer of lenet5 */                    \
    X("mb2ic6ih14oc16oh10kh5ph0", FILLS)                                                  \
    X("mb1ic3ih12oc64oh12kh3ph1", FILLS)                                                  \
    X("mb2ic32ih8oc48oh8kh1ph0", FILLS)                    /* 1x1 */                      \
    X("mb1ic17ih6iw11oc33oh3ow6kh3kw2sh2sw2ph1pw1", FILLS) /* height unlike width */      \
    X("mb1ic16ih10oc24oh10kh3ph1g2", FILLS)                                               \
    X("mb2ic6ih9oc9oh9kh3ph1g3", FILLS)      /* groups of 2 and 3 channels */             \
    X("mb1ic4ih9oc8oh9kh3ph1g4", FILLS)      /* of 1 and 2 */                             \
    X("mb1ic8ih9oc4oh9kh3ph1g4", FILLS)      /* of 2 and 1 */                             \
    X("mb1ic3ih11oc4oh4kh3ph0sh2dh1", FILLS) /* strided and dilated */                    \
    X("mb1ic4ih11oc5oh7kh3ph0dh1", FILLS)    /* dilated */                                \
    X("mb1ic3ih11iw8oc4oh11ow4kh3kw5ph2pw1dh1dw0sw2", FILLS)                              \
    X("mb1ic4ih8oc3oh8kh4ph1", FILLS)             /* padding 1 before, 2 behind */        \
    X("mb1ic4ih7iw9oc3oh9ow9kh2kw3ph0pw1", FILLS) /* padding behind alone */              \
    X("mb2ic3ih8oc5oh3kh3sh3ph1", FILLS)          /* the last row is read by no window */ \
    X("mb1ic2ih3oc3oh7kh3ph3", FILLS)             /* windows wholly in the padding */     \
    X("mb1ic64ih14oc64oh14kh3ph1", FILLS)                                                 \
    X("mb5ic24ih5oc40oh5kh3ph1", FILLS) /* batch over several tiles */                    \
    X("mb4ic8ih12oc16oh6kh2sh2ph0", FILLS)

/* Large enough for transforms such as Winograd's: odd sizes, where the last tiles are cut, each padding, also one that
 * holds whole tiles, many channels, several images. Not in f64, which nobody transforms. */
#define TRANSFORMED                                                 \
    LARGE("mb1ic16ih15oc16oh15kh3ph1", SPEC_F_BOTH)                 \
    LARGE("mb2ic32ih15iw13oc16oh13ow11kh3ph0", SPEC_F_BOTH)         \
    LARGE("mb2ic16ih13oc24oh15kh3ph2", SPEC_F_BOTH)                 \
    LARGE("mb5ic16ih9oc32oh9kh3ph1", SPEC_F_ALL | SPEC_F(INFINITE)) \
    LARGE("mb5ic32ih6oc24oh6kh3ph1", SPEC_F_BOTH)                   \
    LARGE("mb1ic48ih12iw2oc48oh19ow9kh3ph2pw2", SPEC_F_BOTH)        \
    LARGE("mb1ic128ih13oc16oh13kh3ph1", SPEC_F(REAL))               \
    LARGE("mb1ic512ih4iw5oc16oh4ow5kh3ph1", SPEC_F(REAL))

#define LARGE(text_, fills_) { .text = text_, .types = SPEC_T_F32 | SPEC_T_LOW, .fills = fills_ },
#define LARGE_OPTIONAL(text_) \
    { .text = text_, .types = SPEC_T_F32 | SPEC_T_LOW, .fills = SPEC_F_BOTH, .optional = true },
#define REQUIRED(text_, fills_) { .text = text_, .types = SPEC_T_ALL, .fills = fills_ },
#define OPTIONAL(text_, fills_) { .text = text_, .types = SPEC_T_ALL, .fills = fills_, .optional = true },
#define UNALIGNED(text_) { .text = text_, .types = SPEC_T_F32 | SPEC_T_LOW, .fills = SPEC_F_BOTH, .optional = true },
#define OTHER_RANKS(X)                                                    \
    X("mb2ic3iw16oc5ow14kw3pw0", SPEC_F_BOTH)                             \
    X("mb1ic4iw13oc6ow7kw4sw2pw2g2", SPEC_F_BOTH)                         \
    X("mb1ic3id4ih5oc4od4oh5kd3kh3pd1ph1", SPEC_F_BOTH)                   \
    X("mb2ic2id5ih4iw6oc3od2oh4ow3kd2kh3kw4sd2sw2pd0ph1pw1", SPEC_F_BOTH) \
    X("mb2ic3iw16oc4ow6kw3sw2dw1", SPEC_F_BOTH)                           \
    X("mb1ic4id6ih7iw8oc6od2oh4ow5kd2kh3kw2sd2sh2sw1pd0ph1pw0dd1dh0dw2g2", SPEC_F_BOTH)

/* clang-format off */
static const spec_case forward_cases[] = {
    PROBLEMS(REQUIRED, SPEC_F_ALL)
    REQUIRED("mb2ic5ih7oc3oh7kh3ph1:bias", SPEC_F_ALL)
    REQUIRED("mb2ic16ih9oc20oh9kh3ph1:bias", SPEC_F_BOTH)
    REQUIRED("mb1ic4ih9oc4oh5kh3sh2ph1g4:bias", SPEC_F_BOTH)
    TRANSFORMED
    LARGE("mb2ic16ih13oc16oh13kh3ph1:bias", SPEC_F_BOTH)
    LARGE("mb2ic16ih13oc16oh13kh3ph1:bias:det", SPEC_F(REAL))
    LARGE_OPTIONAL("mb2ic16ih13oc16oh13kh3ph1:bias:relu")
    LARGE_OPTIONAL("mb2ic16ih13oc16oh13kh3ph1:bias:gelu")
    LARGE_OPTIONAL("mb2ic16ih13oc16oh13kh3ph1:tanh")
    LARGE_OPTIONAL("mb2ic16ih13oc16oh13kh3ph1:bias:packed")
    LARGE_OPTIONAL("mb2ic16ih13oc16oh13kh3ph1:bias:align4")
    REQUIRED("mb2ic12ih9oc20oh9kh3ph1:bias:det", SPEC_F(REAL))
    REQUIRED("mb2ic12ih9oc20oh9kh3ph1:strict", SPEC_F_BOTH)
    OTHER_RANKS(REQUIRED)
    REQUIRED("mb2ic3iw16oc5ow14kw3pw0:bias", SPEC_F_BOTH)
    REQUIRED("mb1ic3id4ih5oc4od4oh5kd3kh3pd1ph1:bias", SPEC_F_BOTH)
    OPTIONAL("mb2ic5ih7oc3oh7kh3ph1:relu", SPEC_F_ALL)
    OPTIONAL("mb2ic16ih9oc20oh9kh3ph1:bias:relu", SPEC_F_BOTH)
    OPTIONAL("mb2ic16ih9oc20oh9kh3ph1:bias:tanh", SPEC_F(REAL))
    OPTIONAL("mb1ic3ih9oc6oh9kh3ph1g3:bias:sigmoid", SPEC_F(REAL))
    OPTIONAL("mb1ic3ih9oc5oh9kh3ph1:bias:gelu", SPEC_F(REAL))
    OPTIONAL("mb1ic1ih11oc19oh11kh1ph0:relu", SPEC_F(EDGE)) /* one pixel of one channel, times 1 */
    OPTIONAL("mb1ic1ih11oc19oh11kh1ph0:tanh", SPEC_F(EDGE))
    OPTIONAL("mb1ic1ih11oc19oh11kh1ph0:sigmoid", SPEC_F(EDGE))
    OPTIONAL("mb1ic1ih11oc19oh11kh1ph0:gelu", SPEC_F(EDGE))
    OPTIONAL("mb2ic12ih9oc20oh9kh3ph1:bias:align8", SPEC_F_BOTH)
    UNALIGNED("mb2ic12ih9oc20oh9kh3ph1:bias:align4")
    OPTIONAL("mb2ic12ih9oc20oh9kh3ph1:bias:align16", SPEC_F_BOTH)
    OPTIONAL("mb2ic16ih9oc20oh9kh3ph1:bias:packed", SPEC_F_BOTH)
    OPTIONAL("mb1ic16ih9oc20oh9kh3ph1g2:packed", SPEC_F_BOTH)
    OPTIONAL("mb1ic16ih9oc20oh9kh3ph1g2:packed:bias", SPEC_F_BOTH)
};
static const spec_case backward_data_cases[] = {
    PROBLEMS(REQUIRED, SPEC_F_ALL)
    REQUIRED("mb2ic5ih7oc3oh7kh3ph1:acc", SPEC_F_ALL)
    REQUIRED("mb2ic16ih9oc20oh5kh3sh2ph1:acc", SPEC_F_BOTH)
    REQUIRED("mb1ic4ih9oc4oh5kh3sh2ph1g4:acc", SPEC_F_BOTH)
    LARGE("mb1ic64ih1iw1024oc8oh1ow512kh3kw3sw2ph1pw1", SPEC_F(REAL)) /* a long line, most taps beside it */
    TRANSFORMED
    LARGE("mb2ic16ih13oc16oh13kh3ph1:acc", SPEC_F_BOTH)
    LARGE("mb2ic16ih13oc16oh13kh3ph1:det", SPEC_F(REAL))
    LARGE_OPTIONAL("mb2ic16ih13oc16oh13kh3ph1:grelu")
    LARGE_OPTIONAL("mb2ic16ih13oc16oh13kh3ph1:gtanh:acc")
    LARGE_OPTIONAL("mb2ic16ih13oc16oh13kh3ph1:grelu:align4")
    REQUIRED("mb2ic12ih9oc20oh9kh3ph1:det", SPEC_F(REAL))
    REQUIRED("mb2ic12ih9oc20oh9kh3ph1:strict", SPEC_F_BOTH)
    OTHER_RANKS(REQUIRED)
    REQUIRED("mb2ic3iw16oc5ow14kw3pw0:acc", SPEC_F_BOTH)
    REQUIRED("mb1ic3id4ih5oc4od4oh5kd3kh3pd1ph1:acc", SPEC_F_BOTH)
    OPTIONAL("mb2ic5ih7oc3oh7kh3ph1:grelu", SPEC_F_BOTH)
    OPTIONAL("mb2ic16ih9oc20oh9kh3ph1:grelu:acc", SPEC_F_BOTH)
    OPTIONAL("mb2ic12ih9oc20oh9kh3ph1:grelu:align8", SPEC_F_BOTH)
    UNALIGNED("mb2ic12ih9oc20oh9kh3ph1:grelu:align4")
    OPTIONAL("mb2ic12ih9oc20oh9kh3ph1:grelu:align16", SPEC_F_BOTH)
    OPTIONAL("mb2ic6ih9oc8oh9kh3ph1g2:gtanh", SPEC_F(REAL))
    OPTIONAL("mb1ic115ih11oc1oh11kh1ph0:grelu", SPEC_F(EDGE))
    OPTIONAL("mb1ic115ih11oc1oh11kh1ph0:gtanh", SPEC_F(EDGE))
    OPTIONAL("mb1ic115ih11oc1oh11kh1ph0:gsigmoid", SPEC_F(EDGE))
    OPTIONAL("mb1ic115ih11oc1oh11kh1ph0:ggelu", SPEC_F(EDGE))
};
static const spec_case backward_weights_cases[] = {
    PROBLEMS(REQUIRED, SPEC_F_ALL)
    REQUIRED("mb2ic5ih7oc3oh7kh3ph1:bias", SPEC_F_ALL)
    REQUIRED("mb2ic5ih7oc3oh7kh3ph1:acc", SPEC_F_ALL)
    REQUIRED("mb2ic16ih9oc20oh9kh3ph1:bias:acc", SPEC_F_BOTH)
    REQUIRED("mb1ic4ih9oc4oh5kh3sh2ph1g4:bias:acc", SPEC_F_BOTH)
    REQUIRED("mb1ic3ih8oc7oh8kh4ph1:bias", SPEC_F_BOTH)
    REQUIRED("mb1ic3ih8oc7oh8kh4ph1:bias:accw", SPEC_F_BOTH)    /* DW alone is added to, */
    REQUIRED("mb1ic3ih8oc7oh8kh4ph1:bias:accbias", SPEC_F_BOTH) /* BIAS_GRAD alone */
    TRANSFORMED
    LARGE("mb2ic16ih13oc16oh13kh3ph1:bias:acc", SPEC_F_BOTH)
    LARGE("mb2ic16ih13oc16oh13kh3ph1:bias:det", SPEC_F(REAL))
    LARGE_OPTIONAL("mb2ic16ih13oc16oh13kh3ph1:bias:align4")
    REQUIRED("mb16ic3ih8oc7oh8kh3ph1:bias:det", SPEC_F(REAL))
    REQUIRED("mb3ic3ih28oc64oh28kh3ph1", SPEC_F_BOTH) /* DY is longer than what is summed at once */
    REQUIRED("mb2ic12ih9oc20oh9kh3ph1:strict", SPEC_F_BOTH)
    OTHER_RANKS(REQUIRED)
    OPTIONAL("mb2ic12ih9oc20oh9kh3ph1:bias:align8", SPEC_F_BOTH)
    UNALIGNED("mb2ic12ih9oc20oh9kh3ph1:bias:align4")
    OPTIONAL("mb2ic12ih9oc20oh9kh3ph1:bias:align16", SPEC_F_BOTH)
    REQUIRED("mb2ic3iw16oc5ow14kw3pw0:bias:acc", SPEC_F_BOTH)
    REQUIRED("mb1ic3id4ih5oc4od4oh5kd3kh3pd1ph1:bias:acc", SPEC_F_BOTH)
};
/* clang-format on */

/* ---- the oracle ---- */

/* The problem with exactly three spatial dimensions, the unused ones in front. */
typedef struct geometry {
    uint64_t batch, ic, oc, icg, ocg; /* channels in all and in a group */
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
} geometry;

static geometry geometry_of(const cek_conv_desc *d)
{
    geometry g = { .batch = d->batch,
                   .ic = d->in_channels,
                   .oc = d->out_channels,
                   .icg = d->in_channels / d->groups,
                   .ocg = d->out_channels / d->groups };
    uint64_t out[CEK_SPATIAL_MAX];
    spec_conv_out(d, out);
    for (int i = 0; i < 3; i++) {
        int from = i - (3 - (int)d->spatial);
        bool used = from >= 0;
        g.in[i] = used ? (int64_t)d->in[from] : 1;
        g.out[i] = used ? (int64_t)out[from] : 1;
        g.kernel[i] = used ? (int64_t)d->kernel[from] : 1;
        g.stride[i] = used ? (int64_t)d->stride[from] : 1;
        g.dilation[i] = used ? (int64_t)d->dilation[from] : 1;
        g.pad[i] = used ? (int64_t)d->pad_lo[from] : 0;
    }
    return g;
}

static uint64_t volume(const int64_t size[3])
{
    return (uint64_t)(size[0] * size[1] * size[2]);
}

static void unravel(uint64_t index, const int64_t size[3], int64_t at[3])
{
    at[2] = (int64_t)(index % (uint64_t)size[2]), index /= (uint64_t)size[2];
    at[1] = (int64_t)(index % (uint64_t)size[1]), index /= (uint64_t)size[1];
    at[0] = (int64_t)index;
}

/* To the next position, row by row. */
static void advance(const int64_t size[3], int64_t at[3])
{
    for (int i = 2; ++at[i] == size[i] && i > 0; i--)
        at[i] = 0;
}

/* Row-major position, or -1 outside. */
static int64_t ravel(const int64_t at[3], const int64_t size[3])
{
    for (int i = 0; i < 3; i++)
        if (at[i] < 0 || at[i] >= size[i])
            return -1;
    return (at[0] * size[1] + at[1]) * size[2] + at[2];
}

/* Where output position `o` reads the input through kernel position `k`. */
static int64_t input_of(const geometry *g, const int64_t o[3], const int64_t k[3])
{
    int64_t at[3];
    for (int i = 0; i < 3; i++)
        at[i] = o[i] * g->stride[i] - g->pad[i] + k[i] * g->dilation[i];
    return ravel(at, g->in);
}

/* Which output position reads input position `in` through kernel position `k`, or -1. */
static int64_t output_of(const geometry *g, const int64_t in[3], const int64_t k[3])
{
    int64_t at[3];
    for (int i = 0; i < 3; i++) {
        int64_t offset = in[i] + g->pad[i] - k[i] * g->dilation[i];
        if (offset < 0 || offset % g->stride[i])
            return -1;
        at[i] = offset / g->stride[i];
    }
    return ravel(at, g->out);
}

/* A sum on its way: value, sum of magnitudes, number of terms. */
typedef struct dot {
    long double v, magnitude;
    uint64_t terms;
} dot;

static inline void dot_add(dot *s, double a, double b)
{
    long double term = (long double)a * b;
    s->v += term;
    s->magnitude += fabsl(term);
    s->terms++;
}

static dot forward_at(const geometry *g, const double *x, const double *w, uint64_t index)
{
    uint64_t oc = index % g->oc, spot = index / g->oc % volume(g->out), n = index / g->oc / volume(g->out);
    uint64_t group = oc / g->ocg;
    int64_t o[3], k[3] = { 0 };
    dot s = { 0 };
    unravel(spot, g->out, o);
    for (uint64_t kernel = 0; kernel < volume(g->kernel); kernel++, advance(g->kernel, k)) {
        int64_t from = input_of(g, o, k);
        if (from < 0)
            continue;
        const double *xs = x + (n * volume(g->in) + (uint64_t)from) * g->ic + group * g->icg;
        const double *ws = w + (oc * volume(g->kernel) + kernel) * g->icg;
        for (uint64_t c = 0; c < g->icg; c++)
            dot_add(&s, xs[c], ws[c]);
    }
    return s;
}

static dot backward_data_at(const geometry *g, const double *dy, const double *w, uint64_t index)
{
    uint64_t ic = index % g->ic, spot = index / g->ic % volume(g->in), n = index / g->ic / volume(g->in);
    uint64_t group = ic / g->icg;
    int64_t in[3], k[3] = { 0 };
    dot s = { 0 };
    unravel(spot, g->in, in);
    for (uint64_t kernel = 0; kernel < volume(g->kernel); kernel++, advance(g->kernel, k)) {
        int64_t from = output_of(g, in, k);
        if (from < 0)
            continue;
        for (uint64_t oc = group * g->ocg; oc < (group + 1) * g->ocg; oc++)
            dot_add(&s, dy[(n * volume(g->out) + (uint64_t)from) * g->oc + oc],
                    w[(oc * volume(g->kernel) + kernel) * g->icg + ic % g->icg]);
    }
    return s;
}

static dot backward_weights_at(const geometry *g, const double *x, const double *dy, uint64_t index)
{
    uint64_t c = index % g->icg, kernel = index / g->icg % volume(g->kernel), oc = index / g->icg / volume(g->kernel);
    uint64_t group = oc / g->ocg;
    int64_t k[3];
    dot s = { 0 };
    unravel(kernel, g->kernel, k);
    for (uint64_t n = 0; n < g->batch; n++) {
        int64_t o[3] = { 0 };
        for (uint64_t spot = 0; spot < volume(g->out); spot++, advance(g->out, o)) {
            int64_t from = input_of(g, o, k);
            if (from >= 0)
                dot_add(&s, x[(n * volume(g->in) + (uint64_t)from) * g->ic + group * g->icg + c],
                        dy[(n * volume(g->out) + spot) * g->oc + oc]);
        }
    }
    return s;
}

double spec_conv_at(const cek_conv_desc *d, const double *a, const double *b, uint64_t index, double *tolerance)
{
    geometry g = geometry_of(d);
    dot s = d->op.kind == CEK_OP_CONV_BACKWARD_DATA      ? backward_data_at(&g, a, b, index)
            : d->op.kind == CEK_OP_CONV_BACKWARD_WEIGHTS ? backward_weights_at(&g, a, b, index)
                                                         : forward_at(&g, a, b, index);
    *tolerance = (double)spec_sum(CEK_F32, s.v, s.magnitude, s.terms, false).e;
    *tolerance += (double)s.magnitude * spec_operands(d->op.math);
    return (double)s.v;
}

/* ---- cases ---- */

typedef struct conv_choice {
    bool bias, acc, acc_w, acc_bias, packed;
    cek_activation activation, act_grad;
} conv_choice;

static bool conv_read(const char *text, uint32_t kind, spec_problem *p, conv_choice *c)
{
    const char *rest;
    char word[32];
    if (!spec_conv_read(text, &p->desc.conv, &rest, p->error, sizeof p->error))
        return false;
    p->desc.op.kind = kind;
    while (spec_modifier(&rest, word, sizeof word)) {
        if (!strcmp(word, "bias"))
            c->bias = true;
        else if (!strcmp(word, "acc"))
            c->acc = true;
        else if (!strcmp(word, "accw"))
            c->acc_w = true;
        else if (!strcmp(word, "accbias"))
            c->acc_bias = true;
        else if (!strcmp(word, "packed"))
            c->packed = true;
        else if (spec_activation_parse(word))
            c->activation = spec_activation_parse(word);
        else if (word[0] == 'g' && spec_activation_parse(word + 1))
            c->act_grad = spec_activation_parse(word + 1);
        else if (!spec_modifier_common(p, word))
            return spec_fail(p, "conv: unknown modifier \"%s\"", word);
    }
    p->desc.conv.x_type = p->desc.conv.w_type = p->desc.conv.y_type = p->type;
    p->epilogue.activation = c->activation;
    p->epilogue.act_grad = c->act_grad;
    if (c->activation || c->act_grad)
        p->desc.op.epilogue = &p->epilogue;
    return true;
}

/* Without NaN. An infinity leaves a transform no bound: what edges become is seen under STRICT. */
static double root_mean_square(const double *values, uint64_t count)
{
    double squares = 0;
    uint64_t numbers = 0;
    for (uint64_t i = 0; i < count; i++)
        if (!isnan(values[i]))
            squares += values[i] * values[i], numbers++;
    return numbers ? sqrt(squares / (double)numbers) : 0;
}

/* The terms of a result that no padding cuts short. */
static uint64_t terms_of(const cek_conv_desc *d)
{
    geometry g = geometry_of(d);
    return d->op.kind == CEK_OP_CONV_BACKWARD_WEIGHTS ? g.batch * volume(g.out)
           : d->op.kind == CEK_OP_CONV_BACKWARD_DATA  ? volume(g.kernel) * g.ocg
                                                      : volume(g.kernel) * g.icg;
}

double spec_conv_transformed(const cek_conv_desc *d, const double *a, uint64_t a_count, const double *b,
                             uint64_t b_count)
{
    double term = root_mean_square(a, a_count) * root_mean_square(b, b_count), n = (double)terms_of(d) + 64;
    double unit = (double)spec_roundoff(spec_sum_type(d->x_type));
    return 64 * (unit * n + spec_operands(d->op.math) * sqrt(n)) * term;
}

/* `transformed`: the error of a sum where the device announced a transform, which mixes what it reads before it
 * multiplies: no sum has an error of its own. */
static spec_num conv_sum(const spec_problem *p, cek_dtype type, dot s, double transformed)
{
    if (p->inexact)
        return (spec_num){ s.v, transformed + spec_tiny(type) };
    return s.terms ? spec_sum(type, s.v, s.magnitude, s.terms, spec_whole(p)) : spec_exact(0);
}

/* Edges are multiplied by 1, so that they are what the epilogue sees. */
static void factors_fill(spec_problem *p, spec_operand *image, spec_operand *weights)
{
    if (p->fill == SPEC_EDGE) {
        spec_operand_edges(p, image, 1, CEK_ACT_NONE);
        spec_operand_ones(weights);
    } else {
        spec_operand_fill(p, image, -3, 3, true);
        spec_operand_fill(p, weights, -3, 3, false);
    }
}

static bool forward_build(const char *text, spec_problem *p)
{
    conv_choice c = { 0 };
    if (!conv_read(text, CEK_OP_CONV_FORWARD, p, &c))
        return false;
    geometry g = geometry_of(&p->desc.conv);
    cek_dtype sum = spec_sum_type(p->type);
    spec_operand *x = spec_operand_add(p, CEK_CONV_FORWARD_X, p->type, g.batch * volume(g.in) * g.ic);
    spec_operand *w = spec_operand_add(p, CEK_CONV_FORWARD_W, p->type, g.oc * volume(g.kernel) * g.icg);
    spec_operand *y = spec_operand_add(p, CEK_CONV_FORWARD_Y, p->type, g.batch * volume(g.out) * g.oc);
    spec_operand *bias = c.bias ? spec_operand_add(p, CEK_CONV_FORWARD_BIAS, sum, g.oc) : NULL;
    if (!x || !w || !y || (c.bias && !bias))
        return false;
    factors_fill(p, x, w);
    if (bias)
        spec_operand_fill(p, bias, -9, 9, false);
    if (c.packed) {
        if (!spec_operand_sized(p, CEK_CONV_FORWARD_PACKED, SPEC_SIZE_PREPACK))
            return false;
        p->desc.op.flags |= CEK_OP_PREPACKED;
        p->desc.op.operands &= ~CEK_BIT(CEK_CONV_FORWARD_W);
        w->plain = true;
    }
    const double transformed = spec_conv_transformed(&p->desc.conv, x->value, x->count, w->value, w->count);
    for (uint64_t i = 0; i < y->count; i++) {
        spec_num v = conv_sum(p, sum, forward_at(&g, x->value, w->value, i), transformed);
        if (bias)
            v = spec_add(sum, v, spec_exact(bias->value[i % g.oc]));
        spec_operand_expect(y, i, spec_activation(spec_arithmetic(p, sum), c.activation, v), sum);
    }
    return true;
}

static bool backward_data_build(const char *text, spec_problem *p)
{
    conv_choice c = { 0 };
    if (!conv_read(text, CEK_OP_CONV_BACKWARD_DATA, p, &c))
        return false;
    geometry g = geometry_of(&p->desc.conv);
    cek_dtype sum = spec_sum_type(p->type);
    uint64_t pixels = g.batch * volume(g.in) * g.ic;
    spec_operand *dy = spec_operand_add(p, CEK_CONV_BACKWARD_DATA_DY, p->type, g.batch * volume(g.out) * g.oc);
    spec_operand *w = spec_operand_add(p, CEK_CONV_BACKWARD_DATA_W, p->type, g.oc * volume(g.kernel) * g.icg);
    spec_operand *dx = spec_operand_add(p, CEK_CONV_BACKWARD_DATA_DX, p->type, pixels);
    spec_operand *ref = c.act_grad ? spec_operand_add(p, CEK_CONV_BACKWARD_DATA_ACT_REF, p->type, pixels) : NULL;
    if (!dy || !w || !dx || (c.act_grad && !ref))
        return false;
    factors_fill(p, dy, w);
    if (ref && p->fill == SPEC_EDGE)
        spec_operand_edges(p, ref, 1, c.act_grad);
    else if (ref)
        spec_operand_fill(p, ref, -1, 1, false);
    if (c.acc)
        spec_operand_accumulate(p, dx);
    const double transformed = spec_conv_transformed(&p->desc.conv, dy->value, dy->count, w->value, w->count);
    for (uint64_t i = 0; i < dx->count; i++) {
        spec_num v = conv_sum(p, sum, backward_data_at(&g, dy->value, w->value, i), transformed);
        if (ref)
            v = spec_act_grad(spec_arithmetic(p, sum), c.act_grad, v, spec_exact(ref->value[i]));
        spec_operand_expect(dx, i, v, sum);
    }
    return true;
}

static bool backward_weights_build(const char *text, spec_problem *p)
{
    conv_choice c = { 0 };
    if (!conv_read(text, CEK_OP_CONV_BACKWARD_WEIGHTS, p, &c))
        return false;
    geometry g = geometry_of(&p->desc.conv);
    cek_dtype sum = spec_sum_type(p->type);
    spec_operand *x = spec_operand_add(p, CEK_CONV_BACKWARD_WEIGHTS_X, p->type, g.batch * volume(g.in) * g.ic);
    spec_operand *dy = spec_operand_add(p, CEK_CONV_BACKWARD_WEIGHTS_DY, p->type, g.batch * volume(g.out) * g.oc);
    spec_operand *dw = spec_operand_add(p, CEK_CONV_BACKWARD_WEIGHTS_DW, sum, g.oc * volume(g.kernel) * g.icg);
    spec_operand *db = c.bias ? spec_operand_add(p, CEK_CONV_BACKWARD_WEIGHTS_BIAS_GRAD, sum, g.oc) : NULL;
    if (!x || !dy || !dw || (c.bias && !db))
        return false;
    spec_operand_fill(p, x, -3, 3, true);
    spec_operand_fill(p, dy, -3, 3, false);
    if (c.acc || c.acc_w)
        spec_operand_accumulate(p, dw);
    if ((c.acc || c.acc_bias) && db)
        spec_operand_accumulate(p, db);
    const double transformed = spec_conv_transformed(&p->desc.conv, x->value, x->count, dy->value, dy->count);
    for (uint64_t i = 0; i < dw->count; i++)
        spec_operand_expect(dw, i, conv_sum(p, sum, backward_weights_at(&g, x->value, dy->value, i), transformed), sum);
    for (uint64_t oc = 0; db && oc < g.oc; oc++) {
        dot s = { 0 };
        for (uint64_t i = oc; i < dy->count; i += g.oc)
            dot_add(&s, dy->value[i], 1);
        spec_operand_expect(db, oc, spec_sum(sum, s.v, s.magnitude, s.terms, spec_whole(p)), sum);
    }
    return true;
}

/* clang-format off */
const spec_kind spec_kind_conv_forward =
    SPEC_KIND("conv_forward", CEK_OP_CONV_FORWARD, CEK_PROFILE_INFERENCE,
              "mb2ic5ih7oc3oh7kh3ph1:bias", forward_cases, forward_build);
const spec_kind spec_kind_conv_backward_data =
    SPEC_KIND("conv_backward_data", CEK_OP_CONV_BACKWARD_DATA, CEK_PROFILE_TRAINING,
              "mb2ic5ih7oc3oh7kh3ph1", backward_data_cases, backward_data_build);
const spec_kind spec_kind_conv_backward_weights =
    SPEC_KIND("conv_backward_weights", CEK_OP_CONV_BACKWARD_WEIGHTS, CEK_PROFILE_TRAINING,
              "mb2ic5ih7oc3oh7kh3ph1:bias", backward_weights_cases, backward_weights_build);
/* clang-format on */
