/* rates.c - learning rates against what PyTorch's schedulers make (tests/fixtures/make-rates.py), and what the trainer
 * makes of them. */
#include <math.h>

#include "nn/train/rates.h"
#include "tests/fixtures/rates.h"
#include "tests/unit/train_bench.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

static const int64_t milestones[] = { 2, 5, 9 };
static const struct {
    const char *name;
    const double *want;
    size_t count;
    cek_schedule schedule;
} schedules[] = {
    { "step", torch_step, COUNT(torch_step), { .kind = CEK_SCHEDULE_STEP, .period = 3, .gamma = 0.5 } },
    { "multi-step",
      torch_multi_step,
      COUNT(torch_multi_step),
      { .kind = CEK_SCHEDULE_MULTI_STEP, .milestones = milestones, .milestone_count = 3 } },
    { "cosine", torch_cosine, COUNT(torch_cosine), { .kind = CEK_SCHEDULE_COSINE, .period = 10, .floor = 0.001 } },
    { "one cycle", torch_one_cycle, COUNT(torch_one_cycle), { .kind = CEK_SCHEDULE_ONE_CYCLE, .period = 20 } },
    { "three phases",
      torch_three_phases,
      COUNT(torch_three_phases),
      { .kind = CEK_SCHEDULE_ONE_CYCLE,
        .flags = CEK_SCHEDULE_LINEAR | CEK_SCHEDULE_THREE_PHASES,
        .period = 20,
        .rising_part = 0.35,
        .start_divisor = 10,
        .end_divisor = 50 } },
    { "cosine behind a warm-up",
      torch_warm_cosine,
      COUNT(torch_warm_cosine),
      { .kind = CEK_SCHEDULE_COSINE, .period = 8, .warmup = 4 } },
    { "step behind a warm-up",
      torch_warm_step,
      COUNT(torch_warm_step),
      { .kind = CEK_SCHEDULE_STEP, .period = 2, .gamma = 0.5, .warmup = 5, .warmup_start = 0.1 } },
};

static void rates_open(const cek_schedule *given, cek__rates *out)
{
    cek_schedule s = *given;
    s.size = sizeof s;
    ok(cek__rates_create(&s, out));
}

/* PyTorch multiplies step by step what is a power here: an ulp or two each. */
static void rate_is(const char *name, size_t at, double rate, double want)
{
    ck_assert_msg(fabs(rate - want) <= 1e-14 * want + 1e-17 || fabs(rate - want) <= 64 * 2.3e-16 * want,
                  "%s, step %zu: %.17g, PyTorch's is %.17g", name, at, rate, want);
}

START_TEST(rates_by_steps_are_those_of_pytorch)
{
    cek__rates r;
    rates_open(&schedules[_i].schedule, &r);
    for (size_t i = 0; i < schedules[_i].count; i++)
        rate_is(schedules[_i].name, i, cek__rates_at(&r, 0.1, (int64_t)i, 0), schedules[_i].want[i]);
    cek__rates_close(&r);
}
END_TEST

START_TEST(rates_by_epochs_are_the_same_with_epochs_for_steps)
{
    cek__rates r;
    for (size_t s = 0; s < 3; s++) {
        cek_schedule by = schedules[s].schedule;
        by.flags = CEK_SCHEDULE_BY_EPOCH;
        rates_open(&by, &r);
        for (size_t i = 0; i < schedules[s].count; i++)
            rate_is(schedules[s].name, i, cek__rates_at(&r, 0.1, 1000, (int64_t)i), schedules[s].want[i]);
        cek__rates_close(&r);
    }
}
END_TEST

static void plateau_is(const cek_schedule *schedule, const double *want)
{
    cek__rates r;
    rates_open(schedule, &r);
    for (size_t i = 0; i < COUNT(torch_metrics); i++) {
        rate_is("plateau", i, cek__rates_at(&r, 0.1, (int64_t)i, (int64_t)i), want[i]);
        cek__rates_note(&r, torch_metrics[i]);
    }
    cek__rates_close(&r);
}

