/* init.c - a new model's parameters: PyTorch's default, and fills that are asked for by name.
 *
 * Each number depends on (seed, parameter, index in PyTorch's order) alone, but those of an orthogonal matrix, which
 * depend on all of it. */
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/options.h"
#include "core/base/random.h"
#include "core/base/status.h"
#include "nn/model/model.h"

static const double PI = 3.14159265358979323846;

/* PyTorch draws the weight and the bias of conv and linear layers uniformly from +-1/sqrt(fan_in) (kaiming_uniform_ with
 * a = sqrt 5 comes to the same). */
void cek_model_init(cek_model *model, uint64_t seed)
{
    for (size_t i = 0; model && i < model->parameter_count; i++) {
        cek__parameter *p = &model->parameters[i];
        float bound = (float)(1 / sqrt(p->fan_in));

        if (p->fan_in == 0) {
            for (int64_t k = 0; k < p->public.count; k++)
                p->public.data[k] = (float)p->value;
            continue;
        }

        cek__random_fill_uniform(seed, cek__stream(CEK__STREAM_INIT, i), 0, (size_t)p->public.count, -bound, bound,
                                 p->public.data);
    }
    for (size_t i = 0; model && i < model->buffer_count; i++)
        for (int64_t k = 0; k < model->buffers[i].public.count; k++)
            model->buffers[i].public.data[k] = (float)model->buffers[i].value;
}

/* ---- one parameter ---- */

/* What is filled, with the numbers that it draws. */
typedef struct filling {
    const cek_init *how;
    cek_parameter to;
    uint64_t stream;
} filling;

/* In (0, 1), never an end of it. */
static double uniform(const filling *f, uint64_t index)
{
    return ((double)cek__random_u32(f->how->seed, f->stream, index) + 0.5) * 0x1p-32;
}

static double normal(const filling *f, uint64_t index)
{
    return sqrt(-2 * log(uniform(f, 2 * index))) * cos(2 * PI * uniform(f, 2 * index + 1));
}

static void fill_uniform(const filling *f, double low, double high)
{
    for (int64_t i = 0; i < f->to.count; i++)
        f->to.data[i] = (float)(low + (high - low) * uniform(f, (uint64_t)i));
}

static void fill_normal(const filling *f, double mean, double deviation)
{
    for (int64_t i = 0; i < f->to.count; i++)
        f->to.data[i] = (float)(mean + deviation * normal(f, (uint64_t)i));
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

static void fill_truncated(const filling *f)
{
    const cek_init *how = f->how;
    const double far = 9; /* deviations, beyond which below() is 0 or 1 */
    const double low = fmax((how->low - how->mean) / how->deviation, -far);
    const double high = fmin((how->high - how->mean) / how->deviation, far);

    for (int64_t i = 0; i < f->to.count; i++) {
        double part = below(low) + (below(high) - below(low)) * uniform(f, (uint64_t)i);

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

/* Vector `k` of length n loses what it has in common with those before it, twice, since the first time leaves rounding. */
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
static cek_status fill_orthogonal(const filling *f, double gain)
{
    cek_status st;
    const int64_t rows = f->to.shape[0], columns = f->to.count / rows;
    const int64_t count = rows < columns ? rows : columns, length = rows < columns ? columns : rows;
    double *vectors = NULL;

    CEK_TRY(cek__alloc_array((size_t)f->to.count, sizeof *vectors, &vectors));
    for (int64_t i = 0; i < f->to.count; i++)
        vectors[i] = normal(f, (uint64_t)i);
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

static cek_status fill(const filling *f)
{
    const cek_init *how = f->how;
    const bool kaiming = how->kind == CEK_INIT_KAIMING_UNIFORM || how->kind == CEK_INIT_KAIMING_NORMAL;
    double gain = how->gain != 0 ? how->gain : kaiming ? sqrt(2) : 1, in = 1, out = 1, deviation;

    if (how->kind >= CEK_INIT_KAIMING_UNIFORM && f->to.rank < 2)
        return cek__fail(CEK_INVALID, "parameter %s has rank %d: such an initialisation is for two and more",
                         f->to.name, f->to.rank);
    if (how->kind >= CEK_INIT_KAIMING_UNIFORM)
        fans(&f->to, &in, &out);
    switch (how->kind) {
    case CEK_INIT_CONSTANT: return fill_uniform(f, how->mean, how->mean), CEK_OK;
    case CEK_INIT_UNIFORM: return fill_uniform(f, how->low, how->high), CEK_OK;
    case CEK_INIT_NORMAL: return fill_normal(f, how->mean, how->deviation), CEK_OK;
    case CEK_INIT_TRUNCATED_NORMAL: return fill_truncated(f), CEK_OK;
    case CEK_INIT_ORTHOGONAL: return fill_orthogonal(f, gain);
    default: break;
    }
    deviation = kaiming ? gain / sqrt(how->fan_out ? out : in) : gain * sqrt(2 / (in + out));
    if (how->kind == CEK_INIT_KAIMING_NORMAL || how->kind == CEK_INIT_XAVIER_NORMAL)
        fill_normal(f, 0, deviation);
    else
        fill_uniform(f, -sqrt(3) * deviation, sqrt(3) * deviation);
    return CEK_OK;
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

cek_status cek_model_init_parameters(cek_model *model, const char *names, const cek_init *given)
{
    cek_status st;
    cek_init how;
    bool any = false;

    CEK__NOT_NULL(model);
    CEK__NOT_NULL(names);
    CEK__NOT_NULL_AS(given, init);
    CEK_TRY(cek__options_take("initialisation", &how, sizeof how, given));
    CEK_TRY(init_check(&how));
    for (size_t i = 0; i < cek_model_parameter_count(model); i++) {
        filling f = { .how = &how, .stream = cek__stream(CEK__STREAM_INIT, i) };
        CEK_TRY(cek_model_parameter(model, i, &f.to));
        if (fnmatch(names, f.to.name, 0) != 0)
            continue;
        CEK_TRY(fill(&f));
        any = true;
    }
    if (!any)
        CEK_FAIL(CEK_NOT_FOUND, "no parameter is called %s", names);
    return CEK_OK;
out:
    return st;
}
