/* presets.c - the built-in models by name, and what each is usually trained with.
 *
 * Must not know: what a network is made of (nets.h, or its text). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cekernels/parts.h"
#include "core/base/alloc.h"
#include "core/base/nearest.h"
#include "core/base/options.h"
#include "nn/layers/text.h"
#include "nn/nets/nets.h"

enum { LAYERS_MOST = 1000 }; /* that somebody could have meant */

/* What the data hold, 0 to 255, becomes -1 to 1: (x/255 - 0.5) / 0.5. */
#define IMAGE_SCALE (2.0 / 255)
#define IMAGE_OFFSET (-1.0)

#define ADAM(rate)                                                                                                \
    {                                                                                                             \
        .size = sizeof(cek_optimizer), .algorithm = CEK_OPTIMIZER_ADAM, .lr = rate, .beta1 = 0.9, .beta2 = 0.999, \
        .epsilon = 1e-8                                                                                           \
    }
#define SGD(rate, decay)                                                                            \
    {                                                                                               \
        .size = sizeof(cek_optimizer), .algorithm = CEK_OPTIMIZER_SGD, .lr = rate, .momentum = 0.9, \
        .weight_decay = decay                                                                       \
    }
static const cek_optimizer adam_small = ADAM(0.001), adam_large = ADAM(0.01);
/* Rates of SGD with which losses fall from the first steps on, of batches of 64, from fresh weights, without a warmup.
 * At 0.05, which is usual for batches of hundreds, they are above that of a guess for hundreds of steps. */
static const cek_optimizer sgd_residual = SGD(0.005, 1e-4), sgd_mobile = SGD(0.01, 4e-5);

/* lenet5 is LeNet-5 (LeCun et al. 1998) as it is usually taught today: ReLU for tanh, maximum for trained subsampling,
 * every map of the second convolution sees all of the first, and a linear layer for the radial basis functions. */
static const struct builtin {
    cek_preset preset;
    cek_status (*add)(cek_model *model, int64_t number); /* NULL: the preset's text */
    int64_t number; /* what may stand behind the name and a colon, otherwise: classes, of gpt layers; 0: nothing may */
    double scale, offset;
} builtins[] = {
    { { .loss = CEK_LOSS_CROSS_ENTROPY,
        .name = "mnist-cnn",
        .text = "conv:64,3,p1 relu conv:128,3,p1 relu maxpool:2 flatten linear:1024 relu dropout:0.5 linear:10",
        .optimizer = &adam_small,
        .batch = 64,
        .rank = 3,
        .shape = { 1, 28, 28 } },
      NULL,
      0,
      IMAGE_SCALE,
      IMAGE_OFFSET },
    { { .loss = CEK_LOSS_CROSS_ENTROPY,
        .name = "lenet5",
        .text = "conv:6,5,p2 relu maxpool:2 conv:16,5 relu maxpool:2 flatten linear:120 relu linear:84 relu linear:10",
        .optimizer = &adam_small,
        .batch = 64,
        .rank = 3,
        .shape = { 1, 28, 28 } },
      NULL,
      0,
      IMAGE_SCALE,
      IMAGE_OFFSET },
    { { .loss = CEK_LOSS_MSE,
        .name = "boston-mlp",
        .text = "linear:16 relu linear:32 relu linear:1",
        .optimizer = &adam_large,
        .batch = 128,
        .rank = 1,
        .shape = { 13 } },
      NULL,
      0,
      1,
      0 },
#define IMAGE_NET(word, function, sgd)                \
    {                                                 \
        { .loss = CEK_LOSS_CROSS_ENTROPY,             \
          .name = word,                               \
          .optimizer = &(sgd),                        \
          .batch = 64,                                \
          .classes = 1000,                            \
          .rank = 3,                                  \
          .shape = { 3, 224, 224 } },                 \
            function, 1000, IMAGE_SCALE, IMAGE_OFFSET \
    }
    IMAGE_NET("resnet18", cek__resnet18, sgd_residual),
    IMAGE_NET("resnet50", cek__resnet50, sgd_residual),
    IMAGE_NET("mobilenetv2", cek__mobilenet_v2, sgd_mobile),
    { { .loss = CEK_LOSS_OWN,
        .name = "gpt",
        .optimizer = &adam_small,
        .batch = 32,
        .rank = 1,
        .input_type = CEK_I32,
        .shape = { 128 } },
      cek__gpt,
      4,
      1,
      0 },
};

