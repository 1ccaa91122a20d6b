/* bytes.c - reads plain and gzip files the same way.
 *
 * Owns: the file's bytes and zlib's state. Must not know: what the bytes mean. */
#include "nn/data/bytes.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/base/alloc.h"
#include "core/base/file.h"

enum {
    DEFLATE_RATIO_MAX = 1032, /* 258 bytes from 2 bits, as zlib's own documentation has it */
    GZIP_WINDOW = 15 + 16     /* the largest window; 16 asks zlib for gzip's header and checksum */
};

#define FILE_BYTES_MAX ((uint64_t)64 << 30)

struct cek__bytes {
    char *path;
    uint8_t *data;
    size_t size, taken; /* of the file as it is; `taken` counts for plain files */
    bool gzip, ended;   /* ended: a gzip member is over and none follows */
    z_stream stream;
    size_t fed; /* bytes of the file that zlib has been given */
};

cek_status cek__bytes_open(const char *path, cek__bytes **out)
{
    cek_status st;
    cek__bytes *b = NULL;
    void *data;
    size_t size;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *b, &b));
    CEK_TRY(cek__strdup(path, &b->path));
    CEK_TRY(cek__file_read(path, FILE_BYTES_MAX, &data, &size));
    b->data = data;
    b->size = size;
    if (size >= 2 && b->data[0] == 0x1f && b->data[1] == 0x8b) {
        if (inflateInit2(&b->stream, GZIP_WINDOW) != Z_OK)
            CEK_FAIL(CEK_OUT_OF_MEMORY, "%s: no memory to decompress it", path);
        b->gzip = true;
    }
    *out = b;
    return CEK_OK;
out:
    cek__bytes_close(b);
    return st;
}

void cek__bytes_close(cek__bytes *b)
{
    if (b == NULL)
        return;
    if (b->gzip)
        inflateEnd(&b->stream);
    free(b->path);
    free(b->data);
    free(b);
}

cek_status cek__bytes_could_hold(const cek__bytes *b, uint64_t size)
{
    uint64_t possible = b->gzip ? (uint64_t)b->size * DEFLATE_RATIO_MAX : b->size - b->taken;

    if (size <= possible)
        return CEK_OK;
    return cek__fail(CEK_BAD_INPUT, "%s: its header promises %" PRIu64 " bytes, but %s", b->path, size,
                     b->gzip ? "so short a file cannot hold them" : "the file is shorter");
}

static cek_status damaged(const cek__bytes *b)
{
    return cek__fail(CEK_BAD_INPUT, "%s: damaged gzip data (%s)", b->path,
                     b->stream.msg != NULL ? b->stream.msg : "no such code");
}

/* zlib counts in 32 bits, files do not. */
static void feed(cek__bytes *b)
{
    size_t n = b->size - b->fed;

    if (b->stream.avail_in > 0)
        return;
    n = n < UINT_MAX ? n : UINT_MAX;
    b->stream.next_in = b->data + b->fed;
    b->stream.avail_in = (uInt)n;
    b->fed += n;
}

/* At the end of a member: another may follow (RFC 1952), anything else may not. */
static cek_status member_next(cek__bytes *b)
{
    feed(b);
    if (b->stream.avail_in == 0) {
        b->ended = true;
        return CEK_OK;
    }
    if (b->stream.avail_in < 2 || b->stream.next_in[0] != 0x1f || b->stream.next_in[1] != 0x8b)
        return cek__fail(CEK_BAD_INPUT, "%s: something else follows the gzip data", b->path);
    return inflateReset(&b->stream) == Z_OK ? CEK_OK : damaged(b);
}

/* Inflates until `out` is full or the data ends; *got says how much there was. */
static cek_status inflate_some(cek__bytes *b, uint8_t *out, size_t size, size_t *got)
{
    cek_status st = CEK_OK;

    *got = 0;
    while (*got < size && !b->ended && st == CEK_OK) {
        uInt room = size - *got < UINT_MAX ? (uInt)(size - *got) : UINT_MAX;
        int code;

        feed(b);
        b->stream.next_out = out + *got;
        b->stream.avail_out = room;
        code = inflate(&b->stream, Z_NO_FLUSH);
        *got += room - b->stream.avail_out;
        if (code == Z_STREAM_END)
            st = member_next(b);
        else if (code == Z_BUF_ERROR && b->stream.avail_in == 0)
            st = cek__fail(CEK_BAD_INPUT, "%s: the gzip data ends in the middle", b->path);
        else if (code == Z_MEM_ERROR)
            st = cek__fail(CEK_OUT_OF_MEMORY, "%s: no memory to decompress it", b->path);
        else if (code != Z_OK)
            st = damaged(b);
    }
    return st;
}

cek_status cek__bytes_take(cek__bytes *b, void *out, size_t size)
{
    size_t got = b->size - b->taken;
    cek_status st;

    if (b->gzip) {
        CEK_TRY(inflate_some(b, out, size, &got));
    } else if (got >= size) {
        memcpy(out, b->data + b->taken, size);
        b->taken += size;
    }
    if (got < size)
        CEK_FAIL(CEK_BAD_INPUT, "%s: ends after %zu of %zu bytes that should follow", b->path, got, size);
    return CEK_OK;
out:
    return st;
}

cek_status cek__bytes_end(cek__bytes *b)
{
    uint8_t one;
    size_t more = b->size - b->taken;
    cek_status st;

    if (b->gzip)
        CEK_TRY(inflate_some(b, &one, 1, &more)); /* also reads the checksum */
    if (more > 0)
        CEK_FAIL(CEK_BAD_INPUT, "%s: is longer than its header says", b->path);
    return CEK_OK;
out:
    return st;
}
