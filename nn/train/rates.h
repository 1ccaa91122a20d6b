/* rates.h - learning rates over the course of a training: functions of a schedule and of where the training stands.
 *
 * Each means what the scheduler of that name in torch.optim.lr_scheduler does: rates of PyTorch come out, whatever was
 * asked for in between. Pure, but for what a plateau remembers of the numbers that it was told.
 * Must not know: trainers, optimizers, devices. */
#ifndef CEK_NN_TRAIN_RATES_H
#define CEK_NN_TRAIN_RATES_H

#include "cekernels/nn.h"
#include "core/base/export.h"

typedef struct cek__rates {
    cek_schedule schedule; /* defaults filled in */
    int64_t *milestones;   /* owned; schedule.milestones points here */
    /* of a plateau */
    double best;
    int64_t bad, cooling; /* numbers in a row that were no better; numbers still to be let pass */
    int64_t reductions;
} cek__rates;

/* Defaults filled in (NULL: the rate stays), what makes no sense refused (CEK_INVALID names it). */
CEK__SHARED CEK__CHECKED cek_status cek__rates_create(const cek_schedule *given, cek__rates *out);
/* For rates that were zeroed, however far creation got. */
CEK__SHARED void cek__rates_close(cek__rates *rates);

/* The rate of the step behind `steps` others and `epochs` ends of epochs, of parameters whose own rate is `base`. */
CEK__SHARED double cek__rates_at(const cek__rates *rates, double base, int64_t steps, int64_t epochs);
/* A plateau is told the number that it watches; a NAN is no better than any. */
CEK__SHARED void cek__rates_note(cek__rates *rates, double metric);

#endif
