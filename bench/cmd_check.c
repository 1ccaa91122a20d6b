/* cmd_check.c - `check`: runs spec/ against devices, through their plugins opened by hand.
 *
 * Which files and devices there are the engine says; a file named by --plugin is opened without it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/crash.h"
#include "bench/output.h"
#include "bench/plugin_file.h"
#include "bench/progress.h"
#include "bench/suggest.h"
#include "spec/number.h"
#include "spec/spec.h"

static const output_column columns[] = {
    { "device", "device", -11, 0, 0 }, { "group", "op", -22, 0, 0 },
    { "type", "type", -5, 0, 0 },      { "required_passed", "required", 9, 0, 0 },
    { "required", "of", 6, 0, 0 },     { "optional_passed", "optional", 9, 0, 0 },
    { "optional", "of", 6, 0, 0 },     { "optional_unsupported", "unsupported", 11, 0, 0 },
};

typedef struct check_run {
    const bench_options *options;
    output out;
    uint32_t done, required, required_passed, optional, optional_passed;
    int code;
    const char *device; /* whose turn it is */
    bool abandoned;     /* a device may still be at work: nothing is closed any more */
} check_run;

/* A plugin that crashes takes this program with it: then the case is told that it did in. */
static void on_begin(void *user, const char *name)
{
    crash_during(((check_run *)user)->device, name);
}

static void on_case(void *user, const char *name, int result, bool required)
{
    static const char *const words[] = { "", "ok", "FAILED", "unsupported", "no memory" };
    check_run *run = user;
    crash_during(NULL, NULL);
    progress_done(++run->done);
    if (progress_wants_facts())
        progress_fact(0, "%.38s", name);
    if (!run->options->verbose)
        return;
    progress_aside(STDERR_FILENO);
    fprintf(stderr, "%s%s: %s\n", name, required ? "" : " (optional)", words[result]);
    progress_back();
}

static const char *profile_name(uint32_t profile)
{
    static const char *const names[] = { "?", "memory", "inference", "training" };
    return names[profile <= CEK_PROFILE_TRAINING ? profile : 0];
}

static json_t *failure_json(const spec_failure *f)
{
    json_t *row = json_pack("{ss so}", "case", f->name, "what", text_json(f->what));
    if (*f->operand)
        json_object_update_new(row,
                               json_pack("{ss sI sI so so so}", "operand", f->operand, "index", (json_int_t)f->index,
                                         "wrong", (json_int_t)f->wrong, "got", number_json(f->got), "expected",
                                         number_json(f->expected), "tolerance", number_json(f->tolerance)));
    return row;
}

static void report_print(check_run *run, const char *device, const spec_report *r)
{
    json_t *failures = json_object_get(run->out.document, "failures");
    for (uint32_t i = 0; i < r->line_count; i++) {
        const spec_line *l = &r->line[i];
        output_row(&run->out,
                   json_pack("{ss ss ss si si si si si}", "device", device, "group", l->group, "type", l->type,
                             "required", l->count.required, "required_passed", l->count.required_passed, "optional",
                             l->count.optional, "optional_passed", l->count.optional_passed, "optional_unsupported",
                             l->count.optional_unsupported));
    }
    for (uint32_t i = 0; i < r->failure_count && i < SPEC_FAILURES_MAX; i++) {
        json_array_append_new(failures, failure_json(&r->failure[i]));
        output_note(&run->out, "%s: FAILED: %s: %s", device, r->failure[i].name, r->failure[i].what);
    }
    if (r->failure_count > SPEC_FAILURES_MAX)
        output_note(&run->out, "%s: and %u more", device, r->failure_count - SPEC_FAILURES_MAX);
    if (*r->missing)
        output_note(&run->out, "%s: FAILED: %s", device, r->missing);
    output_note(&run->out, "%s: %s, profile %s: required %u/%u, optional %u/%u", device,
                r->ok                                   ? "passed"
                : r->starved_count && !r->failure_count ? "not all checked"
                                                        : "failed",
                profile_name(r->profile), r->total.required_passed, r->total.required, r->total.optional_passed,
                r->total.optional);
    run->required += r->total.required, run->required_passed += r->total.required_passed;
    run->optional += r->total.optional, run->optional_passed += r->total.optional_passed;
}

