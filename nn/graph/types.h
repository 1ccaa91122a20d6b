/* types.h - which flows have 16 bits, after physical.h and before fuse.h: the same graph with casts where types meet.
 *
 * Parts say how they take it (parts.h). What multiplies reads 16 bits and gives 16 bits to each sample's flows; what
 * comes behind follows what it reads. A parameter that nothing but such operations read is read in 16 bits too, as
 * somebody keeps it beside its full value. Everything else has the type that is computed in: what belongs to no sample
 * (parameters, their gradients, statistics), sums, softmax, losses and what only losses read, what the network gives.
 * Casts lie as what they read does: how a parameter lies does not hang on types. */
#ifndef CEK_NN_GRAPH_TYPES_H
#define CEK_NN_GRAPH_TYPES_H

#include "nn/graph/graph.h"

/* low: CEK_BF16, CEK_F16, or CEK_DTYPE_NONE: nothing has, and what callers cast is cast back where a part wants it.
 * rounded: by parameter, whether it is kept in 16 bits; NULL: where this graph can do with that.
 * Errors: CEK_OUT_OF_MEMORY. */
CEK__SHARED CEK__CHECKED cek_status cek__types(cek__graph *graph, cek_dtype low, const bool *rounded);

#endif
