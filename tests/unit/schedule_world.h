/* schedule_world.h - a world of devices that take the times that a formula says, for tests of the schedule.
 *
 * Owns: what a step takes, what is submitted ahead of it, what is measured of it. */
#ifndef CEK_TESTS_UNIT_SCHEDULE_WORLD_H
#define CEK_TESTS_UNIT_SCHEDULE_WORLD_H

#include <math.h>

#include "core/base/random.h"
#include "nn/train/schedule.h"
#include "scratch.h"

enum { MOST = 64, AHEAD = 2, WARM = 40 };

/* A device as it is, which the schedule does not see. */
typedef struct machine {
    double speed;  /* samples a second */
    double fixed;  /* seconds of each step */
    double asking; /* a question takes so many times longer than what it tells; 0: once */
    cek__costs_device facts;
} machine;

typedef struct world {
    machine machines[MOST];
    size_t count;
    cek__costs_options options;
    double crowding; /* devices of one processor take so many times longer side by side */
    double noise;    /* each measurement is off by up to this part */
    double tail;     /* seconds that a step of several members takes besides */
    double settling; /* seconds that a step takes longer before which all that was under way had to end */
    int questions[MOST];
    cek__schedule *schedule;
    cek__costs_device facts[MOST];
    uint64_t drawn;
    int64_t changes, steps, samples;
    double seconds;
    /* steps that are submitted and not collected */
    int64_t queued[AHEAD][MOST];
    bool lineups[AHEAD][MOST];
    double late[AHEAD];  /* seconds that it begins later than it could, for a question */
    size_t asked[AHEAD]; /* to this device */
    size_t queue, asks;
    double question; /* the same of the next to be submitted */
} world;

static inline machine fast(double speed)
{
    return (machine){ .speed = speed,
                      .facts = { .link_bytes = 12e9, .latency = 1e-6, .own_bytes = 200e9, .in_turn = false } };
}

/* 26 M parameters, Adam: mnist-cnn. */
static inline world mnist_cnn(int64_t batch)
{
    return (world){
        .options = { .batch = batch, .parameter_bytes = 104000000, .update_bytes = 7 * 104000000ull, .transfers = 30 },
        .tail = 1e-4
    };
}

static inline world lenet5(int64_t batch)
{
    return (
        world){ .options = { .batch = batch, .parameter_bytes = 250000, .update_bytes = 7 * 250000, .transfers = 3 },
                .tail = 2e-5 };
}

static inline void add(world *w, machine m)
{
    w->machines[w->count++] = m;
}

static inline void start(world *w)
{
    for (size_t i = 0; i < w->count; i++)
        w->facts[i] = w->machines[i].facts;
    w->options.count = w->count;
    w->options.devices = w->facts;
    assert_ok(cek__schedule_create(&w->options, &w->schedule));
}

static inline void stop(world *w)
{
    cek__schedule_free(w->schedule);
}

static inline double compute(const world *w, const int64_t *rows, size_t i)
{
    const machine *m = &w->machines[i];
    double seconds = rows[i] > 0 ? m->fixed + (double)rows[i] / m->speed : 0;

    for (size_t k = 0; m->facts.processor != 0 && k < w->count; k++)
        if (k != i && rows[k] > 0 && rows[i] > 0 && w->machines[k].facts.processor == m->facts.processor)
            return seconds * w->crowding;
    return seconds;
}

/* Gathering and spreading fill the links after the forward pass; sums run on the device's own engine. */
static inline double step_seconds(const world *w, const bool *members, const int64_t *rows)
{
    double longest = 0, n = 0, bytes = (double)w->options.parameter_bytes;

    for (size_t i = 0; i < w->count; i++)
        n += members[i];
    for (size_t i = 0; i < w->count; i++) {
        const machine *m = &w->machines[i];
        double c = compute(w, rows, i), sums, link;
        if (!members[i])
            continue;
        sums = (3 * (n - 1) / n * bytes + (double)w->options.update_bytes / n) / m->facts.own_bytes;
        link = 2 * (n - 1) / n * (bytes / m->facts.link_bytes + (double)w->options.transfers * m->facts.latency);
        longest = fmax(longest, m->facts.in_turn ? c + sums + link : fmax(c + sums, 0.35 * c + link));
    }
    return longest + (n > 1 ? w->tail : 0);
}

