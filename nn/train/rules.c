/* rules.c - see rules.h. */
#include "nn/train/rules.h"

#include <float.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/options.h"
#include "core/base/status.h"
#include "nn/train/algorithm.h"

/* ---- groups ---- */

/* `patterns`: separated by commas; `one`: room for them all. */
static bool matches(const char *patterns, const char *name, char *one)
{
    const char *item;
    size_t length;

    while (cek__list_next(&patterns, &item, &length)) {
        memcpy(one, item, length);
        one[length] = '\0';
        if (fnmatch(one, name, 0) == 0)
            return true;
    }
    return false;
}

/* Its parameters: those that no group before it has. */
static cek_status members_take(cek__rules *r, const cek_model *model, const cek_parameter_group *group, uint32_t number)
{
    cek_status st;
    cek_parameter p;
    bool any = false;
    char *pattern = NULL;

    CEK_TRY(cek__malloc(strlen(group->names) + 1, &pattern));
    for (size_t i = 0; i < r->layout->parameter_count; i++) {
        CEK_TRY(cek_model_parameter(model, i, &p));
        if (!matches(group->names, p.name, pattern))
            continue;
        any = true;
        if (r->group_of[i] == 0)
            r->group_of[i] = group->flags & CEK_GROUP_FROZEN ? CEK__FROZEN : number;
    }
    if (!any)
        CEK_FAIL(CEK_INVALID, "parameter group %u: no parameter is called %s", number, group->names);
out:
    free(pattern);
    return st;
}

static cek_status group_check(const cek_parameter_group *group, uint32_t number)
{
    if (group->names == NULL)
        return cek__fail(CEK_INVALID, "parameter group %u has no names", number);
    if (group->flags & ~(uint32_t)(CEK_GROUP_FROZEN | CEK_GROUP_WEIGHT_DECAY))
        return cek__fail(CEK_INVALID, "parameter group %u: flags 0x%x are unknown", number, group->flags);
    if (!(group->lr >= 0 && group->lr <= FLT_MAX && group->weight_decay >= 0 && group->weight_decay <= FLT_MAX))
        return cek__fail(CEK_INVALID, "parameter group %u: a learning rate of %g and a weight decay of %g", number,
                         group->lr, group->weight_decay);
    if (group->weight_decay != 0 && !(group->flags & CEK_GROUP_WEIGHT_DECAY))
        return cek__fail(CEK_INVALID, "parameter group %u: a weight decay without CEK_GROUP_WEIGHT_DECAY", number);
    return CEK_OK;
}

static cek_status groups_take(cek__rules *r, const cek_model *model, const cek_trainer_options *o)
{
    cek_status st;
    const char *given = (const char *)o->groups;
    cek_parameter_group group;
    uint32_t stride = 0;

    r->group_count = 1 + o->group_count;
    if (o->group_count >= CEK__GROUPS_MOST)
        CEK_FAIL(CEK_INVALID, "%u parameter groups: at most %d are possible", o->group_count, CEK__GROUPS_MOST - 1);
    if (o->group_count > 0 && given == NULL)
        CEK_FAIL(CEK_INVALID, "%u parameter groups are counted, but not given", o->group_count);
    r->lr[0] = r->optimizer.lr;
    r->weight_decay[0] = r->optimizer.weight_decay;
    for (uint32_t g = 1; g < r->group_count; g++, given += stride) {
        CEK_TRY(cek__options_take("parameter group", &group, sizeof group, given));
        stride = group.size;
        CEK_TRY(group_check(&group, g));
        CEK_TRY(members_take(r, model, &group, g));
        r->lr[g] = group.lr != 0 ? group.lr : r->lr[0];
        r->weight_decay[g] = group.flags & CEK_GROUP_WEIGHT_DECAY ? group.weight_decay : r->weight_decay[0];
    }
    r->alike = o->group_count == 0;
out:
    return st;
}

/* ---- life ---- */