START_TEST(a_plateau_lowers_the_rate_when_pytorch_does)
{
    const cek_schedule smallest = {
        .kind = CEK_SCHEDULE_PLATEAU, .gamma = 0.5, .patience = 2, .cooldown = 1, .floor = 0.02
    };
    const cek_schedule largest = { .kind = CEK_SCHEDULE_PLATEAU,
                                   .flags = CEK_SCHEDULE_LARGER_IS_BETTER | CEK_SCHEDULE_ABSOLUTE,
                                   .patience = 1,
                                   .threshold = 0.05 };
    plateau_is(&smallest, torch_plateau);
    plateau_is(&largest, torch_plateau_of_the_largest);
}
END_TEST

START_TEST(schedules_that_make_no_sense_are_refused_by_name)
{
    static const int64_t down[] = { 5, 5 };
    static const struct {
        const char *text;
        cek_schedule schedule;
    } bad[] = {
        { "kind 6", { .kind = 6 } },
        { "period of 0", { .kind = CEK_SCHEDULE_STEP } },
        { "period of -1", { .kind = CEK_SCHEDULE_COSINE, .period = -1 } },
        { "one cycle of 3", { .kind = CEK_SCHEDULE_ONE_CYCLE, .period = 3 } },
        { "three phases",
          { .kind = CEK_SCHEDULE_ONE_CYCLE, .flags = CEK_SCHEDULE_THREE_PHASES, .period = 30, .rising_part = 0.5 } },
        { "without milestones", { .kind = CEK_SCHEDULE_MULTI_STEP } },
        { "milestone 1 is 5", { .kind = CEK_SCHEDULE_MULTI_STEP, .milestones = down, .milestone_count = 2 } },
        { "milestones belong", { .kind = CEK_SCHEDULE_STEP, .period = 1, .milestone_count = 1 } },
        { "flags 0x2", { .kind = CEK_SCHEDULE_STEP, .period = 1, .flags = CEK_SCHEDULE_LINEAR } },
        { "gamma = -1", { .kind = CEK_SCHEDULE_STEP, .period = 1, .gamma = -1 } },
        { "gamma = 1", { .kind = CEK_SCHEDULE_PLATEAU, .gamma = 1 } },
        { "patience of -2", { .kind = CEK_SCHEDULE_PLATEAU, .patience = -2 } },
        { "warm-up of -1", { .warmup = -1 } },
        { "warmup_start = 2", { .warmup = 5, .warmup_start = 2 } },
        { "floor = nan", { .kind = CEK_SCHEDULE_COSINE, .period = 5, .floor = NAN } },
    };
    cek__rates r;
    for (size_t i = 0; i < COUNT(bad); i++) {
        cek_schedule s = bad[i].schedule;
        s.size = sizeof s;
        ck_assert_uint_eq(cek__rates_create(&s, &r), CEK_INVALID);
        ck_assert_msg(strstr(cek_error_text(), bad[i].text) != NULL, "%s: %s", bad[i].text, cek_error_text());
    }
}
END_TEST

/* SGD by hand: what a step moves is its rate times its gradient. */
static double moved_by(bench *b)
{
    cek_parameter p;
    double *gradient, rate = 0;
    float *before, largest = 0;
    ok(cek_trainer_pull(b->trainer));
    ok(cek_model_parameter(b->model, 0, &p));
    before = malloc((size_t)p.count * sizeof *before);
    gradient = malloc((size_t)p.count * sizeof *gradient);
    memcpy(before, p.data, (size_t)p.count * sizeof *before);
    step(b, 0, SAMPLES);
    ok(cek_trainer_pull(b->trainer));
    ok(cek_trainer_read_gradient(b->trainer, 0, gradient, p.count));
    for (int64_t i = 0; i < p.count; i++)
        if (fabsf((float)gradient[i]) > largest) {
            largest = fabsf((float)gradient[i]);
            rate = (before[i] - p.data[i]) / gradient[i];
        }
    free(before);
    free(gradient);
    return rate;
}