static inline bool are_two_views(const world *w, size_t a, size_t b)
{
    const cek__costs_device *x = &w->facts[a], *y = &w->facts[b];

    return x->processor != 0 && x->processor == y->processor && x->view != y->view;
}

static inline double noisy(world *w, double value)
{
    float u = cek__random_uniform(11, cek__stream(CEK__STREAM_USER, 1), w->drawn++);

    return value * (1 + w->noise * (2 * (double)u - 1));
}

static inline void submit(world *w)
{
    memcpy(w->queued[w->queue], cek__schedule_rows(w->schedule), w->count * sizeof **w->queued);
    memcpy(w->lineups[w->queue], cek__schedule_members(w->schedule), w->count * sizeof **w->lineups);
    w->late[w->queue] = w->question;
    w->asked[w->queue] = w->asks;
    w->question = 0;
    w->queue++;
}

static inline void one_step(world *w)
{
    double seconds[MOST], period, late, took;
    int64_t rows[MOST], all = 0, probe;
    size_t index, to;

    while (w->queue < AHEAD)
        submit(w);
    memcpy(rows, w->queued[0], sizeof rows);
    period = step_seconds(w, w->lineups[0], rows);
    for (size_t i = 0; i < w->count; i++) {
        ck_assert_int_ge(rows[i], 0);
        all += rows[i];
        seconds[i] = rows[i] > 0 ? noisy(w, compute(w, rows, i)) : 0;
    }
    ck_assert_int_eq(all, w->options.batch);
    for (size_t i = 0; i < w->count * w->count; i++)
        ck_assert(!w->lineups[0][i / w->count] || !w->lineups[0][i % w->count] ||
                  !are_two_views(w, i / w->count, i % w->count));
    memmove(w->queued, w->queued + 1, sizeof w->queued - sizeof *w->queued);
    memmove(w->lineups, w->lineups + 1, sizeof w->lineups - sizeof *w->lineups);
    late = w->late[0];
    to = w->asked[0];
    memmove(w->late, w->late + 1, sizeof w->late - sizeof *w->late);
    memmove(w->asked, w->asked + 1, sizeof w->asked - sizeof *w->asked);
    w->queue--;
    w->steps++;
    w->samples += all;
    w->seconds += period + late;
    if (late > 0)
        cek__schedule_resumed(w->schedule, to, noisy(w, period + late));
    w->changes += cek__schedule_note(w->schedule, rows, seconds, late > 0 ? 0 : noisy(w, period));
    if (cek__schedule_probe(w->schedule, &index, &probe)) {
        int64_t asked[MOST] = { 0 };
        ck_assert(!cek__schedule_members(w->schedule)[index]);
        asked[index] = probe;
        took = compute(w, asked, index) * fmax(1, w->machines[index].asking);
        w->question = took + w->settling; /* nobody does anything else meanwhile */
        w->asks = index;
        w->questions[index]++;
        cek__schedule_probed(w->schedule, index, probe, noisy(w, compute(w, asked, index)), took);
    }
}

/* Samples a second over so many steps. */
static inline double run(world *w, int steps)
{
    w->samples = 0;
    w->seconds = 0;
    w->changes = 0;
    for (int i = 0; i < steps; i++)
        one_step(w);
    return (double)w->samples / w->seconds;
}

/* Of the device alone, all its work counted. */
static inline double alone(const world *w, size_t i)
{
    bool members[MOST] = { false };
    int64_t rows[MOST] = { 0 };

    members[i] = true;
    rows[i] = w->options.batch;
    return (double)w->options.batch / step_seconds(w, members, rows);
}

static inline void is_settled(const world *w)
{
    ck_assert(cek__schedule_settled(w->schedule));
}

#define at_least(got, want)                                                              \
    do {                                                                                 \
        double is = (got), must = (want);                                                \
        ck_assert_msg(is >= must, "%s: %g, not %g (line %d)", #got, is, must, __LINE__); \
    } while (0)

#endif
