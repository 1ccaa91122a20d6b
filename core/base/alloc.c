/* alloc.c - malloc and its relatives with overflow checks, a text for exhaustion, and an injection point for tests.
 *
 * Owns: the list of abandoned blocks, and nothing else; memory belongs to the caller. Device memory
 * is none of its business (core/device/memory). */
#include "core/base/alloc.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/fault.h"

/* Pointers travel through memcpy: `out` may be the address of a pointer to anything, and writing it through void **
 * would break the aliasing rules. */
static cek_status give(void *memory, size_t bytes, void *out)
{
    memcpy(out, &memory, sizeof memory);
    if (memory != NULL)
        return CEK_OK;
    return cek__fail(CEK_OUT_OF_MEMORY, "out of host memory: %zu bytes were needed", bytes);
}

static cek_status product(size_t count, size_t size, size_t *bytes, void *out)
{
    void *none = NULL;

    if (!__builtin_mul_overflow(count, size, bytes))
        return CEK_OK;
    if (out != NULL)
        memcpy(out, &none, sizeof none);
    return cek__fail(CEK_OUT_OF_MEMORY, "out of host memory: %zu items of %zu bytes do not fit the address space",
                     count, size);
}

static size_t at_least_one(size_t bytes)
{
    return bytes != 0 ? bytes : 1; /* so that NULL always means failure */
}

cek_status cek__malloc(size_t bytes, void *out)
{
    void *memory = cek__fault_hit(CEK__FAULT_ALLOC) ? NULL : malloc(at_least_one(bytes));

    return give(memory, bytes, out);
}

cek_status cek__calloc(size_t count, size_t size, void *out)
{
    size_t bytes;
    cek_status st = product(count, size, &bytes, out);
    void *memory;

    if (st != CEK_OK)
        return st;
    memory = cek__fault_hit(CEK__FAULT_ALLOC) ? NULL : calloc(1, at_least_one(bytes));
    return give(memory, bytes, out);
}

cek_status cek__alloc_array(size_t count, size_t size, void *out)
{
    size_t bytes;
    cek_status st = product(count, size, &bytes, out);

    return st != CEK_OK ? st : cek__malloc(bytes, out);
}

cek_status cek__alloc_aligned(size_t alignment, size_t bytes, void *out)
{
    void *memory = NULL;

    if (cek__fault_hit(CEK__FAULT_ALLOC) || posix_memalign(&memory, alignment, at_least_one(bytes)) != 0)
        memory = NULL;
    return give(memory, bytes, out);
}

cek_status cek__realloc_array(size_t count, size_t size, void *inout)
{
    size_t bytes;
    cek_status st = product(count, size, &bytes, NULL);
    void *memory;

    if (st != CEK_OK)
        return st;
    memcpy(&memory, inout, sizeof memory);
    memory = cek__fault_hit(CEK__FAULT_ALLOC) ? NULL : realloc(memory, at_least_one(bytes));
    if (memory == NULL)
        return cek__fail(CEK_OUT_OF_MEMORY, "out of host memory: %zu bytes were needed", bytes);
    memcpy(inout, &memory, sizeof memory);
    return CEK_OK;
}

cek_status cek__strndup(const char *text, size_t length, void *out)
{
    char *copy;
    cek_status st = cek__malloc(length + 1, &copy);

    if (st == CEK_OK) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    memcpy(out, &copy, sizeof copy);
    return st;
}

cek_status cek__strdup(const char *text, void *out)
{
    return cek__strndup(text, strlen(text), out);
}

cek_status cek__asprintf(void *out, const char *fmt, ...)
{
    va_list args, again;
    char *text = NULL;
    int length;
    cek_status st = CEK_INTERNAL;

    va_start(args, fmt);
    va_copy(again, args);
    length = vsnprintf(NULL, 0, fmt, args);
    if (length < 0)
        cek__fail(st, "a text could not be formatted");
    else if ((st = cek__malloc((size_t)length + 1, &text)) == CEK_OK)
        vsnprintf(text, (size_t)length + 1, fmt, again);
    va_end(again);
    va_end(args);
    memcpy(out, &text, sizeof text);
    return st;
}

typedef struct abandoned {
    struct abandoned *next;
    void *block;
} abandoned;

static _Atomic(abandoned *) abandoned_blocks; /* grows only */

void cek__abandon(void *block)
{
    abandoned *note;

    if (block == NULL || (note = malloc(sizeof *note)) == NULL)
        return;
    note->block = block;
    note->next = atomic_load(&abandoned_blocks);
    while (!atomic_compare_exchange_weak(&abandoned_blocks, &note->next, note))
        continue;
}

void cek__free_after(cek_status status, void *block)
{
    if (status == CEK_DEVICE_LOST || status == CEK_TIMEOUT)
        cek__abandon(block);
    else
        free(block);
}
