/* training.c - pools with their reserve, dropout, random numbers, optimizers. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 100000 };
static float x[MOST], y[MOST], dy[MOST], dx[MOST];

/* --- pool ------------------------------------------------------------------------------------- */

typedef struct pool_case {
    const char *what;
    uint64_t batch, channels, in[3], kernel[3], stride[3], lo[3], hi[3];
} pool_case;

static const pool_case pools[] = {
    { "2x2", 3, 128, { 14, 14 }, { 2, 2 }, { 2, 2 }, { 0 }, { 0 } },
    { "2x2, six channels, odd size", 2, 6, { 11, 13 }, { 2, 2 }, { 2, 2 }, { 0 }, { 0 } },
    { "3x3 stride 2 padded", 2, 17, { 15, 14 }, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1 } },
    { "3x3 stride 1", 2, 33, { 9, 8 }, { 3, 3 }, { 1, 1 }, { 1, 0 }, { 0, 2 } },
    { "stride beyond the kernel", 2, 5, { 17, 16 }, { 2, 3 }, { 4, 5 }, { 0, 1 }, { 0, 0 } },
    { "9x9: more places than a kernel takes at once", 1, 20, { 14, 15 }, { 9, 9 }, { 3, 2 }, { 2, 3 }, { 4, 0 } },
    { "global", 2, 30, { 12, 13 }, { 12, 13 }, { 1, 1 }, { 0 }, { 0 } },
    { "global 20x20: an index needs more than a byte", 2, 19, { 20, 20 }, { 20, 20 }, { 1, 1 }, { 0 }, { 0 } },
    { "one dimension", 3, 9, { 50 }, { 4 }, { 3 }, { 1 }, { 2 } },
    { "three dimensions", 2, 12, { 5, 6, 7 }, { 2, 3, 2 }, { 2, 1, 2 }, { 1, 0, 1 }, { 0, 1, 0 } },
    { "1x1", 1, 1, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0 }, { 0 } },
};
enum { POOLS = sizeof pools / sizeof pools[0] };

static cek_pool_desc pool_desc(const pool_case *c, uint32_t kind, uint32_t mode, cek_dtype type, uint64_t *n_in,
                               uint64_t *n_out)
{
    cek_pool_desc d = { .op = { .size = sizeof d, .kind = kind, .operands = 3 },
                        .mode = mode,
                        .type = type,
                        .batch = c->batch,
                        .channels = c->channels };

    *n_in = *n_out = c->batch * c->channels;
    for (; d.spatial < 3 && c->in[d.spatial]; d.spatial++) {
        const uint32_t i = d.spatial;

        d.in[i] = c->in[i];
        d.kernel[i] = c->kernel[i];
        d.stride[i] = c->stride[i];
        d.pad_lo[i] = c->lo[i];
        d.pad_hi[i] = c->hi[i];
        *n_in *= c->in[i];
        *n_out *= (c->in[i] + c->lo[i] + c->hi[i] - c->kernel[i]) / c->stride[i] + 1;
    }
    return d;
}

