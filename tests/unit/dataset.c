/* dataset.c - tests of data sets in memory, views, splits, statistics, generated digits. */
#include <math.h>
#include <stdint.h>

#include "cekernels/nn.h"
#include "core/base/alloc.h"
#include "core/base/fault.h"
#include "nn/data/dataset.h"
#include "nn/data/colours.h"
#include "nn/data/glyphs.h"
#include "nn/data/split.h"
#include "scratch.h"

enum { N = 7 };
static const uint8_t pixels[N * 12] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
static const int32_t labels[N] = { 0, 1, 2, 0, 1, 2, 2 };
static const float features[N * 2] = { 1, 5, 2, 5, 3, 5, 4, 5, 5, 5, 6, 5, 7, 5 };
static const float values[N] = { 10, 20, 30, 40, 50, 60, 70 };

static cek_dataset *table(void)
{
    cek_array_options o = { .size = sizeof o,
                            .input_type = CEK_F32,
                            .count = N,
                            .rank = 1,
                            .shape = { 2 },
                            .inputs = features,
                            .values = values,
                            .columns = 1 };
    cek_dataset *dataset;

    assert_ok(cek_dataset_arrays(&o, &dataset));
    return dataset;
}

START_TEST(images_are_turned_to_channels_last)
{
    cek_array_options o = { .size = sizeof o,
                            .input_type = CEK_U8,
                            .count = 1,
                            .rank = 3,
                            .shape = { 3, 2, 2 },
                            .inputs = pixels,
                            .labels = labels,
                            .classes = 3 };
    static const uint8_t turned[12] = { 0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11 };
    cek_dataset *dataset;
    int64_t shape[CEK_RANK_MAX], row = 0;
    uint8_t got[12];
    int32_t label;

    assert_ok(cek_dataset_arrays(&o, &dataset));
    ck_assert_int_eq(cek_dataset_shape(dataset, shape), 3);
    ck_assert(shape[0] == 3 && shape[1] == 2 && shape[2] == 2 && shape[3] == 0);
    assert_ok(cek__dataset_read(dataset, &row, 1, got, &label));
    ck_assert_mem_eq(got, turned, sizeof got);
    cek_dataset_free(dataset);
    o.nhwc = true;
    assert_ok(cek_dataset_arrays(&o, &dataset));
    assert_ok(cek__dataset_read(dataset, &row, 1, got, &label));
    ck_assert_mem_eq(got, pixels, sizeof got);
    cek_dataset_free(dataset);
    o.nhwc = false;
    o.borrow = true;
    assert_fails(cek_dataset_arrays(&o, &dataset), CEK_INVALID, "3 channels", "borrowed");
}
END_TEST

START_TEST(borrowed_arrays_are_read_in_place_and_copied_ones_are_not)
{
    float mine[N * 2], got[2], target;
    cek_array_options o = { .size = sizeof o,
                            .input_type = CEK_F32,
                            .count = N,
                            .rank = 1,
                            .shape = { 2 },
                            .inputs = mine,
                            .values = values,
                            .columns = 1 };
    cek_dataset *copied, *borrowed;
    int64_t row = 3;

    memcpy(mine, features, sizeof mine);
    assert_ok(cek_dataset_arrays(&o, &copied));
    o.borrow = true;
    assert_ok(cek_dataset_arrays(&o, &borrowed));
    mine[6] = 99;
    assert_ok(cek__dataset_read(copied, &row, 1, got, &target));
    ck_assert_float_eq(got[0], 4);
    assert_ok(cek__dataset_read(borrowed, &row, 1, got, &target));
    ck_assert_float_eq(got[0], 99);
    ck_assert_float_eq(target, 40);
    cek_dataset_free(copied);
    cek_dataset_free(borrowed);
}
END_TEST

