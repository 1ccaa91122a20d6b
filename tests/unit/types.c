/* types.c - bf16 and f16: which flows have them, and that training in them is training. */
#include <cekernels/layers.h>
#include <cekernels/parts.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nn/model/compose.h"
#include "plan_run.h"
#include "tests/suite.h"
#include "types_bench.h"

/* ---- which flows ---- */

static void composed(const char *text, cek_dtype low, bool training, const char *expected)
{
    cek_model *m = network(text);
    const cek__purpose purpose = {
        .training = training, .loss = CEK_LOSS_CROSS_ENTROPY, .target_type = CEK_I32, .low = low
    };
    cek__graph graph;
    char *got;

    assert_ok(cek__model_compose(m, &purpose, &graph));
    assert_ok(cek__graph_text(&graph, &got));
    ck_assert_str_eq(got, expected);
    free(got);
    cek__graph_clear(&graph);
    cek_model_free(m);
}

/* Samples and weights become few bits where they are multiplied; the logits, which the loss alone reads, and what
 * parameters get come out of the products as sums; biases are added to sums. */
START_TEST(products_read_few_bits_and_losses_many)
{
    composed("conv:4,3 relu flatten linear:3", CEK_BF16, true,
             "%1 [N,2,6,6] bf16 channels last = input\n"
             "%2 [4,2,3,3] bf16 channels last = parameter\n"
             "%6 [N,4,4,4] bf16 channels last = conv %1 %2 %4 then %7\n"
             "%4 [4] = parameter\n"
             "%7 [N,4,4,4] bf16 channels last = chain %6\n"
             "%8 [N,64] bf16 channels last = view %7\n"
             "%9 [3,64] bf16 channels last = parameter\n"
             "%12 [N,3] = product %8 %9 %11\n"
             "%11 [3] = parameter\n"
             "%13 [N] i32 = target\n"
             "%14 [N,3] = cross_entropy %12 %13\n"
             "%15 [3] = reduce %14 (backward)\n"
             "%23 [N,3] bf16 = chain %14 (backward)\n"
             "%16 [3,64] channels last = product %23 %8 (backward)\n"
             "%17 [N,64] bf16 channels last = product %23 %9 then %19 (backward)\n"
             "%18 [N,4,4,4] bf16 channels last = view %17 (backward)\n"
             "%19 [N,4,4,4] bf16 channels last = chain %18 %7 (backward)\n"
             "%22 [4,2,3,3] channels last, %20 [4] = conv_weights %1 %19 (backward)\n");
}
END_TEST

/* Statistics are sums, and what is normalised has few bits again. */
START_TEST(statistics_are_wide)
{
    cek_model *m = network(NET);
    const cek__purpose purpose = {
        .training = true, .loss = CEK_LOSS_CROSS_ENTROPY, .target_type = CEK_I32, .low = LOW[_i]
    };
    cek__graph graph;
    int multiplied = 0, sums = 0, contributions = 0, narrow = 0;

    assert_ok(cek__model_compose(m, &purpose, &graph));
    for (int i = 0; i < graph.length; i++) {
        const cek__part *part = &graph.parts[graph.sequence[i]];
        const cek__flow *y = &graph.flows[part->output[0]];

        for (int k = 0; k < 2 && (part->kind == CEK__PART_PRODUCT || part->kind == CEK__PART_CONV ||
                                  part->kind == CEK__PART_CONV_DATA || part->kind == CEK__PART_CONV_WEIGHTS);
             k++, multiplied++)
            ck_assert_uint_eq(graph.flows[part->input[k]].type, LOW[_i]);
        if (part->kind == CEK__PART_REDUCE) {
            ck_assert_uint_eq(y->type, CEK_DTYPE_NONE);
            sums++;
        }
        if (part->kind == CEK__PART_CONTRIBUTE) {
            ck_assert_uint_eq(graph.flows[part->input[0]].type, CEK_DTYPE_NONE);
            contributions++;
        }
        /* but for weights that were cast, all that has few bits belongs to samples */
        if (part->kind == CEK__PART_CHAIN && y->type == LOW[_i] && y->dims.samples)
            narrow++;
        if (part->kind == CEK__PART_CHAIN && !y->dims.samples)
            ck_assert(y->type == CEK_DTYPE_NONE ||
                      graph.parts[graph.flows[part->input[0]].part].kind == CEK__PART_PARAMETER);
    }
    for (size_t i = 0; i < graph.gradient_count; i++)
        ck_assert_uint_eq(graph.flows[graph.gradients[i].flow].type, CEK_DTYPE_NONE);
    ck_assert_int_ge(multiplied, 16);
    ck_assert_int_ge(sums, 4);
    ck_assert_int_eq(contributions, 2);
    ck_assert_int_ge(narrow, 4);
    cek__graph_clear(&graph);
    cek_model_free(m);
}
END_TEST

