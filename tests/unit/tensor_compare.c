/* tensor_compare.c - tests of comparisons, of the choice by one, of least and largest elements: against C's own
 * operators. */
#include "tensors.h"

typedef cek_status (*relation_fn)(const cek_tensor *, const cek_tensor *, cek_tensor **);
static const relation_fn relations[] = { cek_eq, cek_ne, cek_lt, cek_le, cek_gt, cek_ge };
static const char *const names[] = { "eq", "ne", "lt", "le", "gt", "ge" };
enum { RELATIONS = 6 };

static uint8_t plain(int r, double a, double b)
{
    return r == 0 ? a == b : r == 1 ? a != b : r == 2 ? a < b : r == 3 ? a <= b : r == 4 ? a > b : a >= b;
}

/* Every value with every other: rows against columns. */
static void assert_relations(cek_device *device, cek_dtype type, int count, const void *values, const double *as)
{
    cek_tensor *a, *b, *y;
    uint8_t got[MAX];

    assert_ok(cek_tensor_from_host(device, type, 2, (int64_t[]){ count, 1 }, values, &a));
    assert_ok(cek_tensor_from_host(device, type, 1, (int64_t[]){ count }, values, &b));
    for (int r = 0; r < RELATIONS; r++) {
        assert_ok(relations[r](a, b, &y));
        ck_assert_uint_eq(cek_tensor_type(y), CEK_U8);
        assert_ok(cek_tensor_read(y, got, (uint64_t)(count * count)));
        for (int i = 0; i < count * count; i++)
            ck_assert_msg(got[i] == plain(r, as[i / count], as[i % count]), "%s on %s: %s of %.17g and %.17g is %u",
                          cek_dtype_name(type), cek_device_name(device), names[r], as[i / count], as[i % count],
                          got[i]);
        cek_tensor_free(y);
    }
    cek_tensor_free(a);
    cek_tensor_free(b);
}

START_TEST(comparisons_are_exact_in_every_type)
{
    static const float f32[] = { 0, -0.0f, 1, -1, 1 + 0x1p-23f, 1e-30f, 3e38f, INFINITY, -INFINITY, NAN };
    static const double f64[] = { 0, 1, 1 + 0x1p-52, 1 - 0x1p-53, 16777216, 16777217, -1e300, INFINITY, NAN };
    static const int32_t i32[] = { 0,          1,          -1,         255,         256,        65535,      65536,
                                   -65536,     16777216,   16777217,   16777218,    -16777217,  INT32_MAX,  INT32_MIN,
                                   2147483521, 2147483646, 2147483520, -2147483647, 1073741824, 1073741823, 1073741825,
                                   2147483392, 98304,      32768,      -32768,      1000065535, 1000065536, 999999999,
                                   1000000000, 1000000063, 1000000065 };
    static const uint8_t u8[] = { 0, 1, 127, 128, 255 };
    enum { F32S = sizeof f32 / 4, F64S = sizeof f64 / 8, I32S = sizeof i32 / 4, U8S = sizeof u8 };
    double as[I32S];

    FOR_EACH_DEVICE(device)
    {
        for (int i = 0; i < F32S; i++)
            as[i] = (double)f32[i];
        assert_relations(device, CEK_F32, F32S, f32, as);
        for (int i = 0; i < I32S; i++)
            as[i] = i32[i];
        assert_relations(device, CEK_I32, I32S, i32, as);
        for (int i = 0; i < U8S; i++)
            as[i] = u8[i];
        assert_relations(device, CEK_U8, U8S, u8, as);
        if (stores(device, CEK_F64))
            assert_relations(device, CEK_F64, F64S, f64, f64);
    }
}
END_TEST

