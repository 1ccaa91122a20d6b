/* cpu_conv.c - convolutions of the CPU backend against plain loops in double: every instruction set
 * that runs here, all directions, odd geometries; exact on integers, within the error of the
 * arithmetic otherwise. */
#include "tests/unit/cpu_products.h"

#include "backends/cpu/conv/conv.h"

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
    /* gradients of inputs, added up: blocks of channels, the last of them smaller; several images at once; parts of an
     * image; a long line; all of it in groups */
    { 2, 150, 12, 1, { NONE, { 7, 3, 2, 1, 1, 1 }, { 6, 3, 2, 1, 1, 1 } } },
    { 35, 5, 7, 1, { NONE, { 4, 3, 2, 1, 1, 1 }, { 5, 3, 2, 1, 0, 1 } } },
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

static void desc_make(const geometry *g, const kind *k, conv_direction direction, conv_desc *d)
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

static void problem_make(const geometry *g, const kind *k, conv_direction direction, problem *p)
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

static void problem_free(const problem *p)
{
    filled_free(p->d.x, p->nx, p->x);
    filled_free(p->d.w, p->nw, p->w);
    filled_free(p->d.y, p->ny, p->y);
    filled_free(p->d.x, p->nx, p->ref);
    filled_free(CPU_F32, p->nb, p->bias);
}

/* The definition: adds every product to what it belongs to, with the sum of sizes and the number of
 * terms. */
typedef struct sums {
    double *value, *size, *terms;
} sums;

static void sum_add(const sums *s, int64_t i, double v)
{
    s->value[i] += v;
    s->size[i] += fabs(v);
    s->terms[i] += 1;
}

static void products_add(const problem *p, int64_t image, int64_t o, const int64_t out[3], int64_t y, const sums *s)
{
    const conv_desc *d = &p->d;
    const int64_t in = d->in_channels / d->groups, group = o / (d->out_channels / d->groups);
    int64_t tap = 0, at[3];
    for (int64_t a = 0; a < d->kernel[0]; a++)
        for (int64_t b = 0; b < d->kernel[1]; b++)
            for (int64_t c = 0; c < d->kernel[2]; c++, tap++) {
                const int64_t taps[3] = { a, b, c };
                int inside = 1;
                for (int i = 0; i < 3; i++) {
                    at[i] = out[i] * d->stride[i] - d->pad[i] + taps[i] * d->dilation[i];
                    inside &= at[i] >= 0 && at[i] < d->in[i];
                }
                for (int64_t ic = 0; inside && ic < in; ic++) {
                    const int64_t x = (((image * d->in[0] + at[0]) * d->in[1] + at[1]) * d->in[2] + at[2]) *
                                          d->in_channels +
                                      group * in + ic;
                    const int64_t w = (o * d->kernel[0] * d->kernel[1] * d->kernel[2] + tap) * in + ic;
                    const double vx = type_load(d->x, p->x, x), vw = type_load(d->w, p->w, w),
                                 vy = type_load(d->y, p->y, y);
                    switch (d->direction) {
                    case CONV_FORWARD: sum_add(s, y, vx * vw); break;
                    case CONV_BACKWARD_DATA: sum_add(s, x, vy * vw); break;
                    case CONV_BACKWARD_WEIGHTS: sum_add(s, w, vx * vy); break;
                    }
                }
            }
}

static void definition(const problem *p, const sums *s, const sums *bias)
{
    const conv_desc *d = &p->d;
    int64_t y = 0, out[3];
    for (int64_t image = 0; image < d->batch; image++)
        for (out[0] = 0; out[0] < d->out[0]; out[0]++)
            for (out[1] = 0; out[1] < d->out[1]; out[1]++)
                for (out[2] = 0; out[2] < d->out[2]; out[2]++)
                    for (int64_t o = 0; o < d->out_channels; o++, y++) {
                        products_add(p, image, o, out, y, s);
                        sum_add(bias, o, type_load(d->y, p->y, y));
                    }
}

typedef struct outcome {
    cpu_type type;
    int64_t n;
    const void *old; /* what the output held */
} outcome;

static outcome outcome_of(const problem *p)
{
    switch (p->d.direction) {
    case CONV_FORWARD: return (outcome){ p->d.y, p->ny, p->y };
    case CONV_BACKWARD_DATA: return (outcome){ p->d.x, p->nx, p->x };
    case CONV_BACKWARD_WEIGHTS: break;
    }
    return (outcome){ p->d.w, p->nw, p->w };
}

