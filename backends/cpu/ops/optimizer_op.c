/* optimizer_op.c - the optimizer step over the parameters of one bucket.
 *
 * Owns: the count of steps, and the numbers that depend on it, computed once per run in f64.
 * Must not know: what else the step or update block is for. */
#include <float.h>
#include <math.h>
#if defined __SSE__
#include <xmmintrin.h>
#endif

#include "backends/common/extent.h"
#include "backends/cpu/ops/ops.h"
#include "backends/cpu/ops/parallel.h"

enum { CHUNK = 4096 }; /* elements: Adam's four streams are 64 KiB, so LOW is made while P is in the cache */

typedef struct job {
    const cek_optimizer_desc *d;
    const cpu_kernels *k;
    const cek_param_range *range;
    cpu_adam adam;
    cpu_sgd sgd;
    cpu_rmsprop rmsprop;
    cpu_adagrad adagrad;
    float *p, *m, *v, *mean;
    const float *g;
    char *low;
} job;

static const char *const names[] = { [CEK_OPTIMIZER_SGD] = "sgd",
                                     [CEK_OPTIMIZER_ADAM] = "adam",
                                     [CEK_OPTIMIZER_RMSPROP] = "rmsprop",
                                     [CEK_OPTIMIZER_ADAGRAD] = "adagrad" };

/* Until flush_end() this thread takes denormal numbers for 0, as plugin.h lets it. The moments of a parameter whose
 * gradient has become 0 die away, but rounding to nearest keeps them above 0 for ever, and processors that have
 * microcode for such numbers take 14 times as long for all of a vector with one. What was so before. */
static uint64_t flush_begin(void)
{
    uint64_t before = 0;
#if defined __SSE__
    before = _mm_getcsr();
    _mm_setcsr((unsigned)before | 0x8040); /* FTZ, DAZ */
#elif defined __aarch64__
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" : : "r"(before | 1u << 24)); /* FZ */
#endif
    return before;
}

static void flush_end(uint64_t before)
{
#if defined __SSE__
    _mm_setcsr((unsigned)before | (_mm_getcsr() & 0x3f)); /* with what was raised meanwhile */
#elif defined __aarch64__
    __asm__ volatile("msr fpcr, %0" : : "r"(before));
#else
    (void)before;
#endif
}

/* Still more than 0 where denormal numbers are taken for it: what has no gradient is 0 / epsilon. */
static float epsilon_of(const cek_optimizer_desc *d)
{
    const float epsilon = (float)d->epsilon;
    return d->epsilon > 0 && epsilon < FLT_MIN ? FLT_MIN : epsilon;
}

/* `n` elements from `at` on. */
static void step_run(const job *j, int64_t at, int64_t n)
{
    const cpu_optimizer_kernels *k = j->k->ops->optimizer;
    float *m = j->m ? j->m + at : NULL, *mean = j->mean ? j->mean + at : NULL;
    const uint64_t before = flush_begin();

    switch (j->d->algorithm) {
    case CEK_OPTIMIZER_SGD: k->sgd(n, &j->sgd, j->g + at, j->p + at, m); break;
    case CEK_OPTIMIZER_ADAM: k->adam(n, &j->adam, j->g + at, j->p + at, m, j->v + at); break;
    case CEK_OPTIMIZER_RMSPROP: k->rmsprop(n, &j->rmsprop, j->g + at, j->p + at, m, j->v + at, mean); break;
    case CEK_OPTIMIZER_ADAGRAD: k->adagrad(n, &j->adagrad, j->g + at, j->p + at, j->v + at); break;
    }
    flush_end(before);
}

static cek_status optimizer_plan(cek_op *op)
{
    const cek_optimizer_desc *d = &op->request.desc.optimizer;

    if (d->type != CEK_F32)
        return cek__cpu_refuse_type(op, d->type);
    if (d->low_type != CEK_DTYPE_NONE && !type_in(d->low_type, CPU_TYPES_REAL))
        return cek__cpu_refuse_type(op, d->low_type);
    op_algorithm(op, names[d->algorithm]);
    return CEK_OK;
}

