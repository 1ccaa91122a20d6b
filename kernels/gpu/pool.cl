/* SPDX-License-Identifier: MIT
 *
 * pool.cl - pooling over NHWC images: of a work-item some channels of one position, or of neighbours; on a CPU, where to
 * begin one costs more than most do, so many of those one after the other.
 *
 * TYPE: element type. SPATIAL: 2 or 3 dimensions. AVERAGE: instead of the maximum, whose reserve is the number of the
 * tap that won, as u32. CHANNELS: 4, moved in one access, or 1; on a CPU as many as are left of so many.
 * MANY: results of a work-item, of two dimensions: forward so many in a row, backward a square, which share what their
 * windows have in common. Every result is added up in the same order whatever these two are.
 * An image has fewer than 2^31 elements, and so many work-items at most are launched at once.
 */
#if SPATIAL == 3
#define TAPS_1 a.window.taps[1]
#define IN_1 a.window.in[1]
#define TAPS_2 a.window.taps[2]
#define STRIDE_2 a.window.stride[2]
#define PLACE(p0, p1, last, channels, size) place_in(p0, p1, last, channels, size)
#else
#define TAPS_1 1
#define IN_1 1
#define TAPS_2 1
#define STRIDE_2 1
#define PLACE(p0, p1, last, channels, size) place_in(p0, last, 0, channels, size)
#endif
#define LAST (SPATIAL - 1) /* the dimension of neighbours */
#ifdef MANY
#define ROW CEK_K_POOL_ROW
#define SQUARE CEK_K_POOL_SQUARE
#else
#define ROW 1
#define SQUARE 1
#endif
#ifdef CEK_CPU
#define EACH_ITEM FOR_PIECE(item, a.count, CEK_K_POOL_PIECE)
#define STRIP 1
#else
#define EACH_ITEM                                                                                  \
    const cek_u64 item = GLOBAL_ID();                                                              \
    if (item < a.count)
#define STRIP 4 /* places of a line that are loaded before the first of them is used */
#endif
#ifdef AVERAGE
#define START 0.0f
#else
#define START -INFINITY
#endif

typedef struct spot { cek_u32 image, at[3], channel, lanes; } spot;

