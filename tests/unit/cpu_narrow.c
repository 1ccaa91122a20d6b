/* cpu_narrow.c - types that are narrower than a float in products of the CPU backend: their conversion, and families of
 * tiles that multiply words of several, those of tile registers against Intel's manual. */
#include <sys/wait.h>
#include <unistd.h>

#include "backends/cpu/product/gemm.h"
#include "backends/cpu/sizes.h"
#include "tests/unit/cpu_products.h"

/* All 65536 halves, and every float around a rounding boundary. */
START_TEST(conversions_round_to_nearest_even)
{
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int type = CPU_BF16; type <= CPU_F16; type++) {
            float (*to_f32)(uint16_t) = type == CPU_BF16 ? bf16_to_f32 : f16_to_f32;
            for (uint32_t h = 0; h < 0x10000; h += 16) {
                uint16_t in[16], back[48], want[48];
                float out[16], near[48];
                for (uint32_t j = 0; j < 16; j++)
                    in[j] = (uint16_t)(h + j);
                config->kernels->load((cpu_type)type, 16, in, out);
                for (int j = 0; j < 16; j++) {
                    const float value = to_f32(in[j]);
                    EXPECT(isnan(value) ? isnan(out[j]) : memcmp(&value, &out[j], 4) == 0, "%s: load %#x: %a",
                           config->isa, in[j], out[j]);
                    /* half way to the next, and the floats on either side */
                    const float next = isfinite(value) ? to_f32((uint16_t)(in[j] + 1)) : value;
                    const float middle = isfinite(next) ? value + (next - value) / 2 : value;
                    near[3 * j] = middle;
                    near[3 * j + 1] = nextafterf(middle, value);
                    near[3 * j + 2] = nextafterf(middle, next);
                }
                config->kernels->store((cpu_type)type, 48, near, back);
                for (int j = 0; j < 48; j++) {
                    want[j] = half_nearest(near[j], to_f32);
                    EXPECT(isnan(near[j]) ? isnan(to_f32(back[j])) : back[j] == want[j], "%s: store %a: %#x, not %#x",
                           config->isa, near[j], back[j], want[j]);
                }
            }
            const float large[] = { 65519.996f, 65520, 65536, 3e38f, INFINITY, -65520 };
            uint16_t back[6];
            config->kernels->store((cpu_type)type, 6, large, back);
            if (type == CPU_F16) {
                const uint16_t want[] = { 0x7bff, 0x7c00, 0x7c00, 0x7c00, 0x7c00, 0xfc00 };
                ck_assert_mem_eq(back, want, sizeof want);
            }
        }
}
END_TEST

/* Rows that end where memory does, of every length up to some vectors, there and back. */
START_TEST(rows_of_any_length_are_converted_and_nothing_beside_them)
{
    enum { MOST = 70 };
    uint32_t state = 9;
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (cpu_type type = CPU_F32; type <= CPU_F16; type++)
            for (int64_t n = 1; n <= MOST; n++) {
                void *row = filled(type, n, 0, &state), *from = fenced(type, n, row, 0);
                void *back = guarded((size_t)(n * cpu_type_bytes(type)), 0);
                float *floats = guarded((size_t)n * sizeof(float), 0);
                config->kernels->load(type, n, from, floats);
                for (int64_t j = 0; j < n; j++)
                    EXPECT(floats[j] == type_load(type, row, j), "%s: load %d of %d: %a, not %a", config->isa, (int)j,
                           (int)n, floats[j], type_load(type, row, j));
                float *ending = fenced(CPU_F32, n, floats, 0);
                config->kernels->store(type, n, ending, back);
                EXPECT(memcmp(back, row, (size_t)(n * cpu_type_bytes(type))) == 0, "%s: store %d", config->isa, (int)n);
                fenced_free(CPU_F32, n, ending);
                guard_free(floats, (size_t)n * sizeof(float));
                filled_free(type, n, back);
                fenced_free(type, n, from);
                filled_free(type, n, row);
            }
}
END_TEST

