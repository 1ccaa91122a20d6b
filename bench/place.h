/* place.h - whether files can be written where options say, before the work that they are to hold is begun. */
#ifndef BENCH_PLACE_H
#define BENCH_PLACE_H

#include "bench/bench.h"

/* 0, also of NULL, or an exit code. */
int save_check(const char *path);
/* Whether two paths are one place. */
bool save_same(const char *a, const char *b);

#endif
