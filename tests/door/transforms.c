/* SPDX-License-Identifier: MIT
 *
 * transforms.c - conformance and convolutions by transform: Winograd's F(2x2, 3x3) and F(4x4, 3x3) in f32, in all three
 * directions, are within the bound of CEK_OP_INFO_INEXACT, which is not much wider than they need; any of their
 * constants that is off by a two-thousandth is found, and so is who transforms where it must not.
 *
 * The plugin is the reference, over whose results of plain 3 x 3 convolutions those of the transform are written.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/host/host.h"
#include "backends/reference/reference.h"
#include "spec/number.h"
#include "spec/spec.h"
#include "tests/suite.h"

/* ---- the transform ---- */

enum { SIDE_MOST = 6, TILE = SIDE_MOST * SIDE_MOST };

typedef struct matrix {
    int rows, columns;
    float v[TILE];
} matrix;

/* Of one axis: what is read, the weights, and what is given. y = output ((weights w) (input x)) for a tile x and a
 * filter w. The same numbers the other way round give the gradient of the weights: weights^T ((output^T
 * dy) (input x)). */
typedef struct winograd {
    matrix input, weights, output;
} winograd;

/* Of Lavin and Gray, "Fast algorithms for convolutional neural networks". */
static const winograd tables[] = {
    { { 4, 4, { 1, 0, -1, 0, 0, 1, 1, 0, 0, -1, 1, 0, 0, 1, 0, -1 } },
      { 4, 3, { 1, 0, 0, 1 / 2.f, 1 / 2.f, 1 / 2.f, 1 / 2.f, -1 / 2.f, 1 / 2.f, 0, 0, 1 } },
      { 2, 4, { 1, 1, 1, 0, 0, 1, -1, -1 } } },
    { { 6, 6, { 4, 0,  -5, 0, 1, 0, 0, -4, -4, 1,  1, 0, 0, 4, -4, -1, 1, 0,
                0, -2, -1, 2, 1, 0, 0, 2,  -1, -2, 1, 0, 0, 4, 0,  -5, 0, 1 } },
      { 6,
        3,
        { 1 / 4.f, 0, 0, -1 / 6.f, -1 / 6.f, -1 / 6.f, -1 / 6.f, 1 / 6.f, -1 / 6.f, 1 / 24.f, 1 / 12.f, 1 / 6.f,
          1 / 24.f, -1 / 12.f, 1 / 6.f, 0, 0, 1 } },
      { 4, 6, { 1, 1, 1, 1, 1, 0, 0, 1, -1, 2, -2, 0, 0, 1, 1, 4, 4, 0, 0, 1, -1, 8, -8, 1 } } },
};
static winograd used;

static matrix transposed(const matrix *m)
{
    matrix t = { m->columns, m->rows, { 0 } };
    for (int i = 0; i < m->rows; i++)
        for (int k = 0; k < m->columns; k++)
            t.v[k * t.columns + i] = m->v[i * m->columns + k];
    return t;
}

/* m in m^T */
static void both_sides(const matrix *m, const float *in, float *out)
{
    float half[TILE];
    for (int r = 0; r < m->rows; r++)
        for (int k = 0; k < m->columns; k++) {
            half[r * m->columns + k] = 0;
            for (int i = 0; i < m->columns; i++)
                half[r * m->columns + k] += m->v[r * m->columns + i] * in[i * m->columns + k];
        }
    for (int r = 0; r < m->rows; r++)
        for (int q = 0; q < m->rows; q++) {
            out[r * m->rows + q] = 0;
            for (int k = 0; k < m->columns; k++)
                out[r * m->rows + q] += half[r * m->columns + k] * m->v[q * m->columns + k];
        }
}

typedef struct image {
    float *at;
    int64_t count, height, width, channels;
} image;

