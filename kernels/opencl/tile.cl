/* SPDX-License-Identifier: MIT
 *
 * tile.cl - products and convolutions on OpenCL devices that are CPUs: a work-item is a thread, a tile of C its vector
 * registers.
 *
 * A tile has MR rows (one broadcast operand each) and NR = 2 VW columns (two vectors). VW and MR come from the
 * host: 16 and 14 fill the 32 registers of AVX-512, 8 and 6 the 16 of AVX2. Rows and columns are named, not
 * indexed, so that no compiler has to be trusted to keep an array in registers.
 *
 * Kernels that differ in one choice are one function with that choice as a constant. All are one program: drivers
 * take as long to set up the compiler as to read the source.
 */
#include "tile.h"

/* What the hardware does not foresee: rows of B that lie pages apart. */
#ifdef POCL_DEVICE_ADDRESS_BITS
#define AHEAD 16
#define PREFETCH(p) __builtin_prefetch((const void *)(ulong)(p));
#else
#define AHEAD 0
#define PREFETCH(p)
#endif

#include "tile_product.h"
#include "tile_window.h"
#include "tile_conv.h"
#include "tile_weights.h"
