/* folders.c - tests of data as people have them: folders of images, CIFAR-10, what a folder is taken
 * for; augmentation, normalisation. */
#include <fcntl.h>
#include <ftw.h>
#include <math.h>

#include "cekernels/nn.h"
#include "core/base/fault.h"
#include "image_files.h"
#include "nn/data/dataset.h"
#include "nn/data/loader.h"

static void begin(void)
{
    scratch_make();
}

static int entry_remove(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

static void end(void)
{
    nftw(scratch_dir, entry_remove, 8, FTW_DEPTH | FTW_PHYS);
}

static void folder(const char *name)
{
    ck_assert_int_eq(mkdir(scratch_path(name), 0700), 0);
}

/* SIDE x SIDE, grey, every value the same. */
enum { SIDE = 6 };
static void grey_png(const char *name, uint8_t value)
{
    uint8_t samples[SIDE * SIDE];

    memset(samples, value, sizeof samples);
    png_write(name, SIDE, SIDE, 1, samples);
}

/* Classes "b" (10, 11), "a" (20, 21, 22). */
static const char *classes_make(const char *place)
{
    char name[64];
    static const struct {
        const char *file;
        uint8_t value;
    } files[] = { { "b/y.png", 11 }, { "b/x.png", 10 }, { "a/2.PNG", 22 }, { "a/0.png", 20 }, { "a/1.png", 21 } };

    folder(place);
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s/%c", place, "ba"[i]);
        folder(name);
    }
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "%s/%s", place, files[i].file);
        grey_png(name, files[i].value);
    }
    snprintf(name, sizeof name, "%s/a/notes.txt", place);
    scratch_write(name, "no image", 8);
    return scratch_path(place);
}

static void assert_rows(const cek_dataset *set, const uint8_t *values, const int32_t *labels)
{
    const int64_t n = cek_dataset_size(set);

    for (int64_t row = 0; row < n; row++) {
        uint8_t image[SIDE * SIDE];
        int32_t label;

        assert_ok(cek__dataset_read(set, &row, 1, image, &label));
        ck_assert_uint_eq(image[0], values[row]);
        ck_assert_uint_eq(image[SIDE * SIDE - 1], values[row]);
        ck_assert_int_eq(label, labels[row]);
    }
}

/* ---- folders ---- */

START_TEST(classes_are_folders_in_the_order_of_their_names_and_images_too)
{
    cek_dataset *set, *first, *second;
    int64_t shape[CEK_RANK_MAX];

    assert_ok(cek_dataset_folders(classes_make("d"), NULL, &set));
    ck_assert_int_eq(cek_dataset_size(set), 5);
    ck_assert_int_eq(cek_dataset_classes(set), 2);
    ck_assert_int_eq(cek_dataset_shape(set, shape), 3);
    ck_assert(shape[0] == 1 && shape[1] == SIDE && shape[2] == SIDE);
    assert_rows(set, (const uint8_t[]){ 20, 21, 22, 10, 11 }, (const int32_t[]){ 0, 0, 0, 1, 1 });
    ck_assert_str_eq(cek_dataset_class_name(set, 0), "a");
    ck_assert_str_eq(cek_dataset_class_name(set, 1), "b");
    ck_assert_ptr_null(cek_dataset_class_name(set, 2));
    ck_assert_ptr_nonnull(strstr(cek_dataset_row_name(set, 3), "/d/b/x.png"));
    assert_ok(cek_dataset_split_rows(set, (const int64_t[]){ 3 }, 1, &first, &second));
    cek_dataset_free(set); /* a part keeps what it needs, names as well */
    ck_assert_ptr_nonnull(strstr(cek_dataset_row_name(second, 0), "/d/b/x.png"));
    assert_rows(second, (const uint8_t[]){ 10 }, (const int32_t[]){ 1 });
    cek_dataset_free(first);
    cek_dataset_free(second);
}
END_TEST

