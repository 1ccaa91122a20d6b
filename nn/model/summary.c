/* summary.c - a model as a table for people: layers, shapes, parameters, and the memory that training takes. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "core/base/thread.h"
#include "nn/model/model.h"
#include "nn/model/plan.h"

/* A text that grows. */
typedef struct text {
    char *data;
    size_t length;
} text;

__attribute__((format(printf, 2, 3))) static cek_status text_add(text *t, const char *fmt, ...)
{
    cek_status st;
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    CEK_TRY(cek__realloc_array(t->length + (size_t)n + 1, 1, &t->data));
    va_start(args, fmt);
    vsnprintf(t->data + t->length, (size_t)n + 1, fmt, args);
    va_end(args);
    t->length += (size_t)n;
    return CEK_OK;
out:
    return st;
}

/* "25,690,112". */
static const char *grouped(uint64_t n, char out[32])
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    char *to = out;

    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return out;
}

/* ---- the table ---- */

enum { COLUMNS = 4, CELL_MAX = 128 };
typedef struct row {
    char cell[COLUMNS][CELL_MAX];
} row;

static uint64_t node_parameters(const cek_model *model, int node)
{
    uint64_t n = 0;

    for (size_t i = 0; i < model->parameter_count; i++)
        if (model->parameters[i].node == node)
            n += (uint64_t)model->parameters[i].public.count;
    return n;
}

/* Which nodes it reads, where that is not just the one before. */
static void inputs_describe(const cek_model *model, int index, char *out, size_t cap)
{
    const cek__node *node = &model->nodes[index];
    size_t used = 0;

    out[0] = '\0';
    if (node->inputs == 0 || (node->inputs == 1 && node->input[0] == index - 1))
        return;
    for (int i = 0; i < node->inputs && used < cap; i++) {
        const char *name = model->nodes[node->input[i]].name;

        used += (size_t)snprintf(out + used, cap - used, "%s%s",
                                 i == 0                 ? " of "
                                 : i + 1 < node->inputs ? ", "
                                                        : " and ",
                                 name ? name : "input");
    }
}

/* What is longer than a cell ends in "...". */
CEK__PRINTF(2, 3) static void cell_fill(char cell[CELL_MAX], const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    if (vsnprintf(cell, CELL_MAX, fmt, args) >= CELL_MAX)
        memcpy(cell + CELL_MAX - 4, "...", 4);
    va_end(args);
}

/* Names are those of the parameters: by position in the sequence, where the user gave none. */
static void row_fill(const cek_model *model, int index, row *r)
{
    const cek__node *node = &model->nodes[index];
    char from[CELL_MAX], shape[CEK__SHAPE_TEXT], count[32];
    uint64_t parameters = node_parameters(model, index);

    inputs_describe(model, index, from, sizeof from);
    cell_fill(r->cell[0], "%s", node->name ? node->name : "");
    cell_fill(r->cell[1], "%s%s%s%s", node->kind, *node->note ? " " : "", node->note, from);
    cell_fill(r->cell[2], "%s", cek__dims_text(cek__node_dims(model, index), shape));
    cell_fill(r->cell[3], "%s", parameters ? grouped(parameters, count) : "");
}

static cek_status table_add(text *t, const row *rows, int count)
{
    cek_status st;
    int width[COLUMNS] = { 0 };

    for (int i = 0; i < count; i++)
        for (int c = 0; c < COLUMNS; c++)
            if ((int)strlen(rows[i].cell[c]) > width[c])
                width[c] = (int)strlen(rows[i].cell[c]);
    for (int i = 0; i < count; i++)
        CEK_TRY(text_add(t, "%*s  %-*s  %-*s  %*s\n", width[0], rows[i].cell[0], width[1], rows[i].cell[1], width[2],
                         rows[i].cell[2], width[3], rows[i].cell[3]));
    return CEK_OK;
out:
    return st;
}

/* ---- memory ---- */

static cek_status memory_line(text *t, const char *what, uint64_t bytes)
{
    return text_add(t, "  %-28s %10.1f MiB\n", what, (double)bytes / (1 << 20));
}

static cek_status memory_add(text *t, const cek_model *model, cek_device *device, int64_t batch)
{
    cek_status st;
    cek__layout *layout = NULL;
    cek__plan *plan = NULL;
    const cek__plan_needs *needs;
    int64_t outputs = cek__model_outputs(model);
    bool classes = cek__node_dims(model, cek__model_output(model))->rank == 2 && outputs > 1;
    /* Both losses take the same to within a few numbers for each sample. */
    cek__plan_options options = { .rows = batch,
                                  .training = true,
                                  .input_type = CEK_F32, /* counts where it is data */
                                  .loss = model->loss ? CEK_LOSS_OWN
                                          : classes   ? CEK_LOSS_CROSS_ENTROPY
                                                      : CEK_LOSS_MSE };
    uint64_t buckets = 0, data, planning;

    CEK_TRY(cek__layout_create(model, CEK_F32, &layout));
    for (size_t b = 0; b < layout->bucket_count; b++)
        buckets += cek__layout_bucket_bytes(layout, b);
    planning = cek__now_ns();
    CEK_TRY(cek__plan_create(model, layout, device, &options, &plan));
    planning = cek__now_ns() - planning;
    needs = cek__plan_get_needs(plan);
    data = needs->input_bytes + needs->target_bytes;
    CEK_TRY(text_add(t, "training on %s, %lld samples at a time:\n", cek_device_name(device), (long long)batch));
    CEK_TRY(memory_line(t, "parameters", buckets));
    CEK_TRY(memory_line(t, "gradients", buckets));
    CEK_TRY(memory_line(t, "Adam's state", 2 * buckets));
    CEK_TRY(memory_line(t, "activations", needs->arena_bytes));
    CEK_TRY(memory_line(t, "workspace", needs->workspace_bytes));
    CEK_TRY(memory_line(t, "inputs and targets", data));
    CEK_TRY(memory_line(t, "together", 4 * buckets + needs->arena_bytes + needs->workspace_bytes + data));
    CEK_TRY(text_add(t, "%d operations, planned in %.3f s\n", needs->operations, (double)planning / 1e9));
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
    row *rows = NULL;
    uint64_t total = 0;
    char count[32];

    CEK__NOT_NULL_AS(out, text);
    *out = NULL;
    CEK__NOT_NULL(model);
    CEK_TRY(cek__calloc((size_t)model->node_count + 1, sizeof *rows, &rows));
    rows[0] = (row){ { "#", "layer", "output", "parameters" } };
    for (int i = 0; i < model->node_count; i++) {
        row_fill(model, i, &rows[i + 1]);
        total += node_parameters(model, i);
    }
    CEK_TRY(table_add(&t, rows, model->node_count + 1));
    CEK_TRY(text_add(&t, "%s parameters\n", grouped(total, count)));
    if (device && model->parameter_count > 0)
        CEK_TRY(memory_add(&t, model, device, batch));
    *out = t.data;
    t.data = NULL;
    st = CEK_OK;
out:
    free(t.data);
    free(rows);
    return st;
}
