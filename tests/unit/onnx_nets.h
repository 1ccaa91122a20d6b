/* onnx_nets.h - what tests of nn/onnx share: networks of a few nodes, written as files, read and run
 * on the reference. */
#ifndef CEK_TESTS_UNIT_ONNX_NETS_H
#define CEK_TESTS_UNIT_ONNX_NETS_H

#include "cekernels/nn.h"
#include "onnx_files.h"
#include "scratch.h"

#define NAMES(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define SHAPE(...) ((int64_t[]){ __VA_ARGS__ })
enum { FLOAT = 1, INT64 = 7, MOST = 24 };

static cek_engine *engine;
static cek_device **devices;

static inline void set_up(void)
{
    size_t count;

    scratch_make();
    assert_ok(cek_engine_create(NULL, &engine));
    assert_ok(cek_engine_select(engine, "reference", CEK_PROFILE_INFERENCE, &devices, &count));
}

static inline void tear_down(void)
{
    free(devices);
    cek_engine_free(engine);
    scratch_remove();
}

/* ---- files ---- */

static inline message floats_of(const char *name, int rank, const int64_t *shape, const float *values, int count)
{
    message m = tensor_of(name, FLOAT, rank, shape);

    put_bytes(&m, 9, values, (size_t)count * sizeof *values);
    return m;
}

static inline message list_of(const char *name, const int64_t *values, int64_t count)
{
    message m = tensor_of(name, INT64, 1, &count);

    put_bytes(&m, 9, values, (size_t)count * sizeof *values);
    return m;
}

static inline void put_number(message *node, const char *name, float value)
{
    message m = { .size = 0 };

    put_text(&m, 1, name);
    put_varint(&m, 2 << 3 | 5);
    memcpy(m.bytes + m.size, &value, sizeof value);
    m.size += sizeof value;
    put_integer(&m, 20, 1);
    put_message(node, 5, &m);
}

static inline void put_whole(message *node, const char *name, int64_t value)
{
    message m = { .size = 0 };

    put_text(&m, 1, name);
    put_integer(&m, 3, value);
    put_integer(&m, 20, 2);
    put_message(node, 5, &m);
}

static inline void put_text_attribute(message *node, const char *name, const char *value)
{
    message m = { .size = 0 };

    put_text(&m, 1, name);
    put_text(&m, 4, value);
    put_integer(&m, 20, 3);
    put_message(node, 5, &m);
}

static inline void put_tensor_attribute(message *node, const char *name, const message *tensor)
{
    message m = { .size = 0 };

    put_text(&m, 1, name);
    put_message(&m, 5, tensor);
    put_integer(&m, 20, 4);
    put_message(node, 5, &m);
}

/* ValueInfoProto in which PyTorch says what a weight is. */
static inline void role_put(message *graph, const char *name, const char *role)
{
    message info = { .size = 0 }, pair = { .size = 0 };

    put_text(&pair, 1, "pkg.torch.export.graph_signature.InputSpec.kind");
    put_text(&pair, 2, role);
    put_text(&info, 1, name);
    put_message(&info, 4, &pair);
    put_message(graph, 13, &info);
}

static inline const char *written(const message *graph)
{
    message m = model_of(graph, 20);

    return scratch_write("net.onnx", m.bytes, m.size);
}

/* From x to y: values, and their shape. */
static inline void ends_put(message *graph, int rank, const int64_t *shape)
{
    message m = value_of("x", rank, shape);

    put_message(graph, 11, &m);
    m = value_of("y", 1, SHAPE(-1));
    put_message(graph, 12, &m);
}

static inline int64_t predicted(const message *graph, const void *inputs, int64_t samples, float *outputs)
{
    const cek_predictor_options options = { .size = sizeof options, .batch = samples };
    int64_t shape[CEK_RANK_MAX], count = samples;
    cek_predictor *predictor;
    cek_model *model;
    int rank;

    assert_ok(cek_model_read_onnx(written(graph), NULL, &model));
    rank = cek_model_output_shape(model, shape);
    for (int i = 0; i < rank; i++)
        count *= shape[i];
    ck_assert_int_le(count, MOST);
    assert_ok(cek_predictor_create(model, devices, 1, &options, &predictor));
    assert_ok(cek_predictor_run(predictor, inputs, samples, outputs));
    cek_predictor_free(predictor);
    cek_model_free(model);
    return count;
}

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

#endif
