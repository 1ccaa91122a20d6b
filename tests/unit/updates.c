/* updates.c - what a trainer does with gradients, over one owner and three: algorithms against plain loops in double,
 * groups, clipping by value, accumulation, averages. */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "tests/unit/train_bench.h"

enum { STEPS = 4, MOST = 16 };

/* ---- the oracle ---- */

/* One parameter, as doubles. */
typedef struct kept {
    int64_t count;
    char name[32];
    double *p, *m, *v, *mean, *average, *gradient;
} kept;

typedef struct state {
    size_t count;
    kept list[MOST];
} state;

static double *zeros(int64_t count)
{
    return calloc((size_t)count, sizeof(double));
}

static void parameters_read(bench *b, size_t index, double *out)
{
    cek_parameter p;
    ok(cek_model_parameter(b->model, index, &p));
    for (int64_t i = 0; i < p.count; i++)
        out[i] = (double)p.data[i];
}

static void state_open(bench *b, state *s)
{
    s->count = cek_model_parameter_count(b->model);
    ck_assert_uint_le(s->count, MOST);
    for (size_t i = 0; i < s->count; i++) {
        kept *k = &s->list[i];
        cek_parameter p;
        ok(cek_model_parameter(b->model, i, &p));
        *k = (kept){ p.count,       "", zeros(p.count), zeros(p.count), zeros(p.count), zeros(p.count), zeros(p.count),
                     zeros(p.count) };
        strncpy(k->name, p.name, sizeof k->name - 1);
        parameters_read(b, i, k->p);
        parameters_read(b, i, k->average);
    }
}

static void state_close(state *s)
{
    for (size_t i = 0; i < s->count; i++) {
        kept *k = &s->list[i];
        free(k->p);
        free(k->m);
        free(k->v);
        free(k->mean);
        free(k->average);
        free(k->gradient);
    }
}

static void gradients_read(bench *b, state *s)
{
    for (size_t i = 0; i < s->count; i++)
        ok(cek_trainer_read_gradient(b->trainer, i, s->list[i].gradient, s->list[i].count));
}

