/* tied.c - one parameter that several nodes read: its gradient is that of all of them, on any number of devices, and
 * files have it once. */
#include <cekernels/parts.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scratch.h"
#include "tests/suite.h"

enum { ROWS = 11, IN = 6, HIDDEN = 4 };

static float inputs[ROWS][IN];
static cek_engine *engine;
static cek_device **devices;
static size_t device_count;

static void open_devices(const char *list)
{
    setenv("CEKERNELS_CPU_DEVICES", "3", 1);
    setenv("CEKERNELS_SIM_DEVICES", "2", 1);
    assert_ok(cek_engine_create(NULL, &engine));
    assert_ok(cek_engine_select(engine, list, CEK_PROFILE_TRAINING, &devices, &device_count));
    for (int i = 0; i < ROWS * IN; i++)
        inputs[i / IN][i % IN] = (float)(i * 37 % 64) / 32 - 1;
}

static void close_devices(void)
{
    free(devices);
    cek_engine_free(engine);
}

/* x -> tanh(W x + b) -> W^T of that, and half its squared distance from x. */
static cek_model *autoencoder(void)
{
    cek_parameter p;
    cek_model *m;
    int h, y, d;

    assert_ok(cek_model_create(1, (int64_t[]){ IN }, &m));
    assert_ok(cek_model_name(m, "code"));
    assert_ok(cek_model_linear(m, 0, HIDDEN, true, &h));
    h = cek_part_apply(m, CEK_PW_TANH, h, -1);
    y = cek_part_matmul(m, h, cek_part_shared(m, "code.weight"), false);
    d = cek_part_apply(m, CEK_PW_SUB, y, 0);
    d = cek_part_reduce(m, cek_part_apply(m, CEK_PW_MUL, d, d), CEK_REDUCE_SUM, 1 << 1, false);
    ck_assert_int_ge(cek_part_loss(m, cek_part_scale(m, d, 0.5, 0), -1), 0);
    assert_ok(cek_model_set_output(m, y));
    assert_ok(cek_model_status(m));
    ck_assert_uint_eq(cek_model_parameter_count(m), 2);
    assert_ok(cek_model_parameter(m, 0, &p));
    ck_assert_str_eq(p.name, "code.weight");
    for (int64_t i = 0; i < p.count; i++)
        p.data[i] = (float)((i * 29 + 5) % 32) / 32 - 0.5f;
    assert_ok(cek_model_parameter(m, 1, &p));
    for (int64_t i = 0; i < p.count; i++)
        p.data[i] = (float)i / 8;
    return m;
}

/* In double, of the first rows; gradient[HIDDEN * IN] is W's. */
static double oracle(const cek_model *m, int rows, double gradient[HIDDEN * IN])
{
    cek_parameter w, b;
    double loss = 0;

    assert_ok(cek_model_parameter(m, 0, &w));
    assert_ok(cek_model_parameter(m, 1, &b));
    memset(gradient, 0, HIDDEN * IN * sizeof *gradient);
    for (int n = 0; n < rows; n++) {
        double h[HIDDEN], d[IN], dh;

        for (int j = 0; j < HIDDEN; j++) {
            h[j] = (double)b.data[j];
            for (int i = 0; i < IN; i++)
                h[j] += (double)w.data[j * IN + i] * (double)inputs[n][i];
            h[j] = tanh(h[j]);
        }
        for (int i = 0; i < IN; i++) {
            d[i] = -(double)inputs[n][i];
            for (int j = 0; j < HIDDEN; j++)
                d[i] += (double)w.data[j * IN + i] * h[j];
            loss += d[i] * d[i] / 2 / rows;
        }
        for (int j = 0; j < HIDDEN; j++) {
            dh = 0;
            for (int i = 0; i < IN; i++) {
                dh += d[i] * (double)w.data[j * IN + i];
                gradient[j * IN + i] += d[i] * h[j] / rows; /* as it is read behind */
            }
            for (int i = 0; i < IN; i++)
                gradient[j * IN + i] += dh * (1 - h[j] * h[j]) * (double)inputs[n][i] / rows; /* and before */
        }
    }
    return loss;
}

/* `bound`: of the error of a gradient, whose terms are below 4 each. */
static void trains(const char *list, cek_dtype type, double bound)
{
    const double weights[] = { 1, 3, 2 };
    const cek_optimizer sgd = { .size = sizeof sgd, .algorithm = CEK_OPTIMIZER_SGD, .lr = 1e-30 };
    cek_trainer_options o = { .size = sizeof o, .batch = ROWS, .type = type, .optimizer = &sgd };
    cek_trainer *t;
    cek_model *m;

    open_devices(list);
    m = autoencoder();
    if (device_count > 1)
        o.shares = CEK_SHARES_GIVEN, o.share_weights = weights;
    assert_ok(cek_trainer_create(m, devices, device_count, &o, &t));
    for (int rows = ROWS; rows > 0; rows -= 5) { /* the others are padded */
        cek_batch b = { .size = sizeof b, .count = rows, .inputs = inputs, .targets = inputs, .input_type = CEK_F32 };
        cek_step_result r = { .size = sizeof r };
        double want[HIDDEN * IN], got[HIDDEN * IN], loss = oracle(m, rows, want);

        assert_ok(cek_trainer_step(t, &b, &r));
        assert_ok(cek_trainer_read_gradient(t, 0, got, HIDDEN * IN));
        ck_assert_msg(fabs(r.loss - loss) <= bound, "%s: loss %.17g, %.17g", list, r.loss, loss);
        for (int i = 0; i < HIDDEN * IN; i++)
            ck_assert_msg(fabs(got[i] - want[i]) <= bound, "%s, %d: %.17g, %.17g", list, i, got[i], want[i]);
    }
    cek_trainer_free(t);
    cek_model_free(m);
    close_devices();
}

