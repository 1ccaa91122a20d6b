/* torch_file.c - tests of nn/formats/torch_file: state dicts as torch.save writes them, lies in archive
 * and pickle, harm.
 *
 * Files are made by torch_files.h; tests/cli/torch.sh reads what torch itself wrote. */
#include <math.h>

#include "cekernels/nn.h"
#include "core/base/alloc.h"
#include "core/base/fault.h"
#include "core/base/random.h"
#include "nn/formats/state_file.h"
#include "scratch.h"
#include "torch_files.h"

/* What the storages hold: float i is i / 4 - 1. */
static float floats[24];
static double doubles[3] = { 1e-300, -2, 3 };
static uint16_t halves[2] = { 0x3c00, 0xc100 }; /* 1, -2.5 */
static uint16_t brains[2] = { 0x3f80, 0xc020 }; /* 1, -2.5 */
static int64_t batches[1] = { 41 };

#define FLOATS "torch\nFloatStorage\n"

static const made_tensor usual[] = {
    { .name = "0.weight", FLOATS, "0", 24, 0, 2, { 3, 2 }, { 2, 1 }, .parameter = true },
    { .name = "0.bias", FLOATS, "0", 24, 6, 1, { 3 }, { 1 }, .parameter = true },
    { .name = "turned", FLOATS, "0", 24, 1, 2, { 2, 3 }, { 1, 2 } },
    { .name = "spread", FLOATS, "0", 24, 23, 2, { 2, 2 }, { 0, 0 } },
    { .name = "scalar", FLOATS, "0", 24, 5, 0, { 0 }, { 0 } },
    { .name = "empty", FLOATS, "0", 24, 24, 2, { 0, 4 }, { 4, 1 } },
    { .name = "double", "torch\nDoubleStorage\n", "1", 3, 0, 1, { 3 }, { 1 } },
    { .name = "half", "torch\nHalfStorage\n", "2", 2, 0, 1, { 2 }, { 1 } },
    { .name = "brain", "torch\nBFloat16Storage\n", "3", 2, 0, 1, { 2 }, { 1 } },
    { .name = "1.num_batches_tracked", "torch\nLongStorage\n", "4", 1, 0, 0, { 0 }, { 0 } },
};
enum { USUAL = sizeof usual / sizeof *usual };

static void floats_fill(void)
{
    for (int i = 0; i < 24; i++)
        floats[i] = (float)i / 4 - 1;
}

/* An OrderedDict of tensors, with the attribute that torch gives it. */
static void op_state_dict(made *m, const made_tensor *tensors, int count)
{
    op_ordered_dict(m);
    op(m, '(');
    for (int i = 0; i < count; i++)
        op_tensor(m, &tensors[i]);
    op(m, 'u');
    op(m, '}');
    op_text(m, "_metadata");
    op_ordered_dict(m);
    op(m, 's');
    op(m, 'b');
}

static void pickle_begin(made *m)
{
    *m = (made){ 0 };
    op(m, 0x80);
    op(m, 2);
}

static void zip_fill(made_zip *z, const made *pickle, bool wide)
{
    floats_fill();
    z->out = (made){ 0 };
    z->count = 0;
    zip_add(z, "net/data.pkl", pickle->bytes, pickle->size);
    zip_add(z, "net/byteorder", "little", 6);
    zip_add(z, "net/data/0", floats, sizeof floats);
    zip_add(z, "net/data/1", doubles, sizeof doubles);
    zip_add(z, "net/data/2", halves, sizeof halves);
    zip_add(z, "net/data/3", brains, sizeof brains);
    zip_add(z, "net/data/4", batches, sizeof batches);
    zip_add(z, "net/version", "3\n", 2);
    zip_end(z, wide);
}

static const char *written(const made_zip *z)
{
    return scratch_write("net.pt", z->out.bytes, z->out.size);
}

static void usual_make(made_zip *z, bool wide)
{
    made pickle;

    pickle_begin(&pickle);
    op_state_dict(&pickle, usual, USUAL);
    op(&pickle, '.');
    zip_fill(z, &pickle, wide);
}

/* ---- what is right ---- */

