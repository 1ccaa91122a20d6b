/* layers.c - every layer of layers.h, from the public headers alone: what it is called with and gives, the names and
 * shapes of its parameters, its gradients against differences in double and, to the bit, on a device that fuses
 * nothing, and that one bad option is refused with the layer's name. CEKERNELS_TEST_LONG: of 20 random sizes for 3. */
#include "tests/unit/masked.h"

#include <cekernels/parts.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scratch.h"
#include "tests/suite.h"

enum { ROWS = 5, VALUES = 4096, OUTPUTS = 3, SEEDS = 3, SEEDS_LONG = 20 };

static float inputs[ROWS * VALUES], targets[ROWS * OUTPUTS];
static cek_engine *engine;
static cek_device **devices;
static size_t device_count;

static uint32_t state;
static int pick(int low, int high)
{
    state = state * 1664525u + 1013904223u;
    return low + (int)((state >> 8) % (uint32_t)(high - low + 1));
}

static void setup(void)
{
    state = 5;
    for (int i = 0; i < ROWS * VALUES; i++)
        inputs[i] = (float)pick(-999, 999) / 500;
    for (int i = 0; i < ROWS * OUTPUTS; i++)
        targets[i] = (float)pick(-9, 9) / 10;
    assert_ok(cek_engine_create(NULL, &engine));
    assert_ok(cek_engine_select(engine, "reference:0", CEK_PROFILE_TRAINING, &devices, &device_count));
}

static void teardown(void)
{
    free(devices);
    cek_engine_free(engine);
}

/* ---- the layers ---- */

/* Adds the layer behind node x, whose shape is given; sizes of options are drawn. */
typedef struct layer_case {
    const char *name;
    int rank; /* of a sample */
    int64_t shape[4];
    int (*add)(cek_model *m, int x, const int64_t *shape);
    const char *parameters; /* "name:shape name:shape", or NULL where sizes are drawn */
} layer_case;

static int conv(cek_model *m, int x, bool transposed, cek_conv_layer c)
{
    int y;

    c.size = sizeof c;
    assert_ok(transposed ? cek_model_conv_transposed(m, x, &c, &y) : cek_model_conv(m, x, &c, &y));
    return y;
}

static int conv1d(cek_model *m, int x, const int64_t *shape)
{
    (void)shape;
    return conv(m, x, false, (cek_conv_layer){ .out_channels = 3, .kernel = { 3 }, .stride = { 2 }, .pad_lo = { 2 } });
}
static int conv2d_any(cek_model *m, int x, const int64_t *shape)
{
    cek_conv_layer c = { .out_channels = 4, .groups = (uint32_t)pick(1, 2), .no_bias = pick(0, 1) };

    (void)shape;
    for (int i = 0; i < 2; i++) {
        c.kernel[i] = (uint32_t)pick(1, 3);
        c.stride[i] = (uint32_t)pick(0, 2);
        c.dilation[i] = (uint32_t)pick(0, 2);
        c.pad_lo[i] = (uint32_t)pick(0, 2);
        c.pad_hi[i] = (uint32_t)pick(0, 2);
    }
    return conv(m, x, false, c);
}
static int conv_same(cek_model *m, int x, const int64_t *shape)
{
    int64_t given[CEK_RANK_MAX];
    int y = conv(m, x, false,
                 (cek_conv_layer){ .out_channels = 2, .kernel = { 4, 3 }, .dilation = { 1, 2 }, .same = true });

    ck_assert_int_eq(cek_model_shape(m, y, given), 4);
    ck_assert_int_eq(given[2], shape[1]);
    ck_assert_int_eq(given[3], shape[2]);
    return y;
}
static int conv3d(cek_model *m, int x, const int64_t *shape)
{
    (void)shape;
    return conv(
        m, x, false,
        (cek_conv_layer){ .out_channels = 2, .kernel = { 2, 1, 3 }, .stride = { 1, 2, 1 }, .pad_hi = { 1, 0, 2 } });
}
static int depthwise(cek_model *m, int x, const int64_t *shape)
{
    return conv(
        m, x, false,
        (cek_conv_layer){ .out_channels = (uint32_t)shape[0], .kernel = { 3, 3 }, .groups = (uint32_t)shape[0] });
}
static int transposed1d(cek_model *m, int x, const int64_t *shape)
{
    int64_t given[CEK_RANK_MAX];
    int y =
        conv(m, x, true,
             (cek_conv_layer){ .out_channels = 3, .kernel = { 3 }, .stride = { 2 }, .pad_lo = { 1 }, .more = { 1 } });

    ck_assert_int_eq(cek_model_shape(m, y, given), 3);
    ck_assert_int_eq(given[2], (shape[1] - 1) * 2 - 1 + 3 + 1);
    return y;
}
static int transposed2d(cek_model *m, int x, const int64_t *shape)
{
    cek_conv_layer c = { .out_channels = 4, .groups = (uint32_t)pick(1, 2) };

    (void)shape;
    for (int i = 0; i < 2; i++) {
        c.kernel[i] = (uint32_t)pick(2, 3);
        c.stride[i] = (uint32_t)pick(1, 3);
        c.pad_lo[i] = c.pad_hi[i] = (uint32_t)pick(0, 1);
        c.more[i] = (uint32_t)pick(0, (int)c.stride[i] - 1);
    }
    return conv(m, x, true, c);
}
static int transposed3d(cek_model *m, int x, const int64_t *shape)
{
    (void)shape;
    return conv(m, x, true, (cek_conv_layer){ .out_channels = 2, .kernel = { 2, 1, 2 }, .stride = { 2, 1, 1 } });
}

