/* pool.c - cases and oracle of pooling, forward and backward.
 *
 * Text: mb, c, ih iw (id), kh kw (kd), sh sw (sd), ph pw (pd) as for convolutions, qh qw (qd) for
 * the padding behind where it differs, then :max or :avg (divides by what is inside), :pad (divides
 * by the whole kernel), :res (forward: writes the reserve). Backward of a maximum runs the forward
 * operation first. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "spec/problem.h"

#define REQUIRED(text_, fills_) { .text = text_, .types = SPEC_T_ALL, .fills = fills_ },
/* Less than CEK_ALIGNMENT may be refused. */
#define UNALIGNED(text_) { .text = text_, .types = SPEC_T_F32 | SPEC_T_LOW, .fills = SPEC_F_BOTH, .optional = true },
#define ALIGNED(text_, fills_) { .text = text_, .types = SPEC_T_ALL, .fills = fills_, .optional = true },
#define PROBLEMS(X, MODE, FILLS)                                                                        \
    X("mb1c1ih4kh2sh2" MODE, FILLS)                                                                     \
    X("mb2c3ih7kh3sh2" MODE, FILLS) /* the last window is cut off */                                    \
    X("mb2c3ih7kh3sh2ph1" MODE, FILLS)                                                                  \
    X("mb1c17ih9iw6kh3kw2sh1sw2ph1pw0" MODE, FILLS)                                                     \
    X("mb3c33ih8kh2sh2" MODE, FILLS)                                                                    \
    X("mb1c16ih6kh3sh1ph0qh2pw2qw1" MODE, FILLS) /* unlike before and behind */                         \
    X("mb2c5ih8kh2sh3" MODE, FILLS)              /* positions that no window reads */                   \
    X("mb2c20ih7kh7sh1" MODE, FILLS)             /* global */                                           \
    X("mb2c37ih9iw7kh2sh2" MODE, FILLS)          /* a row and a column are left over */                 \
    X("mb2c8ih6iw10kh2sh2" MODE, FILLS)          /* half a vector of channels, an odd row of windows */ \
    X("mb1c4ih6kh3sh1ph1" MODE, FILLS)                                                                  \
    X("mb1c2ih6iw7kh2sh2" MODE, FILLS)                                                                  \
    X("mb1c4ih19kh17sh1" MODE, FILLS)    /* more positions than a byte numbers */                       \
    X("mb1c64ih14kh5sh1ph2" MODE, FILLS) /* windows overlap */
#define OTHER_RANKS(X, MODE)                                   \
    X("mb2c3iw9kw3sw2pw1" MODE, SPEC_F_BOTH)                   \
    X("mb1c3id4ih5iw6kd2kh3kw2sd2sh1sw2ph1" MODE, SPEC_F_BOTH) \
    X("mb2c3id5ih5iw7kd2kh2kw3sd2sh2sw3" MODE, SPEC_F_BOTH)

static const spec_case forward_cases[] = {
    PROBLEMS(REQUIRED, ":max", SPEC_F_ALL) PROBLEMS(REQUIRED, ":avg", SPEC_F_ALL)
        PROBLEMS(REQUIRED, ":avg:pad", SPEC_F_BOTH) REQUIRED("mb2c3ih7kh3sh2ph1:max:res", SPEC_F_ALL)
            REQUIRED("mb1c3ih9kh1sh2:max", SPEC_F_BOTH | SPEC_F(INFINITE)) /* a window of -infinity alone */
    REQUIRED("mb2c24ih8kh2sh2:max:res", SPEC_F_BOTH) REQUIRED("mb2c24ih9kh3sh2ph1:max:det", SPEC_F(REAL))
        REQUIRED("mb2c24ih9kh3sh2ph1:avg:det", SPEC_F(REAL)) OTHER_RANKS(REQUIRED, ":max") OTHER_RANKS(REQUIRED, ":avg")
            OTHER_RANKS(REQUIRED, ":avg:pad") UNALIGNED("mb2c24ih8kh2sh2:max:align4")
                UNALIGNED("mb2c24ih8kh2sh2:avg:align4") ALIGNED("mb2c24ih8kh2sh2:max:align16", SPEC_F_BOTH)
};
static const spec_case backward_cases[] = {
    PROBLEMS(REQUIRED, ":max", SPEC_F_ALL) PROBLEMS(REQUIRED, ":avg", SPEC_F_ALL)
        PROBLEMS(REQUIRED, ":avg:pad", SPEC_F_BOTH) REQUIRED("mb2c24ih9kh3sh2ph1:max:det", SPEC_F(REAL))
            REQUIRED("mb1c3ih9kh1sh2:max", SPEC_F_BOTH | SPEC_F(INFINITE))
                REQUIRED("mb2c24ih9kh3sh2ph1:avg:det", SPEC_F(REAL)) OTHER_RANKS(REQUIRED, ":max")
                    OTHER_RANKS(REQUIRED, ":avg") OTHER_RANKS(REQUIRED, ":avg:pad")
                        UNALIGNED("mb2c24ih8kh2sh2:max:align4") UNALIGNED("mb2c24ih8kh2sh2:avg:align4")
                            ALIGNED("mb2c24ih8kh2sh2:max:align16", SPEC_F_BOTH)
};

