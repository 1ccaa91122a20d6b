/* sha256.h - SHA-256 (FIPS 180-4), for fingerprints of weights. */
#ifndef CEK_CORE_BASE_SHA256_H
#define CEK_CORE_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/export.h"

typedef struct cek__sha256 {
    uint32_t state[8];
    uint64_t length; /* bytes so far */
    uint8_t block[64];
} cek__sha256;

CEK__SHARED void cek__sha256_init(cek__sha256 *hash);
CEK__SHARED void cek__sha256_update(cek__sha256 *hash, const void *data, size_t bytes);
CEK__SHARED void cek__sha256_final(cek__sha256 *hash, uint8_t digest[32]);

/* Lower-case hex with a final 0. */
CEK__SHARED void cek__sha256_hex(const uint8_t digest[32], char hex[65]);

#endif
