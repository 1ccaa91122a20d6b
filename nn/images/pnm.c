/* pnm.c - see pnm.h. The form: netpbm's ppm(5) and pgm(5), one picture in a file. */
#include "nn/images/pnm.h"

#include <inttypes.h>

#include "core/base/alloc.h"

bool cek__pnm_magic(const uint8_t *bytes, size_t size)
{
    return size > 2 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6';
}

static bool blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The next number of the header, behind blanks and comments; -1: there is none, or it is too large to be one. */
static int64_t number_take(const uint8_t *bytes, size_t size, size_t *at)
{
    enum { MOST = 1 << 30 };
    int64_t value = 0;
    size_t first;

    while (*at < size && (blank(bytes[*at]) || bytes[*at] == '#'))
        if (bytes[(*at)++] == '#')
            while (*at < size && bytes[*at] != '\n')
                ++*at;
    first = *at;
    for (; *at < size && bytes[*at] >= '0' && bytes[*at] <= '9' && value < MOST; ++*at)
        value = 10 * value + (bytes[*at] - '0');
    return *at == first || value >= MOST ? -1 : value;
}

cek_status cek__pnm_read(const uint8_t *bytes, size_t size, cek__pixels *out)
{
    cek_status st;
    const uint32_t channels = bytes[1] == '6' ? 3 : 1;
    size_t at = 2, wide;
    int64_t sizes[3]; /* width, height, largest value */
    uint64_t count;

    *out = (cek__pixels){ 0 };
    if (bytes[1] != '5' && bytes[1] != '6')
        CEK_FAIL(CEK_BAD_INPUT, "form P%c: P5 and P6, with values in binary, are read", bytes[1]);
    for (int i = 0; i < 3; i++)
        if ((sizes[i] = number_take(bytes, size, &at)) < 1)
            CEK_FAIL(CEK_BAD_INPUT, "its header has no %s", i == 0 ? "width" : i == 1 ? "height" : "largest value");
    if (sizes[2] > UINT16_MAX || at == size || !blank(bytes[at++]))
        CEK_FAIL(CEK_BAD_INPUT, "its header does not end behind a largest value of at most %d", UINT16_MAX);
    wide = sizes[2] > UINT8_MAX ? 2 : 1;
    count = (uint64_t)sizes[0] * (uint64_t)sizes[1] * channels; /* below 2^62 */
    if ((size - at) / wide < count)
        CEK_FAIL(CEK_BAD_INPUT, "its header promises %" PRId64 " x %" PRId64 " pixels, but the file is shorter",
                 sizes[1], sizes[0]);
    CEK_TRY(cek__pixels_make(sizes[1], sizes[0], channels, out));
    for (uint64_t i = 0; i < count; i++, at += wide) {
        const uint32_t value = wide == 1 ? bytes[at] : (uint32_t)bytes[at] << 8 | bytes[at + 1];

        if (value > sizes[2])
            CEK_FAIL(CEK_BAD_INPUT, "value %" PRIu64 " is %" PRIu32 ", its header says %" PRId64 " at most", i, value,
                     sizes[2]);
        out->values[i] = (uint8_t)((value * 255u + (uint32_t)sizes[2] / 2) / (uint32_t)sizes[2]);
    }
    return CEK_OK;
out:
    cek__pixels_free(out);
    return st;
}
