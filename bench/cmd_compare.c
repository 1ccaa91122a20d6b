/* cmd_compare.c - `compare`: two files of results of one command, row by row: how many times as long B takes, and
 * how sure that is.
 *
 * What is compared is the time of the same thing on the device of the same name; where each file has one device, and
 * another one, these two. What lies between runs of the program - another day, another load - is in no interval:
 * that is what the threshold is for. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/output.h"
#include "bench/ratio.h"
#include "bench/results.h"
#include "bench/stats.h"

enum { WHAT = 256, DEVICE = 64 };
static const double CONFIDENCE = 0.95, THRESHOLD = 0.05;

static const output_column columns[] = {
    { "what", "what", -36, 0, 0 },  { "device", "device", -10, 0, 0 }, { "a_ns", "A ms", 9, 1e-6, 4 },
    { "b_ns", "B ms", 9, 1e-6, 4 }, { "runs", "runs", 5, 0, 0 },       { "ratio", "B/A", 6, 1, 3 },
    { "low", "from", 6, 1, 3 },     { "high", "to", 6, 1, 3 },         { "verdict", "verdict", -7, 0, 0 },
};

/* One thing that was timed. */
typedef struct item {
    char what[WHAT], device[DEVICE];
    double *ns;
    size_t count;
    bool taken;
} item;

typedef struct side {
    results r;
    item *items;
    size_t count;
    char device[DEVICE]; /* the only one; "" where there are several */
} side;

/* ---- what a file has ---- */

static void side_close(side *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->items[i].ns);
    free(s->items);
    results_close(&s->r);
    *s = (side){ .count = 0 };
}

/* Times that are none, such as of a file that somebody has edited, are left out. */
static void item_add(item *it, double ns)
{
    if (isfinite(ns) && ns > 0)
        it->ns[it->count++] = ns;
}

/* The runs of a row; of a peak that is a rate, the time of the product that it was seen with. */
static bool row_take(results_kind kind, const json_t *row, item *it)
{
    const json_t *runs = json_object_get(row, "runs_ns"), *run;
    const double sides = row_number(row, "side");
    size_t i;
    row_what(kind, row, it->what, sizeof it->what);
    snprintf(it->device, sizeof it->device, "%s", kind == RESULTS_COPY ? "" : row_text(row, "device"));
    if (!(it->ns = calloc(json_array_size(runs) + 1, sizeof *it->ns)))
        return false;
    json_array_foreach(runs, i, run) item_add(it, json_number_value(run));
    if (!it->count)
        item_add(it, row_number(row, "median_ns"));
    if (!it->count && sides > 0)
        item_add(it, 2e9 * sides * sides * sides / row_number(row, "flops"));
    return true;
}

/* A training is one thing: a sample of the training set, timed by epoch or by step. */
static bool training_take(const results *r, item *it)
{
    const json_t *devices = json_object_get(r->document, "devices"), *row;
    size_t i, used = 0;
    snprintf(it->what, sizeof it->what, "train %s, batch %.0f, a sample", row_text(r->document, "model"),
             row_number(r->document, "batch"));
    json_array_foreach(devices, i, row)
    {
        used += (size_t)snprintf(it->device + used, sizeof it->device - used, "%s%s", i ? "," : "",
                                 row_text(row, "device"));
        used = used < sizeof it->device ? used : sizeof it->device - 1;
    }
    if (!(it->ns = calloc(json_array_size(r->rows) + 1, sizeof *it->ns)))
        return false;
    json_array_foreach(r->rows, i, row)
        item_add(it, r->kind == RESULTS_EPOCHS ? 1e9 / row_number(row, "samples_per_second")
                                               : 1e9 * row_number(row, "seconds") / row_number(row, "samples"));
    return true;
}

static int side_open(const char *path, side *s)
{
    size_t i;
    const json_t *row;
    int code = results_open(path, &s->r);
    if (code)
        return code;
    const bool training = s->r.kind == RESULTS_EPOCHS || s->r.kind == RESULTS_STEPS;
    if (s->r.kind == RESULTS_TRACE)
        return complain(EXIT_BAD_INPUT, "%s: a trace, not results", path);
    s->items = calloc(training ? 1 : json_array_size(s->r.rows), sizeof *s->items);
    bool room = s->items != NULL;
    if (room && training)
        room = training_take(&s->r, &s->items[s->count++]);
    json_array_foreach(s->r.rows, i, row) if (room && !training) room = row_take(s->r.kind, row, &s->items[s->count++]);
    if (!room)
        return complain(EXIT_MEMORY, "%s: no host memory", path);
    snprintf(s->device, sizeof s->device, "%s", s->items[0].device);
    for (size_t k = 1; k < s->count; k++)
        if (strcmp(s->items[k].device, s->device) != 0)
            *s->device = 0;
    return EXIT_OK;
}

/* ---- two of them ---- */

typedef struct comparison {
    side a, b;
    double threshold;
    size_t compared, slower, faster, same, unclear;
    output out;
} comparison;

/* The next of that name in B that has no partner yet; NULL: none. */
static item *partner_of(comparison *c, const item *it)
{
    const bool across = *c->a.device && *c->b.device;
    for (size_t i = 0; i < c->b.count; i++) {
        item *other = &c->b.items[i];
        if (!other->taken && !strcmp(other->what, it->what) && (across || !strcmp(other->device, it->device)))
            return other;
    }
    return NULL;
}

static const char *verdict_of(comparison *c, const ratio *r)
{
    const double most = 1 + c->threshold;
    if (r->low > most)
        return c->slower++, "slower";
    if (r->high < 1 / most)
        return c->faster++, "faster";
    if (r->low >= 1 / most && r->high <= most)
        return c->same++, "same";
    return c->unclear++, "unclear";
}