static void values_are(const cek__st_file *file, const char *name, int count, const double *expected)
{
    const cek__st_tensor *t = cek__st_find(file, name);
    double wide[8];
    float narrow[8];

    ck_assert_msg(t != NULL, "no tensor %s", name);
    ck_assert_uint_eq(t->count, (uint64_t)count);
    assert_ok(cek__st_to_f64(t, wide));
    assert_ok(cek__st_to_f32(t, narrow));
    for (int i = 0; i < count; i++) {
        ck_assert_msg(wide[i] == expected[i], "%s[%d]: %g, not %g", name, i, wide[i], expected[i]);
        ck_assert(narrow[i] == (float)expected[i]);
    }
}

/* All of the usual file, whatever was done to it. */
static void usual_is_whole(const cek__st_file *file)
{
    ck_assert_uint_eq(file->count, USUAL);
    values_are(file, "0.weight", 6, (double[]){ -1, -.75, -.5, -.25, 0, .25 });
    values_are(file, "0.bias", 3, (double[]){ .5, .75, 1 });
    values_are(file, "turned", 6, (double[]){ -.75, -.25, .25, -.5, 0, .5 });
    values_are(file, "spread", 4, (double[]){ 4.75, 4.75, 4.75, 4.75 });
    values_are(file, "scalar", 1, (double[]){ .25 });
    values_are(file, "empty", 0, NULL);
    values_are(file, "double", 3, doubles);
    values_are(file, "half", 2, (double[]){ 1, -2.5 });
    values_are(file, "brain", 2, (double[]){ 1, -2.5 });
    ck_assert_mem_eq(cek__st_find(file, "1.num_batches_tracked")->data, batches, sizeof batches);
}

START_TEST(a_state_dict_is_read_value_by_value)
{
    static const int ranks[] = { 2, 1, 2, 2, 0, 2 };
    made_zip z;
    cek__st_file *file;

    usual_make(&z, _i == 1);
    assert_ok(cek__st_read(written(&z), &file));
    usual_is_whole(file);
    for (int i = 0; i < 6; i++)
        ck_assert_uint_eq(cek__st_find(file, usual[i].name)->rank, (uint32_t)ranks[i]);
    ck_assert(!cek__st_find(file, "0.weight")->strided && cek__st_find(file, "turned")->strided);
    cek__st_free(file);
}
END_TEST

static char said[512];

static void hear(void *user, int level, const char *message)
{
    (void)user;
    (void)level;
    snprintf(said, sizeof said, "%s", message);
}

/* {"epoch": 3, "lr": 0.1, "model": state dict, "optimizer": {"state": {0: {"step": tensor}}, "param_groups": [...]}} */
static void checkpoint_make(made_zip *z, const char *other)
{
    made p;

    pickle_begin(&p);
    op(&p, '}');
    op_put(&p);
    op(&p, '(');
    op_text(&p, "epoch");
    op_integer(&p, 3);
    op_text(&p, "lr");
    op(&p, 'G');
    put(&p, "\x3f\xb9\x99\x99\x99\x99\x99\x9a", 8);
    op_text(&p, "model");
    op_state_dict(&p, usual, 2);
    op_text(&p, "optimizer");
    op(&p, '}');
    op(&p, '(');
    op_text(&p, "state");
    op(&p, '}');
    op_integer(&p, 0);
    op(&p, '}');
    op_tensor(&p, &usual[4]);
    op(&p, 's');
    op(&p, 's');
    op_text(&p, "param_groups");
    op(&p, ']');
    op_put(&p);
    op(&p, '(');
    op_integer(&p, 1);
    op(&p, 'N');
    op(&p, 'e');
    op_integer(&p, -7);
    op(&p, 'a');
    op(&p, 'u');
    if (other != NULL) {
        op_text(&p, other);
        op_state_dict(&p, usual, 1);
    }
    op(&p, 'u');
    op(&p, '.');
    zip_fill(z, &p, true);
}

