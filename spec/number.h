/* number.h - values with a bound of their error: the arithmetic in which every expected result is
 * computed.
 *
 * A spec_num is an exact result `v` (extended precision) and `e`, the largest difference from it
 * that correct arithmetic of the type in use may show. Tolerances are computed along with the
 * values, never chosen. Owns: element types, rounding, running error analysis. Knows nothing of
 * operations or devices. */
#ifndef SPEC_NUMBER_H
#define SPEC_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cekernels/plugin.h"

typedef struct spec_num {
    long double v, e;
} spec_num;

/* Error of a function that is not an instruction's (a normal number's sine and cosine, a softmax's sum), in ulp: what
 * good vector libraries promise. Those of instructions are in plugin.h. */
#define SPEC_FUNCTION_ULPS 8

/* Added to the type in which something is computed: numbers below the type's normal range count.
 * Without it each operand and result there may be 0 instead. */
#define SPEC_DENORMALS (1u << 16)

static inline cek_dtype spec_plain(cek_dtype arithmetic)
{
    return arithmetic & ~SPEC_DENORMALS;
}

size_t spec_type_bytes(cek_dtype type);
const char *spec_type_name(cek_dtype type);
cek_dtype spec_type_parse(const char *name, size_t length);
cek_dtype spec_sum_type(cek_dtype type);   /* f64 of f64, else f32 */
long double spec_roundoff(cek_dtype type); /* half an ulp of 1; 0 for integers */
long double spec_tiny(cek_dtype type);     /* arithmetic without SPEC_DENORMALS may flush results below this */
/* How far apart the type's values are at a magnitude: an ulp, at least the smallest denormal. */
long double spec_ulp(cek_dtype type, long double magnitude);
long double spec_integer_limit(cek_dtype type); /* integers up to this are exact */

/* The nearest value of the type, ties to even; integers saturate and NaN becomes 0. */
double spec_round(long double v, cek_dtype type);
void spec_encode(cek_dtype type, const double *values, size_t count, void *bytes);
void spec_decode(cek_dtype type, const void *bytes, size_t count, double *values);

static inline spec_num spec_exact(long double v)
{
    return (spec_num){ v, 0 };
}

/* A sum of `terms` rounded products in any order, whose magnitudes sum to `magnitude`. `whole`: all
 * terms are integers, so that nothing is rounded while the magnitude fits the type; or there is one,
 * a product with 1. A denormal sum may be flushed. */
spec_num spec_sum(cek_dtype type, long double v, long double magnitude, uint64_t terms, bool whole);

/* Each computes in `type` (perhaps with SPEC_DENORMALS): the error of the operands is carried on and
 * that of the operation added, which is the CEK_ULP_... of plugin.h. */
spec_num spec_add(cek_dtype type, spec_num a, spec_num b);
spec_num spec_sub(cek_dtype type, spec_num a, spec_num b);
spec_num spec_mul(cek_dtype type, spec_num a, spec_num b);
spec_num spec_div(cek_dtype type, spec_num a, spec_num b);
spec_num spec_sqrt(cek_dtype type, spec_num a);
spec_num spec_exp(cek_dtype type, spec_num a);
spec_num spec_expm1(cek_dtype type, spec_num a);
spec_num spec_log(cek_dtype type, spec_num a);
spec_num spec_pow(cek_dtype type, spec_num a, spec_num b);
spec_num spec_erf(cek_dtype type, spec_num a);
spec_num spec_log1p(cek_dtype type, spec_num a);
spec_num spec_floor(spec_num a);
spec_num spec_sign(spec_num a);
spec_num spec_sin(cek_dtype type, spec_num a);
spec_num spec_cos(cek_dtype type, spec_num a);
spec_num spec_activation(cek_dtype type, cek_activation act, spec_num x);
/* dy times the derivative: of the output y, or of the input x for gelu. */
spec_num spec_act_grad(cek_dtype type, cek_activation act, spec_num dy, spec_num ref);

/* What is stored: the value rounded to `type` and the tolerance around it. */
void spec_store(cek_dtype type, spec_num a, double *expect, double *bound);

/* Philox4x32-10, written here again so that no backend is judged by its own code. */
void spec_philox(uint64_t key, uint64_t sample, uint32_t stream, uint64_t block, uint32_t word[4]);

/* spec_operands - the relative error of a product whose f32 factors are rounded as a math mode
 * allows, even towards zero: 10 bits of fraction for tf32, 7 (bf16) for fast. */
static inline double spec_operands(uint32_t math)
{
    double each = math == CEK_MATH_TF32 ? 0x1p-10 : math == CEK_MATH_FAST ? 0x1p-7 : 0;
    return each * (2 + each);
}

#endif
