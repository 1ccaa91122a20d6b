/* pool.c - maximum and average over the places of one window, all channels at once, and their
 * gradients.
 *
 * Owns: which of several equal maxima wins (the first), and that NaN does.
 * Must not know: windows, strides, padding: it is given the places. */
#include "kernels/cpu/half.h"
#include "kernels/cpu/ops.h"

/* VL channels from channel c on, of which `part` exist, at a place. */
V_INLINE vf place_load(cpu_type type, const void *place, int64_t c, int64_t part)
{
    return v_load_typed_part(type, (const char *)place + c * cpu_type_bytes(type), part);
}

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

V_INLINE void max_any(cpu_type type, int64_t channels, int count, const void *const *x, const uint32_t *number,
                      int more, float *y, void *index, int bytes)
{
    for (int64_t c = 0; c < channels; c += VL) {
        const int64_t part = channels - c < VL ? channels - c : VL;
        vf best = more ? v_load_part(y + c, part) : place_load(type, x[0], c, part);
        vi which = { 0 };

        if (bytes)
            which = more ? load_index(index, bytes, c) : v_all_i32((int32_t)number[0]);
        for (int j = !more; j < count; j++) {
            vf v = place_load(type, x[j], c, part);
            vi wins = ~(v <= best) & (best == best);

            best = v_select(wins, v, best);
            which = v_select_i32(wins, v_all_i32((int32_t)number[j]), which);
        }
        v_store_part(y + c, part, best);
        if (bytes)
            store_index(index, bytes, c, part, which);
    }
}

static void pool_max(cpu_type type, int64_t channels, int count, const void *const *x, const uint32_t *number, int more,
                     float *y, void *index, int index_bytes){
#define MAX(type) max_any(type, channels, count, x, number, more, y, index, index_bytes)
    FOR_TYPE(type, MAX)
#undef MAX
}

V_INLINE void max_grad_any(cpu_type type, int64_t channels, int count, const void *const *dy, const void *const *index,
                           const uint32_t *number, int more, float *dx, int bytes)
{
    for (int64_t c = 0; c < channels; c += VL) {
        const int64_t part = channels - c < VL ? channels - c : VL;
        vf sum = { 0 };

        if (more)
            sum = v_load_part(dx + c, part);
        for (int j = 0; j < count; j++) {
            vi chosen = load_index(index[j], bytes, c) == (int32_t)number[j];

            sum += v_select(chosen, place_load(type, dy[j], c, part), v_all(0));
        }
        v_store_part(dx + c, part, sum);
    }
}

static void max_grad(cpu_type type, int64_t channels, int count, const void *const *dy, const void *const *index,
                     const uint32_t *number, int index_bytes, int more, float *dx){
#define MAX_GRAD(type) max_grad_any(type, channels, count, dy, index, number, more, dx, index_bytes)
    FOR_TYPE(type, MAX_GRAD)
#undef MAX_GRAD
}

/* Half a vector at p and half a vector at q, so that few channels of two windows fill one. */
V_INLINE vf halves_load(cpu_type type, const void *p, const void *q)
{
    if (type != CPU_F32) {
        vh_mem both;
        memcpy(&both, p, VL);
        memcpy((char *)&both + VL, q, VL);
        return v_load_typed(type, &both);
    }
#if defined CEK_ISA_AVX512
    return (vf)_mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(p)), _mm256_loadu_ps(q), 1);
#elif defined CEK_ISA_AVX2
    return (vf)_mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(q), 1);
#else
    vf both;
    memcpy(&both, p, VL / 2 * sizeof(float));
    memcpy((char *)&both + VL / 2 * sizeof(float), q, VL / 2 * sizeof(float));
    return both;
#endif
}

