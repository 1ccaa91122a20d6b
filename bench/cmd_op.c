/* cmd_op.c - `op`: speed and errors of any operation, on problems stated as spec/ states them. */
#include <stdlib.h>
#include <string.h>

#include "bench/device_op.h"
#include "bench/output.h"
#include "bench/progress.h"
#include "bench/stats.h"
#include "bench/suggest.h"
#include "bench/tables.h"
#include "spec/number.h"
#include "spec/spec.h"

enum { RUNS = 9, WARMUP = 2 };

static const output_column columns[] = {
    { "device", "device", -12, 0, 0 },       { "op", "op", -21, 0, 0 },
    { "problem", "problem", -36, 0, 0 },     { "type", "type", -4, 0, 0 },
    { "median_ns", "ms", 9, 1e-6, 4 },       { "spread", "spread %", 8, 100, 1 },
    { "flops", "GFLOP/s", 8, 1e-9, 1 },      { "bytes_per_second", "GB/s", 8, 1e-9, 2 },
    { "max_error", "max error", 9, 1, 7 },   { "wrong", "wrong", 5, 0, 0 },
    { "algorithm", "algorithm", -22, 0, 0 },
};

static const char *core_error(void *user)
{
    (void)user;
    return cek_error_text();
}

static void row_print(output *out, cek_device *device, const char *name, const char *problem, cek_dtype type,
                      const spec_measurement *m)
{
    double median = stats_median(m->timing.seconds, m->timing.runs);
    json_t *row = json_pack("{ss ss ss ss sf sf so sI sI sf so sI sI ss}", "device", cek_device_name(device), "op",
                            name, "problem", problem, "type", spec_type_name(type), "median_ns", median * 1e9, "spread",
                            stats_spread(m->timing.seconds, m->timing.runs), "runs_ns",
                            runs_json(m->timing.seconds, m->timing.runs), "repeats", (json_int_t)m->timing.repeats,
                            "bytes", (json_int_t)m->bytes, "bytes_per_second", (double)m->bytes / median, "max_error",
                            number_json(m->max_error), "compared", (json_int_t)m->compared, "wrong",
                            (json_int_t)m->wrong, "algorithm", m->algorithm);
    if (m->flops > 0)
        json_object_update_new(row, json_pack("{sf}", "flops", m->flops / median));
    output_row(out, row);
}

static int problem_measure(cek_device *device, const bench_options *o, const char *problem, spec_measurement *m,
                           output *out)
{
    const char *name = o->argv[0];
    const uint32_t kind = spec_kind_parse(name);
    const cek_dtype type = o->type ? o->type : CEK_F32;
    spec_target target = { .error_text = core_error };
    cek_device_info info = { .size = sizeof info };
    cek_status st = cek_device_raw(device, &target.plugin, &target.dev);
    if (!st)
        st = cek_device_describe(device, &info);
    if (st)
        return complain_status(st);
    target.flags = info.flags;
    st = spec_measure(&target, kind, problem, type, m);
    if (st == CEK_UNSUPPORTED)
        return complain(EXIT_NO_DEVICE, "%s: %s %s %s is not supported", cek_device_name(device), name, problem,
                        spec_type_name(type));
    if (st)
        return complain(exit_code_of(st), "%s: %s %s: %s", cek_device_name(device), name, problem,
                        *m->error ? m->error : cek_status_name(st));
    row_print(out, device, name, problem, type, m);
    return m->wrong ? complain(EXIT_WRONG, "%s %s on %s: %llu values wrong", name, problem, cek_device_name(device),
                               (unsigned long long)m->wrong)
                    : EXIT_OK;
}

static const char *problem_of(const bench_options *o, int i)
{
    return o->argc > 1 ? o->argv[i + 1] : spec_measure_typical(spec_kind_parse(o->argv[0]));
}

int op_rows(const bench_options *o, cek_device *const *devices, size_t count, output *out)
{
    const int problems = o->argc > 1 ? o->argc - 1 : 1;
    spec_measurement m = { 0 };
    output_open(out, o->output, columns, sizeof columns / sizeof *columns, "results");
    devices_expect(out, "device", devices, count);
    output_expect(out, "op", strlen(o->argv[0]));
    for (int i = 0; i < problems; i++)
        output_expect(out, "problem", strlen(problem_of(o, i)));
    int code = timing_open(o, RUNS, WARMUP, &m.timing);
    progress_begin((int64_t)count * problems, "%s", o->argv[0]);
    for (size_t d = 0; d < count && code <= EXIT_WRONG; d++) {
        progress_label("%s %s", o->argv[0], cek_device_name(devices[d]));
        for (int i = 0; i < problems && code <= EXIT_WRONG; i++, progress_one()) {
            const char *problem = problem_of(o, i);
            progress_fact(0, "%s", problem);
            int one = problem_measure(devices[d], o, problem, &m, out);
            code = one > code ? one : code;
        }
    }
    free(m.timing.seconds);
    return code;
}

int cmd_op(const bench_options *o)
{
    if (!o->argc)
        return complain(EXIT_USAGE, "op takes the name of an operation, then problems");
    if (!spec_kind_parse(o->argv[0]))
        return complain(EXIT_USAGE, "no operation is called %s%s", o->argv[0], suggest_cases(o->argv[0], true).text);
    return table_run(o, "op", CEK_PROFILE_INFERENCE, op_rows);
}
