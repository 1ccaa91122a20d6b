/* recipe.c - see recipe.h. */
#include "bench/recipe.h"
#include "bench/suggest.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- optimizer ---- */

/* The preset's where nothing else was asked for. */
static void optimizer_choose(const bench_options *o, const cek_preset *preset, cek_optimizer *optimizer)
{
    *optimizer = (cek_optimizer){ .size = sizeof *optimizer };
    if (o->optimizer)
        optimizer->algorithm = !strcmp(o->optimizer, "sgd")       ? CEK_OPTIMIZER_SGD
                               : !strcmp(o->optimizer, "rmsprop") ? CEK_OPTIMIZER_RMSPROP
                               : !strcmp(o->optimizer, "adagrad") ? CEK_OPTIMIZER_ADAGRAD
                               : !strcmp(o->optimizer, "lamb")    ? CEK_OPTIMIZER_LAMB
                                                                  : CEK_OPTIMIZER_ADAM;
    else if (preset->optimizer)
        *optimizer = *preset->optimizer;
    if (o->optimizer && !strcmp(o->optimizer, "adamw"))
        optimizer->flags = CEK_OPTIMIZER_DECOUPLED;
    if (o->lr >= 0)
        optimizer->lr = o->lr;
    if (o->momentum >= 0)
        optimizer->momentum = o->momentum;
    if (o->weight_decay >= 0)
        optimizer->weight_decay = o->weight_decay;
}

/* ---- schedule ---- */

static const struct {
    const char *name;
    uint32_t kind;
    int64_t period; /* where none is given; 0: the whole training, -1: it is not for the schedule to have one */
} schedules[] = {
    { "step", CEK_SCHEDULE_STEP, -1 },       { "multistep", CEK_SCHEDULE_MULTI_STEP, -1 },
    { "cosine", CEK_SCHEDULE_COSINE, 0 },    { "onecycle", CEK_SCHEDULE_ONE_CYCLE, 0 },
    { "plateau", CEK_SCHEDULE_PLATEAU, 10 },
};
enum { SCHEDULES = sizeof schedules / sizeof *schedules };

static int wrong(const bench_options *o)
{
    const char *names[SCHEDULES + 1] = { NULL };
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(o->schedule, ":"), o->schedule);
    for (int i = 0; i < SCHEDULES; i++)
        names[i] = schedules[i].name;
    const suggestion near = suggest("", name, names);
    return complain(EXIT_USAGE,
                    "--schedule=%s: there are step:N, multistep:N,N,..., cosine[:N], onecycle[:N] and plateau[:N], "
                    "with ,gX (factor) and ,mX (least rate) behind%s",
                    o->schedule, near.text);
}

/* A whole number in `count`, or one behind g or m in `factor` and `least`; false: none of these. */
static bool word_read(const char *text, size_t length, int64_t *count, double *factor, double *least)
{
    char word[32], *end, letter = text[0];
    double value;
    if (length == 0 || length >= sizeof word)
        return false;
    memcpy(word, text, length);
    word[length] = 0;
    errno = 0;
    if (letter != 'g' && letter != 'm') {
        *count = strtoll(word, &end, 10);
        return errno == 0 && *end == 0 && *count > 0 && word[0] != '+';
    }
    value = strtod(word + 1, &end);
    *(letter == 'g' ? factor : least) = value;
    return end > word + 1 && *end == 0 && value > 0 && isfinite(value);
}

/* The numbers behind the name; how many are counts, -1: something is wrong. */
static int words_read(const char *rest, bench_recipe *r)
{
    int counts = 0;
    while (*rest) {
        size_t length = strcspn(rest, ",");
        int64_t count = 0;
        if (!word_read(rest, length, &count, &r->schedule.gamma, &r->schedule.floor) || counts == RECIPE_MILESTONES)
            return -1;
        if (count)
            r->milestones[counts++] = count;
        rest += length + (rest[length] == ',');
    }
    return counts;
}

/* Steps of the whole training, or epochs. */
static int64_t whole(const bench_options *o, int64_t samples, int64_t batch, bool in_steps)
{
    int64_t epochs = o->epochs ? o->epochs : 1;
    if (!in_steps)
        return epochs;
    return o->steps ? o->steps : epochs * ((samples + batch - 1) / batch);
}

static int schedule_choose(const bench_options *o, int64_t samples, int64_t batch, bench_recipe *r)
{
    cek_schedule *s = &r->schedule;
    *s = (cek_schedule){ .size = sizeof *s, .warmup = o->warmup > 0 ? o->warmup : 0 };
    if (!o->schedule)
        return EXIT_OK;
    size_t length = strcspn(o->schedule, ":"), i = 0;
    while (i < SCHEDULES && (strlen(schedules[i].name) != length || memcmp(schedules[i].name, o->schedule, length)))
        i++;
    int counts = i == SCHEDULES ? -1 : words_read(o->schedule + length + (o->schedule[length] == ':'), r);
    if (counts < 0)
        return wrong(o);
    s->kind = schedules[i].kind;
    bool many = s->kind == CEK_SCHEDULE_MULTI_STEP, cycle = s->kind == CEK_SCHEDULE_ONE_CYCLE;
    if ((counts > 1 && !many) || (counts == 0 && schedules[i].period < 0) || (cycle && (s->gamma > 0 || s->floor > 0)))
        return wrong(o);
    int64_t number = counts ? r->milestones[0] : schedules[i].period;
    if (!number)
        number = whole(o, samples, batch, o->steps || cycle);
    else if (cycle && !o->steps)
        number *= (samples + batch - 1) / batch;
    if (s->kind != CEK_SCHEDULE_PLATEAU && !cycle && !o->steps)
        s->flags = CEK_SCHEDULE_BY_EPOCH;
    if (many)
        s->milestones = r->milestones, s->milestone_count = (uint32_t)counts;
    else if (s->kind == CEK_SCHEDULE_PLATEAU)
        s->patience = number;
    else
        s->period = number;
    return EXIT_OK;
}

static void groups_choose(const bench_options *o, bench_recipe *r)
{
    const cek_parameter_group group = { .size = sizeof group };
    if (o->freeze) {
        r->groups[r->group_count] = group;
        r->groups[r->group_count].names = o->freeze;
        r->groups[r->group_count++].flags = CEK_GROUP_FROZEN;
    }
    if (o->no_decay) {
        r->groups[r->group_count] = group;
        r->groups[r->group_count].names = o->no_decay;
        r->groups[r->group_count++].flags = CEK_GROUP_WEIGHT_DECAY;
    }
}

int recipe_read(const bench_options *o, const cek_preset *preset, int64_t samples, int64_t batch, bench_recipe *out)
{
    *out = (bench_recipe){ .optimizer = { .size = sizeof out->optimizer } };
    optimizer_choose(o, preset, &out->optimizer);
    groups_choose(o, out);
    return schedule_choose(o, samples, batch, out);
}

void recipe_use(const bench_recipe *recipe, cek_trainer_options *to)
{
    to->optimizer = &recipe->optimizer;
    to->schedule = &recipe->schedule;
    to->groups = recipe->group_count ? recipe->groups : NULL;
    to->group_count = recipe->group_count;
}
