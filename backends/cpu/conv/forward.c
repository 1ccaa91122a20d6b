/* forward.c - forward convolution as a product: windows of x (A) times weights (B), one
 * product per group.
 *
 * Owns: operands and result of that product. Must not know: how products are planned and run. */
#include "backends/cpu/conv/method.h"

const cpu_words *cek__conv_window_words(const conv_desc *d, const cpu_config *config)
{
    const cpu_words *words = config->bf16;

    if (d->direction != CONV_FORWARD || words == NULL || words->along || d->x != words->type || d->w != words->type)
        return NULL;
    return conv_group_in(d) % words->unit == 0 ? words : NULL;
}

/* Windows of words are such of an image of fewer floats. */
static void words_plan(conv_plan *plan)
{
    const conv_desc *d = &plan->d;
    const cpu_words *words = cek__conv_window_words(d, plan->config);
    windows *w = &plan->w;

    if (words == NULL)
        return;
    cek__product_words(&plan->product, d->x, d->w);
    w->channels /= words->unit;
    w->image /= words->unit;
    for (int i = 0; i < 3; i++)
        w->pitch[i] /= words->unit;
}

void cek__conv_forward_plan(conv_plan *plan)
{
    const conv_desc *d = &plan->d;
    cek__conv_windows(d, &plan->w);
    const int in_place = d->y == CPU_F32 && !(d->accumulate && (d->act != CPU_ACT_NONE || d->deriv != CPU_ACT_NONE));
    plan->product = (product_plan){
        .m = windows_rows(&plan->w),
        .n = conv_group_out(d),
        .k = windows_columns(&plan->w),
        .batch = d->groups,
        .config = plan->config,
        .workers = plan->workers,
        .in_place = in_place,
        .add = in_place && d->accumulate,
        .ahead = true,
        .way_a = PACK_ALONG,
        .way_b = PACK_ALONG,
    };
    if (plan->method == CONV_MATRIX)
        cek__conv_matrix_plan(plan, (gemm_matrix){ d->x, d->in_channels, 1, 0 },
                              (gemm_matrix){ d->w, 1, plan->product.k, 0 });
    else
        words_plan(plan);
    if (plan->method == CONV_WINDOWS && cek__conv_slabs_plan(plan))
        plan->method = CONV_SLABS;
    cek__product_plan(&plan->product);
}

static void open_group(const void *owner, int64_t group, product_part *out)
{
    const conv_call *call = owner;
    const conv_desc *d = &call->plan->d;
    const conv_args *args = call->args;
    const int64_t in = conv_group_in(d), n = conv_group_out(d), depth = conv_taps(d) * in;
    const int words = call->plan->product.words && call->plan->method != CONV_MATRIX;

    out->a = pack_of(conv_at(args->x, d->x, group * in), words ? CPU_F32 : d->x, d->in_channels, 1,
                     call->plan->product.way_a);
    if (!d->packed)
        out->b = pack_of(conv_at(args->w, d->w, group * n * depth), d->w, 1, depth, call->plan->product.way_b);
    out->e = (epilogue){ .c = conv_at(args->out, d->y, group * n),
                         .to = { d->y, d->out_channels, 1, 0 },
                         .accumulate = d->accumulate && !call->plan->product.in_place,
                         .act = d->act,
                         .bias = args->bias ? args->bias + group * n : NULL,
                         .deriv = d->deriv, /* of a gradient (pixels.c) */
                         .ref = d->deriv != CPU_ACT_NONE ? conv_at(args->ref, d->ref, group * n) : NULL,
                         .ref_at = { d->ref, d->out_channels, 1, 0 } };
}

void cek__conv_forward_run(const conv_call *call, cpu_threads *threads, void *workspace)
{
    const conv_plan *plan = call->plan;
    const product_source source = {
        .owner = call,
        .open = open_group,
        .b = plan->d.packed ? cek__conv_packed_b : cek__product_b,
        .take = cek__product_take,
        .a = cek__conv_give_a(plan),
        .plain = plan->d.act == CPU_ACT_NONE && plan->d.deriv == CPU_ACT_NONE && !call->args->bias,
    };
    cek__product_run(&plan->product, threads, &source, workspace);
}