START_TEST(names_stay_with_samples_that_are_standardised_and_outlive_what_these_were)
{
    const double mean = 1, deviation = 2;
    cek_dataset *set, *part, *again;
    const char *name;

    assert_ok(cek_dataset_folders(classes_make("d"), NULL, &set));
    assert_ok(cek__dataset_view(set, (const int64_t[]){ 4, 1 }, 2, &part));
    cek_dataset_free(set);
    name = cek_dataset_class_name(part, 1);
    for (int round = 0; round < 2; round++)
        assert_ok(cek__dataset_standardize(part, &mean, &deviation));
    ck_assert_str_eq(name, "b");
    ck_assert_str_eq(cek_dataset_class_name(part, 0), "a");
    ck_assert_ptr_nonnull(strstr(cek_dataset_row_name(part, 0), "/d/b/y.png"));
    assert_ok(cek__dataset_view(part, (const int64_t[]){ 1 }, 1, &again));
    cek_dataset_free(part);
    ck_assert_ptr_nonnull(strstr(cek_dataset_row_name(again, 0), "/d/a/"));
    cek_dataset_free(again);
}
END_TEST

START_TEST(options_give_channels_sizes_and_classes)
{
    static const char *const classes[] = { "z", "b", "a" }, *const others[] = { "a", "c" };
    cek_image_options o = {
        .size = sizeof o, .channels = 3, .height = 2, .width = 4, .classes = classes, .class_count = 3
    };
    const char *place = classes_make("d");
    cek_dataset *set;
    int64_t shape[CEK_RANK_MAX], row = 0;
    uint8_t image[24];
    int32_t label;

    assert_ok(cek_dataset_folders(place, &o, &set));
    ck_assert_int_eq(cek_dataset_classes(set), 3);
    cek_dataset_shape(set, shape);
    ck_assert(shape[0] == 3 && shape[1] == 2 && shape[2] == 4);
    assert_ok(cek__dataset_read(set, &row, 1, image, &label));
    ck_assert_int_eq(label, 2);
    for (int i = 0; i < 24; i++)
        ck_assert_uint_eq(image[i], 20);
    cek_dataset_free(set);
    o.classes = (const char *const[]){ "a", "b", "a" };
    assert_fails(cek_dataset_folders(place, &o, &set), CEK_INVALID, "classes[2]", "\"a\", as one before it");
    o.classes = others;
    o.class_count = 2;
    assert_fails(cek_dataset_folders(place, &o, &set), CEK_BAD_INPUT, "/d/b", "no class is called \"b\"");
    o = (cek_image_options){ .size = sizeof o, .height = 3 };
    assert_fails(cek_dataset_folders(place, &o, &set), CEK_INVALID, "3 x 0", "both");
    o = (cek_image_options){ .size = sizeof o, .channels = 2 };
    assert_fails(cek_dataset_folders(place, &o, &set), CEK_INVALID, "2 channels", "grey");
}
END_TEST

START_TEST(folders_that_are_none_of_classes_are_refused)
{
    cek_dataset *set;

    assert_fails(cek_dataset_folders(scratch_path("none"), NULL, &set), CEK_IO, "none", "cannot be read");
    folder("empty");
    assert_fails(cek_dataset_folders(scratch_path("empty"), NULL, &set), CEK_BAD_INPUT, "empty", "no folders");
    folder("empty/a");
    assert_fails(cek_dataset_folders(scratch_path("empty"), NULL, &set), CEK_BAD_INPUT, "empty/a", "without images");
    folder("empty/a/deeper");
    assert_fails(cek_dataset_folders(scratch_path("empty"), NULL, &set), CEK_BAD_INPUT, "a/deeper", "folder within");
    ck_assert_ptr_null(set);
}
END_TEST

/* Through the loader: the failure of a worker is the caller's, with the file. */
START_TEST(a_damaged_image_ends_the_epoch_with_its_name)
{
    cek_loader_options o = { .size = sizeof o, .batch = 1, .workers = 2 };
    const cek_batch *batch;
    cek_loader *loader;
    cek_dataset *set;
    cek_status st = CEK_OK;
    int well = 0;
    uint8_t wide[SIDE * SIDE * 2] = { 0 };

    assert_ok(cek_dataset_folders(classes_make("d"), NULL, &set));
    scratch_write("d/b/x.png", "\x89PNG\r\n\x1a\n broken", 15);
    assert_ok(cek_loader_create(set, &o, &loader));
    assert_ok(cek_loader_start(loader, 0));
    while ((st = cek_loader_next(loader, &batch)) == CEK_OK && batch != NULL)
        well++;
    ck_assert_int_eq(well, 3);
    ck_assert_int_eq(st, CEK_BAD_INPUT);
    ck_assert_msg(strstr(cek_error_text(), "/d/b/x.png: damaged PNG") != NULL, "%s", cek_error_text());
    png_write("d/b/x.png", SIDE, SIDE * 2, 1, wide); /* well, and of another size */
    assert_ok(cek_loader_start(loader, 1));
    for (int i = 0; i < 3; i++)
        assert_ok(cek_loader_next(loader, &batch));
    assert_fails(cek_loader_next(loader, &batch), CEK_BAD_INPUT, "/d/b/x.png",
                 "6 x 12 pixels, the first image has 6 x 6; images of several sizes need a height and width");
    ck_assert_ptr_null(strstr(cek_error_text(), "--")); /* the library has no options */
    cek_loader_free(loader);
    cek_dataset_free(set);
}
END_TEST

