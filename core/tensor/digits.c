/* digits.c - see digits.h. The C library's printf and strtod round correctly; what they think of points is left out. */
#include "core/tensor/digits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DOUBLE_DIGITS = 17 /* tell every double from its neighbours */ };

/* value = 0.DIGITS x 10^point, of a magnitude */
typedef struct decimal {
    char digits[DOUBLE_DIGITS + 1];
    int count, point;
} decimal;

/* The digits of `text`, as printf's %e writes it, without trailing zeros. */
static decimal decimal_read(const char *text)
{
    decimal d = { .count = 0 };
    int kept = 0;

    for (; *text != '\0' && *text != 'e'; text++)
        if (*text >= '0' && *text <= '9' && d.count < DOUBLE_DIGITS) {
            d.digits[d.count++] = *text;
            kept = *text != '0' ? d.count : kept;
        }
    d.count = kept > 0 ? kept : 1;
    d.digits[d.count] = '\0';
    d.point = atoi(text + 1) + 1;
    return d;
}

static bool is_same(cek_dtype type, const decimal *d, double value)
{
    char text[64];
    unsigned char there[8], back[8];

    snprintf(text, sizeof text, "%se%d", d->digits, d->point - d->count);
    if (type == CEK_F32)
        return strtof(text, NULL) == (float)value; /* not by way of a double, which would round twice */
    cek__dtype_put(type, strtod(text, NULL), there);
    cek__dtype_put(type, value, back);
    return memcmp(there, back, cek_dtype_bytes(type)) == 0;
}

/* The next larger decimal of as many digits. */
static decimal next(decimal d, int count)
{
    for (; d.count < count; d.count++)
        d.digits[d.count] = '0';
    while (d.count > 0 && d.digits[d.count - 1] == '9')
        d.count--;
    if (d.count == 0)
        d = (decimal){ .digits = "0", .count = 1, .point = d.point + 1 };
    d.digits[d.count - 1]++;
    d.digits[d.count] = '\0';
    return d;
}

/* Above a power of two its type has half as many numbers as below, so there the one above may do where the nearest
 * does not. */
static decimal shortest(cek_dtype type, double magnitude)
{
    decimal d, up;
    int exponent;
    const bool lopsided = frexp(magnitude, &exponent) == 0.5;

    for (int count = 1; count <= DOUBLE_DIGITS; count++) {
        char text[64];

        snprintf(text, sizeof text, "%.*e", count - 1, magnitude);
        d = decimal_read(text);
        if (is_same(type, &d, magnitude))
            break;
        up = next(d, count);
        if (lopsided && is_same(type, &up, magnitude))
            return up;
    }
    return d;
}

/* Digits that printf rounded, whatever it has for a point; zeros at the end go, down to `least`. */
static void rounded_put(cek__digits *out, char *at, double magnitude, int least, int precision, bool scientific)
{
    char text[CEK__DIGITS_MAX];
    char *end;
    int behind = -1;

    snprintf(text, sizeof text, scientific ? "%.*e" : "%.*f", precision, magnitude);
    end = strchr(text, 'e');
    if (end != NULL) {
        snprintf(out->exponent_text, sizeof out->exponent_text, "%s", end + 1);
        *end = '\0';
    }
    for (const char *from = text; *from != '\0'; from++) {
        if (*from >= '0' && *from <= '9') {
            *at++ = *from;
            behind += behind >= 0;
        } else if (behind < 0) {
            *at++ = '.';
            behind = 0;
        }
    }
    if (behind < 0) { /* no digit behind the point, and so no point */
        *at++ = '.';
        behind = 0;
    }
    while (behind > least && at[-1] == '0') {
        at--;
        behind--;
    }
    *at = '\0';
}

/* All digits, with zeros before and behind where the point is far. */
static void exact_put(cek__digits *out, char *at, const decimal *d, bool scientific)
{
    const int point = scientific ? 1 : d->point;

    if (scientific)
        snprintf(out->exponent_text, sizeof out->exponent_text, "%+03d", d->point - 1);
    if (point <= 0)
        *at++ = '0';
    for (int i = 0; i < point; i++)
        *at++ = i < d->count ? d->digits[i] : '0';
    *at++ = '.';
    for (int i = point; i < d->count; i++)
        *at++ = i < 0 ? '0' : d->digits[i];
    *at = '\0';
}

void cek__digits_make(cek_dtype type, double value, int least, int precision, bool scientific, cek__digits *out)
{
    const double magnitude = fabs(value);
    const decimal d = shortest(type, magnitude);
    const int fraction = d.count - (scientific ? 1 : d.point);
    char *at = out->text;
    const char *dot;

    *out = (cek__digits){ .whole = 0 };
    if (signbit(value))
        *at++ = '-';
    if (fraction > precision || fraction < least)
        rounded_put(out, at, magnitude, least, fraction > precision ? precision : least, scientific);
    else
        exact_put(out, at, &d, scientific);
    dot = strchr(out->text, '.');
    out->whole = (int)(dot - out->text);
    out->fraction = (int)strlen(dot + 1);
    out->exponent = (int)strlen(out->exponent_text);
}
