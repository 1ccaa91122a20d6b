/* cpu_gemm_plan.c - how products of the CPU backend are cut up: what decides bits follows from no number of workers,
 * what is read where it lies, and nothing is touched beside operands and workspace. */
#include "backends/cpu/sizes.h"
#include "tests/unit/gemm_problem.h"

/* 1 .. 4096, and as many of each length in bits. */
static int64_t any_size(uint32_t *state)
{
    const uint32_t limit = 1u << next_random(state) % 13;
    return 1 + next_random(state) % limit;
}

/* Packing would be as much work as the product. */
START_TEST(a_matrix_that_lies_along_few_rows_is_read_where_it_lies)
{
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int type = CPU_F32; type <= CPU_F16; type++)
            for (int64_t few = 1; few <= 15; few++)
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
                    const int mr = config->kernels->mr, low = type == CPU_F32 && mr <= CPU_LOW ? 2 * mr : 0;
                    const bool thin = few <= 7 || few <= (low < 14 ? low : 14);
                    for (int workers = 1; workers <= 256; workers *= 4) {
                        gemm_plan plan;
                        cek__gemm_plan(&d, config, workers, &plan);
                        EXPECT(plan.product.thin == thin && (!thin || plan.swapped == swapped),
                               "%s: type %d, %d of them%s, %d workers: \"%s\"", config->isa, type, (int)few,
                               swapped ? ", as columns" : "", workers, plan.algorithm);
                    }
                }
}
END_TEST

/* Near or far, in either role, and with weights that might be packed: each element of B is wanted once. Of a few rows
 * more tiles read near panels themselves. */
START_TEST(one_row_meets_b_where_it_lies)
{
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int64_t panels = 1; panels <= 64; panels *= 8)
            for (int64_t k = 1; k <= 512; k *= 8)
                for (int type = CPU_F32; type <= CPU_F16; type++)
                    for (int swapped = 0; swapped < 2; swapped++) {
                        const int64_t n = panels * config->kernels->nr;
                        const gemm_matrix row = { (cpu_type)type, k, 1, 0 }, column = { (cpu_type)type, 1, k, 0 };
                        const gemm_matrix rows = { (cpu_type)type, n, 1, 0 }, columns = { (cpu_type)type, 1, n, 0 };
                        const gemm_desc d = { .m = swapped ? n : 1,
                                              .n = swapped ? 1 : n,
                                              .k = k,
                                              .batch = 1,
                                              .packed = 1,
                                              .a = swapped ? columns : row,
                                              .b = swapped ? column : rows,
                                              .c = { CPU_F32, swapped ? 1 : n, 1, 0 } };
                        gemm_plan plan;
                        cek__gemm_plan(&d, config, 1, &plan);
                        EXPECT(plan.product.thin && plan.swapped == swapped && !plan.vector && plan.packed_bytes == 0,
                               "%s: type %d, %ld by %ld%s: \"%s\"", config->isa, type, (long)k, (long)n,
                               swapped ? ", as a column" : "", plan.algorithm);
                    }
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int64_t m = 1; m <= CPU_THIN_MAX; m++) {
            const gemm_desc d = rows_of_memory(m, 2 * config->kernels->nr, 64);
            gemm_plan plan;
            cek__gemm_plan(&d, config, 1, &plan);
            EXPECT(plan.product.thin == (m == 1), "%s: %ld rows: \"%s\"", config->isa, (long)m, plan.algorithm);
        }
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
        cpu_threads *pool;
        ck_assert_int_eq(cek__threads_create(workers, NULL, 0, &pool), 0);
        for (int alone = 0; alone < 2; alone++) {
            float *c = copied(CPU_F32, p.nc, p.c), *sum = copied(CPU_F32, p.d.m * p.d.batch, p.sum);
            run_planned(&p, k, config, workers, alone ? NULL : pool, c, sum);
            ck_assert_mem_eq(c, first, (size_t)p.nc * 4);
            ck_assert_mem_eq(sum, first_sum, (size_t)(p.d.m * p.d.batch) * 4);
            filled_free(CPU_F32, p.nc, c);
            filled_free(CPU_F32, p.d.m * p.d.batch, sum);
        }
        cek__threads_destroy(pool);
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

