/* base_files.c - tests of core/base/file.h: files are replaced whole or not at all, whatever fails. */
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "core/base/alloc.h"
#include "core/base/fault.h"
#include "core/base/file.h"
#include "scratch.h"

static bool write_takes_nothing;

/* The library's write. */
__attribute__((visibility("default"))) ssize_t write(int fd, const void *data, size_t size)
{
    return write_takes_nothing ? 0 : (ssize_t)syscall(SYS_write, fd, data, size);
}

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

START_TEST(a_link_to_nothing_gets_its_target)
{
    const char *link = scratch_path("link"), *second = scratch_path("second"), *path = scratch_path("a");
    struct stat info;

    ck_assert_int_eq(symlink("second", link), 0);
    ck_assert_int_eq(symlink(path, second), 0);
    assert_ok(file_replace(link, "one", 3));
    assert_holds(path, "one");
    ck_assert_int_eq(lstat(link, &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    ck_assert_int_eq(lstat(second, &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    ck_assert_int_eq(scratch_count(), 3);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(symlink("link", path), 0);
    assert_fails(file_replace(link, "two", 3), CEK_IO, link, "Too many levels of symbolic links");
    ck_assert_int_eq(scratch_count(), 3);
}
END_TEST

START_TEST(a_write_that_takes_nothing_is_a_failure)
{
    const char *path = scratch_path("a");

    assert_ok(file_replace(path, "before", 6));
    write_takes_nothing = true;
    assert_fails(file_replace(path, "after", 5), CEK_IO, path, "takes nothing");
    write_takes_nothing = false;
    assert_holds(path, "before");
    ck_assert_int_eq(scratch_count(), 1);
}
END_TEST

/* A process begins a save and is killed. */
static void killed_save(const char *path)
{
    pid_t child = fork();
    int status;

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        cek__file_writer *writer;

        if (cek__file_create(path, &writer) == CEK_OK && cek__file_write(writer, "half", 4) == CEK_OK)
            raise(SIGKILL);
        _exit(1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

START_TEST(what_killed_saves_left_goes_with_the_next_save_to_the_same_place)
{
    const char *path = scratch_path("a"), *other = scratch_path("b");
    cek__file_writer *first, *second;

    killed_save(path);
    ck_assert_int_eq(scratch_count(), 1);
    assert_ok(cek__file_create(path, &first)); /* two at once, so that the next two leave two */
    ck_assert_int_eq(scratch_count(), 1);
    killed_save(path);
    killed_save(other);
    ck_assert_int_eq(scratch_count(), 3);
    assert_ok(cek__file_create(path, &second)); /* `first` is alive, and `other` is not ours */
    ck_assert_int_eq(scratch_count(), 3);
    assert_ok(cek__file_write(second, "second", 6));
    assert_ok(cek__file_write(first, "first", 5));
    assert_ok(cek__file_commit(&second));
    assert_holds(path, "second");
    assert_ok(cek__file_commit(&first));
    assert_holds(path, "first");
    ck_assert_int_eq(scratch_count(), 2);
    assert_ok(file_replace(other, "x", 1));
    ck_assert_int_eq(scratch_count(), 2);
}
END_TEST

/* Whoever may write to the folder may have put there what looks like a leftover. */
START_TEST(a_link_in_the_place_of_a_leftover_is_not_followed)
{
    const char *path = scratch_path("a"), *victim = scratch_path("victim");
    const char *planted;
    char name[64] = "";
    struct dirent *entry;
    struct stat info;
    DIR *dir;

    killed_save(path);
    dir = opendir(scratch_dir);
    while ((entry = readdir(dir)) != NULL)
        if (strncmp(entry->d_name, ".cekernels-", 11) == 0)
            snprintf(name, sizeof name, "%.60s", entry->d_name);
    closedir(dir);
    planted = scratch_path(name);
    ck_assert_int_eq(unlink(planted), 0);
    assert_ok(file_replace(victim, "theirs", 6));
    ck_assert_int_eq(symlink("victim", planted), 0);
    assert_ok(file_replace(path, "ours", 4));
    assert_holds(victim, "theirs");
    assert_holds(path, "ours");
    ck_assert_int_eq(lstat(planted, &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    ck_assert_int_eq(scratch_count(), 3);
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
    ck_assert_int_eq(failures, 9); /* open, dup, fchmod, write, fsync, close, rename; open, fsync of the directory */
    ck_assert_int_eq(old, 7);
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
    tcase_add_test(tc, a_link_to_nothing_gets_its_target);
    tcase_add_test(tc, a_write_that_takes_nothing_is_a_failure);
    tcase_add_test(tc, what_killed_saves_left_goes_with_the_next_save_to_the_same_place);
    tcase_add_test(tc, a_link_in_the_place_of_a_leftover_is_not_followed);
    tcase_add_test(tc, every_failing_system_call_of_a_save_leaves_a_whole_file);
    tcase_add_test(tc, every_failing_allocation_of_a_save_is_reported);
    tcase_add_test(tc, a_full_disk_keeps_the_former_file);
    tcase_add_test(tc, an_abandoned_writer_leaves_nothing_and_keeps_the_text);
    tcase_add_test(tc, what_cannot_be_read_or_written_is_named);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
