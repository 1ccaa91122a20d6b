/* SPDX-License-Identifier: MIT
 *
 * growth.h - the size rules of plugin.h section 1, for structs that come in and structs that go out.
 *
 * Owns no state. Knows nothing of what the structs mean.
 */
#ifndef CEK_BACKENDS_COMMON_GROWTH_H
#define CEK_BACKENDS_COMMON_GROWTH_H

#include <cekernels/plugin.h>

/* cek__struct_in - copies a struct that starts with its size into `to`, of `known` bytes; to's size
 * becomes `known`. `what` names the struct in error texts. CEK_INVALID for NULL or a smaller size
 * (no caller has less than version 1.0; once a struct grows in a later minor, that size stays the
 * least); CEK_UNSUPPORTED where a byte beyond `known` is not zero. */
cek_status cek__struct_in(const cek_host *host, const char *what, const void *given, void *to, uint32_t known);

/* cek__element_in - the same for element `index` of an array whose elements have `element_bytes` and no size of their
 * own: CEK_INVALID where that is below `known`, since what is missing would be read as zeros. */
cek_status cek__element_in(const cek_host *host, const char *what, const void *array, uint64_t index,
                           uint32_t element_bytes, void *to, uint32_t known);

/* cek__struct_out - writes `full` (of `known` bytes) to a caller's struct: at most its size, which
 * it keeps. NULL is fine; a size below version 1.0's is CEK_INVALID, and nothing is written. */
cek_status cek__struct_out(const cek_host *host, const char *what, void *to, const void *full, uint32_t known);

#endif