/* Whether it is computed by transforms. */
static int run(const problem *p, const kind *k, const cpu_config *config, cpu_threads *threads, void *out, float *dbias)
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

static double largest_of(const double *values, int64_t n)
{
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        largest = values[i] > largest ? values[i] : largest;
    return largest;
}

/* Of transforms every element has the errors of its neighbours: all count as the largest. */
static void compare(const problem *p, const kind *k, const cpu_config *config, int number, const sums *s, int inexact,
                    const void *got_all)
{
    const outcome o = outcome_of(p);
    const double terms = inexact ? largest_of(s->terms, o.n) : 0, size = inexact ? largest_of(s->size, o.n) : 0;
    const int exact = k->integers && k->act <= CPU_ACT_RELU && k->deriv <= CPU_ACT_RELU;
    for (int64_t i = 0; i < o.n; i++) {
        const double bias = k->bias && p->d.direction == CONV_FORWARD ? p->bias[i % p->nb] : 0;
        double error = gamma_of((inexact ? terms : s->terms[i]) + 4) * ((inexact ? size : s->size[i]) + fabs(bias));
        double want = act_of(p->d.act, s->value[i] + bias);
        if (p->d.act != CPU_ACT_NONE)
            error = error * slope_max + act_error(p->d.act, want);
        if (p->d.deriv != CPU_ACT_NONE) {
            const double slope = slope_of(p->d.deriv, type_load(p->d.x, p->ref, i));
            error = error * slope_max + fabs(want) * act_error(p->d.deriv, slope);
            want *= slope;
        }
        if (k->accumulate) {
            want += type_load(o.type, o.old, i);
            error += gamma_of(2) * (fabs(want) + s->size[i]);
        }
        if (exact)
            error = 0;
        if (o.type != CPU_F32)
            error += type_unit(o.type) * (fabs(want) + error) + 0x1p-25;
        const double got = type_load(o.type, got_all, i);
        EXPECT(fabs(got - want) <= error, "%s, geometry %d, direction %d, element %ld of %ld: %.9g, not %.9g +- %g",
               config->isa, number, (int)p->d.direction, (long)i, (long)o.n, got, want, error);
    }
}

static void compare_bias(const problem *p, const kind *k, const cpu_config *config, int number, const sums *s,
                         const float *got)
{
    for (int64_t i = 0; i < p->nb; i++) {
        const double want = s->value[i] + (k->accumulate ? p->bias[i] : 0);
        const double error = k->integers ? 0 : gamma_of(s->terms[i] + 4) * (s->size[i] + fabs((double)p->bias[i]));
        EXPECT(fabs(got[i] - want) <= error, "%s, geometry %d, bias gradient %ld: %.9g, not %.9g +- %g", config->isa,
               number, (long)i, got[i], want, error);
    }
}

static sums sums_make(int64_t n)
{
    return (sums){ calloc((size_t)n, 8), calloc((size_t)n, 8), calloc((size_t)n, 8) };
}

static void sums_free(const sums *s)
{
    free(s->value);
    free(s->size);
    free(s->terms);
}

static void check_direction(const kind *k, conv_direction direction)
{
    cpu_threads *threads;
    ck_assert_int_eq(cek__threads_create(2, NULL, 0, &threads), 0);
    for (int g = 0; g < GEOMETRIES; g++) {
        const cpu_config *config;
        problem p;
        problem_make(&geometries[g], k, direction, &p);
        const outcome o = outcome_of(&p);
        const sums s = sums_make(o.n), bias = sums_make(p.nb);
        definition(&p, &s, &bias);
        for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
            void *out = copied(o.type, o.n, o.old);
            float *dbias = copied(CPU_F32, p.nb, p.bias);
            const int inexact = run(&p, k, config, threads, out, dbias);
            compare(&p, k, config, g, &s, inexact, out);
            if (direction == CONV_BACKWARD_WEIGHTS)
                compare_bias(&p, k, config, g, &bias, dbias);
            filled_free(o.type, o.n, out);
            filled_free(CPU_F32, p.nb, dbias);
        }
        sums_free(&s);
        sums_free(&bias);
        problem_free(&p);
    }
    cek__threads_destroy(threads);
}

