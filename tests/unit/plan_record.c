/* plan_record.c - plans from command buffers: the bytes of plans run op by op, at most one attempt to record, failures
 * with the device's name, nothing left behind. */
#include "plan_case.h"

/* A table in front of the device's own that counts what a plan asks for, and answers for cmdbuf_create. */
static struct {
    cek_plugin table, own;
    const cek_host *host; /* that the plugin tells its reasons */
    int ops, asked, made, freed, runs;
    cek_status answer;  /* of cmdbuf_create, instead of the device's */
    const char *reason; /* its text; NULL: none */
    cek_status run_answer;
} seen;

static cek_status seen_fail(cek_status status, const char *reason)
{
    if (reason)
        (seen.host->fail)(seen.host->user, status, reason);
    return status;
}

static cek_status seen_op_run(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count,
                              cek_ref workspace)
{
    seen.ops++;
    return seen.own.op_run(queue, op, operands, count, workspace);
}

static cek_status seen_create(cek_dev *dev, const cek_cmd *cmds, uint32_t count, uint32_t cmd_size, cek_cmdbuf **out)
{
    cek_status st;

    *out = NULL;
    seen.asked++;
    if (seen.answer != CEK_OK)
        return seen_fail(seen.answer, seen.reason);
    st = seen.own.cmdbuf_create(dev, cmds, count, cmd_size, out);
    seen.made += st == CEK_OK;
    return st;
}

static void seen_destroy(cek_cmdbuf *cmdbuf)
{
    seen.freed++;
    seen.own.cmdbuf_destroy(cmdbuf);
}

static cek_status seen_run(cek_queue *queue, cek_cmdbuf *cmdbuf)
{
    seen.runs++;
    return seen.run_answer == CEK_OK ? seen.own.cmdbuf_run(queue, cmdbuf)
                                     : seen_fail(seen.run_answer, "the ribbon is stuck");
}

static void recorder_open(bench *b, const char *device)
{
    bench_open(b, device);
    memset(&seen, 0, sizeof seen);
    seen.host = &b->device->module->host;
    seen.table = seen.own = *b->plugin;
    seen.table.op_run = seen_op_run;
    seen.table.cmdbuf_create = seen_create;
    seen.table.cmdbuf_destroy = seen_destroy;
    seen.table.cmdbuf_run = seen_run;
    b->device->plugin = &seen.table;
}

/* ---- a plan that alternates between two places for its samples ---- */

typedef struct twin {
    plan_run run;
    test_case sample;
    cek__plan_binding places[CEK__PLAN_BINDINGS];
    unsigned char *trace; /* of every step: loss, right answers, all gradients */
    size_t length;
} twin;

static void twin_open(twin *t, bench *b, cek_model *m, int64_t rows, bool cut_forward)
{
    cek__plan_options options = train_ce;
    const cek__plan_needs *n;

    *t = (twin){ .length = 0 };
    options.rows = rows;
    options.cut_forward = cut_forward;
    case_make(&t->sample, m, &options, rows, 5);
    plan_run_open(&t->run, b, m, CEK_F32, &options);
    n = cek__plan_get_needs(t->run.plan);
    t->places[0] = t->places[1] = t->run.binding;
    t->places[1].input = bench_alloc(b, n->input_bytes);
    t->places[1].target = bench_alloc(b, n->target_bytes);
    assert_ok(cek__plan_bind(t->run.plan, 1, &t->places[1]));
}

static void twin_close(twin *t)
{
    plan_run_close(&t->run);
    case_clear(&t->sample);
    free(t->trace);
}

/* Everything that may change between steps does: samples, place, blocks, parameters. */
static void twin_prepare(twin *t, size_t place, uint64_t step)
{
    plan_run *r = &t->run;

    r->binding = t->places[place];
    t->sample.seed = step;
    for (int64_t i = 0; i < t->sample.options.rows; i++)
        t->sample.labels[i] = (int32_t)((step + (uint64_t)i) % (uint64_t)cek__model_outputs(r->model));
    t->sample.device_inputs[0] = (float)step;
    case_upload(&t->sample, r, 0, t->sample.options.rows);
    cek_model_init(r->model, step);
    for (size_t i = 0; i < r->layout->bucket_count; i++) {
        uint64_t bytes = cek__layout_bucket_bytes(r->layout, i);
        void *host = malloc(bytes);

        cek__layout_pack(r->layout, r->model, i, host);
        plan_run_put(r, r->parameters[i], host, bytes);
        free(host);
    }
}

static void twin_note(twin *t, cek_ref ref, uint64_t bytes)
{
    t->trace = realloc(t->trace, t->length + bytes);
    bench_download(t->run.b, t->trace + t->length, ref, bytes);
    t->length += bytes;
}

