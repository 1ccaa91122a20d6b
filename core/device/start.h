/* start.h - which plugins are opened and started, and when. */
#ifndef CEK_CORE_DEVICE_START_H
#define CEK_CORE_DEVICE_START_H

#include "core/device/engine.h"

/* Makes candidates of the lines that the search has left in the engine's report. */
CEK__CHECKED cek_status cek__candidates_make(cek_engine *engine);
void cek__candidates_free(cek_engine *engine);

/* Starts every plugin that may be called `name` (`length` characters; NULL: every plugin), if it is not yet. What
 * becomes of each stands in the report; failures are want of host memory, after which the next call goes on,
 * and CEK_TIMEOUT where another thread has been starting one of them for longer than making may take.
 * Threads: any. Blocks: while drivers initialise; no lock is held meanwhile. */
CEK__CHECKED cek_status cek__engine_start(cek_engine *engine, const char *name, size_t length);

#endif