/* Small whole numbers, which no cast changes: what reads the transposed matrix as it lies, without its
 * strides, has others. */
START_TEST(a_cast_of_what_is_strided_reads_its_strides)
{
    enum { IN = 5, OUT = 3 };
    const cek_parameter_options po = { .size = sizeof po, .rank = 2, .shape = (int64_t[]){ IN, OUT }, .value = 1 };
    const cek_predictor_options o = { .size = sizeof o, .type = LOW[_i] };
    float x[2][IN] = { { 1, -2, 3, 0, 5 }, { 4, 4, -7, 1, 2 } }, y[2][OUT], *w;
    cek_predictor *predictor;
    cek_parameter parameter;
    cek_model *m;
    team t;
    int p;

    assert_ok(cek_model_create(1, (int64_t[]){ IN }, &m));
    p = cek_part_permute(m, cek_part_parameter(m, "w", &po), (int[]){ 1, 0 });
    (void)cek_part_matmul(m, 0, p, true);
    assert_ok(cek_model_status(m));
    assert_ok(cek_model_parameter(m, 0, &parameter));
    w = parameter.data;
    for (int i = 0; i < IN * OUT; i++)
        w[i] = (float)(i * i % 23 - 9);
    team_open(&t, "cpu:0");
    assert_ok(cek_predictor_create(m, t.devices, t.count, &o, &predictor));
    assert_ok(cek_predictor_run(predictor, x, 2, y[0]));
    for (int n = 0; n < 2; n++)
        for (int j = 0; j < OUT; j++) {
            float sum = 0;

            for (int i = 0; i < IN; i++)
                sum += x[n][i] * w[i * OUT + j];
            ck_assert_float_eq(y[n][j], sum);
        }
    cek_predictor_free(predictor);
    team_close(&t);
    cek_model_free(m);
}
END_TEST

/* ---- training ---- */

static cek_trainer *trainer_of(cek_model *m, const team *t, cek_dtype type)
{
    const cek_optimizer sgd = { .size = sizeof sgd, .algorithm = CEK_OPTIMIZER_SGD, .lr = 0.05, .momentum = 0.9 };
    const cek_trainer_options o = { .size = sizeof o,
                                    .batch = ROWS,
                                    .shares = CEK_SHARES_EQUAL,
                                    .norm_group = ROWS / 2,
                                    .seed = 3,
                                    .optimizer = &sgd,
                                    .type = type };
    cek_trainer *trainer;

    assert_ok(cek_trainer_create(m, t->devices, t->count, &o, &trainer));
    return trainer;
}

static void losses_of(const char *list, cek_dtype type, double losses[STEPS])
{
    team t;
    cek_model *m = network(NET);
    cek_trainer *trainer;

    team_open(&t, list);
    trainer = trainer_of(m, &t, type);
    for (int i = 0; i < STEPS; i++)
        losses[i] = step_loss(trainer);
    cek_trainer_free(trainer);
    team_close(&t);
    cek_model_free(m);
}

/* From the samples to the loss a number is rounded no more than 12 times, as is what it is multiplied with; the logits'
 * error is at most as large relative to the loss, whose derivative by each is below 1. The parameters' gradients met as
 * many roundings, and what they are off by moves later losses: a factor of 2 for the way back. */
static const char *const devices[] = { "cpu:0", "reference:0", "cpu:0,cpu:1" };

START_TEST(losses_are_those_of_f32_within_their_rounding)
{
    const int which = _i % 2;
    double wide[STEPS], low[STEPS];
    bool differ = false;

    losses_of("cpu:0", CEK_F32, wide);
    losses_of(devices[_i / 2], LOW[which], low);
    for (int i = 0; i < STEPS; i++) {
        ck_assert_msg(fabs(low[i] - wide[i]) <= 2 * 12 * UNIT[which] * wide[i], "%s, step %d: %.9g, in f32 %.9g",
                      cek_dtype_name(LOW[which]), i, low[i], wide[i]);
        differ |= fabs(low[i] - wide[i]) > 1e-6 * wide[i];
    }
    ck_assert_msg(differ, "nothing was rounded to %s", cek_dtype_name(LOW[which]));
    ck_assert_double_lt(low[STEPS - 1], low[0]);
}
END_TEST

