/* config.h - which kernels this processor runs, and how large the blocks are.
 *
 * Owns: cpuid, the one table of kernels and block sizes per instruction set.
 * Must not know: what is multiplied; plugin.h. No state: every answer is a pointer into constant
 * tables. */
#ifndef CEK_BACKENDS_CPU_CONFIG_H
#define CEK_BACKENDS_CPU_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/cpu/kernels.h"

/* Of products: how much of them is where while tiles work. */
typedef struct cpu_blocks {
    int64_t mc;      /* rows of A packed at once: a multiple of what tiles take at once */
    int64_t kc;      /* depth of a block: floats, or words */
    int64_t b_bytes; /* of packed B that stay in L2 while rows of A pass by */
} cpu_blocks;

typedef struct cpu_config {
    const char *isa;            /* its name for people: "avx512", "portable" ... */
    const cpu_kernels *kernels; /* compiled for that instruction set, or for one that it is more of */
    const cpu_words *bf16;      /* tiles for products of bf16; NULL: they are such of floats */
    cpu_blocks floats, words;   /* of products by these, by those */
    bool by_columns;            /* tiles have a fast way for an A whose columns lie one after the other ... */
    bool turns;                 /* for which rows are worth being transposed */
    int64_t near_bytes;         /* of a B so near that few panels of A read it where it lies; 0: copies come sooner */
} cpu_config;

/* cek__config_select - the configuration for `isa`, or where `isa` is NULL or "", the fastest one that runs on this
 * processor. NULL where `isa` is not a name of the table, was not compiled in, or does not run on this processor. */
const cpu_config *cek__config_select(const char *isa);

/* cek__config_at - the i-th configuration that runs here, best first; NULL beyond the last, which is "amx-model": the
 * tiles of AMX over a model in C of its instructions, which is chosen only where it is named. */
const cpu_config *cek__config_at(int i);

#endif
