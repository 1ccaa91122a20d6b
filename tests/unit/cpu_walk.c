/* cpu_walk.c - what tiles of the CPU backend are handed: rows of B where they lie, or packed by the first that read
 * them, and what to ask for ahead. Tiles that do not multiply stand in for those that do, and say what they were given.
 */
#include "backends/cpu/sizes.h"
#include "tests/unit/gemm_problem.h"

#include <limits.h>

/* A walk over rows of memory: ones as A, B[k][j] = k + j, and how many columns were to be packed. */
enum { WALK_ROWS = CPU_MR_MAX + 1, WALK_COLUMNS = 2 * CPU_NR_MAX + 1, WALK_DEPTH = 9, WALK_APART_MOST = 3072 };
typedef struct lying {
    _Alignas(64) float b[WALK_DEPTH * WALK_APART_MOST];
    float a[WALK_ROWS * WALK_DEPTH];
    const cpu_kernels *kernels;
    int64_t apart; /* floats, from a row of B to the next */
    int64_t packed;
    int is_far; /* rows are so far apart that offsets would not fit 32 bits */
} lying;

static int64_t lying_a(const void *source, int64_t row, int64_t rows, int64_t k, int64_t depth, const walk_scratch *to)
{
    const lying *l = source;
    cek__walk_panels_a(l->kernels->mr, l->a + row * WALK_DEPTH + k, WALK_DEPTH, rows, depth, to);
    cek__offsets_make(to->a_offset, depth, 1);
    return WALK_DEPTH;
}

static walk_edge lying_b(const void *source, int64_t k, int64_t depth, int64_t col, int64_t cols,
                         const walk_scratch *to)
{
    const lying *l = source;
    const pack_operand b = pack_of(l->b, CPU_F32, l->apart, 1, PACK_ACROSS);
    ((lying *)(uintptr_t)l)->packed += cols;
    return cek__pack_b(l->kernels, &b, k, depth, col, cols, to);
}

static const char *lying_ahead(const void *source, int64_t k, int64_t col, int64_t *row_bytes)
{
    const lying *l = source;
    *row_bytes = l->is_far ? 1 << 29 : l->apart * 4;
    return (const char *)(l->b + k * l->apart + col);
}

/* How many columns of B were packed apart; its sums are right. */
static int64_t lying_walk(const cpu_config *config, lying *l, int64_t rows)
{
    const int64_t nr = config->kernels->nr;
    const walk_sizes sizes = { .mc = WALK_ROWS, .kc = 5, .mb = rows, .nb = 2 * nr + 1, .b_floats = 5 * 3 * nr };
    float c[WALK_ROWS * WALK_COLUMNS];
    walk_scratch s;
    const size_t bytes = cek__walk_scratch(&sizes, nr, NULL, &s);
    void *memory = guarded(bytes, 0xff);
    cek__walk_scratch(&sizes, nr, memory, &s);
    l->kernels = config->kernels;
    l->packed = 0;
    for (int64_t x = 0; x < WALK_ROWS * WALK_DEPTH; x++)
        l->a[x] = 1;
    for (int64_t x = 0; x < WALK_DEPTH * l->apart; x++)
        l->b[x] = (float)(x / l->apart + x % l->apart);
    cek__walk(&(walk){ .kernels = config->kernels,
                       .mc = WALK_ROWS,
                       .kc = 5,
                       .b_floats = sizes.b_floats,
                       .a = lying_a,
                       .b = lying_b,
                       .b_ahead = lying_ahead,
                       .b_bytes = 4,
                       .source = l },
              &(walk_task){ .rows = rows, .cols = 2 * nr + 1, .depth = WALK_DEPTH, .c = c, .ldc = WALK_COLUMNS }, &s);
    guard_free(memory, bytes);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j <= 2 * nr; j++)
            EXPECT(c[r * WALK_COLUMNS + j] == (float)(WALK_DEPTH * (WALK_DEPTH - 1) / 2 + WALK_DEPTH * j),
                   "%s: row %ld, column %ld: %g", config->isa, (long)r, (long)j, c[r * WALK_COLUMNS + j]);
    return l->packed;
}

/* Who packed them first would wait for memory, with nothing to multiply. */
START_TEST(full_panels_of_b_are_packed_by_the_first_tiles_that_read_them)
{
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int is_far = 0; is_far < 2; is_far++) {
            lying l = { .apart = WALK_COLUMNS, .is_far = is_far };
            const int64_t packed = lying_walk(config, &l, config->kernels->mr + 1);
            EXPECT(packed == (is_far ? 2 * (2 * config->kernels->nr + 1) : 2), "%s: %ld columns were packed apart",
                   config->isa, (long)packed);
        }
}
END_TEST

/* Of one panel of A nobody reads B again: it is not packed, wherever in lines its rows begin. */
START_TEST(one_panel_of_a_reads_b_where_it_lies)
{
    static const int64_t aparts[] = { WALK_COLUMNS, WALK_COLUMNS + 15, 1024, 2048, 3072 };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (size_t x = 0; x < sizeof aparts / sizeof *aparts; x++) {
            lying l = { .apart = aparts[x] };
            const int64_t packed = lying_walk(config, &l, config->kernels->mr);
            EXPECT(packed == 2, "%s: %ld columns were packed, of rows %ld floats apart", config->isa, (long)packed,
                   (long)aparts[x]);
        }
}
END_TEST

