/* safetensors.c - tests of nn/formats/safetensors: what PyTorch wrote, round trips, lies, failing saves. */
#include <math.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "core/base/alloc.h"
#include "core/base/fault.h"
#include "core/base/file.h"
#include "nn/formats/safetensors.h"
#include "scratch.h"

static size_t bytes_read;

/* The library's read. */
__attribute__((visibility("default"))) ssize_t read(int fd, void *data, size_t size)
{
    ssize_t n = (ssize_t)syscall(SYS_read, fd, data, size);

    bytes_read += n > 0 ? (size_t)n : 0;
    return n;
}

static const char *fixture(void)
{
    static char path[512];
    const char *srcdir = getenv("srcdir");

    snprintf(path, sizeof path, "%.400s/tests/fixtures/torch.safetensors", srcdir != NULL ? srcdir : ".");
    return path;
}

static const cek__st_tensor *tensor(const cek__st_file *file, const char *name, cek__st_type type, uint64_t count)
{
    const cek__st_tensor *t = cek__st_find(file, name);

    ck_assert_msg(t != NULL, "no tensor %s", name);
    ck_assert_int_eq(t->type, type);
    ck_assert_uint_eq(t->count, count);
    return t;
}

START_TEST(what_pytorch_wrote_is_read_value_by_value)
{
    static const double half[] = { 0.0, -0.0, 1.0, -2.5, 65504.0, 0x1p-24, 0x1p-14, INFINITY };
    static const char *const floating[] = { "0.weight", "double", "brain" };
    static const cek__st_type types[] = { CEK__ST_F32, CEK__ST_F64, CEK__ST_BF16 };
    cek__st_file *file;
    const cek__st_tensor *t;
    double wide[8];
    float narrow[8];

    assert_ok(cek__safetensors_read(fixture(), &file));
    ck_assert_uint_eq(file->count, 10);
    for (int k = 0; k < 3; k++) {
        t = tensor(file, floating[k], types[k], 6);
        assert_ok(cek__st_to_f32(t, narrow));
        assert_ok(cek__st_to_f64(t, wide));
        for (int i = 0; i < 6; i++) {
            ck_assert_float_eq(narrow[i], (float)i * 0.5f - 1);
            ck_assert_double_eq(wide[i], i * 0.5 - 1);
        }
    }
    t = tensor(file, "half", CEK__ST_F16, 8);
    assert_ok(cek__st_to_f64(t, wide));
    for (int i = 0; i < 8; i++) {
        ck_assert(wide[i] == half[i]);
        ck_assert_int_eq(signbit(wide[i]), signbit(half[i]));
    }
    for (int i = 0; i < 4; i++) {
        int32_t a;
        int64_t b;

        memcpy(&a, (const char *)tensor(file, "int", CEK__ST_I32, 4)->data + 4 * i, 4);
        memcpy(&b, (const char *)tensor(file, "long", CEK__ST_I64, 4)->data + 8 * i, 8);
        ck_assert_int_eq(a, 3 * i - 4);
        ck_assert_int_eq(b, 3 * i - 4);
    }
    ck_assert_mem_eq(tensor(file, "bytes", CEK__ST_U8, 5)->data, "\0\1\2\3\4", 5);
    t = tensor(file, "scalar", CEK__ST_F32, 1);
    ck_assert_uint_eq(t->rank, 0);
    assert_ok(cek__st_to_f32(t, narrow));
    ck_assert_float_eq(narrow[0], 7.25f);
    t = tensor(file, "empty", CEK__ST_F32, 0);
    ck_assert(t->rank == 2 && t->shape[0] == 0 && t->shape[1] == 4);
    t = tensor(file, "0.weight", CEK__ST_F32, 6);
    ck_assert(t->rank == 2 && t->shape[0] == 2 && t->shape[1] == 3);
    ck_assert_ptr_null(cek__st_find(file, "0.weigh"));
    assert_fails(cek__st_to_f32(cek__st_find(file, "long"), narrow), CEK_BAD_INPUT, "long", "I64");
    cek__st_free(file);
}
END_TEST

