/* main.c - tests of the cpu plugin through its door: every instruction set, one thread and
 * several, against the reference. */
#include "harness.h"

int main(void)
{
    Suite *suite = suite_create("cpu");
    SRunner *runner;
    int failures;

    add_devices(suite);
    add_math(suite);
    add_tensors(suite);
    add_sums(suite);
    add_training(suite);
    add_products(suite);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failures = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
