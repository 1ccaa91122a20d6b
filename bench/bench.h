/* bench.h - what the commands of cekernels-bench share: options, exit codes, devices.
 *
 * Owns the process: it alone of the project prints, exits and handles signals. A client of the
 * public headers and of spec/. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cekernels/nn.h>

/* Documented in the manual; scripts rely on them. */
enum {
    EXIT_OK = 0,
    EXIT_WRONG = 1, /* a wrong value, a failed case, or slower than the peer */
    EXIT_USAGE = 2,
    EXIT_NO_DEVICE = 3,
    EXIT_LOST = 4,
    EXIT_BAD_INPUT = 5, /* input that does not hold what it should, or the system refused to read or write */
    EXIT_MEMORY = 6,
    EXIT_NOT_FINITE = 7,
    EXIT_PLUGIN = 8,
    EXIT_SIGNAL = 128 /* and the signal's number */
};

enum { INPUTS_MOST = 8 /* as many as a model has */, CHANNELS_MOST = 64 /* that --normalize has numbers of */ };

typedef enum output_format { FORMAT_TABLE, FORMAT_JSON, FORMAT_JSONL, FORMAT_CSV, FORMAT_MD } output_format;

/* Every option of every command; which of them a command takes is in option_table.c. Texts point into
 * argv. */
typedef struct bench_options {
    /* all */
    const char *devices;
    output_format output;
    bool quiet, verbose, no_progress;
    double timeout;     /* seconds; 0: the library's */
    const char *plugin; /* a file: loaded instead of what is installed */
    /* gemm, conv */
    const char *shapes;
    uint32_t math; /* and of train and predict */
    cek_dtype type;
    int64_t warmup, runs; /* -1: the command's default */
    const char *peer;
    const char *pass;  /* conv: forward, data, weights */
    const char *sizes; /* copy */
    /* check */
    const char *match;
    /* train, predict */
    const char *data, *csv, *target, *split;
    double test_fraction;              /* -1: not given */
    int64_t image_height, image_width; /* 0: not given */
    const char *augment, *normalize;   /* NULL: not given; as read: */
    cek_augment_options augmentation;
    double mean[CHANNELS_MOST], deviation[CHANNELS_MOST];
    int64_t normal_count;      /* 0: measured */
    int64_t workers, prefetch; /* 0: not given */
    uint32_t pin;              /* CEK_PIN_AUTO: not given */
    bool standardize;
    int64_t epochs, steps, log_every, batch; /* 0: not given */
    const char *log_dir;
    bool shuffle;
    const char *loss, *optimizer, *schedule, *shares;
    double lr, momentum, weight_decay, dropout; /* -1: not given */
    double clip, clip_value, average;           /* 0: not given; so ahead */
    double loss_scale;                          /* likewise */
    int64_t ahead, accumulate, norm_group;
    const char *freeze, *no_decay; /* patterns of names */
    const char *trace;             /* file; NULL: none */
    uint64_t limit_memory;
    const char *fallback; /* a device; NULL: none */
    const char *load, *save, *save_gradients, *export;
    uint64_t seed;
    /* predict */
    int64_t rows; /* -1: not given */
    const char *inputs[INPUTS_MOST];
    size_t input_count;
    const char *outputs; /* a file of --output: an array; of plot a picture, of report a page */
    /* compare, train, report */
    double threshold; /* -1: not given */
    const char *plot; /* a file */
    bool quick;
    /* operands */
    int argc;
    char **argv;
} bench_options;

/* Which commands take an option. */
enum {
    CMD_DEVICES = 1,
    CMD_GEMM = 2,
    CMD_CONV = 4,
    CMD_CHECK = 8,
    CMD_TRAIN = 16,
    CMD_PREDICT = 32,
    CMD_OP = 64,
    CMD_COPY = 128,
    CMD_PEAK = 256,
    CMD_HELP = 512,
    CMD_COMPLETION = 1024,
    CMD_PLOT = 2048,
    CMD_COMPARE = 4096,
    CMD_REPORT = 8192
};

typedef struct bench_command {
    const char *name, *operands, *help;
    uint32_t mask;
    int (*run)(const bench_options *options);
    const char *examples[2]; /* of its arguments */
} bench_command;

extern const bench_command bench_commands[]; /* ends with a NULL name */

/* The word of --math: what a run's record says. */
const char *math_name(const bench_options *o);

int cmd_devices(const bench_options *o);
int cmd_gemm(const bench_options *o);
int cmd_conv(const bench_options *o);
int cmd_op(const bench_options *o);
int cmd_copy(const bench_options *o);
int cmd_peak(const bench_options *o);
int cmd_check(const bench_options *o);
int cmd_train(const bench_options *o);
int cmd_predict(const bench_options *o);
int cmd_plot(const bench_options *o);
int cmd_compare(const bench_options *o);
int cmd_report(const bench_options *o);
int cmd_help(const bench_options *o);
int cmd_completion(const bench_options *o);

/* options_parse - fills *out and *command. False: *code is the exit code, and everything has been
 * said (-h and -V too). */
bool options_parse(int argc, char **argv, bench_options *out, const bench_command **command, int *code);

/* Whether it ends so, and is longer than that. */
bool ends_with(const char *text, const char *end);

/* Reads a size such as 512M, in powers of 1024. False: complained, as of option --`name`. */
bool bytes_parse(const char *name, const char *text, uint64_t *out);

/* Prints "cekernels-bench: TEXT" to stderr, and returns the code. */
int complain(int code, const char *fmt, ...) __attribute__((__format__(__printf__, 2, 3)));
/* "PATH: WHAT: " and the system's text for errno. EXIT_BAD_INPUT, or where that is ENOMEM EXIT_MEMORY: the file is not
 * at fault. */
int complain_errno(const char *path, const char *what);
/* The same with the text of the libraries' latest failure; the code is that of the status. */
int complain_status(cek_status status);
int exit_code_of(cek_status status);

/* An engine with the plugins the options ask for, and the devices they select for a job that needs
 * `profile`. Free both; 0 or an exit code. */
int engine_open(const bench_options *o, cek_engine **engine);
/* What --trace asked for, once nothing runs any more: `code`, or the code of a file that cannot be written. */
int trace_close(const bench_options *o, cek_engine *engine, int code);
/* Complains, and returns EXIT_MEMORY, where a plugin is missing because memory ran out while it was loaded: that says
 * nothing about what devices there are. */
int loads_judge(cek_engine *engine);
int devices_open(const bench_options *o, uint32_t profile, cek_engine **engine, cek_device ***devices, size_t *count);
/* The device that --fallback names, the engine's; NULL where it was not given. 0 or an exit code. */
int fallback_open(const bench_options *o, uint32_t profile, cek_engine *engine, cek_device **out);

double seconds_now(void); /* monotonic */

#endif
