/* launches.c - what takes long on a GPU is launched in parts, so that no watchdog of a display ends it; with
 * the same bits.
 *
 * The shim makes a strict GPU of PoCL, whose clock is 1 MHz: what a part may have follows from that. */
#include <dlfcn.h>

#include "tests/opencl/failures.h"

enum { LARGE = 1 << 20 };
static float numbers[LARGE], whole[LARGE], parted[LARGE];
static uint32_t winners[LARGE];

/* What one launch was asked for at most, and how many there were. */
typedef struct asked {
    int launches;
    size_t groups;
} asked;

static uint32_t units; /* that the device has */

static asked run_at(cl_uint clock, cek_op_desc *desc, const array *arrays, uint32_t count, cek_op_info *info)
{
    cek_device_info device = { .size = sizeof device };
    shim_be_strict();
    shim.clock = clock;
    shim.watched_kernel = "product";
    door_open(&d, "opencl", options);
    ck_assert_uint_eq(d.plugin.device_info(d.instance, 0, &device), CEK_OK);
    units = device.compute_units;
    cek_op *made = door_op(&d, desc, arrays, count, info);
    int before = shim.launch.calls;
    shim.groups = 0;
    door_op_run(&d, made, info, arrays, count);
    const asked seen = { shim.launch.calls - before, shim.groups };
    d.plugin.op_destroy(made);
    door_close(&d);
    ck_assert_int_eq(shim.kernels, 0);
    ck_assert_int_eq(shim.queues, 0);
    return seen;
}

/* A product of m x n x k: once whole, and once in parts of at most half a second at one multiply-add a cycle and
 * compute unit, or of a group for each of those. */
static void parts_are_the_whole(cek_op_desc *desc, array *arrays, uint64_t m, uint64_t n, uint64_t k, uint64_t batch)
{
    cek_op_info info;
    uint32_t rows, columns;
    arrays[2].out = whole;
    memset(whole, 0xff, arrays[2].bytes);
    asked once = run_at(100000, desc, arrays, 3, &info);
    ck_assert_int_eq(sscanf(info.algorithm, "tiles of %ux%u", &rows, &columns), 2);
    const uint64_t tiles = (m + rows - 1) / rows * ((n + columns - 1) / columns) * batch;
    ck_assert_uint_eq(once.groups % tiles, 0);
    const uint64_t splits = once.groups / tiles; /* of k */
    ck_assert_int_eq(once.launches, splits > 1 ? 2 : 1);
    arrays[2].out = parted;
    memset(parted, 0xff, arrays[2].bytes);
    asked often = run_at(1, desc, arrays, 3, &info);
    const double work = (double)rows * columns * (double)((k + splits - 1) / splits), most = 0.5e6 * units / work;
    ck_assert_msg((double)often.groups <= (most > units ? most : units), "%zu groups of %g multiply-adds at once",
                  often.groups, work);
    ck_assert_uint_lt(often.groups, once.groups);
    ck_assert_uint_eq((uint64_t)often.launches, (once.groups + often.groups - 1) / often.groups + (splits > 1));
    ck_assert_msg(!memcmp(whole, parted, arrays[2].bytes), "parts have other bits than the whole");
}

static cek_gemm_desc product(uint64_t m, uint64_t n, uint64_t k, uint64_t batch)
{
    return (cek_gemm_desc){ .op = { .size = sizeof(cek_gemm_desc), .kind = CEK_OP_GEMM },
                            .m = m,
                            .n = n,
                            .k = k,
                            .batch = batch,
                            .lda = (int64_t)k,
                            .ldb = (int64_t)n,
                            .ldc = (int64_t)n,
                            .stride_a = (int64_t)(m * k),
                            .stride_b = (int64_t)(k * n),
                            .stride_c = (int64_t)(m * n),
                            .a_type = CEK_F32,
                            .b_type = CEK_F32,
                            .c_type = CEK_F32 };
}

START_TEST(a_product_is_launched_in_parts)
{
    enum { M = 300, N = 200, K = 40, BATCH = 3 };
    cek_gemm_desc desc = product(M, N, K, BATCH);
    array arrays[] = { IN(numbers, 4 * M * K * BATCH), IN(numbers + 777, 4 * K * N * BATCH),
                       OUT(NULL, 4 * M * N * BATCH) };
    parts_are_the_whole(&desc.op, arrays, M, N, K, BATCH);
}
END_TEST

/* Its pieces of k are counted among the groups; what sums them up is one launch as ever. A group for each compute unit
 * is the least, whatever that takes. */
START_TEST(pieces_of_a_long_sum_are_launched_in_parts)
{
    enum { M = 70, N = 50, K = 2048 };
    cek_gemm_desc desc = product(M, N, K, 1);
    array arrays[] = { IN(numbers, 4 * M * K), IN(numbers + 777, 4 * K * N), OUT(NULL, 4 * M * N) };
    parts_are_the_whole(&desc.op, arrays, M, N, K, 1);
}
END_TEST

static const uint32_t kinds[] = { CEK_OP_CONV_FORWARD, CEK_OP_CONV_BACKWARD_DATA, CEK_OP_CONV_BACKWARD_WEIGHTS };