/* Maximum forward, then backward through its reserve, on one backend: y from x, dx from dy. */
static void max_both_ways(backend *b, const pool_case *c, cek_dtype type, const void *in, void *out, const void *grad,
                          void *back)
{
    uint64_t n_in, n_out;
    const uint64_t bytes = type_bytes(type);
    cek_pool_desc f = pool_desc(c, CEK_OP_POOL_FORWARD, CEK_POOL_MAX, type, &n_in, &n_out);
    cek_pool_desc r = pool_desc(c, CEK_OP_POOL_BACKWARD, CEK_POOL_MAX, type, &n_in, &n_out);
    cek_op_info info = { .size = sizeof info }, info_back = { .size = sizeof info_back };
    const cek_mem_desc want = { .size = sizeof want, .bytes = n_in * bytes + (1 << 19) };
    cek_op *forward, *backward;
    cek_mem *mem[6];
    unsigned char *at[6];

    f.op.operands = r.op.operands = 7;
    ck_assert_msg(b->p.op_create(b->dev, &f.op, &info, &forward) == CEK_OK, "%s", b->failure);
    r.op.forward = forward;
    ck_assert_msg(b->p.op_create(b->dev, &r.op, &info_back, &backward) == CEK_OK, "%s", b->failure);
    for (int i = 0; i < 6; i++) {
        ck_assert_uint_eq(b->p.mem_alloc(b->dev, &want, &mem[i]), CEK_OK);
        at[i] = b->p.mem_host_ptr(mem[i]);
        memset(at[i], 0xff, want.bytes); /* NaN wherever nothing is written */
    }
    memcpy(at[0], in, n_in * bytes);
    memcpy(at[3], grad, n_out * bytes);
    const cek_ref run[3] = { { mem[0], 0 }, { mem[1], 0 }, { mem[2], 0 } };
    const cek_ref run_back[3] = { { mem[3], 0 }, { mem[4], 0 }, { mem[2], 0 } };
    const cek_ref none = { NULL, 0 }, work = { mem[5], 0 };
    ck_assert_uint_eq(b->p.op_run(b->queue, forward, run, 3, info.workspace_bytes ? work : none), CEK_OK);
    ck_assert_uint_eq(b->p.op_run(b->queue, backward, run_back, 3, info_back.workspace_bytes ? work : none), CEK_OK);
    memcpy(out, at[1], n_out * bytes);
    memcpy(back, at[4], n_in * bytes);
    for (uint64_t i = n_out * bytes; i < want.bytes; i++)
        must(at[1][i] == 0xff, "written behind y");
    for (uint64_t i = n_in * bytes; i < want.bytes; i++)
        must(at[4][i] == 0xff, "written behind dx");
    b->p.op_destroy(backward);
    b->p.op_destroy(forward);
    for (int i = 0; i < 6; i++)
        b->p.mem_free(mem[i]);
}

START_TEST(maximum_pools_choose_what_the_reference_chooses)
{
    static float want_y[MOST], want_dx[MOST];
    const pool_case *c = &pools[_i];
    uint64_t n_in, n_out;

    pool_desc(c, CEK_OP_POOL_FORWARD, CEK_POOL_MAX, CEK_F32, &n_in, &n_out);
    fill_integers(x, (int64_t)n_in, -2, 2, 1); /* many equal maxima */
    fill_uniform(dy, (int64_t)n_out, 2);
    for (uint64_t i = 0; i < n_in; i += 41)
        x[i] = NAN;
    for (uint64_t i = 7; i < n_in; i += 53)
        x[i] = -INFINITY;
    max_both_ways(reference(), c, CEK_F32, x, want_y, dy, want_dx);
    for (int f = 0; f < form_count(); f++) {
        max_both_ways(form(f), c, CEK_F32, x, y, dy, dx);
        for (uint64_t i = 0; i < n_out; i++)
            must(y[i] == want_y[i] || (isnan(y[i]) && isnan(want_y[i])), "%s: y[%d] is %g, not %g", c->what, (int)i,
                 y[i], want_y[i]);
        for (uint64_t i = 0; i < n_in; i++) /* sums of at most 81 numbers below 1 */
            must(fabsf(dx[i] - want_dx[i]) <= 2e-5f, "%s: dx[%d] is %g, not %g", c->what, (int)i, dx[i], want_dx[i]);
    }
}
END_TEST

static float *repeated(const float *one, uint64_t n, uint64_t times)
{
    float *all = malloc(n * times * sizeof *all);

    ck_assert_ptr_nonnull(all);
    for (uint64_t i = 0; i < times; i++)
        memcpy(all + i * n, one, n * sizeof *all);
    return all;
}

START_TEST(a_gradient_that_goes_past_the_caches_is_that_of_each_image)
{
    /* rows of whole vectors and a part, of which some begin between two lines; a column that no window reads */
    const pool_case one = { "one image", 1, 40, { 16, 15 }, { 2, 2 }, { 2, 2 }, { 0 }, { 0 } };
    pool_case all = one;
    uint64_t n_in, n_out;

    pool_desc(&one, CEK_OP_POOL_FORWARD, CEK_POOL_MAX, CEK_F32, &n_in, &n_out);
    all.batch = (64 << 20) / (n_in * sizeof *x) + 1;
    fill_integers(x, (int64_t)n_in, -2, 2, 1);
    fill_uniform(dy, (int64_t)n_out, 2);
    float *in = repeated(x, n_in, all.batch), *grad = repeated(dy, n_out, all.batch);
    float *out = malloc(n_out * all.batch * sizeof *out), *back = malloc(n_in * all.batch * sizeof *back);
    ck_assert(out && back);
    for (int f = 0; f < form_count(); f++) {
        max_both_ways(form(f), &one, CEK_F32, x, y, dy, dx);
        max_both_ways(form(f), &all, CEK_F32, in, out, grad, back);
        for (uint64_t i = 0; i < all.batch; i++) {
            ck_assert_mem_eq(out + i * n_out, y, n_out * sizeof *y);
            ck_assert_mem_eq(back + i * n_in, dx, n_in * sizeof *dx);
        }
    }
    free(in), free(grad), free(out), free(back);
}
END_TEST

