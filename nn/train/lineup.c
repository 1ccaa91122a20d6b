/* lineup.c - see lineup.h. */
#include "nn/train/lineup.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"

/* ---- life ---- */

static cek__conductor_options conductor_options(const cek__lineup *l)
{
    return (cek__conductor_options){
        .replicas = l->replicas,
        .crew = l->of.crew,
        .shards = l->shards,
        .rules = l->of.rules,
        .depth = l->of.depth,
        .measured = l->of.measured,
        .running = l->of.running,
        .scaler = l->of.scaler,
    };
}

cek_status cek__lineup_bytes(const cek__lineup_options *options, size_t count, size_t index, uint64_t *out)
{
    cek_status st;
    cek__shards shards;
    cek__lineup l = { .of = *options, .shards = &shards };
    cek__conductor_options o = conductor_options(&l);

    *out = 0;
    CEK_TRY(cek__shards_create(options->layout->bucket_count, options->layout->bucket_elements, count, &shards));
    st = cek__conductor_bytes(&o, index, out);
    cek__shards_close(&shards);
out:
    return st;
}

uint64_t cek__lineup_planned(const cek__lineup *l, size_t index)
{
    uint64_t bytes;

    for (size_t i = 0; i < l->count; i++)
        if (l->positions[i] == index)
            return cek__conductor_room(l->conductor, i, &bytes) == CEK_OK ? bytes : 0;
    return 0;
}

static cek_status members_take(cek__lineup *l, const bool *members)
{
    cek_status st;

    CEK_TRY(cek__calloc(l->of.all, sizeof *l->members, &l->members));
    CEK_TRY(cek__calloc(l->of.all, sizeof *l->positions, &l->positions));
    CEK_TRY(cek__calloc(l->of.all, sizeof *l->replicas, &l->replicas));
    CEK_TRY(cek__calloc(l->of.all, sizeof *l->stale, &l->stale));
    CEK_TRY(cek__calloc(l->of.all, sizeof *l->shares, &l->shares));
    CEK_TRY(cek__calloc(l->of.layout->bucket_count, sizeof *l->trained, &l->trained));
    for (size_t i = 0; i < l->of.all; i++) {
        l->members[i] = members[i];
        if (!members[i])
            continue;
        l->positions[l->count] = i;
        l->replicas[l->count++] = l->of.replicas[i];
    }
out:
    return st;
}

/* The limit is for what training takes, whoever gave it. */
static cek_status limit_keep(const cek__lineup *l)
{
    cek_status st = CEK_OK;

    for (size_t i = 0; l->of.memory_limit > 0 && i < l->count; i++) {
        uint64_t bytes;
        CEK_TRY(cek__conductor_room(l->conductor, i, &bytes));
        bytes += cek__replica_bytes(l->replicas[i]);
        if (bytes > l->of.memory_limit)
            return cek__fail(CEK_OUT_OF_MEMORY, "%s: one of %zu owners of the parameters needs %llu bytes of %llu",
                             cek_device_name(cek__replica_device(l->replicas[i])), l->count, (unsigned long long)bytes,
                             (unsigned long long)l->of.memory_limit);
    }
out:
    return st;
}

cek_status cek__lineup_create(const cek__lineup_options *options, const bool *members, cek__lineup *out)
{
    cek_status st;
    cek__conductor_options o;

    *out = (cek__lineup){ .of = *options };
    CEK_TRY(members_take(out, members));
    CEK_TRY(cek__calloc(1, sizeof *out->shards, &out->shards));
    CEK_TRY(cek__shards_create(options->layout->bucket_count, options->layout->bucket_elements, out->count,
                               out->shards));
    o = conductor_options(out);
    CEK_TRY(cek__conductor_create(&o, &out->conductor));
    return CEK_OK;
out:
    cek__lineup_close(out);
    return st;
}

void cek__lineup_close(cek__lineup *l)
{
    cek__conductor_free(l->conductor);
    if (l->shards != NULL)
        cek__shards_close(l->shards);
    free(l->shards);
    free(l->members);
    free(l->positions);
    free(l->replicas);
    free(l->stale);
    free(l->shares);
    for (size_t b = 0; l->trained && b < l->of.layout->bucket_count; b++)
        free(l->trained[b]);
    free(l->trained);
    memset(l, 0, sizeof *l);
}