/* clang-format off */
START_TEST(impossible_arrays_are_refused)
{
    cek_array_options good = { .size = sizeof good, .input_type = CEK_F32, .count = N, .rank = 1, .shape = { 2 },
                               .inputs = features, .labels = labels, .classes = 3 }, o;
    float infinite[2] = { 1, INFINITY };
    cek_dataset *dataset;
    /* clang-format on */

    o = good, o.classes = 2;
    assert_fails(cek_dataset_arrays(&o, &dataset), CEK_BAD_INPUT, "sample 2", "label 2");
    o = good, o.count = 1, o.inputs = infinite;
    assert_fails(cek_dataset_arrays(&o, &dataset), CEK_BAD_INPUT, "sample 0", "not finite");
    o = good, o.size = 0;
    assert_fails(cek_dataset_arrays(&o, &dataset), CEK_INVALID, "cek_dataset_arrays", "size");
    o = good, o.rank = 6;
    assert_fails(cek_dataset_arrays(&o, &dataset), CEK_INVALID, "rank 1 to 5", "not 6");
    o = good, o.shape[0] = 0;
    assert_fails(cek_dataset_arrays(&o, &dataset), CEK_INVALID, "dimension 0", "is 0");
    o = good, o.shape[0] = INT64_MAX / 2;
    assert_fails(cek_dataset_arrays(&o, &dataset), CEK_INVALID, "data set", "impossible");
    o = good, o.count = -1;
    assert_fails(cek_dataset_arrays(&o, &dataset), CEK_INVALID, "-1 samples", "data set");
    o = good, o.input_type = CEK_F16;
    assert_fails(cek_dataset_arrays(&o, &dataset), CEK_INVALID, "inputs", "u8, f32 or i32");
    o = good, o.labels = NULL;
    assert_fails(cek_dataset_arrays(&o, &dataset), CEK_INVALID, "labels", "needed");
    o = good, o.classes = 0;
    assert_fails(cek_dataset_arrays(&o, &dataset), CEK_INVALID, "values", "needed");
    ck_assert_ptr_null(dataset);
}
END_TEST

START_TEST(a_view_of_a_view_outlives_its_parents)
{
    cek_dataset *whole = table(), *first, *second;
    const int64_t some[3] = { 6, 0, 3 }, two[2] = { 2, 0 }, bad = 3;
    int64_t rows[2] = { 0, 1 };
    float inputs[4], targets[2];

    assert_ok(cek__dataset_view(whole, some, 3, &first));
    assert_ok(cek__dataset_view(first, two, 2, &second));
    assert_fails(cek__dataset_read(first, &bad, 1, inputs, targets), CEK_INVALID, "row 3", "there are 3");
    cek_dataset_free(whole);
    cek_dataset_free(first);
    ck_assert_int_eq(cek_dataset_size(second), 2);
    assert_ok(cek__dataset_read(second, rows, 2, inputs, targets));
    ck_assert(targets[0] == 40 && targets[1] == 70 && inputs[0] == 4 && inputs[2] == 7);
    cek_dataset_free(second);
}
END_TEST

static void assert_parts(const cek_dataset *first, const cek_dataset *second, int64_t whole)
{
    int64_t n = 0;
    float last = 0, input[2], target;
    char seen[1000] = { 0 };

    for (int part = 0; part < 2; part++, last = 0) {
        const cek_dataset *d = part == 0 ? first : second;

        for (int64_t i = 0; i < cek_dataset_size(d); i++, n++) {
            assert_ok(cek__dataset_read(d, &i, 1, input, &target));
            ck_assert_float_gt(target, last); /* the order of the whole */
            last = target;
            ck_assert(!seen[(int)target / 10]);
            seen[(int)target / 10] = 1;
        }
    }
    ck_assert_int_eq(n, whole);
}

START_TEST(a_split_is_complete_seeded_and_in_order)
{
    cek_dataset *whole = table(), *first, *second, *again, *other;
    bool differs = false;

    for (int64_t count = 0; count <= N; count++) {
        assert_ok(cek_dataset_split(whole, count, 5, &first, &second));
        ck_assert_int_eq(cek_dataset_size(second), count);
        assert_parts(first, second, N);
        cek_dataset_free(first);
        cek_dataset_free(second);
    }
    for (uint64_t seed = 0; seed < 10; seed++) {
        float a[2][2], b[2][2], ta[2], tb[2];
        int64_t rows[2] = { 0, 1 };

        assert_ok(cek_dataset_split(whole, 2, seed, &first, &second));
        assert_ok(cek_dataset_split(whole, 2, seed, &other, &again));
        assert_ok(cek__dataset_read(second, rows, 2, a, ta));
        assert_ok(cek__dataset_read(again, rows, 2, b, tb));
        ck_assert_mem_eq(ta, tb, sizeof ta);
        differs = differs || ta[0] != 10;
        cek_dataset_free(first);
        cek_dataset_free(second);
        cek_dataset_free(other);
        cek_dataset_free(again);
    }
    ck_assert(differs);
    assert_fails(cek_dataset_split(whole, N + 1, 0, &first, &second), CEK_INVALID, "split", "8 of 7");
    cek_dataset_free(whole);
}
END_TEST

