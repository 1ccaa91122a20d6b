/* math.c - the error bounds that kernels/cpu/vmath.h states, over floats of every magnitude,
 * against the C library's f64. */
#include "harness.h"

enum { CHUNK = 1 << 14 };
enum { STEP = 0x10001 - 0x1234 }; /* odd: about 70,000 of the 2^32 patterns, all exponents, ever other fractions */

typedef struct function {
    const char *name;
    uint32_t code;
    double (*exact)(double);
    double (*size)(double); /* whose last place is the unit; NULL: that of the exact result */
    double ulps;
} function;

static double exact_sigmoid(double x)
{
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}
static double exact_gelu(double x)
{
    return 0.5 * x * erfc(-x / sqrt(2));
}
static double exact_gelu_slope(double x)
{
    return 0.5 * erfc(-x / sqrt(2)) + x * exp(-x * x / 2) / sqrt(2 * M_PI);
}
static double gelu_slope_size(double x)
{
    return 0.5 * erfc(-x / sqrt(2)) + fabs(x) * exp(-x * x / 2) / sqrt(2 * M_PI);
}

/* The bounds of vmath.h. */
static const function functions[] = {
    { "exp", CEK_PW_EXP, exp, NULL, 1.1 },
    { "log", CEK_PW_LOG, log, NULL, 0.8 },
    { "tanh", CEK_PW_TANH, tanh, NULL, 1.4 },
    { "sigmoid", CEK_PW_SIGMOID, exact_sigmoid, NULL, 2.3 },
    { "gelu", CEK_PW_GELU, exact_gelu, NULL, 7 },
    { "gelu_grad", CEK_PW_GELU_GRAD, exact_gelu_slope, gelu_slope_size, 7 },
};

static double last_place(double x)
{
    int exponent;

    frexpf((float)x, &exponent);
    return ldexp(1, exponent - 24 < -149 ? -149 : exponent - 24);
}

static void judge(const backend *b, const function *f, float x, float y)
{
    const double exact = f->exact(x), error = fabs(y - exact);

    if (isnan(exact)) {
        must(isnan(y), "%s(%.9g) on %s is %.9g, not NaN", f->name, x, b->settings[1], y);
    } else if (isinf((float)exact) || isinf(y) || exact == 0) {
        must(y == (float)exact && !signbit(y) == !signbit(exact), "%s(%.9g) on %s is %.9g, not %.9g", f->name, x,
             b->settings[1], y, exact);
    } else {
        const double unit = last_place(f->size ? f->size(x) : exact);

        must(error <= f->ulps * unit, "%s(%.9g) on %s is %.9g, not %.9g: %.2f units of the last place", f->name, x,
             b->settings[1], y, exact, error / unit);
    }
}

START_TEST(elementary_functions_keep_their_bounds)
{
    const function *f = &functions[_i];
    const bool grad = f->code == CEK_PW_GELU_GRAD;
    const cek_pointwise_input inputs[2] = { { .type = CEK_F32, .strides = { 1 } },
                                            { .type = CEK_F32, .strides = { 1 } } };
    const cek_pointwise_instruction code = { .code = f->code, .a = 0, .b = grad ? 1 : 0 };
    cek_pointwise_desc d = {
        .op = { .size = sizeof d,
                .kind = CEK_OP_POINTWISE,
                .operands = CEK_BIT(0) | (grad ? CEK_BIT(1) : 0) | CEK_BIT(CEK_POINTWISE_OUT) },
        .rank = 1,
        .out_type = CEK_F32,
        .shape = { CHUNK },
        .out_strides = { 1 },
        .inputs = inputs,
        .input_count = grad ? 2 : 1,
        .input_size = sizeof inputs[0],
        .instructions = &code,
        .instruction_count = 1,
        .instruction_size = sizeof code,
    };
    float *x = malloc(CHUNK * sizeof *x), *one = malloc(CHUNK * sizeof *one), *y = malloc(CHUNK * sizeof *y);
    uint64_t bits = 0;
    /* clang-format on */

    for (int i = 0; i < CHUNK; i++)
        one[i] = 1;
    while (bits < UINT64_C(1) << 32) {
        operand o[3] = { { 0, grad ? one : x, CHUNK * 4, IN },
                         { CEK_POINTWISE_OUT, y, CHUNK * 4, OUT },
                         { 1, x, CHUNK * 4, IN } };

        for (int i = 0; i < CHUNK; i++, bits += STEP)
            memcpy(&x[i], &(uint32_t){ (uint32_t)bits }, 4);
        for (int k = 0; k < form_count(); k += 2) {
            ck_assert_uint_eq(run_op(form(k), &d.op, o, grad ? 3 : 2, 0), CEK_OK);
            for (int i = 0; i < CHUNK; i++)
                judge(form(k), f, x[i], y[i]);
        }
    }
    free(x);
    free(one);
    free(y);
}
END_TEST

void add_math(Suite *suite)
{
    TCase *cases = tcase_create("math");

    tcase_add_checked_fixture(cases, forms_open, forms_close);
    tcase_add_loop_test(cases, elementary_functions_keep_their_bounds, 0,
                        (int)(sizeof functions / sizeof functions[0]));
    suite_add_tcase(suite, cases);
}
