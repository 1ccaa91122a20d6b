/* replica.c - a replica's life: streams, parameters in and out. What lies on its device is in
 * replica_memory.c, a step in replica_run.c. */
#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "nn/model/model.h"
#include "nn/train/replica_inside.h"
#include "nn/train/running.h"

static cek_status streams_make(cek__replica *r)
{
    cek_status st;
    cek_device_info info = { .size = sizeof info };
    CEK_TRY(cek_device_describe(r->device, &info));
    r->is_inline = info.flags & CEK_DEVICE_INLINE;
    r->arena_piece = info.max_alloc_bytes == CEK_UNKNOWN ? 0 : info.max_alloc_bytes / CEK_ALIGNMENT * CEK_ALIGNMENT;
    r->slot_count = r->is_inline ? 1 : SLOTS;
    CEK_TRY(cek_stream_create(r->device, &r->compute));
    cek_stream_set_name(r->compute, r->is_inline ? "all" : "compute");
    if (r->is_inline) {
        r->upload = r->compute;
        return CEK_OK;
    }
    CEK_TRY(cek_stream_create(r->device, &r->upload));
    cek_stream_set_name(r->upload, "upload");
    for (size_t i = 0; i < r->slot_count; i++) {
        CEK_TRY(cek_marker_create(r->device, false, &r->slots[i].uploaded));
        CEK_TRY(cek_marker_create(r->device, false, &r->slots[i].computed));
    }
    return CEK_OK;
out:
    return st;
}

static void rows_measure(cek__replica *r)
{
    r->outputs = r->options.output_count ? 0 : (uint64_t)cek__model_outputs(r->model);
    for (size_t i = 0; i < r->options.output_count; i++)
        r->outputs += (uint64_t)cek__node_elements(r->model, r->options.outputs[i]);
    cek__samples_row(r->model, r->options.input_type, r->options.loss ? &r->options.targets : NULL, &r->row);
    if (r->options.loss)
        r->target_row_bytes = r->options.targets.columns *
                              cek_dtype_bytes(r->options.targets.type == CEK_I32 ? CEK_I32 : r->layout->type);
}

static uint64_t buffer_bytes(const cek__replica *r)
{
    return r->model->buffer_elements * cek_dtype_bytes(r->layout->type);
}

static uint64_t constant_bytes(const cek__replica *r)
{
    return r->model->constants.count * cek_dtype_bytes(r->layout->type);
}

uint64_t cek__replica_tally_bytes(const cek__replica *r)
{
    return CEK__TALLY_BYTES + (r->options.training ? buffer_bytes(r) : 0);
}

int64_t cek__replica_runs(const cek__replica *r, int64_t rows)
{
    int64_t piece = cek__replica_piece(r, rows);

    return (rows + piece - 1) / piece;
}

/* Uploads what the library keeps, and waits. The memory is `host` no more. */
static cek_status own_upload(cek__replica *r, cek_ref dst, void *host, uint64_t bytes)
{
    cek_status st;
    r->is_prepared = false;
    CEK_TRY(cek_stream_upload(r->compute, dst, host, bytes));
    CEK_TRY(cek_stream_sync(r->compute, CEK_FOREVER));
out:
    if (st == CEK_OK || cek__replica_quiesce(r))
        free(host);
    else
        cek__abandon(host); /* the device may still read it */
    return st;
}

/* In the type that is computed in. */
static cek_status values_load(cek__replica *r, cek_memory *to, const float *values, uint64_t count)
{
    cek_status st;
    const uint64_t bytes = count * cek_dtype_bytes(r->layout->type);
    void *host;
    if (count == 0)
        return CEK_OK;
    CEK_TRY(cek__malloc(bytes, &host));
    for (uint64_t i = 0; i < count; i++)
        if (cek__replica_in_f64(r))
            ((double *)host)[i] = (double)values[i];
        else
            ((float *)host)[i] = values[i];
    st = own_upload(r, cek__ref_of(to), host, bytes);
out:
    return st;
}

cek_status cek__replica_create(const cek_model *model, const cek__layout *layout, cek_device *device,
                               const cek__replica_options *options, cek__replica **out)
{
    cek_status st;
    cek__replica *r = NULL;
    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *r, &r));
    r->model = model;
    r->layout = layout;
    r->device = device;
    r->options = *options;
    rows_measure(r);
    CEK_TRY(streams_make(r));
    CEK_TRY(cek__replica_buckets_make(r));
    CEK_TRY(cek__replica_memory_make(r, cek__batch_block_at() + sizeof(cek_batch_block), &r->blocks));
    CEK_TRY(cek__replica_memory_make(r, 2 * cek__replica_tally_bytes(r), &r->tally));
    CEK_TRY(cek_stream_fill(r->compute, cek__ref_of(r->tally), 0, 4, 2 * cek__replica_tally_bytes(r)));
    CEK_TRY(cek__replica_memory_make(r, buffer_bytes(r), &r->buffers));
    CEK_TRY(cek__replica_memory_make(r, constant_bytes(r), &r->constants));
    CEK_TRY(cek__replica_choose_micro_batch(r));
    if (options->training)
        cek__replica_left_tell(r, &r->train[0], "training");
    cek__replica_left_tell(r, &r->evaluate, options->loss ? "evaluation" : "prediction");
    r->staging_bytes = cek__larger(cek__target_at(r, r->micro_batch) + (uint64_t)r->micro_batch * r->target_row_bytes,
                                   (uint64_t)r->micro_batch * r->outputs * sizeof(double));
    r->staging_bytes = cek__aligned(r->staging_bytes);
    CEK_TRY(cek_pinned_alloc(device, r->staging_bytes * r->slot_count + cek__replica_tally_bytes(r),
                             (void **)&r->staging));
    r->tally_host = r->staging + r->staging_bytes * r->slot_count;
    CEK_TRY(cek__replica_load(r, model));
    CEK_TRY(values_load(r, r->constants, model->constants.values, model->constants.count));
    *out = r;
    return CEK_OK;
