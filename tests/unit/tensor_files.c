/* tensor_files.c - tests of tensors in .npy and .npz files: every type, order and version, hostile files, failing
 * disks. */
#include <dlfcn.h>
#include <zlib.h>

#include "cekernels/nn.h"
#include "core/base/fault.h"
#include "tensors.h"

typedef struct bytes {
    uint8_t at[4096];
    size_t size;
} bytes;

static void put(bytes *b, const void *data, size_t size)
{
    ck_assert_uint_le(b->size + size, sizeof b->at);
    if (size > 0)
        memcpy(b->at + b->size, data, size);
    b->size += size;
}

static void put_number(bytes *b, uint64_t value, int size)
{
    for (int i = 0; i < size; i++)
        put(b, &(uint8_t){ i < 8 ? (uint8_t)(value >> 8 * i) : 0 }, 1);
}

static bytes npy_of(int version, const char *descr, const char *rest, const void *values, size_t size)
{
    bytes b = { .size = 0 };
    char dictionary[256];

    snprintf(dictionary, sizeof dictionary, "{'descr': '%s', %s}", descr, rest);
    put(&b, "\x93NUMPY", 6);
    put_number(&b, (uint64_t)version, 2);
    put_number(&b, strlen(dictionary), version == 1 ? 2 : 4);
    put(&b, dictionary, strlen(dictionary));
    put(&b, values, size);
    return b;
}

static const char *written(const bytes *b)
{
    return scratch_write("a.npy", b->at, b->size);
}

#define C_ORDER "'fortran_order': False, 'shape': "
#define FORTRAN "'fortran_order': True, 'shape': "

START_TEST(types_orders_and_versions_of_numpy_become_tensors)
{
    static const struct {
        const char *descr, *rest;
        uint8_t values[16];
        size_t size;
        int version;
        cek_dtype type;
        double first, last;
    } files[] = {
        { "<f4", C_ORDER "(1,), ", { 0, 0, 0x80, 0x3f }, 4, 1, CEK_F32, 1, 1 },
        { ">f4", C_ORDER "(1,), ", { 0x3f, 0x80 }, 4, 2, CEK_F32, 1, 1 },
        { "<f8", C_ORDER "(1,), ", { 0, 0, 0, 0, 0, 0, 0xf0, 0xbf }, 8, 3, CEK_F64, -1, -1 },
        { ">f8", C_ORDER "(), ", { 0xbf, 0xf0 }, 8, 1, CEK_F64, -1, -1 },
        { "<f2", C_ORDER "(2,), ", { 0, 0x3c, 0, 0xc0 }, 4, 1, CEK_F16, 1, -2 },
        { ">i4", C_ORDER "(2,), ", { 0, 0, 1, 0, 0xff, 0xff, 0xff, 0xfe }, 8, 1, CEK_I32, 256, -2 },
        { "|u1", C_ORDER "(2,), ", { 0, 255 }, 2, 1, CEK_U8, 0, 255 },
        { "|b1", C_ORDER "(2,), ", { 0, 2 }, 2, 1, CEK_U8, 0, 1 },
        { "|i1", C_ORDER "(2,), ", { 0x80, 0x7f }, 2, 1, CEK_I32, -128, 127 },
        { "<i2", C_ORDER "(2,), ", { 0, 0x80, 1, 0 }, 4, 1, CEK_I32, -32768, 1 },
        { ">u2", C_ORDER "(2,), ", { 0x80, 0, 0, 1 }, 4, 1, CEK_I32, 32768, 1 },
        { "<u4", C_ORDER "(1,), ", { 0xff, 0xff, 0xff, 0x7f }, 4, 1, CEK_I32, 2147483647, 2147483647 },
        { "<i8",
          C_ORDER "(1,), ",
          { 0, 0, 0, 0x80, 0xff, 0xff, 0xff, 0xff },
          8,
          1,
          CEK_I32,
          -2147483648.0,
          -2147483648.0 },
        { ">u8", C_ORDER "(1,), ", { 0, 0, 0, 0, 0, 0, 0, 9 }, 8, 1, CEK_I32, 9, 9 },
    };

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const bytes b = npy_of(files[i].version, files[i].descr, files[i].rest, files[i].values, files[i].size);
        cek_tensor *t, *one;
        double value;

        assert_ok(cek_tensor_load(reference(), written(&b), &t));
        ck_assert_uint_eq(cek_tensor_type(t), files[i].type);
        for (int end = 0; end < 2; end++) {
            assert_ok(cek_tensor_reshape(t, 1, (int64_t[]){ -1 }, &one));
            cek_tensor_free(t);
            t = one;
            assert_ok(cek_tensor_select(t, 0, -end, &one));
            assert_ok(cek_tensor_item(one, &value));
            ck_assert_msg(value == (end ? files[i].last : files[i].first), "%s: %g", files[i].descr, value);
            cek_tensor_free(one);
        }
        cek_tensor_free(t);
    }
}
END_TEST

