/* cpu_gemm.c - matrix products of the CPU backend against plain loops in double: every instruction
 * set that runs here, odd shapes, all strides and types, every epilogue; exact on integers, within
 * the error of the arithmetic otherwise. */
#include "tests/unit/cpu_products.h"

#include <sys/wait.h>
#include <unistd.h>

#include "backends/cpu/product/gemm.h"
#include "backends/cpu/sizes.h"

typedef struct shape {
    int64_t m, n, k, batch;
} shape;

static const shape shapes[] = {
    { 1, 1, 1, 1 },     { 1, 1, 0, 1 },      { 5, 3, 0, 2 },     { 2, 3, 4, 5 },     { 14, 32, 8, 1 },
    { 13, 31, 33, 1 },  { 15, 33, 65, 2 },   { 6, 16, 385, 1 },  { 7, 17, 400, 1 },  { 1, 129, 70, 1 },
    { 129, 1, 70, 1 },  { 1, 33, 3000, 1 },  { 33, 2, 2500, 1 }, { 113, 97, 31, 1 }, { 130, 70, 390, 1 },
    { 28, 500, 64, 1 }, { 300, 10, 100, 3 }, { 9, 64, 4200, 1 }, { 1, 450, 600, 1 }, { 5, 530, 5, 2 },
    { 3, 1030, 7, 1 },  { 7, 40, 6, 1 },     { 90, 6, 20, 1 },   { 6, 39, 80, 1 },
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* One test: how the operands lie and what is asked for. */
typedef struct kind {
    int flip_a, flip_b, flip_c; /* columns are contiguous instead of rows */
    int64_t spread;             /* distance of neighbours; gaps between rows */
    cpu_type a, b, c;
    cpu_act act, deriv;
    int accumulate, bias, sum, sum_accumulate, shared_b;
    int integers;
} kind;

static gemm_matrix layout(cpu_type type, int64_t rows, int64_t cols, int flip, int64_t spread)
{
    const int64_t inner = spread, outer = (flip ? rows : cols) * spread + (spread > 1 ? 3 : 0);
    return (gemm_matrix){ type, flip ? inner : outer, flip ? outer : inner, (flip ? cols : rows) * outer };
}

/* 1 .. 4096, and as many of each length in bits. */
static int64_t any_size(uint32_t *state)
{
    const uint32_t limit = 1u << next_random(state) % 13;
    return 1 + next_random(state) % limit;
}

static int64_t at(const gemm_matrix *m, int64_t b, int64_t i, int64_t j)
{
    return b * m->batch_stride + i * m->row_stride + j * m->col_stride;
}

typedef struct problem {
    gemm_desc d;
    void *a, *b, *c, *ref;
    float *bias, *sum;
    int64_t na, nb, nc;
} problem;

static void problem_make(const shape *s, const kind *k, problem *p)
{
    uint32_t state = 1;
    gemm_desc *d = &p->d;
    *d = (gemm_desc){ .m = s->m,
                      .n = s->n,
                      .k = s->k,
                      .batch = s->batch,
                      .accumulate = k->accumulate,
                      .act = k->act,
                      .deriv = k->deriv,
                      .sum = k->sum,
                      .sum_accumulate = k->sum_accumulate,
                      .a = layout(k->a, s->m, s->k, k->flip_a, k->spread),
                      .b = layout(k->b, s->k, s->n, k->flip_b, k->spread),
                      .c = layout(k->c, s->m, s->n, k->flip_c, k->spread) };
    d->ref = d->c;
    p->na = d->a.batch_stride * s->batch;
    p->nb = d->b.batch_stride * s->batch;
    p->nc = d->c.batch_stride * s->batch;
    if (k->shared_b)
        d->b.batch_stride = 0;
    p->a = filled(k->a, p->na, k->integers, &state);
    p->b = filled(k->b, p->nb, k->integers, &state);
    p->c = filled(k->c, p->nc, k->integers, &state);
    p->ref = filled(k->c, p->nc, k->integers, &state);
    p->bias = filled(CPU_F32, s->n, k->integers, &state);
    p->sum = filled(CPU_F32, s->m * s->batch, k->integers, &state);
}

static void problem_free(const problem *p)
{
    filled_free(p->d.a.type, p->na, p->a);
    filled_free(p->d.b.type, p->nb, p->b);
    filled_free(p->d.c.type, p->nc, p->c);
    filled_free(p->d.c.type, p->nc, p->ref);
    filled_free(CPU_F32, p->d.n, p->bias);
    filled_free(CPU_F32, p->d.m * p->d.batch, p->sum);
}

static void run(const problem *p, const kind *k, const cpu_config *config, cpu_threads *threads, void *c, float *sum)
{
    gemm_plan plan;
    cek__gemm_plan(&p->d, config, cek__threads_workers(threads), &plan);
    void *workspace = guarded(plan.workspace_bytes, 0xff); /* NaNs: what is not written first must not be read */
    cek__gemm_run(&plan, threads,
                  &(gemm_args){ .a = p->a,
                                .b = p->b,
                                .c = c,
                                .bias = k->bias ? p->bias : NULL,
                                .ref = k->deriv ? p->ref : NULL,
                                .sum = k->sum ? sum : NULL },
                  workspace);
    guard_free(workspace, plan.workspace_bytes);
}

/* The value of C's element, and by how much f32 sums of its terms may differ from it. */
static double expected(const problem *p, const kind *k, int64_t b, int64_t i, int64_t j, double *error)
{
    const gemm_desc *d = &p->d;
    double v = 0, size = 0;
    for (int64_t x = 0; x < d->k; x++) {
        const double t = type_load(d->a.type, p->a, at(&d->a, b, i, x)) *
                         type_load(d->b.type, p->b, at(&d->b, b, x, j));
        v += t;
        size += fabs(t);
    }
    if (k->bias) {
        v += p->bias[j];
        size += fabs((double)p->bias[j]);
    }
    *error = gamma_of((double)d->k + 4) * size;
    v = act_of(k->act, v);
    if (k->act != CPU_ACT_NONE)
        *error = *error * slope_max + act_error(k->act, v);
    if (k->deriv != CPU_ACT_NONE) {
        const double slope = slope_of(k->deriv, type_load(d->c.type, p->ref, at(&d->c, b, i, j)));
        *error = *error * slope_max + fabs(v) * act_error(k->deriv, slope);
        v *= slope;
    }
    if (k->accumulate) {
        v += type_load(d->c.type, p->c, at(&d->c, b, i, j));
        *error += gamma_of(2) * (fabs(v) + size);
    }
    return v;
}

static void compare(const problem *p, const kind *k, const cpu_config *config, const void *c, const float *sum)
{
    const gemm_desc *d = &p->d;
    const int exact = k->integers && k->act <= CPU_ACT_RELU && k->deriv <= CPU_ACT_RELU;
    for (int64_t b = 0; b < d->batch; b++)
        for (int64_t i = 0; i < d->m; i++) {
            double row = k->sum_accumulate ? p->sum[b * d->m + i] : 0, size = fabs(row);
            for (int64_t x = 0; x < d->k; x++) {
                const double v = type_load(d->a.type, p->a, at(&d->a, b, i, x));
                row += v;
                size += fabs(v);
            }
            if (k->sum)
                EXPECT(fabs(sum[b * d->m + i] - row) <= (k->integers ? 0 : gamma_of((double)d->k + 4) * size),
                       "%s: sum %ld of %ldx%ldx%ld: %g, not %g", config->isa, (long)i, (long)d->m, (long)d->n,
                       (long)d->k, sum[b * d->m + i], row);
            for (int64_t j = 0; j < d->n; j++) {
                double error;
                const double want = expected(p, k, b, i, j, &error), got = type_load(d->c.type, c, at(&d->c, b, i, j));
                double limit = exact ? 0 : error;
                if (d->c.type != CPU_F32)
                    limit += type_unit(d->c.type) * (fabs(want) + error) + 0x1p-25;
                EXPECT(fabs(got - want) <= limit,
                       "%s: %ldx%ldx%ld batch %ld, element (%ld, %ld, %ld): %.9g, not %.9g +- %g", config->isa,
                       (long)d->m, (long)d->n, (long)d->k, (long)d->batch, (long)b, (long)i, (long)j, got, want, limit);
            }
        }
}

/* Gaps between the elements of C keep what they held. */
static void gaps_keep(const problem *p, const void *c)
{
    const gemm_desc *d = &p->d;
    const int64_t bytes = cpu_type_bytes(d->c.type);
    char *touched = calloc(1, (size_t)p->nc + 1);
    for (int64_t b = 0; b < d->batch; b++)
        for (int64_t i = 0; i < d->m; i++)
            for (int64_t j = 0; j < d->n; j++)
                touched[at(&d->c, b, i, j)] = 1;
    for (int64_t i = 0; i < p->nc; i++)
        EXPECT(touched[i] || memcmp((const char *)c + i * bytes, (char *)p->c + i * bytes, (size_t)bytes) == 0,
               "a gap of C was written");
    free(touched);
}

static void check_kind(const kind *k)
{
    cpu_threads *threads;
    ck_assert_int_eq(cek__threads_create(2, NULL, 0, &threads), 0);
    for (int s = 0; s < SHAPES; s++) {
        const cpu_config *config;
        problem p;
        problem_make(&shapes[s], k, &p);
        for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
            void *c = copied(k->c, p.nc, p.c);
            float *sum = copied(CPU_F32, p.d.m * p.d.batch, p.sum);
            run(&p, k, config, threads, c, sum);
            compare(&p, k, config, c, sum);
            gaps_keep(&p, c);
            filled_free(k->c, p.nc, c);
            filled_free(CPU_F32, p.d.m * p.d.batch, sum);
        }
        problem_free(&p);
    }
    cek__threads_destroy(threads);
}