START_TEST(random_whole_numbers_compare_as_c_compares_them)
{
    enum { N = 4000 };
    int32_t a[N], b[N];
    uint8_t got[N];

    for (int i = 0; i < N; i++) { /* neighbours of all sizes */
        a[i] = (int32_t)cek__random_u32(5, 1, (uint64_t)i) >> (i % 31);
        b[i] = (int32_t)((uint32_t)a[i] + cek__random_u32(5, 2, (uint64_t)i) % 700 - 350);
    }
    FOR_EACH_DEVICE(device)
    {
        cek_tensor *x, *y, *z;

        assert_ok(cek_tensor_from_host(device, CEK_I32, 1, (int64_t[]){ N }, a, &x));
        assert_ok(cek_tensor_from_host(device, CEK_I32, 1, (int64_t[]){ N }, b, &y));
        for (int r = 0; r < RELATIONS; r++) {
            assert_ok(relations[r](x, y, &z));
            assert_ok(cek_tensor_read(z, got, sizeof got));
            for (int i = 0; i < N; i++)
                ck_assert_msg(got[i] == plain(r, a[i], b[i]), "%s: %s of %d and %d", cek_device_name(device), names[r],
                              a[i], b[i]);
            cek_tensor_free(z);
        }
        cek_tensor_free(x);
        cek_tensor_free(y);
    }
}
END_TEST

START_TEST(where_keeps_every_bit_of_what_it_chooses)
{
    static const uint8_t mask[] = { 0, 1, 255, 0 };
    static const float fa[] = { 1, -0.0f, 1e-40f, 4 },
                       fb[] = { NAN, 2, 3, INFINITY }; /* NaN and infinity chosen, or not */
    static const int32_t ia[] = { 16777217, 16777219, INT32_MIN, 3 }, ib[] = { 2147483521, 2, 3, -16777217 };

    FOR_EACH_DEVICE(device)
    {
        cek_tensor *c, *a, *b, *y;
        float f[4];
        int32_t i[4], wide[8];
        uint8_t u[4];

        assert_ok(cek_tensor_from_host(device, CEK_U8, 1, (int64_t[]){ 4 }, mask, &c));
        assert_ok(cek_tensor_from_host(device, CEK_F32, 1, (int64_t[]){ 4 }, fa, &a));
        assert_ok(cek_tensor_from_host(device, CEK_F32, 1, (int64_t[]){ 4 }, fb, &b));
        assert_ok(cek_where(c, a, b, &y));
        assert_ok(cek_tensor_read(y, f, sizeof f));
        ck_assert(isnan(f[0]) && f[1] == 0 && signbit(f[1]) && f[3] == (float)INFINITY);
        cek_tensor_free(y);
        cek_tensor_free(a);
        cek_tensor_free(b);
        assert_ok(cek_tensor_from_host(device, CEK_I32, 1, (int64_t[]){ 4 }, ia, &a));
        assert_ok(cek_tensor_from_host(device, CEK_I32, 2, (int64_t[]){ 2, 4 },
                                       (int32_t[]){ ib[0], ib[1], ib[2], ib[3], 9, 9, 9, 9 }, &b));
        assert_ok(cek_where(c, a, b, &y));
        assert_ok(cek_tensor_read(y, wide, sizeof wide));
        ck_assert_mem_eq(wide, ((int32_t[]){ ib[0], ia[1], ia[2], ib[3], 9, ia[1], ia[2], 9 }), sizeof wide);
        cek_tensor_free(y);
        cek_tensor_free(b);
        assert_ok(cek_tensor_full(device, CEK_I32, 0, NULL, -7, &b)); /* one number against all */
        assert_ok(cek_where(c, a, b, &y));
        assert_ok(cek_tensor_read(y, i, sizeof i));
        ck_assert_mem_eq(i, ((int32_t[]){ -7, ia[1], ia[2], -7 }), sizeof i);
        cek_tensor_free(y);
        cek_tensor_free(b);
        assert_ok(cek_where(c, c, c, &y));
        assert_ok(cek_tensor_read(y, u, sizeof u));
        ck_assert_mem_eq(u, mask, sizeof u);
        cek_tensor_free(y);
        assert_fails(cek_where(a, c, c, &y), CEK_INVALID, "cek_where", "condition is i32");
        assert_fails(cek_where(c, a, c, &y), CEK_INVALID, "cek_where", "a is i32, b is u8");
        cek_tensor_free(a);
        cek_tensor_free(c);
    }
}
END_TEST

