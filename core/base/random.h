/* random.h - counter-based random numbers on the host: Philox4x32-10.
 *
 * A number is a function of (key, stream, index) and of nothing else: no state, any order, any thread, any number of
 * devices. A seed is a key; whoever draws takes a stream number of its own for each purpose, so that two purposes
 * never share numbers. Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11.
 *
 * Number `index` of a stream is word index % 4 of the block whose counter is
 * { low and high word of index / 4, low and high word of stream }, the key being { low, high word of key }. */
#ifndef CEK_CORE_BASE_RANDOM_H
#define CEK_CORE_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/export.h"

/* Stream numbers: what is drawn in the top 16 bits, which one of them (an epoch, a sample, a layer) below. */
enum {
    CEK__STREAM_PERMUTATION = 1, /* sub: epoch */
    CEK__STREAM_SPLIT = 2,
    CEK__STREAM_GLYPHS = 3,  /* sub: sample */
    CEK__STREAM_INIT = 4,    /* sub: parameter of the model */
    CEK__STREAM_COLOURS = 5, /* sub: sample */
    CEK__STREAM_AUGMENT = 6, /* sub: row; from 16 x epoch on */
    CEK__STREAM_USER = 0x100
};

static inline uint64_t cek__stream(uint32_t purpose, uint64_t sub)
{
    return (uint64_t)purpose << 48 | (sub & 0xffffffffffffu);
}

CEK__SHARED void cek__philox4x32_10(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* The stream's numbers 4 block to 4 block + 3: for who draws many in their order. */
CEK__SHARED void cek__random_block(uint64_t key, uint64_t stream, uint64_t block, uint32_t out[4]);

CEK__SHARED uint32_t cek__random_u32(uint64_t key, uint64_t stream, uint64_t index);

/* Uniform in [0,1): a multiple of 2^-24. */
CEK__SHARED float cek__random_uniform(uint64_t key, uint64_t stream, uint64_t index);

/* out[i] = low + (high - low) * uniform(key, stream, first + i); the same bits as number by number, a block
 * at a time. */
CEK__SHARED void cek__random_fill_uniform(uint64_t key, uint64_t stream, uint64_t first, size_t count, float low,
                                          float high, float *out);

/* A permutation of 0 .. count-1 that depends on (key, stream) alone (Fisher-Yates, without modulo bias). */
CEK__SHARED void cek__random_permutation(uint64_t key, uint64_t stream, size_t count, int64_t *out);

#endif
