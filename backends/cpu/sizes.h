/* sizes.h - arithmetic of sizes, which every plan is made of.
 *
 * Must not know: what is counted. None of it looks for overflow: sizes are those of operands that exist. */
#ifndef CEK_BACKENDS_CPU_SIZES_H
#define CEK_BACKENDS_CPU_SIZES_H

#include <stdint.h>

/* clang-format off */
static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t ceil_div(int64_t n, int64_t by) { return (n + by - 1) / by; }
static inline int64_t round_up(int64_t n, int64_t to) { return ceil_div(n, to) * to; }
/* clang-format on */

#endif
