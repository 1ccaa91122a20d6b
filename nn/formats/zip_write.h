/* zip_write.h - a zip archive being written, which is there completely or not at all.
 *
 * Entries are given whole; each is kept as it is or deflated. An archive has room for 4 GiB and 65,535 entries:
 * numbers of 64 bits are read (zip.h), not written. Must not know: what the entries mean. */
#ifndef CEK_NN_FORMATS_ZIP_WRITE_H
#define CEK_NN_FORMATS_ZIP_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

enum { CEK__ZIP_NAME_MAX = 1024 };

typedef struct cek__zip_writer cek__zip_writer;

CEK__SHARED CEK__CHECKED cek_status cek__zip_create(const char *path, cek__zip_writer **out);
/* Name and bytes are the caller's again. Errors: CEK_UNSUPPORTED: what the archive has no room for. */
CEK__SHARED CEK__CHECKED cek_status cek__zip_add(cek__zip_writer *zip, const char *name, const uint8_t *bytes,
                                                 size_t size, bool deflated);
/* Ends the writer whatever happens. */
CEK__SHARED CEK__CHECKED cek_status cek__zip_commit(cek__zip_writer **zip);
void cek__zip_abandon(cek__zip_writer **zip); /* *zip may be NULL */

#endif
