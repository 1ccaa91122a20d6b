/* device_copies.c - tests of copies between any two devices, in order, and failing on their way. */
#include "devices.h"

enum { COPY_BYTES = 9 * (1 << 20) + 12 }; /* more than two stages, and a tail */

static uint8_t byte_at(uint64_t i, unsigned salt)
{
    return (uint8_t)(i * 2654435761u >> 13 ^ salt);
}

/* From a to b while earlier work of both is still queued; then the source's memory is overwritten. */
static void assert_copies(cek_device *from_device, cek_device *to_device, uint64_t bytes, unsigned salt)
{
    cek_stream *from, *to;
    cek_memory *src, *dst;
    uint8_t *in = malloc(bytes), *out = calloc(1, bytes), *zeros = calloc(1, bytes);

    for (uint64_t i = 0; i < bytes; i++)
        in[i] = byte_at(i, salt);
    assert_ok(cek_stream_create(from_device, &from));
    assert_ok(cek_stream_create(to_device, &to));
    assert_ok(cek_memory_alloc(from_device, bytes, 0, &src));
    assert_ok(cek_memory_alloc(to_device, bytes + 256, 0, &dst));
    cek_ref to_ref = { cek_memory_ref(dst).mem, cek_memory_ref(dst).offset + 256 };
    assert_ok(cek_stream_upload(to, to_ref, zeros, bytes)); /* must not come after the copy */
    assert_ok(cek_stream_upload(from, cek_memory_ref(src), in, bytes));
    assert_ok(cek_stream_copy(to, to_ref, from, cek_memory_ref(src), bytes));
    assert_ok(cek_stream_download(to, out, to_ref, bytes));
    assert_ok(cek_stream_sync(to, CEK_FOREVER));
    ck_assert_msg(memcmp(in, out, bytes) == 0, "%s to %s: wrong bytes", cek_device_name(from_device),
                  cek_device_name(to_device));
    cek_stream_free(from);
    cek_stream_free(to);
    cek_memory_free(src);
    cek_memory_free(dst);
    free(in);
    free(out);
    free(zeros);
}

START_TEST(copies_arrive_between_every_two_devices)
{
    const char *files[] = { fake_install("near.so"),        fake_install("far-lazy.so"),
                            fake_install("also-lazy.so"),   fake_install("joined-linked.so"),
                            fake_install("page-pinned.so"), NULL };
    fake_control *joined;

    engine = engine_of_files(files);
    joined = fake_steer(files[3]);
    ck_assert_uint_eq(cek_engine_device_count(engine), 10);
    for (size_t i = 0; i < 10; i++)
        for (size_t k = 0; k < 10; k++) {
            assert_copies(cek_engine_device(engine, i), cek_engine_device(engine, k), 4, (unsigned)(10 * i + k));
            assert_copies(cek_engine_device(engine, i), cek_engine_device(engine, k), i == k ? 5000 : COPY_BYTES,
                          (unsigned)(10 * i + k));
        }
    ck_assert_int_eq(joined->copies, 4); /* its two devices use their link, twice in either direction */
    cek_engine_free(engine);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(fake_steer(files[i])->live, 0);
}
END_TEST

START_TEST(a_copy_that_fails_on_its_way_is_told_and_leaves_the_device_usable)
{
    cek_device *other;
    cek_stream *from, *to;
    cek_memory *src, *dst;

    start("a-lazy.so");
    other = cek_engine_device(engine, 1);
    assert_ok(cek_stream_create(device, &from));
    assert_ok(cek_stream_create(other, &to));
    assert_ok(cek_memory_alloc(device, 100, 0, &src));
    assert_ok(cek_memory_alloc(other, 100, 0, &dst));
    assert_fails(cek_stream_copy(to, (cek_ref){ 0 }, from, cek_memory_ref(src), 4), CEK_INVALID, "a:1", "no memory");
    assert_ok(cek_stream_copy(to, (cek_ref){ 0 }, from, (cek_ref){ 0 }, 0));
    control->poison = true;
    assert_fails(cek_stream_copy(to, cek_memory_ref(dst), from, cek_memory_ref(src), 100), CEK_INTERNAL, "a:0",
                 "caught fire");
    cek_stream_free(from);
    cek_stream_free(to);
    cek_memory_free(src);
    cek_memory_free(dst);
    assert_copies(device, other, 1000, 3);
    stop();
}
END_TEST

/* Memories share what a device gives at once: it cannot tell where one of them ends. */
START_TEST(copies_end_where_either_memory_does)
{
    cek_stream *to;
    cek_memory *src, *dst;

    start("joined-linked.so");
    assert_ok(cek_stream_create(cek_engine_device(engine, 1), &to));
    assert_ok(cek_memory_alloc(device, 200, 0, &src));
    assert_ok(cek_memory_alloc(cek_engine_device(engine, 1), 100, 0, &dst));
    assert_fails(cek_stream_pull(to, cek_memory_ref(dst), src, 0, 200), CEK_INVALID, "joined:1", "of a memory of 100");
    assert_fails(cek_stream_pull(to, cek_memory_ref(dst), src, 101, 100), CEK_INVALID, "joined:0",
                 "100 bytes at 101 of 200");
    assert_ok(cek_stream_pull(to, cek_memory_ref(dst), src, 100, 100));
    assert_ok(cek_stream_sync(to, CEK_FOREVER));
    cek_stream_free(to);
    cek_memory_free(src);
    cek_memory_free(dst);
    stop();
}
END_TEST

START_TEST(a_device_lost_during_a_copy_is_told)
{
    cek_stream *from, *to;
    cek_memory *src, *dst;

    start("a-lazy.so");
    assert_ok(cek_stream_create(device, &from));
    assert_ok(cek_stream_create(cek_engine_device(engine, 1), &to));
    assert_ok(cek_memory_alloc(device, COPY_BYTES, 0, &src));
    assert_ok(cek_memory_alloc(cek_engine_device(engine, 1), COPY_BYTES, 0, &dst));
    control->lose_after = 3; /* in the second stage */
    assert_fails(cek_stream_copy(to, cek_memory_ref(dst), from, cek_memory_ref(src), COPY_BYTES), CEK_DEVICE_LOST,
                 "a:", "the fake cable was pulled");
    cek_stream_free(from);
    cek_stream_free(to);
    cek_memory_free(src);
    cek_memory_free(dst);
    stop();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("device copies");
    TCase *tc = tcase_create("device copies");

    tcase_add_checked_fixture(tc, scratch_make, scratch_remove);
    tcase_add_test(tc, copies_arrive_between_every_two_devices);
    tcase_add_test(tc, a_copy_that_fails_on_its_way_is_told_and_leaves_the_device_usable);
    tcase_add_test(tc, copies_end_where_either_memory_does);
    if (strstr(getenv("SANITIZERS") != NULL ? getenv("SANITIZERS") : "", "address") == NULL)
        tcase_add_test(tc, a_device_lost_during_a_copy_is_told); /* leaks the buffer, as it must */
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