/* With which processors go on by themselves: a line of each row in turn would be a page for every line. */
START_TEST(tiles_ask_for_whole_rows_one_after_the_other)
{
    enum {
        DEPTH = 200,
        STRETCH = 8,
        STRETCHES = DEPTH / STRETCH,
        COLUMNS = 130,
        PARTS = 3,
        LD = 1000,
        ROWS = STRETCHES / PARTS
    };
    static float a[DEPTH * CPU_MR_MAX], b[DEPTH * CPU_NR_MAX], to[DEPTH * CPU_NR_MAX], c[CPU_MR_MAX * CPU_NR_MAX];
    static float rows[LD * (ROWS + 1)];
    const float *panel = b;
    int32_t a_offset[DEPTH], b_offset[DEPTH];
    const cpu_config *config;

    for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
        const int nr = config->kernels->nr;
        cek__offsets_make(a_offset, DEPTH, 1);
        cek__offsets_make(b_offset, DEPTH, nr);
        for (int tile = 0; tile < 10; tile++) {
            const int way = tile / 2, low = way == 0 ? CPU_COPIES : 1, height = tile % 2 ? config->kernels->mr : low;
            cpu_ahead ahead = cpu_ahead_rows(rows, ROWS, COLUMNS, LD), none = cpu_ahead_none(rows, STRETCH);
            ahead.stretch = STRETCH;
            for (int asks = 1; asks >= 0; asks--)
                if (way == 0)
                    config->kernels->copy[height](DEPTH, a, DEPTH, a_offset, b, b_offset, c, nr, CPU_STORE,
                                                  asks ? &ahead : &none, to);
                else if (way == 4)
                    config->kernels->edge[height](nr / 2, DEPTH, a, DEPTH, a_offset, b, b_offset, c, nr, CPU_STORE,
                                                  asks ? &ahead : &none, 0, height);
                else
                    config->kernels->gemm[height](&(cpu_tiles){ .count = 1 }, DEPTH, a, DEPTH, a_offset, &panel,
                                                  b_offset, c, nr, CPU_STORE, asks ? &ahead : &none,
                                                  (cpu_runs)(way - 1), height);
            ck_assert_ptr_eq(none.at, rows);
            ck_assert_ptr_eq(ahead.at, rows + ROWS * LD + CPU_FLOATS_AHEAD);
            ck_assert_ptr_eq(ahead.end, ahead.at + (PARTS - 1) * CPU_FLOATS_AHEAD);
            ck_assert_int_eq(ahead.rows, 0);
        }
    }
}
END_TEST

/* A configuration with other tiles: whole ones, and where asked for those of edges and those that copy. */
typedef struct spies {
    cpu_kernels kernels;
    cpu_config config;
} spies;

static void spies_place(const cpu_config *config, cpu_gemm_tiles *const *wholes, cpu_gemm_edge *const *edges,
                        cpu_gemm_copy *const *copies, spies *out)
{
    out->kernels = *config->kernels;
    out->kernels.gemm = wholes;
    if (edges)
        out->kernels.edge = edges;
    if (copies)
        out->kernels.copy = copies;
    out->config = *config;
    out->config.kernels = &out->kernels;
}

/* What a tile was asked to ask for. */
static struct asked {
    int tiles, whole_rows, row_starts;
} asked;

static void tiles_asked(int tiles, int64_t depth, const float *a, int64_t lda, int rows, const cpu_ahead *ahead)
{
    asked.tiles += tiles;
    if (ahead->at != a + rows * lda)
        return;
    asked.whole_rows += ahead->rows > 0 && ahead->rows * ahead->width >= rows * depth ? tiles : 0;
    asked.row_starts += ahead->rows == rows && ahead->ld == lda && ahead->width == CPU_FLOATS_AHEAD ? tiles : 0;
}

static void whole_asked(const cpu_tiles *tiles, int64_t depth, const float *a, int64_t lda, const int32_t *a_offset,
                        const float *const *b, const int32_t *b_offset, float *c, int64_t ldc, cpu_store store,
                        cpu_ahead *ahead, cpu_runs runs, int rows)
{
    (void)a_offset, (void)b, (void)b_offset, (void)c, (void)ldc, (void)store, (void)runs;
    tiles_asked((int)tiles->count, depth, a, lda, rows, ahead);
}

static void edge_asked(int64_t columns, int64_t depth, const float *a, int64_t lda, const int32_t *a_offset,
                       const float *b, const int32_t *b_offset, float *c, int64_t ldc, cpu_store store,
                       cpu_ahead *ahead, cpu_runs runs, int rows)
{
    (void)columns, (void)a_offset, (void)b, (void)b_offset, (void)c, (void)ldc, (void)store, (void)runs;
    tiles_asked(1, depth, a, lda, rows, ahead);
}

static void copy_unasked(int64_t depth, const float *a, int64_t lda, const int32_t *a_offset, const float *b,
                         const int32_t *b_offset, float *c, int64_t ldc, cpu_store store, cpu_ahead *ahead, float *to)
{
    (void)depth, (void)a, (void)lda, (void)a_offset, (void)b, (void)b_offset, (void)c, (void)ldc, (void)store;
    (void)ahead, (void)to; /* nor is B packed, which nobody reads */
}

/* Rows of A that lie far away, of full tiles and of edges; of low ones, of narrow ones and rows apart their starts, of
 * low ones of more columns and from L3, too. Of a near A nobody asks for them; rows that narrow tiles meet side by side
 * are asked for as one run, if at all. */
