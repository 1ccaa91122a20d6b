/* plan_needs.c - what plans are made of and ask for: no op that nobody needs, segments, memory near the estimate, clear
 * refusals. */
#include "core/base/fault.h"
#include "plan_case.h"

/* ---- what a plan consists of ---- */

START_TEST(training_makes_no_op_that_nobody_needs)
{
    bench b;
    cek_model *m;
    cek__layout *layout;
    cek__plan *plan;
    cek__plan_options options = train_ce;

    bench_open(&b, "reference:0");
    bench_wrap(&b);
    assert_ok(cek_model_parse("mnist-cnn", 3, (int64_t[]){ 1, 8, 8 }, &m));
    assert_ok(cek__layout_create(m, CEK_F32, &layout));
    options.input_type = CEK_U8;
    assert_ok(cek__plan_create(m, layout, b.device, &options, &plan));
    ck_assert_int_eq(wrapped.created[CEK_OP_CONV_FORWARD], 2);
    ck_assert_int_eq(wrapped.created[CEK_OP_CONV_BACKWARD_DATA], 1);    /* never the input's gradient */
    ck_assert_int_eq(wrapped.created[CEK_OP_CONV_BACKWARD_WEIGHTS], 4); /* two forms each */
    ck_assert_int_eq(wrapped.created[CEK_OP_GEMM], 2 + 2 + 4);
    ck_assert_int_eq(wrapped.created[CEK_OP_DROPOUT], 2);
    /* The input's conversion; relu behind the pool; relu's derivative before the dropout. */
    ck_assert_int_eq(wrapped.created[CEK_OP_POINTWISE], 3);
    ck_assert_int_eq(wrapped.created[CEK_OP_COPY], 0);
    /* Forward: conv, linear. Derivatives: after the pool (the linear's), of the first convolution. */
    ck_assert_int_eq(wrapped.fused, 4);
    cek__plan_free(plan);
    cek__layout_free(layout);
    cek_model_free(m);
    bench_close(&b);
}
END_TEST

START_TEST(buckets_below_a_segment_are_final_when_it_has_run)
{
    bench b;
    test_case c;
    plan_run r;
    oracle o;
    /* 730 x 730 in f64 are more than 4 MiB: a bucket for each of the large layers. */
    cek_model *m = parsed("linear:730 relu linear:730 relu linear:730 relu linear:6", 1, (int64_t[]){ 730 });
    cek__plan_options options = train_ce;
    size_t done = 0;

    options.rows = 2;
    bench_open(&b, "reference:0");
    case_make(&c, m, &options, 2, 3);
    case_oracle(&c, &o);
    plan_run_open(&r, &b, m, CEK_F64, &options);
    ck_assert_uint_ge(r.layout->bucket_count, 3);
    ck_assert_uint_eq(cek__plan_segment_count(r.plan), r.layout->bucket_count);
    case_upload(&c, &r, 0, 2);
    assert_ok(cek__plan_forward(r.plan, 0, b.stream));
    for (size_t s = 0; s < cek__plan_segment_count(r.plan); s++) {
        assert_ok(cek__plan_backward(r.plan, 0, b.stream, s, false));
        ck_assert_uint_gt(cek__plan_segment_buckets(r.plan, s), done);
        done = cek__plan_segment_buckets(r.plan, s);
        for (size_t p = 0; p < m->parameter_count; p++) {
            const cek__placement *place = &r.layout->placement[p];
            double *got = plan_run_gradient(&r, p);

            if (place->bucket < done) { /* its parameters are not read again: spoil them */
                all_near(m->parameters[p].public.name, got, o.parameter_grad[p], (int64_t)place->count, 1e-10);
                assert_ok(b.plugin->fill(b.queue, r.parameters[place->bucket], 0xff, 1,
                                         cek__layout_bucket_bytes(r.layout, place->bucket)));
            }
            free(got);
        }
    }
    ck_assert_uint_eq(done, r.layout->bucket_count);
    gradients_near(&r, &o, 1, 1e-10);
    plan_run_close(&r);
    oracle_clear(&o);
    case_clear(&c);
    cek_model_free(m);
    bench_close(&b);
}
END_TEST

/* ---- forward in segments ---- */

static void parameters_put(plan_run *r, size_t bucket)
{
    uint64_t bytes = cek__layout_bucket_bytes(r->layout, bucket);
    void *host = malloc(bytes);

    cek__layout_pack(r->layout, r->model, bucket, host);
    plan_run_put(r, r->parameters[bucket], host, bytes);
    free(host);
}

