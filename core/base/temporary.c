/* temporary.c - see temporary.h.
 *
 * Owns: the names of temporary files, and who may remove one: its writer, or who holds its lock. */
#include "core/base/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/fault.h"
#include "core/base/sha256.h"

enum { PREFIX_MAX = 40, NUMBER_MAX = 1000 };

/* Short whatever the name is: a name may be as long as the file system allows. */
static void prefix_of(const char *name, char prefix[PREFIX_MAX])
{
    cek__sha256 hash;
    uint8_t digest[32];
    char hex[65];

    cek__sha256_init(&hash);
    cek__sha256_update(&hash, name, strlen(name));
    cek__sha256_final(&hash, digest);
    cek__sha256_hex(digest, hex);
    snprintf(prefix, PREFIX_MAX, ".cekernels-%.16s-", hex);
}

/* True if `name` still is the file of `fd`, and a plain one of our own: no link that somebody laid out. */
static bool is_ours(int directory, const char *name, int fd)
{
    struct stat there, ours;

    return fstat(fd, &ours) == 0 && S_ISREG(ours.st_mode) && ours.st_uid == geteuid() &&
           fstatat(directory, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && there.st_dev == ours.st_dev &&
           there.st_ino == ours.st_ino;
}

/* Removes it if nobody is writing it. Between the lock and the removal nobody else can: its writer is gone, and others
 * who clean up do not get the lock. */
static void leftover_remove(int directory, const char *name)
{
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_ours(directory, name, fd))
        unlinkat(directory, name, 0);
    close(fd);
}

static void leftovers_remove(DIR *directory, const char *prefix)
{
    struct dirent *entry;

    while ((entry = readdir(directory)) != NULL)
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            leftover_remove(dirfd(directory), entry->d_name);
}

/* Locked, and still there: between its creation and the lock somebody who cleans up may have taken it for a leftover.
 * Where the file system has no locks nobody can. */
static bool is_held(int fd)
{
    struct stat info;

    return (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) && fstat(fd, &info) == 0 && info.st_nlink > 0;
}

cek_status cek__temporary_create(const char *directory, const char *name, char **path, int *fd)
{
    char prefix[PREFIX_MAX];
    DIR *folder = opendir(directory);
    cek_status st = CEK_OK;

    *path = NULL;
    *fd = -1;
    prefix_of(name, prefix);
    if (folder != NULL) { /* it may be one that can be written and not listed */
        leftovers_remove(folder, prefix);
        closedir(folder);
    }
    errno = EEXIST;
    for (int i = 0; i < NUMBER_MAX && *fd < 0 && errno == EEXIST; i++) {
        free(*path);
        CEK_TRY(cek__asprintf(path, "%s/%s%d.tmp", directory, prefix, i));
        if (cek__fault_hit(CEK__FAULT_FILE)) {
            errno = EIO;
            break;
        }
        *fd = open(*path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (*fd >= 0 && !is_held(*fd)) {
            close(*fd);
            *fd = -1;
            errno = EEXIST;
        }
    }
out:
    return st;
}
