/* options.c - the command line: one table of options, which also makes the help text and knows
 * which command takes what. */
#include "bench/bench.h"
#include "bench/images.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cekernels/nn.h>

#include "bench/progress.h"

enum {
    SHAPED = CMD_GEMM | CMD_CONV,
    RATE = SHAPED | CMD_OP | CMD_COPY | CMD_PEAK,
    ALL = CMD_DEVICES | RATE | CMD_CHECK | CMD_TRAIN | CMD_PREDICT | CMD_REPORT,
    READ = CMD_PLOT | CMD_COMPARE, /* of files alone */
    NET = CMD_TRAIN | CMD_PREDICT
};
/* Values of getopt_long; options without a letter start behind the letters. */
enum {
    O_MATH = 256,
    O_SEED,
    O_JSON,
    O_PEER,
    O_NO_PROGRESS,
    O_PLUGIN,
    O_TIMEOUT,
    O_PASS,
    O_MATCH,
    O_DATA,
    O_CSV,
    O_TARGET,
    O_SPLIT,
    O_TEST_FRACTION,
    O_EPOCHS,
    O_STEPS,
    O_LOG_EVERY,
    O_BATCH,
    O_SHUFFLE,
    O_LOSS,
    O_LR,
    O_OPTIMIZER,
    O_SCHEDULE,
    O_CLIP_VALUE,
    O_LOSS_SCALE,
    O_AVERAGE,
    O_ACCUMULATE,
    O_NORM_GROUP,
    O_FREEZE,
    O_NO_DECAY,
    O_MOMENTUM,
    O_WEIGHT_DECAY,
    O_DROPOUT,
    O_CLIP,
    O_AHEAD,
    O_TRACE,
    O_SHARES,
    O_LIMIT_MEMORY,
    O_FALLBACK,
    O_LOAD,
    O_SAVE,
    O_EXPORT,
    O_INPUT,
    O_SAVE_GRADIENTS,
    O_STANDARDIZE,
    O_ROWS,
    O_PLOT,
    O_THRESHOLD,
    O_QUICK,
    O_SIZES,
    O_LOG_DIR,
    O_IMAGE_SIZE,
    O_AUGMENT,
    O_NORMALIZE,
    O_WORKERS,
    O_PREFETCH,
    O_PIN
};

typedef struct option_row {
    const char *name, *argument; /* argument NULL: takes none */
    int code;
    uint32_t commands;
    const char *help;
} option_row;

