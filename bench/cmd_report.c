/* cmd_report.c - `report`: one page of HTML that says what a machine is and what its devices do, with nothing
 * outside of it: no script, no font, no picture but its own. It can be read on a phone, and printed. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>

#include "bench/chart/draw.h"
#include "bench/place.h"
#include "bench/plots.h"
#include "bench/progress.h"
#include "bench/tables.h"

/* What is measured, in which words, and as briefly as still says something; or, --quick, so briefly that it is only
 * tried. */
static const struct {
    const char *title, *text, *shapes, *quick;
    results_kind kind;
    table_rows *rows;
} sections[] = {
    { "Peaks", "The most that each device was seen to do, which everything else is a part of.", NULL, NULL,
      RESULTS_PEAK, peak_rows },
    { "Matrix products", "MxNxK, in f32.", "256x256x256,512x512x512,1024x1024x1024,64x1024x25088,12544x128x576",
      "64x64x64,96x80x72", RESULTS_GEMM, gemm_rows },
    { "Convolutions", "Forward, in f32, of layers of small and middling networks.", NULL, "mb2ic8ih14oc16oh14kh3ph1",
      RESULTS_CONV, conv_rows },
    { "Copies", "From the host's memory and back, within a device, and between two.", "4K,1M,64M", "4K,1M",
      RESULTS_COPY, copy_rows },
};
enum { SECTIONS = sizeof sections / sizeof *sections };

static const char style[] =
    "body{font:16px/1.5 system-ui,sans-serif;color:#222;background:#fff;max-width:60rem;margin:0 auto;padding:1rem}"
    "h1{font-size:1.6rem;line-height:1.2}h2{font-size:1.25rem;margin:2.2rem 0 .3rem;border-bottom:1px solid #ccc}"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}"
    "th,td{padding:.2rem .6rem;text-align:right;white-space:nowrap;border-bottom:1px solid #e4e4e4}"
    "th{background:#f3f3f3}.l{text-align:left}"
    "pre{font-size:.75rem;background:#f6f6f6;padding:.6rem;white-space:pre-wrap;overflow-wrap:anywhere}"
    "svg{display:block;width:100%;height:auto;max-width:45rem;margin:.8rem 0}"
    "@media print{body{font-size:11px;max-width:none;padding:0}.wide{overflow:visible}table{font-size:.68rem}"
    "th,td{padding:.1rem "
    ".3rem;white-space:normal}svg{max-width:22rem}svg,tr{break-inside:avoid}h2,p{break-after:avoid}}";

static void html_put(FILE *to, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '<': fputs("&lt;", to); break;
        case '>': fputs("&gt;", to); break;
        case '&': fputs("&amp;", to); break;
        default: fputc(*text, to);
        }
    }
}

/* As on a terminal: the same columns, units and digits. */
static void table_put(FILE *to, output *out)
{
    const json_t *row;
    size_t k;
    fputs("<div class=\"wide\"><table>\n<tr>", to);
    for (size_t i = 0; i < out->column_count; i++) {
        fprintf(to, "<th%s>", out->columns[i].width < 0 ? " class=\"l\"" : "");
        html_put(to, out->columns[i].heading);
        fputs("</th>", to);
    }
    fputs("</tr>\n", to);
    json_array_foreach(out->rows, k, row)
    {
        fputs("<tr>", to);
        for (size_t i = 0; i < out->column_count; i++) {
            fprintf(to, "<td%s>", out->columns[i].width < 0 ? " class=\"l\"" : "");
            html_put(to, output_cell(out, row, i));
            fputs("</td>", to);
        }
        fputs("</tr>\n", to);
    }
    fputs("</table></div>\n", to);
}

/* 0 or an exit code. What a picture has no room for is in the table. */
static int figure_put(FILE *to, figure *f)
{
    const int code = f->no_memory ? complain(EXIT_MEMORY, "no host memory for a picture") : EXIT_OK;
    if (f->lost)
        fprintf(to, "<p>The picture shows the first %d devices: the table has all.</p>\n", CHART_SERIES_MOST);
    if (f->count && !code)
        figure_svg(f, to);
    figure_free(f);
    return code;
}

static void head_put(FILE *to)
{
    struct utsname system;
    char when[40] = "";
    const time_t now = time(NULL);
    struct tm local;
    if (localtime_r(&now, &local))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M %Z", &local);
    fprintf(to,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<title>cekernels: what this machine computes</title>\n<style>%s</style>\n</head>\n<body>\n"
            "<h1>What this machine computes</h1>\n<p>%s, cekernels %s, built by %s %s",
            style, when, cek_version(),
#ifdef __clang__
            "clang",
#else
            "gcc",
#endif
            __VERSION__);
    if (!uname(&system)) {
        fputs(", on ", to);
        html_put(to, system.sysname);
        fputc(' ', to);
        html_put(to, system.release);
        fputc(' ', to);
        html_put(to, system.machine);
    }
    fputs(".</p>\n", to);
}

