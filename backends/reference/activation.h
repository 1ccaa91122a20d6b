/* SPDX-License-Identifier: MIT
 *
 * activation.h - the activation functions of plugin.h and what their backward makes of a gradient.
 */
#ifndef CEK_BACKENDS_REFERENCE_ACTIVATION_H
#define CEK_BACKENDS_REFERENCE_ACTIVATION_H

#include <math.h>

#include <cekernels/plugin.h>

static inline double activate(cek_activation activation, double x)
{
    switch (activation) {
    case CEK_ACT_RELU: return x > 0 ? x : x <= 0 ? 0 : x; /* the last: NaN */
    case CEK_ACT_TANH: return tanh(x);
    case CEK_ACT_SIGMOID: return 1 / (1 + exp(-x));
    case CEK_ACT_GELU: return x * 0.5 * erfc(-x * M_SQRT1_2); /* erfc: 1 + erf cancels for negative x */
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
    case CEK_ACT_SIGMOID: return dy * ref * (1 - ref);
    case CEK_ACT_GELU: return dy * (0.5 * erfc(-ref * M_SQRT1_2) + ref * exp(-0.5 * ref * ref) / sqrt(2 * M_PI));
    default: return dy;
    }
}

#endif
