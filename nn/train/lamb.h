/* lamb.h - LAMB on one shard: from directions to steps whose length is that of the parameter that they move.
 *
 *     u = m / (sqrt(v) + epsilon) + weight decay * p      m, v: Adam's, without their bias
 *     p -= lr * |p| / |u| * u                             1 for the quotient where either is 0
 *
 * (You et al., "Large batch optimization for deep learning", 2020.) Lengths are those of whole parameters, of which a
 * shard may have parts: whoever calls adds them up over the shards between `decay` and `apply`.
 * Owns: what is left to do once Adam's step has been written where a parameter's would be. Must not
 * know: other shards. */
#ifndef CEK_NN_TRAIN_LAMB_H
#define CEK_NN_TRAIN_LAMB_H

#include "nn/train/rules.h"

typedef struct cek__lamb cek__lamb;

/* Device bytes for so many ranges. */
uint64_t cek__lamb_bytes(size_t ranges);
uint64_t cek__lamb_workspace_bytes(const cek__lamb *lamb); /* beside those; 0 without one */

/* `ranges`: one for each parameter; they outlive it. */
CEK__CHECKED cek_status cek__lamb_create(cek_device *device, cek_stream *stream, const cek__rules *rules,
                                         const cek__range *ranges, size_t count, cek__lamb **out);
void cek__lamb_free(cek__lamb *lamb);

/* `step` holds Adam's steps at rate 1 from 0, which is minus the direction: enqueues the weight decay's part of it. */
CEK__CHECKED cek_status cek__lamb_decay(cek__lamb *lamb, cek_stream *stream, cek_ref parameters, cek_ref step);
/* Enqueues the update, by squares[2 * parameter] of the parameter and, behind it, of its step. */
CEK__CHECKED cek_status cek__lamb_apply(cek__lamb *lamb, cek_stream *stream, cek_ref parameters, cek_ref step,
                                        cek_ref step_block, const double *squares);

#endif
