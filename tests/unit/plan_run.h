/* plan_run.h - runs one plan on one device, with memory that starts as NaN everywhere.
 *
 * Header only. Also a table in front of the device's own that counts operations and refuses what it is told to; numbers
 * drawn at random, and predictions of them. */
#ifndef CEK_TESTS_UNIT_PLAN_RUN_H
#define CEK_TESTS_UNIT_PLAN_RUN_H

#include "core/device/device.h"
#include "nn/model/model.h"
#include "nn/model/plan.h"
#include "scratch.h"

/* ---- a device ---- */

typedef struct bench {
    cek_engine *engine;
    cek_device *device;
    const cek_plugin *plugin; /* the device's own */
    cek_dev *dev;
    cek_stream *stream;
    cek_queue *queue; /* the stream's */
    cek_mem *mem[160];
    int mems;
} bench;

static inline void bench_open(bench *b, const char *device)
{
    *b = (bench){ 0 };
    assert_ok(cek_engine_create(NULL, &b->engine));
    assert_ok(cek_engine_find(b->engine, device, &b->device));
    assert_ok(cek_device_raw(b->device, &b->plugin, &b->dev));
    assert_ok(cek_stream_create(b->device, &b->stream));
    b->queue = cek_stream_raw(b->stream);
}

static inline void bench_release(bench *b)
{
    while (b->mems)
        b->plugin->mem_free(b->mem[--b->mems]);
}

static inline void bench_close(bench *b)
{
    bench_release(b);
    cek_stream_free(b->stream);
    cek_engine_free(b->engine);
}

/* Memory of its own whose bytes are all 0xff: NaN in every floating-point type. {NULL, 0} for no bytes. */
static inline cek_ref bench_alloc(bench *b, uint64_t bytes)
{
    cek_mem_desc desc = { .size = sizeof desc, .bytes = bytes };

    if (bytes == 0)
        return (cek_ref){ NULL, 0 };
    ck_assert_uint_lt((size_t)b->mems, sizeof b->mem / sizeof *b->mem);
    assert_ok(b->plugin->mem_alloc(b->dev, &desc, &b->mem[b->mems]));
    assert_ok(b->plugin->fill(b->queue, (cek_ref){ b->mem[b->mems], 0 }, 0xff, 1, bytes));
    return (cek_ref){ b->mem[b->mems++], 0 };
}

static inline cek_ref bench_upload(bench *b, const void *data, uint64_t bytes)
{
    cek_ref ref = bench_alloc(b, bytes);

    assert_ok(b->plugin->upload(b->queue, ref, data, bytes));
    assert_ok(b->plugin->queue_sync(b->queue, CEK_FOREVER));
    return ref;
}

static inline void bench_download(bench *b, void *data, cek_ref ref, uint64_t bytes)
{
    assert_ok(b->plugin->download(b->queue, data, ref, bytes));
    assert_ok(b->plugin->queue_sync(b->queue, CEK_FOREVER));
}

/* ---- counting and refusing ---- */

static struct {
    cek_plugin table;
    cek_status (*create)(cek_dev *, const cek_op_desc *, cek_op_info *, cek_op **);
    int created[CEK_OP_COPY + 1]; /* by kind */
    int accumulating;             /* data gradients that add to what is there */
    int fused, refused;           /* epilogues with an activation or a derivative */
    bool refuse_epilogues;
    uint32_t refuse_kind;
    cek_dtype refuse_type; /* of products and convolutions of that kind, those that read this; 0: all */
} wrapped;

static inline bool wrapped_refuses(const cek_op_desc *desc)
{
    if (desc->kind != wrapped.refuse_kind || wrapped.refuse_type == CEK_DTYPE_NONE)
        return desc->kind == wrapped.refuse_kind;
    return wrapped.refuse_type ==
           (desc->kind == CEK_OP_GEMM ? ((const cek_gemm_desc *)desc)->a_type : ((const cek_conv_desc *)desc)->x_type);
}

