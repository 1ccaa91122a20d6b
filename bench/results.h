/* results.h - what this program printed as JSON, read back: a document with its rows, JSON lines, or a trace.
 *
 * What a file holds is told by what is in it, never by its name. */
#ifndef BENCH_RESULTS_H
#define BENCH_RESULTS_H

#include <jansson.h>

typedef enum results_kind {
    RESULTS_EPOCHS = 1, /* of train: rows of epochs, or with --log-every of steps */
    RESULTS_STEPS,
    RESULTS_GEMM,
    RESULTS_CONV,
    RESULTS_OP,
    RESULTS_COPY,
    RESULTS_PEAK,
    RESULTS_TRACE
} results_kind;

typedef struct results {
    const char *path;
    results_kind kind;
    json_t *document; /* an object, empty where there is none */
    json_t *rows;     /* an array of objects, at least one; of a trace its events */
} results;

/* Reads it. 0, or an exit code after one line of complaint: EXIT_BAD_INPUT for a file that is not there, no JSON, or
 * JSON of others. */
int results_open(const char *path, results *out);
void results_close(results *r);

/* The last part of the path. */
const char *results_name(const results *r);
/* What it holds: "epochs of train", "results of gemm". */
const char *results_what(const results *r);

/* A member; 0 and "" where there is none of that type. */
double row_number(const json_t *row, const char *key);
const char *row_text(const json_t *row, const char *key);

/* What a row of a table is about, without the device: "512x512x512 f32", "host to cpu:0, 4096 bytes". */
void row_what(results_kind kind, const json_t *row, char *out, size_t cap);

#endif
