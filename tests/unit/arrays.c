/* arrays.c - tests of arrays in files as samples (.npy, .npz, safetensors, in memory or left in their files), and
 * of a function's. */
#include <math.h>

#include "cekernels/nn.h"
#include "nn/data/arrays.h"
#include "nn/data/dataset.h"
#include "nn/formats/safetensors.h"
#include "nn/formats/zip_write.h"
#include "scratch.h"

static void begin(void)
{
    scratch_make();
}

static void end(void)
{
    scratch_remove();
}

enum { COUNT = 6, CHANNELS = 3, TALL = 2, WIDE = 5, BYTES = CHANNELS * TALL * WIDE };
static uint8_t images[COUNT * BYTES];
static int32_t labels[COUNT] = { 0, 2, 1, 2, 0, 1 };

static const char *npy(const char *name, cek_dtype type, int rank, const int64_t *shape, void *data)
{
    cek_npy a = { .size = sizeof a, .type = type, .rank = rank, .count = 1, .data = data };

    for (int i = 0; i < rank; i++) {
        a.shape[i] = shape[i];
        a.count *= shape[i];
    }
    assert_ok(cek_npy_write(scratch_path(name), &a));
    return scratch_path(name);
}

static const int64_t of_images[] = { COUNT, CHANNELS, TALL, WIDE }, of_labels[] = { COUNT };

static void images_make(void)
{
    for (int i = 0; i < COUNT * BYTES; i++)
        images[i] = (uint8_t)(i * 7 + i / 31);
}

/* Each sample, channels last, with its label. */
static void assert_images(const cek_dataset *set)
{
    int64_t shape[CEK_RANK_MAX];

    ck_assert_int_eq(cek_dataset_size(set), COUNT);
    ck_assert_int_eq(cek_dataset_classes(set), 3);
    ck_assert_int_eq(cek_dataset_shape(set, shape), 3);
    ck_assert(shape[0] == CHANNELS && shape[1] == TALL && shape[2] == WIDE);
    for (int64_t row = COUNT; row-- > 0;) {
        uint8_t image[BYTES];
        int32_t label;

        assert_ok(cek__dataset_read(set, &row, 1, image, &label));
        ck_assert_int_eq(label, labels[row]);
        for (int p = 0; p < TALL * WIDE; p++)
            for (int c = 0; c < CHANNELS; c++)
                ck_assert_uint_eq(image[p * CHANNELS + c], images[row * BYTES + c * TALL * WIDE + p]);
    }
}

/* ---- .npy ---- */

START_TEST(images_are_the_same_from_memory_and_from_their_file)
{
    cek_dataset *set;

    images_make();
    npy("x.npy", CEK_U8, 4, of_images, images);
    npy("y.npy", CEK_I32, 1, of_labels, labels);
    for (uint64_t held = 0; held < 2; held++) {
        assert_ok(cek__npy_dataset(scratch_path("x.npy"), scratch_path("y.npy"), held * CEK__ARRAYS_HELD, &set));
        assert_images(set);
        cek_dataset_free(set);
    }
    assert_ok(cek_dataset_open(scratch_dir, true, NULL, &set)); /* a folder that has them */
    assert_images(set);
    cek_dataset_free(set);
    assert_fails(cek_dataset_open(scratch_dir, false, NULL, &set), CEK_NOT_FOUND, scratch_dir, "x_test");
}
END_TEST

START_TEST(channels_are_last_where_the_last_axis_alone_can_be_channels)
{
    const int64_t last[] = { COUNT, TALL, WIDE, CHANNELS }, grey[] = { COUNT, 6, 5 }, rows[] = { COUNT, 30 };
    cek_dataset *set;
    uint8_t image[BYTES];
    int32_t label;
    int64_t shape[CEK_RANK_MAX], row = 3;

    images_make();
    npy("y.npy", CEK_I32, 1, of_labels, labels);
    npy("x.npy", CEK_U8, 4, last, images);
    assert_ok(cek_dataset_npy(scratch_path("x.npy"), scratch_path("y.npy"), &set));
    cek_dataset_shape(set, shape);
    ck_assert(shape[0] == CHANNELS && shape[1] == TALL && shape[2] == WIDE);
    assert_ok(cek__dataset_read(set, &row, 1, image, &label));
    ck_assert_mem_eq(image, images + 3 * BYTES, BYTES);
    cek_dataset_free(set);
    npy("x.npy", CEK_U8, 3, grey, images);
    assert_ok(cek_dataset_npy(scratch_path("x.npy"), scratch_path("y.npy"), &set));
    ck_assert_int_eq(cek_dataset_shape(set, shape), 3);
    ck_assert(shape[0] == 1 && shape[1] == 6 && shape[2] == 5);
    cek_dataset_free(set);
    npy("x.npy", CEK_U8, 2, rows, images);
    assert_ok(cek_dataset_npy(scratch_path("x.npy"), scratch_path("y.npy"), &set));
    ck_assert_int_eq(cek_dataset_shape(set, shape), 1);
    ck_assert_int_eq(shape[0], 30);
    cek_dataset_free(set);
}
END_TEST

