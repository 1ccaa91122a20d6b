/* pool.c - maximum and average over the places of one window, all channels at once, and their
 * gradients.
 *
 * Owns: which of several equal maxima wins (the first), and that NaN does.
 * Must not know: windows, strides, padding: it is given the places. */
#include "kernels/cpu/ops.h"
#include "kernels/cpu/vector.h"

/* Indices of VL channels, bytes or words. More are read than exist (CPU_INDEX_SLACK), never written. */
V_INLINE vi load_index(const void *index, int bytes, int64_t at)
{
    if (bytes == 1)
        return v_from_u8(*(const vb_mem *)((const uint8_t *)index + at));
    return v_load_i32((const int32_t *)index + at);
}

V_INLINE void store_index(void *index, int bytes, int64_t at, int64_t part, vi value)
{
    uint8_t lanes[VL];
    int32_t words[VL];

    if (bytes == 1) {
#if defined CEK_ISA_AVX512
        _mm_mask_storeu_epi8((uint8_t *)index + at, (__mmask16)((1u << part) - 1), (__m128i)v_to_u8(value));
#else
        *(vb_mem *)(part == VL ? (uint8_t *)index + at : lanes) = v_to_u8(value);
        if (part < VL)
            memcpy((uint8_t *)index + at, lanes, (size_t)part);
#endif
    } else {
        v_store_i32(part == VL ? (int32_t *)index + at : words, value);
        if (part < VL)
            memcpy((int32_t *)index + at, words, (size_t)part * 4);
    }
    (void)lanes;
}

V_INLINE void max_any(int64_t channels, int count, const float *const *x, const uint32_t *number, int more, float *y,
                      void *index, int bytes)
{
    for (int64_t c = 0; c < channels; c += VL) {
        const int64_t part = channels - c < VL ? channels - c : VL;
        vf best = v_load_part(more ? y + c : x[0] + c, part);
        vi which = { 0 };

        if (bytes)
            which = more ? load_index(index, bytes, c) : v_all_i32((int32_t)number[0]);
        for (int j = !more; j < count; j++) {
            vf v = v_load_part(x[j] + c, part);
            vi wins = ~(v <= best) & (best == best);

            best = v_select(wins, v, best);
            if (bytes)
                which = v_select_i32(wins, v_all_i32((int32_t)number[j]), which);
        }
        v_store_part(y + c, part, best);
        if (bytes)
            store_index(index, bytes, c, part, which);
    }
}

static void pool_max(int64_t channels, int count, const float *const *x, const uint32_t *number, int more, float *y,
                     void *index, int index_bytes)
{
    if (index_bytes == 1)
        max_any(channels, count, x, number, more, y, index, 1);
    else if (index_bytes == 4)
        max_any(channels, count, x, number, more, y, index, 4);
    else
        max_any(channels, count, x, number, more, y, index, 0);
}

V_INLINE void max_grad_any(int64_t channels, int count, const float *const *dy, const void *const *index,
                           const uint32_t *number, int more, float *dx, int bytes)
{
    for (int64_t c = 0; c < channels; c += VL) {
        const int64_t part = channels - c < VL ? channels - c : VL;
        vf sum = { 0 };

        if (more)
            sum = v_load_part(dx + c, part);
        for (int j = 0; j < count; j++) {
            vi chosen = load_index(index[j], bytes, c) == (int32_t)number[j];

            sum += v_select(chosen, v_load_part(dy[j] + c, part), v_all(0));
        }
        v_store_part(dx + c, part, sum);
    }
}

static void max_grad(int64_t channels, int count, const float *const *dy, const void *const *index,
                     const uint32_t *number, int index_bytes, int more, float *dx)
{
    if (index_bytes == 1)
        max_grad_any(channels, count, dy, index, number, more, dx, 1);
    else
        max_grad_any(channels, count, dy, index, number, more, dx, 4);
}

static void average(int64_t channels, int count, const float *const *x, float divisor, int more, float *y)
{
    for (int64_t c = 0; c < channels; c += VL) {
        const int64_t part = channels - c < VL ? channels - c : VL;
        vf sum = { 0 };

        if (more)
            sum = v_load_part(y + c, part);
        for (int j = 0; j < count; j++)
            sum += v_load_part(x[j] + c, part);
        v_store_part(y + c, part, sum / divisor);
    }
}

static void average_grad(int64_t channels, int count, const float *const *dy, const float *divisor, int more, float *dx)
{
    for (int64_t c = 0; c < channels; c += VL) {
        const int64_t part = channels - c < VL ? channels - c : VL;
        vf sum = { 0 };

        if (more)
            sum = v_load_part(dx + c, part);
        for (int j = 0; j < count; j++)
            sum += v_load_part(dy[j] + c, part) / divisor[j];
        v_store_part(dx + c, part, sum);
    }
}

const cpu_pool_kernels ISA_NAME(cek__pool_kernels) = {
    .max = pool_max,
    .max_grad = max_grad,
    .average = average,
    .average_grad = average_grad,
};
