/* model_state.c - a model's parameters elsewhere: in files, as a fingerprint, in device order; and
 * where values of a plan lie. */
#include "cekernels/nn.h"
#include "core/base/fault.h"
#include "core/base/random.h"
#include "core/base/sha256.h"
#include "nn/program/arena.h"
#include "nn/model/model.h"
#include "nn/model/layout.h"
#include "scratch.h"

static cek_model *parsed(const char *text, int rank, const int64_t *shape)
{
    cek_model *model;

    assert_ok(cek_model_parse(text, rank, shape, &model));
    return model;
}

/* ---- files ---- */

START_TEST(the_fingerprint_is_over_bytes_in_the_order_of_names)
{
    cek_model *m = parsed("relu relu linear:2 relu relu relu relu relu relu relu linear:1", 1, (int64_t[]){ 1 });
    const float in_order[] = { 5, 3, 4, 2, 0, 1 }; /* 10.bias 10.weight(2) 2.bias... by bytes: "10" before "2" */
    cek__sha256 hash;
    uint8_t digest[32];
    char want[65], got[65];

    /* Parameters: 2.weight {0,1}, 2.bias {2,.5}, 10.weight {3,4}, 10.bias {5}. */
    memcpy(m->parameters[0].public.data, (float[]){ 0, 1 }, 8);
    memcpy(m->parameters[1].public.data, (float[]){ 2, 0.5f }, 8);
    memcpy(m->parameters[2].public.data, (float[]){ 3, 4 }, 8);
    memcpy(m->parameters[3].public.data, (float[]){ 5 }, 4);
    cek__sha256_init(&hash);
    cek__sha256_update(&hash, in_order, 12);
    cek__sha256_update(&hash, (float[]){ 2, 0.5f, 0, 1 }, 16);
    cek__sha256_final(&hash, digest);
    cek__sha256_hex(digest, want);
    cek_model_sha256(m, got);
    ck_assert_str_eq(got, want);
    cek_model_free(m);
}
END_TEST

/* Rewrites a file with every "from" as the equally long "to". */
static void file_replace(const char *path, const char *copy, const char *from, const char *to)
{
    static char data[1 << 20];
    FILE *f = fopen(path, "rb");
    size_t size = fread(data, 1, sizeof data, f);
    bool found = false;

    fclose(f);
    for (size_t i = 0; i + strlen(from) <= size; i++)
        if (memcmp(data + i, from, strlen(from)) == 0) {
            memcpy(data + i, to, strlen(to));
            found = true;
        }
    ck_assert(found);
    scratch_write(copy, data, size);
}

START_TEST(a_saved_model_comes_back_or_nothing_changes)
{
    static const char text[] = "conv:4,3,p1 relu flatten linear:5";
    cek_model *m, *other, *wrong;
    char saved[65], before[65], after[65];
    const char *path;

    scratch_make();
    m = parsed(text, 3, (int64_t[]){ 3, 4, 4 });
    other = parsed(text, 3, (int64_t[]){ 3, 4, 4 });
    cek_model_init(m, 1);
    path = scratch_path("a.safetensors");
    assert_ok(cek_model_save(m, path));
    assert_ok(cek_model_load(other, path));
    cek_model_sha256(m, saved);
    cek_model_sha256(other, after);
    ck_assert_str_eq(saved, after);

    cek_model_init(other, 2);
    cek_model_sha256(other, before);
    file_replace(path, "b", "\"3.bias\"", "\"4.bias\"");
    assert_fails(cek_model_load(other, scratch_path("b")), CEK_BAD_INPUT, "\"3.bias\"", "the model has");
    wrong = parsed("conv:4,5,p2 relu flatten linear:5", 3, (int64_t[]){ 3, 4, 4 });
    assert_fails(cek_model_load(wrong, path), CEK_BAD_INPUT, "\"0.weight\" has the shape 4x3x3x3", "4x3x5x5");
    cek_model_free(wrong);
    wrong = parsed("conv:4,3,p1", 3, (int64_t[]){ 3, 4, 4 });
    assert_fails(cek_model_load(wrong, path), CEK_BAD_INPUT, "a.safetensors", "none of the model's");
    cek_model_free(wrong);
    assert_fails(cek_model_load(other, scratch_path("absent")), CEK_IO, "absent", "No such file");
    for (long nth = 1;; nth++) {
        cek_status st;
        bool pending;

        cek__fault_set(CEK__FAULT_ALLOC, nth);
        st = cek_model_load(other, path);
        pending = cek__fault_pending(CEK__FAULT_ALLOC);
        cek__fault_set(CEK__FAULT_ALLOC, 0);
        if (pending)
            break;
        /* (jansson's own allocations are not ours to fail.) */
        ck_assert_uint_eq(st, CEK_OUT_OF_MEMORY);
        cek_model_sha256(other, after);
        ck_assert_str_eq(before, after);
    }
    cek_model_sha256(other, after);
    ck_assert_str_eq(saved, after); /* the last try had no fault */
    cek_model_free(m);
    cek_model_free(other);
    scratch_remove();
}
END_TEST

