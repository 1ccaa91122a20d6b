/* files.c - tests of the input formats IDX and CSV: what is read, and what is refused with which words. */
#include <math.h>
#include <stdint.h>

#include "cekernels/nn.h"
#include "core/base/fault.h"
#include "idx_files.h"
#include "nn/data/csv.h"
#include "nn/data/dataset.h"
#include "nn/data/idx.h"
#include "scratch.h"

static int64_t comparisons;

/* The library's strcmp. */
__attribute__((visibility("default"))) int strcmp(const char *a, const char *b)
{
    comparisons++;
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return (unsigned char)*a - (unsigned char)*b;
}

/* ---- IDX ---- */

enum { COUNT = 5, SIDE = 4, IMAGE = SIDE * SIDE };
static const uint32_t images_shape[3] = { COUNT, SIDE, SIDE }, labels_shape[1] = { COUNT };
static const uint8_t label_bytes[COUNT] = { 3, 0, 2, 1, 3 };
static uint8_t image_bytes[COUNT * IMAGE];
static char bytes[4096], packed[4096];

static const char *idx_write(const char *name, int code, int rank, const uint32_t *shape, const void *values,
                             size_t size)
{
    return scratch_write(name, bytes, idx_bytes(bytes, code, rank, shape, values, size));
}

static const char *idx_write_gz(const char *name, int code, int rank, const uint32_t *shape, const void *values,
                                size_t size)
{
    size_t n = idx_bytes(bytes, code, rank, shape, values, size);

    return scratch_write(name, packed, gzip_bytes(packed, sizeof packed, bytes, n));
}

static void setup(void)
{
    scratch_make();
    for (int i = 0; i < COUNT * IMAGE; i++)
        image_bytes[i] = (uint8_t)(i * 37);
}

static void assert_images(const cek_dataset *dataset)
{
    int64_t rows[COUNT] = { 0, 1, 2, 3, 4 }, shape[CEK_RANK_MAX];
    uint8_t images[COUNT * IMAGE];
    int32_t labels[COUNT];

    ck_assert_int_eq(cek_dataset_size(dataset), COUNT);
    ck_assert_int_eq(cek_dataset_shape(dataset, shape), 3);
    ck_assert(shape[0] == 1 && shape[1] == SIDE && shape[2] == SIDE);
    assert_ok(cek__dataset_read(dataset, rows, COUNT, images, labels));
    ck_assert_mem_eq(images, image_bytes, sizeof images);
    for (int i = 0; i < COUNT; i++)
        ck_assert_int_eq(labels[i], label_bytes[i]);
}

START_TEST(a_folder_is_read_plain_or_compressed)
{
    cek_dataset *train, *test;

    idx_write("train-images-idx3-ubyte", 8, 3, images_shape, image_bytes, sizeof image_bytes);
    idx_write("train-labels-idx1-ubyte", 8, 1, labels_shape, label_bytes, sizeof label_bytes);
    idx_write_gz("t10k-images-idx3-ubyte.gz", 8, 3, images_shape, image_bytes, sizeof image_bytes);
    idx_write_gz("t10k-labels-idx1-ubyte.gz", 8, 1, labels_shape, label_bytes, sizeof label_bytes);
    assert_ok(cek_dataset_mnist(scratch_dir, true, &train));
    assert_ok(cek_dataset_mnist(scratch_dir, false, &test));
    assert_images(train);
    assert_images(test);
    ck_assert_int_eq(cek_dataset_classes(train), 10);
    ck_assert_uint_eq(cek_dataset_input_type(train), CEK_U8);
    cek_dataset_free(train);
    cek_dataset_free(test);
    unlink(scratch_path("t10k-labels-idx1-ubyte.gz"));
    assert_fails(cek_dataset_mnist(scratch_dir, false, &test), CEK_IO, scratch_dir, "t10k-labels-idx1-ubyte.gz");
}
END_TEST

START_TEST(wider_types_come_in_host_order)
{
    static const uint8_t ints[] = { 0, 0, 1, 2, 255, 255, 255, 254 }, floats[] = { 0x3f, 0x80, 0, 0, 0xc0, 0x20, 0, 0 };
    uint32_t shape[2] = { 1, 2 };
    cek__idx idx;

    assert_ok(cek__idx_read(idx_write("a", 0x0C, 2, shape, ints, sizeof ints), &idx));
    ck_assert(idx.type == CEK_I32 && ((int32_t *)idx.data)[0] == 258 && ((int32_t *)idx.data)[1] == -2);
    free(idx.data);
    assert_ok(cek__idx_read(idx_write("a", 0x0D, 2, shape, floats, sizeof floats), &idx));
    ck_assert(idx.type == CEK_F32 && ((float *)idx.data)[0] == 1.0f && ((float *)idx.data)[1] == -2.5f);
    free(idx.data);
}
END_TEST