/* Three of them are six bytes, so what lies behind begins where nothing of four bytes can, in operations with
 * operands of four. */
START_TEST(few_bits_may_lie_at_odd_places)
{
    const cek_recurrent_layer both = { .size = sizeof both, .hidden = 3, .bidirectional = 1 };
    const cek_dtype types[] = { CEK_F32, LOW[_i % 2] };
    double losses[2];

    for (int i = 0; i < 2; i++) {
        team t;
        cek_model *m;
        cek_trainer *trainer;
        int y;

        cek_model_free(network(NET)); /* samples and labels */
        assert_ok(cek_model_create(2, (int64_t[]){ SIDE, PIXELS / SIDE }, &m));
        assert_ok(cek_model_lstm(m, 0, &both, &y));
        assert_ok(cek_model_linear(m, cek_part_reshape(m, y, 2, (int64_t[]){ CEK_SAMPLES, 2 * 3 * SIDE }), CLASSES,
                                   true, NULL));
        cek_model_init(m, 5);
        team_open(&t, _i < 2 ? "cpu:0" : "reference:0");
        trainer = trainer_of(m, &t, types[i]);
        step_loss(trainer);
        losses[i] = step_loss(trainer);
        cek_trainer_free(trainer);
        team_close(&t);
        cek_model_free(m);
    }
    ck_assert_double_ne(losses[0], losses[1]);
    ck_assert_double_le(fabs(losses[1] - losses[0]), 2 * 5 * SIDE * UNIT[_i % 2] * losses[0]);
}
END_TEST

/* Owners round what products read, and the others copy that. */
START_TEST(replicas_stay_bit_identical)
{
    team t;
    cek_model *m = network(NET);
    cek_trainer *trainer;
    float own[8 * 36], other[8 * 36];

    team_open(&t, "cpu:0,cpu:1,reference:0");
    trainer = trainer_of(m, &t, LOW[_i]);
    for (int i = 0; i < 3; i++)
        (void)step_loss(trainer);
    for (size_t p = 0; p < cek_model_parameter_count(m); p++) {
        cek_parameter parameter;
        uint64_t bytes;

        assert_ok(cek_model_parameter(m, p, &parameter));
        bytes = (uint64_t)parameter.count * sizeof *own;
        ck_assert_uint_le(bytes, sizeof own);
        assert_ok(cek_trainer_read_replica(trainer, 0, p, own, bytes));
        for (size_t d = 1; d < t.count; d++) {
            assert_ok(cek_trainer_read_replica(trainer, d, p, other, bytes));
            ck_assert_msg(!memcmp(own, other, bytes), "%s differs on device %zu", parameter.name, d);
        }
    }
    cek_trainer_free(trainer);
    team_close(&t);
    cek_model_free(m);
}
END_TEST

/* ---- prediction ---- */

START_TEST(predictions_are_those_of_f32_within_their_rounding)
{
    float outputs[2][ROWS * CLASSES];
    team t;
    cek_model *m = network(NET);

    team_open(&t, "cpu:0");
    for (int low = 0; low < 2; low++) {
        const cek_predictor_options o = { .size = sizeof o, .type = low ? LOW[_i] : CEK_F32, .softmax = true };
        cek_predictor *p;

        assert_ok(cek_predictor_create(m, t.devices, t.count, &o, &p));
        assert_ok(cek_predictor_run(p, inputs, ROWS, outputs[low]));
        cek_predictor_free(p);
    }
    for (int i = 0; i < ROWS * CLASSES; i++) /* probabilities change by no more than logits do */
        ck_assert_double_le(fabs(outputs[1][i] - outputs[0][i]), 12 * UNIT[_i]);
    ck_assert_int_ne(memcmp(outputs[0], outputs[1], sizeof outputs[0]), 0);
    team_close(&t);
    cek_model_free(m);
}
END_TEST