static int pair_compare(comparison *c, item *a, item *b)
{
    ratio r;
    char device[2 * DEVICE + 2];
    a->taken = b->taken = true;
    if (!a->count || !b->count)
        return complain(EXIT_BAD_INPUT, "%s: %s: no time", a->count ? c->b.r.path : c->a.r.path, a->what);
    const double a_ns = stats_median(a->ns, a->count), b_ns = stats_median(b->ns, b->count); /* of all runs */
    if (!ratio_of(a->ns, a->count, b->ns, b->count, CONFIDENCE, &r))
        return complain(EXIT_MEMORY, "no host memory");
    snprintf(device, sizeof device, "%s%s%s", a->device, strcmp(a->device, b->device) ? "/" : "",
             strcmp(a->device, b->device) ? b->device : "");
    c->compared++;
    output_row(&c->out, json_pack("{so so sf sf s[ii] so so so ss}", "what", text_json(a->what), "device",
                                  text_json(device), "a_ns", a_ns, "b_ns", b_ns, "runs", (int)a->count, (int)b->count,
                                  "ratio", number_json(r.estimate), "low", r.low > 0 ? number_json(r.low) : json_null(),
                                  "high", number_json(r.high), "verdict", verdict_of(c, &r)));
    return EXIT_OK;
}

static const json_t *device_described(const side *s, const char *name)
{
    const json_t *row;
    size_t i;
    json_array_foreach(json_object_get(s->r.document, "devices"), i,
                       row) if (!strcmp(row_text(row, "device"), name)) return row;
    return NULL;
}

/* A ratio means something else where it is not the same machine, and is not the whole truth where something is
 * missing. */
static void differences_tell(comparison *c)
{
    const char *const keys[] = { "name", "driver" };
    const json_t *row;
    size_t i;
    if (strcmp(row_text(c->a.r.document, "version"), row_text(c->b.r.document, "version")) != 0)
        output_note(&c->out, "A is of version %s, B of %s", row_text(c->a.r.document, "version"),
                    row_text(c->b.r.document, "version"));
    json_array_foreach(json_object_get(c->a.r.document, "devices"), i, row)
    {
        const json_t *other = device_described(&c->b, row_text(row, "device"));
        for (int k = 0; other && k < 2; k++)
            if (strcmp(row_text(row, keys[k]), row_text(other, keys[k])) != 0)
                output_note(&c->out, "%s is another device: %s in A, %s in B", row_text(row, "device"),
                            row_text(row, keys[k]), row_text(other, keys[k]));
    }
    const side *const sides[] = { &c->a, &c->b };
    for (int s = 0; s < 2; s++)
        for (size_t k = 0; k < sides[s]->count; k++)
            if (!sides[s]->items[k].taken)
                output_note(&c->out, "only in %c: %s %s", "AB"[s], sides[s] -> items[k].what,
                            sides[s]->items[k].device);
}

static int sides_compare(comparison *c)
{
    int code = EXIT_OK;
    for (size_t i = 0; i < c->a.count; i++) {
        output_expect(&c->out, "what", strlen(c->a.items[i].what));
        output_expect(&c->out, "device", strlen(c->a.items[i].device));
    }
    if (*c->a.device && *c->b.device && strcmp(c->a.device, c->b.device) != 0)
        output_expect(&c->out, "device", strlen(c->a.device) + 1 + strlen(c->b.device));
    for (size_t i = 0; i < c->a.count && !code; i++) {
        item *b = partner_of(c, &c->a.items[i]);
        if (b)
            code = pair_compare(c, &c->a.items[i], b);
    }
    if (code)
        return code;
    if (!c->compared)
        return complain(EXIT_BAD_INPUT, "%s and %s have nothing in common that was timed", c->a.r.path, c->b.r.path);
    output_set(&c->out, "a", text_json(c->a.r.path));
    output_set(&c->out, "b", text_json(c->b.r.path));
    output_set(&c->out, "threshold", json_real(c->threshold));
    output_set(&c->out, "confidence", json_real(CONFIDENCE));
    output_set(&c->out, "slower", json_integer((json_int_t)c->slower));
    differences_tell(c);
    output_note(&c->out,
                "%zu compared: B is slower in %zu, faster in %zu, the same within %g %% in %zu, and %zu are unclear",
                c->compared, c->slower, c->faster, 100 * c->threshold, c->same, c->unclear);
    output_note(&c->out, "from, to: 95 %% confidence, of the ratios of all timed runs (Hodges and Lehmann)");
    return c->slower ? EXIT_WRONG : EXIT_OK;
}

int cmd_compare(const bench_options *o)
{
    comparison c = { .threshold = o->threshold < 0 ? THRESHOLD : o->threshold };
    if (o->argc != 2)
        return complain(EXIT_USAGE, "compare takes two files: A.json B.json");
    int code = side_open(o->argv[0], &c.a);
    if (!code)
        code = side_open(o->argv[1], &c.b);
    if (!code && c.a.r.kind != c.b.r.kind)
        code = complain(EXIT_BAD_INPUT, "%s holds %s, %s %s: two of a kind are compared", o->argv[0],
                        results_what(&c.a.r), o->argv[1], results_what(&c.b.r));
    if (!code) {
        output_open(&c.out, o->output, columns, sizeof columns / sizeof *columns, "results");
        code = sides_compare(&c);
        code = output_close(&c.out, code);
    }
    side_close(&c.a);
    side_close(&c.b);
    return code;
}
