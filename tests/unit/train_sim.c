/* train_sim.c - the public API over simulated devices: every kind of failure and hang, at many
 * calls of a training run, ends with its documented status and leaves what is the caller's as it
 * was; virtual times are those of the devices' speeds. */
#include <stdio.h>

#include "nn/train/trainer.h"
#include "train_place.h"

enum { STEPS = 40 };

static float images_before[SAMPLES][SIDE * SIDE];
static int32_t labels_before[SAMPLES];
static const cek_batch batch = {
    .size = sizeof batch, .count = SAMPLES, .inputs = images, .targets = labels, .input_type = CEK_F32
};

static void failing_open(place *p, const char *faults)
{
    setenv("CEKERNELS_SIM_DEVICES", "2", 1);
    setenv("CEKERNELS_SIM_WATCHDOG_MS", "20", 1);
    setenv("CEKERNELS_TIMEOUT", "2", 1); /* half of it in silence, and the driver is waited for, with its watchdog */
    setenv("CEKERNELS_SIM_FAULTS", faults, 1);
    place_open(p, "sim");
    ck_assert_uint_eq(p->count, 2);
    memcpy(images_before, images, sizeof images);
    memcpy(labels_before, labels, sizeof labels);
}

/* ---- Failures -------------------------------------------------------------------------------- */

static cek_status train(place *p, cek_trainer **trainer)
{
    const cek_trainer_options o = { .size = sizeof o, .batch = SAMPLES, .shares = CEK_SHARES_EQUAL };
    return place_train(p, &o, STEPS, trainer);
}

/* One run with one fault: whether it failed. */
static bool run_fails(const char *fault, cek_status want)
{
    place p;
    cek_trainer *trainer = NULL;
    char before[65], after[65];
    failing_open(&p, fault);
    cek_model_sha256(p.model, before);
    cek_status st = train(&p, &trainer);
    cek_model_sha256(p.model, after);
    ck_assert_msg(st == CEK_OK || st == want, "%s: %s: %s", fault, cek_status_name(st), cek_error_text());
    ck_assert_msg((st == CEK_OK) == (strcmp(before, after) != 0), "%s: the model was %s", fault,
                  st == CEK_OK ? "not written" : "written");
    if (st != CEK_OK) {
        const char *text = cek_error_text();
        /* said of the device that failed and of no other */
        ck_assert_msg(strncmp(text, "sim:1: ", 7) == 0 && strstr(text, "sim:0") == NULL, "%s: %s", fault, text);
        if (trainer != NULL) /* it is broken, and says why again */
            ck_assert_uint_eq(cek_trainer_step(trainer, &batch, NULL), st);
    }
    ck_assert_int_eq(memcmp(images, images_before, sizeof images), 0);
    ck_assert_int_eq(memcmp(labels, labels_before, sizeof labels), 0);
    cek_trainer_free(trainer);
    place_close(&p);
    return st != CEK_OK;
}

static const struct {
    const char *effect;
    cek_status status;
} kinds[] = {
    { "internal", CEK_INTERNAL },       { "later_internal", CEK_INTERNAL },
    { "device_lost", CEK_DEVICE_LOST }, { "later_device_lost", CEK_DEVICE_LOST },
    { "hang", CEK_DEVICE_LOST }, /* the trainer waits without a deadline: the driver's watchdog ends it */
};

/* Every kind of failure, at many of the commands that reach sim:1. */
static void work_fails(const char *first, const char *effect, cek_status status)
{
    int failures = 0, runs = 0;
    for (int n = 1; n < 400; n += 1 + n / 6, runs++) {
        char fault[128];
        snprintf(fault, sizeof fault, "%s%s@enqueue#%d/1", first, effect, n);
        failures += run_fails(fault, status);
    }
    ck_assert_int_eq(failures, runs); /* more than 400 commands reach sim:1 in these steps */
}