START_TEST(rows_of_a_far_a_are_asked_for_a_panel_ahead)
{
    enum { M = 5 << 10, K = 1 << 10, NEAR_M = 16, JOINED = 1, OF_L3, NEAR, CASES };
    static cpu_gemm_tiles *const wholes[CPU_MR_MAX + 1] = { [1 ... CPU_MR_MAX] = whole_asked };
    static cpu_gemm_edge *const edges[CPU_MR_MAX + 1] = { [1 ... CPU_MR_MAX] = edge_asked };
    static cpu_gemm_copy *const copies[CPU_MR_MAX + 1] = { [1 ... CPU_MR_MAX] = copy_unasked };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int which = 0; which < CASES; which++)
            for (int parts = 1; parts <= 2; parts++) {
                const bool low = config->kernels->mr <= CPU_LOW;
                const int64_t few = parts * config->kernels->nr / 2,
                              n = which == OF_L3 ? 5 * config->kernels->nr + few : few;
                const int64_t m = which == NEAR ? NEAR_M : which == OF_L3 ? M / 10 : M;
                gemm_desc d = rows_of_memory(m, n, K);
                gemm_plan plan;
                spies s;
                spies_place(config, wholes, edges, copies, &s);
                d.a.row_stride = which == JOINED ? K : 2 * K + 16;
                cek__gemm_plan(&d, &s.config, 1, &plan);
                if (plan.product.thin)
                    continue;
                EXPECT(!plan.swapped && plan.product.way_a == PACK_DIRECT, "%s: another plan", config->isa);
                /* never read: tiles are not */
                void *workspace = guarded(plan.workspace_bytes, 0), *a = fenced(CPU_F32, 1, &(float){ 0 }, 0);
                float *b = calloc((size_t)(K * n), sizeof *b), *c = calloc((size_t)(m * n), sizeof *c);
                asked = (struct asked){ 0 };
                cek__gemm_run(&plan, NULL, &(gemm_args){ .a = a, .b = b, .c = c }, workspace);
                const bool narrow = !low && n <= config->kernels->nr / 2;
                const bool whole = (which == JOINED || (which == 0 && !low)) && !narrow;
                const bool starts = (low && which == OF_L3) || ((low || narrow) && which == 0);
                const int all = which == OF_L3 ? asked.tiles / 2 : asked.tiles; /* others ask for the next block of B */
                EXPECT(asked.tiles > 1 && (whole ? asked.whole_rows == all : asked.whole_rows == 0) &&
                           (starts ? asked.row_starts >= all : asked.row_starts == 0),
                       "%s, %ld x %ld, case %d: of %d tiles %d asked for rows of the next panel, %d for their starts",
                       config->isa, (long)m, (long)n, which, asked.tiles, asked.whole_rows, asked.row_starts);
                free(c);
                free(b);
                fenced_free(CPU_F32, 1, a);
                guard_free(workspace, plan.workspace_bytes);
            }
}
END_TEST

/* Blocks of B that tiles were asked to ask for, and how many of these lacked a line: of a row the last, or of the first
 * block of a row its first. */
static struct rows_of_b {
    const float *b, *last;
    int64_t ld, nr, cols;
    int blocks, wrapped, cut;
} rows_of_b;

static uintptr_t line_of(const float *at)
{
    return (uintptr_t)at / 64;
}

static void rows_of_b_look(const cpu_ahead *ahead)
{
    struct rows_of_b *x = &rows_of_b;
    if (ahead->rows <= 1 || ahead->ld != x->ld || ahead->at == x->last)
        return;
    /* where a block begins, of whose first line the end is asked for, or the beginning */
    const int64_t at = ahead->at - x->b, begin = at >= 15 && (at - 15) % x->ld % x->nr == 0 ? at - 15 : at;
    const int64_t k = begin / x->ld, col = begin % x->ld, end = least(col + x->cols, x->ld);
    bool cut = false;
    for (int64_t r = 0; r < ahead->rows; r++) {
        const float *row = x->b + (k + r) * x->ld, *from = ahead->at + r * x->ld;
        cut |= line_of(from + ahead->width - 16) < line_of(row + end - 1) || (col == 0 && line_of(from) > line_of(row));
    }
    x->last = ahead->at;
    x->blocks++;
    x->wrapped += col == 0;
    x->cut += cut;
}

static void whole_of_rows(const cpu_tiles *tiles, int64_t depth, const float *a, int64_t lda, const int32_t *a_offset,
                          const float *const *b, const int32_t *b_offset, float *c, int64_t ldc, cpu_store store,
                          cpu_ahead *ahead, cpu_runs runs, int rows)
{
    (void)tiles, (void)depth, (void)a, (void)lda, (void)a_offset, (void)b, (void)b_offset, (void)c, (void)ldc;
    (void)store, (void)runs, (void)rows;
    rows_of_b_look(ahead);
}

static void copy_of_rows(int64_t depth, const float *a, int64_t lda, const int32_t *a_offset, const float *b,
                         const int32_t *b_offset, float *c, int64_t ldc, cpu_store store, cpu_ahead *ahead, float *to)
{
    (void)depth, (void)a, (void)lda, (void)a_offset, (void)b, (void)b_offset, (void)c, (void)ldc, (void)store, (void)to;
    rows_of_b_look(ahead);
}

/* Else the line that a block's row ends in comes when the next block is asked for, and tiles wait for it. */
START_TEST(rows_of_b_that_begin_within_lines_are_asked_for_whole)
{
    enum { M = 48, N = 2641, K = 2 << 10 };
    static cpu_gemm_tiles *const wholes[CPU_MR_MAX + 1] = { [1 ... CPU_MR_MAX] = whole_of_rows };
    static cpu_gemm_copy *const copies[CPU_MR_MAX + 1] = { [1 ... CPU_MR_MAX] = copy_of_rows };
    const cpu_config *config;
    int plans = 0;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
        const gemm_desc d = rows_of_memory(M, N, K);
        gemm_plan plan;
        spies s;
        spies_place(config, wholes, NULL, copies, &s);
        cek__gemm_plan(&d, &s.config, 1, &plan);
        const product_plan *p = &plan.product;
        /* M rows are whole panels of columns, of tiles that are higher than wide */
        if (plan.swapped && config->kernels->mr > config->kernels->nr)
            continue;
        plans++;
        EXPECT(!plan.swapped && p->way_b == PACK_ACROSS && p->sizes.nc > 0, "%s: another plan", config->isa);
        void *workspace = guarded(plan.workspace_bytes, 0);
        float *a = calloc(M * K, sizeof *a), *b = calloc((size_t)K * N, sizeof *b), *c = calloc(M * N, sizeof *c);
        rows_of_b = (struct rows_of_b){ .b = b, .ld = N, .nr = config->kernels->nr, .cols = p->sizes.nc };
        cek__gemm_run(&plan, NULL, &(gemm_args){ .a = a, .b = b, .c = c }, workspace);
        EXPECT(rows_of_b.blocks > 10 && rows_of_b.wrapped > 0 && rows_of_b.cut == 0,
               "%s: of %d blocks, %d of them first ones, %d lacked a line", config->isa, rows_of_b.blocks,
               rows_of_b.wrapped, rows_of_b.cut);
        free(c);
        free(b);
        free(a);
        guard_free(workspace, plan.workspace_bytes);
    }
    ck_assert(plans > 0);
}
END_TEST

