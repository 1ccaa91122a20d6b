/* look.c - what can be seen of a trainer between two steps: parameters and gradients on the devices,
 * shares, memory, steps. */
#include <math.h>
#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "nn/formats/tensors.h"
#include "nn/train/trainer.h"

/* The model has all of a step's parameters, or none where a device fails between two buckets. */
cek_status cek_trainer_pull(cek_trainer *t)
{
    cek_status st;
    void **buckets = NULL;
    size_t count = 0;
    CEK__NOT_NULL_AS(t, trainer);
    CEK_TRY(cek__trainer_settle(t));
    CEK_TRY(cek__calloc(t->layout->bucket_count, sizeof *buckets, &buckets));
    for (; count < t->layout->bucket_count; count++) {
        CEK_TRY(cek__malloc(cek__layout_bucket_bytes(t->layout, count), &buckets[count]));
        CEK_TRY(cek__lineup_read_bucket(&t->lineup, count, buckets[count]));
    }
    for (size_t b = 0; b < count; b++)
        cek__layout_unpack(t->layout, t->model, b, buckets[b]);
    cek__running_store(t->running, t->model);
    st = CEK_OK;
out:
    for (size_t b = 0; buckets && b < t->layout->bucket_count; b++)
        cek__free_after(st, buckets[b]);
    free(buckets);
    return st;
}

size_t cek_trainer_uncollected(const cek_trainer *t)
{
    return t ? (size_t)(t->submitted - t->steps) : 0;
}

cek_status cek_trainer_skipped(cek_trainer *t, uint64_t *count)
{
    cek_status st;
    CEK__NOT_NULL_AS(t, trainer);
    CEK__NOT_NULL(count);
    *count = 0;
    CEK_TRY(cek__trainer_settle(t));
    *count = cek__scaler_skipped(&t->scaler);
out:
    return st;
}

size_t cek_trainer_device_count(const cek_trainer *t)
{
    return t ? t->team.count : 0;
}

cek_device *cek_trainer_device(const cek_trainer *t, size_t index)
{
    return t && index < t->team.count ? cek__replica_device(t->team.replicas[index]) : NULL;
}

int64_t cek_trainer_share(const cek_trainer *t, size_t index)
{
    return t && index < t->team.count ? t->shares[index] : 0;
}

uint64_t cek_trainer_planned_bytes(const cek_trainer *t, size_t index)
{
    if (!t || index >= t->team.count)
        return 0;
    return cek__replica_bytes(t->team.replicas[index]) + cek__lineup_planned(&t->lineup, index);
}

double cek_trainer_idle(const cek_trainer *t, size_t index)
{
    return t && t->balanced && index < t->team.count ? cek__balance_idle(&t->balance, index) : (double)NAN;
}

int64_t cek_trainer_micro_batch(const cek_trainer *t, size_t index)
{
    return t && index < t->team.count ? cek__replica_micro_batch(t->team.replicas[index]) : 0;
}

/* A piece of the copy that the device computes with, as floats. */
static cek_status rounded_read(cek_trainer *t, cek__replica *replica, const cek__placement *p, float *dst)
{
    cek_status st;
    const cek__halves h = cek__layout_halves(t->layout, p->bucket, p->first, p->first + p->count);
    cek__st_tensor values = { .name = "a copy",
                              .type = t->layout->low == CEK_F16 ? CEK__ST_F16 : CEK__ST_BF16,
                              .rank = 1,
                              .shape = { (int64_t)p->count },
                              .count = p->count };
    cek_ref ref = cek__replica_rounded(replica, p->bucket);
    uint16_t *rounded = NULL;
    ref.offset += h.rounded_first * sizeof *rounded;
    CEK_TRY(cek__alloc_array(p->count, sizeof *rounded, &rounded));
    CEK_TRY(cek__team_read(&t->team, replica, ref, rounded, p->count * sizeof *rounded));
    values.data = rounded;
    st = cek__st_to_f32(&values, dst);
out:
    cek__free_after(st, rounded);
    return st;
}

cek_status cek_trainer_read_replica(cek_trainer *t, size_t index, size_t parameter, void *dst, uint64_t bytes)
{
    cek_status st;
    uint64_t unit, count;
    CEK__NOT_NULL_AS(t, trainer);
    CEK__NOT_NULL(dst);
    unit = cek_dtype_bytes(t->layout->type);
    CEK_TRY(cek__trainer_settle(t));
    if (index >= t->team.count || parameter >= t->layout->parameter_count)
        CEK_FAIL(CEK_INVALID, "replica %zu of %zu, parameter %zu of %zu", index, t->team.count, parameter,
                 t->layout->parameter_count);
    count = cek__layout_elements(t->layout, parameter);
    if (bytes != count * unit)
        CEK_FAIL(CEK_INVALID, "parameter %zu has %llu bytes, not %llu", parameter, (unsigned long long)(count * unit),
                 (unsigned long long)bytes);
    CEK_TRY(cek__lineup_refresh(&t->lineup, index));
    for (size_t i = t->layout->piece_of[parameter]; i < t->layout->piece_of[parameter + 1]; i++) {
        const cek__placement *p = &t->layout->placement[i];
        cek_ref ref = cek__replica_parameters(t->team.replicas[index], p->bucket);
        if (t->layout->rounded[parameter]) {
            CEK_TRY(rounded_read(t, t->team.replicas[index], p, (float *)dst + p->at));
            continue;
        }
        ref.offset += p->first * unit;
        CEK_TRY(cek__team_read(&t->team, t->team.replicas[index], ref, (unsigned char *)dst + p->at * unit,
                               p->count * unit));
    }
    return CEK_OK;
out:
    return st;
}