/* Item `i` of images of so many positions, or blocks of them: `lanes` channels from `channel` on. */
DEVICE_FN spot spot_of(cek_u32 i, const cek_k_pool *a)
{
    spot s;
    cek_u32 next = QUOTIENT(i, a->shape, 3);
    s.channel = (i - next * a->shape.size[3]) * CHANNELS, i = next;
    s.lanes = a->channels - s.channel < CHANNELS ? a->channels - s.channel : CHANNELS;
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

/* The channels of a work-item. On a CPU there is a loop for full blocks, so that the compiler knows how many. */
#ifdef CEK_CPU
#define FOR_LANES(s, body)                                                                         \
    if ((s).lanes == CHANNELS)                                                                     \
        for (cek_u32 l = 0; l < CHANNELS; l++) { body }                                            \
    else                                                                                           \
        for (cek_u32 l = 0; l < (s).lanes; l++) { body }
#else
#define FOR_LANES(s, body) for (cek_u32 l = 0; l < CHANNELS; l++) { body }
#endif
#if !defined CEK_CPU && CHANNELS == 4
#define GET(s, type, p, place, v) LOAD_WIDE(4, type, (p) + (place) * BYTES(type), v);
#define GET_TAPS(s, p, place, v)                                                                   \
    const uint4 w_ = *(GLOBAL const uint4 *)((GLOBAL const cek_u32 *)(p) + (place));               \
    v[0] = w_.x, v[1] = w_.y, v[2] = w_.z, v[3] = w_.w;
#define PUT(s, type, p, place, v) STORE_WIDE(4, type, (p) + (place) * BYTES(type), v);
#define PUT_TAPS(s, p, place, v)                                                                   \
    uint4 w_;                                                                                      \
    w_.x = v[0], w_.y = v[1], w_.z = v[2], w_.w = v[3];                                            \
    *(GLOBAL uint4 *)((GLOBAL cek_u32 *)(p) + (place)) = w_;
#else
#define GET(s, type, p, place, v) FOR_LANES(s, v[l] = LOAD(type, p, (place) + l);)
#define GET_TAPS(s, p, place, v) FOR_LANES(s, v[l] = ((GLOBAL const cek_u32 *)(p))[(place) + l];)
#define PUT(s, type, p, place, v) FOR_LANES(s, STORE(type, p, (place) + l, v[l]);)
#define PUT_TAPS(s, p, place, v) FOR_LANES(s, ((GLOBAL cek_u32 *)(p))[(place) + l] = v[l];)
#endif

/* A place of the last dimension is read once for all the windows of a work-item that see it. */
KERNEL void pool_forward(GLOBAL char *RESTRICT x, GLOBAL char *RESTRICT y, GLOBAL char *RESTRICT reserve,
                         const cek_k_pool a)
{
    EACH_ITEM {
        const spot s = spot_of((cek_u32)item, &a);
        const cek_u64 from = s.image * a.image_in + s.channel, to = s.image * a.image_out + s.channel;
        const cek_u32 stride = a.window.stride[LAST], taps = a.window.taps[LAST], line = (ROW - 1) * stride + taps;
        const cek_u32 begin = s.at[LAST] * ROW * stride - a.window.pad[LAST];
        cek_u32 winner[ROW][CHANNELS];
        cek_f32 value[ROW][CHANNELS];
        for (cek_u32 e = 0; e < ROW; e++)
            for (cek_u32 l = 0; l < CHANNELS; l++)
                value[e][l] = START, winner[e][l] = 0xffffffffu;
        for (cek_u32 t0 = 0; t0 < a.window.taps[0]; t0++)
            for (cek_u32 t1 = 0; t1 < TAPS_1; t1++) {
                const cek_u32 i0 = s.at[0] * a.window.stride[0] + t0 - a.window.pad[0];
                const cek_u32 i1 = SPATIAL == 3 ? s.at[1] * a.window.stride[1] + t1 - a.window.pad[1] : 0;
                if ((i0 >= a.window.in[0]) | (i1 >= IN_1))
                    continue;
                for (cek_u32 first = 0; first < line; first += STRIP) {
                    cek_f32 v[STRIP][CHANNELS];
                    cek_u32 inside[STRIP];
                    for (cek_u32 c = 0; c < STRIP; c++) {
                        const cek_u32 at = begin + first + c;
                        inside[c] = (at < a.window.in[LAST]) & (STRIP == 1 || first + c < line);
                        if (inside[c]) {
                            GET(s, TYPE, AT(x, 0), from + PLACE(i0, i1, at, a.channels, a.window.in), v[c])
                        }
                    }
                    for (cek_u32 c = 0; c < STRIP; c++)
                        for (cek_u32 e = 0; e < ROW; e++) {
                            const cek_u32 t = first + c - e * stride;
                            const cek_u32 seen = inside[c] & (t < taps);
                            if (!seen)
                                continue;
#ifdef AVERAGE
                            FOR_LANES(s, value[e][l] += v[c][l];)
#else
                            FOR_LANES(s, const cek_u32 wins = (winner[e][l] == 0xffffffffu) | (v[c][l] > value[e][l]) |
                                                              ((v[c][l] != v[c][l]) & (value[e][l] == value[e][l]));
                                         value[e][l] = wins ? v[c][l] : value[e][l];
                                         winner[e][l] = wins ? (t0 * TAPS_1 + t1) * taps + t : winner[e][l];)
#endif
                        }
                }
            }
        for (cek_u32 e = 0; e < ROW; e++) {
            const cek_u32 last = s.at[LAST] * ROW + e, o1 = SPATIAL == 3 ? s.at[1] : last, o2 = SPATIAL == 3 ? last : 0;
            const cek_u64 place = to + place_in(s.at[0], o1, o2, a.channels, a.window.out);
            if (ROW > 1 && last >= a.window.out[LAST])
                continue;
#ifdef AVERAGE
            const cek_f32 divide = divisor(&a.window, s.at[0], o1, o2, a.count_pad);
            FOR_LANES(s, value[e][l] /= divide;)
#endif
            PUT(s, TYPE, AT(y, 1), place, value[e])
            if (a.reserve) {
                PUT_TAPS(s, AT(reserve, 2), place, winner[e])
            }
        }
    }
}

/* The windows that `each` positions of a work-item are in, in one dimension: the last of them, and the tap that the first
 * position is there, below 0 where the window begins behind it. Those before it are a window's stride of taps further on. */
#define FIRST_PLACE(d, each) (s.at[d] * (each) - ((each) > 1 ? a.window.pad[d] % (each) : 0))
#define LAST_WINDOW(d, each)                                                                       \
    const cek_u32 begin##d = FIRST_PLACE(d, each), padded##d = begin##d + a.window.pad[d];         \
    const cek_u32 quotient##d = QUOTIENT(padded##d + (each)-1, a.stride, d);                       \
    const cek_u32 out##d = quotient##d < a.window.out[d] ? quotient##d : a.window.out[d] - 1;      \
    const cek_i32 tap##d = (cek_i32)(padded##d - out##d * a.window.stride[d]);
/* DX: what every window that reads a position sends back, by ascending taps. Windows are counted down to 0: where a
 * number that falls was held against its first value instead, nvcc 13.0 left the loop after the first window. */
KERNEL void pool_backward(GLOBAL char *RESTRICT dy, GLOBAL char *RESTRICT dx, GLOBAL char *RESTRICT reserve,
                          const cek_k_pool a)
{
    EACH_ITEM {
        const spot s = spot_of((cek_u32)item, &a);
        const cek_u64 from = s.image * a.image_out + s.channel, to = s.image * a.image_in + s.channel;
        cek_f32 sum[SQUARE * SQUARE][CHANNELS];
        for (cek_u32 e = 0; e < SQUARE * SQUARE; e++)
            for (cek_u32 l = 0; l < CHANNELS; l++)
                sum[e][l] = 0.0f;
        LAST_WINDOW(0, SQUARE)
        LAST_WINDOW(1, SQUARE)
#if SPATIAL == 3
        LAST_WINDOW(2, 1)
#else
        const cek_u32 out2 = 0, begin2 = 0;
        const cek_i32 tap2 = 0;
#endif
        cek_i32 t0 = tap0, t1, t2;
        cek_u32 left0 = out0 + 1, left1, left2;
        for (; t0 < (cek_i32)a.window.taps[0] && left0; t0 += (cek_i32)a.window.stride[0], left0--)
            for (t1 = tap1, left1 = out1 + 1; t1 < (cek_i32)a.window.taps[1] && left1;
                 t1 += (cek_i32)a.window.stride[1], left1--)
                for (t2 = tap2, left2 = out2 + 1; t2 < (cek_i32)TAPS_2 && left2; t2 += (cek_i32)STRIDE_2, left2--) {
                    const cek_u32 o0 = left0 - 1, o1 = left1 - 1, o2 = left2 - 1;
                    const cek_u64 place = from + place_in(o0, o1, o2, a.channels, a.window.out);
                    cek_f32 v[CHANNELS];
                    GET(s, TYPE, AT(dy, 0), place, v)
#ifdef AVERAGE
                    const cek_f32 divide = divisor(&a.window, o0, o1, o2, a.count_pad);
                    FOR_LANES(s, v[l] /= divide;)
#else
                    cek_u32 winner[CHANNELS];
                    GET_TAPS(s, AT(reserve, 2), place, winner)
#endif
                    for (cek_u32 e = 0; e < SQUARE * SQUARE; e++) {
                        const cek_u32 e0 = (cek_u32)t0 + e / SQUARE, e1 = (cek_u32)t1 + e % SQUARE;
                        if (SQUARE > 1 && (e0 >= a.window.taps[0] || e1 >= a.window.taps[1]))
                            continue;
#ifdef AVERAGE
                        FOR_LANES(s, sum[e][l] += v[l];)
#else
                        const cek_u32 tap = (e0 * a.window.taps[1] + e1) * TAPS_2 + (cek_u32)t2;
                        FOR_LANES(s, sum[e][l] += winner[l] == tap ? v[l] : 0.0f;)
#endif
                    }
                }
        for (cek_u32 e = 0; e < SQUARE * SQUARE; e++) {
            const cek_u32 i0 = begin0 + e / SQUARE, i1 = begin1 + e % SQUARE;
            if (SQUARE > 1 && (i0 >= a.window.in[0] || i1 >= a.window.in[1]))
                continue;
            PUT(s, TYPE, AT(dx, 1), to + place_in(i0, i1, begin2, a.channels, a.window.in), sum[e])
        }
    }
}