static inline cek_status wrapped_create(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out)
{
    bool fuses = desc->epilogue && (desc->epilogue->activation || desc->epilogue->act_grad);
    cek_status st;

    *out = NULL;
    if (wrapped_refuses(desc))
        return CEK_UNSUPPORTED;
    if (fuses && wrapped.refuse_epilogues) {
        wrapped.refused++;
        return CEK_UNSUPPORTED;
    }
    st = wrapped.create(dev, desc, info, out);
    if (st == CEK_OK) {
        wrapped.created[desc->kind]++;
        wrapped.fused += fuses;
        wrapped.accumulating += (desc->kind == CEK_OP_CONV_BACKWARD_DATA || desc->kind == CEK_OP_GEMM) &&
                                !(desc->operands & CEK_BIT(CEK_GEMM_A_SUM)) && desc->accumulate != 0;
    }
    return st;
}

/* Puts the counting table in front of the device's own. */
static inline void bench_wrap(bench *b)
{
    memset(&wrapped, 0, sizeof wrapped);
    wrapped.table = *b->device->plugin;
    wrapped.create = wrapped.table.op_create;
    wrapped.table.op_create = wrapped_create;
    b->device->plugin = &wrapped.table;
}

/* ---- a plan with its memory ---- */

enum { RUN_BUCKETS = 64 };

typedef struct plan_run {
    bench *b;
    cek_model *model;
    cek__plan_options options;
    cek__layout *layout;
    cek__plan *plan;
    cek__plan_binding binding;
    cek_ref parameters[RUN_BUCKETS], rounded[RUN_BUCKETS], gradients[RUN_BUCKETS];
} plan_run;

static inline cek_f32x2 f32x2(double v)
{
    return (cek_f32x2){ (float)v, (float)(v - (float)v) };
}

/* With weights of linear layers in pieces of so many bytes; 0: of what trainers take. */
static inline void plan_run_open_cut(plan_run *r, bench *b, cek_model *model, cek_dtype type, uint64_t piece_bytes,
                                     const cek__plan_options *options)
{
    const cek__plan_needs *n;

    *r = (plan_run){ .b = b, .model = model, .options = *options };
    if (piece_bytes)
        assert_ok(cek__layout_create_cut(model, type, piece_bytes, &r->layout));
    else
        assert_ok(cek__layout_create(model, type, &r->layout));
    ck_assert_uint_le(r->layout->bucket_count, RUN_BUCKETS);
    assert_ok(cek__plan_create(model, r->layout, b->device, options, &r->plan));
    n = cek__plan_get_needs(r->plan);
    for (size_t i = 0; i < r->layout->bucket_count; i++) {
        uint64_t bytes = cek__layout_bucket_bytes(r->layout, i);
        void *host = malloc(bytes);

        cek__layout_pack(r->layout, model, i, host);
        r->parameters[i] = bench_upload(b, host, bytes);
        if (cek__layout_rounded_bytes(r->layout, i) > 0) {
            uint16_t *rounded = malloc(cek__layout_rounded_bytes(r->layout, i));

            cek__layout_round(r->layout, i, host, rounded);
            r->rounded[i] = bench_upload(b, rounded, cek__layout_rounded_bytes(r->layout, i));
            free(rounded);
        }
        r->gradients[i] = options->training ? bench_alloc(b, bytes) : (cek_ref){ NULL, 0 };
        free(host);
    }
    r->binding = (cek__plan_binding){
        .arena = { bench_alloc(b, n->arena_bytes) },
        .workspace = bench_alloc(b, n->workspace_bytes),
        .input = bench_alloc(b, n->input_bytes),
        .target = bench_alloc(b, n->target_bytes),
        .output = bench_alloc(b, n->output_bytes),
        .parameters = r->parameters,
        .rounded = r->rounded,
        .gradients = r->gradients,
        .step_block = bench_alloc(b, sizeof(cek_step_block)),
        .batch_block = bench_alloc(b, sizeof(cek_batch_block)),
        .loss = bench_upload(b, (double[32]){ 0 }, 256),
        .correct = bench_upload(b, (double[32]){ 0 }, 256),
        .buffers = bench_alloc(b, model->buffer_elements * cek_dtype_bytes(type)),
    };
    assert_ok(cek__plan_bind(r->plan, 0, &r->binding));
}

static inline void plan_run_open(plan_run *r, bench *b, cek_model *model, cek_dtype type,
                                 const cek__plan_options *options)
{
    plan_run_open_cut(r, b, model, type, 0, options);
}

static inline void plan_run_close(plan_run *r)
{
    cek__plan_free(r->plan);
    cek__layout_free(r->layout);
    bench_release(r->b);
}