/* The longest stretch of whole tiles, in steps. */
static int64_t longest;

static void whole_of_steps(const cpu_tiles *tiles, int64_t depth, const float *a, int64_t lda, const int32_t *a_offset,
                           const float *const *b, const int32_t *b_offset, float *c, int64_t ldc, cpu_store store,
                           cpu_ahead *ahead, cpu_runs runs, int rows)
{
    (void)tiles, (void)a, (void)lda, (void)a_offset, (void)b, (void)b_offset, (void)c, (void)ldc, (void)store;
    (void)runs, (void)rows;
    longest = most(longest, least(ahead->stretch, depth));
}

static void copy_of_steps(int64_t depth, const float *a, int64_t lda, const int32_t *a_offset, const float *b,
                          const int32_t *b_offset, float *c, int64_t ldc, cpu_store store, cpu_ahead *ahead, float *to)
{
    (void)a, (void)lda, (void)a_offset, (void)b, (void)b_offset, (void)c, (void)ldc, (void)store, (void)to;
    longest = most(longest, least(ahead->stretch, depth));
}

/* What is done between two stretches is a part of few steps. Where a far C has short rows, it asks for lines of it. */
START_TEST(shallow_tiles_stop_for_lines_of_c_alone)
{
    static cpu_gemm_tiles *const wholes[CPU_MR_MAX + 1] = { [1 ... CPU_MR_MAX] = whole_of_steps };
    static cpu_gemm_copy *const copies[CPU_MR_MAX + 1] = { [1 ... CPU_MR_MAX] = copy_of_steps };
    static const struct {
        int64_t m, n, k;
        bool waits;
    } cases[] = { { 300, 96, 16, false }, { 40000, 96, 16, true }, { 1200, 2048, 16, false }, { 300, 96, 256, true } };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int n = 0; n < (int)(sizeof cases / sizeof *cases); n++) {
            const gemm_desc d = rows_of_memory(cases[n].m, cases[n].n, cases[n].k);
            gemm_plan plan;
            spies s;
            spies_place(config, wholes, NULL, copies, &s);
            cek__gemm_plan(&d, &s.config, 1, &plan);
            if (config->kernels->mr <= CPU_LOW) /* they ask for all of C at once */
                continue;
            void *workspace = guarded(plan.workspace_bytes, 0);
            float *a = calloc((size_t)(d.m * d.k), sizeof *a), *b = calloc((size_t)(d.k * d.n), sizeof *b);
            float *c = calloc((size_t)(d.m * d.n), sizeof *c);
            longest = 0;
            cek__gemm_run(&plan, NULL, &(gemm_args){ .a = a, .b = b, .c = c }, workspace);
            EXPECT(longest > 0 && (longest < d.k) == cases[n].waits, "%s: %ldx%ldx%ld: stretches of %ld", config->isa,
                   (long)d.m, (long)d.n, (long)d.k, (long)longest);
            free(c), free(b), free(a);
            guard_free(workspace, plan.workspace_bytes);
        }
}
END_TEST

/* Blocks of a transposed B that tiles were asked to ask for. */
static struct transposed_b {
    const float *begin, *end, *last;
    int64_t rows, ld;
    int blocks;
} transposed_b;

static void whole_transposed(const cpu_tiles *tiles, int64_t depth, const float *a, int64_t lda,
                             const int32_t *a_offset, const float *const *b, const int32_t *b_offset, float *c,
                             int64_t ldc, cpu_store store, cpu_ahead *ahead, cpu_runs runs, int rows)
{
    (void)tiles, (void)depth, (void)a, (void)lda, (void)a_offset, (void)b, (void)b_offset, (void)c, (void)ldc;
    (void)store, (void)runs, (void)rows;
    if (ahead->at < transposed_b.begin || ahead->at >= transposed_b.end || ahead->at == transposed_b.last)
        return;
    transposed_b.blocks += ahead->rows == transposed_b.rows && ahead->ld == transposed_b.ld;
    transposed_b.last = ahead->at;
}

