/* SPDX-License-Identifier: MIT
 *
 * cache.c - compiled kernels on disk: $XDG_CACHE_HOME/cekernels/<key>, or ~/.cache where that is not set.
 *
 * An option of the host's names the folder (opencl_cache=FOLDER, "off" for none); without one the
 * usual place is asked of the environment, which is the one setting that is not ours. A file begins
 * with length and hash, of its name and of the bytes behind them: what was cut short, changed or
 * renamed is not believed. Written under another name and renamed, so that nobody reads half of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/common/hash.h"
#include "backends/gpu/gpu.h"

#define PATH_BYTES 512
#define FILE_MAX ((uint64_t)256 << 20)

typedef struct file_head {
    char magic[8];
    uint64_t bytes, hash;
} file_head;
static const char magic[8] = "cekcl02";

static uint64_t hash_of(const char *key, const void *data, uint64_t bytes)
{
    return cek__hash(cek__hash_text(CEK__HASH_START, key), data, bytes);
}

/* The folder, made where it is missing. False: there is none. */
static bool folder_get(const cek_host *host, const char *option, char *to, bool make)
{
    const char *named = cek__host_option(host, option), *base;
    int length;
    if (named && *named != '/')
        return false;
    if (named)
        length = snprintf(to, PATH_BYTES, "%s", named);
    else if ((base = secure_getenv("XDG_CACHE_HOME")) && *base == '/')
        length = snprintf(to, PATH_BYTES, "%s/cekernels", base);
    else if ((base = secure_getenv("HOME")) && *base == '/')
        length = snprintf(to, PATH_BYTES, "%s/.cache/cekernels", base);
    else
        return false;
    if (length < 0 || length >= PATH_BYTES)
        return false;
    for (char *slash = strchr(to + 1, '/'); make && slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(to, 0700);
        *slash = '/';
    }
    return !make || !mkdir(to, 0700) || errno == EEXIST;
}

cek_status cek__cache_check(const cek_host *host, const char *option)
{
    const char *named = cek__host_option(host, option);
    char folder[PATH_BYTES];
    struct stat about;
    if (!named || !strcmp(named, "off"))
        return CEK_OK;
    if (*named != '/')
        return cek__host_fail(host, CEK_INVALID, "option %s=\"%.200s\": neither an absolute path nor \"off\"", option,
                              named);
    errno = ENAMETOOLONG; /* unless there is another reason */
    if (!folder_get(host, option, folder, true) || stat(folder, &about))
        cek__host_log(host, CEK_LOG_WARN, "%s=%.200s: %s; no kernel is kept", option, named, strerror(errno));
    else if (!S_ISDIR(about.st_mode))
        cek__host_log(host, CEK_LOG_WARN, "%s=%.200s: not a folder; no kernel is kept", option, named);
    else if (access(folder, W_OK | X_OK)) /* which may be meant so, with all kernels in it */
        cek__host_log(host, CEK_LOG_INFO, "%s=%.200s: %s; new kernels are not kept", option, named, strerror(errno));
    return CEK_OK;
}

unsigned char *cek__cache_read(const cek_host *host, const char *option, const char *key, uint64_t *bytes)
{
    char folder[PATH_BYTES], path[PATH_BYTES + 128];
    file_head head;
    struct stat about;
    unsigned char *data = NULL;
    if (!folder_get(host, option, folder, false))
        return NULL;
    snprintf(path, sizeof path, "%s/%s", folder, key);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe that stands there is not waited for */
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (!file) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    /* What is loaded is code: it must be ours. */
    bool good = !fstat(fd, &about) && S_ISREG(about.st_mode) && about.st_uid == geteuid() &&
                !(about.st_mode & (S_IWGRP | S_IWOTH)) && fread(&head, sizeof head, 1, file) == 1 &&
                !memcmp(head.magic, magic, sizeof magic) && head.bytes && head.bytes <= FILE_MAX &&
                (uint64_t)about.st_size == sizeof head + head.bytes && (data = malloc(head.bytes)) &&
                fread(data, 1, head.bytes, file) == head.bytes && hash_of(key, data, head.bytes) == head.hash;
    fclose(file);
    if (!good) {
        cek__host_log(host, CEK_LOG_INFO, "%s: damaged, or not ours; the kernel is compiled again", path);
        free(data);
        return NULL;
    }
    *bytes = head.bytes;
    return data;
}

void cek__cache_write(const cek_host *host, const char *option, const char *key, const void *data, uint64_t bytes)
{
    char folder[PATH_BYTES], path[PATH_BYTES + 128], temporary[PATH_BYTES + 160];
    file_head head = { .bytes = bytes, .hash = hash_of(key, data, bytes) };
    memcpy(head.magic, magic, sizeof magic);
    if (!folder_get(host, option, folder, true))
        return;
    snprintf(path, sizeof path, "%s/%s", folder, key);
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return;
    FILE *file = fdopen(fd, "w");
    bool good = file && fwrite(&head, sizeof head, 1, file) == 1 && fwrite(data, 1, bytes, file) == bytes;
    if (file)
        good = !fclose(file) && good;
    else
        close(fd);
    if (!good || rename(temporary, path))
        unlink(temporary);
}
