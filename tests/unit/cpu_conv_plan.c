/* cpu_conv_plan.c - how convolutions of the CPU backend are computed: by which method, in memory in proportion, with
 * bits that follow from no number of workers and from no packing, and nothing touched beside operands. */
#include "backends/cpu/conv/winograd_tiles.h"
#include "tests/unit/conv_problem.h"

/* Plans alone: what tiles of products or padding would waste is seen, memory stays in proportion for any number of
 * channels and workers, and how many workers there are changes no choice: bits would follow. */
START_TEST(transforms_are_chosen_where_they_pay)
{
    static const struct {
        int direction, transformed, few; /* tiles, so that weights are transformed where they are used */
        geometry g;
    } cases[] = {
        { CONV_FORWARD, 1, 0, { 8, 256, 256, 1, { NONE, { 28, 3, 1, 1, 1, 1 }, { 28, 3, 1, 1, 1, 1 } } } },
        { CONV_BACKWARD_DATA, 1, 0, { 8, 256, 256, 1, { NONE, { 28, 3, 1, 1, 1, 1 }, { 28, 3, 1, 1, 1, 1 } } } },
        { CONV_BACKWARD_WEIGHTS, 1, 0, { 8, 256, 256, 1, { NONE, { 28, 3, 1, 1, 1, 1 }, { 28, 3, 1, 1, 1, 1 } } } },
        { CONV_FORWARD, 1, 1, { 8, 512, 512, 1, { NONE, { 7, 3, 1, 1, 1, 1 }, { 7, 3, 1, 1, 1, 1 } } } },
        { CONV_BACKWARD_DATA, 1, 1, { 8, 512, 512, 1, { NONE, { 7, 3, 1, 1, 1, 1 }, { 7, 3, 1, 1, 1, 1 } } } },
        { CONV_FORWARD, 1, 1, { 2, 150, 70, 1, { NONE, { 15, 3, 1, 1, 1, 1 }, { 16, 3, 1, 1, 0, 2 } } } },
        { CONV_BACKWARD_DATA, 1, 1, { 2, 150, 70, 1, { NONE, { 15, 3, 1, 1, 1, 1 }, { 16, 3, 1, 1, 0, 2 } } } },
        /* dx has four pixels, however many dy has */
        { CONV_BACKWARD_DATA, 0, 0, { 1, 64, 64, 1, { NONE, { 2, 3, 1, 1, 20, 20 }, { 2, 3, 1, 1, 20, 20 } } } },
        /* 33 channels fill two tiles of 32, 9 times 33 fill ten */
        { CONV_BACKWARD_WEIGHTS, 0, 0, { 16, 33, 512, 1, { NONE, { 3, 3, 1, 1, 1, 1 }, { 3, 3, 1, 1, 1, 1 } } } },
    };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            conv_plan plan;
            conv_desc d;
            desc_make(&cases[c].g, &(kind){ 0 }, (conv_direction)cases[c].direction, &d);
            cek__conv_plan(&d, config, 1, &plan);
            EXPECT(plan.inexact == cases[c].transformed && (plan.winograd.depth != 0) == cases[c].few,
                   "%s, case %d: %s", config->isa, (int)c, plan.algorithm);
        }
        for (int64_t channels = 16; channels <= 1 << 20; channels *= 4)
            for (int c = 0; c < 18; c++) { /* one image, whose tiles are fewer than the workers, or eight */
                conv_plan plan, alone;
                conv_desc d;
                const geometry g = { c < 9 ? 1 : 8,
                                     c % 3 == 1 ? 16 : channels,
                                     c % 3 == 2 ? 16 : channels,
                                     1,
                                     { NONE, { 28, 3, 1, 1, 1, 1 }, { 28, 3, 1, 1, 1, 1 } } };
                desc_make(&g, &(kind){ 0 }, (conv_direction)(c / 3 % 3), &d);
                cek__conv_plan(&d, config, 1, &alone);
                cek__conv_plan(&d, config, 64, &plan);
                EXPECT(plan.algorithm == alone.algorithm, "%s, %ld to %ld channels, direction %d: %s alone, %s",
                       config->isa, (long)g.in_channels, (long)g.out_channels, (int)d.direction, alone.algorithm,
                       plan.algorithm);
                EXPECT(!plan.inexact || plan.workspace_bytes <= (256u << 20) + 64 * (16u << 20),
                       "%s, %ld to %ld channels, direction %d: %zu bytes", config->isa, (long)g.in_channels,
                       (long)g.out_channels, (int)d.direction, plan.workspace_bytes);
            }
    }
}
END_TEST