START_TEST(two_gzip_members_are_one_file)
{
    size_t n = idx_bytes(bytes, 8, 1, labels_shape, label_bytes, sizeof label_bytes);
    size_t first = gzip_bytes(packed, sizeof packed, bytes, 6), all;
    cek__idx idx;

    all = first + gzip_bytes(packed + first, sizeof packed - first, bytes + 6, n - 6);
    assert_ok(cek__idx_read(scratch_write("a", packed, all), &idx));
    ck_assert_mem_eq(idx.data, label_bytes, COUNT);
    free(idx.data);
    packed[all] = 'x';
    assert_fails(cek__idx_read(scratch_write("a", packed, all + 1), &idx), CEK_BAD_INPUT, "/a",
                 "follows the gzip data");
}
END_TEST

START_TEST(lying_headers_are_refused)
{
    static const struct {
        int code, rank;
        uint32_t shape[6];
        const char *cause;
    } lies[] = {
        { 8, 1, { COUNT + 1 }, "the file is shorter" },
        { 8, 1, { COUNT - 1 }, "longer than its header says" },
        { 8, 1, { 0xffffffff }, "the file is shorter" },
        { 8, 5, { 0xffffffff, 0xffffffff, 0xffffffff, 1, 1 }, "more than 2^64" },
        { 8, 2, { 0, 5 }, "dimension 0 is 0" },
        { 8, 0, { 0 }, "rank 0" },
        { 8, 6, { 1, 1, 1, 1, 1, COUNT }, "rank 6" },
        { 0x0E, 1, { COUNT }, "double" },
        { 0x0A, 1, { COUNT }, "code 0x0a" },
    };
    cek__idx idx;

    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        const char *plain = idx_write("plain", lies[i].code, lies[i].rank, lies[i].shape, label_bytes, COUNT);
        const char *gz = idx_write_gz("gz", lies[i].code, lies[i].rank, lies[i].shape, label_bytes, COUNT);

        assert_fails(cek__idx_read(plain, &idx), CEK_BAD_INPUT, plain, lies[i].cause);
        ck_assert_ptr_null(idx.data);
        ck_assert_uint_eq(cek__idx_read(gz, &idx), CEK_BAD_INPUT);
        ck_assert_ptr_null(idx.data);
    }
    assert_fails(cek__idx_read(idx_write_gz("gz", 8, 1, (uint32_t[]){ 100 }, label_bytes, COUNT), &idx), CEK_BAD_INPUT,
                 "gz", "ends after 5 of 100 bytes");
    assert_fails(cek__idx_read(idx_write_gz("gz", 8, 2, (uint32_t[]){ 4000000000, 4000000000 }, label_bytes, COUNT),
                               &idx),
                 CEK_BAD_INPUT, "gz", "so short a file cannot hold them");
    assert_fails(cek__idx_read(idx_write_gz("gz", 8, 1, (uint32_t[]){ 4 }, label_bytes, COUNT), &idx), CEK_BAD_INPUT,
                 "gz", "longer than its header says");
    assert_fails(cek__idx_read(scratch_write("a", "PK\3\4", 4), &idx), CEK_BAD_INPUT, "/a", "not an IDX file");
    assert_fails(cek__idx_read(scratch_write("a", "", 0), &idx), CEK_BAD_INPUT, "/a", "ends after 0 of 4");
    assert_fails(cek__idx_read(scratch_write("a", "\x1f\x8b", 2), &idx), CEK_BAD_INPUT, "/a", "ends in the middle");
    assert_fails(cek__idx_read(scratch_dir, &idx), CEK_IO, scratch_dir, "not a regular file");
}
END_TEST

