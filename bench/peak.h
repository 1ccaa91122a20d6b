/* peak.h - the most that a device was seen to do: what other results are a part of. */
#ifndef BENCH_PEAK_H
#define BENCH_PEAK_H

#include "bench/bench.h"

/* peak_product - FLOP/s of square matrix products of a type (operands and result), each twice as
 * wide as the one before, until one takes long enough to hide everything but arithmetic: the best
 * of them, and the side of that one. CEK_UNSUPPORTED where the device has no such product. */
cek_status peak_product(cek_device *device, cek_dtype type, uint32_t math, double *flops, uint64_t *side);

/* What part of the peak that is; a result above it is the peak. */
double peak_part(double flops, double peak);

/* `count` elements of ±[0.5, 1), a function of seed. f32, f16, bf16. The caller's (free). */
void *peak_numbers(cek_dtype type, uint64_t count, uint64_t seed);

#endif
