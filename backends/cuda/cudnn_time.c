/* SPDX-License-Identifier: MIT
 *
 * cudnn_time.c - the fastest of cuDNN's admissible engines, measured on the device's own clock.
 *
 * The heuristics' order is not that of our layouts: an engine that turns all operands into another layout may stand
 * before one that reads them as they lie. So all that may be used run on scratch memory when the first operation of a
 * kind is made, and the device remembers which was fastest. DETERMINISTIC requests get the first of the list.
 */
#include <stdlib.h>

#include "backends/common/hash.h"
#include "backends/cuda/cudnn.h"

#define CANDIDATES 16                     /* the heuristics' list is sorted; what stands further behind is slow */
#define RUNS_MOST 10                      /* timed as one, after the first, which loads and may compile */
#define ENOUGH_NS UINT64_C(2000000)       /* no more runs than these take: 100 times what a launch costs */
#define TIMEOUT_NS UINT64_C(300000000000) /* five minutes: engines compile too */
#define MEMORY_MOST (UINT64_C(8) << 30)   /* of operands and workspace, for a choice */

struct cek__cudnn_choice {
    struct cek__cudnn_choice *next;
    uint64_t request, taken; /* hashes: of the request, of engine and knobs */
};

/* --- what is remembered ---------------------------------------------------------------------------------------- */

static uint64_t request_hash(const cek__request *request, uint32_t leave)
{
    const cek_conv_desc *d = &request->desc.conv;
    const uint64_t numbers[] = { d->op.kind,
                                 d->op.math,
                                 d->op.flags,
                                 d->op.operands,
                                 d->spatial,
                                 d->groups,
                                 d->batch,
                                 d->in_channels,
                                 d->x_type,
                                 d->w_type,
                                 d->y_type,
                                 d->out_channels,
                                 leave,
                                 request->align,
                                 d->op.accumulate,
                                 request->epilogue.activation,
                                 request->epilogue.act_grad };
    uint64_t hash = CEK__HASH_START;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        hash = cek__hash_number(hash, numbers[i]);
    for (uint32_t i = 0; i < d->spatial; i++) {
        const uint64_t window[] = { d->in[i], d->kernel[i], d->stride[i], d->dilation[i], d->pad_lo[i], d->pad_hi[i] };
        hash = cek__hash(hash, window, sizeof window);
    }
    return hash;
}

static bool choice_find(cuda_dev *dev, uint64_t request, uint64_t *taken)
{
    bool found = false;
    pthread_mutex_lock(&dev->cudnn_lock);
    for (const struct cek__cudnn_choice *at = dev->cudnn_best; !found && at; at = at->next)
        if ((found = at->request == request))
            *taken = at->taken;
    pthread_mutex_unlock(&dev->cudnn_lock);
    return found;
}

/* Without memory it is measured once more another time. */
static void choice_keep(cuda_dev *dev, uint64_t request, uint64_t taken)
{
    struct cek__cudnn_choice *made = calloc(1, sizeof *made);
    if (!made)
        return;
    pthread_mutex_lock(&dev->cudnn_lock);
    *made = (struct cek__cudnn_choice){ dev->cudnn_best, request, taken };
    dev->cudnn_best = made;
    pthread_mutex_unlock(&dev->cudnn_lock);
}

void cek__cudnn_choices_free(cuda_dev *dev)
{
    while (dev->cudnn_best) {
        struct cek__cudnn_choice *next = dev->cudnn_best->next;
        free(dev->cudnn_best);
        dev->cudnn_best = next;
    }
}

/* --- a trial --------------------------------------------------------------------------------------------------- */

/* Where candidates run: operands of their own in one memory, the workspace in another. */
typedef struct bench {
    cek_queue *queue;
    cek_event *begin, *end;
    cek_mem *operands;
    cek_ref refs[CEK__SLOTS + 1];
} bench;

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + CEK_ALIGNMENT - 1) & ~(uint64_t)(CEK_ALIGNMENT - 1);
}

static void bench_free(bench *b)
{
    cek__cuda_event_destroy(b->begin);
    cek__cuda_event_destroy(b->end);
    cek__cuda_queue_destroy(b->queue);
    cek__cuda_mem_free(b->operands);
}

static cek_status bench_make(cek_dev *dev, const cek__request *request, bench *b)
{
    const cek_event_desc timing = { .size = sizeof timing, .flags = CEK_EVENT_TIMING };
    const cek_queue_desc queue = { .size = sizeof queue, .flags = CEK_QUEUE_TIMING };
    cek_mem_desc want = { .size = sizeof want };
    *b = (bench){ .queue = NULL };
    for (uint32_t i = 0; i < request->slot_count; i++) {
        b->refs[i].offset = want.bytes;
        if (cek__request_given(request, i)) /* plain sums of a narrow result are f32 */
            want.bytes += rounded(request->slots[i].bytes * (request->slots[i].element < 4 ? 2 : 1));
    }
    if (want.bytes > MEMORY_MOST)
        return CEK_OUT_OF_MEMORY;
    cek_status st = cek__cuda_mem_alloc(dev, &want, &b->operands);
    for (uint32_t i = 0; i < request->slot_count; i++)
        b->refs[i] = cek__request_given(request, i) ? (cek_ref){ b->operands, b->refs[i].offset }
                                                    : (cek_ref){ NULL, 0 };
    if (!st)
        st = cek__cuda_event_create(dev, &timing, &b->begin);
    if (!st)
        st = cek__cuda_event_create(dev, &timing, &b->end);
    if (!st)
        st = cek__cuda_queue_create(dev, &queue, &b->queue);
    if (!st)
        st = cek__cuda_fill(b->queue, (cek_ref){ b->operands, 0 }, 0, 4, want.bytes);
    if (st)
        bench_free(b);
    return st;
}

