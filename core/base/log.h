/* log.h - messages for whoever runs the program; silent until the application calls cek_log_set.
 *
 * Messages are remarks, never the report of a failure: a failure is a status with its text (status.h). */
#ifndef CEK_CORE_BASE_LOG_H
#define CEK_CORE_BASE_LOG_H

#include "cekernels/cekernels.h"
#include "core/base/export.h"

/* `level` is CEK_LOG_ERROR (something failed that no caller could be told about), CEK_LOG_WARN
 * (goes on, though not as one would expect), CEK_LOG_INFO (what was chosen: devices, kernels,
 * shares) or CEK_LOG_DEBUG. */
CEK__SHARED void cek__log(int level, const char *fmt, ...) CEK__PRINTF(2, 3);

#endif