static double length(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

static void lamb(const cek_optimizer *o, double lr, double decay, int t, kept *k)
{
    double *u = zeros(k->count), trust;
    for (int64_t i = 0; i < k->count; i++) {
        const double g = k->gradient[i];
        k->m[i] = 0.9 * k->m[i] + 0.1 * g;
        k->v[i] = 0.999 * k->v[i] + 0.001 * g * g;
        u[i] = k->m[i] / (1 - pow(0.9, t)) / (sqrt(k->v[i] / (1 - pow(0.999, t))) + 1e-6) + decay * k->p[i];
    }
    (void)o;
    trust = length(k->p, k->count) / length(u, k->count);
    for (int64_t i = 0; i < k->count; i++)
        k->p[i] -= lr * trust * u[i];
    free(u);
}

static void rmsprop(const cek_optimizer *o, double lr, double decay, int t, kept *k)
{
    (void)t;
    for (int64_t i = 0; i < k->count; i++) {
        const double g = k->gradient[i] + decay * k->p[i];
        k->v[i] = 0.99 * k->v[i] + 0.01 * g * g;
        k->mean[i] = 0.99 * k->mean[i] + 0.01 * g;
        k->m[i] = o->momentum * k->m[i] + g / (sqrt(k->v[i] - k->mean[i] * k->mean[i]) + 1e-8);
        k->p[i] -= lr * k->m[i];
    }
}

static void adagrad(const cek_optimizer *o, double lr, double decay, int t, kept *k)
{
    for (int64_t i = 0; i < k->count; i++) {
        const double g = k->gradient[i] + decay * k->p[i];
        k->v[i] = (t == 1 ? o->initial_sum : k->v[i]) + g * g;
        k->p[i] -= lr / (1 + (t - 1) * o->lr_decay) * g / (sqrt(k->v[i]) + 1e-10);
    }
}

static void sgd(const cek_optimizer *o, double lr, double decay, int t, kept *k)
{
    (void)o, (void)t;
    for (int64_t i = 0; i < k->count; i++)
        k->p[i] -= lr * (k->gradient[i] + decay * k->p[i]);
}

typedef void rule(const cek_optimizer *o, double lr, double decay, int t, kept *k);

static const struct {
    const char *name;
    rule *apply;
    cek_optimizer optimizer;
} algorithms[] = {
    { "lamb", lamb, { .algorithm = CEK_OPTIMIZER_LAMB, .lr = 0.05 } },
    { "lamb with decay", lamb, { .algorithm = CEK_OPTIMIZER_LAMB, .lr = 0.05, .weight_decay = 0.1 } },
    { "rmsprop",
      rmsprop,
      { .algorithm = CEK_OPTIMIZER_RMSPROP,
        .flags = CEK_OPTIMIZER_CENTERED,
        .lr = 0.001,
        .momentum = 0.5,
        .weight_decay = 0.01 } },
    { "adagrad",
      adagrad,
      { .algorithm = CEK_OPTIMIZER_ADAGRAD, .lr = 0.01, .lr_decay = 0.5, .initial_sum = 0.25, .weight_decay = 0.01 } },
    { "sgd", sgd, { .algorithm = CEK_OPTIMIZER_SGD, .lr = 0.1, .weight_decay = 0.01 } },
};

/* Both differ by f32's rounding of what they start each step from, of the sums and of a dozen operations; where a
 * gradient is almost nothing, its direction may be anything: up to 2 lr. */
static void near_oracle(bench *b, const state *s, const char *what, double lr)
{
    for (size_t i = 0; i < s->count; i++) {
        const kept *k = &s->list[i];
        double *got = zeros(k->count), off = 0, size = 0;
        parameters_read(b, i, got);
        for (int64_t e = 0; e < k->count; e++) {
            off += (got[e] - k->p[e]) * (got[e] - k->p[e]);
            size += k->p[e] * k->p[e];
            ck_assert_msg(fabs(got[e] - k->p[e]) <= 2 * lr * STEPS, "%s: %s[%lld]", what, k->name, (long long)e);
        }
        ck_assert_msg(sqrt(off) <= 2e-5 * sqrt(size) + 1e-7, "%s: %s is off by %g of %g", what, k->name, sqrt(off),
                      sqrt(size));
        free(got);
    }
}

/* Five layers' parameters on one device, and on three where shards end within parameters (plan_pieces
 * has larger ones). */
static void fleet(bench *b, int owners, const cek_trainer_options *o)
{
    bench_open(b, owners == 1 ? "1" : "3", "cpu", o);
    ck_assert_uint_eq(b->count, (size_t)owners);
}

START_TEST(updates_are_those_of_plain_loops_over_any_owners)
{
    const size_t n = sizeof algorithms / sizeof *algorithms;
    cek_optimizer optimizer = algorithms[(size_t)_i % n].optimizer;
    cek_trainer_options o = options_small();
    state s = { 0 };
    bench b;
    optimizer.size = sizeof optimizer;
    o.optimizer = &optimizer;
    fleet(&b, (size_t)_i < n ? 1 : 3, &o);
    state_open(&b, &s);
    for (int t = 1; t <= STEPS; t++) {
        step(&b, 0, SAMPLES);
        gradients_read(&b, &s);
        for (size_t i = 0; i < s.count; i++)
            algorithms[(size_t)_i % n].apply(&optimizer, optimizer.lr, optimizer.weight_decay, t, &s.list[i]);
    }
    ok(cek_trainer_pull(b.trainer));
    near_oracle(&b, &s, algorithms[(size_t)_i % n].name, optimizer.lr);
    replicas_are_equal(&b);
    state_close(&s);
    bench_close(&b);
}
END_TEST

/* A linear layer of 300,000 weights, so that each of three devices owns a part of it. */
START_TEST(lamb_measures_whole_parameters_whoever_owns_their_parts)
{
    enum { IN = SIDE * SIDE };
    static const cek_optimizer optimizer = {
        .size = sizeof optimizer, .algorithm = CEK_OPTIMIZER_LAMB, .lr = 0.05, .weight_decay = 0.1
    };
    cek_trainer_options o = options_small();
    state s = { 0 };
    bench b;
    bench_engine(&b, "3", "cpu");
    cek_model_free(b.model);
    ok(cek_model_parse("flatten linear:2000 relu linear:5", 3, (int64_t[]){ 1, SIDE, SIDE }, &b.model));
    cek_model_init(b.model, 3);
    o.optimizer = &optimizer;
    ok(cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer));
    state_open(&b, &s);
    ck_assert_int_eq(s.list[0].count, 2000 * IN);
    for (int t = 1; t <= STEPS; t++) {
        step(&b, 0, SAMPLES);
        gradients_read(&b, &s);
        for (size_t i = 0; i < s.count; i++)
            lamb(&optimizer, 0.05, 0.1, t, &s.list[i]);
    }
    ok(cek_trainer_pull(b.trainer));
    near_oracle(&b, &s, "lamb, large", 0.05);
    replicas_are_equal(&b);
    state_close(&s);
    bench_close(&b);
}
END_TEST