out:
    cek__replica_free(r);
    return st;
}

void cek__replica_free(cek__replica *r)
{
    bool drained;
    if (!r)
        return;
    drained = cek__replica_drained(cek__replica_drain(r));
    cek__replica_left_close(r, drained);
    cek__replica_memory_close(r);
    for (size_t i = 0; i < SLOTS; i++) {
        cek_marker_free(r->slots[i].uploaded);
        cek_marker_free(r->slots[i].computed);
    }
    if (drained)
        cek_pinned_free(r->device, r->staging);
    else
        cek_pinned_abandon(r->device, r->staging); /* the device may still read it (plugin.h, Errors) */
    if (r->upload != r->compute)
        cek_stream_free(r->upload);
    cek_stream_free(r->compute);
    free(r);
}

const cek__layout *cek__replica_layout(const cek__replica *r)
{
    return r->layout;
}

cek_device *cek__replica_device(const cek__replica *r)
{
    return r->device;
}

cek_stream *cek__replica_stream(const cek__replica *r)
{
    return r->compute;
}

bool cek__replica_is_inline(const cek__replica *r)
{
    return r->is_inline;
}

uint64_t cek__replica_element_bytes(const cek__replica *r)
{
    return cek_dtype_bytes(r->layout->type);
}

const cek_memory *cek__replica_parameter_memory(const cek__replica *r, size_t bucket)
{
    return r->parameters[bucket];
}

const cek_memory *cek__replica_rounded_memory(const cek__replica *r, size_t bucket)
{
    return r->rounded[bucket];
}

const cek_memory *cek__replica_gradient_memory(const cek__replica *r, size_t bucket)
{
    return r->gradients[bucket];
}

cek_ref cek__replica_parameters(const cek__replica *r, size_t bucket)
{
    return r->parameter_refs[bucket];
}

cek_ref cek__replica_rounded(const cek__replica *r, size_t bucket)
{
    return r->rounded_refs[bucket];
}

cek_ref cek__replica_gradients(const cek__replica *r, size_t bucket)
{
    return r->gradient_refs[bucket];
}

cek_ref cek__replica_step_block(const cek__replica *r)
{
    return cek__ref_of(r->blocks);
}

int64_t cek__replica_micro_batch(const cek__replica *r)
{
    return r->micro_batch;
}

void cek__replica_set_most(cek__replica *r, int64_t rows)
{
    r->options.rows = rows;
}

int64_t cek__replica_most(const cek__replica *r)
{
    return r->options.rows;
}

uint64_t cek__replica_bytes(const cek__replica *r)
{
    uint64_t bytes = cek__replica_rooms_bytes(r) + cek__room_of(r->blocks) + cek__room_of(r->tally) +
                     cek__room_of(r->buffers) + cek__room_of(r->constants);
    for (size_t b = 0; b < r->layout->bucket_count; b++)
        bytes += cek__room_of(r->parameters[b]) + cek__room_of(r->rounded[b]) + cek__room_of(r->gradients[b]);
    return bytes;
}

/* ---- Copies ---------------------------------------------------------------------------------- */

cek_status cek__replica_load_buffers(cek__replica *r, const float *values)
{
    return values_load(r, r->buffers, values, r->model->buffer_elements);
}

static cek_status model_buffers_load(cek__replica *r, const cek_model *model)
{
    cek_status st;
    cek__running *running = NULL;
    CEK_TRY(cek__running_create(model, &running));
    st = cek__replica_load_buffers(r, running->values);
out:
    cek__running_free(running);
    return st;
}

static cek_status rounded_write(cek__replica *r, size_t bucket, const void *parameters)
{
    cek_status st;
    const uint64_t bytes = cek__layout_rounded_bytes(r->layout, bucket);
    uint16_t *rounded;
    if (bytes == 0)
        return CEK_OK;
    CEK_TRY(cek__malloc(bytes, (void **)&rounded));
    cek__layout_round(r->layout, bucket, parameters, rounded);
    st = own_upload(r, r->rounded_refs[bucket], rounded, bytes);
out:
    return st;
}

cek_status cek__replica_write_bucket(cek__replica *r, size_t bucket, const void *parameters, const uint16_t *rounded)
{
    cek_status st;
    CEK_TRY(cek__replica_write(r, r->parameter_refs[bucket], parameters, cek__layout_bucket_bytes(r->layout, bucket)));
    st = rounded ? cek__replica_write(r, r->rounded_refs[bucket], rounded, cek__layout_rounded_bytes(r->layout, bucket))
                 : rounded_write(r, bucket, parameters);
out:
    return st;
}

cek_status cek__replica_load(cek__replica *r, const cek_model *model)
{
    cek_status st;
    for (size_t b = 0; b < r->layout->bucket_count; b++) {
        uint64_t bytes = cek__layout_bucket_bytes(r->layout, b);
        void *host;
        CEK_TRY(cek__malloc(bytes, &host));
        cek__layout_pack(r->layout, model, b, host);
        st = rounded_write(r, b, host);
        if (st != CEK_OK) {
            free(host);
            return st;
        }
        CEK_TRY(own_upload(r, r->parameter_refs[b], host, bytes));
    }
    return model_buffers_load(r, model);
out:
    return st;
}