START_TEST(fortrans_order_is_turned)
{
    static const int32_t values[6] = { 1, 2, 3, 4, 5, 6 };
    const bytes b = npy_of(1, "<i4", FORTRAN "(2, 3), ", values, sizeof values);

    FOR_EACH_DEVICE(device)
    {
        int32_t got[6];
        cek_tensor *t;

        assert_ok(cek_tensor_load(device, written(&b), &t));
        ck_assert(cek_tensor_shape(t)[0] == 2 && cek_tensor_shape(t)[1] == 3);
        assert_ok(cek_tensor_read(t, got, sizeof got));
        ck_assert_mem_eq(got, ((int32_t[]){ 1, 3, 5, 2, 4, 6 }), sizeof got);
        cek_tensor_free(t);
    }
}
END_TEST

START_TEST(what_is_wrong_is_named_with_the_file)
{
    static const uint8_t values[16] = { 0, 0, 0, 0x80, 0, 0, 0, 0, 1 };
    static const struct {
        const char *descr, *rest;
        size_t size;
        const char *cause;
    } files[] = {
        { "<c8", C_ORDER "(1,), ", 8, "type '<c8'" },
        { "|V2", C_ORDER "(1,), ", 2, "type '|V2'" },
        { "<U3", C_ORDER "(1,), ", 12, "type '<U3'" },
        { "|O", C_ORDER "(1,), ", 8, "type '|O'" },
        { "|f4", C_ORDER "(1,), ", 4, "type '|f4'" },
        { "", C_ORDER "(1,), ", 4, "type ''" },
        { "<f4", C_ORDER "(0,), ", 0, "no element" },
        { "<f4", C_ORDER "(2,), ", 4, "promises 8 bytes of elements, there are 4" },
        { "<f4", C_ORDER "(1,), ", 8, "promises 4 bytes" },
        { "<f4", C_ORDER "(4611686018427387904, 4), ", 8, "more elements" },
        { "<u4", C_ORDER "(1,), ", 4, "element 0 is 2147483648" },
        { "<i8", C_ORDER "(1,), ", 8, "element 0 is 2147483648" },
        { ">i8", C_ORDER "(1,), ", 8, "element 0 is 2147483648" },
    };
    cek_tensor *t;

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        bytes b = npy_of(1, files[i].descr, files[i].rest, values, files[i].size);

        if (files[i].descr[0] == '>' && files[i].size == 8)
            memcpy(b.at + b.size - 8, (uint8_t[]){ 0, 0, 0, 0, 0x80, 0, 0, 0 }, 8);
        assert_fails(cek_tensor_load(reference(), written(&b), &t), CEK_BAD_INPUT, "a.npy", files[i].cause);
        ck_assert_ptr_null(t);
    }
    assert_fails(cek_tensor_load(reference(), scratch_path("none.npy"), &t), CEK_IO, "none.npy", "No such file");
    ck_assert_int_eq(symlink("nowhere", scratch_path("link.npy")), 0);
    assert_fails(cek_tensor_load(reference(), scratch_path("link.npy"), &t), CEK_IO, "link.npy", "No such file");
    ck_assert_ptr_null(strstr(cek_error_text(), "did you mean")); /* link.npy, say */
    assert_fails(cek_tensor_load(reference(), scratch_path("lnik.npy"), &t), CEK_IO, "lnik.npy", "mean 'link.npy'");
}
END_TEST

START_TEST(what_is_saved_is_loaded)
{
    static const cek_dtype types[] = { CEK_F32, CEK_F64, CEK_F16, CEK_I32, CEK_U8 };
    const char *path = scratch_path("b.npy");
    cek_tensor *x, *view, *y;
    uint8_t a[256], b[256];

    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (!stores(reference(), types[i]))
            continue;
        assert_ok(cek_tensor_arange(reference(), types[i], 0, 24, 1, &x));
        assert_ok(cek_tensor_reshape(x, 3, (int64_t[]){ 2, 3, 4 }, &y));
        assert_ok(cek_tensor_transpose(y, 0, 2, &view));
        assert_ok(cek_tensor_save(view, path));
        cek_tensor_free(x);
        cek_tensor_free(y);
        assert_ok(cek_tensor_load(reference(), path, &y));
        ck_assert(cek_tensor_type(y) == types[i] && cek_tensor_rank(y) == 3 && cek_tensor_shape(y)[0] == 4);
        assert_ok(cek_tensor_read(view, a, cek_tensor_bytes(view)));
        assert_ok(cek_tensor_read(y, b, cek_tensor_bytes(y)));
        ck_assert_mem_eq(a, b, cek_tensor_bytes(y));
        cek_tensor_free(view);
        cek_tensor_free(y);
    }
    if (stores(reference(), CEK_BF16)) {
        assert_ok(cek_tensor_full(reference(), CEK_BF16, 0, NULL, 1, &x));
        assert_fails(cek_tensor_save(x, path), CEK_UNSUPPORTED, "cek_tensor_save", "bf16");
        cek_tensor_free(x);
    }
}
END_TEST

