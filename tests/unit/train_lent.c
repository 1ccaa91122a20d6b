/* train_lent.c - tests of the processor's memory that is page-locked for devices that read it: as long as there is a
 * trainer, whatever becomes of the devices, and never longer than the memory. */
#include <stdatomic.h>

#include "core/device/engine.h"
#include "train_place.h"

/* sim:0 and sim:1 behind a table that counts what is registered with each, cpu:0 behind one that counts its end. */
static cek_plugin table, own, processor, processors_own;
static cek_device *cpu, *second;
static atomic_int registered[2], ever[2], too_late, closed;

static cek_status counted_register(cek_dev *dev, void *ptr, uint64_t bytes)
{
    cek_status st = own.host_register(dev, ptr, bytes);
    int i = dev == second->dev;

    registered[i] += st == CEK_OK;
    ever[i] += st == CEK_OK;
    return st;
}

/* Before the replica is freed: its memory is in use. */
static void counted_unregister(cek_dev *dev, void *ptr)
{
    cek_memory_stats now = { .size = sizeof now };

    too_late += cek_device_memory_stats(cpu, &now) != CEK_OK || now.used_bytes == 0;
    registered[dev == second->dev]--;
    own.host_unregister(dev, ptr);
}

static void counted_close(cek_dev *dev)
{
    closed++;
    processors_own.device_close(dev);
}

static uint64_t used(void)
{
    cek_memory_stats now = { .size = sizeof now };

    ok(cek_device_memory_stats(cpu, &now));
    return now.used_bytes;
}

/* Trains on the processor and two readers, of which sim:1 fails so. Nothing is registered with sim:0 behind that. */
static cek_status run(place *p, const char *faults)
{
    const cek_trainer_options o = { .size = sizeof o, .batch = SAMPLES, .shares = CEK_SHARES_EQUAL };
    cek_trainer *trainer = NULL;
    cek_status st;

    setenv("CEKERNELS_SIM_DEVICES", "2", 1);
    setenv("CEKERNELS_TIMEOUT", "0.3", 1);
    setenv("CEKERNELS_SIM_WATCHDOG_MS", "3600000", 1);
    setenv("CEKERNELS_SIM_FAULTS", faults, 1);
    place_open(p, "cpu:0,sim:0,sim:1");
    cpu = p->devices[0];
    second = p->devices[2];
    table = own = *second->plugin;
    processor = processors_own = *cpu->plugin;
    table.host_register = counted_register;
    table.host_unregister = counted_unregister;
    processor.device_close = counted_close;
    p->devices[0]->plugin = &processor;
    p->devices[1]->plugin = p->devices[2]->plugin = &table;
    st = place_train(p, &o, 10, &trainer);
    ck_assert_int_gt(ever[0], 0);
    ck_assert_int_eq(registered[0], ever[0]);
    ck_assert_int_eq(registered[1], ever[0]);
    cek_trainer_free(trainer);
    ck_assert_int_eq(registered[0], 0);
    ck_assert_int_eq(too_late, 0);
    return st;
}

START_TEST(what_was_registered_is_given_back_before_the_memory_and_the_engine_ends)
{
    place p;

    ck_assert_uint_eq(run(&p, ""), CEK_OK);
    ck_assert_int_eq(registered[1], 0);
    ck_assert_uint_eq(used(), 0);
    ck_assert_uint_eq(p.engine->references, 1);
    place_close(&p);
    ck_assert_int_eq(closed, 1);
}
END_TEST

/* Whether its plugin is not called any more, or says so itself and takes back what was registered. */
START_TEST(memory_that_a_lost_device_may_read_is_never_freed)
{
    static const char *const faults[] = { "hang@op_run#20/1", "device_lost@op_run#20/1" };
    place p;

    ck_assert_uint_eq(run(&p, faults[_i]), CEK_DEVICE_LOST);
    ck_assert_int_eq(registered[1], _i == 0 ? ever[1] : 0);
    ck_assert_uint_gt(used(), 0);
    place_close(&p);
    ck_assert_int_eq(closed, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("train_lent");
    TCase *c = tcase_create("train_lent");

    tcase_set_timeout(c, 60);
    tcase_add_test(c, what_was_registered_is_given_back_before_the_memory_and_the_engine_ends);
    tcase_add_loop_test(c, memory_that_a_lost_device_may_read_is_never_freed, 0, 2);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