/* The problem with exactly three spatial dimensions, the unused ones in front. */
typedef struct geometry {
    int64_t in[3], out[3], kernel[3], stride[3], lo[3];
    uint64_t inputs, outputs, channels, batch;
} geometry;

static uint64_t *pool_field(cek_pool_desc *d, uint64_t *behind, const char *key)
{
    if (!strcmp(key, "mb"))
        return &d->batch;
    if (!strcmp(key, "c"))
        return &d->channels;
    if (strlen(key) != 2 || !strchr("dhw", key[1]))
        return NULL;
    int i = key[1] == 'd' ? 0 : key[1] == 'h' ? 1 : 2;
    switch (key[0]) {
    case 'i': return &d->in[i];
    case 'k': return &d->kernel[i];
    case 's': return &d->stride[i];
    case 'p': return &d->pad_lo[i];
    case 'q': return &behind[i];
    default: return NULL;
    }
}

enum { ABSENT = INT32_MAX };

static bool pool_read(const char *text, spec_problem *p, bool *reserve, geometry *g)
{
    cek_pool_desc *d = &p->desc.pool;
    uint64_t behind[3] = { ABSENT, ABSENT, ABSENT }, value;
    uint64_t *fields[] = { d->in, d->kernel, d->stride, d->pad_lo, behind };
    const char *rest = text;
    char word[32];
    for (size_t f = 0; f < 5; f++)
        for (int i = 0; i < 3; i++)
            fields[f][i] = ABSENT;
    while (spec_pair_read(&rest, word, &value)) {
        uint64_t *field = pool_field(d, behind, word);
        if (!field)
            return spec_fail(p, "%s: no pooling has \"%s\"", text, word);
        *field = value;
    }
    while (spec_modifier(&rest, word, sizeof word)) {
        if (!strcmp(word, "max"))
            d->mode = CEK_POOL_MAX;
        else if (!strcmp(word, "avg"))
            d->mode = CEK_POOL_AVERAGE;
        else if (!strcmp(word, "pad"))
            d->flags |= CEK_POOL_COUNT_PAD;
        else if (!strcmp(word, "res"))
            *reserve = true;
        else if (!spec_modifier_common(p, word))
            return spec_fail(p, "pool: unknown modifier \"%s\"", word);
    }
    int first = d->in[0] != ABSENT ? 0 : d->in[1] != ABSENT ? 1 : 2;
    if (*rest || !d->mode || !d->channels || !d->batch || d->in[first] == ABSENT || d->kernel[first] == ABSENT)
        return spec_fail(p, "%s: not a pooling", text);
    *g = (geometry){ .inputs = 1, .outputs = 1, .channels = d->channels, .batch = d->batch };
    static const uint64_t fallback[5] = { ABSENT, ABSENT, 1, 0, 0 };
    for (int i = 0; i < 3; i++) {
        for (int f = 0; f < 5; f++)
            if (fields[f][i] == ABSENT)
                fields[f][i] = i < first                ? (f < 3)
                               : f == 4                 ? d->pad_lo[i]
                               : fields[f][1] != ABSENT ? fields[f][1]
                                                        : fallback[f];
        g->in[i] = (int64_t)d->in[i], g->kernel[i] = (int64_t)d->kernel[i];
        g->stride[i] = (int64_t)d->stride[i], g->lo[i] = (int64_t)d->pad_lo[i];
        if (!d->in[i] || !d->kernel[i] || !d->stride[i] || d->kernel[i] > d->in[i] + d->pad_lo[i] + behind[i])
            return spec_fail(p, "%s: no output of that size", text);
        g->out[i] = (g->in[i] + g->lo[i] + (int64_t)behind[i] - g->kernel[i]) / g->stride[i] + 1;
        g->inputs *= d->in[i], g->outputs *= (uint64_t)g->out[i];
        d->pad_hi[i] = behind[i];
    }
    const uint64_t out[3] = { (uint64_t)g->out[0], (uint64_t)g->out[1], (uint64_t)g->out[2] };
    if (!spec_countable(3, d->in, d->batch * d->channels) || !spec_countable(3, out, d->batch * d->channels) ||
        !spec_countable(3, d->kernel, 1))
        return spec_fail(p, "%s: more elements than there can be", text);
    d->spatial = (uint32_t)(3 - first);
    d->type = p->type;
    fields[4] = d->pad_hi;
    for (int f = 0; f < 5; f++) {
        memmove(fields[f], fields[f] + first, d->spatial * sizeof(uint64_t));
        memset(fields[f] + d->spatial, 0, (3 - d->spatial) * sizeof(uint64_t));
    }
    return true;
}