/* Else rows that tiles could read where they lie would be turned, for so few columns. */
START_TEST(columns_that_fill_one_vector_count_as_one)
{
    const cpu_config *config;
    int asked = 0;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
        const int64_t n = config->kernels->nr / 2, m = 1760, k = 1760;
        const gemm_desc d = rows_of_memory(m, n, k);
        gemm_plan plan;
        cek__gemm_plan(&d, config, 1, &plan);
        if (plan.product.thin)
            continue;
        asked++;
        EXPECT(!plan.swapped && plan.product.way_a == PACK_DIRECT, "%s: \"%s\"", config->isa, plan.algorithm);
    }
    ck_assert(asked > 0 || cek__config_at(0)->kernels->nr / 2 <= CPU_THIN_MAX);
}
END_TEST

/* A float of A meets few of B then: to copy A would be most of the work, and short runs of its rows come slowly. */
START_TEST(of_few_columns_rows_are_read_where_they_lie_in_deep_blocks)
{
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int64_t k = 2000; k <= 2048; k += 48)
            for (int64_t panels = 1; panels <= 8; panels *= 2) {
                const int64_t n = panels * config->kernels->nr, bytes = config->floats.b_bytes;
                const gemm_desc d = rows_of_memory(5000, n, k);
                gemm_plan plan;
                cek__gemm_plan(&d, config, 1, &plan);
                const product_plan *p = &plan.product;
                const int turned = config->turns && panels == 8;
                EXPECT(plan.swapped || (p->way_a == PACK_DIRECT) == ((k == 2000 || panels <= 4) && !turned),
                       "%s: n %ld, k %ld", config->isa, (long)n, (long)k);
                EXPECT(plan.swapped || (p->way_a == PACK_TURNED) == turned, "%s: n %ld, k %ld", config->isa, (long)n,
                       (long)k);
                EXPECT(plan.swapped || panels > 4 ||
                           (p->sizes.kc * n * 4 <= bytes &&
                            (p->sizes.kc == p->split_depth || 2 * p->sizes.kc * n * 4 > bytes)),
                       "%s: n %ld, k %ld in blocks of %ld", config->isa, (long)n, (long)k, (long)p->sizes.kc);
                EXPECT(!plan.swapped, "%s: n %ld, k %ld", config->isa, (long)n, (long)k);
                EXPECT((p->way_b == PACK_DIRECT) == (panels == 1), "%s: n %ld, k %ld: B", config->isa, (long)n,
                       (long)k);
            }
}
END_TEST

/* A panel of them lies side by side already. Copies stay in L1 while more columns of B pass by; low panels share lines
 * that must not be far from each other; and offsets have 32 bits. */
START_TEST(of_few_columns_columns_of_memory_are_read_where_they_lie)
{
    static const int64_t strides[] = { 300, 500, 512, 513, 1760, 1 << 20, 1 << 22 };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int type = CPU_F32; type <= CPU_F16; type++)
            for (int64_t n = 48; n <= 80; n += 16)
                for (size_t x = 0; x < sizeof strides / sizeof *strides; x++) {
                    gemm_desc d = rows_of_memory(300, n, 1000);
                    product_plan p = { .m = d.m, .n = d.n, .k = d.k, .batch = 1, .config = config };
                    d.a = (gemm_matrix){ (cpu_type)type, 1, strides[x], 0 };
                    const int64_t longest = config->kernels->mr <= CPU_LOW ? 512 : 1 << 20;
                    const int stays = type == CPU_F32 && n <= 64 && strides[x] <= longest;
                    cek__gemm_operands(&d, &p);
                    EXPECT((p.way_a == PACK_DIRECT) == stays && p.copy_a == PACK_ACROSS &&
                               p.a_meets == (stays && strides[x] % 512 == 0),
                           "%s: type %d, %ld apart, %ld columns of B: way %d", config->isa, type, (long)strides[x],
                           (long)n, (int)p.way_a);
                }
}
END_TEST

