/* option_table.c - see option_table.h. */
#include "bench/option_table.h"

#include <string.h>

enum {
    SHAPED = CMD_GEMM | CMD_CONV,
    RATE = SHAPED | CMD_OP | CMD_COPY | CMD_PEAK,
    ALL = CMD_DEVICES | RATE | CMD_CHECK | CMD_TRAIN | CMD_PREDICT | CMD_REPORT,
    READ = CMD_PLOT | CMD_COMPARE, /* of files alone */
    NET = CMD_TRAIN | CMD_PREDICT
};

const option_row option_rows[] = {
    { "devices", "LIST", 'd', ALL & ~CMD_DEVICES, "devices, such as cpu or cpu:0,cuda:1-3" },
    { "dtype", "TYPE", 't', SHAPED | CMD_OP | CMD_CHECK | CMD_TRAIN | CMD_PREDICT,
      "element type: f32, f16 or bf16; but for predict f64; of op and check also u8 and i32" },
    { "output", "FORMAT", 'o', ALL | READ,
      "table, json, jsonl, csv or md; or a file: of predict .npy, plot .svg or .png, report .html" },
    { "json", NULL, O_JSON, (ALL | CMD_COMPARE) & ~CMD_REPORT, "the same as -o json" },
    { "plugin", "FILE", O_PLUGIN, ALL, "load this plugin and no other" },
    { "timeout", "SECONDS", O_TIMEOUT, ALL, "without a finished command, before a device counts as lost (600)" },
    { "quiet", NULL, 'q', ALL | READ, "results alone" },
    { "verbose", NULL, 'v', ALL, "more about what happens" },
    { "no-progress", NULL, O_NO_PROGRESS, ALL, "neither a progress line nor lines of progress" },
    { "help", NULL, 'h', ALL | READ, "this text" },
    { "version", NULL, 'V', ALL | READ, "the version" },
    { "shape", "LIST", 's', SHAPED, "problems: MxNxK, or convolutions such as mb64ic64ih28oc128oh28kh3ph1" },
    { "math", "MODE", O_MATH, SHAPED | NET, "f32, strict, tf32 or fast" },
    { "warmup", "N", 'w', RATE | CMD_TRAIN, "runs that are not timed; of train: steps while the rate rises" },
    { "runs", "N", 'r', RATE, "timed runs; the median counts" },
    { "peer", "SO", O_PEER, CMD_GEMM, "a CBLAS library, timed in turn with the device" },
    { "pass", "NAME", O_PASS, CMD_CONV, "forward, data or weights" },
    { "sizes", "LIST", O_SIZES, CMD_COPY, "bytes to copy, such as 4K,64M" },
    { "match", "TEXT", O_MATCH, CMD_CHECK, "only cases whose name contains this" },
    { "seed", "N", O_SEED, NET | SHAPED, "of everything random" },
    { "data", "PATH", O_DATA, NET, "images by class, IDX, CIFAR-10, or the text of gpt; else generated digits" },
    { "csv", "FILE", O_CSV, NET, "a table of numbers" },
    { "target", "COLUMN", O_TARGET, NET, "its column to predict, by name or number" },
    { "test-fraction", "P", O_TEST_FRACTION, NET, "of the rows of a table or of images, for testing (0.2)" },
    { "split", "FILE", O_SPLIT, NET, "row numbers of the test set" },
    { "standardize", "yes|no", O_STANDARDIZE, NET, "the table's features by the training rows (yes)" },
    { "image-size", "HxW", O_IMAGE_SIZE, NET, "what images are brought to, scaled and cut" },
    { "augment", "LIST", O_AUGMENT, CMD_TRAIN, "change images by chance: crop:4,flip,rotate:10,colour:0.2" },
    { "normalize", "NUMBERS", O_NORMALIZE, NET, "of each channel: measured, or MEAN,...:DEVIATION,..." },
    { "workers", "N", O_WORKERS, CMD_TRAIN,
      "threads that read and change samples (1, or none where little is copied)" },
    { "prefetch", "N", O_PREFETCH, CMD_TRAIN, "batches ready ahead (2)" },
    { "pin", "yes|no", O_PIN, CMD_TRAIN, "batches in page-locked memory (where it pays)" },
    { "batch", "N", O_BATCH, NET, "samples of a step, over all devices" },
    { "shares", "LIST", O_SHARES, CMD_TRAIN, "auto (measured), equal, or a number for each device" },
    { "limit-memory", "BYTES", O_LIMIT_MEMORY, NET, "of each device" },
    { "fallback", "DEVICE", O_FALLBACK, NET, "does what another device cannot, such as cpu:0" },
    { "load", "FILE", O_LOAD, NET, "weights to begin with (safetensors, or of torch.save)" },
    { "save", "FILE", O_SAVE, CMD_TRAIN, "where the weights go" },
    { "export", "FILE", O_EXPORT, NET, "where the network goes as an ONNX file" },
    { "save-gradients", "FILE", O_SAVE_GRADIENTS, CMD_TRAIN, "where the last step's gradient goes" },
    { "epochs", "N", O_EPOCHS, CMD_TRAIN, "passes over the training set (1)" },
    { "steps", "N", O_STEPS, CMD_TRAIN, "stop after so many steps" },
    { "log-every", "N", O_LOG_EVERY, CMD_TRAIN, "a line every so many steps" },
    { "log-dir", "DIR", O_LOG_DIR, CMD_TRAIN, "where a log for TensorBoard goes" },
    { "shuffle", "yes|no", O_SHUFFLE, CMD_TRAIN, "another order each epoch (yes)" },
    { "loss", "NAME", O_LOSS, CMD_TRAIN, "cross-entropy or mse" },
    { "optimizer", "NAME", O_OPTIMIZER, CMD_TRAIN, "adam, adamw, sgd, rmsprop, adagrad or lamb" },
    { "lr", "X", O_LR, CMD_TRAIN, "learning rate (the model's own)" },
    { "schedule", "NAME", O_SCHEDULE, CMD_TRAIN, "of the rate: step:N, multistep:N,..., cosine, onecycle, plateau" },
    { "momentum", "X", O_MOMENTUM, CMD_TRAIN, "of sgd and rmsprop" },
    { "weight-decay", "X", O_WEIGHT_DECAY, CMD_TRAIN, "of the optimizer" },
    { "dropout", "P", O_DROPOUT, CMD_TRAIN, "the probability of every dropout layer" },
    { "clip", "NORM", O_CLIP, CMD_TRAIN, "scale the gradient down to this norm" },
    { "clip-value", "X", O_CLIP_VALUE, CMD_TRAIN, "bring every element of the gradient between -X and X" },
    { "loss-scale", "X", O_LOSS_SCALE, CMD_TRAIN, "of f16: what the loss is multiplied by at first (65536)" },
    { "norm-group", "N", O_NORM_GROUP, CMD_TRAIN, "samples that batch normalisation computes with together" },
    { "accumulate", "N", O_ACCUMULATE, CMD_TRAIN, "batches whose gradients are added up for one update" },
    { "average", "DECAY", O_AVERAGE, CMD_TRAIN, "test and save an average of the weights" },
    { "freeze", "NAMES", O_FREEZE, CMD_TRAIN, "parameters that stay as they are, such as 0.*" },
    { "no-decay", "NAMES", O_NO_DECAY, CMD_TRAIN, "parameters without weight decay, such as *.bias" },
    { "ahead", "N", O_AHEAD, CMD_TRAIN, "steps under way at once (2)" },
    { "trace", "FILE", O_TRACE, NET, "where a record of what ran where and when goes" },
    { "input", "FILE", O_INPUT, CMD_PREDICT, "an array of samples (.npy); once more for each further input" },
    { "rows", "N", O_ROWS, CMD_PREDICT, "how many predictions to print" },
    { "plot", "FILE", O_PLOT, CMD_TRAIN, "where curves of loss and accuracy go: FILE.svg or FILE.png" },
    { "threshold", "P", O_THRESHOLD, CMD_COMPARE, "how much longer is slower (0.05)" },
    { "quick", NULL, O_QUICK, CMD_REPORT, "measures hardly anything, to see the page" },
};
const int option_count = sizeof option_rows / sizeof *option_rows;
_Static_assert(sizeof option_rows / sizeof *option_rows <= OPTIONS_MOST, "OPTIONS_MOST options are possible");

