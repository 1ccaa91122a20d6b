/* scratch.h - what tests of files share: a folder that goes away, and assertions over statuses with their texts.
 *
 * Header only; each test program is one process with one scratch folder. */
#ifndef CEK_TESTS_UNIT_SCRATCH_H
#define CEK_TESTS_UNIT_SCRATCH_H

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/status.h"
#include "tests/suite.h"

#define assert_ok(expr)                                                                                     \
    do {                                                                                                    \
        cek_status status_ = (expr);                                                                        \
        ck_assert_msg(status_ == CEK_OK, "%s: %s (%s)", #expr, cek_error_text(), cek_status_name(status_)); \
    } while (0)

/* The call must fail with this status, and its text must hold both strings: the object and the cause. */
#define assert_fails(expr, expected, object, cause)                                                            \
    do {                                                                                                       \
        cek_status status_ = (expr);                                                                           \
        ck_assert_msg(status_ == (expected), "%s: %s, expected %s (%s)", #expr, cek_status_name(status_),      \
                      cek_status_name(expected), cek_error_text());                                            \
        ck_assert_msg(strstr(cek_error_text(), (object)) != NULL && strstr(cek_error_text(), (cause)) != NULL, \
                      "%s: '%s' should hold '%s' and '%s'", #expr, cek_error_text(), (object), (cause));       \
        ck_assert_ptr_null(strchr(cek_error_text(), '\n'));                                                    \
    } while (0)

static char scratch_dir[128];

static inline void scratch_make(void)
{
    const char *base = getenv("TMPDIR");

    snprintf(scratch_dir, sizeof scratch_dir, "%.80s/cekernels-test-XXXXXX", base != NULL ? base : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(scratch_dir));
}

static inline int scratch_count(void)
{
    DIR *dir = opendir(scratch_dir);
    int n = 0;

    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return n;
}

static inline void scratch_remove(void)
{
    DIR *dir = opendir(scratch_dir);

    if (dir == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    rmdir(scratch_dir);
}

/* The path of `name` in the scratch folder, in one of a few buffers that are used in turn. */
static inline const char *scratch_path(const char *name)
{
    static char paths[8][256];
    static unsigned next;
    char *path = paths[next++ % 8];

    snprintf(path, sizeof paths[0], "%s/%s", scratch_dir, name);
    return path;
}

static inline const char *scratch_write(const char *name, const void *data, size_t size)
{
    const char *path = scratch_path(name);
    FILE *file = fopen(path, "wb");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

#endif