/* ---- CIFAR-10 ---- */

enum { RECORD = 3073 };
static void cifar_write(const char *name, int count, int label)
{
    static uint8_t records[4 * RECORD];

    for (int i = 0; i < count; i++) {
        records[i * RECORD] = (uint8_t)(label + i);
        for (int k = 1; k < RECORD; k++)
            records[i * RECORD + k] = (uint8_t)(k * 7 + i);
    }
    scratch_write(name, records, (size_t)count * RECORD);
}

START_TEST(cifar_batches_are_read_in_order_with_channels_last)
{
    static const char names[] = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\r\ntruck\n\n";
    cek_dataset *set;
    uint8_t image[3072];
    int32_t label;

    folder("c");
    cifar_write("c/data_batch_1.bin", 2, 3);
    cifar_write("c/data_batch_2.bin", 3, 6);
    cifar_write("c/test_batch.bin", 1, 9);
    assert_ok(cek_dataset_cifar10(scratch_path("c"), true, &set));
    ck_assert_ptr_null(cek_dataset_class_name(set, 0));
    cek_dataset_free(set);
    scratch_write("c/batches.meta.txt", names, sizeof names - 1);
    assert_ok(cek_dataset_cifar10(scratch_path("c"), true, &set));
    ck_assert_int_eq(cek_dataset_size(set), 5);
    ck_assert_str_eq(cek_dataset_class_name(set, 8), "ship");
    for (int64_t row = 0; row < 5; row++) {
        const int i = row < 2 ? (int)row : (int)row - 2;

        assert_ok(cek__dataset_read(set, &row, 1, image, &label));
        ck_assert_int_eq(label, row < 2 ? 3 + i : 6 + i);
        for (int p = 0; p < 1024; p++)
            for (int c = 0; c < 3; c++)
                ck_assert_uint_eq(image[3 * p + c], (uint8_t)((1 + c * 1024 + p) * 7 + i));
    }
    cek_dataset_free(set);
    assert_ok(cek_dataset_cifar10(scratch_path("c"), false, &set));
    ck_assert_int_eq(cek_dataset_size(set), 1);
    cek_dataset_free(set);
}
END_TEST

START_TEST(cifar_files_that_are_wrong_are_errors_and_one_that_shrinks_is_no_signal)
{
    cek_dataset *set;
    uint8_t image[3072];
    int32_t label;
    int64_t row = 1;

    folder("c");
    assert_fails(cek_dataset_cifar10(scratch_path("c"), true, &set), CEK_IO, "/c", "data_batch_1.bin");
    cifar_write("c/data_batch_1.bin", 2, 9);
    assert_ok(cek_dataset_cifar10(scratch_path("c"), true, &set));
    assert_fails(cek__dataset_read(set, &row, 1, image, &label), CEK_BAD_INPUT, "sample 1", "label 10");
    ck_assert_int_eq(truncate(scratch_path("c/data_batch_1.bin"), RECORD + 100), 0);
    assert_fails(cek__dataset_read(set, &row, 1, image, &label), CEK_IO, "data_batch_1.bin", "became shorter");
    cek_dataset_free(set);
    assert_fails(cek_dataset_cifar10(scratch_path("c"), true, &set), CEK_BAD_INPUT, "data_batch_1.bin", "no multiple");
    scratch_write("c/data_batch_1.bin", "", 0);
    assert_fails(cek_dataset_cifar10(scratch_path("c"), true, &set), CEK_BAD_INPUT, "data_batch_1.bin", "0 bytes");
}
END_TEST

/* ---- what a folder is ---- */

static cek_data_kind kind_of(const char *name)
{
    cek_data_kind kind;

    assert_ok(cek_data_recognize(scratch_path(name), &kind));
    ck_assert_ptr_nonnull(cek_data_kind_name(kind));
    return kind;
}

