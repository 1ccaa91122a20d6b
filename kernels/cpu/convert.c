/* convert.c - rows of bf16 and f16 storage to and from floats.
 *
 * Owns: the loops over rows; the conversions are half.h's. Must not know: who stores what. */
#include "kernels/cpu/half.h"
#include "kernels/cpu/table.h"

/* Vectors: what a loop costs besides is as much as a wide one takes, and more where it begins at a bad place. */
enum { AT_ONCE = VL > 4 ? 4 : 1 };

V_INLINE void load(cpu_type type, int64_t n, const uint16_t *from, float *to)
{
    int64_t i = 0;

    for (; i + AT_ONCE * VL <= n; i += AT_ONCE * VL) {
        UNROLL
        for (int v = 0; v < AT_ONCE; v++)
            v_store(to + i + v * VL, v_load_typed(type, from + i + v * VL));
    }
    for (; i + VL <= n; i += VL)
        v_store(to + i, v_load_typed(type, from + i));
    if (i < n)
        v_store_part(to + i, n - i, v_load_typed_part(type, from + i, n - i));
}

void ISA_NAME(load)(cpu_type type, int64_t n, const void *from, float *to)
{
    switch (type) {
    case CPU_F32: memmove(to, from, (size_t)n * 4); break;
    case CPU_BF16: load(CPU_BF16, n, from, to); break;
    case CPU_F16: load(CPU_F16, n, from, to); break;
    }
}

V_INLINE void store(cpu_type type, int64_t n, const float *from, uint16_t *to)
{
    int64_t i = 0;

    for (; type == CPU_BF16 && i + 2 * VL <= n; i += 2 * VL)
        v_store_u16_twice((vh_mem *)(to + i), bf16_bits(v_load(from + i)), bf16_bits(v_load(from + i + VL)));
    for (; i + VL <= n; i += VL)
        v_store_typed_part(type, to + i, VL, v_load(from + i));
    if (i < n)
        v_store_typed_part(type, to + i, n - i, v_load_part(from + i, n - i));
}

void ISA_NAME(store)(cpu_type type, int64_t n, const float *from, void *to)
{
    switch (type) {
    case CPU_F32: memmove(to, from, (size_t)n * 4); break;
    case CPU_BF16: store(CPU_BF16, n, from, to); break;
    case CPU_F16: store(CPU_F16, n, from, to); break;
    }
}
