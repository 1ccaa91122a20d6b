/* text.c - models as text (see text.h).
 *
 * A word is a line of the table at the end and a function that calls a layer with its settings.
 * Must not know: shapes (layers check them), devices. */
#include "nn/layers/text.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/nearest.h"
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
    uint32_t kind; /* the rule's */
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

/* Setting i as a whole number from 1. */
static cek_status number(const word *w, int i, const char *what, uint32_t *out)
{
    cek_status st;
    int64_t value;

    CEK_TRY(cek__parse_int(what, w->setting[i], 1, INT32_MAX, &value));
    *out = (uint32_t)value;
out:
    return st;
}

enum { FAR = 1000000 }; /* beyond any number that an activation could be meant to have */

/* The one setting as a number that is not 0, by which options mean the usual one. As it was where the word has none. */
static cek_status factor(const word *w, double *out)
{
    cek_status st = CEK_OK;

    if (w->settings == 0)
        return CEK_OK;
    CEK_TRY(cek__parse_double("setting", w->setting[0], -FAR, FAR, out));
    if (*out == 0)
        CEK_FAIL(CEK_BAD_INPUT, "setting: 0 makes no %s", w->name);
out:
    return st;
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
        CEK_TRY(cek__parse_int(what, setting + 1, strchr("pm", *letter) ? 0 : 1, INT32_MAX, &value));
        *values[letter - letters] = (uint32_t)value;
    }
    return CEK_OK;
out:
    return st;
}

/* One number for each axis. */
static void axes_fill(uint32_t axes[CEK_SPATIAL_MAX], uint32_t value)
{
    for (int i = 0; i < CEK_SPATIAL_MAX; i++)
        axes[i] = value;
}

/* ---- layers ---- */

enum { FORWARD, TRANSPOSED };

static cek_status conv_add(cek_model *model, int input, const word *w)
{
    cek_status st;
    cek_conv_layer layer = { .size = sizeof layer };
    uint32_t kernel, stride = 0, padding = 0, dilation = 0, more = 0;
    bool transposed = w->kind == TRANSPOSED;

    CEK_TRY(number(w, 0, "output channels", &layer.out_channels));
    CEK_TRY(number(w, 1, "kernel", &kernel));
    CEK_TRY(lettered(w, 2, transposed ? "spgdm" : "spgd",
                     (uint32_t *const[]){ &stride, &padding, &layer.groups, &dilation, &more }));
    axes_fill(layer.kernel, kernel);
    axes_fill(layer.stride, stride);
    axes_fill(layer.pad_lo, padding);
    axes_fill(layer.pad_hi, padding);
    axes_fill(layer.dilation, dilation);
    axes_fill(layer.more, more);
    st = (transposed ? cek_model_conv_transposed : cek_model_conv)(model, input, &layer, NULL);
out:
    return st;
}

static cek_status linear_add(cek_model *model, int input, const word *w)
{
    cek_status st;
    int64_t out;

    CEK_TRY(cek__parse_int("outputs", w->setting[0], 1, CEK__ELEMENTS_MAX - 1, &out));
    st = cek_model_linear(model, input, out, true, NULL);
out:
    return st;
}

static cek_status pool_add(cek_model *model, int input, const word *w)
{
    cek_status st;
    cek_pool_layer layer = { .size = sizeof layer, .mode = w->kind };
    uint32_t kernel, stride = 0, padding = 0;

    CEK_TRY(number(w, 0, "kernel", &kernel));
    CEK_TRY(lettered(w, 1, "sp", (uint32_t *const[]){ &stride, &padding }));
    axes_fill(layer.kernel, kernel);
    axes_fill(layer.stride, stride);
    axes_fill(layer.pad_lo, padding);
    axes_fill(layer.pad_hi, padding);
    st = cek_model_pool(model, input, &layer, NULL);
out:
    return st;
}

static cek_status pool_to_add(cek_model *model, int input, const word *w)
{
    cek_status st;
    uint32_t size;

    CEK_TRY(number(w, 0, "size", &size));
    st = cek_model_pool_to(model, input, w->kind, (int64_t[CEK_SPATIAL_MAX]){ size, size, size }, NULL);
out:
    return st;
}

static cek_status gap_add(cek_model *model, int input, const word *w)
{
    const cek_pool_layer whole = { .size = sizeof whole, .mode = w->kind };

    return cek_model_pool(model, input, &whole, NULL);
}

