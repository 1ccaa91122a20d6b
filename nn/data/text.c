/* text.c - see text.h. */
#include "nn/data/text.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/file.h"

#define FILE_BYTES_MAX ((uint64_t)64 << 30)

typedef struct text {
    int64_t context;
    uint8_t *file;
    const uint8_t *part; /* of it, which windows are cut out of */
} text;

static void text_free(void *user)
{
    text *t = user;

    if (t)
        free(t->file);
    free(t);
}

static cek_status windows_read(void *user, const cek__data_draw *draw, const int64_t *rows, int64_t count, void *inputs,
                               void *targets)
{
    const text *t = user;
    int32_t *from = inputs, *to = targets;

    (void)draw;
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *at = t->part + rows[i];

        for (int64_t k = 0; k < t->context; k++) {
            *from++ = at[k];
            *to++ = at[k + 1];
        }
    }
    return CEK_OK;
}

cek_status cek__text_dataset(const char *path, int64_t context, bool train, cek_dataset **out)
{
    cek_status st;
    const cek__data_format format = { .input_type = CEK_I32,
                                      .input_rank = 1,
                                      .input_shape = { context },
                                      .target_type = CEK_I32,
                                      .target_width = context,
                                      .class_count = CEK__TEXT_CLASSES };
    cek__data_source source = { .read = windows_read, .destroy = text_free };
    text *t = NULL;
    void *file;
    size_t size, tested;

    *out = NULL;
    if (context < 1)
        CEK_FAIL(CEK_INVALID, "%s: windows of %" PRId64 " bytes", path, context);
    CEK_TRY(cek__calloc(1, sizeof *t, &t));
    CEK_TRY(cek__file_read(path, FILE_BYTES_MAX, &file, &size));
    t->file = file;
    tested = size / 10;
    if (tested <= (size_t)context)
        CEK_FAIL(CEK_BAD_INPUT, "%s: %zu bytes, of which a tenth is no window of %" PRId64 " and the byte behind it",
                 path, size, context);
    t->context = context;
    t->part = train ? t->file : t->file + (size - tested);
    source.user = t;
    CEK_TRY(cek__dataset_from_source(&format, (int64_t)(train ? size - tested : tested) - context, &source, out));
    return CEK_OK;
out:
    text_free(t);
    return st;
}
