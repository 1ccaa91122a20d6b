/* digits.h - numbers in decimal digits, as NumPy writes them.
 *
 * Must not know: tensors. The locale changes nothing. */
#ifndef CEK_CORE_TENSOR_DIGITS_H
#define CEK_CORE_TENSOR_DIGITS_H

#include "core/tensor/dtype.h"

enum { CEK__PRECISION_MAX = 100, CEK__DIGITS_MAX = 512 /* of a double in full: 309 before the point, 100 behind */ };

/* A number's text in pieces, so that numbers can be aligned at their points. */
typedef struct cek__digits {
    int whole, fraction, exponent; /* lengths: with a sign; behind the point, as told; with its sign, or 0 */
    char text[CEK__DIGITS_MAX];    /* "-12." and the fraction */
    char exponent_text[12];        /* "+05" */
} cek__digits;

/* `value` of a floating type, finite, in as few digits as tell it from every other number of the type, but at least
 * `least` behind the point, further ones of its own, and rounded to at most `precision` there (nearest, ties to even);
 * as d.ddde+xx if `scientific`. */
void cek__digits_make(cek_dtype type, double value, int least, int precision, bool scientific, cek__digits *out);

#endif