static void parameters_spoil(plan_run *r, size_t bucket)
{
    assert_ok(r->b->plugin->fill(r->b->queue, r->parameters[bucket], 0xff, 1,
                                 cek__layout_bucket_bytes(r->layout, bucket)));
}

/* A bucket holds its parameters while the segment runs that should read it, and NaN in all others. */
START_TEST(segments_of_forward_read_their_own_buckets_and_no_others)
{
    bench b;
    test_case c;
    plan_run r;
    oracle o;
    cek_model *m = parsed("linear:730 relu linear:730 relu linear:730 relu linear:6", 1, (int64_t[]){ 730 });
    cek__plan_options options = train_ce;
    size_t last;

    options.rows = 2;
    options.cut_forward = true;
    bench_open(&b, "reference:0");
    case_make(&c, m, &options, 2, 3);
    case_oracle(&c, &o);
    plan_run_open(&r, &b, m, CEK_F64, &options);
    last = r.layout->bucket_count;
    ck_assert_uint_ge(r.layout->forward_count, 3);
    ck_assert_uint_eq(cek__plan_forward_count(r.plan), r.layout->forward_count);
    for (size_t i = 0; i < last; i++)
        parameters_spoil(&r, i);
    case_upload(&c, &r, 0, 2);
    for (size_t s = 0; s < r.layout->forward_count; s++) {
        ck_assert_uint_lt(r.layout->forward_reads[s], last);
        for (size_t i = r.layout->forward_reads[s]; i < last; i++)
            parameters_put(&r, i);
        assert_ok(cek__plan_forward_segment(r.plan, 0, b.stream, s));
        for (size_t i = r.layout->forward_reads[s]; i < last; i++)
            parameters_spoil(&r, i);
        last = r.layout->forward_reads[s];
    }
    ck_assert_uint_eq(last, 0);
    ck_assert_double_eq_tol(plan_run_loss(&r), o.loss, 1e-10 * (1 + fabs(o.loss)));
    for (size_t i = 0; i < r.layout->bucket_count; i++)
        parameters_put(&r, i);
    for (size_t s = 0; s < cek__plan_segment_count(r.plan); s++)
        assert_ok(cek__plan_backward(r.plan, 0, b.stream, s, false));
    gradients_near(&r, &o, 1, 1e-10);
    plan_run_close(&r);
    oracle_clear(&o);
    case_clear(&c);
    cek_model_free(m);
    bench_close(&b);
}
END_TEST

static void forward_is_cut(const char *text, int64_t inputs, size_t buckets, size_t count, const size_t *reads)
{
    cek_model *m = parsed(text, 1, &inputs);
    cek__layout *layout;

    assert_ok(cek__layout_create(m, CEK_F32, &layout));
    ck_assert_uint_eq(layout->bucket_count, buckets);
    ck_assert_uint_eq(layout->forward_count, count);
    for (size_t s = 0; s < count; s++)
        ck_assert_uint_eq(layout->forward_reads[s], reads[s]);
    for (int64_t rows = 1; rows <= 64; rows *= 4) { /* of every plan the same */
        cek__plan_options options = train_ce;
        cek__plan *plan;

        options.rows = rows;
        for (int cut = 0; cut < 2; cut++) {
            options.cut_forward = cut;
            assert_ok(cek__plan_create(m, layout, NULL, &options, &plan));
            ck_assert_uint_eq(cek__plan_forward_count(plan), cut ? count : 1);
            cek__plan_free(plan);
        }
    }
    cek__layout_free(layout);
    cek_model_free(m);
}

/* A bucket is full at 4 MiB, 1048576 elements; parameters come in 64s. */
START_TEST(forward_is_cut_before_the_layer_that_reads_a_new_bucket)
{
    forward_is_cut("linear:20 relu linear:6", 10, 1, 1, (size_t[]){ 0 });
    forward_is_cut("linear:1100 relu linear:1100 relu linear:6", 1100, 2, 2, (size_t[]){ 1, 0 });
    forward_is_cut("linear:8 tanh linear:1100 relu linear:1100 relu linear:6", 10, 2, 2, (size_t[]){ 1, 0 });
    /* the second layer and the first one's bias fill a bucket: the first reads both */
    forward_is_cut("linear:1047 relu linear:1000", 10, 2, 1, (size_t[]){ 0 });
}
END_TEST

/* ---- memory ---- */

