/* plan_pieces.c - weights of linear layers that lie in several memories: where they are cut, and that plans with them
 * compute what they should, and no later than they must. */
#include <cekernels/parts.h>

#include "plan_case.h"

enum { PIECE = 32 << 10 };

static cek_model *large(void)
{
    return parsed("linear:200 relu dropout:0.25 linear:150 tanh linear:130 linear:6", 1, (int64_t[]){ 90 });
}

static size_t pieces_of(const cek__layout *layout, size_t parameter)
{
    return layout->piece_of[parameter + 1] - layout->piece_of[parameter];
}

/* ---- where they are cut ---- */

START_TEST(weights_of_linear_layers_are_cut_into_equal_pieces_of_whole_rows)
{
    cek_model *m = large();
    cek__layout *layout;

    assert_ok(cek__layout_create_cut(m, CEK_F64, PIECE, &layout));
    /* 45 rows of 90 fit, 20 of 200, 27 of 150, all of 130: rounded to what 256 bytes are along a row of outputs,
     * at least that. */
    ck_assert_uint_eq(pieces_of(layout, 0), 7);
    ck_assert_uint_eq(layout->placement[0].count, 32 * 90);
    ck_assert_uint_eq(layout->placement[6].count, 8 * 90);
    ck_assert_uint_eq(pieces_of(layout, 2), 5);
    ck_assert_uint_eq(pieces_of(layout, 4), 5);
    for (size_t p = 0; p < m->parameter_count; p++) {
        uint64_t at = 0;

        if (p % 2 || p == 6)
            ck_assert_uint_eq(pieces_of(layout, p), 1);
        for (size_t i = layout->piece_of[p]; i < layout->piece_of[p + 1]; at += layout->placement[i++].count) {
            ck_assert_uint_eq(layout->placement[i].parameter, p);
            ck_assert_uint_eq(layout->placement[i].at, at);
            ck_assert_uint_eq(layout->placement[i].first * 8 % CEK_ALIGNMENT, 0);
        }
        ck_assert_uint_eq(at, (uint64_t)m->parameters[p].public.count);
    }
    for (size_t b = 0; b < layout->bucket_count; b++) /* 32 rows of 200 are the largest piece */
        ck_assert_uint_le(cek__layout_bucket_bytes(layout, b), 32 * 200 * 8);
    cek__layout_free(layout);
    cek_model_free(m);
}
END_TEST

/* So a device that gives as much at once can hold any network of linear layers. */
START_TEST(what_trainers_lay_out_is_cut_beyond_100_mib)
{
    cek_model *m = parsed("linear:2048 relu linear:14000 relu linear:1", 1, (int64_t[]){ 12800 });
    cek__layout *layout;

    assert_ok(cek__layout_create(m, CEK_F32, &layout));
    ck_assert_uint_eq(pieces_of(layout, 0), 1); /* 100 MiB to the byte */
    ck_assert_uint_eq(pieces_of(layout, 2), 2); /* 109 MiB */
    ck_assert_uint_eq(layout->placement[layout->piece_of[2]].count, 7040 * 2048);
    for (size_t b = 0; b < layout->bucket_count; b++)
        ck_assert_uint_le(cek__layout_bucket_bytes(layout, b), 100 << 20);
    cek__layout_free(layout);
    cek_model_free(m);
}
END_TEST

START_TEST(pieces_are_turned_and_back)
{
    const char *text = "conv:6,3,p1 maxpool:2 flatten linear:100 relu linear:4";
    cek_model *m = parsed(text, 3, IMAGE), *copy = parsed(text, 3, IMAGE);
    cek__layout *layout, *whole;
    char want[65], got[65];
    float *pieces = malloc(100 * 96 * sizeof *pieces);

    cek_model_init(copy, 8);
    assert_ok(cek__layout_create_cut(m, CEK_F32, 8 << 10, &layout));
    assert_ok(cek__layout_create(m, CEK_F32, &whole));
    ck_assert_uint_eq(pieces_of(layout, 2), 2);
    ck_assert_uint_eq(layout->placement[layout->piece_of[2]].count, 64 * 96);
    ck_assert_uint_eq(whole->bucket_count, 1);
    for (size_t b = 0; b < layout->bucket_count; b++) {
        float *host = malloc(cek__layout_bucket_bytes(layout, b));

        cek__layout_pack(layout, m, b, host);
        cek__layout_unpack(layout, copy, b, host);
        for (size_t i = layout->piece_of[2]; i < layout->piece_of[3]; i++)
            if (layout->placement[i].bucket == b)
                memcpy(pieces + layout->placement[i].at, host + layout->placement[i].first,
                       layout->placement[i].count * sizeof *pieces);
        free(host);
    }
    cek_model_sha256(m, want);
    cek_model_sha256(copy, got);
    ck_assert_str_eq(got, want);
    float *host = malloc(cek__layout_bucket_bytes(whole, 0));
    cek__layout_pack(whole, m, 0, host);
    ck_assert_mem_eq(pieces, host + whole->placement[2].first, 100 * 96 * sizeof *pieces);
    free(host);
    free(pieces);
    cek__layout_free(layout);
    cek__layout_free(whole);
    cek_model_free(m);
    cek_model_free(copy);
}
END_TEST