/* One tap without padding is a product of pixels, with strides too, each of whose gradients goes to a pixel of its own.
 * Values: cpu_conv.c. */
START_TEST(one_tap_is_a_product_backward_with_and_without_strides)
{
    static const struct {
        const char *algorithm;
        geometry g;
    } cases[] = {
        { "gemm", { 3, 20, 37, 1, { NONE, { 4, 1, 1, 1, 0, 0 }, { 5, 1, 1, 1, 0, 0 } } } },
        { "gemm, spread", { 2, 40, 35, 1, { NONE, { 9, 1, 2, 1, 0, 0 }, { 30, 1, 2, 1, 0, 0 } } } },
        { "gemm, spread", { 2, 20, 10, 2, { NONE, { 5, 1, 2, 1, 0, 0 }, { 6, 1, 3, 1, 0, 0 } } } },
        /* a gradient of padding is no pixel's */
        { "scattered gemm", { 1, 32, 20, 1, { NONE, { 6, 1, 2, 1, 0, 2 }, { 25, 1, 3, 1, 0, 3 } } } },
    };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            conv_plan plan;
            conv_desc d;
            desc_make(&cases[c].g, &(kind){ 0 }, CONV_BACKWARD_DATA, &d);
            cek__conv_plan(&d, config, 1, &plan);
            EXPECT(strcmp(plan.algorithm, cases[c].algorithm) == 0, "%s, case %d: \"%s\"", config->isa, (int)c,
                   plan.algorithm);
        }
}
END_TEST

/* Of 3 x 3 taps around one pixel the middle one is a matrix; of steps of two around four pixels four taps are left. */
START_TEST(taps_that_never_see_an_image_are_cut)
{
    const geometry one = { 32, 64, 48, 1, { NONE, { 1, 3, 1, 1, 1, 1 }, { 1, 3, 1, 1, 1, 1 } } };
    const geometry four = { 32, 64, 48, 1, { NONE, { 2, 3, 2, 1, 1, 1 }, { 2, 3, 2, 1, 1, 1 } } };
    const geometry all = { 32, 64, 48, 1, { NONE, { 2, 3, 1, 1, 1, 1 }, { 2, 3, 1, 1, 1, 1 } } };
    const kind k = { 0 };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int direction = CONV_FORWARD; direction <= CONV_BACKWARD_WEIGHTS; direction++) {
            conv_desc d;
            conv_plan plan;
            desc_make(&one, &k, (conv_direction)direction, &d);
            cek__conv_plan(&d, config, 1, &plan);
            ck_assert_str_eq(plan.algorithm, "gemm");
            desc_make(&four, &k, (conv_direction)direction, &d);
            cek__conv_plan(&d, config, 1, &plan);
            ck_assert(plan.cut && plan.d.kernel[1] == 2 && plan.d.kernel[2] == 2 && plan.d.pad[1] == 0);
            desc_make(&all, &k, (conv_direction)direction, &d);
            cek__conv_plan(&d, config, 1, &plan);
            ck_assert(!plan.cut && plan.d.kernel[1] == 3);
        }
}
END_TEST

/* Memory is waited for by what is A, unless that is read where it lies, as by few channels that fill vectors. */
START_TEST(of_one_tap_the_wider_image_is_b_where_sums_are_long_and_a_is_copied)
{
    static const struct {
        int64_t in, out, size;
        int turned, stays;
    } cases[] = { { 64, 256, 56, 0, 1 },  { 256, 64, 56, 1, 1 },   { 64, 64, 56, 0, 1 },
                  { 17, 96, 56, 1, 0 },   { 96, 17, 56, 0, 0 },    { 64, 128, 20, 0, 1 },
                  { 128, 256, 56, 1, 0 }, { 256, 1024, 14, 0, 0 }, { 17, 17, 56, 0, 1 } };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            const int64_t size = cases[c].size;
            const geometry g = {
                8, cases[c].in, cases[c].out, 1, { NONE, { size, 1, 1, 1, 0, 0 }, { size, 1, 1, 1, 0, 0 } }
            };
            conv_plan plan;
            conv_desc d;
            desc_make(&g, &(kind){ 0 }, CONV_BACKWARD_WEIGHTS, &d);
            cek__conv_plan(&d, config, 1, &plan);
            EXPECT(plan.product.store_across == cases[c].turned &&
                       plan.product.way_a == (cases[c].stays ? PACK_DIRECT : PACK_ACROSS),
                   "%s, case %d: across %d, way %d", config->isa, (int)c, plan.product.store_across,
                   (int)plan.product.way_a);
        }
}
END_TEST

