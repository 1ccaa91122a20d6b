/* SPDX-License-Identifier: MIT
 *
 * mutants.c - the conformance suite finds every mutant: one element wrong in one output of one
 * operation and type, at one of three places. A suite that misses one of them has a hole.
 *
 * And one whose errors are at the edges of functions alone: signs of zeros, denormals, saturation, units of
 * the last place.
 *
 * Every mutant runs in a process of its own that ends at the first check which fails. One that never strikes is counted
 * apart: the suite has no case with that output and type.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spec/spec.h"

enum { FOUND = 0, MISSED = 1, NO_STRIKE = 2, NO_CASE = 3, BROKEN = 4 };

typedef struct mutant {
    const char *op, *output, *type, *where, *edge, *code, *flushes;
    const char *group; /* whose cases find it */
    cek_dtype dtype;
    int strikes;
} mutant;

/* --- a host ----------------------------------------------------------------------------------- */

static const char *option(void *user, const char *key)
{
    const mutant *m = user;
    if (!strcmp(key, "mutant_op"))
        return m->op;
    if (!strcmp(key, "mutant_output"))
        return m->output;
    if (!strcmp(key, "mutant_type"))
        return m->type;
    if (!strcmp(key, "mutant_edge"))
        return m->edge;
    if (!strcmp(key, "mutant_flushes"))
        return m->flushes;
    if (!strcmp(key, "mutant_code"))
        return m->code;
    return strcmp(key, "mutant_where") ? NULL : m->where;
}

static void told(void *user, uint32_t level, const char *text)
{
    (void)level;
    ((mutant *)user)->strikes += !strncmp(text, "mutant: ", 8);
}

static void progress(void *user, const char *name, int result, bool required)
{
    const mutant *m = user;
    (void)name, (void)required;
    if (result == SPEC_FAILED)
        _exit(m->strikes ? FOUND : BROKEN);
}

static const cek_plugin *table(void)
{
    char path[4096];
    const char *folder = getenv("TEST_MUTANT_DIR"), *build = getenv("top_builddir");
    snprintf(path, sizeof path, "%s%s/mutant.so", folder ? folder : build ? build : ".", folder ? "" : "/tests/.libs");
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!so) {
        fprintf(stderr, "%s\n", dlerror());
        exit(99);
    }
    cek_plugin_query_fn query = (cek_plugin_query_fn)dlsym(so, CEK_PLUGIN_SYMBOL);
    return query(CEK_ABI);
}

/* Runs the cases of one mutant; does not return. */
static void child(const cek_plugin *plugin, mutant *m)
{
    static spec_report report;
    cek_host host = { .size = sizeof host, .abi = CEK_ABI, .user = m, .option = option, .log = told };
    spec_target target = { .plugin = plugin };
    const spec_options options = {
        .match = m->edge ? " edge" : NULL, .group = m->group, .type = m->dtype, .progress = progress, .user = m
    };
    if (plugin->create(&host, &target.instance) || plugin->device_open(target.instance, 0, NULL, &target.dev))
        _exit(BROKEN);
    cek_status st = spec_run(&target, &options, &report);
    if (st == CEK_INVALID)
        _exit(NO_CASE);
    _exit(st ? BROKEN : m->strikes ? MISSED : NO_STRIKE);
}

static int outcome(const cek_plugin *plugin, mutant *m)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        child(plugin, m);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return BROKEN;
    return WEXITSTATUS(status);
}

/* --- all of them ------------------------------------------------------------------------------ */

enum { DIRECTION_in = 0, DIRECTION_out = 1, DIRECTION_inout = 1 };
typedef struct slot_row {
    uint32_t kind;
    const char *kind_name, *name;
    int written;
} slot_row;
#define ROW(KIND, SLOT, NUMBER, DIRECTION, ...) { CEK_OP_##KIND, #KIND, #SLOT, DIRECTION_##DIRECTION },
static const slot_row slots[] = { CEK_ALL_OPERANDS(ROW) };

static const struct {
    cek_dtype type;
    const char *name;
} types[] = {
    { CEK_F32, "f32" },   { CEK_F64, "f64" }, { CEK_F16, "f16" },
    { CEK_BF16, "bf16" }, { CEK_U8, "u8" },   { CEK_I32, "i32" },
};
static const char *const wheres[] = { "interior", "tail", "last" };

static const char *lower(const char *name, char *to)
{
    size_t i = 0;
    for (; name[i]; i++)
        to[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] - 'A' + 'a' : name[i]);
    to[i] = 0;
    return to;
}

/* --- edges: each instruction with each error that it can make ----------------------------------------------------- */

