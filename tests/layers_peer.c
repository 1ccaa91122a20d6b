/* layers_peer.c - what scripts/compare-pytorch-layers asks: one layer, loss, optimizer or schedule, computed once.
 *
 *     layers_peer DEVICE TYPE FOLDER KIND [KEY=NUMBER[,NUMBER...]]...
 *
 * FOLDER has inputs.f32 (samples of shape=...), state.safetensors (the parameters; "x" multiplies the inputs), and for
 * a layer direction.f32: the loss is the mean over samples of the sum of outputs times that. For a loss targets.f32 or
 * targets.i32. Written are outputs.f32, gradients.safetensors and, as the step left the parameters, after.safetensors;
 * the losses, or with a schedule the rates, go to standard output.
 * From the public headers alone. */
#include <cekernels/parts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 6, PATH = 512 };

static char **keys;
static const char *folder;

static void fail(const char *what)
{
    fprintf(stderr, "layers_peer: %s: %s\n", what, cek_error_text());
    exit(1);
}

#define CHECK(call)           \
    do {                      \
        if ((call) != CEK_OK) \
            fail(#call);      \
    } while (0)

static const char *path(const char *name)
{
    static char text[4][PATH];
    static int next;

    next = (next + 1) % 4;
    snprintf(text[next], PATH, "%s/%s", folder, name);
    return text[next];
}

/* ---- numbers of the case ---- */

static const char *text_of(const char *key)
{
    size_t length = strlen(key);

    for (char **k = keys; *k; k++)
        if (strncmp(*k, key, length) == 0 && (*k)[length] == '=')
            return *k + length + 1;
    return NULL;
}

static int numbers(const char *key, int most, double *out)
{
    const char *at = text_of(key);
    int count = 0;

    while (at && count < most) {
        out[count++] = strtod(at, NULL);
        at = strchr(at, ',');
        at = at ? at + 1 : NULL;
    }
    return count;
}

static double number(const char *key)
{
    double value = 0;

    numbers(key, 1, &value);
    return value;
}

static uint32_t count_of(const char *key)
{
    return (uint32_t)number(key);
}

static void counts(const char *key, uint32_t out[3])
{
    double values[3] = { 0 };

    numbers(key, 3, values);
    for (int i = 0; i < 3; i++)
        out[i] = (uint32_t)values[i];
}

static int shape_of(const char *key, int64_t *shape)
{
    double values[CEK_RANK_MAX - 1];
    int rank = numbers(key, CEK_RANK_MAX - 1, values); /* beside the samples */

    for (int i = 0; i < rank; i++)
        shape[i] = (int64_t)values[i];
    return rank;
}

static void *file_read(const char *name, size_t *bytes)
{
    FILE *file = fopen(path(name), "rb");
    void *data = malloc(1 << 22);

    if (!file || !data) {
        fprintf(stderr, "layers_peer: %s cannot be read\n", path(name));
        exit(1);
    }
    *bytes = fread(data, 1, 1 << 22, file);
    fclose(file);
    return data;
}

static bool is_there(const char *name)
{
    FILE *file = fopen(path(name), "rb");

    if (file)
        fclose(file);
    return file != NULL;
}

/* ---- layers ---- */

static void layer_fill(cek_conv_layer *c, cek_pool_layer *p)
{
    *c = (cek_conv_layer){ .size = sizeof *c,
                           .out_channels = count_of("out"),
                           .groups = count_of("groups"),
                           .same = count_of("same"),
                           .no_bias = count_of("no_bias") };
    counts("kernel", c->kernel);
    counts("stride", c->stride);
    counts("dilation", c->dilation);
    counts("pad", c->pad_lo);
    counts("pad", c->pad_hi);
    counts("more", c->more);
    *p = (cek_pool_layer){ .size = sizeof *p,
                           .mode = count_of("max") ? CEK_POOL_MAX : CEK_POOL_AVERAGE,
                           .ceil = count_of("ceil"),
                           .valid = count_of("valid") };
    counts("kernel", p->kernel);
    counts("stride", p->stride);
    counts("dilation", p->dilation);
    counts("pad", p->pad_lo);
    counts("pad", p->pad_hi);
}

static cek_status attention_add(cek_model *m, int x, int *y)
{
    const cek_attention_layer a = {
        .size = sizeof a, .heads = count_of("heads"), .causal = count_of("causal"), .no_bias = count_of("no_bias")
    };
    int64_t shape[CEK_RANK_MAX];
    int key = x, value = x;

    cek_model_shape(m, x, shape);
    if (count_of("cross")) {
        key = cek_part_slice(m, x, 1, 1, shape[1] - 1);
        value = cek_part_slice(m, key, 2, 0, shape[2] - 1);
        key = cek_part_slice(m, key, 2, 1, shape[2] - 1);
    }
    CHECK(cek_model_name(m, "layer"));
    return cek_model_attention(m, x, key, value, -1, &a, y);
}

static cek_status embedding_add(cek_model *m, int x, int *y)
{
    int64_t shape[CEK_RANK_MAX];
    int index = cek_part_cast(m, 0, CEK_I32), rank = cek_model_shape(m, x, shape);

    CHECK(cek_model_name(m, "layer"));
    if (cek_model_embedding_with(m, index,
                                 &(cek_embedding_layer){ .size = sizeof(cek_embedding_layer),
                                                         .count = count_of("rows"),
                                                         .width = count_of("width"),
                                                         .pads = text_of("padding") != NULL,
                                                         .padding = count_of("padding") },
                                 y) != CEK_OK)
        return CEK_INVALID;
    shape[rank++] = 1;
    *y = cek_part_apply(m, CEK_PW_MUL, *y, cek_part_reshape(m, x, rank, shape));
    return cek_model_status(m);
}

static cek_status layer_add(cek_model *m, const char *kind, int x, int *y)
{
    const cek_norm_layer norm = {
        .size = sizeof norm, .axes = count_of("axes"), .groups = count_of("groups"), .no_affine = count_of("no_affine")
    };
    const cek_recurrent_layer recurrent = { .size = sizeof recurrent,
                                            .hidden = count_of("hidden"),
                                            .layers = count_of("layers"),
                                            .bidirectional = count_of("both") };
    const cek_activation_layer activation = { .size = sizeof activation,
                                              .kind = count_of("activation"),
                                              .slope = number("slope"),
                                              .alpha = number("elu_alpha"),
                                              .beta = number("beta"),
                                              .low = number("low"),
                                              .high = number("high") };
    int64_t to[CEK_RANK_MAX];
    cek_conv_layer conv;
    cek_pool_layer pool;

    if (strcmp(kind, "attention") == 0)
        return attention_add(m, x, y);
    if (strcmp(kind, "embedding") == 0)
        return embedding_add(m, x, y);
    layer_fill(&conv, &pool);
    CHECK(cek_model_name(m, "layer"));
    if (strcmp(kind, "conv") == 0)
        return cek_model_conv(m, x, &conv, y);
    if (strcmp(kind, "conv_transposed") == 0)
        return cek_model_conv_transposed(m, x, &conv, y);
    if (strcmp(kind, "pool") == 0)
        return cek_model_pool(m, x, &pool, y);
    if (strcmp(kind, "pool_to") == 0)
        return shape_of("to", to) ? cek_model_pool_to(m, x, pool.mode, to, y) : CEK_INVALID;
    if (strcmp(kind, "linear") == 0)
        return cek_model_linear(m, x, count_of("out"), true, y);
    if (strcmp(kind, "activation") == 0)
        return cek_model_activation_with(m, x, &activation, y);
    if (strcmp(kind, "prelu") == 0)
        return cek_model_prelu(m, x, count_of("slopes"), y);
    if (strcmp(kind, "softmax") == 0)
        return cek_model_softmax(m, x, (int)number("axis"), y);
    if (strcmp(kind, "log_softmax") == 0)
        return cek_model_log_softmax(m, x, (int)number("axis"), y);
    if (strcmp(kind, "batch_norm") == 0)
        return cek_model_batch_norm(m, x, &(cek_batch_norm_layer){ .size = sizeof(cek_batch_norm_layer) }, y);
    if (strcmp(kind, "layer_norm") == 0)
        return cek_model_layer_norm(m, x, &norm, y);
    if (strcmp(kind, "rms_norm") == 0)
        return cek_model_rms_norm(m, x, &norm, y);
    if (strcmp(kind, "group_norm") == 0)
        return cek_model_group_norm(m, x, &norm, y);
    if (strcmp(kind, "instance_norm") == 0)
        return cek_model_instance_norm(m, x, &norm, y);
    if (strcmp(kind, "lstm") == 0 || strcmp(kind, "gru") == 0) {
        CHECK((kind[0] == 'l' ? cek_model_lstm : cek_model_gru)(m, x, &recurrent, y));
        if (count_of("state"))
            *y = cek_part_state(m, *y, (cek_state)(count_of("state") - 1));
        return cek_model_status(m);
    }
    fprintf(stderr, "layers_peer: no layer is called %s\n", kind);
    exit(2);
}

/* Inputs times "x", as samples of the case's shape; with front=1 behind a product with "front.weight" too. */
static cek_model *model_begin(int *x)
{
    int64_t shape[CEK_RANK_MAX] = { CEK_SAMPLES }, features = 1;
    const int rank = shape_of("shape", shape + 1);
    const cek_parameter_options each = { .size = sizeof each, .rank = rank, .shape = shape + 1, .fan_in = 1 };
    cek_model *m;
    int factor;

    for (int i = 1; i <= rank; i++)
        features *= shape[i];
    CHECK(cek_model_create(1, &features, &m));
    CHECK(cek_model_name(m, "x"));
    factor = cek_part_parameter(m, "", &each);
    *x = cek_part_apply(m, CEK_PW_MUL, cek_part_reshape(m, 0, rank + 1, shape), factor);
    CHECK(cek_model_status(m));
    if (count_of("front")) {
        const int64_t square[] = { shape[rank], shape[rank] };
        const cek_parameter_options w = { .size = sizeof w, .rank = 2, .shape = square, .fan_in = shape[rank] };

        CHECK(cek_model_name(m, "front"));
        *x = cek_part_matmul(m, *x, cek_part_parameter(m, "weight", &w), true);
        CHECK(cek_model_status(m));
    }
    return m;
}

/* The sum of y times the direction. */
static void direction_add(cek_model *m, int y)
{
    int64_t shape[CEK_RANK_MAX];
    const int rank = cek_model_shape(m, y, shape);
    size_t bytes;
    float *direction = file_read("direction.f32", &bytes);

    CHECK(cek_model_set_output(m, y));
    y = cek_part_apply(m, CEK_PW_MUL, y, cek_part_array(m, rank - 1, shape + 1, direction));
    cek_part_loss(m, cek_part_reduce(m, y, CEK_REDUCE_SUM, ((1u << rank) - 1) & ~1u, false), -1);
    CHECK(cek_model_status(m));
    free(direction);
}

static void loss_add(cek_model *m, int x)
{
    float weights[64];
    double given[64];
    const int count = numbers("weights", 64, given);
    const cek_loss_options o = { .size = sizeof o,
                                 .kind = count_of("loss"),
                                 .weighs = count_of("sample_weights"),
                                 .sample_weights = cek_part_reduce(m, cek_part_apply(m, CEK_PW_ABS, 0, -1),
                                                                   CEK_REDUCE_MEAN, 1u << 1, false),
                                 .weights = count ? weights : NULL,
                                 .smoothing = number("smoothing"),
                                 .beta = number("beta"),
                                 .positive = number("positive"),
                                 .ignores = text_of("ignored") != NULL,
                                 .ignored = (int32_t)number("ignored"),
                                 .sums = count_of("sums") };

    for (int i = 0; i < count; i++)
        weights[i] = (float)given[i];
    CHECK(cek_model_set_output(m, x));
    CHECK(cek_model_loss(m, x, &o, NULL));
}

/* ---- a step ---- */

static void outputs_write(cek_model *m, cek_device *device, cek_dtype type, const float *inputs)
{
    const cek_predictor_options o = { .size = sizeof o, .type = type, .math = count_of("math") };
    int64_t shape[CEK_RANK_MAX], values = ROWS;
    const int rank = cek_model_output_shape(m, shape);
    cek_predictor *p;
    float *outputs;
    FILE *file = fopen(path("outputs.f32"), "wb");

    for (int i = 0; i < rank; i++)
        values *= shape[i];
    outputs = calloc((size_t)values, sizeof *outputs);
    CHECK(cek_predictor_create(m, &device, 1, &o, &p));
    CHECK(cek_predictor_run(p, inputs, ROWS, outputs));
    if (!file || fwrite(outputs, sizeof *outputs, (size_t)values, file) != (size_t)values || fclose(file) != 0)
        fail("outputs.f32");
    cek_predictor_free(p);
    free(outputs);
}

static cek_trainer *trainer_of(cek_model *m, cek_device *device, cek_dtype type, const cek_schedule *schedule)
{
    const uint32_t algorithm = count_of("algorithm");
    const cek_optimizer optimizer = { .size = sizeof optimizer,
                                      .algorithm = algorithm ? algorithm : CEK_OPTIMIZER_SGD,
                                      .flags = count_of("flags"),
                                      .lr = text_of("lr") ? number("lr") : 1e-30,
                                      .weight_decay = number("weight_decay"),
                                      .momentum = number("momentum"),
                                      .dampening = number("dampening"),
                                      .epsilon = number("epsilon"),
                                      .alpha = number("alpha"),
                                      .lr_decay = number("lr_decay"),
                                      .initial_sum = number("initial_sum") };
    const cek_trainer_options o = { .size = sizeof o,
                                    .batch = ROWS,
                                    .type = type,
                                    .math = count_of("math"),
                                    .optimizer = &optimizer,
                                    .schedule = schedule,
                                    .loss_scale = number("loss_scale") };
    cek_trainer *t;

    CHECK(cek_trainer_create(m, &device, 1, &o, &t));
    return t;
}

static double step(cek_trainer *t, const float *inputs, const void *targets, uint32_t columns, cek_dtype type)
{
    const cek_batch batch = { .size = sizeof batch,
                              .count = ROWS,
                              .inputs = inputs,
                              .targets = targets,
                              .input_type = CEK_F32,
                              .target_columns = columns,
                              .target_type = type };
    cek_step_result r = { .size = sizeof r };

    CHECK(cek_trainer_step(t, &batch, &r));
    return r.loss;
}

/* ---- schedules: the rate of each step ---- */

static void rates_print(cek_trainer *t, const float *inputs, const void *targets, bool epochs)
{
    double metrics[64];
    const int steps = (int)number("steps"), given = numbers("metrics", 64, metrics);

    for (int i = 0; i < steps; i++) {
        printf("%.17g\n", cek_trainer_rate(t, 0));
        step(t, inputs, targets, 1, CEK_I32);
        if (epochs)
            CHECK(cek_trainer_end_epoch(t, i < given ? metrics[i] : 0));
    }
}

static cek_schedule schedule_of(int64_t *milestones)
{
    const int count = shape_of("milestones", milestones);

    return (cek_schedule){ .size = sizeof(cek_schedule),
                           .kind = count_of("schedule"),
                           .flags = count_of("schedule_flags"),
                           .milestone_count = (uint32_t)count,
                           .milestones = count ? milestones : NULL,
                           .warmup = (int64_t)number("warmup"),
                           .warmup_start = number("warmup_start"),
                           .period = (int64_t)number("period"),
                           .gamma = number("gamma"),
                           .floor = number("floor"),
                           .patience = (int64_t)number("patience"),
                           .threshold = number("threshold") };
}

static cek_dtype type_of(const char *name)
{
    static const char *const names[] = { [CEK_F32] = "f32", [CEK_F16] = "f16", [CEK_BF16] = "bf16", [CEK_F64] = "f64" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i] && strcmp(names[i], name) == 0)
            return (cek_dtype)i;
    fprintf(stderr, "layers_peer: no type is called %s\n", name);
    exit(2);
}

