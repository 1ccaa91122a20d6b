/* SPDX-License-Identifier: MIT
 *
 * hash.h - FNV-1a in 64 bits, for numeric ids and layout ids. Not for anything that an adversary may choose.
 */
#ifndef CEK_BACKENDS_COMMON_HASH_H
#define CEK_BACKENDS_COMMON_HASH_H

#include <stdint.h>
#include <string.h>

#define CEK__HASH_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t cek__hash(uint64_t hash, const void *data, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static inline uint64_t cek__hash_text(uint64_t hash, const char *text)
{
    return cek__hash(hash, text, strlen(text) + 1); /* with its end, so that "a" "bc" and "ab" "c" differ */
}

static inline uint64_t cek__hash_number(uint64_t hash, uint64_t number)
{
    return cek__hash(hash, &number, sizeof number);
}

#endif
