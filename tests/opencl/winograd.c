/* winograd.c - convolutions of 3 x 3 taps by transforms on OpenCL devices that are CPUs, against the reference: where
 * they are taken, and that they cost no more than their bits. */
#include <stdbool.h>

#include "tests/opencl/convolutions.h"
#include "tests/opencl/failures.h"

static const geometry geometries[] = {
    { 4, 16, 16, 8, 9, 1, 1, 3, 1, 1 },
    { 2, 80, 48, 12, 13, 1, 1, 3, 1, 1 }, /* more than one chunk of channels, a panel that is half full */
    { 3, 144, 32, 9, 17, 0, 0, 3, 1, 1 }, /* so many channels that fewer tiles stay near; no zeros around the images */
    { 2, 32, 80, 10, 11, 2, 1, 3, 1, 1 }, /* unequal margins */
    { 3, 48, 64, 28, 28, 1, 1, 3, 1, 1 }, /* many blocks of tiles, the last of them not full; sums in parts */
    { 1, 64, 64, 16, 16, 0, 2, 3, 1, 1 },
};
enum { GEOMETRIES = sizeof geometries / sizeof *geometries, CASES = GEOMETRIES * KINDS };

START_TEST(transforms_cost_no_more_than_their_bits_and_strict_has_none)
{
    door oracle;
    door_open(&d, "opencl", options);
    door_open(&oracle, "reference", NULL);
    for (int number = 0; number < CASES; number++) {
        problem p;
        cek_op_info info;
        problem_make(&p, &geometries[number / KINDS], (uint32_t)number % KINDS);
        float *want = computed(&oracle, &p, CEK_MATH_F32, &info);
        float *got = computed(&d, &p, CEK_MATH_F32, &info);
        ck_assert_msg(info.flags & CEK_OP_INFO_INEXACT && strstr(info.algorithm, "winograd"), "%d: %s", number,
                      info.algorithm);
        float *strict = computed(&d, &p, CEK_MATH_STRICT, &info);
        ck_assert_msg(!(info.flags & CEK_OP_INFO_INEXACT) && !strstr(info.algorithm, "winograd"), "%d: %s", number,
                      info.algorithm);
        const double error = error_of(got, want, p.counts[2]), direct = error_of(strict, want, p.counts[2]);
        ck_assert_msg(error < 4 * direct, "%d: an error of %g where the direct way has %g", number, error, direct);
        ck_assert_msg(error != direct, "%d: strict gives the same numbers", number);
        free(want), free(got), free(strict);
        problem_free(&p);
    }
    door_close(&oracle);
    door_close(&d);
}
END_TEST

/* Processors with vectors of 4 and 8 floats have other register tiles, and blocks of fewer tiles. */
START_TEST(processors_with_shorter_vectors_transform_as_well)
{
    static const int numbers[] = { 2, 4 }; /* of geometries: many channels; whole blocks of them, and of tiles */
    door oracle;
    shim.width = (cl_uint)_i;
    door_open(&d, "opencl", options);
    door_open(&oracle, "reference", NULL);
    for (int i = 0; i < 2 * KINDS; i++) {
        problem p;
        cek_op_info info;
        const int number = numbers[i / KINDS] * KINDS + i % KINDS;
        problem_make(&p, &geometries[number / KINDS], (uint32_t)number % KINDS);
        float *want = computed(&oracle, &p, CEK_MATH_F32, &info);
        float *got = computed(&d, &p, CEK_MATH_F32, &info);
        char algorithm[64];
        snprintf(algorithm, sizeof algorithm, "winograd 4x4, register tiles of 6x%d", 2 * _i);
        ck_assert_str_eq(info.algorithm, algorithm);
        const double error = error_of(got, want, p.counts[2]) / size_of(want, p.counts[2]);
        ck_assert_msg(error < 64 * 0x1p-24, "%d: an error of %g", number, error);
        free(want), free(got);
        problem_free(&p);
    }
    door_close(&oracle);
    door_close(&d);
}
END_TEST

START_TEST(what_has_other_windows_is_not_transformed)
{
    static const struct {
        const char *what;
        uint64_t kernel, stride, dilation, groups, in;
    } cases[] = { { "3 x 3", 3, 1, 1, 1, 64 },       { "5 x 5", 5, 1, 1, 1, 64 },
                  { "a stride", 3, 2, 1, 1, 64 },    { "a dilation", 3, 1, 2, 1, 64 },
                  { "two groups", 3, 1, 1, 2, 64 },  { "few channels", 3, 1, 1, 1, 3 },
                  { "odd channels", 3, 1, 1, 1, 63 } };
    door_open(&d, "opencl", options);
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint32_t kind = 0; kind < KINDS; kind++) {
            problem p;
            cek_op_info info;
            problem_make(&p, &geometries[GEOMETRIES - 1], kind);
            p.arrays[2].out = p.values[2];
            p.desc.in_channels = cases[i].in;
            p.desc.groups = cases[i].groups;
            for (uint32_t j = 0; j < 2; j++)
                p.desc.kernel[j] = cases[i].kernel, p.desc.stride[j] = cases[i].stride,
                p.desc.dilation[j] = cases[i].dilation;
            d.plugin.op_destroy(door_op(&d, &p.desc.op, p.arrays, 4, &info));
            ck_assert_msg(!(info.flags & CEK_OP_INFO_INEXACT) == (i > 0), "%s: %s", cases[i].what, info.algorithm);
            problem_free(&p);
        }
    door_close(&d);
}
END_TEST

/* A work-item's squares take memory with the channels that are read, sums of gradients with all of them. */
START_TEST(what_would_take_memory_out_of_proportion_is_not_transformed)
{
    static const struct {
        uint64_t from, to;
        bool images, weights; /* transformed */
    } cases[] = { { 512, 512, true, true },
                  { 1280, 1280, true, true },
                  { 2048, 2048, false, false },
                  { 16384, 16, false, true },
                  { 16, 65536, true, false } };
    door_open(&d, "opencl", options);
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint32_t kind = 0; kind < KINDS; kind++) {
            problem p;
            cek_op_info info;
            problem_make(&p, &geometries[0], kind);
            p.arrays[2].out = p.values[2];
            p.desc.in[0] = p.desc.in[1] = 64;
            p.desc.in_channels = kind == 1 ? cases[i].to : cases[i].from;
            p.desc.out_channels = kind == 1 ? cases[i].from : cases[i].to;
            d.plugin.op_destroy(door_op(&d, &p.desc.op, p.arrays, 4, &info));
            ck_assert_msg(!(info.flags & CEK_OP_INFO_INEXACT) == !(kind == 2 ? cases[i].weights : cases[i].images),
                          "%u, %u: %s", i, kind, info.algorithm);
            ck_assert_msg(info.workspace_bytes <= (uint64_t)512 << 20, "%u, %u: %llu bytes", i, kind,
                          (unsigned long long)info.workspace_bytes);
            problem_free(&p);
        }
    door_close(&d);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("opencl winograd");
    TCase *tc = tcase_create("transforms");
    tcase_set_timeout(tc, 600);
    tcase_add_test(tc, transforms_cost_no_more_than_their_bits_and_strict_has_none);
    tcase_add_loop_test(tc, processors_with_shorter_vectors_transform_as_well, 4, 5);
    tcase_add_loop_test(tc, processors_with_shorter_vectors_transform_as_well, 8, 9);
    tcase_add_test(tc, what_has_other_windows_is_not_transformed);
    tcase_add_test(tc, what_would_take_memory_out_of_proportion_is_not_transformed);
    suite_add_tcase(suite, tc);
    return failures_run(suite);
}
