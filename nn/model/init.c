/* init.c - a new model's parameters: PyTorch's default, and fills that are asked for by name.
 *
 * Each number depends on (seed, parameter, index in PyTorch's order) alone, but those of an orthogonal matrix, which
 * depend on all of it. */
#include <fnmatch.h>
#include <math.h>
#include <string.h>
#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/options.h"
#include "core/base/random.h"
#include "core/base/status.h"
#include "nn/model/model.h"

static const double PI = 3.14159265358979323846;

/* ---- one parameter ---- */

/* What is filled, with the numbers that it draws, one after the other. */
typedef struct filling {
    const cek_init *how;
    cek_parameter to;
    uint64_t stream, drawn;
    uint32_t block[4]; /* those that the next one is among */
    double second;     /* of a pair of normal numbers, of which the first was taken; 0: none */
} filling;

/* The next one in (0, 1), never an end of it. */
static double uniform(filling *f)
{
    const uint64_t at = f->drawn++;

    if (at % 4 == 0)
        cek__random_block(f->how->seed, f->stream, at / 4, f->block);
    return ((double)f->block[at % 4] + 0.5) * 0x1p-32;
}

/* Two come of two uniform ones (Box and Muller). */
static double normal(filling *f)
{
    double length, angle, number = f->second;

    f->second = 0;
    if (number != 0)
        return number;
    length = sqrt(-2 * log(uniform(f)));
    angle = 2 * PI * uniform(f);
    f->second = length * sin(angle);
    return length * cos(angle);
}

static void fill_uniform(filling *f, double low, double high)
{
    for (int64_t i = 0; i < f->to.count; i++)
        f->to.data[i] = (float)(low + (high - low) * uniform(f));
}

static void fill_normal(filling *f, double mean, double deviation)
{
    for (int64_t i = 0; i < f->to.count; i++)
        f->to.data[i] = (float)(mean + deviation * normal(f));
}

/* Below how much of the normal distribution x lies. */
static double below(double x)
{
    return 0.5 * erfc(-x / sqrt(2));
}

/* The x in [low, high] with below(x) = part, by halving: erf has no inverse in the C library. */
static double quantile(double part, double low, double high)
{
    for (int i = 0; i < 60; i++) {
        double middle = 0.5 * (low + high);

        if (below(middle) < part)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high);
}

static void fill_truncated(filling *f)
{
    const cek_init *how = f->how;
    const double far = 9; /* deviations, beyond which below() is 0 or 1 */
    const double low = fmax((how->low - how->mean) / how->deviation, -far);
    const double high = fmin((how->high - how->mean) / how->deviation, far);

    for (int64_t i = 0; i < f->to.count; i++) {
        double part = below(low) + (below(high) - below(low)) * uniform(f);

        f->to.data[i] = (float)fmin(fmax(how->mean + how->deviation * quantile(part, low, high), how->low), how->high);
    }
}

/* ---- orthogonal ---- */

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Vector `k` of length n loses what it has in common with those before it, twice, since the first
 * time leaves rounding. */
static void make_orthogonal(double *vectors, int64_t k, int64_t n)
{
    double *v = vectors + k * n, length;

    for (int round = 0; round < 2; round++)
        for (int64_t j = 0; j < k; j++) {
            const double *w = vectors + j * n;
            double common = dot(v, w, n);

            for (int64_t i = 0; i < n; i++)
                v[i] -= common * w[i];
        }
    length = sqrt(dot(v, v, n));
    for (int64_t i = 0; i < n; i++)
        v[i] /= length;
}

/* As a matrix of shape[0] rows: the shorter side's vectors are orthonormal, times the gain. */
static cek_status fill_orthogonal(filling *f)
{
    cek_status st;
    const double gain = f->how->gain != 0 ? f->how->gain : 1;
    const int64_t rows = f->to.shape[0], columns = f->to.count / rows;
    const int64_t count = rows < columns ? rows : columns, length = rows < columns ? columns : rows;
    double *vectors = NULL;

    CEK_TRY(cek__alloc_array((size_t)f->to.count, sizeof *vectors, &vectors));
    for (int64_t i = 0; i < f->to.count; i++)
        vectors[i] = normal(f);
    for (int64_t k = 0; k < count; k++)
        make_orthogonal(vectors, k, length);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            f->to.data[r * columns + c] = (float)(gain * vectors[rows < columns ? r * length + c : c * length + r]);
out:
    free(vectors);
    return st;
}

/* ---- by name ---- */

/* Values that an output sums up, and outputs that a value goes into. */
static void fans(const cek_parameter *p, double *in, double *out)
{
    double taps = (double)p->count / (double)(p->shape[0] * p->shape[1]);

    *in = (double)p->shape[1] * taps;
    *out = (double)p->shape[0] * taps;
}

static double kaiming_deviation(const filling *f)
{
    double in, out;

    fans(&f->to, &in, &out);
    return (f->how->gain != 0 ? f->how->gain : sqrt(2)) / sqrt(f->how->fan_out ? out : in);
}

static double xavier_deviation(const filling *f)
{
    double in, out;

    fans(&f->to, &in, &out);
    return (f->how->gain != 0 ? f->how->gain : 1) * sqrt(2 / (in + out));
}

