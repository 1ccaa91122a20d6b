/* text.c - models as text, and the built-in models by name.
 *
 * Must not know: shapes (layers check them), devices. Errors are CEK_BAD_INPUT and name the word, its number and the
 * column where it starts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/options.h"
#include "core/base/status.h"
#include "nn/model/model.h"

enum { WORD_MAX = 64, SETTINGS_MAX = 8 };

/* ---- one word ---- */

/* "conv:64,3,p1": the name, and what stands behind the colon between commas. */
typedef struct word {
    char text[WORD_MAX];
    const char *name;
    int settings;
    const char *setting[SETTINGS_MAX];
} word;

static cek_status word_split(const char *text, size_t length, word *w)
{
    char *at;

    if (length >= sizeof w->text)
        return cek__fail(CEK_BAD_INPUT, "longer than any word of a model");
    memcpy(w->text, text, length);
    w->text[length] = '\0';
    w->name = w->text;
    w->settings = 0;
    at = strchr(w->text, ':');
    while (at) {
        *at++ = '\0';
        if (w->settings == SETTINGS_MAX)
            return cek__fail(CEK_BAD_INPUT, "more than %d settings", SETTINGS_MAX);
        w->setting[w->settings++] = at;
        at = strchr(at, ',');
    }
    return CEK_OK;
}

static cek_status settings_want(const word *w, int min, int max, const char *form)
{
    if (w->settings < min || w->settings > max)
        return cek__fail(CEK_BAD_INPUT, "%d settings, the form is %s", w->settings, form);
    return CEK_OK;
}

static cek_status number(const char *what, const char *text, int64_t min, int64_t max, int64_t *out)
{
    cek_status st = cek__parse_int(what, text, min, max, out);

    return st == CEK_INVALID ? cek__fail(CEK_BAD_INPUT, "%s", cek_error_text()) : st;
}

/* The settings behind the positional ones: a letter of `letters` and a number; values[i] belongs to letters[i]. */
static cek_status lettered(const word *w, int from, const char *letters, uint32_t *const values[])
{
    cek_status st;
    unsigned seen = 0;

    for (int i = from; i < w->settings; i++) {
        const char *setting = w->setting[i];
        const char *letter = setting[0] ? strchr(letters, setting[0]) : NULL;
        char what[] = "setting ?";
        int64_t value;

        if (!letter)
            CEK_FAIL(CEK_BAD_INPUT, "setting \"%s\" starts with none of the letters %s", setting, letters);
        if (seen & 1u << (letter - letters))
            CEK_FAIL(CEK_BAD_INPUT, "setting %c is given twice", *letter);
        seen |= 1u << (letter - letters);
        what[sizeof what - 2] = *letter;
        CEK_TRY(number(what, setting + 1, *letter == 'p' ? 0 : 1, INT32_MAX, &value));
        *values[letter - letters] = (uint32_t)value;
    }
    return CEK_OK;
out:
    return st;
}

static cek_status conv_parse(cek_model *model, int input, const word *w)
{
    cek_status st;
    cek_conv2d_layer layer = { .size = sizeof layer };
    int64_t out, kernel;

    CEK_TRY(settings_want(w, 2, 6, "conv:OUT,K[,sSTRIDE][,pPADDING][,gGROUPS][,dDILATION]"));
    CEK_TRY(number("output channels", w->setting[0], 1, INT32_MAX, &out));
    CEK_TRY(number("kernel", w->setting[1], 1, INT32_MAX, &kernel));
    layer.out_channels = (uint32_t)out;
    layer.kernel_h = layer.kernel_w = (uint32_t)kernel;
    CEK_TRY(lettered(w, 2, "spgd",
                     (uint32_t *const[]){ &layer.stride_h, &layer.pad_h, &layer.groups, &layer.dilation_h }));
    layer.stride_w = layer.stride_h;
    layer.pad_w = layer.pad_h;
    layer.dilation_w = layer.dilation_h;
    return cek_model_conv2d(model, input, &layer, NULL);
out:
    return st;
}

static cek_status linear_parse(cek_model *model, int input, const word *w)
{
    cek_status st;
    int64_t out;

    CEK_TRY(settings_want(w, 1, 1, "linear:OUT"));
    CEK_TRY(number("outputs", w->setting[0], 1, CEK__ELEMENTS_MAX - 1, &out));
    return cek_model_linear(model, input, out, true, NULL);
out:
    return st;
}