/* Its columns are rows of memory, in which a block begins far from where the one before ended. */
START_TEST(columns_of_a_transposed_b_are_asked_for_a_block_ahead)
{
    enum { M = 512, K = 3 << 10 };
    static cpu_gemm_tiles *const wholes[CPU_MR_MAX + 1] = { [1 ... CPU_MR_MAX] = whole_transposed };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
        const int64_t n = 6 * config->kernels->nr;
        gemm_desc d = rows_of_memory(M, n, K);
        gemm_plan plan;
        spies s;
        spies_place(config, wholes, NULL, NULL, &s);
        d.b = (gemm_matrix){ CPU_F32, 1, K, 0 };
        cek__gemm_plan(&d, &s.config, 1, &plan);
        const product_plan *p = &plan.product;
        EXPECT(!plan.swapped && p->way_b == PACK_ALONG && p->sizes.nb == n, "%s: another plan", config->isa);
        void *workspace = guarded(plan.workspace_bytes, 0);
        float *a = calloc((size_t)(M * K), sizeof *a), *c = calloc((size_t)(M * n), sizeof *c);
        float *b = calloc((size_t)(K * n), sizeof *b);
        transposed_b = (struct transposed_b){ .begin = b, .end = b + K * n, .rows = n, .ld = K };
        cek__gemm_run(&plan, NULL, &(gemm_args){ .a = a, .b = b, .c = c }, workspace);
        const int64_t blocks = p->splits * (ceil_div(p->split_depth, p->sizes.kc) - 1);
        EXPECT(blocks > 0 && transposed_b.blocks == blocks, "%s: %d blocks of %ld that follow others", config->isa,
               transposed_b.blocks, (long)blocks);
        free(b);
        free(c);
        free(a);
        guard_free(workspace, plan.workspace_bytes);
    }
}
END_TEST

/* Blocks of an A whose columns lie along memory that tiles asked for, and how many of its panels came unasked. */
static struct columns_of_a {
    const float *a, *end, *goes_on;
    int64_t ld;
    struct {
        int64_t k, row, depth, rows, left;
    } blocks[256];
    int count, panels, unasked;
} columns_of_a;

static bool was_asked(const struct columns_of_a *x, int64_t k, int64_t depth, int64_t row, int64_t rows)
{
    for (int i = 0; i < x->count; i++)
        if (k >= x->blocks[i].k && k + depth <= x->blocks[i].k + x->blocks[i].depth && row >= x->blocks[i].row &&
            row + rows <= x->blocks[i].row + x->blocks[i].rows)
            return true;
    return false;
}

static void whole_across(const cpu_tiles *tiles, int64_t depth, const float *a, int64_t lda, const int32_t *a_offset,
                         const float *const *b, const int32_t *b_offset, float *c, int64_t ldc, cpu_store store,
                         cpu_ahead *ahead, cpu_runs runs, int rows)
{
    struct columns_of_a *x = &columns_of_a;
    (void)lda, (void)a_offset, (void)b, (void)b_offset, (void)c, (void)ldc, (void)store, (void)runs;
    x->panels++;
    x->unasked += !was_asked(x, (a - x->a) / x->ld, depth, (a - x->a) % x->ld, rows);
    if (ahead->rows < 1 || ahead->at < x->a || ahead->at >= x->end) /* the next block of B is asked for, too */
        return;
    if (ahead->at != x->goes_on) {
        ck_assert_int_lt(x->count, 256);
        x->blocks[x->count].k = (ahead->at - x->a) / x->ld;
        x->blocks[x->count].row = (ahead->at - x->a) % x->ld;
        x->blocks[x->count].depth = ahead->rows;
        x->blocks[x->count++].rows = ahead->width;
    }
    for (int64_t step = 0; step < tiles->count * depth && ahead->rows > 0; step += ahead->stretch)
        cpu_ahead_go(ahead);
    x->blocks[x->count - 1].left = ahead->rows;
    x->goes_on = ahead->at;
}

/* Whole blocks before their first panel, but for the first one of each part of k; and nobody copies them. */
START_TEST(columns_of_a_that_lie_along_memory_are_asked_for_a_block_ahead)
{
    enum { M = 500, K = 3 << 10 };
    static cpu_gemm_tiles *const wholes[CPU_MR_MAX + 1] = { [1 ... CPU_MR_MAX] = whole_across };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++) {
        const int64_t n = config->kernels->nr;
        gemm_desc d = rows_of_memory(M, n, K);
        gemm_plan plan;
        spies s;
        spies_place(config, wholes, NULL, NULL, &s);
        d.b.type = CPU_BF16; /* tiles do not pack it */
        d.a = (gemm_matrix){ CPU_F32, 1, M, 0 };
        cek__gemm_plan(&d, &s.config, 1, &plan);
        const product_plan *p = &plan.product;
        if (p->thin)
            continue;
        EXPECT(!plan.swapped && p->way_a == PACK_DIRECT, "%s: another plan", config->isa);
        void *workspace = guarded(plan.workspace_bytes, 0);
        float *a = calloc((size_t)(M * K), sizeof *a), *c = calloc((size_t)(M * n), sizeof *c);
        uint16_t *b = calloc((size_t)(K * n), sizeof *b);
        columns_of_a = (struct columns_of_a){ .a = a, .end = a + M * K, .ld = M };
        cek__gemm_run(&plan, NULL, &(gemm_args){ .a = a, .b = b, .c = c }, workspace);
        const struct columns_of_a *x = &columns_of_a;
        const int64_t first = ceil_div(p->sizes.mc, config->kernels->mr); /* panels of a block */
        EXPECT(x->count > 1 && x->unasked > 0 && x->unasked <= p->splits * first, "%s: %d of %d panels came unasked",
               config->isa, x->unasked, x->panels);
        for (int block = 0; block < x->count; block++)
            EXPECT(x->blocks[block].left <= 0 && x->blocks[block].rows <= round_up(p->sizes.mc, CPU_FLOATS_AHEAD),
                   "%s: %ld of %ld columns of a block were not asked for; %ld rows were", config->isa,
                   (long)x->blocks[block].left, (long)x->blocks[block].depth, (long)x->blocks[block].rows);
        free(b);
        free(c);
        free(a);
        guard_free(workspace, plan.workspace_bytes);
    }
}
END_TEST

/* Tiles that copied B, and those that read it where it lies. */
static struct read_b {
    const float *begin, *end;
    int copies, in_place;
} read_b;

