/* graphs.c - training and prediction on CUDA devices are launches of graphs, over the fake driver: how many calls a
 * step is, what happens where a capture, a graph or a launch fails, and that none of it changes a bit. */
#include <limits.h>

#include "cekernels/nn.h"
#include "nn/model/layout.h"
#include "tests/cuda/life.h"

enum { SAMPLES = 6, CLASSES = 10, PIXELS = 28 * 28 };

#define ok(call) ck_assert_msg((call) == CEK_OK, "%s: %s", #call, cek_error_text())

static uint8_t images[SAMPLES][PIXELS];
static int32_t labels[SAMPLES];
static const cek_batch batch = {
    .size = sizeof batch, .count = SAMPLES, .inputs = images, .targets = labels, .input_type = CEK_U8
};

typedef struct place {
    cek_engine *engine;
    cek_device *device;
    cek_model *model;
    cek_trainer *trainer;
} place;

/* `norm`: what the gradient is scaled down to; the step goes in parts then. */
static void place_open(place *p, const char *net, double norm)
{
    const cek_trainer_options o = { .size = sizeof o, .batch = SAMPLES, .input_type = CEK_U8, .max_norm = norm };
    fake_for_engines("=cuda");
    for (int s = 0; s < SAMPLES; s++) {
        labels[s] = s % CLASSES;
        for (int i = 0; i < PIXELS; i++)
            images[s][i] = (uint8_t)(s * 31 + i * 7);
    }
    ok(cek_engine_create(NULL, &p->engine));
    ok(cek_engine_find(p->engine, "cuda:0", &p->device));
    ok(cek_model_parse(net, 3, (int64_t[]){ 1, 28, 28 }, &p->model));
    cek_model_init(p->model, 3);
    ok(cek_trainer_create(p->model, &p->device, 1, &o, &p->trainer));
}

static void place_close(place *p)
{
    cek_trainer_free(p->trainer);
    cek_model_free(p->model);
    cek_engine_free(p->engine);
}

static size_t buckets_of(const cek_model *model)
{
    cek__layout *layout;
    size_t buckets;
    ok(cek__layout_create(model, CEK_F32, &layout));
    buckets = layout->bucket_count;
    cek__layout_free(layout);
    return buckets;
}

/* Samples alternate between two places, and each place's stretches are recorded at their second run. */
enum { WARM = 4 };

/* The calls of the driver that queue something, in one step. */
static const char *const queued[] = { "cuGraphLaunch",    "cuLaunchKernel",    "cuMemcpyHtoDAsync",
                                      "cuMemsetD32Async", "cuMemcpyDtoHAsync", "cuMemcpyDtoDAsync" };
enum { QUEUED = sizeof queued / sizeof *queued };
#define ANY UINT_MAX

static void steps_are(const char *net, double norm, const unsigned want[QUEUED])
{
    place p;
    place_open(&p, net, norm);
    for (int i = 0; i < WARM; i++)
        ok(cek_trainer_step(p.trainer, &batch, NULL));
    for (int i = 0; i < 3; i++) {
        unsigned before[QUEUED];
        for (int c = 0; c < QUEUED; c++)
            before[c] = fake.calls(queued[c]);
        ok(cek_trainer_step(p.trainer, &batch, NULL));
        for (int c = 0; c < QUEUED; c++)
            ck_assert_msg(want[c] == ANY || fake.calls(queued[c]) - before[c] == want[c], "%s: %u calls of %s, not %u",
                          net, fake.calls(queued[c]) - before[c], queued[c], want[c]);
    }
    place_close(&p);
}

#define DEEP "flatten linear:1400 relu linear:800 relu linear:10"

/* Up go the samples with their labels, while the step before computes, and the blocks of step and batch, whose step may
 * not be known then; the result comes down. */
START_TEST(a_step_is_one_launch)
{
    steps_are("lenet5", 0, (unsigned[]){ 1, 0, 2, 0, 1, 0 });
    steps_are(DEEP, 0, (unsigned[]){ 1, 0, 2, 0, 1, 0 });
}
END_TEST

/* Forward and each segment of backward; norms, the verdict and updates have calls of their own. */
START_TEST(a_step_whose_norm_is_judged_goes_in_parts)
{
    place p;
    place_open(&p, DEEP, 0);
    unsigned buckets = (unsigned)buckets_of(p.model);
    place_close(&p);
    ck_assert_uint_ge(buckets, 2);
    steps_are(DEEP, 1e9, (unsigned[]){ 1 + buckets, ANY, ANY, ANY, ANY, ANY });
}
END_TEST

