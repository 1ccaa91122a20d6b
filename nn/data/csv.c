/* csv.c - CSV files into tables of numbers, and those into data sets.
 *
 * Owns: quoting, lines, the header, what a number is. Must not know: splits, standardisation (split.h, dataset.h). */
#include "nn/data/csv.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/file.h"
#include "core/base/nearest.h"
#include "core/base/options.h"

#define CSV_BYTES_MAX ((uint64_t)4 << 30)
enum { SHOWN_MAX = 40 /* bytes of a bad field that an error quotes */ };

/* ---- fields ---- */

typedef struct field {
    const char *text; /* in the file's bytes, without the enclosing quotes; "" still doubled */
    size_t length;
    bool quoted;
    bool last; /* of its row */
} field;

typedef struct scanner {
    const char *path;
    const char *at, *end; /* *end is a 0 byte */
    int64_t line;         /* of `at`, from 1 */
    int64_t column;       /* of the next field, from 0 */
} scanner;

/* Moves behind the comma or the line end after a field. */
static cek_status separator(scanner *s, field *f)
{
    f->last = true;
    s->column++;
    if (s->at == s->end)
        return CEK_OK;
    if (*s->at == ',') {
        f->last = false;
        s->at++;
        return CEK_OK;
    }
    if (*s->at == '\r' && s->at + 1 < s->end && s->at[1] == '\n')
        s->at++;
    if (*s->at != '\n')
        return cek__fail(CEK_BAD_INPUT, "%s: line %" PRId64 ": a stray byte 0x%02x after field %" PRId64, s->path,
                         s->line, (unsigned char)*s->at, s->column);
    s->at++;
    s->line++;
    s->column = 0;
    return CEK_OK;
}

static cek_status quoted_field(scanner *s, field *f)
{
    int64_t line = s->line;

    f->quoted = true;
    f->text = ++s->at;
    for (; s->at < s->end; s->at++) {
        if (*s->at == '\0')
            return cek__fail(CEK_BAD_INPUT, "%s: line %" PRId64 ": a zero byte inside a quoted field", s->path,
                             s->line);
        if (*s->at == '\n')
            s->line++;
        if (*s->at != '"')
            continue;
        if (s->at[1] != '"') {
            f->length = (size_t)(s->at++ - f->text);
            return separator(s, f);
        }
        s->at++; /* a doubled quote is a quote of the text */
    }
    return cek__fail(CEK_BAD_INPUT, "%s: line %" PRId64 ": a quote is opened and never closed", s->path, line);
}

/* The next field; only called while s->at < s->end or after a comma. */
static cek_status field_next(scanner *s, field *f)
{
    *f = (field){ .text = s->at };
    if (*s->at == '"' && s->at < s->end)
        return quoted_field(s, f);
    while (s->at < s->end && *s->at != ',' && *s->at != '\n' && !(*s->at == '\r' && s->at[1] == '\n')) {
        if (*s->at == '"' || *s->at == '\0')
            return cek__fail(CEK_BAD_INPUT, "%s: line %" PRId64 ": a %s inside an unquoted field", s->path, s->line,
                             *s->at == '"' ? "quote" : "zero byte");
        s->at++;
    }
    f->length = (size_t)(s->at - f->text);
    return separator(s, f);
}

/* Spaces and tabs around a number are no part of it. */
static bool field_number(const field *f, double *out)
{
    const char *text = f->text;
    size_t length = f->length;

    while (length > 0 && (*text == ' ' || *text == '\t')) {
        text++;
        length--;
    }
    while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
        length--;
    return cek__decimal(text, length, out);
}

/* ---- rows ---- */

static void column_label(const cek__csv *csv, int64_t column, char *out, size_t size)
{
    if (csv->names != NULL)
        snprintf(out, size, "column '%.*s'", SHOWN_MAX, csv->names[column]);
    else
        snprintf(out, size, "column %" PRId64, column);
}

/* A field's text into a string of its own, doubled quotes made single. */
static cek_status field_copy(const field *f, char **out)
{
    cek_status st = cek__malloc(f->length + 1, out);
    char *to = *out;

    if (st != CEK_OK)
        return st;
    for (size_t i = 0; i < f->length; i++) {
        *to++ = f->text[i];
        if (f->quoted && f->text[i] == '"')
            i++;
    }
    *to = '\0';
    return CEK_OK;
}

/* Looks at the first row without using it up: how many columns, and whether all of them are numbers. */
static cek_status row_peek(scanner s, int64_t *columns, bool *numbers)
{
    field f = { .last = false };
    double value;

    *columns = 0;
    *numbers = true;
    while (!f.last) {
        cek_status st = field_next(&s, &f);

        if (st != CEK_OK)
            return st;
        ++*columns;
        *numbers = *numbers && field_number(&f, &value);
    }
    return CEK_OK;
}