START_TEST(images_and_labels_must_fit_each_other)
{
    const char *images = idx_write("images", 8, 3, images_shape, image_bytes, sizeof image_bytes);
    const char *labels = idx_write("labels", 8, 1, labels_shape, label_bytes, sizeof label_bytes);
    const char *fewer = idx_write("fewer", 8, 1, (uint32_t[]){ 4 }, label_bytes, 4);
    cek_dataset *dataset;

    assert_ok(cek_dataset_idx(images, labels, 0, &dataset)); /* as many classes as there are */
    ck_assert_int_eq(cek_dataset_classes(dataset), 4);
    cek_dataset_free(dataset);
    assert_fails(cek_dataset_idx(images, labels, 3, &dataset), CEK_BAD_INPUT, labels, "label 3 at row 0");
    ck_assert_ptr_null(dataset);
    assert_fails(cek_dataset_idx(images, fewer, 10, &dataset), CEK_BAD_INPUT, fewer, "4 labels");
    assert_fails(cek_dataset_idx(labels, labels, 10, &dataset), CEK_BAD_INPUT, labels, "rank 2, 3 or 4");
    assert_fails(cek_dataset_idx(images, images, 10, &dataset), CEK_BAD_INPUT, images, "rank 1");
}
END_TEST

START_TEST(a_large_file_stays_where_it_is_and_gives_the_same)
{
    static const uint8_t floats[COUNT * 4] = { 0x3f, 0x80, 0, 0, 0xc0, 0x20, 0, 0, 0x7f, 0x80,
                                               0,    0,    0, 0, 0,    0,    0, 0, 0,    0 };
    const char *images = idx_write("images", 8, 3, images_shape, image_bytes, sizeof image_bytes);
    const char *labels = idx_write("labels", 8, 1, labels_shape, label_bytes, sizeof label_bytes), *wide;
    cek_dataset *dataset;
    int64_t row = 1;
    float value;
    int32_t label;
    uint8_t image[IMAGE];

    assert_ok(cek__idx_dataset_held(images, labels, 0, 0, &dataset));
    assert_images(dataset);
    row = COUNT - 1;
    ck_assert_int_eq(truncate(images, 16 + IMAGE), 0);
    assert_fails(cek__dataset_read(dataset, &row, 1, image, &label), CEK_IO, images, "became shorter");
    cek_dataset_free(dataset);
    assert_fails(cek__idx_dataset_held(images, labels, 0, 0, &dataset), CEK_BAD_INPUT, images, "promises 80 bytes");
    wide = idx_write("wide", 0x0D, 2, (uint32_t[]){ COUNT, 1 }, floats, sizeof floats);
    assert_ok(cek__idx_dataset_held(wide, labels, 0, 0, &dataset));
    row = 1;
    assert_ok(cek__dataset_read(dataset, &row, 1, &value, &label));
    ck_assert_float_eq(value, -2.5f);
    row = 2;
    assert_fails(cek__dataset_read(dataset, &row, 1, &value, &label), CEK_BAD_INPUT, wide, "sample 2");
    cek_dataset_free(dataset);
    images = idx_write_gz("images.gz", 8, 3, images_shape, image_bytes, sizeof image_bytes);
    assert_ok(cek__idx_dataset_held(images, labels, 0, 0, &dataset)); /* compressed: read whole */
    assert_images(dataset);
    cek_dataset_free(dataset);
}
END_TEST

START_TEST(failing_allocations_are_reported)
{
    idx_write_gz("t10k-images-idx3-ubyte.gz", 8, 3, images_shape, image_bytes, sizeof image_bytes);
    idx_write_gz("t10k-labels-idx1-ubyte.gz", 8, 1, labels_shape, label_bytes, sizeof label_bytes);
    const char *csv = scratch_write("a.csv", "a,b\n1,2\n3,4\n", 12);

    for (int kind = 0; kind < 2; kind++)
        for (long nth = 1;; nth++) {
            cek_dataset *dataset;
            cek_status st;
            bool done;

            cek__fault_set(CEK__FAULT_ALLOC, nth);
            st = kind == 0 ? cek_dataset_mnist(scratch_dir, false, &dataset) : cek_dataset_csv(csv, "b", &dataset);
            done = cek__fault_pending(CEK__FAULT_ALLOC);
            ck_assert_msg(st == (done ? CEK_OK : CEK_OUT_OF_MEMORY), "allocation %ld: %s", nth, cek_error_text());
            ck_assert(done || dataset == NULL);
            cek_dataset_free(dataset);
            if (done) {
                ck_assert_int_ge(nth, 9);
                break;
            }
        }
    cek__fault_set(CEK__FAULT_ALLOC, 0);
}
END_TEST

/* ---- CSV ---- */

static const char *text_write(const char *text)
{
    return scratch_write("table.csv", text, strlen(text));
}

