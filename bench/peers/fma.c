/* fma.c - the limit of the machine as a contender: how many multiply-adds its cores do from registers alone.
 *
 *     fma THREADS
 *
 * Problem: `peak f32 FLOP`, so many floating-point operations, dealt out to the threads. No memory is touched, and a
 * core has as many independent sums as its units have results under way. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/peers/runner.h"

enum { THREADS_MOST = 256, SUMS = 12 /* two units, each with up to six results under way */ };

static float (*loop)(uint64_t);
static uint64_t lanes;

/* Multiply-adds of SUMS vectors, so many times. Each sum has a name, since an array would be written to memory. They
 * tend to a limit, and are added up in the end so that they are made. */
#define EACH(DO, x) \
    DO(x, 0) DO(x, 1) DO(x, 2) DO(x, 3) DO(x, 4) DO(x, 5) DO(x, 6) DO(x, 7) DO(x, 8) DO(x, 9) DO(x, 10) DO(x, 11)
#define BEGIN(set, i) s##i = set((float)i),
#define STEP(fma, i) s##i = fma(s##i, factor, term);
#define SUM(add, i) end = add(end, s##i);
#define LOOP(target, name, vector, set, fma, add, first)   \
    target static float name(uint64_t times)               \
    {                                                      \
        const vector factor = set(0.5f), term = set(1.0f); \
        vector EACH(BEGIN, set) end = set(0.0f);           \
        for (uint64_t t = 0; t < times; t++) {             \
            EACH(STEP, fma)                                \
        }                                                  \
        EACH(SUM, add)                                     \
        return first(end);                                 \
    }

#if defined __x86_64__
#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f")))
LOOP(AVX512, loop_avx512, __m512, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_add_ps, _mm512_cvtss_f32)
#define AVX2 __attribute__((target("avx2,fma")))
LOOP(AVX2, loop_avx2, __m256, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_add_ps, _mm256_cvtss_f32)

static const char *loop_choose(void)
{
    if (__builtin_cpu_supports("avx512f"))
        return loop = loop_avx512, lanes = 16, "AVX-512";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return loop = loop_avx2, lanes = 8, "AVX2";
    return NULL;
}

#elif defined __aarch64__
#include <arm_neon.h>

#define NEON_FMA(a, b, c) vfmaq_f32(c, a, b)
#define NEON_FIRST(a) vgetq_lane_f32(a, 0)
LOOP(, loop_neon, float32x4_t, vdupq_n_f32, NEON_FMA, vaddq_f32, NEON_FIRST)

static const char *loop_choose(void)
{
    return loop = loop_neon, lanes = 4, "NEON";
}

#else

static const char *loop_choose(void)
{
    return NULL;
}

#endif

static uint32_t threads;
static uint64_t rounds; /* of a call, for each thread */
static volatile float seen[THREADS_MOST];

typedef struct part {
    pthread_t thread;
    uint64_t rounds;
    uint32_t index;
} part;

static void *part_run(void *user)
{
    const part *p = user;
    seen[p->index] = loop(p->rounds);
    return NULL;
}

static bool prepare(uint32_t slot, const runner_problem *p, char text[RUNNER_TEXT])
{
    const uint64_t flop = runner_number(p, 2), round = 2 * SUMS * lanes * threads;
    (void)slot;
    if (p->count != 3 || strcmp(p->words[0], "peak") != 0 || strcmp(p->words[1], "f32") != 0 || !flop) {
        snprintf(text, RUNNER_TEXT, "peak f32 FLOP is wanted");
        return false;
    }
    rounds = (flop + round - 1) / round;
    return true;
}

static bool run(uint32_t slot, uint64_t times, char text[RUNNER_TEXT])
{
    part parts[THREADS_MOST];
    uint32_t begun = 1;
    (void)slot;
    for (uint32_t i = 0; i < threads; i++)
        parts[i] = (part){ .rounds = times * rounds, .index = i };
    while (begun < threads && !pthread_create(&parts[begun].thread, NULL, part_run, &parts[begun]))
        begun++;
    if (begun == threads)
        part_run(&parts[0]);
    for (uint32_t i = 1; i < begun; i++)
        pthread_join(parts[i].thread, NULL);
    if (begun < threads)
        snprintf(text, RUNNER_TEXT, "no thread %u of %u", begun + 1, threads);
    return begun == threads;
}

static void drop(uint32_t slot)
{
    (void)slot;
}

int main(int argc, char **argv)
{
    char ready[RUNNER_TEXT];
    const char *name = loop_choose();
    const long wanted = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
    if (wanted < 1 || wanted > THREADS_MOST) {
        fprintf(stderr, "usage: fma THREADS (1 to %d)\n", THREADS_MOST);
        return 2;
    }
    if (!name)
        return runner_absent("no loop of multiply-adds for this processor");
    threads = (uint32_t)wanted;
    snprintf(ready, sizeof ready, "%s, %u threads", name, threads);
    return runner_serve(ready, &(runner){ prepare, run, drop });
}
