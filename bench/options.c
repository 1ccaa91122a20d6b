/* options.c - the command line: reads it by the table of options, and refuses what does not fit together. */
#include "bench/help.h"
#include "bench/images.h"
#include "bench/suggest.h"

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
    snprintf(wanted, sizeof wanted, "a number from %.9g to %.9g", min, max);
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

/* One of the words that the option has; *out is its number. */
static bool take_word(const option_row *row, const char *text, uint32_t *out)
{
    const char *const *words = option_words(row->code);
    char wanted[256] = "";
    for (uint32_t i = 0; words[i]; i++) {
        if (!strcmp(words[i], text)) {
            *out = i;
            return true;
        }
        size_t used = strlen(wanted);
        snprintf(wanted + used, sizeof wanted - used, "%s%s", i ? words[i + 1] ? ", " : " or " : "", words[i]);
    }
    complain(EXIT_USAGE, "--%s=%s: %s is wanted%s", row->name, text, wanted, suggest("", text, words).text);
    return false;
}

static bool one_of(const option_row *row, const char *text, const char **out)
{
    uint32_t ignored;
    *out = text;
    return take_word(row, text, &ignored);
}

bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text);
    return length > strlen(end) && !strcmp(text + length - strlen(end), end);
}

/* A format, or a file, which has a dot in its name: what it is called then decides (output_fits). */
static bool output_take(bench_options *o, const option_row *row, const char *arg)
{
    uint32_t word = 0;
    if (strchr(arg, '.'))
        o->outputs = arg;
    else if (!take_word(row, arg, &word))
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
    case 't': return take_word(row, arg, &word) && (o->type = CEK_F32 + word, true);
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
    case O_MATH: return take_word(row, arg, &o->math);
    case O_PEER: o->peer = arg; return true;
    case O_PASS: return one_of(row, arg, &o->pass);
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
    case O_PIN: return take_word(row, arg, &word) && (o->pin = word ? CEK_PIN_YES : CEK_PIN_NO, true);
    case O_TEST_FRACTION: return take_double(row->name, arg, 0, 0.99, &o->test_fraction);
    case O_EPOCHS: return take_int(row->name, arg, 1, INT32_MAX, &o->epochs);
    case O_STEPS: return take_int(row->name, arg, 1, INT64_MAX, &o->steps);
    case O_LOG_EVERY: return take_int(row->name, arg, 1, INT64_MAX, &o->log_every);
    case O_LOG_DIR: o->log_dir = arg; return true;
    case O_BATCH: return take_int(row->name, arg, 1, INT32_MAX, &o->batch);
    case O_SHUFFLE: return take_word(row, arg, &word) && (o->shuffle = word, true);
    case O_LOSS: return one_of(row, arg, &o->loss);
    case O_OPTIMIZER: return one_of(row, arg, &o->optimizer);
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
    case O_STANDARDIZE: return take_word(row, arg, &word) && (o->standardize = word, true);
    case O_PLOT: return plot_take(o, arg);
    case O_THRESHOLD: return take_double(row->name, arg, 0, 1000, &o->threshold);
    case O_QUICK: return o->quick = true;
    case O_ROWS: return take_int(row->name, arg, 0, INT64_MAX, &o->rows);
    default: return false;
    }
}

const char *math_name(const bench_options *o)
{
    return option_words(O_MATH)[o->math];
}

static void getopt_tables(char *letters, struct option *longs)
{
    /* Operands come in their places, as values of the code 1; nothing is printed, and a missing value is a ':'. */
    *letters++ = '-';
    *letters++ = ':';
    for (int i = 0; i < option_count; i++) {
        const option_row *row = &option_rows[i];
        longs[i] = (struct option){ row->name, row->argument ? required_argument : no_argument, NULL, row->code };
        if (row->code < 256) {
            *letters++ = (char)row->code;
            if (row->argument)
                *letters++ = ':';
        }
    }
    longs[option_count] = (struct option){ 0 };
    *letters = 0;
}

/* What getopt_long would say in words of its own, in two lines with the program's path. */
static bool option_unknown(int code, const char *argument, const bench_command *command)
{
    const option_row *row = option_of(optopt);
    if (code == ':') {
        complain(EXIT_USAGE, "--%s needs a value: --%s=%s", row->name, row->name, row->argument);
    } else if (row) {
        complain(EXIT_USAGE, "--%s takes no value", row->name);
    } else if (optopt) {
        complain(EXIT_USAGE, "no option is called -%c; try --help", optopt);
    } else {
        const char *name = argument + strspn(argument, "-");
        const size_t length = strcspn(name, "=");
        char several[256] = "";
        size_t used = 0;
        for (int i = 0; i < option_count; i++)
            if (!strncmp(option_rows[i].name, name, length) && used < sizeof several)
                used += (size_t)snprintf(several + used, sizeof several - used, " --%s", option_rows[i].name);
        if (used)
            complain(EXIT_USAGE, "%s: several options begin like that:%s", argument, several);
        else
            complain(EXIT_USAGE, "%s: no option is called that%s", argument,
                     suggest_option(name, length, command).text);
    }
    return false;
}

