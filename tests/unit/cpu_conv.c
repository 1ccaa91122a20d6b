/* cpu_conv.c - convolutions of the CPU backend against plain loops in double: every instruction set
 * that runs here, all directions, odd geometries; exact on integers, within the error of the
 * arithmetic otherwise. */
#include "tests/unit/conv_problem.h"

/* The definition: adds every product to what it belongs to, with the sum of sizes and the number of
 * terms. */
typedef struct sums {
    double *value, *size, *terms;
} sums;

static int64_t taps_of(const conv_desc *d)
{
    return d->kernel[0] * d->kernel[1] * d->kernel[2];
}

static void sums_add(const sums *s, int64_t i, double v, double size, int64_t terms)
{
    s->value[i] += v;
    s->size[i] += size;
    s->terms[i] += (double)terms;
}

static void sum_add(const sums *s, int64_t i, double v)
{
    sums_add(s, i, v, fabs(v), 1);
}

/* The operands; that of the result is not read. */
typedef struct operands {
    double *x, *w, *y;
} operands;

static void products_add(const problem *p, const operands *of, int64_t image, int64_t o, const int64_t out[3],
                         int64_t y, const sums *s)
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
                if (!inside)
                    continue;
                const int64_t pixel = ((image * d->in[0] + at[0]) * d->in[1] + at[1]) * d->in[2] + at[2];
                const int64_t x = pixel * d->in_channels + group * in, w = (o * taps_of(d) + tap) * in;
                const double vy = of->y[y];
                double sum = 0, size = 0;
                switch (d->direction) {
                case CONV_FORWARD:
                    for (int64_t ic = 0; ic < in; ic++) {
                        const double term = of->x[x + ic] * of->w[w + ic];
                        sum += term;
                        size += fabs(term);
                    }
                    sums_add(s, y, sum, size, in);
                    break;
                case CONV_BACKWARD_DATA:
                    for (int64_t ic = 0; ic < in; ic++)
                        sum_add(s, x + ic, vy * of->w[w + ic]);
                    break;
                case CONV_BACKWARD_WEIGHTS:
                    for (int64_t ic = 0; ic < in; ic++)
                        sum_add(s, w + ic, of->x[x + ic] * vy);
                    break;
                }
            }
}

static void definition(const problem *p, const sums *s, const sums *bias)
{
    const conv_desc *d = &p->d;
    const operands of = { widened(d->x, p->nx, p->x), widened(d->w, p->nw, p->w), widened(d->y, p->ny, p->y) };
    int64_t y = 0, out[3];
    for (int64_t image = 0; image < d->batch; image++)
        for (out[0] = 0; out[0] < d->out[0]; out[0]++)
            for (out[1] = 0; out[1] < d->out[1]; out[1]++)
                for (out[2] = 0; out[2] < d->out[2]; out[2]++)
                    for (int64_t o = 0; o < d->out_channels; o++, y++) {
                        products_add(p, &of, image, o, out, y, s);
                        sum_add(bias, o, of.y[y]);
                    }
    free(of.x), free(of.w), free(of.y);
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

START_TEST(weights_have_the_same_gradient_where_no_bias_has_one)
{
    const kind k = { 0 };
    for (int g = 0; g < GEOMETRIES; g++) {
        const cpu_config *config;
        problem p;
        problem_make(&geometries[g], &k, CONV_BACKWARD_WEIGHTS, &p);
        for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
            float *with = copied(CPU_F32, p.nw, p.w), *without = copied(CPU_F32, p.nw, p.w);
            float *bias = copied(CPU_F32, p.nb, p.bias);
            run(&p, &k, config, NULL, with, bias);
            run(&p, &k, config, NULL, without, NULL);
            EXPECT(memcmp(with, without, (size_t)p.nw * 4) == 0, "%s, geometry %d", config->isa, g);
            filled_free(CPU_F32, p.nw, with);
            filled_free(CPU_F32, p.nw, without);
            filled_free(CPU_F32, p.nb, bias);
        }
        problem_free(&p);
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
            /* of one term denormal numbers count */
            const int is_matrix = strncmp(plan.algorithm, "gemm", 4) == 0 && (plan.product.words || plan.product.k > 1);
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
    tcase_add_loop_test(tests, transforms_cost_no_more_than_their_bits, CONV_FORWARD, CONV_BACKWARD_WEIGHTS + 1);
    tcase_add_test(tests, weights_have_the_same_gradient_where_no_bias_has_one);
    tcase_add_loop_test(tests, epilogues_follow_the_formula, CONV_FORWARD, CONV_BACKWARD_DATA + 1);
    tcase_add_loop_test(tests, low_precision_is_converted_on_the_way, CONV_FORWARD, CONV_BACKWARD_WEIGHTS + 1);
    tcase_add_loop_test(tests, bf16_is_multiplied_in_words_where_there_are_such, CONV_FORWARD,
                        CONV_BACKWARD_WEIGHTS + 1);
    tcase_add_loop_test(tests, nan_reaches_what_sees_it, 0, 2);
    tcase_add_loop_test(tests, nan_reaches_pixels_taken_together_at_most, CONV_FORWARD, CONV_BACKWARD_DATA + 1);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