START_TEST(whatever_work_fails_the_status_is_documented_and_nothing_of_the_callers_changes)
{
    work_fails("", kinds[_i].effect, kinds[_i].status);
}
END_TEST

START_TEST(so_it_is_on_devices_without_command_buffers)
{
    work_fails("unsupported@cmdbuf_create#1+,", kinds[_i].effect, kinds[_i].status);
}
END_TEST

static const struct {
    const char *fault;
    cek_status status;
} recordings[] = {
    { "internal@cmdbuf_create#2/1", CEK_INTERNAL },          { "device_lost@cmdbuf_create#3/1", CEK_DEVICE_LOST },
    { "out_of_memory@cmdbuf_run/1", CEK_OUT_OF_MEMORY },     { "internal@cmdbuf_run#3/1", CEK_INTERNAL },
    { "later_internal@cmdbuf_run#3/1", CEK_INTERNAL },       { "device_lost@cmdbuf_run#6/1", CEK_DEVICE_LOST },
    { "later_device_lost@cmdbuf_run#6/1", CEK_DEVICE_LOST }, { "hang@cmdbuf_run#5/1", CEK_DEVICE_LOST },
};

START_TEST(so_it_is_where_recording_fails)
{
    ck_assert(run_fails(recordings[_i].fault, recordings[_i].status));
}
END_TEST

/* With the least memory that suffices, so that a share is several micro-batches; how much that is follows from the
 * kernels. */
static cek_trainer *trainer_make_small(const place *p)
{
    cek_trainer_options o = { .size = sizeof o, .batch = SAMPLES, .shares = CEK_SHARES_EQUAL };
    cek_trainer *trainer = NULL;
    for (o.memory_limit = 1024; trainer == NULL; o.memory_limit += 256)
        if (cek_trainer_create(p->model, p->devices, p->count, &o, &trainer) != CEK_OK)
            ck_assert_msg(strstr(cek_error_text(), "bytes") != NULL, "%s", cek_error_text());
    ck_assert_int_lt(cek_trainer_micro_batch(trainer, 1), SAMPLES / 4);
    return trainer;
}

/* The model after some steps, in micro-batches of a few samples; a later batch is smaller. */
static void weights_after_steps(const char *faults, char sha256[65])
{
    place p;
    cek_trainer *trainer;
    cek_batch smaller = batch;
    smaller.count = SAMPLES - 3;
    failing_open(&p, faults);
    trainer = trainer_make_small(&p);
    for (int i = 0; i < STEPS; i++)
        ok(cek_trainer_step(trainer, i % 3 == 2 ? &smaller : &batch, NULL));
    ok(cek_trainer_pull(trainer));
    cek_model_sha256(p.model, sha256);
    cek_trainer_free(trainer);
    place_close(&p);
}

START_TEST(command_buffers_change_no_bit_of_the_weights)
{
    char recorded[65], plain[65], some[65], starved[65];
    weights_after_steps("", recorded);
    weights_after_steps("unsupported@cmdbuf_create#1+", plain);
    weights_after_steps("unsupported@cmdbuf_create#3/0,unsupported@cmdbuf_create#2+/1", some);
    weights_after_steps("out_of_memory@cmdbuf_create/0,out_of_memory@cmdbuf_create#2+/1", starved);
    ck_assert_str_eq(recorded, plain);
    ck_assert_str_eq(recorded, some);
    ck_assert_str_eq(recorded, starved);
}
END_TEST

/* clang-format off */
START_TEST(so_it_is_where_waits_fail)
{
    static const char *const waits[] = {"internal@wait/1", "device_lost@wait/1", "hang@wait/1", "device_lost@wait#3/1"};
    static const cek_status statuses[] = {CEK_INTERNAL, CEK_DEVICE_LOST, CEK_DEVICE_LOST, CEK_DEVICE_LOST};
    ck_assert(run_fails(waits[_i], statuses[_i]));
}
END_TEST
/* clang-format on */

