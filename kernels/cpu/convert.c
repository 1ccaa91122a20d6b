/* convert.c - rows of bf16 and f16 storage to and from floats.
 *
 * Owns: the loops over rows; the conversions are half.h's. Must not know: who stores what. */
#include "kernels/cpu/half.h"
#include "kernels/cpu/table.h"

V_INLINE void load(cpu_type type, int64_t n, const void *at, float *to)
{
    const uint16_t *from = at;
    int64_t i = 0;

    for (; i + VL <= n; i += VL)
        v_store(to + i, v_load_typed(type, from + i));
    if (i < n)
        v_store_part(to + i, n - i, v_load_typed_part(type, from + i, n - i));
}

void ISA_NAME(load_rows)(cpu_type type, int64_t rows, int64_t n, const void *from, int64_t ld, float *to, int64_t ldto)
{
    const char *row = from;

    for (int64_t i = 0; i < rows; i++, row += ld * cpu_type_bytes(type), to += ldto)
        switch (type) {
        case CPU_F32: memmove(to, row, (size_t)n * 4); break;
        case CPU_BF16: load(CPU_BF16, n, row, to); break;
        case CPU_F16: load(CPU_F16, n, row, to); break;
        }
}

void ISA_NAME(load)(cpu_type type, int64_t n, const void *from, float *to)
{
    ISA_NAME(load_rows)(type, 1, n, from, 0, to, 0);
}

V_INLINE void store(cpu_type type, int64_t n, const float *from, void *at)
{
    uint16_t *to = at;
    int64_t i = 0;

    for (; i + VL <= n; i += VL)
        v_store_typed_part(type, to + i, VL, v_load(from + i));
    if (i < n)
        v_store_typed_part(type, to + i, n - i, v_load_part(from + i, n - i));
}

void ISA_NAME(store_rows)(cpu_type type, int64_t rows, int64_t n, const float *from, int64_t ld, void *to, int64_t ldto)
{
    char *row = to;

    for (int64_t i = 0; i < rows; i++, from += ld, row += ldto * cpu_type_bytes(type))
        switch (type) {
        case CPU_F32: memmove(row, from, (size_t)n * 4); break;
        case CPU_BF16: store(CPU_BF16, n, from, row); break;
        case CPU_F16: store(CPU_F16, n, from, row); break;
        }
}

void ISA_NAME(store)(cpu_type type, int64_t n, const float *from, void *to)
{
    ISA_NAME(store_rows)(type, 1, n, from, 0, to, 0);
}