/* Neither training nor the model's own output looks at its weights. */
START_TEST(a_node_beside_the_output_is_predicted_too)
{
    const char *const names[] = { "beside" };
    const cek_predictor_options o = { .size = sizeof o, .type = LOW[_i], .output_count = 1, .outputs = names },
                                wide = { .size = sizeof wide, .output_count = 1, .outputs = names };
    float outputs[2][ROWS * CLASSES];
    team t;
    cek_model *m;
    int trunk, beside, out;

    assert_ok(cek_model_create(1, (int64_t[]){ 8 }, &m));
    for (int i = 0; i < ROWS * PIXELS; i++)
        ((float *)inputs)[i] = (float)(i * 37 % 64) / 32 - 1;
    assert_ok(cek_model_linear(m, 0, 8, true, &trunk));
    assert_ok(cek_model_name(m, "beside"));
    assert_ok(cek_model_linear(m, trunk, CLASSES, true, &beside));
    assert_ok(cek_model_linear(m, trunk, 2, true, &out));
    assert_ok(cek_model_set_output(m, out));
    cek_model_init(m, 5);
    team_open(&t, "cpu:0");
    for (int low = 0; low < 2; low++) {
        cek_predictor *p;

        assert_ok(cek_predictor_create(m, t.devices, 1, low ? &o : &wide, &p));
        assert_ok(cek_predictor_run(p, inputs, ROWS, outputs[low]));
        cek_predictor_free(p);
    }
    for (int i = 0; i < ROWS * CLASSES; i++)
        ck_assert_double_le(fabs((double)outputs[1][i] - (double)outputs[0][i]), 12 * UNIT[_i]);
    team_close(&t);
    cek_model_free(m);
}
END_TEST

START_TEST(types_that_nothing_computes_in_are_refused)
{
    team t;
    cek_model *m = network(NET);
    const cek_trainer_options o = { .size = sizeof o, .type = CEK_I32 };
    const cek_predictor_options po = { .size = sizeof po, .type = CEK_U8 };
    cek_trainer *trainer;
    cek_predictor *predictor;

    team_open(&t, "cpu:0");
    ck_assert_uint_eq(cek_trainer_create(m, t.devices, 1, &o, &trainer), CEK_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "training in i32"));
    ck_assert_uint_eq(cek_predictor_create(m, t.devices, 1, &po, &predictor), CEK_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "predicting in u8"));
    team_close(&t);
    cek_model_free(m);
}
END_TEST

/* ---- devices ---- */

static const struct {
    uint32_t kind;
    const char *text;
} lacking[] = {
    { CEK_OP_GEMM, "node 7 (linear), gemm" },
    { CEK_OP_CONV_FORWARD, "node 1 (conv), conv_forward" },
    { CEK_OP_CONV_BACKWARD_WEIGHTS, "node 1 (conv) backward, conv_backward_weights" },
};

/* And works in f32 all the same, which nothing falls back to. */
START_TEST(a_device_that_lacks_an_operation_is_refused_by_layer_and_operation)
{
    const cek_trainer_options low = { .size = sizeof low, .batch = ROWS, .norm_group = ROWS, .type = LOW[_i % 2] };
    const cek_trainer_options wide = { .size = sizeof wide, .batch = ROWS, .norm_group = ROWS };
    cek_model *m = network(NET);
    cek_trainer *trainer;
    char said[64];
    bench b;

    bench_open(&b, "cpu:0");
    bench_wrap(&b);
    wrapped.refuse_kind = lacking[_i / 2].kind;
    wrapped.refuse_type = LOW[_i % 2];
    snprintf(said, sizeof said, "computing in %s", cek_dtype_name(LOW[_i % 2]));
    ck_assert_uint_eq(cek_trainer_create(m, &b.device, 1, &low, &trainer), CEK_UNSUPPORTED);
    ck_assert_ptr_null(trainer);
    ck_assert_msg(strstr(cek_error_text(), lacking[_i / 2].text) && strstr(cek_error_text(), said) &&
                      strstr(cek_error_text(), "cpu:0"),
                  "%s", cek_error_text());
    assert_ok(cek_trainer_create(m, &b.device, 1, &wide, &trainer));
    cek_trainer_free(trainer);
    bench_close(&b);
    cek_model_free(m);
}
END_TEST

/* ---- plans ---- */

static cek_model *sequence(const char *text)
{
    cek_model *m;

    assert_ok(cek_model_parse(text, 1, (int64_t[]){ 40 }, &m));
    cek_model_init(m, 5);
    return m;
}