/* A's rows are then the columns of B, which are panels as they lie; where lines meet in few sets of L1 copies of
 * A are read sooner. */
START_TEST(of_few_rows_columns_of_b_are_rows_unless_they_meet_in_l1)
{
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int64_t n = 1000; n <= 1024; n += 24) {
            const gemm_desc d = rows_of_memory(n == 1000 ? 32 : 64, n, n);
            gemm_plan plan;
            if (config->kernels->mr <= CPU_LOW)
                continue;
            cek__gemm_plan(&d, config, 1, &plan);
            EXPECT(plan.swapped == (n == 1000) && (!plan.swapped || plan.product.way_a == PACK_DIRECT),
                   "%s: %ld columns: \"%s\"", config->isa, (long)n, plan.algorithm);
        }
}
END_TEST

/* What takes some microseconds is shared with who is awake, what takes one is not. */
START_TEST(few_rows_are_shared_as_any_brief_work)
{
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
        const int64_t vl = config->kernels->nr / 2;
        const gemm_desc some = rows_of_memory(3, 40 * vl, 512), least = rows_of_memory(3, 5 * vl, 512);
        gemm_plan plan;
        cek__gemm_plan(&some, config, 2, &plan);
        EXPECT(plan.product.thin && plan.product.brief && plan.product.workers == 2, "%s: \"%s\", %d workers",
               config->isa, plan.algorithm, plan.product.workers);
        cek__gemm_plan(&least, config, 2, &plan);
        EXPECT(plan.product.workers == 1, "%s: \"%s\" shared", config->isa, plan.algorithm);
    }
}
END_TEST

/* Both lie along k: to bring B's columns to tiles would be most of the work, of a layer's few samples as of its few
 * classes. */
START_TEST(few_rows_of_long_sums_are_dot_products)
{
    static const struct {
        int64_t m, n, k;
        bool dots;
    } cases[] = {
        { 8, 1000, 512, true },   { 12, 300, 300, true },   { 10, 512, 4096, true },  { 256, 10, 512, true },
        { 12, 20, 256, true },    { 64, 1000, 512, false }, { 25, 1000, 512, false }, { 8, 2500, 2100, false },
        { 16, 512, 4096, false }, { 300, 300, 300, false },
    };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int n = 0; n < (int)(sizeof cases / sizeof *cases); n++) {
            gemm_desc d = rows_of_memory(cases[n].m, cases[n].n, cases[n].k);
            gemm_plan plan;
            d.b = (gemm_matrix){ CPU_F32, 1, d.k, 0 };
            cek__gemm_plan(&d, config, 1, &plan);
            EXPECT(plan.vector == cases[n].dots, "%s: %ldx%ldx%ld: \"%s\"", config->isa, (long)d.m, (long)d.n,
                   (long)d.k, plan.algorithm);
            EXPECT(!plan.vector || plan.d.m == (d.m < d.n ? d.m : d.n), "%s: %ld vectors", config->isa, (long)plan.d.m);
        }
}
END_TEST

/* Ten classes by a layer's features, of a small batch: of L2's rows copies are made at once, and vectors of ten are not
 * full. Sixteen are. */
START_TEST(a_near_matrix_of_few_columns_is_no_half_vector)
{
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int64_t few = 10; few <= 16; few += 6) {
            gemm_desc d = rows_of_memory(128, few, 64);
            gemm_plan plan;
            if (config->kernels->nr / 2 < 16)
                continue;
            d.a = (gemm_matrix){ CPU_F32, 1, 128, 0 };
            cek__gemm_plan(&d, config, 1, &plan);
            EXPECT(plan.swapped == (few == 10), "%s: %ld columns: \"%s\"", config->isa, (long)few, plan.algorithm);
        }
}
END_TEST