V_INLINE void halves_store(cpu_type type, void *p, void *q, vf x)
{
    if (type != CPU_F32) {
        vh_mem both;
        v_store_typed_part(type, &both, VL, x);
        memcpy(p, &both, VL);
        memcpy(q, (const char *)&both + VL, VL);
        return;
    }
#if defined CEK_ISA_AVX512
    _mm256_storeu_ps(p, _mm512_castps512_ps256((__m512)x));
    _mm256_storeu_ps(q, _mm512_extractf32x8_ps((__m512)x, 1));
#elif defined CEK_ISA_AVX2
    _mm_storeu_ps(p, _mm256_castps256_ps128((__m256)x));
    _mm_storeu_ps(q, _mm256_extractf128_ps((__m256)x, 1));
#else
    memcpy(p, &x, VL / 2 * sizeof(float));
    memcpy(q, (const float *)&x + VL / 2, VL / 2 * sizeof(float));
#endif
}

/* Bytes from what is compared to what comes into L2 meanwhile. Of 128 channels of floats 2 KiB gained a quarter, 1 KiB
 * a tenth, 4 and 8 KiB no more. */
enum { AHEAD = 2048 };

/* A vector of a row of windows: `part` channels from number `from` on; or, with `step`, all channels, half a vector, of
 * a window and of the next, whose places are `step` elements on. */
typedef struct row_part {
    int64_t from, part, step;
} row_part;

V_INLINE vf row_part_load(cpu_type type, row_part at, const void *x)
{
    const char *p = (const char *)x + at.from * cpu_type_bytes(type);

    return at.step ? halves_load(type, p, p + at.step * cpu_type_bytes(type)) : v_load_typed_part(type, p, at.part);
}

V_INLINE void max_part(cpu_type type, row_part at, int count, const void *const *x, const uint32_t *number, void *y,
                       uint8_t *index)
{
    vf best = row_part_load(type, at, x[0]);
    vi which = v_all_i32((int32_t)number[0]);

    for (int j = 0; j < count; j++)
        __builtin_prefetch((const char *)x[j] + at.from * cpu_type_bytes(type) + AHEAD, 0, 2);
    for (int j = 1; j < count; j++) {
        const vf v = row_part_load(type, at, x[j]);
#if defined CEK_ISA_AVX512
        const __mmask16 wins = _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask((__m512)v, (__m512)best, _CMP_NLE_UQ),
                                                       (__m512)best, (__m512)best, _CMP_ORD_Q);

        best = (vf)_mm512_mask_mov_ps((__m512)best, wins, (__m512)v);
        if (index)
            which = (vi)_mm512_mask_set1_epi32((__m512i)which, wins, (int)number[j]);
#else
        const vi wins = ~(v <= best) & (best == best);

        best = v_select(wins, v, best);
        if (index)
            which = v_select_i32(wins, v_all_i32((int32_t)number[j]), which);
#endif
    }
    v_store_typed_part(type, y, at.part, best);
    if (index)
        store_index(index, 1, 0, at.part, which);
}

V_INLINE void max_row_any(cpu_type type, int64_t outputs, int64_t channels, int64_t step, int count,
                          const void *const *x, const uint32_t *number, char *y, uint8_t *index)
{
    const int64_t bytes = cpu_type_bytes(type);
    int64_t o = 0;

    for (; channels == VL / 2 && o + 2 <= outputs; o += 2)
        max_part(type, (row_part){ o * step, VL, step }, count, x, number, y + o * channels * bytes,
                 index ? index + o * channels : NULL);
    for (; o < outputs; o++)
        for (int64_t c = 0; c < channels; c += VL)
            max_part(type, (row_part){ o * step + c, channels - c < VL ? channels - c : VL, 0 }, count, x, number,
                     y + (o * channels + c) * bytes, index ? index + o * channels + c : NULL);
}

V_INLINE void max_grad_part(cpu_type type, row_part at, int count, void *const *dx, const uint32_t *number,
                            const void *dy, const uint8_t *index, int stream)
{
    const int64_t bytes = cpu_type_bytes(type);
    const vf gradient = v_load_typed_part(type, dy, at.part);
    const vi which = load_index(index, 1, 0);

    for (int j = 0; j < count; j++) {
        const vf v = v_select(which == (int32_t)number[j], gradient, v_all(0));
        char *p = (char *)dx[j] + at.from * bytes;

        if (at.step)
            halves_store(type, p, p + at.step * bytes, v);
        else if (type == CPU_F32 && stream && at.part == VL && (uintptr_t)p % (VL * sizeof(float)) == 0)
            v_stream((float *)(void *)p, v);
        else
            v_store_typed_part(type, p, at.part, v);
    }
}

