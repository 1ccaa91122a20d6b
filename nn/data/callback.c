/* callback.c - see callback.h. */
#include "nn/data/callback.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"

typedef struct callback {
    cek_source_options options;
    cek__data_format format;
} callback;

static void callback_free(void *user)
{
    callback *c = user;

    if (c->options.destroy != NULL)
        c->options.destroy(c->options.user);
    free(c);
}

/* What a device would not notice. */
static cek_status sample_check(const callback *c, int64_t row, const void *input, const void *target)
{
    const size_t values = c->format.input_type == CEK_F32 ? cek__data_input_bytes(&c->format) / sizeof(float) : 0;

    for (size_t i = 0; i < values; i++)
        if (!isfinite(((const float *)input)[i]))
            return cek__fail(CEK_BAD_INPUT, "data set: sample %" PRId64 " has a value that is not finite", row);
    for (int64_t i = 0; i < c->format.target_width; i++) {
        if (c->format.class_count > 0) {
            const int32_t label = ((const int32_t *)target)[i];

            if (label < 0 || label >= c->format.class_count)
                return cek__fail(CEK_BAD_INPUT,
                                 "data set: sample %" PRId64 " has label %" PRId32 ", but there are %" PRId64
                                 " classes",
                                 row, label, c->format.class_count);
        } else if (!isfinite(((const float *)target)[i])) {
            return cek__fail(CEK_BAD_INPUT, "data set: sample %" PRId64 " has a target that is not finite", row);
        }
    }
    return CEK_OK;
}

static cek_status callback_read(void *user, const cek__data_draw *draw, const int64_t *rows, int64_t count,
                                void *inputs, void *targets)
{
    const callback *c = user;
    const size_t input = cek__data_input_bytes(&c->format), target = cek__data_target_bytes(&c->format);
    cek_status st = CEK_OK;

    (void)draw;
    for (int64_t i = 0; i < count; i++) {
        char text[CEK__ERROR_TEXT_MAX / 2] = "";
        void *from = (char *)inputs + (size_t)i * input, *to = (char *)targets + (size_t)i * target;

        st = c->options.read(c->options.user, rows[i], from, to, text, sizeof text);
        text[sizeof text - 1] = '\0';
        if (st != CEK_OK)
            CEK_FAIL(st, "data set: sample %" PRId64 ": %s", rows[i], *text != '\0' ? text : cek__status_text(st));
        CEK_TRY(sample_check(c, rows[i], from, to));
    }
out:
    return st;
}

cek_status cek__callback_dataset(const cek_source_options *o, cek_dataset **out)
{
    cek__data_source source = { .read = callback_read, .destroy = callback_free };
    callback *c = NULL;
    cek_status st;

    *out = NULL;
    if (o->read == NULL || o->rank < 1 || o->rank > CEK__DATA_RANK_MAX || o->classes < 0)
        CEK_FAIL(CEK_INVALID,
                 "data set: a source needs a function, samples of rank 1 to %d, and no negative number of classes",
                 CEK__DATA_RANK_MAX);
    CEK_TRY(cek__calloc(1, sizeof *c, &c));
    c->options = *o;
    c->format = (cek__data_format){ .input_type = o->input_type,
                                    .input_rank = (uint32_t)o->rank,
                                    .target_type = o->classes > 0 ? CEK_I32 : CEK_F32,
                                    .target_width = o->columns != 0 ? o->columns : 1,
                                    .class_count = o->classes };
    memcpy(c->format.input_shape, o->shape, (size_t)o->rank * sizeof *o->shape);
    if (cek__data_is_image(&c->format)) {
        c->format.input_shape[0] = o->shape[1];
        c->format.input_shape[1] = o->shape[2];
        c->format.input_shape[2] = o->shape[0];
    }
    source.user = c;
    CEK_TRY(cek__dataset_from_source(&c->format, o->count, &source, out));
    return CEK_OK;
out:
    free(c);
    return st;
}
