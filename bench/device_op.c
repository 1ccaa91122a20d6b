/* device_op.c - see device_op.h. */
#include "bench/device_op.h"

#include <math.h>
#include <stdlib.h>

#include "spec/number.h"

cek_status device_op_create(cek_device *device, const cek_op_desc *desc, device_op *d)
{
    cek_dev *dev = NULL;
    *d = (device_op){ .device = device, .info.size = sizeof d->info };
    cek_status st = cek_device_raw(device, &d->plugin, &dev);
    if (!st && !d->plugin->op_create)
        st = CEK_UNSUPPORTED;
    if (!st)
        st = cek_stream_create(device, &d->stream);
    if (!st)
        st = d->plugin->op_create(dev, desc, &d->info, &d->op);
    if (!st && d->info.workspace_bytes)
        st = cek_memory_alloc(device, d->info.workspace_bytes, 0, &d->workspace);
    if (st)
        device_op_free(d);
    return st;
}

cek_status device_op_operand(device_op *d, uint32_t slot, const void *data, uint64_t bytes)
{
    cek_status st = cek_memory_alloc(d->device, bytes, 0, &d->memory[slot]);
    if (st)
        return st;
    d->refs[slot] = cek_memory_ref(d->memory[slot]);
    d->count = slot >= d->count ? slot + 1 : d->count;
    if (data)
        st = cek_stream_upload(d->stream, d->refs[slot], data, bytes);
    return st ? st : cek_stream_sync(d->stream, CEK_FOREVER);
}

cek_status device_op_run(void *op, uint64_t times)
{
    device_op *d = op;
    cek_ref workspace = d->workspace ? cek_memory_ref(d->workspace) : (cek_ref){ NULL, 0 };
    cek_queue *queue = cek_stream_raw(d->stream);
    cek_status st = CEK_OK;
    for (uint64_t i = 0; i < times && !st; i++)
        st = d->plugin->op_run(queue, d->op, d->refs, d->count, workspace);
    return st ? st : cek_stream_sync(d->stream, CEK_FOREVER);
}

cek_status device_op_read(device_op *d, uint32_t slot, void *data, uint64_t bytes)
{
    cek_status st = cek_stream_download(d->stream, data, d->refs[slot], bytes);
    return st ? st : cek_stream_sync(d->stream, CEK_FOREVER);
}

void device_op_free(device_op *d)
{
    if (d->op)
        d->plugin->op_destroy(d->op);
    for (int i = 0; i < DEVICE_OP_SLOTS; i++)
        cek_memory_free(d->memory[i]);
    cek_memory_free(d->workspace);
    cek_stream_free(d->stream);
    *d = (device_op){ .op = NULL };
}

int timing_open(const bench_options *o, uint32_t runs, uint32_t warmup, spec_timing *t)
{
    *t = (spec_timing){ .runs = o->runs < 0 ? runs : (uint32_t)o->runs,
                        .warmup = o->warmup < 0 ? warmup : (uint32_t)o->warmup };
    t->seconds = calloc(t->runs, sizeof *t->seconds);
    return t->seconds ? EXIT_OK : complain(EXIT_MEMORY, "no host memory");
}

void random_fill(float *values, uint64_t count, uint64_t seed)
{
    for (uint64_t i = 0; i < count; i++) { /* splitmix64 */
        uint64_t z = (seed << 40) + (i + 1) * 0x9E3779B97F4A7C15u;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        values[i] = (float)((z ^ z >> 31) >> 40) * 0x1p-23f - 1;
    }
}

/* spec/ speaks of doubles: a piece at a time. */
enum { PIECE = 512 };

void numbers_decode(cek_dtype type, const void *numbers, uint64_t count, float *values)
{
    const unsigned char *from = numbers;
    const size_t width = spec_type_bytes(type);
    double piece[PIECE];
    for (uint64_t i = 0; i < count; i += PIECE) {
        uint64_t n = count - i < PIECE ? count - i : PIECE;
        spec_decode(type, from + i * width, n, piece);
        for (uint64_t k = 0; k < n; k++)
            values[i + k] = (float)piece[k];
    }
}

void *numbers_encode(cek_dtype type, float *values, uint64_t count)
{
    const size_t width = spec_type_bytes(type);
    unsigned char *numbers = malloc(count * width);
    double piece[PIECE];
    for (uint64_t i = 0; numbers && i < count; i += PIECE) {
        uint64_t n = count - i < PIECE ? count - i : PIECE;
        for (uint64_t k = 0; k < n; k++)
            piece[k] = values[i + k];
        spec_encode(type, piece, n, numbers + i * width);
    }
    if (numbers)
        numbers_decode(type, numbers, count, values);
    return numbers;
}

double type_rounding(cek_dtype type, double value)
{
    return type == CEK_F32 ? 0 : fabs(value) * (type == CEK_F16 ? 0x1p-10 : 0x1p-7) + 0x1p-24;
}

uint64_t result_compare(const float *result, uint64_t count, uint64_t terms,
                        double (*expect)(void *, uint64_t, double *), void *user, double *max_error, uint64_t *compared)
{
    const uint64_t budget = 20000000; /* products: a fraction of a second */
    uint64_t samples = budget / (terms ? terms : 1), wrong = 0;
    samples = samples < 64 ? 64 : samples;
    samples = samples > count ? count : samples;
    *max_error = 0;
    for (uint64_t i = 0; i < samples; i++) {
        uint64_t index = samples == 1 ? count - 1 : (uint64_t)((double)i * (double)(count - 1) / (double)(samples - 1));
        double tolerance, error = fabs(expect(user, index, &tolerance) - result[index]);
        wrong += !(error <= tolerance);
        *max_error = error > *max_error || isnan(error) ? error : *max_error;
    }
    *compared = samples;
    return wrong;
}
