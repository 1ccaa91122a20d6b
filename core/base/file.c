/* file.c - reads files; replaces files atomically.
 *
 * Owns: the temporary file of a save from its creation to the rename or its removal.
 * Must not know: what is in a file. Every system call is a site of CEK__FAULT_FILE. */
#include "core/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/fault.h"
#include "core/base/nearest.h"
#include "core/base/temporary.h"

struct cek__file_writer {
    char *path;      /* as the caller named it, for errors */
    char *place;     /* where it goes: `path` with symbolic links followed */
    char *directory; /* of `place` */
    char *temporary; /* in `directory`; NULL once renamed or removed */
    int fd;          /* -1 once closed */
    int lock;        /* the same open file, so that closing `fd` does not give up its lock */
};

/* True if a test wants this system call to fail. */
static bool faulty(void)
{
    if (!cek__fault_hit(CEK__FAULT_FILE))
        return false;
    errno = EIO;
    return true;
}

/* ---- reading ---- */

cek_status cek__file_take(cek__file *file, void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = faulty() ? -1 : read(file->fd, (char *)data + done, size - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return cek__fail_errno(CEK_IO, errno, "%s: read failed", file->path);
        if (n == 0)
            return cek__fail(CEK_IO, "%s: became shorter while it was read", file->path);
        done += (size_t)n;
    }
    return CEK_OK;
}

/* A name that is not there is told with the nearest of those that are. */
static cek_status open_failed(const char *path, int error)
{
    cek__nearest near;
    cek_status st = cek__fail_errno(CEK_IO, error, "%s: cannot be opened", path);

    return error == ENOENT ? cek__fail(st, "%s%s", cek_error_text(), cek__nearest_file(&near, path)) : st;
}

cek_status cek__file_open(const char *path, uint64_t limit, cek__file *out)
{
    cek_status st;
    struct stat info;
    /* O_NONBLOCK: opening a FIFO must not wait for a writer; it means nothing for a regular file. */
    cek__file file = { .path = path, .fd = faulty() ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) };

    *out = (cek__file)CEK__FILE_NONE;
    if (file.fd < 0)
        return open_failed(path, errno);
    if (faulty() || fstat(file.fd, &info) != 0) {
        st = cek__fail_errno(CEK_IO, errno, "%s: its size cannot be read", path);
        goto out;
    }
    if (!S_ISREG(info.st_mode))
        CEK_FAIL(CEK_IO, "%s: not a regular file", path);
    file.size = (uint64_t)info.st_size;
    if (file.size > limit)
        CEK_FAIL(CEK_BAD_INPUT, "%s: %" PRIu64 " bytes, at most %" PRIu64 " are read", path, file.size, limit);
    *out = file;
    return CEK_OK;
out:
    cek__file_close(&file);
    return st;
}

