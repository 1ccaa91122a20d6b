/* log.h - messages for whoever runs the program; silent until the application sets a callback.
 *
 * Messages are remarks, never the report of a failure: a failure is a status with its text (status.h). */
#ifndef CEK_CORE_BASE_LOG_H
#define CEK_CORE_BASE_LOG_H

#include "core/base/export.h"

typedef enum cek__log_level {
    CEK__LOG_NONE = 0,
    CEK__LOG_ERROR = 1,   /* something failed that no caller could be told about */
    CEK__LOG_WARNING = 2, /* goes on, though not as one would expect */
    CEK__LOG_INFO = 3,    /* what was chosen: devices, kernels, shares */
    CEK__LOG_DEBUG = 4
} cek__log_level;

/* `text` is one line without line end and lives during the call only. Called from any thread, several at once. */
typedef void (*cek__log_fn)(void *user, int level, const char *text);

/* Process-wide. Messages up to `level` go to `fn` from now on; NULL turns logging off. Once this has returned the
 * former callback is not running and will not be called again; so it must not be called from within a callback. */
CEK__SHARED void cek__log_set(cek__log_fn fn, void *user, int level);

CEK__SHARED void cek__log(int level, const char *fmt, ...) CEK__PRINTF(2, 3);

#endif
