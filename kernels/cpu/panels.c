/* panels.c - cuts rows of a matrix of any type into the panels of floats that tiles read.
 *
 * Owns: the copy, row by row, so that memory is read in the order in which it lies.
 * Must not know: which operand it is. */
#include "kernels/cpu/half.h"
#include "kernels/cpu/table.h"

/* Full panels of B: two vectors a row. */
V_INLINE void wide(cpu_type type, int64_t depth, int64_t columns, const char *from, int64_t ld, float *to,
                   int64_t panel)
{
    const int64_t full = columns / TILE_COLUMNS * TILE_COLUMNS, rest = columns - full, bytes = cpu_type_bytes(type);

    for (int64_t k = 0; k < depth; k++, from += ld * bytes, to += TILE_COLUMNS) {
        const char *end = from + full * bytes;
        for (int64_t j = 0; k + CPU_ROWS_AHEAD < depth && j < columns * bytes; j += 64)
            __builtin_prefetch(from + CPU_ROWS_AHEAD * ld * bytes + j);
        float *row = to;
        for (int64_t j = 0; j < full; j += TILE_COLUMNS, row += panel) {
            const vf low = v_load_typed(type, from + j * bytes), high = v_load_typed(type, from + (j + VL) * bytes);
            v_store(row, low);
            v_store(row + VL, high);
        }
        if (rest > 0) {
            v_store(row, v_load_typed_part(type, end, rest < VL ? rest : VL));
            v_store(row + VL, rest > VL ? v_load_typed_part(type, end + VL * bytes, rest - VL) : (vf){ 0 });
        }
    }
}

/* One row of a narrow panel, n <= width, given that `room` elements may be read. Whole vectors are
 * written where the next row of the panel will write over what is too much. */
V_INLINE void narrow_row(cpu_type type, int64_t n, int64_t room, int is_last, const char *from, float *to)
{
    for (int64_t i = 0; i < n; i += VL) {
        const int64_t part = n - i < VL ? n - i : VL;
        const char *at = from + i * cpu_type_bytes(type);
        const vf x = room - i >= VL ? v_load_typed(type, at) : v_load_typed_part(type, at, part);
        if (is_last)
            v_store_part(to + i, part, x);
        else
            v_store(to + i, x);
    }
}

/* Panels narrower than a tile's B. After the last row of a panel comes the next panel, so that row is written in part;
 * whole vectors, of rows before it, reach the row behind theirs and no farther. */
_Static_assert(TILE_ROWS / 2 + 1 >= VL / 2, "several panels are wider than half of a tile's rows");
V_INLINE void narrow(cpu_type type, int64_t depth, int64_t columns, int64_t width, const char *from, int64_t ld,
                     float *to, int64_t panel)
{
    const int64_t bytes = cpu_type_bytes(type);

    for (int64_t k = 0; k < depth; k++, from += ld * bytes, to += width) {
        float *row = to;
        for (int64_t i = 0; k + CPU_ROWS_AHEAD < depth && i < columns * bytes; i += 64)
            __builtin_prefetch(from + CPU_ROWS_AHEAD * ld * bytes + i);
        int64_t j = 0;
        if (width <= VL && k + 1 < depth)
            for (const char *at = from; j <= columns - VL; j += width, row += panel, at += width * bytes)
                v_store(row, v_load_typed(type, at));
        for (; j < columns; j += width, row += panel)
            narrow_row(type, columns - j < width ? columns - j : width, columns - j, k + 1 == depth, from + j * bytes,
                       row);
    }
}

void ISA_NAME(panels)(cpu_type type, int64_t depth, int64_t columns, int64_t width, const void *from, int64_t ld,
                      float *to, int64_t panel)
{
#define PANELS(type)                                     \
    if (width == TILE_COLUMNS)                           \
        wide(type, depth, columns, from, ld, to, panel); \
    else                                                 \
        narrow(type, depth, columns, width, from, ld, to, panel)
    FOR_TYPE(type, PANELS)
#undef PANELS
}
