/* main.c - the entry of cekernels-bench: the list of commands, exit codes of statuses, engines and
 * devices for the commands. */
#include "bench/crash.h"
#include "bench/output.h"
#include "bench/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* clang-format off */
const bench_command bench_commands[] = {
    { "devices", "", "plugins, devices, and why others are not there", CMD_DEVICES, cmd_devices,
      { "devices", "devices --json" } },
    { "gemm", "", "matrix products: speed, errors, comparison with a CBLAS library", CMD_GEMM, cmd_gemm,
      { "gemm -d cpu -s 1024x1024x1024", "gemm --peer=libopenblas.so.0 -s 512x512x512,4096x4096x4096" } },
    { "conv", "", "convolutions: speed and errors", CMD_CONV, cmd_conv,
      { "conv -s mb64ic64ih28oc128oh28kh3ph1", "conv --pass=weights -t bf16 -s mb64ic64ih28oc128oh28kh3ph1" } },
    { "op", "NAME [PROBLEM...]", "any operation: speed and errors", CMD_OP, cmd_op,
      { "op softmax", "op pool_forward mb64c32ih28kh2sh2:max -d all" } },
    { "copy", "", "copies from and to the host, and between devices", CMD_COPY, cmd_copy,
      { "copy --sizes=4K,64M", "copy -d gpu --json" } },
    { "peak", "", "the most that a device does: products, memory, launches", CMD_PEAK, cmd_peak,
      { "peak", "peak -d fastest -o md" } },
    { "train", "MODEL", "train a network on all devices", CMD_TRAIN, cmd_train,
      { "train lenet5 --epochs=2 --save=lenet5.safetensors",
        "train 'linear:16 relu linear:1' --csv=houses.csv --target=price --loss=mse -d cpu,cuda:0" } },
    { "predict", "MODEL", "run a trained network", CMD_PREDICT, cmd_predict,
      { "predict lenet5 --load=lenet5.safetensors --rows=10",
        "predict network.onnx --input=samples.npy --output=results.npy" } },
    { "check", "[CASES...]", "conformance: does a device compute what plugin.h says", CMD_CHECK, cmd_check,
      { "check -d cpu gemm softmax", "check --plugin=./mine.so --match=f32" } },
    { "plot", "LOG...", "pictures of results and traces: text, or -o FILE.svg or .png", CMD_PLOT, cmd_plot,
      { "plot training.jsonl", "plot gemm.json conv.json -o throughput.svg" } },
    { "compare", "A.json B.json", "is B slower than A: medians, ratios, how sure they are", CMD_COMPARE, cmd_compare,
      { "compare before.json after.json", "compare before.json after.json --threshold=0.1 -o md" } },
    { "report", "", "a page of HTML: devices, peaks, tables, plots, versions", CMD_REPORT, cmd_report,
      { "report -o machine.html", "report --quick -d cpu -o machine.html" } },
    { "help", "[COMMAND]", "the options of a command, and examples", CMD_HELP, cmd_help,
      { "help train", "help gemm" } },
    { "completion", "SHELL", "what bash or zsh needs to complete the words", CMD_COMPLETION, cmd_completion,
      { "completion bash >~/.local/share/bash-completion/completions/cekernels-bench",
        "completion zsh >~/.zfunc/_cekernels-bench" } },
    { NULL, NULL, NULL, 0, NULL, { NULL, NULL } },
};
/* clang-format on */

/* The command line, for what is said of failures. */
static bench_options given;
static const bench_command *running;

int exit_code_of(cek_status status)
{
    switch (status) {
    case CEK_OK: return EXIT_OK;
    case CEK_INVALID: return EXIT_USAGE;
    case CEK_NO_DEVICE:
    case CEK_UNAVAILABLE:
    case CEK_UNSUPPORTED: return EXIT_NO_DEVICE; /* no device that can do this */
    case CEK_DEVICE_LOST:
    case CEK_TIMEOUT: return EXIT_LOST;
    case CEK_BAD_INPUT:
    case CEK_NOT_FOUND:
    case CEK_IO: return EXIT_BAD_INPUT;
    case CEK_OUT_OF_MEMORY: return EXIT_MEMORY;
    case CEK_NOT_FINITE: return EXIT_NOT_FINITE;
    default: return EXIT_PLUGIN;
    }
}

