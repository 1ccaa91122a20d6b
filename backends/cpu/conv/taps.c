/* taps.c - windows that reach so far beyond small images that some of their taps never see one: they are computed as
 * smaller windows.
 *
 * Owns: which taps these are, weights without them, gradients of weights with their zeros. Must not know: methods.
 *
 * Of 3 x 3 taps around an image of one pixel eight see zeros alone: nine times the work, and all of the weights, which
 * are most of what is read. */
#include <string.h>

#include "backends/cpu/conv/method.h"

enum { TASK_BYTES = 64 << 10 }; /* of weights that are copied, of which less is not worth another task */

/* Whether any position sees the image through a tap. */
static bool sees(const conv_desc *d, int dim, int64_t tap)
{
    const int64_t before = d->pad[dim] - tap * d->dilation[dim]; /* zeros before what the first position sees */
    const int64_t position = before > 0 ? ceil_div(before, d->stride[dim]) : 0;
    return position < d->out[dim] && position * d->stride[dim] - before < d->in[dim];
}

static int64_t row_weights(const conv_desc *d)
{
    return conv_taps(d) * conv_group_in(d);
}

/* From the ends of each dimension on; before the first one only as long as windows do not begin inside the image. */
void cek__taps_choose(conv_plan *plan)
{
    conv_desc *d = &plan->d;

    if (d->direction == CONV_BACKWARD_WEIGHTS && d->w != CPU_F32)
        return;
    for (int i = 0; i < 3; i++) {
        const int64_t kernel = d->kernel[i];
        while (d->kernel[i] > 1 && !sees(d, i, d->kernel[i] - 1))
            d->kernel[i]--;
        while (d->kernel[i] > 1 && !sees(d, i, 0) && d->pad[i] >= d->dilation[i]) {
            d->pad[i] -= d->dilation[i];
            d->kernel[i]--;
            plan->first_tap[i]++;
        }
        plan->taps_left[i] = d->kernel[i];
        plan->cut |= d->kernel[i] < kernel;
    }
    if (plan->cut && d->direction == CONV_BACKWARD_WEIGHTS)
        d->accumulate = 0;
}

void cek__taps_place(conv_plan *plan)
{
    const conv_desc *d = &plan->d;

    if (d->packed)
        return;
    plan->taps_at = (size_t)round_up((int64_t)plan->workspace_bytes, 64);
    plan->workspace_bytes = plan->taps_at + (size_t)(d->out_channels * row_weights(d) * cpu_type_bytes(d->w));
}

typedef struct rows_run {
    const conv_plan *plan;
    const conv_args *args;
    char *own; /* weights of the taps that see */
    int64_t rows;
} rows_run;

/* An output channel's weights into `own`, or out of it. */
static void row_copy(const rows_run *r, int64_t row)
{
    const conv_plan *plan = r->plan;
    const conv_desc *d = &plan->d;
    const int64_t *left = plan->taps_left;
    const int64_t line = left[2] * conv_group_in(d), whole = row_weights(&plan->asked);
    char *own = r->own + row * row_weights(d) * cpu_type_bytes(d->w);

    if (d->direction == CONV_BACKWARD_WEIGHTS && !plan->asked.accumulate)
        memset((float *)r->args->out + row * whole, 0, (size_t)whole * 4);
    for (int64_t z = 0; z < left[0]; z++)
        for (int64_t y = 0; y < left[1]; y++) {
            const int64_t at = row * whole + cek__taps_line(plan, z, y);
            if (d->direction == CONV_BACKWARD_WEIGHTS) {
                float *to = (float *)r->args->out + at;
                if (plan->asked.accumulate)
                    plan->config->kernels->add(line, to, (const float *)(const void *)own, to);
                else
                    memcpy(to, own, (size_t)line * 4);
            } else {
                memcpy(own, conv_at(r->args->w, d->w, at), (size_t)(line * cpu_type_bytes(d->w)));
            }
            own += line * cpu_type_bytes(d->w);
        }
}

static void rows_task(void *arg, int64_t task, int worker)
{
    const rows_run *r = arg;
    const int64_t end = least((task + 1) * r->rows, r->plan->d.out_channels);

    (void)worker;
    for (int64_t row = task * r->rows; row < end; row++)
        row_copy(r, row);
}

static void rows_copy(const conv_plan *plan, cpu_threads *threads, const conv_args *args, void *workspace)
{
    const conv_desc *d = &plan->d;
    const int64_t bytes = row_weights(d->direction == CONV_BACKWARD_WEIGHTS ? &plan->asked : d) * cpu_type_bytes(d->w);
    rows_run r = { plan, args, (char *)workspace + plan->taps_at, most(TASK_BYTES / bytes, 1) };
    cek__threads_run(threads, ceil_div(d->out_channels, r.rows), rows_task, &r);
}

void cek__taps_begin(const conv_plan *plan, cpu_threads *threads, const conv_args *args, void *workspace,
                     conv_args *seen)
{
    *seen = *args;
    if (plan->d.packed)
        return;
    if (plan->d.direction == CONV_BACKWARD_WEIGHTS) {
        seen->out = (char *)workspace + plan->taps_at;
    } else {
        rows_copy(plan, threads, args, workspace);
        seen->w = (char *)workspace + plan->taps_at;
    }
}

void cek__taps_end(const conv_plan *plan, cpu_threads *threads, const conv_args *args, void *workspace)
{
    if (plan->d.direction == CONV_BACKWARD_WEIGHTS)
        rows_copy(plan, threads, args, workspace);
}
