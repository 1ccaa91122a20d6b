/* npy.c - tests of nn/formats/npy.c: what NumPy writes is read, what we write is what it would write, and no
 * file is believed. */
#include "cekernels/nn.h"
#include "core/base/fault.h"
#include "scratch.h"

typedef struct bytes {
    uint8_t at[1024];
    size_t size;
} bytes;

static void put(bytes *b, const void *data, size_t size)
{
    ck_assert_uint_le(b->size + size, sizeof b->at);
    memcpy(b->at + b->size, data, size);
    b->size += size;
}

/* A file of this version and dictionary. */
static bytes file_of(int version, const char *dictionary, const void *values, size_t size)
{
    bytes b = { .size = 0 };
    const uint8_t start[2] = { (uint8_t)version, 0 };
    const size_t length = strlen(dictionary);
    const uint8_t lengths[4] = { (uint8_t)length, (uint8_t)(length >> 8), 0, 0 };

    put(&b, "\x93NUMPY", 6);
    put(&b, start, 2);
    put(&b, lengths, version == 1 ? 2 : 4);
    put(&b, dictionary, length);
    put(&b, values, size);
    return b;
}

static const char *written(const bytes *b)
{
    return scratch_write("a.npy", b->at, b->size);
}

static const float floats[6] = { 1, -2.5f, 3, 4, 5, 6e30f };
static const double doubles[2] = { 0.1, -7 };
static const int32_t narrow[2] = { -3, 2147483647 };
static const int64_t wide[2] = { -9, 16777216 };
static const uint8_t small[3] = { 0, 7, 255 };

START_TEST(every_version_and_type_is_read)
{
    const struct {
        int version;
        const char *dictionary;
        const void *values;
        size_t size;
        cek_dtype as, type;
        int rank;
        int64_t count;
        double first, last;
    } files[] = {
        { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n", floats, 24, 0, CEK_F32, 2, 6, 1,
          (double)6e30f },
        { 2, "{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\"<f4\"}", floats, 24, 0, CEK_F32, 2, 6, 1,
          (double)6e30f },
        { 3, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }\n", doubles, 16, 0, CEK_F32, 1, 2, (double)0.1f,
          -7 },
        { 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }", doubles, 8, 0, CEK_F32, 0, 1, (double)0.1f,
          (double)0.1f },
        { 1, "{'descr': '<i4', 'fortran_order': False, 'shape': (1, 2), }", narrow, 8, 0, CEK_I32, 2, 2, -3,
          2147483647 },
        { 1, "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", wide, 16, 0, CEK_I32, 1, 2, -9, 16777216 },
        { 1, "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", wide, 16, CEK_F32, CEK_F32, 1, 2, -9,
          16777216 },
        { 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", small, 3, 0, CEK_U8, 1, 3, 0, 255 },
        { 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", small, 3, CEK_I32, CEK_I32, 1, 3, 0, 255 },
        { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3), }", floats, 0, 0, CEK_F32, 2, 0, 0, 0 },
        { 1, "{'descr': '>f4', 'fortran_order': False, 'shape': (0, 4611686018427387904, 8), }", floats, 0, 0, CEK_F32,
          3, 0, 0, 0 }, /* UBSan would see strides overflow */
    };

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const bytes b = file_of(files[i].version, files[i].dictionary, files[i].values, files[i].size);
        cek_npy a = { .size = sizeof a };
        double ends[2] = { 0, 0 };

        assert_ok(cek_npy_read(written(&b), files[i].as, &a));
        ck_assert_uint_eq(a.type, files[i].type);
        ck_assert_int_eq(a.rank, files[i].rank);
        ck_assert_int_eq(a.count, files[i].count);
        for (int e = 0; e < 2 && a.count > 0; e++) {
            const int64_t at = e ? a.count - 1 : 0;

            ends[e] = a.type == CEK_F32   ? (double)((float *)a.data)[at]
                      : a.type == CEK_I32 ? ((int32_t *)a.data)[at]
                                          : ((uint8_t *)a.data)[at];
        }
        ck_assert_double_eq(ends[0], files[i].first);
        ck_assert_double_eq(ends[1], files[i].last);
        free(a.data);
    }
}
END_TEST

