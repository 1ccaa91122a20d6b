/* identity.c - the numeric id of an OpenCL device tells apart whatever may change the last bit of a result. The driver
 * is a list of texts. */
#include <stdio.h>
#include <string.h>

#include "backends/opencl/opencl.h"
#include "tests/suite.h"

static struct {
    cl_uint what;
    const char *text;
} said[] = {
    { CL_PLATFORM_VERSION, "OpenCL 3.0" }, { CL_DEVICE_NAME, "a device" }, { CL_DEVICE_VENDOR, "a vendor" },
    { CL_DEVICE_VERSION, "OpenCL 1.2" },   { CL_DRIVER_VERSION, "1.2.3" },
};
enum { SAID = sizeof said / sizeof *said };

static cl_int say(cl_uint what, size_t cap, void *to, size_t *bytes)
{
    (void)bytes;
    for (int i = 0; i < SAID; i++)
        if (said[i].what == what) {
            snprintf(to, cap, "%s", said[i].text);
            return CL_SUCCESS;
        }
    return CL_INVALID_VALUE;
}

cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id platform, cl_platform_info what, size_t cap, void *to,
                                     size_t *bytes)
{
    (void)platform;
    return say(what, cap, to, bytes);
}

cl_int CL_API_CALL clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t cap, void *to, size_t *bytes)
{
    (void)device;
    return say(what, cap, to, bytes);
}

static const found_device found;

/* Another text, and one that is longer by its end. */
START_TEST(other_algorithms_are_another_identity)
{
    const uint64_t ours = cek__opencl_numeric_id(&found);

    ck_assert_uint_eq(ours, cek__opencl_numeric_id_with(&found, CEK__GPU_ALGORITHMS));
    ck_assert_uint_ne(ours, cek__opencl_numeric_id_with(&found, "another"));
    ck_assert_uint_ne(ours, cek__opencl_numeric_id_with(&found, CEK__GPU_ALGORITHMS "0"));
}
END_TEST

START_TEST(each_text_of_the_driver_is_a_part_of_it)
{
    const uint64_t ours = cek__opencl_numeric_id(&found);
    const char *before = said[_i].text;

    said[_i].text = "something else";
    ck_assert_uint_ne(ours, cek__opencl_numeric_id(&found));
    said[_i].text = before;
    ck_assert_uint_eq(ours, cek__opencl_numeric_id(&found));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("identity");
    TCase *tc = tcase_create("numeric ids");
    tcase_add_test(tc, other_algorithms_are_another_identity);
    tcase_add_loop_test(tc, each_text_of_the_driver_is_a_part_of_it, 0, SAID);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
