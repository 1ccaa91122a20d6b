/* real_data.c - reads MNIST and the Boston housing table where they are at hand.
 *
 * They are nobody's to redistribute here: CEKERNELS_TEST_DATA names a folder with mnist/ (the four files, plain or .gz)
 * and boston/BostonHousing.csv. Without it this test is skipped. */
#include <math.h>

#include "cekernels/nn.h"
#include "nn/data/dataset.h"
#include "scratch.h"

static char path[512];

static const char *in_data(const char *name)
{
    snprintf(path, sizeof path, "%.400s/%s", getenv("CEKERNELS_TEST_DATA"), name);
    return path;
}

START_TEST(mnist_has_the_known_mean_and_deviation)
{
    cek_dataset *train, *test;
    double mean, deviation;
    uint8_t image[784];
    int32_t label;
    int64_t row = 0;

    assert_ok(cek_dataset_mnist(in_data("mnist"), true, &train));
    assert_ok(cek_dataset_mnist(in_data("mnist"), false, &test));
    ck_assert_int_eq(cek_dataset_size(train), 60000);
    ck_assert_int_eq(cek_dataset_size(test), 10000);
    ck_assert_int_eq(cek_dataset_classes(test), 10);
    assert_ok(cek__dataset_read(train, &row, 1, image, &label));
    ck_assert_int_eq(label, 5);
    assert_ok(cek__dataset_statistics(train, &mean, &deviation));
    ck_assert_double_le(fabs(mean / 255 - 0.1307), 5e-5); /* the figures that everybody normalises by */
    ck_assert_double_le(fabs(deviation / 255 - 0.3081), 5e-5);
    cek_dataset_free(train);
    cek_dataset_free(test);
}
END_TEST

START_TEST(boston_has_its_columns_and_mean)
{
    cek_dataset *whole, *train, *test;
    double sum = 0, mean[13], deviation[13];
    int64_t shape[CEK_RANK_MAX];

    assert_ok(cek_dataset_csv(in_data("boston/BostonHousing.csv"), "medv", &whole));
    ck_assert_int_eq(cek_dataset_size(whole), 506);
    ck_assert_int_eq(cek_dataset_shape(whole, shape), 1);
    ck_assert_int_eq(shape[0], 13);
    for (int64_t row = 0; row < 506; row++) {
        float inputs[13], target;

        assert_ok(cek__dataset_read(whole, &row, 1, inputs, &target));
        sum += target;
    }
    ck_assert_double_le(fabs(sum / 506 - 22.5328), 5e-5);
    assert_ok(cek__dataset_statistics(whole, mean, deviation));
    ck_assert_double_le(fabs(mean[9] - 408.2372), 5e-5);      /* tax */
    ck_assert_double_le(fabs(deviation[9] - 168.3705), 5e-5); /* its population deviation */
    assert_ok(cek_dataset_split(whole, 102, 0, &train, &test));
    ck_assert(cek_dataset_size(train) == 404 && cek_dataset_size(test) == 102);
    assert_ok(cek_dataset_standardize(test, train));
    assert_ok(cek_dataset_standardize(train, train));
    assert_ok(cek__dataset_statistics(train, mean, deviation));
    for (int i = 0; i < 13; i++)
        ck_assert(fabs(mean[i]) < 1e-6 && fabs(deviation[i] - 1) < 1e-6);
    cek_dataset_free(whole);
    cek_dataset_free(train);
    cek_dataset_free(test);
}
END_TEST

int main(void)
{
    enum { SKIPPED = 77 };
    Suite *suite;
    TCase *all;

    if (getenv("CEKERNELS_TEST_DATA") == NULL) {
        puts("skipped: CEKERNELS_TEST_DATA names no folder with mnist/ and boston/");
        return SKIPPED;
    }
    suite = suite_create("real data");
    all = tcase_create("all");
    tcase_set_timeout(all, 120);
    tcase_add_test(all, mnist_has_the_known_mean_and_deviation);
    tcase_add_test(all, boston_has_its_columns_and_mean);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
