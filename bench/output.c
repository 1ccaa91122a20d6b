/* output.c - one set of rows in five formats; see output.h. */
#include "bench/output.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

json_t *number_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

void output_open(output *out, output_format format, const output_column *columns, size_t count, const char *rows_key)
{
    *out = (output){ .format = format,
                     .columns = columns,
                     .column_count = count,
                     .rows_key = rows_key,
                     .document = json_object(),
                     .rows = json_array() };
}

void output_set(output *out, const char *key, json_t *value)
{
    json_object_set_new(out->document, key, value);
}

/* The first failure counts: later calls may set errno to anything. */
static int stdout_error;

static void stdout_flush(void)
{
    if (fflush(stdout) && !stdout_error)
        stdout_error = errno;
}

/* A value as text; `scaled` as people see it. Lists become a-b-c. */
static void value_text(const json_t *value, const output_column *column, bool scaled, char *text, size_t cap)
{
    *text = 0;
    if (json_is_string(value))
        snprintf(text, cap, "%s", json_string_value(value));
    else if (json_is_boolean(value))
        snprintf(text, cap, "%s", json_is_true(value) ? "yes" : "no");
    else if (json_is_integer(value) && (!scaled || column->scale == 0))
        snprintf(text, cap, "%lld", (long long)json_integer_value(value));
    else if (json_is_number(value) && scaled)
        snprintf(text, cap, "%.*f", column->decimals,
                 json_number_value(value) * (column->scale != 0 ? column->scale : 1));
    else if (json_is_number(value))
        snprintf(text, cap, "%.17g", json_number_value(value));
    else if (json_is_array(value)) {
        size_t i, used = 0;
        const json_t *item;
        json_array_foreach(value, i, item)
        {
            char one[64];
            value_text(item, column, scaled, one, sizeof one);
            snprintf(text + used, cap - used, "%s%s", i ? "/" : "", one);
            used = strlen(text);
        }
    }
}

static void line_print(const output *out, const json_t *row)
{
    const char *separator = out->format == FORMAT_CSV ? "," : out->format == FORMAT_MD ? " | " : "  ";
    if (out->format == FORMAT_MD)
        fputs("| ", stdout);
    for (size_t i = 0; i < out->column_count; i++) {
        const output_column *c = &out->columns[i];
        const json_t *value = row ? json_object_get(row, c->key) : NULL;
        char text[256];
        if (row)
            value_text(value, c, out->format != FORMAT_CSV, text, sizeof text);
        else
            snprintf(text, sizeof text, "%s", out->format == FORMAT_CSV ? c->key : c->heading);
        if (i)
            fputs(separator, stdout);
        if (out->format == FORMAT_CSV && strpbrk(text, ",\"\n")) {
            putchar('"');
            for (const char *p = text; *p; p++)
                printf("%s%c", *p == '"' ? "\"" : "", *p);
            putchar('"');
        } else if (out->format == FORMAT_TABLE) {
            bool left = c->width < 0, last = i + 1 == out->column_count;
            printf("%*s", left && last ? 0 : c->width, text);
        } else {
            fputs(text, stdout);
        }
    }
    puts(out->format == FORMAT_MD ? " |" : "");
}

static void heading_print(output *out)
{
    if (out->begun)
        return;
    out->begun = true;
    line_print(out, NULL);
    for (size_t i = 0; out->format == FORMAT_MD && i < out->column_count; i++)
        printf("%s%s", i ? "|" : "|", out->columns[i].width < 0 ? "---" : "---:");
    if (out->format == FORMAT_MD)
        puts("|");
}

void output_row(output *out, json_t *row)
{
    if (out->format == FORMAT_JSON) {
        json_array_append_new(out->rows, row);
        return;
    }
    if (out->format == FORMAT_JSONL) {
        json_dumpf(row, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17));
        putchar('\n');
    } else {
        heading_print(out);
        line_print(out, row);
    }
    stdout_flush();
    json_decref(row);
}

void output_note(output *out, const char *fmt, ...)
{
    va_list args;
    if (out->format != FORMAT_TABLE && out->format != FORMAT_MD)
        return;
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    putchar('\n');
    stdout_flush();
}

int stdout_close(int code)
{
    stdout_flush();
    if (!stdout_error && !ferror(stdout))
        return code;
    return complain(EXIT_BAD_INPUT, "standard output: %s", strerror(stdout_error ? stdout_error : EIO));
}

int output_close(output *out, int code)
{
    if (out->format == FORMAT_JSON) {
        json_object_set_new(out->document, out->rows_key, json_incref(out->rows));
        json_dumpf(out->document, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
        putchar('\n');
    } else if (out->format == FORMAT_JSONL && json_object_size(out->document)) {
        json_dumpf(out->document, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17));
        putchar('\n');
    }
    json_decref(out->rows);
    json_decref(out->document);
    out->rows = out->document = NULL;
    return stdout_close(code);
}
