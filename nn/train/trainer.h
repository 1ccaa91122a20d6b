/* trainer.h - what fit.c sees of a trainer (trainer.c). */
#ifndef CEK_NN_TRAIN_TRAINER_H
#define CEK_NN_TRAIN_TRAINER_H

#include <stdatomic.h>

#include "cekernels/nn.h"
#include "core/base/export.h"
#include "nn/model/model.h"
#include "nn/train/balance.h"
#include "nn/train/lineup.h"
#include "nn/train/rates.h"
#include "nn/train/team.h"

/* A step between submit and collect. */
typedef struct pending {
    int64_t samples;
    cek__amount amount;
    double start;
    double rate;    /* of group 0 */
    int64_t *rows;  /* [devices] */
    bool collected; /* from the devices, though not by the caller */
    double loss;
    int64_t correct;
} pending;

struct cek_trainer {
    cek_model *model;
    cek__layout *layout;
    cek__team team;
    cek__lineup lineup;
    cek__balance balance; /* with shares by measurement */
    bool balanced;
    bool *first; /* [devices] who takes part at first */
    size_t depth;
    int64_t group; /* samples that the model computes with together; 0: each alone */
    cek__running *running;
    uint64_t memory_limit;
    cek__rules rules;
    cek__rates rates;
    cek__scaler scaler; /* where gradients are in f16 */
    bool held;          /* the last step waits for cek_trainer_update */
    bool averaged;      /* replicas have the average, and their owners what was trained */
    int64_t epochs;     /* ended */
    cek_loss loss;
    int64_t batch; /* of a step, all its parts */
    uint32_t accumulate;
    uint64_t seed;
    cek_dtype input_type;
    cek__targets targets;
    int64_t outputs;
    cek__row row;
    int64_t steps, submitted; /* collected, submitted */
    cek__share *parts;        /* [devices] of the step that is being submitted */
    int64_t *shares;          /* [devices] of the last step that was submitted */
    pending *pending;         /* [depth] steps that are not collected, by number */
    double collected_at;
    cek_metrics train, test; /* of the last epoch */
    cek_status broken;       /* a step failed half-way: what every later call answers */
    char broken_text[1024];
    atomic_bool stop;
};

/* trainer_options.c: takes what the options say but for devices, layout and rules. */
CEK__CHECKED cek_status cek__trainer_take(cek_trainer *trainer, size_t count, const cek_trainer_options *options);

/* A step in two parts. `lent`: the batch stays as it is until it was collected; `held`: it waits with its gradients. */
CEK__CHECKED cek_status cek__trainer_submit(cek_trainer *trainer, const cek_batch *batch, bool lent, bool held);
CEK__CHECKED cek_status cek__trainer_collect(cek_trainer *trainer, cek_step_result *result);
/* CEK_INVALID while gradients wait: `what` has to wait as well. */
CEK__CHECKED cek_status cek__trainer_not_held(const cek_trainer *trainer, const char *what);

/* The failure that a step left behind, or CEK_OK. */
CEK__CHECKED cek_status cek__trainer_usable(const cek_trainer *trainer);

/* A step failed half-way, with the text of this thread. */
void cek__trainer_break(cek_trainer *trainer, cek_status status);

/* Waits until every device has the parameters of the last step and nothing is under way; else the failure. */
CEK__SHARED CEK__CHECKED cek_status cek__trainer_settle(cek_trainer *trainer);

/* Whether its loss has labels as targets, so that there is an accuracy. */
bool cek__trainer_classifies(const cek_trainer *trainer);
/* The sum of a batch's losses is divided by its samples, values or what its labels weigh. Errors:
 * CEK_BAD_INPUT: a label. */
CEK__CHECKED cek_status cek__trainer_weigh(const cek_trainer *trainer, const cek_batch *batch, cek__amount *out);
/* What cek__trainer_weigh said of a step's batch, one of the last `depth`. */
cek__amount cek__trainer_amount(const cek_trainer *trainer, int64_t step);

/* Refuses a dataset whose samples are not the model's. */
CEK__CHECKED cek_status cek__trainer_fits(const cek_trainer *trainer, const cek_dataset *dataset, const char *what);

#endif