/* Else narrow tiles would have a load for each multiply-add, and a line of memory for each step: rows of memory are
 * B's, in whichever role the caller has them. Rows of B that fill no panels would be narrow, too. */
START_TEST(rows_that_narrow_tiles_would_meet_as_columns_are_b)
{
    static const struct {
        int64_t m, n, k;
        bool turned; /* A's columns lie along memory */
        bool swapped;
    } cases[] = {
        { 512, 16, 512, true, true },    { 80, 16, 1000, true, false },   { 512, 32, 512, true, false },
        { 1000, 48, 300, true, true },   { 16, 1000, 512, false, false }, { 48, 1000, 1000, false, false },
        { 32, 1000, 1000, false, true },
    };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (size_t x = 0; x < sizeof cases / sizeof *cases; x++) {
            gemm_desc d = rows_of_memory(cases[x].m, cases[x].n, cases[x].k);
            gemm_plan plan;
            if (config->kernels->nr / 2 < 16)
                continue;
            if (cases[x].turned)
                d.a = (gemm_matrix){ CPU_F32, 1, d.m, 0 };
            cek__gemm_plan(&d, config, 1, &plan);
            EXPECT(plan.swapped == cases[x].swapped, "%s, %ld x %ld x %ld: \"%s\"", config->isa, (long)d.m, (long)d.n,
                   (long)d.k, plan.algorithm);
        }
}
END_TEST

/* Else each would push the others out of L1 before the next float of their lines is wanted. */
START_TEST(rows_that_meet_in_one_set_of_l1_are_few_in_a_panel)
{
    enum { ROWS = 56, DEPTH = 3 };
    static const int64_t strides[] = { 1, 1000, 1022, 1023, 1024, 1025, 1026, 2047, -2048 };
    static float a[ROWS * 2048];
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (size_t x = 0; x < sizeof strides / sizeof *strides; x++) {
            const int64_t stride = strides[x];
            const int meet = stride != 1 && stride != 1000 && stride != 1022 && stride != 1026;
            const pack_operand operand = pack_of(a, CPU_F32, stride, 1, PACK_DIRECT);
            const float *panels[ROWS];
            int64_t rows[ROWS];
            int32_t offset[DEPTH];
            const walk_scratch to = { .a_offset = offset, .a_panel = panels, .a_rows = rows };
            const int64_t height = meet && config->kernels->mr > 7 ? 7 : config->kernels->mr;
            cek__pack_a(config->kernels, &operand, 0, ROWS, 0, DEPTH, &to);
            EXPECT(rows[0] <= height && rows[0] > height - 2, "%s: %ld rows of %ld floats", config->isa, (long)rows[0],
                   (long)stride);
        }
}
END_TEST

/* A few rows of sums, which pass side by side again and again, stay in L1: they lie an odd number of lines apart, and
 * are no longer than that allows, but no shorter than the page that is read of a row of B. */
START_TEST(sums_of_few_rows_do_not_meet_in_one_set_of_l1)
{
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int64_t m = 1; m <= CPU_THIN_MAX; m++)
            for (int64_t n = 512; n <= 8192; n *= 2) {
                const gemm_desc d = rows_of_memory(m, n, 2048);
                gemm_plan plan;
                cek__gemm_plan(&d, config, 2, &plan);
                const int64_t apart = product_sums_ld(&plan.product,
                                                      plan.product.splits > 1 ? n : plan.product.sizes.nb);
                const int64_t longest = m < 4 ? 4096 / m : 1024, nb = plan.product.sizes.nb;
                EXPECT(plan.product.thin && apart / 16 % 2 == 1 && nb <= longest && nb >= (n < 1024 ? n : 1024),
                       "%s, %ld x %ld: sums of %ld, %ld apart", config->isa, (long)m, (long)n, (long)nb, (long)apart);
            }
}
END_TEST

