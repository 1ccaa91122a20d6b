/* init.c - parameters filled by name: bounds, moments and shapes of what torch.nn.init fills so. */
#include <math.h>
#include <string.h>

#include "cekernels/nn.h"
#include "core/base/random.h"
#include "tests/suite.h"

#define ok(call) ck_assert_msg((call) == CEK_OK, "%s: %s", #call, cek_error_text())
#define INIT(...) (&(cek_init){ .size = sizeof(cek_init), .seed = 7, __VA_ARGS__ })

/* 0.weight [64][3][5][5], 0.bias [64], 3.weight [50][64], 3.bias [50] */
static cek_model *model_make(void)
{
    cek_model *m;
    ok(cek_model_parse("conv:64,5 gap flatten linear:50", 3, (int64_t[]){ 3, 9, 9 }, &m));
    return m;
}

static cek_parameter parameter(const cek_model *m, const char *name)
{
    cek_parameter p = { 0 };
    for (size_t i = 0; i < cek_model_parameter_count(m); i++) {
        ok(cek_model_parameter(m, i, &p));
        if (strcmp(p.name, name) == 0)
            return p;
    }
    ck_abort_msg("no parameter %s", name);
}

typedef struct moments {
    double mean, deviation, least, most;
} moments;

static moments moments_of(const cek_model *m, const char *name)
{
    cek_parameter p = parameter(m, name);
    moments s = { 0, 0, INFINITY, -INFINITY };
    for (int64_t i = 0; i < p.count; i++) {
        s.mean += p.data[i] / (double)p.count;
        s.least = fmin(s.least, p.data[i]);
        s.most = fmax(s.most, p.data[i]);
    }
    for (int64_t i = 0; i < p.count; i++)
        s.deviation += (p.data[i] - s.mean) * (p.data[i] - s.mean) / (double)p.count;
    s.deviation = sqrt(s.deviation);
    return s;
}

/* Of 4800 or 3200 numbers the mean is off by a fiftieth of the deviation at one sigma, and that by a ninetieth. */
static void deviates(const cek_model *m, const char *name, double mean, double deviation)
{
    moments s = moments_of(m, name);
    ck_assert_msg(fabs(s.mean - mean) < 5 * deviation / 50, "%s: mean %g, not %g", name, s.mean, mean);
    ck_assert_msg(fabs(s.deviation / deviation - 1) < 5.0 / 70, "%s: deviation %g, not %g", name, s.deviation,
                  deviation);
}

START_TEST(kaiming_and_xavier_deviate_by_their_fans)
{
    const double in = 3 * 25, out = 64 * 25;
    const struct {
        cek_init how;
        double deviation;
        bool uniform;
    } cases[] = {
        { { .kind = CEK_INIT_KAIMING_UNIFORM }, sqrt(2 / in), true },
        { { .kind = CEK_INIT_KAIMING_NORMAL }, sqrt(2 / in), false },
        { { .kind = CEK_INIT_KAIMING_NORMAL, .fan_out = true }, sqrt(2 / out), false },
        { { .kind = CEK_INIT_KAIMING_UNIFORM, .gain = 1 / sqrt(3) }, 1 / sqrt(3 * in), true },
        { { .kind = CEK_INIT_XAVIER_UNIFORM }, sqrt(2 / (in + out)), true },
        { { .kind = CEK_INIT_XAVIER_NORMAL, .gain = 5.0 / 3 }, 5.0 / 3 * sqrt(2 / (in + out)), false },
    };
    cek_model *m = model_make();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cek_init how = cases[i].how;
        moments s;
        how.size = sizeof how;
        how.seed = i;
        ok(cek_model_init_parameters(m, "0.weight", &how));
        deviates(m, "0.weight", 0, cases[i].deviation);
        s = moments_of(m, "0.weight");
        if (cases[i].uniform)
            ck_assert(s.most <= sqrt(3) * cases[i].deviation * 1.000001 && s.most > 1.7 * cases[i].deviation);
        else
            ck_assert(s.most > 2.5 * cases[i].deviation);
    }
    cek_model_free(m);
}
END_TEST

START_TEST(a_truncated_normal_stays_within_its_ends)
{
    cek_model *m = model_make();
    moments s;
    ok(cek_model_init_parameters(
        m, "*.weight", INIT(.kind = CEK_INIT_TRUNCATED_NORMAL, .mean = 1, .deviation = 0.5, .low = 0, .high = 2)));
    deviates(m, "0.weight", 1, 0.5 * 0.8796); /* of a normal one cut at two deviations */
    deviates(m, "3.weight", 1, 0.5 * 0.8796);
    s = moments_of(m, "0.weight");
    ck_assert(s.least >= 0 && s.least < 0.05 && s.most <= 2 && s.most > 1.95);
    /* far out on one side: between 3 and 4 deviations the mean is 3.2605 = (pdf(3) - pdf(4)) / (cdf(4) - cdf(3)) */
    ok(cek_model_init_parameters(m, "0.weight",
                                 INIT(.kind = CEK_INIT_TRUNCATED_NORMAL, .deviation = 1, .low = 3, .high = 4)));
    s = moments_of(m, "0.weight");
    ck_assert_msg(fabs(s.mean - 3.2605) < 0.03 && s.least >= 3 && s.most <= 4, "mean %g", s.mean);
    cek_model_free(m);
}
END_TEST

