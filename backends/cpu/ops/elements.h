/* elements.h - elements of a strided tensor, whatever their type, to consecutive memory and back.
 *
 * Owns: the runs in which they lie. Must not know: what becomes of them. */
#ifndef CEK_BACKENDS_CPU_OPS_ELEMENTS_H
#define CEK_BACKENDS_CPU_OPS_ELEMENTS_H

#include "backends/cpu/ops/strided.h"

/* cek__elements_gather, _scatter - n elements from element number `first` on, of one tensor of a
 * space, to and from consecutive memory of the same type. */
void cek__elements_gather(const cpu_space *space, int tensor, uint32_t bytes, const void *from, int64_t first,
                          int64_t n, void *to);
void cek__elements_scatter(const cpu_space *space, int tensor, uint32_t bytes, const void *from, int64_t first,
                           int64_t n, void *to);

#endif
