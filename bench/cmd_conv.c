/* cmd_conv.c - `conv`: speed and errors of convolutions, in any of the three directions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/device_op.h"
#include "bench/output.h"
#include "bench/peak.h"
#include "bench/progress.h"
#include "bench/stats.h"
#include "bench/tables.h"
#include "spec/number.h"
#include "spec/spec.h"

/* The layers of mnist-cnn and lenet5 at batch 64, and one of a larger network. */
static const char default_shapes[] = "mb64ic1ih28oc64oh28kh3ph1,mb64ic64ih28oc128oh28kh3ph1,mb64ic1ih28oc6oh28kh5ph2,"
                                     "mb64ic6ih14oc16oh10kh5ph0,mb16ic128ih14oc128oh14kh3ph1";
enum { RUNS = 9, WARMUP = 2 };

static const output_column columns[] = {
    { "device", "device", -12, 0, 0 },       { "shape", "shape", -34, 0, 0 },       { "pass", "pass", -8, 0, 0 },
    { "median_ns", "ms", 8, 1e-6, 3 },       { "spread", "spread %", 8, 100, 1 },   { "flops", "GFLOP/s", 8, 1e-9, 1 },
    { "of_peak", "% peak", 6, 100, 1 },      { "max_error", "max error", 9, 1, 7 }, { "wrong", "wrong", 5, 0, 0 },
    { "algorithm", "algorithm", -22, 0, 0 },
};

/* The two inputs and the result, in the order of the slots of each of the three operations. */
typedef struct conv_data {
    cek_conv_desc desc;
    cek_dtype type[3];
    uint64_t count[3];
    float *f32[3]; /* values that their type has */
    double *f64[2];
    void *bytes[3];     /* as the device has them */
    double transformed; /* the error that its transform may have; 0: it uses none */
} conv_data;

static double conv_expect(void *user, uint64_t index, double *tolerance)
{
    const conv_data *c = user;
    double value = spec_conv_at(&c->desc, c->f64[0], c->f64[1], index, tolerance);
    if (c->transformed > 0)
        *tolerance = c->transformed;
    *tolerance += type_rounding(c->type[2], value);
    return value;
}

static bool conv_read(const char *text, const bench_options *o, conv_data *c)
{
    char error[SPEC_TEXT_MAX];
    const char *rest;
    cek_conv_desc *d = &c->desc;
    if (!spec_conv_read(text, d, &rest, error, sizeof error))
        return complain(EXIT_USAGE, "--shape: %s", error), false;
    if (*rest)
        return complain(EXIT_USAGE, "--shape: %s: a convolution takes no modifier", text), false;
    d->x_type = d->w_type = d->y_type = o->type ? o->type : CEK_F32;
    d->op.math = o->math;
    d->op.kind = !o->pass || !strcmp(o->pass, "forward") ? CEK_OP_CONV_FORWARD
                 : !strcmp(o->pass, "data")              ? CEK_OP_CONV_BACKWARD_DATA
                                                         : CEK_OP_CONV_BACKWARD_WEIGHTS;
    d->op.operands = 7; /* slots 0 and 1 are the inputs and 2 the result, in all three */
    uint64_t out[CEK_SPATIAL_MAX], x = d->batch * d->in_channels, w = d->out_channels * (d->in_channels / d->groups);
    uint64_t y = d->batch * d->out_channels;
    spec_conv_out(d, out);
    for (uint32_t i = 0; i < d->spatial; i++)
        x *= d->in[i], w *= d->kernel[i], y *= out[i];
    bool forward = d->op.kind == CEK_OP_CONV_FORWARD, data = d->op.kind == CEK_OP_CONV_BACKWARD_DATA;
    c->count[0] = data ? y : x;
    c->count[1] = forward || data ? w : y;
    c->count[2] = forward ? y : data ? x : w;
    c->type[0] = c->type[1] = d->x_type;
    c->type[2] = forward || data ? d->x_type : CEK_F32; /* gradients of parameters */
    return true;
}

static bool conv_alloc(conv_data *c, uint64_t seed)
{
    for (int i = 0; i < 3; i++) {
        if (!(c->f32[i] = calloc(c->count[i], sizeof(float))))
            return false;
        if (i < 2)
            random_fill(c->f32[i], c->count[i], seed + (uint64_t)i);
        if (!(c->bytes[i] = numbers_encode(c->type[i], c->f32[i], c->count[i])))
            return false;
        if (i == 2)
            break;
        if (!(c->f64[i] = malloc(c->count[i] * sizeof(double))))
            return false;
        for (uint64_t k = 0; k < c->count[i]; k++)
            c->f64[i][k] = c->f32[i][k];
    }
    return true;
}

static void conv_free(conv_data *c)
{
    for (int i = 0; i < 3; i++)
        free(c->f32[i]), free(c->bytes[i]);
    free(c->f64[0]);
    free(c->f64[1]);
}