/* 9 numbers in (0, 1) of parameter 1, which begin blocks of four and end within one; normal ones come in pairs. */
START_TEST(each_number_follows_from_its_place)
{
    cek_model *m;
    cek_parameter p;
    double u[10];

    ok(cek_model_parse("linear:9", 1, (int64_t[]){ 2 }, &m));
    for (uint64_t i = 0; i < 10; i++)
        u[i] = (cek__random_u32(7, cek__stream(CEK__STREAM_INIT, 1), i) + 0.5) * 0x1p-32;
    p = parameter(m, "0.bias");
    ok(cek_model_init_parameters(m, "*", INIT(.kind = CEK_INIT_UNIFORM, .low = -1, .high = 3)));
    for (int i = 0; i < 9; i++)
        ck_assert_float_eq(p.data[i], (float)(-1 + 4 * u[i]));
    ok(cek_model_init_parameters(m, "*", INIT(.kind = CEK_INIT_NORMAL, .deviation = 1)));
    for (int i = 0; i < 9; i++) {
        double length = sqrt(-2 * log(u[i / 2 * 2])), angle = 2 * acos(-1) * u[i / 2 * 2 + 1];

        ck_assert_double_eq_tol(p.data[i], length * (i % 2 ? sin(angle) : cos(angle)), 1e-6);
    }
    cek_model_free(m);
}
END_TEST

START_TEST(normal_uniform_and_constant_are_as_asked_for)
{
    cek_model *m = model_make();
    moments s;
    ok(cek_model_init_parameters(m, "*.weight", INIT(.kind = CEK_INIT_NORMAL, .mean = -2, .deviation = 3)));
    deviates(m, "0.weight", -2, 3);
    ok(cek_model_init_parameters(m, "*.weight", INIT(.kind = CEK_INIT_UNIFORM, .low = 1, .high = 4)));
    deviates(m, "0.weight", 2.5, sqrt(0.75));
    ok(cek_model_init_parameters(m, "?.bias", INIT(.kind = CEK_INIT_CONSTANT, .mean = 0.25)));
    s = moments_of(m, "3.bias");
    ck_assert(s.least == 0.25 && s.most == 0.25 && moments_of(m, "0.bias").least == 0.25);
    ck_assert(moments_of(m, "0.weight").deviation > 0.5); /* it was not meant */
    cek_model_free(m);
}
END_TEST

/* The shorter side's vectors have length `gain` and nothing in common. */
static void is_orthogonal(const cek_model *m, const char *name, double gain)
{
    cek_parameter p = parameter(m, name);
    int64_t rows = p.shape[0], columns = p.count / rows, count = rows < columns ? rows : columns;
    for (int64_t a = 0; a < count; a++)
        for (int64_t b = 0; b <= a; b++) {
            double sum = 0;
            for (int64_t i = 0; i < (rows < columns ? columns : rows); i++)
                sum += rows < columns ? (double)p.data[a * columns + i] * p.data[b * columns + i]
                                      : (double)p.data[i * columns + a] * p.data[i * columns + b];
            ck_assert_msg(fabs(sum - (a == b ? gain * gain : 0)) < 1e-6 * gain * gain, "%s: %lld, %lld: %g", name,
                          (long long)a, (long long)b, sum);
        }
}

START_TEST(orthogonal_matrices_are)
{
    cek_model *m = model_make();
    ok(cek_model_init_parameters(m, "*.weight", INIT(.kind = CEK_INIT_ORTHOGONAL, .gain = 2)));
    is_orthogonal(m, "0.weight", 2); /* 64 rows of 75 */
    is_orthogonal(m, "3.weight", 2); /* 50 rows of 64 */
    cek_model_free(m);
    ok(cek_model_parse("linear:40", 1, (int64_t[]){ 9 }, &m));
    ok(cek_model_init_parameters(m, "0.weight", INIT(.kind = CEK_INIT_ORTHOGONAL)));
    is_orthogonal(m, "0.weight", 1); /* 9 columns of 40 */
    cek_model_free(m);
}
END_TEST

