/* tensor_text.c - tests of tensors in words: a fixed sample of what NumPy 2.4 writes (scripts/compare-numpy holds
 * hundreds of random arrays against the NumPy that is there), and what is refused. */
#include <locale.h>

#include "core/base/fault.h"
#include "tensors.h"

/* clang-format off */
static const struct {
    cek_dtype type;
    int rank;
    int64_t shape[5];
    const double *values;
    cek_text_options options;
    const char *str, *repr;
} samples[] = {
    { CEK_F32, 1, { 3 }, (const double[]){ 1, 2.5, -3 }, { .size = 0 },
      "[ 1.   2.5 -3. ]",
      "array([ 1. ,  2.5, -3. ], dtype=float32)" },
    { CEK_F32, 1, { 3 }, (const double[]){ 0.10000000149011612, 0.3333333432674408, -0.0020000000949949026 }, {
      .size = 0 },
      "[ 0.1         0.33333334 -0.002     ]",
      "array([ 0.1       ,  0.33333334, -0.002     ], dtype=float32)" },
    { CEK_F32, 1, { 3 }, (const double[]){ 1.000000013351432e-10, 1, 100000 }, { .size = 0 },
      "[1.e-10 1.e+00 1.e+05]",
      "array([1.e-10, 1.e+00, 1.e+05], dtype=float32)" },
    { CEK_F32, 1, { 2 }, (const double[]){ 1000000, 1 }, { .size = 0 },
      "[1.e+06 1.e+00]",
      "array([1.e+06, 1.e+00], dtype=float32)" },
    { CEK_F32, 0, { 0 }, (const double[]){ 7 }, { .size = 0 },
      "7.0",
      "array(7., dtype=float32)" },
    { CEK_F64, 0, { 0 }, (const double[]){ 1.5e20 }, { .size = 0 },
      "1.5e+20",
      "array(1.5e+20)" },
    { CEK_F32, 0, { 0 }, (const double[]){ -0.0 }, { .size = 0 },
      "-0.0",
      "array(-0., dtype=float32)" },
    { CEK_I32, 0, { 0 }, (const double[]){ 3 }, { .size = 0 },
      "3",
      "array(3, dtype=int32)" },
    { CEK_F32, 1, { 4 }, (const double[]){ NAN, INFINITY, -INFINITY, 1 }, { .size = 0 },
      "[ nan  inf -inf   1.]",
      "array([ nan,  inf, -inf,   1.], dtype=float32)" },
    { CEK_F64, 1, { 2 }, (const double[]){ NAN, NAN }, { .size = 0 },
      "[nan nan]",
      "array([nan, nan])" },
    { CEK_F32, 1, { 1 }, (const double[]){ INFINITY }, { .size = 0 },
      "[inf]",
      "array([inf], dtype=float32)" },
    { CEK_I32, 2, { 2, 2 }, (const double[]){ 1, -20, 300, 4 }, { .size = 0 },
      "[[  1 -20]\n"
      " [300   4]]",
      "array([[  1, -20],\n"
      "       [300,   4]], dtype=int32)" },
    { CEK_U8, 1, { 2 }, (const double[]){ 0, 255 }, { .size = 0 },
      "[  0 255]",
      "array([  0, 255], dtype=uint8)" },
    { CEK_F16, 1, { 3 }, (const double[]){ 0.015625, 16384, 1 }, { .size = 0 },
      "[1.563e-02 1.638e+04 1.000e+00]",
      "array([1.563e-02, 1.638e+04, 1.000e+00], dtype=float16)" },
    { CEK_F16, 1, { 2 }, (const double[]){ 65504, 5.960464477539063e-08 }, { .size = 0 },
      "[6.55e+04 5.96e-08]",
      "array([6.55e+04, 5.96e-08], dtype=float16)" },
    { CEK_F32, 3, { 2, 3, 5 }, (const double[]){ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
      18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29 }, { .size = 0 },
      "[[[ 0.  1.  2.  3.  4.]\n"
      "  [ 5.  6.  7.  8.  9.]\n"
      "  [10. 11. 12. 13. 14.]]\n"
      "\n"
      " [[15. 16. 17. 18. 19.]\n"
      "  [20. 21. 22. 23. 24.]\n"
      "  [25. 26. 27. 28. 29.]]]",
      "array([[[ 0.,  1.,  2.,  3.,  4.],\n"
      "        [ 5.,  6.,  7.,  8.,  9.],\n"
      "        [10., 11., 12., 13., 14.]],\n"
      "\n"
      "       [[15., 16., 17., 18., 19.],\n"
      "        [20., 21., 22., 23., 24.],\n"
      "        [25., 26., 27., 28., 29.]]], dtype=float32)" },
    { CEK_I32, 5, { 2, 1, 2, 2, 2 }, (const double[]){ -8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7 },
      { .size = 0 },
      "[[[[[-8 -7]\n"
      "    [-6 -5]]\n"
      "\n"
      "   [[-4 -3]\n"
      "    [-2 -1]]]]\n"
      "\n"
      "\n"
      "\n"
      " [[[[ 0  1]\n"
      "    [ 2  3]]\n"
      "\n"
      "   [[ 4  5]\n"
      "    [ 6  7]]]]]",
      "array([[[[[-8, -7],\n"
      "          [-6, -5]],\n"
      "\n"
      "         [[-4, -3],\n"
      "          [-2, -1]]]],\n"
      "\n"
      "\n"
      "\n"
      "       [[[[ 0,  1],\n"
      "          [ 2,  3]],\n"
      "\n"
      "         [[ 4,  5],\n"
      "          [ 6,  7]]]]], dtype=int32)" },
    { CEK_I32, 1, { 1001 }, NULL /* 0, 1, 2, ... */, { .size = 0 },
      "[   0    1    2 ...  998  999 1000]",
      "array([   0,    1,    2, ...,  998,  999, 1000],\n"
      "      shape=(1001,), dtype=int32)" },
    { CEK_F32, 2, { 30, 40 }, NULL /* 0, 1, 2, ... */, { .size = 0 },
      "[[0.000e+00 1.000e+00 2.000e+00 ... 3.700e+01 3.800e+01 3.900e+01]\n"
      " [4.000e+01 4.100e+01 4.200e+01 ... 7.700e+01 7.800e+01 7.900e+01]\n"
      " [8.000e+01 8.100e+01 8.200e+01 ... 1.170e+02 1.180e+02 1.190e+02]\n"
      " ...\n"
      " [1.080e+03 1.081e+03 1.082e+03 ... 1.117e+03 1.118e+03 1.119e+03]\n"
      " [1.120e+03 1.121e+03 1.122e+03 ... 1.157e+03 1.158e+03 1.159e+03]\n"
      " [1.160e+03 1.161e+03 1.162e+03 ... 1.197e+03 1.198e+03 1.199e+03]]",
      "array([[0.000e+00, 1.000e+00, 2.000e+00, ..., 3.700e+01, 3.800e+01,\n"
      "        3.900e+01],\n"
      "       [4.000e+01, 4.100e+01, 4.200e+01, ..., 7.700e+01, 7.800e+01,\n"
      "        7.900e+01],\n"
      "       [8.000e+01, 8.100e+01, 8.200e+01, ..., 1.170e+02, 1.180e+02,\n"
      "        1.190e+02],\n"
      "       ...,\n"
      "       [1.080e+03, 1.081e+03, 1.082e+03, ..., 1.117e+03, 1.118e+03,\n"
      "        1.119e+03],\n"
      "       [1.120e+03, 1.121e+03, 1.122e+03, ..., 1.157e+03, 1.158e+03,\n"
      "        1.159e+03],\n"
      "       [1.160e+03, 1.161e+03, 1.162e+03, ..., 1.197e+03, 1.198e+03,\n"
      "        1.199e+03]], shape=(30, 40), dtype=float32)" },
    { CEK_F64, 1, { 20 }, (const double[]){ 0, 0.14285714285714285, 0.2857142857142857, 0.42857142857142855,
      0.5714285714285714, 0.7142857142857143, 0.8571428571428571, 1, 1.1428571428571428, 1.2857142857142858,
      1.4285714285714286, 1.5714285714285714, 1.7142857142857142, 1.8571428571428572, 2, 2.142857142857143,
      2.2857142857142856, 2.4285714285714284, 2.5714285714285716, 2.7142857142857144 }, { .size = 0 },
      "[0.         0.14285714 0.28571429 0.42857143 0.57142857 0.71428571\n"
      " 0.85714286 1.         1.14285714 1.28571429 1.42857143 1.57142857\n"
      " 1.71428571 1.85714286 2.         2.14285714 2.28571429 2.42857143\n"
      " 2.57142857 2.71428571]",
      "array([0.        , 0.14285714, 0.28571429, 0.42857143, 0.57142857,\n"
      "       0.71428571, 0.85714286, 1.        , 1.14285714, 1.28571429,\n"
      "       1.42857143, 1.57142857, 1.71428571, 1.85714286, 2.        ,\n"
      "       2.14285714, 2.28571429, 2.42857143, 2.57142857, 2.71428571])" },
    { CEK_F32, 1, { 20 }, (const double[]){ 0, 0.1428571492433548, 0.2857142984867096, 0.4285714328289032,
      0.5714285969734192, 0.7142857313156128, 0.8571428656578064, 1, 1.1428571939468384, 1.2857142686843872,
      1.4285714626312256, 1.5714285373687744, 1.7142857313156128, 1.8571428060531616, 2, 2.142857074737549,
      2.2857143878936768, 2.4285714626312256, 2.5714285373687744, 2.7142856121063232 }, { .precision = 3 },
      "[0.    0.143 0.286 0.429 0.571 0.714 0.857 1.    1.143 1.286 1.429 1.571\n"
      " 1.714 1.857 2.    2.143 2.286 2.429 2.571 2.714]",
      "array([0.   , 0.143, 0.286, 0.429, 0.571, 0.714, 0.857, 1.   , 1.143,\n"
      "       1.286, 1.429, 1.571, 1.714, 1.857, 2.   , 2.143, 2.286, 2.429,\n"
      "       2.571, 2.714], dtype=float32)" },
    { CEK_F32, 1, { 2 }, (const double[]){ 0.4000000059604645, 1.600000023841858 }, { .precision = CEK_TEXT_WHOLE },
      "[0. 2.]",
      "array([0., 2.], dtype=float32)" },
    { CEK_F64, 1, { 3 }, (const double[]){ 1e-12, 1, 1234567 }, { .suppress = true },
      "[      0.       1. 1234567.]",
      "array([      0.,       1., 1234567.])" },
    { CEK_I32, 1, { 12 }, (const double[]){ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 }, { .threshold = 5, .edge_items = 1 },
      "[ 0 ... 11]",
      "array([ 0, ..., 11], shape=(12,), dtype=int32)" },
    { CEK_I32, 1, { 12 }, (const double[]){ 0, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10000,
      11000 }, { .line_width = 20 },
      "[    0  1000  2000\n"
      "  3000  4000  5000\n"
      "  6000  7000  8000\n"
      "  9000 10000 11000]",
      "array([    0,\n"
      "        1000,\n"
      "        2000,\n"
      "        3000,\n"
      "        4000,\n"
      "        5000,\n"
      "        6000,\n"
      "        7000,\n"
      "        8000,\n"
      "        9000,\n"
      "       10000,\n"
      "       11000],\n"
      "      dtype=int32)" },
    { CEK_F64, 1, { 2 }, (const double[]){ 5e-324, 1.7976931348623157e308 }, { .size = 0 },
      "[4.94065646e-324 1.79769313e+308]",
      "array([4.94065646e-324, 1.79769313e+308])" },
};
/* clang-format on */