/* In these roles, whichever are the better ones. */
static product_plan planned_as_it_is(const gemm_desc *d, const cpu_config *config)
{
    product_plan p = { .m = d->m, .n = d->n, .k = d->k, .batch = 1, .config = config, .workers = 1, .in_place = 1 };
    cek__gemm_operands(d, &p);
    cek__product_plan(&p);
    return p;
}

/* While few rows of A pass by a block of B the next one comes into L2 beside it: blocks half as large, of rows that
 * meet there half as deep, too. A near B is there, and of many rows only the last have the next block beside them. */
START_TEST(blocks_of_a_far_b_leave_room_for_the_next)
{
    enum { FAR, MEETING, MANY_ROWS, NEAR, CASES };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
        const gemm_desc few_columns = rows_of_memory(100, 3 * config->kernels->nr, 50000);
        const product_plan deep = planned_as_it_is(&few_columns, config); /* all of them at once, A passes once */
        EXPECT(deep.sizes.kc > config->floats.kc && deep.sizes.nc == 0, "%s: %ld columns, blocks %ld deep", config->isa,
               (long)deep.sizes.nc, (long)deep.sizes.kc);
        for (int which = 0; which < CASES; which++) {
            const cpu_blocks *blocks = &config->floats;
            const int64_t m = which == MANY_ROWS ? 5 * blocks->mc : 4 * blocks->mc, n = which == MEETING ? 5120 : 5000;
            const gemm_desc d = which == NEAR ? rows_of_memory(m, 500, 500) : rows_of_memory(m, n, 2000);
            const product_plan p = planned_as_it_is(&d, config);
            const int64_t row_bytes = 4 * p.sizes.kc, columns = p.sizes.nc ? p.sizes.nc : p.sizes.nb;
            const int64_t whole = which <= MEETING ? blocks->b_bytes / 2 : blocks->b_bytes;
            EXPECT(columns * row_bytes < whole + config->kernels->nr * row_bytes && columns * row_bytes > whole / 2,
                   "%s, case %d: blocks of %ld KiB", config->isa, which, (long)(columns * row_bytes) >> 10);
            EXPECT((p.sizes.kc <= blocks->kc / 2) == (which == MEETING), "%s, case %d: blocks %ld deep", config->isa,
                   which, (long)p.sizes.kc);
        }
    }
}
END_TEST

/* Rows a multiple of 2 KiB apart come late, whoever asks for them: tiles read such columns of A where they lie sooner
 * than they pack such rows of B, unless a narrow tile would. */
START_TEST(rows_of_a_far_b_that_meet_are_columns_of_a)
{
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int64_t m = 48; m <= 64; m += 16) {
            const gemm_desc d = rows_of_memory(m, 25088, 1024);
            gemm_plan plan;
            if (config->kernels->mr <= CPU_LOW || config->kernels->nr < 32)
                continue;
            cek__gemm_plan(&d, config, 1, &plan);
            EXPECT(plan.swapped == (m == 64), "%s: %ld rows: \"%s\"", config->isa, (long)m, plan.algorithm);
        }
}
END_TEST

/* Eight rows of B at once are more streams than processors follow in time; what L2 holds costs less than asking for it.
 * Asked for or not, the sums are the same. */