START_TEST(memory_that_is_never_there_is_told_before_training)
{
    place p;
    cek_trainer *trainer;
    const cek_trainer_options o = { .size = sizeof o, .batch = SAMPLES, .shares = CEK_SHARES_EQUAL };
    failing_open(&p, "out_of_memory@mem_alloc#1+/1");
    ck_assert_uint_eq(cek_trainer_create(p.model, p.devices, p.count, &o, &trainer), CEK_OUT_OF_MEMORY);
    ck_assert_ptr_null(trainer);
    ck_assert_msg(strstr(cek_error_text(), "sim:1") != NULL, "%s", cek_error_text());
    place_close(&p);
}
END_TEST

/* With every other batch of another size, so that plans are made among steps, and samples uploaded ahead for them. */
START_TEST(memory_that_is_short_once_fails_one_step_at_most)
{
    for (int n = 1; n < 80; n++) {
        const cek_trainer_options o = { .size = sizeof o, .batch = SAMPLES };
        char fault[64];
        int failures = 0;
        place p;
        cek_trainer *trainer;
        snprintf(fault, sizeof fault, "out_of_memory@op_create#%d/0", n);
        failing_open(&p, fault);
        if (cek_trainer_create(p.model, p.devices, 1, &o, &trainer) == CEK_OK) {
            for (int i = 0; i < 8; i++) {
                cek_batch some = batch;
                some.count = SAMPLES - i % 4;
                const cek_status st = cek_trainer_step(trainer, &some, NULL);
                ck_assert_msg(st == CEK_OK || st == CEK_OUT_OF_MEMORY, "%s: %s", fault, cek_error_text());
                failures += st != CEK_OK;
            }
            ck_assert_msg(failures <= 1, "%s: %d steps failed: %s", fault, failures, cek_error_text());
        }
        cek_trainer_free(trainer);
        place_close(&p);
    }
}
END_TEST

/* Events that only tell how far a device has come are made as they are needed. */
START_TEST(no_step_fails_for_want_of_memory_for_events)
{
    int trained = 0;
    for (int n = 10; n < 400 && trained < 10; n += 10) {
        const cek_trainer_options o = { .size = sizeof o, .batch = SAMPLES, .shares = CEK_SHARES_EQUAL };
        char fault[64];
        place p;
        cek_trainer *trainer;
        snprintf(fault, sizeof fault, "out_of_memory@event_create#%d+", n);
        failing_open(&p, fault);
        if (cek_trainer_create(p.model, p.devices, p.count, &o, &trainer) == CEK_OK) {
            for (int i = 0; i < 4; i++)
                ok(cek_trainer_step(trainer, &batch, NULL));
            trained++;
        }
        cek_trainer_free(trainer);
        place_close(&p);
    }
    ck_assert_int_eq(trained, 10);
}
END_TEST

/* The model is as large as several buckets; weights come back bucket by bucket. */
START_TEST(what_was_not_pulled_whole_leaves_the_model_as_it_was)
{
    int failures = 0;
    for (int n = 1; n < 16; n++) {
        const cek_trainer_options o = { .size = sizeof o, .batch = SAMPLES };
        char fault[64], before[65], after[65];
        place p;
        cek_trainer *trainer;
        cek_model *wide;
        snprintf(fault, sizeof fault, "%s@download#%d/0", kinds[_i].effect, n);
        failing_open(&p, fault);
        ok(cek_model_parse("flatten linear:1024 relu linear:1024 relu linear:3", 3, (int64_t[]){ 1, SIDE, SIDE },
                           &wide));
        cek_model_init(wide, 1);
        cek_model_sha256(wide, before);
        ok(cek_trainer_create(wide, p.devices, 1, &o, &trainer));
        cek_status st = cek_trainer_step(trainer, &batch, NULL);
        if (st == CEK_OK && (st = cek_trainer_pull(trainer)) != CEK_OK) {
            failures++;
            ck_assert_uint_eq(st, kinds[_i].status);
            cek_model_sha256(wide, after);
            ck_assert_msg(strcmp(before, after) == 0, "%s: the model has parts of a step", fault);
        }
        cek_trainer_free(trainer);
        cek_model_free(wide);
        place_close(&p);
    }
    ck_assert_int_ge(failures, 2);
}
END_TEST

