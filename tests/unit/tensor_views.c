/* tensor_views.c - tests of views: what they show, that they share memory, what works on them, what is refused. */
#include <float.h>

#include "core/base/fault.h"
#include "tensors.h"

/* A tensor of 0, 1, 2, ... */
static cek_tensor *counted(cek_device *device, int rank, const int64_t *shape)
{
    double values[MAX];

    for (int64_t i = 0; i < count_of(rank, shape); i++)
        values[i] = (double)i;
    return tensor_of(device, CEK_F32, rank, shape, values);
}

static void assert_is(cek_tensor *t, int rank, const int64_t *shape, const double *expected, const char *what)
{
    cek_tensor *again;

    assert_ok(cek_tensor_contiguous(t, &again));
    assert_holds(again, rank, shape, expected, NULL, what);
    assert_holds(t, rank, shape, expected, NULL, what); /* read through its strides; frees it */
}

START_TEST(slices_are_pythons)
{
    static const struct {
        int64_t start, stop, step;
        int count;
        double expected[7];
    } slices[] = {
        { 0, 7, 1, 7, { 0, 1, 2, 3, 4, 5, 6 } }, { 2, 5, 1, 3, { 2, 3, 4 } }, { -3, INT64_MAX, 1, 3, { 4, 5, 6 } },
        { INT64_MIN, -5, 1, 2, { 0, 1 } },       { 1, 7, 2, 3, { 1, 3, 5 } }, { 0, 100, 3, 3, { 0, 3, 6 } },
        { 5, 6, INT64_MAX, 1, { 5 } },           { -100, 1, 1, 1, { 0 } },
    };

    FOR_EACH_DEVICE(device)
    {
        cek_tensor *x = counted(device, 1, (int64_t[]){ 7 }), *y;

        for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
            assert_ok(cek_tensor_slice(x, 0, slices[i].start, slices[i].stop, slices[i].step, &y));
            assert_is(y, 1, (int64_t[]){ slices[i].count }, slices[i].expected, "slice");
        }
        cek_tensor_free(x);
    }
}
END_TEST

START_TEST(dimensions_are_dropped_added_turned_and_cut)
{
    FOR_EACH_DEVICE(device)
    {
        cek_tensor *x = counted(device, 3, (int64_t[]){ 2, 3, 4 }), *y, *z;

        assert_ok(cek_tensor_select(x, 1, -1, &y));
        assert_is(y, 2, (int64_t[]){ 2, 4 }, (double[]){ 8, 9, 10, 11, 20, 21, 22, 23 }, "select");
        assert_ok(cek_tensor_narrow(x, -1, 1, 2, &y));
        assert_ok(cek_tensor_transpose(y, 0, 2, &z));
        cek_tensor_free(y);
        ck_assert(!cek_tensor_is_contiguous(z));
        ck_assert_int_eq(cek_tensor_strides(z)[0], 1);
        ck_assert_int_eq(cek_tensor_strides(z)[2], 12);
        assert_is(z, 3, (int64_t[]){ 2, 3, 2 }, (double[]){ 1, 13, 5, 17, 9, 21, 2, 14, 6, 18, 10, 22 }, "transpose");
        assert_ok(cek_tensor_unsqueeze(x, -1, &y));
        ck_assert(cek_tensor_is_contiguous(y));
        ck_assert_int_eq(cek_tensor_rank(y), 4);
        ck_assert_int_eq(cek_tensor_shape(y)[3], 1);
        assert_ok(cek_tensor_squeeze(y, 3, &z));
        ck_assert_int_eq(cek_tensor_rank(z), 3);
        ck_assert(cek_tensor_ref(z).offset == cek_tensor_ref(x).offset &&
                  cek_tensor_ref(z).mem == cek_tensor_ref(x).mem);
        cek_tensor_free(y);
        cek_tensor_free(x); /* z keeps the memory */
        assert_ok(cek_tensor_select(z, 0, 1, &y));
        cek_tensor_free(z);
        assert_is(y, 2, (int64_t[]){ 3, 4 }, (double[]){ 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23 },
                  "the last one");
    }
}
END_TEST

