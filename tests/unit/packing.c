/* packing.c - what a prediction computes of weights once: packed by the device, with the same bits, where memory has
 * room for that, and what it goes without first where it has not. */
#include <cekernels/parts.h>

#include "plan_run.h"
#include "tests/suite.h"

enum { ROWS = 3, SIDE = 6, VALUES = ROWS * 8 * SIDE * SIDE };

static struct {
    cek_plugin table;
    cek_status (*create)(cek_dev *, const cek_op_desc *, cek_op_info *, cek_op **);
    cek_status (*prepack)(cek_queue *, const cek_op *, const cek_ref *, uint32_t, cek_ref);
    cek_status (*perform)(cek_queue *, const cek_op *, const cek_ref *, uint32_t, cek_ref);
    bool refuses;
    int created, refused, packed, run;
} packing;

static cek_status packing_create(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out)
{
    const bool asks = desc->flags & CEK_OP_PREPACKED;
    cek_status st = CEK_UNSUPPORTED;

    *out = NULL;
    if (!asks || !packing.refuses)
        st = packing.create(dev, desc, info, out);
    packing.created += asks && st == CEK_OK;
    packing.refused += asks && st == CEK_UNSUPPORTED;
    return st;
}

static cek_status packing_prepack(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t n, cek_ref to)
{
    packing.packed++;
    return packing.prepack(queue, op, operands, n, to);
}

static cek_status packing_run(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t n,
                              cek_ref workspace)
{
    packing.run++;
    return packing.perform(queue, op, operands, n, workspace);
}

/* What is recorded would not be seen. */
static cek_status packing_record(cek_dev *dev, const cek_cmd *cmds, uint32_t count, uint32_t cmd_size, cek_cmdbuf **out)
{
    (void)dev;
    (void)cmds;
    (void)count;
    (void)cmd_size;
    *out = NULL;
    return CEK_UNSUPPORTED;
}

static void packing_watch(bench *b, bool refuses)
{
    memset(&packing, 0, sizeof packing);
    packing.table = *b->device->plugin;
    packing.create = packing.table.op_create;
    packing.prepack = packing.table.op_prepack;
    packing.perform = packing.table.op_run;
    packing.table.op_create = packing_create;
    packing.table.op_run = packing_run;
    packing.table.cmdbuf_create = packing_record;
    packing.table.op_prepack = packing_prepack;
    packing.refuses = refuses;
    b->device->plugin = &packing.table;
}

/* Two convolutions, of which the second is by Winograd's squares on the cpu, with normalisations; and a linear layer,
 * whose weights the reference packs too. */
static const char two_and_one[] = "conv:18,3,p1 batchnorm relu conv:20,3,p1 relu flatten linear:5";

START_TEST(weights_are_packed_once_and_the_bits_are_those_of_a_device_that_packs_none)
{
    static const char *const on[] = { "cpu:0", "reference:0" };
    static float x[VALUES], y[2][ROWS * 5];
    uint32_t state = 8;
    cek_model *m;

    assert_ok(cek_model_parse(two_and_one, 3, (int64_t[]){ 8, SIDE, SIDE }, &m));
    cek_model_init(m, 3);
    for (int i = 0; i < VALUES; i++)
        x[i] = random_value(&state, -2, 2);
    for (int refuses = 0; refuses < 2; refuses++) {
        bench b;

        bench_open(&b, on[_i]);
        packing_watch(&b, refuses);
        predict_rows(m, b.device, CEK_MATH_F32, 2, ROWS, x, y[refuses]); /* in two runs */
        ck_assert_int_eq(packing.created, refuses ? 0 : _i == 0 ? 2 : 3);
        ck_assert_int_eq(packing.refused, refuses ? 3 : _i == 0 ? 1 : 0);
        ck_assert_int_eq(packing.packed, packing.created);
        b.device->plugin = b.plugin;
        bench_close(&b);
    }
    ck_assert_mem_eq(y[0], y[1], sizeof *y);
    cek_model_free(m);
}
END_TEST

/* The steps of an LSTM multiply by the same weights; what the input gives to all of them is one product more. */
START_TEST(weights_that_are_read_again_and_again_are_packed_once)
{
    enum { STEPS = 5, WIDTH = 8, STATE = 64, SAMPLES = 32 };
    static const char *const on[] = { "cpu:0", "reference:0" };
    static float x[SAMPLES * STEPS * WIDTH], y[2][SAMPLES * STEPS * STATE];
    uint32_t state = 4;
    cek_model *m;

    setenv("CEKERNELS_CPU_THREADS", "1", 1); /* of many each packs so little that it would not pay */
    assert_ok(cek_model_parse("lstm:64", 2, (int64_t[]){ STEPS, WIDTH }, &m));
    cek_model_init(m, 3);
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = random_value(&state, -2, 2);
    for (int refuses = 0; refuses < 2; refuses++) {
        bench b;

        bench_open(&b, on[_i]);
        packing_watch(&b, refuses);
        predict_rows(m, b.device, CEK_MATH_F32, SAMPLES, SAMPLES, x, y[refuses]);
        ck_assert_int_eq(packing.created, refuses ? 0 : STEPS + 1);
        ck_assert_int_eq(packing.packed, refuses ? 0 : 2);
        b.device->plugin = b.plugin;
        bench_close(&b);
    }
    ck_assert_mem_eq(y[0], y[1], sizeof *y);
    cek_model_free(m);
}
END_TEST

