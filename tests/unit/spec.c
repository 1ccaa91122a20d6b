/* spec.c - the conformance suite itself: its numbers, its parsers, and that every case of it can
 * fail. */
#include <check.h>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec/problem.h"

/* What the reference answered when this was written. More is fine, less means that cases were lost.
 */
enum { REQUIRED_AT_LEAST = 1757, OPTIONAL_AT_LEAST = 4960, GRADIENTS_AT_LEAST = 25 };

/* ---- numbers ---- */

START_TEST(rounding_to_small_types_is_to_nearest_even)
{
    static const struct {
        cek_dtype type;
        double in, out;
    } rows[] = {
        { CEK_F16, 2049, 2048 },
        { CEK_F16, 2051, 2052 },
        { CEK_F16, 65519, 65504 },
        { CEK_F16, 65520, INFINITY },
        { CEK_F16, 0x1p-25, 0 },
        { CEK_F16, 0x1.8p-25, 0x1p-24 },
        { CEK_F16, -0x1.8p-24, -0x1p-23 },
        { CEK_F16, 0x1p-14, 0x1p-14 },
        { CEK_BF16, 257, 256 },
        { CEK_BF16, 259, 260 },
        { CEK_BF16, 3.3961e38, 0x1.fep127 },
        { CEK_BF16, 3.3962e38, INFINITY },
        { CEK_BF16, 1, 1 },
        { CEK_F32, 16777217, 16777216 },
        { CEK_F64, 0.1, 0.1 },
        { CEK_U8, 254.5, 254 },
        { CEK_U8, 255.5, 255 },
        { CEK_U8, -1, 0 },
        { CEK_U8, NAN, 0 },
        { CEK_I32, 2.5, 2 },
        { CEK_I32, 3.5, 4 },
        { CEK_I32, 1e20, 2147483647.0 },
        { CEK_I32, -INFINITY, -2147483648.0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double out = spec_round(rows[i].in, rows[i].type), back;
        uint64_t bytes = 0;
        ck_assert_msg(out == rows[i].out, "%s of %g is %g, not %g", spec_type_name(rows[i].type), rows[i].in, out,
                      rows[i].out);
        spec_encode(rows[i].type, &rows[i].in, 1, &bytes);
        spec_decode(rows[i].type, &bytes, 1, &back);
        ck_assert_msg(back == rows[i].out, "%s of %g is stored as %g", spec_type_name(rows[i].type), rows[i].in, back);
    }
}
END_TEST

START_TEST(half_precision_survives_a_round_trip_of_every_bit_pattern)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        for (cek_dtype type = CEK_F16; type <= CEK_BF16; type++) {
            uint16_t in = (uint16_t)bits, out = 0;
            double value;
            spec_decode(type, &in, 1, &value);
            spec_encode(type, &value, 1, &out);
            if (!isnan(value))
                ck_assert_uint_eq(in, out);
            spec_decode(type, &out, 1, &value);
            ck_assert(isnan(value) == (type == CEK_F16 ? (in & 0x7fff) > 0x7c00 : (in & 0x7fff) > 0x7f80));
        }
    }
}
END_TEST

START_TEST(philox_gives_the_published_answers)
{
    static const uint32_t zero[4] = { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 };
    static const uint32_t pi[4] = { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 };
    uint32_t word[4];
    spec_philox(0, 0, 0, 0, word);
    ck_assert_mem_eq(word, zero, sizeof zero);
    spec_philox(0x299f31d0a4093822u, 0x0370734413198a2eu, 0x85a308d3, 0x243f6a88, word);
    ck_assert_mem_eq(word, pi, sizeof pi);
}
END_TEST

START_TEST(error_bounds_are_the_textbook_ones)
{
    const double u = 0x1p-24;
    ck_assert(spec_sum(CEK_F32, 100, 1000, 50, true).e == 0);  /* integers below 2^24 */
    ck_assert(spec_sum(CEK_F32, 100, 0x1p25, 50, true).e > 0); /* and above */
    spec_num sum = spec_sum(CEK_F32, 1, 10, 99, false);
    ck_assert((double)sum.e >= 99 * u * 10 && (double)sum.e < 102 * u * 10);
    ck_assert(spec_add(CEK_F32, spec_exact(1), spec_exact(2)).e == 0); /* representable: exact */
    ck_assert(spec_add(CEK_F32, spec_exact(1), spec_exact(1e-9)).e > 0);
    ck_assert(spec_div(CEK_F32, spec_exact(1), spec_exact(4)).e == 0);
    ck_assert(spec_div(CEK_F32, spec_exact(1), spec_exact(3)).e > 0);
    /* f32 arithmetic stays within them, on a million products */
    for (int i = 0; i < 1000000; i++) {
        float a = (float)spec_uniform(1, (uint64_t)i), b = (float)spec_uniform(2, (uint64_t)i) - 0.5f,
              c = a * b + a / (b + 1);
        spec_num r = spec_add(CEK_F32, spec_mul(CEK_F32, spec_exact(a), spec_exact(b)),
                              spec_div(CEK_F32, spec_exact(a), spec_add(CEK_F32, spec_exact(b), spec_exact(1))));
        ck_assert_msg(fabsl(c - r.v) <= r.e, "%g and %g: %Lg off, bound %Lg", a, b, fabsl(c - r.v), r.e);
    }
}
END_TEST

