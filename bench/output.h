/* output.h - results on stdout as a table, JSON, JSON lines, CSV or Markdown, from the same rows.
 *
 * A row is a JSON object with raw units (ns, bytes, FLOP/s); the columns say what of it people see, and how. JSON gets
 * all of it. Tables and lines appear as the rows come, a JSON document at the end. A table that is wider than its
 * terminal leaves columns out, and says which.
 *
 * Owns what becomes of standard output. Nobody who makes or prints a row asks whether that went well: from the first
 * thing on that could not be made for want of memory, or not be written, nothing more is printed, and the exit code
 * says so in the end. What was printed until then is a whole number of lines of what should have been. */
#ifndef BENCH_OUTPUT_H
#define BENCH_OUTPUT_H

#include <jansson.h>

#include "bench/bench.h"

typedef struct output_column {
    const char *key, *heading;
    int width;    /* at least, of a table; < 0: to the left */
    double scale; /* 0: shown as it is, else multiplied */
    int decimals;
} output_column;

/* Text that grows; always ends with a 0. */
typedef struct output_text {
    char *at;
    size_t used, size;
} output_text;

enum { OUTPUT_COLUMNS = 16 };
typedef struct output {
    output_format format;
    const output_column *columns;
    size_t column_count;
    int widths[OUTPUT_COLUMNS]; /* 0: left out, for want of room */
    size_t cut;                 /* the column whose texts are cut, for want of more; 0: none */
    bool told[OUTPUT_COLUMNS];  /* of a text */
    size_t room;                /* of the terminal */
    const char *rows_key;       /* of the list of rows in the JSON document */
    json_t *document, *rows;
    bool begun;
    output_text line, cell;
} output;

/* Memory of JSON from here on, whoever makes or reads it: that there was none is kept, for json_starved and
 * the exit code. */
void json_begin(void);
bool json_starved(void);
/* A real number; null where it is none that JSON has. */
json_t *number_json(double value);
/* A text of the user's or a file's, such as a path, as cek_text_printable leaves it: JSON has nothing but UTF-8. */
json_t *text_json(const char *text);

/* `rows_key`: "results". Before anything else of JSON. */
void output_open(output *out, output_format format, const output_column *columns, size_t count, const char *rows_key);
/* Before the first row: a column will hold a text of this length. Told of any, it is as wide as the longest, or its
 * heading. */
void output_expect(output *out, const char *key, size_t length);
/* A key of the document beside the rows. Takes the reference. */
void output_set(output *out, const char *key, json_t *value);
/* Takes the reference. */
void output_row(output *out, json_t *row);
/* A line of prose, for people alone: tables and Markdown. */
void output_note(output *out, const char *fmt, ...) __attribute__((__format__(__printf__, 2, 3)));
/* For who shows rows otherwise: what people see of a row in that column, until the next call; and, in place of
 * output_close, without printing anything, so that JSON stays unseen. */
const char *output_cell(output *out, const json_t *row, size_t column);
void output_drop(output *out);
/* Prints what is left and flushes. JSON lines: the document without its rows is the last line, if it holds anything.
 * Returns `code`, or what stdout_close makes of it. */
int output_close(output *out, int code);
/* `code`; or, where the results were to be believed but are not all there, after complaining EXIT_MEMORY if memory ran
 * out under them, EXIT_BAD_INPUT if they could not be written. */
int stdout_close(int code);

#endif
