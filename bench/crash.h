/* crash.h - what the program says when it crashes. */
#ifndef BENCH_CRASH_H
#define BENCH_CRASH_H

/* From now on a crash is told on standard error, with the plugin in whose function it came about; then the process
 * ends as it would have anyway. */
void crash_watch(void);

/* What the program does from now on, for that text: "cpu:0", "null mem_alloc without out". NULL:
 * nothing in particular. */
void crash_during(const char *who, const char *what);

#endif