/* A slab of few positions would be passed by for each of them. */
START_TEST(of_weights_a_large_gradient_is_added_to_seldom)
{
    static const geometry cases[] = {
        { 8, 256, 256, 1, { NONE, { 28, 3, 2, 1, 1, 1 }, { 28, 3, 2, 1, 1, 1 } } },
        { 8, 512, 512, 1, { NONE, { 14, 3, 2, 1, 1, 1 }, { 14, 3, 2, 1, 1, 1 } } },
    };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (size_t g = 0; g < sizeof cases / sizeof *cases; g++) {
            conv_plan plan;
            conv_desc d;
            desc_make(&cases[g], &(kind){ 0 }, CONV_BACKWARD_WEIGHTS, &d);
            cek__conv_plan(&d, config, 1, &plan);
            EXPECT(plan.product.sizes.kc >= config->floats.kc / 4, "%s, case %d: blocks of %ld: %s", config->isa,
                   (int)g, (long)plan.product.sizes.kc, plan.algorithm);
        }
}
END_TEST

/* In which there is nothing else to wait for: of one image they are as large as what they multiply. */
START_TEST(weights_of_a_small_image_are_asked_for_ahead)
{
    static const geometry g = { 1, 512, 512, 1, { NONE, { 14, 3, 2, 1, 1, 1 }, { 14, 3, 2, 1, 1, 1 } } };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
        conv_plan plan;
        conv_desc d;
        desc_make(&g, &(kind){ 0 }, CONV_FORWARD, &d);
        cek__conv_plan(&d, config, 1, &plan);
        EXPECT(plan.product.way_b == PACK_ALONG && plan.product.ahead, "%s: %s", config->isa, plan.algorithm);
    }
}
END_TEST

/* A line of any length is no reason for a worker's memory to have one, nor for offsets that 32 bits do not hold. Plans
 * alone. */
START_TEST(memory_stays_in_proportion_to_blocks_however_long_a_line_is)
{
    static const geometry lines[] = {
        { 1, 64, 64, 1, { NONE, NONE, { 1 << 20, 3, 1, 1, 1, 1 } } },
        { 1, 64, 64, 1, { NONE, NONE, { 1 << 20, 3, 2, 1, 1, 1 } } },
        { 1, 1, 80000, 1, { NONE, NONE, { 30002, 3, 1, 1, 0, 0 } } },
    };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (size_t g = 0; g < sizeof lines / sizeof *lines; g++) {
            conv_plan plan;
            conv_desc d;
            desc_make(&lines[g], &(kind){ 0 }, (conv_direction)_i, &d);
            cek__conv_plan(&d, config, 1, &plan);
            EXPECT(plan.workspace_bytes <= 32 << 20, "%s, geometry %d: %zu bytes: %s", config->isa, (int)g,
                   plan.workspace_bytes, plan.algorithm);
            EXPECT(plan.product.way_b != PACK_DIRECT || plan.product.sizes.kc * d.out_channels <= INT32_MAX,
                   "%s, geometry %d: blocks of %ld: %s", config->isa, (int)g, (long)plan.product.sizes.kc,
                   plan.algorithm);
        }
}
END_TEST