static int pool(cek_model *m, int x, cek_pool_layer p)
{
    int y;

    p.size = sizeof p;
    assert_ok(cek_model_pool(m, x, &p, &y));
    return y;
}
static int pool1d(cek_model *m, int x, const int64_t *shape)
{
    (void)shape;
    return pool(m, x, (cek_pool_layer){ .mode = CEK_POOL_AVERAGE, .kernel = { 3 }, .stride = { 2 }, .pad_hi = { 1 } });
}
static int pool2d_any(cek_model *m, int x, const int64_t *shape)
{
    cek_pool_layer p = { .mode = pick(0, 1) ? CEK_POOL_MAX : CEK_POOL_AVERAGE,
                         .ceil = pick(0, 1),
                         .valid = pick(0, 1) };

    (void)shape;
    for (int i = 0; i < 2; i++) {
        p.kernel[i] = (uint32_t)pick(2, 3);
        p.stride[i] = (uint32_t)pick(0, 2);
        p.pad_lo[i] = (uint32_t)pick(0, 1);
        p.pad_hi[i] = (uint32_t)pick(0, 1);
    }
    return pool(m, x, p);
}
static int pool3d(cek_model *m, int x, const int64_t *shape)
{
    (void)shape;
    return pool(m, x, (cek_pool_layer){ .mode = CEK_POOL_MAX, .kernel = { 2, 0, 2 }, .ceil = true });
}
static int dilated(cek_model *m, int x, uint32_t mode, bool valid)
{
    return pool(m, x,
                (cek_pool_layer){ .mode = mode,
                                  .kernel = { 2, 3 },
                                  .stride = { (uint32_t)pick(1, 2), 1 },
                                  .pad_lo = { 1, 2 },
                                  .ceil = pick(0, 1),
                                  .valid = valid,
                                  .dilation = { (uint32_t)pick(2, 3), 2 } });
}
static int dilated_max(cek_model *m, int x, const int64_t *shape)
{
    (void)shape;
    return dilated(m, x, CEK_POOL_MAX, false);
}
static int dilated_mean(cek_model *m, int x, const int64_t *shape)
{
    (void)shape;
    return dilated(m, x, CEK_POOL_AVERAGE, false);
}
static int dilated_mean_valid(cek_model *m, int x, const int64_t *shape)
{
    (void)shape;
    return dilated(m, x, CEK_POOL_AVERAGE, true);
}
static int adaptive(cek_model *m, int x, const int64_t *shape)
{
    int y;

    (void)shape;
    assert_ok(cek_model_pool_to(m, x, pick(0, 1) ? CEK_POOL_MAX : CEK_POOL_AVERAGE,
                                (int64_t[]){ pick(1, 4), pick(1, 4) }, &y));
    return y;
}

