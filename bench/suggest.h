/* suggest.h - "did you mean": the names of commands, options and values beside what somebody wrote instead. */
#ifndef BENCH_SUGGEST_H
#define BENCH_SUGGEST_H

#include "bench/option_table.h"

typedef struct suggestion {
    char text[96];
} suggestion;

/* "; did you mean PREFIXword?", the nearest of `words` (ended by NULL), or "" where none is near: the end of a
 * complaint. */
suggestion suggest(const char *prefix, const char *text, const char *const *words);
/* Of the command's own options, or else of all; the command may be NULL. */
suggestion suggest_option(const char *text, size_t length, const bench_command *command);
/* Of operations, and of other groups of cases unless `operations`. */
suggestion suggest_cases(const char *text, bool operations);

const bench_command *command_named(const char *name); /* NULL: there is none */
/* Complains that there is no such command; EXIT_USAGE. */
int command_unknown(const char *name);

#endif
