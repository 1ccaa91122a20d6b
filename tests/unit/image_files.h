/* image_files.h - makes PNG and PPM files of any kind that the tests want, byte by byte. */
#ifndef CEK_TESTS_UNIT_IMAGE_FILES_H
#define CEK_TESTS_UNIT_IMAGE_FILES_H

#include <arpa/inet.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <zlib.h>

#include "scratch.h"

enum { FILE_ROOM = 1 << 16 };

typedef struct bytes {
    uint8_t at[FILE_ROOM];
    size_t size;
} bytes;

static inline void bytes_add(bytes *b, const void *data, size_t size)
{
    ck_assert_uint_le(b->size + size, FILE_ROOM);
    memcpy(b->at + b->size, data, size);
    b->size += size;
}

static inline void big_add(bytes *b, uint32_t value)
{
    value = htonl(value);
    bytes_add(b, &value, 4);
}

static inline void chunk_add(bytes *b, const char *type, const void *data, size_t size)
{
    size_t begin;

    big_add(b, (uint32_t)size);
    begin = b->size;
    bytes_add(b, type, 4);
    bytes_add(b, data, size);
    big_add(b, (uint32_t)crc32(0, b->at + begin, (uInt)(b->size - begin)));
}

enum { PNG_GREY = 0, PNG_RGB = 2, PNG_PALETTE = 3, PNG_GREY_ALPHA = 4, PNG_RGBA = 6 };
typedef struct png_case {
    uint32_t width, height;
    int depth, colour;
    bool interlaced;
    const uint8_t *samples; /* [height][width][channels], of 16 bits two bytes each, of fewer than 8 a byte each */
    const uint8_t *palette; /* of PNG_PALETTE: RGB, and */
    const uint8_t *alpha;   /* alpha; may be NULL */
    uint32_t colours;
} png_case;

static inline size_t png_pixel_bytes(const png_case *c)
{
    static const size_t channels[] = {
        [PNG_GREY] = 1, [PNG_RGB] = 3, [PNG_PALETTE] = 1, [PNG_GREY_ALPHA] = 2, [PNG_RGBA] = 4
    };

    return channels[c->colour] * (c->depth == 16 ? 2 : 1);
}

/* The rows of one pass, which has every dx-th pixel of every dy-th row. */
static inline void pass_add(bytes *raw, const png_case *c, uint32_t x0, uint32_t y0, uint32_t dx, uint32_t dy)
{
    const size_t pixel = png_pixel_bytes(c);

    for (uint32_t y = y0; y < c->height && x0 < c->width; y += dy) {
        unsigned bits = 0, held = 0;

        bytes_add(raw, "", 1); /* no filter */
        for (uint32_t x = x0; x < c->width; x += dx) {
            const uint8_t *at = c->samples + ((size_t)y * c->width + x) * pixel;

            if (c->depth >= 8) {
                bytes_add(raw, at, pixel);
                continue;
            }
            held = held << c->depth | *at;
            bits += (unsigned)c->depth;
            if (bits == 8 || x + dx >= c->width) {
                const uint8_t byte = (uint8_t)(held << (8 - bits));

                bytes_add(raw, &byte, 1);
                bits = held = 0;
            }
        }
    }
}

static inline void png_make(const png_case *c, bytes *out)
{
    static const uint8_t passes[7][4] = { { 0, 0, 8, 8 }, { 4, 0, 8, 8 }, { 0, 4, 4, 8 }, { 2, 0, 4, 4 },
                                          { 0, 2, 2, 4 }, { 1, 0, 2, 2 }, { 0, 1, 1, 2 } };
    static bytes raw;
    uint8_t head[13] = { 0 }, packed[FILE_ROOM];
    uLongf size = sizeof packed;
    const uint32_t width = htonl(c->width), height = htonl(c->height);

    raw.size = out->size = 0;
    for (int p = 0; p < (c->interlaced ? 7 : 1); p++)
        pass_add(&raw, c, c->interlaced ? passes[p][0] : 0, c->interlaced ? passes[p][1] : 0,
                 c->interlaced ? passes[p][2] : 1, c->interlaced ? passes[p][3] : 1);
    ck_assert_int_eq(compress2(packed, &size, raw.at, raw.size, 9), Z_OK);
    memcpy(head, &width, 4);
    memcpy(head + 4, &height, 4);
    head[8] = (uint8_t)c->depth;
    head[9] = (uint8_t)c->colour;
    head[12] = c->interlaced;
    bytes_add(out, "\x89PNG\r\n\x1a\n", 8);
    chunk_add(out, "IHDR", head, sizeof head);
    if (c->palette != NULL)
        chunk_add(out, "PLTE", c->palette, (size_t)c->colours * 3);
    if (c->alpha != NULL)
        chunk_add(out, "tRNS", c->alpha, c->colours);
    chunk_add(out, "IDAT", packed, size);
    chunk_add(out, "IEND", "", 0);
}

/* Whether tests that want the library can run; else it is said that they do not, and the program ends with 77. */
static inline bool library_there(const char *soname, const char *tests)
{
    if (dlopen(soname, RTLD_LAZY) != NULL)
        return true;
    printf("no %s: %s do not run\n", soname, tests);
    return false;
}

/* 8 bits, not interlaced: 1 or 3 channels. */
static inline const char *png_write(const char *name, uint32_t height, uint32_t width, uint32_t channels,
                                    const uint8_t *samples)
{
    static bytes out;

    png_make(&(png_case){ .width = width,
                          .height = height,
                          .depth = 8,
                          .colour = channels == 3 ? PNG_RGB : PNG_GREY,
                          .samples = samples },
             &out);
    return scratch_write(name, out.at, out.size);
}

#endif
