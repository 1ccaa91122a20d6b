/* optimizer.h - the update of one shard of one bucket on its owner: the op object and the state that it keeps.
 *
 * Owns: moments and step counter in device memory. Must not know: gradients' origin, other devices, the schedule. */
#ifndef CEK_NN_TRAIN_OPTIMIZER_H
#define CEK_NN_TRAIN_OPTIMIZER_H

#include "cekernels/nn.h"
#include "core/base/export.h"

typedef struct cek__shard_optimizer cek__shard_optimizer;

/* Defaults filled in (NULL: all of them), bad numbers refused (CEK_INVALID names the field). */
CEK__CHECKED cek_status cek__optimizer_resolve(const cek_optimizer *given, cek_optimizer *out);

/* Bytes of device memory that a shard of `count` elements will take. */
uint64_t cek__shard_optimizer_bytes(const cek_optimizer *optimizer, cek_dtype type, uint64_t count);

/* `stream`: zeroes the state. `scaled`: the update block is given, whose grad_scale gradients are multiplied by. */
CEK__CHECKED cek_status cek__shard_optimizer_create(cek_device *device, cek_stream *stream,
                                                    const cek_optimizer *optimizer, cek_dtype type, uint64_t count,
                                                    bool scaled, cek__shard_optimizer **out);
void cek__shard_optimizer_free(cek__shard_optimizer *optimizer);

/* Enqueues one step: parameters and gradients are the shard's first elements. Or that as a command, with operands that
 * the caller keeps. */
CEK__CHECKED cek_status cek__shard_optimizer_run(cek__shard_optimizer *optimizer, cek_stream *stream,
                                                 cek_ref parameters, cek_ref gradients, cek_ref step_block,
                                                 cek_ref update_block);
enum { CEK__OPTIMIZER_SLOTS = CEK_OPTIMIZER_MEAN + 1 };
cek_cmd cek__shard_optimizer_command(const cek__shard_optimizer *optimizer, cek_ref parameters, cek_ref gradients,
                                     cek_ref step_block, cek_ref update_block, cek_ref operands[CEK__OPTIMIZER_SLOTS]);

/* What it keeps, in host memory: moments of its elements, of which the algorithm has some, and its counter. Both wait. */
enum { CEK__MOMENTS = 3 };
enum { CEK__COUNTER_BYTES = CEK_ALIGNMENT };
typedef struct cek__optimizer_state {
    void *moments[CEK__MOMENTS];
    unsigned char counter[CEK__COUNTER_BYTES];
} cek__optimizer_state;
CEK__CHECKED cek_status cek__shard_optimizer_read(const cek__shard_optimizer *optimizer, cek_stream *stream,
                                                  cek__optimizer_state *out);
CEK__CHECKED cek_status cek__shard_optimizer_write(cek__shard_optimizer *optimizer, cek_stream *stream,
                                                   const cek__optimizer_state *state);
bool cek__optimizer_has(const cek_optimizer *optimizer, size_t moment);
size_t cek__optimizer_moments(const cek_optimizer *optimizer); /* how many */

/* The part of a step block that belongs to the optimizer. */
void cek__optimizer_fill_block(const cek_optimizer *optimizer, double rate, cek_step_block *block);

/* value = hi + lo */
cek_f32x2 cek__f32x2(double value);

#endif
