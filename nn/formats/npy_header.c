/* npy_header.c - see npy_header.h. */
#include "nn/formats/npy_header.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAGIC = 6, ALIGN = 64 };
static const char magic[MAGIC + 1] = "\x93NUMPY";

/* ---- the dictionary ---- */

typedef struct header {
    const char *at, *end;
    cek__npy_header *out;
    uint32_t seen; /* bit i: keys[i] */
} header;

static const char *const keys[] = { "descr", "fortran_order", "shape" };
enum { DESCR, FORTRAN, SHAPE, KEYS };

static void blanks_skip(header *h)
{
    while (h->at < h->end && memchr(" \t\r\n", *h->at, 4) != NULL)
        h->at++;
}

/* Whether the word is next, behind blanks; then it is behind us. */
static bool word_take(header *h, const char *word)
{
    const size_t length = strlen(word);

    blanks_skip(h);
    if ((size_t)(h->end - h->at) < length || memcmp(h->at, word, length) != 0)
        return false;
    h->at += length;
    return true;
}

/* What stands between quotes, up to `room` - 1 characters. */
static bool text_take(header *h, char *text, size_t room)
{
    const char *close;
    char quote;

    if (!word_take(h, "'") && !word_take(h, "\""))
        return false;
    quote = h->at[-1];
    close = memchr(h->at, quote, (size_t)(h->end - h->at));
    if (close == NULL || (size_t)(close - h->at) >= room)
        return false;
    memcpy(text, h->at, (size_t)(close - h->at));
    text[close - h->at] = '\0';
    h->at = close + 1;
    return true;
}

static cek_status descr_take(header *h)
{
    return text_take(h, h->out->descr, sizeof h->out->descr)
               ? CEK_OK
               : cek__fail(CEK_BAD_INPUT, "its descr is no simple type such as '<f4'");
}

static cek_status order_take(header *h)
{
    h->out->fortran = word_take(h, "True");
    return h->out->fortran || word_take(h, "False")
               ? CEK_OK
               : cek__fail(CEK_BAD_INPUT, "its fortran_order is neither True nor False");
}

/* (), (3,) or (3, 4) */
static cek_status shape_take(header *h)
{
    if (!word_take(h, "("))
        return cek__fail(CEK_BAD_INPUT, "its shape is no tuple");
    while (!word_take(h, ")")) {
        int64_t size = 0;
        const char *first;

        blanks_skip(h);
        first = h->at;
        for (; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++)
            if (__builtin_mul_overflow(size, 10, &size) || __builtin_add_overflow(size, *h->at - '0', &size))
                return cek__fail(CEK_BAD_INPUT, "a size of its shape has more than 63 bits");
        if (h->at == first)
            return cek__fail(CEK_BAD_INPUT, "its shape is no tuple of sizes");
        if (h->out->rank == CEK_RANK_MAX)
            return cek__fail(CEK_BAD_INPUT, "it has more than %d axes", CEK_RANK_MAX);
        h->out->shape[h->out->rank++] = size;
        if (!word_take(h, ",") && (h->at == h->end || *h->at != ')'))
            return cek__fail(CEK_BAD_INPUT, "its shape is no tuple of sizes");
    }
    return CEK_OK;
}

