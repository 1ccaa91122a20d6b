/* samples.c - see samples.h. */
#include "nn/train/samples.h"

#include <stdio.h>
#include <string.h>

#include "core/base/status.h"

static void shape_text(int rank, const int64_t *shape, char *text, size_t size)
{
    size_t n = 0;
    text[0] = 0;
    for (int i = 0; i < rank && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%lld", i ? "," : "", (long long)shape[i]);
}

cek_status cek__samples_fit(int rank, const int64_t *shape, const cek_dataset *dataset, const char *what)
{
    int64_t have[CEK_RANK_MAX];
    int have_rank = cek_dataset_shape(dataset, have);
    char want_text[128], have_text[128];
    if (rank == have_rank && memcmp(shape, have, (size_t)rank * sizeof *have) == 0)
        return CEK_OK;
    shape_text(rank, shape, want_text, sizeof want_text);
    shape_text(have_rank, have, have_text, sizeof have_text);
    return cek__fail(CEK_INVALID, "%s has samples of shape (%s), the model takes (%s)", what, have_text, want_text);
}

void cek__samples_row(const cek_model *model, cek_dtype input_type, const cek__targets *targets, cek__row *out)
{
    *out = (cek__row){ .inputs = model->input_count };
    for (size_t i = 0; i < out->inputs; i++) {
        cek_dtype type = model->graph.flows[model->nodes[model->inputs[i]].flow].type;

        out->input[i] = (uint64_t)cek__model_inputs(model, i) * cek_dtype_bytes(type ? type : input_type);
    }
    if (targets)
        out->target = (uint64_t)targets->columns * cek_dtype_bytes(targets->type);
}

cek_status cek__samples_inputs(const cek_batch *batch, const cek__row *row, const void *out[CEK_INPUTS_MOST])
{
    size_t count = batch->arrays ? batch->array_count : 1;

    if (count != row->inputs)
        return cek__fail(CEK_INVALID, "a batch of %zu inputs, the model has %zu", count, row->inputs);
    for (size_t i = 0; i < count; i++) {
        out[i] = batch->arrays ? batch->arrays[i] : batch->inputs;
        if (!out[i])
            return cek__fail(CEK_INVALID, "a batch without inputs: array %zu is NULL", i);
    }
    return CEK_OK;
}

cek_status cek__samples_single(const cek__row *row)
{
    if (row->inputs == 1)
        return CEK_OK;
    return cek__fail(CEK_INVALID, "the model has %zu inputs, samples of a data set have one", row->inputs);
}

cek_status cek__samples_targets(const cek_batch *batch, cek__targets *out)
{
    cek_dtype usual = batch->target_columns ? CEK_F32 : CEK_I32;

    *out = (cek__targets){ batch->target_type ? batch->target_type : usual, batch->target_columns };
    if (out->type != CEK_I32 && (out->type != CEK_F32 || out->columns == 0))
        return cek__fail(CEK_INVALID, "targets of type %s, %u per sample: i32 labels or f32 values are taken",
                         cek_dtype_name(out->type), out->columns);
    if (out->columns == 0)
        out->columns = 1;
    return CEK_OK;
}

cek__targets cek__dataset_targets(const cek_dataset *dataset)
{
    return (cek__targets){ cek_dataset_classes(dataset) ? CEK_I32 : CEK_F32,
                           (uint32_t)cek_dataset_target_columns(dataset) };
}

const char *cek__targets_name(const cek__targets *targets)
{
    return targets->type == CEK_I32 ? "labels" : "values";
}

int64_t cek__samples_batch(const cek_dataset *dataset, int64_t batch)
{
    int64_t size = cek_dataset_size(dataset);
    return size > 0 && size < batch ? size : batch;
}