static const option_row rows[] = {
    { "devices", "LIST", 'd', ALL & ~CMD_DEVICES, "devices, such as cpu or cpu:0,cuda:1-3" },
    { "dtype", "TYPE", 't', SHAPED | CMD_OP | CMD_CHECK | CMD_TRAIN | CMD_PREDICT,
      "element type: f32, f64, f16, bf16, u8, i32" },
    { "output", "FORMAT", 'o', ALL | READ,
      "table, json, jsonl, csv or md; or a file: of predict .npy, plot .svg or .png, report .html" },
    { "json", NULL, O_JSON, ALL | READ, "the same as -o json" },
    { "plugin", "FILE", O_PLUGIN, ALL, "load this plugin and no other" },
    { "timeout", "SECONDS", O_TIMEOUT, ALL, "without a finished command, before a device counts as lost (600)" },
    { "quiet", NULL, 'q', ALL | READ, "results alone" },
    { "verbose", NULL, 'v', ALL, "more about what happens" },
    { "no-progress", NULL, O_NO_PROGRESS, ALL, "neither a progress line nor lines of progress" },
    { "help", NULL, 'h', ALL | READ, "this text" },
    { "version", NULL, 'V', ALL | READ, "the version" },
    { "shape", "LIST", 's', SHAPED, "problems: MxNxK, or convolutions such as mb64ic64ih28oc128oh28kh3ph1" },
    { "math", "MODE", O_MATH, SHAPED, "f32, strict, tf32 or fast" },
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
    { "workers", "N", O_WORKERS, CMD_TRAIN, "threads that read and change samples (1)" },
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
    { "lr", "X", O_LR, CMD_TRAIN, "learning rate" },
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
enum { ROW_COUNT = sizeof rows / sizeof *rows };

int complain(int code, const char *fmt, ...)
{
    char text[2 * PATH_MAX + 1024]; /* two paths, and what is wrong with them */
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    cek_text_printable(text); /* an argument may be the name of a file that came from anywhere */
    progress_aside(STDERR_FILENO);
    fprintf(stderr, "cekernels-bench: %s\n", text);
    progress_back();
    return code;
}

/* One command's own options, or (NULL) those of all commands. */
static void usage_print_options(FILE *to, const bench_command *c)
{
    bool begun = false;
    for (int i = 0; i < ROW_COUNT; i++) {
        const option_row *r = &rows[i];
        bool common = (r->commands & ALL) == ALL || r->code == 'd';
        if (c ? common || !(r->commands & c->mask) : !common)
            continue;
        if (!begun)
            fprintf(to, "\n%s%s\n", c ? "options of " : "options", c ? c->name : ":");
        begun = true;
        char left[48];
        snprintf(left, sizeof left, "%c%c%s --%s%s%s", r->code < 256 ? '-' : ' ', r->code < 256 ? r->code : ' ',
                 r->code < 256 ? "," : " ", r->name, r->argument ? "=" : "", r->argument ? r->argument : "");
        fprintf(to, "  %-26s %s\n", left, r->help);
    }
}

static void usage_print(FILE *to)
{
    fputs("usage: cekernels-bench [OPTION...] COMMAND [ARG...]\n\ncommands:\n", to);
    for (const bench_command *c = bench_commands; c->name; c++)
        fprintf(to, "  %-8s %-18s %s\n", c->name, c->operands, c->help);
    usage_print_options(to, NULL);
    for (const bench_command *c = bench_commands; c->name; c++)
        usage_print_options(to, c);
    fputs("\nSee cekernels-bench(1).\n", to);
}

/* ---- values ---- */

static bool wrong_value(const char *name, const char *text, const char *wanted)
{
    complain(EXIT_USAGE, "--%s=%s: %s is wanted", name, text, wanted);
    return false;
}

static bool take_int(const char *name, const char *text, int64_t min, int64_t max, int64_t *out)
{
    char wanted[80], *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    snprintf(wanted, sizeof wanted, "a whole number from %lld to %lld", (long long)min, (long long)max);
    if (!*text || *end || errno || v < min || v > max)
        return wrong_value(name, text, wanted);
    *out = v;
    return true;
}

static bool take_double(const char *name, const char *text, double min, double max, double *out)
{
    char wanted[80], *end;
    double v = strtod(text, &end);
    snprintf(wanted, sizeof wanted, "a number from %g to %g", min, max);
    if (!*text || *end || !isfinite(v) || v < min || v > max)
        return wrong_value(name, text, wanted);
    *out = v;
    return true;
}

/* "64M", "1.5GiB": powers of 1024. */
bool bytes_parse(const char *name, const char *text, uint64_t *out)
{
    char *end;
    double v = strtod(text, &end);
    const char *units = "KMGT", *unit = *end ? strchr(units, *end) : NULL;
    for (long n = unit ? unit - units + 1 : 0; n > 0; n--)
        v *= 1024;
    end += unit != NULL;
    if (unit && !strcmp(end, "iB"))
        end += 2;
    else if (*end == 'B')
        end++;
    if (!*text || *end || !(v >= 1) || v >= 0x1p63)
        return wrong_value(name, text, "a size such as 512M");
    *out = (uint64_t)v;
    return true;
}

/* One of the words; *out is its number. */
static bool take_word(const char *name, const char *text, const char *const *words, uint32_t *out)
{
    char wanted[128] = "";
    for (uint32_t i = 0; words[i]; i++) {
        if (!strcmp(words[i], text)) {
            *out = i;
            return true;
        }
        size_t used = strlen(wanted);
        snprintf(wanted + used, sizeof wanted - used, "%s%s", i ? words[i + 1] ? ", " : " or " : "", words[i]);
    }
    return wrong_value(name, text, wanted);
}

static bool one_of(const char *name, const char *text, const char *const *words, const char **out)
{
    uint32_t ignored;
    *out = text;
    return take_word(name, text, words, &ignored);
}

static const char *const formats[] = { "table", "json", "jsonl", "csv", "md", NULL };
static const char *const maths[] = { "f32", "strict", "tf32", "fast", NULL };
static const char *const passes[] = { "forward", "data", "weights", NULL };
static const char *const losses[] = { "cross-entropy", "mse", NULL };
static const char *const optimizers[] = { "adam", "adamw", "sgd", "rmsprop", "adagrad", "lamb", NULL };
static const char *const yes_no[] = { "no", "yes", NULL };
static const char *const types[] = { "f32", "f16", "bf16", "f64", "u8", "i32", NULL }; /* from CEK_F32 on */

bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text);
    return length > strlen(end) && !strcmp(text + length - strlen(end), end);
}

