/* ahead.c - CUDA devices train with two steps under way, alone, two together and beside the CPU, over the fake driver
 * (see ahead.h), and no copy waits in the driver. */
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

/* Parameters in two buckets, of more bytes than a driver takes over at once. */
#define LARGE_NET "flatten linear:256 relu linear:160 relu linear:5"
static char told[4096];

static void tell(void *user, int level, const char *text)
{
    const size_t at = strlen(told);
    (void)user, (void)level;
    snprintf(told + at, sizeof told - at, "%s\n", text);
}

/* Cards read the processor's memory. Returns the calls of a driver that waited in some steps. */
static unsigned beside_the_processor(const char *list, unsigned *registered)
{
    const cek_trainer_options o = { .size = sizeof o, .batch = AHEAD_BATCH, .depth = 2, .shares = CEK_SHARES_EQUAL };
    ahead a = { 0 };
    const unsigned before = fake.calls("cuMemHostRegister"), ended = fake.calls("cuMemHostUnregister"),
                   live = fake.live();
    ok(cek_engine_create(NULL, &a.engine));
    ok(cek_engine_select(a.engine, list, CEK_PROFILE_TRAINING, &a.devices, &a.count));
    ok(cek_model_parse(LARGE_NET, 3, (int64_t[]){ 1, AHEAD_SIDE, AHEAD_SIDE }, &a.model));
    cek_model_init(a.model, 3);
    ok(cek_trainer_create(a.model, a.devices, a.count, &o, &a.trainer));
    *registered = fake.calls("cuMemHostRegister") - before;
    ahead_steps(&a, AHEAD_WARM);
    const unsigned waits = fake.waits();
    ahead_steps(&a, AHEAD_STEPS);
    const unsigned waited = fake.waits() - waits;
    ck_assert_uint_eq(fake.calls("cuMemHostRegister") - before, *registered);
    ck_assert_uint_eq(fake.calls("cuMemHostUnregister") - ended, 0);
    ahead_close(&a);
    ck_assert_uint_eq(fake.live(), live); /* what is registered counts too */
    return waited;
}

/* Parameters and gradients of each bucket once, for both cards; given back while the memory is there, which the
 * driver looks at. */
START_TEST(what_cards_read_of_the_processors_is_page_locked_once)
{
    unsigned registered, ended;
    fake_for_engines("=cpu,cuda");
    ended = fake.calls("cuMemHostUnregister");
    ck_assert_uint_eq(beside_the_processor("cpu,cuda:0,cuda:1", &registered), 0);
    ck_assert_uint_ge(registered, 2);
    ck_assert_uint_eq(fake.calls("cuMemHostUnregister") - ended, registered);
    ck_assert_uint_eq(registered % 2, 0);
}
END_TEST

/* Not permitted, no memory, and what no one has heard of. */
START_TEST(where_the_driver_refuses_that_copies_wait_and_the_log_says_why)
{
    static const uint32_t errors[] = { 800, 2, UNKNOWN };
    static const char *const names[] = { "cuMemHostRegister", "CUDA_ERROR_OUT_OF_MEMORY", "cuMemHostRegister" };
    unsigned registered;
    fake_for_engines("=cpu,cuda");
    cek_log_set(tell, NULL, CEK_LOG_INFO);
    fake.inject("cuMemHostRegister", 1, errors[_i]);
    ck_assert_uint_gt(beside_the_processor("cpu,cuda:0", &registered), 0);
    cek_log_set(NULL, NULL, CEK_LOG_ERROR);
    const char *line = strstr(told, "cuda:0: copies from the memory of cpu:0, which is not page-locked, are slower: ");
    ck_assert_msg(line && strstr(line, names[_i]), "%s", told);
    ck_assert_uint_eq(registered, 1);
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
    tcase_add_test(tcase, what_cards_read_of_the_processors_is_page_locked_once);
    tcase_add_loop_test(tcase, where_the_driver_refuses_that_copies_wait_and_the_log_says_why, 0, 3);
    suite_add_tcase(suite, tcase);
    return fake_suite_run(suite);
}