/* By text, and those of one text in the order of their columns. */
static int by_text(const void *a, const void *b)
{
    char *const *x = *(char *const *const *)a, *const *y = *(char *const *const *)b;
    int order = strcmp(*x, *y);

    return order != 0 ? order : (x > y) - (x < y);
}

/* The name that is the first to be there a second time, with both its columns in the text. */
static cek_status names_check(const cek__csv *csv)
{
    char *const **sorted = NULL, *const *first = NULL, *const *second = NULL;
    cek_status st;

    CEK_TRY(cek__alloc_array((size_t)csv->columns, sizeof *sorted, &sorted));
    for (int64_t i = 0; i < csv->columns; i++)
        sorted[i] = &csv->names[i];
    qsort(sorted, (size_t)csv->columns, sizeof *sorted, by_text);
    for (int64_t i = 1; i < csv->columns; i++)
        if ((second == NULL || sorted[i] < second) && strcmp(*sorted[i - 1], *sorted[i]) == 0) {
            first = sorted[i - 1];
            second = sorted[i];
        }
    if (second != NULL)
        CEK_FAIL(CEK_BAD_INPUT, "%s: two columns are called '%.*s': %td and %td", csv->path, SHOWN_MAX, *first,
                 first - csv->names, second - csv->names);
out:
    free(sorted);
    return st;
}

static cek_status header_take(scanner *s, cek__csv *csv)
{
    cek_status st;
    field f;

    CEK_TRY(cek__calloc((size_t)csv->columns, sizeof *csv->names, &csv->names));
    for (int64_t i = 0; i < csv->columns; i++) {
        CEK_TRY(field_next(s, &f));
        CEK_TRY(field_copy(&f, &csv->names[i]));
        if (*csv->names[i] == '\0')
            CEK_FAIL(CEK_BAD_INPUT, "%s: column %" PRId64 " has no name in the header", s->path, i);
    }
    return names_check(csv);
out:
    return st;
}

static cek_status row_take(scanner *s, const cek__csv *csv, double *values)
{
    int64_t line = s->line, column = 0;
    char label[SHOWN_MAX + 32];
    field f = { .last = false };
    cek_status st;

    for (; !f.last; column++) {
        CEK_TRY(field_next(s, &f));
        if (column == csv->columns)
            CEK_FAIL(CEK_BAD_INPUT, "%s: line %" PRId64 ": more than %" PRId64 " fields", s->path, line, csv->columns);
        if (field_number(&f, &values[column]))
            continue;
        column_label(csv, column, label, sizeof label);
        if (f.length == 0 && column == 0 && f.last && !f.quoted && csv->columns > 1)
            CEK_FAIL(CEK_BAD_INPUT, "%s: line %" PRId64 " is empty", s->path, line);
        if (f.length == 0)
            CEK_FAIL(CEK_BAD_INPUT, "%s: line %" PRId64 ", %s: the value is missing", s->path, line, label);
        CEK_FAIL(CEK_BAD_INPUT, "%s: line %" PRId64 ", %s: '%.*s' is not a finite number", s->path, line, label,
                 f.length < SHOWN_MAX ? (int)f.length : SHOWN_MAX, f.text);
    }
    if (column < csv->columns)
        CEK_FAIL(CEK_BAD_INPUT, "%s: line %" PRId64 ": %" PRId64 " fields, %" PRId64 " were expected", s->path, line,
                 column, csv->columns);
    return CEK_OK;
out:
    return st;
}

static cek_status rows_take(scanner *s, cek__csv *csv)
{
    int64_t room = 0;
    cek_status st;

    while (s->at < s->end) {
        if (csv->rows == room) {
            room = room > 0 ? 2 * room : 64;
            CEK_TRY(cek__realloc_array((size_t)(room * csv->columns), sizeof *csv->values, &csv->values));
        }
        CEK_TRY(row_take(s, csv, csv->values + csv->rows * csv->columns));
        csv->rows++;
    }
    if (csv->rows == 0)
        CEK_FAIL(CEK_BAD_INPUT, "%s: no data rows", s->path);
    return CEK_OK;
out:
    return st;
}

/* Empty lines at the end of a file are no rows. */
static const char *end_without_empty_lines(const char *start, const char *end)
{
    const char *p = end;

    while (p > start && (p[-1] == '\n' || (p[-1] == '\r' && p < end && *p == '\n')))
        p--;
    return p;
}

static void byte_order_mark_skip(scanner *s)
{
    if (s->end - s->at >= 3 && memcmp(s->at, "\xef\xbb\xbf", 3) == 0)
        s->at += 3;
}