/* Plans alone, of any shapes: in which order sums are made, and with which instructions. */
START_TEST(what_decides_bits_follows_from_no_number_of_workers)
{
    const cpu_config *config;
    uint32_t state = 11;
    for (int i = 0; i < 300; i++) {
        const int64_t groups = next_random(&state) % 4 ? 1 : 1 + next_random(&state) % 4;
        geometry g = { 1 + next_random(&state) % 20,
                       groups * (1 + next_random(&state) % 200),
                       groups * (1 + next_random(&state) % 200),
                       groups,
                       { NONE, NONE, NONE } };
        for (int dim = next_random(&state) % 8 == 0 ? 0 : 1; dim < 3; dim++) {
            const int64_t kernel = 1 + next_random(&state) % 5, size = kernel + next_random(&state) % 60;
            g.dim[dim].in = size;
            g.dim[dim].kernel = kernel;
            g.dim[dim].stride = 1 + next_random(&state) % 4 / 3;
            g.dim[dim].before = g.dim[dim].after = next_random(&state) % kernel;
        }
        const cpu_type type = next_random(&state) % 3 ? CPU_F32 : CPU_BF16;
        const kind k = { .x = type, .w = type, .y = type, .accumulate = (int)(next_random(&state) % 2) };
        for (int direction = CONV_FORWARD; direction <= CONV_BACKWARD_WEIGHTS; direction++)
            for (int c = 0; (config = cek__config_at(c)) != NULL; c++) {
                conv_plan alone, plan;
                conv_desc d;
                desc_make(&g, &k, (conv_direction)direction, &d);
                cek__conv_plan(&d, config, 1, &alone);
                for (int workers = 3; workers <= 64; workers *= 4) {
                    cek__conv_plan(&d, config, workers, &plan);
                    const product_plan *p = &alone.product, *q = &plan.product;
                    const winograd_plan *v = &alone.winograd, *w = &plan.winograd;
                    const scatter_plan *s = &alone.scatter, *t = &plan.scatter;
                    EXPECT(plan.method == alone.method && plan.algorithm == alone.algorithm &&
                               plan.pixels == alone.pixels && p->splits == q->splits &&
                               p->split_depth == q->split_depth && p->sizes.kc == q->sizes.kc &&
                               p->in_place == q->in_place && p->add == q->add && p->words == q->words &&
                               v->form == w->form && v->depth == w->depth && v->splits == w->splits &&
                               v->rows == w->rows && (direction != CONV_BACKWARD_WEIGHTS || v->block == w->block) &&
                               s->channels == t->channels && s->images == t->images && s->lines == t->lines &&
                               s->heights == t->heights && s->rows == t->rows && s->sizes.kc == t->sizes.kc,
                           "%s, case %d, direction %d, %d workers: \"%s\", not \"%s\"", config->isa, i, direction,
                           workers, plan.algorithm, alone.algorithm);
                }
            }
    }
}
END_TEST

/* Without threads: what is touched where nothing may be ends the test. */
START_TEST(nothing_beside_operands_is_touched)
{
    for (int first = 0; first < 2; first++)
        for (int type = CPU_F32; type <= CPU_F16; type++) {
            const cpu_type t = (cpu_type)type, tw = _i == CONV_BACKWARD_WEIGHTS ? CPU_F32 : t;
            const kind k = { .x = t, .w = tw, .y = t, .bias = 1, .accumulate = first, .deriv = CPU_ACT_RELU };
            for (int g = 0; g < GEOMETRIES; g++) {
                const cpu_config *config;
                problem p, q;
                problem_make(&geometries[g], &k, (conv_direction)_i, &p);
                const outcome o = outcome_of(&p);
                q = p;
                q.x = fenced(k.x, p.nx, p.x, first);
                q.w = fenced(k.w, p.nw, p.w, first);
                q.y = fenced(k.y, p.ny, p.y, first);
                q.ref = fenced(k.x, p.nx, p.ref, first);
                q.bias = fenced(CPU_F32, p.nb, p.bias, first);
                for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
                    void *out = fenced(o.type, o.n, o.old, first);
                    float *dbias = fenced(CPU_F32, p.nb, p.bias, first);
                    run(&q, &k, config, NULL, out, dbias);
                    fenced_free(o.type, o.n, out);
                    fenced_free(CPU_F32, p.nb, dbias);
                }
                fenced_free(k.x, p.nx, q.x);
                fenced_free(k.w, p.nw, q.w);
                fenced_free(k.y, p.ny, q.y);
                fenced_free(k.x, p.nx, q.ref);
                fenced_free(CPU_F32, p.nb, q.bias);
                problem_free(&p);
            }
        }
}
END_TEST

