/* replica.c - see replica.h. Micro-batches alternate between two input slots, so that on devices that work asynchronously the
 * next upload runs beside the computation; devices that work inline have one. */
#include "nn/train/replica.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"

enum {
    SLOTS = 2,
    TALLY_BYTES = 2 * CEK_ALIGNMENT, /* loss, right answers */
    PADDING_ROW = 0                  /* rows beyond the share repeat this one */
};
/* Longer than any step; past it the device hangs. */
static const uint64_t DEADLINE_NS = 600ull * 1000000000ull;

typedef struct sized_plan {
    int64_t rows;
    cek__plan *plan;
} sized_plan;

/* Where one micro-batch's samples lie on the device, and who may touch them next. */
typedef struct slot {
    cek_memory *input, *target;
    cek_marker *uploaded, *computed;
    bool used;
} slot;

struct cek__replica {
    const cek__layout *layout;
    const cek_model *model;
    cek_device *device;
    const cek_plugin *plugin;
    cek__replica_options options;
    int64_t micro_batch;
    uint64_t input_row_bytes, target_row_bytes, outputs;
    bool is_inline;
    cek_stream *compute, *upload; /* the same where the device works inline */
    cek_memory **parameters, **gradients; /* [bucket_count] */
    cek_ref *parameter_refs, *gradient_refs;
    cek_memory *step_block, *batch_block, *tally, *output;
    cek_memory *arena, *workspace;
    cek__plan_needs room; /* what the memory above was made for */
    sized_plan train[CEK__REPLICA_PLANS];
    size_t train_count;
    sized_plan evaluate; /* also prediction */
    slot slots[SLOTS];
    size_t slot_count, next_slot;
    unsigned char *staging; /* one micro-batch of padded or converted rows */
    uint64_t staging_bytes;
};

static bool sum_is_f64(const cek__replica *r)
{
    return r->layout->type == CEK_F64;
}

static int64_t outputs_per_sample(const cek_model *model)
{
    int64_t shape[CEK_RANK_MAX], n = 1;
    int rank = cek_model_output_shape(model, shape);
    for (int i = 0; i < rank; i++)
        n *= shape[i];
    return n;
}

static int64_t inputs_per_sample(const cek_model *model)
{
    int64_t shape[CEK_RANK_MAX], n = 1;
    int rank = cek_model_input_shape(model, shape);
    for (int i = 0; i < rank; i++)
        n *= shape[i];
    return n;
}

/* ---- Memory ------------------------------------------------------------------------------------------------------- */

static cek_status memory_make(cek__replica *r, uint64_t bytes, cek_memory **out)
{
    return bytes ? cek_memory_alloc(r->device, bytes, CEK_MEMORY_ALONE, out) : CEK_OK;
}

static cek_ref ref_of(const cek_memory *memory)
{
    return memory ? cek_memory_ref(memory) : (cek_ref){NULL, 0};
}

static void memory_drop(cek_memory **memory)
{
    cek_memory_free(*memory);
    *memory = NULL;
}

static cek_status buckets_make(cek__replica *r)
{
    cek_status st;
    size_t n = r->layout->bucket_count;
    CEK_TRY(cek__calloc(n, sizeof *r->parameters, &r->parameters));
    CEK_TRY(cek__calloc(n, sizeof *r->gradients, &r->gradients));
    CEK_TRY(cek__calloc(n, sizeof *r->parameter_refs, &r->parameter_refs));
    CEK_TRY(cek__calloc(n, sizeof *r->gradient_refs, &r->gradient_refs));
    for (size_t b = 0; b < n; b++) {
        uint64_t bytes = cek__layout_bucket_bytes(r->layout, b);
        CEK_TRY(memory_make(r, bytes, &r->parameters[b]));
        r->parameter_refs[b] = ref_of(r->parameters[b]);
        if (!r->options.training)
            continue;
        CEK_TRY(memory_make(r, bytes, &r->gradients[b]));
        r->gradient_refs[b] = ref_of(r->gradients[b]);
        CEK_TRY(r->plugin->fill(cek_stream_raw(r->compute), r->gradient_refs[b], 0, 4, bytes));
    }
    return CEK_OK;
out:
    return st;
}