enum { BUILTINS = sizeof builtins / sizeof *builtins };

/* "; did you mean 'lenet5'?" of a name with or without a number behind; "" for a text of several words. */
static const char *hint(const char *text, cek__nearest *near)
{
    cek__nearest_begin(near, text, strcspn(text, ":"));
    for (size_t i = 0; i < BUILTINS; i++)
        cek__nearest_try(near, builtins[i].preset.name);
    return cek__nearest_hint(near);
}

const char *cek_preset_name(size_t index)
{
    return index < BUILTINS ? builtins[index].preset.name : NULL;
}

static cek_status not_found(const char *text)
{
    char names[256];
    size_t used = 0;
    cek__nearest near;

    for (size_t i = 0; i < BUILTINS && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "", builtins[i].preset.name);
    return cek__fail(CEK_NOT_FOUND, "no model is called \"%.60s\"; there are %s%s", text, names, hint(text, &near));
}

/* "resnet18:10" is resnet18 with ten classes. *number is what it says, or else the network's
 * own. Errors: CEK_NOT_FOUND. */
static cek_status builtin_find(const char *text, const struct builtin **out, int64_t *number)
{
    cek_status st = CEK_OK;
    const size_t length = strcspn(text, ":");

    *out = NULL;
    for (size_t i = 0; i < BUILTINS; i++) {
        const cek_preset *p = &builtins[i].preset;

        if (strlen(p->name) != length || strncmp(p->name, text, length) != 0 || (text[length] && !builtins[i].number))
            continue;
        *number = builtins[i].number;
        if (text[length])
            CEK_TRY(cek__parse_int(p->classes ? "model: its classes" : "model: its layers", text + length + 1, 1,
                                   p->classes ? INT32_MAX : LAYERS_MOST, number));
        *out = &builtins[i];
        return CEK_OK;
    }
    return not_found(text);
out:
    return st == CEK_INVALID ? cek__fail(CEK_BAD_INPUT, "%s", cek_error_text()) : st;
}

cek_status cek_preset_find(const char *name, cek_preset *out)
{
    cek_status st;
    const struct builtin *found;
    int64_t number;
    uint32_t size;

    CEK__NOT_NULL(out);
    CEK__NOT_NULL(name);
    size = out->size;
    if (size < sizeof *out)
        return cek__fail(CEK_INVALID, "preset: its size is %u, it is at least %zu", size, sizeof *out);
    memset(out, 0, size);
    out->size = size;
    CEK_TRY(builtin_find(name, &found, &number));
    *out = found->preset;
    out->size = size;
    out->classes = found->preset.classes ? number : 0;
out:
    return st;
}

/* An input of whole numbers has a type, and no scale. */
static cek_status builtin_make(const struct builtin *b, int64_t number, int rank, const int64_t *shape,
                               cek_model *model)
{
    cek_status st;

    if (b->preset.input_type == CEK_I32) {
        cek_part_input(model, "bytes", CEK_I32, rank, shape);
        CEK_TRY(cek_model_status(model));
    } else {
        cek_model_set_input_scale(model, b->scale, b->offset);
    }
    st = b->add ? b->add(model, number) : cek__model_add_text(model, b->preset.text);
out:
    return st;
}

cek_status cek_model_parse(const char *text, int rank, const int64_t *shape, cek_model **out)
{
    cek_status st;
    cek_model *model = NULL;
    const struct builtin *found;
    int64_t number;
    cek__nearest near;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(text);
    st = builtin_find(text, &found, &number);
    if (st != CEK_OK && st != CEK_NOT_FOUND)
        goto out;
    if (!shape && !found)
        CEK_FAIL(CEK_BAD_INPUT, "model: \"%.60s\" is no built-in name, so the shape of the input must be given", text);
    rank = shape ? rank : found->preset.rank;
    shape = shape ? shape : found->preset.shape;
    CEK_TRY(found && found->preset.input_type == CEK_I32 ? cek_model_create(0, NULL, &model)
                                                         : cek_model_create(rank, shape, &model));
    st = found ? builtin_make(found, number, rank, shape, model) : cek__model_add_text(model, text);
    if (st == CEK_BAD_INPUT && !found && *hint(text, &near)) /* one word, nearly a name */
        st = builtin_find(text, &found, &number) == CEK_NOT_FOUND ? CEK_BAD_INPUT : st;
    CEK_TRY(st);
    *out = model;
    return CEK_OK;
out:
    cek_model_free(model);
    return st;
}
