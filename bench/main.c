/* main.c - the entry of cekernels-bench: the list of commands, exit codes of statuses, engines and
 * devices for the commands. */
#include "bench/crash.h"
#include "bench/output.h"
#include "bench/progress.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const bench_command bench_commands[] = {
    { "devices", "", "plugins, devices, and why others are not there", CMD_DEVICES, cmd_devices },
    { "gemm", "", "matrix products: speed, errors, comparison with a CBLAS library", CMD_GEMM, cmd_gemm },
    { "conv", "", "convolutions: speed and errors", CMD_CONV, cmd_conv },
    { "op", "NAME [PROBLEM...]", "any operation: speed and errors", CMD_OP, cmd_op },
    { "copy", "", "copies from and to the host, and between devices", CMD_COPY, cmd_copy },
    { "peak", "", "the most that a device does: products, memory, launches", CMD_PEAK, cmd_peak },
    { "train", "MODEL", "train a network on all devices", CMD_TRAIN, cmd_train },
    { "predict", "MODEL", "run a trained network", CMD_PREDICT, cmd_predict },
    { "check", "[CASES...]", "conformance: does a device compute what plugin.h says", CMD_CHECK, cmd_check },
    { "plot", "LOG...", "pictures of results and traces: text, or -o FILE.svg or .png", CMD_PLOT, cmd_plot },
    { "compare", "A.json B.json", "is B slower than A: medians, ratios, how sure they are", CMD_COMPARE, cmd_compare },
    { "report", "", "a page of HTML: devices, peaks, tables, plots, versions", CMD_REPORT, cmd_report },
    { NULL, NULL, NULL, 0, NULL },
};

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

int complain_status(cek_status status)
{
    return complain(exit_code_of(status), "%s", cek_error_text());
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
    const char *files[] = { o->plugin, NULL };
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
    bench_options options;
    const bench_command *command;
    int code;
    streams_hold();
    crash_watch();
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is a write that fails */
    if (!options_parse(argc, argv, &options, &command, &code))
        return stdout_close(code);
    progress_open(!options.quiet && !options.no_progress);
    code = command->run(&options);
    progress_close();
    return code;
}
