/* ours.c - cekernels as a contender: operations, training steps and predictions, through the public headers alone.
 *
 *     ours [DEVICE]       one device, cpu:0 if none is named; models of `infer` are exported to $PEERS_DIR for others
 *
 * Variants: "-", and "f32", which does in f32 what the problem wants in another type. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cekernels/nn.h>

#include "bench/peers/runner.h"

enum { OPERANDS = 3 };

/* What was prepared: an operation with its operands, a trainer with its batch, or a predictor with its samples. */
typedef struct work {
    cek_op *op;
    cek_memory *memory[OPERANDS], *scratch;
    cek_ref refs[OPERANDS], scratch_ref;
    cek_model *model;
    cek_trainer *trainer;
    cek_predictor *predictor;
    cek_batch batch;
    float *inputs, *outputs;
    void *targets;
} work;

static cek_device *device;
static cek_stream *stream;
static work works[RUNNER_SLOTS];

static bool refuse(char text[RUNNER_TEXT], const char *why)
{
    snprintf(text, RUNNER_TEXT, "%.*s", RUNNER_TEXT - 1, why);
    return false;
}

static bool done(cek_status st, char text[RUNNER_TEXT])
{
    return st ? refuse(text, cek_error_text()) : true;
}

static cek_dtype type_of(const runner_problem *p)
{
    if (!strcmp(p->variant, "f32") || !strcmp(p->words[1], "f32"))
        return CEK_F32;
    return !strcmp(p->words[1], "bf16") ? CEK_BF16 : CEK_DTYPE_NONE;
}

/* ---- operations ---- */

/* Bf16 is the upper half of f32: numbers lose their last digits, which is all the same to the time. */
static void halve(void *numbers, uint64_t count)
{
    uint16_t *to = numbers;
    uint32_t bits;
    for (uint64_t i = 0; i < count; i++) {
        memcpy(&bits, (const char *)numbers + i * sizeof bits, sizeof bits);
        to[i] = (uint16_t)(bits >> 16);
    }
}

static bool operand_make(work *w, int slot, cek_dtype type, uint64_t count, char text[RUNNER_TEXT])
{
    const uint64_t bytes = count * cek_dtype_bytes(type);
    float *numbers = runner_floats(count, (uint64_t)slot + 1);
    if (!numbers)
        return refuse(text, "no host memory");
    if (type == CEK_BF16)
        halve(numbers, count);
    cek_status st = cek_memory_alloc(device, bytes, 0, &w->memory[slot]);
    if (!st)
        st = cek_stream_upload(stream, w->refs[slot] = cek_memory_ref(w->memory[slot]), numbers, bytes);
    if (!st)
        st = cek_stream_sync(stream, CEK_FOREVER);
    free(numbers);
    return done(st, text);
}

static bool op_make(work *w, const cek_op_desc *desc, char text[RUNNER_TEXT])
{
    cek_op_info info = { .size = sizeof info };
    cek_status st = cek_op_make(device, desc, &info, &w->op);
    if (!st && info.workspace_bytes) {
        st = cek_memory_alloc(device, info.workspace_bytes, 0, &w->scratch);
        if (!st)
            w->scratch_ref = cek_memory_ref(w->scratch);
    }
    if (!st)
        snprintf(text, RUNNER_TEXT, "%s", info.algorithm);
    return done(st, text);
}

