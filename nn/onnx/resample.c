/* resample.c - Resize (see operators.h): along each axis the product with a matrix, whose columns say what a new
 * element is of the old ones; as often as a whole number each element where that is all.
 *
 * Places are computed in floats, as ONNX Runtime does: which of two elements is nearer may hang on the last bit. */
#include <math.h>
#include <stdlib.h>

#include "core/base/alloc.h"
#include "nn/onnx/operators.h"

enum { NEAREST, LINEAR, CUBIC };
enum { HALF_PIXEL, HALF_PIXEL_SYMMETRIC, PYTORCH_HALF_PIXEL, ALIGN_CORNERS, ASYMMETRIC, CROP };
enum { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL };
enum { ELEMENTS_MOST = 1 << 15 }; /* of an axis: the matrix has its square */

typedef struct resampling {
    int mode, places, nearest;
    float cubic;
} resampling;

static float place_of(const resampling *r, int64_t i, int64_t in, int64_t out, float scale)
{
    const float over = r->places == HALF_PIXEL_SYMMETRIC ? (float)in / 2 - (float)out / (2 * scale) : 0;

    if (r->places == ALIGN_CORNERS)
        return out == 1 ? 0 : (float)i * (float)(in - 1) / (float)(out - 1);
    if (r->places == ASYMMETRIC)
        return (float)i / scale;
    return r->places == PYTORCH_HALF_PIXEL && out == 1 ? 0 : over + ((float)i + 0.5f) / scale - 0.5f;
}

static float cubic_weight(float a, float distance)
{
    const float d = fabsf(distance);

    return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : d < 2 ? (((d - 5) * d + 8) * d - 4) * a : 0;
}

/* Adds to an element; beyond the ends there are those. */
static void weight_add(float *column, int64_t in, int64_t out, float at, float weight)
{
    const int64_t element = at < 0 ? 0 : at < (float)in ? (int64_t)at : in - 1;

    column[element * out] += weight;
}

/* What of `in` elements the one at place x is. */
static void column_fill(const resampling *r, int64_t in, int64_t out, float x, float *column)
{
    const float below = floorf(x);

    if (r->mode == NEAREST) {
        const float nearest[] = {
            [PREFER_FLOOR] = ceilf(x - 0.5f), [PREFER_CEIL] = floorf(x + 0.5f), [FLOOR] = below, [CEIL] = ceilf(x)
        };

        weight_add(column, in, out, nearest[r->nearest], 1);
    } else if (r->mode == LINEAR) {
        weight_add(column, in, out, below, 1 - (x - below));
        weight_add(column, in, out, below + 1, x - below);
    } else {
        for (int k = -1; k <= 2; k++)
            weight_add(column, in, out, below + (float)k, cubic_weight(r->cubic, x - below - (float)k));
    }
}

/* Whether each element is there `times` times, one behind the other. */
static bool repeats(const float *matrix, int64_t in, int64_t out)
{
    bool is = out % in == 0;

    for (int64_t i = 0; is && i < out; i++)
        is = matrix[i / (out / in) * out + i] == 1;
    return is;
}

static cek_status axis_multiply(cek__onnx_call *c, int x, int axis, int64_t out, const float *matrix, int *y)
{
    cek_status st;
    const int last = cek__call_dims(c, x)->rank - 1;
    int order[CEK_RANK_MAX], weights;

    for (int i = 0; i <= last; i++)
        order[i] = i == axis ? last : i == last ? axis : i; /* its own way back */
    CEK_TRY(cek__layer_constant(&c->layer, 2, (int64_t[]){ cek__call_dims(c, x)->size[axis], out }, matrix, &weights));
    CEK_TRY(cek__permute(c->graph, x, order, &x));
    CEK_TRY(cek__matmul(c->graph, x, weights, &x));
    st = cek__permute(c->graph, x, order, y);
out:
    return st;
}