/* x W, and what W^T makes of it; W is square: as many elements, panels of one form, and other values in them. */
START_TEST(weights_that_are_read_in_two_ways_are_packed_twice)
{
    enum { SIZE = 64, SAMPLES = 32 };
    static const char *const on[] = { "cpu:0", "reference:0" };
    static float x[SAMPLES * SIZE], y[2][SAMPLES * SIZE];
    uint32_t state = 4;
    cek_parameter p;
    cek_model *m;
    int h;

    setenv("CEKERNELS_CPU_THREADS", "1", 1);
    assert_ok(cek_model_create(1, (int64_t[]){ SIZE }, &m));
    assert_ok(cek_model_linear(m, 0, SIZE, false, &h));
    assert_ok(cek_model_parameter(m, 0, &p));
    cek_part_matmul(m, h, cek_part_shared(m, p.name), false);
    assert_ok(cek_model_status(m));
    for (int64_t i = 0; i < p.count; i++)
        p.data[i] = random_value(&state, -1, 1);
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = random_value(&state, -2, 2);
    for (int refuses = 0; refuses < 2; refuses++) {
        bench b;

        bench_open(&b, on[_i]);
        packing_watch(&b, refuses);
        predict_rows(m, b.device, CEK_MATH_F32, SAMPLES, SAMPLES, x, y[refuses]);
        ck_assert_int_eq(packing.created, refuses ? 0 : 2);
        ck_assert_int_eq(packing.packed, packing.created);
        b.device->plugin = b.plugin;
        bench_close(&b);
    }
    ck_assert_mem_eq(y[0], y[1], sizeof *y);
    cek_model_free(m);
}
END_TEST

/* A limit between what it takes with packed weights and without. */
START_TEST(where_memory_is_short_nothing_is_packed)
{
    static float x[4096], y[2][256];
    cek_predictor_options o = { .size = sizeof o, .batch = 1, .input_type = CEK_F32 };
    cek_memory_stats stats = { .size = sizeof stats };
    uint64_t used[2];
    cek_predictor *p;
    cek_model *m;
    bench b;

    assert_ok(cek_model_parse("conv:256,3,p1 conv:256,3,p1 gap", 3, (int64_t[]){ 8, 4, 4 }, &m));
    cek_model_init(m, 3);
    bench_open(&b, "cpu:0");
    for (int refuses = 0; refuses < 2; refuses++) {
        packing_watch(&b, refuses);
        assert_ok(cek_predictor_create(m, &b.device, 1, &o, &p));
        assert_ok(cek_device_memory_stats(b.device, &stats));
        used[refuses] = stats.used_bytes;
        cek_predictor_free(p);
        b.device->plugin = b.plugin;
    }
    ck_assert_uint_gt(used[0], used[1] + 256 * 256 * 9 * 4);
    for (int is_short = 0; is_short < 2; is_short++) {
        packing_watch(&b, false);
        o.memory_limit = is_short ? used[1] + (1 << 16) : used[0] + (1 << 16);
        assert_ok(cek_predictor_create(m, &b.device, 1, &o, &p));
        assert_ok(cek_predictor_run(p, x, 1, y[is_short]));
        ck_assert_int_eq(packing.packed, is_short ? 0 : 2);
        cek_predictor_free(p);
        b.device->plugin = b.plugin;
    }
    ck_assert_mem_eq(y[0], y[1], sizeof *y);
    bench_close(&b);
    cek_model_free(m);
}
END_TEST

/* Of one batch that is predicted under a limit (0: none) on a device that packs or refuses to: whether weights are
 * packed, the operations that it takes, and the memory. */
typedef struct outcome {
    int packed, run;
    uint64_t used;
} outcome;