/* gemm TYPE M N K nn|tn|nt|tt */
static bool gemm_prepare(work *w, const runner_problem *p, char text[RUNNER_TEXT])
{
    const cek_dtype type = type_of(p);
    const uint64_t m = runner_number(p, 2), n = runner_number(p, 3), k = runner_number(p, 4);
    if (p->count != 6 || !m || !n || !k || strlen(p->words[5]) != 2)
        return refuse(text, "gemm TYPE M N K nn|tn|nt|tt is wanted");
    const bool ta = p->words[5][0] == 't', tb = p->words[5][1] == 't';
    const cek_gemm_desc desc = { .op = { .size = sizeof desc,
                                         .kind = CEK_OP_GEMM,
                                         .operands = CEK_BIT(CEK_GEMM_A) | CEK_BIT(CEK_GEMM_B) | CEK_BIT(CEK_GEMM_C) },
                                 .m = m,
                                 .n = n,
                                 .k = k,
                                 .batch = 1,
                                 .lda = (int64_t)(ta ? m : k),
                                 .ldb = (int64_t)(tb ? k : n),
                                 .ldc = (int64_t)n,
                                 .trans = (ta ? CEK_GEMM_TRANS_A : 0u) | (tb ? CEK_GEMM_TRANS_B : 0u),
                                 .a_type = type,
                                 .b_type = type,
                                 .c_type = type };
    return op_make(w, &desc.op, text) && operand_make(w, CEK_GEMM_A, type, m * k, text) &&
           operand_make(w, CEK_GEMM_B, type, k * n, text) && operand_make(w, CEK_GEMM_C, type, m * n, text);
}

/* conv TYPE forward|data|weights BATCH IN SIDE OUT KERNEL STRIDE PAD GROUPS; slots 0 and 1 are the inputs in all
 * three directions. */
static bool conv_prepare(work *w, const runner_problem *p, char text[RUNNER_TEXT])
{
    static const char *const directions[] = { "forward", "data", "weights" };
    static const uint32_t kinds[] = { CEK_OP_CONV_FORWARD, CEK_OP_CONV_BACKWARD_DATA, CEK_OP_CONV_BACKWARD_WEIGHTS };
    const cek_dtype type = type_of(p);
    uint64_t v[8];
    int direction = 0;
    while (direction < 3 && (p->count < 3 || strcmp(p->words[2], directions[direction]) != 0))
        direction++;
    for (int i = 0; i < 8; i++)
        v[i] = runner_number(p, 3 + i);
    const uint64_t batch = v[0], in = v[1], side = v[2], out = v[3], kernel = v[4], stride = v[5], pad = v[6];
    const uint64_t groups = v[7];
    if (p->count != 11 || direction == 3 || !batch || !in || !out || !kernel || !stride || !groups ||
        side + 2 * pad < kernel)
        return refuse(text, "conv TYPE forward|data|weights BATCH IN SIDE OUT KERNEL STRIDE PAD GROUPS is wanted");
    const cek_conv_desc desc = { .op = { .size = sizeof desc, .kind = kinds[direction], .operands = 7 },
                                 .spatial = 2,
                                 .groups = (uint32_t)groups,
                                 .batch = batch,
                                 .in_channels = in,
                                 .out_channels = out,
                                 .in = { side, side },
                                 .kernel = { kernel, kernel },
                                 .stride = { stride, stride },
                                 .dilation = { 1, 1 },
                                 .pad_lo = { pad, pad },
                                 .pad_hi = { pad, pad },
                                 .x_type = type,
                                 .w_type = type,
                                 .y_type = type };
    const uint64_t after = (side + 2 * pad - kernel) / stride + 1;
    const uint64_t x = batch * side * side * in, y = batch * after * after * out;
    const uint64_t weights = out * kernel * kernel * (in / groups);
    const uint64_t counts[3][OPERANDS] = { { x, weights, y }, { y, weights, x }, { x, y, weights } };
    if (!op_make(w, &desc.op, text))
        return false;
    for (int i = 0; i < OPERANDS; i++)
        if (!operand_make(w, i, direction == 2 && i == 2 ? CEK_F32 : type, counts[direction][i], text))
            return false;
    return true;
}

/* ---- models ---- */

/* A sample has one label, one value, or, where its input is a text, a label for each of its bytes. */
typedef struct net {
    const char *name, *text;
    cek_loss loss;
    int rank;
    int64_t shape[3];
    bool is_text;
} net;