static int activation(cek_model *m, int x, const int64_t *shape)
{
    cek_activation kind = (cek_activation)(CEK_ACT_GELU_TANH + pick(0, CEK_ACT_HARD_SIGMOID - CEK_ACT_GELU_TANH));
    int y;

    (void)shape;
    assert_ok(cek_model_activation(m, x, kind, &y));
    return y;
}
static int activation_with(cek_model *m, int x, const int64_t *shape)
{
    static const cek_activation kinds[] = { CEK_ACT_LEAKY_RELU, CEK_ACT_ELU, CEK_ACT_SOFTPLUS, CEK_ACT_CLIP };
    const cek_activation_layer a = {
        .size = sizeof a, .kind = kinds[pick(0, 3)], .slope = 0.3, .alpha = 1.7, .beta = 0.6, .low = -0.7, .high = 0.9
    };
    int y;

    (void)shape;
    assert_ok(cek_model_activation_with(m, x, &a, &y));
    return y;
}
static int softmax(cek_model *m, int x, const int64_t *shape)
{
    int y;

    (void)shape;
    assert_ok(cek_model_softmax(m, x, pick(0, 1) ? 1 : -2, &y));
    return y;
}
static int log_softmax(cek_model *m, int x, const int64_t *shape)
{
    int y;

    (void)shape;
    assert_ok(cek_model_log_softmax(m, x, pick(1, 3), &y));
    return y;
}

static int prelu(cek_model *m, int x, const int64_t *shape)
{
    int y;

    assert_ok(cek_model_prelu(m, x, (uint32_t)shape[0], &y));
    return y;
}
static int prelu_one(cek_model *m, int x, const int64_t *shape)
{
    int y;

    (void)shape;
    assert_ok(cek_model_prelu(m, x, 1, &y));
    ck_assert_int_eq(cek_model_prelu(m, x, 2, NULL), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "2 slopes for an input of the shape"));
    return y;
}

typedef cek_status norm_call(cek_model *, int, const cek_norm_layer *, int *);
static int norm(cek_model *m, int x, norm_call *call, cek_norm_layer n)
{
    int y;

    n.size = sizeof n;
    n.epsilon = 0.01;
    assert_ok(call(m, x, &n, &y));
    return y;
}
static int layer_norm(cek_model *m, int x, const int64_t *shape)
{
    (void)shape;
    return norm(m, x, cek_model_layer_norm, (cek_norm_layer){ .axes = 2 });
}
static int layer_norm_bare(cek_model *m, int x, const int64_t *shape)
{
    (void)shape;
    return norm(m, x, cek_model_layer_norm, (cek_norm_layer){ .no_affine = true });
}
static int rms_norm(cek_model *m, int x, const int64_t *shape)
{
    (void)shape;
    return norm(m, x, cek_model_rms_norm, (cek_norm_layer){ 0 });
}
static int group_norm(cek_model *m, int x, const int64_t *shape)
{
    (void)shape;
    return norm(m, x, cek_model_group_norm, (cek_norm_layer){ .groups = 2 });
}
static int instance_norm(cek_model *m, int x, const int64_t *shape)
{
    (void)shape;
    return norm(m, x, cek_model_instance_norm, (cek_norm_layer){ .no_bias = true });
}

static int embedding(cek_model *m, int x, const int64_t *shape)
{
    int index = cek_part_cast(m, cek_part_apply(m, CEK_PW_ABS, cek_part_scale(m, 0, 2, 0), -1), CEK_I32), y;

    assert_ok(cek_model_embedding(m, index, 5, 3, &y));
    return cek_part_apply(m, CEK_PW_MUL, y, cek_part_reshape(m, x, 3, (int64_t[]){ CEK_SAMPLES, shape[0], 1 }));
}

static int attend(cek_model *m, int q, int k, int v, int mask, cek_attention_layer a)
{
    int y;

    a.size = sizeof a;
    assert_ok(cek_model_attention(m, q, k, v, mask, &a, &y));
    return y;
}
static int self_attention(cek_model *m, int x, const int64_t *shape)
{
    (void)shape;
    return attend(m, x, x, x, -1, (cek_attention_layer){ .heads = 2, .causal = true });
}
static int attention_without_bias(cek_model *m, int x, const int64_t *shape)
{
    (void)shape;
    return attend(m, x, x, x, -1, (cek_attention_layer){ .heads = 1, .no_bias = true });
}
static int cross_attention(cek_model *m, int x, const int64_t *shape)
{
    const cek_parameter_options o = {
        .size = sizeof o, .rank = 2, .shape = (int64_t[]){ shape[0], shape[0] - 1 }, .fan_in = 1
    };
    int memory = cek_part_slice(m, x, 1, 1, shape[0] - 1), values = cek_part_slice(m, memory, 2, 0, 3);

    return attend(m, x, memory, values, cek_part_parameter(m, "mask", &o), (cek_attention_layer){ .heads = 2 });
}