/* Half of what f32 takes, and what pools keep of their maxima, whose places have 4 bytes in any type. */
START_TEST(activations_take_little_more_than_half)
{
    static const char *const names[] = { "mnist-cnn", "lenet5", "resnet18" };
    const cek__plan_options o = { .rows = 1, .input_type = CEK_U8, .loss = CEK_LOSS_CROSS_ENTROPY, .training = true };
    cek_preset preset = { .size = sizeof preset };
    uint64_t fixed, wide, low;
    cek_model *m;

    assert_ok(cek_preset_find(names[_i / 2], &preset));
    assert_ok(cek_model_parse(names[_i / 2], preset.rank, preset.shape, &m));
    assert_ok(cek__plan_estimate(m, CEK_F32, &o, &fixed, &wide));
    assert_ok(cek__plan_estimate(m, LOW[_i % 2], &o, &fixed, &low));
    ck_assert_msg((double)low <= 0.58 * (double)wide, "%s: %llu bytes a sample, in f32 %llu", names[_i / 2],
                  (unsigned long long)low, (unsigned long long)wide);
    cek_model_free(m);
}
END_TEST

/* In every type, by one device or three, with what operations work in, and of nothing more when steps are under way. */
START_TEST(what_is_planned_is_what_is_allocated)
{
    static const char *const lists[] = { "cpu:0", "cpu:0,cpu:1,reference:0", "sim:0,sim:1" };
    const cek_optimizer adam = { .size = sizeof adam, .algorithm = CEK_OPTIMIZER_ADAM, .lr = 1e-4 };
    const cek_trainer_options o = { .size = sizeof o,
                                    .batch = ROWS,
                                    .norm_group = ROWS / 2,
                                    .shares = CEK_SHARES_EQUAL,
                                    .optimizer = &adam,
                                    .average = 0.9,
                                    .max_norm = _i % 2 ? 1 : 0,
                                    .type = _i / 2 % 3 == 0 ? CEK_F32 : LOW[_i / 2 % 3 - 1] };
    cek_memory_stats before[3], after = { .size = sizeof after };
    cek_model *m = network("conv:4,3,p1 batchnorm relu maxpool:2 flatten linear:2000 tanh linear:3");
    cek_trainer *trainer;
    team t;

    team_open(&t, lists[_i / 6]);
    for (size_t i = 0; i < t.count; i++) {
        before[i].size = sizeof before[i];
        assert_ok(cek_device_memory_stats(t.devices[i], &before[i]));
    }
    assert_ok(cek_trainer_create(m, t.devices, t.count, &o, &trainer));
    for (int i = 0; i < 3; i++)
        (void)step_loss(trainer);
    for (size_t i = 0; i < t.count; i++) {
        assert_ok(cek_device_memory_stats(t.devices[i], &after));
        ck_assert_msg(after.used_bytes - before[i].used_bytes == cek_trainer_planned_bytes(trainer, i),
                      "device %zu of %s, %s: %llu bytes allocated, planned %llu", i, lists[_i / 6],
                      cek_dtype_name(o.type), (unsigned long long)(after.used_bytes - before[i].used_bytes),
                      (unsigned long long)cek_trainer_planned_bytes(trainer, i));
    }
    cek_trainer_free(trainer);
    team_close(&t);
    cek_model_free(m);
}
END_TEST

/* The gradient of the first weights, of 8 rows of which 5 count; the others hold `garbage`. */
static double *gradient_with(cek_model *m, cek_dtype type, uint64_t piece_bytes, float garbage, double *loss)
{
    static float x[8][40];
    static int32_t y[8];
    const cek__plan_options o = { .rows = 8, .input_type = CEK_F32, .loss = CEK_LOSS_CROSS_ENTROPY, .training = true };
    bench b;
    plan_run r;
    double *gradient;

    for (int i = 0; i < 8 * 40; i++)
        ((float *)x)[i] = i < 5 * 40 ? (float)(i * 37 % 101) / 50 - 1 : garbage;
    for (int i = 0; i < 8; i++)
        y[i] = i % 3;
    bench_open(&b, "cpu:0");
    plan_run_open_cut(&r, &b, m, type, piece_bytes, &o);
    plan_run_put(&r, r.binding.input, x, sizeof x);
    plan_run_put(&r, r.binding.target, y, sizeof y);
    plan_run_blocks(&r, 1, 1.0 / 5, 0, 5);
    plan_run_step(&r, false);
    *loss = plan_run_loss(&r);
    gradient = plan_run_gradient(&r, 0);
    plan_run_close(&r);
    bench_close(&b);
    return gradient;
}

START_TEST(padding_changes_nothing)
{
    cek_model *m = sequence("linear:16 relu dropout:0.2 linear:3");
    double losses[2], *clean = gradient_with(m, LOW[_i], 0, 0, &losses[0]),
                      *dirty = gradient_with(m, LOW[_i], 0, 3e4f, &losses[1]);

    ck_assert_double_eq(losses[0], losses[1]);
    ck_assert_int_eq(memcmp(clean, dirty, 16 * 40 * sizeof *clean), 0);
    free(clean);
    free(dirty);
    cek_model_free(m);
}
END_TEST

