/* option_table.h - every option of every command, stated once.
 *
 * What reads the command line (options.c), prints help (help.c) and completes words in a shell (completion.c) reads
 * this. A new option is a code here, a row and perhaps the words of its value in option_table.c, a case in options.c
 * and a paragraph of the manual. Must not know: what an option does. */
#ifndef BENCH_OPTION_TABLE_H
#define BENCH_OPTION_TABLE_H

#include "bench/bench.h"

/* Values of getopt_long; options without a letter start behind the letters. */
enum {
    O_MATH = 256,
    O_SEED,
    O_JSON,
    O_PEER,
    O_NO_PROGRESS,
    O_PLUGIN,
    O_TIMEOUT,
    O_PASS,
    O_MATCH,
    O_DATA,
    O_CSV,
    O_TARGET,
    O_SPLIT,
    O_TEST_FRACTION,
    O_EPOCHS,
    O_STEPS,
    O_LOG_EVERY,
    O_BATCH,
    O_SHUFFLE,
    O_LOSS,
    O_LR,
    O_OPTIMIZER,
    O_SCHEDULE,
    O_CLIP_VALUE,
    O_LOSS_SCALE,
    O_AVERAGE,
    O_ACCUMULATE,
    O_NORM_GROUP,
    O_FREEZE,
    O_NO_DECAY,
    O_MOMENTUM,
    O_WEIGHT_DECAY,
    O_DROPOUT,
    O_CLIP,
    O_AHEAD,
    O_TRACE,
    O_SHARES,
    O_LIMIT_MEMORY,
    O_FALLBACK,
    O_LOAD,
    O_SAVE,
    O_EXPORT,
    O_INPUT,
    O_SAVE_GRADIENTS,
    O_STANDARDIZE,
    O_ROWS,
    O_PLOT,
    O_THRESHOLD,
    O_QUICK,
    O_SIZES,
    O_LOG_DIR,
    O_IMAGE_SIZE,
    O_AUGMENT,
    O_NORMALIZE,
    O_WORKERS,
    O_PREFETCH,
    O_PIN
};

typedef struct option_row {
    const char *name, *argument; /* argument NULL: takes none */
    int code;
    uint32_t commands;
    const char *help;
} option_row;

enum { OPTIONS_MOST = 128 };
extern const option_row option_rows[];
extern const int option_count; /* at most OPTIONS_MOST */

/* The row of a code or of a whole name; NULL: there is none. */
const option_row *option_of(int code);
const option_row *option_named(const char *name, size_t length);

/* Whether every command takes it that could: such options are told once, not with each command. */
bool option_common(const option_row *row);

/* The words that the option's value is one of, ended by NULL; NULL where others are possible. */
const char *const *option_words(int code);

#endif