static cek_status dictionary_take(header *h)
{
    cek_status st = CEK_OK;

    if (!word_take(h, "{"))
        CEK_FAIL(CEK_BAD_INPUT, "its header is no dictionary");
    while (!word_take(h, "}")) {
        char key[16];
        uint32_t k = 0;

        if (!text_take(h, key, sizeof key) || !word_take(h, ":"))
            CEK_FAIL(CEK_BAD_INPUT, "its header is no dictionary of descr, fortran_order and shape");
        while (k < KEYS && strcmp(keys[k], key) != 0)
            k++;
        if (k == KEYS || h->seen >> k & 1)
            CEK_FAIL(CEK_BAD_INPUT, "its header has the key '%s'%s", key, k == KEYS ? "" : " twice");
        CEK_TRY(k == DESCR ? descr_take(h) : k == FORTRAN ? order_take(h) : shape_take(h));
        h->seen |= 1u << k;
        if (!word_take(h, ",") && (h->at == h->end || *h->at != '}'))
            CEK_FAIL(CEK_BAD_INPUT, "its header is no dictionary");
    }
    blanks_skip(h);
    if (h->at != h->end)
        CEK_FAIL(CEK_BAD_INPUT, "something stands behind the dictionary of its header");
    for (int k = 0; k < KEYS; k++)
        if (!(h->seen >> k & 1))
            CEK_FAIL(CEK_BAD_INPUT, "its header has no %s", keys[k]);
out:
    return st;
}

cek_status cek__npy_header_read(const uint8_t *bytes, size_t size, cek__npy_header *out)
{
    uint32_t length;
    size_t wide, begin;
    header h;

    *out = (cek__npy_header){ .fortran = false };
    if (size < MAGIC + 4 || memcmp(bytes, magic, MAGIC) != 0)
        return cek__fail(CEK_BAD_INPUT, "it is no .npy file");
    if (bytes[MAGIC] < 1 || bytes[MAGIC] > 3 || bytes[MAGIC + 1] != 0)
        return cek__fail(CEK_BAD_INPUT, "version %u.%u of the format: 1.0, 2.0 and 3.0 are read", bytes[MAGIC],
                         bytes[MAGIC + 1]);
    wide = bytes[MAGIC] > 1 ? 4 : 2;
    begin = MAGIC + 2 + wide;
    if (size < begin)
        return cek__fail(CEK_BAD_INPUT, "it ends within its header");
    length = (uint32_t)bytes[MAGIC + 2] | (uint32_t)bytes[MAGIC + 3] << 8;
    if (wide == 4)
        length |= (uint32_t)bytes[MAGIC + 4] << 16 | (uint32_t)bytes[MAGIC + 5] << 24;
    if (length > size - begin)
        return cek__fail(CEK_BAD_INPUT, "it ends within its header");
    h = (header){ .at = (const char *)bytes + begin, .end = (const char *)bytes + begin + length, .out = out };
    out->values = begin + length;
    return dictionary_take(&h);
}

cek_status cek__npy_size_check(const cek__npy_header *h, uint64_t element, uint64_t there, int64_t *count)
{
    uint64_t bytes;

    *count = 1;
    for (int i = 0; i < h->rank; i++)
        if (__builtin_mul_overflow(*count, h->shape[i], count))
            return cek__fail(CEK_BAD_INPUT, "its shape has more elements than there can be");
    if (__builtin_mul_overflow((uint64_t)*count, element, &bytes) || bytes != there)
        return cek__fail(CEK_BAD_INPUT, "its header promises %" PRIu64 " bytes of elements, there are %" PRIu64, bytes,
                         there);
    return CEK_OK;
}

/* ---- out ---- */

size_t cek__npy_header_make(const char *descr, int rank, const int64_t *shape, char text[CEK__NPY_HEADER_MAX])
{
    const size_t room = CEK__NPY_HEADER_MAX;
    size_t used = MAGIC + 4, length;

    memcpy(text, magic, MAGIC);
    text[MAGIC] = 1;
    text[MAGIC + 1] = 0;
    used += (size_t)snprintf(text + used, room - used, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < rank; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%" PRId64 "%s", i > 0 ? " " : "", shape[i],
                                 i + 1 < rank || rank == 1 ? "," : "");
    used += (size_t)snprintf(text + used, room - used, "), }");
    while ((used + 1) % ALIGN != 0)
        text[used++] = ' ';
    text[used++] = '\n';
    length = used - (MAGIC + 4);
    text[MAGIC + 2] = (char)(length & 0xff);
    text[MAGIC + 3] = (char)(length >> 8);
    return used;
}
