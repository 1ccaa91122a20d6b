/* replica_run.c - a share of a batch through a replica: upload, forward, backward, count. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "nn/train/replica_inside.h"

cek_status cek__replica_drain(cek__replica *r)
{
    cek_status st = r->compute ? cek_stream_sync(r->compute, CEK_FOREVER) : CEK_OK;
    cek_status uploads = r->upload && r->upload != r->compute ? cek_stream_sync(r->upload, CEK_FOREVER) : CEK_OK;
    if (st == CEK_OK || uploads == CEK_DEVICE_LOST)
        st = uploads;
    if (st != CEK_OK)
        return st;
    for (size_t i = 0; i < SLOTS; i++)
        r->slots[i].used = r->slots[i].ran = false; /* nothing to wait for, whatever the failure left unrecorded */
    return CEK_OK;
}

cek_status cek__replica_drain_stream(cek_stream *stream)
{
    return cek_stream_sync(stream, CEK_FOREVER);
}

cek_status cek__replica_await(cek_marker *marker)
{
    return cek_marker_sync(marker, CEK_FOREVER);
}

bool cek__replica_quiesce(cek__replica *r)
{
    char text[CEK__ERROR_TEXT_MAX];
    bool idle;
    strcpy(text, cek_error_text());
    idle = cek__replica_drained(cek__replica_drain(r));
    cek__fail(CEK_INTERNAL, "%s", text);
    return idle;
}

/* On the way out of a failure: the caller's samples may be freed when this returns. Keeps the failure and its text. */
static cek_status failed(cek__replica *r, cek_status st)
{
    (void)cek__replica_quiesce(r);
    r->ahead = (ahead){ 0 };
    return st;
}

static cek_status read_to(cek__replica *r, cek_ref src, void *dst, uint64_t bytes)
{
    cek_status st = cek_stream_download(r->compute, dst, src, bytes);
    return st == CEK_OK ? cek_stream_sync(r->compute, CEK_FOREVER) : st;
}

cek_status cek__replica_read(cek__replica *r, cek_ref src, void *dst, uint64_t bytes)
{
    cek_status st;
    void *between = NULL;
    if (r->is_inline)
        return read_to(r, src, dst, bytes);
    CEK_TRY(cek__malloc(bytes, &between)); /* a device that is lost may still write there */
    CEK_TRY(read_to(r, src, between, bytes));
    memcpy(dst, between, bytes);
out:
    if (st == CEK_OK || cek__replica_quiesce(r))
        free(between);
    else
        cek__abandon(between);
    return st;
}

cek_status cek__replica_write(cek__replica *r, cek_ref dst, const void *src, uint64_t bytes)
{
    cek_status st;
    r->is_prepared = false;
    CEK_TRY(cek_stream_upload(r->compute, dst, src, bytes));
    CEK_TRY(cek_stream_sync(r->compute, CEK_FOREVER));
    return CEK_OK;
out:
    return st;
}

void cek__replica_set_step(cek__replica *r, const cek_step_block *block)
{
    r->step = *block;
    r->step_is_new = true;
}

/* The batch block, and before it the step's where that is new. */
static cek_status blocks_update(cek__replica *r, const cek_batch_block *batch)
{
    unsigned char blocks[sizeof(cek_step_block) + CEK_ALIGNMENT + sizeof(cek_batch_block)] = { 0 };
    uint64_t at = cek__batch_block_at(), from = r->step_is_new ? 0 : at;
    memcpy(blocks, &r->step, sizeof r->step);
    memcpy(blocks + at, batch, sizeof *batch);
    r->step_is_new = false;
    return cek_stream_update(r->compute, cek__ref_behind(r->blocks, from), blocks + from, at + sizeof *batch - from);
}

/* Rows of `row_bytes` in the number that the plan wants, in `staging`. */
static const void *rows_padded(const void *rows, uint64_t row_bytes, int64_t count, int64_t wanted,
                               unsigned char *staging)
{
    memcpy(staging, rows, (size_t)count * row_bytes);
    for (int64_t i = count; i < wanted; i++)
        memcpy(staging + (size_t)i * row_bytes, (const unsigned char *)rows + PADDING_ROW * row_bytes, row_bytes);
    return staging;
}

static const void *targets_padded(const cek__replica *r, const void *targets, int64_t count, int64_t wanted, bool as_is,
                                  unsigned char *staging)
{
    const float *values = targets;
    double *wide = (double *)(void *)staging;
    size_t columns = r->options.targets.columns;
    if (r->options.targets.type == CEK_I32 || !cek__replica_in_f64(r))
        return as_is ? targets : rows_padded(targets, r->target_row_bytes, count, wanted, staging);
    for (size_t i = 0; i < (size_t)wanted * columns; i++)
        wide[i] = (double)values[i < (size_t)count * columns ? i : i % columns];
    return wide;
}