/* A file as torch.nn.DataParallel writes it, by hand. */
START_TEST(a_leading_module_is_accepted)
{
    static const char header[] = "{\"module.0.weight\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
                                 "\"module.0.bias\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[8,16]}}";
    unsigned char file[512] = { (unsigned char)(sizeof header - 1) };
    cek_model *m = parsed("linear:1", 1, (int64_t[]){ 2 });

    scratch_make();
    memcpy(file + 8, header, sizeof header - 1);
    memcpy(file + 8 + sizeof header - 1, (float[]){ 1.5f, -2 }, 8);
    memcpy(file + 16 + sizeof header - 1, (double[]){ 0.25 }, 8);
    assert_ok(cek_model_load(m, scratch_write("m", file, 8 + sizeof header - 1 + 16)));
    ck_assert(m->parameters[0].public.data[0] == 1.5f && m->parameters[0].public.data[1] == -2);
    ck_assert(m->parameters[1].public.data[0] == 0.25f);
    cek_model_free(m);
    scratch_remove();
}
END_TEST

/* ---- layout ---- */

/* Where PyTorch's element (a, b) of [outer][a][b] must lie in the device's [outer][b][a]. */
static void order_is(const float *pytorch, const float *device, int64_t outer, int64_t na, int64_t nb)
{
    for (int64_t o = 0; o < outer; o++)
        for (int64_t a = 0; a < na; a++)
            for (int64_t b = 0; b < nb; b++)
                ck_assert(device[(o * nb + b) * na + a] == pytorch[(o * na + a) * nb + b]);
}

START_TEST(the_layout_turns_weights_and_back)
{
    cek_model *m = parsed("conv:6,3,p1,g3 relu maxpool:2 dropout:0.5 flatten linear:5 relu linear:4", 3,
                          (int64_t[]){ 9, 8, 6 });
    cek_model *copy = parsed("conv:6,3,p1,g3 relu maxpool:2 dropout:0.5 flatten linear:5 relu "
                             "linear:4",
                             3, (int64_t[]){ 9, 8, 6 });
    cek__layout *layout;

    cek_model_init(m, 1);
    for (int f64 = 0; f64 < 2; f64++) {
        assert_ok(cek__layout_create(m, f64 ? CEK_F64 : CEK_F32, &layout));
        cek_model_init(copy, 9);
        for (size_t b = 0; b < layout->bucket_count; b++) {
            void *bytes = malloc(cek__layout_bucket_bytes(layout, b));

            memset(bytes, 0xff, cek__layout_bucket_bytes(layout, b));
            cek__layout_pack(layout, m, b, bytes);
            cek__layout_unpack(layout, copy, b, bytes);
            for (size_t p = 0; p < 6; p++) {
                const cek__placement *place = &layout->placement[p];
                const float *in = m->parameters[p].public.data;
                double *one = malloc(place->count * sizeof *one);

                if (place->bucket == b) {
                    size_t unit = f64 ? 8 : 4;

                    cek__layout_unpack_one(layout, p, (char *)bytes + place->first * unit, one);
                    for (uint64_t i = 0; i < place->count; i++)
                        ck_assert(one[i] == in[i]);
                    if (!f64 && p == 0) /* [6][3][3x3] */
                        order_is(in, (float *)bytes + place->first, 6, 3, 9);
                    if (!f64 && p == 2) /* [5][6 channels][4x3] */
                        order_is(in, (float *)bytes + place->first, 5, 6, 12);
                    if (!f64 && p == 4)
                        order_is(in, (float *)bytes + place->first, 1, 1, 20);
                }
                free(one);
            }
            free(bytes);
        }
        for (size_t p = 0; p < 6; p++)
            ck_assert_mem_eq(m->parameters[p].public.data, copy->parameters[p].public.data,
                             (size_t)m->parameters[p].public.count * sizeof(float));
        cek__layout_free(layout);
    }
    cek_model_free(m);
    cek_model_free(copy);
}
END_TEST

