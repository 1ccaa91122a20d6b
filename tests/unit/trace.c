/* trace.c - what a traced run leaves: JSON whose lines are streams and threads, whose spans are commands under the
 * names of their layers, and whose arrows lead from a shard's first contribution to who took its parameters last. */
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "scratch.h"
#include "tests/trace_format.h"
#include "train_bench.h"

enum { STEPS = 4 };

static const struct {
    const char *cpus, *sims, *shared, *list;
    int devices;
    const char *threads[4]; /* lines of the host that there must be */
} fleets[] = {
    { "1", "1", "1", "cpu", 1, { NULL } },
    { "2", "1", "1", "cpu", 2, { "cpu:0: everything", "cpu:1: everything" } },
    { "1", "2", "0", "sim", 2, { "sim:0: feeder", "sim:0: porter", "sim:1: feeder", "sim:1: porter" } },
    { "1", "2", "1", "cpu,sim", 3, { "cpu:0: everything", "sim:1: porter" } },
};
enum { FLEETS = sizeof fleets / sizeof *fleets };

static const char *text_of(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text != NULL ? text : "";
}

static double number_of(const json_t *event, const char *key)
{
    const json_t *value = json_object_get(event, key);
    ck_assert_msg(json_is_number(value), "an event without %s", key);
    return json_number_value(value);
}

/* The name that a metadata event gives to the process or thread of `event`. */
static const char *name_of(const json_t *events, const json_t *event, const char *kind)
{
    size_t i;
    json_t *e;
    json_array_foreach(events, i, e) if (
        strcmp(text_of(e, "name"), kind) == 0 &&
        number_of(e, "tid") == number_of(event, "tid")) return text_of(json_object_get(e, "args"), "name");
    ck_abort_msg("a line without a %s", kind);
}

/* Trains for some steps, two under way at once, traced into `path` where that is not NULL; the weights' digest. */
static void train(int f, const char *path, char sha[65])
{
    cek_trainer_options o = options_small();
    bench b;
    setenv("CEKERNELS_SIM_DEVICES", fleets[f].sims, 1);
    setenv("CEKERNELS_SIM_SHARED", fleets[f].shared, 1);
    bench_engine(&b, fleets[f].cpus, fleets[f].list);
    if (path != NULL)
        ok(cek_trace_start(b.engine));
    ok(cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer));
    ck_assert_int_eq((int)b.count, fleets[f].devices);
    for (int i = 0; i < STEPS; i++) {
        cek_batch batch = batch_of(0, SAMPLES);
        ok(cek_trainer_submit(b.trainer, &batch));
        if (i > 0)
            ok(cek_trainer_collect(b.trainer, NULL));
    }
    ok(cek_trainer_collect(b.trainer, NULL));
    ok(cek_trainer_pull(b.trainer));
    cek_model_sha256(b.model, sha);
    cek_trainer_free(b.trainer);
    b.trainer = NULL;
    if (path != NULL)
        ok(cek_trace_save(b.engine, path));
    bench_close(&b);
}

static json_t *events_of(const char *path, json_t **document)
{
    json_error_t error;
    *document = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(*document != NULL, "%s:%d: %s", path, error.line, error.text);
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(*document, "otherData"), "not_recorded")), 0);
    return json_object_get(*document, "traceEvents");
}

static int spans(const json_t *events, const char *process, const char *name, int step)
{
    size_t i;
    json_t *e;
    int count = 0;
    json_array_foreach(events, i, e) count += strcmp(text_of(e, "ph"), "X") == 0 &&
                                              strcmp(text_of(e, "name"), name) == 0 &&
                                              (int)number_of(json_object_get(e, "args"), "step") == step &&
                                              strcmp(name_of(events, e, "process_name"), process) == 0;
    return count;
}

/* The span that an arrow is tied to. */
static const char *span_at(const json_t *events, const json_t *arrow)
{
    size_t i;
    json_t *e;
    json_array_foreach(events, i, e) if (
        strcmp(text_of(e, "ph"), "X") == 0 && number_of(e, "tid") == number_of(arrow, "tid") &&
        number_of(e, "ts") <= number_of(arrow, "ts") + 0.001 &&
        number_of(e, "ts") + number_of(e, "dur") >= number_of(arrow, "ts") - 0.001) return text_of(e, "name");
    ck_abort_msg("an arrow at no span");
}

