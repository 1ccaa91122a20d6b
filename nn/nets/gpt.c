/* gpt.c - a small language model on bytes: what comes behind each, seen from those before it.
 *
 * Pre-norm blocks of causal attention and a wide layer, positions that are learnt, a head tied to the table of bytes.
 * Names are GPT-2's; within a block those of PyTorch's MultiheadAttention and of a Sequential. Begins as GPT-2 does. */
#include <math.h>
#include <stdio.h>

#include "cekernels/parts.h"
#include "nn/nets/nets.h"

enum { BYTES = 256, WIDTH = 128, HEADS = 4, WIDER = 4 };
static const double deviation = 0.02;

static cek_status norm_add(cek_model *model, const char *name, int *x)
{
    cek_status st;
    const cek_norm_layer norm = { .size = sizeof norm };

    CEK_TRY(cek_model_name(model, name));
    st = cek_model_layer_norm(model, *x, &norm, x);
out:
    return st;
}

static cek_status wide_add(cek_model *model, int *x)
{
    cek_status st;

    CEK_TRY(cek_model_enter(model, "mlp"));
    CEK_TRY(cek_model_linear(model, *x, WIDER * WIDTH, true, x));
    CEK_TRY(cek_model_activation(model, *x, CEK_ACT_GELU, x));
    CEK_TRY(cek_model_linear(model, *x, WIDTH, true, x));
    st = cek_model_leave(model);
out:
    return st;
}

/* x + attention(norm(x)), and of that y + wide(norm(y)) */
static cek_status block_add(cek_model *model, int *x)
{
    cek_status st;
    const cek_attention_layer attention = { .size = sizeof attention, .heads = HEADS, .causal = true };
    int y = *x;

    CEK_TRY(norm_add(model, "ln_1", &y));
    CEK_TRY(cek_model_name(model, "attn"));
    CEK_TRY(cek_model_attention(model, y, y, y, -1, &attention, &y));
    CEK_TRY(cek_model_add(model, *x, y, x));
    y = *x;
    CEK_TRY(norm_add(model, "ln_2", &y));
    CEK_TRY(wide_add(model, &y));
    st = cek_model_add(model, *x, y, x);
out:
    return st;
}

/* The sum of what each byte and each place are in the tables. */
static cek_status tables_add(cek_model *model, int64_t context, int *x)
{
    cek_status st;
    const cek_parameter_options places = { .size = sizeof places, .rank = 2, .shape = (int64_t[]){ context, WIDTH } };
    int bytes, place;

    CEK_TRY(cek_model_name(model, "wte"));
    CEK_TRY(cek_model_embedding(model, *x, BYTES, WIDTH, &bytes));
    CEK_TRY(cek_model_name(model, "wpe"));
    place = cek_part_parameter(model, "weight", &places);
    *x = cek_part_apply(model, CEK_PW_ADD, bytes, place);
    st = cek_model_status(model);
out:
    return st;
}

/* Normal numbers; fewer where a block's sum ends, of which there are two for each of the layers; no offsets. */
static cek_status init_set(cek_model *model, int64_t layers)
{
    cek_status st = CEK_OK;
    const cek_init normal = { .size = sizeof normal, .kind = CEK_INIT_NORMAL, .deviation = deviation };
    const cek_init less = { .size = sizeof less,
                            .kind = CEK_INIT_NORMAL,
                            .deviation = deviation / sqrt(2 * (double)layers) };
    const cek_init zero = { .size = sizeof zero, .kind = CEK_INIT_CONSTANT };
    const struct {
        const char *names;
        const cek_init *how;
    } rules[] = {
        { "w?e.weight", &normal },     { "h.*.attn.in_proj_weight", &normal }, { "h.*.mlp.0.weight", &normal },
        { "h.*.mlp.2.weight", &less }, { "h.*.attn.out_proj.weight", &less },  { "h.*.attn.*bias", &zero },
        { "h.*.mlp.*.bias", &zero }
    };

    for (size_t i = 0; i < sizeof rules / sizeof *rules && st == CEK_OK; i++)
        st = cek_model_set_init(model, rules[i].names, rules[i].how);
    return st;
}

cek_status cek__gpt(cek_model *model, int64_t layers)
{
    cek_status st;
    const cek_loss_options loss = { .size = sizeof loss, .kind = CEK_LOSS_CROSS_ENTROPY };
    int64_t shape[CEK_RANK_MAX];
    char name[24];
    int x = 0;

    if (cek_model_input_shape(model, shape) != 1)
        CEK_FAIL(CEK_INVALID, "gpt: it reads a sequence of bytes, of one axis");
    CEK_TRY(tables_add(model, shape[0], &x));
    CEK_TRY(cek_model_enter(model, "h"));
    for (int64_t i = 0; i < layers; i++) {
        snprintf(name, sizeof name, "%lld", (long long)i);
        CEK_TRY(cek_model_enter(model, name));
        CEK_TRY(block_add(model, &x));
        CEK_TRY(cek_model_leave(model));
    }
    CEK_TRY(cek_model_leave(model));
    CEK_TRY(norm_add(model, "ln_f", &x));
    x = cek_part_matmul(model, x, cek_part_shared(model, "wte.weight"), true);
    CEK_TRY(cek_model_status(model));
    CEK_TRY(cek_model_loss(model, x, &loss, NULL));
    st = init_set(model, layers);
out:
    return st;
}