/* side x side pixels of a channel from (y, x) on, 0 outside, then m of them m^T. */
static void tile_read(const image *im, int64_t n, int64_t y, int64_t x, int64_t c, const matrix *m, float *out)
{
    float tile[TILE];
    for (int i = 0; i < m->columns; i++)
        for (int k = 0; k < m->columns; k++) {
            bool inside = y + i >= 0 && y + i < im->height && x + k >= 0 && x + k < im->width;
            tile[i * m->columns + k] = inside
                                           ? im->at[((n * im->height + y + i) * im->width + x + k) * im->channels + c]
                                           : 0;
        }
    both_sides(m, tile, out);
}

static float *numbers(int64_t count)
{
    float *values = calloc((size_t)count, sizeof *values);
    ck_assert_ptr_nonnull(values);
    return values;
}

/* filters: [y's channels][x's channels][3][3]. pad: zeros before the first row and column of x. */
static void convolve(const image *x, const float *filters, const int64_t pad[2], const image *y)
{
    const int m = used.output.rows, points = used.input.rows * used.input.rows;
    float *u = numbers(y->channels * x->channels * points), *v = numbers(x->channels * points), sum[TILE], tile[TILE];
    for (int64_t f = 0; f < y->channels * x->channels; f++)
        both_sides(&used.weights, filters + f * 9, u + f * points);
    for (int64_t n = 0; n < y->count; n++)
        for (int64_t row = 0; row < y->height; row += m)
            for (int64_t column = 0; column < y->width; column += m) {
                for (int64_t i = 0; i < x->channels; i++)
                    tile_read(x, n, row - pad[0], column - pad[1], i, &used.input, v + i * points);
                for (int64_t o = 0; o < y->channels; o++) {
                    memset(sum, 0, sizeof sum);
                    for (int64_t i = 0; i < x->channels; i++)
                        for (int p = 0; p < points; p++)
                            sum[p] += u[(o * x->channels + i) * points + p] * v[i * points + p];
                    both_sides(&used.output, sum, tile);
                    for (int r = 0; r < m && row + r < y->height; r++)
                        for (int c = 0; c < m && column + c < y->width; c++)
                            y->at[((n * y->height + row + r) * y->width + column + c) * y->channels + o] =
                                tile[r * m + c];
                }
            }
    free(u), free(v);
}

/* dw: [dy's channels][3][3][x's channels] */
static void correlate(const image *x, const image *dy, const int64_t pad[2], float *dw)
{
    const matrix spread = transposed(&used.output), gather = transposed(&used.weights);
    const int m = used.output.rows, points = used.input.rows * used.input.rows;
    float *u = numbers(dy->channels * points), *v = numbers(x->channels * points), nine[TILE];
    float *sum = numbers(dy->channels * x->channels * points);
    for (int64_t n = 0; n < x->count; n++)
        for (int64_t row = 0; row < dy->height; row += m)
            for (int64_t column = 0; column < dy->width; column += m) {
                for (int64_t i = 0; i < x->channels; i++)
                    tile_read(x, n, row - pad[0], column - pad[1], i, &used.input, v + i * points);
                for (int64_t o = 0; o < dy->channels; o++)
                    tile_read(dy, n, row, column, o, &spread, u + o * points);
                for (int64_t o = 0; o < dy->channels; o++)
                    for (int64_t i = 0; i < x->channels; i++)
                        for (int p = 0; p < points; p++)
                            sum[(o * x->channels + i) * points + p] += u[o * points + p] * v[i * points + p];
            }
    for (int64_t o = 0; o < dy->channels; o++)
        for (int64_t i = 0; i < x->channels; i++) {
            both_sides(&gather, sum + (o * x->channels + i) * points, nine);
            for (int k = 0; k < 9; k++)
                dw[(o * 9 + k) * x->channels + i] = nine[k];
        }
    free(u), free(v), free(sum);
}

/* ---- the plugin ---- */

static enum { HONEST, UNTOLD, STRICT_TOO, STRICT_UNTOLD, STRICT_UNSUPPORTED, FORGETFUL, BOUNDED } manners;
static bool told; /* that the operation made last is inexact */

