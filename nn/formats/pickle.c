/* pickle.c - the opcodes of state dicts, one function each, in a table.
 *
 * They are those of Python's Lib/pickletools.py; the table is all that is known of them. */
#include "nn/formats/pickle.h"

#include <endian.h>
#include <string.h>

#include "nn/formats/pickle_machine.h"

enum { PROTOCOL = 2, GLOBAL_SHOWN = 200 };

static cek_status run_proto(cek__pickle_machine *m, int unused)
{
    uint64_t version;
    cek_status st;

    (void)unused;
    CEK_TRY(cek__pm_take_number(m, 1, &version));
    if (version != PROTOCOL)
        CEK_FAIL(CEK_BAD_INPUT, "%s: pickle of protocol %d; %d, which torch.save writes by default, is read", m->path,
                 (int)version, PROTOCOL);
out:
    return st;
}

static cek_status run_stop(cek__pickle_machine *m, int unused)
{
    cek_status st;

    (void)unused;
    CEK_TRY(cek__pm_need(m, 1));
    if (m->depth != 1 || m->at != m->end) {
        st = cek__pm_bad(m, "something is left over");
        goto out;
    }
    m->p->root = m->stack[0];
    m->stopped = true;
out:
    return st;
}

/* An integer of `width` bytes, in two's complement where that is negative. */
static cek_status run_integer(cek__pickle_machine *m, int width)
{
    int bytes = width < 0 ? -width : width;
    uint64_t bits;
    cek_status st;

    CEK_TRY(cek__pm_take_number(m, bytes, &bits));
    if (width < 0 && bytes < 8 && (bits >> (8 * bytes - 1) & 1) != 0)
        bits |= ~UINT64_C(0) << 8 * bytes;
    st = cek__pm_push_new(m, (cek__pickle_value){ .kind = CEK__PICKLE_INTEGER, .integer = (int64_t)bits });
out:
    return st;
}

static cek_status run_long1(cek__pickle_machine *m, int unused)
{
    uint64_t bytes;
    cek_status st;

    (void)unused;
    CEK_TRY(cek__pm_take_number(m, 1, &bytes));
    if (bytes == 0 || bytes > 8)
        return cek__pm_bad(m, "an integer of no byte, or of more than 64 bits");
    st = run_integer(m, -(int)bytes);
out:
    return st;
}

/* What needs nothing but its kind. */
static cek_status run_kind(cek__pickle_machine *m, int kind)
{
    return cek__pm_push_new(m, (cek__pickle_value){ .kind = (cek__pickle_kind)kind });
}

static cek_status run_bool(cek__pickle_machine *m, int value)
{
    return cek__pm_push_new(m, (cek__pickle_value){ .kind = CEK__PICKLE_BOOL, .integer = value });
}

static cek_status run_binfloat(cek__pickle_machine *m, int unused)
{
    uint8_t *at;
    uint64_t bits;
    double number;
    cek_status st;

    (void)unused;
    CEK_TRY(cek__pm_take(m, sizeof bits, &at));
    memcpy(&bits, at, sizeof bits);
    bits = be64toh(bits);
    memcpy(&number, &bits, sizeof number);
    st = cek__pm_push_new(m, (cek__pickle_value){ .kind = CEK__PICKLE_FLOAT, .number = number });
out:
    return st;
}

static cek_status run_binunicode(cek__pickle_machine *m, int unused)
{
    uint64_t length;
    uint8_t *text;
    cek_status st;

    (void)unused;
    CEK_TRY(cek__pm_take_number(m, 4, &length));
    CEK_TRY(cek__pm_take(m, length, &text));
    st = cek__pm_push_new(m, (cek__pickle_value){ .kind = CEK__PICKLE_TEXT, .text = { (char *)text, length } });
out:
    return st;
}

