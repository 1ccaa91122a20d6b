/* terminal.h - what the terminal behind a stream can show.
 *
 * Asks the system and the environment alone; keeps nothing, prints nothing. Threads: any. */
#ifndef BENCH_TERMINAL_H
#define BENCH_TERMINAL_H

#include <stdbool.h>

/* Whether lines on it may be drawn over: a terminal, and TERM names one that can. */
bool terminal_draws(int fd);
/* Its columns now, which change when somebody drags the window; COLUMNS, or 80, where there is no terminal. */
int terminal_width(int fd);
/* Whether the locale's characters are UTF-8. */
bool terminal_utf8(void);
/* Whether what is drawn on it may be coloured: terminal_draws, and no NO_COLOR (no-color.org). */
bool terminal_colours(int fd);

#endif
