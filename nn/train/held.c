/* held.c - a step in two parts: gradients, which wait until somebody has seen them, and the update.
 *
 * Must not know: how a step is held (order.h). */
#include "core/base/options.h"
#include "core/base/status.h"
#include "nn/train/trainer.h"

cek_status cek__trainer_not_held(const cek_trainer *t, const char *what)
{
    if (!t->held)
        return CEK_OK;
    return cek__fail(CEK_INVALID, "%s while gradients wait: cek_trainer_update or cek_trainer_discard comes first",
                     what);
}

/* Whatever the loss is, the gradients are there. */
static cek_status collect(cek_trainer *t, cek_step_result *result)
{
    cek_status st = cek__trainer_collect(t, result), sums;

    if (st != CEK_OK && st != CEK_NOT_FINITE)
        return st;
    sums = cek__conductor_await_sums(t->lineup.conductor);
    if (sums == CEK_OK) {
        t->held = true;
        return st;
    }
    cek__trainer_break(t, sums);
    return sums;
}

cek_status cek_trainer_backward(cek_trainer *t, const cek_batch *batch, cek_step_result *result)
{
    cek_status st;

    CEK__NOT_NULL_AS(t, trainer);
    CEK__NOT_NULL(batch);
    if (result)
        CEK_TRY(cek__results_clear("cek_trainer_backward", result));
    CEK_TRY(cek__trainer_usable(t));
    if (cek_trainer_uncollected(t) > 0)
        CEK_FAIL(CEK_INVALID, "cek_trainer_backward: %zu steps are submitted and not collected",
                 cek_trainer_uncollected(t));
    CEK_TRY(cek__trainer_submit(t, batch, true, true));
    return collect(t, result);
out:
    return st;
}

static cek_status go_on(cek_trainer *t, const char *call, bool apply)
{
    cek_status st;

    CEK_TRY(cek__trainer_usable(t));
    if (!t->held)
        CEK_FAIL(CEK_INVALID, "%s: no gradients wait, as they do behind cek_trainer_backward", call);
    t->held = false;
    st = cek__lineup_release(&t->lineup, apply);
    if (st != CEK_OK)
        cek__trainer_break(t, st);
out:
    return st;
}

cek_status cek_trainer_update(cek_trainer *t)
{
    CEK__NOT_NULL_AS(t, trainer);
    return go_on(t, "cek_trainer_update", true);
}

cek_status cek_trainer_discard(cek_trainer *t)
{
    CEK__NOT_NULL_AS(t, trainer);
    return go_on(t, "cek_trainer_discard", false);
}
