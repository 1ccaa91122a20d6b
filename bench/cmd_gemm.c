/* cmd_gemm.c - `gemm`: speed and errors of matrix products, alone or in turn with a CBLAS library.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/device_op.h"
#include "bench/output.h"
#include "bench/peak.h"
#include "bench/peer.h"
#include "bench/progress.h"
#include "bench/stats.h"
#include "bench/tables.h"
#include "spec/number.h"
#include "spec/spec.h"

/* Two squares, the first linear layer of mnist-cnn at batch 64, and its second convolution as a
 * product. */
static const char default_shapes[] = "512x512x512,1024x1024x1024,64x1024x25088,12544x128x576";
enum { RUNS = 15, WARMUP = 3 };

static const output_column columns[] = {
    { "device", "device", -12, 0, 0 },  { "shape", "shape", -22, 0, 0 },
    { "median_ns", "ms", 8, 1e-6, 3 },  { "spread", "spread %", 8, 100, 1 },
    { "flops", "GFLOP/s", 8, 1e-9, 1 }, { "peer_flops", "peer", 8, 1e-9, 1 },
    { "ratio", "ratio", 6, 1, 3 },      { "max_error", "max error", 9, 1, 7 },
    { "wrong", "wrong", 5, 0, 0 },      { "algorithm", "algorithm", -22, 0, 0 },
};
static const output_column columns_alone[] = {
    { "device", "device", -12, 0, 0 },     { "shape", "shape", -22, 0, 0 },    { "median_ns", "ms", 8, 1e-6, 3 },
    { "spread", "spread %", 8, 100, 1 },   { "flops", "GFLOP/s", 8, 1e-9, 1 }, { "of_peak", "% peak", 6, 100, 1 },
    { "max_error", "max error", 9, 1, 7 }, { "wrong", "wrong", 5, 0, 0 },      { "algorithm", "algorithm", -22, 0, 0 },
};

typedef struct gemm_data {
    cek_gemm_desc desc;
    float *a, *b, *c;                  /* operands hold values that their type has */
    void *a_bytes, *b_bytes, *c_bytes; /* as the device has them */
} gemm_data;

static double gemm_expect(void *user, uint64_t index, double *tolerance)
{
    const gemm_data *g = user;
    double value = spec_gemm_at(&g->desc, g->a, g->b, index, tolerance);
    *tolerance += type_rounding(g->desc.c_type, value);
    return value;
}

static bool gemm_read(const char *text, const bench_options *o, gemm_data *g)
{
    char error[SPEC_TEXT_MAX];
    const char *rest;
    cek_gemm_desc *d = &g->desc;
    if (!spec_gemm_read(text, d, &rest, error, sizeof error))
        return complain(EXIT_USAGE, "--shape: %s", error), false;
    while (!strncmp(rest, ":ta", 3) || !strncmp(rest, ":tb", 3)) {
        d->trans |= rest[2] == 'a' ? CEK_GEMM_TRANS_A : CEK_GEMM_TRANS_B;
        rest += 3;
    }
    if (*rest || !d->k)
        return complain(EXIT_USAGE, "--shape: %s: MxNxK, then :ta or :tb for transposed matrices", text), false;
    d->lda = (int64_t)(d->trans & CEK_GEMM_TRANS_A ? d->m : d->k);
    d->ldb = (int64_t)(d->trans & CEK_GEMM_TRANS_B ? d->k : d->n);
    d->a_type = d->b_type = d->c_type = o->type ? o->type : CEK_F32;
    d->op.operands = CEK_BIT(CEK_GEMM_A) | CEK_BIT(CEK_GEMM_B) | CEK_BIT(CEK_GEMM_C);
    d->op.math = o->math;
    return true;
}

static bool gemm_alloc(gemm_data *g, uint64_t seed)
{
    const cek_gemm_desc *d = &g->desc;
    g->a = malloc(d->m * d->k * sizeof(float));
    g->b = malloc(d->k * d->n * sizeof(float));
    g->c = malloc(d->m * d->n * sizeof(float));
    if (!g->a || !g->b || !g->c)
        return false;
    random_fill(g->a, d->m * d->k, seed);
    random_fill(g->b, d->k * d->n, seed + 1);
    memset(g->c, 0, d->m * d->n * sizeof(float));
    g->a_bytes = numbers_encode(d->a_type, g->a, d->m * d->k);
    g->b_bytes = numbers_encode(d->b_type, g->b, d->k * d->n);
    g->c_bytes = malloc(d->m * d->n * spec_type_bytes(d->c_type));
    return g->a_bytes && g->b_bytes && g->c_bytes;
}

static void gemm_free(gemm_data *g)
{
    free(g->a), free(g->b), free(g->c);
    free(g->a_bytes), free(g->b_bytes), free(g->c_bytes);
}