/* ---- archives ---- */

/* One entry, which is well formed or, at `flaw`, is not. */
enum { NO_FLAW, METHOD, CHECKSUM, STREAM, SIZE, HUGE_SIZE, ENCRYPTED, NAMES, NO_NAME, FLAWS };
static bytes zip_of(const bytes *npy, bool deflated, int flaw)
{
    bytes b = { .size = 0 };
    uint8_t packed[2048];
    z_stream z = {
        .next_in = (Bytef *)npy->at, .avail_in = (uInt)npy->size, .next_out = packed, .avail_out = sizeof packed
    };
    size_t size = npy->size, start;
    const uint8_t *data = npy->at;
    uint32_t checksum = (uint32_t)crc32(0, npy->at, (uInt)npy->size) + (flaw == CHECKSUM);

    if (deflated) {
        ck_assert_int_eq(deflateInit2(&z, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
        ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
        size = z.total_out;
        deflateEnd(&z);
        data = packed;
        packed[size / 2] ^= flaw == STREAM ? 0xff : 0;
    }
    for (int listed = 0; listed < 2; listed++) {
        const uint64_t whole = npy->size + (flaw == SIZE) + (flaw == HUGE_SIZE ? (uint64_t)1 << 31 : 0);

        start = b.size;
        put_number(&b, listed ? 0x02014b50 : 0x04034b50, 4);
        put_number(&b, 20, listed ? 4 : 2);
        put_number(&b, (flaw == ENCRYPTED) | (deflated ? 2 : 0), 2); /* deflated as well as can be: zip -9 */
        put_number(&b, flaw == METHOD ? 12 : deflated ? 8 : 0, 2);
        put_number(&b, 0, 4);
        put_number(&b, checksum, 4);
        put_number(&b, size, 4);
        put_number(&b, whole, 4);
        put_number(&b, 5, 2);
        put_number(&b, 0, listed ? 16 : 2);
        if (listed)
            b.size -= 16, put_number(&b, 0, 12), put_number(&b, 0, 4); /* no attributes, at byte 0 */
        put(&b, flaw == NAMES && listed ? "y.npy" : flaw == NO_NAME ? "\0.npy" : "x.npy", 5);
        if (!listed)
            put(&b, data, size);
    }
    const size_t directory = b.size - start;
    put_number(&b, 0x06054b50, 4);
    put_number(&b, 0, 4);
    put_number(&b, 1, 2);
    put_number(&b, 1, 2);
    put_number(&b, directory, 4);
    put_number(&b, start, 4);
    put_number(&b, 0, 2);
    return b;
}

START_TEST(archives_that_are_stored_or_deflated_are_read)
{
    static const float values[64] = { 1, 2, 3 };
    const bytes npy = npy_of(1, "<f4", C_ORDER "(4, 16), ", values, sizeof values);

    for (int deflated = 0; deflated < 2; deflated++) {
        const bytes b = zip_of(&npy, deflated, NO_FLAW);
        cek_npz *npz;
        cek_tensor *t;
        float got[64];

        assert_ok(cek_npz_open(scratch_write("a.npz", b.at, b.size), &npz));
        ck_assert_uint_eq(cek_npz_count(npz), 1);
        ck_assert_str_eq(cek_npz_name(npz, 0), "x");
        ck_assert_ptr_null(cek_npz_name(npz, 1));
        assert_ok(cek_npz_tensor(npz, "x", reference(), &t));
        assert_ok(cek_tensor_read(t, got, sizeof got));
        ck_assert_mem_eq(got, values, sizeof got);
        cek_tensor_free(t);
        assert_fails(cek_npz_tensor(npz, "z", reference(), &t), CEK_NOT_FOUND, "no array 'z'", "first is 'x'");
        cek_npz_close(npz);
    }
}
END_TEST

/* zlib has no memory for what it begins with, or for its window. */
static enum { ZLIB_WORKS, ZLIB_BEGINS, ZLIB_INFLATES } zlib_fails;

/* In the place of zlib's. */
__attribute__((visibility("default"))) int inflateInit2_(z_streamp z, int bits, const char *version, int size)
{
    static int (*real)(z_streamp, int, const char *, int);

    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "inflateInit2_");
    return zlib_fails == ZLIB_BEGINS ? Z_MEM_ERROR : real(z, bits, version, size);
}

__attribute__((visibility("default"))) int inflate(z_streamp z, int flush)
{
    static int (*real)(z_streamp, int);

    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "inflate");
    return zlib_fails == ZLIB_INFLATES ? Z_MEM_ERROR : real(z, flush);
}