static cek_status twin_run(twin *t, size_t place, bool accumulate)
{
    plan_run *r = &t->run;
    cek_status st = cek__plan_forward(r->plan, place, r->b->stream);

    for (size_t s = 0; s < cek__plan_segment_count(r->plan) && st == CEK_OK; s++)
        st = cek__plan_backward(r->plan, place, r->b->stream, s, accumulate);
    return st == CEK_OK ? r->b->plugin->queue_sync(r->b->queue, CEK_FOREVER) : st;
}

static void twin_step(twin *t, size_t place, bool accumulate, uint64_t step)
{
    plan_run *r = &t->run;

    twin_prepare(t, place, step);
    assert_ok(twin_run(t, place, accumulate));
    twin_note(t, r->binding.loss, sizeof(float));
    twin_note(t, r->binding.correct, sizeof(int32_t));
    for (size_t i = 0; i < r->layout->bucket_count; i++)
        twin_note(t, r->gradients[i], cek__layout_bucket_bytes(r->layout, i));
}

/* Every form at both places three times or more: run op by op, recorded, run again. */
static void twin_train(twin *t)
{
    for (uint64_t step = 0; step < 12; step++)
        twin_step(t, step % 2, (step / 2) % 2, step + 1);
}

/* ---- what recording, and cutting, do not change ---- */

static void same_bytes(const char *device, const char *text, int rank, const int64_t *shape, int64_t rows)
{
    bench b;
    twin recorded, plain;
    cek_model *m = parsed(text, rank, shape);

    recorder_open(&b, device);
    twin_open(&recorded, &b, m, rows, true);
    twin_train(&recorded);
    ck_assert_int_gt(seen.runs, 0);
    seen.answer = CEK_UNSUPPORTED;
    seen.runs = 0;
    twin_open(&plain, &b, m, rows, false);
    twin_train(&plain);
    ck_assert_int_eq(seen.runs, 0);
    ck_assert_uint_eq(recorded.length, plain.length);
    ck_assert_msg(memcmp(recorded.trace, plain.trace, plain.length) == 0, "%s, %lld rows of %s", device,
                  (long long)rows, text);
    twin_close(&plain);
    twin_close(&recorded);
    ck_assert_int_eq(seen.made, seen.freed);
    bench_close(&b);
    cek_model_free(m);
}

#define CONVOLUTIONS "conv:4,3,p1 relu maxpool:2 dropout:0.25 flatten linear:9 tanh linear:5"
#define BUCKETS                                                  \
    "linear:1100 relu linear:1100 relu linear:6", 1, (int64_t[]) \
    {                                                            \
        1100                                                     \
    } /* each more than 4 MiB of f32 */

static const char *const devices[] = { "cpu:0", "reference:0", "sim:0" };

START_TEST(a_recorded_plan_gives_the_bytes_of_one_run_op_by_op)
{
    for (int64_t rows = 1; rows <= 7; rows += 2)
        same_bytes(devices[_i], CONVOLUTIONS, 3, IMAGE, rows);
    same_bytes(devices[_i], BUCKETS, 4);
}
END_TEST

/* ---- when it records ---- */

START_TEST(a_stretch_is_recorded_when_it_runs_again_and_runs_at_once_from_then_on)
{
    bench b;
    twin t;
    cek_model *m = parsed(BUCKETS);
    int ops, forward, stretches;

    recorder_open(&b, "cpu:0");
    twin_open(&t, &b, m, 2, true);
    forward = (int)cek__plan_forward_count(t.run.plan);
    stretches = forward + (int)cek__plan_segment_count(t.run.plan);
    ck_assert_int_ge(forward, 2);
    ck_assert_int_ge(stretches, 4);
    twin_step(&t, 0, false, 1);
    ops = seen.ops;
    ck_assert_int_gt(ops, stretches);
    ck_assert_int_eq(seen.asked + seen.runs, 0);
    twin_step(&t, 0, false, 2);
    ck_assert_int_eq(seen.made, stretches);
    twin_step(&t, 0, false, 3);
    ck_assert_int_eq(seen.made, stretches);
    ck_assert_int_eq(seen.ops, ops);
    ck_assert_int_eq(seen.runs, 2 * stretches);
    twin_step(&t, 0, true, 4); /* forward is the same, backward another form */
    ck_assert_int_lt(seen.ops, 2 * ops);
    ck_assert_int_eq(seen.runs, 2 * stretches + forward);
    twin_step(&t, 1, false, 5); /* another place: nothing of the first one's */
    ck_assert_int_eq(seen.runs, 2 * stretches + forward);
    ck_assert_int_eq(seen.made, stretches);
    twin_close(&t);
    ck_assert_int_eq(seen.freed, seen.made);
    bench_close(&b);
    cek_model_free(m);
}
END_TEST

