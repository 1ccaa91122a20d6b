/* prelu.c - the rectifier that learns what it lets through below zero: one slope, or one for each channel. */
#include "core/base/status.h"
#include "nn/model/layer.h"

enum { X, SLOPE, ZERO, POSITIVE, BELOW }; /* inputs, then what each instruction gives */

cek_status cek_model_prelu(cek_model *model, int input, uint32_t slopes, int *node)
{
    cek_status st;
    cek__layer l;
    cek__part part = { .kind = CEK__PART_CHAIN,
                       .inputs = 2,
                       .chain = { .count = 4,
                                  .code = { { .code = CEK_PW_CONST, .imm = 0 },
                                            { .code = CEK_PW_LESS, .a = ZERO, .b = X },
                                            { .code = CEK_PW_MUL, .a = SLOPE, .b = X },
                                            { .code = CEK_PW_SELECT, .a = POSITIVE, .b = X, .c = BELOW } } } };
    cek__dims dims = { .rank = 1, .size = { slopes } };
    char text[CEK__SHAPE_TEXT];
    int y = CEK__NOTHING;

    CEK_TRY(cek__layer_begin(&l, model, "prelu", 1, &input));
    if (slopes != 1 && (l.in.rank < 2 || l.in.samples != 1 || slopes != l.in.size[1]))
        CEK_FAIL(CEK_INVALID, "%u slopes for an input of the shape %s; there is one, or one for each channel", slopes,
                 cek__dims_text(&l.in, text));
    CEK_TRY(cek__layer_filled(&l, "weight", 1, dims.size, 0.25, &part.input[SLOPE]));
    for (; slopes != 1 && dims.rank < l.in.rank - 1; dims.rank++) /* along the channels' axis */
        dims.size[dims.rank] = 1;
    CEK_TRY(cek__view(l.graph, part.input[SLOPE], &dims, &part.input[SLOPE]));
    part.input[X] = l.x[0];
    CEK_TRY(cek__graph_add(l.graph, &part, &y));
out:
    return cek__layer_end(&l, st, y, node);
}
