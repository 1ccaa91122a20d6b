/* ahead.c - OpenCL devices train with two steps under way, alone, as two sub-devices and beside the CPU: see ahead.h;
 * and what they move meanwhile is page-locked. */
#include <string.h>

#include "tests/ahead.h"
#include "tests/opencl/shim.h"

static void watch(size_t bytes)
{
    shim.watched = bytes;
    shim.watched_writes = 0;
}

static unsigned uploads(void)
{
    return (unsigned)shim.watched_writes;
}

static void blind(bool blind)
{
    shim.running = blind;
}

/* The plugin waits for what it maps. */
static unsigned waits(void)
{
    return (unsigned)(shim.finishes + shim.waits + shim.map.calls + shim.unmap.calls);
}

static unsigned polls(void)
{
    return (unsigned)shim.event_info.calls;
}

static size_t own(cek_device *of)
{
    return !strncmp(cek_device_name(of), "opencl:", 7);
}

static const ahead_driver driver = { watch, uploads, blind, waits, polls, own };

static const char *const fleets[] = { "opencl:0", "opencl:0,opencl:1", "cpu,opencl:0" };
enum { FLEETS = sizeof fleets / sizeof *fleets };

START_TEST(samples_are_queued_before_the_loss_of_the_step_before_is_known)
{
    ahead_of_the_loss(fleets[_i]);
}
END_TEST

START_TEST(no_call_of_a_step_waits_in_the_driver)
{
    without_waits(fleets[_i]);
}
END_TEST

/* Of memory that is not page-locked a card's driver makes a copy of its own first, or locks it, each time. Beside a
 * processor ranges of parameters come from that one's memory as it is. */
START_TEST(a_step_of_a_card_moves_page_locked_memory_alone)
{
    ahead a;
    shim_be_strict();
    ahead_open(&a, fleets[_i]);
    const int pageable = shim.pageable, maps = shim.map.calls, writes = shim.write.calls, reads = shim.read.calls;
    ahead_steps(&a, AHEAD_STEPS);
    printf("%s: %g writes and %g reads a step\n", fleets[_i], (double)(shim.write.calls - writes) / AHEAD_STEPS,
           (double)(shim.read.calls - reads) / AHEAD_STEPS);
    ck_assert_int_eq(shim.pageable - pageable, 0);
    ck_assert_int_eq(shim.map.calls - maps, 0);
    ck_assert_int_ge(shim.write.calls - writes, 2 * AHEAD_STEPS); /* samples with labels, blocks */
    ck_assert_int_ge(shim.read.calls - reads, AHEAD_STEPS);       /* the loss */
    ahead_close(&a);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("opencl ahead");
    TCase *tcase = tcase_create("ahead");

    setenv("CEKERNELS_PLUGINS", "=cpu,opencl", 1);
    setenv("CEKERNELS_OPENCL_SPLIT", "2", 1);
    setenv("POCL_MAX_PTHREAD_COUNT", "2", 1);
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, samples_are_queued_before_the_loss_of_the_step_before_is_known, 0, FLEETS);
    tcase_add_loop_test(tcase, no_call_of_a_step_waits_in_the_driver, 0, FLEETS);
    tcase_add_loop_test(tcase, a_step_of_a_card_moves_page_locked_memory_alone, 0, 2);
    suite_add_tcase(suite, tcase);
    /* Another process looks: a child that is forked from one that has a driver loaded would hang. */
    if (system("\"$CEKERNELS_BENCH\" devices --json 2>/dev/null | grep -q '\"opencl:1\"'")) {
        puts("skipped: no OpenCL device that can be split in two");
        return 77;
    }
    return suite_run(suite);
}