static cek_status activation_add(cek_model *model, int input, const word *w)
{
    cek_status st;
    double x = 0;
    cek_activation_layer layer = { .size = sizeof layer, .kind = w->kind };

    CEK_TRY(factor(w, &x));
    layer.slope = layer.alpha = layer.beta = x; /* that of its kind is read */
    st = cek_model_activation_with(model, input, &layer, NULL);
out:
    return st;
}

static cek_status clip_add(cek_model *model, int input, const word *w)
{
    cek_status st;
    cek_activation_layer layer = { .size = sizeof layer, .kind = w->kind };

    CEK_TRY(cek__parse_double("low", w->setting[0], -FAR, FAR, &layer.low));
    CEK_TRY(cek__parse_double("high", w->setting[1], -FAR, FAR, &layer.high));
    if (!(layer.low < layer.high))
        CEK_FAIL(CEK_BAD_INPUT, "from %g to %g", layer.low, layer.high);
    st = cek_model_activation_with(model, input, &layer, NULL);
out:
    return st;
}

static cek_status batchnorm_add(cek_model *model, int input, const word *w)
{
    const cek_batch_norm_layer layer = { .size = sizeof layer };

    (void)w; /* it has no settings */
    return cek_model_batch_norm(model, input, &layer, NULL);
}

enum { LAYER_NORM, RMS_NORM, GROUP_NORM, INSTANCE_NORM };

static cek_status norm_add(cek_model *model, int input, const word *w)
{
    cek_status st = CEK_OK;
    cek_norm_layer layer = { .size = sizeof layer };
    static cek_status (*const calls[])(cek_model *, int, const cek_norm_layer *, int *) = {
        [LAYER_NORM] = cek_model_layer_norm,
        [RMS_NORM] = cek_model_rms_norm,
        [GROUP_NORM] = cek_model_group_norm,
        [INSTANCE_NORM] = cek_model_instance_norm,
    };

    if (w->settings > 0)
        CEK_TRY(number(w, 0, w->kind == GROUP_NORM ? "groups" : "axes",
                       w->kind == GROUP_NORM ? &layer.groups : &layer.axes));
    st = calls[w->kind](model, input, &layer, NULL);
out:
    return st;
}

static cek_status dropout_add(cek_model *model, int input, const word *w)
{
    cek_status st;
    double p;

    CEK_TRY(cek__parse_double("probability", w->setting[0], -DBL_MAX, DBL_MAX, &p)); /* the layer says which it takes */
    st = cek_model_dropout(model, input, p, NULL);
out:
    return st;
}

static cek_status prelu_add(cek_model *model, int input, const word *w)
{
    cek_status st;
    uint32_t slopes = 1;

    if (w->settings)
        CEK_TRY(number(w, 0, "slopes", &slopes));
    st = cek_model_prelu(model, input, slopes, NULL);
out:
    return st;
}

static cek_status flatten_add(cek_model *model, int input, const word *w)
{
    (void)w; /* it has no settings */
    return cek_model_flatten(model, input, NULL);
}

static cek_status embedding_add(cek_model *model, int input, const word *w)
{
    cek_status st;
    uint32_t count, width;

    CEK_TRY(number(w, 0, "rows", &count));
    CEK_TRY(number(w, 1, "width", &width));
    st = cek_model_embedding(model, input, count, width, NULL);
out:
    return st;
}

enum { LSTM, GRU };

static cek_status recurrent_add(cek_model *model, int input, const word *w)
{
    cek_status st;
    cek_recurrent_layer layer = { .size = sizeof layer };
    uint32_t directions = 1;

    CEK_TRY(number(w, 0, "state", &layer.hidden));
    CEK_TRY(lettered(w, 1, "ld", (uint32_t *const[]){ &layer.layers, &directions }));
    if (directions > 2)
        CEK_FAIL(CEK_BAD_INPUT, "%u directions, there are 1 and 2", directions);
    layer.bidirectional = directions == 2;
    st = (w->kind == LSTM ? cek_model_lstm : cek_model_gru)(model, input, &layer, NULL);
out:
    return st;
}

/* ---- all words ---- */

#define CONV ":OUT,K[,sSTRIDE][,pPADDING][,gGROUPS][,dDILATION]"
#define POOL ":K[,sSTRIDE][,pPADDING]"
#define STEPS ":STATE[,lLAYERS][,dDIRECTIONS]"

