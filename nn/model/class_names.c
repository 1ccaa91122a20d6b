/* class_names.c - what a model's classes are called: told to it, kept in its file (state.c), shown
 * with its predictions.
 *
 * In a file they are one text with '/' between them, which no folder's name has. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "nn/model/model.h"

void cek__class_names_clear(cek__class_names *names)
{
    free(names->text);
    free(names->names);
    *names = (cek__class_names){ 0 };
}

cek_status cek__class_names_split(const char *text, cek__class_names *out)
{
    cek_status st;
    char *at;

    *out = (cek__class_names){ .count = 1 };
    for (const char *c = text; *c != '\0'; c++)
        out->count += *c == '/';
    CEK_TRY(cek__strdup(text, &out->text));
    CEK_TRY(cek__alloc_array((size_t)out->count, sizeof *out->names, &out->names));
    at = out->text;
    for (int64_t i = 0; i < out->count; i++) {
        out->names[i] = at;
        at += strcspn(at, "/");
        *at++ = '\0';
    }
    return CEK_OK;
out:
    cek__class_names_clear(out);
    return st;
}

cek_status cek__class_names_join(const cek__class_names *names, char **out)
{
    size_t bytes = 1, used = 0;
    cek_status st;

    *out = NULL;
    for (int64_t i = 0; i < names->count; i++)
        bytes += strlen(names->names[i]) + 1;
    CEK_TRY(cek__calloc(bytes, 1, out));
    for (int64_t i = 0; i < names->count; i++) {
        const size_t length = strlen(names->names[i]);

        memcpy(*out + used, names->names[i], length);
        used += length;
        (*out)[used++] = i + 1 < names->count ? '/' : '\0';
    }
out:
    return st;
}

cek_status cek_model_set_class_names(cek_model *model, const char *const *names, int64_t count)
{
    cek__class_names given = { .names = (char **)(uintptr_t)names, .count = count }, taken = { 0 };
    char *text = NULL;
    cek_status st;

    CEK__NOT_NULL(model);
    if (count < 0)
        CEK_FAIL(CEK_INVALID, "model: %" PRId64 " names of classes", count);
    if (count > 0)
        CEK__NOT_NULL(names);
    for (int64_t i = 0; i < count; i++)
        if (names[i] == NULL || *names[i] == '\0' || strchr(names[i], '/') != NULL)
            CEK_FAIL(CEK_INVALID, "model: the name of class %" PRId64 " is NULL, empty or has a '/'", i);
    if (count > 0) {
        CEK_TRY(cek__class_names_join(&given, &text));
        CEK_TRY(cek__class_names_split(text, &taken));
    }
    cek__class_names_clear(&model->class_names);
    model->class_names = taken;
    st = CEK_OK;
out:
    free(text);
    return st;
}

const char *cek_model_class_name(const cek_model *model, int64_t label)
{
    return model != NULL && label >= 0 && label < model->class_names.count ? model->class_names.names[label] : NULL;
}
