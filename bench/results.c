/* results.c - see results.h. */
#include "bench/results.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/bench.h"
#include "bench/output.h"

const char *results_name(const results *r)
{
    const char *slash = strrchr(r->path, '/');
    return slash && slash[1] ? slash + 1 : r->path;
}

const char *results_what(const results *r)
{
    static const char *const names[] = {
        [RESULTS_EPOCHS] = "epochs of train", [RESULTS_STEPS] = "steps of train (--log-every)",
        [RESULTS_GEMM] = "results of gemm",   [RESULTS_CONV] = "results of conv",
        [RESULTS_OP] = "results of op",       [RESULTS_COPY] = "results of copy",
        [RESULTS_PEAK] = "results of peak",   [RESULTS_TRACE] = "a trace"
    };
    return names[r->kind];
}

double row_number(const json_t *row, const char *key)
{
    return json_number_value(json_object_get(row, key));
}

const char *row_text(const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));
    return text ? text : "";
}

static bool has(const json_t *row, const char *key)
{
    return json_object_get(row, key) != NULL;
}

/* By the keys that no other command's rows have together. 0: none. */
static results_kind kind_of(const json_t *row)
{
    static const struct {
        results_kind kind;
        const char *keys[3];
    } kinds[] = {
        { RESULTS_EPOCHS, { "epoch", "train_loss", "samples_per_second" } },
        { RESULTS_STEPS, { "step", "loss", "samples" } },
        { RESULTS_CONV, { "shape", "pass", "median_ns" } },
        { RESULTS_GEMM, { "shape", "k", "median_ns" } },
        { RESULTS_OP, { "op", "problem", "median_ns" } },
        { RESULTS_COPY, { "from", "to", "median_ns" } },
        { RESULTS_PEAK, { "device", "peak", "type" } },
        { RESULTS_TRACE, { "ph", "pid", "tid" } },
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (has(row, kinds[i].keys[0]) && has(row, kinds[i].keys[1]) && has(row, kinds[i].keys[2]))
            return kinds[i].kind;
    return 0;
}

/* The list of rows within a document; NULL: none. */
static json_t *rows_of(json_t *document)
{
    static const char *const keys[] = { "results", "epochs", "steps", "traceEvents" };
    if (json_is_array(document))
        return document;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *rows = json_object_get(document, keys[i]);
        if (json_is_array(rows))
            return rows;
    }
    return NULL;
}

/* One document after the other: whatever is no row itself, and has none, is the document of the lines. */
static int document_take(results *r, json_t *one)
{
    json_t *rows = rows_of(one);
    if (rows && json_array_size(r->rows))
        return complain(EXIT_BAD_INPUT, "%s: results of several runs: one file for each is wanted", r->path);
    if (rows)
        json_array_extend(r->rows, rows);
    else if (kind_of(one))
        json_array_append(r->rows, one);
    if (json_is_object(one) && !kind_of(one))
        json_object_update(r->document, one);
    return EXIT_OK;
}

/* jansson (2.14) reads on behind a text that it found no memory for: where there is none, nothing returns to it. */
static const char *being_read;
static void *memory_to_read(size_t bytes)
{
    void *memory = malloc(bytes);
    if (!memory && bytes)
        exit(complain(EXIT_MEMORY, "%s: no host memory for its results", being_read));
    return memory;
}

static int documents_read(FILE *from, results *r)
{
    json_error_t error;
    int code = EXIT_OK, c;
    being_read = r->path;
    json_set_alloc_funcs(memory_to_read, free);
    while (!code) {
        while ((c = getc(from)) == '\n' || c == ' ' || c == '\r' || c == '\t')
            ;
        if (c == EOF)
            break;
        ungetc(c, from);
        json_t *one = json_loadf(from, JSON_DISABLE_EOF_CHECK, &error);
        if (!one && error.line > 1 && json_array_size(r->rows) == 0)
            code = complain(EXIT_BAD_INPUT, "%s: line %d: no JSON: %s", r->path, error.line, error.text);
        else if (!one)
            code = complain(EXIT_BAD_INPUT, "%s: no JSON: %s", r->path, error.text);
        else
            code = document_take(r, one);
        json_decref(one);
    }
    json_begin();
    return !code && ferror(from) ? complain_errno(r->path, "cannot be read") : code;
}

/* All rows are of the first one's kind; a trace has events of every sort. */
static int kinds_check(results *r)
{
    const char *const wanted = "results of train, gemm, conv, op, copy or peak as JSON, or a trace, are wanted";
    size_t i;
    const json_t *row;
    json_array_foreach(r->rows, i, row)
    {
        const results_kind kind = kind_of(row);
        if (!i)
            r->kind = kind;
        if (!r->kind)
            break;
        if (r->kind != RESULTS_TRACE && kind != r->kind)
            return complain(EXIT_BAD_INPUT, "%s: result %zu is none like those before it", r->path, i + 1);
    }
    return r->kind ? EXIT_OK : complain(EXIT_BAD_INPUT, "%s: nothing that this program measures: %s", r->path, wanted);
}

int results_open(const char *path, results *r)
{
    struct stat info;
    json_begin();
    *r = (results){ .path = path, .document = json_object(), .rows = json_array() };
    FILE *from = fopen(path, "r");
    int code = EXIT_OK;
    if (!from)
        code = complain_errno(path, "cannot be opened");
    else if (!fstat(fileno(from), &info) && S_ISDIR(info.st_mode))
        code = complain(EXIT_BAD_INPUT, "%s: is a folder", path);
    else if (!r->document || !r->rows)
        code = complain(EXIT_MEMORY, "%s: no host memory for its results", path);
    if (!code)
        code = documents_read(from, r);
    if (!code)
        code = kinds_check(r);
    if (from)
        fclose(from);
    if (code)
        results_close(r);
    return code;
}

void results_close(results *r)
{
    json_decref(r->document);
    json_decref(r->rows);
    r->document = r->rows = NULL;
}

void row_what(results_kind kind, const json_t *row, char *out, size_t cap)
{
    switch (kind) {
    case RESULTS_GEMM: snprintf(out, cap, "%s %s", row_text(row, "shape"), row_text(row, "type")); break;
    case RESULTS_CONV:
        snprintf(out, cap, "%s %s %s", row_text(row, "shape"), row_text(row, "pass"), row_text(row, "type"));
        break;
    case RESULTS_OP:
        snprintf(out, cap, "%s %s %s", row_text(row, "op"), row_text(row, "problem"), row_text(row, "type"));
        break;
    case RESULTS_COPY:
        snprintf(out, cap, "%s to %s, %.0f bytes", row_text(row, "from"), row_text(row, "to"),
                 row_number(row, "bytes"));
        break;
    case RESULTS_PEAK: snprintf(out, cap, "%s %s", row_text(row, "peak"), row_text(row, "type")); break;
    default: snprintf(out, cap, "training"); break;
    }
}
