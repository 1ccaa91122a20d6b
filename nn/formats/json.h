/* json.h - reads JSON piece by piece, without memory of its own: nothing in it can run out.
 *
 *     cek__json j = { .text = text, .at = text, .end = text + length };
 *
 *     for (bool first = true; cek__json_next(&j, '{', &first);) {
 *         const char *key = cek__json_key(&j);
 *         if (cek__json_kind(&j) == '"')
 *             ... cek__json_string(&j) ...
 *         else
 *             cek__json_skip(&j);
 *     }
 *     if (j.cause != NULL)
 *         ... broken at byte j.at - j.text ...
 *
 * After a fault everything answers "nothing more", so one look at `cause` at the end suffices.
 * Strings are decoded where they stand, in a text that is the caller's to change, and live as long as it does. A
 * string with a zero character (\u0000) is a fault, and so is what RFC 8259 or UTF-8 do not allow.
 * Must not know: what is read. */
#ifndef CEK_NN_FORMATS_JSON_H
#define CEK_NN_FORMATS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cek__json {
    char *text, *at;
    char *end;         /* *end is a 0 byte */
    const char *cause; /* NULL, or what is wrong at `at` */
} cek__json;

/* What begins here: '{' '[' '"', '0' for a number, 't' 'f' 'n' for the words, 0 for nothing or a fault. */
char cek__json_kind(cek__json *j);

/* Walks the object ('{') or array ('[') that begins here; `*first` is true before the first call, and then is not
 * touched by others. True: a key or a value follows, and has to be taken before the next call. */
bool cek__json_next(cek__json *j, char open, bool *first);

/* NULL after a fault. */
const char *cek__json_key(cek__json *j);
const char *cek__json_string(cek__json *j);

/* Takes the number that begins here; false if it is not whole (that is no fault) or does not fit (that is one). */
bool cek__json_integer(cek__json *j, int64_t *out);

/* Takes whatever value begins here. */
void cek__json_skip(cek__json *j);

/* Nothing but blanks may follow. */
void cek__json_end(cek__json *j);

#endif
