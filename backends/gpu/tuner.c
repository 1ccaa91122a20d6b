/* SPDX-License-Identifier: MIT
 *
 * tuner.c - which way a product, a convolution or a pool is fastest on a device: tried once per class of shapes,
 * remembered in memory and on disk.
 *
 * Owns the choice between our own kernels and the providers that the driver names as candidates for products, and
 * between the tiles of our own kernels for convolutions and their ways to pool, nothing else. A class is tried on a
 * shape of its own, so that neither time nor memory grows with the operation at hand: a product's sides, or a
 * convolution's or pool's images, are fewer. Where one image is too much, nothing is tried. Never asked for
 * DETERMINISTIC operations: which way they go must not depend on a clock.
 * Threads: any; one trial at a time per device.
 */
#include "backends/gpu/tuner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "backends/common/hash.h"
#include "backends/gpu/lower.h"
#include "backends/gpu/lowering.h"
#include "backends/gpu/op.h"
#include "backends/gpu/providers.h"

#define SIDE_MIN_LOG2 4                 /* sides shorter than 16 are one class */
#define SIDE_MAX_LOG2 12                /* and longer than 4096 */
#define WORK_MIN (UINT64_C(1) << 24)    /* multiply-adds of a batch below which no choice is worth a trial: 256^3 */
#define WORK_TRIAL (UINT64_C(1) << 30)  /* and that a trial is cut down to: it fills any device, */
#define WORK_CPU (UINT64_C(1) << 26)    /* or takes 2 to 20 ms on two cores */
#define MOVED_MIN (UINT64_C(1) << 20)   /* elements of a pool, read and written, below which its launch takes longer */
#define MOVED_TRIAL (UINT64_C(1) << 24) /* and of a trial: 64 MiB, more than caches hold */
#define TIMED_NS 2000000 /* at least, between two looks at the clock: a launch takes 5 us, a wake-up 50 */
#define TIMED_MOST 1024  /* runs in between */
#define TIMES 3          /* it is timed; the fastest counts */
#define MARGIN 0.95      /* of our own time, that a provider must stay below: no choice between equals */
#define TRIAL_TIMEOUT_NS UINT64_C(60000000000)
#define REMEMBERED_MAX 4096

typedef struct choice {
    uint64_t class, taken; /* hashes: of the class, of the provider's version; 0: our own kernels. Or a tile, or way */
} choice;

struct cek__gpu_tuner {
    pthread_mutex_t lock;
    bool read; /* the file was looked at */
    uint32_t count;
    choice *choices;
    char key[64]; /* the file's name */
};

cek_status cek__gpu_tuner_create(cek_dev *dev)
{
    dev->tuner = calloc(1, sizeof *dev->tuner);
    if (!dev->tuner)
        return cek__host_fail(&dev->instance->host, CEK_OUT_OF_MEMORY, "device_open: no memory for the tuner");
    pthread_mutex_init(&dev->tuner->lock, NULL);
    return CEK_OK;
}

void cek__gpu_tuner_free(cek_dev *dev)
{
    if (!dev->tuner)
        return;
    pthread_mutex_destroy(&dev->tuner->lock);
    free(dev->tuner->choices);
    free(dev->tuner);
    dev->tuner = NULL;
}

/* --- what is remembered ----------------------------------------------------------------------- */

/* A class by the bits of its number: what it is tried on follows from it alone. */
static uint32_t side_class(uint64_t side)
{
    uint32_t log = 63 - (uint32_t)__builtin_clzll(side | 1);
    return log < SIDE_MIN_LOG2 ? SIDE_MIN_LOG2 : log > SIDE_MAX_LOG2 ? SIDE_MAX_LOG2 : log;
}

static uint64_t class_of(const cek_gemm_desc *desc)
{
    return (uint64_t)side_class(desc->m) | (uint64_t)side_class(desc->n) << 8 | (uint64_t)side_class(desc->k) << 16 |
           (uint64_t)desc->trans << 24 | (uint64_t)desc->a_type << 32 | (uint64_t)desc->c_type << 40 |
           (uint64_t)(desc->batch > 1) << 48 | (uint64_t)(desc->outer > 1) << 49;
}

static uint64_t name_of(cek_dev *dev, const cek__gpu_provider *provider)
{
    return provider ? cek__hash_text(CEK__HASH_START, provider->version(dev->instance)) | 1 : 0;
}