START_TEST(every_geometry_is_exact_on_integers)
{
    for (int accumulate = 0; accumulate < 2; accumulate++)
        check_direction(
            &(kind){ .integers = 1, .bias = 1, .accumulate = accumulate, .act = CPU_ACT_RELU, .deriv = CPU_ACT_RELU },
            (conv_direction)_i);
}
END_TEST

START_TEST(sums_stay_within_the_error_of_their_arithmetic)
{
    for (int accumulate = 0; accumulate < 2; accumulate++)
        check_direction(&(kind){ .accumulate = accumulate }, (conv_direction)_i);
}
END_TEST

/* Against the direct way: a hundredth of a constant of a transform would be thousands of times as much. */
START_TEST(transforms_cost_no_more_than_their_bits)
{
    static const struct {
        const char *algorithm;
        geometry g;
        double worse; /* times the error of the direct way */
    } cases[] = {
        { "winograd 2x2", { 40, 64, 64, 1, { NONE, { 2, 3, 1, 1, 1, 1 }, { 2, 3, 1, 1, 1, 1 } } }, 4 },
        { "winograd 4x4", { 2, 64, 64, 1, { NONE, { 12, 3, 1, 1, 1, 1 }, { 12, 3, 1, 1, 1, 1 } } }, 4 },
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const kind k = { 0 };
        const cpu_config *config;
        problem p;
        problem_make(&cases[c].g, &k, (conv_direction)_i, &p);
        const outcome o = outcome_of(&p);
        const sums s = sums_make(o.n), bias = sums_make(p.nb);
        definition(&p, &s, &bias);
        for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
            double error[2] = { 0 };
            for (int strict = 0; strict < 2; strict++) {
                conv_plan plan;
                float *out = copied(o.type, o.n, o.old);
                p.d.strict = strict;
                cek__conv_plan(&p.d, config, 1, &plan);
                ck_assert_int_eq(plan.inexact, !strict);
                if (!strict)
                    ck_assert_str_eq(plan.algorithm, cases[c].algorithm);
                run(&p, &k, config, NULL, out, NULL);
                for (int64_t e = 0; e < o.n; e++)
                    error[strict] += (out[e] - s.value[e]) * (out[e] - s.value[e]);
                filled_free(o.type, o.n, out);
            }
            EXPECT(error[0] < error[1] * cases[c].worse * cases[c].worse, "%s %s, direction %d: %.1f times the error",
                   config->isa, cases[c].algorithm, _i, sqrt(error[0] / error[1]));
        }
        sums_free(&s);
        sums_free(&bias);
        problem_free(&p);
    }
}
END_TEST

/* Plans alone: what tiles of products or padding would waste is seen, memory stays in proportion for any number of
 * channels and workers, and how many workers there are changes no choice: bits would follow. */
