/* png_write.c - see png_write.h (W3C, "Portable Network Graphics", third edition). */
#include "nn/formats/png_write.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/base/alloc.h"

static cek_status number_add(cek__message *out, uint32_t value)
{
    value = htobe32(value);
    return cek__message_bytes(out, &value, sizeof value);
}

static cek_status chunk_add(cek__message *out, const char type[5], const void *data, size_t size)
{
    cek_status st;
    uLong crc = crc32(0, (const Bytef *)type, 4);

    if (size > 0) /* zlib takes NULL for the beginning of a checksum */
        crc = crc32(crc, data, (uInt)size);
    CEK_TRY(number_add(out, (uint32_t)size));
    CEK_TRY(cek__message_bytes(out, type, 4));
    CEK_TRY(cek__message_bytes(out, data, size));
    st = number_add(out, (uint32_t)crc);
out:
    return st;
}

/* The pixels, each row behind a zero that says that it is as it is, compressed. */
static cek_status rows_pack(const uint8_t *pixels, uint32_t height, size_t row, Bytef **out, size_t *size)
{
    cek_status st;
    uint8_t *rows = NULL;
    const size_t all = height * (row + 1);
    uLongf packed = compressBound(all);

    *out = NULL;
    CEK_TRY(cek__malloc(all, &rows));
    CEK_TRY(cek__malloc(packed, out));
    for (size_t y = 0; y < height; y++) {
        rows[y * (row + 1)] = 0;
        memcpy(rows + y * (row + 1) + 1, pixels + y * row, row);
    }
    if (compress(*out, &packed, rows, all) != Z_OK) /* with that bound it fails for want of memory alone */
        CEK_FAIL(CEK_OUT_OF_MEMORY, "no memory to compress an image of %zu bytes", all);
    *size = packed;
out:
    free(rows);
    return st;
}

cek_status cek__png_write(const uint8_t *pixels, uint32_t height, uint32_t width, uint32_t channels, cek__message *out)
{
    static const uint8_t colour_type[] = { 0, 0, 4, 2, 6 };
    cek_status st;
    Bytef *packed = NULL;
    size_t size = 0;
    const uint32_t sizes[2] = { htobe32(width), htobe32(height) };
    uint8_t head[13] = { 0 };

    memcpy(head, sizes, sizeof sizes);
    head[8] = 8; /* bits */
    head[9] = colour_type[channels];
    CEK_TRY(rows_pack(pixels, height, (size_t)width * channels, &packed, &size));
    CEK_TRY(cek__message_bytes(out, "\x89PNG\r\n\x1a\n", 8));
    CEK_TRY(chunk_add(out, "IHDR", head, sizeof head));
    CEK_TRY(chunk_add(out, "IDAT", packed, size));
    st = chunk_add(out, "IEND", NULL, 0);
out:
    free(packed);
    return st;
}