START_TEST(a_few_rows_ask_for_a_far_b_and_sums_stay_the_same)
{
    enum { ROWS = 2 * CPU_THIN_MAX, COLUMNS = 333, DEPTH = 21 };
    static float a[ROWS * DEPTH], b[DEPTH * COLUMNS], c[2][ROWS * COLUMNS];
    const cpu_config *config;
    uint32_t state = 7;
    for (int x = 0; x < ROWS * DEPTH; x++)
        a[x] = (float)(next_random(&state) % 1000) / 7;
    for (int x = 0; x < DEPTH * COLUMNS; x++)
        b[x] = (float)(next_random(&state) % 1000) / 7;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
        const gemm_desc far = rows_of_memory(4, 2560, 2560), near = rows_of_memory(4, 300, 256);
        gemm_plan plans[2];
        cek__gemm_plan(&near, config, 1, &plans[0]);
        cek__gemm_plan(&far, config, 1, &plans[1]);
        for (int is_far = 0; is_far < 2; is_far++)
            EXPECT(plans[is_far].product.thin && plans[is_far].product.ahead == is_far, "%s, far %d: \"%s\"",
                   config->isa, is_far, plans[is_far].algorithm);
        for (int rows = 1; rows <= ROWS; rows++)
            for (int64_t columns = 1; columns <= COLUMNS; columns += 83) {
                for (int is_far = 0; is_far < 2; is_far++)
                    config->kernels->thin(&(cpu_thin){ .rows = rows,
                                                       .depth = DEPTH,
                                                       .columns = columns,
                                                       .a = a,
                                                       .lda = DEPTH,
                                                       .step = 1,
                                                       .type = CPU_F32,
                                                       .b = b,
                                                       .ldb = COLUMNS,
                                                       .c = c[is_far],
                                                       .ldc = COLUMNS,
                                                       .is_far = is_far });
                EXPECT(memcmp(c[0], c[1], sizeof c[0]) == 0, "%s: %d rows, %ld columns", config->isa, rows,
                       (long)columns);
            }
    }
}
END_TEST

/* Else what comes from memory next would push out of L2 what is read now; and sums that are read and written again for
 * every block stay there, too. Near operands have nothing to wait for. */
START_TEST(of_few_rows_a_far_b_comes_in_flat_blocks)
{
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int64_t m = 8; m <= 24; m += 8)
            for (int is_far = 0; is_far < 2; is_far++) {
                const gemm_desc d = is_far ? rows_of_memory(m, 6144, 2048) : rows_of_memory(m, 512, 256);
                const int flat = is_far && m > config->kernels->mr && m <= 16;
                const product_plan p = planned_as_it_is(&d, config);
                gemm_plan plan;
                cek__gemm_plan(&d, config, 1, &plan);
                /* rows that fill panels do as well as columns of tiles that are higher than wide */
                const bool fills_panels = config->kernels->mr > config->kernels->nr && m % config->kernels->nr == 0;
                EXPECT(!plan.swapped || fills_panels, "%s: %ld rows, far %d: \"%s\"", config->isa, (long)m, is_far,
                       plan.algorithm);
                EXPECT((p.sizes.kc <= config->floats.kc / 4 + 1) == flat, "%s: %ld rows, far %d: blocks of %ld",
                       config->isa, (long)m, is_far, (long)p.sizes.kc);
                EXPECT(!flat || p.sizes.nb * m * 4 <= 128 << 10, "%s: %ld columns", config->isa, (long)p.sizes.nb);
            }
}
END_TEST

/* What an L3 may hold is read where it lies, if so much of it stays in L2. */
START_TEST(flat_blocks_of_a_near_b_are_twice_as_deep)
{
    static const struct {
        int64_t n, k;
        int deep;
    } near_shapes[] = { { 1760, 1760, 1 }, { 1024, 2048, 1 }, { 2048, 2048, 0 }, { 2064, 2048, 0 }, { 2064, 2000, 1 } };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (size_t x = 0; x < sizeof near_shapes / sizeof *near_shapes; x++) {
            const gemm_desc d = rows_of_memory(16, near_shapes[x].n, near_shapes[x].k);
            const int64_t quarter = config->floats.kc / 4, kc = planned_as_it_is(&d, config).sizes.kc;
            EXPECT((kc > quarter + 1) == near_shapes[x].deep && kc <= 2 * quarter + 1, "%s: %ld x %ld: blocks of %ld",
                   config->isa, (long)d.n, (long)d.k, (long)kc);
        }
}
END_TEST