START_TEST(floats_are_values_and_are_held_to_be_finite_when_they_are_read)
{
    const int64_t of_x[] = { COUNT, 4 }, of_y[] = { COUNT, 2 };
    float x[COUNT * 4], y[COUNT * 2], inputs[4], targets[2];
    cek_dataset *set;
    int64_t row = 5;

    for (int i = 0; i < COUNT * 4; i++)
        x[i] = (float)i / 3;
    for (int i = 0; i < COUNT * 2; i++)
        y[i] = (float)-i;
    npy("x.npy", CEK_F32, 2, of_x, x);
    npy("y.npy", CEK_F32, 2, of_y, y);
    for (uint64_t held = 0; held < 2; held++) {
        assert_ok(cek__npy_dataset(scratch_path("x.npy"), scratch_path("y.npy"), held * CEK__ARRAYS_HELD, &set));
        ck_assert(cek_dataset_classes(set) == 0 && cek_dataset_target_columns(set) == 2);
        assert_ok(cek__dataset_read(set, &row, 1, inputs, targets));
        ck_assert_mem_eq(inputs, x + 5 * 4, sizeof inputs);
        ck_assert_mem_eq(targets, y + 5 * 2, sizeof targets);
        cek_dataset_free(set);
    }
    x[5 * 4 + 1] = NAN;
    npy("x.npy", CEK_F32, 2, of_x, x);
    assert_fails(cek_dataset_npy(scratch_path("x.npy"), scratch_path("y.npy"), &set), CEK_BAD_INPUT, "x.npy",
                 "not finite");
    assert_ok(cek__npy_dataset(scratch_path("x.npy"), scratch_path("y.npy"), 0, &set));
    assert_fails(cek__dataset_read(set, &row, 1, inputs, targets), CEK_BAD_INPUT, "x.npy", "sample 5");
    row = 4;
    assert_ok(cek__dataset_read(set, &row, 1, inputs, targets));
    cek_dataset_free(set);
}
END_TEST

START_TEST(a_file_that_shrinks_under_a_data_set_is_an_error_of_the_read)
{
    cek_dataset *set;
    uint8_t image[BYTES];
    int32_t label;
    int64_t row = 5;

    images_make();
    npy("x.npy", CEK_U8, 4, of_images, images);
    npy("y.npy", CEK_I32, 1, of_labels, labels);
    assert_ok(cek__npy_dataset(scratch_path("x.npy"), scratch_path("y.npy"), 0, &set));
    ck_assert_int_eq(truncate(scratch_path("x.npy"), 200), 0);
    assert_fails(cek__dataset_read(set, &row, 1, image, &label), CEK_IO, "x.npy", "became shorter, sample 5");
    cek_dataset_free(set);
}
END_TEST

START_TEST(arrays_that_do_not_fit_each_other_are_refused_by_name)
{
    const int64_t five[] = { 5 };
    int32_t below[COUNT] = { 0, -1 };
    cek_dataset *set;

    images_make();
    npy("x.npy", CEK_U8, 4, of_images, images);
    npy("y.npy", CEK_I32, 1, five, labels);
    assert_fails(cek_dataset_npy(scratch_path("x.npy"), scratch_path("y.npy"), &set), CEK_BAD_INPUT, "y.npy",
                 "5 rows, where there are 6 samples");
    npy("y.npy", CEK_I32, 1, of_labels, below);
    assert_fails(cek_dataset_npy(scratch_path("x.npy"), scratch_path("y.npy"), &set), CEK_BAD_INPUT, "y.npy",
                 "element 1 is -1");
    below[1] = INT32_MAX;
    npy("y.npy", CEK_I32, 1, of_labels, below);
    assert_fails(cek_dataset_npy(scratch_path("x.npy"), scratch_path("y.npy"), &set), CEK_BAD_INPUT, "y.npy",
                 "classes");
    assert_fails(cek_dataset_npy(scratch_path("none.npy"), scratch_path("y.npy"), &set), CEK_IO, "none.npy", "opened");
    scratch_write("x.npy", "no array", 8);
    assert_fails(cek_dataset_npy(scratch_path("x.npy"), scratch_path("y.npy"), &set), CEK_BAD_INPUT, "x.npy",
                 "no .npy");
    ck_assert_int_eq(unlink(scratch_path("y.npy")), 0);
    assert_fails(cek_dataset_open(scratch_dir, true, NULL, &set), CEK_BAD_INPUT, scratch_dir, "x and no y");
}
END_TEST

