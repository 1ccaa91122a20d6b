/* report.h - the load report: what became of every candidate for a plugin, a line each.
 *
 * Must not know: how candidates are found or loaded. */
#ifndef CEK_CORE_DEVICE_REPORT_H
#define CEK_CORE_DEVICE_REPORT_H

#include <stdbool.h>

#include "core/base/status.h"

typedef struct cek__report_line {
    char *path, *shown;     /* as the system has it, and as texts have it */
    char *plugin, *version; /* NULL until known */
    const char *stage;      /* a constant: "not built", "search", "permissions", "not started", "open", "query",
                             * "create", "devices", "loaded" */
    char *reason;           /* NULL: none */
    cek_status status;      /* CEK_NOT_READY: may be opened, which nothing has asked for yet */
    bool by_program;        /* the program named this file: what the file is called says nothing about the plugin */
    uint32_t profile, device_count, abi;
} cek__report_line;

typedef struct cek__report {
    cek__report_line *lines;
    size_t count, capacity;
} cek__report;

void cek__report_clear(cek__report *report);

/* Adds a line for `path` at the stage "not started". */
CEK__CHECKED cek_status cek__report_add(cek__report *report, const char *path, cek__report_line **out);

/* Ends a line with this thread's error text as the reason. */
CEK__CHECKED cek_status cek__report_stop(cek__report_line *line, const char *stage, cek_status status);

/* Why a line is where it is; never NULL. */
const char *cek__report_reason(const cek__report_line *line);

/* All lines as text, one below the other; the caller's (free). */
CEK__CHECKED cek_status cek__report_text(const cek__report *report, char **out);

/* All in one line of at most size - 1 characters, faults first, for errors: "cuda: open: libcuda.so.1: ...; cpu:
 * loaded". */
void cek__report_summary(const cek__report *report, char *out, size_t size);

#endif
