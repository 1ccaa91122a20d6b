/* model.c - models before any device: shapes, parameter counts, texts, initial values, files, fingerprints, layouts, arenas. */
#include <math.h>

#include "cekernels/nn.h"
#include "core/base/fault.h"
#include "core/base/random.h"
#include "core/base/sha256.h"
#include "nn/model/arena.h"
#include "nn/model/graph.h"
#include "nn/model/layout.h"
#include "scratch.h"

static cek_model *parsed(const char *text, int rank, const int64_t *shape)
{
    cek_model *model;

    assert_ok(cek_model_parse(text, rank, shape, &model));
    return model;
}

static int64_t parameters(const cek_model *m)
{
    int64_t n = 0;

    for (size_t i = 0; i < cek_model_parameter_count(m); i++) {
        cek_parameter p;

        assert_ok(cek_model_parameter(m, i, &p));
        n += p.count;
    }
    return n;
}

static void parameter_is(const cek_model *m, size_t index, const char *name, int rank, const int64_t *shape)
{
    cek_parameter p;

    assert_ok(cek_model_parameter(m, index, &p));
    ck_assert_str_eq(p.name, name);
    ck_assert_int_eq(p.rank, rank);
    for (int i = 0; i < rank; i++)
        ck_assert_int_eq(p.shape[i], shape[i]);
}

/* ---- graph and text ---- */

START_TEST(built_in_models_have_pytorchs_shapes_and_counts)
{
    int64_t shape[CEK_RANK_MAX];
    cek_model *m = parsed("mnist-cnn", 0, NULL);

    ck_assert_int_eq(parameters(m), 25775882); /* sum(p.numel()) of the torch.nn.Sequential; so below */
    ck_assert_uint_eq(cek_model_parameter_count(m), 8);
    parameter_is(m, 0, "0.weight", 4, (int64_t[]){ 64, 1, 3, 3 });
    parameter_is(m, 1, "0.bias", 1, (int64_t[]){ 64 });
    parameter_is(m, 2, "2.weight", 4, (int64_t[]){ 128, 64, 3, 3 });
    parameter_is(m, 4, "6.weight", 2, (int64_t[]){ 1024, 25088 });
    parameter_is(m, 7, "9.bias", 1, (int64_t[]){ 10 });
    ck_assert_int_eq(cek_model_input_shape(m, shape), 3);
    ck_assert(shape[0] == 1 && shape[1] == 28 && shape[2] == 28);
    ck_assert_int_eq(cek_model_output_shape(m, shape), 1);
    ck_assert_int_eq(shape[0], 10);
    cek_model_free(m);

    m = parsed("lenet5", 0, NULL);
    ck_assert_int_eq(parameters(m), 61706);
    parameter_is(m, 4, "7.weight", 2, (int64_t[]){ 120, 400 });
    cek_model_free(m);

    m = parsed("boston-mlp", 0, NULL);
    ck_assert_int_eq(parameters(m), 13 * 16 + 16 + 16 * 32 + 32 + 33);
    cek_model_free(m);
}
END_TEST

START_TEST(windows_are_counted_as_pytorch_counts_them)
{
    static const struct {
        const char *text;
        int64_t shape[3];
    } cases[] = { /* on 6x23x17; torch.nn with the same arguments */
        { "conv:8,3", { 8, 21, 15 } },
        { "conv:8,3,s2,p1", { 8, 12, 9 } },
        { "conv:9,5,s3,p2,d2,g3", { 9, 7, 5 } },
        { "maxpool:2", { 6, 11, 8 } },
        { "maxpool:3,s2,p1", { 6, 12, 9 } },
        { "avgpool:5,s3", { 6, 7, 5 } },
        { "gap", { 6, 1, 1 } },
        { "dropout:0.5 gelu", { 6, 23, 17 } },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t shape[CEK_RANK_MAX];
        cek_model *m = parsed(cases[i].text, 3, (int64_t[]){ 6, 23, 17 });

        ck_assert_int_eq(cek_model_output_shape(m, shape), 3);
        for (int k = 0; k < 3; k++)
            ck_assert_msg(shape[k] == cases[i].shape[k], "%s: dimension %d is %lld", cases[i].text, k, (long long)shape[k]);
        cek_model_free(m);
    }
}
END_TEST