START_TEST(the_gradient_of_a_tied_parameter_is_that_of_all_who_read_it)
{
    /* sums of up to ROWS * (IN + HIDDEN) terms below 4, rounded once each */
    trains("reference:0", CEK_F64, 440 * 0x1p-52);
    trains("cpu:0", CEK_F32, 440 * 0x1p-23);
    trains("cpu:0,cpu:1,cpu:2", CEK_F32, 440 * 0x1p-23);
    trains("sim:0,cpu:0,sim:1", CEK_F32, 440 * 0x1p-23);
}
END_TEST

START_TEST(files_have_it_once)
{
    char path[sizeof scratch_dir + 16];
    cek_model *m, *back;
    char hex[65], again[65];

    scratch_make();
    snprintf(path, sizeof path, "%s/tied", scratch_dir);
    open_devices("cpu:0");
    m = autoencoder();
    back = autoencoder();
    cek_model_init(back, 7);
    assert_ok(cek_model_save(m, path));
    assert_ok(cek_model_load(back, path));
    cek_model_sha256(m, hex);
    cek_model_sha256(back, again);
    ck_assert_str_eq(hex, again);
    cek_model_free(m);
    cek_model_free(back);
    close_devices();
    scratch_remove();
}
END_TEST

/* A state dict of the network with the tied weight under a second name, in numbers of eight bytes; to the
 * last is added. */
static void twice_written(const char *path, const cek_model *m, const char *type, double last)
{
    cek_parameter w, b;
    float values[HIDDEN + HIDDEN * IN];
    double again[HIDDEN * IN];
    char header[512];
    int length;
    FILE *f = fopen(path, "wb");
    uint64_t size;

    assert_ok(cek_model_parameter(m, 0, &w));
    assert_ok(cek_model_parameter(m, 1, &b));
    memcpy(values, b.data, sizeof(float[HIDDEN]));
    memcpy(values + HIDDEN, w.data, sizeof(float[HIDDEN * IN]));
    for (int i = 0; i < HIDDEN * IN; i++)
        again[i] = (double)w.data[i];
    again[HIDDEN * IN - 1] += last;
    length = snprintf(header, sizeof header,
                      "{\"code.bias\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]},"
                      "\"code.weight\":{\"dtype\":\"F32\",\"shape\":[4,6],\"data_offsets\":[16,112]},"
                      "\"lm_head.weight\":{\"dtype\":\"%s\",\"shape\":[4,6],\"data_offsets\":[112,304]}}",
                      type);
    while (length % 8)
        header[length++] = ' ';
    size = (uint64_t)length;
    fwrite(&size, sizeof size, 1, f);
    fwrite(header, 1, size, f);
    fwrite(values, 1, sizeof values, f);
    fwrite(again, 1, sizeof again, f);
    fclose(f);
}

START_TEST(a_file_may_have_it_under_a_second_name)
{
    char path[sizeof scratch_dir + 16], hex[65], again[65];
    cek_model *m, *back, *untied;
    int h;

    scratch_make();
    snprintf(path, sizeof path, "%s/twice", scratch_dir);
    open_devices("cpu:0");
    m = autoencoder();
    back = autoencoder();
    cek_model_init(back, 7);
    twice_written(path, m, "F64", 0);
    assert_ok(cek_model_load(back, path));
    cek_model_sha256(m, hex);
    cek_model_sha256(back, again);
    ck_assert_str_eq(hex, again);

    twice_written(path, m, "F64", 0x1p-20);
    cek_model_init(back, 7);
    assert_fails(cek_model_load(back, path), CEK_BAD_INPUT, "\"lm_head.weight\"", "none of the model's");
    twice_written(path, m, "I64", 0);
    assert_fails(cek_model_load(back, path), CEK_BAD_INPUT, "\"lm_head.weight\"", "none of the model's");

    /* nobody else reads that of this one */
    assert_ok(cek_model_create(1, (int64_t[]){ IN }, &untied));
    assert_ok(cek_model_name(untied, "code"));
    assert_ok(cek_model_linear(untied, 0, HIDDEN, true, &h));
    twice_written(path, m, "F64", 0);
    assert_fails(cek_model_load(untied, path), CEK_BAD_INPUT, "\"lm_head.weight\"", "none of the model's");
    cek_model_free(untied);
    cek_model_free(m);
    cek_model_free(back);
    close_devices();
    scratch_remove();
}
END_TEST

START_TEST(what_is_not_there_is_not_shared)
{
    cek_model *m = autoencoder();

    ck_assert_int_eq(cek_part_shared(m, "code"), -1);
    assert_fails(cek_model_status(m), CEK_NOT_FOUND, "shared", "\"code\"");
    cek_model_free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tied");
    TCase *tcase = tcase_create("tied");

    tcase_add_test(tcase, the_gradient_of_a_tied_parameter_is_that_of_all_who_read_it);
    tcase_add_test(tcase, files_have_it_once);
    tcase_add_test(tcase, a_file_may_have_it_under_a_second_name);
    tcase_add_test(tcase, what_is_not_there_is_not_shared);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