#define CODE(code) (UINT64_C(1) << CEK_PW_##code)
#define GRADS (CODE(RELU_GRAD) | CODE(TANH_GRAD) | CODE(SIGMOID_GRAD) | CODE(GELU_GRAD))
#define ACTS (CODE(RELU) | CODE(TANH) | CODE(SIGMOID) | CODE(GELU))
#define EDGED (CODE(VALID) - 1 - 1 - CODE(CONST)) /* all that reads something */
#define WHOLE (CODE(LESS) | CODE(EQUAL) | CODE(FLOOR) | CODE(SIGN))
static const struct {
    const char *edge;
    uint64_t codes;
    const char *op, *output;
} edges[] = {
    { "zero", EDGED & ~CODE(COS), "pointwise", "OUT" },
    { "ulps", EDGED, "pointwise", "OUT" },
    { "denormal", EDGED & ~(WHOLE | CODE(SQRT) | CODE(LOG) | CODE(ADD_IMM) | CODE(COS)), "pointwise", "OUT" },
    { "one", CODE(TANH) | CODE(SIGMOID) | CODE(POW) | CODE(ERF) | CODE(EXPM1) | CODE(COS), "pointwise", "OUT" },
    { "ulps", ACTS | GRADS, "gemm", "C" },
    { "one", CODE(TANH) | CODE(SIGMOID), "gemm", "C" },
    { "ulps", ACTS, "conv_forward", "Y" },
    { "ulps", GRADS, "conv_backward_data", "DX" },
};

/* Devices that say so may flush, and nothing else. */
static int flushing_refused(const cek_plugin *plugin)
{
    static const char *const codes[] = { "6", "12", "15", "18", "19", "22", "23" }; /* DIV, EXP, MUL_IMM, ... */
    int refused = 0;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        mutant m = { .op = "pointwise",
                     .output = "OUT",
                     .type = "f32",
                     .edge = "denormal",
                     .code = codes[i],
                     .flushes = "1",
                     .group = "pointwise",
                     .dtype = CEK_F32 };
        int result = outcome(plugin, &m);
        m.edge = "ulps";
        int still = outcome(plugin, &m);
        refused += result != MISSED || still != FOUND;
        if (result != MISSED || still != FOUND)
            printf("a device that may flush and does, in instruction %s: %d; one too inexact: %d\n", codes[i], result,
                   still);
    }
    return refused;
}

static int edges_overlooked(const cek_plugin *plugin)
{
    int overlooked = 0, found = 0;
    for (size_t e = 0; e < sizeof edges / sizeof *edges; e++)
        for (uint32_t code = CEK_PW_CONST; code < CEK_PW_VALID; code++) {
            char text[8];
            snprintf(text, sizeof text, "%u", code);
            mutant m = { .op = edges[e].op,
                         .output = edges[e].output,
                         .type = "f32",
                         .edge = edges[e].edge,
                         .code = text,
                         .group = edges[e].op,
                         .dtype = CEK_F32 };
            if (!(edges[e].codes >> code & 1))
                continue;
            int result = outcome(plugin, &m);
            found += result == FOUND;
            overlooked += result != FOUND;
            if (result != FOUND)
                printf("not found (%d): %s of instruction %u in %s\n", result, m.edge, code, m.op);
        }
    printf("edges: %d mutants found, %d not\n", found, overlooked);
    return overlooked;
}

int main(void)
{
    const cek_plugin *plugin = table();
    int count[BROKEN + 1] = { 0 }, wrong = edges_overlooked(plugin) + flushing_refused(plugin);
    char op[64];
    for (size_t s = 0; s < sizeof slots / sizeof *slots; s++)
        for (size_t t = 0; slots[s].written && t < sizeof types / sizeof *types; t++)
            for (size_t w = 0; w < sizeof wheres / sizeof *wheres; w++) {
                mutant m = { .op = lower(slots[s].kind_name, op),
                             .output = slots[s].name,
                             .type = types[t].name,
                             .where = wheres[w],
                             .group = op,
                             .dtype = types[t].type };
                if (!strcmp(m.output, "RESERVE")) /* private: only backward shows it */
                    m.group = "pool_backward";
                int result = outcome(plugin, &m);
                count[result <= BROKEN ? result : BROKEN]++;
                /* In f32 every output has cases. */
                if (result == MISSED || result >= BROKEN || (result != FOUND && m.dtype == CEK_F32)) {
                    wrong++;
                    printf("not found (%d): %s %s %s, %s element\n", result, m.op, m.output, m.type, m.where);
                }
            }
    printf("mutants: %d found, %d missed, %d without a case\n", count[FOUND], count[MISSED] + count[BROKEN],
           count[NO_STRIKE] + count[NO_CASE]);
    /* At three places each: 28 outputs in f32, 27 in f64 (no LOW), 23 in f16 and bf16 (no
     * optimizer), copies and gathers in u8 and i32. */
    const int least = 3 * (28 + 27 + 23 + 23 + 4);
    if (count[FOUND] < least)
        printf("at least %d should have been found\n", least);
    return wrong != 0 || count[FOUND] < least;
}
