/* winograd.c - Winograd's convolutions: which shapes they serve.
 *
 * Owns: when it is worth it, with which squares, in which blocks. Must not know: the transforms themselves, how a tile
 * of a product is computed.
 *
 * Sums of rounded transforms are not the sums of the definition: of 4 x 4 outputs some bits less are right, and small
 * integers are not exact. The choice is a function of the shape alone, never of the number of workers, which may change
 * who computes what but not one bit of it. */
#include "backends/cpu/conv/method.h"

/* Costs in cycles, measured on a Zen 4 core; see product/plan.c. */
static const double cost_transform = 220;  /* a vector of channels of one square, in or out */
static const double cost_weight = 8;       /* a vector of transformed weights, made, kept and fetched */
static const double cost_weight_far = 60;  /* the same where they are more than caches hold */
static const double cost_weight_once = 12; /* the same where it is made for those who use it ... */
static const double cost_taps_once = 270;  /* ... and of the nine taps that it is made of */
static const double cost_product = 1.1;    /* a vector of sums, tiles with their edges */
static const double gain_wanted = 0.85;    /* of the time of the direct way */

enum {
    CHANNELS_LEAST = 16,      /* beneath, tiles of products are too thin */
    TILES = 28,               /* transformed at once, at most: their squares and sums stay in L2 */
    TILES_FEW = 56,           /* so few that their squares stay near, and the sums of a panel in L2 ... */
    WEIGHTS_BYTES = 1 << 20,  /* ... where transformed weights do not ... */
    WEIGHTS_DEPTH = 128,      /* ... but so many rows of a panel do */
    NEAR_BYTES = 12 << 20,    /* of transformed weights that stay in L3 */
    SHARED_BYTES = 256 << 20, /* at most, of what is transformed first and tables, or of the taps of parts */
    WORKER_BYTES = 16 << 20,  /* at most, of a worker's operands and sums */
    TASKS = 16,               /* wanted of backward-weights, from blocks and splits */
    /* Of backward-weights, which are more than L2 holds: sums and squares pass by one point after the other. */
    TILES_SUMMED = 56, /* for each way past the sums */
    SUMS_ROWS = 128,   /* another block of them transforms all of x again ... */
    SUMS_COLUMNS = 64, /* ... and of these all of dy */
};

static int has_taps(const conv_desc *d)
{
    return d->groups == 1 && d->kernel[0] == 1 && d->kernel[1] == 3 && d->kernel[2] == 3 && d->stride[0] == 1 &&
           d->stride[1] == 1 && d->stride[2] == 1 && d->dilation[1] == 1 && d->dilation[2] == 1 && d->pad[0] == 0 &&
           d->in[0] == d->out[0] && d->in_channels >= CHANNELS_LEAST && d->out_channels >= CHANNELS_LEAST;
}

static void form_set(const conv_desc *d, const cpu_winograd *form, winograd_plan *w)
{
    *w = (winograd_plan){ .form = form, .points = form->outputs + 2 };
    w->planes = w->points * w->points;
    for (int i = 0; i < 2; i++) {
        w->size[i] = (d->direction == CONV_BACKWARD_DATA ? d->in : d->out)[i + 1];
        w->tiles[i] = ceil_div(w->size[i], form->outputs);
    }
    w->count = d->batch * d->in[0] * w->tiles[0] * w->tiles[1];
    w->from = d->direction == CONV_BACKWARD_DATA ? d->out_channels : d->in_channels;
    w->to = d->direction == CONV_BACKWARD_DATA ? d->in_channels : d->out_channels;
}

/* By the shape alone, since it is what the choice of a form looks at. */
static void sizes_choose(const conv_desc *d, const cpu_kernels *kernels, winograd_plan *w)
{
    if (d->direction != CONV_BACKWARD_WEIGHTS) {
        w->block = round_up(least(TILES, w->count), kernels->mr);
        w->columns = w->to;
        if (w->count <= TILES_FEW && w->planes * w->from * w->to * 4 > WEIGHTS_BYTES)
            w->depth = ceil_div(w->from, ceil_div(w->from, WEIGHTS_DEPTH));
        return;
    }
    /* whole lines of tiles, if it can be */
    w->block = most(TILES_SUMMED / w->tiles[1], 1) * w->tiles[1];
    w->block = least(w->block <= TILES_SUMMED ? w->block : TILES_SUMMED, w->count);
    w->columns = round_up(ceil_div(w->from, ceil_div(w->from, SUMS_COLUMNS)), kernels->nr);
    w->rows = ceil_div(w->to, ceil_div(w->to, SUMS_ROWS));
    const int64_t blocks = ceil_div(w->from, w->columns) * ceil_div(w->to, w->rows);
    for (w->splits = 1; w->splits * blocks < TASKS && w->splits * 4 * w->block <= w->count;)
        w->splits *= 2;
}