static cek_status axis_resample(cek__onnx_call *c, const resampling *r, int axis, int64_t out, float scale, int *x)
{
    cek_status st;
    const int64_t in = cek__call_dims(c, *x)->size[axis];
    float *matrix = NULL;

    CEK_TRY(cek__call_apart(c, *x, axis));
    if (in > ELEMENTS_MOST || out < 1 || out > ELEMENTS_MOST)
        CEK_FAIL(CEK_UNSUPPORTED, "axis %d from %lld to %lld elements", axis, (long long)in, (long long)out);
    CEK_TRY(cek__calloc((size_t)(in * out), sizeof *matrix, &matrix));
    for (int64_t i = 0; i < out; i++)
        column_fill(r, in, out, place_of(r, i, in, out, scale), matrix + i);
    st = repeats(matrix, in, out) ? cek__onnx_repeat(c, *x, axis, axis + 1, out / in, x)
                                  : axis_multiply(c, *x, axis, out, matrix, x);
out:
    free(matrix);
    return st;
}

static cek_status resampling_take(const cek__onnx_call *c, resampling *r)
{
    static const char *const modes[] = { "nearest", "linear", "cubic", NULL };
    static const char *const policies[] = { "stretch", "not_larger", "not_smaller", NULL };
    static const char *const places[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
        NULL
    };
    static const char *const nearest[] = { "round_prefer_floor", "round_prefer_ceil", "floor", "ceil", NULL };
    cek_status st;
    int policy;

    CEK_TRY(cek__call_word(c, "mode", modes, &r->mode));
    CEK_TRY(cek__call_word(c, "coordinate_transformation_mode", places, &r->places));
    CEK_TRY(cek__call_word(c, "nearest_mode", nearest, &r->nearest));
    CEK_TRY(cek__call_word(c, "keep_aspect_ratio_policy", policies, &policy));
    r->cubic = (float)cek__call_float(c, "cubic_coeff_a", -0.75);
    if (policy || r->places == CROP || cek__call_int(c, "antialias", 0) || cek__call_int(c, "exclude_outside", 0))
        CEK_FAIL(CEK_UNSUPPORTED, "antialiased, cropped, within an aspect ratio or with exclude_outside");
out:
    return st;
}

/* By sizes, the last input, or by the factors before it. */
cek_status cek__onnx_resize(cek__onnx_call *c)
{
    cek_status st;
    const bool sizes = cek__call_has(c, 3), fixed = c->import->fixed;
    const cek__fold_value *v;
    int64_t axes[CEK__CALL_LIST];
    resampling r;
    int x, rank, named, axis;

    CEK_TRY(resampling_take(c, &r));
    CEK_TRY(cek__call_flow(c, 0, &x));
    CEK_TRY(cek__call_known(c, sizes ? 3 : 2, &v));
    rank = cek__call_dims(c, x)->rank;
    CEK_TRY(cek__call_ints(c, "axes", axes, &named));
    for (int i = 0; named < 0 && i < rank; i++)
        axes[i] = i;
    if (v->count != (uint64_t)(named < 0 ? rank : named) || (v->type == CEK__ONNX_FLOAT) == sizes)
        CEK_FAIL(CEK_BAD_INPUT, "%llu sizes or factors for %d axes", (unsigned long long)v->count, rank);
    for (uint64_t i = 0; i < v->count; i++) {
        const cek__fold_number *n = &v->numbers[i];
        int64_t in, out;
        bool samples;
        float scale;

        CEK_TRY(cek__call_axis(axes[i], rank, &axis));
        in = cek__call_dims(c, x)->size[axis];
        samples = cek__call_dims(c, x)->samples >> axis & 1;
        if (samples && sizes && (n->factor ? n->factor == in : fixed && n->constant == in * c->import->batch))
            continue; /* all of them */
        if (sizes && (samples || n->factor != 0))
            CEK_FAIL(CEK_UNSUPPORTED, "axis %d counts samples, or depends on their number", axis);
        scale = sizes ? (float)n->constant / (float)in : (float)n->real;
        if (!(scale > 0 && (float)in * scale <= ELEMENTS_MOST))
            CEK_FAIL(CEK_UNSUPPORTED, "axis %d of %lld elements by %g", axis, (long long)in, (double)scale);
        out = sizes ? n->constant : (int64_t)floorf((float)in * scale);
        if (r.places == ALIGN_CORNERS && !sizes && (float)out != (float)in * scale)
            CEK_FAIL(CEK_UNSUPPORTED, "align_corners of %lld elements by %g, which is no whole number", (long long)in,
                     (double)scale);
        if (out != in || scale != 1)
            CEK_TRY(axis_resample(c, &r, axis, out, scale, &x));
    }
    c->out[0] = x;
out:
    return st;
}