START_TEST(what_a_place_holds_is_recognised_by_names_alone)
{
    cek_data_kind kind;

    folder("idx");
    scratch_write("idx/t10k-images-idx3-ubyte.gz", "", 0);
    ck_assert_int_eq(kind_of("idx"), CEK_DATA_IDX);
    folder("cifar");
    scratch_write("cifar/test_batch.bin", "", 0);
    ck_assert_int_eq(kind_of("cifar"), CEK_DATA_CIFAR10);
    classes_make("classes");
    ck_assert_int_eq(kind_of("classes"), CEK_DATA_FOLDERS);
    ck_assert_int_eq(kind_of("classes/a"), CEK_DATA_IMAGES);
    ck_assert_int_eq(kind_of("classes/a/0.png"), CEK_DATA_IMAGE);
    folder("two");
    classes_make("two/train");
    ck_assert_int_eq(kind_of("two"), CEK_DATA_SPLIT);
    folder("vehicles"); /* a class may be called train */
    folder("vehicles/train");
    grey_png("vehicles/train/1.png", 1);
    ck_assert_int_eq(kind_of("vehicles"), CEK_DATA_FOLDERS);
    folder("nothing");
    assert_fails(cek_data_recognize(scratch_path("nothing"), &kind), CEK_BAD_INPUT, "nothing", "neither");
    assert_fails(cek_data_recognize(scratch_path("classes/a/notes.txt"), &kind), CEK_BAD_INPUT, "notes.txt", "neither");
    assert_fails(cek_data_recognize(scratch_path("absent"), &kind), CEK_IO, "absent", "No such file");
    ck_assert_ptr_null(cek_data_kind_name(0));
    ck_assert_ptr_null(cek_data_kind_name((cek_data_kind)99));
}
END_TEST

START_TEST(a_test_set_has_the_classes_and_channels_of_its_training_set)
{
    cek_dataset *set;
    uint8_t rgb[SIDE * SIDE * 3];
    int64_t shape[CEK_RANK_MAX];

    folder("two");
    classes_make("two/train");
    folder("two/val");
    folder("two/val/b");
    memset(rgb, 50, sizeof rgb);
    png_write("two/val/b/1.png", SIDE, SIDE, 3, rgb);
    assert_ok(cek_dataset_open(scratch_path("two"), true, NULL, &set));
    ck_assert_int_eq(cek_dataset_size(set), 5);
    cek_dataset_free(set);
    assert_ok(cek_dataset_open(scratch_path("two"), false, NULL, &set));
    ck_assert_int_eq(cek_dataset_classes(set), 2);
    cek_dataset_shape(set, shape);
    ck_assert_int_eq(shape[0], 1);
    assert_rows(set, (const uint8_t[]){ 50 }, (const int32_t[]){ 1 });
    cek_dataset_free(set);
    assert_fails(cek_dataset_open(scratch_path("two/train"), false, NULL, &set), CEK_NOT_FOUND, "two/train", "testing");
    assert_ok(cek_dataset_open(scratch_path("two/train/a"), true, NULL, &set)); /* no classes */
    ck_assert(cek_dataset_size(set) == 3 && cek_dataset_classes(set) == 0);
    cek_dataset_free(set);
}
END_TEST

/* A class that is not looked for, a part that is taken for a class: labels would be others, and nobody would know. */
START_TEST(for_want_of_memory_no_place_is_taken_for_another_and_no_class_is_left_out)
{
    static const struct {
        const char *name;
        bool train;
    } places[] = { { "two", true }, { "two", false }, { "two/train", true }, { "arrays", true } };
    uint8_t one = 1;
    cek_npy array = { .size = sizeof array, .type = CEK_U8, .rank = 2, .shape = { 1, 1 }, .count = 1, .data = &one };

    folder("two");
    classes_make("two/train");
    classes_make("two/test");
    folder("arrays");
    assert_ok(cek_npy_write(scratch_path("arrays/x_train.npy"), &array));
    assert_ok(cek_npy_write(scratch_path("arrays/y_train.npy"), &array));
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        for (long nth = 1;; nth++) {
            cek_dataset *set;
            cek_status st;
            bool done;

            cek__fault_set(CEK__FAULT_ALLOC, nth);
            st = cek_dataset_open(scratch_path(places[i].name), places[i].train, NULL, &set);
            done = cek__fault_pending(CEK__FAULT_ALLOC);
            ck_assert_msg(st == (done ? CEK_OK : CEK_OUT_OF_MEMORY), "%s, allocation %ld: %s", places[i].name, nth,
                          st == CEK_OK ? "as if nothing had been" : cek_error_text());
            ck_assert(st == CEK_OK || set == NULL);
            cek_dataset_free(set);
            if (done)
                break;
            ck_assert_int_lt(nth, 10000);
        }
    }
    cek__fault_set(CEK__FAULT_ALLOC, 0);
}
END_TEST