START_TEST(a_prediction_is_one_launch)
{
    place p;
    cek_predictor *q;
    const cek_predictor_options o = { .size = sizeof o, .batch = SAMPLES, .input_type = CEK_U8 };
    float first[SAMPLES * CLASSES], outputs[SAMPLES * CLASSES];
    place_open(&p, "lenet5", 0);
    ok(cek_predictor_create(p.model, &p.device, 1, &o, &q));
    ok(cek_predictor_run(q, images, SAMPLES, first));
    for (int i = 1; i < WARM; i++)
        ok(cek_predictor_run(q, images, SAMPLES, outputs));
    unsigned graphs = fake.calls("cuGraphLaunch"), kernels = fake.calls("cuLaunchKernel");
    ok(cek_predictor_run(q, images, SAMPLES, outputs));
    ck_assert_uint_eq(fake.calls("cuGraphLaunch") - graphs, 1);
    ck_assert_uint_eq(fake.calls("cuLaunchKernel") - kernels, 0);
    ck_assert_mem_eq(first, outputs, sizeof first);
    cek_predictor_free(q);
    place_close(&p);
}
END_TEST

/* The model after some steps with one call that fails; returns the graphs that were launched. */
static unsigned train(double norm, const char *function, unsigned nth, uint32_t error, char sha256[65])
{
    place p;
    unsigned graphs;
    place_open(&p, "lenet5", norm);
    graphs = fake.calls("cuGraphLaunch");
    fake.inject(function, nth, error);
    for (int i = 0; i < 10; i++)
        ok(cek_trainer_step(p.trainer, &batch, NULL));
    graphs = fake.calls("cuGraphLaunch") - graphs;
    ok(cek_trainer_pull(p.trainer));
    cek_model_sha256(p.model, sha256);
    place_close(&p);
    return graphs;
}

START_TEST(what_cannot_be_captured_runs_in_parts_to_the_same_bits)
{
    char recorded[65], partly[65];
    unsigned live;
    fake_open();
    fake.reset();
    live = fake.live();
    ck_assert_uint_eq(train(0, NULL, 0, 0, recorded), 8); /* steps 3 to 10 */
    /* No norm is that large; forward and backward are recorded in step 3 for one place, 4 for the other. */
    ck_assert_uint_eq(train(1e9, NULL, 0, 0, partly), 16);
    ck_assert_str_eq(recorded, partly);
    /* The whole step is refused in step 3: from 4 on in parts, which run for the second time in 6 and 7. */
    ck_assert_uint_eq(train(0, "cuStreamEndCapture", 1, 901, partly), 10);
    ck_assert_str_eq(recorded, partly);
    /* No memory for it is no more than that. */
    ck_assert_uint_eq(train(0, "cuGraphInstantiateWithFlags", 1, 2, partly), 10);
    ck_assert_str_eq(recorded, partly);
    /* Refused in step 4, after that of the other place. */
    ck_assert_uint_eq(train(0, "cuStreamEndCapture", 2, 900, partly), 1 + 8);
    ck_assert_str_eq(recorded, partly);
    /* Of the parts, forward is in step 3: it goes kernel by kernel there, and backward as a graph. */
    ck_assert_uint_eq(train(1e9, "cuStreamEndCapture", 1, 901, partly), 16 - 4);
    ck_assert_str_eq(recorded, partly);
    ck_assert_uint_eq(fake.live(), live);
}
END_TEST

static const struct {
    const char *function;
    unsigned nth;
    uint32_t error;
    cek_status status;
} failures[] = {
    { "cuGraphInstantiateWithFlags", 2, UNKNOWN, CEK_INTERNAL },
    { "cuStreamBeginCapture", 2, UNKNOWN, CEK_INTERNAL },
    { "cuGraphLaunch", 1, 2, CEK_OUT_OF_MEMORY },
    { "cuGraphLaunch", 3, ILLEGAL_ADDRESS, CEK_DEVICE_LOST },
};

START_TEST(every_other_failure_ends_the_step_and_leaves_nothing)
{
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        place p;
        cek_status st = CEK_OK;
        fake_open();
        fake.reset();
        unsigned live = fake.live();
        place_open(&p, "lenet5", 0);
        fake.inject(failures[i].function, failures[i].nth, failures[i].error);
        for (int k = 0; k < WARM + 2 && st == CEK_OK; k++)
            st = cek_trainer_step(p.trainer, &batch, NULL);
        ck_assert_msg(st == failures[i].status, "%s: %s: %s", failures[i].function, cek_status_name(st),
                      cek_error_text());
        ck_assert_msg(!strncmp(cek_error_text(), "cuda:0: ", 8) && strstr(cek_error_text(), failures[i].function),
                      "%s: %s", failures[i].function, cek_error_text());
        ck_assert_uint_eq(cek_trainer_step(p.trainer, &batch, NULL), st);
        place_close(&p);
        if (st != CEK_DEVICE_LOST) /* what is in a context that is gone cannot be given back */
            ck_assert_msg(fake.live() == live, "%s: %u objects are left", failures[i].function, fake.live() - live);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda graphs");
    TCase *tcase = tcase_create("graphs");
    tcase_add_test(tcase, a_step_is_one_launch);
    tcase_add_test(tcase, a_step_whose_norm_is_judged_goes_in_parts);
    tcase_add_test(tcase, a_prediction_is_one_launch);
    tcase_add_test(tcase, what_cannot_be_captured_runs_in_parts_to_the_same_bits);
    tcase_add_test(tcase, every_other_failure_ends_the_step_and_leaves_nothing);
    suite_add_tcase(suite, tcase);
    return fake_suite_run(suite);
}