/* A format, or a file that is told from it by its name. */
static bool output_take(bench_options *o, const option_row *row, const char *arg)
{
    uint32_t word = 0;
    if (ends_with(arg, ".npy") || ends_with(arg, ".svg") || ends_with(arg, ".png") || ends_with(arg, ".html"))
        o->outputs = arg;
    else if (!take_word(row->name, arg, formats, &word))
        return false;
    else
        o->output = (output_format)word;
    return true;
}

static bool plot_take(bench_options *o, const char *arg)
{
    o->plot = arg;
    return ends_with(arg, ".svg") || ends_with(arg, ".png") || wrong_value("plot", arg, "FILE.svg or FILE.png");
}

static bool input_take(bench_options *o, const char *arg)
{
    if (o->input_count == INPUTS_MOST) {
        complain(EXIT_USAGE, "--input=%s: no model has more than %d inputs", arg, INPUTS_MOST);
        return false;
    }
    o->inputs[o->input_count++] = arg;
    return true;
}

static bool option_take(bench_options *o, const option_row *row, const char *arg)
{
    uint32_t word = 0;
    int64_t number = 0;
    switch (row->code) {
    case 'd': o->devices = arg; return true;
    case 't': return take_word(row->name, arg, types, &word) && (o->type = CEK_F32 + word, true);
    case 'o': return output_take(o, row, arg);
    case 'q': return o->quiet = true;
    case 'v': return o->verbose = true;
    case 's': o->shapes = arg; return true;
    case 'w': return take_int(row->name, arg, 0, 1000000, &o->warmup);
    case 'r': return take_int(row->name, arg, 1, 1000000, &o->runs);
    case O_JSON: o->output = FORMAT_JSON; return true;
    case O_NO_PROGRESS: return o->no_progress = true;
    case O_PLUGIN: o->plugin = arg; return true;
    case O_TIMEOUT: return take_double(row->name, arg, 0.001, 1e9, &o->timeout);
    case O_MATH: return take_word(row->name, arg, maths, &o->math);
    case O_PEER: o->peer = arg; return true;
    case O_PASS: return one_of(row->name, arg, passes, &o->pass);
    case O_MATCH: o->match = arg; return true;
    case O_SIZES: o->sizes = arg; return true;
    case O_SEED: return take_int(row->name, arg, 0, INT64_MAX, &number) && (o->seed = (uint64_t)number, true);
    case O_DATA: o->data = arg; return true;
    case O_CSV: o->csv = arg; return true;
    case O_TARGET: o->target = arg; return true;
    case O_SPLIT: o->split = arg; return true;
    case O_IMAGE_SIZE: return image_size_parse(row->name, arg, &o->image_height, &o->image_width);
    case O_AUGMENT: o->augment = arg; return augment_parse(row->name, arg, &o->augmentation);
    case O_NORMALIZE:
        o->normalize = arg;
        return normalize_parse(row->name, arg, o->mean, o->deviation, &o->normal_count);
    case O_WORKERS: return take_int(row->name, arg, 1, 1024, &o->workers);
    case O_PREFETCH: return take_int(row->name, arg, 1, 4096, &o->prefetch);
    case O_PIN: return take_word(row->name, arg, yes_no, &word) && (o->pin = word ? CEK_PIN_YES : CEK_PIN_NO, true);
    case O_TEST_FRACTION: return take_double(row->name, arg, 0, 0.99, &o->test_fraction);
    case O_EPOCHS: return take_int(row->name, arg, 1, INT32_MAX, &o->epochs);
    case O_STEPS: return take_int(row->name, arg, 1, INT64_MAX, &o->steps);
    case O_LOG_EVERY: return take_int(row->name, arg, 1, INT64_MAX, &o->log_every);
    case O_LOG_DIR: o->log_dir = arg; return true;
    case O_BATCH: return take_int(row->name, arg, 1, INT32_MAX, &o->batch);
    case O_SHUFFLE: return take_word(row->name, arg, yes_no, &word) && (o->shuffle = word, true);
    case O_LOSS: return one_of(row->name, arg, losses, &o->loss);
    case O_OPTIMIZER: return one_of(row->name, arg, optimizers, &o->optimizer);
    case O_LR: return take_double(row->name, arg, 1e-30, 1e6, &o->lr); /* 0 would be the default to the library */
    case O_SCHEDULE: o->schedule = arg; return true;
    case O_MOMENTUM: return take_double(row->name, arg, 0, 1, &o->momentum);
    case O_WEIGHT_DECAY: return take_double(row->name, arg, 0, 1e6, &o->weight_decay);
    case O_DROPOUT: return take_double(row->name, arg, 0, 0.999, &o->dropout);
    case O_CLIP: return take_double(row->name, arg, 1e-30, 1e30, &o->clip);
    case O_LOSS_SCALE: return take_double(row->name, arg, 1e-30, 1e30, &o->loss_scale);
    case O_CLIP_VALUE: return take_double(row->name, arg, 1e-30, 1e30, &o->clip_value);
    case O_AVERAGE: return take_double(row->name, arg, 1e-9, 0.9999999, &o->average);
    case O_ACCUMULATE: return take_int(row->name, arg, 1, INT32_MAX, &o->accumulate);
    case O_NORM_GROUP: return take_int(row->name, arg, 1, INT32_MAX, &o->norm_group);
    case O_FREEZE: o->freeze = arg; return true;
    case O_NO_DECAY: o->no_decay = arg; return true;
    case O_AHEAD: return take_int(row->name, arg, 1, CEK_DEPTH_MOST, &o->ahead);
    case O_SHARES: o->shares = arg; return true;
    case O_TRACE: o->trace = arg; return true;
    case O_LIMIT_MEMORY: return bytes_parse(row->name, arg, &o->limit_memory);
    case O_FALLBACK: o->fallback = arg; return true;
    case O_LOAD: o->load = arg; return true;
    case O_SAVE: o->save = arg; return true;
    case O_EXPORT: o->export = arg; return true;
    case O_INPUT: return input_take(o, arg);
    case O_SAVE_GRADIENTS: o->save_gradients = arg; return true;
    case O_STANDARDIZE: return take_word(row->name, arg, yes_no, &word) && (o->standardize = word, true);
    case O_PLOT: return plot_take(o, arg);
    case O_THRESHOLD: return take_double(row->name, arg, 0, 1000, &o->threshold);
    case O_QUICK: return o->quick = true;
    case O_ROWS: return take_int(row->name, arg, 0, INT64_MAX, &o->rows);
    default: return false;
    }
}

