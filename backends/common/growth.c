/* SPDX-License-Identifier: MIT
 * growth.c - see growth.h. */
#include "backends/common/growth.h"

#include <string.h>

#include "backends/common/fail.h"

/* Copies `given_bytes` into `known` zeroed ones; what is beyond must be zero. */
static cek_status copy_in(const cek_host *host, const char *what, const unsigned char *given, uint32_t given_bytes,
                          void *to, uint32_t known)
{
    for (uint32_t i = known; i < given_bytes; i++)
        if (given[i])
            return cek__host_fail(host, CEK_UNSUPPORTED, "%s: byte %u is not zero, but ABI %u.%u knows %u bytes", what,
                                  i, CEK_ABI_MAJOR, CEK_ABI_MINOR, known);
    memset(to, 0, known);
    memcpy(to, given, given_bytes < known ? given_bytes : known);
    return CEK_OK;
}

cek_status cek__struct_in(const cek_host *host, const char *what, const void *given, void *to, uint32_t known)
{
    if (!given)
        return cek__host_fail(host, CEK_INVALID, "%s: NULL", what);
    uint32_t size;
    memcpy(&size, given, sizeof size);
    if (size < known) /* what 1.0 knows is the least that any caller fills in */
        return cek__host_fail(host, CEK_INVALID, "%s: size %u, at least %u", what, size, known);
    cek_status st = copy_in(host, what, given, size, to, known);
    if (!st)
        memcpy(to, &known, sizeof known);
    return st;
}

cek_status cek__element_in(const cek_host *host, const char *what, const void *array, uint64_t index,
                           uint32_t element_bytes, void *to, uint32_t known)
{
    if (element_bytes < known)
        return cek__host_fail(host, CEK_INVALID, "%s: elements of %u bytes, at least %u", what, element_bytes, known);
    return copy_in(host, what, (const unsigned char *)array + index * element_bytes, element_bytes, to, known);
}

cek_status cek__struct_out(const cek_host *host, const char *what, void *to, const void *full, uint32_t known)
{
    uint32_t size;
    if (!to)
        return CEK_OK;
    memcpy(&size, to, sizeof size);
    if (size < known)
        return cek__host_fail(host, CEK_INVALID, "%s: size %u, at least %u", what, size, known);
    memcpy((char *)to + sizeof size, (const char *)full + sizeof size, known - sizeof size);
    return CEK_OK;
}