/* Which of the tables' times were taken beside other work, or of a device that was hot. 0 or an exit code. */
static int sensors_put(FILE *to, cek_engine *engine)
{
    char text[DEVICE_NOW_BYTES];
    int code = EXIT_OK;
    for (size_t i = 0; i < cek_engine_device_count(engine) && !code; i++) {
        cek_device *device = cek_engine_device(engine, i);
        code = device_now(device, text);
        if (*text)
            fprintf(to, "<p>Before anything was measured %s: %s.</p>\n", cek_device_name(device), text);
    }
    return code;
}

/* All devices, also those that are not measured, and what became of every plugin. 0 or an exit code. */
static int devices_put(FILE *to, const bench_options *o, cek_engine *engine)
{
    output out;
    char *report = NULL;
    bench_options own = *o;
    own.output = FORMAT_JSON;
    int code = devices_rows(&own, engine, &out);
    cek_status st = code ? CEK_OK : cek_engine_load_report(engine, &report);
    if (st)
        code = complain_status(st);
    if (!code) {
        fputs("<h2>Devices</h2>\n", to);
        table_put(to, &out);
        code = sensors_put(to, engine);
    }
    if (!code) {
        fputs("<h2>Load report</h2>\n<p>Every file that might have been a plugin, and why it is none where it is "
              "not.</p>\n<pre>",
              to);
        html_put(to, report);
        fputs("</pre>\n", to);
    }
    free(report);
    output_drop(&out);
    return code;
}

typedef struct page {
    FILE *to;
    output tables[SECTIONS];
    results results[SECTIONS];
    size_t count;
} page;

/* 0 or an exit code; values that are wrong are in the page. */
static int section_put(page *p, size_t i, const bench_options *o, cek_device *const *devices, size_t count)
{
    bench_options own = *o;
    figure f = { .count = 0 };
    own.output = FORMAT_JSON;
    own.runs = o->quick ? 2 : 7;
    own.warmup = o->quick ? 0 : 1;
    own.shapes = own.sizes = o->quick && sections[i].quick ? sections[i].quick : sections[i].shapes;
    int code = sections[i].rows(&own, devices, count, &p->tables[i]);
    progress_end();
    p->results[i] = (results){ sections[i].title, sections[i].kind, p->tables[i].document, p->tables[i].rows };
    p->count++;
    if (code > EXIT_WRONG)
        return code;
    fprintf(p->to, "<h2>%s</h2>\n<p>%s</p>\n", sections[i].title, sections[i].text);
    plots_add(&f, &p->results[i], 1);
    const int drawn = figure_put(p->to, &f);
    table_put(p->to, &p->tables[i]);
    return drawn > code ? drawn : code;
}

static int page_put(page *p, const bench_options *o, cek_engine *engine, cek_device *const *devices, size_t count)
{
    figure roofs = { .count = 0 };
    head_put(p->to);
    int code = devices_put(p->to, o, engine);
    for (size_t i = 0; i < SECTIONS && code <= EXIT_WRONG; i++) {
        const int one = section_put(p, i, o, devices, count);
        code = one > code ? one : code;
    }
    if (code <= EXIT_WRONG) {
        fputs("<h2>Roofs</h2>\n<p>What arithmetic and memory allow, by how much is computed for each byte of the "
              "operands, and "
              "where the products and convolutions above lie.</p>\n",
              p->to);
        plots_roofs(&roofs, p->results, p->count);
        const int drawn = figure_put(p->to, &roofs);
        code = drawn > code ? drawn : code;
        fputs("</body>\n</html>\n", p->to);
    }
    for (size_t i = 0; i < p->count; i++)
        output_drop(&p->tables[i]);
    return code;
}

static int page_save(const char *path, const char *text, size_t length)
{
    saving s;
    const int code = saving_begin(&s, path);
    if (code)
        return code;
    fwrite(text, 1, length, s.to);
    return saving_end(&s, EXIT_OK);
}

int cmd_report(const bench_options *o)
{
    cek_engine *engine = NULL;
    cek_device **devices = NULL;
    size_t count = 0, length = 0;
    char *text = NULL;
    page p = { .to = NULL };
    if (o->argc)
        return complain(EXIT_USAGE, "report takes no argument: %s", o->argv[0]);
    if (!o->outputs)
        return complain(EXIT_USAGE, "report writes a page: --output=FILE.html is wanted");
    int code = save_check(o->outputs);
    if (!code)
        code = devices_open(o, CEK_PROFILE_INFERENCE, &engine, &devices, &count);
    if (!code && cek_engine_start(engine)) /* those too that are only shown */
        code = complain(EXIT_PLUGIN, "%s", cek_error_text());
    if (!code && !(p.to = open_memstream(&text, &length)))
        code = complain(EXIT_MEMORY, "no host memory");
    if (!code)
        code = page_put(&p, o, engine, devices, count);
    const bool short_of_memory = p.to && (ferror(p.to) | fclose(p.to));
    if (short_of_memory && code <= EXIT_WRONG)
        code = complain(EXIT_MEMORY, "no host memory for the page");
    const int saved = code <= EXIT_WRONG ? page_save(o->outputs, text, length) : EXIT_OK;
    free(text);
    free(devices);
    cek_engine_free(engine);
    return stdout_close(saved ? saved : code);
}
