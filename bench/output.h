/* output.h - results on stdout as a table, JSON, JSON lines, CSV or Markdown, from the same rows.
 *
 * A row is a JSON object with raw units (ns, bytes, FLOP/s); the columns say what of it people see,
 * and how. JSON gets all of it. Tables and lines appear as the rows come, a JSON document at the
 * end. */
#ifndef BENCH_OUTPUT_H
#define BENCH_OUTPUT_H

#include <jansson.h>

#include "bench/bench.h"

typedef struct output_column {
    const char *key, *heading;
    int width;
    double scale; /* 0: shown as it is, else multiplied */
    int decimals;
} output_column;

typedef struct output {
    output_format format;
    const output_column *columns;
    size_t column_count;
    const char *rows_key; /* of the list of rows in the JSON document */
    json_t *document, *rows;
    bool begun;
} output;

/* A real number; null where it is none that JSON has. */
json_t *number_json(double value);

/* `rows_key`: "results". */
void output_open(output *out, output_format format, const output_column *columns, size_t count, const char *rows_key);
/* A key of the document beside the rows. Takes the reference. */
void output_set(output *out, const char *key, json_t *value);
/* Takes the reference. */
void output_row(output *out, json_t *row);
/* A line of prose, for people alone: tables and Markdown. */
void output_note(output *out, const char *fmt, ...) __attribute__((__format__(__printf__, 2, 3)));
/* Prints what is left and flushes. JSON lines: the document without its rows is the last line, if
 * it holds anything. Returns `code`, or EXIT_BAD_INPUT if stdout could not be written. */
int output_close(output *out, int code);
/* `code`, or after complaining the exit code of a standard output that could not be written. */
int stdout_close(int code);

#endif