START_TEST(either_order_of_bytes_and_of_axes_is_read)
{
    static const uint8_t big[] = { 0xff, 0xff, 0xff, 0xfd, 0, 0, 1, 2 }, halves[] = { 0x3e, 0, 0xc0, 0 },
                         bools[] = { 1, 0, 2 };
    static const float turned[6] = { 1, 4, -2.5f, 5, 3, 6e30f };
    const struct {
        const char *dictionary;
        const void *values;
        size_t size;
        cek_dtype as, type;
        double values_are[6];
    } files[] = {
        { "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }",
          turned,
          24,
          0,
          CEK_F32,
          { 1, -2.5, 3, 4, 5, (double)6e30f } },
        { "{'descr': '<f4', 'fortran_order': True, 'shape': (6,), }",
          floats,
          24,
          0,
          CEK_F32,
          { 1, -2.5, 3, 4, 5, (double)6e30f } },
        { "{'descr': '>i4', 'fortran_order': False, 'shape': (2,), }", big, 8, 0, CEK_I32, { -3, 258 } },
        { "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 2), }", big, 8, CEK_F32, CEK_F32, { -1, 0, -3, 258 } },
        { "{'descr': '>f2', 'fortran_order': False, 'shape': (2,), }", halves, 4, 0, CEK_F32, { 1.5, -2 } },
        { "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", bools, 3, 0, CEK_U8, { 1, 0, 1 } },
        { "{'descr': '|b1', 'fortran_order': True, 'shape': (3,), }", bools, 3, CEK_F32, CEK_F32, { 1, 0, 1 } },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (1,), }", big, 2, 0, CEK_I32, { 65535 } },
        { "{'descr': '|i1', 'fortran_order': False, 'shape': (1,), }", big, 1, 0, CEK_I32, { -1 } },
    };

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const bytes b = file_of(1, files[i].dictionary, files[i].values, files[i].size);
        cek_npy a = { .size = sizeof a };

        assert_ok(cek_npy_read(written(&b), files[i].as, &a));
        ck_assert_uint_eq(a.type, files[i].type);
        for (int64_t e = 0; e < a.count; e++)
            ck_assert_double_eq(a.type == CEK_F32   ? (double)((float *)a.data)[e]
                                : a.type == CEK_I32 ? ((int32_t *)a.data)[e]
                                                    : ((uint8_t *)a.data)[e],
                                files[i].values_are[e]);
        free(a.data);
    }
}
END_TEST

START_TEST(what_is_wrong_is_named_with_the_file)
{
    static const int64_t large[1] = { INT64_C(1) << 32 };
    static const double huge[1] = { 1e300 };
    const struct {
        const char *dictionary;
        const void *values;
        size_t size;
        cek_dtype as;
        const char *cause;
    } files[] = {
        { "{'descr': '>c8', 'fortran_order': False, 'shape': (1,), }", floats, 8, 0, "type '>c8'" },
        { "{'descr': '|f2', 'fortran_order': False, 'shape': (2,), }", floats, 4, 0, "type '|f2'" },
        { "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2,), }", floats, 8, 0, "no simple type" },
        { "{'descr': '<f4', 'fortran_order': None, 'shape': (2, 3), }", floats, 24, 0, "neither True nor False" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", floats, 23, 0,
          "promises 24 bytes of elements, there are 23" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", floats, 24, 0, "promises 16 bytes" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", floats, 0, 0,
          "more elements" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693952, ), }", floats, 0, 0, "promises" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, ), }", floats, 0, 0, "63 bits" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, ), }", floats, 8, 0, "no tuple of sizes" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3), }", floats, 24, 0, "no tuple of sizes" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': 6, }", floats, 24, 0, "no tuple" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", floats, 4, 0, "axes" },
        { "{'descr': '<f4', 'fortran_order': False, }", floats, 4, 0, "no shape" },
        { "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (), }", floats, 4, 0, "'descr' twice" },
        { "{'descr': '<f4', 'order': False, 'shape': (), }", floats, 4, 0, "key 'order'" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (), } x", floats, 4, 0, "behind the dictionary" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': ()", floats, 4, 0, "no dictionary" },
        { "{'descr': '<f4' 'fortran_order': False, 'shape': ()}", floats, 4, 0, "no dictionary" },
        { "['descr']", floats, 4, 0, "no dictionary" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", floats, 8, CEK_I32, "whole numbers are wanted" },
        { "{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }", large, 8, 0, "element 0 is 4294967296" },
        { "{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }", large, 8, CEK_F32,
          "from -16777216 to 16777216" },
        { "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }", narrow, 8, CEK_U8, "element 0 is -3" },
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", huge, 8, 0, "too large for a float" },
    };

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const bytes b = file_of(1, files[i].dictionary, files[i].values, files[i].size);
        cek_npy a = { .size = sizeof a, .rank = 9 };

        assert_fails(cek_npy_read(written(&b), files[i].as, &a), CEK_BAD_INPUT, "a.npy", files[i].cause);
        ck_assert(a.data == NULL && a.rank == 0);
    }
}
END_TEST