START_TEST(bits_do_not_depend_on_the_number_of_workers)
{
    const kind k = { .bias = 1 };
    for (int g = 0; g < GEOMETRIES; g++) {
        const cpu_config *config = cek__config_at(0);
        problem p;
        problem_make(&geometries[g], &k, (conv_direction)_i, &p);
        const outcome o = outcome_of(&p);
        void *first = copied(o.type, o.n, o.old);
        float *first_bias = copied(CPU_F32, p.nb, p.bias);
        run(&p, &k, config, NULL, first, first_bias);
        for (int workers = 2; workers <= 5; workers += 3) {
            cpu_threads *threads;
            ck_assert_int_eq(cek__threads_create(workers, NULL, 0, &threads), 0);
            void *out = copied(o.type, o.n, o.old);
            float *dbias = copied(CPU_F32, p.nb, p.bias);
            run(&p, &k, config, threads, out, dbias);
            EXPECT(memcmp(out, first, (size_t)o.n * 4) == 0, "geometry %d, %d workers", g, workers);
            ck_assert_mem_eq(dbias, first_bias, (size_t)p.nb * 4);
            filled_free(o.type, o.n, out);
            filled_free(CPU_F32, p.nb, dbias);
            cek__threads_destroy(threads);
        }
        filled_free(o.type, o.n, first);
        filled_free(CPU_F32, p.nb, first_bias);
        problem_free(&p);
    }
}
END_TEST

/* By any configuration and method, of any type, of what one thread packs or two. Those that have no product take none,
 * nor do words. */
START_TEST(packed_weights_give_the_same_bits)
{
    const cpu_type type = (cpu_type)(_i / 2);
    const kind k = { .x = type, .w = type, .y = type, .bias = 1, .integers = _i % 2, .act = CPU_ACT_RELU };
    const cpu_config *config;
    cpu_threads *threads;
    ck_assert_int_eq(cek__threads_create(2, NULL, 0, &threads), 0);
    for (int g = 0; g < GEOMETRIES; g++) {
        problem p;
        problem_make(&geometries[g], &k, CONV_FORWARD, &p);
        for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
            problem q = p;
            conv_plan plan;
            void *plain = copied(type, p.ny, p.y), *packed = copied(type, p.ny, p.y);
            q.d.packed = 1;
            cek__conv_plan(&q.d, config, 2, &plan);
            const int64_t floats = cek__conv_packed_floats(&plan);
            const bool as_it_is = (type == CPU_BF16 && config->bf16) || (type != CPU_F32 && plan.pixels > 1);
            EXPECT((floats == 0) == (as_it_is || strcmp(plan.algorithm, "depthwise") == 0), "%s, geometry %d: %s",
                   config->isa, g, plan.algorithm);
            if (floats) {
                q.w = guarded((size_t)floats * 4, 0xff);
                cek__conv_pack(&plan, g % 2 ? threads : NULL, p.w, q.w);
                run(&p, &k, config, threads, plain, NULL);
                run(&q, &k, config, threads, packed, NULL);
                EXPECT(memcmp(plain, packed, (size_t)(p.ny * cpu_type_bytes(type))) == 0, "%s, geometry %d: %s",
                       config->isa, g, plan.algorithm);
                guard_free(q.w, (size_t)floats * 4);
            }
            filled_free(type, p.ny, plain);
            filled_free(type, p.ny, packed);
        }
        problem_free(&p);
    }
    cek__threads_destroy(threads);
}
END_TEST

/* What they multiply by zero is not strict, but is nothing: forward, sums have the order of single pixels; of
 * gradients integers are exact. */
START_TEST(pixels_are_taken_together_where_they_fill_vectors)
{
    const kind k = { .bias = 1,
                     .act = CPU_ACT_RELU,
                     .deriv = CPU_ACT_RELU,
                     .accumulate = _i != CONV_FORWARD,
                     .integers = _i != CONV_FORWARD };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int parts = 1; parts <= 2; parts++) {
            const geometry g = together(config, (conv_direction)_i, parts);
            problem p;
            void *out[2];
            problem_make(&g, &k, (conv_direction)_i, &p);
            const outcome o = outcome_of(&p);
            for (int strict = 0; strict < 2; strict++) {
                const int wide = !strict || _i == CONV_BACKWARD_WEIGHTS;
                conv_plan plan;
                p.d.strict = strict;
                cek__conv_plan(&p.d, config, 1, &plan);
                EXPECT(plan.pixels == (wide ? parts : 1), "%s: %ld pixels, %d", config->isa, (long)plan.pixels, parts);
                EXPECT(plan.inexact == (!strict && parts > 1 && _i != CONV_BACKWARD_WEIGHTS), "%s", config->isa);
                out[strict] = copied(o.type, o.n, o.old);
                float *dbias = copied(CPU_F32, p.nb, p.bias);
                run(&p, &k, config, NULL, out[strict], dbias);
                filled_free(CPU_F32, p.nb, dbias);
            }
            EXPECT(memcmp(out[0], out[1], (size_t)o.n * 4) == 0, "%s, %d pixels together", config->isa, parts);
            filled_free(o.type, o.n, out[0]);
            filled_free(o.type, o.n, out[1]);
            problem_free(&p);
        }
}
END_TEST