static cek_tensor *sample_tensor(size_t i)
{
    double values[MAX];
    cek_tensor *wide, *out;
    const int64_t count = count_of(samples[i].rank, samples[i].shape);

    ck_assert_int_le(count, MAX);
    for (int64_t k = 0; k < count; k++)
        values[k] = samples[i].values != NULL ? samples[i].values[k] : (double)k;
    wide = tensor_of(reference(), CEK_F64, samples[i].rank, samples[i].shape, values);
    assert_ok(cek_tensor_cast(wide, samples[i].type, &out));
    cek_tensor_free(wide);
    return out;
}

static void assert_text(const cek_tensor *t, size_t i, bool repr)
{
    cek_text_options o = samples[i].options;
    char *text;

    o.size = sizeof o;
    o.repr = repr;
    assert_ok(cek_tensor_text(t, &o, &text));
    ck_assert_str_eq(text, repr ? samples[i].repr : samples[i].str);
    free(text);
}

START_TEST(the_text_is_numpys)
{
    cek_tensor *t = sample_tensor((size_t)_i);

    assert_text(t, (size_t)_i, false);
    assert_text(t, (size_t)_i, true);
    cek_tensor_free(t);
}
END_TEST

START_TEST(the_locale_changes_nothing)
{
    static const char *const commas[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE" };
    size_t found = 0;
    cek_tensor *t;

    while (found < sizeof commas / sizeof *commas && setlocale(LC_NUMERIC, commas[found]) == NULL)
        found++;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) { /* in C's own where no other is installed */
        t = sample_tensor(i);
        assert_text(t, i, true);
        cek_tensor_free(t);
    }
    setlocale(LC_NUMERIC, "C");
}
END_TEST

