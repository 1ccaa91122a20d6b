/* shares.h - who takes how many samples of a batch.
 *
 * Pure arithmetic: knows no device. */
#ifndef CEK_NN_TRAIN_SHARES_H
#define CEK_NN_TRAIN_SHARES_H

#include "cekernels/nn.h"
#include "core/base/export.h"

/* Splits `total` samples over `count` devices into out[count].
 * weights NULL: sizes differ by at most one, the earlier the larger (128 over 2: 64 64; 404 over 3: 135 135 134).
 * Otherwise in proportion, rounded by largest remainder (ties to the earlier); a weight of 0 gets nothing. */
CEK__SHARED void cek__shares_split(int64_t total, size_t count, const double *weights, int64_t *out);
/* The same in whole groups of `group` consecutive samples, of which the last may have fewer; group 0: as above. */
CEK__SHARED void cek__shares_split_groups(int64_t total, int64_t group, size_t count, const double *weights,
                                          int64_t *out);

#endif
