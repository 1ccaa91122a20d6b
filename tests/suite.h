/* suite.h - the end of a test program's main. */
#ifndef CEK_TESTS_SUITE_H
#define CEK_TESTS_SUITE_H

#include <check.h>
#include <stdlib.h>

/* Runs the suite; the exit status says whether all passed. */
static inline int suite_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
