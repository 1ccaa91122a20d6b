/* train_math.c - the math that was asked for arrives: at each product and convolution of a trainer and of a predictor,
 * on its devices and on the fallback, and at nothing else; at a convolution of tensors. */
#include <cekernels/nn.h>
#include <stddef.h>

#include "scratch.h"

enum { SAMPLES = 6, SIDE = 6, PIXELS = 2 * SIDE * SIDE, CLASSES = 3 };
#define NET "conv:4,3,p1 batchnorm relu conv:4,3,p1 relu maxpool:2 dropout:0.5 flatten linear:5 tanh linear:3"

static const char *const multiplied[] = { "gemm", "conv_forward", "conv_backward_data", "conv_backward_weights" };
enum { KINDS = 4 };

/* Operations that the mutant has told of. */
static struct {
    uint32_t math; /* what they should have */
    int right[KINDS], others, wrong;
    char text[256]; /* of the first that is wrong */
} made;

static void hear(void *user, int level, const char *text)
{
    const char *at = strstr(text, "made: ");
    char kind[64];
    unsigned math, wanted = CEK_MATH_F32;

    (void)user, (void)level;
    if (!at || sscanf(at, "made: %63[a-z_], math %u", kind, &math) != 2)
        return;
    for (int i = 0; i < KINDS; i++)
        if (!strcmp(kind, multiplied[i]))
            wanted = made.math, made.right[i] += math == wanted;
    made.others += wanted == CEK_MATH_F32 && math == wanted;
    if (math != wanted && !made.wrong++)
        snprintf(made.text, sizeof made.text, "%.200s", at);
}

typedef struct place {
    cek_engine *engine;
    cek_device *device, *fallback;
    cek_model *model;
} place;

static void place_open(place *p, const char *device)
{
    char file[4096];
    const char *const files[] = { file, NULL };
    const cek_engine_options o = { .size = sizeof o, .plugin_files = files };

    memset(&made, 0, sizeof made);
    setenv("CEKERNELS_MUTANT_TELLS", "1", 1);
    cek_log_set(hear, NULL, CEK_LOG_INFO);
    ck_assert_ptr_nonnull(getenv("top_builddir"));
    snprintf(file, sizeof file, "%s/tests/.libs/mutant.so", getenv("top_builddir"));
    assert_ok(cek_engine_create(&o, &p->engine));
    assert_ok(cek_engine_find(p->engine, device, &p->device));
    assert_ok(cek_engine_find(p->engine, "mutant:0", &p->fallback));
    assert_ok(cek_model_parse(NET, 3, (int64_t[]){ 2, SIDE, SIDE }, &p->model));
    cek_model_init(p->model, 3);
}

static void place_close(place *p)
{
    cek_log_set(NULL, NULL, 0);
    cek_model_free(p->model);
    cek_engine_free(p->engine);
}

static float images[SAMPLES][PIXELS];

static void train(const place *p, const cek_trainer_options *o)
{
    static const int32_t labels[SAMPLES] = { 0, 1, 2, 2, 1, 0 };
    const cek_batch batch = {
        .size = sizeof batch, .count = SAMPLES, .inputs = images, .targets = labels, .input_type = CEK_F32
    };
    cek_trainer *trainer;

    for (int i = 0; i < SAMPLES * PIXELS; i++)
        images[i / PIXELS][i % PIXELS] = (float)(i * 37 % 61) / 30 - 1;
    assert_ok(cek_trainer_create(p->model, &p->device, 1, o, &trainer));
    assert_ok(cek_trainer_step(trainer, &batch, NULL));
    cek_trainer_free(trainer);
}

START_TEST(each_product_and_convolution_of_a_step_has_the_math_of_the_trainer_and_nothing_else_has)
{
    place p;

    place_open(&p, "mutant:0");
    made.math = (uint32_t)_i;
    train(&p, &(cek_trainer_options){ .size = sizeof(cek_trainer_options), .batch = SAMPLES, .math = made.math });
    ck_assert_msg(!made.wrong, "asked for %d: %s, and %d more", _i, made.text, made.wrong - 1);
    for (int i = 0; i < KINDS; i++)
        ck_assert_msg(made.right[i] >= 1, "no %s", multiplied[i]);
    ck_assert_int_ge(made.others, 5);
    place_close(&p);
}
END_TEST