/* clang-format off */
static const struct rule {
    const char *name, *form; /* what stands behind the name, for errors */
    int min, max;            /* settings */
    cek_status (*add)(cek_model *model, int input, const word *w);
    uint32_t kind;
} rules[] = {
    { "conv", CONV, 2, 6, conv_add, FORWARD },
    { "convt", CONV "[,mMORE]", 2, 7, conv_add, TRANSPOSED },
    { "linear", ":OUT", 1, 1, linear_add, 0 },
    { "relu", "", 0, 0, activation_add, CEK_ACT_RELU },
    { "gelu", "", 0, 0, activation_add, CEK_ACT_GELU },
    { "tanh", "", 0, 0, activation_add, CEK_ACT_TANH },
    { "sigmoid", "", 0, 0, activation_add, CEK_ACT_SIGMOID },
    { "gelutanh", "", 0, 0, activation_add, CEK_ACT_GELU_TANH },
    { "silu", "", 0, 0, activation_add, CEK_ACT_SILU },
    { "relu6", "", 0, 0, activation_add, CEK_ACT_RELU6 },
    { "hardswish", "", 0, 0, activation_add, CEK_ACT_HARD_SWISH },
    { "hardsigmoid", "", 0, 0, activation_add, CEK_ACT_HARD_SIGMOID },
    { "leakyrelu", "[:SLOPE]", 0, 1, activation_add, CEK_ACT_LEAKY_RELU },
    { "elu", "[:ALPHA]", 0, 1, activation_add, CEK_ACT_ELU },
    { "softplus", "[:BETA]", 0, 1, activation_add, CEK_ACT_SOFTPLUS },
    { "clip", ":LOW,HIGH", 2, 2, clip_add, CEK_ACT_CLIP },
    { "prelu", "[:SLOPES]", 0, 1, prelu_add, 0 },
    { "maxpool", POOL, 1, 3, pool_add, CEK_POOL_MAX },
    { "avgpool", POOL, 1, 3, pool_add, CEK_POOL_AVERAGE },
    { "maxpoolto", ":SIZE", 1, 1, pool_to_add, CEK_POOL_MAX },
    { "avgpoolto", ":SIZE", 1, 1, pool_to_add, CEK_POOL_AVERAGE },
    { "gap", "", 0, 0, gap_add, CEK_POOL_AVERAGE },
    { "batchnorm", "", 0, 0, batchnorm_add, 0 },
    { "layernorm", "[:AXES]", 0, 1, norm_add, LAYER_NORM },
    { "rmsnorm", "[:AXES]", 0, 1, norm_add, RMS_NORM },
    { "groupnorm", ":GROUPS", 1, 1, norm_add, GROUP_NORM },
    { "instancenorm", "", 0, 0, norm_add, INSTANCE_NORM },
    { "dropout", ":P", 1, 1, dropout_add, 0 },
    { "flatten", "", 0, 0, flatten_add, 0 },
    { "embedding", ":ROWS,WIDTH", 2, 2, embedding_add, 0 },
    { "lstm", STEPS, 1, 3, recurrent_add, LSTM },
    { "gru", STEPS, 1, 3, recurrent_add, GRU },
};
/* clang-format on */
enum { RULES = sizeof rules / sizeof *rules };

static cek_status unknown(const char *name)
{
    char names[24 * RULES];
    size_t used = 0;
    cek__nearest near;

    cek__nearest_begin(&near, name, strlen(name));
    for (size_t i = 0; i < RULES; i++) {
        cek__nearest_try(&near, rules[i].name);
        used += (size_t)snprintf(names + used, sizeof names - used, " %.20s", rules[i].name);
    }
    return cek__fail(CEK_BAD_INPUT, "unknown; the words are%s%s", names, cek__nearest_hint(&near));
}

static cek_status word_add(cek_model *model, const char *text, size_t length)
{
    word w;
    cek_status st = word_split(text, length, &w);

    if (st != CEK_OK)
        return st;
    for (size_t i = 0; i < RULES; i++) {
        const struct rule *rule = &rules[i];

        if (strcmp(rule->name, w.name) != 0)
            continue;
        if (w.settings < rule->min || w.settings > rule->max)
            return cek__fail(CEK_BAD_INPUT, "%d settings, the form is %s%s", w.settings, rule->name, rule->form);
        w.kind = rule->kind;
        return rule->add(model, model->node_count - 1, &w);
    }
    return unknown(w.name);
}

/* ---- a text ---- */

cek_status cek__model_add_text(cek_model *model, const char *text)
{
    cek_status st = CEK_OK;
    const char *at = text + strspn(text, " \t\r\n");

    for (int count = 1; *at; count++) {
        size_t length = strcspn(at, " \t\r\n");

        st = word_add(model, at, length);
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