/* An instruction that adds two products is used where it is the configuration's, and for nothing else. */
START_TEST(bf16_is_multiplied_in_words_where_there_are_such)
{
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int a = CPU_F32; a <= CPU_F16; a++)
            for (int b = CPU_F32; b <= CPU_F16; b++)
                for (int64_t k = 1; k <= 40; k += 13) {
                    const gemm_desc d = { .m = 9,
                                          .n = 9,
                                          .k = k,
                                          .batch = 1,
                                          .a = { (cpu_type)a, k, 1, 0 },
                                          .b = { (cpu_type)b, 9, 1, 0 },
                                          .c = { CPU_F32, 9, 1, 0 } };
                    const int is_set = strcmp(config->isa, "avx512bf16") == 0 || strncmp(config->isa, "amx", 3) == 0;
                    gemm_plan plan;
                    cek__gemm_plan(&d, config, 1, &plan);
                    EXPECT((plan.product.words != NULL) == (is_set && a == CPU_BF16 && b == CPU_BF16 && k > 1),
                           "%s: types %d and %d, depth %d: \"%s\"", config->isa, a, b, (int)k, plan.algorithm);
                }
}
END_TEST

/* Memory is what such products wait for: of halves it gives half. */
START_TEST(few_rows_meet_columns_of_16_bits_where_these_lie)
{
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int type = CPU_BF16; type <= CPU_F16; type++)
            for (int64_t m = 1; m <= 8; m++)
                for (int across = 0; across < 2; across++) {
                    const gemm_desc d = { .m = m,
                                          .n = 900,
                                          .k = 700,
                                          .batch = 1,
                                          .a = { (cpu_type)type, 700, 1, 0 },
                                          .b = { (cpu_type)type, across ? 900 : 1, across ? 1 : 700, 0 },
                                          .c = { (cpu_type)type, 900, 1, 0 } };
                    gemm_plan plan;
                    cek__gemm_plan(&d, config, 1, &plan);
                    EXPECT((strcmp(plan.algorithm, "dot products") == 0) == (m <= 7 && !across),
                           "%s: type %d, %d rows, %s: \"%s\"", config->isa, type, (int)m, across ? "across" : "along",
                           plan.algorithm);
                }
}
END_TEST

/* Small integers, whose sums are exact. */
static float small(int64_t i)
{
    return (float)(i * 7 % 11 - 5);
}

/* Each product of a batch has vectors of its own, or all have the same; more of k than one strip. */
START_TEST(products_share_their_vectors_or_have_their_own)
{
    enum { BATCH = 3, M = 5, N = 10, K = 1100 };
    const int shared = _i % 2, m = _i / 2 ? M : 1;
    static uint16_t a[BATCH * M * K], b[BATCH * N * K];
    static float c[BATCH * M * N];
    const cpu_config *config;

    for (int64_t i = 0; i < BATCH * M * K; i++)
        type_store(CPU_BF16, a, i, (double)small(i / 3));
    for (int64_t i = 0; i < BATCH * N * K; i++)
        type_store(CPU_BF16, b, i, (double)small(i / 5));
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
        const gemm_desc d = { .m = m,
                              .n = N,
                              .k = K,
                              .batch = BATCH,
                              .a = { CPU_BF16, K, 1, shared ? 0 : m * K },
                              .b = { CPU_BF16, 1, K, N * K },
                              .c = { CPU_F32, N, 1, m * N } };
        gemm_plan plan;
        cek__gemm_plan(&d, config, 1, &plan);
        ck_assert(plan.vector && !plan.swapped);
        void *workspace = guarded(plan.workspace_bytes, 0xff);
        cek__gemm_run(&plan, NULL, &(gemm_args){ .a = a, .b = b, .c = c }, workspace);
        guard_free(workspace, plan.workspace_bytes);
        for (int64_t j = 0; j < BATCH * m * N; j++) {
            const uint16_t *x = a + (shared ? j / N % m : j / N) * K, *y = b + (j / N / m * N + j % N) * K;
            float want = 0;
            for (int k = 0; k < K; k++)
                want += bf16_to_f32(x[k]) * bf16_to_f32(y[k]);
            EXPECT(c[j] == want, "%s: %d rows, number %d: %a, not %a", config->isa, m, (int)j, c[j], want);
        }
    }
}
END_TEST