START_TEST(transforms_are_chosen_where_they_pay)
{
    static const struct {
        int direction, transformed, few; /* tiles, so that weights are transformed where they are used */
        geometry g;
    } cases[] = {
        { CONV_FORWARD, 1, 0, { 8, 256, 256, 1, { NONE, { 28, 3, 1, 1, 1, 1 }, { 28, 3, 1, 1, 1, 1 } } } },
        { CONV_BACKWARD_DATA, 1, 0, { 8, 256, 256, 1, { NONE, { 28, 3, 1, 1, 1, 1 }, { 28, 3, 1, 1, 1, 1 } } } },
        { CONV_BACKWARD_WEIGHTS, 1, 0, { 8, 256, 256, 1, { NONE, { 28, 3, 1, 1, 1, 1 }, { 28, 3, 1, 1, 1, 1 } } } },
        { CONV_FORWARD, 1, 1, { 8, 512, 512, 1, { NONE, { 7, 3, 1, 1, 1, 1 }, { 7, 3, 1, 1, 1, 1 } } } },
        { CONV_BACKWARD_DATA, 1, 1, { 8, 512, 512, 1, { NONE, { 7, 3, 1, 1, 1, 1 }, { 7, 3, 1, 1, 1, 1 } } } },
        { CONV_FORWARD, 1, 1, { 2, 150, 70, 1, { NONE, { 15, 3, 1, 1, 1, 1 }, { 16, 3, 1, 1, 0, 2 } } } },
        { CONV_BACKWARD_DATA, 1, 1, { 2, 150, 70, 1, { NONE, { 15, 3, 1, 1, 1, 1 }, { 16, 3, 1, 1, 0, 2 } } } },
        /* dx has four pixels, however many dy has */
        { CONV_BACKWARD_DATA, 0, 0, { 1, 64, 64, 1, { NONE, { 2, 3, 1, 1, 20, 20 }, { 2, 3, 1, 1, 20, 20 } } } },
        /* 33 channels fill two tiles of 32, 9 times 33 fill ten */
        { CONV_BACKWARD_WEIGHTS, 0, 0, { 16, 33, 512, 1, { NONE, { 3, 3, 1, 1, 1, 1 }, { 3, 3, 1, 1, 1, 1 } } } },
    };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            conv_plan plan;
            conv_desc d;
            desc_make(&cases[c].g, &(kind){ 0 }, (conv_direction)cases[c].direction, &d);
            cek__conv_plan(&d, config, 1, &plan);
            EXPECT(plan.inexact == cases[c].transformed && (plan.winograd.depth != 0) == cases[c].few,
                   "%s, case %d: %s", config->isa, (int)c, plan.algorithm);
        }
        for (int64_t channels = 16; channels <= 1 << 20; channels *= 4)
            for (int c = 0; c < 18; c++) { /* one image, whose tiles are fewer than the workers, or eight */
                conv_plan plan, alone;
                conv_desc d;
                const geometry g = { c < 9 ? 1 : 8,
                                     c % 3 == 1 ? 16 : channels,
                                     c % 3 == 2 ? 16 : channels,
                                     1,
                                     { NONE, { 28, 3, 1, 1, 1, 1 }, { 28, 3, 1, 1, 1, 1 } } };
                desc_make(&g, &(kind){ 0 }, (conv_direction)(c / 3 % 3), &d);
                cek__conv_plan(&d, config, 1, &alone);
                cek__conv_plan(&d, config, 64, &plan);
                EXPECT(plan.algorithm == alone.algorithm, "%s, %ld to %ld channels, direction %d: %s alone, %s",
                       config->isa, (long)g.in_channels, (long)g.out_channels, (int)d.direction, alone.algorithm,
                       plan.algorithm);
                EXPECT(!plan.inexact || plan.workspace_bytes <= (256u << 20) + 64 * (16u << 20),
                       "%s, %ld to %ld channels, direction %d: %zu bytes", config->isa, (long)g.in_channels,
                       (long)g.out_channels, (int)d.direction, plan.workspace_bytes);
            }
    }
}
END_TEST

START_TEST(epilogues_follow_the_formula)
{
    for (int act = CPU_ACT_TANH; act <= CPU_ACT_GELU; act++)
        check_direction(&(kind){ .act = (cpu_act)act, .deriv = (cpu_act)act, .bias = 1 }, (conv_direction)_i);
}
END_TEST

START_TEST(low_precision_is_converted_on_the_way)
{
    for (int type = CPU_BF16; type <= CPU_F16; type++) {
        const cpu_type t = (cpu_type)type, w = _i == CONV_BACKWARD_WEIGHTS ? CPU_F32 : t;
        check_direction(&(kind){ .x = t, .w = w, .y = t, .bias = 1, .act = CPU_ACT_RELU, .deriv = CPU_ACT_TANH },
                        (conv_direction)_i);
    }
}
END_TEST

/* Words of two bf16 are exact on integers too; and used, where a configuration has them, by what is a product of
 * matrices, and forward by windows of an even number of channels. */
START_TEST(bf16_is_multiplied_in_words_where_there_are_such)
{
    const kind k = {
        .x = CPU_BF16, .w = _i == CONV_BACKWARD_WEIGHTS ? CPU_F32 : CPU_BF16, .y = CPU_BF16, .integers = 1
    };
    const cpu_config *config;
    int found = 0;
    for (int g = 0; g < GEOMETRIES; g++) {
        problem p;
        problem_make(&geometries[g], &k, (conv_direction)_i, &p);
        for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
            conv_plan plan;
            cek__conv_plan(&p.d, config, 1, &plan);
            const int even = p.d.in_channels / p.d.groups % 2 == 0 && strcmp(plan.algorithm, "depthwise") != 0;
            const int is_matrix = strncmp(plan.algorithm, "gemm", 4) == 0;
            const int has_words = config->bf16 != NULL;
            const int wanted = is_matrix || (_i == CONV_FORWARD && even && has_words && !config->bf16->along);
            EXPECT((plan.product.words != NULL) == (wanted && has_words), "%s, geometry %d: %s", config->isa, g,
                   plan.algorithm);
            found += is_matrix;
        }
        problem_free(&p);
    }
    ck_assert_int_ge(found, 2);
    check_direction(&k, (conv_direction)_i);
}
END_TEST

