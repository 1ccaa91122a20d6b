/* cpu_gemm.c - matrix products of the CPU backend against plain loops in double: every instruction
 * set that runs here, odd shapes, all strides and types, every epilogue; exact on integers, within
 * the error of the arithmetic otherwise. */
#include "tests/unit/gemm_problem.h"

/* Sums over k, and those of the sizes of their terms: of products, for each element of C; and of A. */
typedef struct definition {
    double *value, *size;   /* [batch][m][n] */
    double *row, *row_size; /* [batch][m] */
} definition;

static definition definition_make(const problem *p)
{
    const gemm_desc *d = &p->d;
    const size_t rows = (size_t)(d->batch * d->m), all = rows * (size_t)d->n;
    const definition sums = { calloc(all, 8), calloc(all, 8), calloc(rows, 8), calloc(rows, 8) };
    ck_assert(sums.value && sums.size && sums.row && sums.row_size);
    double *a = widened(d->a.type, p->na, p->a), *b = widened(d->b.type, p->nb, p->b);
    for (int64_t row = 0; row < d->batch * d->m; row++)
        for (int64_t x = 0; x < d->k; x++) {
            const int64_t batch = row / d->m;
            const double left = a[at(&d->a, batch, row % d->m, x)];
            const double *right = b + at(&d->b, batch, x, 0);
            double *value = sums.value + row * d->n, *size = sums.size + row * d->n;
            sums.row[row] += left;
            sums.row_size[row] += fabs(left);
            for (int64_t j = 0; j < d->n; j++) {
                const double term = left * right[j * d->b.col_stride];
                value[j] += term;
                size[j] += fabs(term);
            }
        }
    free(a), free(b);
    return sums;
}

static void definition_free(const definition *sums)
{
    free(sums->value), free(sums->size), free(sums->row), free(sums->row_size);
}