static void whole_counted(const cpu_tiles *tiles, int64_t depth, const float *a, int64_t lda, const int32_t *a_offset,
                          const float *const *b, const int32_t *b_offset, float *c, int64_t ldc, cpu_store store,
                          cpu_ahead *ahead, cpu_runs runs, int rows)
{
    (void)depth, (void)a, (void)lda, (void)a_offset, (void)b_offset, (void)c, (void)ldc, (void)store, (void)ahead;
    (void)runs, (void)rows;
    for (int64_t i = 0; i < tiles->count; i++, b += tiles->b)
        read_b.in_place += *b >= read_b.begin && *b < read_b.end;
}

static void copy_counted(int64_t depth, const float *a, int64_t lda, const int32_t *a_offset, const float *b,
                         const int32_t *b_offset, float *c, int64_t ldc, cpu_store store, cpu_ahead *ahead, float *to)
{
    (void)depth, (void)a, (void)lda, (void)a_offset, (void)b, (void)b_offset, (void)c, (void)ldc, (void)store;
    (void)ahead, (void)to;
    read_b.copies++;
}

/* Two panels of A read a near B where it lies, again and again: not where so many of its rows share a few sets of L2
 * that they would not stay there. One does not where it has been seen to be slow. */
START_TEST(rows_of_b_that_share_sets_of_l2_do_not_stay_where_they_lie)
{
    enum { K = 240 };
    static const struct {
        int64_t apart;
        int meet, late;
    } rows[] = { { 512, 0, 0 }, { 2048, 1, 1 }, { 2064, 0, 0 }, { 4096, 1, 0 }, { 4112, 0, 0 }, { 16384, 1, 0 } };
    static cpu_gemm_tiles *const wholes[CPU_MR_MAX + 1] = { [1 ... CPU_MR_MAX] = whole_counted };
    static cpu_gemm_copy *const counted[CPU_MR_MAX + 1] = { [1 ... CPU_MR_MAX] = copy_counted };
    float *b = aligned_alloc(64, sizeof *b * K * 16384);
    const cpu_config *config;
    ck_assert_ptr_nonnull(b);
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (size_t x = 0; x < 2 * (sizeof rows / sizeof *rows); x++) {
            const int64_t panels = x % 2 + 1, m = panels * config->kernels->mr, n = 4 * config->kernels->nr;
            const int copied = panels == 1 ? rows[x / 2].late : rows[x / 2].meet;
            gemm_desc d = rows_of_memory(m, n, K);
            gemm_plan plan;
            spies s;
            spies_place(config, wholes, NULL, counted, &s);
            s.config.near_bytes = 1 << 20;
            d.b.row_stride = rows[x / 2].apart;
            cek__gemm_plan(&d, &s.config, 1, &plan);
            if (plan.product.thin)
                continue;
            ck_assert(!plan.swapped);
            void *workspace = guarded(plan.workspace_bytes, 0);
            float *a = calloc((size_t)(m * K), sizeof *a), *c = calloc((size_t)(m * n), sizeof *c);
            read_b = (struct read_b){ .begin = b, .end = b + (int64_t)K * 16384 };
            cek__gemm_run(&plan, NULL, &(gemm_args){ .a = a, .b = b, .c = c }, workspace);
            EXPECT((read_b.in_place > 0) == !copied && (read_b.copies > 0) == (copied && panels > 1),
                   "%s, %ld rows: rows of B %ld floats apart: %d tiles read them where they lie, %d copied them",
                   config->isa, (long)m, (long)rows[x / 2].apart, read_b.in_place, read_b.copies);
            free(c);
            free(a);
            guard_free(workspace, plan.workspace_bytes);
        }
    free(b);
}
END_TEST

static struct told {
    int calls, lowest; /* of whole tiles; rows */
    int rows, whole, columns, none;
    int64_t shortest; /* stretch */
} told;

static void tiles_told(int tiles, cpu_runs runs, const cpu_ahead *ahead)
{
    told.shortest = ahead->stretch < told.shortest ? ahead->stretch : told.shortest;
    told.rows += runs == CPU_RUNS_OF_ROWS || runs == CPU_WHOLE_ROWS ? tiles : 0;
    told.whole += runs == CPU_WHOLE_ROWS ? tiles : 0;
    told.columns += runs == CPU_RUNS_OF_COLUMNS ? tiles : 0;
    told.none += runs == CPU_NO_RUNS ? tiles : 0;
}

static void whole_told(const cpu_tiles *tiles, int64_t depth, const float *a, int64_t lda, const int32_t *a_offset,
                       const float *const *b, const int32_t *b_offset, float *c, int64_t ldc, cpu_store store,
                       cpu_ahead *ahead, cpu_runs runs, int rows)
{
    (void)depth, (void)a, (void)lda, (void)a_offset, (void)b, (void)b_offset, (void)c, (void)ldc, (void)store;
    tiles_told((int)tiles->count, runs, ahead);
    told.calls++;
    told.lowest = rows < told.lowest ? rows : told.lowest;
}

static void edge_told(int64_t columns, int64_t depth, const float *a, int64_t lda, const int32_t *a_offset,
                      const float *b, const int32_t *b_offset, float *c, int64_t ldc, cpu_store store, cpu_ahead *ahead,
                      cpu_runs runs, int rows)
{
    (void)columns, (void)depth, (void)a, (void)lda, (void)a_offset, (void)b, (void)b_offset, (void)c, (void)ldc;
    (void)store, (void)rows;
    tiles_told(1, runs, ahead);
}

/* Operands are read where they lie: B's rows and a transposed A's columns are as far apart as the matrices are wide,
 * where there is no full panel of B, too. Where k is short, all of it is one stretch of low tiles, and all tiles of a
 * panel of A are made at once. */
