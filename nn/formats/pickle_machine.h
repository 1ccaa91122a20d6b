/* pickle_machine.h - the state of a pickle's interpreter: its bytes, stack, memory, and the values that it makes.
 *
 * For pickle.c, which has the opcodes. Everything is checked here: what a pickle may take from its bytes and its stack.
 * Memory doubles, and grows by what opcodes push alone.
 * Must not know: what an opcode does. */
#ifndef CEK_NN_FORMATS_PICKLE_MACHINE_H
#define CEK_NN_FORMATS_PICKLE_MACHINE_H

#include "core/base/status.h"
#include "nn/formats/pickle_value.h"

typedef struct cek__pickle_machine {
    const char *path;
    uint8_t *begin, *at, *end;
    const char *opcode; /* the name of the one that runs, for errors */
    const cek__pickle_global *globals;
    size_t global_count;
    cek__pickle *p;
    uint32_t *stack, depth, stack_room;
    uint32_t *memory, remembered, memory_room;
    bool stopped;
} cek__pickle_machine;

/* A zeroed machine over bytes of a file; what it makes goes to *out. */
CEK__CHECKED cek_status cek__pm_begin(cek__pickle_machine *m, const char *path, uint8_t *bytes, size_t size,
                                      cek__pickle *out);
void cek__pm_end(cek__pickle_machine *m); /* *out stays */

/* CEK_BAD_INPUT with file, place and opcode. */
cek_status cek__pm_bad(const cek__pickle_machine *m, const char *cause);

/* ---- bytes ---- */

CEK__CHECKED cek_status cek__pm_take(cek__pickle_machine *m, size_t size, uint8_t **out);
/* A whole number of so many bytes, little-endian. */
CEK__CHECKED cek_status cek__pm_take_number(cek__pickle_machine *m, int width, uint64_t *out);
/* The next line without its end. */
CEK__CHECKED cek_status cek__pm_take_line(cek__pickle_machine *m, const char **line, size_t *length);

/* ---- the stack ---- */

CEK__CHECKED cek_status cek__pm_push(cek__pickle_machine *m, uint32_t value);
CEK__CHECKED cek_status cek__pm_push_new(cek__pickle_machine *m, cek__pickle_value value);
/* So many values lie above the last mark or the stack's bottom. */
CEK__CHECKED cek_status cek__pm_need(const cek__pickle_machine *m, uint32_t count);
/* The place of the last mark in the stack. */
CEK__CHECKED cek_status cek__pm_mark(const cek__pickle_machine *m, uint32_t *out);
/* The value at a place of the stack is of this kind. */
CEK__CHECKED cek_status cek__pm_want(const cek__pickle_machine *m, uint32_t place, cek__pickle_kind kind);

/* ---- values and memory ---- */

CEK__CHECKED cek_status cek__pm_make(cek__pickle_machine *m, cek__pickle_value value, uint32_t *out);
/* Appends to a tuple, list or dict. */
CEK__CHECKED cek_status cek__pm_add(cek__pickle_machine *m, uint32_t to, uint32_t key, uint32_t value);
CEK__CHECKED cek_status cek__pm_remember(cek__pickle_machine *m, uint32_t value);

#endif
