/* json.c - the reader of json.h. */
#include "nn/formats/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"

enum { DEPTH_MAX = 64 }; /* of values that are skipped, on our stack */

static void fault(cek__json *j, const char *cause)
{
    if (j->cause == NULL)
        j->cause = cause;
}

/* The next byte that is not blank; 0 at the end and after a fault. */
static char peek(cek__json *j)
{
    if (j->cause != NULL)
        return '\0';
    j->at += strspn(j->at, " \t\r\n");
    return *j->at;
}

static bool take(cek__json *j, char c, const char *cause)
{
    if (peek(j) == c) {
        j->at++;
        return true;
    }
    fault(j, cause);
    return false;
}

char cek__json_kind(cek__json *j)
{
    char c = peek(j);

    if (c == '-' || (c >= '0' && c <= '9'))
        return '0';
    if (c != '\0' && strchr("{[\"tfn", c) != NULL)
        return c;
    fault(j, "a value is missing");
    return '\0';
}

bool cek__json_next(cek__json *j, char open, bool *first)
{
    char close = open == '{' ? '}' : ']';
    bool begins = *first;

    *first = false;
    if (begins && !take(j, open, "a value is missing"))
        return false;
    if (peek(j) == close) {
        j->at++;
        return false;
    }
    return begins ? j->cause == NULL : take(j, ',', close == '}' ? "neither ',' nor '}'" : "neither ',' nor ']'");
}

/* ---- strings ---- */

/* The four digits of \uXXXX at `at`; more than any if they are none. */
static uint32_t hex4(const char *at)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    uint32_t value = 0;

    for (int i = 0; i < 4; i++) {
        const char *digit = at[i] != '\0' ? strchr(digits, at[i]) : NULL;

        if (digit == NULL)
            return UINT32_MAX;
        value = value << 4 | (uint32_t)((digit - digits) & 15);
    }
    return value;
}

static char *utf8_put(char *to, uint32_t code)
{
    static const unsigned char leads[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    int length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

    for (int i = length - 1; i > 0; i--, code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3f));
    to[0] = (char)(leads[length] | code);
    return to + length;
}

/* \uXXXX, or two of them for one character, behind the backslash at j->at. What is written is shorter. */
static char *unicode_take(cek__json *j, char *to)
{
    uint32_t code = hex4(j->at + 2), low;

    if (code >= 0xd800 && code < 0xdc00 && j->at[6] == '\\' && j->at[7] == 'u') {
        low = hex4(j->at + 8);
        if (low >= 0xdc00 && low < 0xe000) {
            j->at += 12;
            return utf8_put(to, 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00));
        }
    }
    if (code == 0 || code > 0xffff || (code >= 0xd800 && code < 0xe000)) {
        fault(j, code == 0 ? "a zero character in a string" : "\\u without a character's number");
        return to;
    }
    j->at += 6;
    return utf8_put(to, code);
}

static char *escape_take(cek__json *j, char *to)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *letter;

    if (j->at[1] == 'u')
        return unicode_take(j, to);
    letter = j->at[1] != '\0' ? strchr(letters, j->at[1]) : NULL;
    if (letter == NULL) {
        fault(j, "an unknown escape in a string");
        return to;
    }
    j->at += 2;
    *to = meanings[letter - letters];
    return to + 1;
}

const char *cek__json_string(cek__json *j)
{
    char *start, *to;

    if (!take(j, '"', "a string is missing"))
        return NULL;
    start = to = j->at;
    while (j->cause == NULL && *j->at != '"') {
        uint32_t code;
        size_t length = cek__utf8_next(j->at, &code);

        if (*j->at == '\\') {
            to = escape_take(j, to);
            continue;
        }
        if (length == 0 || code < ' ') {
            fault(j, j->at == j->end ? "a string without an end"
                     : length == 0   ? "bytes that are not UTF-8"
                                     : "a control character in a string");
            continue;
        }
        memmove(to, j->at, length);
        to += length;
        j->at += length;
    }
    if (j->cause != NULL)
        return NULL;
    *to = '\0'; /* at the closing quote or before it */
    j->at++;
    return start;
}

const char *cek__json_key(cek__json *j)
{
    const char *key = cek__json_string(j);

    return take(j, ':', "a ':' is missing") ? key : NULL;
}

/* ---- numbers, and what is skipped ---- */

static bool digits_take(cek__json *j)
{
    size_t count = strspn(j->at, "0123456789");

    if (count == 0)
        fault(j, "a digit is missing");
    j->at += count;
    return count > 0;
}

/* True if it is whole. */
static bool number_take(cek__json *j)
{
    bool whole = true;

    j->at += *j->at == '-';
    if (*j->at == '0')
        j->at++; /* a number has no leading zeros: what follows it is the fault */
    else if (!digits_take(j))
        return false;
    if (*j->at == '.') {
        whole = false;
        j->at++;
        digits_take(j);
    }
    if (*j->at == 'e' || *j->at == 'E') {
        whole = false;
        j->at++;
        j->at += *j->at == '+' || *j->at == '-';
        digits_take(j);
    }
    return whole && j->cause == NULL;
}

bool cek__json_integer(cek__json *j, int64_t *out)
{
    char *start;

    if (cek__json_kind(j) != '0') {
        fault(j, "a number is missing");
        return false;
    }
    start = j->at;
    if (!number_take(j))
        return false;
    errno = 0;
    *out = strtoll(start, NULL, 10);
    if (errno == 0)
        return true;
    j->at = start;
    fault(j, "a number that does not fit 64 bits");
    return false;
}

static void word_take(cek__json *j, const char *word)
{
    if (strncmp(j->at, word, strlen(word)) == 0)
        j->at += strlen(word);
    else
        fault(j, "an unknown word");
}

static void value_take(cek__json *j, int depth)
{
    char kind = cek__json_kind(j);

    if (depth == DEPTH_MAX)
        fault(j, "values within values within values");
    switch (kind) {
    case '"': cek__json_string(j); break;
    case '0': number_take(j); break;
    case 't': word_take(j, "true"); break;
    case 'f': word_take(j, "false"); break;
    case 'n': word_take(j, "null"); break;
    case '{':
    case '[':
        for (bool first = true; cek__json_next(j, kind, &first);) {
            if (kind == '{')
                cek__json_key(j);
            value_take(j, depth + 1);
        }
    }
}

void cek__json_skip(cek__json *j)
{
    value_take(j, 0);
}

void cek__json_end(cek__json *j)
{
    if (peek(j) != '\0' || (j->cause == NULL && j->at != j->end))
        fault(j, "something follows the value");
}
