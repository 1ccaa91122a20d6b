/* SPDX-License-Identifier: MIT
 *
 * random.cl - dropout and random numbers, four of a sample per work-item: one output of Philox4x32-10 (plugin.h
 * section 9).
 */
DEVICE_FN void philox(cek_u32 *c, cek_u32 k0, cek_u32 k1)
{
    for (int round = 0; round < 10; round++) {
        cek_u32 high0 = MUL_HIGH(0xD2511F53u, c[0]), low0 = 0xD2511F53u * c[0];
        cek_u32 high1 = MUL_HIGH(0xCD9E8D57u, c[2]), low1 = 0xCD9E8D57u * c[2];
        c[0] = high1 ^ c[1] ^ k0;
        c[1] = low1;
        c[2] = high0 ^ c[3] ^ k1;
        c[3] = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

/* The words of block `item` % blocks of sample `item` / blocks. */
DEVICE_FN void words_of(const cek_k_random *a, GLOBAL const char *step, GLOBAL const char *batch, cek_u64 item,
                        cek_u32 *c)
{
    GLOBAL const cek_u32 *key = (GLOBAL const cek_u32 *)step;
    GLOBAL const cek_u32 *base = (GLOBAL const cek_u32 *)batch;
    cek_u64 sample = item / a->blocks;
    if (a->batch)
        sample += (cek_u64)base[0] | (cek_u64)base[1] << 32;
    c[0] = (cek_u32)(item % a->blocks);
    c[1] = a->stream;
    c[2] = (cek_u32)sample;
    c[3] = (cek_u32)(sample >> 32);
    philox(c, key[0], key[1]);
}

KERNEL void dropout(GLOBAL char *x, GLOBAL char *y, GLOBAL char *step, GLOBAL char *batch, const cek_k_random a)
{
    FOR_EACH(item, a.samples * a.blocks) {
        cek_u32 words[4];
        words_of(&a, AT(step, 2), AT(batch, 3), item, words);
        cek_u64 index = item % a.blocks * 4, first = item / a.blocks * a.sample_elements + index;
        for (cek_u32 i = 0; i < 4 && index + i < a.sample_elements && first + i < a.elements; i++)
            STORE(TYPE, AT(y, 1), first + i, words[i] >= a.threshold ? LOAD(TYPE, AT(x, 0), first + i) * a.a : 0.0f);
    }
}

#define TWO_TO_MINUS_24 5.9604644775390625e-8f  /* in decimals: C++14, as NVRTC is told to read, has no other */

DEVICE_FN cek_f32 normal(const cek_u32 *words, cek_u32 own)
{
    cek_f32 u1 = (cek_f32)((words[own & 2] >> 8) + 1) * TWO_TO_MINUS_24;
    cek_f32 u2 = (cek_f32)(words[(own & 2) + 1] >> 8) * TWO_TO_MINUS_24;
    cek_f32 radius = sqrt(-2.0f * log(u1)), angle = 6.28318530717958648f * u2;
    return radius * (own & 1 ? sin(angle) : cos(angle));
}

KERNEL void random_fill(GLOBAL char *x, GLOBAL char *y, GLOBAL char *step, GLOBAL char *batch, const cek_k_random a)
{
    FOR_EACH(item, a.samples * a.blocks) {
        cek_u32 words[4];
        words_of(&a, AT(step, 2), AT(batch, 3), item, words);
        cek_u64 index = item % a.blocks * 4, first = item / a.blocks * a.sample_elements + index;
        for (cek_u32 i = 0; i < 4 && index + i < a.sample_elements && first + i < a.elements; i++) {
            cek_f32 uniform = (cek_f32)(words[i] >> 8) * TWO_TO_MINUS_24;
            STORE(TYPE, AT(y, 1), first + i, a.normal ? a.a + a.b * normal(words, i) : a.a + (a.b - a.a) * uniform);
        }
    }
}