static const float values[6] = { 1, 2, 3, -4, 5e-30f, 6 };
static const cek__st_tensor some[] = {
    { .name = "b", CEK__ST_F32, 2, { 3, 2 }, 6, values },
    { .name = "a.\"quoted\" \xc3\xa9", CEK__ST_U8, 1, { 3 }, 3, "xyz" },
    { .name = "c", CEK__ST_F64, 0, { 0 }, 1, (double[]){ 1e300 } },
};

START_TEST(a_file_comes_back_as_it_was_written)
{
    static const char *const metadata[][2] = { { "format", "pt" }, { "made by", "a test" } };
    const char *path = scratch_path("a.safetensors");
    cek__st_file *file;
    float narrow[6];
    uint64_t length;
    void *bytes;
    size_t size;

    assert_ok(cek__safetensors_write(path, some, 3, metadata, 2));
    assert_ok(cek__safetensors_read(path, &file));
    ck_assert_uint_eq(file->count, 3);
    ck_assert_str_eq(file->tensors[0].name, some[1].name); /* in the order of names */
    ck_assert_str_eq(file->tensors[1].name, "b");
    ck_assert_mem_eq(file->tensors[0].data, "xyz", 3);
    assert_ok(cek__st_to_f32(&file->tensors[1], narrow)); /* 3 bytes in: misaligned */
    ck_assert_mem_eq(narrow, values, sizeof values);
    assert_fails(cek__st_to_f32(&file->tensors[2], narrow), CEK_BAD_INPUT, "'c'", "does not fit");
    cek__st_free(file);
    assert_ok(cek__file_read(path, 1 << 20, &bytes, &size));
    memcpy(&length, bytes, 8);
    ck_assert_uint_eq(length % 8, 0);
    ck_assert_ptr_nonnull(strstr((char *)bytes + 8, "{\"__metadata__\":{\"format\":\"pt\",\"made by\":\"a test\"},"
                                                    "\"a.\\\"quoted\\\" \xc3\xa9\":{\"dtype\":\"U8\",\"shape\":[3],"
                                                    "\"data_offsets\":[0,3]},\"b\":"));
    free(bytes);
    assert_ok(cek__safetensors_write(path, NULL, 0, NULL, 0));
    assert_ok(cek__safetensors_read(path, &file));
    ck_assert_uint_eq(file->count, 0);
    cek__st_free(file);
}
END_TEST

START_TEST(two_tensors_of_one_name_are_not_written)
{
    cek__st_tensor two[2] = { some[0], some[0] }, reserved = some[0];

    reserved.name = "__metadata__";
    assert_fails(cek__safetensors_write(scratch_path("a"), two, 2, NULL, 0), CEK_INVALID, "'b'", "two tensors");
    assert_fails(cek__safetensors_write(scratch_path("a"), &reserved, 1, NULL, 0), CEK_INVALID, "__metadata__",
                 "no tensor");
    reserved.name = "a\xff";
    assert_fails(cek__safetensors_write(scratch_path("a"), &reserved, 1, NULL, 0), CEK_INVALID, "name", "not UTF-8");
    ck_assert_int_eq(scratch_count(), 0);
}
END_TEST

START_TEST(a_failing_save_keeps_the_former_file)
{
    const char *path = scratch_path("a");

    for (int kind = 0; kind < CEK__FAULT_COUNT; kind++) {
        int kept = 0;

        for (long nth = 1;; nth++) {
            cek__st_file *file;
            cek_status st;

            assert_ok(cek__safetensors_write(path, some, 1, NULL, 0));
            cek__fault_set(kind, nth);
            st = cek__safetensors_write(path, some, 3, NULL, 0);
            if (cek__fault_pending(kind)) {
                assert_ok(st);
                cek__fault_set(kind, 0);
                break;
            }
            ck_assert_uint_eq(st, kind == CEK__FAULT_ALLOC ? CEK_OUT_OF_MEMORY : CEK_IO);
            ck_assert_int_eq(scratch_count(), 1);
            assert_ok(cek__safetensors_read(path, &file)); /* the old one, or after the rename the new one: whole */
            kept += file->count == 1;
            cek__st_free(file);
        }
        ck_assert_int_ge(kept, 6);
    }
}
END_TEST