/* Names of groups of cases on the command line, or one option, narrow the run; each name is a run of its own. */
static int check_device(check_run *run, plugin_file *file, uint32_t index, const char *name)
{
    cek_dev *dev = NULL;
    static spec_report report; /* large */
    cek_status st = file->plugin.device_open(file->instance, index, NULL, &dev);
    if (st)
        return complain(st == CEK_OUT_OF_MEMORY ? EXIT_MEMORY : EXIT_NO_DEVICE, "%s: cannot be opened: %s", name,
                        plugin_file_error(file));
    spec_target target = { .plugin = &file->plugin,
                           .instance = file->instance,
                           .index = index,
                           .dev = dev,
                           .host = &file->host,
                           .error_text = plugin_file_error,
                           .user = file };
    spec_options options = {
        .match = run->options->match, .type = run->options->type, .begin = on_begin, .progress = on_case, .user = run
    };
    run->device = name;
    int code = EXIT_OK;
    for (int i = 0; i < (run->options->argc ? run->options->argc : 1) && !file->abandoned; i++) {
        options.group = run->options->argc ? run->options->argv[i] : NULL;
        progress_begin(spec_case_count(&options), "check %s", name);
        run->done = 0;
        st = spec_run(&target, &options, &report);
        if (st == CEK_INVALID) {
            code = complain(EXIT_USAGE, "%s: no case fits these options", name);
            continue;
        }
        report_print(run, name, &report);
        file->abandoned = report.abandoned;
        if (st && report.starved_count)
            code = complain(exit_code_of(st), "%s: there was no memory for %u of the cases; %s", name,
                            report.starved_count, report.starved);
        else if (st)
            code = complain(exit_code_of(st), "%s: the run broke off: %s", name,
                            *report.missing ? report.missing : cek_status_name(st));
        else if (!report.ok)
            code = EXIT_WRONG;
    }
    if (!file->abandoned)
        file->plugin.device_close(dev);
    return code;
}

/* All devices of a file whose names are wanted; `wanted` NULL: all. */
static int check_file(check_run *run, const char *path, cek_device *const *wanted, size_t wanted_count)
{
    plugin_file file;
    int code = plugin_file_open(path, &file), worst = code;
    const uint32_t count = code ? 0 : file.plugin.device_count(file.instance);
    if (count > CEK_DEVICES_MAX)
        worst = complain(EXIT_PLUGIN, "%s: it reports %u devices, at most %u are possible", path, count,
                         CEK_DEVICES_MAX);
    for (uint32_t i = 0; count <= CEK_DEVICES_MAX && i < count && !file.abandoned; i++) {
        char name[80];
        snprintf(name, sizeof name, "%s:%u", file.plugin.name, i);
        bool selected = !wanted;
        for (size_t w = 0; w < wanted_count; w++)
            selected = selected || !strcmp(cek_device_name(wanted[w]), name);
        int one = selected ? check_device(run, &file, i, name) : EXIT_OK;
        worst = one > worst ? one : worst;
    }
    if (!code && !wanted && !count)
        worst = complain(EXIT_NO_DEVICE, "%s: has no device", path);
    run->abandoned |= file.abandoned;
    if (!file.abandoned) /* what is still at work may use it */
        plugin_file_close(&file);
    return worst;
}

static int check_installed(check_run *run)
{
    cek_engine *engine = NULL;
    cek_device **devices = NULL;
    size_t count = 0;
    int worst = devices_open(run->options, CEK_PROFILE_MEMORY, &engine, &devices, &count);
    for (size_t i = 0; engine && i < cek_engine_load_count(engine) && !run->abandoned; i++) {
        cek_load_entry e;
        if (cek_engine_load_entry(engine, i, &e) || e.status != CEK_OK || !e.profile)
            continue;
        int one = check_file(run, e.path, devices, count);
        worst = one > worst ? one : worst;
    }
    free(devices);
    if (!run->abandoned)
        cek_engine_free(engine);
    return worst;
}

int cmd_check(const bench_options *o)
{
    check_run run = { .options = o };
    for (int i = 0; i < o->argc; i++)
        if (!spec_group_known(o->argv[i]))
            return complain(EXIT_USAGE,
                            "no cases are called %s: the name of an operation, or device, memory, queue, "
                            "command_buffer or null%s",
                            o->argv[i], suggest_cases(o->argv[i], false).text);
    if (o->plugin && o->devices)
        return complain(EXIT_USAGE, "--plugin checks all devices of the file; --devices is for installed ones");
    char text[SPEC_TEXT_MAX];
    uint32_t failed, gradients;
    cek_status st = spec_gradients(&gradients, &failed, text, sizeof text);
    if (st)
        return complain(exit_code_of(st), "no host memory for the oracle's gradients");
    output_open(&run.out, o->output, columns, sizeof columns / sizeof *columns, "results");
    output_set(&run.out, "failures", json_array());
    int code = failed ? complain(EXIT_WRONG, "the oracle's gradients: %s", text) : EXIT_OK;
    output_set(&run.out, "gradients", json_integer(gradients));
    output_set(&run.out, "gradients_passed", json_integer(gradients - failed));

    int worst = o->plugin ? check_file(&run, o->plugin, NULL, 0) : check_installed(&run);
    code = worst > code ? worst : code;
    if (run.required || run.optional)
        output_note(&run.out, "gradients of the oracle %u/%u\nrequired %u/%u, optional %u/%u", gradients - failed,
                    gradients, run.required_passed, run.required, run.optional_passed, run.optional);
    output_set(&run.out, "required", json_integer(run.required));
    output_set(&run.out, "required_passed", json_integer(run.required_passed));
    output_set(&run.out, "optional", json_integer(run.optional));
    output_set(&run.out, "optional_passed", json_integer(run.optional_passed));
    output_set(&run.out, "passed", json_boolean(code == EXIT_OK));
    return output_close(&run.out, code);
}
