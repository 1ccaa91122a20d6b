/* tensors.h - what the tests of tensors share: the devices to run on, whole numbers, and a comparison. */
#ifndef CEK_TESTS_UNIT_TENSORS_H
#define CEK_TESTS_UNIT_TENSORS_H

#include <math.h>
#include <stdint.h>

#include "core/base/random.h"
#include "fakes.h"

static cek_engine *engine;

/* What FOR_EACH_DEVICE runs on has to be there: a test over no device would hold. */
static inline void setup(void)
{
    cek_device *device;

    scratch_make();
    assert_ok(cek_engine_create(NULL, &engine));
    assert_ok(cek_engine_find(engine, "reference:0", &device));
    assert_ok(cek_engine_find(engine, "cpu:0", &device));
}

static inline void teardown(void)
{
    cek_engine_free(engine);
    scratch_remove();
}

/* Every device that computes: those of the build's own plugins (a simulator runs on one of them). */
static inline bool computes(cek_device *device)
{
    return strncmp(cek_device_name(device), "reference:", 10) == 0 || strncmp(cek_device_name(device), "cpu:", 4) == 0;
}

#define FOR_EACH_DEVICE(device)                                     \
    for (size_t i_ = 0; i_ < cek_engine_device_count(engine); i_++) \
        for (cek_device *device = cek_engine_device(engine, i_); device != NULL && computes(device); device = NULL)

static inline cek_device *reference(void)
{
    cek_device *device;

    assert_ok(cek_engine_find(engine, "reference:0", &device));
    return device;
}

static inline bool stores(cek_device *device, cek_dtype type)
{
    cek_device_info info = { .size = sizeof info };

    assert_ok(cek_device_describe(device, &info));
    return info.types >> type & 1;
}

/* ---- values ---- */

enum { MAX = 4096 };

static inline int64_t count_of(int rank, const int64_t *shape)
{
    int64_t count = 1;

    for (int i = 0; i < rank; i++)
        count *= shape[i];
    return count;
}

/* Whole numbers from -4 to 4, of which sums and products are exact in any order. */
static inline double whole(int salt, int64_t i)
{
    return (double)(cek__random_u32(11, (uint64_t)salt, (uint64_t)i) % 9) - 4;
}

static inline cek_tensor *tensor_of(cek_device *device, cek_dtype type, int rank, const int64_t *shape,
                                    const double *values)
{
    cek_tensor *t;
    float f32[MAX];
    int64_t n = count_of(rank, shape);

    ck_assert_int_le(n, MAX);
    for (int64_t i = 0; i < n; i++)
        f32[i] = (float)values[i];
    assert_ok(cek_tensor_from_host(device, type, rank, shape, type == CEK_F64 ? (const void *)values : f32, &t));
    return t;
}

static inline cek_tensor *whole_tensor(cek_device *device, int salt, int rank, const int64_t *shape, double *values)
{
    for (int64_t i = 0; i < count_of(rank, shape); i++)
        values[i] = whole(salt, i);
    return tensor_of(device, CEK_F32, rank, shape, values);
}

static inline void values_of(const cek_tensor *t, double *out)
{
    float f32[MAX];
    int64_t n = cek_tensor_count(t);

    ck_assert_int_le(n, MAX);
    if (cek_tensor_type(t) == CEK_F64) {
        assert_ok(cek_tensor_read(t, out, cek_tensor_bytes(t)));
        return;
    }
    ck_assert_uint_eq(cek_tensor_type(t), CEK_F32);
    assert_ok(cek_tensor_read(t, f32, cek_tensor_bytes(t)));
    for (int64_t i = 0; i < n; i++)
        out[i] = f32[i];
}

/* The tensor has this shape, and each value is within `tolerance[i]` of what is expected (NULL: equal); frees it. */
static inline void assert_holds(cek_tensor *t, int rank, const int64_t *shape, const double *expected,
                                const double *tolerance, const char *what)
{
    double got[MAX];
    const char *device = cek_device_name(cek_tensor_device(t));

    ck_assert_msg(cek_tensor_rank(t) == rank, "%s on %s: rank %d, expected %d", what, device, cek_tensor_rank(t), rank);
    for (int i = 0; i < rank; i++)
        ck_assert_msg(cek_tensor_shape(t)[i] == shape[i], "%s on %s: wrong dimension %d", what, device, i);
    values_of(t, got);
    for (int64_t i = 0; i < cek_tensor_count(t); i++) {
        bool same = (isnan(expected[i]) && isnan(got[i])) || got[i] == expected[i];

        ck_assert_msg(same || (tolerance != NULL && fabs(got[i] - expected[i]) <= tolerance[i]),
                      "%s on %s: element %ld is %.9g, expected %.9g", what, device, (long)i, got[i], expected[i]);
    }
    cek_tensor_free(t);
}

#endif
