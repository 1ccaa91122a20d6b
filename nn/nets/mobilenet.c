/* mobilenet.c - MobileNetV2: blocks that widen the image's channels, filter each by itself, and narrow them again. */
#include <stdio.h>

#include "nn/nets/nets.h"
#include "nn/nets/unit.h"

enum { STEM = 32, LAST = 1280 };
static const double dropout = 0.2;

/* Convolution, norm and ReLU6: "0" and "1" within `name`. */
static cek_status unit_add(cek_model *model, const char *name, int64_t out, uint32_t kernel, uint32_t stride,
                           uint32_t groups, int *x)
{
    cek_status st;

    CEK_TRY(cek_model_enter(model, name));
    CEK_TRY(cek__unit_add(model, &(cek__unit){ "0", "1", out, kernel, stride, groups }, x));
    CEK_TRY(cek_model_activation(model, *x, CEK_ACT_RELU6, x));
    st = cek_model_leave(model);
out:
    return st;
}

typedef struct block {
    int64_t in, out, expansion;
    uint32_t stride;
} block;

static cek_status block_add(cek_model *model, const block *b, int *x)
{
    cek_status st;
    const int64_t width = b->in * b->expansion;
    const bool widens = b->expansion > 1;
    const int past = *x;

    CEK_TRY(cek_model_enter(model, "conv"));
    if (widens)
        CEK_TRY(unit_add(model, "0", width, 1, 1, 1, x));
    CEK_TRY(unit_add(model, widens ? "1" : "0", width, 3, b->stride, (uint32_t)width, x));
    CEK_TRY(cek__unit_add(model, &(cek__unit){ widens ? "2" : "1", widens ? "3" : "2", b->out, 1, 1, 1 }, x));
    CEK_TRY(cek_model_leave(model));
    st = b->stride == 1 && b->in == b->out ? cek_model_add(model, past, *x, x) : CEK_OK;
out:
    return st;
}

/* Between "features.0", which is the stem, and the last unit. */
static cek_status blocks_add(cek_model *model, int *index, int *x)
{
    static const struct {
        int64_t expansion, out;
        int count;
        uint32_t stride; /* of the first of them */
    } rows[] = { { 1, 16, 1, 1 }, { 6, 24, 2, 2 },  { 6, 32, 3, 2 }, { 6, 64, 4, 2 },
                 { 6, 96, 3, 1 }, { 6, 160, 3, 2 }, { 6, 320, 1, 1 } };
    cek_status st;
    int64_t in = STEM;
    char name[16];

    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int i = 0; i < rows[r].count; i++) {
            const block b = { in, rows[r].out, rows[r].expansion, i == 0 ? rows[r].stride : 1 };

            snprintf(name, sizeof name, "%d", (*index)++);
            CEK_TRY(cek_model_enter(model, name));
            CEK_TRY(block_add(model, &b, x));
            CEK_TRY(cek_model_leave(model));
            in = b.out;
        }
    st = CEK_OK;
out:
    return st;
}

cek_status cek__mobilenet_v2(cek_model *model, int64_t classes)
{
    cek_status st;
    const cek_init linear = { .size = sizeof linear, .kind = CEK_INIT_NORMAL, .deviation = 0.01 };
    const cek_init zero = { .size = sizeof zero, .kind = CEK_INIT_CONSTANT };
    int index = 1, x = 0;
    char name[16];

    CEK_TRY(cek_model_enter(model, "features"));
    CEK_TRY(unit_add(model, "0", STEM, 3, 2, 1, &x));
    CEK_TRY(blocks_add(model, &index, &x));
    snprintf(name, sizeof name, "%d", index);
    CEK_TRY(unit_add(model, name, LAST, 1, 1, 1, &x));
    CEK_TRY(cek_model_leave(model));
    CEK_TRY(cek__head_add(model, x, dropout, "classifier.1", classes));
    CEK_TRY(cek_model_set_init(model, "classifier.1.weight", &linear));
    st = cek_model_set_init(model, "classifier.1.bias", &zero);
out:
    return st;
}