/* ---- parsers ---- */

static bool conv(const char *text, cek_conv_desc *d)
{
    char error[SPEC_TEXT_MAX] = "";
    const char *rest = NULL;
    bool ok = spec_conv_read(text, d, &rest, error, sizeof error);
    ck_assert_msg(ok == !*error, "%s: %s", text, error);
    ck_assert(!ok || !*rest || *rest == ':');
    return ok;
}

START_TEST(convolutions_are_read_as_benchdnn_reads_them)
{
    cek_conv_desc d;
    uint64_t out[CEK_SPATIAL_MAX];
    ck_assert(conv("mb64ic64ih28oc128oh28kh3ph1", &d));
    ck_assert(d.spatial == 2 && d.batch == 64 && d.in_channels == 64 && d.out_channels == 128 && d.groups == 1);
    ck_assert(d.in[0] == 28 && d.in[1] == 28 && d.in[2] == 0 && d.kernel[1] == 3 && d.pad_lo[1] == 1 &&
              d.pad_hi[1] == 1);
    ck_assert(d.stride[0] == 1 && d.dilation[0] == 1 && d.stride[2] == 0);
    spec_conv_out(&d, out);
    ck_assert(out[0] == 28 && out[1] == 28 && out[2] == 1);
    ck_assert(spec_conv_flops(&d) == 2.0 * 64 * 128 * 28 * 28 * 64 * 9);

    ck_assert(conv("mb1ic4ih8oc3oh8kh4ph1:bias", &d)); /* the size of the output makes the padding behind */
    ck_assert(d.pad_lo[0] == 1 && d.pad_hi[0] == 2);
    ck_assert(conv("g2mb1ic4ih11oc6kh3sh2dh1", &d)); /* the output follows; dilation counts from 0 */
    spec_conv_out(&d, out);
    ck_assert(d.groups == 2 && d.dilation[0] == 2 && out[0] == 4);
    ck_assert(conv("ic3iw16oc5kw3", &d) && d.spatial == 1 && d.in[0] == 16 && d.in[1] == 0 && d.batch == 2);
    ck_assert(conv("ic3id4ih5iw6oc5kd3kh2kw1", &d) && d.spatial == 3 && d.in[2] == 6 && d.kernel[0] == 3);
    ck_assert(conv("ic2id5oc3kd3pd1", &d) && d.spatial == 3 && d.in[2] == 5 && d.pad_lo[2] == 1);
}
END_TEST

START_TEST(what_is_no_convolution_is_refused)
{
    static const char *const texts[] = { "",
                                         "x",
                                         "mb1",
                                         "ic3oc4kh3",
                                         "ic3ih5oc4",
                                         "ic3ih5oc4kh6",
                                         "ic3ih5oc4kh3oh9ph0sh2q",
                                         "ic3ih5oc4kh3g2",
                                         "ic0ih5oc4kh3",
                                         "ic3ih0oc4kh3",
                                         "ic3ih5oc4kh0",
                                         "ic3ih5oc4kh3sh0",
                                         "ic3ih5oc4kh3oh1",
                                         "ic3ih5oc4kh3zz1",
                                         "ic3ih5oc4kh99999999999",
                                         "ic3ih5oc4kh-3" };
    cek_conv_desc d;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_msg(!conv(texts[i], &d), "\"%s\" was taken for a convolution", texts[i]);
}
END_TEST