/* ---- what they compute ---- */

static void model_trains(bench *b, cek_model *m, cek_dtype type, uint64_t piece_bytes, double tolerance)
{
    test_case c;

    case_make(&c, m, &train_ce, 4, 11);
    c.piece_bytes = piece_bytes;
    case_trains(b, &c, type, tolerance);
    case_clear(&c);
    cek_model_free(m);
}

/* Two layers read one tensor, so that a gradient is added to one that is there. */
static cek_model *forked(void)
{
    cek_model *m;
    int from, a, b;

    assert_ok(cek_model_create(1, (int64_t[]){ 70 }, &m));
    assert_ok(cek_model_linear(m, 0, 130, true, &from));
    assert_ok(cek_model_activation(m, from, CEK_ACT_SIGMOID, &from));
    assert_ok(cek_model_linear(m, from, 100, true, &a));
    assert_ok(cek_model_linear(m, from, 100, false, &b));
    assert_ok(cek_model_add(m, a, b, &a));
    assert_ok(cek_model_linear(m, a, 5, true, NULL));
    cek_model_init(m, 7);
    return m;
}

START_TEST(gradients_with_weights_in_pieces_are_the_double_ones)
{
    bench b;

    bench_open(&b, "reference:0");
    bench_wrap(&b);
    model_trains(&b, large(), CEK_F64, PIECE, 1e-10);
    /* Forward 7 + 5 + 5 + 1; the same twice for weights; data without the first layer. */
    ck_assert_int_eq(wrapped.created[CEK_OP_GEMM], 18 + 2 * 18 + 11);
    ck_assert_int_eq(wrapped.fused,
                     7 + 5 + 5); /* relu and tanh forward, tanh backward (relu's is before the dropout) */
    model_trains(&b, parsed("conv:6,3,p1 maxpool:2 flatten linear:100 gelu linear:70 relu linear:4", 3, IMAGE), CEK_F64,
                 16 << 10, 1e-10);
    model_trains(&b, forked(), CEK_F64, 16 << 10, 1e-10);
    bench_close(&b);
}
END_TEST

START_TEST(a_device_without_fused_epilogues_computes_the_same_in_pieces)
{
    bench b;

    bench_open(&b, "reference:0");
    bench_wrap(&b);
    wrapped.refuse_epilogues = true;
    model_trains(&b, large(), CEK_F64, PIECE, 1e-10);
    ck_assert_int_gt(wrapped.refused, 2);
    ck_assert_int_eq(wrapped.fused, 0);
    bench_close(&b);
}
END_TEST

START_TEST(pieces_in_f32_on_the_cpu_are_near_the_double_ones)
{
    bench b;

    bench_open(&b, "cpu:0");
    /* Sums of up to 200 products, four layers deep, of which pieces are added in another order: some units
     * of 6e-8 each. */
    model_trains(&b, parsed("linear:200 tanh dropout:0.25 linear:150 sigmoid linear:6", 1, (int64_t[]){ 90 }), CEK_F32,
                 PIECE, 5e-5);
    bench_close(&b);
}
END_TEST

/* relu(x W + b) V, whose weights have a row for each input, as files of MatMul have them. */
static cek_model *by_inputs(void)
{
    const cek_parameter_options first = {
        .size = sizeof first, .rank = 2, .shape = (int64_t[]){ 70, 130 }, .fan_in = 70
    };
    const cek_parameter_options bias = { .size = sizeof bias, .rank = 1, .shape = (int64_t[]){ 130 }, .fan_in = 70 };
    const cek_parameter_options last = {
        .size = sizeof last, .rank = 2, .shape = (int64_t[]){ 130, 6 }, .fan_in = 130
    };
    cek_model *m;
    int x;

    assert_ok(cek_model_create(1, (int64_t[]){ 70 }, &m));
    x = cek_part_matmul(m, 0, cek_part_parameter(m, "", &first), false);
    x = cek_part_apply(m, CEK_PW_ADD, x, cek_part_parameter(m, "", &bias));
    x = cek_part_apply(m, CEK_PW_RELU, x, -1);
    cek_part_matmul(m, x, cek_part_parameter(m, "", &last), false);
    assert_ok(cek_model_status(m));
    cek_model_init(m, 7);
    return m;
}

