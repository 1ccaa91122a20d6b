/* winograd.c - convolutions of 3 x 3 taps by transforms on OpenCL devices that are CPUs, against the reference: where
 * they are taken, and that they cost no more than their bits. */
#include <math.h>
#include <stdbool.h>

#include "tests/opencl/failures.h"

/* Square images; `lo` and `hi` zeros around them. */
static const struct geometry {
    uint64_t batch, in, out, height, width, lo, hi;
} geometries[] = {
    { 4, 16, 16, 8, 9, 1, 1 },
    { 2, 80, 48, 12, 13, 1, 1 }, /* more than one chunk of channels, a panel that is half full */
    { 3, 144, 32, 9, 17, 0, 0 }, /* so many channels that fewer tiles stay near; no zeros around the images */
    { 2, 32, 80, 10, 11, 2, 1 }, /* unequal margins */
    { 3, 48, 64, 28, 28, 1, 1 }, /* many blocks of tiles, the last of them not full; sums in parts */
    { 1, 64, 64, 16, 16, 0, 2 },
};
enum { GEOMETRIES = sizeof geometries / sizeof *geometries, KINDS = 3, CASES = GEOMETRIES * KINDS };

typedef struct problem {
    cek_epilogue epilogue;
    cek_conv_desc desc;
    uint64_t counts[4], bytes; /* elements of the operands; bytes of the result */
    float *values[4];
    array arrays[4];
} problem;

static void values_make(float *to, uint64_t count, uint32_t seed)
{
    for (uint64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = (float)(seed >> 8) * 0x1p-23f - 1.0f;
    }
}

/* With all that may go with a convolution: a bias and an activation, the gradient of one, a result that is added to. */
static void problem_make(problem *p, int number)
{
    const struct geometry *g = &geometries[number / KINDS];
    const uint32_t kind = CEK_OP_CONV_FORWARD + (uint32_t)(number % KINDS);
    *p = (problem){ .epilogue = { .size = sizeof p->epilogue,
                                  .activation = kind == CEK_OP_CONV_FORWARD ? CEK_ACT_RELU : 0,
                                  .act_grad = kind == CEK_OP_CONV_BACKWARD_DATA ? CEK_ACT_RELU : 0 },
                    .desc = { .op = { .size = sizeof p->desc,
                                      .kind = kind,
                                      .epilogue = kind == CEK_OP_CONV_BACKWARD_WEIGHTS ? NULL : &p->epilogue,
                                      .accumulate = kind == CEK_OP_CONV_FORWARD ? 0 : CEK_BIT(2) },
                              .spatial = 2,
                              .groups = 1,
                              .batch = g->batch,
                              .in_channels = g->in,
                              .out_channels = g->out,
                              .in = { g->height, g->width },
                              .kernel = { 3, 3 },
                              .stride = { 1, 1 },
                              .dilation = { 1, 1 },
                              .pad_lo = { g->lo, g->lo },
                              .pad_hi = { g->hi, g->hi },
                              .x_type = CEK_F32,
                              .w_type = CEK_F32,
                              .y_type = CEK_F32 } };
    const uint64_t x = g->batch * g->height * g->width * g->in, w = g->out * 9 * g->in;
    const uint64_t y = g->batch * (g->height + g->lo + g->hi - 2) * (g->width + g->lo + g->hi - 2) * g->out;
    const uint64_t counts[KINDS][4] = { { x, w, y, g->out }, { y, w, x, x }, { x, y, w, g->out } };
    memcpy(p->counts, counts[number % KINDS], sizeof p->counts);
    p->bytes = p->counts[2] * sizeof(float);
    for (uint32_t i = 0; i < 4; i++) {
        p->values[i] = malloc(p->counts[i] * sizeof(float));
        ck_assert_ptr_nonnull(p->values[i]);
        values_make(p->values[i], p->counts[i], 17 * i + 1);
        p->arrays[i] = (array)IN(p->values[i], p->counts[i] * sizeof(float));
    }
    p->arrays[2] = (array){ .bytes = p->bytes };
    if (kind == CEK_OP_CONV_BACKWARD_WEIGHTS)
        p->arrays[3] = (array){ .bytes = 0 };
}

static void problem_free(problem *p)
{
    for (uint32_t i = 0; i < 4; i++)
        free(p->values[i]);
}

/* The result under `math`, malloc'ed. */
static float *computed(door *on, problem *p, uint32_t math, cek_op_info *info)
{
    float *out = malloc(p->bytes);
    ck_assert_ptr_nonnull(out);
    memcpy(out, p->values[2], p->bytes);
    p->arrays[2].out = (unsigned char *)out;
    p->desc.op.math = math;
    cek_op *made = door_op(on, &p->desc.op, p->arrays, 4, info);
    door_op_run(on, made, info, p->arrays, 4);
    on->plugin.op_destroy(made);
    return out;
}

static double error_of(const float *got, const float *want, uint64_t count)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
    return sqrt(sum / (double)count);
}

START_TEST(transforms_cost_no_more_than_their_bits_and_strict_has_none)
{
    door oracle;
    door_open(&d, "opencl", options);
    door_open(&oracle, "reference", NULL);
    for (int number = 0; number < CASES; number++) {
        problem p;
        cek_op_info info;
        problem_make(&p, number);
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

static double size_of(const float *of, uint64_t count)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += (double)of[i] * of[i];
    return sqrt(sum / (double)count);
}

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
        problem_make(&p, number);
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
            problem_make(&p, (int)((GEOMETRIES - 1) * KINDS + kind));
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
            problem_make(&p, (int)kind);
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
