/* tensor.c - tests of tensors as such: shape, type and place, and errors. */
#include "tensors.h"

/* ---- shape, type, place ---- */

START_TEST(permute_and_reshape_keep_every_element)
{
    static const int64_t shape[] = { 2, 3, 4, 5 };
    static const int axes[] = { 0, 2, 3, 1 };
    double a[120], expected[120];

    FOR_EACH_DEVICE(device)
    {
        cek_tensor *x = whole_tensor(device, 12, 4, shape, a), *y;

        for (int n = 0; n < 2; n++)
            for (int c = 0; c < 3; c++)
                for (int h = 0; h < 4; h++)
                    for (int w = 0; w < 5; w++)
                        expected[((n * 4 + h) * 5 + w) * 3 + c] = a[((n * 3 + c) * 4 + h) * 5 + w];
        assert_ok(cek_tensor_permute(x, axes, &y));
        assert_holds(y, 4, (int64_t[]){ 2, 4, 5, 3 }, expected, NULL, "permute");
        assert_ok(cek_tensor_reshape(x, 2, (int64_t[]){ 6, -1 }, &y));
        ck_assert(cek_tensor_ref(y).mem != cek_tensor_ref(x).mem ||
                  cek_tensor_ref(y).offset != cek_tensor_ref(x).offset);
        assert_holds(y, 2, (int64_t[]){ 6, 20 }, a, NULL, "reshape");
        assert_fails(cek_tensor_reshape(x, 2, (int64_t[]){ 7, -1 }, &y), CEK_INVALID, "[2,3,4,5]", "divided by 7");
        assert_fails(cek_tensor_reshape(x, 2, (int64_t[]){ -1, -1 }, &y), CEK_INVALID, "cek_tensor_reshape", "both -1");
        assert_fails(cek_tensor_reshape(x, 2, (int64_t[]){ -2, 60 }, &y), CEK_INVALID, "cek_tensor_reshape",
                     "dimension 0 is -2");
        assert_fails(cek_tensor_reshape(x, 1, (int64_t[]){ 119 }, &y), CEK_INVALID, "[2,3,4,5]", "[119]");
        assert_fails(cek_tensor_permute(x, (int[]){ 0, 1, 2, 2 }, &y), CEK_INVALID, "cek_tensor_permute",
                     "axis 2 at place 3");
        ck_assert_ptr_null(y);
        cek_tensor_free(x);
    }
}
END_TEST

START_TEST(casts_convert_as_the_header_says)
{
    static const uint8_t u8[] = { 0, 1, 127, 128, 255 };
    static const int32_t i32[] = { 0, -1, 7, 16777216, -16777216 };
    cek_tensor *x, *y;

    FOR_EACH_DEVICE(device)
    {
        assert_ok(cek_tensor_from_host(device, CEK_U8, 1, (int64_t[]){ 5 }, u8, &x));
        assert_ok(cek_tensor_cast(x, CEK_F32, &y));
        assert_holds(y, 1, (int64_t[]){ 5 }, (double[]){ 0, 1, 127, 128, 255 }, NULL, "u8 to f32");
        cek_tensor_free(x);
        assert_ok(cek_tensor_from_host(device, CEK_I32, 1, (int64_t[]){ 5 }, i32, &x));
        assert_ok(cek_tensor_cast(x, CEK_F32, &y));
        assert_holds(y, 1, (int64_t[]){ 5 }, (double[]){ 0, -1, 7, 16777216, -16777216 }, NULL, "i32 to f32");
        cek_tensor_free(x);
    }
    int32_t back[6];
    uint8_t small[6];
    double odd[] = { 2.5, 3.5, -2.5, 1e20, NAN, -0.4 }, other[] = { -1.7, 1.7, 255.6, -INFINITY, INFINITY, NAN };

    x = tensor_of(reference(), CEK_F32, 1, (int64_t[]){ 6 }, odd);
    assert_ok(cek_tensor_cast(x, CEK_I32, &y));
    assert_ok(cek_tensor_read(y, back, sizeof back));
    ck_assert_int_eq(back[0], 2);
    ck_assert_int_eq(back[1], 4);
    ck_assert_int_eq(back[2], -2);
    ck_assert_int_eq(back[3], INT32_MAX);
    ck_assert_int_eq(back[4], 0);
    ck_assert_int_eq(back[5], 0);
    cek_tensor_free(y);
    y = tensor_of(reference(), CEK_F32, 1, (int64_t[]){ 6 }, other);
    cek_tensor *z;
    assert_ok(cek_tensor_cast(y, CEK_I32, &z));
    assert_ok(cek_tensor_read(z, back, sizeof back));
    ck_assert_mem_eq(back, ((int32_t[]){ -2, 2, 256, INT32_MIN, INT32_MAX, 0 }), sizeof back);
    cek_tensor_free(z);
    assert_ok(cek_tensor_cast(y, CEK_U8, &z));
    assert_ok(cek_tensor_read(z, small, sizeof small));
    ck_assert_mem_eq(small, ((uint8_t[]){ 0, 2, 255, 0, 255, 0 }), sizeof small);
    cek_tensor_free(z);
    cek_tensor_free(y);
    assert_ok(cek_tensor_cast(x, CEK_F32, &y));
    assert_holds(y, 1, (int64_t[]){ 6 }, (double[]){ 2.5, 3.5, -2.5, (float)1e20, NAN, (float)-0.4 }, NULL,
                 "f32 to f32");
    cek_tensor_free(x);
}
END_TEST

