/* types_f64.c - training in f64 on the reference: every kind of part, forward and backward, has all the digits
 * of a double.
 *
 * What gradients say of a direction is compared with what losses do along it, by differences over steps so small that
 * maxima stay where they are: f32 anywhere would leave nothing of these. */
#include <cekernels/layers.h>
#include <cekernels/parts.h>
#include <math.h>

#include "nn/graph/graph.h"
#include "nn/model/compose.h"
#include "types_bench.h"

/* ---- networks, one for each kind of loss ---- */

/* Images: windows, statistics, random numbers, what lies elsewhere. */
static void images_add(cek_model *m)
{
    const cek_windows pad = { .size = sizeof pad, .pad_lo = { 1, 1 }, .pad_hi = { 1, 1 } },
                      two = { .size = sizeof two, .kernel = { 2, 2 } };
    const cek_parameter_options first = {
        .size = sizeof first, .rank = 4, .shape = (int64_t[]){ 4, CHANNELS, 3, 3 }, .value = 1
    };
    const cek_parameter_options second = {
        .size = sizeof second, .rank = 4, .shape = (int64_t[]){ 4, 4, 3, 3 }, .value = 1
    };
    int x, y;

    assert_ok(cek_model_name(m, "a"));
    x = cek_part_conv(m, 0, cek_part_parameter(m, "w", &first), &pad);
    assert_ok(cek_model_batch_norm(m, x, &(cek_batch_norm_layer){ .size = sizeof(cek_batch_norm_layer) }, &x));
    x = cek_part_apply(m, CEK_PW_TANH, x, -1);
    assert_ok(cek_model_name(m, "b"));
    x = cek_part_conv(m, x, cek_part_parameter(m, "w", &second), &pad);
    x = cek_part_phase(m, cek_part_dropout(m, x, 0.25), x);
    y = cek_part_pool(m, x, CEK_POOL_MAX, false, &two);
    x = cek_part_pool(m, x, CEK_POOL_AVERAGE, false, &two);
    x = cek_part_concat(m, 2, (int[]){ x, y }, 1);
    x = cek_part_pad(m, x, (int64_t[]){ 0, 0, 0, -1 }, (int64_t[]){ 0, 0, 1, 0 }, 0.5);
    x = cek_part_permute(m, x, (int[]){ 0, 2, 3, 1 });
    y = cek_part_random(m, 1, (int64_t[]){ 64 }, CEK_RANDOM_UNIFORM, -1, 1);
    x = cek_part_reshape(m, x, 2, (int64_t[]){ CEK_SAMPLES, 64 });
    x = cek_part_apply(m, CEK_PW_MUL, x, y);
    assert_ok(cek_model_linear(m, x, CLASSES, true, NULL));
}

/* Rows: those of a table by where each sample's largest element lies, weighed by a softmax. */
static int rows_of(cek_model *m)
{
    const cek_parameter_options table = {
        .size = sizeof table, .rank = 2, .shape = (int64_t[]){ PIXELS, 8 }, .value = 1
    };
    int x, y;

    assert_ok(cek_model_name(m, "words"));
    x = cek_part_reshape(m, 0, 2, (int64_t[]){ CEK_SAMPLES, PIXELS });
    x = cek_part_gather(m, cek_part_parameter(m, "table", &table), cek_part_arg(m, x, CEK_ARG_MAX, 1), 0);
    y = cek_part_softmax(m, x, -1);
    x = cek_part_apply(m, CEK_PW_MUL, x, y);
    x = cek_part_apply(m, CEK_PW_SUB, x, cek_part_reduce(m, x, CEK_REDUCE_MEAN, 1 << 1, true));
    assert_ok(cek_model_linear(m, x, CLASSES, true, &y));
    return y;
}

static void rows_add(cek_model *m)
{
    (void)rows_of(m);
}

/* A loss of its own. */
static void own_add(cek_model *m)
{
    int x = cek_part_log_softmax(m, rows_of(m), -1);

    x = cek_part_apply(m, CEK_PW_MUL, x, x);
    (void)cek_part_loss(m, cek_part_reduce(m, x, CEK_REDUCE_SUM, 1 << 1, false), -1);
}

/* A loss of its own against labels. */
static void labelled_add(cek_model *m)
{
    const cek_loss_options o = { .size = sizeof o, .kind = CEK_LOSS_CROSS_ENTROPY, .smoothing = 0.25 };

    assert_ok(cek_model_loss(m, rows_of(m), &o, NULL));
}

static const struct {
    void (*add)(cek_model *m);
    cek_loss loss;
} nets[] = { { images_add, CEK_LOSS_CROSS_ENTROPY }, { rows_add, CEK_LOSS_MSE }, { own_add, 0 }, { labelled_add, 0 } };
enum { NETS = sizeof nets / sizeof *nets };

