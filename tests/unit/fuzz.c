/* fuzz.c - every input format, cut short and with wrong bytes: no crash, no leak (with a sanitizer), never a silent
 * success on a file that is shorter than its header says.
 *
 * Seeded, so a failure comes back: 100 truncations and 1,000 changed bytes of each format.
 * CEKERNELS_TEST_LONG: 50 times as many. */
#include <math.h>
#include <stdint.h>

#include "cekernels/nn.h"
#include "core/base/alloc.h"
#include "core/base/random.h"
#include "idx_files.h"
#include "nn/data/csv.h"
#include "nn/data/dataset.h"
#include "nn/data/idx.h"
#include "nn/data/split.h"
#include "nn/formats/safetensors.h"
#include "scratch.h"

enum { ROOM = 8192, ROWS = 12, COLUMNS = 5, SIDE = 6, SPLIT_ROWS = 500 };

typedef struct sample {
    char bytes[ROOM];
    size_t size;
} sample;

/* Reads the file; where that succeeds, checks that what came is consistent with the original, of which it has `size`
 * bytes, and returns true. `cut`: the file is a true beginning of it. */
typedef bool (*reader)(const char *path, const sample *original, size_t size, bool cut);

static void assert_refused(cek_status st, const char *path)
{
    ck_assert_msg(st == CEK_BAD_INPUT, "%s: %s", cek_status_name(st), cek_error_text());
    ck_assert_msg(strstr(cek_error_text(), path) != NULL, "'%s' does not name the file", cek_error_text());
    ck_assert_ptr_null(strchr(cek_error_text(), '\n'));
}

/* ---- formats ---- */

static uint8_t image_values[ROWS * SIDE * SIDE];
static const uint32_t idx_shape[3] = { ROWS, SIDE, SIDE };

static void idx_make(sample *s)
{
    for (size_t i = 0; i < sizeof image_values; i++)
        image_values[i] = (uint8_t)(i * 7 + i / 13);
    s->size = idx_bytes(s->bytes, 8, 3, idx_shape, image_values, sizeof image_values);
}

static bool idx_read(const char *path, const sample *original, size_t size, bool cut)
{
    cek__idx idx;
    cek_status st = cek__idx_read(path, &idx);

    (void)original;
    (void)size;
    if (st != CEK_OK) {
        assert_refused(st, path);
        return false;
    }
    ck_assert(!cut); /* a value may have changed unseen, never the shape */
    ck_assert(idx.rank == 3 && idx.type == CEK_U8 && idx.shape[0] == ROWS && idx.shape[1] == SIDE &&
              idx.shape[2] == SIDE);
    free(idx.data);
    return true;
}

static void gz_make(sample *s)
{
    sample plain;

    idx_make(&plain);
    s->size = gzip_bytes(s->bytes, ROOM, plain.bytes, plain.size);
}

static bool gz_read(const char *path, const sample *original, size_t size, bool cut)
{
    cek__idx idx;
    cek_status st = cek__idx_read(path, &idx);

    (void)original;
    (void)size;
    if (st != CEK_OK) {
        assert_refused(st, path);
        return false;
    }
    ck_assert(!cut); /* a changed byte passes only where it says nothing of the data: time and system in the header */
    ck_assert_mem_eq(idx.data, image_values, sizeof image_values);
    free(idx.data);
    return true;
}

static void csv_make(sample *s)
{
    int n = snprintf(s->bytes, ROOM, "\"a\",b,\"c \"\"d\"\"\",e,f\r\n");

    for (int i = 0; i < ROWS * COLUMNS; i++)
        n += snprintf(s->bytes + n, (size_t)(ROOM - n), i % 7 == 0 ? "\"%.4g\"%s" : "%.4g%s",
                      sin(i) * pow(10, i % 9 - 4), i % COLUMNS == COLUMNS - 1 ? "\r\n" : ",");
    s->size = (size_t)n;
}

static bool csv_read(const char *path, const sample *original, size_t size, bool cut)
{
    cek__csv *csv;
    cek_status st = cek__csv_read(path, CEK__CSV_HEADER_AUTO, &csv);
    int64_t lines = 0;

    if (st != CEK_OK) {
        assert_refused(st, path);
        return false;
    }
    for (int64_t i = 0; i < csv->rows * csv->columns; i++)
        ck_assert(isfinite(csv->values[i]));
    /* the format has no length: what is left of the last number may be one, but no row may be
     * missing or short */
    if (cut) {
        for (size_t i = 0; i < size; i++)
            lines += original->bytes[i] == '\n';
        lines += size > 0 && original->bytes[size - 1] != '\n';
        ck_assert_int_eq(csv->columns, COLUMNS);
        ck_assert_int_eq(csv->rows + 1, lines);
    }
    cek__csv_free(csv);
    return true;
}

static void safetensors_make(sample *s)
{
    static const float values[12] = { 1, -2, 3, .5f, 1e-30f };
    static const cek__st_tensor tensors[] = {
        { .name = "0.weight", CEK__ST_F32, 2, { 3, 4 }, 12, values },
        { .name = "0.bias", CEK__ST_F16, 1, { 4 }, 4, values },
        { .name = "1.weight", CEK__ST_F64, 1, { 3 }, 3, values },
        { .name = "2.bias", CEK__ST_U8, 1, { 7 }, 7, values },
        { .name = "3.scalar", CEK__ST_BF16, 0, { 0 }, 1, values },
        { .name = "4.empty", CEK__ST_I64, 2, { 0, 5 }, 0, values },
    };
    static const char *const metadata[][2] = { { "format", "pt" } };
    FILE *file;

    assert_ok(cek__safetensors_write(scratch_path("made"), tensors, 6, metadata, 1));
    file = fopen(scratch_path("made"), "rb");
    s->size = fread(s->bytes, 1, ROOM, file);
    fclose(file);
}

