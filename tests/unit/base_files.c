/* base_files.c - tests of core/base/file.h: files are replaced whole or not at all, whatever fails. */
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>

#include "core/base/alloc.h"
#include "core/base/fault.h"
#include "core/base/file.h"
#include "scratch.h"

static void assert_holds(const char *path, const char *expected)
{
    void *data;
    size_t size;

    assert_ok(cek__file_read(path, 1 << 20, &data, &size));
    ck_assert_uint_eq(size, strlen(expected));
    ck_assert_str_eq(data, expected);
    free(data);
}

/* As savers do it. */
static cek_status file_replace(const char *path, const void *data, size_t size)
{
    cek_status st;
    cek__file_writer *writer = NULL;

    CEK_TRY(cek__file_create(path, &writer));
    CEK_TRY(cek__file_write(writer, data, size));
    return cek__file_commit(&writer);
out:
    cek__file_abandon(&writer);
    return st;
}

START_TEST(files_are_replaced_whole_and_keep_their_mode)
{
    const char *path = scratch_path("a");
    struct stat info;

    assert_ok(file_replace(path, "one", 3));
    assert_holds(path, "one");
    ck_assert_int_eq(chmod(path, 0640), 0);
    assert_ok(file_replace(path, "second", 6));
    assert_holds(path, "second");
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0640);
    ck_assert_int_eq(scratch_count(), 1);
}
END_TEST

START_TEST(a_symbolic_link_stays_a_link)
{
    const char *link = scratch_path("link"), *path = scratch_path("a");
    struct stat info;

    assert_ok(file_replace(path, "one", 3));
    ck_assert_int_eq(symlink("a", link), 0);
    assert_ok(file_replace(link, "two", 3));
    assert_holds(path, "two");
    ck_assert_int_eq(lstat(link, &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
}
END_TEST

START_TEST(every_failing_system_call_of_a_save_leaves_a_whole_file)
{
    const char *path = scratch_path("a");
    int old = 0, failures = 0;

    for (long nth = 1;; nth++) {
        cek_status st;

        assert_ok(file_replace(path, "before", 6));
        cek__fault_set(CEK__FAULT_FILE, nth);
        st = file_replace(path, "after", 5);
        if (cek__fault_pending(CEK__FAULT_FILE)) {
            assert_ok(st);
            break;
        }
        ck_assert_uint_eq(st, CEK_IO);
        ck_assert_ptr_nonnull(strstr(cek_error_text(), path));
        ck_assert_int_eq(scratch_count(), 1); /* no temporary left */
        failures++;
        /* Only syncing the directory comes after the rename: two calls. */
        void *data;
        size_t size;
        assert_ok(cek__file_read(path, 100, &data, &size));
        old += strcmp(data, "before") == 0;
        ck_assert(strcmp(data, "before") == 0 || strcmp(data, "after") == 0);
        free(data);
    }
    cek__fault_set(CEK__FAULT_FILE, 0);
    ck_assert_int_eq(failures, 8); /* open, fchmod, write, fsync, close, rename; open and fsync of the directory */
    ck_assert_int_eq(old, 6);
}
END_TEST

START_TEST(every_failing_allocation_of_a_save_is_reported)
{
    const char *path = scratch_path("a");
    long nth = 1;

    assert_ok(file_replace(path, "before", 6));
    for (;; nth++) {
        cek_status st;

        cek__fault_set(CEK__FAULT_ALLOC, nth);
        st = file_replace(path, "after", 5);
        if (cek__fault_pending(CEK__FAULT_ALLOC))
            break;
        ck_assert_uint_eq(st, CEK_OUT_OF_MEMORY);
        assert_holds(path, "before");
        ck_assert_int_eq(scratch_count(), 1);
    }
    cek__fault_set(CEK__FAULT_ALLOC, 0);
    ck_assert_int_ge(nth, 5);
}
END_TEST

START_TEST(a_full_disk_keeps_the_former_file)
{
    const char *path = scratch_path("a");
    struct rlimit limit = { 1 << 16, 1 << 16 };
    char *big;

    assert_ok(file_replace(path, "before", 6));
    assert_ok(cek__calloc(1, 1 << 20, &big));
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0); /* 64 KiB are written, the rest is refused: a short write */
    assert_fails(file_replace(path, big, 1 << 20), CEK_IO, path, "write failed: File too large");
    free(big);
    assert_holds(path, "before");
    ck_assert_int_eq(scratch_count(), 1);
}
END_TEST

START_TEST(an_abandoned_writer_leaves_nothing_and_keeps_the_text)
{
    cek__file_writer *writer;

    assert_ok(cek__file_create(scratch_path("a"), &writer));
    assert_ok(cek__file_write(writer, "x", 1));
    cek__fail(CEK_IO, "the cause");
    cek__file_abandon(&writer);
    cek__file_abandon(&writer);
    ck_assert_str_eq(cek_error_text(), "the cause");
    ck_assert_int_eq(scratch_count(), 0);
}
END_TEST

START_TEST(what_cannot_be_read_or_written_is_named)
{
    void *data;
    size_t size;
    const char *fifo = scratch_path("fifo"), *path = scratch_path("a");

    assert_fails(cek__file_read(scratch_path("none"), 10, &data, &size), CEK_IO, "none", "No such file");
    assert_fails(cek__file_read(scratch_dir, 10, &data, &size), CEK_IO, scratch_dir, "not a regular file");
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    assert_fails(cek__file_read(fifo, 10, &data, &size), CEK_IO, "fifo", "not a regular file");
    assert_fails(file_replace(fifo, "x", 1), CEK_IO, "fifo", "not a regular file");
    assert_fails(file_replace("/dev/full", "x", 1), CEK_IO, "/dev/full", "not a regular file");
    assert_fails(file_replace(scratch_path("none/a"), "x", 1), CEK_IO, "none/a", "No such file");
    assert_ok(file_replace(path, "12345", 5));
    assert_fails(cek__file_read(path, 4, &data, &size), CEK_BAD_INPUT, path, "at most 4");
    ck_assert_ptr_null(data);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("base files");
    TCase *tc = tcase_create("base files");

    tcase_add_checked_fixture(tc, scratch_make, scratch_remove);
    tcase_add_test(tc, files_are_replaced_whole_and_keep_their_mode);
    tcase_add_test(tc, a_symbolic_link_stays_a_link);
    tcase_add_test(tc, every_failing_system_call_of_a_save_leaves_a_whole_file);
    tcase_add_test(tc, every_failing_allocation_of_a_save_is_reported);
    tcase_add_test(tc, a_full_disk_keeps_the_former_file);
    tcase_add_test(tc, an_abandoned_writer_leaves_nothing_and_keeps_the_text);
    tcase_add_test(tc, what_cannot_be_read_or_written_is_named);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