/* Parameters that a float has exactly, and with them all that lies a step of 2^-18 away. */
static cek_model *net_of(int which)
{
    cek_model *m;

    cek_model_free(network("flatten linear:3")); /* for its samples */
    assert_ok(cek_model_create(3, (int64_t[]){ CHANNELS, SIDE, SIDE }, &m));
    nets[which].add(m);
    assert_ok(cek_model_status(m));
    for (size_t p = 0; p < cek_model_parameter_count(m); p++) {
        cek_parameter parameter;

        assert_ok(cek_model_parameter(m, p, &parameter));
        for (int64_t i = 0; i < parameter.count; i++)
            parameter.data[i] = (float)((i * 37 + (int64_t)p * 11) % 41 - 20) / 64;
    }
    return m;
}

/* ---- every kind ---- */

static void kinds_note(const cek__graph *graph, bool seen[CEK__PART_COUNT])
{
    for (int i = 1; i < graph->part_count; i++)
        seen[graph->parts[i].kind] = true;
}

START_TEST(the_networks_have_every_kind_of_part)
{
    bool seen[CEK__PART_COUNT] = { false };

    for (int i = 0; i < NETS; i++) {
        cek_model *m = net_of(i);
        const cek__purpose purpose = { .training = true,
                                       .loss = nets[i].loss ? nets[i].loss : CEK_LOSS_OWN,
                                       .target_type = nets[i].loss == CEK_LOSS_MSE ? CEK_DTYPE_NONE : CEK_I32 };
        cek__graph graph;

        assert_ok(cek__model_compose(m, &purpose, &graph));
        kinds_note(&graph, seen);
        cek__graph_clear(&graph);
        cek_model_free(m);
    }
    for (int kind = CEK__PART_NONE + 1; kind < CEK__PART_COUNT; kind++)
        ck_assert_msg(seen[kind], "no network has the part of kind %d", kind);
}
END_TEST

/* ---- all digits ---- */

/* Of +-1 in turn, another for each seed. */
static double direction(size_t parameter, int64_t i)
{
    return (i * 7 + (int64_t)parameter) % 3 == 1 ? -1 : 1;
}

/* The loss at so many steps of 2^-18 along the direction; with `slope`, what the gradient says of it. */
static double loss_at(const team *t, int which, int steps, double *slope)
{
    static float values[ROWS][CLASSES];
    const bool squares = nets[which].loss == CEK_LOSS_MSE;
    const cek_trainer_options o = {
        .size = sizeof o, .batch = ROWS, .seed = 9, .loss = nets[which].loss, .type = CEK_F64
    };
    const cek_batch batch = { .size = sizeof batch,
                              .count = ROWS,
                              .inputs = inputs,
                              .targets = squares ? (const void *)values : labels,
                              .target_columns = squares ? CLASSES : 0,
                              .input_type = CEK_F32 };
    cek_step_result r = { .size = sizeof r };
    cek_model *m = net_of(which);
    cek_trainer *trainer;

    for (int i = 0; i < ROWS * CLASSES; i++)
        ((float *)values)[i] = (float)(i % 5) / 4;
    for (size_t p = 0; p < cek_model_parameter_count(m); p++) {
        cek_parameter parameter;

        assert_ok(cek_model_parameter(m, p, &parameter));
        for (int64_t i = 0; i < parameter.count; i++)
            parameter.data[i] += (float)(direction(p, i) * steps * 0x1p-18);
    }
    assert_ok(cek_trainer_create(m, t->devices, t->count, &o, &trainer));
    assert_ok(cek_trainer_step(trainer, &batch, &r));
    for (size_t p = 0; slope && p < cek_model_parameter_count(m); p++) {
        cek_parameter parameter;
        double *gradient;

        assert_ok(cek_model_parameter(m, p, &parameter));
        gradient = malloc((size_t)parameter.count * sizeof *gradient);
        assert_ok(cek_trainer_read_gradient(trainer, p, gradient, parameter.count));
        for (int64_t i = 0; i < parameter.count; i++)
            *slope += direction(p, i) * gradient[i];
        free(gradient);
    }
    cek_trainer_free(trainer);
    cek_model_free(m);
    return r.loss;
}

START_TEST(losses_and_gradients_have_the_digits_of_a_double)
{
    team t;
    double slope = 0, near, far;

    team_open(&t, "reference:0");
    (void)loss_at(&t, _i, 0, &slope);
    near = (loss_at(&t, _i, 1, NULL) - loss_at(&t, _i, -1, NULL)) / (2 * 0x1p-18);
    far = (loss_at(&t, _i, 2, NULL) - loss_at(&t, _i, -2, NULL)) / (4 * 0x1p-18);
    near = (4 * near - far) / 3; /* less what is of third order */
    ck_assert_double_gt(fabs(slope), 1e-3);
    ck_assert_msg(fabs(near - slope) <= 1e-8 * fmax(1, fabs(slope)), "%.12g along the direction, by differences %.12g",
                  slope, near);
    team_close(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("types_f64");
    TCase *tcase = tcase_create("types_f64");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, the_networks_have_every_kind_of_part);
    tcase_add_loop_test(tcase, losses_and_gradients_have_the_digits_of_a_double, 0, NETS);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