START_TEST(memory_that_is_short_while_an_archive_is_decompressed_is_told_as_such)
{
    static const float values[64] = { 1, 2, 3 };
    const bytes npy = npy_of(1, "<f4", C_ORDER "(4, 16), ", values, sizeof values), b = zip_of(&npy, true, NO_FLAW);
    cek_npz *npz;
    cek_tensor *t;

    assert_ok(cek_npz_open(scratch_write("a.npz", b.at, b.size), &npz));
    for (zlib_fails = ZLIB_BEGINS; zlib_fails <= ZLIB_INFLATES; zlib_fails++) {
        assert_fails(cek_npz_tensor(npz, "x", reference(), &t), CEK_OUT_OF_MEMORY, "a.npz", "no memory");
        ck_assert_ptr_null(t);
    }
    zlib_fails = ZLIB_WORKS;
    assert_ok(cek_npz_tensor(npz, "x", reference(), &t));
    cek_tensor_free(t);
    cek_npz_close(npz);
}
END_TEST

START_TEST(damaged_archives_are_refused_in_one_line)
{
    static const char *const causes[FLAWS] = { [METHOD] = "another way",
                                               [CHECKSUM] = "damaged",
                                               [STREAM] = "damaged",
                                               [SIZE] = "damaged",
                                               [HUGE_SIZE] = "larger than it can be",
                                               [ENCRYPTED] = "encrypted",
                                               [NAMES] = "do not agree",
                                               [NO_NAME] = "a byte of 0" };
    static const float values[64] = { 1, 2, 3 };
    const bytes npy = npy_of(1, "<f4", C_ORDER "(4, 16), ", values, sizeof values);

    for (int flaw = NO_FLAW + 1; flaw < FLAWS; flaw++) {
        const bytes b = zip_of(&npy, true, flaw);
        cek_npz *npz = NULL;
        cek_tensor *t = NULL;
        cek_status st = cek_npz_open(scratch_write("a.npz", b.at, b.size), &npz);

        if (st == CEK_OK)
            st = cek_npz_tensor(npz, "x", reference(), &t);
        ck_assert_msg(st == CEK_BAD_INPUT && strstr(cek_error_text(), causes[flaw]) != NULL &&
                          strstr(cek_error_text(), "a.npz") != NULL,
                      "flaw %d: %s: %s", flaw, cek_status_name(st), cek_error_text());
        ck_assert_ptr_null(t);
        cek_npz_close(npz);
    }
}
END_TEST

START_TEST(no_mutation_of_an_archive_does_harm)
{
    static const float values[64] = { 1, 2, 3 };
    const bytes npy = npy_of(1, "<f4", C_ORDER "(4, 16), ", values, sizeof values);
    const bytes good = zip_of(&npy, true, NO_FLAW);

    for (int n = 0; n < 1500; n++) {
        bytes b = good;
        cek_npz *npz;
        cek_tensor *t;

        for (int k = 0; k <= n % 3; k++)
            b.at[cek__random_u32(3, 1, (uint64_t)(3 * n + k)) % b.size] =
                (uint8_t)cek__random_u32(3, 2, (uint64_t)(3 * n + k));
        b.size -= n % 7 == 0 ? cek__random_u32(3, 3, (uint64_t)n) % b.size : 0;
        if (cek_npz_open(scratch_write("a.npz", b.at, b.size), &npz) != CEK_OK) {
            ck_assert_ptr_nonnull(strstr(cek_error_text(), "a.npz"));
            continue;
        }
        for (size_t i = 0; i < cek_npz_count(npz); i++)
            if (cek_npz_tensor(npz, cek_npz_name(npz, i), reference(), &t) == CEK_OK)
                cek_tensor_free(t);
        cek_npz_close(npz);
    }
}
END_TEST

