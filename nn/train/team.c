/* team.c - see team.h. */
#include "nn/train/team.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/status.h"
#include "nn/train/holds.h"
#include "nn/train/shares.h"

cek_status cek__team_check(const cek_model *model, cek_device *const *devices, size_t count,
                           const cek__team_options *options)
{
    cek_status st;
    uint32_t profile = options->replica.training ? CEK_PROFILE_TRAINING : CEK_PROFILE_INFERENCE;
    if (count == 0)
        return cek__fail(CEK_INVALID, "no device given");
    if (devices == NULL)
        return cek__fail(CEK_INVALID, "devices is NULL");
    for (size_t i = 0; i < count; i++) {
        if (devices[i] == NULL)
            return cek__fail(CEK_INVALID, "device %zu is NULL", i);
        for (size_t j = 0; j < i; j++)
            if (devices[i] == devices[j])
                return cek__fail(CEK_INVALID, "device %s is given twice", cek_device_name(devices[i]));
        CEK_TRY(cek_device_require(devices[i], profile));
        CEK_TRY(cek__device_holds(devices[i], model, options->layout, CEK_OUT_OF_MEMORY));
    }
    return CEK_OK;
out:
    return st;
}

static cek_status math_check(uint32_t math)
{
    if (math > CEK_MATH_FAST)
        return cek__fail(CEK_INVALID, "math %u is none of CEK_MATH_F32, _STRICT, _TF32 and _FAST", math);
    return CEK_OK;
}

/* What is left to it is computed on the thread of the device that leaves it, which waits for nobody. */
static cek_status fallback_check(const cek__team_options *options)
{
    cek_status st;
    cek_device *fallback = options->replica.fallback;
    cek_device_info info = { .size = sizeof info };
    if (!fallback)
        return CEK_OK;
    CEK_TRY(cek_device_require(fallback, options->replica.training ? CEK_PROFILE_TRAINING : CEK_PROFILE_INFERENCE));
    CEK_TRY(cek_device_describe(fallback, &info));
    if (!(info.flags & CEK_DEVICE_INLINE))
        CEK_FAIL(CEK_UNSUPPORTED,
                 "fallback %s works beside the host: operations are left to inline devices such as cpu:0",
                 cek_device_name(fallback));
out:
    return st;
}

static cek_status weights_copy(cek__team *team, const double *weights)
{
    cek_status st;
    double sum = 0;
    if (!weights)
        return CEK_OK;
    CEK_TRY(cek__alloc_array(team->count, sizeof *team->weights, &team->weights));
    for (size_t i = 0; i < team->count; i++) {
        if (!(weights[i] >= 0) || !isfinite(weights[i]))
            CEK_FAIL(CEK_INVALID, "share %zu is %g: shares are numbers >= 0", i, weights[i]);
        sum += team->weights[i] = weights[i];
    }
    if (!(sum > 0) || !isfinite(sum))
        CEK_FAIL(CEK_INVALID, "shares add up to %g: at least one must be above 0", sum);
    return CEK_OK;
out:
    return st;
}

/* A device that has no samples at first may get some later. */
static int64_t rows_most(const cek__team_options *options, int64_t rows)
{
    int64_t most = options->room > 1 ? options->room * (rows > 0 ? rows : 1) : rows;
    return most < options->batch ? most : options->batch;
}

/* The most samples that device `index` has of any batch: whole groups, where they are dealt out so. */
static int64_t rows_in_groups(const cek__team *team, int64_t batch, size_t index)
{
    int64_t groups = (batch + team->group - 1) / team->group,
            most = (groups + (int64_t)team->count - 1) / (int64_t)team->count;
    double sum = 0;
    for (size_t i = 0; team->weights && i < team->count; i++)
        sum += team->weights[i];
    if (team->weights)
        most = team->weights[index] > 0 ? (int64_t)((double)groups * (team->weights[index] / sum)) + 1 : 0;
    return most * team->group < batch ? most * team->group : batch;
}

typedef struct making {
    const cek_model *model;
    const cek__layout *layout;
    cek_device *device;
    const cek__replica_options *options;
    cek__replica **out;
} making;

static cek_status replica_make(void *user)
{
    const making *m = user;
    return cek__replica_create(m->model, m->layout, m->device, m->options, m->out);
}

cek_status cek__team_create(const cek_model *model, cek_device *const *devices, size_t count,
                            const cek__team_options *options, cek__team *team)
{
    cek_status st;
    memset(team, 0, sizeof *team);
    CEK_TRY(cek__team_check(model, devices, count, options));
    CEK_TRY(math_check(options->replica.math));
    CEK_TRY(fallback_check(options));
    team->count = count;
    team->group = options->replica.group;
    CEK_TRY(weights_copy(team, options->weights));
    CEK_TRY(cek__calloc(count, sizeof *team->replicas, &team->replicas));
    CEK_TRY(cek__calloc(count, sizeof *team->rows, &team->rows));
    CEK_TRY(cek__calloc(count, sizeof *team->first, &team->first));
    team->layout = options->layout;
    cek__team_deal(team, options->batch);
    CEK_TRY(cek__crew_create(devices, count, &team->crew));
    for (size_t i = 0; i < count; i++) {
        cek__replica_options o = options->replica;
        o.rows = team->group ? rows_in_groups(team, options->batch, i) : rows_most(options, team->rows[i]);
        o.micro_most = options->parts > 1 ? (team->rows[i] + options->parts - 1) / options->parts : 0;
        o.fallback = devices[i] != o.fallback ? o.fallback : NULL;
        o.optimizer_bytes = options->extra_bytes ? options->extra_bytes(options->user, i) : 0;
        CEK_TRY(cek__crew_call(team->crew, devices[i], replica_make,
                               &(making){ model, team->layout, devices[i], &o, &team->replicas[i] }));
    }
    return CEK_OK;
out:
    cek__team_close(team);
    return st;
}

