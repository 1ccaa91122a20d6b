/* cifar.c - see cifar.h. */
#include "nn/data/cifar.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/file.h"
#include "nn/data/folders.h"
#include "nn/data/stored.h"

enum { CLASSES = 10, SIDE = 32, CHANNELS = 3, PIXELS = SIDE * SIDE, RECORD = 1 + CHANNELS * PIXELS };

typedef struct cifar {
    cek__stored *records;
    char *names; /* batches.meta.txt, its lines ended by 0; NULL: it is not there */
    const char *name[CLASSES];
} cifar;

static void cifar_free(void *user)
{
    cifar *c = user;

    if (c == NULL)
        return;
    cek__stored_free(c->records);
    free(c->names);
    free(c);
}

static cek_status cifar_read(void *user, const cek__data_draw *draw, const int64_t *rows, int64_t count, void *inputs,
                             void *targets)
{
    const cifar *c = user;
    uint8_t record[RECORD], *to = inputs;
    cek_status st = CEK_OK;

    (void)draw;
    for (int64_t i = 0; i < count; i++) {
        CEK_TRY(cek__stored_take(c->records, rows[i], record));
        if (record[0] >= CLASSES)
            CEK_FAIL(CEK_BAD_INPUT, "CIFAR-10: sample %" PRId64 " has label %d, there are %d classes", rows[i],
                     record[0], CLASSES);
        ((int32_t *)targets)[i] = record[0];
        for (int p = 0; p < PIXELS; p++)
            for (int k = 0; k < CHANNELS; k++)
                *to++ = record[1 + k * PIXELS + p];
    }
out:
    return st;
}

static const char *class_name(void *user, int64_t label)
{
    return ((const cifar *)user)->name[label];
}

/* One line for each class; a file that is not there has none, one with too few of them is damaged. */
static cek_status names_read(const char *directory, cifar *c)
{
    enum { BYTES_MOST = 1 << 16 };
    cek_status st = CEK_OK;
    char *path = NULL, *at;
    void *text;
    size_t size;

    CEK_TRY(cek__asprintf(&path, "%s/batches.meta.txt", directory));
    if (access(path, F_OK) != 0)
        goto out;
    CEK_TRY(cek__file_read(path, BYTES_MOST, &text, &size));
    at = c->names = text;
    for (int i = 0; i < CLASSES; i++) {
        c->name[i] = at;
        at += strcspn(at, "\r\n");
        if (at == c->name[i])
            CEK_FAIL(CEK_BAD_INPUT, "%s: names %d classes, %d are wanted", path, i, CLASSES);
        while (*at == '\r' || *at == '\n')
            *at++ = '\0';
    }
out:
    free(path);
    return st;
}

static cek_status batches_add(const char *directory, bool train, cek__stored *records)
{
    static const char first[] = "data_batch_", last[] = ".bin";
    cek_status st;
    cek__names all = { 0 };
    char *path = NULL;

    CEK_TRY(cek__names_read(directory, &all));
    for (int64_t i = 0; i < all.count; i++) {
        const char *name = all.names[i];
        const size_t length = strlen(name);

        if (train ? strncmp(name, first, strlen(first)) != 0 || length < strlen(last) ||
                        strcmp(name + length - strlen(last), last) != 0
                  : strcmp(name, "test_batch.bin") != 0)
            continue;
        free(path);
        CEK_TRY(cek__asprintf(&path, "%s/%s", directory, name));
        CEK_TRY(cek__stored_add(records, path, 0));
    }
    if (cek__stored_count(records) == 0)
        CEK_FAIL(CEK_IO, "%s: there is no %s", directory, train ? "data_batch_1.bin" : "test_batch.bin");
out:
    free(path);
    cek__names_free(&all);
    return st;
}

cek_status cek__cifar_dataset(const char *directory, bool train, cek_dataset **out)
{
    static const cek__data_format format = { .input_type = CEK_U8,
                                             .input_rank = 3,
                                             .input_shape = { SIDE, SIDE, CHANNELS },
                                             .target_type = CEK_I32,
                                             .target_width = 1,
                                             .class_count = CLASSES };
    cek__data_source source = { .read = cifar_read, .destroy = cifar_free };
    cek_status st;
    cifar *c = NULL;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *c, &c));
    CEK_TRY(cek__stored_create(RECORD, &c->records));
    CEK_TRY(batches_add(directory, train, c->records));
    CEK_TRY(names_read(directory, c));
    source.user = c;
    source.class_name = c->names != NULL ? class_name : NULL;
    CEK_TRY(cek__dataset_from_source(&format, cek__stored_count(c->records), &source, out));
    return CEK_OK;
out:
    cifar_free(c);
    return st;
}
