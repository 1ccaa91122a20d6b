/* SPDX-License-Identifier: MIT
 *
 * fail.h - how a plugin talks to its host: the copy of the callbacks, and error texts.
 *
 * Every instance keeps a cek_host of its own, filled in by cek__callbacks_copy(): zeroed where the
 * host is NULL or older, so a callback is either there or NULL. Owns no state. Knows plugin.h
 * alone.
 */
#ifndef CEK_BACKENDS_COMMON_FAIL_H
#define CEK_BACKENDS_COMMON_FAIL_H

#include <stdarg.h>

#include <cekernels/plugin.h>

/* Longest text kept with a failed queue, event or device, with its NUL. */
#define CEK__TEXT_BYTES 256

/* cek__callbacks_copy - what create() was given, in a struct of this plugin's size. A newer host
 * may offer callbacks that this plugin does not know: an offer may be left alone, so unlike
 * descriptors they are not refused. CEK_INVALID if it is smaller than version 1.0's,
 * CEK_UNSUPPORTED for another major. */
cek_status cek__callbacks_copy(const cek_host *given, cek_host *out);

/* cek__host_fail - tells the host one line that names object and cause, and returns the status, so that a refusal reads
 * `return cek__host_fail(host, CEK_INVALID, "mem_alloc: 0 bytes")`. `host` may be NULL. */
cek_status cek__host_fail(const cek_host *host, cek_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));
cek_status cek__host_vfail(const cek_host *host, cek_status status, const char *format, va_list args)
    __attribute__((format(printf, 3, 0), cold));

/* cek__null_refused - CEK_INVALID for an argument that must not be NULL, told to the host that is `steps` pointers
 * behind `handle`; to nobody where that is NULL. See nulls.h. */
cek_status cek__null_refused(const void *handle, int steps, const char *slot, const char *argument)
    __attribute__((cold));

/* cek__host_log - one line for people; nothing where the host has no log. */
void cek__host_log(const cek_host *host, uint32_t level, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* cek__host_option - the value of a setting or NULL. */
const char *cek__host_option(const cek_host *host, const char *key);

/* cek__host_option_number - the setting as a number from `low` to `high`; *out is left alone where there is none.
 * CEK_INVALID, with key, text and range, for anything else. */
cek_status cek__host_option_number(const cek_host *host, const char *key, uint64_t low, uint64_t high, uint64_t *out);

/* cek__amount - a number of bytes for a text: "unknown" for CEK_UNKNOWN. Fills in and returns `text`. */
const char *cek__amount(uint64_t bytes, char text[24]);
#define CEK__AMOUNT(bytes) cek__amount((bytes), (char[24]){ 0 })

/* cek__text_out - copies a text to a caller's buffer of `cap` bytes, NUL-terminated; `text` and `to` may be NULL. */
void cek__text_out(char *to, uint64_t cap, const char *text);

#endif