static bool is_plain(const cek__request *r)
{
    const cek_conv_desc *d = &r->desc.conv;
    return (d->op.kind == CEK_OP_CONV_FORWARD || d->op.kind == CEK_OP_CONV_BACKWARD_DATA ||
            d->op.kind == CEK_OP_CONV_BACKWARD_WEIGHTS) &&
           d->op.operands == 7 && !d->op.accumulate && !d->op.flags && !d->op.epilogue && d->x_type == CEK_F32 &&
           d->spatial == 2 && d->groups == 1 && d->kernel[0] == 3 && d->kernel[1] == 3 && d->stride[0] == 1 &&
           d->stride[1] == 1 && d->dilation[0] == 1 && d->dilation[1] == 1;
}

static bool transforms(const cek__request *r)
{
    return is_plain(r) && (r->desc.op.math != CEK_MATH_STRICT || manners == STRICT_TOO || manners == STRICT_UNTOLD);
}

static cek_status op_create(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out)
{
    cek_status st = cek__reference_plugin.op_create(dev, desc, info, out);
    if (st != CEK_OK)
        return st;
    const bool strict = desc->math == CEK_MATH_STRICT;
    if (strict && manners == STRICT_UNSUPPORTED && is_plain(&(*out)->request)) {
        cek__reference_plugin.op_destroy(*out);
        *out = NULL;
        return CEK_UNSUPPORTED;
    }
    told = transforms(&(*out)->request) && manners != UNTOLD && !(strict && manners == STRICT_UNTOLD);
    if (told)
        info->flags |= CEK_OP_INFO_INEXACT;
    return CEK_OK;
}

static void transform(const cek_op *op, const cek_ref *operands)
{
    const cek_conv_desc *d = &op->request.desc.conv;
    float *slot[3];
    for (int i = 0; i < 3; i++)
        slot[i] = (float *)(void *)(operands[i].mem->base + operands[i].offset);
    const int64_t images = (int64_t)d->batch, ic = (int64_t)d->in_channels, oc = (int64_t)d->out_channels;
    const uint64_t *out = op->request.out;
    image x = { slot[0], images, (int64_t)d->in[0], (int64_t)d->in[1], ic };
    image y = { slot[2], images, (int64_t)out[0], (int64_t)out[1], oc };
    int64_t pad[2] = { (int64_t)d->pad_lo[0], (int64_t)d->pad_lo[1] };
    if (d->op.kind == CEK_OP_CONV_BACKWARD_WEIGHTS) {
        y.at = slot[1];
        correlate(&x, &y, pad, slot[2]);
        return;
    }
    const bool data = d->op.kind == CEK_OP_CONV_BACKWARD_DATA;
    float *filters = numbers(oc * ic * 9);
    for (int64_t o = 0; o < oc; o++)
        for (int64_t i = 0; i < ic; i++)
            for (int k = 0; k < 9; k++)
                filters[data ? (i * oc + o) * 9 + 8 - k : (o * ic + i) * 9 + k] = slot[1][(o * 9 + k) * ic + i];
    if (data) {
        y.at = slot[0], x.at = slot[2];
        convolve(&y, filters, (const int64_t[]){ 2 - pad[0], 2 - pad[1] }, &x);
    } else {
        convolve(&x, filters, pad, &y);
    }
    free(filters);
}

static cek_status op_run(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count, cek_ref workspace)
{
    const cek_status st = cek__reference_plugin.op_run(queue, op, operands, count, workspace);
    if (st != CEK_OK || !transforms(&op->request))
        return st;
    float *out = (float *)(void *)(operands[2].mem->base + operands[2].offset);
    int64_t first = 0; /* that is NaN by the definition, or infinite */
    while ((manners == FORGETFUL && !isnan(out[first])) || (manners == BOUNDED && !isinf(out[first])))
        first++;
    transform(op, operands);
    if (manners == FORGETFUL)
        out[first] = 0;
    if (manners == BOUNDED)
        out[first] = FLT_MAX;
    return st;
}

