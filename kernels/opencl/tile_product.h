/* SPDX-License-Identifier: MIT
 *
 * tile_product.h - products of matrices by register tiles; a part of tile.cl.
 */

/* Where matrix z begins, of two levels of a batch. */
#define MATRIX_AT(z, name) (a.inner ? (z) / a.inner * a.name##_outer + (z) % a.inner * a.name##_batch : 0)

/* How far panel `panel` of B lies back, where it is read in place and has fewer than NR columns of its own. */
#define BACK(panel) ((panel)*NR + NR > a.n ? a.back : 0)

/* Packs rows of A into tiles [k][MR], zero below the last row; a work-item is a tile and a piece of k. */
KERNEL void tile_pack_a(GLOBAL char *from, GLOBAL char *to, const cek_k_pack a)
{
    cek_u64 tiles = (a.rows + MR - 1) / MR, z = GROUP_ID(2), tile = GROUP_ID(0), begin = GROUP_ID(1) * a.piece;
    if (tile >= tiles || begin >= a.k)
        return;
    cek_u64 end = begin + a.piece < a.k ? begin + a.piece : a.k;
    cek_in x = (cek_in)AT(from, 0) + MATRIX_AT(z, from) + tile * MR * a.row;
    cek_out y = (cek_out)AT(to, 1) + (z * tiles + tile) * a.k * MR;
    cek_u64 rows = a.rows - tile * MR;
    if (rows >= MR && a.column == 1) {
        for (cek_u64 p = begin; p < end; p++)
            for (int i = 0; i < MR; i++)
                y[p * MR + i] = x[i * a.row + p];
    } else if (rows >= MR && a.row == 1) {
        for (cek_u64 p = begin; p < end; p++)
            for (int i = 0; i < MR; i++)
                y[p * MR + i] = x[i + p * a.column];
    } else {
        for (cek_u64 p = begin; p < end; p++)
            for (cek_u64 i = 0; i < MR; i++)
                y[p * MR + i] = i < rows ? x[i * a.row + p * a.column] : 0.0f;
    }
}

/* Packs columns of B into panels [k][NR], zero beyond the last column. */
KERNEL void tile_pack_b(GLOBAL char *from, GLOBAL char *to, const cek_k_pack a)
{
    cek_u64 panels = (a.rows + NR - 1) / NR, z = GROUP_ID(2), panel = GROUP_ID(0), begin = GROUP_ID(1) * a.piece;
    if (panel >= panels || begin >= a.k)
        return;
    cek_u64 end = begin + a.piece < a.k ? begin + a.piece : a.k, columns = a.rows - panel * NR;
    cek_in x = (cek_in)AT(from, 0) + MATRIX_AT(z, from) + panel * NR * a.row;
    cek_out y = (cek_out)AT(to, 1) + (z * panels + panel) * a.k * NR;
    if (columns >= NR && a.row == 1) {
        for (cek_u64 p = begin; p < end; p++) {
            VSTORE(VLOAD(x + p * a.column), y + p * NR);
            VSTORE(VLOAD(x + p * a.column + VW), y + p * NR + VW);
        }
        return;
    }
    columns = columns < NR ? columns : NR;
    if (a.row == 1) {
        for (cek_u64 p = begin; p < end; p++) {
            for (cek_u64 j = 0; j < columns; j++)
                y[p * NR + j] = x[p * a.column + j];
            for (cek_u64 j = columns; j < NR; j++)
                y[p * NR + j] = 0.0f;
        }
        return;
    }
    /* Blocks that stay in the first cache: rows are read along, written across. */
    for (cek_u64 p = begin; p < end; p += VW) {
        cek_u64 last = p + VW < end ? p + VW : end;
        for (cek_u64 j = 0; j < NR; j++)
            for (cek_u64 q = p; q < last; q++)
                y[q * NR + j] = j < columns ? x[j * a.row + q * a.column] : 0.0f;
    }
}

DEVICE_FN void epilogue_set(epilogue *e, const cek_k_tile *a, GLOBAL char *c, GLOBAL const char *bias,
                            GLOBAL const char *act_ref)
{
    e->c = c, e->type = a->type, e->accumulate = a->accumulate;
    e->bias = a->bias ? (cek_in)bias : 0, e->bias_rows = a->bias_rows;
    e->act_ref = a->act_grad ? act_ref : 0;
    e->activation = a->activation, e->act_grad = a->act_grad, e->stream = a->stream;
}

/* C from A and B; a work-item takes `panels` panels of B and `row_tiles` tiles of A, along C's rows. A is packed, or
 * (direct) read in place row by row; B is packed, or read in place where each row has NR neighbours: the last panel
 * then lies back, inside the row. */
