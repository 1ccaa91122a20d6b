/* train_hangs.c - calls into a device that do not return, and work there that does not end, without any watchdog: at
 * every kind of call of a training run, with one of two devices and with the only one. Whatever hangs, the library
 * tells which device, frees what it can, and lets the process end. What is merely slow is no hang. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/device/device.h"
#include "train_place.h"

enum { STEPS = 30 };

static const cek_batch batch = {
    .size = sizeof batch, .count = SAMPLES, .inputs = images, .targets = labels, .input_type = CEK_F32
};

static const char *const wholes[] = { "sim", "sim:1" }; /* one of two devices hangs, or the only one */

static uint32_t shares = CEK_SHARES_EQUAL; /* so that every run makes the same calls */
static const char *timeout = "0.2";

static void hanging_open(place *p, const char *devices, const char *faults)
{
    setenv("CEKERNELS_SIM_DEVICES", "2", 1);
    setenv("CEKERNELS_SIM_WATCHDOG_MS", "3600000", 1);
    setenv("CEKERNELS_TIMEOUT", timeout, 1);
    setenv("CEKERNELS_MAKING_TIMEOUT", "1", 1);
    setenv("CEKERNELS_SIM_FAULTS", faults, 1);
    place_open(p, devices);
}

static cek_status train(place *p, double max_norm, cek_trainer **trainer)
{
    const cek_trainer_options o = { .size = sizeof o, .batch = SAMPLES, .max_norm = max_norm, .shares = shares };

    return place_train(p, &o, STEPS, trainer);
}

/* When things happened, in beats of a thread that sleeps in between: what keeps all of this process from running, a
 * loaded machine say, keeps that thread from beating. */
enum { BEAT_NS = 5 * 1000 * 1000, BEATS = 1000 * 1000 * 1000 / BEAT_NS }; /* of a second */
static atomic_int beats, struck_at, lost_at;
static int told_at, freed_at;

/* One run with one hang: whether it was met before the trainer was freed. */
static bool run_is_lost(const char *devices, const char *fault)
{
    place p;
    cek_trainer *trainer = NULL;
    cek_status st;
    char silence[32];
    const char *text;

    snprintf(silence, sizeof silence, " for %s s", timeout);
    hanging_open(&p, devices, fault);
    st = train(&p, 1, &trainer);
    told_at = beats;
    text = cek_error_text();
    ck_assert_msg(st == CEK_OK || st == CEK_DEVICE_LOST, "%s: %s: %s", fault, cek_status_name(st), text);
    if (st != CEK_OK) {
        ck_assert_msg(strstr(text, "sim:1: ") != NULL, "%s: %s", fault, text);
        ck_assert_msg(strstr(text, silence) != NULL || strstr(text, " for 1 s") != NULL, "%s: %s", fault, text);
        if (trainer != NULL)
            ck_assert_uint_eq(cek_trainer_step(trainer, &batch, NULL), CEK_DEVICE_LOST);
    }
    cek_trainer_free(trainer);
    freed_at = beats;
    place_close(&p);
    return st != CEK_OK;
}

/* ---- every call ---- */

/* When it is met: while training, only as the trainer is freed, or by two devices alone. */
static const struct {
    const char *call;
    enum { IN_TRAINING, BY_TWO, AT_THE_END } when;
} calls[] = {
    { "device_open", IN_TRAINING },
    { "device_memory", IN_TRAINING },
    { "mem_alloc", IN_TRAINING },
    { "mem_alloc#9", IN_TRAINING },
    { "host_alloc", IN_TRAINING },
    { "queue_create", IN_TRAINING },
    { "queue_create#2", IN_TRAINING },
    { "event_create", IN_TRAINING },
    { "op_create#4", IN_TRAINING },
    { "cmdbuf_create", IN_TRAINING },
    { "cmdbuf_create#2", IN_TRAINING },
    { "upload", IN_TRAINING },
    { "upload#9", IN_TRAINING },
    { "upload#20", IN_TRAINING },
    { "download#3", IN_TRAINING },
    { "copy", BY_TWO },
    { "fill", IN_TRAINING },
    { "update#3", IN_TRAINING },
    { "op_run#5", IN_TRAINING },
    { "op_run#20", IN_TRAINING },
    { "cmdbuf_run", IN_TRAINING },
    { "cmdbuf_run#9", IN_TRAINING },
    { "event_record#20", IN_TRAINING },
    { "event_wait#7", IN_TRAINING },
    { "queue_sync", IN_TRAINING },
    { "queue_sync#3", IN_TRAINING },
    { "event_query#30", IN_TRAINING },
    { "mem_free", AT_THE_END },
    { "queue_destroy", AT_THE_END },
    { "queue_destroy#2", AT_THE_END },
    { "event_destroy#5", AT_THE_END },
    { "op_destroy#3", AT_THE_END },
    { "cmdbuf_destroy", AT_THE_END },
    { "host_free", AT_THE_END },
};
enum { CALLS = sizeof calls / sizeof *calls };

