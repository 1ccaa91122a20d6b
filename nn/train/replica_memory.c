/* replica_memory.c - what a replica keeps on its device: buckets, plans, and the rooms that plans
 * run in; the choice of the micro-batch. */
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "nn/train/replica_inside.h"

cek_status cek__replica_memory_make(cek__replica *r, uint64_t bytes, cek_memory **out)
{
    return bytes ? cek_memory_alloc(r->device, bytes, CEK_MEMORY_ALONE, out) : CEK_OK;
}

static void memory_drop(cek_memory **memory)
{
    cek_memory_free(*memory);
    *memory = NULL;
}

cek_status cek__replica_buckets_make(cek__replica *r)
{
    cek_status st;
    size_t n = r->layout->bucket_count;
    CEK_TRY(cek__calloc(n, sizeof *r->parameters, &r->parameters));
    CEK_TRY(cek__calloc(n, sizeof *r->rounded, &r->rounded));
    CEK_TRY(cek__calloc(n, sizeof *r->gradients, &r->gradients));
    CEK_TRY(cek__calloc(n, sizeof *r->parameter_refs, &r->parameter_refs));
    CEK_TRY(cek__calloc(n, sizeof *r->rounded_refs, &r->rounded_refs));
    CEK_TRY(cek__calloc(n, sizeof *r->gradient_refs, &r->gradient_refs));
    for (size_t b = 0; b < n; b++) {
        uint64_t bytes = cek__layout_bucket_bytes(r->layout, b);
        CEK_TRY(cek__replica_memory_make(r, bytes, &r->parameters[b]));
        r->parameter_refs[b] = cek__ref_of(r->parameters[b]);
        CEK_TRY(cek__replica_memory_make(r, cek__layout_rounded_bytes(r->layout, b), &r->rounded[b]));
        r->rounded_refs[b] = cek__ref_of(r->rounded[b]);
        if (!r->options.training)
            continue;
        CEK_TRY(cek__replica_memory_make(r, bytes, &r->gradients[b]));
        r->gradient_refs[b] = cek__ref_of(r->gradients[b]);
        CEK_TRY(cek_stream_fill(r->compute, r->gradient_refs[b], 0, 4, bytes));
    }
    return CEK_OK;
out:
    return st;
}

static void rooms_drop(cek__replica *r)
{
    r->ahead.set = r->is_prepared = false; /* it lay there */
    for (size_t i = 0; i < SLOTS; i++) {
        memory_drop(&r->slots[i].samples);
    }
    for (size_t i = 0; i < CEK__ARENA_PIECES; i++)
        memory_drop(&r->arena[i]);
    memory_drop(&r->workspace);
    memory_drop(&r->output);
    cek__replica_left_drop(r);
    memset(&r->room, 0, sizeof r->room);
}

/* In pieces, where the device gives no memory of that size. */
static cek_status arena_make(cek__replica *r, uint64_t bytes, uint64_t piece)
{
    cek_status st = CEK_OK;
    if (bytes / piece >= CEK__ARENA_PIECES)
        return cek__fail(CEK_OUT_OF_MEMORY, "%s: activations of %llu bytes, and it gives %llu at once",
                         cek_device_name(r->device), (unsigned long long)bytes, (unsigned long long)piece);
    for (size_t i = 0; bytes; i++) {
        uint64_t part = bytes < piece ? bytes : piece;
        CEK_TRY(cek__replica_memory_make(r, part, &r->arena[i]));
        bytes -= part;
    }
out:
    return st;
}

/* Memory that the plans fit into which are always there, and one more. */
static cek_status rooms_make(cek__replica *r, const cek__plan *another)
{
    cek_status st;
    const cek__plan *plans[] = { r->train_count ? r->train[0].plan : NULL, r->evaluate.plan, another };
    cek__plan_needs need = { 0 };
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        const cek__plan_needs *n;
        if (!plans[i])
            continue;
        n = cek__plan_get_needs(plans[i]);
        need.arena_bytes = cek__larger(need.arena_bytes, n->arena_bytes);
        need.arena_piece = n->arena_piece;
        need.workspace_bytes = cek__larger(need.workspace_bytes, n->workspace_bytes);
        need.input_bytes = cek__larger(need.input_bytes, n->input_bytes);
        need.target_bytes = cek__larger(need.target_bytes, n->target_bytes);
        need.output_bytes = cek__larger(need.output_bytes, n->output_bytes);
        need.left_bytes = cek__larger(need.left_bytes, n->left_bytes);
        need.left_workspace_bytes = cek__larger(need.left_workspace_bytes, n->left_workspace_bytes);
    }
    if (r->options.loss)
        need.output_bytes = 0;
    CEK_TRY(arena_make(r, need.arena_bytes, need.arena_piece));
    CEK_TRY(cek__replica_memory_make(r, need.workspace_bytes, &r->workspace));
    CEK_TRY(cek__replica_memory_make(r, need.output_bytes, &r->output));
    CEK_TRY(cek__replica_left_make(r, &need));
    for (size_t i = 0; i < r->slot_count; i++) {
        CEK_TRY(cek__replica_memory_make(r, cek__aligned(need.input_bytes) + need.target_bytes, &r->slots[i].samples));
    }
    r->room = need;
    return CEK_OK;