int main(int argc, char **argv)
{
    cek_engine *engine;
    cek_device *device;
    cek_model *m;
    cek_trainer *t;
    int64_t milestones[CEK_RANK_MAX];
    int x, y;
    size_t bytes;
    cek_dtype type;
    float *inputs;
    void *targets;
    bool values;

    if (argc < 5) {
        fprintf(stderr, "usage: layers_peer DEVICE TYPE FOLDER KIND [KEY=NUMBER]...\n");
        return 2;
    }
    type = type_of(argv[2]);
    folder = argv[3];
    keys = argv + 5;
    CHECK(cek_engine_create(NULL, &engine));
    CHECK(cek_engine_find(engine, argv[1], &device));
    m = model_begin(&x);
    y = x;
    values = is_there("targets.f32");
    inputs = file_read("inputs.f32", &bytes);
    targets = file_read(values ? "targets.f32" : "targets.i32", &bytes);
    if (strcmp(argv[4], "loss") != 0) {
        CHECK(layer_add(m, argv[4], x, &y));
        direction_add(m, y);
    } else {
        loss_add(m, x);
    }
    CHECK(cek_model_load(m, path("state.safetensors")));
    if (text_of("schedule")) {
        const cek_schedule schedule = schedule_of(milestones);

        t = trainer_of(m, device, CEK_F32, &schedule);
        rates_print(t, inputs, targets,
                    schedule.flags & CEK_SCHEDULE_BY_EPOCH || schedule.kind == CEK_SCHEDULE_PLATEAU);
    } else {
        const uint32_t columns = (uint32_t)(bytes / sizeof(float) / ROWS);
        const int steps = text_of("steps") ? (int)number("steps") : 1;

        t = trainer_of(m, device, type, NULL);
        for (int i = 0; i < steps; i++)
            printf("%.17g\n", step(t, inputs, targets, columns, values ? CEK_F32 : CEK_I32));
        CHECK(cek_trainer_save_gradients(t, path("gradients.safetensors")));
        CHECK(cek_trainer_pull(t));
        CHECK(cek_model_save(m, path("after.safetensors")));
        if (steps == 1)
            outputs_write(m, device, type == CEK_F64 ? CEK_F32 : type, inputs);
    }
    cek_trainer_free(t);
    cek_model_free(m);
    cek_engine_free(engine);
    free(inputs);
    free(targets);
    return 0;
}