/* ---- archives ---- */

static void zip_put(cek__zip_writer *zip, const char *name, const char *file, bool packed)
{
    uint8_t bytes[4096];
    FILE *in = fopen(file, "rb");
    size_t size;

    ck_assert_ptr_nonnull(in);
    size = fread(bytes, 1, sizeof bytes, in);
    fclose(in);
    assert_ok(cek__zip_add(zip, name, bytes, size, packed));
}

START_TEST(an_archive_has_both_parts_by_the_names_that_keras_gives_them)
{
    cek__zip_writer *zip;
    cek_dataset *set;
    uint8_t narrow[COUNT];

    images_make();
    for (int i = 0; i < COUNT; i++)
        narrow[i] = (uint8_t)labels[i];
    npy("a", CEK_U8, 4, of_images, images);
    npy("b", CEK_U8, 1, of_labels, narrow);
    assert_ok(cek__zip_create(scratch_path("d.npz"), &zip));
    zip_put(zip, "x_train.npy", scratch_path("a"), true);
    zip_put(zip, "y_train.npy", scratch_path("b"), false);
    zip_put(zip, "x_test.npy", scratch_path("a"), false);
    zip_put(zip, "y_test.npy", scratch_path("b"), true);
    assert_ok(cek__zip_commit(&zip));
    for (int train = 0; train < 2; train++) {
        assert_ok(cek_dataset_open(scratch_path("d.npz"), train, NULL, &set));
        assert_images(set);
        cek_dataset_free(set);
    }
    for (int i = 0; i < COUNT; i++)
        narrow[i] = (uint8_t)(i % 2);
    for (int more = 0; more < 2;
         more++) { /* classes in the test set, whose are the training set's, than there, or fewer */
        narrow[2] = (uint8_t)(3 * more);
        npy("c", CEK_U8, 1, of_labels, narrow);
        assert_ok(cek__zip_create(scratch_path("d.npz"), &zip));
        zip_put(zip, "y_train.npy", scratch_path("b"), false);
        zip_put(zip, "x_test.npy", scratch_path("a"), false);
        zip_put(zip, "y_test.npy", scratch_path("c"), false);
        assert_ok(cek__zip_commit(&zip));
        if (more) {
            assert_fails(cek_dataset_open(scratch_path("d.npz"), false, NULL, &set), CEK_BAD_INPUT,
                         "d.npz: array 'y_test'", "element 2 is 3, and the training set has 3 classes");
        } else {
            assert_ok(cek_dataset_open(scratch_path("d.npz"), false, NULL, &set));
            ck_assert_int_eq(cek_dataset_classes(set), 3);
            cek_dataset_free(set);
        }
    }
    assert_ok(cek__zip_create(scratch_path("e.npz"), &zip));
    zip_put(zip, "x.npy", scratch_path("a"), true);
    assert_ok(cek__zip_commit(&zip));
    assert_fails(cek_dataset_open(scratch_path("e.npz"), true, NULL, &set), CEK_BAD_INPUT, "e.npz", "x and no y");
    assert_fails(cek_dataset_open(scratch_path("e.npz"), false, NULL, &set), CEK_NOT_FOUND, "e.npz", "x_test");
    scratch_write("f.npz", "PK, not", 7);
    assert_ok(cek__zip_create(scratch_path("e.npz"), &zip));
    zip_put(zip, "x.npy", scratch_path("a"), true);
    zip_put(zip, "y.npy", scratch_path("f.npz"), true);
    assert_ok(cek__zip_commit(&zip));
    assert_fails(cek_dataset_open(scratch_path("e.npz"), true, NULL, &set), CEK_BAD_INPUT, "e.npz: array 'y'",
                 "no .npy file");
    assert_fails(cek_dataset_open(scratch_path("f.npz"), true, NULL, &set), CEK_BAD_INPUT, "f.npz", "zip");
}
END_TEST

START_TEST(safetensors_are_arrays_too)
{
    int64_t wide[COUNT];
    cek__st_tensor tensors[] = {
        { .name = "x", CEK__ST_U8, 4, { COUNT, CHANNELS, TALL, WIDE }, sizeof images, images },
        { .name = "y", CEK__ST_I64, 1, { COUNT }, COUNT, wide },
    };
    cek_dataset *set;

    images_make();
    for (int i = 0; i < COUNT; i++)
        wide[i] = labels[i];
    assert_ok(cek__safetensors_write(scratch_path("d.safetensors"), tensors, 2, NULL, 0));
    assert_ok(cek_dataset_open(scratch_path("d.safetensors"), true, NULL, &set));
    assert_images(set);
    cek_dataset_free(set);
    wide[4] = (int64_t)1 << 40;
    assert_ok(cek__safetensors_write(scratch_path("d.safetensors"), tensors, 2, NULL, 0));
    assert_fails(cek_dataset_open(scratch_path("d.safetensors"), true, NULL, &set), CEK_BAD_INPUT,
                 "d.safetensors: array 'y'", "element 4");
    tensors[0].name = "z";
    assert_ok(cek__safetensors_write(scratch_path("d.safetensors"), tensors, 2, NULL, 0));
    assert_fails(cek_dataset_open(scratch_path("d.safetensors"), true, NULL, &set), CEK_BAD_INPUT, "d.safetensors",
                 "neither an array x");
}
END_TEST