START_TEST(texts_that_mean_nothing_name_the_word_and_the_shapes)
{
    static const struct {
        const char *text, *object, *cause;
    } cases[] = {
        { "conv:4,3 rellu", "word 2, \"rellu\" at column 10", "unknown" },
        { "", "model", "no words" },
        { "conv:4", "word 1", "conv:OUT,K" },
        { "conv:4,3,x1", "word 1", "x1" },
        { "conv:4,3,s1,s2", "word 1", "twice" },
        { "conv:4,3,s0", "word 1", "setting s" },
        { "conv:4,", "word 1", "kernel" },
        { "conv:-4,3", "word 1", "output channels" },
        { "conv:4,3,g2", "conv", "3x9x8" },
        { "conv:4,30", "kernel 30x30", "3x9x8" },
        { "conv:4,3 conv:4,8", "word 2", "4x7x6" },
        { "maxpool:20", "kernel 20x20", "3x9x8" },
        { "maxpool:3,p2", "padding 2x2", "half" },
        { "linear:4", "image 3x9x8", "flatten" },
        { "flatten conv:4,3", "image C,H,W", "216" },
        { "dropout:1", "dropout", "probability 1" },
        { "dropout:nan", "word 1", "probability" },
        { "relu:3", "word 1", "relu" },
        { "flatten linear:1e3", "word 2", "outputs" },
        { "conv:2000000000,3 conv:2000000000,3", "word 1", "elements" },
        { "conv:1,2,3,4,5,6,7,8,9,10", "word 1", "settings" },
        { "conv:4,3,d2000000000,p1000", "word 1", "larger" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cek_model *m = (cek_model *)&m;

        assert_fails(cek_model_parse(cases[i].text, 3, (int64_t[]){ 3, 9, 8 }, &m), CEK_BAD_INPUT, cases[i].object,
                     cases[i].cause);
        ck_assert_ptr_null(m);
    }
}
END_TEST

START_TEST(impossible_nodes_leave_the_model_as_it_was)
{
    cek_model *m, *bad;
    int n, a, b;
    cek_conv2d_layer conv = { .size = sizeof conv, .out_channels = 4, .kernel_h = 3, .kernel_w = 3, .groups = 2 };

    assert_fails(cek_model_create(2, (int64_t[]){ 3, 4 }, &bad), CEK_INVALID, "model", "rank 2");
    assert_fails(cek_model_create(1, (int64_t[]){ 0 }, &bad), CEK_INVALID, "model", "dimension 0");
    assert_fails(cek_model_create(3, (int64_t[]){ 1 << 20, 1 << 20, 1 << 20 }, &bad), CEK_INVALID, "model", "elements");
    ck_assert_ptr_null(bad);
    assert_ok(cek_model_create(3, (int64_t[]){ 3, 9, 8 }, &m));
    assert_fails(cek_model_conv2d(m, 0, &conv, &n), CEK_INVALID, "node 1 (conv)", "3x9x8");
    ck_assert_int_eq(n, -1);
    conv.size = 0;
    assert_fails(cek_model_conv2d(m, 0, &conv, &n), CEK_INVALID, "conv", "size");
    assert_fails(cek_model_activation(m, 0, 99, &n), CEK_INVALID, "node 1", "kind 99");
    assert_fails(cek_model_activation(m, 1, CEK_ACT_RELU, &n), CEK_INVALID, "node 1", "input 1");
    assert_fails(cek_model_linear(m, 0, 4, true, &n), CEK_INVALID, "node 1 (linear)", "flatten");
    assert_fails(cek_model_pool2d(m, 0, &(cek_pool2d_layer){ .size = sizeof(cek_pool2d_layer), .mode = 7 }, &n), CEK_INVALID,
                 "pool", "mode 7");
    conv = (cek_conv2d_layer){ .size = sizeof conv, .out_channels = 4, .kernel_h = 3, .kernel_w = 3 };
    assert_ok(cek_model_conv2d(m, 0, &conv, &a));
    conv.pad_h = 1;
    assert_ok(cek_model_conv2d(m, 0, &conv, &b));
    assert_fails(cek_model_add(m, a, b, &n), CEK_INVALID, "4x7x6 of node 1", "4x9x6 of node 2");
    ck_assert_int_eq(b, 2);
    ck_assert_uint_eq(cek_model_parameter_count(m), 4);
    cek_model_free(m);
}
END_TEST

START_TEST(options_of_a_newer_caller_are_refused_where_they_say_something)
{
    struct {
        cek_conv2d_layer known;
        uint32_t newer[4];
    } options = { .known = { .size = sizeof options, .out_channels = 1, .kernel_h = 1, .kernel_w = 1 } };
    cek_model *m;

    assert_ok(cek_model_create(3, (int64_t[]){ 1, 2, 2 }, &m));
    assert_ok(cek_model_conv2d(m, 0, &options.known, NULL));
    options.newer[3] = 1;
    assert_fails(cek_model_conv2d(m, 0, &options.known, NULL), CEK_UNSUPPORTED, "conv", "newer");
    cek_model_free(m);
}
END_TEST

START_TEST(presets_say_how_a_built_in_is_trained)
{
    cek_preset p = { .size = sizeof p };

    assert_ok(cek_preset_find("boston-mlp", &p));
    ck_assert_uint_eq(p.loss, CEK_LOSS_MSE);
    ck_assert_int_eq(p.batch, 128);
    ck_assert(p.optimizer.algorithm == CEK_OPTIMIZER_ADAM && p.optimizer.lr == 0.01);
    ck_assert_str_eq(p.text, "linear:16 relu linear:32 relu linear:1");
    assert_fails(cek_preset_find("alexnet", &p), CEK_NOT_FOUND, "alexnet", "mnist-cnn, lenet5, boston-mlp");
    p.size = 4;
    assert_fails(cek_preset_find("lenet5", &p), CEK_INVALID, "preset", "size");
}
END_TEST

START_TEST(running_out_of_memory_anywhere_is_a_status)
{
    for (long nth = 1;; nth++) {
        cek_model *m;
        cek_status st;
        bool pending;

        cek__fault_set(CEK__FAULT_ALLOC, nth);
        st = cek_model_parse("lenet5", 0, NULL, &m);
        pending = cek__fault_pending(CEK__FAULT_ALLOC);
        cek__fault_set(CEK__FAULT_ALLOC, 0);
        if (pending) {
            ck_assert_uint_eq(st, CEK_OK);
            ck_assert_int_gt(nth, 10);
            cek_model_free(m);
            return;
        }
        ck_assert_uint_eq(st, CEK_OUT_OF_MEMORY);
        ck_assert_ptr_null(m);
    }
}
END_TEST

/* ---- initial values ---- */

START_TEST(initial_values_are_uniform_in_pytorchs_bounds)
{
    cek_model *m = parsed("conv:32,3,g2 flatten linear:300 linear:7", 3, (int64_t[]){ 8, 12, 12 });
    const double fan_in[] = { 4 * 9, 4 * 9, 3200, 3200, 300, 300 };

    cek_model_init(m, 42);
    for (size_t i = 0; i < 6; i++) {
        const cek_parameter *p = &m->parameters[i].public;
        double bound = 1 / sqrt(fan_in[i]), sum = 0, squares = 0, least = bound, most = -bound;

        for (int64_t k = 0; k < p->count; k++) {
            sum += p->data[k];
            squares += (double)p->data[k] * p->data[k];
            least = fmin(least, p->data[k]);
            most = fmax(most, p->data[k]);
        }
        ck_assert(least >= -bound * 1.0000001 && most <= bound * 1.0000001);
        if (p->count < 1000)
            continue;
        /* Mean 0 with deviation bound/sqrt(3 n), second moment bound^2/3; five deviations. */
        ck_assert_double_lt(fabs(sum / (double)p->count), 5 * bound / sqrt(3.0 * (double)p->count));
        ck_assert_double_lt(fabs(squares / (double)p->count / (bound * bound / 3) - 1), 5 / sqrt((double)p->count));
        ck_assert(least < -0.98 * bound && most > 0.98 * bound);
    }
    cek_model_free(m);
}
END_TEST

START_TEST(initial_values_depend_on_the_seed_and_the_parameter_alone)
{
    cek_model *a = parsed("linear:16 relu linear:16", 1, (int64_t[]){ 16 });
    cek_model *b = parsed("linear:16 tanh linear:16 linear:16", 1, (int64_t[]){ 16 });
    char one[65], two[65], other[65];

    for (size_t i = 0; i < 4; i++)
        for (int64_t k = 0; k < a->parameters[i].public.count; k++)
            ck_assert(a->parameters[i].public.data[k] == 0);
    cek_model_init(a, 3);
    cek_model_init(b, 3);
    for (size_t i = 0; i < 4; i++)
        ck_assert_mem_eq(a->parameters[i].public.data, b->parameters[i].public.data,
                         (size_t)a->parameters[i].public.count * sizeof(float));
    ck_assert_mem_ne(a->parameters[0].public.data, a->parameters[2].public.data, 64);
    cek_model_sha256(a, one);
    cek_model_init(a, 4);
    cek_model_sha256(a, other);
    cek_model_init(a, 3);
    cek_model_sha256(a, two);
    ck_assert_str_eq(one, two);
    ck_assert_str_ne(one, other);
    cek_model_free(a);
    cek_model_free(b);
}
END_TEST

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
    cek_model *m = parsed("conv:6,3,p1,g3 relu maxpool:2 dropout:0.5 flatten linear:5 relu linear:4", 3, (int64_t[]){ 9, 8, 6 });
    cek_model *copy = parsed("conv:6,3,p1,g3 relu maxpool:2 dropout:0.5 flatten linear:5 relu linear:4", 3, (int64_t[]){ 9, 8, 6 });
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

                    cek__layout_unpack_one(layout, m, p, (char *)bytes + place->first * unit, one);
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
        assert_ok(cek__arena_place(item, count, &total));
        for (size_t i = 0; i < count; i++) {
            ck_assert_uint_eq(item[i].offset % CEK_ALIGNMENT, 0);
            ck_assert_uint_le(item[i].offset + item[i].bytes, total);
            for (size_t k = 0; k < i; k++)
                ck_assert(item[i].last < item[k].first || item[k].last < item[i].first ||
                          item[i].offset + item[i].bytes <= item[k].offset || item[k].offset + item[k].bytes <= item[i].offset);
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
    Suite *suite = suite_create("model");
    TCase *tcase = tcase_create("model");
    SRunner *runner;
    int failed;

    tcase_add_test(tcase, built_in_models_have_pytorchs_shapes_and_counts);
    tcase_add_test(tcase, windows_are_counted_as_pytorch_counts_them);
    tcase_add_test(tcase, texts_that_mean_nothing_name_the_word_and_the_shapes);
    tcase_add_test(tcase, impossible_nodes_leave_the_model_as_it_was);
    tcase_add_test(tcase, options_of_a_newer_caller_are_refused_where_they_say_something);
    tcase_add_test(tcase, presets_say_how_a_built_in_is_trained);
    tcase_add_test(tcase, running_out_of_memory_anywhere_is_a_status);
    tcase_add_test(tcase, initial_values_are_uniform_in_pytorchs_bounds);
    tcase_add_test(tcase, initial_values_depend_on_the_seed_and_the_parameter_alone);
    tcase_add_test(tcase, the_fingerprint_is_over_bytes_in_the_order_of_names);
    tcase_add_test(tcase, a_saved_model_comes_back_or_nothing_changes);
    tcase_add_test(tcase, a_leading_module_is_accepted);
    tcase_add_test(tcase, the_layout_turns_weights_and_back);
    tcase_add_test(tcase, buckets_hold_whole_parameters_from_the_last_and_are_zero_between);
    tcase_add_test(tcase, what_lives_at_one_time_never_overlaps);
    tcase_add_test(tcase, the_summary_is_aligned_and_adds_up);
    tcase_add_test(tcase, the_summary_adds_up_the_memory_of_a_device);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