/* Sums of several may lose them (plugin.h): the instruction takes them for 0. */
START_TEST(a_single_product_of_bf16_keeps_denormal_numbers)
{
    const uint16_t a[] = { 0x0001, 0x007f, 0x8040, 0x0080 }, b[] = { 0x3f80, 0x4000 }; /* by 1 and by 2 */
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
        const gemm_desc d = { .m = 4,
                              .n = 2,
                              .k = 1,
                              .batch = 1,
                              .a = { CPU_BF16, 1, 1, 0 },
                              .b = { CPU_BF16, 2, 1, 0 },
                              .c = { CPU_F32, 2, 1, 0 } };
        float c[8];
        gemm_plan plan;
        cek__gemm_plan(&d, config, 1, &plan);
        void *workspace = guarded(plan.workspace_bytes, 0xff);
        cek__gemm_run(&plan, NULL, &(gemm_args){ .a = a, .b = b, .c = c }, workspace);
        for (int j = 0; j < 8; j++)
            EXPECT(c[j] == bf16_to_f32(a[j / 2]) * bf16_to_f32(b[j % 2]), "%s: %d: %a", config->isa, j, c[j]);
        guard_free(workspace, plan.workspace_bytes);
    }
}
END_TEST

/* Denormal numbers are zeros to tile registers. */
static float flushed(float x)
{
    return fabsf(x) < FLT_MIN ? 0 : x;
}

/* A sum as tile registers make it (TDPBF16PS): of 16 words at a time, earlier and later halves apart, then together. */
static float tile_sum(int words, const uint16_t *a, const uint16_t *b, int64_t ldb)
{
    float sum = 0;
    for (int k = 0; k < words; k += 16) {
        float half[2] = { 0, 0 };
        for (int i = 2 * k; i < 2 * (k + 16); i++)
            half[i % 2] =
                flushed(fmaf(flushed(bf16_to_f32(a[i])), flushed(bf16_to_f32(b[i / 2 * ldb + i % 2])), half[i % 2]));
        sum = flushed(sum + flushed(half[0] + half[1]));
    }
    return sum;
}

/* Of the processor where it has them, and of their model: every number of rows. */
START_TEST(tile_registers_sum_up_to_the_bit_as_their_manual_says)
{
    enum { DEPTH = 64, SIDE = 32 };
    static float c[SIDE * SIDE] __attribute__((aligned(64)));
    static uint16_t a[SIDE * DEPTH * 2], b[DEPTH * SIDE * 2];
    const float *panel = (const float *)(const void *)b;
    const cpu_config *config;
    int32_t a_offset[DEPTH], b_offset[DEPTH];
    uint32_t state = 1;

    for (int k = 0; k < DEPTH; k++) {
        a_offset[k] = k;
        b_offset[k] = k * SIDE;
    }
    for (int i = 0; i < SIDE * DEPTH * 2; i++) { /* of many sizes; each third row of A is denormal */
        type_store(CPU_BF16, a, i, ldexp(next_value(&state, 0), i / DEPTH / 2 % 3 ? i % 17 - 8 : -130));
        type_store(CPU_BF16, b, i, ldexp(next_value(&state, 0), i % 13 - 6));
    }
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int rows = 1; rows <= SIDE && strncmp(config->isa, "amx", 3) == 0; rows++) {
            config->bf16->begin();
            config->bf16->gemm[rows](&(cpu_tiles){ .count = 1 }, DEPTH, (const float *)(const void *)a, DEPTH, a_offset,
                                     &panel, b_offset, c, SIDE, CPU_STORE, NULL, 0, rows);
            config->bf16->end();
            for (int j = 0; j < rows * SIDE; j++) {
                const float want = tile_sum(DEPTH, a + j / SIDE * DEPTH * 2, b + j % SIDE * 2, SIDE * 2);
                EXPECT(c[j] == want, "%s: %d rows: (%d, %d) is %a, not %a", config->isa, rows, j / SIDE, j % SIDE, c[j],
                       want);
            }
        }
}
END_TEST

/* What a family says of the panels that it reads is so: where they begin, and what lies behind the last. */
START_TEST(panels_of_words_begin_where_their_family_wants_them)
{
    enum { K = 40, ROWS = 96 };
    const cpu_words *w = cek__config_select("amx-model")->bf16;
    const cpu_kernels *kernels = cek__config_select("amx-model")->kernels;
    static float packed[ROWS * 48];
    static uint16_t a[ROWS * K];
    const float *panel[ROWS];
    int64_t heights[ROWS];
    int32_t offset[ROWS];
    const walk_scratch to = { .a_offset = offset, .a_panel = panel, .a_rows = heights, .a = packed };

    for (int along = 0; along < 2; along++)
        for (int64_t rows = 1; rows <= ROWS; rows++) {
            pack_operand operand = pack_of(a, CPU_BF16, along ? K : 1, along ? 1 : ROWS,
                                           along ? PACK_ALONG : PACK_ACROSS);
            operand.words = w;
            operand.k = K;
            const int64_t lda = cek__pack_a(kernels, &operand, 0, rows, 0, round_up(K / 2, w->step), &to);
            for (int64_t i = 0, p = 0; i < rows; i += heights[p++]) {
                ck_assert_ptr_eq(panel[p], packed + i * lda);
                ck_assert_int_eq(i % w->height, 0);
                ck_assert_int_le(heights[p], w->mr);
            }
            for (int k = 0; k < K / 2; k++)
                ck_assert_int_eq(offset[k], k);
        }
}
END_TEST

