/* cmd_plot.c - `plot`: results and traces as pictures: text on standard output, or a file. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/chart/text.h"
#include "bench/figure_file.h"
#include "bench/output.h"
#include "bench/place.h"
#include "bench/plots.h"
#include "bench/terminal.h"

static int figure_show(const figure *f)
{
    const chart_text_style style = { terminal_width(STDOUT_FILENO), terminal_utf8(), terminal_colours(STDOUT_FILENO) };
    if (f->no_memory)
        return complain(EXIT_MEMORY, "no host memory for the picture");
    figure_text(f, style, stdout);
    return stdout_close(EXIT_OK);
}

static int results_plot(const bench_options *o, const results *list, size_t count)
{
    figure f = { .count = 0 };
    plots_add(&f, list, count);
    int code = EXIT_OK;
    if (!f.count && !f.no_memory)
        code = complain(EXIT_BAD_INPUT, "%s: nothing in it can be drawn", o->argv[0]);
    else if (f.lost)
        code = complain(EXIT_USAGE, "more than %d curves in one picture: plot fewer files at a time",
                        CHART_SERIES_MOST);
    else
        code = o->outputs ? stdout_close(figure_save(&f, o->outputs)) : figure_show(&f);
    figure_free(&f);
    return code;
}

int cmd_plot(const bench_options *o)
{
    const size_t count = (size_t)o->argc;
    size_t open = 0;
    if (!count)
        return complain(EXIT_USAGE, "which LOG? JSON of train, gemm, conv, op, copy or peak, or a trace");
    if (o->output != FORMAT_TABLE)
        return complain(EXIT_USAGE, "plot draws: --output=FILE.svg or FILE.png, or none for text");
    int code = save_check(o->outputs);
    if (!code)
        code = figure_save_check(o->outputs);
    results *list = calloc(count, sizeof *list);
    if (!list && !code)
        code = complain(EXIT_MEMORY, "no host memory");
    for (; !code && open < count; open += !code)
        code = results_open(o->argv[open], &list[open]);
    if (!code)
        code = results_plot(o, list, count);
    while (open)
        results_close(&list[--open]);
    free(list);
    return code;
}