START_TEST(tiles_that_take_any_step_are_told_of_runs_in_operands_that_lie_in_place)
{
    enum { K = 64 };
    static cpu_gemm_tiles *const wholes[CPU_MR_MAX + 1] = { [1 ... CPU_MR_MAX] = whole_told };
    static cpu_gemm_edge *const edges[CPU_MR_MAX + 1] = { [1 ... CPU_MR_MAX] = edge_told };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int way = 0; way < 4; way++) {
            const int turned = way % 2, is_edge = way / 2;
            const int64_t nr = config->kernels->nr, m = 2 * config->kernels->mr, n = is_edge ? nr - 3 : 4 * nr;
            gemm_desc d = rows_of_memory(m, n, K);
            gemm_plan plan;
            spies s;
            spies_place(config, wholes, edges, NULL, &s);
            s.config.near_bytes = 1 << 20;
            if (turned)
                d.a.row_stride = 1, d.a.col_stride = m;
            cek__gemm_plan(&d, &s.config, 1, &plan);
            if (!config->kernels->any_step)
                continue;
            ck_assert(!plan.product.thin && !plan.swapped && plan.product.way_a == PACK_DIRECT);
            void *workspace = guarded(plan.workspace_bytes, 0);
            float *a = aligned_alloc(64, sizeof *a * (size_t)(m * K));
            float *b = aligned_alloc(64, sizeof *b * (size_t)(K * n));
            float *c = calloc((size_t)(m * n), sizeof *c);
            memset(a, 0, sizeof *a * (size_t)(m * K)), memset(b, 0, sizeof *b * (size_t)(K * n));
            told = (struct told){ .shortest = INT64_MAX, .lowest = INT_MAX };
            cek__gemm_run(&plan, NULL, &(gemm_args){ .a = a, .b = b, .c = c }, workspace);
            EXPECT(told.none == 0 && (turned ? told.columns : told.rows) > 0,
                   "%s, A %s, %s: %d tiles have runs of rows, %d of columns, %d none", config->isa,
                   turned ? "transposed" : "as it is", is_edge ? "an edge" : "whole", told.rows, told.columns,
                   told.none);
            EXPECT(told.calls == (is_edge ? 0 : 2), "%s: %d calls for tiles of two panels of A", config->isa,
                   told.calls);
            EXPECT(config->kernels->mr > CPU_LOW || told.shortest == K, "%s: stretches of %ld steps", config->isa,
                   (long)told.shortest);
            free(b);
            free(c);
            free(a);
            guard_free(workspace, plan.workspace_bytes);
        }
}
END_TEST

/* Where rows of A lie along k whole, tiles need no offsets of steps: full ones behind the first, which packs B, and
 * narrow ones. Of every other column of memory no tile is told so. */
START_TEST(tiles_are_told_of_rows_that_lie_along_k_whole)
{
    enum { K = 128 };
    static cpu_gemm_tiles *const wholes[CPU_MR_MAX + 1] = { [1 ... CPU_MR_MAX] = whole_told };
    static cpu_gemm_edge *const edges[CPU_MR_MAX + 1] = { [1 ... CPU_MR_MAX] = edge_told };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int way = 0; way < 4; way++) {
            const int narrow = way % 2, apart = way / 2;
            const int64_t nr = config->kernels->nr, m = 3 * config->kernels->mr, n = narrow ? nr / 2 : 4 * nr;
            gemm_desc d = rows_of_memory(m, n, K);
            gemm_plan plan;
            spies s;
            spies_place(config, wholes, edges, NULL, &s);
            s.config.near_bytes = 0;
            d.a.row_stride = 3 * K, d.a.col_stride = 1 + apart;
            cek__gemm_plan(&d, &s.config, 1, &plan);
            const bool elsewhere = plan.product.thin || plan.swapped || plan.product.way_a != PACK_DIRECT;
            EXPECT(!elsewhere || way > 0, "%s: another plan", config->isa);
            if (elsewhere)
                continue;
            void *workspace = guarded(plan.workspace_bytes, 0);
            float *a = calloc((size_t)(3 * m * K), sizeof *a), *b = calloc((size_t)(K * n), sizeof *b);
            float *c = calloc((size_t)(m * n), sizeof *c);
            told = (struct told){ .shortest = INT64_MAX, .lowest = INT_MAX };
            cek__gemm_run(&plan, NULL, &(gemm_args){ .a = a, .b = b, .c = c }, workspace);
            EXPECT((told.whole > 0) == !apart && told.whole == told.rows, "%s, %s, %s: %d tiles of rows, %d of whole",
                   config->isa, narrow ? "narrow" : "full", apart ? "apart" : "joined", told.rows, told.whole);
            free(c);
            free(b);
            free(a);
            guard_free(workspace, plan.workspace_bytes);
        }
}
END_TEST

/* As few panels as there can be, none of one or two rows, which lie in place here. */
START_TEST(rows_of_a_end_with_no_panel_of_few)
{
    enum { K = 64 };
    static cpu_gemm_tiles *const wholes[CPU_MR_MAX + 1] = { [1 ... CPU_MR_MAX] = whole_told };
    const cpu_config *config;
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int64_t m = config->kernels->mr; m <= 6 * config->kernels->mr; m++) {
            const int64_t mr = config->kernels->mr, n = 4 * config->kernels->nr;
            gemm_desc d = rows_of_memory(m, n, K);
            gemm_plan plan;
            spies s;
            spies_place(config, wholes, NULL, NULL, &s);
            s.config.near_bytes = 1 << 20;
            cek__gemm_plan(&d, &s.config, 1, &plan);
            if (mr < 5 || mr > CPU_LOW || plan.product.thin || plan.swapped)
                continue;
            void *workspace = guarded(plan.workspace_bytes, 0);
            float *a = calloc((size_t)(m * K), sizeof *a), *c = calloc((size_t)(m * n), sizeof *c);
            float *b = aligned_alloc(64, sizeof *b * (size_t)(K * n));
            memset(b, 0, sizeof *b * (size_t)(K * n));
            told = (struct told){ .shortest = INT64_MAX, .lowest = INT_MAX };
            cek__gemm_run(&plan, NULL, &(gemm_args){ .a = a, .b = b, .c = c }, workspace);
            EXPECT(told.calls == (m + mr - 1) / mr && told.lowest >= mr / 2, "%s: %ld rows: %d panels, one of %d rows",
                   config->isa, (long)m, told.calls, told.lowest);
            free(b);
            free(c);
            free(a);
            guard_free(workspace, plan.workspace_bytes);
        }
}
END_TEST

