/* packed.c - weights of forward convolutions, packed before they are used.
 *
 * Owns: the one form that all methods read which have products: for each group panels of nr channels, and in a panel
 * [tap that is left][channel of x][nr], zeros beyond the last channel. So a product's panel is a place in it whatever
 * its blocks are, and Winograd's transforms find their vectors without turning. Must not know: blocks, tasks of a
 * product. */
#include "backends/cpu/conv/method.h"

#include <string.h>

typedef struct packing {
    const conv_plan *plan;
    const void *from;
    float *to;
} packing;

static int64_t panels(const conv_plan *plan)
{
    return ceil_div(conv_group_out(&plan->d), plan->config->kernels->nr);
}

static int64_t panel_floats(const conv_plan *plan)
{
    return conv_taps(&plan->d) * conv_group_in(&plan->d) * plan->config->kernels->nr;
}

int64_t cek__conv_packed_floats(const conv_plan *plan)
{
    const cpu_type type = plan->asked.w;

    if (plan->method == CONV_DEPTHWISE || (type != CPU_F32 && plan->pixels > 1) ||
        (type == CPU_BF16 && plan->config->bf16 != NULL)) /* which is multiplied as it is */
        return 0;
    return plan->d.groups * panels(plan) * panel_floats(plan);
}

/* Rows of any type as columns of floats. */
static void turn(const cpu_kernels *kernels, cpu_type type, int64_t rows, int64_t cols, const char *from, int64_t whole,
                 float *to)
{
    enum { PIECE = 64 };
    float floats[CPU_NR_MAX * PIECE] __attribute__((aligned(64)));

    if (type == CPU_F32) {
        kernels->transpose(rows, cols, (const float *)(const void *)from, whole, to, kernels->nr);
        return;
    }
    for (int64_t j = 0; j < cols; j += PIECE) {
        const int64_t n = least(cols - j, PIECE);
        for (int64_t i = 0; i < rows; i++)
            kernels->load(type, n, from + (i * whole + j) * cpu_type_bytes(type), floats + i * PIECE);
        kernels->transpose(rows, n, floats, PIECE, to + j * kernels->nr, kernels->nr);
    }
}

static void panel_task(void *arg, int64_t task, int worker)
{
    const packing *p = arg;
    const conv_desc *d = &p->plan->d;
    const cpu_kernels *kernels = p->plan->config->kernels;
    const int64_t nr = kernels->nr, depth = conv_taps(d) * conv_group_in(d), n = conv_group_out(d);
    const int64_t group = task / panels(p->plan), col = task % panels(p->plan) * nr;
    const int64_t whole = conv_taps(&p->plan->asked) * conv_group_in(d);
    const int64_t lines = p->plan->cut ? d->kernel[0] * d->kernel[1] : 1, line = depth / lines;
    const cpu_type type = p->plan->asked.w;
    const char *from = conv_at(p->from, type, (group * n + col) * whole);
    float *to = p->to + task * panel_floats(p->plan);

    (void)worker;
    if (n - col < nr)
        memset(to, 0, (size_t)(depth * nr) * 4);
    for (int64_t i = 0; i < lines; i++) {
        const int64_t at = cek__taps_line(p->plan, i / d->kernel[1], i % d->kernel[1]);
        turn(kernels, type, least(nr, n - col), line, conv_at(from, type, at), whole, to + i * line * nr);
    }
}

void cek__conv_pack(const conv_plan *plan, cpu_threads *threads, const void *weights, float *packed)
{
    packing p = { plan, weights, packed };

    if (plan->pixels > 1)
        cek__pixels_weights(plan, weights, packed);
    else
        cek__threads_run(threads, plan->d.groups * panels(plan), panel_task, &p);
}

const float *cek__conv_packed_panel(const conv_call *call, int64_t group, int64_t col)
{
    const conv_plan *plan = call->plan;

    return (const float *)call->args->w + (group * panels(plan) + col / plan->config->kernels->nr) * panel_floats(plan);
}

walk_edge cek__conv_packed_b(const void *part, int64_t k, int64_t depth, int64_t col, int64_t cols,
                             const walk_scratch *to)
{
    const product_part *p = part;
    const conv_call *call = p->owner;
    const int64_t nr = p->kernels->nr;

    for (int64_t j = 0; j < cols; j += nr)
        to->b_panel[j / nr] = cek__conv_packed_panel(call, p->index, col + j) + k * nr;
    cek__offsets_make(to->b_offset, depth, nr);
    return WALK_WHOLE;
}
