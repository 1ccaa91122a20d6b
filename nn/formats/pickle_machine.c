/* pickle_machine.c - a pickle's bytes, stack, memory and values: what there is of each, and no more. */
#include "nn/formats/pickle_machine.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"

/* A tensor takes some 150 bytes of it: room for 200,000. A byte may make a value, four cells and a place of the stack
 * (85 bytes of memory), so that no pickle takes more than a few GiB, and all of them have numbers of 32 bits. */
#define PICKLE_BYTES_MAX ((size_t)1 << 25)

cek_status cek__pm_bad(const cek__pickle_machine *m, const char *cause)
{
    return cek__fail(CEK_BAD_INPUT, "%s: pickle, byte %td, %s: %s", m->path, m->at - m->begin, m->opcode, cause);
}

/* ---- memory: four arrays that double ---- */

static cek_status room_for_one(uint32_t count, uint32_t *room, size_t size, void *inout)
{
    uint32_t more = *room > 0 ? 2 * *room : 256;
    cek_status st = CEK_OK;

    if (count == *room) {
        CEK_TRY(cek__realloc_array(more, size, inout));
        *room = more;
    }
out:
    return st;
}

cek_status cek__pm_push(cek__pickle_machine *m, uint32_t value)
{
    cek_status st;

    CEK_TRY(room_for_one(m->depth, &m->stack_room, sizeof *m->stack, &m->stack));
    m->stack[m->depth++] = value;
out:
    return st;
}

cek_status cek__pm_make(cek__pickle_machine *m, cek__pickle_value value, uint32_t *out)
{
    cek_status st;

    CEK_TRY(room_for_one(m->p->value_count, &m->p->value_room, sizeof *m->p->values, &m->p->values));
    *out = m->p->value_count;
    m->p->values[m->p->value_count++] = value;
out:
    return st;
}

cek_status cek__pm_push_new(cek__pickle_machine *m, cek__pickle_value value)
{
    uint32_t made;
    cek_status st;

    CEK_TRY(cek__pm_make(m, value, &made));
    st = cek__pm_push(m, made);
out:
    return st;
}

cek_status cek__pm_add(cek__pickle_machine *m, uint32_t to, uint32_t key, uint32_t value)
{
    cek__pickle *p = m->p;
    cek__pickle_value *v;
    cek_status st;

    CEK_TRY(room_for_one(p->cell_count, &p->cell_room, sizeof *p->cells, &p->cells));
    p->cells[p->cell_count] = (cek__pickle_cell){ .key = key, .value = value };
    v = &p->values[to];
    if (v->items.last != 0)
        p->cells[v->items.last].next = p->cell_count;
    else
        v->items.first = p->cell_count;
    v->items.last = p->cell_count++;
    v->count++;
out:
    return st;
}

/* ---- what the opcodes take ---- */

cek_status cek__pm_take(cek__pickle_machine *m, size_t size, uint8_t **out)
{
    if ((size_t)(m->end - m->at) < size)
        return cek__pm_bad(m, "the pickle ends within it");
    *out = m->at;
    m->at += size;
    return CEK_OK;
}

cek_status cek__pm_take_number(cek__pickle_machine *m, int width, uint64_t *out)
{
    uint8_t *at = NULL;
    cek_status st;

    *out = 0;
    CEK_TRY(cek__pm_take(m, (size_t)width, &at));
    for (int i = 0; i < width; i++)
        *out |= (uint64_t)at[i] << 8 * i;
out:
    return st;
}

cek_status cek__pm_need(const cek__pickle_machine *m, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (i == m->depth || m->p->values[m->stack[m->depth - 1 - i]].kind == CEK__PICKLE_MARK)
            return cek__pm_bad(m, "the stack has too few values");
    return CEK_OK;
}

cek_status cek__pm_mark(const cek__pickle_machine *m, uint32_t *out)
{
    for (uint32_t i = m->depth; i > 0; i--)
        if (m->p->values[m->stack[i - 1]].kind == CEK__PICKLE_MARK) {
            *out = i - 1;
            return CEK_OK;
        }
    return cek__pm_bad(m, "the stack has no mark");
}

cek_status cek__pm_want(const cek__pickle_machine *m, uint32_t place, cek__pickle_kind kind)
{
    if (m->p->values[m->stack[place]].kind == kind)
        return CEK_OK;
    return cek__fail(CEK_BAD_INPUT, "%s: pickle, byte %td, %s: %s where %s has to be", m->path, m->at - m->begin,
                     m->opcode, cek__pickle_kind_name(m->p->values[m->stack[place]].kind), cek__pickle_kind_name(kind));
}

cek_status cek__pm_take_line(cek__pickle_machine *m, const char **line, size_t *length)
{
    uint8_t *end = memchr(m->at, '\n', (size_t)(m->end - m->at));

    if (end == NULL)
        return cek__pm_bad(m, "the pickle ends within it");
    *line = (const char *)m->at;
    *length = (size_t)(end - m->at);
    m->at = end + 1;
    return CEK_OK;
}

cek_status cek__pm_begin(cek__pickle_machine *m, const char *path, uint8_t *bytes, size_t size, cek__pickle *out)
{
    uint32_t none;
    cek_status st;

    *out = (cek__pickle){ .cell_count = 1 };
    *m = (cek__pickle_machine){
        .path = path, .begin = bytes, .at = bytes, .end = bytes + size, .opcode = "the next opcode", .p = out
    };
    if (size > PICKLE_BYTES_MAX)
        CEK_FAIL(CEK_BAD_INPUT, "%s: a pickle of %zu bytes, at most %zu are read", path, size, PICKLE_BYTES_MAX);
    CEK_TRY(cek__calloc(1, sizeof *out->cells, &out->cells));
    out->cell_room = 1;
    CEK_TRY(cek__pm_make(m, (cek__pickle_value){ .kind = CEK__PICKLE_NONE }, &none));
out:
    return st;
}

void cek__pm_end(cek__pickle_machine *m)
{
    free(m->stack);
    free(m->memory);
}

cek_status cek__pm_remember(cek__pickle_machine *m, uint32_t value)
{
    cek_status st;

    CEK_TRY(room_for_one(m->remembered, &m->memory_room, sizeof *m->memory, &m->memory));
    m->memory[m->remembered++] = value;
out:
    return st;
}