START_TEST(a_checkpoint_is_its_one_dict_of_tensors)
{
    made_zip z;
    cek__st_file *file;

    checkpoint_make(&z, NULL);
    cek_log_set(hear, NULL, CEK_LOG_INFO);
    assert_ok(cek__st_read(written(&z), &file));
    cek_log_set(NULL, NULL, CEK_LOG_INFO);
    ck_assert_msg(strstr(said, "'model'") != NULL, "'%s' does not say which", said);
    ck_assert_uint_eq(file->count, 2);
    values_are(file, "0.bias", 3, (double[]){ .5, .75, 1 });
    cek__st_free(file);
    checkpoint_make(&z, "ema");
    assert_fails(cek__st_read(written(&z), &file), CEK_BAD_INPUT, "net.pt", "both 'model' and 'ema' hold tensors");
}
END_TEST

START_TEST(a_model_takes_it_and_passes_over_counted_batches_alone)
{
    made_tensor tensors[3] = { usual[0], usual[1], usual[9] };
    made_zip z;
    made p;
    cek_model *model;
    cek_parameter weight;

    assert_ok(cek_model_parse("linear:3", 1, (int64_t[]){ 2 }, &model));
    for (int wrong = 0; wrong < 3; wrong++) {
        if (wrong == 1)
            tensors[2].name = "1.num_batches";
        if (wrong == 2)
            tensors[2] = (made_tensor){ .name = "1.num_batches_tracked", FLOATS, "0", 24, 0, 0, { 0 }, { 0 } };
        pickle_begin(&p);
        op_state_dict(&p, tensors, 3);
        op(&p, '.');
        zip_fill(&z, &p, false);
        if (wrong > 0) {
            assert_fails(cek_model_load(model, written(&z)), CEK_BAD_INPUT, "\"1.num_batches", "none of the model's");
            continue;
        }
        assert_ok(cek_model_load(model, written(&z)));
        assert_ok(cek_model_parameter(model, 0, &weight));
        for (int i = 0; i < 6; i++)
            ck_assert(weight.data[i] == floats[i]);
    }
    cek_model_free(model);
}
END_TEST

/* ---- lies ---- */

static const struct {
    const char *cause;
    made_tensor tensor;
} lies[] = {
    { "does not lie within", { .name = "t", FLOATS, "0", 24, 0, 1, { 25 }, { 1 } } },
    { "does not lie within", { .name = "t", FLOATS, "0", 24, 23, 1, { 2 }, { 1 } } },
    { "does not lie within", { .name = "t", FLOATS, "0", 24, 0, 2, { 2, 2 }, { 23, 1 } } },
    { "does not lie within", { .name = "t", FLOATS, "0", 24, 25, 1, { 0 }, { 1 } } },
    { "does not lie within", { .name = "t", FLOATS, "0", 24, INT64_MAX, 0, { 0 }, { 0 } } },
    { "shape is impossible", { .name = "t", FLOATS, "0", 24, 0, 2, { INT64_MAX, INT64_MAX }, { 0, 0 } } },
    { "strides are impossible", { .name = "t", FLOATS, "0", 24, 0, 1, { 5 }, { INT64_MAX } } },
    { "offset, shape, strides", { .name = "t", FLOATS, "0", 24, 0, 1, { 5 }, { -1 } } },
    { "offset, shape, strides", { .name = "t", FLOATS, "0", 24, 0, 1, { -5 }, { 1 } } },
    { "offset, shape, strides", { .name = "t", FLOATS, "0", 24, -1, 1, { 1 }, { 1 } } },
    { "rank is more than 8", { .name = "t", FLOATS, "0", 24, 0, 9, { 1, 1, 1, 1, 1, 1, 1, 1, 1 }, { 0 } } },
    { "another size", { .name = "t", FLOATS, "0", 23, 0, 1, { 1 }, { 1 } } },
    { "another size", { .name = "t", FLOATS, "0", -24, 0, 1, { 1 }, { 1 } } },
    { "another size", { .name = "t", FLOATS, "0", INT64_MAX, 0, 1, { 1 }, { 1 } } },
    { "another size", { .name = "t", FLOATS, "1", 24, 0, 1, { 1 }, { 1 } } },
    { "lacks its storage", { .name = "t", FLOATS, "7", 24, 0, 1, { 1 }, { 1 } } },
    { "lacks its storage", { .name = "t", FLOATS, "../version", 24, 0, 1, { 1 }, { 1 } } },
    { "described in an unknown way", { .name = "t", "collections\nOrderedDict\n", "0", 24, 0, 1, { 1 }, { 1 } } },
    { "wants torch.CharStorage", { .name = "t", "torch\nCharStorage\n", "0", 24, 0, 1, { 1 }, { 1 } } },
    { "wants os.system", { .name = "t", "os\nsystem\n", "0", 24, 0, 1, { 1 }, { 1 } } },
};