static outcome outcome_of(const cek_model *m, bench *b, bool refuses, uint64_t limit, const float *x, float *y)
{
    const cek_predictor_options o = {
        .size = sizeof o, .batch = ROWS + 1, .input_type = CEK_F32, .memory_limit = limit
    };
    cek_memory_stats stats = { .size = sizeof stats };
    outcome is;
    cek_predictor *p;

    packing_watch(b, refuses);
    assert_ok(cek_predictor_create(m, &b->device, 1, &o, &p));
    assert_ok(cek_device_memory_stats(b->device, &stats));
    assert_ok(cek_predictor_run(p, x, ROWS + 1, y));
    packing.run = 0; /* the first has computed ahead */
    assert_ok(cek_predictor_run(p, x, ROWS + 1, y));
    is = (outcome){ packing.packed, packing.run, stats.used_bytes };
    cek_predictor_free(p);
    b->device->plugin = b->plugin;
    return is;
}

/* Packed weights are what is given up first: as many samples at once as before, then fewer, still of weights that
 * were computed ahead, then one of weights that were not. */
START_TEST(packed_weights_go_before_batches_are_cut_and_what_was_computed_ahead_goes_last)
{
    enum { IMAGES = ROWS + 1, PIXELS = 8 * 8 };
    static float x[IMAGES * 8 * PIXELS], y[4][IMAGES * 256];
    uint32_t state = 6;
    outcome is[4];
    cek_model *m;
    bench b;

    assert_ok(cek_model_parse("conv:256,3,p1 batchnorm conv:256,3,p1 batchnorm gap", 3, (int64_t[]){ 8, 8, 8 }, &m));
    cek_model_init(m, 3);
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = random_value(&state, -2, 2);
    bench_open(&b, "cpu:0");
    is[0] = outcome_of(m, &b, false, 0, x, y[0]);
    is[1] = outcome_of(m, &b, true, 0, x, y[1]);
    ck_assert_int_eq(is[0].packed, 2);
    ck_assert_uint_gt(is[0].used, is[1].used + (1 << 17));
    is[2] = outcome_of(m, &b, false, is[1].used + (1 << 16), x, y[2]);
    ck_assert_int_eq(is[2].packed, 0);
    ck_assert_int_eq(is[2].run, is[1].run);
    is[3] = outcome_of(m, &b, false, is[1].used - (1 << 16), x, y[3]);
    ck_assert_int_eq(is[3].packed, 0);
    ck_assert_int_eq(is[3].run, 2 * is[1].run);
    for (int i = 1; i < 3; i++) /* of fewer images, convolutions may go another way */
        ck_assert_mem_eq(y[i], y[0], sizeof *y);
    bench_close(&b);
    cek_model_free(m);
}
END_TEST

/* A limit below what the weights that normalisations went into take: as on a device that folds none. The reference
 * computes under STRICT as otherwise. */
START_TEST(where_memory_is_shorter_still_nothing_is_computed_ahead)
{
    static float x[4096], y[2][256];
    cek_predictor_options o = { .size = sizeof o, .batch = 1, .input_type = CEK_F32, .math = CEK_MATH_STRICT };
    cek_memory_stats stats = { .size = sizeof stats };
    uint32_t state = 4;
    cek_predictor *p;
    cek_model *m;
    bench b;

    assert_ok(cek_model_parse("conv:64,3,p1 batchnorm conv:64,3,p1 batchnorm gap", 3, (int64_t[]){ 8, 4, 4 }, &m));
    cek_model_init(m, 3);
    for (int i = 0; i < 4096; i++)
        x[i] = random_value(&state, -2, 2);
    bench_open(&b, "reference:0");
    for (int is_short = 0; is_short < 2; is_short++) {
        packing_watch(&b, !is_short);
        assert_ok(cek_predictor_create(m, &b.device, 1, &o, &p));
        assert_ok(cek_predictor_run(p, x, 1, y[is_short]));
        assert_ok(cek_device_memory_stats(b.device, &stats));
        ck_assert_int_eq(packing.packed, 0);
        cek_predictor_free(p);
        b.device->plugin = b.plugin;
        o.math = CEK_MATH_F32;
        o.memory_limit = stats.used_bytes + (1 << 16);
    }
    ck_assert_mem_eq(y[0], y[1], sizeof *y);
    bench_close(&b);
    cek_model_free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("packing");
    TCase *tcase = tcase_create("packing");

    tcase_add_loop_test(tcase, weights_are_packed_once_and_the_bits_are_those_of_a_device_that_packs_none, 0, 2);
    tcase_add_loop_test(tcase, weights_that_are_read_again_and_again_are_packed_once, 0, 2);
    tcase_add_loop_test(tcase, weights_that_are_read_in_two_ways_are_packed_twice, 0, 2);
    tcase_add_test(tcase, where_memory_is_short_nothing_is_packed);
    tcase_add_test(tcase, packed_weights_go_before_batches_are_cut_and_what_was_computed_ahead_goes_last);
    tcase_add_test(tcase, where_memory_is_shorter_still_nothing_is_computed_ahead);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