/* What the command line would have to say instead, as far as the failure shows it. */
static const char *cure_of(cek_status status)
{
    const char *text = cek_error_text();
    const bool net = running && running->mask & (CMD_TRAIN | CMD_PREDICT);
    switch (status) {
    case CEK_OUT_OF_MEMORY:
        if (net && given.limit_memory)
            return "; a larger --limit-memory, or a smaller --batch, may do";
        return net ? "; a smaller --batch, or --dtype=bf16, needs less" : "";
    case CEK_DEVICE_LOST:
    case CEK_TIMEOUT: /* "no command finished for 0.3 s" is our patience, all else the device's end */
        return ends_with(text, " s") ? "; --timeout=SECONDS waits longer" : "";
    case CEK_UNSUPPORTED:
        return net && !given.fallback && strstr(text, "op_create: ") && !strstr(text, "cpu:0: op_create: ")
                   ? "; --fallback=cpu:0 has the processor do what this device cannot"
                   : "";
    case CEK_INVALID: return ends_with(text, "(norm_group)") ? "; --norm-group=N says it" : "";
    case CEK_BAD_INPUT:
        return ends_with(text, "a height and width that they are brought to") ? "; --image-size=HxW gives them" : "";
    case CEK_NO_DEVICE:
        return strstr(text, "no plugin was found") ? "; CEKERNELS_PLUGIN_PATH names folders of plugins" : "";
    default: return "";
    }
}

int complain_errno(const char *path, const char *what)
{
    return complain(errno == ENOMEM ? EXIT_MEMORY : EXIT_BAD_INPUT, "%s: %s: %s", path, what, strerror(errno));
}

int complain_status(cek_status status)
{
    return complain(exit_code_of(status), "%s%s", cek_error_text(), cure_of(status));
}

static void log_print(void *user, int level, const char *text)
{
    static const char *const names[] = { "", "error", "warning", "info", "debug" };
    (void)user;
    progress_aside(STDERR_FILENO);
    fprintf(stderr, "cekernels-bench: %s: %s\n", level > 0 && level < 5 ? names[level] : "log", text);
    progress_back();
}

int engine_open(const bench_options *o, cek_engine **engine)
{
    char path[4096]; /* what has no slash would be searched for */
    snprintf(path, sizeof path, "%s%s", o->plugin && !strchr(o->plugin, '/') ? "./" : "", o->plugin ? o->plugin : "");
    const char *files[] = { path, NULL };
    cek_engine_options eo = { .size = sizeof eo,
                              .plugin_files = o->plugin ? files : NULL,
                              .only_plugin_files = o->plugin != NULL,
                              .timeout_ns = (uint64_t)(o->timeout * 1e9) };
    cek_log_set(log_print, NULL, o->verbose ? CEK_LOG_INFO : CEK_LOG_WARN);
    cek_status st = cek_engine_create(&eo, engine);
    if (!st && o->trace && (st = cek_trace_start(*engine))) {
        cek_engine_free(*engine);
        *engine = NULL;
    }
    return st ? complain_status(st) : EXIT_OK;
}

int trace_close(const bench_options *o, cek_engine *engine, int code)
{
    cek_status st = o->trace && engine ? cek_trace_save(engine, o->trace) : CEK_OK;
    int saved = st ? complain_status(st) : EXIT_OK;
    return code ? code : saved;
}

int loads_judge(cek_engine *engine)
{
    for (size_t i = 0; i < cek_engine_load_count(engine); i++) {
        cek_load_entry e;
        if (!cek_engine_load_entry(engine, i, &e) && e.status == CEK_OUT_OF_MEMORY)
            return complain(EXIT_MEMORY, "%s: %s: %s", e.path, e.stage, e.reason);
    }
    return EXIT_OK;
}

int devices_open(const bench_options *o, uint32_t profile, cek_engine **engine, cek_device ***devices, size_t *count)
{
    int code = engine_open(o, engine);
    if (code)
        return code;
    cek_status st = cek_engine_select(*engine, o->devices, profile, devices, count);
    /* Where whatever joins was asked for, none may be missing unseen. */
    if (st || (!o->devices && !getenv("CEKERNELS_DEVICES")))
        code = loads_judge(*engine);
    if (st && !code)
        code = complain_status(st);
    if (code) {
        free(*devices);
        *devices = NULL;
        cek_engine_free(*engine);
        *engine = NULL;
    }
    return code;
}

int fallback_open(const bench_options *o, uint32_t profile, cek_engine *engine, cek_device **out)
{
    cek_device **devices;
    size_t count;
    *out = NULL;
    if (!o->fallback)
        return EXIT_OK;
    cek_status st = cek_engine_select(engine, o->fallback, profile, &devices, &count);
    if (st)
        return complain_status(st);
    *out = devices[0];
    free(devices);
    return count == 1 ? EXIT_OK
                      : complain(EXIT_USAGE, "--fallback=%s are %zu devices: one is wanted", o->fallback, count);
}

double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A stream that was closed stays one that fails, but no file that is opened later takes its number:
 * or else what is printed would end up in a checkpoint. */
static void streams_hold(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd)
            _exit(EXIT_BAD_INPUT);
}

int main(int argc, char **argv)
{
    int code;
    streams_hold();
    crash_watch();
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is a write that fails */
    if (!options_parse(argc, argv, &given, &running, &code))
        return stdout_close(code);
    progress_open(!given.quiet && !given.no_progress);
    code = running->run(&given);
    progress_close();
    return code;
}
