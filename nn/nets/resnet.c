/* resnet.c - residual networks: a stem, four layers of blocks that halve the image and double the channels, a head. */
#include <stdio.h>

#include "nn/nets/nets.h"
#include "nn/nets/unit.h"

enum { LAYERS = 4, STEM = 64 };

typedef struct shape {
    int blocks[LAYERS];
    int64_t expansion; /* channels that a block gives for those that it computes with; above 1 it is a bottleneck */
} shape;

/* What stands between a block's input and its sum: convolution, norm and (but for the last) ReLU. */
static cek_status way_add(cek_model *model, const shape *s, int64_t width, uint32_t stride, int *x)
{
    cek_status st;
    /* clang-format off */
    const cek__unit basic[] = { { "conv1", "bn1", width, 3, stride, 1 },
                                { "conv2", "bn2", width, 3, 1, 1 } };
    const cek__unit bottleneck[] = { { "conv1", "bn1", width, 1, 1, 1 },
                                     { "conv2", "bn2", width, 3, stride, 1 },
                                     { "conv3", "bn3", width * s->expansion, 1, 1, 1 } };
    /* clang-format on */
    const cek__unit *units = s->expansion > 1 ? bottleneck : basic;
    const int count = s->expansion > 1 ? 3 : 2;

    for (int i = 0; i < count; i++) {
        if (i > 0)
            CEK_TRY(cek_model_activation(model, *x, CEK_ACT_RELU, x));
        CEK_TRY(cek__unit_add(model, &units[i], x));
    }
    st = CEK_OK;
out:
    return st;
}

/* relu(way(x) + x), where x is brought to the way's shape if it has another. */
static cek_status block_add(cek_model *model, const shape *s, int64_t width, uint32_t stride, bool reshapes, int *x)
{
    cek_status st;
    const cek__unit downsample = { "0", "1", width * s->expansion, 1, stride, 1 };
    int way = *x, past = *x;

    CEK_TRY(way_add(model, s, width, stride, &way));
    if (reshapes) {
        CEK_TRY(cek_model_enter(model, "downsample"));
        CEK_TRY(cek__unit_add(model, &downsample, &past));
        CEK_TRY(cek_model_leave(model));
    }
    CEK_TRY(cek_model_add(model, way, past, x));
    st = cek_model_activation(model, *x, CEK_ACT_RELU, x);
out:
    return st;
}

static cek_status layer_add(cek_model *model, const shape *s, int index, int *x)
{
    cek_status st;
    const int64_t width = (int64_t)STEM << index;
    char name[16];

    snprintf(name, sizeof name, "layer%d", index + 1);
    CEK_TRY(cek_model_enter(model, name));
    for (int i = 0; i < s->blocks[index]; i++) {
        const bool first = i == 0;

        snprintf(name, sizeof name, "%d", i);
        CEK_TRY(cek_model_enter(model, name));
        CEK_TRY(block_add(model, s, width, first && index > 0 ? 2 : 1, first && (index > 0 || s->expansion > 1), x));
        CEK_TRY(cek_model_leave(model));
    }
    st = cek_model_leave(model);
out:
    return st;
}

static cek_status network_add(cek_model *model, const shape *s, int64_t classes)
{
    cek_status st;
    const cek__unit stem = { "conv1", "bn1", STEM, 7, 2, 1 };
    const cek_pool2d_layer pool = { .size = sizeof pool,
                                    .mode = CEK_POOL_MAX,
                                    .kernel_h = 3,
                                    .kernel_w = 3,
                                    .stride_h = 2,
                                    .stride_w = 2,
                                    .pad_h = 1,
                                    .pad_w = 1 };
    int x = 0;

    CEK_TRY(cek__unit_add(model, &stem, &x));
    CEK_TRY(cek_model_activation(model, x, CEK_ACT_RELU, &x));
    CEK_TRY(cek_model_pool2d(model, x, &pool, &x));
    for (int i = 0; i < LAYERS; i++)
        CEK_TRY(layer_add(model, s, i, &x));
    st = cek__head_add(model, x, 0, "fc", classes);
out:
    return st;
}

cek_status cek__resnet18(cek_model *model, int64_t classes)
{
    return network_add(model, &(shape){ .blocks = { 2, 2, 2, 2 }, .expansion = 1 }, classes);
}

cek_status cek__resnet50(cek_model *model, int64_t classes)
{
    return network_add(model, &(shape){ .blocks = { 3, 4, 6, 3 }, .expansion = 4 }, classes);
}