START_TEST(a_tensor_that_lies_is_refused)
{
    made_zip z;
    made p;
    cek__st_file *file;

    pickle_begin(&p);
    op_state_dict(&p, &lies[_i].tensor, 1);
    op(&p, '.');
    zip_fill(&z, &p, false);
    assert_fails(cek__st_read(written(&z), &file), CEK_BAD_INPUT, "net.pt", lies[_i].cause);
    ck_assert_ptr_null(file);
}
END_TEST

static const struct {
    const char *cause, *code;
    size_t size;
} pickles[] = {
#define PICKLE(cause, code) { cause, code, sizeof code - 1 },
    /* clang-format off */
    PICKLE("ends within it", "")
    PICKLE("ends within it", "\x80\2")
    PICKLE("protocol 4", "\x80\4.")
    PICKLE("holds an integer", "\x80\2K\1.")
    PICKLE("a state dict", "\x80\2(K\1K\2t.")
    PICKLE("neither it nor a dict within it", "\x80\2}(X\1\0\0\0aK\1u.")
    PICKLE("something is left over", "\x80\2}}.")
    PICKLE("something is left over", "\x80\2}..")
    PICKLE("too few values", "\x80\2.")
    PICKLE("too few values", "\x80\2(.")
    PICKLE("too few values", "\x80\2}(K\1u.")
    PICKLE("too few values", "\x80\2K\1\x86.")
    PICKLE("too few values", "\x80\2(K\1a.")
    PICKLE("too few values", "\x80\2}(K\1K\2s.")
    PICKLE("too few values", "\x80\2(u.")
    PICKLE("no mark", "\x80\2K\1t.")
    PICKLE("no mark", "\x80\2}K\1K\2u.")
    PICKLE("a dict where a list", "\x80\2}K\1a.")
    PICKLE("a list where a dict", "\x80\2]K\1K\2s.")
    PICKLE("a mark where a dict", "\x80\2((K\1K\2u.")
    PICKLE("skips a place", "\x80\2}q\1.")
    PICKLE("skips a place", "\x80\2}r\xff\xff\xff\xff.")
    PICKLE("nothing is at that place", "\x80\2h\0.")
    PICKLE("nothing is at that place", "\x80\2}q\0j\0\1\0\0.")
    PICKLE("ends within it", "\x80\2X\xff\xff\xff\xff""abc.")
    PICKLE("ends within it", "\x80\2""cos\nsystem")
    PICKLE("wants posix.system", "\x80\2""cposix\nsystem\nX\2\0\0\0ls\x85R.")
    PICKLE("wants builtins.eval", "\x80\2""cbuiltins\neval\n.")
    PICKLE("wants torch.nn.modules.container.Sequential", "\x80\2""ctorch.nn.modules.container\nSequential\n)\x81.")
    PICKLE("opcode INST", "\x80\2(ios\nsystem\n.")
    PICKLE("opcode OBJ", "\x80\2(o.")
    PICKLE("opcode NEWOBJ", "\x80\2}}\x81.")
    PICKLE("opcode DUP", "\x80\2}2.")
    PICKLE("opcode EXT1", "\x80\2\x82\1.")
    PICKLE("opcode unknown (255)", "\x80\2\xff.")
    PICKLE("a tuple where a name", "\x80\2))R.")
    PICKLE("made of something", "\x80\2""ccollections\nOrderedDict\nK\1\x85R.")
    PICKLE("a name where a dict", "\x80\2""ccollections\nOrderedDict\n}b.")
    PICKLE("more than 64 bits", "\x80\2\x8a\t123456789.")
    PICKLE("an integer where a tuple", "\x80\2K\1Q.")
    /* clang-format on */
};