static inline void plan_run_put(plan_run *r, cek_ref ref, const void *data, uint64_t bytes)
{
    assert_ok(r->b->plugin->upload(r->b->queue, ref, data, bytes));
    assert_ok(r->b->plugin->queue_sync(r->b->queue, CEK_FOREVER));
}

static inline void plan_run_blocks(plan_run *r, uint64_t key, double inv_n, uint64_t base, int64_t valid)
{
    cek_step_block step = { .random_key = key, .inv_n = f32x2(inv_n), .loss_scale = { 1, 0 } };
    cek_batch_block batch = { .sample_base = base, .rows_valid = (uint32_t)valid };

    plan_run_put(r, r->binding.step_block, &step, sizeof step);
    plan_run_put(r, r->binding.batch_block, &batch, sizeof batch);
}

/* Forward and all of backward. */
static inline void plan_run_step(plan_run *r, bool accumulate)
{
    assert_ok(cek__plan_forward(r->plan, 0, r->b->stream));
    for (size_t s = 0; s < cek__plan_segment_count(r->plan); s++)
        assert_ok(cek__plan_backward(r->plan, 0, r->b->stream, s, accumulate));
    assert_ok(r->b->plugin->queue_sync(r->b->queue, CEK_FOREVER));
}

static inline double plan_run_loss(plan_run *r)
{
    double f64;
    float f32;

    bench_download(r->b, &f64, r->binding.loss, sizeof f64);
    memcpy(&f32, &f64, sizeof f32);
    return r->layout->type == CEK_F64 ? f64 : f32;
}

static inline int32_t plan_run_correct(plan_run *r)
{
    int32_t correct;

    bench_download(r->b, &correct, r->binding.correct, sizeof correct);
    return correct;
}

/* PyTorch's order; the caller's (free). */
static inline double *plan_run_gradient(plan_run *r, size_t parameter)
{
    uint64_t unit = r->layout->type == CEK_F64 ? 8 : 4, count = cek__layout_elements(r->layout, parameter);
    unsigned char *raw = malloc(count * unit);
    double *out = malloc(count * sizeof *out);

    for (size_t i = r->layout->piece_of[parameter]; i < r->layout->piece_of[parameter + 1]; i++) {
        const cek__placement *p = &r->layout->placement[i];
        cek_ref ref = r->gradients[p->bucket];

        ref.offset += p->first * unit;
        bench_download(r->b, raw + p->at * unit, ref, p->count * unit);
    }
    cek__layout_unpack_one(r->layout, parameter, raw, out);
    free(raw);
    return out;
}

/* ---- a prediction ---- */

static inline float random_value(uint32_t *state, float low, float high)
{
    *state = *state * 1664525u + 1013904223u;
    return low + (high - low) * (float)(*state >> 8) / 16777216.0f;
}

/* Of so many rows, by a predictor whose runs take `batch` of them and compute in that type. */
static inline void predict_rows_in(cek_dtype type, const cek_model *m, cek_device *device, uint32_t math, int64_t batch,
                                   int64_t rows, const float *x, float *y)
{
    const cek_predictor_options o = {
        .size = sizeof o, .batch = batch, .input_type = CEK_F32, .math = math, .type = type
    };
    cek_predictor *p;

    assert_ok(cek_predictor_create(m, &device, 1, &o, &p));
    assert_ok(cek_predictor_run(p, x, rows, y));
    cek_predictor_free(p);
}

static inline void predict_rows(const cek_model *m, cek_device *device, uint32_t math, int64_t batch, int64_t rows,
                                const float *x, float *y)
{
    predict_rows_in(CEK_F32, m, device, math, batch, rows, x, y);
}

/* ---- comparing ---- */

/* |got - want| <= tolerance * (largest |want|), element by element. NaN never passes. */
static inline void all_near(const char *what, const double *got, const double *want, int64_t count, double tolerance)
{
    double scale = 1e-12;

    for (int64_t i = 0; i < count; i++)
        scale = fmax(scale, fabs(want[i]));
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(fabs(got[i] - want[i]) <= tolerance * scale, "%s[%lld]: %.17g, expected %.17g (scale %g)", what,
                      (long long)i, got[i], want[i], scale);
}

#endif
