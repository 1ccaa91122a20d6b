/* product.h - plans and runs batches of products whose operands are handed out by functions.
 *
 * Owns: blocks of C as tasks, parts of k summed apart, the order in which they are added,
 * workspace.
 * Must not know: what the operands are (gemm.c: strided matrices; conv.c: images), how a task is
 * walked (walk.c).
 *
 * What decides the order of sums (kc, splits) is a function of shape and configuration; what only
 * decides who does what (sizes.mb, sizes.nb) may also look at the number of workers. */
#ifndef CEK_BACKENDS_CPU_PRODUCT_PRODUCT_H
#define CEK_BACKENDS_CPU_PRODUCT_PRODUCT_H

#include "backends/cpu/product/epilogue.h"
#include "backends/cpu/product/pack.h"
#include "backends/cpu/threads.h"
#include "backends/cpu/product/walk.h"

/* Work for which nobody is woken up once: some 20 us, less than that could save. Helpers may take a part all the same
 * where each would have some 1 us of it (cek__threads_run_brief): to hand it over takes a sixth of that or more, and
 * reading what another core wrote as much again. */
enum { PRODUCT_SERIAL_CYCLES = 60000, PRODUCT_SHARE_CYCLES = 4000 };

typedef enum product_sum { PRODUCT_NO_SUM, PRODUCT_ROW_SUM, PRODUCT_COLUMN_SUM } product_sum;

typedef struct product_plan {
    /* to be filled in before cek__product_plan */
    int64_t m, n, k, batch; /* m, n, batch >= 1, k >= 0 */
    const cpu_config *config;
    int workers;
    int in_place; /* sums may be made in C itself; taken back where k is split */
    int add;      /* where in place: to what C holds */
    int whole;    /* k is never split */
    int keeps_a;  /* a block of A may serve several of B: no giver of B writes what A's giver wrote */
    int a_meets;  /* columns of A, read where they lie, fall into few sets of L1 */
    int b_meets;  /* lines of two blocks of B fall into few sets of L2 before they are packed */
    int ahead;    /* B, whose rows or columns lie along memory, is fetched, rows packed, too, while tiles work (walk.h);
                * where it is thin, while others of its lines are met */
    int thin;     /* B is read where it lies (thin.c) */
    product_sum sum;       /* side output: sums over k of A by row, or of B by column */
    pack_way way_a, way_b; /* how A and B are brought to the tiles */
    pack_way copy_a;       /* where keeps_a: how A is packed, should reading it in place not pay */
    int store_across;      /* C's rows do not lie in memory as rows, for the estimate */
    int64_t row_unit;      /* tasks begin at multiples of this many rows; 0 = the tile's */
    walk_sizes sizes;      /* mc, kc, a_floats, b_floats: what is not 0 is kept */
    int64_t depth_most;    /* of a block, where kc is to be chosen; 0 = the configuration's */

    /* by cek__product_words, or NULL and 0: k and all that follows from it count words, of so many elements in all */
    const cpu_words *words;
    int64_t elements;

    /* chosen */
    int64_t mr, nr;              /* the tile's, of floats or words */
    int64_t splits, split_depth; /* parts of k that are summed apart, then added in order */
    int serial;                  /* so small that it runs on the caller alone; `workers` is 1 then */
    int brief;                   /* nobody is woken up for it */
    bool again;                  /* sums that are not made in C are those of a block, again and again */
    int64_t ldc;                 /* of such sums */
    walk_sizes alone;            /* and ldc, where the caller is alone with what was to be shared */
    int64_t alone_ldc;
    int stream;           /* C is written past the caches, where it is aligned */
    double cost;          /* estimated cycles */
    int64_t sum_length;   /* of the sums of rows or columns of one product, 0: none */
    size_t sum_bytes;     /* of all of them, of all parts of k */
    size_t partial_bytes; /* these and the parts of C */
    size_t worker_bytes, workspace_bytes;
} product_plan;

static inline const cpu_blocks *product_blocks(const product_plan *p)
{
    return p->words ? &p->config->words : &p->config->floats;
}

/* B is so many of its blocks that L2 keeps none of it until the next rows of A meet it. */
enum { PRODUCT_FAR_BLOCKS = 8 };
static inline bool product_b_is_far(const product_plan *p)
{
    return p->k * p->n * 4 > PRODUCT_FAR_BLOCKS * product_blocks(p)->b_bytes;
}

/* Floats from a row of sums of `columns` to the next: whole panels; or, of rows that pass side by side, so many that
 * they do not meet in one set of L1. */
static inline int64_t product_sums_ld(const product_plan *p, int64_t columns)
{
    return p->thin ? walk_row_floats(columns) : (columns + p->nr - 1) / p->nr * p->nr;
}

/* One product of the batch. The walk's callbacks get a pointer to it as their `source`. */
typedef struct product_part {
    const cpu_kernels *kernels;
    pack_operand a, b; /* for cek__product_a and _b */
    epilogue e;
    float *sum; /* or NULL */
    int sum_accumulate;
    const void *owner; /* whose callbacks these are */
    int64_t index;     /* in the batch */
} product_part;

typedef struct product_source {
    const void *owner;
    /* describes a product; out->kernels, owner and index are set already */
    void (*open)(const void *owner, int64_t index, product_part *out);
    walk_give_a *a;
    walk_give_b *b;
    walk_take *take; /* cek__product_take, or a function that knows better where rows go */
    int plain;       /* sums in place need no take */
} product_source;

/* Callbacks for strided matrices. */
walk_give_a cek__product_a;
walk_give_b cek__product_b;
walk_take cek__product_take;

/* cek__product_words - has operands of types a and b, which cek__product_a and _b pack, multiplied as words where the
 * configuration has such for them; before cek__product_plan. */
void cek__product_words(product_plan *plan, cpu_type a, cpu_type b);

/* cek__product_plan - fills in what is chosen. */
void cek__product_plan(product_plan *plan);

/* cek__product_run - computes the whole batch. `workspace`: plan->workspace_bytes, aligned to 64. */
void cek__product_run(const product_plan *plan, cpu_threads *threads, const product_source *source, void *workspace);

#endif
