/* SPDX-License-Identifier: MIT
 * fail.c - see fail.h. */
#include "backends/common/fail.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cek_status cek__callbacks_copy(const cek_host *given, cek_host *out)
{
    memset(out, 0, sizeof *out);
    out->size = sizeof *out;
    if (!given)
        return CEK_OK;
    if (given->size < sizeof *given)
        return CEK_INVALID;
    if (given->abi >> 16 != CEK_ABI_MAJOR)
        return CEK_UNSUPPORTED;
    memcpy(out, given, sizeof *out);
    out->size = sizeof *out;
    return CEK_OK;
}

cek_status cek__host_vfail(const cek_host *host, cek_status status, const char *format, va_list args)
{
    if (host && host->fail) {
        char text[2 * CEK__TEXT_BYTES];
        vsnprintf(text, sizeof text, format, args);
        host->fail(host->user, status, text);
    }
    return status;
}

cek_status cek__host_fail(const cek_host *host, cek_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    cek__host_vfail(host, status, format, args);
    va_end(args);
    return status;
}

cek_status cek__null_refused(const void *handle, int steps, const char *slot, const char *argument)
{
    cek_host host;
    for (int i = 0; handle && i < steps; i++)
        memcpy(&handle, handle, sizeof handle);
    (void)cek__callbacks_copy(handle, &host); /* zeroed where there is none that can be spoken to */
    return cek__host_fail(&host, CEK_INVALID, "%s: %s is NULL", slot, argument);
}

void cek__host_log(const cek_host *host, uint32_t level, const char *format, ...)
{
    if (!host || !host->log)
        return;
    char text[2 * CEK__TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    host->log(host->user, level, text);
}

const char *cek__host_option(const cek_host *host, const char *key)
{
    return host && host->option ? host->option(host->user, key) : NULL;
}

cek_status cek__host_option_number(const cek_host *host, const char *key, uint64_t low, uint64_t high, uint64_t *out)
{
    const char *text = cek__host_option(host, key);
    if (!text || !*text)
        return CEK_OK;
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *at - '0', &value))
            break;
    if (*at || value < low || value > high)
        return cek__host_fail(host, CEK_INVALID, "option %s=\"%.64s\": not a number from %llu to %llu", key, text,
                              (unsigned long long)low, (unsigned long long)high);
    *out = value;
    return CEK_OK;
}

void cek__text_out(char *to, uint64_t cap, const char *text)
{
    if (!to || !cap)
        return;
    uint64_t length = text ? strlen(text) : 0;
    if (length >= cap)
        length = cap - 1;
    if (length)
        memcpy(to, text, length);
    to[length] = 0;
}

const char *cek__amount(uint64_t bytes, char text[24])
{
    if (bytes == CEK_UNKNOWN)
        return "unknown";
    snprintf(text, 24, "%" PRIu64, bytes);
    return text;
}