START_TEST(a_pickle_that_is_no_state_dict_is_refused)
{
    made p = { .size = pickles[_i].size };
    made_zip z;
    cek__st_file *file;

    memcpy(p.bytes, pickles[_i].code, p.size);
    zip_fill(&z, &p, true);
    assert_fails(cek__st_read(written(&z), &file), CEK_BAD_INPUT, "net.pt", pickles[_i].cause);
}
END_TEST

/* A dict within itself, a list within itself, and values that are no tensors beside one that is. */
START_TEST(what_refers_to_itself_ends)
{
    static const struct {
        const char *code, *cause;
        size_t size;
    } cycles[] = {
#define CYCLE(cause, code) { code, cause, sizeof code - 1 },
        CYCLE("neither it nor a dict", "\x80\2}q\0X\1\0\0\0ah\0s.")
            CYCLE("neither it nor a dict", "\x80\2}q\0X\1\0\0\0a]q\1h\1as.")
                CYCLE("neither it nor a dict", "\x80\2}q\0h\0h\0s.")
    };
    made_zip z;
    made p;
    cek__st_file *file;

    for (size_t i = 0; i < sizeof cycles / sizeof *cycles; i++) {
        p = (made){ .size = cycles[i].size };
        memcpy(p.bytes, cycles[i].code, p.size);
        zip_fill(&z, &p, true);
        assert_fails(cek__st_read(written(&z), &file), CEK_BAD_INPUT, "net.pt", cycles[i].cause);
    }
}
END_TEST

START_TEST(names_are_text_and_differ_and_belong_to_tensors)
{
    static const char *const names[] = { "0.weight", "bad\xff", NULL };
    static const char *const causes[] = { "same name", "not text", "'extra': it is no tensor" };
    made_zip z;
    made p;
    cek__st_file *file;

    for (int i = 0; i < 3; i++) {
        made_tensor second = usual[1];

        second.name = names[i];
        pickle_begin(&p);
        op(&p, '}');
        op(&p, '(');
        op_tensor(&p, &usual[0]);
        if (names[i] != NULL) {
            op_tensor(&p, &second);
        } else {
            op_text(&p, "extra");
            op_integer(&p, 1);
        }
        op(&p, 'u');
        op(&p, '.');
        zip_fill(&z, &p, true);
        assert_fails(cek__st_read(written(&z), &file), CEK_BAD_INPUT, "net.pt", causes[i]);
    }
}
END_TEST

/* ---- the archive ---- */

/* Changes one field of the usual file: of the entry "net/data/0" and of its line in the directory, or of the end. */
enum { AT_ENTRY, AT_LISTED, AT_END, AT_END64 };
static const struct {
    const char *cause;
    int at, offset, width;
    uint64_t value;
} forged[] = {
    { "data/0': it is compressed", AT_LISTED, 10, 2, 8 },
    { "data/0': it is encrypted", AT_LISTED, 8, 2, 0x809 },
    { "yet has two sizes", AT_LISTED, 20, 4, 95 },
    { "do not agree", AT_LISTED, 8, 2, 0x800 },
    { "begins behind", AT_LISTED, 42, 4, 0x7fffffff },
    { "do not agree", AT_LISTED, 42, 4, 0 },
    { "says of it is damaged", AT_LISTED, 42, 4, UINT32_MAX },
    { "checksum is wrong", AT_LISTED, 16, 4, 1 },
    { "is cut short", AT_LISTED, 28, 2, 65535 },
    { "do not agree", AT_ENTRY, 8, 2, 8 },
    { "do not agree", AT_ENTRY, 26, 2, 9 },
    { "larger than the archive", AT_ENTRY, 28, 2, 65535 },
    { "damaged zip archive: its end does not agree", AT_END, 4, 2, 1 },
    { "fewer entries than it says", AT_END, 8, 4, 0x00090009 },
    { "more entries than it says", AT_END, 8, 4, 0x00070007 },
    { "end does not agree", AT_END, 12, 4, 7 },
    { "end does not agree", AT_END, 16, 4, 0x7fffffff },
    { "without a comment", AT_END, 20, 2, 1 },
    { "64-bit end is wrong", AT_END64, 32, 8, 9 },
    { "another size", AT_END64, 48, 8, UINT64_MAX },
    { "another size", AT_END64, 40, 8, UINT64_MAX },
    { "64-bit end is not where", AT_END64, 4, 8, 45 },
    { "64-bit end is wrong", AT_END64, 56 + 8, 8, 0 },
};