/* ---- change ---- */

/* The optimizer's state of a bucket, in host memory. */
typedef struct bucket_state {
    unsigned char *moments; /* CEK__MOMENTS times its elements */
    cek__optimizer_state shard;
} bucket_state;

/* On the thread of the owner's device. */
typedef struct shard_move {
    cek__lineup *lineup;
    size_t shard;
    bucket_state *state;
    bool write;
} shard_move;

static cek_status shard_move_job(void *user)
{
    const shard_move *m = user;
    cek_stream *stream;
    cek__shard_optimizer *optimizer = cek__conductor_optimizer(m->lineup->conductor, m->shard, &stream);

    return m->write ? cek__shard_optimizer_write(optimizer, stream, &m->state->shard)
                    : cek__shard_optimizer_read(optimizer, stream, &m->state->shard);
}

/* Every shard of a bucket between its optimizer and the bucket's state. */
static cek_status shards_move(cek__lineup *l, size_t bucket, bucket_state *state, bool write)
{
    cek_status st = CEK_OK;
    uint64_t unit = cek_dtype_bytes(l->of.layout->type), bytes = cek__layout_bucket_bytes(l->of.layout, bucket);

    for (size_t s = l->shards->of_bucket[bucket]; s < l->shards->of_bucket[bucket + 1]; s++) {
        shard_move move = { l, s, state, write };
        uint64_t first = l->shards->list[s].first * unit;
        for (size_t i = 0; i < CEK__MOMENTS; i++)
            state->shard.moments[i] = state->moments + i * bytes + first;
        /* All shards have been updated equally often, so any counter is everybody's. */
        CEK_TRY(cek__crew_call(l->of.crew, cek__replica_device(l->replicas[l->shards->list[s].owner]), shard_move_job,
                               &move));
    }
out:
    return st;
}

static cek_status states_move(cek__lineup *from, cek__lineup *to)
{
    cek_status st = CEK_OK;
    bucket_state *state = NULL;

    CEK_TRY(cek__calloc(1, sizeof *state, &state));
    for (size_t b = 0; b < from->of.layout->bucket_count; b++) {
        uint64_t bytes = cek__layout_bucket_bytes(from->of.layout, b);
        CEK_TRY(cek__malloc(CEK__MOMENTS * bytes, (void **)&state->moments));
        CEK_TRY(shards_move(from, b, state, false));
        CEK_TRY(shards_move(to, b, state, true));
        free(state->moments);
        state->moments = NULL;
    }
out:
    if (state != NULL)
        cek__free_after(st, state->moments);
    cek__free_after(st, state);
    return st;
}

/* On the thread of a replica's device. */
typedef struct part {
    cek__replica *replica;
    cek_ref from;
    void *host;
    uint64_t bytes;
} part;

static cek_status part_read(void *user)
{
    const part *p = user;

    return cek__replica_read(p->replica, p->from, p->host, p->bytes);
}

/* `bytes` from byte `at` on of an owner's memory, to the same place of host memory. */
static cek_status owner_read(cek__lineup *l, size_t owner, cek_ref memory, uint64_t at, uint64_t bytes, void *host)
{
    part p = { l->replicas[owner], memory, (unsigned char *)host + at, bytes };

    p.from.offset += at;
    return bytes ? cek__crew_call(l->of.crew, cek__replica_device(p.replica), part_read, &p) : CEK_OK;
}

typedef struct bucket_write {
    cek__replica *replica;
    size_t bucket;
    const void *parameters;
    const uint16_t *rounded; /* NULL: as the host rounds them */
} bucket_write;

static cek_status bucket_write_job(void *user)
{
    const bucket_write *w = user;

    return cek__replica_write_bucket(w->replica, w->bucket, w->parameters, w->rounded);
}

