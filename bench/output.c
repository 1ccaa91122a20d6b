/* output.c - one set of rows in five formats; see output.h. */
#include "bench/output.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/progress.h"
#include "bench/terminal.h"

/* ---- what became of standard output ---- */

/* JSON is made all over the program, and a value that there was no memory for is simply missing from the object that
 * it was for. So memory for JSON comes from here, where a failure is kept. */
static atomic_bool no_memory;
static int write_error; /* errno of the first write that failed */
static bool no_text;    /* a row or value could not be made, and not for want of memory */

static void *json_memory(size_t bytes)
{
    void *memory = malloc(bytes);
    if (!memory)
        atomic_store(&no_memory, true);
    return memory;
}

void json_begin(void)
{
    json_set_alloc_funcs(json_memory, free);
}

bool json_starved(void)
{
    return atomic_load(&no_memory);
}

static bool stdout_broken(void)
{
    return json_starved() || write_error || no_text;
}

int stdout_close(int code)
{
    if (!write_error && (fflush(stdout) || ferror(stdout)))
        write_error = errno ? errno : EIO;
    if (code > EXIT_WRONG) /* a failure that has been explained */
        return code;
    if (json_starved())
        return complain(EXIT_MEMORY, "standard output: no host memory for all of the results");
    if (write_error)
        return complain(EXIT_BAD_INPUT, "standard output: %s", strerror(write_error));
    return no_text ? complain(EXIT_BAD_INPUT, "standard output: a result holds a text that is no UTF-8") : code;
}

/* ---- texts ---- */

static void text_put(output_text *t, const char *fmt, ...) __attribute__((__format__(__printf__, 2, 3)));
static void text_put(output_text *t, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int length = vsnprintf(t->at ? t->at + t->used : NULL, t->size - t->used, fmt, args);
    if (length >= 0 && (size_t)length >= t->size - t->used) {
        size_t size = 2 * (t->used + (size_t)length + 1);
        char *at = realloc(t->at, size);
        if (at) {
            *t = (output_text){ at, t->used, size };
            length = vsnprintf(at + t->used, size - t->used, fmt, again);
        } else {
            length = -1;
        }
    }
    va_end(again);
    va_end(args);
    if (length < 0)
        atomic_store(&no_memory, true);
    else
        t->used += (size_t)length;
}

/* Prints the line and begins another one. */
static void line_end(output *out)
{
    text_put(&out->line, "\n");
    errno = 0;
    progress_aside(STDOUT_FILENO);
    if (!stdout_broken() && (fwrite(out->line.at, 1, out->line.used, stdout) != out->line.used || fflush(stdout)))
        write_error = errno ? errno : EIO;
    progress_back();
    out->line.used = 0;
}

json_t *number_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *text_json(const char *text)
{
    json_t *value = NULL;
    char *copy = json_memory(strlen(text) + 1);
    if (copy) {
        strcpy(copy, text);
        cek_text_printable(copy);
        value = json_string(copy);
    }
    free(copy);
    return value;
}

/* A value as text; `scaled` as people see it. Lists become a/b/c; what is unknown is a dash to people. */
static void value_put(output_text *t, const json_t *value, const output_column *column, bool scaled)
{
    if (json_is_string(value))
        text_put(t, "%s", json_string_value(value));
    else if (json_is_boolean(value))
        text_put(t, "%s", json_is_true(value) ? "yes" : "no");
    else if (json_is_integer(value) && (!scaled || column->scale == 0))
        text_put(t, "%lld", (long long)json_integer_value(value));
    else if (json_is_number(value) && scaled)
        text_put(t, "%.*f", column->decimals, json_number_value(value) * (column->scale != 0 ? column->scale : 1));
    else if (json_is_number(value))
        text_put(t, "%.17g", json_number_value(value));
    else if (json_is_null(value) && scaled)
        text_put(t, "-");
    size_t i;
    const json_t *item;
    json_array_foreach(value, i, item)
    {
        text_put(t, "%s", i ? "/" : "");
        value_put(t, item, column, scaled);
    }
}

/* ---- rows ---- */