START_TEST(every_layout_is_exact_on_integers)
{
    for (int i = 0; i < 8; i++)
        for (int64_t spread = 1; spread <= 2; spread++)
            for (int accumulate = 0; accumulate < 2; accumulate++)
                check_kind(&(kind){ .flip_a = i & 1,
                                    .flip_b = i >> 1 & 1,
                                    .flip_c = i >> 2,
                                    .spread = spread,
                                    .accumulate = accumulate,
                                    .sum = 1,
                                    .sum_accumulate = accumulate,
                                    .bias = i & 1,
                                    .integers = 1 });
}
END_TEST

START_TEST(sums_stay_within_the_error_of_their_arithmetic)
{
    for (int i = 0; i < 4; i++)
        check_kind(&(kind){ .flip_a = i & 1, .flip_b = i >> 1, .spread = 1, .sum = 1, .bias = 1 });
    check_kind(&(kind){ .spread = 1, .shared_b = 1 });
}
END_TEST

START_TEST(epilogues_follow_the_formula)
{
    for (int act = CPU_ACT_NONE; act <= CPU_ACT_GELU; act++)
        for (int accumulate = 0; accumulate < 2; accumulate++)
            for (int flip = 0; flip < 2; flip++) {
                check_kind(
                    &(kind){ .spread = 1, .flip_c = flip, .act = (cpu_act)act, .bias = 1, .accumulate = accumulate });
                check_kind(&(kind){ .spread = 1, .flip_c = flip, .deriv = (cpu_act)act, .accumulate = accumulate });
            }
    check_kind(&(kind){ .spread = 1, .act = CPU_ACT_RELU, .deriv = CPU_ACT_RELU, .bias = 1, .integers = 1 });
}
END_TEST

