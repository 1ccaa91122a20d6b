/* SPDX-License-Identifier: MIT
 *
 * failure.h - failures that stay: the loss of a device, and what stuck to a queue. The first one counts, with its text.
 *
 * A latch may be set and read by any thread at once; a failure belongs to whoever owns what it stuck to. Neither knows
 * a device or a queue.
 */
#ifndef CEK_BACKENDS_COMMON_FAILURE_H
#define CEK_BACKENDS_COMMON_FAILURE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "backends/common/fail.h"

/* --- the latch of a lost device ----------------------------------------------------------------------------------- */

typedef struct cek__latch {
    atomic_bool set;      /* once, after the text, which never changes again */
    pthread_mutex_t lock; /* of whoever sets it */
    char text[CEK__TEXT_BYTES];
} cek__latch;

void cek__latch_init(cek__latch *latch);
void cek__latch_fini(cek__latch *latch);

/* cek__latch_set - the device is lost, and why; the first reason stays. */
void cek__latch_set(cek__latch *latch, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
void cek__latch_vset(cek__latch *latch, const char *format, va_list args) __attribute__((format(printf, 2, 0), cold));

static inline bool cek__latched(const cek__latch *latch)
{
    return atomic_load(&latch->set);
}

/* cek__latch_check - CEK_OK, or CEK_DEVICE_LOST, told to the host with the reason. `call` names the slot that asks,
 * `index` the device. */
cek_status cek__latch_check(const cek__latch *latch, const cek_host *host, const char *call, uint32_t index);

/* cek__latch_status - the slot device_status: the reason, or an empty text, goes to `text`. */
cek_status cek__latch_status(const cek__latch *latch, char *text, uint64_t cap);

/* --- what stuck to a queue ---------------------------------------------------------------------------------------- */

/* All zero: nothing. An event copies that of its queue. */
typedef struct cek__failure {
    cek_status status;
    char text[CEK__TEXT_BYTES];
} cek__failure;

/* cek__failure_set - work failed; the first failure stays. */
void cek__failure_set(cek__failure *failure, cek_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* cek__failure_inherit - sets it for having waited for an event that failed, where that one did. */
void cek__failure_inherit(cek__failure *failure, const cek__failure *of);

/* cek__failure_check - CEK_OK, or what stuck, told to the host: `call` is refused for it. */
cek_status cek__failure_check(const cek__failure *failure, const cek_host *host, const char *call);

#endif