static cek_status run_global(cek__pickle_machine *m, int unused)
{
    const char *module, *name;
    size_t module_length, name_length;
    cek_status st;

    (void)unused;
    CEK_TRY(cek__pm_take_line(m, &module, &module_length));
    CEK_TRY(cek__pm_take_line(m, &name, &name_length));
    for (uint32_t i = 0; i < m->global_count; i++) {
        const char *known = m->globals[i].name;

        if (strlen(known) == module_length + 1 + name_length && memcmp(known, module, module_length) == 0 &&
            known[module_length] == ' ' && memcmp(known + module_length + 1, name, name_length) == 0)
            return cek__pm_push_new(m, (cek__pickle_value){ .kind = CEK__PICKLE_GLOBAL, .global = i });
    }
    CEK_FAIL(CEK_BAD_INPUT, "%s: its pickle wants %.*s.%.*s, which has no place in a state dict; nothing was executed",
             m->path, (int)(module_length < GLOBAL_SHOWN ? module_length : GLOBAL_SHOWN), module,
             (int)(name_length < GLOBAL_SHOWN ? name_length : GLOBAL_SHOWN), name);
out:
    return st;
}

/* The values from a place of the stack on, as a tuple in their place. */
static cek_status tuple_make(cek__pickle_machine *m, uint32_t from, uint32_t depth)
{
    uint32_t tuple;
    cek_status st;

    CEK_TRY(cek__pm_make(m, (cek__pickle_value){ .kind = CEK__PICKLE_TUPLE }, &tuple));
    for (uint32_t i = from; i < m->depth; i++)
        CEK_TRY(cek__pm_add(m, tuple, 0, m->stack[i]));
    m->depth = depth;
    st = cek__pm_push(m, tuple);
out:
    return st;
}

static cek_status run_tuple(cek__pickle_machine *m, int unused)
{
    uint32_t mark;
    cek_status st;

    (void)unused;
    CEK_TRY(cek__pm_mark(m, &mark));
    st = tuple_make(m, mark + 1, mark);
out:
    return st;
}

static cek_status run_short_tuple(cek__pickle_machine *m, int count)
{
    cek_status st;

    CEK_TRY(cek__pm_need(m, (uint32_t)count));
    st = tuple_make(m, m->depth - (uint32_t)count, m->depth - (uint32_t)count);
out:
    return st;
}

/* The values from `first` on go to the list below them; whatever lies there goes. */
static cek_status list_extend(cek__pickle_machine *m, uint32_t first, uint32_t depth)
{
    cek_status st;

    if (depth == 0)
        return cek__pm_bad(m, "the stack has too few values");
    CEK_TRY(cek__pm_want(m, depth - 1, CEK__PICKLE_LIST));
    for (uint32_t i = first; i < m->depth; i++)
        CEK_TRY(cek__pm_add(m, m->stack[depth - 1], 0, m->stack[i]));
    m->depth = depth;
out:
    return st;
}

static cek_status run_append(cek__pickle_machine *m, int unused)
{
    cek_status st;

    (void)unused;
    CEK_TRY(cek__pm_need(m, 2));
    st = list_extend(m, m->depth - 1, m->depth - 1);
out:
    return st;
}

static cek_status run_appends(cek__pickle_machine *m, int unused)
{
    uint32_t mark;
    cek_status st;

    (void)unused;
    CEK_TRY(cek__pm_mark(m, &mark));
    st = list_extend(m, mark + 1, mark);
out:
    return st;
}

/* Likewise keys and values, to the dict below. */
static cek_status dict_extend(cek__pickle_machine *m, uint32_t first, uint32_t depth)
{
    cek_status st;

    if (depth == 0 || (m->depth - first) % 2 != 0)
        return cek__pm_bad(m, "the stack has too few values");
    CEK_TRY(cek__pm_want(m, depth - 1, CEK__PICKLE_DICT));
    for (uint32_t i = first; i < m->depth; i += 2)
        CEK_TRY(cek__pm_add(m, m->stack[depth - 1], m->stack[i], m->stack[i + 1]));
    m->depth = depth;
out:
    return st;
}