/* Bits of one value in each type: ties to even, overflow to infinity, small numbers denormal. */
/* clang-format off */
static const struct { cek_dtype type; double value; uint64_t bits; } roundings[] = {
    { CEK_F32, 0.1, 0x3dcccccd },      { CEK_F64, 0.1, 0x3fb999999999999a }, { CEK_F64, 0, 0 },
    { CEK_F16, 1, 0x3c00 },            { CEK_F16, -2, 0xc000 },              { CEK_F16, 65504, 0x7bff },
    { CEK_F16, 65519.99, 0x7bff },     { CEK_F16, 65520, 0x7c00 },           { CEK_F16, 0x1p-24, 0x0001 },
    { CEK_F16, 0x1p-25, 0x0000 },      { CEK_F16, 0x1.8p-24, 0x0002 },       { CEK_F16, 0x1p-14, 0x0400 },
    { CEK_F16, 0x1.ff8p-15, 0x03ff },  { CEK_F16, 0x1.ffcp-15, 0x0400 },     { CEK_F16, 1 + 0x1p-11, 0x3c00 },
    { CEK_F16, 1 + 0x3p-11, 0x3c02 },  { CEK_F16, NAN, 0x7e00 },             { CEK_F16, -INFINITY, 0xfc00 },
    { CEK_F16, -0.0, 0x8000 },         { CEK_BF16, 1, 0x3f80 },              { CEK_BF16, 3.4e38, 0x7f80 },
    { CEK_BF16, 1 + 0x1p-8, 0x3f80 },  { CEK_BF16, 1 + 0x3p-8, 0x3f82 },     { CEK_BF16, 0x1p-133, 0x0001 },
    { CEK_U8, 254.5, 254 },            { CEK_U8, 300, 255 },                 { CEK_U8, -1, 0 },
    { CEK_I32, -2.5, 0xfffffffe },     { CEK_I32, 1e300, 0x7fffffff },       { CEK_I32, NAN, 0 },
};
/* clang-format on */

START_TEST(full_rounds_its_value_once)
{
    int stored = 0;

    FOR_EACH_DEVICE(device)
    {
        cek_tensor *t;
        uint8_t bytes[3 * 8];
        size_t size = cek_dtype_bytes(roundings[_i].type);

        if (!stores(device, roundings[_i].type))
            continue;
        assert_ok(cek_tensor_full(device, roundings[_i].type, 1, (int64_t[]){ 3 }, roundings[_i].value, &t));
        assert_ok(cek_tensor_read(t, bytes, 3 * size));
        for (int k = 0; k < 3; k++)
            ck_assert_msg(memcmp(bytes + k * size, &roundings[_i].bits, size) == 0, "%s of %g on %s: wrong bits",
                          cek_dtype_name(roundings[_i].type), roundings[_i].value, cek_device_name(device));
        cek_tensor_free(t);
        stored++;
    }
    ck_assert_int_ge(stored, 1);
}
END_TEST