/* `runs` in a row, in ns each. */
static cek_status runs_time(const bench *b, const cek__gpu_plan *plan, uint32_t runs, uint64_t *ns)
{
    *ns = 0;
    cek_status st = cek__cuda_event_record(b->queue, b->begin);
    for (uint32_t i = 0; !st && i < runs; i++)
        st = cek__cudnn_call(b->queue, plan, b->refs);
    if (!st)
        st = cek__cuda_event_record(b->queue, b->end);
    if (!st)
        st = cek__cuda_queue_sync(b->queue, TIMEOUT_NS);
    if (!st)
        st = cek__cuda_event_elapsed(b->begin, b->end, ns);
    *ns /= runs;
    return st;
}

/* The first run loads and may compile; the second says how many more there are. */
static cek_status plan_time(cek_dev *dev, bench *b, const cek__gpu_plan *plan, uint64_t *ns)
{
    cek_mem_desc want = { .size = sizeof want, .bytes = plan->plan.workspace_bytes };
    cek_mem *workspace = NULL;
    cek_status st = want.bytes ? cek__cuda_mem_alloc(dev, &want, &workspace) : CEK_OK;
    if (st)
        return st;
    b->refs[plan->workspace_slot] = (cek_ref){ workspace, 0 };
    st = runs_time(b, plan, 1, ns);
    if (!st)
        st = runs_time(b, plan, 1, ns);
    uint64_t runs = *ns ? ENOUGH_NS / *ns : RUNS_MOST;
    if (!st && runs > 1)
        st = runs_time(b, plan, (uint32_t)(runs < RUNS_MOST ? runs : RUNS_MOST), ns);
    cek__cuda_mem_free(workspace);
    return st;
}

/* --- the choice ------------------------------------------------------------------------------------------------ */

/* The plan that was the fastest another time. */
static cek_status same_again(cek_dev *dev, const struct cek__cudnn *dnn, const cek__request *request, uint32_t leave,
                             uint64_t taken, cek__gpu_plan **out)
{
    cek__cudnn_place place = { 0 };
    cek_status st;
    while (!(st = cek__cudnn_plan_from(dev, dnn, request, leave, &place, out)) && (*out)->plan.choice != taken)
        cek__cudnn_plan_free(dev, *out);
    return st;
}

/* Of two, the one that is to be kept; the other is freed. What cannot be measured loses. */
static cek__gpu_plan *faster(cek_dev *dev, bench *b, cek__gpu_plan *best, cek__gpu_plan *other, uint64_t *least)
{
    uint64_t ns = UINT64_MAX;
    if (*least == UINT64_MAX && plan_time(dev, b, best, least)) /* it was not measured before */
        *least = UINT64_MAX - 1;
    bool wins = !plan_time(dev, b, other, &ns) && ns < *least;
    cek__host_log(&dev->instance->host, CEK_LOG_INFO, "cuDNN's engine %lld: %llu ns, the best so far %llu ns",
                  (long long)other->plan.engine, (unsigned long long)ns, (unsigned long long)*least);
    *least = wins ? ns : *least;
    cek__cudnn_plan_free(dev, wins ? best : other);
    return wins ? other : best;
}

cek_status cek__cudnn_fastest(cek_dev *dev, const struct cek__cudnn *dnn, const cek__request *request, uint32_t leave,
                              cek__gpu_plan **out)
{
    const uint64_t hash = request_hash(request, leave);
    cek__cudnn_place place = { 0 };
    uint64_t taken, least = UINT64_MAX;
    bool has_bench = false;
    bench b;
    if (choice_find((cuda_dev *)dev, hash, &taken) && !same_again(dev, dnn, request, leave, taken, out))
        return CEK_OK;
    cek_status st = cek__cudnn_plan_from(dev, dnn, request, leave, &place, out);
    if (st || request->desc.op.flags & CEK_OP_DETERMINISTIC)
        return st;
    for (int i = 1; i < CANDIDATES; i++) {
        cek__gpu_plan *other;
        if (cek__cudnn_plan_from(dev, dnn, request, leave, &place, &other))
            break;
        has_bench = has_bench || !bench_make(dev, request, &b);
        if (!has_bench) { /* no memory to try it in */
            cek__cudnn_plan_free(dev, other);
            break;
        }
        *out = faster(dev, &b, *out, other, &least);
    }
    if (has_bench) {
        bench_free(&b);
        choice_keep((cuda_dev *)dev, hash, (*out)->plan.choice);
    }
    return CEK_OK;
}
