/* SPDX-License-Identifier: MIT
 *
 * pool.cl - pooling over NHWC images, LANES channels of one position per work-item.
 *
 * TYPE: element type. The reserve of a maximum is the number of the tap that won, as u32.
 */
typedef struct spot { cek_u32 image, at[3], channel, lanes; cek_u64 first; } spot;

/* Item `i` of images of `size`: `lanes` channels from `channel` on; `first` is the element. */
DEVICE_FN spot spot_of(cek_u64 i, cek_u32 channels, const cek_u32 *size)
{
    cek_u32 blocks = (channels + LANES - 1) / LANES;
    spot s;
    s.channel = (cek_u32)(i % blocks) * LANES, i /= blocks;
    s.lanes = channels - s.channel < LANES ? channels - s.channel : LANES;
    s.first = i * channels + s.channel;
    s.at[2] = (cek_u32)(i % size[2]), i /= size[2];
    s.at[1] = (cek_u32)(i % size[1]), i /= size[1];
    s.at[0] = (cek_u32)(i % size[0]);
    s.image = (cek_u32)(i / size[0]);
    return s;
}

/* The element of a position in an image of `size`. */
DEVICE_FN cek_u64 element_of(const spot *s, cek_u32 p0, cek_u32 p1, cek_u32 p2, cek_u32 channels, const cek_u32 *size)
{
    return ((((cek_u64)s->image * size[0] + p0) * size[1] + p1) * size[2] + p2) * channels + s->channel;
}

/* What an average divides by: all taps, or those inside the image. */
DEVICE_FN cek_f32 divisor(const cek_k_window *w, const cek_u32 *out, cek_u32 count_pad)
{
    cek_u32 inside = 1;
    for (int d = 0; d < 3; d++) {
        cek_u32 first = out[d] * w->stride[d], count = 0;
        for (cek_u32 t = 0; t < w->taps[d]; t++)
            count += count_pad || first + t - w->pad[d] < w->in[d];  /* above the image it wraps round */
        inside *= count;
    }
    return (cek_f32)inside;
}

/* All lanes in full blocks, so that the compiler knows how many. */
#define FOR_LANES(s, body) \
    if ((s).lanes == LANES)                                     \
        for (cek_u32 l = 0; l < LANES; l++) { body }     \
    else                                                        \
        for (cek_u32 l = 0; l < (s).lanes; l++) { body }

KERNEL void pool_forward(GLOBAL char *RESTRICT x, GLOBAL char *RESTRICT y, GLOBAL char *RESTRICT reserve,
                         const cek_k_pool a)
{
    if (GLOBAL_ID() >= a.count)
        return;
    const cek_k_window w = a.window;
    spot s = spot_of(GLOBAL_ID(), a.channels, w.out);
    cek_u32 tap = 0, winner[LANES];
    cek_f32 value[LANES];
    for (int l = 0; l < LANES; l++)
        value[l] = a.average ? 0.0f : -INFINITY, winner[l] = 0xffffffffu;
    for (cek_u32 t0 = 0; t0 < w.taps[0]; t0++)
        for (cek_u32 t1 = 0; t1 < w.taps[1]; t1++)
            for (cek_u32 t2 = 0; t2 < w.taps[2]; t2++, tap++) {
                cek_u32 i0 = s.at[0] * w.stride[0] + t0 - w.pad[0], i1 = s.at[1] * w.stride[1] + t1 - w.pad[1];
                cek_u32 i2 = s.at[2] * w.stride[2] + t2 - w.pad[2];
                if (i0 >= w.in[0] || i1 >= w.in[1] || i2 >= w.in[2])
                    continue;
                cek_u64 from = element_of(&s, i0, i1, i2, a.channels, w.in);
                if (a.average) {
                    FOR_LANES(s, value[l] += LOAD(TYPE, AT(x, 0), from + l);)
                } else {
                    FOR_LANES(s, cek_f32 v = LOAD(TYPE, AT(x, 0), from + l);
                                 cek_u32 wins = (winner[l] == 0xffffffffu) | (v > value[l]) |
                                                ((v != v) & (value[l] == value[l]));
                                 value[l] = wins ? v : value[l];
                                 winner[l] = wins ? tap : winner[l];)
                }
            }
    cek_f32 divide = a.average ? divisor(&w, s.at, a.count_pad) : 1.0f;
    FOR_LANES(s, STORE(TYPE, AT(y, 1), s.first + l, a.average ? value[l] / divide : value[l]);)
    if (a.reserve) {
        FOR_LANES(s, ((GLOBAL cek_u32 *)AT(reserve, 2))[s.first + l] = winner[l];)
    }
}

/* DX: what every window that reads a position sends back. */
KERNEL void pool_backward(GLOBAL char *RESTRICT dy, GLOBAL char *RESTRICT dx, GLOBAL char *RESTRICT reserve,
                          const cek_k_pool a)
{
    if (GLOBAL_ID() >= a.count)
        return;
    const cek_k_window w = a.window;
    spot s = spot_of(GLOBAL_ID(), a.channels, w.in);
    cek_u32 tap = 0;
    cek_f32 sum[LANES];
    for (int l = 0; l < LANES; l++)
        sum[l] = 0.0f;
    for (cek_u32 t0 = 0; t0 < w.taps[0]; t0++)
        for (cek_u32 t1 = 0; t1 < w.taps[1]; t1++)
            for (cek_u32 t2 = 0; t2 < w.taps[2]; t2++, tap++) {
                cek_u32 p0 = s.at[0] + w.pad[0] - t0, p1 = s.at[1] + w.pad[1] - t1, p2 = s.at[2] + w.pad[2] - t2;
                cek_u32 out[3];
                out[0] = p0 / w.stride[0], out[1] = p1 / w.stride[1], out[2] = p2 / w.stride[2];
                if (p0 % w.stride[0] || p1 % w.stride[1] || p2 % w.stride[2] ||
                    out[0] >= w.out[0] || out[1] >= w.out[1] || out[2] >= w.out[2] ||
                    s.at[0] + w.pad[0] < t0 || s.at[1] + w.pad[1] < t1 || s.at[2] + w.pad[2] < t2)
                    continue;
                cek_u64 from = element_of(&s, out[0], out[1], out[2], a.channels, w.out);
                if (a.average) {
                    cek_f32 divide = divisor(&w, out, a.count_pad);
                    FOR_LANES(s, sum[l] += LOAD(TYPE, AT(dy, 0), from + l) / divide;)
                } else {
                    FOR_LANES(s, cek_f32 v = LOAD(TYPE, AT(dy, 0), from + l);
                                 sum[l] += ((GLOBAL const cek_u32 *)AT(reserve, 2))[from + l] == tap ? v : 0.0f;)
                }
            }
    FOR_LANES(s, STORE(TYPE, AT(dx, 1), s.first + l, sum[l]);)
}