START_TEST(a_large_f64_tensor_is_filled_to_the_end)
{
    enum { N = 20001 };
    cek_tensor *t;
    double *values = malloc(N * sizeof *values);

    assert_ok(cek_tensor_full(reference(), CEK_F64, 1, (int64_t[]){ N }, 0.1, &t));
    assert_ok(cek_tensor_read(t, values, N * sizeof *values));
    for (int i = 0; i < N; i++)
        ck_assert_double_eq(values[i], 0.1);
    cek_tensor_free(t);
    free(values);
}
END_TEST

START_TEST(tensors_move_between_every_two_devices)
{
    enum { N = 1 << 20 };
    float *in = malloc(N * sizeof *in), *out = malloc(N * sizeof *out);
    const char *lazy = fake_install("lazy-lazy.so");
    cek_engine_options options = { .size = sizeof options, .plugin_files = (const char *const[]){ lazy, NULL } };
    int pairs = 0;

    cek_engine_free(engine);
    assert_ok(cek_engine_create(&options, &engine));
    for (int i = 0; i < N; i++)
        in[i] = (float)whole(13, i);
    for (size_t i = 0; i < cek_engine_device_count(engine); i++)
        for (size_t k = 0; k < cek_engine_device_count(engine); k++) {
            cek_device *from = cek_engine_device(engine, i), *to = cek_engine_device(engine, k);
            cek_tensor *a, *b, *c, *d;

            assert_ok(cek_tensor_from_host(from, CEK_F32, 2, (int64_t[]){ 4, N / 4 }, in, &a));
            assert_ok(cek_add(a, a, &b)); /* queued work comes first */
            cek_tensor_free(a);
            assert_ok(cek_tensor_to(b, to, &c));
            cek_tensor_free(b);
            assert_ok(cek_scale(c, 0.5, 0, &d));
            ck_assert_ptr_eq(cek_tensor_device(d), to);
            cek_tensor_free(c);
            assert_ok(cek_tensor_read(d, out, N * sizeof *out));
            ck_assert_msg(memcmp(in, out, N * sizeof *in) == 0, "%s to %s", cek_device_name(from), cek_device_name(to));
            cek_tensor_free(d);
            pairs++;
        }
    ck_assert_int_ge(pairs, 9);
    free(in);
    free(out);
}
END_TEST

START_TEST(markers_measure_time_on_every_device)
{
    enum { BYTES = 4 << 20 };
    uint8_t *bytes = calloc(1, BYTES);
    cek_stream *stream;
    cek_marker *start, *end;
    cek_memory *memory;
    uint64_t ns;

    FOR_EACH_DEVICE(device)
    {
        assert_ok(cek_stream_create(device, &stream));
        assert_ok(cek_marker_create(device, true, &start));
        assert_ok(cek_marker_create(device, true, &end));
        assert_ok(cek_memory_alloc(device, BYTES, 0, &memory));
        assert_ok(cek_marker_record(start, stream));
        assert_ok(cek_stream_upload(stream, cek_memory_ref(memory), bytes, BYTES));
        assert_ok(cek_marker_record(end, stream));
        assert_ok(cek_marker_sync(end, CEK_FOREVER));
        assert_ok(cek_marker_elapsed(start, end, &ns));
        ck_assert_uint_gt(ns, 1000); /* 4 MiB at 4 TB/s */
        cek_marker_free(start);
        cek_marker_free(end);
        cek_stream_free(stream);
        cek_memory_free(memory);
    }
    free(bytes);
}
END_TEST

