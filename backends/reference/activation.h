/* SPDX-License-Identifier: MIT
 *
 * activation.h - the activation functions of plugin.h and what their backward makes of a gradient.
 */
#ifndef CEK_BACKENDS_REFERENCE_ACTIVATION_H
#define CEK_BACKENDS_REFERENCE_ACTIVATION_H

#include <math.h>

#include <cekernels/plugin.h>

/* Phi, the normal distribution function. erfc, because 1 + erf cancels for negative x; of -x / sqrt 2
 * as a double and what that lost, because in the tail erfc's relative change is x*x times its argument's. */
static inline double normal(double x)
{
    const double rest = -4.8336466567264567e-17; /* of M_SQRT1_2 */
    double z = -x * M_SQRT1_2, lost = isfinite(x) ? fma(-x, M_SQRT1_2, -z) - x * rest : 0;
    return 0.5 * (erfc(z) - M_2_SQRTPI * exp(-z * z) * lost);
}

/* exp(-x*x/2), likewise of the square and what it lost. */
static inline double bell(double x)
{
    double square = x * x;
    return exp(-0.5 * square) * (square < 2000 ? exp(-0.5 * fma(x, x, -square)) : 1);
}

static inline double activate(cek_activation activation, double x)
{
    double e;
    switch (activation) {
    case CEK_ACT_RELU: return x > 0 ? x : x <= 0 ? 0 : x; /* the last: NaN */
    case CEK_ACT_TANH: return tanh(x);
    case CEK_ACT_SIGMOID: e = exp(-fabs(x)); return (x < 0 ? e : 1) / (1 + e);
    case CEK_ACT_GELU: return x * normal(x);
    default: return x;
    }
}

/* dy times the derivative; `ref` is the output y, for GELU the input x. ReLU selects, so that a NaN
 * passes where y > 0 and vanishes where it is not. */
static inline double activate_backward(cek_activation activation, double dy, double ref)
{
    switch (activation) {
    case CEK_ACT_RELU: return ref <= 0 ? 0 : dy;
    case CEK_ACT_TANH: return dy * (1 - ref * ref);
    case CEK_ACT_SIGMOID: return dy * (ref * (1 - ref));
    case CEK_ACT_GELU: return dy * (normal(ref) + ref * bell(ref) / sqrt(2 * M_PI));
    default: return dy;
    }
}

#endif