static void memory_read(cek_dev *dev)
{
    cek__gpu_tuner *tuner = dev->tuner;
    uint64_t bytes;
    tuner->read = true;
    snprintf(tuner->key, sizeof tuner->key, "tuned-%016llx",
             (unsigned long long)cek__hash_number(dev->traits.numeric_id, dev->traits.compute_units));
    if (!dev->driver->cache_option)
        return;
    unsigned char *data = cek__cache_read(&dev->instance->host, dev->driver->cache_option, tuner->key, &bytes);
    if (data && bytes % sizeof(choice) == 0 && bytes / sizeof(choice) <= REMEMBERED_MAX) {
        tuner->choices = (choice *)data;
        tuner->count = (uint32_t)(bytes / sizeof(choice));
        return;
    }
    free(data);
}

static choice *choice_find(cek__gpu_tuner *tuner, uint64_t class)
{
    for (uint32_t i = 0; i < tuner->count; i++)
        if (tuner->choices[i].class == class)
            return &tuner->choices[i];
    return NULL;
}

/* Without memory or a cache it is tried once more another time. */
static void choice_keep(cek_dev *dev, uint64_t class, uint64_t taken)
{
    cek__gpu_tuner *tuner = dev->tuner;
    choice *at = choice_find(tuner, class);
    if (!at) {
        choice *larger = tuner->count < REMEMBERED_MAX ? realloc(tuner->choices, (tuner->count + 1) * sizeof *larger)
                                                       : NULL;
        if (!larger)
            return;
        tuner->choices = larger;
        at = &larger[tuner->count++];
    }
    *at = (choice){ class, taken };
    if (dev->driver->cache_option)
        cek__cache_write(&dev->instance->host, dev->driver->cache_option, tuner->key, tuner->choices,
                         tuner->count * sizeof *tuner->choices);
}

/* --- a trial ---------------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The shape that stands for the class of `desc`. */
static void trial_describe(const cek_dev *dev, const cek_gemm_desc *desc, cek_gemm_desc *trial)
{
    const uint64_t work = dev->traits.vector_width ? WORK_CPU : WORK_TRIAL;
    uint32_t m = side_class(desc->m), n = side_class(desc->n), k = side_class(desc->k);
    while (UINT64_C(1) << (m + n + k) > work) {
        uint32_t *longest = m >= n && m >= k ? &m : n >= k ? &n : &k;
        --*longest;
    }
    bool ta = desc->trans & CEK_GEMM_TRANS_A, tb = desc->trans & CEK_GEMM_TRANS_B;
    *trial = (cek_gemm_desc){
        .op = { .size = sizeof *trial,
                .kind = CEK_OP_GEMM,
                .math = desc->op.math,
                .operands = 1u << CEK_GEMM_A | 1u << CEK_GEMM_B | 1u << CEK_GEMM_C },
        .m = UINT64_C(1) << m,
        .n = UINT64_C(1) << n,
        .k = UINT64_C(1) << k,
        .batch = 1,
        .a_type = desc->a_type,
        .b_type = desc->b_type,
        .c_type = desc->c_type,
        .trans = desc->trans,
    };
    trial->lda = (int64_t)(ta ? trial->m : trial->k);
    trial->ldb = (int64_t)(tb ? trial->k : trial->n);
    trial->ldc = (int64_t)trial->n;
    trial->stride_a = (int64_t)(trial->m * trial->k);
    trial->stride_b = (int64_t)(trial->k * trial->n);
    trial->stride_c = (int64_t)(trial->m * trial->n);
}

/* What a candidate took: `ns` for `runs` runs, one after the other. */
typedef struct timing {
    uint64_t ns;
    uint32_t runs;
} timing;

static double run_ns(const timing *t)
{
    return (double)t->ns / t->runs;
}

static cek_status runs_time(cek_queue *queue, const cek_op *op, const cek_ref *operands, cek_ref workspace,
                            uint32_t runs, timing *out)
{
    const uint64_t start = now_ns();
    cek_status st = CEK_OK;
    for (uint32_t run = 0; !st && run < runs; run++)
        st = cek__gpu_steps_run(queue, op, operands, workspace);
    if (!st)
        st = op->dev->driver->queue_sync(queue, TRIAL_TIMEOUT_NS);
    *out = (timing){ now_ns() - start, runs };
    return st;
}

/* The first run loads and compiles. Then the fastest of TIMES, of as many runs as take TIMED_NS even so: those are
 * found by doubling, which is what the device gets warm by. `most`: a slower run is slow enough to stop at. */