/* ---- conformance of it ---- */

static const char *const directions[] = { "conv_forward", "conv_backward_data", "conv_backward_weights" };

/* Of what was inexact: the largest error by its bound, the largest bound by the values that it is of, and how often. */
typedef struct closeness {
    double error, bound;
    uint32_t count;
} closeness;

static void look(void *user, const spec_output *o)
{
    closeness *c = user;
    double got, squares = 0, widest = 0;
    if (!told)
        return;
    c->count++;
    for (uint64_t i = 0; i < o->count; i++) {
        spec_decode(o->type, (const char *)o->bytes + i * spec_type_bytes(o->type), 1, &got);
        if (isnan(o->expect[i]) || isnan(got))
            return;
        if (o->bound[i] > 0)
            c->error = fmax(c->error, fabs(got - o->expect[i]) / o->bound[i]);
        widest = fmax(widest, o->bound[i]);
        squares += o->expect[i] * o->expect[i];
    }
    c->bound = fmax(c->bound, widest / sqrt(squares / (double)o->count));
}

static const spec_report *report_of(const char *direction, const char *match, closeness *c)
{
    static spec_report report;
    cek_plugin table = cek__reference_plugin;
    spec_target target = { .plugin = &table };
    const spec_options options = {
        .group = direction, .type = CEK_F32, .match = match, .tamper = c ? look : NULL, .user = c
    };
    table.op_create = op_create;
    table.op_run = op_run;
    table.cmdbuf_create = NULL; /* whose runs would not come by here */
    table.cmdbuf_destroy = NULL;
    table.cmdbuf_run = NULL;
    ck_assert_uint_eq(table.create(NULL, &target.instance), CEK_OK);
    ck_assert_uint_eq(table.device_open(target.instance, 0, NULL, &target.dev), CEK_OK);
    ck_assert_uint_eq(spec_run(&target, &options, &report), CEK_OK);
    table.device_close(target.dev);
    table.destroy(target.instance);
    return &report;
}

#define ONE "mb1ic16ih15oc16oh15kh3ph1 "

/* F(2x2) has 4 of the 64 that plugin.h gives for F(4x4), which leaves less than nine tenths of them unused. */
START_TEST(transforms_are_within_the_bound_in_all_directions_and_need_most_of_it)
{
    static const struct {
        double most, least;
    } share[] = { { 4 / 64., 0 }, { 1, 0.1 } };
    for (int t = 0; t < 2; t++)
        for (int d = 0; d < 3; d++) {
            closeness c = { 0 };
            manners = HONEST;
            used = tables[t];
            const spec_report *r = report_of(directions[d], " real", &c);
            fprintf(stderr, "F(%dx%d) %s: %u times, at most %.3g of the bound, which is at most %.2g of the values\n",
                    used.output.rows, used.output.rows, directions[d], c.count, c.error, c.bound);
            ck_assert_msg(r->ok, "%s: %s", r->failure[0].name, r->failure[0].what);
            ck_assert_uint_ge(c.count, 10);
            ck_assert(c.error <= share[t].most && c.error >= share[t].least);
            ck_assert(c.bound > 0 && c.bound < 1e-3);
        }
}
END_TEST

START_TEST(a_constant_of_a_transform_that_is_a_two_thousandth_off_is_found_in_each_direction)
{
    int tried = 0;
    manners = HONEST;
    for (int t = 0; t < 2; t++)
        for (int which = 0; which < 3; which++)
            for (int at = 0; at < TILE; at++) {
                used = tables[t];
                matrix *m = which == 0 ? &used.input : which == 1 ? &used.weights : &used.output;
                if (at >= m->rows * m->columns || m->v[at] == 0)
                    continue;
                m->v[at] *= 1 + 1 / 2000.f;
                tried++;
                const spec_report *r = report_of(NULL, ONE "real", NULL);
                ck_assert_msg(r->total.required == 3 && r->failure_count == 3,
                              "F(%dx%d), matrix %d, element %d: found in %u of %u directions", used.output.rows,
                              used.output.rows, which, at, r->failure_count, r->total.required);
            }
    ck_assert_int_eq(tried, 8 + 8 + 6 + 22 + 14 + 18);
}
END_TEST