/* What the first piece of inputs gives has the bias, the others are added to it. */
START_TEST(weights_with_a_row_for_each_input_lie_in_pieces_too)
{
    bench b;
    test_case c;
    plan_run r[2];
    double loss[2], *gradient[2];
    cek_model *m = by_inputs();

    bench_open(&b, "reference:0");
    bench_wrap(&b);
    case_make(&c, m, &train_ce, 4, 11);
    for (int cut = 0; cut < 2; cut++) {
        plan_run_open_cut(&r[cut], &b, m, CEK_F64, cut ? 8 << 10 : 1 << 30, &train_ce);
        ck_assert_uint_eq(pieces_of(r[cut].layout, 0), cut ? 3 : 1);
        case_upload(&c, &r[cut], 0, 4);
        plan_run_step(&r[cut], false);
        loss[cut] = plan_run_loss(&r[cut]);
        /* Forward 3 + 1 of pieces, twice as many for weights, what the second layer reads: no operation
         * for the bias. */
        ck_assert_int_eq(wrapped.created[CEK_OP_GEMM], cut ? 7 + 4 + 2 * 4 + 1 : 7);
    }
    ck_assert_double_eq_tol(loss[1], loss[0], 1e-13);
    for (size_t p = 0; p < m->parameter_count; p++) {
        for (int cut = 0; cut < 2; cut++)
            gradient[cut] = plan_run_gradient(&r[cut], p);
        all_near(m->parameters[p].public.name, gradient[1], gradient[0], m->parameters[p].public.count, 1e-13);
        free(gradient[0]);
        free(gradient[1]);
    }
    plan_run_close(&r[0]);
    plan_run_close(&r[1]);
    case_clear(&c);
    cek_model_free(m);
    bench_close(&b);
}
END_TEST

/* ---- when they are read and written ---- */

static void spoil(plan_run *r, size_t bucket)
{
    assert_ok(r->b->plugin->fill(r->b->queue, r->parameters[bucket], 0xff, 1,
                                 cek__layout_bucket_bytes(r->layout, bucket)));
}

static void *gradients_of(plan_run *r, size_t bucket)
{
    uint64_t bytes = cek__layout_bucket_bytes(r->layout, bucket);
    void *host = malloc(bytes);

    bench_download(r->b, host, r->gradients[bucket], bytes);
    return host;
}

/* Each piece of the layers behind the first is ready on its own: what is done is not read or written any more. */
START_TEST(pieces_are_final_one_after_the_other)
{
    bench b;
    test_case c;
    plan_run r;
    oracle o;
    void *seen[RUN_BUCKETS];
    cek_model *m = large();
    size_t done = 0;

    bench_open(&b, "reference:0");
    case_make(&c, m, &train_ce, 4, 3);
    case_oracle(&c, &o);
    plan_run_open_cut(&r, &b, m, CEK_F64, PIECE, &train_ce);
    case_upload(&c, &r, 0, 4);
    assert_ok(cek__plan_forward(r.plan, 0, b.stream));
    ck_assert_uint_ge(cek__plan_segment_count(r.plan), 10);
    for (size_t s = 0; s < cek__plan_segment_count(r.plan); s++) {
        assert_ok(cek__plan_backward(r.plan, 0, b.stream, s, false));
        for (; done < cek__plan_segment_buckets(r.plan, s); done++) {
            seen[done] = gradients_of(&r, done);
            spoil(&r, done);
        }
    }
    ck_assert_uint_eq(done, r.layout->bucket_count);
    gradients_near(&r, &o, 1, 1e-10);
    for (size_t i = 0; i < done; i++) {
        void *now = gradients_of(&r, i);

        ck_assert_mem_eq(now, seen[i], cek__layout_bucket_bytes(r.layout, i));
        free(now);
        free(seen[i]);
    }
    plan_run_close(&r);
    oracle_clear(&o);
    case_clear(&c);
    cek_model_free(m);
    bench_close(&b);
}
END_TEST