/* ---- augmentation, normalisation ---- */

enum { COUNT = 24, TALL = 7, WIDE = 5, BYTES = TALL * WIDE * 3 };
static uint8_t pictures[COUNT][BYTES];
static int32_t labels[COUNT];

static cek_dataset *pictures_set(void)
{
    cek_array_options o = { .size = sizeof o,
                            .input_type = CEK_U8,
                            .count = COUNT,
                            .rank = 3,
                            .nhwc = true,
                            .shape = { 3, TALL, WIDE },
                            .inputs = pictures,
                            .labels = labels,
                            .classes = 2 };
    cek_dataset *set;

    for (int i = 0; i < COUNT * BYTES; i++)
        pictures[i / BYTES][i % BYTES] = (uint8_t)(1 + i * 31 % 255);
    assert_ok(cek_dataset_arrays(&o, &set));
    return set;
}

static cek_dataset *augmented(const cek_dataset *set, cek_augment_options o)
{
    cek_dataset *out;

    o.size = sizeof o;
    assert_ok(cek_dataset_augment(set, &o, &out));
    return out;
}

static void draw(const cek_dataset *set, uint64_t seed, int64_t epoch, int64_t row, uint8_t *image)
{
    int32_t label;

    assert_ok(cek__dataset_draw(set, &(cek__data_draw){ seed, epoch }, &row, 1, image, &label));
}

/* Every window of the padded image, mirrored or not, comes; and nothing else. */
START_TEST(a_crop_is_a_window_of_the_padded_image_and_a_flip_is_its_mirror)
{
    enum { PAD = 2, PLACES = 2 * PAD + 1 };
    cek_dataset *set = pictures_set(), *other = augmented(set, (cek_augment_options){ .crop = PAD, .flip = true });
    bool seen[2][PLACES][PLACES] = { { { false } } };
    uint8_t image[BYTES], window[BYTES];
    int kinds = 0;

    for (int64_t epoch = 0; epoch < 600; epoch++) {
        bool found = false;

        draw(other, 3, epoch, 4, image);
        for (int v = 0; v < 2 * PLACES * PLACES && !found; v++) {
            const int flip = v % 2, down = v / 2 % PLACES - PAD, right = v / 2 / PLACES - PAD;

            for (int y = 0; y < TALL; y++)
                for (int x = 0; x < WIDE; x++)
                    for (int c = 0; c < 3; c++) {
                        const int from_y = y + down, from_x = (flip ? WIDE - 1 - x : x) + right;
                        const bool inside = from_y >= 0 && from_x >= 0 && from_y < TALL && from_x < WIDE;

                        window[(y * WIDE + x) * 3 + c] = inside ? pictures[4][(from_y * WIDE + from_x) * 3 + c] : 0;
                    }
            if (memcmp(image, window, BYTES) == 0) {
                found = true;
                kinds += !seen[flip][down + PAD][right + PAD];
                seen[flip][down + PAD][right + PAD] = true;
            }
        }
        ck_assert(found);
    }
    ck_assert_int_eq(kinds, 2 * PLACES * PLACES);
    cek_dataset_free(other);
    cek_dataset_free(set);
}
END_TEST

/* Turned by nothing it is itself; a turned disc stays where it is; corners come from outside. */
START_TEST(what_is_augmented_twice_is_changed_by_numbers_of_two_draws)
{
    cek_dataset *set = pictures_set(), *once = augmented(set, (cek_augment_options){ .flip = true }),
                *twice = augmented(once, (cek_augment_options){ .flip = true });
    uint8_t image[BYTES];
    int as_they_are = 0;

    for (int64_t epoch = 0; epoch < 100; epoch++) {
        draw(twice, 3, epoch, 4, image);
        as_they_are += memcmp(image, pictures[4], BYTES) == 0;
    }
    ck_assert_int_gt(as_they_are, 20); /* of the same numbers, flipped and flipped back: all */
    ck_assert_int_lt(as_they_are, 80);
    cek_dataset_free(twice);
    cek_dataset_free(once);
    cek_dataset_free(set);
}
END_TEST