START_TEST(what_is_written_to_one_is_seen_in_all)
{
    FOR_EACH_DEVICE(device)
    {
        cek_tensor *x = counted(device, 2, (int64_t[]){ 3, 4 }), *column, *row, *y;
        const float values[3] = { -1, -2, -3 };

        assert_ok(cek_tensor_select(x, 1, 2, &column));
        assert_ok(cek_tensor_write(column, values, sizeof values));
        assert_ok(cek_tensor_select(x, 0, 2, &row));
        assert_ok(cek_tensor_slice(row, 0, 0, 2, 1, &y));
        assert_ok(cek_tensor_write(y, values, 8)); /* dense, and not where memory begins */
        cek_tensor_free(y);
        assert_holds(row, 1, (int64_t[]){ 4 }, (double[]){ -1, -2, -3, 11 }, NULL, "row");
        assert_holds(column, 1, (int64_t[]){ 3 }, (double[]){ -1, -2, -3 }, NULL, "column");
        assert_holds(x, 2, (int64_t[]){ 3, 4 }, (double[]){ 0, 1, -1, 3, 4, 5, -2, 7, -1, -2, -3, 11 }, NULL, "whole");
    }
}
END_TEST

START_TEST(assignments_stretch_convert_and_may_overlap)
{
    FOR_EACH_DEVICE(device)
    {
        cek_tensor *x = counted(device, 2, (int64_t[]){ 3, 4 }), *block, *small, *from, *to;

        assert_ok(cek_tensor_slice(x, 1, 0, 4, 2, &block));
        assert_ok(cek_tensor_from_host(device, CEK_U8, 1, (int64_t[]){ 2 }, (uint8_t[]){ 100, 200 }, &small));
        assert_ok(cek_tensor_assign(block, small));
        cek_tensor_free(small);
        cek_tensor_free(block);
        assert_ok(cek_tensor_narrow(x, 0, 0, 2, &from));
        assert_ok(cek_tensor_narrow(x, 0, 1, 2, &to));
        assert_ok(cek_tensor_assign(to, from)); /* rows 0 and 1 to rows 1 and 2: the old row 1 arrives */
        assert_fails(cek_tensor_assign(from, x), CEK_INVALID, "cek_tensor_assign", "[2,4] and [3,4]");
        cek_tensor_free(from);
        assert_ok(cek_tensor_select(to, 0, 0, &from));
        assert_fails(cek_tensor_assign(from, to), CEK_INVALID, "[2,4] of src", "[4] of dst");
        cek_tensor_free(from);
        cek_tensor_free(to);
        assert_holds(x, 2, (int64_t[]){ 3, 4 }, (double[]){ 100, 1, 200, 3, 100, 1, 200, 3, 100, 5, 200, 7 }, NULL,
                     "assigned");
    }
}
END_TEST

/* Every operation on a view gives what it gives on a dense copy of it. */
START_TEST(operations_take_views)
{
    static cek_status (*const unary[])(const cek_tensor *, cek_tensor **) = { cek_neg, cek_relu, cek_softmax };
    static cek_status (*const binary[])(const cek_tensor *, const cek_tensor *,
                                        cek_tensor **) = { cek_add, cek_sub, cek_mul, cek_matmul };

    FOR_EACH_DEVICE(device)
    {
        double values[MAX], expected[MAX];
        int64_t shape[] = { 6, 7, 9 };
        cek_tensor *x = whole_tensor(device, 3, 3, shape, values), *cut, *v, *d, *y, *z;

        assert_ok(cek_tensor_slice(x, 0, 1, 6, 2, &cut));
        assert_ok(cek_tensor_slice(cut, 2, 1, 8, 1, &v)); /* [3,7,7], every element at an odd place */
        cek_tensor_free(cut);
        assert_ok(cek_tensor_contiguous(v, &d));
        for (size_t i = 0; i < sizeof unary / sizeof *unary; i++) {
            assert_ok(unary[i](v, &y));
            assert_ok(unary[i](d, &z));
            values_of(z, expected);
            assert_holds(y, 3, cek_tensor_shape(z), expected, NULL, "unary");
            cek_tensor_free(z);
        }
        for (size_t i = 0; i < sizeof binary / sizeof *binary; i++) {
            cek_tensor *tv, *td;

            assert_ok(cek_tensor_transpose(v, 1, 2, &tv));
            assert_ok(cek_tensor_contiguous(tv, &td));
            assert_ok(binary[i](v, tv, &y));
            assert_ok(binary[i](d, td, &z));
            values_of(z, expected);
            assert_holds(y, 3, cek_tensor_shape(z), expected, NULL, "binary");
            cek_tensor_free(z);
            cek_tensor_free(tv);
            cek_tensor_free(td);
        }
        for (int axis = 0; axis < 3; axis++) {
            assert_ok(cek_sum(v, 1, &axis, &y));
            assert_ok(cek_sum(d, 1, &axis, &z));
            values_of(z, expected);
            assert_holds(y, 2, cek_tensor_shape(z), expected, NULL, "sum");
            cek_tensor_free(z);
        }
        values_of(d, expected);
        assert_ok(cek_tensor_cast(v, CEK_I32, &z));
        assert_ok(cek_tensor_cast(z, CEK_F32, &y));
        cek_tensor_free(z);
        assert_holds(y, 3, cek_tensor_shape(d), expected, NULL, "cast");
        assert_ok(cek_tensor_to(v, reference(), &y));
        assert_holds(y, 3, cek_tensor_shape(d), expected, NULL, "to");
        assert_ok(cek_tensor_reshape(v, 1, (int64_t[]){ -1 }, &y));
        assert_holds(y, 1, (int64_t[]){ 147 }, expected, NULL, "reshape");
        cek_tensor_free(v);
        cek_tensor_free(d);
        cek_tensor_free(x);
    }
}
END_TEST