/* Rows and columns along k both, without a sum: nothing is packed. */
START_TEST(dot_products_follow_the_formula)
{
    for (int accumulate = 0; accumulate < 2; accumulate++)
        for (int flip = 0; flip < 2; flip++)
            check_kind(&(kind){
                .flip_b = 1, .flip_c = flip, .spread = 1, .accumulate = accumulate, .bias = flip, .integers = 1 });
    check_kind(&(kind){ .flip_b = 1, .spread = 1, .bias = 1, .act = CPU_ACT_TANH });
    check_kind(&(kind){ .flip_b = 1, .spread = 1, .c = CPU_BF16, .accumulate = 1, .shared_b = 1 });
}
END_TEST

START_TEST(low_precision_is_converted_on_the_way)
{
    for (int type = CPU_BF16; type <= CPU_F16; type++)
        for (int i = 0; i < 4; i++) {
            const cpu_type t = (cpu_type)type;
            check_kind(&(kind){ .flip_a = i & 1,
                                .flip_b = i >> 1,
                                .spread = 1,
                                .a = t,
                                .b = t,
                                .c = CPU_F32,
                                .sum = 1,
                                .sum_accumulate = i & 1,
                                .integers = 1 });
            check_kind(&(kind){ .flip_a = i & 1,
                                .flip_b = i >> 1,
                                .spread = 1 + (i == 3),
                                .a = t,
                                .b = t,
                                .c = t,
                                .accumulate = i & 1,
                                .act = CPU_ACT_RELU,
                                .bias = 1 });
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

/* Packing would be as much work as the product. */
START_TEST(a_matrix_that_lies_along_few_rows_is_read_where_it_lies)
{
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int type = CPU_F32; type <= CPU_F16; type++)
            for (int64_t few = 1; few <= 9; few++)
                for (int swapped = 0; swapped < 2; swapped++) {
                    const gemm_matrix x = { (cpu_type)type, 300, 1, 0 }, w = { (cpu_type)type, 5000, 1, 0 };
                    const gemm_matrix xt = { (cpu_type)type, 1, 300, 0 }, wt = { (cpu_type)type, 1, 5000, 0 };
                    const gemm_desc d = { .m = swapped ? 5000 : few,
                                          .n = swapped ? few : 5000,
                                          .k = 300,
                                          .batch = 1,
                                          .a = swapped ? wt : x,
                                          .b = swapped ? xt : w,
                                          .c = { CPU_F32, swapped ? few : 5000, 1, 0 } };
                    for (int workers = 1; workers <= 256; workers *= 4) {
                        gemm_plan plan;
                        cek__gemm_plan(&d, config, workers, &plan);
                        EXPECT(plan.product.thin == (few <= 7) && (few > 7 || plan.swapped == swapped),
                               "%s: type %d, %d of them%s, %d workers: \"%s\"", config->isa, type, (int)few,
                               swapped ? ", as columns" : "", workers, plan.algorithm);
                    }
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
            config->bf16->gemm[rows](DEPTH, (const float *)(const void *)a, DEPTH, a_offset,
                                     (const float *)(const void *)b, b_offset, c, SIDE, CPU_STORE, NULL, 0);
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
        config->bf16->gemm[1](16, zeros, 16, offset, zeros, offset, c, 32, CPU_STORE, NULL, 0); /* must fault */
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_ne(status, 0);
}
END_TEST

/* Which thread does what must not matter, nor how many there are: for the best configuration and for tiles that each
 * thread must set up. */
static void bits_check(const cpu_config *config, const shape *s, const kind *k)
{
    problem p;
    problem_make(s, k, &p);
    float *first = copied(CPU_F32, p.nc, p.c), *first_sum = copied(CPU_F32, p.d.m * p.d.batch, p.sum);
    run(&p, k, config, NULL, first, first_sum);
    for (int workers = 2; workers <= 7; workers += 2) {
        cpu_threads *threads;
        ck_assert_int_eq(cek__threads_create(workers, NULL, 0, &threads), 0);
        float *c = copied(CPU_F32, p.nc, p.c), *sum = copied(CPU_F32, p.d.m * p.d.batch, p.sum);
        run(&p, k, config, threads, c, sum);
        ck_assert_mem_eq(c, first, (size_t)p.nc * 4);
        ck_assert_mem_eq(sum, first_sum, (size_t)(p.d.m * p.d.batch) * 4);
        filled_free(CPU_F32, p.nc, c);
        filled_free(CPU_F32, p.d.m * p.d.batch, sum);
        cek__threads_destroy(threads);
    }
    filled_free(CPU_F32, p.nc, first);
    filled_free(CPU_F32, p.d.m * p.d.batch, first_sum);
    problem_free(&p);
}

START_TEST(bits_do_not_depend_on_the_number_of_workers)
{
    const cpu_config *config = _i ? cek__config_select("amx-model") : cek__config_at(0);
    const kind kinds[] = { { .spread = 1 },
                           { .spread = 1, .flip_b = 1, .bias = 1, .sum = 1 },
                           { .spread = 1, .flip_a = 1 },
                           { .spread = 1, .flip_b = 1 },
                           { .spread = 1, .a = CPU_BF16, .b = CPU_BF16, .bias = 1, .sum = 1 },
                           { .spread = 1, .a = CPU_BF16, .b = CPU_BF16, .flip_a = 1, .flip_b = 1 } };
    for (int s = 0; s < SHAPES; s++)
        for (size_t k = _i ? 4 : 0; k < sizeof kinds / sizeof *kinds; k++)
            bits_check(config, &shapes[s], &kinds[k]);
    /* with roles exchanged C is not added to in place; which roles are faster depends on how many tasks there are */
    bits_check(config, &(shape){ 54, 137, 699, 1 }, &(kind){ .spread = 1, .flip_a = 1, .flip_c = 1, .accumulate = 1 });
    bits_check(config, &(shape){ 89, 283, 695, 1 }, &(kind){ .spread = 1, .flip_a = 1, .flip_b = 1, .accumulate = 1 });
}
END_TEST

/* Plans alone, of any shapes: in which order sums are made, and with which instructions. */
START_TEST(what_decides_bits_follows_from_no_number_of_workers)
{
    const cpu_config *config;
    uint32_t state = 5;
    for (int i = 0; i < 300; i++) {
        const int64_t size[] = { any_size(&state), any_size(&state), any_size(&state), 1 + next_random(&state) % 3 };
        const int any = (int)next_random(&state);
        const cpu_type type = any >> 8 & 1 ? CPU_BF16 : CPU_F32;
        const gemm_desc d = { .m = size[0],
                              .n = size[1],
                              .k = size[2],
                              .batch = size[3],
                              .accumulate = any & 1,
                              .sum = any >> 1 & 1,
                              .act = any >> 2 & 1 ? CPU_ACT_RELU : CPU_ACT_NONE,
                              .a = layout(type, size[0], size[2], any >> 3 & 1, 1),
                              .b = layout(type, size[2], size[1], any >> 4 & 1, 1),
                              .c = layout(CPU_F32, size[0], size[1], any >> 5 & 1, 1) };
        for (int c = 0; (config = cek__config_at(c)) != NULL; c++) {
            gemm_plan alone, plan;
            cek__gemm_plan(&d, config, 1, &alone);
            for (int workers = 2; workers <= 128; workers *= 4) {
                cek__gemm_plan(&d, config, workers, &plan);
                const product_plan *p = &alone.product, *q = &plan.product;
                EXPECT(plan.algorithm == alone.algorithm && plan.swapped == alone.swapped &&
                           plan.vector == alone.vector && (plan.vector || (p->words == q->words && p->add == q->add)) &&
                           (plan.vector || (p->splits == q->splits && p->split_depth == q->split_depth)) &&
                           (plan.vector || (p->sizes.kc == q->sizes.kc && p->in_place == q->in_place)),
                       "%s: %ldx%ldx%ld, %d workers: \"%s\", not \"%s\"", config->isa, (long)d.m, (long)d.n, (long)d.k,
                       workers, plan.algorithm, alone.algorithm);
            }
        }
    }
}
END_TEST

/* Blocks so small that a small product has several of each: what tiles read is the same in whichever block it lies. */
START_TEST(a_block_of_a_serves_several_of_b)
{
    const shape several[] = { { 70, 230, 75, 2 }, { 70, 70, 75, 1 } }; /* A packed, and where it lies */
    const cpu_config *config;
    for (int c = 0; (config = cek__config_at(c)) != NULL; c++)
        for (int i = 0; i < 64; i++)
            for (int s = 0; s < 2; s++) {
                const cpu_type type = i >> 3 & 1 ? CPU_BF16 : CPU_F32;
                const int words = type == CPU_BF16 && config->bf16, nr = words ? config->bf16->nr : config->kernels->nr;
                const kind k = { .flip_a = i & 1,
                                 .flip_b = i >> 1 & 1,
                                 .accumulate = i >> 2 & 1,
                                 .spread = 1,
                                 .a = type,
                                 .b = type,
                                 .sum = i >> 4 & 1,
                                 .bias = i >> 5,
                                 .integers = 1 };
                cpu_config small = *config;
                small.mc = 2 * (words ? config->bf16->mr : config->kernels->mr);
                small.kc = 32;
                small.b_bytes = 4 * small.kc * nr;
                problem p;
                problem_make(&several[s], &k, &p);
                gemm_plan plan;
                cek__gemm_plan(&p.d, &small, 1, &plan);
                EXPECT(plan.product.sizes.nc > 0 && plan.product.sizes.nc < plan.product.sizes.nb &&
                           plan.product.sizes.kc < plan.product.k && small.mc < plan.product.sizes.mb,
                       "%s, kind %d: no several blocks", config->isa, i);
                float *result = copied(CPU_F32, p.nc, p.c), *sum = copied(CPU_F32, p.d.m * p.d.batch, p.sum);
                run(&p, &k, &small, NULL, result, sum);
                compare(&p, &k, config, result, sum);
                filled_free(CPU_F32, p.nc, result);
                filled_free(CPU_F32, p.d.m * p.d.batch, sum);
                problem_free(&p);
            }
}
END_TEST

/* As walk.h has it: behind partial results, too, whose number may be odd. */
START_TEST(a_worker_s_memory_is_aligned)
{
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int64_t k = 1; k < 1 << 18; k += 3001) {
            const gemm_desc d = { .m = 1,
                                  .n = 8,
                                  .k = k,
                                  .batch = 1,
                                  .a = { CPU_F32, k, 1, 0 },
                                  .b = { CPU_F32, 8, 1, 0 },
                                  .c = { CPU_F32, 8, 1, 0 } };
            gemm_plan plan;
            cek__gemm_plan(&d, config, 4, &plan);
            EXPECT(plan.product.partial_bytes % 64 == 0 && plan.product.worker_bytes % 64 == 0,
                   "%s: depth %ld, %d parts", config->isa, (long)k, (int)plan.product.splits);
        }
}
END_TEST

/* Without threads: what is touched where nothing may be ends the test. */
static void fences_check(const kind *k, int first)
{
    for (int s = 0; s < SHAPES; s++) {
        const cpu_config *config;
        problem p, q;
        problem_make(&shapes[s], k, &p);
        const int64_t sums = p.d.m * p.d.batch;
        q = p;
        q.a = fenced(k->a, p.na, p.a, first);
        q.b = fenced(k->b, p.nb, p.b, first);
        q.ref = fenced(k->c, p.nc, p.ref, first);
        q.bias = fenced(CPU_F32, p.d.n, p.bias, first);
        for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
            void *c = fenced(k->c, p.nc, p.c, first);
            float *sum = fenced(CPU_F32, sums, p.sum, first);
            run(&q, k, config, NULL, c, sum);
            fenced_free(k->c, p.nc, c);
            fenced_free(CPU_F32, sums, sum);
        }
        fenced_free(k->a, p.na, q.a);
        fenced_free(k->b, p.nb, q.b);
        fenced_free(k->c, p.nc, q.ref);
        fenced_free(CPU_F32, p.d.n, q.bias);
        problem_free(&p);
    }
}

