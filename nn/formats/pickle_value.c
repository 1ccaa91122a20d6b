/* pickle_value.c - what a pickle stands for: kinds and their names, texts, tuples. */
#include "nn/formats/pickle_value.h"

#include <stdlib.h>
#include <string.h>

void cek__pickle_clear(cek__pickle *pickle)
{
    free(pickle->values);
    free(pickle->cells);
    *pickle = (cek__pickle){ 0 };
}

const char *cek__pickle_kind_name(cek__pickle_kind kind)
{
    static const char *const names[CEK__PICKLE_KINDS] = {
        "nothing", "a truth value", "an integer", "a number", "a text",          "a tuple",
        "a list",  "a dict",        "a name",     "a call",   "a persistent id", "a mark",
    };

    return names[kind];
}

bool cek__pickle_text_is(const cek__pickle_value *value, const char *text)
{
    return value->kind == CEK__PICKLE_TEXT && value->text.length == strlen(text) &&
           memcmp(value->text.bytes, text, value->text.length) == 0;
}

bool cek__pickle_tuple(const cek__pickle *pickle, uint32_t value, uint32_t count, uint32_t *out)
{
    const cek__pickle_value *v = &pickle->values[value];

    if (v->kind != CEK__PICKLE_TUPLE || v->count != count)
        return false;
    for (uint32_t at = v->items.first; at != 0; at = pickle->cells[at].next)
        *out++ = pickle->cells[at].value;
    return true;
}
