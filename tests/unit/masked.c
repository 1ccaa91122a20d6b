/* masked.c - devices that fuse nothing train to the same gradients: with each loss, and beside a device
 * that does fuse. */
#include "tests/unit/masked.h"

#include <cekernels/parts.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scratch.h"
#include "tests/suite.h"

enum { ROWS = 9, FEATURES = 2 * 6 * 5, CLASSES = 3, LAYERS = 10, MOST = 2048 };

static float inputs[ROWS * FEATURES], values[ROWS * CLASSES];
static int32_t labels[ROWS];
static cek_engine *engine;
static cek_device **devices;
static size_t device_count;

static void open_devices(const char *list)
{
    for (int i = 0; i < ROWS * FEATURES; i++)
        inputs[i] = (float)(i * 37 % 101) / 50 - 1;
    for (int i = 0; i < ROWS * CLASSES; i++)
        values[i] = (float)(i * 5 % 7) / 7;
    for (int i = 0; i < ROWS; i++)
        labels[i] = i * 2 % CLASSES;
    setenv("CEKERNELS_CPU_DEVICES", "1", 1);
    setenv("CEKERNELS_SIM_DEVICES", "1", 1);
    assert_ok(cek_engine_create(NULL, &engine));
    assert_ok(cek_engine_select(engine, list, CEK_PROFILE_TRAINING, &devices, &device_count));
}

static void close_devices(void)
{
    free(devices);
    cek_engine_free(engine);
}

/* All activations that an operation may have within, behind convolutions and products. */
static cek_model *network(const cek_loss_options *loss)
{
    cek_model *m;

    assert_ok(cek_model_parse("conv:4,3,p1 relu conv:3,3 gelu flatten linear:6 tanh linear:5 sigmoid linear:3", 3,
                              (int64_t[]){ 2, 6, 5 }, &m));
    assert_ok(cek_model_loss(m, LAYERS, loss, NULL));
    cek_model_init(m, 6);
    return m;
}

/* Of one step, one parameter behind the other; returns how many. */
static int64_t gradients_of(cek_model *m, bool classes, cek_dtype type, double *out)
{
    const cek_optimizer sgd = { .size = sizeof sgd, .algorithm = CEK_OPTIMIZER_SGD, .lr = 1e-30 };
    const cek_trainer_options o = { .size = sizeof o, .batch = ROWS, .type = type, .optimizer = &sgd };
    const cek_batch batch = { .size = sizeof batch,
                              .count = ROWS,
                              .inputs = inputs,
                              .targets = classes ? (const void *)labels : values,
                              .input_type = CEK_F32,
                              .target_columns = classes ? 0 : CLASSES };
    cek_step_result result = { .size = sizeof result };
    cek_trainer *t;
    int64_t count = 0;

    assert_ok(cek_trainer_create(m, devices, device_count, &o, &t));
    assert_ok(cek_trainer_step(t, &batch, &result));
    for (size_t p = 0; p < cek_model_parameter_count(m); p++) {
        cek_parameter parameter;

        assert_ok(cek_model_parameter(m, p, &parameter));
        ck_assert_int_le(count + parameter.count, MOST);
        assert_ok(cek_trainer_read_gradient(t, p, out + count, parameter.count));
        count += parameter.count;
    }
    cek_trainer_free(t);
    return count;
}

static const cek_loss kinds[] = {
    CEK_LOSS_CROSS_ENTROPY,        CEK_LOSS_MSE, CEK_LOSS_NLL,       CEK_LOSS_SOFT_CROSS_ENTROPY,
    CEK_LOSS_BINARY_CROSS_ENTROPY, CEK_LOSS_L1,  CEK_LOSS_SMOOTH_L1, CEK_LOSS_KL
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* An operation that is left its activation rounds its sum to f64 and reads it back: the same bits. */
START_TEST(each_loss_has_the_same_gradients_where_nothing_is_fused)
{
    const cek_loss_options loss = { .size = sizeof loss, .kind = kinds[_i] };
    const bool classes = loss.kind == CEK_LOSS_CROSS_ENTROPY || loss.kind == CEK_LOSS_NLL;
    static double fused[MOST], apart[MOST];
    cek_model *m = network(&loss);
    int64_t count;
    bool any = false;

    open_devices("reference:0");
    count = gradients_of(m, classes, CEK_F64, fused);
    device_mask(devices[0]);
    ck_assert_int_eq(gradients_of(m, classes, CEK_F64, apart), count);
    ck_assert_int_ge(masked.refused, 4);
    ck_assert_mem_eq(fused, apart, (size_t)count * sizeof *fused);
    for (int64_t i = 0; i < count; i++)
        any |= fused[i] != 0;
    ck_assert(any);
    cek_model_free(m);
    close_devices();
}
END_TEST

/* In f32: up to ten products of up to 60 terms stand one behind the other, each term rounded; of
 * the largest gradient. */
static const double bound = 10 * 60 * 0x1p-24;

START_TEST(a_device_that_fuses_nothing_trains_beside_one_that_does)
{
    const cek_loss_options loss = { .size = sizeof loss, .kind = CEK_LOSS_CROSS_ENTROPY };
    static double alone[MOST], both[MOST];
    cek_model *m = network(&loss);
    double most = 0;
    int64_t count;

    open_devices("cpu:0");
    count = gradients_of(m, true, CEK_F32, alone);
    close_devices();
    open_devices("cpu:0,sim:0");
    ck_assert_uint_eq(device_count, 2);
    device_mask(devices[1]);
    ck_assert_int_eq(gradients_of(m, true, CEK_F32, both), count);
    ck_assert_int_ge(masked.refused, 4);
    for (int64_t i = 0; i < count; i++)
        most = fmax(most, fabs(alone[i]));
    ck_assert_double_gt(most, 0.01);
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(fabs(alone[i] - both[i]) <= bound * most, "gradient %lld: %.9g alone, %.9g together",
                      (long long)i, alone[i], both[i]);
    cek_model_free(m);
    close_devices();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("masked");
    TCase *tcase = tcase_create("masked");

    tcase_add_loop_test(tcase, each_loss_has_the_same_gradients_where_nothing_is_fused, 0, KINDS);
    tcase_add_test(tcase, a_device_that_fuses_nothing_trains_beside_one_that_does);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
