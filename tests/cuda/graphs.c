/* graphs.c - training and prediction on CUDA devices are launches of graphs, over the fake driver: how
 * many, what happens
 * where a capture, a graph or a launch fails, and that none of it changes a bit. */
#include "cekernels/nn.h"
#include "nn/model/layout.h"
#include "tests/cuda/life.h"

enum { SAMPLES = 6, CLASSES = 10, PIXELS = 28 * 28 };

#define ok(call) ck_assert_msg((call) == CEK_OK, "%s: %s", #call, cek_error_text())

static uint8_t images[SAMPLES][PIXELS];
static int32_t labels[SAMPLES];
static const cek_batch batch = { .count = SAMPLES, .inputs = images, .targets = labels, .input_type = CEK_U8 };

typedef struct place {
    cek_engine *engine;
    cek_device *device;
    cek_model *model;
    cek_trainer *trainer;
} place;

static void place_open(place *p, const char *net)
{
    const cek_trainer_options o = { .size = sizeof o, .batch = SAMPLES, .input_type = CEK_U8 };
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

static void steps_are_launches(const char *net, size_t least_buckets)
{
    place p;
    unsigned graphs, kernels;
    place_open(&p, net);
    size_t buckets = buckets_of(p.model);
    ck_assert_uint_ge(buckets, least_buckets);
    for (int i = 0; i < WARM; i++)
        ok(cek_trainer_step(p.trainer, &batch, NULL));
    for (int i = 0; i < 3; i++) {
        graphs = fake.calls("cuGraphLaunch");
        kernels = fake.calls("cuLaunchKernel");
        ok(cek_trainer_step(p.trainer, &batch, NULL));
        /* Forward and each segment of backward. Kernels are the optimizer's alone: for each bucket, it and
         * its count. */
        ck_assert_uint_eq(fake.calls("cuGraphLaunch") - graphs, 1 + buckets);
        ck_assert_uint_eq(fake.calls("cuLaunchKernel") - kernels, 2 * buckets);
    }
    place_close(&p);
}

START_TEST(a_step_launches_one_graph_forward_and_one_for_each_segment)
{
    steps_are_launches("lenet5", 1);
    steps_are_launches("flatten linear:1400 relu linear:800 relu linear:10", 2);
}
END_TEST

START_TEST(a_prediction_is_one_launch)
{
    place p;
    cek_predictor *q;
    const cek_predictor_options o = { .size = sizeof o, .batch = SAMPLES, .input_type = CEK_U8 };
    float first[SAMPLES * CLASSES], outputs[SAMPLES * CLASSES];
    place_open(&p, "lenet5");
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

/* The model after a few steps with one call that fails. */
static unsigned train(const char *function, unsigned nth, uint32_t error, char sha256[65])
{
    place p;
    unsigned graphs;
    place_open(&p, "lenet5");
    graphs = fake.calls("cuGraphLaunch");
    fake.inject(function, nth, error);
    for (int i = 0; i < WARM + 2; i++)
        ok(cek_trainer_step(p.trainer, &batch, NULL));
    graphs = fake.calls("cuGraphLaunch") - graphs;
    ok(cek_trainer_pull(p.trainer));
    cek_model_sha256(p.model, sha256);
    place_close(&p);
    return graphs;
}

START_TEST(what_cannot_be_captured_runs_kernel_by_kernel_to_the_same_bits)
{
    char recorded[65], partly[65];
    unsigned live, graphs;
    fake_open();
    fake.reset();
    live = fake.live();
    graphs = train(NULL, 0, 0, recorded);
    ck_assert_uint_eq(graphs, 8); /* forward and backward in steps 3 to 6 */
    ck_assert_uint_eq(train("cuStreamEndCapture", 1, 901, partly), graphs - 2); /* forward in steps 3 and 5 */
    ck_assert_str_eq(recorded, partly);
    ck_assert_uint_eq(train("cuStreamEndCapture", 4, 900, partly), graphs - 2); /* backward in 4 and 6 */
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
    { "cuGraphInstantiateWithFlags", 1, 2, CEK_OUT_OF_MEMORY },
    { "cuGraphInstantiateWithFlags", 4, UNKNOWN, CEK_INTERNAL },
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
        place_open(&p, "lenet5");
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
    const char *sanitizers = getenv("SANITIZERS");
    if (sanitizers && strcmp(sanitizers, "no")) {
        puts("skipped: the sanitizers do not know the fake driver's fibers");
        return 77;
    }
    if (system("command -v c++ >/dev/null || exit 1")) {
        puts("skipped: no C++ compiler, which stands for the device's");
        return 77;
    }
    Suite *suite = suite_create("cuda graphs");
    TCase *tcase = tcase_create("graphs");
    SRunner *runner = srunner_create(suite);
    tcase_add_test(tcase, a_step_launches_one_graph_forward_and_one_for_each_segment);
    tcase_add_test(tcase, a_prediction_is_one_launch);
    tcase_add_test(tcase, what_cannot_be_captured_runs_kernel_by_kernel_to_the_same_bits);
    tcase_add_test(tcase, every_other_failure_ends_the_step_and_leaves_nothing);
    suite_add_tcase(suite, tcase);
    srunner_set_fork_status(runner, CK_NOFORK); /* the fake driver is opened once */
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    fake_remove();
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