/* What both used is freed, or is left to what may still run. */
START_TEST(a_queue_that_failed_has_ended_and_one_of_a_lost_device_may_not_have)
{
    const cek_trainer_options o = { .size = sizeof o, .batch = SAMPLES };
    const bool lost = _i;
    place p;
    cek_trainer *trainer;
    failing_open(&p, lost ? "later_device_lost@upload#4/0" : "later_internal@upload#4/0");
    ok(cek_trainer_create(p.model, p.devices, 1, &o, &trainer));
    cek_status st = CEK_OK;
    for (int i = 0; i < 8 && st == CEK_OK; i++)
        st = cek_trainer_step(trainer, &batch, NULL);
    ck_assert_uint_eq(st, lost ? CEK_DEVICE_LOST : CEK_INTERNAL);
    ck_assert(cek__replica_quiesce(trainer->team.replicas[0]) == !lost);
    cek_trainer_free(trainer);
    place_close(&p);
}
END_TEST

/* Which is the processor's, for want of another way; what others have of it stays theirs. */
START_TEST(what_a_lost_device_may_still_read_is_not_freed)
{
    const bool lost = _i;
    const cek_trainer_options o = { .size = sizeof o, .batch = SAMPLES, .shares = CEK_SHARES_EQUAL };
    cek_memory_stats stats = { .size = sizeof stats };
    place p;
    cek_trainer *trainer;
    failing_open(&p, lost ? "later_device_lost@upload#9/0" : "later_internal@upload#9/0");
    free(p.devices);
    ok(cek_engine_select(p.engine, "cpu:0,sim:0", CEK_PROFILE_TRAINING, &p.devices, &p.count));
    ck_assert_uint_eq(place_train(&p, &o, STEPS, &trainer), lost ? CEK_DEVICE_LOST : CEK_INTERNAL);
    cek_trainer_free(trainer);
    ok(cek_device_memory_stats(p.devices[0], &stats));
    ck_assert_msg((stats.used_bytes > 0) == lost, "%llu bytes of cpu:0 are in use",
                  (unsigned long long)stats.used_bytes);
    place_close(&p);
}
END_TEST

START_TEST(predictions_fail_the_same_way)
{
    place p;
    cek_predictor *q;
    float outputs[SAMPLES * CLASSES];
    char fault[64];
    const cek_predictor_options o = { .size = sizeof o, .batch = 4 };
    snprintf(fault, sizeof fault, "%s@op_run#3/1", kinds[_i].effect);
    failing_open(&p, fault);
    ok(cek_predictor_create(p.model, p.devices, p.count, &o, &q));
    ck_assert_uint_eq(cek_predictor_run_dataset(q, p.set, outputs), kinds[_i].status);
    ck_assert_msg(strstr(cek_error_text(), "sim:1") != NULL, "%s", cek_error_text());
    ck_assert_int_eq(memcmp(images, images_before, sizeof images), 0);
    cek_predictor_free(q);
    place_close(&p);
}
END_TEST

START_TEST(a_wrong_setting_is_quoted_where_the_device_is_missed)
{
    cek_engine *engine;
    cek_device **devices;
    size_t count;
    setenv("CEKERNELS_SIM_FAULTS", "hang@everything", 1);
    ok(cek_engine_create(NULL, &engine));
    ck_assert_uint_ne(cek_engine_select(engine, "sim", CEK_PROFILE_TRAINING, &devices, &count), CEK_OK);
    ck_assert_msg(strstr(cek_error_text(), "option sim_faults=\"hang@everything\"") != NULL, "%s", cek_error_text());
    cek_engine_free(engine);
}
END_TEST