START_TEST(a_split_file_names_rows)
{
    static const struct {
        const char *text, *cause;
    } bad[] = {
        { "1\n7\n", "line 2: no row 7" },           { "1 1", "row 1 is there twice" }, { "", "names no rows" },
        { "0,1,2,3,4,5,6", "names all rows" },      { "1\n\n-2", "line 3: '-2'" },     { "1.5", "'1.5' is not a row" },
        { "99999999999999999999", "is not a row" },
    };
    cek_dataset *whole = table(), *first, *second;
    const char *good = scratch_write("rows", "5, 0\r\n3\n", 8);
    float inputs[6], targets[3];
    int64_t rows[3] = { 0, 1, 2 };

    assert_ok(cek_dataset_split_file(whole, good, &first, &second));
    assert_parts(first, second, N);
    assert_ok(cek__dataset_read(second, rows, 3, inputs, targets));
    ck_assert(targets[0] == 10 && targets[1] == 40 && targets[2] == 60);
    cek_dataset_free(first);
    cek_dataset_free(second);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *path = scratch_write("bad", bad[i].text, strlen(bad[i].text));

        assert_fails(cek_dataset_split_file(whole, path, &first, &second), CEK_BAD_INPUT, path, bad[i].cause);
        ck_assert_ptr_null(first);
    }
    assert_fails(cek_dataset_split_file(whole, scratch_write("bad", "1\0002", 3), &first, &second), CEK_BAD_INPUT,
                 "bad", "zero byte");
    cek_dataset_free(whole);
}
END_TEST

START_TEST(standardised_features_have_mean_0_and_deviation_1)
{
    cek_dataset *whole = table(), *first, *second;
    const int64_t test[2] = { 5, 6 };
    double mean[2], deviation[2];
    float inputs[2 * N], targets[N];
    int64_t rows[N] = { 0, 1, 2, 3, 4, 5, 6 };

    assert_fails(cek_dataset_split_rows(whole, test, -1, &first, &second), CEK_INVALID, "split", "-1 rows");
    assert_ok(cek_dataset_split_rows(whole, test, 2, &first, &second));
    /* the test rows by the training rows: mean 3, deviation sqrt 2 */
    assert_ok(cek_dataset_standardize(second, first));
    assert_ok(cek_dataset_standardize(first, first));
    assert_ok(cek__dataset_read(second, rows, 2, inputs, targets));
    ck_assert_float_eq(inputs[0], (float)((6 - 3) / sqrt(2)));
    ck_assert_float_eq(inputs[1], 0); /* the constant column is centred */
    ck_assert(targets[0] == 60 && targets[1] == 70);
    assert_ok(cek__dataset_statistics(first, mean, deviation));
    ck_assert_double_le(fabs(mean[0]), 1e-7);
    ck_assert_double_le(fabs(deviation[0] - 1), 1e-7);
    ck_assert_double_eq(deviation[1], 1);
    assert_ok(cek__dataset_read(whole, rows, N, inputs, targets)); /* the whole is as it was */
    ck_assert_mem_eq(inputs, features, sizeof features);
    cek_dataset_free(first);
    cek_dataset_free(second);
    cek_dataset_free(whole);
}
END_TEST

START_TEST(failing_allocations_leave_a_data_set_as_it_was)
{
    cek_dataset *whole = table();
    int failures = 0;

    for (long nth = 1;; nth++, failures++) {
        float inputs[2], target;
        int64_t row = 2;
        cek_status st;

        cek__fault_set(CEK__FAULT_ALLOC, nth);
        st = cek_dataset_standardize(whole, whole);
        if (cek__fault_pending(CEK__FAULT_ALLOC)) {
            assert_ok(st);
            break;
        }
        ck_assert_uint_eq(st, CEK_OUT_OF_MEMORY);
        assert_ok(cek__dataset_read(whole, &row, 1, inputs, &target));
        ck_assert(inputs[0] == 3 && target == 30);
    }
    ck_assert_int_ge(failures, 8);
    for (long nth = 1; cek__fault_set(CEK__FAULT_ALLOC, nth), 1; nth++) {
        cek_dataset *first, *second;
        cek_status st = cek_dataset_split(whole, 3, 1, &first, &second);
        bool done = cek__fault_pending(CEK__FAULT_ALLOC);

        ck_assert_uint_eq(st, done ? CEK_OK : CEK_OUT_OF_MEMORY);
        ck_assert(done || (first == NULL && second == NULL));
        cek_dataset_free(first);
        cek_dataset_free(second);
        if (done)
            break;
    }
    cek__fault_set(CEK__FAULT_ALLOC, 0);
    cek_dataset_free(whole);
}
END_TEST

