/* SPDX-License-Identifier: MIT
 *
 * tile.h - the tile of vector registers and what becomes of its finished rows; a part of tile.cl and winograd.cl.
 */
#define VEC CEK_PASTE(float, VW)
#define VLOAD(p) CEK_PASTE(vload, VW)(0, p)
#define VSTORE(v, p) CEK_PASTE(vstore, VW)(v, 0, p)
#define NR (2 * VW)
typedef GLOBAL const cek_f32 *cek_in;
typedef GLOBAL cek_f32 *cek_out;

#if MR == 14
#define ROWS(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13)
#elif MR == 6
#define ROWS(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)
#endif

#define TILE_DECLARE(i) VEC lo##i = 0.0f, hi##i = 0.0f;
#define TILE_LOAD(i) lo##i = VLOAD(tile + (i)*NR), hi##i = VLOAD(tile + (i)*NR + VW);
#define TILE_STORE(i)             \
    VSTORE(lo##i, tile + (i)*NR); \
    VSTORE(hi##i, tile + (i)*NR + VW);
/* One step of k: `b0`, `b1` are B's vectors, A_OF(i) is row i of A. */
#define TILE_STEP(i)                     \
    {                                    \
        const VEC each = (VEC)(A_OF(i)); \
        lo##i = each * b0 + lo##i;       \
        hi##i = each * b1 + hi##i;       \
    }

/* The same of B's first vector alone, where no more of its columns are wanted. */
#define TILE_HALF_STEP(i) lo##i = (VEC)(A_OF(i)) * b0 + lo##i;

/* --- what becomes of a finished row ---------------------------------------------------------- */

enum { F32 = 1, F16 = 2, BF16 = 3 }; /* types, as plugin.h numbers them */
#define UVEC CEK_PASTE(uint, VW)

DEVICE_FN VEC load_vec(cek_u32 type, GLOBAL const char *p, cek_u64 i)
{
    if (type == F16)
        return CEK_PASTE(vload_half, VW)(0, (GLOBAL const half *)p + i);
    if (type == BF16) {
        const UVEC bits = CEK_PASTE(convert_uint, VW)(CEK_PASTE(vload, VW)(0, (GLOBAL const ushort *)p + i));
        return CEK_PASTE(as_float, VW)(bits << 16);
    }
    return VLOAD((cek_in)p + i);
}

DEVICE_FN void store_vec(cek_u32 type, GLOBAL char *p, cek_u64 i, VEC v)
{
    if (type == F16) {
        CEK_PASTE(CEK_PASTE(vstore_half, VW), _rte)(v, 0, (GLOBAL half *)p + i);
    } else if (type == BF16) { /* as store_bf16 */
        const UVEC bits = CEK_PASTE(as_uint, VW)(v), rounded = bits + 0x7fffu + (bits >> 16 & 1u);
        const UVEC kept = select(rounded, bits | 0x400000u, (bits & 0x7fffffffu) > 0x7f800000u);
        CEK_PASTE(vstore, VW)(CEK_PASTE(convert_ushort, VW)(kept >> 16), 0, (GLOBAL ushort *)p + i);
    } else {
        VSTORE(v, (cek_out)p + i);
    }
}

/* Past the caches, which then need not read what is overwritten; STREAMED behind the last one. */
#ifdef POCL_DEVICE_ADDRESS_BITS
#define STREAM(v, p) __builtin_nontemporal_store(v, p)
#define STREAMED() __sync_synchronize()
#else
#define STREAM(v, p) *(p) = (v)
#define STREAMED()
#endif

#if VW == 16
#define HALF 8
#elif VW == 8
#define HALF 4
#else
#define HALF 2
#endif
/* The first half of a vector, and zeros. */
DEVICE_FN VEC load_half_vec(cek_u32 type, GLOBAL const char *p, cek_u64 i)
{
    cek_f32 lane[HALF];
    if (type != F32)
        for (int l = 0; l < HALF; l++)
            lane[l] = load_any(type, p, i + l);
    return (VEC)(type == F32 ? CEK_PASTE(vload, HALF)(0, (cek_in)p + i) : CEK_PASTE(vload, HALF)(0, lane),
                 (CEK_PASTE(float, HALF))0.0f);
}

DEVICE_FN void store_half_vec(cek_u32 type, GLOBAL char *p, cek_u64 i, VEC v)
{
    cek_f32 lane[VW];
    if (type == F32) {
        CEK_PASTE(vstore, HALF)(v.lo, 0, (cek_out)p + i);
        return;
    }
    VSTORE(v, lane);
    for (int l = 0; l < HALF; l++)
        store_any(type, p, i + l, lane[l]);
}

typedef struct epilogue {
    GLOBAL char *c;             /* the result, and what lies as it does: */
    GLOBAL const char *act_ref; /* NULL: none */
    cek_in bias;                /* NULL: none */
    cek_u32 type, activation, act_grad, accumulate, bias_rows, stream;
} epilogue;

DEVICE_FN VEC relu_vec(VEC v)
{
    return select(select(v, (VEC)0.0f, v <= (VEC)0.0f), v, v > (VEC)0.0f);
}

/* VW results of row `row` from column `column` on, neighbours in memory, or the first half of them. */
DEVICE_FN void finish_part(const epilogue *e, cek_u64 place, cek_u64 row, cek_u64 column, VEC v, const int half_vec)
{
#define LOAD_PART(type, p, i) (half_vec ? load_half_vec(type, p, i) : load_vec(type, p, i))
    if (e->bias)
        v += e->bias_rows ? (VEC)(e->bias[row]) : LOAD_PART(F32, (GLOBAL const char *)e->bias, column);
    if (e->activation == 1)
        v = relu_vec(v);
    if (e->act_grad == 1)
        v = select(v, (VEC)0.0f, LOAD_PART(e->type, e->act_ref, place) <= (VEC)0.0f);
    if (e->activation > 1 || e->act_grad > 1) {
        cek_f32 lane[VW];
        VSTORE(v, lane);
        for (int l = 0; l < (half_vec ? HALF : VW); l++) {
            lane[l] = e->activation > 1 ? activate(e->activation, lane[l]) : lane[l];
            lane[l] = e->act_grad > 1 ? activate_grad(e->act_grad, lane[l], load_any(e->type, e->act_ref, place + l))
                                      : lane[l];
        }
        v = CEK_PASTE(vload, VW)(0, lane);
    }
    if (e->accumulate)
        v += LOAD_PART(e->type, e->c, place);
    if (half_vec) {
        store_half_vec(e->type, e->c, place, v);
        return;
    }
    GLOBAL VEC *to = (GLOBAL VEC *)(e->c + place * sizeof(cek_f32));
    if (e->stream && !((ulong)to & (sizeof(VEC) - 1)))
        STREAM(v, to);
    else
        store_vec(e->type, e->c, place, v);
#undef LOAD_PART
}

DEVICE_FN void finish_vec(const epilogue *e, cek_u64 place, cek_u64 row, cek_u64 column, VEC v)
{
    finish_part(e, place, row, column, v, 0);
}

DEVICE_FN void finish_one(const epilogue *e, cek_u64 place, cek_u64 row, cek_u64 column, cek_f32 v)
{
    if (e->bias)
        v += e->bias[e->bias_rows ? row : column];
    v = activate(e->activation, v);
    if (e->act_grad)
        v = activate_grad(e->act_grad, v, load_any(e->type, e->act_ref, place));
    store_any(e->type, e->c, place, e->accumulate ? load_any(e->type, e->c, place) + v : v);
}

/* A row of a tile: row `row` of C, which begins at `place`; columns `column` to `end`, `c_column` elements apart. The
 * first `back` of the tile's columns lie before these. */
DEVICE_FN void finish_row(const epilogue *e, cek_u64 place, cek_u64 c_column, cek_u64 row, cek_u64 column, cek_u64 back,
                          cek_u64 end, VEC lo, VEC hi)
{
    cek_u64 j = column;
    cek_f32 lane[NR];
    if (c_column == 1 && !back && column + VW <= end) {
        finish_vec(e, place + column, row, column, lo);
        j += VW;
        if (column + NR <= end) {
            finish_vec(e, place + column + VW, row, column + VW, hi);
            return;
        }
    } else if (c_column == 1 && !back && column + HALF <= end) {
        finish_part(e, place + column, row, column, lo, 1);
        j += HALF;
    }
    if (j == end)
        return;
    VSTORE(lo, lane);
    VSTORE(hi, lane + VW);
    for (; j < end && j < column + NR; j++)
        finish_one(e, place + j * c_column, row, j, lane[j - column + back]);
}