START_TEST(a_file_that_is_cut_short_is_refused)
{
    const bytes whole = file_of(2, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", floats, 24);

    for (size_t size = 0; size < whole.size; size++) {
        bytes b = whole;
        cek_npy a = { .size = sizeof a };

        b.size = size;
        assert_fails(cek_npy_read(written(&b), 0, &a), CEK_BAD_INPUT, "a.npy", "");
    }
}
END_TEST

START_TEST(other_versions_and_other_files_are_refused)
{
    bytes b = file_of(1, "{'descr': '<f4', 'fortran_order': False, 'shape': ()} ", floats, 4);
    cek_npy a = { .size = sizeof a };

    b.at[b.size - 5] = '\0'; /* no blank */
    assert_fails(cek_npy_read(written(&b), 0, &a), CEK_BAD_INPUT, "a.npy", "behind the dictionary");
    b.at[6] = 4;
    assert_fails(cek_npy_read(written(&b), 0, &a), CEK_BAD_INPUT, "a.npy", "version 4.0");
    b.at[6] = 1, b.at[7] = 1;
    assert_fails(cek_npy_read(written(&b), 0, &a), CEK_BAD_INPUT, "a.npy", "version 1.1");
    b.at[0] = 'P';
    assert_fails(cek_npy_read(written(&b), 0, &a), CEK_BAD_INPUT, "a.npy", "no .npy file");
    assert_fails(cek_npy_read(scratch_path("none.npy"), 0, &a), CEK_IO, "none.npy", "No such file");
    assert_fails(cek_npy_read("x", CEK_F64, &a), CEK_INVALID, "cek_npy_read", "f64");
}
END_TEST

/* To the byte what numpy.save writes of float32 [2, 3]. */
START_TEST(what_is_written_is_what_numpy_writes)
{
    const bytes expected = file_of(1,
                                   "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }                        "
                                   "                                  \n",
                                   floats, 24);
    const cek_npy a = {
        .size = sizeof a, .type = CEK_F32, .rank = 2, .shape = { 2, 3 }, .count = 6, .data = (void *)floats
    };
    const char *path = scratch_path("b.npy");
    uint8_t there[1024];
    FILE *file;

    assert_ok(cek_npy_write(path, &a));
    file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(there, 1, sizeof there, file), expected.size);
    fclose(file);
    ck_assert_uint_eq(expected.size, 128 + 24);
    ck_assert_mem_eq(there, expected.at, expected.size);
}
END_TEST

START_TEST(what_is_written_is_read_again)
{
    const struct {
        cek_npy array;
    } arrays[] = {
        { { .type = CEK_F32, .rank = 0, .count = 1, .data = (void *)floats } },
        { { .type = CEK_I32, .rank = 1, .shape = { 2 }, .count = 2, .data = (void *)narrow } },
        { { .type = CEK_U8, .rank = 3, .shape = { 1, 3, 1 }, .count = 3, .data = (void *)small } },
        { { .type = CEK_F32, .rank = 8, .shape = { 1, 1, 6, 1, 1, 1, 1, 1 }, .count = 6, .data = (void *)floats } },
        { { .type = CEK_F32, .rank = 2, .shape = { 0, 4 }, .count = 0 } },
    };

    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        cek_npy a = arrays[i].array, b = { .size = sizeof b };
        const char *path = scratch_path("c.npy");

        a.size = sizeof a;
        assert_ok(cek_npy_write(path, &a));
        assert_ok(cek_npy_read(path, 0, &b));
        ck_assert_uint_eq(a.type, b.type);
        ck_assert_int_eq(a.rank, b.rank);
        ck_assert_mem_eq(a.shape, b.shape, sizeof a.shape);
        ck_assert_int_eq(a.count, b.count);
        if (a.count > 0)
            ck_assert_mem_eq(a.data, b.data, (size_t)a.count * cek_dtype_bytes(a.type));
        free(b.data);
    }
}
END_TEST