/* Everything but orthogonal matrices. */
static void fill(filling *f)
{
    const cek_init *how = f->how;
    const double r = sqrt(3); /* the end of a uniform distribution around 0 by its deviation */

    switch (how->kind) {
    case CEK_INIT_CONSTANT: fill_uniform(f, how->mean, how->mean); break;
    case CEK_INIT_UNIFORM: fill_uniform(f, how->low, how->high); break;
    case CEK_INIT_NORMAL: fill_normal(f, how->mean, how->deviation); break;
    case CEK_INIT_TRUNCATED_NORMAL: fill_truncated(f); break;
    case CEK_INIT_KAIMING_UNIFORM: fill_uniform(f, -r * kaiming_deviation(f), r * kaiming_deviation(f)); break;
    case CEK_INIT_KAIMING_NORMAL: fill_normal(f, 0, kaiming_deviation(f)); break;
    case CEK_INIT_XAVIER_UNIFORM: fill_uniform(f, -r * xavier_deviation(f), r * xavier_deviation(f)); break;
    case CEK_INIT_XAVIER_NORMAL: fill_normal(f, 0, xavier_deviation(f)); break;
    default: break; /* refused by init_check */
    }
}

static cek_status init_check(const cek_init *how)
{
    const double numbers[] = { how->gain, how->mean, how->deviation, how->low, how->high };

    if (how->kind < CEK_INIT_CONSTANT || how->kind > CEK_INIT_ORTHOGONAL)
        return cek__fail(CEK_INVALID, "initialisation: kind %u is unknown", how->kind);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!isfinite(numbers[i]))
            return cek__fail(CEK_INVALID, "initialisation: %g is no number to draw with", numbers[i]);
    if (how->gain < 0 || how->deviation < 0)
        return cek__fail(CEK_INVALID, "initialisation: a gain of %g and a deviation of %g", how->gain, how->deviation);
    if (how->low > how->high)
        return cek__fail(CEK_INVALID, "initialisation: from %g to %g", how->low, how->high);
    if (how->kind == CEK_INIT_TRUNCATED_NORMAL && (how->deviation == 0 || how->low == how->high))
        return cek__fail(CEK_INVALID, "initialisation: a normal distribution of deviation %g between %g and %g",
                         how->deviation, how->low, how->high);
    return CEK_OK;
}

static cek_status rank_check(const cek_init *how, const cek_parameter *p)
{
    if (how->kind >= CEK_INIT_KAIMING_UNIFORM && p->rank < 2)
        return cek__fail(CEK_INVALID, "parameter %s has rank %d: such an initialisation is for two and more", p->name,
                         p->rank);
    return CEK_OK;
}

/* *how as it was given, if it makes sense for all that it is for. */
static cek_status init_take(const cek_model *model, const char *names, const cek_init *given, cek_init *how)
{
    cek_status st;
    bool any = false;

    CEK_TRY(cek__options_take("initialisation", how, sizeof *how, given));
    CEK_TRY(init_check(how));
    for (size_t i = 0; i < model->parameter_count; i++) {
        const cek_parameter *p = &model->parameters[i].public;

        if (fnmatch(names, p->name, 0) != 0)
            continue;
        CEK_TRY(rank_check(how, p));
        any = true;
    }
    if (!any)
        CEK_FAIL(CEK_NOT_FOUND, "no parameter is called %s", names);
out:
    return st;
}

cek_status cek_model_init_parameters(cek_model *model, const char *names, const cek_init *given)
{
    cek_status st;
    cek_init how;

    CEK__NOT_NULL(model);
    CEK__NOT_NULL(names);
    CEK__NOT_NULL_AS(given, init);
    CEK_TRY(init_take(model, names, given, &how));
    for (size_t i = 0; i < model->parameter_count; i++) {
        filling f = { .how = &how, .to = model->parameters[i].public, .stream = cek__stream(CEK__STREAM_INIT, i) };

        if (fnmatch(names, f.to.name, 0) != 0)
            continue;
        if (how.kind == CEK_INIT_ORTHOGONAL)
            CEK_TRY(fill_orthogonal(&f));
        else
            fill(&f);
    }
    st = CEK_OK;
out:
    return st;
}

/* ---- all of them ---- */

cek_status cek_model_set_init(cek_model *model, const char *names, const cek_init *given)
{
    cek_status st;
    cek_init how;

    CEK__NOT_NULL(model);
    CEK__NOT_NULL(names);
    CEK__NOT_NULL_AS(given, init);
    CEK_TRY(init_take(model, names, given, &how));
    if (how.kind == CEK_INIT_ORTHOGONAL)
        CEK_FAIL(CEK_INVALID, "orthogonal matrices are for cek_model_init_parameters alone");
    for (size_t i = 0; i < model->parameter_count; i++)
        if (fnmatch(names, model->parameters[i].public.name, 0) == 0)
            model->parameters[i].init = how;
out:
    return st;
}

/* PyTorch draws the weight and the bias of conv and linear layers uniformly from +-1/sqrt(fan_in) (kaiming_uniform_
 * with a = sqrt 5 comes to the same). */
static void parameter_init(cek__parameter *p, uint64_t seed, uint64_t stream)
{
    const float bound = (float)(1 / sqrt(p->fan_in));
    cek_init how = p->init;

    how.seed = seed;
    if (how.kind)
        fill(&(filling){ .how = &how, .to = p->public, .stream = stream });
    else if (p->fan_in != 0)
        cek__random_fill_uniform(seed, stream, 0, (size_t)p->public.count, -bound, bound, p->public.data);
    else
        for (int64_t k = 0; k < p->public.count; k++)
            p->public.data[k] = (float)p->value;
    if (p->pads) {
        const int64_t row = p->public.count / p->public.shape[0];

        memset(p->public.data + p->padding * row, 0, (size_t)row * sizeof *p->public.data);
    }
}

void cek_model_init(cek_model *model, uint64_t seed)
{
    for (size_t i = 0; model && i < model->parameter_count; i++)
        parameter_init(&model->parameters[i], seed, cek__stream(CEK__STREAM_INIT, i));
    for (size_t i = 0; model && i < model->buffer_count; i++)
        for (int64_t k = 0; k < model->buffers[i].public.count; k++)
            model->buffers[i].public.data[k] = (float)model->buffers[i].value;
}