static void estimate_is_near(bench *b, const char *name, cek__plan_options options)
{
    cek_model *m;
    cek__layout *layout;
    uint64_t fixed, per_row;

    assert_ok(cek_model_parse(name, 0, NULL, &m));
    assert_ok(cek__layout_create(m, CEK_F32, &layout));
    assert_ok(cek__plan_estimate(m, CEK_F32, &options, &fixed, &per_row));
    for (int64_t rows = 1; rows <= 300; rows = rows * 3 + 4) {
        cek__plan *plan;
        const cek__plan_needs *n;
        double real, guess = (double)fixed + (double)rows * (double)per_row;

        options.rows = rows;
        assert_ok(cek__plan_create(m, layout, b->device, &options, &plan));
        n = cek__plan_get_needs(plan);
        real = (double)(n->arena_bytes + n->input_bytes + n->target_bytes + n->output_bytes);
        /* Backends may keep less of a pool than the estimate allows them: too small would be worse
         * than too large. 8 KiB are what values of a few rows lose by their alignment. */
        ck_assert_msg(guess >= real - 8192 && guess <= 1.1 * real + 8192, "%s, %lld rows: %.0f bytes, estimated %.0f",
                      name, (long long)rows, real, guess);
        cek__plan_free(plan);
    }
    cek__layout_free(layout);
    cek_model_free(m);
}

START_TEST(the_estimate_is_enough_and_at_most_a_tenth_too_much)
{
    bench b;
    static const char *const names[] = { "mnist-cnn", "lenet5", "boston-mlp" };

    bench_open(&b, "cpu:0");
    for (size_t i = 0; i < 3; i++) {
        cek__plan_options o = i == 2 ? train_mse : train_ce;

        estimate_is_near(&b, names[i], o);
        o.training = false;
        o.input_type = CEK_U8;
        estimate_is_near(&b, names[i], o);
        o.loss = 0;
        estimate_is_near(&b, names[i], o);
    }
    bench_close(&b);
}
END_TEST

START_TEST(the_arena_of_mnist_cnn_is_no_larger_than_its_lifetimes_ask)
{
    bench b;
    cek_model *m;
    cek__layout *layout;
    cek__plan *plan;
    cek__plan_options options = train_ce;
    /* f32 values of one sample: what lives when the pool's gradient is written. Activations kept:
     * the input, the first convolution's output; behind the pool: its output, two of 1,024, the
     * indices (at most as large as the output). The gradient behind the pool, and the one before
     * it, 128x28x28; the second convolution's output itself is gone. */
    double floats = 784 + 64 * 784 + 128 * 196 * 2 + 2 * 1024 + 128 * 196 + 128 * 784, most = floats * 4 * 64 * 1.02;

    bench_open(&b, "cpu:0");
    options.rows = 64;
    options.input_type = CEK_U8;
    assert_ok(cek_model_parse("mnist-cnn", 0, NULL, &m));
    assert_ok(cek__layout_create(m, CEK_F32, &layout));
    assert_ok(cek__plan_create(m, layout, b.device, &options, &plan));
    ck_assert_msg((double)cek__plan_get_needs(plan)->arena_bytes <= most, "%.1f MiB, at most %.1f",
                  (double)cek__plan_get_needs(plan)->arena_bytes / (1 << 20), most / (1 << 20));
    cek__plan_free(plan);
    cek__layout_free(layout);
    cek_model_free(m);
    bench_close(&b);
}
END_TEST

/* ---- refusals ---- */

static void plan_fails(bench *b, cek_model *m, const cek__plan_options *options, cek_status status, const char *object,
                       const char *cause)
{
    cek__layout *layout;
    cek__plan *plan;

    assert_ok(cek__layout_create(m, CEK_F64, &layout));
    assert_fails(cek__plan_create(m, layout, b->device, options, &plan), status, object, cause);
    ck_assert_ptr_null(plan);
    cek__layout_free(layout);
}

