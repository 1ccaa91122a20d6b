/* shares.h - who takes how many samples of a batch, and which part of the parameters.
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

/* A contiguous range of a bucket's elements, multiples of CEK__SHARD_UNIT. Empty where first == end. */
typedef struct cek__shard {
    uint64_t first, end;
} cek__shard;

enum {
    CEK__SHARD_UNIT = 64,      /* elements: 256 bytes of f32, the alignment of operands */
    CEK__SHARD_MIN = 64 * 1024 /* a smaller bucket has one owner: splitting it costs more copies than it saves */
};

/* The part of bucket `bucket` (of `elements`) that device `owner` of `count` updates. The parts of
 * all owners tile the bucket. */
CEK__SHARED cek__shard cek__shard_of(size_t bucket, uint64_t elements, size_t owner, size_t count);

#endif
