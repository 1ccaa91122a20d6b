/* conv.h - convolutions on one CPU device: forward, backward-data, backward-weights.
 *
 * Owns: the plan of a convolution, whichever method serves it (method.h).
 * Must not know: plugin.h, devices, queues. Allocates nothing; immutable after planning; no state.
 *
 * One to three spatial dimensions, always described by three: missing ones come first and are 1
 * (kernel 1, stride 1, dilation 1, pad 0). Activations are dense [batch][d][h][w][channels],
 * weights dense [out][kd][kh][kw][in / groups]. Padding after the end follows from `out`: positions
 * outside the input read as 0.
 *
 *     forward:           y  = (y +) act(x * w + bias)
 *     backward-data:     dx = (dx +) (dy * w^T) . act'(ref)             ref like x
 *     backward-weights:  dw = (dw +) dy^T * x      dbias = (dbias +) sum of dy
 *
 * The old value is added where `accumulate` (for dbias: `bias_accumulate`) is set.
 *
 * Sums are f32 whatever the types; the summation order is a function of descriptor and
 * configuration alone. */
#ifndef CEK_BACKENDS_CPU_CONV_CONV_H
#define CEK_BACKENDS_CPU_CONV_CONV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/conv/image.h"
#include "backends/cpu/conv/scatter.h"
#include "backends/cpu/conv/slab.h"
#include "backends/cpu/conv/winograd.h"
#include "backends/cpu/product/product.h"

typedef enum { CONV_FORWARD, CONV_BACKWARD_DATA, CONV_BACKWARD_WEIGHTS } conv_direction;

typedef struct conv_desc {
    conv_direction direction;
    cpu_type x, w, y; /* types of x or dx, w or dw, y or dy */
    int64_t batch, in_channels, out_channels, groups;
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3];
    int64_t pad[3]; /* before the first element */
    int accumulate, bias_accumulate;
    int packed;    /* forward: w is what cek__conv_pack wrote; the same bits */
    int strict;    /* no transforms: small integers are exact */
    cpu_act act;   /* forward: activation on store */
    cpu_act deriv; /* backward-data: activation whose derivative multiplies */
    cpu_type ref;  /* type of ref, where deriv */
} conv_desc;

typedef struct conv_args {
    const void *x, *w, *y; /* the inputs of the direction: (x, w), (w, y = dy) or (x, y = dy) */
    void *out;             /* y, dx or dw */
    const float *bias;     /* forward, or NULL */
    const void *ref;       /* backward-data, where deriv */
    float *dbias;          /* backward-weights, or NULL: out_channels values */
} conv_args;

/* Filled by cek__conv_plan; `workspace_bytes`, `algorithm`, `inexact` and `asked` are for the caller, who may tell from
 * what is computed which packed forms are the same. */
typedef struct conv_plan {
    size_t workspace_bytes; /* alignment 64 */
    const char *algorithm;  /* a static text: "gemm", "implicit gemm", "depthwise" ... */
    int inexact;            /* a transform is used: small integers may not be exact, a NaN may reach its neighbours */
    conv_desc asked;        /* the caller's */
    conv_desc d;            /* what is computed: another one where taps are cut or pixels taken together */
    bool cut;               /* taps that never see an image are left out (taps.c) */
    int64_t first_tap[3];   /* of the caller's, the first that is left ... */
    int64_t taps_left[3];   /* and how many are, whatever a method makes of d */
    size_t taps_at;         /* its part of the workspace */
    int64_t pixels;         /* of which so many are one (pixels.c) */
    size_t pixels_at;       /* its part of the workspace */
    const cpu_config *config;
    int workers;
    int method;
    windows w; /* where the method has any */
    slab slab; /* where the method is one of slabs */
    product_plan product;
    winograd_plan winograd; /* where the method is that */
    scatter_plan scatter;   /* where the method is that */
} conv_plan;

/* cek__conv_plan - chooses; cannot fail for a descriptor whose sizes are >= 1 and whose `out` fits
 * the other fields (the caller validates). `workers` is the largest number of workers of the pools
 * that will run it. */
void cek__conv_plan(const conv_desc *desc, const cpu_config *config, int workers, conv_plan *out);

/* cek__conv_packed_floats - how many floats the weights of a forward plan, of any type, take when they are packed; 0:
 * no method of it reads them so. pack - writes them to `packed`, aligned to 64. The form hangs on geometry and kernels
 * alone, not on the number of images. */
int64_t cek__conv_packed_floats(const conv_plan *plan);
void cek__conv_pack(const conv_plan *plan, cpu_threads *threads, const void *weights, float *packed);

/* cek__conv_run - computes. Same rules as cek__gemm_run. */
void cek__conv_run(const conv_plan *plan, cpu_threads *threads, const conv_args *args, void *workspace);

#endif
