/* search.h - where plugins are looked for, and which files and folders are not trusted.
 *
 * Must not know: what is in a plugin. */
#ifndef CEK_CORE_DEVICE_SEARCH_H
#define CEK_CORE_DEVICE_SEARCH_H

#include "core/base/status.h"
#include "core/device/report.h"

/* Adds a line for every candidate, in the order in which they are to be loaded; lines of status
 * CEK_NOT_READY may be opened.
 * CEK_INVALID for a malformed CEKERNELS_PLUGINS. */
CEK__CHECKED cek_status cek__search(const cek_engine_options *options, cek__report *report);

/* A plugin of this project, and why it was left out when that was configured, with what to do about it; "" where it was
 * not. */
typedef struct cek__not_built {
    const char *name, *reason;
} cek__not_built;

/* Adds a line for each that was left out, and that the report does not name as somebody else's file. */
CEK__CHECKED cek_status cek__search_not_built(const cek__not_built *plugins, size_t count, cek__report *report);

/* What a file in a folder says that its plugin is called, *length characters: NAME.so, or NAME-ANYTHING.so. */
const char *cek__plugin_file_name(const char *path, size_t *length);

#endif