/* Packing windows of so few channels would take as long as multiplying them. */
START_TEST(windows_of_few_channels_are_read_where_they_lie)
{
    static const geometry few[] = {
        { 8, 16, 32, 1, { NONE, { 28, 5, 1, 1, 2, 2 }, { 28, 5, 1, 1, 2, 2 } } },
        { 8, 12, 24, 1, { NONE, { 56, 5, 1, 1, 2, 2 }, { 56, 5, 1, 1, 2, 2 } } },
    };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int g = 0; g < 2; g++) {
            conv_plan plan;
            conv_desc d;
            desc_make(&few[g], &(kind){ 0 }, CONV_BACKWARD_WEIGHTS, &d);
            cek__conv_plan(&d, config, 1, &plan);
            EXPECT(strcmp(plan.algorithm, "direct, few channels") == 0, "%s: %s", config->isa, plan.algorithm);
        }
}
END_TEST

static struct told {
    int b, columns, others;
    int64_t tiles, rows;
} told;

static void whole_told(const cpu_tiles *tiles, int64_t depth, const float *a, int64_t lda, const int32_t *a_offset,
                       const float *const *b, const int32_t *b_offset, float *c, int64_t ldc, cpu_store store,
                       cpu_ahead *ahead, cpu_runs runs, int rows)
{
    (void)depth, (void)a, (void)lda, (void)a_offset, (void)b, (void)b_offset, (void)c, (void)ldc, (void)store;
    (void)ahead;
    told.tiles += tiles->count;
    told.rows += tiles->count * rows;
    *(runs == CPU_RUNS_OF_B         ? &told.b
      : runs == CPU_RUNS_OF_COLUMNS ? &told.columns
                                    : &told.others) += (int)tiles->count;
}

/* What tiles of a problem were told, none of which multiplies. */
static struct told told_of(const problem *p, const cpu_config *config, void *out)
{
    static cpu_gemm_tiles *const wholes[CPU_MR_MAX + 1] = { [1 ... CPU_MR_MAX] = whole_told };
    cpu_kernels kernels = *config->kernels;
    cpu_config spied = *config;
    conv_plan plan;
    kernels.gemm = wholes;
    spied.kernels = &kernels;
    cek__conv_plan(&p->d, &spied, 1, &plan);
    void *workspace = guarded(plan.workspace_bytes, 0);
    told = (struct told){ 0 };
    cek__conv_run(&plan, NULL, &(conv_args){ .x = p->x, .w = p->w, .y = p->y, .out = out }, workspace);
    guard_free(workspace, plan.workspace_bytes);
    return told;
}

/* Lines of one tap have no padding: panels go on from one to the next, also of images of 7 pixels. */
START_TEST(panels_of_one_tap_are_as_high_as_tiles)
{
    const kind k = { 0 };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
        const int64_t out = 2 * config->kernels->nr;
        const geometry g = { 8, 64, out, 1, { NONE, { 14, 1, 2, 1, 0, 0 }, { 14, 1, 2, 1, 0, 0 } } };
        problem p;
        problem_make(&g, &k, CONV_FORWARD, &p);
        const struct told tiles = told_of(&p, config, p.y);
        EXPECT(tiles.tiles > 0 && tiles.rows * 10 >= tiles.tiles * config->kernels->mr * 9, "%s: %ld tiles of %ld rows",
               config->isa, (long)tiles.tiles, (long)tiles.rows);
        problem_free(&p);
    }
}
END_TEST

/* Seven taps of a line are no whole runs, but panels of weights have them; tiles that take no other step than theirs
 * know nothing of such runs. */