/* What says something about a table is not overlooked where there is none. */
static bool table_options_agree(const bench_options *o, const bool *given)
{
    bool split = false, fraction = false;
    for (int i = 0; i < option_count; i++) {
        const int code = option_rows[i].code;
        split |= given[i] && code == O_SPLIT;
        fraction |= given[i] && code == O_TEST_FRACTION;
        const bool of_table = code == O_TARGET || code == O_STANDARDIZE;
        const bool of_rows = code == O_SPLIT || code == O_TEST_FRACTION;
        const bool of_images = code == O_IMAGE_SIZE;
        if (given[i] && of_table && !o->csv) {
            complain(EXIT_USAGE, "--%s is for --csv", option_rows[i].name);
            return false;
        }
        if (given[i] && of_rows && !o->csv && !o->data) {
            complain(EXIT_USAGE, "--%s is for --csv and --data", option_rows[i].name);
            return false;
        }
        if (given[i] && of_images && !o->data) {
            complain(EXIT_USAGE, "--%s is for --data", option_rows[i].name);
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
    static const struct {
        const char *end, *what;
        uint32_t command;
    } kinds[] = { { ".npy", "array", CMD_PREDICT },
                  { ".html", "page", CMD_REPORT },
                  { ".svg", "picture", CMD_PLOT },
                  { ".png", "picture", CMD_PLOT } };
    const char *file = o->outputs, *what = "such file";
    for (size_t i = 0; file && i < sizeof kinds / sizeof *kinds; i++)
        if (ends_with(file, kinds[i].end)) {
            what = kinds[i].what;
            if (command->mask == kinds[i].command)
                return true;
        }
    if (file)
        complain(EXIT_USAGE, "--output=%s: %s gives no %s; %s is wanted", file, command->name, what,
                 command->mask == CMD_REPORT    ? "FILE.html"
                 : command->mask == CMD_PLOT    ? "FILE.svg or FILE.png"
                 : command->mask == CMD_PREDICT ? "table, json, jsonl, csv, md or FILE.npy"
                                                : "table, json, jsonl, csv or md");
    return !file;
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

/* An option of other commands: which those are is the cure. */
static bool option_misplaced(const option_row *row, const bench_command *command)
{
    char others[128] = "";
    size_t used = 0;
    for (const bench_command *c = bench_commands; c->name; c++)
        if (row->commands & c->mask && used < sizeof others)
            used += (size_t)snprintf(others + used, sizeof others - used, "%s%s", used ? ", " : "", c->name);
    complain(EXIT_USAGE, "%s takes no option --%s; it is for %s", command->name, row->name, others);
    return false;
}

/* Whoever asks for help gets it, whatever else is wrong with the line. *command: the first operand, NULL if
 * it is none. */
static bool help_wanted(int argc, char **argv, const char *letters, const struct option *longs,
                        const bench_command **command)
{
    bool help = false, version = false;
    *command = NULL;
    for (int c; (c = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
        help |= c == 'h';
        version |= c == 'V';
        if (c == 1 && !*command)
            *command = command_named(optarg);
    }
    if (help)
        help_print(stdout, *command);
    else if (version)
        printf("cekernels-bench %s\n", cek_version());
    return help || version;
}

bool options_parse(int argc, char **argv, bench_options *o, const bench_command **command, int *code)
{
    struct option longs[OPTIONS_MOST + 1];
    char letters[2 * OPTIONS_MOST + 3];
    bool given[OPTIONS_MOST] = { false };
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
    opterr = 0;
    getopt_tables(letters, longs);
    *code = EXIT_OK;
    if (help_wanted(argc, argv, letters, longs, command))
        return false;
    *code = EXIT_USAGE;
    optind = 0; /* from the start again, operands last */
    for (int c; (c = getopt_long(argc, argv, letters + 1, longs, NULL)) != -1;) {
        const option_row *row = option_of(c);
        if (!row)
            return option_unknown(c, argv[optind - 1], *command);
        if (*command && !(row->commands & (*command)->mask))
            return option_misplaced(row, *command);
        given[row - option_rows] = true;
        if (!option_take(o, row, optarg))
            return false;
    }
    if (optind == argc) {
        help_print(stderr, NULL);
        return false;
    }
    if (!(*command = command_named(argv[optind]))) {
        command_unknown(argv[optind]);
        return false;
    }
    for (int i = 0; i < option_count; i++) /* those before "--" came before it was known */
        if (given[i] && !(option_rows[i].commands & (*command)->mask))
            return option_misplaced(&option_rows[i], *command);
    if (!table_options_agree(o, given) || !array_options_agree(o, *command))
        return false;
    o->argc = argc - optind - 1;
    o->argv = argv + optind + 1;
    return true;
}