START_TEST(a_turn_is_about_the_middle_and_brings_zeros_from_outside)
{
    enum { N = 33 };
    static uint8_t disc[N * N], image[N * N];
    static const int32_t label;
    cek_array_options o = { .size = sizeof o,
                            .input_type = CEK_U8,
                            .count = 1,
                            .rank = 3,
                            .shape = { 1, N, N },
                            .inputs = disc,
                            .labels = &label,
                            .classes = 1 };
    cek_dataset *set, *other;
    int zeros = 0, far = 0;

    for (int y = 0; y < N; y++)
        for (int x = 0; x < N; x++)
            disc[y * N + x] = (y - N / 2) * (y - N / 2) + (x - N / 2) * (x - N / 2) < 100 ? 250 : 90;
    assert_ok(cek_dataset_arrays(&o, &set));
    other = augmented(set, (cek_augment_options){ .rotate = 45 });
    for (int64_t epoch = 0; epoch < 20; epoch++) {
        draw(other, 1, epoch, 0, image);
        for (int y = 0; y < N; y++)
            for (int x = 0; x < N; x++) {
                const int r = (y - N / 2) * (y - N / 2) + (x - N / 2) * (x - N / 2);

                if (r < 72 || (r > 132 && r < 220))
                    far += abs(image[y * N + x] - disc[y * N + x]) > 1;
            }
        zeros += image[0] == 0;
    }
    ck_assert_int_eq(far, 0);
    ck_assert_int_gt(zeros, 10);
    cek_dataset_free(other);
    cek_dataset_free(set);
}
END_TEST

START_TEST(colours_change_in_their_bounds_and_by_nothing_without)
{
    cek_dataset *set = pictures_set(), *much = augmented(set, (cek_augment_options){ .colour = 0.4 });
    uint8_t image[BYTES];
    int changed = 0;

    for (int64_t row = 0; row < COUNT; row++) {
        double before = 0, after = 0;

        draw(much, 5, 1, row, image);
        for (int i = 0; i < BYTES; i++) {
            before += pictures[row][i];
            after += image[i];
        }
        changed += memcmp(image, pictures[row], BYTES) != 0;
        ck_assert_double_lt(after, 1.45 * before);
        ck_assert_double_gt(after, 0.55 * before);
    }
    ck_assert_int_eq(changed, COUNT);
    cek_dataset_free(much);
    cek_dataset_free(set);
}
END_TEST

START_TEST(what_is_drawn_depends_on_seed_epoch_and_row_alone)
{
    cek_dataset *set = pictures_set(),
                *other = augmented(set, (cek_augment_options){ .crop = 2, .rotate = 20, .colour = 0.3, .flip = true });
    uint8_t one[BYTES], two[BYTES];
    int64_t row = 3;
    int32_t label;

    draw(other, 1, 2, row, one);
    draw(other, 1, 2, row, two);
    ck_assert_mem_eq(one, two, BYTES);
    draw(other, 2, 2, row, two);
    ck_assert_int_ne(memcmp(one, two, BYTES), 0);
    draw(other, 1, 3, row, two);
    ck_assert_int_ne(memcmp(one, two, BYTES), 0);
    assert_ok(cek__dataset_read(other, &row, 1, two, &label)); /* without a draw it is as it was */
    ck_assert_mem_eq(two, pictures[row], BYTES);
    cek_dataset_free(set);
    draw(other, 1, 2, row, two);
    ck_assert_mem_eq(one, two, BYTES);
    cek_dataset_free(other);
}
END_TEST