START_TEST(tiles_that_take_any_step_are_told_of_runs_that_only_b_has)
{
    static const geometry seven = { 1, 3, 64, 1, { NONE, { 40, 7, 2, 1, 3, 3 }, { 40, 7, 2, 1, 3, 3 } } };
    const cpu_config *config;
    problem p;
    problem_make(&seven, &(kind){ .integers = 1 }, CONV_FORWARD, &p);
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
        const struct told of = told_of(&p, config, p.y);
        EXPECT(!of.columns && (config->kernels->any_step ? of.b > 0 && !of.others : !of.b && of.others > 0),
               "%s: %d tiles have runs of B, %d others", config->isa, of.b, of.others);
    }
    problem_free(&p);
}
END_TEST

/* Of weights both operands are tiles of images, whose channels lie side by side. */
START_TEST(tiles_that_take_any_step_are_told_of_columns_of_transformed_gradients)
{
    static const geometry three = { 8, 64, 64, 1, { NONE, { 28, 3, 1, 1, 1, 1 }, { 28, 3, 1, 1, 1, 1 } } };
    const cpu_config *config;
    problem p;
    problem_make(&three, &(kind){ 0 }, CONV_BACKWARD_WEIGHTS, &p);
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
        conv_plan plan;
        cek__conv_plan(&p.d, config, 1, &plan);
        ck_assert_msg(plan.inexact, "%s: %s", config->isa, plan.algorithm);
        const struct told of = told_of(&p, config, p.w);
        EXPECT(!of.b && (config->kernels->any_step ? of.columns > 0 && !of.others : of.others > 0),
               "%s: %d tiles have runs of columns, %d others", config->isa, of.columns, of.others);
    }
    problem_free(&p);
}
END_TEST

enum {
    COMES_LINES = 11,
    COMES_PIXELS = 10,
    COMES_IMAGES = 2,
    COMES_FLOATS = COMES_IMAGES * COMES_LINES * COMES_PIXELS * 192
};

/* What tiles' lines of B ahead would ask for, float by float, and in how many pieces. */
static int comes_all(const winograd_plan *w, winograd_coming *coming, const float *image, unsigned char *seen)
{
    cpu_ahead none = cpu_ahead_none(NULL, 1), *ahead;
    int pieces = 0;
    while ((ahead = cek__winograd_comes(w, coming, &none)) != &none) {
        ck_assert_int_eq(ahead->stretch, coming->stretch);
        for (pieces++; ahead->rows > 0; cpu_ahead_go(ahead)) {
            const int64_t at = ahead->at - image;
            ck_assert_msg(at >= 0 && at < COMES_FLOATS, "float %ld", (long)at);
            for (int64_t i = at; i < at + CPU_FLOATS_AHEAD && i < COMES_FLOATS; i++)
                seen[i]++;
        }
    }
    return pieces;
}

/* Lines that end the image or lie behind it, tiles that begin and end within a line of them, no image at all; pixels of
 * 16 bits that do not begin with words. A call takes a piece and no more, so these must not be small. */
