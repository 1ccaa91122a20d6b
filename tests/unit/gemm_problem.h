/* gemm_problem.h - products of strided matrices for the tests of them: shapes, layouts, operands with values, the run.
 *
 * Must not know: what is right. */
#ifndef CEK_TESTS_UNIT_GEMM_PROBLEM_H
#define CEK_TESTS_UNIT_GEMM_PROBLEM_H

#include "backends/cpu/product/gemm.h"
#include "tests/unit/cpu_products.h"

typedef struct shape {
    int64_t m, n, k, batch;
} shape;

static const shape shapes[] = {
    { 1, 1, 1, 1 },      { 1, 1, 0, 1 },      { 5, 3, 0, 2 },     { 2, 3, 4, 5 },     { 14, 32, 8, 1 },
    { 13, 31, 33, 1 },   { 15, 33, 65, 2 },   { 6, 16, 385, 1 },  { 7, 17, 400, 1 },  { 1, 129, 70, 1 },
    { 129, 1, 70, 1 },   { 1, 33, 3000, 1 },  { 33, 2, 2500, 1 }, { 113, 97, 31, 1 }, { 130, 70, 390, 1 },
    { 28, 500, 64, 1 },  { 300, 10, 100, 3 }, { 9, 64, 4200, 1 }, { 1, 450, 600, 1 }, { 5, 530, 5, 2 },
    { 3, 1030, 7, 1 },   { 7, 40, 6, 1 },     { 90, 6, 20, 1 },   { 6, 39, 80, 1 },   { 31, 13, 1024, 1 },
    { 17, 24, 2100, 1 }, { 160, 70, 64, 1 },  { 48, 33, 96, 2 },  { 75, 300, 70, 1 }, { 64, 9, 260, 1 },
    { 96, 14, 530, 2 },  { 1, 330, 40, 1 },   { 2, 210, 21, 1 },
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

static inline gemm_matrix layout(cpu_type type, int64_t rows, int64_t cols, int flip, int64_t spread)
{
    const int64_t inner = spread, outer = (flip ? rows : cols) * spread + (spread > 1 ? 3 : 0);
    return (gemm_matrix){ type, flip ? inner : outer, flip ? outer : inner, (flip ? cols : rows) * outer };
}

/* One product of floats whose rows lie one behind the other. */
static inline gemm_desc rows_of_memory(int64_t m, int64_t n, int64_t k)
{
    return (gemm_desc){ .m = m,
                        .n = n,
                        .k = k,
                        .batch = 1,
                        .a = { CPU_F32, k, 1, 0 },
                        .b = { CPU_F32, n, 1, 0 },
                        .c = { CPU_F32, n, 1, 0 } };
}

static inline int64_t at(const gemm_matrix *m, int64_t b, int64_t i, int64_t j)
{
    return b * m->batch_stride + i * m->row_stride + j * m->col_stride;
}

typedef struct problem {
    gemm_desc d;
    void *a, *b, *c, *ref;
    float *bias, *sum;
    int64_t na, nb, nc;
} problem;

static inline void problem_make(const shape *s, const kind *k, problem *p)
{
    uint32_t state = 1;
    gemm_desc *d = &p->d;
    *d = (gemm_desc){ .m = s->m,
                      .n = s->n,
                      .k = s->k,
                      .batch = s->batch,
                      .accumulate = k->accumulate,
                      .bias = k->bias,
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

static inline void problem_free(const problem *p)
{
    filled_free(p->d.a.type, p->na, p->a);
    filled_free(p->d.b.type, p->nb, p->b);
    filled_free(p->d.c.type, p->nc, p->c);
    filled_free(p->d.c.type, p->nc, p->ref);
    filled_free(CPU_F32, p->d.n, p->bias);
    filled_free(CPU_F32, p->d.m * p->d.batch, p->sum);
}

static inline void run_plan(const gemm_plan *plan, const problem *p, const kind *k, cpu_threads *threads, const void *b,
                            void *c, float *sum)
{
    void *workspace = guarded(plan->workspace_bytes, 0xff); /* NaNs: what is not written first must not be read */
    cek__gemm_run(plan, threads,
                  &(gemm_args){ .a = p->a,
                                .b = b,
                                .c = c,
                                .bias = k->bias ? p->bias : NULL,
                                .ref = k->deriv ? p->ref : NULL,
                                .sum = k->sum ? sum : NULL },
                  workspace);
    guard_free(workspace, plan->workspace_bytes);
}

/* As planned for so many workers, whoever is there. */
static inline void run_planned(const problem *p, const kind *k, const cpu_config *config, int workers,
                               cpu_threads *threads, void *c, float *sum)
{
    gemm_plan plan;
    cek__gemm_plan(&p->d, config, workers, &plan);
    run_plan(&plan, p, k, threads, p->b, c, sum);
}

/* With B packed before; false: the plan does without that. */
static inline bool run_packed(const problem *p, const kind *k, const cpu_config *config, int workers,
                              cpu_threads *threads, void *c, float *sum)
{
    gemm_desc d = p->d;
    gemm_plan plan;
    d.packed = 1;
    cek__gemm_plan(&d, config, workers, &plan);
    if (plan.packed_bytes == 0)
        return false;
    float *packed = guarded(plan.packed_bytes, 0xff);
    cek__gemm_pack(&plan, threads, p->b, packed);
    run_plan(&plan, p, k, threads, packed, c, sum);
    guard_free(packed, plan.packed_bytes);
    return true;
}

static inline void run(const problem *p, const kind *k, const cpu_config *config, cpu_threads *threads, void *c,
                       float *sum)
{
    run_planned(p, k, config, cek__threads_workers(threads), threads, c, sum);
}

#endif