START_TEST(steps_move_by_the_rate_of_the_schedule_on_any_devices)
{
    static const cek_optimizer sgd = { .size = sizeof sgd, .algorithm = CEK_OPTIMIZER_SGD, .lr = 0.5 };
    const cek_schedule halves = { .size = sizeof halves, .kind = CEK_SCHEDULE_STEP, .period = 2, .gamma = 0.5 };
    bench b;
    cek_trainer_options o = options_small();
    o.optimizer = &sgd;
    o.schedule = &halves;
    bench_open(&b, _i == 0 ? "1" : "3", "cpu", &o);
    for (int i = 0; i < 5; i++) {
        double want = 0.5 / (1 << i / 2);
        ck_assert_double_eq(cek_trainer_rate(b.trainer, 0), want);
        ck_assert_msg(fabs(moved_by(&b) - want) < 1e-3 * want, "step %d", i);
    }
    ok(cek_trainer_set_rate(b.trainer, 0, 2)); /* of which five steps make a quarter */
    ck_assert_double_eq(cek_trainer_rate(b.trainer, 0), 0.5);
    ck_assert(fabs(moved_by(&b) - 0.5) < 1e-3);
    ok(cek_trainer_set_rate(b.trainer, 0, 0));
    ck_assert_double_eq(moved_by(&b), 0);
    ck_assert_uint_eq(cek_trainer_set_rate(b.trainer, 0, NAN), CEK_INVALID);
    ck_assert_uint_eq(cek_trainer_set_rate(b.trainer, 0, -1), CEK_INVALID);
    replicas_are_equal(&b);
    bench_close(&b);
}
END_TEST

START_TEST(fit_ends_epochs_and_shows_a_plateau_the_loss)
{
    static const cek_optimizer still = { .size = sizeof still, .algorithm = CEK_OPTIMIZER_SGD, .lr = 1e-12 };
    const cek_schedule plateau = { .size = sizeof plateau, .kind = CEK_SCHEDULE_PLATEAU, .patience = 1, .gamma = 0.5 };
    cek_array_options arrays = { .size = sizeof arrays,
                                 .input_type = CEK_F32,
                                 .count = SAMPLES,
                                 .rank = 3,
                                 .shape = { 1, SIDE, SIDE },
                                 .inputs = images,
                                 .classes = CLASSES,
                                 .labels = labels };
    cek_fit_options fit = { .size = sizeof fit, .epochs = 3 };
    cek_dataset *data;
    bench b;
    cek_trainer_options o = options_small();
    o.optimizer = &still; /* so that no epoch is better than the first */
    o.schedule = &plateau;
    bench_open(&b, "1", "cpu", &o);
    ok(cek_dataset_arrays(&arrays, &data));
    fit.test = data;
    ok(cek_trainer_fit(b.trainer, data, &fit, NULL));
    ck_assert_double_eq(cek_trainer_rate(b.trainer, 0), 1e-12 - 0); /* less than what counts as a reduction */
    ok(cek_trainer_set_rate(b.trainer, 0, 1));
    ck_assert_double_eq(cek_trainer_rate(b.trainer, 0), 0.5);
    cek_dataset_free(data);
    bench_close(&b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rates");
    TCase *tc = tcase_create("rates");

    tcase_add_loop_test(tc, rates_by_steps_are_those_of_pytorch, 0, (int)COUNT(schedules));
    tcase_add_test(tc, rates_by_epochs_are_the_same_with_epochs_for_steps);
    tcase_add_test(tc, a_plateau_lowers_the_rate_when_pytorch_does);
    tcase_add_test(tc, schedules_that_make_no_sense_are_refused_by_name);
    tcase_add_loop_test(tc, steps_move_by_the_rate_of_the_schedule_on_any_devices, 0, 2);
    tcase_add_test(tc, fit_ends_epochs_and_shows_a_plateau_the_loss);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
