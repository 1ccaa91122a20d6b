/* device_op.h - one operation of plugin.h on one device with its operands, ready to be run and
 * timed. */
#ifndef BENCH_DEVICE_OP_H
#define BENCH_DEVICE_OP_H

#include "bench/bench.h"
#include "spec/spec.h"

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
/* Runs a device_op so many times and waits: what spec_time asks for. */
cek_status device_op_run(void *op, uint64_t times);
cek_status device_op_read(device_op *d, uint32_t slot, void *data, uint64_t bytes);
void device_op_free(device_op *d);

/* As the options ask for, or else `runs` and `warmup`; t->seconds is the caller's (free). 0 or an exit code, with
 * everything said. */
int timing_open(const bench_options *o, uint32_t runs, uint32_t warmup, spec_timing *t);
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
                        double (*expect)(void *, uint64_t, double *), void *user, double *max_error,
                        uint64_t *compared);

#endif
