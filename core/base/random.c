/* random.c - Philox4x32-10 and what is drawn from it on the host.
 *
 * Owns: no state at all. Devices draw their own numbers (plugin.h fixes their counters); what is drawn here is the
 * initial weights, the order of samples, splits and generated data. */
#include "core/base/random.h"

enum { PHILOX_ROUNDS = 10 };

void cek__philox4x32_10(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];

    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0; /* multipliers and key increments as published */
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;

        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

void cek__random_block(uint64_t key, uint64_t stream, uint64_t block, uint32_t out[4])
{
    uint32_t counter[4] = { (uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream, (uint32_t)(stream >> 32) };
    uint32_t words[2] = { (uint32_t)key, (uint32_t)(key >> 32) };

    cek__philox4x32_10(counter, words, out);
}

/* 24 bits are what a float holds exactly: every value is equally likely and 1 is never reached. */
static float uniform_of(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

uint32_t cek__random_u32(uint64_t key, uint64_t stream, uint64_t index)
{
    uint32_t words[4];

    cek__random_block(key, stream, index / 4, words);
    return words[index % 4];
}

float cek__random_uniform(uint64_t key, uint64_t stream, uint64_t index)
{
    return uniform_of(cek__random_u32(key, stream, index));
}

void cek__random_fill_uniform(uint64_t key, uint64_t stream, uint64_t first, size_t count, float low, float high,
                              float *out)
{
    uint32_t words[4];

    for (size_t i = 0; i < count; i++) {
        uint64_t index = first + i;

        if (i == 0 || index % 4 == 0)
            cek__random_block(key, stream, index / 4, words);
        out[i] = low + (high - low) * uniform_of(words[index % 4]);
    }
}

/* The `draw`-th 64-bit number of the stream. */
static uint64_t u64_at(uint64_t key, uint64_t stream, uint64_t draw)
{
    uint32_t words[4];

    cek__random_block(key, stream, draw / 2, words);
    return draw % 2 == 0 ? words[0] | (uint64_t)words[1] << 32 : words[2] | (uint64_t)words[3] << 32;
}

/* Uniform in [0, bound) by multiplication; the few products that would favour some results are drawn again
 * (Lemire, "Fast random integer generation in an interval", 2019). */
static uint64_t below(uint64_t key, uint64_t stream, uint64_t *draw, uint64_t bound)
{
    uint64_t favoured = -bound % bound; /* 2^64 mod bound */
    unsigned __int128 product;

    do
        product = (unsigned __int128)u64_at(key, stream, (*draw)++) * bound;
    while ((uint64_t)product < favoured);
    return (uint64_t)(product >> 64);
}

void cek__random_permutation(uint64_t key, uint64_t stream, size_t count, int64_t *out)
{
    uint64_t draw = 0;

    for (size_t i = 0; i < count; i++)
        out[i] = (int64_t)i;
    for (size_t left = count; left > 1; left--) {
        size_t j = (size_t)below(key, stream, &draw, left);
        int64_t swap = out[left - 1];

        out[left - 1] = out[j];
        out[j] = swap;
    }
}