/* ---- groups ---- */

static const cek_optimizer sgd_half = { .size = sizeof sgd_half, .algorithm = CEK_OPTIMIZER_SGD, .lr = 0.5 };

START_TEST(groups_have_rates_and_decays_of_their_own_and_what_is_frozen_stays)
{
    const cek_optimizer optimizer = {
        .size = sizeof optimizer, .algorithm = CEK_OPTIMIZER_SGD, .lr = 0.1, .weight_decay = 0.2
    };
    const cek_parameter_group groups[] = {
        { .size = sizeof *groups, .flags = CEK_GROUP_FROZEN, .names = "0.*,9.bias" },
        { .size = sizeof *groups, .flags = CEK_GROUP_WEIGHT_DECAY, .names = "*.bias" },
        { .size = sizeof *groups, .names = "7.weight", .lr = 0.01 },
    };
    cek_trainer_options o = options_small();
    state s = { 0 };
    bench b;
    o.optimizer = &optimizer;
    o.groups = groups;
    o.group_count = 3;
    o.max_norm = _i < 2 ? 0 : 0.05;
    fleet(&b, _i % 2 == 0 ? 1 : 3, &o);
    state_open(&b, &s);
    ck_assert_double_eq(cek_trainer_rate(b.trainer, 0), 0.1);
    ck_assert_double_eq(cek_trainer_rate(b.trainer, 3), 0.01);
    ck_assert_double_eq(cek_trainer_rate(b.trainer, 4), 0);
    for (int t = 1; t <= STEPS; t++) {
        double squares = 0, scale;
        step(&b, 0, SAMPLES);
        gradients_read(&b, &s);
        for (size_t i = 0; i < s.count; i++)
            if (s.list[i].name[0] != '0' && strcmp(s.list[i].name, "9.bias") != 0)
                squares += pow(length(s.list[i].gradient, s.list[i].count), 2);
        scale = o.max_norm > 0 && o.max_norm / (sqrt(squares) + 1e-6) < 1 ? o.max_norm / (sqrt(squares) + 1e-6) : 1;
        ck_assert(o.max_norm == 0 || scale < 1);
        for (size_t i = 0; i < s.count; i++) {
            kept *k = &s.list[i];
            bool frozen = k->name[0] == '0' || !strcmp(k->name, "9.bias"), bias = strstr(k->name, "bias") != NULL;
            for (int64_t e = 0; e < k->count; e++)
                k->gradient[e] *= scale;
            if (!frozen)
                sgd(&optimizer, !strcmp(k->name, "7.weight") ? 0.01 : 0.1, bias ? 0 : 0.2, t, k);
        }
    }
    ok(cek_trainer_pull(b.trainer));
    near_oracle(&b, &s, "groups", 0.5);
    for (size_t i = 0; i < s.count; i++) {
        cek_parameter p;
        ok(cek_model_parameter(b.model, i, &p));
        for (int64_t e = 0; s.list[i].name[0] == '0' && e < p.count; e++)
            ck_assert(p.data[e] == (float)s.list[i].p[e]);
    }
    replicas_are_equal(&b);
    state_close(&s);
    bench_close(&b);
}
END_TEST

