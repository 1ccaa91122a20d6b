/* options.c - numbers and lists as users write them, and the environment.
 *
 * Must not know: which options exist or what they mean. */
#include "core/base/options.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE_MAX_SEEN = 4096 }; /* no struct of options comes near: what is beyond was never set */

cek_status cek__options_take(const char *what, void *to, size_t known, const void *from)
{
    uint32_t given;

    memset(to, 0, known);
    if (from == NULL)
        return CEK_OK;
    memcpy(&given, from, sizeof given);
    if (given < sizeof given || given > SIZE_MAX_SEEN)
        return cek__fail(CEK_INVALID, "%s: the options' size (%" PRIu32 ") was not set", what, given);
    for (size_t i = known; i < given; i++)
        if (((const unsigned char *)from)[i] != 0)
            return cek__fail(CEK_UNSUPPORTED, "%s: an option of a later version is set", what);
    memcpy(to, from, given < known ? given : known);
    return CEK_OK;
}

cek_status cek__results_clear(const char *what, void *out)
{
    uint32_t given;

    memcpy(&given, out, sizeof given);
    if (given < sizeof given || given > SIZE_MAX_SEEN)
        return cek__fail(CEK_INVALID, "%s: the result's size (%" PRIu32 ") was not set", what, given);
    memset((char *)out + sizeof given, 0, given - sizeof given);
    return CEK_OK;
}

void cek__results_give(void *out, const void *full, size_t known)
{
    uint32_t given;

    memcpy(&given, out, sizeof given);
    memcpy(out, full, given < known ? given : known);
    memcpy(out, &given, sizeof given);
}

const char *cek__env(const char *name)
{
    const char *value = secure_getenv(name);

    return value != NULL && *value != '\0' ? value : NULL;
}

bool cek__list_next(const char **cursor, const char **item, size_t *length)
{
    const char *start = *cursor;

    if (start == NULL)
        return false;
    *item = start;
    *length = strcspn(start, ",");
    /* NULL marks the end: "a," has a second, empty item, and "" one empty item. */
    *cursor = start[*length] == ',' ? start + *length + 1 : NULL;
    return true;
}

/* The whole text is an integer; strtoll alone would accept leading space and stop anywhere. */
static bool integer(const char *text, int64_t *out)
{
    char *end;

    if (*text == '\0' || text[strspn(text, "+-0123456789")] != '\0')
        return false;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0' && end != text;
}

cek_status cek__parse_int(const char *what, const char *text, int64_t min, int64_t max, int64_t *out)
{
    int64_t value;

    if (!integer(text, &value))
        return cek__fail(CEK_INVALID, "%s: '%s' is not a whole number", what, text);
    if (value < min || value > max)
        return cek__fail(CEK_INVALID, "%s: %" PRId64 " is out of range, from %" PRId64 " to %" PRId64 " is possible",
                         what, value, min, max);
    *out = value;
    return CEK_OK;
}

bool cek__decimal(const char *text, size_t length, double *out)
{
    /* The application's locale may write 0,5. For "C" newlocale returns a constant object; it is never freed. */
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    char *end;
    double value;

    if (length == 0 || strspn(text, "+-.0123456789eE") < length || c == (locale_t)0)
        return false;
    value = strtod_l(text, &end, c);
    if (end != text + length || !isfinite(value))
        return false;
    *out = value;
    return true;
}

cek_status cek__parse_double(const char *what, const char *text, double min, double max, double *out)
{
    double value;

    if (!cek__decimal(text, strlen(text), &value))
        return cek__fail(CEK_INVALID, "%s: '%s' is not a finite number", what, text);
    if (value < min || value > max)
        return cek__fail(CEK_INVALID, "%s: %g is out of range, from %g to %g is possible", what, value, min, max);
    *out = value;
    return CEK_OK;
}
