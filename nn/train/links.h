/* links.h - what can be known of a device before it trains: how fast its links and its own memory are.
 *
 * Knows one device and its replica, and waits for it. Must not know: what the numbers are for. */
#ifndef CEK_NN_TRAIN_LINKS_H
#define CEK_NN_TRAIN_LINKS_H

#include "nn/train/costs.h"
#include "nn/train/replica.h"

/* Copies a part of the parameters out and back in, and some of the gradients, which are zero, over others. A device
 * that cannot tell times has links and memory that nothing waits for. */
CEK__CHECKED cek_status cek__links_measure(cek__replica *replica, size_t buckets, const uint64_t *bucket_bytes,
                                           cek__costs_device *out);

#endif