START_TEST(tensors_are_joined_along_old_and_new_axes)
{
    FOR_EACH_DEVICE(device)
    {
        cek_tensor *a = counted(device, 2, (int64_t[]){ 2, 2 }), *b = counted(device, 2, (int64_t[]){ 2, 1 }), *t, *y;
        const cek_tensor *parts[] = { a, b, a }, *same[] = { a, a };

        assert_ok(cek_tensor_cat(3, parts, -1, &y));
        assert_holds(y, 2, (int64_t[]){ 2, 5 }, (double[]){ 0, 1, 0, 0, 1, 2, 3, 1, 2, 3 }, NULL, "cat");
        assert_ok(cek_tensor_cat(1, parts, 0, &y));
        assert_holds(y, 2, (int64_t[]){ 2, 2 }, (double[]){ 0, 1, 2, 3 }, NULL, "cat of one");
        assert_ok(cek_tensor_transpose(a, 0, 1, &t));
        same[1] = t;
        assert_ok(cek_tensor_stack(2, same, 0, &y));
        assert_holds(y, 3, (int64_t[]){ 2, 2, 2 }, (double[]){ 0, 1, 2, 3, 0, 2, 1, 3 }, NULL, "stack");
        assert_ok(cek_tensor_stack(2, same, -1, &y));
        assert_holds(y, 3, (int64_t[]){ 2, 2, 2 }, (double[]){ 0, 0, 1, 2, 2, 1, 3, 3 }, NULL, "stack behind");
        cek_tensor_free(t);
        assert_fails(cek_tensor_cat(3, parts, 0, &y), CEK_INVALID, "cek_tensor_cat",
                     "[2,2] and [2,1] differ beside axis 0");
        assert_fails(cek_tensor_stack(3, parts, 0, &y), CEK_INVALID, "cek_tensor_stack", "[2,2] and [2,1] differ");
        assert_fails(cek_tensor_stack(1, parts, 4, &y), CEK_INVALID, "cek_tensor_stack", "axis 4");
        assert_fails(cek_tensor_cat(0, parts, 0, &y), CEK_INVALID, "cek_tensor_cat", "0 tensors");
        parts[1] = NULL;
        assert_fails(cek_tensor_cat(3, parts, 0, &y), CEK_INVALID, "cek_tensor_cat", "parts[1] is NULL");
        cek_tensor_free(a);
        cek_tensor_free(b);
    }
}
END_TEST

