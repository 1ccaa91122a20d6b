/* file.h - files in, piece by piece or whole, and files out that are either there completely or not at all.
 *
 * Errors are CEK_IO, name the path and quote the system. Each call blocks as long as the file system does. */
#ifndef CEK_CORE_BASE_FILE_H
#define CEK_CORE_BASE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

/* A regular file being read from its beginning. Its size is known before a byte of it was read, so that what the first
 * bytes promise can be held against it. */
typedef struct cek__file {
    const char *path; /* the caller's, until it is closed */
    uint64_t size;
    int fd;
} cek__file;
#define CEK__FILE_NONE \
    {                  \
        .fd = -1       \
    }

/* CEK_BAD_INPUT if it has more than `limit` bytes. */
CEK__SHARED CEK__CHECKED cek_status cek__file_open(const char *path, uint64_t limit, cek__file *out);
/* The next `size` bytes; a file that has become shorter is CEK_IO. */
CEK__SHARED CEK__CHECKED cek_status cek__file_take(cek__file *file, void *data, size_t size);
CEK__SHARED void cek__file_close(cek__file *file); /* also of CEK__FILE_NONE */

/* All of it. *data has a 0 byte behind its last, which is not counted in *size; it is the caller's (free). */
CEK__SHARED CEK__CHECKED cek_status cek__file_read(const char *path, uint64_t limit, void **data, size_t *size);

/* A file being written under a temporary name beside its place:
 *
 *     CEK_TRY(cek__file_create(path, &writer));
 *     CEK_TRY(cek__file_write(writer, data, size));
 *     CEK_TRY(cek__file_commit(&writer));
 *     ...
 * out:
 *     cek__file_abandon(&writer);
 *
 * Only commit (fsync, rename, fsync of the directory) makes it visible; whatever fails before the rename leaves the
 * previous file as it was and no temporary behind. What a process that was killed left of a save is removed by the next
 * save to the same place. A place that holds anything but a regular file is refused; symbolic links are followed, also
 * where nothing is there yet. The new file keeps the permission bits of the old one. Not for use by two threads at
 * once; two writers of one place are no danger to each other, the last one to commit stays. */
typedef struct cek__file_writer cek__file_writer;

CEK__SHARED CEK__CHECKED cek_status cek__file_create(const char *path, cek__file_writer **out);
CEK__SHARED CEK__CHECKED cek_status cek__file_write(cek__file_writer *writer, const void *data, size_t size);

/* Ends the writer whatever happens; *writer becomes NULL. */
CEK__SHARED CEK__CHECKED cek_status cek__file_commit(cek__file_writer **writer);

/* Removes the temporary file; does nothing for NULL, so it may stand in every `out:` ladder. Keeps the error text. */
CEK__SHARED void cek__file_abandon(cek__file_writer **writer);

#endif