DEVICE_FN void product(GLOBAL char *A_, GLOBAL char *B_, GLOBAL char *C_, GLOBAL char *bias, GLOBAL char *act_ref,
                       GLOBAL char *partial, const cek_k_tile a, const int direct)
{
    cek_u64 z = a.splits ? GROUP_ID(2) / a.splits : 0, split = a.splits ? GROUP_ID(2) % a.splits : 0;
    cek_u64 tile_first = GROUP_ID(1) * a.row_tiles, tiles = (a.m + MR - 1) / MR;
    cek_u64 tile_end = tile_first + a.row_tiles < tiles ? tile_first + a.row_tiles : tiles;
    cek_u64 panel_first = GROUP_ID(0) * a.panels, panels = (a.n + NR - 1) / NR;
    cek_u64 panel_end = panel_first + a.panels < panels ? panel_first + a.panels : panels;
    cek_u64 begin = split * a.split_k, end = begin + a.split_k < a.k ? begin + a.split_k : a.k;
    cek_in A = (cek_in)AT(A_, 0) + MATRIX_AT(z, a), B = (cek_in)AT(B_, 1) + MATRIX_AT(z, b) + begin * a.b_k;
    epilogue e;
    epilogue_set(&e, &a, AT(C_, 2), AT(bias, 3), AT(act_ref, 4));
    for (cek_u64 t = tile_first; t < tile_end; t++) {
#define ROW_POINTER(i) cek_in r##i = A + begin + (t * MR + i < a.m ? t * MR + i : a.m - 1) * a.a_row;
        ROWS(ROW_POINTER)
        for (cek_u64 panel = panel_first; panel < panel_end; panel++) {
            ROWS(TILE_DECLARE)
            const cek_u64 back = BACK(panel);
            cek_in b = B + panel * a.b_panel - back;
            cek_in x = A + (t * a.k + begin) * MR;
            for (cek_u64 p = 0; p < end - begin; p++, b += a.b_k, x += MR) {
                const VEC b0 = VLOAD(b), b1 = VLOAD(b + VW);
                PREFETCH(b + AHEAD * a.b_k)
                PREFETCH(b + AHEAD * a.b_k + VW)
                PREFETCH(b + AHEAD * a.b_k + NR - 1) /* rows begin anywhere in a line: two vectors lie in three */
#define A_OF(i) (direct ? r##i[p] : x[i])
                ROWS(TILE_STEP)
#undef A_OF
            }
            if (a.splits > 1) {
                cek_u64 number = ((z * a.splits + split) * tiles + t) * panels + panel;
                cek_out tile = (cek_out)AT(partial, 5) + number * (MR * NR);
                ROWS(TILE_STORE)
            } else {
                const cek_u64 place = MATRIX_AT(z, c) + t * MR * a.c_row;
#define FINISH(i)         \
    if (t * MR + i < a.m) \
        finish_row(&e, place + i * a.c_row, a.c_column, t * MR + i, panel * NR, back, a.n, lo##i, hi##i);
                ROWS(FINISH)
            }
        }
    }
    if (a.stream)
        STREAMED();
}

KERNEL void tile_product(GLOBAL char *A_, GLOBAL char *B_, GLOBAL char *C_, GLOBAL char *bias, GLOBAL char *act_ref,
                         GLOBAL char *partial, const cek_k_tile a)
{
    product(A_, B_, C_, bias, act_ref, partial, a, 0);
}

KERNEL void tile_product_direct(GLOBAL char *A_, GLOBAL char *B_, GLOBAL char *C_, GLOBAL char *bias,
                                GLOBAL char *act_ref, GLOBAL char *partial, const cek_k_tile a)
{
    product(A_, B_, C_, bias, act_ref, partial, a, 1);
}

/* The sum of the pieces of k, a tile per work-item. */
KERNEL void tile_finish(GLOBAL char *A_, GLOBAL char *B_, GLOBAL char *C_, GLOBAL char *bias, GLOBAL char *act_ref,
                        GLOBAL char *partial, const cek_k_tile a)
{
    cek_u64 tiles = (a.m + MR - 1) / MR, panels = (a.n + NR - 1) / NR;
    cek_u64 z = GROUP_ID(2), t = GROUP_ID(1), column = GROUP_ID(0) * NR;
    if (column >= a.n || t >= tiles)
        return;
    epilogue e;
    epilogue_set(&e, &a, AT(C_, 2), AT(bias, 3), AT(act_ref, 4));
    for (cek_u64 row = t * MR; row < a.m && row < t * MR + MR; row++) {
        VEC lo = 0.0f, hi = 0.0f;
        for (cek_u64 split = 0; split < a.splits; split++) {
            cek_u64 number = ((z * a.splits + split) * tiles + t) * panels + GROUP_ID(0);
            cek_in sums = (cek_in)AT(partial, 5) + number * (MR * NR) + (row - t * MR) * NR;
            lo += VLOAD(sums);
            hi += VLOAD(sums + VW);
        }
        finish_row(&e, MATRIX_AT(z, c) + row * a.c_row, a.c_column, row, column, BACK(GROUP_ID(0)), a.n, lo, hi);
    }
    if (a.stream)
        STREAMED();
}
