/* csv.h - reads tables of numbers from CSV files (RFC 4180).
 *
 * Fields are separated by commas and may be quoted; lines end in LF or CRLF. Every field of a data row is a finite
 * number; a missing one, text, or a row of another length is CEK_BAD_INPUT with file, line and column in the text. */
#ifndef CEK_NN_DATA_CSV_H
#define CEK_NN_DATA_CSV_H

#include <stdint.h>

#include "core/base/status.h"
#include "nn/data/dataset.h"

typedef enum cek__csv_header {
    CEK__CSV_HEADER_AUTO, /* the first row is names if any of its fields is not a number */
    CEK__CSV_HEADER_YES,
    CEK__CSV_HEADER_NO
} cek__csv_header;

typedef struct cek__csv {
    char *path;
    int64_t rows, columns;
    char **names;   /* one a column; NULL without header */
    double *values; /* row by row */
} cek__csv;

CEK__SHARED CEK__CHECKED cek_status cek__csv_read(const char *path, cek__csv_header header, cek__csv **out);
CEK__SHARED void cek__csv_free(cek__csv *csv); /* NULL is accepted */

/* The number of the column called `column`, or else of that number, counted from 0. */
CEK__SHARED CEK__CHECKED cek_status cek__csv_column(const cek__csv *csv, const char *column, int64_t *out);

/* All columns but the target as f32 inputs of shape (columns - 1), the target as one f32 value. */
CEK__SHARED CEK__CHECKED cek_status cek__csv_values(const cek__csv *csv, const char *target, cek_dataset **out);

#endif
