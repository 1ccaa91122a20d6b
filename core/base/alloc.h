/* alloc.h - host memory whose exhaustion is a status like any other failure.
 *
 * `out` is the address of a pointer of any type: cek__calloc(n, sizeof *item, &item). It becomes NULL on failure.
 * A product that does not fit size_t is CEK_OUT_OF_MEMORY too. Zero bytes give a pointer that may be freed.
 * Everything here is freed with free(). */
#ifndef CEK_CORE_BASE_ALLOC_H
#define CEK_CORE_BASE_ALLOC_H

#include <stddef.h>

#include "core/base/status.h"

CEK__SHARED CEK__CHECKED cek_status cek__malloc(size_t bytes, void *out);
CEK__SHARED CEK__CHECKED cek_status cek__calloc(size_t count, size_t size, void *out);

/* Uninitialised array of `count` items of `size` bytes. */
CEK__SHARED CEK__CHECKED cek_status cek__alloc_array(size_t count, size_t size, void *out);

/* `alignment` is a power of two of at least sizeof(void *). */
CEK__SHARED CEK__CHECKED cek_status cek__alloc_aligned(size_t alignment, size_t bytes, void *out);

/* Resizes *inout (NULL allowed) to `count` items. On failure *inout is as it was, and still the caller's. */
CEK__SHARED CEK__CHECKED cek_status cek__realloc_array(size_t count, size_t size, void *inout);

CEK__SHARED CEK__CHECKED cek_status cek__strdup(const char *text, void *out);
CEK__SHARED CEK__CHECKED cek_status cek__strndup(const char *text, size_t length, void *out);

/* printf into a string of its own. */
CEK__SHARED CEK__CHECKED cek_status cek__asprintf(void *out, const char *fmt, ...) CEK__PRINTF(2, 3);

/* Gives up `block` (of any allocator; NULL allowed) without freeing it: something that cannot be
 * stopped, such as a device that hangs, may still use it. Noted until the process ends, so that it
 * is no leak to a leak checker. */
CEK__SHARED void cek__abandon(void *block);

/* Frees memory that a device was to write, after the call or the wait answered `status`: a device that is lost or hangs
 * may still do so, and keeps it. */
CEK__SHARED void cek__free_after(cek_status status, void *block);

#endif
