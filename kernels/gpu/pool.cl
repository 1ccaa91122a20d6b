/* SPDX-License-Identifier: MIT
 *
 * pool.cl - pooling over NHWC images, LANES channels of one position per work-item.
 *
 * TYPE: element type. SPATIAL: 2 or 3 dimensions. AVERAGE: instead of the maximum, whose reserve is the number of the
 * tap that won, as u32. An image has fewer than 2^31 elements, and so many work-items at most are launched at once.
 */
#if SPATIAL == 3
#define TAPS_2 a.window.taps[2]
#define STRIDE_2 a.window.stride[2]
#define IN_2 a.window.in[2]
#else
#define TAPS_2 1
#define STRIDE_2 1
#define IN_2 1
#endif
#ifdef AVERAGE
#define START 0.0f
#else
#define START -INFINITY
#endif

typedef struct spot { cek_u32 image, at[3], channel, lanes; } spot;

/* Item `i` of images of so many positions: `lanes` channels from `channel` on. */
DEVICE_FN spot spot_of(cek_u32 i, const cek_k_pool *a)
{
    spot s;
    cek_u32 next = QUOTIENT(i, a->shape, 3);
    s.channel = (i - next * a->shape.size[3]) * LANES, i = next;
    s.lanes = a->channels - s.channel < LANES ? a->channels - s.channel : LANES;
    s.at[2] = 0;
    for (int d = SPATIAL - 1; d >= 0; d--) {
        next = QUOTIENT(i, a->shape, d);
        s.at[d] = i - next * a->shape.size[d], i = next;
    }
    s.image = i;
    return s;
}

/* Where a position begins in an image of `size`. */
DEVICE_FN cek_u32 place_in(cek_u32 p0, cek_u32 p1, cek_u32 p2, cek_u32 channels, const cek_u32 *size)
{
    return (SPATIAL == 3 ? (p0 * size[1] + p1) * size[2] + p2 : p0 * size[1] + p1) * channels;
}

/* What an average divides by: all taps, or those inside the image. */
DEVICE_FN cek_f32 divisor(const cek_k_window *w, cek_u32 o0, cek_u32 o1, cek_u32 o2, cek_u32 count_pad)
{
    const cek_u32 out[3] = { o0, o1, o2 };
    cek_u32 inside = 1;
    for (int d = 0; d < SPATIAL; d++) {
        const cek_u32 begin = out[d] * w->stride[d], end = begin + w->taps[d], last = w->pad[d] + w->in[d];
        const cek_u32 from = begin > w->pad[d] ? begin : w->pad[d], to = end < last ? end : last;
        const cek_i32 count = (cek_i32)(to - from);
        inside *= count_pad ? w->taps[d] : count > 0 ? (cek_u32)count : 0;
    }
    return (cek_f32)inside;
}

/* The lanes of a work-item, in one access where they are all there. On a CPU all lanes in full blocks, so that the
 * compiler knows how many. */
#ifdef CEK_CPU
#define FIND_FOURS
#define FOR_LANES(s, body)                                                                         \
    if ((s).lanes == LANES)                                                                        \
        for (cek_u32 l = 0; l < LANES; l++) { body }                                               \
    else                                                                                           \
        for (cek_u32 l = 0; l < (s).lanes; l++) { body }
#define GET(s, type, p, place, v) FOR_LANES(s, v[l] = LOAD(type, p, (place) + l);)
#define GET_TAPS(s, p, place, v) FOR_LANES(s, v[l] = ((GLOBAL const cek_u32 *)(p))[(place) + l];)
#define PUT(s, type, p, place, v) FOR_LANES(s, STORE(type, p, (place) + l, v[l]);)
#define PUT_TAPS(s, p, place, v) FOR_LANES(s, ((GLOBAL cek_u32 *)(p))[(place) + l] = v[l];)
#else
#define FOR_LANES(s, body) for (cek_u32 l = 0; l < LANES; l++) { body }
/* Whether all is in fours: all images of all buffers begin at such a multiple, if their first does. */
#define IS_FOURS (!(a.channels % LANES) && IS_ALIGNED(0, 16) && IS_ALIGNED(1, 16) && IS_ALIGNED(2, 16))
#define GET(s, type, p, place, v)                                                                  \
    if (fours)                                                                                     \
        LOAD_WIDE(4, type, (p) + (place) * BYTES(type), v);                                        \
    else                                                                                           \
        FOR_LANES(s, v[l] = l < (s).lanes ? LOAD(type, p, (place) + l) : 0.0f;)
#define GET_TAPS(s, p, place, v)                                                                   \
    if (fours) {                                                                                   \
        const uint4 w_ = *(GLOBAL const uint4 *)((GLOBAL const cek_u32 *)(p) + (place));           \
        v[0] = w_.x, v[1] = w_.y, v[2] = w_.z, v[3] = w_.w;                                        \
    } else                                                                                         \
        FOR_LANES(s, v[l] = l < (s).lanes ? ((GLOBAL const cek_u32 *)(p))[(place) + l] : 0;)
#define PUT(s, type, p, place, v)                                                                  \
    if (fours)                                                                                     \
        STORE_WIDE(4, type, (p) + (place) * BYTES(type), v);                                       \
    else                                                                                           \
        FOR_LANES(s, if (l < (s).lanes) STORE(type, p, (place) + l, v[l]);)
#define PUT_TAPS(s, p, place, v)                                                                   \
    if (fours) {                                                                                   \
        uint4 w_;                                                                                  \
        w_.x = v[0], w_.y = v[1], w_.z = v[2], w_.w = v[3];                                        \
        *(GLOBAL uint4 *)((GLOBAL cek_u32 *)(p) + (place)) = w_;                                   \
    } else                                                                                         \
        FOR_LANES(s, if (l < (s).lanes) ((GLOBAL cek_u32 *)(p))[(place) + l] = v[l];)