/* ---- Parameters that a device cannot hold ---------------------------------------------------- */

START_TEST(a_parameter_larger_than_what_a_device_gives_at_once_is_named_with_it_and_the_others_train)
{
    const cek_trainer_options o = { .size = sizeof o, .batch = SAMPLES };
    const char *says =
        "sim:1: parameter 5.weight has 3528 bytes, in one piece of 4864 with what lies beside it, and the "
        "device gives 1024 at once";
    place p;
    cek_trainer *trainer;
    cek_predictor *q;
    setenv("CEKERNELS_SIM_MEMORY", "100M,1024", 1);
    failing_open(&p, "");
    ok(cek_model_fits(p.model, p.devices[0], 0));
    for (int i = 0; i < 2; i++) { /* of f32, too, that begin at multiples of more of them */
        ck_assert_uint_eq(cek_model_fits(p.model, p.devices[1], (cek_dtype[]){ CEK_BF16, CEK_F16 }[i]), CEK_NO_DEVICE);
        ck_assert_msg(strstr(cek_error_text(), "sim:1: parameter 5.weight has 3528 bytes"), "%s", cek_error_text());
    }
    ck_assert_uint_eq(cek_model_fits(p.model, p.devices[0], CEK_I32), CEK_UNSUPPORTED);
    ck_assert_uint_eq(cek_model_fits(p.model, p.devices[1], 0), CEK_NO_DEVICE);
    ck_assert_str_eq(cek_error_text(), says);
    ck_assert_uint_eq(cek_trainer_create(p.model, p.devices, 2, &o, &trainer), CEK_OUT_OF_MEMORY);
    ck_assert_str_eq(cek_error_text(), says);
    ck_assert_uint_eq(cek_predictor_create(p.model, p.devices + 1, 1, NULL, &q), CEK_OUT_OF_MEMORY);
    ck_assert_str_eq(cek_error_text(), says);
    p.count = 1;
    ok(place_train(&p, &o, 2, &trainer));
    cek_trainer_free(trainer);
    place_close(&p);
    unsetenv("CEKERNELS_SIM_MEMORY");
}
END_TEST

/* ---- Deadlines and times of streams ---------------------------------------------------------- */

START_TEST(a_stream_that_hangs_is_left_at_the_callers_deadline)
{
    place p;
    cek_stream *stream;
    cek_marker *marker;
    cek_memory *memory;
    char bytes[64] = { 0 };
    failing_open(&p, "hang@upload/1");
    setenv("CEKERNELS_SIM_WATCHDOG_MS", "60000", 1);
    ok(cek_stream_create(p.devices[1], &stream));
    ok(cek_marker_create(p.devices[1], false, &marker));
    ok(cek_memory_alloc(p.devices[1], sizeof bytes, 0, &memory));
    ok(cek_stream_upload(stream, cek_memory_ref(memory), bytes, sizeof bytes));
    ok(cek_marker_record(marker, stream));
    ck_assert_uint_eq(cek_marker_query(marker), CEK_NOT_READY);
    ck_assert_uint_eq(cek_marker_sync(marker, 1000000), CEK_TIMEOUT);
    ck_assert_uint_eq(cek_stream_sync(stream, 1000000), CEK_TIMEOUT);
    ck_assert_uint_eq(cek_stream_sync(stream, CEK_FOREVER), CEK_DEVICE_LOST); /* of this engine: 20 ms */
    cek_memory_free(memory);
    cek_marker_free(marker);
    cek_stream_free(stream);
    place_close(&p);
}
END_TEST

