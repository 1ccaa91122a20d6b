/* table.h - the rules of a plugin's table, as plugin.h states them: its size and version, its name, its profile, which
 * slots must be there and which come together.
 *
 * One list of slots for everybody who is handed a table: the loader, and the conformance suite. Must not know: files,
 * dlopen, devices, how errors are reported. */
#ifndef CEK_CORE_TABLE_TABLE_H
#define CEK_CORE_TABLE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "cekernels/plugin.h"

/* A text of cek__table_take fits. */
enum { CEK__TABLE_TEXT_BYTES = 192 };

/* cek__table_take - copies what both sides know of `theirs` into *out, zeros beyond, with the size of *out; a profile
 * of a later minor becomes the highest that is known here. Optional slots that are absent stay NULL; texts still
 * belong to the plugin. Calls nothing of the plugin.
 * False: the table breaks a rule, which `error` tells, without naming the plugin; *out is zeroed then. */
bool cek__table_take(const cek_plugin *theirs, cek_plugin *out, char *error, size_t cap);

/* "cpu": [a-z][a-z0-9_]*, at most 31 characters. */
bool cek__plugin_name_ok(const char *name, size_t length);

#endif
