/* ahead.c - CUDA devices train with two steps under way, alone, two together and beside the CPU, over the fake driver: see
 * ahead.h. */
#include "tests/ahead.h"
#include "tests/cuda/life.h"

static void watch(size_t bytes)
{
    fake.watch(bytes);
}

static unsigned uploads(void)
{
    return fake.watched();
}

static void blind(bool blind)
{
    fake.blind(blind);
}

static unsigned waits(void)
{
    return fake.waits();
}

static unsigned polls(void)
{
    return fake.calls("cuEventQuery") + fake.calls("cuStreamQuery");
}

static size_t own(cek_device *of)
{
    return !strncmp(cek_device_name(of), "cuda:", 5);
}

static const ahead_driver driver = { watch, uploads, blind, waits, polls, own };

static const char *const fleets[] = { "cuda:0", "cuda:0,cuda:1", "cpu,cuda:0" };
enum { FLEETS = sizeof fleets / sizeof *fleets };

START_TEST(samples_are_queued_before_the_loss_of_the_step_before_is_known)
{
    fake_for_engines("=cpu,cuda");
    ahead_of_the_loss(fleets[_i]);
}
END_TEST

START_TEST(no_call_of_a_step_waits_in_the_driver)
{
    fake_for_engines("=cpu,cuda");
    without_waits(fleets[_i]);
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
    Suite *suite = suite_create("cuda ahead");
    TCase *tcase = tcase_create("ahead");
    SRunner *runner = srunner_create(suite);
    tcase_add_loop_test(tcase, samples_are_queued_before_the_loss_of_the_step_before_is_known, 0, FLEETS);
    tcase_add_loop_test(tcase, no_call_of_a_step_waits_in_the_driver, 0, FLEETS);
    suite_add_tcase(suite, tcase);
    srunner_set_fork_status(runner, CK_NOFORK); /* the fake driver is opened once */
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    fake_remove();
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
