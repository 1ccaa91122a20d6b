/* team.h - the replicas of one model over a list of devices, their threads, and how a batch is dealt out to them.
 *
 * What training, evaluation and prediction share. Devices are called on the crew's threads. Owns: replicas, crew. Must
 * not know: optimizers, datasets. */
#ifndef CEK_NN_TRAIN_TEAM_H
#define CEK_NN_TRAIN_TEAM_H

#include "cekernels/nn.h"
#include "core/base/export.h"
#include "nn/model/layout.h"
#include "nn/train/crew.h"
#include "nn/train/replica.h"

typedef struct cek__team {
    size_t count;
    const cek__layout *layout; /* the caller's */
    cek__replica **replicas;   /* [count] */
    cek__crew *crew;
    double *weights; /* [count] shares in proportion, or NULL: equal */
    int64_t group;   /* shares are whole groups of so many samples, the last one what is left; 0: they need not be */
    int64_t *rows;   /* [count] of the batch being dealt out */
    int64_t *first;  /* [count] its first sample */
} cek__team;

/* Devices may repeat only as different devices: naming one twice is CEK_INVALID. `options.rows` and
 * `optimizer_bytes` are set per replica: rows from `batch` and the shares, optimizer_bytes by the
 * caller's function (NULL: 0). */
typedef struct cek__team_options {
    const cek__layout *layout; /* outlives the team */
    int64_t batch;
    const double *weights;
    int64_t room;  /* how many times its share a replica should be able to take; 0 = 1 */
    int64_t parts; /* micro-batches that its share of a whole batch is computed in at least; 0 = 1 */
    cek__replica_options replica;
    uint64_t (*extra_bytes)(const void *user, size_t index);
    const void *user;
} cek__team_options;

/* Whether devices can be a team of these options, which creation asks too. */
CEK__CHECKED cek_status cek__team_check(const cek_model *model, cek_device *const *devices, size_t count,
                                        const cek__team_options *options);
CEK__CHECKED cek_status cek__team_create(const cek_model *model, cek_device *const *devices, size_t count,
                                         const cek__team_options *options, cek__team *team);
/* For a team that was zeroed, however far creation got. */
void cek__team_close(cek__team *team);

/* Fills rows and first for a batch of `total` samples. */
void cek__team_deal(cek__team *team, int64_t total);

/* Member `index`'s part of a batch whose samples are those of `whole` (targets may be NULL). */
cek__share cek__team_share(const cek__team *team, size_t index, const cek__share *whole, const cek__row *row);

/* Runs a job of the crew. After a failure of one member the others may have queued work as well: when this returns, no
 * device that still answers reads the caller's samples. */
CEK__CHECKED cek_status cek__team_run(cek__team *team, cek__crew_fn fn, void *user);
void cek__team_quiesce(cek__team *team);

/* Reads bytes from a replica's device, or writes them there; both wait. */
CEK__CHECKED cek_status cek__team_read(cek__team *team, cek__replica *replica, cek_ref src, void *dst, uint64_t bytes);
CEK__CHECKED cek_status cek__team_write(cek__team *team, cek__replica *replica, cek_ref dst, const void *src,
                                        uint64_t bytes);

/* Loss and right answers of all members since the last collect, added up in the order of the devices. */
CEK__CHECKED cek_status cek__team_collect(cek__team *team, double *loss, int64_t *correct);
/* What is summed up and not collected counts for nothing. */
CEK__CHECKED cek_status cek__team_forget(cek__team *team);

#endif