START_TEST(segments_of_forward_read_all_pieces_of_their_layers)
{
    bench b;
    test_case c;
    plan_run r;
    oracle o;
    cek_model *m = large();
    cek__plan_options options = train_ce;
    size_t last;

    options.cut_forward = true;
    bench_open(&b, "reference:0");
    case_make(&c, m, &options, 4, 3);
    case_oracle(&c, &o);
    plan_run_open_cut(&r, &b, m, CEK_F64, PIECE, &options);
    case_upload(&c, &r, 0, 4);
    last = r.layout->bucket_count;
    ck_assert_uint_eq(r.layout->forward_count, 3); /* the last layer lies with the last rows of the one before */
    for (size_t s = 0; s < r.layout->forward_count; s++) {
        ck_assert_uint_lt(r.layout->forward_reads[s], last);
        assert_ok(cek__plan_forward_segment(r.plan, 0, b.stream, s));
        for (size_t i = r.layout->forward_reads[s]; i < last; i++)
            spoil(&r, i);
        last = r.layout->forward_reads[s];
    }
    ck_assert_uint_eq(last, 0);
    ck_assert_double_eq_tol(plan_run_loss(&r), o.loss, 1e-10 * (1 + fabs(o.loss)));
    plan_run_close(&r);
    oracle_clear(&o);
    case_clear(&c);
    cek_model_free(m);
    bench_close(&b);
}
END_TEST

/* ---- what trainers show of them ---- */

/* One step of plain descent at rate 1: the weights have become less by the gradient, whose pieces are told
 * in their order. */
START_TEST(a_trainer_tells_weights_and_gradients_of_all_pieces)
{
    enum { IN = 26300, OUT = 1000, COUNT = IN * OUT }; /* 100.3 MiB */
    bench b;
    cek_trainer *trainer;
    cek_model *m = parsed("linear:1000 tanh linear:2", 1, (int64_t[]){ IN });
    float *weights = m->parameters[0].public.data, *before = malloc(COUNT * sizeof *before);
    float *replica = malloc(COUNT * sizeof *replica), *inputs = malloc(IN * sizeof *inputs);
    double *gradient = malloc(COUNT * sizeof *gradient);
    cek_trainer_options o = { .size = sizeof o, .batch = 1 };
    cek_batch batch = {
        .size = sizeof batch, .count = 1, .inputs = inputs, .targets = (int32_t[]){ 1 }, .input_type = CEK_F32
    };

    o.optimizer = &(cek_optimizer){ .size = sizeof(cek_optimizer), .algorithm = CEK_OPTIMIZER_SGD, .lr = 1 };
    memcpy(before, weights, COUNT * sizeof *before);
    for (int i = 0; i < IN; i++)
        inputs[i] = (float)(2 * uniform(5, 1, i) - 1);
    bench_open(&b, "cpu:0");
    assert_ok(cek_trainer_create(m, &b.device, 1, &o, &trainer));
    assert_ok(cek_trainer_read_replica(trainer, 0, 0, replica, COUNT * sizeof *replica));
    ck_assert_mem_eq(replica, before, COUNT * sizeof *replica);
    assert_ok(cek_trainer_step(trainer, &batch, NULL));
    assert_ok(cek_trainer_read_gradient(trainer, 0, gradient, COUNT));
    assert_ok(cek_trainer_read_replica(trainer, 0, 0, replica, COUNT * sizeof *replica));
    assert_ok(cek_trainer_pull(trainer));
    ck_assert_mem_eq(replica, weights, COUNT * sizeof *replica);
    for (int64_t i = 0; i < COUNT; i++)
        if (weights[i] != before[i] - (float)gradient[i])
            ck_abort_msg("[%lld]: %g became %g by %g", (long long)i, before[i], weights[i], gradient[i]);
    for (int64_t row = 0; row < OUT; row += 499) /* of all pieces */
        ck_assert(gradient[row * IN] != 0);
    cek_trainer_free(trainer);
    bench_close(&b);
    free(gradient);
    free(inputs);
    free(replica);
    free(before);
    cek_model_free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_pieces");
    TCase *tcase = tcase_create("plan_pieces");

    tcase_add_test(tcase, weights_of_linear_layers_are_cut_into_equal_pieces_of_whole_rows);
    tcase_add_test(tcase, what_trainers_lay_out_is_cut_beyond_100_mib);
    tcase_add_test(tcase, pieces_are_turned_and_back);
    tcase_add_test(tcase, gradients_with_weights_in_pieces_are_the_double_ones);
    tcase_add_test(tcase, a_device_without_fused_epilogues_computes_the_same_in_pieces);
    tcase_add_test(tcase, weights_with_a_row_for_each_input_lie_in_pieces_too);
    tcase_add_test(tcase, pieces_in_f32_on_the_cpu_are_near_the_double_ones);
    tcase_add_test(tcase, pieces_are_final_one_after_the_other);
    tcase_add_test(tcase, segments_of_forward_read_all_pieces_of_their_layers);
    tcase_add_test(tcase, a_trainer_tells_weights_and_gradients_of_all_pieces);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