static cek_status run_setitem(cek__pickle_machine *m, int unused)
{
    cek_status st;

    (void)unused;
    CEK_TRY(cek__pm_need(m, 3));
    st = dict_extend(m, m->depth - 2, m->depth - 2);
out:
    return st;
}

static cek_status run_setitems(cek__pickle_machine *m, int unused)
{
    uint32_t mark;
    cek_status st;

    (void)unused;
    CEK_TRY(cek__pm_mark(m, &mark));
    st = dict_extend(m, mark + 1, mark);
out:
    return st;
}

/* What was to be called with what; a call that makes a dict is that dict. */
static cek_status run_reduce(cek__pickle_machine *m, int unused)
{
    const cek__pickle_global *callee;
    uint32_t global, arguments;
    cek_status st;

    (void)unused;
    CEK_TRY(cek__pm_need(m, 2));
    CEK_TRY(cek__pm_want(m, m->depth - 2, CEK__PICKLE_GLOBAL));
    CEK_TRY(cek__pm_want(m, m->depth - 1, CEK__PICKLE_TUPLE));
    arguments = m->stack[m->depth - 1];
    global = m->p->values[m->stack[m->depth - 2]].global;
    callee = &m->globals[global];
    if (callee->dict && m->p->values[arguments].count != 0) {
        st = cek__pm_bad(m, "a dict that is made of something");
        goto out;
    }
    m->depth -= 2;
    st = cek__pm_push_new(m, callee->dict
                                 ? (cek__pickle_value){ .kind = CEK__PICKLE_DICT }
                                 : (cek__pickle_value){ .kind = CEK__PICKLE_CALL, .call = { global, arguments } });
out:
    return st;
}

/* The attributes of a dict (torch keeps _metadata there) are nothing to anybody. */
static cek_status run_build(cek__pickle_machine *m, int unused)
{
    cek_status st;

    (void)unused;
    CEK_TRY(cek__pm_need(m, 2));
    CEK_TRY(cek__pm_want(m, m->depth - 2, CEK__PICKLE_DICT));
    CEK_TRY(cek__pm_want(m, m->depth - 1, CEK__PICKLE_DICT));
    m->depth--;
out:
    return st;
}

static cek_status run_binpersid(cek__pickle_machine *m, int unused)
{
    cek_status st;

    (void)unused;
    CEK_TRY(cek__pm_need(m, 1));
    CEK_TRY(cek__pm_want(m, m->depth - 1, CEK__PICKLE_TUPLE));
    st = cek__pm_push_new(m, (cek__pickle_value){ .kind = CEK__PICKLE_PERSISTENT, .id = m->stack[--m->depth] });
out:
    return st;
}

/* `width`: bytes of the place's number. */
static cek_status run_put(cek__pickle_machine *m, int width)
{
    uint64_t place;
    cek_status st;

    CEK_TRY(cek__pm_take_number(m, width, &place));
    CEK_TRY(cek__pm_need(m, 1));
    if (place != m->remembered) /* as every pickler counts: so no place is larger than the pickle */
        return cek__pm_bad(m, "it skips a place of the memory");
    st = cek__pm_remember(m, m->stack[m->depth - 1]);
out:
    return st;
}

static cek_status run_get(cek__pickle_machine *m, int width)
{
    uint64_t place;
    cek_status st;

    CEK_TRY(cek__pm_take_number(m, width, &place));
    if (place >= m->remembered)
        return cek__pm_bad(m, "nothing is at that place of the memory");
    st = cek__pm_push(m, m->memory[place]);
out:
    return st;
}

/* ---- the table ---- */