static cek_status replica_quiesce(void *replica)
{
    return cek__replica_quiesce(replica) ? CEK_OK : CEK_DEVICE_LOST;
}

static void replica_release(void *replica)
{
    cek__replica_free(replica);
}

/* Keeps the text. One may still be copying from another's memory, and for good where it is lost. */
void cek__team_quiesce(cek__team *team)
{
    char text[CEK__ERROR_TEXT_MAX];
    strcpy(text, cek_error_text());
    for (size_t i = 0; team->crew && i < team->count; i++) {
        cek__replica *r = team->replicas[i];
        if (r && cek__crew_call(team->crew, cek__replica_device(r), replica_quiesce, r) != CEK_OK &&
            !cek__replica_is_inline(r))
            cek__crew_lost(team->crew, cek__replica_device(r));
    }
    cek__fail(CEK_INTERNAL, "%s", text);
}

void cek__team_close(cek__team *team)
{
    cek__team_quiesce(team);
    for (size_t i = 0; team->crew && i < team->count; i++)
        if (team->replicas[i])
            cek__crew_release(team->crew, cek__replica_device(team->replicas[i]), replica_release, team->replicas[i]);
    cek__crew_free(team->crew);
    free(team->replicas);
    free(team->weights);
    free(team->rows);
    free(team->first);
    memset(team, 0, sizeof *team);
}

void cek__team_deal(cek__team *team, int64_t total)
{
    int64_t first = 0;
    cek__shares_split_groups(total, team->group, team->count, team->weights, team->rows);
    for (size_t i = 0; i < team->count; i++) {
        team->first[i] = first;
        first += team->rows[i];
    }
}

cek__share cek__team_share(const cek__team *team, size_t index, const cek__share *whole, const cek__row *row)
{
    uint64_t first = (uint64_t)team->first[index];
    cek__share part = { .rows = team->rows[index], .sample_base = first };
    for (size_t i = 0; i < row->inputs; i++)
        part.inputs[i] = (const unsigned char *)whole->inputs[i] + first * row->input[i];
    if (whole->targets)
        part.targets = (const unsigned char *)whole->targets + first * row->target;
    return part;
}

typedef struct reading {
    cek__replica *replica;
    cek_ref src;
    void *dst;
    uint64_t bytes;
} reading;

static cek_status replica_read(void *user)
{
    const reading *r = user;
    return cek__replica_read(r->replica, r->src, r->dst, r->bytes);
}

cek_status cek__team_read(cek__team *team, cek__replica *replica, cek_ref src, void *dst, uint64_t bytes)
{
    return cek__crew_call(team->crew, cek__replica_device(replica), replica_read,
                          &(reading){ replica, src, dst, bytes });
}

typedef struct writing {
    cek__replica *replica;
    cek_ref dst;
    const void *src;
    uint64_t bytes;
} writing;

static cek_status replica_write(void *user)
{
    const writing *w = user;
    return cek__replica_write(w->replica, w->dst, w->src, w->bytes);
}

cek_status cek__team_write(cek__team *team, cek__replica *replica, cek_ref dst, const void *src, uint64_t bytes)
{
    return cek__crew_call(team->crew, cek__replica_device(replica), replica_write,
                          &(writing){ replica, dst, src, bytes });
}

cek_status cek__team_run(cek__team *team, cek__crew_fn fn, void *user)
{
    cek_status st = cek__crew_run(team->crew, fn, user);
    if (st != CEK_OK)
        cek__team_quiesce(team);
    return st;
}

typedef struct sums {
    cek__replica *replica;
    double loss;
    int64_t correct;
} sums;

static cek_status replica_collect(void *user)
{
    sums *s = user;
    return cek__replica_collect(s->replica, &s->loss, &s->correct);
}

static cek_status replica_forget(void *user)
{
    return cek__replica_forget(user);
}

cek_status cek__team_forget(cek__team *team)
{
    cek_status st = CEK_OK;
    for (size_t i = 0; i < team->count; i++) {
        cek__replica *r = team->replicas[i];
        const cek_status one = cek__crew_call(team->crew, cek__replica_device(r), replica_forget, r);
        st = st != CEK_OK ? st : one;
    }
    return st;
}

cek_status cek__team_collect(cek__team *team, double *loss, int64_t *correct)
{
    cek_status st;
    *loss = 0;
    *correct = 0;
    for (size_t i = 0; i < team->count; i++) {
        sums part = { .replica = team->replicas[i] };
        CEK_TRY(cek__crew_call(team->crew, cek__replica_device(part.replica), replica_collect, &part));
        *loss += part.loss;
        *correct += part.correct;
    }
    return CEK_OK;
out:
    cek__team_quiesce(team);
    return st;
}