#define FIND_FOURS const cek_u32 fours = IS_FOURS;
#endif

KERNEL void pool_forward(GLOBAL char *RESTRICT x, GLOBAL char *RESTRICT y, GLOBAL char *RESTRICT reserve,
                         const cek_k_pool a)
{
    if (GLOBAL_ID() >= a.count)
        return;
    FIND_FOURS
    const spot s = spot_of((cek_u32)GLOBAL_ID(), &a);
    const cek_u64 from = s.image * a.image_in + s.channel;
    const cek_u64 to = s.image * a.image_out + place_in(s.at[0], s.at[1], s.at[2], a.channels, a.window.out) + s.channel;
    cek_u32 tap = 0, winner[LANES];
    cek_f32 value[LANES];
    for (cek_u32 l = 0; l < LANES; l++)
        value[l] = START, winner[l] = 0xffffffffu;
    for (cek_u32 t0 = 0; t0 < a.window.taps[0]; t0++)
        for (cek_u32 t1 = 0; t1 < a.window.taps[1]; t1++)
            for (cek_u32 t2 = 0; t2 < TAPS_2; t2++, tap++) {
                const cek_u32 i0 = s.at[0] * a.window.stride[0] + t0 - a.window.pad[0];
                const cek_u32 i1 = s.at[1] * a.window.stride[1] + t1 - a.window.pad[1];
                const cek_u32 i2 = SPATIAL == 3 ? s.at[2] * a.window.stride[2] + t2 - a.window.pad[2] : 0;
                cek_f32 v[LANES];
                const cek_u32 inside = (i0 < a.window.in[0]) & (i1 < a.window.in[1]) & (i2 < IN_2);
                if (!inside)
                    continue;
                GET(s, TYPE, AT(x, 0), from + place_in(i0, i1, i2, a.channels, a.window.in), v)
#ifdef AVERAGE
                FOR_LANES(s, value[l] += v[l];)
#else
                FOR_LANES(s, const cek_u32 wins = (winner[l] == 0xffffffffu) | (v[l] > value[l]) |
                                                  ((v[l] != v[l]) & (value[l] == value[l]));
                             value[l] = wins ? v[l] : value[l];
                             winner[l] = wins ? tap : winner[l];)
#endif
            }
#ifdef AVERAGE
    const cek_f32 divide = divisor(&a.window, s.at[0], s.at[1], s.at[2], a.count_pad);
    FOR_LANES(s, value[l] /= divide;)
#endif
    PUT(s, TYPE, AT(y, 1), to, value)
    if (a.reserve) {
        PUT_TAPS(s, AT(reserve, 2), to, winner)
    }
}

/* The windows that a position is in, in one dimension: the last of them, and the tap that it is there. Those before it
 * are a window's stride of taps further on. */
#define LAST_WINDOW(d)                                                                             \
    const cek_u32 padded##d = s.at[d] + a.window.pad[d], quotient##d = QUOTIENT(padded##d, a.stride, d); \
    const cek_u32 out##d = quotient##d < a.window.out[d] ? quotient##d : a.window.out[d] - 1;      \
    const cek_u32 tap##d = padded##d - out##d * a.window.stride[d];

/* DX: what every window that reads a position sends back, by ascending taps. Windows are counted down to 0: where a
 * number that falls was held against its first value instead, nvcc 13.0 left the loop after the first window. */
KERNEL void pool_backward(GLOBAL char *RESTRICT dy, GLOBAL char *RESTRICT dx, GLOBAL char *RESTRICT reserve,
                          const cek_k_pool a)
{
    if (GLOBAL_ID() >= a.count)
        return;
    FIND_FOURS
    const spot s = spot_of((cek_u32)GLOBAL_ID(), &a);
    const cek_u64 from = s.image * a.image_out + s.channel;
    const cek_u64 to = s.image * a.image_in + place_in(s.at[0], s.at[1], s.at[2], a.channels, a.window.in) + s.channel;
    cek_f32 sum[LANES];
    for (cek_u32 l = 0; l < LANES; l++)
        sum[l] = 0.0f;
    LAST_WINDOW(0)
    LAST_WINDOW(1)
#if SPATIAL == 3
    LAST_WINDOW(2)
#else
    const cek_u32 out2 = 0, tap2 = 0;
#endif
    for (cek_u32 t0 = tap0, left0 = out0 + 1; t0 < a.window.taps[0] && left0; t0 += a.window.stride[0], left0--)
        for (cek_u32 t1 = tap1, left1 = out1 + 1; t1 < a.window.taps[1] && left1; t1 += a.window.stride[1], left1--)
            for (cek_u32 t2 = tap2, left2 = out2 + 1; t2 < TAPS_2 && left2; t2 += STRIDE_2, left2--) {
                const cek_u32 o0 = left0 - 1, o1 = left1 - 1, o2 = left2 - 1;
                const cek_u64 place = from + place_in(o0, o1, o2, a.channels, a.window.out);
                cek_f32 v[LANES];
                GET(s, TYPE, AT(dy, 0), place, v)
#ifdef AVERAGE
                const cek_f32 divide = divisor(&a.window, o0, o1, o2, a.count_pad);
                FOR_LANES(s, sum[l] += v[l] / divide;)
#else
                const cek_u32 tap = (t0 * a.window.taps[1] + t1) * TAPS_2 + t2;
                cek_u32 winner[LANES];
                GET_TAPS(s, AT(reserve, 2), place, winner)
                FOR_LANES(s, sum[l] += winner[l] == tap ? v[l] : 0.0f;)
#endif
            }
    PUT(s, TYPE, AT(dx, 1), to, sum)
}
