/* conv_problem.h - convolutions for the tests of them: geometries, operands with values, the run.
 *
 * Must not know: what is right. */
#ifndef CEK_TESTS_UNIT_CONV_PROBLEM_H
#define CEK_TESTS_UNIT_CONV_PROBLEM_H

#include "backends/cpu/conv/conv.h"
#include "tests/unit/cpu_products.h"

/* batch, channels in and out, groups; per dimension in, kernel, stride, dilation, padding before
 * and after. */
typedef struct geometry {
    int64_t batch, in_channels, out_channels, groups;
    struct {
        int64_t in, kernel, stride, dilation, before, after;
    } dim[3];
} geometry;

#define NONE             \
    {                    \
        1, 1, 1, 1, 0, 0 \
    }
static const geometry geometries[] = {
    { 2, 5, 3, 1, { NONE, { 7, 3, 1, 1, 1, 1 }, { 6, 3, 1, 1, 1, 1 } } },     /* no vector is full */
    { 2, 1, 6, 1, { NONE, { 12, 5, 1, 1, 2, 2 }, { 13, 5, 1, 1, 2, 2 } } },   /* first layer, 1 channel */
    { 1, 3, 64, 1, { NONE, { 11, 7, 2, 1, 3, 2 }, { 14, 7, 2, 1, 3, 3 } } },  /* first layer, 3 channels, stride 2 */
    { 2, 17, 33, 1, { NONE, { 9, 3, 2, 1, 1, 0 }, { 8, 3, 3, 1, 0, 1 } } },   /* strides, lopsided padding */
    { 1, 16, 40, 1, { NONE, { 10, 3, 1, 2, 2, 2 }, { 11, 3, 1, 3, 3, 2 } } }, /* dilation */
    { 1,
      9,
      8,
      1,
      { NONE, { 11, 3, 2, 2, 2, 1 }, { 12, 4, 3, 2, 0, 3 } } }, /* dilation and stride share a factor, or not */
    { 1, 12, 18, 3, { NONE, { 6, 3, 1, 1, 1, 1 }, { 7, 2, 1, 1, 0, 0 } } }, /* groups */
    { 2, 24, 16, 2, { NONE, { 5, 3, 2, 1, 1, 1 }, { 5, 3, 1, 2, 2, 2 } } },
    { 2, 19, 19, 19, { NONE, { 6, 3, 1, 1, 1, 1 }, { 7, 3, 2, 1, 1, 1 } } }, /* depthwise */
    { 1, 40, 40, 40, { NONE, { 5, 5, 2, 1, 2, 2 }, { 5, 3, 1, 2, 2, 2 } } },
    { 1, 23, 23, 23, { NONE, { 5, 3, 1, 1, 1, 1 }, { 31, 3, 2, 1, 1, 1 } } }, /* runs of pixels, edges beside them */
    { 1, 9, 9, 9, { { 2, 1, 1, 1, 0, 0 }, { 4, 2, 2, 1, 1, 0 }, { 37, 5, 3, 2, 2, 7 } } },
    { 2, 4, 12, 4, { NONE, { 6, 3, 1, 1, 1, 1 }, { 6, 3, 1, 1, 1, 1 } } },  /* depth multiplier 3 */
    { 3, 20, 37, 1, { NONE, { 4, 1, 1, 1, 0, 0 }, { 5, 1, 1, 1, 0, 0 } } }, /* 1 x 1 */
    { 2, 20, 10, 1, { NONE, { 5, 1, 2, 1, 0, 0 }, { 6, 1, 3, 1, 0, 0 } } }, /* most inputs meet no output */
    { 2, 20, 10, 2, { NONE, { 4, 1, 1, 1, 0, 0 }, { 5, 1, 1, 1, 0, 0 } } },
    { 2, 17, 40, 1, { NONE, { 52, 1, 1, 1, 0, 0 }, { 40, 1, 1, 1, 0, 0 } } }, /* a gradient that is turned around */
    { 2, 40, 35, 1, { NONE, { 9, 1, 2, 1, 0, 0 }, { 30, 1, 2, 1, 0, 0 } } },
    { 1, 32, 20, 1, { NONE, { 6, 1, 2, 1, 0, 2 }, { 25, 1, 3, 1, 0, 1 } } }, /* the last of them meets padding */
    { 1, 48, 6, 2, { NONE, { 5, 3, 1, 1, 1, 1 }, { 16, 3, 1, 1, 1, 1 } } },  /* a group's channels end with the image */
    { 2, 3, 5, 1, { NONE, NONE, { 19, 5, 2, 1, 4, 1 } } },                   /* one dimension */
    { 1, 10, 9, 1, { { 4, 2, 1, 1, 0, 1 }, { 5, 3, 2, 1, 1, 1 }, { 6, 3, 1, 1, 1, 1 } } }, /* three */
    { 1, 2, 3, 1, { { 3, 3, 2, 1, 1, 1 }, { 4, 2, 1, 2, 1, 0 }, { 5, 3, 2, 1, 2, 2 } } },
    { 1, 8, 8, 1, { NONE, { 2, 2, 1, 1, 5, 5 }, { 3, 3, 1, 1, 2, 2 } } },     /* windows wholly in the padding */
    { 4, 48, 33, 1, { NONE, { 15, 3, 1, 1, 1, 1 }, { 16, 3, 1, 1, 1, 1 } } }, /* several blocks of k; k split */
    { 2, 64, 22, 2, { NONE, { 9, 3, 1, 2, 2, 1 }, { 16, 3, 1, 1, 1, 1 } } },  /* whole panels of channels */
    { 1, 32, 20, 1, { { 3, 2, 1, 1, 1, 0 }, { 8, 3, 2, 1, 1, 1 }, { 16, 3, 1, 2, 2, 2 } } },
    { 9, 1, 20, 1, { NONE, { 15, 3, 1, 1, 1, 1 }, { 16, 3, 1, 1, 1, 1 } } },
    { 5, 1, 70, 1, { NONE, { 11, 3, 1, 1, 1, 1 }, { 13, 3, 1, 1, 1, 1 } } }, /* dy, read in place, is summed by rows */
    /* pixels as wide as a panel of windows is high, lines of whole runs: columns of A lie side by side, but not from
     * line to line */
    { 2, 6, 32, 1, { NONE, { 8, 5, 1, 1, 2, 2 }, { 8, 5, 1, 1, 2, 2 } } },
    { 2, 12, 64, 1, { NONE, { 8, 5, 1, 1, 2, 2 }, { 8, 5, 1, 1, 2, 2 } } },
    /* gradients of inputs, added up: blocks of channels, the last of them smaller; several images at once; parts of an
     * image; a long line; all of it in groups */
    { 2, 150, 12, 1, { NONE, { 7, 3, 2, 1, 1, 1 }, { 6, 3, 2, 1, 1, 1 } } },
    { 35, 5, 7, 1, { NONE, { 4, 3, 2, 1, 1, 1 }, { 5, 3, 2, 1, 0, 1 } } },
    /* of one tap and one channel weights are a row, packed ahead or not; several tasks, each of some columns */
    { 1, 1, 60000, 1, { NONE, { 4, 1, 1, 1, 0, 0 }, { 4, 1, 1, 1, 0, 0 } } },
    /* weights packed for all tasks: of several blocks of k; of groups and slices */
    { 4, 100, 400, 1, { NONE, { 5, 3, 2, 1, 1, 1 }, { 4, 3, 2, 1, 1, 1 } } },
    { 2, 192, 20, 2, { { 3, 2, 1, 1, 1, 0 }, { 5, 3, 2, 1, 1, 1 }, { 4, 3, 2, 1, 1, 1 } } },
    { 1, 3, 6, 1, { NONE, { 41, 5, 1, 2, 4, 4 }, { 9, 3, 1, 1, 1, 1 } } },
    { 1, 3, 2, 1, { NONE, NONE, { 18001, 5, 3, 2, 2, 2 } } },
    { 2, 140, 8, 2, { { 3, 2, 2, 1, 1, 0 }, { 5, 1, 2, 1, 0, 0 }, { 6, 3, 2, 2, 2, 1 } } },
    /* 3 x 3 taps of 4 x 4 outputs at once: whole squares, parts of them, all paddings, edges of channels, several
     * blocks */
    { 2, 16, 16, 1, { NONE, { 8, 3, 1, 1, 1, 1 }, { 8, 3, 1, 1, 1, 1 } } },
    { 5, 70, 37, 1, { NONE, { 9, 3, 1, 1, 0, 1 }, { 14, 3, 1, 1, 2, 0 } } },
    { 1, 33, 150, 1, { NONE, { 7, 3, 1, 1, 1, 1 }, { 12, 3, 1, 1, 3, 2 } } },
    { 1, 130, 20, 1, { { 3, 1, 1, 1, 0, 0 }, { 12, 3, 1, 1, 1, 1 }, { 11, 3, 1, 1, 0, 0 } } },
    { 20, 24, 18, 1, { NONE, { 12, 3, 1, 1, 1, 1 }, { 8, 3, 1, 1, 1, 1 } } },
    { 2, 48, 64, 1, { NONE, { 6, 3, 1, 1, 9, 1 }, { 7, 3, 1, 1, 9, 8 } } },   /* squares wholly in the padding */
    { 4, 16, 20, 1, { NONE, { 30, 3, 1, 1, 1, 1 }, { 29, 3, 1, 1, 1, 1 } } }, /* tiles in parts, summed apart */
    { 1, 16, 17, 1, { NONE, { 5, 3, 1, 1, 1, 1 }, { 500, 3, 1, 1, 1, 1 } } }, /* no block has whole lines of tiles */
    /* few tiles, many weights */
    { 2, 150, 70, 1, { NONE, { 15, 3, 1, 1, 1, 1 }, { 16, 3, 1, 1, 0, 2 } } },
    /* few channels of a result: pixels taken together, by vectors of 4, 8 and 16; strides, lopsided paddings, more of
     * it than taps, a last pixel that nothing sees, three dimensions */
    { 2, 1, 8, 1, { NONE, { 5, 3, 1, 1, 1, 1 }, { 28, 3, 1, 1, 1, 1 } } },
    { 3, 8, 16, 1, { NONE, { 6, 3, 1, 1, 1, 1 }, { 14, 3, 1, 1, 1, 1 } } },
    { 2, 4, 4, 1, { NONE, { 4, 2, 2, 1, 1, 0 }, { 29, 5, 2, 1, 2, 3 } } },
    { 2, 2, 2, 1, { NONE, { 4, 3, 1, 2, 3, 2 }, { 30, 3, 1, 1, 0, 2 } } },
    { 2, 1, 2, 1, { { 3, 2, 1, 1, 1, 0 }, { 4, 3, 1, 1, 3, 3 }, { 24, 3, 1, 1, 4, 3 } } },
    { 1, 3, 1, 1, { NONE, { 5, 4, 1, 1, 2, 1 }, { 32, 7, 1, 1, 3, 3 } } },
    { 1, 3, 5, 1, { NONE, { 5, 3, 3, 1, 0, 0 }, { 29, 5, 1, 1, 2, 2 } } },
    /* windows that leave out lines between them, of several images in a slab */
    { 19, 15, 20, 1, { NONE, { 7, 1, 3, 1, 2, 0 }, { 8, 1, 1, 1, 0, 0 } } },
    { 1, 4, 16, 2, { { 5, 5, 1, 1, 3, 10 }, { 6, 1, 3, 1, 2, 0 }, { 3, 1, 3, 1, 0, 0 } } },
    /* taps that never see the image: eight of nine; before it; behind it, of two groups; between, where they lie apart;
     * of pixels that would be taken together; of one channel each; all */
    { 5, 33, 40, 1, { NONE, { 1, 3, 1, 1, 1, 1 }, { 1, 3, 1, 1, 1, 1 } } },
    { 4, 16, 37, 1, { NONE, { 2, 3, 2, 1, 1, 1 }, { 2, 3, 2, 1, 1, 1 } } },
    { 3, 20, 24, 2, { { 1, 3, 1, 1, 1, 1 }, { 2, 7, 1, 1, 3, 3 }, { 3, 4, 2, 1, 1, 4 } } },
    { 2, 9, 12, 1, { NONE, { 3, 3, 1, 4, 4, 4 }, { 3, 3, 1, 5, 5, 10 } } },
    { 3, 1, 8, 1, { NONE, { 1, 3, 1, 1, 1, 1 }, { 28, 3, 1, 1, 1, 1 } } },
    { 2, 19, 19, 19, { NONE, { 1, 3, 1, 1, 1, 1 }, { 7, 3, 1, 1, 1, 1 } } },
    { 2, 7, 20, 1, { NONE, { 1, 1, 2, 1, 1, 1 }, { 5, 3, 1, 1, 1, 1 } } },
    /* eight of nine, beside a line so long that it is turned where gradients are added up; six of nine of two groups */
    { 1, 64, 8, 1, { NONE, { 1, 3, 1, 1, 1, 1 }, { 1024, 3, 2, 1, 1, 0 } } },
    { 1, 96, 6, 2, { NONE, { 1, 3, 1, 1, 1, 1 }, { 1100, 3, 2, 1, 1, 1 } } },
    /* of 2 x 2 */
    { 9, 48, 50, 1, { NONE, { 4, 3, 1, 1, 0, 0 }, { 2, 3, 1, 1, 1, 1 } } },
};
enum { GEOMETRIES = sizeof geometries / sizeof *geometries };