START_TEST(impossible_plans_say_why)
{
    bench b;
    cek_model *m = parsed("conv:4,3,p1 relu", 3, IMAGE), *line = parsed("linear:1", 1, (int64_t[]){ 3 });
    cek__plan_options options = train_mse;

    bench_open(&b, "reference:0");
    bench_wrap(&b);
    plan_fails(&b, m, &train_ce, CEK_INVALID, "image 4x9x8", "flatten");
    options.target_columns = 128;
    plan_fails(&b, line, &options, CEK_INVALID, "(5,1)", "(5,128)");
    options = train_mse;
    options.loss = 0;
    plan_fails(&b, line, &options, CEK_INVALID, "training", "loss");
    options.loss = 77;
    plan_fails(&b, line, &options, CEK_INVALID, "loss", "77");
    options = train_mse;
    options.rows = 0;
    plan_fails(&b, line, &options, CEK_INVALID, "plan", "0 samples");
    wrapped.refuse_kind = CEK_OP_CONV_BACKWARD_WEIGHTS;
    plan_fails(&b, m, &train_mse, CEK_UNSUPPORTED,
               "node 1 (conv) backward, conv_backward_weights: reference:0: op_create", "not available");
    wrapped.refuse_kind = CEK_OP_SQUARED_ERROR;
    plan_fails(&b, line, &train_mse, CEK_UNSUPPORTED, "the loss, squared_error: reference:0: op_create",
               "not available");
    wrapped.refuse_kind = 0;
    assert_ok(cek_model_linear(line, 0, 1, true, NULL)); /* node 1 is dead now */
    plan_fails(&b, line, &train_mse, CEK_INVALID, "node 1 (linear)", "node 2");
    bench_close(&b);
    cek_model_free(m);
    cek_model_free(line);
}
END_TEST

START_TEST(binding_names_what_is_missing)
{
    bench b;
    plan_run r;
    cek_model *m = parsed("linear:4 relu linear:2", 1, (int64_t[]){ 3 });
    cek_ref none[16] = { { NULL, 0 } };
    cek__plan_binding broken;

    bench_open(&b, "reference:0");
    plan_run_open(&r, &b, m, CEK_F64, &train_ce);
#define MISSING(field, value, name)                                                         \
    do {                                                                                    \
        broken = r.binding;                                                                 \
        broken.field = value;                                                               \
        assert_fails(cek__plan_bind(r.plan, 0, &broken), CEK_INVALID, "reference:0", name); \
    } while (0)
    MISSING(arena[0], none[0], "arena");
    MISSING(input, none[0], "input");
    MISSING(target, none[0], "target");
    MISSING(step_block, none[0], "step block");
    MISSING(batch_block, none[0], "batch block");
    MISSING(loss, none[0], "loss");
    MISSING(correct, none[0], "right answers");
    MISSING(parameters, none, "parameters");
    MISSING(gradients, NULL, "gradients");
    plan_run_close(&r);
    bench_close(&b);
    cek_model_free(m);
}
END_TEST

START_TEST(running_out_of_memory_anywhere_is_a_status)
{
    bench b;
    cek_model *m = parsed("conv:4,3 relu maxpool:2 dropout:0.5 flatten linear:4", 3, IMAGE);
    cek__layout *layout;

    bench_open(&b, "reference:0");
    assert_ok(cek__layout_create(m, CEK_F64, &layout));
    for (long nth = 1;; nth++) {
        cek__plan *plan;
        cek_status st;
        bool pending;

        cek__fault_set(CEK__FAULT_ALLOC, nth);
        st = cek__plan_create(m, layout, b.device, &train_ce, &plan);
        pending = cek__fault_pending(CEK__FAULT_ALLOC);
        cek__fault_set(CEK__FAULT_ALLOC, 0);
        if (pending) {
            ck_assert_uint_eq(st, CEK_OK);
            ck_assert_int_gt(nth, 10);
            cek__plan_free(plan);
            break;
        }
        ck_assert_uint_eq(st, CEK_OUT_OF_MEMORY);
        ck_assert_ptr_null(plan);
    }
    cek__layout_free(layout);
    cek_model_free(m);
    bench_close(&b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_needs");
    TCase *tcase = tcase_create("plan_needs");

    tcase_add_test(tcase, training_makes_no_op_that_nobody_needs);
    tcase_add_test(tcase, buckets_below_a_segment_are_final_when_it_has_run);
    tcase_add_test(tcase, segments_of_forward_read_their_own_buckets_and_no_others);
    tcase_add_test(tcase, forward_is_cut_before_the_layer_that_reads_a_new_bucket);
    tcase_add_test(tcase, the_estimate_is_enough_and_at_most_a_tenth_too_much);
    tcase_add_test(tcase, the_arena_of_mnist_cnn_is_no_larger_than_its_lifetimes_ask);
    tcase_add_test(tcase, impossible_plans_say_why);
    tcase_add_test(tcase, binding_names_what_is_missing);
    tcase_add_test(tcase, running_out_of_memory_anywhere_is_a_status);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
