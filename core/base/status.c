/* status.c - statuses by name, and the thread-local text of the latest failure.
 *
 * Owns: the one list of statuses with names and sentences, and one text buffer per thread.
 * Must not know: who fails, or what becomes of the text. Allocates nothing and locks nothing. */
#include "core/base/status.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/base/text.h"

/* Every status once: the constant of plugin.h, its name, what it means in a sentence. */
#define STATUS_LIST(X)                                                                 \
    X(CEK_OK, "ok", "no failure")                                                      \
    X(CEK_INVALID, "invalid", "an argument or a call is against the contract")         \
    X(CEK_UNSUPPORTED, "unsupported", "valid, but not available here")                 \
    X(CEK_UNAVAILABLE, "unavailable", "hardware, driver or library is absent")         \
    X(CEK_OUT_OF_MEMORY, "out_of_memory", "memory ran out or a limit was reached")     \
    X(CEK_DEVICE_LOST, "device_lost", "the device failed and cannot be used any more") \
    X(CEK_TIMEOUT, "timeout", "the time allowed has passed")                           \
    X(CEK_NOT_READY, "not_ready", "the work has not come that far")                    \
    X(CEK_INTERNAL, "internal", "a defect in cekernels, a plugin or a driver")         \
    X(CEK_BAD_INPUT, "bad_input", "a file or a text does not hold what it should")     \
    X(CEK_IO, "io", "the system refused to read or write")                             \
    X(CEK_NOT_FOUND, "not_found", "nothing has that name")                             \
    X(CEK_CANCELLED, "cancelled", "stopped on request")                                \
    X(CEK_NO_DEVICE, "no_device", "no device fits the request")                        \
    X(CEK_BAD_PLUGIN, "bad_plugin", "a plugin broke the ABI or was refused")           \
    X(CEK_NOT_FINITE, "not_finite", "a loss or a weight is NaN or infinite")

static _Thread_local char error_text[CEK__ERROR_TEXT_MAX];

/* Formats into a local buffer first: the arguments may point into the thread's own text. What they quote may come from
 * anywhere; a text that does not fit ends in "..." so that nobody takes it for whole. */
cek_status cek__failv(cek_status status, const char *fmt, va_list args)
{
    char text[CEK__ERROR_TEXT_MAX];
    int length = vsnprintf(text, sizeof text, fmt, args);

    if (length < 0)
        snprintf(text, sizeof text, "%s", cek__status_text(status));
    cek_text_printable(text);
    if (length >= (int)sizeof text)
        cek__text_cut(text, sizeof text);
    memcpy(error_text, text, strlen(text) + 1);
    return status;
}

cek_status cek__fail(cek_status status, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    cek__failv(status, fmt, args);
    va_end(args);
    return status;
}

cek_status cek__fail_errno(cek_status status, int error, const char *fmt, ...)
{
    char reason[128];
    va_list args;

    if (error == ENOMEM)
        status = CEK_OUT_OF_MEMORY;
    va_start(args, fmt);
    cek__failv(status, fmt, args);
    va_end(args);
    return cek__fail(status, "%s: %s", error_text, strerror_r(error, reason, sizeof reason));
}

cek_status cek__fail_prefix(cek_status status, const char *fmt, ...)
{
    char cause[CEK__ERROR_TEXT_MAX];
    va_list args;

    memcpy(cause, error_text, sizeof cause);
    va_start(args, fmt);
    cek__failv(status, fmt, args);
    va_end(args);
    return cek__fail(status, "%s: %s", error_text, cause);
}

const char *cek_error_text(void)
{
    return error_text;
}

const char *cek_status_name(cek_status status)
{
    switch (status) {
#define NAME(constant, name, text) \
    case constant: return name;
        STATUS_LIST(NAME)
#undef NAME
    default: return "unknown";
    }
}

const char *cek__status_text(cek_status status)
{
    switch (status) {
#define TEXT(constant, name, text) \
    case constant: return text;
        STATUS_LIST(TEXT)
#undef TEXT
    default: return "a status that this version does not know";
    }
}
