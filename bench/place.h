/* place.h - whether files can be written where options say, before the work that they are to hold is begun, and files
 * that are there completely, or as they were before. */
#ifndef BENCH_PLACE_H
#define BENCH_PLACE_H

#include <limits.h>
#include <stdio.h>

#include "bench/bench.h"

/* 0, also of NULL, or an exit code. */
int save_check(const char *path);
/* Whether two paths are one place. */
bool save_same(const char *a, const char *b);

/* A file being written under a name of its own beside its place. */
typedef struct saving {
    const char *path; /* the caller's */
    FILE *to;
    char place[PATH_MAX], temporary[PATH_MAX];
} saving;
/* Complains: 0 or an exit code, and then nothing is to be ended. Links are followed. */
int saving_begin(saving *s, const char *path);
/* Puts it in its place, if `code` is 0 and all was written; else removes it. Complains of what it cannot: `code`, or
 * that exit code. */
int saving_end(saving *s, int code);

#endif