/* A line of any length is no reason for a worker's memory to have one, nor for offsets that 32 bits do not hold. Plans
 * alone. */
START_TEST(memory_stays_in_proportion_to_blocks_however_long_a_line_is)
{
    static const geometry lines[] = {
        { 1, 64, 64, 1, { NONE, NONE, { 1 << 20, 3, 1, 1, 1, 1 } } },
        { 1, 64, 64, 1, { NONE, NONE, { 1 << 20, 3, 2, 1, 1, 1 } } },
        { 1, 1, 80000, 1, { NONE, NONE, { 30002, 3, 1, 1, 0, 0 } } },
    };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (size_t g = 0; g < sizeof lines / sizeof *lines; g++) {
            conv_plan plan;
            conv_desc d;
            desc_make(&lines[g], &(kind){ 0 }, (conv_direction)_i, &d);
            cek__conv_plan(&d, config, 1, &plan);
            EXPECT(plan.workspace_bytes <= 32 << 20, "%s, geometry %d: %zu bytes: %s", config->isa, (int)g,
                   plan.workspace_bytes, plan.algorithm);
            EXPECT(plan.product.way_b != PACK_DIRECT || plan.product.sizes.kc * d.out_channels <= INT32_MAX,
                   "%s, geometry %d: blocks of %ld: %s", config->isa, (int)g, (long)plan.product.sizes.kc,
                   plan.algorithm);
        }
}
END_TEST

/* Plans alone, of any shapes: in which order sums are made, and with which instructions. */
START_TEST(what_decides_bits_follows_from_no_number_of_workers)
{
    const cpu_config *config;
    uint32_t state = 11;
    for (int i = 0; i < 300; i++) {
        const int64_t groups = next_random(&state) % 4 ? 1 : 1 + next_random(&state) % 4;
        geometry g = { 1 + next_random(&state) % 20,
                       groups * (1 + next_random(&state) % 200),
                       groups * (1 + next_random(&state) % 200),
                       groups,
                       { NONE, NONE, NONE } };
        for (int dim = next_random(&state) % 8 == 0 ? 0 : 1; dim < 3; dim++) {
            const int64_t kernel = 1 + next_random(&state) % 5, size = kernel + next_random(&state) % 60;
            g.dim[dim].in = size;
            g.dim[dim].kernel = kernel;
            g.dim[dim].stride = 1 + next_random(&state) % 4 / 3;
            g.dim[dim].before = g.dim[dim].after = next_random(&state) % kernel;
        }
        const cpu_type type = next_random(&state) % 3 ? CPU_F32 : CPU_BF16;
        const kind k = { .x = type, .w = type, .y = type, .accumulate = (int)(next_random(&state) % 2) };
        for (int direction = CONV_FORWARD; direction <= CONV_BACKWARD_WEIGHTS; direction++)
            for (int c = 0; (config = cek__config_at(c)) != NULL; c++) {
                conv_plan alone, plan;
                conv_desc d;
                desc_make(&g, &k, (conv_direction)direction, &d);
                cek__conv_plan(&d, config, 1, &alone);
                for (int workers = 3; workers <= 64; workers *= 4) {
                    cek__conv_plan(&d, config, workers, &plan);
                    const product_plan *p = &alone.product, *q = &plan.product;
                    const winograd_plan *v = &alone.winograd, *w = &plan.winograd;
                    const scatter_plan *s = &alone.scatter, *t = &plan.scatter;
                    EXPECT(plan.method == alone.method && plan.algorithm == alone.algorithm &&
                               plan.pixels == alone.pixels && p->splits == q->splits &&
                               p->split_depth == q->split_depth && p->sizes.kc == q->sizes.kc &&
                               p->in_place == q->in_place && p->add == q->add && p->words == q->words &&
                               v->form == w->form && v->depth == w->depth && v->splits == w->splits &&
                               v->rows == w->rows && s->channels == t->channels && s->images == t->images &&
                               s->lines == t->lines && s->heights == t->heights && s->rows == t->rows &&
                               s->sizes.kc == t->sizes.kc,
                           "%s, case %d, direction %d, %d workers: \"%s\", not \"%s\"", config->isa, i, direction,
                           workers, plan.algorithm, alone.algorithm);
                }
            }
    }
}
END_TEST