START_TEST(each_of_a_prediction_has_the_math_of_the_predictor)
{
    place p;
    cek_predictor *predictor;
    cek_predictor_options o = { .size = sizeof o, .input_type = CEK_F32, .math = (uint32_t)_i };
    float outputs[SAMPLES * CLASSES];

    place_open(&p, "mutant:0");
    made.math = o.math;
    assert_ok(cek_predictor_create(p.model, &p.device, 1, &o, &predictor));
    assert_ok(cek_predictor_run(predictor, images, SAMPLES, outputs));
    cek_predictor_free(predictor);
    ck_assert_msg(!made.wrong, "asked for %d: %s, and %d more", _i, made.text, made.wrong - 1);
    ck_assert_int_ge(made.right[0], 2);
    ck_assert_int_ge(made.right[1], 2);
    place_close(&p);
}
END_TEST

START_TEST(a_convolution_of_tensors_has_the_math_of_its_options)
{
    place p;
    cek_tensor *x, *w, *y;
    const cek_conv2d_options o = { .size = sizeof o, .math = (uint32_t)_i };

    place_open(&p, "mutant:0");
    made.math = o.math;
    assert_ok(cek_tensor_full(p.device, CEK_F32, 4, (int64_t[]){ 1, 4, 4, 2 }, 1, &x));
    assert_ok(cek_tensor_full(p.device, CEK_F32, 4, (int64_t[]){ 3, 3, 3, 2 }, 1, &w));
    assert_ok(cek_conv2d(x, w, NULL, &o, &y));
    ck_assert_msg(!made.wrong, "asked for %d: %s", _i, made.text);
    ck_assert_int_eq(made.right[1], 1);
    cek_tensor_free(x), cek_tensor_free(w), cek_tensor_free(y);
    place_close(&p);
}
END_TEST

START_TEST(what_is_left_to_the_fallback_has_it_too)
{
    place p;

    setenv("CEKERNELS_SIM_DEVICES", "1", 1);
    setenv("CEKERNELS_SIM_INNER", "reference", 1);
    setenv("CEKERNELS_SIM_LACKS", "conv_forward,conv_backward_weights", 1);
    place_open(&p, "sim:0");
    made.math = CEK_MATH_STRICT;
    train(&p,
          &(cek_trainer_options){
              .size = sizeof(cek_trainer_options), .batch = SAMPLES, .fallback = p.fallback, .math = CEK_MATH_STRICT });
    ck_assert_msg(!made.wrong, "%s, and %d more", made.text, made.wrong - 1);
    ck_assert_int_ge(made.right[1], 2);
    ck_assert_int_ge(made.right[3], 2);
    ck_assert_int_eq(made.others, 0);
    place_close(&p);
}
END_TEST

START_TEST(a_program_that_knows_no_math_gets_the_default)
{
    place p;

    place_open(&p, "mutant:0");
    train(&p, &(cek_trainer_options){ .size = offsetof(cek_trainer_options, math), .math = CEK_MATH_STRICT });
    ck_assert_int_eq(made.wrong, 0);
    ck_assert_int_ge(made.right[0], 1);
    place_close(&p);
}
END_TEST

START_TEST(an_unknown_math_is_refused)
{
    place p;
    cek_trainer *trainer;
    cek_predictor *predictor;
    const cek_trainer_options to = { .size = sizeof to, .math = CEK_MATH_FAST + 1 };
    const cek_predictor_options po = { .size = sizeof po, .math = CEK_MATH_FAST + 1 };

    place_open(&p, "mutant:0");
    assert_fails(cek_trainer_create(p.model, &p.device, 1, &to, &trainer), CEK_INVALID, "math 4", "CEK_MATH_F32");
    assert_fails(cek_predictor_create(p.model, &p.device, 1, &po, &predictor), CEK_INVALID, "math 4", "CEK_MATH_F32");
    place_close(&p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train_math");
    TCase *cases = tcase_create("train_math");

    tcase_add_loop_test(cases, each_product_and_convolution_of_a_step_has_the_math_of_the_trainer_and_nothing_else_has,
                        CEK_MATH_F32, CEK_MATH_FAST + 1);
    tcase_add_loop_test(cases, each_of_a_prediction_has_the_math_of_the_predictor, CEK_MATH_F32, CEK_MATH_FAST + 1);
    tcase_add_loop_test(cases, a_convolution_of_tensors_has_the_math_of_its_options, CEK_MATH_F32, CEK_MATH_FAST + 1);
    tcase_add_test(cases, what_is_left_to_the_fallback_has_it_too);
    tcase_add_test(cases, a_program_that_knows_no_math_gets_the_default);
    tcase_add_test(cases, an_unknown_math_is_refused);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