START_TEST(a_call_that_never_returns_ends_with_the_loss_of_the_device)
{
    char fault[64];
    bool pair = _i % 2 == 0, met = calls[_i / 2].when == IN_TRAINING || (pair && calls[_i / 2].when == BY_TWO);

    snprintf(fault, sizeof fault, "block@%s/1", calls[_i / 2].call);
    ck_assert_msg(run_is_lost(wholes[_i % 2], fault) == met, "%s", fault);
}
END_TEST

/* A device that reads the processor's memory has it registered when a trainer is made, and given back at its end. */
START_TEST(so_it_is_where_the_hosts_memory_is_registered)
{
    ck_assert(run_is_lost("cpu:0,sim:1", "block@host_register#2/1"));
    ck_assert(!run_is_lost("cpu:0,sim:1", "block@host_unregister/1"));
}
END_TEST

START_TEST(so_it_is_with_a_wait_of_the_only_device)
{
    ck_assert(run_is_lost("sim:1", "block@event_sync#3/1"));
}
END_TEST

/* Beside a device that works inline, which goes on using what is its own. */
START_TEST(so_it_is_beside_the_processor)
{
    static const char *const faults[] = { "block@op_run#9/1", "block@download#4/1", "hang@op_run#30/1" };

    ck_assert(run_is_lost("cpu,sim:1", faults[_i]));
}
END_TEST

/* Links are measured first, and how long each step took. The device that hangs is by far the faster, so that it has a
 * share whatever the machine does besides. */
START_TEST(so_it_is_where_shares_follow_measurements)
{
    static const char *const faults[] = { "block@download/1", "block@event_elapsed#2/1", "block@event_elapsed#9/1",
                                          "block@cmdbuf_run#4/1" };

    shares = CEK_SHARES_AUTO;
    setenv("CEKERNELS_SIM_CLOCK", "real", 1);
    setenv("CEKERNELS_SIM_LAUNCH_NS", "1000000,0", 1);
    ck_assert(run_is_lost("sim", faults[_i]));
}
END_TEST

START_TEST(predictions_and_evaluations_end_the_same_way)
{
    static const char *const faults[] = { "block@op_run#3/1", "block@cmdbuf_run#2/1", "block@download#2/1",
                                          "hang@op_run#3/1", "block@mem_free/1" };
    const cek_predictor_options o = { .size = sizeof o, .batch = 4 };
    const cek_trainer_options t = { .size = sizeof t, .batch = 4, .shares = shares };
    float *outputs = malloc(sizeof(float) * SAMPLES * CLASSES); /* which the device never gets to see */
    cek_status want = strstr(faults[_i / 2], "mem_free") != NULL ? CEK_OK : CEK_DEVICE_LOST;
    cek_metrics metrics = { .size = sizeof metrics };
    cek_predictor *predictor;
    cek_trainer *trainer;
    place p;

    hanging_open(&p, wholes[_i % 2], faults[_i / 2]);
    ok(cek_predictor_create(p.model, p.devices, p.count, &o, &predictor));
    ck_assert_uint_eq(cek_predictor_run_dataset(predictor, p.set, outputs), want);
    ck_assert(want == CEK_OK || strstr(cek_error_text(), "sim:1: ") != NULL);
    free(outputs);
    cek_predictor_free(predictor);
    place_close(&p);
    hanging_open(&p, wholes[_i % 2], faults[_i / 2]);
    ok(cek_trainer_create(p.model, p.devices, p.count, &t, &trainer));
    ck_assert_uint_eq(cek_trainer_evaluate(trainer, p.set, &metrics), want);
    ck_assert(want == CEK_OK || strstr(cek_error_text(), "sim:1: ") != NULL);
    cek_trainer_free(trainer);
    place_close(&p);
}
END_TEST

/* ---- every seventh call ---- */

enum { EVERY = 7, SAMPLE = 5, CALLS_AT_LEAST = 350 }; /* that a run makes of either kind */