START_TEST(random_tensors_are_the_numbers_of_the_header)
{
    enum { N = 1003 };
    float got[N];
    cek_tensor *t;

    FOR_EACH_DEVICE(device)
    {
        double sum = 0, squares = 0;

        assert_ok(cek_tensor_uniform(device, 2, (int64_t[]){ 17, 59 }, 0, 1, 0x123456789abcdef0, 5, &t));
        assert_ok(cek_tensor_read(t, got, sizeof got));
        for (uint32_t i = 0; i < N; i++) {
            uint32_t word[4];

            cek__philox4x32_10((uint32_t[]){ i / 4, 5, 0, 0 }, (uint32_t[]){ 0x9abcdef0, 0x12345678 }, word);
            ck_assert_msg(got[i] == (float)(word[i % 4] >> 8) * 0x1p-24f, "%s: number %u", cek_device_name(device), i);
        }
        cek_tensor_free(t);
        assert_ok(cek_tensor_normal(device, 1, (int64_t[]){ N }, 3, 2, 99, 6, &t));
        assert_ok(cek_tensor_read(t, got, sizeof got));
        for (int i = 0; i < N; i++)
            sum += got[i], squares += (double)got[i] * got[i];
        ck_assert_double_eq_tol(sum / N, 3, 5 * 2 / sqrt(N));
        ck_assert_double_eq_tol(squares / N - sum / N * sum / N, 4, 5 * 4 * sqrt(2.0 / N));
        cek_tensor_free(t);
    }
}
END_TEST

/* ---- errors ---- */

START_TEST(operands_that_do_not_belong_together_are_refused_by_name)
{
    cek_device *r = reference();
    const char *other = fake_install("other.so");
    cek_engine *second = engine_of(other);
    double v[64] = { 0 };
    cek_tensor *a = tensor_of(r, CEK_F32, 2, (int64_t[]){ 2, 3 }, v),
               *b = tensor_of(r, CEK_F32, 2, (int64_t[]){ 2, 4 }, v);
    cek_tensor *far = tensor_of(cek_engine_device(second, 0), CEK_F32, 2, (int64_t[]){ 2, 3 }, v);
    cek_tensor *wide = tensor_of(r, CEK_F64, 2, (int64_t[]){ 2, 3 }, v), *ints, *out = a;

    assert_ok(cek_tensor_full(r, CEK_I32, 2, (int64_t[]){ 2, 3 }, 1, &ints));
    assert_fails(cek_add(a, far, &out), CEK_INVALID, "cek_add: tensors on different devices: a is on reference:0",
                 "b on other:0");
    ck_assert_ptr_null(out);
    assert_fails(cek_matmul(far, a, &out), CEK_INVALID, "a is on other:0", "b on reference:0");
    assert_fails(cek_mul(a, wide, &out), CEK_INVALID, "cek_mul: tensors of different types", "a is f32, b is f64");
    assert_fails(cek_exp(ints, &out), CEK_INVALID, "cek_exp: x is i32", "cast it");
    assert_fails(cek_add(NULL, a, &out), CEK_INVALID, "cek_add", "a is NULL");
    assert_fails(cek_add(a, NULL, &out), CEK_INVALID, "cek_add", "b is NULL");
    assert_fails(cek_sub(a, b, &out), CEK_INVALID, "cek_sub: shapes [2,3] and [2,4]", "3 against 4");
    assert_fails(cek_matmul(a, b, &out), CEK_INVALID, "cek_matmul: shapes [2,3] and [2,4]", "3 columns against 2 rows");
    assert_fails(cek_sum(a, 1, (int[]){ 2 }, &out), CEK_INVALID, "cek_sum: axis 2", "[2,3]");
    assert_fails(cek_sum(a, 2, (int[]){ 1, -1 }, &out), CEK_INVALID, "cek_sum: axis -1", "twice");
    ck_assert_ptr_null(out);
    cek_tensor_free(a);
    cek_tensor_free(b);
    cek_tensor_free(far);
    cek_tensor_free(wide);
    cek_tensor_free(ints);
    cek_engine_free(second);
}
END_TEST

