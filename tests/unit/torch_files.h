/* torch_files.h - files as torch.save writes them, made byte by byte: a pickle of opcodes in a zip archive.
 *
 * A builder knows nothing of what is right, so that lies can be written as easily. */
#ifndef CEK_TESTS_UNIT_TORCH_FILES_H
#define CEK_TESTS_UNIT_TORCH_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum { MADE_ROOM = 16384, MADE_ENTRIES = 24 };

typedef struct made {
    uint8_t bytes[MADE_ROOM];
    size_t size;
    int memo; /* of a pickle: places used */
} made;

static inline void put(made *m, const void *bytes, size_t size)
{
    memcpy(m->bytes + m->size, bytes, size);
    m->size += size;
}

static inline void put_number(made *m, uint64_t value, int width)
{
    for (int i = 0; i < width; i++)
        m->bytes[m->size++] = (uint8_t)(value >> 8 * i);
}

static inline void put_zeros(made *m, int count)
{
    for (int i = 0; i < count; i++)
        m->bytes[m->size++] = 0;
}

/* ---- the pickle ---- */

static inline void op(made *m, int code)
{
    m->bytes[m->size++] = (uint8_t)code;
}

/* Puts what was just made into the memory, as picklers do. */
static inline void op_put(made *m)
{
    op(m, 'q');
    op(m, m->memo++);
}

static inline void op_text(made *m, const char *text)
{
    op(m, 'X');
    put_number(m, strlen(text), 4);
    put(m, text, strlen(text));
    op_put(m);
}

static inline void op_integer(made *m, int64_t value)
{
    if (value >= 0 && value < 256) {
        op(m, 'K');
        put_number(m, (uint64_t)value, 1);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        op(m, 'J');
        put_number(m, (uint64_t)value, 4);
    } else {
        op(m, 0x8a);
        op(m, 8);
        put_number(m, (uint64_t)value, 8);
    }
}

static inline void op_integers(made *m, const int64_t *values, int count)
{
    op(m, '(');
    for (int i = 0; i < count; i++)
        op_integer(m, values[i]);
    op(m, 't');
}

/* "torch\nFloatStorage\n" */
static inline void op_global(made *m, const char *lines)
{
    op(m, 'c');
    put(m, lines, strlen(lines));
    op_put(m);
}

static inline void op_ordered_dict(made *m)
{
    op_global(m, "collections\nOrderedDict\n");
    op(m, ')');
    op(m, 'R');
    op_put(m);
}

static inline void op_storage(made *m, const char *class, const char *key, int64_t values)
{
    op(m, '(');
    op_text(m, "storage");
    op_global(m, class);
    op_text(m, key);
    op_text(m, "cpu");
    op_integer(m, values);
    op(m, 't');
    op(m, 'Q');
}

typedef struct made_tensor {
    const char *name, *class, *key;
    int64_t values, offset; /* of the storage */
    int rank;
    int64_t shape[9], stride[9];
    bool parameter;
} made_tensor;

/* Its name, and the call that rebuilds it. */
static inline void op_tensor(made *m, const made_tensor *t)
{
    op_text(m, t->name);
    if (t->parameter) {
        op_global(m, "torch._utils\n_rebuild_parameter\n");
        op(m, '(');
    }
    op_global(m, "torch._utils\n_rebuild_tensor_v2\n");
    op(m, '(');
    op_storage(m, t->class, t->key, t->values);
    op_integer(m, t->offset);
    op_integers(m, t->shape, t->rank);
    op_integers(m, t->stride, t->rank);
    op(m, 0x89);
    op_ordered_dict(m);
    op(m, 't');
    op(m, 'R');
    if (t->parameter) {
        op(m, 0x88);
        op_ordered_dict(m);
        op(m, 't');
        op(m, 'R');
    }
}

/* ---- the archive ---- */

typedef struct made_zip {
    made out;
    int count;
    struct {
        char name[64];
        uint32_t checksum, size, begin;
    } entry[MADE_ENTRIES];
} made_zip;

/* As torch's writer: size and checksum in the directory alone, flags 0x808. */
static inline void zip_add(made_zip *z, const char *name, const void *bytes, size_t size)
{
    made *m = &z->out;

    snprintf(z->entry[z->count].name, sizeof z->entry->name, "%s", name);
    z->entry[z->count].checksum = (uint32_t)crc32(0, bytes, (uInt)size);
    z->entry[z->count].size = (uint32_t)size;
    z->entry[z->count++].begin = (uint32_t)m->size;
    put_number(m, 0x04034b50, 4);
    put_number(m, 0x08080000, 6);
    put_zeros(m, 4 + 12);
    put_number(m, strlen(name), 2);
    put_number(m, 0, 2);
    put(m, name, strlen(name));
    put(m, bytes, size);
    put_number(m, 0x08074b50, 4);
    put_number(m, z->entry[z->count - 1].checksum, 4);
    put_number(m, size, 4);
    put_number(m, size, 4);
}

static inline void zip_end(made_zip *z, bool wide)
{
    made *m = &z->out;
    size_t directory = m->size, end;

    for (int i = 0; i < z->count; i++) {
        put_number(m, 0x02014b50, 4);
        put_number(m, 0, 4);
        put_number(m, 0x0808, 2);
        put_number(m, 0, 6);
        put_number(m, z->entry[i].checksum, 4);
        put_number(m, z->entry[i].size, 4);
        put_number(m, z->entry[i].size, 4);
        put_number(m, strlen(z->entry[i].name), 2);
        put_zeros(m, 12);
        put_number(m, z->entry[i].begin, 4);
        put(m, z->entry[i].name, strlen(z->entry[i].name));
    }
    end = m->size;
    if (wide) {
        put_number(m, 0x06064b50, 4);
        put_number(m, 44, 8);
        put_number(m, 0x2d031e, 4);
        put_number(m, 0, 8);
        put_number(m, (uint64_t)z->count, 8);
        put_number(m, (uint64_t)z->count, 8);
        put_number(m, end - directory, 8);
        put_number(m, directory, 8);
        put_number(m, 0x07064b50, 4);
        put_number(m, 0, 4);
        put_number(m, end, 8);
        put_number(m, 1, 4);
    }
    put_number(m, 0x06054b50, 4);
    put_number(m, 0, 4);
    put_number(m, (uint64_t)z->count, 2);
    put_number(m, (uint64_t)z->count, 2);
    put_number(m, end - directory, 4);
    put_number(m, wide ? UINT32_MAX : directory, 4);
    put_number(m, 0, 2);
}

#endif
