/* help.h - the pages of help, made from the tables of commands and options. */
#ifndef BENCH_HELP_H
#define BENCH_HELP_H

#include <stdio.h>

#include "bench/option_table.h"

/* The page of one command: its options, those of every command, examples. NULL: the commands, and the options of every
 * command. */
void help_print(FILE *to, const bench_command *command);

#endif