static int lstm(cek_model *m, int x, const int64_t *shape)
{
    const cek_recurrent_layer r = { .size = sizeof r, .hidden = 2, .layers = 2, .bidirectional = true };
    int y;

    (void)shape;
    assert_ok(cek_model_lstm(m, x, &r, &y));
    return y;
}
static int end_states(cek_model *m, int x, const int64_t *shape)
{
    int steps = lstm(m, x, shape), states = cek_part_state(m, steps, CEK_STATE_HIDDEN);
    int64_t sizes[CEK_RANK_MAX];

    ck_assert_int_eq(cek_model_shape(m, states, sizes), 3);
    ck_assert_int_eq(sizes[1], 4); /* two layers in two directions */
    return cek_part_apply(m, CEK_PW_MUL, states, cek_part_state(m, steps, CEK_STATE_CELL));
}
static int gru(cek_model *m, int x, const int64_t *shape)
{
    const cek_recurrent_layer r = { .size = sizeof r, .hidden = 3, .no_bias = pick(0, 1) };
    int y;

    (void)shape;
    assert_ok(cek_model_gru(m, x, &r, &y));
    return y;
}

static const layer_case cases[] = {
    { "conv1d", 2, { 2, 7 }, conv1d, "0.weight:3x2x3 0.bias:3" },
    { "conv2d", 3, { 4, 6, 5 }, conv2d_any, NULL },
    { "conv_same", 3, { 2, 5, 4 }, conv_same, "0.weight:2x2x4x3 0.bias:2" },
    { "conv3d", 4, { 2, 3, 4, 3 }, conv3d, "0.weight:2x2x2x1x3 0.bias:2" },
    { "depthwise", 3, { 3, 4, 4 }, depthwise, "0.weight:3x1x3x3 0.bias:3" },
    { "transposed1d", 2, { 2, 4 }, transposed1d, "0.weight:2x3x3 0.bias:3" },
    { "transposed2d", 3, { 4, 3, 2 }, transposed2d, NULL },
    { "transposed3d", 4, { 2, 2, 3, 2 }, transposed3d, "0.weight:2x2x2x1x2 0.bias:2" },
    { "pool1d", 2, { 2, 7 }, pool1d, "" },
    { "pool2d", 3, { 2, 6, 5 }, pool2d_any, "" },
    { "pool3d", 4, { 2, 3, 2, 3 }, pool3d, "" },
    { "dilated_max", 3, { 2, 6, 5 }, dilated_max, "" },
    { "dilated_mean", 3, { 2, 6, 5 }, dilated_mean, "" },
    { "dilated_mean_valid", 3, { 2, 6, 5 }, dilated_mean_valid, "" },
    { "adaptive", 3, { 2, 5, 6 }, adaptive, "" },
    { "activation", 2, { 3, 4 }, activation, "" },
    { "activation_with", 2, { 3, 4 }, activation_with, "" },
    { "prelu", 3, { 3, 2, 4 }, prelu, "0.weight:3" },
    { "prelu_one", 2, { 3, 4 }, prelu_one, "0.weight:1" },
    { "softmax", 2, { 3, 4 }, softmax, "" },
    { "log_softmax", 3, { 3, 2, 4 }, log_softmax, "" },
    { "layer_norm", 3, { 2, 3, 4 }, layer_norm, "0.weight:3x4 0.bias:3x4" },
    { "layer_norm_bare", 2, { 2, 5 }, layer_norm_bare, "" },
    { "rms_norm", 2, { 2, 5 }, rms_norm, "0.weight:5" },
    { "group_norm", 3, { 4, 3, 2 }, group_norm, "0.weight:4 0.bias:4" },
    { "instance_norm", 3, { 3, 2, 4 }, instance_norm, "0.weight:3" },
    { "embedding", 1, { 4 }, embedding, NULL },
    { "self_attention",
      2,
      { 3, 4 },
      self_attention,
      "0.in_proj_weight:12x4 0.in_proj_bias:12 0.out_proj.weight:4x4 0.out_proj.bias:4" },
    { "attention_without_bias", 2, { 3, 2 }, attention_without_bias, "0.in_proj_weight:6x2 0.out_proj.weight:2x2" },
    { "cross_attention", 2, { 3, 4 }, cross_attention, NULL },
    { "lstm",
      2,
      { 3, 2 },
      lstm,
      "0.weight_ih_l0:8x2 0.weight_hh_l0:8x2 0.bias_ih_l0:8 0.bias_hh_l0:8 "
      "0.weight_ih_l0_reverse:8x2 0.weight_hh_l0_reverse:8x2 0.bias_ih_l0_reverse:8 0.bias_hh_l0_reverse:8 "
      "0.weight_ih_l1:8x4 0.weight_hh_l1:8x2 0.bias_ih_l1:8 0.bias_hh_l1:8 "
      "0.weight_ih_l1_reverse:8x4 0.weight_hh_l1_reverse:8x2 0.bias_ih_l1_reverse:8 0.bias_hh_l1_reverse:8" },
    { "end_states", 2, { 3, 2 }, end_states, NULL },
    { "gru", 2, { 4, 2 }, gru, NULL },
};
enum { CASES = sizeof cases / sizeof *cases };