static bool safetensors_read(const char *path, const sample *original, size_t size, bool cut)
{
    cek__st_file *file;
    cek_status st = cek__safetensors_read(path, &file);
    static const uint8_t bytes[CEK__ST_TYPES] = {
        [CEK__ST_F32] = 4, [CEK__ST_F64] = 8, [CEK__ST_F16] = 2, [CEK__ST_BF16] = 2,
        [CEK__ST_I32] = 4, [CEK__ST_I64] = 8, [CEK__ST_U8] = 1,  [CEK__ST_BOOL] = 1
    };
    uint64_t total = 0;
    float narrow[64];
    double wide[64];

    (void)original;
    if (st != CEK_OK) {
        assert_refused(st, path);
        return false;
    }
    ck_assert(!cut);
    for (size_t i = 0; i < file->count; i++) {
        const cek__st_tensor *t = &file->tensors[i];

        total += t->count * bytes[t->type];
        ck_assert_uint_le(t->count, 64);
        st = cek__st_to_f32(t, narrow);
        ck_assert(st == CEK_OK || st == CEK_BAD_INPUT);
        st = cek__st_to_f64(t, wide);
        ck_assert(st == CEK_OK || st == CEK_BAD_INPUT);
    }
    ck_assert_uint_eq(total, 48 + 8 + 24 + 7 + 2);
    ck_assert_uint_lt(total, size);
    cek__st_free(file);
    return true;
}

static void rows_make(sample *s)
{
    int n = 0;

    for (int i = 0; i < 60; i++)
        n += snprintf(s->bytes + n, (size_t)(ROOM - n), "%d%s", i * 7, i % 5 == 4 ? "\n" : ", ");
    s->size = (size_t)n;
}

static bool rows_read(const char *path, const sample *original, size_t size, bool cut)
{
    int64_t *rows, count;
    char seen[SPLIT_ROWS] = { 0 };
    cek_status st = cek__split_rows_read(path, SPLIT_ROWS, &rows, &count);

    (void)original;
    (void)size;
    (void)cut;
    if (st != CEK_OK) {
        assert_refused(st, path);
        return false;
    }
    for (int64_t i = 0; i < count; i++)
        ck_assert(rows[i] >= 0 && rows[i] < SPLIT_ROWS && !seen[rows[i]]++);
    free(rows);
    return true;
}

static const struct {
    const char *name;
    void (*make)(sample *s);
    reader read;
} formats[] = {
    { "images-idx3-ubyte", idx_make, idx_read }, { "images-idx3-ubyte.gz", gz_make, gz_read },
    { "table.csv", csv_make, csv_read },         { "weights.safetensors", safetensors_make, safetensors_read },
    { "rows.txt", rows_make, rows_read },
};

/* ---- harm ---- */

static uint64_t draws;

static uint32_t below(size_t bound)
{
    return (uint32_t)(((uint64_t)cek__random_u32(20261121, 0, draws++) * bound) >> 32);
}

static int times(int n)
{
    return getenv("CEKERNELS_TEST_LONG") != NULL ? 50 * n : n;
}

START_TEST(a_truncated_file_is_refused)
{
    sample original;
    const char *path = scratch_path(formats[_i].name);

    formats[_i].make(&original);
    scratch_write(formats[_i].name, original.bytes, original.size);
    ck_assert(formats[_i].read(path, &original, original.size, false)); /* untouched */
    for (int i = 0; i < times(100); i++) {
        /* Every length near both ends, the others at random. */
        size_t size = i < 20 ? (size_t)i : i < 40 ? original.size - (size_t)(i - 19) : below(original.size);

        scratch_write(formats[_i].name, original.bytes, size);
        formats[_i].read(path, &original, size, true);
    }
}
END_TEST

START_TEST(changed_bytes_never_crash_or_change_the_shape)
{
    sample original, changed;
    const char *path = scratch_path(formats[_i].name);
    int accepted = 0;

    formats[_i].make(&original);
    for (int i = 0; i < times(1000); i++) {
        memcpy(changed.bytes, original.bytes, original.size);
        for (uint32_t k = 0, n = 1 + below(3) * (i % 2 == 0); k < n; k++) {
            /* Half of them in the first 128 bytes, where headers are; half one bit, half any value. */
            size_t at = below(2) && original.size > 128 ? below(128) : below(original.size);

            changed.bytes[at] = below(2) ? (char)below(256) : (char)(changed.bytes[at] ^ (1 << below(8)));
        }
        scratch_write(formats[_i].name, changed.bytes, original.size);
        accepted += formats[_i].read(path, &original, original.size, false);
    }
    ck_assert_int_gt(accepted, 0);           /* the harm reaches further than the first check, and */
    ck_assert_int_lt(accepted, times(1000)); /* does some */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fuzz");
    TCase *all = tcase_create("all");

    tcase_add_checked_fixture(all, scratch_make, scratch_remove);
    tcase_add_loop_test(all, a_truncated_file_is_refused, 0, sizeof formats / sizeof *formats);
    tcase_add_loop_test(all, changed_bytes_never_crash_or_change_the_shape, 0, sizeof formats / sizeof *formats);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
