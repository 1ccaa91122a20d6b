/* scaler.h - the factor of a loss whose gradients are in f16: large enough that small ones do not vanish, small enough
 * that large ones stay finite.
 *
 * A step whose gradients are not all finite changes nothing, on any device, and halves the factor; so many good ones in
 * a row double it. Steps are numbered from 1. Several are under way at once: the factor of step n follows from the
 * verdicts on steps up to n - 1 - depth, whatever else is known by then, so that it does not depend on who was faster.
 * What overflows with a factor that was given up already halves nothing.
 * Pure but for the verdicts, which come from any thread. Must not know: devices, how gradients are
 * looked at (conductor.h). */
#ifndef CEK_NN_TRAIN_SCALER_H
#define CEK_NN_TRAIN_SCALER_H

#include <stdatomic.h>

#include "cekernels/nn.h"
#include "core/base/export.h"

enum { CEK__SCALER_STEPS = 4 * CEK_DEPTH_MOST }; /* that are not counted yet, at most 2 depth + 1 */

typedef struct cek__scaler {
    double factor; /* of the next step */
    uint32_t good, interval;
    int64_t depth, submitted, counted; /* steps; counted: those that `factor` follows from */
    uint64_t skipped;                  /* of those */
    double given[CEK__SCALER_STEPS];   /* by step */
    atomic_int verdicts[CEK__SCALER_STEPS];
} cek__scaler;

/* first: the factor to begin with, 0: 2^16; interval: good steps before it is doubled, 0: 2000. Errors: CEK_INVALID (a
 * factor out of range). */
CEK__SHARED CEK__CHECKED cek_status cek__scaler_create(double first, uint32_t interval, size_t depth, cek__scaler *out);

/* The factor of the step that is submitted next. */
CEK__SHARED double cek__scaler_next(cek__scaler *scaler);
/* It is submitted. */
CEK__SHARED void cek__scaler_submit(cek__scaler *scaler);
/* The factor of one of the last steps, not earlier than 2 depth before the last. */
CEK__SHARED double cek__scaler_given(const cek__scaler *scaler, int64_t step);
/* What came of a step, before the step that is depth + 1 behind it is asked for; said again, the same. */
CEK__SHARED void cek__scaler_hear(cek__scaler *scaler, int64_t step, bool skipped);
/* Steps that changed nothing, of those that were heard of. */
CEK__SHARED uint64_t cek__scaler_skipped(const cek__scaler *scaler);

#endif