static void arrows_lead_from_gather_to_spread(const json_t *events)
{
    size_t i, k;
    json_t *e, *other;
    int begun = 0;
    json_array_foreach(events, i, e)
    {
        int ends = 0;
        if (strcmp(text_of(e, "ph"), "s") != 0)
            continue;
        begun++;
        ck_assert_msg(strncmp(span_at(events, e), "fetch", 5) == 0 || strncmp(span_at(events, e), "add", 3) == 0,
                      "an arrow leaves %s", span_at(events, e));
        json_array_foreach(events, k, other)
        {
            if (number_of(e, "pid") < 0 || json_object_get(other, "id") == NULL ||
                number_of(other, "id") != number_of(e, "id"))
                continue;
            if (strcmp(text_of(other, "ph"), "f") != 0)
                continue;
            ck_assert_msg(strncmp(span_at(events, other), "receive", 7) == 0, "an arrow ends at %s",
                          span_at(events, other));
            ends++;
        }
        ck_assert_int_eq(ends, 1);
    }
    ck_assert_int_ge(begun, STEPS);
}

START_TEST(a_trace_shows_layers_steps_threads_and_the_way_of_gradients)
{
    char path[256], plain[65], traced[65];
    char *fault;
    json_t *document, *events;
    scratch_make();
    snprintf(path, sizeof path, "%s/trace.json", scratch_dir);
    train(_i, NULL, plain);
    train(_i, path, traced);
    ck_assert_str_eq(plain, traced);
    events = events_of(path, &document);
    fault = trace_fault(document);
    ck_assert_msg(fault == NULL, "%s", fault);
    for (int device = 0; device < fleets[_i].devices; device++) {
        char name[32];
        bool is_sim = strncmp(fleets[_i].list, "sim", 3) == 0 || (strchr(fleets[_i].list, ',') != NULL && device > 0);
        snprintf(name, sizeof name, "%s:%d", is_sim ? "sim" : "cpu",
                 strchr(fleets[_i].list, ',') != NULL && device > 0 ? device - 1 : device);
        for (int n = 1; n <= STEPS; n++) {
            ck_assert_msg(spans(events, name, "node 1 (conv)", n) >= 1, "%s, step %d", name, n);
            ck_assert_msg(spans(events, name, "node 1 (conv) backward", n) >= 1, "%s, step %d", name, n);
        }
        ck_assert_int_eq(spans(events, name, "node 1 (conv)", STEPS + 1), 0);
    }
    for (size_t t = 0; t < 4 && fleets[_i].threads[t] != NULL; t++) {
        size_t i;
        json_t *e;
        bool found = false;
        json_array_foreach(events, i, e)
            found = found || strcmp(text_of(json_object_get(e, "args"), "name"), fleets[_i].threads[t]) == 0;
        ck_assert_msg(found, "no line of %s", fleets[_i].threads[t]);
    }
    if (fleets[_i].devices > 1)
        arrows_lead_from_gather_to_spread(events);
    json_decref(document);
    scratch_remove();
}
END_TEST

START_TEST(a_trace_that_was_not_begun_or_cannot_be_written_is_refused)
{
    cek_engine *engine;
    ok(cek_engine_create(NULL, &engine));
    ck_assert_uint_eq(cek_trace_save(engine, "/nowhere/trace.json"), CEK_INVALID);
    ok(cek_trace_start(engine));
    ck_assert_uint_eq(cek_trace_start(engine), CEK_INVALID);
    ck_assert_uint_eq(cek_trace_save(engine, "/nowhere/trace.json"), CEK_IO);
    ck_assert(strstr(cek_error_text(), "/nowhere/trace.json") != NULL);
    cek_engine_free(engine);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace");
    TCase *tc = tcase_create("trace");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_trace_shows_layers_steps_threads_and_the_way_of_gradients, 0, FLEETS);
    tcase_add_test(tc, a_trace_that_was_not_begun_or_cannot_be_written_is_refused);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