START_TEST(a_view_is_written_as_what_it_shows)
{
    cek_tensor *x, *y, *v;
    char *text;

    FOR_EACH_DEVICE(device)
    {
        assert_ok(cek_tensor_arange(device, CEK_I32, 0, 12, 1, &x));
        assert_ok(cek_tensor_reshape(x, 2, (int64_t[]){ 3, 4 }, &y));
        assert_ok(cek_tensor_transpose(y, 0, 1, &v));
        assert_ok(cek_tensor_text(v, NULL, &text));
        ck_assert_str_eq(text, "[[ 0  4  8]\n [ 1  5  9]\n [ 2  6 10]\n [ 3  7 11]]");
        free(text);
        cek_tensor_free(v);
        cek_tensor_free(y);
        cek_tensor_free(x);
    }
}
END_TEST

START_TEST(bf16_is_written_in_the_digits_that_it_has)
{
    const double values[] = { 1, 0.1, 300, -2.5 };
    cek_tensor *x = tensor_of(reference(), CEK_F32, 1, (int64_t[]){ 4 }, values), *y;
    char *text;

    assert_ok(cek_tensor_cast(x, CEK_BF16, &y));
    assert_ok(cek_tensor_text(y, &(cek_text_options){ .size = sizeof(cek_text_options), .repr = true }, &text));
    ck_assert_str_eq(text, "array([ 1.0e+00,  1.0e-01,  3.0e+02, -2.5e+00], dtype=bfloat16)");
    free(text);
    cek_tensor_free(x);
    cek_tensor_free(y);
}
END_TEST

