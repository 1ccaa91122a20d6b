/* SPDX-License-Identifier: MIT
 *
 * lines.h - the lines of a file of the system's, such as /proc/meminfo, read without taking memory.
 *
 * Such a file is looked at to learn what there is; where memory has run out, "the system does not say" would be a
 * wrong answer, and with it another choice of threads or of sizes.
 *
 *     cek__lines file;
 *     char line[256];
 *     cek__lines_open(&file, "/proc/meminfo");
 *     while (cek__lines_next(&file, line, sizeof line))
 *         ...
 *     cek__lines_close(&file);
 */
#ifndef CEK_BACKENDS_HOST_LINES_H
#define CEK_BACKENDS_HOST_LINES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cek__lines {
    int fd; /* -1: not open */
    size_t at, end;
    char bytes[512];
} cek__lines;

/* A file that is not there has no lines. */
void cek__lines_open(cek__lines *file, const char *path);
/* The next line without its end, cut to `size`, which is above 0. False: there is none. */
bool cek__lines_next(cek__lines *file, char *line, size_t size);
void cek__lines_close(cek__lines *file);

/* cek__line_read - the first line of the file whose path is `root` and the formatted text behind it. False, and "":
 * there is none. */
bool cek__line_read(const char *root, char *line, size_t size, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