START_TEST(nothing_beside_operands_is_touched)
{
    for (int first = 0; first < 2; first++)
        for (int flips = 0; flips < 8; flips++)
            for (int type = CPU_F32; type <= CPU_BF16; type++)
                fences_check(&(kind){ .flip_a = flips & 1,
                                      .flip_b = flips >> 1 & 1,
                                      .flip_c = flips >> 2,
                                      .spread = 1,
                                      .a = (cpu_type)type,
                                      .b = (cpu_type)type,
                                      .c = flips & 1 ? CPU_F32 : (cpu_type)type,
                                      .accumulate = first,
                                      .deriv = CPU_ACT_RELU,
                                      .bias = 1,
                                      .sum = flips >> 2 },
                             first);
}
END_TEST

/* A result too large for any cache is stored past them, where it is aligned; and the same bits
 * otherwise. */
START_TEST(large_results_are_exact_aligned_or_not)
{
    enum { M = 4099, N = 4112, K = 3 };
    const cpu_config *config;
    uint32_t state = 3;
    float *a = filled(CPU_F32, M * K, 1, &state), *b = filled(CPU_F32, K * N, 1, &state);
    cpu_threads *threads;
    ck_assert_int_eq(cek__threads_create(2, NULL, 0, &threads), 0);
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int shift = 0; shift < 2; shift++) {
            const gemm_desc d = { .m = M,
                                  .n = N - shift,
                                  .k = K,
                                  .batch = 1,
                                  .a = { CPU_F32, K, 1, 0 },
                                  .b = { CPU_F32, N, 1, 0 },
                                  .c = { CPU_F32, N, 1, 0 } };
            const size_t bytes = (size_t)M * N * 4;
            float *c = guarded(bytes, 0xff);
            gemm_plan plan;
            cek__gemm_plan(&d, config, 2, &plan);
            void *workspace = guarded(plan.workspace_bytes, 0xff);
            cek__gemm_run(&plan, threads, &(gemm_args){ .a = a, .b = b, .c = c + shift }, workspace);
            for (int64_t row = 0; row < M; row++)
                for (int64_t col = 0; col < d.n; col++) {
                    const float *x = a + row * K, *y = b + col, got = c[shift + row * N + col];
                    const float want = x[0] * y[0] + x[1] * y[N] + x[2] * y[2 * N];
                    EXPECT(got == want, "%s: (%d, %d): %g, not %g", config->isa, (int)row, (int)col, got, want);
                }
            guard_free(workspace, plan.workspace_bytes);
            guard_free(c, bytes);
        }
    cek__threads_destroy(threads);
    filled_free(CPU_F32, M * K, a);
    filled_free(CPU_F32, K * N, b);
}
END_TEST