START_TEST(options_that_cannot_be_are_refused)
{
    cek_tensor *x;
    char *text;

    assert_ok(cek_tensor_full(reference(), CEK_F32, 1, (int64_t[]){ 2 }, 1, &x));
#define REFUSED(field, cause)                                                                                \
    assert_fails(cek_tensor_text(x, &(cek_text_options){ .size = sizeof(cek_text_options), .field }, &text), \
                 CEK_INVALID, "cek_tensor_text", cause)
    REFUSED(precision = 101, "precision 101");
    REFUSED(precision = -2, "precision -2");
    REFUSED(threshold = -1, "threshold -1");
    REFUSED(edge_items = -1, "edge_items -1");
    REFUSED(line_width = -5, "line_width -5");
#undef REFUSED
    ck_assert_ptr_null(text);
    cek_tensor_free(x);
}
END_TEST

START_TEST(no_allocation_that_fails_loses_anything)
{
    cek_tensor *x;

    assert_ok(cek_tensor_full(reference(), CEK_F32, 2, (int64_t[]){ 50, 50 }, 1, &x));
    for (long nth = 1;; nth++) {
        char *text;
        cek_status st;
        bool pending;

        cek__fault_set(CEK__FAULT_ALLOC, nth);
        st = cek_tensor_text(x, NULL, &text);
        pending = cek__fault_pending(CEK__FAULT_ALLOC);
        cek__fault_set(CEK__FAULT_ALLOC, 0);
        ck_assert(st == CEK_OK || (!pending && st == CEK_OUT_OF_MEMORY));
        ck_assert((text != NULL) == (st == CEK_OK));
        free(text);
        if (pending)
            break;
    }
    cek_tensor_free(x);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tensor_text");
    TCase *tests = tcase_create("text");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, the_text_is_numpys, 0, sizeof samples / sizeof *samples);
    tcase_add_test(tests, the_locale_changes_nothing);
    tcase_add_test(tests, a_view_is_written_as_what_it_shows);
    tcase_add_test(tests, bf16_is_written_in_the_digits_that_it_has);
    tcase_add_test(tests, options_that_cannot_be_are_refused);
    tcase_add_test(tests, no_allocation_that_fails_loses_anything);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