out:
    rooms_drop(r);
    return st;
}

static bool fits_rooms(const cek__replica *r, const cek__plan_needs *n)
{
    return n->arena_bytes <= r->room.arena_bytes && n->workspace_bytes <= r->room.workspace_bytes &&
           n->input_bytes <= r->room.input_bytes && n->target_bytes <= r->room.target_bytes &&
           cek__replica_left_fits(r, n);
}

/* ---- Plans ----------------------------------------------------------------------------------- */

static cek__plan_options plan_options(const cek__replica *r, int64_t rows, bool training)
{
    return (cek__plan_options){
        .rows = rows,
        .input_type = r->options.input_type,
        .arena_piece = r->arena_piece,
        .training = training,
        .cut_forward = r->options.cut_forward,
        .loss = r->options.loss,
        .target_columns = r->options.targets.columns,
        .softmax = r->options.softmax,
        .ahead = r->kept != KEPT_NOTHING,
        .unpacked = r->kept != KEPT_PACKED,
        .outputs = r->options.outputs,
        .output_count = r->options.output_count,
        .math = r->options.math,
        .fallback = r->options.fallback,
    };
}

static cek_status plan_make(cek__replica *r, int64_t rows, bool training, cek__plan **out)
{
    cek__plan_options o = plan_options(r, rows, training);
    return cek__plan_create(r->model, r->layout, r->device, &o, out);
}

/* Slots share everything but the samples' place. */
static cek_status plan_bind(cek__replica *r, cek__plan *plan, int64_t rows)
{
    cek_status st;
    cek_ref tally = cek__ref_of(r->tally);
    for (size_t i = 0; i < r->slot_count; i++) {
        cek__plan_binding b = {
            .workspace = cek__ref_of(r->workspace),
            .input = cek__ref_of(r->slots[i].samples),
            .target = cek__ref_behind(r->slots[i].samples, cek__target_at(r, rows)),
            .output = cek__ref_of(r->output),
            .parameters = r->parameter_refs,
            .rounded = r->rounded_refs,
            .gradients = r->gradient_refs,
            .step_block = cek__ref_of(r->blocks),
            .batch_block = cek__ref_behind(r->blocks, cek__batch_block_at()),
            .loss = tally,
            .correct = { tally.mem, tally.offset + CEK_ALIGNMENT },
            .buffers = cek__ref_of(r->buffers),
            .statistics = { tally.mem, tally.offset + CEK__TALLY_BYTES },
            .constants = cek__ref_of(r->constants),
            .fallback = r->fallback,
        };
        for (size_t p = 0; p < CEK__ARENA_PIECES && r->arena[p]; p++)
            b.arena[p] = cek__ref_of(r->arena[p]);
        CEK_TRY(cek__plan_bind(plan, i, &b));
    }
    return CEK_OK;
out:
    return st;
}

static void plans_drop(cek__replica *r)
{
    for (size_t i = 0; i < r->train_count; i++)
        cek__plan_free(r->train[i].plan);
    r->train_count = 0;
    cek__plan_free(r->evaluate.plan);
    r->evaluate = (sized_plan){ 0 };
}

/* Plans and memory for micro-batches of `rows`, or nothing. */
static cek_status try_micro_batch(cek__replica *r, int64_t rows)
{
    cek_status st;
    if (r->options.training) {
        CEK_TRY(plan_make(r, rows, true, &r->train[0].plan));
        r->train[0].rows = rows;
        r->train_count = 1;
    }
    CEK_TRY(plan_make(r, rows, false, &r->evaluate.plan));
    r->evaluate.rows = rows;
    CEK_TRY(rooms_make(r, NULL));
    if (r->options.training)
        CEK_TRY(plan_bind(r, r->train[0].plan, r->train[0].rows));
    CEK_TRY(plan_bind(r, r->evaluate.plan, r->evaluate.rows));
    r->micro_batch = rows;
    return CEK_OK;
out:
    plans_drop(r);
    rooms_drop(r);
    return st;
}