/* RFC 4180: what would end a field or a line stands in quotes, and a quote twice. */
static void csv_put(output_text *t, const char *cell)
{
    const char *const quote = strpbrk(cell, ",\"\r\n") ? "\"" : "";
    text_put(t, "%s", quote);
    for (const char *p = cell; *p; p++)
        text_put(t, "%s%c", *p == '"' ? "\"" : "", *p);
    text_put(t, "%s", quote);
}

/* What would end a cell is escaped, and so is what would escape; a line's end is a space. */
static void md_put(output_text *t, const char *cell)
{
    for (const char *p = cell; *p; p++)
        text_put(t, "%s%c", *p == '|' || *p == '\\' ? "\\" : "", *p == '\n' || *p == '\r' ? ' ' : *p);
}

/* The beginning of a cell that is wider than its column. */
static void cut_put(output_text *t, const char *cell, size_t width)
{
    static const char dots[] = "...";
    size_t bytes = width - (sizeof dots - 1);
    while (bytes && ((unsigned char)cell[bytes] & 0xC0) == 0x80) /* within a character of UTF-8 */
        bytes--;
    text_put(t, "%.*s%s%*s", (int)bytes, cell, dots, (int)(width - (sizeof dots - 1) - bytes), "");
}

static void cell_put(output *out, const char *cell, int width, bool last, bool cut)
{
    if (out->format == FORMAT_CSV)
        csv_put(&out->line, cell);
    else if (out->format == FORMAT_MD)
        md_put(&out->line, cell);
    else if (cut && strlen(cell) > (size_t)abs(width))
        cut_put(&out->line, cell, (size_t)abs(width));
    else
        text_put(&out->line, "%*s", width < 0 && last ? 0 : width, cell);
}

/* A row, or (NULL) the heading. */
static void line_print(output *out, const json_t *row)
{
    const char *separator = out->format == FORMAT_CSV ? "," : out->format == FORMAT_MD ? " | " : "  ";
    text_put(&out->line, "%s", out->format == FORMAT_MD ? "| " : "");
    size_t last = out->column_count - 1;
    while (!out->widths[last])
        last--;
    for (size_t i = 0; i <= last; i++) {
        const output_column *c = &out->columns[i];
        if (!out->widths[i])
            continue;
        out->cell.used = 0;
        if (row)
            value_put(&out->cell, json_object_get(row, c->key), c, out->format != FORMAT_CSV);
        else
            text_put(&out->cell, "%s", out->format == FORMAT_CSV ? c->key : c->heading);
        text_put(&out->line, "%s", i ? separator : "");
        cell_put(out, out->cell.used ? out->cell.at : "", out->widths[i], i == last, i == out->cut);
    }
    text_put(&out->line, "%s", out->format == FORMAT_MD ? " |" : "");
    line_end(out);
}

static size_t table_width(const output *out)
{
    size_t width = 0;
    for (size_t i = 0; i < out->column_count; i++)
        width += out->widths[i] ? (size_t)abs(out->widths[i]) + 2 : 0;
    return width - 2;
}

enum { CUT_WIDTH = 16 }; /* of a column that is cut, at least */

/* Of a table that its terminal is too narrow for, what is missed least goes first: how before how much, and what the
 * command line said. What is too wide then, loses it in its widest column of texts. */
static void columns_leave_out(output *out)
{
    static const char *const spare[] = {
        "algorithm",  "max_error", "spread", "runs", "optional_unsupported", "kind",    "types", "compute_units",
        "free_bytes", "pass",      "type",   "op",   "idle_shares",          "seconds", "step"
    };
    if (out->format != FORMAT_TABLE || !isatty(STDOUT_FILENO))
        return;
    out->room = (size_t)terminal_width(STDOUT_FILENO);
    for (size_t s = 0; s < sizeof spare / sizeof *spare; s++)
        for (size_t i = 1; i < out->column_count; i++) /* the first one says what a row is of */
            if (table_width(out) > out->room && !strcmp(out->columns[i].key, spare[s]))
                out->widths[i] = 0;
    const size_t width = table_width(out);
    if (width <= out->room)
        return;
    size_t widest = 1;
    for (size_t i = 2; i < out->column_count; i++)
        if (out->widths[i] < out->widths[widest]) /* texts have widths below 0 */
            widest = i;
    const int most = -CUT_WIDTH, fits = out->widths[widest] + (int)(width - out->room);
    if (out->widths[widest] < most) {
        out->widths[widest] = fits < most ? fits : most;
        out->cut = widest;
    }
}