static cek_status runs_grow(cek_queue *queue, const cek_op *op, const cek_ref *operands, cek_ref workspace, double most,
                            timing *out)
{
    cek_status st = runs_time(queue, op, operands, workspace, 1, out);
    uint32_t runs = 1;
    do {
        for (uint32_t time = 0; !st && time < TIMES && (time == 0 || out->ns >= TIMED_NS); time++) {
            timing again;
            st = runs_time(queue, op, operands, workspace, runs, &again);
            if (time == 0 || again.ns < out->ns)
                *out = again;
        }
        if (st || run_ns(out) > most)
            return st;
    } while (out->ns < TIMED_NS && (runs *= 2) <= TIMED_MOST);
    return CEK_OK;
}

/* On zeros, in memory and on a queue of its own. */
static cek_status op_time(cek_op *op, double most, timing *out)
{
    const cek__gpu_driver *driver = op->dev->driver;
    cek_mem_desc want = { .size = sizeof want };
    cek_ref operands[CEK__SLOTS] = { { NULL, 0 } }, workspace = { NULL, 0 };
    cek_mem *scratch = NULL;
    cek_queue *queue = NULL;
    for (uint32_t i = 0; i <= CEK_GEMM_C; i++) {
        operands[i].offset = want.bytes;
        want.bytes += (op->request.slots[i].bytes + CEK_ALIGNMENT - 1) / CEK_ALIGNMENT * CEK_ALIGNMENT;
    }
    workspace.offset = want.bytes;
    want.bytes += op->info.workspace_bytes;
    cek_status st = driver->mem_alloc(op->dev, &want, &scratch);
    for (uint32_t i = 0; i <= CEK_GEMM_C; i++)
        operands[i].mem = scratch;
    workspace = op->info.workspace_bytes ? (cek_ref){ scratch, workspace.offset } : (cek_ref){ NULL, 0 };
    if (!st)
        st = driver->queue_create(op->dev, NULL, &queue);
    if (!st)
        st = driver->fill(queue, (cek_ref){ scratch, 0 }, 0, 4, want.bytes & ~(uint64_t)3);
    if (!st)
        st = runs_grow(queue, op, operands, workspace, most, out);
    if (queue)
        driver->queue_destroy(queue);
    driver->mem_free(scratch);
    return st;
}

/* Of a pool's trial, which is not published and has no forward operation of its size: zeros, so that first taps won. */
static void reserve_size(cek_op *op)
{
    const cek__request *r = &op->request;
    const bool forward = r->desc.op.kind == CEK_OP_POOL_FORWARD;
    if (!forward && r->desc.op.kind != CEK_OP_POOL_BACKWARD)
        return;
    const uint32_t results = forward ? CEK_POOL_FORWARD_Y : CEK_POOL_BACKWARD_DY,
                   slot = forward ? CEK_POOL_FORWARD_RESERVE : CEK_POOL_BACKWARD_RESERVE;
    if (cek__request_given(r, slot))
        cek__request_reserve(&op->request, slot,
                             r->slots[results].bytes / r->slots[results].element * sizeof(uint32_t));
}

/* One way to do what `desc` says. The operation is *made, for its words; the caller destroys it. */
static cek_status candidate_time(cek_dev *dev, const cek_op_desc *desc, const cek__gpu_provider *provider,
                                 uint32_t tile, double most, timing *out, cek_op **made)
{
    cek_status st = cek__gpu_op_make(dev, desc, made);
    if (st)
        return st;
    (*made)->tile = tile;
    st = cek__gpu_lower_as(*made, provider);
    if (!st && tile && (*made)->tile != tile) /* the compiled kernel takes no such group */
        return CEK_UNSUPPORTED;
    if (!st)
        reserve_size(*made);
    return st ? st : op_time(*made, most, out);
}

static cek_status provider_time(cek_dev *dev, const cek_gemm_desc *desc, const cek__gpu_provider *provider, double most,
                                timing *out)
{
    cek_op *op = NULL;
    cek_status st = candidate_time(dev, &desc->op, provider, 0, most, out, &op);
    cek__gpu_op_destroy(op);
    return st;
}

/* The fastest; a candidate that does not take the shape, or fails, is out. */
static const cek__gpu_provider *trial(cek_dev *dev, const cek_gemm_desc *desc, const cek__gpu_provider *const *list,
                                      uint32_t count)
{
    const cek__gpu_provider *best = NULL;
    cek_gemm_desc shape;
    timing own, other;
    trial_describe(dev, desc, &shape);
    if (provider_time(dev, &shape, NULL, INFINITY, &own))
        return NULL;
    double least = run_ns(&own) * MARGIN;
    for (uint32_t i = 0; i < count; i++) {
        if (provider_time(dev, &shape, list[i], 2 * run_ns(&own), &other))
            continue;
        cek__host_log(&dev->instance->host, CEK_LOG_INFO,
                      "products of %llux%llux%llu: %s %.1f us (of %u runs), our own kernels %.1f us (of %u runs)",
                      (unsigned long long)shape.m, (unsigned long long)shape.n, (unsigned long long)shape.k,
                      list[i]->name, run_ns(&other) / 1e3, other.runs, run_ns(&own) / 1e3, own.runs);
        if (run_ns(&other) < least) {
            least = run_ns(&other);
            best = list[i];
        }
    }
    return best;
}