START_TEST(maximum_pools_in_bf16)
{
    static uint16_t a[MOST], b[MOST], want_b[MOST], g[MOST], back[MOST], want_back[MOST];
    const pool_case *c = &pools[_i];
    uint64_t n_in, n_out;

    pool_desc(c, CEK_OP_POOL_FORWARD, CEK_POOL_MAX, CEK_F32, &n_in, &n_out);
    fill_uniform(x, (int64_t)n_in, 1);
    fill_uniform(dy, (int64_t)n_out, 2);
    to_bf16(x, a, (int64_t)n_in);
    to_bf16(dy, g, (int64_t)n_out);
    max_both_ways(reference(), c, CEK_BF16, a, want_b, g, want_back);
    for (int f = 0; f < form_count(); f++) {
        max_both_ways(form(f), c, CEK_BF16, a, b, g, back);
        ck_assert_mem_eq(b, want_b, n_out * 2);
        for (uint64_t i = 0; i < n_in; i++)
            must(fabsf(from_bf16(back[i]) - from_bf16(want_back[i])) <= 0.01f + fabsf(from_bf16(want_back[i])) / 128,
                 "%s: dx[%d] is %g, not %g", c->what, (int)i, from_bf16(back[i]), from_bf16(want_back[i]));
    }
}
END_TEST

START_TEST(average_pools_and_their_gradients)
{
    const pool_case *c = &pools[_i];
    uint64_t n_in, n_out;

    for (uint32_t flags = 0; flags < 2; flags++) {
        cek_pool_desc f = pool_desc(c, CEK_OP_POOL_FORWARD, CEK_POOL_AVERAGE, CEK_F32, &n_in, &n_out);
        cek_pool_desc r = pool_desc(c, CEK_OP_POOL_BACKWARD, CEK_POOL_AVERAGE, CEK_F32, &n_in, &n_out);
        const operand forward[] = { { 0, x, n_in * 4, IN }, { 1, y, n_out * 4, OUT } };
        const operand backward[] = { { 0, dy, n_out * 4, IN }, { 1, dx, n_in * 4, OUT } };
        const cek_dtype types[] = { CEK_F32, CEK_F32 };

        f.flags = r.flags = flags;
        fill_uniform(x, (int64_t)n_in, 1);
        fill_uniform(dy, (int64_t)n_out, 2);
        /* at most 400 numbers of less than 1 added one by one, then divided by their number */
        compare(c->what, &f.op, forward, types, 2, (tolerance){ 400 * 0x1p-24, 0x1p-23 });
        compare(c->what, &r.op, backward, types, 2, (tolerance){ 400 * 0x1p-24, 0x1p-23 });
    }
}
END_TEST

/* Positions of which all places are added in f32, and the sum rounded once, whatever the number of places. */
START_TEST(average_pools_in_16_bits)
{
    static uint16_t a[MOST], b[MOST];
    const cek_dtype half[] = { CEK_BF16, CEK_F16 };
    const double unit[] = { 1.0 / 128, 1.0 / 1024 };
    const pool_case *c = &pools[_i];
    uint64_t n_in, n_out;

    for (int h = 0; h < 2; h++)
        for (uint32_t kind = CEK_OP_POOL_FORWARD; kind <= CEK_OP_POOL_BACKWARD; kind++) {
            cek_pool_desc d = pool_desc(c, kind, CEK_POOL_AVERAGE, half[h], &n_in, &n_out);
            const uint64_t from = kind == CEK_OP_POOL_FORWARD ? n_in : n_out, to = n_in + n_out - from;
            const operand o[] = { { 0, a, from * 2, IN }, { 1, b, to * 2, OUT } };

            for (uint64_t i = 0; i < from; i++) /* from 1 to 2 in either type */
                a[i] = (uint16_t)(half[h] == CEK_BF16 ? 0x3f80 + i * 37 % 128 : 0x3c00 + i * 397 % 1024);
            compare(c->what, &d.op, o, (cek_dtype[]){ half[h], half[h] }, 2, (tolerance){ 0, unit[h] });
        }
}
END_TEST

