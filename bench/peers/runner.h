/* runner.h - a contender's side of the lines that compare and its runners exchange; the lines themselves are told of
 * in README.md.
 *
 * Owns standard input and output. Knows no library: who includes it says what is prepared and run. */
#ifndef BENCH_PEERS_RUNNER_H
#define BENCH_PEERS_RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RUNNER_SLOTS = 8, RUNNER_WORDS = 16, RUNNER_TEXT = 256 };

typedef struct runner_problem {
    const char *variant; /* "-": there is one way to do it */
    int count;
    const char *words[RUNNER_WORDS]; /* "gemm", "f32", "64", ..; NULL behind the last */
} runner_problem;

typedef struct runner {
    /* True with what there is to say of it (an algorithm; may stay "") in `text`, or false with why not. A slot is
     * prepared once until drop. */
    bool (*prepare)(uint32_t slot, const runner_problem *problem, char text[RUNNER_TEXT]);
    /* Does it so many times, all of which have ended when this returns. False with what went wrong. */
    bool (*run)(uint32_t slot, uint64_t times, char text[RUNNER_TEXT]);
    /* Frees what is in a slot, be it prepared or not. */
    void (*drop)(uint32_t slot);
} runner;

/* Says `ready` and serves until the end of input. The exit code of main. */
int runner_serve(const char *ready, const runner *r);
/* Says why there is nothing to serve. The exit code of main. */
int runner_absent(const char *why);

/* Word `index` as a number from 1 to 10^9; 0 where there is none. */
uint64_t runner_number(const runner_problem *problem, int index);
/* Numbers in [-1, 1) of a seed, aligned to 64 bytes; the caller's (free). NULL: no memory. */
float *runner_floats(uint64_t count, uint64_t seed);

#endif
