/* train_late.c - a device that is late holds up nobody's computation: beside one of which nothing is ever seen to end,
 * another computes its whole step, up to its last segment of backward. Counted at the tables of both devices. */
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "core/device/device.h"
#include "train_bench.h"

/* Three buckets, so three segments each way. */
#define LARGE_NET "flatten linear:1024 relu linear:1024 relu linear:1100 relu linear:5"
enum { WARM = 6 }; /* every stretch at both places for samples is recorded */

static void nap(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* In front of the table of the device that is late: while `late`, nothing has ended. */
static struct {
    cek_plugin table, own;
    atomic_bool late;
    atomic_int asked;
} slow;

static cek_status slow_query(cek_event *event)
{
    atomic_fetch_add(&slow.asked, 1);
    return slow.late ? CEK_NOT_READY : slow.own.event_query(event);
}

static cek_status slow_event_sync(cek_event *event, uint64_t timeout_ns)
{
    while (slow.late)
        nap();
    return slow.own.event_sync(event, timeout_ns);
}

static cek_status slow_queue_sync(cek_queue *queue, uint64_t timeout_ns)
{
    while (slow.late)
        nap();
    return slow.own.queue_sync(queue, timeout_ns);
}

/* In front of the other's: how many stretches of plans it has run. */
static struct {
    cek_plugin table, own;
    atomic_int stretches;
} fast;

static cek_status fast_run(cek_queue *queue, cek_cmdbuf *cmdbuf)
{
    cek_status st = fast.own.cmdbuf_run(queue, cmdbuf);
    atomic_fetch_add(&fast.stretches, 1);
    return st;
}

static void tables_wrap(cek_device *late, cek_device *other)
{
    slow.table = slow.own = *late->plugin;
    slow.table.event_query = slow_query;
    slow.table.event_sync = slow_event_sync;
    slow.table.queue_sync = slow_queue_sync;
    late->plugin = &slow.table;
    fast.table = fast.own = *other->plugin;
    fast.table.cmdbuf_run = fast_run;
    other->plugin = &fast.table;
}

/* Which device is late, and who computes beside it. */
static const struct {
    const char *list;
    size_t late;
    double shares[2];
} pairs[] = {
    { "cpu,sim:0", 1, { 1, 1 } },
    { "sim:0,sim:1", 1, { 3, 1 } },
    { "sim:0,sim:1", 0, { 1, 3 } },
};

START_TEST(a_device_computes_its_whole_step_while_nothing_of_the_other_has_ended)
{
    bench b;
    int before, each;
    cek_batch batch;
    cek_trainer_options o = options_small();
    setenv("CEKERNELS_SIM_DEVICES", "2", 1);
    setenv("CEKERNELS_SIM_SHARED", "0", 1);
    bench_engine(&b, "1", pairs[_i].list);
    tables_wrap(b.devices[pairs[_i].late], b.devices[1 - pairs[_i].late]);
    cek_model_free(b.model);
    ok(cek_model_parse(LARGE_NET, 3, (int64_t[]){ 1, SIDE, SIDE }, &b.model));
    cek_model_init(b.model, 3);
    o.shares = CEK_SHARES_GIVEN;
    o.share_weights = pairs[_i].shares;
    ok(cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer));
    batch = batch_of(0, SAMPLES);
    for (int i = 0; i < WARM; i++)
        step(&b, 0, SAMPLES);
    ok(cek_trainer_pull(b.trainer));
    before = fast.stretches;
    step(&b, 0, SAMPLES);
    ok(cek_trainer_pull(b.trainer));
    each = fast.stretches - before;
    ck_assert_int_eq(each, 3 + 3); /* segments of forward, and of backward */
    slow.asked = 0;
    slow.late = true;
    before = fast.stretches;
    ok(cek_trainer_submit(b.trainer, &batch));
    while (fast.stretches - before < each || slow.asked == 0) /* without end, if it waits for the other */
        nap();
    printf("%s: %d of %d segments ran before anything of %s had ended\n", pairs[_i].list, fast.stretches - before, each,
           cek_device_name(b.devices[pairs[_i].late]));
    slow.late = false;
    ok(cek_trainer_collect(b.trainer, NULL));
    replicas_are_equal(&b);
    ck_assert_int_eq(fast.stretches - before, each);
    bench_close(&b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train_late");
    TCase *tc = tcase_create("train_late");

    tcase_add_loop_test(tc, a_device_computes_its_whole_step_while_nothing_of_the_other_has_ended, 0,
                        sizeof pairs / sizeof *pairs);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