START_TEST(products_are_read)
{
    static const char *const wrong[] = { "",      "5",     "5x6",  "5x6x7x8", "0x6x7",
                                         "5x0x7", "ax6x7", "5x6x", "5x6x7q",  "5x6x99999999999" };
    char error[SPEC_TEXT_MAX];
    const char *rest;
    cek_gemm_desc d;
    ck_assert(spec_gemm_read("64x1024x25088:ta", &d, &rest, error, sizeof error));
    ck_assert(d.m == 64 && d.n == 1024 && d.k == 25088 && d.batch == 1 && !strcmp(rest, ":ta"));
    ck_assert(d.lda == 25088 && d.ldb == 1024 && d.ldc == 1024 && spec_gemm_flops(&d) == 2.0 * 64 * 1024 * 25088);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(!spec_gemm_read(wrong[i], &d, &rest, error, sizeof error), "\"%s\" was taken for a product",
                      wrong[i]);
}
END_TEST

/* Elements of outputs that any value would satisfy. */
static uint64_t unbounded(const spec_problem *p, uint64_t *all)
{
    uint64_t count = *all = 0;
    for (uint32_t o = 0; o < p->operand_count; o++)
        for (uint64_t i = 0; p->operand[o].bound && i < p->operand[o].count; i++, (*all)++)
            count += !isfinite(p->operand[o].bound[i]);
    return count;
}

/* Every case that any device could be asked, in every type and fill: it can be built, and has a
 * tolerance everywhere; of edges all but a few, which lie where the type ends or are infinity times
 * what may be 0. */
START_TEST(every_case_can_be_built)
{
    uint32_t kinds_count, built = 0;
    const spec_kind *const *kinds = spec_kinds(&kinds_count);
    ck_assert_uint_eq(kinds_count, 18); /* those of plugin.h */
    for (uint32_t k = 0; k < kinds_count; k++) {
        for (uint32_t c = 0; c < kinds[k]->case_count; c++) {
            const spec_case *one = &kinds[k]->cases[c];
            for (cek_dtype type = CEK_F32; type <= CEK_I32; type++) {
                for (uint32_t fill = SPEC_WHOLE; fill < SPEC_FILLS; fill++) {
                    if (!(one->types >> type & 1 && one->fills >> fill & 1))
                        continue;
                    uint64_t all, open;
                    spec_problem *p = calloc(1, sizeof *p);
                    spec_problem_init(p, kinds[k]->kind, type, fill, false, 1);
                    ck_assert_msg(kinds[k]->build(one->text, p), "%s %s: %s", kinds[k]->name, one->text, p->error);
                    open = unbounded(p, &all);
                    ck_assert_msg(open <= (fill == SPEC_EDGE ? all / 4 : 0), "%s %s: %llu of %llu have no tolerance",
                                  kinds[k]->name, one->text, (unsigned long long)open, (unsigned long long)all);
                    spec_problem_free(p);
                    free(p);
                    built++;
                }
            }
        }
    }
    ck_assert_uint_gt(built, 3000);
}
END_TEST

START_TEST(the_oracles_gradients_agree_with_differences)
{
    char text[SPEC_TEXT_MAX];
    uint32_t failed, run;
    ck_assert_uint_eq(spec_gradients(&run, &failed, text, sizeof text), CEK_OK);
    ck_assert_msg(!failed, "%s", text);
    ck_assert_uint_ge(run, GRADIENTS_AT_LEAST);
}
END_TEST

/* ---- running a device ---- */

typedef struct device {
    const cek_plugin *plugin;
    cek_instance *instance;
    cek_dev *dev;
} device;

static device device_open(const char *name)
{
    char path[4096];
    const char *folder = getenv("TEST_PLUGIN_DIR");
    device d;
    ck_assert_msg(folder, "TEST_PLUGIN_DIR is not set: run by make check");
    snprintf(path, sizeof path, "%s/%s.so", folder, name);
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(so, "%s", dlerror());
    cek_plugin_query_fn query = (cek_plugin_query_fn)dlsym(so, CEK_PLUGIN_SYMBOL);
    ck_assert(query && (d.plugin = query(CEK_ABI)));
    ck_assert_uint_eq(d.plugin->create(NULL, &d.instance), CEK_OK);
    ck_assert_uint_eq(d.plugin->device_open(d.instance, 0, NULL, &d.dev), CEK_OK);
    return d;
}

static void device_close(device *d)
{
    d->plugin->device_close(d->dev);
    d->plugin->destroy(d->instance);
}