/* Without threads: what is touched where nothing may be ends the test. */
START_TEST(nothing_beside_operands_is_touched)
{
    for (int first = 0; first < 2; first++)
        for (int type = CPU_F32; type <= CPU_F16; type++) {
            const cpu_type t = (cpu_type)type, tw = _i == CONV_BACKWARD_WEIGHTS ? CPU_F32 : t;
            const kind k = { .x = t, .w = tw, .y = t, .bias = 1, .accumulate = first, .deriv = CPU_ACT_RELU };
            for (int g = 0; g < GEOMETRIES; g++) {
                const cpu_config *config;
                problem p, q;
                problem_make(&geometries[g], &k, (conv_direction)_i, &p);
                const outcome o = outcome_of(&p);
                q = p;
                q.x = fenced(k.x, p.nx, p.x, first);
                q.w = fenced(k.w, p.nw, p.w, first);
                q.y = fenced(k.y, p.ny, p.y, first);
                q.ref = fenced(k.x, p.nx, p.ref, first);
                q.bias = fenced(CPU_F32, p.nb, p.bias, first);
                for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
                    void *out = fenced(o.type, o.n, o.old, first);
                    float *dbias = fenced(CPU_F32, p.nb, p.bias, first);
                    run(&q, &k, config, NULL, out, dbias);
                    fenced_free(o.type, o.n, out);
                    fenced_free(CPU_F32, p.nb, dbias);
                }
                fenced_free(k.x, p.nx, q.x);
                fenced_free(k.w, p.nw, q.w);
                fenced_free(k.y, p.ny, q.y);
                fenced_free(k.x, p.nx, q.ref);
                fenced_free(CPU_F32, p.nb, q.bias);
                problem_free(&p);
            }
        }
}
END_TEST

START_TEST(bits_do_not_depend_on_the_number_of_workers)
{
    const kind k = { .bias = 1 };
    for (int g = 0; g < GEOMETRIES; g++) {
        const cpu_config *config = cek__config_at(0);
        problem p;
        problem_make(&geometries[g], &k, (conv_direction)_i, &p);
        const outcome o = outcome_of(&p);
        void *first = copied(o.type, o.n, o.old);
        float *first_bias = copied(CPU_F32, p.nb, p.bias);
        run(&p, &k, config, NULL, first, first_bias);
        for (int workers = 2; workers <= 5; workers += 3) {
            cpu_threads *threads;
            ck_assert_int_eq(cek__threads_create(workers, NULL, 0, &threads), 0);
            void *out = copied(o.type, o.n, o.old);
            float *dbias = copied(CPU_F32, p.nb, p.bias);
            run(&p, &k, config, threads, out, dbias);
            EXPECT(memcmp(out, first, (size_t)o.n * 4) == 0, "geometry %d, %d workers", g, workers);
            ck_assert_mem_eq(dbias, first_bias, (size_t)p.nb * 4);
            filled_free(o.type, o.n, out);
            filled_free(CPU_F32, p.nb, dbias);
            cek__threads_destroy(threads);
        }
        filled_free(o.type, o.n, first);
        filled_free(CPU_F32, p.nb, first_bias);
        problem_free(&p);
    }
}
END_TEST

