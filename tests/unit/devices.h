/* devices.h - what the tests of devices share: a fake device, steered, and the proof that it got everything back. */
#ifndef CEK_TESTS_UNIT_DEVICES_H
#define CEK_TESTS_UNIT_DEVICES_H

#include "fakes.h"

static cek_engine *engine;
static cek_device *device;
static fake_control *control;

/* A file that is loaded must not be written again: a second start() in one test takes what is there. */
static inline void start(const char *file)
{
    const char *path = scratch_path(file);

    if (access(path, R_OK) != 0)
        path = fake_install(file);
    engine = engine_of(path);
    control = fake_steer(path);
    device = cek_engine_device(engine, 0);
    ck_assert_ptr_nonnull(device);
}

/* Everything that was made has been destroyed, of the plugin's and of ours. */
static inline void stop(void)
{
    cek_engine_free(engine);
    engine = NULL;
    ck_assert_int_eq(control->live, 0);
    ck_assert_uint_eq(control->bytes, 0);
}

static inline cek_memory_stats stats_of(cek_device *d)
{
    cek_memory_stats stats = { .size = sizeof stats };

    assert_ok(cek_device_memory_stats(d, &stats));
    return stats;
}

#endif
