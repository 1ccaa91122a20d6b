/* rules.h - how parameters are updated: the algorithm, the groups with rates of their own, what stays as it is, what is
 * done to gradients before.
 *
 * Pure but for its memory. Must not know: devices, steps, how a schedule moves rates (rates.h). */
#ifndef CEK_NN_TRAIN_RULES_H
#define CEK_NN_TRAIN_RULES_H

#include "cekernels/nn.h"
#include "core/base/export.h"
#include "nn/model/layout.h"
#include "nn/train/shards.h"

enum {
    CEK__GROUP_UNIT = CEK_PARAM_GROUPS - 1, /* of rate 1 and no weight decay, in every step */
    CEK__GROUPS_MOST = CEK__GROUP_UNIT,     /* with that of parameters in none that was named */
};

typedef struct cek__rules {
    cek_optimizer optimizer;             /* resolved */
    double max_norm, max_value, average; /* 0: none */
    bool scaled;                         /* gradients come multiplied by the step's loss scale (scaler.h) */
    const cek__layout *layout;
    uint32_t group_count;
    double lr[CEK__GROUPS_MOST], weight_decay[CEK__GROUPS_MOST];
    uint32_t *group_of; /* [parameters]; CEK__FROZEN: it is never updated */
    bool alike;         /* all are of group 0 */
} cek__rules;

#define CEK__FROZEN UINT32_MAX

/* A part of a shard whose elements are treated alike, counted from the shard's first. */
typedef struct cek__range {
    size_t parameter; /* one of its; whose it is where ranges were asked for one by one */
    uint64_t begin, end;
    uint32_t group;
} cek__range;

/* Of a trainer's options. `layout` outlives the rules. Errors: CEK_INVALID (a number, a pattern that
 * no name matches). */
CEK__CHECKED cek_status cek__rules_create(const cek_model *model, const cek__layout *layout,
                                          const cek_trainer_options *options, cek__rules *out);
/* For rules that were zeroed, however far creation got. */
void cek__rules_close(cek__rules *rules);

/* The steps of parameters depend on their own lengths: LAMB. */
static inline bool cek__rules_scale_parameters(const cek__rules *rules)
{
    return rules->optimizer.algorithm == CEK_OPTIMIZER_LAMB;
}

/* Updates wait until all of the step's gradients were looked at. */
static inline bool cek__rules_judge(const cek__rules *rules)
{
    return rules->max_norm > 0 || rules->scaled || cek__rules_scale_parameters(rules);
}

/* Updates multiply gradients by what the verdict says. */
static inline bool cek__rules_scale_gradients(const cek__rules *rules)
{
    return rules->max_norm > 0 || rules->scaled;
}

/* The ranges of a shard that are updated, in order: each parameter's by itself where they are scaled, else as few as
 * groups allow. *list is the caller's (free). */
CEK__CHECKED cek_status cek__rules_ranges(const cek__rules *rules, const cek__shard *shard, cek__range **list,
                                          size_t *count);

#endif