START_TEST(the_largest_and_the_smallest_are_found_with_their_places)
{
    static const double values[] = { 3, 9, -1, 9, 5, 5, 5, NAN, -7, -8, -7, -8 };

    FOR_EACH_DEVICE(device)
    {
        cek_tensor *x = tensor_of(device, CEK_F32, 2, (int64_t[]){ 3, 4 }, values), *t, *y;
        int32_t places[4];

        assert_ok(cek_argmax(x, -1, &y));
        ck_assert_uint_eq(cek_tensor_type(y), CEK_I32);
        assert_ok(cek_tensor_read(y, places, 12));
        ck_assert_mem_eq(places, ((int32_t[]){ 1, 3, 0 }), 12); /* the first of equals; NaN */
        cek_tensor_free(y);
        assert_ok(cek_tensor_transpose(x, 0, 1, &t));
        assert_ok(cek_argmin(t, 0, &y));
        assert_ok(cek_tensor_read(y, places, 12));
        ck_assert_mem_eq(places, ((int32_t[]){ 2, 3, 1 }), 12);
        cek_tensor_free(y);
        assert_ok(cek_min(t, 1, (int[]){ 0 }, &y));
        assert_holds(y, 1, (int64_t[]){ 3 }, (double[]){ -1, NAN, -8 }, NULL, "min");
        assert_fails(cek_argmax(x, 2, &y), CEK_INVALID, "cek_argmax", "axis 2 of a tensor [3,4]");
        cek_tensor_free(t);
        cek_tensor_free(x);
    }
}
END_TEST

START_TEST(operands_that_do_not_meet_are_refused)
{
    cek_device *cpu;
    cek_tensor *a, *b, *c, *d, *y;

    assert_ok(cek_engine_find(engine, "cpu:0", &cpu));
    assert_ok(cek_tensor_full(reference(), CEK_F32, 1, (int64_t[]){ 3 }, 1, &a));
    assert_ok(cek_tensor_full(cpu, CEK_F32, 1, (int64_t[]){ 3 }, 1, &b));
    assert_ok(cek_tensor_full(reference(), CEK_F32, 2, (int64_t[]){ 2, 2 }, 1, &c));
    assert_ok(cek_tensor_full(reference(), CEK_U8, 1, (int64_t[]){ 3 }, 1, &d));
    for (int r = 0; r < RELATIONS; r++) {
        assert_fails(relations[r](a, b, &y), CEK_INVALID, "a is on reference:0", "b on cpu:0");
        assert_fails(relations[r](a, c, &y), CEK_INVALID, "[3] and [2,2]", names[r]);
        assert_fails(relations[r](a, d, &y), CEK_INVALID, "a is f32", "b is u8");
    }
    assert_fails(cek_where(d, b, b, &y), CEK_INVALID, "condition is on reference:0", "a on cpu:0");
    assert_fails(cek_where(d, a, c, &y), CEK_INVALID, "[3] and [2,2]", "cek_where");
    cek_tensor_free(a);
    cek_tensor_free(b);
    cek_tensor_free(c);
    cek_tensor_free(d);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tensor_compare");
    TCase *tests = tcase_create("compare");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, comparisons_are_exact_in_every_type);
    tcase_add_test(tests, random_whole_numbers_compare_as_c_compares_them);
    tcase_add_test(tests, where_keeps_every_bit_of_what_it_chooses);
    tcase_add_test(tests, the_largest_and_the_smallest_are_found_with_their_places);
    tcase_add_test(tests, operands_that_do_not_meet_are_refused);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