START_TEST(what_cannot_be_is_refused_with_the_shape)
{
    cek_tensor *x = counted(reference(), 2, (int64_t[]){ 3, 4 }), *y, *other = NULL;
    cek_device *device;

    assert_fails(cek_tensor_slice(x, 2, 0, 1, 1, &y), CEK_INVALID, "cek_tensor_slice", "axis 2 of a tensor [3,4]");
    assert_fails(cek_tensor_slice(x, 0, 0, 1, 0, &y), CEK_INVALID, "cek_tensor_slice", "step 0");
    assert_fails(cek_tensor_slice(x, 0, 3, 9, 1, &y), CEK_INVALID, "3:9 of axis 0 of [3,4]", "empty");
    assert_fails(cek_tensor_slice(x, 0, 2, 1, 1, &y), CEK_INVALID, "2:1", "empty");
    assert_fails(cek_tensor_narrow(x, 1, 3, 2, &y), CEK_INVALID, "cek_tensor_narrow", "axis 1 of [3,4]");
    assert_fails(cek_tensor_narrow(x, 1, INT64_MIN, 1, &y), CEK_INVALID, "cek_tensor_narrow", "[3,4]");
    assert_fails(cek_tensor_narrow(x, 1, 0, 0, &y), CEK_INVALID, "cek_tensor_narrow", "0 from 0");
    assert_fails(cek_tensor_select(x, 0, 3, &y), CEK_INVALID, "index 3 of axis 0", "[3,4]");
    assert_fails(cek_tensor_select(x, -3, 0, &y), CEK_INVALID, "axis -3", "[3,4]");
    assert_fails(cek_tensor_squeeze(x, 0, &y), CEK_INVALID, "axis 0 of [3,4]", "not 1");
    assert_fails(cek_tensor_unsqueeze(x, 3, &y), CEK_INVALID, "axis 3", "[3,4]");
    assert_fails(cek_tensor_transpose(x, 0, 2, &y), CEK_INVALID, "axis 2", "[3,4]");
    ck_assert_ptr_null(y);
    assert_ok(cek_engine_find(engine, "cpu:0", &device));
    other = counted(device, 2, (int64_t[]){ 3, 4 });
    assert_fails(cek_tensor_assign(x, other), CEK_INVALID, "dst is on reference:0", "src on cpu:0");
    assert_fails(cek_tensor_cat(2, (const cek_tensor *[]){ x, other }, 0, &y), CEK_INVALID,
                 "parts[0] is on reference:0", "parts[1] on cpu:0");
    cek_tensor_free(other);
    cek_tensor_free(x);
    x = counted(reference(), 8, (int64_t[]){ 1, 1, 1, 1, 1, 1, 1, 2 });
    assert_fails(cek_tensor_unsqueeze(x, 0, &y), CEK_INVALID, "[1,1,1,1,1,1,1,2]", "8 dimensions");
    cek_tensor_free(x);
}
END_TEST

START_TEST(values_come_by_the_name_that_people_know)
{
    FOR_EACH_DEVICE(device)
    {
        cek_tensor *x, *y;
        double item;
        int32_t whole[4];

        assert_ok(cek_tensor_arange(device, CEK_F32, 1, 2, 0.25, &x));
        assert_holds(x, 1, (int64_t[]){ 4 }, (double[]){ 1, 1.25, 1.5, 1.75 }, NULL, "arange");
        assert_ok(cek_tensor_arange(device, CEK_I32, 5, -3, -2, &x));
        assert_ok(cek_tensor_read(x, whole, sizeof whole));
        ck_assert_mem_eq(whole, ((int32_t[]){ 5, 3, 1, -1 }), sizeof whole);
        assert_ok(cek_tensor_select(x, 0, -1, &y));
        assert_ok(cek_tensor_item(y, &item));
        ck_assert_double_eq(item, -1);
        assert_fails(cek_tensor_item(x, &item), CEK_INVALID, "cek_tensor_item", "[4] has 4 elements");
        ck_assert_double_eq(item, 0);
        cek_tensor_free(y);
        cek_tensor_free(x);
        assert_ok(cek_tensor_eye(device, CEK_F32, 2, 3, &x));
        assert_holds(x, 2, (int64_t[]){ 2, 3 }, (double[]){ 1, 0, 0, 0, 1, 0 }, NULL, "eye");
        assert_fails(cek_tensor_eye(device, CEK_F32, 2, 0, &x), CEK_INVALID, "cek_tensor_eye", "[2,0]");
        assert_fails(cek_tensor_eye(device, 99, 2, 2, &x), CEK_INVALID, "cek_tensor_eye", "type 99");
        assert_fails(cek_tensor_full(device, CEK_F32, 1, (int64_t[]){ 0 }, 1, &x), CEK_INVALID, "cek_tensor_full",
                     "[0]");
        assert_fails(cek_tensor_arange(device, CEK_F32, 1, 1, 1, &x), CEK_INVALID, "cek_tensor_arange", "no value");
        assert_fails(cek_tensor_arange(device, CEK_F32, 0, 1, 0, &x), CEK_INVALID, "cek_tensor_arange", "0 to 1");
        assert_fails(cek_tensor_arange(device, CEK_F32, 0, NAN, 1, &x), CEK_INVALID, "cek_tensor_arange", "no value");
        assert_fails(cek_tensor_arange(device, 99, 0, 1e18, 1, &x), CEK_INVALID, "cek_tensor_arange", "type 99");
    }
}
END_TEST

