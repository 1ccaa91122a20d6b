/* norms.h - how long ranges of gradients, parameters and steps are: sums of squares, made on a device and read
 * by the host.
 *
 * Owns: the operations, a place for each sum on the device and in page-locked memory of the host.
 * Must not know: what is measured, what becomes of it. One thread at a time. */
#ifndef CEK_NN_TRAIN_NORMS_H
#define CEK_NN_TRAIN_NORMS_H

#include "cekernels/nn.h"
#include "core/base/export.h"

typedef struct cek__norms cek__norms;

/* Device bytes for so many sums. */
uint64_t cek__norms_bytes(size_t slots);
/* And what its operations work in, which is known when it is ready. */
uint64_t cek__norms_workspace_bytes(const cek__norms *norms);

/* `sides`: streams that measure at once. */
CEK__CHECKED cek_status cek__norms_create(cek_device *device, cek_dtype type, size_t slots, size_t sides,
                                          cek__norms **out);
/* When its work has finished. */
void cek__norms_free(cek__norms *norms);

/* Before anything is measured: `count` elements will be. */
CEK__CHECKED cek_status cek__norms_want(cek__norms *norms, uint64_t count);
CEK__CHECKED cek_status cek__norms_ready(cek__norms *norms);

/* Enqueues the sum of the squares of `count` elements, and the way of some sums to the host. */
CEK__CHECKED cek_status cek__norms_measure(cek__norms *norms, size_t slot, cek_ref what, uint64_t count, size_t side,
                                           cek_stream *stream);
CEK__CHECKED cek_status cek__norms_fetch(cek__norms *norms, size_t first, size_t slots, cek_stream *stream);
/* When that has finished. */
double cek__norms_square(const cek__norms *norms, size_t slot);

#endif
