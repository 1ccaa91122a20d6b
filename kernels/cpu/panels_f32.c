/* panels_f32.c - cuts rows of a matrix into the panels that tiles read.
 *
 * Owns: the copy, row by row, so that memory is read in the order in which it lies.
 * Must not know: which operand it is. */
#include "kernels/cpu/table.h"
#include "kernels/cpu/vector.h"

/* Full panels of B: two vectors a row. */
static void wide(int64_t depth, int64_t columns, const float *from, int64_t ld, float *to, int64_t panel)
{
    const int64_t full = columns / TILE_COLUMNS * TILE_COLUMNS, rest = columns - full;

    for (int64_t k = 0; k < depth; k++, from += ld, to += TILE_COLUMNS) {
        float *row = to;
        for (int64_t j = 0; j < full; j += TILE_COLUMNS, row += panel) {
            const vf low = v_load(from + j), high = v_load(from + j + VL);
            v_store(row, low);
            v_store(row + VL, high);
        }
        if (rest > 0) {
            v_store(row, v_load_part(from + full, rest < VL ? rest : VL));
            v_store(row + VL, rest > VL ? v_load_part(from + full + VL, rest - VL) : (vf){ 0 });
        }
    }
}

/* One row of a narrow panel, n <= width, given that `room` elements may be read. Whole vectors are
 * written where the next row of the panel will write over what is too much. */
static inline void narrow_row(int64_t n, int64_t room, int is_last, const float *from, float *to)
{
    for (int64_t i = 0; i < n; i += VL) {
        const int64_t part = n - i < VL ? n - i : VL;
        const vf x = room - i >= VL ? v_load(from + i) : v_load_part(from + i, part);
        if (is_last)
            v_store_part(to + i, part, x);
        else
            v_store(to + i, x);
    }
}

/* Panels of A, narrower than a vector or two. After the last row of a panel comes the next panel,
 * so that row is written in part. */
static void narrow(int64_t depth, int64_t columns, int64_t width, const float *from, int64_t ld, float *to,
                   int64_t panel)
{
    for (int64_t k = 0; k < depth; k++, from += ld, to += width) {
        float *row = to;
        for (int64_t j = 0; j < columns; j += width, row += panel)
            narrow_row(columns - j < width ? columns - j : width, columns - j, k + 1 == depth, from + j, row);
    }
}

void ISA_NAME(panels_f32)(int64_t depth, int64_t columns, int64_t width, const float *from, int64_t ld, float *to,
                          int64_t panel)
{
    if (width == TILE_COLUMNS)
        wide(depth, columns, from, ld, to, panel);
    else
        narrow(depth, columns, width, from, ld, to, panel);
}