static const net nets[] = {
    { "mnist-cnn", "mnist-cnn", CEK_LOSS_CROSS_ENTROPY, 3, { 1, 28, 28 }, false },
    { "small-cnn",
      "conv:8,3,p1 relu maxpool:2 conv:16,3,p1 relu maxpool:2 flatten linear:10",
      CEK_LOSS_CROSS_ENTROPY,
      3,
      { 1, 28, 28 },
      false },
    { "mlp", "linear:64 relu linear:64 relu linear:1", CEK_LOSS_MSE, 1, { 13 }, false },
    { "resnet18-32", "resnet18:10", CEK_LOSS_CROSS_ENTROPY, 3, { 3, 32, 32 }, false },
    { "resnet18-224", "resnet18", CEK_LOSS_CROSS_ENTROPY, 3, { 3, 224, 224 }, false },
    { "resnet50-224", "resnet50", CEK_LOSS_CROSS_ENTROPY, 3, { 3, 224, 224 }, false },
    { "mobilenetv2-32", "mobilenetv2:10", CEK_LOSS_CROSS_ENTROPY, 3, { 3, 32, 32 }, false },
    { "mobilenetv2-224", "mobilenetv2", CEK_LOSS_CROSS_ENTROPY, 3, { 3, 224, 224 }, false },
    { "lstm", "lstm:128 flatten linear:10", CEK_LOSS_CROSS_ENTROPY, 2, { 28, 28 }, false },
    { "gpt", "gpt:4", CEK_LOSS_OWN, 1, { 128 }, true },
};

static cek_dtype input_type(const net *n)
{
    return n->is_text ? CEK_I32 : CEK_F32;
}

/* NULL: no host memory. */
static int32_t *labels_make(uint64_t count, uint64_t classes)
{
    int32_t *labels = calloc(count, sizeof *labels);
    for (uint64_t i = 0; i < count && labels; i++)
        labels[i] = (int32_t)(i * 7 % classes);
    return labels;
}

/* The model, and `batch` samples for it. NULL: it is said why. */
static const net *model_make(work *w, const runner_problem *p, char text[RUNNER_TEXT])
{
    const int64_t batch = (int64_t)runner_number(p, 3);
    const net *n = nets;
    while (n < nets + sizeof nets / sizeof *nets && (p->count != 4 || strcmp(p->words[2], n->name) != 0))
        n++;
    if (n == nets + sizeof nets / sizeof *nets || !batch)
        return refuse(text, "train|infer TYPE MODEL BATCH is wanted, of a model that is known"), NULL;
    uint64_t count = (uint64_t)batch;
    for (int i = 0; i < n->rank; i++)
        count *= (uint64_t)n->shape[i];
    if (!done(cek_model_parse(n->text, n->rank, n->shape, &w->model), text))
        return NULL;
    cek_model_init(w->model, 1);
    w->inputs = n->is_text ? (void *)labels_make(count, 256) : (void *)runner_floats(count, 1);
    if (!w->inputs)
        return refuse(text, "no host memory"), NULL;
    w->batch = (cek_batch){ .size = sizeof w->batch, .input_type = input_type(n), .count = batch, .inputs = w->inputs };
    return n;
}

static bool targets_make(work *w, const net *n, char text[RUNNER_TEXT])
{
    const uint64_t columns = n->is_text ? (uint64_t)n->shape[0] : n->loss == CEK_LOSS_MSE,
                   count = (uint64_t)w->batch.count;
    w->targets = n->loss == CEK_LOSS_MSE
                     ? (void *)runner_floats(count * columns, 2)
                     : (void *)labels_make(columns ? count * columns : count, n->is_text ? 256 : 10);
    w->batch.targets = w->targets;
    w->batch.target_columns = (uint32_t)columns;
    w->batch.target_type = n->loss == CEK_LOSS_MSE ? CEK_F32 : CEK_I32;
    return w->targets || refuse(text, "no host memory");
}

static bool train_prepare(work *w, const runner_problem *p, char text[RUNNER_TEXT])
{
    const net *n = model_make(w, p, text);
    const cek_optimizer adam = { .size = sizeof adam, .algorithm = CEK_OPTIMIZER_ADAM, .lr = 1e-4 };
    if (!n || !targets_make(w, n, text))
        return false;
    const cek_trainer_options options = { .size = sizeof options,
                                          .loss = n->loss,
                                          .optimizer = &adam,
                                          .batch = w->batch.count,
                                          .seed = 1,
                                          .type = type_of(p),
                                          .input_type = input_type(n),
                                          .target_columns = w->batch.target_columns };
    return done(cek_trainer_create(w->model, &device, 1, &options, &w->trainer), text);
}

