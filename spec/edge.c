/* edge.c - the numbers at which arithmetic turns: zeros of either sign, infinities, NaN, denormals,
 * the largest, and the arguments around which an elementary function changes its form, overflows,
 * underflows or saturates, in f32 and in f64.
 *
 * Owns: that list, and how operands are filled from it. Behind all pairs from the list come
 * patterns of bits at random, so that every magnitude is met. */
#include <math.h>
#include <string.h>

#include "spec/problem.h"

/* Every one of them with either sign, rounded to the type at hand. */
static const double edges[] = {
    0,
    INFINITY,
    NAN,
    0x1p-149, /* f32: the smallest denormal, the largest, the smallest normal number, the largest */
    0x1.fffffcp-127,
    0x1p-126,
    0x1.fffffep127,
    0x1p-1074, /* the same of f64 */
    0x1p-1022,
    0x1.fffffffffffffp1023,
    1e-30,
    0x1p-24, /* 1 + x is 1 or not */
    0x1p-13, /* tanh x is x or not */
    1e-3,
    0.1,
    0.5,
    0.624, /* tanh: from a polynomial to an exponential */
    0.626,
    0.84375, /* erf: forms of the C library and of devices; gelu too */
    1.2500001,
    0.70710678118654752, /* log: the mantissa wraps; gelu'(-x) is near its zero */
    0.7517915,
    0x1.fffffep-1, /* log near 1 */
    1,
    0x1.000002p0,
    2.5,
    4,
    5.3, /* gelu: 1 + erf is 1 in f32 */
    5.9,
    8.5,  /* gelu and erf: 1 in f64 */
    9.01, /* tanh: 1 in f32 */
    12.9, /* the normal distribution function is denormal in f32, then its density, then 0 */
    13.19,
    13.7,
    14.1,
    14.4,
    16.7, /* sigmoid: 1 in f32; tanh: 1 in f64 */
    19.1,
    37.5, /* the normal distribution function in f64 */
    38.5,
    43.7,
    87.3, /* exp in f32: normal, denormal, 0; finite, infinite */
    88.7,
    88.722,
    88.73,
    91.5,
    103.2,
    103.97,
    104.2,
    708.3, /* the same in f64 */
    709.7,
    709.8,
    744.4,
    745.2,
    3.1415927, /* sin and cos near their zeros, and where the multiple of pi is large */
    1.5707964,
    6.2831855,
    0.99999994,
    3,
    1e4,
    105615,
    16777216,
    1e9,
    1.5e19, /* a square is 2^127, or overflows */
    2e19,
    3e38,
};

uint64_t spec_edge_count(void)
{
    return 2 * sizeof edges / sizeof *edges;
}

/* Any pattern of the type's bits. */
static double pattern(cek_dtype type, uint64_t seed, uint64_t index)
{
    uint64_t bits = spec_mix(seed, index);
    double value;
    spec_decode(type, &bits, 1, &value);
    return value;
}

/* An output of an activation stays one. */
static double output_of(cek_activation activation, double x)
{
    return activation == CEK_ACT_TANH ? tanh(x) : activation == CEK_ACT_SIGMOID ? 1 / (1 + exp(-x)) : x;
}

void spec_operand_edges(spec_problem *p, spec_operand *o, uint64_t step, cek_activation output)
{
    const uint64_t all = spec_edge_count(), seed = p->seed * 64 + o->slot;
    for (uint64_t i = 0; i < o->count; i++) {
        uint64_t n = step ? i / step % all : spec_mix(seed, i) % all;
        double x = step && i >= all * all ? pattern(o->type, seed, i) : n % 2 ? -edges[n / 2] : edges[n / 2];
        x = spec_round(output_of(output, x), o->type);
        o->value[i] = p->flushes && fabs(x) < (double)spec_tiny(o->type) ? copysign(0, x) : x;
    }
}

void spec_operand_ones(spec_operand *o)
{
    for (uint64_t i = 0; i < o->count; i++)
        o->value[i] = 1;
}