/* The same batches, to the bit, from the caller's thread, one worker or four. */
START_TEST(batches_are_the_same_with_any_number_of_workers)
{
    static const uint32_t workers[] = { 0, 1, 4 };
    static float first[3][COUNT * BYTES];
    double mean[3], deviation[3];
    cek_dataset *set = pictures_set(), *drawn, *ready;

    drawn = augmented(set, (cek_augment_options){ .crop = 2, .rotate = 20, .colour = 0.3, .flip = true });
    assert_ok(cek_dataset_channel_statistics(drawn, mean, deviation));
    assert_ok(cek_dataset_normalize(drawn, mean, deviation, &ready));
    for (int w = 0; w < 3; w++) {
        for (int64_t epoch = 0; epoch < 3; epoch++) {
            cek_loader_options o = { .size = sizeof o, .batch = 5, .workers = workers[w], .seed = 11, .shuffle = true };
            const cek_batch *batch;
            cek_loader *loader;
            int64_t at = 0;

            assert_ok(cek_loader_create(ready, &o, &loader));
            assert_ok(cek_loader_start(loader, epoch));
            while (cek_loader_next(loader, &batch) == CEK_OK && batch != NULL) {
                ck_assert_int_eq(batch->input_type, CEK_F32);
                for (int64_t i = 0; i < batch->count * BYTES; i++, at++)
                    if (w == 0)
                        first[epoch][at] = ((const float *)batch->inputs)[i];
                    else
                        ck_assert(first[epoch][at] == ((const float *)batch->inputs)[i]);
            }
            ck_assert_int_eq(at, COUNT * BYTES);
            cek_loader_free(loader);
        }
    }
    ck_assert_int_ne(memcmp(first[0], first[1], sizeof first[0]), 0);
    cek_dataset_free(ready);
    cek_dataset_free(drawn);
    cek_dataset_free(set);
}
END_TEST

START_TEST(normalised_samples_have_mean_0_and_deviation_1_by_channel)
{
    double mean[3], deviation[3], after_mean[3], after_deviation[3];
    cek_dataset *set = pictures_set(), *ready, *twice;
    float image[BYTES];
    int64_t row = 2;
    int32_t label;

    assert_ok(cek_dataset_channel_statistics(set, mean, deviation));
    for (int c = 0; c < 3; c++) {
        double sum = 0, squares = 0;

        for (int i = c; i < COUNT * BYTES; i += 3)
            sum += pictures[i / BYTES][i % BYTES] / 255.0;
        sum /= COUNT * BYTES / 3;
        for (int i = c; i < COUNT * BYTES; i += 3)
            squares += (pictures[i / BYTES][i % BYTES] / 255.0 - sum) * (pictures[i / BYTES][i % BYTES] / 255.0 - sum);
        ck_assert_double_eq_tol(mean[c], sum, 1e-12);
        ck_assert_double_eq_tol(deviation[c], sqrt(squares / (COUNT * BYTES / 3)), 1e-12);
    }
    assert_ok(cek_dataset_normalize(set, mean, deviation, &ready));
    assert_ok(cek__dataset_read(ready, &row, 1, image, &label));
    for (int i = 0; i < BYTES; i++)
        ck_assert(image[i] == (float)((pictures[row][i] / 255.0 - mean[i % 3]) / deviation[i % 3]));
    assert_ok(cek_dataset_channel_statistics(ready, after_mean, after_deviation));
    for (int c = 0; c < 3; c++) {
        ck_assert_double_eq_tol(after_mean[c], 0, 1e-6);
        ck_assert_double_eq_tol(after_deviation[c], 1, 1e-6);
    }
    deviation[1] = 0;
    cek_dataset_free(ready);
    assert_fails(cek_dataset_normalize(set, mean, deviation, &ready), CEK_INVALID, "channel 1", "positive");
    deviation[1] = 1e-300;
    assert_fails(cek_dataset_normalize(set, mean, deviation, &ready), CEK_INVALID, "channel 1",
                 "/ 1e-300 is not finite");
    deviation[1] = 1e-30; /* large numbers that are some, and too large to be divided so once more */
    assert_ok(cek_dataset_normalize(set, mean, deviation, &ready));
    assert_ok(cek_dataset_normalize(ready, mean, deviation, &twice));
    assert_ok(cek__dataset_read(ready, &row, 1, image, &label));
    assert_fails(cek__dataset_read(twice, &row, 1, image, &label), CEK_BAD_INPUT, "sample 2, channel 1", "not finite");
    cek_dataset_free(twice);
    cek_dataset_free(ready);
    cek_dataset_free(set);
}
END_TEST