/* Whole tiles and steps are words as they lie; of anything else something beside A would be read. */
START_TEST(whole_rows_of_words_are_read_where_they_lie)
{
    const cpu_config *config = cek__config_select("amx-model");
    const struct {
        int64_t m, k, ld;
        pack_way way;
    } cases[] = { { 64, 96, 96, PACK_DIRECT }, { 64, 96, 98, PACK_DIRECT }, { 65, 96, 96, PACK_ALONG },
                  { 64, 97, 98, PACK_ALONG },  { 64, 96, 97, PACK_ALONG },  { 64, 80, 80, PACK_ALONG } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const gemm_desc d = { .m = cases[i].m,
                              .n = 64,
                              .k = cases[i].k,
                              .batch = 1,
                              .a = { CPU_BF16, cases[i].ld, 1, 0 },
                              .b = { CPU_BF16, 64, 1, 0 },
                              .c = { CPU_F32, 64, 1, 0 } };
        gemm_plan plan;
        cek__gemm_plan(&d, config, 1, &plan);
        ck_assert(!plan.swapped && plan.product.words == config->bf16);
        ck_assert_msg(plan.product.way_a == cases[i].way, "case %zu: way %d", i, (int)plan.product.way_a);
    }
}
END_TEST

/* Tiles that a thread keeps make every change of threads dearer. */
START_TEST(a_thread_has_no_tiles_after_a_product)
{
    const cpu_config *config = cek__config_select("amx-model");
    const gemm_desc d = { .m = 9,
                          .n = 9,
                          .k = 9,
                          .batch = 1,
                          .a = { CPU_BF16, 9, 1, 0 },
                          .b = { CPU_BF16, 9, 1, 0 },
                          .c = { CPU_F32, 9, 1, 0 } };
    const uint16_t operand[81] = { 0 };
    static float zeros[512], c[32 * 32];
    const float *panel = zeros;
    static const int32_t offset[16];
    int status;
    const pid_t child = fork();

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        gemm_plan plan;
        cek__gemm_plan(&d, config, 1, &plan);
        void *workspace = guarded(plan.workspace_bytes, 0xff);
        cek__gemm_run(&plan, NULL, &(gemm_args){ .a = operand, .b = operand, .c = c }, workspace);
        if (c[0] != 0 || c[3] != 0 || plan.product.words != config->bf16)
            _exit(0);
        config->bf16->gemm[1](&(cpu_tiles){ .count = 1 }, 16, zeros, 16, offset, &panel, offset, c, 32, CPU_STORE, NULL,
                              0, 1); /* must fault */
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_ne(status, 0);
}
END_TEST

int main(void)
{
    memory_keep();
    Suite *suite = suite_create("cpu_narrow");
    TCase *tests = tcase_create("narrow");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, conversions_round_to_nearest_even);
    tcase_add_test(tests, rows_of_any_length_are_converted_and_nothing_beside_them);
    tcase_add_test(tests, bf16_is_multiplied_in_words_where_there_are_such);
    tcase_add_test(tests, few_rows_meet_columns_of_16_bits_where_these_lie);
    tcase_add_loop_test(tests, products_share_their_vectors_or_have_their_own, 0, 4);
    tcase_add_test(tests, a_single_product_of_bf16_keeps_denormal_numbers);
    tcase_add_test(tests, tile_registers_sum_up_to_the_bit_as_their_manual_says);
    tcase_add_test(tests, panels_of_words_begin_where_their_family_wants_them);
    tcase_add_test(tests, whole_rows_of_words_are_read_where_they_lie);
    tcase_add_test(tests, a_thread_has_no_tiles_after_a_product);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
