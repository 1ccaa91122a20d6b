/* bias.c - see bias.h. */
#include "nn/layers/bias.h"

#include "core/base/status.h"

cek_status cek__bias_add(cek__layer *l, int y, int axis, double fan_in, int *out)
{
    cek_status st;
    const cek__dims dims = l->graph->flows[y].dims;
    cek__dims along = { .rank = dims.rank - axis };
    int bias;

    along.size[0] = dims.size[axis];
    for (int i = 1; i < along.rank; i++)
        along.size[i] = 1;
    CEK_TRY(cek__layer_parameter(l, "bias", 1, along.size, fan_in, &bias));
    CEK_TRY(cek__view(l->graph, bias, &along, &bias));
    st = cek__chain(l->graph, CEK_PW_ADD, y, bias, out);
out:
    return st;
}