/* Nor does it with a larger image: a line of channels for each worker. */
START_TEST(what_pools_work_in_does_not_grow_with_the_batch)
{
    const cek_dtype types[] = { CEK_F32, CEK_BF16, CEK_F16 };
    pool_case c = pools[0];
    uint64_t n_in, n_out;

    for (int f = 0; f < form_count(); f++)
        for (int t = 0; t < 3; t++)
            for (uint32_t kind = CEK_OP_POOL_FORWARD; kind <= CEK_OP_POOL_BACKWARD; kind++) {
                uint64_t bytes[2];

                for (int large = 0; large < 2; large++) {
                    cek_op_info info = { .size = sizeof info };
                    cek_op *op;

                    c.batch = large ? 64 : 1;
                    c.in[0] = c.in[1] = large ? 224 : 2;
                    cek_pool_desc d = pool_desc(&c, kind, CEK_POOL_AVERAGE, types[t], &n_in, &n_out);
                    ck_assert_uint_eq(form(f)->p.op_create(form(f)->dev, &d.op, &info, &op), CEK_OK);
                    bytes[large] = info.workspace_bytes;
                    form(f)->p.op_destroy(op);
                }
                ck_assert_uint_eq(bytes[0], bytes[1]);
                ck_assert_int_eq(bytes[0] == 0, types[t] == CEK_F32);
            }
}
END_TEST

START_TEST(a_pool_without_reserve_gives_the_same_maxima)
{
    static float with[MOST], without[MOST];
    const pool_case *c = &pools[2];
    uint64_t n_in, n_out;
    cek_pool_desc d = pool_desc(c, CEK_OP_POOL_FORWARD, CEK_POOL_MAX, CEK_F32, &n_in, &n_out);
    operand o[] = { { 0, x, n_in * 4, IN }, { 1, without, n_out * 4, OUT } };
    cek_op_info info = { .size = sizeof info };
    cek_op *op;

    fill_uniform(x, (int64_t)n_in, 1);
    fill_uniform(dy, (int64_t)n_out, 1);
    for (int f = 0; f < form_count(); f++) {
        ck_assert_uint_eq(form(f)->p.op_create(form(f)->dev, &d.op, &info, &op), CEK_OK);
        ck_assert_uint_eq(info.reserve_bytes, 0);
        form(f)->p.op_destroy(op);
        ck_assert_uint_eq(run_op(form(f), &d.op, o, 2, 0), CEK_OK);
        max_both_ways(form(f), c, CEK_F32, x, with, dy, dx);
        ck_assert_mem_eq(with, without, n_out * 4);
    }
}
END_TEST

/* --- dropout and random numbers --------------------------------------------------------------- */

typedef struct random_case {
    uint64_t rows, columns, rows_per_sample, sample_base;
} random_case;

static const random_case randoms[] = {
    { 64, 1024, 1, 0 }, { 64, 10, 1, 1000 }, { 7, 1, 1, 5 },     { 30, 13, 5, 3 },           { 31, 13, 5, 3 },
    { 5, 3000, 1, 9 },  { 200, 3, 50, 0 },   { 3, 1023, 2, 77 }, { 1, 5000, 1, 1ull << 40 }, { 1, 1, 1, 0 },
};
enum { RANDOMS = sizeof randoms / sizeof randoms[0] };

