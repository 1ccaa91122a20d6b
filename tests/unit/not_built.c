/* not_built.c - the lines of the load report about plugins that were left out when the project was configured, which
 * this build may have none of: the search itself, with a list of its own. */
#include <string.h>

#include "core/device/search.h"
#include "tests/suite.h"

/* With the reason and the cure; not where it was built after all, or somebody else's is found in its place. */
START_TEST(a_plugin_that_was_left_out_is_told_with_the_cure)
{
    static const cek__not_built plugins[] = {
        { "opencl", "no OpenCL headers were found; install them and configure again" },
        { "cuda", "" },
        { "metal", "left out by --without-metal" },
    };
    cek__report report = { 0 };
    cek__report_line *line;
    char *text;

    ck_assert_uint_eq(CEK_OK, cek__report_add(&report, "/somewhere/metal-2.so", &line));
    ck_assert_uint_eq(CEK_OK, cek__search_not_built(plugins, 3, &report));
    ck_assert_uint_eq(report.count, 2);
    ck_assert_uint_eq(report.lines[1].status, CEK_UNAVAILABLE);
    ck_assert_str_eq(report.lines[1].stage, "not built");
    ck_assert_uint_eq(CEK_OK, cek__report_text(&report, &text));
    ck_assert_ptr_nonnull(
        strstr(text, "opencl: not built: no OpenCL headers were found; install them and configure again\n"));
    free(text);
    cek__report_clear(&report);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("not built");
    TCase *tc = tcase_create("not built");
    tcase_add_test(tc, a_plugin_that_was_left_out_is_told_with_the_cure);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
