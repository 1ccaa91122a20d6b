/* amx.h - the instructions on tile registers that gemm_amx.c is written with (AMX-TILE, AMX-BF16).
 *
 * Owns: six operations on eight tiles, numbered by constants; what a configuration is. Without CEK_ISA_AMX it is the
 * latter alone, and amx_model.h has the operations in C. Must not know: products.
 *
 * A thread configures its tiles, uses them, and releases them, so that its state is small again when threads change.
 * Rows in memory are `stride` bytes apart.
 *
 *     amx_configure(&config)      before anything else on a thread; tiles are zero then
 *     amx_release()               tiles are nobody's
 *     amx_zero(t)
 *     amx_load(t, from, stride)   as many rows, of as many bytes, as the configuration says
 *     amx_store(t, to, stride)
 *     amx_multiply(c, a, b)       c += a x b: a's rows are pairs of bf16 along k, b's row k the pairs of all columns */
#ifndef CEK_KERNELS_CPU_AMX_H
#define CEK_KERNELS_CPU_AMX_H

#include <stdint.h>

enum { AMX_TILES = 8, AMX_ROWS = 16, AMX_ROW_BYTES = 64 };

/* As LDTILECFG reads it. */
typedef struct amx_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} amx_config;

#if defined CEK_ISA_AMX
#include <immintrin.h>

/* gcc 12 does not tell the compiler what of memory these instructions read: stores before one stay before it. */
#define AMX_AFTER_STORES __asm__ volatile("" : : : "memory")

static inline void amx_configure(const amx_config *config)
{
    AMX_AFTER_STORES;
    _tile_loadconfig(config);
}

static inline void amx_release(void)
{
    _tile_release();
}

#define amx_zero(t) _tile_zero(t)
#define amx_load(t, from, stride)     \
    do {                              \
        AMX_AFTER_STORES;             \
        _tile_loadd(t, from, stride); \
    } while (0)
#define amx_store(t, to, stride) _tile_stored(t, to, stride)
#define amx_multiply(c, a, b) _tile_dpbf16ps(c, a, b)
#endif

#endif
