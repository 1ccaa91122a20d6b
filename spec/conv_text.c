/* conv_text.c - the text of a convolution, benchdnn's: read into a descriptor, with what it leaves
 * out; its sizes and its cost. */
#include <stdio.h>
#include <string.h>

#include "spec/problem.h"

/* Letters of the problem and where they go; the last letter names a dimension. */
static uint64_t *conv_field(cek_conv_desc *d, uint64_t *given_out, const char *key)
{
    if (!strcmp(key, "mb"))
        return &d->batch;
    if (!strcmp(key, "ic"))
        return &d->in_channels;
    if (!strcmp(key, "oc"))
        return &d->out_channels;
    if (strlen(key) != 2 || !strchr("dhw", key[1]))
        return NULL;
    int i = key[1] == 'd' ? 0 : key[1] == 'h' ? 1 : 2;
    switch (key[0]) {
    case 'i': return &d->in[i];
    case 'o': return &given_out[i];
    case 'k': return &d->kernel[i];
    case 's': return &d->stride[i];
    case 'p': return &d->pad_lo[i];
    case 'd': return &d->dilation[i];
    default: return NULL;
    }
}

enum { ABSENT = INT32_MAX };

static void absent(uint64_t *field)
{
    for (int i = 0; i < 3; i++)
        field[i] = ABSENT;
}

/* Takes what is missing of `i` from the height, or from the only dimension given; else `fallback`.
 */
static void complete(uint64_t *field, int first, uint64_t fallback)
{
    uint64_t common = field[1] != ABSENT ? field[1] : fallback;
    for (int i = first; i < 3; i++)
        if (field[i] == ABSENT)
            field[i] = common;
}

/* The size behind a dimension: the output follows, or the padding behind does. */
static bool conv_dimension(cek_conv_desc *d, int i, uint64_t out)
{
    uint64_t window = d->dilation[i] * (d->kernel[i] - 1) + 1;
    if (out == ABSENT) {
        d->pad_hi[i] = d->pad_lo[i];
        return d->in[i] + 2 * d->pad_lo[i] >= window;
    }
    uint64_t need = (out - 1) * d->stride[i] + window, have = d->in[i] + d->pad_lo[i];
    if (!out || (need < have && have - need >= d->stride[i])) /* a window more would fit */
        return false;
    d->pad_hi[i] = need > have ? need - have : 0;
    return true;
}

bool spec_conv_read(const char *text, cek_conv_desc *d, const char **rest, char *error, size_t cap)
{
    uint64_t groups = 1, out[CEK_SPATIAL_MAX], value;
    const char *p = text;
    char key[8];
    *d = (cek_conv_desc){ .op = { .size = sizeof *d, .kind = CEK_OP_CONV_FORWARD }, .batch = 2 };
    absent(out), absent(d->in), absent(d->kernel), absent(d->stride), absent(d->pad_lo), absent(d->dilation);
    while (spec_pair_read(&p, key, &value)) {
        uint64_t *field = !strcmp(key, "g") ? &groups : conv_field(d, out, key);
        if (!field) {
            snprintf(error, cap, "%s: no convolution has \"%s\"", text, key);
            return false;
        }
        *field = value;
    }
    if (*p && *p != ':') {
        snprintf(error, cap, "%s: not a convolution from \"%s\" on", text, p);
        return false;
    }
    int first = d->in[0] != ABSENT ? 0 : d->in[1] != ABSENT ? 1 : 2;
    if (d->in[first] == ABSENT || d->kernel[first] == ABSENT || !d->in_channels || !d->out_channels || !d->batch ||
        !groups || d->in_channels % groups || d->out_channels % groups) {
        snprintf(error, cap, "%s: needs ic, oc, an input and a kernel size; groups divide ic and oc", text);
        return false;
    }
    if (first == 0 && d->in[1] == ABSENT)
        d->in[1] = d->in[0], d->kernel[1] = d->kernel[0], out[1] = out[0], d->pad_lo[1] = d->pad_lo[0];
    complete(d->in, first, ABSENT), complete(d->kernel, first, ABSENT);
    complete(out, first, ABSENT);
    complete(d->stride, first, 1), complete(d->pad_lo, first, 0), complete(d->dilation, first, 0);
    for (int i = first; i < 3; i++) {
        d->dilation[i]++;
        if (!d->in[i] || d->in[i] == ABSENT || !d->kernel[i] || d->kernel[i] == ABSENT || !d->stride[i] ||
            !conv_dimension(d, i, out[i])) {
            snprintf(error, cap, "%s: no output of that size", text);
            return false;
        }
    }
    d->spatial = (uint32_t)(3 - first);
    d->groups = (uint32_t)groups;
    uint64_t *fields[] = { d->in, d->kernel, d->stride, d->dilation, d->pad_lo, d->pad_hi };
    for (size_t f = 0; f < sizeof fields / sizeof *fields; f++) {
        memmove(fields[f], fields[f] + first, d->spatial * sizeof(uint64_t));
        memset(fields[f] + d->spatial, 0, (CEK_SPATIAL_MAX - d->spatial) * sizeof(uint64_t));
    }
    spec_conv_out(d, out);
    if (!spec_countable(d->spatial, d->in, d->batch * d->in_channels) ||
        !spec_countable(d->spatial, out, d->batch * d->out_channels) ||
        !spec_countable(d->spatial, d->kernel, d->in_channels * d->out_channels)) {
        snprintf(error, cap, "%s: more elements than there can be", text);
        return false;
    }
    *rest = p;
    return true;
}

void spec_conv_out(const cek_conv_desc *d, uint64_t out[CEK_SPATIAL_MAX])
{
    for (uint32_t i = 0; i < CEK_SPATIAL_MAX; i++)
        out[i] =
            i >= d->spatial
                ? 1
                : (d->in[i] + d->pad_lo[i] + d->pad_hi[i] - d->dilation[i] * (d->kernel[i] - 1) - 1) / d->stride[i] + 1;
}

double spec_conv_flops(const cek_conv_desc *d)
{
    uint64_t out[CEK_SPATIAL_MAX];
    spec_conv_out(d, out);
    double flops = 2.0 * d->batch * d->out_channels * (d->in_channels / d->groups);
    for (uint32_t i = 0; i < d->spatial; i++)
        flops *= (double)out[i] * d->kernel[i];
    return flops;
}
