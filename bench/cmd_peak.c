/* cmd_peak.c - `peak`: what a device does at most: products per type, memory, launches, the way
 * from and to the host. */
#include <stdlib.h>
#include <string.h>

#include "bench/device_op.h"
#include "bench/output.h"
#include "bench/peak.h"
#include "bench/progress.h"
#include "bench/stats.h"
#include "bench/tables.h"
#include "spec/number.h"

enum { RUNS = 9, WARMUP = 2, LAUNCHES = 1000 };
static const uint64_t MEMORY_BYTES = 64u << 20; /* beyond any cache of today but the largest */

static const output_column columns[] = {
    { "device", "device", -12, 0, 0 },
    { "peak", "peak", -26, 0, 0 },
    { "type", "type", -5, 0, 0 },
    { "flops", "GFLOP/s", 10, 1e-9, 1 },
    { "bytes_per_second", "GB/s", 9, 1e-9, 2 },
    { "median_ns", "us", 10, 1e-3, 2 },
    { "spread", "spread %", 8, 100, 1 },
};

static void row_print(output *out, cek_device *device, const char *peak, const char *type, double seconds, double bytes,
                      spec_timing *t)
{
    json_t *row = json_pack("{ss ss ss sf sf so}", "device", cek_device_name(device), "peak", peak, "type", type,
                            "median_ns", seconds * 1e9, "spread", stats_spread(t->seconds, t->runs), "runs_ns",
                            runs_json(t->seconds, t->runs));
    if (bytes > 0)
        json_object_update_new(row, json_pack("{sf}", "bytes_per_second", bytes / seconds));
    output_row(out, row);
    progress_one();
}

/* ---- products ---- */

static cek_status products_measure(cek_device *device, output *out)
{
    static const struct {
        cek_dtype type;
        uint32_t math;
        const char *name;
    } modes[] = {
        { CEK_F32, CEK_MATH_F32, "product" },
        { CEK_F32, CEK_MATH_TF32, "product, tf32" },
        { CEK_BF16, CEK_MATH_F32, "product" },
        { CEK_F16, CEK_MATH_F32, "product" },
    };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        double flops;
        uint64_t side;
        progress_fact(0, "%s %s", modes[i].name, spec_type_name(modes[i].type));
        cek_status st = peak_product(device, modes[i].type, modes[i].math, &flops, &side);
        progress_one();
        if (st == CEK_UNSUPPORTED)
            continue;
        if (st)
            return st;
        output_row(out, json_pack("{ss ss ss sf sI}", "device", cek_device_name(device), "peak", modes[i].name, "type",
                                  spec_type_name(modes[i].type), "flops", flops, "side", (json_int_t)side));
    }
    return CEK_OK;
}

/* ---- memory and launches: a copy as an operation, long and short ---- */

static cek_status copies_measure(cek_device *device, uint64_t count, uint64_t batch, spec_timing *t)
{
    cek_copy_desc desc = {
        .op = { .size = sizeof desc, .kind = CEK_OP_COPY, .operands = CEK_BIT(CEK_COPY_X) | CEK_BIT(CEK_COPY_Y) },
        .rank = 1,
        .x_type = CEK_F32,
        .y_type = CEK_F32,
        .shape = { count },
        .x_strides = { 1 },
        .y_strides = { 1 }
    };
    device_op op;
    cek_status st = device_op_create(device, &desc.op, &op);
    if (st)
        return st;
    void *numbers = peak_numbers(CEK_F32, count, 1);
    st = numbers ? device_op_operand(&op, CEK_COPY_X, numbers, count * sizeof(float)) : CEK_OUT_OF_MEMORY;
    if (!st)
        st = device_op_operand(&op, CEK_COPY_Y, NULL, count * sizeof(float));
    t->repeats = batch;
    if (!st)
        st = spec_time(t, device_op_run, NULL, &op);
    free(numbers);
    device_op_free(&op);
    return st;
}

static cek_status memory_measure(cek_device *device, spec_timing *t, output *out)
{
    static const struct {
        const char *name;
        uint64_t count;
        uint64_t batch;
    } kinds[] = {
        { "memory, read and written", 0, 0 },
        { "launch and wait", 1, 1 },
        { "launch, many at once", 1, LAUNCHES },
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        uint64_t count = kinds[i].count ? kinds[i].count : MEMORY_BYTES / sizeof(float);
        progress_fact(0, "%s", kinds[i].name);
        cek_status st = copies_measure(device, count, kinds[i].batch, t);
        if (st)
            return st;
        row_print(out, device, kinds[i].name, "f32", stats_median(t->seconds, t->runs),
                  kinds[i].count ? 0 : 2.0 * (double)MEMORY_BYTES, t);
    }
    return CEK_OK;
}

/* ---- from and to the host ---- */

static cek_status host_measure(cek_device *device, spec_timing *t, output *out)
{
    cek_memory *memory = NULL;
    cek_stream *stream = NULL;
    void *pinned = NULL;
    cek_status st = cek_stream_create(device, &stream);
    if (!st)
        st = cek_memory_alloc(device, MEMORY_BYTES, 0, &memory);
    if (!st)
        st = cek_pinned_alloc(device, MEMORY_BYTES, &pinned);
    if (!st)
        memset(pinned, 1, MEMORY_BYTES);
    for (int up = 1; up >= 0 && !st; up--) {
        progress_fact(0, up ? "upload" : "download");
        for (int64_t i = -(int64_t)t->warmup; i < t->runs && !st; i++) {
            double start = seconds_now();
            st = up ? cek_stream_upload(stream, cek_memory_ref(memory), pinned, MEMORY_BYTES)
                    : cek_stream_download(stream, pinned, cek_memory_ref(memory), MEMORY_BYTES);
            if (!st)
                st = cek_stream_sync(stream, CEK_FOREVER);
            t->seconds[i < 0 ? 0 : i] = seconds_now() - start;
        }
        if (!st)
            row_print(out, device, up ? "upload, pinned" : "download, pinned", "", stats_median(t->seconds, t->runs),
                      (double)MEMORY_BYTES, t);
    }
    cek_pinned_free(device, pinned);
    cek_memory_free(memory);
    cek_stream_free(stream);
    return st;
}

int peak_rows(const bench_options *o, cek_device *const *devices, size_t count, output *out)
{
    enum { EACH = 4 + 3 + 2 }; /* products, copies as operations, ways from and to the host */
    spec_timing t;
    output_open(out, o->output, columns, sizeof columns / sizeof *columns, "results");
    devices_expect(out, "device", devices, count);
    int code = timing_open(o, RUNS, WARMUP, &t);
    progress_begin((int64_t)count * EACH, "peak");
    for (size_t i = 0; i < count && !code; i++) {
        progress_label("peak %s", cek_device_name(devices[i]));
        cek_status st = products_measure(devices[i], out);
        if (!st)
            st = memory_measure(devices[i], &t, out);
        if (!st)
            st = host_measure(devices[i], &t, out);
        if (st)
            code = complain_status(st);
    }
    free(t.seconds);
    return code;
}

int cmd_peak(const bench_options *o)
{
    return o->argc ? complain(EXIT_USAGE, "peak takes no argument: %s", o->argv[0])
                   : table_run(o, "peak", CEK_PROFILE_INFERENCE, peak_rows);
}