/* By any configuration and method, of what one thread packs or two. Those that have no product take none. */
START_TEST(packed_weights_give_the_same_bits)
{
    const kind k = { .bias = 1, .integers = _i, .act = CPU_ACT_RELU };
    const cpu_config *config;
    cpu_threads *threads;
    ck_assert_int_eq(cek__threads_create(2, NULL, 0, &threads), 0);
    for (int g = 0; g < GEOMETRIES; g++) {
        problem p;
        problem_make(&geometries[g], &k, CONV_FORWARD, &p);
        for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
            problem q = p;
            conv_plan plan;
            float *plain = copied(CPU_F32, p.ny, p.y), *packed = copied(CPU_F32, p.ny, p.y);
            q.d.packed = 1;
            cek__conv_plan(&q.d, config, 2, &plan);
            const int64_t floats = cek__conv_packed_floats(&plan);
            EXPECT((floats == 0) == (strcmp(plan.algorithm, "depthwise") == 0), "%s, geometry %d: %s", config->isa, g,
                   plan.algorithm);
            if (floats) {
                q.w = guarded((size_t)floats * 4, 0xff);
                cek__conv_pack(&plan, g % 2 ? threads : NULL, p.w, q.w);
                run(&p, &k, config, threads, plain, NULL);
                run(&q, &k, config, threads, packed, NULL);
                EXPECT(memcmp(plain, packed, (size_t)p.ny * 4) == 0, "%s, geometry %d: %s", config->isa, g,
                       plan.algorithm);
                guard_free(q.w, (size_t)floats * 4);
            }
            filled_free(CPU_F32, p.ny, plain);
            filled_free(CPU_F32, p.ny, packed);
        }
        problem_free(&p);
    }
    cek__threads_destroy(threads);
}
END_TEST

/* A NaN in one pixel reaches the windows that see it, through ReLU, and nothing else: by transforms no more than
 * the squares of 4 x 4 that see it. */
START_TEST(nan_reaches_what_sees_it)
{
    const kind k = { .act = CPU_ACT_RELU };
    const geometry g = { 8, 33, 37, 1, { NONE, { 12, 3, 1, 1, 1, 1 }, { 12, 3, 1, 1, 1, 1 } } };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
        problem p;
        problem_make(&g, &k, CONV_FORWARD, &p);
        p.d.strict = !_i;
        ((float *)p.x)[((12 + 3) * 12 + 6) * 33 + 1] = NAN; /* of the second image */
        float *out = copied(CPU_F32, p.ny, p.y);
        ck_assert_int_eq(run(&p, &k, config, NULL, out, NULL), _i);
        for (int image = 0; image < 8; image++)
            for (int h = 0; h < 12; h++)
                for (int w = 0; w < 12; w++)
                    for (int o = 0; o < 37; o++) {
                        const int sees = image == 1 && abs(h - 3) <= 1 && abs(w - 6) <= 1;
                        const int may = sees || (_i && image == 1 && h < 8 && w / 4 == 1);
                        const int is = isnan(out[((image * 12 + h) * 12 + w) * 37 + o]) != 0;
                        EXPECT(is >= sees && is <= may, "%s: image %d (%d, %d)", config->isa, image, h, w);
                    }
        filled_free(CPU_F32, p.ny, out);
        problem_free(&p);
    }
}
END_TEST

/* The widest pixel of full vectors that a plan may choose for `channels`, 28 in a line. */
static geometry together(const cpu_config *config, conv_direction direction, int64_t parts)
{
    const int64_t few = config->kernels->nr / 2 / parts, other = direction == CONV_BACKWARD_WEIGHTS ? 1 : 5;
    return (geometry){ 3,
                       direction == CONV_BACKWARD_DATA ? few : other,
                       direction == CONV_BACKWARD_DATA ? other : few,
                       1,
                       { NONE, { 6, 3, 1, 1, 1, 1 }, { 28, 3, 1, 1, 1, 1 } } };
}

/* What they multiply by zero is not strict, but is nothing: forward, sums have the order of single pixels; of
 * gradients integers are exact. */
START_TEST(pixels_are_taken_together_where_they_fill_vectors)
{
    const kind k = { .bias = 1,
                     .act = CPU_ACT_RELU,
                     .deriv = CPU_ACT_RELU,
                     .accumulate = _i != CONV_FORWARD,
                     .integers = _i != CONV_FORWARD };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int parts = 1; parts <= 2; parts++) {
            const geometry g = together(config, (conv_direction)_i, parts);
            problem p;
            void *out[2];
            problem_make(&g, &k, (conv_direction)_i, &p);
            const outcome o = outcome_of(&p);
            for (int strict = 0; strict < 2; strict++) {
                const int wide = !strict || _i == CONV_BACKWARD_WEIGHTS;
                conv_plan plan;
                p.d.strict = strict;
                cek__conv_plan(&p.d, config, 1, &plan);
                EXPECT(plan.pixels == (wide ? parts : 1), "%s: %ld pixels, %d", config->isa, (long)plan.pixels, parts);
                EXPECT(plan.inexact == (!strict && parts > 1 && _i != CONV_BACKWARD_WEIGHTS), "%s", config->isa);
                out[strict] = copied(o.type, o.n, o.old);
                float *dbias = copied(CPU_F32, p.nb, p.bias);
                run(&p, &k, config, NULL, out[strict], dbias);
                filled_free(CPU_F32, p.nb, dbias);
            }
            EXPECT(memcmp(out[0], out[1], (size_t)o.n * 4) == 0, "%s, %d pixels together", config->isa, parts);
            filled_free(o.type, o.n, out[0]);
            filled_free(o.type, o.n, out[1]);
            problem_free(&p);
        }
}
END_TEST

