/* idx_files.h - makes IDX files, plain and gzip-compressed, for the tests that read them. */
#ifndef CEK_TESTS_UNIT_IDX_FILES_H
#define CEK_TESTS_UNIT_IDX_FILES_H

#include <arpa/inet.h>
#include <stdint.h>
#include <zlib.h>

#include "scratch.h"

/* Header and `size` bytes of values into `out`; returns how many bytes that are. */
static inline size_t idx_bytes(char *out, int code, int rank, const uint32_t *shape, const void *values, size_t size)
{
    char magic[4] = { 0, 0, (char)code, (char)rank };

    memcpy(out, magic, 4);
    for (int i = 0; i < rank; i++) {
        uint32_t big = htonl(shape[i]);

        memcpy(out + 4 + 4 * i, &big, 4);
    }
    memcpy(out + 4 + 4 * rank, values, size);
    return 4 + 4 * (size_t)rank + size;
}

/* As one gzip member; `room` bytes are there. */
static inline size_t gzip_bytes(char *out, size_t room, const void *data, size_t size)
{
    z_stream stream = {
        .next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)size, .next_out = (Bytef *)out, .avail_out = (uInt)room
    };

    ck_assert_int_eq(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    ck_assert_int_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return stream.total_out;
}

#endif