static void peer_run(const peer *p, gemm_data *g)
{
    const cek_gemm_desc *d = &g->desc;
    peer_multiply(p, d->trans & CEK_GEMM_TRANS_A, d->trans & CEK_GEMM_TRANS_B, (int)d->m, (int)d->n, (int)d->k, g->a,
                  g->b, g->c);
}

static double peer_time(const peer *p, gemm_data *g, uint64_t times)
{
    double start = seconds_now();
    for (uint64_t i = 0; i < times; i++)
        peer_run(p, g);
    return (seconds_now() - start) / (double)times;
}

/* Threads of a library that has just worked may spin for a while, on the cores that the other one
 * needs: wait that out, and run once untimed, so that neither side pays for the other's presence.
 */
static void settle(void)
{
    usleep(40000);
}

/* All that stays the same from shape to shape on one device. */
typedef struct gemm_run {
    cek_device *device;
    const bench_options *options;
    output *out;
    peer peer;   /* .so NULL: none */
    double peak; /* FLOP/s */
    spec_timing timing;
    double *theirs, ratios[256];
    size_t ratio_count;
} gemm_run;

typedef struct gemm_turns {
    gemm_run *run;
    device_op *op;
    gemm_data *data;
} gemm_turns;

static cek_status ours_run(void *user, uint64_t times)
{
    const gemm_turns *turns = user;
    return device_op_run(turns->op, times);
}

/* Ahead of each of our turns the peer has one. */
static cek_status peer_turn(void *user, uint32_t turn, uint64_t times)
{
    const gemm_turns *turns = user;
    const peer *p = &turns->run->peer;
    settle();
    peer_time(p, turns->data, 1);
    turns->run->theirs[turn] = peer_time(p, turns->data, times);
    settle();
    return device_op_run(turns->op, 1);
}

/* Creates, runs and reads back. */
static cek_status gemm_measure(gemm_run *r, device_op *op, gemm_data *g)
{
    const cek_gemm_desc *d = &g->desc;
    const uint64_t width = spec_type_bytes(d->c_type), c_bytes = d->m * d->n * width;
    cek_status st = device_op_operand(op, CEK_GEMM_A, g->a_bytes, d->m * d->k * width);
    if (!st)
        st = device_op_operand(op, CEK_GEMM_B, g->b_bytes, d->k * d->n * width);
    if (!st)
        st = device_op_operand(op, CEK_GEMM_C, NULL, c_bytes);
    r->timing.repeats = 0;
    if (!st)
        st = spec_time(&r->timing, ours_run, r->peer.so ? peer_turn : NULL, &(gemm_turns){ r, op, g });
    if (!st)
        st = device_op_read(op, CEK_GEMM_C, g->c_bytes, c_bytes);
    if (!st)
        numbers_decode(d->c_type, g->c_bytes, d->m * d->n, g->c);
    return st;
}

static json_t *peer_json(gemm_run *r, double flops, double ours)
{
    double theirs = stats_median(r->theirs, r->timing.runs), ratio = theirs / ours;
    if (r->ratio_count < sizeof r->ratios / sizeof *r->ratios)
        r->ratios[r->ratio_count++] = ratio;
    return json_pack("{sf sf sf sf}", "peer_median_ns", theirs * 1e9, "peer_spread",
                     stats_spread(r->theirs, r->timing.runs), "peer_flops", flops / theirs, "ratio", ratio);
}

/* Compares what came out and prints a row. */
static int gemm_row(gemm_run *r, const char *text, gemm_data *g, const char *algorithm)
{
    const cek_gemm_desc *d = &g->desc;
    const double ours = stats_median(r->timing.seconds, r->timing.runs), flops = spec_gemm_flops(d);
    double max_error = 0;
    uint64_t compared = 0;
    uint64_t wrong = result_compare(g->c, d->m * d->n, d->k, gemm_expect, g, &max_error, &compared);
    const double bytes = (double)(d->m * d->k + d->k * d->n + d->m * d->n) * (double)spec_type_bytes(d->c_type);
    json_t *row =
        json_pack("{ss ss ss sI sI sI sf sf so sf sf sf so sI sI ss}", "device", cek_device_name(r->device), "shape",
                  text, "type", spec_type_name(d->c_type), "m", (json_int_t)d->m, "n", (json_int_t)d->n, "k",
                  (json_int_t)d->k, "median_ns", ours * 1e9, "spread", stats_spread(r->timing.seconds, r->timing.runs),
                  "runs_ns", runs_json(r->timing.seconds, r->timing.runs), "bytes_per_second", bytes / ours, "flops",
                  flops / ours, "of_peak", peak_part(flops / ours, r->peak), "max_error", number_json(max_error),
                  "compared", (json_int_t)compared, "wrong", (json_int_t)wrong, "algorithm", algorithm);
    if (r->peer.so)
        json_object_update_new(row, peer_json(r, flops, ours));
    output_row(r->out, row);
    return wrong ? complain(EXIT_WRONG, "%s on %s: %llu values wrong", text, cek_device_name(r->device),
                            (unsigned long long)wrong)
                 : EXIT_OK;
}