START_TEST(random_whole_numbers_are_the_same_everywhere_and_fill_their_range)
{
    enum { N = 4000, LOW = -3, HIGH = 4 };
    int32_t first[N], now[N], ends[2] = { 0, 0 };
    int seen[HIGH - LOW] = { 0 };
    bool any = false;
    double expected[N];
    cek_tensor *x;

    FOR_EACH_DEVICE(device)
    {
        assert_ok(cek_tensor_randint(device, 2, (int64_t[]){ N / 8, 8 }, LOW, HIGH, 7, 3, &x));
        ck_assert_uint_eq(cek_tensor_type(x), CEK_I32);
        assert_ok(cek_tensor_read(x, now, sizeof now));
        if (any)
            ck_assert_mem_eq(now, first, sizeof now);
        memcpy(first, now, sizeof now);
        any = true;
        cek_tensor_free(x);
    }
    for (int i = 0; i < N; i++) {
        ck_assert_int_ge(first[i], LOW);
        ck_assert_int_lt(first[i], HIGH);
        seen[first[i] - LOW]++;
    }
    for (int i = 0; i < HIGH - LOW; i++) /* 571 expected, 22 the standard deviation */
        ck_assert(seen[i] > 571 - 110 && seen[i] < 571 + 110);
    assert_ok(cek_tensor_randint(reference(), 1, (int64_t[]){ N }, INT32_MIN, INT32_MAX, 7, 3, &x));
    assert_ok(cek_tensor_read(x, now, sizeof now));
    for (int i = 0; i < N; i++)
        ends[now[i] > 0] += abs(now[i] / 2) > 1 << 29;
    ck_assert(ends[0] > 800 && ends[1] > 800); /* a quarter of them each */
    cek_tensor_free(x);
    assert_ok(cek_tensor_uniform(reference(), 1, (int64_t[]){ N }, 0, 1 << 24, 7, 3, &x)); /* whole numbers then */
    values_of(x, expected);
    cek_tensor_free(x);
    assert_ok(cek_tensor_randint(reference(), 1, (int64_t[]){ N }, 0, 1 << 24, 7, 3, &x));
    assert_ok(cek_tensor_read(x, now, sizeof now));
    for (int i = 0; i < N; i++)
        ck_assert(now[i] == expected[i]);
    cek_tensor_free(x);
    assert_fails(cek_tensor_randint(reference(), 1, (int64_t[]){ N }, 4, 4, 7, 3, &x), CEK_INVALID,
                 "cek_tensor_randint", "from 4 up to but not 4");
}
END_TEST

START_TEST(no_allocation_that_fails_loses_anything)
{
    cek_tensor *x = counted(reference(), 2, (int64_t[]){ 3, 4 });

    for (long nth = 1;; nth++) {
        cek_tensor *a = NULL, *b = NULL, *c = NULL;
        cek_status st;
        bool pending;

        cek__fault_set(CEK__FAULT_ALLOC, nth);
        st = cek_tensor_slice(x, 0, 0, 3, 2, &a);
        if (st == CEK_OK)
            st = cek_tensor_transpose(a, 0, 1, &b);
        if (st == CEK_OK)
            st = cek_tensor_stack(2, (const cek_tensor *[]){ b, b }, 0, &c);
        pending = cek__fault_pending(CEK__FAULT_ALLOC);
        cek__fault_set(CEK__FAULT_ALLOC, 0);
        ck_assert_msg(st == CEK_OK || (!pending && st == CEK_OUT_OF_MEMORY), "%ld: %s: %s", nth, cek_status_name(st),
                      cek_error_text());
        cek_tensor_free(a);
        cek_tensor_free(b);
        cek_tensor_free(c);
        if (pending)
            break;
    }
    cek_tensor_free(x);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tensor_views");
    TCase *tests = tcase_create("views");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, slices_are_pythons);
    tcase_add_test(tests, dimensions_are_dropped_added_turned_and_cut);
    tcase_add_test(tests, what_is_written_to_one_is_seen_in_all);
    tcase_add_test(tests, assignments_stretch_convert_and_may_overlap);
    tcase_add_test(tests, operations_take_views);
    tcase_add_test(tests, tensors_are_joined_along_old_and_new_axes);
    tcase_add_test(tests, what_cannot_be_is_refused_with_the_shape);
    tcase_add_test(tests, values_come_by_the_name_that_people_know);
    tcase_add_test(tests, random_whole_numbers_are_the_same_everywhere_and_fill_their_range);
    tcase_add_test(tests, no_allocation_that_fails_loses_anything);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
