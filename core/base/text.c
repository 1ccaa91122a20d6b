/* text.c - which characters may be printed, and what stands for the others; see text.h. */
#include "core/base/text.h"

#include <stdbool.h>
#include <string.h>

static bool is_continuation(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

size_t cek__utf8_next(const char *text, uint32_t *code)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 }; /* by length: less has a shorter form */
    unsigned char lead = (unsigned char)text[0];
    size_t length = lead < 0x80 ? 1 : lead < 0xc0 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf8 ? 4 : 0;

    if (lead == 0 || length == 0)
        return 0;
    *code = length == 1 ? lead : lead & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (!is_continuation(text[i]))
            return 0;
        *code = *code << 6 | ((unsigned char)text[i] & 0x3f);
    }
    return *code < least[length] || *code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff) ? 0 : length;
}

/* Moves on or breaks the line. */
static bool is_space(uint32_t code)
{
    return (code >= '\t' && code <= '\r') || code == 0x85 || code == 0x2028 || code == 0x2029;
}

/* Speaks to the terminal (C0, DEL, C1), or lets text appear in another order than it has. */
static bool is_command(uint32_t code)
{
    return code < ' ' || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e || code == 0x200f ||
           (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

void cek_text_printable(char *text)
{
    char *to = text;

    if (text == NULL)
        return;
    while (*text != '\0') {
        uint32_t code;
        size_t length = cek__utf8_next(text, &code);

        if (length == 0) { /* one mark for what looks like one broken character */
            *to++ = '?';
            do
                text++;
            while (is_continuation(*text));
            continue;
        }
        if (is_space(code) || is_command(code)) {
            *to++ = is_space(code) ? ' ' : '?';
        } else {
            memmove(to, text, length);
            to += length;
        }
        text += length;
    }
    *to = '\0';
}

void cek__text_cut(char *text, size_t size)
{
    size_t at = strlen(text);

    if (at > size - sizeof "...")
        at = size - sizeof "...";
    while (at > 0 && is_continuation(text[at]))
        at--;
    memcpy(text + at, "...", sizeof "...");
}