/* A block of tiles is transformed by one task, unless there are too few of them for the workers; sums are the same
 * either way. */
static void tasks_choose(const cpu_kernels *kernels, int workers, winograd_plan *w)
{
    if (workers == 1)
        return;
    if (ceil_div(w->count, w->block) < workers)
        w->block = kernels->mr;
    w->columns = round_up(ceil_div(w->to, ceil_div(4 * workers, ceil_div(w->count, w->block))), kernels->nr);
}

/* Cycles per transformed vector of weights. */
static double weight_cost(const winograd_plan *w, double bytes)
{
    if (w->depth)
        return cost_weight_once + cost_taps_once / (double)w->planes;
    return bytes <= NEAR_BYTES ? cost_weight : cost_weight_far;
}

/* The estimated times in cycles of one core, where products fill up their last tile of `nr` columns: of the squares,
 * and of multiplying every pixel by all taps. */
static double form_cost(const conv_desc *d, const winograd_plan *w, int64_t nr)
{
    const int weights = d->direction == CONV_BACKWARD_WEIGHTS;
    const double vl = (double)nr / 2, size = (double)w->planes / 36;
    const int64_t sums = weights ? w->to * round_up(w->from, nr) : w->from * round_up(w->to, nr);
    const double product = (double)(w->planes * sums) / vl;
    /* each block of weights transforms what it reads */
    const int64_t channels = weights ? w->from * ceil_div(w->to, w->rows) + w->to * ceil_div(w->from, w->columns)
                                     : w->from + w->to;
    return (double)w->count * (product * cost_product + size * cost_transform * (double)channels / vl) +
           product * weight_cost(w, product * vl * 4);
}

static double direct_cost(const conv_desc *d, const cpu_config *config, const winograd_plan *w, int64_t nr)
{
    const cpu_words *words = cek__conv_window_words(d, config);
    const int64_t pixels = d->batch * d->in[0] * w->size[0] * w->size[1];
    const int64_t sums = d->direction == CONV_BACKWARD_WEIGHTS ? w->to * round_up(9 * w->from, nr)
                                                               : 9 * w->from * round_up(w->to, nr);
    return (double)pixels * (double)sums / ((double)nr / 2) / (words ? words->unit : 1);
}

/* Whether its memory is in proportion: `from` and `to` may be any number. Of weights nearly all that is shared are taps
 * of parts, and counts even where they are the result itself: what is chosen follows from no type. */
static int is_small(const conv_desc *d, const winograd_plan *w)
{
    const int64_t taps = w->splits * 9 * w->from * w->to;
    const int64_t shared = d->direction == CONV_BACKWARD_WEIGHTS ? taps : (int64_t)w->shared_floats;

    return shared * 4 <= SHARED_BYTES && w->worker_floats * 4 <= WORKER_BYTES;
}

static void place(conv_plan *plan)
{
    if (plan->d.direction == CONV_BACKWARD_WEIGHTS)
        cek__winograd_weights_place(plan);
    else
        cek__winograd_images_place(plan);
}

int cek__winograd_plan(conv_plan *plan)
{
    const conv_desc *d = &plan->d;
    const cpu_kernels *kernels = plan->config->kernels;
    winograd_plan *w = &plan->winograd, best = { .form = NULL };

    if (d->strict || !has_taps(d))
        return 0;
    for (int i = 0; i < CPU_WINOGRADS; i++) {
        form_set(d, &kernels->winograd[i], w);
        sizes_choose(d, kernels, w);
        place(plan);
        w->cost = form_cost(d, w, kernels->nr);
        if (is_small(d, w) &&
            w->cost < (best.form ? best.cost : gain_wanted * direct_cost(d, plan->config, w, kernels->nr)))
            best = *w;
    }
    *w = best;
    if (best.form == NULL)
        return 0;
    if (d->direction != CONV_BACKWARD_WEIGHTS)
        tasks_choose(kernels, plan->workers, w);
    place(plan);
    plan->workspace_bytes = (w->shared_floats + (size_t)plan->workers * w->worker_floats) * 4;
    return 1;
}

void cek__winograd_run(const conv_call *call, cpu_threads *threads, void *workspace)
{
    const winograd_plan *w = &call->plan->winograd;

    threads = w->cost < PRODUCT_SERIAL_CYCLES ? NULL : threads;
    if (call->plan->d.direction == CONV_BACKWARD_WEIGHTS)
        cek__winograd_weights_run(call, threads, workspace);
    else
        cek__winograd_images_run(call, threads, workspace);
}