/* The input as a sample of the case's shape. */
static int model_make(const layer_case *c, cek_model **m)
{
    int64_t shape[5] = { CEK_SAMPLES }, features = 1;

    for (int i = 0; i < c->rank; i++)
        features *= shape[1 + i] = c->shape[i];
    assert_ok(cek_model_create(1, &features, m));
    return cek_part_reshape(*m, 0, 1 + c->rank, shape);
}

START_TEST(parameters_have_pytorchs_names_and_shapes)
{
    for (int i = 0; i < CASES; i++) {
        const layer_case *c = &cases[i];
        cek_model *m;
        char text[1024] = "";
        int x;

        if (!c->parameters)
            continue;
        x = model_make(c, &m);
        assert_ok(cek_model_name(m, "0"));
        c->add(m, x, c->shape);
        assert_ok(cek_model_status(m));
        for (size_t p = 0; p < cek_model_parameter_count(m); p++) {
            cek_parameter parameter;
            size_t used = strlen(text);

            assert_ok(cek_model_parameter(m, p, &parameter));
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s:", p ? " " : "", parameter.name);
            for (int k = 0; k < parameter.rank; k++)
                used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", k ? "x" : "",
                                         (long long)parameter.shape[k]);
        }
        ck_assert_msg(strcmp(text, c->parameters) == 0, "%s: %s", c->name, text);
        cek_model_free(m);
    }
}
END_TEST

/* ---- gradients ---- */

/* The layer, of the input times a parameter, and a mean of squares behind it. */
static cek_model *network(const layer_case *c)
{
    const cek_parameter_options each = { .size = sizeof each, .rank = c->rank, .shape = c->shape, .fan_in = 1 };
    cek_model *m;
    int x, target, d;

    x = model_make(c, &m);
    x = cek_part_apply(m, CEK_PW_MUL, x, cek_part_parameter(m, "x", &each));
    x = c->add(m, x, c->shape);
    assert_ok(cek_model_status(m));
    assert_ok(cek_model_flatten(m, x, &x));
    assert_ok(cek_model_linear(m, x, OUTPUTS, true, &x));
    target = cek_part_target(m, CEK_F32, 1, (int64_t[]){ OUTPUTS });
    d = cek_part_apply(m, CEK_PW_SUB, cek_part_apply(m, CEK_PW_TANH, x, -1), target);
    cek_part_loss(m, cek_part_reduce(m, d, CEK_REDUCE_SUM_SQUARES, 2, false), -1);
    assert_ok(cek_model_status(m));
    cek_model_init(m, 3);
    return m;
}

static cek_trainer *step(cek_model *m, double *loss)
{
    cek_trainer *t;
    cek_optimizer sgd = { .size = sizeof sgd, .algorithm = CEK_OPTIMIZER_SGD, .lr = 1e-30 };
    cek_trainer_options o = { .size = sizeof o, .batch = ROWS, .type = CEK_F64, .optimizer = &sgd };
    cek_batch batch = { .size = sizeof batch,
                        .count = ROWS,
                        .inputs = inputs,
                        .targets = targets,
                        .input_type = CEK_F32,
                        .target_columns = OUTPUTS };
    cek_step_result r = { .size = sizeof r };

    assert_ok(cek_trainer_create(m, devices, device_count, &o, &t));
    assert_ok(cek_trainer_step(t, &batch, &r));
    *loss = r.loss;
    return t;
}