/* An order that counts is that of the values which a word stands for. */
static const struct {
    int code;
    const char *const *words;
} values[] = {
    { 't', (const char *const[]){ "f32", "f16", "bf16", "f64", "u8", "i32", NULL } }, /* from CEK_F32 on */
    { 'o', (const char *const[]){ "table", "json", "jsonl", "csv", "md", NULL } },
    { O_MATH, (const char *const[]){ "f32", "strict", "tf32", "fast", NULL } },
    { O_PASS, (const char *const[]){ "forward", "data", "weights", NULL } },
    { O_STANDARDIZE, (const char *const[]){ "no", "yes", NULL } },
    { O_SHUFFLE, (const char *const[]){ "no", "yes", NULL } },
    { O_PIN, (const char *const[]){ "no", "yes", NULL } },
    { O_LOSS, (const char *const[]){ "cross-entropy", "mse", NULL } },
    { O_OPTIMIZER, (const char *const[]){ "adam", "adamw", "sgd", "rmsprop", "adagrad", "lamb", NULL } },
};

const option_row *option_of(int code)
{
    for (int i = 0; i < option_count; i++)
        if (option_rows[i].code == code)
            return &option_rows[i];
    return NULL;
}

const option_row *option_named(const char *name, size_t length)
{
    for (int i = 0; i < option_count; i++)
        if (strlen(option_rows[i].name) == length && !memcmp(option_rows[i].name, name, length))
            return &option_rows[i];
    return NULL;
}

bool option_common(const option_row *row)
{
    return (row->commands & ALL) == ALL || row->code == 'd' || row->code == O_JSON;
}

const char *const *option_words(int code)
{
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (values[i].code == code)
            return values[i].words;
    return NULL;
}
