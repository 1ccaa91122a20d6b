/* search.h - where plugins are looked for, and which files and folders are not trusted.
 *
 * Must not know: what is in a plugin. */
#ifndef CEK_CORE_DEVICE_SEARCH_H
#define CEK_CORE_DEVICE_SEARCH_H

#include "core/base/status.h"
#include "core/device/report.h"

/* Adds a line for every candidate, in the order in which they are to be loaded; lines of status OK may be opened.
 * CEK_INVALID for a malformed CEKERNELS_PLUGINS. */
CEK__CHECKED cek_status cek__search(const cek_engine_options *options, cek__report *report);

#endif