START_TEST(a_convolution_is_launched_in_parts)
{
    enum { BATCH = 4, IMAGE = 20, CHANNELS = 12, FILTERS = 70, TAPS = 9, POSITIONS = BATCH * IMAGE * IMAGE };
    cek_conv_desc desc = { .op = { .size = sizeof desc, .kind = kinds[_i] },
                           .spatial = 2,
                           .groups = 1,
                           .batch = BATCH,
                           .in_channels = CHANNELS,
                           .out_channels = FILTERS,
                           .in = { IMAGE, IMAGE },
                           .kernel = { 3, 3 },
                           .stride = { 1, 1 },
                           .dilation = { 1, 1 },
                           .pad_lo = { 1, 1 },
                           .pad_hi = { 1, 1 },
                           .x_type = CEK_F32,
                           .w_type = CEK_F32,
                           .y_type = CEK_F32 };
    const array x = IN(numbers, 4 * POSITIONS * CHANNELS), w = IN(numbers + 777, 4 * FILTERS * TAPS * CHANNELS),
                y = IN(numbers + 99, 4 * POSITIONS * FILTERS);
    array of[][3] = { { x, w, y }, { y, w, x }, { x, y, w } };
    const uint64_t m[] = { POSITIONS, POSITIONS, FILTERS }, n[] = { FILTERS, CHANNELS, TAPS * CHANNELS },
                   k[] = { TAPS * CHANNELS, TAPS * FILTERS, POSITIONS };
    of[_i][2].in = NULL;
    parts_are_the_whole(&desc.op, of[_i], m[_i], n[_i], k[_i], 1);
}
END_TEST

/* Image by image: where one is more than a launch should have it is not divided. */
START_TEST(pooling_is_launched_in_parts)
{
    enum { BATCH = 5, IMAGE = 40, CHANNELS = 32, TAPS = 25, OUT_SIDE = 36, RESULTS = OUT_SIDE * OUT_SIDE * CHANNELS };
    cek_op_info info;
    cek_pool_desc desc = { .op = { .size = sizeof desc, .kind = CEK_OP_POOL_FORWARD },
                           .mode = CEK_POOL_MAX,
                           .spatial = 2,
                           .type = CEK_F32,
                           .batch = BATCH,
                           .channels = CHANNELS,
                           .in = { IMAGE, IMAGE },
                           .kernel = { 5, 5 },
                           .stride = { 1, 1 } };
    array arrays[] = { IN(numbers, 4 * BATCH * IMAGE * IMAGE * CHANNELS), OUT(whole, 4 * BATCH * RESULTS),
                       OUT(winners, 4 * BATCH * RESULTS) };
    ck_assert_int_eq(run_at(100000, &desc.op, arrays, 3, &info).launches, 1);
    uint64_t images = (uint64_t)(0.5e6 * units / (RESULTS * TAPS));
    images = images ? images : 1;
    arrays[1].out = parted;
    ck_assert_uint_eq((uint64_t)run_at(1, &desc.op, arrays, 3, &info).launches, (BATCH + images - 1) / images);
    ck_assert(!memcmp(whole, parted, 4 * BATCH * RESULTS));
}
END_TEST

/* Nothing ends what takes long on a processor. */
START_TEST(a_processor_is_given_it_whole)
{
    enum { M = 300, N = 200, K = 40 };
    cek_gemm_desc desc = product(M, N, K, 1);
    array arrays[] = { IN(numbers, 4 * M * K), IN(numbers + 777, 4 * K * N), OUT(parted, 4 * M * N) };
    int launches[2];
    for (int slow = 0; slow < 2; slow++) {
        cek_op_info info;
        shim.clock = slow ? 1 : 0;
        door_open(&d, "opencl", options);
        cek_op *made = door_op(&d, &desc.op, arrays, 3, &info);
        int before = shim.launch.calls;
        door_op_run(&d, made, &info, arrays, 3);
        launches[slow] = shim.launch.calls - before;
        d.plugin.op_destroy(made);
        door_close(&d);
    }
    ck_assert_int_eq(launches[0], launches[1]);
}
END_TEST

/* A library launches a product whole: it is not asked for one that a watchdog would end. */
START_TEST(a_library_is_not_asked_for_what_takes_too_long)
{
    enum { SIDE = 1024 };
    static const char *const with_clblast[] = { "opencl_cache", "off", "opencl_providers", "=clblast", NULL };
    const cl_uint clocks[] = { 100000, 1 };
    cek_gemm_desc desc = product(SIDE, SIDE, SIDE, 1);
    array arrays[] = { IN(numbers, 4 * SIDE * SIDE), IN(numbers, 4 * SIDE * SIDE), OUT(whole, 4 * SIDE * SIDE) };
    for (int slow = 0; slow < 2; slow++) {
        cek_op_info info;
        shim.device = CL_DEVICE_TYPE_GPU;
        shim.clock = clocks[slow];
        door_open(&d, "opencl", with_clblast);
        d.plugin.op_destroy(door_op(&d, &desc.op, arrays, 3, &info));
        ck_assert_msg(!strncmp(info.algorithm, "CLBlast", 7) == !slow, "at %u MHz: %s", clocks[slow], info.algorithm);
        door_close(&d);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("opencl launches");
    TCase *tc = tcase_create("bounded");
    uint32_t noise = 1;
    for (int i = 0; i < LARGE; i++) {
        noise = noise * 1664525u + 1013904223u;
        numbers[i] = (float)(noise >> 8) * 0x1p-24f - 0.5f;
    }
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, a_product_is_launched_in_parts);
    tcase_add_test(tc, pieces_of_a_long_sum_are_launched_in_parts);
    tcase_add_loop_test(tc, a_convolution_is_launched_in_parts, 0, 3);
    tcase_add_test(tc, pooling_is_launched_in_parts);
    tcase_add_test(tc, a_processor_is_given_it_whole);
    if (dlopen("libclblast.so.1", RTLD_LAZY | RTLD_LOCAL))
        tcase_add_test(tc, a_library_is_not_asked_for_what_takes_too_long);
    else
        puts("without CLBlast: not asked for it");
    suite_add_tcase(suite, tc);
    return failures_run(suite);
}