START_TEST(buckets_hold_whole_parameters_from_the_last_and_are_zero_between)
{
    cek_model *m = parsed("mnist-cnn", 0, NULL);
    cek__layout *layout;
    uint64_t used[8] = { 0 };

    cek_model_init(m, 1);
    assert_ok(cek__layout_create(m, CEK_F32, &layout));
    ck_assert_uint_eq(layout->parameter_count, 8);
    for (size_t p = 8; p-- > 0;) {
        const cek__placement *place = &layout->placement[p];

        ck_assert_uint_eq(place->count, (uint64_t)m->parameters[p].public.count);
        ck_assert_uint_eq(place->first * 4 % CEK_ALIGNMENT, 0);
        ck_assert_uint_ge(place->first, used[place->bucket]); /* no overlap */
        used[place->bucket] = place->first + place->count;
        ck_assert_uint_le(used[place->bucket], layout->bucket_elements[place->bucket]);
        if (p < 7)
            ck_assert_uint_ge(place->bucket, layout->placement[p + 1].bucket);
    }
    for (size_t b = 0; b < layout->bucket_count; b++) {
        float *bytes = malloc(cek__layout_bucket_bytes(layout, b));
        uint64_t next = 0;

        if (b + 1 < layout->bucket_count)
            ck_assert_uint_ge(cek__layout_bucket_bytes(layout, b), 4 << 20);
        memset(bytes, 0xff, cek__layout_bucket_bytes(layout, b));
        cek__layout_pack(layout, m, b, bytes);
        for (size_t p = 8; p-- > 0;) {
            if (layout->placement[p].bucket != b)
                continue;
            for (; next < layout->placement[p].first; next++)
                ck_assert(bytes[next] == 0);
            next = layout->placement[p].first + layout->placement[p].count;
        }
        for (; next < layout->bucket_elements[b]; next++)
            ck_assert(bytes[next] == 0);
        free(bytes);
    }
    cek__layout_free(layout);
    cek_model_free(m);
}
END_TEST

/* ---- arena ---- */

START_TEST(what_lives_at_one_time_never_overlaps)
{
    enum { MOST = 200 };

    for (uint64_t seed = 0; seed < 300; seed++) {
        /* Among the pieces are such that one alone may be larger than. */
        const uint64_t pieces[] = { UINT64_MAX, 1u << 16, 1u << 19, 3u << 18 }, piece = pieces[seed % 4];
        cek__interval item[MOST];
        size_t count = 1 + cek__random_u32(seed, 1, 0) % MOST;
        uint64_t total, at_once = 0;

        for (size_t i = 0; i < count; i++) {
            int first = (int)(cek__random_u32(seed, 2, i) % 100);

            item[i] = (cek__interval){ .bytes = 1 + cek__random_u32(seed, 3, i) % (1u << (4 + i % 16)),
                                       .first = first,
                                       .last = first + (int)(cek__random_u32(seed, 4, i) % 20),
                                       .offset = 12345 };
        }
        assert_ok(cek__arena_place(item, count, piece, &total));
        for (size_t i = 0; i < count; i++) {
            ck_assert_uint_eq(item[i].offset % CEK_ALIGNMENT, 0);
            ck_assert_uint_le(item[i].offset + item[i].bytes, total);
            ck_assert(item[i].bytes > piece || item[i].offset / piece == (item[i].offset + item[i].bytes - 1) / piece);
            for (size_t k = 0; k < i; k++)
                ck_assert(item[i].last < item[k].first || item[k].last < item[i].first ||
                          item[i].offset + item[i].bytes <= item[k].offset ||
                          item[k].offset + item[k].bytes <= item[i].offset);
        }
        /* No packing can do with less than what lives at once; this one must come near. */
        for (int t = 0; t < 120; t++) {
            uint64_t live = 0;

            for (size_t i = 0; i < count; i++)
                if (item[i].first <= t && t <= item[i].last)
                    live += (item[i].bytes + CEK_ALIGNMENT - 1) / CEK_ALIGNMENT * CEK_ALIGNMENT;
            at_once = live > at_once ? live : at_once;
        }
        ck_assert_uint_ge(total, at_once);
        if (piece == UINT64_MAX)
            ck_assert_double_le((double)total, 1.5 * (double)at_once);
    }
}
END_TEST

