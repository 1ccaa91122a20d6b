/* offsets.h - tables of offsets along k, as tiles take them (cpu_gemm_tiles).
 *
 * Owns: what is made of them and looked up in them whole, four at a time: of small products a tenth of what does not
 * multiply.
 * Must not know: whose they are. */
#ifndef CEK_BACKENDS_CPU_PRODUCT_OFFSETS_H
#define CEK_BACKENDS_CPU_PRODUCT_OFFSETS_H

#include <stdbool.h>
#include <stdint.h>

/* cek__offsets_make - offset[k] = k * step. */
void cek__offsets_make(int32_t *offset, int64_t depth, int64_t step);

/* cek__offsets_count - whether each is `step` behind the one before. */
bool cek__offsets_count(const int32_t *offset, int64_t depth, int64_t step);

/* cek__offsets_count_in_runs - whether offsets count on by one in every CPU_RUN steps from the first on; of a last run
 * that is not whole it does not matter. */
bool cek__offsets_count_in_runs(const int32_t *offset, int64_t depth);

#endif
