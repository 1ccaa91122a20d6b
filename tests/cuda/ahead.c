/* ahead.c - CUDA devices train with two steps under way, alone, two together and beside the CPU, over the fake driver (see
 * ahead.h), and no copy waits in the driver. */
#include "tests/ahead.h"
#include "tests/cuda/life.h"

static void watch(size_t bytes)
{
    fake.watch(bytes);
}

static unsigned uploads(void)
{
    return fake.watched();
}

static void blind(bool blind)
{
    fake.blind(blind);
}

static unsigned waits(void)
{
    return fake.waits();
}

static unsigned polls(void)
{
    return fake.calls("cuEventQuery") + fake.calls("cuStreamQuery");
}

static size_t own(cek_device *of)
{
    return !strncmp(cek_device_name(of), "cuda:", 5);
}

static const ahead_driver driver = { watch, uploads, blind, waits, polls, own };

static const char *const fleets[] = { "cuda:0", "cuda:0,cuda:1", "cpu,cuda:0" };
enum { FLEETS = sizeof fleets / sizeof *fleets };

START_TEST(samples_are_queued_before_the_loss_of_the_step_before_is_known)
{
    fake_for_engines("=cpu,cuda");
    ahead_of_the_loss(fleets[_i]);
}
END_TEST

START_TEST(no_call_of_a_step_waits_in_the_driver)
{
    fake_for_engines("=cpu,cuda");
    without_waits(fleets[_i]);
}
END_TEST

enum { COPY_BYTES = (9 << 20) + 12 }; /* more than both halves of a buffer */

/* There and back between the processor and a card. */
START_TEST(copies_from_and_to_the_processor_wait_in_no_driver)
{
    static unsigned char given[COPY_BYTES], got[COPY_BYTES];
    cek_engine *engine;
    cek_device *devices[2];
    cek_memory *memories[3];
    cek_stream *streams[2];
    fake_for_engines("=cpu,cuda");
    for (size_t i = 0; i < COPY_BYTES; i++)
        given[i] = (unsigned char)(i * 2654435761u >> 13);
    ok(cek_engine_create(NULL, &engine));
    for (int i = 0; i < 2; i++) {
        ok(cek_engine_find(engine, i ? "cuda:0" : "cpu:0", &devices[i]));
        ok(cek_stream_create(devices[i], &streams[i]));
    }
    for (int i = 0; i < 3; i++)
        ok(cek_memory_alloc(devices[i & 1], COPY_BYTES, CEK_MEMORY_ALONE, &memories[i]));
    const cek_ref first = cek_memory_ref(memories[0]), card = cek_memory_ref(memories[1]),
                  last = cek_memory_ref(memories[2]);
    ok(cek_stream_upload(streams[0], first, given, COPY_BYTES));
    unsigned waits = fake.waits();
    ok(cek_stream_copy(streams[1], card, streams[0], first, COPY_BYTES));
    ok(cek_stream_copy(streams[0], last, streams[1], card, COPY_BYTES));
    ok(cek_stream_copy(streams[1], card, streams[0], first, 1000)); /* small: as it is */
    ck_assert_uint_eq(fake.waits() - waits, 0);
    ok(cek_stream_download(streams[0], got, last, COPY_BYTES));
    ok(cek_stream_sync(streams[0], CEK_FOREVER));
    ck_assert_mem_eq(got, given, COPY_BYTES);
    for (int i = 0; i < 3; i++)
        cek_memory_free(memories[i]);
    for (int i = 0; i < 2; i++)
        cek_stream_free(streams[i]);
    cek_engine_free(engine);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda ahead");
    TCase *tcase = tcase_create("ahead");
    tcase_add_loop_test(tcase, samples_are_queued_before_the_loss_of_the_step_before_is_known, 0, FLEETS);
    tcase_add_loop_test(tcase, no_call_of_a_step_waits_in_the_driver, 0, FLEETS);
    tcase_add_test(tcase, copies_from_and_to_the_processor_wait_in_no_driver);
    suite_add_tcase(suite, tcase);
    return fake_suite_run(suite);
}
