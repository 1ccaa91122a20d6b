/* lineup.h - the devices of a team that take part in steps: shards of the parameters among them, and the
 * conductor over them.
 *
 * Owns: which replicas are members, shards, conductor; the change to other members, with which the optimizer's state
 * moves to the new owners and the parameters to those who join. A replica outside keeps the parameters that it had.
 * Must not know: why members change (balance.h), what a batch is. */
#ifndef CEK_NN_TRAIN_LINEUP_H
#define CEK_NN_TRAIN_LINEUP_H

#include "nn/train/running.h"
#include "nn/train/conductor.h"
#include "nn/train/shards.h"

typedef struct cek__lineup_options {
    const cek__layout *layout;
    cek__replica *const *replicas; /* [all] of the team; these outlive the lineup */
    cek__crew *crew;               /* its */
    size_t all;
    const cek__rules *rules;
    size_t depth;
    cek__running *running;
    cek__scaler *scaler;
    bool measured;
    uint64_t memory_limit; /* bytes of a device, with its replica; 0: what it has */
} cek__lineup_options;

typedef struct cek__lineup {
    cek__lineup_options of;
    size_t count;
    bool *members;           /* [all] */
    size_t *positions;       /* [count] in the team */
    cek__replica **replicas; /* [count] */
    bool *stale;             /* [all] parameters are not those of the last step */
    cek__shards *shards;     /* where the conductor has them from */
    cek__conductor *conductor;
    cek__share *shares; /* [count] */
    uint16_t **trained; /* [bucket_count] rounded copies of parameters in whose place the average is; else NULL */
} cek__lineup;

/* Device bytes that member `index` of `count` takes beside its replica. Before any lineup is made. */
CEK__CHECKED cek_status cek__lineup_bytes(const cek__lineup_options *options, size_t count, size_t index,
                                          uint64_t *out);

CEK__CHECKED cek_status cek__lineup_create(const cek__lineup_options *options, const bool *members, cek__lineup *out);
/* The same of a device of the team as it is now: 0 outside. */
uint64_t cek__lineup_planned(const cek__lineup *lineup, size_t index);
/* For a lineup that was zeroed, however far creation got. */
void cek__lineup_close(cek__lineup *lineup);

/* Other members, and the most samples that each replica of the team will have, [all]. When everything is settled and
 * collected. CEK_OUT_OF_MEMORY: all is as it was. Other failures: states may be lost. */
CEK__SHARED CEK__CHECKED cek_status cek__lineup_change(cek__lineup *lineup, const bool *members, const int64_t *most);
/* A bucket's parameters, each shard's as its owner has them, to host memory; when everything is settled. */
CEK__CHECKED cek_status cek__lineup_read_bucket(cek__lineup *lineup, size_t bucket, void *host);
/* Gives a replica outside the parameters of the last step, when everything is settled. */
CEK__CHECKED cek_status cek__lineup_refresh(cek__lineup *lineup, size_t index);

/* Parameters and the average of them that their owners keep change places, on all members, when everything is settled;
 * a second time, back, before the next step and so on the same members. Copies of the average are what the host rounds
 * it to, those of the parameters are again what they were. A failure that finds *begun false has changed nothing. */
CEK__CHECKED cek_status cek__lineup_swap_average(cek__lineup *lineup, bool *begun);

/* A step over shares[all], of which only members' have samples. The rest as cek__conductor_submit. */
CEK__CHECKED cek_status cek__lineup_submit(cek__lineup *lineup, const cek__share *shares, const cek_step_block *block,
                                           bool lent);
/* cek__conductor_release, of a step that was lent. */
CEK__CHECKED cek_status cek__lineup_release(cek__lineup *lineup, bool apply);
/* cek__conductor_times, [all]: 0 of those outside. */
void cek__lineup_times(cek__lineup *lineup, double *seconds, double *period);
/* A member that works at once and has nobody beside it: nothing could run ahead of it. */
bool cek__lineup_is_inline(const cek__lineup *lineup);

#endif
