/* status.h - how a function of this library fails: a status, and a text that names the object and the cause.
 *
 *     cek_status cek__thing_open(const char *path, cek__thing **out)
 *     {
 *         cek_status st;
 *         cek__thing *thing = NULL;
 *         *out = NULL;
 *         CEK_TRY(cek__calloc(1, sizeof *thing, &thing));
 *         if (is_bad(path))
 *             CEK_FAIL(CEK_BAD_INPUT, "%s: what is wrong with it", path);
 *         *out = thing;
 *         return CEK_OK;
 *     out:
 *         cek__thing_close(thing);
 *         return st;
 *     }
 *
 * The text belongs to the calling thread and lives until that thread's next failure. A thread that works for another
 * hands it over: copy cek_error_text() and raise it again there with cek__fail(st, "%s", copy).
 * Must not know: anything above it; it allocates nothing, so it can report that memory ran out. */
#ifndef CEK_CORE_BASE_STATUS_H
#define CEK_CORE_BASE_STATUS_H

#include <stdarg.h>

#include "cekernels/cekernels.h" /* the statuses, cek_error_text, cek_status_name */
#include "core/base/export.h"

/* Both leave through the function's `out:` label with the status in its local `st`. */
#define CEK_TRY(expr)     \
    do {                  \
        st = (expr);      \
        if (st != CEK_OK) \
            goto out;     \
    } while (0)

#define CEK_FAIL(status, ...)                  \
    do {                                       \
        st = cek__fail((status), __VA_ARGS__); \
        goto out;                              \
    } while (0)

/* At the head of a public function: whoever gives NULL where the header does not allow it learns which argument.
 * _AS: under the header's name for it. */
#define CEK__NOT_NULL(argument) CEK__NOT_NULL_AS(argument, argument)
#define CEK__NOT_NULL_AS(argument, name)                                      \
    do {                                                                      \
        if ((argument) == NULL)                                               \
            return cek__fail(CEK_INVALID, "%s: " #name " is NULL", __func__); \
    } while (0)

enum { CEK__ERROR_TEXT_MAX = 1024 }; /* bytes with the final 0; what is longer ends in "..." */

/* Sets this thread's text and returns `status`, which must not be CEK_OK. The arguments may include
 * cek_error_text(). */
CEK__SHARED cek_status cek__fail(cek_status status, const char *fmt, ...) CEK__PRINTF(2, 3);
CEK__SHARED cek_status cek__failv(cek_status status, const char *fmt, va_list args) CEK__PRINTF(2, 0);

/* The same with ": " and the system's text for `error` (an errno value) at the end. Where that is ENOMEM the status is
 * CEK_OUT_OF_MEMORY: the object is not at fault. */
CEK__SHARED cek_status cek__fail_errno(cek_status status, int error, const char *fmt, ...) CEK__PRINTF(3, 4);

/* Puts context and ": " before the text of a failure that is on its way up; returns `status`. */
CEK__SHARED cek_status cek__fail_prefix(cek_status status, const char *fmt, ...) CEK__PRINTF(2, 3);

/* What a status means, in one sentence. */
CEK__SHARED const char *cek__status_text(cek_status status);

#endif