/* ---- generated digits ---- */

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, CEK__GLYPH_PIXELS);
}

START_TEST(digits_are_distinct_labelled_and_seeded)
{
    cek_dataset *train, *test;
    enum { ALL = CEK__GLYPHS_TRAIN + CEK__GLYPHS_TEST };
    uint8_t *images, again[CEK__GLYPH_PIXELS];
    int32_t *digits;
    int64_t *rows;

    assert_ok(cek_dataset_digits(3, true, &train));
    assert_ok(cek_dataset_digits(3, false, &test));
    ck_assert_int_eq(cek_dataset_size(train), CEK__GLYPHS_TRAIN);
    ck_assert_int_eq(cek_dataset_size(test), CEK__GLYPHS_TEST);
    ck_assert_int_eq(cek_dataset_classes(train), 10);
    assert_ok(cek__alloc_array(ALL, CEK__GLYPH_PIXELS, &images));
    assert_ok(cek__alloc_array(ALL, sizeof *digits, &digits));
    assert_ok(cek__alloc_array(ALL, sizeof *rows, &rows));
    for (int i = 0; i < CEK__GLYPHS_TRAIN; i++)
        rows[i] = i;
    assert_ok(cek__dataset_read(train, rows, CEK__GLYPHS_TRAIN, images, digits));
    assert_ok(cek__dataset_read(test, rows, CEK__GLYPHS_TEST, images + CEK__GLYPHS_TRAIN * CEK__GLYPH_PIXELS,
                                digits + CEK__GLYPHS_TRAIN));
    for (int i = 0; i < ALL; i++)
        ck_assert_int_eq(digits[i], i % 10);
    cek__glyph_draw(3, 12345, again); /* alone and out of order: the same */
    ck_assert_mem_eq(again, images + 12345 * CEK__GLYPH_PIXELS, sizeof again);
    cek__glyph_draw(4, 12345, again);
    ck_assert_mem_ne(again, images + 12345 * CEK__GLYPH_PIXELS, sizeof again);
    qsort(images, ALL, CEK__GLYPH_PIXELS, by_bytes);
    for (int i = 1; i < ALL; i++)
        ck_assert_int_ne(
            memcmp(images + (i - 1) * CEK__GLYPH_PIXELS, images + i * CEK__GLYPH_PIXELS, CEK__GLYPH_PIXELS), 0);
    free(images);
    free(digits);
    free(rows);
    cek_dataset_free(train);
    cek_dataset_free(test);
}
END_TEST

/* How far a digit's strokes stand out of the page around them, in levels: the sign says which is lighter. */
static double contrast(const uint8_t *image, const float *ink, int left, int top, int channel)
{
    double sum[2] = { 0 }, count[2] = { 0 };

    for (int y = 0; y < CEK__GLYPH_SIZE; y++)
        for (int x = 0; x < CEK__GLYPH_SIZE; x++) {
            float cover = ink[y * CEK__GLYPH_SIZE + x];
            uint8_t value = image[((y + top) * CEK__COLOURS_SIZE + x + left) * 3 + channel];

            if (cover > 0.9f || cover <= 0) {
                sum[cover > 0.9f] += value;
                count[cover > 0.9f]++;
            }
        }
    return sum[1] / count[1] - sum[0] / count[0];
}

START_TEST(coloured_digits_are_the_same_digits_lighter_or_darker_than_their_page)
{
    enum { SOME = 60 };
    cek_dataset *train, *test;
    uint8_t images[SOME * CEK__COLOURS_BYTES], again[CEK__COLOURS_BYTES];
    int32_t digits[SOME];
    int64_t rows[SOME], shape[CEK_RANK_MAX];
    int lighter = 0;

    assert_ok(cek_dataset_coloured_digits(3, true, &train));
    assert_ok(cek_dataset_coloured_digits(3, false, &test));
    ck_assert(cek_dataset_size(train) == CEK__COLOURS_TRAIN && cek_dataset_size(test) == CEK__COLOURS_TEST);
    ck_assert(cek_dataset_classes(train) == 10 && cek_dataset_shape(train, shape) == 3);
    ck_assert(shape[0] == 3 && shape[1] == 32 && shape[2] == 32);
    for (int i = 0; i < SOME; i++)
        rows[i] = i;
    assert_ok(cek__dataset_read(test, rows, SOME, images, digits));
    cek__colours_draw(3, CEK__COLOURS_TRAIN + 17, again);
    ck_assert_mem_eq(again, images + 17 * CEK__COLOURS_BYTES, sizeof again);
    for (int i = 0; i < SOME; i++) {
        float ink[CEK__GLYPH_PIXELS];
        double largest[3] = { 0 };

        ck_assert_int_eq(digits[i], i % 10);
        cek__glyph_ink(3, (uint64_t)(CEK__COLOURS_TRAIN + i), ink);
        for (int c = 0; c < 3; c++)
            for (int place = 0; place < 25; place++) { /* wherever it was put */
                double d = contrast(images + i * CEK__COLOURS_BYTES, ink, place % 5, place / 5, c);

                largest[c] = fabs(d) > fabs(largest[c]) ? d : largest[c];
            }
        ck_assert_msg((largest[0] > 20 && largest[1] > 20 && largest[2] > 20) ||
                          (largest[0] < -20 && largest[1] < -20 && largest[2] < -20),
                      "image %d: %g %g %g", i, largest[0], largest[1], largest[2]);
        lighter += largest[0] > 0;
    }
    ck_assert(lighter > SOME / 4 && lighter < SOME * 3 / 4);
    cek_dataset_free(train);
    cek_dataset_free(test);
}
END_TEST

