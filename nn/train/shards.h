/* shards.h - who owns which range of the parameters.
 *
 * A shard is a contiguous range of one bucket with one owner: the device that adds up its gradients, keeps its
 * optimizer state, and computes its new values for everybody. Pure arithmetic: knows no device, no memory, no step. */
#ifndef CEK_NN_TRAIN_SHARDS_H
#define CEK_NN_TRAIN_SHARDS_H

#include "cekernels/nn.h"
#include "core/base/export.h"

enum {
    CEK__SHARD_UNIT = 64,                     /* elements: 256 bytes of f32, the alignment of operands ... */
    CEK__ROUNDED_ALIGN = CEK__SHARD_UNIT * 2, /* bytes: that of rounded copies, which have 16 bits */
    /* A smaller bucket has one owner, and contributions come to it through branches (branches.h): what copies cost
     * besides their bytes is most of what they cost. */
    CEK__SHARD_LEAST = 64 * 1024,
    /* With several devices no shard is longer: 2 MiB of f32, so that adding, updating and spreading of one run beside
     * the copies of the next, and what is in flight between two devices is bounded. */
    CEK__SHARD_MOST = 512 * 1024
};

typedef struct cek__shard {
    size_t bucket, owner;
    uint64_t first, end; /* elements of the bucket; first a multiple of CEK__SHARD_UNIT, end too or the bucket's end */
    bool branched;       /* all of a bucket that is small */
} cek__shard;

typedef struct cek__shards {
    size_t count, devices, buckets;
    cek__shard *list;  /* [count], by bucket, the owners in turn: none is empty */
    size_t *of_bucket; /* [buckets + 1]: shards of bucket b are of_bucket[b] .. of_bucket[b + 1] - 1 */
} cek__shards;

/* Splits buckets of `elements` among `devices`. The shards of a bucket tile it. */
CEK__SHARED CEK__CHECKED cek_status cek__shards_create(size_t buckets, const uint64_t *elements, size_t devices,
                                                       cek__shards *out);
/* For shards that were zeroed, however far creation got. */
CEK__SHARED void cek__shards_close(cek__shards *shards);

static inline uint64_t cek__shard_elements(const cek__shard *shard)
{
    return shard->end - shard->first;
}

#endif