static void left_out_tell(output *out)
{
    for (size_t i = 0; i < out->column_count; i++) {
        if (out->widths[i])
            continue;
        if (out->line.used)
            text_put(&out->line, ", %s", out->columns[i].heading);
        else
            text_put(&out->line, "%zu columns have no room for %s", out->room, out->columns[i].heading);
    }
    if (out->line.used)
        line_end(out);
}

static void heading_print(output *out)
{
    if (out->begun)
        return;
    out->begun = true;
    columns_leave_out(out);
    line_print(out, NULL);
    if (out->format != FORMAT_MD)
        return;
    for (size_t i = 0; i < out->column_count; i++)
        text_put(&out->line, "|%s", out->columns[i].width < 0 ? "---" : "---:");
    text_put(&out->line, "|");
    line_end(out);
}

static void json_print(output *out, const json_t *value, size_t layout)
{
    char *text = json_dumps(value, layout | JSON_REAL_PRECISION(17));
    if (!text) { /* no loop and no foreign text can be in there: memory */
        atomic_store(&no_memory, true);
        return;
    }
    text_put(&out->line, "%s", text);
    line_end(out);
    free(text);
}

/* False where there is none. */
static bool made(const json_t *value)
{
    no_text |= !value && !json_starved();
    return value != NULL;
}

void output_open(output *out, output_format format, const output_column *columns, size_t count, const char *rows_key)
{
    assert(count <= OUTPUT_COLUMNS);
    json_begin();
    *out = (output){ .format = format,
                     .columns = columns,
                     .column_count = count,
                     .rows_key = rows_key,
                     .document = json_object(),
                     .rows = json_array() };
    for (size_t i = 0; i < count; i++)
        out->widths[i] = columns[i].width;
}

void output_expect(output *out, const char *key, size_t length)
{
    for (size_t i = 0; i < out->column_count; i++) {
        const output_column *c = &out->columns[i];
        if (strcmp(c->key, key) != 0)
            continue;
        const size_t before = out->told[i] ? (size_t)abs(out->widths[i]) : strlen(c->heading);
        out->widths[i] = (c->width < 0 ? -1 : 1) * (int)(length > before ? length : before);
        out->told[i] = true;
    }
}

void output_set(output *out, const char *key, json_t *value)
{
    if (made(value))
        json_object_set_new(out->document, key, value);
}

void output_row(output *out, json_t *row)
{
    if (!made(row))
        return;
    if (out->format == FORMAT_JSON) {
        json_array_append_new(out->rows, row);
        return;
    }
    if (out->format == FORMAT_JSONL) {
        json_print(out, row, JSON_COMPACT);
    } else {
        heading_print(out);
        line_print(out, row);
    }
    json_decref(row);
}

void output_note(output *out, const char *fmt, ...)
{
    char *text = NULL;
    va_list args;
    if (out->format != FORMAT_TABLE && out->format != FORMAT_MD)
        return;
    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0) {
        atomic_store(&no_memory, true);
        text = NULL;
    }
    va_end(args);
    text_put(&out->line, "%s", text ? text : "");
    line_end(out);
    free(text);
}

const char *output_cell(output *out, const json_t *row, size_t column)
{
    out->cell.used = 0;
    text_put(&out->cell, "%s", "");
    value_put(&out->cell, json_object_get(row, out->columns[column].key), &out->columns[column], true);
    return out->cell.at ? out->cell.at : "";
}

void output_drop(output *out)
{
    json_decref(out->rows);
    json_decref(out->document);
    free(out->line.at);
    free(out->cell.at);
    *out = (output){ .format = out->format };
}

int output_close(output *out, int code)
{
    if (out->format == FORMAT_JSON) {
        json_object_set(out->document, out->rows_key, out->rows);
        json_print(out, out->document, JSON_INDENT(2));
    } else if (out->format == FORMAT_JSONL && json_object_size(out->document)) {
        json_print(out, out->document, JSON_COMPACT);
    } else {
        left_out_tell(out);
    }
    output_drop(out);
    return stdout_close(code);
}