cek_status cek__lineup_read_bucket(cek__lineup *l, size_t bucket, void *host)
{
    cek_status st = CEK_OK;
    const uint64_t unit = cek_dtype_bytes(l->of.layout->type);

    for (size_t s = l->shards->of_bucket[bucket]; s < l->shards->of_bucket[bucket + 1]; s++) {
        const cek__shard *shard = &l->shards->list[s];
        CEK_TRY(owner_read(l, shard->owner, cek__replica_parameters(l->replicas[shard->owner], bucket),
                           shard->first * unit, cek__shard_elements(shard) * unit, host));
    }
out:
    return st;
}

/* A bucket as its owners have it, in host memory: rounded copies too, since a device may take for zero what the host
 * would round to a subnormal number. */
typedef struct bucket_values {
    void *parameters;
    uint16_t *rounded; /* NULL: it has none */
} bucket_values;

static void values_free(cek_status st, bucket_values *v)
{
    cek__free_after(st, v->parameters);
    cek__free_after(st, v->rounded);
    *v = (bucket_values){ NULL, NULL };
}

static cek_status values_read(cek__lineup *l, size_t bucket, bucket_values *out)
{
    cek_status st;
    const uint64_t unit = sizeof *out->rounded, bytes = cek__layout_rounded_bytes(l->of.layout, bucket);

    *out = (bucket_values){ NULL, NULL };
    CEK_TRY(cek__malloc(cek__layout_bucket_bytes(l->of.layout, bucket), &out->parameters));
    CEK_TRY(cek__lineup_read_bucket(l, bucket, out->parameters));
    if (bytes == 0)
        return CEK_OK;
    CEK_TRY(cek__malloc(bytes, (void **)&out->rounded));
    for (size_t s = l->shards->of_bucket[bucket]; s < l->shards->of_bucket[bucket + 1]; s++) {
        const cek__shard *shard = &l->shards->list[s];
        const cek__halves h = cek__layout_halves(l->of.layout, bucket, shard->first, shard->end);
        CEK_TRY(owner_read(l, shard->owner, cek__replica_rounded(l->replicas[shard->owner], bucket),
                           h.rounded_first * unit, h.rounded * unit, out->rounded));
    }
out:
    return st;
}

static cek_status replica_write(cek__lineup *l, cek__replica *replica, size_t bucket, const bucket_values *v)
{
    return cek__crew_call(l->of.crew, cek__replica_device(replica), bucket_write_job,
                          &(bucket_write){ replica, bucket, v->parameters, v->rounded });
}

/* Parameters change. */
static void outsiders_age(cek__lineup *l)
{
    for (size_t i = 0; i < l->of.all; i++)
        l->stale[i] = !l->members[i];
}

cek_status cek__lineup_refresh(cek__lineup *l, size_t index)
{
    cek_status st = CEK_OK;
    bucket_values values = { NULL, NULL };

    if (!l->stale[index])
        return CEK_OK;
    for (size_t b = 0; b < l->of.layout->bucket_count; b++) {
        CEK_TRY(values_read(l, b, &values));
        CEK_TRY(replica_write(l, l->of.replicas[index], b, &values));
        values_free(CEK_OK, &values);
    }
    l->stale[index] = false;
out:
    values_free(st, &values);
    return st;
}

/* Of what is sent rounded, only owners have all digits: others become owners. */
static cek_status parameters_move(cek__lineup *from, cek__lineup *to)
{
    cek_status st = CEK_OK;
    bucket_values values = { NULL, NULL };

    for (size_t b = 0; b < from->of.layout->bucket_count; b++) {
        if (cek__layout_rounded_bytes(from->of.layout, b) == 0)
            continue;
        CEK_TRY(values_read(from, b, &values));
        for (size_t i = 0; i < to->count; i++)
            CEK_TRY(replica_write(to, to->replicas[i], b, &values));
        values_free(CEK_OK, &values);
    }
out:
    values_free(st, &values);
    return st;
}

/* Parameters of the replicas and the average of its owners change places, bucket by bucket. Of the average nobody has
 * rounded copies; those of the parameters wait here, for training to go on with what it had. */