static double loss_with(cek_model *m, float *at, float value)
{
    float was = *at;
    double loss;

    *at = value;
    cek_trainer_free(step(m, &loss));
    *at = was;
    return loss;
}

/* Where the loss has a corner within the distance, one of a closer pair has none. */
static bool difference_holds(cek_model *m, float *at, double gradient)
{
    for (float distance = 0x1p-10f; distance >= 0x1p-16f; distance /= 8) {
        float up = *at + distance, down = *at - distance;
        double difference = (loss_with(m, at, up) - loss_with(m, at, down)) / ((double)up - (double)down);

        if (fabs(difference - gradient) <= 2e-6 + 1e-5 * fabs(gradient))
            return true;
    }
    return false;
}

static void gradients_hold(const char *name, cek_model *m)
{
    double loss;
    cek_trainer *t = step(m, &loss);

    ck_assert(isfinite(loss));
    for (size_t p = 0; p < cek_model_parameter_count(m); p++) {
        cek_parameter parameter;
        double *gradient;
        bool any = false;

        assert_ok(cek_model_parameter(m, p, &parameter));
        gradient = malloc((size_t)parameter.count * sizeof *gradient);
        assert_ok(cek_trainer_read_gradient(t, p, gradient, parameter.count));
        for (int64_t i = 0; i < parameter.count; i++)
            any |= gradient[i] != 0;
        for (int64_t i = pick(0, 1) % parameter.count; i < parameter.count; i += 1 + parameter.count / 3)
            ck_assert_msg(difference_holds(m, &parameter.data[i], gradient[i]), "%s: gradient %.9g of %s[%lld]", name,
                          gradient[i], parameter.name, (long long)i);
        ck_assert_msg(any, "%s: %s has no gradient", name, parameter.name);
        free(gradient);
    }
    cek_trainer_free(t);
}

START_TEST(each_layer_has_its_gradients)
{
    const layer_case *c = &cases[_i];

    setup();
    for (uint32_t seed = 0; seed < (getenv("CEKERNELS_TEST_LONG") ? SEEDS_LONG : SEEDS); seed++) {
        cek_model *m;

        state = 100 * seed + (uint32_t)_i;
        pick(0, 1);
        m = network(c);
        gradients_hold(c->name, m);
        cek_model_free(m);
    }
    teardown();
}
END_TEST

/* Of all parameters, one behind the other, into memory of the caller's; returns how many. */
static int64_t gradients_read(cek_model *m, double **out)
{
    double loss;
    cek_trainer *t = step(m, &loss);
    int64_t count = 0;

    *out = NULL;
    for (size_t p = 0; p < cek_model_parameter_count(m); p++) {
        cek_parameter parameter;

        assert_ok(cek_model_parameter(m, p, &parameter));
        *out = realloc(*out, (size_t)(count + parameter.count) * sizeof **out);
        assert_ok(cek_trainer_read_gradient(t, p, *out + count, parameter.count));
        count += parameter.count;
    }
    cek_trainer_free(t);
    return count;
}

START_TEST(each_layer_has_the_same_gradients_where_nothing_is_fused)
{
    const layer_case *c = &cases[_i];
    double *fused, *apart;
    int64_t count;
    cek_model *m;

    setup();
    state = (uint32_t)_i;
    m = network(c);
    count = gradients_read(m, &fused);
    device_mask(devices[0]);
    ck_assert_int_eq(gradients_read(m, &apart), count);
    ck_assert_int_ge(masked.refused, 1); /* that at the end, if no other */
    ck_assert_mem_eq(fused, apart, (size_t)count * sizeof *fused);
    free(fused);
    free(apart);
    cek_model_free(m);
    teardown();
}
END_TEST

/* ---- refusals ---- */