START_TEST(dropout_keeps_the_elements_that_the_header_says)
{
    const random_case *c = &randoms[_i];
    static uint16_t half[MOST], half_out[MOST];
    const uint64_t n = c->rows * c->columns;
    cek_step_block step = { .random_key = 0x0123456789abcdef };
    cek_batch_block batch = { .sample_base = c->sample_base };
    static const uint32_t thresholds[] = { 0, 1u << 31, 0x19999999, UINT32_MAX };

    fill_uniform(x, (int64_t)n, 1);
    x[n / 2] = NAN;
    to_bf16(x, half, (int64_t)n);
    for (int t = 0; t < 4; t++) {
        cek_dropout_desc d = { .op = { .size = sizeof d, .kind = CEK_OP_DROPOUT, .operands = 15 },
                               .rows = c->rows,
                               .columns = c->columns,
                               .rows_per_sample = c->rows_per_sample,
                               .scale = 2,
                               .threshold = thresholds[t],
                               .stream = 3 + (uint32_t)t,
                               .type = CEK_F32 };
        const operand o[] = {
            { 0, x, n * 4, IN }, { 1, y, n * 4, OUT }, { 2, &step, sizeof step, IN }, { 3, &batch, sizeof batch, IN }
        };
        const operand h[] = { { 0, half, n * 2, IN }, { 1, half_out, n * 2, OUT }, o[2], o[3] };

        compare("dropout", &d.op, o, (cek_dtype[]){ CEK_F32, CEK_F32, 0, 0 }, 4, exactly);
        d.type = CEK_BF16;
        compare("dropout of bf16", &d.op, h, (cek_dtype[]){ CEK_BF16, CEK_BF16, 0, 0 }, 4, exactly);
        d.type = CEK_F32;
        d.op.operands = 7;
        compare("dropout without a batch block", &d.op, o, (cek_dtype[]){ CEK_F32, CEK_F32, 0 }, 3, exactly);
    }
}
END_TEST

START_TEST(random_numbers_are_those_of_the_header)
{
    const random_case *c = &randoms[_i];
    const uint64_t n = c->rows * c->columns;
    cek_step_block step = { .random_key = 0xfedcba9876543210 };
    cek_batch_block batch = { .sample_base = c->sample_base };

    for (uint32_t which = CEK_RANDOM_UNIFORM; which <= CEK_RANDOM_NORMAL; which++) {
        cek_random_desc d = { .op = { .size = sizeof d, .kind = CEK_OP_RANDOM, .operands = 7 },
                              .rows = c->rows,
                              .columns = c->columns,
                              .rows_per_sample = c->rows_per_sample,
                              .a = -0.5,
                              .b = 1.5,
                              .distribution = which,
                              .stream = 11,
                              .type = CEK_F32 };
        const operand o[] = { { 0, y, n * 4, OUT }, { 1, &step, sizeof step, IN }, { 2, &batch, sizeof batch, IN } };

        /* uniform: two roundings of numbers up to 2; normal: radius up to 9 with log, root and
         * cosine to 1e-7 */
        compare("random", &d.op, o, (cek_dtype[]){ CEK_F32, 0, 0 }, 3,
                (tolerance){ which == CEK_RANDOM_UNIFORM ? 2.5e-7 : 4e-6, 0 });
    }
}
END_TEST

/* --- optimizer -------------------------------------------------------------------------------- */

#if defined __SSE__ || defined __aarch64__
enum { CAN_FLUSH = 1 };
#else
enum { CAN_FLUSH = 0 };
#endif

typedef struct optimizer_case {
    const char *what;
    uint32_t algorithm, flags;
    double momentum, dampening, decay;
    bool m, update;
    uint32_t skip;
    cek_dtype low;
} optimizer_case;

static const optimizer_case optimizers[] = {
    { "adam", CEK_OPTIMIZER_ADAM, 0, 0, 0, 0, true, false, 0, 0 },
    { "adam, decay, scaled", CEK_OPTIMIZER_ADAM, 0, 0, 0, 0.1, true, true, 0, CEK_BF16 },
    { "adamw", CEK_OPTIMIZER_ADAM, CEK_OPTIMIZER_DECOUPLED, 0, 0, 0.1, true, true, 0, CEK_F16 },
    { "sgd", CEK_OPTIMIZER_SGD, 0, 0, 0, 0, false, false, 0, 0 },
    { "sgd, decay", CEK_OPTIMIZER_SGD, 0, 0, 0, 0.1, false, true, 0, 0 },
    { "momentum", CEK_OPTIMIZER_SGD, 0, 0.9, 0, 0.01, true, false, 0, CEK_BF16 },
    { "momentum, dampening", CEK_OPTIMIZER_SGD, 0, 0.9, 0.3, 0, true, false, 0, 0 },
    { "nesterov", CEK_OPTIMIZER_SGD, CEK_OPTIMIZER_NESTEROV, 0.9, 0, 0.01, true, true, 0, 0 },
    { "skipped", CEK_OPTIMIZER_ADAM, 0, 0, 0, 0.1, true, true, 0x80000000u, CEK_BF16 },
    { "rmsprop", CEK_OPTIMIZER_RMSPROP, 0, 0, 0, 0, false, false, 0, CEK_BF16 },
    { "rmsprop, momentum", CEK_OPTIMIZER_RMSPROP, 0, 0.9, 0, 0.1, true, true, 0, 0 },
    { "rmsprop, centered", CEK_OPTIMIZER_RMSPROP, CEK_OPTIMIZER_CENTERED, 0, 0, 0.1, false, true, 0, 0 },
    { "adagrad", CEK_OPTIMIZER_ADAGRAD, 0, 0, 0, 0.1, false, true, 0, CEK_F16 },
};
enum { OPTIMIZERS = sizeof optimizers / sizeof optimizers[0] };