static cek_status bucket_swap(cek__lineup *l, size_t bucket, bucket_state *state, bool *begun)
{
    cek_status st;
    const uint64_t bytes = cek__layout_bucket_bytes(l->of.layout, bucket);
    unsigned char *average = state->moments + CEK__MOMENT_AVERAGE * bytes;
    uint16_t *trained = l->trained[bucket]; /* NULL where it is the average that comes in */
    bucket_values now = { NULL, NULL };

    CEK_TRY(values_read(l, bucket, &now));
    CEK_TRY(shards_move(l, bucket, state, false));
    *begun = true;
    for (size_t i = 0; i < l->count; i++)
        CEK_TRY(replica_write(l, l->replicas[i], bucket, &(bucket_values){ average, trained }));
    memcpy(average, now.parameters, bytes);
    CEK_TRY(shards_move(l, bucket, state, true));
    l->trained[bucket] = trained ? NULL : now.rounded;
    if (!trained)
        now.rounded = NULL;
    free(trained);
out:
    values_free(st, &now);
    return st;
}

cek_status cek__lineup_swap_average(cek__lineup *l, bool *begun)
{
    cek_status st;
    bucket_state *state = NULL;

    *begun = false;
    CEK_TRY(cek__calloc(1, sizeof *state, &state));
    for (size_t b = 0; b < l->of.layout->bucket_count; b++) {
        CEK_TRY(cek__malloc(CEK__MOMENTS * cek__layout_bucket_bytes(l->of.layout, b), (void **)&state->moments));
        CEK_TRY(bucket_swap(l, b, state, begun));
        free(state->moments);
        state->moments = NULL;
    }
    outsiders_age(l);
out:
    if (state != NULL)
        cek__free_after(st, state->moments);
    cek__free_after(st, state);
    return st;
}

/* What a replica was told before, for when it stays so. */
static void most_set(const cek__lineup *l, const int64_t *most, int64_t *before)
{
    for (size_t i = 0; i < l->of.all; i++) {
        if (before)
            before[i] = cek__replica_most(l->of.replicas[i]);
        cek__replica_set_most(l->of.replicas[i], most[i]);
    }
}

cek_status cek__lineup_change(cek__lineup *l, const bool *members, const int64_t *most)
{
    cek_status st;
    cek__lineup fresh = { 0 };
    int64_t *before = NULL;

    CEK_TRY(cek__alloc_array(l->of.all, sizeof *before, &before));
    most_set(l, most, before);
    CEK_TRY(cek__lineup_create(&l->of, members, &fresh));
    CEK_TRY(limit_keep(&fresh));
    for (size_t i = 0; i < l->of.all; i++)
        if (members[i])
            CEK_TRY(cek__lineup_refresh(l, i));
    memcpy(fresh.stale, l->stale, l->of.all * sizeof *fresh.stale);
    CEK_TRY(parameters_move(l, &fresh));
    CEK_TRY(states_move(l, &fresh));
    cek__lineup_close(l);
    *l = fresh;
    fresh = (cek__lineup){ 0 };
out:
    if (st != CEK_OK && before)
        most_set(l, before, NULL);
    cek__lineup_close(&fresh);
    free(before);
    return st;
}

/* ---- steps ---- */

cek_status cek__lineup_submit(cek__lineup *l, const cek__share *shares, const cek_step_block *block, bool lent)
{
    cek_status st;

    for (size_t i = 0; i < l->count; i++)
        l->shares[i] = shares[l->positions[i]];
    st = cek__conductor_submit(l->conductor, l->shares, block, lent);
    if (st == CEK_OK)
        outsiders_age(l);
    return st;
}

cek_status cek__lineup_release(cek__lineup *l, bool apply)
{
    const cek_status st = cek__conductor_release(l->conductor, apply);

    if (st == CEK_OK && apply) /* who was refreshed meanwhile has those before */
        outsiders_age(l);
    return st;
}

void cek__lineup_times(cek__lineup *l, double *seconds, double *period)
{
    cek__conductor_times(l->conductor, seconds, period);
    for (size_t i = l->of.all, k = l->count; i-- > 0;)
        seconds[i] = l->members[i] ? seconds[--k] : 0;
}

bool cek__lineup_is_inline(const cek__lineup *l)
{
    return l->count == 1 && cek__replica_is_inline(l->replicas[0]);
}