START_TEST(who_transforms_as_it_may_passes_with_numbers_of_every_kind)
{
    manners = HONEST;
    used = tables[1];
    const spec_report *r = report_of(NULL, "mb5ic16ih9oc32oh9kh3ph1 ", NULL);
    ck_assert_msg(r->ok && r->total.required == 12, "%u cases, %s: %s", r->total.required, r->failure[0].name,
                  r->failure[0].what);
}
END_TEST

START_TEST(who_transforms_where_it_must_not_is_found)
{
    static const struct {
        int manners;
        const char *name, *what;
    } rows[] = {
        { UNTOLD, ONE "whole", "expected" },
        { STRICT_TOO, ONE "whole, strict", "a transform under CEK_MATH_STRICT" },
        { STRICT_UNTOLD, ONE "whole, strict", "expected" },
        { STRICT_UNSUPPORTED, ONE "whole, strict", "it is unsupported under CEK_MATH_STRICT alone" },
    };
    used = tables[1]; /* F(2x2) is exact where numbers are whole */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int d = 0; d < 3; d++) {
            manners = rows[i].manners;
            const spec_report *r = report_of(directions[d], ONE "whole", NULL);
            const spec_failure *f = &r->failure[0];
            const size_t tail = strlen(f->name) - strlen(rows[i].name);
            ck_assert_uint_eq(r->failure_count, 1);
            ck_assert_msg(!strcmp(f->name + tail, rows[i].name) && strstr(f->what, rows[i].what), "%s: %s", f->name,
                          f->what);
        }
}
END_TEST

/* A transform may spread a NaN, and not lose one. */
START_TEST(who_loses_a_nan_in_a_transform_is_found)
{
    used = tables[1];
    for (int d = 0; d < 3; d++) {
        manners = FORGETFUL;
        const spec_report *r = report_of(directions[d], "mb5ic16ih9oc32oh9kh3ph1 nan", NULL);
        ck_assert_msg(r->failure_count == 1 && strstr(r->failure[0].what, "is 0, expected nan"), "%u failures, %s",
                      r->failure_count, r->failure_count ? r->failure[0].what : "");
    }
}
END_TEST

/* An overflow shows behind a transform. */
START_TEST(who_makes_a_number_of_an_infinity_in_a_transform_is_found)
{
    used = tables[1];
    for (int d = 0; d < 3; d++) {
        manners = BOUNDED;
        const spec_report *r = report_of(directions[d], "mb5ic16ih9oc32oh9kh3ph1 infinite", NULL);
        ck_assert_msg(r->failure_count == 1 && strstr(r->failure[0].what, "is 3.40282347e+38, expected ") &&
                          strstr(r->failure[0].what, "inf"),
                      "%u failures, %s", r->failure_count, r->failure_count ? r->failure[0].what : "");
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("transforms");
    TCase *cases = tcase_create("transforms");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, transforms_are_within_the_bound_in_all_directions_and_need_most_of_it);
    tcase_add_test(cases, a_constant_of_a_transform_that_is_a_two_thousandth_off_is_found_in_each_direction);
    tcase_add_test(cases, who_transforms_as_it_may_passes_with_numbers_of_every_kind);
    tcase_add_test(cases, who_transforms_where_it_must_not_is_found);
    tcase_add_test(cases, who_loses_a_nan_in_a_transform_is_found);
    tcase_add_test(cases, who_makes_a_number_of_an_infinity_in_a_transform_is_found);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