START_TEST(what_makes_no_sense_is_refused_by_name)
{
    const cek_optimizer lamb_plain = { .size = sizeof lamb_plain, .algorithm = CEK_OPTIMIZER_LAMB };
    const cek_optimizer beside[] = {
        { .size = sizeof *beside, .algorithm = 5 },
        { .size = sizeof *beside, .algorithm = CEK_OPTIMIZER_ADAGRAD, .momentum = 0.5 },
        { .size = sizeof *beside, .algorithm = CEK_OPTIMIZER_LAMB, .flags = CEK_OPTIMIZER_DECOUPLED },
        { .size = sizeof *beside, .algorithm = CEK_OPTIMIZER_ADAM, .alpha = 0.5 },
        { .size = sizeof *beside, .algorithm = CEK_OPTIMIZER_RMSPROP, .lr_decay = 0.5 },
        { .size = sizeof *beside, .algorithm = CEK_OPTIMIZER_RMSPROP, .alpha = 1 },
    };
    const cek_parameter_group bad[] = {
        { .size = sizeof *bad, .names = "5.weight" },
        { .size = sizeof *bad },
        { .size = sizeof *bad, .names = "*", .flags = 8 },
        { .size = sizeof *bad, .names = "*", .lr = -1 },
        { .size = sizeof *bad, .names = "*", .weight_decay = 1 },
        { .size = 0, .names = "*" },
        { .size = sizeof *bad, .names = "*", .lr = 1e39 },
    };
    const cek_optimizer fast = { .size = sizeof fast, .lr = 1e39 };
    bench b;
    bench_engine(&b, "1", "cpu");
#define REFUSED(text, ...)                                                                               \
    do {                                                                                                 \
        cek_trainer_options o = options_small();                                                         \
        __VA_ARGS__;                                                                                     \
        ck_assert_uint_eq(cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer), CEK_INVALID); \
        ck_assert_msg(strstr(cek_error_text(), text) != NULL, "%s: %s", text, cek_error_text());         \
    } while (0)
    REFUSED("algorithm 5", o.optimizer = &beside[0]);
    REFUSED("momentum is SGD's", o.optimizer = &beside[1]);
    REFUSED("flags 0x2", o.optimizer = &beside[2]);
    REFUSED("alpha is RMSprop's", o.optimizer = &beside[3]);
    REFUSED("are Adagrad's", o.optimizer = &beside[4]);
    REFUSED("alpha = 1", o.optimizer = &beside[5]);
    REFUSED("LAMB", (o.optimizer = &lamb_plain, o.max_norm = 1));
    REFUSED("norm of -1", o.max_norm = -1);
    REFUSED("values of inf", o.max_value = INFINITY);
    REFUSED("average of 1", o.average = 1);
    REFUSED("no parameter is called 5.weight", (o.groups = &bad[0], o.group_count = 1));
    REFUSED("group 1 has no names", (o.groups = &bad[1], o.group_count = 1));
    REFUSED("flags 0x8", (o.groups = &bad[2], o.group_count = 1));
    REFUSED("learning rate of -1", (o.groups = &bad[3], o.group_count = 1));
    REFUSED("without CEK_GROUP_WEIGHT_DECAY", (o.groups = &bad[4], o.group_count = 1));
    REFUSED("parameter group", (o.groups = &bad[5], o.group_count = 1));
    REFUSED("learning rate of 1e+39", (o.groups = &bad[6], o.group_count = 1));
    REFUSED("learning rate = 1e+39", o.optimizer = &fast);
    REFUSED("not given", o.group_count = 1);
    REFUSED("31 parameter groups", o.group_count = 31);
    REFUSED("4294967295 batches", o.accumulate = UINT32_MAX);
    bench_close(&b);
}
END_TEST

