/* random.c - Philox4x32-10 for many blocks at once, and what is made of its words.
 *
 * Owns: the arrangement of blocks in vectors.
 * Must not know: rows, samples, threads. Key, counter and the meaning of words are plugin.h's
 * section 9.
 *
 * A vector of 64-bit lanes holds one of the four counter words of VL/2 blocks, in the lanes' low
 * halves: what the multiplication leaves in the high halves is the word that the next round
 * needs from it, so nothing is masked. */
#include "kernels/cpu/ops.h"
#include "kernels/cpu/vmath.h"

enum { BLOCKS = VL / 2 };

#if defined CEK_ISA_AVX512
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define ZIP_LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define ZIP_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define ZIP64_LOW 0, 8, 1, 9, 2, 10, 3, 11
#define ZIP64_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#elif defined CEK_ISA_AVX2
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define ODD 1, 3, 5, 7, 9, 11, 13, 15
#define ZIP_LOW 0, 8, 1, 9, 2, 10, 3, 11
#define ZIP_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#define ZIP64_LOW 0, 4, 1, 5
#define ZIP64_HIGH 2, 6, 3, 7
#else
#define EVEN 0, 2, 4, 6
#define ODD 1, 3, 5, 7
#define ZIP_LOW 0, 4, 1, 5
#define ZIP_HIGH 2, 6, 3, 7
#define ZIP64_LOW 0, 2
#define ZIP64_HIGH 1, 3
#endif

static void words(uint64_t key, uint32_t stream, uint64_t sample, uint64_t block, int64_t blocks, uint32_t *out)
{
    const vl low = (vl){ 0 } + 0xffffffffu;
    vl lane;

    for (int i = 0; i < BLOCKS; i++)
        lane[i] = (uint64_t)i;
    for (int64_t b = 0; b < blocks; b += BLOCKS, out += 4 * BLOCKS) {
        vl c0 = lane + (block + (uint64_t)b), c1 = (vl){ 0 } + stream;
        vl c2 = (vl){ 0 } + (uint32_t)sample, c3 = (vl){ 0 } + (sample >> 32);
        uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);

#pragma GCC unroll 10
        for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
            vl p0 = v_mul_low(c0, 0xD2511F53u), p1 = v_mul_low(c2, 0xCD9E8D57u);

            c0 = (p1 >> 32) ^ c1 ^ (uint64_t)k0;
            c2 = (p0 >> 32) ^ c3 ^ (uint64_t)k1;
            c1 = p1;
            c3 = p0;
        }
        vl first = (c0 & low) | (c1 << 32), second = (c2 & low) | (c3 << 32);
        *(vi_mem *)out = (vi)__builtin_shufflevector(first, second, ZIP64_LOW);
        *(vi_mem *)(out + VL) = (vi)__builtin_shufflevector(first, second, ZIP64_HIGH);
    }
}

static inline vu load_words(const uint32_t *p)
{
    return (vu) * (const vi_mem *)p;
}

static void dropout(int64_t n, const uint32_t *word, uint32_t threshold, float scale, const float *x, float *y)
{
    const vu least = (vu){ 0 } + threshold;
    uint32_t rest[VL] = { 0 };
    int64_t i = 0;

    for (; i + VL <= n; i += VL)
        v_store(y + i, v_select((vi)(load_words(word + i) >= least), v_load(x + i) * scale, v_all(0)));
    if (i < n) {
        memcpy(rest, word + i, (size_t)(n - i) * sizeof *rest);
        v_store_part(y + i, n - i,
                     v_select((vi)(load_words(rest) >= least), v_load_part(x + i, n - i) * scale, v_all(0)));
    }
}

/* 24 bits are what a float holds exactly. */
static inline vf fraction(vu word)
{
    return v_to_f32((vi)(word >> 8)) * 0x1p-24f;
}

static void uniform(int64_t n, const uint32_t *word, float low, float width, float *y)
{
    for (int64_t i = 0; i < n; i += VL)
        v_store(y + i, fraction(load_words(word + i)) * width + low);
}

static void normal(int64_t n, const uint32_t *word, float mean, float deviation, float *y)
{
    for (int64_t i = 0; i < n; i += 2 * VL) {
        vu a = load_words(word + i), b = load_words(word + i + VL);
        vf u1 = fraction(__builtin_shufflevector(a, b, EVEN)) + 0x1p-24f; /* never 0, and exact */
        vf u2 = fraction(__builtin_shufflevector(a, b, ODD));
        vf radius = v_sqrt(v_log(u1) * -2.0f) * deviation, sine, cosine;

        v_sincos_turn(u2, &sine, &cosine);
        cosine = cosine * radius + mean;
        sine = sine * radius + mean;
        v_store(y + i, __builtin_shufflevector(cosine, sine, ZIP_LOW));
        v_store(y + i + VL, __builtin_shufflevector(cosine, sine, ZIP_HIGH));
    }
}

const cpu_random_kernels ISA_NAME(cek__random_kernels) = {
    .words = words,
    .dropout = dropout,
    .uniform = uniform,
    .normal = normal,
};