static void rooms_drop(cek__replica *r)
{
    for (size_t i = 0; i < SLOTS; i++) {
        memory_drop(&r->slots[i].input);
        memory_drop(&r->slots[i].target);
    }
    memory_drop(&r->arena);
    memory_drop(&r->workspace);
    memory_drop(&r->output);
    memset(&r->room, 0, sizeof r->room);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Memory that every plan made so far fits into. */
static cek_status rooms_make(cek__replica *r)
{
    cek_status st;
    const cek__plan *plans[] = {r->train_count ? r->train[0].plan : NULL, r->evaluate.plan};
    cek__plan_needs need = {0};
    for (size_t i = 0; i < 2; i++) {
        const cek__plan_needs *n;
        if (!plans[i])
            continue;
        n = cek__plan_get_needs(plans[i]);
        need.arena_bytes = larger(need.arena_bytes, n->arena_bytes);
        need.workspace_bytes = larger(need.workspace_bytes, n->workspace_bytes);
        need.input_bytes = larger(need.input_bytes, n->input_bytes);
        need.target_bytes = larger(need.target_bytes, n->target_bytes);
        need.output_bytes = larger(need.output_bytes, n->output_bytes);
    }
    if (r->options.loss)
        need.output_bytes = 0;
    CEK_TRY(memory_make(r, need.arena_bytes, &r->arena));
    CEK_TRY(memory_make(r, need.workspace_bytes, &r->workspace));
    CEK_TRY(memory_make(r, need.output_bytes, &r->output));
    for (size_t i = 0; i < r->slot_count; i++) {
        CEK_TRY(memory_make(r, need.input_bytes, &r->slots[i].input));
        CEK_TRY(memory_make(r, need.target_bytes, &r->slots[i].target));
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
           n->input_bytes <= r->room.input_bytes && n->target_bytes <= r->room.target_bytes;
}

/* ---- Plans -------------------------------------------------------------------------------------------------------- */

static cek__plan_options plan_options(const cek__replica *r, int64_t rows, bool training)
{
    return (cek__plan_options){
        .rows = rows,
        .input_type = r->options.input_type,
        .training = training,
        .loss = r->options.loss,
        .target_columns = r->options.target_columns,
        .softmax = r->options.softmax,
    };
}

static cek_status plan_make(cek__replica *r, int64_t rows, bool training, cek__plan **out)
{
    cek__plan_options o = plan_options(r, rows, training);
    return cek__plan_create(r->model, r->layout, r->device, &o, out);
}

/* Slots share everything but the samples' place, so a plan is bound again before each run. */
static cek_status plan_bind(cek__replica *r, cek__plan *plan, const slot *s)
{
    cek_ref tally = ref_of(r->tally);
    cek__plan_binding b = {
        .arena = ref_of(r->arena),
        .workspace = ref_of(r->workspace),
        .input = ref_of(s->input),
        .target = ref_of(s->target),
        .output = ref_of(r->output),
        .parameters = r->parameter_refs,
        .gradients = r->gradient_refs,
        .step_block = ref_of(r->step_block),
        .batch_block = ref_of(r->batch_block),
        .loss = tally,
        .correct = {tally.mem, tally.offset + CEK_ALIGNMENT},
    };
    return cek__plan_bind(plan, &b);
}

static void plans_drop(cek__replica *r)
{
    for (size_t i = 0; i < r->train_count; i++)
        cek__plan_free(r->train[i].plan);
    r->train_count = 0;
    cek__plan_free(r->evaluate.plan);
    r->evaluate = (sized_plan){0};
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
    CEK_TRY(rooms_make(r));
    r->micro_batch = rows;
    return CEK_OK;
out:
    plans_drop(r);
    return st;
}

/* Bytes that activations and samples may take: the limit or what is free, less what others will still take. */
static cek_status budget(cek__replica *r, uint64_t taken, uint64_t *out)
{
    cek_status st;
    cek_memory_stats stats = {.size = sizeof stats};
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

/* Equal micro-batches: 100 samples of which 64 fit are two of 50. */
static int64_t even(int64_t rows, int64_t most)
{
    int64_t parts = (rows + most - 1) / most;
    return (rows + parts - 1) / parts;
}

static uint64_t rooms_bytes(const cek__replica *r)
{
    return r->room.arena_bytes + r->room.workspace_bytes + r->room.output_bytes +
           r->slot_count * (r->room.input_bytes + r->room.target_bytes);
}

static cek_status choose_micro_batch(cek__replica *r)
{
    cek_status st;
    uint64_t fixed, per_row, have, taken = cek__replica_bytes(r);
    int64_t rows = r->options.rows > 0 ? r->options.rows : 1, most = rows;
    cek__plan_options o = plan_options(r, rows, r->options.training);
    CEK_TRY(budget(r, taken, &have));
    CEK_TRY(cek__plan_estimate(r->model, r->layout->type, &o, &fixed, &per_row));
    per_row += (r->slot_count - 1) * (r->input_row_bytes + r->target_row_bytes); /* the estimate has one slot */
    if (have != CEK_UNKNOWN && have > fixed && (have - fixed) / (per_row + 1) < (uint64_t)most)
        most = (int64_t)((have - fixed) / (per_row + 1));
    for (most = most > 0 ? most : 1;; most /= 2) {
        st = try_micro_batch(r, even(rows, most));
        if (st == CEK_OK && (have == CEK_UNKNOWN || !r->options.memory_limit || rooms_bytes(r) <= have))
            return CEK_OK;
        if (st == CEK_OK) {
            uint64_t needed = rooms_bytes(r);
            rooms_drop(r);
            plans_drop(r);
            st = cek__fail(CEK_OUT_OF_MEMORY, "%s: a micro-batch of %lld samples needs %llu bytes, %llu are left of %llu",
                           cek_device_name(r->device), (long long)even(rows, most), (unsigned long long)needed,
                           (unsigned long long)have, (unsigned long long)r->options.memory_limit);
        }
        if (st != CEK_OUT_OF_MEMORY || most == 1)
            return st;
    }
out:
    return st;
}

/* The plan for `rows` samples: the one of that size, a new one while there is room for one, else the next larger. */
static cek_status plan_for(cek__replica *r, int64_t rows, sized_plan *out)
{
    cek_status st;
    sized_plan fresh = {.rows = rows};
    const sized_plan *best = &r->train[0];
    for (size_t i = 0; i < r->train_count; i++) {
        const sized_plan *p = &r->train[i];
        if (p->rows >= rows && p->rows < best->rows)
            best = p;
    }
    *out = *best;
    if (best->rows == rows || r->train_count == CEK__REPLICA_PLANS)
        return CEK_OK;
    CEK_TRY(plan_make(r, rows, true, &fresh.plan));
    if (!fits_rooms(r, cek__plan_get_needs(fresh.plan))) {
        cek__plan_free(fresh.plan);
        return CEK_OK;
    }
    r->train[r->train_count++] = fresh;
    *out = fresh;
    return CEK_OK;
out:
    return st;
}

/* ---- Life --------------------------------------------------------------------------------------------------------- */

static cek_status streams_make(cek__replica *r)
{
    cek_status st;
    cek_device_info info = {.size = sizeof info};
    CEK_TRY(cek_device_describe(r->device, &info));
    r->is_inline = info.flags & CEK_DEVICE_INLINE;
    r->slot_count = r->is_inline ? 1 : SLOTS;
    CEK_TRY(cek_stream_create(r->device, &r->compute));
    if (r->is_inline) {
        r->upload = r->compute;
        return CEK_OK;
    }
    CEK_TRY(cek_stream_create(r->device, &r->upload));
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
    r->outputs = (uint64_t)outputs_per_sample(r->model);
    r->input_row_bytes = (uint64_t)inputs_per_sample(r->model) * cek_dtype_bytes(r->options.input_type);
    if (r->options.loss == CEK_LOSS_CROSS_ENTROPY)
        r->target_row_bytes = sizeof(int32_t);
    else if (r->options.loss == CEK_LOSS_MSE)
        r->target_row_bytes = r->options.target_columns * cek_dtype_bytes(r->layout->type);
}

cek_status cek__replica_create(const cek_model *model, const cek__layout *layout, cek_device *device,
                               const cek__replica_options *options, cek__replica **out)
{
    cek_status st;
    cek_dev *dev;
    cek__replica *r = NULL;
    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *r, &r));
    r->model = model;
    r->layout = layout;
    r->device = device;
    r->options = *options;
    rows_measure(r);
    CEK_TRY(cek_device_raw(device, &r->plugin, &dev));
    CEK_TRY(streams_make(r));
    CEK_TRY(buckets_make(r));
    CEK_TRY(memory_make(r, sizeof(cek_step_block), &r->step_block));
    CEK_TRY(memory_make(r, sizeof(cek_batch_block), &r->batch_block));
    CEK_TRY(memory_make(r, TALLY_BYTES, &r->tally));
    CEK_TRY(r->plugin->fill(cek_stream_raw(r->compute), ref_of(r->tally), 0, 4, TALLY_BYTES));
    CEK_TRY(choose_micro_batch(r));
    r->staging_bytes = (uint64_t)r->micro_batch * larger(r->input_row_bytes, larger(r->target_row_bytes,
                                                         r->outputs * sizeof(double)));
    CEK_TRY(cek_pinned_alloc(device, r->staging_bytes * r->slot_count * 2, (void **)&r->staging));
    CEK_TRY(cek__replica_load(r, model));
    *out = r;
    return CEK_OK;
out:
    cek__replica_free(r);
    return st;
}

void cek__replica_free(cek__replica *r)
{
    if (!r)
        return;
    if (r->compute)
        (void)!cek_stream_sync(r->compute, DEADLINE_NS);
    if (r->upload && r->upload != r->compute) {
        (void)!cek_stream_sync(r->upload, DEADLINE_NS);
        cek_stream_free(r->upload);
    }
    plans_drop(r);
    rooms_drop(r);
    for (size_t i = 0; i < SLOTS; i++) {
        cek_marker_free(r->slots[i].uploaded);
        cek_marker_free(r->slots[i].computed);
    }
    for (size_t b = 0; b < r->layout->bucket_count; b++) {
        if (r->parameters)
            cek_memory_free(r->parameters[b]);
        if (r->gradients)
            cek_memory_free(r->gradients[b]);
    }
    free(r->parameters);
    free(r->gradients);
    free(r->parameter_refs);
    free(r->gradient_refs);
    memory_drop(&r->step_block);
    memory_drop(&r->batch_block);
    memory_drop(&r->tally);
    cek_pinned_free(r->device, r->staging);
    cek_stream_free(r->compute);
    free(r);
}

cek_device *cek__replica_device(const cek__replica *r)
{
    return r->device;
}

cek_stream *cek__replica_stream(const cek__replica *r)
{
    return r->compute;
}

cek_ref cek__replica_parameters(const cek__replica *r, size_t bucket)
{
    return r->parameter_refs[bucket];
}

cek_ref cek__replica_gradients(const cek__replica *r, size_t bucket)
{
    return r->gradient_refs[bucket];
}

cek_ref cek__replica_step_block(const cek__replica *r)
{
    return ref_of(r->step_block);
}

int64_t cek__replica_micro_batch(const cek__replica *r)
{
    return r->micro_batch;
}

uint64_t cek__replica_bytes(const cek__replica *r)
{
    uint64_t bytes = rooms_bytes(r) + sizeof(cek_step_block) + sizeof(cek_batch_block) + TALLY_BYTES;
    for (size_t b = 0; b < r->layout->bucket_count; b++)
        bytes += cek__layout_bucket_bytes(r->layout, b) * (r->options.training ? 2 : 1);
    return bytes;
}

/* ---- Copies --------------------------------------------------------------------------------------------------------- */

cek_status cek__replica_load(cek__replica *r, const cek_model *model)
{
    cek_status st;
    void *host = NULL;
    for (size_t b = 0; b < r->layout->bucket_count; b++) {
        uint64_t bytes = cek__layout_bucket_bytes(r->layout, b);
        CEK_TRY(cek__malloc(bytes, &host));
        cek__layout_pack(r->layout, model, b, host);
        CEK_TRY(cek_stream_upload(r->compute, r->parameter_refs[b], host, bytes));
        CEK_TRY(cek_stream_sync(r->compute, DEADLINE_NS));
        free(host);
        host = NULL;
    }
    st = CEK_OK;
out:
    free(host);
    return st;
}

cek_status cek__replica_read(cek__replica *r, cek_ref src, void *dst, uint64_t bytes)
{
    cek_status st;
    CEK_TRY(cek_stream_download(r->compute, dst, src, bytes));
    CEK_TRY(cek_stream_sync(r->compute, DEADLINE_NS));
    return CEK_OK;
out:
    return st;
}

/* ---- Running a share -------------------------------------------------------------------------------------------------- */

cek_status cek__replica_set_step(cek__replica *r, const cek_step_block *block)
{
    return r->plugin->update(cek_stream_raw(r->compute), ref_of(r->step_block), block, sizeof *block);
}

/* Rows of `row_bytes` in the form and number that the plan wants: as they are where possible, else in `staging`. */
static const void *rows_padded(const void *rows, uint64_t row_bytes, int64_t count, int64_t wanted, unsigned char *staging)
{
    if (count == wanted)
        return rows;
    memcpy(staging, rows, (size_t)count * row_bytes);
    for (int64_t i = count; i < wanted; i++)
        memcpy(staging + (size_t)i * row_bytes, (const unsigned char *)rows + PADDING_ROW * row_bytes, row_bytes);
    return staging;
}

static const void *targets_padded(const cek__replica *r, const void *targets, int64_t count, int64_t wanted,
                                  unsigned char *staging)
{
    const float *values = targets;
    double *wide = (double *)(void *)staging;
    size_t columns = r->options.target_columns;
    if (r->options.loss != CEK_LOSS_MSE || !sum_is_f64(r))
        return rows_padded(targets, r->target_row_bytes, count, wanted, staging);
    for (size_t i = 0; i < (size_t)wanted * columns; i++)
        wide[i] = (double)values[i < (size_t)count * columns ? i : i % columns];
    return wide;
}

/* Uploads rows [first, first + count) of the share for a plan of `wanted` rows into the next slot. */
static cek_status upload(cek__replica *r, const cek__share *share, int64_t first, int64_t count, int64_t wanted, slot **out)
{
    cek_status st;
    size_t index = r->next_slot;
    slot *s = &r->slots[index];
    unsigned char *staging = r->staging + index * 2 * r->staging_bytes;
    const void *rows = (const unsigned char *)share->inputs + (uint64_t)first * r->input_row_bytes;
    uint64_t target_bytes = r->options.loss == CEK_LOSS_MSE ? r->options.target_columns * sizeof(float) : sizeof(int32_t);
    r->next_slot = (index + 1) % r->slot_count;
    if (!r->is_inline && s->used) {
        CEK_TRY(cek_stream_wait(r->upload, s->computed));
        if (wanted != count || sum_is_f64(r)) /* the staging rows of the last use have been read */
            CEK_TRY(cek_marker_sync(s->uploaded, DEADLINE_NS));
    }
    rows = rows_padded(rows, r->input_row_bytes, count, wanted, staging);
    CEK_TRY(cek_stream_upload(r->upload, ref_of(s->input), rows, (uint64_t)wanted * r->input_row_bytes));
    if (r->options.loss) {
        const void *targets = (const unsigned char *)share->targets + (uint64_t)first * target_bytes;
        targets = targets_padded(r, targets, count, wanted, staging + r->staging_bytes);
        CEK_TRY(cek_stream_upload(r->upload, ref_of(s->target), targets, (uint64_t)wanted * r->target_row_bytes));
    }
    if (!r->is_inline) {
        CEK_TRY(cek_marker_record(s->uploaded, r->upload));
        CEK_TRY(cek_stream_wait(r->compute, s->uploaded));
    }
    s->used = true;
    *out = s;
    return CEK_OK;
out:
    return st;
}

/* One micro-batch up to its loss. */
static cek_status forward(cek__replica *r, const cek__share *share, int64_t first, int64_t count, const sized_plan *p, slot **s)
{
    cek_status st;
    cek_batch_block block = {.sample_base = share->sample_base + (uint64_t)first, .rows_valid = (uint32_t)count};
    CEK_TRY(upload(r, share, first, count, p->rows, s));
    CEK_TRY(plan_bind(r, p->plan, *s));
    CEK_TRY(r->plugin->update(cek_stream_raw(r->compute), ref_of(r->batch_block), &block, sizeof block));
    CEK_TRY(cek__plan_forward(p->plan, cek_stream_raw(r->compute)));
    return CEK_OK;
out:
    return st;
}

static cek_status slot_done(cek__replica *r, slot *s)
{
    return r->is_inline ? CEK_OK : cek_marker_record(s->computed, r->compute);
}

cek_status cek__replica_train(cek__replica *r, const cek__share *share, cek__segment_fn segment, void *user)
{
    cek_status st;
    int64_t step = share->rows > 0 ? even(share->rows, r->micro_batch) : 1;
    for (int64_t first = 0; first < share->rows; first += step) {
        int64_t count = share->rows - first < step ? share->rows - first : step;
        bool last = first + count == share->rows;
        sized_plan p;
        slot *s;
        CEK_TRY(plan_for(r, count, &p));
        CEK_TRY(forward(r, share, first, count, &p, &s));
        for (size_t i = 0; i < cek__plan_segment_count(p.plan); i++) {
            CEK_TRY(cek__plan_backward(p.plan, cek_stream_raw(r->compute), i, first > 0));
            if (last && segment)
                CEK_TRY(segment(user, cek__plan_segment_buckets(p.plan, i)));
        }
        CEK_TRY(slot_done(r, s));
    }
    return CEK_OK;
out:
    return cek__fail_prefix(st, "%s", cek_device_name(r->device));
}

cek_status cek__replica_evaluate(cek__replica *r, const cek__share *share)
{
    cek_status st;
    for (int64_t first = 0; first < share->rows; first += r->evaluate.rows) {
        int64_t left = share->rows - first;
        slot *s;
        CEK_TRY(forward(r, share, first, left < r->evaluate.rows ? left : r->evaluate.rows, &r->evaluate, &s));
        CEK_TRY(slot_done(r, s));
    }
    return CEK_OK;
out:
    return cek__fail_prefix(st, "%s", cek_device_name(r->device));
}

cek_status cek__replica_collect(cek__replica *r, double *loss, int64_t *correct)
{
    cek_status st;
    unsigned char tally[TALLY_BYTES];
    int32_t right;
    *loss = 0;
    *correct = 0;
    CEK_TRY(cek__replica_read(r, ref_of(r->tally), tally, sizeof tally));
    CEK_TRY(r->plugin->fill(cek_stream_raw(r->compute), ref_of(r->tally), 0, 4, TALLY_BYTES));
    if (sum_is_f64(r)) {
        memcpy(loss, tally, sizeof *loss);
    } else {
        float sum;
        memcpy(&sum, tally, sizeof sum);
        *loss = (double)sum;
    }
    memcpy(&right, tally + CEK_ALIGNMENT, sizeof right);
    *correct = right;
    return CEK_OK;
out:
    return cek__fail_prefix(st, "%s", cek_device_name(r->device));
}

cek_status cek__replica_predict(cek__replica *r, const cek__share *share, float *outputs)
{
    cek_status st;
    uint64_t row_bytes = r->outputs * cek_dtype_bytes(r->layout->type);
    for (int64_t first = 0; first < share->rows; first += r->evaluate.rows) {
        int64_t left = share->rows - first, count = left < r->evaluate.rows ? left : r->evaluate.rows;
        float *dst = outputs + (uint64_t)first * r->outputs;
        slot *s;
        CEK_TRY(forward(r, share, first, count, &r->evaluate, &s));
        if (sum_is_f64(r)) {
            double *wide = (double *)(void *)r->staging;
            CEK_TRY(cek__replica_read(r, ref_of(r->output), wide, (uint64_t)count * row_bytes));
            for (uint64_t i = 0; i < (uint64_t)count * r->outputs; i++)
                dst[i] = (float)wide[i];
        } else {
            CEK_TRY(cek__replica_read(r, ref_of(r->output), dst, (uint64_t)count * row_bytes));
        }
    }
    return CEK_OK;
out:
    return cek__fail_prefix(st, "%s", cek_device_name(r->device));
}