/* Several at once, along rows of C and down its columns, are those that one after the other are, of every number of
 * rows, with and without runs, and so is what they asked for. */
START_TEST(tiles_at_once_are_those_that_one_after_the_other_are)
{
    enum { DEPTH = 41, TILES = 3, ROWS = TILES * CPU_MR_MAX, LD = TILES * CPU_NR_MAX + 5 };
    static float a[ROWS * DEPTH], b[DEPTH * LD], c[2][ROWS * LD], far[1 << 12];
    int32_t a_offset[DEPTH], b_offset[DEPTH];
    const cpu_config *config;
    uint32_t state = 1;

    for (int i = 0; i < ROWS * DEPTH; i++)
        a[i] = (float)next_value(&state, 0);
    for (int i = 0; i < DEPTH * LD; i++)
        b[i] = (float)next_value(&state, 0);
    cek__offsets_make(b_offset, DEPTH, LD);
    for (int i = 0; (config = cek__config_at(i)) != NULL; i++)
        for (int way = 0; way < 20 * config->kernels->mr; way++) {
            const int rows = way / 20 + 1, nr = config->kernels->nr, is_down = way / 10 % 2;
            const cpu_store store = way % 2 ? CPU_ADD : CPU_STORE;
            const cpu_runs runs = config->kernels->any_step ? (cpu_runs)(way / 2 % 5) : CPU_NO_RUNS;
            const int64_t lda = runs == CPU_RUNS_OF_COLUMNS ? 1 : DEPTH, step_a = lda == 1 ? ROWS : 1;
            const cpu_tiles tiles = is_down ? (cpu_tiles){ TILES, rows * lda, 0, rows * LD }
                                            : (cpu_tiles){ TILES, 0, 1, nr };
            const float *const panels[TILES] = { b, b + 7, b + nr + 1 };
            cpu_ahead all = cpu_ahead_from(far, 8), one = all;
            cek__offsets_make(a_offset, DEPTH, step_a);
            for (int j = 0; j < ROWS * LD; j++)
                c[0][j] = c[1][j] = (float)j;
            config->kernels->gemm[rows](&tiles, DEPTH, a, lda, a_offset, panels, b_offset, c[0], LD, store, &all, runs,
                                        rows);
            for (int j = 0; j < TILES; j++)
                config->kernels->gemm[rows](&(cpu_tiles){ .count = 1 }, DEPTH, a + j * tiles.a, lda, a_offset,
                                            panels + j * tiles.b, b_offset, c[1] + j * tiles.c, LD, store, &one, runs,
                                            rows);
            EXPECT(memcmp(c[0], c[1], sizeof c[0]) == 0, "%s: %d rows, runs %d: other sums", config->isa, rows,
                   (int)runs);
            ck_assert_ptr_eq(all.at, one.at);
            for (int j = 0; j < rows * TILES * nr; j++) {
                const int row = is_down ? j / nr : j / (TILES * nr), col = is_down ? j % nr : j % (TILES * nr);
                double want = store == CPU_ADD ? row * LD + col : 0;
                for (int k = 0; k < DEPTH; k++)
                    want += (double)a[row * lda + k * step_a] * (double)panels[col / nr][k * LD + col % nr];
                EXPECT(fabs((double)c[0][row * LD + col] - want) < 1e-3 * (1 + fabs(want)),
                       "%s: %d rows, runs %d: (%d, %d) is %g, not %g", config->isa, rows, (int)runs, row, col,
                       (double)c[0][row * LD + col], want);
            }
        }
}
END_TEST

int main(void)
{
    memory_keep();
    Suite *suite = suite_create("cpu_walk");
    TCase *tests = tcase_create("walk");
    tcase_add_test(tests, full_panels_of_b_are_packed_by_the_first_tiles_that_read_them);
    tcase_add_test(tests, one_panel_of_a_reads_b_where_it_lies);
    tcase_add_test(tests, tiles_ask_for_whole_rows_one_after_the_other);
    tcase_add_test(tests, rows_of_b_that_begin_within_lines_are_asked_for_whole);
    tcase_add_test(tests, shallow_tiles_stop_for_lines_of_c_alone);
    tcase_add_test(tests, columns_of_a_transposed_b_are_asked_for_a_block_ahead);
    tcase_add_test(tests, columns_of_a_that_lie_along_memory_are_asked_for_a_block_ahead);
    tcase_add_test(tests, rows_of_a_far_a_are_asked_for_a_panel_ahead);
    tcase_add_test(tests, rows_of_b_that_share_sets_of_l2_do_not_stay_where_they_lie);
    tcase_add_test(tests, tiles_that_take_any_step_are_told_of_runs_in_operands_that_lie_in_place);
    tcase_add_test(tests, tiles_are_told_of_rows_that_lie_along_k_whole);
    tcase_add_test(tests, rows_of_a_end_with_no_panel_of_few);
    tcase_add_test(tests, tiles_at_once_are_those_that_one_after_the_other_are);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
