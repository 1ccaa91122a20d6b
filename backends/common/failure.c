/* SPDX-License-Identifier: MIT
 * failure.c - see failure.h. */
#include "backends/common/failure.h"

#include <stdio.h>

void cek__latch_init(cek__latch *latch)
{
    atomic_init(&latch->set, false);
    pthread_mutex_init(&latch->lock, NULL);
}

void cek__latch_fini(cek__latch *latch)
{
    pthread_mutex_destroy(&latch->lock);
}

void cek__latch_vset(cek__latch *latch, const char *format, va_list args)
{
    pthread_mutex_lock(&latch->lock);
    if (!cek__latched(latch)) {
        vsnprintf(latch->text, sizeof latch->text, format, args);
        atomic_store(&latch->set, true);
    }
    pthread_mutex_unlock(&latch->lock);
}

void cek__latch_set(cek__latch *latch, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    cek__latch_vset(latch, format, args);
    va_end(args);
}

cek_status cek__latch_check(const cek__latch *latch, const cek_host *host, const char *call, uint32_t index)
{
    if (!cek__latched(latch))
        return CEK_OK;
    return cek__host_fail(host, CEK_DEVICE_LOST, "%s: device %u is lost: %s", call, index, latch->text);
}

cek_status cek__latch_status(const cek__latch *latch, char *text, uint64_t cap)
{
    bool lost = cek__latched(latch);
    cek__text_out(text, cap, lost ? latch->text : "");
    return lost ? CEK_DEVICE_LOST : CEK_OK;
}

void cek__failure_set(cek__failure *failure, cek_status status, const char *format, ...)
{
    va_list args;
    if (failure->status)
        return;
    va_start(args, format);
    vsnprintf(failure->text, sizeof failure->text, format, args);
    va_end(args);
    failure->status = status;
}

void cek__failure_inherit(cek__failure *failure, const cek__failure *of)
{
    if (of->status)
        cek__failure_set(failure, of->status, "waited for an event that failed: %.200s", of->text);
}

cek_status cek__failure_check(const cek__failure *failure, const cek_host *host, const char *call)
{
    if (!failure->status)
        return CEK_OK;
    return cek__host_fail(host, failure->status, "%s: the queue failed before: %s", call, failure->text);
}
