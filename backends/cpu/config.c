/* config.c - the table of kernels and block sizes, and the question which of its rows this
 * processor runs.
 *
 * Owns: every block size of the CPU backend, with its reason.
 * Must not know: what is multiplied. */
#include "backends/cpu/config.h"

#include "backends/cpu/amx.h"

#include <stddef.h>
#include <string.h>

extern const cpu_kernels cek__kernels__portable;
#ifdef CEK_HAVE_NEON
extern const cpu_kernels cek__kernels__neon;
#endif
#ifdef CEK_HAVE_AVX2
extern const cpu_kernels cek__kernels__avx2;
#endif
#ifdef CEK_HAVE_AVX512
extern const cpu_kernels cek__kernels__avx512;
#endif
#ifdef CEK_HAVE_AVX512BF16
extern const cpu_words cek__bf16_words__avx512bf16;
#endif
#ifdef CEK_HAVE_AMX
extern const cpu_words cek__bf16_words__amx;
#endif
extern const cpu_words cek__bf16_words__amx_model;

static int runs_anywhere(void)
{
    return 1;
}
static int pays_never(void)
{
    return 0;
}
#ifdef CEK_HAVE_AVX2
static int runs_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}
#endif
#ifdef CEK_HAVE_AVX512
static int runs_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif
#ifdef CEK_HAVE_AVX512BF16
static int runs_avx512bf16(void)
{
    return runs_avx512() && __builtin_cpu_supports("avx512bf16");
}

/* AMD's processors (Zen 4, Zen 5) begin as many dot products of bf16 in a cycle as multiply-adds of floats, each of
 * twice the work. Intel's (Cooper Lake, Sapphire Rapids and later) take several times as long for one as for a
 * multiply-add: nothing is gained, and denormal numbers are lost. By vendor, not by timing: the bits of a result may
 * not depend on what a clock said. */
static int pays_avx512bf16(void)
{
    return __builtin_cpu_is("amd");
}
#endif

#ifdef CEK_HAVE_AMX
static int runs_amx(void)
{
    const char *reason;

    return runs_avx512() && cek__amx(&reason) == AMX_READY;
}
#endif

typedef struct row {
    int (*runs)(void);
    int (*pays)(void); /* whether it is chosen where nobody names one */
    cpu_config config;
} row;

/* 8 panels of 14 rows: with kc, 172 KiB of L2. A panel of A is 14 x 384 words = 21 KiB, two thirds of a 32 KiB L1. B
 * with A's block and the sums of C: two thirds of a 1 MiB L2. */
#define AVX512_BLOCKS                              \
    {                                              \
        .mc = 112, .kc = 384, .b_bytes = 480 << 10 \
    }

/* 4 panels of 32 rows: with kc, 512 KiB of an L2 of 2 MiB, from where tiles take no longer than from L1. So deep, since
 * sums that meet what C holds take an eighth as long as 256 words of k, and C is far. */
#define AMX_BLOCKS                                  \
    {                                               \
        .mc = 128, .kc = 1024, .b_bytes = 512 << 10 \
    }

/* 16 panels of 6 rows: with kc, 144 KiB. A panel of A (9 KiB) and one of B (24 KiB) about fill a 32 KiB L1. B with
 * A's block fits an L2 of 512 KiB (AMD's before Zen 4; Intel's have more since Alder Lake): slabs of images need as
 * much. */
#define AVX2_BLOCKS                               \
    {                                             \
        .mc = 96, .kc = 384, .b_bytes = 256 << 10 \
    }

/* 8 panels of 12 rows: with kc, 144 KiB. A panel of A (18 KiB) and one of B (12 KiB) fill half of a 64 KiB L1; L2 has
 * 512 KiB or more (Neoverse, Cortex-A7x). */
#define NEON_BLOCKS                               \
    {                                             \
        .mc = 96, .kc = 384, .b_bytes = 256 << 10 \
    }

/* 16 panels of 6 rows: with kc, 96 KiB. A panel of A is 6 KiB, one of B 8 KiB: fits L1 caches of 16 KiB. Processors
 * without AVX-512 may have an L2 of 256 KiB. */
#define PORTABLE_BLOCKS                           \
    {                                             \
        .mc = 96, .kc = 256, .b_bytes = 128 << 10 \
    }

/* What the L3 of a Zen 5 holds, as like as not. On Emerald Rapids, whose L3 is farther away, copies take down to half
 * the time of rows that are read where they lie. */
enum { AMD_NEAR = 16 << 20 };

static const row rows[] = {
#ifdef CEK_HAVE_AMX
    { runs_amx, /* floats as below, to the bit */
      runs_anywhere,
      { "amx", &cek__kernels__avx512, &cek__bf16_words__amx, .floats = AVX512_BLOCKS, .words = AMX_BLOCKS,
        .by_columns = true, .turns = true } },
#endif
#ifdef CEK_HAVE_AVX512BF16
    { runs_avx512bf16,
      pays_avx512bf16,
      { "avx512bf16", &cek__kernels__avx512, &cek__bf16_words__avx512bf16, .floats = AVX512_BLOCKS,
        .words = AVX512_BLOCKS, .near_bytes = AMD_NEAR } },
#endif
#ifdef CEK_HAVE_AVX512
    { runs_avx512,
      runs_anywhere,
      { "avx512", &cek__kernels__avx512, .floats = AVX512_BLOCKS, .by_columns = true, .turns = true } },
#endif
#ifdef CEK_HAVE_AVX2
    { runs_avx2, runs_anywhere, { "avx2", &cek__kernels__avx2, .floats = AVX2_BLOCKS, .by_columns = true } },
#endif
#ifdef CEK_HAVE_NEON
    /* where it is built: 64-bit ARM has no processor without it */
    { runs_anywhere, runs_anywhere, { "neon", &cek__kernels__neon, .floats = NEON_BLOCKS } },
#endif
    { runs_anywhere, runs_anywhere, { "portable", &cek__kernels__portable, .floats = PORTABLE_BLOCKS } },
    /* for tests: the tiles of AMX over a model of its instructions */
    { runs_anywhere,
      pays_never,
      { "amx-model", &cek__kernels__portable, &cek__bf16_words__amx_model, .floats = PORTABLE_BLOCKS,
        .words = PORTABLE_BLOCKS } },
};

enum { ROWS = sizeof rows / sizeof rows[0] };

const cpu_config *cek__config_at(int i)
{
    for (int r = 0; r < ROWS; r++)
        if (rows[r].runs() && i-- == 0)
            return &rows[r].config;
    return NULL;
}

const cpu_config *cek__config_select(const char *isa)
{
    const int any = isa == NULL || isa[0] == '\0';

    for (int r = 0; r < ROWS; r++)
        if ((any ? rows[r].pays() : strcmp(rows[r].config.isa, isa) == 0) && rows[r].runs())
            return &rows[r].config;
    return NULL;
}