/* Of each seventh call of the run either all, in the long test, or a few by chance. What one wait alone does not see
 * ends with that wait's slice: so work hangs, and calls block. */
START_TEST(so_it_is_at_every_seventh_call_of_a_run)
{
    static const char *const calls_of[] = { "block@any", "hang@enqueue" };
    unsigned seed = (unsigned)time(NULL) + (unsigned)_i;
    bool lost = true;
    char fault[64];
    int at = 1;

    if (getenv("CEKERNELS_TEST_LONG") != NULL) {
        for (; lost; at += EVERY) {
            snprintf(fault, sizeof fault, "%s#%d/1", calls_of[_i / 2], at);
            lost = run_is_lost(wholes[_i % 2], fault);
        }
        ck_assert_int_gt(at, CALLS_AT_LEAST);
        return;
    }
    printf("seed %u\n", seed);
    srand(seed);
    for (int n = 0; n < SAMPLE; n++) {
        at = 1 + EVERY * (rand() % (CALLS_AT_LEAST / EVERY));
        snprintf(fault, sizeof fault, "%s#%d/1", calls_of[_i / 2], at);
        ck_assert_msg(run_is_lost(wholes[_i % 2], fault), "%s", fault);
    }
}
END_TEST

/* ---- how long it takes ---- */

static void *beat(void *arg)
{
    (void)arg;
    for (;;) {
        nanosleep(&(struct timespec){ .tv_nsec = BEAT_NS }, NULL);
        atomic_fetch_add(&beats, 1);
    }
    return NULL;
}

static void on_log(void *user, int level, const char *text)
{
    (void)user;
    (void)level;
    if (strstr(text, "sim:1: ") != NULL && strstr(text, ": struck by ") != NULL)
        struck_at = beats;
    if (strstr(text, "sim:1: ") != NULL && strstr(text, " for 1 s") != NULL)
        lost_at = beats;
}

static const char *const timed[] = { "block@op_create#4", "block@upload#9", "block@op_run#20",
                                     "hang@op_run#20",    "block@mem_free", "hang@enqueue#300" };
enum { TIMED = sizeof timed / sizeof *timed };

/* A few, or in the long test every call of the table. */
static const char *timed_fault(int i)
{
    static char fault[64];

    if (i >= TIMED)
        snprintf(fault, sizeof fault, "block@%s/1", calls[i - TIMED].call);
    else
        snprintf(fault, sizeof fault, "%s/1", timed[i]);
    return fault;
}

START_TEST(an_error_comes_within_twice_the_time_out_and_free_returns_within_one_more)
{
    const char *fault = timed_fault(_i / 2);
    pthread_t drummer;
    bool in_training;
    int start, end;

    timeout = "1";
    ck_assert_int_eq(pthread_create(&drummer, NULL, beat, NULL), 0);
    cek_log_set(on_log, NULL, CEK_LOG_INFO);
    struck_at = -1;
    in_training = run_is_lost(wholes[_i % 2], fault);
    if (struck_at < 0) /* one device makes no copies */
        return;
    start = struck_at;
    end = in_training ? told_at : lost_at;
    printf("%s: %s after %d and %d of %d beats\n", wholes[_i % 2], fault, end - start, freed_at - end, BEATS);
    ck_assert_msg(end - start <= 2 * BEATS, "%s: told after %d beats of %d", fault, end - start, BEATS);
    ck_assert_msg(freed_at - end <= BEATS, "%s: freed after %d beats of %d", fault, freed_at - end, BEATS);
}
END_TEST

/* ---- what is no hang ---- */

START_TEST(a_call_that_takes_a_third_of_the_time_out_is_no_hang)
{
    static const char *const faults[] = { "sleep@any#100/1,sleep@any#300/1", "sleep@op_run#5/1,sleep@queue_sync#3/1",
                                          "sleep@op_create/1,sleep@mem_free/1,sleep@queue_destroy/1" };
    cek_trainer *trainer = NULL;
    place p;

    timeout = "0.6";
    hanging_open(&p, wholes[_i % 2], faults[_i / 2]);
    ok(train(&p, 0, &trainer));
    cek_trainer_free(trainer);
    place_close(&p);
}
END_TEST

