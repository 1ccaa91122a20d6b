/* fakes.h - fake plugins on disk for a test: copies of one built file under the names of what they
 * shall be, in the scratch folder. See tests/plugins/fake.h. */
#ifndef CEK_TESTS_UNIT_FAKES_H
#define CEK_TESTS_UNIT_FAKES_H

#include <cekernels/cekernels.h>
#include <dlfcn.h>

#include "scratch.h"
#include "tests/plugins/fake.h"

/* A test's start: an empty folder, and no setting of the user's. */
static inline void fakes_setup(void)
{
    scratch_make();
    unsetenv("CEKERNELS_PLUGIN_PATH");
    unsetenv("CEKERNELS_PLUGINS");
    unsetenv("CEKERNELS_DEVICES");
}

static inline char *fake_bytes(size_t *size)
{
    const char *build = getenv("top_builddir");
    char path[512], *bytes = malloc(1 << 20);
    FILE *file;

    snprintf(path, sizeof path, "%s/tests/plugins/.libs/fake.so", build != NULL ? build : ".");
    file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s: run this through `make check`, or after `. tests/env.sh`", path);
    *size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    ck_assert_uint_lt(*size, 1 << 20);
    return bytes;
}

/* The fake plugin as `name`, with every occurrence of `from` replaced by `to`, of equal length (NULL: none). */
static inline const char *fake_install_patched(const char *name, const char *from, const char *to)
{
    size_t size, patched = 0;
    char *bytes = fake_bytes(&size);
    const char *path;

    for (char *p = bytes; from != NULL && (p = memmem(p, size - (size_t)(p - bytes), from, strlen(from))) != NULL;
         patched++)
        memcpy(p, to, strlen(to));
    ck_assert(from == NULL || patched > 0);
    path = scratch_write(name, bytes, size);
    ck_assert_int_eq(chmod(path, 0644), 0);
    free(bytes);
    return path;
}

static inline const char *fake_install(const char *name)
{
    return fake_install_patched(name, NULL, NULL);
}

/* The control of a plugin that is loaded in this process. */
static inline fake_control *fake_steer(const char *path)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    fake_control *(*get)(void);

    ck_assert_msg(object != NULL, "%s is not loaded", path);
    *(void **)&get = dlsym(object, "fake_control_get");
    ck_assert_ptr_nonnull(get);
    dlclose(object);
    return get();
}

/* An engine of these plugin files alone, none of them opened. */
static inline cek_engine *engine_idle_of(const char *const *files)
{
    cek_engine *engine;
    cek_engine_options options = { .size = sizeof options, .plugin_files = files, .only_plugin_files = true };

    assert_ok(cek_engine_create(&options, &engine));
    return engine;
}

/* The same with every plugin started. */
static inline cek_engine *engine_of_files(const char *const *files)
{
    cek_engine *engine = engine_idle_of(files);

    assert_ok(cek_engine_start(engine));
    return engine;
}

/* Of what the environment says, with every plugin started. */
static inline cek_engine *engine_found(void)
{
    cek_engine *engine;

    assert_ok(cek_engine_create(NULL, &engine));
    assert_ok(cek_engine_start(engine));
    return engine;
}

static inline cek_engine *engine_of(const char *file)
{
    return engine_of_files((const char *const[]){ file, NULL });
}

static inline cek_load_entry load_entry(cek_engine *engine, size_t index)
{
    cek_load_entry entry;

    assert_ok(cek_engine_load_entry(engine, index, &entry));
    return entry;
}

#endif
