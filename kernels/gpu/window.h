/* SPDX-License-Identifier: MIT
 *
 * window.h - where elements of images lie that are seen through windows: a part of product.cl, read where
 * it is included.
 *
 * A place is what follows from a row or column, and what follows from p; they add up. MODE says which is which.
 */

/* The half of an element's coordinates that follows from its row or column, or the half that follows from p: they add
 * up. rest: what the strides leave over, which must be equal. */
typedef struct __attribute__((aligned(16))) spot {
    cek_u32 at[3], rest;
} spot;

/* Numbers as four digits: digit d counts to size[d], the first one for ever. Those of a small one are found without 64
 * bits. */
DEVICE_FN void digits_of(cek_u64 i, const cek_u32 *size, cek_u32 *digit)
{
    for (int d = 3; d > 0; d--) {
        digit[d] = (cek_u32)(i % size[d]);
        i /= size[d];
    }
    digit[0] = (cek_u32)i;
}
DEVICE_FN void digits_add(cek_u32 *digit, const cek_u32 *by, const cek_u32 *size)
{
    cek_u32 carry = 0;
    for (int d = 3; d > 0; d--) {
        digit[d] += by[d] + carry;
        carry = digit[d] >= size[d];
        digit[d] -= carry ? size[d] : 0;
    }
    digit[0] += by[0] + carry;
}
DEVICE_FN void digits_small(cek_u32 i, const cek_u32 *size, cek_u32 *digit)
{
    for (int d = 3; d > 0; d--) {
        digit[d] = i % size[d];
        i /= size[d];
    }
    digit[0] = i;
}

/* Coordinates may be below 0. */
DEVICE_FN cek_u64 position_of(cek_u64 image, const cek_u32 *at, const cek_u32 *size)
{
    for (int d = 0; d < 3; d++)
        image = image * size[d] + (cek_u64)(cek_i64)(cek_i32)at[d];
    return image;
}

#if MODE == MODE_FORWARD || MODE == MODE_WEIGHTS
#define LIMIT args->window.in
#define PLACES                                                           \
    {                                                                    \
        0, args->window.out[0], args->window.out[1], args->window.out[2] \
    }
#define TAPS                                                          \
    {                                                                 \
        0, args->window.taps[1], args->window.taps[2], args->in_group \
    }
/* Of an output position (image, three coordinates), then of a tap and its input channel: the spot, and the elements in
 * front of it. */
DEVICE_FN cek_u64 place_spot(const cek_k_product *a, const cek_u32 *digit, spot *s)
{
    for (int d = 0; d < 3; d++)
        s->at[d] = digit[d + 1] * a->window.stride[d] - a->window.pad[d];
    s->rest = 0;
    return position_of(digit[0], s->at, a->window.in) * a->in_channels;
}
DEVICE_FN cek_u64 tap_spot(const cek_k_product *a, const cek_u32 *digit, spot *s)
{
    for (int d = 0; d < 3; d++)
        s->at[d] = digit[d] * a->window.dilation[d];
    s->rest = 0;
    return position_of(0, s->at, a->window.in) * a->in_channels + digit[3];
}
#define REST_EQUAL(s, t) 1
#endif

#if MODE == MODE_DATA
#define LIMIT args->window.out
#define PLACES                                                        \
    {                                                                 \
        0, args->window.in[0], args->window.in[1], args->window.in[2] \
    }
#define TAPS                                                           \
    {                                                                  \
        0, args->window.taps[1], args->window.taps[2], args->out_group \
    }
/* `n` strides and a rest, of dimension d. */
DEVICE_FN cek_u32 strides_in(const cek_k_product *a, int d, cek_u32 n, cek_u32 *rest)
{
    cek_u32 q = MUL_HIGH(2 * n, a->stride_multiplier[d]) >> a->stride_shift[d];
    *rest = *rest * a->window.stride[d] + (n - q * a->window.stride[d]);
    return q;
}
/* The same of an input position, and of a tap with its output channel. */
DEVICE_FN cek_u64 place_spot(const cek_k_product *a, const cek_u32 *digit, spot *s)
{
    s->rest = 0;
    for (int d = 0; d < 3; d++)
        s->at[d] = strides_in(a, d, digit[d + 1] + a->window.pad[d], &s->rest);
    return position_of(digit[0], s->at, a->window.out) * a->out_channels;
}
DEVICE_FN cek_u64 tap_spot(const cek_k_product *a, const cek_u32 *digit, spot *s)
{
    s->rest = 0;
    for (int d = 0; d < 3; d++)
        s->at[d] = 0 - strides_in(a, d, digit[d] * a->window.dilation[d], &s->rest);
    return position_of(0, s->at, a->window.out) * a->out_channels + digit[3];
}
#define REST_EQUAL(s, t) ((s).rest == (t).rest)
/* Bytes in front of the weights of a tap and its output channel. */
DEVICE_FN cek_u64 weights_front(const cek_k_product *a, const cek_u32 *digit)
{
    const cek_u64 tap = ((cek_u64)digit[0] * a->window.taps[1] + digit[1]) * a->window.taps[2] + digit[2];
    return (tap * a->in_group + digit[3] * a->b_row) * BYTES(B_TYPE);
}
#endif
#define NOWHERE 0x80000000u /* added to any coordinate it is beyond all limits */

#define SEES(s, t)                                                                                                  \
    (((s).at[0] + (t).at[0] < LIMIT[0]) & ((s).at[1] + (t).at[1] < LIMIT[1]) & ((s).at[2] + (t).at[2] < LIMIT[2]) & \
     REST_EQUAL(s, t))

#if WINDOW_A
#define LINE_SPOT place_spot
#define LINE_SIZE PLACES
#define DEPTH_SPOT tap_spot
#define DEPTH_SIZE TAPS
#define SPOTS ROWS
#define IMAGE_LINES a_line
#define LINE_BYTES BYTES(A_TYPE)
#elif WINDOW_B
#define LINE_SPOT tap_spot
#define LINE_SIZE TAPS
#define DEPTH_SPOT place_spot
#define DEPTH_SIZE PLACES
#define SPOTS COLUMNS
#define IMAGE_LINES b_line
#define LINE_BYTES BYTES(B_TYPE)
#endif