START_TEST(a_table_is_read_with_quotes_header_and_line_ends)
{
    static const char *const tables[] = {
        "a,\"b, \"\"x\"\"\",c\n1,\"2\",3\n-4,5e1,.5\n",
        "a,\"b, \"\"x\"\"\",c\r\n1,2,3\r\n-4,5e1, 0.5 ", /* CRLF, blanks around a number, no last line end */
        /* byte order mark, empty lines at the end */
        "\xef\xbb\xbf\x61,\"b, \"\"x\"\"\",c\n1,2,3\n\"-4\",50,\"0.5\"\n\n\n",
    };
    static const double values[6] = { 1, 2, 3, -4, 50, .5 };

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        cek__csv *csv;
        int64_t column;

        assert_ok(cek__csv_read(text_write(tables[i]), CEK__CSV_HEADER_AUTO, &csv));
        ck_assert(csv->rows == 2 && csv->columns == 3);
        ck_assert_mem_eq(csv->values, values, sizeof values);
        ck_assert_str_eq(csv->names[1], "b, \"x\"");
        assert_ok(cek__csv_column(csv, "c", &column));
        ck_assert_int_eq(column, 2);
        assert_ok(cek__csv_column(csv, "1", &column));
        ck_assert_int_eq(column, 1);
        assert_fails(cek__csv_column(csv, "d", &column), CEK_NOT_FOUND, "table.csv", "no column 'd'");
        assert_fails(cek__csv_column(csv, "3", &column), CEK_NOT_FOUND, "table.csv", "no column '3'");
        cek__csv_free(csv);
    }
}
END_TEST

START_TEST(a_header_is_found_or_demanded)
{
    cek__csv *csv;

    assert_ok(cek__csv_read(text_write("1,2\n3,4\n"), CEK__CSV_HEADER_AUTO, &csv));
    ck_assert(csv->rows == 2 && csv->names == NULL);
    cek__csv_free(csv);
    assert_ok(cek__csv_read(text_write("1,2\n3,4\n"), CEK__CSV_HEADER_YES, &csv));
    ck_assert(csv->rows == 1 && strcmp(csv->names[1], "2") == 0);
    cek__csv_free(csv);
    assert_fails(cek__csv_read(text_write("a,2\n3,4\n"), CEK__CSV_HEADER_NO, &csv), CEK_BAD_INPUT, "line 1, column 0",
                 "'a'");
}
END_TEST

static const struct {
    const char *text, *object, *cause;
} bad_tables[] = {
    { "", "table.csv", "is empty" },
    { "\n\n", "table.csv", "is empty" },
    { "a,b\n", "table.csv", "no data rows" },
    { "a,b\n1,2\n3\n", "line 3", "1 fields, 2 were expected" },
    { "a,b\n1,2,3\n", "line 2", "more than 2 fields" },
    { "a,b\n1,\n", "line 2, column 'b'", "missing" },
    { "a,b\n\"\",1\n", "line 2, column 'a'", "missing" },
    { "a,b\n1, \n", "line 2, column 'b'", "not a finite number" },
    { "a,b\n1,2\n\n3,4\n", "line 3", "is empty" },
    { "a,b\n1,x y\n", "line 2, column 'b'", "'x y' is not a finite number" },
    { "a,b\n1,nan\n", "line 2, column 'b'", "'nan' is not a finite number" },
    { "a,b\n-inf,1\n", "line 2, column 'a'", "'-inf' is not a finite number" },
    { "a,b\n1,1e999\n", "line 2, column 'b'", "'1e999' is not a finite number" },
    { "a,b\n1,0x10\n", "line 2, column 'b'", "'0x10' is not a finite number" },
    { "a,b\n1,\"2\n", "line 2", "a quote is opened and never closed" },
    { "a,b\n1,2\"3\n", "line 2", "a quote inside an unquoted field" },
    { "a,b\n1,\"2\"3\n", "line 2", "a stray byte 0x33" },
    { "a,b\n1,2\rx\n", "line 2, column 'b'", "not a finite number" },
    { "a,b\n\"x\ny\",2\n", "line 2, column 'a'", "'x y' is not a finite number" },
    { "a,b\n1,\x1b[2J\x7f\xc2\x9b\xff\n", "line 2, column 'b'",
      "'?[2J?"
      "?"
      "?' is not a finite number" },
    { "a\x1b,b\n,1\n", "line 2, column 'a?'", "missing" },
    { "a,a\n1,2\n", "table.csv", "two columns are called 'a': 0 and 1" },
    { "b,a,c,\"a\",b,a\n1,2,3,4,5,6\n", "table.csv", "two columns are called 'a': 1 and 3" },
    { "a,\n1,2\n", "table.csv", "column 1 has no name" },
    { "a,\"b\nc\"\n1,\n", "line 3, column 'b c'", "missing" },
};