START_TEST(optimizers_step_as_the_reference_does)
{
    enum { N = 50000 };
    static float p[N], g[N], m[N], v[N], mean[N];
    static uint16_t low[N];
    const optimizer_case *c = &optimizers[_i];
    /* RMSprop divides by v's root: what rounding leaves where decay and gradient cancel is not to be divided
     * by as little. */
    const float least = c->algorithm == CEK_OPTIMIZER_RMSPROP ? 0.01f : 0;
    const cek_param_range ranges[] = { { 3, 10, 0, 0 }, { 10, 11, 1, 0 }, { 100, 45000, 2, 0 }, { 45007, N, 1, 0 } };
    cek_step_block step = { .ln_beta1 = { logf(0.9f), 0 }, .ln_beta2 = { logf(0.999f), 0 } };
    cek_update_block update = { .grad_scale = { 0.25f, 0 }, .skip = c->skip };
    uint64_t state[32] = { 0 };
    cek_optimizer_desc d = { .op = { .size = sizeof d,
                                     .kind = CEK_OP_OPTIMIZER,
                                     .operands = 3 | CEK_BIT(4) | CEK_BIT(5) | (c->m ? CEK_BIT(2) : 0) |
                                                 (c->algorithm != CEK_OPTIMIZER_SGD ? CEK_BIT(3) : 0) |
                                                 (c->flags & CEK_OPTIMIZER_CENTERED ? CEK_BIT(8) : 0) |
                                                 (c->update ? CEK_BIT(6) : 0) | (c->low ? CEK_BIT(7) : 0) },
                             .count = N,
                             .ranges = ranges,
                             .range_count = 4,
                             .range_size = sizeof ranges[0],
                             .momentum = c->momentum,
                             .dampening = c->dampening,
                             .epsilon = c->algorithm == CEK_OPTIMIZER_SGD ? 0 : 1e-8,
                             .decay = c->algorithm == CEK_OPTIMIZER_RMSPROP   ? 0.9
                                      : c->algorithm == CEK_OPTIMIZER_ADAGRAD ? 0.01
                                                                              : 0,
                             .algorithm = c->algorithm,
                             .flags = c->flags,
                             .type = CEK_F32,
                             .low_type = c->low };

    for (int i = 0; i < 3; i++) {
        step.lr[i].hi = 0.01f * (float)(i + 1);
        step.weight_decay[i].hi = (float)c->decay;
    }
    fill_uniform(p, N, 1);
    for (uint64_t t = 0; t < 3; t++) { /* the first step, the second, one far on */
        operand o[9] = {
            { 0, p, N * 4, OUT }, { 1, g, N * 4, IN }, { 4, state, sizeof state, OUT }, { 5, &step, sizeof step, IN }
        };
        cek_dtype types[9] = { CEK_F32, CEK_F32, CEK_I32, 0 };
        int count = 4;

        state[0] = t * t * 500;
        fill_uniform(g, N, 2 + t);
        fill_uniform(m, N, 7);
        for (int i = 0; i < N; i++)
            v[i] = (t ? m[i] * m[i] * 0.1f : 0) + least,
            m[i] = t || c->algorithm == CEK_OPTIMIZER_SGD ? m[i] * 0.1f : 0;
        if (c->m)
            o[count] = (operand){ 2, m, N * 4, OUT }, types[count++] = CEK_F32;
        if (c->flags & CEK_OPTIMIZER_CENTERED)
            o[count] = (operand){ 8, mean, N * 4, OUT }, types[count++] = CEK_F32;
        if (c->algorithm != CEK_OPTIMIZER_SGD)
            o[count] = (operand){ 3, v, N * 4, OUT }, types[count++] = CEK_F32;
        if (c->update)
            o[count] = (operand){ 6, &update, sizeof update, IN }, types[count++] = 0;
        if (c->low)
            o[count] = (operand){ 7, low, N * 2, IN }, types[count++] = c->low;
        /* a dozen roundings of numbers around 1; where v is tiny, Adam's quotient is still at
         * most about 10 x lr; a rounded copy may fall on the other side of a tie: the next test
         * looks at it */
        compare(c->what, &d.op, o, types, count, (tolerance){ 1e-6, 2e-6 });
    }
}
END_TEST

