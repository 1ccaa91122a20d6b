/* summary.c - a model as a table for people, and the memory that training it takes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "nn/model/layers.h"
#include "nn/model/layout.h"
#include "nn/model/plan.h"

/* ---- text that grows ---- */

typedef struct text {
    char *data;
    size_t length, capacity;
} text;

static cek_status text_add(text *t, const char *line)
{
    cek_status st;
    size_t n = strlen(line);

    if (t->length + n + 1 > t->capacity) {
        size_t capacity = 2 * (t->length + n) + 256;

        CEK_TRY(cek__realloc_array(capacity, 1, &t->data));
        t->capacity = capacity;
    }
    memcpy(t->data + t->length, line, n + 1);
    t->length += n;
    return CEK_OK;
out:
    return st;
}

/* 25690112 -> "25,690,112" */
static const char *grouped(uint64_t n, char out[32])
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n), at = 0;

    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = 0;
    return out;
}

/* ---- the table ---- */

static uint64_t node_parameters(const cek_model *model, const cek__node *node)
{
    uint64_t n = 0;

    if (node->weight >= 0)
        n += (uint64_t)model->parameters[node->weight].public.count;
    if (node->bias >= 0)
        n += (uint64_t)model->parameters[node->bias].public.count;
    return n;
}

static cek_status node_add(text *t, const cek_model *model, int index)
{
    const cek__node *node = &model->nodes[index];
    const cek__layer_class *class = cek__layer_class_of(node->layer);
    char line[256], layer[128], shape[CEK__SHAPE_TEXT], count[32], what[96] = "";

    if (class->describe)
        class->describe(node, what, sizeof what);
    if (node->layer == CEK__LAYER_ACTIVATION) /* its name says all */
        snprintf(layer, sizeof layer, "%s", cek__activation_name(node->activation));
    else
        snprintf(layer, sizeof layer, "%s%s%s", class->name, what[0] ? " " : "", what);
    snprintf(line, sizeof line, "%3d  %-32s %16s %14s\n", index, layer, cek__shape_text(&node->shape, shape),
             node->weight >= 0 ? grouped(node_parameters(model, node), count) : "");
    return text_add(t, line);
}

static cek_status memory_add(text *t, const cek_model *model, cek_device *device, int64_t batch, uint64_t parameters)
{
    cek_status st;
    char line[256];
    cek__layout *layout = NULL;
    cek__plan *plan = NULL;
    const cek__plan_needs *n;
    const double mib = 1 << 20;
    double weights = (double)parameters * sizeof(float) / mib;
    cek__plan_options o = { .rows = batch, .input_type = CEK_F32, .training = true,
                            .loss = cek__model_outputs(model) > 1 ? CEK_LOSS_CROSS_ENTROPY : CEK_LOSS_MSE };

    CEK_TRY(cek__layout_create(model, CEK_F32, &layout));
    CEK_TRY(cek__plan_create(model, layout, device, &o, &plan));
    n = cek__plan_get_needs(plan);
    snprintf(line, sizeof line,
             "training on %s, batch %lld: %.1f MiB = parameters %.1f + gradients %.1f + Adam's moments %.1f + activations %.1f "
             "+ workspace %.1f\n",
             cek_device_name(device), (long long)batch,
             4 * weights + (double)(n->arena_bytes + n->input_bytes + n->target_bytes + n->workspace_bytes) / mib, weights,
             weights, 2 * weights, (double)(n->arena_bytes + n->input_bytes + n->target_bytes) / mib,
             (double)n->workspace_bytes / mib);
    CEK_TRY(text_add(t, line));
    st = CEK_OK;
out:
    cek__plan_free(plan);
    cek__layout_free(layout);
    return st;
}

cek_status cek_model_summary(const cek_model *model, cek_device *device, int64_t batch, char **out)
{
    cek_status st;
    text t = { 0 };
    uint64_t parameters = 0;
    char line[128], count[32];

    *out = NULL;
    snprintf(line, sizeof line, "%3s  %-32s %16s %14s\n", "#", "layer", "output", "parameters");
    CEK_TRY(text_add(&t, line));
    for (int i = 0; i < model->node_count; i++) {
        parameters += node_parameters(model, &model->nodes[i]);
        CEK_TRY(node_add(&t, model, i));
    }
    snprintf(line, sizeof line, "%3s  %-32s %16s %14s\n", "", "total", "", grouped(parameters, count));
    CEK_TRY(text_add(&t, line));
    if (device && parameters > 0)
        CEK_TRY(memory_add(&t, model, device, batch, parameters));
    *out = t.data;
    return CEK_OK;
out:
    free(t.data);
    return st;
}