/* A processor's register tiles are many times as fast as what libraries for GPUs have for it, and
 * libraries take drivers for processors seconds to compile: such a trial is made where somebody
 * asks for it. */
static bool is_worth_it(cek_dev *dev, const cek_gemm_desc *desc, const cek__gpu_provider *provider)
{
    bool tiles = dev->traits.vector_width && desc->a_type == CEK_F32 && desc->c_type == CEK_F32;
    return !tiles || cek__gpu_provider_asked(&dev->instance->host, dev->driver, provider);
}

const cek__gpu_provider *cek__gpu_tune(const cek_op *op, const cek__gpu_provider *const *list, uint32_t count)
{
    const cek_gemm_desc *desc = &op->request.desc.gemm;
    const cek__gpu_provider *there[CEK__GPU_CANDIDATES], *best = NULL;
    cek_dev *dev = op->dev;
    uint32_t there_count = 0;
    uint64_t class = 0;
    bool known = false;
    if (desc->op.kind != CEK_OP_GEMM || desc->op.flags & CEK_OP_DETERMINISTIC ||
        (double)desc->outer * (double)desc->batch * (double)desc->m * (double)desc->n * (double)desc->k <
            (double)WORK_MIN)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        if (*list[i]->version(dev->instance) && is_worth_it(dev, desc, list[i]))
            there[there_count++] = list[i];
    if (!there_count)
        return NULL;
    class = class_of(desc);
    pthread_mutex_lock(&dev->tuner->lock);
    if (!dev->tuner->read)
        memory_read(dev);
    const choice *before = choice_find(dev->tuner, class);
    known = before && !before->taken;
    for (uint32_t i = 0; before && !known && i < there_count; i++)
        if (before->taken == name_of(dev, there[i])) {
            best = there[i];
            known = true;
        }
    if (!known) { /* nor of another version of the library */
        best = trial(dev, desc, there, there_count);
        choice_keep(dev, class, name_of(dev, best));
    }
    pthread_mutex_unlock(&dev->tuner->lock);
    return best;
}

/* --- tiles of convolutions, ways to pool ------------------------------------------------------ */

/* What is tried in place of an operation: the same geometry with as many images as a trial may have, a power of two, so
 * that batches have few classes. Who describes it answers the class. */
typedef union image_trial {
    cek_op_desc op;
    cek_conv_desc conv;
    cek_pool_desc pool;
} image_trial;

/* What an operation takes, and of what its trial may take so much: multiply-adds of a convolution, elements
 * of a pool */
typedef struct image_work {
    double image;
    uint64_t images, least, most;
} image_work;

static image_work conv_work(const cek_op *op)
{
    const cek_conv_desc *desc = &op->request.desc.conv;
    double image = (double)desc->in_channels * (double)desc->out_channels / desc->groups;
    for (uint32_t i = 0; i < desc->spatial; i++)
        image *= (double)op->request.out[i] * (double)desc->kernel[i];
    return (image_work){ image, desc->batch, WORK_MIN, WORK_TRIAL };
}

static image_work pool_work(const cek_op *op)
{
    const cek_pool_desc *desc = &op->request.desc.pool;
    double in = (double)desc->channels, out = in;
    for (uint32_t i = 0; i < desc->spatial; i++) {
        in *= (double)desc->in[i];
        out *= (double)op->request.out[i];
    }
    return (image_work){ in + out, desc->batch, MOVED_MIN, MOVED_TRIAL };
}

static uint64_t trial_images(image_work work)
{
    uint64_t images = 1;
    while (2 * images <= work.images && 2 * (double)images * work.image <= (double)work.most)
        images *= 2;
    return images;
}

static uint64_t sides_class(uint64_t class, uint32_t spatial, const uint64_t *const *sides, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        class = cek__hash(class, sides[i], spatial * sizeof **sides);
    return class;
}