/* clang-format off */
START_TEST(the_low_copy_is_the_parameters_rounded_and_the_rest_is_left_alone)
{
    enum { N = 20000 };
    static float p[N], g[N], m[N], v[N], before[N];
    static uint16_t low[N], want[N];
    const cek_param_range range = { 5, N - 9, 0, 0 };
    cek_step_block step = { .ln_beta1 = { logf(0.9f), 0 },
                            .ln_beta2 = { logf(0.999f), 0 },
                            .lr = { { 0.01f, 0 } } };
    uint64_t state[32] = { 0 };
    cek_optimizer_desc d = { .op = { .size = sizeof d, .kind = CEK_OP_OPTIMIZER, .operands = 0xbf }, .count = N,
                             .ranges = &range, .range_count = 1, .range_size = sizeof range, .epsilon = 1e-8,
                             .algorithm = CEK_OPTIMIZER_ADAM, .type = CEK_F32, .low_type = CEK_BF16 };
    operand o[] = { { 0, p, N * 4, OUT }, { 1, g, N * 4, IN }, { 2, m, N * 4, OUT }, { 3, v, N * 4, OUT },
                    { 4, state, sizeof state, OUT }, { 5, &step, sizeof step, IN }, { 7, low, N * 2, OUT } };
    /* clang-format on */

    for (int f = 0; f < form_count(); f++) {
        fill_uniform(before, N, 1);
        memcpy(p, before, sizeof p);
        fill_uniform(g, N, 2);
        memset(m, 0, sizeof m);
        memset(v, 0, sizeof v);
        memset(low, 0x33, sizeof low);
        memset(state, 0, sizeof state);
        ck_assert_uint_eq(run_op(form(f), &d.op, o, 7, 0), CEK_OK);
        ck_assert_uint_eq(state[0], 1);
        to_bf16(p, want, N);
        for (int i = 0; i < N; i++) {
            const bool inside = i >= 5 && i < N - 9;

            must(low[i] == (inside ? want[i] : 0x3333), "low[%d] is %04x", i, low[i]);
            must(inside ? p[i] != before[i] : p[i] == before[i] && m[i] == 0 && v[i] == 0, "p[%d] is %g", i, p[i]);
        }
    }
}
END_TEST

START_TEST(a_parameter_without_a_gradient_stays_whatever_is_above_0_in_epsilon)
{
    enum { N = 100 };
    static float p[N], g[N], m[N], v[N];
    const cek_param_range range = { 0, N, 0, 0 };
    cek_step_block step = { .ln_beta1 = { logf(0.9f), 0 }, .ln_beta2 = { logf(0.999f), 0 }, .lr = { { 0.01f, 0 } } };
    uint64_t state[32];
    cek_optimizer_desc d = { .op = { .size = sizeof d, .kind = CEK_OP_OPTIMIZER, .operands = 0x3f },
                             .count = N,
                             .ranges = &range,
                             .range_count = 1,
                             .range_size = sizeof range,
                             .epsilon = 1e-40, /* denormal */
                             .algorithm = CEK_OPTIMIZER_ADAM,
                             .type = CEK_F32 };
    operand o[] = { { 0, p, N * 4, OUT },
                    { 1, g, N * 4, IN },
                    { 2, m, N * 4, OUT },
                    { 3, v, N * 4, OUT },
                    { 4, state, sizeof state, OUT },
                    { 5, &step, sizeof step, IN } };

    for (int f = 0; f < form_count(); f++) {
        for (int i = 0; i < N; i++)
            p[i] = (float)i;
        memset(state, 0, sizeof state);
        ck_assert_uint_eq(run_op(form(f), &d.op, o, 6, 0), CEK_OK);
        for (int i = 0; i < N; i++)
            must(p[i] == (float)i, "p[%d] is %g", i, p[i]);
    }
}
END_TEST