/* Names of what is nested are long. */
START_TEST(patterns_are_as_long_as_names)
{
    char one[100], pattern[500];
    cek_parameter p;
    cek_parameter_group group = { .size = sizeof group, .flags = CEK_GROUP_FROZEN, .names = pattern };
    cek_trainer_options o = options_small();
    static double before[CLASSES * SIDE * SIDE], after[CLASSES * SIDE * SIDE];
    int node;
    bench b;

    bench_engine(&b, "1", "cpu");
    cek_model_free(b.model);
    memset(one, 'a', sizeof one);
    one[sizeof one - 1] = '\0';
    ok(cek_model_create(3, (int64_t[]){ 1, SIDE, SIDE }, &b.model));
    for (int i = 0; i < 3; i++)
        ok(cek_model_enter(b.model, one));
    ok(cek_model_flatten(b.model, 0, &node));
    ok(cek_model_linear(b.model, node, CLASSES, true, &node));
    for (int i = 0; i < 3; i++)
        ok(cek_model_leave(b.model));
    cek_model_init(b.model, 3);
    ok(cek_model_parameter(b.model, 0, &p));
    ck_assert_uint_gt(strlen(p.name), 300);
    snprintf(pattern, sizeof pattern, "*.bias,%s", p.name);
    o.groups = &group;
    o.group_count = 1;
    ok(cek_trainer_create(b.model, b.devices, b.count, &o, &b.trainer));
    parameters_read(&b, 0, before);
    step(&b, 0, SAMPLES);
    ok(cek_trainer_pull(b.trainer));
    parameters_read(&b, 0, after);
    ck_assert(memcmp(before, after, sizeof before) == 0);
    bench_close(&b);
}
END_TEST

START_TEST(rates_are_numbers_of_f32)
{
    const cek_schedule steep = {
        .size = sizeof steep, .kind = CEK_SCHEDULE_ONE_CYCLE, .period = 10, .start_divisor = 1e-320
    };
    cek_trainer_options o = options_small();
    bench b;

    o.schedule = &steep;
    bench_open(&b, "1", "cpu", &o);
    ck_assert_uint_eq(cek_trainer_set_rate(b.trainer, 0, 4e38), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "4e+38 is no learning rate"));
    ok(cek_trainer_set_rate(b.trainer, 0, 3e38));
    ck_assert_double_eq(cek_trainer_rate(b.trainer, 0), FLT_MAX);
    bench_close(&b);
}
END_TEST

/* ---- clipping by value, accumulation ---- */

START_TEST(no_element_of_the_gradient_moves_more_than_its_value_allows)
{
    static const double most = 0.002;
    cek_trainer_options o = options_small();
    state s = { 0 };
    bench b;
    int64_t clipped = 0;
    o.optimizer = &sgd_half;
    o.max_value = most;
    fleet(&b, _i == 0 ? 1 : 3, &o);
    state_open(&b, &s);
    step(&b, 0, SAMPLES);
    gradients_read(&b, &s);
    ok(cek_trainer_pull(b.trainer));
    for (size_t i = 0; i < s.count; i++)
        for (int64_t e = 0; e < s.list[i].count; e++) {
            ck_assert(fabs(s.list[i].gradient[e]) <= (double)(float)most);
            clipped += fabs(s.list[i].gradient[e]) == (double)(float)most;
            s.list[i].p[e] -= 0.5 * s.list[i].gradient[e];
        }
    ck_assert_int_gt(clipped, 10);
    near_oracle(&b, &s, "clipped", 0.5);
    state_close(&s);
    bench_close(&b);
}
END_TEST

static double *gradients_of(const cek_trainer_options *o, int owners, int64_t *count, int64_t *micro)
{
    bench b;
    state s = { 0 };
    double *all = NULL;
    *count = 0;
    fleet(&b, owners, o);
    state_open(&b, &s);
    *micro = cek_trainer_micro_batch(b.trainer, 0);
    step(&b, 0, SAMPLES);
    gradients_read(&b, &s);
    for (size_t i = 0; i < s.count; i++) {
        all = realloc(all, (size_t)(*count + s.list[i].count) * sizeof *all);
        memcpy(all + *count, s.list[i].gradient, (size_t)s.list[i].count * sizeof *all);
        *count += s.list[i].count;
    }
    state_close(&s);
    bench_close(&b);
    return all;
}

