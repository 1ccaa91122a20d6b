/* events.c - tests of nn/report and of the records and images that it writes: known bytes, what is read back, and files
 * that stay whole whatever fails. */
#include <float.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <zlib.h>

#include "cekernels/nn.h"
#include "core/base/fault.h"
#include "nn/formats/png_write.h"
#include "nn/report/histogram.h"
#include "scratch.h"
#include "tests/event_file.h"

static bool truncation_fails;

/* The library's ftruncate. */
__attribute__((visibility("default"))) int ftruncate(int fd, off_t size)
{
    return truncation_fails ? -1 : (int)syscall(SYS_ftruncate, fd, size);
}

/* ---- reading back ---- */

enum { TOLD_MOST = 64 };
typedef struct told {
    size_t count;
    event_value values[TOLD_MOST];
    uint8_t *bytes;
    size_t size;
    const char *fault;
} told;

static void keep(void *user, const event_value *value)
{
    told *t = user;
    ck_assert_uint_lt(t->count, TOLD_MOST);
    t->values[t->count++] = *value;
}

/* The only file in the scratch folder. */
static told read_back(void)
{
    told t = { .count = 0 };
    DIR *dir = opendir(scratch_dir);
    int files = 0;
    char path[512];
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strncmp(entry->d_name, "events.out.tfevents.", 20) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", scratch_dir, entry->d_name);
        t.bytes = event_file_bytes(path, &t.size);
        ck_assert_ptr_nonnull(t.bytes);
        files++;
    }
    closedir(dir);
    ck_assert_int_eq(files, 1);
    t.fault = events_read(t.bytes, t.size, keep, &t);
    return t;
}

static told read_whole(void)
{
    told t = read_back();
    ck_assert_msg(t.fault == NULL, "%s", t.fault);
    ck_assert_uint_ge(t.count, 1);
    ck_assert_str_eq(t.values[0].kind, "version");
    return t;
}

static cek_event_log *log_make(void)
{
    cek_event_log *log;
    scratch_make();
    assert_ok(cek_event_log_create(scratch_dir, &log));
    return log;
}

static cek_model *model_make(void)
{
    cek_model *m;
    assert_ok(cek_model_create(3, (int64_t[]){ 1, 8, 8 }, &m));
    assert_ok(cek_model_enter(m, "body"));
    assert_ok(cek_model_name(m, "first"));
    assert_ok(cek_model_activation(m, 0, CEK_ACT_RELU, NULL));
    assert_ok(cek_model_leave(m));
    assert_ok(cek_model_flatten(m, 1, NULL));
    assert_ok(cek_model_linear(m, 2, 3, true, NULL));
    return m;
}

/* One call of each kind; the first failure. */
static cek_status tell_all(cek_event_log *log, const cek_model *model)
{
    static const float values[] = { 1, 2, 3 };
    static const uint8_t pixels[2 * 3 * 3] = { 1, 2, 3, 4 };
    static const cek_hparam hparams[] = { { "rate", NULL, 0.5 }, { "data", "digits", 0 } };
    static const char *const metrics[] = { "a/b" };
    cek_status st = cek_event_log_hparams(log, hparams, 2, metrics, 1);
    st = st ? st : cek_event_log_graph(log, model);
    st = st ? st : cek_event_log_scalar(log, "a/b", 7, 1.5);
    st = st ? st : cek_event_log_histogram(log, "h", 8, values, 3);
    st = st ? st : cek_event_log_image(log, "i", 9, pixels, 2, 3, 3);
    st = st ? st : cek_event_log_text(log, "t", 10, "*text*");
    st = st ? st : cek_event_log_outcome(log, true);
    return st ? st : cek_event_log_flush(log);
}
enum { ALL_VALUES = 1 + 2 + 1 + 1 + 1 + 1 + 1 + 1 };

/* ---- known bytes ---- */