/* Rows of layers of 1,024 and 2,048, of 8 to 16 MiB together, or of any size beyond L2 for a single panel of A. */
START_TEST(rows_that_come_late_do_so_in_flat_blocks)
{
    static const struct {
        int64_t n, k;
        int late;
    } late_shapes[] = { { 1024, 2048, 1 }, { 1024, 4096, 1 }, { 2048, 2048, 1 }, { 1040, 4096, 0 },
                        { 3072, 1024, 0 }, { 2048, 2049, 0 }, { 1024, 2047, 0 } };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (size_t x = 0; x < sizeof late_shapes / sizeof *late_shapes; x++)
            for (int64_t m = 8; m <= 33; m = m == 8 ? 32 : m + 1) {
                if (m == 8 && m > config->kernels->mr)
                    continue;
                const gemm_desc d = rows_of_memory(m, late_shapes[x].n, late_shapes[x].k);
                const int flat = m == 8 ? d.n == 1024 || d.n == 2048 : late_shapes[x].late && m == 32;
                const int64_t depth = m == 8 ? WALK_LATE_DEPTH : config->floats.kc / 4 + 1;
                const product_plan p = planned_as_it_is(&d, config);
                gemm_plan plan;
                cek__gemm_plan(&d, config, 1, &plan);
                /* likewise; of halves of AVX-512's panels always */
                const bool may = m % (config->kernels->nr / 2) == 0 && config->kernels->mr > CPU_LOW && d.n < 3072;
                EXPECT(plan.swapped ? may && plan.product.way_a == PACK_DIRECT : !may || config->kernels->nr < 32,
                       "%s: %ld x %ld x %ld: \"%s\"", config->isa, (long)m, (long)d.n, (long)d.k, plan.algorithm);
                EXPECT((p.sizes.kc <= depth) == flat, "%s: %ld x %ld x %ld: blocks of %ld", config->isa, (long)m,
                       (long)d.n, (long)d.k, (long)p.sizes.kc);
            }
}
END_TEST

/* Vectors that are lines. */
START_TEST(a_large_result_passes_the_caches_by_whole_lines_alone)
{
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
        const gemm_desc large = rows_of_memory(4096, 8192, 64), small = rows_of_memory(512, 512, 64);
        const int is_line = config->kernels->nr / 2 * 4 == 64;
        gemm_plan plan;
        cek__gemm_plan(&large, config, 1, &plan);
        EXPECT(!plan.swapped && plan.product.stream == is_line, "%s: %d", config->isa, plan.product.stream);
        cek__gemm_plan(&small, config, 1, &plan);
        EXPECT(!plan.product.stream, "%s: of a small one", config->isa);
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

/* 64 x 64 x 64 takes 5 us of one core, less than waking another one. */
START_TEST(a_product_of_some_microseconds_is_shared_with_few_workers_and_wakes_nobody)
{
    const cpu_config *config = cek__config_select("portable");
    const gemm_desc less = rows_of_memory(16, 16, 16), some = rows_of_memory(64, 64, 32),
                    more = rows_of_memory(300, 300, 300);
    gemm_plan plan;

    cek__gemm_plan(&less, config, 2, &plan);
    EXPECT(plan.product.serial, "%g cycles", plan.product.cost);
    cek__gemm_plan(&some, config, 64, &plan);
    EXPECT(plan.product.serial, "%g cycles for 64 workers", plan.product.cost);
    cek__gemm_plan(&some, config, 2, &plan);
    EXPECT(!plan.product.serial && plan.product.brief, "%g cycles", plan.product.cost);
    EXPECT(plan.product.sizes.mb == 32 || plan.product.sizes.nb == 32, "tasks of %d x %d", (int)plan.product.sizes.mb,
           (int)plan.product.sizes.nb);
    cek__gemm_plan(&more, config, 2, &plan);
    EXPECT(!plan.product.serial && !plan.product.brief, "%g cycles", plan.product.cost);
}
END_TEST

/* Each core transposes what it multiplies by, not both of them all of it. */
START_TEST(cores_share_out_the_columns_of_a_transposed_matrix)
{
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int64_t n = 64; n <= 256; n += 64) {
            gemm_desc d = rows_of_memory(32, n, n);
            gemm_plan plan;
            d.b = (gemm_matrix){ CPU_F32, 1, n, 0 };
            cek__gemm_plan(&d, config, 2, &plan);
            EXPECT(plan.product.serial || plan.product.sizes.nb < n, "%s: tasks of %d x %d", config->isa,
                   (int)plan.product.sizes.mb, (int)plan.product.sizes.nb);
        }
}
END_TEST