START_TEST(accumulated_batches_make_one_update_of_the_gradient_of_all)
{
    const int owners = _i == 0 ? 1 : 3;
    cek_trainer_options whole = options_small(), parts = options_small();
    int64_t count, micro;
    double off = 0, *one, *sum;
    parts.batch = SAMPLES / 4;
    parts.accumulate = 4;
    one = gradients_of(&whole, owners, &count, &micro);
    ck_assert_int_eq(micro, SAMPLES / owners);
    sum = gradients_of(&parts, owners, &count, &micro);
    ck_assert_int_eq(micro, SAMPLES / owners / 4);
    for (int64_t i = 0; i < count; i++)
        off += (one[i] - sum[i]) * (one[i] - sum[i]);
    ck_assert(sqrt(off) < 1e-5 * length(one, count)); /* dropout's masks are those of the samples, whatever the parts */
    free(one);
    free(sum);
}
END_TEST

/* ---- averages ---- */

START_TEST(an_average_follows_the_updates_and_gives_the_parameters_back)
{
    static const double decay = 0.75;
    cek_trainer_options o = options_small();
    char trained[65], again[65], averaged[65];
    state s = { 0 };
    bench b;
    cek_batch batch;
    o.optimizer = &sgd_half;
    o.average = decay;
    fleet(&b, _i == 0 ? 1 : 3, &o);
    state_open(&b, &s);
    for (int t = 1; t <= STEPS; t++) {
        step(&b, 0, SAMPLES);
        ok(cek_trainer_pull(b.trainer));
        for (size_t i = 0; i < s.count; i++) {
            kept *k = &s.list[i];
            parameters_read(&b, i, k->p);
            for (int64_t e = 0; e < k->count; e++)
                k->average[e] += (1 - decay) * (k->p[e] - k->average[e]);
        }
    }
    cek_model_sha256(b.model, trained);
    ok(cek_trainer_use_average(b.trainer, true));
    ok(cek_trainer_use_average(b.trainer, true));
    ok(cek_trainer_pull(b.trainer));
    cek_model_sha256(b.model, averaged);
    ck_assert_str_ne(trained, averaged);
    for (size_t i = 0; i < s.count; i++)
        memcpy(s.list[i].p, s.list[i].average, (size_t)s.list[i].count * sizeof(double));
    near_oracle(&b, &s, "average", 0.5);
    replicas_are_equal(&b);
    batch = batch_of(0, SAMPLES);
    ck_assert_uint_eq(cek_trainer_step(b.trainer, &batch, NULL), CEK_INVALID);
    ck_assert_msg(strstr(cek_error_text(), "average") != NULL, "%s", cek_error_text());
    ok(cek_trainer_use_average(b.trainer, false));
    ok(cek_trainer_pull(b.trainer));
    cek_model_sha256(b.model, again);
    ck_assert_str_eq(trained, again);
    step(&b, 0, SAMPLES);
    state_close(&s);
    bench_close(&b);
    o.average = 0;
    fleet(&b, 1, &o);
    ck_assert_uint_eq(cek_trainer_use_average(b.trainer, true), CEK_INVALID);
    bench_close(&b);
}
END_TEST

int main(void)
{
    const int n = (int)(sizeof algorithms / sizeof *algorithms);
    Suite *suite = suite_create("updates");
    TCase *tc = tcase_create("updates");

    tcase_add_loop_test(tc, updates_are_those_of_plain_loops_over_any_owners, 0, 2 * n);
    tcase_add_test(tc, lamb_measures_whole_parameters_whoever_owns_their_parts);
    tcase_add_test(tc, patterns_are_as_long_as_names);
    tcase_add_test(tc, rates_are_numbers_of_f32);
    tcase_add_loop_test(tc, groups_have_rates_and_decays_of_their_own_and_what_is_frozen_stays, 0, 4);
    tcase_add_test(tc, what_makes_no_sense_is_refused_by_name);
    tcase_add_loop_test(tc, no_element_of_the_gradient_moves_more_than_its_value_allows, 0, 2);
    tcase_add_loop_test(tc, accumulated_batches_make_one_update_of_the_gradient_of_all, 0, 2);
    tcase_add_loop_test(tc, an_average_follows_the_updates_and_gives_the_parameters_back, 0, 2);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