START_TEST(a_plan_bound_again_is_recorded_again_in_the_other_memory)
{
    bench b;
    twin t;
    cek_model *m = parsed(CONVOLUTIONS, 3, IMAGE);
    int made;

    recorder_open(&b, "cpu:0");
    twin_open(&t, &b, m, 3, true);
    for (uint64_t step = 1; step <= 3; step++)
        twin_step(&t, 0, false, step);
    made = seen.made;
    ck_assert_int_gt(made, 0);
    assert_ok(cek__plan_bind(t.run.plan, 0, &t.places[1]));
    ck_assert_int_eq(seen.freed, made);
    twin_prepare(&t, 0, 9);
    assert_ok(b.plugin->fill(b.queue, t.places[0].input, 0xff, 1, 3 * 3 * 9 * 8 * sizeof(float))); /* NaN, unread */
    twin_prepare(&t, 1, 4);
    for (int again = 0; again < 3; again++)
        assert_ok(twin_run(&t, 0, false));
    ck_assert(isfinite(plan_run_loss(&t.run)));
    ck_assert_int_eq(seen.made, 2 * made);
    twin_close(&t);
    ck_assert_int_eq(seen.freed, 2 * made);
    bench_close(&b);
    cek_model_free(m);
}
END_TEST

/* ---- when it cannot ---- */

/* By a device that has no command buffers, or no memory for one. */
START_TEST(what_cannot_be_recorded_is_asked_for_once)
{
    static const cek_status answers[] = { CEK_UNSUPPORTED, CEK_OUT_OF_MEMORY };
    bench b;
    twin t;
    cek_model *m = parsed(CONVOLUTIONS, 3, IMAGE);
    int ops;

    recorder_open(&b, "cpu:0");
    seen.answer = answers[_i];
    seen.reason = "no recorder here";
    twin_open(&t, &b, m, 3, true);
    twin_step(&t, 0, false, 1);
    ops = seen.ops;
    for (uint64_t step = 2; step <= 4; step++)
        twin_step(&t, 0, false, step);
    ck_assert_int_eq(seen.asked, 2); /* forward, backward */
    ck_assert_int_eq(seen.ops, 4 * ops);
    ck_assert_int_eq(seen.runs + seen.freed, 0);
    twin_close(&t);
    bench_close(&b);
    cek_model_free(m);
}
END_TEST

START_TEST(every_other_failure_is_one_and_names_the_device)
{
    bench b;
    twin t;
    cek_model *m = parsed(CONVOLUTIONS, 3, IMAGE);

    recorder_open(&b, "cpu:0");
    twin_open(&t, &b, m, 3, true);
    twin_step(&t, 0, false, 1);
    seen.answer = CEK_INTERNAL;
    seen.reason = "the ribbon is torn";
    assert_fails(twin_run(&t, 0, false), CEK_INTERNAL, "cpu:0: cmdbuf_create: ", "the ribbon is torn");
    seen.reason = NULL; /* the text is not that of the failure before */
    assert_fails(twin_run(&t, 0, false), CEK_INTERNAL, "cpu:0: cmdbuf_create: ", "defect");
    seen.answer = 4711;
    assert_fails(twin_run(&t, 0, false), CEK_INTERNAL, "cpu:0: cmdbuf_create: ", "unknown status 4711");
    seen.answer = CEK_OK;
    seen.run_answer = CEK_DEVICE_LOST;
    assert_fails(twin_run(&t, 0, false), CEK_DEVICE_LOST, "cpu:0: cmdbuf_run: ", "the ribbon is stuck");
    seen.run_answer = CEK_OK;
    twin_step(&t, 0, false, 2);
    ck_assert_int_gt(seen.made, 0);
    twin_close(&t);
    ck_assert_int_eq(seen.freed, seen.made);
    bench_close(&b);
    cek_model_free(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_record");
    TCase *tcase = tcase_create("plan_record");

    tcase_add_loop_test(tcase, a_recorded_plan_gives_the_bytes_of_one_run_op_by_op, 0,
                        sizeof devices / sizeof *devices);
    tcase_add_test(tcase, a_stretch_is_recorded_when_it_runs_again_and_runs_at_once_from_then_on);
    tcase_add_test(tcase, a_plan_bound_again_is_recorded_again_in_the_other_memory);
    tcase_add_loop_test(tcase, what_cannot_be_recorded_is_asked_for_once, 0, 2);
    tcase_add_test(tcase, every_other_failure_is_one_and_names_the_device);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
