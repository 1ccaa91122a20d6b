/* options.h - reads what users write: environment variables, numbers, lists; and structs of options.
 *
 * `what` names the thing in an error ("CEKERNELS_CPU_DEVICES", "--batch"). Nothing but the whole text is accepted:
 * no trailing characters, no empty items, no silent clipping. Errors are CEK_INVALID. */
#ifndef CEK_CORE_BASE_OPTIONS_H
#define CEK_CORE_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

/* A struct of options as this version knows it: of `from`, which starts with its uint32_t size, at most `known` bytes;
 * what an older program left out is zero, the default. NULL: all zero. CEK_INVALID if the size was not set,
 * CEK_UNSUPPORTED if a newer program has set what this version does not know: nothing is overlooked. */
CEK__SHARED CEK__CHECKED cek_status cek__options_take(const char *what, void *to, size_t known, const void *from);

/* The other direction: `out` starts with its uint32_t size, which the caller has set, and gets at
 * most that many bytes of `full`, `known` bytes long. Checked first, and then 0 but for the size, as a failure leaves
 * it. */
CEK__SHARED CEK__CHECKED cek_status cek__results_clear(const char *what, void *out);
CEK__SHARED void cek__results_give(void *out, const void *full, size_t known);

/* secure_getenv: NULL in a program with raised privileges, if unset, or if empty. */
CEK__SHARED const char *cek__env(const char *name);

CEK__SHARED CEK__CHECKED cek_status cek__parse_int(const char *what, const char *text, int64_t min, int64_t max,
                                                   int64_t *out);
/* Finite numbers only, with a point whatever the locale. */
CEK__SHARED CEK__CHECKED cek_status cek__parse_double(const char *what, const char *text, double min, double max,
                                                      double *out);

/* Reads the decimal number that fills text[0 .. length): digits, sign, point, exponent; no spaces, no hex, no inf or
 * nan, whatever the locale. text[length] must be readable and must not continue a number. False if it is not one or
 * does not fit a finite double. */
CEK__SHARED bool cek__decimal(const char *text, size_t length, double *out);

/* Walks "a,b,c" without copying: returns false at the end, else sets item and length and moves *cursor on. An empty
 * item has length 0; whether that is an error is the caller's to say. Start with *cursor = text. */
CEK__SHARED bool cek__list_next(const char **cursor, const char **item, size_t *length);

#endif