/* ---- a function ---- */

typedef struct given {
    int64_t bad_row;
    int32_t bad_label;
    const char *text;
    bool not_finite, destroyed;
} given;

static cek_status given_read(void *user, int64_t row, void *input, void *target, char *text, size_t text_size)
{
    const given *g = user;

    ((float *)input)[0] = (float)row;
    ((float *)input)[1] = g->not_finite ? NAN : (float)-row;
    *(int32_t *)target = row == g->bad_row && g->bad_label ? g->bad_label : (int32_t)(row % 3);
    if (row != g->bad_row || g->bad_label)
        return CEK_OK;
    if (g->text)
        snprintf(text, text_size, "%s", g->text);
    return CEK_IO;
}

static void given_destroy(void *user)
{
    ((given *)user)->destroyed = true;
}

START_TEST(a_function_gives_samples_on_the_workers_and_its_failure_is_passed_on)
{
    given g = { .bad_row = -1 };
    cek_source_options o = { .size = sizeof o,
                             .input_type = CEK_F32,
                             .count = 20,
                             .rank = 1,
                             .shape = { 2 },
                             .classes = 3,
                             .read = given_read,
                             .destroy = given_destroy,
                             .user = &g };
    cek_loader_options lo = { .size = sizeof lo, .batch = 3, .workers = 3 };
    const cek_batch *batch;
    cek_loader *loader;
    cek_dataset *set;
    int64_t row = 7;
    float input[2];
    int32_t label;

    assert_ok(cek_dataset_source(&o, &set));
    assert_ok(cek_loader_create(set, &lo, &loader));
    assert_ok(cek_loader_start(loader, 0));
    for (int64_t at = 0; at < 20; at += batch->count) {
        assert_ok(cek_loader_next(loader, &batch));
        for (int64_t i = 0; i < batch->count; i++) {
            ck_assert_float_eq(((const float *)batch->inputs)[2 * i], (float)(at + i));
            ck_assert_int_eq(((const int32_t *)batch->targets)[i], (at + i) % 3);
        }
    }
    g.bad_row = 7;
    assert_fails(cek__dataset_read(set, &row, 1, input, &label), CEK_IO, "sample 7", "refused to read");
    g.text = "the wire is cut";
    assert_fails(cek__dataset_read(set, &row, 1, input, &label), CEK_IO, "sample 7", "the wire is cut");
    g.bad_label = 3;
    assert_fails(cek__dataset_read(set, &row, 1, input, &label), CEK_BAD_INPUT, "sample 7", "label 3");
    g.bad_row = -1;
    g.not_finite = true;
    assert_fails(cek__dataset_read(set, &row, 1, input, &label), CEK_BAD_INPUT, "sample 7", "not finite");
    cek_dataset_free(set);
    ck_assert(!g.destroyed); /* the loader reads on */
    cek_loader_free(loader);
    ck_assert(g.destroyed);
    g.destroyed = false;
    o.rank = 0;
    assert_fails(cek_dataset_source(&o, &set), CEK_INVALID, "source", "rank 1");
    o.rank = 1;
    o.columns = -2;
    assert_fails(cek_dataset_source(&o, &set), CEK_INVALID, "targets", "-2");
    ck_assert(!g.destroyed);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("arrays");
    TCase *t = tcase_create("files");

    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, images_are_the_same_from_memory_and_from_their_file);
    tcase_add_test(t, channels_are_last_where_the_last_axis_alone_can_be_channels);
    tcase_add_test(t, floats_are_values_and_are_held_to_be_finite_when_they_are_read);
    tcase_add_test(t, a_file_that_shrinks_under_a_data_set_is_an_error_of_the_read);
    tcase_add_test(t, arrays_that_do_not_fit_each_other_are_refused_by_name);
    tcase_add_test(t, an_archive_has_both_parts_by_the_names_that_keras_gives_them);
    tcase_add_test(t, safetensors_are_arrays_too);
    tcase_add_test(t, a_function_gives_samples_on_the_workers_and_its_failure_is_passed_on);
    suite_add_tcase(s, t);
    return suite_run(s);
}