START_TEST(an_archive_that_lies_is_refused)
{
    made_zip z;
    made *m = &z.out;
    cek__st_file *file;
    size_t line = 0, at;

    usual_make(&z, forged[_i].at == AT_END64);
    while (memcmp(m->bytes + line, "PK\1\2", 4) != 0 || memcmp(m->bytes + line + 46, "net/data/0", 10) != 0)
        line++;
    at = forged[_i].at == AT_ENTRY    ? z.entry[2].begin
         : forged[_i].at == AT_LISTED ? line
                                      : m->size - 22 - (forged[_i].at == AT_END64 ? 76 : 0);
    for (int i = 0; i < forged[_i].width; i++)
        m->bytes[at + (size_t)forged[_i].offset + (size_t)i] = (uint8_t)(forged[_i].value >> 8 * i);
    assert_fails(cek__st_read(written(&z), &file), CEK_BAD_INPUT, "net.pt", forged[_i].cause);
}
END_TEST

START_TEST(other_archives_and_orders_of_bytes_are_refused)
{
    static const struct {
        const char *names[2], *content, *cause;
    } others[] = {
        { { "word/document.xml", "data.pkl" }, "}", "it has no entry data.pkl" },
        { { "a/data.pkl", "b/data.pkl" }, "\x80\2}.", "two entries are called data.pkl" },
        { { "a/data.pkl", "a/data.pkl" }, "\x80\2}.", "same name" },
        { { "a/data.pkl", "a/byteorder" }, "\x80\2}.", "not little-endian" },
    };
    static const uint8_t old[] = { 0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20 };
    made_zip z = { 0 };
    cek__st_file *file;

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        z.out.size = 0;
        z.count = 0;
        for (int k = 0; k < 2; k++)
            zip_add(&z, others[i].names[k], others[i].content, strlen(others[i].content));
        zip_end(&z, false);
        assert_fails(cek__st_read(written(&z), &file), CEK_BAD_INPUT, "net.pt", others[i].cause);
    }
    /* the second entry is told of as a part of the first */
    z.out.size = 0;
    z.count = 0;
    zip_add(&z, "a/data.pkl", "", 0);
    zip_add(&z, "a/b", "x", 1);
    z.entry[0].size = z.entry[1].begin + 34 - 40;
    z.entry[0].checksum = (uint32_t)crc32(0, z.out.bytes + 40, z.entry[0].size);
    zip_end(&z, false);
    assert_fails(cek__st_read(written(&z), &file), CEK_BAD_INPUT, "net.pt", "a/b': it overlaps another");
    assert_fails(cek__st_read(scratch_write("net.pt", old, sizeof old), &file), CEK_BAD_INPUT, "net.pt",
                 "before PyTorch 1.6");
}
END_TEST

/* ---- harm ---- */

static uint64_t draws;

static uint32_t below(size_t bound)
{
    return (uint32_t)(((uint64_t)cek__random_u32(20261122, 0, draws++) * bound) >> 32);
}

static int times(int n)
{
    return getenv("CEKERNELS_TEST_LONG") != NULL ? 50 * n : n;
}

/* Whether it was read; what was read is what was written. */
static bool harmless(const made_zip *z)
{
    cek__st_file *file;
    const char *path = written(z);
    cek_status st = cek__st_read(path, &file);

    if (st != CEK_OK) {
        ck_assert_msg(st == CEK_BAD_INPUT, "%s: %s", cek_status_name(st), cek_error_text());
        ck_assert_msg(strstr(cek_error_text(), path) != NULL, "'%s' does not name the file", cek_error_text());
        return false;
    }
    usual_is_whole(file);
    cek__st_free(file);
    return true;
}

START_TEST(a_truncated_file_is_refused)
{
    made_zip z;

    usual_make(&z, _i == 1);
    for (size_t size = z.out.size; z.out.size > 0;) {
        size -= size > 200 && z.out.size < 2000 ? 7 : 1;
        z.out.size = size;
        ck_assert(!harmless(&z));
    }
}
END_TEST