/* ---- texts ---- */

START_TEST(windows_of_a_text_have_the_byte_behind_each_as_targets)
{
    enum { SIZE = 205, TESTED = 20, CONTEXT = 7 };
    cek_dataset *train, *test;
    char text[SIZE];
    const char *path;
    int64_t rows[] = { 0, SIZE - TESTED - CONTEXT - 1 }, shape[CEK_RANK_MAX], last = TESTED - CONTEXT - 1;
    int32_t in[2 * CONTEXT], out[2 * CONTEXT];

    for (int i = 0; i < SIZE; i++)
        text[i] = (char)(i * 7 + 200);
    scratch_make();
    path = scratch_write("text", text, SIZE);
    assert_ok(cek_dataset_text(path, CONTEXT, true, &train));
    assert_ok(cek_dataset_text(path, CONTEXT, false, &test));
    ck_assert(cek_dataset_size(train) == rows[1] + 1 && cek_dataset_size(test) == last + 1);
    ck_assert(cek_dataset_input_type(train) == CEK_I32 && cek_dataset_shape(train, shape) == 1 && shape[0] == CONTEXT);
    ck_assert(cek_dataset_classes(train) == 256 && cek_dataset_target_columns(train) == CONTEXT);
    assert_ok(cek__dataset_read(train, rows, 2, in, out));
    for (int i = 0; i < 2 * CONTEXT; i++) {
        int64_t at = rows[i / CONTEXT] + i % CONTEXT;

        ck_assert_int_eq(in[i], (uint8_t)text[at]);
        ck_assert_int_eq(out[i], (uint8_t)text[at + 1]);
    }
    assert_ok(cek__dataset_read(test, &last, 1, in, out));
    ck_assert_int_eq(in[0], (uint8_t)text[SIZE - CONTEXT - 1]);
    ck_assert_int_eq(out[CONTEXT - 1], (uint8_t)text[SIZE - 1]);
    cek_dataset_free(train);
    cek_dataset_free(test);
    assert_fails(cek_dataset_text(path, TESTED, true, &train), CEK_BAD_INPUT, path, "205 bytes");
    assert_fails(cek_dataset_text(path, 0, true, &train), CEK_INVALID, path, "windows of 0");
    assert_fails(cek_dataset_text(scratch_path("none"), 4, true, &train), CEK_IO, "none", "open");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dataset");
    TCase *all = tcase_create("all");

    tcase_add_checked_fixture(all, scratch_make, scratch_remove);
    tcase_add_test(all, images_are_turned_to_channels_last);
    tcase_add_test(all, borrowed_arrays_are_read_in_place_and_copied_ones_are_not);
    tcase_add_test(all, impossible_arrays_are_refused);
    tcase_add_test(all, a_view_of_a_view_outlives_its_parents);
    tcase_add_test(all, a_split_is_complete_seeded_and_in_order);
    tcase_add_test(all, a_split_file_names_rows);
    tcase_add_test(all, standardised_features_have_mean_0_and_deviation_1);
    tcase_add_test(all, failing_allocations_leave_a_data_set_as_it_was);
    tcase_add_test(all, digits_are_distinct_labelled_and_seeded);
    tcase_add_test(all, coloured_digits_are_the_same_digits_lighter_or_darker_than_their_page);
    tcase_add_test(all, windows_of_a_text_have_the_byte_behind_each_as_targets);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
