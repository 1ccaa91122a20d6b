/* report.c - the load report.
 *
 * Owns: the lines and their texts. */
#include "core/device/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"

void cek__report_clear(cek__report *report)
{
    for (size_t i = 0; i < report->count; i++) {
        free(report->lines[i].path);
        free(report->lines[i].shown);
        free(report->lines[i].plugin);
        free(report->lines[i].version);
        free(report->lines[i].reason);
    }
    free(report->lines);
    *report = (cek__report){ 0 };
}

cek_status cek__report_add(cek__report *report, const char *path, cek__report_line **out)
{
    cek_status st;
    cek__report_line *line;

    *out = NULL;
    if (report->count == report->capacity) {
        size_t capacity = report->capacity != 0 ? 2 * report->capacity : 8;

        CEK_TRY(cek__realloc_array(capacity, sizeof *report->lines, &report->lines));
        report->capacity = capacity;
    }
    line = &report->lines[report->count];
    *line = (cek__report_line){ .stage = "not started", .status = CEK_NOT_READY };
    report->count++; /* whatever fails below, cek__report_clear frees the rest */
    CEK_TRY(cek__strdup(path, &line->path));
    CEK_TRY(cek__strdup(path, &line->shown));
    cek_text_printable(line->shown);
    *out = line;
    return CEK_OK;
out:
    return st;
}

/* Text behind "what: ", if it begins so. */
static const char *text_behind(const char *text, const char *what)
{
    size_t length = strlen(what);

    return strncmp(text, what, length) == 0 && strncmp(text + length, ": ", 2) == 0 ? text + length + 2 : text;
}

cek_status cek__report_stop(cek__report_line *line, const char *stage, cek_status status)
{
    const char *reason = cek_error_text();

    line->stage = stage;
    line->status = status;
    if (line->plugin != NULL) /* a plugin's own words: the line says already whose, and in which call */
        reason = text_behind(text_behind(reason, line->plugin), stage);
    return cek__strdup(reason, &line->reason);
}

const char *cek__report_reason(const cek__report_line *line)
{
    if (line->status == CEK_NOT_READY)
        return "nothing has asked for it";
    return line->reason != NULL ? line->reason : cek__status_text(line->status);
}

/* The plugin's name, or the file's where it did not get that far. */
static const char *line_name(const cek__report_line *line)
{
    const char *slash = strrchr(line->shown, '/');

    if (line->plugin != NULL)
        return line->plugin;
    return slash != NULL && slash[1] != '\0' ? slash + 1 : line->shown;
}

static void line_print(FILE *out, const cek__report_line *line, bool with_path)
{
    fprintf(out, "%s: ", with_path ? line->shown : line_name(line));
    if (line->status == CEK_OK)
        fprintf(out, "loaded, %u device%s", line->device_count, line->device_count == 1 ? "" : "s");
    else
        fprintf(out, "%s: %s", line->stage, cek__report_reason(line));
}

cek_status cek__report_text(const cek__report *report, char **out)
{
    size_t size = 0;
    FILE *file;
    bool whole;

    *out = NULL;
    file = open_memstream(out, &size);
    if (file == NULL)
        return cek__fail(CEK_OUT_OF_MEMORY, "out of host memory: the load report needs some");
    if (report->count == 0)
        fprintf(file, "no plugin was found\n");
    for (size_t i = 0; i < report->count; i++) {
        line_print(file, &report->lines[i], true);
        if (report->lines[i].status == CEK_OK)
            fprintf(file, " (%s %s, ABI %u.%u)", report->lines[i].plugin, report->lines[i].version,
                    report->lines[i].abi >> 16, report->lines[i].abi & 0xffff);
        fputc('\n', file);
    }
    whole = !ferror(file);
    if (fclose(file) == 0 && whole &&
        *out != NULL) /* glibc closes without complaint where it could not trim the text */
        return CEK_OK;
    free(*out);
    *out = NULL;
    return cek__fail(CEK_OUT_OF_MEMORY, "out of host memory: the load report needs some");
}

void cek__report_summary(const cek__report *report, char *out, size_t size)
{
    FILE *file = fmemopen(out, size, "w");
    size_t printed = 0;

    out[0] = '\0';
    if (file == NULL)
        return;
    /* Faults, then what is absent, then what was loaded or may be: the text may be cut. */
    for (int turn = 0; turn < 3; turn++)
        for (size_t i = 0; i < report->count; i++) {
            cek_status status = report->lines[i].status;

            if (turn != (status == CEK_OK || status == CEK_NOT_READY ? 2 : status == CEK_UNAVAILABLE ? 1 : 0))
                continue;
            fputs(printed++ > 0 ? "; " : "", file);
            line_print(file, &report->lines[i], false);
        }
    if (printed == 0)
        fputs("no plugin was found", file);
    fclose(file);
    out[size - 1] = '\0';
}