static bool infer_prepare(work *w, const runner_problem *p, char text[RUNNER_TEXT])
{
    const net *n = model_make(w, p, text);
    int64_t shape[CEK_RANK_MAX];
    if (!n)
        return false;
    const cek_predictor_options options = {
        .size = sizeof options, .input_type = input_type(n), .batch = w->batch.count, .type = type_of(p)
    };
    uint64_t count = (uint64_t)w->batch.count;
    for (int i = cek_model_output_shape(w->model, shape); i-- > 0;)
        count *= (uint64_t)shape[i];
    if (!(w->outputs = malloc(count * sizeof(float))))
        return refuse(text, "no host memory");
    const char *folder = getenv("PEERS_DIR");
    if (folder) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s.onnx", folder, n->name);
        if (!done(cek_model_write_onnx(w->model, path, NULL), text))
            return false;
    }
    return done(cek_predictor_create(w->model, &device, 1, &options, &w->predictor), text);
}

/* ---- the runner ---- */

static bool prepare(uint32_t slot, const runner_problem *p, char text[RUNNER_TEXT])
{
    static const struct {
        const char *name;
        bool (*prepare)(work *, const runner_problem *, char text[RUNNER_TEXT]);
    } sorts[] = {
        { "gemm", gemm_prepare }, { "conv", conv_prepare }, { "train", train_prepare }, { "infer", infer_prepare }
    };
    if (strcmp(p->variant, "-") != 0 && strcmp(p->variant, "f32") != 0)
        return refuse(text, "no such variant");
    if (p->count < 2 || type_of(p) == CEK_DTYPE_NONE)
        return refuse(text, "f32 and bf16 are there");
    for (size_t i = 0; i < sizeof sorts / sizeof *sorts; i++)
        if (!strcmp(p->words[0], sorts[i].name))
            return sorts[i].prepare(&works[slot], p, text);
    return refuse(text, "no such sort of problem");
}

/* Each result has come before the next one is asked for, as with peers. */
static bool run(uint32_t slot, uint64_t times, char text[RUNNER_TEXT])
{
    work *w = &works[slot];
    cek_status st = CEK_OK;
    if (!w->op && !w->trainer && !w->predictor)
        return refuse(text, "nothing is prepared");
    for (uint64_t i = 0; i < times && !st; i++) {
        if (w->trainer)
            st = cek_trainer_step(w->trainer, &w->batch, NULL);
        else if (w->predictor)
            st = cek_predictor_run(w->predictor, w->inputs, w->batch.count, w->outputs);
        else if (!(st = cek_stream_run(stream, w->op, w->refs, OPERANDS, w->scratch_ref)))
            st = cek_stream_sync(stream, CEK_FOREVER);
    }
    return done(st, text);
}

static void drop(uint32_t slot)
{
    work *w = &works[slot];
    cek_trainer_free(w->trainer);
    cek_predictor_free(w->predictor);
    cek_model_free(w->model);
    if (w->op)
        cek_op_free(device, w->op);
    for (int i = 0; i < OPERANDS; i++)
        cek_memory_free(w->memory[i]);
    cek_memory_free(w->scratch);
    free(w->inputs), free(w->outputs), free(w->targets);
    *w = (work){ .op = NULL };
    cek_device_empty_cache(device);
}

int main(int argc, char **argv)
{
    cek_engine *engine = NULL;
    cek_device_info info = { .size = sizeof info };
    char ready[2 * RUNNER_TEXT];
    if (cek_engine_create(NULL, &engine) || cek_engine_find(engine, argc > 1 ? argv[1] : "cpu:0", &device) ||
        cek_device_describe(device, &info) || cek_stream_create(device, &stream))
        return runner_absent(cek_error_text());
    snprintf(ready, sizeof ready, "cekernels %s, %s: %.200s", cek_version(), cek_device_name(device), info.name);
    const int code = runner_serve(ready, &(runner){ prepare, run, drop });
    cek_stream_free(stream);
    cek_engine_free(engine);
    return code;
}
