/* figure_file.h - figures as files: SVG as it is drawn, and PNG, which gnuplot makes of the same drawing.
 *
 * Owns the files and the process, and says what goes wrong with them: bench/chart/ draws, and knows neither. */
#ifndef BENCH_FIGURE_FILE_H
#define BENCH_FIGURE_FILE_H

#include "bench/chart/chart.h"

/* To FILE.svg or FILE.png, by its name. Complains: 0 or an exit code; EXIT_BAD_INPUT also where gnuplot is missing. */
int figure_save(const figure *f, const char *path);
/* Before the work: whether figure_save could. 0, also of NULL, or an exit code. */
int figure_save_check(const char *path);

#endif