/* What one upload takes: inputs and targets, each where it lies on the host and shall lie on the device. */
typedef struct cargo {
    size_t count;
    const unsigned char *from[CEK_INPUTS_MOST + 1];
    uint64_t at[CEK_INPUTS_MOST + 1], bytes[CEK_INPUTS_MOST + 1];
} cargo;

static void cargo_add(cargo *c, const void *from, uint64_t at, uint64_t bytes)
{
    c->from[c->count] = from;
    c->at[c->count] = at;
    c->bytes[c->count++] = bytes;
}

/* As on the device lies what is ours, unless it is from the middle of a share or its targets were widened. */
static bool cargo_is_one(const cargo *c)
{
    bool one = true;

    for (size_t i = 1; i < c->count; i++)
        one &= (uintptr_t)c->from[i] - (uintptr_t)c->from[0] == c->at[i];
    return one;
}

static cek_status cargo_upload(const cargo *c, cek_stream *stream, const cek_memory *samples, bool together)
{
    cek_status st = CEK_OK;
    size_t last = c->count - 1;

    if (together && c->count > 0 && cargo_is_one(c))
        return cek_stream_upload(stream, cek__ref_of(samples), c->from[0], c->at[last] + c->bytes[last]);
    for (size_t i = 0; i < c->count; i++)
        CEK_TRY(cek_stream_upload(stream, cek__ref_behind(samples, c->at[i]), c->from[i], c->bytes[i]));
out:
    return st;
}

/* Rows [first, first + count) of the share, in staging where they are padded to `wanted`, copied or widened. */
static void cargo_load(const cek__replica *r, const cek__share *share, int64_t first, int64_t count, int64_t wanted,
                       bool as_is, unsigned char *staging, cargo *c)
{
    const uint64_t target_at = cek__target_at(r, wanted);

    c->count = 0;
    for (size_t i = 0; i < r->row.inputs; i++) {
        const void *rows = (const unsigned char *)share->inputs[i] + (uint64_t)first * r->row.input[i];
        uint64_t at = cek__input_at(r, i, wanted);

        if (!as_is)
            rows = rows_padded(rows, r->row.input[i], count, wanted, staging + at);
        cargo_add(c, rows, at, (uint64_t)wanted * r->row.input[i]);
    }
    if (r->options.loss && r->room.target_bytes > 0) { /* a loss may read none */
        const void *targets = (const unsigned char *)share->targets + (uint64_t)first * r->row.target;

        cargo_add(c, targets_padded(r, targets, count, wanted, as_is, staging + target_at), target_at,
                  (uint64_t)wanted * r->target_row_bytes);
    }
}

/* Uploads rows [first, first + count) of the share for a plan of `wanted` rows into the next slot, number *out. */
static cek_status upload(cek__replica *r, const cek__share *share, int64_t first, int64_t count, int64_t wanted,
                         size_t *out)
{
    cek_status st;
    size_t index = r->next_slot;
    slot *s = &r->slots[index];
    unsigned char *staging = r->staging + index * r->staging_bytes;
    cargo c;
    bool as_is = wanted == count && (r->is_inline || share->is_ours);
    r->next_slot = (index + 1) % r->slot_count;
    if (!r->is_inline && s->used) {
        if (s->ran)
            CEK_TRY(cek_stream_wait(r->upload, s->computed));
        if (!as_is || cek__replica_in_f64(r)) /* the staging rows of the last use have been read */
            CEK_TRY(cek_marker_sync(s->uploaded, CEK_FOREVER));
    }
    cargo_load(r, share, first, count, wanted, as_is, staging, &c);
    CEK_TRY(cargo_upload(&c, r->upload, s->samples, !r->is_inline));
    if (!r->is_inline)
        CEK_TRY(cek_marker_record(s->uploaded, r->upload));
    s->used = true;
    *out = index;
    return CEK_OK;
out:
    return st;
}

/* A micro-batch's samples, in slot *at. */
static cek_status samples_place(cek__replica *r, const cek__share *share, int64_t first, int64_t count,
                                const sized_plan *p, size_t *at)
{
    cek_status st;
    cek_batch_block block = { .sample_base = share->sample_base + (uint64_t)first, .rows_valid = (uint32_t)count };
    const bool is_there = r->ahead.set && first == 0 && r->ahead.rows == p->rows;
    if (first == 0)
        r->ahead.set = false;
    if (is_there)
        *at = r->ahead.slot;
    else
        CEK_TRY(upload(r, share, first, count, p->rows, at));
    if (!r->is_inline)
        CEK_TRY(cek_stream_wait(r->compute, r->slots[*at].uploaded));
    return blocks_update(r, &block);
out:
    return st;
}

