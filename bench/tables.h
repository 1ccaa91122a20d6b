/* tables.h - the tables of what devices do: the commands that print one each, and whoever wants several
 * (cmd_report.c). */
#ifndef BENCH_TABLES_H
#define BENCH_TABLES_H

#include "bench/output.h"

/* Measures on each of the devices as the options ask, into *out, which it opens. 0 or an exit code, after
 * complaining: *out is to be closed either way. */
typedef int table_rows(const bench_options *o, cek_device *const *devices, size_t count, output *out);
table_rows gemm_rows, conv_rows, op_rows, copy_rows, peak_rows;
/* All devices that the engine has. */
int devices_rows(const bench_options *o, cek_engine *engine, output *out);
/* What sensors say of a device at this moment, in words; "" where it has none. 0 or an exit code. */
enum { DEVICE_NOW_BYTES = 160 };
int device_now(cek_device *device, char text[DEVICE_NOW_BYTES]);

/* One of them as a command: on the devices that the options select for a job of `profile`. Its JSON says which
 * command it was of, which version, and on what devices. An exit code. */
int table_run(const bench_options *o, const char *command, uint32_t profile, table_rows *rows);

/* How many words separated by commas. */
size_t words_count(const char *list);

/* A column will hold these words, or the names of these devices (output_expect). */
void words_expect(output *out, const char *key, const char *list);
void devices_expect(output *out, const char *key, cek_device *const *devices, size_t count);

/* The timed runs in nanoseconds, one after the other, for who compares (cmd_compare.c). */
json_t *runs_json(const double *seconds, size_t count);

#endif