static cek_status number_check(const char *what, double value, double below)
{
    return value >= 0 && value < below
               ? CEK_OK
               : cek__fail(CEK_INVALID, "%s of %g: allowed are 0 (none) to below %g", what, value, below);
}

cek_status cek__rules_create(const cek_model *model, const cek__layout *layout, const cek_trainer_options *o,
                             cek__rules *out)
{
    cek_status st;

    *out = (cek__rules){ .layout = layout, .max_norm = o->max_norm, .max_value = o->max_value, .average = o->average };
    CEK_TRY(cek__optimizer_resolve(o->optimizer, &out->optimizer));
    CEK_TRY(number_check("gradients clipped to a norm", o->max_norm, INFINITY));
    CEK_TRY(number_check("gradients clipped to values", o->max_value, INFINITY));
    CEK_TRY(number_check("a decay of the average", o->average, 1));
    if (cek__rules_scale_parameters(out) && o->max_norm > 0)
        CEK_FAIL(CEK_INVALID, "LAMB measures each parameter's step in place of the norm of all gradients: no max_norm");
    out->scaled = layout->low == CEK_F16;
    if (!out->scaled && (o->loss_scale != 0 || o->loss_scale_steps != 0))
        CEK_FAIL(CEK_INVALID, "a loss scale: gradients are scaled in f16 alone");
    if (out->scaled && (cek__rules_scale_parameters(out) || o->max_value > 0))
        CEK_FAIL(CEK_UNSUPPORTED,
                 "%s looks at gradients before their scale is taken off: in f16 it is not offered, in bf16 "
                 "it is",
                 cek__rules_scale_parameters(out) ? "LAMB" : "clipping by value");
    CEK_TRY(cek__calloc(layout->parameter_count, sizeof *out->group_of, &out->group_of));
    CEK_TRY(groups_take(out, model, o));
    return CEK_OK;
out:
    cek__rules_close(out);
    return st;
}

void cek__rules_close(cek__rules *r)
{
    free(r->group_of);
    memset(r, 0, sizeof *r);
}

/* ---- ranges ---- */

static int by_begin(const void *a, const void *b)
{
    const cek__range *one = a, *other = b;

    return (one->begin > other->begin) - (one->begin < other->begin);
}

/* Neighbours of one group are one range, with the padding between them, which is zero and stays so. */
static size_t merged(cek__range *list, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && list[kept - 1].group == list[i].group)
            list[kept - 1].end = list[i].end;
        else
            list[kept++] = list[i];
    }
    return kept;
}

static bool is_updated(const cek__range *range)
{
    return range->group != CEK__FROZEN;
}

cek_status cek__rules_ranges(const cek__rules *r, const cek__shard *shard, cek__range **list, size_t *count)
{
    cek_status st;
    const cek__layout *l = r->layout;
    const bool apart = cek__rules_scale_parameters(r);
    const size_t pieces = l->piece_of[l->parameter_count];
    size_t n = 0, kept = 0;

    *count = 0;
    CEK_TRY(cek__calloc(pieces + 1, sizeof **list, list));
    if (r->alike && !apart) {
        (*list)[0] = (cek__range){ .end = cek__shard_elements(shard) };
        *count = 1;
        return CEK_OK;
    }
    for (size_t i = 0; i < pieces; i++) {
        const cek__placement *p = &l->placement[i];
        const uint64_t first = p->first > shard->first ? p->first : shard->first;
        const uint64_t end = p->first + p->count < shard->end ? p->first + p->count : shard->end;
        if (p->bucket == shard->bucket && first < end)
            (*list)[n++] = (cek__range){ p->parameter, first - shard->first, end - shard->first,
                                         r->group_of[p->parameter] };
    }
    qsort(*list, n, sizeof **list, by_begin);
    n = apart ? n : merged(*list, n);
    for (size_t i = 0; i < n; i++)
        if (is_updated(&(*list)[i]))
            (*list)[kept++] = (*list)[i];
    *count = kept;
out:
    return st;
}
