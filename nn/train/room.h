/* room.h - what memory takes of a device.
 *
 * Owns: the rounding with which the allocator counts. Must not know: whose memory it is. */
#ifndef CEK_NN_TRAIN_ROOM_H
#define CEK_NN_TRAIN_ROOM_H

#include "cekernels/nn.h"

static inline uint64_t cek__aligned(uint64_t bytes)
{
    return (bytes + CEK_ALIGNMENT - 1) / CEK_ALIGNMENT * CEK_ALIGNMENT;
}

/* Of memory that is there, or is not (NULL). */
static inline uint64_t cek__room_of(const cek_memory *memory)
{
    return memory ? cek__aligned(cek_memory_bytes(memory)) : 0;
}

#endif
