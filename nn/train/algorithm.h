/* algorithm.h - what an optimizer's numbers mean: defaults, which go together, what it keeps of a parameter.
 *
 * Pure. Must not know: devices, shards, steps. */
#ifndef CEK_NN_TRAIN_ALGORITHM_H
#define CEK_NN_TRAIN_ALGORITHM_H

#include "cekernels/nn.h"
#include "core/base/export.h"

/* Defaults filled in (NULL: all of them), bad numbers refused (CEK_INVALID names the field). */
CEK__CHECKED cek_status cek__optimizer_resolve(const cek_optimizer *given, cek_optimizer *out);

/* Of the operation that it is made of: LAMB is Adam, and something behind it. */
uint32_t cek__algorithm_of(const cek_optimizer *optimizer);
/* Whether it has this of the operation's operands: M, V or MEAN. */
bool cek__algorithm_has(const cek_optimizer *optimizer, uint32_t slot);

/* value = hi + lo */
cek_f32x2 cek__f32x2(double value);

#endif