START_TEST(a_block_of_rows_is_whole_tiles_of_every_family)
{
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
        ck_assert_msg(config->floats.mc % config->kernels->mr == 0, "%s", config->isa);
        ck_assert_msg(config->bf16 == NULL || config->words.mc % config->bf16->height == 0, "%s", config->isa);
    }
}
END_TEST

int main(void)
{
    memory_keep();
    Suite *suite = suite_create("cpu_gemm_plan");
    TCase *tests = tcase_create("gemm plan");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_matrix_that_lies_along_few_rows_is_read_where_it_lies);
    tcase_add_test(tests, one_row_meets_b_where_it_lies);
    tcase_add_loop_test(tests, bits_do_not_depend_on_the_number_of_workers, 0, 2);
    tcase_add_test(tests, what_decides_bits_follows_from_no_number_of_workers);
    tcase_add_test(tests, columns_that_fill_one_vector_count_as_one);
    tcase_add_test(tests, of_few_columns_rows_are_read_where_they_lie_in_deep_blocks);
    tcase_add_test(tests, of_few_columns_columns_of_memory_are_read_where_they_lie);
    tcase_add_test(tests, of_few_rows_columns_of_b_are_rows_unless_they_meet_in_l1);
    tcase_add_test(tests, few_rows_are_shared_as_any_brief_work);
    tcase_add_test(tests, few_rows_of_long_sums_are_dot_products);
    tcase_add_test(tests, a_near_matrix_of_few_columns_is_no_half_vector);
    tcase_add_test(tests, rows_that_narrow_tiles_would_meet_as_columns_are_b);
    tcase_add_test(tests, rows_that_meet_in_one_set_of_l1_are_few_in_a_panel);
    tcase_add_test(tests, blocks_of_a_far_b_leave_room_for_the_next);
    tcase_add_test(tests, rows_of_a_far_b_that_meet_are_columns_of_a);
    tcase_add_test(tests, a_few_rows_ask_for_a_far_b_and_sums_stay_the_same);
    tcase_add_test(tests, of_few_rows_a_far_b_comes_in_flat_blocks);
    tcase_add_test(tests, flat_blocks_of_a_near_b_are_twice_as_deep);
    tcase_add_test(tests, rows_that_come_late_do_so_in_flat_blocks);
    tcase_add_test(tests, a_large_result_passes_the_caches_by_whole_lines_alone);
    tcase_add_test(tests, a_worker_s_memory_is_aligned);
    tcase_add_test(tests, a_product_of_some_microseconds_is_shared_with_few_workers_and_wakes_nobody);
    tcase_add_test(tests, cores_share_out_the_columns_of_a_transposed_matrix);
    tcase_add_test(tests, a_block_of_rows_is_whole_tiles_of_every_family);
    tcase_add_test(tests, sums_of_few_rows_do_not_meet_in_one_set_of_l1);
    tcase_add_test(tests, nothing_beside_operands_is_touched);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