START_TEST(checksums_are_those_of_rfc_3720)
{
    uint8_t bytes[32];
    memset(bytes, 0, sizeof bytes);
    ck_assert_uint_eq(cek__crc32c(bytes, sizeof bytes), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    ck_assert_uint_eq(cek__crc32c(bytes, sizeof bytes), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    ck_assert_uint_eq(cek__crc32c(bytes, sizeof bytes), 0x46dd794e);
    ck_assert_uint_eq(cek__crc32c("123456789", 9), 0xe3069283);
    ck_assert_uint_eq(cek__crc32c("", 0), 0);
    ck_assert_uint_eq(cek__crc32c_masked("", 0), 0xa282ead8);
}
END_TEST

START_TEST(a_file_begins_as_tensorflows_do)
{
    static const uint8_t head[] = { 0x18, 0, 0, 0, 0, 0, 0, 0, 0xa3, 0x7f, 0x4b, 0x22, 0x09 };
    cek_event_log *log = log_make();
    told t = read_whole();
    ck_assert_uint_eq(t.size, 12 + 0x18 + 4);
    ck_assert_int_eq(memcmp(t.bytes, head, sizeof head), 0);
    ck_assert_int_eq(memcmp(t.bytes + 12 + 9,
                            "\x1a\x0d"
                            "brain.Event:2",
                            15),
                     0);
    ck_assert_double_gt(t.values[0].time, 1.7e9);
    free(t.bytes);
    cek_event_log_free(log);
    scratch_remove();
}
END_TEST

START_TEST(a_png_is_its_pixels_again)
{
    for (uint32_t channels = 1; channels <= 4; channels++) {
        static const uint8_t colour_type[] = { 0, 0, 4, 2, 6 };
        enum { HEIGHT = 5, WIDTH = 3 };
        uint8_t pixels[HEIGHT * WIDTH * 4], rows[HEIGHT * (1 + WIDTH * 4)];
        uLongf size = sizeof rows;
        cek__message png = { 0 };
        for (size_t i = 0; i < sizeof pixels; i++)
            pixels[i] = (uint8_t)(i * 37);
        assert_ok(cek__png_write(pixels, HEIGHT, WIDTH, channels, &png));
        ck_assert_int_eq(memcmp(png.at, "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x03\0\0\0\x05\x08", 25), 0);
        ck_assert_uint_eq(png.at[25], colour_type[channels]);
        ck_assert_int_eq(memcmp(png.at + png.size - 12, "\0\0\0\0IEND\xae\x42\x60\x82", 12), 0);
        for (size_t at = 8; at < png.size;) { /* every chunk: length, type, data, checksum */
            const uint32_t length = (uint32_t)png.at[at + 2] << 8 | png.at[at + 3];
            const uint8_t *sum = png.at + at + 8 + length;
            ck_assert_uint_eq(crc32(0, png.at + at + 4, 4 + length),
                              (uint32_t)sum[0] << 24 | (uint32_t)sum[1] << 16 | (uint32_t)sum[2] << 8 | sum[3]);
            if (memcmp(png.at + at + 4, "IDAT", 4) == 0)
                ck_assert_int_eq(uncompress(rows, &size, png.at + at + 8, length), Z_OK);
            at += 12 + length;
        }
        ck_assert_uint_eq(size, HEIGHT * (1 + WIDTH * channels));
        for (uint32_t y = 0; y < HEIGHT; y++) {
            ck_assert_uint_eq(rows[y * (1 + WIDTH * channels)], 0);
            ck_assert_int_eq(
                memcmp(rows + y * (1 + WIDTH * channels) + 1, pixels + y * WIDTH * channels, WIDTH * channels), 0);
        }
        free(png.at);
    }
}
END_TEST

/* ---- histograms ---- */

static cek__histogram histogram;

/* The bucket that a lone value is in. */
static int bucket(float value)
{
    cek__histogram_of(&value, 1, &histogram);
    for (int i = 0; i < CEK__HISTOGRAM_BUCKETS; i++)
        if (histogram.count[i] > 0)
            return i;
    return -1;
}

START_TEST(bucket_limits_are_tensorflows)
{
    enum { MIDDLE = CEK__HISTOGRAM_SIDE };
    const double *limit = histogram.limit;
    bucket(0);
    ck_assert(limit[MIDDLE] == 0 && limit[MIDDLE + 1] == 1e-12 && limit[MIDDLE + 2] == 1e-12 * 1.1);
    ck_assert(limit[CEK__HISTOGRAM_BUCKETS - 1] == DBL_MAX && limit[0] == -DBL_MAX);
    ck_assert(limit[CEK__HISTOGRAM_BUCKETS - 2] < 1e20 && limit[CEK__HISTOGRAM_BUCKETS - 2] * 1.1 >= 1e20);
    for (int i = 1; i < CEK__HISTOGRAM_BUCKETS; i++)
        ck_assert_double_lt(limit[i - 1], limit[i]);
    for (int i = 0; i < CEK__HISTOGRAM_BUCKETS; i++)
        ck_assert(limit[i] == -limit[CEK__HISTOGRAM_BUCKETS - 1 - i]);
}
END_TEST

START_TEST(a_value_is_below_its_limit_and_not_below_the_one_before)
{
    static const float values[] = { 0,     1e-13f, -1e-13f, 1,        -1,      0.1f,      -123.456f, 1e19f,
                                    1e21f, -1e21f, FLT_MAX, -FLT_MAX, FLT_MIN, 0x1p-149f, -0x1p-149f };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const int at = bucket(values[i]);
        ck_assert_int_gt(at, 0);
        ck_assert_msg(histogram.limit[at - 1] <= (double)values[i] && (double)values[i] < histogram.limit[at],
                      "%g is between %g and %g", (double)values[i], histogram.limit[at - 1], histogram.limit[at]);
    }
    ck_assert_int_eq(bucket(0), CEK__HISTOGRAM_SIDE + 1);
}
END_TEST

START_TEST(a_histogram_tells_what_is_finite_and_joins_what_is_empty)
{
    static const float values[] = { 1, 1, NAN, -2, INFINITY, 4, -INFINITY };
    cek_event_log *log = log_make();
    told t;
    cek__wire limits, counts;
    uint64_t bits;
    double sum = 0, before = 1, count, limit = -DBL_MAX;
    assert_ok(cek_event_log_histogram(log, "h", 3, values, 7));
    assert_ok(cek_event_log_histogram(log, "none", 3, values, 0));
    t = read_whole();
    ck_assert_uint_eq(t.count, 3);
    ck_assert_int_eq(t.values[1].step, 3);
    ck_assert_double_eq(event_double(event_field(t.values[1].data, 1).value), -2);
    ck_assert_double_eq(event_double(event_field(t.values[1].data, 2).value), 4);
    ck_assert_double_eq(event_double(event_field(t.values[1].data, 3).value), 4);
    ck_assert_double_eq(event_double(event_field(t.values[1].data, 4).value), 4);
    ck_assert_double_eq(event_double(event_field(t.values[1].data, 5).value), 22);
    limits = event_field(t.values[1].data, 6).bytes;
    counts = event_field(t.values[1].data, 7).bytes;
    ck_assert_int_eq(counts.end - counts.at, 7 * 8); /* three with values, the empty ones between and around them */
    for (int i = 0; i < 7; i++) {
        ck_assert(cek__wire_number(&counts, CEK__WIRE_FIXED64, &bits));
        count = event_double(bits);
        ck_assert(cek__wire_number(&limits, CEK__WIRE_FIXED64, &bits));
        ck_assert_double_lt(limit, event_double(bits));
        limit = event_double(bits);
        ck_assert_msg((count == 0) != (before == 0), "bucket %d has %g behind %g", i, count, before);
        before = count;
        sum += count;
    }
    ck_assert_double_eq(sum, 4);
    ck_assert_double_eq(limit, DBL_MAX);
    ck_assert(!cek__wire_number(&limits, CEK__WIRE_FIXED64, &bits));
    ck_assert_double_eq(event_double(event_field(t.values[2].data, 3).value), 0);
    ck_assert_int_eq(event_field(t.values[2].data, 7).bytes.end - event_field(t.values[2].data, 7).bytes.at, 8);
    free(t.bytes);
    cek_event_log_free(log);
    scratch_remove();
}
END_TEST

/* ---- what is told ---- */

static bool says(cek__wire bytes, const char *text)
{
    return (size_t)(bytes.end - bytes.at) == strlen(text) && memcmp(bytes.at, text, strlen(text)) == 0;
}

START_TEST(what_is_told_is_read_back)
{
    cek_event_log *log = log_make();
    cek_model *model = model_make();
    told t;
    cek__wire start, node;
    assert_ok(tell_all(log, model));
    assert_ok(cek_event_log_scalars(log, INT64_MAX, (cek_event_scalar[]){ { "x", -0.0 }, { "\xc3\xa4", 1e300 } }, 2));
    t = read_whole();
    ck_assert_uint_eq(t.count, ALL_VALUES + 2);
    ck_assert_str_eq(t.values[1].tag, "_hparams_/experiment");
    ck_assert_str_eq(t.values[2].tag, "_hparams_/session_start_info");
    start = event_field(event_field(t.values[2].data, 3).bytes, 1).bytes; /* its last hyperparameter */
    ck_assert(says(event_field(start, 1).bytes, "data"));
    ck_assert(says(event_field(event_field(start, 2).bytes, 3).bytes, "digits"));
    ck_assert_str_eq(t.values[3].kind, "graph");
    node = event_field(t.values[3].data, 1).bytes;
    ck_assert(says(event_field(node, 1).bytes, "1-linear") || says(event_field(node, 1).bytes, "2-linear"));
    ck_assert(says(event_field(node, 2).bytes, "linear"));
    ck_assert_str_eq(t.values[4].tag, "a/b");
    ck_assert_int_eq(t.values[4].step, 7);
    ck_assert_float_eq(t.values[4].scalar, 1.5f);
    ck_assert_str_eq(t.values[6].kind, "image");
    ck_assert_uint_eq(event_field(t.values[6].data, 1).value, 2);
    ck_assert_uint_eq(event_field(t.values[6].data, 2).value, 3);
    ck_assert_str_eq(t.values[7].kind, "text");
    ck_assert(says(t.values[7].data, "*text*"));
    ck_assert_str_eq(t.values[8].tag, "_hparams_/session_end_info");
    ck_assert_int_eq(t.values[9].step, INT64_MAX);
    ck_assert_str_eq(t.values[10].tag, "\xc3\xa4");
    ck_assert(isinf(t.values[10].scalar));
    free(t.bytes);
    cek_model_free(model);
    cek_event_log_free(log);
    scratch_remove();
}
END_TEST

START_TEST(layers_of_one_name_are_different_boxes_and_dots_make_boxes)
{
    cek_event_log *log = log_make();
    cek_model *m = model_make();
    told t;
    cek__wire nodes;
    cek__wire_field node;
    static const char *const names[] = { "input", "body/first", "flatten", "linear", "body/first" };
    int count = 0;
    char text[64];
    assert_ok(cek_model_enter(m, "body"));
    assert_ok(cek_model_name(m, "first"));
    assert_ok(cek_model_activation(m, 3, CEK_ACT_RELU, NULL));
    assert_ok(cek_model_leave(m));
    assert_ok(cek_event_log_graph(log, m));
    t = read_whole();
    for (nodes = t.values[1].data; cek__wire_next(&nodes, &node);) {
        if (node.number != 1)
            continue;
        ck_assert_int_lt(count, 5);
        event_text(event_field(node.bytes, 1).bytes, text, sizeof text);
        ck_assert_msg(strstr(text, names[count]) != NULL, "node %d is %s", count, text);
        ck_assert_msg(count != 4 || strcmp(text, "body/first-4") == 0, "the second of the name is %s", text);
        ck_assert_msg((event_field(node.bytes, 3).bytes.at != NULL) == (count > 0), "inputs of %s", text);
        count++;
    }
    ck_assert_int_eq(count, 5);
    free(t.bytes);
    cek_model_free(m);
    cek_event_log_free(log);
    scratch_remove();
}
END_TEST

START_TEST(two_logs_of_a_folder_are_two_files)
{
    cek_event_log *a = log_make(), *b;
    char deep[256], deeper[512];
    assert_ok(cek_event_log_create(scratch_dir, &b));
    assert_ok(cek_event_log_scalar(a, "x", 1, 1));
    assert_ok(cek_event_log_scalar(b, "x", 1, 2));
    ck_assert_int_eq(scratch_count(), 2);
    cek_event_log_free(a);
    cek_event_log_free(b);
    scratch_remove();
    scratch_make();
    snprintf(deep, sizeof deep, "%s/runs", scratch_dir);
    snprintf(deeper, sizeof deeper, "%s//1/", deep);
    assert_ok(cek_event_log_create(deeper, &a));
    cek_event_log_free(a);
    ck_assert_int_eq(access(deeper, W_OK), 0);
    snprintf(deeper, sizeof deeper, "rm -r '%s'", deep);
    ck_assert_int_eq(system(deeper), 0);
    scratch_remove();
}
END_TEST

START_TEST(what_makes_no_sense_is_refused_and_not_told)
{
    cek_event_log *log = log_make();
    static const float values[1];
    static const uint8_t pixel[1];
    told t;
    assert_fails(cek_event_log_scalar(log, "", 1, 1), CEK_INVALID, "tag", "empty");
    assert_fails(cek_event_log_scalar(log, "\xff", 1, 1), CEK_INVALID, "tag", "UTF-8");
    assert_fails(cek_event_log_scalar(log, "a", -1, 1), CEK_INVALID, "a", "step -1 is below 0");
    assert_fails(cek_event_log_scalars(log, 1, (cek_event_scalar[]){ { "a", 1 }, { NULL, 1 } }, 2), CEK_INVALID, "tag",
                 "NULL");
    assert_fails(cek_event_log_scalars(log, -1, &(cek_event_scalar){ "a", 1 }, 0), CEK_INVALID, "no scalars",
                 "step -1 is below 0");
    assert_fails(cek_event_log_text(log, "a", 1, "\xc3"), CEK_INVALID, "text", "UTF-8");
    assert_fails(cek_event_log_histogram(log, "a", 1, values, -1), CEK_INVALID, "a", "-1 values");
    assert_fails(cek_event_log_image(log, "a", 1, pixel, 0, 1, 1), CEK_INVALID, "a", "0 x 1 pixels");
    assert_fails(cek_event_log_image(log, "a", 1, pixel, 1, -1, 1), CEK_INVALID, "a", "1 x -1 pixels");
    assert_fails(cek_event_log_image(log, "a", 1, pixel, 1, 1, 5), CEK_INVALID, "a", "in 5 channels");
    assert_fails(cek_event_log_image(log, "a", 1, pixel, INT64_MAX, INT64_MAX, 4), CEK_INVALID, "a", "at most");
    assert_fails(cek_event_log_image(log, "a", 1, pixel, 16384, 16384, 3), CEK_INVALID, "a", "at most");
    assert_fails(cek_event_log_hparams(log, (cek_hparam[]){ { "a", NULL, 1 }, { "a", "b", 1 } }, 2, NULL, 0),
                 CEK_INVALID, "metrics", "NULL");
    assert_fails(cek_event_log_hparams(log, (cek_hparam[]){ { "a", NULL, 1 }, { "a", "b", 1 } }, 2,
                                       (const char *[]){ "x" }, 1),
                 CEK_INVALID, "two hyperparameters", "a");
    assert_fails(cek_event_log_hparams(log, (cek_hparam[]){ { "", NULL, 1 } }, 1, (const char *[]){ "x" }, 1),
                 CEK_INVALID, "hyperparameter's name", "empty");
    assert_fails(cek_event_log_hparams(log, (cek_hparam[]){ { "a", NULL, 1 } }, 1, (const char *[]){ "" }, 1),
                 CEK_INVALID, "metric's tag", "empty");
    t = read_whole();
    ck_assert_uint_eq(t.count, 1);
    free(t.bytes);
    cek_event_log_free(log);
    scratch_remove();
}
END_TEST

/* ---- what fails ---- */

START_TEST(whatever_fails_the_file_is_whole_and_takes_more)
{
    const cek__fault kind = _i == 0 ? CEK__FAULT_FILE : CEK__FAULT_ALLOC;
    cek_model *model = model_make();
    long site = 1;
    for (bool tried = false; !tried; site++) {
        cek_event_log *log = log_make();
        cek_status st;
        told t;
        cek__fault_set(kind, site);
        st = tell_all(log, model);
        tried = cek__fault_pending(kind);
        cek__fault_set(kind, 0);
        ck_assert_msg(tried ? st == CEK_OK : st == (kind == CEK__FAULT_FILE ? CEK_IO : CEK_OUT_OF_MEMORY),
                      "site %ld: %s", site, cek_status_name(st));
        ck_assert_msg(tried || kind != CEK__FAULT_FILE || strstr(cek_error_text(), scratch_dir) != NULL, "%s",
                      cek_error_text());
        assert_ok(cek_event_log_scalar(log, "behind", 1, 1));
        t = read_whole();
        ck_assert_str_eq(t.values[t.count - 1].tag, "behind");
        ck_assert_uint_ge(tried ? t.count : ALL_VALUES, tried ? ALL_VALUES + 1 : 1);
        ck_assert_uint_ne(t.count, 3); /* hyperparameters are two values of one call */
        free(t.bytes);
        cek_event_log_free(log);
        scratch_remove();
    }
    ck_assert_int_gt(site, 8);
    cek_model_free(model);
}
END_TEST

START_TEST(a_log_that_cannot_be_made_leaves_nothing_behind)
{
    for (cek__fault kind = CEK__FAULT_ALLOC; kind <= CEK__FAULT_FILE; kind++) {
        bool tried = false;
        for (long site = 1; !tried; site++) {
            cek_event_log *log;
            cek_status st;
            scratch_make();
            cek__fault_set(kind, site);
            st = cek_event_log_create(scratch_dir, &log);
            tried = cek__fault_pending(kind);
            cek__fault_set(kind, 0);
            ck_assert((st == CEK_OK) == tried && (log != NULL) == tried);
            ck_assert_int_eq(scratch_count(), tried);
            cek_event_log_free(log);
            scratch_remove();
        }
    }
}
END_TEST

/* The system takes a part of a record and no more. */
static void disk_fill(cek_event_log *log, size_t more)
{
    static uint8_t pixels[64 * 64];
    struct rlimit before, limit;
    told t = read_whole();
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * 2654435761u >> 7);
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){ .rlim_cur = t.size + more, .rlim_max = before.rlim_max };
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_fails(cek_event_log_image(log, "i", 1, pixels, 64, 64, 1), CEK_IO, scratch_dir, "write failed");
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    free(t.bytes);
}