void cek__file_close(cek__file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

cek_status cek__file_read(const char *path, uint64_t limit, void **data, size_t *size)
{
    cek_status st;
    cek__file file;
    char *bytes = NULL;

    *data = NULL;
    *size = 0;
    CEK_TRY(cek__file_open(path, limit, &file));
    CEK_TRY(cek__malloc(file.size + 1, &bytes));
    CEK_TRY(cek__file_take(&file, bytes, file.size));
    bytes[file.size] = '\0';
    *data = bytes;
    *size = file.size;
    bytes = NULL;
out:
    cek__file_close(&file);
    free(bytes);
    return st;
}

/* ---- writing ---- */

static void writer_free(cek__file_writer *writer)
{
    if (writer == NULL)
        return;
    if (writer->fd >= 0)
        close(writer->fd);
    if (writer->temporary != NULL)
        unlink(writer->temporary);
    if (writer->lock >= 0)
        close(writer->lock);
    free(writer->path);
    free(writer->place);
    free(writer->directory);
    free(writer->temporary);
    free(writer);
}

/* Follows symbolic links as opening would, to a place where perhaps nothing is yet. */
static cek_status place_find(cek__file_writer *writer)
{
    enum { LINKS_MAX = 40 }; /* as the kernel */
    cek_status st;
    char target[PATH_MAX], *next;
    const char *slash;
    ssize_t length;

    CEK_TRY(cek__strdup(writer->path, &writer->place));
    for (int links = 0; (length = readlink(writer->place, target, sizeof target - 1)) >= 0; links++) {
        if (links == LINKS_MAX) {
            st = cek__fail_errno(CEK_IO, ELOOP, "%s: cannot be followed", writer->path);
            goto out;
        }
        target[length] = '\0';
        slash = target[0] == '/' ? NULL : strrchr(writer->place, '/');
        CEK_TRY(cek__asprintf(&next, "%.*s%s", slash != NULL ? (int)(slash + 1 - writer->place) : 0, writer->place,
                              target));
        free(writer->place);
        writer->place = next;
    }
    slash = strrchr(writer->place, '/');
    if (slash == NULL)
        return cek__strdup(".", &writer->directory);
    return cek__strndup(writer->place, slash == writer->place ? 1 : (size_t)(slash - writer->place),
                        &writer->directory);
out:
    return st;
}

static cek_status temporary_open(cek__file_writer *writer)
{
    const char *slash = strrchr(writer->place, '/');
    char *path = NULL;
    cek_status st;

    CEK_TRY(cek__temporary_create(writer->directory, slash != NULL ? slash + 1 : writer->place, &path, &writer->fd));
    if (writer->fd < 0) {
        st = cek__fail_errno(CEK_IO, errno, "%s: no temporary file can be made in %s", writer->path, writer->directory);
        goto out;
    }
    writer->temporary = path;
    path = NULL;
    writer->lock = faulty() ? -1 : fcntl(writer->fd, F_DUPFD_CLOEXEC, 0);
    if (writer->lock < 0)
        st = cek__fail_errno(CEK_IO, errno, "%s: no temporary file can be held", writer->path);
out:
    free(path);
    return st;
}

cek_status cek__file_create(const char *path, cek__file_writer **out)
{
    cek_status st;
    cek__file_writer *writer = NULL;
    struct stat old;
    bool exists;

    *out = NULL;
    CEK_TRY(cek__calloc(1, sizeof *writer, &writer));
    writer->fd = writer->lock = -1;
    CEK_TRY(cek__strdup(path, &writer->path));
    CEK_TRY(place_find(writer));
    exists = stat(writer->place, &old) == 0;
    if (exists && !S_ISREG(old.st_mode))
        CEK_FAIL(CEK_IO, "%s: cannot be replaced, it is not a regular file", path);
    CEK_TRY(temporary_open(writer));
    if (exists && (faulty() || fchmod(writer->fd, old.st_mode & 0777) != 0)) {
        st = cek__fail_errno(CEK_IO, errno, "%s: its permissions cannot be kept", path);
        goto out;
    }
    *out = writer;
    return CEK_OK;
out:
    writer_free(writer);
    return st;
}

cek_status cek__file_write(cek__file_writer *writer, const void *data, size_t size)
{
    const char *bytes = data;

    while (size > 0) {
        ssize_t n = faulty() ? -1 : write(writer->fd, bytes, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return cek__fail_errno(CEK_IO, errno, "%s: write failed", writer->path);
        if (n == 0) /* asked again, it would say so again */
            return cek__fail(CEK_IO, "%s: write failed: the system takes nothing more", writer->path);
        bytes += n;
        size -= (size_t)n;
    }
    return CEK_OK;
}

/* Makes the rename last through a power cut. A file system that cannot sync a directory says EINVAL: no failure. */
static cek_status directory_sync(const cek__file_writer *writer)
{
    int fd = faulty() ? -1 : open(writer->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = 0;

    if (fd < 0)
        return cek__fail_errno(CEK_IO, errno, "%s: written, but its directory cannot be opened", writer->path);
    if (faulty() || fsync(fd) != 0)
        error = errno;
    close(fd);
    if (error != 0 && error != EINVAL)
        return cek__fail_errno(CEK_IO, error, "%s: written, but its directory cannot be synced", writer->path);
    return CEK_OK;
}

static int writer_close(cek__file_writer *writer)
{
    int fd = writer->fd;

    writer->fd = -1;
    if (faulty()) {
        close(fd);
        errno = EIO;
        return -1;
    }
    return close(fd);
}

cek_status cek__file_commit(cek__file_writer **writer_ref)
{
    cek__file_writer *writer = *writer_ref;
    cek_status st = CEK_OK;

    *writer_ref = NULL;
    if (faulty() || fsync(writer->fd) != 0)
        st = cek__fail_errno(CEK_IO, errno, "%s: fsync failed", writer->path);
    else if (writer_close(writer) != 0) /* where a network file system reports a full disk */
        st = cek__fail_errno(CEK_IO, errno, "%s: close failed", writer->path);
    else if (faulty() || rename(writer->temporary, writer->place) != 0)
        st = cek__fail_errno(CEK_IO, errno, "%s: rename failed", writer->path);
    else {
        free(writer->temporary);
        writer->temporary = NULL;
        st = directory_sync(writer);
    }
    writer_free(writer);
    return st;
}

void cek__file_abandon(cek__file_writer **writer)
{
    writer_free(*writer);
    *writer = NULL;
}
