/* conv_tiles.c - convolutions whose windows are multiplied as they are, on OpenCL devices that are CPUs: however
 * pixels, channels and images are shared out among work-items, the results are the reference's. */
#include "tests/opencl/convolutions.h"
#include "tests/opencl/failures.h"

static const geometry geometries[] = {
    { 40, 32, 48, 1, 1, 1, 1, 3, 1, 1 },  /* eight taps see zeros alone */
    { 300, 13, 49, 2, 3, 1, 1, 3, 2, 1 }, /* bands of many images in several slices, a panel of one channel */
    { 37, 70, 100, 3, 3, 0, 0, 1, 1, 1 }, /* few pixels, so panels are shared out */
    { 3, 20, 24, 40, 30, 1, 1, 3, 1, 1 }, /* images of several bands */
    { 5, 3, 20, 9, 11, 3, 2, 7, 2, 1 },   /* few channels: what windows see is collected */
    { 2, 4, 9, 12, 10, 2, 3, 3, 1, 2 },   /* so it is of taps that lie apart */
    { 2, 1, 6, 5, 8, 4, 4, 3, 1, 1 },     /* windows that see nothing */
    { 3, 24, 40, 7, 6, 2, 1, 3, 2, 2 },   /* unequal margins, a dilation */
    { 40, 32, 48, 2, 2, 1, 1, 3, 2, 1 },  /* four taps of nine see something, the last ones */
    { 6, 20, 33, 1, 4, 3, 4, 3, 1, 2 },   /* some of them far apart, others that see zeros between them */
    { 6, 20, 33, 2, 1, 5, 5, 5, 1, 1 },   /* more zeros than a window is wide */
    { 70, 8, 16, 5, 7, 1, 1, 3, 2, 1 },   /* pixels a stride apart of several groups of images, the last one smaller */
    { 2, 8, 16, 35, 37, 1, 1, 3, 3, 1 },  /* of one image each; */
    { 3, 8, 16, 1, 5, 0, 2, 1, 4, 1 },    /* fewer rows than a stride */
    { 4, 300, 40, 2, 2, 1, 1, 3, 1, 1 },  /* tiles of channels by the dozen for one work-item that adds them up */
};
enum { GEOMETRIES = sizeof geometries / sizeof *geometries };

/* Sums of up to 2,000 products, rounded at each step, against sums in double. */
static const double BOUND = 16 * 0x1p-24;

START_TEST(results_are_those_of_the_reference)
{
    door oracle;
    shim.width = (cl_uint)_i;
    door_open(&d, "opencl", options);
    door_open(&oracle, "reference", NULL);
    for (uint32_t number = 0; number < GEOMETRIES * KINDS; number++) {
        problem p;
        cek_op_info info;
        char algorithm[64];
        problem_make(&p, &geometries[number / KINDS], number % KINDS);
        float *want = computed(&oracle, &p, CEK_MATH_STRICT, &info);
        float *got = computed(&d, &p, CEK_MATH_STRICT, &info);
        snprintf(algorithm, sizeof algorithm, "implicit gemm, register tiles of %dx%d", _i == 16 ? 14 : 6, 2 * _i);
        ck_assert_str_eq(info.algorithm, algorithm);
        const double error = error_of(got, want, p.counts[2]) / size_of(want, p.counts[2]);
        ck_assert_msg(error < BOUND, "geometry %u, direction %u: an error of %g", number / KINDS, number % KINDS,
                      error);
        free(want), free(got);
        problem_free(&p);
    }
    door_close(&oracle);
    door_close(&d);
}
END_TEST

/* Their weights would else make NaN of zeros. */
START_TEST(taps_that_no_pixel_sees_an_image_through_are_left_out)
{
    const geometry *g = &geometries[0];
    const uint64_t taps = g->kernel * g->kernel;
    shim.width = 16;
    door_open(&d, "opencl", options);
    for (uint32_t way = CEK_OP_CONV_FORWARD; way <= CEK_OP_CONV_BACKWARD_DATA; way++) {
        problem p;
        cek_op_info info;
        problem_make(&p, g, way - CEK_OP_CONV_FORWARD);
        for (uint64_t i = 0; i < p.counts[1]; i++)
            if (i / g->in % taps != taps / 2)
                p.values[1][i] = NAN;
        float *got = computed(&d, &p, CEK_MATH_STRICT, &info);
        for (uint64_t i = 0; i < p.counts[2]; i++)
            ck_assert_msg(isfinite(got[i]), "direction %u: element %lu is %g", way, (unsigned long)i, (double)got[i]);
        free(got);
        problem_free(&p);
    }
    door_close(&d);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("opencl, tiles of convolutions");
    TCase *tc = tcase_create("tiles");
    tcase_set_timeout(tc, 600);
    tcase_add_loop_test(tc, results_are_those_of_the_reference, 4, 5);
    tcase_add_loop_test(tc, results_are_those_of_the_reference, 8, 9);
    tcase_add_loop_test(tc, results_are_those_of_the_reference, 16, 17);
    tcase_add_test(tc, taps_that_no_pixel_sees_an_image_through_are_left_out);
    suite_add_tcase(suite, tc);
    return failures_run(suite);
}