/* One micro-batch up to its loss. */
static cek_status forward(cek__replica *r, const cek__share *share, int64_t first, int64_t count, const sized_plan *p,
                          size_t *at)
{
    cek_status st = samples_place(r, share, first, count, p, at);
    return st == CEK_OK ? cek__plan_forward(p->plan, *at, r->compute) : st;
}

static cek_status slot_done(cek__replica *r, size_t at)
{
    cek_status st = r->is_inline ? CEK_OK : cek_marker_record(r->slots[at].computed, r->compute);
    r->slots[at].ran |= st == CEK_OK;
    return st;
}

static int64_t micro_batch_of(const cek__replica *r, const cek__share *share)
{
    return cek__replica_piece(r, share->rows);
}

cek_status cek__replica_upload_ahead(cek__replica *r, const cek__share *share)
{
    cek_status st;
    sized_plan p;
    int64_t count = micro_batch_of(r, share);
    if (r->slot_count < 2)
        return CEK_OK;
    CEK_TRY(cek__replica_plan_for(r, count, &p));
    CEK_TRY(upload(r, share, 0, count, p.rows, &r->ahead.slot));
    r->ahead.rows = p.rows;
    r->ahead.set = true;
    return CEK_OK;
out:
    return failed(r, st);
}

uint64_t cek__replica_share_bytes(const cek__replica *r)
{
    uint64_t rows = (uint64_t)r->options.rows + 1; /* shares of a smaller batch may round up to one more */
    return cek__target_at(r, (int64_t)rows) + rows * r->row.target;
}

void cek__replica_copy_share(const cek__replica *r, const cek__share *share, unsigned char *batch, cek__share *out)
{
    unsigned char *targets = batch + cek__target_at(r, share->rows);
    *out = *share;
    out->is_ours = true;
    for (size_t i = 0; i < r->row.inputs; i++) {
        out->inputs[i] = batch + cek__input_at(r, i, share->rows);
        memcpy((void *)out->inputs[i], share->inputs[i], (size_t)share->rows * r->row.input[i]);
    }
    memcpy(targets, share->targets, (size_t)share->rows * r->row.target);
    out->targets = targets;
}

size_t cek__replica_forward_count(const cek__replica *r, const size_t **reads)
{
    *reads = r->options.cut_forward ? r->layout->forward_reads : NULL;
    return r->options.cut_forward ? r->layout->forward_count : 1;
}

cek_status cek__replica_forward(cek__replica *r, const cek__share *share, size_t segment)
{
    cek_status st;
    int64_t count = micro_batch_of(r, share);
    begun *b = &r->begun;
    if (segment == 0) {
        CEK_TRY(cek__replica_plan_for(r, count, &b->plan));
        CEK_TRY(samples_place(r, share, 0, count, &b->plan, &b->slot));
    }
    CEK_TRY(cek__plan_forward_segment(b->plan.plan, b->slot, r->compute, segment));
    return CEK_OK;
out:
    return failed(r, st);
}

cek_status cek__replica_train(cek__replica *r, const cek__share *share, cek__segment_fn segment, void *user)
{
    cek_status st;
    int64_t step = micro_batch_of(r, share);
    for (int64_t first = 0; first < share->rows; first += step) {
        int64_t count = share->rows - first < step ? share->rows - first : step;
        bool last = first + count == share->rows;
        sized_plan p = r->begun.plan;
        size_t at = r->begun.slot;
        if (first > 0) {
            CEK_TRY(cek__replica_plan_for(r, count, &p));
            CEK_TRY(forward(r, share, first, count, &p, &at));
        }
        for (size_t i = 0; i < cek__plan_segment_count(p.plan); i++) {
            CEK_TRY(cek__plan_backward(p.plan, at, r->compute, i, first > 0));
            if (last)
                CEK_TRY(segment(user, cek__plan_segment_buckets(p.plan, i)));
        }
        CEK_TRY(slot_done(r, at));
    }
    return CEK_OK;
out:
    return failed(r, st);
}

/* ---- whole steps ---- */

cek_status cek__replica_set_updates(cek__replica *r, const cek_cmd *updates, uint32_t count)
{
    static atomic_ullong serials; /* a place in memory may be another list's later */
    cek_status st = CEK_OK;
    cek_ref tally = cek__ref_of(r->tally), result = { tally.mem, tally.offset + cek__replica_tally_bytes(r) };
    cek_cmd *cmds = NULL;
    free((void *)r->updates.cmds);
    r->updates = (cek__tail){ 0 };
    if (count == 0)
        return CEK_OK;
    CEK_TRY(cek__calloc((size_t)count + 2, sizeof *cmds, &cmds));
    memcpy(cmds, updates, count * sizeof *cmds);
    cmds[count] = (cek_cmd){ .kind = CEK_CMD_COPY, .dst = result, .src = tally, .bytes = cek__replica_tally_bytes(r) };
    cmds[count + 1] =
        (cek_cmd){ .kind = CEK_CMD_FILL, .dst = tally, .pattern_bytes = 4, .bytes = cek__replica_tally_bytes(r) };
    r->updates = (cek__tail){ cmds, count + 2, atomic_fetch_add(&serials, 1) + 1 };
out:
    return st;
}

