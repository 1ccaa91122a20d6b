/* pickle_value.h - what a pickle stands for, as data: values that refer to each other by number, cycles included.
 *
 * Whoever looks at them goes down as far as it knows the form and no further.
 * Must not know: opcodes, torch, files. */
#ifndef CEK_NN_FORMATS_PICKLE_VALUE_H
#define CEK_NN_FORMATS_PICKLE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum cek__pickle_kind {
    CEK__PICKLE_NONE,
    CEK__PICKLE_BOOL,
    CEK__PICKLE_INTEGER,
    CEK__PICKLE_FLOAT,
    CEK__PICKLE_TEXT,
    CEK__PICKLE_TUPLE,
    CEK__PICKLE_LIST,
    CEK__PICKLE_DICT,
    CEK__PICKLE_GLOBAL,
    CEK__PICKLE_CALL,
    CEK__PICKLE_PERSISTENT,
    CEK__PICKLE_MARK, /* never in a result */
    CEK__PICKLE_KINDS
} cek__pickle_kind;

typedef struct cek__pickle_value {
    cek__pickle_kind kind;
    uint32_t count; /* of a TUPLE, LIST or DICT */
    union {
        int64_t integer; /* and BOOL */
        double number;
        struct {
            char *bytes; /* in the pickle: no 0 byte behind it, but another byte of the pickle that is no text's */
            size_t length;
        } text;
        struct {
            uint32_t first, last; /* cells; 0: none */
        } items;
        uint32_t global; /* its place in the caller's list */
        struct {
            uint32_t global, arguments; /* the latter a value: a TUPLE */
        } call;
        uint32_t id; /* of PERSISTENT: a value */
    };
} cek__pickle_value;

typedef struct cek__pickle_cell {
    uint32_t key, value, next; /* values, the former of a DICT alone; a cell, 0: none */
} cek__pickle_cell;

typedef struct cek__pickle_global {
    const char *name; /* "collections OrderedDict" */
    bool dict;        /* called with nothing, it makes an empty DICT */
} cek__pickle_global;

typedef struct cek__pickle {
    cek__pickle_value *values; /* [0] is NONE */
    cek__pickle_cell *cells;   /* [0] is no cell */
    uint32_t value_count, value_room, cell_count, cell_room;
    uint32_t root; /* what the pickle stands for */
} cek__pickle;

void cek__pickle_clear(cek__pickle *pickle); /* a zeroed one is accepted */

const char *cek__pickle_kind_name(cek__pickle_kind kind); /* "a tuple" */
bool cek__pickle_text_is(const cek__pickle_value *value, const char *text);
/* Values of a tuple of `count`; false for anything else. */
bool cek__pickle_tuple(const cek__pickle *pickle, uint32_t value, uint32_t count, uint32_t *out);

#endif
