/* optimizer.h - the update of one shard of one bucket on its owner: operations, and the state that they keep.
 *
 * Owns: moments, the average and the step counters, one of each operation, in device memory. Must not know: gradients'
 * origin, other devices, the schedule.
 *
 * An update has two parts, with what needs a look at all gradients in between. */
#ifndef CEK_NN_TRAIN_OPTIMIZER_H
#define CEK_NN_TRAIN_OPTIMIZER_H

#include "nn/train/algorithm.h"
#include "nn/train/rules.h"

typedef struct cek__shard_optimizer cek__shard_optimizer;

/* Where what it works on begins: the shard's first elements, and the blocks of plugin.h. */
typedef struct cek__update_place {
    cek_ref parameters, gradients, step_block;
    cek_ref rounded; /* copies of those of its parameters that have one, of which it makes new ones with them */
    cek_ref
        update_block; /* whose grad_scale gradients are multiplied by, where they are clipped by their norm or scaled */
} cek__update_place;

/* Bytes of device memory that a shard will take. */
CEK__CHECKED cek_status cek__shard_optimizer_bytes(const cek__rules *rules, const cek__shard *shard, uint64_t *out);
/* And what its operations work in. */
uint64_t cek__shard_optimizer_workspace_bytes(const cek__shard_optimizer *optimizer);

/* `stream`: what it keeps gets its first values, the average those of `parameters`, which are there.
 * `rules` outlive it. */
CEK__CHECKED cek_status cek__shard_optimizer_create(cek_device *device, cek_stream *stream, const cek__rules *rules,
                                                    const cek__shard *shard, cek_ref parameters,
                                                    cek__shard_optimizer **out);
void cek__shard_optimizer_free(cek__shard_optimizer *optimizer);

/* What is updated of the shard. */
const cek__range *cek__shard_optimizer_ranges(const cek__shard_optimizer *optimizer, size_t *count);

/* Enqueues the first part: clips by value; of LAMB, finds the direction (cek__shard_optimizer_step is where). */
CEK__CHECKED cek_status cek__shard_optimizer_prepare(cek__shard_optimizer *optimizer, cek_stream *stream,
                                                     const cek__update_place *place);
cek_ref cek__shard_optimizer_step(const cek__shard_optimizer *optimizer);
/* Enqueues the second: new parameters, rounded copies, and their average. `squares`: as cek__lamb_apply takes them,
 * NULL of other algorithms. */
CEK__CHECKED cek_status cek__shard_optimizer_update(cek__shard_optimizer *optimizer, cek_stream *stream,
                                                    const cek__update_place *place, const double *squares);

/* Both parts as commands, with operands that the caller keeps; how many. Not of LAMB. */
enum { CEK__UPDATE_COMMANDS = 5, CEK__UPDATE_SLOTS = CEK_OPTIMIZER_MEAN + 1 };
typedef cek_ref cek__update_operands[CEK__UPDATE_COMMANDS][CEK__UPDATE_SLOTS];
uint32_t cek__shard_optimizer_commands(const cek__shard_optimizer *optimizer, const cek__update_place *place,
                                       cek__update_operands operands, cek_cmd *out);

/* What it keeps, in host memory: moments of its elements, of which the algorithm has some, and its
 * counter. Both wait. */
enum { CEK__MOMENTS = 4, CEK__MOMENT_AVERAGE = CEK__MOMENTS - 1, CEK__COUNTER_BYTES = CEK_ALIGNMENT };
typedef struct cek__optimizer_state {
    void *moments[CEK__MOMENTS];
    unsigned char counter[CEK__COUNTER_BYTES];
} cek__optimizer_state;
CEK__CHECKED cek_status cek__shard_optimizer_read(const cek__shard_optimizer *optimizer, cek_stream *stream,
                                                  cek__optimizer_state *out);
CEK__CHECKED cek_status cek__shard_optimizer_write(cek__shard_optimizer *optimizer, cek_stream *stream,
                                                   const cek__optimizer_state *state);
size_t cek__rules_moments(const cek__rules *rules); /* how many */

#endif
