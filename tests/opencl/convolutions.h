/* convolutions.h - convolutions through a plugin's door, with all that may go with one: made from a geometry, computed
 * under a `math`, their results compared. */
#ifndef CEK_TESTS_OPENCL_CONVOLUTIONS_H
#define CEK_TESTS_OPENCL_CONVOLUTIONS_H

#include <math.h>

#include "tests/door/door.h"

enum { KINDS = 3 };

/* Of two dimensions; square windows, `lo` and `hi` zeros around the images. */
typedef struct geometry {
    uint64_t batch, in, out, height, width, lo, hi, kernel, stride, dilation;
} geometry;

typedef struct problem {
    cek_epilogue epilogue;
    cek_conv_desc desc;
    uint64_t counts[4], bytes; /* elements of the operands; bytes of the result */
    float *values[4];
    array arrays[4];
} problem;

static inline void values_make(float *to, uint64_t count, uint32_t seed)
{
    for (uint64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = (float)(seed >> 8) * 0x1p-23f - 1.0f;
    }
}

static inline uint64_t positions(const geometry *g, uint64_t length)
{
    return (length + g->lo + g->hi - (g->kernel - 1) * g->dilation - 1) / g->stride + 1;
}

/* Direction `way` of a convolution: with a bias and an activation, the gradient of one, a result that is added to. */
static inline void problem_make(problem *p, const geometry *g, uint32_t way)
{
    const uint32_t kind = CEK_OP_CONV_FORWARD + way;
    *p = (problem){ .epilogue = { .size = sizeof p->epilogue,
                                  .activation = kind == CEK_OP_CONV_FORWARD ? CEK_ACT_RELU : 0,
                                  .act_grad = kind == CEK_OP_CONV_BACKWARD_DATA ? CEK_ACT_RELU : 0 },
                    .desc = { .op = { .size = sizeof p->desc,
                                      .kind = kind,
                                      .epilogue = kind == CEK_OP_CONV_BACKWARD_WEIGHTS ? NULL : &p->epilogue,
                                      .accumulate = kind == CEK_OP_CONV_FORWARD ? 0 : CEK_BIT(2) },
                              .spatial = 2,
                              .groups = 1,
                              .batch = g->batch,
                              .in_channels = g->in,
                              .out_channels = g->out,
                              .in = { g->height, g->width },
                              .kernel = { g->kernel, g->kernel },
                              .stride = { g->stride, g->stride },
                              .dilation = { g->dilation, g->dilation },
                              .pad_lo = { g->lo, g->lo },
                              .pad_hi = { g->hi, g->hi },
                              .x_type = CEK_F32,
                              .w_type = CEK_F32,
                              .y_type = CEK_F32 } };
    const uint64_t x = g->batch * g->height * g->width * g->in, w = g->out * g->kernel * g->kernel * g->in;
    const uint64_t y = g->batch * positions(g, g->height) * positions(g, g->width) * g->out;
    const uint64_t counts[KINDS][4] = { { x, w, y, g->out }, { y, w, x, x }, { x, y, w, g->out } };
    memcpy(p->counts, counts[way], sizeof p->counts);
    p->bytes = p->counts[2] * sizeof(float);
    for (uint32_t i = 0; i < 4; i++) {
        p->values[i] = malloc(p->counts[i] * sizeof(float));
        ck_assert_ptr_nonnull(p->values[i]);
        values_make(p->values[i], p->counts[i], 17 * i + 1);
        p->arrays[i] = (array)IN(p->values[i], p->counts[i] * sizeof(float));
    }
    p->arrays[2] = (array){ .bytes = p->bytes };
    if (kind == CEK_OP_CONV_BACKWARD_WEIGHTS)
        p->arrays[3] = (array){ .bytes = 0 };
}

static inline void problem_free(problem *p)
{
    for (uint32_t i = 0; i < 4; i++)
        free(p->values[i]);
}

/* The result under `math`, malloc'ed. */
static inline float *computed(door *on, problem *p, uint32_t math, cek_op_info *info)
{
    float *out = malloc(p->bytes);
    ck_assert_ptr_nonnull(out);
    memcpy(out, p->values[2], p->bytes);
    p->arrays[2].out = (unsigned char *)out;
    p->desc.op.math = math;
    cek_op *made = door_op(on, &p->desc.op, p->arrays, 4, info);
    door_op_run(on, made, info, p->arrays, 4);
    on->plugin.op_destroy(made);
    return out;
}

static inline double error_of(const float *got, const float *want, uint64_t count)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
    return sqrt(sum / (double)count);
}

static inline double size_of(const float *of, uint64_t count)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += (double)of[i] * of[i];
    return sqrt(sum / (double)count);
}

#endif