START_TEST(an_archive_that_is_saved_is_opened)
{
    const char *path = scratch_path("c.npz"), *names[] = { "weights", "labels", "ä/ö" };
    cek_tensor *tensors[3];
    size_t sizes[2];
    cek_device *device = reference();

    assert_ok(cek_tensor_full(reference(), CEK_F32, 2, (int64_t[]){ 50, 60 }, 0.5, &tensors[0]));
    assert_ok(cek_tensor_arange(reference(), CEK_I32, 0, 10, 1, &tensors[1]));
    assert_ok(cek_tensor_full(reference(), CEK_U8, 0, NULL, 7, &tensors[2]));
    for (int compress = 0; compress < 2; compress++) {
        cek_npz *npz;
        struct stat info;

        assert_ok(cek_npz_save(path, 3, names, (const cek_tensor *const *)tensors, compress));
        ck_assert_int_eq(stat(path, &info), 0);
        sizes[compress] = (size_t)info.st_size;
        assert_ok(cek_npz_open(path, &npz));
        ck_assert_uint_eq(cek_npz_count(npz), 3);
        for (int i = 0; i < 3; i++) {
            cek_tensor *t;
            uint8_t a[12000], b[12000];

            assert_ok(cek_npz_tensor(npz, names[i], reference(), &t));
            ck_assert_uint_eq(cek_tensor_bytes(t), cek_tensor_bytes(tensors[i]));
            assert_ok(cek_tensor_read(t, a, cek_tensor_bytes(t)));
            assert_ok(cek_tensor_read(tensors[i], b, cek_tensor_bytes(t)));
            ck_assert_mem_eq(a, b, cek_tensor_bytes(t));
            cek_tensor_free(t);
        }
        cek_npz_close(npz);
    }
    ck_assert_uint_lt(sizes[1], sizes[0] / 5);
    {
        cek_npz *none;
        cek_tensor *t;

        assert_ok(cek_npz_save(scratch_path("none.npz"), 0, NULL, NULL, false));
        assert_ok(cek_npz_open(scratch_path("none.npz"), &none));
        assert_fails(cek_npz_tensor(none, "x", device, &t), CEK_NOT_FOUND, "no array 'x'", "nor any other");
        cek_npz_close(none);
    }
    names[2] = "labels";
    assert_fails(cek_npz_save(path, 3, names, (const cek_tensor *const *)tensors, false), CEK_INVALID, "cek_npz_save",
                 "two tensors are called 'labels'");
    names[2] = "";
    assert_fails(cek_npz_save(path, 3, names, (const cek_tensor *const *)tensors, false), CEK_INVALID, "cek_npz_save",
                 "names[2] has 0 bytes");
    names[2] = NULL;
    assert_fails(cek_npz_save(path, 3, names, (const cek_tensor *const *)tensors, false), CEK_INVALID, "cek_npz_save",
                 "names[2] is NULL");
    names[2] = "x";
    for (int kind = 0; kind < CEK__FAULT_COUNT; kind++)
        for (long nth = 1;; nth++) { /* whatever fails, the old file stays whole */
            cek_npz *npz;
            cek_tensor *t = NULL;
            cek_status st;
            bool pending;

            cek__fault_set(kind, nth);
            st = cek_npz_save(path, 3, names, (const cek_tensor *const *)tensors, true);
            if (st == CEK_OK)
                st = cek_npz_open(path, &npz);
            if (st == CEK_OK) {
                st = cek_npz_tensor(npz, "weights", device, &t);
                cek_npz_close(npz);
            }
            pending = cek__fault_pending(kind);
            cek__fault_set(kind, 0);
            ck_assert(st == CEK_OK || (!pending && (st == CEK_OUT_OF_MEMORY || st == CEK_IO)));
            cek_tensor_free(t);
            assert_ok(cek_npz_open(path, &npz));
            cek_npz_close(npz);
            if (pending)
                break;
        }
    for (int i = 0; i < 3; i++)
        cek_tensor_free(tensors[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tensor_files");
    TCase *tests = tcase_create("files");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, types_orders_and_versions_of_numpy_become_tensors);
    tcase_add_test(tests, fortrans_order_is_turned);
    tcase_add_test(tests, what_is_wrong_is_named_with_the_file);
    tcase_add_test(tests, what_is_saved_is_loaded);
    tcase_add_test(tests, archives_that_are_stored_or_deflated_are_read);
    tcase_add_test(tests, memory_that_is_short_while_an_archive_is_decompressed_is_told_as_such);
    tcase_add_test(tests, damaged_archives_are_refused_in_one_line);
    tcase_add_test(tests, no_mutation_of_an_archive_does_harm);
    tcase_add_test(tests, an_archive_that_is_saved_is_opened);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