/* Bytes that activations and samples may take: the limit or what is free, less what others will still take. */
static cek_status budget(cek__replica *r, uint64_t taken, uint64_t *out)
{
    cek_status st;
    cek_memory_stats stats = { .size = sizeof stats };
    uint64_t limit = r->options.memory_limit;
    CEK_TRY(cek_device_memory_stats(r->device, &stats));
    if (limit) {
        taken += r->options.optimizer_bytes;
    } else {
        uint64_t pool = stats.limit_bytes == CEK_UNKNOWN ? CEK_UNKNOWN : stats.limit_bytes - stats.used_bytes;
        limit = stats.device_free_bytes == CEK_UNKNOWN ? CEK_UNKNOWN : stats.device_free_bytes + stats.cached_bytes;
        limit = pool < limit ? pool : limit;
        taken = r->options.optimizer_bytes; /* the parameters are not free any more */
    }
    *out = limit == CEK_UNKNOWN ? CEK_UNKNOWN : limit > taken ? limit - taken : 0;
    return CEK_OK;
out:
    return st;
}

uint64_t cek__replica_rooms_bytes(const cek__replica *r)
{
    uint64_t bytes = cek__room_of(r->workspace) + cek__room_of(r->output) + cek__room_of(r->left);

    for (size_t i = 0; i < CEK__ARENA_PIECES; i++)
        bytes += cek__room_of(r->arena[i]);
    for (size_t i = 0; i < r->slot_count; i++)
        bytes += cek__room_of(r->slots[i].samples);
    return bytes;
}

/* Less memory than that of micro-batches of `most` samples: without packed weights rather than fewer samples, and
 * without anything kept, with `first` samples again, rather than none at all. False: there is no less. */
static bool spare(cek__replica *r, int64_t first, int64_t *most)
{
    if (r->kept == KEPT_PACKED) {
        r->kept = KEPT_PLAIN;
    } else if (*most > 1) {
        *most /= 2;
    } else if (r->kept == KEPT_PLAIN) {
        r->kept = KEPT_NOTHING;
        *most = first;
    } else {
        return false;
    }
    return true;
}

cek_status cek__replica_choose_micro_batch(cek__replica *r)
{
    cek_status st;
    uint64_t fixed, per_row, have, taken = cek__replica_bytes(r);
    int64_t rows = r->options.rows > 0 ? r->options.rows : 1, most = rows, first;
    cek__plan_options o;

    r->kept = r->options.loss ? KEPT_NOTHING : KEPT_PACKED;
    o = plan_options(r, rows, r->options.training);
    if (r->options.micro_most > 0 && r->options.micro_most < most)
        most = r->options.micro_most;
    first = most;
    CEK_TRY(budget(r, taken, &have));
    CEK_TRY(cek__plan_estimate(r->model, cek__layout_computes(r->layout), &o, &fixed, &per_row));
    for (size_t i = 0; i < r->row.inputs; i++) /* the estimate has one slot */
        per_row += (r->slot_count - 1) * r->row.input[i];
    per_row += (r->slot_count - 1) * r->target_row_bytes;
    if (have != CEK_UNKNOWN && have > fixed && (have - fixed) / (per_row + 1) < (uint64_t)most)
        most = (int64_t)((have - fixed) / (per_row + 1));
    most = most > 0 ? most : 1;
    do {
        int64_t run = r->options.group == 0     ? cek__replica_even(rows, most)
                      : rows < r->options.group ? rows
                                                : r->options.group;

        st = try_micro_batch(r, run);
        if (st == CEK_OK && (have == CEK_UNKNOWN || !r->options.memory_limit || cek__replica_rooms_bytes(r) <= have))
            return CEK_OK;
        if (st == CEK_OK) {
            uint64_t needed = cek__replica_rooms_bytes(r);
            plans_drop(r);
            rooms_drop(r);
            st = cek__fail(CEK_OUT_OF_MEMORY,
                           "%s: a micro-batch of %lld samples needs %llu bytes, %llu are left of %llu",
                           cek_device_name(r->device), (long long)run, (unsigned long long)needed,
                           (unsigned long long)have, (unsigned long long)r->options.memory_limit);
        }
        if (st == CEK_OUT_OF_MEMORY && r->options.group)
            return cek__fail_prefix(st, "the model computes with %lld samples together", (long long)run);
    } while (st == CEK_OUT_OF_MEMORY && spare(r, first, &most));
out:
    return st;
}

