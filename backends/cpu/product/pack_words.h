/* pack_words.h - operands of plain matrix products, packed as words of elements that are neighbours in k (cpu_words).
 *
 * Owns: the ways from strided memory to panels of words. Must not know: which type it is, but its size; who
 * asks for words. */
#ifndef CEK_BACKENDS_CPU_PRODUCT_PACK_WORDS_H
#define CEK_BACKENDS_CPU_PRODUCT_PACK_WORDS_H

#include "backends/cpu/product/pack.h"

/* As cek__pack_a; PACK_DIRECT: of A alone, whose rows are whole steps of words, and whole tiles. */
int64_t cek__pack_words_a(const cpu_kernels *kernels, const pack_operand *a, int64_t row, int64_t rows, int64_t k,
                          int64_t depth, const walk_scratch *to);
/* Panels of B, one behind the other. */
void cek__pack_words_b(const cpu_kernels *kernels, const pack_operand *b, int64_t k, int64_t depth, int64_t col,
                       int64_t cols, float *to);

#endif