START_TEST(numbers_follow_from_the_seed)
{
    cek_model *a = model_make(), *b = model_make();
    char one[65], other[65];
    for (uint32_t kind = CEK_INIT_UNIFORM; kind <= CEK_INIT_ORTHOGONAL; kind++) {
        cek_init how = { .size = sizeof how, .kind = kind, .seed = 3, .deviation = 1, .high = 1 };
        ok(cek_model_init_parameters(a, "*.weight", &how));
        ok(cek_model_init_parameters(b, "0.weight", &how));
        ok(cek_model_init_parameters(b, "3.weight", &how));
        cek_model_sha256(a, one);
        cek_model_sha256(b, other);
        ck_assert_str_eq(one, other);
        how.seed = 4;
        ok(cek_model_init_parameters(b, "*.weight", &how));
        cek_model_sha256(b, other);
        ck_assert_str_ne(one, other);
    }
    cek_model_free(a);
    cek_model_free(b);
}
END_TEST

START_TEST(what_cannot_be_is_refused_by_name)
{
    cek_model *m = model_make();
    const struct {
        const char *names, *text;
        cek_init how;
        cek_status want;
    } bad[] = {
        { "4.weight", "4.weight", { .kind = CEK_INIT_CONSTANT }, CEK_NOT_FOUND },
        { "0.weight", "kind 0", { .kind = 0 }, CEK_INVALID },
        { "0.weight", "kind 10", { .kind = 10 }, CEK_INVALID },
        { "0.bias", "0.bias", { .kind = CEK_INIT_XAVIER_NORMAL }, CEK_INVALID },
        { "0.bias", "0.bias", { .kind = CEK_INIT_ORTHOGONAL }, CEK_INVALID },
        { "0.weight", "from 2 to 1", { .kind = CEK_INIT_UNIFORM, .low = 2, .high = 1 }, CEK_INVALID },
        { "0.weight", "deviation of -1", { .kind = CEK_INIT_NORMAL, .deviation = -1 }, CEK_INVALID },
        { "0.weight", "nan", { .kind = CEK_INIT_CONSTANT, .mean = NAN }, CEK_INVALID },
        { "0.weight", "between 0 and 0", { .kind = CEK_INIT_TRUNCATED_NORMAL, .deviation = 1 }, CEK_INVALID },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cek_init how = bad[i].how;
        how.size = sizeof how;
        ck_assert_uint_eq(cek_model_init_parameters(m, bad[i].names, &how), bad[i].want);
        ck_assert_msg(strstr(cek_error_text(), bad[i].text) != NULL, "%s: %s", bad[i].text, cek_error_text());
    }
    ck_assert_uint_eq(cek_model_init_parameters(m, "0.weight", &(cek_init){ .kind = CEK_INIT_CONSTANT }), CEK_INVALID);
    cek_model_free(m);
}
END_TEST

START_TEST(what_a_network_says_takes_the_place_of_the_default)
{
    cek_model *m = model_make(), *by_hand = model_make();
    cek_init how = *INIT(.kind = CEK_INIT_XAVIER_NORMAL);
    cek_parameter p;
    ck_assert_int_eq(cek_model_set_init(m, "3.*", INIT(.kind = CEK_INIT_KAIMING_NORMAL)), CEK_INVALID);
    ck_assert_ptr_nonnull(strstr(cek_error_text(), "3.bias"));
    ck_assert_int_eq(cek_model_set_init(m, "9.*", INIT(.kind = CEK_INIT_CONSTANT)), CEK_NOT_FOUND);
    ck_assert_int_eq(cek_model_set_init(m, "*.weight", INIT(.kind = CEK_INIT_ORTHOGONAL)), CEK_INVALID);
    ok(cek_model_set_init(m, "0.weight", &how));
    cek_model_init(m, 8);
    cek_model_init(by_hand, 8);
    how.seed = 8; /* cek_model_init's, not that which it was given with */
    ok(cek_model_init_parameters(by_hand, "0.weight", &how));
    for (size_t i = 0; i < cek_model_parameter_count(m); i++) {
        ok(cek_model_parameter(m, i, &p));
        ck_assert_mem_eq(p.data, parameter(by_hand, p.name).data, (size_t)p.count * sizeof *p.data);
    }
    cek_model_free(m);
    cek_model_free(by_hand);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("init");
    TCase *tc = tcase_create("init");

    tcase_add_test(tc, kaiming_and_xavier_deviate_by_their_fans);
    tcase_add_test(tc, a_truncated_normal_stays_within_its_ends);
    tcase_add_test(tc, each_number_follows_from_its_place);
    tcase_add_test(tc, normal_uniform_and_constant_are_as_asked_for);
    tcase_add_test(tc, orthogonal_matrices_are);
    tcase_add_test(tc, numbers_follow_from_the_seed);
    tcase_add_test(tc, what_cannot_be_is_refused_by_name);
    tcase_add_test(tc, what_a_network_says_takes_the_place_of_the_default);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