/* Types and options of one test. */
typedef struct kind {
    cpu_type x, w, y;
    cpu_act act, deriv;
    int bias, accumulate, integers; /* integers: under strict mathematics */
} kind;

typedef struct problem {
    conv_desc d;
    void *x, *w, *y; /* of all directions; the output's old value where it is written */
    void *ref;
    float *bias;
    int64_t nx, nw, ny, nb;
} problem;

static inline void desc_make(const geometry *g, const kind *k, conv_direction direction, conv_desc *d)
{
    *d = (conv_desc){ .direction = direction,
                      .x = k->x,
                      .w = k->w,
                      .y = k->y,
                      .batch = g->batch,
                      .in_channels = g->in_channels,
                      .out_channels = g->out_channels,
                      .groups = g->groups,
                      .accumulate = k->accumulate,
                      .bias_accumulate = k->accumulate,
                      .strict = k->integers,
                      .act = direction == CONV_FORWARD ? k->act : CPU_ACT_NONE,
                      .deriv = direction == CONV_BACKWARD_DATA ? k->deriv : CPU_ACT_NONE,
                      .ref = k->x };
    for (int i = 0; i < 3; i++) {
        d->in[i] = g->dim[i].in;
        d->kernel[i] = g->dim[i].kernel;
        d->stride[i] = g->dim[i].stride;
        d->dilation[i] = g->dim[i].dilation;
        d->pad[i] = g->dim[i].before;
        d->out[i] = (d->in[i] + g->dim[i].before + g->dim[i].after - d->dilation[i] * (d->kernel[i] - 1) - 1) /
                        d->stride[i] +
                    1;
    }
}