static int gemm_shape(gemm_run *r, const char *text)
{
    gemm_data g = { .a = NULL };
    device_op op = { .op = NULL };
    int code = EXIT_OK;
    if (!gemm_read(text, r->options, &g)) {
        code = EXIT_USAGE;
    } else if (!gemm_alloc(&g, r->options->seed)) {
        code = complain(EXIT_MEMORY, "%s: no host memory", text);
    } else {
        cek_status st = device_op_create(r->device, &g.desc.op, &op);
        if (!st)
            st = gemm_measure(r, &op, &g);
        code = st ? complain_status(st) : gemm_row(r, text, &g, op.info.algorithm);
        device_op_free(&op);
    }
    gemm_free(&g);
    return code;
}

static int gemm_open(gemm_run *r)
{
    const bench_options *o = r->options;
    const cek_dtype type = o->type ? o->type : CEK_F32;
    cek_device_info info = { .size = sizeof info };
    uint64_t side;
    cek_status st = cek_device_describe(r->device, &info);
    if (!st)
        st = peak_product(r->device, type, o->math, &r->peak, &side);
    if (st)
        return complain_status(st);
    return o->peer ? peer_open(o->peer, info.compute_units, &r->peer) : EXIT_OK;
}

/* How the peer did over all shapes; EXIT_WRONG where it was faster. */
static int peer_conclude(gemm_run *r)
{
    if (!r->ratio_count)
        return EXIT_OK;
    double mean = stats_geometric_mean(r->ratios, r->ratio_count);
    output_set(r->out, "peer", json_string(r->peer.name));
    output_set(r->out, "geometric_mean", json_real(mean));
    output_note(r->out, "geometric mean of the ratios on %s: %.3f", cek_device_name(r->device), mean);
    return mean < 1 ? EXIT_WRONG : EXIT_OK;
}

/* All shapes on one device. */
static int gemm_device(cek_device *device, const bench_options *o, output *out)
{
    gemm_run r = { .device = device, .options = o, .out = out };
    char *list = strdup(o->shapes ? o->shapes : default_shapes), *at = list;
    progress_label("gemm %s", cek_device_name(device));
    int code = list ? timing_open(o, RUNS, WARMUP, &r.timing) : complain(EXIT_MEMORY, "no host memory");
    if (!code && !(r.theirs = calloc(r.timing.runs, sizeof *r.theirs)))
        code = complain(EXIT_MEMORY, "no host memory");
    if (!code)
        code = gemm_open(&r);
    for (char *text; code <= EXIT_WRONG && (text = strsep(&at, ",")) != NULL; progress_one()) {
        progress_fact(0, "%s", text);
        int one = gemm_shape(&r, text);
        code = one > code ? one : code;
    }
    int slower = peer_conclude(&r);
    peer_close(&r.peer);
    free(list), free(r.timing.seconds), free(r.theirs);
    return code ? code : slower;
}

int gemm_rows(const bench_options *o, cek_device *const *devices, size_t count, output *out)
{
    int code = EXIT_OK;
    if (o->peer)
        output_open(out, o->output, columns, sizeof columns / sizeof *columns, "results");
    else
        output_open(out, o->output, columns_alone, sizeof columns_alone / sizeof *columns_alone, "results");
    devices_expect(out, "device", devices, count);
    words_expect(out, "shape", o->shapes ? o->shapes : default_shapes);
    progress_begin((int64_t)(count * words_count(o->shapes ? o->shapes : default_shapes)), "gemm");
    for (size_t i = 0; i < count && code <= EXIT_WRONG; i++) {
        int one = gemm_device(devices[i], o, out);
        code = one > code ? one : code;
    }
    return code;
}

int cmd_gemm(const bench_options *o)
{
    if (o->argc)
        return complain(EXIT_USAGE, "gemm takes no argument: %s (shapes come with --shape)", o->argv[0]);
    if (o->type && o->type != CEK_F32 && o->type != CEK_F16 && o->type != CEK_BF16)
        return complain(EXIT_USAGE, "gemm multiplies f32, f16 or bf16, not %s", spec_type_name(o->type));
    if (o->peer && o->type && o->type != CEK_F32)
        return complain(EXIT_USAGE, "a CBLAS library multiplies f32, not %s", spec_type_name(o->type));
    return table_run(o, "gemm", CEK_PROFILE_INFERENCE, gemm_rows);
}
