/* balance.h - shares by measurement: what the schedule wants to know of the devices, and what its answers mean
 * for a team.
 *
 * Owns: the schedule, the first look at the devices' links and memory, questions to devices outside, what is logged.
 * Must not know: how steps run. From the trainer's thread. */
#ifndef CEK_NN_TRAIN_BALANCE_H
#define CEK_NN_TRAIN_BALANCE_H

#include "nn/train/lineup.h"
#include "nn/train/meter.h"
#include "nn/train/schedule.h"
#include "nn/train/team.h"

typedef struct cek__balance {
    cek__schedule *schedule;
    cek__team *team;
    int64_t batch, steps;
    bool due;         /* shares are to change */
    bool stopped;     /* for want of memory */
    bool told;        /* what it has settled on is in the log */
    double *seconds;  /* [count] */
    double *busy;     /* [count] seconds that each has computed, */
    double span;      /* of so many of steps */
    int64_t *most;    /* [count] */
    int64_t *resumed; /* [count] the first step after the last question to each; 0: there was none */
} cek__balance;

/* members[count]: who takes part at first (schedule.h). */
CEK__CHECKED cek_status cek__balance_first(cek_device *const *devices, size_t count, bool *members);
/* Looks at every device of the team, one after the other. Before there is a lineup: replicas may have to take more. */
CEK__CHECKED cek_status cek__balance_create(cek__team *team, cek_device *const *devices, int64_t batch,
                                            const cek__rules *rules, cek__balance *out);
/* For a balance that was zeroed, however far creation got. */
void cek__balance_close(cek__balance *balance);

/* After a step was collected: the samples that each device had. */
void cek__balance_note(cek__balance *balance, cek__lineup *lineup, const int64_t *rows);
/* Shares changed: the team's weights and, where they must, the lineup's members. When all is settled and collected. */
CEK__CHECKED cek_status cek__balance_apply(cek__balance *balance, cek__lineup *lineup);
/* The share of the steps' time in which a device computed nothing; NAN before there is any. */
double cek__balance_idle(const cek__balance *balance, size_t index);
/* A device outside is to be asked how fast it is: which, and with how many samples. */
bool cek__balance_asks(cek__balance *balance, size_t *index, int64_t *rows);
/* Asks it, with samples of a batch, before `step`, the next to be submitted; when all is settled: others on its
 * processor would make it look slow. */
CEK__CHECKED cek_status cek__balance_ask(cek__balance *balance, size_t index, int64_t rows, int64_t step,
                                         const cek__share *batch, const cek_step_block *block);

#endif
