/* spec.h - what a device must compute: conformance of anything that speaks plugin.h.
 *
 *     spec_target target = { .plugin = p, .instance = in, .index = 0, .dev = dev };
 *     spec_report report;
 *     if (spec_run(&target, NULL, &report) == CEK_OK && report.ok)
 *         printf("required %u/%u\n", report.total.required_passed, report.total.required);
 *
 * Every case states a problem as data, its expected result comes from an oracle of spec's own in
 * extended precision, and its tolerance from the arithmetic (number.h). Required cases cannot be
 * skipped by answering CEK_UNSUPPORTED. Owns: the cases, the oracle, the verdict. Knows devices
 * through plugin.h alone: no loader, no libcekernels, no printing. */
#ifndef SPEC_SPEC_H
#define SPEC_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cekernels/plugin.h"

/* Fills of the operands of a case. */
enum {
    SPEC_WHOLE = 1,    /* small integers: results are exact */
    SPEC_REAL = 2,     /* uniform in [-1,1): results within the bound of the arithmetic */
    SPEC_NAN = 3,      /* small integers with a few NaN: they must come out where they belong, and only there */
    SPEC_EDGE = 4,     /* zeros of either sign, infinities, NaN, denormals, the largest numbers, where functions turn */
    SPEC_INFINITE = 5, /* small integers with an infinity or two: they show in all that they are part of */
    SPEC_FILLS
};

typedef struct spec_target {
    const cek_plugin *plugin;
    cek_instance *instance; /* NULL for spec_measure where only the device is at hand */
    uint32_t index;         /* of the device in the instance */
    uint32_t flags;         /* without an instance: the device's, as its device_info has them */
    cek_dev *dev;
    const cek_host *host; /* that `instance` was created with, or NULL: checks create another with it */
    const char *(*error_text)(void *user); /* the last text that the plugin gave to host->fail; may be NULL */
    void *user;
} spec_target;

enum { SPEC_PASSED = 1, SPEC_FAILED = 2, SPEC_UNSUPPORTED = 3, SPEC_STARVED = 4 };

/* Bytes of one output as the device left them, for a test that proves the comparison: what it
 * changes must be found. */
typedef struct spec_output {
    const char *name; /* of the operand: "C" */
    cek_dtype type;
    uint64_t count;
    void *bytes;
    const double *expect, *bound;
    const uint8_t *written; /* NULL: all; else 0 for elements that must keep their old bits */
} spec_output;

typedef struct spec_options {
    const char *match;   /* run only cases whose full name ("gemm f32 3x5x7:bias whole") contains this */
    const char *group;   /* run only the cases of this group: "memory", "gemm"; NULL: all */
    cek_dtype type;      /* this element type alone; 0 = all */
    uint64_t timeout_ns; /* of one case on the device; 0 = 60 s */
    void (*tamper)(void *user, const spec_output *output);
    void (*begin)(void *user, const char *name); /* of each case, before its first call */
    void (*progress)(void *user, const char *name, int result, bool required);
    void *user;
} spec_options;

typedef struct spec_count {
    uint32_t required, required_passed;
    uint32_t optional, optional_passed, optional_unsupported;
} spec_count;

enum { SPEC_LINES_MAX = 160, SPEC_FAILURES_MAX = 16, SPEC_TEXT_MAX = 256 };

/* The counts of one group ("gemm", "memory") and one type ("f32"; "-" where there is none). */
typedef struct spec_line {
    char group[32];
    char type[8];
    spec_count count;
} spec_line;

typedef struct spec_failure {
    char name[SPEC_TEXT_MAX]; /* full name of the case */
    char what[SPEC_TEXT_MAX]; /* what went wrong, in words */
    char operand[24];         /* and for wrong values: which, how many, the first of them; else "" */
    uint64_t index, wrong;
    double got, expected, tolerance;
} spec_failure;

typedef struct spec_report {
    spec_count total;
    spec_line line[SPEC_LINES_MAX];
    uint32_t line_count;
    spec_failure failure[SPEC_FAILURES_MAX];
    uint32_t failure_count;      /* all of them; the first SPEC_FAILURES_MAX are kept */
    uint32_t profile;            /* as claimed */
    uint32_t starved_count;      /* cases that ended for want of memory, here or on the device; counted nowhere else */
    char starved[SPEC_TEXT_MAX]; /* the first of them, and what there was no memory for; or "" */
    char missing[SPEC_TEXT_MAX]; /* a claim of which no case was run, or "" */
    bool ok;                     /* cases ran, none failed or starved, every claim was examined */
    bool abandoned;              /* the device may still be at work with what it was given: close nothing of it */
} spec_report;

/* spec_table_take - the first thing to look at, before anything of the plugin is called: copies what both sides know of
 * its table into *out, for spec_target. False: it breaks a rule of plugin.h, by which loaders refuse it too; `error`
 * tells which, without naming the plugin. */
bool spec_table_take(const cek_plugin *theirs, cek_plugin *out, char *error, size_t cap);

/* spec_run - runs the cases on a device. `options` may be NULL. Blocks; uses the calling thread and
 * a few of its own. CEK_OK: ran to the end, see report->ok. CEK_OUT_OF_MEMORY: so it did, but report->starved_count
 * cases came to no verdict. Else the run broke off: CEK_DEVICE_LOST, CEK_INTERNAL for a plugin whose queue_sync does
 * not wait, CEK_INVALID for options that select nothing; the report holds what was found until then. */
