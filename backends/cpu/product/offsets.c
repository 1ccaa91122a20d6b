/* offsets.c - tables of offsets, four at a time; see offsets.h. */
#include "backends/cpu/product/offsets.h"

#include <string.h>

#include "kernels/cpu/kernels.h"

typedef uint32_t four __attribute__((vector_size(16)));

static four four_at(const int32_t *offset)
{
    four x;
    memcpy(&x, offset, sizeof x);
    return x;
}

static uint32_t all_bits(four x)
{
    return x[0] | x[1] | x[2] | x[3];
}

/* 0, step, twice and three times that. */
static four four_steps(uint32_t step)
{
    return (four){ 0, step, 2 * step, 3 * step };
}

void cek__offsets_make(int32_t *offset, int64_t depth, int64_t step)
{
    int64_t k = 0;
    four next = four_steps((uint32_t)step);

    for (; k + 4 <= depth; k += 4, next += 4 * (uint32_t)step)
        memcpy(offset + k, &next, sizeof next);
    for (; k < depth; k++)
        offset[k] = (int32_t)(k * step);
}

bool cek__offsets_count(const int32_t *offset, int64_t depth, int64_t step)
{
    const uint32_t by = (uint32_t)step;
    four breaks = { 0 };
    int64_t k = 1;

    for (; k + 4 <= depth; k += 4)
        breaks |= four_at(offset + k) ^ (four_at(offset + k - 1) + by);
    uint32_t rest = 0;
    for (; k < depth; k++)
        rest |= (uint32_t)offset[k] ^ ((uint32_t)offset[k - 1] + by);
    return (rest | all_bits(breaks)) == 0;
}

bool cek__offsets_count_in_runs(const int32_t *offset, int64_t depth)
{
    const four steps = four_steps(1);
    four breaks = { 0 };

    _Static_assert(CPU_RUN == 4, "a run is a vector");
    for (const int32_t *run = offset; run + CPU_RUN <= offset + depth; run += CPU_RUN)
        breaks |= four_at(run) ^ (steps + (uint32_t)*run);
    return all_bits(breaks) == 0;
}