START_TEST(changed_bytes_never_give_other_values)
{
    made_zip original, z;
    int accepted = 0;

    usual_make(&original, _i == 1);
    for (int i = 0; i < times(1000); i++) {
        z = original;
        for (uint32_t k = 0, n = 1 + below(3) * (i % 2 == 0); k < n; k++) {
            /* Half of them among the directory and the end, where each byte means something. */
            size_t at = below(2) ? below(z.out.size) : z.out.size - 1 - below(z.out.size / 4);

            z.out.bytes[at] = (uint8_t)(below(2) ? below(256) : z.out.bytes[at] ^ 1U << below(8));
        }
        accepted += harmless(&z);
    }
    ck_assert_int_gt(accepted, 0); /* times of files, versions, what stands behind entries */
    ck_assert_int_lt(accepted, times(1000));
}
END_TEST

/* The same with the checksum made right again, so that the interpreter sees the harm: whatever it makes of it lies
 * within the file (a sanitizer would tell), and all of it can be read. */
START_TEST(changed_pickles_never_leave_the_file)
{
    made pickle, changed;
    made_zip z;
    cek__st_file *file;
    double wide[8];
    int accepted = 0;

    pickle_begin(&pickle);
    op_state_dict(&pickle, usual, USUAL);
    op(&pickle, '.');
    for (int i = 0; i < times(1000); i++) {
        changed = pickle;
        for (uint32_t k = 0, n = 1 + below(2); k < n; k++)
            changed.bytes[below(changed.size)] ^= (uint8_t)(below(2) ? 1 + below(255) : 1U << below(8));
        zip_fill(&z, &changed, true);
        if (cek__st_read(written(&z), &file) != CEK_OK) {
            ck_assert_ptr_nonnull(strstr(cek_error_text(), "net.pt"));
            continue;
        }
        accepted++;
        for (size_t t = 0; t < file->count; t++)
            if (file->tensors[t].count <= 8 && file->tensors[t].type <= CEK__ST_BF16)
                assert_ok(cek__st_to_f64(&file->tensors[t], wide));
        cek__st_free(file);
    }
    ck_assert_int_gt(accepted, 0);
    ck_assert_int_lt(accepted, times(1000));
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    made_zip z;
    const char *path;
    cek__st_file *file;
    cek_status st = CEK_OUT_OF_MEMORY;

    usual_make(&z, true);
    path = written(&z);
    for (long n = 1; st != CEK_OK; n++) {
        cek__fault_set(CEK__FAULT_ALLOC, n);
        st = cek__st_read(path, &file);
        ck_assert_msg(st == CEK_OK || st == CEK_OUT_OF_MEMORY, "%s", cek_error_text());
        ck_assert(st != CEK_OK || cek__fault_pending(CEK__FAULT_ALLOC));
        cek__st_free(file);
    }
    cek__fault_set(CEK__FAULT_ALLOC, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("torch_file");
    TCase *all = tcase_create("all");

    tcase_add_checked_fixture(all, scratch_make, scratch_remove);
    tcase_add_loop_test(all, a_state_dict_is_read_value_by_value, 0, 2);
    tcase_add_test(all, a_checkpoint_is_its_one_dict_of_tensors);
    tcase_add_test(all, a_model_takes_it_and_passes_over_counted_batches_alone);
    tcase_add_loop_test(all, a_tensor_that_lies_is_refused, 0, sizeof lies / sizeof *lies);
    tcase_add_loop_test(all, a_pickle_that_is_no_state_dict_is_refused, 0, sizeof pickles / sizeof *pickles);
    tcase_add_test(all, what_refers_to_itself_ends);
    tcase_add_test(all, names_are_text_and_differ_and_belong_to_tensors);
    tcase_add_loop_test(all, an_archive_that_lies_is_refused, 0, sizeof forged / sizeof *forged);
    tcase_add_test(all, other_archives_and_orders_of_bytes_are_refused);
    tcase_add_loop_test(all, a_truncated_file_is_refused, 0, 2);
    tcase_add_loop_test(all, changed_bytes_never_give_other_values, 0, 2);
    tcase_add_test(all, changed_pickles_never_leave_the_file);
    tcase_add_test(all, every_allocation_may_fail);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
