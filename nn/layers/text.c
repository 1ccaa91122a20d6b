/* text.c - models as text (see text.h).
 *
 * Must not know: shapes (layers check them), devices. */
#include "nn/layers/text.h"

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

cek_status cek__model_add_text(cek_model *model, const char *text)
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