/* Some forty commands of 20 ms each. */
START_TEST(a_long_step_of_short_commands_is_no_hang)
{
    const cek_trainer_options o = { .size = sizeof o, .batch = SAMPLES, .shares = shares };
    cek_trainer *trainer;
    place p;

    setenv("CEKERNELS_SIM_CLOCK", "real", 1);
    setenv("CEKERNELS_SIM_LAUNCH_NS", "20000000", 1);
    timeout = "0.3";
    hanging_open(&p, wholes[_i], "");
    ok(cek_trainer_create(p.model, p.devices, p.count, &o, &trainer));
    ok(cek_trainer_step(trainer, &batch, NULL));
    cek_trainer_free(trainer);
    place_close(&p);
}
END_TEST

/* In front of the only device's table: its thread stays in the 14th run for twice the time-out, while the commands
 * before it, of 40 ms each, go on finishing. */
static struct {
    cek_plugin table, own;
    int runs;
} slow;

static cek_status slow_run(cek_queue *queue, const cek_op *op, const cek_ref *operands, uint32_t count,
                           cek_ref workspace)
{
    if (++slow.runs == 14)
        usleep(600000);
    return slow.own.op_run(queue, op, operands, count, workspace);
}

START_TEST(a_call_longer_than_the_time_out_is_no_hang_while_commands_finish)
{
    const cek_trainer_options o = { .size = sizeof o, .batch = SAMPLES, .shares = shares };
    cek_trainer *trainer;
    place p;

    setenv("CEKERNELS_SIM_CLOCK", "real", 1);
    setenv("CEKERNELS_SIM_LAUNCH_NS", "40000000", 1);
    timeout = "0.3";
    hanging_open(&p, "sim:1", "");
    slow.table = slow.own = *p.devices[0]->plugin;
    slow.table.op_run = slow_run;
    p.devices[0]->plugin = &slow.table;
    ok(cek_trainer_create(p.model, p.devices, p.count, &o, &trainer));
    ok(cek_trainer_step(trainer, &batch, NULL));
    ck_assert_int_gt(slow.runs, 14);
    cek_trainer_free(trainer);
    place_close(&p);
}
END_TEST

/* For twice the time-out, while a call takes a third of it. */
START_TEST(a_process_that_was_stopped_has_not_hung)
{
    cek_trainer *trainer = NULL;
    pid_t stopper;
    place p;

    timeout = "0.6";
    hanging_open(&p, wholes[_i], "sleep@op_run#40+/1");
    stopper = fork();
    ck_assert_int_ge(stopper, 0);
    if (stopper == 0) {
        usleep(700000);
        kill(getppid(), SIGSTOP);
        usleep(1200000);
        kill(getppid(), SIGCONT);
        _exit(0);
    }
    {
        const cek_trainer_options o = { .size = sizeof o, .batch = SAMPLES, .shares = shares };
        ok(cek_trainer_create(p.model, p.devices, p.count, &o, &trainer));
        for (int i = 0; i < 3; i++)
            ok(cek_trainer_step(trainer, &batch, NULL));
    }
    ck_assert_int_eq(waitpid(stopper, NULL, 0), stopper);
    cek_trainer_free(trainer);
    place_close(&p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train_hangs");
    TCase *c = tcase_create("train_hangs");

    bool all = getenv("CEKERNELS_TEST_LONG") != NULL;

    tcase_set_timeout(c, all ? 3600 : 60);
    tcase_add_loop_test(c, a_call_that_never_returns_ends_with_the_loss_of_the_device, 0, 2 * CALLS);
    tcase_add_test(c, so_it_is_where_the_hosts_memory_is_registered);
    tcase_add_test(c, so_it_is_with_a_wait_of_the_only_device);
    tcase_add_loop_test(c, so_it_is_beside_the_processor, 0, 3);
    tcase_add_loop_test(c, so_it_is_where_shares_follow_measurements, 0, 4);
    tcase_add_loop_test(c, predictions_and_evaluations_end_the_same_way, 0, 10);
    tcase_add_loop_test(c, so_it_is_at_every_seventh_call_of_a_run, 0, 4);
    tcase_add_loop_test(c, an_error_comes_within_twice_the_time_out_and_free_returns_within_one_more, 0,
                        2 * (all ? TIMED + CALLS : TIMED));
    tcase_add_loop_test(c, a_call_that_takes_a_third_of_the_time_out_is_no_hang, 0, 6);
    tcase_add_loop_test(c, a_long_step_of_short_commands_is_no_hang, 0, 2);
    tcase_add_test(c, a_call_longer_than_the_time_out_is_no_hang_while_commands_finish);
    tcase_add_loop_test(c, a_process_that_was_stopped_has_not_hung, 0, 2);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