START_TEST(moments_without_a_gradient_end_and_denormal_numbers_count_after_the_step)
{
    enum { N = 70000 }; /* for several threads */
    static float p[N], g[N], m[N], v[N], want[N];
    static const float tiny = 0x1p-147f; /* times 0.9 and rounded, this is itself */
    const cek_param_range range = { 0, N, 0, 0 };
    cek_step_block step = { .ln_beta1 = { logf(0.9f), 0 }, .ln_beta2 = { logf(0.999f), 0 }, .lr = { { 0.01f, 0 } } };
    uint64_t state[32] = { 0 };
    cek_optimizer_desc d = { .op = { .size = sizeof d, .kind = CEK_OP_OPTIMIZER, .operands = 0x3f },
                             .count = N,
                             .ranges = &range,
                             .range_count = 1,
                             .range_size = sizeof range,
                             .epsilon = 1e-8,
                             .algorithm = CEK_OPTIMIZER_ADAM,
                             .type = CEK_F32 };
    operand o[] = { { 0, p, N * 4, OUT },
                    { 1, g, N * 4, IN },
                    { 2, m, N * 4, OUT },
                    { 3, v, N * 4, OUT },
                    { 4, state, sizeof state, OUT },
                    { 5, &step, sizeof step, IN } };
    const cek_pointwise_input input = { .type = CEK_F32, .strides = { 1 } };
    const cek_pointwise_instruction half = { .code = CEK_PW_MUL_IMM, .imm = 0.5 };
    const cek_pointwise_desc halves = {
        .op = { .size = sizeof halves, .kind = CEK_OP_POINTWISE, .operands = 1 | CEK_BIT(CEK_POINTWISE_OUT) },
        .rank = 1,
        .shape = { N },
        .out_type = CEK_F32,
        .out_strides = { 1 },
        .inputs = &input,
        .input_count = 1,
        .input_size = sizeof input,
        .instructions = &half,
        .instruction_count = 1,
        .instruction_size = sizeof half
    };
    operand h[] = { { 0, m, N * 4, IN }, { CEK_POINTWISE_OUT, want, N * 4, OUT } };

    for (int f = 0; f < form_count(); f++) {
        fill_uniform(p, N, 1);
        memset(g, 0, sizeof g);
        memset(state, 0, sizeof state);
        for (int i = 0; i < N; i++)
            m[i] = v[i] = tiny;
        ck_assert_uint_eq(run_op(form(f), &d.op, o, 6, 0), CEK_OK);
        for (int i = 0; i < N; i++)
            must(CAN_FLUSH ? m[i] == 0 && v[i] == 0 : m[i] <= tiny, "m[%d] is %g, v %g", i, m[i], v[i]);
        for (int i = 0; i < N; i++)
            m[i] = tiny;
        ck_assert_uint_eq(run_op(form(f), &halves.op, h, 2, 0), CEK_OK);
        for (int i = 0; i < N; i++)
            must(want[i] == tiny / 2, "a half of %g is %g", tiny, want[i]);
    }
}
END_TEST

void add_training(Suite *suite)
{
    TCase *cases = tcase_create("training");

    tcase_add_checked_fixture(cases, forms_open, forms_close);
    tcase_add_loop_test(cases, maximum_pools_choose_what_the_reference_chooses, 0, POOLS);
    tcase_add_test(cases, a_gradient_that_goes_past_the_caches_is_that_of_each_image);
    tcase_add_loop_test(cases, maximum_pools_in_bf16, 0, POOLS);
    tcase_add_loop_test(cases, average_pools_and_their_gradients, 0, POOLS);
    tcase_add_test(cases, a_pool_without_reserve_gives_the_same_maxima);
    tcase_add_loop_test(cases, average_pools_in_16_bits, 0, POOLS);
    tcase_add_test(cases, what_pools_work_in_does_not_grow_with_the_batch);
    tcase_add_loop_test(cases, dropout_keeps_the_elements_that_the_header_says, 0, RANDOMS);
    tcase_add_loop_test(cases, random_numbers_are_those_of_the_header, 0, RANDOMS);
    tcase_add_loop_test(cases, optimizers_step_as_the_reference_does, 0, OPTIMIZERS);
    tcase_add_test(cases, the_low_copy_is_the_parameters_rounded_and_the_rest_is_left_alone);
    tcase_add_test(cases, a_parameter_without_a_gradient_stays_whatever_is_above_0_in_epsilon);
    tcase_add_test(cases, moments_without_a_gradient_end_and_denormal_numbers_count_after_the_step);
    suite_add_tcase(suite, cases);
}