static cek_status bad_layer(int which, cek_model *m, int steps, const char **said)
{
    const cek_conv_layer none = { .size = sizeof none, .out_channels = 1 };
    const cek_conv_layer more = { .size = sizeof more, .out_channels = 1, .kernel = { 1, 1 }, .more = { 1, 0 } };
    const cek_conv_layer same = {
        .size = sizeof same, .out_channels = 1, .kernel = { 3, 3 }, .pad_hi = { 0, 1 }, .same = true
    };
    const cek_conv_layer large = { .size = sizeof large, .out_channels = 1, .kernel = { 1, 9 }, .pad_hi = { 0, 1 } };
    const cek_conv_layer gone = { .size = sizeof gone, .out_channels = 1, .kernel = { 1, 1 }, .pad_lo = { 4, 3 } };
    const cek_pool_layer wide = { .size = sizeof wide, .mode = CEK_POOL_MAX, .kernel = { 2, 2 }, .pad_lo = { 2, 0 } };
    const cek_activation_layer soft = { .size = sizeof soft, .kind = CEK_ACT_SOFTPLUS, .beta = -1 };
    const cek_norm_layer axes = { .size = sizeof axes, .axes = 4 }, groups = { .size = sizeof groups, .groups = 2 };
    const cek_attention_layer heads = { .size = sizeof heads, .heads = 3 };
    const cek_recurrent_layer stateless = { .size = sizeof stateless };
    const cek_embedding_layer pads = { .size = sizeof pads, .pads = true, .count = 5, .width = 1, .padding = 5 };
    const cek_embedding_layer vast = { .size = sizeof vast, .pads = true, .count = (1 << 24) + 1, .width = 1 };
    const cek_pool_layer far = {
        .size = sizeof far, .mode = CEK_POOL_MAX, .kernel = { UINT32_MAX, 1 }, .dilation = { UINT32_MAX, 1 }
    };

    switch (which) {
    case 0: *said = "conv): 1 output channels, kernel 0x0"; return cek_model_conv(m, 0, &none, NULL);
    case 1: *said = "conv): more elements"; return cek_model_conv(m, 0, &more, NULL);
    case 2: *said = "conv): padding of axis 3"; return cek_model_conv(m, 0, &same, NULL);
    case 3:
        *said = "kernel 1x9 (dilation 1x1) is larger than the input 3x4x4 with padding 0x0 to 0x1";
        return cek_model_conv(m, 0, &large, NULL);
    case 4:
        *said = "conv_transposed): 1 more elements at the end of axis 2";
        return cek_model_conv_transposed(m, 0, &more, NULL);
    case 5: *said = "leaves nothing of axis 2 of the input 3x4x4"; return cek_model_conv_transposed(m, 0, &gone, NULL);
    case 6: *said = "padding 2x0 to 0x0 is more than half of the kernel 2x2"; return cek_model_pool(m, 0, &wide, NULL);
    case 7: *said = "to the size 2x0 of the input 3x4x4"; return cek_model_pool_to(m, 0, 1, (int64_t[]){ 2, 0 }, NULL);
    case 8: *said = "softplus): beta -1"; return cek_model_activation_with(m, 0, &soft, NULL);
    case 9: *said = "activation): unknown kind 99"; return cek_model_activation(m, 0, 99, NULL);
    case 10: *said = "softmax): axis 4 of an input of the shape 3x4x4"; return cek_model_softmax(m, 0, 4, NULL);
    case 11: *said = "log_softmax): "; return cek_model_log_softmax(m, 0, 0, NULL);
    case 12: *said = "layer_norm): over the last 4 axes"; return cek_model_layer_norm(m, 0, &axes, NULL);
    case 13: *said = "group_norm): 2 groups"; return cek_model_group_norm(m, 0, &groups, NULL);
    case 14: *said = "embedding): a table of 0 rows"; return cek_model_embedding(m, 0, 0, 3, NULL);
    case 15: *said = "attention): 3 heads"; return cek_model_attention(m, steps, steps, steps, -1, &heads, NULL);
    case 16:
        *said = "attention): takes query [N,T,E], key and value [N,S,..], its inputs have the shapes 3x16, 3x4x4 and";
        return cek_model_attention(m, steps, 0, steps, -1, &heads, NULL);
    case 17: *said = "lstm): a state of 0"; return cek_model_lstm(m, steps, &stateless, NULL);
    case 18: *said = "embedding): row 5 of 5 as padding"; return cek_model_embedding_with(m, 0, &pads, NULL);
    case 19:
        *said = "embedding): padding in a table of 16777217 rows, there are 16777216 at most";
        return cek_model_embedding_with(m, 0, &vast, NULL);
    case 20: *said = "kernel 4294967295x1 is larger than the input 3x4x4"; return cek_model_pool(m, 0, &far, NULL);
    default: *said = "gru): takes steps [N,T,D]"; return cek_model_gru(m, 0, &stateless, NULL);
    }
}