static void counts_hold(const char *name, uint32_t optional_at_least)
{
    device d = device_open(name);
    spec_target target = { .plugin = d.plugin, .instance = d.instance, .dev = d.dev };
    static spec_report r;
    ck_assert_uint_eq(spec_run(&target, NULL, &r), CEK_OK);
    for (uint32_t i = 0; i < r.failure_count && i < SPEC_FAILURES_MAX; i++)
        fprintf(stderr, "%s: %s: %s\n", name, r.failure[i].name, r.failure[i].what);
    printf("%s: required %u/%u, optional %u/%u\n", name, r.total.required_passed, r.total.required,
           r.total.optional_passed, r.total.optional);
    ck_assert_msg(r.ok, "%s: %u failures%s%s", name, r.failure_count, *r.missing ? ", " : "", r.missing);
    ck_assert_uint_eq(r.total.required_passed, r.total.required);
    ck_assert_uint_ge(r.total.required, REQUIRED_AT_LEAST);
    ck_assert_uint_ge(r.total.optional_passed, optional_at_least);
    ck_assert_uint_eq(r.total.optional_passed + r.total.optional_unsupported, r.total.optional);
    const uint32_t told = spec_case_count(NULL), all = r.total.required + r.total.optional;
    ck_assert_msg(told <= all && told > all / 10 * 9, "%u cases were expected, %u ran", told, all);
    device_close(&d);
}

START_TEST(cases_are_counted_as_they_are_selected)
{
    const spec_options gemm = { .group = "gemm" }, f32 = { .group = "gemm", .type = CEK_F32 };
    const spec_options none = { .match = "nothing-has-this-name" };
    ck_assert_uint_gt(spec_case_count(NULL), spec_case_count(&gemm));
    ck_assert_uint_gt(spec_case_count(&gemm), spec_case_count(&f32));
    ck_assert_uint_gt(spec_case_count(&f32), 0);
    ck_assert_uint_eq(spec_case_count(&none), 0);
}
END_TEST

START_TEST(the_reference_passes_everything)
{
    counts_hold("reference", OPTIONAL_AT_LEAST);
}
END_TEST

START_TEST(the_cpu_passes_all_that_is_required)
{
    counts_hold("cpu", 2000);
}
END_TEST

/* ---- every case can fail: one element off by four times its tolerance ---- */

typedef struct tampering {
    pthread_mutex_t lock;  /* a case on several queues compares on several threads */
    uint32_t output;       /* which of a case's outputs, by the order in which they are compared */
    uint32_t seen, struck; /* in the case in hand; cases in all */
    bool strikes;
    uint32_t missed;
    char name[128];
} tampering;

/* Four times the tolerance away, or the next value that the type knows; an integer at its upper end goes down. */
static double wrong_value(cek_dtype type, double expect, double bound)
{
    bool integer = type == CEK_U8 || type == CEK_I32;
    double step = integer || bound == 0 ? 1 + 4 * bound : 4 * bound + fabs(expect) * 0x1p-52;
    if (!isfinite(expect))
        return 0.5;
    if (integer && expect >= (type == CEK_U8 ? UINT8_MAX : INT32_MAX))
        step = -step;
    while (fabs(spec_round(expect + step, type) - expect) <= bound && isfinite(step))
        step *= 2;
    return expect + step;
}

static void strike(tampering *t, const spec_output *o)
{
    if (t->seen++ != t->output || t->strikes)
        return;
    static const uint32_t from[] = { 1, 2, 0 }; /* last, the middle, the third from the end, in turn */
    uint64_t at = from[t->struck % 3] == 1   ? o->count - 1
                  : from[t->struck % 3] == 2 ? o->count / 2
                                             : o->count - (o->count > 2 ? 3 : 1);
    for (uint64_t tried = 0; (o->written && !o->written[at]) || isinf(o->bound[at]);
         at = (at + o->count - 1) % o->count)
        if (++tried > o->count)
            return; /* nothing is written: a skipped step */
    double wrong = wrong_value(o->type, o->expect[at], o->bound[at]);
    spec_encode(o->type, &wrong, 1, (char *)o->bytes + at * spec_type_bytes(o->type));
    t->strikes = true;
    t->struck++;
}

static void tamper(void *user, const spec_output *o)
{
    tampering *t = user;
    pthread_mutex_lock(&t->lock);
    strike(t, o);
    pthread_mutex_unlock(&t->lock);
}

static void after_case(void *user, const char *name, int result, bool required)
{
    tampering *t = user;
    (void)required;
    if (t->strikes && result != SPEC_FAILED && !t->missed++)
        snprintf(t->name, sizeof t->name, "%.120s", name);
    t->seen = 0;
    t->strikes = false;
}