/* clang-format off */
static const struct {
    const char *name;
    cek_status (*run)(cek__pickle_machine *m, int argument); /* NULL: has no place in a state dict */
    int argument;
} opcodes[256] = {
    [0x80] = { "PROTO", run_proto, 0 },
    ['.'] = { "STOP", run_stop, 0 },
    ['('] = { "MARK", run_kind, CEK__PICKLE_MARK },
    ['N'] = { "NONE", run_kind, CEK__PICKLE_NONE },
    [']'] = { "EMPTY_LIST", run_kind, CEK__PICKLE_LIST },
    ['}'] = { "EMPTY_DICT", run_kind, CEK__PICKLE_DICT },
    [0x88] = { "NEWTRUE", run_bool, 1 },
    [0x89] = { "NEWFALSE", run_bool, 0 },
    ['J'] = { "BININT", run_integer, -4 },
    ['K'] = { "BININT1", run_integer, 1 },
    ['M'] = { "BININT2", run_integer, 2 },
    [0x8a] = { "LONG1", run_long1, 0 },
    ['G'] = { "BINFLOAT", run_binfloat, 0 },
    ['X'] = { "BINUNICODE", run_binunicode, 0 },
    ['c'] = { "GLOBAL", run_global, 0 },
    ['t'] = { "TUPLE", run_tuple, 0 },
    [')'] = { "EMPTY_TUPLE", run_short_tuple, 0 },
    [0x85] = { "TUPLE1", run_short_tuple, 1 },
    [0x86] = { "TUPLE2", run_short_tuple, 2 },
    [0x87] = { "TUPLE3", run_short_tuple, 3 },
    ['a'] = { "APPEND", run_append, 0 },
    ['e'] = { "APPENDS", run_appends, 0 },
    ['s'] = { "SETITEM", run_setitem, 0 },
    ['u'] = { "SETITEMS", run_setitems, 0 },
    ['R'] = { "REDUCE", run_reduce, 0 },
    ['b'] = { "BUILD", run_build, 0 },
    ['Q'] = { "BINPERSID", run_binpersid, 0 },
    ['q'] = { "BINPUT", run_put, 1 },
    ['r'] = { "LONG_BINPUT", run_put, 4 },
    ['h'] = { "BINGET", run_get, 1 },
    ['j'] = { "LONG_BINGET", run_get, 4 },
    ['0'] = { .name = "POP" },           ['1'] = { .name = "POP_MARK" },      ['2'] = { .name = "DUP" },
    ['B'] = { .name = "BINBYTES" },      ['C'] = { .name = "SHORT_BINBYTES" }, ['F'] = { .name = "FLOAT" },
    ['I'] = { .name = "INT" },           ['L'] = { .name = "LONG" },          ['P'] = { .name = "PERSID" },
    ['S'] = { .name = "STRING" },        ['T'] = { .name = "BINSTRING" },     ['U'] = { .name = "SHORT_BINSTRING" },
    ['V'] = { .name = "UNICODE" },       ['d'] = { .name = "DICT" },          ['l'] = { .name = "LIST" },
    ['g'] = { .name = "GET" },           ['p'] = { .name = "PUT" },           ['i'] = { .name = "INST" },
    ['o'] = { .name = "OBJ" },           [0x81] = { .name = "NEWOBJ" },       [0x82] = { .name = "EXT1" },
    [0x83] = { .name = "EXT2" },         [0x84] = { .name = "EXT4" },         [0x8b] = { .name = "LONG4" },
};
/* clang-format on */

cek_status cek__pickle_read(const char *path, uint8_t *bytes, size_t size, const cek__pickle_global *globals,
                            size_t global_count, cek__pickle *out)
{
    cek__pickle_machine m;
    cek_status st;

    CEK_TRY(cek__pm_begin(&m, path, bytes, size, out));
    m.globals = globals;
    m.global_count = global_count;
    while (!m.stopped) {
        uint8_t *code;

        CEK_TRY(cek__pm_take(&m, 1, &code));
        m.opcode = opcodes[*code].name;
        if (opcodes[*code].run == NULL)
            CEK_FAIL(CEK_BAD_INPUT, "%s: pickle, byte %td: opcode %s (%d) has no place in a state dict", path,
                     code - bytes, m.opcode != NULL ? m.opcode : "unknown", *code);
        CEK_TRY(opcodes[*code].run(&m, opcodes[*code].argument));
    }
out:
    cek__pm_end(&m);
    if (st != CEK_OK)
        cek__pickle_clear(out);
    return st;
}
