/* amx_model.h - AMX's tile instructions in C, as Intel's manual has them, for machines without: what is tested here is
 * everything about a kernel but the instructions themselves.
 *
 * Owns: a thread's tiles and their configuration. What a processor faults at ends the process here too, by a trap:
 * a wrong configuration, tiles whose shapes do not fit, tiles that nobody configured.
 * Must not know: products. */
#ifndef CEK_KERNELS_CPU_AMX_MODEL_H
#define CEK_KERNELS_CPU_AMX_MODEL_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/cpu/amx.h"

typedef struct amx_tile {
    int rows, row_bytes;
    uint8_t row[AMX_ROWS][AMX_ROW_BYTES];
} amx_tile;

static _Thread_local struct {
    bool configured;
    amx_tile tile[AMX_TILES];
} amx_thread;

static inline void amx_must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

/* A configured tile. */
static inline amx_tile *amx_tile_at(int t)
{
    amx_must(amx_thread.configured && t >= 0 && t < AMX_TILES && amx_thread.tile[t].rows > 0);
    return &amx_thread.tile[t];
}

static inline void amx_release(void)
{
    memset(&amx_thread, 0, sizeof amx_thread);
}

static inline void amx_configure(const amx_config *config)
{
    amx_release();
    if (config->palette == 0)
        return;
    amx_must(config->palette == 1 && config->start_row == 0);
    for (int i = 0; i < 14; i++)
        amx_must(config->reserved[i] == 0);
    for (int t = 0; t < 16; t++) {
        const int rows = config->rows[t], row_bytes = config->row_bytes[t];
        amx_must((rows == 0) == (row_bytes == 0) && rows <= AMX_ROWS && row_bytes <= AMX_ROW_BYTES);
        amx_must(t < AMX_TILES || rows == 0);
        if (t < AMX_TILES)
            amx_thread.tile[t] = (amx_tile){ .rows = rows, .row_bytes = row_bytes };
    }
    amx_thread.configured = true;
}

static inline void amx_zero(int t)
{
    amx_tile *to = amx_tile_at(t);
    memset(to->row, 0, sizeof to->row);
}

static inline void amx_load(int t, const void *from, int64_t stride)
{
    amx_tile *to = amx_tile_at(t);
    memset(to->row, 0, sizeof to->row);
    for (int i = 0; i < to->rows; i++)
        memcpy(to->row[i], (const char *)from + i * stride, (size_t)to->row_bytes);
}

static inline void amx_store(int t, void *to, int64_t stride)
{
    const amx_tile *from = amx_tile_at(t);
    for (int i = 0; i < from->rows; i++)
        memcpy((char *)to + i * stride, from->row[i], (size_t)from->row_bytes);
}

/* Denormal numbers are zeros, as operands and as results; their sign stays. */
static inline float amx_flushed(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

/* A tile's bf16. */
typedef struct amx_elements {
    float row[AMX_ROWS][AMX_ROW_BYTES / 2];
} amx_elements;

static inline void amx_widen(const amx_tile *tile, amx_elements *to)
{
    for (int row = 0; row < tile->rows; row++)
        for (int i = 0; i < tile->row_bytes / 2; i++) {
            uint32_t bits = 0;
            float x;
            memcpy((char *)&bits + 2, tile->row[row] + (size_t)i * 2, 2); /* the upper half, in little endian */
            memcpy(&x, &bits, sizeof x);
            to->row[row][i] = amx_flushed(x);
        }
}

/* TDPBF16PS. The earlier and the later halves of the words are summed up apart, each by multiply-adds that round once;
 * then the two are added, and what the tile held. */
static inline void amx_multiply(int sum, int left, int right)
{
    amx_tile *c = amx_tile_at(sum);
    const amx_tile *a = amx_tile_at(left), *b = amx_tile_at(right);
    amx_elements x, y;

    amx_must(sum != left && sum != right && left != right);
    amx_must(a->row_bytes % 4 == 0 && b->row_bytes % 4 == 0 && c->row_bytes % 4 == 0);
    amx_must(c->rows == a->rows && c->row_bytes == b->row_bytes && a->row_bytes == 4 * b->rows);
    amx_widen(a, &x);
    amx_widen(b, &y);
    for (int i = 0; i < c->rows; i++)
        for (int j = 0; j < c->row_bytes / 4; j++) {
            float half[2] = { 0, 0 }, old;
            for (int k = 0; k < b->rows; k++)
                for (int h = 0; h < 2; h++)
                    half[h] = amx_flushed(fmaf(x.row[i][2 * k + h], y.row[k][2 * j + h], half[h]));
            memcpy(&old, c->row[i] + (size_t)j * 4, 4);
            old = amx_flushed(amx_flushed(old) + amx_flushed(half[0] + half[1]));
            memcpy(c->row[i] + (size_t)j * 4, &old, 4);
        }
}

#endif