/* The depth is odd, so that the last word of a row of bf16 ends where the row with the NaN begins, or
 * that behind it. */
static void nan_check(const kind *k, const cpu_config *config)
{
    const float nan_value = NAN;
    problem p;
    problem_make(&(shape){ 20, 40, 51, 1 }, k, &p);
    float *c = copied(CPU_F32, p.nc, p.c);
    for (int64_t x = 0; x < 51; x += 50)
        config->kernels->store(k->a, 1, &nan_value, (char *)p.a + at(&p.d.a, 0, 7, x) * cpu_type_bytes(k->a));
    config->kernels->store(k->b, 1, &nan_value, (char *)p.b + at(&p.d.b, 0, 50, 11) * cpu_type_bytes(k->b));
    p.bias[39] = NAN;
    run(&p, k, config, NULL, c, NULL);
    for (int row = 0; row < 20; row++)
        for (int col = 0; col < 40; col++)
            EXPECT((isnan(c[row * 40 + col]) != 0) == (row == 7 || col == 11 || col == 39), "%s: row %d, column %d",
                   config->isa, row, col);
    filled_free(CPU_F32, p.nc, c);
    problem_free(&p);
}

START_TEST(nan_reaches_every_element_it_belongs_to_and_no_other)
{
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int type = CPU_F32; type <= CPU_BF16; type++)
            for (int flips = 0; flips < 4; flips++)
                nan_check(&(kind){ .spread = 1,
                                   .flip_a = flips & 1,
                                   .flip_b = flips >> 1,
                                   .a = (cpu_type)type,
                                   .b = (cpu_type)type,
                                   .act = CPU_ACT_RELU,
                                   .bias = 1 },
                          config);
}
END_TEST

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