static cek_status pool_parse(cek_model *model, int input, const word *w, uint32_t mode, const char *form)
{
    cek_status st;
    cek_pool2d_layer layer = { .size = sizeof layer, .mode = mode };
    int64_t kernel;

    CEK_TRY(settings_want(w, 1, 3, form));
    CEK_TRY(number("kernel", w->setting[0], 1, INT32_MAX, &kernel));
    layer.kernel_h = layer.kernel_w = (uint32_t)kernel;
    CEK_TRY(lettered(w, 1, "sp", (uint32_t *const[]){ &layer.stride_h, &layer.pad_h }));
    layer.stride_w = layer.stride_h;
    layer.pad_w = layer.pad_h;
    return cek_model_pool2d(model, input, &layer, NULL);
out:
    return st;
}

static cek_status maxpool_parse(cek_model *model, int input, const word *w)
{
    return pool_parse(model, input, w, CEK_POOL_MAX, "maxpool:K[,sSTRIDE][,pPADDING]");
}

static cek_status avgpool_parse(cek_model *model, int input, const word *w)
{
    return pool_parse(model, input, w, CEK_POOL_AVERAGE, "avgpool:K[,sSTRIDE][,pPADDING]");
}

static cek_status gap_parse(cek_model *model, int input, const word *w)
{
    cek_status st = settings_want(w, 0, 0, "gap");
    cek_pool2d_layer whole = { .size = sizeof whole, .mode = CEK_POOL_AVERAGE };

    return st != CEK_OK ? st : cek_model_pool2d(model, input, &whole, NULL);
}

static cek_status dropout_parse(cek_model *model, int input, const word *w)
{
    cek_status st;
    double p;

    CEK_TRY(settings_want(w, 1, 1, "dropout:P"));
    CEK_TRY(cek__parse_double("probability", w->setting[0], 0, 1, &p));
    return cek_model_dropout(model, input, p, NULL);
out:
    return st;
}

static cek_status batchnorm_parse(cek_model *model, int input, const word *w)
{
    cek_status st = settings_want(w, 0, 0, "batchnorm");
    cek_batch_norm_layer layer = { .size = sizeof layer };

    return st != CEK_OK ? st : cek_model_batch_norm(model, input, &layer, NULL);
}

static cek_status flatten_parse(cek_model *model, int input, const word *w)
{
    cek_status st = settings_want(w, 0, 0, "flatten");

    return st != CEK_OK ? st : cek_model_flatten(model, input, NULL);
}

#define ACTIVATION_PARSE(name, kind)                                               \
    static cek_status name##_parse(cek_model *model, int input, const word *w)     \
    {                                                                              \
        cek_status st = settings_want(w, 0, 0, #name);                             \
                                                                                   \
        return st != CEK_OK ? st : cek_model_activation(model, input, kind, NULL); \
    }
ACTIVATION_PARSE(relu, CEK_ACT_RELU)
ACTIVATION_PARSE(gelu, CEK_ACT_GELU)
ACTIVATION_PARSE(tanh, CEK_ACT_TANH)
ACTIVATION_PARSE(sigmoid, CEK_ACT_SIGMOID)

static const struct {
    const char *name;
    cek_status (*parse)(cek_model *model, int input, const word *w);
} words[] = {
    { "conv", conv_parse },       { "linear", linear_parse },   { "relu", relu_parse },
    { "gelu", gelu_parse },       { "tanh", tanh_parse },       { "sigmoid", sigmoid_parse },
    { "maxpool", maxpool_parse }, { "avgpool", avgpool_parse }, { "gap", gap_parse },
    { "dropout", dropout_parse }, { "flatten", flatten_parse }, { "batchnorm", batchnorm_parse },
};

static cek_status word_parse(cek_model *model, const char *text, size_t length)
{
    word w;
    cek_status st = word_split(text, length, &w);

    if (st != CEK_OK)
        return st;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].name, w.name) == 0)
            return words[i].parse(model, model->node_count - 1, &w);
    return cek__fail(CEK_BAD_INPUT, "unknown; the words are conv linear relu gelu tanh sigmoid maxpool "
                                    "avgpool gap batchnorm dropout flatten");
}

/* ---- a text ---- */

static cek_status text_parse(const char *text, cek_model *model)
{
    cek_status st = CEK_OK;
    const char *at = text + strspn(text, " \t\r\n");

    for (int count = 1; *at; count++) {
        size_t length = strcspn(at, " \t\r\n");

        st = word_parse(model, at, length);
        if (st != CEK_OK) {
            /* Whatever is wrong with a text is bad input; that memory ran out is not. */
            if (st == CEK_INVALID)
                st = CEK_BAD_INPUT;
            return cek__fail_prefix(st, "model: word %d, \"%.*s\" at column %d", count,
                                    (int)(length < 80 ? length : 80), at, (int)(at - text) + 1);
        }
        at += length;
        at += strspn(at, " \t\r\n");
    }
    if (model->node_count == 1)
        return cek__fail(CEK_BAD_INPUT, "model: the text has no words");
    return CEK_OK;
}

