/* progress.h - how far a long run is, on standard error: a line that is drawn over on a terminal, else lines at
 * intervals.
 *
 * Owns the last line of the terminal: whoever prints to it meanwhile puts the line aside. Who works tells what is
 * done, which takes tens of nanoseconds and never waits for the terminal; a thread of its own draws, 5 times a
 * second at most and only what changed, in one write, no wider than the terminal is then. It begins when something
 * took 0.3 s; plain lines come after 2 s, then every 10, after two minutes every 30, after ten every 60. What a line
 * says and where is progress_line.h's. Must not know: what is being done. Threads: any. */
#ifndef BENCH_PROGRESS_H
#define BENCH_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Nothing is ever shown where it is not `wanted`. progress_close: at the end of the process. */
void progress_open(bool wanted);
void progress_close(void);

/* Something begins of which there will be `total` (0: nobody knows) to be done, and of which nothing is known but
 * its label. What was under way before has ended. progress_end: it has; the line is gone. */
void progress_begin(int64_t total, const char *fmt, ...) __attribute__((__format__(__printf__, 2, 3)));
void progress_end(void);
/* The label says something else from now on. */
void progress_label(const char *fmt, ...) __attribute__((__format__(__printf__, 1, 2)));
/* So many are done in all; or one more. */
void progress_done(int64_t done);
void progress_one(void);
/* How many are done in a second, lately; 0: not known. */
double progress_per_second(void);
/* Facts take time to find out: whether it is time for them again. */
bool progress_wants_facts(void);
/* A fact, of PROGRESS_FACTS: the lower, the more important. Of the same length from one time to the next, so that
 * nothing jumps. */
void progress_fact(int place, const char *fmt, ...) __attribute__((__format__(__printf__, 2, 3)));

/* Around what is printed to `fd`, which may be the same terminal. */
void progress_aside(int fd);
void progress_back(void);
/* For a handler of signals: whether a line is on the terminal now. */
bool progress_shown(void);

#endif