static void getopt_tables(char *letters, struct option *longs)
{
    *letters++ = ':'; /* a missing value is reported as ':', and nothing is printed */
    for (int i = 0; i < ROW_COUNT; i++) {
        longs[i] = (struct option){ rows[i].name, rows[i].argument ? required_argument : no_argument, NULL,
                                    rows[i].code };
        if (rows[i].code < 256) {
            *letters++ = (char)rows[i].code;
            if (rows[i].argument)
                *letters++ = ':';
        }
    }
    longs[ROW_COUNT] = (struct option){ 0 };
    *letters = 0;
}

static const option_row *row_of(int code)
{
    for (int i = 0; i < ROW_COUNT; i++)
        if (rows[i].code == code)
            return &rows[i];
    return NULL;
}

/* What getopt_long would say in words of its own, in two lines with the program's path. */
static bool option_unknown(int code, const char *argument)
{
    const option_row *row = row_of(optopt);
    if (code == ':')
        complain(EXIT_USAGE, "--%s needs a value: --%s=%s", row->name, row->name, row->argument);
    else if (row)
        complain(EXIT_USAGE, "--%s takes no value", row->name);
    else if (optopt)
        complain(EXIT_USAGE, "no option is called -%c; try --help", optopt);
    else
        complain(EXIT_USAGE, "%s: no option, or several, begin like that; try --help", argument);
    return false;
}

static const bench_command *command_of(const char *name)
{
    for (const bench_command *c = bench_commands; c->name; c++)
        if (!strcmp(c->name, name))
            return c;
    return NULL;
}

