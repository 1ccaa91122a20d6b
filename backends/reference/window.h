/* SPDX-License-Identifier: MIT
 *
 * window.h - windows that slide over images, always in three spatial dimensions: those that a
 * descriptor does not have are one position, one tap, no padding.
 */
#ifndef CEK_BACKENDS_REFERENCE_WINDOW_H
#define CEK_BACKENDS_REFERENCE_WINDOW_H

#include <stdbool.h>

#include <cekernels/plugin.h>

enum { SPATIAL = 3 };

typedef struct window {
    uint64_t in[SPATIAL], out[SPATIAL], kernel[SPATIAL], stride[SPATIAL], dilation[SPATIAL], pad_lo[SPATIAL];
} window;

/* `dilation` may be NULL: 1. */
static inline window window_make(uint32_t spatial, const uint64_t *in, const uint64_t *out, const uint64_t *kernel,
                                 const uint64_t *stride, const uint64_t *dilation, const uint64_t *pad_lo)
{
    window w;
    for (uint32_t i = 0; i < SPATIAL; i++) {
        bool used = i < spatial;
        w.in[i] = used ? in[i] : 1;
        w.out[i] = used ? out[i] : 1;
        w.kernel[i] = used ? kernel[i] : 1;
        w.stride[i] = used ? stride[i] : 1;
        w.dilation[i] = used && dilation ? dilation[i] : 1;
        w.pad_lo[i] = used ? pad_lo[i] : 0;
    }
    return w;
}

static inline uint64_t positions(const uint64_t size[SPATIAL])
{
    return size[0] * size[1] * size[2];
}

/* Row-major number of a position, and back. */
static inline uint64_t position_number(const uint64_t at[SPATIAL], const uint64_t size[SPATIAL])
{
    return (at[0] * size[1] + at[1]) * size[2] + at[2];
}

static inline void position_at(uint64_t number, const uint64_t size[SPATIAL], uint64_t at[SPATIAL])
{
    at[2] = number % size[2];
    at[1] = number / size[2] % size[1];
    at[0] = number / size[2] / size[1];
}

/* The input position that tap `tap` of output position `out` reads. False: it lies in the padding. */
static inline bool window_reads(const window *w, uint64_t out, uint64_t tap, uint64_t *in)
{
    uint64_t o[SPATIAL], t[SPATIAL], i[SPATIAL];
    position_at(out, w->out, o);
    position_at(tap, w->kernel, t);
    for (int d = 0; d < SPATIAL; d++) {
        uint64_t padded = o[d] * w->stride[d] + t[d] * w->dilation[d];
        if (padded < w->pad_lo[d] || padded - w->pad_lo[d] >= w->in[d])
            return false;
        i[d] = padded - w->pad_lo[d];
    }
    *in = position_number(i, w->in);
    return true;
}

/* The other way round: the output position whose tap `tap` reads input position `in`. False: there is none. */
static inline bool window_read_by(const window *w, uint64_t in, uint64_t tap, uint64_t *out)
{
    uint64_t i[SPATIAL], t[SPATIAL], o[SPATIAL];
    position_at(in, w->in, i);
    position_at(tap, w->kernel, t);
    for (int d = 0; d < SPATIAL; d++) {
        uint64_t padded = i[d] + w->pad_lo[d], shift = t[d] * w->dilation[d];
        if (padded < shift || (padded - shift) % w->stride[d] || (padded - shift) / w->stride[d] >= w->out[d])
            return false;
        o[d] = (padded - shift) / w->stride[d];
    }
    *out = position_number(o, w->out);
    return true;
}

#endif
