/* runner.c - see runner.h. */
#include "bench/peers/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int runner_absent(const char *why)
{
    printf("absent %s\n", why);
    return 0;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The number of words, of which the last one is followed by NULL. */
static int words_split(char *line, const char **words, int most)
{
    char *rest = NULL, *word = strtok_r(line, " \n", &rest);
    int count = 0;
    for (; word && count < most; word = strtok_r(NULL, " \n", &rest))
        words[count++] = word;
    words[count] = NULL;
    return count;
}

static bool slot_read(const char *word, uint32_t *slot)
{
    char *end = NULL;
    const unsigned long value = word ? strtoul(word, &end, 10) : RUNNER_SLOTS;
    *slot = (uint32_t)value;
    return end && !*end && value < RUNNER_SLOTS;
}

static void prepare(const runner *r, const char **words, int count)
{
    char text[RUNNER_TEXT] = "";
    uint32_t slot;
    runner_problem problem = { .variant = words[2], .count = count - 3 };
    if (count < 4 || count - 3 >= RUNNER_WORDS || !slot_read(words[1], &slot)) {
        printf("wrong prepare: a slot, a variant and a problem are wanted\n");
        return;
    }
    memcpy(problem.words, words + 3, sizeof *words * (size_t)(count - 3));
    r->drop(slot);
    const bool good = r->prepare(slot, &problem, text);
    if (!good)
        r->drop(slot);
    printf("%s %s\n", good ? "ok" : "cannot", text);
}

static void run(const runner *r, const char **words, int count)
{
    char text[RUNNER_TEXT] = "";
    uint32_t slot;
    const uint64_t times = count == 3 ? strtoull(words[2], NULL, 10) : 0;
    if (!times || !slot_read(words[1], &slot)) {
        printf("wrong run: a slot and a number of times are wanted\n");
        return;
    }
    const double start = now();
    const bool good = r->run(slot, times, text);
    const double took = now() - start;
    if (good)
        printf("took %.9f\n", took);
    else
        printf("wrong %s\n", text);
}

int runner_serve(const char *ready, const runner *r)
{
    char line[1024];
    const char *words[RUNNER_WORDS + 4] = { NULL };
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("ready %s\n", ready);
    while (fgets(line, sizeof line, stdin)) {
        const int count = words_split(line, words, RUNNER_WORDS + 3);
        if (count && !strcmp(words[0], "prepare")) {
            prepare(r, words, count);
        } else if (count && !strcmp(words[0], "run")) {
            run(r, words, count);
        } else if (count && !strcmp(words[0], "drop")) {
            for (uint32_t i = 0; i < RUNNER_SLOTS; i++)
                r->drop(i);
            printf("ok\n");
        } else {
            printf("wrong %s is no request\n", count ? words[0] : "an empty line");
        }
    }
    for (uint32_t i = 0; i < RUNNER_SLOTS; i++)
        r->drop(i);
    return 0;
}

uint64_t runner_number(const runner_problem *problem, int index)
{
    char *end = NULL;
    if (index >= problem->count)
        return 0;
    const unsigned long long value = strtoull(problem->words[index], &end, 10);
    return *end || value > 1000000000 ? 0 : value;
}

float *runner_floats(uint64_t count, uint64_t seed)
{
    float *values = aligned_alloc(64, (count * sizeof *values + 63) / 64 * 64);
    for (uint64_t i = 0; values && i < count; i++) { /* splitmix64 */
        uint64_t z = (seed << 40) + (i + 1) * 0x9E3779B97F4A7C15u;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        values[i] = (float)((z ^ z >> 31) >> 40) * 0x1p-23f - 1;
    }
    return values;
}