/* The positions of the input that window `o` reads, in scan order; returns their number. */
static uint32_t window_of(const geometry *g, uint64_t o, uint32_t *positions)
{
    int64_t at[3] = { (int64_t)(o / (uint64_t)(g->out[1] * g->out[2])), (int64_t)(o / (uint64_t)g->out[2]) % g->out[1],
                      (int64_t)(o % (uint64_t)g->out[2]) };
    uint32_t count = 0;
    for (int64_t k = 0; k < g->kernel[0] * g->kernel[1] * g->kernel[2]; k++) {
        int64_t in[3] = { at[0] * g->stride[0] - g->lo[0] + k / (g->kernel[1] * g->kernel[2]),
                          at[1] * g->stride[1] - g->lo[1] + k / g->kernel[2] % g->kernel[1],
                          at[2] * g->stride[2] - g->lo[2] + k % g->kernel[2] };
        if (in[0] >= 0 && in[0] < g->in[0] && in[1] >= 0 && in[1] < g->in[1] && in[2] >= 0 && in[2] < g->in[2])
            positions[count++] = (uint32_t)((in[0] * g->in[1] + in[1]) * g->in[2] + in[2]);
    }
    return count;
}

/* First largest of the window, or its first NaN. */
static uint32_t winner_of(const geometry *g, const double *image, uint64_t c, const uint32_t *positions, uint32_t count)
{
    uint32_t best = positions[0];
    for (uint32_t i = 1; i < count; i++) {
        double x = image[positions[i] * g->channels + c], b = image[best * g->channels + c];
        if (!isnan(b) && (isnan(x) || x > b))
            best = positions[i];
    }
    return best;
}

static uint64_t divisor_of(const geometry *g, const cek_pool_desc *d, uint32_t inside)
{
    return d->flags & CEK_POOL_COUNT_PAD ? (uint64_t)(g->kernel[0] * g->kernel[1] * g->kernel[2]) : inside;
}

static bool forward_expect(spec_problem *p, const geometry *g, const spec_operand *x, spec_operand *y)
{
    const cek_pool_desc *d = &p->desc.pool;
    cek_dtype sum = spec_sum_type(p->type);
    uint32_t *positions = spec_problem_alloc(p, (uint64_t)(g->kernel[0] * g->kernel[1] * g->kernel[2]),
                                             sizeof *positions);
    if (!positions)
        return false;
    for (uint64_t i = 0; i < y->count; i++) {
        uint64_t c = i % g->channels, o = i / g->channels % g->outputs, n = i / g->channels / g->outputs;
        const double *image = x->value + n * g->inputs * g->channels;
        uint32_t count = window_of(g, o, positions);
        spec_num v;
        if (d->mode == CEK_POOL_MAX) {
            v = spec_exact(image[winner_of(g, image, c, positions, count) * g->channels + c]);
        } else {
            long double total = 0, magnitude = 0;
            for (uint32_t k = 0; k < count; k++) {
                total += image[positions[k] * g->channels + c];
                magnitude += fabs(image[positions[k] * g->channels + c]);
            }
            v = spec_div(sum, spec_sum(sum, total, magnitude, count, spec_whole(p)),
                         spec_exact(divisor_of(g, d, count)));
        }
        spec_operand_expect(y, i, v, sum);
    }
    return true;
}