/* What waits for want of memory is asked again; what always does ends as any wait. */
START_TEST(a_wait_that_has_no_memory_is_no_failure_of_the_work)
{
    place p;
    cek_stream *stream;
    cek_memory *memory;
    char bytes[64] = { 0 };
    failing_open(&p, "out_of_memory@queue_sync#1/0,out_of_memory@queue_sync#1+/1");
    for (int i = 0; i < 2; i++) {
        ok(cek_stream_create(p.devices[i], &stream));
        ok(cek_memory_alloc(p.devices[i], sizeof bytes, 0, &memory));
        ok(cek_stream_upload(stream, cek_memory_ref(memory), bytes, sizeof bytes));
        if (i == 1)
            ck_assert_uint_ne(cek_stream_sync(stream, 1000000), CEK_OK);
        ck_assert_uint_eq(cek_stream_sync(stream, CEK_FOREVER), i == 0 ? CEK_OK : CEK_DEVICE_LOST);
        cek_memory_free(memory);
        cek_stream_free(stream);
    }
    place_close(&p);
}
END_TEST

START_TEST(devices_at_one_to_three_take_three_to_one)
{
    place p;
    uint64_t ns[2];
    static char bytes[3000];
    setenv("CEKERNELS_SIM_LINK", "100M,300M", 1);
    setenv("CEKERNELS_SIM_LATENCY_NS", "0", 1);
    failing_open(&p, "");
    for (int i = 0; i < 2; i++) {
        cek_stream *stream;
        cek_marker *start, *end;
        cek_memory *memory;
        ok(cek_stream_create(p.devices[i], &stream));
        ok(cek_marker_create(p.devices[i], true, &start));
        ok(cek_marker_create(p.devices[i], true, &end));
        ok(cek_memory_alloc(p.devices[i], sizeof bytes, 0, &memory));
        ok(cek_marker_record(start, stream));
        ok(cek_stream_upload(stream, cek_memory_ref(memory), bytes, sizeof bytes));
        ok(cek_marker_record(end, stream));
        ok(cek_stream_sync(stream, CEK_FOREVER));
        ok(cek_marker_elapsed(start, end, &ns[i]));
        cek_memory_free(memory);
        cek_marker_free(start);
        cek_marker_free(end);
        cek_stream_free(stream);
    }
    ck_assert_uint_eq(ns[0], 30000);
    ck_assert_uint_eq(ns[1], 10000);
    place_close(&p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train_sim");
    TCase *c = tcase_create("train_sim");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, whatever_work_fails_the_status_is_documented_and_nothing_of_the_callers_changes, 0,
                        sizeof kinds / sizeof *kinds);
    tcase_add_loop_test(c, so_it_is_on_devices_without_command_buffers, 0, sizeof kinds / sizeof *kinds);
    tcase_add_loop_test(c, so_it_is_where_recording_fails, 0, sizeof recordings / sizeof *recordings);
    tcase_add_test(c, command_buffers_change_no_bit_of_the_weights);
    tcase_add_loop_test(c, so_it_is_where_waits_fail, 0, 4);
    tcase_add_test(c, memory_that_is_never_there_is_told_before_training);
    tcase_add_test(c, memory_that_is_short_once_fails_one_step_at_most);
    tcase_add_test(c, no_step_fails_for_want_of_memory_for_events);
    tcase_add_loop_test(c, what_was_not_pulled_whole_leaves_the_model_as_it_was, 0, sizeof kinds / sizeof *kinds);
    tcase_add_loop_test(c, a_queue_that_failed_has_ended_and_one_of_a_lost_device_may_not_have, 0, 2);
    tcase_add_loop_test(c, what_a_lost_device_may_still_read_is_not_freed, 0, 2);
    tcase_add_loop_test(c, predictions_fail_the_same_way, 0, sizeof kinds / sizeof *kinds);
    tcase_add_test(c, a_wrong_setting_is_quoted_where_the_device_is_missed);
    tcase_add_test(c, a_parameter_larger_than_what_a_device_gives_at_once_is_named_with_it_and_the_others_train);
    tcase_add_test(c, a_stream_that_hangs_is_left_at_the_callers_deadline);
    tcase_add_test(c, a_wait_that_has_no_memory_is_no_failure_of_the_work);
    tcase_add_test(c, devices_at_one_to_three_take_three_to_one);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