START_TEST(augmentation_that_cannot_be_is_refused)
{
    cek_dataset *set = pictures_set(), *out;
    cek_augment_options o = { .size = sizeof o, .rotate = 181 };
    double mean[3] = { 0 }, deviation[3] = { 1, 1, 1 };
    cek_dataset *floats;

    assert_fails(cek_dataset_augment(set, &o, &out), CEK_INVALID, "181", "180");
    o = (cek_augment_options){ .size = sizeof o, .colour = NAN };
    assert_fails(cek_dataset_augment(set, &o, &out), CEK_INVALID, "nan", "0 to 1");
    o = (cek_augment_options){ .size = sizeof o, .crop = 40000 };
    assert_fails(cek_dataset_augment(set, &o, &out), CEK_INVALID, "40000", "crop");
    assert_ok(cek_dataset_normalize(set, mean, deviation, &floats));
    o = (cek_augment_options){ .size = sizeof o };
    assert_fails(cek_dataset_augment(floats, &o, &out), CEK_INVALID, "augmentation", "u8");
    cek_dataset_free(floats);
    cek_dataset_free(set);
}
END_TEST

/* ---- names in a model ---- */

START_TEST(names_of_classes_go_with_the_weights)
{
    static const char *const names[] = { "cat", "big dog", "\xc3\xa9l\xc3\xa9phant" }, *const wrong[] = { "a/b" };
    const int64_t shape[] = { 4 };
    cek_model *model, *other;

    assert_ok(cek_model_parse("linear:3", 1, shape, &model));
    assert_ok(cek_model_parse("linear:3", 1, shape, &other));
    ck_assert_ptr_null(cek_model_class_name(model, 0));
    assert_ok(cek_model_set_class_names(model, names, 3));
    assert_fails(cek_model_set_class_names(model, wrong, 1), CEK_INVALID, "class 0", "'/'");
    assert_ok(cek_model_save(model, scratch_path("w")));
    assert_ok(cek_model_load(other, scratch_path("w")));
    for (int i = 0; i < 3; i++)
        ck_assert_str_eq(cek_model_class_name(other, i), names[i]);
    ck_assert_ptr_null(cek_model_class_name(other, 3));
    assert_ok(cek_model_set_class_names(other, NULL, 0));
    ck_assert_ptr_null(cek_model_class_name(other, 0));
    assert_ok(cek_model_save(other, scratch_path("v")));
    assert_ok(cek_model_load(model, scratch_path("v"))); /* a file without names takes none away */
    ck_assert_str_eq(cek_model_class_name(model, 0), "cat");
    cek_model_free(model);
    cek_model_free(other);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("folders");
    TCase *t = tcase_create("data");

    if (!library_there("libpng16.so.16", "all tests, whose images are PNG,"))
        return 77;
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, classes_are_folders_in_the_order_of_their_names_and_images_too);
    tcase_add_test(t, names_stay_with_samples_that_are_standardised_and_outlive_what_these_were);
    tcase_add_test(t, options_give_channels_sizes_and_classes);
    tcase_add_test(t, folders_that_are_none_of_classes_are_refused);
    tcase_add_test(t, a_damaged_image_ends_the_epoch_with_its_name);
    tcase_add_test(t, cifar_batches_are_read_in_order_with_channels_last);
    tcase_add_test(t, cifar_files_that_are_wrong_are_errors_and_one_that_shrinks_is_no_signal);
    tcase_add_test(t, what_a_place_holds_is_recognised_by_names_alone);
    tcase_add_test(t, a_test_set_has_the_classes_and_channels_of_its_training_set);
    tcase_add_test(t, for_want_of_memory_no_place_is_taken_for_another_and_no_class_is_left_out);
    tcase_add_test(t, a_crop_is_a_window_of_the_padded_image_and_a_flip_is_its_mirror);
    tcase_add_test(t, what_is_augmented_twice_is_changed_by_numbers_of_two_draws);
    tcase_add_test(t, a_turn_is_about_the_middle_and_brings_zeros_from_outside);
    tcase_add_test(t, colours_change_in_their_bounds_and_by_nothing_without);
    tcase_add_test(t, what_is_drawn_depends_on_seed_epoch_and_row_alone);
    tcase_add_test(t, batches_are_the_same_with_any_number_of_workers);
    tcase_add_test(t, normalised_samples_have_mean_0_and_deviation_1_by_channel);
    tcase_add_test(t, augmentation_that_cannot_be_is_refused);
    tcase_add_test(t, names_of_classes_go_with_the_weights);
    suite_add_tcase(s, t);
    return suite_run(s);
}