static void tampered_run(const spec_target *target, uint32_t output, cek_dtype type, uint32_t at_least)
{
    static spec_report r;
    tampering t = { .lock = PTHREAD_MUTEX_INITIALIZER, .output = output };
    spec_options options = { .type = type, .tamper = tamper, .progress = after_case, .user = &t };
    ck_assert_uint_eq(spec_run(target, &options, &r), CEK_OK);
    ck_assert_msg(!t.missed, "output %u wrong, and not found in %u of %u cases: %s", output, t.missed, t.struck,
                  t.name);
    ck_assert_msg(t.struck >= at_least, "output %u was tampered with in %u cases alone", output, t.struck);
    ck_assert(!r.ok && r.failure_count == t.struck);
}

START_TEST(no_wrong_element_is_overlooked)
{
    device d = device_open("reference");
    spec_target target = { .plugin = d.plugin, .instance = d.instance, .dev = d.dev };
    tampered_run(&target, 0, 0, 4000);
    tampered_run(&target, 1, CEK_F32, 150); /* bias gradients, sums, losses, momentum */
    tampered_run(&target, 2, CEK_F32, 40);  /* counts, second moments */
    device_close(&d);
}
END_TEST

START_TEST(options_that_select_nothing_are_no_success)
{
    device d = device_open("reference");
    spec_target target = { .plugin = d.plugin, .instance = d.instance, .dev = d.dev };
    static spec_report r;
    spec_options options = { .match = "no case has this name" };
    ck_assert_uint_eq(spec_run(&target, &options, &r), CEK_INVALID);
    ck_assert(!r.ok);
    device_close(&d);
}
END_TEST

/* A plugin that refuses everything politely. */
static cek_status refuse(cek_dev *dev, const cek_op_desc *desc, cek_op_info *info, cek_op **out)
{
    (void)dev, (void)desc, (void)info;
    *out = NULL;
    return CEK_UNSUPPORTED;
}

static cek_status query_knows_nothing(cek_event *event)
{
    (void)event;
    return CEK_OK;
}

static cek_status memory_says_more_than_all(cek_dev *dev, uint64_t *free_bytes, uint64_t *total_bytes)
{
    (void)dev;
    *free_bytes = 2, *total_bytes = 1;
    return CEK_OK;
}

START_TEST(a_profile_of_a_later_minor_includes_all_that_are_known)
{
    device d = device_open("reference");
    static spec_report r;
    cek_plugin newer = *d.plugin;
    newer.abi = CEK_ABI + 1;
    newer.profile = CEK_PROFILE_TRAINING + 1;
    spec_target target = { .plugin = &newer, .instance = d.instance, .dev = d.dev };
    ck_assert_uint_eq(spec_run(&target, &(spec_options){ .group = "random" }, &r), CEK_OK);
    ck_assert_msg(r.ok && r.total.required > 0, "%s", r.missing);
    ck_assert_uint_eq(r.profile, CEK_PROFILE_TRAINING);
    newer.abi = CEK_ABI; /* where there is no such profile */
    ck_assert_uint_eq(spec_run(&target, NULL, &r), CEK_OK);
    ck_assert(!r.ok && strstr(r.missing, "its profile is 4"));
    device_close(&d);
}
END_TEST

START_TEST(a_failed_check_tells_the_call_and_the_rule_in_words)
{
    device d = device_open("reference");
    static spec_report r;
    cek_plugin stub = *d.plugin;
    spec_target target = { .plugin = &stub, .instance = d.instance, .dev = d.dev };
    stub.event_query = query_knows_nothing;
    ck_assert_uint_eq(spec_run(&target, &(spec_options){ .match = "never recorded" }, &r), CEK_OK);
    ck_assert_uint_eq(r.failure_count, 1);
    ck_assert_str_eq(r.failure[0].what, "event_query of an event that was never recorded answered OK, not INVALID");
    stub = *d.plugin;
    stub.device_memory = memory_says_more_than_all;
    ck_assert_uint_eq(spec_run(&target, &(spec_options){ .match = "device status" }, &r), CEK_OK);
    ck_assert_uint_eq(r.failure_count, 1);
    ck_assert_str_eq(r.failure[0].what, "it does not hold that no more bytes are free than there are");
    device_close(&d);
}
END_TEST