static inline void problem_make(const geometry *g, const kind *k, conv_direction direction, problem *p)
{
    uint32_t state = 7;
    const conv_desc *d = &p->d;
    desc_make(g, k, direction, &p->d);
    p->nx = g->batch * g->in_channels;
    p->nw = g->out_channels * (g->in_channels / g->groups);
    p->ny = g->batch * g->out_channels;
    for (int i = 0; i < 3; i++) {
        p->nx *= d->in[i];
        p->nw *= d->kernel[i];
        p->ny *= d->out[i];
    }
    p->nb = g->out_channels;
    p->x = filled(k->x, p->nx, k->integers, &state);
    p->w = filled(k->w, p->nw, k->integers, &state);
    p->y = filled(k->y, p->ny, k->integers, &state);
    p->ref = filled(k->x, p->nx, k->integers, &state);
    p->bias = filled(CPU_F32, p->nb, k->integers, &state);
}

static inline void problem_free(const problem *p)
{
    filled_free(p->d.x, p->nx, p->x);
    filled_free(p->d.w, p->nw, p->w);
    filled_free(p->d.y, p->ny, p->y);
    filled_free(p->d.x, p->nx, p->ref);
    filled_free(CPU_F32, p->nb, p->bias);
}

typedef struct outcome {
    cpu_type type;
    int64_t n;
    const void *old; /* what the output held */
} outcome;