int main(void)
{
    memory_keep();
    Suite *suite = suite_create("cpu_gemm");
    TCase *tests = tcase_create("gemm");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, every_layout_is_exact_on_integers);
    tcase_add_test(tests, sums_stay_within_the_error_of_their_arithmetic);
    tcase_add_test(tests, epilogues_follow_the_formula);
    tcase_add_test(tests, dot_products_follow_the_formula);
    tcase_add_test(tests, low_precision_is_converted_on_the_way);
    tcase_add_test(tests, bf16_is_multiplied_in_words_where_there_are_such);
    tcase_add_test(tests, a_single_product_of_bf16_keeps_denormal_numbers);
    tcase_add_test(tests, a_matrix_that_lies_along_few_rows_is_read_where_it_lies);
    tcase_add_test(tests, tile_registers_sum_up_to_the_bit_as_their_manual_says);
    tcase_add_test(tests, panels_of_words_begin_where_their_family_wants_them);
    tcase_add_test(tests, a_thread_has_no_tiles_after_a_product);
    tcase_add_loop_test(tests, bits_do_not_depend_on_the_number_of_workers, 0, 2);
    tcase_add_test(tests, what_decides_bits_follows_from_no_number_of_workers);
    tcase_add_test(tests, a_block_of_a_serves_several_of_b);
    tcase_add_test(tests, nothing_beside_operands_is_touched);
    tcase_add_test(tests, a_worker_s_memory_is_aligned);
    tcase_add_test(tests, large_results_are_exact_aligned_or_not);
    tcase_add_test(tests, nan_reaches_every_element_it_belongs_to_and_no_other);
    tcase_add_test(tests, conversions_round_to_nearest_even);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
