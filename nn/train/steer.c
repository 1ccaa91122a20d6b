/* steer.c - what a trainer is told between two steps: rates, the ends of epochs, whether the average is in use. */
#include <float.h>
#include <math.h>

#include "core/base/status.h"
#include "nn/train/trainer.h"

double cek_trainer_rate(const cek_trainer *t, uint32_t group)
{
    if (!t || group >= t->rules.group_count)
        return 0;
    return fmin(cek__rates_at(&t->rates, t->rules.lr[group], t->submitted, t->epochs), FLT_MAX);
}

cek_status cek_trainer_set_rate(cek_trainer *t, uint32_t group, double rate)
{
    cek_status st;
    CEK__NOT_NULL_AS(t, trainer);
    CEK_TRY(cek__trainer_usable(t));
    if (!(rate >= 0 && rate <= FLT_MAX))
        CEK_FAIL(CEK_INVALID, "cek_trainer_set_rate: %g is no learning rate", rate);
    if (group >= t->rules.group_count)
        CEK_FAIL(CEK_INVALID, "cek_trainer_set_rate: group %u of %u", group, t->rules.group_count);
    t->rules.lr[group] = rate;
    return CEK_OK;
out:
    return st;
}

cek_status cek_trainer_end_epoch(cek_trainer *t, double metric)
{
    cek_status st;
    CEK__NOT_NULL_AS(t, trainer);
    CEK_TRY(cek__trainer_usable(t));
    t->epochs++;
    cek__rates_note(&t->rates, metric);
    return CEK_OK;
out:
    return st;
}

cek_status cek_trainer_use_average(cek_trainer *t, bool use)
{
    cek_status st;
    bool begun;
    CEK__NOT_NULL_AS(t, trainer);
    CEK_TRY(cek__trainer_usable(t));
    if (t->rules.average == 0)
        CEK_FAIL(CEK_INVALID, "cek_trainer_use_average: the trainer keeps none (options.average)");
    CEK_TRY(cek__trainer_not_held(t, "the average"));
    CEK_TRY(cek__trainer_settle(t));
    if (t->averaged == use)
        return CEK_OK;
    st = cek__lineup_swap_average(&t->lineup, &begun);
    if (st == CEK_OK)
        t->averaged = use;
    else if (begun)
        cek__trainer_break(t, st);
out:
    return st;
}