static cek_status conv_row(cek_device *device, const char *text, conv_data *c, const bench_options *o, spec_timing *t,
                           double peak, output *out, uint64_t *wrong)
{
    device_op op;
    double max_error;
    uint64_t compared;
    cek_status st = device_op_create(device, &c->desc.op, &op);
    for (uint32_t i = 0; i < 3 && !st; i++)
        st = device_op_operand(&op, i, i < 2 ? c->bytes[i] : NULL, c->count[i] * spec_type_bytes(c->type[i]));
    t->repeats = 0;
    if (!st)
        st = spec_time(t, device_op_run, NULL, &op);
    if (!st)
        st = device_op_read(&op, 2, c->bytes[2], c->count[2] * spec_type_bytes(c->type[2]));
    if (!st) {
        numbers_decode(c->type[2], c->bytes[2], c->count[2], c->f32[2]);
        double flops = spec_conv_flops(&c->desc), median = stats_median(t->seconds, t->runs);
        if (op.info.flags & CEK_OP_INFO_INEXACT)
            c->transformed = spec_conv_transformed(&c->desc, c->f64[0], c->count[0], c->f64[1], c->count[1]);
        *wrong = result_compare(c->f32[2], c->count[2], (uint64_t)(flops / 2 / (double)c->count[2]) + 1, conv_expect, c,
                                &max_error, &compared);
        double bytes = 0;
        for (int i = 0; i < 3; i++)
            bytes += (double)c->count[i] * (double)spec_type_bytes(c->type[i]);
        output_row(out, json_pack("{ss ss ss ss sf sf so sf sf sf so sI sI ss}", "device", cek_device_name(device),
                                  "shape", text, "type", spec_type_name(c->desc.x_type), "pass",
                                  o->pass ? o->pass : "forward", "median_ns", median * 1e9, "spread",
                                  stats_spread(t->seconds, t->runs), "runs_ns", runs_json(t->seconds, t->runs),
                                  "bytes_per_second", bytes / median, "flops", flops / median, "of_peak",
                                  peak_part(flops / median, peak), "max_error", number_json(max_error), "compared",
                                  (json_int_t)compared, "wrong", (json_int_t)*wrong, "algorithm", op.info.algorithm));
    }
    device_op_free(&op);
    return st;
}

static int conv_device(cek_device *device, const bench_options *o, output *out)
{
    char *list = strdup(o->shapes ? o->shapes : default_shapes), *at = list;
    spec_timing t = { .seconds = NULL };
    progress_label("conv %s", cek_device_name(device));
    int code = list ? timing_open(o, RUNS, WARMUP, &t) : complain(EXIT_MEMORY, "no host memory");
    double peak = 0;
    uint64_t side;
    cek_status failed = code ? CEK_OK : peak_product(device, o->type ? o->type : CEK_F32, o->math, &peak, &side);
    if (failed)
        code = complain_status(failed);
    for (char *text; code <= EXIT_WRONG && (text = strsep(&at, ",")) != NULL; progress_one()) {
        progress_fact(0, "%s", text);
        conv_data c = { .f32 = { NULL } };
        uint64_t wrong = 0;
        cek_status st;
        if (!conv_read(text, o, &c))
            code = EXIT_USAGE;
        else if (!conv_alloc(&c, o->seed))
            code = complain(EXIT_MEMORY, "%s: no host memory", text);
        else if ((st = conv_row(device, text, &c, o, &t, peak, out, &wrong)))
            code = complain_status(st);
        else if (wrong)
            code = complain(EXIT_WRONG, "%s on %s: %llu values wrong", text, cek_device_name(device),
                            (unsigned long long)wrong);
        conv_free(&c);
    }
    free(list), free(t.seconds);
    return code;
}

int conv_rows(const bench_options *o, cek_device *const *devices, size_t count, output *out)
{
    int code = EXIT_OK;
    output_open(out, o->output, columns, sizeof columns / sizeof *columns, "results");
    devices_expect(out, "device", devices, count);
    words_expect(out, "shape", o->shapes ? o->shapes : default_shapes);
    progress_begin((int64_t)(count * words_count(o->shapes ? o->shapes : default_shapes)), "conv");
    for (size_t i = 0; i < count && code <= EXIT_WRONG; i++) {
        int one = conv_device(devices[i], o, out);
        code = one > code ? one : code;
    }
    return code;
}

int cmd_conv(const bench_options *o)
{
    if (o->argc)
        return complain(EXIT_USAGE, "conv takes no argument: %s (problems come with --shape)", o->argv[0]);
    if (o->type && o->type != CEK_F32 && o->type != CEK_F16 && o->type != CEK_BF16)
        return complain(EXIT_USAGE, "conv convolves f32, f16 or bf16, not %s", spec_type_name(o->type));
    return table_run(o, "conv", CEK_PROFILE_INFERENCE, conv_rows);
}