/* Rows of weights give rows of what is computed, and the same gradients. */
START_TEST(weights_in_pieces_compute_as_whole_ones)
{
    cek_model *m = sequence("linear:1000 relu linear:3");
    double losses[2], *whole = gradient_with(m, LOW[_i], 0, 0, &losses[0]),
                      *cut = gradient_with(m, LOW[_i], 64 << 10, 0, &losses[1]);

    ck_assert_double_eq(losses[0], losses[1]);
    for (int i = 0; i < 1000 * 40; i++)
        ck_assert_double_eq_tol(whole[i], cut[i], 1e-6);
    free(whole);
    free(cut);
    cek_model_free(m);
}
END_TEST

/* What goes back through them is a sum over the pieces (PIECES), rounded with each of them: relative to its terms,
 * which are as large as the gradients that they are added up to. */
START_TEST(sums_over_pieces_are_rounded_with_each)
{
    enum { HIDDEN = 64, PIECES = 3 };
    cek_model *m = sequence("linear:64 relu linear:640 relu linear:3");
    double losses[2], *whole = gradient_with(m, LOW[_i], 0, 0, &losses[0]),
                      *cut = gradient_with(m, LOW[_i], 64 << 10, 0, &losses[1]), off = 0, size = 0;

    ck_assert_double_eq(losses[0], losses[1]);
    for (int i = 0; i < HIDDEN * 40; i++) {
        off += (whole[i] - cut[i]) * (whole[i] - cut[i]);
        size += whole[i] * whole[i];
    }
    ck_assert_double_gt(size, 0);
    ck_assert_double_le(sqrt(off / size), PIECES * UNIT[_i]);
    free(whole);
    free(cut);
    cek_model_free(m);
}
END_TEST

/* Two bytes of each element, in the buckets of the pieces: nothing makes them whole, and they travel as
 * other copies do. */
START_TEST(pieces_have_rounded_copies)
{
    cek_model *m = sequence("linear:1000 relu linear:3");
    cek__layout *layout;
    uint64_t bytes = 0;
    size_t buckets = 0;

    assert_ok(cek__layout_create_cut(m, LOW[_i], 64 << 10, &layout));
    ck_assert_uint_eq(layout->piece_of[1], 3);
    for (size_t b = 0; b < layout->bucket_count; b++) {
        bytes += cek__layout_rounded_bytes(layout, b);
        buckets += cek__layout_rounded_bytes(layout, b) > 0;
    }
    ck_assert_uint_ge(bytes, 2 * (1000 * 40 + 3 * 1000));
    ck_assert_uint_lt(bytes, 2 * (1000 * 40 + 3 * 1000) + (3 + 1) * CEK_ALIGNMENT);
    ck_assert_uint_ge(buckets, 3);
    cek__layout_free(layout);
    cek_model_free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("types");
    TCase *tcase = tcase_create("types");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, products_read_few_bits_and_losses_many);
    tcase_add_loop_test(tcase, statistics_are_wide, 0, 2);
    tcase_add_loop_test(tcase, a_cast_of_what_is_strided_reads_its_strides, 0, 2);
    tcase_add_loop_test(tcase, losses_are_those_of_f32_within_their_rounding, 0, 6);
    tcase_add_loop_test(tcase, few_bits_may_lie_at_odd_places, 0, 4);
    tcase_add_loop_test(tcase, replicas_stay_bit_identical, 0, 2);
    tcase_add_loop_test(tcase, predictions_are_those_of_f32_within_their_rounding, 0, 2);
    tcase_add_loop_test(tcase, a_node_beside_the_output_is_predicted_too, 0, 2);
    tcase_add_test(tcase, types_that_nothing_computes_in_are_refused);
    tcase_add_loop_test(tcase, a_device_that_lacks_an_operation_is_refused_by_layer_and_operation, 0, 6);
    tcase_add_loop_test(tcase, activations_take_little_more_than_half, 0, 6);
    tcase_add_loop_test(tcase, what_is_planned_is_what_is_allocated, 0, 18);
    tcase_add_loop_test(tcase, padding_changes_nothing, 0, 2);
    tcase_add_loop_test(tcase, weights_in_pieces_compute_as_whole_ones, 0, 2);
    tcase_add_loop_test(tcase, sums_over_pieces_are_rounded_with_each, 0, 2);
    tcase_add_loop_test(tcase, pieces_have_rounded_copies, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