/* Nor does a NaN spread beyond pixels that are taken together. */
START_TEST(nan_reaches_pixels_taken_together_at_most)
{
    const kind k = { 0 };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
        const geometry g = together(config, (conv_direction)_i, 2);
        const int few = config->kernels->nr / 4;
        problem p;
        problem_make(&g, &k, (conv_direction)_i, &p);
        const outcome o = outcome_of(&p);
        ((float *)(_i == CONV_FORWARD ? p.x : p.y))[((6 + 3) * 28 + 6) * 5 + 1] = NAN; /* of the second image */
        float *out = copied(CPU_F32, o.n, o.old);
        run(&p, &k, config, NULL, out, NULL);
        for (int at = 0; at < o.n; at++) {
            const int w = at / few % 28, h = at / few / 28 % 6, near = at / few / 28 / 6 == 1 && abs(h - 3) <= 1;
            const int sees = near && abs(w - 6) <= 1, may = near && w >= 4 && w <= 7, is = isnan(out[at]) != 0;
            EXPECT(is >= sees && is <= may, "%s: (%d, %d)", config->isa, h, w);
        }
        filled_free(o.type, o.n, out);
        problem_free(&p);
    }
}
END_TEST

int main(void)
{
    memory_keep();
    Suite *suite = suite_create("cpu_conv");
    TCase *tests = tcase_create("conv");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, every_geometry_is_exact_on_integers, CONV_FORWARD, CONV_BACKWARD_WEIGHTS + 1);
    tcase_add_loop_test(tests, sums_stay_within_the_error_of_their_arithmetic, CONV_FORWARD, CONV_BACKWARD_WEIGHTS + 1);
    tcase_add_test(tests, transforms_are_chosen_where_they_pay);
    tcase_add_loop_test(tests, transforms_cost_no_more_than_their_bits, CONV_FORWARD, CONV_BACKWARD_WEIGHTS + 1);
    tcase_add_loop_test(tests, epilogues_follow_the_formula, CONV_FORWARD, CONV_BACKWARD_DATA + 1);
    tcase_add_loop_test(tests, low_precision_is_converted_on_the_way, CONV_FORWARD, CONV_BACKWARD_WEIGHTS + 1);
    tcase_add_loop_test(tests, bf16_is_multiplied_in_words_where_there_are_such, CONV_FORWARD,
                        CONV_BACKWARD_WEIGHTS + 1);
    tcase_add_loop_test(tests, memory_stays_in_proportion_to_blocks_however_long_a_line_is, CONV_FORWARD,
                        CONV_BACKWARD_WEIGHTS + 1);
    tcase_add_test(tests, what_decides_bits_follows_from_no_number_of_workers);
    tcase_add_loop_test(tests, nothing_beside_operands_is_touched, CONV_FORWARD, CONV_BACKWARD_WEIGHTS + 1);
    tcase_add_loop_test(tests, bits_do_not_depend_on_the_number_of_workers, CONV_FORWARD, CONV_BACKWARD_WEIGHTS + 1);
    tcase_add_loop_test(tests, packed_weights_give_the_same_bits, 0, 2);
    tcase_add_loop_test(tests, nan_reaches_what_sees_it, 0, 2);
    tcase_add_loop_test(tests, pixels_are_taken_together_where_they_fill_vectors, CONV_FORWARD,
                        CONV_BACKWARD_WEIGHTS + 1);
    tcase_add_loop_test(tests, nan_reaches_pixels_taken_together_at_most, CONV_FORWARD, CONV_BACKWARD_DATA + 1);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