START_TEST(products_and_convolutions_name_both_shapes)
{
    cek_device *r = reference();
    double v[MAX] = { 0 };
    cek_tensor *x = tensor_of(r, CEK_F32, 4, (int64_t[]){ 1, 5, 5, 3 }, v), *out = x;
    cek_tensor *w4 = tensor_of(r, CEK_F32, 4, (int64_t[]){ 6, 3, 3, 4 }, v);
    cek_tensor *w3 = tensor_of(r, CEK_F32, 4, (int64_t[]){ 6, 3, 3, 3 }, v);
    cek_tensor *big = tensor_of(r, CEK_F32, 4, (int64_t[]){ 1, 6, 3, 3 }, v);
    cek_tensor *bias = tensor_of(r, CEK_F32, 1, (int64_t[]){ 5 }, v),
               *flat = tensor_of(r, CEK_F32, 1, (int64_t[]){ 6 }, v);
    cek_tensor *wide = tensor_of(r, CEK_F64, 1, (int64_t[]){ 6 }, v);
    cek_tensor *b2 = tensor_of(r, CEK_F32, 3, (int64_t[]){ 2, 5, 3 }, v),
               *b3 = tensor_of(r, CEK_F32, 3, (int64_t[]){ 3, 3, 4 }, v);
    cek_conv2d_options two = { .size = sizeof two, .groups = 2 }, unset = { .groups = 1 },
                       unknown = { .size = sizeof unknown, .math = CEK_MATH_FAST + 1 };

    assert_fails(cek_conv2d(x, w4, NULL, NULL, &out), CEK_INVALID, "x [1,5,5,3] and weight [6,3,3,4]",
                 "x has 3 channels, the weight is for 4");
    ck_assert_ptr_null(out);
    assert_fails(cek_conv2d(x, w3, NULL, &two, &out), CEK_INVALID, "x [1,5,5,3]", "not divisible into 2 groups");
    assert_fails(cek_conv2d(x, w3, bias, NULL, &out), CEK_INVALID, "bias [5] and weight [6,3,3,3]",
                 "6 output channels");
    assert_fails(cek_conv2d(x, w3, wide, NULL, &out), CEK_INVALID, "bias is f64", "has to be f32");
    assert_fails(cek_conv2d(x, big, NULL, NULL, &out), CEK_INVALID, "weight [1,6,3,3]",
                 "larger than the padded image in height");
    assert_fails(cek_conv2d(x, flat, NULL, NULL, &out), CEK_INVALID, "weight [6]", "[n,h,w,in]");
    assert_fails(cek_conv2d(x, w3, NULL, &unknown, &out), CEK_INVALID, "math 4", "CEK_MATH_F32");
    assert_fails(cek_conv2d(x, w3, NULL, &unset, &out), CEK_INVALID, "cek_conv2d", "was not set");
    assert_fails(cek_conv2d(x, NULL, NULL, NULL, &out), CEK_INVALID, "cek_conv2d", "weight is NULL");
    assert_fails(cek_matmul(flat, flat, &out), CEK_INVALID, "cek_matmul: shapes [6] and [6]", "matrices");
    assert_fails(cek_matmul(b2, b3, &out), CEK_INVALID, "[2,5,3] and [3,3,4]", "batches differ");
    for (cek_tensor **t = (cek_tensor *[]){ x, w4, w3, big, bias, flat, wide, b2, b3, NULL }; *t != NULL; t++)
        cek_tensor_free(*t);
}
END_TEST