cek_status spec_run(const spec_target *target, const spec_options *options, spec_report *report);

/* How many cases of operations these options select, on a device that has all operations: what spec_run will come to,
 * but for the cases of devices, memory and queues, some hundred. `options` may be NULL. Nothing of the
 * options is called. */
uint32_t spec_case_count(const spec_options *options);

/* CEK_OP_... of a name such as "gemm" or "conv_backward_data"; 0 for any other. */
uint32_t spec_kind_parse(const char *name);
/* The groups of cases by name, operations first; NULL behind the last. */
const char *spec_group_name(uint32_t index);
/* Whether cases can be of this group: an operation's name, or "device", "memory", "queue", "command_buffer",
 * "null". */
bool spec_group_known(const char *name);

/* How something is timed, and what came out. */
typedef struct spec_timing {
    double *seconds;       /* the caller's, `runs` of them: each of one run, in the order measured */
    uint32_t runs, warmup; /* the caller's; warmup: runs that are not timed, besides one that says how long it takes */
    uint64_t repeats;      /* runs between two looks at the clock; 0 becomes as many as make the clock no matter */
} spec_timing;

/* spec_time - the one way in which runs are timed. `run` does it so many times, and waits; `before`, which may be NULL,
 * comes ahead of each timed turn, counted from 0, and may run something else as often, to compare. The first status
 * that is not CEK_OK breaks it off and is returned. */
cek_status spec_time(spec_timing *t, cek_status (*run)(void *user, uint64_t times),
                     cek_status (*before)(void *user, uint32_t turn, uint64_t times), void *user);

/* One problem, measured. */
typedef struct spec_measurement {
    spec_timing timing;       /* the caller fills it in */
    uint64_t bytes;           /* of the operands that a run reads and writes, each once */
    double flops;             /* of a run; 0: not counted for this operation */
    uint64_t compared, wrong; /* values of all outputs, and those beyond the error they may have */
    double max_error;
    bool uncompared; /* there was no memory to compare what came out */
    char algorithm[64];
    char error[SPEC_TEXT_MAX];
} spec_measurement;

/* spec_measure - the problem that `text` states in the language of the cases ("5x7:a0:sum"; what a
 * kind's modifiers are, its file in spec/ says), with real numbers: run and compared once, then
 * timed. Blocks. CEK_OK: measured, perhaps with wrong values; CEK_INVALID: no such problem;
 * CEK_UNSUPPORTED; or what broke it off. m->error says why. */
cek_status spec_measure(const spec_target *target, uint32_t kind, const char *text, cek_dtype type,
                        spec_measurement *m);
/* A problem of a size that is worth timing; NULL for no kind. */
const char *spec_measure_typical(uint32_t kind);

/* spec_gradients - holds the oracle's backward forms against central differences of its forward
 * forms; needs no device. The number of checks in *run, that of the failed ones in *failed, the first of those in
 * `text`. CEK_OUT_OF_MEMORY: that came to no end. */
cek_status spec_gradients(uint32_t *run, uint32_t *failed, char *text, size_t cap);

/* Problem descriptors as short strings, shared with the benchmark. The descriptor is zeroed and
 * gets its sizes, shapes and leading dimensions; types and operands are the caller's. *rest points
 * at the ':' of the modifiers or at the end. False: `error` (cap bytes) names the text and the
 * cause. gemm: MxNxK conv: benchdnn's g, mb, ic, id ih iw, oc, od oh ow, kd kh kw, sd sh sw, pd ph
 * pw, dd dh dw (0 = dense). What is missing of d and w is taken from h; sizes of the output follow
 * from the rest, or, where given, the padding behind follows from them. */
bool spec_gemm_read(const char *text, cek_gemm_desc *out, const char **rest, char *error, size_t cap);
bool spec_conv_read(const char *text, cek_conv_desc *out, const char **rest, char *error, size_t cap);
/* The spatial sizes of the output of a valid descriptor; entries past `spatial` are 1. */
void spec_conv_out(const cek_conv_desc *desc, uint64_t out[CEK_SPATIAL_MAX]);
double spec_gemm_flops(const cek_gemm_desc *desc);
double spec_conv_flops(const cek_conv_desc *desc);

/* One element of a product or a convolution by its definition, in extended precision, from f32
 * data, and the largest error that f32 sums may show: for checking samples of results too large to
 * compute in full. `index` is row-major in the result. desc->op.kind says which convolution; a and
 * b are X and W, DY and W, or X and DY. */
double spec_gemm_at(const cek_gemm_desc *desc, const float *a, const float *b, uint64_t index, double *tolerance);
double spec_conv_at(const cek_conv_desc *desc, const double *a, const double *b, uint64_t index, double *tolerance);
/* spec_conv_transformed - the same of every element where the operation is CEK_OP_INFO_INEXACT (plugin.h, section 10)
 * and operands are numbers at random, as many as are told. */
double spec_conv_transformed(const cek_conv_desc *desc, const double *a, uint64_t a_count, const double *b,
                             uint64_t b_count);

#endif