/* Between host memory and each shard's owner, where the sum lies. */
static cek_status gradient_move(cek_trainer *t, const cek__placement *p, unsigned char *host, bool write)
{
    cek_status st = CEK_OK;
    uint64_t unit = cek_dtype_bytes(t->layout->type), end = p->first + p->count;
    for (size_t i = t->lineup.shards->of_bucket[p->bucket]; i < t->lineup.shards->of_bucket[p->bucket + 1]; i++) {
        const cek__shard *s = &t->lineup.shards->list[i];
        cek__replica *owner = t->lineup.replicas[s->owner];
        uint64_t from = s->first > p->first ? s->first : p->first, to = s->end < end ? s->end : end;
        cek_ref ref = cek__replica_gradients(owner, p->bucket);
        ref.offset += from * unit;
        if (from < to && write)
            CEK_TRY(cek__team_write(&t->team, owner, ref, host + (from - p->first) * unit, (to - from) * unit));
        else if (from < to)
            CEK_TRY(cek__team_read(&t->team, owner, ref, host + (from - p->first) * unit, (to - from) * unit));
    }
out:
    return st;
}

/* All pieces of a parameter, whose elements are `count`. */
static cek_status gradient_check(const cek_trainer *t, size_t parameter, int64_t count)
{
    uint64_t elements;
    if (parameter >= t->layout->parameter_count)
        return cek__fail(CEK_INVALID, "parameter %zu of %zu", parameter, t->layout->parameter_count);
    elements = cek__layout_elements(t->layout, parameter);
    if ((uint64_t)count != elements)
        return cek__fail(CEK_INVALID, "parameter %zu has %llu elements, not %lld", parameter,
                         (unsigned long long)elements, (long long)count);
    return CEK_OK;
}

static cek_status pieces_move(cek_trainer *t, size_t parameter, unsigned char *raw, bool write)
{
    cek_status st = CEK_OK;
    for (size_t i = t->layout->piece_of[parameter]; i < t->layout->piece_of[parameter + 1]; i++)
        CEK_TRY(gradient_move(t, &t->layout->placement[i],
                              raw + t->layout->placement[i].at * cek_dtype_bytes(t->layout->type), write));
out:
    return st;
}

cek_status cek_trainer_read_gradient(cek_trainer *t, size_t parameter, double *dst, int64_t count)
{
    cek_status st;
    unsigned char *raw = NULL;
    CEK__NOT_NULL_AS(t, trainer);
    CEK__NOT_NULL(dst);
    CEK_TRY(cek__trainer_settle(t));
    CEK_TRY(gradient_check(t, parameter, count));
    CEK_TRY(cek__alloc_array((size_t)count, cek_dtype_bytes(t->layout->type), &raw));
    CEK_TRY(pieces_move(t, parameter, raw, false));
    cek__layout_unpack_one(t->layout, parameter, raw, dst);
    for (uint64_t i = 0; t->rules.scaled && t->submitted > 0 && i < (uint64_t)count; i++)
        dst[i] /= cek__scaler_given(&t->scaler, t->submitted);
    free(raw);
    return CEK_OK;
out:
    cek__free_after(st, raw);
    return st;
}

cek_status cek_trainer_write_gradient(cek_trainer *t, size_t parameter, const double *src, int64_t count)
{
    cek_status st;
    unsigned char *raw = NULL;
    double *scaled = NULL;
    CEK__NOT_NULL_AS(t, trainer);
    CEK__NOT_NULL(src);
    CEK_TRY(cek__trainer_usable(t));
    if (!t->held)
        CEK_FAIL(CEK_INVALID, "cek_trainer_write_gradient: no gradients wait, as they do behind cek_trainer_backward");
    CEK_TRY(gradient_check(t, parameter, count));
    CEK_TRY(cek__alloc_array((size_t)count, cek_dtype_bytes(t->layout->type), &raw));
    if (t->rules.scaled) {
        CEK_TRY(cek__alloc_array((size_t)count, sizeof *scaled, &scaled));
        for (int64_t i = 0; i < count; i++)
            scaled[i] = src[i] * cek__scaler_given(&t->scaler, t->submitted);
    }
    cek__layout_pack_one(t->layout, parameter, scaled ? scaled : src, raw);
    st = pieces_move(t, parameter, raw, true);
out:
    free(scaled);
    cek__free_after(st, raw);
    return st;
}