static bool forward_make(spec_problem *p, const geometry *g, bool reserve)
{
    spec_operand *x = spec_operand_add(p, CEK_POOL_FORWARD_X, p->type, g->batch * g->inputs * g->channels);
    spec_operand *y = spec_operand_add(p, CEK_POOL_FORWARD_Y, p->type, g->batch * g->outputs * g->channels);
    if (!x || !y || (reserve && !spec_operand_sized(p, CEK_POOL_FORWARD_RESERVE, SPEC_SIZE_RESERVE)))
        return false;
    spec_operand_fill(p, x, -2, 2, true); /* few values: many ties */
    return forward_expect(p, g, x, y);
}

static bool forward_build(const char *text, spec_problem *p)
{
    geometry g;
    bool reserve = false;
    return pool_read(text, p, &reserve, &g) && forward_make(p, &g, reserve);
}

static bool backward_expect(spec_problem *p, const geometry *g, const spec_operand *dy, spec_operand *dx)
{
    const cek_pool_desc *d = &p->desc.pool;
    cek_dtype sum = spec_sum_type(p->type);
    const spec_operand *x = p->forward ? spec_operand_find(p->forward, CEK_POOL_FORWARD_X) : NULL;
    uint32_t *positions = spec_problem_alloc(p, (uint64_t)(g->kernel[0] * g->kernel[1] * g->kernel[2]),
                                             sizeof *positions);
    uint32_t *terms = spec_problem_alloc(p, dx->count, sizeof *terms);
    spec_num *total = spec_problem_alloc(p, dx->count, sizeof *total); /* e: sum of magnitudes */
    if (!positions || !terms || !total)
        return false;
    for (uint64_t i = 0; i < dy->count; i++) {
        uint64_t c = i % g->channels, o = i / g->channels % g->outputs, n = i / g->channels / g->outputs;
        uint64_t image = n * g->inputs * g->channels;
        uint32_t count = window_of(g, o, positions);
        long double share = dy->value[i];
        if (d->mode == CEK_POOL_MAX) {
            positions[0] = winner_of(g, x->value + image, c, positions, count);
            count = 1;
        } else {
            share /= divisor_of(g, d, count);
        }
        for (uint32_t k = 0; k < count; k++) {
            uint64_t at = image + positions[k] * g->channels + c;
            total[at].v += share;
            total[at].e += fabsl(share);
            terms[at]++;
        }
    }
    for (uint64_t i = 0; i < dx->count; i++) {
        /* two terms more for the division; a quotient may be whole by chance, so only sums of dy
         * count as whole */
        bool whole = spec_whole(p) && d->mode == CEK_POOL_MAX;
        spec_num v = terms[i] ? spec_sum(sum, total[i].v, total[i].e, terms[i] + 2, whole) : spec_exact(0);
        spec_operand_expect(dx, i, v, sum);
    }
    return true;
}

static bool backward_build(const char *text, spec_problem *p)
{
    geometry g;
    bool reserve = false;
    if (!pool_read(text, p, &reserve, &g))
        return false;
    spec_operand *dy = spec_operand_add(p, CEK_POOL_BACKWARD_DY, p->type, g.batch * g.outputs * g.channels);
    spec_operand *dx = spec_operand_add(p, CEK_POOL_BACKWARD_DX, p->type, g.batch * g.inputs * g.channels);
    if (!dy || !dx)
        return false;
    if (p->desc.pool.mode == CEK_POOL_MAX) {
        spec_problem *f = spec_problem_alloc(p, 1, sizeof *f);
        if (!f || !spec_operand_sized(p, CEK_POOL_BACKWARD_RESERVE, SPEC_SIZE_RESERVE))
            return false;
        spec_problem_init(f, CEK_OP_POOL_FORWARD, p->type, p->fill, p->inexact, p->seed + 1);
        f->preset = p->preset, f->preset_user = p->preset_user;
        p->forward = f;
        if (!pool_read(text, f, &reserve, &g) || !forward_make(f, &g, true))
            return spec_fail(p, "%s", f->error);
    }
    spec_operand_fill(p, dy, -3, 3, p->desc.pool.mode == CEK_POOL_AVERAGE);
    return backward_expect(p, &g, dy, dx);
}

/* clang-format off */
const spec_kind spec_kind_pool_forward =
    SPEC_KIND("pool_forward", CEK_OP_POOL_FORWARD, CEK_PROFILE_INFERENCE,
              "mb2c3ih7kh3sh2ph1:max", forward_cases, forward_build);
const spec_kind spec_kind_pool_backward =
    SPEC_KIND("pool_backward", CEK_OP_POOL_BACKWARD, CEK_PROFILE_TRAINING,
              "mb2c3ih7kh3sh2ph1:max", backward_cases, backward_build);
/* clang-format on */