START_TEST(a_failing_allocation_of_a_read_is_reported)
{
    long nth = 1;

    for (;; nth++) {
        cek__st_file *file;
        cek_status st;

        cek__fault_set(CEK__FAULT_ALLOC, nth);
        st = cek__safetensors_read(fixture(), &file);
        if (cek__fault_pending(CEK__FAULT_ALLOC)) {
            assert_ok(st);
            cek__st_free(file);
            break;
        }
        ck_assert_uint_eq(st, CEK_OUT_OF_MEMORY);
        ck_assert_ptr_null(file);
    }
    cek__fault_set(CEK__FAULT_ALLOC, 0);
    ck_assert_int_eq(nth, 7); /* file, path, header, entries, values, tensors; then it succeeds */
}
END_TEST

/* A file with this header (its true length in front) and so many bytes of values. */
static const char *forged(const char *header, size_t value_bytes)
{
    static char bytes[4096];
    uint64_t length = strlen(header);

    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, length);
    return scratch_write("forged", bytes, 8 + length + value_bytes);
}

#define ENTRY(name, type, shape, offsets) \
    "\"" name "\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static const struct lie {
    const char *header;
    size_t bytes;
    const char *cause;
} lies[] = {
    { "{" ENTRY("a", "F32", "[2]", "[0,8]") "}", 7, "has 7 bytes" },
    { "{" ENTRY("a", "F32", "[2]", "[0,8]") "}", 9, "last 1 bytes" },
    { "{" ENTRY("a", "F32", "[2]", "[0,4]") "}", 4, "do not take the 4 bytes" },
    { "{" ENTRY("a", "F32", "[2]", "[4,12]") "}", 12, "before its values" },
    { "{" ENTRY("a", "F32", "[2]", "[0,8]") "," ENTRY("b", "F32", "[2]", "[4,12]") "}", 12, "overlap" },
    { "{" ENTRY("a", "F32", "[2]", "[0,8]") "," ENTRY("b", "F32", "[2]", "[0,8]") "}", 8, "overlap" },
    { "{" ENTRY("a", "F32", "[2]", "[0,8]") "," ENTRY("b", "F32", "[1]", "[12,16]") "}", 16, "before its values" },
    { "{" ENTRY("a", "F32", "[2]", "[0,8]") "," ENTRY("a", "F32", "[2]", "[8,16]") "}", 16, "the same name" },
    { "{" ENTRY("a", "F32", "[2]", "[8,0]") "}", 8, "rising" },
    { "{" ENTRY("a", "F32", "[2]", "[-8,0]") "}", 8, "rising" },
    { "{" ENTRY("a", "F32", "[2]", "[0,8.0]") "}", 8, "whole numbers" },
    { "{" ENTRY("a", "F32", "[2]", "[0]") "}", 8, "whole numbers" },
    { "{" ENTRY("a", "F32", "[-2]", "[0,8]") "}", 8, "dimension" },
    { "{" ENTRY("a", "F32", "[\"2\"]", "[0,8]") "}", 8, "dimension" },
    { "{" ENTRY("a", "F32", "2", "[0,8]") "}", 8, "not a list" },
    { "{" ENTRY("a", "F32", "[1,1,1,1,1,1,1,1,2]", "[0,8]") "}", 8, "rank" },
    { "{" ENTRY("a", "F32", "[4294967296,4294967296,2]", "[0,8]") "}", 8, "impossible" },
    { "{" ENTRY("a", "F64", "[4611686018427387904]", "[0,8]") "}", 8, "do not take" },
    { "{" ENTRY("a", "F8_E4M3", "[8]", "[0,8]") "}", 8, "F8_E4M3" },
    { "{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "no dtype" },
    { "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, "no shape" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "no data_offsets" },
    { "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "two dtypes" },
    { "{\"a\":{\"dtype\":4,\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "dtype is not a string" },
    { "{\"a\":3}", 0, "not described by an object" },
    { "{" ENTRY("a", "F32", "[2]", "[0,8,8]") "}", 8, "whole numbers" },
    { "{" ENTRY("a", "F32", "[9223372036854775808]", "[0,8]") "}", 8, "64 bits (byte 29)" },
    { "{\"__metadata__\":{\"a\":1}}", 0, "not a string" },
    { "{\"__metadata__\":[]}", 0, "not an object" },
    { "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "there twice" },
    { "{" ENTRY("a\\nb\\u001b", "\\u001b[31m\x7f\xc2\x9b", "[2]", "[0,8]") "}", 8, "'a b?': dtype ?[31m?? is" },
    { "{} x", 0, "not valid JSON: something follows the value (byte 3)" },
    { "{\"a\":", 0, "JSON: a value is missing" },
    { "{", 0, "JSON: a string is missing" },
    { "{\"a", 0, "JSON: a string without an end" },
    { "{\"a\"}", 0, "JSON: a ':' is missing" },
    { "{\"a\xff\":0}", 0, "JSON: bytes that are not UTF-8" },
    { "{\"a\n\":0}", 0, "JSON: a control character" },
    { "{\"a\\x\":0}", 0, "JSON: an unknown escape" },
    { "{\"a\\u0000\":0}", 0, "JSON: a zero character" },
    { "{\"a\\ud800\":0}", 0, "JSON: \\u without" },
    { "{\"a\\udc00\":0}", 0, "JSON: \\u without" },
    { "{\"a\\u12g4\":0}", 0, "JSON: \\u without" },
    { "{\"__metadata__\":{\"a\":\"b\",}}", 0, "JSON: a string is missing" },
    { "{\"__metadata__\":{\"a\":\"b\"\"c\":\"d\"}}", 0, "JSON: neither ',' nor '}'" },
    { "{\"a\":{\"x\":tru}}", 0, "JSON: an unknown word" },
    { "{\"a\":{\"x\":01}}", 0, "JSON: neither" },
    { "{\"a\":{\"x\":-}}", 0, "JSON: a digit is missing" },
    { "{\"a\":{\"x\":1.}}", 0, "JSON: a digit is missing" },
    { "{\"a\":{\"x\":1e+}}", 0, "JSON: a digit is missing" },
    { "{\"a\":{\"x\":[1 2]}}", 0, "JSON: neither ',' nor ']'" },
    { "{\"a\":{\"x\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", 0, "within values" },
    { "[1]", 0, "does not start" },
    { "", 0, "does not start" },
};

START_TEST(a_lie_is_named)
{
    const struct lie *lie = &lies[_i];
    cek__st_file *file;

    assert_fails(cek__safetensors_read(forged(lie->header, lie->bytes), &file), CEK_BAD_INPUT, "forged", lie->cause);
    ck_assert_ptr_null(file);
}
END_TEST

START_TEST(what_json_allows_is_read)
{
    static const char *const headers[] = {
        " ",
        "{ } \n\t\r ",
        "{\"a\\u00e9\\ud83d\\ude00\\\"\\/"
        "\\\\\":{\"later\":[1,-2.5e-3,0E+1,null,true,false,\"\\ud83d\\ude00\",{},[],{\"b\":{}}], "
        "\"shape\" : [ 1 , 2 ] , \"data_offsets\":[0,8],\"dtype\":\"F32\"}}",
    };
    cek__st_file *file;

    assert_fails(cek__safetensors_read(forged(headers[0], 0), &file), CEK_BAD_INPUT, "forged", "does not start");
    assert_ok(cek__safetensors_read(forged(headers[1], 0), &file));
    ck_assert_uint_eq(file->count, 0);
    cek__st_free(file);
    assert_ok(cek__safetensors_read(forged(headers[2], 8), &file));
    ck_assert_uint_eq(tensor(file, "a\xc3\xa9\xf0\x9f\x98\x80\"/\\", CEK__ST_F32, 2)->rank, 2);
    cek__st_free(file);
}
END_TEST

/* A file of this size, of which only the beginning takes place on the disk. */
static const char *sparse(const char *header, uint64_t promised, off_t size)
{
    static char bytes[4096];
    const char *path;

    memcpy(bytes, &promised, 8);
    strcpy(bytes + 8, header);
    path = scratch_write("sparse", bytes, 8 + strlen(header));
    ck_assert_int_eq(truncate(path, size), 0);
    return path;
}

START_TEST(no_more_is_read_than_was_believed)
{
    static const char good[] = "{" ENTRY("a", "F32", "[2]", "[0,8]") "}";
    const off_t large = (off_t)4 << 30;
    cek__st_file *file;

    bytes_read = 0;
    assert_fails(cek__safetensors_read(sparse("", (uint64_t)large, large), &file), CEK_BAD_INPUT, "sparse",
                 "header of");
    ck_assert_uint_eq(bytes_read, 8);
    bytes_read = 0;
    assert_fails(cek__safetensors_read(sparse("x", 4, large), &file), CEK_BAD_INPUT, "sparse", "does not start");
    ck_assert_uint_eq(bytes_read, 12);
    bytes_read = 0;
    assert_fails(cek__safetensors_read(sparse(good, strlen(good), large), &file), CEK_BAD_INPUT, "sparse",
                 "last 4294967");
    ck_assert_uint_eq(bytes_read, 8 + strlen(good));
}
END_TEST

START_TEST(memory_that_runs_out_is_never_taken_for_a_bad_file)
{
    enum { TENSORS = 20000 };
    const char *path = scratch_path("many"), *sanitizers = getenv("SANITIZERS");
    cek__st_tensor *tensors;
    char(*names)[64];
    int failures = 0;
    long pages;
    FILE *sizes;

    if (sanitizers != NULL && strcmp(sanitizers, "no") != 0)
        return; /* they want address space of their own */
    assert_ok(cek__calloc(TENSORS, sizeof *tensors, &tensors));
    assert_ok(cek__calloc(TENSORS, sizeof *names, &names));
    for (int i = 0; i < TENSORS; i++) {
        snprintf(names[i], sizeof names[i], "a.name.of.some.length.%d", i);
        tensors[i] = (cek__st_tensor){
            .name = names[i], .type = CEK__ST_U8, .rank = 1, .shape = { 1 }, .count = 1, .data = "x"
        };
    }
    assert_ok(cek__safetensors_write(path, tensors, TENSORS, NULL, 0));
    free(tensors);
    free(names);
    sizes = fopen("/proc/self/statm", "r");
    ck_assert(sizes != NULL && fscanf(sizes, "%ld", &pages) == 1);
    fclose(sizes);
    for (rlim_t more = 0;; more += 256 << 10) {
        struct rlimit limit = { (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + more, RLIM_INFINITY };
        cek__st_file *file;
        cek_status st;

        ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
        st = cek__safetensors_read(path, &file);
        cek__st_free(file);
        if (st == CEK_OK)
            break;
        ck_assert_msg(st == CEK_OUT_OF_MEMORY, "%s", cek_error_text());
        failures++;
    }
    ck_assert_int_gt(failures, 4);
}
END_TEST

START_TEST(a_header_longer_than_the_file_is_refused)
{
    static const uint64_t lengths[] = { 100, 100000001, UINT64_MAX, UINT64_MAX - 7 };
    cek__st_file *file;

    for (size_t i = 0; i < 4; i++)
        assert_fails(cek__safetensors_read(scratch_write("a", &lengths[i], 8), &file), CEK_BAD_INPUT, "/a",
                     "header of");
    assert_fails(cek__safetensors_read(scratch_write("a", lengths, 7), &file), CEK_BAD_INPUT, "/a", "too few");
    assert_fails(cek__safetensors_read(scratch_path("none"), &file), CEK_IO, "none", "No such file");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("safetensors");
    TCase *files = tcase_create("files");

    tcase_add_checked_fixture(files, scratch_make, scratch_remove);
    tcase_add_test(files, what_pytorch_wrote_is_read_value_by_value);
    tcase_add_test(files, a_file_comes_back_as_it_was_written);
    tcase_add_test(files, two_tensors_of_one_name_are_not_written);
    tcase_add_test(files, a_failing_save_keeps_the_former_file);
    tcase_add_test(files, a_failing_allocation_of_a_read_is_reported);
    tcase_add_loop_test(files, a_lie_is_named, 0, sizeof lies / sizeof *lies);
    tcase_add_test(files, what_json_allows_is_read);
    tcase_add_test(files, no_more_is_read_than_was_believed);
    tcase_add_test(files, memory_that_runs_out_is_never_taken_for_a_bad_file);
    tcase_add_test(files, a_header_longer_than_the_file_is_refused);
    suite_add_tcase(suite, files);
    return suite_run(suite);
}
