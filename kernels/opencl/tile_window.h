/* SPDX-License-Identifier: MIT
 *
 * tile_window.h - what windows of convolutions see, whichever the direction; a part of tile.cl.
 */

/* How many taps there are, and which of them is number `tap` of those that see something. */
DEVICE_FN cek_u64 taps_all(const cek_k_taps *t)
{
    return (cek_u64)t->all[0] * t->all[1];
}
DEVICE_FN cek_u64 tap_seen(const cek_k_taps *t, cek_u64 tap)
{
    return (t->first[0] + tap / t->seen[1]) * t->all[1] + t->first[1] + tap % t->seen[1];
}

/* The other way: its number among those; their number where it is none of them. */
DEVICE_FN cek_u64 tap_among_seen(const cek_k_taps *t, cek_u64 tap)
{
    const cek_u64 y = tap / t->all[1] - t->first[0], x = tap % t->all[1] - t->first[1];
    return y < t->seen[0] && x < t->seen[1] ? y * t->seen[1] + x : (cek_u64)t->seen[0] * t->seen[1];
}

/* Copies so many values, a vector at a time where that does not read behind `end`; behind them others may be written,
 * which are in front of what is copied next. */
DEVICE_FN void values_copy(cek_in from, cek_u64 count, cek_in end, cek_f32 *to)
{
    cek_u64 k = 0;
    for (; k < count && end - from >= (long)(k + VW); k += VW)
        VSTORE(VLOAD(from + k), to + k);
    for (; k < count; k++)
        to[k] = from[k];
}