static inline outcome outcome_of(const problem *p)
{
    switch (p->d.direction) {
    case CONV_FORWARD: return (outcome){ p->d.y, p->ny, p->y };
    case CONV_BACKWARD_DATA: return (outcome){ p->d.x, p->nx, p->x };
    case CONV_BACKWARD_WEIGHTS: break;
    }
    return (outcome){ p->d.w, p->nw, p->w };
}

/* Whether it is computed by transforms. */
static inline int run(const problem *p, const kind *k, const cpu_config *config, cpu_threads *threads, void *out,
                      float *dbias)
{
    conv_plan plan;
    cek__conv_plan(&p->d, config, cek__threads_workers(threads), &plan);
    void *workspace = guarded(plan.workspace_bytes, 0xff);
    cek__conv_run(&plan, threads,
                  &(conv_args){ .x = p->x,
                                .w = p->w,
                                .y = p->y,
                                .out = out,
                                .ref = p->ref,
                                .bias = p->d.direction == CONV_FORWARD && k->bias ? p->bias : NULL,
                                .dbias = p->d.direction == CONV_BACKWARD_WEIGHTS ? dbias : NULL },
                  workspace);
    guard_free(workspace, plan.workspace_bytes);
    return plan.inexact;
}

/* The widest pixel of full vectors that a plan may choose for `channels`, 28 in a line. */
static inline geometry together(const cpu_config *config, conv_direction direction, int64_t parts)
{
    const int64_t few = config->kernels->nr / 2 / parts, other = direction == CONV_BACKWARD_WEIGHTS ? 1 : 5;
    return (geometry){ 3,
                       direction == CONV_BACKWARD_DATA ? few : other,
                       direction == CONV_BACKWARD_DATA ? other : few,
                       1,
                       { NONE, { 6, 3, 1, 1, 1, 1 }, { 28, 3, 1, 1, 1, 1 } } };
}

#endif