START_TEST(a_bad_table_is_refused_with_line_and_column)
{
    cek__csv *csv;

    assert_fails(cek__csv_read(text_write(bad_tables[_i].text), CEK__CSV_HEADER_AUTO, &csv), CEK_BAD_INPUT,
                 bad_tables[_i].object, bad_tables[_i].cause);
    ck_assert_ptr_null(csv);
}
END_TEST

START_TEST(a_zero_byte_is_refused)
{
    cek__csv *csv;

    assert_fails(cek__csv_read(scratch_write("table.csv", "1,2\n3,\0004\n", 9), CEK__CSV_HEADER_AUTO, &csv),
                 CEK_BAD_INPUT, "line 2", "a zero byte inside an unquoted field");
    assert_fails(cek__csv_read(scratch_write("table.csv", "a,\"b\0c\"\n1,2\n", 12), CEK__CSV_HEADER_AUTO, &csv),
                 CEK_BAD_INPUT, "line 1", "a zero byte inside a quoted field");
}
END_TEST

START_TEST(names_of_columns_are_compared_in_n_log_n)
{
    enum { COLUMNS = 100000, LOG = 17 };
    char *text = malloc(COLUMNS * 16);
    size_t n = 0;
    cek__csv *csv;

    for (int i = 0; i < COLUMNS; i++)
        n += (size_t)sprintf(text + n, "c%d,", i);
    n += (size_t)sprintf(text + n, "c500\n");
    comparisons = 0;
    assert_fails(cek__csv_read(scratch_write("table.csv", text, n), CEK__CSV_HEADER_YES, &csv), CEK_BAD_INPUT,
                 "table.csv", "two columns are called 'c500': 500 and 100000");
    ck_assert_int_gt(comparisons, COLUMNS); /* the library's come past here */
    ck_assert_int_le(comparisons, 2 * COLUMNS * LOG);
    free(text);
}
END_TEST

START_TEST(a_table_becomes_values)
{
    cek_dataset *dataset;
    cek__csv *csv;
    float inputs[4], targets[2];
    int64_t rows[2] = { 0, 1 }, shape[CEK_RANK_MAX];

    assert_ok(cek_dataset_csv(text_write("a,y,b\n1,0,2\n3,4,5\n"), "y", &dataset));
    ck_assert_int_eq(cek_dataset_shape(dataset, shape), 1);
    ck_assert(shape[0] == 2 && cek_dataset_classes(dataset) == 0 && cek_dataset_target_columns(dataset) == 1);
    assert_ok(cek__dataset_read(dataset, rows, 2, inputs, targets));
    ck_assert(inputs[0] == 1 && inputs[1] == 2 && inputs[2] == 3 && inputs[3] == 5 && targets[0] == 0 &&
              targets[1] == 4);
    cek_dataset_free(dataset);
    assert_ok(cek__csv_read(scratch_path("table.csv"), CEK__CSV_HEADER_AUTO, &csv));
    csv->values[0] = 1e300;
    assert_fails(cek__csv_values(csv, "y", &dataset), CEK_BAD_INPUT, "row 0, column 'a'", "does not fit");
    cek__csv_free(csv);
    assert_fails(cek_dataset_csv(text_write("a\n1\n"), "a", &dataset), CEK_BAD_INPUT, "table.csv", "one column only");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("files");
    TCase *all = tcase_create("all");

    tcase_add_checked_fixture(all, setup, scratch_remove);
    tcase_add_test(all, a_folder_is_read_plain_or_compressed);
    tcase_add_test(all, wider_types_come_in_host_order);
    tcase_add_test(all, two_gzip_members_are_one_file);
    tcase_add_test(all, lying_headers_are_refused);
    tcase_add_test(all, images_and_labels_must_fit_each_other);
    tcase_add_test(all, a_large_file_stays_where_it_is_and_gives_the_same);
    tcase_add_test(all, failing_allocations_are_reported);
    tcase_add_test(all, a_table_is_read_with_quotes_header_and_line_ends);
    tcase_add_test(all, a_header_is_found_or_demanded);
    tcase_add_loop_test(all, a_bad_table_is_refused_with_line_and_column, 0, sizeof bad_tables / sizeof *bad_tables);
    tcase_add_test(all, a_zero_byte_is_refused);
    tcase_add_test(all, names_of_columns_are_compared_in_n_log_n);
    tcase_add_test(all, a_table_becomes_values);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