START_TEST(each_refusal_names_layer_and_shapes)
{
    const char *said;
    cek_model *m;
    int steps;

    assert_ok(cek_model_create(3, (int64_t[]){ 3, 4, 4 }, &m));
    steps = cek_part_reshape(m, 0, 3, (int64_t[]){ CEK_SAMPLES, 3, 16 });
    ck_assert_int_ge(steps, 0);
    for (int i = 0; i <= 21; i++) {
        cek_status st = bad_layer(i, m, steps, &said);

        ck_assert_msg(st == CEK_INVALID, "%d: %s", i, cek_status_name(st));
        ck_assert_msg(strstr(cek_error_text(), said) != NULL, "%d: %s", i, cek_error_text());
        ck_assert_uint_eq(cek_model_parameter_count(m), 0);
    }
    cek_model_free(m);
}
END_TEST

/* 2000 numbers of deviation 1: their mean is within 5 deviations of 0, the mean of their squares of 1. */
START_TEST(an_embedding_begins_with_normal_numbers)
{
    cek_model *m;
    cek_parameter weight;
    double sum = 0, squares = 0;

    assert_ok(cek_model_create(1, (int64_t[]){ 1 }, &m));
    assert_ok(cek_model_embedding(m, 0, 200, 10, NULL));
    cek_model_init(m, 1);
    assert_ok(cek_model_parameter(m, 0, &weight));
    for (int i = 0; i < 2000; i++) {
        sum += weight.data[i];
        squares += (double)weight.data[i] * weight.data[i];
    }
    ck_assert_double_le(fabs(sum / 2000), 5 / sqrt(2000));
    ck_assert_double_le(fabs(squares / 2000 - 1), 5 * sqrt(2.0 / 2000));
    cek_model_free(m);
}
END_TEST

/* It gives its row, which stays zeros: what the other words teach goes to theirs. */
START_TEST(an_embedding_leaves_its_padding_alone)
{
    const cek_embedding_layer layer = { .size = sizeof layer, .pads = true, .count = 4, .width = 2, .padding = 2 };
    const float words[6] = { 2, 1, 2, 3, 2, 2 };
    const int32_t labels[6] = { 0, 1, 1, 0, 1, 0 };
    const cek_trainer_options o = { .size = sizeof o, .batch = 6, .type = CEK_F64 };
    const cek_batch batch = {
        .size = sizeof batch, .count = 6, .inputs = words, .targets = labels, .input_type = CEK_F32
    };
    cek_parameter weight;
    cek_trainer *t;
    double gradient[8];
    cek_model *m;
    int x;

    setup();
    assert_ok(cek_model_create(1, (int64_t[]){ 1 }, &m));
    assert_ok(cek_model_embedding_with(m, 0, &layer, &x));
    assert_ok(cek_model_flatten(m, x, &x));
    assert_ok(cek_model_linear(m, x, 2, true, NULL));
    cek_model_init(m, 1);
    assert_ok(cek_model_parameter(m, 0, &weight));
    for (int i = 0; i < 8; i++)
        ck_assert((weight.data[i] == 0) == (i / 2 == 2));
    weight.data[4] = 0.5f;
    assert_ok(cek_trainer_create(m, devices, device_count, &o, &t));
    assert_ok(cek_trainer_step(t, &batch, NULL));
    assert_ok(cek_trainer_read_gradient(t, 0, gradient, 8));
    for (int i = 0; i < 8; i++)
        ck_assert((gradient[i] == 0) == (i / 2 == 2 || i / 2 == 0)); /* nobody says word 0 */
    cek_trainer_free(t);
    cek_model_free(m);
    teardown();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layers");
    TCase *tcase = tcase_create("layers");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, parameters_have_pytorchs_names_and_shapes);
    tcase_add_loop_test(tcase, each_layer_has_its_gradients, 0, CASES);
    tcase_add_loop_test(tcase, each_layer_has_the_same_gradients_where_nothing_is_fused, 0, CASES);
    tcase_add_test(tcase, each_refusal_names_layer_and_shapes);
    tcase_add_test(tcase, an_embedding_begins_with_normal_numbers);
    tcase_add_test(tcase, an_embedding_leaves_its_padding_alone);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
