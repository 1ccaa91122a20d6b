/* stored.c - see stored.h. */
#include "nn/data/stored.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/file.h"

typedef struct part {
    char *path;
    cek__file file;
    uint64_t begin;
    int64_t first; /* of its records, among all */
} part;

struct cek__stored {
    size_t bytes;
    int64_t count;
    part *parts;
    size_t part_count;
};

cek_status cek__stored_create(size_t bytes, cek__stored **out)
{
    cek_status st;

    CEK_TRY(cek__calloc(1, sizeof **out, out));
    (*out)->bytes = bytes;
out:
    return st;
}

static void part_close(part *p)
{
    cek__file_close(&p->file);
    free(p->path);
}

void cek__stored_free(cek__stored *r)
{
    if (r == NULL)
        return;
    for (size_t i = 0; i < r->part_count; i++)
        part_close(&r->parts[i]);
    free(r->parts);
    free(r);
}

cek_status cek__stored_add(cek__stored *r, const char *path, uint64_t begin)
{
    cek_status st;
    part p = { .file = CEK__FILE_NONE, .begin = begin, .first = r->count };
    uint64_t held;

    CEK_TRY(cek__strdup(path, &p.path));
    CEK_TRY(cek__file_open(p.path, INT64_MAX, &p.file));
    held = p.file.size > begin ? p.file.size - begin : 0;
    if (held == 0 || held % r->bytes != 0)
        CEK_FAIL(CEK_BAD_INPUT, "%s: %" PRIu64 " bytes of samples, which is no multiple of the %zu that one has", path,
                 held, r->bytes);
    CEK_TRY(cek__realloc_array(r->part_count + 1, sizeof *r->parts, &r->parts));
    r->parts[r->part_count++] = p;
    r->count += (int64_t)(held / r->bytes);
    return CEK_OK;
out:
    part_close(&p);
    return st;
}

int64_t cek__stored_count(const cek__stored *r)
{
    return r->count;
}

cek_status cek__stored_take(const cek__stored *r, int64_t row, void *out)
{
    const part *p = &r->parts[r->part_count - 1];
    uint64_t at;

    while (p->first > row)
        p--;
    at = p->begin + (uint64_t)(row - p->first) * r->bytes;
    for (size_t done = 0; done < r->bytes;) {
        const ssize_t n = pread(p->file.fd, (char *)out + done, r->bytes - done, (off_t)(at + done));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return cek__fail_errno(CEK_IO, errno, "%s: sample %" PRId64 " cannot be read", p->path, row - p->first);
        if (n == 0)
            return cek__fail(CEK_IO, "%s: became shorter, sample %" PRId64 " is gone", p->path, row - p->first);
        done += (size_t)n;
    }
    return CEK_OK;
}