cek_status cek__replica_plan_for(cek__replica *r, int64_t rows, sized_plan *out)
{
    cek_status st;
    sized_plan fresh = { .rows = rows };
    const sized_plan *best = &r->train[0];
    for (size_t i = 0; i < r->train_count; i++) {
        const sized_plan *p = &r->train[i];
        if (p->rows >= rows && p->rows < best->rows)
            best = p;
    }
    *out = *best;
    if (best->rows < rows)
        return cek__fail(CEK_INTERNAL, "%s: a run of %lld samples, and its plan is for %lld",
                         cek_device_name(r->device), (long long)rows, (long long)best->rows);
    if (best->rows == rows || r->train_count == CEK__REPLICA_PLANS)
        return CEK_OK;
    CEK_TRY(plan_make(r, rows, true, &fresh.plan));
    if (fits_rooms(r, cek__plan_get_needs(fresh.plan))) {
        CEK_TRY(plan_bind(r, fresh.plan, fresh.rows));
        cek__replica_left_tell(r, &fresh, "training");
        r->train[r->train_count++] = fresh;
        *out = fresh;
        return CEK_OK;
    }
    st = CEK_OK;
out:
    cek__plan_free(fresh.plan);
    return st == CEK_OUT_OF_MEMORY ? CEK_OK : st; /* padding costs time, not the step */
}

/* All but the first, of the whole micro-batch, which others are padded to. */
static void plans_forget(cek__replica *r)
{
    while (r->train_count > 1)
        cek__plan_free(r->train[--r->train_count].plan);
}

/* Other rooms, which `another` fits into as well, for the plans that are always there. */
static cek_status rooms_renew(cek__replica *r, cek__plan *another)
{
    cek_status st;
    plans_forget(r);
    rooms_drop(r);
    CEK_TRY(rooms_make(r, another));
    CEK_TRY(plan_bind(r, r->train[0].plan, r->train[0].rows));
    CEK_TRY(plan_bind(r, r->evaluate.plan, r->evaluate.rows));
out:
    return st;
}

/* What is smaller may need more: operations choose other ways for other sizes. */
static cek_status rooms_grow(cek__replica *r, cek__plan *another)
{
    uint64_t limit = r->options.memory_limit;
    cek_status st = rooms_renew(r, another);
    if (st == CEK_OK && limit && cek__replica_bytes(r) + r->options.optimizer_bytes > limit)
        st = cek__fail(CEK_OUT_OF_MEMORY, "%s: another size of samples needs more than %llu bytes",
                       cek_device_name(r->device), (unsigned long long)limit);
    if (st != CEK_OUT_OF_MEMORY)
        return st;
    st = rooms_renew(r, NULL); /* as it was */
    return st != CEK_OK ? st : CEK_OUT_OF_MEMORY;
}

cek_status cek__replica_prepare(cek__replica *r, int64_t share)
{
    cek_status st;
    sized_plan fresh = { .rows = cek__replica_piece(r, share > 0 ? share : 1) };
    for (size_t i = 0; i < r->train_count; i++)
        if (r->train[i].rows == fresh.rows)
            return CEK_OK;
    if (r->train_count == CEK__REPLICA_PLANS)
        plans_forget(r);
    CEK_TRY(plan_make(r, fresh.rows, true, &fresh.plan));
    if (!fits_rooms(r, cek__plan_get_needs(fresh.plan)))
        CEK_TRY(rooms_grow(r, fresh.plan));
    CEK_TRY(plan_bind(r, fresh.plan, fresh.rows));
    cek__replica_left_tell(r, &fresh, "training");
    r->train[r->train_count++] = fresh;
    return CEK_OK;
out:
    cek__plan_free(fresh.plan);
    return st == CEK_OUT_OF_MEMORY && r->arena[0] ? CEK_OK : st; /* padding costs time, not the step */
}

void cek__replica_memory_close(cek__replica *r)
{
    plans_drop(r);
    rooms_drop(r);
    for (size_t b = 0; b < r->layout->bucket_count; b++) {
        if (r->parameters)
            cek_memory_free(r->parameters[b]);
        if (r->rounded)
            cek_memory_free(r->rounded[b]);
        if (r->gradients)
            cek_memory_free(r->gradients[b]);
    }
    free(r->parameters);
    free(r->rounded);
    free(r->gradients);
    free(r->parameter_refs);
    free(r->rounded_refs);
    free(r->gradient_refs);
    memory_drop(&r->blocks);
    memory_drop(&r->tally);
    memory_drop(&r->buffers);
    memory_drop(&r->constants);
    free((void *)r->updates.cmds);
}