static uint64_t conv_describe(const cek_op *op, image_work work, cek_conv_desc *trial)
{
    *trial = op->request.desc.conv;
    trial->op = (cek_op_desc){ .size = sizeof *trial, .kind = trial->op.kind, .math = trial->op.math, .operands = 7 };
    trial->batch = trial_images(work);
    const uint64_t numbers[] = {
        trial->op.kind,     trial->op.math,      trial->spatial, trial->groups, trial->batch,
        trial->in_channels, trial->out_channels, trial->x_type,  trial->w_type, trial->y_type
    };
    const uint64_t *const sides[] = { trial->in,       trial->kernel, trial->stride,
                                      trial->dilation, trial->pad_lo, trial->pad_hi };
    return sides_class(cek__hash(CEK__HASH_START, numbers, sizeof numbers), trial->spatial, sides, 6);
}

static uint64_t pool_describe(const cek_op *op, image_work work, cek_pool_desc *trial)
{
    *trial = op->request.desc.pool;
    trial->op = (cek_op_desc){ .size = sizeof *trial,
                               .kind = trial->op.kind,
                               .align = op->request.align,
                               .operands = trial->op.operands,
                               .forward = trial->op.forward };
    trial->batch = trial_images(work);
    const uint64_t numbers[] = { trial->op.kind, trial->op.operands, trial->op.align < 16, trial->mode, trial->flags,
                                 trial->spatial, trial->batch,       trial->channels,      trial->type };
    const uint64_t *const sides[] = { trial->in, trial->kernel, trial->stride, trial->pad_lo, trial->pad_hi };
    return sides_class(cek__hash(CEK__HASH_START, numbers, sizeof numbers), trial->spatial, sides, 5);
}

/* The fastest tile; the rule's, 0, where none is faster by more than chance. False: the rule's could not be timed, of
 * which nothing follows. */
static bool tile_trial(cek_dev *dev, const cek_op_desc *trial, uint64_t images, const uint32_t *tiles, uint32_t count,
                       uint32_t *best)
{
    cek_op *rule = NULL, *op;
    timing own, other;
    *best = 0;
    cek_status st = candidate_time(dev, trial, NULL, 0, INFINITY, &own, &rule);
    double least = st ? 0 : run_ns(&own) * MARGIN;
    for (uint32_t i = 0; !st && i < count; i++) {
        if (tiles[i] == rule->tile)
            continue;
        op = NULL;
        if (!candidate_time(dev, trial, NULL, tiles[i], 2 * run_ns(&own), &other, &op)) {
            cek__host_log(&dev->instance->host, CEK_LOG_INFO,
                          "%s, %llu images: %s %.1f us (of %u runs), %s by rule %.1f us (of %u runs)",
                          cek__kind_name(trial->kind), (unsigned long long)images, op->info.algorithm,
                          run_ns(&other) / 1e3, other.runs, rule->info.algorithm, run_ns(&own) / 1e3, own.runs);
            if (run_ns(&other) < least) {
                least = run_ns(&other);
                *best = tiles[i];
            }
        }
        cek__gpu_op_destroy(op);
    }
    cek__gpu_op_destroy(rule);
    return !st;
}

uint32_t cek__gpu_tune_tile(const cek_op *op)
{
    const cek_op_desc *head = &op->request.desc.op;
    const bool conv = head->kind >= CEK_OP_CONV_FORWARD && head->kind <= CEK_OP_CONV_BACKWARD_WEIGHTS,
               pool = head->kind == CEK_OP_POOL_FORWARD || head->kind == CEK_OP_POOL_BACKWARD;
    uint32_t tiles[CEK__GPU_TILES], best;
    image_trial trial;
    cek_dev *dev = op->dev;
    if ((!conv && !pool) || head->flags & CEK_OP_DETERMINISTIC)
        return 0;
    const image_work work = conv ? conv_work(op) : pool_work(op);
    if (work.image * (double)work.images < (double)work.least || work.image > (double)work.most)
        return 0;
    const uint32_t count = conv ? cek__gpu_tiles(op, tiles) : cek__gpu_pool_ways(op, tiles);
    if (!count)
        return 0;
    const uint64_t class = conv ? conv_describe(op, work, &trial.conv) : pool_describe(op, work, &trial.pool);
    pthread_mutex_lock(&dev->tuner->lock);
    if (!dev->tuner->read)
        memory_read(dev);
    const choice *before = choice_find(dev->tuner, class);
    if (before)
        best = (uint32_t)before->taken;
    else if (tile_trial(dev, &trial.op, trial_images(work), tiles, count, &best))
        choice_keep(dev, class, best);
    pthread_mutex_unlock(&dev->tuner->lock);
    return best;
}