/* The value of C's element, and by how much f32 sums of its terms may differ from it. */
static double expected(const problem *p, const kind *k, const definition *sums, int64_t b, int64_t i, int64_t j,
                       double *error)
{
    const gemm_desc *d = &p->d;
    double v = sums->value[(b * d->m + i) * d->n + j], size = sums->size[(b * d->m + i) * d->n + j];
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

static void compare(const problem *p, const kind *k, const definition *sums, const cpu_config *config, const void *c,
                    const float *sum)
{
    const gemm_desc *d = &p->d;
    const int exact = k->integers && k->act <= CPU_ACT_RELU && k->deriv <= CPU_ACT_RELU;
    for (int64_t b = 0; b < d->batch; b++)
        for (int64_t i = 0; i < d->m; i++) {
            const double old = k->sum_accumulate ? p->sum[b * d->m + i] : 0;
            const double row = sums->row[b * d->m + i] + old, size = sums->row_size[b * d->m + i] + fabs(old);
            if (k->sum)
                EXPECT(fabs(sum[b * d->m + i] - row) <= (k->integers ? 0 : gamma_of((double)d->k + 4) * size),
                       "%s: sum %ld of %ldx%ldx%ld: %g, not %g", config->isa, (long)i, (long)d->m, (long)d->n,
                       (long)d->k, sum[b * d->m + i], row);
            for (int64_t j = 0; j < d->n; j++) {
                double error;
                const double want = expected(p, k, sums, b, i, j, &error);
                const double got = type_load(d->c.type, c, at(&d->c, b, i, j));
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
        const definition sums = definition_make(&p);
        for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
            void *c = copied(k->c, p.nc, p.c);
            float *sum = copied(CPU_F32, p.d.m * p.d.batch, p.sum);
            run(&p, k, config, threads, c, sum);
            compare(&p, k, &sums, config, c, sum);
            gaps_keep(&p, c);
            filled_free(k->c, p.nc, c);
            filled_free(CPU_F32, p.d.m * p.d.batch, sum);
        }
        definition_free(&sums);
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

/* Of a few panels of A full ones of B are read where they lie, if its rows begin with lines, and copied otherwise: the
 * same bits, whatever is left for a last panel, and nothing behind B is read. */
START_TEST(panels_of_b_that_stay_give_the_bits_of_copied_ones)
{
    enum { LD = 256, K = 410, M_MOST = 83, LEFT_MOST = 33 };
    const cpu_config *here;
    uint32_t state = 5;
    const int64_t sizes[] = { 8, 20, 33, 64, M_MOST };
    float *a = filled(CPU_F32, M_MOST * K, 0, &state);
    cpu_threads *threads;
    ck_assert_int_eq(cek__threads_create(2, NULL, 0, &threads), 0);
    for (int i = 0; (here = cek__config_at(i)) != NULL; i++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int64_t left = 0; left <= LEFT_MOST; left += 11) {
                cpu_config near = *here;
                near.near_bytes = 1 << 20;
                const int64_t m = sizes[s], n = LD - left, elements = (K - 1) * LD + n;
                float *result[2];
                for (int shift = 0; shift < 2; shift++) {
                    uint32_t same = 7;
                    /* whole lines, behind which memory faults: B begins with one, or a float later */
                    const size_t room = (size_t)(elements + 16 + shift) / 16 * 16 * 4;
                    float *b = guarded(room, 0xff), *at = b + shift;
                    float *values = filled(CPU_F32, elements, 0, &same);
                    memcpy(at, values, (size_t)elements * 4);
                    const gemm_desc d = { .m = m,
                                          .n = n,
                                          .k = K,
                                          .batch = 1,
                                          .a = { CPU_F32, K, 1, 0 },
                                          .b = { CPU_F32, LD, 1, 0 },
                                          .c = { CPU_F32, n, 1, 0 } };
                    gemm_plan plan;
                    cek__gemm_plan(&d, &near, 2, &plan);
                    void *workspace = guarded(plan.workspace_bytes, 0xff);
                    result[shift] = filled(CPU_F32, m * n, 0, &state);
                    cek__gemm_run(&plan, threads, &(gemm_args){ .a = a, .b = at, .c = result[shift] }, workspace);
                    for (int64_t row = 0; row < m; row++)
                        for (int64_t col = 0; col < n && shift == 0; col++) {
                            double sum = 0, size = 0;
                            for (int64_t k = 0; k < K; k++) {
                                const double term = (double)a[row * K + k] * at[k * LD + col];
                                sum += term;
                                size += fabs(term);
                            }
                            EXPECT(fabs(result[0][row * n + col] - sum) <= gamma_of(K) * size,
                                   "%s: %ldx%ld: (%ld, %ld): %g, not %g", here->isa, (long)m, (long)n, (long)row,
                                   (long)col, result[0][row * n + col], sum);
                        }
                    guard_free(workspace, plan.workspace_bytes);
                    filled_free(CPU_F32, elements, values);
                    guard_free(b, room);
                }
                EXPECT(memcmp(result[0], result[1], (size_t)(m * n) * 4) == 0, "%s: %ldx%ld: other bits", here->isa,
                       (long)m, (long)n);
                filled_free(CPU_F32, m * n, result[0]);
                filled_free(CPU_F32, m * n, result[1]);
            }
    cek__threads_destroy(threads);
    filled_free(CPU_F32, M_MOST * K, a);
}
END_TEST

/* Of B in any layout and type, with every end of a panel, of blocks as they are and of such as have several of each.
 * What would be dot products of a plain B is as near to the formula. */
START_TEST(b_that_was_packed_before_gives_the_same_bits)
{
    static const shape more[] = { { 128, 384, 128, 1 }, { 24, 97, 200, 1 }, { 70, 33, 390, 2 }, { 40, 40, 2100, 1 },
                                  { 64, 1, 64, 1 },     { 33, 129, 7, 1 },  { 8, 200, 75, 3 } };
    const cpu_config *config;
    cpu_threads *threads;
    ck_assert_int_eq(cek__threads_create(2, NULL, 0, &threads), 0);
    for (int c = 0; (config = cek__config_at(c)) != NULL; c++) {
        int packed = 0, dots = 0;
        for (int i = 0; i < 96; i += 5)
            for (size_t s = 0; s < sizeof more / sizeof *more; s++) {
                const cpu_type type = (const cpu_type[]){ CPU_F32, CPU_BF16, CPU_F16 }[i / 32];
                const kind k = { .flip_a = i & 1,
                                 .flip_b = i >> 1 & 1,
                                 .spread = 1 + (i >> 2 & 1),
                                 .accumulate = i >> 3 & 1,
                                 .bias = i >> 4 & 1,
                                 .act = s & 1 ? CPU_ACT_NONE : CPU_ACT_RELU,
                                 .sum = s & 1,
                                 .sum_accumulate = i & 1,
                                 .flip_c = s == 2,
                                 .a = type,
                                 .b = type,
                                 .c = i >> 4 & 1 ? type : CPU_F32,
                                 .shared_b = 1 };
                cpu_config small = *config;
                small.floats = (cpu_blocks){ .mc = 2 * config->kernels->mr, .kc = 32, .b_bytes = 8192 };
                if (config->bf16)
                    small.words = (cpu_blocks){ .mc = 2 * config->bf16->mr, .kc = 32, .b_bytes = 8192 };
                problem p;
                problem_make(&more[s], &k, &p);
                const definition sums = definition_make(&p);
                for (int blocks = 0; blocks < 2; blocks++) {
                    const cpu_config *with = blocks ? &small : config;
                    const int64_t rows = p.d.m * p.d.batch;
                    void *plain = copied(k.c, p.nc, p.c), *result = copied(k.c, p.nc, p.c);
                    float *sum[2] = { copied(CPU_F32, rows, p.sum), copied(CPU_F32, rows, p.sum) };
                    const bool is_packed = run_packed(&p, &k, with, 2, threads, result, sum[0]);
                    run_planned(&p, &k, with, 2, threads, plain, sum[1]);
                    gemm_plan plan;
                    cek__gemm_plan(&p.d, with, 2, &plan);
                    if (is_packed && plan.vector) {
                        compare(&p, &k, &sums, with, result, sum[0]);
                        dots++;
                    }
                    EXPECT(!is_packed || plan.vector ||
                               (memcmp(plain, result, (size_t)(p.nc * cpu_type_bytes(k.c))) == 0 &&
                                memcmp(sum[0], sum[1], (size_t)rows * sizeof(float)) == 0),
                           "%s, kind %d, %ldx%ldx%ld: other bits", config->isa, i, (long)more[s].m, (long)more[s].n,
                           (long)more[s].k);
                    EXPECT(is_packed || blocks || s > 0 || !k.flip_b || k.spread > 1 || k.accumulate,
                           "%s, kind %d: not packed", config->isa, i);
                    packed += is_packed;
                    filled_free(k.c, p.nc, plain);
                    filled_free(k.c, p.nc, result);
                    filled_free(CPU_F32, rows, sum[0]);
                    filled_free(CPU_F32, rows, sum[1]);
                }
                definition_free(&sums);
                problem_free(&p);
            }
        EXPECT(packed > 40 && dots > 0, "%s: %d were packed, %d of them dot products else", config->isa, packed, dots);
    }
    cek__threads_destroy(threads);
}
END_TEST

/* Blocks so small that a small product has several of each: what tiles read is the same in whichever block it lies. */
START_TEST(a_block_of_a_serves_several_of_b)
{
    /* A packed, where it lies, and so near that floats are read in place whichever way its rows lie */
    const shape several[] = { { 70, 230, 75, 2 }, { 70, 70, 75, 1 }, { 40, 150, 33, 1 } };
    const cpu_config *config;
    for (int c = 0; (config = cek__config_at(c)) != NULL; c++)
        for (int i = 0; i < 64; i++) {
            const cpu_type type = i >> 3 & 1 ? CPU_BF16 : CPU_F32;
            const int words = type == CPU_BF16 && config->bf16, nr = words ? config->bf16->nr : config->kernels->nr;
            for (int s = 0; s < (words || i >> 1 & 1 ? 2 : 3); s++) {
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
                cpu_blocks *blocks = words ? &small.words : &small.floats;
                *blocks = (cpu_blocks){ .mc = 2 * (words ? config->bf16->mr : config->kernels->mr), .kc = 32 };
                blocks->b_bytes = 4 * blocks->kc * nr;
                problem p;
                problem_make(&several[s], &k, &p);
                gemm_plan plan;
                cek__gemm_plan(&p.d, &small, 1, &plan);
                EXPECT(plan.product.sizes.nc > 0 && plan.product.sizes.nc < plan.product.sizes.nb &&
                           plan.product.sizes.kc < plan.product.k && blocks->mc < plan.product.sizes.mb,
                       "%s, kind %d: no several blocks", config->isa, i);
                float *result = copied(CPU_F32, p.nc, p.c), *sum = copied(CPU_F32, p.d.m * p.d.batch, p.sum);
                const definition sums = definition_make(&p);
                run(&p, &k, &small, NULL, result, sum);
                compare(&p, &k, &sums, config, result, sum);
                definition_free(&sums);
                filled_free(CPU_F32, p.nc, result);
                filled_free(CPU_F32, p.d.m * p.d.batch, sum);
                problem_free(&p);
            }
        }
}
END_TEST

/* Sums of a block that is as deep as the product are taken before those of the next one are made, in the same place. */
START_TEST(sums_of_blocks_follow_each_other_in_one_place)
{
    const shape several = { 100, 230, 64, 2 };
    const cpu_config *config;
    for (int c = 0; (config = cek__config_at(c)) != NULL; c++)
        for (int i = 0; i < 16; i++) {
            const cpu_type type = i & 1 ? CPU_BF16 : CPU_F32;
            const int words = type == CPU_BF16 && config->bf16, nr = words ? config->bf16->nr : config->kernels->nr;
            const kind k = { .flip_c = i >> 1 & 1,
                             .accumulate = i >> 2 & 1,
                             .spread = 1,
                             .a = type,
                             .b = type,
                             .c = CPU_BF16,
                             .sum = 1,
                             .bias = i >> 3,
                             .integers = 1 };
            cpu_config small = *config;
            const cpu_blocks blocks = { .mc = words ? config->bf16->mr : config->kernels->mr,
                                        .kc = several.k,
                                        .b_bytes = 4 * several.k * nr };
            small.floats = small.words = blocks;
            problem p;
            problem_make(&several, &k, &p);
            gemm_plan plan;
            cek__gemm_plan(&p.d, &small, 1, &plan);
            EXPECT(plan.product.again && blocks.mc < plan.product.sizes.mb &&
                       plan.product.sizes.c_floats < plan.product.sizes.mb * plan.product.sizes.nb,
                   "%s, kind %d: no several blocks", config->isa, i);
            void *result = copied(CPU_BF16, p.nc, p.c);
            float *sum = copied(CPU_F32, p.d.m * p.d.batch, p.sum);
            const definition sums = definition_make(&p);
            run(&p, &k, &small, NULL, result, sum);
            compare(&p, &k, &sums, config, result, sum);
            definition_free(&sums);
            filled_free(CPU_BF16, p.nc, result);
            filled_free(CPU_F32, p.d.m * p.d.batch, sum);
            problem_free(&p);
        }
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
    tcase_add_test(tests, large_results_are_exact_aligned_or_not);
    tcase_add_test(tests, panels_of_b_that_stay_give_the_bits_of_copied_ones);
    tcase_add_test(tests, b_that_was_packed_before_gives_the_same_bits);
    tcase_add_test(tests, a_block_of_a_serves_several_of_b);
    tcase_add_test(tests, sums_of_blocks_follow_each_other_in_one_place);
    tcase_add_test(tests, nan_reaches_every_element_it_belongs_to_and_no_other);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