START_TEST(impossible_tensors_are_refused)
{
    cek_device *r = reference();
    cek_tensor *t = (cek_tensor *)&t;
    float v[4] = { 0 };

    assert_fails(cek_tensor_create(r, CEK_F32, 9, (int64_t[]){ 1, 1, 1, 1, 1, 1, 1, 1, 1 }, &t), CEK_INVALID,
                 "cek_tensor_create", "rank 9");
    ck_assert_ptr_null(t);
    assert_fails(cek_tensor_create(r, CEK_F32, -1, NULL, &t), CEK_INVALID, "cek_tensor_create", "rank -1");
    assert_fails(cek_tensor_create(r, CEK_F32, 2, (int64_t[]){ 3, 0 }, &t), CEK_INVALID, "[3,0]", "dimension 1");
    assert_fails(cek_tensor_create(r, CEK_F32, 2, (int64_t[]){ -2, 2 }, &t), CEK_INVALID, "[-2,2]", "dimension 0");
    assert_fails(cek_tensor_create(r, CEK_F32, 2, (int64_t[]){ INT64_MAX, 2 }, &t), CEK_INVALID, "9223372036854775807",
                 "more elements");
    assert_fails(cek_tensor_create(r, CEK_F32, 1, (int64_t[]){ INT64_MAX / 8 }, &t), CEK_OUT_OF_MEMORY,
                 "a f32 tensor [1152921504606846975]", "out of memory");
    assert_fails(cek_tensor_uniform(r, 1, (int64_t[]){ 3 }, 1, 0, 1, 0, &t), CEK_INVALID, "uniform", "from 1 to 0");
    assert_fails(cek_tensor_uniform(r, 1, (int64_t[]){ 3 }, 0, 1e39, 1, 0, &t), CEK_INVALID, "uniform", "to 1e+39");
    assert_fails(cek_tensor_normal(r, 1, (int64_t[]){ 3 }, 0, -1, 1, 0, &t), CEK_INVALID, "normal", "deviation of -1");
    assert_fails(cek_tensor_normal(r, 1, (int64_t[]){ 3 }, NAN, 1, 1, 0, &t), CEK_INVALID, "normal", "mean of nan");
    assert_fails(cek_tensor_arange(r, CEK_F32, 0, 1, 0, &t), CEK_INVALID, "arange", "it never ends");
    assert_fails(cek_tensor_create(r, 99, 1, (int64_t[]){ 1 }, &t), CEK_INVALID, "cek_tensor_create", "type 99");
    ck_assert_str_eq(cek_dtype_name(99), "unknown");
    ck_assert_uint_eq(cek_dtype_bytes(99), 0);
    assert_ok(cek_tensor_from_host(r, CEK_F32, 1, (int64_t[]){ 4 }, v, &t));
    assert_fails(cek_tensor_read(t, v, 15), CEK_INVALID, "cek_tensor_read: 15 bytes", "f32 tensor [4] of 16");
    assert_fails(cek_tensor_write(t, v, 17), CEK_INVALID, "cek_tensor_write: 17 bytes", "f32 tensor [4] of 16");
    cek_tensor_free(t);
    cek_tensor_free(NULL);
}
END_TEST

START_TEST(what_a_device_cannot_do_is_unsupported_and_named)
{
    cek_engine *second = engine_of(fake_install("plain.so"));
    cek_device *device = cek_engine_device(second, 0);
    double v[4] = { 0 };
    cek_tensor *a = tensor_of(device, CEK_F32, 2, (int64_t[]){ 2, 2 }, v), *out = a;

    assert_fails(cek_matmul(a, a, &out), CEK_UNSUPPORTED, "cek_matmul: plain:0: op_create", "nothing but pointwise");
    ck_assert_ptr_null(out);
    assert_fails(cek_tensor_create(device, CEK_F16, 0, NULL, &out), CEK_UNSUPPORTED, "plain:0", "does not store f16");
    cek_tensor_free(a);
    cek_engine_free(second);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tensor");
    TCase *tc = tcase_create("tensor");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, permute_and_reshape_keep_every_element);
    tcase_add_test(tc, casts_convert_as_the_header_says);
    tcase_add_loop_test(tc, full_rounds_its_value_once, 0, sizeof roundings / sizeof *roundings);
    tcase_add_test(tc, a_large_f64_tensor_is_filled_to_the_end);
    tcase_add_test(tc, tensors_move_between_every_two_devices);
    tcase_add_test(tc, markers_measure_time_on_every_device);
    tcase_add_test(tc, random_tensors_are_the_numbers_of_the_header);
    tcase_add_test(tc, operands_that_do_not_belong_together_are_refused_by_name);
    tcase_add_test(tc, products_and_convolutions_name_both_shapes);
    tcase_add_test(tc, impossible_tensors_are_refused);
    tcase_add_test(tc, what_a_device_cannot_do_is_unsupported_and_named);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