START_TEST(an_array_that_contradicts_itself_is_not_written)
{
    cek_npy a = { .size = sizeof a, .type = CEK_F32, .rank = 2, .shape = { 2, 3 }, .count = 5, .data = (void *)floats };

    assert_fails(cek_npy_write(scratch_path("d.npy"), &a), CEK_INVALID, "5 elements", "the shape has 6");
    a.count = 6, a.type = CEK_F64;
    assert_fails(cek_npy_write(scratch_path("d.npy"), &a), CEK_INVALID, "cek_npy_write", "f64");
    a.type = CEK_F32, a.rank = 9;
    assert_fails(cek_npy_write(scratch_path("d.npy"), &a), CEK_INVALID, "cek_npy_write", "9 axes");
    ck_assert_int_eq(scratch_count(), 0);
}
END_TEST

static uint32_t state = 1;

static uint32_t below(size_t limit)
{
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(state >> 8) * limit >> 24);
}

/* Elements may be anything; it is the header that is changed. */
START_TEST(a_result_without_room_for_its_elements_is_refused)
{
    const bytes b = file_of(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", floats, 24);
    cek_npy a = { .size = offsetof(cek_npy, data) };

    assert_fails(cek_npy_read(written(&b), 0, &a), CEK_INVALID, "cek_npy_read", "no room");
}
END_TEST

START_TEST(changed_bytes_lead_nowhere)
{
    const bytes original = file_of(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", floats, 24);

    for (int i = 0; i < 1000; i++) {
        bytes b = original;
        cek_npy a = { .size = sizeof a };
        cek_status st;

        for (uint32_t k = 0, n = 1 + below(3); k < n; k++) {
            const size_t at = below(b.size - 24);

            b.at[at] = (uint8_t)(below(2) ? below(256) : b.at[at] ^ 1U << below(8));
        }
        st = cek_npy_read(written(&b), 0, &a);
        ck_assert_msg(st == CEK_OK || st == CEK_BAD_INPUT, "%s", cek_error_text());
        if (st == CEK_OK)
            ck_assert_int_eq(a.count, a.type == CEK_U8 ? 24 : 6);
        free(a.data);
    }
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    const bytes b = file_of(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", floats, 24);
    const char *path = written(&b);
    cek_status st = CEK_OUT_OF_MEMORY;
    long n = 1;

    for (; st != CEK_OK; n++) {
        cek_npy a = { .size = sizeof a };

        cek__fault_set(CEK__FAULT_ALLOC, n);
        st = cek_npy_read(path, 0, &a);
        ck_assert_msg(st == CEK_OK || st == CEK_OUT_OF_MEMORY, "%s", cek_error_text());
        free(a.data);
    }
    cek__fault_set(CEK__FAULT_ALLOC, 0);
    ck_assert_int_gt(n, 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("npy");
    TCase *all = tcase_create("all");

    tcase_add_checked_fixture(all, scratch_make, scratch_remove);
    tcase_add_test(all, every_version_and_type_is_read);
    tcase_add_test(all, either_order_of_bytes_and_of_axes_is_read);
    tcase_add_test(all, what_is_wrong_is_named_with_the_file);
    tcase_add_test(all, a_file_that_is_cut_short_is_refused);
    tcase_add_test(all, other_versions_and_other_files_are_refused);
    tcase_add_test(all, what_is_written_is_what_numpy_writes);
    tcase_add_test(all, what_is_written_is_read_again);
    tcase_add_test(all, an_array_that_contradicts_itself_is_not_written);
    tcase_add_test(all, a_result_without_room_for_its_elements_is_refused);
    tcase_add_test(all, changed_bytes_lead_nowhere);
    tcase_add_test(all, every_allocation_may_fail);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