bool cek__replica_is_whole(const cek__replica *r, const cek__share *share)
{
    return r->updates.count > 0 && !r->whole_refused && micro_batch_of(r, share) >= share->rows &&
           cek_device_trace(r->device) == NULL;
}

cek_status cek__replica_train_whole(cek__replica *r, const cek__share *share)
{
    cek_status st;
    sized_plan p;
    size_t at;
    CEK_TRY(cek__replica_plan_for(r, share->rows, &p));
    CEK_TRY(samples_place(r, share, 0, share->rows, &p, &at));
    CEK_TRY(cek__plan_step(p.plan, at, r->compute, &r->updates));
    r->whole_refused = cek__plan_step_is_refused(p.plan, at);
    CEK_TRY(slot_done(r, at));
    return CEK_OK;
out:
    return failed(r, st);
}

cek_status cek__replica_count_whole(cek__replica *r, unsigned char *tally)
{
    cek_ref result = cek__ref_of(r->tally);
    result.offset += cek__replica_tally_bytes(r);
    return cek_stream_download(r->compute, tally, result, cek__replica_tally_bytes(r));
}

cek_status cek__replica_evaluate(cek__replica *r, const cek__share *share)
{
    cek_status st;
    for (int64_t first = 0; first < share->rows; first += r->evaluate.rows) {
        int64_t left = share->rows - first;
        size_t at;
        CEK_TRY(forward(r, share, first, left < r->evaluate.rows ? left : r->evaluate.rows, &r->evaluate, &at));
        CEK_TRY(slot_done(r, at));
    }
    return CEK_OK;
out:
    return failed(r, st);
}

cek_status cek__replica_count(cek__replica *r, unsigned char *tally)
{
    cek_status st;
    CEK_TRY(cek_stream_download(r->compute, tally, cek__ref_of(r->tally), cek__replica_tally_bytes(r)));
    st = cek__replica_forget(r);
out:
    return st;
}

cek_status cek__replica_forget(cek__replica *r)
{
    return cek_stream_fill(r->compute, cek__ref_of(r->tally), 0, 4, cek__replica_tally_bytes(r));
}

void cek__replica_read_tally(const cek__replica *r, const unsigned char *tally, double *loss, int64_t *correct)
{
    int32_t right;
    float sum;
    if (cek__replica_in_f64(r)) {
        memcpy(loss, tally, sizeof *loss);
    } else {
        memcpy(&sum, tally, sizeof sum);
        *loss = (double)sum;
    }
    memcpy(&right, tally + CEK_ALIGNMENT, sizeof right);
    *correct = right;
}

cek_status cek__replica_collect(cek__replica *r, double *loss, int64_t *correct)
{
    cek_status st;
    *loss = 0;
    *correct = 0;
    CEK_TRY(cek__replica_count(r, r->tally_host));
    CEK_TRY(cek_stream_sync(r->compute, CEK_FOREVER));
    cek__replica_read_tally(r, r->tally_host, loss, correct);
out:
    return st;
}

cek_status cek__replica_predict(cek__replica *r, const cek__share *share, float *outputs)
{
    cek_status st;
    uint64_t row_bytes = r->outputs * cek_dtype_bytes(r->layout->type);
    if (!r->is_prepared)
        CEK_TRY(cek__plan_prepare(r->evaluate.plan, 0, r->compute));
    r->is_prepared = true;
    for (int64_t first = 0; first < share->rows; first += r->evaluate.rows) {
        int64_t left = share->rows - first, count = left < r->evaluate.rows ? left : r->evaluate.rows;
        float *dst = outputs + (uint64_t)first * r->outputs;
        size_t at;
        CEK_TRY(forward(r, share, first, count, &r->evaluate, &at));
        CEK_TRY(slot_done(r, at));
        if (cek__replica_in_f64(r)) {
            double *wide = (double *)(void *)r->staging;
            CEK_TRY(cek__replica_read(r, cek__ref_of(r->output), wide, (uint64_t)count * row_bytes));
            for (uint64_t i = 0; i < (uint64_t)count * r->outputs; i++)
                dst[i] = (float)wide[i];
        } else {
            CEK_TRY(cek__replica_read(r, cek__ref_of(r->output), dst, (uint64_t)count * row_bytes));
        }
    }
    return CEK_OK;
out:
    return failed(r, st);
}
