/* recipe.c - see recipe.h. */
#include "bench/recipe.h"
#include "bench/suggest.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- optimizer ---- */

/* That of a name, with nothing said of its numbers. */
static cek_optimizer optimizer_named(const char *name)
{
    cek_optimizer named = { .size = sizeof named };
    named.algorithm = !strcmp(name, "sgd")       ? CEK_OPTIMIZER_SGD
                      : !strcmp(name, "rmsprop") ? CEK_OPTIMIZER_RMSPROP
                      : !strcmp(name, "adagrad") ? CEK_OPTIMIZER_ADAGRAD
                      : !strcmp(name, "lamb")    ? CEK_OPTIMIZER_LAMB
                                                 : CEK_OPTIMIZER_ADAM;
    if (!strcmp(name, "adamw"))
        named.flags = CEK_OPTIMIZER_DECOUPLED;
    return named;
}

static bool same_optimizer(const cek_optimizer *a, const cek_optimizer *b)
{
    const uint32_t one = a->algorithm ? a->algorithm : CEK_OPTIMIZER_ADAM;
    const uint32_t other = b->algorithm ? b->algorithm : CEK_OPTIMIZER_ADAM;
    return one == other && !((a->flags ^ b->flags) & CEK_OPTIMIZER_DECOUPLED);
}

/* The preset's, with its numbers, where no other one was asked for. */
static void optimizer_choose(const bench_options *o, const cek_preset *preset, cek_optimizer *optimizer)
{
    *optimizer = (cek_optimizer){ .size = sizeof *optimizer };
    if (o->optimizer)
        *optimizer = optimizer_named(o->optimizer);
    if (preset->optimizer && (!o->optimizer || same_optimizer(optimizer, preset->optimizer)))
        *optimizer = *preset->optimizer;
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
    bool factor, least;
} schedules[] = {
    { "step", CEK_SCHEDULE_STEP, -1, true, false },      { "multistep", CEK_SCHEDULE_MULTI_STEP, -1, true, false },
    { "cosine", CEK_SCHEDULE_COSINE, 0, false, true },   { "onecycle", CEK_SCHEDULE_ONE_CYCLE, 0, false, false },
    { "plateau", CEK_SCHEDULE_PLATEAU, 10, true, true },
};
enum { SCHEDULES = sizeof schedules / sizeof *schedules };

/* Where the name ends. */
static size_t name_length(const bench_options *o)
{
    return strcspn(o->schedule, ":,");
}

/* Its number; SCHEDULES: there is no such. */
static int schedule_named(const bench_options *o)
{
    const size_t length = name_length(o);
    int i = 0;
    while (i < SCHEDULES && (strlen(schedules[i].name) != length || memcmp(schedules[i].name, o->schedule, length)))
        i++;
    return i;
}

static int wrong(const bench_options *o)
{
    const char *names[SCHEDULES + 1] = { NULL };
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)name_length(o), o->schedule);
    for (int i = 0; i < SCHEDULES; i++)
        names[i] = schedules[i].name;
    const suggestion near = schedule_named(o) == SCHEDULES ? suggest("", name, names) : (suggestion){ "" };
    return complain(EXIT_USAGE,
                    "--schedule=%s: there are step:N, multistep:N,N,..., cosine[:N], onecycle[:N] and plateau[:N]; "
                    "behind them ,gX (factor of step, multistep, plateau) and ,mX (least rate of cosine, plateau)%s",
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
        rest += length;
        if (*rest == ',' && *++rest == 0)
            return -1;
    }
    return counts;
}

/* Steps of the whole training, or epochs. */
static int64_t whole(const bench_options *o, int64_t samples, int64_t batch, bool in_steps)
{
    const int64_t epochs = o->epochs ? o->epochs : 1, steps = epochs * ((samples + batch - 1) / batch);
    if (!in_steps)
        return epochs;
    return o->steps && (!o->epochs || o->steps < steps) ? o->steps : steps;
}

static int schedule_choose(const bench_options *o, int64_t samples, int64_t batch, bench_recipe *r)
{
    cek_schedule *s = &r->schedule;
    *s = (cek_schedule){ .size = sizeof *s, .warmup = o->warmup > 0 ? o->warmup : 0 };
    if (!o->schedule)
        return EXIT_OK;
    const int i = schedule_named(o);
    const char *rest = o->schedule + name_length(o);
    const int counts = i == SCHEDULES || (*rest && !rest[1]) ? -1 : words_read(rest + (*rest != 0), r);
    if (counts < 0)
        return wrong(o);
    s->kind = schedules[i].kind;
    bool many = s->kind == CEK_SCHEDULE_MULTI_STEP, cycle = s->kind == CEK_SCHEDULE_ONE_CYCLE;
    if ((counts > 0 && *rest == ',') || (counts > 1 && !many) || (counts == 0 && schedules[i].period < 0) ||
        (s->gamma > 0 && !schedules[i].factor) || (s->floor > 0 && !schedules[i].least))
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