/* What says something about a table is not overlooked where there is none. */
static bool table_options_agree(const bench_options *o, const bool *given)
{
    bool split = false, fraction = false;
    for (int i = 0; i < ROW_COUNT; i++) {
        const int code = rows[i].code;
        split |= given[i] && code == O_SPLIT;
        fraction |= given[i] && code == O_TEST_FRACTION;
        const bool of_table = code == O_TARGET || code == O_STANDARDIZE;
        const bool of_rows = code == O_SPLIT || code == O_TEST_FRACTION;
        const bool of_images = code == O_IMAGE_SIZE;
        if (given[i] && of_table && !o->csv) {
            complain(EXIT_USAGE, "--%s is for --csv", rows[i].name);
            return false;
        }
        if (given[i] && of_rows && !o->csv && !o->data) {
            complain(EXIT_USAGE, "--%s is for --csv and --data", rows[i].name);
            return false;
        }
        if (given[i] && of_images && !o->data) {
            complain(EXIT_USAGE, "--%s is for --data", rows[i].name);
            return false;
        }
    }
    if (split && fraction)
        complain(EXIT_USAGE, "--split and --test-fraction cannot both choose the test set");
    return !(split && fraction);
}

/* What a file is called says what is wanted in it: an array, a picture or a page. */
static bool output_fits(const bench_options *o, const bench_command *command)
{
    const char *file = o->outputs;
    if (!file)
        return true;
    const bool array = ends_with(file, ".npy"), page = ends_with(file, ".html");
    if (command->mask == (array ? CMD_PREDICT : page ? CMD_REPORT : CMD_PLOT))
        return true;
    complain(EXIT_USAGE, "--output=%s: %s gives no %s; table, json, jsonl, csv or md is wanted", file, command->name,
             array  ? "array"
             : page ? "page"
                    : "picture");
    return false;
}

/* An array is the data of a prediction, and what it gives goes into another. */
static bool array_options_agree(const bench_options *o, const bench_command *command)
{
    if (!output_fits(o, command))
        return false;
    if (o->outputs && command->mask == CMD_PREDICT && !o->input_count)
        complain(EXIT_USAGE, "--output=%s is for --input", o->outputs);
    else if (o->input_count && (o->data || o->csv))
        complain(EXIT_USAGE, "--input and %s cannot both be the data", o->data ? "--data" : "--csv");
    else
        return true;
    return false;
}

bool options_parse(int argc, char **argv, bench_options *o, const bench_command **command, int *code)
{
    struct option longs[ROW_COUNT + 1];
    char letters[2 * ROW_COUNT + 2];
    bool given[ROW_COUNT] = { false };
    *o = (bench_options){ .warmup = -1,
                          .runs = -1,
                          .test_fraction = -1,
                          .shuffle = true,
                          .standardize = true,
                          .lr = -1,
                          .momentum = -1,
                          .weight_decay = -1,
                          .dropout = -1,
                          .rows = -1,
                          .threshold = -1,
                          .seed = 1 };
    *code = EXIT_USAGE;
    opterr = 0;
    getopt_tables(letters, longs);
    for (int c; (c = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
        const option_row *row = row_of(c);
        if (!row)
            return option_unknown(c, argv[optind - 1]);
        if (c == 'h' || c == 'V') {
            *code = EXIT_OK;
            if (c == 'h')
                usage_print(stdout);
            else
                printf("cekernels-bench %s\n", cek_version());
            return false;
        }
        given[row - rows] = true;
        if (!option_take(o, row, optarg))
            return false;
    }
    if (optind == argc) {
        usage_print(stderr);
        return false;
    }
    if (!(*command = command_of(argv[optind]))) {
        complain(EXIT_USAGE, "no command is called %s; try --help", argv[optind]);
        return false;
    }
    for (int i = 0; i < ROW_COUNT; i++) {
        if (given[i] && !(rows[i].commands & (*command)->mask)) {
            complain(EXIT_USAGE, "%s takes no option --%s", (*command)->name, rows[i].name);
            return false;
        }
    }
    if (!table_options_agree(o, given) || !array_options_agree(o, *command))
        return false;
    o->argc = argc - optind - 1;
    o->argv = argv + optind + 1;
    return true;
}