START_TEST(what_comes_while_tiles_multiply_is_the_pixels_that_are_read_next)
{
    enum { FIRST = 2, END = 19, STRETCH = 12, LINES_OF_PARTS = 4 + 3 };
    static const struct {
        cpu_type type;
        int64_t channels, channel, wanted; /* of a pixel */
        int pieces;
    } cases[] = {
        { CPU_F32, 192, 0, 192, 3 },   { CPU_F32, 192, 64, 128, LINES_OF_PARTS + 1 },  { CPU_BF16, 191, 0, 191, 3 },
        { CPU_BF16, 191, 64, 100, 3 }, { CPU_BF16, 192, 64, 128, LINES_OF_PARTS + 1 },
    };
    static float image[COMES_FLOATS];
    static unsigned char seen[COMES_FLOATS];
    const cpu_config *config;

    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
            const winograd_plan w = { .form = &config->kernels->winograd[1], .tiles = { 4, 3 }, .count = 24 };
            const int64_t all = cases[k].channels, channel = cases[k].channel, outputs = w.form->outputs;
            const int64_t bytes = cpu_type_bytes(cases[k].type);
            const winograd_image of = { image, cases[k].type, { COMES_LINES, COMES_PIXELS }, all };
            winograd_coming coming = {
                .count = 3,
                .of = { { .image = of, .first = END, .end = FIRST, .channels = all },
                        { .image = of, .first = FIRST, .end = END, .channel = channel, .channels = cases[k].wanted },
                        { .image = { .size = { 1, 1 } }, .first = 0, .end = 5, .channels = all } },
                .stretch = STRETCH,
            };
            memset(seen, 0, sizeof seen);
            ck_assert_int_eq(comes_all(&w, &coming, image, seen), cases[k].pieces);
            for (int64_t tile = 0; tile < w.count; tile++) {
                int64_t n, at[2];
                cek__winograd_tile(&w, tile, &n, at);
                for (int64_t y = at[0]; y < at[0] + outputs && y < COMES_LINES; y++)
                    for (int64_t x = at[1]; x < at[1] + outputs && x < COMES_PIXELS; x++)
                        for (int64_t c = 0; c < all; c++) {
                            const int64_t pixel = (n * COMES_LINES + y) * COMES_PIXELS + x;
                            const int got = seen[(pixel * all + c) * bytes / 4];
                            const int wanted = tile >= FIRST && tile < END && c >= channel &&
                                               c < channel + cases[k].wanted;
                            EXPECT(cases[k].type == CPU_F32 ? got == wanted : got >= wanted,
                                   "case %d, tile %ld, line %ld, pixel %ld, channel %ld: %d", (int)k, (long)tile,
                                   (long)y, (long)x, (long)c, got);
                        }
            }
        }
}
END_TEST

/* High tiles bring it at a pace of their own; to low ones what is between two stretches costs more. */
START_TEST(squares_that_come_ahead_come_in_stretches_of_the_tiles_height)
{
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
        const cpu_kernels *kernels = config->kernels;
        const int64_t longest = winograd_stretch(kernels, 512, 512), wanted = winograd_stretch(kernels, 512, 6);
        EXPECT(longest == (kernels->mr <= CPU_LOW ? 80 : 8) && wanted == CPU_RUN, "%s: %ld steps, of 6 wanted %ld",
               config->isa, (long)longest, (long)wanted);
    }
}
END_TEST

int main(void)
{
    memory_keep();
    Suite *suite = suite_create("cpu_conv_plan");
    TCase *tests = tcase_create("conv plan");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, transforms_are_chosen_where_they_pay);
    tcase_add_test(tests, one_tap_is_a_product_backward_with_and_without_strides);
    tcase_add_test(tests, taps_that_never_see_an_image_are_cut);
    tcase_add_test(tests, of_one_tap_the_wider_image_is_b_where_sums_are_long_and_a_is_copied);
    tcase_add_test(tests, weights_of_a_small_image_are_asked_for_ahead);
    tcase_add_test(tests, of_weights_a_large_gradient_is_added_to_seldom);
    tcase_add_loop_test(tests, memory_stays_in_proportion_to_blocks_however_long_a_line_is, CONV_FORWARD,
                        CONV_BACKWARD_WEIGHTS + 1);
    tcase_add_test(tests, what_decides_bits_follows_from_no_number_of_workers);
    tcase_add_loop_test(tests, nothing_beside_operands_is_touched, CONV_FORWARD, CONV_BACKWARD_WEIGHTS + 1);
    tcase_add_loop_test(tests, bits_do_not_depend_on_the_number_of_workers, CONV_FORWARD, CONV_BACKWARD_WEIGHTS + 1);
    tcase_add_loop_test(tests, packed_weights_give_the_same_bits, 0, 6);
    tcase_add_test(tests, windows_of_few_channels_are_read_where_they_lie);
    tcase_add_loop_test(tests, pixels_are_taken_together_where_they_fill_vectors, CONV_FORWARD,
                        CONV_BACKWARD_WEIGHTS + 1);
    tcase_add_test(tests, panels_of_one_tap_are_as_high_as_tiles);
    tcase_add_test(tests, tiles_that_take_any_step_are_told_of_runs_that_only_b_has);
    tcase_add_test(tests, tiles_that_take_any_step_are_told_of_columns_of_transformed_gradients);
    tcase_add_test(tests, squares_that_come_ahead_come_in_stretches_of_the_tiles_height);
    tcase_add_test(tests, what_comes_while_tiles_multiply_is_the_pixels_that_are_read_next);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
