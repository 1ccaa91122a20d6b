/* recipe.h - how `train` updates parameters, as options and presets say it: optimizer, schedule, parameter groups.
 *
 * Must not know: devices, output. */
#ifndef CEK_BENCH_RECIPE_H
#define CEK_BENCH_RECIPE_H

#include "bench/bench.h"
#include "cekernels/nn.h"

enum { RECIPE_MILESTONES = 64 };
typedef struct bench_recipe {
    cek_optimizer optimizer;
    cek_schedule schedule;
    int64_t milestones[RECIPE_MILESTONES];
    cek_parameter_group groups[2];
    uint32_t group_count;
} bench_recipe;

/* `samples` are in the training set, `batch` in a step. Says what is wrong: an exit status. */
int recipe_read(const bench_options *o, const cek_preset *preset, int64_t samples, int64_t batch, bench_recipe *out);
/* What it says, in a trainer's options, which point to it. */
void recipe_use(const bench_recipe *recipe, cek_trainer_options *to);

#endif