START_TEST(what_a_full_disk_took_of_a_record_is_taken_back)
{
    cek_event_log *log = log_make();
    told t;
    disk_fill(log, 100);
    t = read_whole();
    ck_assert_uint_eq(t.count, 1);
    free(t.bytes);
    assert_ok(cek_event_log_scalar(log, "x", 1, 1));
    t = read_whole();
    ck_assert_uint_eq(t.count, 2);
    free(t.bytes);
    cek_event_log_free(log);
    scratch_remove();
}
END_TEST

START_TEST(behind_a_part_that_cannot_be_taken_back_nothing_is_written)
{
    cek_event_log *log = log_make();
    told t;
    truncation_fails = true;
    disk_fill(log, 100);
    truncation_fails = false;
    assert_fails(cek_event_log_scalar(log, "x", 1, 1), CEK_IO, scratch_dir, "ends in a part of a record");
    t = read_back();
    ck_assert_str_eq(t.fault, "ends within a record");
    ck_assert_uint_eq(t.count, 1);
    ck_assert_uint_eq(t.size, 12 + 0x18 + 4 + 100);
    free(t.bytes);
    cek_event_log_free(log);
    scratch_remove();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("events");
    TCase *tc = tcase_create("events");
    tcase_add_test(tc, checksums_are_those_of_rfc_3720);
    tcase_add_test(tc, a_file_begins_as_tensorflows_do);
    tcase_add_test(tc, a_png_is_its_pixels_again);
    tcase_add_test(tc, bucket_limits_are_tensorflows);
    tcase_add_test(tc, a_value_is_below_its_limit_and_not_below_the_one_before);
    tcase_add_test(tc, a_histogram_tells_what_is_finite_and_joins_what_is_empty);
    tcase_add_test(tc, what_is_told_is_read_back);
    tcase_add_test(tc, layers_of_one_name_are_different_boxes_and_dots_make_boxes);
    tcase_add_test(tc, two_logs_of_a_folder_are_two_files);
    tcase_add_test(tc, what_makes_no_sense_is_refused_and_not_told);
    tcase_add_loop_test(tc, whatever_fails_the_file_is_whole_and_takes_more, 0, 2);
    tcase_add_test(tc, a_log_that_cannot_be_made_leaves_nothing_behind);
    tcase_add_test(tc, what_a_full_disk_took_of_a_record_is_taken_back);
    tcase_add_test(tc, behind_a_part_that_cannot_be_taken_back_nothing_is_written);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