/* Elements from begin to behind end, counted from the beginning of the range. */
static void optimizer_chunks(void *arg, int64_t begin, int64_t end, int worker)
{
    const job *j = arg;
    const int64_t first = (int64_t)j->range->begin;

    (void)worker;
    for (int64_t n; begin < end; begin += n) {
        const int64_t at = first + begin;

        n = end - begin < CHUNK ? end - begin : CHUNK;
        step_run(j, at, n);
        if (j->low)
            cek__cpu_store(j->k, j->d->low_type, n, j->p + at, j->low + at * cek__type_bytes(j->d->low_type));
    }
}

/* The numbers of step t for one group of parameters. */
static void numbers(job *j, const cek_step_block *step, const cek_update_block *update, uint64_t t)
{
    const cek_optimizer_desc *d = j->d;
    const bool decoupled = d->flags & CEK_OPTIMIZER_DECOUPLED, nesterov = d->flags & CEK_OPTIMIZER_NESTEROV;
    const double lr = f32x2(step->lr[j->range->group]), decay = f32x2(step->weight_decay[j->range->group]);
    const double scale = update ? f32x2(update->grad_scale) : 1;
    const double ln1 = f32x2(step->ln_beta1), ln2 = f32x2(step->ln_beta2);
    const float coupled = decoupled ? 0 : (float)decay, shrink = decoupled ? (float)(1 - lr * decay) : 1;

    j->adam = (cpu_adam){
        .grad_scale = (float)scale,
        .weight_decay = coupled,
        .shrink = shrink,
        .beta1 = (float)exp(ln1),
        .beta2 = (float)exp(ln2),
        .rest1 = (float)-expm1(ln1),
        .rest2 = (float)-expm1(ln2),
        .rate = (float)(lr / -expm1((double)t * ln1)),
        .root = (float)(1 / sqrt(-expm1((double)t * ln2))),
        .epsilon = epsilon_of(d),
    };
    j->sgd = (cpu_sgd){
        .grad_scale = (float)scale,
        .weight_decay = coupled,
        .shrink = shrink,
        .rate = (float)lr,
        .momentum = t == 1 ? 0 : (float)d->momentum,
        .rest = t == 1 ? 1 : (float)(1 - d->dampening),
        .ahead = nesterov ? (float)d->momentum : 1,
        .direct = nesterov ? 1 : 0,
    };
    j->rmsprop = (cpu_rmsprop){
        .grad_scale = (float)scale,
        .weight_decay = coupled,
        .rate = (float)lr,
        .decay = (float)d->decay,
        .rest = (float)(1 - d->decay),
        .momentum = (float)d->momentum,
        .epsilon = epsilon_of(d),
    };
    j->adagrad = (cpu_adagrad){
        .grad_scale = (float)scale,
        .weight_decay = coupled,
        .rate = (float)(lr / (1 + (double)(t - 1) * d->decay)),
        .epsilon = epsilon_of(d),
    };
}

static void optimizer_run(const cek_op *op, cek_queue *queue, void *const *at, void *workspace)
{
    const cek_optimizer_desc *d = &op->request.desc.optimizer;
    const cek_update_block *update = at[CEK_OPTIMIZER_UPDATE];
    uint64_t *steps = at[CEK_OPTIMIZER_STATE];
    job j = { .d = d,
              .k = op_kernels(op),
              .p = at[CEK_OPTIMIZER_PARAM],
              .g = at[CEK_OPTIMIZER_GRAD],
              .m = at[CEK_OPTIMIZER_M],
              .v = at[CEK_OPTIMIZER_V],
              .mean = at[CEK_OPTIMIZER_MEAN],
              .low = at[CEK_OPTIMIZER_LOW] };
    /* bytes of an element that move: parameter, gradient and rounded copy, and what is kept, there and back */
    const uint64_t low = j.low ? (uint64_t)cek__type_bytes(d->low_type) : 0;
    const uint64_t ps = CPU_PS_BYTE * (12 + low + 8 * ((uint64_t)(j.m != NULL) + (j.v != NULL) + (j.mean != NULL)));

    (void)queue;
    (void)workspace;
    if (update && update->skip)
        return;
    for (uint32_t r = 0; r < d->range_count; r++) {
        j.range = &d->ranges[r];
        numbers(&j, at[CEK_OPTIMIZER_STEP], update, *steps + 1);
        cek__cpu_for(op_dev(op), (int64_t)(j.range->end - j.range->begin), 64, ps, optimizer_chunks, &j);
    }
    (*steps)++;
}

const cpu_kind cek__cpu_optimizer = { sizeof(struct cek_op), optimizer_plan, optimizer_run, NULL };