cek_status cek__csv_read(const char *path, cek__csv_header header, cek__csv **out)
{
    cek_status st;
    cek__csv *csv = NULL;
    void *data = NULL;
    size_t size;
    bool numbers;

    *out = NULL;
    CEK_TRY(cek__file_read(path, CSV_BYTES_MAX, &data, &size));
    scanner s = { .path = path, .at = data, .end = end_without_empty_lines(data, (char *)data + size), .line = 1 };

    byte_order_mark_skip(&s);
    if (s.at == s.end)
        CEK_FAIL(CEK_BAD_INPUT, "%s: is empty", path);
    CEK_TRY(cek__calloc(1, sizeof *csv, &csv));
    CEK_TRY(cek__strdup(path, &csv->path));
    CEK_TRY(row_peek(s, &csv->columns, &numbers));
    if (header == CEK__CSV_HEADER_YES || (header == CEK__CSV_HEADER_AUTO && !numbers))
        CEK_TRY(header_take(&s, csv));
    CEK_TRY(rows_take(&s, csv));
    free(data);
    *out = csv;
    return CEK_OK;
out:
    free(data);
    cek__csv_free(csv);
    return st;
}

void cek__csv_free(cek__csv *csv)
{
    if (csv == NULL)
        return;
    for (int64_t i = 0; csv->names != NULL && i < csv->columns; i++)
        free(csv->names[i]);
    free(csv->names);
    free(csv->values);
    free(csv->path);
    free(csv);
}

/* ---- data sets ---- */

cek_status cek__csv_column(const cek__csv *csv, const char *column, int64_t *out)
{
    cek__nearest near;

    for (int64_t i = 0; csv->names != NULL && i < csv->columns; i++)
        if (strcmp(csv->names[i], column) == 0) {
            *out = i;
            return CEK_OK;
        }
    if (cek__parse_int("column", column, 0, csv->columns - 1, out) == CEK_OK)
        return CEK_OK;
    cek__nearest_begin(&near, column, strlen(column));
    for (int64_t i = 0; csv->names != NULL && i < csv->columns; i++)
        cek__nearest_try(&near, csv->names[i]);
    return cek__fail(CEK_NOT_FOUND, "%s: no column '%.*s' (there are %" PRId64 ", %s)%s", csv->path, SHOWN_MAX, column,
                     csv->columns, csv->names != NULL ? "named by the first line" : "numbered from 0",
                     cek__nearest_hint(&near));
}

static cek_status to_float(const cek__csv *csv, int64_t row, int64_t column, float *out)
{
    char label[SHOWN_MAX + 32];

    *out = (float)csv->values[row * csv->columns + column];
    if (isfinite(*out))
        return CEK_OK;
    column_label(csv, column, label, sizeof label);
    return cek__fail(CEK_BAD_INPUT, "%s: row %" PRId64 ", %s: %g does not fit a 32-bit float", csv->path, row, label,
                     csv->values[row * csv->columns + column]);
}

static cek_status inputs_of(const cek__csv *csv, int64_t target, float **out)
{
    cek_status st;
    float *inputs = NULL, *to;

    *out = NULL;
    if (csv->columns < 2)
        CEK_FAIL(CEK_BAD_INPUT, "%s: one column only, so no inputs beside the target", csv->path);
    CEK_TRY(cek__alloc_array((size_t)(csv->rows * (csv->columns - 1)), sizeof *inputs, &inputs));
    to = inputs;
    for (int64_t row = 0; row < csv->rows; row++)
        for (int64_t column = 0; column < csv->columns; column++)
            if (column != target)
                CEK_TRY(to_float(csv, row, column, to++));
    *out = inputs;
    return CEK_OK;
out:
    free(inputs);
    return st;
}

cek_status cek__csv_values(const cek__csv *csv, const char *target, cek_dataset **out)
{
    cek_status st;
    cek__data_format format = { .input_type = CEK_F32,
                                .input_rank = 1,
                                .input_shape = { csv->columns - 1 },
                                .target_type = CEK_F32,
                                .target_width = 1 };
    float *inputs = NULL, *targets = NULL;
    int64_t column;

    *out = NULL;
    CEK_TRY(cek__csv_column(csv, target, &column));
    CEK_TRY(inputs_of(csv, column, &inputs));
    CEK_TRY(cek__alloc_array((size_t)csv->rows, sizeof *targets, &targets));
    for (int64_t row = 0; row < csv->rows; row++)
        CEK_TRY(to_float(csv, row, column, &targets[row]));
    return cek__dataset_adopt(&format, csv->rows, inputs, targets, out);
out:
    free(inputs);
    free(targets);
    return st;
}