/* ---- the built-in models ---- */

/* What the data hold, 0 to 255, becomes -1 to 1: (x/255 - 0.5) / 0.5. */
#define IMAGE_SCALE (2.0 / 255)
#define IMAGE_OFFSET (-1.0)

static const cek_optimizer adam_small = { .size = sizeof adam_small,
                                          .algorithm = CEK_OPTIMIZER_ADAM,
                                          .lr = 0.001,
                                          .beta1 = 0.9,
                                          .beta2 = 0.999,
                                          .epsilon = 1e-8 };
static const cek_optimizer adam_large = { .size = sizeof adam_large,
                                          .algorithm = CEK_OPTIMIZER_ADAM,
                                          .lr = 0.01,
                                          .beta1 = 0.9,
                                          .beta2 = 0.999,
                                          .epsilon = 1e-8 };

/* lenet5 is LeNet-5 (LeCun et al. 1998) as it is usually taught today: ReLU for tanh, maximum for trained subsampling,
 * every map of the second convolution sees all of the first, and a linear layer for the radial basis functions. */
static const struct {
    cek_preset preset;
    int rank;
    int64_t shape[3];
    double scale, offset;
} builtins[] = {
    { { .loss = CEK_LOSS_CROSS_ENTROPY,
        .name = "mnist-cnn",
        .text = "conv:64,3,p1 relu conv:128,3,p1 relu maxpool:2 flatten linear:1024 relu dropout:0.5 linear:10",
        .optimizer = &adam_small,
        .batch = 64 },
      3,
      { 1, 28, 28 },
      IMAGE_SCALE,
      IMAGE_OFFSET },
    { { .loss = CEK_LOSS_CROSS_ENTROPY,
        .name = "lenet5",
        .text = "conv:6,5,p2 relu maxpool:2 conv:16,5 relu maxpool:2 flatten linear:120 relu linear:84 relu linear:10",
        .optimizer = &adam_small,
        .batch = 64 },
      3,
      { 1, 28, 28 },
      IMAGE_SCALE,
      IMAGE_OFFSET },
    { { .loss = CEK_LOSS_MSE,
        .name = "boston-mlp",
        .text = "linear:16 relu linear:32 relu linear:1",
        .optimizer = &adam_large,
        .batch = 128 },
      1,
      { 13 },
      1,
      0 },
};
enum { BUILTINS = sizeof builtins / sizeof *builtins };

static int builtin_find(const char *name)
{
    for (int i = 0; i < BUILTINS; i++)
        if (strcmp(builtins[i].preset.name, name) == 0)
            return i;
    return -1;
}

cek_status cek_preset_find(const char *name, cek_preset *out)
{
    cek_preset preset;
    uint32_t size;
    int found;

    CEK__NOT_NULL(out);
    CEK__NOT_NULL(name);
    found = builtin_find(name);
    size = out->size;
    if (size < sizeof preset)
        return cek__fail(CEK_INVALID, "preset: its size is %u, it is at least %zu", size, sizeof preset);
    memset(out, 0, size);
    out->size = size;
    if (found < 0)
        return cek__fail(CEK_NOT_FOUND, "no model is called \"%s\"; there are mnist-cnn, lenet5, boston-mlp", name);
    preset = builtins[found].preset;
    preset.size = size;
    *out = preset;
    return CEK_OK;
}

cek_status cek_model_parse(const char *text, int rank, const int64_t *shape, cek_model **out)
{
    cek_status st;
    cek_model *model = NULL;
    int found;

    CEK__NOT_NULL(out);
    *out = NULL;
    CEK__NOT_NULL(text);
    found = builtin_find(text);
    if (!shape) {
        if (found < 0)
            CEK_FAIL(CEK_BAD_INPUT,
                     "model: \"%.60s\" is no built-in name, so the shape of the "
                     "input must be given",
                     text);
        rank = builtins[found].rank;
        shape = builtins[found].shape;
    }
    CEK_TRY(cek_model_create(rank, shape, &model));
    if (found >= 0)
        cek_model_set_input_scale(model, builtins[found].scale, builtins[found].offset);
    CEK_TRY(text_parse(found >= 0 ? builtins[found].preset.text : text, model));
    *out = model;
    return CEK_OK;
out:
    cek_model_free(model);
    return st;
}
