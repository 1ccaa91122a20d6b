/* dtype.h - element types: names, sizes, and one value put into any of them. */
#ifndef CEK_CORE_TENSOR_DTYPE_H
#define CEK_CORE_TENSOR_DTYPE_H

#include <stdbool.h>

#include "core/base/status.h"

bool cek__dtype_is_float(cek_dtype type);

/* The type of sums over `type`: f64 of f64, else f32. */
cek_dtype cek__dtype_sum(cek_dtype type);

/* Writes `value` as one element of at most 8 bytes, rounded as copies convert: to nearest even, floats overflow to
 * infinity, integers saturate, NaN becomes 0 in integers. */
void cek__dtype_put(cek_dtype type, double value, void *out);

/* The value of an element, which a double holds of every type. */
double cek__dtype_get(cek_dtype type, const void *element);

#endif
