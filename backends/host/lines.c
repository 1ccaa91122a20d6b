/* SPDX-License-Identifier: MIT
 *
 * lines.c - see lines.h.
 */
#include "backends/host/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void cek__lines_open(cek__lines *file, const char *path)
{
    file->at = file->end = 0;
    file->fd = open(path, O_RDONLY | O_CLOEXEC);
}

/* The next byte; -1 at the end. */
static int byte_next(cek__lines *file)
{
    ssize_t got = 1;
    if (file->at == file->end) {
        while ((got = read(file->fd, file->bytes, sizeof file->bytes)) < 0 && errno == EINTR)
            ;
        file->at = 0;
        file->end = got > 0 ? (size_t)got : 0;
    }
    return got > 0 ? (unsigned char)file->bytes[file->at++] : -1;
}

bool cek__lines_next(cek__lines *file, char *line, size_t size)
{
    size_t used = 0;
    int c = byte_next(file);
    if (c < 0)
        return false;
    for (; c >= 0 && c != '\n'; c = byte_next(file))
        if (used + 1 < size)
            line[used++] = (char)c;
    line[used] = 0;
    return true;
}

void cek__lines_close(cek__lines *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

bool cek__line_read(const char *root, char *line, size_t size, const char *format, ...)
{
    char path[512];
    va_list args;
    int used = snprintf(path, sizeof path, "%s", root);
    va_start(args, format);
    used += vsnprintf(path + used, sizeof path - (size_t)used, format, args);
    va_end(args);
    line[0] = '\0';
    if (used < 0 || used >= (int)sizeof path)
        return false;
    cek__lines file;
    cek__lines_open(&file, path);
    const bool ok = cek__lines_next(&file, line, size);
    cek__lines_close(&file);
    return ok;
}
