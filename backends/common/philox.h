/* SPDX-License-Identifier: MIT
 *
 * philox.h - the random numbers of plugin.h section 9: Philox4x32-10 and the meaning of key and counter.
 */
#ifndef CEK_BACKENDS_COMMON_PHILOX_H
#define CEK_BACKENDS_COMMON_PHILOX_H

#include <stdint.h>

/* cek__philox - four words from a counter of four and a key of two. */
static inline void cek__philox(const uint32_t counter[4], const uint32_t key[2], uint32_t word[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3], k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    word[0] = c0, word[1] = c1, word[2] = c2, word[3] = c3;
}

/* cek__random_block - the words of elements 4 * block to 4 * block + 3 of a sample. */
static inline void cek__random_block(uint64_t random_key, uint32_t stream, uint64_t sample, uint64_t block,
                                     uint32_t word[4])
{
    const uint32_t key[2] = { (uint32_t)random_key, (uint32_t)(random_key >> 32) };
    const uint32_t counter[4] = { (uint32_t)block, stream, (uint32_t)sample, (uint32_t)(sample >> 32) };
    cek__philox(counter, key, word);
}

#endif