START_TEST(a_claim_is_not_met_by_answering_unsupported)
{
    device d = device_open("reference");
    static spec_report r;
    cek_plugin lame = *d.plugin;
    lame.op_create = refuse;
    spec_target target = { .plugin = &lame, .instance = d.instance, .dev = d.dev };
    ck_assert_uint_eq(spec_run(&target, NULL, &r), CEK_OK);
    ck_assert(!r.ok && r.failure_count > 1000);
    ck_assert_uint_eq(r.total.optional_unsupported + 5, r.total.optional); /* memory's optional features alone */

    lame.profile = CEK_PROFILE_MEMORY; /* claimed alone, it is met */
    ck_assert_uint_eq(spec_run(&target, NULL, &r), CEK_OK);
    ck_assert_msg(r.ok, "%s", r.failure_count ? r.failure[0].what : r.missing);
    ck_assert_uint_ge(r.total.required, 20);
    lame.queue_sync = NULL; /* a hole in the table is a failure, not a crash */
    ck_assert_uint_eq(spec_run(&target, NULL, &r), CEK_OK);
    ck_assert(!r.ok && strstr(r.missing, "queue_sync"));
    device_close(&d);
}
END_TEST

/* What spec_time asked for, in order: r and how often for a run, b and the turn for what comes ahead of one. */
typedef struct timed_calls {
    char text[128];
    int left; /* runs until one fails */
} timed_calls;

static cek_status timed_run(void *user, uint64_t times)
{
    timed_calls *calls = user;
    size_t used = strlen(calls->text);
    snprintf(calls->text + used, sizeof calls->text - used, "r%llu ", (unsigned long long)times);
    return calls->left-- > 0 ? CEK_OK : CEK_DEVICE_LOST;
}

static cek_status timed_before(void *user, uint32_t turn, uint64_t times)
{
    timed_calls *calls = user;
    size_t used = strlen(calls->text);
    snprintf(calls->text + used, sizeof calls->text - used, "b%u:%llu ", turn, (unsigned long long)times);
    return CEK_OK;
}

START_TEST(turns_are_timed_in_one_order)
{
    double seconds[3] = { -1, -1, -1 };
    spec_timing t = { .seconds = seconds, .runs = 3, .warmup = 1, .repeats = 7 };
    timed_calls calls = { .left = 100 };
    ck_assert_uint_eq(spec_time(&t, timed_run, timed_before, &calls), CEK_OK);
    ck_assert_str_eq(calls.text, "r1 r1 b0:7 r7 b1:7 r7 b2:7 r7 ");
    for (int i = 0; i < 3; i++)
        ck_assert(seconds[i] >= 0);
    calls = (timed_calls){ .left = 3 };
    ck_assert_uint_eq(spec_time(&t, timed_run, NULL, &calls), CEK_DEVICE_LOST);
    ck_assert_str_eq(calls.text, "r1 r1 r7 r7 ");
    /* Runs that take no time are repeated as often as is allowed, not for ever. */
    t = (spec_timing){ .seconds = seconds, .runs = 1 };
    calls = (timed_calls){ .left = 100 };
    ck_assert_uint_eq(spec_time(&t, timed_run, NULL, &calls), CEK_OK);
    ck_assert(t.repeats >= 1 && t.repeats <= 10000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("spec");
    TCase *own = tcase_create("own"), *run = tcase_create("run");
    tcase_add_test(own, rounding_to_small_types_is_to_nearest_even);
    tcase_add_test(own, half_precision_survives_a_round_trip_of_every_bit_pattern);
    tcase_add_test(own, philox_gives_the_published_answers);
    tcase_add_test(own, error_bounds_are_the_textbook_ones);
    tcase_add_test(own, convolutions_are_read_as_benchdnn_reads_them);
    tcase_add_test(own, what_is_no_convolution_is_refused);
    tcase_add_test(own, products_are_read);
    tcase_add_test(own, every_case_can_be_built);
    tcase_add_test(own, the_oracles_gradients_agree_with_differences);
    tcase_add_test(own, turns_are_timed_in_one_order);
    tcase_add_test(own, cases_are_counted_as_they_are_selected);
    tcase_add_test(run, the_reference_passes_everything);
    tcase_add_test(run, the_cpu_passes_all_that_is_required);
    tcase_add_test(run, no_wrong_element_is_overlooked);
    tcase_add_test(run, options_that_select_nothing_are_no_success);
    tcase_add_test(run, a_profile_of_a_later_minor_includes_all_that_are_known);
    tcase_add_test(run, a_failed_check_tells_the_call_and_the_rule_in_words);
    tcase_add_test(run, a_claim_is_not_met_by_answering_unsupported);
    tcase_set_timeout(run, 900); /* sanitizers and busy machines */
    suite_add_tcase(suite, own);
    suite_add_tcase(suite, run);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
