/* device_op.h - one operation of plugin.h on one device with its operands, ready to be run and
 * timed. */
#ifndef BENCH_DEVICE_OP_H
#define BENCH_DEVICE_OP_H

#include "bench/bench.h"

enum { DEVICE_OP_SLOTS = 8 };
typedef struct device_op {
    const cek_plugin *plugin;
    cek_device *device;
    cek_stream *stream;
    cek_op *op;
    cek_op_info info;
    cek_memory *memory[DEVICE_OP_SLOTS], *workspace;
    cek_ref refs[DEVICE_OP_SLOTS];
    uint32_t count;
} device_op;

/* Everything but the operands. On failure `d` is empty. */
cek_status device_op_create(cek_device *device, const cek_op_desc *desc, device_op *d);
/* Gives a slot its memory, and contents unless `data` is NULL; blocks. */
cek_status device_op_operand(device_op *d, uint32_t slot, const void *data, uint64_t bytes);
/* Runs it `times` times and waits; *seconds is the time of one. */
cek_status device_op_time(device_op *d, int64_t times, double *seconds);
cek_status device_op_read(device_op *d, uint32_t slot, void *data, uint64_t bytes);
void device_op_free(device_op *d);

/* How often a run of `seconds` must be repeated for the clock to be no matter. */
int64_t device_op_repeats(double seconds);
/* values[i]: uniform in [-1, 1), a function of seed and i. */
void random_fill(float *values, uint64_t count, uint64_t seed);
/* numbers_encode - the values as a device of that type has them, the caller's (free), and rounds
 * `values` to them. NULL: no memory. numbers_decode - back again. */
void *numbers_encode(cek_dtype type, float *values, uint64_t count);
void numbers_decode(cek_dtype type, const void *numbers, uint64_t count, float *values);
/* What rounding a value to the type may add to the error of a sum. */
double type_rounding(cek_dtype type, double value);
/* Compares elements of a result, about `budget` products' worth of them, spread over all, the last
 * one included. expect(user, index, &tolerance) is the definition. Returns the number of wrong
 * ones. */
uint64_t result_compare(const float *result, uint64_t count, uint64_t terms,
                        double (*expect)(void *, uint64_t, double *), void *user, double slack, double *max_error,
                        uint64_t *compared);

#endif