V_INLINE void max_grad_row_any(cpu_type type, int64_t outputs, int64_t channels, int64_t step, int count,
                               void *const *dx, const uint32_t *number, const char *dy, const uint8_t *index,
                               int stream)
{
    const int64_t bytes = cpu_type_bytes(type);
    int64_t o = 0;

    for (; channels == VL / 2 && o + 2 <= outputs; o += 2)
        max_grad_part(type, (row_part){ o * step, VL, step }, count, dx, number, dy + o * channels * bytes,
                      index + o * channels, 0);
    for (; o < outputs; o++)
        for (int64_t c = 0; c < channels; c += VL)
            max_grad_part(type, (row_part){ o * step + c, channels - c < VL ? channels - c : VL, 0 }, count, dx, number,
                          dy + (o * channels + c) * bytes, index + o * channels + c, stream);
}

static void max_grad_row(cpu_type type, int64_t outputs, int64_t channels, int64_t step, int count, void *const *dx,
                         const uint32_t *number, const void *dy, const uint8_t *index, int stream)
{
#define MAX_GRAD_ROW(type) max_grad_row_any(type, outputs, channels, step, count, dx, number, dy, index, stream)
    FOR_TYPE(type, MAX_GRAD_ROW)
#undef MAX_GRAD_ROW
}

static void max_row(cpu_type type, int64_t outputs, int64_t channels, int64_t step, int count, const void *const *x,
                    const uint32_t *number, void *y, uint8_t *index)
{
#define MAX_ROW(type)                                                         \
    if (type == CPU_F32 && count == 4 && index) /* what most networks have */ \
        max_row_any(type, outputs, channels, step, 4, x, number, y, index);   \
    else                                                                      \
        max_row_any(type, outputs, channels, step, count, x, number, y, index)
    FOR_TYPE(type, MAX_ROW)
#undef MAX_ROW
}

V_INLINE void average_any(cpu_type type, int64_t channels, int count, const void *const *x, float divisor, int more,
                          float *y)
{
    for (int64_t c = 0; c < channels; c += VL) {
        const int64_t part = channels - c < VL ? channels - c : VL;
        vf sum = { 0 };

        if (more)
            sum = v_load_part(y + c, part);
        for (int j = 0; j < count; j++)
            sum += place_load(type, x[j], c, part);
        v_store_part(y + c, part, sum / divisor);
    }
}

static void average(cpu_type type, int64_t channels, int count, const void *const *x, float divisor, int more,
                    float *y){
#define AVERAGE(type) average_any(type, channels, count, x, divisor, more, y)
    FOR_TYPE(type, AVERAGE)
#undef AVERAGE
}

V_INLINE void average_grad_any(cpu_type type, int64_t channels, int count, const void *const *dy, const float *divisor,
                               int more, float *dx)
{
    for (int64_t c = 0; c < channels; c += VL) {
        const int64_t part = channels - c < VL ? channels - c : VL;
        vf sum = { 0 };

        if (more)
            sum = v_load_part(dx + c, part);
        for (int j = 0; j < count; j++)
            sum += place_load(type, dy[j], c, part) / divisor[j];
        v_store_part(dx + c, part, sum);
    }
}

static void average_grad(cpu_type type, int64_t channels, int count, const void *const *dy, const float *divisor,
                         int more, float *dx)
{
#define AVERAGE_GRAD(type) average_grad_any(type, channels, count, dy, divisor, more, dx)
    FOR_TYPE(type, AVERAGE_GRAD)
#undef AVERAGE_GRAD
}

const cpu_pool_kernels ISA_NAME(cek__pool_kernels) = {
    .max = pool_max,
    .max_grad = max_grad,
    .max_row = max_row,
    .max_grad_row = max_grad_row,
    .average = average,
    .average_grad = average_grad,
};