/* ---- summary ---- */

START_TEST(the_summary_is_aligned_and_adds_up)
{
    cek_model *m = parsed("mnist-cnn", 0, NULL);
    char *text, *line;
    size_t width;

    assert_ok(cek_model_summary(m, NULL, 64, &text));
    ck_assert_ptr_nonnull(strstr(text, "25,691,136"));
    ck_assert_ptr_nonnull(strstr(text, "128x14x14"));
    ck_assert_ptr_nonnull(strstr(text, "3x3, padding 1"));
    ck_assert_ptr_nonnull(strstr(text, "\n25,775,882 parameters\n"));
    width = strcspn(text, "\n");
    line = text;
    for (int i = 0; i < 12; i++, line += width + 1)
        ck_assert_uint_eq(strcspn(line, "\n"), width);
    free(text);
    cek_model_free(m);
}
END_TEST

START_TEST(the_summary_adds_up_the_memory_of_a_device)
{
    cek_model *m = parsed("mnist-cnn", 0, NULL);
    cek_engine *engine;
    cek_device *device;
    char *text;

    assert_ok(cek_engine_create(NULL, &engine));
    assert_ok(cek_engine_find(engine, "cpu:0", &device));
    assert_ok(cek_model_summary(m, device, 64, &text));
    ck_assert_ptr_nonnull(strstr(text, "training on cpu:0, 64 samples at a time:"));
    ck_assert_ptr_nonnull(strstr(text, "98.3 MiB")); /* 25,775,882 x 4 bytes */
    free(text);
    cek_model_free(m);
    m = parsed("linear:3", 1, (int64_t[]){ 2 }); /* a product, the loss, the gradients of weight and bias */
    assert_ok(cek_model_summary(m, device, 64, &text));
    ck_assert_ptr_nonnull(strstr(text, "\n3 operations, planned in 0."));
    free(text);
    cek_model_free(m);
    m = parsed("flatten", 3, (int64_t[]){ 1, 2, 2 }); /* nothing to train */
    assert_ok(cek_model_summary(m, device, 64, &text));
    ck_assert_ptr_null(strstr(text, "training"));
    free(text);
    cek_model_free(m);
    cek_engine_free(engine);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("model_state");
    TCase *tcase = tcase_create("model_state");

    tcase_add_test(tcase, the_fingerprint_is_over_bytes_in_the_order_of_names);
    tcase_add_test(tcase, a_saved_model_comes_back_or_nothing_changes);
    tcase_add_test(tcase, a_leading_module_is_accepted);
    tcase_add_test(tcase, the_layout_turns_weights_and_back);
    tcase_add_test(tcase, buckets_hold_whole_parameters_from_the_last_and_are_zero_between);
    tcase_add_test(tcase, what_lives_at_one_time_never_overlaps);
    tcase_add_test(tcase, the_summary_is_aligned_and_adds_up);
    tcase_add_test(tcase, the_summary_adds_up_the_memory_of_a_device);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
