/* convert.c - rows of bf16 and f16 storage to and from floats.
 *
 * Owns: the loops over rows; the conversions are half.h's. Must not know: who stores what. */
#include "kernels/cpu/half.h"
#include "kernels/cpu/table.h"

/* `function` converts a vector of bits; the last, partial vector of halves goes through an array.
 * */
#define LOAD(function)                                                              \
    for (; i + VL <= n; i += VL)                                                    \
        v_store(to + i, (vf)function(v_from_u16(*(const vh_mem *)(h + i))));        \
    if (i < n) {                                                                    \
        uint16_t in[VL] = { 0 };                                                    \
        memcpy(in, h + i, (size_t)(n - i) * 2);                                     \
        v_store_part(to + i, n - i, (vf)function(v_from_u16(*(const vh_mem *)in))); \
    }                                                                               \
    break

void ISA_NAME(load)(cpu_type type, int64_t n, const void *from, float *to)
{
    const uint16_t *h = from;
    int64_t i = 0;
    switch (type) {
    case CPU_F32: memmove(to, from, (size_t)n * 4); break;
    case CPU_BF16: LOAD(from_bf16);
    case CPU_F16: LOAD(from_f16);
    }
}

#define STORE(function)                                                        \
    for (; i + VL <= n; i += VL)                                               \
        *(vh_mem *)(h + i) = v_to_u16(function((vu)v_load(from + i)));         \
    if (i < n) {                                                               \
        uint16_t out[VL];                                                      \
        *(vh_mem *)out = v_to_u16(function((vu)v_load_part(from + i, n - i))); \
        memcpy(h + i, out, (size_t)(n - i) * 2);                               \
    }                                                                          \
    break

void ISA_NAME(store)(cpu_type type, int64_t n, const float *from, void *to)
{
    uint16_t *h = to;
    int64_t i = 0;
    switch (type) {
    case CPU_F32: memmove(to, from, (size_t)n * 4); break;
    case CPU_BF16: STORE(to_bf16);
    case CPU_F16: STORE(to_f16);
    }
}
